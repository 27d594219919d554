"""A limit is compared exactly with each distance, whatever type the search runs in: every kind, strategy and device."""

from __future__ import annotations

import itertools
import json
from decimal import Decimal
from fractions import Fraction
from math import inf, nextafter

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kepler_traverse import (
    bfs,
    bfs_many,
    certify,
    certify_many,
    plan_sssp,
    plan_sssp_many,
    sssp,
    sssp_many,
    sssp_pairs,
)
from kepler_traverse.errors import InputError, PrecisionError
from kepler_traverse.search import frames
from kepler_traverse.sssp.registry import MULTI_SOURCE
from pipelines.job import run_job
from pipelines.verify import main as verify_main
from tests.support import oracle, tiers
from tests.support.devices import distances, host, on_a_device, orders, running
from tests.support.graphs import build
from tests.support.plans import SSSP

MODES = orders(in_turn={"block": 64})
PLACES = (2, 2**23, 2**24, 2**53)
SOURCES = (0, 3)
ENDS = (0, 1, 2, 3, 4)
HEAVY = {"light": None, "wider": 2**24 + 2, "widest": 2**53 + 2}


def streets(place, heavy=None, step=1):
    """A path whose vertices lie just below, at (with a step of 1) and beyond a place, and maybe a heavy edge elsewhere.

    With steps of 2 and 4 the first one beyond is a number that a type which ends at the place rounds down, and up.
    """
    rows = [(0, 1, place - 1), (1, 2, step), (2, 3, step), (3, 4, step)]
    return rows if heavy is None else [*rows, (5, 6, heavy)]


def graph_of(rows, **options):
    return build([row[:2] for row in rows], [row[2] for row in rows], directed=False, **options)


def lengths(rows, sources=SOURCES, kind=int):
    """The distances from some sources, as fractions, by source and vertex."""
    neighbors = oracle.edges_of(rows, directed=False)
    return {
        (source, vertex): Fraction(float(d) if kind is not int else d)
        for source in sources
        for vertex, d in oracle.dijkstra(neighbors, source, kind).items()
    }


def near(exact, limit):
    return {pair for pair, d in exact.items() if d <= Fraction(limit)}


def limits_around(place):
    """Limits a step of float64 beside distances, between two of them, and the distances themselves."""
    steps = {float(place + d) for d in (-1, 0, 1, 3)}
    beside = {nextafter(each, towards) for each in steps for towards in (-inf, inf)}
    return sorted(beside | {*range(place - 1, place + 4), place - 0.5, place + 0.5})


def of_rows(frame, *names):
    columns = [frame[name].tolist() for name in names]
    return list(zip(*columns, strict=True))


def cells(matrix, sources, is_reached):
    rows, columns = np.nonzero(is_reached(host(matrix)))
    return {
        (sources[row], column) for row, column in zip(rows.tolist(), columns.tolist(), strict=True)
    }


# --- what each kind of result says is within a limit, as pairs of source and vertex ----------------------------------------


def in_rows(graph, limit, **options):
    return set(of_rows(sssp_many(graph, SOURCES, cutoff=limit, **options), "source", "vertex"))


def in_predecessors(graph, limit, **options):
    return in_rows(graph, limit, result="predecessors", **options)


def in_matrix(graph, limit, **options):
    matrix = sssp_many(graph, SOURCES, cutoff=limit, result="matrix", **options)
    unreached = np.iinfo(np.int64).max if matrix.dtype.kind == "i" else np.inf
    return cells(matrix, SOURCES, lambda rows: rows < unreached)


def in_bitmap(graph, limit, **options):
    bits = sssp_many(graph, SOURCES, cutoff=limit, result="reachable", **options)
    return cells(bits, SOURCES, lambda rows: np.unpackbits(rows, axis=1, bitorder="little"))


def at_targets(graph, limit, **options):
    frame = sssp_many(graph, SOURCES, cutoff=limit, result="targets", targets=ENDS, **options)
    return set(of_rows(frame[frame["distance"].notna()], "source", "target"))


def in_pairs(graph, limit, **options):
    origins, ends = zip(*itertools.product(SOURCES, ENDS), strict=True)
    frame = sssp_pairs(graph, origins, ends, cutoff=limit, **options)
    return set(of_rows(frame[frame["distance"].notna()], "source", "target"))


def in_nearest_targets(graph, limit, **options):
    frame = sssp_many(graph, SOURCES, cutoff=limit, result="nearest", k=9, targets=ENDS, **options)
    return set(of_rows(frame, "source", "target"))


def in_k_nearest(graph, limit, **options):
    return set(
        of_rows(
            sssp_many(graph, SOURCES, cutoff=limit, result="nearest", k=2, **options),
            "source",
            "vertex",
        )
    )


def in_bands(graph, limit, **options):
    frame = sssp_many(
        graph, SOURCES, result="isochrones", cutoffs=[limit, 2 * limit + 9], **options
    )
    assert set(frame["band"]) <= {limit, 2 * limit + 9}
    return set(of_rows(frame[frame["band"] == limit], "source", "vertex"))


def in_own_limits(graph, limit, **options):
    frame = sssp_many(graph, SOURCES, cutoff=[limit, 2**60], **options)
    return {pair for pair in of_rows(frame, "source", "vertex") if pair[0] == SOURCES[0]} | in_rows(
        graph, limit, **options
    )


def by_plan(graph, limit, **options):
    found = plan_sssp_many(graph, n_sources=2, cutoff=limit, **options).run(SOURCES)
    certify_many(graph, np.array(SOURCES), found.distance, limit).require()
    return in_rows(graph, limit, **options)


SAID = (
    in_rows,
    in_predecessors,
    in_matrix,
    in_bitmap,
    at_targets,
    in_pairs,
    in_nearest_targets,
    in_k_nearest,
    in_bands,
    in_own_limits,
    by_plan,
)

# --- what each kind of result counts ------------------------------------------------------------------------------------


def counted_within(graph, limit, **options):
    frame = sssp_many(graph, SOURCES, result="within", cutoffs=[limit, 2 * limit + 9], **options)
    assert frame["cutoff"].tolist() == [limit, 2 * limit + 9] * 2
    return frame["vertices"].tolist()[::2]


def summed_within(graph, limit, **options):
    ones = {"ones": [1] * graph.n_vertices}
    frame = sssp_many(
        graph, SOURCES, result="opportunities", cutoffs=[limit], values=ones, **options
    )
    return frame["ones"].tolist()


def summarized(graph, limit, **options):
    frame = sssp_many(graph, SOURCES, result="summary", cutoff=limit, **options)
    return frame["reached"].tolist()


COUNTED = (counted_within, summed_within, summarized)

# --- kinds that add up over all sources, where a path of the tests has as many edges as its ends are apart ----------------


def hops_of(pairs):
    return [abs(source - vertex) for source, vertex in pairs]


def flows_of_pairs(graph, limit, **options):
    origins, ends = zip(*itertools.product(SOURCES, ENDS), strict=True)
    return sssp_pairs(graph, origins, ends, cutoff=limit, result="flows", **options)["volume"].sum()


def flows_to_targets(graph, limit, **options):
    people = {"source_weights": [1, 1], "target_weights": [1] * len(ENDS)}
    return sssp_many(
        graph, SOURCES, cutoff=limit, result="flows", targets=ENDS, **people, **options
    )["volume"].sum()


def betweenness(graph, limit, **options):
    frame = sssp_many(
        graph, SOURCES, cutoff=limit, result="betweenness", normalized=False, **options
    )
    return 2 * frame["betweenness"].sum()


ADDED_UP = {
    flows_of_pairs: lambda pairs: sum(hops_of(pairs)),
    flows_to_targets: lambda pairs: sum(hops_of(pairs)),
    betweenness: lambda pairs: sum(hops - 1 for hops in hops_of(pairs) if hops),
}


def nearest(graph, limit, **options):
    return set(
        sssp_many(graph, SOURCES, cutoff=limit, result="nearest", **options)["vertex"].tolist()
    )


# What each kind returns, of the pairs of source and vertex that are within the limit.
KINDS = {
    **dict.fromkeys(SAID, lambda pairs: pairs),
    **dict.fromkeys(
        COUNTED, lambda pairs: [sum(pair[0] == source for pair in pairs) for source in SOURCES]
    ),
    **ADDED_UP,
}
SETUPS = [
    (place, heavy, step) for step in (1, 2, 4) for place in PLACES for heavy in HEAVY.values()
]


def names_for(graph):
    """Return the strategies for many sources that a graph has."""
    graph.hierarchy()
    own = [
        row
        for row in MULTI_SOURCE
        if row.device == graph.device and row.unsupported_reason(graph) is None
    ]
    return ["auto", *(row.name for row in own)]


def require(kind, setup, limit, name, move=lambda graph: graph):
    rows = streets(*setup)
    graph = graph_of(rows)
    if "hierarchy" in name:
        graph.hierarchy()
    found = kind(move(graph), limit, strategy=name)
    assert found == KINDS[kind](near(lengths(rows), limit)), (kind.__name__, setup, limit, name)


def cases(kind, names, setups=SETUPS):
    """Return cases of a kind: setups, limits and strategies; without ``--all`` two of each strategy."""
    every = [
        (setup, limit, name)
        for setup in setups
        for limit in limits_around(setup[0])
        for name in names
    ]
    if tiers.ALL:
        return every
    first, chosen = 29 * list(KINDS).index(kind), []
    for i, name in enumerate(names):
        own = [case for case in every if case[2] == name]
        for some in (own, [(setup, limit, name) for setup, limit, name in own if limit % 1 > 0.5]):
            chosen.append(some[(first + 53 * i) % len(some)])
    return chosen


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_each_kind_of_result_compares_its_limit_exactly_by_each_strategy(kind):
    for setup, limit, name in cases(kind, names_for(graph_of(streets(2)))):
        require(kind, setup, limit, name)


@pytest.fixture
def frames_in_host_memory(monkeypatch):
    """Frames of a GPU are those of pandas, so that the functions that return them run on the harness."""
    in_host_memory = frames._series

    def series(column, _):
        is_null = None if column.is_null is None else host(column.is_null)
        values = host(column.values) if hasattr(column.values, "dtype") else column.values
        return in_host_memory(frames.Column(values, is_null), "cpu")

    monkeypatch.setattr(frames, "_library", lambda _: pd)
    monkeypatch.setattr(frames, "_series", series)


@on_a_device
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("settings", MODES.values(), ids=MODES)
@pytest.mark.usefixtures("frames_in_host_memory")
def test_each_kind_does_so_on_a_gpu(kind, settings):
    with running(settings):
        names = names_for(graph_of(streets(2)).to("cuda"))
        # Where graphs are held in float32, float64 and int64, at places that these just hold.
        chosen = cases(kind, names, [SETUPS[i] for i in (0, 6, 10, 18, 21)])
        for setup, limit, name in chosen if tiers.ALL else chosen[list(KINDS).index(kind) % 2 :: 4]:
            require(kind, setup, limit, name, lambda graph: graph.to("cuda"))


@on_a_device
@pytest.mark.parametrize("settings", MODES.values(), ids=MODES)
def test_each_strategy_for_one_source_compares_its_limit_exactly(settings):
    with running(settings):
        for setup in tiers.few(SETUPS, 5):
            rows = streets(*setup)
            exact = {vertex: int(d) for (_, vertex), d in lengths(rows, (0,)).items()}
            for device, limit in itertools.product(
                ("cpu", "cuda"), tiers.few(limits_around(setup[0]), 3)
            ):
                graph = graph_of(rows).to(device)
                for row in SSSP:
                    if row.device != device or row.unsupported_reason(graph) is not None:
                        continue
                    found = plan_sssp(graph, strategy=row.name, cutoff=limit)(0)
                    certify(graph, found).require()
                    within = {
                        vertex: d for vertex, d in distances(found, graph).items() if d <= limit
                    }
                    assert within == {v: d for v, d in exact.items() if d <= limit}, (
                        row.name,
                        setup,
                        limit,
                    )


# --- floats --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize(
    "weights", [(0.1, 0.1, 0.7, 0.3), (2**24 + 1.5, 1, 0.5, 1.5), (1e-39, 3e-39, 1e-41, 2e-38)]
)
def test_distances_of_float_weights_are_the_numbers_that_are_returned(kind, weights):
    rows = [(i, i + 1, kind(weight)) for i, weight in enumerate(weights)]
    graph = build([row[:2] for row in rows], [row[2] for row in rows], directed=False)
    exact = lengths(rows, kind=kind)
    for d in sorted(set(exact.values()))[1:]:
        for limit in (nextafter(float(d), 0), float(d), nextafter(float(d), inf)):
            within = near(exact, limit)
            for said in tiers.few([said for said in SAID if said is not in_nearest_targets], 4):
                assert said(graph, limit) == within, (said.__name__, limit)


def test_a_limit_is_the_number_that_it_is_and_not_the_nearest_of_the_weights():
    # float32(0.1) is more than 0.1
    graph = build([(0, 1), (1, 2)], np.array([0.1, 0.1], np.float32))
    assert sssp(graph, 0, cutoff=0.1)["vertex"].tolist() == [0]
    assert sssp(graph, 0, cutoff=np.float32(0.1))["vertex"].tolist() == [0, 1]


def test_negative_weights_are_compared_exactly():
    graph = build([(0, 1), (1, 2), (2, 3)], [2**24 + 3, -2, -(2**23)])
    for limit, vertices in (
        (2**24 + 0.5, [0, 3]),
        (nextafter(2**24 + 1, 0), [0, 3]),
        (2**24 + 1, [0, 2, 3]),
    ):
        assert sssp(graph, 0, cutoff=limit)["vertex"].tolist() == vertices
        assert sssp_many(graph, [0], cutoff=limit, result="summary")["reached"].tolist() == [
            len(vertices)
        ]


def edges_with_gains(random, kind):
    """Edges whose weights may be negative, and no cycle is: the difference of two heights is added to each."""
    n = 9
    heights = random.integers(0, 12, n)
    ends = random.integers(0, n, (3 * n, 2))
    src, dst = ends[ends[:, 0] != ends[:, 1]].T
    steps = random.integers(0, 6, src.size) + heights[src] - heights[dst]
    return src.tolist(), dst.tolist(), steps.astype(kind)


def searches_of_plans(graph, limit):
    """Distances and predecessors of all sources by each way to run a plan, in turn."""
    numbers = np.arange(graph.n_vertices)
    one = plan_sssp(graph, cutoff=limit)
    for run in (one, one.run, one.run_number):
        found = [run(source).copy() for source in numbers.tolist()]
        yield [host(each.distance) for each in found], [host(each.predecessor) for each in found]
    for strategy in ("auto", "dijkstra_int64"):
        if strategy != "auto" and not graph.integer_weights:
            continue
        many = plan_sssp_many(
            graph, n_sources=4, strategy=strategy, result="predecessors", cutoff=limit
        )
        groups = [group.copy() for group in many.iter_groups(numbers)]
        groups.append(many.run(numbers[:2]))
        assert {each for group in groups for each in group.limits} == {limit}
        yield (
            [row for group in groups[:-1] for row in host(group.distance)],
            [row for group in groups[:-1] for row in host(group.predecessor)],
        )
        assert np.array_equal(host(groups[-1].distance), host(groups[0].distance[:2]))
        plan = plan_sssp_many(
            graph, n_sources=4, strategy=strategy, result="targets", cutoff=limit, targets=[0, 3]
        )
        rows = [row for group in plan.iter_groups(numbers) for row in host(group.distance)]
        whole = [host(row)[[0, 3]] for group in groups[:-1] for row in group.distance]
        assert np.array_equal(rows, whole)


def require_no_farther_vertex(seed, kind, move):
    src, dst, weights = edges_with_gains(np.random.default_rng(seed), kind)
    ends = list(zip(src, dst, strict=True))
    neighbors = oracle.edges_of(
        [(*pair, w) for pair, w in zip(ends, weights.tolist(), strict=True)]
    )
    neighbors |= {vertex: {} for vertex in range(9) if vertex not in neighbors}
    graph = move(build(ends, weights, vertices=list(range(9))))
    whole = plan_sssp(graph)
    before = [host(whole(source).predecessor).copy() for source in range(9)]
    for limit in (0, 1.5, 4):
        right = np.full((9, 9), np.inf)
        for source in range(9):
            for vertex, d in oracle.bellman_ford(neighbors, source).items():
                right[source, vertex] = d if d <= limit else np.inf
        known = np.isfinite(right) & np.isfinite(np.take_along_axis(right, np.array(before), 1))
        previous = np.where(known, before, -1)
        for distance, predecessor in searches_of_plans(graph, limit):
            found = np.array(distance, np.float64)
            found[np.array(distance) == 2**63 - 1] = np.inf
            assert np.array_equal(found, right)
            assert np.array_equal(predecessor, previous)


@pytest.mark.parametrize("kind", [np.int32, np.float64])
def test_no_plan_returns_what_is_beyond_its_limit_if_weights_are_negative(kind):
    for seed in range(6):
        require_no_farther_vertex(seed, kind, lambda graph: graph)


@on_a_device
@pytest.mark.parametrize("settings", MODES.values(), ids=MODES)
def test_no_plan_does_so_on_a_gpu(settings):
    with running(settings):
        require_no_farther_vertex(0, np.float64, lambda graph: graph.to("cuda"))


# --- limits of all types ---------------------------------------------------------------------------------------------------

PLACE = 2**53
GRAPH = graph_of(streets(PLACE, step=2))
LIMITS = [
    (2**53 + 1, 3),
    (np.int64(2**53 + 1), 3),
    (np.uint64(2**53 + 3), 4),
    (2.5, 1),
    (pa.scalar(2**53 + 1), 3),
    (pa.scalar(2.0**53), 2),
    (np.float32(2**53), 2),
    (np.float16(1.5), 1),
    (2.0**53, 2),
    (2**70, 5),
    (inf, 5),
    (0, 1),
    (-0.0, 1),
]


@pytest.mark.parametrize(("limit", "vertices"), LIMITS)
def test_limits_of_any_type_are_the_numbers_that_they_are(limit, vertices):
    assert len(sssp(GRAPH, 0, cutoff=limit)) == vertices
    assert len(sssp_many(GRAPH, [0], cutoff=limit)) == vertices
    assert len(sssp_many(GRAPH, [0, 3], cutoff=[limit, 0])) == vertices + 1
    if vertices < 5:
        assert sssp_many(GRAPH, [0], result="within", cutoffs=[limit])["vertices"].tolist() == [
            vertices
        ]


@pytest.mark.parametrize(
    "limit", [True, "2", -1, float("nan"), Decimal("1"), Fraction(1, 3), pa.scalar(None)]
)
def test_what_is_no_number_or_no_float_is_refused(limit):
    for options in (
        {"cutoff": limit},
        {"cutoff": [limit]},
        {"result": "within", "cutoffs": [limit]},
    ):
        with pytest.raises(InputError, match=r"^cutoffs? must"):
            sssp_many(GRAPH, [0], **options)


def test_limits_per_source_may_mix_integers_beyond_floats_with_infinity():
    found = sssp_many(GRAPH, [0, 1, 3], cutoff=[2**53 + 1, inf, 1.5])
    assert found.groupby("source").size().to_dict() == {0: 3, 1: 5, 3: 1}


def test_a_fraction_of_a_hop_is_no_hop():
    graph = build([(0, 1), (1, 2), (2, 3)])
    for limit, vertices in ((1.9999999999, 2), (2, 3), (2.5, 3), (0.5, 1)):
        assert len(bfs(graph, 0, max_depth=limit)) == vertices
        assert len(bfs_many(graph, [0, 3], max_depth=[limit, 0])) == vertices + 1
        assert bfs_many(graph, [0], result="summary", max_depth=limit)["reached"].tolist() == [
            vertices
        ]


@pytest.mark.parametrize(
    ("weights", "limit"),
    [
        (np.array([2**62, 2**62]), 2**64),
        (np.array([3e38, 3e38], np.float32), 1e300),
        (np.array([1e308, 1e308]), inf),
    ],
)
def test_a_limit_beyond_the_type_hides_no_distance_that_is(weights, limit):
    graph = build([(0, 1), (1, 2)], weights)
    for strategy in names_without_hierarchy(graph):
        for cutoff in (None, limit, inf):
            with pytest.raises(PrecisionError):
                sssp_many(graph, [0, 1], cutoff=cutoff, strategy=strategy)
        with pytest.raises(PrecisionError):
            sssp_many(graph, [0, 1], cutoff=[inf, 1], strategy=strategy)
    assert len(sssp_many(graph, [0, 1], cutoff=float(weights[0]))) == 4


def names_without_hierarchy(graph):
    own = [
        row for row in MULTI_SOURCE if row.device == "cpu" and row.unsupported_reason(graph) is None
    ]
    return ["auto", *(row.name for row in own if "hierarchy" not in row.needs)]


# --- the job ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cutoff", "rows"), [(2**53 + 1, 3), (2.0**53, 2), (2**53 + 2, 3), (1.5, 1), (10**30, 5)]
)
def test_a_job_compares_its_cutoff_exactly_and_records_it(cutoff, rows, tmp_path):
    edges = tmp_path / "edges.csv"
    edges.write_text(
        "src,dst,weight\n" + "".join(f"{u},{v},{w}\n" for u, v, w in streets(PLACE, step=2))
    )
    out = tmp_path / "out"
    run_job(
        str(edges), sources=[0], algorithm="sssp", cutoff=cutoff, output=str(out), certify="all"
    )
    assert pq.read_table(out).num_rows == rows
    assert json.loads((out / "_manifest.json").read_text())["identity"]["limit"] <= cutoff
    assert verify_main([str(out), str(edges)]) == 0
