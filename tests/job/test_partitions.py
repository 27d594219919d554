"""``--partition-by``: a folder of parts for each value of a column of the table of sources."""

import hashlib
import json
import os
import shutil
from pathlib import Path
from urllib.parse import unquote

import pandas as pd
import pyarrow.parquet as pq
import pytest

from kepler_traverse.errors import InputError
from pipelines import batch_sources, finish
from pipelines.cli.command_line import parse_flags
from pipelines.cli.options import UsageError
from pipelines.cli.settings import read_settings
from pipelines.output.layout import Layout, partition_name
from pipelines.output.run_folder import MANIFEST
from pipelines.verify import prove_output
from tests.job.test_shards import folder  # noqa: F401
from tests.support.jobs import manifest_of
from tests.support.object_store import served, skip_without_server

ZONES = ["Nord", "Süd", "a b", "x/y=1", "100%"]
SIZE = 3


@pytest.fixture(scope="module")
def stops(folder):  # noqa: F811
    """A table of sources: one is there twice."""
    ids = pd.unique(pd.read_parquet(folder / "edges.parquet")["src"])[:24]
    table = pd.DataFrame(
        {
            "stop": ids,
            "zone": [ZONES[at * at % 7 % 5] for at in range(len(ids))],
            "ward": ids % 5 - 2,
        }
    )
    table = pd.concat([table, table[3:4]])
    table.to_csv(folder / "zones.csv", index=False)
    return table


def run(folder, out, *more, table="zones.csv", by="zone"):  # noqa: F811
    words = [
        folder / "edges.parquet",
        "--algorithm",
        "sssp",
        "--device",
        "cpu",
        "--batch-size",
        SIZE,
        "--output",
        out,
    ]
    words += [
        "--sources",
        folder / table,
        "--columns",
        "source=stop",
        *(["--partition-by", by] if by else []),
        *more,
    ]
    return batch_sources.main(list(map(str, words)))


@pytest.fixture(scope="module")
def runs(folder, stops, tmp_path_factory):  # noqa: ARG001, F811
    """The same run by zones, by wards and in one folder."""
    path = tmp_path_factory.mktemp("partitions")
    for by in ("zone", "ward", None):
        assert run(folder, path / str(by), by=by) == 0
    return path


@pytest.fixture
def out(runs, tmp_path):
    return shutil.copytree(runs / "zone", tmp_path / "out")


def parts_in(out):
    return sorted(str(path.relative_to(out)) for path in Path(out).rglob("part-*"))


def bytes_of(out):
    return {name: (out / name).read_bytes() for name in parts_in(out)}


def faults(out, folder, **more):  # noqa: F811
    return {
        (each.kind, each.file)
        for each in prove_output(out, [str(folder / "edges.parquet")], "cpu", **more).faults
    }


@pytest.mark.parametrize("by", ["zone", "ward"])
def test_each_value_has_a_folder_with_the_parts_of_its_sources(runs, stops, by):
    out = runs / by
    names = parts_in(runs / by)
    distinct = stops.drop_duplicates("stop")
    numbers = []
    number = 0
    for value in sorted(distinct[by].unique()):
        mine = [name for name in names if unquote(os.path.dirname(name)) == f"{by}={value}"]
        sources = [
            json.loads(pq.read_metadata(out / name).metadata[b"kepler_traverse"])["sources"]
            for name in mine
        ]
        expected = distinct["stop"][distinct[by] == value].tolist()
        assert sources == [expected[at : at + SIZE] for at in range(0, len(expected), SIZE)]
        numbers += [int(name[-14:-8]) for name in mine]
        number += len(mine)
    assert numbers == list(range(number)) == list(range(len(names)))
    assert [part["file"] for part in manifest_of(out)["parts"]] == sorted(
        names, key=lambda name: name[-14:]
    )
    # The rows and the digest are those of one folder; a reader of Hive's layout adds the column.
    assert manifest_of(out)["digest"] == manifest_of(runs / "None")["digest"]
    expected = (
        pd.read_parquet(runs / "None")
        .merge(distinct[["stop", by]], left_on="source", right_on="stop")
        .drop(columns="stop")
    )
    found = pd.read_parquet(out).astype({by: expected[by].dtype})
    order = ["source", "vertex"]
    pd.testing.assert_frame_equal(
        *(frame.sort_values(order, ignore_index=True) for frame in (found, expected))
    )


def test_shards_and_finish_write_the_files_of_one_process(folder, runs, tmp_path):  # noqa: F811
    out = tmp_path / "out"
    assert [run(folder, out, "--shard", f"{index}/3") for index in range(3)] == [0, 0, 0]
    lost = parts_in(out)[4]
    (out / lost).write_bytes(b"no part")
    assert finish.main([str(out)]) == finish.EXIT_INCOMPLETE
    assert [run(folder, out, "--shard", f"{index}/2") for index in range(2)] == [0, 0]
    assert finish.main([str(out)]) == 0
    assert bytes_of(out) == bytes_of(runs / "zone")
    assert not faults(out, folder)


def test_resuming_computes_the_parts_that_are_missing(folder, runs, out):  # noqa: F811
    for name in parts_in(out)[1::3]:
        (out / name).unlink()
    shutil.rmtree(out / "zone=Nord")
    (out / "_SUCCESS").unlink()
    assert faults(out, folder)
    assert run(folder, out, "--resume", "--json") == 0
    assert bytes_of(out) == bytes_of(runs / "zone")
    assert not faults(out, folder)


def test_a_part_in_another_folder_is_found_and_refused(folder, out, capsys):  # noqa: F811
    name = "zone=Nord/part-000003.parquet"
    assert name in parts_in(out)
    moved = name.replace("Nord", "Süd")
    (out / name).rename(out / moved)
    assert {("missing part", name), ("extra part", moved)} <= faults(out, folder)
    assert run(folder, out, "--resume") == 2
    assert f"{moved}: this is none of the" in capsys.readouterr().err


def test_a_table_that_has_changed_is_refused(folder, stops, out, tmp_path, capsys):  # noqa: F811
    other = stops.assign(zone=stops["zone"].where(stops["stop"] != stops["stop"].iloc[5], "Ost"))
    other.to_csv(tmp_path / "other.csv", index=False)
    with pytest.raises(
        InputError, match="these are not the partitions of the run; give its table by --sources"
    ):
        faults(out, folder, sources=str(tmp_path / "other.csv"))
    assert run(folder, out, "--resume", table=tmp_path / "other.csv") == 2
    assert "partitions was" in capsys.readouterr().err


@pytest.mark.parametrize("forged", [{"partition_by": None}, {}])
def test_a_manifest_that_contradicts_itself_is_found(folder, runs, tmp_path, capsys, forged):  # noqa: F811
    out = shutil.copytree(runs / "ward", tmp_path / "out")
    manifest = manifest_of(out)
    manifest["settings"] |= forged
    if not forged:
        manifest["identity"]["partitions"]["ward=-2"] += SIZE
    (out / MANIFEST).write_text(json.dumps(manifest))
    (out / "_SUCCESS").write_text(hashlib.sha256((out / MANIFEST).read_bytes()).hexdigest())
    if forged:
        assert ("manifest", MANIFEST) in faults(out, folder)
        return
    (out / "_SUCCESS").unlink()
    assert finish.main([str(out)]) == 2
    assert "it is damaged: it has" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("plant", "said"),
    [
        (
            lambda out: (out / "zone=Nord" / "notes.txt").write_text("mine"),
            "holds 'zone=Nord/notes.txt', which is none",
        ),
        (
            lambda out: (out / "zone=Nord").rename(out / "elsewhere"),
            "holds 'elsewhere', which is none",
        ),
        (
            lambda out: (out / "zone=West").symlink_to(out / "zone=Nord"),
            "it is a symbolic link and not a folder",
        ),
        (lambda out: (out / "zone=West").write_text(""), "it is a file and not a folder"),
    ],
)
def test_files_of_others_are_refused(folder, out, capsys, plant, said):  # noqa: F811
    plant(out)
    assert run(folder, out, "--resume") == 2
    assert said in capsys.readouterr().err


def test_a_folder_of_parts_is_no_link(folder, out):  # noqa: F811
    (out / "zone=Nord").rename(out.parent / "elsewhere")
    (out / "zone=Nord").symlink_to(out.parent / "elsewhere")
    assert ("damaged part", "zone=Nord") in faults(out, folder)


@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        ("vertex", ["a", "b", "c"], "the parts have a column of that name"),
        ("zone", [0.5, 1.5, 2.5], "has type double; partitions are integers or strings"),
        ("zone", ["a", None, "c"], "row 1: it holds no value"),
        ("zone", ["a", "x" * 300, "c"], "cannot be a partition"),
        ("zone", ["a", "__HIVE_DEFAULT_PARTITION__", "c"], "cannot be a partition"),
        ("_zone", ["a", "b", "c"], "begins with neither . nor _"),
        (
            "zone",
            ["a", "b", "other"],
            "row 2: source .* is in 'other' here and in 'a' in row 0; give it one",
        ),
    ],
)
def test_what_makes_no_partitions_is_refused(folder, tmp_path, column, values, said):  # noqa: F811
    stop = pd.read_parquet(folder / "edges.parquet")["src"].unique()
    rows = pd.DataFrame(
        {"stop": [stop[0], stop[1], stop[0 if "other" in values else 2]], column: values}
    )
    rows.to_parquet(tmp_path / "table.parquet")
    words = [
        folder / "edges.parquet",
        "--device",
        "cpu",
        "--output",
        tmp_path / "out",
        "--partition-by",
        column,
    ]
    words += ["--sources", tmp_path / "table.parquet", "--columns", "source=stop"]
    from pipelines.engines import open_engine
    from pipelines.run.driver import execute

    with pytest.raises(InputError, match=said):
        execute(read_settings(*parse_flags(list(map(str, words))), environment={}), "", open_engine)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--sources", "3"], "--partition-by reads columns of --sources; give that table"),
        (["--sources", "{table}", "--result", "nearest"], "belong to no source alone"),
        (["--sources", "{table}", "--result", "betweenness"], "belong to no source alone"),
        (["--sources", "{table}", "--engine", "cugraph-mg"], "its parts are in one folder"),
    ],
)
def test_partitions_without_a_use_are_refused(folder, stops, more, said):  # noqa: ARG001, F811
    words = [str(folder / "edges.parquet"), "--output", "out", "--partition-by", "zone"]
    words += [word.format(table=folder / "zones.csv") for word in more]
    words += ["--columns", "source=stop"] if "{table}" in more else []
    with pytest.raises((UsageError, InputError), match=said):
        read_settings(*parse_flags(words), environment={})


def test_a_layout_numbers_the_parts_of_all_folders():
    layout = Layout("distances", 4, {"z=a": 9, "z=b": 1, "z=c": 4})
    assert list(layout.bounds()) == [(0, 4), (4, 8), (8, 9), (9, 10), (10, 14)]
    assert layout.names() == [
        f"z={value}/part-{at:06d}.parquet" for at, value in enumerate("aaabc")
    ]
    assert partition_name("a=b", "c/d%\n") == "a%3Db=c%2Fd%25%0A"


@pytest.mark.parametrize("result", ["summary", "matrix"])
def test_tables_of_all_parts_and_arrow_files_have_partitions_too(folder, tmp_path, runs, result):  # noqa: ARG001, F811
    for by in ("ward", None):
        assert run(folder, tmp_path / str(by), "--result", result, by=by) == 0
        assert not faults(tmp_path / str(by), folder)
    assert manifest_of(tmp_path / "ward")["digest"] == manifest_of(tmp_path / "None")["digest"]
    tables = [path.name for path in (tmp_path / "None").glob("_*.pq")]
    assert tables
    for name in tables:
        assert (tmp_path / "ward" / name).read_bytes() == (tmp_path / "None" / name).read_bytes()


def test_partitions_become_columns_of_a_delta_table(folder, stops, runs, tmp_path, capsys):  # noqa: F811
    deltalake = pytest.importorskip("deltalake", reason="deltalake (extra tables) is not installed")
    pytest.importorskip("pyiceberg", reason="pyiceberg (extra tables) is not installed")
    for kind, said in (
        ("delta", "does not find the folder of the partition '100%'"),
        ("iceberg", "which lack 'zone'"),
    ):
        assert finish.main([str(runs / "zone"), "--table", kind]) == 2
        assert said in capsys.readouterr().err
    plain = stops.assign(zone=stops["zone"].str.replace(r"\W", "ü", regex=True))
    plain.to_csv(tmp_path / "plain.csv", index=False)
    assert run(folder, tmp_path / "zone", table=tmp_path / "plain.csv") == 0
    for out, by in (
        (tmp_path / "zone", "zone"),
        (shutil.copytree(runs / "ward", tmp_path / "ward"), "ward"),
    ):
        for _ in range(2):
            assert finish.main([str(out), "--table", "delta"]) == 0
        found = deltalake.DeltaTable(out).to_pandas()
        expected = plain.drop_duplicates("stop").set_index("stop")[by].loc[found["source"]]
        assert len(found) == sum(part["rows"] for part in manifest_of(out)["parts"])
        assert found[by].tolist() == expected.tolist()
        assert not faults(out, folder)


def test_partitions_in_an_object_store(folder, stops, runs, tmp_path, monkeypatch):  # noqa: ARG001, F811
    skip_without_server()
    from pipelines.output.store import open_store

    monkeypatch.setenv("KEPLER_CACHE_DIR", str(tmp_path / "copies"))
    with served(monkeypatch):
        url = "s3://bucket/partitions"
        assert [run(folder, url, "--shard", f"{index}/2") for index in range(2)] == [0, 0]
        assert finish.main([url]) == 0
        store = open_store(url)
        expected = bytes_of(runs / "zone")
        with store.local(list(expected)) as here:
            assert bytes_of(here) == expected
        assert sorted(name for name in store.versions() if "part-" in name) == sorted(expected)
        assert run(folder, url, "--resume") == 0
        assert not faults(url, folder)


@pytest.mark.exhaustive
def test_workers_write_the_partitions_of_one_process(folder, runs, tmp_path):  # noqa: F811
    assert run(folder, tmp_path / "out", "--workers", "2") == 0
    assert bytes_of(tmp_path / "out") == bytes_of(runs / "zone")
