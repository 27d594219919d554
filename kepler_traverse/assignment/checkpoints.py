"""The file from which an assignment goes on after it was interrupted."""

from __future__ import annotations

import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from .. import arguments
from ..errors import InputError
from ..runtime.regular_files import written_whole

_SHARE = 0.05  # of the time, at most, goes into writing


class Checkpoint:
    """A file with the state of an assignment, written after iterations; without a path there is
    none.
    """

    def __init__(self, path: Any, fingerprint: str) -> None:
        if path is not None and not arguments.is_path(path):
            raise InputError(f"checkpoint must be a path, not {arguments.describe(path)}")
        self._path = None if path is None else Path(path)
        self._fingerprint = fingerprint
        self._written = -float("inf")
        self._seconds = 0.0

    def read(self) -> dict[str, np.ndarray]:
        """Return the state, empty if there is no file yet; InputError if the file is not of this
        assignment.
        """
        if self._path is None or not self._path.exists():
            return {}
        try:
            with np.load(self._path, allow_pickle=False) as file:
                state = {name: file[name] for name in file.files}
        except (OSError, ValueError, KeyError, zipfile.BadZipFile, EOFError) as error:
            raise InputError(
                f"checkpoint {str(self._path)!r} cannot be read ({error}); remove it"
            ) from None
        if str(state.pop("fingerprint", "")) != self._fingerprint:
            raise InputError(
                f"checkpoint {str(self._path)!r} is of other links, trips, costs or another method; "
                "name a new file, or remove this one"
            )
        return state

    def write(self, state: dict[str, np.ndarray], is_last: bool) -> None:
        """Write the state, unless the last writing was just now and others follow."""
        if self._path is None:
            return
        began = time.monotonic()
        if not is_last and (began - self._written) * _SHARE < self._seconds:
            return
        arrays: dict[str, Any] = {"fingerprint": np.array(self._fingerprint), **state}
        with written_whole(self._path) as partial:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with partial.open("wb") as file:
                np.savez(file, **arrays)
        self._written = time.monotonic()
        self._seconds = self._written - began
