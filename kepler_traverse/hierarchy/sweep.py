"""Distances from many sources over a hierarchy: short searches upward, and one sweep downward for
several sources.

Delling, Goldberg, Nowatzyk, Werneck 2011 (PHAST). Positions are in topological order, the top of
the hierarchy first: position 0 has no edge to a position above it. A source is searched upward
only, which reaches some hundred vertices of a road network. Then each position, in order, takes the
minimum over its edges from above. Edges are read once for ``LANES`` sources: the distances of a
position from all of them are a line, one cache line of memory, with a lane (an element) per source.

A sweep for targets visits only the positions that lie above a target (RPHAST).

Sums are of 32-bit integers where no sum can reach ``UNREACHED[int32]``, and else of 64-bit ones.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..cpu.atomics import atomic_add
from ..cpu.compiled import njit
from ..cpu.path_walk import Above, distances_at
from ..cpu.simd_sums import clear_line, lower_line, prefetch_line, turn_square

# By the type of distances: integers of a 64-byte cache line.
LANES = {np.dtype(np.int32): 16, np.dtype(np.int64): 8}
# A tuple whose length is the binary logarithm of the lanes. Compiled code of ``simd_sums`` learns
# the number of lanes from its type.
DOUBLINGS = {kind: (0,) * (lanes.bit_length() - 1) for kind, lanes in LANES.items()}
# The distance that stands for no path. Twice it fits the type, so that sums need no check.
UNREACHED: dict[np.dtype, Any] = {
    np.dtype(np.int32): np.int32(2**30),
    np.dtype(np.int64): np.int64(2**62),
}
_PREFETCH_DISTANCE = 48  # a line is prefetched this many columns before it is transposed
# Columns of a block. Each source writes its row of a block while the lines of the block are in the
# cache.
_BLOCK = 64
_NONE = -1
# With this many targets of a source or more, the distances of positions above them are looked up
# once for all targets. With fewer, there is a search upward from each target.
_FEW = 4


class SweepEdges(NamedTuple):
    """The edges that searches from several sources follow. ``upward``, ``downward`` and ``swept``
    have arrays offsets, heads and weights, as ``arrays.Edges`` has.
    """

    # upward, downward: the edges from each position to positions above it, and to each position
    # from positions above it
    upward: Any
    downward: Any
    swept: Any  # the edges of the sweep: to each place from places above it
    # int32 array of shape (n,): the place of each position in the sweep, -1 if it takes no part.
    # Empty if each position is its own place.
    places: np.ndarray


class SweepArrays(NamedTuple):
    """The memory of one thread for a sweep. n is the number of vertices."""

    # integers of shape (n_places, lanes), output: the distance of each place from the source of
    # each lane
    lines: np.ndarray
    # uint8 array of shape (n_places,): 1 for a line that holds distances of a search upward; all 0
    # before and after
    is_set: np.ndarray
    # integers of shape (n,), by position: distances of a search upward; all unreached before and
    # after
    tentative: np.ndarray
    # heap, reached: int32 arrays of shape (n,): scratch of a search upward
    heap: np.ndarray
    reached: np.ndarray


class LookupArrays(NamedTuple):
    """The memory of one thread for looking up distances. n is the number of vertices."""

    # the edges to each position from above, the distances that a search upward from the source
    # found, and scratch
    above: Above
    # integers of shape (n,), by position: distances of a search upward from a target; all unreached
    # before and after
    other: np.ndarray
    # integers of shape (n,), by position: distances from the source that are known; all -1 before
    # and after
    distance: np.ndarray
    reached: np.ndarray  # int32 array of shape (n,): scratch, positions that a search has reached


@njit(cache=True, nogil=True)
def depth_first(offsets, heads, order, position):
    """Number vertices by positions such that each comes after all its neighbors above, and soon
    after one of them.

    It is a depth-first search along edges upward, in which a vertex gets its position when all
    above it have one. ``offsets`` (n + 1,) int64 and ``heads`` int32 are the neighbors above each
    vertex. Two int32 arrays of shape (n,) are written: ``order``, the vertex at each position, and
    ``position``, the position of each vertex, which is -1 on entry.
    """
    n = order.size
    # A stack in place of recursion: the vertices on the way, and the next edge of each to look at.
    stack = np.empty(n, np.int32)
    next_edge = np.empty(n, np.int64)
    n_placed = 0
    for root in range(n):
        if position[root] >= 0:
            continue
        depth = 0
        stack[0] = root
        next_edge[0] = offsets[root]
        while depth >= 0:
            v = stack[depth]
            i = next_edge[depth]
            while i < offsets[v + 1] and position[heads[i]] >= 0:
                i += 1
            # If all above v have a position, v gets the next one. Else go up to the first neighbor
            # that has none.
            if i == offsets[v + 1]:
                position[v] = n_placed
                order[n_placed] = v
                n_placed += 1
                depth -= 1
            else:
                next_edge[depth] = i + 1
                depth += 1
                stack[depth] = heads[i]
                next_edge[depth] = offsets[heads[i]]


@njit(cache=True, nogil=True)
def longest_upward(offsets, heads, weights, most):
    """Return the largest sum of weights on any path upward, or ``most`` if the sum is larger.

    ``offsets``, ``heads`` and ``weights`` are the edges from each position to positions above it,
    which have smaller numbers.
    """
    n = offsets.size - 1
    longest = np.zeros(n, np.int64)  # the largest sum on a path upward from each position
    largest = np.int64(0)
    for p in range(n):
        for e in range(offsets[p], offsets[p + 1]):
            # The sum by way of this edge, cut at ``most``, so that it cannot overflow.
            longest[p] = max(longest[p], min(longest[heads[e]] + weights[e], most))
        largest = max(largest, longest[p])
    return largest


@njit(cache=True, nogil=True)
def search_upward(source, upward, downward, tentative, heap, reached, unreached):
    """Search upward from a position. Return the number of positions that are reached.

    If a position has a shorter path by way of one above it, no shortest path leads upward through
    it. It is stalled: its edges are not followed (Geisberger, Sanders, Schultes, Delling 2008). On
    road networks that halves the number of positions.

    Parameters
    ----------
    source : int
        The position where the search begins.
    upward, downward : tuple of offsets, heads, weights
        Edges from each position to positions above it, and to each position from positions above
        it.
    tentative : integer array of shape (n,)
        All unreached before. Afterwards lengths of paths, the shortest ones where a shortest path
        leads upward only. The caller resets what was reached.
    heap, reached : int32 arrays of shape (n,)
        Scratch; and output, the positions that were reached, the lowest first.
    unreached : int
        The number that stands for no path.
    """
    # ``heap`` is a binary heap of positions, the largest number first.
    offsets = upward.offsets
    heads = upward.heads
    weights = upward.weights
    offsets_down = downward.offsets
    heads_down = downward.heads
    weights_down = downward.weights
    size = 1
    n_reached = 0
    heap[0] = source
    tentative[source] = 0
    while size > 0:
        # Take the lowest position that is left, which has the largest number: all edges to it come
        # from lower ones, so that its distance is final.
        p = heap[0]
        size -= 1
        last = heap[size]  # the last entry of the heap, which sinks from the root to its place
        i = 0
        while True:
            child = 2 * i + 1
            if child >= size:
                break
            if child + 1 < size and heap[child + 1] > heap[child]:
                child += 1
            if heap[child] <= last:
                break
            heap[i] = heap[child]
            i = child
        heap[i] = last
        reached[n_reached] = p
        n_reached += 1

        # Stall the position if an edge from above makes it nearer.
        distance = tentative[p]
        is_stalled = False
        for e in range(offsets_down[p], offsets_down[p + 1]):
            if tentative[heads_down[e]] + weights_down[e] < distance:
                is_stalled = True
                break
        if is_stalled:
            continue

        for e in range(offsets[p], offsets[p + 1]):
            q = heads[e]
            candidate = distance + weights[e]
            if candidate < tentative[q]:
                if tentative[q] == unreached:  # not in the heap yet
                    i = size
                    while i > 0 and heap[(i - 1) >> 1] < q:
                        heap[i] = heap[(i - 1) >> 1]
                        i = (i - 1) >> 1
                    heap[i] = q
                    size += 1
                tentative[q] = candidate
    return n_reached


@njit(cache=True, nogil=True)
def search(sources, edges, arrays, unreached, doublings):
    """Write the distances from several positions to ``arrays.lines``, a lane per source.

    ``sources``, int64 of shape (k,), are positions, at most as many as there are lanes. ``edges``
    is a ``SweepEdges``, ``arrays`` a ``SweepArrays``. ``unreached`` and ``doublings`` are the
    entries of ``UNREACHED`` and ``DOUBLINGS`` for the type of the lines.
    """
    upward = edges.upward
    downward = edges.downward
    places = edges.places
    lines = arrays.lines
    is_set = arrays.is_set
    tentative = arrays.tentative
    heap = arrays.heap
    reached = arrays.reached

    # Write the distances of the search upward from each source to its lane. A line that is written
    # for the first time is cleared before, and ``tentative`` afterwards for the next search.
    for lane in range(sources.size):
        n_reached = search_upward(
            sources[lane], upward, downward, tentative, heap, reached, unreached
        )
        for i in range(n_reached):
            p = reached[i]
            if places.size == 0:
                place = np.int64(p)
            else:
                place = np.int64(places[p])
            if place >= 0:
                if not is_set[place]:
                    is_set[place] = 1
                    clear_line(lines, place, unreached, doublings)
                lines[place, lane] = tentative[p]
            tentative[p] = unreached

    # From the top to the bottom, each line is lowered by those above it. A line that is not set
    # counts as unreached, whatever it holds.
    swept = edges.swept
    for place in range(is_set.size):
        lower_line(lines, place, is_set[place], swept, unreached, doublings)
        is_set[place] = 0


@njit(cache=True, nogil=True)
def look_up(next_item, sources, lists, sums, both_ways, arrays, unreached):
    """Write the distances at the targets of each source, without a sweep.

    Parameters
    ----------
    next_item : int64 array of shape (1,)
        The counter from which threads take positions in ``sources``.
    sources : int64 array of shape (k,)
        Vertex numbers.
    lists : tuple of offsets, vertices
        The targets of source i are the vertices from ``offsets[i]`` up to ``offsets[i + 1]``.
    sums : integer array of shape (n_targets,), output
        Distances in units of the hierarchy; ``unreached`` where there is no path.
    both_ways : tuple of upward, downward
        Edges from each position to positions above it, and to each position from positions above
        it.
    arrays : LookupArrays
        The memory of this thread.
    unreached : int
        The number that stands for no path.
    """
    offsets, targets = lists
    upward, downward = both_ways
    above = arrays.above
    tentative_of_target = arrays.other
    distance = arrays.distance
    reached = arrays.reached
    tentative = above.tentative
    heap = above.stack
    known = above.known
    while True:
        item = atomic_add(next_item, 0, 1)
        if item >= sources.size:
            return

        begin = offsets[item]
        end = offsets[item + 1]
        p = np.int64(above.position[sources[item]])
        n_reached = search_upward(p, upward, downward, tentative, heap, reached, unreached)

        # Many targets share the distances of the positions above them. From each of a few targets,
        # a search upward over reversed edges meets the search upward from the source.
        # ``distances_at`` keeps the positions whose distances it has found in ``known``.
        if end - begin >= _FEW:
            distances_at(targets[begin:end], distance, above, sums[begin:end])
            for i in range(above.n_known[0]):
                distance[known[i]] = -1
            above.n_known[0] = 0
        else:
            for j in range(begin, end):
                p = np.int64(above.position[targets[j]])
                n_known = search_upward(
                    p, downward, upward, tentative_of_target, heap, known, unreached
                )
                # The distance is the smallest sum over the positions that both searches reach.
                smallest = np.int64(unreached)
                for i in range(n_known):
                    smallest = min(
                        smallest, np.int64(tentative[known[i]]) + tentative_of_target[known[i]]
                    )
                    tentative_of_target[known[i]] = unreached
                sums[j] = smallest

        # Clear what was reached, so that the next source finds all unreached.
        for i in range(n_reached):
            tentative[reached[i]] = unreached


@njit(cache=True, nogil=True)
def write_rows(lines, places, rows, unreached, unit, doublings):
    """Write the distances of lines as one row of floats per source, in the order of ``places``.

    Parameters
    ----------
    lines : integer array of shape (n_places, lanes)
        Distances, with a lane per source.
    places : int32 array of shape (columns,)
        Which line is written to each column.
    rows : float array of shape (k, columns), output
        Integers of lines times ``unit``; infinite for ``unreached`` or more.
    unreached : int
    unit : float
    doublings : tuple
        The entry of ``DOUBLINGS`` for the type of the lines.
    """
    lanes = lines.shape[1]
    columns = places.size

    # Two ways. If each lane has a source, transpose squares of as many columns as lanes, which is
    # faster than one number at a time; ``turn_square`` also multiplies by the unit, and writes
    # infinity. ``done`` is the number of columns that are written so.
    done = 0
    if rows.shape[0] == lanes:
        done = columns - columns % lanes
        for column in range(0, done, lanes):
            ahead = column + _PREFETCH_DISTANCE
            for i in range(ahead, min(ahead + lanes, columns)):
                prefetch_line(lines, places[i], doublings)
            end = column + lanes
            part = rows[:, column:end]
            turn_square(lines, places[column:end], unreached, unit, part, doublings)

    # The columns that are left, or all if a lane has no source, one number at a time.
    for column in range(done, columns):
        for j in range(rows.shape[0]):
            total = lines[places[column], j]
            rows[j, column] = np.inf if total >= unreached else total * unit


@njit(cache=True, nogil=True)
def positions_above(targets, offsets, heads):
    """Return the positions from which a target can be reached downward, targets included, int32 in
    ascending order.

    ``targets`` are positions. ``offsets`` and ``heads`` are the edges downward, in the row of their
    lower end: the positions above each position from which an edge leads to it.
    """
    n = offsets.size - 1
    is_marked = np.zeros(n, np.uint8)
    for target in targets:
        is_marked[target] = 1
    for p in range(n - 1, -1, -1):
        if is_marked[p]:
            for e in range(offsets[p], offsets[p + 1]):
                is_marked[heads[e]] = 1
    return np.flatnonzero(is_marked).astype(np.int32)


@njit(cache=True, nogil=True)
def write_hops(lines, places, rows, bound):
    """Write lines of hops as one row per source, in the order of ``places``, and return the largest
    number of hops below ``bound``, 0 if there is none.

    ``lines`` (n_places, lanes) are hops, with a lane per source. ``places`` (columns,) says which
    line is written to each column of ``rows``, signed integers of shape (k, columns). Hops of
    ``bound`` or more become -1. If the type of the rows does not hold the largest number, not all
    rows are written; the caller writes them again in a wider type.
    """
    k, columns = rows.shape
    dtype_max = np.iinfo(rows.dtype).max
    deepest = 0
    for begin in range(0, columns, _BLOCK):
        end = min(begin + _BLOCK, columns)
        for j in range(k):
            for column in range(begin, end):
                hops = lines[places[column], j]
                is_near = hops < bound  # else there is no path, or it is beyond the limit
                deepest = max(deepest, hops if is_near else 0)
                rows[j, column] = hops if is_near else -1
        if deepest > dtype_max:  # writing more rows in this type would be in vain
            return _find_deepest(lines, k, bound)
    return deepest


@njit(cache=True, nogil=True)
def _find_deepest(lines, k, bound):
    """Return the largest number of hops below ``bound`` in the first ``k`` lanes of ``lines``; 0 if
    there is none.
    """
    deepest = 0
    for place in range(lines.shape[0]):
        for j in range(k):
            if lines[place, j] < bound:
                deepest = max(deepest, lines[place, j])
    return deepest


@njit(cache=True, nogil=True)
def count_hops(lines, k, bound, counts):
    """Count the places at each number of hops below ``bound``, for the first ``k`` lanes of
    ``lines``. Return the largest number of hops below ``bound``, 0 if there is none.

    ``counts`` is an integer array of shape (k, levels): element (j, h) is increased by the number
    of places that are h hops from the source of lane j.
    """
    deepest = 0
    for place in range(lines.shape[0]):
        for j in range(k):
            hops = lines[place, j]
            if hops < bound:
                counts[j, hops] += 1
                deepest = max(deepest, hops)
    return deepest


class SweepState:
    """The memory of one thread for sweeps: the arrays of ``SweepArrays``.

    The system gives memory only to the parts of an array that are written. So ``_tentative``, which
    must be filled, is None until a thread calls ``arrays``. ``n_places`` is the number of positions
    that take part in the sweep, and ``dtype`` the type of distances.
    """

    def __init__(self, n_vertices: int, n_places: int, dtype: np.dtype):
        """Allocate all arrays but ``_tentative``."""
        self.lines = aligned_lines(n_places, dtype)
        self.is_set = np.zeros(n_places, np.uint8)
        self.heap, self.reached = np.empty((2, n_vertices), np.int32)
        self._n_vertices = n_vertices
        self._dtype = dtype
        self._tentative: np.ndarray | None = None

    def arrays(self) -> SweepArrays:
        """Return the arrays. The first call, by the thread that uses them, allocates and fills
        ``tentative``, which must be all unreached before a search.
        """
        if self._tentative is None:
            self._tentative = np.full(self._n_vertices, UNREACHED[self._dtype], self._dtype)
        return SweepArrays(self.lines, self.is_set, self._tentative, self.heap, self.reached)


def aligned_lines(n_places: int, dtype: np.dtype) -> np.ndarray:
    """Return an array of shape (n_places, lanes), not set, whose rows each fill one cache line of
    64 bytes.
    """
    # NumPy's memory may begin within a cache line. So there is one row more, and the array begins
    # at the first element on a boundary.
    lanes = LANES[dtype]
    memory = np.empty((n_places + 1) * lanes, dtype)
    first_aligned = -(memory.ctypes.data // dtype.itemsize) % lanes
    return memory[first_aligned : first_aligned + n_places * lanes].reshape(n_places, lanes)
