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
    """Write the position of the stored edge of each row of the edge list, by binary search.

    A row without a stored edge, such as a self-loop, gets -1 - u instead, where u is its source.
    """
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
            if low < end and targets[low] == v:
                edges[i] = low
            else:
                edges[i] = -1 - u
        block = atomic_add(next_block, 0, 1)


def find_edges(offsets, targets, src, dst, dtype):
    """Return the stored edge of each row of an edge list, -1 - src where there is none; see
    ``protocols.EdgeRowsBackend``.

    ``src`` and ``dst`` are of the type of the targets.
    """
    edges = np.empty(src.size, dtype)
    arrays = [_as_input(array) for array in (offsets, targets, src, dst)]
    threads.run(_find_edges, min(src.size, _BLOCKS), *arrays, edges)
    return edges


def _as_input(array):
    """Return an array as compiled functions here take all their inputs: contiguous and read-only."""
    return read_only(np.ascontiguousarray(array))


@njit(cache=True)
def _lower_weights(edges, weights, known, lowest):
    """Lower the weight of each stored edge to the smallest one of its rows.

    ``edges`` has, for each row, the position of the stored edge that it became, below 0 for none,
    and ``weights`` its weight. ``lowest`` and ``known`` have an entry per stored edge: its smallest
    weight so far, and whether there is one.
    """
    for i in range(edges.size):
        e = edges[i]
        if e >= 0 and (not known[e] or weights[i] < lowest[e]):
            lowest[e] = weights[i]
            known[e] = True


def lowest_weights(edges, weights, n_edges: int):
    """Return the smallest weight of the rows of each stored edge; see
    ``protocols.EdgeRowsBackend``.
    """
    lowest = np.empty(n_edges, weights.dtype)
    known = np.zeros(n_edges, np.bool_)
    for positions in edges:
        _lower_weights(_as_input(positions), _as_input(weights), known, lowest)
    return lowest


@njit(cache=True)
def _find_first_rows(edges, bits, stored, rows):
    """Write the first row of each stored edge, of those with its weight unless ``stored`` is empty.

    ``edges`` has, for each row, the position of the stored edge that it became, below 0 for none.
    ``bits`` and ``stored`` are the weights of rows and of stored edges, as bits. ``rows`` has an
    entry per stored edge, -1 where no row is known yet.
    """
    for i in range(edges.size):
        e = edges[i]
        if e < 0 or (stored.size and bits[i] != stored[e]):
            continue
        if rows[e] < 0 or i < rows[e]:
            rows[e] = i


def rows_that_count(edges, weights, stored, n_edges: int, dtype):
    """Return the first row of each stored edge that has its weight; see
    ``protocols.EdgeRowsBackend``.
    """
    rows = np.full(n_edges, -1, dtype)
    nothing = np.zeros(0, np.int32)
    # Their bits, so that the code is compiled once per width.
    if weights is None:
        bits = nothing
    else:
        bits = _as_input(weights.view(f"i{weights.itemsize}"))
    if stored is None:
        stored_bits = nothing
    else:
        stored_bits = _as_input(stored.view(f"i{stored.itemsize}"))
    for positions in edges:
        _find_first_rows(_as_input(positions), bits, stored_bits, rows)
    return rows
