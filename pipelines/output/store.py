"""Where the files of a run are: on a disk, or in an object store. Each is whole or not there."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import os
import shutil
import tempfile
import time
import uuid
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from kepler_traverse._uninterrupted import map_on_threads
from kepler_traverse.errors import OutputError
from kepler_traverse.formats.parquet_footer import read_footer
from kepler_traverse.runtime import object_stores
from kepler_traverse.runtime.object_stores import (
    AT_ONCE,
    TRAFFIC,
    URL,
    Traffic,
    fetch,
    listed,
    send,
)
from kepler_traverse.runtime.regular_files import open_regular, read_regular, replacing
from kepler_traverse.runtime.scratch import delete_folder, make_folder

from .layout import PARTITION_NAME
from .manifest_types import Stored

_FOOTER_GUESS = 2**16  # bytes at the end of a part that are read at first, which hold most footers
_MAX_AT_ONCE = 5 * 10**9  # bytes of one request


class Store:
    """A place for the files of a run: this one is a folder on a disk, a subclass an object store.

    ``str`` of it is the path or URL, for messages. Names of files are relative to it. Its methods
    raise OSError, except ``delete`` of a folder on a disk.
    """

    is_local = True  # whether the files are in the folder ``path``

    def __init__(self, path: Path):
        self.path = path  # folder of this machine in which the files are, or are prepared

    def __str__(self) -> str:
        """Return the path, as messages name the place."""
        return str(self.path)

    def names(self, folder: str = "", after: str = "") -> list[str]:
        """Return the names of files and folders in a folder, in no order; none if it does not
        exist.

        ``folder``: "" for the top. ``after``: only names that are greater than this text, all if
        it is "".
        """
        try:
            return [name for name in os.listdir(self.path / folder) if name > after]
        except FileNotFoundError:
            return []

    def has(self, name: str) -> bool:
        """Return whether there is a file of this name."""
        return os.path.lexists(self.path / name)

    def get(self, name: str, max_bytes: int) -> bytes:
        """Return the content of a file; raises OSError if it is larger than ``max_bytes``, too."""
        return read_regular(self.path / name, max_bytes)

    def parquet_footer(self, name: str) -> bytes:
        """Return the footer of a Parquet file, encoded.

        Raises pyarrow.ArrowInvalid, too: it is no Parquet file.
        """
        with open_regular(self.path / name) as file:
            return read_footer(file)

    def put_new(self, name: str, data: bytes) -> bool:
        """Create a file with the content ``data``, and return True; return False, and change
        nothing, if there is another file of that name.
        """
        # The content is written to another file, to which the name is linked at once. A link fails
        # if the name is taken, where a rename would replace the other file.
        path = self.path / name
        _make_folder(path.parent)
        partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
        try:
            with open(partial, "xb") as file:
                file.write(data)
                _sync(file)
            os.link(partial, path, follow_symlinks=False)
        except FileExistsError:
            # If the answer of a file server was lost, it was asked twice, and the first request has
            # made the link: then the file has two names.
            return os.stat(partial).st_nlink > 1
        finally:
            partial.unlink(missing_ok=True)
        sync_folder(path.parent)
        return True

    @contextlib.contextmanager
    def new_file(self, name: str) -> Iterator[BinaryIO]:
        """Yield a file that gets the name when the block ends without an error, in place of another
        one of that name.
        """
        path = self.path / name
        with replacing(path) as partial, open(partial, "xb") as file:
            yield file
            _sync(file)
        sync_folder(path.parent)

    def versions(self) -> dict[str, str]:
        """Return the names of files and folders at the top, and of files in partitions, each with
        its version.

        A version is a text that changes when the file does; a disk has none, and gives ``""``.
        """
        names = self.names()
        for folder in list(filter(PARTITION_NAME.fullmatch, names)):
            if (self.path / folder).is_dir():
                names += [f"{folder}/{name}" for name in self.names(folder)]
        return dict.fromkeys(names, "")

    def move_in(self, partial: Path, name: str) -> Stored | None:
        """Give the file ``partial``, in the folder ``path``, the name ``name``, in place of another
        one of that name.

        Its bytes need not be on the disk yet. An object store copies the file, and returns how that
        went; this store renames it, and returns None.
        """
        with open(partial, "rb") as file:
            _sync(file)
        target = self.path / name
        _make_folder(target.parent)
        os.replace(partial, target)
        sync_folder(target.parent)
        return None

    @contextlib.contextmanager
    def local(self, names: Sequence[str]) -> Iterator[Path]:  # noqa: ARG002
        """Yield a folder on this machine that has the files ``names``, as far as they exist; it may
        have others.

        Here it is the folder of the store, which has all files, so that ``names`` is ignored.
        """
        yield self.path

    def delete(self, folder: str) -> None:
        """Delete a folder, if it exists.

        No failure is raised: what callers delete, such as commits whose content the manifest has,
        is not needed any more, and does no harm if it stays.
        """
        shutil.rmtree(self.path / folder, ignore_errors=True)

    def close(self) -> None:
        """Delete what was prepared on this machine."""


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
        """Write as many bytes as the system takes at once, and return their number.

        Only these are in the digest: the caller (a buffer) writes the others again.
        """
        n_written = super().write(data)
        self.digest.update(memoryview(data)[:n_written])
        return n_written


def _sync(file: BinaryIO) -> None:
    """Have the bytes of a file written to the disk, so that they survive a power failure."""
    file.flush()
    os.fsync(file.fileno())


class ObjectStore(Store):
    """Objects below a URL of S3, Google Cloud Storage or Azure.

    No file of a run holds credentials. Each object is put in one request, so none is ever half
    there, and no upload in pieces remains of a process that was killed.

    ``scratch``: folder in which files are prepared; a new one by default.
    """

    is_local = False

    def __init__(self, url: str, scratch: Path | None = None):
        self._url = url.rstrip("/")
        try:
            self._store: Any = object_stores.open_store(self._url)
        except OSError as error:
            raise OutputError(f"{url}: the store cannot be used: {error.strerror}") from None
        import obstore

        self._api = obstore
        super().__init__(scratch or _make_scratch())
        # The folder is deleted when this object is, or when the process ends, and not after an
        # error: a thread may still write there.
        self._delete_scratch: Callable[[], object] = lambda: None
        if scratch is None:
            self._delete_scratch = weakref.finalize(self, delete_folder, self.path)

    def __str__(self) -> str:
        """Return the URL, as messages name the place."""
        return self._url

    def names(self, folder: str = "", after: str = "") -> list[str]:
        """Return the names of objects and folders in a folder, each once, that are greater than
        ``after``; none if the folder does not exist.

        ``folder``: "" for the top. ``after``: "" for all names.
        """
        # Folders exist only in the names of objects. An object in a folder within the folder counts
        # for the name of that one, once.
        prefix = f"{self._url}/{folder}".rstrip("/") + "/"
        objects = listed(self._store, self._url, folder, after)
        names = (item.url[len(prefix) :].partition("/")[0] for item in objects)
        return list(dict.fromkeys(names))

    def has(self, name: str) -> bool:
        """Ask the store whether there is an object of this name; return the answer."""
        try:
            return bool(send("head", lambda: self._api.head(self._store, name)))
        except FileNotFoundError:
            return False

    def get(self, name: str, max_bytes: int) -> bytes:
        """Return the content of an object; raises OSError if it is larger than ``max_bytes``, or
        comes cut short.
        """

        def read() -> bytes:
            """Send one request, and return the content. ``send`` calls this again after an error
            that may pass, and counts the requests. The bytes received are counted here, since
            their number is known only now.
            """
            answer = self._api.get(self._store, name)
            size = answer.meta["size"]
            if size > max_bytes:
                raise OSError(
                    errno.EFBIG,
                    f"it has {size:,} bytes, and {max_bytes:,} are the most that is read",
                )
            data = bytes(answer.bytes())
            TRAFFIC.add("get", 0, received=len(data))
            if len(data) != size:
                raise OSError(errno.EIO, "the answer was cut short")
            return data

        return send("get", read)

    def parquet_footer(self, name: str) -> bytes:
        """Return the footer of a Parquet file, encoded; read the end of the object, and read once
        more if the footer is longer than usual.
        """
        size = send("head", lambda: self._api.head(self._store, name))["size"]
        n_bytes = _FOOTER_GUESS
        while True:
            tail = self._tail(name, size, n_bytes)
            # A file ends with the footer, its size in 4 bytes, and the magic number.
            n_bytes = int.from_bytes(tail[-8:-4], "little") + 8
            if n_bytes <= len(tail) or len(tail) == size:
                return read_footer(io.BytesIO(tail))

    def _tail(self, name: str, size: int, n_bytes: int) -> bytes:
        """Return the last ``n_bytes`` of an object of ``size`` bytes, or all of it."""
        start = max(0, size - n_bytes)
        return bytes(
            send(
                "get",
                lambda: self._api.get_range(self._store, name, start=start, end=size),
                received=size - start,
            )
        )

    def put_new(self, name: str, data: bytes) -> bool:
        """Create an object with the content ``data``, and return True; return False, and change
        nothing, if the name is taken.
        """
        while True:
            traffic = Traffic()  # counts the requests of this round alone
            try:
                self.put(name, data, traffic, mode="create")
                return True
            except FileExistsError:
                # If an answer was lost, the request was sent again, and the first one may have
                # created the object: then it has this content. If there is no object after all, the
                # writer that was first has failed: try again.
                with contextlib.suppress(FileNotFoundError):
                    return traffic.requests["put"] > 1 and self.get(name, 2**62) == data
            finally:
                TRAFFIC.add("put", traffic.requests["put"], traffic.sent)

    @contextlib.contextmanager
    def new_file(self, name: str) -> Iterator[BinaryIO]:
        """Yield a file on this machine. When the block ends without an error, it is put into the
        store, in place of another object of that name.
        """
        with tempfile.NamedTemporaryFile(dir=self.path) as file:
            yield file  # type: ignore[misc]
            file.flush()
            self.put(name, Path(file.name))

    def versions(self) -> dict[str, str]:
        """Return the versions of the objects at the top and in partitions, by their names: the tag
        of each, or the time of its last change if the store gives no tag.
        """
        versions = {}
        for item in listed(self._store, self._url):
            name = item.url[len(self._url) + 1 :]
            top, slash, _ = name.partition("/")
            if not slash or PARTITION_NAME.fullmatch(top):
                versions[name] = item.e_tag
        return versions

    def move_in(self, partial: Path, name: str) -> Stored:
        """Put the file ``partial`` into the store as ``name``, in place of another object of that
        name; return the number of requests, the seconds and the version (its tag, or "").
        """
        traffic = Traffic()
        started = time.monotonic()
        version = self.put(name, partial, traffic)
        return {
            "requests": traffic.requests["put"],
            "seconds": round(time.monotonic() - started, 6),
            "version": version,
        }

    def put(self, name: str, data: bytes | Path, traffic: Traffic = TRAFFIC, **options: Any) -> str:
        """Put an object, in one request unless it is larger than stores take at once; return its
        version (its tag), or ``""`` without one.

        ``data``: its content, or the file that has it. ``traffic``: counts the requests and bytes.
        ``options``: further arguments of ``obstore.put``.
        """
        if isinstance(data, Path):
            size = data.stat().st_size
        else:
            size = len(data)
        options |= {"use_multipart": size > _MAX_AT_ONCE}
        result = send(
            "put", lambda: self._api.put(self._store, name, data, **options), traffic, sent=size
        )
        return result["e_tag"] or ""

    @contextlib.contextmanager
    def local(self, names: Sequence[str]) -> Iterator[Path]:
        """Yield a temporary folder with copies of the objects ``names``, as far as they exist,
        which several threads fetch. Raises OutputError if one cannot be read.
        """

        def copy(name: str) -> None:
            """Fetch one object, if it exists."""
            _make_folder((Path(folder) / name).parent)
            with contextlib.suppress(FileNotFoundError):
                fetch(self._store, name, Path(folder) / name)

        with tempfile.TemporaryDirectory(dir=self.path) as folder:
            try:
                map_on_threads(copy, names, AT_ONCE)
            except OSError as error:
                raise OutputError(
                    f"{self}: objects cannot be read: {error.strerror}; try again"
                ) from None
            yield Path(folder)

    def delete(self, folder: str) -> None:
        """Delete the objects below a folder; raises OSError."""
        objects = listed(self._store, self._url, folder)
        names = [item.url[len(self._url) + 1 :] for item in objects]
        if names:
            send("delete", lambda: self._api.delete(self._store, names))

    def close(self) -> None:
        """Delete the folder in which files were prepared, if the store has made it."""
        self._delete_scratch()


def _make_scratch() -> Path:
    """Make a temporary folder for files that are prepared for a store; raises OutputError."""
    try:
        return Path(make_folder())
    except OSError as error:
        place = os.environ.get("TMPDIR") or "/tmp"
        raise OutputError(
            f"{place}: a folder for temporary files cannot be made "
            f"there: {error.strerror}; see TMPDIR"
        ) from None


def _make_folder(path: Path) -> None:
    """Make a folder that may be there. ``mkdir(exist_ok=True)`` fails where another process deletes
    the folder meanwhile; what is then written into it raises FileNotFoundError.
    """
    with contextlib.suppress(FileExistsError):
        path.mkdir()


def open_store(place: str | os.PathLike[str], scratch: Path | None = None) -> Store:
    """Return the store that a path or a URL (``place``) names.

    ``scratch``: where files of an object store are prepared; a new folder by default, which is
    deleted with the store.
    """
    if isinstance(place, str) and URL.match(place):
        return ObjectStore(place, scratch)
    path = Path(place)
    if ":" in str(path).partition("/")[0]:  # pyarrow would take its files for addresses
        path = path.absolute()
    return Store(path)
