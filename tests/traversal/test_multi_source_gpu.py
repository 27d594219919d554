"""Many sources on a GPU: equal to single searches, bit for bit, with each path forced on small graphs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kepler_traverse import certify, plan_bfs, plan_sssp
from kepler_traverse._arrays import get_device
from kepler_traverse.bfs import REGISTRY as BFS_REGISTRY
from kepler_traverse.bfs.multi_source import bit_parallel_gpu
from kepler_traverse.bfs.multi_source import source_per_block as bfs_blocks
from kepler_traverse.bfs.tuning import BitParallelGpuTuning
from kepler_traverse.bfs.tuning import SourcePerBlockTuning as HopsPerBlock
from kepler_traverse.errors import InputError, PrecisionError, StrategyError
from kepler_traverse.search.strategy import Shape
from kepler_traverse.sssp import REGISTRY as SSSP_REGISTRY
from kepler_traverse.sssp.multi_source import source_per_block as sssp_blocks
from kepler_traverse.sssp.multi_source import source_per_lane
from kepler_traverse.sssp.tuning import SourcePerBlockTuning as DistancesPerBlock
from kepler_traverse.sssp.tuning import SourcePerLaneTuning
from tests.conftest import HAS_GPU
from tests.support import tiers
from tests.support.devices import (
    FIRST,
    MODES,
    count_allocations,
    host,
    in_each,
    in_one,
    on_a_device,
    planned_by_outline,
)
from tests.support.graphs import (
    awkward_floats,
    build,
    edge_rows,
    lattice,
    path,
    rmat,
    star,
    weighted_rows,
    weights_for,
)

pytestmark = on_a_device

mode, one_order = in_each(MODES), in_one(FIRST)
GRAPHS = {
    "power law": rmat(7, 8, seed=3),
    "star behind a path": [(v + 150, v + 151) for v in range(4)] + [(154, 0), *star(140)],
    "lattice": lattice(7, 16),
    "two components and more": [*path(20), (50, 51), (51, 52), (60, 60), (70, 71), (71, 70)],
}
SHAPES = [*((name, True) for name in GRAPHS), ("power law", False), ("lattice", False)]
FORCED = {
    "bit_parallel": {
        "as it is": {},
        "push only": {"push_vertices": 0, "push_edges": 0},
        "pull only": {"push_vertices": 1 << 30},
    },
    "source_per_block": {
        "as it is": {},
        "bits in two places": {"max_shared_bits": 8},
        "a table": {"max_shared_bits": 0},
        "a table and queues that overflow": {
            "max_shared_bits": 0,
            "slots_per_root": 0,
            "min_slots": 8,
        }
        | {"queue_capacity": 2, "spill_capacity": 3, "table_unroll": 4},
    },
}
HOPS_TUNING = {"bit_parallel": BitParallelGpuTuning(chunk=64), "source_per_block": HopsPerBlock()}
DISTANCES_TUNING = {
    "source_per_block": DistancesPerBlock(),
    "source_per_lane": SourcePerLaneTuning(uneven_chunk=64, even_chunk=64),
}


@pytest.fixture(autouse=True, scope="module")
def _plans_know_the_size_alone():
    with planned_by_outline():
        yield


def plan_hops(graph, strategy, *, max_depth=None, changes=None, result="distances", **options):
    """Plan as ``plan_bfs_many``, with chunks that are short enough to occur on small graphs, and other changes.

    On the harness no kernel surveys the depth of the graph.
    """
    index = graph.targets.dtype.itemsize
    shape = (
        None if HAS_GPU else Shape(graph.n_vertices, graph.n_edges, graph.directed, 40, index, 0)
    )
    options |= {
        "tuning": replace(HOPS_TUNING[strategy], **(changes or {})),
        "limit": max_depth,
        "shape": shape,
    }
    return BFS_REGISTRY.plan_multi_source(graph, strategy=strategy, result=result, **options)


def plan_distances(graph, strategy, *, cutoff=None, changes=None, result="distances", **options):
    """Plan as ``plan_sssp_many``, with short chunks, and other changes."""
    options |= {"tuning": replace(DISTANCES_TUNING[strategy], **(changes or {})), "limit": cutoff}
    return SSSP_REGISTRY.plan_multi_source(graph, strategy=strategy, result=result, **options)


def sources_of(graph, k: int) -> np.ndarray:
    """Some of them twice, and of every component."""
    sources = np.random.default_rng(k).integers(0, graph.n_vertices, k)
    sources[k // 2 :] = sources[: k - k // 2]
    return sources


def check(plan, single, sources) -> None:
    alone = {int(source): single.run(int(source)).copy() for source in np.unique(sources)}
    at = 0
    for group in plan.iter_groups(sources):
        for traversal in group:
            expected = alone[int(sources[at])]
            assert host(traversal.distance).tobytes() == expected.distance.tobytes(), (
                f"source {sources[at]}"
            )
            if traversal.predecessor is not None:
                assert host(traversal.predecessor).tobytes() == expected.predecessor.tobytes()
            at += 1
    assert at == len(sources)


def counted(plan, sources) -> list:
    """Levels of each source; they stay on the device, and may be gone with the next group."""
    rows = []
    for group in plan.iter_groups(sources):
        assert get_device(group.counts) == "cuda"
        rows += list(host(group.counts))
    return [row[: np.flatnonzero(row)[-1] + 1].tolist() for row in rows]


def levels(single, sources) -> list:
    found = (single.run(int(source)).distance for source in sources)
    return [np.bincount(distance[distance >= 0]).tolist() for distance in found]


@pytest.mark.parametrize(
    ("strategy", "forced", "name", "directed"),
    [
        (*way, *shape)
        for i, way in enumerate((name, forced) for name, ways in FORCED.items() for forced in ways)
        for j, shape in enumerate(SHAPES)
        if tiers.ALL or (i + j) % 2 == 0  # each way with every other shape, by turns
    ],
)
@pytest.mark.usefixtures("mode")
def test_hops_of_each_alone_are_found(name, directed, strategy, forced):
    graph, k = (
        build(GRAPHS[name], directed=directed),
        {"bit_parallel": 50, "source_per_block": 9}[strategy],
    )
    sources, asked = (
        sources_of(graph, k),
        {"strategy": strategy, "n_sources": k, "changes": FORCED[strategy][forced]},
    )
    check(plan_hops(graph.to("cuda"), result="predecessors", **asked), plan_bfs(graph), sources)
    counts = counted(plan_hops(graph.to("cuda"), result="levels", **asked), sources)
    assert counts == levels(plan_bfs(graph), sources)


@pytest.mark.parametrize(
    ("strategy", "k"),
    [
        *(("bit_parallel", k) for k in (1, 31, 32, 33, 64, 1000, 1024)),
        *(("source_per_block", k) for k in (1, 33, 1024)),
    ],
)
@pytest.mark.usefixtures("one_order")
def test_sources_of_any_number_may_repeat(strategy, k):
    is_long = strategy == "source_per_block" and k > 100  # on the host harness
    graph = build(
        [*path(4), (50, 51), (60, 60)] if is_long else GRAPHS["two components and more"],
        directed=False,
    )
    sources = sources_of(graph, k)
    plan = plan_hops(graph.to("cuda"), n_sources=k, strategy=strategy)
    assert plan.group >= k
    check(plan, plan_bfs(graph), sources)
    check(plan, plan_bfs(graph), sources[: k // 2 + 1])  # a run leaves nothing for the next


@pytest.mark.usefixtures("one_order")
def test_a_lane_may_take_more_words_of_a_row_than_one_load_reads():
    graph = build(GRAPHS["power law"], directed=True)
    plan = plan_hops(
        graph.to("cuda"),
        "bit_parallel",
        n_sources=1024,
        changes={"uneven_lanes": 4, "even_lanes": 4},
    )
    check(plan, plan_bfs(graph), sources_of(graph, 200))


@pytest.mark.usefixtures("one_order")
def test_a_source_that_is_through_does_not_hold_up_the_others():
    # No source of the second component reaches the first, whose vertices are done all the same while some still search.
    tail = [(39, 200), *((v, v + 1) for v in range(200, 204))]
    graph = build(
        [*[(u, v) for u in range(40) for v in range(40)], (100, 101), *tail], directed=False
    )
    plan = plan_hops(
        graph.to("cuda"), "bit_parallel", n_sources=32, changes=FORCED["bit_parallel"]["pull only"]
    )
    group = plan.run([0, 5, int(graph.to_numbers([101])[0])])
    assert host(group.distance)[:, :2].tolist() == [[0, 1], [1, 1], [-1, -1]]
    traverse = plan._search._owned._search
    run = traverse.__closure__[-1].cell_contents
    done = np.unpackbits(host(run.done).view(np.uint8), bitorder="little")
    assert done[:40].all()


@pytest.mark.parametrize("length", [40, 127, 140])
@pytest.mark.usefixtures("one_order")
def test_bit_planes_are_made_as_levels_need_them(length):
    graph = build(path(length), directed=False)
    plan = plan_hops(graph.to("cuda"), n_sources=3, strategy="bit_parallel")
    for sources in ([0, length, 1], [length // 2]):
        check(plan, plan_bfs(graph), np.array(sources))
    assert plan.run([0]).distance.dtype == (np.int8 if length < 128 else np.int16)


@pytest.mark.parametrize("result", ["distances", "predecessors", "levels"])
@pytest.mark.usefixtures("one_order")
def test_searches_deeper_than_a_type_holds_begin_again_with_a_wider_one(result):
    for length, kind in ((100, np.int8), (149, np.int16), (200, np.int16)):
        graph = build(path(length), directed=False)
        plan = plan_hops(
            graph.to("cuda"),
            "source_per_block",
            n_sources=3,
            result=result,
            changes={"short_hops": 150},
        )
        sources = np.array([0, length // 2, length])
        if result == "levels":
            assert counted(plan, sources) == levels(plan_bfs(graph), sources)
        else:
            check(plan, plan_bfs(graph), sources)
            assert result == "predecessors" or plan.run(sources).distance.dtype == kind


@pytest.mark.parametrize("depth", [0, 1, 5])
@pytest.mark.parametrize("strategy", ["bit_parallel", "source_per_block"])
@pytest.mark.usefixtures("one_order")
def test_a_depth_limit_is_inclusive(strategy, depth):
    graph = build(GRAPHS["lattice"], directed=False)
    plan = plan_hops(graph.to("cuda"), n_sources=20, strategy=strategy, max_depth=depth)
    check(plan, plan_bfs(graph, max_depth=depth), np.arange(20))
    assert plan.run([5]).limits == [depth]


@pytest.mark.parametrize("result", ["targets", "predecessors"])
@pytest.mark.parametrize("strategy", ["bit_parallel", "source_per_block"])
@pytest.mark.usefixtures("mode")
def test_targets_stop_the_searches_and_keep_their_distances(strategy, result):
    graph = build(GRAPHS["lattice"], directed=False)
    on_gpu, targets, sources = graph.to("cuda"), [7, 3, 30], np.arange(12)
    everything = np.array([plan_bfs(graph).run(int(source)).distance for source in sources])
    group = plan_hops(on_gpu, n_sources=12, strategy=strategy, targets=targets, result=result).run(
        sources
    )
    if result == "targets":
        assert host(group.distance).tolist() == everything[:, sorted(targets)].tolist()
    else:
        assert max(group.limits) < everything.max()
        for traversal in group:
            certify(on_gpu, traversal).require()


@pytest.mark.parametrize("strategy", ["bit_parallel", "source_per_block"])
@pytest.mark.usefixtures("one_order")
def test_targets_out_of_reach_are_found_to_be_so(strategy):
    graph = build(GRAPHS["two components and more"], directed=True)
    plan = plan_hops(
        graph.to("cuda"), n_sources=2, strategy=strategy, targets=[52, 3], result="targets"
    )
    assert host(plan.run(graph.to_numbers([50, 2])).distance).tolist() == [[-1, 2], [1, -1]]


@pytest.mark.parametrize("strategy", ["bit_parallel", "source_per_block"])
@pytest.mark.usefixtures("one_order")
def test_hops_of_any_graph(strategy):
    @settings(max_examples=tiers.examples(15))
    @given(edge_rows(), st.booleans())
    def check_one(rows, directed):
        graph = build(rows, directed=directed)
        plan = plan_hops(graph.to("cuda"), n_sources=32, strategy=strategy, result="predecessors")
        check(plan, plan_bfs(graph), np.arange(graph.n_vertices))

    check_one()


@pytest.mark.parametrize("weights", ["integers", "floats"])
@pytest.mark.parametrize(("name", "directed"), SHAPES)
@pytest.mark.parametrize("strategy", ["source_per_block", "source_per_lane"])
@pytest.mark.usefixtures("mode")
def test_distances_of_each_alone_are_found(strategy, name, directed, weights):
    changes = {"warm_up": 1} if weights == "floats" else {}
    if changes and strategy == "source_per_block":
        changes["queue_capacity"] = 3
    rows = GRAPHS[name]
    graph = build(rows, weights_for(rows, 3, weights), directed=directed)
    plan = plan_distances(graph.to("cuda"), strategy, n_sources=7, changes=changes)
    check(plan, plan_sssp(graph), sources_of(graph, 7))


@pytest.mark.parametrize("strategy", ["source_per_block", "source_per_lane"])
@pytest.mark.usefixtures("one_order")
def test_distances_and_predecessors_for_awkward_weights(strategy):
    @settings(max_examples=tiers.examples(12))
    @given(weighted_rows(awkward_floats), st.booleans(), st.sampled_from(["float32", "float64"]))
    def check_one(drawn, directed, kind):
        rows, weights = drawn
        graph = build(rows, weights, directed, weight_type=kind)
        single, sources = plan_sssp(graph), np.arange(min(graph.n_vertices, 6))
        plan = plan_distances(
            graph.to("cuda"), n_sources=6, strategy=strategy, result="predecessors"
        )
        try:
            for source in sources:
                single.run(int(source))
        except PrecisionError:
            with pytest.raises(PrecisionError):
                list(plan.iter_groups(sources))
            return
        check(plan, single, sources)

    check_one()


@pytest.mark.parametrize("cutoff", [0, 17, 1e9])
@pytest.mark.parametrize("strategy", ["source_per_block", "source_per_lane"])
@pytest.mark.usefixtures("one_order")
def test_a_cutoff_is_inclusive(strategy, cutoff):
    rows = GRAPHS["lattice"]
    graph = build(rows, weights_for(rows, 5), directed=False)
    plan = plan_distances(graph.to("cuda"), n_sources=9, strategy=strategy, cutoff=cutoff)
    check(plan, plan_sssp(graph, cutoff=cutoff), np.arange(9))


@pytest.mark.parametrize("result", ["targets", "predecessors"])
@pytest.mark.parametrize("strategy", ["source_per_block", "source_per_lane"])
@pytest.mark.usefixtures("mode")
def test_targets_of_weighted_searches_keep_their_distances(strategy, result):
    rows = GRAPHS["lattice"]
    graph = build(rows, weights_for(rows, 5), directed=False)
    on_gpu, sources = graph.to("cuda"), np.arange(5)
    everything = np.array([plan_sssp(graph).run(int(source)).distance for source in sources])
    group = plan_distances(
        on_gpu, n_sources=5, strategy=strategy, targets=[18, 3], result=result
    ).run(sources)
    if result == "targets":
        assert host(group.distance).tolist() == everything[:, [3, 18]].tolist()
    else:
        assert max(group.limits) < everything.max()
        for traversal in group:
            certify(on_gpu, traversal).require()


@pytest.mark.parametrize("targets", [None, [2]])
@pytest.mark.parametrize("strategy", ["source_per_block", "source_per_lane"])
@pytest.mark.usefixtures("one_order")
def test_overflowing_distances_are_an_error(strategy, targets):
    graph = build([(0, 1), (1, 2)], [3e38, 3e38], weight_type="float32").to("cuda")
    plan = plan_distances(graph, n_sources=2, strategy=strategy, targets=targets, result="matrix")
    with pytest.raises(PrecisionError, match="float64"):
        plan.run([0, 1])


@pytest.mark.parametrize("result", ["distances", "predecessors", "targets", "levels"])
@pytest.mark.parametrize("strategy", ["bit_parallel", "source_per_block", "blocks", "rows"])
@pytest.mark.skipif(HAS_GPU, reason="what the stand-in allocates can be counted")
@pytest.mark.usefixtures("one_order")
def test_plan_nbytes_cover_what_it_allocates(monkeypatch, strategy, result):
    if strategy in ("blocks", "rows") and result == "levels":
        pytest.skip("hops alone have levels")
    rows = GRAPHS["power law"]
    graph = build(rows, weights_for(rows, 3), directed=True).to("cuda")
    assert graph.reverse.n_edges == graph.n_edges
    taken = count_allocations(
        monkeypatch, bit_parallel_gpu, bfs_blocks, sssp_blocks, source_per_lane
    )
    weighted = {"blocks": "source_per_block", "rows": "source_per_lane"}
    planner, name = (
        (plan_distances, weighted[strategy]) if strategy in weighted else (plan_hops, strategy)
    )
    plan = planner(
        graph,
        n_sources=50,
        strategy=name,
        result=result,
        targets=[1, 3] if result == "targets" else None,
    )
    plan.run(np.arange(plan.group) % graph.n_vertices)
    assert 0 < sum(taken) <= plan.nbytes


@pytest.mark.usefixtures("one_order")
def test_groups_shrink_until_they_fit():
    graph = build(GRAPHS["lattice"], directed=False)
    roomy = plan_hops(graph.to("cuda"), n_sources=64, strategy="bit_parallel")
    tight = plan_hops(
        graph.to("cuda"), n_sources=64, strategy="bit_parallel", memory=roomy.nbytes - 1
    )
    assert (tight.group, roomy.group) == (32, 64)
    assert tight.nbytes < roomy.nbytes
    check(tight, plan_bfs(graph), np.arange(64))
    with pytest.raises(InputError, match="are free"):
        plan_hops(graph.to("cuda"), n_sources=512, strategy="bit_parallel", memory=1000)


@pytest.mark.usefixtures("one_order")
def test_source_per_block_refuses_negative_weights():
    graph = build([(0, 1), (1, 2)], [5, -3])
    with pytest.raises(StrategyError, match="cannot take negative weights"):
        plan_distances(graph.to("cuda"), n_sources=2, strategy="source_per_block")
