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
_MAX_RATIO = 200  # the largest ratio of unpacked bytes to bytes of the file
_UNPACKED_FREELY = 1 << 24  # bytes that any file may unpack to
_PATTERN_SIGNS = "*?["  # signs that make a path a glob
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # what Hive writes for null in the name of a folder


@dataclass(frozen=True)
class DataFile:
    """One file on one file system; as text it is the name that errors show."""

    filesystem: Any  # of fsspec; None for a file that is known by name only
    path: str  # on that file system
    name: str  # what errors call it: the path or the URL
    # Columns that the folders right above the file hold, ``key=value`` each, as Hive partitions a
    # table: names and values. A value is None where the folder states none.
    partitions: tuple[tuple[str, Any], ...] = ()
    # of a folder that is a table with a log: its name in ``LOG_FORMATS``; ``""`` for a plain file
    table: str = ""

    @classmethod
    def named(cls, name: str) -> DataFile:
        """Return a file known by name only, to show in errors."""
        return cls(None, name, name)

    def __str__(self) -> str:
        return self.name

    @property
    def partition_names(self) -> list[str]:
        """Names of the columns that the folders hold."""
        return [name for name, _ in self.partitions]

    def partition_column(self, name: str, rows: int) -> pyarrow.ChunkedArray:
        """Return the column of a partition, whose value is the same in all ``rows`` rows of the
        file; of type null if the folder states no value.
        """
        value = dict(self.partitions)[name]
        if value is None:
            return pyarrow.chunked_array([pyarrow.nulls(rows)])
        return pyarrow.chunked_array([pyarrow.repeat(value, rows)])

    @property
    def is_local(self) -> bool:
        """Whether the file is on this host, where libraries can open its path."""
        return is_local(self.filesystem)

    @property
    def is_plain_path(self) -> bool:
        """Whether the path means this file to any library: local, and not to be taken for a
        pattern.
        """
        return self.is_local and not any(sign in self.path for sign in _PATTERN_SIGNS)

    @property
    def compression(self) -> str | None:
        """pyarrow's name for the codec, by the ending; None for a file that is not compressed."""
        return COMPRESSIONS.get(os.path.splitext(self.path)[1].lower())

    @property
    def ending(self) -> str:
        """Ending in lower case, without the ending of the compression: ".csv" of "a.CSV.gz"; ``""``
        if there is none.
        """
        if self.compression:
            path = os.path.splitext(self.path)[0]
        else:
            path = self.path
        return os.path.splitext(path)[1].lower()

    def open_stream(self) -> pyarrow.NativeFile:
        """Open for reading from start to end, as a pyarrow input stream of the decompressed bytes.
        Reading raises EdgeListError if these are far more than any edge list has.
        """
        source = self._open_bytes()
        if not self.compression:
            return source
        stream = pyarrow.CompressedInputStream(source, self.compression)
        return pyarrow.PythonFile(_Unpacked(stream, self), mode="r")

    def open_random(self, memory_map: bool = False) -> pyarrow.NativeFile:
        """Open for reading at any position; a compressed file is decompressed into memory.

        ``memory_map``: map a local file that is not compressed, so that buffers of it take no
        memory of their own.
        """
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
        """Open the file for reading at any position, without decompressing it."""
        if self.is_local:
            return pyarrow.OSFile(self.path)
        return pyarrow.PythonFile(self.filesystem.open(self.path, "rb"), mode="r")


class _Unpacked(io.RawIOBase):
    """The bytes of a compressed file, up to a multiple of its size that no edge list reaches.

    ``stream`` yields the decompressed bytes of ``file``. EdgeListError if more come.
    """

    def __init__(self, stream: pyarrow.NativeFile, file: DataFile):
        self._stream = stream
        self._file = file
        # Bytes that may still come: at first ``_UNPACKED_FREELY``, or more for a larger file.
        self._left = max(_UNPACKED_FREELY, _MAX_RATIO * file.filesystem.size(file.path))

    def readable(self) -> bool:
        """Return True: ``io.RawIOBase`` asks before it reads."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Write decompressed bytes to the beginning of ``buffer``, a writable buffer of bytes, and
        return how many; 0 at the end. EdgeListError once more came than may.
        """
        n_bytes = self._stream.readinto(buffer)
        self._left -= n_bytes
        if self._left < 0:
            raise EdgeListError(
                f"{self._file}: it unpacks to more than {_MAX_RATIO:,} times its size, as no edge list does; unpack it "
                "first if this one does"
            )
        return n_bytes

    def close(self) -> None:
        """Close the stream of the file, too."""
        self._stream.close()
        super().close()


@contextmanager
def reading(file: DataFile, kind: str, allow_empty: bool = False) -> Iterator[None]:
    """Turn whatever the libraries that read a file in the block raise into an EdgeListError that
    names it.

    ``kind`` is what the message calls the format. A file of 0 bytes is refused before the block,
    unless ``allow_empty``.
    """
    try:
        if not allow_empty and file.filesystem.size(file.path) == 0:
            raise EdgeListError(f"{file}: the file is empty (0 bytes)")
        yield
    # Errors of this package say what is wrong, and one of memory says nothing of the file.
    except (InputError, MemoryError):
        raise
    except FileNotFoundError:
        raise EdgeListError(f"{file}: the file has gone") from None
    except PermissionError:
        raise EdgeListError(f"{file}: it may not be read (permission denied)") from None
    except (pyarrow.ArrowException, OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        text = " ".join(str(error).split())  # on one line
        if isinstance(error, UnicodeDecodeError) or "invalid UTF8" in text:
            raise EdgeListError(
                f"{file}: this is no UTF-8 text; save it as UTF-8 ({text[:200]})"
            ) from error
        text = text if len(text) <= 200 else text[:200] + "..."
        raise EdgeListError(
            f"{file}: cannot be read as {kind}, it may be cut short or damaged ({text})"
        ) from error


def find_files(paths: Any, endings: set[str]) -> list[DataFile]:
    """Return the files of paths, folders, globs and URLs, in the order given and by name within a
    folder or glob.

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
    """Return files in which the value of each partition column, a text so far, has the one type
    that fits the values of all files: int, float, else str.
    """
    # The texts of each column, of all files.
    values: dict[str, list[str | None]] = {}
    for file in files:
        for name, text in file.partitions:
            values.setdefault(name, []).append(text)
    types = {
        name: _detect_type([text for text in texts if text is not None])
        for name, texts in values.items()
    }

    def convert(name: str, text: str | None) -> Any:
        """Return the value of a column in its type; None, where a folder states none, stays."""
        if text is None:
            return None
        return types[name](text)

    return [
        replace(
            file, partitions=tuple((name, convert(name, text)) for name, text in file.partitions)
        )
        for file in files
    ]


def _detect_type(texts: list[str]) -> type:
    """Return int, float or str: the first type that keeps all of some values of a column as they
    are written. 007 and -0 are strings, as integers would be written in another way.
    """
    if all(
        re.fullmatch("0|-?[1-9][0-9]{0,18}", text) and -(2**63) <= int(text) < 2**63
        for text in texts
    ):
        return int
    # Digits around a point alone: what has an exponent, or is a word such as nan, is a string.
    if all(re.fullmatch(r"-?[0-9]+\.[0-9]+", text) for text in texts):
        return float
    return str


def _parse_partitions(path: str) -> tuple[tuple[str, str | None], ...]:
    """Return keys and values of the ``key=value`` folders right above a file, from the outermost.
    A value is None where the folder states none.
    """
    partitions: list[tuple[str, str | None]] = []
    # From the innermost folder outward, up to the first that is no partition.
    for folder in reversed(path.split("/")[:-1]):
        key, sign, value = folder.partition("=")
        if not (key and sign):
            break
        if value in ("", _NO_VALUE):
            partitions.append((unquote(key), None))
        else:
            partitions.append((unquote(key), unquote(value)))
    return tuple(reversed(partitions))


def _expand(path: str, endings: set[str]) -> list[DataFile]:
    """Return the files of one path, folder, glob or URL; the values of partitions are texts.

    EdgeListError if nothing is there, or the file system cannot be reached; InputError for a table
    with a log, such as one of Delta Lake, that cannot be read there.
    """
    import fsspec.core

    try:
        # Objects of a store: local copies are read, and errors name the URLs.
        if URL.match(path):
            _refuse_table_above(path)
            objects = stored_objects(path, endings)
            host = fsspec.filesystem("file")
            copies = zip(objects, local_copies(objects), strict=True)
            return [
                DataFile(host, str(copy), stored.url, _parse_partitions(stored.url))
                for stored, copy in copies
            ]

        # A file, a folder, or what exists and is neither, such as a FIFO, which is refused on this
        # host.
        filesystem, root = fsspec.core.url_to_fs(path)
        # finds tables such as those of Delta Lake, whose log says which of their files are live
        finder = _make_log_finder(filesystem)
        if filesystem.isfile(root):  # before globs: a name may hold [ or *
            return [_named_file(filesystem, root, finder)]
        if filesystem.isdir(root):
            return _files_in_folder(filesystem, root, path, endings, finder)
        if filesystem.exists(root):
            return [_require_regular(_data_file(filesystem, root))]

        # A glob.
        if not any(sign in path for sign in _PATTERN_SIGNS):
            raise EdgeListError(f"{path}: no such file or folder")
        files = []
        for match in sorted(filesystem.glob(root)):
            # Hidden names are taken only if the pattern itself begins like one.
            if _is_hidden(match) and not _is_hidden(root):
                continue
            if filesystem.isdir(match):
                files += _files_in_folder(filesystem, match, match, endings, finder)
            else:
                files.append(_require_regular(_named_file(filesystem, match, finder)))
    except (OSError, ImportError, ValueError) as error:
        if isinstance(error, InputError):  # a ValueError, too, that says what is wrong
            raise
        problem = str(error)
        if URL.match(path):
            problem = getattr(error, "strerror", None) or problem
        raise EdgeListError(f"{path}: cannot be opened ({problem})") from error
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

    named_object = find_object(url)
    if named_object is not None:
        return [named_object]

    # All objects below the part of the URL that has no sign of a pattern: the folder above the
    # first sign, or the URL itself.
    begin = re.split(r"[*\[]", url)[0]
    is_pattern = begin != url
    if is_pattern:
        pattern = re.compile(glob_translate(url))
        listing = objects_below(begin.rpartition("/")[0])
    else:
        pattern = re.compile(re.escape(url.rstrip("/")))
        listing = objects_below(url)

    # The URL names the object, or a folder above it: the outermost one that fits. Folders end at
    # the slashes behind ``begin``, or at the last character of ``begin`` if that is a slash.
    objects = []
    for stored in listing:
        slashes = [
            place for place, sign in enumerate(stored.url) if sign == "/" and place > len(begin) - 2
        ]
        folders = (stored.url[:end] for end in slashes)
        folder = next((path for path in folders if pattern.fullmatch(path)), None)
        if folder is None:
            is_chosen = pattern.fullmatch(stored.url) is not None
            names = [stored.url]  # of which only the last part may be hidden
        else:
            is_chosen = endings is None or DataFile.named(stored.url).ending in endings
            names = stored.url[len(folder) + 1 :].split("/")
        if is_chosen and not any(map(_is_hidden, names)):
            objects.append(stored)
    # InputError for files of a table with a log, such as Delta Lake: it says which are live.
    _refuse_listed_tables([stored.url for stored in listing], [stored.url for stored in objects])
    if not objects:
        raise EdgeListError(
            f"{url}: "
            + ("no object matches this pattern" if is_pattern else "no such object or folder")
        )
    return objects


def _refuse_listed_tables(urls: list[str], chosen: list[str]) -> None:
    """Raise InputError if some chosen objects may be files of a table with a log, which says which
    of its files are live.

    ``urls`` are all objects of a listing, by which such tables are known, and ``chosen`` those that
    would be read.
    """
    for folder, form in tables_in_listing(urls):
        if any(url.startswith(f"{folder}/") and may_be_data(url) for url in chosen):
            raise unread_error(folder, form, " from an object store")


def _refuse_table_above(url: str) -> None:
    """Raise InputError if a URL names a table with a log in an object store, such as one of Delta
    Lake, or something inside one. Such tables are not read from stores.
    """
    if not may_be_data(url):
        return
    begin = re.split(r"[*\[]", url)[0]  # before the first sign of a pattern
    if begin != url:
        path = f"{begin.rpartition('/')[0]}/"
    else:
        path = f"{url.rstrip('/')}/"
    # the innermost table with a log that the path is or is inside of: its root and format
    table = LogFinder(StoredFolder).log_above(path)
    if table is None:
        return
    root, form = table
    if path == f"{root}/":  # the table itself, or all of its files by a pattern
        raise unread_error(root, form, " from an object store")
    raise inside_error(url, root, form)


def is_local(filesystem: Any) -> bool:
    """Return whether a file system of fsspec is that of this host. Its protocol is a text, or a
    tuple of several names.
    """
    protocol = filesystem.protocol
    return "file" in ((protocol,) if isinstance(protocol, str) else protocol)


def _make_log_finder(filesystem: Any) -> LogFinder:
    """Return an object that finds the tables with a log, such as those of Delta Lake, on a file
    system.
    """
    if is_local(filesystem):
        return LogFinder(LocalFolder)
    return LogFinder(functools.partial(OtherFolder, filesystem))


def _named_file(filesystem: Any, path: str, finder: LogFinder) -> DataFile:
    """Return the file at a path that the user, or a glob, has named, and not a folder above it.

    InputError if it is inside a table with a log. A local file of metadata of Iceberg stands for
    its table.
    """
    file = _data_file(filesystem, path)
    if path.endswith(METADATA) and file.is_local:  # METADATA is ".metadata.json"
        return replace(file, table="iceberg")
    finder.refuse_inside(path, str(file))
    return file


def _files_in_folder(
    filesystem: Any, root: str, path: str, endings: set[str], finder: LogFinder
) -> list[DataFile]:
    """Return the data files of a folder and of all folders below, by name; or the folder itself if
    it is a table with a log that is read.

    ``root`` is the folder on its file system, and ``path`` what the user called it. Files have one
    of the ``endings``, hidden ones aside. InputError for other tables with a log; EdgeListError if
    there is no file.
    """
    root = root.rstrip("/")
    # the innermost table with a log that this folder is or is inside of: its root and format
    table = finder.log_above(f"{root}/")
    if table is not None:
        table_root, form = table
        if table_root != root:
            raise inside_error(path, table_root, form)
        if form.name not in ("delta", "iceberg"):  # those for which there is a reader
            raise unread_error(path, form)
        folder = _data_file(filesystem, root)
        if not folder.is_local:
            raise unread_error(path, form, " from this file system")
        # The table itself has all its columns, so ``key=value`` folders above it add none.
        return [replace(folder, table=form.name, partitions=())]

    files = []
    for name in sorted(filesystem.find(root)):
        names_below = name[len(root) :].strip("/").split("/")  # of the folders, and of the file
        file = _data_file(filesystem, name)
        if file.ending in endings and not any(map(_is_hidden, names_below)):
            finder.refuse_inside(name, str(file))
            files.append(_require_regular(file))
    if not files:
        raise EdgeListError(
            f"{path}: the folder holds no data files; looked for {', '.join(sorted(endings))}"
        )
    return files


def _require_regular(file: DataFile) -> DataFile:
    """Return a file as it is; EdgeListError if it is a FIFO, a device or another thing at which a
    reader would wait or never end.
    """
    if file.is_local and os.path.exists(file.path):
        what = irregular(file.path, follow=True)
        if what:
            raise EdgeListError(
                f"{file}: it is {what} and not a regular file; save the edge list to a file"
            )
    return file


def _is_hidden(path: str) -> bool:
    """Return whether the last name of a path marks what writers leave beside the data, such as
    ``_SUCCESS`` and unfinished files.
    """
    return path.rstrip("/").rpartition("/")[2].startswith(("_", "."))


def _data_file(filesystem: Any, path: str) -> DataFile:
    """Return the file at a path of a file system, with the values of the ``key=value`` folders in
    that path, as texts. Errors call it by its path, or by its URL if it is not local.
    """
    file = DataFile(filesystem, path, path, _parse_partitions(path))
    if file.is_local:
        return file
    return replace(file, name=filesystem.unstrip_protocol(path))


def shown(name: str) -> str:
    """Return the name of a column for a message, in quotes and cut after 60 characters."""
    text = repr(name)
    if len(text) <= 60:
        return text
    return f"{text[:60]}..."


WEIGHTS = ("weight", "reverse_weight")  # roles of the columns that hold weights


@dataclass(frozen=True)
class Where:
    """One column of one file, to name in errors."""

    file: DataFile
    role: str  # what the column is for: "src", "dst", one of ``WEIGHTS``, "oneway" or "where"
    name: str  # what the file calls it
    # int64 numbers in the file of the rows that are left by a filter, by which ``error`` is given a
    # row; None: all rows
    rows: np.ndarray | None = None
    first: int = 0  # number in the file of the first row, where a part of the file is read

    def error(self, problem: str, row: int | None = None) -> EdgeListError:
        """Return an error about this column, which says ``problem`` of it.

        ``row`` is a position in the column, from 0, or None. The error names the row in the file,
        header and comments aside, and has it as its ``row``.
        """
        if row is not None and self.rows is not None:
            row = int(self.rows[row])
        if row is not None:
            row += self.first
        place = "" if row is None else f", row {row}"
        return EdgeListError(
            f"{self.file}{place}: {self.role} column {shown(self.name)} {problem}", row, self.role
        )
