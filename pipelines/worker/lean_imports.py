"""Keep pandas and SciPy out of a process that uses neither; to import them takes as long as a small
run.

pyarrow imports pandas at its first conversion to see whether an object is one of pandas, and Numba
imports SciPy when it first loads compiled code, to find a BLAS for ``np.dot``. The job has no data
frames of pandas and no such products.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import sys
from collections.abc import Iterator
from typing import Any


def hide_unused_packages(uses_cudf: bool) -> None:
    """Let pyarrow and Numba find that pandas and SciPy are not installed.

    This may be called only in a process that belongs to the job, since no other code of the process
    then gets pandas from pyarrow. A package that is imported already stays. ``uses_cudf`` says
    whether cuDF may read the edge list here. cuDF needs pandas, so pandas is not hidden then.
    """
    # Each block makes the one attempt to import the package, whose failure is remembered.
    with _hidden("scipy.linalg"):
        import numba.np.arraymath  # noqa: F401
    if not uses_cudf:
        import pyarrow

        with _hidden("pandas"):
            pyarrow.array([0])  # the first conversion, at which pyarrow looks for pandas
            import pyarrow.dataset


class _HidingFinder(importlib.abc.MetaPathFinder):
    """Finds that a module is not installed, and leaves all others to the other finders."""

    def __init__(self, name: str):
        self._name = name

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:  # noqa: ARG002
        """Raise ModuleNotFoundError for the hidden module, and return None for any other, which the
        next finder is then asked for. ``path`` and ``target``, which Python passes, are ignored:
        the full name of the module decides.
        """
        if fullname == self._name:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


@contextlib.contextmanager
def _hidden(name: str) -> Iterator[None]:
    """Have imports of a module raise ModuleNotFoundError within the block."""
    finder = _HidingFinder(name)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
