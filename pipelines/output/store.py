"""The files of a run: whole or not there, and some of them created once, by the first process that does."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from kepler_traverse.runtime.regular_files import read_regular


def sync_folder(folder: Path) -> None:
    """Sync a folder, so that renames in it survive a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class LocalStore:
    """Files of a folder on a disk. Names are relative to it; all methods raise OSError.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path):
        self.path = path

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder, in no order; none if it does not exist."""
        try:
            return os.listdir(self.path / folder)
        except FileNotFoundError:
            return []

    def get(self, name: str, max_bytes: int) -> bytes:
        return read_regular(self.path / name, max_bytes)

    def put_new(self, name: str, data: bytes) -> bool:
        """Create a file; return False, and change nothing, if there is one of that name."""
        path = self.path / name
        path.parent.mkdir(exist_ok=True)
        with self._partial(path) as (partial, file):
            file.write(data)
            _sync(file)
            try:
                os.link(partial, path, follow_symlinks=False)
            except FileExistsError:
                # A server of files whose answer was lost has been asked twice, and the first time has made the link.
                return os.stat(partial).st_nlink > 1
        sync_folder(path.parent)
        return True

    @contextlib.contextmanager
    def new_file(self, name: str) -> Iterator[BinaryIO]:
        """Yield a file that replaces the one of that name when the block ends without an error."""
        path = self.path / name
        with self._partial(path) as (partial, file):
            yield file
            _sync(file)
            os.replace(partial, path)
        sync_folder(path.parent)

    @contextlib.contextmanager
    def _partial(self, path: Path) -> Iterator[tuple[Path, BinaryIO]]:
        partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
        try:
            with open(partial, "xb") as file:
                yield partial, file
        finally:
            partial.unlink(missing_ok=True)


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
