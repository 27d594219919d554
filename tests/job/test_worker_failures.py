"""Failures of workers, memory, disks and schedulers in real processes: nothing is lost or incomplete.

Whatever happens, the parts that are there are whole, and a job that comes to its end has written the very bytes of an
undisturbed one. KEPLER_SEED chooses where memory fails and is printed.
"""

import json
import os
import random
import resource
import signal
import threading
import time
from collections import Counter
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow.parquet as pq
import pytest
from distributed import Client, WorkerPlugin

from kepler_traverse.multi_source import planning
from pipelines.batch_sources import main
from pipelines.scheduling.cluster import take_plugin
from tests.support.clusters import dask_program, two_workers
from tests.support.jobs import manifest_of, parts_of, write_edges
from tests.support.processes import PATIENCE, ROOT, wait_until

SEED = int(os.environ.get("KEPLER_SEED", "20"))
N_SOURCES = 24
BATCH_SIZE = 4


@pytest.fixture(scope="module")
def edges(tmp_path_factory):
    """About 300 vertices, numbered as they are named."""
    rng = np.random.default_rng(2)
    around = np.arange(300)
    src = np.concatenate([around, rng.integers(0, 300, 900)])
    dst = np.concatenate([(around + 1) % 300, rng.integers(0, 300, 900)])
    return write_edges(
        tmp_path_factory.mktemp("edges") / "edges.parquet", src, dst, rng.integers(1, 99, src.size)
    )


@pytest.fixture(scope="module")
def cluster():
    """Two workers with nannies, on a scheduler that exists already, as a job's own would be."""
    with two_workers() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def options(edges):
    words = f"--device cpu --json --no-report --result predecessors --batch-size {BATCH_SIZE}"
    return [str(edges), "--sources", ",".join(map(str, range(N_SOURCES))), *words.split()]


@pytest.fixture(scope="module")
def undisturbed(options, cluster, tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed") / "out"
    assert (
        main([*options, "--output", str(folder), "--scheduler-address", cluster.scheduler_address])
        == 0
    )
    return folder


class Fault(WorkerPlugin):
    """Breaks the traversal from some sources in every worker, also in those that are started anew.

    ``once`` is a file: where it is given the fault strikes only while it is there, and takes it away.
    """

    name = "fault"

    def __init__(self, sources, once=None):
        self.sources = sources
        self.once = once

    def setup(self, worker):  # noqa: ARG002
        run = self.sound = planning.MultiSourcePlan.run

        def faulty(planned, numbers, **given):
            for number in numbers:
                if number in self.sources and self._failure_counts():
                    self.strike(number)
            return run(planned, numbers, **given)

        planning.MultiSourcePlan.run = faulty

    def _failure_counts(self):
        if self.once is None:
            return True
        try:
            self.once.unlink()
        except FileNotFoundError:
            return False
        return True

    def teardown(self, worker):  # noqa: ARG002
        planning.MultiSourcePlan.run = self.sound


class Kills(Fault):
    def strike(self, number):  # noqa: ARG002
        os.kill(os.getpid(), signal.SIGKILL)


class Hangs(Fault):
    def strike(self, number):  # noqa: ARG002
        time.sleep(1000)


class CUDARuntimeError(RuntimeError):
    """Named as CuPy's."""


class BreaksTheDevice(Fault):
    def strike(self, number):  # noqa: ARG002
        raise CUDARuntimeError("cudaErrorIllegalAddress: an illegal memory access was encountered")


class RunsOutOfMemory(Fault):
    def strike(self, number):  # noqa: ARG002
        raise MemoryError("std::bad_alloc: out_of_memory")


class RunsOutOfMemoryAtRandom(Fault):
    """The seed alone decides which traversals from a source fail: the first, the second, and so on."""

    tries: ClassVar = Counter()

    def strike(self, number):
        self.tries[number] += 1
        if random.Random(f"{SEED} {number} {self.tries[number]}").random() < 0.3:
            raise MemoryError("at random")


class FillsTheDisk(WorkerPlugin):
    """No file may grow beyond some bytes: what the kernel says then is an OSError as that of a full disk."""

    name = "fault"

    def __init__(self, most):
        self.most = most

    def setup(self, worker):  # noqa: ARG002
        self.before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.most, self.before[1]))

    def teardown(self, worker):  # noqa: ARG002
        resource.setrlimit(resource.RLIMIT_FSIZE, self.before)


class SeesAnotherDisk(WorkerPlugin):
    """A worker for which a folder is not there, as on a host without the shared file system."""

    name = "fault"

    def __init__(self, folder, worker):
        self.folder = folder
        self.worker = worker

    def setup(self, worker):
        self.read_text = Path.read_text
        if worker.address != self.worker:
            return

        def elsewhere(path, *args, **keywords):
            if self.folder in path.parents:
                raise FileNotFoundError(2, "No such file or directory")
            return self.read_text(path, *args, **keywords)

        Path.read_text = elsewhere

    def teardown(self, worker):  # noqa: ARG002
        Path.read_text = self.read_text


@pytest.fixture
def job(options, cluster, capsys):
    """Runs the job with a fault and returns (exit code, summary, messages)."""

    def run(folder, *flags, fault=None):
        with Client(cluster, set_as_default=False) as client:
            if fault is not None:
                client.register_plugin(fault)
            code = main(
                [
                    *options,
                    "--output",
                    str(folder),
                    "--scheduler-address",
                    cluster.scheduler_address,
                    *flags,
                ]
            )
            if fault is not None:
                client.wait_for_workers(2, timeout=PATIENCE)
                take_plugin(client, "fault")
        captured = capsys.readouterr()
        return code, json.loads(captured.out) if captured.out else None, captured.err

    return run


@pytest.mark.exhaustive
def test_source_that_kills_its_worker_is_skipped_and_the_others_are_computed(
    job, undisturbed, tmp_path
):
    poison = 6
    code, summary, err = job(tmp_path / "out", fault=Kills([poison]))
    assert code == 3, err
    assert [(entry["file"], entry["sources"]) for entry in summary["failed"]] == [
        ("part-000001.parquet", [poison])
    ]
    assert "its worker died (3 times)" in summary["failed"][0]["error"]
    assert "batch 1 failed" in err
    assert "given out again: batch 1: its worker died" in err
    assert "lost: worker tcp://" in err
    manifest = manifest_of(tmp_path / "out")
    answered = [source for part in manifest["parts"] for source in part["sources"]]
    assert sorted(answered) == [source for source in range(N_SOURCES) if source != poison]
    retried = Counter(entry["file"] for entry in manifest["retried"])
    assert retried.pop("part-000001.parquet") > 1
    # A result in flight is lost when its worker dies, and its batch is retried.
    assert set(retried.values()) <= {1}, "nobody else is blamed"
    rows = (
        pq.read_table(tmp_path / "out" / "part-000001.parquet", columns=["source"])["source"]
        .unique()
        .to_pylist()
    )
    assert rows == [4, 5, 7]
    code, summary, err = job(tmp_path / "out", "--resume")
    assert (code, summary["computed"], summary["kept"]) == (0, 1, N_SOURCES // BATCH_SIZE - 1), err
    assert parts_of(tmp_path / "out") == parts_of(undisturbed)


# tests/job/test_kills.py kills workers at any moment.
@pytest.mark.parametrize(
    "fault", [BreaksTheDevice, pytest.param(Hangs, marks=pytest.mark.exhaustive)]
)
def test_a_worker_that_is_lost_once_changes_nothing(job, undisturbed, tmp_path, cluster, fault):
    once = tmp_path / "once"
    once.touch()
    before = set(cluster.scheduler_info["workers"])
    deadline = ["--batch-deadline", "2"] if fault is Hangs else []
    code, summary, err = job(tmp_path / "out", *deadline, fault=fault(range(8, 12), once))
    assert code == 0, err
    assert not once.exists()
    assert summary["digest"] == manifest_of(undisturbed)["digest"]
    assert parts_of(tmp_path / "out") == parts_of(undisturbed)
    assert not list((tmp_path / "out").glob(".*"))
    (retried,) = manifest_of(tmp_path / "out")["retried"]
    why = {BreaksTheDevice: "cudaErrorIllegalAddress", Hangs: "longer than 2 seconds"}[fault]
    assert why in retried["why"]
    (reported,) = [line for line in err.splitlines() if line.startswith("given out again: batch ")]
    assert why in reported
    with Client(cluster, set_as_default=False) as client:
        assert len(set(client.scheduler_info()["workers"]) & before) == 1, (
            "its process was started anew"
        )


def test_a_source_that_never_fits_is_left_out_and_the_rest_goes_on(job, tmp_path):
    code, summary, err = job(tmp_path / "out", fault=RunsOutOfMemory([3, 17]))
    assert code == 3, err
    failed = {tuple(entry["sources"]): entry["error"] for entry in summary["failed"]}
    assert failed == {
        (source,): f"MemoryError: source {source}: std::bad_alloc: out_of_memory"
        for source in (3, 17)
    }
    assert (
        sum(len(part["sources"]) for part in manifest_of(tmp_path / "out")["parts"])
        == N_SOURCES - 2
    )


@pytest.mark.exhaustive  # tests/job/test_out_of_memory.py lets each allocation fail in turn
def test_memory_that_fails_at_random_changes_no_byte(job, undisturbed, tmp_path):
    code, _, err = job(tmp_path / "out", fault=RunsOutOfMemoryAtRandom(range(N_SOURCES)))
    assert code in (0, 3), f"seed {SEED}: {err}"
    if code == 3:  # the fault hit a source each time
        code, _, err = job(tmp_path / "out", "--resume")
    assert code == 0, f"seed {SEED}: {err}"
    assert parts_of(tmp_path / "out") == parts_of(undisturbed)


def test_a_full_disk_is_one_message_and_resuming_goes_on(job, undisturbed, tmp_path):
    largest = max(len(content) for content in parts_of(undisturbed).values())
    code, summary, err = job(tmp_path / "out", fault=FillsTheDisk(largest // 2))
    assert (code, summary) == (2, None)
    message = err.splitlines()[-1]
    assert message.startswith(
        f"error: {tmp_path / 'out'}: a file cannot be written there: File too large"
    )
    assert "--resume" in message
    assert not list((tmp_path / "out").glob("part-*"))
    code, _, err = job(tmp_path / "out", "--resume")
    assert code == 0, err
    assert parts_of(tmp_path / "out") == parts_of(undisturbed)


def test_disk_too_full_for_the_manifest_is_one_message(edges, tmp_path, capsys):
    words = [
        "--all-sources",
        "--device",
        "cpu",
        "--workers",
        "1",
        "--output",
        str(tmp_path / "out"),
    ]
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, before[1]))
    try:
        code = main([str(edges), *words])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    err = capsys.readouterr().err
    assert code == 2
    assert "a file cannot be written there: File too large" in err.splitlines()[-1]
    assert "Traceback" not in err
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["_lock"]


def test_a_worker_that_does_not_share_the_disk_is_refused_by_name(job, cluster, tmp_path):
    worker = sorted(cluster.scheduler_info["workers"])[1]
    code, _, err = job(tmp_path / "out", fault=SeesAnotherDisk(tmp_path / "out", worker))
    assert code == 2
    message = err.splitlines()[-1]
    assert message.startswith(f"error: worker {worker} cannot run this job: on host ")
    assert (
        f"does not see what is written to {tmp_path / 'out'} (No such file or directory)" in message
    )
    assert not list((tmp_path / "out").glob("part-*"))


@pytest.fixture
def slow(tmp_path):
    """A scheduler and a worker without a nanny, each a process: (scheduler file, scheduler, worker)."""
    options = {
        "env": os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), str(ROOT)])}
    }
    with (
        dask_program("scheduler", tmp_path, "--host", "127.0.0.1", **options) as scheduler,
        dask_program("worker", tmp_path, "--host", "127.0.0.1", **options) as worker,
    ):
        yield tmp_path / "scheduler.json", scheduler, worker


def kill_when(process, condition):
    """Kill a process in the background as soon as a condition holds."""

    def watch():
        wait_until(condition, process)
        process.kill()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


@pytest.mark.exhaustive
@pytest.mark.parametrize("gone", ["worker", "scheduler"])
def test_job_without_workers_ends_with_a_message(
    slow, options, undisturbed, cluster, tmp_path, capsys, monkeypatch, gone
):
    monkeypatch.setattr("pipelines.scheduling.cluster.CONNECT_SECONDS", 5)
    file, scheduler, worker = slow
    out = tmp_path / "out"
    argv = [*options[:-1], "1", "--output", str(out)]  # one source a batch
    with Client(scheduler_file=str(file), set_as_default=False) as client:
        client.register_plugin(Slows(range(N_SOURCES)))
    victim = {"worker": worker, "scheduler": scheduler}[gone]
    watching = kill_when(victim, lambda: any(out.glob("part-*")))
    code = main([*argv, "--scheduler-file", str(file), "--worker-timeout", "3"])
    watching.join()
    captured = capsys.readouterr()
    assert (code, captured.out) == (1, ""), captured.err
    words = {
        "worker": "no worker has answered for 3 seconds",
        "scheduler": "connection to the Dask scheduler is lost",
    }
    assert words[gone] in captured.err.splitlines()[-1]
    assert "--resume" in captured.err.splitlines()[-1]
    assert manifest_of(out)["status"] == "failed"
    assert main([*argv, "--resume", "--scheduler-address", cluster.scheduler_address]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["kept"] > 0
    assert summary["digest"] == manifest_of(undisturbed)["digest"]


class Slows(Fault):
    def strike(self, number):  # noqa: ARG002
        time.sleep(0.2)
