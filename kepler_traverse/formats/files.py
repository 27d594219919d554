"""From paths, folders, globs and URLs to files that can be opened, decompressed on the way."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..errors import EdgeListError, InputError

# Ending of a compressed file: pyarrow's name for the codec.
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_PATTERN_SIGNS = "*?["


@dataclass(frozen=True)
class DataFile:
    """One file on one file system; as text it is the name that errors show."""

    filesystem: object  # fsspec.AbstractFileSystem
    path: str
    name: str

    @classmethod
    def named(cls, name: str) -> DataFile:
        """A file known by name only, to show in errors."""
        return cls(None, name, name)

    def __str__(self) -> str:
        return self.name

    @property
    def is_local(self) -> bool:
        protocol = self.filesystem.protocol
        return "file" in ((protocol,) if isinstance(protocol, str) else protocol)

    @property
    def is_plain_path(self) -> bool:
        """Whether the path means this file to any library: local, and not to be taken for a pattern."""
        return self.is_local and not any(sign in self.path for sign in _PATTERN_SIGNS)

    @property
    def compression(self) -> str | None:
        return COMPRESSIONS.get(os.path.splitext(self.path)[1].lower())

    @property
    def ending(self) -> str:
        """Ending in lower case, without that of the compression."""
        path = os.path.splitext(self.path)[0] if self.compression else self.path
        return os.path.splitext(path)[1].lower()

    def open_stream(self):
        """Open for reading from start to end, as a pyarrow input stream of the decompressed bytes."""
        import pyarrow

        source = self._open_bytes()
        return pyarrow.CompressedInputStream(source, self.compression) if self.compression else source

    def open_random(self, memory_map: bool = False):
        """Open for reading at any position; a compressed file is decompressed into memory."""
        import pyarrow

        if self.compression:
            with self.open_stream() as stream:
                return pyarrow.BufferReader(stream.read())
        return pyarrow.memory_map(self.path) if memory_map and self.is_local else self._open_bytes()

    def _open_bytes(self):
        import pyarrow

        if self.is_local:
            return pyarrow.OSFile(self.path)
        return pyarrow.PythonFile(self.filesystem.open(self.path, "rb"), mode="r")


@contextmanager
def reading(file: DataFile, kind: str, *more_errors: type[Exception]) -> Iterator[None]:
    """Name the file in whatever the libraries that read it raise."""
    import pyarrow

    try:
        if file.filesystem.size(file.path) == 0:
            raise EdgeListError(f"{file}: the file is empty (0 bytes)")
        yield
    except InputError:
        raise
    except FileNotFoundError:
        raise EdgeListError(f"{file}: the file has gone") from None
    except (pyarrow.ArrowException, OSError, EOFError, UnicodeDecodeError, *more_errors) as error:
        text = " ".join(str(error).split())
        text = text if len(text) <= 200 else text[:200] + "..."
        raise EdgeListError(f"{file}: cannot be read as {kind}, it may be cut short or damaged ({text})") from error


def find_files(paths, endings: set[str]) -> list[DataFile]:
    """Expand paths, folders, globs and URLs, in the order given and by name within a folder or glob.

    Parameters
    ----------
    paths : path or sequence of paths
        Local paths or URLs that fsspec knows.
    endings : set of str
        File endings to take from a folder; names that begin with ``_`` or ``.`` are never taken.

    Raises
    ------
    EdgeListError
        Nothing is there, or the file system cannot be reached.
    """
    paths = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    if not paths:
        raise EdgeListError("no edge list was given; name at least one file, folder or pattern")
    return [file for path in paths for file in _expand(os.fspath(path), endings)]


def _expand(path: str, endings: set[str]) -> list[DataFile]:
    import fsspec.core

    try:
        filesystem, root = fsspec.core.url_to_fs(path)
        if filesystem.isfile(root):  # before globs: a name may hold [ or *
            return [_data_file(filesystem, root)]
        if filesystem.isdir(root):
            return _inside(filesystem, root, path, endings)
        if not any(sign in path for sign in _PATTERN_SIGNS):
            raise EdgeListError(f"{path}: no such file or folder")
        found = []
        for match in sorted(filesystem.glob(root)):
            if _is_hidden(match) and not _is_hidden(root):
                continue
            inside = filesystem.isdir(match)
            found += _inside(filesystem, match, match, endings) if inside else [_data_file(filesystem, match)]
    except (OSError, ImportError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise EdgeListError(f"{path}: cannot be opened ({error})") from error
    if not found:
        raise EdgeListError(f"{path}: no file matches this pattern")
    return found


def _inside(filesystem, root: str, path: str, endings: set[str]) -> list[DataFile]:
    """Data files of a folder and its partitions."""
    found = []
    for name in sorted(filesystem.find(root)):
        below = name[len(root.rstrip("/")) :].strip("/").split("/")
        file = _data_file(filesystem, name)
        if file.ending in endings and not any(map(_is_hidden, below)):
            found.append(file)
    if not found:
        raise EdgeListError(f"{path}: the folder holds no data files; looked for {', '.join(sorted(endings))}")
    return found


def _is_hidden(path: str) -> bool:
    """Whether a name marks what writers leave beside the data, such as ``_SUCCESS`` and unfinished files."""
    return path.rstrip("/").rpartition("/")[2].startswith(("_", "."))


def _data_file(filesystem, path: str) -> DataFile:
    file = DataFile(filesystem, path, path)
    return file if file.is_local else DataFile(filesystem, path, filesystem.unstrip_protocol(path))
