"""What the job writes beside distances: the library's own answers, one digest whatever the batches, certified, resumable."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from clusters import two_workers
from distributed import LocalCluster

from kepler_traverse import answers as library
from kepler_traverse import bfs_many, read_graph, sssp_many
from pipelines.batch_sources import main
from pipelines.cluster import pinned
from pipelines.forms import FORMS
from pipelines.sink import FOOTER_KEY, MEANS_KEY, RESULT_KEY

N_SOURCES = 15
TARGETS = [91, 14, 322]  # in no order; the last reaches and is reached by nothing
CASES = {
    "summary": ["--result", "summary"],
    "summary of weights, to a limit": ["--result", "summary", "--algorithm", "sssp", "--cutoff", 9],
    "levels, to a limit": ["--result", "levels", "--max-depth", 4],
    "targets": ["--result", "targets", "--targets", ",".join(map(str, TARGETS))],
    "targets of weights": ["--result", "targets", "--algorithm", "sssp", "--targets", ",".join(map(str, TARGETS))],
    "reachable": ["--result", "reachable"],
    "nearest": ["--result", "nearest", "--max-depth", 2],
    "nearest of weights": ["--result", "nearest", "--algorithm", "sssp"],
}
CERTIFIED = ["summary", "levels, to a limit", "targets of weights", "reachable", "nearest"]


def result_of(case):
    return CASES[case][1]


@pytest.fixture(scope="module")
def edges(tmp_path_factory):
    path = tmp_path_factory.mktemp("edges") / "edges.parquet"
    rng = np.random.default_rng(7)
    src, dst = rng.integers(0, 45, (2, 100)) * 7
    pq.write_table(pa.table({"src": [*src, 322], "dst": [*dst, 322], "weight": rng.integers(0, 9, 101)}), path)
    return path


@pytest.fixture(scope="module")
def schedulers():
    """Addresses of schedulers by how many workers they have."""
    keywords = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with two_workers() as two, pinned(), LocalCluster(n_workers=1, threads_per_worker=1, **keywords) as one:
        yield {1: one.scheduler_address, 2: two.scheduler_address}


@pytest.fixture(scope="module")
def job(edges, schedulers, tmp_path_factory):
    """Runs a case once for each way, and returns its folder; ``command`` is the command line that it ran."""
    root, done = tmp_path_factory.mktemp("runs"), {}

    def command(case, folder, *more, workers=2, batch_size=4):
        words = [edges, "--random-sources", N_SOURCES, "--seed", 3, "--device", "cpu", "--no-report", "--json", *CASES[case]]
        batches = [] if FORMS[result_of(case)].merged else ["--batch-size", batch_size]
        words += [*batches, "--scheduler-address", schedulers[workers], "--output", folder, *more]
        return [str(word) for word in words]

    def run(case, *more, **way):
        key = (case, *more, *way.items())
        if key not in done:
            done[key] = root / str(len(done))
            assert main(command(case, done[key], *more, **way)) == 0
        return done[key]

    run.command = command
    return run


def manifest_of(folder):
    return json.loads((folder / "_manifest.json").read_text())


def parts_of(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.glob("part-*"))}


def written(folder):
    """All rows, each source's at the place that the run gave it."""
    return pd.concat([pd.read_parquet(path) for path in sorted(folder.glob("part-*"))], ignore_index=True)


def answer(edges, case, sources):
    """What the library says."""
    flags = dict(zip(CASES[case][::2], CASES[case][1::2], strict=True))
    hops = flags.get("--algorithm") != "sssp"
    graph = read_graph(edges, device="cpu", weighted=not hops)
    limit = {name: flags[flag] for name, flag in (("max_depth", "--max-depth"), ("cutoff", "--cutoff")) if flag in flags}
    asked = {"targets": TARGETS} if "--targets" in flags else {}
    found = (bfs_many if hops else sssp_many)(graph, sources, result=flags["--result"], **limit, **asked)
    if flags["--result"] != "reachable":
        return found
    source, vertex = np.nonzero(np.unpackbits(found, axis=1, bitorder="little")[:, : graph.n_vertices])
    return pd.DataFrame({"source": np.array(sources)[source], "vertex": graph.ids[vertex]})


@pytest.mark.parametrize("case", CASES)
def test_the_rows_are_the_librarys_answer_whatever_the_batches_and_workers(case, edges, job):
    folder = job(case)
    manifest = manifest_of(folder)
    sources = [source for part in manifest["parts"] for source in part["sources"]]
    rows = written(folder)
    expected = answer(edges, case, sources)
    for name in expected if result_of(case) == "targets" else ():  # pandas marks what is missing in two ways
        rows[name], expected[name] = rows[name].astype(float), expected[name].astype(float)
    pd.testing.assert_frame_equal(rows, expected, check_exact=True)
    assert parts_of(job(case, workers=1)) == parts_of(folder)
    ways = [] if FORMS[result_of(case)].merged else [{"batch_size": 1}, {"batch_size": 7}, {"batch_size": 99, "workers": 1}]
    for way in ways:
        other = job(case, **way)
        assert manifest_of(other)["digest"] == manifest["digest"]
        assert written(other).equals(written(folder))


@pytest.mark.parametrize("case", CASES)
def test_without_certificates_less_is_held_and_the_rows_are_the_same(case, job):
    folder = job(case, "--certify", "none")
    assert manifest_of(folder)["digest"] == manifest_of(job(case))["digest"]
    assert written(folder).equals(written(job(case)))


@pytest.mark.parametrize("case", CERTIFIED)
def test_the_manifest_and_every_part_say_what_was_written(case, job):
    form, manifest = FORMS[result_of(case)], manifest_of(job(case))
    assert (manifest["result"], manifest["means"]) == (form.name, form.means)
    assert manifest["identity"]["result"] == form.name
    for part in manifest["parts"]:
        schema = pq.read_schema(job(case) / part["file"])
        assert schema.names == list(form.columns)
        assert schema.metadata[RESULT_KEY].decode() == form.name
        assert schema.metadata[MEANS_KEY].decode() == form.means
        footer = json.loads(pq.read_metadata(job(case) / part["file"]).metadata[FOOTER_KEY])
        assert (footer["result"], footer["sources"]) == (form.name, part["sources"])
    assert len(manifest["parts"]) == (1 if form.merged else 4)


@pytest.mark.parametrize("case", CERTIFIED)
def test_parts_that_the_manifest_does_not_know_are_kept_if_their_rows_are_right(case, job, tmp_path, capsys):
    folder = tmp_path / "out"
    shutil.copytree(job(case), folder)
    before = parts_of(folder)
    (folder / "_SUCCESS").unlink()
    lagging = manifest_of(folder) | {"status": "running", "parts": [], "digest": None}
    (folder / "_manifest.json").write_text(json.dumps(lagging))
    capsys.readouterr()
    assert main(job.command(case, folder, "--resume")) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["computed"], summary["kept"]) == (0, len(before))
    assert (summary["digest"], summary["result"]) == (manifest_of(job(case))["digest"], result_of(case))
    assert parts_of(folder) == before


def test_a_run_that_is_killed_is_resumed_to_the_same_bytes(job, tmp_path):
    folder = tmp_path / "out"
    words = job.command("summary", folder, batch_size=1)
    with subprocess.Popen([sys.executable, "-m", "pipelines.batch_sources", *words], stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and not list(folder.glob("part-*")):
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGKILL)
    assert not (folder / "_SUCCESS").exists()
    assert main([*words, "--resume"]) == 0
    assert parts_of(folder) == parts_of(job("summary", batch_size=1))


def test_resuming_with_another_result_is_refused(job, capsys):
    folder = job("summary")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    words = [word if word != "summary" else "levels" for word in job.command("summary", folder, "--resume")]
    assert main(words) == 2
    assert 'result was "summary" and is "levels"' in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_targets_in_a_file_are_those_given_by_their_ids(job, tmp_path):
    (tmp_path / "targets.txt").write_text("".join(f"{target}\n" for target in [*TARGETS, TARGETS[0]]))
    folder = tmp_path / "out"
    words = job.command("targets", folder)
    at = words.index("--targets")
    assert main([*words[:at], "--targets-file", str(tmp_path / "targets.txt"), *words[at + 2 :]]) == 0
    assert manifest_of(folder)["identity"] == manifest_of(job("targets"))["identity"]
    assert parts_of(folder) == parts_of(job("targets"))


def test_the_figures_of_a_summary_do_not_depend_on_who_else_is_in_the_group():
    counts = np.array([1, 3, 7, 2, 9, 4, 6, 5] * 20)
    padded = np.append(counts, np.zeros(1000, np.int64))
    assert library.figures_of_counts(padded) == library.figures_of_counts(counts)
    assert library.figures_of_counts(counts)[3] == pytest.approx((counts[1:] / np.arange(1, counts.size)).sum())
