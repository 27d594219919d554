"""What a run or a measurement ran with: the versions of Python and of packages."""

from __future__ import annotations

import functools
import platform
from collections.abc import Iterable
from importlib import metadata


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Return the version of ``python``, and those of the packages that are installed, in the order given."""
    installed = {package: _version(package) for package in packages}
    return {"python": platform.python_version()} | {name: version for name, version in installed.items() if version}


@functools.cache  # a search of all folders of the path
def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
