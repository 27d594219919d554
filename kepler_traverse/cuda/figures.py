"""Figures and histograms of rows of distances on a GPU, all rows at once; see figures.cu. The twin of ``cpu.figures``.

For k rows of n distances of b bytes that is, beside a copy to the host each: for the figures 2 launches (1 up to 1,024
vertices, 3 from 2^20 on), which read k n b bytes and write and read 48 for each PIECE of a row; for the histograms one,
which reads k n b bytes, and one that clears k ``BINS`` counts of 8. Offsets of 8 bytes a vertex are read of pieces alone
that are reached in part.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .._arrays import flat
from . import cp
from .entry import WARP, Entry, arguments
from .launch import largest_grid, launch, launch_blocks
from .loader import kernel

BLOCK = 256
PIECE = 1024  # as in figures.cu, and in cpu/figures.py
BINS = 128  # of a histogram at most
STRETCH = 1 << 14  # distances that a block counts before it adds its counts up
_WORDS = 6  # of a record

_FILE = Path(__file__).parent / "kernels" / "figures.cu"
_ROWS = ("weight_t* distance", "int64 pitch", "int64 n_vertices", "int64 n_rows", "weight_t limit")


def _entry(name: str, *declared: str, item_threads: int = 1) -> Entry:
    constants = (("BINS", BINS), ("STRETCH", STRETCH))
    return Entry(name, _FILE, BLOCK, arguments(*declared), item_threads, constants=constants)


_PIECES = _entry("figures_pieces_warp", *_ROWS, "offset_t* offsets", "int64* records", item_threads=WARP)
_FOLD = _entry(
    "figures_fold_warp",
    *("int64* records", "int64 n_records", "int64 n_rows", "int64* folded_records"),
    item_threads=WARP,
)
_BINS = _entry("figures_bins", *_ROWS, "int64* scales", "int64* bins")
ENTRIES = (_PIECES, _FOLD, _BINS)


def figures(distance, offsets, limit) -> tuple:
    """Columns of ``kepler_traverse.figures.Figures``."""
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


def bins(distance, limit, bins_a_unit, before, n_bins: int):
    """As ``kepler_traverse.figures.bins_of``."""
    k, n = distance.shape
    scales = cp.asarray(np.stack([bins_a_unit.view(np.int64), before], axis=1))
    counts = cp.zeros((k, BINS), np.int64)
    blocks = min(k * -(-n // STRETCH), largest_grid(BLOCK))
    launch_blocks(_kernel(_BINS, distance.dtype), blocks, (*_rows(distance, limit), scales, counts))
    return counts.get()[:, :n_bins]


def _kernel(entry: Entry, kind: np.dtype):
    return kernel(entry.variant(STRETCH=STRETCH), np.int32, kind)


def _rows(distance, limit) -> tuple:
    memory, pitch = flat(distance)
    return memory, pitch, np.int64(distance.shape[1]), np.int64(len(distance)), limit


def _n_pieces(size: int) -> int:
    return -(-size // PIECE)


def _from_ordered(keys: np.ndarray, kind: np.dtype) -> np.ndarray:
    """Distances of their keys; see kt/ordered.cuh."""
    ordered = np.dtype(f"i{kind.itemsize}")
    bits = keys.astype(ordered)
    return np.where(bits >= 0, bits, bits ^ np.iinfo(ordered).max).view(kind).astype(np.float64)
