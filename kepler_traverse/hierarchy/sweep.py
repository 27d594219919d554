"""Distances from many sources over a hierarchy: short searches upward, and one sweep downward for several sources.

Delling, Goldberg, Nowatzyk, Werneck 2011 (PHAST). Positions are in topological order, the top of the hierarchy first. A
source is searched upward only, which reaches some hundred vertices. Then each position, in order, takes the minimum over its
edges from above; edges and distances are read once for ``LANES`` sources, whose distances lie side by side.

Sums are of 32-bit integers where no sum can reach ``UNREACHED_32``, and else of 64-bit ones.
"""

from __future__ import annotations

import numpy as np
from numba import njit

LANES = 16
UNREACHED_32 = np.int32(2**30)
UNREACHED_64 = np.int64(2**62)
TILE = 64  # rows of the result that are written together


@njit(cache=True, nogil=True)
def depth_first(begin, size, head, order, position):
    """Number vertices such that each comes after all its neighbours above, and soon after one of them.

    Writes the vertex of each position to ``order``, and the position of each vertex to ``position``, which holds -1 before.
    """
    n = order.size
    stack, at = np.empty(n, np.int32), np.empty(n, np.int32)
    count = 0
    for root in range(n):
        if position[root] >= 0:
            continue
        depth = 0
        stack[0], at[0] = root, 0
        while depth >= 0:
            v = stack[depth]
            i = at[depth]
            while i < size[v] and position[head[begin[v] + i]] >= 0:
                i += 1
            if i == size[v]:
                position[v], order[count] = count, v
                count += 1
                depth -= 1
            else:
                at[depth] = i + 1
                depth += 1
                stack[depth], at[depth] = head[begin[v] + i], 0


@njit(cache=True, nogil=True)
def longest_upward(offsets, heads, weights):
    """Return the largest sum of weights on a path upward."""
    n = offsets.size - 1
    longest = np.zeros(n, np.int64)
    most = np.int64(0)
    for p in range(n):
        for e in range(offsets[p], offsets[p + 1]):
            longest[p] = max(longest[p], longest[heads[e]] + weights[e])
        most = max(most, longest[p])
    return most


@njit(cache=True, nogil=True)
def _upward(source, lane, offsets, heads, weights, distance, marks, heap, unreached):
    """Search upward from a position; distances are written to a lane. Positions are taken from the bottom to the top."""
    size = 1
    heap[0] = source
    if not marks[source]:
        marks[source] = 1
        distance[source, :] = unreached
    distance[source, lane] = 0
    while size > 0:
        p = heap[0]
        # Equal positions follow each other: the vertex was queued by several neighbours.
        while size > 0 and heap[0] == p:
            size -= 1
            value, i = heap[size], 0
            while True:
                child = 2 * i + 1
                if child >= size:
                    break
                if child + 1 < size and heap[child + 1] > heap[child]:
                    child += 1
                if heap[child] <= value:
                    break
                heap[i] = heap[child]
                i = child
            heap[i] = value
        far = distance[p, lane]
        for e in range(offsets[p], offsets[p + 1]):
            q, total = heads[e], far + weights[e]
            if not marks[q]:
                marks[q] = 1
                distance[q, :] = unreached
            if total < distance[q, lane]:
                is_new = distance[q, lane] == unreached
                distance[q, lane] = total
                if is_new:
                    i = size
                    while i > 0 and heap[(i - 1) >> 1] < q:
                        heap[i] = heap[(i - 1) >> 1]
                        i = (i - 1) >> 1
                    heap[i] = q
                    size += 1


@njit(cache=True, nogil=True)
def search(sources, ahead, back, distance, marks, heap, unreached):
    """Write the distances from up to ``LANES`` positions to ``distance`` of shape (n, LANES).

    Parameters
    ----------
    sources : int64 array of shape (k,)
    ahead, back : tuple of offsets, heads, weights
        Edges of each position to positions above it, and from them. The same twice for an undirected graph.
    marks : uint8 array of shape (n,)
        All 0, before and after.
    heap : int32 array of shape (n,)
    """
    for lane in range(sources.size):
        _upward(sources[lane], lane, ahead[0], ahead[1], ahead[2], distance, marks, heap, unreached)
    _sweep(back[0], back[1], back[2], distance, marks, unreached)


@njit(cache=True, nogil=True)
def _sweep(offsets, heads, weights, distance, marks, unreached):
    for p in range(marks.size):
        if marks[p]:
            marks[p] = 0
        else:
            for j in range(LANES):
                distance[p, j] = unreached
        for e in range(offsets[p], offsets[p + 1]):
            q, weight = heads[e], weights[e]
            for j in range(LANES):
                distance[p, j] = min(distance[p, j], distance[q, j] + weight)


@njit(cache=True, nogil=True)
def write_rows(distance, position, rows, unreached, absent):
    """Write distances as one row per source, in the order of vertices."""
    n, k = position.size, rows.shape[0]
    for first in range(0, n, TILE):
        last = min(first + TILE, n)
        for j in range(k):
            for v in range(first, last):
                far = distance[position[v], j]
                rows[j, v] = absent if far >= unreached else far
