"""Proofs that a closeness is below a threshold: against NetworkX, and with planted faults."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kepler_traverse import graph_from_edges
from kepler_traverse.cpu import closeness
from kepler_traverse.errors import CertificateError
from kepler_traverse.extremes import closeness as module
from kepler_traverse.extremes import top_closeness
from kepler_traverse.extremes.searches import Searches
from tests.support import tiers
from tests.support.graphs import lattice, rmat

ENDS = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), min_size=1, max_size=40)


def _graphs(edges, directed):
    graph = graph_from_edges(*np.array(edges, np.int64).T, directed=directed)
    other = (nx.DiGraph if directed else nx.Graph)()
    other.add_nodes_from(range(graph.n_vertices))
    other.add_edges_from(np.searchsorted(graph.ids, np.array(edges)).tolist())
    return graph, other


def _reach(graph, other):
    """Exact numbers of reached vertices, as bounds of themselves."""
    exact = np.array([len(nx.descendants(other, v)) + 1 for v in range(graph.n_vertices)])
    return exact, exact


def _closeness_of(other):
    along = other.reverse() if other.is_directed() else other
    return np.array([nx.closeness_centrality(along, v) for v in range(len(other))])


@pytest.mark.parametrize("directed", [False, True])
@given(edges=ENDS, place=st.floats(0, 1), loose=st.integers(0, 3))
@settings(max_examples=tiers.examples(30), deadline=None)
def test_prove_below_says_nothing_false(edges, place, loose, directed):
    graph, other = _graphs(edges, directed)
    n = graph.n_vertices
    true = _closeness_of(other)
    threshold = float(np.quantile(true, place))
    least, most = _reach(graph, other)
    reach = np.maximum(least - loose, 1), np.minimum(most + loose, n)
    verdicts, _ = closeness.prove_below(graph, np.arange(n), reach, threshold, n, True)
    assert not (verdicts == closeness.WRONG).any()
    assert (true[verdicts == closeness.BELOW] < threshold + 1e-12).all()
    if not loose:  # a search that finds everything proves what is clearly below
        graph_goal = true < threshold - 1e-9
        assert (
            closeness.prove_below(graph, np.flatnonzero(graph_goal), reach, 2.0, n, True)[0]
            == closeness.BELOW
        ).all()


@given(edges=ENDS)
@settings(max_examples=tiers.examples(30), deadline=None)
def test_bounds_of_reach_hold(edges):
    graph, other = _graphs(edges, True)
    searches = Searches(graph, "bfs", True, None)
    found = module._Closeness(searches, 1)
    exact, _ = _reach(graph, other)
    least, most = found._reach
    assert (least <= exact).all()
    assert (exact <= most).all()


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("certified", [False, True])
def test_proofs_and_complete_searches_find_the_same(directed, certified, monkeypatch):
    edges = np.array(rmat(10, 4, seed=8))
    graph = graph_from_edges(*edges.T, directed=directed)
    proven = []
    prove_below = closeness.prove_below

    def counted(*arguments):
        found = prove_below(*arguments)
        proven.append(int((found[0] == closeness.BELOW).sum()))
        return found

    monkeypatch.setattr(closeness, "prove_below", counted)
    monkeypatch.setattr(module, "_FULL_ROUNDS", 2)
    some = [top_closeness(graph, k, certified=certified) for k in (1, 5, 33)]
    assert sum(proven) > 50
    monkeypatch.setattr(module, "_FULL_ROUNDS", 10**6)
    for frame, k in zip(some, (1, 5, 33), strict=True):
        assert frame.equals(top_closeness(graph, k))


def _explored(directed):
    """A search that was ended early, and what checks it."""
    graph = graph_from_edges(*np.array(lattice(9, 9)).T, directed=directed)
    n, source = graph.n_vertices, 40 if not directed else 0
    distance, queue = np.full(n, -1, np.int32), np.empty(n + 1, graph.targets.dtype)
    links = closeness.Links(graph.offsets, graph.targets, directed)
    arrays = links, source, n, n
    goal = 0.2 if directed else 0.25
    done, found, is_below = closeness._explore(*arrays, goal, distance, queue)
    assert is_below
    assert 1 < done < found < n
    return arrays, goal, distance, queue, done, found


def _check(state):
    arrays, goal, distance, queue, done, found = state
    explored = closeness.Explored(distance.copy(), queue, done, found)
    return closeness._is_proven(*arrays, goal, explored)


@pytest.mark.parametrize("directed", [False, True])
def test_a_proof_with_a_wrong_distance_is_found(directed):
    state = _explored(directed)
    _, _, distance, queue, done, _ = state
    assert _check(state)
    for v in queue[:done].tolist():
        right = distance[v]
        for wrong in (right + 1, right - 1, -1):
            # Of a directed graph a distance that is too small proves less, and so breaks nothing.
            if directed and wrong == right - 1 >= 1:
                continue
            distance[v] = wrong
            assert not _check(state), (v, right, wrong)
        distance[v] = right
    assert _check(state)


def test_a_proof_with_a_wrong_queue_is_found():
    arrays, goal, distance, queue, done, found = _explored(False)
    verdicts = np.full(3, closeness.BELOW, np.int8)
    closeness._require_clear(np.full((2, 5), -1, np.int32), verdicts)
    assert (verdicts == closeness.BELOW).all()
    # a vertex was not in the queue
    closeness._require_clear(np.array([[-1, -1], [-1, 3]], np.int32), verdicts)
    assert (verdicts == closeness.WRONG).all()
    assert not _check((arrays, goal, distance, queue, found, found))
    twice = queue.copy()
    twice[done - 1] = twice[done - 2]
    assert not _check((arrays, goal, distance, twice, done, found))
    # the bound does not prove it
    assert not _check((arrays, goal / 2, distance, queue, done, found))


def test_a_wrong_proof_is_an_error(monkeypatch):
    prove_below = closeness.prove_below

    def wrong(graph, vertices, *others):
        verdicts, edges = prove_below(graph, vertices, *others)
        verdicts[0] = closeness.WRONG
        return verdicts, edges

    monkeypatch.setattr(closeness, "prove_below", wrong)
    monkeypatch.setattr(module, "_FULL_ROUNDS", 2)
    graph = graph_from_edges(*np.array(rmat(10, 4, seed=8)).T, directed=False)
    with pytest.raises(CertificateError, match="the search from vertex"):
        top_closeness(graph, 3)
