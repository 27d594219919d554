"""Hierarchies on a GPU, or on the host harness: distances, statistics and certificates of interleaved distances."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import dijkstra

from kepler_traverse import convert, plan_sssp, plan_sssp_many
from kepler_traverse.certificate import batch_gpu, certify_many
from kepler_traverse.cuda import interleaved
from kepler_traverse.errors import CertificateError, HierarchyError
from kepler_traverse.search.distance_stats import count_bins, summary_of_distances
from kepler_traverse.search.query import TargetLists
from kepler_traverse.sssp import REGISTRY
from kepler_traverse.sssp.multi_source import hierarchy_sweep_gpu
from tests.support import tiers
from tests.support.devices import FIRST, MODES, host, in_each, in_one, on_a_device, running
from tests.support.graphs import build, lattice, path, rmat, star, weighted_rows, weights_for

pytestmark = on_a_device

mode, one_order = in_each(MODES), in_one(FIRST)
CLIQUE = [(u, v) for u in range(12) for v in range(12) if u != v]
GRAPHS = {
    "tree": [(v // 2, v) for v in range(1, 60)],
    "clique": CLIQUE,
    "one-way edges": [(v, v + 1) for v in range(40)] + [(v + 2, v) for v in range(0, 39, 3)],
    "lattice": lattice(7, 9),
    "several components": [*path(20), (50, 51), (51, 52), (60, 60), (70, 71), (71, 70)],
    "star": star(70),
    "power law": rmat(5, 4, seed=3),
}


@pytest.fixture
def small_steps(monkeypatch):
    """Levels of more than two vertices have a launch of their own, and lists of reached vertices are short."""
    monkeypatch.setattr(hierarchy_sweep_gpu, "_NARROW", 2)
    monkeypatch.setattr(hierarchy_sweep_gpu, "_CAPACITY", 3)
    monkeypatch.setattr(hierarchy_sweep_gpu, "_SEARCHES_PER_PROCESSOR", 1)


def moved(rows, weights, directed=False, **options):
    """A graph with a hierarchy on the CPU, and the same on the device."""
    graph = build(rows, weights, directed, **options)
    graph.hierarchy()
    return graph, graph.to("cuda")


def plan_of(graph, k, *, result="distances", **options):
    return REGISTRY.plan_multi_source(
        graph, n_sources=k, result=result, strategy="hierarchy_sweep", **options
    )


def within(distances, limit, dtype=np.float32):
    return np.where(distances <= limit, distances, np.inf).astype(dtype)


@pytest.mark.usefixtures("mode", "small_steps")
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("name", GRAPHS)
def test_distances_are_those_of_scipy(name, directed):
    rows = GRAPHS[name]
    graph, there = moved(rows, weights_for(rows, 2), directed)
    sources = np.arange(graph.n_vertices)
    found = np.concatenate(
        [host(group.distance) for group in plan_of(there, 40).iter_groups(sources)]
    )
    assert np.array_equal(found, dijkstra(convert.to_scipy(graph)))


@settings(max_examples=tiers.examples(15))
@given(weighted_rows(st.integers(0, 9), max_rows=40), st.booleans())
def test_distances_of_any_graph_are_those_of_scipy(drawn, directed):
    with running(FIRST):
        graph, there = moved(*drawn, directed)
        sources = np.arange(graph.n_vertices)
        group = plan_of(there, sources.size, forms=("interleaved",)).run(sources)
        assert np.array_equal(host(group.distance.rows()), dijkstra(convert.to_scipy(graph)))
        certify_many(there, sources, group.distance).require()


@pytest.mark.usefixtures("one_order")
@pytest.mark.parametrize("k", [1, 31, 32, 33, 65, 127, 129, 257])
def test_lines_of_distances_fit_any_number_of_sources(k):
    rows = GRAPHS["lattice"]
    graph, there = moved(rows, weights_for(rows, 4))
    sources = np.random.default_rng(k).integers(0, graph.n_vertices, k)
    group = plan_of(there, k, forms=("interleaved",)).run(sources)
    expected = dijkstra(convert.to_scipy(graph))[sources]
    assert np.array_equal(host(group.distance.rows()), expected)
    assert np.array_equal(host(group.distance[k // 2]), expected[k // 2])
    assert np.array_equal(host(group.distance[k // 2 : k].rows()), expected[k // 2 :])
    assert group.distance.shape == expected.shape
    assert len(group.distance) == k


@pytest.mark.usefixtures("mode", "small_steps")
@pytest.mark.parametrize("directed", [True, False])
def test_targets_limits_and_the_reverse_use_the_hierarchy(directed):
    rows = GRAPHS["lattice"]
    graph, there = moved(rows, weights_for(rows, 5), directed)
    everything = dijkstra(convert.to_scipy(graph))
    sources, targets = np.arange(40), np.array([3, 40, 50])
    found = plan_of(there, 40, result="targets", targets=targets).run(sources).distance
    assert np.array_equal(host(found), everything[:40, targets])
    assert np.array_equal(
        host(plan_of(there, 40, limit=9.5).run(sources).distance), within(everything[:40], 9.5)
    )
    reverse = plan_of(there.derived.linked_reverse(), 40).run(sources).distance
    assert np.array_equal(host(reverse), everything.T[:40])


@pytest.mark.usefixtures("one_order")
def test_targets_of_each_source_are_read_from_lines():
    rows = GRAPHS["lattice"]
    graph, there = moved(rows, weights_for(rows, 5))
    lists = TargetLists(np.array([0, 2, 2, 5]), np.array([7, 7, 0, 62, 3]))
    found = plan_of(there, 3, result="pairs", limit=20).run([5, 6, 9], lists).distance
    everything = within(dijkstra(convert.to_scipy(graph)), 20)
    assert np.array_equal(host(found), everything[[5, 5, 9, 9, 9], lists.vertices])


@pytest.mark.usefixtures("one_order")
def test_predecessors_are_those_of_a_search():
    rows = GRAPHS["lattice"]
    graph, there = moved(rows, weights_for(rows, 5))
    group = plan_of(there, 2, result="predecessors").run([4, 60])
    single = plan_sssp(graph, strategy="auto")
    for i, source in enumerate((4, 60)):
        assert np.array_equal(host(group.predecessor[i]), single.run(source).predecessor)


@pytest.mark.usefixtures("one_order")
@pytest.mark.parametrize("limit", [None, 15.5])
@pytest.mark.parametrize("name", ["lattice", "several components", "long"])
def test_statistics_of_interleaved_distances_have_the_bits_of_those_of_rows(name, limit):
    rows = path(1500) if name == "long" else GRAPHS[name]  # two reduction blocks
    weights = weights_for(rows, 6) if name != "long" else np.ones(len(rows), np.int64) * 3
    graph, there = moved(rows, weights)
    sources = np.arange(33) if graph.n_vertices > 33 else np.arange(graph.n_vertices)
    found = plan_of(there, sources.size, forms=("interleaved",), limit=limit).run(sources).distance
    on_rows = host(found.rows())
    for bound in (limit, 7.0):
        expected = summary_of_distances(on_rows, graph.offsets, bound)
        for one, other in zip(
            summary_of_distances(found, there.offsets, bound), expected, strict=True
        ):
            assert one.tobytes() == other.tobytes()
    counts = np.full(sources.size, 0.0625), np.zeros(sources.size, np.int64), 128
    if name != "long":
        assert np.array_equal(count_bins(found, None, *counts), count_bins(on_rows, None, *counts))


@pytest.mark.usefixtures("one_order")
def test_sums_beyond_32_bits_are_exact():
    n = 40
    weights = np.random.default_rng(3).integers(2**26, 2**27, n)
    graph, there = moved([(v, v + 1) for v in range(n)], weights)
    assert graph.hierarchy().dtype == np.int64
    group = plan_sssp_many(there, n_sources=40, strategy="hierarchy_sweep").run(np.arange(40))
    assert host(group.distance)[0].astype(np.int64).tolist() == np.cumsum([0, *weights]).tolist()
    assert group.distance.dtype == np.float64


@pytest.mark.usefixtures("one_order")
def test_float_sums_that_would_round_are_searched_without_the_hierarchy():
    weights = np.full(60, 2.0**19 - 0.5, np.float32)
    graph, there = moved([(v, v + 1) for v in range(60)], weights, weight_type="float32")
    expected = (
        plan_sssp_many(graph, n_sources=2, strategy="near_far_per_thread").run([0, 30]).distance
    )
    assert (expected[np.isfinite(expected)].max() / 0.5) > 2**24
    assert host(plan_of(there, 2).run([0, 30]).distance).tobytes() == expected.tobytes()


FAULTS = {
    "a source is not at 0": (lambda sources: (int(sources[3]), 3), 1),
    "a sum is too large": (lambda sources: (20, 7), 1),  # noqa: ARG005
    "a sum is too small": (lambda sources: (20, 7), -1),  # noqa: ARG005
    "a sum is negative": (lambda sources: (20, 7), -100_000),  # noqa: ARG005
    "a vertex is not reached": (lambda sources: (20, 7), interleaved.UNREACHED[np.dtype(np.int32)]),  # noqa: ARG005
    "the last lane": (lambda sources: (62, 39), 1),  # noqa: ARG005
}


@pytest.mark.usefixtures("one_order")
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("directed", [True, False])
def test_the_certificate_finds_a_wrong_sum(directed, fault):
    rows = GRAPHS["lattice"]
    _, there = moved(rows, 1 + np.array(weights_for(rows, 7)), directed)
    sources = np.arange(2, 42)
    found = plan_of(there, 40, forms=("interleaved",)).run(sources).distance
    assert batch_gpu.are_interleaved_valid(there, sources, found, np.inf)
    certify_many(there, sources, found).require()
    place, change = FAULTS[fault]
    vertex, lane = place(sources)
    found.lines[vertex, lane] += change
    assert not batch_gpu.are_interleaved_valid(there, sources, found, np.inf)
    with pytest.raises(CertificateError):
        certify_many(there, sources, found).require()


@pytest.mark.usefixtures("one_order")
def test_a_certificate_of_limited_distances_reads_lines():
    rows = GRAPHS["lattice"]
    _, there = moved(rows, 1 + np.array(weights_for(rows, 7)))
    sources = np.arange(40)
    found = plan_of(there, 40, forms=("interleaved",), limit=25).run(sources).distance
    assert np.isinf(host(found.rows())).any()
    assert batch_gpu.are_interleaved_valid(there, sources, found, 25.0)
    assert certify_many(there, sources, found, 25).valid
    assert not batch_gpu.are_interleaved_valid(there, sources, found, np.inf)
    assert not certify_many(there, sources, found).valid


@pytest.mark.usefixtures("one_order")
def test_zero_weights_are_certified_as_rows():
    rows = GRAPHS["lattice"]
    weights = np.array(weights_for(rows, 7))
    weights[::3] = 0
    _, there = moved(rows, weights)
    sources = np.arange(40)
    found = plan_of(there, 40, forms=("interleaved",)).run(sources).distance
    assert not batch_gpu.are_interleaved_valid(there, sources, found, np.inf)
    assert certify_many(there, sources, found).valid


@pytest.mark.usefixtures("one_order")
def test_a_changed_shortcut_is_found_by_the_certificate():
    rows = GRAPHS["lattice"]
    graph, there = moved(rows, 1 + np.array(weights_for(rows, 7)))
    hierarchy = graph.hierarchy()
    weights = hierarchy.upward.weights.copy()
    weights[: weights.size // 2] //= 2
    edges = hierarchy.upward._replace(weights=weights)
    there.derived.keep_hierarchy(
        dataclasses.replace(hierarchy, upward=edges, downward=edges), "weights"
    )
    sources = np.arange(40)
    with pytest.raises(CertificateError):
        certify_many(
            there, sources, plan_of(there, 40, forms=("interleaved",)).run(sources).distance
        ).require()


@pytest.mark.usefixtures("one_order")
def test_a_graph_on_the_device_builds_the_same_hierarchy():
    rows = GRAPHS["lattice"]
    weights = weights_for(rows, 7)
    graph, there = build(rows, weights), build(rows, weights).to("cuda")
    assert there.hierarchy().order.tobytes() == graph.hierarchy().order.tobytes()
    assert there.to("cpu").derived.known_hierarchy("weights") is there.derived.known_hierarchy(
        "weights"
    )
    with pytest.raises(HierarchyError, match="floats whose sums"):
        build([(0, 1)], [0.1]).to("cuda").hierarchy()
