"""Files of a run in an object store: S3, Google Cloud Storage or Azure.

No file of a run holds credentials. Each object is put in one request, so none is ever half there, and no upload in pieces
remains of a process that was killed.
"""

from __future__ import annotations

import contextlib
import errno
import shutil
import tempfile
import time
import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO

from kepler_traverse.errors import OutputError
from kepler_traverse.runtime.object_stores import AT_ONCE, TRAFFIC, Traffic, fetch, listed, open_store, send

from .layout import PARTITION_NAME
from .manifest_types import Stored
from .store import Store

_MAX_AT_ONCE = 5 * 10**9  # bytes of one request


class ObjectStore(Store):
    """Objects below a URL.

    ``scratch``: folder in which files are prepared; a new one by default.
    """

    is_local = False

    def __init__(self, url: str, scratch: Path | None = None):
        self._url = url.rstrip("/")
        try:
            self._store: Any = open_store(self._url)
        except OSError as error:
            raise OutputError(f"{url}: the store cannot be used: {error.strerror}") from None
        import obstore

        self._api = obstore
        super().__init__(scratch or Path(tempfile.mkdtemp(prefix="kepler-")))
        # After an error a thread may still write there.
        self._finalizer = weakref.finalize(self, shutil.rmtree if scratch is None else lambda *_: None, self.path, True)

    def __str__(self) -> str:
        return self._url

    def names(self, folder: str = "", after: str = "") -> list[str]:
        below = len(f"{self._url}/{folder}".rstrip("/")) + 1
        found = (each.url[below:] for each in listed(self._store, self._url, folder, after))
        return list(dict.fromkeys(name.partition("/")[0] for name in found))

    def has(self, name: str) -> bool:
        try:
            return bool(send("head", lambda: self._api.head(self._store, name)))
        except FileNotFoundError:
            return False

    def get(self, name: str, max_bytes: int) -> bytes:
        def read() -> bytes:
            found = self._api.get(self._store, name)
            size = found.meta["size"]
            if size > max_bytes:
                raise OSError(errno.EFBIG, f"it has {size:,} bytes, and {max_bytes:,} are the most that is read")
            data = bytes(found.bytes())
            TRAFFIC.add("get", 0, received=len(data))
            if len(data) != size:
                raise OSError(errno.EIO, "the answer was cut short")
            return data

        return send("get", read)

    def put_new(self, name: str, data: bytes) -> bool:
        while True:
            traffic = Traffic()
            try:
                self.put(name, data, traffic, mode="create")
                return True
            except FileExistsError:
                # If an answer was lost, the request was sent again, and the first one has created it.
                with contextlib.suppress(FileNotFoundError):  # the writer who was first has failed
                    return traffic.requests["put"] > 1 and self.get(name, 2**62) == data
            finally:
                TRAFFIC.add("put", traffic.requests["put"], traffic.sent)

    @contextlib.contextmanager
    def new_file(self, name: str) -> Iterator[BinaryIO]:
        with tempfile.NamedTemporaryFile(dir=self.path) as file:
            yield file  # type: ignore[misc]
            file.flush()
            self.put(name, Path(file.name))

    def versions(self) -> dict[str, str]:
        found = ((each.url[len(self._url) + 1 :], each.e_tag) for each in listed(self._store, self._url))
        return {
            name: version for name, version in found if "/" not in name or PARTITION_NAME.fullmatch(name.partition("/")[0])
        }

    def move_in(self, partial: Path, name: str) -> Stored:
        traffic, started = Traffic(), time.monotonic()
        version = self.put(name, partial, traffic)
        return {"requests": traffic.requests["put"], "seconds": round(time.monotonic() - started, 6), "version": version}

    def put(self, name: str, data: bytes | Path, traffic: Traffic = TRAFFIC, **options: Any) -> str:
        """Put an object, in one request unless it is larger than stores take at once; return its version if it has a tag."""
        size = data.stat().st_size if isinstance(data, Path) else len(data)
        options |= {"use_multipart": size > _MAX_AT_ONCE}
        put = send("put", lambda: self._api.put(self._store, name, data, **options), traffic, sent=size)
        return put["e_tag"] or ""

    @contextlib.contextmanager
    def local(self, names: Sequence[str]) -> Iterator[Path]:
        def copy(name: str) -> None:
            (Path(folder) / name).parent.mkdir(exist_ok=True)
            with contextlib.suppress(FileNotFoundError):
                fetch(self._store, name, Path(folder) / name)

        with tempfile.TemporaryDirectory(dir=self.path) as folder, ThreadPoolExecutor(AT_ONCE) as pool:
            try:
                list(pool.map(copy, names))
            except OSError as error:
                raise OutputError(f"{self}: objects cannot be read: {error.strerror}; try again") from None
            yield Path(folder)

    def delete(self, folder: str) -> None:
        names = [each.url[len(self._url) + 1 :] for each in listed(self._store, self._url, folder)]
        if names:
            send("delete", lambda: self._api.delete(self._store, names))

    def close(self) -> None:
        self._finalizer()
