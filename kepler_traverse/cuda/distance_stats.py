"""Figures and histograms of rows of distances on a GPU, all rows at once; see distance_stats.cu, hop_histograms.cu.

The twin of ``cpu.figures``.

For k rows of n distances of b bytes that is, beside a copy to the host each: for the figures 2 launches (1 up to 1,024
vertices, 3 from 2^20 on), which read k n b bytes and write and read 48 for each PIECE of a row; for the histograms one,
which reads k n b bytes, and one that clears k ``BINS`` counts of 8. Offsets of 8 bytes a vertex are read of pieces alone
that are reached in part. Counts of hops take two launches and two that clear, and read k n b bytes twice, too; their
figures take one, which reads them once and writes and reads 16 bytes a level.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .._arrays import flat
from ..algorithms import ALGORITHMS
from . import cp
from .compiler import Request, kernel
from .kernel_spec import WARP, Entry, arguments
from .launch import launch, launch_blocks, max_grid

BLOCK = 256
PIECE = 1024  # values of a reduction block; the CPU's has as many, so that sums have the same bits
BINS = 128  # of a histogram at most
STRETCH = 1 << 14  # distances that a block counts before it adds its counts up
LEVELS = 2048  # of a search, which are counted in shared memory
LEVELS_AT_ONCE = 1 << 23  # of all rows together: 64 MiB of counts, which a search of many levels would need for many rows
_WORDS = 6  # of a record
_N_STATISTICS = 4  # of a row of levels

_FILE = Path(__file__).parent / "kernels" / "distance_stats.cu"
_LEVELS_FILE = Path(__file__).parent / "kernels" / "hop_histograms.cu"
_ROWS = ("weight_t* distance", "int64 pitch", "int64 n_vertices", "int64 n_rows", "weight_t limit")


def _entry(name: str, *declared: str, item_threads: int = 1) -> Entry:
    constants = (("PIECE", PIECE), ("BINS", BINS), ("STRETCH", STRETCH))
    return Entry(name, _FILE, BLOCK, arguments(*declared), item_threads, constants=constants)


def _of_hops(name: str, *declared: str, item_threads: int = 1) -> Entry:
    constants = (("PIECE", PIECE), ("STRETCH", STRETCH), ("LEVELS", LEVELS), ("HOP_BYTES", 1), ("COUNT_BYTES", 8))
    return Entry(name, _LEVELS_FILE, BLOCK, arguments(*declared), item_threads, constants=constants)


_PIECES = _entry("distance_stats_pieces_warp", *_ROWS, "offset_t* offsets", "int64* records", item_threads=WARP)
_FOLD = _entry(
    "distance_stats_fold_warp",
    *("int64* records", "int64 n_records", "int64 n_rows", "int64* folded_records"),
    item_threads=WARP,
)
_BINS = _entry("distance_stats_bins", *_ROWS, "int64* scales", "int64* bins")
_HOP_ROWS = ("uint8* distance", *_ROWS[1:4])
_HOPS = _of_hops("distance_stats_hops_warp", *_HOP_ROWS, "offset_t* offsets", "int64* found", item_threads=WARP)
_LEVELS = _of_hops("distance_stats_levels", *_HOP_ROWS, "int64 n_levels", "int64* levels")
_OF_LEVELS = _of_hops(
    "summary_of_levels",
    *("uint8* counts", "int64 pitch", "int64 n_levels", "int64 n_rows", "float64* values", "float64* figures"),
)
ENTRIES = (_PIECES, _FOLD, _BINS, _HOPS, _LEVELS, _OF_LEVELS)


def figures(distance, offsets, limit) -> tuple:
    """Columns of ``kepler_traverse.distance_stats.Figures``."""
    (k, n), kind = distance.shape, distance.dtype
    size = _n_pieces(n)
    records = cp.empty((k, size, _WORDS), np.int64)
    launch(_kernel(_PIECES, kind), k * size, (*_rows(distance, limit), offsets, records))
    while size > 1:
        folded = cp.empty((k, _n_pieces(size), _WORDS), np.int64)
        launch(_kernel(_FOLD, kind), k * _n_pieces(size), (records, np.int64(size), np.int64(k), folded))
        records, size = folded, _n_pieces(size)
    found = np.ascontiguousarray(records.get()[:, 0].T)
    total, harmonic = found[:2].view(np.float64)
    lowest, farthest = (_from_ordered(keys, kind) for keys in found[3:5])
    none = found[2] == 0
    return found[2], np.where(none, np.inf, lowest), np.where(none, -np.inf, farthest), total, harmonic, found[5]


def bins(distance, limit, bins_per_unit, before, n_bins: int):
    """As ``kepler_traverse.distance_stats.bins_of``."""
    k, n = distance.shape
    scales = cp.asarray(np.stack([bins_per_unit.view(np.int64), before], axis=1))
    counts = cp.zeros((k, BINS), np.int64)
    blocks = min(k * -(-n // STRETCH), max_grid(BLOCK))
    launch_blocks(_kernel(_BINS, distance.dtype), blocks, (*_rows(distance, limit), scales, counts))
    return counts.get()[:, :n_bins]


def levels(distance, offsets, limit):
    """As ``kepler_traverse.distance_stats.levels_of``."""
    k, n = distance.shape
    found = cp.zeros((k, 2), np.int64)
    launch(_kernel(_HOPS, distance.dtype), k * _n_pieces(n), (*_hop_rows(distance), offsets, found))
    farthest, edges = found.get().T
    n_levels = int(min(farthest.max(), farthest.max() if limit is None else limit)) + 1
    at_once = max(1, LEVELS_AT_ONCE // n_levels)
    for first in range(0, k, at_once):
        rows = distance[first : first + at_once]
        some = cp.zeros((len(rows), n_levels), np.int64)
        blocks = min(len(rows) * -(-n // STRETCH), max_grid(BLOCK))
        launch_blocks(_kernel(_LEVELS, distance.dtype), blocks, (*_hop_rows(rows), np.int64(n_levels), some))
        yield some, edges[first : first + at_once]


def summary_of_levels(counts):
    """As ``kepler_traverse.distance_stats.summary_of_levels``."""
    k, n_levels = counts.shape
    # A block folds one row after the other in the same place, and there are as many blocks as have room.
    blocks = min(k, max_grid(BLOCK), max(1, LEVELS_AT_ONCE // n_levels))
    values, found = cp.empty((blocks, n_levels), np.float64), cp.empty((k, _N_STATISTICS), np.float64)
    entry = _OF_LEVELS.variant(COUNT_BYTES=counts.dtype.itemsize)
    launch_blocks(kernel(entry, np.int32), blocks, (*_hop_rows(counts), values, found))
    return found.get()


def bytes_needed(algorithm: str, n_rows: int, n_vertices: int) -> int:
    """Bytes that figures and histograms of rows of distances take meanwhile.

    Of hops that is, for each level of as many rows as are counted at once: its count, what is folded, and bins of two of
    them. A search may have as many levels as the graph has vertices.
    """
    if ALGORITHMS[algorithm].counts_hops:
        return 24 * min(n_rows * n_vertices, max(LEVELS_AT_ONCE, n_vertices)) + 48 * n_rows
    pieces = _n_pieces(n_vertices)
    return 8 * n_rows * (_WORDS * (pieces + _n_pieces(pieces)) + BINS)


def likely_kernels(hops: bool, weight_t) -> list[Request]:
    """Kernels for statistics of distances that are not known yet."""
    if hops:
        return [Request(_OF_LEVELS.variant(COUNT_BYTES=4)), Request(_OF_LEVELS)]
    return [Request(_PIECES.variant(STRETCH=STRETCH), np.int32, weight_t)]


def _kernel(entry: Entry, kind: np.dtype):
    if kind.kind == "f":
        return kernel(entry.variant(STRETCH=STRETCH), np.int32, kind)
    return kernel(entry.variant(STRETCH=STRETCH, LEVELS=LEVELS, HOP_BYTES=kind.itemsize), np.int32)


def _rows(distance, limit) -> tuple:
    memory, pitch = flat(distance)
    return memory, pitch, np.int64(distance.shape[1]), np.int64(len(distance)), limit


def _hop_rows(distance) -> tuple:
    memory, pitch = flat(distance)
    return memory.view(np.uint8), pitch, np.int64(distance.shape[1]), np.int64(len(distance))


def _n_pieces(size: int) -> int:
    return -(-size // PIECE)


def _from_ordered(keys: np.ndarray, kind: np.dtype) -> np.ndarray:
    """Distances of their keys; see kt/float_order.cuh."""
    ordered = np.dtype(f"i{kind.itemsize}")
    bits = keys.astype(ordered)
    return np.where(bits >= 0, bits, bits ^ np.iinfo(ordered).max).view(kind).astype(np.float64)
