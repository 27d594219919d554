"""Workers of a Dask cluster that share nothing with the job but an object store: graph, parts and heartbeats."""

import contextlib
import json
import os
import shutil

import numpy as np
import pandas as pd
import pytest
from distributed import Client

from kepler_traverse.errors import InputError
from pipelines import batch_sources, verify
from pipelines.output.commits import CommitLog
from pipelines.output.run_folder import MANIFEST
from pipelines.output.store import open_store
from pipelines.scheduling.cluster import take_plugin
from pipelines.scheduling.errors import ClusterError
from pipelines.scheduling.existing_cluster import check_newcomers, refuse_unfit_workers
from tests.job.test_worker_failures import Kills
from tests.support.clusters import dask_program, threads_of_this_process
from tests.support.object_store import served, skip_without_server
from tests.support.processes import PATIENCE, ROOT, ran

skip_without_server()
EDGES, CACHE = "s3://bucket/edges.parquet", "s3://bucket/graphs"
WORDS = [
    "--undirected",
    "--sources",
    ",".join(map(str, range(24))),
    "--batch-size",
    "4",
    "--device",
    "cpu",
    "--no-report",
]
# In a mount namespace of its own, a process finds an empty folder in place of the job's.
APART = [
    "unshare",
    "--map-root-user",
    "--mount",
    "sh",
    "-c",
    'mount -t tmpfs none "$0" && exec "$@"',
]


@pytest.fixture
def job_folder(tmp_path, monkeypatch):
    """Where the job keeps what it writes on its host."""
    folder = tmp_path / "job"
    folder.mkdir(mode=0o700)
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.setenv("KEPLER_CACHE_DIR", str(folder / "copies"))
    return folder


@pytest.fixture(autouse=True)
def server(monkeypatch):
    with served(monkeypatch) as found:
        rng = np.random.default_rng(3)
        frame = pd.DataFrame(rng.integers(0, 200, (600, 2)), columns=["src", "dst"])
        with open_store("s3://bucket").new_file("edges.parquet") as file:
            frame.to_parquet(file)
        yield found


@pytest.fixture
def cluster(tmp_path, job_folder):
    """A scheduler and two workers, each on a host of its own as far as this machine permits; yield a function that starts
    them and returns a client."""
    can_be_apart = shutil.which("unshare") and ran([*APART, job_folder, "true"]).returncode == 0
    pinned = {"SCHEDULER__ALLOWED_FAILURES": "0", "WORKER__PROFILE__ENABLED": "False"}
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        **{f"DASK_DISTRIBUTED__{name}": value for name, value in pinned.items()},
    }
    with contextlib.ExitStack() as stack:

        def start(*words):
            stack.enter_context(dask_program("scheduler", tmp_path, "--host", "127.0.0.1", env=env))
            for name in "ab":
                host = tmp_path / name
                host.mkdir(mode=0o700)
                options = {
                    "cwd": host,
                    "env": env | dict.fromkeys(("HOME", "TMPDIR", "KEPLER_CACHE_DIR"), str(host)),
                }
                own = ["--host", "127.0.0.1", "--local-directory", host, *words]
                before = [*APART, job_folder] if can_be_apart else ()
                stack.enter_context(
                    dask_program("worker", tmp_path, *own, before=before, **options)
                )
            address = json.loads((tmp_path / "scheduler.json").read_text())["address"]
            client = stack.enter_context(Client(address, set_as_default=False))
            client.wait_for_workers(2, timeout=PATIENCE)
            (job_folder / "seen").touch()
            assert not can_be_apart or set(client.run((job_folder / "seen").exists).values()) == {
                False
            }
            return client

        yield start


def run(client, url, *more):
    return batch_sources.main(
        [EDGES, *WORDS, "--output", url, "--scheduler-address", client.scheduler.address, *more]
    )


def manifest_of(place):
    return json.loads(open_store(place).get(MANIFEST, 10**9))


def digests(manifest):
    return {part["file"]: part["sha256"] for part in manifest["parts"]}


def test_a_worker_dies_and_the_run_is_that_of_one_process(tmp_path, cluster, capsys):
    """By its heartbeat, the batch of source 9 is the one that is given out again."""
    url, once = "s3://bucket/dies", tmp_path / "once"
    assert batch_sources.main([EDGES, *WORDS, "--output", str(tmp_path / "alone")]) == 0
    once.touch()
    client = cluster()
    client.register_plugin(Kills([9], once))
    assert run(client, url) == 0, capsys.readouterr().err
    expected, found = manifest_of(tmp_path / "alone"), manifest_of(url)
    assert not once.exists()
    assert (found["digest"], digests(found)) == (expected["digest"], digests(expected))
    assert found["retried"] == [{"file": "part-000002.parquet", "why": "its worker died"}]
    assert verify.main([url, EDGES, "--device", "cpu"]) == 0
    assert {name.partition("-")[0] for name in open_store(url).names()} == {
        "part",
        MANIFEST,
        "_SUCCESS",
    }
    for host in "ab":
        assert len(list((tmp_path / host / "graphs").glob("graph-*/"))) == 1
    assert not list((tmp_path / "a").rglob("part-*")) + list((tmp_path / "b").rglob("part-*"))


@pytest.mark.exhaustive
@pytest.mark.timeout(600)
def test_a_source_that_kills_workers_is_found_and_left_out(tmp_path, cluster, capsys):
    """Nannies start workers anew, which find the graph on their host; a later run without the fault is whole."""
    url = "s3://bucket/kills"
    assert batch_sources.main([EDGES, *WORDS, "--output", str(tmp_path / "alone")]) == 0
    client = cluster("--nanny")
    client.register_plugin(Kills([9]))
    assert run(client, url, "--graph-cache", CACHE) == 3, capsys.readouterr().err
    (commits,) = [CommitLog(open_store(url)).read()]
    failed = [
        (each["file"], each["sources"], each["error"])
        for commit in commits
        for each in commit["failed"]
    ]
    assert failed == [("part-000002.parquet", [9], "its worker died (3 times)")]
    take_plugin(client, Kills.name)
    assert run(client, url, "--graph-cache", CACHE, "--resume") == 0, capsys.readouterr().err
    found = manifest_of(url)
    assert (found["digest"], found["failed"]) == (manifest_of(tmp_path / "alone")["digest"], [])
    assert verify.main([url, EDGES, "--device", "cpu"]) == 0


def test_a_worker_that_does_not_see_the_store_is_refused_also_when_it_joins():
    url, problem = (
        "s3://bucket/none",
        r"cannot use s3://bucket/none/_manifest.json \(there is no such object\); give",
    )
    with threads_of_this_process(n_workers=1) as one, Client(one, set_as_default=False) as client:
        with pytest.raises(InputError, match=problem):
            refuse_unfit_workers(client, "cpu", [], url)
        with pytest.raises(ClusterError, match=f"has joined and cannot run this job: .*{problem}"):
            check_newcomers(client, list(client.nthreads()), 0, url)
