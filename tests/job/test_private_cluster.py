"""The job's own cluster: other users of the machine can neither run code on it nor read its dashboard; no worker stops."""

import json
import logging
import os
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from pipelines.cli.command_line import parse_flags
from pipelines.cli.settings import read_settings
from pipelines.monitoring import dashboard_plugin
from pipelines.scheduling.cluster import cluster_for
from tests.monitoring.test_dashboard_access import FACTS, WEBSOCKET, code_of
from tests.support.clusters import threads_of_this_process
from tests.support.processes import PATIENCE, ran

# Runs a function on each of the addresses, with the connections that a user without the certificate can make.
INTRUDER = """
import asyncio, json, os, pickle, ssl, sys
from distributed import rpc
from pipelines.scheduling.cluster import make_certificate

async def result_of(address, connection):
    try:
        async with rpc(address, connection_args=connection, timeout=1) as server:
            kind = (await server.identity())["type"]
            run = server.run_function if "Scheduler" in kind else server.run
            return (await run(function=pickle.dumps(os.getpid)))["result"]
    except Exception as error:
        return repr(error)

async def main():
    foreign = make_certificate().get_connection_args("client")
    for address in sys.argv[1:]:
        plain = address.replace("tls:", "tcp:")
        ways = [(address, foreign), (address, {"ssl_context": ssl._create_unverified_context()}), (plain, {})]
        print(json.dumps(await asyncio.gather(*(result_of(*way) for way in ways))), flush=True)

asyncio.run(main())
"""


def listening(pid):
    return {
        c.laddr
        for c in psutil.Process(pid).net_connections(kind="inet")
        if c.status == psutil.CONN_LISTEN
    }


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A client of an own cluster with two workers, and its sockets; another user has made Dask's scratch folder before."""
    temporary = tmp_path_factory.mktemp("temporary")
    shared = temporary / "dask-scratch-space"
    shared.mkdir()
    temporary.chmod(0o1777)
    shared.chmod(0o777)
    before = listening(os.getpid())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(temporary))
        settings = read_settings(
            *parse_flags(["edges.parquet", "--sources", "1", "--output", "out"])
        )
        with cluster_for(settings, "cpu", 2) as client:
            in_workers = [listening(pid) for pid in client.run(os.getpid).values()]
            yield client, listening(os.getpid()) - before, in_workers


def addresses_of(client):
    workers = client.scheduler_info(n_workers=-1)["workers"]
    return [client.scheduler.address, *workers, *(worker["nanny"] for worker in workers.values())]


def intrude(addresses):
    """What each way to each address gives; as another user where this one may become it and Python starts there."""
    environ = {
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "HOME": "/",
        "PATH": os.defpath,
    }
    for user in (
        [{"user": 65534, "group": 65534, "extra_groups": []}, {}] if os.geteuid() == 0 else [{}]
    ):
        command = [sys.executable, "-c", INTRUDER, *addresses]
        try:
            done = ran(command, cwd="/", env=environ, **user)
        except PermissionError:
            continue
        if done.returncode == 0:
            break
    assert done.returncode == 0, done.stderr
    return dict(zip(addresses, map(json.loads, done.stdout.splitlines()), strict=True))


def test_scheduler_nannies_and_workers_run_code_of_the_run_only(own):
    ours = addresses_of(own[0])
    assert len(ours) == 5
    with threads_of_this_process(n_workers=1) as another:
        open_to_all = [another.scheduler_address, *another.scheduler_info["workers"]]
        answers = intrude([*ours, *open_to_all])
    for address in open_to_all:
        assert os.getpid() in answers[address], answers
    for address in ours:
        assert all("CommClosedError" in str(answer) for answer in answers[address]), (
            address,
            answers[address],
        )


def test_every_socket_listens_on_this_machine_only_and_none_is_a_workers_http_server(own):
    _, here, in_workers = own
    # here: scheduler, dashboard, two nannies
    assert [len(here), *map(len, in_workers)] == [4, 1, 1]
    assert {socket.ip for socket in here.union(*in_workers)} == {"127.0.0.1"}


def test_the_dashboard_answers_only_at_addresses_with_the_token(own):
    client, _, _ = own
    said = []
    dashboard_plugin.open_page(
        client, FACTS | {"started": time.time()}, lambda *lines: said.extend(lines)
    ).end("done")
    link = client.dashboard_link
    assert said == [f"dashboard: {link}", f"this run: {link.replace('/status', '/kepler')}"]
    start, token, _ = client.dashboard_link.rsplit("/", 2)
    assert len(token) == 32
    pages = [
        "status",
        "kepler",
        "json/counts.json",
        "metrics",
        "info/main/workers.html",
        "statics/css/base.css",
    ]
    wrong_starts = (
        "", f"/{token[:-1]}", f"/{token}0", f"/%00{token}", f"/{'0' * 32}", f"//{token}", f"/.//{token}", "/%C3%A9",
    )  # fmt: skip
    for page in pages:
        assert code_of(f"{start}/{token}/{page}") == 200, page
        for wrong in wrong_starts:
            assert code_of(f"{start}{wrong}/{page}") == 403, (wrong, page)
    # Dask has it at the root alone, and it lists the token
    assert code_of(f"{start}/sitemap.json") == 403
    for page in ("status/ws", "kepler"):
        assert code_of(f"{start}/{page}", **WEBSOCKET) == 403
    assert code_of(start) == code_of(f"{start}/") == code_of(f"{start}/favicon.ico") == 403


def test_workers_import_no_module_from_a_folder_that_others_can_write_to(own):
    client, _, _ = own
    for folders in [sys.path, *client.run(lambda: sys.path).values()]:
        scratch = [
            Path(folder) for folder in folders if "scratch" in folder and os.path.exists(folder)
        ]
        assert scratch
        for folder in scratch:
            modes = [parent.stat().st_mode for parent in [folder, *folder.parents]]
            assert all(mode & 0o1000 or not mode & 0o022 for mode in modes), folder


def test_workers_do_not_read_the_frames_of_all_threads(own):
    """Where something does, it may stop forever: sys._current_frames() holds a lock while it collects mapped arrays."""
    client, _, _ = own

    def with_garbage():  # by value, since a worker has no module of tests
        import gc
        import mmap
        import sys
        import threading

        read = sys._current_frames

        def frames():
            gc.disable()
            for _ in range(1000):
                cycle = [mmap.mmap(-1, 4096)]
                cycle.append(cycle)
            gc.enable()
            return read()

        def starts():
            while True:
                thread = threading.Thread(target=int)
                thread.start()
                thread.join()

        sys._current_frames = frames
        for _ in range(2):
            threading.Thread(target=starts, daemon=True).start()

    def work():
        import time

        from distributed import get_worker

        time.sleep(0.3)
        worker = get_worker()
        return [
            name for name in worker.periodic_callbacks if "profile" in name
        ], worker.blocked_handlers

    worker = next(iter(client.scheduler_info(n_workers=-1)["workers"]))
    client.run(with_garbage, workers=[worker])
    assert client.submit(work, workers=[worker], pure=False).result(timeout=PATIENCE) == (
        [],
        ["call_stack"],
    )


def what_is_printed():
    loggers = map(logging.getLogger, ("distributed.worker", "tornado.application", "asyncio"))
    return [logger.name for logger in loggers if logger.isEnabledFor(logging.ERROR)]


def test_no_heartbeat_that_a_worker_has_left_behind_is_printed(own):
    client, _, _ = own
    assert set(map(tuple, client.run(what_is_printed).values())) == {()}
