"""Hierarchies keep all distances, whatever the graph and the order of contraction, and are refused where they do not pay."""

from __future__ import annotations

import dataclasses

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import dijkstra

from kepler_traverse import (
    certify_many,
    convert,
    graph_from_edges,
    plan_sssp_many,
    sssp_many,
    with_weights,
)
from kepler_traverse.errors import CertificateError, HierarchyError, StrategyError
from kepler_traverse.hierarchy import build as build_module
from kepler_traverse.hierarchy.arrays import hierarchy_from
from kepler_traverse.hierarchy.contraction import Contraction
from tests.support.graphs import NAMED, build, lattice, rmat, weighted_rows, weights_for

TREE = [(v // 2, v) for v in range(1, 200)]
CLIQUE = [(u, v) for u in range(30) for v in range(30) if u != v]
ONE_WAY = [(v, v + 1) for v in range(60)] + [(v + 2, v) for v in range(0, 59, 3)]


def swept(graph, sources=None, **options):
    """Distances over the hierarchy, of shape (sources, vertices)."""
    numbers = np.arange(graph.n_vertices) if sources is None else np.asarray(sources)
    plan = plan_sssp_many(graph, n_sources=numbers.size, strategy="hierarchy_sweep", **options)
    return np.concatenate([group.distance.copy() for group in plan.iter_groups(numbers)])


def check(graph):
    graph.hierarchy()
    assert np.array_equal(swept(graph), dijkstra(convert.to_scipy(graph)))


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize(
    "rows", [TREE, CLIQUE, ONE_WAY, lattice(12, 15), rmat(8, 4, seed=3)], ids=len
)
def test_distances_are_those_of_scipy(rows, directed):
    check(build(rows, weights_for(rows, 1), directed))


@given(weighted_rows(st.integers(0, 9)), st.booleans())
def test_distances_of_any_graph_are_those_of_scipy(drawn, directed):
    rows, weights = drawn  # with parallel edges, self-loops, zero weights and several components
    check(build(rows, weights, directed))


@given(
    weighted_rows(st.sampled_from([0.0, 0.125, 0.5, 3.0, 40.25])),
    st.booleans(),
    st.sampled_from(["float32", "float64"]),
)
def test_floats_that_are_multiples_of_a_power_of_two_have_a_hierarchy(drawn, directed, weight_type):
    rows, weights = drawn
    check(build(rows, np.array(weights, weight_type), directed, weight_type=weight_type))


@given(
    weighted_rows(st.integers(0, 9), max_rows=40), st.booleans(), st.randoms(use_true_random=False)
)
def test_contraction_in_any_order_keeps_distances(drawn, directed, random):
    graph = build(*drawn, directed)
    reverse = graph.reverse
    weights = graph.weights.astype(np.int64), reverse.weights.astype(np.int64)
    backward = (reverse.offsets, reverse.targets, weights[1]) if directed else None
    contraction = Contraction(graph.offsets, graph.targets, weights[0], backward)
    for v in random.sample(range(graph.n_vertices), graph.n_vertices):
        contraction._contract(np.array([v], np.int32))
    graph.derived.keep_hierarchy(hierarchy_from(contraction, 1.0, 0.0), "weights")
    assert np.array_equal(swept(graph), dijkstra(convert.to_scipy(graph)))


@pytest.mark.parametrize("directed", [True, False])
def test_targets_cutoffs_and_the_reverse_use_the_hierarchy(directed):
    rows = NAMED["lattice"]
    graph = build(rows, weights_for(rows, 5), directed)
    graph.hierarchy()
    everything = dijkstra(convert.to_scipy(graph))
    targets = np.array([1999, 3, 70])
    found = swept(graph, targets=graph.ids_at(targets), result="targets")
    assert np.array_equal(found, everything[:, np.sort(targets)])
    assert np.array_equal(
        swept(graph, cutoff=97.5), np.where(everything <= 97.5, everything, np.inf)
    )
    assert np.array_equal(swept(graph.derived.linked_reverse()), everything.T)


def test_sums_beyond_32_bits_are_exact():
    n = 300
    weights = np.random.default_rng(3).integers(2**26, 2**27, n)
    graph = build([(v, v + 1) for v in range(n)], weights, directed=False)
    assert graph.hierarchy().dtype == np.int64
    frame = sssp_many(graph, [0], strategy="hierarchy_sweep")
    assert frame["distance"].tolist() == np.cumsum([0, *weights]).tolist()


def test_float_sums_that_would_round_are_searched_without_the_hierarchy():
    weights = np.full(300, 2.0**19 - 0.5, np.float32)
    graph = build([(v, v + 1) for v in range(300)], weights, directed=False, weight_type="float32")
    graph.hierarchy()
    expected = (
        plan_sssp_many(graph, n_sources=2, strategy="near_far_per_thread").run([0, 150]).distance
    )
    assert (expected.max() / 0.5) > 2**24
    assert swept(graph, [0, 150]).tobytes() == expected.tobytes()


def arrays_of(hierarchy):
    return [hierarchy.order, *hierarchy.upward, *hierarchy.downward]


@pytest.mark.parametrize("directed", [True, False])
def test_the_hierarchy_does_not_depend_on_the_number_of_threads(directed):
    rows = lattice(100, 100)
    found = []
    before = numba.get_num_threads()
    try:
        for count in sorted({1, numba.config.NUMBA_NUM_THREADS}):
            numba.set_num_threads(count)
            graph = build(rows, weights_for(rows, 6), directed)
            found.append([array.tobytes() for array in arrays_of(graph.hierarchy())])
    finally:
        numba.set_num_threads(before)
    assert len(found) > 1, "one thread only: this test needs two"
    assert all(each == found[0] for each in found)


def test_a_changed_shortcut_is_found_by_the_certificate():
    rows = lattice(20, 20)
    graph = build(rows, weights_for(rows, 7), directed=False)
    hierarchy = graph.hierarchy()
    sources = np.arange(5)
    certify_many(graph, sources, swept(graph, sources)).require()
    weights = hierarchy.upward.weights.copy()
    weights[hierarchy.upward.offsets[1]] += 3  # an edge to the top, which all paths over it use
    weights[: weights.size // 2] //= 2
    edges = hierarchy.upward._replace(weights=weights)
    graph.derived.keep_hierarchy(
        dataclasses.replace(hierarchy, upward=edges, downward=edges), "weights"
    )
    with pytest.raises(CertificateError):
        certify_many(graph, sources, swept(graph, sources)).require()


@pytest.mark.parametrize(
    ("weights", "reason"),
    [
        (None, "no weights"),
        ([1, -2], "negative weights"),
        ([0.1, 0.2], "floats whose sums depend on the order"),
        ([2**61, 1], "2\\^61 or more"),
    ],
)
def test_a_graph_that_can_have_no_hierarchy_is_refused_with_the_reason(weights, reason):
    graph = build([(0, 1), (1, 2)], weights)
    with pytest.raises(HierarchyError, match=reason):
        graph.hierarchy()
    with pytest.raises(StrategyError):
        plan_sssp_many(graph, n_sources=2, strategy="hierarchy_sweep")


def test_sums_of_weights_beyond_the_integers_are_refused():
    graph = build([(v, v + 1) for v in range(9)], [2**60] * 9, directed=False)
    with pytest.raises(HierarchyError, match="may reach 2\\^61"):
        graph.hierarchy()


def test_contraction_gives_up_where_the_rest_becomes_dense(monkeypatch):
    monkeypatch.setattr(build_module, "_SMALL", 1)
    rows = rmat(12, 8, seed=5)
    expected = r"next round alone would take about [0-9.e+-]+ s, and later rounds longer\. Networks with hubs"
    with pytest.raises(HierarchyError, match=expected):
        build(rows, weights_for(rows, 1), directed=False).hierarchy()
    rows = lattice(60, 60)
    build(rows, weights_for(rows, 1), directed=False).hierarchy()


@pytest.mark.parametrize("directed", [False, True])
def test_contraction_gives_up_where_all_is_near(monkeypatch, directed):
    monkeypatch.setattr(build_module, "_SMALL", 1)
    rng = np.random.default_rng(7)
    rows = [(int(u), int(v)) for u, v in rng.integers(0, 1000, (2500, 2))]
    graph = build(rows, weights_for(rows, 1), directed=directed)
    with pytest.raises(
        HierarchyError,
        match=r"half of the vertices are within \d+ edges of one vertex, as in a random graph",
    ):
        graph.hierarchy()
    monkeypatch.setattr(build_module, "_NEAR", 0)
    with pytest.raises(
        HierarchyError,
        match=r"with \d+ of .* contracting more vertices adds more edges than it removes",
    ):
        graph.hierarchy()


def test_lists_stay_sorted_by_weight():
    rows = [*lattice(20, 20), *((7, v) for v in range(100, 300))]  # one hub
    graph = build(rows, weights_for(rows, 3), directed=False)
    contraction = Contraction(graph.offsets, graph.targets, graph.weights.astype(np.int64))
    while contraction.remaining.size:  # witness searches stop at the first edge that is too long
        lists = contraction.ahead
        for v in contraction.remaining:
            weights = lists.weight[lists.begin[v] : lists.begin[v] + lists.size[v]]
            assert (np.diff(weights) >= 0).all()
        contraction._run_round()


def test_the_hierarchy_says_what_it_is_and_is_kept():
    graph = build(TREE, [1] * len(TREE), directed=False)
    assert graph.derived.known_hierarchy("weights") is None
    hierarchy = graph.hierarchy()
    assert graph.hierarchy() is hierarchy
    assert graph.derived.sums_in("float64").derived.known_hierarchy("weights") is hierarchy
    assert repr(hierarchy).startswith(
        f"<Hierarchy: 200 vertices, {hierarchy.levels} levels, {hierarchy.shortcuts:,} shortcuts, "
    )
    assert hierarchy.nbytes == sum(
        array.nbytes for array in (hierarchy.order, hierarchy.position, *hierarchy.upward)
    )


def test_auto_takes_the_hierarchy_of_a_road_like_graph():
    rows = lattice(150, 150)
    graph = build(rows, weights_for(rows, 8), directed=False)
    names = {each.name for each in plan_sssp_many(graph, n_sources=64).ranked(64)}
    assert "hierarchy_sweep" not in names
    graph.hierarchy()
    assert plan_sssp_many(graph, n_sources=64).ranked(64)[0].name == "hierarchy_sweep"


def test_a_graph_without_edges_has_a_hierarchy():
    graph = graph_from_edges(
        np.zeros(0, np.int64),
        np.zeros(0, np.int64),
        np.zeros(0, np.int64),
        vertices=np.array([4, 9]),
        directed=False,
    )
    check(graph)


def test_a_plan_of_float_weights_says_what_a_hierarchy_needs_and_that_works():
    rows = lattice(100, 100)
    minutes = np.random.default_rng(0).random(len(rows)) + 0.1
    graph = build(rows, minutes, directed=False)
    plan = plan_sssp_many(graph, n_sources=1_000_000, result="summary")
    for text in (plan.why, plan.explain()):
        assert "integer_weights(graph" in text
    assert "that integer_weights has counted" in plan.explain()
    assert plan.estimate_hierarchy() is None
    rounded = with_weights(graph, np.rint(graph.weights * 60_000).astype("int64"), per="edge")
    plan = plan_sssp_many(rounded, n_sources=1_000_000, result="summary")
    assert plan.estimate_hierarchy() is not None
    assert "rounded" not in plan.explain()
    rounded.hierarchy()
    few = plan_sssp_many(graph, n_sources=2, result="summary")
    assert "integer_weights" not in few.why
