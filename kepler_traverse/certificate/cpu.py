"""The pass over the edges on the CPU."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from .._arrays import UNREACHED
from ..cpu.atomics import atomic_add, atomic_min


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
    counts = np.array([0, graph.n_vertices, 0, graph.n_vertices], np.int64)
    if distance.dtype.kind == "i":
        _check_hops(graph.offsets, graph.targets, distance, predecessor, limit, explained, counts)
    else:
        _check_weighted(graph.offsets, graph.targets, graph.weights, distance, predecessor, limit, explained, counts)
    _count_unexplained(explained, predecessor, counts)
    return counts


# Findings are counted by atomics: Numba loses reductions that stand in a loop under a condition (0.68), or refuses to
# compile them (on Python 3.12). Findings are rare, so that costs nothing.


@njit(parallel=True, cache=True)
def _check_hops(offsets, targets, distance, predecessor, limit, explained, counts):
    for u in prange(distance.size):
        if distance[u] != UNREACHED:
            hops = distance[u] + 1
            for e in range(offsets[u], offsets[u + 1]):
                v = targets[e]
                if hops <= limit and (distance[v] == UNREACHED or distance[v] > hops):
                    atomic_add(counts, 0, 1)
                    atomic_min(counts, 1, v)
                if predecessor[v] == u and distance[v] == hops:
                    explained[v] = 1


@njit(parallel=True, cache=True)
def _check_weighted(offsets, targets, weights, distance, predecessor, limit, explained, counts):
    for u in prange(distance.size):
        if distance[u] != np.inf:
            for e in range(offsets[u], offsets[u + 1]):
                v = targets[e]
                through = distance[u] + weights[e]
                if through <= limit and distance[v] > through:
                    atomic_add(counts, 0, 1)
                    atomic_min(counts, 1, v)
                if predecessor[v] == u and distance[v] == through:
                    explained[v] = 1


@njit(parallel=True, cache=True)
def _count_unexplained(explained, predecessor, counts):
    for v in prange(explained.size):
        if predecessor[v] >= 0 and not explained[v]:
            atomic_add(counts, 2, 1)
            atomic_min(counts, 3, v)
