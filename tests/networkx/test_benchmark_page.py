"""The table of docs/from/networkx.md shows the record of its measurement, and the benchmark compares results first."""

from __future__ import annotations

import json

import networkx as nx
import pytest

from scripts.bench import networkx_backend


def test_the_table_of_the_page_shows_the_record():
    assert networkx_backend.main(["check"]) == 0


def test_a_page_with_another_table_is_reported(tmp_path, monkeypatch, capsys):
    record = json.loads(networkx_backend.RECORD.read_text(encoding="utf-8"))
    record["rows"][0]["seconds"] *= 2
    other = tmp_path / "networkx.json"
    other.write_text(json.dumps(record), encoding="utf-8")
    monkeypatch.setattr(networkx_backend, "RECORD", other)
    assert networkx_backend.main(["check"]) == 1
    assert "is stale" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("expected", "found"),
    [({1: 2}, {1: 3}), ({1: 2}, {2: 2}), ({1: 0.5}, {1: 0.5 + 1e-9}), ({1: {2: 3}}, {1: {2: 4}})],
)
def test_the_benchmark_refuses_results_that_differ(expected, found):
    networkx_backend.require_equal(expected, expected)
    with pytest.raises(AssertionError):
        networkx_backend.require_equal(expected, found)


def test_a_part_of_a_graph_has_the_nodes_nearest_to_the_first():
    assert sorted(networkx_backend.part_of(nx.path_graph(10), 4)) == [0, 1, 2, 3]
