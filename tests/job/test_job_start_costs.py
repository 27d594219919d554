"""Start costs of a job: the result of the library, recorded by their digest, and verified."""

import pandas as pd
import pytest

from kepler_traverse import read_graph, sssp_many
from pipelines import verify
from pipelines.batch_sources import main
from tests.support.jobs import manifest_of


@pytest.fixture
def folder(tmp_path):
    edges = pd.DataFrame({"src": [1, 2, 3, 4], "dst": [2, 3, 4, 5], "weight": [5, 5, 5, 5]})
    edges.to_parquet(tmp_path / "edges.parquet")
    pd.DataFrame({"source": [1, 5], "wait": [12, 0]}).to_csv(tmp_path / "places.csv", index=False)
    return tmp_path


def run(folder, output, *more):
    words = [str(folder / "edges.parquet"), "--undirected"]
    words += [] if "--algorithm" in more else ["--algorithm", "sssp"]
    words += ["--sources", str(folder / "places.csv"), "--result", "nearest"]
    words += ["--device", "cpu", "--output", str(folder / output)]
    return main([*words, *more])


def test_a_job_writes_what_the_library_returns_and_it_is_verified(folder, capsys):
    assert run(folder, "out", "--columns", "start_cost=wait") == 0
    assert run(folder, "plain") == 0
    rows = pd.read_parquet(folder / "out" / "part-000000.parquet")
    graph = read_graph(folder / "edges.parquet", directed=False)
    expected = sssp_many(graph, [1, 5], result="nearest", start_costs=[12, 0])
    assert rows.astype(int).equals(expected.astype(int))
    assert manifest_of(folder / "out")["digest"] != manifest_of(folder / "plain")["digest"]
    again = [str(folder / "out"), str(folder / "edges.parquet"), "--device", "cpu"]
    assert verify.main(again) == 0
    capsys.readouterr()
    places = pd.DataFrame({"source": [1, 5], "wait": [13, 0]})
    places.to_csv(folder / "places.csv", index=False)
    assert verify.main(again) != 0
    assert "these are not the start_cost of the sources of the run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--algorithm", "bfs"], "adds to sums of weights, and bfs counts hops"),
        (["--nearest-k", "1"], "is for --result nearest, not k_nearest"),
    ],
)
def test_other_questions_are_refused(more, said, folder, capsys):
    assert run(folder, "out", "--columns", "start_cost=wait", *more) == 2
    assert said in capsys.readouterr().err
    assert not (folder / "out").exists()


def test_a_wrong_cost_names_file_and_column(folder, capsys):
    places = pd.DataFrame({"source": [1, 5], "wait": [12, -1]})
    places.to_csv(folder / "places.csv", index=False)
    assert run(folder, "out", "--columns", "start_cost=wait") == 2
    assert "places.csv: column 'wait': -1 of source 5 is below 0" in capsys.readouterr().err
    assert not (folder / "out").exists()
