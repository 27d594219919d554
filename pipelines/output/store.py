"""Where the files of a run are: on a disk, or in an object store. Each is whole or not there."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from kepler_traverse.runtime.object_stores import URL
from kepler_traverse.runtime.regular_files import read_regular

from .layout import PARTITION_NAME
from .manifest_types import Stored


class Store:
    """A place for the files of a run, which ``str`` names: a folder on a disk. Its methods raise OSError."""

    is_local = True  # whether the files are in the folder ``path``

    def __init__(self, path: Path):
        self.path = path  # of this machine: where the files are, or where they are prepared

    def __str__(self) -> str:
        return str(self.path)

    def names(self, folder: str = "", after: str = "") -> list[str]:
        """Return the names in a folder that sort after one, in no order; none if it does not exist."""
        try:
            return [name for name in os.listdir(self.path / folder) if name > after]
        except FileNotFoundError:
            return []

    def has(self, name: str) -> bool:
        """Return whether there is a file of this name."""
        return os.path.lexists(self.path / name)

    def get(self, name: str, max_bytes: int) -> bytes:
        """Read a file."""
        return read_regular(self.path / name, max_bytes)

    def put_new(self, name: str, data: bytes) -> bool:
        """Create a file; return False, and change nothing, if there is another one of that name."""
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

    def versions(self) -> dict[str, str]:
        """Return the files at the top and in partitions by name, with what changes when a file does; ``""`` if nothing."""
        names = self.names()
        folders = [name for name in names if PARTITION_NAME.fullmatch(name) and (self.path / name).is_dir()]
        return dict.fromkeys([*names, *(f"{folder}/{name}" for folder in folders for name in self.names(folder))], "")

    def move_in(self, partial: Path, name: str) -> Stored | None:
        """Take a file in ``path``, which need not be on the disk yet and may remain; return how it was stored elsewhere."""
        with open(partial, "rb") as file:
            _sync(file)
        target = self.path / name
        target.parent.mkdir(exist_ok=True)
        os.replace(partial, target)
        sync_folder(target.parent)
        return None

    @contextlib.contextmanager
    def local(self, names: Sequence[str]) -> Iterator[Path]:  # noqa: ARG002
        """Yield a folder on this machine with some of the files, as far as they exist."""
        yield self.path

    def delete(self, folder: str) -> None:
        """Delete a folder, if it exists."""
        shutil.rmtree(self.path / folder, ignore_errors=True)

    def close(self) -> None:
        """Delete what was prepared on this machine."""

    @contextlib.contextmanager
    def _partial(self, path: Path) -> Iterator[tuple[Path, BinaryIO]]:
        partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
        try:
            with open(partial, "xb") as file:
                yield partial, file
        finally:
            partial.unlink(missing_ok=True)


def open_store(place: str | os.PathLike[str], scratch: Path | None = None) -> Store:
    """Return the store that a path or a URL names.

    ``scratch``: where files of an object store are prepared; a new folder by default, which is deleted with the store.
    """
    if isinstance(place, str) and URL.match(place):
        from .object_store import ObjectStore

        return ObjectStore(place, scratch)
    return Store(Path(place))


def sync_folder(folder: Path) -> None:
    """Sync a folder, so that renames in it survive a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class HashedFile(io.FileIO):
    """A file that computes the SHA-256 of the bytes written to it."""

    def __init__(self, path: Path, mode: str):
        super().__init__(path, mode)
        self.digest = hashlib.sha256()

    def write(self, data: Any) -> int:
        written = super().write(data)
        self.digest.update(memoryview(data)[:written])
        return written


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
