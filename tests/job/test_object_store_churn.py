"""Shards that are killed all the time, on a store with faults: the digest is that of one process, and nothing is lost."""

import contextlib
import faulthandler
import hashlib
import json
import multiprocessing
import os
import random
import resource
import shutil
import sys
import time
from collections import Counter
from multiprocessing import forkserver

import pandas as pd
import psutil
import pytest

from pipelines import batch_sources
from pipelines.output.run_folder import MANIFEST
from pipelines.output.store import open_store
from tests.support import ministack, object_store
from tests.support.processes import ran, started

pytest.importorskip("obstore", reason="obstore (extra cloud) is not installed")

SHARDS, URL = 8, "s3://bucket/run"
FAULTS = {"fail_share": 0.01, "cut_share": 0.01, "slow_share": 0.001}
INSIDE = "KEPLER_IN_NAMESPACE"  # set where this test runs in a network namespace of its own
NAMESPACE = ["unshare", "--net", *([] if os.geteuid() == 0 else ["--map-root-user"])]


def in_child(program, words, environment, log):
    """Call ``main`` of a program of the job in a process that was forked from one with all imports."""
    os.environ.update(environment)
    with open(log, "a") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os._exit(getattr(__import__(f"pipelines.{program}"), program).main(words))


@pytest.fixture
def start(tmp_path):
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.support.imported", "pipelines.finish", "obstore"])
    children = []

    def started(program, *words):
        kept = {
            name: value
            for name, value in os.environ.items()
            if name.startswith(("AWS_", "KEPLER_"))
        }
        child = context.Process(
            target=in_child, args=(program, list(words), kept, str(tmp_path / f"{program}.log"))
        )
        child.start()
        children.append(child)
        return child

    yield started
    for child in children:
        child.kill()
        child.join()
    forkserver._forkserver._stop()  # it would keep the packages, and the address of this server


@pytest.fixture(params=["moto", "ministack"])
def server(request, monkeypatch):
    """A server with faults, of another make on loopback or alone in a network namespace, and the number of parts for it."""
    if request.param == "moto":
        pytest.importorskip("moto", reason="moto, an S3 server for tests, is not installed")
        with object_store.served(monkeypatch) as served:
            vars(served).update(FAULTS)
            yield served, int(os.environ.get("KEPLER_CHURN_PARTS", "2000"))
        return
    if ministack.PROGRAM is None:
        pytest.skip("ministack, another S3 server for tests, is not on the path")
    if not os.environ.get(INSIDE):
        if not shutil.which("unshare") or ran([*NAMESPACE, "true"]).returncode:
            pytest.skip("no network namespace can be made here")
        yield None, 0
        return
    with ministack.served(monkeypatch, FAULTS) as served:
        yield served, int(os.environ.get("KEPLER_CHURN_PARTS", "100000"))


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
def test_shards_that_are_killed_all_the_time_lose_nothing(server, tmp_path, start, monkeypatch):
    """Of 8 shards one is killed each second of two cores. 1 % of the puts fail, before or after they are done, and 1 % of
    the reads are cut. Some answers are slow. Two calls of finish are at once."""
    faulthandler.cancel_dump_traceback_later()  # by pytest, after a time that is for all tests
    served, n_parts = server
    if served is None:
        run_in_namespace()
        return
    row = range(0, n_parts, 2)
    pd.DataFrame({"src": row, "dst": [each + 1 for each in row]}).to_parquet(
        tmp_path / "edges.parquet"
    )
    monkeypatch.setenv("KEPLER_CACHE_DIR", str(tmp_path / "copies"))
    words = [
        str(tmp_path / "edges.parquet"),
        "--undirected",
        "--all-sources",
        "--device",
        "cpu",
        "--no-report",
    ]
    # no search costs as much as the graph is large
    words += ["--max-depth", "1", "--strategy", "short_search"]
    assert batch_sources.main([*words, "--output", str(tmp_path / "alone")]) == 0
    expected = json.loads((tmp_path / "alone" / MANIFEST).read_text())["digest"]
    words += ["--output", URL, "--batch-size", "1", "--workers", "1"]
    begun, kills, luck, log = time.monotonic(), 0, random.Random(7), tmp_path / "batch_sources.log"
    running = {
        index: start("batch_sources", *words, "--shard", f"{index}/{SHARDS}")
        for index in range(SHARDS)
    }
    killed, there, clock = set(), {}, Clock(served.pid)
    while running:
        clock.wait([child.pid for child in running.values()])
        for index, child in list(running.items()):
            if child.exitcode is None:
                continue
            assert child.exitcode == 0 or child.pid in killed, log.read_text()[-3000:]
            del running[index]
            if child.exitcode:
                running[index] = start("batch_sources", *words, "--shard", f"{index}/{SHARDS}")
        # As many as there are places in eight: the last shards are let alone more and more.
        victim = running.get(luck.randrange(SHARDS))
        if victim is not None:
            victim.kill()
            victim.join()
            killed.add(victim.pid)
            kills += 1
            if kills % 30 == 10:
                there |= served.state()["objects"]
                spent = f"{time.monotonic() - begun:.0f} s, {clock.spent:.0f} s of CPU"
                print(f"{spent}: {kills} kills, {len(there)} objects", flush=True)
    took = time.monotonic() - begun
    calls = [start("finish", URL, "--json") for _ in range(2)]
    for call in calls:
        call.join()
    print(
        f"{n_parts} parts, {kills} kills: shards {took:.0f} s, with finish {time.monotonic() - begun:.0f} s"
    )
    found = served.state()
    text = (tmp_path / "finish.log").read_text()
    said = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    assert [call.exitcode for call in calls] == [0, 0], text
    assert [each["digest"] for each in said] == [expected] * 2
    assert sorted(each["was_finished"] for each in said) == [False, True]
    store = open_store(URL)
    data = store.get(MANIFEST, 2**31)
    assert store.get("_SUCCESS", 100).decode().strip() == hashlib.sha256(data).hexdigest()
    manifest, held = json.loads(data), found["objects"]
    parts = {part["file"]: part["sha256"] for part in manifest["parts"]}
    assert len(parts) == n_parts
    assert {
        name: digest for name, digest in held.items() if name not in (MANIFEST, "_SUCCESS")
    } == parts
    # No part was ever there that was not whole.
    assert {
        name: digest for name, digest in there.items() if name.startswith("part-")
    }.items() <= parts.items()

    requests = Counter(manifest["traffic"]) + Counter(
        put=sum(part["stored"]["requests"] for part in manifest["parts"])
    )
    log = found["log"]
    asked = {"put": log["PUT"], "get": log["GET"] - log["list"], "list": log["list"]}
    print("recorded", dict(requests), "asked", asked, "faults", log)
    # what a killed process has asked for since its last commit is not recorded
    for kind, count in asked.items():
        assert requests[kind] <= count
    # A part was put by its last process as often as that recorded, but for a request that failed before one was killed.
    puts = {
        part["file"]: found["puts"][f"/bucket/run/{part['file']}"] for part in manifest["parts"]
    }
    last = {name: len(answers) - 1 - answers[:-1].rfind("1") for name, answers in puts.items()}
    more = [last[part["file"]] - part["stored"]["requests"] for part in manifest["parts"]]
    assert min(more) == 0
    assert sum(more) <= kills


class Clock:
    """Waits for seconds of CPU. Where other work delays them, shards that are killed each second would get nothing done."""

    def __init__(self, server):
        self._server, self._seconds, self.spent = server, Counter(), 0.0

    def wait(self, shards, seconds=2.0):
        until = self.spent + seconds
        while self.spent < until:
            time.sleep(0.1)
            for pid in (self._server, *shards):
                with contextlib.suppress(psutil.NoSuchProcess):
                    times = psutil.Process(pid).cpu_times()
                    self._seconds[pid] = max(self._seconds[pid], times.user + times.system)
            self.spent = sum(self._seconds.values())
            if not any(map(psutil.pid_exists, shards)):
                break


def run_in_namespace():
    """Run the test in a network namespace, where ministack has its port."""
    here = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-s",
        "--all",
        "--numprocesses",
        "0",
        "-k",
        "ministack",
        __file__,
    ]
    words = [*NAMESPACE, "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *here]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with started(words, env=os.environ | {INSIDE: "1"}) as child:
        out, err = child.communicate()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        out, f"{after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime:.0f} s of CPU"
    )
    assert child.returncode == 0, out + err
