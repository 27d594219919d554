"""``--sort distance``: the same rows in another order, which readers skip through; resumed, verified, forged."""

import itertools
import shutil

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kepler_traverse import bfs_many, graph_from_edges
from pipelines.batch_sources import main
from pipelines.output import row_groups
from tests.job.test_result_kinds import first_lost, forge
from tests.support.jobs import manifest_of, parts_of, proven, refused, write_edges

ORDER = ["distance", "source", "vertex"]
SOURCES = "v7,v35,v10,v9"
CASES = {
    "hops": ["--algorithm", "bfs"],
    "weights": ["--algorithm", "sssp", "--cutoff", "40"],
    "predecessors": ["--algorithm", "sssp", "--result", "predecessors"],
    "nulls": ["--algorithm", "bfs", "--unreached", "null"],
    "a part without rows": ["--algorithm", "bfs", "--targets", "v7", "--max-depth", "0"],
    "marks": ["--algorithm", "bfs", "--targets", "v3,v9,v1", "--unreached", "null"],
}


@pytest.fixture(scope="module")
def edges(tmp_path_factory):
    rng = np.random.default_rng(7)
    src, dst = ([f"v{i}" for i in ends] for ends in rng.integers(0, 90, (2, 150)))
    return write_edges(
        tmp_path_factory.mktemp("edges") / "edges.parquet", src, dst, rng.integers(0, 9, len(src))
    )


@pytest.fixture(scope="module")
def job(edges, tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    count = itertools.count()

    def run(*words, folder=None):
        folder = folder or root / str(next(count))
        asked = [
            str(edges),
            "--sources",
            SOURCES,
            "--device",
            "cpu",
            "--no-report",
            "--json",
            "--output",
            str(folder),
        ]
        assert main([*asked, "--batch-size", "3", *words]) == 0
        return folder

    return run


@pytest.mark.parametrize("case", CASES)
def test_rows_are_the_same_in_another_order(case, edges, job, capsys):
    plain, folder = job(*CASES[case]), job(*CASES[case], "--sort", "distance")
    assert manifest_of(folder)["digest"] == manifest_of(plain)["digest"]
    assert parts_of(folder) == parts_of(job(*CASES[case], "--sort", "distance"))
    for name in parts_of(folder):
        expected = pd.read_parquet(plain / name).sort_values(ORDER, ignore_index=True)
        pd.testing.assert_frame_equal(pd.read_parquet(folder / name), expected)
        metadata = pq.read_metadata(folder / name)
        for group in range(metadata.num_row_groups):
            names = [
                expected.columns[each.column_index]
                for each in metadata.row_group(group).sorting_columns
            ]
            assert names == ([] if expected["distance"].isna().any() else ORDER)
    code, found = proven(folder, edges, capsys)
    assert (code, found["faults"]) == (0, [])
    assert found["proven"] == proven(plain, edges, capsys)[1]["proven"]


def swapped(table):
    return pa.concat_tables([table.slice(1, 1), table.slice(0, 1), table.slice(2)])


@pytest.mark.parametrize("case", ["predecessors", "nulls"])
@pytest.mark.parametrize(
    ("change", "kinds"), [(swapped, {"order"}), (first_lost, {"rows", "wrong result"})]
)
def test_another_order_and_lost_rows_are_found(change, kinds, case, edges, job, tmp_path, capsys):
    folder = shutil.copytree(job(*CASES[case], "--sort", "distance"), tmp_path / "out")
    forge(folder, change)
    code, found = proven(folder, edges, capsys)
    assert code == 5
    assert {fault["kind"] for fault in found["faults"]} & kinds


def test_resuming_keeps_the_order(job, edges, tmp_path, capsys):
    folder = job("--sort", "distance", folder=tmp_path / "out")
    before = parts_of(folder)
    (folder / "part-000001.parquet").unlink()
    job("--sort", "distance", "--resume", folder=folder)
    assert parts_of(folder) == before
    words = [
        str(edges),
        "--sources",
        SOURCES,
        "--device",
        "cpu",
        "--no-report",
        "--output",
        str(folder),
    ]
    assert "sort was" in refused(capsys, *words, "--batch-size", "3", "--resume")


def test_readers_skip_nine_tenths_of_a_sorted_part(tmp_path, monkeypatch):
    monkeypatch.setattr(row_groups, "GROUP_BYTES", 2**13)
    ring = pd.DataFrame({"src": range(4000), "dst": [*range(1, 4000), 0]})
    ring.to_parquet(tmp_path / "ring.parquet")
    words = [
        "--sources",
        "7,3000",
        "--device",
        "cpu",
        "--no-report",
        "--sort",
        "distance",
        "--batch-size",
        "2",
    ]
    assert main([str(tmp_path / "ring.parquet"), *words, "--output", str(tmp_path / "out")]) == 0
    path = str(tmp_path / "out/part-000000.parquet")
    groups = [
        pq.read_metadata(path).row_group(i) for i in range(pq.read_metadata(path).num_row_groups)
    ]
    read = [group.total_byte_size for group in groups if group.column(2).statistics.min < 100]
    assert 0 < 10 * sum(read) < sum(group.total_byte_size for group in groups)
    duckdb = pytest.importorskip("duckdb")
    assert duckdb.sql(f"select count(*) from '{path}' where distance < 100").fetchall() == [(200,)]


def test_the_library_has_no_such_option():
    with pytest.raises(TypeError, match="sort"):
        bfs_many(graph_from_edges([1], [2]), [1], sort="distance")
