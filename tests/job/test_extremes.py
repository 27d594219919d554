"""The program that writes extremes of a graph: JSON on stdout, JSON and Parquet files, and its errors."""

import json

import pyarrow.parquet
import pytest

from pipelines import extremes

ROADS = "src,dst,weight\na,b,5\nb,c,1\nc,d,2\n"


@pytest.fixture
def roads(tmp_path):
    (tmp_path / "roads.csv").write_text(ROADS)
    return [str(tmp_path / "roads.csv"), "--undirected", "--device", "cpu"]


def test_extremes_are_json_on_stdout(roads, capsys):
    assert extremes.main([*roads, "--algorithm", "sssp"]) == 0
    found = json.loads(capsys.readouterr().out)
    expected = {
        "diameter": 8,
        "radius": 5,
        "center": ["b"],
        "periphery": ["a", "d"],
        "n_vertices_considered": 4,
    }
    assert {name: found[name] for name in expected} == expected
    assert 0 < found["searches"] <= 4


def test_extremes_are_written_as_json(roads, tmp_path):
    assert extremes.main([*roads, "--output", str(tmp_path / "found.json")]) == 0
    found = json.loads((tmp_path / "found.json").read_text())
    assert (found["diameter"], found["radius"], found["center"], found["periphery"]) == (
        3,
        2,
        ["b", "c"],
        ["a", "d"],
    )
    assert [path.name for path in tmp_path.glob(".found*")] == []


def test_extremes_are_written_as_parquet(roads, tmp_path):
    assert extremes.main([*roads, "--output", str(tmp_path / "found.parquet")]) == 0
    table = pyarrow.parquet.read_table(tmp_path / "found.parquet")
    assert table.to_pydict() == {
        "set": ["center", "center", "periphery", "periphery"],
        "vertex": ["b", "c", "a", "d"],
        "eccentricity": [2, 2, 3, 3],
    }
    assert json.loads(table.schema.metadata[b"kepler_traverse"])["algorithm"] == "bfs"


def test_top_closeness_is_written_as_parquet(roads, tmp_path):
    output = tmp_path / "top.parquet"
    assert (
        extremes.main([*roads, "--result", "top-closeness", "--k", "2", "--output", str(output)])
        == 0
    )
    table = pyarrow.parquet.read_table(output).to_pydict()
    assert table == {
        "vertex": ["b", "c"],
        "closeness": [0.75, 0.75],
        "reached": [4, 4],
        "sum": [4, 4],
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--k", "3"], "--k does not belong to --result extremes"),
        (
            ["--result", "top-closeness", "--unconnected", "largest"],
            "--unconnected does not belong",
        ),
        (["--result", "girth"], "invalid choice"),
        (["--columns", "weight=weight"], "needs --algorithm sssp"),
        (["--output", "found.csv"], "must end in .json or .parquet"),
        (["--output", "no/such/folder.json"], "does not exist"),
        (["--directed"], "for the same setting"),
        (["--unconnected"], "expected one argument"),
    ],
)
def test_extremes_report_bad_options(roads, words, message, capsys):
    assert extremes.main([*roads, *words]) == 2
    assert message in capsys.readouterr().err


def test_extremes_report_a_graph_that_is_not_connected(roads, capsys):
    assert extremes.main([roads[0], "--device", "cpu"]) == 2
    said = capsys.readouterr().err
    assert "not strongly connected" in said
    assert "pass --unconnected largest for" in said
    assert extremes.main([roads[0], "--device", "cpu", "--unconnected", "largest"]) == 0


def test_extremes_keep_a_file_that_exists(roads, tmp_path, capsys):
    (tmp_path / "found.json").write_text("mine")
    assert extremes.main([*roads, "--output", str(tmp_path / "found.json")]) == 2
    assert "exists" in capsys.readouterr().err
    assert (tmp_path / "found.json").read_text() == "mine"
