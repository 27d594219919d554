"""Many sources: every strategy gives, bit for bit, the results of single searches; and the results made of them."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kepler_traverse import certify, plan_bfs, plan_bfs_many, plan_sssp, plan_sssp_many, sssp_many
from kepler_traverse.bfs import MULTI_SOURCE as BFS
from kepler_traverse.bfs import REGISTRY as BFS_REGISTRY
from kepler_traverse.bfs.tuning import BitParallelCpuTuning
from kepler_traverse.errors import InputError, NegativeCycleError, PrecisionError, StrategyError
from kepler_traverse.sssp import MULTI_SOURCE as SSSP
from tests.support import tiers
from tests.support.devices import host
from tests.support.graphs import (
    NAMED,
    awkward_floats,
    build,
    edge_rows,
    is_refused,
    path,
    weighted_rows,
    weights_for,
)
from tests.support.plans import place_of_edges

GROUPS = (1, 31, 32, 33, 64, 65, 257, 600)


def ways(registry, looped):
    """Return every multi-source strategy, and the loop over a single-source strategy."""
    named = [
        pytest.param(
            (each.name, each.device, place_of_edges(each)),
            marks=pytest.mark.gpu if each.device == "cuda" else (),
            id=f"{each.name}-{each.device}",
        )
        for each in registry
        if each.sums == "float"  # test_exact_sums has the others
    ]
    return pytest.mark.parametrize(
        "way",
        [
            *named,
            *(pytest.param((name, "cpu", "device"), id=name) for name in ("one_at_a_time", looped)),
        ],
    )


# What single searches find, by source, for all ways to search equal graphs.
ALONE = defaultdict(dict)


def bits_of(traversal):
    """Distances, their type, and predecessors."""
    distance = host(traversal.distance)
    return distance.tobytes(), distance.dtype, host(traversal.predecessor).tobytes()


def check(plan, make, graph, sources, **limit):
    """Hold a plan for many sources against ``make(graph, **limit)`` for single ones."""
    known = ALONE[make.__name__, graph.device, graph.fingerprint, *limit.values()]
    missing = set(sources.tolist()) - set(known)
    if missing:
        single = make(graph, **limit)
        known |= {source: bits_of(single.run(source)) for source in missing}
    at = 0
    for group in plan.iter_groups(sources):
        assert len(group) <= plan.group
        for traversal in group:
            distances, dtype, predecessors = known[int(sources[at])]
            assert traversal.source == sources[at]
            assert host(traversal.distance).tobytes() == distances
            assert traversal.distance.dtype == dtype
            if traversal.predecessor is not None:
                assert host(traversal.predecessor).tobytes() == predecessors
            at += 1
    assert at == len(sources)


HOPS = tiers.pairs(list(NAMED), [True, False], [False, True])
WEIGHTED = tiers.pairs(list(NAMED), ["integers", "floats"], [True, False], [False, True])


@pytest.mark.parametrize("name", NAMED)
@ways(BFS, "queue")
def test_hops_of_many_sources_are_those_of_each_alone(way, name):
    for _, directed, predecessors in (case for case in HOPS if case[0] == name):
        graph = build([r[:2] for r in NAMED[name]], directed=directed).to(*way[1:])
        if is_refused(graph, BFS, way[0]):
            continue
        sources = np.random.default_rng(1).integers(0, graph.n_vertices, 70)
        result = "predecessors" if predecessors else "distances"
        plan = plan_bfs_many(graph, n_sources=70, strategy=way[0], result=result)
        check(plan, plan_bfs, graph, sources)


@pytest.mark.parametrize("n_sources", GROUPS)
@ways(BFS, "queue")
def test_sources_in_any_number_and_with_duplicates(way, n_sources):
    graph = build(
        NAMED["lattice" if way[0] == "hierarchy_sweep" else "power law"], directed=True
    ).to(*way[1:])
    assert not is_refused(graph, BFS, way[0])
    sources = np.random.default_rng(2).integers(0, graph.n_vertices, n_sources)
    sources[n_sources // 2 :] = sources[: n_sources - n_sources // 2]
    check(plan_bfs_many(graph, n_sources=n_sources, strategy=way[0]), plan_bfs, graph, sources)


@ways(BFS, "queue")
def test_a_plan_made_for_few_sources_takes_many_and_the_other_way_round(way):
    graph = build(NAMED["lattice"], directed=False).to(*way[1:])
    assert not is_refused(graph, BFS, way[0])
    for planned, asked in ((3, 100), (600, 2)):
        check(
            plan_bfs_many(graph, n_sources=planned, strategy=way[0]),
            plan_bfs,
            graph,
            np.arange(asked),
        )


@ways(BFS, "queue")
def test_hops_of_any_graph(way):
    @given(edge_rows(), st.booleans())
    def check_one(rows, directed):
        graph = build(rows, directed=directed).to(*way[1:])
        assert not is_refused(graph, BFS, way[0])
        sources = np.arange(graph.n_vertices)
        check(
            plan_bfs_many(graph, n_sources=graph.n_vertices, strategy=way[0]),
            plan_bfs,
            graph,
            sources,
        )

    check_one()


@pytest.mark.parametrize("pushing", ["always", "never"])
@pytest.mark.parametrize(
    "name", ["power law", "lattice", "in-star", "self-loops and parallel edges"]
)
def test_levels_pushed_and_levels_pulled_give_the_same(pushing, name):
    threshold = 0 if pushing == "always" else 10**9
    tuning = BitParallelCpuTuning(push_vertices=threshold, push_edges=threshold)
    graph = build(NAMED[name], directed=True)
    sources = np.arange(graph.n_vertices)[:300]
    plan = BFS_REGISTRY.plan_multi_source(
        graph, tuning=tuning, n_sources=300, strategy="bit_parallel", result="distances"
    )
    check(plan, plan_bfs, graph, sources)
    found = counted(graph, sources, "bit_parallel", tuning)
    for row, expected in zip(found, counted(graph, sources, "queue"), strict=True):
        assert row.tolist() == expected.tolist()


def counted(graph, sources, strategy, tuning=None):
    plan = BFS_REGISTRY.plan_multi_source(
        graph, tuning=tuning, n_sources=len(sources), strategy=strategy, result="levels"
    )
    rows = [row for group in plan.iter_groups(sources) for row in group.counts]
    return [row[: np.flatnonzero(row)[-1] + 1] for row in rows]


@pytest.mark.parametrize(
    ("length", "dtype"),
    tiers.few([(128, np.int16), (32768, np.int32), (127, np.int8), (32767, np.int16)], 2),
)
@ways(BFS, "queue")
def test_hop_counts_have_the_narrowest_type_that_holds_them(way, length, dtype):
    graph = build(path(length)).to(*way[1:])
    assert not is_refused(graph, BFS, way[0])
    plan = plan_bfs_many(graph, n_sources=3, strategy=way[0])
    group = plan.run([0, length, 1])
    assert group.distance.dtype == dtype
    assert host(group.distance)[:, -1].tolist() == [length, 0, length - 1]
    assert host(group.distance)[1, 0] == -1


@pytest.mark.parametrize("depth", [0, 1, 3])
@ways(BFS, "queue")
def test_a_depth_limit_is_inclusive(way, depth):
    graph = build(NAMED["lattice"], directed=False).to(*way[1:])
    assert not is_refused(graph, BFS, way[0])
    plan = plan_bfs_many(graph, n_sources=40, strategy=way[0], max_depth=depth)
    check(plan, plan_bfs, graph, np.arange(40), max_depth=depth)
    assert plan.run([5]).limits == [depth]


@ways(BFS, "queue")
def test_targets_stop_each_search_and_keep_their_distances(way):
    graph = build(NAMED["lattice"], directed=False).to(*way[1:])
    assert not is_refused(graph, BFS, way[0])
    everything = plan_bfs_many(graph, n_sources=40, strategy=way[0]).run(np.arange(16)).distance
    plan = plan_bfs_many(graph, n_sources=40, strategy=way[0], targets=[7, 3, 90], result="targets")
    group = plan.run(np.arange(16))
    assert host(group.distance).tolist() == host(everything)[:, [3, 7, 90]].tolist()


@pytest.mark.parametrize("name", NAMED)
@ways(SSSP, "frontier")
def test_distances_of_many_sources_are_those_of_each_alone(way, name):
    rows = [r[:2] for r in NAMED[name]]
    for _, kind, directed, predecessors in (case for case in WEIGHTED if case[0] == name):
        graph = build(rows, weights_for(rows, 3, kind), directed=directed).to(*way[1:])
        if is_refused(graph, SSSP, way[0]):
            continue
        # A short search of weights of all magnitudes takes a second where it reaches many vertices.
        n_sources = 5 if way[0] == "short_search" and kind == "floats" else 20
        sources = np.random.default_rng(1).integers(0, graph.n_vertices, n_sources)
        result = "predecessors" if predecessors else "distances"
        plan = plan_sssp_many(graph, n_sources=n_sources, strategy=way[0], result=result)
        check(plan, plan_sssp, graph, sources)


@ways(SSSP, "frontier")
def test_distances_for_awkward_weights(way):
    @given(weighted_rows(awkward_floats), st.booleans(), st.sampled_from([np.float32, np.float64]))
    # The reciprocal of the mean weight is just below the largest number, and twice as much above it.
    @example(([(0, 1), (1, 0)], [np.float32(0), np.float32(1.1754944e-38)]), True, np.float32)
    def check_one(drawn, directed, kind):
        rows, weights = drawn
        graph = build(rows, weights, directed, weight_type=np.dtype(kind).name).to(*way[1:])
        if is_refused(graph, SSSP, way[0]):
            return
        sources = np.arange(graph.n_vertices)
        plan = plan_sssp_many(graph, n_sources=sources.size, strategy=way[0], result="predecessors")
        single = plan_sssp(graph)
        try:
            expected = [single.run(int(source)).distance.copy() for source in sources]
        except PrecisionError:
            with pytest.raises(PrecisionError):
                list(plan.iter_groups(sources))
            return
        found = [
            traversal.distance.copy() for group in plan.iter_groups(sources) for traversal in group
        ]
        assert [d.tobytes() for d in found] == [d.tobytes() for d in expected]

    check_one()


@pytest.mark.parametrize("cutoff", [0, 17, 1e9])
@ways(SSSP, "frontier")
def test_a_cutoff_is_inclusive(way, cutoff):
    rows = NAMED["lattice"]
    graph = build(rows, weights_for(rows, 5), directed=False).to(*way[1:])
    if is_refused(graph, SSSP, way[0]):
        return
    plan = plan_sssp_many(graph, n_sources=20, strategy=way[0], cutoff=cutoff)
    check(plan, plan_sssp, graph, np.arange(20), cutoff=cutoff)


@ways(SSSP, "frontier")
def test_targets_of_weighted_searches_keep_their_distances(way):
    rows = NAMED["lattice"]
    n = 8  # a group of a plan on one thread
    graph = build(rows, weights_for(rows, 5), directed=False).to(*way[1:])
    if is_refused(graph, SSSP, way[0]):
        return
    everything = plan_sssp_many(graph, n_sources=n, strategy=way[0]).run(np.arange(n)).distance
    group = plan_sssp_many(
        graph, n_sources=n, strategy=way[0], targets=[500, 3], result="targets"
    ).run(np.arange(n))
    assert host(group.distance).tolist() == host(everything)[:, [3, 500]].tolist()


@pytest.mark.parametrize("cutoff", [None, 40])
def test_a_search_stopped_by_its_targets_says_how_far_it_is_complete(cutoff):
    rows = NAMED["lattice"]
    graph = build(rows, weights_for(rows, 5), directed=False)
    plan = plan_sssp_many(
        graph,
        n_sources=9,
        strategy="near_far_per_thread",
        targets=[60, 3],
        cutoff=cutoff,
        result="predecessors",
    )
    for group in plan.iter_groups(np.arange(9)):
        for traversal in group:
            certify(graph, traversal).require()


def test_overflowing_distances_are_an_error():
    graph = build([(0, 1), (1, 2)], [3e38, 3e38], weight_type="float32")
    with pytest.raises(PrecisionError, match="float64"):
        sssp_many(graph, [0, 1], strategy="near_far_per_thread")


def test_negative_weights_go_to_a_strategy_that_takes_them():
    graph = build([(0, 1), (1, 2), (0, 2)], [5, -3, 4])
    assert sssp_many(graph, [0, 1], result="matrix").tolist() == [[0, 5, 2], [np.inf, 0, -3]]
    with pytest.raises(StrategyError, match="cannot take negative weights"):
        sssp_many(graph, [0], strategy="near_far_per_thread")
    with pytest.raises(NegativeCycleError):
        sssp_many(build([(7, 8), (8, 7)], [1, -2]), [7])


# --- the choice of a strategy --------------------------------------------------------------------------------------------


def test_flat_graphs_get_bits_deep_ones_queues_and_a_single_source_the_loop():
    flat, deep = build(NAMED["power law"], directed=False), build(path(30000), directed=False)
    assert plan_bfs_many(flat, n_sources=256).strategy.name == "bit_parallel"
    assert plan_bfs_many(deep, n_sources=256).strategy.name == "source_per_thread"
    plan = plan_bfs_many(flat, n_sources=256)
    assert "bit_parallel" in plan.why
    assert "levels" in plan.why
    assert "MiB" in plan.why


def test_groups_shrink_until_they_fit_and_what_never_fits_is_refused_with_the_numbers():
    graph = build(NAMED["lattice"], directed=False)
    roomy = plan_bfs_many(graph, n_sources=512, strategy="bit_parallel")
    assert roomy.group == 512
    tight = plan_bfs_many(graph, n_sources=512, strategy="bit_parallel", memory=roomy.nbytes // 3)
    assert 64 <= tight.group < 512
    assert tight.nbytes <= roomy.nbytes // 3
    check(tight, plan_bfs, graph, np.arange(512))
    with pytest.raises(InputError, match=r"needs .* MiB .* and 0\.0 MiB are free"):
        plan_bfs_many(graph, n_sources=512, strategy="bit_parallel", memory=1000)


def test_bytes_of_a_plan_cover_its_allocations():
    graph = build(NAMED["power law"], directed=True)
    for strategy in ("bit_parallel", "source_per_thread"):
        plan = plan_bfs_many(graph, n_sources=100, strategy=strategy)
        group = plan.run(np.arange(min(plan.group, 100)))
        assert plan.nbytes >= group.distance.nbytes


def test_too_many_sources_for_one_group_are_refused():
    plan = plan_bfs_many(build(NAMED["cycle"]), n_sources=64, strategy="bit_parallel")
    with pytest.raises(InputError, match="65 sources at once, and this plan takes 64"):
        plan.run(np.zeros(65, np.int64))
