"""Betweenness: equal to NetworkX, to counts in Python's fractions, and to itself for any groups and threads."""

from __future__ import annotations

import random
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kepler_traverse import (
    CertificateError,
    InputError,
    bfs_many,
    graph_from_edges,
    plan_bfs_many,
    sssp_many,
)
from kepler_traverse.cpu import betweenness as cpu
from kepler_traverse.kinds import betweenness
from kepler_traverse.kinds.path_counts import PathCounts, require_path_counts
from kepler_traverse.kinds.records import Asked
from kepler_traverse.kinds.result_kinds import RESULT_KINDS, BetweennessOptions
from tests.support import tiers
from tests.support.graphs import lattice, rmat

CLOSE = {"rtol": 1e-12, "atol": 1e-12}


@st.composite
def networks(draw):
    """A graph with parallel edges, self-loops and several components, and the same in NetworkX."""
    n, directed, kind = (
        draw(st.integers(1, 12)),
        draw(st.booleans()),
        draw(st.sampled_from(["none", "int64", "float32"])),
    )
    ends = st.integers(0, n - 1)
    rows = draw(st.lists(st.tuples(ends, ends, st.integers(1, 4)), max_size=40))
    src, dst, weights = (
        (np.array(column, np.int64) for column in zip(*rows, strict=True))
        if rows
        else np.zeros((3, 0), np.int64)
    )
    weights = weights / 4 if kind == "float32" else weights
    there = (nx.DiGraph if directed else nx.Graph)()
    there.add_nodes_from(range(n))
    for u, v, weight in zip(src.tolist(), dst.tolist(), weights.tolist(), strict=True):
        there.add_edge(
            u, v, weight=min(weight, there.get_edge_data(u, v, {"weight": weight})["weight"])
        )
    own = None if kind == "none" else weights.astype(kind)
    return (
        graph_from_edges(src, dst, own, vertices=np.arange(n), directed=directed),
        there,
        None if kind == "none" else "weight",
    )


def many(graph, weight, sources="all", **options):
    return (bfs_many if weight is None else sssp_many)(
        graph, sources, result="betweenness", **options
    )


def by_cell(frame):
    """The values by vertex or by edge."""
    names = [name for name in ("vertex", "src", "dst") if name in frame]
    keys = (
        frame[names[0]].tolist()
        if len(names) == 1
        else list(zip(frame["src"], frame["dst"], strict=True))
    )
    return dict(zip(keys, frame["betweenness"].tolist(), strict=True))


def is_loop(cell):
    # the graph has none; NetworkX gives them 0
    return isinstance(cell, tuple) and cell[0] == cell[1]


def assert_equal(frame, expected):
    found = by_cell(frame)
    known = {
        cell if cell in found else cell[::-1]: value
        for cell, value in expected.items()
        if not is_loop(cell)
    }
    assert found.keys() == known.keys()
    np.testing.assert_allclose([found[cell] for cell in known], list(known.values()), **CLOSE)


@settings(max_examples=tiers.examples(160), deadline=None)
@given(networks(), st.booleans(), st.booleans(), st.data())
def test_values_are_those_of_networkx(network, normalized, endpoints, data):
    graph, there, weight = network
    of = {"normalized": normalized, "weight": weight}
    assert_equal(
        many(graph, weight, normalized=normalized, endpoints=endpoints),
        nx.betweenness_centrality(there, endpoints=endpoints, **of),
    )
    assert_equal(
        many(graph, weight, of="edges", normalized=normalized),
        nx.edge_betweenness_centrality(there, **of),
    )
    subsets = st.lists(st.sampled_from(sorted(there)), min_size=1, unique=True)
    ends = {"sources": data.draw(subsets), "targets": data.draw(subsets)}
    assert_equal(
        many(graph, weight, normalized=normalized, **ends),
        nx.betweenness_centrality_subset(there, **ends, **of),
    )
    if len(there) > 2:
        k, seed = data.draw(st.integers(2, len(there))), data.draw(st.integers(0, 9))
        assert_equal(
            many(graph, weight, samples=k, seed=seed, normalized=normalized, endpoints=endpoints),
            nx.betweenness_centrality(there, k, seed=seed, endpoints=endpoints, **of),
        )
        assert_equal(
            many(graph, weight, of="edges", samples=k, seed=seed, normalized=normalized),
            nx.edge_betweenness_centrality(there, k, seed=seed, **of),
        )


def counted(graph, weight, source, targets=None, cutoff=np.inf):
    """What each vertex carries for one source, in fractions, by sets of predecessors."""
    distance = dict(
        nx.single_source_dijkstra_path_length(graph, source, weight=weight or (lambda *_: 1))
    )
    order = [v for v in distance if distance[v] <= cutoff]
    paths, before = {source: 1}, {source: []}
    for v in order[1:]:
        pred = graph.predecessors(v) if graph.is_directed() else graph.neighbors(v)
        before[v] = [
            u
            for u in pred
            if u in paths and distance[u] + (graph[u][v][weight] if weight else 1) == distance[v]
        ]
        paths[v] = sum(paths[u] for u in before[v])
    load = dict.fromkeys(order, Fraction(0))
    for v in reversed(order[1:]):
        for u in before[v]:
            load[u] += Fraction(paths[u], paths[v]) * ((targets is None or v in targets) + load[v])
    return {v: x for v, x in load.items() if v != source}


@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("directed", [False, True])
def test_a_cutoff_and_targets_limit_the_pairs(weight, directed):
    there = nx.gnm_random_graph(60, 160, seed=4, directed=directed)
    rng = np.random.default_rng(5)
    for u, v in there.edges:
        there[u][v]["weight"] = int(rng.integers(1, 4))
    src, dst, weights = map(np.array, zip(*there.edges(data="weight"), strict=True))
    graph = graph_from_edges(src, dst, weights, vertices=np.arange(60), directed=directed)
    for targets in (None, [3, 7, 40]):
        expected = dict.fromkeys(there, Fraction(0))
        for source in there:
            for v, load in counted(there, weight, source, targets, 4).items():
                expected[v] += load
        limit = {"max_depth": 4} if weight is None else {"cutoff": 4}
        found = by_cell(many(graph, weight, normalized=False, targets=targets, **limit))
        scale = 1 if directed else 2
        np.testing.assert_allclose(
            [found[v] * scale for v in there], [float(expected[v]) for v in there], **CLOSE
        )


def test_counts_beyond_doubles_are_those_of_fractions():
    there = nx.convert_node_labels_to_integers(nx.grid_2d_graph(30, 30), ordering="sorted")
    src, dst = map(np.array, zip(*lattice(30, 30), strict=True))
    graph = graph_from_edges(src, dst, directed=False)
    expected = counted(there, None, 0)
    found = by_cell(bfs_many(graph, [0], result="betweenness", normalized=False))
    np.testing.assert_allclose(
        [2 * found[v] for v in expected], [float(x) for x in expected.values()], rtol=1e-12
    )


def test_counts_beyond_the_largest_float_have_exponents():
    """On a lattice of 600 x 600 a corner has 2**1194 paths to the other; the plane is symmetric, and its lines carry all."""
    at = np.arange(600 * 600).reshape(600, 600)
    src = np.concatenate([at[:, :-1].ravel(), at[:-1].ravel()])
    dst = np.concatenate([at[:, 1:].ravel(), at[1:].ravel()])
    graph = graph_from_edges(src, dst, directed=False)
    frame = bfs_many(graph, [0], result="betweenness", normalized=False)
    found = 2 * frame["betweenness"].to_numpy().reshape(600, 600)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, found.T, rtol=1e-12)
    # A path from the corner crosses each diagonal once, on its way to a vertex beyond it.
    levels = np.add.outer(np.arange(600), np.arange(600))
    sizes = np.bincount(levels.ravel())
    crossing = np.bincount(levels.ravel(), found.ravel())[1:]
    np.testing.assert_allclose(crossing, [*sizes[::-1].cumsum()[::-1][2:].tolist(), 0], rtol=1e-11)


@pytest.mark.parametrize("weight", [None, "int64"])
def test_exponents_change_no_bit(weight, monkeypatch):
    edges = rmat(7, 4, seed=3)
    src, dst = map(np.array, zip(*edges, strict=True))
    graph = graph_from_edges(
        src, dst, None if weight is None else 1 + (src + 3 * dst) % 3, directed=False
    )
    plain = [many(graph, weight, of=of)["betweenness"].tolist() for of in ("vertices", "edges")]
    asked = []

    def scaled(self, sources, rows, kind, scratch, sums, exponents=None):
        for i in range(sources.size):
            of = self.of == "edges" and exponents is None, False
            memory = None if exponents is None else (scratch[0], exponents)
            self._add_scaled(int(sources[i]), rows.distance[i], kind, sums[0], of, memory)
            asked.append(i)

    monkeypatch.setattr(betweenness.Betweenness, "_add_rows", scaled)
    assert [
        many(
            graph,
            weight,
            of=of,
            strategy="source_per_thread" if weight is None else "near_far_per_thread",
        )["betweenness"].tolist()
        for of in ("vertices", "edges")
    ] == plain
    assert asked


@pytest.mark.parametrize("weight", [None, "weight"])
def test_bits_do_not_depend_on_groups_and_strategies(weight):
    src, dst = map(np.array, zip(*rmat(9, 40, seed=1), strict=True))
    graph = graph_from_edges(src, dst, 1 + (src * 7 + dst) % 5, directed=True)
    assert graph.derived.max_degree > cpu.CHUNK
    everything = many(graph, weight)["betweenness"].tolist()
    plan = (
        ("bit_parallel", "source_per_thread")
        if weight is None
        else ("near_far_per_thread", "near_far")
    )
    for strategy in plan:
        assert (
            many(graph, weight, strategy=strategy, memory=10**7)["betweenness"].tolist()
            == everything
        )


def test_an_estimate_carries_its_bound():
    there = nx.barabasi_albert_graph(300, 3, seed=2)
    src, dst = map(np.array, zip(*there.edges, strict=True))
    graph = graph_from_edges(src, dst, directed=False)
    exact = bfs_many(graph, "all", result="betweenness")["betweenness"].to_numpy()
    frame = bfs_many(graph, "all", result="betweenness", epsilon=0.15, delta=0.2, seed=1)
    estimate = frame.attrs["kepler_traverse.estimate"]
    assert estimate["sources"] < 300
    assert estimate["epsilon"] <= 0.15
    # no source too many
    assert betweenness.error_bound(estimate["sources"] - 1, 0.2, 300, 300) > 0.15
    assert 0 < np.abs(frame["betweenness"].to_numpy() - exact).max() <= 0.15
    frame = bfs_many(graph, "all", result="betweenness", epsilon=1e-4)
    assert "kepler_traverse.estimate" not in frame.attrs
    assert frame["betweenness"].tolist() == exact.tolist()


def test_the_bound_holds_as_often_as_it_says():
    """Of means of samples of one 0-1 population, at the most unequal share, at most ``delta`` are farther than the bound."""
    population, rng = [0] * 50 + [1] * 50, random.Random(1)
    for k in (5, 40, 90):
        bound = betweenness.error_bound(k, 0.2, 100, 1)
        far = sum(abs(sum(rng.sample(population, k)) / k - 0.5) > bound for _ in range(2000))
        assert far <= 400


def test_the_kind_and_networkx_draw_the_same_nodes():
    graph = graph_from_edges([0, 1, 2, 3], [1, 2, 3, 4], directed=False)
    options = BetweennessOptions(samples=3, seed=7).checked(
        RESULT_KINDS["betweenness"], graph, "bfs"
    )
    assert options.sources.tolist() == random.Random(7).sample(list(range(5)), 3)


def test_samples_of_a_single_vertex_are_refused_with_what_to_do():
    graph = graph_from_edges([1], [1])
    with pytest.raises(InputError, match="samples needs 2 vertices, and the graph has 1; leave it"):
        bfs_many(graph, "all", result="betweenness", samples=2)
    assert bfs_many(graph, "all", result="betweenness")["betweenness"].tolist() == [0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"samples": 1}, "samples must be from 2 to the number of vertices, 4, not 1"),
        ({"samples": 2, "epsilon": 0.1}, "both say how many sources"),
        ({"epsilon": 2}, "epsilon must be a number between 0 and 1"),
        ({"seed": 1}, "seed is for the choice of sources"),
        ({"samples": 3, "seed": 1.5}, "seed"),
        ({"delta": 0.5}, "delta is the probability that epsilon fails"),
        ({"sources": [0, 1], "samples": 2}, "samples chooses among all vertices"),
        ({"sources": [0, 0]}, "source 0 is given twice"),
        ({"of": "edges", "endpoints": True}, "endpoints is for vertices"),
        ({"of": "paths"}, "of .*vertices"),
        ({"stream": True}, "leave stream out"),
    ],
)
def test_wrong_options_are_refused(options, message):
    graph = graph_from_edges([0, 1, 2], [1, 2, 3])
    with pytest.raises(InputError, match=message):
        many(graph, None, **options)


@pytest.mark.parametrize("weights", [[2, 0, 1], [2.0, -1.0, 1.0]])
def test_weights_of_zero_or_less_are_refused_by_their_edge(weights):
    graph = graph_from_edges(["a", "b", "c"], ["b", "c", "d"], weights)
    with pytest.raises(InputError, match=r"the edge from 'b' to 'c' has weight -?[01].*above 0"):
        sssp_many(graph, "all", result="betweenness")
    assert len(bfs_many(graph, "all", result="betweenness")) == 4


def certified(graph, source, row, change):
    """Certify the counts of one source after a change of the paths, of what vertices carry, or of distances."""
    asked = Asked(
        kind=RESULT_KINDS["betweenness"],
        graph=graph,
        algorithm="bfs",
        query=plan_bfs_many(graph, n_sources=1).query,
        options=BetweennessOptions().checked(RESULT_KINDS["betweenness"], graph, "bfs"),
    )
    loads = betweenness.Betweenness(asked)
    sums = betweenness.ExactSums(row.size, -64)
    scratch, exponents = (
        cpu.new_scratch(row.size, graph.n_edges, np.int32(-1)),
        np.zeros(row.size, np.int64),
    )
    rows = betweenness.HostRows.of(row[None])
    loads._add_rows(np.array([source]), rows, row.dtype, [scratch], [sums], exponents)
    arrays = {
        "paths": scratch.paths,
        "exponents": exponents,
        "carried": sums.floats(np.arange(row.size)),
    }
    change(arrays)
    require_path_counts(graph, source, row, np.int32(2**31 - 2), PathCounts(**arrays))


@pytest.mark.parametrize("name", ["paths", "exponents", "carried"])
def test_the_certificate_finds_a_fault_at_any_vertex(name):
    src, dst = map(np.array, zip(*lattice(6, 7), strict=True))
    graph = graph_from_edges(src, dst, directed=False)
    row = (
        next(iter(plan_bfs_many(graph, n_sources=1).iter_groups(np.array([8]))))
        .as_rows()
        .distance[0]
        .astype(np.int32)
    )
    certified(graph, 8, row, lambda _: None)
    for v in range(42):
        for factor in (1 + 1e-6, 0.5):

            def change(arrays, v=v, factor=factor):
                arrays[name][v] = (
                    arrays[name][v] + 1
                    if name == "exponents"
                    else arrays[name][v] * factor + (name == "carried")
                )

            with pytest.raises(CertificateError, match="source 8 are wrong"):
                certified(graph, 8, row, change)


def test_a_wrong_count_of_a_kernel_is_found_in_each_group(monkeypatch):
    graph = graph_from_edges([0, 0, 1, 2], [1, 2, 3, 3], directed=False)
    rows = cpu.add_by_hops

    def wrong(*args):
        rows(*args)
        scratch = args[-2]
        scratch.paths[3] += 1

    monkeypatch.setattr(cpu, "add_by_hops", wrong)
    with pytest.raises(CertificateError, match="paths to vertex 3 from source 0"):
        bfs_many(graph, "all", result="betweenness")
