"""Figures and histograms of rows of distances, row by row in one pass each. The twin of
``kepler_traverse.cuda.distance_stats``."""

from __future__ import annotations

import numpy as np
from numba import njit

PIECE = 1024  # values that are folded by halves; the kernels', too
LEVELS_AT_ONCE = 1 << 23  # of rows side by side, which are as long as the longest of them


def figures(distance, offsets, limit) -> tuple:
    """Columns of ``kepler_traverse.distance_stats.Figures``."""
    rows = [_figures(row, offsets, limit) for row in distance]
    kinds = (np.int64, np.float64, np.float64, np.float64, np.float64, np.int64)
    return tuple(np.array([row[i] for row in rows], kind) for i, kind in enumerate(kinds))


def bins(distance, limit, bins_per_unit, before, n_bins: int):
    """As ``kepler_traverse.distance_stats.bins_of``."""
    found = np.empty((len(distance), n_bins), np.int64)
    for i, row in enumerate(distance):
        found[i] = _bins(row, limit, bins_per_unit[i], before[i], n_bins)
    return found


def levels(distance, offsets, limit):
    """As ``kepler_traverse.distance_stats.levels_of``."""
    rows, edges, longest = [], [], 0
    for distances in distance:
        most, stored = _hops(distances, offsets)
        size = int(most if limit is None else min(most, limit)) + 1
        if rows and (len(rows) + 1) * max(longest, size) > LEVELS_AT_ONCE:
            yield _side_by_side(rows, longest), np.array(edges, np.int64)
            rows, edges, longest = [], [], 0
        rows.append(_levels(distances, size))
        edges.append(stored)
        longest = max(longest, size)
    if rows:
        yield _side_by_side(rows, longest), np.array(edges, np.int64)


def _side_by_side(rows, longest: int):
    counts = np.zeros((len(rows), longest), np.int64)
    for to, row in zip(counts, rows, strict=True):
        to[: row.size] = row
    return counts


def summary_of_levels(counts):
    """As ``kepler_traverse.distance_stats.summary_of_levels``."""
    return _summary_of_levels(np.ascontiguousarray(counts, np.int64))


@njit(cache=True, nogil=True, error_model="numpy")  # so that a division by 0 is no branch, and loops are of vectors
def _figures(distance, offsets, limit):
    n, largest = distance.size, np.finfo(distance.dtype).max
    n_pieces = (n + PIECE - 1) // PIECE
    totals, harmonics = np.empty(n_pieces), np.empty(n_pieces)
    apart, near = np.zeros(PIECE), np.zeros(PIECE)
    reached = edges = 0
    lowest, farthest = distance.dtype.type(np.inf), distance.dtype.type(-np.inf)
    for piece in range(n_pieces):
        first = piece * PIECE
        size = min(PIECE, n - first)
        part = distance[first : first + size]
        starts = offsets[first : first + size + 1]
        for i in range(size):
            d = np.float64(part[i])
            counts = part[i] <= limit
            apart[i] = d if counts else 0.0
            near[i] = 1.0 / d if counts and d > 0 else 0.0
        for i in range(size):
            reached += part[i] <= limit
            edges += starts[i + 1] - starts[i] if part[i] <= largest else 0
        for i in range(size):
            if part[i] <= limit:
                lowest, farthest = min(lowest, part[i]), max(farthest, part[i])
        apart[size:], near[size:] = 0.0, 0.0
        totals[piece], harmonics[piece] = _halved(apart), _halved(near)
    return reached, np.float64(lowest), np.float64(farthest), _folded(totals), _folded(harmonics), edges


@njit(cache=True, nogil=True)
def _halved(values):
    """Fold PIECE values by halves, in place."""
    half = PIECE // 2
    while half > 0:
        for i in range(half):
            values[i] += values[i + half]
        half //= 2
    return values[0]


@njit(cache=True, nogil=True)
def _folded(sums):
    """Fold the sums of pieces as the pieces were, until one is left; in place."""
    size, piece = sums.size, np.empty(PIECE)
    while size > 1:
        n_pieces = (size + PIECE - 1) // PIECE
        for i in range(n_pieces):
            here = min(PIECE, size - i * PIECE)
            piece[:here] = sums[i * PIECE : i * PIECE + here]
            piece[here:] = 0.0
            sums[i] = _halved(piece)
        size = n_pieces
    return sums[0]


@njit(cache=True, nogil=True)
def _bins(distance, limit, bins_per_unit, before, n_bins):
    # Neighbours are at about the same distance: counted in turn in four places, no count waits for the one before.
    counts = np.zeros((4, n_bins), np.int64)
    for v in range(distance.size):
        if distance[v] <= limit:
            counts[v & 3, int(np.floor(distance[v] * bins_per_unit)) - before] += 1
    return counts.sum(axis=0)


@njit(cache=True, nogil=True)
def _hops(distance, offsets):
    most, edges = distance[0], 0
    for v in range(distance.size):
        most = max(most, distance[v])
        edges += offsets[v + 1] - offsets[v] if distance[v] >= 0 else 0
    return most, edges


@njit(cache=True, nogil=True)
def _levels(distance, n_levels):
    counts = np.zeros((4, n_levels), np.int64)  # as in _bins
    for v in range(distance.size):
        if 0 <= distance[v] < n_levels:
            counts[v & 3, distance[v]] += 1
    return counts.sum(axis=0)


@njit(cache=True, nogil=True)
def _summary_of_levels(counts):
    found, values = np.zeros((len(counts), 4)), np.empty(counts.shape[1])
    for i in range(len(counts)):
        reached, farthest, total = 0, 0, 0
        for level in range(counts.shape[1]):
            count = counts[i, level]
            values[level] = count * (1.0 / level) if level > 0 else 0.0
            reached += count
            total += count * level
            if count > 0:
                farthest = level
        size = farthest + 1
        while size > 1:
            half = (size + 1) // 2
            for at in range(size - half):
                values[at] += values[at + half]
            size = half
        found[i, 0], found[i, 1], found[i, 2], found[i, 3] = reached, farthest, total, values[0]
    return found
