"""The k nearest sources of each vertex by one search from all of them, with up to k labels per vertex."""

from __future__ import annotations

import numpy as np

from ..cpu.compiled import njit

_AT_ONCE = 1 << 20  # labels that are taken from the heap before Python may raise an interrupt: some tenths of a second


def k_nearest(offsets, targets, weights, sources, k: int, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the distances and the positions of the k nearest sources of each vertex.

    Labels are taken in the order of (distance, source), which an edge of weight 0 or more cannot decrease. So the first k
    labels of a vertex that are of different sources are its nearest ones, and a label that comes later need not go on.

    Weights are int64 and 0 or more; of shape (0,), where every edge counts 1. No sum of a path may exceed int64. Sources are
    distinct int64 vertex numbers, ascending. Distances beyond the limit are left out. Return int64 arrays of shape
    (n_vertices, k): distances, and positions in ``sources``, in ascending order of (distance, position); -1 where there is
    none.
    """
    n = offsets.size - 1
    distance, owner, n_labels = np.full((n, k), -1, np.int64), np.full((n, k), -1, np.int64), np.zeros(n, np.int64)
    # A heap of labels: distance, position of the source, vertex. Those of distance 0 are a heap in the order of the sources.
    heap = np.zeros((max(2 * sources.size, 1024), 3), np.int64)
    heap[: sources.size, 1] = np.arange(sources.size)
    heap[: sources.size, 2] = sources
    size = sources.size
    while size:
        heap, size = _search(offsets, targets, weights, k, limit, distance, owner, n_labels, heap, size, _AT_ONCE)
    return distance, owner


@njit(cache=True, nogil=True)
def _search(offsets, targets, weights, k, limit, distance, owner, n_labels, heap, size, most):
    """Take labels from the heap until it is empty or ``most`` are taken; return the heap and its size."""
    size = np.int64(size)  # of one type in each call: a function is compiled for each type of an argument
    while size > 0 and most > 0:
        d, source, v = heap[0, 0], heap[0, 1], heap[0, 2]
        size -= 1
        most -= 1
        _sink(heap, size)
        count = n_labels[v]
        if count == k or _has(owner, v, count, source):
            continue
        distance[v, count], owner[v, count] = d, source
        n_labels[v] = count + 1
        for e in range(offsets[v], offsets[v + 1]):
            u = np.int64(targets[e])
            further = d + (weights[e] if weights.size else 1)
            if further <= limit and n_labels[u] < k and not _has(owner, u, n_labels[u], source):
                heap = _pushed(heap, size, further, source, u)
                size += 1
    return heap, size


@njit(cache=True, nogil=True)
def violation(offsets, targets, weights, sources, k, limit, distance, owner):
    """Return the number of a vertex whose labels are wrong, -1 if all are those of ``k_nearest``; parameters as there.

    The labels of a vertex are in order and of different sources. Each is reached from the label of its source along edges
    that add up to it exactly: so it is the length of a path. Each edge offers the labels of its start to its end, which has
    one as good of the same source, or k better ones: so, by induction along a shortest path, none is missing. One pass over
    the edges of each label checks both.
    """
    n, n_labels = offsets.size - 1, 0
    for v in range(n):
        for j in range(k):
            if owner[v, j] < 0:
                continue
            n_labels += 1
            if distance[v, j] < 0 or distance[v, j] > limit or owner[v, j] >= sources.size or _has(owner, v, j, owner[v, j]):
                return v
            if j and (owner[v, j - 1] < 0 or _is_before(distance, owner, v, j, distance[v, j - 1], owner[v, j - 1])):
                return v
    is_proven = np.zeros((n, k), np.bool_)
    stack = np.empty(n_labels, np.int64)
    size = n_proven = 0
    for i in range(-sources.size, n_labels):
        if i < 0:  # the sources offer themselves a label
            u, d, source, begin, end = 0, 0, i + sources.size, 0, 1
        else:
            if size == 0:
                break
            size -= 1
            u, j = stack[size] // k, stack[size] % k
            d, source, begin, end = distance[u, j], owner[u, j], offsets[u], offsets[u + 1]
        for e in range(begin, end):
            v = sources[source] if i < 0 else targets[e]
            further = d if i < 0 else d + (weights[e] if weights.size else 1)
            if further > limit:
                continue
            j = 0
            while j < k and owner[v, j] != source:
                j += 1
            if j == k:
                if owner[v, k - 1] < 0 or not _is_before(distance, owner, v, k - 1, further, source):
                    return v
            elif distance[v, j] > further:
                return v
            elif distance[v, j] == further and not is_proven[v, j]:
                is_proven[v, j] = True
                stack[size] = v * k + j
                size += 1
                n_proven += 1
    if n_proven < n_labels:
        for v in range(n):
            for j in range(k):
                if owner[v, j] >= 0 and not is_proven[v, j]:
                    return v
    return -1


@njit(cache=True, nogil=True)
def _is_before(distance, owner, v, j, d, source):
    return distance[v, j] < d or (distance[v, j] == d and owner[v, j] < source)


@njit(cache=True, nogil=True)
def _has(owner, v, count, source):
    for j in range(count):  # noqa: SIM110 - Numba compiles no generator here
        if owner[v, j] == source:
            return True
    return False


@njit(cache=True, nogil=True)
def _before(heap, i, d, source):
    return heap[i, 0] < d or (heap[i, 0] == d and heap[i, 1] < source)


@njit(cache=True, nogil=True)
def _move(heap, i, to, j):
    """Copy a label; the assignment of a row would be compiled with a message for rows that do not fit, in seconds."""
    to[j, 0], to[j, 1], to[j, 2] = heap[i, 0], heap[i, 1], heap[i, 2]


@njit(cache=True, nogil=True)
def _pushed(heap, size, d, source, v):
    """Add a label; return the heap, which may have grown."""
    if size == len(heap):
        grown = np.empty((2 * size, 3), np.int64)
        for i in range(size):
            _move(heap, i, grown, i)
        heap = grown
    at = size
    while at > 0 and not _before(heap, (at - 1) // 2, d, source):
        above = (at - 1) // 2
        _move(heap, above, heap, at)
        at = above
    heap[at, 0], heap[at, 1], heap[at, 2] = d, source, v
    return heap


@njit(cache=True, nogil=True)
def _sink(heap, size):
    """Remove the first label of ``size + 1``."""
    d, source, v = heap[size, 0], heap[size, 1], heap[size, 2]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and _before(heap, child + 1, heap[child, 0], heap[child, 1]):
            child += 1
        if not _before(heap, child, d, source):
            break
        _move(heap, child, heap, at)
        at = child
    heap[at, 0], heap[at, 1], heap[at, 2] = d, source, v
