"""The passes over vertices and edges on the CPU.

Each chunk of vertices writes what it finds into a row of its own: Numba loses reductions that stand in a loop under a
condition (0.68), or refuses to compile them (on Python 3.12).
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from .._arrays import NO_PREDECESSOR, UNREACHED

CHUNK = 1 << 15  # vertices and edges of a chunk, so that a few of them balance the threads and one costs no time to start


def check_vertices(result, limit, negative: bool) -> tuple[int, int, int, int]:
    """Look at each vertex alone, for C1 and C2.

    Parameters
    ----------
    result : Traversal
        Distances and predecessors of one length.
    limit : scalar of the distances' type
        No vertex may be farther; the largest value means no limit.
    negative : bool
        Whether a distance may be below zero.

    Returns
    -------
    tuple of int
        Vertices that are their own predecessor, vertices that break C2, the smallest of them (or the number of vertices),
        vertices reached.
    """
    distance = result.distance
    bounds = np.append(np.arange(0, distance.size, CHUNK), distance.size)
    found = np.empty((bounds.size - 1, 4), np.int64)
    if distance.dtype.kind == "i":
        _look_at_hops(distance, result.predecessor, limit, bounds, found)
    else:
        _look_at_weighted(distance, result.predecessor, limit, negative, bounds, found)
    roots, bad, _, reached = found.sum(axis=0).tolist()
    return roots, bad, int(found[:, 2].min(initial=distance.size)), reached


def check_edges(graph, source: int, distance, predecessor, limit, reached: int) -> np.ndarray:
    """Check C3 and C4 in one pass over the edges.

    Parameters
    ----------
    graph : Graph
    source : int
    distance, predecessor : arrays of shape (n_vertices,)
        In range already. Integer distances are hops, floating ones are weighted.
    limit : scalar of the distances' type
        Vertices beyond it may be unreached; the largest value means no limit.
    reached : int
        Vertices reached.

    Returns
    -------
    int64 array of shape (5,)
        Edges that break C3, the smallest vertex such an edge leads to, vertices that break C4, the smallest of them,
        vertices no farther than their predecessor (where C4 is broken, perhaps not all).
    """
    hops = distance.dtype.kind == "i"
    bounds = chunks_of(graph.offsets)
    found = np.empty((bounds.size - 1, 4), np.int64)
    if hops and graph.targets.itemsize == 4:
        _check_hops(graph.offsets, graph.targets, _packed(distance, predecessor), limit, bounds, found)
    else:
        _check_weighted(graph.offsets, graph.targets, *_as_weighted(graph, distance), predecessor, limit, bounds, found)
    violated, explained, level, disorder = found.sum(axis=0).tolist()
    counts = np.array([violated, graph.n_vertices, 0, graph.n_vertices, 0 if hops else level])
    # A vertex has one predecessor, and a row each target once: so as many edges explain as there are vertices explained.
    if violated or explained != reached - 1 or disorder:
        weights, distance = _as_weighted(graph, distance)
        counts[1:4] = _name_findings(graph.offsets, graph.targets, distance, weights, predecessor, source, limit)
    return counts


def _as_weighted(graph, distance) -> tuple:
    """Weights and distances of one float type; an edge without a weight counts 1."""
    if distance.dtype.kind == "f":
        return graph.weights, distance
    return np.broadcast_to(np.float64(1), graph.targets.shape), np.where(distance == UNREACHED, np.inf, distance)


def chunks_of(offsets) -> np.ndarray:
    """Cut the vertices into pieces with about CHUNK vertices and edges each; a heavy vertex is one piece alone."""
    work = int(offsets[-1]) + offsets.size - 1
    return _cut(offsets, np.arange(1, work // CHUNK + 1) * CHUNK)


@njit(cache=True)
def _cut(offsets, wanted):
    n = offsets.size - 1
    bounds = np.empty(wanted.size + 2, np.int64)
    bounds[0] = low = 0
    for i in range(wanted.size):
        high = n
        while low < high:
            middle = (low + high) // 2
            if offsets[middle] + middle < wanted[i]:
                low = middle + 1
            else:
                high = middle
        bounds[i + 1] = low
    bounds[-1] = n
    return bounds


@njit(parallel=True, cache=True)
def _look_at_hops(distance, predecessor, limit, bounds, found):
    n = distance.size
    for c in prange(bounds.size - 1):
        roots = bad = reached = 0
        first = n
        for v in range(bounds[c], bounds[c + 1]):
            d, p = distance[v], predecessor[v]
            roots += p == v
            is_reached = d != UNREACHED
            reached += is_reached
            if d < UNREACHED or d > limit or p < NO_PREDECESSOR or p >= n or (p != NO_PREDECESSOR) != is_reached:
                bad += 1
                first = min(first, v)
        found[c, 0], found[c, 1], found[c, 2], found[c, 3] = roots, bad, first, reached


@njit(parallel=True, cache=True)
def _look_at_weighted(distance, predecessor, limit, negative, bounds, found):
    n = distance.size
    for c in prange(bounds.size - 1):
        roots = bad = reached = 0
        first = n
        for v in range(bounds[c], bounds[c + 1]):
            d, p = distance[v], predecessor[v]
            roots += p == v
            is_reached = d != np.inf
            reached += is_reached
            sound = d <= limit or not is_reached  # NaN is neither
            sound &= not np.signbit(d) or (negative and -np.inf < d < 0)  # no sum of weights is -0.0
            if not sound or p < NO_PREDECESSOR or p >= n or (p != NO_PREDECESSOR) != is_reached:
                bad += 1
                first = min(first, v)
        found[c, 0], found[c, 1], found[c, 2], found[c, 3] = roots, bad, first, reached


@njit(parallel=True, cache=True)
def _packed(distance, predecessor):
    """Distance above, predecessor below in one word, so that an edge looks up one place; the unreached are the farthest."""
    packed = np.empty(distance.size, np.uint64)
    for v in prange(distance.size):
        packed[v] = (np.uint64(np.uint32(distance[v])) << np.uint64(32)) | np.uint64(np.uint32(predecessor[v]))
    return packed


# The loops over a row have no branch: which way an edge goes cannot be predicted, and a wrong guess costs more than a sum.


@njit(parallel=True, cache=True)
def _check_hops(offsets, targets, packed, limit, bounds, found):
    below = np.uint64(2**32 - 1)
    for c in prange(bounds.size - 1):
        violated = explained = disorder = 0
        for u in range(bounds[c], bounds[c + 1]):
            here = packed[u] >> np.uint64(32)
            if here == below:
                continue
            hops = here + np.uint64(1)
            explaining = (hops << np.uint64(32)) | np.uint64(u)
            farthest = (hops << np.uint64(32)) | below if hops <= np.uint64(limit) else ~np.uint64(0)
            last = np.uint32(0)
            row = targets[offsets[u] : offsets[u + 1]]
            for i in range(row.size):
                v = np.uint32(row[i])
                there = packed[v]
                violated += there > farthest
                explained += there == explaining
                disorder += (v <= last) & (i > 0)
                last = v
        found[c, 0], found[c, 1], found[c, 2], found[c, 3] = violated, explained, 0, disorder


@njit(parallel=True, cache=True)
def _check_weighted(offsets, targets, weights, distance, predecessor, limit, bounds, found):
    for c in prange(bounds.size - 1):
        violated = explained = level = disorder = 0
        for u in range(bounds[c], bounds[c + 1]):
            here = distance[u]
            if here == np.inf:
                continue
            last = np.uint64(0)
            row, steps = targets[offsets[u] : offsets[u + 1]], weights[offsets[u] : offsets[u + 1]]
            for i in range(row.size):
                v = np.uint64(row[i])
                there, through = distance[v], here + steps[i]
                violated += (there > through) & (through <= limit)
                explains = (there == through) & (predecessor[v] == u)
                explained += explains
                level += explains & (there <= here)
                disorder += (v <= last) & (i > 0)
                last = v
        found[c, 0], found[c, 1], found[c, 2], found[c, 3] = violated, explained, level, disorder


@njit(cache=True)
def _name_findings(offsets, targets, distance, weights, predecessor, source, limit):
    """The smallest vertex that breaks C3, how many break C4, and the smallest of them: only where something is wrong."""
    n = distance.size
    explained = np.zeros(n, np.bool_)
    explained[source] = True
    first = n
    for u in range(n):
        if distance[u] == np.inf:
            continue
        for e in range(offsets[u], offsets[u + 1]):
            v, through = targets[e], distance[u] + weights[e]
            if distance[v] > through and through <= limit:
                first = min(first, v)
            if predecessor[v] == u and distance[v] == through:
                explained[v] = True
    missing = np.flatnonzero(~explained & (predecessor != NO_PREDECESSOR))
    return first, missing.size, missing[0] if missing.size else n
