"""CuPy's folder of compiled kernels. A user who can write to it can run code on the GPU as its
owner, so others must not.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ..errors import DeviceError


def cache_folder() -> Path | None:
    """Return the folder in which CuPy stores compiled kernels; None if it keeps them in memory
    only.
    """
    if os.environ.get("CUPY_CACHE_IN_MEMORY", "0") != "0":
        return None
    return Path(os.environ.get("CUPY_CACHE_DIR") or Path.home() / ".cupy" / "kernel_cache")


def require_private_cache() -> None:
    """Reject a cache of kernels that others can write to; create a missing one for its owner alone.

    The checksums of its files detect damage, not tampering.

    Raises
    ------
    DeviceError
        The folder belongs to another user, or its mode lets others write.
    """
    folder = cache_folder()
    if folder is None:
        return
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except OSError as error:
        raise DeviceError(
            f"{folder}: the folder of compiled kernels cannot be used: "
            f"{error.strerror}; set CUPY_CACHE_DIR to another"
        ) from None
    # Owned by root or by this user, and writable by neither its group nor others.
    if status.st_uid not in (0, os.geteuid()) or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise DeviceError(
            f"{folder}: others can write to the folder of compiled kernels, and so run code on the GPU as you; "
            f"chmod 700 it, set CUPY_CACHE_DIR to a folder of your own, or CUPY_CACHE_IN_MEMORY=1"
        )
