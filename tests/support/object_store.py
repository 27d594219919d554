"""An S3 server on loopback (moto) that answers some requests wrongly, and keeps a log of them."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

ERRORS = ("500 Internal Server Error", "503 Slow Down")


class Server:
    """A WSGI application around moto's.

    Attributes
    ----------
    fail_share, cut_share, slow_share : float
        Of the puts that are answered with an error, half of them after they have been done; of the reads whose body is cut;
        of the puts that are answered a second later.
    log : Counter
        Requests by method and by what was done to them, and the bytes of puts.
    """

    def __init__(self, app: Any, seed: int = 0):
        self._app, self._random, self._lock = app, random.Random(seed), threading.Lock()
        self.fail_share = self.cut_share = self.slow_share = 0.0
        self.log: Counter[str] = Counter()
        self.url = ""

    def __call__(self, environ: Any, start_response: Any) -> Any:
        method = environ["REQUEST_METHOD"]
        is_list = method == "GET" and "list-type" in environ["QUERY_STRING"]
        with self._lock:
            fails, is_slow = (
                method == "PUT" and self._random.random() < share for share in (self.fail_share, self.slow_share)
            )
            cuts = method == "GET" and not is_list and self._random.random() < self.cut_share
            error, done_first = self._random.choice(ERRORS), self._random.random() < 0.5
            done = {"list": is_list, "failed": fails, "cut": cuts, "slow": is_slow}
            self.log.update([method, *(name for name, was_done in done.items() if was_done)])
            self.log["bytes"] += int(environ.get("CONTENT_LENGTH") or 0) if method == "PUT" else 0
        if is_slow:
            time.sleep(1)
        if fails:
            if done_first:  # the answer of a request that was done is lost
                b"".join(self._app(environ, lambda *_: None))
            else:
                environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            start_response(error, [("Content-Length", "0")])
            return []
        body = self._app(environ, start_response)
        if not cuts:
            return body
        whole = b"".join(body)
        return [whole[: len(whole) // 2]]  # fewer bytes than the header says


def objects(folder: str) -> dict[str, bytes]:
    """Return the objects of a folder of the bucket, as the server holds them."""
    from moto.core import DEFAULT_ACCOUNT_ID
    from moto.s3.models import s3_backends

    keys = list(s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets["bucket"].keys.items())
    return {name.removeprefix(f"{folder}/"): key.value for name, key in keys if name.startswith(f"{folder}/")}


@contextlib.contextmanager
def served(monkeypatch: Any, host: str = "127.0.0.1") -> Iterator[Server]:
    """Start a server with a bucket called ``bucket``; the environment names it."""
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        protocol_version = "HTTP/1.1"

        def log(self, *_: Any) -> None:
            pass

    app = Server(DomainDispatcherApplication(create_backend_app))
    server = make_server(host, 0, app, threaded=True, request_handler=Quiet)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    app.url = f"http://{host}:{server.server_port}"
    values = {"ACCESS_KEY_ID": "AKIDOFTHETEST", "SECRET_ACCESS_KEY": "SECRETOFTHETEST", "REGION": "us-east-1"}
    for name, value in (values | {"ENDPOINT_URL": app.url, "ALLOW_HTTP": "true"}).items():
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
