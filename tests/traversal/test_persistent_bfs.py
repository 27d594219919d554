"""The BFS of one launch: each of its paths, forced on graphs that are small enough for the host harness."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kepler_traverse import plan_bfs
from kepler_traverse.bfs import persistent
from kepler_traverse.bfs.tuning import Tuning
from kepler_traverse.certificate import certify
from kepler_traverse.errors import StrategyError
from kepler_traverse.search.query import Query
from tests.conftest import HAS_GPU
from tests.kernels.simt import device, harness
from tests.support import oracle, tiers
from tests.support.devices import MODES, distances, host, in_each, on_a_device
from tests.support.graphs import build, lattice, path, rmat, star

pytestmark = on_a_device

mode = in_each(MODES, autouse=True)
# What makes it go on otherwise than in one cluster, as it does on any graph of a test. QUEUE_CAPACITY and BATCH_EDGES are
# the cluster's, all others the grid's; CHUNK is both's. No graph decides about a constant, so each way is compiled once.
LEAVES = {"QUEUE_CAPACITY": 1, "BATCH_EDGES": 1}  # the cluster at once
FORCED = {
    "one block": {"CLUSTER": 1},
    "shared rows": {"ALPHA": 1, "UNEVEN": 0, "CHUNK": 64, "CHUNK_WARPS": 1, "UNROLL": 4} | LEAVES,
    "cluster and push": {"QUEUE_CAPACITY": 5, "BATCH_EDGES": 30, "ALPHA": 1, "CHUNK": 40},
    "pull and push": {"ALPHA": 14, "BETA": 8, "CHUNK": 64, "PATIENCE": 0, "UNEVEN": 0} | LEAVES,
    "all of them": {
        "QUEUE_CAPACITY": 3,
        "BATCH_EDGES": 60,
        "ALPHA": 4,
        "BETA": 4,
        "CHUNK": 50,
        "CLUSTER": 4,
    }
    | {"CLEANS_UP": 0, "MIN_BLOCKS": 1, "UNEVEN": 0},
}
GRAPHS = {
    "power law": rmat(8, 12, seed=3),
    "star of 1025 behind a path": [(v + 1030, v + 1031) for v in range(4)]
    + [(1034, 0), *star(1025)],
    "lattice": lattice(14, 33),
    "complete": [(u, v) for u in range(70) for v in range(70)],
    "two components": [*path(20), (50, 51), (51, 52)],
}


in_one_order = pytest.mark.parametrize("mode", list(MODES)[:1], indirect=True)


def run(rows, directed, source=None, with_reverse=False, **options):
    graph = build(rows, directed=directed).to("cuda")
    if with_reverse:
        graph = graph.derived.with_reverse()
        assert graph.reverse.n_edges == graph.n_edges
    source = rows[0][0] if source is None else source
    plan = plan_bfs(graph, strategy="persistent", **options)
    result = plan(source)
    if result.predecessor is not None:
        certify(graph, result).require()
        again = plan_bfs(graph, strategy="queue_warp", max_depth=options.get("max_depth"))(source)
        if not options.get("targets"):
            assert host(result.predecessor).tolist() == host(again.predecessor).tolist()
    limit = np.inf if result.limit is None else result.limit
    expected = oracle.bfs(oracle.edges_of(rows, directed), source)
    found = distances(result, graph)
    assert found == {v: d for v, d in expected.items() if d <= limit}
    return result


def force(monkeypatch, tuning=None, **changes):
    """Plans take these numbers and constants, whatever the graph."""
    entries_for = persistent.entries_for

    def forced_entries(graph, query):
        found = []
        for entry in entries_for(graph, query if tuning is None else replace(query, tuning=tuning)):
            own = {
                constant: changes[constant]
                for constant, _ in entry.constants
                if constant in changes
            }
            found.append(entry.variant(**own))
        return tuple(found)

    monkeypatch.setattr(persistent, "entries_for", forced_entries)


def force_way(monkeypatch, way):
    changes = {"CHUNK": 512, "CHUNK_WARPS": 0} | FORCED[way]
    tuning = Tuning(
        cluster=changes.pop("CLUSTER", Tuning.cluster), long_row=changes.pop("UNEVEN", 1 << 30)
    )
    force(monkeypatch, tuning, **changes)


@pytest.fixture(params=FORCED)
def forced(request, monkeypatch):
    force_way(monkeypatch, request.param)


def in_two_ways(test):
    """Let a test have the fixture ``forced``, without ``--all`` in two ways."""
    return pytest.mark.parametrize("forced", tiers.few(reversed(FORCED), 2), indirect=True)(
        pytest.mark.usefixtures("forced")(test)
    )


@pytest.mark.parametrize(
    ("forced", "name", "directed"),
    tiers.pairs(list(FORCED), list(GRAPHS), [True, False]),
    indirect=["forced"],
)
@pytest.mark.usefixtures("forced")
def test_every_way_to_go_on_gives_the_right_hops(name, directed):
    run(GRAPHS[name], directed)


@in_two_ways
@pytest.mark.parametrize("name", ["power law", "star of 1025 behind a path"])
def test_a_directed_graph_with_its_reverse_at_hand_is_pulled(name):
    run(GRAPHS[name], True, with_reverse=True)
    run(GRAPHS[name], True, with_reverse=True, predecessors=False)


@in_two_ways
@pytest.mark.parametrize("depth", [0, 1, 3, 1000])
def test_search_stops_at_the_maximum_depth(depth):
    result = run(GRAPHS["lattice"], False, source=0, max_depth=depth)
    assert result.rounds == min(depth, 46)


@in_two_ways
@pytest.mark.parametrize("wanted", [[0], [35], [35, 70], [461, 1]])
def test_search_stops_once_its_targets_are_reached(wanted):
    hops = {v: v // 33 + v % 33 for v in wanted}
    result = run(GRAPHS["lattice"], False, source=0, targets=wanted)
    assert max(hops.values()) == result.rounds
    assert {v: int(result.distance[v]) for v in wanted} == hops


@in_two_ways
def test_a_plan_is_run_again_and_again():
    graph = build(GRAPHS["power law"], directed=False).to("cuda")
    plans = [
        plan_bfs(graph, strategy="persistent", predecessors=predecessors)
        for predecessors in (False, True)
    ]
    for source, plan in ((s, plan) for s in (0, 1, 0, 3) for plan in plans):
        expected = oracle.bfs(oracle.edges_of(GRAPHS["power law"], False), source)
        if plan.query.predecessors:
            certify(graph, plan(source)).require()
        found = {
            v: d
            for v, d in zip(
                host(graph.ids).tolist(), host(plan(source).distance).tolist(), strict=True
            )
            if d >= 0
        }
        assert found == expected


def test_wide_vertex_numbers_are_refused():
    graph = build(path(3)).to("cuda")
    wide = type(graph)(
        offsets=graph.offsets, targets=graph.targets.astype(np.int64), weights=None, ids=graph.ids
    )
    with pytest.raises(
        StrategyError, match="'persistent' cannot take 2\\^31 vertices or more; these can: "
    ):
        plan_bfs(wide, strategy="persistent")
    assert plan_bfs(wide).strategy.name == "queue_warp"


@pytest.mark.skipif(HAS_GPU, reason="the order of threads is the GPU's affair")
@in_one_order
def test_warps_that_lag_see_the_flag_of_the_step_before(monkeypatch):
    force(monkeypatch, Tuning(cluster=4), QUEUE_CAPACITY=2, BATCH_EDGES=6)
    plan = plan_bfs(build(lattice(6, 9), directed=False).to("cuda"), strategy="persistent")
    for seed in range(40):
        with harness.settings(stress=True, seed=seed, block=64):
            result = plan(0)
        assert int(result.distance.max()) == 5 + 8, seed


@pytest.mark.skipif(HAS_GPU, reason="looks into the memory that the plan takes on the harness")
@pytest.mark.parametrize(("way", "is_pulled"), [("pull and push", True), ("shared rows", False)])
@in_one_order
def test_a_frontier_of_many_edges_is_pulled(monkeypatch, way, is_pulled):
    taken = []
    empty = device.cp.empty
    force_way(monkeypatch, way)
    graph = build(GRAPHS["complete"], directed=False).to("cuda")
    monkeypatch.setattr(
        device._Cupy, "empty", lambda _, *args: taken.append(empty(*args)) or taken[-1]
    )
    plan = plan_bfs(graph, strategy="persistent")
    (bitmaps,) = [array for array in taken if array.dtype == np.uint32]
    before = bitmaps.copy()
    plan(0)
    assert bool((bitmaps != before).any()) is is_pulled


def test_a_trace_tells_when_each_level_began(monkeypatch):
    force(monkeypatch, QUEUE_CAPACITY=3, BATCH_EDGES=60)
    query = Query(tuning=Tuning(trace=100))
    traverse = persistent.plan(build(GRAPHS["lattice"], directed=False).to("cuda"), query)
    for source in (0, 3):
        outcome, iterations = traverse(source), traverse.iterations()
        assert {iteration.what for iteration in iterations} >= {"cluster level", "last pass", "end"}
        began = [iteration.nanoseconds for iteration in iterations]
        assert began[0] == 0
        assert began == sorted(began)
        assert 0 < began[-1] < 1e12
        assert [iteration.what for iteration in iterations].count("end") == 1
        walked = [iteration for iteration in iterations if iteration.what in ("push", "pull")]
        assert [iteration.level for iteration in walked] == sorted(
            {iteration.level for iteration in walked}
        )
        for iteration in walked:
            assert iteration.vertices == int((outcome.distance == iteration.level).sum())


def test_trace_is_empty_without_capacity():
    traverse = persistent.plan(build(path(3)).to("cuda"), Query())
    traverse(0)
    assert traverse.iterations() == []
