"""Paths and distances of pairs that are looked up in a hierarchy are those of searches."""

from __future__ import annotations

import dataclasses

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kepler_traverse import paths, sssp_pairs
from kepler_traverse.errors import CertificateError
from kepler_traverse.kinds.pairs import pair_table
from kepler_traverse.kinds.paths import find_routes, walk_back, walk_by_distances
from kepler_traverse.sssp import REGISTRY
from tests.support.graphs import NAMED, build, lattice, path, rmat, weighted_rows, weights_for

ONE_WAY = [(v, v + 1) for v in range(60)] + [(v + 2, v) for v in range(0, 59, 3)]
SWEEP, SEARCH = "hierarchy_sweep", "near_far_per_thread"


def all_pairs(graph):
    ids = np.asarray(graph.ids)
    return np.repeat(ids, ids.size), np.tile(ids, ids.size)


def canonical_path(weights, distance, source, target):
    """The path by the rule of docs/decisions.md, from the distances and the weights ``{(u, v): w}`` alone."""
    layer = {source: 0}
    before = {}
    for v in distance:
        nearer = [
            u
            for (u, x), w in weights.items()
            if x == v and distance.get(u, np.inf) < distance[v] == distance[u] + w
        ]
        if nearer and v != source:
            layer[v], before[v] = 0, min(nearer)
    for depth in range(1, len(distance) + 1):
        last = {u for u, found in layer.items() if found == depth - 1}
        for v in distance.keys() - layer.keys():
            equal = [u for u in last if weights.get((u, v)) == 0 and distance[u] == distance[v]]
            if equal:
                layer[v], before[v] = depth, min(equal)
    found = [target]
    while found[-1] != source:
        found.append(before[found[-1]])
    return found[::-1]


@given(weighted_rows(st.sampled_from([0, 0, 1, 2]), max_vertices=8, max_rows=24), st.booleans())
def test_paths_follow_the_rule_of_canonical_predecessors(drawn, directed):
    rows, given_weights = drawn
    graph = build(rows, given_weights, directed)
    graph.hierarchy()
    weights = {}
    for (u, v), w in zip(rows, given_weights, strict=True):
        for ends in [(u, v)] if directed else [(u, v), (v, u)]:
            weights[ends] = min(w, weights.get(ends, w))
    known = nx.DiGraph()
    known.add_nodes_from(np.asarray(graph.ids).tolist())
    known.add_weighted_edges_from((u, v, w) for (u, v), w in weights.items())
    origins, destinations = all_pairs(graph)
    found = (
        paths(graph, (origins, destinations), strategy=SWEEP)
        .groupby("pair")["vertex"]
        .apply(list)
        .to_dict()
    )
    distances = {s: nx.single_source_dijkstra_path_length(known, s) for s in known}
    expected = {
        pair: canonical_path(weights, distances[s], s, t)
        for pair, (s, t) in enumerate(zip(origins.tolist(), destinations.tolist(), strict=True))
        if t in distances[s]
    }
    assert found == expected


@given(weighted_rows(st.sampled_from([0, 0, 0, 1, 3, 2**40]), max_rows=60), st.booleans())
def test_paths_and_distances_of_any_graph_are_those_of_searches(drawn, directed):
    # parallel edges, self-loops, zero weights and their cycles, several components
    graph = build(*drawn, directed)
    pairs = all_pairs(graph)
    expected = paths(graph, pairs), sssp_pairs(graph, *pairs)
    graph.hierarchy()
    assert paths(graph, pairs, strategy=SWEEP).equals(expected[0])
    assert sssp_pairs(graph, *pairs, strategy=SWEEP).equals(expected[1])


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize(
    "rows",
    [ONE_WAY, lattice(20, 33), path(1025), rmat(8, 4, seed=3), NAMED["two components"]],
    ids=len,
)
def test_paths_of_large_graphs_are_those_of_searches(rows, directed):
    graph = build(rows, [w % 4 for w in weights_for(rows, 1)], directed)
    rng = np.random.default_rng(2)
    ids = np.asarray(graph.ids)
    pairs = rng.choice(ids, 300), rng.choice(ids, 300)
    expected = paths(graph, pairs), sssp_pairs(graph, *pairs)
    graph.hierarchy()
    assert paths(graph, pairs, strategy=SWEEP).equals(expected[0])
    assert sssp_pairs(graph, *pairs, strategy=SWEEP).equals(expected[1])
    one = np.repeat(ids[:1], 50), rng.choice(ids, 50)
    assert paths(graph, one).equals(paths(graph, one, strategy=SEARCH))
    assert sssp_pairs(graph, *one).equals(sssp_pairs(graph, *one, strategy=SEARCH))


def planned(graph, table, **options):
    defaults = {"result": "paths"}
    plan = REGISTRY.plan_multi_source(graph, n_sources=table.sources.size, **(defaults | options))
    assert plan.group >= table.sources.size
    return plan, plan.run(table.sources, table.lists)


@pytest.mark.parametrize("limit", [None, 0, 7, 30.5])
@pytest.mark.parametrize("kind", ["integers", "halves", "beyond 32 bits"])
def test_all_ways_to_find_paths_agree(kind, limit):
    rows = lattice(9, 11)
    weights = np.array(weights_for(rows, 4)) % 5
    weights = {
        "integers": weights,
        "halves": weights.astype(np.float32) / 2,
        "beyond 32 bits": weights * 2**26,
    }[kind]
    scale = 2**26 if kind == "beyond 32 bits" else 1
    limit = None if limit is None else limit * scale
    graph = build(rows, weights, weight_type="float64" if kind == "beyond 32 bits" else "auto")
    graph.hierarchy()
    rng = np.random.default_rng(3)
    # 8 origins, one group on any machine
    table = pair_table(*rng.integers(0, graph.n_vertices, (2, 40)) // [[13], [1]])
    options = {"limit": limit, "strategy": SEARCH}
    expected = walk_back(planned(graph, table, **options)[1], table.lists, limit)
    by_distances = walk_by_distances(
        graph,
        planned(graph, table, predecessors=False, output="all", **options)[1],
        table.lists,
        limit,
    )
    plan, found = planned(graph, table, limit=limit, strategy=SWEEP)
    assert found.routes is not None
    assert "paths are looked up" in plan.why
    for routes in (by_distances, find_routes(graph, found, table.lists, limit)):
        assert routes.sizes.tolist() == expected.sizes.tolist()
        assert np.array_equal(routes.vertices, expected.vertices)
        assert routes.vertices.dtype == expected.vertices.dtype
    half = found[2:5].routes
    begin, end = table.lists.offsets[[2, 5]]
    assert half.sizes.tolist() == expected.sizes[begin:end].tolist()
    assert (
        half.vertices.tolist()
        == expected.vertices[expected.sizes[:begin].sum() :][: half.sizes.sum()].tolist()
    )


def test_float_sums_that_would_round_are_searched():
    graph = build(
        path(300), np.full(300, 2.0**19 - 0.5, np.float32), directed=False, weight_type="float32"
    )
    pairs = all_pairs(graph)[0][:600:2], np.arange(300)
    expected = paths(graph, pairs, strategy=SEARCH), sssp_pairs(graph, *pairs, strategy=SEARCH)
    graph.hierarchy()
    assert paths(graph, pairs, strategy=SWEEP).equals(expected[0])
    assert sssp_pairs(graph, *pairs, strategy=SWEEP).equals(expected[1])


def test_a_wrong_hierarchy_is_an_error_and_no_endless_walk():
    rows = lattice(20, 20)
    graph = build(rows, weights_for(rows, 7), directed=False)
    hierarchy = graph.hierarchy()
    pairs = all_pairs(graph)
    chosen = np.random.default_rng(1).choice(pairs[0].size, 400)
    for wrong in (
        hierarchy.upward.weights // 2,
        hierarchy.upward.weights * 0,
        hierarchy.upward.weights + 1,
    ):
        edges = hierarchy.upward._replace(weights=wrong)
        graph.derived.keep_hierarchy(
            dataclasses.replace(hierarchy, upward=edges, downward=edges), "weights"
        )
        with pytest.raises(CertificateError, match="no edge explains a distance"):
            paths(graph, (pairs[0][chosen], pairs[1][chosen]), strategy=SWEEP)


def test_auto_looks_few_paths_up_and_searches_for_many():
    rows = lattice(120, 120)
    graph = build(rows, weights_for(rows, 8), directed=False)
    graph.hierarchy()
    options = {"n_sources": 40, "result": "paths", "strategy": "auto"}
    few, many = (
        REGISTRY.plan_multi_source(graph, targets_per_source=k, **options) for k in (1, 100_000)
    )
    assert few.strategy.name == SWEEP
    assert "paths are looked up, 1 per source" in few.why
    assert many.strategy.name != SWEEP
