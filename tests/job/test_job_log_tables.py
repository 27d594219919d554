"""A job whose edges are a table with a log, and the doors of its other tables, which refuse one."""

import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kepler_traverse import read_graph
from pipelines import batch_sources, finish, verify
from tests.graph.test_log_tables import READ, data_file_of
from tests.support.edge_files import need


def run(*flags):
    return batch_sources.main([*map(str, flags), "--device", "cpu"])


@pytest.mark.parametrize("name", ["delta, overwritten", "iceberg with a hint"])
def test_a_job_reads_live_rows_and_its_output_is_verified(tmp_path, name):
    folder = tmp_path / "t"
    READ[name](folder)
    assert run(folder, "--algorithm", "sssp", "--sources", "a", "--output", tmp_path / "o") == 0
    rows = pd.read_parquet(tmp_path / "o", columns=["vertex", "distance"])
    assert dict(zip(rows["vertex"], rows["distance"], strict=True)) == {"a": 0, "b": 9}
    assert verify.main([str(tmp_path / "o"), str(folder)]) == 0


@pytest.mark.parametrize(
    "flag", ["--sources", "--targets", "--pairs", "--vertices", "--only-vertices", "--through"]
)
@pytest.mark.parametrize("is_folder", [False, True])
def test_other_tables_of_a_job_are_plain_files(tmp_path, capsys, flag, is_folder):
    READ["delta, overwritten"](tmp_path / "t")
    (tmp_path / "e.csv").write_text("src,dst,weight\na,b,1\nb,c,2\n")
    given = tmp_path / "t" if is_folder else data_file_of(tmp_path / "t")
    kind = {"--targets": ["--result", "targets"], "--through": ["--result", "flows"]}.get(flag, [])
    sources = ["--sources", "a"] if flag not in ("--sources", "--pairs") else []
    code = run(tmp_path / "e.csv", flag, given, *kind, *sources, "--output", tmp_path / "o")
    assert code == 2
    assert "a table of Delta Lake" in capsys.readouterr().err
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize("table", ["delta", "iceberg"])
def test_a_table_of_a_finished_run_is_read_by_its_log(tmp_path, table):
    need("deltalake" if table == "delta" else "pyiceberg.table")
    (tmp_path / "e.csv").write_text("src,dst,weight\na,b,1\nb,c,2\n")
    out = tmp_path / "o"
    assert run(tmp_path / "e.csv", "--sources", "a,b", "--output", out) == 0
    assert finish.main([str(out), "--table", table]) == 0
    names = {"src_column": "source", "dst_column": "vertex", "weight_column": "distance"}
    expected = read_graph(pd.read_parquet(out), **names)
    assert read_graph(out, **names).fingerprint == expected.fingerprint


@pytest.mark.parametrize("flag", ["--sources", "--pairs", "--vertices"])
def test_tables_of_a_job_that_stand_for_gigabytes_are_refused(tmp_path, capsys, flag):
    codes = np.zeros(20_000, np.int32)
    names = {"--pairs": ("src", "dst")}.get(flag, ("vertex",))
    long = pa.DictionaryArray.from_arrays(codes, pa.array(["x" * 2**20]))
    pq.write_table(
        pa.table(dict.fromkeys(names, long)),
        tmp_path / "t.parquet",
        compression="zstd",
        store_schema=False,
    )
    (tmp_path / "e.csv").write_text("src,dst,weight\na,b,1\nb,c,2\n")
    sources = [] if flag in ("--sources", "--pairs") else ["--sources", "a"]
    assert (
        run(tmp_path / "e.csv", flag, tmp_path / "t.parquet", *sources, "--output", tmp_path / "o")
        == 2
    )
    said = capsys.readouterr().err
    assert "t.parquet: its" in said
    assert "GiB or more" in said


def test_a_compressed_table_that_unpacks_without_end_is_refused(tmp_path, capsys):
    (tmp_path / "p.csv.gz").write_bytes(gzip.compress(b"src,dst\n" + b"a,b\n" * (1 << 23)))
    (tmp_path / "e.csv").write_text("src,dst,weight\na,b,1\nb,c,2\n")
    assert (
        run(tmp_path / "e.csv", "--pairs", tmp_path / "p.csv.gz", "--output", tmp_path / "o") == 2
    )
    assert "unpacks to more than 200 times its size" in capsys.readouterr().err
