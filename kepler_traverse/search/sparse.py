"""Distances from several sources to the vertices that each one reaches, and to no others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._arrays import (
    NO_PREDECESSOR,
    Array,
    as_distance,
    as_distances,
    is_hops,
    is_reached,
    make_offsets,
    namespace,
    to_host,
    unreached_value,
)
from ..cpu import short_search as cpu
from ..cpu import threads
from ..cpu.distance_stats import LEVELS_AT_ONCE
from ..cpu.edges import Edges
from ..cpu.opportunities import Within
from ..errors import PrecisionError, option_text
from .query import TargetLists

AT_ONCE = 256  # rows that a thread checks at a time


class Marks:
    """Arrays over all vertices, lent to one thread at a time, and used again: a place, a mark, and
    a stamp per vertex.

    Places and marks are 0, and are cleared by who has set them. Stamps are those of
    ``cpu.short_search.search_hops``.
    """

    def __init__(self, n_vertices: int):
        self._n_vertices = n_vertices
        self._free: list[tuple[np.ndarray, ...]] = []

    def arrays(self) -> tuple[np.ndarray, ...]:
        """Return new arrays; zeros take memory once they are written."""
        n = self._n_vertices
        return np.zeros(n, np.int32), np.zeros(n, np.uint8), np.zeros(n + 1, np.int32)

    @contextmanager
    def lent(self) -> Iterator[tuple[np.ndarray, ...]]:
        """Yield the arrays; after an error they are not used again."""
        try:
            arrays = self._free.pop()
        except IndexError:
            arrays = self.arrays()
        yield arrays
        self._free.append(arrays)


@dataclass(eq=False)
class SparseDistances:
    """Distances of shape (k, n_vertices), of which only those of reached vertices are held.

    What is computed of them takes time in proportion to the vertices reached, and is equal bit for
    bit to what is computed of an array of all distances.
    """

    offsets: np.ndarray  # int64 array of shape (k + 1,): where the row of each source begins
    # integer array of shape (offsets[-1],): vertex numbers, row by row in ascending order
    vertices: np.ndarray
    # of the same length: hops as int32, or weighted distances in the type of the sums
    distance: np.ndarray
    n_vertices: int  # of the graph
    # if it is on a GPU: rows are in host memory, and so is what is computed of them
    graph: Any = None
    marks: Any = None  # the ``Marks`` of the search, with which it is checked; by default others
    # Whether the search has checked them, because the rows lack vertices that a certificate needs.
    is_certified: bool = False
    # vertex numbers, as in ``results.Traversal``; of the length of ``vertices``
    predecessor: np.ndarray | None = None

    form = "sparse"
    ndim = 2

    def __post_init__(self) -> None:
        self.marks = self.marks or Marks(self.n_vertices)

    @property
    def shape(self) -> tuple[int, int]:
        return self.offsets.size - 1, self.n_vertices

    @property
    def dtype(self) -> np.dtype:
        return self.distance.dtype

    @property
    def itemsize(self) -> int:
        return self.distance.itemsize

    @property
    def size(self) -> int:
        return self.distance.size

    @property
    def nbytes(self) -> int:
        known = (self.offsets, self.vertices, self.distance, self.predecessor)
        return sum(each.nbytes for each in known if each is not None)

    @property
    def sizes(self) -> np.ndarray:
        """Vertices that each source reaches."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return self.offsets.size - 1

    def copy(self) -> SparseDistances:
        """Return the same; a search writes no array of an earlier one."""
        return self

    def __getitem__(self, i: Any) -> Any:
        """Return the distances of a range of sources, or those from one source to all vertices."""
        if not isinstance(i, slice):
            return self[i : i + 1].rows()[0]
        begin, end, _ = i.indices(len(self))
        offsets = self.offsets[begin : end + 1]
        return self._with_entries(offsets - offsets[0], slice(int(offsets[0]), int(offsets[-1])))

    def _with_entries(self, offsets: np.ndarray, kept: Any) -> SparseDistances:
        if self.predecessor is None:
            predecessor = None
        else:
            predecessor = self.predecessor[kept]
        entries = {
            "vertices": self.vertices[kept],
            "distance": self.distance[kept],
            "predecessor": predecessor,
        }
        return replace(self, offsets=offsets, **entries)

    def rows(self) -> Array:
        """Return the distances from each source to all vertices, of shape (k, n_vertices)."""
        return self._spread(self.distance, unreached_value(self.dtype))

    def move(self, values: np.ndarray) -> Array:
        """Return values in host memory on the device of the graph."""
        if self.graph is None:
            return values
        return namespace(self.graph.offsets).asarray(values)

    def joined(self, others: Sequence[SparseDistances]) -> SparseDistances:
        """Return these rows, and then those of others, which have predecessors if these have them."""
        parts = [self, *others]
        entries: dict[str, Any] = {"vertices": np.concatenate([part.vertices for part in parts])}
        entries["distance"] = np.concatenate([part.distance for part in parts])
        if self.predecessor is not None:
            entries["predecessor"] = np.concatenate([part.predecessor for part in parts])
        offsets = make_offsets(np.concatenate([part.sizes for part in parts]))
        return replace(
            self, offsets=offsets, is_certified=all(part.is_certified for part in parts), **entries
        )

    def predecessor_rows(self) -> Array | None:
        """Return the predecessors, if they are known, as ``Traversals`` has those of all vertices."""
        if self.predecessor is None:
            return None
        return self._spread(self.predecessor, NO_PREDECESSOR)

    def _spread(self, values: np.ndarray, elsewhere: Any) -> np.ndarray:
        rows = np.full(self.shape, elsewhere, values.dtype)
        rows[self.rows_of_entries(), self.vertices] = values
        return rows

    def one(self, i: int, v: int) -> Any:
        """Return the distance from one source to one vertex."""
        part = slice(self.offsets[i], self.offsets[i + 1])
        here = self.distance[part][self.vertices[part] == v]
        if here.size:
            return here[0]
        return unreached_value(self.dtype)

    def at_each(self, rows: np.ndarray, vertices: np.ndarray) -> Array:
        """Return the distances from the sources at some positions to one vertex each, on the device
        of the graph.
        """
        keys = self.rows_of_entries() * self.n_vertices + self.vertices
        wanted = rows * self.n_vertices + vertices
        places = np.searchsorted(keys, wanted)
        distances = np.full(wanted.size, unreached_value(self.dtype), self.dtype)
        is_there = np.append(keys, -1)[places] == wanted
        distances[is_there] = self.distance[places[is_there]]
        return self.move(distances)

    def edges(self, offsets: np.ndarray) -> int:
        """Return the number of stored edges of all vertices of the rows."""
        offsets = self._on_host(offsets)
        return int((offsets[self.vertices + 1] - offsets[self.vertices]).sum())

    def rows_of_entries(self) -> np.ndarray:
        """Return the position of the source of each entry."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def within(self, limits: Sequence[float]) -> SparseDistances:
        """Return the distances up to a limit per source."""
        return self._kept(self.distance <= np.repeat(as_distances(limits, self.dtype), self.sizes))

    def _kept(self, is_kept: np.ndarray) -> SparseDistances:
        return self._with_entries(make_offsets(is_kept)[self.offsets], is_kept)

    @property
    def _rows(self) -> cpu.Rows:
        return cpu.Rows(self.offsets, self.vertices, self.distance)

    def stats(
        self, offsets: np.ndarray, limit: float | None, has_sums: bool = True
    ) -> tuple[np.ndarray, ...]:
        """Return the columns of ``distance_stats.DistanceStats``, weighted distances in floats;
        sums may be 0.
        """
        k = len(self)
        kind = self.dtype
        counts = np.empty((k, 2), np.int64)
        extremes = np.empty((k, 2), kind)
        sums = np.zeros((2 * has_sums, k))
        bound = min(as_distance(limit, kind), np.finfo(kind).max)
        results = counts, extremes, sums
        self._run(cpu.stats, self._rows, self._on_host(offsets), self.n_vertices, bound, results)
        lowest, farthest = extremes.astype(np.float64).T
        total, harmonic = sums if has_sums else np.zeros((2, k))
        return counts[:, 0], lowest, farthest, total, harmonic, counts[:, 1]

    def sums_within(
        self,
        lowest: Any,
        bounds: np.ndarray,
        integers: np.ndarray,
        floats: np.ndarray,
        decay: int,
        parameters: tuple[float, float],
    ) -> tuple[np.ndarray, np.ndarray]:
        """As ``cpu.opportunities.sums``."""
        exact = np.zeros((len(self), len(integers), bounds.size), np.int64)
        rounded = np.zeros((len(self), len(floats), bounds.size))
        wanted = Within(lowest, bounds, integers, floats, decay, parameters)
        self._run(cpu.sums_within, self._rows, wanted, self.n_vertices, exact, rounded)
        return exact, rounded

    def bins(
        self, limit: float | None, bins_per_unit: np.ndarray, before: np.ndarray, n_bins: int
    ) -> np.ndarray:
        """As ``kinds.distance_stats.count_bins``."""
        counts = np.zeros((len(self), n_bins), np.int64)
        bound = as_distance(limit, self.dtype)
        self._run(cpu.bins, self._rows, bound, bins_per_unit, before, counts)
        return counts

    def levels(
        self, offsets: np.ndarray, limit: float | None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """As ``kinds.distance_stats.count_levels``."""
        most = int(self.distance.max(initial=0))
        size = 1 + (most if limit is None else int(min(most, limit)))
        step = max(1, LEVELS_AT_ONCE // size)
        offsets = self._on_host(offsets)
        for first in range(0, len(self), step):
            part = self[first : first + step]
            counts = np.zeros((len(part), size), np.int64)
            edges = np.zeros(len(part), np.int64)
            part._run(cpu.levels, part._rows, offsets, size - 1, counts, edges)
            yield counts, edges

    def bitmap(self) -> np.ndarray:
        """Return the vertices reached, uint8 of shape (k, ceil(n_vertices / 8)): v in bit v % 8 of
        byte v // 8.
        """
        bits = np.zeros((len(self), -(-self.n_vertices // 8)), np.uint8)
        np.bitwise_or.at(
            bits,
            (self.rows_of_entries(), self.vertices >> 3),
            np.uint8(1) << (self.vertices & 7).astype(np.uint8),
        )
        return bits

    def at(self, vertices: np.ndarray) -> SparseDistances:
        """Return the distances to some vertices, which ascend."""
        return self._kept(np.isin(self.vertices, vertices))

    def check(self, graph: Any, sources: np.ndarray, limits: Sequence[float | None]) -> np.ndarray:
        """Check the rows by the rules of ``certificate``, over the vertices reached and the edges
        that leave them.

        The graph has no negative weight, and weights of the type of weighted distances. ``limits``
        has one per source, None where there is none. Return what
        ``certificate.batch.check_distances`` returns.
        """
        bounds_of_sources = as_distances(limits, self.dtype)
        sources = np.array(sources, np.int64)  # one layout, for which the check is compiled once
        edges = self._copy_edges(graph)

        def check_some(place: np.ndarray, part: slice, bounds: np.ndarray) -> np.ndarray:
            findings = np.zeros((5, 3), np.int64)
            rows = cpu.CheckedRows(
                sources[part], bounds, self.vertices, self.distance, bounds_of_sources[part]
            )
            cpu.check(edges, rows, place, findings, self.predecessor)
            return findings

        every = np.zeros((5, 3), np.int64)
        for item, some in enumerate(self._of_parts(check_some)):
            new = (every[:, 0] == 0) & (some[:, 0] > 0)
            every[new, 1:] = some[new, 1:] + [item * AT_ONCE, 0]
            every[:, 0] += some[:, 0]
        return every

    def point_back(self, graph: Any, sources: np.ndarray) -> SparseDistances:
        """Return the rows with the predecessors that follow from distances in a graph without
        negative weights.

        Raises PrecisionError: a vertex has none.
        """
        predecessor = np.empty(self.size, self.vertices.dtype)
        sources = np.array(sources, np.int64)
        edges = self._copy_edges(graph)

        def point_some(place: np.ndarray, part: slice, bounds: np.ndarray) -> int:
            rows = cpu.Rows(bounds, self.vertices, self.distance)
            return cpu.point_back(edges, sources[part], rows, place, predecessor)

        if any(self._of_parts(point_some)):
            raise closed_cycle_error(self.dtype)
        return replace(self, predecessor=predecessor)

    def walk_back(self, lists: TargetLists) -> tuple[np.ndarray, np.ndarray]:
        """Return the sizes and the vertices of the paths to the targets of each source, as
        ``results.Routes`` has them.
        """
        sizes = np.zeros(lists.vertices.size, np.int64)

        def walk_some(place: np.ndarray, part: slice, bounds: np.ndarray) -> np.ndarray:
            ends = lists.offsets[part.start : part.stop + 1]
            return cpu.walk_back(
                bounds, self.vertices, self.predecessor, ends, lists.vertices, place, sizes
            )

        return sizes, np.concatenate([self.vertices[:0], *self._of_parts(walk_some)])

    def _copy_edges(self, graph: Any) -> Edges:
        """Return the edges of a graph in host memory, with weights in the type of the distances;
        without any for hops.
        """
        if not is_hops(self.dtype) and graph.weights.dtype != self.dtype:
            graph = graph.derived.sums_in(self.dtype.name)
        graph = graph.derived.on_host
        if is_hops(self.dtype):
            return Edges(graph.offsets, graph.targets, np.empty(0, self.dtype))
        return Edges.of(graph)

    def _of_parts(self, work: Callable[[np.ndarray, slice, np.ndarray], Any]) -> list[Any]:
        """Return ``work(place, part, offsets)`` of each part of the rows, whose offsets these are;
        called in threads.
        """
        results: list[Any] = [None] * -(-len(self) // AT_ONCE)

        def call(item: int, _thread: int) -> None:
            part = slice(item * AT_ONCE, (item + 1) * AT_ONCE)
            with self.marks.lent() as (place, _, _):
                results[item] = work(place, part, self.offsets[part.start : part.stop + 1])

        threads.for_each(call, len(results))
        return results

    def any_beyond(self, bound: int) -> bool:
        """Whether a distance is ``bound`` or more."""
        return bool((self.distance >= self.dtype.type(bound)).any())

    def _on_host(self, offsets: Any) -> Any:
        """Return the offsets of the graph in host memory."""
        if self.graph is None:
            return offsets
        return self.graph.derived.on_host.offsets

    def _run(self, kernel: Any, *args: Any) -> None:
        threads.run(kernel, -(-len(self) // cpu.CHUNK), *args)


def to_sparse(distance: Array, predecessor: Array | None = None) -> SparseDistances:
    """Return distances and predecessors of shape (k, n_vertices) as those of the vertices reached;
    hops as int32.
    """
    rows = to_host(distance)
    reached = is_reached(rows)
    row, vertex = np.nonzero(reached)
    if is_hops(rows.dtype):
        values = rows[reached].astype(np.int32)
    else:
        values = rows[reached]
    offsets = make_offsets(np.bincount(row, minlength=len(rows)))
    if predecessor is None:
        before = None
    else:
        before = to_host(predecessor)[reached]
    return SparseDistances(offsets, vertex, values, rows.shape[1], predecessor=before)


def closed_cycle_error(kind: np.dtype) -> PrecisionError:
    """Return the error for vertices without a predecessor."""
    cure = f"build the graph with {option_text('weight_type', 'float64')}"
    if kind == np.float64:
        cure = "give the weights as integers, in a smaller unit"
    return PrecisionError(
        f"rounding in {kind} closed a cycle of equal distances that no path enters; {cure}"
    )
