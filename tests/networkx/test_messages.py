"""Messages to users of NetworkX: long calls report progress, and the backend warns once per reason why it refuses calls."""

from __future__ import annotations

import warnings

import networkx as nx
import pytest

from kepler_traverse.networkx_backend import backend, refusals
from kepler_traverse.runtime import progress

CALLS = {
    "closeness_centrality": lambda graph, **more: nx.closeness_centrality(graph, **more),
    "betweenness_centrality": lambda graph, **more: nx.betweenness_centrality(graph, **more),
    "load_centrality": lambda graph, **more: nx.load_centrality(graph, **more),
    "edge_betweenness_centrality_subset": lambda graph, **more: (
        nx.edge_betweenness_centrality_subset(graph, list(graph), list(graph)[:3], **more)
    ),
}


@pytest.fixture
def graph():
    return nx.grid_2d_graph(12, 12)


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_takes_long_has_lines_of_progress(monkeypatch, capsys, graph, name):
    monkeypatch.setattr(progress, "_LINE_EVERY", 0.0)
    CALLS[name](graph, backend="kepler")
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("NetworkX by kepler: 144 of 144 sources"), last


def test_a_call_that_is_soon_over_says_nothing(monkeypatch, capsys, graph):
    assert progress._LINE_EVERY >= 1  # second
    monkeypatch.setattr(progress, "_LINE_EVERY", 1e9)  # one that compiles first may take long
    for call in CALLS.values():
        call(nx.Graph(graph), backend="kepler")
    assert "sources" not in capsys.readouterr().err


def test_a_refusal_under_the_priority_is_told_once(monkeypatch, graph):
    monkeypatch.setattr(refusals, "_REPORTED", set())
    graph = nx.Graph(graph)
    nx.set_edge_attributes(graph, 1, "minutes")
    edge = next(iter(graph.edges))
    graph.edges[edge]["minutes"] = 0
    asked = ("betweenness_centrality", (graph,), {"weight": "minutes"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "weight 0" in backend.can_run(*asked), "without the priority there is no warning"
    with nx.config.backend_priority(algos=["kepler"]):
        with pytest.warns(UserWarning, match="betweenness_centrality to NetworkX.*weight 0"):
            backend.can_run(*asked)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            backend.can_run(*asked)
            small = nx.path_graph(3)
            backend.can_run("closeness_centrality", (small,), {"distance": lambda *_: 1})
        with pytest.warns(UserWarning, match="function"):
            backend.can_run("closeness_centrality", (graph,), {"distance": lambda *_: 1})
