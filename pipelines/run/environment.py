"""What a run or a measurement ran with: the versions of Python and of packages."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from importlib import metadata


def package_versions(packages: Iterable[str]) -> dict[str, str]:
    """Versions of the packages that are installed, by the names under which they are installed; the others are left out.

    Parameters
    ----------
    packages : iterable of str

    Returns
    -------
    dict of str to str
        In the order given.
    """
    found = {}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def versions(packages: Iterable[str]) -> dict[str, str]:
    """The version of ``python``, and those of packages as ``package_versions`` returns them."""
    return {"python": platform.python_version(), **package_versions(packages)}
