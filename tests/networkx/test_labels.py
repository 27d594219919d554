"""Distances of two nodes by hub labels are NetworkX's, of the same type, with its errors."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from kepler_traverse.errors import HierarchyError
from kepler_traverse.hub_labels.arrays import HubLabels
from kepler_traverse.networkx_backend import convert_from_nx
from tests.support.graphs import lattice, weights_for

ROWS = [*lattice(6, 6), (100, 101)]


@pytest.fixture
def answers(monkeypatch):
    """The number of pairs that labels have answered."""
    counts = []
    between = HubLabels.between

    def counted(self, sources, targets):
        counts.append(len(sources))
        return between(self, sources, targets)

    monkeypatch.setattr(HubLabels, "between", counted)
    return counts


def network(kind, weights):
    graph = kind()
    graph.add_weighted_edges_from((u, v, w) for (u, v), w in zip(ROWS, weights, strict=True))
    return graph


def outcome(function, *asked, **named):
    try:
        return function(*asked, **named)
    except nx.NetworkXException as error:
        return type(error), str(error)


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiDiGraph])
def test_distances_are_those_of_networkx(kind, answers):
    graph = network(kind, weights_for(ROWS, 2))
    converted = convert_from_nx(graph, {"weight": 1})
    converted.labels("weight")
    converted.labels(None)
    rng = np.random.default_rng(1)
    nodes = list(graph)
    pairs = [*rng.choice(nodes, (40, 2)).tolist(), [0, 100], [3, 3], [0, 999]]
    for source, target in pairs:
        for function, named in (
            (nx.dijkstra_path_length, {}),
            (nx.shortest_path_length, {"weight": "weight"}),
            (nx.shortest_path_length, {}),
        ):
            found = outcome(function, converted, source, target, **named)
            expected = outcome(function, graph, source, target, **named, backend="networkx")
            assert found == expected
            assert type(found) is type(expected)
    assert len(answers) > 100


def test_weights_that_are_floats_are_searched(answers):
    graph = network(nx.Graph, np.array(weights_for(ROWS, 2)) / 4)
    converted = convert_from_nx(graph, {"weight": 1})
    converted.labels("weight")
    expected = nx.dijkstra_path_length(graph, 0, 35, backend="networkx")
    assert nx.dijkstra_path_length(converted, 0, 35) == expected
    assert not answers


def test_without_labels_nothing_builds_them(answers):
    converted = convert_from_nx(network(nx.Graph, weights_for(ROWS, 2)), {"weight": 1})
    nx.dijkstra_path_length(converted, 0, 35)
    assert not answers
    assert converted.searched("weight").derived.known_labels("weights") is None


def test_negative_weights_have_no_labels():
    weights = weights_for(ROWS, 2)
    weights[0] = -1
    converted = convert_from_nx(network(nx.DiGraph, weights), {"weight": 1})
    with pytest.raises(HierarchyError):
        converted.labels("weight")
