"""Edge arrays to CSR on the CPU: count, scatter, sort each row, keep the cheapest of parallel edges.

Rows are sorted in place and the offsets serve as cursors meanwhile, so that nothing is held beside the edge list and the
CSR.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from .atomics import atomic_add

_NO_WEIGHTS = np.zeros(0, np.float32)
_COUNTED_AT_ONCE = 1 << 26  # targets
_SHORT_ROW = 24  # up to here insertion sort beats NumPy's quicksort, which must allocate


@njit(cache=True)
def _count_rows(src, dst, offsets, both_ways):
    self_loops = 0
    for i in range(src.size):
        u, v = src[i], dst[i]
        if u == v:
            self_loops += 1
            continue
        offsets[u + 1] += 1
        if both_ways:
            offsets[v + 1] += 1
    for v in range(offsets.size - 1):
        offsets[v + 1] += offsets[v]
    return self_loops


@njit(cache=True)
def _scatter(src, dst, weight, offsets, targets, weights, both_ways):
    """Put every edge into its row; each offset moves to the end of its row and is set back in the end."""
    for i in range(src.size):
        u, v = src[i], dst[i]
        if u == v:
            continue
        at = offsets[u]
        offsets[u] += 1
        targets[at] = v
        if weights.size:
            weights[at] = weight[i]
        if both_ways:
            at = offsets[v]
            offsets[v] += 1
            targets[at] = u
            if weights.size:
                weights[at] = weight[i]
    for v in range(offsets.size - 1, 0, -1):
        offsets[v] = offsets[v - 1]
    offsets[0] = 0


@njit(cache=True)
def _append_rows(src, dst, weight, offsets, targets, weights):
    """Count and scatter in one walk where edges come in the order of their sources, as in most files.

    Returns the edges stored, or -1 at the first edge out of order; and whether each row ascends, without parallel edges.
    """
    row, at, last = 0, 0, -1
    ascending = True
    for i in range(src.size):
        u, v = src[i], dst[i]
        if u < row:
            return -1, False
        while row < u:
            row += 1
            offsets[row] = at
            last = -1
        if u == v:
            continue
        ascending &= v > last
        last = v
        targets[at] = v
        if weights.size:
            weights[at] = weight[i]
        at += 1
    offsets[row + 1 :] = at
    return at, ascending


@njit(cache=True)
def _sort_row(targets, weights):
    """Sort one row by target; returns nothing, works in place."""
    n = targets.size
    if n <= _SHORT_ROW:
        for i in range(1, n):
            v = targets[i]
            w = weights[i] if weights.size else 0
            j = i
            while j > 0 and targets[j - 1] > v:
                targets[j] = targets[j - 1]
                if weights.size:
                    weights[j] = weights[j - 1]
                j -= 1
            targets[j] = v
            if weights.size:
                weights[j] = w
    elif weights.size:
        order = np.argsort(targets)
        targets[:] = targets[order]
        weights[:] = weights[order]
    else:
        targets.sort()


@njit(parallel=True, cache=True)
def _sort_rows(offsets, targets, weights, counter):
    """Sort every row; counter[0] counts edges that are parallel to the one before."""
    n = offsets.size - 1
    blocks = min(n, 256)
    for block in prange(blocks):
        parallel = 0
        for v in range(n * block // blocks, n * (block + 1) // blocks):
            begin, end = offsets[v], offsets[v + 1]
            for e in range(begin + 1, end):
                if targets[e] < targets[e - 1]:  # most edge lists are in order
                    _sort_row(targets[begin:end], weights[begin:end] if weights.size else weights)
                    break
            for e in range(begin + 1, end):
                parallel += targets[e] == targets[e - 1]
        atomic_add(counter, 0, parallel)


@njit(cache=True)
def _merge_parallel_edges(offsets, targets, weights):
    """Keep the cheapest of each set of parallel edges of sorted rows and close the gaps."""
    at = begin = 0
    for v in range(offsets.size - 1):
        end = offsets[v + 1]
        offsets[v] = at
        for e in range(begin, end):
            if at > offsets[v] and targets[at - 1] == targets[e]:
                if weights.size:
                    weights[at - 1] = min(weights[at - 1], weights[e])
                continue
            targets[at] = targets[e]
            if weights.size:
                weights[at] = weights[e]
            at += 1
        begin = end
    offsets[offsets.size - 1] = at


def assemble(src, dst, weight, n_vertices: int, both_ways: bool = False):
    """See ``protocols.CsrBackend.assemble``."""
    offsets = np.zeros(n_vertices + 1, np.int64)
    given = _NO_WEIGHTS if weight is None else weight
    total, ascending = -1, False
    if not both_ways:
        targets, weights = np.empty(src.size, src.dtype), np.empty(given.size, given.dtype)
        total, ascending = _append_rows(src, dst, given, offsets, targets, weights)
        self_loops = src.size - total
    if total < 0:
        offsets[:] = 0
        self_loops = _count_rows(src, dst, offsets, both_ways)
        total = int(offsets[-1])
        targets = np.empty(total, src.dtype)
        weights = np.empty(total if given.size else 0, given.dtype)
        _scatter(src, dst, given, offsets, targets, weights, both_ways)
    counter = np.zeros(1, np.int64)
    if not ascending:
        _sort_rows(offsets, targets, weights, counter)
    parallel = int(counter[0])
    if parallel:
        _merge_parallel_edges(offsets, targets, weights)
    if targets.size > total - parallel:
        targets.resize(total - parallel, refcheck=False)
        if weights.size:
            weights.resize(total - parallel, refcheck=False)
    return offsets, targets, None if weight is None else weights, int(self_loops), parallel


def count_isolated(offsets, targets, directed: bool) -> int:
    """Count the vertices without an edge; in an undirected graph each edge is stored at both ends."""
    touched = (offsets[1:] != offsets[:-1]).view(np.uint8)
    if directed:
        _mark(targets, 0, touched)
    return touched.size - int(np.count_nonzero(touched))


@njit(cache=True)
def _fill_reverse(offsets, targets, weights, cursor, sources, reverse_weights):
    for u in range(offsets.size - 1):
        for e in range(offsets[u], offsets[u + 1]):
            v = targets[e]
            at = cursor[v]
            cursor[v] += 1
            sources[at] = u
            if weights.size:
                reverse_weights[at] = weights[e]


def transpose(offsets, targets, weights):
    """Return the CSR of the reversed edges; its rows are ascending because the vertices are visited in order."""
    reverse_offsets = np.zeros(offsets.size, np.int64)
    for first in range(0, targets.size, _COUNTED_AT_ONCE):  # which are widened to count them
        reverse_offsets[1:] += np.bincount(targets[first : first + _COUNTED_AT_ONCE], minlength=offsets.size - 1)
    np.cumsum(reverse_offsets, out=reverse_offsets)
    sources = np.empty_like(targets)
    reverse_weights = None if weights is None else np.empty_like(weights)
    none = _NO_WEIGHTS
    _fill_reverse(
        offsets,
        targets,
        none if weights is None else weights,
        reverse_offsets[:-1].copy(),
        sources,
        none if weights is None else reverse_weights,
    )
    return reverse_offsets, sources, reverse_weights


@njit(cache=True)
def _mark(ids, lowest, present):
    for i in range(ids.size):
        present[ids[i] - lowest] = 1


@njit(cache=True)
def _look_up(ids, lowest, rank, numbers):
    for i in range(ids.size):
        numbers[i] = rank[ids[i] - lowest]


def renumber(columns, dtype):
    """See ``protocols.CsrBackend.renumber``."""
    kind = np.result_type(*columns)
    occupied = [column for column in columns if column.size]
    if not occupied:
        return np.zeros(0, kind), [np.zeros(0, dtype) for _ in columns]
    lowest = min(int(column.min()) for column in occupied)
    span = max(int(column.max()) for column in occupied) - lowest + 1
    if span <= 4 * sum(column.size for column in columns) + 1024 and lowest + span <= np.iinfo(np.int64).max:
        present = np.zeros(span, np.uint8)
        for column in columns:
            _mark(column, lowest, present)
        if present.all():
            ids = np.arange(lowest, lowest + span, dtype=kind)
            # Ids that are numbers already are taken as they are: no copy of the edge list.
            return ids, [
                (column if lowest == 0 else column.astype(np.int64) - lowest).astype(dtype, copy=False) for column in columns
            ]
        ids = (np.flatnonzero(present) + lowest).astype(kind)
        rank = np.cumsum(present, dtype=dtype)
        rank -= 1
        numbers = [np.empty(column.size, dtype) for column in columns]
        for column, number in zip(columns, numbers, strict=True):
            _look_up(column, lowest, rank, number)
        return ids, numbers
    ids = np.unique(np.concatenate([np.unique(column).astype(kind) for column in columns]))
    return ids, [np.searchsorted(ids, column).astype(dtype) for column in columns]
