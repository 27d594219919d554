"""Hub labels answer every pair as SciPy does, are the smallest ones of their order, and are refused
where they would be long.
"""

from __future__ import annotations

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import dijkstra

from kepler_traverse import convert, graph_from_edges, sssp_many, with_weights
from kepler_traverse.errors import HierarchyError
from kepler_traverse.hub_labels import estimate as estimate_module
from kepler_traverse.hub_labels.build import build_labels
from tests.support.graphs import NAMED, build, lattice, rmat, weighted_rows, weights_for

ONE_WAY = [(v, v + 1) for v in range(60)] + [(v + 2, v) for v in range(0, 59, 3)]


def answered(graph, metric="weights"):
    """Distances of all pairs by labels, pair by pair and as lists, of shape (n, n)."""
    labels = graph.labels(metric)
    n = graph.n_vertices
    vertices = np.arange(n)
    sources = np.repeat(vertices, n)
    targets = np.tile(vertices, n)
    sums = labels.between(sources, targets)
    assert np.array_equal(sums, labels.to_lists(vertices, np.arange(n + 1) * n, targets))
    distances = np.where(sums == labels.unreached, np.inf, sums * labels.unit)
    return distances.reshape(n, n)


def check(graph):
    assert np.array_equal(answered(graph), dijkstra(convert.to_scipy(graph)))


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize(
    "rows", [NAMED["complete"], ONE_WAY, lattice(12, 15), rmat(8, 4, seed=3)], ids=len
)
def test_all_pairs_are_those_of_scipy(rows, directed):
    check(build(rows, weights_for(rows, 1), directed))


@given(weighted_rows(st.integers(0, 9)), st.booleans())
def test_pairs_of_any_graph_are_those_of_scipy(drawn, directed):
    check(build(*drawn, directed))  # parallel edges, self-loops, zero weights, several components


@given(weighted_rows(st.sampled_from([0, 1, 2**20, 2**40 - 1, 2**40])), st.booleans())
def test_weights_to_2_to_the_40_are_summed_exactly(drawn, directed):
    check(build(*drawn, directed))


def test_sums_that_need_64_bits_are_answered_in_64_bits():
    weights = np.random.default_rng(3).integers(2**39, 2**40, 300)
    graph = build([(v, v + 1) for v in range(300)], weights, directed=False)
    assert graph.labels().dtype == np.int64
    sums = graph.labels().between(np.zeros(301, np.int64), np.arange(301))
    assert sums.tolist() == np.cumsum([0, *weights]).tolist()


@given(weighted_rows(st.sampled_from([0.0, 0.125, 0.5, 3.0, 40.25])), st.booleans())
def test_floats_that_are_multiples_of_a_power_of_two_have_labels(drawn, directed):
    rows, weights = drawn
    check(build(rows, np.array(weights, "float32"), directed, weight_type="float32"))


def is_canonical(lists, order, distances):
    """Whether each hub of a vertex is above all other vertices of all shortest paths to it."""
    for rank, vertex in enumerate(order):
        own = lists.hubs[lists.offsets[rank] : lists.offsets[rank + 1]]
        expected = [
            hub
            for hub in range(rank)
            if np.isfinite(distances[vertex, order[hub]])
            and not any(
                distances[vertex, order[y]] + distances[order[y], order[hub]]
                <= distances[vertex, order[hub]]
                for y in range(hub)
            )
        ]
        if own.tolist() != [*expected, rank]:
            return False
    return True


@given(weighted_rows(st.integers(0, 9), max_rows=50), st.booleans())
def test_labels_are_the_smallest_of_their_order(drawn, directed):
    graph = build(*drawn, directed)
    distances = dijkstra(convert.to_scipy(graph))
    labels = graph.labels()
    assert is_canonical(labels.outward, labels.order, distances)
    assert is_canonical(labels.inward, labels.order, distances.T)


def test_labels_of_hops_count_edges_and_stay_with_other_weights():
    rows = lattice(9, 14)
    graph = build(rows, weights_for(rows, 2), directed=True)
    expected = dijkstra(convert.to_scipy(graph), unweighted=True)
    assert np.array_equal(answered(graph, "hops"), expected)
    graph.labels()
    other = with_weights(graph, np.arange(graph.n_edges), per="edge")
    assert other.derived.known_labels("hops") is graph.labels("hops")
    assert other.derived.known_labels("weights") is None


def arrays_of(labels):
    return [labels.order, *(array for lists in labels.directions.values() for array in lists)]


@pytest.mark.parametrize("directed", [True, False])
def test_labels_do_not_depend_on_the_number_of_threads(directed):
    rows = lattice(60, 60)
    graph = build(rows, weights_for(rows, 6), directed)
    hierarchy = graph.hierarchy()
    found = []
    before = numba.get_num_threads()
    try:
        for count in sorted({1, numba.config.NUMBA_NUM_THREADS}):
            numba.set_num_threads(count)
            found.append(
                [array.tobytes() for array in arrays_of(build_labels(hierarchy, "weights"))]
            )
    finally:
        numba.set_num_threads(before)
    assert len(found) > 1, "one thread only: this test needs two"
    assert all(each == found[0] for each in found)


def test_a_reversed_graph_has_the_labels_of_the_other_direction():
    graph = build(ONE_WAY, weights_for(ONE_WAY, 5), directed=True)
    labels = graph.labels()
    reverse = graph.derived.linked_reverse()
    assert reverse.derived.known_labels("weights").outward is labels.inward
    check(reverse)
    assert graph.derived.without_hierarchy().derived.known_labels("weights") is None
    assert graph.derived.sums_in("float64").derived.known_labels("weights") is labels


def test_few_targets_in_a_large_graph_are_merged_pair_by_pair():
    rows = lattice(40, 60)
    graph = build(rows, weights_for(rows, 2), directed=False)
    labels = graph.labels()
    targets = np.array([7, 2000])
    lists = np.array([5]), np.array([0, 2]), targets
    assert labels.to_lists(*lists).tolist() == labels.between(np.array([5, 5]), targets).tolist()


def test_labels_say_what_they_are_and_are_kept():
    rows = lattice(20, 20)
    graph = build(rows, weights_for(rows, 4), directed=False)
    assert graph.derived.known_labels("weights") is None
    labels = graph.labels()
    assert graph.labels() is labels
    assert labels.rows == labels.outward.hubs.size
    assert labels.longest == np.diff(labels.outward.offsets).max()
    assert repr(labels).startswith(
        f"<HubLabels: 400 vertices, {labels.rows / 400:.1f} hubs per vertex, {labels.rows:,} rows, "
    )


@pytest.mark.parametrize("directed", [True, False])
def test_the_estimate_is_that_of_a_sample(directed):
    rows = lattice(60, 60)
    graph = build(rows, weights_for(rows, 7), directed)
    estimate = graph.derived.estimate_labels()
    labels = graph.labels()
    assert estimate.sampled == 256
    assert estimate.rows == pytest.approx(labels.rows, rel=0.1)
    assert estimate.nbytes == pytest.approx(labels.nbytes, rel=0.1)
    small = build(lattice(10, 10), [1] * 180, directed)  # all vertices are in the sample
    assert small.derived.estimate_labels().rows == small.labels().rows


def test_long_labels_are_refused_before_they_are_built(monkeypatch):
    rows = lattice(40, 40)
    graph = build(rows, weights_for(rows, 7), directed=False)
    for most, sampled in ((15, 256), (5, 0)):  # above by the sample; above by far without one
        monkeypatch.setattr(estimate_module, "MAX_HUBS", most)
        assert graph.derived.estimate_labels().sampled == sampled
        with pytest.raises(HierarchyError, match=r"no labels: they would have about \d+ hubs"):
            graph.labels()
    monkeypatch.undo()
    monkeypatch.setattr(estimate_module, "available_memory", lambda _: 1000)
    with pytest.raises(HierarchyError, match=r"2 times that memory, and .* are free"):
        graph.labels()


def test_labels_need_weights():
    rows = lattice(2, 2)
    with pytest.raises(HierarchyError, match="no weights"):
        build(rows).labels()


def test_a_graph_without_edges_has_labels():
    nothing = np.zeros(0, np.int64)
    check(graph_from_edges(nothing, nothing, nothing, vertices=np.array([4, 9]), directed=False))


def test_searches_are_as_without_labels():
    rows = lattice(15, 15)
    graph = build(rows, weights_for(rows, 8), directed=False)
    before = sssp_many(graph, [0, 7], result="summary")
    graph.labels()
    assert before.equals(sssp_many(graph, [0, 7], result="summary"))
