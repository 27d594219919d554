"""Edges in host memory, which a search on a GPU streams or reads in place: the same bits as with edges on the device."""

from __future__ import annotations

import numpy as np
import pytest

from kepler_traverse import (
    certify,
    graph_from_edges,
    plan_bfs,
    plan_bfs_many,
    plan_sssp_many,
)
from kepler_traverse.bfs import REGISTRY
from kepler_traverse.bfs.multi_source import bit_parallel_gpu, bit_parallel_streamed
from kepler_traverse.bfs.tuning import StreamedTuning
from kepler_traverse.errors import InputError, StrategyError
from kepler_traverse.search.strategy import Shape
from tests.support import tiers
from tests.support.devices import (
    FIRST,
    MODES,
    count_allocations,
    host,
    in_each,
    in_one,
    on_a_device,
)
from tests.support.graphs import build, lattice, path, rmat, star
from tests.traversal.test_multi_source_gpu import (
    HOPS_TUNING,
    check,
    counted,
    levels,
    plan_hops,
    sources_of,
)

pytestmark = on_a_device

mode, one_order = in_each(MODES), in_one(FIRST)
HOPS_TUNING["bit_parallel_streamed"] = TUNING = StreamedTuning(chunk=64, min_segment=64)
GRAPHS = {
    "power law": rmat(7, 8, seed=3),
    "star behind a path": [(v + 150, v + 151) for v in range(4)] + [(154, 0), *star(140)],
    "lattice": lattice(7, 16),
    "two components and more": [*path(20), (50, 51), (51, 52), (60, 60), (70, 71), (71, 70)],
}
FORCED = {
    "as it is": {},
    "all copied": {"push_vertices": 1 << 30, "in_place": 1 << 30},
    "all in place": {"push_vertices": 1 << 30, "in_place": 0},
    "one segment": {"push_vertices": 1 << 30, "min_segment": 1 << 20, "in_place": 1 << 30},
    "a segment per word": {
        "push_vertices": 1 << 30,
        "min_segment": 1,
        "min_segments": 1 << 30,
        "buffers": 1,
    },
    "push only": {"push_vertices": 0, "push_edges": 0},
}


def run_of(plan):
    """Return the run of a plan, after a search."""
    return plan._search._owned._search.__closure__[-1].cell_contents


@pytest.mark.parametrize(
    ("forced", "name", "directed"),
    [
        (forced, *shape)
        for i, forced in enumerate(FORCED)
        for j, shape in enumerate([*((name, True) for name in GRAPHS), ("power law", False)])
        if tiers.ALL or (i + j) % 2 == 0  # each way with every other shape, by turns
    ],
)
@pytest.mark.usefixtures("mode")
def test_hops_of_each_alone_are_found(name, directed, forced):
    graph = build(GRAPHS[name], directed=directed)
    sources = sources_of(graph, 50)
    asked = {"strategy": "bit_parallel_streamed", "n_sources": 50, "changes": FORCED[forced]}
    on_host = graph.to("cuda", edges="host")
    check(plan_hops(on_host, result="predecessors", **asked), plan_bfs(graph), sources)
    counts = counted(plan_hops(on_host, result="levels", **asked), sources)
    assert counts == levels(plan_bfs(graph), sources)


@pytest.mark.usefixtures("one_order")
def test_segments_are_copied_read_in_place_or_left_out_as_searches_go_on():
    # The vertices of the first words are full after two levels; those of the tail need one level each.
    dense = [(u, v) for u in range(64) for v in range(64) if u != v]
    graph = build([*dense, *((v, v + 1) for v in range(63, 160))], directed=False)
    plan = plan_hops(
        graph.to("cuda", edges="host"),
        "bit_parallel_streamed",
        n_sources=32,
        changes={"push_vertices": 1 << 30, "in_place": 2},
    )
    check(plan, plan_bfs(graph), np.arange(8))
    run = run_of(plan)
    assert run.segments[0].first_word == run.segments[0].first_edge == 0
    assert run.segments[-1].end_edge == graph.n_edges
    assert run.segments[-1].end_word == run.in_front.size
    assert all(count > 3 for count in run.counted.values()), run.counted


@pytest.mark.usefixtures("one_order")
def test_a_tenth_of_the_graph_in_gpu_memory_gives_the_same_bits(monkeypatch):
    rng = np.random.default_rng(5)
    src, dst = rng.integers(0, 2000, (2, 2000 * 150))
    graph = graph_from_edges(src, dst, directed=False)
    on_host = graph.to("cuda", edges="host")
    spare = graph.nbytes // 10 - on_host.derived.nbytes_on_device
    taken = count_allocations(monkeypatch, bit_parallel_streamed, bit_parallel_gpu)
    skew = graph.derived.max_degree * graph.n_vertices / graph.n_edges
    plan = REGISTRY.plan_multi_source(
        on_host,
        strategy="bit_parallel_streamed",
        result="levels",
        n_sources=64,
        memory=spare,
        shape=Shape(graph.n_vertices, graph.n_edges, False, 4, 4, 0, skew=skew),
        tuning=StreamedTuning(buffers=2),
    )
    sources = sources_of(graph, 32)
    assert counted(plan, sources) == levels(plan_bfs(graph), sources)
    assert plan.group == 32
    assert sum(taken) <= plan.nbytes <= spare < graph.nbytes / 10


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.usefixtures("one_order")
def test_targets_and_limits_end_searches(directed):
    graph = build(GRAPHS["power law"], directed=directed)
    on_host = graph.to("cuda", edges="host")
    sources = sources_of(graph, 40)
    targets = graph.ids[[3, 50, 7]]
    asked = {"n_sources": 40, "result": "targets", "targets": targets}
    found = plan_hops(on_host, "bit_parallel_streamed", **asked).run(sources)
    expected = plan_hops(graph.to("cuda"), "bit_parallel", **asked).run(sources)
    np.testing.assert_array_equal(host(found.distance), host(expected.distance))
    for depth in (0, 2):
        plan = plan_hops(on_host, "bit_parallel_streamed", n_sources=40, max_depth=depth)
        check(plan, plan_bfs(graph, max_depth=depth), sources)


@pytest.mark.usefixtures("one_order")
def test_auto_streams_edges_that_are_in_host_memory():
    graph = build(GRAPHS["power law"])
    on_host = graph.to("cuda", edges="host")
    plan = plan_bfs_many(on_host, n_sources=40, memory=1 << 30)
    assert plan.strategy.name == "bit_parallel_streamed"
    assert "bit_parallel_streamed" in plan.why
    check(plan, plan_bfs(graph), sources_of(graph, 40))
    assert plan_bfs_many(graph.to("cuda"), n_sources=40).strategy.edges != "host"


@pytest.mark.usefixtures("one_order")
def test_a_graph_moves_between_all_places():
    graph = build(GRAPHS["power law"], np.arange(len(GRAPHS["power law"])))
    on_host = graph.to("cuda", edges="host")
    assert on_host.to("cuda", edges="host") is on_host
    assert (graph.derived.edges_on_host, on_host.derived.edges_on_host, on_host.device) == (
        False,
        True,
        "cuda",
    )
    assert on_host.derived.nbytes_on_device == graph.offsets.nbytes
    assert graph.derived.nbytes_on_device == graph.nbytes
    on_gpu = on_host.to("cuda")
    assert not on_gpu.derived.edges_on_host
    assert on_gpu.derived.nbytes_on_device == graph.nbytes
    for moved in (on_host, on_gpu, on_gpu.to("cuda", edges="host"), on_host.to("cpu")):
        assert moved.fingerprint == graph.fingerprint
        np.testing.assert_array_equal(host(moved.targets), graph.targets)
        np.testing.assert_array_equal(host(moved.weights), graph.weights)
        np.testing.assert_array_equal(host(moved.reverse.targets), graph.reverse.targets)
        assert moved.reverse.derived.edges_on_host == moved.derived.edges_on_host
    result = plan_bfs(on_host)(int(graph.ids[0]))
    certify(on_host, result).require()
    assert host(result.distance).tolist() == plan_bfs(graph)(int(graph.ids[0])).distance.tolist()


@pytest.mark.usefixtures("one_order")
def test_a_strategy_says_where_it_reads_edges():
    graph = build(GRAPHS["power law"], np.arange(len(GRAPHS["power law"])))
    on_host = graph.to("cuda", edges="host")
    with pytest.raises(StrategyError, match="needs the edges in the memory of the GPU"):
        plan_bfs_many(on_host, n_sources=9, strategy="bit_parallel")
    with pytest.raises(StrategyError, match=r"graph.to\('cuda', edges='host'\) moves them"):
        plan_bfs_many(graph.to("cuda"), n_sources=9, strategy="bit_parallel_streamed")
    with pytest.raises(StrategyError, match="needs the edges in the memory of the GPU"):
        plan_sssp_many(on_host, n_sources=9, strategy="source_per_lane")


def test_edges_are_in_host_memory_of_a_graph_on_the_cpu():
    graph = build(path(3))
    with pytest.raises(InputError, match="edges='host' is for device 'cuda'"):
        graph.to("cpu", edges="host")
    with pytest.raises(InputError, match="edges"):
        graph.to("cpu", edges="disk")


@pytest.mark.parametrize(
    ("offsets", "size", "words"),
    [
        ([0], 5, [0]),
        ([0, 0], 5, [0, 1]),
        ([0, 5, 10, 15], 5, [0, 1, 2, 3]),
        ([0, 5, 10, 15], 14, [0, 2, 3]),
        ([0, 100, 101, 102], 5, [0, 1, 3]),
        ([0, 0, 0, 100], 5, [0, 2, 3]),
    ],
)
def test_words_are_cut_where_a_segment_is_full(offsets, size, words):
    assert bit_parallel_streamed.cut_words(np.array(offsets), size) == words
