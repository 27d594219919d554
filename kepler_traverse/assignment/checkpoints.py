"""The file from which an assignment goes on after it was interrupted."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .. import arguments
from ..errors import InputError, is_for_library, one_line, option_text
from ..runtime.regular_files import open_regular, written_whole

_MAX_SHARE = 0.05  # the largest part of the time that goes into writing


class CheckpointError(InputError):
    """The file is damaged, or of another assignment."""


class Checkpoint:
    """A file with the state of an assignment, which is written after iterations.

    If ``path`` is None, there is no file: nothing is read or written. ``fingerprint`` is the
    checksum of the problem and the method, as ``Problem.fingerprint`` returns it. It is stored in
    the file, so that no other assignment goes on from the file.
    """

    def __init__(self, path: Any, fingerprint: str) -> None:
        """Keep the path; nothing is read or written yet. InputError if it is no path."""
        if path is not None and not arguments.is_path(path):
            raise InputError(f"checkpoint must be a path, not {arguments.describe(path)}")
        self._path = None if path is None else Path(path)
        self._fingerprint = fingerprint
        self._written = -float("inf")  # when the file was last written, by time.monotonic
        self._seconds = 0.0  # how long the last writing took

    def read(self, alike: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the state in the file, arrays by name; an empty dictionary if there is no file.

        ``alike`` is any state of the same solver: the file must have arrays of the same names and
        types. CheckpointError if the file is damaged, or of another assignment.
        """
        if self._path is None or not self._path.exists():
            return {}
        try:
            # A pipe or a device is refused, from which reading could wait forever; a symbolic
            # link is followed, since the user has named the path.
            with open_regular(self._path, follow=True) as file:
                arrays = np.load(file, allow_pickle=False)
                state = {name: arrays[name] for name in arrays.files}
        except Exception as error:  # whatever zipfile and NumPy raise of damaged archives
            raise CheckpointError(
                f"checkpoint {str(self._path)!r} cannot be read ({one_line(error)}); "
                f"{or_new_folder('remove it')}"
            ) from None
        fingerprint = str(state.pop("fingerprint", ""))
        checksum = str(state.pop("checksum", ""))
        if fingerprint != self._fingerprint:
            raise CheckpointError(
                f"checkpoint {str(self._path)!r} is of other links, trips, costs or another method; "
                f"{or_new_folder('name a new file, or remove this one')}"
            )
        # Files of version 0.1.0 have no checksum, and are read nevertheless.
        is_whole = checksum in ("", _checksum(fingerprint, state))
        if not is_whole or not _has_types(state, alike):
            advice = or_new_folder("remove it")
            raise CheckpointError(f"checkpoint {str(self._path)!r} is damaged; {advice}")
        return state

    def is_there(self) -> bool:
        """Return whether there is a file with the fingerprint of this assignment; its arrays are
        not checked.
        """
        if self._path is None or not self._path.exists():
            return False
        try:
            with open_regular(self._path, follow=True) as file:
                return str(np.load(file, allow_pickle=False)["fingerprint"]) == self._fingerprint
        except Exception:  # ``read`` says what is wrong with it
            return False

    def write(self, state: dict[str, np.ndarray], is_last: bool) -> None:
        """Write the state, arrays by name, to the file.

        It is not written if the last writing took more than ``_MAX_SHARE`` of the time since then,
        so that files take little of the time. The last state of a run (``is_last``) is always
        written.
        """
        if self._path is None:
            return
        began = time.monotonic()
        if not is_last and (began - self._written) * _MAX_SHARE < self._seconds:
            return
        arrays: dict[str, Any] = {
            "fingerprint": np.array(self._fingerprint),
            "checksum": np.array(_checksum(self._fingerprint, state)),
            **state,
        }
        # ``partial`` is another file, which replaces the file at the end. Its folder, the same as
        # that of the file, may not exist yet.
        with written_whole(self._path) as partial:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with partial.open("wb") as file:
                np.savez(file, **arrays)
        self._written = time.monotonic()
        self._seconds = self._written - began


def _checksum(fingerprint: str, state: Mapping[str, np.ndarray]) -> str:
    """Return the SHA-256 of a state, with the names, types and shapes of its arrays.

    The archive itself has a checksum of the bytes of each array, but none of its name, so that it
    would not reveal two arrays that were exchanged. ``fingerprint`` is that of the problem and the
    method. Names are sorted, so that the order of the dictionary does not matter.
    """
    digest = hashlib.sha256(fingerprint.encode())
    for name in sorted(state):
        digest.update(f"{name} {state[name].dtype} {state[name].shape}".encode())
        digest.update(state[name].tobytes())
    return digest.hexdigest()


def _has_types(state: Mapping[str, np.ndarray], alike: Mapping[str, np.ndarray]) -> bool:
    """Return whether ``state`` has an array of the same name, type and number of dimensions for
    each array of another state, ``alike``.

    Arrays without a dimension, such as the last step, must be finite. The values of all others are
    checked where the state is restored.
    """
    return all(
        name in state
        and state[name].dtype == array.dtype
        and state[name].ndim == array.ndim
        and (array.ndim > 0 or bool(np.isfinite(state[name])))
        for name, array in alike.items()
    )


def or_new_folder(advice: str) -> str:
    """Return what an error proposes where a state cannot be taken: ``advice`` about its file, or
    for a command, which resumes no folder without that file, another folder.
    """
    if is_for_library():
        return advice
    return f"take a new folder by {option_text('output')}"
