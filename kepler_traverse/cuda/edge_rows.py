"""Rows of an edge list and the stored edges that they became, on a GPU; the same as
``cpu.edge_rows``. See edge_rows.cu.
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
ROWS_AT_ONCE = 1 << 24  # whose edges are int64, whatever type they are stored in

_FILE = Path(__file__).parent / "kernels" / "edge_rows.cu"
_entry = make_entries(_FILE, BLOCK)
_FIND = _entry("edge_rows_find")
_FIRST = _entry("edge_rows_first", optional="weights stored")
ENTRIES = (_FIND, _FIRST)


def find_edges(offsets: Array, targets: Array, src: Array, dst: Array, dtype: np.dtype) -> Array:
    """Return the stored edge of each row of an edge list, -1 - src where there is none; see
    ``protocols.EdgeRowsBackend``.
    """
    edges = cp.empty(src.size, dtype)
    src = cp.ascontiguousarray(src)
    dst = cp.ascontiguousarray(dst)
    for first in range(0, src.size, ROWS_AT_ONCE):
        rows = slice(first, first + ROWS_AT_ONCE)
        part = cp.empty(src[rows].size, np.int64)
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
    """Return the smallest weight of the rows of each stored edge; see
    ``protocols.EdgeRowsBackend``.
    """
    key_dtype = np.dtype(f"i{weights.dtype.itemsize}")
    lowest = cp.full(n_edges, np.iinfo(key_dtype).max, key_dtype)
    weights = cp.ascontiguousarray(weights)
    for _, rows, part in _iter_parts(edges):
        lower_weights(part, weights[rows], 0, lowest)
    return decode_weights(lowest, weights.dtype)


def rows_that_count(
    edges: Iterable[Array], weights: Array | None, stored: Array, n_edges: int, dtype: np.dtype
) -> Array:
    """Return the first row of each stored edge that has its weight; see
    ``protocols.EdgeRowsBackend``.
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
    """Yield parts of all arrays: the first row, the slice of rows, and their edges as int64.

    Each array has the stored edge of each row: one for the edges there, and perhaps one for those
    back, whose rows are the same.
    """
    for positions in edges:
        for first in range(0, positions.size, ROWS_AT_ONCE):
            rows = slice(first, first + ROWS_AT_ONCE)
            yield first, rows, cp.ascontiguousarray(positions[rows]).astype(np.int64)
