"""The pass over the edges on the CPU."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from .._arrays import UNREACHED


def check_edges(graph, source: int, distance, predecessor, limit) -> np.ndarray:
    """Check C3 and C4 in one pass over the edges.

    Parameters
    ----------
    graph : Graph
    source : int
    distance, predecessor : arrays of shape (n_vertices,)
        In range already. Integer distances are hops, floating ones are weighted.
    limit : scalar of the distances' type
        Vertices beyond it may be unreached; the largest value means no limit.

    Returns
    -------
    int64 array of shape (4,)
        Edges that break C3, the smallest vertex such an edge leads to, vertices that break C4, the smallest of them.
    """
    explained = np.zeros(graph.n_vertices, np.uint8)
    explained[source] = 1
    if distance.dtype.kind == "i":
        violated, at = _check_hops(graph.offsets, graph.targets, distance, predecessor, limit, explained)
    else:
        violated, at = _check_weighted(graph.offsets, graph.targets, graph.weights, distance, predecessor, limit, explained)
    unexplained, first = _count_unexplained(explained, predecessor)
    return np.array([violated, at, unexplained, first], np.int64)


@njit(parallel=True, cache=True)
def _check_hops(offsets, targets, distance, predecessor, limit, explained):
    n = distance.size
    violated = 0
    at = n
    for u in prange(n):
        # Summed apart from the reductions: Numba drops those that stand in a loop under a condition.
        wrong = 0
        first = n
        if distance[u] != UNREACHED:
            hops = distance[u] + 1
            for e in range(offsets[u], offsets[u + 1]):
                v = targets[e]
                if hops <= limit and (distance[v] == UNREACHED or distance[v] > hops):
                    wrong += 1
                    first = min(first, v)
                if predecessor[v] == u and distance[v] == hops:
                    explained[v] = 1
        violated += wrong
        at = min(at, first)
    return violated, at


@njit(parallel=True, cache=True)
def _check_weighted(offsets, targets, weights, distance, predecessor, limit, explained):
    n = distance.size
    violated = 0
    at = n
    for u in prange(n):
        wrong = 0
        first = n
        if distance[u] != np.inf:
            for e in range(offsets[u], offsets[u + 1]):
                v = targets[e]
                through = distance[u] + weights[e]
                if through <= limit and distance[v] > through:
                    wrong += 1
                    first = min(first, v)
                if predecessor[v] == u and distance[v] == through:
                    explained[v] = 1
        violated += wrong
        at = min(at, first)
    return violated, at


@njit(parallel=True, cache=True)
def _count_unexplained(explained, predecessor):
    n = explained.size
    count = 0
    at = n
    for v in prange(n):
        wrong = predecessor[v] >= 0 and not explained[v]
        count += 1 if wrong else 0
        at = min(at, v if wrong else n)
    return count, at
