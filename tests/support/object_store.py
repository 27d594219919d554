"""An S3 server on loopback (moto) that answers some requests wrongly, and keeps a log of them."""

import contextlib
import hashlib
import os
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

ERRORS = ("500 Internal Server Error", "503 Slow Down")
KEYS = {
    "ACCESS_KEY_ID": "AKIDOFTHETEST", "SECRET_ACCESS_KEY": "SECRETOFTHETEST", "REGION": "us-east-1",
    "ALLOW_HTTP": "true",
}  # fmt: skip


class Fault(NamedTuple):
    """What is done to a request."""

    error: str  # the answer in place of its own, or ""
    is_done: bool  # all the same
    is_cut: bool
    is_slow: bool


class Faults:
    """Choose what is done to requests, and keep a log.

    Attributes
    ----------
    fail_share, cut_share, slow_share : float
        Of the puts that are answered with an error, half of them after they have been done; of the reads whose body is cut;
        of the puts that are answered a second later.
    log : Counter
        Requests by method and by what was done to them, and the bytes of puts.
    puts : dict of str to str
        For each path how its puts were answered, in their order: ``1`` done, ``0`` an error.
    """

    def __init__(self, seed: int = 0):
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self.fail_share = 0.0
        self.cut_share = 0.0
        self.slow_share = 0.0
        self.log: Counter[str] = Counter()
        self.puts: defaultdict[str, str] = defaultdict(str)

    def choose(self, method: str, path: str, query: str, size: int) -> Fault:
        """Choose what is done to a request, and log it."""
        is_list = method == "GET" and "list-type" in query
        with self._lock:
            fails, is_slow = (
                method == "PUT" and self._random.random() < share
                for share in (self.fail_share, self.slow_share)
            )
            cuts = method == "GET" and not is_list and self._random.random() < self.cut_share
            error = self._random.choice(ERRORS)
            is_done = self._random.random() < 0.5
            done = {"list": is_list, "failed": fails, "cut": cuts, "slow": is_slow}
            self.log.update([method, *(name for name, was_done in done.items() if was_done)])
            if method == "PUT":
                self.log["bytes"] += size
                self.puts[path] += "01"[not fails]
        return Fault(error if fails else "", is_done, cuts, is_slow)


class Server(Faults):
    """A WSGI application around moto's.

    The methods that ``denied`` names are answered with an error that repeats credentials.
    """

    def __init__(self, app: Any, seed: int = 0):
        super().__init__(seed)
        self._app = app
        self.url = ""
        self.pid = os.getpid()
        self.denied = ""
        self._one_put = threading.Lock()

    def __call__(self, environ: Any, start_response: Any) -> Any:
        size = int(environ.get("CONTENT_LENGTH") or 0)
        fault = self.choose(
            environ["REQUEST_METHOD"], environ["PATH_INFO"], environ["QUERY_STRING"], size
        )
        if fault.is_slow:
            time.sleep(1)
        if environ["REQUEST_METHOD"] in self.denied.split():
            environ["wsgi.input"].read(size)
            message = f"not {KEYS['SECRET_ACCESS_KEY']} by {environ['HTTP_AUTHORIZATION']}"
            answer = (
                f"<Error><Code>AccessDenied</Code><Message>{message}</Message></Error>".encode()
            )
            start_response("403 Forbidden", [("Content-Length", str(len(answer)))])
            return [answer]
        if fault.error:
            if fault.is_done:  # the answer of a request that was done is lost
                b"".join(self._answer(environ, lambda *_: None))
            else:
                environ["wsgi.input"].read(size)
            start_response(fault.error, [("Content-Length", "0")])
            return []
        body = self._answer(environ, start_response)
        if not fault.is_cut:
            return body
        whole = b"".join(body)
        return [whole[: len(whole) // 2]]  # fewer bytes than the header says

    def _answer(self, environ: Any, start_response: Any) -> Any:
        """Let moto answer: one PUT at a time, since it looks for an object and creates it in two
        steps, where a store does both at once.
        """
        if environ["REQUEST_METHOD"] != "PUT":
            return self._app(environ, start_response)
        with self._one_put:
            return self._app(environ, start_response)

    def state(self) -> dict[str, Any]:
        """Return ``log`` and ``puts``, and the SHA-256 of the objects in ``run``, as the server holds them."""
        return make_state(self, objects("run"))


def make_state(faults: Faults, held: dict[str, bytes]) -> dict[str, Any]:
    """Return what ``Server.state`` returns."""
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in held.items()}
    return {"log": dict(faults.log), "puts": dict(faults.puts), "objects": digests}


def objects(folder: str) -> dict[str, bytes]:
    """Return the objects of a folder of the bucket, as the server holds them."""
    from moto.core import DEFAULT_ACCOUNT_ID
    from moto.s3.models import s3_backends

    keys = list(s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets["bucket"].keys.items())
    return {
        name.removeprefix(f"{folder}/"): key.value
        for name, key in keys
        if name.startswith(f"{folder}/")
    }


def skip_without_server() -> None:
    """Skip the test, or the module that calls this, where a package is missing."""
    pytest.importorskip("obstore", reason="obstore (extra cloud) is not installed")
    pytest.importorskip("moto", reason="moto, an S3 server for tests, is not installed")


@contextlib.contextmanager
def served(monkeypatch: Any, host: str = "127.0.0.1") -> Iterator[Server]:
    """Start a server with a bucket called ``bucket``; the environment names it."""
    from moto.moto_api._internal import moto_api_backend
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        protocol_version = "HTTP/1.1"

        def log(self, *_: Any) -> None:
            pass

    moto_api_backend.reset()  # all servers of a process have the same buckets
    app = Server(DomainDispatcherApplication(create_backend_app))
    server = make_server(host, 0, app, threaded=True, request_handler=Quiet)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    app.url = f"http://{host}:{server.server_port}"
    for name, value in (KEYS | {"ENDPOINT_URL": app.url}).items():
        monkeypatch.setenv(f"AWS_{name}", value)
    try:
        import urllib.request

        with urllib.request.urlopen(urllib.request.Request(f"{app.url}/bucket", method="PUT")):
            pass
        yield app
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
