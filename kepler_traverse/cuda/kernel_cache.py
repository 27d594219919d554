"""CuPy's folder of compiled kernels: whoever can write to it runs code on the GPU as its owner, so others must not."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ..errors import DeviceError


def cache_folder() -> Path | None:
    """Where CuPy keeps compiled kernels; None if only in memory."""
    if os.environ.get("CUPY_CACHE_IN_MEMORY", "0") != "0":
        return None
    return Path(os.environ.get("CUPY_CACHE_DIR") or Path.home() / ".cupy" / "kernel_cache")


def require_private_cache() -> None:
    """Refuse a cache of kernels that others can write to; make it, for its owner alone, where there is none yet.

    Its files have a checksum against damage, not against a person.

    Raises
    ------
    DeviceError
        The folder belongs to somebody else, or its mode lets others write.
    """
    folder = cache_folder()
    if folder is None:
        return
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts = folder.stat()
    except OSError as error:
        raise DeviceError(
            f"{folder}: the folder of compiled kernels cannot be used: {error.strerror}; set CUPY_CACHE_DIR to another"
        ) from None
    if facts.st_uid not in (0, os.geteuid()) or facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise DeviceError(
            f"{folder}: others can write to the folder of compiled kernels, and so run code on the GPU as you; "
            f"chmod 700 it, set CUPY_CACHE_DIR to a folder of your own, or CUPY_CACHE_IN_MEMORY=1"
        )
