"""Sums of a column of the edges along the canonical paths from many sources, by sweeps over the
hierarchy that keeps these paths.

A sweep is that of the module ``sweep``: a search upward from each source, and then one pass
downward over all positions of the hierarchy (0 is the top). Here each position has a line of sums
beside its line of distances, with a lane (an element) per source. Where an edge from above is as
short as the path upward that the search has found, both paths are compared, since only one is
canonical.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..cpu import threads
from ..cpu.compiled import njit
from ..cpu.simd_sums import EdgesWithSums, LinesWithSums, clear_line, lower_line_with_sums
from .arrays import Hierarchy, concatenate_rows
from .canonical import CanonicalHierarchy, is_before, new_stacks, sum_entries
from .sweep import (
    DOUBLINGS,
    LANES,
    UNREACHED,
    aligned_lines,
    positions_above,
    search_upward,
)

_INT32_END = 2**31 - 1
# Bytes per vertex that one thread needs: sums and parents of 16 sources, and the sums of one search
# upward.
BYTES_PER_VERTEX = 16 * (8 + 4) + 8


class Swept(NamedTuple):
    """The part of a hierarchy above some targets, targets included. Its positions are numbered anew
    by places, in the same order.
    """

    # int32 array of shape (n,): the place of each position, -1 if it takes no part
    places: np.ndarray
    positions: np.ndarray  # int32 array of shape (n_places,): the position of each place
    # offsets, heads, weights: the edges to each place from places above it, as in ``arrays.Edges``
    offsets: np.ndarray
    heads: np.ndarray
    weights: np.ndarray
    # integer array of shape (n_edges,): the number of each edge of ``offsets`` among the edges
    # downward of the whole hierarchy
    entries: np.ndarray


class AddedUp(NamedTuple):
    """The sums of one column along what each edge or shortcut of a hierarchy stands for; int32
    arrays if int32 holds the sums of all paths, else int64.
    """

    up: np.ndarray  # by the edges upward of the whole hierarchy
    down: np.ndarray  # by the edges of ``Swept``


class SumArrays(NamedTuple):
    """The memory of one thread for a sweep from some sources. Source i has lane i.

    "Scratch" has no meaning between calls. n is the number of vertices.
    """

    lines: np.ndarray  # integers of shape (places, lanes), output: distances
    sums: np.ndarray  # integers of shape (places, lanes), output: the sum of the column per path
    # uint8 array of shape (places,): 1 for a line that a search upward has written; all 0 before
    # and after
    is_set: np.ndarray
    # integers of shape (n,), by position: distances of a search upward; all unreached before and
    # after
    tentative: np.ndarray
    # heap, reached: int32 arrays of shape (n,): scratch of a search upward
    heap: np.ndarray
    reached: np.ndarray
    total: np.ndarray  # int64 array of shape (n,), scratch: sums along the paths upward
    # int32 array of shape (lanes, n), scratch: the edge upward by which the path of a search enters
    # each position that it reached; -1 for the source
    parent: np.ndarray
    # integers of shape (lanes,), scratch: the distances of one line as the searches upward have set
    # them, before edges from above lower them
    held: np.ndarray
    stacks: np.ndarray  # int64 array of shape (2, entries), scratch of ``is_before``


class ColumnSums:
    """Columns of the edges, prepared for sums along canonical paths.

    ``columns`` are int64 arrays with a value per edge of the reversed graph. No sum along a path
    without a circle may exceed int64.

    Attributes
    ----------
    canonical : CanonicalHierarchy
        The hierarchy, and the path that each of its edges and shortcuts stands for.
    entry_sums : list of tuple of int64 arrays
        Per column: the sum along what each edge upward stands for, and each edge downward.
    dtype : numpy.dtype
        Type that holds the sum along any path: int32 or int64.
    """

    def __init__(self, canonical: CanonicalHierarchy, columns: Sequence[np.ndarray]):
        """Add up each column along what each edge stands for, and find the type of the sums."""
        self.canonical = canonical
        self.entry_sums = []
        self.dtype: np.dtype = np.dtype(np.int32)
        paths = canonical.paths
        for column in columns:
            up, down = (np.empty(row.heads.size, np.int64) for row in (paths.up, paths.down))
            sum_entries(column, up, down, paths)
            self.entry_sums.append((up, down))
            largest = max(int(np.abs(sums).max(initial=0)) for sums in (up, down))
            # A path has at most one edge upward and one downward per level.
            if largest * 2 * canonical.hierarchy.levels >= _INT32_END:
                self.dtype = np.dtype(np.int64)


class SumSweeps:
    """Sweeps for sums of columns, with the memory that they need. Any thread may call them.

    ``_free`` holds at most one ``_Part``, that of the last call, for the next call to use again.
    """

    def __init__(self, columns: ColumnSums):
        """``columns`` are the hierarchy and the columns to add up."""
        self._columns = columns
        self._free: list[_Part] = []

    @property
    def hierarchy(self) -> Hierarchy:
        """The hierarchy that is swept."""
        return self._columns.canonical.hierarchy

    def at_targets(self, sources: np.ndarray, lists: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return distances at the targets of each source, and sums of each column along the
        canonical paths to them.

        Parameters
        ----------
        sources : integer array of shape (k,)
            Vertex numbers.
        lists : TargetLists
            The targets of each source, vertex numbers.

        Returns
        -------
        distance : array of shape (n_targets,), of ``hierarchy.dtype``
            In units of the hierarchy; ``UNREACHED`` where there is no path.
        totals : int64 array of shape (n_targets, n_columns)
            Of no meaning where there is no path.
        """
        # The part of the last call can be used again if its targets begin with those of ``lists``.
        # ``_free`` is empty before the first call, and while a call in another thread uses the
        # part.
        try:
            part = self._free.pop()
        except IndexError:
            part = None
        size = lists.vertices.size
        if part is None or not np.array_equal(part.vertices[:size], lists.vertices):
            part = _Part(self._columns, lists.vertices)

        distance = np.empty(size, self.hierarchy.dtype)
        totals = np.empty((size, len(self._columns.entry_sums)), np.int64)
        for column in range(totals.shape[1]):
            part.sweep(column, sources, lists, distance, totals[:, column])
        self._free = [part]  # keep one part at most, as parts are large
        return distance, totals


class _Part:
    """The part of a hierarchy above some vertices, and the memory in which each thread sweeps it.

    - ``vertices``: int64 vertex numbers, as the caller gave them.
    - ``_swept``: the part, whose positions are numbered anew by places.
    - ``_targets``: int32, the place of each of ``vertices`` in the part.
    - ``_added``: an ``AddedUp`` per column: what each edge adds to a sum.
    - ``_dtype``: type of the sums, int32 or int64.
    - ``_arrays``: the ``SumArrays`` of each thread, None until the thread first sweeps.
    """

    def __init__(self, columns: ColumnSums, vertices: np.ndarray):
        """Make the part above ``vertices``, which are vertex numbers and may repeat."""
        canonical = columns.canonical
        self.vertices = vertices
        self._canonical = canonical
        self._swept = _part_above(canonical, np.unique(vertices))
        self._targets = self._swept.places[canonical.hierarchy.position[vertices]]
        self._dtype = columns.dtype
        self._added = [
            AddedUp(up.astype(self._dtype), down[self._swept.entries].astype(self._dtype))
            for up, down in columns.entry_sums
        ]
        self._arrays: list[SumArrays | None] = [None] * threads.max_threads()

    def sweep(
        self,
        column: int,
        sources: np.ndarray,
        lists: Any,
        distance: np.ndarray,
        total: np.ndarray,
    ) -> None:
        """Write the distances and the sums of a column at the targets of each source.

        ``column`` is the number of the column. ``sources`` (k,) are vertex numbers, and ``lists``
        the ``TargetLists`` with the targets of each. The outputs ``distance`` and ``total`` (int64)
        have one entry per target.
        """
        # Sources are swept together in lines of as many as there are lanes, a line per item.
        canonical = self._canonical
        dtype = distance.dtype
        lanes = LANES[dtype]
        # what stands for no path, and a tuple whose length tells compiled code the number of lanes
        scalars = UNREACHED[dtype], DOUBLINGS[dtype]
        positions = canonical.hierarchy.position[sources].astype(np.int64)
        added_up = self._added[column]

        def sweep_line(i: int, thread: int) -> None:
            """Sweep from the sources of the i-th line, in the memory of a thread."""
            # None, before the first line of the thread, counts as False.
            arrays = self._arrays[thread] or _new_arrays(canonical, self._swept, self._dtype)
            self._arrays[thread] = arrays
            first = i * lanes
            line_positions = positions[first : first + lanes]
            _sweep_line(line_positions, canonical.paths, added_up, self._swept, arrays, *scalars)
            offsets = lists.offsets[first : first + lanes + 1]
            _write_targets(arrays.lines, arrays.sums, offsets, self._targets, distance, total)

        threads.for_each(sweep_line, -(-positions.size // lanes))


def _part_above(canonical: CanonicalHierarchy, targets: np.ndarray) -> Swept:
    """Return the part of a hierarchy above some targets, which are vertex numbers in ascending
    order.
    """
    position = canonical.hierarchy.position
    down = canonical.paths.down
    positions = positions_above(position[targets].astype(np.int64), down.offsets, down.heads)
    places = np.full(position.size, -1, np.int32)
    places[positions] = np.arange(positions.size, dtype=np.int32)
    offsets, entries = concatenate_rows(down.offsets[positions], np.diff(down.offsets)[positions])
    return Swept(
        places, positions, offsets, places[down.heads[entries]], down.weights[entries], entries
    )


def _new_arrays(canonical: CanonicalHierarchy, swept: Swept, sum_dtype: np.dtype) -> SumArrays:
    """Allocate the memory of one thread for sweeps over the part ``swept``, with sums of the type
    ``sum_dtype``.
    """
    dtype = canonical.hierarchy.dtype
    n = canonical.hierarchy.n_vertices
    n_places = swept.offsets.size - 1
    heap, reached = np.empty((2, n), np.int32)
    return SumArrays(
        lines=aligned_lines(n_places, dtype),
        sums=np.zeros((n_places, LANES[dtype]), sum_dtype),
        is_set=np.zeros(n_places, np.uint8),
        tentative=np.full(n, UNREACHED[dtype], dtype),
        heap=heap,
        reached=reached,
        total=np.empty(n, np.int64),
        parent=np.empty((LANES[dtype], n), np.int32),
        held=np.empty(LANES[dtype], dtype),
        stacks=new_stacks(canonical),
    )


@njit(cache=True, nogil=True)
def _find_parents(source, count, parent, paths, up_sums, arrays):
    """Find the canonical path upward to each position that a search has reached, and the sum of a
    column along it.

    Parameters
    ----------
    source : int
        Position where the search began.
    count : int
        The positions that it reached are the first ``count`` of ``arrays.reached``, lower ones
        first.
    parent : int32 array of shape (n,), output
        The edge upward by which the path enters each of these positions; -1 for the source. If
        several edges are equally short, it is the edge whose path comes first by ``is_before``.
    paths : Canonical
    up_sums : integer array
        What each edge upward adds to the sum.
    arrays : SumArrays
        ``tentative`` has the distances of the search; ``total`` receives the sums.
    """
    up = paths.up
    tentative = arrays.tentative
    reached = arrays.reached
    total = arrays.total
    for i in range(count):
        parent[reached[i]] = -1

    # A position comes after all from which an edge leads to it, so its parent is final.
    for i in range(count):
        p = reached[i]
        total[p] = 0
        if p != source:  # ``up_tail`` is the lower position of an edge upward
            total[p] = total[paths.up_tail[parent[p]]] + up_sums[parent[p]]
        for e in range(up.offsets[p], up.offsets[p + 1]):
            q = up.heads[e]
            if tentative[p] + up.weights[e] != tentative[q]:
                continue
            # Of two edges that tie, compare the paths that end with them (2 e is edge e upward).
            if parent[q] >= 0:
                arrays.stacks[0, 0] = 2 * e
                arrays.stacks[1, 0] = 2 * np.int64(parent[q])
                stacks = arrays.stacks
                if not is_before(stacks[0], 1, stacks[1], 1, parent, source, paths):
                    continue
            parent[q] = e


@njit(cache=True, nogil=True)
def _settle_ties(place, ties, sources, paths, added, swept, arrays):
    """In lanes where an edge from above is as short as the path upward to a position, decide which
    of both paths is canonical, and set the sum of the lane to that of this path.

    ``place`` is the position's number in the part. ``ties`` has a bit per lane, set if an edge from
    above is as short as the distance in ``arrays.held`` that the search upward found. ``sources``
    are positions, one per lane. ``added`` is what each edge of ``swept`` adds to the sum.
    """
    lines = arrays.lines
    stacks = arrays.stacks
    p = swept.positions[place]
    for lane in range(sources.size):
        distance = lines[place, lane]
        # If the final distance is smaller than that of the search upward, the path upward plays no
        # role.
        is_tied = (ties >> np.uint64(lane)) & np.uint64(1)
        if not is_tied or arrays.held[lane] != distance:
            continue
        for e in range(swept.offsets[place], swept.offsets[place + 1]):
            if lines[swept.heads[e], lane] + swept.weights[e] != distance:
                continue
            # On stacks of ``is_before``: 2 e + 1 is edge e downward, 2 e is edge e upward.
            stacks[0, 0] = 2 * swept.entries[e] + 1
            stacks[1, 0] = 2 * np.int64(arrays.parent[lane, p])
            if is_before(stacks[0], 1, stacks[1], 1, arrays.parent[lane], sources[lane], paths):
                arrays.sums[place, lane] = arrays.sums[swept.heads[e], lane] + added[e]
            break  # edges to a place are in the order of their paths: those that follow come later


@njit(cache=True, nogil=True)
def _sweep_line(sources, paths, added, swept, arrays, unreached, doublings):
    """Write the distances from several positions to ``arrays.lines``, and the sums of a column
    along the canonical paths to ``arrays.sums``.

    ``sources`` are at most as many positions as there are lanes. ``paths`` is ``Canonical``,
    ``added`` an ``AddedUp`` and ``swept`` a ``Swept``. ``unreached`` is the number that stands for
    no path, and the length of the tuple ``doublings`` the binary logarithm of the lanes.
    """
    lines = arrays.lines
    sums = arrays.sums
    is_set = arrays.is_set
    tentative = arrays.tentative
    reached = arrays.reached

    # Search upward from each source. Where a position has a place in the part, write its distance
    # and sum to the lane of the source. Clear ``tentative`` for the next search.
    for lane in range(sources.size):
        n_reached = search_upward(
            sources[lane], paths.up, paths.down, tentative, arrays.heap, reached, unreached
        )
        _find_parents(sources[lane], n_reached, arrays.parent[lane], paths, added.up, arrays)
        for i in range(n_reached):
            p = reached[i]
            place = np.int64(swept.places[p])
            if place >= 0:
                if not is_set[place]:
                    is_set[place] = 1
                    clear_line(lines, place, unreached, doublings)
                lines[place, lane] = tentative[p]
                sums[place, lane] = arrays.total[p]
            tentative[p] = unreached

    # From the top to the bottom, lower each line by the edges from above, and take their sums.
    both = LinesWithSums(lines, sums, arrays.held)
    edges = EdgesWithSums(swept.offsets, swept.heads, swept.weights, added.down)
    for place in range(is_set.size):
        # ``ties`` has a bit per lane in which an edge is as short as what the line held before. A
        # line that is not set held nothing, so that it has no tie to settle.
        ties = lower_line_with_sums(both, place, is_set[place], edges, unreached, doublings)
        if ties and is_set[place]:
            _settle_ties(place, ties, sources, paths, added.down, swept, arrays)
        is_set[place] = 0


@njit(cache=True, nogil=True)
def _write_targets(lines, sums, offsets, targets, distance, total):
    """Copy distances and sums at the targets from the lines to ``distance`` and ``total``, which
    have an entry per target.

    The targets of the source in lane i are ``targets[offsets[i] : offsets[i + 1]]``, which are
    places.
    """
    for lane in range(offsets.size - 1):
        for i in range(offsets[lane], offsets[lane + 1]):
            distance[i] = lines[targets[i], lane]
            total[i] = sums[targets[i], lane]
