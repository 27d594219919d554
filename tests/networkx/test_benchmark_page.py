"""The benchmark of the backend compares results before it times them."""

from __future__ import annotations

import networkx as nx
import pytest

from scripts.bench import networkx_backend


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
