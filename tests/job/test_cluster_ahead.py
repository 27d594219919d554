"""Workers that start while the graph is read: which runs have them, what they see, and how they end."""

import os
import threading
import time

import psutil
import pytest

from kepler_traverse.errors import InputError
from pipelines import engines
from pipelines.cli.options import parse_flags
from pipelines.cli.settings import merge_settings
from pipelines.cli.supervisor import UNWATCHED
from pipelines.run.engine import NOTHING_GIVEN
from pipelines.run.memory_plan import Machine
from pipelines.run.sizing import _refuse_missing_gpus
from pipelines.scheduling import cluster, cluster_ahead
from pipelines.scheduling.cluster_ahead import ClusterAhead, can_start_ahead
from pipelines.scheduling.errors import ClusterError
from pipelines.worker.plugin import cores_in
from tests.support.processes import PATIENCE


def settings_of(*flags):
    return merge_settings(
        *parse_flags(["edges.parquet", "--sources", "1", "--output", "out", *flags])
    )


@pytest.mark.parametrize(
    ("flags", "is_ahead"),
    [
        (["--workers", "2"], True),
        (["--workers", "auto"], False),
        (["--workers", "1"], False),
        (["--workers", "2", "--plan"], False),
        (["--workers", "2", "--resume"], False),
        (["--scheduler-address", "tls://127.0.0.1:1"], False),
    ],
)
def test_workers_start_ahead_where_the_settings_alone_say_that_there_are_some(flags, is_ahead):
    assert can_start_ahead(settings_of(*flags)) == is_ahead


def test_each_worker_has_a_gpu_of_its_own(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7,9")
    with cluster.cluster_for(settings_of(), "cuda", 2) as client:
        seen = client.run(lambda: os.environ["CUDA_VISIBLE_DEVICES"])
    assert sorted(seen.values()) == ["5", "7"]


@pytest.mark.parametrize(
    ("listed", "found"), [(None, ["0", "1"]), ("", ["0", "1"]), ("3", ["3"]), ("4,2,0", ["4", "2"])]
)
def test_gpus_are_those_that_the_user_lets_this_process_see(monkeypatch, listed, found):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if listed is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", listed)
    assert cluster.visible_gpus(2) == found


def test_more_workers_than_gpus_are_refused():
    machine = Machine(device="cuda", cores=8, n_gpus=2, available=10**9)
    _refuse_missing_gpus(settings_of("--workers", "2"), machine)
    _refuse_missing_gpus(settings_of(), machine)
    with pytest.raises(InputError, match=r"--workers 3 takes a GPU for each.*sees 2 GPUs"):
        _refuse_missing_gpus(settings_of("--workers", "3"), machine)


def test_cores_are_read_as_the_system_lists_them():
    assert cores_in("0-2,8") == {0, 1, 2, 8}
    with pytest.raises(ValueError, match="invalid"):
        cores_in("none")


def test_a_run_that_ends_while_its_workers_start_leaves_none_behind():
    before = set(psutil.Process().children(recursive=True))
    with engines.open_engine(settings_of("--workers", "2"), UNWATCHED, NOTHING_GIVEN):
        wait_for_a_child(before)
    assert not [
        child
        for child in set(psutil.Process().children(recursive=True)) - before
        if "spawn_main" in " ".join(child.cmdline()) and "tracker" not in " ".join(child.cmdline())
    ]
    assert "kepler-cluster" not in {thread.name for thread in threading.enumerate()}


def wait_for_a_child(before):
    until = time.monotonic() + PATIENCE
    while not set(psutil.Process().children(recursive=True)) - before:
        assert time.monotonic() < until
        time.sleep(0.01)


def test_workers_that_never_start_are_an_error_of_the_run(monkeypatch):
    def fails(*_):
        raise RuntimeError("no process")

    monkeypatch.setattr(cluster, "_cluster", fails)
    ahead = ClusterAhead(settings_of("--workers", "2"))
    ahead.start()
    with pytest.raises(ClusterError, match="the workers do not start: no process"):
        ahead.client()
    ahead.close()


def test_a_cluster_that_is_not_wanted_any_more_is_not_started_again(monkeypatch):
    begun = []
    is_closing = threading.Event()

    def fails(*_):
        begun.append(1)
        is_closing.wait(PATIENCE)
        raise RuntimeError("killed")

    monkeypatch.setattr(cluster, "_cluster", fails)
    monkeypatch.setattr(ClusterAhead, "_kill_workers", lambda _: is_closing.set())
    ahead = ClusterAhead(settings_of("--workers", "2"))
    ahead.start()
    while not begun:
        time.sleep(0.01)
    ahead.close()
    assert begun == [1]


class Child:
    """A child process of this one, as far as an end of a cluster looks."""

    def __init__(self, pid, name):
        self.pid = pid
        self.name = name
        self.is_killed = False

    def kill(self):
        self.is_killed = True


def test_workers_of_another_cluster_of_this_process_are_not_killed(monkeypatch):
    name = "Dask Worker process (from Nanny)"
    foreign, other, own = Child(1, name), Child(2, "a pool"), Child(3, name)
    children = [foreign]
    monkeypatch.setattr(cluster_ahead.multiprocessing, "active_children", lambda: children)
    ahead = ClusterAhead(settings_of("--workers", "2"))
    children += [other, own]
    ahead._kill_workers()
    assert [each.is_killed for each in (foreign, other, own)] == [False, False, True]
