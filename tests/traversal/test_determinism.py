"""Bits that must be equal: over strategies, batches, threads and relations between graphs; results of other libraries."""

from __future__ import annotations

import hashlib

import numba
import numpy as np
import pyarrow.parquet as pq
import pytest

from kepler_traverse import graph_from_edges, plan_bfs, plan_sssp
from kepler_traverse.bfs import REGISTRY as BFS_REGISTRY
from kepler_traverse.certificate import certify, certify_many
from kepler_traverse.errors import PrecisionError
from kepler_traverse.search.results import checksum
from kepler_traverse.sssp import REGISTRY as SSSP_REGISTRY
from pipelines.output.layout import Layout
from pipelines.output.part_file import Answer, write_part
from pipelines.output.store import Store
from tests.support import oracle
from tests.support.graphs import build, rmat, weights_for
from tests.support.plans import table_of

BFS = BFS_REGISTRY.with_plugins()[0]
SSSP = SSSP_REGISTRY.with_plugins()[0]

STRATEGIES = [(plan_bfs, row.name) for row in BFS if row.device == "cpu"]
STRATEGIES += [(plan_sssp, row.name) for row in SSSP if row.device == "cpu" and row.sums == "float"]
every_strategy = pytest.mark.parametrize(
    ("plan_of", "name"), STRATEGIES, ids=[f"{plan.__name__[5:]}-{name}" for plan, name in STRATEGIES]
)


def random_rows(seed, n=50, m=200, kind="floats"):
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, n, (m, 2))
    scale = 10.0 ** rng.integers(-3, 4, m)
    weights = rng.integers(0, 20, m) if kind == "integers" else (rng.exponential(1, m) * scale).astype(np.float32)
    return ends, weights


def graph_of(ends, weights, directed=True, vertices=None, weight_type="auto"):
    return graph_from_edges(
        ends[:, 0].copy(), ends[:, 1].copy(), weights, directed=directed, vertices=vertices, weight_type=weight_type
    )


def answers(graph, plan_of, name, sources):
    """Distances by the user's ids, as bytes: {source: {vertex: bytes}}."""
    plan = plan_of(graph, strategy=name, predecessors=False)
    found = {}
    for source in sources:
        result = plan(source)
        at = np.flatnonzero(result.reached)
        found[source] = {int(v): d.tobytes() for v, d in zip(graph.ids[at], result.distance[at], strict=True)}
    return found


# --- one result, however it is computed ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("directed", "weight_type"), [(True, "float32"), (False, "float32"), (True, "float64")])
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


def test_a_float64_run_of_float32_weights_differs_only_by_rounding():
    graph = graph_of(*random_rows(4), weight_type="float64")
    narrow = graph_of(*random_rows(4))
    for source in range(0, graph.n_vertices, 7):
        wide, result = plan_sssp(graph).run(source).distance, plan_sssp(narrow).run(source).distance
        np.testing.assert_allclose(result, wide, rtol=1e-5)


@pytest.mark.parametrize("plan_of", [plan_bfs, plan_sssp])
def test_batches_of_1_of_7_and_of_all_hold_the_same_rows_and_the_same_sum(tmp_path, plan_of):
    graph = graph_of(*random_rows(5, n=20, m=70))
    plan = plan_of(graph)
    rows, sums = set(), set()
    for size in (1, 7, graph.n_vertices):
        folder = tmp_path / str(size)
        folder.mkdir()
        parts = []
        for number, first in enumerate(range(0, graph.n_vertices, size)):
            sources = range(first, min(first + size, graph.n_vertices))
            runs = (plan.run(source) for source in sources)
            made = (
                Answer.of_one(int(graph.ids[r.source]), table_of(graph, r, plan.query), checksum(r, graph.returns_integers))
                for r in runs
            )
            parts.append(write_part(Store(folder), number, Layout(run="run"), made))
        table = pq.read_table(folder).combine_chunks()
        rows.add(hashlib.sha256(b"".join(column.to_numpy().tobytes() for column in table.columns)).hexdigest())
        sums.add(sum(int(part["checksum"], 16) for part in parts) % 2**64)
    assert len(rows) == len(sums) == 1


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
                into = [int(u) for u, x in zip(src[tight], graph.targets[tight], strict=True) if x == v]
                expected[v] = min(u for u in into if (d[u], layer[u]) < (d[v], layer[v]))
            assert result.predecessor.tolist() == expected.tolist()


# --- relations between graphs that must keep every bit ------------------------------------------------------------------


def relabelled(ends, weights, rng):
    new = rng.permutation(500)[: ends.max() + 1]
    return new[ends], weights, lambda v: int(new[v]), lambda d: d


def reordered(ends, weights, rng):
    order = rng.permutation(len(ends))
    return ends[order], weights[order], lambda v: v, lambda d: d


def with_longer_parallels_and_loops(ends, weights, rng):
    loops = np.repeat(rng.integers(0, ends.max(), 20)[:, None], 2, axis=1)
    more = np.concatenate([ends, ends[::3], loops])
    return more, np.concatenate([weights, weights[::3] * 2, np.ones(20, weights.dtype)]), lambda v: v, lambda d: d


def beside_another_component(ends, weights, rng):
    other = rng.integers(1000, 1050, ends.shape)
    return np.concatenate([ends, other]), np.concatenate([weights, weights]), lambda v: v, lambda d: d


def scaled_by_a_power_of_two(ends, weights, rng):  # noqa: ARG001
    return ends, weights * weights.dtype.type(8), lambda v: v, lambda d: d * 8 if d.dtype.kind == "f" else d


RELATIONS = [
    relabelled,
    reordered,
    with_longer_parallels_and_loops,
    beside_another_component,
    scaled_by_a_power_of_two,
]


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.__name__)
def test_a_relation_between_graphs_keeps_every_bit(relation):
    for seed in range(3):
        ends, weights = random_rows(seed)
        changed, changed_weights, name_of, distance_of = relation(ends, weights, np.random.default_rng(seed))
        for plan_of in (plan_bfs, plan_sssp):
            before, after = graph_of(ends, weights), graph_of(changed, changed_weights)
            for source in before.ids[::9].tolist():
                result = plan_of(before)(source)
                at = np.flatnonzero(result.reached)
                expected = {
                    name_of(int(v)): distance_of(d).tobytes()
                    for v, d in zip(before.ids[at], result.distance[at], strict=True)
                }
                assert answers(after, plan_of, "auto", [name_of(source)])[name_of(source)] == expected


def test_distances_never_decrease_with_fewer_or_longer_edges():
    for seed in range(3):
        ends, weights = random_rows(seed)
        vertices = np.unique(ends)
        before = graph_of(ends, weights, vertices=vertices)
        fewer = graph_of(ends[::2], weights[::2], vertices=vertices)
        longer = graph_of(ends, weights * np.float32(1.5), vertices=vertices)
        for source in range(0, before.n_vertices, 9):
            nearest = plan_sssp(before).run(source).distance
            assert (plan_sssp(fewer).run(source).distance >= nearest).all()
            assert (plan_sssp(longer).run(source).distance >= nearest).all()


def test_unit_weights_are_hops_and_integer_distances_are_the_same_backwards():
    for seed in range(3):
        ends, weights = random_rows(seed, kind="integers")
        graph = graph_of(ends, weights)
        unit = graph_of(ends, np.ones(len(ends), np.float32))
        there = np.array([plan_sssp(graph).run(s).distance.copy() for s in range(graph.n_vertices)])
        back = np.array([plan_sssp(graph.reverse).run(s).distance.copy() for s in range(graph.n_vertices)])
        assert (there == back.T).all()
        for source in range(0, graph.n_vertices, 9):
            hops = plan_bfs(graph).run(source).distance.astype(np.float32)
            hops[hops < 0] = np.inf
            assert (plan_sssp(unit).run(source).distance == hops).all()


# --- other libraries ----------------------------------------------------------------------------------------------------


def of_scipy(graph, sources):
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import dijkstra

    matrix = csr_matrix((graph.weights.astype(np.float64), graph.targets, graph.offsets), shape=(graph.n_vertices,) * 2)
    return dijkstra(matrix, indices=sources)


def of_networkx(graph, sources):
    networkx = pytest.importorskip("networkx")
    other = networkx.DiGraph()
    other.add_nodes_from(range(graph.n_vertices))
    src = np.repeat(np.arange(graph.n_vertices), graph.derived.degrees)
    other.add_weighted_edges_from(zip(src.tolist(), graph.targets.tolist(), graph.weights.tolist(), strict=True))
    found = np.full((len(sources), graph.n_vertices), np.inf)
    for i, source in enumerate(sources):
        for vertex, distance in networkx.single_source_dijkstra_path_length(other, source).items():
            found[i, vertex] = distance
    return found


def of_igraph(graph, sources):
    igraph = pytest.importorskip("igraph")
    src = np.repeat(np.arange(graph.n_vertices), graph.derived.degrees)
    edges = list(zip(src.tolist(), graph.targets.tolist(), strict=True))
    other = igraph.Graph(n=graph.n_vertices, edges=edges, directed=True)
    return np.array(other.distances(source=sources, weights=graph.weights.astype(np.float64).tolist(), mode="out"))


@pytest.mark.parametrize("baseline", [of_scipy, of_networkx, of_igraph], ids=lambda baseline: baseline.__name__[3:])
def test_distances_are_those_of_other_libraries(baseline):
    for seed in range(4):
        ends, weights = random_rows(seed, n=40, m=100 + 40 * seed, kind="integers")
        graph = graph_of(ends, weights, directed=seed % 2 == 0)  # each has the result of one rule for parallel edges
        sources = list(range(0, graph.n_vertices, 4))
        expected = baseline(graph, sources)
        for i, source in enumerate(sources):
            assert (plan_sssp(graph).run(source).distance == expected[i]).all()


# --- extremes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for plan, name in STRATEGIES if plan is plan_sssp])
def test_weights_from_the_smallest_to_the_largest_number_give_the_bits_of_dijkstra(name):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        ends = rng.integers(0, 40, (160, 2))
        weights = (10.0 ** rng.uniform(-45, 36, 160)).astype(np.float32)  # some are 0, some subnormal
        graph = graph_of(ends, weights)
        rows = [(int(u), int(v), w) for (u, v), w in zip(ends, weights, strict=True)]
        neighbors = oracle.edges_of(rows)
        for source in graph.ids[::7].tolist():
            expected = {v: d.tobytes() for v, d in oracle.dijkstra(neighbors, source).items()}
            assert answers(graph, plan_sssp, name, [source])[source] == expected
            certify(graph, plan_sssp(graph, strategy=name)(source)).require()


def test_a_distance_beyond_the_largest_number_is_an_error_and_never_unreached():
    graph = build([(0, 1), (1, 2), (2, 3)], np.array([3e38, 3e38, 1], np.float32))
    with pytest.raises(PrecisionError, match="float64"):
        plan_sssp(graph)(0)
    wide = build([(0, 1), (1, 2), (2, 3)], np.array([3e38, 3e38, 1], np.float32), weight_type="float64")
    assert plan_sssp(wide)(0).distance[3] == float(np.float32(3e38)) * 2 + 1


def test_weights_that_are_absorbed_lose_no_vertex():
    graph = build([(0, 1), (1, 2), (2, 3), (3, 1)], np.array([1e8, 1, 1, 1], np.float32))
    result = plan_sssp(graph)(0)
    assert result.distance.tolist() == [0, 1e8, 1e8, 1e8]
    assert result.predecessor.tolist() == [0, 0, 1, 2]
    certify(graph, result).require()
    certify_many(graph, np.array([0]), result.distance[None]).require()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("rows", "vertices"), [([], []), ([], [7]), ([], [7, 9]), ([(7, 7)], [7]), ([(7, 9)], [7, 9]), ([(7, 8)], [1, 7, 8, 9])]
)
def test_tiny_graphs_have_results_and_certificates(rows, vertices, weighted):
    ends = np.array(rows, np.int64).reshape(-1, 2)
    graph = graph_of(ends, np.ones(len(rows), np.float32) if weighted else None, vertices=np.array(vertices, np.int64))
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


def test_every_vertex_can_be_a_source_also_those_without_edges():
    rows = rmat(7, 4, seed=2)
    graph = build(rows, weights_for(rows, 2), vertices=np.arange(200))
    sources = np.arange(graph.n_vertices)
    for plan in (plan_bfs(graph, predecessors=False), plan_sssp(graph, predecessors=False)):
        distances = np.array([plan.run(int(source)).distance.copy() for source in sources])
        assert (np.diag(distances) == 0).all()
        certify_many(graph, sources, distances).require()


@pytest.mark.parametrize("boundary", [2**31 - 1, 2**31, 2**32])
def test_adjacency_lists_beyond_the_32nd_bit_of_an_edge_position_are_found(tmp_path, boundary):
    """One adjacency list crosses the boundary, and others follow it."""

    def graph_of(name, last_targets, ends):
        targets = np.memmap(tmp_path / name, np.int32, "w+", shape=(boundary + 4,))  # a file with holes takes no space
        targets[boundary - 3 :] = last_targets
        graph = graph_from_edges(np.array([0]), np.array([9]), vertices=np.arange(10))
        object.__setattr__(graph, "offsets", np.array(ends, np.int64))
        object.__setattr__(graph, "targets", np.asarray(targets))
        return graph

    # The positions before belong to no vertex. The first six edges are those of vertex 1, and the last one is that of 4.
    first = boundary - 3
    graph = graph_of("targets", [2, 4, 5, 6, 7, 8, 9], [first] * 2 + [first + 6] * 3 + [boundary + 4] * 6)
    # The same edges the other way round.
    ends = [first, first, first, first + 1, first + 1, *range(first + 2, boundary + 5)]
    graph.derived.kept["reverse"] = graph_of("sources", [1, 1, 1, 1, 1, 1, 4], ends)
    result = plan_bfs(graph, strategy="queue").run(1)
    assert result.distance.tolist() == [-1, 0, 1, -1, 1, 1, 1, 1, 1, 2]
    assert result.predecessor.tolist() == [-1, 1, 1, -1, 1, 1, 1, 1, 1, 4]
    certify(graph, result).require()
    wrong = result.copy()
    wrong.distance[9], wrong.predecessor[9] = -1, -1
    assert set(certify(graph, wrong).failures) == {"C3"}
