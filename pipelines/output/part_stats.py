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

# histograms that are held and then summed: few to keep, and many share what a sum costs
_MAX_HISTOGRAMS = 256


class PartStats:
    """Sums statistics of the traversals of one part file."""

    def __init__(self) -> None:
        # Stored edges that leave reached vertices, of all traversals; 0 if a result has no
        # distances, by which reached vertices are known.
        self.edges = 0
        self.rounds = 0  # maximum number of levels or rounds of one traversal
        # The id of the source that took longest, and its seconds of traversing; None without one.
        self.slowest: tuple[Id, float] | None = None
        # Of groups or of single traversals. Their sum is the histogram of the part.
        self._histograms: list[Histogram] = []

    def add(
        self,
        sources: Sequence[Any],
        seconds: float,
        edges: int,
        rounds: int,
        histograms: Sequence[Histogram | None],
    ) -> None:
        """Add the traversals of a group.

        Parameters
        ----------
        sources : sequence
            User's ids of the sources; empty if one search serves several, so that none is slowest.
        seconds : float
            Time of the search, per traversal.
        edges : int
            Stored edges of the vertices that the traversals have reached, in sum.
        rounds : int
            Largest number of levels or rounds of one traversal.
        histograms : sequence of Histogram or None
            One histogram of distances per traversal or per several; None where none is reached.
        """
        if sources and (self.slowest is None or seconds > self.slowest[1]):
            self.slowest = (sources[0], round(seconds, 6))
        self.edges += edges
        self.rounds = max(self.rounds, rounds)

        self._histograms += [histogram for histogram in histograms if histogram is not None]
        if len(self._histograms) >= _MAX_HISTOGRAMS:
            total = sum_histograms(*self._histograms)
            self._histograms = [] if total is None else [total]

    def summary(self) -> PartCounts:
        """Return the sums for the summary of the part; ``distances`` is None if no row has a
        distance.
        """
        return {
            "edges": self.edges,
            "rounds": self.rounds,
            "slowest": self.slowest,
            "distances": sum_histograms(*self._histograms),
        }


class GroupStats:
    """Counts of a group of sources for ``PartStats.add``: stored edges of reached vertices, and
    histograms of the distances.

    Each ``add_...`` method takes the form in which the results of a group are at hand.
    """

    def __init__(self) -> None:
        # Each entry counts for one source or for several; the sum is the count of the group.
        self.edges: list[int] = []
        # Each histogram is that of one source or of several; None where none is reached.
        self.histograms: list[Histogram | None] = []

    def add_levels(self, counts: Any, edges: np.ndarray) -> None:
        """Add the next k sources by their level counts.

        ``records_of_group``, which makes records of level counts, calls this with them.
        ``counts``, of shape (k, levels), has the vertices at 0, 1, 2, ... hops of each source.
        ``edges``, of shape (k,), has the stored edges of the vertices that each source reaches.
        """
        self.edges.extend(edges.tolist())
        self.histograms.append(histogram_of_levels(counts, last_levels(counts)))

    def add_group(self, graph: Graph, query: Query, group: Traversals) -> None:
        """Add all sources of a group, by the distances that the searches have returned.

        ``query`` says what the searches output, and its limit and targets (None without) cut the
        histogram. Edges are counted only where a search has returned the distances, or the counts
        per level, of all vertices that it reaches; else they are 0.
        """
        # ``offsets`` is set where each source has results for its own targets alone.
        has_all = group.offsets is None and query.output == "all"
        # Sources with distances of all vertices, or counts per level (``counts``), are added in one
        # pass, and so are sparse distances. Others are added one source at a time.
        if group.counts is not None or (has_all and query.targets is None):
            self._add_all_vertices(graph, query, group)
        elif has_all and getattr(group.distance, "form", "") == "sparse":
            self._add_sparse(graph, query, group)
        else:
            for traversal in group:
                n_edges = 0
                targets = None
                if has_all:
                    n_edges = count_edges(graph, traversal)
                    targets = query.targets
                self.edges.append(n_edges)
                self.histograms.append(make_histogram(traversal.cut(query.limit, targets)))

    def _add_all_vertices(self, graph: Graph, query: Query, group: Traversals) -> None:
        """Add sources with distances of all vertices, or counts per level: hops by their level
        counts, weighted distances in one pass over all sources. The limit of ``query``, if any,
        cuts both.
        """
        if ALGORITHMS[group.algorithm].counts_hops:
            for levels in iter_level_counts(graph, group, query.limit):
                self.add_levels(*levels)
            return
        # Edges, and smallest and largest distance, of each source.
        stats = group.stats(graph.offsets, query.limit, has_sums=False)
        self.edges.extend(stats.edges.tolist())
        self.histograms.append(histogram_of_group(group.distance, query.limit, stats))

    def _add_sparse(self, graph: Graph, query: Query, group: Traversals) -> None:
        """Add sources whose distances are sparse: one list of the reached vertices of all sources.

        Edges are counted before the distances are cut at the targets and the limit of ``query``.
        """
        rows: Any = group.distance
        self.edges.append(rows.edges(graph.offsets))
        rows = rows.at(query.targets)
        if query.limit is not None:
            rows = rows.within([query.limit] * len(rows))
        self.histograms.append(histogram_of_rows(group.algorithm, rows.distance, rows.sizes))

    def add_rows(
        self, graph: Graph, query: Query, group: Traversals, distance: Column, sizes: np.ndarray
    ) -> None:
        """Add all sources of a group, by the distances of their rows.

        ``distance`` is the column of all rows, one source after the other; values may be null.
        ``sizes``, of shape (sources,), has the number of rows of each source. No edges are added if
        a search has not returned the distances of all vertices that it reaches.
        """
        # Edges are counted only where a search has returned the distances of all that it reaches.
        if group.offsets is None and query.output == "all":
            if is_rows(group.distance):
                self.edges += [count_edges(graph, traversal) for traversal in group]
            else:
                self.edges.append(group.distance.edges(graph.offsets))

        # Rows without a distance, for which ``is_null`` is True, are in no histogram.
        values = to_host(distance.values)
        has_distance = np.ones(values.size, bool)
        if distance.is_null is not None:
            has_distance = ~to_host(distance.is_null)
        positions = np.repeat(np.arange(sizes.size), sizes)  # of the source of each row
        sizes = np.bincount(positions[has_distance], minlength=sizes.size)
        self.histograms.append(histogram_of_rows(group.algorithm, values[has_distance], sizes))


def count_edges(graph: Graph, traversal: Traversal) -> int:
    """Return the number of stored edges that leave the vertices that a traversal reaches, on either
    device.
    """
    if graph.device == "cpu":
        distance = traversal.distance
        if (
            traversal.algorithm == "bfs"
            and distance.size == graph.n_vertices
            and distance.min(initial=0) >= 0
        ):
            # All vertices are reached (an unreached one has -1), so all edges count. This avoids a
            # pass over the offsets, which take more memory than the hops.
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
    # ``last``: largest level with a vertex, of all sources. The width of a bin is what ``_width``
    # returns for distances of 0 to ``last``. Here it is found in integers: the smallest power of
    # two that is at least ``needed``, which is 1 if every level has a bin of its own.
    needed = math.ceil(last / (MAX_BINS - 1))
    exponent = max(needed - 1, 0).bit_length()
    if exponent:
        total = np.bincount(np.arange(total.size) >> exponent, total).astype(np.int64)
    return {"width": 2.0**exponent, "first": 0, "counts": total.tolist()}


def make_histogram(traversal: Traversal) -> Histogram | None:
    """Return a histogram of the distances of the reached vertices; None if none is reached.

    ``traversal`` is already cut at the limit and the targets. The ``width`` of the bins is a power
    of two (at least 1 for hops). Bin i of ``counts``, of which there are at most ``MAX_BINS``,
    holds distances from ``(first + i) * width`` to below ``(first + i + 1) * width``.
    """
    counts_hops = traversal.algorithm == "bfs"
    distance = traversal.distance
    if not counts_hops:
        distance = as_floats(distance)
    xp = namespace(distance)
    if not distance.size:
        return None

    # The smallest and the largest distance of a reached vertex.
    if counts_hops:  # unreached is -1, which as an unsigned number is larger than all hops
        low = distance.view(f"u{distance.itemsize}").min()
        high = distance.max()
    else:
        low = distance.min()
        # Unreached is inf, which must not count as the largest.
        high = xp.where(distance == np.inf, -np.inf, distance).max()
    low = float(low)
    high = float(high)
    if low > high:  # none is reached
        return None

    width = _width(low, high, 1.0 if counts_hops else 0.0)
    first = math.floor(low / width)
    n_bins = math.floor(high / width) - first + 1
    if not counts_hops:
        # ``count_bins`` multiplies by the inverse, which is exact, as the width is a power of two.
        # It takes several sources at once, here one.
        inverse = np.array([1.0 / width])
        (counts,) = count_bins(distance[None], None, inverse, np.array([first]), n_bins)
    else:
        shift = int(width).bit_length() - 1  # instead of a division
        if xp is np:
            counts = on_cpu.bins_of_hops(distance, shift, first, n_bins)
        else:
            counts = xp.bincount((distance[distance >= 0] >> shift) - first, minlength=n_bins)
    return {"width": width, "first": first, "counts": counts.tolist()}


def histogram_of_rows(algorithm: str, values: np.ndarray, sizes: np.ndarray) -> Histogram | None:
    """Return the sum of what ``make_histogram`` returns for each source, from the distances of its
    rows; None without rows.

    ``algorithm``: "bfs" (hops) or "sssp". ``values``: distances of all rows, one source after the
    other, none of them unreached. ``sizes``: number of rows of each source, of shape (sources,).
    """
    if not values.size:
        return None
    floats = values.astype(np.float64)
    begins = (np.cumsum(sizes) - sizes)[sizes > 0]  # of each source that has a row
    low = np.minimum.reduceat(floats, begins)
    high = np.maximum.reduceat(floats, begins)
    width, first, n_bins = _common_scale(low, high, 1.0 if algorithm == "bfs" else 0.0)
    bins = (np.floor(floats / width) - first).astype(np.int64)
    return {"width": width, "first": first, "counts": np.bincount(bins, minlength=n_bins).tolist()}


def histogram_of_group(distance: Any, limit: float | None, stats: Any) -> Histogram | None:
    """Return the sum of what ``make_histogram`` returns for the weighted distances from each
    source, in one pass over all; None if no vertex is reached.

    ``distance`` has shape (k, n_vertices). ``limit`` is the largest distance that counts, None for
    no limit. ``stats`` are the ``DistanceStats`` of the same distances within the same limit, with
    the smallest and the largest distance of each source.
    """
    reaches_any = stats.reached > 0  # per source
    if not reaches_any.any():
        return None
    low = stats.lowest[reaches_any].astype(np.float64)
    high = stats.farthest[reaches_any].astype(np.float64)
    width, first, n_bins = _common_scale(low, high, 0.0)
    k = stats.reached.size
    # ``count_bins`` takes for each source the inverse of the width, which is exact for a power of
    # two, and the number of the first bin: here all sources have the same.
    counts = count_bins(distance, limit, np.full(k, 1.0 / width), np.full(k, first), n_bins)
    return {"width": width, "first": first, "counts": counts.sum(axis=0).tolist()}


def sum_histograms(*histograms: Histogram | None) -> Histogram | None:
    """Return the sum of histograms. None stands for an empty histogram, and is returned if all are
    empty, or if none is given; a single one that is not empty is returned itself.

    The bins of the sum are as wide as the widest ones, or wider if there would be more than
    ``MAX_BINS``.
    """
    summands = [histogram for histogram in histograms if histogram]
    if len(summands) < 2:
        return summands[0] if summands else None

    # Find the smallest width, of at least the widest bins, with which all fit into ``MAX_BINS``.
    # ``first`` and ``last``: numbers of the outermost bins of that width.
    width = max(histogram["width"] for histogram in summands)
    while True:
        places = [_place_in_bins(histogram, width) for histogram in summands]
        first = min(place.first for place in places)
        last = max(place.last for place in places)
        if last - first < MAX_BINS:
            break
        width *= 2

    bins = np.zeros(last - first + 1, np.int64)
    for histogram, place in zip(summands, places, strict=True):
        begin = place.first - first
        counts = histogram["counts"]
        if place.ratio == 1:
            bins[begin : begin + len(counts)] += counts
            continue
        # Bin ``ratio * j + i`` of the narrow ones is in bin j of the wide ones.
        for i, count in enumerate(counts, place.skipped):
            bins[begin + i // place.ratio] += count
    return {"width": width, "first": first, "counts": bins.tolist()}


class _Place(NamedTuple):
    """Where a histogram lies among bins that are as wide as its own, or wider."""

    ratio: int  # how many of its bins form one of the wider ones, a power of two
    first: int  # number of the wider bin that holds its first bin
    last: int  # number of the wider bin that holds its last bin
    skipped: int  # how many narrow bins of the wider bin ``first`` are before its first bin


def _place_in_bins(histogram: Histogram, width: float) -> _Place:
    """Return the place of a histogram among bins of a ``width`` that is at least its own."""
    # Both widths are powers of two. Their quotient is computed from the exponents, as an integer of
    # Python, because it may exceed 64 bits.
    ratio = 1 << (math.frexp(width)[1] - math.frexp(histogram["width"])[1])
    first, skipped = divmod(histogram["first"], ratio)
    last = first + (skipped + len(histogram["counts"]) - 1) // ratio
    return _Place(ratio, first, last, skipped)


def _common_scale(low: np.ndarray, high: np.ndarray, least: float) -> tuple[float, int, int]:
    """Return width, number of the first bin, and number of bins of the sum of histograms.

    ``low`` and ``high``: float64 arrays of the smallest and the largest distance of each histogram,
    of the same shape. ``least``: the smallest width that is allowed, 1 for hops, else 0. The result
    is what ``sum_histograms`` would find, without making the summands.
    """
    # Bins of the sum are as wide as the widest bins of a summand: of the histogram with the widest
    # range, whose position is ``widest``, or of the largest distance that is the only one of its
    # histogram. Each end is divided before the difference, which may overflow, as in ``_width``.
    widest = int(np.argmax(high / (MAX_BINS - 1) - low / (MAX_BINS - 1)))
    width = _width(float(low[widest]), float(high[widest]), least)
    if (low == high).any():
        largest = float(np.abs(low[low == high]).max())
        width = max(width, _width(largest, largest, least))

    lowest = float(low.min())
    highest = float(high.max())
    while math.floor(highest / width) - math.floor(lowest / width) >= MAX_BINS:
        width *= 2
    first = math.floor(lowest / width)
    return width, first, math.floor(highest / width) - first + 1


def _width(low: float, high: float, least: float) -> float:
    """Return the smallest power of two, at least ``least``, with which distances from ``low`` to
    ``high`` fit into ``MAX_BINS`` bins.
    """
    if low == high:
        # Any width fits. It is at least the spacing of floats at ``low``, so that the number of the
        # bin is an integer that float64 holds exactly.
        return max(least, 1.0, math.ulp(low))
    # ``share`` is the width that each bin needs at least. It is for one bin less, because the range
    # may begin within a bin. Each end is divided first, because the difference of the ends may
    # overflow. The smallest normal float in its place, if it is less, keeps the logarithm finite.
    share = max(high / (MAX_BINS - 1) - low / (MAX_BINS - 1), sys.float_info.min)
    return max(least, 2.0 ** math.ceil(math.log2(share)))
