"""The dashboard accepts browsers at its own address, and refuses other pages in the same browser."""

import socket
import time
import urllib.error
import urllib.request

import pytest
from distributed import Client

from pipelines.monitoring import dashboard_access, dashboard_plugin
from tests.support import tiers
from tests.support.clusters import threads_of_this_process
from tests.support.processes import PATIENCE

FACTS = {
    "algorithm": "sssp", "result": "distances", "means": "rows", "strategy": "near_far", "device": "cpu", "output": "out",
    "vertices": 5, "stored_edges": 9, "sources": 1, "kept": 0,
}  # fmt: skip


@pytest.fixture(scope="module", params=["own", "existing"])
def pages(request):
    """Addresses of Dask's page and of this package's, on a scheduler of the job's own or on one that it found."""
    with threads_of_this_process(n_workers=0) as cluster:
        where = cluster if request.param == "own" else cluster.scheduler_address
        with Client(where, set_as_default=False) as client:
            reporter = dashboard_plugin.open_page(
                client, FACTS | {"started": time.time()}, lambda *_: None
            )
            reporter.end("done")
            status = cluster.dashboard_link
            yield request.param, status, status.replace("/status", "/kepler")


def answer_of(url, **headers):
    """Return the status of a response and its text."""
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, headers=headers), timeout=PATIENCE
        ) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def code_of(url, **headers):
    return answer_of(url, **headers)[0]


WEBSOCKET = {
    "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "MDEyMzQ1Njc4OWFiY2RlZg==", "Sec-WebSocket-Protocol": "bokeh, e30",
}  # fmt: skip


def test_page_accepts_its_address_and_names_of_its_host(pages):
    _, status, page = pages
    own = page.split("/")[2]
    port = own.rpartition(":")[2]
    hosts = [
        own,
        "localhost:8787",
        socket.gethostname(),
        f"localhost:{port}",
        "127.0.0.1:8787",
        f"[::1]:{port}",
    ]
    for host in hosts if tiers.ALL else hosts[:3]:
        assert code_of(page, Host=host) == 200, host
    assert code_of(status, Host="localhost:8787") == 200


def test_a_name_that_was_made_to_lead_here_is_refused(pages):
    whose, status, page = pages
    port = page.split("/")[2].rpartition(":")[2]
    for name in (
        "evil.example",
        f"evil.example:{port}",
        f"127.0.0.1.evil.example:{port}",
        f"localhost.evil.example:{port}",
    ):
        code, said = answer_of(page, Host=name)
        assert (code, "evil" in said) == (403, False), name
        for path in ("/status", "/json/counts.json", "/info/main/workers.html"):
            assert code_of(status.replace("/status", path), Host=name) == (
                403 if whose == "own" else 200
            ), path


def test_pages_and_websockets_are_opened_by_pages_from_the_same_address_alone(pages):
    whose, status, page = pages
    own = page.split("/")[2]
    elsewhere = ("http://evil.example", f"http://evil.example:{own.rpartition(':')[2]}", "http://127.0.0.1:1", "null",
                 "http://[", "file://")  # fmt: skip
    for origin in elsewhere:
        assert code_of(page, Origin=origin) == 403, origin
        if whose == "own":
            assert code_of(f"{status}/ws", Origin=origin, **WEBSOCKET) == 403, origin
    assert code_of(page, Origin=f"http://{own}") == 200
    if whose == "own":
        assert is_upgraded(own, f"http://{own}")
        assert not is_upgraded(own, "http://evil.example")


def is_upgraded(address, origin) -> bool:
    host, _, port = address.partition(":")
    headers = "".join(f"{name}: {value}\r\n" for name, value in WEBSOCKET.items())
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        connection.sendall(
            f"GET /status/ws HTTP/1.1\r\nHost: {address}\r\nOrigin: {origin}\r\n{headers}\r\n".encode()
        )
        return connection.recv(64).startswith(b"HTTP/1.1 101 ")


def test_names_in_dasks_setting_are_accepted():
    names, allowed = {"localhost", "node7"}, ["dash.example:443"]
    for host, origin, right in [
        ("dash.example:443", "https://dash.example:443", True),
        ("node7:8787", "http://node7:8787", True),
        ("NODE7:8787", "http://Node7:8787", True),
        ("node7:8787", "https://dash.example:443", True),
        ("node7:8787", "http://node8:8787", False),
        ("node8:8787", None, False),
        ("", None, False),
        ("127.0.0.1@evil.example", None, False),
        ("[::1", None, False),
    ]:
        assert dashboard_access.is_allowed(host, origin, names, allowed) == right, (host, origin)
    assert not dashboard_access.is_allowed("dash.example:443", None, names, [])
