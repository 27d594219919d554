"""``finish --table``: the parts of a run as tables of Delta Lake and Apache Iceberg, which other programs read."""

import importlib.util
import json
import os
import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kepler_traverse.errors import InputError
from pipelines import batch_sources, finish
from pipelines.output.run_folder import MANIFEST
from pipelines.output.store import Store
from pipelines.output.tables import TABLE_FORMATS, register
from pipelines.verify import prove_output
from tests.job.test_shards import folder, run, shards  # noqa: F401
from tests.support.object_store import served, skip_without_server
from tests.support.tiers import few

pytest.importorskip("deltalake", reason="deltalake (extra tables) is not installed")
pytest.importorskip("pyiceberg", reason="pyiceberg (extra tables) is not installed")
FORMATS = sorted(TABLE_FORMATS)


def _by_deltalake(out):
    from deltalake import DeltaTable

    return DeltaTable(out).to_pyarrow_table()


def _by_pyiceberg(out):
    from pyiceberg.table import StaticTable

    of_store = {}
    if out.startswith("s3:"):
        of_store = {
            "s3.endpoint": os.environ["AWS_ENDPOINT_URL"],
            "s3.region": os.environ["AWS_REGION"],
        }
    return StaticTable.from_metadata(f"{out}/_iceberg", of_store).scan().to_arrow()


def _delta_by_polars(out):
    import polars

    return polars.scan_delta(out).collect().to_arrow()


def _iceberg_by_polars(out):
    import polars

    return polars.scan_iceberg(f"{out}/_iceberg").collect().to_arrow()


def _duckdb(query, *extensions):
    import duckdb

    connection = duckdb.connect(
        config={"allow_unsigned_extensions": "true", "autoinstall_known_extensions": "false"}
    )
    for name in extensions:
        package = importlib.util.find_spec(f"duckdb_extension_{name}").submodule_search_locations[0]
        (path,) = Path(package).rglob("*.duckdb_extension")
        connection.execute(f"load '{path}'")
    return connection.sql(query).to_arrow_table()


def _delta_by_duckdb(out):
    return _duckdb(f"from delta_scan('{out}')", "parquet", "delta")


def _iceberg_by_duckdb(out):
    return _duckdb(f"from iceberg_scan('{out}/_iceberg')", "parquet", "avro", "iceberg")


READERS = {
    ("delta", _by_deltalake): (),
    ("iceberg", _by_pyiceberg): (),
    ("delta", _delta_by_polars): ("polars",),
    ("iceberg", _iceberg_by_polars): ("polars",),
    ("delta", _delta_by_duckdb): ("duckdb_extension_delta",),
    ("iceberg", _iceberg_by_duckdb): ("duckdb_extension_iceberg",),
}
HERE = [reader for reader, needs in READERS.items() if all(map(importlib.util.find_spec, needs))]


@pytest.fixture(scope="module")
def runs(folder, tmp_path_factory):  # noqa: F811
    """Output folders by name: integers in six parts, and strings, floats and nulls in three, of which one has no row."""
    path = tmp_path_factory.mktemp("runs")
    assert run(folder, path / "integers") == 0
    edges = pd.DataFrame(
        {"src": ["a", "a", "b", "y"], "dst": ["b", "c", "c", "z"], "weight": [1.5, 0.1, 2.25, 3.0]}
    )
    edges.to_parquet(path / "texts.parquet")
    words = [
        path / "texts.parquet",
        "--algorithm",
        "sssp",
        "--device",
        "cpu",
        "--batch-size",
        "1",
        "--sources",
        "a,b,y",
    ]
    words += [
        "--result",
        "nearest_targets",
        "--targets",
        "b,c",
        "--nearest-k",
        "2",
        "--output",
        path / "texts",
    ]
    assert batch_sources.main(list(map(str, words))) == 0
    return path


@pytest.fixture
def out(runs, tmp_path):
    return shutil.copytree(runs / "integers", tmp_path / "out")


def finished(out, *more):
    return finish.main([str(out), *more])


def rows(table):
    columns = (table[name].to_pylist() for name in sorted(table.column_names))
    return sorted(zip(*columns, strict=True), key=repr)


def parts_of(out):
    return {
        path.name: pq.ParquetFile(path).read() for path in sorted(Path(out).glob("part-*.parquet"))
    }


def files(out):
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file()
    }


def faults(out, edges):
    return [(each.kind, each.file) for each in prove_output(out, [str(edges)], "cpu").faults]


@pytest.mark.parametrize("name", ["integers", "texts"])
@pytest.mark.parametrize("reader", HERE, ids=lambda reader: reader[1].__name__.strip("_"))
def test_readers_find_the_rows_of_the_parts(runs, tmp_path, monkeypatch, reader, name):
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    out, (kind, read) = shutil.copytree(runs / name, tmp_path / "out"), reader
    before = files(out)
    assert finished(out, "--table", kind) == 0
    assert {file: data for file, data in files(out).items() if file in before} == before
    expected = pa.concat_tables(parts_of(out).values())
    found = read(str(out))
    assert sorted(found.column_names) == sorted(expected.column_names)
    assert rows(found) == rows(expected)
    assert (
        len(rows(found))
        == sum(part["rows"] for part in json.loads((out / MANIFEST).read_text())["parts"])
        > 0
    )


@pytest.mark.parametrize("name", ["integers", "texts"])
def test_tables_have_the_bounds_and_counts_of_the_parts(runs, tmp_path, name):
    from deltalake import DeltaTable
    from pyiceberg.table import StaticTable

    found = {}
    for kind in FORMATS:
        out = shutil.copytree(runs / name, tmp_path / kind)
        assert finished(out, "--table", kind) == 0
        if kind == "delta":
            for each in pa.table(DeltaTable(out).get_add_actions(flatten=True)).to_pylist():
                found[kind, each["path"]] = (
                    each["num_records"],
                    {
                        column: tuple(
                            each.get(f"{what}.{column}") for what in ("min", "max", "null_count")
                        )
                        for column in pq.read_schema(out / each["path"]).names
                    },
                )
        else:
            for each in StaticTable.from_metadata(f"{out}/_iceberg").inspect.files().to_pylist():
                found[kind, os.path.basename(each["file_path"])] = (
                    each["record_count"],
                    {
                        column: tuple(
                            facts[what]
                            for what in ("lower_bound", "upper_bound", "null_value_count")
                        )
                        for column, facts in each["readable_metrics"].items()
                    },
                )
    for file, part in parts_of(runs / name).items():
        frame = part.to_pandas()
        for kind in FORMATS:
            count, columns = found.pop((kind, file))
            assert count == part.num_rows
            for column in part.column_names if part.num_rows else ():
                known = frame[column].dropna()
                bounds = (None, None) if known.empty else (known.min(), known.max())
                assert columns[column] == (*bounds, frame[column].isna().sum()), (
                    kind,
                    file,
                    column,
                )
    assert not found


@pytest.mark.parametrize("kind", FORMATS)
def test_a_table_is_made_once_and_verify_accepts_it(folder, out, capsys, kind):  # noqa: F811
    digest = json.loads((out / MANIFEST).read_text())["digest"]
    for was_there in (False, True, True):
        before = files(out)
        capsys.readouterr()
        assert finished(out, "--table", kind, "--json") == 0
        facts = json.loads(capsys.readouterr().out)
        address = f"{out}/_iceberg" if kind == "iceberg" else str(out)
        assert facts["table"] == {"format": kind, "address": address, "was_there": was_there}
        assert (facts["digest"], files(out) == before) == (digest, was_there)
    assert not faults(out, folder / "edges.parquet")
    (out / "part-000001.parquet").unlink()  # a part that is computed again has the same bytes
    assert run(folder, out, "--resume") == 0
    assert not faults(out, folder / "edges.parquet")
    assert finished(out, "--table", kind) == 0
    assert "was there before" in capsys.readouterr().out
    (other,) = set(FORMATS) - {kind}
    assert finished(out, "--table", other) == 2
    assert f"table of {kind} already" in capsys.readouterr().err


def test_the_parts_of_shards_become_a_table_when_all_are_there(folder, tmp_path):  # noqa: F811
    out = tmp_path / "out"
    assert run(folder, out, "--shard", "0/2") == 0
    assert finished(out, "--table", "delta") == finish.EXIT_INCOMPLETE
    assert not (out / "_delta_log").exists()
    assert run(folder, out, "--shard", "1/2") == 0
    assert finished(out, "--table", "delta") == 0
    assert rows(_by_deltalake(str(out))) == rows(pa.concat_tables(parts_of(out).values()))


def without_a_part(out, kind, change):
    """Make a table that ``change`` makes wrong: of parts without the second, or with a wrong count of its rows."""
    if kind == "iceberg":
        names = sorted(parts_of(out))
        if change == "rows":  # that of another file
            shutil.copy(out / names[0], out / names[1])
        layout = SimpleNamespace(names=lambda: names[:1] + names[1 + (change == "lacks") :])
        TABLE_FORMATS[kind].write(
            Store(out), f"file://{out}", pq.read_schema(out / names[0]), layout
        )
        return
    assert finished(out, "--table", kind) == 0
    log = out / "_delta_log/00000000000000000000.json"
    lines = log.read_text().splitlines()
    (at,) = (index for index, line in enumerate(lines) if "part-000001" in line)
    lines[at] = "" if change == "lacks" else re.sub(r'(numRecords\\":)\d+', r"\g<1>7", lines[at])
    log.write_text("\n".join(filter(None, lines)))


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("change", ["lacks", "rows"])
def test_a_table_of_other_files_than_the_parts_is_found(folder, runs, out, capsys, kind, change):  # noqa: F811
    without_a_part(out, kind, change)
    shutil.copy(runs / "integers/part-000001.parquet", out)
    assert faults(out, folder / "edges.parquet") == [("table", TABLE_FORMATS[kind].folder)]
    assert finished(out, "--table", kind) == 2
    said = capsys.readouterr().err
    assert "the table lacks part-000001.parquet of" in said
    assert (" and names part-000001.parquet of" in said) == (change == "rows")
    shutil.rmtree(out / TABLE_FORMATS[kind].folder)
    assert finished(out, "--table", kind) == 0
    assert not faults(out, folder / "edges.parquet")


@pytest.mark.parametrize("kind", FORMATS)
def test_a_table_that_cannot_be_read_is_a_fault(folder, out, kind):  # noqa: F811
    assert finished(out, "--table", kind) == 0
    for path in (out / TABLE_FORMATS[kind].folder).rglob("*.json"):
        path.write_text("{")
    assert faults(out, folder / "edges.parquet") == [("table", TABLE_FORMATS[kind].folder)]


def test_another_process_may_make_the_table_first_and_a_failure_is_told(out, monkeypatch, capsys):
    make = TABLE_FORMATS["delta"].write

    def second(*args):
        make(*args)
        make(*args)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(TABLE_FORMATS, "delta", TABLE_FORMATS["delta"]._replace(write=full))
    assert finished(out, "--table", "delta") == 2
    assert "the table cannot be written: [Errno 28] No space left" in capsys.readouterr().err
    monkeypatch.setitem(TABLE_FORMATS, "delta", TABLE_FORMATS["delta"]._replace(write=second))
    assert finished(out, "--table", "delta") == 0


@pytest.mark.parametrize("kind", FORMATS)
def test_a_missing_package_is_named_with_its_extra(folder, out, monkeypatch, capsys, kind):  # noqa: F811
    assert finished(out, "--table", kind) == 0
    package = TABLE_FORMATS[kind].needs[0].partition(".")[0]
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, name, None)
    capsys.readouterr()
    assert finished(out, "--table", kind) == 2
    assert f"needs {package}" in capsys.readouterr().err
    with pytest.raises(InputError, match=r"pip install .*\[tables\]"):
        prove_output(out, [str(folder / "edges.parquet")], "cpu")


@pytest.mark.parametrize(
    ("columns", "result", "kind", "said"),
    [
        ({"source": pa.uint64()}, "distances", "delta", "column 'source' has type uint64, .* has no unsigned integers"),
        ({"source": pa.uint64()}, "distances", "iceberg", "column 'source' has type uint64"),
        ({"source": pa.int64(), "Jobs": pa.int64(), "jobs": pa.int64()}, "opportunities", "delta",
         "'Jobs' and 'jobs' are one"),
        ({"source": pa.int64(), "Source": pa.int64()}, "opportunities", "iceberg", "'source' and 'Source' are one"),
        ({"source": pa.int64(), "jobs (all)": pa.int64()}, "opportunities", "delta", r"column 'jobs \(all\)': names"),
        ({"source": pa.int64()}, "flows", "iceberg", "no table; take _loads.pq"),
        ({"source": pa.int64()}, "matrix", "delta", "are Arrow files"),
    ],
)  # fmt: skip
def test_what_a_table_cannot_hold_is_refused(tmp_path, columns, result, kind, said):
    pq.write_table(pa.schema(columns).empty_table(), tmp_path / "part-000000.parquet")
    manifest = {"result": result, "sources": 1, "identity": {"batch_size": 1}, "fingerprint": ""}
    manifest["parts"] = [{"file": "part-000000.parquet", "bytes": 1, "rows": 0}]
    with pytest.raises(InputError, match=said):
        register(Store(tmp_path), manifest, kind)
    assert os.listdir(tmp_path) == ["part-000000.parquet"]


def test_a_path_that_no_table_can_name_is_refused(runs, tmp_path, capsys):
    out = shutil.copytree(runs / "texts", tmp_path / "100%")
    assert finished(out, "--table", "iceberg") == 2
    assert "#, ? or %" in capsys.readouterr().err


@pytest.mark.parametrize("kind", few(FORMATS, 1))
def test_parts_in_an_object_store_become_a_table_there(folder, tmp_path, monkeypatch, kind):  # noqa: F811
    skip_without_server()
    monkeypatch.setenv("KEPLER_CACHE_DIR", str(tmp_path / "copies"))
    url = f"s3://bucket/{kind}"
    with served(monkeypatch):
        assert shards(folder, url) == [0, 0, 0]
        for _ in range(2):
            assert finished(url, "--table", kind) == 0
        read = {"delta": _by_deltalake, "iceberg": _by_pyiceberg}[kind]
        assert run(folder, tmp_path / "here") == 0
        assert rows(read(url)) == rows(pa.concat_tables(parts_of(tmp_path / "here").values()))
        assert not faults(url, folder / "edges.parquet")
