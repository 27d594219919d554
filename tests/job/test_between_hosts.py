"""A Dask run between hosts that share nothing but an object store: a worker is killed, the link of another one is cut and
healed, the job is killed and resumed. The digest is that of one process.

The hosts are namespaces. This file is also the program that runs inside of them, and writes down what it has seen; nothing
of the machine changes.
"""

import contextlib
import hashlib
import json
import os
import shutil
import signal
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pytest

from pipelines import batch_sources
from pipelines.output.run_folder import MANIFEST
from pipelines.output.store import open_store
from tests.support.clusters import dask_program
from tests.support.object_store import objects, served, skip_without_server
from tests.support.processes import ROOT, finish, ran, session_of, started, wait_until

PARTS, EDGES, URL = 200, "s3://bucket/edges.parquet", "s3://bucket/run"
HOSTS = {"center": "10.77.0.1", "a": "10.77.0.2", "b": "10.77.0.3", "job": "10.77.0.4"}
APART = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]


@pytest.mark.exhaustive
def test_a_run_between_hosts_survives_kills_and_a_cut_and_is_that_of_one_process(tmp_path):
    skip_without_server()
    if not (
        shutil.which("unshare")
        and shutil.which("ip")
        and ran([*APART, "ip", "link"]).returncode == 0
    ):
        pytest.skip("namespaces are not permitted here")
    done = ran([*APART, sys.executable, "-m", "tests.job.test_between_hosts", tmp_path])
    assert done.returncode == 0, done.stdout + done.stderr
    seen = json.loads((tmp_path / "seen.json").read_text())
    moments, manifest = seen["moments"], seen["manifest"]
    assert list(moments) == ["worker killed", "cut off", "lost", "healed", "job killed", "end"]
    counts = [len(parts) for parts in moments.values()]
    assert 0 < counts[0] < counts[1] < counts[2] < counts[3] <= counts[4] < PARTS == counts[5], (
        counts
    )
    assert seen["resumed"]["kept"] >= counts[4]
    assert seen["resumed"]["computed"] == PARTS - seen["resumed"]["kept"] > 0
    assert manifest["digest"] == seen["resumed"]["digest"] == seen["alone"]["digest"]
    whole = {part["file"]: part["sha256"] for part in manifest["parts"]}
    assert whole == {part["file"]: part["sha256"] for part in seen["alone"]["parts"]}
    assert all(parts.items() <= whole.items() for parts in moments.values()), (
        "a part was there that was not whole"
    )
    assert seen["others"] == ["_SUCCESS", MANIFEST]
    hosts = {part["worker"].rpartition(":")[0] for part in manifest["parts"] if "worker" in part}
    assert hosts == {f"tcp://{HOSTS[name]}" for name in "ab"}
    assert {each["why"] for each in manifest["retried"]} == {"its worker died"}
    assert manifest["failed"] == []
    assert "distributed" not in (tmp_path / "job.log").read_text(), (
        "Dask's own log is none of the job's messages"
    )
    assert seen["graphs"] == {"a": 1, "b": 1, "job": 1}, (
        "each host copies the graph once, and no other host's files"
    )


def call(*words):
    done = ran(words)
    assert done.returncode == 0, (words, done.stderr)


def connect(folder):
    """Give each host a network and a folder of its own; the hosts reach each other over a bridge."""
    call("mount", "-t", "tmpfs", "none", "/run")
    (folder / "center").mkdir(mode=0o700)
    call("ip", "link", "set", "lo", "up")
    call("ip", "link", "add", "bridge", "type", "bridge")
    call("ip", "addr", "add", f"{HOSTS['center']}/24", "dev", "bridge")
    call("ip", "link", "set", "bridge", "up")
    for name in ("a", "b", "job"):
        (folder / name).mkdir(mode=0o700)
        call("ip", "netns", "add", name)
        call(
            "ip", "link", "add", f"to-{name}", "type", "veth", "peer", "name", "eth0", "netns", name
        )
        call("ip", "link", "set", f"to-{name}", "master", "bridge")
        call("ip", "link", "set", f"to-{name}", "up")
        call("ip", "-n", name, "addr", "add", f"{HOSTS[name]}/24", "dev", "eth0")
        call("ip", "-n", name, "link", "set", "eth0", "up")
        call("ip", "-n", name, "link", "set", "lo", "up")


def at(folder, name):
    """The words before a command on a host, and its options. It sees no folder of another host."""
    hidden = "".join(f"mount -t tmpfs none {folder / other} && " for other in HOSTS.keys() - {name})
    own = dict.fromkeys(("HOME", "TMPDIR", "KEPLER_CACHE_DIR"), str(folder / name))
    pinned = {
        "SCHEDULER__ALLOWED_FAILURES": "0",
        "WORKER__PROFILE__ENABLED": "False",
        "COMM__TIMEOUTS__TCP": "11s",
    }
    env = (
        os.environ
        | own
        | {"PYTHONPATH": str(ROOT)}
        | {f"DASK_DISTRIBUTED__{key}": pinned[key] for key in pinned}
    )
    before = (
        []
        if name == "center"
        else ["ip", "netns", "exec", name, "sh", "-c", f'{hidden}exec "$@"', "sh"]
    )
    return before, {"env": env, "cwd": folder / name}


def workers_of_nanny(nanny):
    """The worker processes of Dask, which a nanny spawns."""
    children = psutil.Process(nanny.pid).children(recursive=True)
    return [child for child in children if any("spawn_main" in word for word in child.cmdline())]


def main(folder):
    connect(folder)
    moments, log = {}, folder / "job.log"
    with contextlib.ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        server = stack.enter_context(served(patch, HOSTS["center"]))

        def note(moment):
            parts = {
                name: data for name, data in objects("run").items() if name.startswith("part-")
            }
            moments[moment] = {
                name: hashlib.sha256(data).hexdigest() for name, data in parts.items()
            }

        def wait_for(event, host):
            wait_until(lambda: f"{event}: worker tcp://{HOSTS[host]}:" in log.read_text(), job)

        def wait_for_parts(more):
            least = len(objects("run")) + more
            wait_until(lambda: len(objects("run")) >= least, job)

        row = np.arange(PARTS)
        with open_store("s3://bucket").new_file("edges.parquet") as file:
            pd.DataFrame({"src": row, "dst": (7 * row + 1) % PARTS}).to_parquet(file)
        words = [EDGES, "--all-sources", "--batch-size", "1", "--device", "cpu", "--no-report"]
        words += ["--graph-cache", "s3://bucket/graphs"]
        with patch.context() as here:
            here.setenv("KEPLER_CACHE_DIR", str(folder / "center"))
            assert batch_sources.main([*words, "--output", str(folder / "alone")]) == 0
        before, options = at(folder, "center")
        stack.enter_context(
            dask_program("scheduler", folder, "--host", HOSTS["center"], before=before, **options)
        )
        address = json.loads((folder / "scheduler.json").read_text())["address"]

        def start_worker(name):
            before, options = at(folder, name)
            own = [
                "--host",
                HOSTS[name],
                "--nanny",
                "--memory-limit",
                0,
                "--local-directory",
                folder / name,
            ]
            return stack.enter_context(
                dask_program("worker", folder, *own, before=before, **options)
            )

        on_a, on_b = map(start_worker, "ab")
        before, options = at(folder, "job")
        words = [*before, sys.executable, "-m", "pipelines.batch_sources", *words, "--output", URL]
        words += ["--scheduler-address", address]
        # each part takes a second, so that the run does not end before all has happened to it
        server.slow_share = 1.0
        with open(log, "w") as file, started(words, **options | {"stderr": file}) as job:
            wait_until(lambda: objects("run"), job)
            wait_for_parts(4)
            (worker,) = wait_until(lambda: workers_of_nanny(on_a), job)
            worker.kill()
            note("worker killed")
            wait_for("joined", "a")
            wait_for_parts(4)
            call("ip", "link", "set", "to-b", "down")
            note("cut off")
            wait_for("lost", "b")
            wait_for_parts(4)
            note("lost")
            call("ip", "link", "set", "to-b", "up")
            # a worker that has lost its scheduler ends, with its nanny
            wait_until(lambda: on_b.poll() is not None, job)
            start_worker("b")
            wait_for("joined", "b")
            wait_for_parts(4)
            note("healed")
            os.killpg(job.pid, signal.SIGKILL)
            wait_until(lambda: not session_of(job))
            note("job killed")
        server.slow_share = 0.0
        with started([*words, "--resume", "--json"], **options) as job:
            code, out, err = finish(job)
        assert code == 0, err
        note("end")
        done = ran(
            [*before, sys.executable, "-m", "pipelines.verify", URL, EDGES, "--device", "cpu"],
            **options,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        found = objects("run")
    seen = {
        "moments": moments,
        "others": sorted(found.keys() - moments["end"].keys()),
        "resumed": json.loads(out),
        "manifest": json.loads(found[MANIFEST]),
        "alone": json.loads((folder / "alone" / MANIFEST).read_text()),
        "graphs": {
            name: len(list((folder / name / "graphs").glob("graph-*/")))
            for name in ("a", "b", "job")
        },
    }
    (folder / "seen.json").write_text(json.dumps(seen))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
