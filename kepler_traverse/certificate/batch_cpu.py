"""Check blocks of sources on the CPU by the rules of ``batch``. See also ``batch_gpu``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from .._arrays import MAX_HOP_COUNT, UNREACHED
from ..cpu import threads
from ..cpu.atomics import atomic_add
from ..cpu.compiled import njit
from ..cpu.edges import Edges, Neighbors
from ..cpu.short_search import note
from ..cpu.simd_distances import differing_hops, differing_sums, lay_out
from .batch import C1, C2, C3, C4, C5, NOTHING, TILE_BYTES, bound, leads_farther
from .single_cpu import divide_vertices

# vertices laid out at once: some cache lines per source, which the processor then prefetches
TILE = 512
SHARED = 1 << 20  # edges, times sources, from which several threads check few sources
# sources of hops that are compared without tiles, as laying out 64 bytes per vertex would take
# longer
FEW = 4


class Lanes(NamedTuple):
    """The searches that are checked, and what is found, for all threads. A lane is one search."""

    # int64 array of shape (lanes,): the source of each lane, -1 for lanes without one
    source: np.ndarray
    # array of shape (lanes,) of the type of the distances: up to where each lane is complete. The
    # largest number, or infinity, means everywhere
    limits: np.ndarray
    largest_limit: Any  # the largest of them, with which all lanes are compared at once
    has_negative: bool  # whether a weight is negative
    bounds: np.ndarray  # int64 array of shape (n_chunks + 1,): where each chunk of vertices begins
    # int64 array of shape (n_chunks, 5, 3), output: per chunk and rule, C1 to C5, the number of
    # violations, and lane and vertex of an example
    findings: np.ndarray


def summaries(graph, blocks) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the size of each block of sources, and its findings.

    ``blocks`` are ``batch.Block``. Findings, int64 of shape (5, 3), have per rule the number of
    violations, and the position of the source and the vertex of an example.
    """
    return ((len(block.sources), _check_block(graph, *block)) for block in blocks)


def _check_block(graph, sources, distances, key_dtype, limits) -> np.ndarray:
    """Check as many sources as fit into a tile; C3 to C5 only if C1 and C2 hold.

    The arguments are the fields of ``batch.Block``: vertex numbers of k sources, distances of shape
    (k, n), the type of the keys that stand for them, and a limit per source or None. Hops of at
    most ``FEW`` sources are checked row by row, hops of more sources in lines, and weighted
    distances in lines and with C5. Return the findings, as ``summaries`` does.
    """
    # C1 and C2 are seen from the distances alone.
    summary = NOTHING.copy()
    summary[C2] = _out_of_range(distances, limits, graph.has_negative_weights)
    wrong_sources = np.flatnonzero(distances[np.arange(len(sources)), sources] != 0)
    if wrong_sources.size:
        summary[C1] = wrong_sources.size, wrong_sources[0], sources[wrong_sources[0]]
    if summary[:, 0].any():
        return summary

    # What the threads share: a lane is the search from one source.
    reverse = graph.reverse
    n_lanes = TILE_BYTES // key_dtype.itemsize
    doublings = (0,) * (n_lanes.bit_length() - 1)  # its length tells compiled code the lanes
    # where each chunk of vertices begins; chunks are about equal in vertices and edges together
    bounds = divide_vertices(reverse.offsets)
    findings = np.zeros((bounds.size - 1, 5, 3), np.int64)
    unreached = np.iinfo(key_dtype).max if key_dtype.kind == "u" else np.inf
    # Distances as keys. -1, which stands for unreached, becomes the largest number of an unsigned
    # type, by a conversion or by another view of the same bytes.
    if distances.itemsize > key_dtype.itemsize:
        narrow = distances.astype(key_dtype, copy=False)
    else:
        narrow = distances.view(key_dtype)
    source_of = np.full(n_lanes, -1, np.int64)
    source_of[: len(sources)] = sources
    lane_limits = np.zeros(n_lanes, key_dtype)  # those of lanes without a source do not matter
    lane_limits[: len(sources)] = [bound(limit, key_dtype) for limit in limits]
    has_negative = graph.has_negative_weights
    # Lanes are compared with the largest limit together, and only those that differ with their own.
    lanes = Lanes(source_of, lane_limits, lane_limits.max(), has_negative, bounds, findings)
    neighbors = Neighbors.of(reverse)
    # Hops from few sources are checked row by row, by one thread if there is little to do.
    if key_dtype.kind == "u" and len(sources) <= FEW:
        rows = np.ascontiguousarray(narrow)
        if reverse.n_edges * len(sources) < SHARED:
            run = threads.run_alone
        else:
            run = threads.run
        run(_check_rows, len(findings), neighbors, rows, lanes)
        return _sum_findings(findings)

    # A line per vertex, with its distance from each source.
    lines = np.empty((graph.n_vertices, n_lanes), key_dtype)
    threads.run(
        _lay_out, len(findings), narrow, key_dtype.type(unreached), bounds, lines, doublings
    )
    if key_dtype.kind == "u":
        threads.run(_check_hops, len(findings), neighbors, lines, lanes, doublings)
        return _sum_findings(findings)

    # Of weighted distances also C5, unless each edge leads farther. A set bit of ``unfounded`` is a
    # lane in which no strictly nearer vertex explains the distance of the vertex.
    unfounded = np.zeros(graph.n_vertices, np.uint16)
    incoming = Edges.of(reverse)
    threads.run(_check_sums, len(findings), incoming, lines, lanes, doublings, unfounded)
    summary = _sum_findings(findings)
    farthest = max(np.max(row, where=row != np.inf, initial=0) for row in distances)
    if not graph.n_edges or leads_farther(graph.derived.min_weight, farthest):
        return summary
    _clear_explained(incoming, Edges.of(graph), lines, unfounded)
    lost_vertices = np.flatnonzero(unfounded)
    if lost_vertices.size:  # no chain of exact edges explains what is left
        bits = int(unfounded[lost_vertices[0]])
        n_lost = int(np.bitwise_count(unfounded).sum())
        lowest_lane = (bits & -bits).bit_length() - 1
        summary[C5] = n_lost, lowest_lane, lost_vertices[0]
    return summary


def _out_of_range(distances, limits, has_negative: bool) -> tuple[int, int, int]:
    """Return the number of values that are no distances within their limit (C2), and of an example
    the row and the vertex; zeros if there are none.

    ``distances`` have shape (k, n), and ``limits`` one per row, or None. With ``has_negative``
    weighted distances may be below zero.
    """
    # Two passes that look at extremes alone decide nearly all cases.
    if distances.dtype.kind == "i":
        is_sound = distances.min(initial=UNREACHED) >= UNREACHED
    else:
        # As integers the bits of negative floats and of -0.0 are negative. The maximum is NaN if a
        # value is.
        is_sound = not has_negative and distances.view(f"i{distances.itemsize}").min(initial=0) >= 0
        is_sound &= not np.isnan(distances.max(initial=0))
    if is_sound and all(limit is None for limit in limits):
        return 0, 0, 0

    # Else each row is looked at.
    n_bad = 0
    lane = 0
    vertex = 0
    for i, (row, limit) in enumerate(zip(distances, limits, strict=True)):
        if row.dtype.kind == "i":
            largest = MAX_HOP_COUNT if limit is None else limit
            is_bad = (row < UNREACHED) | (row > largest)
        else:
            is_bad = ~(row <= bound(limit, row.dtype)) & (row != np.inf)
            # no sum of weights is -0.0
            is_bad |= np.signbit(row) & ~(has_negative & (-np.inf < row) & (row < 0))
        if not n_bad and is_bad.any():
            lane = i
            vertex = int(is_bad.argmax())
        n_bad += int(is_bad.sum())
    return n_bad, lane, vertex


def _sum_findings(findings) -> np.ndarray:
    """Return the findings of all chunks, of shape (n_chunks, 5, 3), added up to shape (5, 3). The
    example of a rule is from the first chunk that has one.
    """
    summary = NOTHING.copy()
    for rule in (C2, C3, C4):  # C1 and C5 are not checked by chunks
        chunks = np.flatnonzero(findings[:, rule, 0])
        if chunks.size:
            summary[rule] = findings[:, rule, 0].sum(), *findings[chunks[0], rule, 1:]
    return summary


@njit(nogil=True, cache=True)
def _lay_out(next_chunk, n_chunks, distances, unreached, bounds, lines, doublings):
    """Transpose distances of shape (k, n) into ``lines``, output, of shape (n, lanes): a line per
    vertex, with its distance from each source.

    Lanes without a source become ``unreached``. Each of several threads calls this function. It
    takes chunks of vertices, which begin at ``bounds`` and of which there are ``n_chunks``, by the
    counter ``next_chunk``. ``doublings`` is a tuple whose length tells compiled code the number of
    lanes.
    """
    n_rows = distances.shape[0]
    n_lanes = lines.shape[1]
    # Vector instructions transpose squares of rows and vertices. What is left of a chunk, and lanes
    # beyond the last whole square, are copied one by one.
    square_side = n_lanes if n_lanes < 16 else 16
    n_in_squares = n_rows // square_side * square_side
    chunk = atomic_add(next_chunk, 0, 1)
    while chunk < n_chunks:
        # The chunk has the vertices ``first`` to ``last - 1``. Its whole tiles end at ``whole``.
        first = bounds[chunk]
        last = bounds[chunk + 1]
        whole = first + (last - first) // TILE * TILE
        for begin in range(first, whole, TILE):  # a cache line per source, then the next one
            for lane in range(0, n_in_squares, square_side):
                for v in range(begin, begin + TILE, square_side):
                    lay_out(lines, v, lane, distances, doublings)
        for v in range(first, last):
            for lane in range(n_in_squares if v < whole else 0, n_lanes):
                lines[v, lane] = distances[lane, v] if lane < n_rows else unreached
        chunk = atomic_add(next_chunk, 0, 1)


@njit(nogil=True, cache=True)
def _check_hops(next_chunk, n_chunks, edges, lines, lanes, doublings):
    """Compare the hops of each vertex with the minimum over its in-neighbors plus one, and note
    what differs (C3 and C4), in ``lanes.findings``.

    Each of several threads calls this function. It takes chunks of vertices, of which there are
    ``n_chunks``, by the counter ``next_chunk``. ``edges`` are those of the reversed graph.
    ``lines``, of shape (n_vertices, lanes), has the keys of each vertex. ``lanes`` are ``Lanes``. A
    set bit of ``wrong`` below is a lane that differs.
    """
    offsets = edges.offsets
    neighbors = edges.targets
    limits = lanes.limits
    limit = lanes.largest_limit
    source_of = lanes.source
    bounds = lanes.bounds
    findings = lanes.findings

    unreached = ~lines.dtype.type(0)
    chunk = atomic_add(next_chunk, 0, 1)
    while chunk < n_chunks:
        for v in range(bounds[chunk], bounds[chunk + 1]):
            # All lanes at once, by vector instructions. Only those that differ are looked at again.
            wrong = differing_hops(lines, v, edges, limit, doublings)
            for lane in range(lines.shape[1] if wrong else 0):
                if wrong >> np.uint64(lane) & np.uint64(1):
                    best = unreached
                    for e in range(offsets[v], offsets[v + 1]):
                        hops = lines[neighbors[e], lane]
                        best = hops if hops < best else best
                    # the unreached plus one would become 0
                    best = lines.dtype.type(best + (best != unreached))
                    _compare(
                        findings[chunk], lane, v, lines[v, lane], best, limits[lane], source_of
                    )
        chunk = atomic_add(next_chunk, 0, 1)


@njit(nogil=True, cache=True)
def _check_rows(next_chunk, n_chunks, edges, rows, lanes):
    """Compare the hops of each vertex with the minimum over its in-neighbors plus one, and note
    what differs (C3 and C4), in ``lanes.findings``. It is ``_check_hops`` for few sources, whose
    distances are not transposed.

    ``edges`` are those of the reversed graph. ``rows``, of shape (k, n_vertices), has the keys of
    each source. The other arguments are those of ``_check_hops``.
    """
    offsets = edges.offsets
    neighbors = edges.targets
    limits = lanes.limits
    source_of = lanes.source
    bounds = lanes.bounds
    findings = lanes.findings

    unreached = ~rows.dtype.type(0)
    chunk = atomic_add(next_chunk, 0, 1)
    while chunk < n_chunks:
        for lane in range(rows.shape[0]):
            row = rows[lane]
            for v in range(bounds[chunk], bounds[chunk + 1]):
                best = unreached
                # Indices are unsigned, so that Numba does not ask whether they are negative.
                for e in range(np.uint64(offsets[v]), np.uint64(offsets[v + 1])):
                    hops = row[np.uint64(neighbors[e])]
                    best = hops if hops < best else best
                # the unreached plus one would become 0
                best = rows.dtype.type(best + (best != unreached))
                if best != row[v]:
                    _compare(findings[chunk], lane, v, row[v], best, limits[lane], source_of)
        chunk = atomic_add(next_chunk, 0, 1)


@njit(nogil=True, cache=True)
def _check_sums(next_chunk, n_chunks, edges, lines, lanes, doublings, unfounded):
    """Compare the distances of each vertex with the smallest sum over the edges to it, and note
    what differs (C3 and C4), in ``lanes.findings``. Set bits of ``unfounded``, output, where C5 is
    still to be shown.

    Each of several threads calls this function. It takes chunks of vertices, of which there are
    ``n_chunks``, by the counter ``next_chunk``. ``edges`` are those of the reversed graph, and
    ``lines``, of shape (n_vertices, lanes), has the distances of each vertex. ``lanes`` are
    ``Lanes``. Bit i of ``unfounded[v]``, uint16, is set if in lane i no edge from a strictly nearer
    vertex explains the distance of v. The bits of ``wrong`` and ``is_open`` below are lanes, too.
    """
    offsets = edges.offsets
    neighbors = edges.targets
    weights = edges.weights
    limits = lanes.limits
    limit = lanes.largest_limit
    has_negative = lanes.has_negative
    source_of = lanes.source
    bounds = lanes.bounds
    findings = lanes.findings
    chunk = atomic_add(next_chunk, 0, 1)
    while chunk < n_chunks:
        for v in range(bounds[chunk], bounds[chunk + 1]):
            # The lanes in which the distance is not the smallest sum, and those in which no edge
            # from a strictly nearer vertex brings it.
            wrong, is_open = differing_sums(lines, v, edges, limit, doublings)
            # With negative weights a predecessor may be farther than the vertex: a chain must
            # explain every vertex.
            is_open |= ~np.uint64(0) if has_negative else np.uint64(0)
            for lane in range(lines.shape[1] if wrong | is_open else 0):
                if wrong >> np.uint64(lane) & np.uint64(1):
                    best = lines.dtype.type(np.inf)
                    for e in range(offsets[v], offsets[v + 1]):
                        candidate = lines[neighbors[e], lane] + weights[e]
                        best = candidate if candidate < best else best
                    _compare(
                        findings[chunk], lane, v, lines[v, lane], best, limits[lane], source_of
                    )
                if (
                    is_open >> np.uint64(lane) & np.uint64(1)
                    and v != source_of[lane]
                    and lines[v, lane] != np.inf
                ):
                    unfounded[v] |= np.uint16(1 << lane)
        chunk = atomic_add(next_chunk, 0, 1)


@njit
def _compare(findings, lane, v, distance, smallest, limit, source_of):
    """Note a vertex whose distance is not the smallest over its in-neighbors: C3 if it is too
    large, C4 if it is too small.

    ``findings``, output, are those of a chunk. ``distance`` is that of vertex ``v`` in the lane,
    ``smallest`` the least distance that an edge brings to it there, and ``limit`` that of the lane.
    ``source_of`` has the source of each lane. A source needs no edge to explain its distance 0.
    Beyond the limit a vertex may be unreached.
    """
    if v == source_of[lane]:
        if smallest < distance:
            note(findings, C3, lane, v)
    elif distance > smallest:
        if smallest <= limit:
            note(findings, C3, lane, v)
    elif distance < smallest:
        note(findings, C4, lane, v)


@njit(cache=True, nogil=True)
def _clear_explained(incoming, outgoing, keys, unfounded):
    """Clear the bits of all vertices that a chain of exact edges joins to a vertex without the bit.

    An edge from u to v is exact in a lane if the distance of u and its weight add up to the
    distance of v. ``keys``, of shape (n_vertices, lanes), are the distances. Bit i of
    ``unfounded[v]``, uint16, is set while the distance of v in lane i is not known to follow from
    the source. What keeps its bit breaks C5. ``incoming`` are the edges of the reversed graph, so
    that ``sources`` below are the tails of edges, and ``outgoing`` those of the graph.
    """
    in_offsets = incoming.offsets
    sources = incoming.targets
    in_weights = incoming.weights
    offsets = outgoing.offsets
    targets = outgoing.targets
    weights = outgoing.weights
    n_waiting = 0  # set bits: each is queued once at most
    for v in range(unfounded.size):
        for lane in range(keys.shape[1]):
            n_waiting += (unfounded[v] >> lane) & 1

    # The first of each chain: its in-neighbor has no bit.
    queue = np.empty((n_waiting, 2), np.int64)  # vertex and lane
    size = head = 0
    for v in range(unfounded.size):
        # a vertex without a set bit has an empty range
        for e in range(in_offsets[v], in_offsets[v + 1] if unfounded[v] else in_offsets[v]):
            u = sources[e]
            for lane in range(keys.shape[1]):
                bit = np.uint16(1 << lane)
                is_exact = keys[u, lane] + in_weights[e] == keys[v, lane]
                if unfounded[v] & bit and not unfounded[u] & bit and is_exact:
                    unfounded[v] ^= bit
                    queue[size, 0] = v
                    queue[size, 1] = lane
                    size += 1

    # The further vertices of the chains, in the order of a breadth-first search.
    while head < size:
        u = queue[head, 0]
        lane = queue[head, 1]
        head += 1
        bit = np.uint16(1 << lane)
        for e in range(offsets[u], offsets[u + 1]):
            v = targets[e]
            if unfounded[v] & bit and keys[u, lane] + weights[e] == keys[v, lane]:
                unfounded[v] ^= bit
                queue[size, 0] = v
                queue[size, 1] = lane
                size += 1
