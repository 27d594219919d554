"""Searches for few targets per source are answered by the labels of a graph, with the same results."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kepler_traverse import (
    bfs_many,
    bfs_pairs,
    certify,
    graph_from_edges,
    paths,
    plan_bfs_many,
    plan_sssp_many,
    sssp_many,
    sssp_pairs,
)
from kepler_traverse.errors import CertificateError
from kepler_traverse.hierarchy import lookup
from kepler_traverse.hub_labels.arrays import HubLabels
from kepler_traverse.multi_source import candidates, workload
from kepler_traverse.pandana import Network
from kepler_traverse.pandana import network as network_module
from kepler_traverse.pipelines import run_job
from pipelines.run import prepare
from pipelines.worker import label_plan, traverse
from tests.support.graphs import build, lattice, weighted_rows, weights_for

GRID = lattice(40, 40)


def grid(directed, seed, below):
    """A new graph of the grid; weights are remainders below a number, if one is given."""
    weights = np.array(weights_for(GRID, seed))
    return build(GRID, weights % below if below else weights, directed)


@cache
def plain_grid(directed, seed=3, below=None):
    """The grid, which gets no labels."""
    return grid(directed, seed, below)


@cache
def labelled_grid(directed, metric="weights", seed=3, below=None):
    """A graph equal to ``plain_grid`` with labels of its own, which no test changes."""
    graph = grid(directed, seed, below)
    graph.labels(metric)
    return graph


@pytest.fixture
def answers(monkeypatch):
    """The numbers of pairs that labels have answered, call by call."""
    counts = []
    to_lists = HubLabels.to_lists

    def counted(self, sources, offsets, targets):
        counts.append(targets.size)
        return to_lists(self, sources, offsets, targets)

    monkeypatch.setattr(HubLabels, "to_lists", counted)
    return counts


def random_pairs(graph, n_pairs, seed=0):
    rng = np.random.default_rng(seed)
    return graph.ids_at(rng.integers(0, graph.n_vertices, (2, n_pairs)).ravel()).reshape(2, -1)


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("search", [sssp_pairs, bfs_pairs])
@pytest.mark.parametrize("limit", [None, 60])
def test_pairs_are_answered_by_labels(directed, search, limit, answers):
    graph = plain_grid(directed)
    metric = "hops" if search is bfs_pairs else "weights"
    name = "max_depth" if search is bfs_pairs else "cutoff"
    pairs = random_pairs(graph, 500)
    expected = search(graph, *pairs, **{name: limit})
    assert not answers
    labelled = labelled_grid(directed, metric)
    found = search(labelled, *pairs, strategy="hierarchy_sweep", **{name: limit})
    assert sum(answers) == 500
    pd.testing.assert_frame_equal(found, expected)


@pytest.mark.parametrize("search", [sssp_pairs, bfs_pairs])
def test_no_search_is_tried_before_pairs_that_labels_answer(monkeypatch, search, answers):
    metric = "hops" if search is bfs_pairs else "weights"
    graph = labelled_grid(False, metric)

    def search_in_vain(*_, **__):
        raise AssertionError("a search is tried")

    monkeypatch.setattr(workload.short_search, "sample_reach", search_in_vain)
    monkeypatch.setattr(workload, "survey", search_in_vain)
    found = search(graph, *random_pairs(graph, 40))
    assert len(found) == sum(answers) == 40


def test_labels_do_not_keep_other_strategies_from_knowing_the_depth():
    """On a graph with labels, too, the memory of such a strategy is that of its levels."""
    plans = [
        plan_bfs_many(
            graph, n_sources=40, result="targets", targets=graph.ids[:3], strategy="bit_parallel"
        )
        for graph in (plain_grid(False), labelled_grid(False, "hops"))
    ]
    assert plans[0].shape.depth == plans[1].shape.depth > 0


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("search", [sssp_many, bfs_many])
@pytest.mark.parametrize("limit", [None, 60])
@pytest.mark.parametrize("n_sources", [1, 40])
def test_few_targets_of_all_sources_are_answered_by_labels(
    directed, search, limit, n_sources, answers
):
    graph = plain_grid(directed)
    metric = "hops" if search is bfs_many else "weights"
    name = "max_depth" if search is bfs_many else "cutoff"
    sources = graph.ids_at(np.arange(0, graph.n_vertices, 37)[:n_sources])
    targets = graph.ids_at(np.arange(7) * 200)
    asked = {"result": "targets", "targets": targets, name: limit}
    expected = search(graph, sources, **asked)
    assert not answers
    labelled = labelled_grid(directed, metric)
    found = search(labelled, sources, strategy="hierarchy_sweep", **asked)
    assert sum(answers) == 7 * n_sources
    pd.testing.assert_frame_equal(found, expected)
    if n_sources == 1:
        pd.testing.assert_frame_equal(search(labelled, sources, **asked), expected)
        assert len(answers) == 2  # without naming the strategy


def test_many_targets_of_all_sources_are_swept(answers):
    graph = labelled_grid(directed=False)
    hubs = graph.labels().hubs_per_vertex
    many = int(20_000 / hubs) + 1
    assert many < graph.n_vertices
    targets = graph.ids_at(np.arange(many))
    sssp_many(graph, [0, 1], result="targets", targets=targets, strategy="hierarchy_sweep")
    assert not answers
    sssp_many(graph, [0, 1], result="targets", targets=targets[:-2], strategy="hierarchy_sweep")
    assert sum(answers) == 2 * (many - 2)


@given(weighted_rows(st.sampled_from([0, 1, 7, 2**40])), st.booleans())
def test_pairs_of_any_graph_are_as_without_labels(drawn, directed):
    graph = build(*drawn, directed)
    everything = np.arange(graph.n_vertices)
    ids = graph.ids_at(everything)
    pairs = np.repeat(ids, ids.size), np.tile(ids, ids.size)
    expected = sssp_pairs(graph, *pairs)
    graph.labels()
    found = sssp_pairs(graph, *pairs, strategy="hierarchy_sweep")
    pd.testing.assert_frame_equal(found, expected)


@pytest.mark.parametrize("weight_type", ["float32", "float64"])
def test_float_weights_are_answered_in_their_type(weight_type, answers):
    weights = np.array(weights_for(GRID, 4)) / 4
    graph = build(GRID, weights, directed=True, weight_type=weight_type)
    pairs = random_pairs(graph, 300)
    expected = sssp_pairs(graph, *pairs)
    graph.labels()
    found = sssp_pairs(graph, *pairs, strategy="hierarchy_sweep")
    assert answers
    pd.testing.assert_frame_equal(found, expected)


def test_groups_are_larger_and_results_the_same(monkeypatch, answers):
    graph = labelled_grid(directed=False)
    pairs = random_pairs(graph, 3000)
    whole = sssp_pairs(graph, *pairs, strategy="hierarchy_sweep")
    assert len(answers) == 1
    monkeypatch.setitem(candidates._ANSWERS, "cpu", 100)
    parts = sssp_pairs(graph, *pairs, strategy="hierarchy_sweep")
    pd.testing.assert_frame_equal(parts, whole)
    assert len(answers) > 10


@pytest.mark.parametrize("strategy", ["auto", "hierarchy_sweep"])
@pytest.mark.parametrize("memory", [30_000, 100_000])  # for 2,000 pairs at once 108,800 are needed
def test_groups_are_as_small_as_memory_asks(strategy, memory, answers):
    origins = np.repeat(np.arange(1000), 2)
    destinations = np.arange(2000)[::-1] % 1600
    pairs = origins, destinations
    expected = sssp_pairs(plain_grid(True), *pairs)
    found = sssp_pairs(labelled_grid(True), *pairs, strategy=strategy, memory=memory)
    pd.testing.assert_frame_equal(found, expected)
    assert len(answers) > 1
    assert sum(answers) == 2000


def test_the_plan_says_that_labels_answer():
    rows = lattice(90, 90)
    graph = build(rows, weights_for(rows, 5), directed=False)
    graph.hierarchy()
    asked = {"n_sources": 100, "result": "pairs"}
    assert "labels" not in plan_sssp_many(graph, **asked).why
    labels = graph.labels()
    plan = plan_sssp_many(graph, **asked)
    expected = f"hub labels answer the targets, with {labels.hubs_per_vertex:,.0f} hubs per vertex"
    assert expected in plan.why
    assert f"labels: {expected}" in plan.explain()
    assert "labels" not in plan_sssp_many(graph, n_sources=100, result="summary").why
    why = plan_sssp_many(graph, n_sources=100, result="paths").why
    assert "hub labels answer the distances along paths, with" in why


@pytest.fixture
def no_hierarchy(monkeypatch):
    """No search in a hierarchy finds a distance of a path."""
    monkeypatch.setattr(lookup, "search_upward", None)


@given(weighted_rows(st.sampled_from([0, 0, 0, 1, 3, 2**40]), max_rows=60), st.booleans())
def test_paths_of_any_graph_are_as_without_labels(drawn, directed):
    # parallel edges, self-loops, zero weights and their cycles, several components
    graph = build(*drawn, directed)
    ids = np.asarray(graph.ids)[:10]
    pairs = np.repeat(ids, ids.size), np.tile(ids, ids.size)
    expected = paths(graph, pairs, strategy="near_far_per_thread")
    graph.labels()
    assert paths(graph, pairs, strategy="hierarchy_sweep").equals(expected)


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("algorithm", ["sssp", "bfs"])
@pytest.mark.parametrize("n_pairs", [1, 50])
@pytest.mark.usefixtures("no_hierarchy")
def test_paths_to_few_targets_are_found_by_labels(directed, algorithm, n_pairs):
    graph = plain_grid(directed, seed=6, below=4)
    pairs = tuple(random_pairs(graph, n_pairs))
    expected = paths(graph, pairs, algorithm=algorithm)
    metric = "hops" if algorithm == "bfs" else "weights"
    labelled = labelled_grid(directed, metric, seed=6, below=4)
    named = {"algorithm": algorithm, "strategy": "hierarchy_sweep"}
    assert paths(labelled, pairs, **named).equals(expected)
    if n_pairs == 1:
        assert paths(labelled, pairs, algorithm=algorithm).equals(expected)


@pytest.mark.usefixtures("no_hierarchy")
def test_paths_to_many_targets_per_source_are_looked_up_in_the_hierarchy():
    graph = labelled_grid(directed=False)
    ids = graph.ids_at(np.arange(11))
    found = paths(graph, (np.repeat(ids[:1], 10), ids[1:]), strategy="hierarchy_sweep")
    assert found["pair"].nunique() == 10
    with pytest.raises(TypeError):
        paths(graph, (np.repeat(ids[:1], 11), ids), strategy="hierarchy_sweep")


def test_wrong_labels_give_no_path():
    graph = build(GRID, weights_for(GRID, 6), directed=False)
    labels = graph.labels()
    labels.outward.distances[labels.outward.distances > 0] -= 1
    with pytest.raises(CertificateError, match="no edge explains a distance"):
        paths(graph, tuple(random_pairs(graph, 50)), strategy="hierarchy_sweep")


def test_a_network_of_pandana_builds_labels_once_they_pay(monkeypatch, answers):
    rows = np.array(lattice(100, 100))
    weights = pd.DataFrame({"length": np.array(weights_for(rows, 2)) + 0.5})
    nodes = np.arange(10_000)
    spots = pd.Series(nodes % 100), pd.Series(nodes // 100)
    ends = np.random.default_rng(1).integers(0, nodes.size, (2, 2000))

    def network():
        return Network(*spots, pd.Series(rows[:, 0]), pd.Series(rows[:, 1]), weights)

    expected = network().shortest_path_lengths(*ends)
    assert not answers
    monkeypatch.setattr(network_module, "_FIRST_LOOK", 0.01)
    # however long the machine takes
    monkeypatch.setattr(network_module, "_TIMES_OF_BUILDING", 1e-9)
    own = network()
    assert own.shortest_path_lengths(*ends) == expected
    assert sum(answers) == 2000
    monkeypatch.setattr(network_module, "_TIMES_OF_BUILDING", 1e9)
    answers.clear()
    assert network().shortest_path_lengths(*ends) == expected
    assert not answers


@pytest.mark.parametrize("algorithm", ["sssp", "bfs"])
def test_pairs_of_a_job_are_answered_by_labels(algorithm, answers, tmp_path):
    rows = lattice(60, 60)
    graph = build(rows, weights_for(rows, 3), directed=False)
    pairs = random_pairs(graph, 400)
    asked = {"algorithm": algorithm, "pairs": tuple(pairs), "certify": "none", "report": False}
    before = run_job(graph, output=tmp_path / "before", **asked)
    graph.labels("hops" if algorithm == "bfs" else "weights")
    named = {"strategy": "hierarchy_sweep", **asked}
    after = run_job(graph, output=tmp_path / "after", **named)
    assert sum(answers) == 400
    assert after.digest == before.digest


@pytest.mark.parametrize("algorithm", ["sssp", "bfs"])
def test_pairs_of_a_certified_job_are_answered_by_labels_that_are_proved(
    algorithm, answers, tmp_path, monkeypatch
):
    rows = [*lattice(40, 40), (5000, 5001)]
    graph = build(rows, weights_for(rows, 3), directed=True)
    pairs = random_pairs(graph, 1500)
    asked = {"algorithm": algorithm, "pairs": tuple(pairs)}
    before = run_job(graph, output=tmp_path / "before", **asked)
    assert "proved" not in before.manifest
    labels = graph.labels("hops" if algorithm == "bfs" else "weights")
    proofs = []
    monkeypatch.setattr(
        label_plan, "certify", lambda *given: proofs.append(given) or certify(*given)
    )
    monkeypatch.setattr(traverse, "certify_group", None)  # it is not called
    after = run_job(graph, output=tmp_path / "after", **asked)
    assert len(proofs) == 1
    assert sum(answers) > 300
    assert after.digest == before.digest
    assert after.manifest["proved"] == "labels"
    assert after.to_pandas().equals(before.to_pandas())
    report = (tmp_path / "after" / "_report.html").read_text()
    assert "hub labels were proved as a whole" in report
    labels.outward.distances[0] += 1
    with pytest.raises(CertificateError):
        run_job(graph, output=tmp_path / "wrong", **asked)
    assert not (tmp_path / "wrong").exists()


@pytest.mark.parametrize("algorithm", ["sssp", "bfs"])
@pytest.mark.usefixtures("no_hierarchy")
def test_paths_of_a_certified_job_follow_from_labels_that_are_proved(
    algorithm, tmp_path, monkeypatch
):
    rows = [*lattice(20, 20), (5000, 5001)]
    weights = np.array(weights_for(rows, 3)) % 4
    graph = graph_from_edges(*np.array(rows).T.copy(), weights, edge_ids=True)
    asked = {"algorithm": algorithm, "result": "paths", "pairs": tuple(random_pairs(graph, 200))}
    before = run_job(graph, output=tmp_path / "before", **asked)
    assert "proved" not in before.manifest
    graph.labels("hops" if algorithm == "bfs" else "weights")
    monkeypatch.setattr(prepare, "proof_seconds", lambda *_: 0.0)  # a small graph is searched fast
    monkeypatch.setattr(traverse, "certify_group", None)  # it is not called
    after = run_job(graph, output=tmp_path / "after", **asked)
    assert after.manifest["proved"] == "labels"
    assert after.digest == before.digest
    assert after.to_pandas().equals(before.to_pandas())


def test_few_pairs_of_a_job_are_certified_one_by_one(tmp_path, monkeypatch):
    graph = build(GRID, weights_for(GRID, 3), directed=False)
    graph.labels()
    monkeypatch.setattr(label_plan, "PROOFS", 1e9)
    done = run_job(graph, output=tmp_path / "out", algorithm="sssp", pairs=([0], [77]))
    assert "proved" not in done.manifest
