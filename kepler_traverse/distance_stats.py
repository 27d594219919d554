"""Figures of distances from many sources: vertices reached, farthest, sums, edges; histograms, and counts by level.

Sums are equal bit for bit on every device, and for any number of sources at once, as only the number of the graph's vertices
decides their order: all vertices by ascending number, of which those that are not reached count as 0.0, are cut into pieces
of ``PIECE``; a piece is folded by halves, value i and value i + half of it; and the sums of the pieces are folded the same
way again, until one is left. Of counts of vertices by level it is those levels alone, up to the row's own last one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ._arrays import FLOAT64_EXACT, MAX_INTEGER, Array, as_distance, at_most, device_of, is_reached, namespace, to_host
from .cpu import distance_stats as cpu
from .cuda import distance_stats as figures_on_gpu
from .errors import PrecisionError


class DistanceStats(NamedTuple):
    """Arrays of shape (k,), NumPy, with a number for each source.

    Attributes
    ----------
    reached : int64
        Vertices within the limit.
    lowest, farthest : float64, or int64 where distances are
        Their least and their largest distance; inf and -inf (for integers 2**63 - 1 and 0) where there is none.
    total, harmonic : float64
        The sum of their distances, and of the reciprocals of positive ones.
    edges : int64
        Stored edges of all vertices that have a distance, also beyond the limit.
    """

    reached: np.ndarray
    lowest: np.ndarray
    farthest: np.ndarray
    total: np.ndarray
    harmonic: np.ndarray
    edges: np.ndarray


def summary_of_distances(distance: Array, offsets: Array, limit: float | None) -> DistanceStats:
    """Figures of rows of distances, on whichever device they are; each distance is read once.

    Parameters
    ----------
    distance : float32, float64 or int64 array of shape (k, n_vertices)
        inf where unreached; of integers 2**63 - 1. Sums and reciprocals are those of the integers rounded to float64.
    offsets : int64 array of shape (n_vertices + 1,)
        The graph's.
    limit : float or None
        Only distances up to it count.
    """
    floats = as_floats(distance)
    found = DistanceStats(*_backend_of(floats).figures(floats, offsets, _bound(limit, floats.dtype)))
    if floats is distance:
        return found
    xp = namespace(distance)
    counts = is_reached(distance) & (True if limit is None else at_most(distance, limit))
    lowest = xp.where(counts, distance, MAX_INTEGER).min(axis=1)
    farthest = xp.where(counts, distance, -MAX_INTEGER).max(axis=1)
    return found._replace(lowest=to_host(lowest), farthest=to_host(farthest))


def as_floats(distance: Array) -> Array:
    """Weighted distances as floats: themselves, or int64 rounded to float64."""
    if distance.dtype.kind == "f":
        return distance
    xp = namespace(distance)
    return xp.where(is_reached(distance), distance.astype(np.float64), np.inf)


def exact_totals(distance: Array, limit: float | None, figures: DistanceStats) -> np.ndarray:
    """Sums of integer distances, int64 of shape (k,), NumPy.

    Parameters
    ----------
    distance, limit
        As ``summary_of_distances`` took them.
    figures : Figures
        What it returned.

    Raises
    ------
    PrecisionError
        A sum exceeds int64.
    """
    largest = [max(abs(int(low)), abs(int(high))) if n else 0 for n, low, high in zip(*_extremes(figures), strict=True)]
    bounds = [count * most for count, most in zip(figures.reached.tolist(), largest, strict=True)]
    totals = [int(total) if bound < FLOAT64_EXACT else None for total, bound in zip(figures.total, bounds, strict=True)]
    for i, total in enumerate(totals):
        if total is None:
            totals[i] = _sum_of_integers(distance[i], limit)
            if abs(totals[i]) > MAX_INTEGER:
                raise PrecisionError(
                    "the sum of a source's distances exceeds 2^63 - 1, the largest int64; scale the weights down"
                )
    return np.array(totals, np.int64)


def _extremes(figures: DistanceStats) -> tuple:
    reached = figures.reached > 0
    return reached.tolist(), np.where(reached, figures.lowest, 0).tolist(), np.where(reached, figures.farthest, 0).tolist()


def _sum_of_integers(distance: Array, limit: float | None) -> int:
    counts = is_reached(distance) & (True if limit is None else at_most(distance, limit))
    values = distance[counts].astype(np.int64)
    high, low = values >> 31, values & (2**31 - 1)  # neither sum can overflow
    return (int(high.sum()) << 31) + int(low.sum())


def bins_of(distance: Array, limit: float | None, bins_per_unit: np.ndarray, before: np.ndarray, n_bins: int) -> np.ndarray:
    """How many distances lie in each of up to ``n_bins`` bins, int64 of shape (k, n_bins); each distance is read once.

    Parameters
    ----------
    distance, limit
        As in ``summary_of_distances``.
    bins_per_unit : float64 array of shape (k,), NumPy
        Powers of two; 0 puts every distance into one bin.
    before : int64 array of shape (k,), NumPy
        Of each source how many bins lie before its first; every distance is in one of the ``n_bins`` after them.
    n_bins : int
    """
    distance = as_floats(distance)
    return _backend_of(distance).bins(distance, _bound(limit, distance.dtype), bins_per_unit, before, n_bins)


def levels_of(distance: Array, offsets: Array, limit: float | None) -> Iterator[tuple[Array, np.ndarray]]:
    """Count the vertices at 0, 1, 2, ... hops, of rows of hop counts.

    Parameters
    ----------
    distance : int8, int16 or int32 array of shape (k, n_vertices)
        -1 where unreached; a vertex is in each row.
    offsets, limit
        As in ``summary_of_distances``.

    Yields
    ------
    counts : int64 array of shape (rows, levels), on the distances' device
        Of as many rows, in order, as it takes bounded memory for; no level is beyond the limit.
    edges : int64 array of shape (rows,), NumPy
        As in ``Figures``.
    """
    return _backend_of(distance).levels(distance, offsets, limit)


def summary_of_levels(counts: Array) -> np.ndarray:
    """Figures of rows of counts of vertices at 0, 1, 2, ... hops, on whichever device they are.

    The sum of reciprocals is folded by halves: value i and value i + half of the row's levels, the middle one going on alone
    where they are odd in number. Levels behind a row's last one change nothing.

    Parameters
    ----------
    counts : int32 or int64 array of shape (k, levels)
        A vertex is in each row.

    Returns
    -------
    float64 array of shape (k, 4), NumPy
        Of each row the vertices, the largest hop count, the sum of hops, and of the reciprocals of positive ones.
    """
    return _backend_of(counts).summary_of_levels(counts)


def _backend_of(distance: Array):
    return figures_on_gpu if device_of(distance) == "cuda" else cpu


def _bound(limit: float | None, dtype: np.dtype):
    """The largest distance that counts, in the distances' own type."""
    return min(as_distance(np.inf if limit is None else limit, dtype), np.finfo(dtype).max)
