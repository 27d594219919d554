"""From paths, folders, globs and URLs to files that can be opened, decompressed on the way."""

from __future__ import annotations

import csv
import functools
import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

import numpy as np

from .._arrays import pyarrow
from ..errors import EdgeListError, InputError
from ..runtime.object_stores import URL, StoredObject, find_object, local_copies, objects_below
from ..runtime.regular_files import irregular
from .log_tables import (
    METADATA,
    LocalFolder,
    LogFinder,
    OtherFolder,
    StoredFolder,
    inside_error,
    may_be_data,
    tables_in_listing,
    unread_error,
)

# Ending of a compressed file: pyarrow's name for the codec.
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
# of unpacked bytes to those of the file; below, every ratio is taken
_MAX_RATIO = 200
_UNPACKED_FREELY = 1 << 24
_PATTERN_SIGNS = "*?["
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class DataFile:
    """One file on one file system; as text it is the name that errors show."""

    filesystem: Any
    path: str
    name: str
    # Columns that the folders right above the file hold, ``key=value`` each, as Hive partitions a
    # table.
    partitions: tuple[tuple[str, Any], ...] = ()
    table: str = ""  # a folder: the name in ``LOG_FORMATS`` of the table that it is

    @classmethod
    def named(cls, name: str) -> DataFile:
        """A file known by name only, to show in errors."""
        return cls(None, name, name)

    def __str__(self) -> str:
        return self.name

    @property
    def partition_names(self) -> list[str]:
        return [name for name, _ in self.partitions]

    def partition_column(self, name: str, rows: int) -> pyarrow.ChunkedArray:
        """The one value of a partition's column, for each row of the file."""
        value = dict(self.partitions)[name]
        return pyarrow.chunked_array(
            [pyarrow.nulls(rows) if value is None else pyarrow.repeat(value, rows)]
        )

    @property
    def is_local(self) -> bool:
        protocol = self.filesystem.protocol
        return "file" in ((protocol,) if isinstance(protocol, str) else protocol)

    @property
    def is_plain_path(self) -> bool:
        """Whether the path means this file to any library: local, and not to be taken for a
        pattern.
        """
        return self.is_local and not any(sign in self.path for sign in _PATTERN_SIGNS)

    @property
    def compression(self) -> str | None:
        return COMPRESSIONS.get(os.path.splitext(self.path)[1].lower())

    @property
    def ending(self) -> str:
        """Ending in lower case, without that of the compression."""
        if self.compression:
            path = os.path.splitext(self.path)[0]
        else:
            path = self.path
        return os.path.splitext(path)[1].lower()

    def open_stream(self) -> pyarrow.NativeFile:
        """Open for reading from start to end, as a pyarrow input stream of the decompressed bytes."""
        source = self._open_bytes()
        if not self.compression:
            return source
        stream = pyarrow.CompressedInputStream(source, self.compression)
        return pyarrow.PythonFile(_Unpacked(stream, self), mode="r")

    def open_random(self, memory_map: bool = False) -> pyarrow.NativeFile:
        """Open for reading at any position; a compressed file is decompressed into memory."""
        if self.compression:
            unpacked = pyarrow.BufferOutputStream()
            with self.open_stream() as stream:
                while piece := stream.read(1 << 20):
                    unpacked.write(piece)
            return pyarrow.BufferReader(unpacked.getvalue())
        if memory_map and self.is_local:
            return pyarrow.memory_map(self.path)
        return self._open_bytes()

    def _open_bytes(self) -> pyarrow.NativeFile:
        if self.is_local:
            return pyarrow.OSFile(self.path)
        return pyarrow.PythonFile(self.filesystem.open(self.path, "rb"), mode="r")


class _Unpacked(io.RawIOBase):
    """The bytes of a compressed file, up to a multiple of its size that no edge list reaches."""

    def __init__(self, stream: pyarrow.NativeFile, file: DataFile):
        self._stream = stream
        self._file = file
        self._left = max(_UNPACKED_FREELY, _MAX_RATIO * file.filesystem.size(file.path))

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        n = self._stream.readinto(buffer)
        self._left -= n
        if self._left < 0:
            raise EdgeListError(
                f"{self._file}: it unpacks to more than {_MAX_RATIO:,} times its size, as no edge list does; unpack it "
                "first if this one does"
            )
        return n

    def close(self) -> None:
        self._stream.close()
        super().close()


@contextmanager
def reading(file: DataFile, kind: str, allow_empty: bool = False) -> Iterator[None]:
    """Name the file in whatever the libraries that read it raise."""
    try:
        if not allow_empty and file.filesystem.size(file.path) == 0:
            raise EdgeListError(f"{file}: the file is empty (0 bytes)")
        yield
    except (InputError, MemoryError):
        raise
    except FileNotFoundError:
        raise EdgeListError(f"{file}: the file has gone") from None
    except PermissionError:
        raise EdgeListError(f"{file}: it may not be read (permission denied)") from None
    except (pyarrow.ArrowException, OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        text = " ".join(str(error).split())
        if isinstance(error, UnicodeDecodeError) or "invalid UTF8" in text:
            raise EdgeListError(
                f"{file}: this is no UTF-8 text; save it as UTF-8 ({text[:200]})"
            ) from error
        text = text if len(text) <= 200 else text[:200] + "..."
        raise EdgeListError(
            f"{file}: cannot be read as {kind}, it may be cut short or damaged ({text})"
        ) from error


def find_files(paths: Any, endings: set[str]) -> list[DataFile]:
    """Expand paths, folders, globs and URLs, in the order given and by name within a folder or
    glob.

    Objects of S3, Google Cloud Storage and Azure are copied to this host first; other URLs are
    those that fsspec knows. From a folder files with one of the ``endings`` are taken; names that
    begin with ``_`` or ``.`` never are. EdgeListError if nothing is there, or the file system
    cannot be reached.
    """
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    else:
        paths = list(paths)
    if not paths:
        raise EdgeListError("no edge list was given; name at least one file, folder or pattern")
    if "" in map(os.fspath, paths):
        raise EdgeListError(
            "paths holds an empty text, which names no file; the current folder is '.'"
        )
    return _typed_partitions([file for path in paths for file in _expand(os.fspath(path), endings)])


def _typed_partitions(files: list[DataFile]) -> list[DataFile]:
    """Give each partition column the one type that the values of all files have: integers, floats,
    else strings.
    """
    values: dict[str, list[str | None]] = {}
    for file in files:
        for name, text in file.partitions:
            values.setdefault(name, []).append(text)
    types = {
        name: _detect_type([text for text in texts if text is not None])
        for name, texts in values.items()
    }
    typed = [
        tuple((name, None if text is None else types[name](text)) for name, text in file.partitions)
        for file in files
    ]
    return [
        replace(file, partitions=partitions) for file, partitions in zip(files, typed, strict=True)
    ]


def _detect_type(texts: list[str]) -> type:
    """Return int, float or str: the first that keeps all values. 007 and -0 are strings."""
    if all(
        re.fullmatch("0|-?[1-9][0-9]{0,18}", text) and -(2**63) <= int(text) < 2**63
        for text in texts
    ):
        return int
    # As long as the float is written the same way, it is the number that was meant.
    if all(re.fullmatch(r"-?[0-9]+\.[0-9]+", text) for text in texts):
        return float
    return str


def _parse_partitions(path: str) -> tuple[tuple[str, str | None], ...]:
    """The ``key=value`` folders right above a file."""
    partitions = []
    for folder in reversed(path.split("/")[:-1]):
        key, sign, value = folder.partition("=")
        if not (key and sign):
            break
        partitions.append((unquote(key), None if value in ("", _NO_VALUE) else unquote(value)))
    return tuple(reversed(partitions))


def _expand(path: str, endings: set[str]) -> list[DataFile]:
    import fsspec.core

    try:
        if URL.match(path):
            _refuse_table_above(path)
            objects = stored_objects(path, endings)
            here = fsspec.filesystem("file")
            copies = zip(objects, local_copies(objects), strict=True)
            return [
                DataFile(here, str(copy), each.url, _parse_partitions(each.url))
                for each, copy in copies
            ]
        filesystem, root = fsspec.core.url_to_fs(path)
        finder = _finder(filesystem)
        if filesystem.isfile(root):  # before globs: a name may hold [ or *
            return [_named_file(filesystem, root, finder)]
        if filesystem.isdir(root):
            return _inside(filesystem, root, path, endings, finder)
        if filesystem.exists(root):
            return [_regular(_data_file(filesystem, root))]
        if not any(sign in path for sign in _PATTERN_SIGNS):
            raise EdgeListError(f"{path}: no such file or folder")
        files = []
        for match in sorted(filesystem.glob(root)):
            if _is_hidden(match) and not _is_hidden(root):
                continue
            if filesystem.isdir(match):
                files += _inside(filesystem, match, match, endings, finder)
            else:
                files.append(_regular(_named_file(filesystem, match, finder)))
    except (OSError, ImportError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        if URL.match(path):
            problem = getattr(error, "strerror", None)
        else:
            problem = None
        raise EdgeListError(f"{path}: cannot be opened ({problem or error})") from error
    if not files:
        raise EdgeListError(f"{path}: no file matches this pattern")
    return files


def stored_objects(url: str, endings: set[str] | None = None) -> list[StoredObject]:
    """Return the objects that the URL of an object, a folder or a glob (``*``, ``[``) names, as
    ``find_files`` takes them.

    From a folder those with one of the ``endings`` are taken, all by default. EdgeListError if
    nothing is there; OSError if the store cannot be read.
    """
    from fsspec.utils import glob_translate

    whole = find_object(url)
    if whole is not None:
        return [whole]
    begin = re.split(r"[*\[]", url)[0]
    is_pattern = begin != url
    fits = re.compile(glob_translate(url) if is_pattern else re.escape(url.rstrip("/"))).fullmatch
    objects = []
    below_url = objects_below(begin.rpartition("/")[0] if is_pattern else url)
    for each in below_url:
        ends = [at for at, sign in enumerate(each.url) if sign == "/" and at > len(begin) - 2]
        root = next((each.url[:end] for end in ends if fits(each.url[:end])), None)
        if root is None and not fits(each.url):
            continue
        if root is not None:
            below = each.url[len(root) + 1 :].split("/")
        else:
            below = [each.url]
        named = root is None or endings is None or DataFile.named(each.url).ending in endings
        if named and not any(map(_is_hidden, below)):
            objects.append(each)
    _refuse_listed_tables([each.url for each in below_url], [each.url for each in objects])
    if not objects:
        raise EdgeListError(
            f"{url}: "
            + ("no object matches this pattern" if is_pattern else "no such object or folder")
        )
    return objects


def _refuse_listed_tables(urls: list[str], chosen: list[str]) -> None:
    """Refuse tables whose logs are among the objects of a listing and whose files are chosen;
    InputError.
    """
    for folder, form in tables_in_listing(urls):
        if any(url.startswith(f"{folder}/") and may_be_data(url) for url in chosen):
            raise unread_error(folder, form, " from an object store")


def _refuse_table_above(url: str) -> None:
    """Refuse a table in an object store, and what is inside one; InputError."""
    fixed = re.split(r"[*\[]", url)[0]
    if fixed != url:
        path = f"{fixed.rpartition('/')[0]}/"
    else:
        path = f"{url.rstrip('/')}/"
    if may_be_data(url):
        found = LogFinder(StoredFolder).log_above(path)
    else:
        found = None
    if found is None:
        return
    root, form = found
    raise (
        unread_error(root, form, " from an object store")
        if path == f"{root}/"
        else inside_error(url, root, form)
    )


def _finder(filesystem: Any) -> LogFinder:
    protocol = filesystem.protocol
    if "file" in ((protocol,) if isinstance(protocol, str) else protocol):
        return LogFinder(LocalFolder)
    return LogFinder(functools.partial(OtherFolder, filesystem))


def _named_file(filesystem: Any, path: str, finder: LogFinder) -> DataFile:
    """A file that was named itself: metadata name a table of Iceberg, and a file inside a table is
    refused.
    """
    file = _data_file(filesystem, path)
    if path.endswith(METADATA) and file.is_local:
        return replace(file, table="iceberg")
    finder.refuse_inside(path, str(file))
    return file


def _inside(
    filesystem: Any, root: str, path: str, endings: set[str], finder: LogFinder
) -> list[DataFile]:
    """Data files of a folder and its partitions; or the folder itself if it is a table with a log."""
    root = root.rstrip("/")
    found = finder.log_above(f"{root}/")
    if found is not None:
        table, form = found
        if table != root:
            raise inside_error(path, table, form)
        if form.name not in ("delta", "iceberg"):
            raise unread_error(path, form)
        folder = _data_file(filesystem, root)
        if not folder.is_local:
            raise unread_error(path, form, " from this file system")
        return [replace(folder, table=form.name, partitions=())]
    files = []
    for name in sorted(filesystem.find(root)):
        below = name[len(root.rstrip("/")) :].strip("/").split("/")
        file = _data_file(filesystem, name)
        if file.ending in endings and not any(map(_is_hidden, below)):
            finder.refuse_inside(name, str(file))
            files.append(_regular(file))
    if not files:
        raise EdgeListError(
            f"{path}: the folder holds no data files; looked for {', '.join(sorted(endings))}"
        )
    return files


def _regular(file: DataFile) -> DataFile:
    """Return a file, unless a reader would wait at it or never end."""
    if file.is_local and os.path.exists(file.path):
        what = irregular(file.path, follow=True)
    else:
        what = ""
    if what:
        raise EdgeListError(
            f"{file}: it is {what} and not a regular file; save the edge list to a file"
        )
    return file


def _is_hidden(path: str) -> bool:
    """Whether a name marks what writers leave beside the data, such as ``_SUCCESS`` and unfinished
    files.
    """
    return path.rstrip("/").rpartition("/")[2].startswith(("_", "."))


def _data_file(filesystem: Any, path: str) -> DataFile:
    file = DataFile(filesystem, path, path, _parse_partitions(path))
    if file.is_local:
        return file
    return replace(file, name=filesystem.unstrip_protocol(path))


def shown(name: str) -> str:
    """A column's name for a message, in quotes and not longer than a line."""
    text = repr(name)
    return text if len(text) <= 60 else f"{text[:60]}..."


WEIGHTS = ("weight", "reverse_weight")  # roles of columns


@dataclass(frozen=True)
class Where:
    """One column of one file, to name in errors."""

    file: DataFile
    role: str
    name: str
    # int64 numbers in the file of the rows that the column has, where a filter left out others; None: all
    rows: np.ndarray | None = None
    first: int = 0  # number in the file of the first row, where a part of the file is read

    def error(self, problem: str, row: int | None = None) -> EdgeListError:
        """An error about this column; ``row`` counts from 0 in this file, header and comments
        aside.
        """
        if row is not None and self.rows is not None:
            row = int(self.rows[row])
        if row is not None:
            row += self.first
        at = "" if row is None else f", row {row}"
        return EdgeListError(
            f"{self.file}{at}: {self.role} column {shown(self.name)} {problem}", row, self.role
        )
