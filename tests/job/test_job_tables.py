"""Sources and targets as tables: a column of CSV or Parquet, whose other columns come back with one row per source."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kepler_traverse import bfs_many, graph_from_edges, sssp_many
from pipelines import verify
from pipelines.batch_sources import main
from tests.support.jobs import manifest_of

STOPS = pd.DataFrame(
    {"stop": ["c", "a", "c"], "beds": [3, 5, 3], "name": ["West", "Old, new", "West"]}
)
SUMMARY = ["reached", "eccentricity", "sum", "mean", "closeness", "harmonic"]


@pytest.fixture
def graph():
    return graph_from_edges(
        pa.table({"src": ["a", "b", "c"], "dst": ["b", "c", "d"], "weight": [1, 2, 3]})
    )


@pytest.fixture
def run(tmp_path):
    """Runs the job on the edges of ``graph``, and returns its folder."""
    edges = tmp_path / "edges.csv"
    edges.write_text("src,dst,weight\na,b,1\nb,c,2\nc,d,3\n")
    (tmp_path / "stops.csv").write_text(STOPS.to_csv(index=False))
    STOPS.to_parquet(tmp_path / "stops.parquet", index=False)

    def call(*words, code=0):
        folder = tmp_path / "out"
        words = [word.format(folder=tmp_path) if isinstance(word, str) else word for word in words]
        assert (
            main(
                [
                    str(w)
                    for w in [edges, "--device", "cpu", "--no-report", "--output", folder, *words]
                ]
            )
            == code
        )
        return folder

    return call


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_summary_adds_its_columns_to_the_table_of_sources(kind, run, graph, tmp_path, capsys):
    table = ["--sources", f"{{folder}}/stops.{kind}", "--columns", "source=stop"]
    folder = run("--algorithm", "sssp", "--result", "summary", *table, "--batch-size", 1)
    found = pd.read_parquet(folder / "_sources.pq")
    assert list(found.columns) == ["stop", "beds", "name", *SUMMARY]
    assert found[["stop", "beds", "name"]].to_numpy().tolist() == STOPS.to_numpy().tolist()
    expected = sssp_many(graph, STOPS["stop"], result="summary")
    assert found[SUMMARY].equals(expected[SUMMARY])
    assert manifest_of(folder)["duplicate_sources"] == 1
    words = [str(folder), str(tmp_path / "edges.csv"), "--device", "cpu"]
    assert verify.main(words) == 0
    moved = (tmp_path / f"stops.{kind}").rename(tmp_path / "moved")
    assert verify.main([*words, "--sources", str(moved)]) == 0
    pq.write_table(
        pa.Table.from_pandas(found.assign(reached=1), preserve_index=False), folder / "_sources.pq"
    )
    capsys.readouterr()
    assert verify.main([*words, "--sources", str(moved)]) == 5
    assert "table: _sources.pq" in capsys.readouterr().out


def test_the_table_of_sources_has_a_row_per_cutoff(run, graph, tmp_path, capsys):
    STOPS[:2].assign(jobs=1, vertex=STOPS["stop"]).to_csv(tmp_path / "places.csv", index=False)
    words = [
        "--result",
        "opportunities",
        "--cutoffs",
        "0,1,2",
        "--values",
        "jobs",
        "--vertices",
        "{folder}/places.csv",
    ]
    table = ["--sources", "{folder}/stops.csv", "--columns", "source=stop"]
    found = pd.read_parquet(run(*words, *table, "--batch-size", 1) / "_sources.pq")
    expected = bfs_many(
        graph, STOPS["stop"], result="opportunities", cutoffs=[0, 1, 2], values=[1, 0, 1, 0]
    )
    expected = STOPS.merge(
        expected.rename(columns={"value": "jobs"}).drop_duplicates(),
        left_on="stop",
        right_on="source",
    )
    assert found.to_numpy().tolist() == expected.drop(columns="source").to_numpy().tolist()
    assert verify.main([str(tmp_path / "out"), str(tmp_path / "edges.csv"), "--device", "cpu"]) == 0
    STOPS.assign(jobs=1).to_csv(tmp_path / "stops.csv", index=False)
    run(*words, *table, "--resume", code=2)
    assert (
        "the table of sources has a column 'jobs', which the result adds" in capsys.readouterr().err
    )


def test_sources_without_a_row_stay_in_their_table(run, tmp_path, capsys):
    words = [
        "--result",
        "nearest",
        "--targets",
        "a,d",
        "--max-depth",
        1,
        "--sources",
        "{folder}/stops.csv",
    ]
    pd.DataFrame({"source": ["b", "c", "a", "b"], "name": ["B", "C", "A", "again"]}).to_csv(
        tmp_path / "stops.csv", index=False
    )
    found = pq.read_table(run(*words, "--batch-size", 1) / "_sources.pq").to_pandas(
        types_mapper=pd.ArrowDtype
    )
    none, near = [None, None, None], [[1, "d", 1], [1, "a", 0]]
    expected = [
        ["b", "B", *none],
        ["c", "C", *near[0]],
        ["a", "A", *near[1]],
        ["b", "again", *none],
    ]
    assert found.astype(object).where(found.notna(), None).to_numpy().tolist() == expected
    assert verify.main([str(tmp_path / "out"), str(tmp_path / "edges.csv"), "--device", "cpu"]) == 0
    pd.DataFrame({"source": ["b", "x"], "name": ["B", "X"]}).to_csv(
        tmp_path / "stops.csv", index=False
    )
    assert verify.main([str(tmp_path / "out"), str(tmp_path / "edges.csv"), "--device", "cpu"]) != 0
    assert "stops.csv: the table has changed" in "".join(capsys.readouterr())


def test_kept_columns_are_those_of_the_table_of_sources(run, graph, tmp_path, capsys):
    table = [
        "--sources",
        "{folder}/stops.csv",
        "--columns",
        "source=stop",
        "--keep-columns",
        "name,stop",
    ]
    words = ["--result", "targets", "--targets", "b,d", "--algorithm", "sssp"]
    for more, said in (
        (table, "targets, nearest_targets, opportunities, within or streets, not distances"),
        ([*words, *table[:-1], "rooms"], "no column 'rooms'; the table of sources has"),
        (
            [*words, "--sources", "a", *table[-2:]],
            "--keep-columns reads columns of --sources; give that table",
        ),
    ):
        assert not run(*more, code=2).exists()
        assert said in capsys.readouterr().err
    found = pd.read_parquet(
        run(*words, *table, "--batch-size", 1) / "_sources.pq", dtype_backend="numpy_nullable"
    )
    expected = sssp_many(graph, STOPS["stop"], result="targets", targets=["b", "d"])
    assert list(found.columns) == ["stop", "name", "target", "distance"]
    assert found["name"].tolist() == ["West", "West", "Old, new", "Old, new", "West", "West"]
    for name, own in (("stop", "source"), ("target", "target"), ("distance", "distance")):
        assert found[name].fillna(-1).tolist() == expected[own].fillna(-1).tolist()
    assert verify.main([str(tmp_path / "out"), str(tmp_path / "edges.csv"), "--device", "cpu"]) == 0


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "_sources.pq",
            ["--result", "summary", "--sources", "{folder}/stops.csv", "--columns", "source=stop"],
        ),
        ("_vertices.pq", ["--result", "matrix", "--sources", "a,b"]),
    ],
)
def test_resume_makes_a_table_again_that_is_not_the_one_it_wrote(name, words, run, capsys):
    folder = run(*words)
    whole = (folder / name).read_bytes()
    table = pq.read_table(folder / name)
    pq.write_table(table.replace_schema_metadata({"note": "same rows"}), folder / name)
    damaged = [
        (folder / name).read_bytes(),
        b"hello",
        b"",
        whole[:-1],
        whole[:60] + b"\xff" + whole[61:],
        None,
    ]
    for data in damaged:
        (folder / name).unlink()
        if data is not None:
            (folder / name).write_bytes(data)
        run(*words, "--resume")
        assert (folder / name).read_bytes() == whole
    (folder / "_hulls.pq").write_bytes(whole)
    capsys.readouterr()
    run(*words, "--resume", code=2)
    assert "_hulls.pq: a run with these settings has no such table" in capsys.readouterr().err
    assert verify.main([str(folder), str(folder.parent / "edges.csv"), "--device", "cpu"]) == 5
    assert "table: _hulls.pq: it is no table of the run" in capsys.readouterr().out


def test_distances_take_their_sources_from_a_column(run, graph):
    folder = run("--sources", "{folder}/stops.parquet", "--columns", "source=stop")
    found = pd.read_parquet(folder)
    expected = bfs_many(graph, ["c", "a"])
    assert found.to_numpy().tolist() == expected.to_numpy().tolist()
    assert not (folder / "_sources.pq").exists()


def test_targets_are_those_of_a_column(run, graph):
    words = [
        "--result",
        "targets",
        "--targets",
        "{folder}/stops.csv",
        "--columns",
        "target=stop",
        "--sources",
        "a,b",
    ]
    found = pd.read_parquet(run(*words), dtype_backend="numpy_nullable")
    expected = bfs_many(graph, ["a", "b"], result="targets", targets=["c", "a"])
    assert found["target"].tolist() == expected["target"].tolist()
    assert found["distance"].fillna(-1).tolist() == expected["distance"].fillna(-1).tolist()


def test_integer_ids_are_read_from_text(tmp_path):
    (tmp_path / "edges.csv").write_text("src,dst\n7,8\n8,9\n")
    (tmp_path / "stops.csv").write_text("stop\tbeds\n7\t1\n9\t2\n 8\t3\n")
    words = [
        tmp_path / "edges.csv",
        "--device",
        "cpu",
        "--no-report",
        "--output",
        tmp_path / "out",
        "--result",
        "summary",
    ]
    words += ["--sources", tmp_path / "stops.csv", "--columns", "source=stop"]
    assert main([str(word) for word in words]) == 0
    found = pd.read_parquet(tmp_path / "out" / "_sources.pq")
    assert found["reached"].tolist() == [3, 1, 2]
    assert np.array_equal(found["beds"], [1, 2, 3])


def test_columns_of_csv_keep_their_text(run, tmp_path):
    kept = {
        "zip": ["01234", "56789"],
        "phone": ["+49", "0049"],
        "color": ["0x10", "0xff"],
        "key": ["12345678901234567890", "1"],
        "beds": [1, 2],
    }
    pd.DataFrame({"stop": ["a", "b"], **kept}).to_csv(tmp_path / "own.csv", index=False)
    words = ["--sources", "{folder}/own.csv", "--columns", "source=stop", "--result", "summary"]
    assert pq.read_table(run(*words) / "_sources.pq").select(list(kept)).to_pydict() == kept


def test_ids_beyond_int64_are_read_from_text(tmp_path):
    (tmp_path / "edges.csv").write_text(f"src,dst\n{2**64 - 1},7\n")
    (tmp_path / "stops.csv").write_text(f"source,beds\n{2**64 - 1},1\n")
    words = ["--device", "cpu", "--no-report", "--id-type", "uint64", "--output", tmp_path / "out"]
    words += ["--sources", tmp_path / "stops.csv"]
    assert main([str(word) for word in [tmp_path / "edges.csv", *words]]) == 0
    assert pq.read_table(tmp_path / "out" / "part-000000.parquet")["vertex"].to_pylist() == [
        7,
        2**64 - 1,
    ]


@pytest.mark.parametrize(
    ("text", "more", "said"),
    [
        (
            "stop,beds,beds\na,1,2\n",
            ["--columns", "source=stop"],
            "has more than one column 'beds'; rename all but one",
        ),
        ("stop,beds\na,1\nb\n", ["--columns", "source=stop"], "Expected 2 columns, got 1"),
        ("source,beds\na,1\nb\n", [], "Expected 2 columns, got 1"),
        (
            "stop,beds\na,1\nx,2\n",
            ["--columns", "source=stop"],
            "column stop, row 1: 1 stop is not in the graph: 'x'",
        ),
        ("stop,beds\na,1\n,2\n", ["--columns", "source=stop"], "row 1: it holds no id"),
        (
            "stop,mean\na,1\n",
            ["--columns", "source=stop", "--result", "summary"],
            "column 'mean', which the result adds",
        ),
        ("stop,beds\n", ["--columns", "source=stop"], "has no row"),
    ],
)
def test_tables_of_sources_that_cannot_be_used_are_refused(text, more, said, run, tmp_path, capsys):
    (tmp_path / "own.csv").write_text(text)
    run("--sources", "{folder}/own.csv", *more, code=2)
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
