"""Betweenness and flows on a GPU: equal to NetworkX, to walks in Python integers, and to themselves
in any batches.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest

from kepler_traverse import (
    bfs_many,
    bfs_pairs,
    graph_from_edges,
    plan_bfs,
    plan_sssp,
    sssp_many,
    sssp_pairs,
)
from kepler_traverse.kinds import betweenness_gpu, flows_gpu
from kepler_traverse.kinds.loads import OnGpu
from kepler_traverse.multi_source import outputs
from kepler_traverse.runtime import memory
from kepler_traverse.search import frames
from tests.conftest import HAS_GPU
from tests.kernels.simt import harness
from tests.kernels.simt.launching import every_mode, launch
from tests.support import tiers
from tests.support.devices import (
    count_allocations,
    host,
    on_a_device,
    orders,
    planned_by_outline,
    running,
)
from tests.support.graphs import NAMED, lattice, rmat

MODES = orders(
    in_turn={"block": 64}, stress={"stress": True, "seed": 5, "block": 64, "resident": 2}
)
every_order = pytest.mark.parametrize("mode", MODES)
SMALL = {
    "ties": lattice(4, 5),
    "hubs": [(u, v) for u in (0, 1) for v in range(2, 45)] + [(v, v + 1) for v in range(30, 50)],
    "two components": NAMED["two components"],
    "power law": rmat(5, 3, seed=2),
}
TYPES = ("hops", "float32", "float64", "int64")


@pytest.fixture(autouse=True, scope="module")
def _plans_know_the_size_alone():
    with planned_by_outline():
        yield


def network(name, kind, directed):
    """A graph and the same in NetworkX. The weights have many ties, or are beyond 2**53 in sum."""
    src, dst = map(
        np.array, zip(*(edge for edge in SMALL[name] if edge[0] != edge[1]), strict=True)
    )
    weights = None if kind == "hops" else (1 + (3 * src + 5 * dst) % 3).astype(kind)
    if kind == "int64":
        weights *= 2**52 + 1
    graph = graph_from_edges(
        src, dst, weights, vertices=np.arange(max(src.max(), dst.max()) + 2), directed=directed
    )
    offsets, targets = graph.offsets, graph.targets
    there = nx.DiGraph()
    there.add_nodes_from(range(graph.n_vertices))
    for u in range(graph.n_vertices):
        for e in range(offsets[u], offsets[u + 1]):
            there.add_edge(
                u, int(targets[e]), edge=e, weight=1 if kind == "hops" else int(graph.weights[e])
            )
    return graph, there


def distances(graph, kind, sources, width="int8"):
    """Rows of distances, one search per source."""
    planned = (plan_bfs if kind == "hops" else plan_sssp)(graph, predecessors=False)
    rows = np.stack([planned.run(int(source)).distance.copy() for source in sources])
    assert kind == "hops" or rows.dtype == kind
    return rows.astype(width) if kind == "hops" else rows


def as_floats(sums):
    return host(sums.high).astype(np.float64) + host(sums.low).astype(np.float64) * 2.0**-64


def bits(*sums):
    return [host(words).tolist() for each in sums for words in (each.low, each.high)]


def no_sums(size):
    return OnGpu.zeros(size, betweenness_gpu.cp)


def loads(graph, sources, rows, method, is_target=None, cuts=(), endpoints=False):
    """Sums of vertices and edges, added in the parts between the cuts."""
    there, cp = graph.to("cuda"), betweenness_gpu.cp
    sums = no_sums(graph.n_vertices), no_sums(graph.n_edges)
    of_both = betweenness_gpu.LoadSums(*sums)
    marks = None if is_target is None else cp.asarray(is_target, np.uint8)
    left = [
        betweenness_gpu.add_loads(
            there, sources[part], cp.asarray(rows[part]), of_both, marks, endpoints, method
        )
        for part in map(slice, (0, *cuts), (*cuts, len(sources)))
    ]
    return sums, np.concatenate(left)


@on_a_device
@every_order
@pytest.mark.parametrize(
    ("name", "kind", "directed"),
    [
        (name, kind, directed)
        for i, name in enumerate(SMALL)
        for j, kind in enumerate(("hops", TYPES[1 + i % 3]))
        for directed in (True, False)
        if tiers.ALL or directed == ((i + j) % 2 == 0)  # by turns
    ],
)
def test_loads_of_vertices_and_edges_are_those_of_networkx(name, kind, directed, mode, monkeypatch):
    """Also in chunks, in several groups, in batches, and for some targets; each method has the same
    bits.
    """
    graph, there = network(name, kind, directed)
    sources = np.arange(graph.n_vertices)
    rows = distances(graph, kind, sources)
    weight = None if kind == "hops" else "weight"
    monkeypatch.setattr(betweenness_gpu, "CHUNK", 8)
    monkeypatch.setattr(betweenness_gpu, "LINES_AT_ONCE", graph.n_vertices)
    is_target = np.arange(graph.n_vertices) % 3 > 0
    found = {}
    with running(MODES[mode]):
        for method in ("lanes", "blocks")[kind != "hops" :]:
            rows = rows.astype(np.int16) if kind == "hops" and method == "blocks" else rows
            whole, left = loads(graph, sources, rows, method)
            assert not left.any()
            np.testing.assert_allclose(
                as_floats(whole[0]),
                list(nx.betweenness_centrality(there, normalized=False, weight=weight).values()),
                1e-12,
            )
            of_edges = nx.edge_betweenness_centrality(there, normalized=False, weight=weight)
            expected = {there.edges[edge]["edge"]: load for edge, load in of_edges.items()}
            np.testing.assert_allclose(
                as_floats(whole[1]), [expected[e] for e in range(graph.n_edges)], 1e-12
            )
            monkeypatch.setattr(memory, "available_memory", lambda _: 0)  # from here on
            some, left = loads(graph, sources[3:], rows[3:], method, is_target)
            ends = {"sources": sources[3:].tolist(), "targets": np.flatnonzero(is_target).tolist()}
            of_some = nx.betweenness_centrality_subset(there, **ends, weight=weight)
            np.testing.assert_allclose(as_floats(some[0]), list(of_some.values()), 1e-12, 1e-15)
            found[method] = bits(*whole)
            ends, _ = loads(graph, sources, rows, method, endpoints=True)
            assert bits(ends[1]) == bits(whole[1])
            expected = nx.betweenness_centrality(
                there, normalized=False, weight=weight, endpoints=True
            )
            np.testing.assert_allclose(as_floats(ends[0]), list(expected.values()), 1e-12)
            by_in_edges = as_floats(betweenness_gpu.order_by_in_edges(graph.to("cuda"), whole[1]))
            heads = np.repeat(np.arange(graph.n_vertices), np.diff(graph.reverse.offsets)).tolist()
            in_edges = zip(graph.reverse.targets.tolist(), heads, strict=True)
            np.testing.assert_array_equal(
                by_in_edges, [as_floats(whole[1])[there.edges[edge]["edge"]] for edge in in_edges]
            )
            parts, _ = loads(graph, sources, rows, method, cuts=(1, min(34, len(sources))))
            assert bits(*parts) == found[method]
    assert len(set(map(str, found.values()))) == 1


@on_a_device
@every_order
def test_sources_with_too_many_paths_add_nothing_and_are_named(mode, monkeypatch):
    graph, there = network("ties", "hops", directed=False)
    sources = np.arange(graph.n_vertices)
    most = [
        max(len(list(nx.all_shortest_paths(there, s, t))) for t in nx.descendants(there, s) | {s})
        for s in there
    ]
    few = np.array(most) < 16
    assert few.any()
    assert not few.all()
    monkeypatch.setattr(betweenness_gpu, "PATHS_LOG2", 4)
    with running(MODES[mode]):
        for method, width in (("lanes", np.int8), ("blocks", np.int16)):
            rows = distances(graph, "hops", sources, width)
            all_of_them, left = loads(graph, sources, rows, method, endpoints=True)
            assert left.tolist() == (~few).tolist()
            others, left = loads(graph, sources[few], rows[few], method, endpoints=True)
            assert not left.any()
            assert bits(*all_of_them) == bits(*others)


@on_a_device
@pytest.mark.parametrize("weights", [[1.0, 0.0, 2.0, 1.0], [2.0**30, 2.0**-30, 1.0, 1.0]])
def test_sources_with_edges_that_add_nothing_are_named(weights):
    graph = graph_from_edges([0, 1, 2, 4], [1, 2, 3, 5], np.array(weights, np.float32))
    with running(next(iter(MODES.values()))):
        rows = distances(graph, "float32", range(6))
        sums, left = loads(graph, np.arange(6), rows, "blocks")
    assert left.tolist() == [True, weights[1] == 0, False, False, False, False]
    assert as_floats(sums[0]).tolist() == [0, 0, 0, 0, 0, 0] if left[1] else [0, 0, 1, 0, 0, 0]


def walked(graph, before, rows, volumes, named, rows_of_pairs):
    """What vertices, edges of the reversed graph and pairs take, then pairs without a path, in
    Python integers; and those.

    Volumes are ``(place, source, target, amount)``. With ``named`` only paths count that use such
    an edge.
    """
    ends = np.repeat(np.arange(graph.n_vertices), np.diff(graph.reverse.offsets)).tolist()
    edges = dict.fromkeys(zip(graph.reverse.targets.tolist(), ends, strict=True), 0)
    is_named = (
        dict.fromkeys(edges, True)
        if named is None
        else dict(zip(edges, named.tolist(), strict=True))
    )
    vertices, lost, pairs = dict.fromkeys(range(graph.n_vertices), 0), [], {}
    for place, i, v, volume in volumes:
        if before[i, v] < 0 or rows[i, v] > BOUND:
            lost.append(volume)
            continue
        way = [v]
        while int(before[i, v]) != v:
            v = int(before[i, v])
            way.append(v)
        steps = list(zip(way[1:], way, strict=False))
        if named is not None and not any(is_named[step] for step in steps):
            continue
        pairs[place] = volume
        for x in way:
            vertices[x] += volume
        for step in steps:
            edges[step] += volume
    tail = [sum(lost), len(lost)]
    found = {"vertices": [*vertices.values(), *tail], "edges": [*edges.values(), *tail]}
    if rows_of_pairs is not None:
        at = dict(zip(rows_of_pairs.tolist(), range(rows_of_pairs.size), strict=True))
        found["pairs"] = [*(pairs.get(at[row], 0) for row in range(rows_of_pairs.size)), *tail]
    return found


def zero_lengths(graph, before, rows):
    """Whether a predecessor is no nearer to the source."""
    at, v = np.nonzero((before >= 0) & (before != np.arange(graph.n_vertices)))
    is_near = rows[at, before[at, v]] < rows[at, v]
    return np.array([not is_near[at == i].all() for i in range(len(rows))])


BOUND = 4  # the largest distance that is served


@on_a_device
@every_order
@pytest.mark.parametrize(("kind", "directed"), tiers.by_turns(["zeros", *TYPES], [True, False]))
def test_flows_are_those_of_walks_in_python(kind, directed, mode, monkeypatch):
    """With ties, pairs without a path or too far, pairs of a vertex with itself, several groups,
    and a decay.
    """
    graph, _ = network("power law", "float64" if kind == "zeros" else kind, directed)
    n = graph.n_vertices
    if kind == "zeros":
        src = np.repeat(np.arange(n), np.diff(graph.offsets))
        graph = graph_from_edges(src, graph.targets, graph.weights - 1, vertices=np.arange(n))
    rng, bound = np.random.default_rng(1), BOUND * (2**52 + 1 if kind == "int64" else 1)
    sources = rng.permutation(n)[: n // 2]
    monkeypatch.setitem(globals(), "BOUND", bound)
    planned = (plan_bfs if kind == "hops" else plan_sssp)(graph)
    before = np.stack([planned.run(int(source)).predecessor.copy() for source in sources])
    rows = distances(graph, "float64" if kind == "zeros" else kind, sources)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(0, 9, sources.size))])
    of_pairs, targets = (
        np.repeat(np.arange(sources.size), np.diff(offsets)),
        rng.integers(0, n, offsets[-1]),
    )
    amounts, factors = rng.integers(0, 2**40, targets.size), rng.integers(0, 2**20, sources.size)
    trips = list(
        zip(range(targets.size), of_pairs.tolist(), targets.tolist(), amounts.tolist(), strict=True)
    )
    integers = [(j, i, v, x * int(factors[i])) for j, i, v, x in trips]
    everywhere, weights = rng.permutation(n)[: n - 3], rng.random(n - 3)
    exponent, reach = -70, 3.0 * (2**52 if kind == "int64" else 1)
    floats = []
    for i in range(sources.size):
        for v, x in zip(everywhere.tolist(), weights.tolist(), strict=True):
            far, volume = float(rows[i, v]), x * float(factors[i])
            volume *= 1.0 if before[i, v] < 0 or far > bound else max(0.0, 1.0 - far / reach)
            # half to even
            floats.append((0, i, v, round(Fraction(volume) / Fraction(2) ** exponent)))
    with_floats = flows_gpu.Volumes(
        everywhere, weights, factors * 1.0, None, rows.dtype.type(bound), exponent, 2, (reach, 0.0)
    )
    few = flows_gpu.Volumes(targets, amounts % 1000, factors, offsets, rows.dtype.type(bound))
    of_few = [(j, i, v, x % 1000 * int(factors[i])) for j, i, v, x in trips]
    of_all = flows_gpu.Volumes(targets, amounts, factors, offsets, rows.dtype.type(bound))
    of_all = replace(of_all, rows=rng.permutation(targets.size))
    few = replace(few, rows=rng.permutation(targets.size))
    named = (rng.random(graph.n_edges) < 0.1).astype(np.uint8)
    kinds = ((integers, of_all, None), (floats, with_floats, None), (of_few, few, None))
    kinds += ((integers, of_all, named), (floats, with_floats, named), (of_few, few, named))
    monkeypatch.setattr(flows_gpu, "LONG", 4)
    monkeypatch.setattr(flows_gpu, "MIN_WIDE_EDGES", graph.n_edges + (kind != "float32"))
    with running(MODES[mode]):
        there, cp = graph.to("cuda"), flows_gpu.cp
        climbs = [flows_gpu._count_bits(there, given) > 0 for _, given, _ in kinds[:3]]
        assert climbs == [False, False, True]
        is_left = zero_lengths(graph, before, rows)
        assert is_left.any() == (kind == "zeros")
        assert not is_left.all()
        for volumes, given, through in kinds:
            expected = walked(
                graph,
                before,
                rows,
                [each for each in volumes if not is_left[each[1]]],
                through,
                given.rows,
            )
            assert expected["edges"][-1] > 0
            given = given if through is None else replace(given, named=cp.asarray(through))
            for of in expected if given.rows is not None else ("vertices", "edges"):
                sums = no_sums(len(expected[of]))
                left = flows_gpu.add_flows(there, sources, cp.asarray(rows), given, of, sums)
                assert left.tolist() == is_left.tolist()
                found = [
                    int(low) + (int(high) << 64)
                    for low, high in zip(host(sums.low), host(sums.high), strict=True)
                ]
                assert found == expected[of]


@on_a_device
@pytest.mark.parametrize("directed", tiers.few([True, False], 1))
def test_loads_of_the_library_have_the_bits_of_a_cpu(directed, monkeypatch):
    """Also from sources with edges of length 0, which are left to the host."""
    src, dst = map(np.array, zip(*rmat(5, 2, seed=3), strict=True))
    graph = graph_from_edges(src, dst, (src * dst % 4).astype(np.float32), directed=directed)
    ids = graph.ids[:12].tolist()
    some = src[:9], dst[:9]
    volumes, far = (
        np.arange(12) / 7,
        {"source_weights": np.arange(12), "decay": "gaussian:5", "result": "flows"},
    )
    calls = {
        "units": lambda graph: sssp_many(graph, ids, result="flows"),
        "decay": lambda graph: sssp_many(graph, ids, cutoff=9, **far),
        "vertices": lambda graph: bfs_many(graph, ids, of="vertices", targets=ids[3:], **far),
        "pairs": lambda graph: sssp_pairs(graph, ids, ids[::-1], result="flows", volumes=volumes),
        "hops": lambda graph: bfs_pairs(graph, ids, ids[::-1], result="flows", volumes=volumes),
        "through": lambda graph: sssp_many(graph, ids, targets=ids[3:], through=some, **far),
        "list": lambda graph: bfs_pairs(
            graph, ids, ids[::-1], result="flows", volumes=volumes, of="pairs", through=some
        ),
        "paths by edge": lambda graph: bfs_many(
            graph, ids, result="betweenness", of="edges", targets=ids[3:]
        ),
        "paths by vertex": lambda graph: bfs_many(graph, ids, result="betweenness", endpoints=True),
    }

    def added_up(loads, groups, _):  # in place of a frame, which would be one of cuDF
        for group in groups:  # in two parts, which a GPU adds to the same sums
            loads.add(group[:5])
            loads.add(group[5:])
        return bits(loads.sums)

    monkeypatch.setattr(outputs, "loads_frame", added_up)
    expected = {name: call(graph) for name, call in calls.items()}
    assert sum(any(low) for low, _ in expected.values()) >= 3
    monkeypatch.setattr(frames, "frames_on", lambda _: None)
    monkeypatch.setattr(outputs, "frames_on", lambda _: None)
    add_flows, left = flows_gpu.add_flows, []

    def counted(*args):
        left.append(add_flows(*args))
        return left[-1]

    monkeypatch.setattr(flows_gpu, "add_flows", counted)
    with running(next(iter(MODES.values()))):
        there = graph.to("cuda")
        assert {name: call(there) for name, call in calls.items()} == expected
    assert len(left) >= 4
    assert 0 < np.concatenate(left).mean() < 1


@on_a_device
@pytest.mark.skipif(HAS_GPU, reason="allocations are counted on the harness")
@pytest.mark.parametrize("kind", ["hops", "float32"])
def test_the_stated_memory_is_enough(kind, monkeypatch):
    graph, _ = network("hubs", kind, directed=False)
    n, sources = graph.n_vertices, np.arange(40)
    rows = distances(graph, kind, sources)
    monkeypatch.setattr(betweenness_gpu, "CHUNK", 8)
    with running(MODES[next(iter(MODES))]):
        there, cp = graph.to("cuda"), betweenness_gpu.cp
        assert there.reverse
        sums = no_sums(n)
        taken = count_allocations(monkeypatch, betweenness_gpu, flows_gpu)
        of_vertices = betweenness_gpu.LoadSums(vertices=sums)
        betweenness_gpu.add_loads(there, sources, cp.asarray(rows), of_vertices)
        stated = betweenness_gpu.bytes_needed(
            sources.size, n, graph.n_edges, graph.targets.itemsize, kind == "hops"
        )
        assert sum(taken) <= stated
        assert kind != "hops" or stated < 2 * sum(taken)
        edge_sums = no_sums(graph.n_edges + 2)
        taken.clear()
        ones = np.ones(40, np.int64)
        named = cp.zeros(graph.n_edges, np.uint8)
        volumes = flows_gpu.Volumes(
            sources, ones, ones, np.arange(41), rows.dtype.type(9), rows=np.arange(40), named=named
        )
        taken.clear()
        flows_gpu.add_flows(there, sources, cp.asarray(rows), volumes, "pairs", edge_sums)
        assert sum(taken) <= flows_gpu.bytes_needed(
            sources.size, n, 40, graph.targets.itemsize, is_through=True
        )


@pytest.mark.skipif(harness.COMPILER is None, reason="no g++ to compile kernels for the host")
@every_mode
@pytest.mark.parametrize("half_to_even", [True, False])
@pytest.mark.parametrize("exponent", [-64, 0, 10])
def test_sums_of_doubles_are_exact(exponent, half_to_even, mode):
    rng = np.random.default_rng(4)
    values = rng.standard_normal(128) * 2.0 ** rng.integers(-90, 40, 128)
    values[:8] = (
        0,
        5e-324,
        2.0**59,
        -(2.0**-64),
        *np.array([0.5, 1.5, -2.5, 2**51 + 0.5]) * 2.0**exponent,
    )
    low, high = np.zeros(2, np.uint64), np.zeros(2, np.int64)
    launch(
        "sums.cu",
        "exact_sums",
        2,
        64,
        values,
        np.int32(exponent),
        np.int32(half_to_even),
        low,
        high,
        mode=mode,
    )
    rounded = round if half_to_even else int  # toward zero
    expected = sum(rounded(Fraction(value) / Fraction(2) ** exponent) for value in values.tolist())
    assert [int(a) + (int(b) << 64) for a, b in zip(low, high, strict=True)] == [expected] * 2
