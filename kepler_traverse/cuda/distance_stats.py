"""Statistics and histograms of distances on a GPU, for several sources; see distance_stats.cu and
hop_histograms.cu.

The same results as ``cpu.distance_stats``. For k sources, n vertices and distances of b bytes, with
one copy to the host for each result:

- Statistics of weighted distances take 2 launches (1 up to 1,024 vertices, 3 from 2^20 on). They
  read k n b bytes, and write and read 48 bytes per reduction block.
- Histograms of weighted distances take one launch that reads k n b bytes, and one that clears k
  ``BINS`` counts of 8 bytes.
- Offsets, 8 bytes per vertex, are read only for reduction blocks of which a part is reached.
- Counts of hops take two launches and two that clear, and read k n b bytes twice. Their statistics
  take one launch, which reads the counts once and writes and reads 16 bytes per level.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .._arrays import Array, flatten_distances, keys_to_distances
from . import cp
from .compiler import Kernel, Request, kernel
from .kernel_spec import WARP, Entry, make_entries
from .launch import launch, launch_blocks, max_grid

BLOCK = 256
PIECE = 1024  # values of a reduction block; as many as on a CPU, so that sums have the same bits
BINS = 128  # of a histogram at most
TILE = 1 << 14  # distances that a block counts before it adds its counts to global memory
LEVELS = 2048  # levels that are counted in shared memory
LEVELS_AT_ONCE = 1 << 23  # levels of all sources that are counted at once: 64 MiB of counts
# of a record of a source or a part of one: the sums of distances and of 1 / distance, vertices, the
# keys of the smallest and of the largest distance, edges
_WORDS = 6
_N_STATISTICS = 4  # per source

_FILE = Path(__file__).parent / "kernels" / "distance_stats.cu"
_LEVELS_FILE = Path(__file__).parent / "kernels" / "hop_histograms.cu"
_CONSTANTS = (
    ("REDUCTION_BLOCK", PIECE),
    ("BINS", BINS),
    ("TILE", TILE),
    ("RECORD_WORDS", _WORDS),
)


_SIZES = (
    ("REDUCTION_BLOCK", PIECE),
    ("TILE", TILE),
    ("LEVELS", LEVELS),
    ("N_STATISTICS", _N_STATISTICS),
)
_of_hops = make_entries(
    _LEVELS_FILE, BLOCK, constants=(*_SIZES, ("HOP_BYTES", 1), ("COUNT_BYTES", 8))
)
_entry = make_entries(_FILE, BLOCK, constants=_CONSTANTS)
_REDUCE = _entry("distance_stats_reduce_warp", item_threads=WARP)
_FOLD = _entry("distance_stats_fold_warp", item_threads=WARP)
_BINS = _entry("distance_stats_bins")
_HOPS = _of_hops("distance_stats_hops_warp", item_threads=WARP)
_LEVELS = _of_hops("distance_stats_levels")
_OF_LEVELS = _of_hops("summary_of_levels")
ENTRIES = (_REDUCE, _FOLD, _BINS, _HOPS, _LEVELS, _OF_LEVELS)


def statistics(distance: Array, offsets: Array, limit: Any) -> tuple[Any, ...]:
    """Return columns of ``kepler_traverse.search.distance_stats.DistanceStats``.

    ``distance`` is of shape (k, n_vertices), ``offsets`` are those of the CSR, and ``limit`` is the
    largest distance that counts, of the type of the distances.
    """
    k, n = distance.shape
    kind = distance.dtype
    size = _n_reduction_blocks(n)
    records = cp.empty((k, size, _WORDS), np.int64)
    args = {**_distance_arguments(distance, limit), "offsets": offsets, "records": records}
    launch(_kernel(_REDUCE, kind), k * size, args)
    return fold_records(records, kind)


def fold_records(records: Array, kind: np.dtype) -> tuple[Any, ...]:
    """Reduce records of shape (k, n_reduction_blocks, words), and return the columns of
    ``statistics``.

    Records are int64, with the words that ``_WORDS`` counts. ``kind`` is the type of the distances.
    """
    k, size, _ = records.shape
    while size > 1:
        folded = cp.empty((k, _n_reduction_blocks(size), _WORDS), np.int64)
        launch(
            _kernel(_FOLD, kind),
            k * _n_reduction_blocks(size),
            (records, np.int64(size), np.int64(k), folded),
        )
        records = folded
        size = _n_reduction_blocks(size)

    total, harmonic, n_vertices, low_keys, high_keys, n_edges = np.ascontiguousarray(
        records.get()[:, 0].T
    )
    # Sums are the bits of float64, and extremes are integers in the order of the distances. A
    # source that reaches nothing within the limit has none.
    lowest = keys_to_distances(low_keys, kind).astype(np.float64)
    farthest = keys_to_distances(high_keys, kind).astype(np.float64)
    is_empty = n_vertices == 0
    return (
        n_vertices,
        np.where(is_empty, np.inf, lowest),
        np.where(is_empty, -np.inf, farthest),
        total.view(np.float64),
        harmonic.view(np.float64),
        n_edges,
    )


def bins(
    distance: Array, limit: Any, bins_per_unit: Array, before: Array, n_bins: int
) -> np.ndarray:
    """Count the distances of each row in bins, int64 of shape (k, n_bins); see
    ``search.distance_stats.count_bins``.
    """
    # Per source two words: the bits of a float64, and the number of the first bin.
    k, n = distance.shape
    scales = cp.asarray(np.stack([bins_per_unit.view(np.int64), before], axis=1))
    counts = cp.zeros((k, BINS), np.int64)
    blocks = min(k * -(-n // TILE), max_grid(BLOCK))
    args = {**_distance_arguments(distance, limit), "scales": scales, "bins": counts}
    launch_blocks(_kernel(_BINS, distance.dtype), blocks, args)
    return counts.get()[:, :n_bins]


def levels(distance: Array, offsets: Array, limit: Any) -> Iterator[tuple[Array, np.ndarray]]:
    """Yield the counts of vertices at 0, 1, 2, ... hops, and of edges, for some rows at a time; see
    ``search.distance_stats.count_levels``.
    """
    k, n = distance.shape
    per_source = cp.zeros((k, 2), np.int64)
    launch(
        _kernel(_HOPS, distance.dtype),
        k * _n_reduction_blocks(n),
        (*_hop_arguments(distance), offsets, per_source),
    )

    # All sources have as many levels as the deepest search, up to the limit.
    farthest, edges = per_source.get().T
    deepest = farthest.max()
    if limit is not None:
        deepest = min(deepest, limit)
    n_levels = int(deepest) + 1

    at_once = max(1, LEVELS_AT_ONCE // n_levels)
    for first in range(0, k, at_once):
        some_sources = distance[first : first + at_once]
        counts = cp.zeros((len(some_sources), n_levels), np.int64)
        blocks = min(len(some_sources) * -(-n // TILE), max_grid(BLOCK))
        launch_blocks(
            _kernel(_LEVELS, distance.dtype),
            blocks,
            (*_hop_arguments(some_sources), np.int64(n_levels), counts),
        )
        yield counts, edges[first : first + at_once]


def summary_of_levels(counts: Array) -> np.ndarray:
    """Return the vertices, the last level, the sum of hops and that of 1 / hops of each row of
    counts, float64 of shape (k, 4); see ``search.distance_stats.summary_of_levels``.
    """
    k, n_levels = counts.shape
    # A block reduces one source after the other in the same memory, which limits the number of
    # blocks.
    blocks = min(k, max_grid(BLOCK), max(1, LEVELS_AT_ONCE // n_levels))
    values = cp.empty((blocks, n_levels), np.float64)
    rows = cp.empty((k, _N_STATISTICS), np.float64)
    entry = _OF_LEVELS.variant(COUNT_BYTES=counts.dtype.itemsize)
    launch_blocks(kernel(entry, np.int32), blocks, (*_hop_arguments(counts), values, rows))
    return rows.get()


def bytes_needed(hops: bool, n_sources: int, n_vertices: int) -> int:
    """Return the bytes that statistics and histograms need while they are computed.

    For hops, and for each level of the sources that are counted at once: its count, the value that
    is reduced, and bins of two of them. A search may have as many levels as the graph has vertices.
    """
    if hops:
        return 24 * min(n_sources * n_vertices, max(LEVELS_AT_ONCE, n_vertices)) + 48 * n_sources
    blocks = _n_reduction_blocks(n_vertices)
    return 8 * n_sources * (_WORDS * (blocks + _n_reduction_blocks(blocks)) + BINS)


def likely_kernels(hops: bool, weight_t: DTypeLike) -> list[Request]:
    """Return requests for kernels for statistics of distances that are not known yet."""
    if hops:
        return [Request(_OF_LEVELS.variant(COUNT_BYTES=4)), Request(_OF_LEVELS)]
    return [Request(_REDUCE.variant(TILE=TILE), np.int32, weight_t)]


def _kernel(entry: Entry, kind: np.dtype) -> Kernel:
    """Return a kernel for distances of a type; all take the same constants, so that one file
    serves.
    """
    if kind.kind == "f":
        return kernel(entry.variant(TILE=TILE), np.int32, kind)
    return kernel(entry.variant(TILE=TILE, LEVELS=LEVELS, HOP_BYTES=kind.itemsize), np.int32)


def _distance_arguments(distance: Array, limit: Any) -> dict[str, Any]:
    """Return arguments of kernels that read weighted distances."""
    memory, pitch = flatten_distances(distance)
    n_sources, n_vertices = map(np.int64, distance.shape)
    return {
        "distance": memory,
        "pitch": pitch,
        "n_vertices": n_vertices,
        "n_sources": n_sources,
        "limit": limit,
    }


def _hop_arguments(distance: Array) -> tuple[Any, ...]:
    """Return the first arguments of kernels that read hops, or counts of levels."""
    memory, pitch = flatten_distances(distance)
    return memory.view(np.uint8), pitch, np.int64(distance.shape[1]), np.int64(len(distance))


def _n_reduction_blocks(size: int) -> int:
    """Return how many reduction blocks so many values have."""
    return -(-size // PIECE)
