"""The benchmark of the backend takes a part of a street network."""

from __future__ import annotations

import networkx as nx

from scripts.bench import networkx_backend


def test_a_part_of_a_graph_has_the_nodes_nearest_to_the_first():
    assert sorted(networkx_backend.part_of(nx.path_graph(10), 4)) == [0, 1, 2, 3]
