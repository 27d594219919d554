"""Worker processes without Dask: they start early, are private, get a GPU each, and end with their driver."""

import contextlib
import os
import re
import signal
import sys
import tempfile
from pathlib import Path

import psutil
import pytest

from kepler_traverse.errors import InputError
from pipelines import engines
from pipelines.batch_sources import main
from pipelines.cli.command_line import parse_flags
from pipelines.cli.settings import merge_settings
from pipelines.cli.supervisor import UNWATCHED
from pipelines.run.engine import NO_INPUTS
from pipelines.run.memory_plan import Machine
from pipelines.run.sizing import _refuse_missing_gpus
from pipelines.scheduling import worker_processes
from pipelines.scheduling.errors import ClusterError
from pipelines.scheduling.executor import Task
from pipelines.scheduling.gpu_pool import visible_gpus
from pipelines.scheduling.worker_processes import (
    WorkerDiedError,
    WorkerProcesses,
    begun_ahead,
    plain_error,
    workers_ahead,
)
from pipelines.worker.own_gpu import parse_cores
from tests.support.fake_workers import FakeWorker, OpensGate, Unreadable
from tests.support.jobs import manifest_of, parts_of, random_edges
from tests.support.processes import PATIENCE, session_of, started, wait_until


def settings_of(*flags):
    return merge_settings(
        *parse_flags(["edges.parquet", "--sources", "1", "--output", "out", *flags])
    )


@pytest.mark.parametrize(
    ("flags", "n_gpus", "ahead"),
    [
        (["--workers", "2"], 0, 2),
        (["--workers", "auto"], 1, None),
        (["--workers", "auto"], 2, 0),
        (["--workers", "auto", "--device", "cpu"], 2, None),
        (["--workers", "1"], 2, None),
        (["--workers", "2", "--plan"], 2, None),
        (["--workers", "2", "--resume"], 2, None),
        (["--workers", "2", "--dashboard-address", "127.0.0.1:0"], 2, None),
        (["--workers", "2", "--engine", "cugraph-mg"], 2, None),
        (["--scheduler-address", "tls://127.0.0.1:1"], 2, None),
    ],
)
def test_workers_start_ahead_where_there_are_or_may_be_some(monkeypatch, flags, n_gpus, ahead):
    monkeypatch.setattr(worker_processes, "count_gpu_files", lambda: n_gpus)
    assert workers_ahead(settings_of(*flags)) == ahead
    monkeypatch.setattr(WorkerProcesses, "start", lambda _self: None)
    with begun_ahead(parse_flags(["edges.parquet", *flags])[0]) as begun:
        assert (begun is None) == (ahead is None)


def test_a_template_that_begins_before_the_settings_are_checked_ends_with_them(monkeypatch, capsys):
    templates = []

    def start(self):
        start_it(self)
        templates.append(self._template)

    start_it = WorkerProcesses.start
    monkeypatch.setattr(WorkerProcesses, "start", start)
    assert main(["edges.parquet", "--sources", "1", "--workers", "2"]) == 2  # no --output
    assert "--output" in capsys.readouterr().err
    (template,) = templates
    assert template.poll() is not None


@pytest.mark.parametrize(
    ("listed", "found"), [(None, ["0", "1"]), ("", ["0", "1"]), ("3", ["3"]), ("4,2,0", ["4", "2"])]
)
def test_gpus_are_those_that_the_user_lets_this_process_see(monkeypatch, listed, found):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if listed is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", listed)
    assert visible_gpus(2) == found


def test_more_workers_than_gpus_are_refused():
    machine = Machine(device="cuda", cores=8, n_gpus=2, available=10**9)
    _refuse_missing_gpus(settings_of("--workers", "2"), machine)
    _refuse_missing_gpus(settings_of(), machine)
    with pytest.raises(InputError, match=r"--workers 3 takes a GPU for each.*sees 2 GPUs"):
        _refuse_missing_gpus(settings_of("--workers", "3"), machine)


def test_cores_are_read_as_the_system_lists_them():
    assert parse_cores("0-2,8") == {0, 1, 2, 8}
    with pytest.raises(ValueError, match="invalid"):
        parse_cores("none")


@contextlib.contextmanager
def processes_of(worker, n_workers=2, device="cpu"):
    with contextlib.closing(WorkerProcesses()) as processes:
        processes.start()
        processes.add(n_workers, device)
        processes.give(worker, lambda task: task.parts)
        yield processes


def ended(future):
    assert future._end.wait(PATIENCE)
    return future


class Ask:
    """Gives tasks to processes, by the words of ``FakeWorker``."""

    def __init__(self, processes):
        self.processes = processes
        self._number = 0

    def submit(self, *words):
        self._number += 1
        return self.processes.submit(
            Task(
                number=self._number,
                parts=words,
                isolate=False,
                without=frozenset(),
                heartbeat=os.devnull,
            )
        )

    def __call__(self, *words):
        return ended(self.submit(*words)).outcomes()

    def both(self, *words):
        """What two idle workers say; none begins before each has a task."""
        with tempfile.TemporaryDirectory() as folder:
            gate = Path(folder) / "gate"
            futures = [self.submit("after", gate, *words) for _ in range(2)]
            gate.touch()
            return [ended(future).outcomes() for future in futures]


@pytest.fixture(scope="module")
def ask():
    """Two processes, each of which sees one of three GPUs that do not exist."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDA_VISIBLE_DEVICES", "5,7,9")
        with processes_of(FakeWorker(), device="cuda") as processes:
            yield Ask(processes)


def test_each_worker_has_a_gpu_of_its_own(ask):
    assert sorted(ask.both("environ", "CUDA_VISIBLE_DEVICES")) == ["5", "7"]


def test_workers_are_forked_from_one_process_that_has_asked_for_no_gpu(ask):
    first, second = ask.both("facts")
    assert first["pid"] != second["pid"]
    assert first["template"] == second["template"] == ask.processes._template.pid
    assert [first["has_lost_cuda"], second["has_lost_cuda"]] == [False, False]
    template = psutil.Process(first["template"])
    targets = [
        os.readlink(f"/proc/{template.pid}/fd/{n}") for n in os.listdir(f"/proc/{template.pid}/fd")
    ]
    assert not [target for target in targets if target.startswith("/dev/nvidia")]


def test_no_worker_imports_dask(ask):
    assert [each["imports_dask"] for each in ask.both("facts")] == [False, False]


def test_workers_release_unreachable_objects(ask):
    assert [each["collects"] for each in ask.both("facts")] == [True, True]


def test_no_process_listens(ask):
    pids = [os.getpid(), ask.processes._template.pid, *(each["pid"] for each in ask.both("facts"))]
    for pid in pids[1:]:
        assert not psutil.Process(pid).net_connections(kind="inet")


def test_a_worker_that_dies_fails_its_task_and_another_takes_its_place_with_the_same_gpu(ask):
    before = ask.processes.states(1).workers
    future = ask.submit("die")
    error = ended(future).exception()
    assert isinstance(error, WorkerDiedError)
    assert ask.processes.classify_error(error) == "worker died"
    now = wait_until(
        lambda: (states := ask.processes.states(1).workers) and len(states) == 2 and states
    )
    assert len(now & before) == 1
    assert sorted(ask.both("environ", "CUDA_VISIBLE_DEVICES")) == ["5", "7"]


def test_a_worker_that_hangs_is_ended_by_its_name(ask, tmp_path):
    future = ask.submit("wait_for", tmp_path / "never")
    (hangs,) = [
        name for name, tasks in ask.processes.states(1).processing.items() if future.key in tasks
    ]
    ask.processes.restart(hangs, "it hangs")
    assert isinstance(ended(future).exception(), WorkerDiedError)
    wait_until(lambda: len(ask.processes.states(1).workers - {hangs}) == 2)


def test_a_cancelled_task_that_waits_does_not_run(ask, tmp_path):
    running = [ask.submit("wait_for_gate", tmp_path) for _ in range(2)]
    queued = [ask.submit("touch", tmp_path / f"file-{number}") for number in range(2)]
    ask.processes.cancel(queued)
    for process in ask.processes._processes:
        process.connection.send((OpensGate(tmp_path), None))
    assert [ended(each).outcomes() for each in running] == ["waited", "waited"]
    ask.both("facts")  # a worker runs its tasks in order
    assert all(each.status == "cancelled" for each in queued)
    assert not list(tmp_path.glob("file-*"))


def test_an_error_that_cannot_be_sent_comes_with_its_words(ask):
    future = ask.submit("raise")
    error = ended(future).exception()
    assert (type(error), str(error)) == (RuntimeError, "Unreadable: a fault")
    assert ask.processes.classify_error(error) == "error"
    assert str(plain_error(Unreadable("a fault", 1))) == "Unreadable: a fault"
    kept = InputError("as it is")
    assert plain_error(kept) is kept


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_workers_go_on_when_a_terminal_or_a_batch_system_signals_all_processes(ask, number):
    facts = ask.both("facts")
    for pid in {each[name] for each in facts for name in ("pid", "template")}:
        os.kill(pid, number)
    again = ask.both("facts")
    assert {each["pid"] for each in again} == {each["pid"] for each in facts}


def test_a_template_that_is_killed_is_started_again(ask):
    facts = ask.both("facts")
    lost = {f"process {each['pid']}" for each in facts}
    os.kill(facts[0]["template"], signal.SIGKILL)
    wait_until(lambda: len(ask.processes.states(1).workers - lost) == 2)
    assert ask.both("facts")[0]["template"] != facts[0]["template"]


def test_a_worker_that_dies_while_it_loads_is_replaced_and_what_another_raises_is_raised_here(
    tmp_path, capsys
):
    once = tmp_path / "once"
    once.touch()
    with (
        pytest.raises(LookupError, match="no such graph"),
        processes_of(FakeWorker(str(once)), n_workers=1),
    ):
        pass
    message = "a worker process has died while it started; another one takes its place"
    assert capsys.readouterr().err.splitlines() == [message]


def test_workers_that_keep_dying_are_an_error_of_the_run(monkeypatch):
    monkeypatch.setattr(worker_processes, "_MAX_DEATHS", 2)
    message = "the workers do not start: 2 processes have died, one after another; run again with --resume"
    with pytest.raises(ClusterError, match=message), processes_of(FakeWorker("die"), n_workers=1):
        pass


def test_a_run_by_two_workers_writes_the_bytes_of_one_process(tmp_path, capsys):
    edges = random_edges(tmp_path / "edges.parquet", 1, 300, 1500)
    argv = [str(edges), "--random-sources", "12", "--batch-size", "3", "--device", "cpu", "--json"]
    here, there = tmp_path / "here", tmp_path / "there"
    assert main([*argv, "--output", str(here)]) == 0
    assert main([*argv, "--output", str(there), "--workers", "2"]) == 0
    assert parts_of(here) == parts_of(there)
    manifest = manifest_of(there)
    assert manifest["digest"] == manifest_of(here)["digest"]
    assert manifest["workers"] == 2
    assert {"store", "start", "traverse"} <= set(manifest["seconds"])
    assert all(re.fullmatch(r"process \d+", part["worker"]) for part in manifest["parts"])
    assert "dashboard" not in capsys.readouterr().err


def test_a_run_that_ends_while_its_workers_start_leaves_none_behind():
    before = set(psutil.Process().children(recursive=True))
    with engines.open_engine(settings_of("--workers", "2"), UNWATCHED, NO_INPUTS):
        assert set(psutil.Process().children(recursive=True)) - before
    assert not set(psutil.Process().children(recursive=True)) - before


DRIVER = """
import sys, time
from pipelines.scheduling.worker_processes import WorkerProcesses
from tests.support.fake_workers import FakeWorker
processes = WorkerProcesses()
processes.start()
processes.add(2, "cpu")
processes.give(FakeWorker(), lambda task: task.parts)
print("ready", flush=True)
time.sleep(1000)
"""


def test_workers_end_with_a_driver_that_is_killed():
    with started([sys.executable, "-c", DRIVER]) as driver:
        assert driver.stdout.readline() == "ready\n"
        assert len(session_of(driver)) == 4
        driver.kill()
        driver.wait()
        wait_until(lambda: not session_of(driver))
