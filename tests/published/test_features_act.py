"""Each published feature acts: launches, lanes, addresses, atomics and counters show it, where results are the same without.

The host harness records them. `scripts.papers.mutants` switches the features off one by one, and a test here must fail.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from kepler_traverse import plan_bfs, plan_sssp
from kepler_traverse.published.bfs import bfs_4k
from kepler_traverse.published.bfs.params import Bfs4kKnobs
from kepler_traverse.published.sssp import h_bf
from kepler_traverse.published.sssp.params import HBfKnobs
from scripts.papers.graphs import with_self_loops
from tests.conftest import HAS_GPU
from tests.kernels.simt import device, harness
from tests.support.graphs import build, path, star

pytestmark = pytest.mark.skipif(
    HAS_GPU or harness.COMPILER is None, reason="the host harness records what threads do"
)

SHUFFLE, UP, BALLOT = (harness.COLLECTIVE | number for number in (0, 1, 4))
ATOMIC_WRITE = harness.WRITE | harness.ATOMIC
BLOCK = 64  # threads, of every kernel here

OFF = Bfs4kKnobs(
    k1=1, dynamic_width=False, k2=0.0, heavy="none", k4=0, extended=False, k5=0, shared_reads=False, k7=17, append="warp",
    duplicates="keep",
)  # fmt: skip
H_BF_OFF = HBfKnobs(
    edge_classes=False, duplicates="keep", stream_frontier=False, read_only_edges=False, bypass_l1=False, enqueue="atomic",
    vertices_per_warp=1, min_width=1, max_width=1, heavy="none",
)  # fmt: skip


@dataclass
class Seen:
    """A search: its graph on the device, its launches, and the state that it left, if its strategy is a loop of steps."""

    graph: Any
    launches: list
    run: Any
    result: Any

    def of(self, kernel: str) -> list:
        """Return the launches of kernels whose name ends so."""
        return [launch for launch in self.launches if launch.kernel.endswith(kernel)]


@contextmanager
def on_the_harness(**settings):
    with device.present(), harness.settings(**({"block": BLOCK, "resident": 1} | settings)):
        yield


def search(
    rows, strategy, knobs=None, *, weights=None, graph=None, events=True, directed=True, block=BLOCK
):
    """Search from vertex 0 and record it."""
    with on_the_harness(block=block):
        graph = build(rows, weights, directed=directed).to("cuda") if graph is None else graph
        ready = (plan_bfs if weights is None else plan_sssp)(graph, strategy=strategy, knobs=knobs)
        runs: list = []
        loop = ready.strategy.plan
        if hasattr(loop, "step"):
            loop = replace(
                loop,
                step=lambda run, level: (runs.append(run), ready.strategy.plan.step(run, level))[1],
            )
        with harness.recorded(events) as launches:
            result = loop(graph, ready.query)(0)
        return Seen(graph, launches, runs[0] if runs else None, result)


def reads_of_targets(launch, graph):
    """Return which thread reads how many edges of the graph."""
    events = launch.at(graph.targets)
    return Counter(events["thread"][(events["kind"] & harness.WRITE) == 0].tolist())


def kinds(launch) -> Counter:
    return Counter((launch.events["kind"] & ~np.uint32(harness.IN_CHILD)).tolist())


def children(launch) -> list[int]:
    is_child = (launch.events["kind"] & harness.CHILD) > 0
    return launch.events["address"][is_child].tolist()


def fan(width, each):
    """Vertex 0 with ``width`` neighbors, each of which has ``each`` neighbors of its own."""
    rows = [(0, v) for v in range(1, width + 1)]
    return rows + [
        (v, width + 1 + (v - 1) * each + i) for v in range(1, width + 1) for i in range(each)
    ]


# --- BFS-4K ------------------------------------------------------------------------------------------------------------


def test_hash64_removes_the_duplicates_that_it_finds():
    layers = [
        *((0, v) for v in range(1, 41)),
        *((u, v) for u in range(1, 41) for v in range(41, 81)),
    ]

    def counted(duplicates):
        with on_the_harness(stress=True, seed=5, resident=4):
            graph = build(layers).to("cuda")
            knobs = replace(OFF, duplicates=duplicates, counters=True)
            return plan_bfs(graph, strategy="bfs_4k", knobs=knobs)(0).counters

    kept, hashed = counted("keep"), counted("hash64")
    assert hashed["duplicates"] > 0
    assert hashed["queued"] < kept["queued"]


def test_edge_discover_gives_each_lane_an_edge_of_any_vertex():
    rows = fan(4, 8)
    by_vertex = search(rows, "bfs_4k", OFF)
    assert len(reads_of_targets(by_vertex.of("many_blocks")[1], by_vertex.graph)) == 4
    seen = search(rows, "bfs_4k", replace(OFF, k4=1))
    reads = reads_of_targets(seen.of("many_blocks")[1], seen.graph)
    assert len(reads) == 32
    assert set(reads.values()) == {1}


def test_extended_edge_discover_searches_less_for_the_same_edges():
    rows = star(300)
    plain = search(rows, "bfs_4k", replace(OFF, k4=1)).of("many_blocks")[0]
    extended = search(rows, "bfs_4k", replace(OFF, k4=1, extended=True)).of("many_blocks")[0]
    assert kinds(extended)[SHUFFLE] < kinds(plain)[SHUFFLE] / 2


def test_shared_reads_load_the_offsets_of_a_vertex_once_per_warp():
    rows = fan(200, 1)  # more vertices than the harness's device has threads
    knobs = replace(OFF, k1=32)

    def reads(shared_reads):
        seen = search(rows, "bfs_4k", replace(knobs, shared_reads=shared_reads))
        return len(seen.of("many_blocks")[1].at(seen.graph.offsets))

    assert reads(True) == 2 * 200
    assert reads(False) == 32 * reads(True)


def test_children_have_a_block_for_every_k3_edges_of_each_thread():
    for k3, blocks in ((1, 4), (2, 2)):
        seen = search(star(200), "bfs_4k", replace(OFF, k2=1.0, heavy="children", k3=k3, k6=64))
        assert children(seen.of("many_blocks")[0]) == [blocks]


def test_no_more_than_the_share_k2_of_the_vertices_get_children():
    # vertices of 100 and of 70 edges, both for a block of 64
    rows = [*fan(2, 70), *((1, 500 + i) for i in range(30))]
    for k2, launched in ((1.0, 2), (1.5 / 173, 1), (0.0, 0)):
        seen = search(rows, "bfs_4k", replace(OFF, k2=k2, heavy="children", k3=1, k6=64))
        assert sum(len(children(launch)) for launch in seen.of("many_blocks")) == launched


def test_virtual_warps_of_many_blocks_grow_while_the_frontier_is_small():
    seen = search(fan(4, 40), "bfs_4k", replace(OFF, dynamic_width=True, k6=64))
    first, second = seen.of("many_blocks")[:2]
    assert len(reads_of_targets(first, seen.graph)) == 4  # as vertex 0 has edges
    assert len(reads_of_targets(second, seen.graph)) == 4 * 32


@pytest.fixture
def small_block(monkeypatch):
    monkeypatch.setattr(bfs_4k, "SINGLE_BLOCK", bfs_4k.SINGLE_BLOCK.variant(block=BLOCK))


@pytest.mark.usefixtures("small_block")
def test_virtual_warps_of_the_single_block_grow_while_the_frontier_is_small():
    for dynamic_width, n_threads in ((True, 32), (False, 1)):
        seen = search(star(40), "bfs_4k", replace(OFF, k5=1, dynamic_width=dynamic_width))
        assert len(reads_of_targets(seen.of("single_block")[0], seen.graph)) == n_threads


@pytest.mark.usefixtures("small_block")
def test_the_single_block_discovers_edges_below_the_threshold():
    for k4, n_threads in ((1, 32), (64, 4)):
        seen = search(fan(4, 8), "bfs_4k", replace(OFF, k5=1, k4=k4, counters=False))
        (launch,) = seen.of("single_block")
        edges = launch.at(seen.graph.targets)
        of_second_level = edges[edges["address"] >= 4]
        assert len(set(of_second_level["thread"].tolist())) == n_threads


@pytest.mark.usefixtures("small_block")
def test_the_single_block_runs_several_levels_in_one_launch():
    assert len(search(path(30), "bfs_4k", replace(OFF, k5=1), events=False).launches) <= 3
    assert len(search(path(30), "bfs_4k", OFF, events=False).of("many_blocks")) == 31


def stores_by_thread(launch, array) -> dict[int, list[int]]:
    """Return the elements that each thread stores into, in the order of its stores."""
    found: dict[int, list[int]] = {}
    for event in launch.at(array, harness.WRITE):
        found.setdefault(int(event["thread"]), []).append(int(event["address"]))
    return found


def queues(seen) -> list:
    return [seen.run.frontier.queue, seen.run.frontier.next]


def steps_between_stores(seen, launch) -> set[int]:
    """Return the distances between the elements that a thread stores into a queue, one after the other."""
    lists = [
        places for array in queues(seen) for places in stores_by_thread(launch, array).values()
    ]
    return {int(step) for places in lists for step in np.diff(places)}


def test_coalesced_writes_put_the_queues_of_a_warp_side_by_side():
    rows = fan(32, 4)
    for k7, steps in ((0, {32}), (17, {1})):
        seen = search(rows, "bfs_4k", replace(OFF, k7=k7))
        assert steps_between_stores(seen, seen.of("many_blocks")[1]) == steps


def test_lanes_with_one_vertex_at_most_are_counted_by_a_ballot():
    one_each = search(fan(32, 1), "bfs_4k", OFF).of("many_blocks")[1]
    several = search(fan(32, 3), "bfs_4k", OFF).of("many_blocks")[1]
    assert kinds(one_each)[BALLOT] > 0
    assert kinds(one_each)[UP] == 0
    assert kinds(several)[UP] > 0


def reservations(seen, launch) -> int:
    """Return how often a launch reserves places in the next queue."""
    events = launch.at(seen.run.frontier.counters[:1], ATOMIC_WRITE)
    return len(events)


def test_a_thread_a_warp_or_a_block_reserves_places_for_all_it_found():
    rows = fan(64, 2)  # two warps of a block, whose lanes find two vertices each
    for append, expected in (("thread", 64), ("warp", 2), ("block", 1)):
        seen = search(rows, "bfs_4k", replace(OFF, append=append))
        assert reservations(seen, seen.of("many_blocks")[1]) == expected


def test_blocks_have_as_many_threads_as_k6_says():
    for k6 in (64, 128):
        seen = search(path(2), "bfs_4k", replace(OFF, k6=k6), events=False, block=None)
        assert seen.of("many_blocks")[0].block == k6


def test_the_table_of_hash64_fills_the_shared_memory_of_a_block():
    seen = search(path(2), "bfs_4k", replace(OFF, duplicates="hash64", k6=64), events=False)
    # 64 KiB for 128 threads, so 32 KiB for a block, less 2 KiB: 3,840 words, of which a power of two is taken
    assert seen.of("many_blocks")[0].shared == 2048 * 8
    assert search(path(2), "bfs_4k", OFF, events=False).of("many_blocks")[0].shared == 0


def test_a_block_of_its_own_visits_a_vertex_of_high_degree():
    for heavy, n_threads in (("blocks", BLOCK), ("none", 1)):
        seen = search(star(200), "bfs_4k", replace(OFF, k2=1.0, heavy=heavy, k3=1, k6=64))
        assert len(reads_of_targets(seen.of("many_blocks")[0], seen.graph)) == n_threads


# --- H-BF --------------------------------------------------------------------------------------------------------------


def shortest(rows, knobs, **options):
    return search(rows, "h_bf", knobs, weights=[1] * len(rows), **options)


def test_virtual_warps_of_h_bf_grow_while_the_frontier_is_small():
    for widest, n_threads in ((32, 32), (1, 1)):
        seen = shortest(star(40), replace(H_BF_OFF, max_width=widest))
        assert len(reads_of_targets(seen.of("h_bf_relax")[0], seen.graph)) == n_threads


def test_virtual_warps_that_take_many_vertices_are_fewer():
    rows = fan(400, 1)

    def largest_grid(vertices_per_warp):
        seen = shortest(rows, replace(H_BF_OFF, vertices_per_warp=vertices_per_warp), events=False)
        return max(launch.grid for launch in seen.of("h_bf_relax"))

    assert largest_grid(1) == 2  # 400 threads in blocks of 256
    assert largest_grid(32) == 1


def constant_share(launch, array) -> float:
    events = launch.at(array)
    return float(((events["kind"] & harness.CONSTANT) > 0).mean())


def test_the_frontier_and_its_offsets_are_streamed():
    for streamed, share in ((True, 0.0), (False, 1.0)):
        seen = shortest(star(40), replace(H_BF_OFF, stream_frontier=streamed))
        assert constant_share(seen.of("h_bf_relax")[0], seen.graph.offsets) == share


def test_edges_are_read_through_the_read_only_cache():
    for read_only, share in ((True, 1.0), (False, 0.0)):
        seen = shortest(star(40), replace(H_BF_OFF, read_only_edges=read_only))
        launch = seen.of("h_bf_relax")[0]
        assert constant_share(launch, seen.graph.targets) == share
        assert constant_share(launch, seen.graph.weights) == share


def test_distances_bypass_the_l1_cache():
    from tests.kernels.test_compile import PTX_ARCHITECTURE, TYPES, compile_kernels, find_nvrtc

    nvrtc = find_nvrtc()

    def ptx(**hints):
        entry = h_bf.RELAX.variant(**hints)
        return compile_kernels(nvrtc, entry, PTX_ARCHITECTURE, TYPES[0], "PTX").decode()

    # the harness has no cache: only the machine code shows this hint
    cached = "ld.relaxed.cta.global"
    assert cached not in ptx(BYPASS_L1=1)
    assert cached in ptx(BYPASS_L1=0)


@pytest.mark.parametrize("duplicates", ["keep", "atomic64"])
def test_self_loops_are_skipped_if_a_graph_keeps_them(duplicates):
    rows = [*star(30), *((v, 0) for v in range(1, 31))]
    weights = [1 + v % 3 for v in range(len(rows))]
    with on_the_harness():
        graph = with_self_loops(build(rows, weights), np).to("cuda")
        assert graph.n_edges == len(rows) + 31
        knobs = replace(H_BF_OFF, edge_classes=True, duplicates=duplicates, counters=True)
        with_class = plan_sssp(graph, strategy="h_bf", knobs=knobs)(0)
        without = plan_sssp(graph, strategy="h_bf", knobs=replace(knobs, edge_classes=False))(0)
    assert np.array_equal(with_class.distance, without.distance)
    assert with_class.counters["skipped_edges"] == 31  # each vertex relaxes its edges once
    assert without.counters["skipped_edges"] == 0
    assert without.counters["relaxations"] == with_class.counters["relaxations"] + 31


def test_vertices_go_through_shared_memory_into_neighboring_places():
    rows = fan(32, 3)
    for enqueue, steps in (("shared", {32}), ("prefix_sum", {1})):
        seen = shortest(rows, replace(H_BF_OFF, enqueue=enqueue))
        launches = seen.of("h_bf_relax")
        assert relaxed_steps(launches[1]) == steps


def relaxed_steps(launch) -> set[int]:
    """As `steps_between_stores`, for a strategy whose queues the test does not see: stores of vertices outside the graph."""
    events = launch.events
    is_store = (events["kind"] == harness.WRITE) & (events["size"] == 4)
    by_thread: dict[int, list[int]] = {}
    for event in events[is_store]:
        by_thread.setdefault(int(event["thread"]), []).append(int(event["address"]) // 4)
    # A thread's stores into shared memory come first; those into the queue are its last three.
    return {int(step) for places in by_thread.values() for step in np.diff(places[-3:])}


def test_lanes_reserve_places_together_for_a_prefix_sum():
    rows = fan(32, 3)

    def atomics(enqueue):
        launch = shortest(rows, replace(H_BF_OFF, enqueue=enqueue)).of("h_bf_relax")[1]
        return sum(event["size"] == 8 for event in launch.events if event["kind"] == ATOMIC_WRITE)

    assert atomics("prefix_sum") == 1
    assert atomics("atomic") >= 3


def test_children_of_h_bf_have_a_block_for_every_sixteen_edges_of_each_thread():
    seen = shortest(star(2100), replace(H_BF_OFF, heavy="children", heavy_degree=100))
    assert children(seen.of("h_bf_relax")[0]) == [3]  # 2,100 edges, 16 * 64 per block


# --- Luo, Wong, Hwu ----------------------------------------------------------------------------------------------------


def shared_atomics(launch, first_thread, end) -> set[int]:
    """Return the words of shared memory that threads of a range change by atomics of 32 bits."""
    events = launch.events
    chosen = (events["kind"] == ATOMIC_WRITE) & (events["size"] == 4)
    chosen &= (events["thread"] >= first_thread) & (events["thread"] < end)
    return set(events["address"][chosen].tolist())


def test_each_warp_has_a_w_frontier_of_its_own():
    seen = search(
        fan(64, 2), "queue_of_warps", {"alone_up_to": 0, "grid_up_to": 0, "split_above": 0}
    )
    assert int(seen.run.n_queues) == 512 // 32
    launch = seen.of("bfs_block_queues")[1]
    distance = seen.run.distance.ctypes.data
    in_shared = [
        {
            word
            for word in shared_atomics(launch, first, first + 32)
            if not distance <= word < distance + 4 * 10**4
        }
        for first in (0, 32)
    ]
    assert in_shared[0]
    assert in_shared[1]
    assert not in_shared[0] & in_shared[1]


def test_a_block_reserves_places_of_the_g_frontier_once():
    seen = search(
        fan(64, 2), "queue_of_warps", {"alone_up_to": 0, "grid_up_to": 0, "split_above": 0}
    )
    assert reservations(seen, seen.of("bfs_block_queues")[1]) == 1


def test_middle_frontiers_stay_in_one_launch_behind_a_barrier():
    names = Counter(
        launch.kernel
        for launch in search(path(20), "queue_of_warps", {"alone_up_to": 0}, events=False).launches
    )
    assert names["bfs_block_queues_grid"] == 1
    assert names["bfs_block_queues"] == 0


def test_long_adjacency_lists_are_split_into_chunks_for_several_threads():
    knobs = {"alone_up_to": 0, "grid_up_to": 0, "split_above": 7}
    seen = search([(0, 1), *((1, 2 + v) for v in range(100))], "queue_of_warps", knobs)
    assert seen.run.owner is not None
    reads = reads_of_targets(seen.of("bfs_block_queues")[1], seen.graph)
    assert len(reads) == 15
    assert max(reads.values()) == 7
    whole = search(star(100), "queue_of_warps", knobs | {"split_above": 0})
    assert len(reads_of_targets(whole.of("bfs_block_queues")[0], whole.graph)) == 1


# --- Springer ----------------------------------------------------------------------------------------------------------


def test_outliers_are_visited_after_all_other_vertices_of_their_block():
    rows = [(0, 1), (0, 2), (0, 3), *((1, 10 + v) for v in range(40)), (2, 60), (3, 61)]

    def order(defer_from):
        seen = search(rows, "scan_deferred", {"defer_from": defer_from})
        edges = seen.of("deferred")[1].at(seen.graph.targets)["address"].tolist()
        of_hub = [i for i, edge in enumerate(edges) if 3 <= edge < 43]
        others = [i for i, edge in enumerate(edges) if edge >= 43]
        return min(of_hub) > max(others)

    assert order(16)
    assert not order(2**60)


def test_redirection_reads_vertices_from_a_list_in_the_order_of_degrees():
    seen = search(fan(5, 3), "scan_redirected", {})
    launch = seen.of("redirected_thread")[0]
    assert len(launch.at(seen.run.own_arguments["order"])) == seen.graph.n_vertices
    first = np.asarray(seen.run.own_arguments["order"])
    degrees = np.diff(np.asarray(seen.graph.offsets))
    assert (np.diff(degrees[first]) >= 0).all()


@pytest.mark.parametrize("width", [1, 8, 32])
def test_a_virtual_warp_shares_a_list_among_its_lanes(width):
    seen = search(star(64), "scan_virtual_warp", {"width": width})
    assert len(reads_of_targets(seen.of("virtual_warp")[0], seen.graph)) == width


def test_a_thread_per_edge_visits_one_edge():
    seen = search(star(100), "scan_edges", {"block": BLOCK})
    assert set(reads_of_targets(seen.of("scan_edges")[0], seen.graph).values()) == {1}


def test_grids_have_the_shape_that_the_knobs_say():
    for strategy, kernel in (
        ("scan_level", "level_thread"),
        ("scan_flags", "flags_thread"),
        ("scan_relax", "relax_thread"),
    ):
        seen = search(path(5), strategy, {"block": 128, "grid": 3}, events=False, block=None)
        assert {(launch.block, launch.grid) for launch in seen.of(kernel)} == {(128, 3)}


def test_vertices_found_in_a_level_are_listed_by_a_prefix_sum():
    kernels = [
        launch.kernel for launch in search(path(3), "queue_by_prefix_sum", events=False).launches
    ]
    assert kernels[:4] == [
        "bfs_prefix_visit",
        "bfs_prefix_count",
        "bfs_prefix_sum",
        "bfs_prefix_list",
    ]


# --- Sevilmis, Sivri, Aydin --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["scan_switch", "queue_switch"])
def test_the_registered_hybrids_pull_where_the_frontier_is_dense(strategy):
    wide = search(fan(40, 2), strategy, events=False)
    assert wide.of("pull_thread")
    assert len(wide.of("pull_thread")) < len(wide.launches)
    narrow = search(path(200), strategy, events=False)
    assert not narrow.of("pull_thread")


def test_bottom_up_stops_at_the_first_neighbor_in_the_frontier():
    rows = [*((0, v) for v in range(1, 21)), *((u, v) for u in range(1, 21) for v in range(21, 61))]
    seen = search(rows, "scan_switch")
    reads = len(
        seen.of("pull_thread")[-2 if len(seen.of("pull_thread")) > 1 else 0].at(
            seen.graph.reverse.targets
        )
    )
    assert reads <= 40 * 4  # four are loaded at once; each vertex has 20


# --- Merrill, Garland, Grimshaw ----------------------------------------------------------------------------------------


def test_a_whole_block_gathers_a_long_adjacency_list():
    rows = star(300)
    for gathering, n_threads in (("scan_warp_block", BLOCK), ("scan_warp", 32)):
        seen = search(rows, "gather_expand_contract", {"gathering": gathering})
        reads = reads_of_targets(seen.of("gather_expand_contract")[0], seen.graph)
        assert len(reads) == n_threads


def test_a_warp_gathers_a_list_of_middle_length_at_once():
    rows = [
        *((0, v) for v in range(1, 3)),
        *((v, 10 + 40 * v + i) for v in (1, 2) for i in range(40)),
    ]

    def warps(gathering):
        seen = search(rows, "gather_expand_contract", {"gathering": gathering})
        launch = seen.of("gather_expand_contract")[1]
        edges = launch.at(seen.graph.targets)
        first = edges["address"][edges["thread"] == 0].tolist()
        return np.diff(sorted(first)).tolist()

    # By warp: lists start anew at lane 0, so it has the edges 0 and 32 of each. By search: every 32nd of both.
    assert warps("scan_warp") == [32, 8, 32]
    assert warps("scan") == [32, 32]


# --- Davidson et al., Burtscher et al. ---------------------------------------------------------------------------------


def test_edges_of_the_work_front_are_balanced_over_the_warps():
    rows = [(0, 1), (0, 2), *((1, 10 + v) for v in range(120)), (2, 200)]
    seen = search(rows, "work_front", weights=[1] * len(rows))
    reads = reads_of_targets(seen.of("work_front_relax")[1], seen.graph)
    assert len(reads) > 32
    assert max(reads.values()) <= 2


def test_piles_hold_back_what_lies_beyond_the_threshold():
    rows = star(20)
    weights = list(range(1, 21))
    wide = search(rows, "near_far_piles", {"edges_a_pile": 1e9}, weights=weights, events=False)
    narrow = search(rows, "near_far_piles", {"edges_a_pile": 0}, weights=weights, events=False)
    assert len(narrow.of("piles_relax")) > 5 * len(wide.of("piles_relax"))
