"""``--unreached``: rows of vertices without a path, as the library has them; any batches, resumed, verified, refused."""

import functools
import json
import shutil

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kepler_traverse import bfs_many, read_graph, sssp_many
from pipelines import verify
from pipelines.batch_sources import main
from tests.job.test_result_kinds import first_lost, forge, written
from tests.support.jobs import Runs, manifest_of, parts_of

N = 40
SOURCES = [7, 35, 140, 14, 273]
CASES = {
    "distances": [],
    "predecessors": ["--result", "predecessors", "--max-depth", "2"],
    "distances of weights": ["--algorithm", "sssp", "--cutoff", "5"],
    "predecessors of weights": ["--algorithm", "sssp", "--result", "predecessors"],
    "distances of targets": ["--targets", "70,7,273"],
}


@pytest.fixture(scope="module")
def edges(tmp_path_factory):
    path, rng = tmp_path_factory.mktemp("edges") / "edges.parquet", np.random.default_rng(7)
    src, dst = np.concatenate([rng.integers(0, N, (2, 60)), [np.arange(N), np.arange(N)]], axis=1) * 7
    pq.write_table(pa.table({"src": src, "dst": dst, "weight": rng.integers(0, 9, src.size)}), path)
    return path


def command(edges, folder, *more):
    words = [edges, "--sources", ",".join(map(str, SOURCES)), "--device", "cpu", "--no-report", "--json", "--output", folder]
    return [str(word) for word in (*words, *more)]


@pytest.fixture(scope="module")
def job(edges, tmp_path_factory):
    return Runs(tmp_path_factory.mktemp("runs"), functools.partial(command, edges))


def by_library(edges, case, unreached):
    words = CASES[case]
    flags = dict(zip(words[::2], words[1::2], strict=True))
    hops = "--algorithm" not in flags
    options = {"max_depth": int(flags["--max-depth"])} if "--max-depth" in flags else {}
    options |= {"cutoff": int(flags["--cutoff"])} if "--cutoff" in flags else {}
    options |= {"targets": [int(each) for each in flags["--targets"].split(",")]} if "--targets" in flags else {}
    graph = read_graph(edges, device="cpu", weighted=not hops)
    search = bfs_many if hops else sssp_many
    return search(graph, SOURCES, result=flags.get("--result", "distances"), unreached=unreached, **options)


@pytest.mark.parametrize("unreached", ["null", "cugraph"])
@pytest.mark.parametrize("case", CASES)
def test_rows_are_those_of_the_library_for_any_batches(case, unreached, edges, job, capsys):
    words = [*CASES[case], "--unreached", unreached]
    folder, expected = job(*words, "--batch-size", "2"), by_library(edges, case, unreached)
    table = pa.concat_tables(pq.read_table(path) for path in sorted(folder.glob("part-*"))).replace_schema_metadata(None)
    assert table.column_names == list(expected.columns)
    for name in table.column_names:
        assert [None if pd.isna(value) else value for value in expected[name]] == table[name].to_pylist()
        if unreached == "cugraph":
            assert table[name].type == pa.from_numpy_dtype(expected[name].dtype)
    digest = manifest_of(folder)["digest"]
    for other in (job(*words, "--batch-size", "9"), job(*words, "--certify", "none")):
        assert manifest_of(other)["digest"] == digest
    capsys.readouterr()
    assert verify.main([str(folder), str(edges), "--device", "cpu", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["proven"] == {"traversed again": len(SOURCES)}


def test_parts_are_kept_or_made_again(edges, job, tmp_path, capsys):
    words = ["--algorithm", "sssp", "--result", "predecessors", "--unreached", "cugraph", "--batch-size", "2"]
    folder = tmp_path / "out"
    shutil.copytree(job(*words), folder)
    before = parts_of(folder)
    (folder / "_SUCCESS").unlink()
    lagging = manifest_of(folder) | {"status": "running", "parts": [], "digest": None}
    (folder / "_manifest.json").write_text(json.dumps(lagging))
    (folder / "part-000001.parquet").unlink()
    capsys.readouterr()
    assert main(command(edges, folder, *words, "--resume")) == 0
    assert json.loads(capsys.readouterr().out)["computed"] == 1
    assert parts_of(folder) == before
    assert main(command(edges, folder, *words[:4], *words[6:], "--resume")) == 2
    assert "unreached was" in capsys.readouterr().err


def marked_as_reached(table):
    distance = table["distance"].to_pylist()
    distance[distance.index(None)] = 1
    return table.set_column(2, "distance", pa.array(distance, table["distance"].type))


@pytest.mark.parametrize("change", [first_lost, marked_as_reached])
def test_wrong_rows_are_found(change, edges, job, tmp_path, capsys):
    folder = tmp_path / "out"
    shutil.copytree(job("--unreached", "null", "--batch-size", "2"), folder)
    forge(folder, change)
    capsys.readouterr()
    assert verify.main([str(folder), str(edges), "--device", "cpu", "--json"]) == 5
    assert {fault["kind"] for fault in json.loads(capsys.readouterr().out)["faults"]} == {"wrong result"}


def test_unreached_is_refused_where_there_are_no_marks(edges, tmp_path, capsys):
    assert main(command(edges, tmp_path / "out", "--result", "summary", "--unreached", "null")) == 2
    assert "--unreached is for --result distances or predecessors, not summary" in capsys.readouterr().err
    assert main(command(edges, tmp_path / "out", "--id-type", "string", "--unreached", "cugraph")) == 2
    assert "--unreached cugraph marks a missing predecessor by -1, which needs signed integer ids" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_every_vertex_of_a_source_has_a_row(job):
    rows = written(job("--unreached", "null", "--batch-size", "2"))
    assert len(rows) == len(SOURCES) * N
