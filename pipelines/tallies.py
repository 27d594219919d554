"""What the results of a part come to in a few numbers: edges traversed, rounds, and a histogram of distances.

Histograms of different sources, parts and workers must add up without anyone knowing the largest distance beforehand.
So the width of a bin is a power of two, of which a coarser one holds whole bins of a finer one: see ``merged``.
"""

from __future__ import annotations

import math
import sys

import numpy as np
from numba import njit

from kepler_traverse._arrays import namespace

MOST_BINS = 64  # of a histogram: enough for a plot, and a summary stays below about 1 KB


class Tally:
    """Adds up the traversals of one part.

    Attributes
    ----------
    edges : int
        Stored edges of reached vertices.
    rounds : int
        Most levels or rounds of one traversal.
    slowest : tuple of (id, float) or None
        The source that took longest, and its seconds of traversing.
    """

    def __init__(self):
        self.edges = self.rounds = 0
        self.slowest: tuple[object, float] | None = None
        self._histogram: dict | None = None

    def add(self, source, seconds: float, edges: int, rounds: int, histogram: dict | None) -> None:
        """Count one traversal: its source's id, how long it took, and what ``counted`` returned for it."""
        if self.slowest is None or seconds > self.slowest[1]:
            self.slowest = (source, round(seconds, 6))
        self.edges += edges
        self.rounds = max(self.rounds, rounds)
        self._histogram = merged(self._histogram, histogram)

    def summary(self) -> dict:
        """``edges``, ``rounds``, ``slowest``, and ``distances``: a histogram, or None where nothing is written."""
        return {
            "edges": self.edges,
            "rounds": self.rounds,
            "slowest": self.slowest,
            "distances": self._histogram,
        }


def counted(graph, traversal, written) -> tuple[int, int, dict | None]:
    """Count one traversal, while its arrays hold: edges, rounds, and a histogram of ``written``, which a file gets."""
    return edges_of(graph, traversal), int(traversal.rounds), histogram_of(written)


def edges_of(graph, traversal) -> int:
    """Stored edges of the vertices that a traversal has reached; one pass over the vertices."""
    if graph.device == "cpu":
        return int(_edges_of_reached(graph.offsets, traversal.distance, traversal.algorithm == "bfs"))
    xp = namespace(graph.offsets)
    return int(xp.where(traversal.reached, xp.diff(graph.offsets), 0).sum())


def histogram_of(traversal) -> dict | None:
    """Count the reached vertices by distance.

    Returns
    -------
    dict or None
        ``width``, a power of two (at least 1 for hops); ``first``, so that bin i holds distances from
        ``(first + i) * width`` to below ``(first + i + 1) * width``; ``counts``, at most ``MOST_BINS`` of them.
        None if no vertex was reached.
    """
    hops, distance = traversal.algorithm == "bfs", traversal.distance
    xp = namespace(distance)
    if xp is np:
        low, high = _range_of_reached(distance, hops)
    else:
        reached = distance[traversal.reached]
        low, high = (float(reached.min()), float(reached.max())) if reached.size else (math.inf, -math.inf)
    if low > high:
        return None
    width = _width(float(low), float(high), 1.0 if hops else 0.0)
    first = math.floor(low / width)
    n_bins = math.floor(high / width) - first + 1
    if xp is np:
        counts = _count_bins(distance, hops, width, first, n_bins)
    else:
        counts = xp.bincount(xp.floor(reached / width).astype(np.int64) - first, minlength=n_bins)
    return {"width": width, "first": first, "counts": counts.tolist()}


def merged(one: dict | None, other: dict | None) -> dict | None:
    """Add two histograms up, in bins as wide as the wider ones, or wider where ``MOST_BINS`` would be exceeded."""
    if one is None or other is None:
        return one or other
    width = max(one["width"], other["width"])
    while True:
        bins: dict[int, int] = {}
        for histogram in (one, other):
            ratio = int(width / histogram["width"])
            for i, count in enumerate(histogram["counts"], histogram["first"]):
                bins[i // ratio] = bins.get(i // ratio, 0) + count
        first, last = min(bins), max(bins)
        if last - first < MOST_BINS:
            return {"width": width, "first": first, "counts": [bins.get(i, 0) for i in range(first, last + 1)]}
        width *= 2


def _width(low: float, high: float, least: float) -> float:
    """The smallest power of two, and no smaller than ``least``, by which ``low`` to ``high`` fills ``MOST_BINS`` at most."""
    if low == high:
        return least or 1.0
    # One bin to spare, as the range may begin in the middle of a bin. Divided first: the difference may be too large.
    share = max(high / (MOST_BINS - 1) - low / (MOST_BINS - 1), sys.float_info.min)
    return max(least, 2.0 ** math.ceil(math.log2(share)))


@njit(cache=True, nogil=True)
def _edges_of_reached(offsets, distance, hops):
    edges = 0
    for v in range(distance.size):
        if (distance[v] >= 0) if hops else np.isfinite(distance[v]):
            edges += offsets[v + 1] - offsets[v]
    return edges


@njit(cache=True, nogil=True)
def _range_of_reached(distance, hops):
    low, high = np.inf, -np.inf
    for v in range(distance.size):
        if (distance[v] >= 0) if hops else np.isfinite(distance[v]):
            low, high = min(low, distance[v]), max(high, distance[v])
    return low, high


@njit(cache=True, nogil=True)
def _count_bins(distance, hops, width, first, n_bins):
    counts = np.zeros(n_bins, np.int64)
    for v in range(distance.size):
        if (distance[v] >= 0) if hops else np.isfinite(distance[v]):
            counts[int(np.floor(distance[v] / width)) - first] += 1
    return counts
