"""Scheduling: tasks sized by time, few in flight, graphs built once, and clusters with certificates."""

import json
import os
import shutil
import time
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from distributed import Client, KilledWorker
from distributed.comm import CommClosedError

from kepler_traverse import graph_from_edges
from kepler_traverse.errors import OutputError
from kepler_traverse.graph.storage import write_graph
from pipelines.cli.command_line import parse_flags
from pipelines.cli.settings import read_settings
from pipelines.output.graph_cache import cached_graph
from pipelines.run import prepare, reading
from pipelines.scheduling import cluster
from pipelines.scheduling.cluster import pinned_settings
from pipelines.scheduling.dask_executor import DaskExecutor
from pipelines.scheduling.heartbeat import Heartbeat, read_heartbeat
from pipelines.scheduling.scheduler import MAX_FAILURES, MAX_LOSSES, WINDOW, Window
from pipelines.scheduling.task_size import MAX_BATCHES, MAX_TASK_SECONDS, TASK_SECONDS, TaskSizer
from tests.support.clusters import threads_of_this_process
from tests.support.jobs import Observer, manifest_of, summary_of, write_edges
from tests.support.processes import at_once, wait_until


def paced(*seconds):
    pace = TaskSizer()
    for value in seconds:
        pace.note(value)
    return pace


def test_the_first_tasks_hold_one_batch():
    assert TaskSizer().batches(left=10**6, workers=8) == 1


def test_the_first_tasks_of_workers_that_write_side_by_side_hold_more():
    assert TaskSizer(first=32).batches(left=10**6, workers=2) == 32
    assert TaskSizer(first=32).batches(left=20, workers=2) == 5
    assert TaskSizer(first=32).batches(left=20, workers=1) == 20


@pytest.mark.parametrize(
    ("seconds", "batches"), [(0.1, 30), (1.0, 3), (2.9, 1), (60.0, 1), (1e-9, MAX_BATCHES)]
)
def test_a_task_lasts_about_as_long_as_is_aimed_at(seconds, batches):
    assert paced(seconds).batches(left=10**6, workers=2) == batches


def test_tasks_are_longer_for_many_workers_so_that_one_scheduler_keeps_up():
    assert [paced(0.1).batches(left=10**6, workers=n) for n in (8, 300, 512, 4096)] == [
        30,
        30,
        51,
        100,
    ]


def test_a_task_is_sized_again_when_batches_get_slower_or_faster():
    pace = paced(*[0.1] * 100)
    for _ in range(100):
        pace.note(1.0)
    assert pace.batches(left=10**6, workers=2) == TASK_SECONDS / 1.0
    for _ in range(100):
        pace.note(0.01)
    assert pace.batches(left=10**6, workers=2) > 200


def test_task_size_stays_below_the_limit_with_one_slow_batch():
    assert paced(*[0.01] * 60, 5.0).batches(left=10**6, workers=2) * 5.0 <= MAX_TASK_SECONDS


def test_towards_the_end_tasks_get_smaller_so_that_workers_end_together():
    pace = paced(0.1)
    sizes = []
    left = 200
    while left:
        sizes.append(pace.batches(left, workers=4))
        left -= sizes[-1]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == 25
    assert sizes[-4:] == [1] * 4


def test_a_mark_says_where_a_task_is_and_goes_with_it(tmp_path):
    path = tmp_path / "mark"
    with Heartbeat(path) as heartbeat:
        assert read_heartbeat(path) is None, "nothing has begun"
        heartbeat.record(3)
        assert read_heartbeat(path) == (3, None, "", 3)
        heartbeat.record(3, None, 9)
        assert read_heartbeat(path) == (3, None, "", 9)
        heartbeat.record(4, 2**40)
        heartbeat.record_reason("é" * 1000)
        assert read_heartbeat(path)[:2] == (4, 2**40)
        assert set(read_heartbeat(path).reason) == {"é"}
        assert heartbeat.is_wanted()
        path.unlink()
        assert not heartbeat.is_wanted()
    assert read_heartbeat(path) is None


def _no_work(parts, seconds):
    time.sleep(seconds * len(parts))
    return [{"part": part, "summary": {"seconds": seconds}, "failed": []} for part in parts]


def test_futures_in_flight_are_few_and_are_released(tmp_path):
    observer = Observer()
    sizes = []
    held = []
    with (
        pinned_settings(),
        threads_of_this_process(n_workers=2) as two,
        Client(two, set_as_default=False) as client,
    ):

        def submit(task):
            sizes.append(len(task.parts))
            held.append(len(client.futures))
            return client.submit(_no_work, task.parts, 0.002, key=f"none-{task.number}", pure=False)

        Window(DaskExecutor(client, submit), observer, tmp_path).run(list(range(2000)))
        wait_until(lambda: not client.futures)  # the client forgets them in a thread of its own
    assert observer.parts == Counter(range(2000))
    assert max(held) <= WINDOW * 2
    assert sizes[0] == 1
    assert max(sizes) > 50
    assert len(sizes) < 120


class Future:
    """Of a task that a worker of ``Cluster`` has taken."""

    def __init__(self, status, outcomes=None):
        self.status = status
        self._outcomes = outcomes

    def add_done_callback(self, call):
        call(self)

    def result(self, timeout):  # noqa: ARG002
        return self._outcomes

    def release(self):
        pass


class Cluster:
    """Workers that search from the sources of all batches of a task together, and are lost with one batch."""

    status = "running"

    def __init__(self, deadly, status="cancelled"):
        self.deadly = deadly
        self._status = status
        self.tasks = []
        self.scheduler = SimpleNamespace(ncores=dict, ncores_running=dict, processing=dict)

    def sync(self, _question, **_):
        return {"one": ()}

    def submit(self, task):
        self.tasks.append((task.parts, task.isolate))
        if self.deadly not in task.parts or self.deadly in task.without:
            summary = {"seconds": 0.1}
            return Future(
                "finished",
                [{"part": part, "summary": summary, "failed": []} for part in task.parts],
            )
        heartbeat = Heartbeat(task.heartbeat)  # left behind by a worker that dies
        heartbeat.__enter__()
        heartbeat.record(task.parts[0], self.deadly if task.isolate else None, task.parts[-1])
        return Future(self._status)


@pytest.mark.parametrize("deadly", [0, 11, 31])
def test_batches_of_a_lost_worker_are_bisected_until_the_deadly_one_is_found(tmp_path, deadly):
    workers = Cluster(deadly)
    observer = Observer("failed", "its result is gone")
    Window(DaskExecutor(workers, workers.submit), observer, tmp_path, first=32).run(list(range(32)))
    assert observer.parts == Counter(range(32))
    assert observer.failures == [(deadly, [deadly], f"its result is gone ({MAX_FAILURES} times)")]
    lost = [parts for parts, _ in workers.tasks if deadly in parts]
    assert [len(parts) for parts in lost] == [32, 16, 8, 4, 2, 1, *[1] * MAX_FAILURES, 1]
    assert [parts for parts, isolate in workers.tasks if isolate] == [(deadly,)] * (
        MAX_FAILURES + 1
    )
    assert set(observer.again) == set(range(32))
    assert all(message.startswith("given out again: batch") for message in observer.notices), (
        "a lost batch is reported"
    )
    assert any(
        "0, 1, 2, 3, 4 and 27 more: its result is gone" in message for message in observer.notices
    )


class ClosedAtOneBatch(Cluster):
    """Workers that end at the first tasks with one batch, of which the scheduler has the events that it has in Dask."""

    def __init__(self, deadly, actions, times):
        super().__init__(deadly)
        self.left = times
        self.scheduler.events = lambda **_: [(0.0, {"action": action}) for action in actions]

    def sync(self, question, **what):
        return question(**what) if question is self.scheduler.events else super().sync(question)

    def submit(self, task):
        future = super().submit(task)
        if future.status == "finished":
            return future
        self.left -= 1
        if self.left < 0:
            task.heartbeat.unlink()
            return Future(
                "finished",
                [{"part": part, "summary": {"seconds": 0.1}, "failed": []} for part in task.parts],
            )
        future.status = "error"
        future.exception = lambda: KilledWorker(
            task.number, SimpleNamespace(address="tcp://10.0.0.1:1"), 0
        )
        return future


@pytest.mark.parametrize(
    ("actions", "is_blamed"),
    [
        (["add-worker", "closing-worker", "remove-worker"], False),
        (["add-worker", "remove-worker"], True),
        # at the same address
        (["add-worker", "closing-worker", "remove-worker", "add-worker", "remove-worker"], True),
    ],
)
def test_a_source_is_not_blamed_for_workers_that_close(tmp_path, actions, is_blamed):
    """They say so before, unlike those that die: a cluster has fewer, or a spot machine is taken away."""
    workers = ClosedAtOneBatch(3, actions, 2 * MAX_FAILURES)
    observer = Observer("failed", "its worker died")
    Window(DaskExecutor(workers, workers.submit), observer, tmp_path).run(list(range(5)))
    failures = [(3, [3], f"its worker died ({MAX_FAILURES} times)")]
    assert (observer.failures, bool(observer.again)) == (failures if is_blamed else [], is_blamed)
    assert observer.parts == Counter(range(5))


def test_a_batch_whose_result_was_lost_is_not_blamed_for_the_heartbeat_of_the_worker_that_computes_it_again(
    tmp_path,
):
    workers = Cluster(2, "lost")
    with pytest.raises(cluster.ClusterError, match=f"workers have been lost {MAX_LOSSES} times"):
        Window(DaskExecutor(workers, workers.submit), Observer(), tmp_path).run(list(range(4)))


class ClientOfDyingWorkers:
    """Whose connection to a worker breaks some times while a plugin is set up."""

    def __init__(self, times):
        self.left = times

    def register_plugin(self, plugin, name):  # noqa: ARG002
        self.left -= 1
        if self.left >= 0:
            raise CommClosedError("in <TCP>: Stream is closed")


def test_a_worker_that_dies_while_it_loads_the_graph_is_waited_for_and_not_for_ever():
    client = ClientOfDyingWorkers(2)
    cluster.give_plugin(client, None, "plugin")
    assert client.left == -1
    with pytest.raises(
        cluster.ClusterError,
        match=r"workers die while they load the graph .*Stream is closed.*--resume",
    ):
        cluster.give_plugin(ClientOfDyingWorkers(10**6), None, "plugin")


@pytest.fixture
def edges(tmp_path):
    return write_edges(
        tmp_path / "edges.parquet", *np.random.default_rng(4).integers(0, 200, (2, 800))
    )


def prepared(*argv):
    return prepare.prepare(read_settings(*parse_flags([str(word) for word in argv])))


def test_the_next_run_of_the_same_files_takes_its_graph_from_the_cache(
    edges, tmp_path, capsys, monkeypatch
):
    flags = [
        edges,
        "--device",
        "cpu",
        "--workers",
        1,
        "--graph-cache",
        tmp_path / "cache",
        "--output",
        tmp_path / "out",
    ]
    summary_of(capsys, *flags, "--sources", "1,2", "--json", "--no-report")
    assert not (tmp_path / "out" / "_graph").exists()
    graph = manifest_of(tmp_path / "out")["graph"]
    assert not graph["reused"]
    monkeypatch.setattr(
        reading, "read_graph", lambda *_, **__: pytest.fail("the edge list was read again")
    )
    for more in ([], ["--plan"]):
        again = prepared(*flags, "--sources", "3", *more)
        assert again.reused
        assert again.graph.fingerprint == graph["fingerprint"]
    with pytest.raises(pytest.fail.Exception, match="read again"):  # other settings, another graph
        prepared(*flags, "--undirected", "--sources", "3")


def test_a_plan_puts_nothing_into_the_cache(edges, tmp_path):
    prepared(
        edges, "--device", "cpu", "--graph-cache", tmp_path / "cache", "--sources", "3", "--plan"
    )
    assert not (tmp_path / "cache").exists()


def test_an_edge_list_that_was_written_anew_is_read_anew_also_where_its_size_and_date_are_the_same(
    edges,
):
    settings = read_settings(*parse_flags([str(edges), "--sources", "1", "--output", "out"]))
    first = reading.digest_inputs(settings)
    assert reading.digest_inputs(settings) == first
    before = edges.stat()
    edges.write_bytes(edges.read_bytes())
    os.utime(edges, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert reading.digest_inputs(settings) != first


GRAPH = graph_from_edges(np.array([1, 2, 3]), np.array([2, 3, 1]))
ORIGIN = "a" * 64


def builder(built, is_due=lambda: True):
    def build():
        built.append(GRAPH)
        wait_until(is_due)
        return GRAPH

    return build


def damage_an_array(folder):
    path = folder / "targets.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"\1")


def cut_an_array(folder):
    path = folder / "offsets.npy"
    path.write_bytes(path.read_bytes()[:-8])


def lose_the_end(folder):
    (folder / "meta.json").unlink()


def change_the_end(folder):
    meta = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").write_text(json.dumps(meta | {"directed": False}))


@pytest.mark.parametrize(
    "damage", [damage_an_array, cut_an_array, lose_the_end, change_the_end, shutil.rmtree]
)
def test_a_damaged_graph_in_the_cache_is_built_again_and_never_used(tmp_path, damage):
    built = []
    observer = []
    _, folder, found = cached_graph(tmp_path, ORIGIN, "cpu", builder(built), observer.append)
    assert not found
    damage(folder)
    (tmp_path / f"{folder.name}.123.tmp").mkdir()  # of a run that was killed while it wrote
    graph, _, found = cached_graph(tmp_path, ORIGIN, "cpu", builder(built), observer.append)
    assert (len(built), found) == (2, False)
    assert graph.fingerprint == GRAPH.fingerprint
    graph, _, found = cached_graph(tmp_path, ORIGIN, "cpu", builder(built), observer.append)
    assert (len(built), found, graph.fingerprint) == (2, True, GRAPH.fingerprint)
    assert all("damaged" in message for message in observer)
    assert sorted(path.name for path in tmp_path.iterdir()) == [folder.name, f"{folder.name}.lock"]


def test_graph_cache_builds_once_the_graph_of_two_runs(tmp_path):
    built = []
    observer = []
    found = []

    def want():
        found.append(
            cached_graph(
                tmp_path, ORIGIN, "cpu", builder(built, lambda: len(observer) == 2), observer.append
            )[2]
        )

    at_once(*[want] * 3)
    assert len(built) == 1
    assert sorted(found) == [False, True, True]
    assert all("another run builds the same graph" in message for message in observer)


def test_a_graph_of_another_edge_list_is_not_taken_for_this_one(tmp_path):
    origin = ORIGIN[:16] + "b" * 48  # the same name in the cache
    _, folder, _ = cached_graph(tmp_path, ORIGIN, "cpu", builder([]), print)
    built = []
    cached_graph(tmp_path, origin, "cpu", builder(built), print)
    assert built
    assert json.loads((folder / "meta.json").read_text())["origin"] == origin


def test_a_cache_that_cannot_be_written_to_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match=r"--graph-cache .*file cannot be written to"):
        cached_graph(tmp_path / "file", ORIGIN, "cpu", builder([]), print)


def test_a_graph_that_cannot_be_written_whole_leaves_nothing(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("kepler_traverse.graph.storage.np.save", full)
    with pytest.raises(OSError, match="No space left"):
        write_graph(GRAPH, tmp_path / "graph")
    assert not list(tmp_path.iterdir())
