"""The job with filters of rows, directions and vertices to keep: the same as with the edge list written anew."""

import json
import re

import pandas as pd
import pytest

from kepler_traverse import graph_from_edges
from kepler_traverse.graph import storage
from pipelines import batch_sources, verify
from pipelines.cli.settings import read_settings
from pipelines.run.reading import digest_inputs
from tests.support.jobs import manifest_of

ROADS = pd.DataFrame(
    {
        "src": [1, 2, 3, 1, 4, 5],
        "dst": [2, 3, 4, 4, 1, 4],
        "weight": [5, 2, 3, 1, 1, 7],
        "highway": ["path", "motorway", "path", "motorway", "path", "path"],
        "oneway": ["yes", "no", "-1", "no", "yes", "no"],
    }
)
WHERE = "highway != 'motorway' and weight < 7"


@pytest.fixture
def edges(tmp_path):
    path = tmp_path / "roads.csv"
    ROADS.to_csv(path, index=False)
    (tmp_path / "inside.txt").write_text("1\n2\n3\n4\n")
    return path


def call(*words):
    return batch_sources.main([str(word) for word in words])


def run(edges, output, *more):
    words = [
        edges,
        "--algorithm",
        "sssp",
        "--all-sources",
        "--output",
        output,
        "--device",
        "cpu",
        "--workers",
        1,
    ]
    assert call(*words, "--no-report", *more) == 0
    return manifest_of(output)


def test_a_run_with_filters_is_the_run_of_the_rows_they_keep(edges, tmp_path, capsys):
    more = [
        "--where",
        WHERE,
        "--columns",
        "oneway=oneway",
        "--only-vertices",
        tmp_path / "inside.txt",
        "--json",
    ]
    manifest = run(edges, tmp_path / "out", *more)
    summary = json.loads(capsys.readouterr().out)
    # Row 0 from 1 to 2, row 2 from 4 to 3, row 4 from 4 to 1.
    expected = graph_from_edges([1, 4, 4], [2, 3, 1], [5, 3, 1])
    assert manifest["graph"]["fingerprint"] == expected.fingerprint
    built = manifest["graph"]["built"]
    assert (built["rows"], built["filtered_rows"], built["where"], built["oneway_column"]) == (
        6,
        3,
        WHERE,
        "oneway",
    )
    assert (manifest["settings"]["where"], manifest["settings"]["columns"]["oneway"]) == (
        WHERE,
        "oneway",
    )
    inside = str(tmp_path / "inside.txt")
    assert summary["filters"] == {"where": WHERE, "only_vertices": inside, "filtered_rows": 3}
    assert summary["columns"]["oneway_column"] == "oneway"
    assert verify.main([str(tmp_path / "out"), str(edges)]) == 0
    frame = pd.read_parquet(tmp_path / "out")
    assert frame[frame.source == 4].set_index("vertex").distance.to_dict() == {
        4: 0,
        3: 3,
        1: 1,
        2: 6,
    }


def test_the_plan_names_the_filter(edges, capsys):
    assert call(edges, "--all-sources", "--plan", "--where", WHERE) == 0
    shown = capsys.readouterr().out
    assert "6 rows; dropped: 3 by filters, 0 self-loops" in shown
    assert WHERE in shown


def test_resume_refuses_another_filter(edges, tmp_path, capsys):
    run(edges, tmp_path / "out", "--where", WHERE)
    (tmp_path / "out" / "_SUCCESS").unlink()
    words = [
        edges,
        "--algorithm",
        "sssp",
        "--all-sources",
        "--output",
        tmp_path / "out",
        "--workers",
        1,
        "--resume",
    ]
    for changed in (
        [],
        ["--where", "weight < 7"],
        ["--where", WHERE, "--columns", "oneway=oneway"],
    ):
        assert call(*words, *changed) == 2
        assert (
            "--resume needs the settings of the run that it finishes: graph was"
            in capsys.readouterr().err
        )
    assert call(*words, "--where", WHERE) == 0


def test_a_cached_graph_is_not_that_of_another_filter(edges, tmp_path):
    cache = ["--graph-cache", tmp_path / "cache"]
    filters = {
        "none": [],
        "where": ["--where", WHERE],
        "oneway": ["--columns", "oneway=oneway"],
        "vertices": ["--only-vertices", tmp_path / "inside.txt"],
    }
    found = {
        name: run(edges, tmp_path / name, *cache, *more)["graph"]["fingerprint"]
        for name, more in filters.items()
    }
    assert len(set(found.values())) == 4
    again = run(edges, tmp_path / "again", *cache, *filters["where"])
    assert again["graph"]["fingerprint"] == found["where"]
    folders = [path for path in (tmp_path / "cache").iterdir() if path.is_dir()]
    assert {storage.load_graph(folder, verify=False).fingerprint for folder in folders} == set(
        found.values()
    )


def test_a_change_of_the_file_of_vertices_changes_the_cached_graph(edges, tmp_path):
    given = {
        "edges": [str(edges)],
        "all_sources": True,
        "plan": True,
        "only_vertices": str(tmp_path / "inside.txt"),
    }
    before = digest_inputs(read_settings(given))
    (tmp_path / "inside.txt").write_text("1\n")
    assert digest_inputs(read_settings(given)) != before


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--where", "weight > 99"], "--where is true for none of the 6 rows"),
        (
            ["--where", "highway > 2"],
            "row 0: where column 'highway' has 'path', and --where compares it with numbers",
        ),
        (
            ["--columns", "oneway=highway"],
            "row 0: oneway column 'highway' has 'path', which is no direction",
        ),
        (
            ["--only-vertices", "{folder}/unknown.txt"],
            "2 --only-vertices ids are not in the graph: 77, 78",
        ),
        (
            ["--engine", "cugraph-mg", "--where", "weight > 1"],
            "--engine cugraph-mg: it reads all rows.* leave --where out",
        ),
        (["--engine", "cugraph-mg", "--only-vertices", "x"], "leave --only-vertices out"),
    ],
)
def test_faults_are_named_by_flags(edges, tmp_path, capsys, flags, says):
    (tmp_path / "unknown.txt").write_text("77\n1\n78\n")
    words = [word.format(folder=tmp_path) for word in flags]
    assert call(edges, "--all-sources", "--output", tmp_path / "out", *words) == 2
    err = " ".join(capsys.readouterr().err.split())
    assert re.search(says, err), err
    assert not (tmp_path / "out").exists()
