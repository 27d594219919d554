"""Edge arrays to CSR on the CPU: count, scatter, sort each row, keep the cheapest of parallel edges.

Rows are sorted in place, so that beside the edge list and the CSR only one cursor a vertex is held.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

_NO_WEIGHTS = np.zeros(0, np.float32)
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
def _scatter(src, dst, weight, cursor, targets, weights, both_ways):
    for i in range(src.size):
        u, v = src[i], dst[i]
        if u == v:
            continue
        at = cursor[u]
        cursor[u] += 1
        targets[at] = v
        if weights.size:
            weights[at] = weight[i]
        if both_ways:
            at = cursor[v]
            cursor[v] += 1
            targets[at] = u
            if weights.size:
                weights[at] = weight[i]


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
def _sort_and_merge_rows(offsets, targets, weights, kept):
    """Sort every row and move the cheapest of each set of parallel edges to its front; kept[v] counts them."""
    n = offsets.size - 1
    blocks = min(n, 256)
    for block in prange(blocks):
        for v in range(n * block // blocks, n * (block + 1) // blocks):
            begin, end = offsets[v], offsets[v + 1]
            row = targets[begin:end]
            row_weights = weights[begin:end] if weights.size else weights
            _sort_row(row, row_weights)
            last = -1
            for i in range(row.size):
                if last >= 0 and row[last] == row[i]:
                    if row_weights.size:
                        row_weights[last] = min(row_weights[last], row_weights[i])
                    continue
                last += 1
                row[last] = row[i]
                if row_weights.size:
                    row_weights[last] = row_weights[i]
            kept[v] = last + 1


@njit(cache=True)
def _close_gaps(offsets, kept, targets, weights):
    at = 0
    for v in range(kept.size):
        begin = offsets[v]
        offsets[v] = at
        if begin != at:
            for i in range(kept[v]):
                targets[at + i] = targets[begin + i]
                if weights.size:
                    weights[at + i] = weights[begin + i]
        at += kept[v]
    offsets[kept.size] = at


def assemble(src, dst, weight, n_vertices: int, both_ways: bool = False):
    """Build the CSR of edges between vertices 0..n-1, without self-loops and parallel edges.

    Parameters
    ----------
    src, dst : integer arrays of shape (rows,)
    weight : float array of shape (rows,) or None
    n_vertices : int
    both_ways : bool
        Also store every edge from dst to src.

    Returns
    -------
    offsets : int64 array of shape (n_vertices + 1,)
    targets : array of shape (edges,), of src's type; ascending within a row
    weights : array of shape (edges,) or None; the minimum over parallel edges
    self_loops, parallel : int
        Rows dropped as self-loops; stored edges dropped as parallel.
    """
    offsets = np.zeros(n_vertices + 1, np.int64)
    self_loops = _count_rows(src, dst, offsets, both_ways)
    total = int(offsets[-1])
    targets = np.empty(total, src.dtype)
    weights = _NO_WEIGHTS if weight is None else np.empty(total, weight.dtype)
    cursor = offsets[:-1].copy()
    _scatter(src, dst, _NO_WEIGHTS if weight is None else weight, cursor, targets, weights, both_ways)
    kept = cursor  # every row is filled, so the cursors are free again
    _sort_and_merge_rows(offsets, targets, weights, kept)
    parallel = total - int(kept.sum())
    if parallel:
        _close_gaps(offsets, kept, targets, weights)
        targets.resize(total - parallel, refcheck=False)
        if weight is not None:
            weights.resize(total - parallel, refcheck=False)
    return offsets, targets, None if weight is None else weights, int(self_loops), parallel


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
    np.cumsum(np.bincount(targets, minlength=offsets.size - 1), out=reverse_offsets[1:])
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
    """Replace ids by their rank among all ids of the given columns.

    Parameters
    ----------
    columns : list of integer arrays
        Ids; the ranks are returned for each in the same order.
    dtype : numpy.dtype
        Type of the ranks.

    Returns
    -------
    ids : array of shape (n,), ascending, without duplicates
    numbers : list of arrays of ``dtype``
    """
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
                (column if lowest == 0 else column.astype(np.int64) - lowest).astype(dtype, copy=False)
                for column in columns
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
