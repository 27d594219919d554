"""Labels of networks that have no hierarchy are exact, the smallest of their order, proved, and used."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import dijkstra

from kepler_traverse import (
    certify,
    convert,
    load_graph,
    paths,
    plan_sssp_many,
    save_graph,
    sssp_pairs,
)
from kepler_traverse.errors import HierarchyError
from kepler_traverse.hub_labels import estimate as estimate_module
from kepler_traverse.hub_labels import pruned
from kepler_traverse.hub_labels.build import build_labels
from tests.support import tiers
from tests.support.graphs import build, lattice, rmat, weighted_rows, weights_for
from tests.support.jobs import call, proven, summary_of, write_edges

HUBS = rmat(7, 4, seed=3)
APART = [*HUBS, (900, 901), (901, 902)]


@pytest.fixture
def no_contraction(monkeypatch):
    """No graph has a hierarchy that pays."""

    def refuse(*_):
        raise HierarchyError("no hierarchy")

    monkeypatch.setattr("kepler_traverse.hierarchy.build.build_hierarchy", refuse)


def positive(rows, seed=1):
    return [weight % 9 + 1 for weight in weights_for(rows, seed)]


def check(graph, metric):
    hierarchy, labels = pruned.build_pruned(graph, metric)
    graph.derived.keep_hierarchy(hierarchy, metric)
    graph.derived.keep_labels(labels, metric)
    n = graph.n_vertices
    sums = labels.between(np.repeat(np.arange(n), n), np.tile(np.arange(n), n))
    found = np.where(sums == labels.unreached, np.inf, sums * labels.unit).reshape(n, n)
    expected = dijkstra(convert.to_scipy(graph), unweighted=metric == "hops")
    assert np.array_equal(found, expected)
    certify(graph, labels).require()
    return hierarchy, labels


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("metric", ["weights", "hops"])
@pytest.mark.parametrize("rows", [APART, lattice(20, 20)], ids=len)
def test_all_pairs_are_those_of_scipy(rows, directed, metric):
    graph = build(rows, positive(rows), directed)
    _, labels = check(graph, metric)
    estimate = pruned.estimate_pruned(graph, metric)
    assert estimate.hubs == pytest.approx(labels.hubs_per_vertex, rel=0.2)
    assert estimate.rows == pytest.approx(labels.rows, rel=0.2)


def test_floats_are_multiples_of_a_unit():
    graph = build(HUBS, np.array(positive(HUBS)) / 4, weight_type="float32")
    assert check(graph, "weights")[1].unit == 0.25


def rows_of(labels, direction):
    """The rows of labels as vertices and distances."""
    lists = getattr(labels, direction)
    ends = np.repeat(labels.order, np.diff(lists.offsets)), labels.order[lists.hubs]
    return {*zip(*(each.tolist() for each in (*ends, lists.distances)), strict=True)}


@settings(max_examples=tiers.examples(30))
@given(weighted_rows(st.sampled_from([1, 2, 3, 2**40 - 1, 2**40]), max_rows=50), st.booleans())
def test_labels_of_any_graph_are_those_of_the_hierarchy_of_their_order(drawn, directed):
    # parallel edges, self-loops, several components
    hierarchy, labels = check(build(*drawn, directed), "weights")
    other = build_labels(hierarchy, "weights")
    for direction in ("outward", "inward"):
        assert rows_of(labels, direction) == rows_of(other, direction)


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("difference", [-1, 1])
def test_planted_faults_are_found(directed, difference):
    graph = build(APART, positive(APART), directed)
    _, labels = check(graph, "weights")
    rows = np.flatnonzero(labels.outward.distances)
    for row in np.random.default_rng(3).choice(rows, 12, replace=False):
        labels.outward.distances[row] += difference
        assert not certify(graph, labels).valid
        labels.outward.distances[row] -= difference
    assert certify(graph, labels).valid


@pytest.mark.usefixtures("no_contraction")
def test_they_answer_pairs_and_paths_and_are_stored(tmp_path):
    rows = rmat(11, 2, seed=3)
    graph = build(rows, positive(rows))
    assert graph.n_vertices > 500  # fewer are swept
    pairs = tuple(np.random.default_rng(1).choice(np.asarray(graph.ids), (2, 60)))
    expected = sssp_pairs(graph, *pairs), paths(graph, pairs)
    labels = graph.labels()
    save_graph(graph, tmp_path / "graph")
    stored = load_graph(tmp_path / "graph", "cpu")
    for each in (graph, stored):
        assert each.derived.known_labels("weights").rows == labels.rows
        assert (
            "hub labels answer the targets"
            in plan_sssp_many(each, n_sources=60, result="pairs", strategy="hierarchy_sweep").why
        )
        found = sssp_pairs(each, *pairs, strategy="hierarchy_sweep")
        pd.testing.assert_frame_equal(found, expected[0])
        assert paths(each, pairs, strategy="hierarchy_sweep").equals(expected[1])
    certify(stored, stored.labels()).require()


@pytest.mark.usefixtures("no_contraction")
def test_lengths_of_zero_and_long_labels_are_refused(monkeypatch):
    with pytest.raises(HierarchyError, match="no hierarchy"):
        build(HUBS, [weight % 2 for weight in weights_for(HUBS, 1)]).labels()
    monkeypatch.setattr(estimate_module, "MAX_HUBS", 2)
    with pytest.raises(HierarchyError, match=r"they would have about \d+ hubs per vertex"):
        build(HUBS, positive(HUBS)).labels()


@pytest.mark.usefixtures("no_contraction")
def test_a_job_writes_and_verifies_them(tmp_path, capsys):
    rows = np.array(APART)
    edges = write_edges(tmp_path / "edges.parquet", *rows.T, np.array(positive(APART)))
    words = [edges, "--algorithm", "sssp", "--result", "labels", "--no-report"]
    words += ["--output", tmp_path / "out"]
    plan = json.loads(call(capsys, *map(str, words), "--plan", "--json")[1])
    assert "hubs per vertex" in plan["why"]
    found = summary_of(capsys, *map(str, words), "--json")
    code, verified = proven(tmp_path / "out", edges, capsys)
    assert (code, verified["faults"]) == (0, [])
    assert verified["proven"] == {"equal to labels that are proved": found["sources"]}
