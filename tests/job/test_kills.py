"""Kill the job, or a worker, at a random moment: no unreadable file at any time, and resuming ends with the same digest.

KEPLER_KILLS sets how often each of both is killed (default 1); KEPLER_SEED chooses the moments and is printed.
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.cli import signals

# The job as on a GPU, where threads of a worker write parts while it searches from the sources of several others at once.
BESIDE = """
import sys
from dataclasses import replace
from pipelines import batch_sources
from pipelines.run import engine, prepare

size_up = engine.size_up
engine.size_up = lambda *load: replace(size_up(*load), writers=4)
prepare._at_once = lambda *_: 12
sys.exit(batch_sources.program())
"""

KILLS = int(os.environ.get("KEPLER_KILLS", "1"))
SEED = int(os.environ.get("KEPLER_SEED", "20"))
PATIENCE = 180  # seconds for a run of a few seconds, so that a hang fails


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    path = tmp_path_factory.mktemp("edges") / "edges.parquet"
    rng = np.random.default_rng(5)
    src, dst = rng.integers(0, 20_000, (2, 200_000))
    pq.write_table(pa.table({"src": src, "dst": dst, "weight": rng.integers(1, 256, src.size)}), path)
    flags = "--algorithm sssp --random-sources 60 --batch-size 2 --workers 2 --device cpu --predecessors --json --output"
    return [sys.executable, "-m", "pipelines.batch_sources", str(path), *flags.split()]


def beside(command):
    return [sys.executable, "-c", BESIDE, *command[3:]]


def start(command, folder, *flags):
    return subprocess.Popen(
        [*command, str(folder), *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def finish(job):
    out, err = job.communicate(timeout=PATIENCE)
    return job.returncode, out, err


@pytest.fixture(scope="module")
def undisturbed(command, tmp_path_factory):
    """The digest of an undisturbed run, and how long it takes."""
    begin = time.monotonic()
    code, out, err = finish(start(command, tmp_path_factory.mktemp("undisturbed") / "out"))
    assert code == 0, err
    return json.loads(out)["digest"], time.monotonic() - begin


def read_new_parts(folder, seen):
    """Read every part file that was not read before; an unreadable one is an error."""
    for path in folder.glob("part-*.parquet") if folder.exists() else ():
        if path.name not in seen:
            seen[path.name] = pq.read_table(path).num_rows


def watch_until(moment, job, folder, seen):
    while time.monotonic() < moment and job.poll() is None:
        read_new_parts(folder, seen)
        time.sleep(0.01)


def resumed(command, folder):
    code, out, err = finish(start(command, folder, "--resume"))
    assert code == 0, err
    read_new_parts(folder, {})
    return json.loads(out)


@pytest.mark.parametrize("round_", range(KILLS))
def test_a_killed_job_resumes_to_the_same_digest(command, undisturbed, tmp_path, round_):
    digest, duration = undisturbed
    wait = random.Random(f"{SEED} job {round_}").uniform(0.2, 1.0) * duration
    print(f"seed {SEED}, round {round_}: the job is killed after {wait:.3f} s of {duration:.3f} s")
    folder, seen = tmp_path / "out", {}
    begin = time.monotonic()
    job = start(command, folder)
    watch_until(begin + wait, job, folder, seen)
    if round_ % 2:
        os.killpg(job.pid, signal.SIGKILL)
    else:
        job.kill()
    read_new_parts(folder, seen)
    # The workers of a dead driver may live a little longer; the next run must bear that.
    summary = resumed(command, folder)
    job.communicate(timeout=PATIENCE)
    assert summary["digest"] == digest
    assert summary["kept"] >= len(seen)
    assert summary["kept"] + summary["computed"] == summary["batches"]


def workers_of(job):
    try:
        children = psutil.Process(job.pid).children(recursive=True)  # the program runs in a child of the process
        return [child for child in children if any("spawn_main" in word for word in child.cmdline())]
    except psutil.NoSuchProcess:
        return []


@pytest.mark.parametrize("round_", range(KILLS))
def test_a_killed_worker_changes_nothing(command, undisturbed, tmp_path, round_):
    digest, duration = undisturbed
    command = command if round_ % 2 else beside(command)
    moments = random.Random(f"{SEED} worker {round_}")
    wait = moments.uniform(0.4, 0.9) * duration
    print(f"seed {SEED}, round {round_}: a worker is killed after {wait:.3f} s of {duration:.3f} s")
    folder, seen = tmp_path / "out", {}
    begin = time.monotonic()
    job = start(command, folder)
    watch_until(begin + wait, job, folder, seen)
    workers = workers_of(job)
    if workers:
        moments.choice(workers).kill()
    watch_until(begin + PATIENCE, job, folder, seen)
    code, out, err = finish(job)
    assert code == 0, err
    assert json.loads(out)["digest"] == digest


def test_a_worker_that_is_killed_as_soon_as_it_begins_to_start_changes_nothing(command, undisturbed, tmp_path):
    job = start(command, tmp_path / "out")
    killed = 0
    while job.poll() is None and not killed:
        for worker in workers_of(job)[:1]:
            worker.kill()
            killed += 1
    code, out, err = finish(job)
    assert killed
    assert code == 0, err
    assert json.loads(out)["digest"] == undisturbed[0]


def test_an_interrupted_job_says_how_to_resume(command, tmp_path):
    command = [{"60": "240"}.get(word, word) for word in command]  # long enough not to end before it is interrupted
    folder, seen = tmp_path / "out", {}
    job = start(command, folder)
    while not seen and job.poll() is None:
        watch_until(time.monotonic() + 0.02, job, folder, seen)
    os.killpg(job.pid, signal.SIGINT)  # what Ctrl-C does: the whole group hears it
    code, out, err = finish(job)
    assert (code, out) == (130, "")
    assert "Traceback" not in err
    assert "finished first; interrupt again to stop at once" in err
    message = err.splitlines()[-1]
    assert message.startswith("interrupted: ")
    assert message.endswith("--resume")
    manifest = json.loads((folder / "_manifest.json").read_text())
    assert manifest["status"] == "interrupted"
    on_disk = sorted(path.name for path in folder.glob("part-*"))
    assert sorted(part["file"] for part in manifest["parts"]) == on_disk, "what ran has been finished and is known"
    summary = resumed(command, folder)
    assert summary["kept"] > 0
    assert summary["kept"] + summary["computed"] == summary["batches"] == 120


def test_an_interrupt_waits_for_what_is_held_and_a_second_one_does_not(monkeypatch):
    monkeypatch.setattr(signals, "_requested", False)
    seen = []

    def interrupted_twice():
        with signals.held():
            signals._raise(signal.SIGINT, None)
            seen.append("went on")
            signals._raise(signal.SIGINT, None)
            seen.append("and on")

    with pytest.raises(KeyboardInterrupt):
        interrupted_twice()
    assert seen == ["went on"]


def test_an_interrupt_that_was_caught_is_raised_again(monkeypatch):
    monkeypatch.setattr(signals, "_requested", False)
    signals.check()
    with contextlib.suppress(KeyboardInterrupt):
        signals._raise(signal.SIGINT, None)
    with pytest.raises(KeyboardInterrupt):
        signals.check()
