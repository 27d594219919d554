"""Workers that join and leave during a run, as those of an adaptive cluster do: nothing is lost, and no batch is blamed."""

import contextlib
import json
import os
import signal
import threading
import time
from unittest.mock import Mock

import pytest
from distributed import Client, LocalCluster

from pipelines.batch_sources import main
from pipelines.output.run_folder import MANIFEST
from pipelines.output.store import Store, open_store
from pipelines.scheduling.cluster import pinned_settings
from pipelines.scheduling.dask_executor import DaskExecutor
from pipelines.scheduling.existing_cluster import check_newcomers, refuse_unfit_workers
from pipelines.scheduling.heartbeat import Heartbeat, read_heartbeat
from pipelines.scheduling.scheduler import WINDOW, Window
from tests.job.test_worker_failures import Fault, edges  # noqa: F401
from tests.support.jobs import Observer
from tests.support.object_store import served, skip_without_server
from tests.support.processes import PATIENCE, wait_until


class Slows(Fault):
    def strike(self, number):  # noqa: ARG002
        time.sleep(0.1)


def test_a_worker_that_retires_does_not_end_the_task_of_the_one_that_got_it(tmp_path):
    """Dask gives the tasks of a worker that is closed gracefully to others, while its thread goes on."""
    path = tmp_path / "mark"
    with Heartbeat(path) as retiring:
        retiring.record(3)
        heartbeat = Heartbeat(path).__enter__()
        heartbeat.record(4)
        assert (retiring.is_wanted(), heartbeat.is_wanted()) == (False, True)
    assert (read_heartbeat(path).part, heartbeat.is_wanted()) == (4, True)
    path.unlink()  # by the driver
    assert not heartbeat.is_wanted()
    heartbeat.__exit__()


def test_tasks_wait_for_a_worker_where_there_is_none(tmp_path):
    """An adaptive cluster starts workers for tasks alone."""
    submit = Mock(side_effect=lambda _: Mock())
    window = Window(DaskExecutor(None, submit), Observer(), tmp_path)
    window._monitor.n_running = 0
    window._waiting.extend(range(100))
    window._fill()
    assert submit.call_count == WINDOW


@pytest.mark.parametrize("ask", [check_newcomers, refuse_unfit_workers])
def test_a_worker_that_has_left_is_not_asked_again_and_lacks_nothing(ask):
    """Each question to a worker that is gone takes half a minute, in which no task is given out."""
    client = Mock(run=Mock(return_value={"tcp://10.0.0.1:1": OSError("it does not answer")}))
    if ask is check_newcomers:
        ask(client, ["tcp://10.0.0.1:1"], 0, "s3://bucket/run")
        assert client.run.call_count == 1
    else:
        ask(client, "cpu", [])


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["worker left", "worker died"])
def test_dask_says_which_worker_was_closed_and_which_was_killed(kind):
    here = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "memory_limit": 0}
    with (
        pinned_settings(),
        LocalCluster(n_workers=1, threads_per_worker=1, **here) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        future, (nanny,) = client.submit(time.sleep, 600), cluster.workers.values()
        wait_until(lambda: any(worker.processing for worker in cluster.scheduler.workers.values()))
        if kind == "worker left":  # what SIGTERM does
            cluster.sync(nanny.close)
        else:
            os.kill(nanny.pid, signal.SIGKILL)
        assert DaskExecutor(client, None).classify_error(future.exception(timeout=PATIENCE)) == kind


@pytest.mark.exhaustive
@pytest.mark.parametrize("place", ["folder", "store"])
def test_workers_come_and_go_and_the_run_is_that_of_one_process(
    edges,  # noqa: F811
    tmp_path,
    monkeypatch,
    capsys,
    place,
):
    """The cluster begins without a worker, and has none again on the way. One worker is killed."""
    options = "--random-sources 240 --seed 1 --batch-size 4 --device cpu --no-report"
    words = [str(edges), *options.split()]
    assert main([*words, "--output", str(tmp_path / "alone")]) == 0
    with contextlib.ExitStack() as stack:
        if place == "store":
            skip_without_server()
            monkeypatch.setenv("KEPLER_CACHE_DIR", str(tmp_path / "copies"))
            stack.enter_context(served(monkeypatch))
        out = open_store("s3://bucket/run" if place == "store" else tmp_path / "out")
        stack.enter_context(pinned_settings())
        env = {
            name: value
            for name, value in os.environ.items()
            if name.startswith(("AWS_", "KEPLER_"))
        }
        here = {
            "host": "127.0.0.1",
            "dashboard_address": "127.0.0.1:0",
            "memory_limit": 0,
            "env": env,
        }
        cluster = stack.enter_context(LocalCluster(n_workers=0, threads_per_worker=1, **here))
        stack.enter_context(Client(cluster, set_as_default=False)).register_plugin(
            Slows(range(300))
        )
        often = {"interval": "200ms", "target_duration": "1s"}
        cluster.adapt(minimum=0, maximum=3, wait_count=50, **often)
        code, moments = [], {}

        def wait_for_parts(moment):
            least = sum(name.startswith("part-") for name in out.names()) + 3
            wait_until(
                lambda: sum(name.startswith("part-") for name in out.names()) >= least or code
            )
            moments[moment] = not code

        async def busy():
            """Process ids of workers with tasks; in the thread in which workers come and go."""
            there = [
                worker.name for worker in cluster.scheduler.workers.values() if worker.processing
            ]
            return [
                cluster.workers[name].pid
                for name in there
                if name in cluster.workers and cluster.workers[name].pid
            ]

        def churn():
            wait_for_parts("begun")
            cluster.sync(
                cluster._adaptive.scale_down,
                [worker.name for worker in cluster.scheduler.workers.values()][:1],
            )
            wait_for_parts("one closed")
            cluster.adapt(minimum=0, maximum=0, wait_count=1, **often)
            wait_until(lambda: not cluster.scheduler.workers)
            cluster.adapt(minimum=0, maximum=3, wait_count=50, **often)
            wait_for_parts("all closed")
            os.kill(wait_until(lambda: cluster.sync(busy))[0], signal.SIGKILL)
            moments["one killed"] = not code

        churning = threading.Thread(target=churn)
        churning.start()
        code.append(
            main([*words, "--output", str(out), "--scheduler-address", cluster.scheduler_address])
        )
        churning.join()
        found, expected = (
            json.loads(each.get(MANIFEST, 10**9)) for each in (out, Store(tmp_path / "alone"))
        )
        names = set(out.names())
    assert code == [0], capsys.readouterr().err
    assert moments == dict.fromkeys(["begun", "one closed", "all closed", "one killed"], True), (
        "the run ended before"
    )
    assert found["digest"] == expected["digest"]
    assert [part["sha256"] for part in found["parts"]] == [
        part["sha256"] for part in expected["parts"]
    ]
    assert found["failed"] == []
    # One was killed. Dask also kills those that are closed at once, if they hold results and no other is left.
    assert len(found["retried"]) <= 1 + 3
    assert {each["why"] for each in found["retried"]} <= {"its worker died"}
    assert names == {"_SUCCESS", MANIFEST, *(part["file"] for part in found["parts"])}
