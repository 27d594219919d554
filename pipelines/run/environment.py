"""What a run or a measurement ran with: the versions of Python and of packages."""

from __future__ import annotations

import functools
import platform
from collections.abc import Iterable
from importlib import metadata


def package_versions(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of ``packages`` by name, in their order, without those that are not
    installed.
    """
    return {package: version for package in packages if (version := _version(package)) is not None}


@functools.cache  # since each look-up searches all folders of the path
def _version(package: str) -> str | None:
    """Return the version of a package; None if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Return the version of Python under "python", and those of ``packages`` under their names,
    without packages that are not installed.
    """
    return {"python": platform.python_version(), **package_versions(packages)}
