"""The papers' systems with queues: every knob against the oracle, and split adjacency lists; on a GPU or host harness."""

from __future__ import annotations

import copy
import itertools
import zlib
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kepler_traverse import plan_bfs
from kepler_traverse.bfs.host_loop import levels
from kepler_traverse.cuda.kernel_spec import WARP
from kepler_traverse.errors import InputError, StrategyError
from kepler_traverse.published.bfs import expand_contract, hierarchical_queues, hybrid_and_spmv
from kepler_traverse.published.bfs.params import (
    GATHERINGS,
    BlockQueueKnobs,
    GatherKnobs,
    WarpQueueKnobs,
)
from kepler_traverse.published.bfs.row_splitting import split
from kepler_traverse.search.query import Query
from tests.conftest import HAS_GPU
from tests.kernels.simt import harness
from tests.support.devices import host, on_a_device, require_hops, running
from tests.support.graphs import build, edge_rows, lattice, path, rmat, star

EXPAND_CONTRACT, CONTRACT_EXPAND, TWO_PHASE, SWITCH = GATHERING = (
    "gather_expand_contract",
    "gather_contract_expand",
    "gather_two_phase",
    "gather_switch",
)


in_another_order = pytest.mark.skipif(
    HAS_GPU or harness.SANITIZED, reason="duplicates need the harness with its threads at random"
)


def complete_layers(*sizes):
    """Vertex 0 and layers of such sizes, each with all edges to the next."""
    starts = [0, *itertools.accumulate(sizes)]
    spans = [range(first, end) for first, end in itertools.pairwise(starts)]
    return [(u, v) for these, those in itertools.pairwise(spans) for u in these for v in those]


WIDE = complete_layers(1, 30, 30, 30, 2)
# Levels of 20 vertices; neighboring lanes of a warp come to the same vertices of the second, each of which has 19 edges or
# more. The last of them has the last number, which is easily missed, and alone leads to vertex 40.
CROWDED = [
    *((0, 1 + v) for v in range(20)),
    *((1 + v, 42 + (v + by) % 20) for v in range(20) for by in range(3)),
    *((42 + v, 21 + w) for v in range(20) for w in range(19)),
    (61, 40),
    *((21 + v, 41) for v in range(20)),
]
GRAPHS = {
    "power law": rmat(7, 10, seed=3),
    "star of 300 behind a path": [(v + 310, v + 311) for v in range(4)] + [(314, 0), *star(300)],
    "lattice": lattice(9, 20),
    "complete layers": WIDE,
}


@pytest.fixture(autouse=True)
def _order_of_the_test(request):
    """A GPU; or the harness with threads at random, two warps per block, in an order that the test's name decides."""
    seed = zlib.crc32(request.node.name.encode())
    settings = {"stress": not harness.SANITIZED, "seed": seed, "block": 64, "resident": 3}
    with running(None if HAS_GPU else settings):
        yield


@pytest.fixture(autouse=True)
def _three_multiprocessors(monkeypatch):
    """On the harness, whose device has one, so that blocks wait for each other."""
    if not HAS_GPU:
        monkeypatch.setattr(
            hierarchical_queues,
            "resident_threads",
            lambda: 3 * hierarchical_queues.threads_per_multiprocessor(),
        )


def check(result, graph, rows, source, directed=True):
    """Certified, equal to the oracle up to where the search went, and to the CPU bit for bit."""
    require_hops(result, graph, rows, source, directed)
    on_cpu = plan_bfs(graph.to("cpu"), max_depth=result.limit)(source)
    assert np.array_equal(host(result.predecessor), on_cpu.predecessor)


def run(strategy, rows, knobs=None, source=None, directed=True, **options):
    graph = build(rows, directed=directed).to("cuda")
    source = rows[0][0] if source is None else source
    result = plan_bfs(graph, strategy=strategy, knobs=knobs, **options)(source)
    check(result, graph, rows, source, directed)
    without = plan_bfs(graph, strategy=strategy, knobs=knobs, predecessors=False, **options)(source)
    assert np.array_equal(host(without.distance), host(result.distance))
    return result


# --- split adjacency lists ---------------------------------------------------------------------------------------------


@given(edge_rows(max_vertices=12, max_rows=90), st.booleans(), st.integers(1, 12))
def test_split_makes_short_chunks_that_join_again(rows, directed, most):
    graph = build(rows, directed=directed)
    chunks = split(graph, most)
    lengths = np.diff(chunks.offsets)
    assert lengths.max(initial=0) <= most
    assert chunks.offsets[chunks.first].tolist() == graph.offsets.tolist()
    n = graph.n_vertices
    assert np.array_equal(
        np.bincount(chunks.owner, minlength=n), np.maximum(-(-graph.derived.degrees // most), 1)
    )
    assert np.array_equal(np.bincount(chunks.owner, lengths, minlength=n), graph.derived.degrees)
    assert all((chunks.owner[chunks.first[v] : chunks.first[v + 1]] == v).all() for v in range(n))


def test_a_graph_without_edges_has_a_piece_a_vertex():
    chunks = split(build([(0, 0), (1, 1)]), 4)
    assert chunks.owner.tolist() == [0, 1]
    assert chunks.offsets.tolist() == [0, 0, 0]


def test_chunks_are_refused_if_they_are_more_than_numbers():
    graph = build(star(100))
    narrow = copy.copy(graph)  # a Graph refuses such targets
    vars(narrow)["targets"] = graph.targets.astype(np.int8)
    assert split(narrow, 4).owner.size == 125
    with pytest.raises(
        StrategyError, match="chunks of 2 edges make 150 chunks, more than type int8 can number"
    ):
        split(narrow, 2)


# --- queues of blocks and warps ----------------------------------------------------------------------------------------


@on_a_device
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize(
    "knobs", [{"queues": "warp"}, {"room": 1}, {"queues": "warp", "room": 40}], ids=str
)
def test_vertices_reach_the_queue_of_the_grid_by_those_of_blocks(knobs, graph):
    run("queue_of_blocks", GRAPHS[graph], knobs)


ALONE, GRID = {"alone_up_to": 512, "grid_up_to": 0}, {"alone_up_to": 0, "grid_up_to": 10**6}
WARP_QUEUES = {
    "one launch a level": {"alone_up_to": 0, "grid_up_to": 0, "split_above": 0},
    "alone": {**ALONE, "split_above": 0},
    "alone with little room": {**ALONE, "room": 1, "split_above": 3},
    "alone while there are few": {"alone_up_to": 5, "grid_up_to": 0},
    "a grid": {**GRID, "split_above": 0},
    "a grid with little room": {**GRID, "room": 1, "split_above": 1},
    "all three": {"alone_up_to": 3, "grid_up_to": 25, "split_above": 5},
    "the rule": None,
}


@on_a_device
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("knobs", WARP_QUEUES)
def test_a_frontier_stays_in_a_block_in_a_grid_or_in_neither(knobs, graph):
    run("queue_of_warps", GRAPHS[graph], WARP_QUEUES[knobs])


@on_a_device
@pytest.mark.parametrize("knobs", ["alone", "a grid", "all three"])
@pytest.mark.parametrize("depth", [0, 1, 2, 7, 1000])
def test_a_launch_of_many_levels_stops_at_the_depth_asked_for(knobs, depth):
    result = run("queue_of_warps", lattice(5, 6), WARP_QUEUES[knobs], max_depth=depth)
    # the farthest corner is 9 hops away, and one level finds nothing
    assert result.rounds == min(depth, 10)


@on_a_device
@pytest.mark.parametrize("knobs", ["alone", "a grid"])
def test_a_launch_of_many_levels_stops_once_targets_are_reached(knobs):
    result = run("queue_of_warps", path(40), WARP_QUEUES[knobs], targets=[7, 25])
    assert result.rounds == result.limit == 25


@on_a_device
def test_the_host_is_asked_seldom_where_one_launch_takes_many_levels(monkeypatch):
    launched = []
    launch_blocks = hierarchical_queues.PackedLaunches.launch_blocks
    monkeypatch.setattr(
        hierarchical_queues.PackedLaunches,
        "launch_blocks",
        lambda launches, *rest, **more: (
            launched.append(launches),
            launch_blocks(launches, *rest, **more),
        ),
    )
    for knobs in ("alone", "a grid"):
        launched.clear()
        result = run("queue_of_warps", path(40), WARP_QUEUES[knobs])
        assert result.rounds == 41
        assert len(launched) == 2, "one launch for each of two searches"


@pytest.mark.parametrize(
    ("mean", "largest", "expected"),
    [
        (6.0, 7, WarpQueueKnobs(grid_up_to=9000, split_above=0)),
        (7.0, 1000, WarpQueueKnobs(grid_up_to=9000, split_above=14)),
        (0.1, 17, WarpQueueKnobs(grid_up_to=9000, split_above=8)),
    ],
)
def test_rows_are_cut_where_they_are_uneven(mean, largest, expected):
    assert hierarchical_queues.rule(mean, largest, 9000) == expected


@on_a_device
@pytest.mark.parametrize("n", [1, 1023, 1024, 1025, 2049])
def test_a_prefix_sum_lists_levels_across_tiles(n):
    rows = [(v, 5000) for v in range(n)] + [(6000, v) for v in range(n)]
    result = run("queue_by_prefix_sum", rows, source=6000)
    assert int((result.distance == 1).sum()) == n


# --- gathering ---------------------------------------------------------------------------------------------------------


ORDERS = range(20)  # seeds: most have no duplicate
NO_CULLING = {"bits": False, "warp_culling": False, "history_culling": False}
CULLING = {
    "none": NO_CULLING,
    "bits": {**NO_CULLING, "bits": True},
    "history": {**NO_CULLING, "history_culling": True},
    "warp": {**NO_CULLING, "warp_culling": True},
}


@on_a_device
@pytest.mark.parametrize("gathering", GATHERINGS)
@pytest.mark.parametrize("strategy", GATHERING[:3])
def test_rows_are_gathered_by_lanes_warps_and_blocks(strategy, gathering, monkeypatch):
    if not HAS_GPU:  # blocks are of 64 threads there
        monkeypatch.setitem(expand_contract._GATHERED_FROM, "scan_warp_block", (64, WARP))
    for graph in ("power law", "star of 300 behind a path"):
        run(strategy, GRAPHS[graph], {"gathering": gathering})


@on_a_device
@pytest.mark.parametrize("culling", CULLING)
@pytest.mark.parametrize("strategy", GATHERING[:3])
def test_duplicates_cost_time_and_change_nothing(strategy, culling):
    for graph in (CROWDED, GRAPHS["power law"]):
        knobs = GatherKnobs(**CULLING[culling], counters=True)
        counters = run(strategy, graph, knobs).counters
        assert counters["queued"] >= 1
        for counted, means in (
            ("by_bits", "bits"),
            ("by_history", "history_culling"),
            ("by_warp", "warp_culling"),
        ):
            if not getattr(knobs, means):
                assert counters[counted] == 0


@on_a_device
@in_another_order
def test_each_way_to_cull_finds_what_would_be_queued_twice():
    graph = build(CROWDED).to("cuda")

    def counters(culling):
        """Of some searches together, each in another order."""
        plan = plan_bfs(
            graph,
            strategy=EXPAND_CONTRACT,
            knobs=GatherKnobs(**CULLING[culling], counters=True),
            predecessors=False,
        )
        total = Counter()
        for seed in ORDERS:
            with harness.settings(seed=seed):
                total.update(plan(0).counters)
        return total

    kept = counters("none")
    assert kept["queued"] > 61 * len(ORDERS), "there are duplicates"
    assert kept["inspected"] > len(CROWDED) * len(ORDERS), "whose edges are looked at again"
    assert counters("history")["by_history"] > 0
    assert counters("warp")["by_warp"] > 0
    assert counters("bits")["by_bits"] > 0


@on_a_device
def test_the_hybrid_takes_two_kernels_for_large_frontiers_alone(monkeypatch):
    taken = []
    for name in ("two_phase", "contract_expand"):
        step = getattr(expand_contract, name)
        monkeypatch.setattr(
            expand_contract,
            name,
            lambda run, level, step=step, name=name: (taken.append(name), step(run, level))[1],
        )
    plan = levels(
        expand_contract.EdgeRun,
        expand_contract.switch(
            expand_contract.two_phase, expand_contract.contract_expand, expand_contract.is_small
        ),
    )
    monkeypatch.setattr(expand_contract, "resident_threads", lambda: 100)
    graph = build(WIDE).to("cuda")
    plan(graph, Query())(0)
    # From 0; 30 edges; 900 edges, twice; 60 edges, or more where threads come upon a vertex at the same time.
    assert taken[:3] == ["contract_expand", "two_phase", "two_phase"]
    assert taken[3:] == ["contract_expand"] or HAS_GPU
    run(SWITCH, GRAPHS["power law"])


@on_a_device
@in_another_order
@pytest.mark.parametrize(
    ("kind", "step"),
    [
        (expand_contract.VertexRun, expand_contract.expand_contract),
        (expand_contract.EdgeRun, expand_contract.contract_expand),
        (expand_contract.EdgeRun, expand_contract.two_phase),
    ],
    ids=GATHERING[:3],
)
def test_a_level_that_overflows_its_queue_is_listed_again(kind, step):
    graph = build(CROWDED).to("cuda")
    query = Query(knobs=GatherKnobs(**NO_CULLING, counters=True))
    found = kind(graph, query)
    # As much room as the widest level has vertices, or edges.
    found.frontier.capacity = 20 if kind is expand_contract.VertexRun else 400
    if step is expand_contract.two_phase:
        found.vertices = found.vertices[:20]
    on_cpu = plan_bfs(graph.to("cpu"))(0)
    overflows = 0
    for seed in ORDERS:
        with harness.settings(seed=seed):
            outcome = levels(lambda _graph, _query: found, step)(graph, query)(0)
        overflows += outcome.counters["overflows"]
        assert np.array_equal(host(outcome.distance), on_cpu.distance)
        assert np.array_equal(host(outcome.predecessor), on_cpu.predecessor)
    assert overflows > 0


# --- layers and products -----------------------------------------------------------------------------------------------


@on_a_device
@pytest.mark.parametrize("strategy", ["scan_switch", "queue_switch"])
@pytest.mark.parametrize("graph", ["power law", "lattice"])
def test_bottom_up_takes_a_level_of_a_32nd_of_the_vertices(strategy, graph, monkeypatch):
    sizes = {True: [], False: []}
    is_dense = hybrid_and_spmv.is_dense
    seen = lambda run: (dense := is_dense(run), sizes[dense].append(run.frontier_size))[0]  # noqa: E731
    monkeypatch.setattr(hybrid_and_spmv, "is_dense", seen)
    rows = GRAPHS[graph]
    n = build(rows).n_vertices
    run_, push, pull = {
        "scan_switch": (
            hybrid_and_spmv.LayerRun,
            hybrid_and_spmv.push_layer,
            hybrid_and_spmv.pull_layer,
        ),
        "queue_switch": (
            hybrid_and_spmv.QueueRun,
            hybrid_and_spmv.gpu_steps.push("thread"),
            hybrid_and_spmv.pull_queue,
        ),
    }[strategy]
    outcome = levels(run_, hybrid_and_spmv.switch(push, pull, hybrid_and_spmv.is_dense))(
        build(rows).to("cuda"), Query()
    )(0)
    assert min(sizes[True]) * 32 >= n > max(sizes[False]) * 32
    assert np.array_equal(host(outcome.distance), plan_bfs(build(rows)).run(0).distance)
    run(strategy, rows, directed=False)


@on_a_device
@pytest.mark.parametrize(("degree", "width"), [(1, 1), (2, 2), (3, 4), (39, 32)])
def test_a_row_of_the_matrix_has_lanes_for_its_mean_length(degree, width):
    rows = [(v, (v + by) % 50) for v in range(50) for by in range(1, degree + 1)]
    graph = build(rows).to("cuda")
    assert hybrid_and_spmv.ProductRun(graph, Query()).width == width
    run("sparse_product", rows)


# --- what knobs refuse -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        (BlockQueueKnobs, "queues", "grid"),
        (BlockQueueKnobs, "room", 0),
        (BlockQueueKnobs, "room", 8193),
        (WarpQueueKnobs, "alone_up_to", 513),
        (WarpQueueKnobs, "alone_up_to", True),
        (WarpQueueKnobs, "grid_up_to", -1),
        (WarpQueueKnobs, "room", 2.5),
        (WarpQueueKnobs, "split_above", -1),
        (GatherKnobs, "gathering", "block"),
        (GatherKnobs, "bits", 1),
        (GatherKnobs, "warp_culling", "no"),
    ],
)
def test_a_knob_out_of_range_is_an_error_that_names_it(kind, name, value):
    with pytest.raises(InputError, match=f"knob {name} of .* must be .*, not {value!r}"):
        kind(**{name: value})
