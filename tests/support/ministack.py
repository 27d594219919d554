"""ministack, another S3 server, with the same faults and log; this module runs with the Python that has it.

It needs a port of its own on loopback, so it runs in a network namespace. ministack cannot be installed beside moto.
"""

import asyncio
import contextlib
import json
import os
import shutil
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.object_store import KEYS, Faults, make_state

PORT = 4566
URL = f"http://127.0.0.1:{PORT}"
PROGRAM = shutil.which("ministack")
SHARES = ("fail_share", "cut_share", "slow_share")


class Client:
    """The server as a test sees it, as ``object_store.Server``."""

    def __init__(self, pid: int):
        self.pid = pid

    def state(self) -> Any:
        with urllib.request.urlopen(f"{URL}/_state") as answer:
            return json.load(answer)


@contextlib.contextmanager
def served(monkeypatch: Any, shares: dict[str, float]) -> Iterator[Client]:
    """Start a server with a bucket called ``bucket``; the environment names it."""
    for name, value in (KEYS | {"ENDPOINT_URL": URL}).items():
        monkeypatch.setenv(f"AWS_{name}", value)
    # with packages that this process has alone
    from tests.support.processes import SILENT, started, wait_until

    def has_bucket() -> bool:
        with (
            contextlib.suppress(OSError),
            urllib.request.urlopen(urllib.request.Request(f"{URL}/bucket", method="PUT")),
        ):
            return True
        return False

    assert PROGRAM is not None
    words = [
        Path(PROGRAM).resolve().with_name("python"),
        "-m",
        "tests.support.ministack",
        json.dumps(shares),
    ]
    with started(words, env={"PATH": os.environ["PATH"], "LOG_LEVEL": "ERROR"}, **SILENT) as server:
        wait_until(has_bucket, server)
        yield Client(server.pid)


async def _swallow(_: Any) -> None:
    """Take a message of an answer that is lost."""


async def _answer(send: Any, status: int, body: bytes = b"") -> None:
    """Send a whole answer."""
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _held_objects() -> dict[str, Any]:
    """Return the objects of the only bucket, by their names in the folder of the run."""
    from ministack.services import s3

    (bucket,) = s3._buckets._data.values()
    return {name.removeprefix("run/"): each["body"] for name, each in bucket["objects"].items()}


def main(shares: dict[str, float]) -> None:
    """Serve the store, with faults in these shares of the requests."""
    from hypercorn.asyncio import serve
    from hypercorn.config import Config
    from ministack.app import app

    faults = Faults()
    vars(faults).update(shares)

    async def faulty(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        if scope["path"] == "/_state":
            state = make_state(faults, _held_objects())
            await _answer(send, 200, json.dumps(state).encode())
            return
        size = int(dict(scope["headers"]).get(b"content-length", 0))
        fault = faults.choose(scope["method"], scope["path"], scope["query_string"].decode(), size)
        if fault.is_slow:
            await asyncio.sleep(1)
        if fault.error:
            if fault.is_done:
                await app(scope, receive, _swallow)
            else:
                while (await receive()).get("more_body"):
                    pass
            await _answer(send, int(fault.error[:3]))
            return

        async def half(message: Any) -> None:
            if message["type"] == "http.response.body":
                message = message | {"body": message["body"][: len(message["body"]) // 2]}
            await send(message)

        await app(scope, receive, half if fault.is_cut else send)

    config = Config()
    config.bind = [f"127.0.0.1:{PORT}"]
    config.keep_alive_timeout = 75
    config.errorlog = None
    asyncio.run(serve(faulty, config))


if __name__ == "__main__":
    import sys

    main(json.loads(sys.argv[1]))
