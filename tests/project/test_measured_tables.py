"""The tables of measurements on pages are those of their records, and results are compared before they are timed."""

import json

import numpy as np
import pytest
import scipy.sparse

from kepler_traverse import graph_from_edges
from scripts.bench import csgraph as bench
from scripts.bench import pandana_network as networks
from scripts.docs import measured_tables


def test_the_tables_of_measurements_are_those_of_their_records():
    assert measured_tables.main(["--check"]) == 0


def test_a_stale_table_of_measurements_is_noticed(tmp_path, monkeypatch, capsys):
    table = measured_tables.TABLES[0]
    record = json.loads(table.record.read_text())
    record["rows"][0]["scipy_seconds"] = 10 * record["rows"][0]["seconds"]
    table = table._replace(record=tmp_path / "csgraph.json", page=tmp_path / "scipy.md")
    monkeypatch.setattr(measured_tables, "TABLES", [table])
    table.record.write_text(json.dumps(record))
    begin, end = table.markers
    table.page.write_text(f"head\n{begin}\nold\n{end}\ntail\n")
    assert measured_tables.main(["--check"]) == 1
    assert "scipy.md is stale" in capsys.readouterr().err
    assert measured_tables.main([]) == 0
    assert measured_tables.main(["--check"]) == 0
    text = table.page.read_text()
    assert "| 10.00 |" in text
    assert "old" not in text
    table.page.write_text("no table")
    with pytest.raises(ValueError, match="the page lacks"):
        measured_tables.main([])


def test_times_are_recorded_only_if_the_results_agree(monkeypatch):
    matrix = scipy.sparse.csr_array(np.array([[0, 1.5, 0], [0, 0, 2], [0, 0, 0]]))
    for count in (1, 2):
        for title, call in bench.calls(count).items():
            row = bench.measure("little", matrix, np.arange(count), title, call, 1)
            assert (row["edges"], row["sources"]) == (2, count)
    monkeypatch.setattr(bench.csgraph, "dijkstra", lambda *_, **__: np.zeros(3))
    with pytest.raises(SystemExit, match="little, dijkstra, 1 sources: the results differ"):
        bench.measure("little", matrix, np.arange(1), "dijkstra", {"name": "dijkstra"}, 1)


def test_calls_of_networks_are_recorded_only_if_they_agree(monkeypatch):
    for name, size in {"POINTS": 3, "PAIRS": 20, "PATHS": 5, "ORIGINS": 2}.items():
        monkeypatch.setattr(networks, name, size)
    ends = np.arange(10)
    graph = graph_from_edges(ends, (ends + 1) % 10, ends * 1000, directed=False)
    rows = networks.measure("little", graph, networks.Network, 1)
    assert [row["rows"] for row in rows] == [20, 10, 10, 10, 10, 5, 20, 20, 5, 20]

    class Wrong(networks.Network):
        def aggregate(self, *args, **options):
            return super().aggregate(*args, **options) + 1

    with pytest.raises(SystemExit, match=r"aggregate.*: the results differ"):
        networks.measure("little", graph, Wrong, 1)
