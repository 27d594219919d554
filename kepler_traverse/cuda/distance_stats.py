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
# 64-bit words of a record, which holds the statistics of a source, or of one of its reduction
# blocks: the sums of distances and of 1 / distance, as the bits of float64; the number of vertices;
# the keys of the smallest and of the largest distance, integers in the order of distances; edges
_WORDS = 6
_N_STATISTICS = 4  # numbers per source that ``summary_of_levels`` returns

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
    """Return statistics of weighted distances, NumPy arrays with one number per source.

    ``distance`` is float32 or float64 of shape (k, n_vertices), infinite where unreached.
    ``offsets`` are those of the CSR, and ``limit`` is the largest distance that counts, of the type
    of the distances.

    Return the number of vertices within the limit; their smallest and largest distance, inf and
    -inf without a vertex; the sum of their distances, and of the reciprocals of those above 0; and
    the number of edges of all reached vertices, also beyond the limit. These are the fields of
    ``search.distance_stats.DistanceStats``.
    """
    k, n = distance.shape
    kind = distance.dtype
    size = _n_reduction_blocks(n)
    # A record per reduction block of 1,024 vertices, which are then reduced to one per source.
    records = cp.empty((k, size, _WORDS), np.int64)
    args = {**_distance_arguments(distance, limit), "offsets": offsets, "records": records}
    launch(_kernel(_REDUCE, kind), k * size, args)
    return fold_records(records, kind)


def fold_records(records: Array, kind: np.dtype) -> tuple[Any, ...]:
    """Reduce the records of the reduction blocks of each source to one, and return what
    ``statistics`` does.

    ``records`` is int64 of shape (k, n_reduction_blocks, words), with the words that the comment at
    ``_WORDS`` lists. ``kind`` is the type of the distances.
    """
    k, size, _ = records.shape
    # Each launch reduces 1,024 records to one, in an order that fixes the bits of the sums.
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
    """Count the distances of each source in bins of equal width; return int64 of shape (k, n_bins),
    NumPy.

    ``distance`` has weighted distances of shape (k, n_vertices), of which those above ``limit`` do
    not count. ``bins_per_unit``, float64, and ``before``, int64, are NumPy arrays of shape (k,): a
    distance d is in bin ``floor(d * bins_per_unit) - before``. ``n_bins`` is 128 at most.
    """
    # Per source two words: the bits of a float64, and the number of bins before the first one.
    k, n = distance.shape
    scales = cp.asarray(np.stack([bins_per_unit.view(np.int64), before], axis=1))
    counts = cp.zeros((k, BINS), np.int64)
    blocks = min(k * -(-n // TILE), max_grid(BLOCK))
    args = {**_distance_arguments(distance, limit), "scales": scales, "bins": counts}
    launch_blocks(_kernel(_BINS, distance.dtype), blocks, args)
    return counts.get()[:, :n_bins]


def levels(distance: Array, offsets: Array, limit: Any) -> Iterator[tuple[Array, np.ndarray]]:
    """Count the vertices at 0, 1, 2, ... hops from each source, up to ``limit``, None for none.

    ``distance`` has hops, int8, int16 or int32, of shape (k, n_vertices), -1 where unreached.
    ``offsets`` are those of the CSR. Yield for the next sources, as many as fit into bounded
    memory: the counts, CuPy int64 of shape (n_sources, n_levels), and the number of edges of all
    vertices that each of these sources reaches, NumPy int64 of shape (n_sources,).
    """
    k, n = distance.shape
    # the largest hop count of each source, and the edges of the vertices that it reaches
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
    """Return statistics of hops from counts of vertices per level: NumPy float64 of shape (k, 4).

    ``counts`` has shape (k, n_levels): how many vertices are at 0, 1, 2, ... hops of each source.
    The columns returned are the number of vertices, the last level that has one, the sum of their
    hops, and the sum of 1 / hops of those above 0.
    """
    k, n_levels = counts.shape
    # A block reduces one source after the other in the same memory, ``n_levels`` values. All blocks
    # have LEVELS_AT_ONCE values at most, but one block may have more.
    blocks = min(k, max_grid(BLOCK), max(1, LEVELS_AT_ONCE // n_levels))
    values = cp.empty((blocks, n_levels), np.float64)
    rows = cp.empty((k, _N_STATISTICS), np.float64)
    entry = _OF_LEVELS.variant(COUNT_BYTES=counts.dtype.itemsize)
    launch_blocks(kernel(entry, np.int32), blocks, (*_hop_arguments(counts), values, rows))
    return rows.get()


def bytes_needed(hops: bool, n_sources: int, n_vertices: int) -> int:
    """Return the bytes of device memory that computing statistics and histograms needs.

    ``hops`` is whether distances are hops, and not weighted.
    """
    # For hops 24 bytes per level of the sources that are counted at once: its count, the value that
    # is reduced, and bins of two of them. A search may have as many levels as the graph vertices.
    # So there are n_vertices levels per source at most, and in all no more than LEVELS_AT_ONCE, or
    # than one source has. 48 bytes per source: its largest hop count, its edges, and four
    # statistics.
    if hops:
        return 24 * min(n_sources * n_vertices, max(LEVELS_AT_ONCE, n_vertices)) + 48 * n_sources
    blocks = _n_reduction_blocks(n_vertices)
    return 8 * n_sources * (_WORDS * (blocks + _n_reduction_blocks(blocks)) + BINS)


def likely_kernels(hops: bool, weight_t: DTypeLike) -> list[Request]:
    """Return requests for the kernels that statistics are likely to need, so that they are compiled
    before there are distances. ``hops`` is whether these are hops; else ``weight_t`` is their type.
    """
    if hops:
        return [Request(_OF_LEVELS.variant(COUNT_BYTES=4)), Request(_OF_LEVELS)]
    return [Request(_REDUCE.variant(TILE=TILE), np.int32, weight_t)]


def _kernel(entry: Entry, kind: np.dtype) -> Kernel:
    """Return a kernel for distances of the type ``kind``: weighted if it is a float, else hops.

    All kernels of a file take the same constants, so that the file is compiled once.
    """
    if kind.kind == "f":
        return kernel(entry.variant(TILE=TILE), np.int32, kind)
    return kernel(entry.variant(TILE=TILE, LEVELS=LEVELS, HOP_BYTES=kind.itemsize), np.int32)


def _distance_arguments(distance: Array, limit: Any) -> dict[str, Any]:
    """Return the arguments, by name, that kernels have in common which read weighted distances of
    shape (k, n_vertices), up to ``limit``.
    """
    # ``pitch`` is the number of elements from the distances of one source to those of the next
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
    """Return the first arguments of kernels that read hops, or counts per level, one line per
    source: the bytes, the elements from one line to the next, the elements of a line that count,
    and the number of lines.
    """
    memory, pitch = flatten_distances(distance)
    return memory.view(np.uint8), pitch, np.int64(distance.shape[1]), np.int64(len(distance))


def _n_reduction_blocks(size: int) -> int:
    """Return how many reduction blocks ``size`` values have: each has 1,024 of them."""
    return -(-size // PIECE)
