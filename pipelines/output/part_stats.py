"""Statistics of a part file: edges traversed, rounds, and a histogram of distances.

Histograms of different sources, part files and workers are added, although the largest distance is
not known beforehand. Therefore the width of a bin is a power of two: a coarse bin consists of whole
finer bins. See ``sum_histograms``.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from kepler_traverse._arrays import is_rows, namespace, to_host, unreached_value
from kepler_traverse.cpu import distance_stats as on_cpu
from kepler_traverse.graph import Graph
from kepler_traverse.kinds.records import iter_level_counts, last_levels
from kepler_traverse.search.algorithms import ALGORITHMS
from kepler_traverse.search.distance_stats import as_floats, count_bins
from kepler_traverse.search.frames import Column
from kepler_traverse.search.query import Query
from kepler_traverse.search.results import Traversal, Traversals

from .manifest_types import MAX_BINS, Histogram, Id, PartCounts

_MERGED_AT_ONCE = 256  # histograms: few to keep, and many share what adding them up costs


class PartStats:
    """Sums statistics of the traversals of one part file."""

    def __init__(self) -> None:
        # stored ones of reached vertices; 0 if a result has no distances by which to tell them
        self.edges = 0
        self.rounds = 0  # maximum number of levels or rounds of one traversal
        # the source that took longest, and its seconds of traversing
        self.slowest: tuple[Id, float] | None = None
        self._histograms: list[Histogram] = []

    def add(
        self,
        sources: Sequence[Any],
        seconds: float,
        edges: int,
        rounds: int,
        histograms: Sequence[Histogram | None],
    ) -> None:
        """Add traversals of so many seconds each: ids of sources (none if one search has several),
        and their statistics.
        """
        if sources and (self.slowest is None or seconds > self.slowest[1]):
            self.slowest = (sources[0], round(seconds, 6))
        self.edges += edges
        self.rounds = max(self.rounds, rounds)
        self._histograms += [histogram for histogram in histograms if histogram is not None]
        if len(self._histograms) >= _MERGED_AT_ONCE:
            together = sum_histograms(*self._histograms)
            self._histograms = [] if together is None else [together]

    def summary(self) -> PartCounts:
        """Return the sums; there is no histogram if nothing is written."""
        counts = sum_histograms(*self._histograms)
        return {
            "edges": self.edges,
            "rounds": self.rounds,
            "slowest": self.slowest,
            "distances": counts,
        }


class GroupStats:
    """What ``PartStats.add`` takes of a group: the stored edges of each source, and histograms of
    the distances.
    """

    def __init__(self) -> None:
        self.edges: list[int] = []
        # of some sources each; their sum is that of all
        self.histograms: list[Histogram | None] = []

    def add_levels(self, counts: Any, edges: np.ndarray) -> None:
        """Add the next sources, given by their level counts and stored edges; the ``LevelFold`` of
        a part file.
        """
        self.edges.extend(edges.tolist())
        self.histograms.append(histogram_of_levels(counts, last_levels(counts)))

    def add_group(self, graph: Graph, query: Query, group: Traversals) -> None:
        """Add all sources of a group, by the distances that the searches have returned."""
        is_whole = group.offsets is None and query.output == "all"
        if group.counts is not None or (is_whole and query.targets is None):
            self._add_all_vertices(graph, query, group)
        elif is_whole and getattr(group.distance, "form", "") == "sparse":
            self._add_sparse(graph, query, group)
        else:
            targets = query.targets if is_whole else None
            for traversal in group:
                self.edges.append(count_edges(graph, traversal) if is_whole else 0)
                self.histograms.append(make_histogram(traversal.cut(query.limit, targets)))

    def _add_all_vertices(self, graph: Graph, query: Query, group: Traversals) -> None:
        """Add sources with distances of all vertices, or counts per level."""
        if ALGORITHMS[group.algorithm].counts_hops:
            for levels in iter_level_counts(graph, group, query.limit):
                self.add_levels(*levels)
            return
        stats = group.stats(graph.offsets, query.limit, has_sums=False)
        self.edges.extend(stats.edges.tolist())
        self.histograms.append(histogram_of_group(group.distance, query.limit, stats))

    def _add_sparse(self, graph: Graph, query: Query, group: Traversals) -> None:
        """Add sources with distances of some vertices."""
        rows: Any = group.distance
        self.edges.append(rows.edges(graph.offsets))
        rows = rows.at(query.targets)
        if query.limit is not None:
            rows = rows.within([query.limit] * len(rows))
        self.histograms.append(histogram_of_rows(group.algorithm, rows.distance, rows.sizes))

    def add_rows(
        self, graph: Graph, query: Query, group: Traversals, distance: Column, sizes: np.ndarray
    ) -> None:
        """Add all sources of a group, by the distances of their rows."""
        if group.offsets is None and query.output == "all":
            if is_rows(group.distance):
                self.edges += [count_edges(graph, each) for each in group]
            else:
                self.edges.append(group.distance.edges(graph.offsets))
        values = to_host(distance.values)
        there = np.ones(values.size, bool)
        if distance.is_null is not None:
            there = ~to_host(distance.is_null)
        sizes = np.bincount(np.repeat(np.arange(sizes.size), sizes)[there], minlength=sizes.size)
        self.histograms.append(histogram_of_rows(group.algorithm, values[there], sizes))


def count_edges(graph: Graph, traversal: Traversal) -> int:
    """Return the number of stored edges of the vertices that a traversal reaches."""
    if graph.device == "cpu":
        distance = traversal.distance
        if (
            traversal.algorithm == "bfs"
            and distance.size == graph.n_vertices
            and distance.min(initial=0) >= 0
        ):
            # all are reached; the offsets need more memory than the hops, and are not read
            return int(graph.offsets[-1])
        return int(on_cpu.count_edges(graph.offsets, distance, unreached_value(distance.dtype)))
    return int(namespace(graph.offsets).where(traversal.reached, graph.derived.degrees, 0).sum())


def histogram_of_levels(counts: Any, farthest: np.ndarray) -> Histogram:
    """Return the histogram of the hops from k sources, given the number of vertices per level.

    It is the sum of the histograms that ``make_histogram`` returns for each source.

    Parameters
    ----------
    counts : array of shape (k, levels)
        On either device: how many vertices are at 0, 1, 2, ... hops from each source. One vertex,
        the source, is at 0 hops.
    farthest : int64 array of shape (k,), NumPy
        Last level of each source that has a vertex.
    """
    last = int(farthest.max())
    total = to_host(counts[:, : last + 1].sum(axis=0, dtype=np.int64))
    # The width is that of ``_width`` for 0 to ``last``, in integers: the smallest power of two that
    # is at least ``needed``.
    needed = math.ceil(last / (MAX_BINS - 1))
    exponent = max(needed - 1, 0).bit_length()
    if exponent:
        total = np.bincount(np.arange(total.size) >> exponent, total).astype(np.int64)
    return {"width": 2.0**exponent, "first": 0, "counts": total.tolist()}


def make_histogram(traversal: Traversal) -> Histogram | None:
    """Count the reached vertices by distance; None if there is none.

    ``width`` is a power of two (at least 1 for hops). Bin i of ``counts``, of which there are at
    most ``MAX_BINS``, holds distances from ``(first + i) * width`` to below ``(first + i + 1) *
    width``.
    """
    hops = traversal.algorithm == "bfs"
    distance = traversal.distance if hops else as_floats(traversal.distance)
    xp = namespace(distance)
    if not distance.size:
        return None
    if hops:  # unsigned, those of the unreached are the largest
        low = distance.view(f"u{distance.itemsize}").min()
        high = distance.max()
    else:
        low = distance.min()
        high = xp.where(distance == np.inf, -np.inf, distance).max()
    low = float(low)
    high = float(high)
    if low > high:
        return None
    width = _width(low, high, 1.0 if hops else 0.0)
    first = math.floor(low / width)
    n_bins = math.floor(high / width) - first + 1
    shift = int(width).bit_length() - 1
    if not hops:
        # Multiplication is exact, because the width is a power of two.
        counts = count_bins(
            distance[None], None, np.array([1.0 / width]), np.array([first]), n_bins
        )[0]
    elif xp is np:
        counts = on_cpu.bins_of_hops(distance, shift, first, n_bins)
    else:
        counts = xp.bincount((distance[distance >= 0] >> shift) - first, minlength=n_bins)
    return {"width": width, "first": first, "counts": counts.tolist()}


def histogram_of_rows(algorithm: str, values: np.ndarray, sizes: np.ndarray) -> Histogram | None:
    """Return the sum of what ``make_histogram`` returns for the distances of rows, so many per
    source.
    """
    if not values.size:
        return None
    floats = values.astype(np.float64)
    begins = (np.cumsum(sizes) - sizes)[sizes > 0]
    low = np.minimum.reduceat(floats, begins)
    high = np.maximum.reduceat(floats, begins)
    width, first, n_bins = _scale_of_all(low, high, 1.0 if algorithm == "bfs" else 0.0)
    bins = (np.floor(floats / width) - first).astype(np.int64)
    return {"width": width, "first": first, "counts": np.bincount(bins, minlength=n_bins).tolist()}


def histogram_of_group(distance: Any, limit: float | None, stats: Any) -> Histogram | None:
    """Return the sum of what ``make_histogram`` returns for the weighted distances from each
    source, in one pass over all.

    ``distance`` has shape (k, n_vertices); ``stats`` are statistics of the same distances within
    the same limit.
    """
    there = stats.reached > 0
    if not there.any():
        return None
    low = stats.lowest[there].astype(np.float64)
    high = stats.farthest[there].astype(np.float64)
    width, first, n_bins = _scale_of_all(low, high, 0.0)
    k = stats.reached.size
    counts = count_bins(distance, limit, np.full(k, 1.0 / width), np.full(k, first), n_bins)
    return {"width": width, "first": first, "counts": counts.sum(axis=0).tolist()}


def sum_histograms(*histograms: Histogram | None) -> Histogram | None:
    """Add histograms, in bins as wide as the widest ones, or wider if ``MAX_BINS`` would be
    exceeded.
    """
    given = [histogram for histogram in histograms if histogram]
    if len(given) < 2:
        return given[0] if given else None
    width = max(histogram["width"] for histogram in given)
    while True:
        placed = [_place_in_bins(histogram, width) for histogram in given]
        first = min(each.first for each in placed)
        last = max(each.last for each in placed)
        if last - first < MAX_BINS:
            break
        width *= 2
    bins = np.zeros(last - first + 1, np.int64)
    for histogram, place in zip(given, placed, strict=True):
        at = place.first - first
        counts = histogram["counts"]
        if place.ratio == 1:
            bins[at : at + len(counts)] += counts
            continue
        for i, count in enumerate(counts, place.skipped):
            bins[at + i // place.ratio] += count
    return {"width": width, "first": first, "counts": bins.tolist()}


class _Place(NamedTuple):
    """Where a histogram lies among bins that are as wide as its own, or wider."""

    ratio: int  # how many of its bins form one of the wider ones
    first: int  # the wider bin of its first bin
    last: int
    skipped: int  # how many bins as narrow as its own are before it in the first


def _place_in_bins(histogram: Histogram, width: float) -> _Place:
    """Find the place of a histogram among bins of a width."""
    # the quotient of two powers of two may exceed 64 bits
    ratio = 1 << (math.frexp(width)[1] - math.frexp(histogram["width"])[1])
    first, skipped = divmod(histogram["first"], ratio)
    last = first + (skipped + len(histogram["counts"]) - 1) // ratio
    return _Place(ratio, first, last, skipped)


def _scale_of_all(low: np.ndarray, high: np.ndarray, least: float) -> tuple[float, int, int]:
    """Return width, number of the first bin, and number of bins of the sum of histograms from
    ``low`` to ``high`` each.
    """
    # The width of the sum is that of the widest: the same for each power of two that a share of the
    # range is below.
    widest = int(np.argmax(high / (MAX_BINS - 1) - low / (MAX_BINS - 1)))
    width = _width(float(low[widest]), float(high[widest]), least)
    if (low == high).any():
        alone = float(np.abs(low[low == high]).max())
        width = max(width, _width(alone, alone, least))
    lowest = float(low.min())
    highest = float(high.max())
    while math.floor(highest / width) - math.floor(lowest / width) >= MAX_BINS:
        width *= 2
    first = math.floor(lowest / width)
    return width, first, math.floor(highest / width) - first + 1


def _width(low: float, high: float, least: float) -> float:
    """Return the smallest power of two, at least ``least``, with which ``low`` to ``high`` fits
    into ``MAX_BINS`` bins.
    """
    if low == high:
        # so that the number of the bin is an integer of float64
        return max(least, 1.0, math.ulp(low))
    # One bin less, because the range may begin within a bin. Divided first, because the difference
    # may overflow.
    share = max(high / (MAX_BINS - 1) - low / (MAX_BINS - 1), sys.float_info.min)
    return max(least, 2.0 ** math.ceil(math.log2(share)))
