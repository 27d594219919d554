"""``kepler-traverse run --result labels`` writes proved tables, and verifies those of a folder."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from scipy.sparse.csgraph import dijkstra

from kepler_traverse import convert, read_graph
from pipelines import __main__ as commands
from pipelines import labels
from tests.support.graphs import lattice, rmat, weights_for

ROWS = np.array(lattice(10, 10))


@pytest.fixture
def edges(tmp_path):
    path = tmp_path / "edges.parquet"
    frame = pd.DataFrame({"src": ROWS[:, 0] + 5, "dst": ROWS[:, 1] + 5})
    frame.assign(weight=weights_for(ROWS, 3)).to_parquet(path)
    return str(path)


def run(monkeypatch, *words):
    monkeypatch.setattr("sys.argv", ["kepler-traverse", *words])
    return commands.main()


@pytest.mark.parametrize("algorithm", ["sssp", "bfs"])
def test_a_run_writes_tables_and_says_what_is_proved(
    algorithm, edges, tmp_path, monkeypatch, capsys
):
    out = tmp_path / "out"
    base = ["--algorithm", algorithm, "--undirected"]
    assert run(monkeypatch, "run", edges, "--result", "labels", *base, "--output", str(out)) == 0
    facts = json.loads(capsys.readouterr().out)
    assert json.loads((out / "_SUCCESS").read_text()) == facts
    assert len(facts["proved"]) == 3
    graph = read_graph(edges, directed=False)
    frame = pq.read_table(out / "labels_out.parquet").to_pandas()
    assert len(frame) == facts["rows"]
    distances = dijkstra(convert.to_scipy(graph), unweighted=algorithm == "bfs")
    assert np.array_equal(distances[frame["vertex"] - 5, frame["hub"] - 5], frame["distance"])
    assert labels.main([edges, *base, "--verify", str(out)]) == 0
    assert "verified" in capsys.readouterr().out
    wrong = pq.read_table(out / "labels_in.parquet")
    table = wrong.to_pandas()
    table.loc[3, "distance"] += 1
    table.to_parquet(tmp_path / "wrong.parquet", index=False)
    wrong = pq.read_table(tmp_path / "wrong.parquet").replace_schema_metadata(wrong.schema.metadata)
    pq.write_table(wrong, out / "labels_in.parquet")
    pq.write_table(wrong, out / "labels_out.parquet")
    assert labels.main([edges, *base, "--verify", str(out)]) == 2  # a table of the other direction
    assert run(monkeypatch, "run", edges, "--result=labels", *base, "--output", str(out)) == 2
    assert "is not empty" in capsys.readouterr().err


def test_a_fault_is_found_by_verify(edges, tmp_path, capsys):
    out = tmp_path / "out"
    base = [edges, "--algorithm", "sssp"]
    assert labels.main([*base, "--output", str(out)]) == 0
    path = out / "labels_in.parquet"
    table = pq.read_table(path)
    frame = table.to_pandas()
    row = int((frame["vertex"] != frame["hub"]).to_numpy().argmax())
    frame.loc[row, "distance"] += 1
    frame.to_parquet(tmp_path / "frame.parquet", index=False)
    changed = pq.read_table(tmp_path / "frame.parquet")
    pq.write_table(changed.replace_schema_metadata(table.schema.metadata), path)
    capsys.readouterr()
    assert labels.main([*base, "--verify", str(out)]) == labels.EXIT_WRONG
    assert "WRONG" in capsys.readouterr().out


def test_a_network_with_hubs_is_refused_before_anything_is_written(tmp_path, capsys):
    rows = np.array(rmat(15, 16, seed=5))
    pd.DataFrame({"src": rows[:, 0], "dst": rows[:, 1]}).to_parquet(tmp_path / "edges.parquet")
    out = tmp_path / "out"
    assert labels.main([str(tmp_path / "edges.parquet"), "--output", str(out)]) == 2
    assert "Networks with hubs" in capsys.readouterr().err
    assert not out.exists()
