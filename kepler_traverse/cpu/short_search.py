"""Searches that touch only what they reach, and what is computed of their results: rows of vertices and distances.

A thread keeps an array over all vertices from search to search. A search sets the places of the vertices that it reaches and
clears them again, so its time depends on the size of its result and not on that of the graph.

A row is the vertices that one source reaches, in ascending order, with their distances. ``search.sparse`` holds rows.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from .atomics import atomic_add
from .checksum import ODD, _mix_one
from .opportunities import NO_DECAY, _weight
from .simd_figures import PIECE

CHUNK = 64  # rows that a thread takes at a time
_FEW = 48  # vertices of a row up to which sorting by insertion is faster
_DIGIT = 11  # bits
C1, C2, C3, C4, C5 = range(5)  # as in ``certificate.batch``
_WAITS, _EXPLAINED = 1, 2


@njit(cache=True, nogil=True)
def search_sums(
    offsets, targets, weights, sources, limits, lists, list_of, is_sorted, at_targets, answers, most, distance, is_target
):
    """Dijkstra's search from each source, up to its limit, or until its targets are settled.

    Parameters
    ----------
    offsets, targets, weights : arrays
        Weights are 0 or more.
    sources : int64 array of shape (k,)
    limits : array of shape (k,), of the type of distances
    lists : int64 array
        Vertex numbers of targets.
    list_of : int64 array of shape (k, 2)
        Where in ``lists`` the targets of each source begin and end. A search without targets has none to stop at.
    is_sorted : bool
        Whether rows are in ascending order of the vertices; else in the order in which these are found.
    at_targets : array, of the type of distances
        Receives the distances at the targets, of each source from ``answers[i]`` on. If it is not empty, no rows are made,
        and sources without targets are not searched from.
    answers : int64 array of shape (k,)
    most : int
        Edges after which the searches give up, all together.
    distance : array of shape (n_vertices,), of the type of distances
        inf in each place, before and after.
    is_target : uint8 array of shape (n_vertices,)
        0 in each place, before and after.

    Returns
    -------
    sizes : int64 array of shape (k,)
        Vertices that each search reaches.
    vertices, distances : arrays of the sum of sizes
        The vertices found, source by source.
    stops : array of shape (k,)
        Distance up to which the row is complete: the limit, or less if a search has settled its targets. NaN if without a
        limit a distance exceeds the largest number of its type.
    edges : int
        Edges that were walked; more than ``most`` if the searches gave up.
    """
    k, unreached = sources.size, distance.dtype.type(np.inf)
    sizes, stops = np.zeros(k, np.int64), limits.copy()
    found = np.empty(max(64, 4 * k), targets.dtype)
    kept = np.empty(found.size, distance.dtype)
    keys, heap, packed = np.empty(256, distance.dtype), np.empty(256, targets.dtype), np.empty(256, np.uint64)
    first = walked = np.int64(0)  # of one type in each call: a function is compiled for each type of an argument
    for i in range(k):
        if limits[i] < 0 or (at_targets.size and list_of[i, 0] == list_of[i, 1]):
            continue
        while True:
            missing = np.int64(0)
            for j in range(list_of[i, 0], list_of[i, 1]):
                missing += is_target[lists[j]] != 1
                is_target[lists[j]] = 1
            if distance.itemsize == 4 and targets.itemsize == 4:
                last, edges, limit, overflows = _dijkstra_packed(
                    *(offsets, targets, weights, sources[i], limits[i], missing, most - walked),
                    *(found[first:], packed, distance, is_target),
                )
            else:
                last, edges, limit, overflows = _dijkstra(
                    *(offsets, targets, weights, sources[i], limits[i], missing, most - walked),
                    *(found[first:], keys, heap, distance, is_target),
                )
            if last >= 0:
                break
            found, kept = _longer(found, first), _longer(kept, first)
            keys, heap, packed = _longer(keys, 0), _longer(heap, 0), _longer(packed, 0)
            for j in range(list_of[i, 0], list_of[i, 1]):
                is_target[lists[j]] = 0
        last += first
        walked += edges
        if overflows and limit == unreached and has_overflow(offsets, targets, weights, found, first, last, distance):
            limit = distance.dtype.type(np.nan)
        for j in range(list_of[i, 0], list_of[i, 1]):
            is_target[lists[j]] = 0
            if at_targets.size:
                at_targets[answers[i] + j - list_of[i, 0]] = distance[lists[j]]
        last = _end_row(found, kept, first, last, distance, limit, unreached, is_sorted, at_targets.size == 0)
        sizes[i], stops[i] = last - first, limit
        first = last
        if walked > most:
            break
    return sizes, found[:first].copy(), kept[:first].copy(), stops, walked


@njit(cache=True, nogil=True)
def _dijkstra(offsets, targets, weights, source, limit, missing, most, found, keys, heap, distance, is_target):
    """Search from one source. Return how many vertices are found; -1, with all places clear, if there is no room for them.

    Return also the edges walked; the limit, which is nearer once all targets are settled; and whether a sum was infinite.
    """
    unreached = distance.dtype.type(np.inf)
    overflows = False
    if found.size == 0:
        return -1, 0, limit, False
    distance[source] = 0
    found[0], keys[0], heap[0] = source, 0, source
    last = size = 1
    walked = 0
    while size > 0 and keys[0] <= limit and walked <= most:
        d, u = keys[0], heap[0]
        size -= 1
        _sink(keys, heap, size)
        if d > distance[u]:
            continue
        if missing > 0 and is_target[u] == 1:
            is_target[u] = 2
            missing -= 1
            limit = limit if missing else d
        begin, end = offsets[u], offsets[u + 1]
        walked += end - begin
        if last + end - begin > found.size or size + end - begin > keys.size:
            for i in range(last):
                distance[found[i]] = unreached
            return -1, 0, limit, False
        for e in range(begin, end):
            v, further = targets[e], d + weights[e]
            overflows |= further == unreached
            if further <= limit and further < distance[v]:
                found[last] = v
                last += distance[v] == unreached
                distance[v] = further
                _rise(keys, heap, size, further, v)
                size += 1
    return last, walked, limit, overflows


@njit(cache=True, nogil=True)
def _dijkstra_packed(offsets, targets, weights, source, limit, missing, most, found, heap, distance, is_target):
    """``_dijkstra`` with a heap of 64-bit numbers, distance and vertex of 32 bits each.

    The bits of floats of 0 or more are in their order. Each entry has four below it: the heap is half as deep.
    """
    unreached, bits, low = distance.dtype.type(np.inf), distance.view(np.uint32), np.uint64(32)
    overflows = False
    if found.size == 0:
        return -1, 0, limit, False
    distance[source] = 0
    found[0], heap[0] = source, np.uint64(source)
    last = size = 1
    walked = 0
    while size > 0 and walked <= most:
        top = heap[0]
        u = np.int64(np.uint32(top))
        d = distance[u]
        if np.uint32(top >> low) == bits[u] and d > limit:
            break
        size -= 1
        at, moved = 0, heap[size]
        while True:
            child = 4 * at + 1
            if child >= size:
                break
            least = heap[child]
            for other in range(child + 1, min(child + 4, size)):
                if heap[other] < least:
                    child, least = other, heap[other]
            if least >= moved:
                break
            heap[at] = least
            at = child
        heap[at] = moved
        if np.uint32(top >> low) != bits[u]:
            continue
        if missing > 0 and is_target[u] == 1:
            is_target[u] = 2
            missing -= 1
            limit = limit if missing else d
        begin, end = offsets[u], offsets[u + 1]
        walked += end - begin
        if last + end - begin > found.size or size + end - begin > heap.size:
            for i in range(last):
                distance[found[i]] = unreached
            return -1, 0, limit, False
        for e in range(begin, end):
            v, further = targets[e], d + weights[e]
            overflows |= further == unreached
            if further <= limit and further < distance[v]:
                found[last] = v
                last += distance[v] == unreached
                distance[v] = further
                entry = np.uint64(bits[v]) << low | np.uint64(v)
                at = size
                size += 1
                while at > 0:
                    above = (at - 1) >> 2
                    if heap[above] <= entry:
                        break
                    heap[at] = heap[above]
                    at = above
                heap[at] = entry
    return last, walked, limit, overflows


@njit(cache=True, nogil=True)
def search_hops(
    offsets,
    targets,
    weights,  # noqa: ARG001
    sources,
    limits,
    lists,
    list_of,
    is_sorted,
    at_targets,
    answers,
    most,
    distance,
    is_target,
):
    """BFS from each source; parameters and results as of ``search_sums``, with hops in int32, and -1 for unreached.

    Rows that need not be sorted hold the number of vertices at 0, 1, 2, ... hops in place of distances.
    """
    k, unreached = sources.size, distance.dtype.type(-1)
    sizes, stops = np.zeros(k, np.int64), limits.copy()
    found = np.empty(max(64, 4 * k), targets.dtype)
    kept = np.empty(found.size, distance.dtype)
    first = walked = np.int64(0)  # of one type in each call: a function is compiled for each type of an argument
    for i in range(k):
        if at_targets.size and list_of[i, 0] == list_of[i, 1]:
            continue
        while True:
            missing = np.int64(0)
            for j in range(list_of[i, 0], list_of[i, 1]):
                missing += is_target[lists[j]] == 0
                is_target[lists[j]] = 1
            last, edges, limit, n_levels = _bfs(
                *(offsets, targets, sources[i], limits[i], missing, most - walked),
                *(found[first:], kept[first:], distance, is_target),
            )
            if last >= 0:
                break
            found, kept = _longer(found, first), _longer(kept, first)
            for j in range(list_of[i, 0], list_of[i, 1]):
                is_target[lists[j]] = 0
        last += first
        walked += edges
        for j in range(list_of[i, 0], list_of[i, 1]):
            is_target[lists[j]] = 0
            if at_targets.size:
                at_targets[answers[i] + j - list_of[i, 0]] = distance[lists[j]]
        if is_sorted or at_targets.size:
            last = _end_row(found, kept, first, last, distance, limit, unreached, is_sorted, at_targets.size == 0)
        else:
            for at in range(first, last):
                distance[found[at]] = unreached
            last = first + n_levels
        sizes[i], stops[i] = last - first, limit
        first = last
        if walked > most:
            break
    return sizes, found[:first].copy(), kept[:first].copy(), stops, walked


@njit(cache=True, nogil=True)
def _bfs(offsets, targets, source, limit, missing, most, found, counts, distance, is_target):
    """Search from one source, as ``_dijkstra``; return the number of levels in place of its last result.

    The number of vertices at each level is stored in ``counts``.
    """
    unreached = distance.dtype.type(-1)
    if found.size == 0:
        return -1, 0, limit, 0
    if missing > 0 and is_target[source] == 1:
        is_target[source] = 2
        missing -= 1
        limit = limit if missing else 0
    found[0], counts[0] = source, 1
    distance[source] = 0
    at = walked = level = 0
    last = end = 1
    while at < end and level < limit and walked <= most:
        level += 1
        while at < end:
            u = found[at]
            at += 1
            first_edge, last_edge = offsets[u], offsets[u + 1]
            walked += last_edge - first_edge
            if last + last_edge - first_edge >= found.size:
                for i in range(last):
                    distance[found[i]] = unreached
                return -1, 0, limit, 0
            for e in range(first_edge, last_edge):
                # Every neighbor is written to the queue, and stays there if it is new. A branch would be predicted badly.
                v = targets[e]
                known = distance[v]
                found[last] = v
                is_new = known == unreached
                distance[v] = level if is_new else known
                last += is_new
                if missing > 0 and is_target[v] == 1:
                    is_target[v] = 2
                    missing -= 1
                    limit = limit if missing else level
        counts[level] = last - end
        level -= last == end
        end = last
    return last, walked, limit, level + 1


@njit(cache=True, nogil=True)
def has_overflow(offsets, targets, weights, found, first, last, distance):
    """Return whether an edge leads to a vertex that is reached at no finite distance."""
    for i in range(first, last):
        for e in range(offsets[found[i]], offsets[found[i] + 1]):
            if np.isinf(distance[found[i]] + weights[e]) and np.isinf(distance[targets[e]]):
                return True
    return False


@njit(cache=True, nogil=True)
def _end_row(found, kept, first, last, distance, limit, unreached, is_sorted, is_kept):
    """Sort the vertices of a row, keep those within the limit with their distances, and clear their places."""
    if not is_kept:
        for i in range(first, last):
            distance[found[i]] = unreached
        return first
    if is_sorted and last - first <= _FEW:
        for i in range(first + 1, last):
            v, j = found[i], i
            while j > first and found[j - 1] > v:
                found[j] = found[j - 1]
                j -= 1
            found[j] = v
    elif is_sorted:
        _sort(found[first:last], distance.size)
    end = first
    for i in range(first, last):
        v = found[i]
        d = distance[v]
        found[end], kept[end] = v, d
        end += not d > limit
        distance[v] = unreached
    return end


@njit(cache=True, nogil=True)
def _sort(row, n):
    """Sort vertex numbers below ``n`` by their digits, the lowest one first."""
    one, other, shift, is_here = row, np.empty_like(row), 0, True
    while n >> shift:
        places = np.zeros((1 << _DIGIT) + 1, np.int64)
        for v in one:
            places[((v >> shift) & ((1 << _DIGIT) - 1)) + 1] += 1
        for digit in range(1 << _DIGIT):
            places[digit + 1] += places[digit]
        for v in one:
            digit = (v >> shift) & ((1 << _DIGIT) - 1)
            other[places[digit]] = v
            places[digit] += 1
        one, other, shift, is_here = other, one, shift + _DIGIT, not is_here
    for i in range(0 if is_here else row.size):  # not a slice: see _longer
        row[i] = one[i]


@njit(cache=True, nogil=True)
def _longer(array, size):
    longer = np.empty(2 * array.size, array.dtype)
    for i in range(size):  # the assignment of a slice would take seconds to compile, for its error message
        longer[i] = array[i]
    return longer


@njit(cache=True, nogil=True)
def _rise(keys, heap, at, key, v):
    while at > 0:
        above = (at - 1) >> 1
        if keys[above] <= key:
            break
        keys[at], heap[at] = keys[above], heap[above]
        at = above
    keys[at], heap[at] = key, v


@njit(cache=True, nogil=True)
def _sink(keys, heap, size):
    """Remove the first entry of ``size + 1``."""
    key, v, at = keys[size], heap[size], 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        keys[at], heap[at] = keys[child], heap[child]
        at = child
    keys[at], heap[at] = key, v


@njit(cache=True, nogil=True)
def _fold(places, values, size, n, scratch_places, scratch_values):
    """Add values by halves, as rows of ``n`` numbers are folded that have 0.0 in all other places; see ``distance_stats``.

    ``places``, int64 and ascending, and ``values`` are overwritten; so are the scratch arrays, of ``PIECE`` numbers each.
    """
    if size == 0:
        return 0.0
    while True:
        begin = blocks = np.int64(0)
        while begin < size:
            block, end = places[begin] // PIECE, begin + 1
            while end < size and places[end] // PIECE == block:
                end += 1
            values[blocks] = _fold_block(places, values, begin, end, scratch_places, scratch_values)
            places[blocks] = block
            blocks += 1
            begin = end
        size, n = blocks, (n + PIECE - 1) // PIECE
        if n <= 1:
            return values[0]


@njit(cache=True, nogil=True)
def _fold_block(places, values, begin, end, scratch_places, scratch_values):
    """Fold the values of one block: in each step those of its upper half are added to those of its lower half.

    A value without a partner is added to 0.0, which matters for -0.0 alone: one such step at the end does for all.
    """
    half = PIECE // 2
    while end - begin > 2:
        upper = begin
        while upper < end and places[upper] % (2 * half) < half:
            upper += 1
        i, j, size = begin, upper, 0
        while i < upper or j < end:
            one = places[i] % half if i < upper else half
            other = places[j] % half if j < end else half
            scratch_places[size] = min(one, other)
            scratch_values[size] = (values[i] if one <= other else 0.0) + (values[j] if other <= one else 0.0)
            i += one <= other
            j += other <= one
            size += 1
        for at in range(size):
            places[begin + at], values[begin + at] = scratch_places[at], scratch_values[at]
        end = begin + size
        half //= 2
    return values[begin] + (values[begin + 1] if end - begin == 2 else 0.0) + 0.0


@njit(cache=True, nogil=True)
def stats(next_item, n_items, row_offsets, vertices, distance, edges_before, n, limit, counts, extremes, sums):
    """``DistanceStats`` of rows: vertices and edges in ``counts``, the smallest and largest distance, and both sums,
    unless there is no room for these.
    """
    places, values = np.empty(64, np.int64), np.empty((2, 64))
    scratch_places, scratch_values = np.empty(PIECE, np.int64), np.empty(PIECE)
    while True:
        chunk = atomic_add(next_item, 0, 1)
        if chunk >= n_items:
            return
        for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, row_offsets.size - 1)):
            begin, end = row_offsets[i], row_offsets[i + 1]
            if end - begin > places.size:
                places, values = np.empty(2 * (end - begin), np.int64), np.empty((2, 2 * (end - begin)))
            size, edges = np.int64(0), 0
            low, high = extremes.dtype.type(np.inf), extremes.dtype.type(-np.inf)
            for at in range(begin, end):
                v, d = vertices[at], distance[at]
                edges += edges_before[v + 1] - edges_before[v]
                if d <= limit:
                    if len(sums):
                        places[size], values[0, size] = v, d
                        values[1, size] = 1.0 / values[0, size] if d > 0 else 0.0
                    low, high = min(low, d), max(high, d)
                    size += 1
            counts[i, 0], counts[i, 1], extremes[i, 0], extremes[i, 1] = size, edges, low, high
            for s in range(len(sums)):
                if s == 1:  # the first fold has overwritten the places
                    size = np.int64(0)
                    for at in range(begin, end):
                        if distance[at] <= limit:
                            places[size] = vertices[at]
                            size += 1
                sums[s, i] = _fold(places, values[s], size, n, scratch_places, scratch_values)


@njit(cache=True, nogil=True, error_model="numpy")
def sums_within(
    next_item,
    n_items,
    row_offsets,
    vertices,
    distance,
    lowest,
    bounds,
    integers,
    floats,
    decay,
    parameter,
    n,
    exact,
    rounded,
):
    """``cpu.opportunities.sums`` of rows, into ``exact`` and ``rounded`` of shape (k, n_attributes, n_cutoffs)."""
    places, values, weights = np.empty(64, np.int64), np.empty(64), np.empty(64)
    scratch_places, scratch_values = np.empty(PIECE, np.int64), np.empty(PIECE)
    while True:
        chunk = atomic_add(next_item, 0, 1)
        if chunk >= n_items:
            return
        for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, row_offsets.size - 1)):
            begin, end = row_offsets[i], row_offsets[i + 1]
            if len(integers):  # into the smallest cutoff that holds the vertex, and then up
                for at in range(begin, end):
                    v, d, c = vertices[at], distance[at], 0
                    while c < bounds.size and d > bounds[c]:
                        c += 1
                    if c < bounds.size and lowest <= d:
                        for a in range(len(integers)):
                            exact[i, a, c] += integers[a, v]
                for a in range(len(integers)):
                    for c in range(1, bounds.size):
                        exact[i, a, c] += exact[i, a, c - 1]
            if len(floats) == 0:
                continue
            if end - begin > places.size:
                places, values, weights = (
                    np.empty(2 * (end - begin), np.int64),
                    np.empty(2 * (end - begin)),
                    np.empty(2 * (end - begin)),
                )
            for at in range(begin, end):
                near = decay != NO_DECAY and lowest <= distance[at] and distance[at] <= bounds[-1]
                weights[at - begin] = _weight(np.float64(distance[at]), decay, parameter) if near else 1.0
            for a in range(len(floats)):
                for c in range(bounds.size):
                    size, bound = np.int64(0), bounds[c]
                    for at in range(begin, end):
                        if lowest <= distance[at] and distance[at] <= bound:
                            value = floats[a, vertices[at]]
                            places[size] = vertices[at]
                            values[size] = value * weights[at - begin] if decay != NO_DECAY else value
                            size += 1
                    rounded[i, a, c] = _fold(places, values, size, n, scratch_places, scratch_values)


@njit(cache=True, nogil=True)
def bins(next_item, n_items, row_offsets, distance, limit, bins_per_unit, before, counts):
    """``distance_stats.bins_of`` of rows."""
    while True:
        chunk = atomic_add(next_item, 0, 1)
        if chunk >= n_items:
            return
        for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, row_offsets.size - 1)):
            for at in range(row_offsets[i], row_offsets[i + 1]):
                if distance[at] <= limit:
                    counts[i, int(np.floor(distance[at] * bins_per_unit[i])) - before[i]] += 1


@njit(cache=True, nogil=True)
def levels(next_item, n_items, row_offsets, vertices, distance, edges_before, limit, counts, edges):
    """Vertices at each hop count up to ``limit``, and the edges of all vertices, of rows."""
    while True:
        chunk = atomic_add(next_item, 0, 1)
        if chunk >= n_items:
            return
        for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, row_offsets.size - 1)):
            for at in range(row_offsets[i], row_offsets[i + 1]):
                v = vertices[at]
                edges[i] += edges_before[v + 1] - edges_before[v]
                if distance[at] <= limit:
                    counts[i, distance[at]] += 1


@njit(cache=True, nogil=True)
def checksums(next_item, n_items, row_offsets, vertices, bits, sources, found):
    """``search.results.checksum`` of each row; ``bits`` are those of the distances as unsigned integers."""
    while True:
        chunk = atomic_add(next_item, 0, 1)
        if chunk >= n_items:
            return
        for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, row_offsets.size - 1)):
            total = np.uint64(0)
            for at in range(row_offsets[i], row_offsets[i + 1]):
                total += _mix_one(
                    _mix_one(_mix_one(np.uint64(vertices[at]) + ODD) ^ np.uint64(bits[at])) + np.uint64(sources[i])
                )
            found[i] = total


@njit(cache=True, nogil=True)
def check(offsets, targets, weights, sources, row_offsets, vertices, distance, limits, none, place, mark, found):
    """Check rows by the rules of ``certificate``, over the vertices that they hold and the edges that leave these.

    C1: the source is at 0. C2: vertices ascend, and distances are numbers from 0 up to the limit. C3: no edge that leaves a
    vertex of the row allows a distance within the limit that is shorter than that of the vertex it leads to, or leads to one
    that is not in the row. C4: an edge from a vertex of the row explains the distance of each vertex but the source. C5: so
    does a chain of such edges that begins at the source, also along edges of length 0. A vertex that is not in the row is
    then farther than the limit: on a shortest path to it, the edge to the first vertex that is not in the row breaks C3.

    Parameters
    ----------
    weights : array
        0 or more; of shape (0,) for hops.
    limits : array of shape (k,), of the type of distances
    none : number of that type
        It stands for "not in the row".
    place : array of shape (n_vertices,), of that type
        ``none`` in each place, before and after.
    mark : uint8 array of shape (n_vertices,)
        0 in each place, before and after.
    found : int64 array of shape (5, 3)
        For each rule the number of violations, and the position of the source and the vertex of an example. They are added.
    """
    one = weights.dtype.type(1)
    queue = np.empty(64, vertices.dtype)
    for i in range(sources.size):
        begin, end = row_offsets[i], row_offsets[i + 1]
        is_sound, has_source = True, False
        for at in range(begin, end):
            v, d = vertices[at], distance[at]
            ascends = v >= 0 and v < place.size and (at == begin or vertices[at - 1] < v)
            if not (ascends and d >= 0 and d <= limits[i] and d < np.inf) or (weights.size and np.signbit(np.float64(d))):
                _note(found, C2, i, max(0, min(v, place.size - 1)))
                is_sound = False
            if v == sources[i]:
                has_source = True
                if d != 0:
                    _note(found, C1, i, v)
        if limits[i] >= 0 and not has_source:
            _note(found, C1, i, sources[i])
        if not is_sound:
            continue
        for at in range(begin, end):
            place[vertices[at]] = distance[at]
        mark[sources[i]] = _EXPLAINED
        for at in range(begin, end):
            u, d = vertices[at], distance[at]
            if weights.size == 0 and d >= limits[i]:
                continue  # one hop more is beyond the limit
            for e in range(offsets[u], offsets[u + 1]):
                v = targets[e]
                further, here = d + (weights[e] if weights.size else one), place[v]
                if here == none:
                    if further <= limits[i]:
                        _note(found, C3, i, v)
                elif further < here:
                    _note(found, C3, i, v)
                elif further == here:  # what a nearer vertex does not explain waits until a chain from the source reaches it
                    mark[v] = _EXPLAINED if d < here else max(mark[v], np.uint8(_WAITS))
        waiting = 0
        for at in range(begin, end):
            waiting += mark[vertices[at]] == _WAITS
        if waiting:
            if end - begin > queue.size:
                queue = np.empty(2 * (end - begin), vertices.dtype)
            size = 0
            for at in range(begin, end):
                if mark[vertices[at]] == _EXPLAINED:
                    queue[size] = vertices[at]
                    size += 1
            at = 0
            while at < size:
                u = queue[at]
                at += 1
                for e in range(offsets[u], offsets[u + 1]):
                    v = targets[e]
                    if mark[v] == _WAITS and place[u] + (weights[e] if weights.size else one) == place[v]:
                        mark[v] = _EXPLAINED
                        queue[size] = v
                        size += 1
        for at in range(begin, end):
            v = vertices[at]
            if mark[v] != _EXPLAINED:
                _note(found, C5 if mark[v] == _WAITS else C4, i, v)
            place[v], mark[v] = none, 0
        mark[sources[i]] = 0


@njit(cache=True, nogil=True)
def _note(found, rule, i, v):
    if found[rule, 0] == 0:
        found[rule, 1], found[rule, 2] = i, v
    found[rule, 0] += 1
