"""Workers of an existing cluster and of a new one: the error names those that cannot run the job, before it starts."""

import contextlib
import json
import os
import sys
from types import SimpleNamespace

import dask
import numpy as np
import pytest
from distributed import Client

from kepler_traverse.errors import CapacityError
from pipelines.cli.command_line import parse_flags
from pipelines.cli.options import Settings
from pipelines.cli.settings import read_settings
from pipelines.scheduling import cluster, package_version
from pipelines.scheduling import scheduler as scheduling_scheduler
from pipelines.scheduling.dask_executor import DaskExecutor
from pipelines.scheduling.errors import ClusterError
from pipelines.scheduling.existing_cluster import (
    WorkerMemory,
    check_existing,
    check_newcomers,
    refuse_small_workers,
    version_here,
)
from pipelines.scheduling.heartbeat import Heartbeat
from pipelines.scheduling.scheduler import Window
from tests.support.clusters import threads_of_this_process
from tests.support.jobs import Observer, call, write_edges
from tests.support.processes import PATIENCE, SILENT, started, wait_until

MIB = 2**20


@pytest.fixture
def edges(tmp_path):
    return write_edges(tmp_path / "edges.parquet", np.arange(50), np.arange(1, 51))


def run(capsys, edges, *argv):
    return call(capsys, edges, "--sources", "0,1", "--device", "cpu", "--no-report", *argv)


@pytest.mark.parametrize("more", [[], ["--plan"]], ids=["run", "plan"])
def test_a_worker_whose_memory_limit_is_below_the_plan_is_refused_before_anything_is_written(
    edges, tmp_path, capsys, more
):
    with threads_of_this_process(n_workers=1, memory_limit="200MiB") as small:
        (worker,) = small.scheduler_info["workers"]
        where = ["--scheduler-address", small.scheduler_address, "--output", tmp_path / "out"]
        code, out, err = run(capsys, edges, *where, *more)
    assert (code, out) == (2, ""), err
    (line,) = err.splitlines()
    assert line.startswith(f"error: worker {worker} cannot run this job: on host ")
    assert "its memory limit is 200 MiB, of which Dask lets it use 160 MiB" in line
    assert "--memory-limit 0" in line
    assert not (tmp_path / "out").exists()


def test_the_limit_that_the_message_names_is_enough():
    found = {
        "tcp://10.0.0.2:1": WorkerMemory(
            host="b", limit=1000 * MIB, usable=800 * MIB, available=2**40
        )
    }
    with pytest.raises(
        CapacityError, match=r"the plan needs 1000 MiB in each worker .* or with 1\.2 GiB at least"
    ):
        refuse_small_workers(found, 600 * MIB, 400 * MIB)
    refuse_small_workers(found, 600 * MIB, 200 * MIB)
    unlimited = {"tcp://10.0.0.2:1": WorkerMemory(host="b", limit=0, usable=0, available=2**40)}
    refuse_small_workers(unlimited, 600 * MIB, 400 * MIB)


def test_the_memory_that_counts_is_that_of_each_host_and_not_of_the_driver():
    def of(host, port):
        return f"tcp://{host}:{port}", WorkerMemory(
            host=host, limit=0, usable=0, available=1000 * MIB
        )

    on_three_hosts = dict(of(host, port) for host in "abc" for port in (1, 2))
    refuse_small_workers(on_three_hosts, 500 * MIB, 200 * MIB)  # 1.7 GiB in all
    with pytest.raises(CapacityError, match=r"host c has 1000 MiB .* its 3 workers need 1\.1 GiB"):
        refuse_small_workers(on_three_hosts | dict([of("c", 3)]), 500 * MIB, 200 * MIB)


def test_workers_on_many_hosts_are_planned_beyond_the_memory_of_the_driver(
    edges, tmp_path, capsys, monkeypatch
):
    """Fifty thousand workers would not fit this machine; on hosts of their own they do."""
    memory = WorkerMemory(host="", limit=0, usable=0, available=2**40)
    hosts = {
        f"tcp://{i}:1": SimpleNamespace(**(vars(memory) | {"host": str(i)})) for i in range(50_000)
    }
    monkeypatch.setattr("pipelines.scheduling.existing_cluster.survey", lambda *_: hosts)
    words = [
        "--scheduler-address",
        "tcp://nowhere:1",
        "--output",
        tmp_path / "out",
        "--plan",
        "--json",
    ]
    code, out, err = run(capsys, edges, *words)
    assert code == 0, err
    assert json.loads(out)["workers"] == len(hosts)


@contextlib.contextmanager
def worker_with(scheduler, folder, **modules):
    """A worker process that finds other modules under the names of this package."""
    for name, text in modules.items():
        path = folder / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    # Of an editable install the import system would find the package all the same.
    without = "not getattr(finder, '__module__', '').startswith('__editable__')"
    (folder / "sitecustomize.py").write_text(
        f"import sys\nsys.meta_path[:] = [finder for finder in sys.meta_path if {without}]\n"
    )
    command = [sys.executable, "-m", "distributed.cli.dask_worker", scheduler, "--host", "127.0.0.1", "--no-nanny",
               "--no-dashboard", "--nthreads", "1", "--local-directory", str(folder)]  # fmt: skip
    with started(command, cwd=folder, env=os.environ | {"PYTHONPATH": str(folder)}, **SILENT):
        yield


OTHER = "def version_here():\n    return '0.0.9, sources 000000000000'\n"


@pytest.mark.parametrize(
    ("modules", "words"),
    [
        ({"kepler_traverse____init__": ""},
         ["lacks this package, or has another version", "No module named", "install what this"]),
        (
            {
                "kepler_traverse____init__": "",
                "kepler_traverse__pipelines____init__": "",
                "kepler_traverse__pipelines__scheduling____init__": "",
                "kepler_traverse__pipelines__scheduling__existing_cluster": OTHER,
            },
            ["has another version of this package (0.0.9, sources 000000000000) than this job (", "install the same one"],
        ),
    ],
    ids=["none", "another"],
)  # fmt: skip
def test_a_worker_without_this_package_or_with_another_version_is_refused_by_name(
    edges, tmp_path, capsys, modules, words
):
    folder = tmp_path / "there"
    folder.mkdir()
    with (
        threads_of_this_process(n_workers=0) as empty,
        worker_with(empty.scheduler_address, folder, **modules),
    ):
        with Client(empty, set_as_default=False) as client:
            client.wait_for_workers(1, timeout=PATIENCE)
            (worker,) = client.scheduler_info()["workers"]
            with pytest.raises(
                ClusterError,
                match=f"worker {worker} has joined and cannot run this job: .*--resume",
            ):
                check_newcomers(client, [worker], 0)
        code, out, err = run(
            capsys,
            edges,
            "--scheduler-address",
            empty.scheduler_address,
            "--output",
            tmp_path / "out",
        )
    assert (code, out) == (2, ""), err
    (line,) = err.splitlines()
    assert line.startswith(f"error: worker {worker} cannot run this job: on host 127.0.0.1 it ")
    assert all(word in line for word in [*words, version_here()]), line
    assert not (tmp_path / "out").exists()


def test_a_worker_of_another_version_that_joins_unseen_writes_nothing(monkeypatch):
    from pipelines.worker.plugin import TraversalPlugin

    monkeypatch.setattr(
        "pipelines.worker.traversal_worker.version_here", lambda: "0.0.9, sources 000000000000"
    )
    plugin = TraversalPlugin(
        SimpleNamespace(threads=1, version=version_here(), url="", output="out"), "plugin"
    )
    with pytest.raises(
        ClusterError, match=r"has another version of this package \(0\.0\.9, .*\) than the job"
    ):
        plugin._load()
    assert plugin.loaded is None


def test_the_version_changes_with_any_source(monkeypatch, tmp_path):
    before = version_here()
    (tmp_path / "pipelines" / "scheduling").mkdir(parents=True)
    (tmp_path / "pipelines" / "scheduling" / "package_version.py").write_text("# another\n")
    monkeypatch.setattr(
        package_version,
        "__file__",
        str(tmp_path / "pipelines" / "scheduling" / "package_version.py"),
    )
    assert package_version.version_here.__wrapped__() != before


def test_a_worker_that_is_small_and_joins_later_ends_the_run_by_name():
    with (
        threads_of_this_process(n_workers=1, memory_limit="200MiB") as small,
        Client(small, set_as_default=False) as client,
    ):
        (worker,) = small.scheduler_info["workers"]
        check_newcomers(client, [worker], 100 * MIB)
        with pytest.raises(
            ClusterError, match=f"worker {worker} has joined .* memory limit is 200 MiB"
        ):
            check_newcomers(client, [worker], 300 * MIB)


def test_workers_that_dask_has_paused_are_named_and_end_the_run(
    edges, tmp_path, capsys, monkeypatch
):
    """This process, whose threads they are, uses more than the limit, so they are paused from the start."""
    monkeypatch.setattr(
        "pipelines.scheduling.existing_cluster.refuse_small_workers", lambda *_: None
    )
    monkeypatch.setattr("pipelines.scheduling.worker_monitor._LOOK_EVERY", 0.2)
    out = tmp_path / "out"
    with threads_of_this_process(n_workers=1, memory_limit="60MiB") as small:
        (worker,) = small.scheduler_info["workers"]
        with Client(small, set_as_default=False) as client:
            wait_until(lambda: client.scheduler_info()["workers"][worker]["status"] == "paused")
        where = ["--scheduler-address", small.scheduler_address, "--worker-timeout", 1]
        code, _, err = run(capsys, edges, *where, "--output", out)
    lines = err.splitlines()
    assert code == 1
    assert any(
        line.startswith(f"paused by Dask: worker {worker}: ") and "limit of 60" in line
        for line in lines
    ), err
    assert lines[-1].startswith("error: all 1 workers have been paused for 1 seconds")
    assert "--memory-limit" in lines[-1]
    assert not list(out.glob("part-*"))


class InFlight:
    key = "key"


class Scheduler:
    """One whose workers are what a test says, look by look."""

    status = "running"

    def __init__(self, looks):
        self.looks = iter(looks)
        self.scheduler = SimpleNamespace(
            ncores=lambda: self.now,
            ncores_running=lambda: self.running,
            processing=dict,
            identity=self.identity,
        )

    def identity(self):
        facts = {"status": "paused", "metrics": {"memory": 350 * MIB}, "memory_limit": 380 * MIB}
        return {"workers": dict.fromkeys(self.now, facts)}

    def sync(self, question, **_):
        return question()

    def look(self, window):
        self.now, self.running = next(self.looks)
        window._monitor.check_soon()
        window._look_after_workers()


def test_events_of_workers_are_reported_once(tmp_path):
    looks = [
        ("ab", "ab"),
        ("b", "b"),
        ("bc", "bc"),
        ("bc", "b"),
        ("bc", "b"),
        ("bc", "bc"),
        ("bc", "bc"),
    ]
    scheduler = Scheduler(looks)
    observer = Observer()
    joined = []
    executor = DaskExecutor(scheduler, None)
    executor.admit = joined.append
    window = Window(executor, observer, tmp_path)
    for _ in looks:
        scheduler.look(window)
    more = "start the workers with a larger --memory-limit, or 0 for none"
    assert observer.notices == [
        "lost: worker a; 1 worker now",
        "joined: worker c; 2 workers now",
        "paused by Dask: worker c: c uses 350 MiB of its memory limit of 380 MiB, and begins no task until it uses less; "
        + more,
        "no longer paused: worker c",
    ]
    assert joined == [["c"]]


def test_workers_that_are_lost_at_once_are_one_line(tmp_path):
    scheduler = Scheduler([(set(map(str, range(100, 200))), ()), ("9", "9")])
    observer = Observer()
    window = Window(DaskExecutor(scheduler, None), observer, tmp_path)
    scheduler.look(window)
    scheduler.look(window)
    assert "lost: workers 100, 101, 102, 103, 104 and 95 more; 1 worker now" in observer.notices


def test_a_paused_worker_that_is_at_a_batch_is_waited_for(tmp_path, monkeypatch):
    scheduler = Scheduler([("a", "")] * 3)
    window = Window(
        DaskExecutor(scheduler, None), Observer(), tmp_path, Settings(edges=[], worker_timeout=5)
    )
    task = scheduling_scheduler.Task(
        number=1, parts=(0,), isolate=False, without=frozenset(), heartbeat=tmp_path / "mark"
    )
    window._in_flight[InFlight()] = task
    scheduler.look(window)
    now = scheduling_scheduler.time.monotonic()
    monkeypatch.setattr(scheduling_scheduler.time, "monotonic", lambda: now + 60)
    with Heartbeat(task.heartbeat) as heartbeat:
        heartbeat.record(0)
        scheduler.look(window)
    with pytest.raises(ClusterError, match="all 1 workers have been paused for 5 seconds"):
        scheduler.look(window)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ModuleNotFoundError("No module named 'pipelines'"),
         "a worker lacks a package .*No module named 'pipelines'.*--resume"),
        (ClusterError("another version"), "another version"),
    ],
)  # fmt: skip
def test_a_worker_that_cannot_take_a_task_apart_ends_the_run_and_blames_no_source(
    tmp_path, error, words
):
    window = Window(DaskExecutor(None, None), Observer(), tmp_path)
    task = scheduling_scheduler.Task(
        number=1, parts=(0,), isolate=False, without=frozenset(), heartbeat=tmp_path / "mark"
    )
    with pytest.raises(ClusterError, match=words):
        window._on_task_error(task, error)


def settings(*more):
    return read_settings(*parse_flags(["edges.csv", "--sources", "1", "--output", "out", *more]))


def test_workers_that_the_profiler_can_stop_are_noted(capsys):
    with (
        dask.config.set({"distributed.worker.profile.enabled": True}),
        threads_of_this_process(n_workers=1) as one,
    ):
        check_existing(settings("--scheduler-address", one.scheduler_address), "cpu", [])
    is_noted = (
        "start them with DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED=False"
        in capsys.readouterr().err
    )
    assert is_noted == (sys.version_info < (3, 12))


def start_fails(times, sound):
    """Starts a cluster after a worker has died so many times while it started."""

    def start(*how):
        start.calls += 1
        if start.calls <= times:
            raise RuntimeError("Cluster failed to start") from OSError(
                "Nanny failed to start worker process"
            )
        return sound(*how)

    start.calls = 0
    return start


def test_workers_that_die_while_they_start_are_started_again(monkeypatch, capsys):
    monkeypatch.setattr(cluster, "Client", lambda *_, **__: contextlib.nullcontext("a client"))
    monkeypatch.setattr(cluster, "_cluster", start_fails(2, lambda *_: contextlib.nullcontext()))
    with cluster.cluster_for(settings(), "cpu", 1) as client:
        assert client == "a client"
    again = "the workers do not start: Nanny failed to start worker process; they are started again"
    assert capsys.readouterr().err.splitlines() == [again] * 2


def test_workers_that_never_start_are_one_message(monkeypatch):
    start = start_fails(10**6, None)
    monkeypatch.setattr(cluster, "_cluster", start)
    message = r"the workers do not start: Nanny failed to start worker process \(3 times\); run again with --resume"
    with pytest.raises(ClusterError, match=message), cluster.cluster_for(settings(), "cpu", 1):
        pass
    assert start.calls == 3
