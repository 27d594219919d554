"""Kill the job, or a worker, at a random moment: no unreadable file at any time, and resuming ends with the same digest.

KEPLER_KILLS sets how often each of both is killed (default 1); KEPLER_SEED chooses the moments and is printed.
"""

import contextlib
import json
import os
import random
import signal
import sys
import time

import psutil
import pyarrow.parquet as pq
import pytest

from pipelines.cli import signals, supervisor
from tests.support.jobs import manifest_of, random_edges
from tests.support.processes import finish, session_of, started, wait_until

# The job as on a GPU, where threads of a worker write parts while it searches from the sources of several others at once.
BESIDE = """
import sys
from dataclasses import replace
from pipelines import batch_sources
from pipelines.run import prepare, sizing

size_up = sizing.size_up
sizing.size_up = lambda *load, **machine: replace(size_up(*load, **machine), writers=4)
prepare._estimate_at_once = lambda *_: 12
sys.exit(batch_sources.program())
"""

KILLS = int(os.environ.get("KEPLER_KILLS", "1"))
SEED = int(os.environ.get("KEPLER_SEED", "20"))


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    path = random_edges(
        tmp_path_factory.mktemp("edges") / "edges.parquet", 5, 20_000, 200_000, (1, 256)
    )
    flags = "--algorithm sssp --random-sources 60 --batch-size 2 --workers 2 --device cpu --result predecessors --json"
    return [sys.executable, "-m", "pipelines.batch_sources", str(path), *flags.split(), "--output"]


def beside(command):
    return [sys.executable, "-c", BESIDE, *command[3:]]


def start(command, folder, *flags):
    return started([*command, folder, *flags])


@pytest.fixture(scope="module")
def undisturbed(command, tmp_path_factory):
    """The digest of an undisturbed run, and how long it takes."""
    begin = time.monotonic()
    with start(command, tmp_path_factory.mktemp("undisturbed") / "out") as job:
        code, out, err = finish(job)
    assert code == 0, err
    return json.loads(out)["digest"], time.monotonic() - begin


def read_new_parts(folder, seen):
    """Read every part file that was not read before; an unreadable one is an error."""
    for path in folder.glob("part-*.parquet") if folder.exists() else ():
        if path.name not in seen:
            seen[path.name] = pq.read_table(path).num_rows


def watch(job, folder, seen, seconds=float("inf")):
    """Read parts as they come, until so much time is over or the job has ended."""
    moment = time.monotonic() + seconds
    wait_until(
        lambda: read_new_parts(folder, seen) or time.monotonic() > moment or job.poll() is not None
    )


def resumed(command, folder):
    with start(command, folder, "--resume") as job:
        code, out, err = finish(job)
    assert code == 0, err
    read_new_parts(folder, {})
    return json.loads(out)


@pytest.mark.exhaustive
@pytest.mark.parametrize("round_", range(KILLS))
def test_a_killed_job_resumes_to_the_same_digest(command, undisturbed, tmp_path, round_):
    digest, duration = undisturbed
    wait = random.Random(f"{SEED} job {round_}").uniform(0.2, 1.0) * duration
    print(f"seed {SEED}, round {round_}: the job is killed after {wait:.3f} s of {duration:.3f} s")
    folder, seen = tmp_path / "out", {}
    with start(command, folder) as job:
        watch(job, folder, seen, wait)
        if round_ % 2:
            os.killpg(job.pid, signal.SIGKILL)
        else:
            job.kill()
        read_new_parts(folder, seen)
        # The workers of a dead driver may live a little longer; the next run must bear that.
        summary = resumed(command, folder)
        wait_until(lambda: not session_of(job))
    assert summary["digest"] == digest
    assert summary["kept"] >= len(seen)
    assert summary["kept"] + summary["computed"] == summary["batches"]


def workers_of(job):
    """The worker processes: copies of their template, of whose program they are."""
    try:
        # the program runs in a child of the process
        children = psutil.Process(job.pid).children(recursive=True)
        return [
            child
            for child in children
            if "worker.process" in " ".join(child.cmdline())
            and child.cmdline() == child.parent().cmdline()
        ]
    except psutil.NoSuchProcess:
        return []


@pytest.mark.exhaustive
@pytest.mark.parametrize("round_", range(KILLS))
def test_a_killed_worker_changes_nothing(command, undisturbed, tmp_path, round_):
    digest, duration = undisturbed
    command = command if round_ % 2 else beside(command)
    moments = random.Random(f"{SEED} worker {round_}")
    wait = moments.uniform(0.4, 0.9) * duration
    print(f"seed {SEED}, round {round_}: a worker is killed after {wait:.3f} s of {duration:.3f} s")
    folder, seen = tmp_path / "out", {}
    with start(command, folder) as job:
        watch(job, folder, seen, wait)
        workers = workers_of(job)
        if workers:
            moments.choice(workers).kill()
        watch(job, folder, seen)
        code, out, err = finish(job)
    assert code == 0, err
    assert json.loads(out)["digest"] == digest


@pytest.mark.exhaustive
def test_a_worker_that_is_killed_as_soon_as_it_begins_to_start_changes_nothing(
    command, undisturbed, tmp_path
):
    with start(command, tmp_path / "out") as job:
        wait_until(lambda: workers_of(job), job)[0].kill()
        code, out, err = finish(job)
    assert code == 0, err
    assert json.loads(out)["digest"] == undisturbed[0]


@pytest.mark.exhaustive
def test_an_interrupted_job_says_how_to_resume(command, tmp_path):
    # long enough not to end before it is interrupted
    command = [{"60": "240"}.get(word, word) for word in command]
    folder, seen = tmp_path / "out", {}
    with start(command, folder) as job:
        wait_until(lambda: read_new_parts(folder, seen) or seen, job)
        os.killpg(job.pid, signal.SIGINT)  # what Ctrl-C does: the whole group hears it
        code, out, err = finish(job)
    assert (code, out) == (130, "")
    assert "Traceback" not in err
    assert "finished first; interrupt again to stop at once" in err
    message = err.splitlines()[-1]
    assert message.startswith("interrupted: ")
    assert message.endswith("--resume")
    manifest = manifest_of(folder)
    assert manifest["status"] == "interrupted"
    on_disk = sorted(path.name for path in folder.glob("part-*"))
    assert sorted(part["file"] for part in manifest["parts"]) == on_disk, (
        "what ran has been finished and is known"
    )
    summary = resumed(command, folder)
    assert summary["kept"] > 0
    assert summary["kept"] + summary["computed"] == summary["batches"] == 120


def test_an_interrupt_waits_for_what_is_held_and_a_second_one_does_not(monkeypatch):
    monkeypatch.setattr(signals, "_is_requested", False)
    seen = []

    def interrupted_twice():
        with signals.held():
            signals.interrupt(signal.SIGINT, None)
            seen.append("went on")
            signals.interrupt(signal.SIGINT, None)
            seen.append("and on")

    with pytest.raises(KeyboardInterrupt):
        interrupted_twice()
    assert seen == ["went on"]


def test_a_signal_that_was_ignored_at_the_start_stays_ignored():
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with supervisor._Child().signals_forwarded():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        signals.listen()
        assert [signal.getsignal(number) for number in before] == [
            signal.SIG_IGN,
            signals.interrupt,
        ]
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_an_interrupt_that_was_caught_is_raised_again(monkeypatch):
    monkeypatch.setattr(signals, "_is_requested", False)
    signals.check()
    with contextlib.suppress(KeyboardInterrupt):
        signals.interrupt(signal.SIGINT, None)
    with pytest.raises(KeyboardInterrupt):
        signals.check()
