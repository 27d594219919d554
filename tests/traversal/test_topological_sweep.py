"""Sweeps in topological order: equal to Bellman-Ford on graphs without a cycle, refused on others, chosen by ``auto``."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kepler_traverse import certify, plan_sssp, plan_sssp_many, sssp_many
from kepler_traverse.errors import PrecisionError, StrategyError
from tests.support import oracle
from tests.support.graphs import build, edge_rows_forward
from tests.traversal.test_multi_source import check

NAME = "topological_sweep"
SOURCES = 40  # of a group and a half


@st.composite
def weighted(draw):
    rows = [(u, v) for u, v in draw(edge_rows_forward()) if u != v] or [(0, 1)]
    weights = st.lists(st.integers(-9, 12), min_size=len(rows), max_size=len(rows))
    return rows, draw(weights)


@given(weighted(), st.data())
def test_integers_of_either_sign_match_bellman_ford(drawn, data):
    rows, weights = drawn
    graph = build(rows, weights)
    vertex = st.sampled_from(graph.ids.tolist())
    sources = data.draw(st.lists(vertex, min_size=2, max_size=SOURCES))
    neighbors = oracle.edges_of([(u, v, w) for (u, v), w in zip(rows, weights, strict=True)])
    plan = plan_sssp_many(graph, n_sources=len(sources), strategy=NAME, result="predecessors")
    assert plan.strategy.name == NAME
    found = [each for group in plan.iter_groups(graph.to_numbers(sources)) for each in group]
    for source, traversal in zip(sources, found, strict=True):
        certify(graph, traversal).require()
        reached = np.flatnonzero(np.isfinite(traversal.distance))
        distances = dict(zip(graph.ids[reached].tolist(), traversal.distance[reached], strict=True))
        assert distances == oracle.bellman_ford(neighbors, source)


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("cutoff", [None, 0.75])
def test_floats_have_the_bits_of_single_searches(kind, cutoff):
    @given(edge_rows_forward(), st.integers(0, 2**32), st.sampled_from([0.0, -1.0]))
    def check_one(rows, seed, least):
        weights = np.random.default_rng(seed).uniform(least, 1, len(rows))
        weights[[u == v for u, v in rows]] = 1.0
        graph = build(rows, weights.astype(kind), weight_type=kind)
        sources = np.arange(SOURCES) % graph.n_vertices
        plan = plan_sssp_many(
            graph, n_sources=SOURCES, strategy=NAME, result="predecessors", cutoff=cutoff
        )
        check(plan, plan_sssp, graph, sources, cutoff=cutoff)

    check_one()


def test_targets_and_kinds_that_need_no_row_have_the_results_of_another_strategy():
    graph = build([(0, 1), (1, 2), (0, 2), (4, 1), (2, 3)], [5, 3, 4, 2, 1])
    sources = [4, 0, 1]
    for asked in (
        {"result": "targets", "targets": [3, 0]},
        {"result": "summary"},
        {"result": "within", "cutoffs": [2, 5]},
        {"result": "nearest", "k": 1, "targets": [2, 3]},
    ):
        found, expected = (
            sssp_many(graph, sources, strategy=name, **asked)
            for name in (NAME, "near_far_per_thread")
        )
        assert found.equals(expected)


@pytest.mark.parametrize("sign", [1, -1])
def test_overflowing_distances_are_an_error(sign):
    graph = build([(0, 1), (1, 2)], [sign * 3e38, sign * 3e38], weight_type="float32")
    with pytest.raises(PrecisionError, match="float64"):
        sssp_many(graph, [0, 1], strategy=NAME)
    assert sssp_many(graph, [1, 2], strategy=NAME)["distance"].tolist() == [
        0.0,
        float(np.float32(sign * 3e38)),
        0.0,
    ]


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (build([(0, 1), (1, 0)], [1, 1]), "without a cycle, and this graph has one"),
        (build([(0, 1)], [1], directed=False), "without a cycle, and this graph has one"),
        (build([(0, 1), (1, 1)], [1, -1]), "negative weight from a vertex to itself"),
    ],
)
def test_other_graphs_are_refused(graph, message):
    with pytest.raises(StrategyError, match=f"strategy '{NAME}' .*{message}"):
        plan_sssp_many(graph, n_sources=2, strategy=NAME)


def test_auto_takes_it_where_searches_reach_much_and_for_negative_weights():
    rng = np.random.default_rng(1)
    heads = np.repeat(np.arange(1, 5000), 8)
    rows = np.stack([heads, (heads * rng.random(heads.size)).astype(np.int64)], axis=1)
    for least in (1, -50):
        graph = build(rows, rng.integers(least, 100, heads.size))
        plan = plan_sssp_many(graph, n_sources=256)
        assert plan.strategy.name == NAME, plan.why
    with_cycle = build([*rows, (0, 4999)], [*rng.integers(1, 100, heads.size), 1])
    plan = plan_sssp_many(with_cycle, n_sources=256)
    assert plan.strategy.name != NAME
    assert "without a cycle" in plan.left_out[NAME]
