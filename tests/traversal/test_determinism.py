"""Bits that must be equal: over strategies and threads, of predecessors, and at the ends of the types."""

from __future__ import annotations

import hashlib

import numba
import numpy as np
import pytest

from kepler_traverse import graph_from_edges, plan_bfs, plan_sssp
from kepler_traverse.certificate import certify, certify_many
from tests.support import oracle
from tests.support.graphs import build
from tests.support.plans import BFS, SSSP

STRATEGIES = [(plan_bfs, row.name) for row in BFS if row.device == "cpu"]
STRATEGIES += [(plan_sssp, row.name) for row in SSSP if row.device == "cpu" and row.sums == "float"]
every_strategy = pytest.mark.parametrize(
    ("plan_of", "name"),
    STRATEGIES,
    ids=[f"{plan.__name__[5:]}-{name}" for plan, name in STRATEGIES],
)


def random_rows(seed, n=50, m=200, kind="floats"):
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, n, (m, 2))
    scale = 10.0 ** rng.integers(-3, 4, m)
    weights = (
        rng.integers(0, 20, m)
        if kind == "integers"
        else (rng.exponential(1, m) * scale).astype(np.float32)
    )
    return ends, weights


def graph_of(ends, weights, directed=True, vertices=None, weight_type="auto"):
    return graph_from_edges(
        ends[:, 0].copy(),
        ends[:, 1].copy(),
        weights,
        directed=directed,
        vertices=vertices,
        weight_type=weight_type,
    )


def answers(graph, plan_of, name, sources):
    """Distances by the user's ids, as bytes: {source: {vertex: bytes}}."""
    plan = plan_of(graph, strategy=name, predecessors=False)
    found = {}
    for source in sources:
        result = plan(source)
        at = np.flatnonzero(result.reached)
        found[source] = {
            int(v): d.tobytes() for v, d in zip(graph.ids[at], result.distance[at], strict=True)
        }
    return found


@pytest.mark.parametrize(
    ("directed", "weight_type"), [(True, "float32"), (False, "float32"), (True, "float64")]
)
def test_strategies_and_numbers_of_threads_give_the_same_bits(directed, weight_type):
    for seed in range(2):
        graph = graph_of(*random_rows(seed), directed=directed, weight_type=weight_type)
        for plan_of, first in ((plan_bfs, "queue"), (plan_sssp, "frontier")):
            seen = set()
            for plan, name in STRATEGIES:
                for threads in (1, numba.config.NUMBA_NUM_THREADS) if plan is plan_of else ():
                    numba.set_num_threads(threads)
                    prepared = plan_of(graph, strategy=name)
                    digest = hashlib.sha256()
                    for source in range(0, graph.n_vertices, 3):
                        result = prepared.run(source)
                        digest.update(result.distance.tobytes())
                        digest.update(result.predecessor.tobytes())
                    seen.add(digest.hexdigest())
            numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
            assert len(seen) == 1, f"seed {seed}, {first}"


@every_strategy
def test_predecessors_are_the_smallest_of_those_that_count_in_every_run(plan_of, name):
    """Of all tight in-neighbors with smaller (distance, zero-length hops) the smallest id, computed here from scratch."""
    for seed in range(3):
        ends, weights = random_rows(seed, n=30, m=150, kind="integers")
        graph = graph_of(ends, weights // 4)
        step = np.ones(graph.n_edges) if plan_of is plan_bfs else graph.weights
        src = np.repeat(np.arange(graph.n_vertices), graph.derived.degrees)
        for source in range(0, graph.n_vertices, 5):
            result = plan_of(graph, strategy=name).run(source)
            d = result.distance.astype(np.float64)
            d[~result.reached] = np.inf
            tight = np.isfinite(d[src]) & (d[src] + step == d[graph.targets])
            layer = {source: 0}  # steps of length zero since the last strictly nearer vertex
            for u, v in zip(src[tight], graph.targets[tight], strict=True):
                if d[u] < d[v]:
                    layer[int(v)] = 0
            for depth in range(1, graph.n_vertices):
                for u, v in zip(src[tight], graph.targets[tight], strict=True):
                    if layer.get(int(u)) == depth - 1:
                        layer.setdefault(int(v), depth)
            expected = np.full(graph.n_vertices, -1)
            expected[source] = source
            for v in set(np.flatnonzero(result.reached).tolist()) - {source}:
                into = [
                    int(u) for u, x in zip(src[tight], graph.targets[tight], strict=True) if x == v
                ]
                expected[v] = min(u for u in into if (d[u], layer[u]) < (d[v], layer[v]))
            assert result.predecessor.tolist() == expected.tolist()


@pytest.mark.parametrize("name", [name for plan, name in STRATEGIES if plan is plan_sssp])
def test_weights_from_the_smallest_to_the_largest_number_give_the_bits_of_dijkstra(name):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        ends = rng.integers(0, 40, (160, 2))
        # some are 0, some subnormal
        weights = (10.0 ** rng.uniform(-45, 36, 160)).astype(np.float32)
        graph = graph_of(ends, weights)
        rows = [(int(u), int(v), w) for (u, v), w in zip(ends, weights, strict=True)]
        neighbors = oracle.edges_of(rows)
        for source in graph.ids[::7].tolist():
            expected = {v: d.tobytes() for v, d in oracle.dijkstra(neighbors, source).items()}
            assert answers(graph, plan_sssp, name, [source])[source] == expected
            certify(graph, plan_sssp(graph, strategy=name)(source)).require()


def test_weights_that_are_absorbed_lose_no_vertex():
    graph = build([(0, 1), (1, 2), (2, 3), (3, 1)], np.array([1e8, 1, 1, 1], np.float32))
    result = plan_sssp(graph)(0)
    assert result.distance.tolist() == [0, 1e8, 1e8, 1e8]
    assert result.predecessor.tolist() == [0, 0, 1, 2]
    certify(graph, result).require()
    certify_many(graph, np.array([0]), result.distance[None]).require()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("rows", "vertices"),
    [
        ([], []),
        ([], [7]),
        ([], [7, 9]),
        ([(7, 7)], [7]),
        ([(7, 9)], [7, 9]),
        ([(7, 8)], [1, 7, 8, 9]),
    ],
)
def test_tiny_graphs_have_results_and_certificates(rows, vertices, weighted):
    ends = np.array(rows, np.int64).reshape(-1, 2)
    graph = graph_of(
        ends,
        np.ones(len(rows), np.float32) if weighted else None,
        vertices=np.array(vertices, np.int64),
    )
    assert graph.n_vertices == len(vertices)
    plan_of = plan_sssp if weighted else plan_bfs
    for plan, name in STRATEGIES:
        for source in vertices if plan is plan_of else ():
            result = plan(graph, strategy=name)(source)
            reached = {source} | {v for u, v in rows if u == source}
            assert graph.ids[result.reached].tolist() == sorted(reached)
            certify(graph, result).require()
    if vertices:
        distances = np.array([plan_of(graph).run(v).distance.copy() for v in range(len(vertices))])
        certify_many(graph, np.arange(len(vertices)), distances).require()


@pytest.mark.parametrize("boundary", [2**31 - 1, 2**31, 2**32])
def test_adjacency_lists_beyond_the_32nd_bit_of_an_edge_position_are_found(tmp_path, boundary):
    """One adjacency list crosses the boundary, and others follow it."""

    def graph_of(name, last_targets, ends):
        # a file with holes takes no space
        targets = np.memmap(tmp_path / name, np.int32, "w+", shape=(boundary + 4,))
        targets[boundary - 3 :] = last_targets
        graph = graph_from_edges(np.array([0]), np.array([9]), vertices=np.arange(10))
        object.__setattr__(graph, "offsets", np.array(ends, np.int64))
        object.__setattr__(graph, "targets", np.asarray(targets))
        return graph

    # The positions before belong to no vertex. The first six edges are those of vertex 1, and the last one is that of 4.
    first = boundary - 3
    graph = graph_of(
        "targets", [2, 4, 5, 6, 7, 8, 9], [first] * 2 + [first + 6] * 3 + [boundary + 4] * 6
    )
    # The same edges the other way round.
    ends = [first, first, first, first + 1, first + 1, *range(first + 2, boundary + 5)]
    graph.derived.cache["reverse"] = graph_of("sources", [1, 1, 1, 1, 1, 1, 4], ends)
    result = plan_bfs(graph, strategy="queue").run(1)
    assert result.distance.tolist() == [-1, 0, 1, -1, 1, 1, 1, 1, 1, 2]
    assert result.predecessor.tolist() == [-1, 1, 1, -1, 1, 1, 1, 1, 1, 4]
    certify(graph, result).require()
    wrong = result.copy()
    wrong.distance[9], wrong.predecessor[9] = -1, -1
    assert set(certify(graph, wrong).failures) == {"C3"}
