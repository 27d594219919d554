"""Searches that touch only what they reach, and what is computed of their results: rows of vertices and distances.

Sources near each other are searched from together, in a table with a line per vertex that one of them reaches. A thread
keeps an array over all vertices from search to search, with the places of vertices in such tables. A search sets the places
of the vertices that it reaches and clears them again, so its time depends on what it reaches and not on the graph.

A row is the vertices that one source reaches, in ascending order, with their distances. ``search.sparse`` holds rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .atomics import atomic_add
from .checksum import ODD, mix_one
from .compiled import njit
from .opportunities import NO_DECAY, weight_at
from .simd_distances import lower_by_line
from .simd_statistics import PIECE
from .simd_sums import clear_line, prefetch_line

# Their lengths say how many sources are searched from together: see ``simd_distances``.
LINE: tuple[int, ...] = (0,) * 4
ALONE: tuple[int, ...] = ()
NOTHING, ROWS, COUNTS, GOALS = range(4)


class Goals(NamedTuple):
    """Vertices in groups, at the nearest of which searches end; those as far as the last one are settled, too."""

    first_group: np.ndarray  # int32: where the groups of each vertex begin in ``groups``
    groups: np.ndarray  # int32
    needs: np.ndarray  # int32: how many vertices of each group end a search once they are settled


class Wanted(NamedTuple):
    """What is wanted of searches from several sources."""

    # int64 array of shape (k,). Those of a line, which follow each other, take as long as what they reach together.
    sources: np.ndarray
    limits: np.ndarray  # of shape (k,), of the type of distances
    lists: np.ndarray  # int64: vertex numbers of targets
    # int64 array of shape (k, 2): where in ``lists`` the targets of each source begin and end. A search without targets has
    # none to stop at.
    list_of: np.ndarray
    # {NOTHING, ROWS, COUNTS, GOALS}: whether to return rows in ascending order of the vertices: of all, or of those in
    # ``goals``. For hops they may hold the number of vertices at 0, 1, 2, ... hops in place of distances.
    keeps: int
    # Of the type of distances: receives the distances at the targets, of each source from ``answers[i]`` on. If it is not
    # empty, sources without targets are not searched from.
    at_targets: np.ndarray
    answers: np.ndarray  # int64 array of shape (k,)
    most: int  # edges after which the searches give up, all together
    goals: Goals  # empty arrays for searches that end otherwise; others have no targets


class _Table(NamedTuple):
    """Lines of vertices, with room for as many as searches of one line of sources are likely to reach."""

    lines: np.ndarray  # of shape (capacity, sources)
    met: np.ndarray  # the vertex of each line
    due: np.ndarray  # the bucket in which it waits
    entries: np.ndarray  # of shape (4 capacity, 2): entries of buckets, the next one and the line
    seen: np.ndarray  # the lines of goals


_NONE = np.zeros(0, np.int32)
NO_GOALS = Goals(_NONE, _NONE, _NONE)
CHUNK = 64  # rows that a thread takes at a time
_FEW, _MANY = 24, 512  # vertices of a row up to which sorting by insertion, and by shorter digits, is faster
_DIGITS = 6, 10  # bits
_LOOK, LOOKS = 256, 8  # vertices among which sources near each other are looked for: of a line, and on average per source
_RING = 1 << 10  # buckets
_PREFETCH_DISTANCE = 2  # vertices in a queue, whose edges are prefetched before they are looked at
_NEVER = np.int64(1) << 62
C1, C2, C3, C4, C5 = range(5)  # as in ``certificate.batch``
_WAITS, _EXPLAINED = 1, 2


@njit(cache=True, nogil=True)
def near_each_other(offsets, targets, sources, place, mark):
    """Return the positions of sources, which ascend, in an order in which as many as a line has numbers are near each other.

    Return also how many are near an earlier one. From one source on, a queue looks for others nearby. ``place`` and ``mark``
    are 0, before and after.
    """
    n, side, n_near = sources.size, 1 << len(LINE), 0
    order, queue = np.empty(n, np.int64), np.empty(_LOOK, np.int64)
    for i in range(n - 1, -1, -1):
        place[sources[i]] = i + 1
    size = at = looks = 0
    start = np.int64(-1)
    while size < n:
        if start < 0:
            while place[sources[at]] == 0:
                at += 1
            start = sources[at]
        queue[0], mark[start] = start, 1
        head, tail, full = 0, 1, (size // side + 1) * side
        start = np.int64(-1)
        while head < tail and looks >= 0:
            u = queue[head]
            head += 1
            looks -= 1
            i = place[u] - 1
            if i >= 0:
                if size >= full:
                    start = u
                    break
                place[u] = 0
                looks += LOOKS
                n_near += head > 1
                while i < n and sources[i] == u:
                    order[size] = i
                    size += 1
                    i += 1
            for e in range(offsets[u], min(offsets[u + 1], offsets[u] + _LOOK)):
                v = targets[e]
                if mark[v] == 0 and tail < _LOOK:
                    mark[v] = 1
                    queue[tail] = v
                    tail += 1
        looks = max(looks, 0)
        for i in range(tail):
            mark[queue[i]] = 0
    return order, n_near


@njit(cache=True, nogil=True)
def search_sums(edges, wanted, capacity, place, doublings):
    """Search from each source, up to its limit or until its targets are settled; from those of one line together.

    A vertex that such a search reaches has a line with its distance from each source. Vertices whose lines were lowered wait
    in buckets by the least of their new distances. One look at an edge serves all sources of the line.

    Parameters
    ----------
    edges : tuple of arrays, and of a number of the type of distances
        Offsets, targets, weights, which are 0 or more, and buckets per unit of distance.
    wanted : Wanted
    capacity : int
        Vertices that searches of a line are likely to reach.
    place : int32 array of shape (n_vertices,)
        0 in each place, before and after.
    doublings : tuple
        As in ``simd_distances``.

    Returns
    -------
    sizes : int64 array of shape (k,)
        Vertices that each search reaches.
    vertices, distances : arrays
        The rows, source by source, with one place that is not used after each row.
    stops : array of shape (k,)
        Distance up to which the row is complete: the limit, or less if a search has settled its targets.
    edges : int
        Edges that were looked at; more than ``most`` if the searches gave up.
    capacity : int
        Vertices that there was room for.
    """
    sources, limits, lists, list_of, keeps, at_targets, answers, most, goals = wanted
    vertex = edges[1].dtype
    k, side, unreached = sources.size, 1 << len(doublings), limits.dtype.type(np.inf)
    sizes, stops = np.zeros(k, np.int64), limits.copy()
    vertices, kept = np.empty(4 * side, vertex), np.empty(4 * side, limits.dtype)
    heads, ends, next_target = np.full(_RING, -1, np.int32), np.zeros(side, limits.dtype), np.zeros(side, np.int64)
    cursors, counts = np.zeros(side, np.int64), np.zeros(side, np.int32)
    # Arrays that may grow in the inner loop would make it twice as slow: a search that lacks room begins again.
    table = _make_table(capacity, side, limits.dtype, vertex)
    first = walked = np.int64(0)  # of one type in each call: a function is compiled for each type of an argument
    for begin in range(0, k, side):
        end = min(begin + side, k)
        for lane in range(side):
            i = begin + lane
            is_searched = i < end and limits[i] >= 0 and (at_targets.size == 0 or list_of[i, 0] < list_of[i, 1])
            ends[lane] = limits[i] if is_searched else -1
            next_target[lane] = list_of[i, 0] if i < end else 0
        while True:
            of_line = sources[begin:end], ends, lists, list_of[begin:end], next_target
            size, looked, n_seen = _spread(edges, of_line, most - walked, goals, table, heads, place, doublings)
            walked += looked
            if size:
                break
            capacity *= 2
            table = _make_table(capacity, side, limits.dtype, vertex)
        lines, met, seen = table.lines, table.met, table.seen
        while keeps and vertices.size <= first + side * size:
            vertices, kept = _longer(vertices, first), _longer(kept, first)
        for i in range(begin, end):
            stops[i] = lines[0, i - begin] if ends[i - begin] >= 0 else limits[i]
            for j in range(list_of[i, 0], list_of[i, 1] if at_targets.size else 0):
                slot = place[lists[j]]
                at_targets[answers[i] + j - list_of[i, 0]] = lines[slot, i - begin] if slot else unreached
        if keeps != NOTHING:
            row = met[1:size]
            if keeps == GOALS:
                row = np.empty(n_seen, met.dtype)
                for at in range(n_seen):
                    row[at] = met[seen[at]]
            _sort(row)
            for lane in range(side):
                counts[lane] = 0
            for at in range(row.size):
                slot = at + 1 if keeps == ROWS else seen[at]
                for lane in range(side):
                    counts[lane] += (lines[slot, lane] <= lines[0, lane]) & (lines[slot, lane] != unreached)
            for lane in range(side):
                cursors[lane] = first
                if lane < end - begin:
                    sizes[begin + lane] = counts[lane]
                    first += counts[lane] + 1
            for v in row:
                slot = place[v]
                for lane in range(side):  # what is not kept is overwritten: a branch would be predicted badly
                    to, d = cursors[lane], lines[slot, lane]
                    vertices[to], kept[to] = v, d
                    cursors[lane] = to + ((d <= lines[0, lane]) & (d != unreached))
        for at in range(1, size):
            place[met[at]] = 0
        if walked > most:
            break
    return sizes, vertices, kept, stops, walked, capacity


@njit(cache=True, nogil=True)
def _make_table(capacity, side, distance, vertex):
    lines, met = np.empty((capacity, side), distance), np.empty(capacity, vertex)
    due, entries = np.empty(capacity, np.int64), np.empty((4 * capacity, 2), np.int32)
    return _Table(lines, met, due, entries, np.empty(capacity, np.int32))


@njit(cache=True, nogil=True)
def _spread(edges, of_line, most, goals, table, heads, place, doublings):
    """Search from the sources of one line; a limit below 0 stands for none.

    Return 1 more than the vertices reached, the edges looked at, and the number of goals reached, whose lines are in
    ``seen``. Line 0 has the limits, which are nearer once all targets of a source are settled. If there is no room, 0 is
    returned, with all places clear.
    """
    offsets, targets, weights, buckets_per_unit = edges
    sources, limits, lists, list_of, next_target = of_line
    lines, met, due, entries, seen = table
    unreached = limits.dtype.type(np.inf)
    size, n_entries, n_waiting, bucket, walked = 1, 0, 0, np.int64(0), 0
    is_endless, fits, n_seen = False, True, 0
    first_group, groups, needs = goals
    left, most_needed = needs.copy(), 0
    for need in needs:
        most_needed = max(most_needed, need)
    for lane in range(limits.size):
        lines[0, lane] = limits[lane]
        if limits[lane] < 0:
            continue
        next_target[lane] = list_of[lane, 0]
        is_endless |= list_of[lane, 0] == list_of[lane, 1]
        slot = place[sources[lane]]
        if slot == 0:
            slot = size
            place[sources[lane]], met[slot], due[slot] = slot, sources[lane], 0
            clear_line(lines, slot, unreached, doublings)
            entries[n_entries, 0], entries[n_entries, 1] = heads[0], slot
            heads[0] = n_entries
            n_entries += 1
            n_waiting += 1
            size += 1
            if needs.size and first_group[sources[lane] + 1] > first_group[sources[lane]]:
                seen[n_seen] = slot
                n_seen += 1
        lines[slot, lane] = 0
    while fits and walked <= most:
        has_ended = not is_endless
        for lane in range(sources.size):
            last = list_of[lane, 1]
            if limits[lane] < 0 or next_target[lane] >= last:
                continue
            # What is nearer than the bucket is settled.
            while next_target[lane] < last:
                slot = place[lists[next_target[lane]]]
                d = lines[slot, lane]
                if slot == 0 or d == unreached or (n_waiting and d * buckets_per_unit >= bucket):
                    break
                next_target[lane] += 1
            has_ended &= next_target[lane] == last
            if next_target[lane] == last:
                lines[0, lane] = 0
                for j in range(list_of[lane, 0], last):
                    lines[0, lane] = max(lines[0, lane], lines[place[lists[j]], lane])
        if needs.size and n_seen >= most_needed:
            has_ended = True
            for lane in range(sources.size):
                if limits[lane] < 0 or next_target[lane] > 0:
                    continue
                n_left, farthest = needs.size, limits.dtype.type(0)
                for g in range(needs.size):
                    left[g] = needs[g]
                for at in range(n_seen):
                    d = lines[seen[at], lane]
                    if d == unreached or (n_waiting and d * buckets_per_unit >= bucket):
                        continue
                    farthest = max(farthest, d)
                    for i in range(first_group[met[seen[at]]], first_group[met[seen[at]] + 1]):
                        left[groups[i]] -= 1
                        n_left -= left[groups[i]] == 0
                if n_left == 0:
                    next_target[lane], lines[0, lane] = 1, farthest
                has_ended &= n_left == 0
        if has_ended or n_waiting == 0:
            break
        ring = bucket & (_RING - 1)
        while heads[ring] >= 0:
            entry = heads[ring]
            slot, heads[ring] = entries[entry, 1], entries[entry, 0]
            n_waiting -= 1
            if due[slot] != bucket:
                continue  # it was lowered again, and has waited in an earlier bucket
            due[slot] = _NEVER
            u = met[slot]
            begin, end = offsets[u], offsets[u + 1]
            walked += end - begin
            if size + end - begin > met.size or n_entries + end - begin > len(entries):
                fits = False
                break
            for e in range(begin, end):
                v = targets[e]
                other = np.int64(place[v])
                is_new = other == 0
                if is_new:
                    other = size
                    clear_line(lines, other, unreached, doublings)
                    due[other] = _NEVER
                least = lower_by_line(lines, other, slot, weights[e], doublings)
                if least == unreached:
                    continue
                if is_new:
                    place[v], met[other] = other, v
                    size += 1
                    if needs.size and first_group[v + 1] > first_group[v]:
                        seen[n_seen] = other
                        n_seen += 1
                # A line may be looked at too early, never too late.
                wanted = bucket + (_RING - 1)
                if least * buckets_per_unit < wanted:
                    wanted = np.int64(least * buckets_per_unit)
                if wanted < due[other]:
                    due[other] = wanted
                    entries[n_entries, 0], entries[n_entries, 1] = heads[wanted & (_RING - 1)], other
                    heads[wanted & (_RING - 1)] = n_entries
                    n_entries += 1
                    n_waiting += 1
        bucket += 1
    if n_waiting or not fits:
        for at in range(_RING):  # the assignment of a slice would take seconds to compile, for its error message
            heads[at] = -1
    if not fits:
        for at in range(1, size):
            place[met[at]] = 0
    return size if fits else 0, walked, n_seen


@njit(cache=True, nogil=True)
def put_rows(found, kept, sizes, starts, vertices, distance):
    """Copy rows of ``search_sums`` to where each one is to start."""
    at = 0
    for i in range(sizes.size):
        to = starts[i]
        for j in range(sizes[i]):
            vertices[to + j], distance[to + j] = found[at + j], kept[at + j]
        at += sizes[i] + 1


@njit(cache=True, nogil=True)
def search_hops(edges, wanted, is_target, stamp):
    """BFS from each source; parameters and results as of ``search_sums``, with hops in int32.

    ``is_target``, uint8 of shape (n_vertices,), is 0 before and after. ``stamp``, int32 of shape (n_vertices + 1,), is 0 at
    first; its last one is the largest that a search has set, and later ones set larger ones.
    """
    sources, limits, lists, list_of, keeps, at_targets, answers, most, goals = wanted
    k, n, vertex = sources.size, stamp.size - 1, edges[1].dtype
    first_group, _, needs = goals
    left = needs.copy()
    sizes, stops = np.zeros(k, np.int64), limits.copy()
    vertices, kept = np.empty(max(64, 4 * k), vertex), np.empty(max(64, 4 * k), stamp.dtype)
    first = walked = np.int64(0)  # of one type in each call: a function is compiled for each type of an argument
    for i in range(k):
        if limits[i] < 0 or (at_targets.size and list_of[i, 0] == list_of[i, 1]):
            first += 1
            continue
        while True:
            missing = np.int64(needs.size)
            for g in range(needs.size):
                left[g] = needs[g]
            for j in range(list_of[i, 0], list_of[i, 1]):
                missing += is_target[lists[j]] == 0
                is_target[lists[j]] = 1
            if stamp[n] > np.iinfo(np.int32).max - n - 2:
                for v in range(n + 1):
                    stamp[v] = 0
            base = stamp[n] + 1
            places = vertices[first:], kept[first:]
            last, looked, limit, n_levels = _bfs(
                edges,
                sources[i],
                limits[i],
                missing,
                most - walked,
                keeps == COUNTS,
                places,
                base,
                is_target,
                stamp,
                goals,
                left,
            )
            stamp[n] = base + n_levels
            for j in range(list_of[i, 0], list_of[i, 1]):
                is_target[lists[j]] = 0
            if last >= 0:
                break
            vertices, kept = _longer(vertices, first), _longer(kept, first)
        walked += looked
        for j in range(list_of[i, 0], list_of[i, 1] if at_targets.size else 0):
            at_targets[answers[i] + j - list_of[i, 0]] = max(stamp[lists[j]] - base, -1)
        if keeps == GOALS:
            n_seen = 0
            for at in range(first, first + last):
                v = vertices[at]
                vertices[first + n_seen] = v
                n_seen += first_group[v + 1] > first_group[v]
            last = n_seen
        if keeps in (ROWS, GOALS):
            _sort(vertices[first : first + last])
            for at in range(first, first + last):
                kept[at] = stamp[vertices[at]] - base
        elif keeps == COUNTS:
            last = n_levels
        sizes[i], stops[i] = last if keeps else 0, limit
        first += sizes[i] + 1
        if walked > most:
            break
    return sizes, vertices, kept, stops, walked


@njit(cache=True, nogil=True)
def _bfs(edges, source, limit, missing, most, only_counts, places, base, is_target, stamp, goals, left):
    """Search from one source, and stamp what is found with the base and the hops to it.

    Return how many vertices are found, or -1 if there is no room for them; the edges walked; the limit, which is nearer once
    all targets are settled; and the number of levels. The number of vertices at each level is stored in ``counts``. If these
    are all that is wanted, those of the level at the limit need not be found again.
    """
    (offsets, targets), (queue, counts), (first_group, groups, _) = edges, places, goals
    if queue.size < 2:
        return -1, 0, limit, 0
    if missing > 0 and is_target[source] == 1:
        is_target[source] = 2
        missing -= 1
        limit = limit if missing else 0
    for i in range(first_group[source] if left.size else 0, first_group[source + 1] if left.size else 0):
        left[groups[i]] -= 1
        missing -= left[groups[i]] == 0
        limit = limit if missing else 0
    queue[0], counts[0] = source, 1
    stamp[source] = base
    at = walked = level = 0
    last = end = 1
    while at < end and level < limit and walked <= most:
        level += 1
        mark = base + level
        if only_counts and missing == 0 and level == limit:
            n_new = 0
            for i in range(at, end):
                u = queue[i]
                walked += offsets[u + 1] - offsets[u]
                for e in range(offsets[u], offsets[u + 1]):
                    v = targets[e]
                    known = stamp[v]
                    n_new += known < base
                    stamp[v] = max(known, base)
            if level >= counts.size - 1:
                return -1, 0, limit, level
            counts[level] = n_new
            level -= n_new == 0
            break
        while at < end:
            u = queue[at]
            at += 1
            first_edge, last_edge = offsets[u], offsets[u + 1]
            # Each of these loads misses the cache where few searches pass a vertex: they begin before they are needed.
            if at + _PREFETCH_DISTANCE < last:
                prefetch_line(targets, offsets[queue[at + _PREFETCH_DISTANCE]], ALONE)
            walked += last_edge - first_edge
            if last + last_edge - first_edge >= queue.size - 1:
                return -1, 0, limit, level
            for e in range(first_edge, last_edge):
                # Every neighbor is written to the queue, and stays there if it is new. A branch would be predicted badly.
                v = targets[e]
                known = stamp[v]
                queue[last] = v
                prefetch_line(offsets, v, ALONE)
                is_new = known < base
                stamp[v] = mark if is_new else known
                last += is_new
                if missing > 0 and is_target[v] == 1:
                    is_target[v] = 2
                    missing -= 1
                    limit = limit if missing else level
                if is_new and left.size:
                    for i in range(first_group[v], first_group[v + 1]):
                        left[groups[i]] -= 1
                        if left[groups[i]] == 0:
                            missing -= 1
                            limit = limit if missing else level
        counts[level] = last - end
        level -= last == end
        end = last
    return last, walked, limit, level + 1


@njit(cache=True, nogil=True)
def has_overflow(offsets, targets, weights, vertices, first, last, distance):
    """Return whether an edge leads to a vertex that is reached at no finite distance."""
    for i in range(first, last):
        for e in range(offsets[vertices[i]], offsets[vertices[i] + 1]):
            if np.isinf(distance[vertices[i]] + weights[e]) and np.isinf(distance[targets[e]]):
                return True
    return False


@njit(cache=True, nogil=True)
def _sort(row):
    """Sort vertex numbers by their digits, the lowest one first."""
    if row.size <= _FEW:
        for i in range(1, row.size):
            v, j = row[i], i
            while j > 0 and row[j - 1] > v:
                row[j] = row[j - 1]
                j -= 1
            row[j] = v
        return
    one, other, shift, is_here, low, high = row, np.empty_like(row), 0, True, row[0], row[0]
    for v in row:
        low, high = min(low, v), max(high, v)
    bits = _DIGITS[1 if row.size > _MANY else 0]
    mask = (1 << bits) - 1
    while (high - low) >> shift:
        places = np.zeros(mask + 2, np.int64)
        for v in one:
            places[(((v - low) >> shift) & mask) + 1] += 1
        for digit in range(mask + 1):
            places[digit + 1] += places[digit]
        for v in one:
            digit = ((v - low) >> shift) & mask
            other[places[digit]] = v
            places[digit] += 1
        one, other, shift, is_here = other, one, shift + bits, not is_here
    if not is_here:
        for at in range(row.size):
            row[at] = one[at]


@njit(cache=True, nogil=True)
def _longer(array, size):
    longer = np.empty(2 * array.size, array.dtype)
    for i in range(size):
        longer[i] = array[i]
    return longer


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
def sums_within(next_item, n_items, rows, wanted, n, exact, rounded):
    """``cpu.opportunities.sums`` of rows, into ``exact`` and ``rounded`` of shape (k, n_attributes, n_cutoffs)."""
    row_offsets, vertices, distance = rows
    lowest, bounds, integers, floats, decay, parameter = wanted
    places, values, weights = np.empty(64, np.int64), np.empty(64), np.empty(64)
    within = np.empty((bounds.size + 1, len(integers)), np.int64)
    scratch_places, scratch_values = np.empty(PIECE, np.int64), np.empty(PIECE)
    while True:
        chunk = atomic_add(next_item, 0, 1)
        if chunk >= n_items:
            return
        for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, row_offsets.size - 1)):
            begin, end = row_offsets[i], row_offsets[i + 1]
            if len(integers):  # into the smallest cutoff that holds the vertex, and then up
                for c in range(bounds.size + 1):
                    for a in range(len(integers)):
                        within[c, a] = 0
                for at in range(begin, end):
                    v, d, c = vertices[at], distance[at], 0
                    for bound in bounds:  # all of them: a branch would be predicted badly
                        c += d > bound
                    c = c if lowest <= d else bounds.size
                    for a in range(len(integers)):
                        within[c, a] += integers[a, v]
                for a in range(len(integers)):
                    total = np.int64(0)
                    for c in range(bounds.size):
                        total += within[c, a]
                        exact[i, a, c] = total
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
                weights[at - begin] = weight_at(np.float64(distance[at]), decay, parameter) if near else 1.0
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
    """``distance_stats.count_bins`` of rows."""
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
def checksums(next_item, n_items, row_offsets, vertices, bits, sources, sums):
    """``search.results.checksum`` of each row; ``bits`` are those of the distances as unsigned integers."""
    while True:
        chunk = atomic_add(next_item, 0, 1)
        if chunk >= n_items:
            return
        for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, row_offsets.size - 1)):
            total = np.uint64(0)
            for at in range(row_offsets[i], row_offsets[i + 1]):
                total += mix_one(
                    mix_one(mix_one(np.uint64(vertices[at]) + ODD) ^ np.uint64(bits[at])) + np.uint64(sources[i])
                )
            sums[i] = total


@njit(cache=True, nogil=True)
def point_back(offsets, targets, weights, sources, row_offsets, vertices, distance, place, predecessor):
    """Set the predecessors of rows, and return how many vertices have none: those of a cycle of edges of length 0.

    It is the smallest vertex with an edge that explains the distance among those that are nearer, or that are as many edges
    of length 0 closer to such a vertex. Weights are empty for hops; ``place`` is 0, before and after.
    """
    one, n_lost = weights.dtype.type(1), 0
    row, layer, queue = np.empty(64, distance.dtype), np.empty(64, np.int32), np.empty(64, np.int64)
    for i in range(sources.size):
        begin, size = row_offsets[i] - 1, row_offsets[i + 1] - row_offsets[i] + 1
        if size > row.size:
            row, layer, queue = (
                np.empty(2 * size, distance.dtype),
                np.empty(2 * size, np.int32),
                np.empty(2 * size, np.int64),
            )
        row[0] = -1  # of what is not in the row
        farthest = row[0]
        for at in range(1, size):
            row[at], predecessor[begin + at] = distance[begin + at], -1
            farthest = max(farthest, row[at])
            place[vertices[begin + at]] = at
        n_left = size - 1
        if place[sources[i]]:
            predecessor[begin + place[sources[i]]] = sources[i]
            n_left -= 1
        for at in range(1, size):
            u, d = vertices[begin + at], row[at]
            if d < farthest:
                for e in range(offsets[u], offsets[u + 1]):
                    other, further = np.int64(place[targets[e]]), d + (weights[e] if weights.size else one)
                    # Vertices ascend: the first one is the smallest.
                    if further == row[other] and d < further and predecessor[begin + other] < 0:
                        predecessor[begin + other] = u
                        n_left -= 1
        first = last = depth = 0
        if n_left:
            for at in range(1, size):
                layer[at], queue[last] = -1, at
                if predecessor[begin + at] >= 0:
                    layer[at] = 0
                    last += 1
        while first < last:
            depth += 1
            end = last
            for j in range(first, end):
                at = queue[j]
                u = vertices[begin + at]
                for e in range(offsets[u], offsets[u + 1]):
                    other, further = np.int64(place[targets[e]]), row[at] + (weights[e] if weights.size else one)
                    if further == row[other] and layer[other] < 0:
                        layer[other], queue[last] = depth, other
                        last += 1
                        predecessor[begin + other] = u
                        n_left -= 1
                    elif further == row[other] and layer[other] == depth:
                        predecessor[begin + other] = min(predecessor[begin + other], u)
            first = end
        n_lost += n_left
        for at in range(1, size):
            place[vertices[begin + at]] = 0
    return n_lost


@njit(cache=True, nogil=True)
def walk_back(row_offsets, vertices, predecessor, list_offsets, lists, place, sizes):
    """Return the paths of rows to the targets in their lists, one after the other, and set the vertices of each.

    A target that is not in the row has no path. ``place`` is 0, before and after.
    """
    paths, first = np.empty(64, vertices.dtype), np.int64(0)
    for i in range(row_offsets.size - 1):
        begin = row_offsets[i] - 1
        for at in range(row_offsets[i], row_offsets[i + 1]):
            place[vertices[at]] = at - begin
        for j in range(list_offsets[i], list_offsets[i + 1]):
            v, before, size = lists[j], np.int64(-1), np.int64(0)
            while place[v] and v != before:  # the source is its own predecessor
                before, v, size = v, np.int64(predecessor[begin + place[v]]), size + 1
            while paths.size < first + size:
                paths = _longer(paths, first)
            first, v, sizes[j] = first + size, lists[j], size
            for step in range(size):
                paths[first - 1 - step] = v
                v = np.int64(predecessor[begin + place[v]])
        for at in range(row_offsets[i], row_offsets[i + 1]):
            place[vertices[at]] = 0
    return paths[:first]


@njit(cache=True, nogil=True)
def check(offsets, targets, weights, sources, row_offsets, vertices, distance, limits, place, findings, predecessor):
    """Check rows by the rules of ``certificate``, over the vertices that they hold and the edges that leave these.

    C1: the source is at 0. C2: vertices ascend, and distances are numbers from 0 up to the limit. C3: no edge that leaves a
    vertex of the row allows a distance within the limit that is shorter than that of the vertex it leads to, or leads to one
    that is not in the row. C4: an edge from a vertex of the row explains the distance of each vertex but the source. C5: so
    does a chain of such edges that begins at the source, also along edges of length 0. A vertex that is not in the row is
    then farther than the limit: on a shortest path to it, the edge to the first vertex that is not in the row breaks C3.
    With predecessors, those of C4 and C5 are edges from the predecessors, and that of the source is the source.

    Parameters
    ----------
    weights : array
        0 or more; of shape (0,) for hops.
    limits : array of shape (k,), of the type of distances
    place : int32 array of shape (n_vertices,)
        0 in each place, before and after.
    findings : int64 array of shape (5, 3)
        For each rule the number of violations, and the position of the source and the vertex of an example. They are added.
    predecessor : array of the length of ``vertices``, or None
    """
    one = weights.dtype.type(1)
    row, state, queue = np.empty(64, distance.dtype), np.zeros(64, np.uint8), np.empty(64, np.int64)
    for i in range(sources.size):
        begin, end = row_offsets[i], row_offsets[i + 1]
        is_sound, has_source = True, False
        for at in range(begin, end):
            v, d = vertices[at], distance[at]
            ascends = v >= 0 and v < place.size and (at == begin or vertices[at - 1] < v)
            if not (ascends and d >= 0 and d <= limits[i] and d < np.inf) or (weights.size and np.signbit(np.float64(d))):
                note(findings, C2, i, max(0, min(v, place.size - 1)))
                is_sound = False
            if v == sources[i]:
                has_source = True
                if d != 0:
                    note(findings, C1, i, v)
                if predecessor is not None and predecessor[at] != v:
                    note(findings, C1, i, v)
        if limits[i] >= 0 and not has_source:
            note(findings, C1, i, sources[i])
        if not is_sound:
            continue
        size = end - begin + 1
        if size > row.size:
            row, state, queue = (
                np.empty(2 * size, distance.dtype),
                np.zeros(2 * size, np.uint8),
                np.empty(2 * size, np.int64),
            )
        row[0] = -1  # of what is not in the row
        for at in range(1, size):
            row[at] = distance[begin + at - 1]
            place[vertices[begin + at - 1]] = at
        state[place[sources[i]]] = _EXPLAINED
        for at in range(1, size):
            u, d, is_broken = vertices[begin + at - 1], row[at], False
            if weights.size == 0 and d >= limits[i]:
                continue  # one hop more is beyond the limit
            for e in range(offsets[u], offsets[u + 1]):  # without branches, which would be predicted badly
                other, further = place[targets[e]], d + (weights[e] if weights.size else one)
                is_broken |= (further < row[other]) | ((other == 0) & (further <= limits[i]))
                is_equal = further == row[other]
                if predecessor is not None:
                    is_equal &= predecessor[begin + other - 1] == u
                # What a nearer vertex does not explain waits until a chain from the source reaches it.
                state[other] |= _WAITS * is_equal | _EXPLAINED * (is_equal & (d < further))
            for e in range(offsets[u], offsets[u + 1] if is_broken else offsets[u]):
                other, further = place[targets[e]], d + (weights[e] if weights.size else one)
                if further < row[other] or (other == 0 and further <= limits[i]):
                    note(findings, C3, i, targets[e])
        first = last = 0
        for at in range(1, size):
            last += state[at] == _WAITS
        if last:
            last = 0
            for at in range(1, size):
                queue[last] = at
                last += state[at] >= _EXPLAINED
        while first < last:
            at = queue[first]
            u, d = vertices[begin + at - 1], row[at]
            first += 1
            for e in range(offsets[u], offsets[u + 1]):
                other = np.int64(place[targets[e]])
                is_equal = d + (weights[e] if weights.size else one) == row[other]
                if predecessor is not None:
                    is_equal &= predecessor[begin + other - 1] == u
                if state[other] == _WAITS and is_equal:
                    state[other] = _EXPLAINED
                    queue[last] = other
                    last += 1
        for at in range(1, size):
            if state[at] < _EXPLAINED:
                note(findings, C5 if state[at] == _WAITS else C4, i, vertices[begin + at - 1])
            place[vertices[begin + at - 1]], state[at] = 0, 0


@njit(cache=True, nogil=True)
def note(findings, rule, i, v):
    if findings[rule, 0] == 0:
        findings[rule, 1], findings[rule, 2] = i, v
    findings[rule, 0] += 1
