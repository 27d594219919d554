"""Figures and histograms of rows of distances, row by row in one pass each. The twin of
``kepler_traverse.cuda.distance_stats``."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from . import threads
from .compiled import njit
from .simd_statistics import PIECE, WIDTH, statistics_of_block

_SHORT = 1 << 14  # values of a row: for fewer, starting threads would take longer than it saves
_COUNTERS = 4  # counters per bin or level, which are used in turn; a power of two
_COUNTERS_OF_HOPS = 8  # the same, for the hops of one row alone
# The largest number of counts of levels that are returned at once: rows times levels, where all
# rows are as long as the longest of them.
LEVELS_AT_ONCE = 1 << 23


class Parts(NamedTuple):
    """Statistics of the reduction blocks of a row, output. A block is ``PIECE`` adjacent
    distances.
    """

    # of shape (2, WIDTH), of the type of the distances: the smallest distance of the row in each
    # lane of a vector, infinite before, and the largest, minus infinity before
    ends: np.ndarray
    # totals, harmonics: float64 of shape (n_pieces,): the sums of distances and of 1 / distance
    totals: np.ndarray
    harmonics: np.ndarray


def statistics(distance, offsets, limit) -> tuple[Any, ...]:
    """Return statistics of the distances from each source, the columns of
    ``kepler_traverse.search.distance_stats.DistanceStats``.

    ``distance`` is a float array of shape (k, n), infinite where unreached, and ``offsets`` are
    those of the CSR. Distances beyond ``limit``, a number of their type, are ignored. The columns,
    of shape (k,), are the number of vertices within the limit, the smallest and the largest
    distance of these, the sums of their distances and of 1 / distance, and the number of edges that
    leave all vertices reached, also beyond the limit.
    """
    # Per row: vertices and edges; smallest and largest distance; and, per reduction block, the sums
    # of distances, in ``sums[0]``, and of 1 / distance, in ``sums[1]``.
    k, n = distance.shape
    counts = np.empty((k, 2), np.int64)
    extremes = np.empty((k, 2), distance.dtype)
    sums = np.empty((2, k, -(-n // PIECE)))
    largest = np.finfo(distance.dtype).max

    def statistics_of_row(i: int, _thread: int) -> None:
        """Write the statistics of row i to its places in ``counts``, ``extremes`` and ``sums``.

        ``_thread``, which ``for_each`` passes, is not used: no scratch is shared by the rows.
        """
        # Scratch for the last block of the row, which may have fewer than PIECE distances.
        last = np.empty(PIECE, distance.dtype)
        # Of shape (2, WIDTH), before any distance: all smallest ones infinite, all largest ones
        # minus infinity. ``type`` makes an array of the type of the distances.
        ends = np.repeat(distance.dtype.type([[np.inf], [-np.inf]]), WIDTH, axis=1)
        parts = Parts(ends, sums[0, i], sums[1, i])
        _row_statistics(distance[i], offsets, limit, largest, last, counts[i], parts)
        extremes[i] = ends[0].min(), ends[1].max()

    if n < _SHORT:
        for i in range(k):
            statistics_of_row(i, 0)
    else:
        threads.for_each(statistics_of_row, k)

    lowest, farthest = extremes.astype(np.float64).T
    totals, harmonics = fold_sums(sums)
    return counts[:, 0], lowest, farthest, totals, harmonics, counts[:, 1]


def fold_sums(sums):
    """Return the total of the sums of blocks, added in the order in which a GPU adds them, so that
    the result has the same bits.

    ``sums`` are float64 of shape (..., n_blocks), and the result lacks the last axis. With one
    block the result is the sum of that block. Else each ``PIECE`` sums form a block again, in which
    value i and value i + half are added until one is left; and so on, until there is one block.
    """
    while sums.shape[-1] > 1:
        n_pieces = -(-sums.shape[-1] // PIECE)
        # Zeros fill the last block.
        padded = np.zeros((*sums.shape[:-1], n_pieces * PIECE))
        padded[..., : sums.shape[-1]] = sums
        values = padded.reshape(*sums.shape[:-1], n_pieces, PIECE)
        half = PIECE // 2
        while half:
            values = values[..., :half] + values[..., half:]
            half //= 2
        sums = values[..., 0]
    return sums[..., 0]


def bins(distance, limit, bins_per_unit, before, n_bins: int):
    """Return the number of distances of each row in each bin, int64 of shape (k, n_bins).

    ``distance`` is a float array of shape (k, n). Distances beyond ``limit`` are not counted. Bin b
    of row i has the distances d for which floor(d * bins_per_unit[i]) - before[i] is b; each
    distance within the limit must be in one.
    """
    totals = np.empty((len(distance), n_bins), np.int64)
    for i, row in enumerate(distance):
        counts = np.zeros((_COUNTERS, n_bins), np.int64)
        _count_bins(row, limit, bins_per_unit[i], before[i], counts)
        counts.sum(axis=0, out=totals[i])
    return totals


def bins_of_hops(distance, shift, first, n_bins: int):
    """Return how many vertices of one row are in each bin of 2^shift hops, int64 of shape
    (n_bins,), from bin ``first`` on.

    ``distance`` has the hops of all vertices, -1 where unreached. Each reached vertex must be in
    one of the bins.
    """
    # One more bin, the first, counts the vertices that are not reached, and is left out at the end.
    counts = np.zeros((n_bins + 1, _COUNTERS_OF_HOPS), np.int64)
    _count_hops(distance, shift, first, counts.reshape(-1))
    return counts[1:].sum(axis=1)


def levels(distance, offsets, limit):
    """Yield the numbers of vertices at 0, 1, 2, ... hops, and of edges, for some rows at a time.

    ``distance`` has a row of hops per source, -1 where unreached. Levels beyond ``limit`` are left
    out, if it is not None. Each pair that is yielded has the counts of the next rows, int64 of
    shape (n_rows, n_levels) with 0 behind the last level of a row, and the number of edges that
    leave the vertices reached by each row, int64 of shape (n_rows,). Rows are taken together as
    long as their counts are at most ``LEVELS_AT_ONCE``.
    """
    rows = []  # the counts of each row that is not yielded yet
    edges = []
    most_levels = 0
    for distances in distance:
        last_level, n_edges = _find_last_level(distances, offsets)
        if limit is not None:
            last_level = min(last_level, limit)
        n_levels = int(last_level) + 1

        # Yield the rows so far, if with this one, all padded to the longest, they were too large.
        if rows and (len(rows) + 1) * max(most_levels, n_levels) > LEVELS_AT_ONCE:
            yield _pad_rows(rows, most_levels), np.array(edges, np.int64)
            rows = []
            edges = []
            most_levels = 0

        counts = np.zeros((_COUNTERS, n_levels), np.int64)
        _count_levels(distances, n_levels, counts)
        rows.append(counts.sum(axis=0))
        edges.append(n_edges)
        most_levels = max(most_levels, n_levels)
    if rows:
        yield _pad_rows(rows, most_levels), np.array(edges, np.int64)


def _pad_rows(rows, longest: int):
    """Return k rows of counts as an int64 array of shape (k, longest), with 0 behind shorter
    ones.
    """
    counts = np.zeros((len(rows), longest), np.int64)
    for to, row in zip(counts, rows, strict=True):
        to[: row.size] = row
    return counts


def summary_of_levels(counts):
    """Return, per row of counts, the number of vertices, the last level, the sum of hops and that
    of 1 / hops: float64 of shape (k, 4).

    ``counts``, integers of shape (k, n_levels), has the number of vertices at 0, 1, 2, ... hops.
    """
    counts = np.ascontiguousarray(counts, np.int64)
    summary = np.zeros((len(counts), 4))
    _summary_of_levels(counts, summary, np.empty(counts.shape[1]))
    return summary


@njit(cache=True, nogil=True)
def _row_statistics(distance, offsets, limit, largest, last, counts, parts):
    """Store the number of vertices within the limit, and of edges that leave reached vertices, in
    ``counts``, of shape (2,), and extremes and sums of the blocks of the row in ``parts``.

    ``distance`` is a row of n distances. ``largest`` is the largest finite number of their type.
    ``last`` is scratch of shape (PIECE,), with any values before: a last block of fewer than
    ``PIECE`` distances is copied to it and filled up with infinity. ``parts`` is ``Parts``.
    """
    ends = parts.ends
    totals = parts.totals
    harmonics = parts.harmonics
    n = distance.size
    reached = edges = 0
    for piece in range(totals.size):
        first = piece * PIECE
        size = PIECE if n - first > PIECE else n - first
        # The vector code takes whole blocks.
        if size == PIECE:
            total, harmonic, within, finite = statistics_of_block(
                distance, first, limit, largest, ends
            )
        else:
            for i in range(PIECE):
                last[i] = distance[first + i] if i < size else np.inf
            total, harmonic, within, finite = statistics_of_block(last, 0, limit, largest, ends)

        totals[piece] = total
        harmonics[piece] = harmonic
        reached += within

        # Offsets have the edges of a block that is reached as a whole.
        if finite == size:
            edges += offsets[first + size] - offsets[first]
        elif finite > 0:
            for v in range(first, first + size):
                edges += offsets[v + 1] - offsets[v] if distance[v] <= largest else 0
    counts[0] = reached
    counts[1] = edges


@njit(cache=True, nogil=True)
def _count_bins(distance, limit, bins_per_unit, before, counts):
    """Count the distances of a row up to ``limit`` in bins, the first of which is number
    ``before``.

    The bin of a distance d is floor(d * bins_per_unit). ``counts``, int64 of shape (_COUNTERS,
    n_bins), has several counters per bin, which the caller adds up.
    """
    # Neighbors are at about the same distance: with several counters used in turn, no count waits
    # for the one before.
    for v in range(distance.size):
        if distance[v] <= limit:
            counts[v & (_COUNTERS - 1), int(np.floor(distance[v] * bins_per_unit)) - before] += 1


@njit(cache=True, nogil=True)
def _find_last_level(distance, offsets):
    """Return the largest number of hops in the row ``distance``, -1 if no vertex is reached, and
    the number of edges that leave the vertices reached, those at 0 hops or more. ``offsets`` are
    those of the CSR.
    """
    last_level = distance[0]
    edges = 0
    for v in range(distance.size):
        last_level = max(last_level, distance[v])
        if distance[v] >= 0:
            edges += offsets[v + 1] - offsets[v]
    return last_level, edges


@njit(cache=True, nogil=True)
def _count_levels(distance, n_levels, counts):
    """Count the vertices of a row at each number of hops below ``n_levels``.

    ``distance`` is a row of hops, -1 where unreached. ``counts``, of shape (_COUNTERS, n_levels),
    has several counters per level, which the caller adds up; it is 0 before.
    """
    for v in range(distance.size):
        if 0 <= distance[v] < n_levels:
            counts[v & (_COUNTERS - 1), distance[v]] += 1  # in turn, as in ``_count_bins``


@njit(cache=True, nogil=True)
def _summary_of_levels(counts, summary, values):
    """Write to ``summary``, of shape (k, 4), the number of vertices, the last level, the sum of
    hops and that of 1 / hops of each row of ``counts``, of shape (k, n_levels).

    ``values``, of shape (n_levels,), is scratch for the reciprocals, which are added by halves, as
    on a GPU.
    """
    for i in range(len(counts)):
        reached = 0
        farthest = 0
        total = 0
        for level in range(counts.shape[1]):
            count = counts[i, level]
            values[level] = count * (1.0 / level) if level > 0 else 0.0
            reached += count
            total += count * level
            if count > 0:
                farthest = level

        # Value i and value i + half are added; of an odd number the middle one stays.
        size = farthest + 1
        while size > 1:
            half = (size + 1) // 2
            for level in range(size - half):
                values[level] += values[level + half]
            size = half

        summary[i, 0] = reached
        summary[i, 1] = farthest
        summary[i, 2] = total
        summary[i, 3] = values[0]


@njit(cache=True, nogil=True)
def count_edges(offsets, distance, unreached):
    """Return the number of stored edges that leave the vertices that one row reaches: those whose
    ``distance``, of shape (n_vertices,), is not ``unreached``. ``offsets`` are those of the CSR.
    """
    edges = 0
    for v in range(distance.size):
        if distance[v] != unreached:
            edges += offsets[v + 1] - offsets[v]
    return edges


@njit(cache=True, nogil=True)
def _count_hops(distance, shift, first, counts):
    """Count the vertices of a row in bins of 2^shift hops, from bin ``first`` on.

    ``distance`` has the hops of all vertices. ``counts``, int64 of shape ((1 + n_bins) *
    _COUNTERS_OF_HOPS,), 0 before, has the counters of each bin side by side. The first of its bins
    counts the vertices that are not reached, at -1 hops.
    """
    # Adjacent vertices have similar distances. Several counters per bin, used in turn, avoid
    # dependent additions. Indices are unsigned, so that Numba does not ask whether they are below 0
    # and counted from the end.
    for v in range(distance.size):
        hops = np.int64(distance[v])
        if hops < 0:
            bin_of_vertex = np.uint64(0)
        else:
            bin_of_vertex = np.uint64((hops >> shift) - first + 1)
        counts[
            bin_of_vertex * np.uint64(_COUNTERS_OF_HOPS) | np.uint64(v & (_COUNTERS_OF_HOPS - 1))
        ] += 1
