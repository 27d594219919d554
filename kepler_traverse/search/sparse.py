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
    """Arrays over all vertices that searches use as scratch, one thread at a time, and again and
    again: a place, a mark and a stamp per vertex.

    A place is the position of a vertex in the table of a search. A mark is a flag of any meaning.
    Both are 0 when they are lent, and the searches clear what they set. A stamp says by which
    search for hops, and at which level, a vertex was found last.
    """

    def __init__(self, n_vertices: int):
        """Make no array yet; ``n_vertices`` is the number of vertices of the graph."""
        self._n_vertices = n_vertices
        self._free: list[tuple[np.ndarray, ...]] = []

    def arrays(self) -> tuple[np.ndarray, ...]:
        """Return new arrays: int32 places and uint8 marks of shape (n_vertices,), and int32 stamps
        of shape (n_vertices + 1,). All are 0, and take memory once they are written.

        The last stamp is the largest that a search has used: the next search uses larger ones.
        """
        n = self._n_vertices
        return np.zeros(n, np.int32), np.zeros(n, np.uint8), np.zeros(n + 1, np.int32)

    @contextmanager
    def lent(self) -> Iterator[tuple[np.ndarray, ...]]:
        """Yield the three arrays that ``arrays`` returns: free ones, or new ones if other threads
        use all.

        If an error is raised meanwhile, they are not used again, since places and marks may not be
        cleared.
        """
        try:
            arrays = self._free.pop()
        except IndexError:
            arrays = self.arrays()
        yield arrays
        self._free.append(arrays)


@dataclass(eq=False)
class SparseDistances:
    """Distances of shape (k, n_vertices), of which only those of reached vertices are held: one row
    of them per source.

    What is computed of them takes time in proportion to the vertices reached, and is equal bit for
    bit to what is computed of an array of all distances. A vertex of a row with its distance is an
    entry.
    """

    offsets: np.ndarray  # int64 array of shape (k + 1,): where the row of each source begins
    # integer array of shape (offsets[-1],): vertex numbers, row by row in ascending order
    vertices: np.ndarray
    # of the same length: hops as int32, or weighted distances in the type of the sums
    distance: np.ndarray
    n_vertices: int  # of the graph
    # The graph if it is on a GPU, else None. The rows are in host memory all the same, and so is
    # what is computed of them.
    graph: Any = None
    # the ``Marks`` of the search, which serve as scratch; by default new ones are made
    marks: Any = None
    # Whether the search has certified the distances itself. It does so where the rows lack vertices
    # that ``check`` needs.
    is_certified: bool = False
    # the predecessor of each entry, a vertex number as in ``results.Traversal``, of the length of
    # ``vertices``; None if predecessors are not known
    predecessor: np.ndarray | None = None

    form = "sparse"
    ndim = 2

    def __post_init__(self) -> None:
        self.marks = self.marks or Marks(self.n_vertices)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of sources, and the number of vertices of the graph."""
        return self.offsets.size - 1, self.n_vertices

    @property
    def dtype(self) -> np.dtype:
        """The type of the distances: int32 for hops."""
        return self.distance.dtype

    @property
    def itemsize(self) -> int:
        """The bytes of a distance."""
        return self.distance.itemsize

    @property
    def size(self) -> int:
        """The number of entries: of distances of reached vertices."""
        return self.distance.size

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays that are held."""
        arrays = (self.offsets, self.vertices, self.distance, self.predecessor)
        return sum(array.nbytes for array in arrays if array is not None)

    @property
    def sizes(self) -> np.ndarray:
        """The number of vertices that each source reaches, int64 of shape (k,)."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        """Return the number of sources."""
        return self.offsets.size - 1

    def copy(self) -> SparseDistances:
        """Return this object without a copy: unlike arrays of rows, these arrays do not belong to a
        plan that writes them again.
        """
        return self

    def __getitem__(self, i: Any) -> Any:
        """Return the distances from the sources in a slice, as ``SparseDistances``; or those from
        source i to all vertices, as an array of shape (n_vertices,).
        """
        if not isinstance(i, slice):
            return self[i : i + 1].rows()[0]
        begin, end, _ = i.indices(len(self))
        offsets = self.offsets[begin : end + 1]
        return self._with_entries(offsets - offsets[0], slice(int(offsets[0]), int(offsets[-1])))

    def _with_entries(self, offsets: np.ndarray, selection: Any) -> SparseDistances:
        """Return distances with some of the entries. ``selection`` is a slice of them, or a bool
        mask of shape (size,).

        ``offsets``, int64, say where the row of each source begins among the selected entries.
        """
        if self.predecessor is None:
            predecessor = None
        else:
            predecessor = self.predecessor[selection]
        return replace(
            self,
            offsets=offsets,
            vertices=self.vertices[selection],
            distance=self.distance[selection],
            predecessor=predecessor,
        )

    def rows(self) -> Array:
        """Return the distances from each source to all vertices, an array of shape (k, n_vertices)
        in host memory.
        """
        return self._spread(self.distance, unreached_value(self.dtype))

    def move(self, values: np.ndarray) -> Array:
        """Return ``values``, an array in host memory, as one on the device of the graph: the same
        array unless the graph is on a GPU.
        """
        if self.graph is None:
            return values
        return namespace(self.graph.offsets).asarray(values)

    def joined(self, others: Sequence[SparseDistances]) -> SparseDistances:
        """Return the rows of these distances, and then those of others. All have predecessors, or
        none.
        """
        parts = [self, *others]
        predecessor = None
        if self.predecessor is not None:
            predecessor = np.concatenate([part.predecessor for part in parts])
        return replace(
            self,
            offsets=make_offsets(np.concatenate([part.sizes for part in parts])),
            vertices=np.concatenate([part.vertices for part in parts]),
            distance=np.concatenate([part.distance for part in parts]),
            predecessor=predecessor,
            is_certified=all(part.is_certified for part in parts),
        )

    def predecessor_rows(self) -> Array | None:
        """Return the predecessors as an array of shape (k, n_vertices), -1 where a vertex is not
        reached; None if they are not known.
        """
        if self.predecessor is None:
            return None
        return self._spread(self.predecessor, NO_PREDECESSOR)

    def _spread(self, values: np.ndarray, elsewhere: Any) -> np.ndarray:
        """Return an array of shape (k, n_vertices) with the value of each entry, and ``elsewhere``
        at vertices that were not reached.
        """
        rows = np.full(self.shape, elsewhere, values.dtype)
        rows[self.rows_of_entries(), self.vertices] = values
        return rows

    def distance_between(self, row_number: int, vertex: int) -> Any:
        """Return the distance to the vertex number ``vertex`` from the source of row
        ``row_number``; the value of unreached vertices if it is not reached.
        """
        row = slice(self.offsets[row_number], self.offsets[row_number + 1])
        distances = self.distance[row][self.vertices[row] == vertex]
        if distances.size:
            return distances[0]
        return unreached_value(self.dtype)

    def at_each(self, rows: np.ndarray, vertices: np.ndarray) -> Array:
        """Return one distance per pair of a source and a vertex, on the device of the graph.

        ``rows`` are positions of sources, and ``vertices`` are vertex numbers: int64 arrays of the
        same shape (n,), as is what is returned.
        """
        # Rows and their vertices ascend, so one number per (row, vertex) ascends over all entries.
        keys = self.rows_of_entries() * self.n_vertices + self.vertices
        wanted_keys = rows * self.n_vertices + vertices
        places = np.searchsorted(keys, wanted_keys)
        distances = np.full(wanted_keys.size, unreached_value(self.dtype), self.dtype)
        # A place behind the last entry is compared with -1, which is no key.
        is_entry = np.append(keys, -1)[places] == wanted_keys
        distances[is_entry] = self.distance[places[is_entry]]

        return self.move(distances)

    def edges(self, offsets: np.ndarray) -> int:
        """Return the number of stored edges that leave the vertices of all rows. ``offsets`` are
        those of the graph.
        """
        offsets = self._on_host(offsets)
        return int((offsets[self.vertices + 1] - offsets[self.vertices]).sum())

    def rows_of_entries(self) -> np.ndarray:
        """Return the position of the source of each entry, int64 of shape (size,)."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def within(self, limits: Sequence[float]) -> SparseDistances:
        """Return the distances without those beyond the limit of their source. ``limits`` has one
        limit per source.
        """
        return self._with_entries_where(
            self.distance <= np.repeat(as_distances(limits, self.dtype), self.sizes)
        )

    def _with_entries_where(self, is_kept: np.ndarray) -> SparseDistances:
        """Return distances with the entries where ``is_kept``, bool of shape (size,), is True."""
        # ``make_offsets`` counts the entries before each one that stay: read at the begin of each
        # row, that is where the new row begins.
        return self._with_entries(make_offsets(is_kept)[self.offsets], is_kept)

    @property
    def _rows(self) -> cpu.Rows:
        """The rows as compiled code takes them."""
        return cpu.Rows(self.offsets, self.vertices, self.distance)

    def stats(
        self, offsets: np.ndarray, limit: float | None, has_sums: bool = True
    ) -> tuple[np.ndarray, ...]:
        """Return statistics of weighted distances, floats, as the fields of ``DistanceStats``.

        They are six arrays of shape (k,), with one number per source: the vertices within the
        limit; the smallest and the largest distance of these, float64, and inf and -inf if there is
        none; the sum of these distances, and of the reciprocals of positive ones; and the stored
        edges that leave all vertices reached, also beyond the limit.

        ``offsets`` are those of the graph. Without ``has_sums`` no sums are computed, and both are
        0.
        """
        k = len(self)
        dtype = self.dtype
        counts = np.empty((k, 2), np.int64)  # of vertices, and of edges
        extremes = np.empty((k, 2), dtype)  # the smallest and the largest distance
        # of distances, and of reciprocals; compiled code computes none if there are no rows
        sums = np.zeros((2 * has_sums, k))
        # finite also without a limit, so that a distance of infinity is beyond the bound
        bound = min(as_distance(limit, dtype), np.finfo(dtype).max)
        results = counts, extremes, sums
        self._run(cpu.stats, self._rows, self._on_host(offsets), self.n_vertices, bound, results)
        nearest, farthest = extremes.astype(np.float64).T
        if has_sums:
            total, harmonic = sums
        else:
            total, harmonic = np.zeros((2, k))
        n_reached, n_edges = counts.T
        return n_reached, nearest, farthest, total, harmonic, n_edges

    def sums_within(
        self,
        lowest: Any,
        bounds: np.ndarray,
        integers: np.ndarray,
        floats: np.ndarray,
        decay: int,
        parameters: tuple[float, float],
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the sums of vertex attributes within some bounds of each source, as
        ``cpu.opportunities.sums`` does from the same arguments.

        Vertices at distances below ``lowest`` do not count. ``bounds``, of shape (n_bounds,), are
        the largest distances within the cutoffs, ascending. ``integers`` and ``floats`` are int64
        and float64 attributes, of shape (n_attributes, n_vertices). ``decay``, one of ``NO_DECAY``
        to ``POWER`` of ``cpu.opportunities``, weighs floats by distance, with two ``parameters``.

        The sums are an int64 array of shape (k, n_integers, n_bounds), of the attributes in
        ``integers``, and a float64 array of shape (k, n_floats, n_bounds), of those in ``floats``.
        """
        exact = np.zeros((len(self), len(integers), bounds.size), np.int64)
        rounded = np.zeros((len(self), len(floats), bounds.size))
        question = Within(lowest, bounds, integers, floats, decay, parameters)
        self._run(cpu.sums_within, self._rows, question, self.n_vertices, exact, rounded)
        return exact, rounded

    def bins(
        self, limit: float | None, bins_per_unit: np.ndarray, before: np.ndarray, n_bins: int
    ) -> np.ndarray:
        """Return how many distances from each source, up to a limit, are in each bin: int64 of
        shape (k, n_bins), as ``distance_stats.count_bins`` does from the same arguments.

        A unit of distance has ``bins_per_unit`` bins, float64 of shape (k,). The first bin that is
        counted has ``before`` bins, int64 of shape (k,), before it.
        """
        counts = np.zeros((len(self), n_bins), np.int64)
        bound = as_distance(limit, self.dtype)
        self._run(cpu.bins, self._rows, bound, bins_per_unit, before, counts)
        return counts

    def levels(
        self, offsets: np.ndarray, limit: float | None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield, for some sources at a time, the numbers of vertices per level and of stored edges,
        as ``distance_stats.count_levels`` does from the same arguments.

        Vertices are counted at 0, 1, 2, ... hops, up to ``limit``, None for no limit: int64 of
        shape (n_sources, levels). Edges, int64 of shape (n_sources,), are those that leave the
        reached vertices. ``offsets`` are those of the graph. Distances must be hops.
        """
        deepest = int(self.distance.max(initial=0))
        if limit is not None:
            deepest = int(min(deepest, limit))
        n_levels = 1 + deepest
        # As many sources as ``LEVELS_AT_ONCE`` counts, a bound of the memory, allow.
        rows_at_once = max(1, LEVELS_AT_ONCE // n_levels)
        offsets = self._on_host(offsets)
        for first in range(0, len(self), rows_at_once):
            part = self[first : first + rows_at_once]
            counts = np.zeros((len(part), n_levels), np.int64)
            edges = np.zeros(len(part), np.int64)
            part._run(cpu.levels, part._rows, offsets, deepest, counts, edges)
            yield counts, edges

    def bitmap(self) -> np.ndarray:
        """Return which vertices each source reaches, one bit each: uint8 of shape (k,
        ceil(n_vertices / 8)), vertex v in bit v % 8 of byte v // 8.
        """
        bytes_per_row = -(-self.n_vertices // 8)
        bits = np.zeros((len(self), bytes_per_row), np.uint8)
        places = self.rows_of_entries(), self.vertices // 8
        bit = np.uint8(1) << (self.vertices % 8).astype(np.uint8)
        # unbuffered, since several vertices have their bits in one byte
        np.bitwise_or.at(bits, places, bit)
        return bits

    def at(self, vertices: np.ndarray) -> SparseDistances:
        """Return the distances to some vertices alone, given by their numbers."""
        return self._with_entries_where(np.isin(self.vertices, vertices))

    def check(self, graph: Any, sources: np.ndarray, limits: Sequence[float | None]) -> np.ndarray:
        """Check the distances by the rules of ``certificate``, over the vertices reached and the
        edges that leave them.

        The graph has no negative weight. ``sources``, of shape (k,), are vertex numbers; ``limits``
        has one limit per source, None where there is none.

        Return an int64 array of shape (5, 3), as ``certificate.batch.check_distances`` does: per
        rule, C1 to C5, the number of violations, and the row and the vertex of the first one.
        """
        bounds_per_source = as_distances(limits, self.dtype)
        # A copy in C order: compiled code is compiled again for another layout.
        sources = np.array(sources, np.int64)
        edges = self._copy_edges(graph)

        def check_part(place: np.ndarray, part: slice, offsets: np.ndarray) -> np.ndarray:
            """Check the rows of one part, and return their findings. ``place`` is scratch, and
            ``offsets`` say where these rows begin.
            """
            findings_of_part = np.zeros((5, 3), np.int64)
            rows = cpu.CheckedRows(
                sources[part], offsets, self.vertices, self.distance, bounds_per_source[part]
            )
            cpu.check(edges, rows, place, findings_of_part, self.predecessor)
            return findings_of_part

        findings = np.zeros((5, 3), np.int64)
        for item, findings_of_part in enumerate(self._map_parts(check_part)):
            # The first violation of a rule is that of the first part which has one.
            is_first = (findings[:, 0] == 0) & (findings_of_part[:, 0] > 0)
            # rows are numbered within the part
            findings[is_first, 1:] = findings_of_part[is_first, 1:] + [item * AT_ONCE, 0]
            findings[:, 0] += findings_of_part[:, 0]
        return findings

    def point_back(self, graph: Any, sources: np.ndarray) -> SparseDistances:
        """Return the distances with the predecessors that follow from them, in a graph without
        negative weights.

        ``sources`` has the vertex number of the source of each row.

        Raises PrecisionError: a vertex has no predecessor, because rounding made a cycle of equal
        distances.
        """
        predecessor = np.empty(self.size, self.vertices.dtype)
        sources = np.array(sources, np.int64)
        edges = self._copy_edges(graph)

        def point_back_part(place: np.ndarray, part: slice, offsets: np.ndarray) -> int:
            """Write the predecessors of the rows of one part, and return how many vertices have
            none. ``place`` and ``offsets`` are those of ``_map_parts``.
            """
            rows = cpu.Rows(offsets, self.vertices, self.distance)
            return cpu.point_back(edges, sources[part], rows, place, predecessor)

        if any(self._map_parts(point_back_part)):
            raise closed_cycle_error(self.dtype)
        return replace(self, predecessor=predecessor)

    def walk_back(self, lists: TargetLists) -> tuple[np.ndarray, np.ndarray]:
        """Return the paths to the targets of each source, ``lists``, along the predecessors, which
        must be known: the number of vertices of each path, 0 without a path, and these vertices,
        path by path from its source to its target.
        """
        sizes = np.zeros(lists.vertices.size, np.int64)

        def walk_part(place: np.ndarray, part: slice, offsets: np.ndarray) -> np.ndarray:
            """Write the numbers of vertices of the paths to the targets of the sources in ``part``,
            and return these vertices. ``_map_parts`` calls it, with ``place`` as scratch and where
            the rows begin, ``offsets``.
            """
            list_offsets = lists.offsets[part.start : part.stop + 1]
            return cpu.walk_back(
                offsets, self.vertices, self.predecessor, list_offsets, lists.vertices, place, sizes
            )

        return sizes, np.concatenate([self.vertices[:0], *self._map_parts(walk_part)])

    def _copy_edges(self, graph: Any) -> Edges:
        """Return the edges of a graph in host memory, with weights in the type of the distances;
        for hops, weights have the shape (0,).
        """
        if not is_hops(self.dtype) and graph.weights.dtype != self.dtype:
            graph = graph.derived.sums_in(self.dtype.name)
        graph = graph.derived.on_host
        if is_hops(self.dtype):
            return Edges(graph.offsets, graph.targets, np.empty(0, self.dtype))
        return Edges.of(graph)

    def _map_parts(self, work: Callable[[np.ndarray, slice, np.ndarray], Any]) -> list[Any]:
        """Return ``work(place, part, offsets)`` of each part of the rows, in their order. Threads
        take the parts.

        ``place`` is an int32 array of ``Marks``, which is 0 everywhere before and must be so after.
        ``part`` is a slice of up to ``AT_ONCE`` rows, and ``offsets`` say where each of these
        begins, and where the last one ends, among all entries.
        """
        n_parts = -(-len(self) // AT_ONCE)
        results: list[Any] = [None] * n_parts

        def call_item(item: int, _thread: int) -> None:
            """Do the work of part ``item``, with marks that no other thread uses meanwhile. The
            number of the thread is ignored: marks are lent to any thread.
            """
            part = slice(item * AT_ONCE, (item + 1) * AT_ONCE)
            with self.marks.lent() as (place, _, _):
                results[item] = work(place, part, self.offsets[part.start : part.stop + 1])

        threads.for_each(call_item, n_parts)
        return results

    def any_beyond(self, bound: int) -> bool:
        """Return whether a distance is ``bound`` or more. No distance is negative, since searches
        that return this form take no negative weights.
        """
        return bool((self.distance >= self.dtype.type(bound)).any())

    def _on_host(self, offsets: Any) -> Any:
        """Return the offsets of the graph in host memory. ``offsets`` are the same on the device of
        the graph.
        """
        if self.graph is None:
            return offsets
        return self.graph.derived.on_host.offsets

    def _run(self, kernel: Any, *args: Any) -> None:
        """Run the compiled function ``kernel`` with ``args`` over all rows. Threads take
        ``cpu.CHUNK`` rows at a time. Results are written to arrays among ``args``.
        """
        threads.run(kernel, -(-len(self) // cpu.CHUNK), *args)


def to_sparse(distance: Array, predecessor: Array | None = None) -> SparseDistances:
    """Return ``distance``, of shape (k, n_vertices), as ``SparseDistances``: those of the vertices
    reached. Hops become int32. ``predecessor``, if it is there, has the same shape, and its entries
    are added.
    """
    distances = to_host(distance)
    reached = is_reached(distances)
    row_of_entry, vertices = np.nonzero(reached)
    if is_hops(distances.dtype):
        values = distances[reached].astype(np.int32)
    else:
        values = distances[reached]
    offsets = make_offsets(np.bincount(row_of_entry, minlength=len(distances)))
    if predecessor is None:
        predecessors = None
    else:
        predecessors = to_host(predecessor)[reached]
    return SparseDistances(offsets, vertices, values, distances.shape[1], predecessor=predecessors)


def closed_cycle_error(dtype: np.dtype) -> PrecisionError:
    """Return the error for a vertex that has no predecessor: rounding to ``dtype``, the type of the
    distances, has made the edges of a cycle as long as 0, and no path enters that cycle.
    """
    return PrecisionError(
        f"rounding in {dtype} closed a cycle of equal distances that no path enters; "
        f"{without_rounding(dtype)}"
    )


def without_rounding(dtype: np.dtype) -> str:
    """Return the part of a message that says how sums round less than in ``dtype``, the type of the
    distances, or not at all.
    """
    integers = "scale the weights to integers"
    if dtype == np.float64:
        return integers
    return f"build the graph with {option_text('weight_type', 'float64')}, or {integers}"
