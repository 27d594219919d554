"""A page in a real browser: Debian's chromium without a window, controlled by its debugging protocol."""

import asyncio
import base64
import json
import shutil
import time
from pathlib import Path
from typing import NamedTuple

from tornado.websocket import websocket_connect

from tests.support.processes import PATIENCE, SILENT, started, wait_until

CHROMIUM = shutil.which("chromium")
# None of what a browser otherwise does by itself, so that the only requests are the page's own.
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-port=0",
)  # fmt: skip


class Seen(NamedTuple):
    """The outcome of ``look``: the value of ``ask``, errors and warnings of the console, and every requested address."""

    answer: object
    complaints: list
    requests: list[str]


def look(
    url: str, profile: Path, scheme: str, ready: str, ask: str, picture: Path | None = None
) -> Seen:
    """Open a page and evaluate JavaScript in it.

    Parameters
    ----------
    url : str
    profile : Path
        An empty folder.
    scheme : {"light", "dark"}
    ready, ask : str
        JavaScript: an expression that is true once the page is ready, and one that is evaluated then.
    picture : Path, optional
        Takes a screenshot.
    """
    command = [CHROMIUM, *_FLAGS, f"--user-data-dir={profile}", "about:blank"]
    file = profile / "DevToolsActivePort"
    with started(command, **SILENT) as browser:
        wait_until(lambda: file.exists() and len(file.read_text().split()) == 2, browser)
        port, path = file.read_text().split()
        return asyncio.run(_look(f"ws://127.0.0.1:{port}{path}", url, scheme, ready, ask, picture))


class _Tab:
    """One tab over the browser's socket; collects what the page complains of and asks for."""

    def __init__(self, socket):
        self._socket = socket
        self._number = 0
        self._session = None
        self.complaints: list = []
        self.requests: list[str] = []

    async def open(self) -> None:
        target = await self.call("Target.createTarget", url="about:blank")
        attached = await self.call(
            "Target.attachToTarget", targetId=target["targetId"], flatten=True
        )
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self.call(f"{domain}.enable")

    async def call(self, method: str, **parameters) -> dict:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        await self._socket.write_message(
            json.dumps(message | ({"sessionId": self._session} if self._session else {}))
        )
        while True:
            answer = json.loads(await asyncio.wait_for(self._socket.read_message(), PATIENCE))
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self._note(answer.get("method"), answer.get("params"))

    def _note(self, method: str, event: dict) -> None:
        """Keep what the page complains of, and what it asks other servers for."""
        if method == "Runtime.exceptionThrown":
            self.complaints.append(event["exceptionDetails"])
        elif method == "Runtime.consoleAPICalled":
            if event["type"] in ("error", "warning", "assert"):
                self.complaints.append(event["args"])
        elif method == "Log.entryAdded":
            if event["entry"]["level"] in ("error", "warning"):
                self.complaints.append(event["entry"])
        elif method == "Network.requestWillBeSent":
            url = event["request"]["url"]
            if not url.startswith("data:"):
                self.requests.append(url)

    async def ask(self, expression: str):
        answer = await self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")


async def _look(address: str, *asked) -> Seen:
    socket = await websocket_connect(address, max_message_size=2**28)
    try:
        return await _seen(_Tab(socket), *asked)
    finally:
        socket.close()
        while await socket.read_message() is not None:  # until the browser has closed its end, too
            pass


async def _seen(
    tab: _Tab, url: str, scheme: str, ready: str, ask: str, picture: Path | None
) -> Seen:
    await tab.open()
    await tab.call(
        "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}]
    )
    await tab.call("Page.navigate", url=url)
    until = time.monotonic() + PATIENCE
    while not await tab.ask(ready):
        assert time.monotonic() < until, f"{url} is not ready: {tab.complaints}"
        await asyncio.sleep(0.1)
    answer = await tab.ask(ask)
    if picture is not None:
        height = await tab.ask("document.documentElement.scrollHeight")
        size = {"width": 1280, "height": height, "deviceScaleFactor": 1, "mobile": False}
        await tab.call("Emulation.setDeviceMetricsOverride", **size)
        await asyncio.sleep(0.5)
        shot = await tab.call("Page.captureScreenshot", format="png")
        picture.write_bytes(base64.b64decode(shot["data"]))
    return Seen(answer, tab.complaints, tab.requests)
