"""The order of the vertices of a graph without a cycle, against removing vertices without an edge to them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.support.graphs import build, edge_rows, edge_rows_forward


def has_cycle(rows):
    """Whether edges of different ends have a cycle, by removing vertices that no edge leads to."""
    edges = {(u, v) for u, v in rows if u != v}
    while edges:
        left = {(u, v) for u, v in edges if u in {head for _, head in edges}}
        if left == edges:
            return True
        edges = left
    return False


@given(st.one_of(edge_rows(), edge_rows_forward()), st.booleans())
def test_each_edge_leads_forward_or_there_is_a_cycle(rows, directed):
    graph = build(rows, directed=directed)
    order = graph.derived.topological_order
    is_cyclic = has_cycle(rows) if directed else graph.n_edges > 0
    assert (order is None) == is_cyclic
    if order is None:
        return
    assert np.array_equal(np.sort(order), np.arange(graph.n_vertices))
    position = np.argsort(order)
    heads = position[graph.targets]
    tails = np.repeat(position, np.diff(graph.offsets))
    assert (tails < heads).all()


def test_a_graph_without_an_edge_and_one_as_deep_as_it_is_large_have_an_order():
    assert build([], directed=False, vertices=[3, 5]).derived.topological_order.size == 2
    n = 200_000
    path = build(np.stack([np.arange(1, n), np.arange(n - 1)], axis=1))
    assert np.array_equal(path.derived.topological_order, np.arange(n)[::-1])
