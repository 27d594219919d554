"""Hierarchies of hops: breadth-first searches over one give the results of every other strategy, for every result kind."""

from __future__ import annotations

import shutil

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kepler_traverse import (
    bfs_many,
    bfs_pairs,
    certify_many,
    load_graph,
    paths,
    plan_bfs_many,
    save_graph,
    with_weights,
)
from kepler_traverse.errors import HierarchyError, InputError, StrategyError
from kepler_traverse.hierarchy.stored import FOLDERS, has_hierarchy, save_hierarchy
from tests.support.graphs import build, edge_rows, lattice, path, rmat, weights_for

SWEEP, SEARCH = "hierarchy_sweep", "source_per_thread"
KINDS = [
    "distances",
    "predecessors",
    "matrix",
    "summary",
    "levels",
    "targets",
    "reachable",
    "k_nearest",
]
KINDS += ["within", "isochrones"]


def options_of(kind, graph):
    more = {"targets": {"targets": graph.ids_at([3, 0, 17])}, "k_nearest": {"k": 3}}
    cutoffs = {"cutoffs": [0, 2, 9]} if kind in ("within", "isochrones") else {}
    return {"result": kind, **more.get(kind, {}), **cutoffs}


def same(one, other):
    return np.array_equal(one, other) if isinstance(one, np.ndarray) else one.equals(other)


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_every_result_kind_is_that_of_searches(kind, directed):
    graph = build([*lattice(9, 29), (400, 401)], directed=directed)
    graph.hierarchy("hops")
    sources, options = graph.ids_at(np.arange(0, 263, 7)), options_of(kind, graph)
    expected = bfs_many(graph, sources, strategy=SEARCH, **options)
    assert same(bfs_many(graph, sources, strategy=SWEEP, **options), expected)
    more = []
    if kind in ("distances", "summary", "levels"):
        more.append({"max_depth": 4})
    if kind == "summary":
        more.append({"direction": "in"})
    for each in more:
        expected = bfs_many(graph, sources, strategy=SEARCH, **options, **each)
        assert same(bfs_many(graph, sources, strategy=SWEEP, **options, **each), expected)


@given(edge_rows(), st.booleans())
def test_hops_pairs_and_paths_of_any_graph(rows, directed):
    graph = build(rows, directed=directed)
    ids = np.asarray(graph.ids)
    pairs = np.repeat(ids, ids.size), np.tile(ids, ids.size)
    expected = (
        paths(graph, pairs),
        bfs_pairs(graph, *pairs),
        bfs_many(graph, "all", result="levels"),
    )
    graph.hierarchy("hops")
    assert paths(graph, pairs, strategy=SWEEP).equals(expected[0])
    assert bfs_pairs(graph, *pairs, strategy=SWEEP).equals(expected[1])
    assert bfs_many(graph, "all", result="levels", strategy=SWEEP).equals(expected[2])
    known = (nx.DiGraph if directed else nx.Graph)()
    known.add_nodes_from(ids.tolist())
    known.add_edges_from(rows)
    lengths = dict(nx.all_pairs_shortest_path_length(known))
    expected_hops = [
        lengths[s].get(t, -1) for s, t in zip(*(each.tolist() for each in pairs), strict=True)
    ]
    assert expected[1]["distance"].fillna(-1).tolist() == expected_hops


def test_hierarchies_of_hops_and_weights_are_used_and_certified():
    rows = lattice(120, 121)
    graph = build(rows, weights_for(rows, 1), directed=False)
    weighted, hops = graph.hierarchy(), graph.hierarchy(metric="hops")
    assert graph.hierarchy("hops") is hops is not weighted
    plan = plan_bfs_many(graph, n_sources=64)
    assert plan.ranked(64)[0].name == SWEEP
    found = plan_bfs_many(graph, n_sources=16, strategy=SWEEP).run(np.arange(16)).distance
    certify_many(graph, np.arange(16), found).require()
    other = with_weights(graph, np.ones(graph.n_edges, np.int64), per="edge")
    assert other.derived.known_hierarchy("weights") is None
    assert other.derived.known_hierarchy("hops") is hops
    bare = graph.derived.without_hierarchy()
    assert {bare.derived.known_hierarchy(metric) for metric in ("weights", "hops")} == {None}
    assert graph.derived.known_hierarchy("hops") is hops
    assert "a hierarchy would" in plan_bfs_many(bare, n_sources=64).why
    with pytest.raises(StrategyError, match=r"graph\.hierarchy\(metric=.hops.\)"):
        plan_bfs_many(bare, n_sources=2, strategy=SWEEP)


def test_counts_of_a_second_group_are_its_own():
    graph = build(path(700), directed=False)
    graph.hierarchy("hops")
    plan, other = (
        plan_bfs_many(graph, n_sources=16, strategy=each, result="levels")
        for each in (SWEEP, SEARCH)
    )
    for sources in ([0, 350], [350, 349, 7], [700]):
        assert plan.run(sources).counts.tolist() == other.run(sources).counts.tolist()


@pytest.mark.parametrize("directed", [True, False])
def test_hierarchies_of_hops_and_weights_are_stored_each_in_its_folder(directed, tmp_path):
    rows = lattice(12, 12)
    graph = build(rows, weights_for(rows, 1), directed)
    graph.hierarchy("hops")
    save_graph(graph, tmp_path / "graph")
    assert [has_hierarchy(tmp_path / "graph", metric) for metric in FOLDERS] == [False, True]
    graph.hierarchy()
    save_graph(graph, tmp_path / "graph")  # a stored graph with a hierarchy is replaced
    loaded = load_graph(tmp_path / "graph")
    for metric in FOLDERS:
        before, after = (
            graph.derived.known_hierarchy(metric),
            loaded.derived.known_hierarchy(metric),
        )
        assert np.array_equal(before.order, after.order)
        assert np.array_equal(before.downward.weights, after.downward.weights)
    shutil.rmtree(tmp_path / "graph" / FOLDERS["hops"])
    (tmp_path / "other").mkdir()
    save_hierarchy(graph.hierarchy(), tmp_path / "other", graph.fingerprint)
    shutil.copytree(tmp_path / "other" / FOLDERS["weights"], tmp_path / "graph" / FOLDERS["hops"])
    with pytest.raises(InputError, match="that of another metric"):
        load_graph(tmp_path / "graph")


def test_a_graph_without_weights_has_a_hierarchy_of_hops_alone(monkeypatch):
    graph = build(lattice(5, 5))
    with pytest.raises(HierarchyError, match="take metric='hops'"):
        graph.hierarchy()
    with pytest.raises(InputError, match="metric"):
        graph.hierarchy("minutes")
    assert graph.hierarchy("hops").n_vertices == 25
    monkeypatch.setattr("kepler_traverse.hierarchy.build._SMALL", 1)
    with pytest.raises(HierarchyError, match="Networks with hubs"):
        build(rmat(12, 8, seed=5), directed=False).hierarchy("hops")
