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
    """The result that is checked, in arrays of shape (n_vertices,)."""

    # hops, -1 where unreached; or keys of ``_as_keys``; or weighted distances, infinite where
    # unreached
    distance: np.ndarray
    predecessor: np.ndarray  # vertex numbers, NO_PREDECESSOR for none; that of a source is itself


class Chunks(NamedTuple):
    """The chunks of vertices that threads take, and what they count."""

    # int64 array of shape (n_chunks + 1,): the first vertex of each chunk, and at the end the
    # number of vertices
    bounds: np.ndarray
    # int64 array of shape (n_chunks, 3), output: three counts per chunk. A check of vertices counts
    # vertices that are their own predecessor, those that break C2, and those reached. A check of
    # edges counts vertices with an edge that breaks C3, vertices that an edge from their
    # predecessor explains, and vertices that are no farther than their predecessor
    counts: np.ndarray

    @classmethod
    def of(cls, bounds: np.ndarray) -> Chunks:
        """Return the chunks that begin at ``bounds``, with memory for the counts."""
        return cls(bounds, np.empty((bounds.size - 1, 3), np.int64))


def check(graph, result, limit) -> list[int]:
    """Check the rules C1 to C4 for a traversal; C3 and C4 only where C1 and C2 hold. The reverse
    graph is made if it is not there yet.

    ``result`` is a ``Traversal`` with predecessors. ``limit``, of the type of the distances, is up
    to where the result is complete; the largest value means everywhere. Return nine numbers: of
    vertices that are their own predecessor; of vertices that break C2, and the smallest of them (or
    the number of vertices); of vertices reached; of edges that break C3, and the smallest vertex
    that such an edge leads to; of vertices that break C4, and the smallest of them; of reached
    vertices no farther than their predecessor.
    """
    of_vertices = check_vertices(result, limit, graph.has_negative_weights)
    n_roots, n_bad, _, n_reached = of_vertices
    if n_roots != 1 or n_bad:  # nothing is said of edges: counts of 0, and no first vertices
        return [*of_vertices, 0, graph.n_vertices, 0, graph.n_vertices, 0]
    of_edges = check_edges(
        graph, result.source, result.distance, result.predecessor, limit, n_reached
    )
    return [*of_vertices, *of_edges.tolist()]


def check_vertices(result, limit, has_negative: bool) -> tuple[int, int, int, int]:
    """Look at each vertex alone, for C1 and C2.

    ``result`` has ``distance`` and ``predecessor`` of shape (n_vertices,). No vertex may be farther
    than ``limit``, a scalar of the distances' type, of which the largest means no limit; with
    ``has_negative`` a distance may be below zero. Return the number of vertices that are their own
    predecessor, of those that break C2, the smallest of them (or the number of vertices), and the
    number of those reached.
    """
    distance = result.distance
    bounds = np.append(np.arange(0, distance.size, CHUNK), distance.size)
    chunks = Chunks.of(bounds)
    first_bad = distance.size
    is_hops = distance.dtype.kind == "i"
    count_in_chunks: Any = _count_hops if is_hops else _count_weighted
    checked_result = Result(distance, result.predecessor)
    threads.run(count_in_chunks, len(chunks.counts), checked_result, limit, has_negative, chunks)
    n_roots, n_bad, n_reached = chunks.counts.sum(axis=0).tolist()

    # The smallest vertex that breaks C2 is in the first chunk that has any.
    if n_bad:
        chunk = np.flatnonzero(chunks.counts[:, 1])[0]
        chunk_range = slice(bounds[chunk], bounds[chunk + 1])
        are_bad: Any = _are_bad_hops if is_hops else _are_bad_sums
        is_bad = are_bad(
            distance[chunk_range],
            result.predecessor[chunk_range],
            limit,
            has_negative,
            distance.size,
        )
        first_bad = int(bounds[chunk] + is_bad.argmax())
    return n_roots, n_bad, first_bad, n_reached


def check_edges(graph, source: int, distance, predecessor, limit, n_reached: int) -> np.ndarray:
    """Check C3 and C4 in one pass over the edges of the reverse graph, which is made if it is not
    there yet.

    Distances and predecessors, of shape (n_vertices,), are in range already; integers are hops,
    floats are weighted distances. Vertices beyond ``limit`` may be unreached. ``n_reached`` is the
    number of reached vertices. Return an int64 array of five numbers: of edges that break C3, the
    smallest vertex such an edge leads to (or the number of vertices), of vertices that break C4,
    the smallest of them, and of reached vertices no farther than their predecessor.
    """
    reverse = graph.reverse
    chunks = Chunks.of(divide_vertices(reverse.offsets))
    n_chunks = len(chunks.counts)
    neighbors = _with_padding(reverse.targets)
    if distance.dtype.kind == "i":
        keys = _as_keys(distance)
        # the limit as a key: the largest key if the limit is beyond the type, as without one
        farthest = keys.dtype.type(min(int(limit), np.iinfo(keys.dtype).max))
        edges = Neighbors(reverse.offsets, neighbors)
        threads.run(_check_hops, n_chunks, edges, Result(keys, predecessor), farthest, chunks)
    else:
        # An edge that brings at most the limit to an unreached vertex breaks C3. ``beyond`` is the
        # next number, because kernels ask whether something is smaller.
        if np.isinf(limit):
            beyond = limit
        else:
            beyond = np.nextafter(limit, limit.dtype.type(np.inf))
        weighted = Edges(reverse.offsets, neighbors, reverse.weights)
        checked_result = Result(distance, predecessor)
        threads.run(_check_weighted, n_chunks, weighted, checked_result, beyond, source, chunks)

    # Chunks count vertices only. Where something is wrong, another pass counts edges and finds the
    # first vertices. The source alone needs no edge that explains it.
    n_violated, n_explained, n_level = chunks.counts.sum(axis=0).tolist()
    counts = np.array([0, graph.n_vertices, 0, graph.n_vertices, n_level])
    if n_violated or n_explained != n_reached - 1:
        weights, distance = _as_weighted(graph, distance)
        counts[:4] = _name_findings(
            graph.offsets, graph.targets, distance, weights, predecessor, source, limit
        )
    return counts


def _as_keys(distance) -> np.ndarray:
    """Return hop counts in the narrowest unsigned type, so that more of them fit into the cache;
    the unreached, -1, become the largest number of the type.
    """
    largest = int(distance.max(initial=0))
    dtype = next(
        dtype for dtype in (np.uint8, np.uint16, np.uint32) if largest < np.iinfo(dtype).max
    )
    return distance.astype(dtype)


def _with_padding(neighbors) -> np.ndarray:
    """Return the neighbors, vertex numbers of shape (n_edges,). If there are fewer than the sixteen
    that one comparison reads, zeros follow.
    """
    if neighbors.size >= SIXTEEN:
        return neighbors
    return np.append(neighbors, np.zeros(SIXTEEN, neighbors.dtype))


def _as_weighted(graph, distance) -> tuple[Any, ...]:
    """Return the weights of the edges and the distances in one float type.

    Hops become float64 distances, infinite where unreached, over edges of weight 1.
    """
    if distance.dtype.kind == "f":
        return graph.weights, distance
    ones = np.broadcast_to(np.float64(1), graph.targets.shape)
    return ones, np.where(distance == UNREACHED, np.inf, distance)


def divide_vertices(offsets) -> np.ndarray:
    """Divide the vertices into chunks of about CHUNK vertices and edges together. The chunk that
    ends with a hub, a vertex of more edges, is larger, and may be followed by empty ones.

    ``offsets`` are those of the graph, int64 of shape (n + 1,). Return the first vertex of each
    chunk, and n at the end, int64.
    """
    n = offsets.size - 1
    # Chunk i + 1 begins with the first vertex that has ``work_before[i]`` vertices and edges, or
    # more, before it.
    work_before = np.arange(1, (int(offsets[-1]) + n) // CHUNK + 1) * CHUNK
    low = np.zeros(work_before.size, np.int64)
    high = np.full(work_before.size, n)
    # A binary search for all bounds at once, which needs no array of the size of offsets.
    while (low < high).any():
        middle = (low + high) // 2
        is_before = (offsets[middle] + middle < work_before) & (low < high)
        low = np.where(is_before, middle + 1, low)
        high = np.where(is_before, high, np.minimum(middle, high))
    return np.concatenate([[0], low, [n]])


# Kernels of ``threads.run``: each thread takes chunks until none is left. Loops run over slices
# from 0 on, so that Numba need not ask whether an index is negative.


def _are_bad_hops(d, p, limit, _negative, n):
    """Return whether hops ``d`` and predecessors ``p`` break C2: they are out of range, or one of
    them says that the vertex is reached and the other that it is not.

    Both are numbers of one vertex where Numba compiles the function, and else arrays. ``limit`` is
    the largest hop count, and ``n`` the number of vertices.
    """
    out_of_range = (d < UNREACHED) | (d > limit) | (p < NO_PREDECESSOR) | (p >= n)
    return out_of_range | ((p != NO_PREDECESSOR) != (d != UNREACHED))


def _are_bad_sums(d, p, limit, has_negative, n):
    """Return whether weighted distances ``d`` and predecessors ``p`` break C2, as ``_are_bad_hops``
    does for hops. With ``has_negative``, a weight is negative, and distances may be below zero.
    """
    is_sound = (d <= limit) | (d == np.inf)  # NaN is neither
    # no sum of weights is -0.0
    is_sound &= (np.signbit(d) == 0) | (has_negative & (d > -np.inf) & (d < 0))
    return (
        (is_sound == 0) | (p < NO_PREDECESSOR) | (p >= n) | ((p == NO_PREDECESSOR) != (d == np.inf))
    )


_is_bad_hop_count = njit(inline="always")(_are_bad_hops)
_is_bad_sum = njit(inline="always")(_are_bad_sums)


@njit(nogil=True, cache=True)
def _count_hops(next_chunk, n_chunks, result, limit, has_negative, chunks):
    """Count per chunk of vertices the roots, those that break C2, and those reached, in
    ``chunks.counts``. A root is its own predecessor.

    Each of several threads calls this function. It takes chunks, of which there are ``n_chunks``,
    by the counter ``next_chunk``. ``result`` is a ``Result`` of hops, ``limit`` the largest hop
    count, and ``chunks`` are ``Chunks``.
    """
    distance = result.distance
    predecessor = result.predecessor
    bounds = chunks.bounds
    counts = chunks.counts

    chunk = atomic_add(next_chunk, 0, 1)
    while chunk < n_chunks:
        begin = bounds[chunk]
        end = bounds[chunk + 1]
        chunk_distance = distance[begin:end]
        chunk_predecessor = predecessor[begin:end]
        # ``v`` counts from the first vertex of the chunk, predecessors from that of the graph.
        n_roots = n_bad = n_reached = 0
        for v in range(chunk_distance.size):
            d = chunk_distance[v]
            p = chunk_predecessor[v]
            n_roots += p == begin + v
            n_reached += d != UNREACHED
            n_bad += _is_bad_hop_count(d, p, limit, has_negative, distance.size)
        counts[chunk, 0] = n_roots
        counts[chunk, 1] = n_bad
        counts[chunk, 2] = n_reached
        chunk = atomic_add(next_chunk, 0, 1)


@njit(nogil=True, cache=True)
def _count_weighted(next_chunk, n_chunks, result, limit, has_negative, chunks):
    """Count per chunk of vertices the roots, those that break C2, and those reached, as
    ``_count_hops`` does, for weighted distances.

    With ``has_negative``, a weight is negative, and distances may be below zero. The other
    arguments are those of ``_count_hops``.
    """
    distance = result.distance
    predecessor = result.predecessor
    bounds = chunks.bounds
    counts = chunks.counts

    chunk = atomic_add(next_chunk, 0, 1)
    while chunk < n_chunks:
        begin = bounds[chunk]
        end = bounds[chunk + 1]
        chunk_distance = distance[begin:end]
        chunk_predecessor = predecessor[begin:end]
        # ``v`` counts from the first vertex of the chunk, predecessors from that of the graph.
        n_roots = n_bad = n_reached = 0
        for v in range(chunk_distance.size):
            d = chunk_distance[v]
            p = chunk_predecessor[v]
            n_roots += p == begin + v
            n_reached += d != np.inf
            n_bad += _is_bad_sum(d, p, limit, has_negative, distance.size)
        counts[chunk, 0] = n_roots
        counts[chunk, 1] = n_bad
        counts[chunk, 2] = n_reached
        chunk = atomic_add(next_chunk, 0, 1)


class _Expected(NamedTuple):
    """What the edges to a vertex should bring. A weighted edge brings the distance of its tail plus
    its weight; one without a weight brings the key of its tail, its hop count.
    """

    least: Any  # no edge may bring less: it would break C3
    distance: Any  # the edge from the predecessor brings exactly this, by C4
    predecessor: int  # of the vertex, a vertex number


@njit(inline="always")
def _compare_edges(neighbors, values, first, begin, end, expected):
    """Compare what the edges to one vertex bring with ``expected`` (``_Expected``). Return two
    words: the first is not 0 if an edge brings less than it may, the second if the edge from the
    predecessor explains the distance.

    The edges are ``begin`` to ``end - 1``, and ``neighbors`` has the tail of each edge of the
    graph. ``values`` has what each edge brings, from the edge ``first`` on, behind ``SIXTEEN``
    unused places. Edges are compared sixteen at a time, in a window. It never reaches beyond the
    last neighbor, so it may begin with edges of other vertices, and even before ``first``;
    ``is_inside`` leaves out all that are not asked for.
    """
    less = same = np.uint64(0)
    n_left = end - begin
    edge = begin
    while True:
        # Bit i of the masks below is edge ``window + i``. Of the sixteen, those count that begin at
        # ``edge``, at most ``n_left``.
        if edge < neighbors.size - SIXTEEN:
            window = edge
        else:
            window = neighbors.size - SIXTEEN
        is_inside = np.uint64((1 << (n_left if n_left < SIXTEEN else SIXTEEN)) - 1) << np.uint64(
            edge - window
        )
        less |= are_less(values, window - first + SIXTEEN, expected.least) & is_inside
        is_exact = are_equal(values, window - first + SIXTEEN, expected.distance)
        same |= is_exact & are_equal(neighbors, window, expected.predecessor) & is_inside
        if n_left <= SIXTEEN:
            break
        n_left = n_left - SIXTEEN
        edge = edge + SIXTEEN
    return less, same


@njit(nogil=True, cache=True)
def _check_hops(next_chunk, n_chunks, edges, result, farthest, chunks):
    """Count per chunk the vertices with edges that break C3, and those that an edge from their
    predecessor explains, in ``chunks.counts``.

    Each of several threads calls this function. It takes chunks, of which there are ``n_chunks``,
    by the counter ``next_chunk``. ``edges`` are those of the reversed graph; ``result`` has keys of
    ``_as_keys``, and ``farthest`` is the limit as a key.
    """
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
        # What each edge of the chunk brings, in the order of the edges. ``sources`` are their
        # tails.
        sources = neighbors[first : offsets[end]]
        # Windows may begin before the first edge of the chunk, and end behind the last one.
        values = np.empty(sources.size + 2 * SIXTEEN, keys.dtype)
        for i in range(sources.size):
            values[i + SIXTEEN] = keys[np.uint64(sources[i])]

        begins = offsets[begin:end]
        ends = offsets[begin + 1 : end + 1]
        chunk_keys = keys[begin:end]
        chunk_predecessor = predecessor[begin:end]
        n_violated = n_explained = 0
        for v in range(chunk_keys.size):
            key = chunk_keys[v]
            p = chunk_predecessor[v]
            # An edge to a reached vertex must not come from more than one level before it. One to
            # an unreached vertex must not come from a level before the limit.
            if key == unreached:
                bound = farthest
            else:
                bound = keys.dtype.type(key - (key > 0))  # not below 0, as keys are unsigned
            expected = _Expected(bound, keys.dtype.type(key - 1), p)
            less, same = _compare_edges(neighbors, values, first, begins[v], ends[v], expected)
            n_violated += less != 0
            n_explained += same != 0
        counts[chunk, 0] = n_violated
        counts[chunk, 1] = n_explained
        counts[chunk, 2] = 0
        chunk = atomic_add(next_chunk, 0, 1)


@njit(nogil=True, cache=True)
def _check_weighted(next_chunk, n_chunks, edges, result, beyond, source, chunks):
    """Count per chunk the vertices with edges that break C3, those that an edge from their
    predecessor explains, and those that are no farther than their predecessor, in
    ``chunks.counts``.

    Each of several threads calls this function. It takes chunks, of which there are ``n_chunks``,
    by the counter ``next_chunk``. ``edges`` are those of the reversed graph, and ``result`` has
    weighted distances. An edge that brings less than ``beyond`` to an unreached vertex breaks C3:
    ``beyond`` is the first number after the limit.
    """
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
        # What each edge of the chunk brings, in the order of the edges. ``sources`` are their
        # tails.
        sources = neighbors[first : offsets[end]]
        chunk_weights = weights[first : offsets[end]]
        values = np.empty(sources.size + 2 * SIXTEEN, distance.dtype)
        for i in range(sources.size):
            values[i + SIXTEEN] = distance[np.uint64(sources[i])] + chunk_weights[i]

        begins = offsets[begin:end]
        ends = offsets[begin + 1 : end + 1]
        chunk_distance = distance[begin:end]
        chunk_predecessor = predecessor[begin:end]

        n_violated = n_explained = n_level = 0
        for v in range(chunk_distance.size):
            d = chunk_distance[v]
            p = chunk_predecessor[v]
            is_reached = p != NO_PREDECESSOR
            bound = d if is_reached else beyond
            expected = _Expected(bound, d, p)
            less, same = _compare_edges(neighbors, values, first, begins[v], ends[v], expected)
            n_violated += less != 0
            n_explained += is_reached & (same != 0)
            n_level += (
                is_reached
                & (begin + v != source)
                # in place of -1 any vertex, which does not count
                & (distance[np.uint64(p if is_reached else 0)] >= d)
            )
        counts[chunk, 0] = n_violated
        counts[chunk, 1] = n_explained
        counts[chunk, 2] = n_level
        chunk = atomic_add(next_chunk, 0, 1)


@njit(cache=True)
def _name_findings(offsets, targets, distance, weights, predecessor, source, limit):
    """Return the number of edges that break C3, the smallest vertex that one leads to, the number
    of vertices that break C4, and the smallest of them; the number of vertices in place of a vertex
    that does not exist.

    ``offsets``, ``targets`` and ``weights`` are the edges of the graph. ``distance`` has floats,
    infinite where unreached, and ``limit`` is up to where they are complete.
    """
    n = distance.size
    is_explained = np.zeros(n, np.bool_)  # True where an edge from the predecessor has been found
    is_explained[source] = True
    first_violated = n
    n_violated = 0
    for u in range(n):
        if distance[u] == np.inf:
            continue
        for e in range(offsets[u], offsets[u + 1]):
            v = targets[e]
            candidate = distance[u] + weights[e]
            if distance[v] > candidate and candidate <= limit:
                n_violated += 1
                first_violated = min(first_violated, v)
            if predecessor[v] == u and distance[v] == candidate:
                is_explained[v] = True
    # Only vertices with a predecessor are reached, and need an edge.
    unexplained = np.flatnonzero(~is_explained & (predecessor != NO_PREDECESSOR))
    return n_violated, first_violated, unexplained.size, unexplained[0] if unexplained.size else n
