"""Objects of S3, Google Cloud Storage and Azure, by obstore (extra ``cloud``): requests, and copies
on this host.

Credentials, regions and endpoints are those that the environment has for other programs, such as
``AWS_ACCESS_KEY_ID`` and ``AWS_ENDPOINT_URL``.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import math
import os
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from .. import _uninterrupted
from .._uninterrupted import map_on_threads
from ..errors import InputError, has_secrets, how_to_install, without_secrets
from .file_locks import open_lock, take_lock
from .regular_files import replacing, require_private

URL = re.compile(r"(s3a?|gs|az|abfss?)://")  # how the address of an object begins
AT_ONCE = 16  # requests that are made at the same time
# After errors of the server, throttling and lost connections, a request is sent again, for up to
# ``_PATIENCE`` seconds, after pauses that double. Pauses are in seconds, too.
_PATIENCE = 120.0
_FIRST_PAUSE = 0.1
_MAX_PAUSE = 15.0
_TIMEOUT = timedelta(seconds=180)  # of one request, with its body
# Variables of the environment that allow http without encryption. obstore reads them itself, too,
# where no option says otherwise.
_PLAIN = ("AWS_ALLOW_HTTP", "GOOGLE_ALLOW_HTTP", "AZURE_ALLOW_HTTP")
# By the first letter of an address: the variable of the environment that allows http, and the
# variables that may name a server.
_SERVERS = {
    "s": ("AWS_ALLOW_HTTP", ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")),
    "g": ("GOOGLE_ALLOW_HTTP", ("GOOGLE_BASE_URL",)),
    "a": ("AZURE_ALLOW_HTTP", ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT")),
}
# an address of a server, such as "https://host:9000" or "http://host/path"
_SERVER = re.compile(r"(https?)://[^\s/?#]+(/\S*)?")
# Another attempt would end alike: the request is refused, or cannot even be made. Status 408 is a
# timeout and 429 throttling, after which another attempt may succeed.
_REFUSED = re.compile(r"status code: 4(?!08|29)\d\d|HTTP error: builder error|HTTP error: builder$")
_SAID_AFTER = 1.5  # seconds that a request waits before it is reported
_SAID_EVERY = 10.0  # seconds between two reports
_LOOKED_EVERY = 0.25  # seconds between two looks at all waiting requests
# What may be a signature in a message: the query of an address, or a header of a request.
_QUERY = re.compile(r"\?\S*|AWS4-HMAC-SHA256.*")
# names of variables of the environment that hold credentials, such as "AWS_SECRET_ACCESS_KEY"
_CREDENTIAL = re.compile(r"(AWS|GOOGLE|AZURE)_\w*(KEY|SECRET|TOKEN|PASSWORD)")
_PAGE = 1000  # objects of one answer to a request that lists them
# at most two endings of a name, such as ".csv.gz", which tell readers the format and the
# compression; an empty match without any
_ENDING = re.compile(r"(\.[A-Za-z0-9_]{1,15}){0,2}$")
T = TypeVar("T")


class Traffic:
    """Counts requests to stores, those that failed included, and the bytes of objects."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.requests: Counter[str] = Counter()  # by kind: get, head, put, list and delete
        self.sent = self.received = 0  # bytes of objects

    def add(self, kind: str, requests: int = 1, sent: int = 0, received: int = 0) -> None:
        """Count ``requests`` requests of a kind, and ``sent`` and ``received`` bytes."""
        with self._lock:
            self.requests[kind] += requests
            self.sent += sent
            self.received += received

    def take(self) -> dict[str, int]:
        """Return the counts since the last call, by name, and set them to 0.

        The names are the kinds of requests (``get`` and so on), ``sent`` and ``received``, which
        are in bytes. Counts of 0 are left out.
        """
        with self._lock:
            counts = {**self.requests, "sent": self.sent, "received": self.received}
            self.requests.clear()
            self.sent = self.received = 0
        return {name: count for name, count in counts.items() if count}


TRAFFIC = Traffic()  # of this process


class _Waits:
    """Reports requests that take long, so that no user waits without knowing why."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Per request that waits now, by an object as its key: the time at which it began, by
        # time.monotonic, and its kind, with the reason why it waits if there is one.
        self._waiting_since: dict[object, tuple[float, str]] = {}
        self._report: Callable[[str], None] | None = None  # None until a caller wants reports

    def report_by(self, report: Callable[[str], None]) -> None:
        """Report long waits from now on, by calling a function with a line of text.

        The first call starts a thread, which reports by its function as long as the process runs.
        Further calls change nothing.
        """
        with self._lock:
            is_first = self._report is None
            self._report = report
        if is_first:
            _uninterrupted.start(self._watch, "kepler-store-waits")

    @contextlib.contextmanager
    def count_wait(self, kind: str) -> Iterator[Callable[[str], None]]:
        """Count a request of a kind as waiting during the ``with`` block.

        The block gets a function, which it calls with the reason why the request waits.
        """
        key = object()
        start_time = time.monotonic()

        def note(reason: str) -> None:
            """Note why the request waits, for the next report."""
            with self._lock:
                self._waiting_since[key] = (start_time, f"{kind}, {reason}")

        with self._lock:
            self._waiting_since[key] = (start_time, kind)
        try:
            yield note
        finally:
            with self._lock:
                del self._waiting_since[key]

    def _watch(self) -> None:
        """Report the request that has waited longest, from time to time and without an end; it runs
        in a thread of its own.
        """
        last_report = -math.inf
        while True:
            time.sleep(_LOOKED_EVERY)
            with self._lock:
                report = self._report
                # the request that began first; without any, a beginning that is never due
                since, description = min(self._waiting_since.values(), default=(math.inf, ""))
            now = time.monotonic()
            if report and now - since > _SAID_AFTER and now - last_report > _SAID_EVERY:
                report(f"waiting for the object store for {now - since:.0f} s ({description})")
                last_report = now


WAITS = _Waits()  # of this process


class StoredObject(NamedTuple):
    """An object in a store, in one version."""

    url: str
    size: int  # bytes
    # The identifier of the version that the store gives, which has quotes around it; or, where it
    # gives none, the time of the last change as text, without quotes.
    e_tag: str

    @classmethod
    def of(cls, url: str, meta: Any) -> StoredObject:
        """Return the object of a URL; ``meta`` is the mapping by which obstore describes it."""
        return cls(url, meta["size"], meta["e_tag"] or str(meta["last_modified"]))


def open_store(url: str, named_url: str = "") -> Any:
    """Return obstore's object for the store of the objects below a URL. Nothing is sent yet;
    requests are made by ``send``.

    Errors name ``named_url``, the URL of one object, if it is given, else ``url``.

    Raises InputError (obstore is not installed, the address holds more than a bucket and a path, or
    the environment names an unfit server) or OSError (the environment has no valid configuration).
    """
    _obstore(url)
    from obstore.store import from_url

    is_plain = any(os.environ.get(variable, "").lower() == "true" for variable in _PLAIN)
    _refuse_server(named_url or url, is_plain)
    options: Any = {"timeout": _TIMEOUT, "allow_http": is_plain}
    # ``send`` makes failed requests again itself, and counts them.
    retries: Any = {"max_retries": 0, "retry_timeout": _TIMEOUT}
    with errors_of_store():
        return from_url(url.rstrip("/"), client_options=options, retry_config=retries)


def _refuse_server(url: str, is_plain: bool) -> None:
    """Raise InputError if the environment names, for the kind of store of ``url``, a server to
    which no request can be made, or a region that is no name.

    ``is_plain``: whether a variable of the environment allows http without encryption.
    """
    http_variable, server_variables = _SERVERS[url[0]]
    for name in server_variables:
        server = os.environ.get(name)
        if not server:
            continue
        match = _SERVER.fullmatch(server)
        if match is None:
            printable_server = without_secrets(server)[:100]
            raise InputError(
                f"{url}: {name} is {printable_server!r}, which is no address of a "
                "server, such as https://host:9000"
            )
        if match[1] == "http" and not is_plain:
            raise InputError(
                f"{url}: {name} is an address of plain http, to which nothing is sent unasked; set "
                f"{http_variable}=true if the network in between is trusted, or take https"
            )

    region = os.environ.get("AWS_REGION") or ""
    if url[0] == "s" and not re.fullmatch(r"[A-Za-z0-9_-]*", region):
        raise InputError(f"{url}: AWS_REGION is {region[:100]!r}, which is no name of a region")


def _obstore(url: str) -> Any:
    """Return the package obstore. InputError, which names ``url``, if it is not installed, or if
    the URL may hold a password or a signature.
    """
    if has_secrets(url):
        begin = URL.match(url)
        raise InputError(
            f"{begin[0] if begin else url[:10]}...: the address holds more than a bucket and a path; "
            "give credentials by the environment"
        )
    try:
        import obstore
    except ModuleNotFoundError:
        raise InputError(
            f"{url}: this address needs obstore, which is not installed: {how_to_install('cloud')}"
        ) from None
    return obstore


def send(kind: str, call: Callable[[], T], traffic: Traffic = TRAFFIC, **nbytes: int) -> T:
    """Call ``call()``, which makes a request and reads the answer, and return what it returns. Call
    it again after faults that may pass, such as a lost connection.

    ``kind`` is the kind of request: get, head, put, list or delete. Each attempt is counted in
    ``traffic``, with ``nbytes``: the keywords ``sent`` and ``received``, in bytes. Raises
    FileNotFoundError, FileExistsError, PermissionError or OSError, with the words of the store.
    """
    deadline = time.monotonic() + _PATIENCE
    pause = _FIRST_PAUSE
    with WAITS.count_wait(kind) as note:
        while True:
            traffic.add(kind, **nbytes)
            try:
                with errors_of_store():
                    return call()
            except (FileNotFoundError, FileExistsError, PermissionError):
                raise
            except OSError as error:
                # EIO stands for a fault that may pass; see ``errors_of_store``.
                if error.errno != errno.EIO or time.monotonic() + pause > deadline:
                    raise
                # the reason that a report of long waits gives
                note(f"which is sent again: {str(error.strerror)[:200]}")
            # A random part of the pause, so that clients that failed together do not return
            # together.
            time.sleep(pause * random.uniform(0.5, 1))
            pause = min(2 * pause, _MAX_PAUSE)


@contextlib.contextmanager
def errors_of_store() -> Iterator[None]:
    """Raise OSError, or one of its subclasses, in place of the errors that obstore raises in the
    ``with`` block. Its text is that of the store, on one line.

    Its ``errno`` is EIO where another attempt may succeed.
    """
    from obstore import exceptions

    try:
        yield
    except FileNotFoundError as error:
        if "NoSuchBucket" not in str(error):
            missing = "no such object"
        else:
            missing = _format_error(error)
        raise FileNotFoundError(errno.ENOENT, missing) from None
    except exceptions.AlreadyExistsError:
        raise FileExistsError(errno.EEXIST, "there is such an object") from None
    except PermissionError as error:
        raise PermissionError(errno.EACCES, _format_error(error)) from None
    except exceptions.PreconditionError as error:  # such as an object that has changed since
        raise OSError(errno.ESTALE, _format_error(error)) from None
    except exceptions.GenericError as error:
        is_refused = _REFUSED.search(str(error)) is not None
        number = errno.EINVAL if is_refused else errno.EIO
        raise OSError(number, _format_error(error)) from None
    except (exceptions.BaseError, ValueError) as error:
        raise OSError(errno.EINVAL, _format_error(error)) from None
    except BaseException as error:
        # obstore is written in Rust. A configuration of which no request can be made ends it by a
        # panic, whose type cannot be imported and derives from BaseException.
        if type(error).__name__ != "PanicException":
            raise
        raise OSError(errno.EINVAL, _format_error(error)) from None


def _format_error(error: BaseException) -> str:
    """Return the text of an error of obstore for a message, on one line.

    Of the answer of the store, which is XML, only the code and the message are kept, since the rest
    may repeat credentials. Signatures are removed, and values of variables of the environment that
    hold credentials become "...".
    """
    # The text up to the answer of the store, and the answer. What obstore appends for developers is
    # left out.
    message, _, _ = str(error).partition("\n\nDebug source")
    text, _, answer = " ".join(message.split()).partition("<")
    parts = [text]
    for tag in ("Code", "Message"):
        match = re.search(f"<{tag}>([^<]*)", answer)
        if match:
            parts.append(match[1])
    text = " ".join([_QUERY.sub("", part).strip() for part in parts])
    for name, value in os.environ.items():
        if value and _CREDENTIAL.match(name):
            text = text.replace(value, "...")
    return text[:400]


def listed(store: Any, url: str, folder: str = "", after: str = "") -> Iterator[StoredObject]:
    """Yield the objects below a URL, or in a folder there, in the order of their names.

    ``store`` is the one that ``open_store`` returned for ``url``. With ``after``, only objects are
    listed whose names in ``folder`` sort after it. Raises OSError.
    """
    import obstore

    last_name = f"{folder}/{after}".lstrip("/") if after else None  # the listing begins behind it
    pages: Any = None  # obstore's iterator over pages, while it is of use

    def next_page() -> Any:
        """Return the objects of the next page of the listing, mappings by which obstore describes
        them; an empty list at the end.

        After an error, the listing begins anew behind the last object that was yielded.
        """
        nonlocal pages
        try:
            pages = pages or iter(
                obstore.list(store, folder or None, offset=last_name, chunk_size=_PAGE)
            )
            return next(pages, [])
        except BaseException:
            pages = None  # the iterator is of no use after an error
            raise

    while objects := send("list", next_page):
        for meta in objects:
            yield StoredObject.of(f"{url}/{meta['path']}", meta)
        if len(objects) < _PAGE:  # the last page: another request would find nothing
            break
        last_name = objects[-1]["path"]


def find_object(url: str) -> StoredObject | None:
    """Return the object of a URL, with its size and version, by a request to the store; None if
    there is no such object. Raises as ``open_store`` and ``send``.
    """
    folder, _, name = url.rpartition("/")
    if folder.endswith("/") or not name:  # a bucket or a folder, which is no object
        return None
    obstore = _obstore(url)
    store = open_store(folder, url)
    try:
        return StoredObject.of(url, send("head", lambda: obstore.head(store, name)))
    except FileNotFoundError:
        return None


def objects_below(url: str) -> list[StoredObject]:
    """Return the objects below a URL, sorted by name. Raises as ``open_store`` and ``send``."""
    url = url.rstrip("/")
    return list(listed(open_store(url), url))


def local_copies(objects: list[StoredObject]) -> list[Path]:
    """Return the path of a copy on this host for each object, in their order. Copies that are not
    in the cache are fetched, several at a time. Raises as ``open_store`` and ``send``.
    """
    return map_on_threads(_local_copy, objects, AT_ONCE)


def local_path(path: str | os.PathLike[str]) -> str:
    """Return a path of this host for a path or the URL of an object.

    A path is returned as it is, except that one with a colon becomes absolute. A URL becomes the
    path of a copy in the cache, which is made once for each version of the object.

    Raises as ``open_store`` and ``send``; and OSError: no copy can be made.
    """
    text = os.fspath(path)
    if not URL.match(text):
        # pyarrow takes a relative path such as ab:p for an address with the scheme ab.
        if ":" in text:
            return os.path.abspath(text)
        return text
    stored = find_object(text)
    if stored is None:
        raise FileNotFoundError(errno.ENOENT, "no such object", text)
    return str(_local_copy(stored))


def cache_folder(name: str) -> Path:
    """Return the folder ``name`` of the cache on this host. It is made if it does not exist, and no
    other user can write to it.

    The cache is the folder of the variable ``KEPLER_CACHE_DIR``, by default ``kepler_traverse`` in
    ``XDG_CACHE_HOME`` or ``~/.cache``. Raises InputError: the folder cannot be made, or others can
    write to it.
    """
    default = (
        Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "kepler_traverse"
    )
    folder = Path(os.environ.get("KEPLER_CACHE_DIR") or default).absolute()
    try:
        for path in (folder, folder / name):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            require_private(path.resolve())
    except OSError as error:
        raise InputError(
            f"{folder}: the folder for copies of objects cannot be made: "
            f"{error.strerror}; name one by KEPLER_CACHE_DIR"
        ) from None
    return folder / name


def _local_copy(stored: StoredObject) -> Path:
    """Return the path of the copy of an object in the cache. If it is not there, fetch it; of
    several processes that need it, one does.
    """
    # The name depends on URL, size and version, so that a new version is another file. It keeps
    # the ending, by which readers know the format.
    key = hashlib.sha256("\n".join(map(str, stored)).encode()).hexdigest()[:32]
    path = cache_folder("objects") / f"{key}{_ENDING.search(stored.url)[0]}"  # type: ignore[index]
    if path.exists():  # without a lock: a file appears as a whole
        return path
    folder, _, name = stored.url.rpartition("/")
    with hold_lock(path.with_suffix(".lock")):
        if not path.exists():  # else another process has fetched it meanwhile
            fetch(open_store(folder), name, path, stored)
    return path


@contextlib.contextmanager
def hold_lock(lock: Path) -> Iterator[None]:
    """Hold the lock of the file ``lock``, which is made if it does not exist, during the ``with``
    block. Wait for it if another process of this host holds it. Raises OSError.
    """
    file = open_lock(lock)
    try:
        take_lock(file, wait=True)
        yield
    finally:
        os.close(file)  # releases the lock, too; the system does so if this process is killed


def fetch(store: Any, name: str, path: Path, version: StoredObject | None = None) -> None:
    """Copy an object of a store to the file ``path``, which appears as a whole or not at all.

    ``store`` is the one that ``open_store`` returned for a URL, and ``name`` the rest of the
    address of the object. With ``version``, OSError with the number ESTALE if the object has
    changed since. Where the store gives no e-tag, only a change of the size is noticed. Raises as
    ``send``, too.
    """
    import obstore

    options: Any = None
    # An e-tag can be a condition of the request: the store refuses another version. It begins with
    # a quote; the time of the last change, which may be there instead, does not.
    if version is not None and version.e_tag.startswith('"'):
        options = {"if_match": version.e_tag}

    def read() -> int:
        """Write the whole object to ``partial``, which the ``with`` statement below names, and
        return its size in bytes.
        """
        answer = obstore.get(store, name, options=options)
        with open(partial, "wb") as file:
            for piece in answer.stream():
                file.write(piece)
            size = file.tell()
        TRAFFIC.add("get", 0, received=size)  # 0 requests: ``send`` has counted this one
        if size != answer.meta["size"]:
            raise OSError(errno.EIO, "the answer was cut short")  # EIO: ``send`` tries again
        return size

    # a temporary file, which takes the place of ``path`` at the end of the block
    with replacing(path) as partial:
        size = send("get", read)
        if version is not None and size != version.size:
            raise OSError(errno.ESTALE, "the object has changed")
