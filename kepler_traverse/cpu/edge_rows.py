"""Rows of an edge list and the stored edges that they became, on the CPU; ``cuda.edge_rows`` is the
same on a GPU.
"""

from __future__ import annotations

import numpy as np

from . import threads
from .atomics import atomic_add
from .compiled import njit
from .csr_build import read_only

_BLOCKS = 256  # blocks into which the rows are divided; a thread takes one at a time


@njit(cache=True, nogil=True)
def _find_edges(next_block, n_blocks, offsets, targets, src, dst, edges):
    """Write to ``edges`` the position of the stored edge of each row of the edge list, by binary
    search in the ascending adjacency list of its source.

    ``src`` and ``dst`` are vertex numbers. A row without a stored edge, such as a self-loop, gets
    -1 - u instead, where u is its source. Threads take blocks of rows from the counter
    ``next_block``, until it is ``n_blocks``.
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

            # The first edge of u that leads to v or beyond it; ``end`` if there is none.
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
    """Return the position in ``targets`` of the stored edge of each row of an edge list; for a row
    without a stored edge, such as a self-loop, -1 - u, where u is its element of ``src``.

    ``offsets`` and ``targets`` are the CSR. ``src`` and ``dst`` are vertex numbers of the type of
    the targets, of shape (rows,), and the result has this shape and the given ``dtype``.
    """
    edges = np.empty(src.size, dtype)
    arrays = [_as_input(array) for array in (offsets, targets, src, dst)]
    threads.run(_find_edges, min(src.size, _BLOCKS), *arrays, edges)
    return edges


def _as_input(array):
    """Return an array as compiled functions here take all their inputs, contiguous and read-only,
    so that Numba compiles them once.
    """
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
    """Return the smallest weight of the rows of each stored edge, of shape (n_edges,) and the type
    of ``weights``.

    ``weights`` has the weight of each row. ``edges`` are several arrays of the same length: the
    position of a stored edge that each row became, negative for none. Rows of an undirected graph
    are two stored edges. Each stored edge must occur.
    """
    lowest = np.empty(n_edges, weights.dtype)
    known = np.zeros(n_edges, np.bool_)
    for positions in edges:
        _lower_weights(_as_input(positions), _as_input(weights), known, lowest)
    return lowest


@njit(cache=True)
def _find_first_rows(edges, bits, stored, rows):
    """Lower ``rows``, which has an entry per stored edge, to the first row of this edge.

    Only rows whose weight is that of the stored edge count, unless ``stored`` is empty. ``edges``
    has, for each row, the position of the stored edge that it became, below 0 for none. ``bits``
    and ``stored`` are the weights of rows and of stored edges, as integers of the same bits.
    ``rows`` is -1 where no row is known yet.
    """
    for i in range(edges.size):
        e = edges[i]
        if e < 0 or (stored.size and bits[i] != stored[e]):
            continue
        if rows[e] < 0 or i < rows[e]:
            rows[e] = i


def rows_that_count(edges, weights, stored, n_edges: int, dtype):
    """Return, for each stored edge, the first row of the edge list that has its weight, or the
    first row without weights; an array of shape (n_edges,) and the given ``dtype``.

    ``edges`` are several arrays of shape (rows,), as for ``lowest_weights``. ``weights`` has the
    weight of each row and ``stored`` that of each stored edge, of one type; both may be None.
    """
    rows = np.full(n_edges, -1, dtype)
    nothing = np.zeros(0, np.int32)
    # Weights are compared as integers of the same bits, so that the code is compiled once per
    # width.
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
