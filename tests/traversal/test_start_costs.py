"""Start costs of ``nearest``, against the least of cost and distance over all sources."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kepler_traverse import InputError, bfs_many, certify, sssp_many
from kepler_traverse.kinds.nearest import check_start_costs, nearest_source_search
from kepler_traverse.search.query import Query
from kepler_traverse.sssp import STRATEGIES
from tests.support import oracle
from tests.support.graphs import build, edge_rows

NAMES = ["near_far", "frontier"]


@st.composite
def cases(draw):
    rows = draw(edge_rows(max_vertices=10, max_rows=25))
    sizes = {"min_size": len(rows), "max_size": len(rows)}
    weights = draw(st.lists(st.integers(0, 9), **sizes))
    vertices = sorted({v for row in rows for v in row})
    sources = draw(st.lists(st.sampled_from(vertices), min_size=1, unique=True))
    costs = draw(st.lists(st.integers(0, 20), min_size=len(sources), max_size=len(sources)))
    return rows, weights, sources, costs


@pytest.mark.parametrize("limit", [None, 9])
@pytest.mark.parametrize("name", NAMES)
def test_each_vertex_gets_a_source_of_the_least_sum(name, limit):
    @given(cases(), st.booleans())
    def check(case, directed):
        rows, weights, sources, costs = case
        graph = build(rows, weights, directed)
        neighbors = oracle.edges_of(
            [(u, v, w) for (u, v), w in zip(rows, weights, strict=True)], directed
        )
        sums = {}
        for source, cost in zip(sources, costs, strict=True):
            for v, d in oracle.dijkstra(neighbors, source, np.float64).items():
                sums.setdefault(v, {})[source] = cost + d
        most = np.inf if limit is None else limit
        least = {v: min(own.values()) for v, own in sums.items() if min(own.values()) <= most}
        found = sssp_many(
            graph, sources, result="nearest", start_costs=costs, strategy=name, cutoff=limit
        )
        assert dict(zip(found["vertex"], found["distance"], strict=True)) == least
        for row in found.itertuples():
            assert sums[row.vertex][row.source] == least[row.vertex]
        numbers = np.sort(graph.to_numbers(sources))
        checked = check_start_costs(graph, graph.to_numbers(sources), costs)
        rooted, search = nearest_source_search(
            graph, numbers, "sssp", STRATEGIES, name, Query(limit=limit), checked
        )
        certify(rooted, search).require()

    check()


def test_a_source_may_be_nearer_to_another_one_than_to_itself():
    graph = build([(1, 2), (2, 3)], [2.0, 2.0], directed=False)
    found = sssp_many(graph, [1, 3], result="nearest", start_costs=[0.5, 9])
    assert found["source"].tolist() == [1, 1, 1]
    assert found["distance"].tolist() == [0.5, 2.5, 4.5]


def test_costs_belong_to_their_labels_and_sums_along_paths_leave_them_out():
    graph = build([(1, 2), (2, 3)], [2, 2], directed=False)
    sources = pd.Series([3, 1], index=["c", "a"])
    costs = pd.Series([0, 3], index=["a", "c"])
    found = sssp_many(graph, sources, result="nearest", start_costs=costs)
    assert found["distance"].tolist() == [0, 2, 3]


def test_a_negative_zero_is_no_negative_cost():
    graph = build([(1, 2), (2, 3)], [2.0, 2.0], directed=False)
    found = sssp_many(graph, [1, 3], result="nearest", start_costs=[-0.0, 1])
    assert found["distance"].tolist() == [0.0, 2.0, 1.0]
    assert not np.signbit(found["distance"]).any()


def test_costs_beyond_the_type_of_the_weights_are_exact():
    graph = build([(1, 2)], [1])
    found = sssp_many(graph, [1], result="nearest", start_costs=[2**24 + 2])
    assert found["distance"].tolist() == [2**24 + 2, 2**24 + 3]


@pytest.mark.parametrize(
    ("weights", "costs", "message"),
    [
        ([1, 2], [1, -2], r"start_costs: -2 of source 3 is below 0; add the same number"),
        ([1, 2], [1, 0.5], r"0.5 of source 3 is no integer, and the weights are"),
        ([1.5, 2], [1, 0.1], r"0.1 of source 3 is not held exactly by weights of float32"),
        ([1, 2], [1, 2**24 + 1], r"not held exactly by weights of float32"),
        ([1, 2], [1, 2**53 + 1], r"has too many digits; round it"),
        ([0.1, 2], [1, 2**63 - 1], r"has too many digits; round it"),
        ([1, 2], [1], "one per source"),
        ([1, 2], [1, np.nan], "start_costs"),
    ],
)
def test_wrong_costs_are_refused(weights, costs, message):
    weights = np.array(weights, np.float32 if isinstance(weights[0], float) else None)
    graph = build([(1, 2), (2, 3)], weights)
    with pytest.raises(InputError, match=message):
        sssp_many(graph, [1, 3], result="nearest", start_costs=costs)


def test_other_questions_are_refused():
    graph = build([(1, 2), (2, 3)], [1, 1])
    with pytest.raises(InputError, match="adds to sums of weights, and bfs counts hops"):
        bfs_many(graph, [1], result="nearest", start_costs=[1])
    with pytest.raises(InputError, match="start_costs is for result nearest, not k_nearest"):
        sssp_many(graph, [1, 2], result="nearest", k=1, start_costs=[1, 1])
    with pytest.raises(InputError, match="source 1 has the start cost 2 and, further up, 1"):
        sssp_many(graph, [1, 1], result="nearest", start_costs=[1, 2])
