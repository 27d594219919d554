"""Rows of an edge list and the stored edges that they became, on the CPU; ``cuda.edge_rows`` is the
same on a GPU.
"""

from __future__ import annotations

import numpy as np

from . import threads
from .atomics import atomic_add
from .compiled import njit
from .csr_build import read_only

_BLOCKS = 256  # of rows that one thread takes at a time


@njit(cache=True, nogil=True)
def _find_edges(next_block, n_blocks, offsets, targets, src, dst, edges):
    n = src.size
    block = atomic_add(next_block, 0, 1)
    while block < n_blocks:
        for i in range(n * block // n_blocks, n * (block + 1) // n_blocks):
            u = src[i]
            v = dst[i]
            if u == v:
                edges[i] = -1 - u
                continue
            low = offsets[u]
            high = offsets[u + 1]
            end = high
            while low < high:
                middle = low + (high - low) // 2
                if targets[middle] < v:
                    low = middle + 1
                else:
                    high = middle
            edges[i] = low if low < end and targets[low] == v else -1 - u
        block = atomic_add(next_block, 0, 1)


def find_edges(offsets, targets, src, dst, dtype):
    """See ``protocols.EdgeRowsBackend``; ``src`` and ``dst`` are of the type of the targets."""
    edges = np.empty(src.size, dtype)
    arrays = [_input(array) for array in (offsets, targets, src, dst)]
    threads.run(_find_edges, min(src.size, _BLOCKS), *arrays, edges)
    return edges


def _input(array):
    return read_only(np.ascontiguousarray(array))


@njit(cache=True)
def _lower(edges, weights, known, lowest):
    for i in range(edges.size):
        e = edges[i]
        if e >= 0 and (not known[e] or weights[i] < lowest[e]):
            lowest[e] = weights[i]
            known[e] = True


def lowest_weights(edges, weights, n_edges: int):
    """See ``protocols.EdgeRowsBackend``."""
    lowest = np.empty(n_edges, weights.dtype)
    known = np.zeros(n_edges, np.bool_)
    for positions in edges:
        _lower(_input(positions), _input(weights), known, lowest)
    return lowest


@njit(cache=True)
def _first(edges, bits, stored, rows):
    for i in range(edges.size):
        e = edges[i]
        if e >= 0 and (not stored.size or bits[i] == stored[e]) and (rows[e] < 0 or i < rows[e]):
            rows[e] = i


def rows_that_count(edges, weights, stored, n_edges: int, dtype):
    """See ``protocols.EdgeRowsBackend``."""
    rows = np.full(n_edges, -1, dtype)
    nothing = np.zeros(0, np.int32)
    # Their bits, so that the code is compiled once per width.
    if weights is None:
        bits = nothing
    else:
        bits = _input(weights.view(f"i{weights.itemsize}"))
    if stored is None:
        kept = nothing
    else:
        kept = _input(stored.view(f"i{stored.itemsize}"))
    for positions in edges:
        _first(_input(positions), bits, kept, rows)
    return rows
