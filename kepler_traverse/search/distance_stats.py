"""Statistics of distances from many sources: vertices reached, extremes, sums, edges; histograms;
counts per level.

Sums are equal bit for bit on every device and for any number of sources at once, because only the
number of vertices decides the order of additions. The vertices in ascending order, with 0.0 for
those that are not reached, are divided into reduction blocks of ``PIECE`` values. A reduction block
is folded by halves: value i and value i + half of it are added. The sums of the blocks are folded
in the same way until one is left. Sums over levels fold the levels up to the last one of each
source.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from .._arrays import (
    FLOAT64_EXACT,
    MAX_INTEGER,
    Array,
    as_distance,
    at_most,
    get_device,
    is_reached,
    is_rows,
    namespace,
    to_host,
)
from ..cpu import distance_stats as cpu
from ..cuda import distance_stats as statistics_on_gpu
from ..errors import PrecisionError


class DistanceStats(NamedTuple):
    """Statistics of the distances from k sources: arrays of shape (k,), NumPy, with one number per
    source.
    """

    reached: np.ndarray  # vertices within the limit
    # lowest, farthest: the smallest and the largest distance of these vertices; inf and -inf (for
    # integers 2**63 - 1 and 0) if there is none
    lowest: np.ndarray
    farthest: np.ndarray
    # total, harmonic: float64: the sum of the distances of these vertices, and the sum of the
    # reciprocals of the positive ones
    total: np.ndarray
    harmonic: np.ndarray
    edges: np.ndarray  # stored edges of all vertices that have a distance, also beyond the limit


def summary_of_distances(distance: Array, offsets: Array, limit: float | None) -> DistanceStats:
    """Compute statistics of distances on their device, up to a limit; each distance is read once.

    Distances are float32, float64 or int64 of shape (k, n_vertices), or interleaved or sparse; inf
    where unreached, for integers 2**63 - 1. Sums and reciprocals are those of the integers rounded
    to float64. ``offsets`` are those of the graph.
    """
    if not is_rows(distance):
        return DistanceStats(*distance.stats(offsets, limit))
    floats, bound = _floats_and_bound(distance, limit)
    stats = DistanceStats(*_choose_backend(floats).statistics(floats, offsets, bound))
    if floats is distance:
        return stats
    # Integers were rounded to floats: their extremes are computed again, without rounding.
    xp = namespace(distance)
    is_within = is_reached(distance) & (True if limit is None else at_most(distance, limit))
    lowest = xp.where(is_within, distance, MAX_INTEGER).min(axis=1)
    farthest = xp.where(is_within, distance, -MAX_INTEGER).max(axis=1)
    return stats._replace(lowest=to_host(lowest), farthest=to_host(farthest))


def as_floats(distance: Array) -> Array:
    """Return weighted distances as floats, infinite where unreached: the same array, or int64
    distances rounded to float64.
    """
    if distance.dtype.kind == "f":
        return distance
    xp = namespace(distance)
    return xp.where(is_reached(distance), distance.astype(np.float64), np.inf)


def exact_totals(distance: Array, limit: float | None, stats: DistanceStats) -> np.ndarray:
    """Return the exact sum of the integer distances from each source, int64 of shape (k,), NumPy.

    ``distance`` and ``limit`` are arguments of ``summary_of_distances``, and ``stats`` is its
    result.

    Raises PrecisionError: a sum exceeds int64.
    """
    extremes = zip(
        stats.reached.tolist(), stats.lowest.tolist(), stats.farthest.tolist(), strict=True
    )
    # Float sums are exact below 2^53. So only sources whose sum may be larger are summed again, by
    # the number of vertices times the largest absolute distance.
    bounds = [n * max(abs(int(low)), abs(int(high))) if n else 0 for n, low, high in extremes]
    totals = [
        int(total) if bound < FLOAT64_EXACT else None
        for total, bound in zip(stats.total, bounds, strict=True)
    ]
    for i, total in enumerate(totals):
        if total is None:
            totals[i] = exact = _sum_of_integers(distance[i], limit)
            if abs(exact) > MAX_INTEGER:
                raise PrecisionError(
                    "the sum of a source's distances exceeds 2^63 - 1, the "
                    "largest int64; scale the weights down"
                )
    return np.array(totals, np.int64)


def _sum_of_integers(distance: Array, limit: float | None) -> int:
    """Return the exact sum of the distances of one source up to a limit, of shape (n_vertices,), as
    an integer of Python.
    """
    is_within = is_reached(distance) & (True if limit is None else at_most(distance, limit))
    values = distance[is_within].astype(np.int64)
    # The lower 31 bits and the 33 bits above them, sign included, are summed apart. A value of the
    # upper bits is from -2^32 to 2^32 - 1, so neither sum overflows int64 for up to 2^31 distances.
    high = values >> 31
    low = values & (2**31 - 1)
    return (int(high.sum()) << 31) + int(low.sum())


def count_bins(
    distance: Array, limit: float | None, bins_per_unit: np.ndarray, before: np.ndarray, n_bins: int
) -> np.ndarray:
    """Return how many distances from each source are in each of ``n_bins`` bins, int64 of shape (k,
    n_bins). Each distance is read once.

    Parameters
    ----------
    distance, limit
        As in ``summary_of_distances``.
    bins_per_unit : float64 array of shape (k,), NumPy
        How many bins a unit of distance has, a power of two; 0 puts every distance into one bin.
    before : int64 array of shape (k,), NumPy
        The number of bins before the first one that is counted. Every distance is in one of the
        next ``n_bins``.
    n_bins : int
    """
    if not is_rows(distance):
        return np.asarray(distance.bins(limit, bins_per_unit, before, n_bins))
    floats, bound = _floats_and_bound(distance, limit)
    return _choose_backend(floats).bins(floats, bound, bins_per_unit, before, n_bins)


def count_levels(
    distance: Array, offsets: Array, limit: float | None
) -> Iterator[tuple[Array, np.ndarray]]:
    """Yield the numbers of vertices at 0, 1, 2, ... hops from each source, for some sources at a
    time, as many as bounded memory holds.

    Distances are int8, int16 or int32 of shape (k, n_vertices), -1 where unreached; each source
    reaches at least one vertex. ``offsets`` are those of the graph. Each item has the counts, int64
    of shape (n_sources, levels) on the device of the distances, and the ``edges`` of
    ``DistanceStats``. No level is beyond the limit.
    """
    if is_rows(distance):
        return _choose_backend(distance).levels(distance, offsets, limit)
    return distance.levels(offsets, limit)


def summary_of_levels(counts: Array) -> np.ndarray:
    """Return statistics of hops from the numbers of vertices per level: a float64 array of shape
    (k, 4), NumPy.

    Its columns are the number of vertices, the largest hop count, the sum of the hops, and the sum
    of the reciprocals of positive hops. ``counts``, int32 or int64 of shape (k, levels), has the
    vertices at 0, 1, 2, ... hops, and at least one vertex per source. They are reduced on their
    device.

    The sum of reciprocals is folded by halves: value i and value i + half of the levels are added;
    with an odd number of levels the middle value remains. Empty levels after the last level of a
    source change nothing.
    """
    return _choose_backend(counts).summary_of_levels(counts)


def _choose_backend(distance: Array) -> Any:
    """Return the module that computes statistics on the device of the distances; both have the same
    functions.
    """
    if get_device(distance) == "cuda":
        return statistics_on_gpu
    return cpu


def _floats_and_bound(distance: Array, limit: float | None) -> tuple[Array, Any]:
    """Return weighted distances as floats, inf where unreached, and the largest float that is
    within the limit.

    Integers are compared with the limit before they are rounded to float64: one beyond it becomes
    the largest finite float, which is beyond the bound.
    """
    floats = as_floats(distance)
    largest = np.finfo(floats.dtype).max
    if limit is None:
        return floats, largest
    if floats is distance:
        return floats, min(as_distance(limit, floats.dtype), largest)
    is_beyond = is_reached(distance) & ~at_most(distance, limit)
    bound = np.float64(as_distance(limit, distance.dtype))
    return namespace(distance).where(is_beyond, largest, floats), bound
