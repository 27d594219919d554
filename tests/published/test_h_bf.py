"""H-BF: every knob against the oracle, on a GPU or on the host harness; edge classes, full queues, what is counted."""

from __future__ import annotations

from dataclasses import fields, replace

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kepler_traverse import NegativeCycleError, plan_sssp
from kepler_traverse.certificate import certify
from kepler_traverse.errors import FrontierOverflowError
from kepler_traverse.published.sssp import h_bf
from kepler_traverse.published.sssp.params import HBfKnobs
from kepler_traverse.search.query import Query
from kepler_traverse.sssp.host_loop import rounds
from tests.support import devices, oracle, tiers
from tests.support.devices import distances, host, in_each, orders
from tests.support.graphs import NAMED, build, lattice, path, rmat, star, weighted_rows, weights_for

# One block size for all, since each is compiled apart.
MODES = orders(
    in_turn={"resident": 1, "block": 64},
    stress={"stress": True, "seed": 1, "block": 64, "resident": 3},
)
mode = in_each(MODES)
pytestmark = devices.on_a_device


on_a_device = pytest.mark.usefixtures("mode")

ALL_OFF = HBfKnobs(
    edge_classes=False, duplicates="keep", stream_frontier=False, read_only_edges=False, bypass_l1=False, enqueue="atomic",
    vertices_per_warp=1, min_width=32, heavy="none", heavy_degree=20, counters=True,
)  # fmt: skip
# as published, but for what these small graphs ask for
PUBLISHED = HBfKnobs(heavy_degree=20, counters=True)
# Each constant of the kernel has each of its values; a pair of changes is one kernel to compile, in place of two.
CHANGES = {
    "nothing": {},
    "edge classes, marks": {"edge_classes": True, "duplicates": "mark"},
    "one word": {"duplicates": "atomic64"},
    "through shared memory, frontier streamed": {"enqueue": "shared", "stream_frontier": True},
    "edges through the read-only cache, past the L1 cache": {
        "read_only_edges": True,
        "bypass_l1": True,
    },
    "prefix sum": {"enqueue": "prefix_sum"},
    **{f"width {width}": {"min_width": width, "max_width": width} for width in (1, 4)},
    "widths from 2": {"min_width": 2, "max_width": 16},
    "32 vertices a warp": {"min_width": 4, "vertices_per_warp": 32},
    "rounds without a look": {"rounds_per_read": 64},
    "rounds without a look, marks, blocks": {
        "rounds_per_read": 3,
        "duplicates": "mark",
        "heavy": "blocks",
    },
    "children": {"heavy": "children", "min_width": 8},
    "blocks": {"heavy": "blocks", "min_width": 4, "max_width": 8},
    "blocks, shared memory, edge classes": {
        "heavy": "blocks",
        "enqueue": "shared",
        "edge_classes": True,
    },
    "children, prefix sum, marks": {
        "heavy": "children",
        "enqueue": "prefix_sum",
        "duplicates": "mark",
        "min_width": 2,
    },
}
GRAPHS = {
    "power law": [row[:2] for row in rmat(8, 12, seed=3)],
    "star of 1025 behind a path": [(v + 1030, v + 1031) for v in range(4)]
    + [(1034, 0), *star(1025)]
    + [(v, v + 2000) for v in range(1, 1026)],
    "lattice": lattice(9, 30),
    "bipartite layers": [(0, v) for v in range(1, 41)]
    + [(u, v) for u in range(1, 41) for v in range(41, 81)]
    + [(u, 81) for u in range(41, 81)],
}


def run(rows, weights, knobs, source=None, directed=True, kind="float32", **options):
    """Traverse on the device, certified and equal to the oracle."""
    graph = build(rows, np.array(weights, kind), directed, weight_type=kind).to("cuda")
    source = rows[0][0] if source is None else source
    result = plan_sssp(graph, strategy="h_bf", knobs=knobs, **options)(source)
    certify(graph, result).require()
    neighbors = oracle.edges_of(
        [(*row[:2], w) for row, w in zip(rows, weights, strict=True)], directed
    )
    answer = oracle.bellman_ford if min(weights, default=0) < 0 else oracle.dijkstra
    limit = np.inf if result.limit is None else result.limit
    expected = answer(neighbors, source, np.dtype(kind).type)
    assert distances(result, graph) == {v: d for v, d in expected.items() if d <= limit}
    return result


@on_a_device
@pytest.mark.parametrize(("change", "graph"), tiers.by_turns(CHANGES, list(GRAPHS)))
def test_each_feature_alone_gives_the_right_distances(change, graph):
    rows = GRAPHS[graph]
    directed = graph != "lattice"
    counted = run(
        rows, weights_for(rows, 3, "floats"), replace(ALL_OFF, **CHANGES[change]), directed=directed
    ).counters
    # Each vertex is queued when its distance falls, and for nothing else.
    assert counted["successful"] == counted["enqueued"] + counted["duplicates_avoided"] > 0


@on_a_device
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize(
    "name",
    ["power law", "in-star", "star of 1025", "self-loops and parallel edges", "two components"],
)
def test_the_published_knobs_give_the_right_distances(name, directed):
    rows = [row[:2] for row in NAMED[name]]
    run(rows, weights_for(rows, 5), PUBLISHED, directed=directed)


@on_a_device
def test_distances_of_64_bits_are_marked_beside_their_vertex():
    rows = GRAPHS["power law"]
    run(rows, weights_for(rows, 5, "floats"), replace(PUBLISHED, duplicates="mark"), kind="float64")


@on_a_device
@pytest.mark.parametrize(
    "knobs", [PUBLISHED, replace(ALL_OFF, edge_classes=True)], ids=["published", "duplicates kept"]
)
def test_negative_weights_get_their_distances_or_their_cycle(knobs):
    @hypothesis.settings(max_examples=tiers.examples(25), deadline=None)
    @given(weighted_rows(st.integers(-3, 9), max_vertices=9, max_rows=24), st.booleans(), st.data())
    def check(drawn, directed, data):
        rows, weights = drawn
        weights = [abs(w) if u == v else w for (u, v), w in zip(rows, weights, strict=True)]
        source = data.draw(st.sampled_from(sorted({v for r in rows for v in r})))
        weighted = [(u, v, w) for (u, v), w in zip(rows, weights, strict=True)]
        neighbors = oracle.edges_of(weighted, directed)
        expected = oracle.bellman_ford(neighbors, source)
        graph = build(rows, weights, directed).to("cuda")
        plan = plan_sssp(graph, strategy="h_bf", knobs=knobs)
        if expected is not None:
            result = plan(source)
            assert distances(result, graph) == expected
            certify(graph, result).require()
            return
        with pytest.raises(NegativeCycleError) as caught:
            plan(source)
        cycle = caught.value.cycle
        assert (
            sum(neighbors[u][v] for u, v in zip(cycle, [*cycle[1:], cycle[0]], strict=True))
            == caught.value.weight
            < 0
        )

    check()


# --- edge classes ------------------------------------------------------------------------------------------------------


@on_a_device
def test_parallel_edges_from_the_source_count_by_the_least():
    rows = [(0, 1), (0, 1), (0, 1), (0, 2), (2, 1)]
    result = run(rows, [7, 3, 5, 1, 1], PUBLISHED)
    assert host(result.distance).tolist() == [0, 2, 1]
    assert run(rows, [7, 3, 5, 1, 9], PUBLISHED).distance[1] == 3


# vertex 1 improves in round 2, its followers later
LATE = [(0, 1), (0, 2), (2, 3), (3, 1), (1, 4), (4, 5), (0, 6)]
LATE_WEIGHTS = [10, 1, 1, 1, 1, 1, 7]


@on_a_device
@pytest.mark.parametrize(
    ("knobs", "expected"),
    [
        (
            {"edge_classes": True},
            {
                "relaxations": 6,
                "successful": 6,
                "direct_writes": 5,
                "skipped_edges": 3,
                "closed": 2,
                "enqueued": 6,
            },
        ),
        (
            {"edge_classes": False},
            {
                "relaxations": 9,
                "successful": 9,
                "direct_writes": 0,
                "skipped_edges": 0,
                "closed": 0,
                "enqueued": 9,
            },
        ),
    ],
    ids=["edge classes", "none"],
)
def test_counters_are_those_counted_by_hand_where_a_vertex_of_in_degree_1_improves_again(
    knobs, expected
):
    result = run(LATE, LATE_WEIGHTS, replace(PUBLISHED, **knobs))
    assert result.distance[4] == 4  # 11 at first
    assert result.distance[5] == 5
    assert result.counters == {
        **expected,
        "duplicates_avoided": 0,
        "child_launches": 0,
        "overflows": 0,
    }
    assert result.rounds == (5 if knobs["edge_classes"] else 6)


@on_a_device
def test_counters_are_off_unless_asked_for():
    assert run(LATE, LATE_WEIGHTS, replace(PUBLISHED, counters=False)).counters is None


@on_a_device
@pytest.mark.parametrize("duplicates", ["atomic64", "mark", "keep"])
def test_a_vertex_lowered_twice_in_a_round_is_queued_once_unless_duplicates_stay(mode, duplicates):
    rows = [(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 4), (4, 5)]
    knobs = replace(ALL_OFF, duplicates=duplicates, vertices_per_warp=32)
    counted = run(rows, [1, 1, 1, 3, 2, 1, 1], knobs).counters
    again = counted["successful"] - 5
    # one warp takes the frontier in order, so vertex 4 gets the worst offer first
    if mode == "in turn":
        assert again == 2
    assert counted["enqueued"] == 5 + (again if duplicates == "keep" else 0)
    assert counted["duplicates_avoided"] == (0 if duplicates == "keep" else again)


@on_a_device
@pytest.mark.parametrize(
    "options", [{"cutoff": 5}, {"cutoff": 4}, {"cutoff": 0}, {"targets": [5]}, {"targets": [6, 3]}]
)
def test_a_skipped_vertex_counts_for_cutoffs_and_targets(options):
    result = run(LATE, LATE_WEIGHTS, PUBLISHED, **options)
    assert np.isfinite(result.distance[5]) == ("targets" in options or options["cutoff"] == 5)


@on_a_device
def test_closing_kernel_takes_the_shortest_of_many_edges_to_an_end():
    rows = [(0, v) for v in range(1, 41)] + [
        (v, end) for v in range(1, 41) for end in range(100, 164)
    ]
    weights = [1] * 40 + [600 - 10 * v for v in range(40) for _ in range(64)]
    result = run(rows, weights, PUBLISHED)
    assert result.counters["skipped_edges"] == 40 * 64
    assert set(host(result.distance)[-64:].tolist()) == {211}


@on_a_device
def test_the_source_may_be_an_end_itself():
    assert host(run(path(3), [2, 3, 4], PUBLISHED, directed=False).distance).tolist() == [
        0,
        2,
        5,
        9,
    ]
    assert host(run([(0, 1), (2, 3)], [2, 3], PUBLISHED, source=3, directed=False).distance)[
        2:
    ].tolist() == [3, 0]
    assert found_in_one([(0, 1)], [4], source=1) == {1: 0}


def found_in_one(rows, weights, source):
    graph = build(rows, weights).to("cuda")
    return distances(plan_sssp(graph, strategy="h_bf", knobs=PUBLISHED)(source), graph)


@on_a_device
def test_a_negative_edge_to_an_end_is_a_path_in_a_directed_graph_and_a_cycle_in_an_undirected_one():
    rows, weights = [(0, 1), (1, 2), (0, 2)], [2, -5, 0]
    assert host(run(rows, weights, PUBLISHED).distance).tolist() == [0, 2, -3]
    graph = build(rows[:2], weights[:2], directed=False).to("cuda")
    with pytest.raises(NegativeCycleError) as caught:
        plan_sssp(graph, strategy="h_bf", knobs=PUBLISHED)(0)
    assert sorted(caught.value.cycle) == [1, 2]
    assert caught.value.weight == -10


@on_a_device
def test_an_overflow_that_only_a_skipped_vertex_suffers_is_an_error():
    graph = build([(0, 1), (1, 2)], np.array([3e38, 3e38], np.float32)).to("cuda")
    with pytest.raises(ArithmeticError, match="float64"):
        plan_sssp(graph, strategy="h_bf", knobs=PUBLISHED)(0)


@on_a_device
@pytest.mark.parametrize("length", [2, 3, 40])
@pytest.mark.parametrize(
    "knobs", [PUBLISHED, replace(ALL_OFF, edge_classes=True)], ids=["published", "duplicates kept"]
)
def test_a_negative_cycle_of_vertices_of_in_degree_1_is_found_among_ends(knobs, length):
    cycle = list(range(100, 100 + length))
    rows = [
        (0, 100),
        *zip(cycle, [*cycle[1:], cycle[0]], strict=True),
        *((v, v + 1000) for v in cycle),
    ]
    weights = [1, *[1] * (length - 1), -length, *[1] * length]
    graph = build(rows, weights).to("cuda")
    with pytest.raises(NegativeCycleError) as caught:
        plan_sssp(graph, strategy="h_bf", knobs=knobs)(0)
    assert sorted(caught.value.cycle) == cycle
    assert caught.value.weight == -1


# --- queues that have no room, heavy vertices --------------------------------------------------------------------------


class SmallQueue(h_bf.Run):
    """A run whose next frontier has room for five vertices until the rounds are over."""

    def start(self, source):
        super().start(source)
        self.frontier.capacity = 5
        self.frontier.next.fill(-7)
        self.frontier.queue[1:] = -7

    def finish(self, source):
        self.beyond = {
            int(v) for queue in (self.frontier.queue, self.frontier.next) for v in host(queue)[5:]
        }
        self.frontier.capacity = int(self.n_vertices)
        super().finish(source)


@on_a_device
@pytest.mark.parametrize(
    "change", ["nothing", "prefix sum", "through shared memory, frontier streamed"]
)
@pytest.mark.parametrize("graph", ["power law", "bipartite layers"])
def test_a_queue_that_overflows_with_duplicates_loses_nothing(graph, change):
    rows = GRAPHS[graph]
    weights = weights_for(rows, 4)
    on_device = build(rows, weights).to("cuda")
    runs = []
    plan = rounds(lambda *arguments: runs.append(SmallQueue(*arguments)) or runs[0], h_bf.relax)
    outcome = plan(on_device, Query(knobs=replace(ALL_OFF, **CHANGES[change])))(0)
    expected = plan_sssp(build(rows, weights)).run(0)
    assert host(outcome.distance).tobytes() == expected.distance.tobytes()
    assert host(outcome.predecessor).tolist() == expected.predecessor.tolist()
    assert outcome.counters["overflows"] > 0
    assert runs[0].beyond == {-7}


@on_a_device
def test_a_queue_without_duplicates_that_overflows_is_an_error():
    on_device = build(star(6), [1] * 6).to("cuda")
    with pytest.raises(FrontierOverflowError, match="6 vertices, its queue 5"):
        rounds(SmallQueue, h_bf.relax)(on_device, Query(knobs=replace(ALL_OFF, duplicates="mark")))(
            0
        )


TWO_LEVELS = [(0, v) for v in range(1, 8)] + [
    (v, 100 * v + w) for v in range(1, 8) for w in range(21)
]


@on_a_device
@pytest.mark.parametrize(("most", "launched"), [(2048, 7), (3, 3)])
def test_heavy_vertices_beyond_what_may_wait_are_walked_by_their_warp(most, launched, monkeypatch):
    monkeypatch.setattr(h_bf, "MAX_CHILDREN", most)
    rows = TWO_LEVELS
    result = run(rows, weights_for(rows, 1), replace(ALL_OFF, heavy="children", min_width=4))
    assert result.counters["child_launches"] == launched
    assert result.counters["relaxations"] == len(rows)  # by one or the other, not by both


@on_a_device
def test_children_launched_are_at_most_those_that_a_device_lets_wait():
    rows = [(0, v) for v in range(1, 2061)] + [
        (v, end) for v in range(1, 2061) for end in (3000, 3001)
    ]
    result = run(rows, [1] * len(rows), replace(ALL_OFF, heavy="children", heavy_degree=1))
    # the source's, then those of the 2060 that fit
    assert result.counters["child_launches"] == 1 + 2048
    assert result.counters["relaxations"] == len(rows)


@on_a_device
def test_a_heavy_vertex_on_the_queue_of_blocks_is_walked_once():
    result = run(
        TWO_LEVELS, weights_for(TWO_LEVELS, 1), replace(ALL_OFF, heavy="blocks", min_width=4)
    )
    assert result.counters["relaxations"] == len(TWO_LEVELS)
    assert result.counters["child_launches"] == 0


@on_a_device
@pytest.mark.parametrize(("degree", "launched"), [(20, 7), (21, 1), (22, 0)])
def test_heavy_vertices_have_more_edges_than_the_threshold(degree, launched):
    rows = [*TWO_LEVELS, (7, 777)]  # the last vertex has 22, the others 21
    result = run(
        rows,
        weights_for(rows, 1),
        replace(ALL_OFF, heavy="children", heavy_degree=degree, min_width=8),
    )
    assert result.counters["child_launches"] == launched


HINTS = ("stream_frontier", "read_only_edges", "bypass_l1")


def test_every_knob_takes_each_of_its_values_in_these_tests():
    taken = {field.name: {getattr(replace(ALL_OFF, **change), field.name) for change in CHANGES.values()}
             | {getattr(PUBLISHED, field.name)} for field in fields(HBfKnobs)}  # fmt: skip
    assert taken["duplicates"] == {"atomic64", "mark", "keep"}
    assert taken["enqueue"] == {"shared", "prefix_sum", "atomic"}
    assert taken["heavy"] == {"children", "blocks", "none"}
    assert all(taken[name] == {True, False} for name in ("edge_classes", *HINTS))
