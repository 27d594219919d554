"""The passes over vertices and edges on the CPU.

The passes follow the edges of the reverse graph. What each edge brings to its vertex is stored side
by side for many vertices, in the order of the edges, and then compared sixteen edges at a time. So
no loop ends where the processor does not expect it, and an edge costs one access out of order. Hop
counts are 8 or 16 bits wide there, so that they stay in the cache.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._arrays import NO_PREDECESSOR, UNREACHED
from ..cpu import threads
from ..cpu.atomics import atomic_add
from ..cpu.compiled import njit
from ..cpu.edges import Edges, Neighbors
from ..cpu.simd_compare import SIXTEEN, are_equal, are_less

# vertices and edges of a chunk, so that a few of them balance the threads and one costs no time to
# start
CHUNK = 1 << 15


class Result(NamedTuple):
    """What is checked, of shape (n_vertices,) each."""

    distance: np.ndarray
    predecessor: np.ndarray


class Chunks(NamedTuple):
    """The chunks of vertices that threads take."""

    bounds: np.ndarray  # int64 array of shape (n_chunks + 1,): where each begins
    counts: np.ndarray  # int64 array of shape (n_chunks, 3), output: what was found in each

    @classmethod
    def of(cls, bounds: np.ndarray) -> Chunks:
        return cls(bounds, np.empty((bounds.size - 1, 3), np.int64))


def check(graph, result, limit) -> list[int]:
    """Check C1 to C4; C3 and C4 only where C1 and C2 hold. The reverse graph is made if it is not
    there yet.

    ``limit``, of the type of the distances, is up to where the result is complete; the largest
    value means everywhere. Return the vertices that are their own predecessor; vertices that break
    C2, the smallest of them (or the number of vertices); vertices reached; edges that break C3, the
    smallest vertex that such an edge leads to; vertices that break C4, the smallest of them;
    reached vertices no farther than their predecessor.
    """
    alone = check_vertices(result, limit, graph.has_negative_weights)
    if alone[0] != 1 or alone[1]:
        return [*alone, 0, graph.n_vertices, 0, graph.n_vertices, 0]
    edges = check_edges(graph, result.source, result.distance, result.predecessor, limit, alone[3])
    return [*alone, *edges.tolist()]


def check_vertices(result, limit, negative: bool) -> tuple[int, int, int, int]:
    """Look at each vertex alone, for C1 and C2.

    No vertex may be farther than ``limit``, a scalar of the distances' type, of which the largest
    means no limit; with ``negative`` a distance may be below zero. Return the vertices that are
    their own predecessor, those that break C2, the smallest of them (or the number of vertices),
    and those reached.
    """
    distance = result.distance
    bounds = np.append(np.arange(0, distance.size, CHUNK), distance.size)
    chunks = Chunks.of(bounds)
    first = distance.size
    is_hops = distance.dtype.kind == "i"
    look: Any = _look_at_hops if is_hops else _look_at_weighted
    checked = Result(distance, result.predecessor)
    threads.run(look, len(chunks.counts), checked, limit, negative, chunks)
    roots, bad, reached = chunks.counts.sum(axis=0).tolist()
    if bad:
        chunk = np.flatnonzero(chunks.counts[:, 1])[0]
        here = slice(bounds[chunk], bounds[chunk + 1])
        are_bad: Any = _are_bad_hops if is_hops else _are_bad_sums
        is_bad = are_bad(distance[here], result.predecessor[here], limit, negative, distance.size)
        first = int(bounds[chunk] + is_bad.argmax())
    return roots, bad, first, reached


def check_edges(graph, source: int, distance, predecessor, limit, reached: int) -> np.ndarray:
    """Check C3 and C4 in one pass over the edges of the reverse graph, which is made if it is not
    there yet.

    Distances and predecessors are in range already; integers are hops, floats are weighted
    distances. Vertices beyond ``limit`` may be unreached. Return, as an int64 array, the edges that
    break C3, the smallest vertex such an edge leads to, the vertices that break C4, the smallest of
    them, and the reached vertices no farther than their predecessor.
    """
    reverse = graph.reverse
    chunks = Chunks.of(divide_vertices(reverse.offsets))
    n_chunks = len(chunks.counts)
    neighbors = _with_padding(reverse.targets)
    if distance.dtype.kind == "i":
        keys = _as_keys(distance)
        farthest = keys.dtype.type(min(int(limit), np.iinfo(keys.dtype).max))
        edges = Neighbors(reverse.offsets, neighbors)
        threads.run(_check_hops, n_chunks, edges, Result(keys, predecessor), farthest, chunks)
    else:
        # A vertex that was not reached is in the wrong from the first distance beyond the limit
        # downwards.
        if np.isinf(limit):
            beyond = limit
        else:
            beyond = np.nextafter(limit, limit.dtype.type(np.inf))
        weighted = Edges(reverse.offsets, neighbors, reverse.weights)
        checked = Result(distance, predecessor)
        threads.run(_check_weighted, n_chunks, weighted, checked, beyond, source, chunks)
    violated, explained, level = chunks.counts.sum(axis=0).tolist()
    counts = np.array([0, graph.n_vertices, 0, graph.n_vertices, level])
    if violated or explained != reached - 1:
        weights, distance = _as_weighted(graph, distance)
        counts[:4] = _name_findings(
            graph.offsets, graph.targets, distance, weights, predecessor, source, limit
        )
    return counts


def _as_keys(distance) -> np.ndarray:
    """Hop counts as narrow as they can be; the unreached become the largest number of the type."""
    most = int(distance.max(initial=0))
    kind = next(kind for kind in (np.uint8, np.uint16, np.uint32) if most < np.iinfo(kind).max)
    return distance.astype(kind)


def _with_padding(neighbors) -> np.ndarray:
    """Sixteen neighbors at least."""
    if neighbors.size >= SIXTEEN:
        return neighbors
    return np.append(neighbors, np.zeros(SIXTEEN, neighbors.dtype))


def _as_weighted(graph, distance) -> tuple[Any, ...]:
    """Weights and distances of one float type; an edge without a weight counts 1."""
    if distance.dtype.kind == "f":
        return graph.weights, distance
    return np.broadcast_to(np.float64(1), graph.targets.shape), np.where(
        distance == UNREACHED, np.inf, distance
    )


def divide_vertices(offsets) -> np.ndarray:
    """Divide the vertices into chunks of about CHUNK vertices and edges each; a hub is a chunk of
    its own.
    """
    n = offsets.size - 1
    wanted = np.arange(1, (int(offsets[-1]) + n) // CHUNK + 1) * CHUNK
    low = np.zeros(wanted.size, np.int64)
    high = np.full(wanted.size, n)
    # a binary search for all bounds at once, which needs no array of the size of offsets
    while (low < high).any():
        middle = (low + high) // 2
        is_before = (offsets[middle] + middle < wanted) & (low < high)
        low = np.where(is_before, middle + 1, low)
        high = np.where(is_before, high, np.minimum(middle, high))
    return np.concatenate([[0], low, [n]])


# Kernels of ``threads.run``: each thread takes chunks until none is left. Loops run over slices
# from 0 on, so that Numba need not ask whether an index is negative.


def _are_bad_hops(d, p, limit, _negative, n):
    """Whether hops and predecessors break C2: numbers where Numba compiles it, else arrays."""
    out_of_range = (d < UNREACHED) | (d > limit) | (p < NO_PREDECESSOR) | (p >= n)
    return out_of_range | ((p != NO_PREDECESSOR) != (d != UNREACHED))


def _are_bad_sums(d, p, limit, negative, n):
    is_sound = (d <= limit) | (d == np.inf)  # NaN is neither
    # no sum of weights is -0.0
    is_sound &= (np.signbit(d) == 0) | (negative & (d > -np.inf) & (d < 0))
    return (
        (is_sound == 0) | (p < NO_PREDECESSOR) | (p >= n) | ((p == NO_PREDECESSOR) != (d == np.inf))
    )


_is_bad_hop_count = njit(inline="always")(_are_bad_hops)
_is_bad_sum = njit(inline="always")(_are_bad_sums)


@njit(nogil=True, cache=True)
def _look_at_hops(next_chunk, n_chunks, result, limit, negative, chunks):
    """For each chunk: roots, vertices that are out of range, vertices reached."""
    distance = result.distance
    predecessor = result.predecessor
    bounds = chunks.bounds
    counts = chunks.counts
    chunk = atomic_add(next_chunk, 0, 1)
    while chunk < n_chunks:
        first = bounds[chunk]
        last = bounds[chunk + 1]
        here = distance[first:last]
        back = predecessor[first:last]
        roots = bad = reached = 0
        for v in range(here.size):
            d = here[v]
            p = back[v]
            roots += p == first + v
            reached += d != UNREACHED
            bad += _is_bad_hop_count(d, p, limit, negative, distance.size)
        counts[chunk, 0] = roots
        counts[chunk, 1] = bad
        counts[chunk, 2] = reached
        chunk = atomic_add(next_chunk, 0, 1)


@njit(nogil=True, cache=True)
def _look_at_weighted(next_chunk, n_chunks, result, limit, negative, chunks):
    distance = result.distance
    predecessor = result.predecessor
    bounds = chunks.bounds
    counts = chunks.counts
    chunk = atomic_add(next_chunk, 0, 1)
    while chunk < n_chunks:
        first = bounds[chunk]
        last = bounds[chunk + 1]
        here = distance[first:last]
        back = predecessor[first:last]
        roots = bad = reached = 0
        for v in range(here.size):
            d = here[v]
            p = back[v]
            roots += p == first + v
            reached += d != np.inf
            bad += _is_bad_sum(d, p, limit, negative, distance.size)
        counts[chunk, 0] = roots
        counts[chunk, 1] = bad
        counts[chunk, 2] = reached
        chunk = atomic_add(next_chunk, 0, 1)


class _Expected(NamedTuple):
    """What the edges to a vertex should bring: nothing less than ``least``, and that from the
    predecessor exactly ``distance``.
    """

    least: Any
    distance: Any
    predecessor: int


@njit(inline="always")
def _compare_edges(neighbors, near, first, begin, end, expected):
    """Bits of the edges to a vertex that bring less than they may, and of those that explain the
    distance.

    ``near`` has what each edge brings, from the edge ``first`` on, after ``SIXTEEN`` places; edges
    are compared sixteen at a time, and the last sixteen may overlap those before.
    """
    less = same = np.uint64(0)
    left = end - begin
    edge = begin
    while True:
        if edge < neighbors.size - SIXTEEN:
            at = edge
        else:
            at = neighbors.size - SIXTEEN
        inside = np.uint64((1 << (left if left < SIXTEEN else SIXTEEN)) - 1) << np.uint64(edge - at)
        less |= are_less(near, at - first + SIXTEEN, expected.least) & inside
        is_exact = are_equal(near, at - first + SIXTEEN, expected.distance)
        same |= is_exact & are_equal(neighbors, at, expected.predecessor) & inside
        if left <= SIXTEEN:
            break
        left = left - SIXTEEN
        edge = edge + SIXTEEN
    return less, same


@njit(nogil=True, cache=True)
def _check_hops(next_chunk, n_chunks, edges, result, farthest, chunks):
    offsets = edges.offsets
    neighbors = edges.targets
    keys = result.distance
    predecessor = result.predecessor
    bounds = chunks.bounds
    counts = chunks.counts
    unreached = ~keys.dtype.type(0)
    chunk = atomic_add(next_chunk, 0, 1)
    while chunk < n_chunks:
        begin = bounds[chunk]
        end = bounds[chunk + 1]
        first = offsets[begin]
        sources = neighbors[first : offsets[end]]
        near = np.empty(sources.size + 2 * SIXTEEN, keys.dtype)
        for i in range(sources.size):
            near[i + SIXTEEN] = keys[np.uint64(sources[i])]
        begins = offsets[begin:end]
        ends = offsets[begin + 1 : end + 1]
        here = keys[begin:end]
        back = predecessor[begin:end]
        violated = explained = 0
        for v in range(here.size):
            key = here[v]
            p = back[v]
            # An edge must not come from more than one level before; to the unreached from none
            # within the limit.
            if key == unreached:
                bound = farthest
            else:
                bound = keys.dtype.type(key - (key > 0))
            expected = _Expected(bound, keys.dtype.type(key - 1), p)
            less, same = _compare_edges(neighbors, near, first, begins[v], ends[v], expected)
            violated += less != 0
            explained += same != 0
        counts[chunk, 0] = violated
        counts[chunk, 1] = explained
        counts[chunk, 2] = 0
        chunk = atomic_add(next_chunk, 0, 1)


@njit(nogil=True, cache=True)
def _check_weighted(next_chunk, n_chunks, edges, result, beyond, source, chunks):
    offsets = edges.offsets
    neighbors = edges.targets
    weights = edges.weights
    distance = result.distance
    predecessor = result.predecessor
    bounds = chunks.bounds
    counts = chunks.counts
    chunk = atomic_add(next_chunk, 0, 1)
    while chunk < n_chunks:
        begin = bounds[chunk]
        end = bounds[chunk + 1]
        first = offsets[begin]
        sources = neighbors[first : offsets[end]]
        steps = weights[first : offsets[end]]
        near = np.empty(sources.size + 2 * SIXTEEN, distance.dtype)
        for i in range(sources.size):
            near[i + SIXTEEN] = distance[np.uint64(sources[i])] + steps[i]
        begins = offsets[begin:end]
        ends = offsets[begin + 1 : end + 1]
        here = distance[begin:end]
        back = predecessor[begin:end]
        violated = explained = level = 0
        for v in range(here.size):
            d = here[v]
            p = back[v]
            is_reached = p != NO_PREDECESSOR
            bound = d if is_reached else beyond
            expected = _Expected(bound, d, p)
            less, same = _compare_edges(neighbors, near, first, begins[v], ends[v], expected)
            violated += less != 0
            explained += is_reached & (same != 0)
            level += (
                is_reached
                & (begin + v != source)
                & (distance[np.uint64(p if is_reached else 0)] >= d)
            )
        counts[chunk, 0] = violated
        counts[chunk, 1] = explained
        counts[chunk, 2] = level
        chunk = atomic_add(next_chunk, 0, 1)


@njit(cache=True)
def _name_findings(offsets, targets, distance, weights, predecessor, source, limit):
    """Edges that break C3, the smallest vertex that one leads to, how many vertices break C4, and
    the smallest of them.
    """
    n = distance.size
    explained = np.zeros(n, np.bool_)
    explained[source] = True
    first = n
    violated = 0
    for u in range(n):
        if distance[u] == np.inf:
            continue
        for e in range(offsets[u], offsets[u + 1]):
            v = targets[e]
            through = distance[u] + weights[e]
            if distance[v] > through and through <= limit:
                violated += 1
                first = min(first, v)
            if predecessor[v] == u and distance[v] == through:
                explained[v] = True
    missing = np.flatnonzero(~explained & (predecessor != NO_PREDECESSOR))
    return violated, first, missing.size, missing[0] if missing.size else n
