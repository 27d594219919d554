"""The version of this package, by which the driver and the workers of an existing cluster recognize each other."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

from kepler_traverse import __version__

_PACKAGES = ("kepler_traverse", "pipelines")
_SOURCES = (".py", ".cu", ".cuh")


@functools.cache
def version_here() -> str:
    """The version of this package, with a digest of its sources: the number alone does not tell two checkouts apart.

    It is found out once in a process, about when the process imports the sources.
    """
    found = hashlib.sha256()
    root = Path(__file__).parents[2]
    for package in _PACKAGES:
        for path in sorted(path for path in (root / package).rglob("*") if path.suffix in _SOURCES):
            found.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return f"{__version__}, sources {found.hexdigest()[:12]}"
