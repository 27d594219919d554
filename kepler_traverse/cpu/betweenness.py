"""What each vertex or edge carries of the shortest paths from one source, by its distances alone
(Brandes 2001).

An edge is on a shortest path if its length makes up the distance between its ends. So paths are
counted forward and dependencies added backward whatever the search was, and all paths of equal
length count. Each sum has one order, that of adjacency lists in chunks of ``CHUNK``, as on a GPU;
sums over sources are exact (``exact_sums``). So the bits do not depend on threads, groups, workers
and devices.

By hops, the edges between two levels are read from the level that has fewer. A level pushes: each
of its vertices adds to its neighbors; or it pulls: each sums over its neighbors, in a vector that
is 0 outside the level they are in, so that levels need not be compared. Pushed along lists that
ascend, terms arrive in the order in which they would be pulled; a list of ``CHUNK`` or more is
pulled, and so are counts of paths that float64 may round.

The load of a cell, a vertex or an edge, is its sum of the dependencies of one source.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .atomics import atomic_add
from .compiled import njit
from .exact_sums import add

# Edges of an adjacency list whose values are summed before the sum is added to that of the edges
# before. ``kinds.betweenness_gpu`` has the same number, so that both give equal bits.
CHUNK = 256
EXPONENT = -64  # sums over sources are in units of 2**EXPONENT
MAX_PATHS = 2.0**1000  # from so many paths on, counts need an exponent of their own
_EXACT = 2.0**53  # sums of counts below this are exact, in any order
# Results of a search, as ``Task.status``: its loads were added; or nothing was added, since there
# are MAX_PATHS paths or more, since no edge explains a distance, or since rounding may absorb a
# weight: a sum of a distance and the weight may be rounded to the distance.
DONE = 0
OVERFLOW = 1
NOT_EXPLAINED = 2
ABSORBS = 3
_MANTISSA = 53  # bits of the mantissa of a float64
_MANTISSA_END = 2.0**_MANTISSA
_WORD = 64  # bits of a word


class Scratch(NamedTuple):
    """Memory of one thread for one search after another.

    Arrays have shape (n_vertices,) and are indexed by vertex numbers, but where it says otherwise.
    "By hops" means: in searches for hops, which are visited level by level.
    """

    # order, stack: int32, lists of vertices: those reached, none before its predecessors; and those
    # whose predecessors are all in the order, which are to be visited
    order: np.ndarray
    stack: np.ndarray
    # int32, 0 before and after: how many predecessors of each vertex have no place in the order yet
    waits: np.ndarray
    is_on_path: np.ndarray  # uint8 of shape (n_edges,): 1 if an edge is on a shortest path
    paths: np.ndarray  # float64: how many shortest paths lead from the source to each vertex
    # float64, 0 before and after by hops: (1 + dependency) / paths of each vertex, where the
    # dependency is the sum over all targets of the share of their paths that pass the vertex; 1
    # stands for the paths that end at the vertex, and is 0 if it is no target
    values: np.ndarray
    # float64, 0 before and after: by hops, what each vertex of one level hands on or gets, and 0
    # for vertices of other levels
    front: np.ndarray
    # starts, degrees: int64, of shape (n + 3,) and (2, n + 3), 0 before and after, by level: where
    # each level begins in ``order``; and the number of edges out of each level in row 0, and into
    # each in row 1
    starts: np.ndarray
    degrees: np.ndarray
    # of the type of the distances: the distances from the source. With sparse rows (``Task``) all
    # unreached before and after a search; with an array of all distances it holds anything
    distance: np.ndarray


class Edges(NamedTuple):
    """The edges out of and into each vertex, in compressed sparse rows."""

    # offsets, targets: of the graph: the heads of the edges out of each vertex, ascending
    offsets: np.ndarray
    targets: np.ndarray
    # in_offsets, in_targets: of the reversed graph: the tails of the edges into each vertex,
    # ascending. Where loads of edges are summed, an edge is its position there.
    in_offsets: np.ndarray
    in_targets: np.ndarray


class WeightedEdges(NamedTuple):
    """Edges with weights above 0, of the type of the distances."""

    edges: Edges  # the same edges, without their weights
    ahead: np.ndarray  # the weights of the edges out of each vertex, in the order of ``targets``
    back: np.ndarray  # the weights of the edges into each vertex, in the order of ``in_targets``
    # three quarters of the smallest weight, as ``absorbs`` takes it; or 0 if no distance may absorb
    # a weight
    least: Any


class Task(NamedTuple):
    """The searches whose loads are added, one per source.

    Their distances are in one of two forms: an array of all distances, or sparse rows, which list
    the vertices that each source reaches and their distances.
    """

    sources: np.ndarray  # int64 of shape (n_items,): vertex numbers
    # bounds, vertices: of sparse rows: int64 of shape (n_items + 1,), where the row of each source
    # begins, and the vertices of all rows; both None if there is an array of all distances
    bounds: np.ndarray | None
    vertices: np.ndarray | None
    # of shape (n_items, n_vertices); or of sparse rows the distance of each element of ``vertices``
    distance: np.ndarray
    # limit, unreached: of the type of the distances in ``Scratch``: the largest distance at which
    # vertices count, and what stands for no distance
    limit: Any
    unreached: Any
    # int64 of shape (n_items,), written: ``DONE``; or ``OVERFLOW``, ``NOT_EXPLAINED`` or
    # ``ABSORBS``, and then nothing was added for this source
    status: np.ndarray


class Counted(NamedTuple):
    """Which paths count, and where."""

    # uint8 of shape (n_vertices,), or empty: 1 at targets, the vertices at which paths that count
    # end; empty if all vertices are targets
    is_target: np.ndarray
    # int64: the vertex numbers of the targets, empty if all vertices are. Vertices beyond the
    # farthest of them are on no path that counts, and a search may not have settled them
    farthest: np.ndarray
    of_edges: bool  # whether loads are those of edges, by positions in the reversed graph
    endpoints: bool  # whether a path also counts at its two ends, with loads of vertices
    # by hops: whether each predecessor of a vertex carries the same share of its load (Newman's
    # load); else each carries the share of its paths
    is_even: bool = False


class Sums(NamedTuple):
    """The loads of all cells, over all sources: 128-bit integers in units of 2**``EXPONENT``.

    A cell is a vertex, or an edge by its position in the reversed graph.
    """

    low: np.ndarray  # uint64 with one element per cell: the lower words
    high: np.ndarray  # int64 of the same shape: the upper words, which are the whole numbers


class Search(NamedTuple):
    """One search, whose distances are those of ``Scratch``."""

    source: int  # a vertex number
    vertices: np.ndarray  # integers: the vertices that have a distance; empty if all may have one
    limit: Any  # the largest distance at which vertices count


class Exact(NamedTuple):
    """Distances without rounding, for sources from which rounding may absorb a weight; memory of
    one thread.
    """

    # uint64 of shape (n, n_words): the distance of each vertex, an integer of many words in units
    # of 2**unit, the lowest word first
    words: np.ndarray
    unit: int
    # int32 of shape (n,): a binary heap of the vertices that are reached and not settled, in which
    # the nearest one is first
    heap: np.ndarray
    # int32 of shape (n,): the place of each vertex in the heap; -1 if it is not reached, -2 if it
    # is settled
    place: np.ndarray
    # uint64 of shape (n_words,): the result of ``_add_exactly``, a candidate distance
    sum: np.ndarray


def new_exact(n: int, weights: np.ndarray) -> Exact:
    """Return the memory of one thread for exact sums of weights above 0 along paths of up to ``n``
    vertices.

    The unit is the last bit of the smallest of ``weights``, and words hold the sum of ``n`` of the
    largest.
    """
    # A weight is a fraction below 1 times 2**exponent, and the fraction has ``_MANTISSA`` bits.
    exponents = np.frexp(weights)[1]
    unit = int(exponents.min()) - _MANTISSA
    n_words = (int(exponents.max()) - unit + n.bit_length()) // _WORD + 1
    heap, place = np.empty((2, n), np.int32)
    return Exact(np.empty((n, n_words), np.uint64), unit, heap, place, np.empty(n_words, np.uint64))


@njit(cache=True, nogil=True)
def absorbs(distance, least):
    """Return whether the sum of the smallest weight and a distance of up to ``distance`` may be
    rounded to that distance.

    ``least`` is three quarters of the smallest weight. The weight itself would not do: if it is
    half a unit in the last place of the distance, only every second distance absorbs it. Three
    quarters of it are less than half a unit then, which each distance absorbs.
    """
    return distance + least == distance


def new_scratch(n: int, n_edges: int, unreached: Any) -> Scratch:
    """Return the memory of one thread for a graph of ``n`` vertices and ``n_edges`` edges, with
    distances of the type of ``unreached``. By hops, ``n_edges`` may be 0, since edges are not
    marked.
    """
    order, stack = np.empty((2, n), np.int32)
    paths, values, front = np.zeros((3, n))
    starts = np.zeros(n + 3, np.int64)
    degrees = np.zeros((2, n + 3), np.int64)
    distance = np.full(n, unreached, unreached.dtype)
    return Scratch(
        order,
        stack,
        np.zeros(n, np.int32),
        np.zeros(n_edges, np.uint8),
        paths,
        values,
        front,
        starts,
        degrees,
        distance,
    )


@njit(cache=True, nogil=True, inline="always")
def _add_float(low, high, i, x):
    """Add ``x``, 0 or more, to the sum of cell ``i``, in units of 2**-64, rounded toward zero.

    ``low`` and ``high`` are those of ``Sums``: the fraction goes to the lower word, and the whole
    number to the upper one.
    """
    whole = math.floor(x)
    add(low, high, i, np.uint64((x - whole) * 2.0**64), np.int64(whole))


@njit(cache=True, nogil=True)
def _sum_in_chunks(vector, targets, begin, end):
    """Return the sum of ``vector``, with one element per vertex, over the heads ``targets`` of the
    edges ``begin`` to ``end - 1``, in their order and in chunks of ``CHUNK``.
    """
    total = 0.0
    for first in range(begin, end, CHUNK):
        part = 0.0
        for e in range(first, min(first + CHUNK, end)):
            part += vector[targets[e]]
        total += part
    return total


@njit(cache=True, nogil=True)
def _vertex_at(i, vertices):
    """Return element ``i`` of ``vertices``; if that is empty, it stands for all vertices, and the
    result is ``i``.
    """
    if vertices.size:
        return np.int64(vertices[i])
    return np.int64(i)


@njit(cache=True, nogil=True)
def _weight_of_end(v, is_target):
    """Return the weight of the paths that end at ``v``: 1 if it is a target, else 0. An empty
    ``is_target`` says that all vertices are targets.
    """
    if not is_target.size or is_target[v]:
        return 1.0
    return 0.0


@njit(cache=True, nogil=True)
def _add_loads_by_levels(search, edges, counted, scratch, sums):
    """Add the loads of one search by hops to ``sums``; return ``DONE``, or ``OVERFLOW`` if there
    are too many paths, and then nothing is added.

    The arguments are ``Search``, ``Edges``, ``Counted``, ``Scratch`` and ``Sums``.
    """
    depth = _sort_by_level(search, edges, scratch)
    status = OVERFLOW
    if _count_by_levels(search.source, depth, edges, counted.is_even, scratch):
        status = DONE
        _add_by_levels(depth, edges, counted, scratch, sums)
    # Set to 0, for the next source, what the sort by level has written.
    scratch.starts[: depth + 3] = 0
    scratch.degrees[:, : depth + 1] = 0
    return status


@njit(cache=True, nogil=True)
def _sort_by_level(search, edges, scratch):
    """Write the vertices that are reached within the limit to ``scratch.order``, level by level.
    Return the last level.

    A level holds the vertices at one number of hops. ``scratch.starts`` receives where each level
    begins, and ``scratch.degrees`` the number of edges out of and into each level; both are 0
    before. ``search`` is ``Search``, and ``edges`` are ``Edges``.
    """
    hops = scratch.distance
    starts = scratch.starts
    degrees = scratch.degrees
    order = scratch.order
    offsets = edges.offsets
    in_offsets = edges.in_offsets
    vertices = search.vertices
    limit = search.limit
    n_vertices = vertices.size or hops.size

    # Count the vertices of level l at starts[l + 2], so that their sums are one place late: then
    # starts[l + 1] can move on while vertices of level l are written, and ends where l + 1 begins.
    depth = np.int64(0)
    for i in range(n_vertices):
        v = _vertex_at(i, vertices)
        level = np.int64(hops[v])
        if 0 <= level <= limit:
            starts[level + 2] += 1
            degrees[0, level] += offsets[v + 1] - offsets[v]
            degrees[1, level] += in_offsets[v + 1] - in_offsets[v]
            depth = max(depth, level)
    for level in range(depth + 2):
        starts[level + 1] += starts[level]

    # Each start moves to the end of its level, which is where the next one begins.
    for i in range(n_vertices):
        v = _vertex_at(i, vertices)
        level = np.int64(hops[v])
        if 0 <= level <= limit:
            order[starts[level + 1]] = v
            starts[level + 1] += 1
    return depth


@njit(cache=True, nogil=True)
def _count_by_levels(source, depth, edges, is_even, scratch):
    """Count the shortest paths from ``source`` to each vertex, level by level up to ``depth``, into
    ``scratch.paths``; return False if a vertex has ``MAX_PATHS`` or more.

    ``edges`` are ``Edges``, and ``scratch`` is ``Scratch`` after ``_sort_by_level``. ``front`` has
    what each vertex of the level before hands on, its number of paths, and 0 for all other
    vertices. With ``is_even`` each hands on 1, so that ``paths`` has the number of predecessors of
    a vertex, among which it shares its load evenly.
    """
    offsets = edges.offsets
    targets = edges.targets
    in_offsets = edges.in_offsets
    in_targets = edges.in_targets
    hops = scratch.distance
    order = scratch.order
    starts = scratch.starts
    degrees = scratch.degrees
    front = scratch.front
    paths = scratch.paths

    paths[source] = 1.0
    front[source] = 1.0
    max_paths = 0.0
    last = np.int64(0)
    for level in range(1, depth + 1):
        before = starts[level - 1]
        begin = starts[level]
        end = starts[level + 1]
        is_pulled = degrees[1, level] <= degrees[0, level - 1]  # fewer edges into this level
        max_paths = 0.0

        # Push from the level before, or pull. Counts that may be rounded are pulled in any case,
        # since the order of additions matters then.
        if not is_pulled:
            for i in range(begin, end):
                paths[order[i]] = 0.0
            for i in range(before, begin):
                u = order[i]
                handed = front[u]
                for e in range(offsets[u], offsets[u + 1]):
                    w = targets[e]
                    if hops[w] == level:
                        paths[w] += handed
            for i in range(begin, end):
                max_paths = max(max_paths, paths[order[i]])
        if is_pulled or max_paths >= _EXACT:
            for i in range(begin, end):
                v = order[i]
                paths[v] = _sum_in_chunks(front, in_targets, in_offsets[v], in_offsets[v + 1])
                max_paths = max(max_paths, paths[v])

        # This level takes the place of the level before in ``front``.
        for i in range(before, begin):
            front[order[i]] = 0.0
        last = level
        if max_paths >= MAX_PATHS:
            break
        for i in range(begin, end):
            front[order[i]] = 1.0 if is_even else paths[order[i]]

    # Clear the vector for the next source.
    for i in range(starts[last], starts[last + 1]):
        front[order[i]] = 0.0
    return max_paths < MAX_PATHS


@njit(cache=True, nogil=True)
def _add_by_levels(depth, edges, counted, scratch, sums):
    """Add the loads of vertices or edges to ``sums``, from the last level, ``depth``, back to the
    source.

    ``edges`` are ``Edges``, ``counted`` is ``Counted``, and ``scratch`` has the paths that
    ``_count_by_levels`` has counted. ``values`` has what each vertex of the level after hands on
    per path, and 0 for all others. ``front`` gets the sum of what each vertex of a level is handed.
    """
    offsets = edges.offsets
    targets = edges.targets
    in_offsets = edges.in_offsets
    in_targets = edges.in_targets
    hops = scratch.distance
    order = scratch.order
    starts = scratch.starts
    degrees = scratch.degrees
    front = scratch.front
    paths = scratch.paths
    values = scratch.values
    is_target = counted.is_target
    of_edges = counted.of_edges
    is_even = counted.is_even
    low = sums.low
    high = sums.high

    # what the vertices of the last level hand on
    for i in range(starts[depth], starts[depth + 1]):
        v = order[i]
        values[v] = _weight_of_end(v, is_target) / paths[v]
    for level in range(depth - 1, -1, -1):
        begin = starts[level]
        end = starts[level + 1]
        after = starts[level + 2]

        # Push to this level from the level after it, if fewer edges lead into the level after than
        # out of this level. Else this level pulls, below.
        is_pulled = degrees[0, level] <= degrees[1, level + 1]
        if not is_pulled:
            for i in range(end, after):
                w = order[i]
                handed = values[w]
                for e in range(in_offsets[w], in_offsets[w + 1]):
                    v = in_targets[e]
                    if hops[v] == level:
                        front[v] += handed

        if of_edges:
            for i in range(end, after):
                w = order[i]
                for e in range(in_offsets[w], in_offsets[w + 1]):
                    v = in_targets[e]
                    if hops[v] == level:
                        _add_float(low, high, e, paths[v] * values[w])

        # Pull, also what was pushed to vertices whose lists have more than one chunk.
        for i in range(begin, end):
            v = order[i]
            if is_pulled or offsets[v + 1] - offsets[v] >= CHUNK:
                front[v] = _sum_in_chunks(values, targets, offsets[v], offsets[v + 1])

        # The vertices of this level hand on in place of those after them.
        for i in range(end, after):
            values[order[i]] = 0.0
        for i in range(begin, end):
            v = order[i]
            load = front[v] if is_even else paths[v] * front[v]
            front[v] = 0.0
            if level > 0:
                values[v] = (_weight_of_end(v, is_target) + load) / paths[v]
                if not of_edges and load > 0.0:
                    _add_float(low, high, v, load)
    values[order[0]] = 0.0  # of the source


@njit(cache=True, nogil=True)
def _split_in_words(weight, unit):
    """Split a float64 weight into words of 64 bits, in units of 2**unit.

    A weight has 53 bits, so that it is in two words at most. Return the number of the word in which
    it begins, and its bits in that word and in the next one, two uint64.
    """
    fraction, exponent = math.frexp(weight)
    mantissa = np.uint64(fraction * _MANTISSA_END)
    shift = exponent - _MANTISSA - unit
    bits = np.uint64(shift % _WORD)
    high = np.uint64(0)
    if bits:
        high = mantissa >> (np.uint64(_WORD) - bits)
    return shift // _WORD, mantissa << bits, high


@njit(cache=True, nogil=True)
def _add_exactly(exact, u, weight):
    """Write the sum of the exact distance of vertex ``u`` and a weight to ``exact.sum``."""
    word, low, high = _split_in_words(np.float64(weight), exact.unit)
    carry = np.uint64(0)

    for i in range(exact.sum.size):
        # ``part`` is the word of the weight here, 0 but in two words at most. The carry is 1 if the
        # sum with ``part``, or that with the carry before, has overflowed.
        if i == word:
            part = low
        elif i == word + 1:
            part = high
        else:
            part = np.uint64(0)
        partial = exact.words[u, i] + part
        total = partial + carry
        carry = np.uint64(partial < part) | np.uint64(total < partial)
        exact.sum[i] = total


@njit(cache=True, nogil=True)
def _is_sum(exact, v):
    """Return whether ``exact.sum`` is the exact distance of vertex ``v``."""
    for i in range(exact.sum.size):  # noqa: SIM110
        if exact.sum[i] != exact.words[v, i]:
            return False
    return True


@njit(cache=True, nogil=True)
def _is_nearer(words, other_words):
    """Return whether the integer in ``words`` is smaller than that in ``other_words``; the last
    word is the highest.
    """
    for i in range(words.size - 1, -1, -1):
        if words[i] != other_words[i]:
            return words[i] < other_words[i]
    return False


@njit(cache=True, nogil=True)
def _move_up(exact, slot):
    """Move the vertex at place ``slot`` of the heap of ``exact``, an ``Exact``, up to where it
    belongs, after its distance has become smaller. The parent of place i is (i - 1) // 2.
    """
    words = exact.words
    heap = exact.heap
    place = exact.place
    v = heap[slot]

    while slot > 0 and _is_nearer(words[v], words[heap[(slot - 1) // 2]]):
        heap[slot] = heap[(slot - 1) // 2]
        place[heap[slot]] = slot
        slot = (slot - 1) // 2
    heap[slot] = v
    place[v] = slot


@njit(cache=True, nogil=True)
def _take_nearest(exact, size):
    """Return the nearest vertex of the heap of ``exact``, an ``Exact``, which has ``size``
    vertices, and take it out: it is settled.

    The children of place i of the heap are 2 i + 1 and 2 i + 2, and none is nearer than its parent.
    """
    words = exact.words
    heap = exact.heap
    place = exact.place
    nearest = heap[0]
    v = heap[size - 1]
    place[nearest] = -2
    size -= 1

    # The last vertex of the heap moves down from the top, past those that are nearer.
    slot = 0
    while 2 * slot + 1 < size:
        child = 2 * slot + 1
        if child + 1 < size and _is_nearer(words[heap[child + 1]], words[heap[child]]):
            child += 1
        if not _is_nearer(words[heap[child]], words[v]):
            break
        heap[slot] = heap[child]
        place[heap[slot]] = slot
        slot = child

    if size:
        heap[slot] = v
        place[v] = slot
    return nearest


@njit(cache=True, nogil=True)
def _find_exact_distances(search, edges, scratch, exact):
    """Find the exact distances of the vertices that a search has reached within its limit (Dijkstra
    1959), into ``exact.words``; ``exact`` may be None, and then nothing is done.

    ``edges`` are ``WeightedEdges``. The rounded distances in ``scratch`` are read only to tell
    which vertices are reached within the limit.
    """
    if exact is None:
        return
    words = exact.words
    heap = exact.heap
    place = exact.place
    offsets = edges.edges.offsets
    targets = edges.edges.targets
    weights = edges.ahead
    distance = scratch.distance
    limit = search.limit

    # The heap begins with the source alone, at distance 0.
    place[:] = -1
    words[search.source] = 0
    heap[0] = search.source
    place[search.source] = 0
    size = 1

    while size:
        u = _take_nearest(exact, size)
        size -= 1
        for e in range(offsets[u], offsets[u + 1]):
            v = targets[e]
            if place[v] == -2 or not 0 <= distance[v] <= limit:
                continue
            # ``exact.sum`` is the candidate distance. A vertex that is not in the heap joins it at
            # its end; one that is in the heap keeps its distance unless the candidate is smaller.
            _add_exactly(exact, u, weights[e])
            if place[v] == -1:
                heap[size] = v
                place[v] = size
                size += 1
            elif not _is_nearer(exact.sum, words[v]):
                continue
            words[v] = exact.sum
            _move_up(exact, place[v])


@njit(cache=True, nogil=True, inline="always")
def _is_tight(distance, weights, u, e, v, limit):
    """Return whether edge ``e`` from ``u`` to ``v`` is on a shortest path: its weight makes up the
    distance between its ends, of which both are within the limit.
    """
    return 0 <= distance[u] < distance[v] <= limit and distance[u] + weights[e] == distance[v]


@njit(cache=True, nogil=True)
def _is_on_path(distance, weights, u, e, v, limit, exact):
    """Return whether edge ``e`` from ``u`` to ``v`` is on a shortest path within the limit: by
    exact sums, or by the rounded distances if ``exact`` is None.

    ``weights[e]`` is the weight of the edge.
    """
    if exact is None:
        return _is_tight(distance, weights, u, e, v, limit)
    if not (0 <= distance[u] <= limit and 0 <= distance[v] <= limit):
        return False
    _add_exactly(exact, u, weights[e])
    return _is_sum(exact, v)


@njit(cache=True, nogil=True)
def _add_with_exponents(a, a_exponent, b, b_exponent):
    """Return the sum of ``a * 2**a_exponent`` and ``b * 2**b_exponent``, two numbers of 0 or more,
    as a mantissa and its exponent.

    If one number is 0, the other is returned as it is. A number that is more than 2000 binary
    places smaller adds nothing; the shift is limited, as ``ldexp`` takes no larger one.
    """
    if a == 0.0:
        return b, b_exponent
    if b == 0.0:
        return a, a_exponent
    if a_exponent < b_exponent:
        a, b = b, a
        a_exponent, b_exponent = b_exponent, a_exponent
    shift = max(b_exponent - a_exponent, -2000)
    mantissa, more = math.frexp(a + math.ldexp(b, shift))
    return mantissa, a_exponent + more


@njit(cache=True, nogil=True)
def _count_paths(v, limit, edges, exponents, exact, scratch):
    """Return the number of shortest paths to ``v`` as a mantissa and an exponent: it is mantissa *
    2**exponent. If ``exponents`` is None, the exponent is 0, and the mantissa is the number.

    The paths to its predecessors are added in chunks of ``CHUNK``, in the order of the edges into
    it. Only vertices within the distance ``limit`` count. ``edges`` are ``WeightedEdges``,
    ``exact`` is ``Exact`` or None, and ``scratch`` has the distances and the paths so far.
    """
    in_offsets = edges.edges.in_offsets
    in_targets = edges.edges.in_targets
    in_weights = edges.back
    distance = scratch.distance
    paths = scratch.paths

    # ``part`` is the sum of a chunk, and ``total`` that of all chunks so far.
    total = 0.0
    exponent = 0
    for first in range(in_offsets[v], in_offsets[v + 1], CHUNK):
        part = 0.0
        part_exponent = 0
        for e in range(first, min(first + CHUNK, in_offsets[v + 1])):
            u = in_targets[e]
            if _is_on_path(distance, in_weights, u, e, v, limit, exact):
                if exponents is None:
                    part += paths[u]
                else:
                    part, part_exponent = _add_with_exponents(
                        part, part_exponent, paths[u], exponents[u]
                    )
        if exponents is None:
            total += part
        else:
            total, exponent = _add_with_exponents(total, exponent, part, part_exponent)
    return total, exponent


@njit(cache=True, nogil=True)
def _add_loads_by_order(search, edges, counted, exponents, exact, scratch, sums):
    """Add the loads of one search by any distances to ``sums``; return ``DONE``; or return
    ``OVERFLOW`` or ``NOT_EXPLAINED``, and add nothing.

    ``search`` is ``Search``, ``edges`` are ``WeightedEdges``, ``counted`` is ``Counted``, and
    ``scratch`` is ``Scratch`` with the distances of the search. ``exact`` is None, or has the exact
    distances. ``exponents`` is None, or an int64 array: the counts of paths are then ``paths *
    2**exponents``, of which ``values`` are the reciprocals. Their mantissas are those that counts
    without an exponent would have.
    """
    # One function: as three, like those of ``_add_loads_by_levels``, it took 1.03 to 1.1 times as
    # long.
    source = search.source
    vertices = search.vertices
    limit = search.limit
    weights = edges.ahead
    in_weights = edges.back
    is_target = counted.is_target
    of_edges = counted.of_edges
    low = sums.low
    high = sums.high
    offsets = edges.edges.offsets
    targets = edges.edges.targets
    in_offsets = edges.edges.in_offsets
    in_targets = edges.edges.in_targets
    order = scratch.order
    stack = scratch.stack
    waits = scratch.waits
    is_on_path = scratch.is_on_path
    paths = scratch.paths
    values = scratch.values
    distance = scratch.distance

    # Mark the edges on shortest paths; each vertex waits for as many predecessors.
    n_reached = np.int64(0)
    n_all = vertices.size or offsets.size - 1
    for i in range(n_all):
        u = _vertex_at(i, vertices)
        if not 0 <= distance[u] <= limit:
            continue
        n_reached += 1
        paths[u] = 0.0
        for e in range(offsets[u], offsets[u + 1]):
            w = targets[e]
            is_on_path[e] = _is_on_path(distance, weights, u, e, w, limit, exact)
            waits[w] += is_on_path[e]

    # Count paths: a vertex is ready once all its predecessors have handed on their counts. With
    # exponents the source has one path as 0.5 * 2**1, a mantissa as ``frexp`` returns it.
    paths[source] = 1.0
    stack[0] = source
    if exponents is not None:
        paths[source] = 0.5
        exponents[source] = 1
    count = np.int64(0)
    size = np.int64(1)
    max_paths = 1.0
    while size:
        size -= 1
        u = stack[size]
        order[count] = u
        count += 1
        n_paths = paths[u]
        for e in range(offsets[u], offsets[u + 1]):
            if not is_on_path[e]:
                continue
            w = targets[e]
            paths[w] += n_paths
            waits[w] -= 1
            if waits[w] > 0:
                continue
            stack[size] = w
            size += 1

            # Counts that may be rounded are added again, in the order of the list.
            if exponents is None:
                if paths[w] >= _EXACT:
                    paths[w] = _count_paths(w, limit, edges, None, exact, scratch)[0]
                max_paths = max(max_paths, paths[w])
            else:
                paths[w], exponents[w] = _count_paths(w, limit, edges, exponents, exact, scratch)

    # Fewer vertices in the order than reached: no chain of edges on shortest paths leads to some of
    # them. These have kept other vertices waiting, whose counters are set back.
    if count < n_reached or max_paths >= MAX_PATHS:
        for i in range(n_all):
            waits[_vertex_at(i, vertices)] = 0
        return NOT_EXPLAINED if count < n_reached else OVERFLOW

    # Add dependencies backward, so that those of all heads of the edges from v are known at v.
    for i in range(count - 1, -1, -1):
        v = order[i]
        total = 0.0
        exponent = 0
        for first in range(offsets[v], offsets[v + 1], CHUNK):
            part = 0.0
            part_exponent = 0
            for e in range(first, min(first + CHUNK, offsets[v + 1])):
                if is_on_path[e]:
                    w = targets[e]
                    if exponents is None:
                        part += values[w]
                    else:
                        part, part_exponent = _add_with_exponents(
                            part, part_exponent, values[w], -exponents[w]
                        )
            if exponents is None:
                total += part
            else:
                total, exponent = _add_with_exponents(total, exponent, part, part_exponent)

        load = paths[v] * total
        if exponents is not None:
            load = math.ldexp(load, exponents[v] + exponent)
        values[v] = (_weight_of_end(v, is_target) + load) / paths[v]

        if of_edges:
            for e in range(in_offsets[v], in_offsets[v + 1]):
                u = in_targets[e]
                if _is_on_path(distance, in_weights, u, e, v, limit, exact):
                    load = paths[u] * values[v]
                    if exponents is not None:
                        load = math.ldexp(load, exponents[u] - exponents[v])
                    _add_float(low, high, e, load)
        elif v != source and load > 0.0:
            _add_float(low, high, v, load)
    return DONE


@njit(cache=True, nogil=True)
def _count_ends(search, is_target, distance, high):
    """Count each pair of the source and a target that it reaches at both of its ends, in the loads
    of vertices.

    ``search`` is ``Search``, and ``distance`` has the distances from its source. ``high`` has the
    upper words of the sums, which are the whole numbers, as the unit of the sums is 2**-64.
    ``is_target`` is that of ``Counted``.
    """
    source = search.source
    vertices = search.vertices
    limit = search.limit
    ends = 0
    for i in range(vertices.size or distance.size):
        v = _vertex_at(i, vertices)
        if v != source and 0 <= distance[v] <= limit and (not is_target.size or is_target[v]):
            high[v] += 1
            ends += 1
    high[source] += ends


@njit(cache=True, nogil=True)
def _find_farthest_target(distance, targets, limit):
    """Return the largest distance of one of ``targets`` that is at most ``limit``, and 0 if no
    target is so near; or ``limit`` itself if ``targets`` is empty, which stands for all vertices.
    """
    if not targets.size:
        return limit
    farthest = distance.dtype.type(0)
    for t in targets:
        if farthest < distance[t] <= limit:
            farthest = distance[t]
    return farthest


@njit(cache=True, nogil=True)
def _find_farthest(search, distance):
    """Return the largest distance of a vertex of a search that is at most its limit; 0 if there is
    none but the source.
    """
    vertices = search.vertices
    limit = search.limit
    largest = distance.dtype.type(0)
    for i in range(vertices.size or distance.size):
        d = distance[_vertex_at(i, vertices)]
        if largest < d <= limit:
            largest = d
    return largest


@njit(cache=True, nogil=True)
def _load_row(i, bounds, vertices, distance, scratch):
    """Write the distances of the search number ``i`` to ``scratch.distance``; return the vertices
    that have a distance, or an empty array, which stands for all.

    ``bounds``, ``vertices`` and ``distance`` are those of ``Task``: without ``vertices`` (None) a
    row of all distances is copied; else only the places of a sparse row are written.
    """
    if vertices is None:
        scratch.distance[:] = distance[i]
        return scratch.order[:0]
    row = scratch.distance
    first = bounds[i]
    reached = vertices[first : bounds[i + 1]]
    for j in range(reached.size):
        row[reached[j]] = distance[first + j]
    return reached


@njit(cache=True, nogil=True)
def _begin_search(i, task, counted, scratch):
    """Return the search number ``i`` of a task as ``Search``, with its distances in ``scratch``.
    Its limit is the distance of the farthest target, of ``counted.farthest``, or the limit of the
    task if all vertices are targets.
    """
    reached = _load_row(i, task.bounds, task.vertices, task.distance, scratch)
    limit = _find_farthest_target(scratch.distance, counted.farthest, task.limit)
    return Search(task.sources[i], reached, limit)


@njit(cache=True, nogil=True)
def _end_search(i, search, task, counted, scratch, sums):
    """Count the ends of the paths of the search number ``i`` of a task in ``sums`` if
    ``counted.endpoints``, and set the distances of a sparse row in ``scratch`` back to unreached.
    """
    if counted.endpoints and task.status[i] == DONE:
        _count_ends(search, counted.is_target, scratch.distance, sums.high)
    row = scratch.distance
    reached = search.vertices
    for j in range(reached.size):
        row[reached[j]] = task.unreached


@njit(cache=True, nogil=True)
def add_by_hops(next_item, n_items, task, edges, counted, scratch, sums):
    """Add the loads of several sources by hops; a kernel for ``threads.run``.

    Parameters
    ----------
    next_item, n_items
        A counter from which each thread takes its next search, of so many.
    task : Task
        The sources and their hops; its ``status`` is written.
    edges : Edges
    counted : Counted
    scratch : Scratch
        The thread's own.
    sums : Sums
        The thread's own, to which is added.
    """
    while True:
        i = atomic_add(next_item, 0, 1)
        if i >= n_items:
            return
        search = _begin_search(i, task, counted, scratch)
        task.status[i] = _add_loads_by_levels(search, edges, counted, scratch, sums)
        _end_search(i, search, task, counted, scratch, sums)


@njit(cache=True, nogil=True)
def add_by_weights(next_item, n_items, task, edges, counted, scratch, sums):
    """Add the loads of several sources by weights; a kernel for ``threads.run``.

    The arguments are those of ``add_by_hops``, with distances that are sums of weights, and
    ``edges`` are ``WeightedEdges``. Nothing is added for a source from which rounding may absorb a
    weight.
    """
    while True:
        i = atomic_add(next_item, 0, 1)
        if i >= n_items:
            return
        search = _begin_search(i, task, counted, scratch)
        if edges.least > 0 and absorbs(_find_farthest(search, scratch.distance), edges.least):
            task.status[i] = ABSORBS
        else:
            task.status[i] = _add_loads_by_order(search, edges, counted, None, None, scratch, sums)
        _end_search(i, search, task, counted, scratch, sums)


@njit(cache=True, nogil=True)
def add_scaled(search, edges, counted, exponents, exact, scratch, sums):
    """Add the loads of one source for which ``add_by_hops`` or ``add_by_weights`` has added
    nothing: whose counts of paths need an exponent of their own, or whose distances are found again
    exactly.

    ``search`` is of all vertices, its distances are those of ``scratch``, and ``edges`` are
    ``WeightedEdges``. ``exponents`` is None or an int64 array with one element per vertex, 0
    before. ``exact`` is None or ``Exact``. Return ``DONE``, or ``OVERFLOW`` or ``NOT_EXPLAINED`` if
    nothing was added.
    """
    limit = _find_farthest_target(scratch.distance, counted.farthest, search.limit)
    search = Search(search.source, search.vertices, limit)
    _find_exact_distances(search, edges, scratch, exact)
    status = _add_loads_by_order(search, edges, counted, exponents, exact, scratch, sums)
    if counted.endpoints and status == DONE:
        _count_ends(search, counted.is_target, scratch.distance, sums.high)
    return status
