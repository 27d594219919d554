"""Files of a run in an object store: S3, Google Cloud Storage or Azure, by obstore (extra ``cloud``).

Credentials, regions and endpoints are those that the environment has for other programs, such as ``AWS_ACCESS_KEY_ID`` and
``AWS_ENDPOINT_URL``; no file of a run holds any. Each object is put in one request, so none is ever half there, and no
upload in pieces remains of a process that was killed.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from kepler_traverse.errors import OutputError

# After errors of the server, throttling and lost connections a request is sent again, for so long.
_PATIENCE = timedelta(seconds=120)
_RETRIES: Any = {
    "max_retries": 30,
    "retry_timeout": _PATIENCE,
    "backoff": {"init_backoff": timedelta(seconds=0.1), "max_backoff": timedelta(seconds=15), "base": 2},
}
_TIMEOUT = timedelta(seconds=180)  # of one request, with its body
_PLAIN = ("AWS_ALLOW_HTTP", "GOOGLE_ALLOW_HTTP", "AZURE_ALLOW_HTTP")  # obstore reads them where no option is given here
_AT_ONCE = 16  # requests
_READS = 5  # times that an object is read again
T = TypeVar("T")
_QUERY = re.compile(r"\?\S*")  # of an address in a message, which may hold a signature


class ObjectStore:
    """Objects below a URL: a ``Store``.

    Parameters
    ----------
    url : str
    scratch : Path, optional
        Folder in which files are prepared; a new one by default.
    """

    is_local = False

    def __init__(self, url: str, scratch: Path | None = None):
        try:
            import obstore
            from obstore.store import from_url
        except ModuleNotFoundError:
            raise OutputError(f"{url}: this address needs obstore, which is not installed: pip install obstore") from None
        self._url, self._api = url.rstrip("/"), obstore
        self.path = scratch or Path(tempfile.mkdtemp(prefix="kepler-"))
        self.close = weakref.finalize(self, shutil.rmtree if scratch is None else str, self.path)
        try:
            with _errors():
                options: Any = {"timeout": _TIMEOUT, "allow_http": any(os.environ.get(each) == "true" for each in _PLAIN)}
                self._store: Any = from_url(self._url, client_options=options, retry_config=_RETRIES)
        except OSError as error:
            raise OutputError(f"{url}: the store cannot be used: {error.strerror}") from None

    def __str__(self) -> str:
        return self._url

    def names(self, folder: str = "") -> list[str]:
        with _errors():
            found = self._api.list_with_delimiter(self._store, folder or None)
        below = [each["path"] for each in found["objects"]] + list(found["common_prefixes"])
        return [path.rstrip("/").rpartition("/")[2] for path in below]

    def get(self, name: str, max_bytes: int) -> bytes:
        with _errors():
            size = self._api.head(self._store, name)["size"]
        if size > max_bytes:
            raise OSError(errno.EFBIG, f"it has {size:,} bytes, and {max_bytes:,} are the most that is read")
        return _whole(lambda: bytes(self._api.get(self._store, name).bytes()))

    def put_new(self, name: str, data: bytes) -> bool:
        try:
            with _errors():
                self._api.put(self._store, name, data, mode="create", use_multipart=False)
        except FileExistsError:
            # If an answer was lost, the request was sent again, and the first one has created it.
            return self.get(name, 2**62) == data
        return True

    @contextlib.contextmanager
    def new_file(self, name: str) -> Iterator[BinaryIO]:
        with tempfile.NamedTemporaryFile(dir=self.path) as file:
            yield file  # type: ignore[misc]
            file.flush()
            self._put(name, Path(file.name))

    def move_in(self, name: str) -> None:
        self._put(name, self.path / name)
        (self.path / name).unlink()

    def _put(self, name: str, path: Path) -> None:
        with _errors():
            self._api.put(self._store, name, path, use_multipart=False)

    @contextlib.contextmanager
    def local(self, names: Sequence[str]) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(dir=self.path) as folder, ThreadPoolExecutor(_AT_ONCE) as pool:
            try:
                list(pool.map(lambda name: self._fetch(name, Path(folder) / name), names))
            except OSError as error:
                raise OutputError(f"{self}: objects cannot be read: {error.strerror}; try again") from None
            yield Path(folder)

    def _fetch(self, name: str, path: Path) -> None:
        def fetch() -> None:
            found = self._api.get(self._store, name)
            with open(path, "wb") as file:
                for piece in found.stream():
                    file.write(piece)

        with contextlib.suppress(FileNotFoundError):
            _whole(fetch)

    def delete(self, folder: str) -> None:
        with _errors():
            self._api.delete(self._store, [f"{folder}/{name}" for name in self.names(folder)])


def _whole(read: Callable[[], T]) -> T:
    """Return ``read()``, and read again if the body of an answer was cut short, which obstore does not always do."""
    until = time.monotonic() + _PATIENCE.total_seconds()
    for pause in itertools.count():
        try:
            with _errors():
                return read()
        except (FileNotFoundError, PermissionError):
            raise
        except OSError:
            if pause == _READS or time.monotonic() > until:
                raise
            time.sleep(0.1 * 2**pause)
    raise AssertionError


@contextlib.contextmanager
def _errors() -> Iterator[None]:
    """Raise OSError, with the words of the store on one line, in place of the errors of obstore."""
    from obstore import exceptions

    try:
        yield
    except FileNotFoundError:
        raise FileNotFoundError(errno.ENOENT, "no such object") from None
    except exceptions.AlreadyExistsError:
        raise FileExistsError(errno.EEXIST, "there is such an object") from None
    except PermissionError as error:
        raise PermissionError(errno.EACCES, _text_of(error)) from None
    except (exceptions.BaseError, ValueError) as error:
        raise OSError(errno.EIO, _text_of(error)) from None


def _text_of(error: Exception) -> str:
    """Return what the store has said: its code and message alone, since the rest of its answer may repeat credentials."""
    text, _, answer = " ".join(str(error).partition("\n\nDebug source")[0].split()).partition("<")
    said = [found[1] for found in (re.search(f"<{tag}>([^<]*)", answer) for tag in ("Code", "Message")) if found]
    return " ".join([_QUERY.sub("", text).strip(), *said])[:400]
