"""Rows of an edge list and the stored edges that they became, on a GPU; the same as
``cpu.edge_rows``. See edge_rows.cu.

A stored edge is a position in the ``targets`` of the CSR. Parallel rows became one stored edge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .._arrays import Array
from . import cp
from .compiler import kernel
from .csr_build import decode_weights, lower_weights
from .kernel_spec import make_entries
from .launch import launch

BLOCK = 256
# Rows of one launch. Kernels read and write the edges of rows as int64, so that arrays of another
# type are converted, a part at a time to save memory.
ROWS_AT_ONCE = 1 << 24

_FILE = Path(__file__).parent / "kernels" / "edge_rows.cu"
_entry = make_entries(_FILE, BLOCK)
_FIND = _entry("edge_rows_find")
_FIRST = _entry("edge_rows_first", optional="weights stored")
ENTRIES = (_FIND, _FIRST)


def find_edges(offsets: Array, targets: Array, src: Array, dst: Array, dtype: np.dtype) -> Array:
    """Return the stored edge of each row of an edge list, of the type ``dtype``: its position in
    ``targets``. It is -1 - src where there is none, as for a self-loop.

    ``offsets`` and ``targets`` are the CSR, and ``src`` and ``dst`` the vertex numbers of the rows.
    """
    edges = cp.empty(src.size, dtype)
    src = cp.ascontiguousarray(src)
    dst = cp.ascontiguousarray(dst)
    for first in range(0, src.size, ROWS_AT_ONCE):
        rows = slice(first, first + ROWS_AT_ONCE)
        part = cp.empty(src[rows].size, np.int64)  # the edges of these rows, as kernels write them
        args = {
            "offsets": offsets,
            "targets": targets,
            "src": src[rows],
            "dst": dst[rows],
            "n_rows": np.int64(part.size),
            "edges": part,
        }
        launch(kernel(_FIND, targets.dtype), part.size, args)
        edges[rows] = part.astype(dtype)
    return edges


def lowest_weights(edges: Iterable[Array], weights: Array, n_edges: int) -> Array:
    """Return the smallest weight of the rows of each stored edge, of shape (n_edges,).

    ``edges`` are one or two arrays of shape (rows,) that have the stored edge of each row, negative
    for none. ``weights`` has shape (rows,).
    """
    # Weights are compared as integers of their width in the same order (keys), as atomic minima on
    # a GPU are of integers.
    key_dtype = np.dtype(f"i{weights.dtype.itemsize}")
    lowest = cp.full(n_edges, np.iinfo(key_dtype).max, key_dtype)
    weights = cp.ascontiguousarray(weights)
    for _, rows, part in _iter_parts(edges):
        lower_weights(part, weights[rows], 0, lowest)
    return decode_weights(lowest, weights.dtype)


def rows_that_count(
    edges: Iterable[Array], weights: Array | None, stored: Array, n_edges: int, dtype: np.dtype
) -> Array:
    """Return the first row of each stored edge that has the edge's weight, of shape (n_edges,) and
    the type ``dtype``; without ``weights`` the first row of all.

    ``edges`` are one or two arrays of shape (rows,) that have the stored edge of each row, negative
    for none. ``weights`` has shape (rows,), and ``stored`` the weight of each stored edge.
    """
    # The kernel lowers them: before, the largest number stands for no row.
    rows_of_edges = cp.full(n_edges, np.iinfo(np.int64).max, np.int64)
    if weights is not None:
        weights = cp.ascontiguousarray(weights)
    entry = kernel(_FIRST, np.int32, np.dtype(np.float32) if weights is None else weights.dtype)
    for first, rows, part in _iter_parts(edges):
        weights_of_rows = None if weights is None else weights[rows]
        sizes = np.int64(part.size), np.int64(first)
        launch(entry, part.size, (part, weights_of_rows, stored, *sizes, rows_of_edges))
    return rows_of_edges.astype(dtype)


def _iter_parts(edges: Iterable[Array]) -> Iterator[Any]:
    """Yield each part of the rows of each array: its first row, its slice of rows, and the stored
    edges of these rows, int64.

    Each array has the stored edge of each row. A second array is there if a row became two edges,
    one from src to dst and one from dst to src.
    """
    for positions in edges:
        for first in range(0, positions.size, ROWS_AT_ONCE):
            rows = slice(first, first + ROWS_AT_ONCE)
            yield first, rows, cp.ascontiguousarray(positions[rows]).astype(np.int64)
