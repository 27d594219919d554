"""``--unreached``: rows of vertices without a path, as the library has them; any batches, resumed, verified, refused."""

import functools
import shutil

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.job.test_result_kinds import first_lost, forge
from tests.support.jobs import (
    Runs,
    by_library,
    forget_parts,
    manifest_of,
    parts_of,
    proven,
    refused,
    rows_of,
    summary_of,
    write_edges,
)  # fmt: skip

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
    rng = np.random.default_rng(7)
    src, dst = (
        np.concatenate([rng.integers(0, N, (2, 60)), [np.arange(N), np.arange(N)]], axis=1) * 7
    )
    return write_edges(
        tmp_path_factory.mktemp("edges") / "edges.parquet", src, dst, rng.integers(0, 9, src.size)
    )


def command(edges, folder, *more):
    words = [
        edges,
        "--sources",
        ",".join(map(str, SOURCES)),
        "--device",
        "cpu",
        "--no-report",
        "--json",
        "--output",
        folder,
    ]
    return [str(word) for word in (*words, *more)]


@pytest.fixture(scope="module")
def job(edges, tmp_path_factory):
    return Runs(tmp_path_factory.mktemp("runs"), functools.partial(command, edges))


@pytest.mark.parametrize("unreached", ["null", "cugraph"])
@pytest.mark.parametrize("case", CASES)
def test_rows_are_those_of_the_library_for_any_batches(case, unreached, edges, job, capsys):
    words = [*CASES[case], "--unreached", unreached]
    folder = job(*words, "--batch-size", "2")
    _, expected = by_library(edges, CASES[case], SOURCES, unreached=unreached)
    table = pa.concat_tables(
        pq.read_table(path) for path in sorted(folder.glob("part-*"))
    ).replace_schema_metadata(None)
    assert table.column_names == list(expected.columns)
    for name in table.column_names:
        assert [None if pd.isna(value) else value for value in expected[name]] == table[
            name
        ].to_pylist()
        if unreached == "cugraph":
            assert table[name].type == pa.from_numpy_dtype(expected[name].dtype)
    digest = manifest_of(folder)["digest"]
    for other in (job(*words, "--batch-size", "9"), job(*words, "--certify", "none")):
        assert manifest_of(other)["digest"] == digest
    code, found = proven(folder, edges, capsys)
    assert (code, found["proven"]) == (0, {"traversed again": len(SOURCES)})


def test_parts_are_kept_or_made_again(edges, job, tmp_path, capsys):
    words = [
        "--algorithm",
        "sssp",
        "--result",
        "predecessors",
        "--unreached",
        "cugraph",
        "--batch-size",
        "2",
    ]
    folder = shutil.copytree(job(*words), tmp_path / "out")
    before = parts_of(folder)
    forget_parts(folder)
    (folder / "part-000001.parquet").unlink()
    assert summary_of(capsys, *command(edges, folder, *words, "--resume"))["computed"] == 1
    assert parts_of(folder) == before
    assert "unreached was" in refused(
        capsys, *command(edges, folder, *words[:4], *words[6:], "--resume")
    )


def marked_as_reached(table):
    distance = table["distance"].to_pylist()
    distance[distance.index(None)] = 1
    return table.set_column(2, "distance", pa.array(distance, table["distance"].type))


@pytest.mark.parametrize("change", [first_lost, marked_as_reached])
def test_wrong_rows_are_found(change, edges, job, tmp_path, capsys):
    folder = shutil.copytree(job("--unreached", "null", "--batch-size", "2"), tmp_path / "out")
    forge(folder, change)
    code, found = proven(folder, edges, capsys)
    assert (code, {fault["kind"] for fault in found["faults"]}) == (5, {"wrong result"})


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--result summary --unreached null", "--unreached is for --result distances or predecessors, not summary"),
        ("--id-type string --unreached cugraph", "marks a missing predecessor by -1, which needs signed integer ids"),
    ],
)  # fmt: skip
def test_unreached_is_refused_where_there_are_no_marks(words, said, edges, tmp_path, capsys):
    assert said in refused(capsys, *command(edges, tmp_path / "out", *words.split()))
    assert not (tmp_path / "out").exists()


def test_every_vertex_of_a_source_has_a_row(job):
    rows = rows_of(job("--unreached", "null", "--batch-size", "2"))
    assert len(rows) == len(SOURCES) * N
