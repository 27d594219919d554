"""Sums of a column of the edges along the canonical paths from many sources, by sweeps over the
hierarchy that keeps these paths.

A sweep is that of ``sweep``, with a line of sums beside each line of distances. Where an edge from
above ties with what the search upward has found, both paths are compared.
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
# of one thread: the sums and parents of 16 sources, and the sums of one
BYTES_PER_VERTEX = 16 * (8 + 4) + 8


class Swept(NamedTuple):
    """The part of a hierarchy above some targets. A place is the number of a position in the part."""

    # int32 array of shape (n,): the place of each position, -1 if it takes no part
    places: np.ndarray
    positions: np.ndarray  # int32 array of shape (n_places,): the position of each place
    # offsets, heads, weights: the edges downward between places, as in ``Edges``
    offsets: np.ndarray
    heads: np.ndarray
    weights: np.ndarray
    entries: np.ndarray  # which entry downward of the whole hierarchy each of these edges is


class AddedUp(NamedTuple):
    """What the edges and shortcuts of a hierarchy add to the sum of a column; int32 arrays if no
    sum exceeds that, else int64.
    """

    up: np.ndarray  # of each entry upward
    down: np.ndarray  # of each edge downward between places


class SumArrays(NamedTuple):
    """The memory of one thread for a sweep from some sources, a lane per source."""

    lines: np.ndarray  # of shape (places, lanes), output: distances
    sums: np.ndarray  # of shape (places, lanes), output: the sum of the column along each path
    is_set: np.ndarray  # uint8 array of shape (places,): all 0, before and after
    tentative: np.ndarray  # integer array of shape (n,): all unreached, before and after
    # heap, reached: int32 arrays of shape (n,): scratch of a search upward
    heap: np.ndarray
    reached: np.ndarray
    total: np.ndarray  # int64 array of shape (n,), scratch: sums along the paths upward
    # int32 array of shape (lanes, n), scratch: the entry upward that led to each position that a
    # search reached; -1 for the source
    parent: np.ndarray
    held: np.ndarray  # array of shape (lanes,), scratch: a line as the searches upward have set it
    stacks: np.ndarray  # int64 array of shape (2, entries), scratch of ``is_before``


class ColumnSums:
    """Columns that are added up along canonical paths.

    ``columns`` are int64 arrays of the edges of the reversed graph. No sum along a path without a
    circle may exceed int64.
    """

    def __init__(self, canonical: CanonicalHierarchy, columns: Sequence[np.ndarray]):
        self.canonical = canonical
        # per column, what each entry upward and each entry downward adds, int64
        self.entry_sums = []
        self.dtype: np.dtype = np.dtype(np.int32)  # of the sums
        paths = canonical.paths
        for column in columns:
            up, down = (np.empty(row.heads.size, np.int64) for row in (paths.up, paths.down))
            sum_entries(column, up, down, paths)
            self.entry_sums.append((up, down))
            largest = max(int(np.abs(sums).max(initial=0)) for sums in (up, down))
            # a path has two entries per level at most
            if largest * 2 * canonical.hierarchy.levels >= _INT32_END:
                self.dtype = np.dtype(np.int64)


class SumSweeps:
    """Sweeps for sums of columns, with the memory that they need; any thread may ask for them."""

    def __init__(self, columns: ColumnSums):
        self._columns = columns
        self._free: list[_Part] = []

    @property
    def hierarchy(self) -> Hierarchy:
        return self._columns.canonical.hierarchy

    def at_targets(self, sources: np.ndarray, lists: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return distances at the targets of each source, and sums of each column along the paths
        to them.

        ``lists`` are ``TargetLists``. Distances are in units of the hierarchy, of shape
        (n_targets,); ``UNREACHED`` where there is no path, and the sums are then of no meaning.
        Sums are int64 of shape (n_targets, n_columns).
        """
        # The part of the last call fits if its targets begin with these. A call in another thread
        # may have taken it.
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
        self._free = [part]  # one part at most is kept for the next call
        return distance, totals


class _Part:
    """The part of a hierarchy above some vertices, and what each thread needs to sweep it.

    - ``vertices``: int64 vertex numbers, as the caller gave them.
    - ``_targets``: the place of each of these vertices in the part.
    - ``_added``: per column, what each edge of the part adds to its sum.
    - ``_dtype``: type of the sums.
    - ``_arrays``: per thread its memory, None until the thread sweeps.
    """

    def __init__(self, columns: ColumnSums, vertices: np.ndarray):
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

        ``column`` is its number. ``lists`` are ``TargetLists``; ``distance`` and ``total``, int64,
        have one entry per target of them.
        """
        canonical = self._canonical
        dtype = distance.dtype
        lanes = LANES[dtype]
        scalars = UNREACHED[dtype], DOUBLINGS[dtype]
        positions = canonical.hierarchy.position[sources].astype(np.int64)
        added_up = self._added[column]

        def sweep_line(i: int, thread: int) -> None:
            """Sweep from the sources of the i-th line."""
            arrays = self._arrays[thread] or _new_arrays(canonical, self._swept, self._dtype)
            self._arrays[thread] = arrays
            first = i * lanes
            line_positions = positions[first : first + lanes]
            _sweep_line(line_positions, canonical.paths, added_up, self._swept, arrays, *scalars)
            offsets = lists.offsets[first : first + lanes + 1]
            _write_targets(arrays.lines, arrays.sums, offsets, self._targets, distance, total)

        threads.for_each(sweep_line, -(-positions.size // lanes))


def _part_above(canonical: CanonicalHierarchy, targets: np.ndarray) -> Swept:
    """Return the part of a hierarchy above some targets, given by their numbers."""
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
    """Allocate the memory of one thread for sweeps over ``swept``."""
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
    """Find the entries that lead to what a search upward has reached, and the sums along them.

    The positions reached are the first ``count`` of ``arrays.reached``. ``parent``, int32 of shape
    (n,), receives the entry upward that leads to each, -1 for the source. If several tie, it is the
    one whose path comes first. ``arrays.total`` receives the sum along each path.
    """
    up = paths.up
    tentative = arrays.tentative
    reached = arrays.reached
    total = arrays.total
    for i in range(count):
        parent[reached[i]] = -1

    for i in range(count):  # each after all from which an entry leads to it
        p = reached[i]
        total[p] = 0
        if p != source:
            total[p] = total[paths.up_tail[parent[p]]] + up_sums[parent[p]]
        for e in range(up.offsets[p], up.offsets[p + 1]):
            q = up.heads[e]
            if tentative[p] + up.weights[e] != tentative[q]:
                continue
            if parent[q] >= 0:
                arrays.stacks[0, 0] = 2 * e
                arrays.stacks[1, 0] = 2 * np.int64(parent[q])
                stacks = arrays.stacks
                if not is_before(stacks[0], 1, stacks[1], 1, parent, source, paths):
                    continue
            parent[q] = e


@njit(cache=True, nogil=True)
def _settle_ties(place, ties, sources, paths, added, swept, arrays):
    """Where an entry from above ties with the path upward to a position, take the sums of the one
    that comes first.

    ``ties`` has a bit per lane, set if an entry from above is as short as what ``arrays.held`` has
    of the search. ``added`` are the sums of the entries downward.
    """
    lines = arrays.lines
    stacks = arrays.stacks
    p = swept.positions[place]
    for lane in range(sources.size):
        distance = lines[place, lane]
        is_tied = (ties >> np.uint64(lane)) & np.uint64(1)
        if not is_tied or arrays.held[lane] != distance:
            continue
        for e in range(swept.offsets[place], swept.offsets[place + 1]):
            if lines[swept.heads[e], lane] + swept.weights[e] != distance:
                continue
            stacks[0, 0] = 2 * swept.entries[e] + 1
            stacks[1, 0] = 2 * np.int64(arrays.parent[lane, p])
            if is_before(stacks[0], 1, stacks[1], 1, arrays.parent[lane], sources[lane], paths):
                arrays.sums[place, lane] = arrays.sums[swept.heads[e], lane] + added[e]
            break  # entries are in the order of their paths: those that follow come later


@njit(cache=True, nogil=True)
def _sweep_line(sources, paths, added, swept, arrays, unreached, doublings):
    """Write the distances from several positions, and the sums along the paths, to the lines."""
    lines = arrays.lines
    sums = arrays.sums
    is_set = arrays.is_set
    tentative = arrays.tentative
    reached = arrays.reached

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

    both = LinesWithSums(lines, sums, arrays.held)
    edges = EdgesWithSums(swept.offsets, swept.heads, swept.weights, added.down)
    for place in range(is_set.size):
        ties = lower_line_with_sums(both, place, is_set[place], edges, unreached, doublings)
        if ties and is_set[place]:
            _settle_ties(place, ties, sources, paths, added.down, swept, arrays)
        is_set[place] = 0


@njit(cache=True, nogil=True)
def _write_targets(lines, sums, offsets, targets, distance, total):
    """Write the distance and the sum that lines hold at each target: of the source in lane i at
    ``targets[offsets[i] : offsets[i + 1]]``, which are places.
    """
    for lane in range(offsets.size - 1):
        for i in range(offsets[lane], offsets[lane + 1]):
            distance[i] = lines[targets[i], lane]
            total[i] = sums[targets[i], lane]
