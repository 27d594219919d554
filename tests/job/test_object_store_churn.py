"""Shards that are killed all the time, on a store with faults: the digest is that of one process, and nothing is lost.

``KEPLER_CHURN_PARTS`` sets the size; the longest run that was made had 10,000 parts.
"""

import hashlib
import json
import multiprocessing
import os
import random
import time
from collections import Counter

import pandas as pd
import pytest

from pipelines import batch_sources
from pipelines.output.run_folder import MANIFEST
from tests.support.object_store import objects, served

pytest.importorskip("obstore", reason="obstore (extra cloud) is not installed")
pytest.importorskip("moto", reason="moto, an S3 server for tests, is not installed")

PARTS = int(os.environ.get("KEPLER_CHURN_PARTS", "2000"))
SHARDS, URL = 8, "s3://bucket/run"


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
        kept = {name: value for name, value in os.environ.items() if name.startswith(("AWS_", "KEPLER_"))}
        child = context.Process(target=in_child, args=(program, list(words), kept, str(tmp_path / f"{program}.log")))
        child.start()
        children.append(child)
        return child

    yield started
    for child in children:
        child.kill()
        child.join()


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
def test_shards_that_are_killed_all_the_time_lose_nothing(tmp_path, start, monkeypatch):
    """Of 8 shards one is killed each second. 1 % of the puts fail, before or after they are done, and 1 % of the reads are
    cut. Some answers are slow. Two calls of finish are at once."""
    row = range(0, PARTS, 2)
    pd.DataFrame({"src": row, "dst": [each + 1 for each in row]}).to_parquet(tmp_path / "edges.parquet")
    monkeypatch.setenv("KEPLER_CACHE_DIR", str(tmp_path / "copies"))
    words = [str(tmp_path / "edges.parquet"), "--undirected", "--all-sources", "--device", "cpu"]
    assert batch_sources.main([*words, "--output", str(tmp_path / "alone")]) == 0
    expected = json.loads((tmp_path / "alone" / MANIFEST).read_text())["digest"]
    begun, kills, luck = time.monotonic(), 0, random.Random(7)
    with served(monkeypatch) as server:
        server.fail_share, server.cut_share, server.slow_share = 0.01, 0.01, 0.001
        words += ["--output", URL, "--batch-size", "1", "--workers", "1", "--no-report"]
        running = {index: start("batch_sources", *words, "--shard", f"{index}/{SHARDS}") for index in range(SHARDS)}
        killed = set()
        while running:
            time.sleep(1)
            for index, child in list(running.items()):
                if child.exitcode is None:
                    continue
                assert child.exitcode == 0 or child.pid in killed, (tmp_path / "batch_sources.log").read_text()[-3000:]
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
            if kills % 30 == 1:
                print(
                    f"{time.monotonic() - begun:.0f} s: {kills} kills, {len(objects('run'))} objects, {dict(server.log)}",
                    flush=True,
                )
        shards_took = time.monotonic() - begun
        calls = [start("finish", URL, "--json") for _ in range(2)]
        for call in calls:
            call.join()
        took = time.monotonic() - begun
        found = objects("run")
        log = dict(server.log)
    said = [json.loads(line) for line in (tmp_path / "finish.log").read_text().splitlines() if line.startswith("{")]
    assert [call.exitcode for call in calls] == [0, 0], (tmp_path / "finish.log").read_text()
    assert [each["digest"] for each in said] == [expected] * 2
    assert sorted(each["was_finished"] for each in said) == [False, True]
    manifest_text = found.pop(MANIFEST)
    manifest = json.loads(manifest_text)
    assert found.pop("_SUCCESS").decode().strip() == hashlib.sha256(manifest_text).hexdigest()
    assert {name: hashlib.sha256(data).hexdigest() for name, data in found.items()} == {
        part["file"]: part["sha256"] for part in manifest["parts"]
    }
    assert len(found) == PARTS
    requests = Counter(manifest["traffic"]) + Counter(put=sum(part["stored"]["requests"] for part in manifest["parts"]))
    asked = {"put": log["PUT"], "get": log["GET"] - log["list"], "list": log["list"]}
    print(f"{PARTS} parts, {kills} kills: shards {shards_took:.0f} s, with finish {took:.0f} s")
    print("recorded", dict(requests), "asked", asked, "faults", log)
    for kind, count in asked.items():  # what a killed process has asked for since its last commit is not recorded
        assert requests[kind] <= count
