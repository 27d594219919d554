"""Searches that touch only what they reach, and what is computed of their results: rows of vertices
and distances.

Sources near each other are searched from together: they share a line, in which each has a lane. A
vertex that one of them reaches gets a slot of a table, with one tentative distance per lane. A
thread keeps an array ``place`` over all vertices from search to search, with the slot of each
vertex, and 0 for vertices without one. A search sets the places of the vertices that it reaches and
clears them again, so its time depends on what it reaches and not on the graph.

A row is the vertices that one source reaches, in ascending order, with their distances.
``search.sparse`` holds rows. Functions of rows that run on several threads take ``next_item``, a
counter from which each thread takes its next chunk of ``CHUNK`` rows, of ``n_items`` in all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .atomics import atomic_add
from .compiled import njit
from .opportunities import NO_DECAY, weight_at
from .simd_distances import lower_by_line
from .simd_statistics import PIECE
from .simd_sums import clear_line, prefetch_line

# Tuples whose length n says, by its type, that a line has 2^n numbers (``simd_distances``): 16
# sources that are searched from together, or one alone.
LINE: tuple[int, ...] = (0,) * 4
ALONE: tuple[int, ...] = ()
# What rows keep, as ``Wanted.keeps``: no rows; all vertices that are reached; the number of
# vertices at each number of hops in place of these; or the goals among them.
NOTHING, ROWS, COUNTS, GOALS = range(4)


class Goals(NamedTuple):
    """Groups of vertices: a search ends once it has settled as many vertices of each group as the
    group needs, the nearest ones.

    Vertices as far as the last vertex that was needed are settled, too. A vertex is a goal if it is
    in a group. All arrays are empty where searches have no goals.
    """

    # int32 of shape (n_vertices + 1,): vertex v is in groups[first_group[v]:first_group[v + 1]]
    first_group: np.ndarray
    groups: np.ndarray  # int32: numbers of groups from 0, vertex by vertex
    needs: np.ndarray  # int32 of shape (n_groups,): how many vertices of each group must be settled


class Wanted(NamedTuple):
    """What is wanted of searches from several sources."""

    # int64 array of shape (k,): vertex numbers. Adjacent ones are searched from together, as a
    # line; they should be near each other, since such a search visits all that any of them reaches.
    sources: np.ndarray
    # of shape (k,), of the type of distances: the largest distance of each search, inclusive; below
    # 0 for no search
    limits: np.ndarray
    lists: np.ndarray  # int64: vertex numbers of the targets of all sources
    # int64 array of shape (k, 2): where in ``lists`` the targets of each source begin and end. A
    # search ends when its targets are settled; one without targets goes up to its limit.
    list_of: np.ndarray
    # one of NOTHING, ROWS, COUNTS and GOALS: what rows are returned. Their vertices ascend. COUNTS
    # is for hops alone
    keeps: int
    # of the type of distances, output: the distances at the targets, those of source i from
    # ``answers[i]`` on. If it is not empty, sources without targets are not searched from
    at_targets: np.ndarray
    answers: np.ndarray  # int64 array of shape (k,)
    # the number of edges after which the searches give up: a limit for all of them together
    most: int
    goals: Goals  # what ends a search that has no targets; empty arrays without goals


class BucketedEdges(NamedTuple):
    """Edges with weights of 0 or more, and how wide the buckets are in which vertices wait."""

    # offsets, targets, weights: of the CSR, with weights of the type of distances
    offsets: np.ndarray
    targets: np.ndarray
    weights: np.ndarray
    # of the type of distances: a distance d waits in bucket floor(d * buckets_per_unit)
    buckets_per_unit: float


class Rows(NamedTuple):
    """The vertices that several sources reach, one row after the other."""

    # int64 array of shape (k + 1,): the row of source i is elements offsets[i] to offsets[i + 1] -
    # 1
    offsets: np.ndarray
    vertices: np.ndarray  # vertex numbers, ascending in each row
    distance: np.ndarray  # of the same length: the distance of each vertex from the row's source


class CheckedRows(NamedTuple):
    """Rows that ``check`` takes, with the sources and limits of their searches."""

    sources: np.ndarray  # integers of shape (k,): vertex numbers
    # offsets, vertices, distance: as in ``Rows``
    offsets: np.ndarray
    vertices: np.ndarray
    distance: np.ndarray
    # of shape (k,), of the type of the distances: the largest distance of each row, inclusive;
    # below 0 if there was no search
    limits: np.ndarray


class _Table(NamedTuple):
    """The slots of vertices, as many as searches of one line of sources are likely to need.

    Each vertex that is reached has a slot, with one tentative distance per lane, which is a source
    of the line. Slot 0 is no vertex's: it has the limit of each lane. Slots whose edges are to be
    relaxed wait in buckets by their distance. ``_RING`` buckets are held at a time, as a ring:
    bucket b is in place b modulo ``_RING``. ``_Counts`` says how many slots, entries and goals are
    in use.
    """

    # of shape (capacity, lanes), of the type of distances: the tentative distances of each slot
    lines: np.ndarray
    met: np.ndarray  # of shape (capacity,): the vertex of each slot
    # int64 (capacity,): the number of the bucket in which each slot waits; _NEVER if in none
    due: np.ndarray
    # int32 (_RING,): the first entry in each place of the ring, -1 if the bucket is empty
    heads: np.ndarray
    # int32 (4 capacity, 2): entries of buckets, linked lists: the next entry of the bucket, or -1,
    # and the slot that waits. An entry counts only if the slot is still due in that bucket
    entries: np.ndarray
    seen: np.ndarray  # int32 (capacity,): the slots of goals, in the order they were reached


class _Line(NamedTuple):
    """The sources that are searched from together: at most as many as a line has lanes."""

    sources: np.ndarray  # vertex numbers, one per lane, but fewer in the last line
    # one per lane, of the type of distances: the largest distance, inclusive; below 0 for lanes
    # without a search
    limits: np.ndarray
    # lists, list_of: as in ``Wanted``, of these sources
    lists: np.ndarray
    list_of: np.ndarray
    # int64, one per lane, changed: the position in ``lists`` of the first target that may not be
    # settled. With goals there are no targets, and 1 says that the lane has ended
    next_target: np.ndarray


class _Ends(NamedTuple):
    """What ends a search for hops once it is found: all its targets, or enough goals."""

    # uint8 (n_vertices,): 1 for targets, and 2 once they are found; 0 for other vertices
    is_target: np.ndarray
    goals: Goals  # empty arrays without goals
    # int32 (n_groups,), changed: how many goals each group still needs; below 0 where more were
    # found than needed
    needs_left: np.ndarray


class _HopSearch(NamedTuple):
    """A search for hops from one source."""

    source: int  # a vertex number
    limit: int  # the largest number of hops, inclusive
    most: int  # the number of edges after which the search gives up
    # whether the numbers of vertices per level are all that is wanted, so that those of the level
    # at the limit need not be found again
    only_counts: bool


class _Stamps(NamedTuple):
    """What the vertices that are found are stamped with: ``base`` plus their hops.

    Each search has a larger base than all stamps before, so that nothing need be cleared.
    """

    # int32 of shape (n_vertices + 1,): the stamp of each vertex; the last element is the largest
    # stamp that was set so far
    of_vertices: np.ndarray
    base: int  # the stamp of the source; smaller stamps are of earlier searches
    level: int  # the stamp of the vertices of the level that is to be found


class _RowScratch(NamedTuple):
    """What is known of a row while it is checked.

    Places number the vertices of the row from 1 on; place 0 stands for all that are not in it.
    """

    row: np.ndarray  # the distance at each place, and -1 at place 0, which no distance is
    # uint8: the bits of each place: _WAITS if an edge explains its distance, and _EXPLAINED if a
    # nearer vertex or a chain from the source does
    state: np.ndarray
    place: np.ndarray  # int32 (n_vertices,): the place of each vertex, 0 without one


class _Counts(NamedTuple):
    """How far the search of a line has come: what is in use of ``_Table``."""

    size: int  # the number of the next slot: 1 more than the number of vertices reached
    n_entries: int  # entries that were made, also those that were taken out of their buckets since
    n_waiting: int  # entries that wait, also those of slots that are due in an earlier bucket now
    n_seen: int  # goals reached, whose slots are in ``_Table.seen``


_NONE = np.zeros(0, np.int32)
NO_GOALS = Goals(_NONE, _NONE, _NONE)
CHUNK = 64  # rows that a thread takes at a time
_MAX_INSERTION = 24  # vertices of a row up to which sorting by insertion is faster
_MAX_SHORT_DIGITS = 512  # vertices of a row up to which sorting by short digits is faster
# bits of a digit of a radix sort, for short and for long rows
_SHORT_DIGIT = 6
_LONG_DIGIT = 10
# The largest number of vertices among which the sources of a line are looked for, and the number of
# vertices that may be looked at per source found.
_LOOK = 256
LOOKS = 8
_RING = 1 << 10  # buckets that are held at a time, a power of two
# The edges of a vertex are prefetched when the vertex so many places before it in a queue is
# visited.
_PREFETCH_DISTANCE = 2
_NEVER = np.int64(1) << 62  # a bucket after all others
C1, C2, C3, C4, C5 = range(5)  # the rules of ``check``, as rows of its findings
# bits of ``_RowScratch.state``
_WAITS = 1
_EXPLAINED = 2


@njit(cache=True, nogil=True)
def near_each_other(offsets, targets, sources, place, mark):
    """Order sources such that those that share a line are near each other.

    From one source on, a queue looks for other sources nearby, at ``LOOKS`` vertices for each
    source found.

    Parameters
    ----------
    offsets, targets : integer arrays
        Of the CSR.
    sources : integer array of shape (k,)
        Vertex numbers, which ascend.
    place, mark : integer arrays of shape (n_vertices,)
        Scratch memory: 0 in each place, before and after.

    Returns
    -------
    order : int64 array of shape (k,)
        Positions in ``sources``.
    n_near : int
        How many sources were found near an earlier one.
    """
    n = sources.size
    line_size = 1 << len(LINE)
    n_near = 0
    order = np.empty(n, np.int64)
    queue = np.empty(_LOOK, np.int64)
    # While sources are placed, ``place`` has 1 more than the position of a source that has no line
    # yet, and 0 for all other vertices. It is filled backward, so that of a source that is there
    # several times the first position remains.
    for i in range(n - 1, -1, -1):
        place[sources[i]] = i + 1

    # ``looks_left`` is how many more vertices may be looked at before a new start is chosen.
    n_placed = first_unplaced = looks_left = 0
    start = np.int64(-1)
    while n_placed < n:
        # Begin at the source that did not fit into the last line, or at the next one without a
        # line.
        if start < 0:
            while place[sources[first_unplaced]] == 0:
                first_unplaced += 1
            start = sources[first_unplaced]
        queue[0] = start
        mark[start] = 1
        head = 0
        tail = 1
        line_end = (n_placed // line_size + 1) * line_size
        start = np.int64(-1)

        # Place the sources that the queue meets, and all that are equal to them.
        while head < tail and looks_left >= 0:
            u = queue[head]
            head += 1
            looks_left -= 1
            i = place[u] - 1
            if i >= 0:
                if n_placed >= line_end:
                    start = u
                    break
                place[u] = 0
                looks_left += LOOKS
                n_near += head > 1
                while i < n and sources[i] == u:
                    order[n_placed] = i
                    n_placed += 1
                    i += 1
            for e in range(offsets[u], min(offsets[u + 1], offsets[u] + _LOOK)):
                v = targets[e]
                if mark[v] == 0 and tail < _LOOK:
                    mark[v] = 1
                    queue[tail] = v
                    tail += 1

        looks_left = max(looks_left, 0)  # looks that are left are kept, but no debt
        for i in range(tail):
            mark[queue[i]] = 0
    return order, n_near


@njit(cache=True, nogil=True)
def search_sums(edges, wanted, capacity, place, doublings):
    """Search from each source, up to its limit or until its targets are settled.

    Sources of one line are searched from together. A vertex that such a search reaches has a slot
    with its distance from each source. One look at an edge serves all sources of the line.

    Parameters
    ----------
    edges : BucketedEdges
    wanted : Wanted
    capacity : int
        The number of vertices that searches of a line are likely to reach.
    place : int32 array of shape (n_vertices,)
        The slot of each vertex; 0 without one, as in each place before and after.
    doublings : tuple
        As in ``simd_distances``.

    Returns
    -------
    sizes : int64 array of shape (k,)
        Vertices that each search reaches.
    vertices, distances : arrays
        The rows, source by source, with one place that is not used after each row.
    stops : array of shape (k,)
        Distance up to which the row is complete: the limit, or less if a search has settled its
        targets.
    edges : int
        Edges that were looked at; more than ``most`` if the searches gave up.
    capacity : int
        The number of vertices that there was room for at the end, for the next call.
    """
    limits = wanted.limits
    vertex = edges.targets.dtype
    k = wanted.sources.size
    side = 1 << len(doublings)  # lanes of a line
    sizes = np.zeros(k, np.int64)
    stops = limits.copy()
    vertices = np.empty(4 * side, vertex)
    distances = np.empty(4 * side, limits.dtype)
    # Scratch, with an element per lane: its limit, its ``next_target`` of ``_Line``, where its next
    # vertex is written, and the number of vertices in its row.
    lane_limits = np.zeros(side, limits.dtype)
    next_target = np.zeros(side, np.int64)
    cursors = np.zeros(side, np.int64)
    counts = np.zeros(side, np.int32)
    # Arrays that may grow in the inner loop would make it twice as slow: a search that lacks room
    # begins again.
    table = _make_table(capacity, side, limits.dtype, vertex)
    # Of one type in each call: a function is compiled for each type of an argument.
    row_begin = n_edges = np.int64(0)
    for begin in range(0, k, side):
        end = min(begin + side, k)
        list_of = wanted.list_of[begin:end]
        line = _Line(wanted.sources[begin:end], lane_limits, wanted.lists, list_of, next_target)

        # Search, with a table of twice the size until it has room for all that is reached.
        while True:
            _set_limits(wanted, begin, end, lane_limits)
            size, n_looked, n_seen = _search_line(
                edges, line, wanted.most - n_edges, wanted.goals, table, place, doublings
            )
            n_edges += n_looked
            if size:
                break
            capacity *= 2
            table = _make_table(capacity, side, limits.dtype, vertex)
        _write_stops(wanted, begin, end, table, place, lane_limits, stops)

        # Write the rows of the line side by side: each lane has a cursor in the arrays of all rows.
        if wanted.keeps != NOTHING:
            while vertices.size <= row_begin + side * size:
                vertices = _lengthen(vertices, row_begin)
                distances = _lengthen(distances, row_begin)
            row = _sort_reached(wanted.keeps, table, size, n_seen)
            _count_per_lane(wanted.keeps, table, row.size, counts)
            for lane in range(side):
                cursors[lane] = row_begin
                if lane < end - begin:
                    sizes[begin + lane] = counts[lane]
                    row_begin += counts[lane] + 1
            _write_rows(table, row, place, cursors, vertices, distances)

        for slot in range(1, size):
            place[table.met[slot]] = 0
        if n_edges > wanted.most:
            break
    return sizes, vertices, distances, stops, n_edges, capacity


@njit(cache=True, nogil=True)
def _set_limits(wanted, begin, end, lane_limits):
    """Write to ``lane_limits`` the limit of each lane of the line of sources ``begin`` to
    ``end - 1``: below 0 where no search is wanted, as in lanes without a source.
    """
    needs_targets = wanted.at_targets.size > 0
    for lane in range(lane_limits.size):
        i = begin + lane
        lane_limits[lane] = -1
        if i >= end or (needs_targets and wanted.list_of[i, 0] == wanted.list_of[i, 1]):
            continue
        if wanted.limits[i] >= 0:
            lane_limits[lane] = wanted.limits[i]


@njit(cache=True, nogil=True)
def _write_stops(wanted, begin, end, table, place, lane_limits, stops):
    """Write where the search of each source from ``begin`` to ``end - 1`` has ended into ``stops``,
    and its distances at its targets into ``wanted.at_targets``.

    Line 0 of ``table`` has the limits of the lanes, which are nearer where targets ended a search.
    ``lane_limits`` are the limits before the search, and ``place`` has the slot of each vertex. If
    ``wanted.at_targets`` is empty, only ``stops`` is written.
    """
    unreached = wanted.limits.dtype.type(np.inf)
    for i in range(begin, end):
        lane = i - begin
        if lane_limits[lane] >= 0:
            stops[i] = table.lines[0, lane]
        if wanted.at_targets.size == 0:
            continue
        first = wanted.list_of[i, 0]
        for j in range(first, wanted.list_of[i, 1]):
            distance = unreached
            slot = place[wanted.lists[j]]
            if slot:  # 0 stands for a vertex that no lane has reached
                distance = table.lines[slot, lane]
            wanted.at_targets[wanted.answers[i] + j - first] = distance


@njit(cache=True, nogil=True)
def _sort_reached(keeps, table, size, n_seen):
    """Return the vertices that rows may hold, in ascending order: all of a table, or its goals.

    ``keeps`` is that of ``Wanted``, and ``size`` and ``n_seen`` are those of ``_Counts``. All
    vertices are sorted in place, so that ``table.met`` no longer has the vertex of each slot.
    """
    row = table.met[1:size]
    if keeps == GOALS:
        row = np.empty(n_seen, table.met.dtype)
        for i in range(n_seen):
            row[i] = table.met[table.seen[i]]
    _sort(row)
    return row


@njit(cache=True, nogil=True)
def _count_per_lane(keeps, table, n_vertices, counts):
    """Count the vertices that each source of a line reaches within its limit, into ``counts``, with
    an element per lane.

    ``keeps`` is as in ``Wanted``. With GOALS the ``n_vertices`` vertices that may count are those
    of ``table.seen``, and else those of the first slots.
    """
    lines = table.lines
    unreached = lines.dtype.type(np.inf)
    for lane in range(counts.size):
        counts[lane] = 0
    for i in range(n_vertices):
        slot = i + 1
        if keeps == GOALS:
            slot = table.seen[i]
        for lane in range(counts.size):
            is_within = lines[slot, lane] <= lines[0, lane]
            counts[lane] += is_within & (lines[slot, lane] != unreached)


@njit(cache=True, nogil=True)
def _write_rows(table, row, place, cursors, vertices, distances):
    """Write the vertices that each source of a line reaches within its limit, from its cursor on,
    with their distances.

    ``row`` has the vertices that may count, ascending, and ``place`` the slot of each vertex.
    ``cursors`` has one place in ``vertices`` and ``distances`` per lane, and moves on. Behind each
    row one place must be free, since it may be overwritten.
    """
    lines = table.lines
    unreached = lines.dtype.type(np.inf)
    for v in row:
        slot = place[v]
        # What is not kept is overwritten: a branch would be predicted badly.
        for lane in range(cursors.size):
            to = cursors[lane]
            d = lines[slot, lane]
            vertices[to] = v
            distances[to] = d
            cursors[lane] = to + ((d <= lines[0, lane]) & (d != unreached))


@njit(cache=True, nogil=True)
def _make_table(capacity, side, distance, vertex):
    """Return an empty table of ``capacity`` slots for lines of ``side`` lanes; ``distance`` and
    ``vertex`` are the types of distances and vertex numbers.
    """
    lines = np.empty((capacity, side), distance)
    met = np.empty(capacity, vertex)
    due = np.empty(capacity, np.int64)
    heads = np.full(_RING, -1, np.int32)
    entries = np.empty((4 * capacity, 2), np.int32)
    return _Table(lines, met, due, heads, entries, np.empty(capacity, np.int32))


@njit(cache=True, nogil=True)
def _search_line(edges, line, max_edges, goals, table, place, doublings):
    """Search from the sources of one line; a lane whose limit is below 0 has no search.

    ``edges`` are ``BucketedEdges``, ``line`` is ``_Line``, ``goals`` are ``Goals``, ``table`` is
    ``_Table``, and ``place`` has the slot of each vertex, 0 in each place before. Vertices whose
    slots were lowered wait in a ring of buckets by the least of their new distances. The search
    ends when none waits, when the targets or the goals of all sources are settled, when it has
    looked at more edges than ``max_edges``, or when the table is full.

    Returns
    -------
    size : int
        1 more than the vertices reached, whose slots are set in ``place``. 0 if the table was full;
        all places are then clear.
    n_edges : int
        Edges that were looked at.
    n_seen : int
        Goals reached, whose slots are in ``table.seen``. Slot 0 of ``table.lines`` has the limits,
        which are nearer where the targets or goals of a source are settled.
    """
    size, n_seen, is_endless = _begin(line, goals, table, place, doublings)
    n_sources = size - 1
    counts = _Counts(size, n_sources, n_sources, n_seen)
    needs_left = goals.needs.copy()
    most_needed = _largest(goals.needs)
    buckets_per_unit = edges.buckets_per_unit
    bucket = np.int64(0)
    n_edges = 0
    fits = True
    while fits and n_edges <= max_edges:
        # A distance in a bucket before ``bound`` is final. If no vertex waits, all distances are.
        bound = _NEVER
        if counts.n_waiting:
            bound = bucket
        are_settled = _settle_targets(line, table, place, buckets_per_unit, bound)
        has_ended = are_settled and not is_endless
        # Goals are looked at only once as many are reached as the most demanding group needs.
        if goals.needs.size and counts.n_seen >= most_needed:
            has_ended = _settle_goals(
                line, goals, table, counts.n_seen, needs_left, buckets_per_unit, bound
            )
        if has_ended or counts.n_waiting == 0:
            break

        fits, counts, looked = _empty_bucket(edges, bucket, goals, table, place, counts, doublings)
        n_edges += looked
        bucket += 1

    # The next search finds the ring empty, or the places clear and a larger table.
    if not fits:
        for slot in range(1, counts.size):
            place[table.met[slot]] = 0
        return 0, n_edges, counts.n_seen
    if counts.n_waiting:
        for ring in range(_RING):  # the assignment of a slice would take seconds to compile
            table.heads[ring] = -1
    return counts.size, n_edges, counts.n_seen


@njit(cache=True, nogil=True)
def _begin(line, goals, table, place, doublings):
    """Give each vertex that is a source of the line a slot at distance 0, which waits in the first
    bucket.

    ``table`` and ``place`` are those of ``_search_line``. Slot 0 gets the limits. Return the number
    of the next slot, how many sources are goals, and whether any source of the line has no targets,
    so that settled targets alone do not end the search.
    """
    heads = table.heads
    unreached = line.limits.dtype.type(np.inf)
    size = 1
    n_seen = 0
    is_endless = False
    for lane in range(line.limits.size):
        table.lines[0, lane] = line.limits[lane]
        if line.limits[lane] < 0:
            continue
        line.next_target[lane] = line.list_of[lane, 0]
        is_endless |= line.list_of[lane, 0] == line.list_of[lane, 1]  # no targets

        # Lanes of one source share a slot, which gets an entry of the first bucket.
        source = line.sources[lane]
        slot = place[source]
        if slot == 0:
            slot = size
            place[source] = slot
            table.met[slot] = source
            table.due[slot] = 0
            clear_line(table.lines, slot, unreached, doublings)
            table.entries[size - 1, 0] = heads[0]
            table.entries[size - 1, 1] = slot
            heads[0] = size - 1
            size += 1
            if goals.needs.size and goals.first_group[source + 1] > goals.first_group[source]:
                table.seen[n_seen] = slot
                n_seen += 1
        table.lines[slot, lane] = 0
    return size, n_seen, is_endless


@njit(cache=True, nogil=True)
def _largest(needs):
    """Return the largest of the counts ``needs``, 0 if there are none."""
    largest = 0
    for need in needs:
        largest = max(largest, need)
    return largest


@njit(cache=True, nogil=True)
def _is_final(d, unreached, buckets_per_unit, bound):
    """Return whether the distance ``d`` is that of a reached vertex and final: no vertex that waits
    can lower it, since its bucket, ``d * buckets_per_unit``, is before ``bound``, the first bucket
    in which one waits.
    """
    return d != unreached and (bound == _NEVER or d * buckets_per_unit < bound)


@njit(cache=True, nogil=True)
def _settle_targets(line, table, place, buckets_per_unit, bound):
    """Skip targets that are settled; a source with no target left ends at the farthest of its
    targets.

    ``line`` is ``_Line``, ``table`` is ``_Table``, and ``place`` has the slot of each vertex.
    ``line.next_target`` moves on, and the limit of a lane, in slot 0, becomes nearer. Distances in
    buckets before ``bound`` are settled; distance d is in bucket floor(d * ``buckets_per_unit``).
    Return whether all targets of all sources are settled; True if no source has targets.
    """
    lines = table.lines
    unreached = line.limits.dtype.type(np.inf)
    are_settled = True
    for lane in range(line.sources.size):
        first = line.list_of[lane, 0]
        last = line.list_of[lane, 1]
        if line.limits[lane] < 0 or line.next_target[lane] >= last:
            continue

        while line.next_target[lane] < last:
            slot = place[line.lists[line.next_target[lane]]]
            if slot == 0 or not _is_final(lines[slot, lane], unreached, buckets_per_unit, bound):
                break
            line.next_target[lane] += 1
        if line.next_target[lane] < last:
            are_settled = False
            continue

        # The farthest target becomes the limit.
        lines[0, lane] = 0  # the limit
        for j in range(first, last):
            lines[0, lane] = max(lines[0, lane], lines[place[line.lists[j]], lane])
    return are_settled


@njit(cache=True, nogil=True)
def _settle_goals(line, goals, table, n_seen, needs_left, buckets_per_unit, bound):
    """End the search of each source for which as many goals as each group needs are settled. Its
    limit becomes the distance of the farthest settled goal.

    ``line`` is ``_Line``; 1 in its ``next_target`` marks a source that has ended. ``n_seen`` goals
    were reached, whose slots are in ``table.seen``. Distances in buckets before ``bound`` are
    settled; distance d is in bucket floor(d * ``buckets_per_unit``). ``needs_left``, of the shape
    of ``goals.needs``, is scratch with any values before. Return whether all sources have ended.
    """
    lines = table.lines
    unreached = line.limits.dtype.type(np.inf)
    have_ended = True
    for lane in range(line.sources.size):
        if line.limits[lane] < 0 or line.next_target[lane] > 0:
            continue
        n_left = goals.needs.size  # groups that still need a goal
        farthest = line.limits.dtype.type(0)
        for g in range(goals.needs.size):
            needs_left[g] = goals.needs[g]

        # Count the settled goals off the needs of their groups.
        for goal in range(n_seen):
            d = lines[table.seen[goal], lane]
            if not _is_final(d, unreached, buckets_per_unit, bound):
                continue
            farthest = max(farthest, d)
            v = table.met[table.seen[goal]]
            for i in range(goals.first_group[v], goals.first_group[v + 1]):
                needs_left[goals.groups[i]] -= 1
                n_left -= needs_left[goals.groups[i]] == 0

        if n_left == 0:
            line.next_target[lane] = 1
            lines[0, lane] = farthest
        have_ended &= n_left == 0
    return have_ended


@njit(cache=True, nogil=True)
def _empty_bucket(edges, bucket, goals, table, place, counts, doublings):
    """Relax the edges of all vertices that wait in a bucket, also of those that come to it
    meanwhile.

    ``bucket`` is its number, ``counts`` is ``_Counts``, and the other arguments are those of
    ``_search_line``. Return whether the table had room, the
    counts after it, and the number of edges that were looked at. Fields are taken out of the tuples
    first: the loop is the hot one, and works on scalars and arrays.
    """
    offsets = edges.offsets
    targets = edges.targets
    weights = edges.weights
    buckets_per_unit = edges.buckets_per_unit
    lines = table.lines
    met = table.met
    due = table.due
    heads = table.heads
    entries = table.entries
    seen = table.seen
    size = counts.size
    n_entries = counts.n_entries
    n_waiting = counts.n_waiting
    n_seen = counts.n_seen
    unreached = lines.dtype.type(np.inf)
    n_edges = 0
    ring = bucket & (_RING - 1)
    while heads[ring] >= 0:
        # Take a slot out of the bucket.
        entry = heads[ring]
        slot = entries[entry, 1]
        heads[ring] = entries[entry, 0]
        n_waiting -= 1
        if due[slot] != bucket:
            continue  # it was lowered again, and has waited in an earlier bucket
        due[slot] = _NEVER
        begin = offsets[met[slot]]
        end = offsets[met[slot] + 1]
        n_edges += end - begin
        # Each edge may need a slot and an entry.
        if size + end - begin > met.size or n_entries + end - begin > len(entries):
            return False, _Counts(size, n_entries, n_waiting, n_seen), n_edges

        # Lower the distances of its neighbors. A new slot remains if a lane has a distance there.
        for e in range(begin, end):
            v = targets[e]
            other = np.int64(place[v])  # the slot of the neighbor
            is_new = other == 0
            if is_new:
                other = size
                clear_line(lines, other, unreached, doublings)
                due[other] = _NEVER
            # The smallest distance that was written, none of them beyond the limit of its lane;
            # ``unreached`` if there was none.
            least = lower_by_line(lines, other, slot, weights[e], doublings)
            if least == unreached:
                continue
            if is_new:
                place[v] = other
                met[other] = v
                size += 1
                if goals.needs.size and goals.first_group[v + 1] > goals.first_group[v]:
                    seen[n_seen] = other
                    n_seen += 1

            # Let the neighbor wait in the bucket of its least new distance, or, beyond the ring, in
            # the last bucket of the ring: a slot may be looked at too early, never too late.
            due_bucket = bucket + (_RING - 1)
            if least * buckets_per_unit < due_bucket:
                due_bucket = np.int64(least * buckets_per_unit)
            if due_bucket < due[other]:
                due[other] = due_bucket
                entries[n_entries, 0] = heads[due_bucket & (_RING - 1)]
                entries[n_entries, 1] = other
                heads[due_bucket & (_RING - 1)] = n_entries
                n_entries += 1
                n_waiting += 1
    return True, _Counts(size, n_entries, n_waiting, n_seen), n_edges


@njit(cache=True, nogil=True)
def put_rows(found, distances, sizes, starts, vertices, distance):
    """Copy rows of ``search_sums`` or ``search_hops`` to where each row is to start.

    ``found``, ``distances`` and ``sizes`` are the vertices, distances and sizes that these return.
    ``starts``, int64 of shape (k,), are positions in ``vertices`` and ``distance``, the output.
    """
    begin = 0
    for i in range(sizes.size):
        to = starts[i]
        for j in range(sizes[i]):
            vertices[to + j] = found[begin + j]
            distance[to + j] = distances[begin + j]
        begin += sizes[i] + 1  # one place after each row is not used


@njit(cache=True, nogil=True)
def search_hops(edges, wanted, is_target, stamp):
    """Find the hops from each source by BFS, up to its limit or until its targets are found.

    Sources are searched from one after another. A vertex that a search finds is stamped with the
    base of the search plus its hops, which is larger than all stamps of earlier searches.

    Parameters
    ----------
    edges : Neighbors
    wanted : Wanted
        Limits and distances at the targets are hops in int32, -1 where there is no path.
    is_target : uint8 array of shape (n_vertices,)
        0 in each place, before and after.
    stamp : int32 array of shape (n_vertices + 1,)
        0 in each place before the first search. The last element is the largest stamp that a search
        has set; later calls go on from it.

    Returns
    -------
    sizes, vertices, distances, stops, edges
        As ``search_sums`` returns them.
    """
    limits = wanted.limits
    keeps = wanted.keeps
    k = wanted.sources.size
    n = stamp.size - 1
    vertex = edges.targets.dtype
    ends = _Ends(is_target, wanted.goals, wanted.goals.needs.copy())
    sizes = np.zeros(k, np.int64)
    stops = limits.copy()
    vertices = np.empty(max(64, 4 * k), vertex)
    distances = np.empty(max(64, 4 * k), stamp.dtype)
    # Of one type in each call: a function is compiled for each type of an argument.
    row_begin = n_edges = np.int64(0)
    for i in range(k):
        # As ``put_rows`` expects, one place after each row is not used, not even an empty one.
        targets = wanted.lists[wanted.list_of[i, 0] : wanted.list_of[i, 1]]
        if limits[i] < 0 or (wanted.at_targets.size and targets.size == 0):
            row_begin += 1
            continue

        # Search, with arrays of twice the size until they have room for all that is found. The
        # queue and the counts of levels are written where the row begins. ``missing`` is how many
        # targets, and groups of goals, are to be found.
        while True:
            missing = _mark_targets(targets, is_target) + _copy_needs(wanted.goals, ends.needs_left)
            base = _next_base(stamp)
            max_edges = wanted.most - n_edges
            search = _HopSearch(wanted.sources[i], limits[i], max_edges, keeps == COUNTS)
            stamps = _Stamps(stamp, base, base)
            n_reached, n_looked, stop, n_levels = _bfs(
                edges, search, vertices[row_begin:], distances[row_begin:], stamps, missing, ends
            )
            stamp[n] = base + n_levels
            for target in targets:
                is_target[target] = 0
            if n_reached >= 0:
                break
            vertices = _lengthen(vertices, row_begin)
            distances = _lengthen(distances, row_begin)
        n_edges += n_looked

        # Write the hops at the targets, and the row: goals, or the counts of levels that the search
        # has left in ``distances``, or all vertices, sorted.
        if wanted.at_targets.size:
            for j in range(targets.size):
                # The hops; an older stamp is below ``base``, and becomes -1 by the maximum.
                wanted.at_targets[wanted.answers[i] + j] = max(stamp[targets[j]] - base, -1)
        if keeps == GOALS:
            n_reached = _keep_goals(wanted.goals, vertices[row_begin : row_begin + n_reached])
        if keeps == COUNTS:
            n_reached = n_levels
        elif keeps != NOTHING:
            _sort(vertices[row_begin : row_begin + n_reached])
            for entry in range(row_begin, row_begin + n_reached):
                distances[entry] = stamp[vertices[entry]] - base
        if keeps != NOTHING:
            sizes[i] = n_reached
        stops[i] = stop
        row_begin += sizes[i] + 1
        if n_edges > wanted.most:
            break
    return sizes, vertices, distances, stops, n_edges


@njit(cache=True, nogil=True)
def _mark_targets(targets, is_target):
    """Set ``is_target`` to 1 at the targets of a source, and return how many different ones there
    are.
    """
    n_marked = np.int64(0)
    for target in targets:
        n_marked += is_target[target] == 0
        is_target[target] = 1
    return n_marked


@njit(cache=True, nogil=True)
def _copy_needs(goals, needs_left):
    """Copy ``goals.needs`` to ``needs_left``, which a search counts down, and return how many
    groups there are.
    """
    for g in range(goals.needs.size):
        needs_left[g] = goals.needs[g]
    return np.int64(goals.needs.size)


@njit(cache=True, nogil=True)
def _next_base(stamp):
    """Return a stamp that is larger than all that were set. If int32 could overflow during a
    search, all stamps become 0 first.

    ``stamp`` is ``_Stamps.of_vertices``, whose last element is the largest stamp.
    """
    n = stamp.size - 1
    if stamp[n] > np.iinfo(np.int32).max - n - 2:
        for v in range(n + 1):
            stamp[v] = 0
    return stamp[n] + 1


@njit(cache=True, nogil=True)
def _keep_goals(goals, vertices):
    """Move the goals in the array ``vertices`` to its front, and return how many there are."""
    n_goals = 0
    for i in range(vertices.size):
        # Each is written to the next place, and stays there if it is a goal.
        v = vertices[i]
        vertices[n_goals] = v
        n_goals += goals.first_group[v + 1] > goals.first_group[v]
    return n_goals


@njit(cache=True, nogil=True)
def _bfs(edges, search, queue, counts, stamps, missing, ends):
    """Search from one source, and stamp what is found with the base and the hops to it.

    Parameters
    ----------
    edges : Neighbors
    search : _HopSearch
    queue, counts : integer arrays, output
        The vertices that are found, and the number of them at each level. Their lengths limit how
        many vertices and levels a search may find.
    stamps : _Stamps
    missing : int
        How many targets, and groups of goals, are yet to be found.
    ends : _Ends

    Returns
    -------
    tail : int
        Vertices that are found, or -1 if the arrays have no room for them or for the levels.
    n_edges : int
        Edges that were looked at.
    limit : int
        The limit of the search, or the level at which the last target or goal was found.
    n_levels : int
        Levels that hold a vertex, that of the source included.
    """
    source = search.source
    limit = search.limit
    stamp = stamps.of_vertices
    base = stamps.base
    # The source takes a place, and a neighbor is written before it is known whether it stays.
    if queue.size < 2:
        return -1, 0, limit, 0

    # Level 0 is the source.
    may_end = missing > 0
    missing = _count_off(source, missing, ends)

    if may_end and missing == 0:
        limit = 0
    queue[0] = source
    counts[0] = 1
    stamp[source] = base

    # The frontier is the queue from ``head`` to ``level_end``; the next level grows from there on.
    head = n_edges = level = 0
    tail = level_end = 1
    while head < level_end and level < limit and n_edges <= search.most:
        level += 1
        if level >= counts.size - 1:
            return -1, 0, limit, level
        # If only counts are wanted, the number of vertices of the level at the limit is enough; no
        # queue of them is made. An empty level does not count.
        if search.only_counts and missing == 0 and level == limit:
            n_new, n_looked = _count_level(edges, queue[head:level_end], base, stamp)
            n_edges += n_looked
            counts[level] = n_new
            level -= n_new == 0
            break
        of_level = _Stamps(stamp, base, base + level)
        tail, n_looked, missing = _find_level(
            edges, queue, (head, level_end), of_level, missing, ends
        )
        if tail < 0:
            return -1, 0, limit, level
        n_edges += n_looked
        if may_end and missing == 0:
            limit = level
        counts[level] = tail - level_end
        level -= tail == level_end
        head = level_end
        level_end = tail
    return tail, n_edges, limit, level + 1


@njit(cache=True, nogil=True)
def _count_off(v, missing, ends):
    """Count the vertex ``v``, which was found, off what is missing, and return what is still
    missing.

    ``missing`` is the number of targets, and of groups of goals, that the search still needs.
    ``ends`` is ``_Ends``.
    """
    is_target = ends.is_target
    goals = ends.goals
    needs_left = ends.needs_left
    if missing > 0 and is_target[v] == 1:
        is_target[v] = 2
        missing -= 1
    if needs_left.size:
        for i in range(goals.first_group[v], goals.first_group[v + 1]):
            needs_left[goals.groups[i]] -= 1
            missing -= needs_left[goals.groups[i]] == 0
    return missing


@njit(cache=True, nogil=True)
def _count_level(edges, frontier, base, stamp):
    """Return the number of vertices of the next level, and of edges looked at, without a queue of
    them.

    ``frontier`` has the vertices of the level before. A stamp below ``base`` is of an earlier
    search. All new vertices get ``base`` itself, since their hops are not wanted.
    """
    offsets = edges.offsets
    targets = edges.targets
    n_new = 0
    n_edges = 0
    for u in frontier:
        n_edges += offsets[u + 1] - offsets[u]
        for e in range(offsets[u], offsets[u + 1]):
            v = targets[e]
            old_stamp = stamp[v]
            n_new += old_stamp < base
            stamp[v] = max(old_stamp, base)
    return n_new, n_edges


@njit(cache=True, nogil=True)
def _find_level(edges, queue, frontier, stamps, missing, ends):
    """Find the vertices of the next level, and write them behind the frontier in the queue.

    ``frontier`` says where the frontier, the level before, begins and ends in the queue. New
    vertices get the stamp ``stamps.level``. ``missing`` and ``ends`` are those of ``_count_off``.

    Return where the new level ends, or -1 if the queue has no room; the number of edges looked at;
    and what is still missing.
    """
    offsets = edges.offsets
    targets = edges.targets
    head, level_end = frontier
    stamp = stamps.of_vertices
    base = stamps.base
    new_stamp = stamps.level
    is_target = ends.is_target
    has_goals = ends.needs_left.size > 0
    tail = level_end
    n_edges = 0
    while head < level_end:
        u = queue[head]
        head += 1
        first_edge = offsets[u]
        last_edge = offsets[u + 1]

        # Each of these loads misses the cache where few searches pass a vertex: they begin before
        # they are needed. With ``ALONE``, a line of ``prefetch_line`` is one element of the array.
        if head + _PREFETCH_DISTANCE < tail:
            prefetch_line(targets, offsets[queue[head + _PREFETCH_DISTANCE]], ALONE)
        n_edges += last_edge - first_edge
        if tail + last_edge - first_edge >= queue.size - 1:
            return -1, n_edges, missing
        for e in range(first_edge, last_edge):
            # Every neighbor is written to the queue, and stays there if it is new: its stamp is
            # one of an earlier search. A branch would be predicted badly.
            v = targets[e]
            old_stamp = stamp[v]
            queue[tail] = v
            prefetch_line(offsets, v, ALONE)
            is_new = old_stamp < base
            stamp[v] = new_stamp if is_new else old_stamp
            tail += is_new

            if missing > 0 and is_target[v] == 1:
                is_target[v] = 2
                missing -= 1
            if is_new and has_goals:
                missing = _count_off(v, missing, ends)
    return tail, n_edges, missing


@njit(cache=True, nogil=True)
def has_overflow(offsets, targets, weights, vertices, first, last, distance):
    """Return whether a distance has overflowed: an edge leads from a vertex that is reached to a
    vertex that is at no finite distance, and the sum over this edge is infinite.

    ``offsets``, ``targets`` and ``weights`` are those of the CSR. Only edges that leave
    ``vertices[first:last]`` are looked at. ``distance`` has an element per
    vertex of the graph, infinite where unreached.
    """
    for i in range(first, last):
        for e in range(offsets[vertices[i]], offsets[vertices[i] + 1]):
            if np.isinf(distance[vertices[i]] + weights[e]) and np.isinf(distance[targets[e]]):
                return True
    return False


@njit(cache=True, nogil=True)
def _sort(row):
    """Sort vertex numbers, ``row``, in place, by the method that is faster for so many: few by
    insertion, many by digits.
    """
    if row.size <= _MAX_INSERTION:
        _sort_by_insertion(row)
    else:
        _sort_by_digits(row)


@njit(cache=True, nogil=True)
def _sort_by_insertion(row):
    """Sort vertex numbers in place by insertion, which is fast for few."""
    for i in range(1, row.size):
        v = row[i]
        j = i
        while j > 0 and row[j - 1] > v:
            row[j] = row[j - 1]
            j -= 1
        row[j] = v


@njit(cache=True, nogil=True)
def _sort_by_digits(row):
    """Sort vertex numbers in place by one digit after the other, the lowest first (radix sort).

    Each pass moves the numbers from one of two arrays to the other, and keeps the order of those
    with equal digits. Digits are those of the difference to the lowest number, which may need
    fewer.
    """
    unsorted = row
    sorted_by_digit = np.empty_like(row)
    shift = 0
    is_in_row = True  # whether ``row`` itself has the numbers in their order so far
    low = row[0]
    high = row[0]
    for v in row:
        low = min(low, v)
        high = max(high, v)

    bits = _SHORT_DIGIT
    if row.size > _MAX_SHORT_DIGITS:
        bits = _LONG_DIGIT
    mask = (1 << bits) - 1
    while (high - low) >> shift:
        # Where the numbers of each digit begin: first their counts, one place on, then sums of
        # these.
        places = np.zeros(mask + 2, np.int64)
        for v in unsorted:
            places[(((v - low) >> shift) & mask) + 1] += 1
        for digit in range(mask + 1):
            places[digit + 1] += places[digit]

        for v in unsorted:
            digit = ((v - low) >> shift) & mask
            sorted_by_digit[places[digit]] = v
            places[digit] += 1
        unsorted, sorted_by_digit = sorted_by_digit, unsorted
        shift += bits
        is_in_row = not is_in_row

    if not is_in_row:
        for i in range(row.size):
            row[i] = unsorted[i]


@njit(cache=True, nogil=True)
def _lengthen(array, size):
    """Return an array of twice the length that begins with ``size`` values of the old one."""
    longer = np.empty(2 * array.size, array.dtype)
    for i in range(size):
        longer[i] = array[i]
    return longer


@njit(cache=True, nogil=True)
def _fold(places, values, size, n, scratch_places, scratch_values):
    """Return the sum of ``size`` values, with the same bits as ``distance_stats`` adds a row of
    ``n`` numbers, of which all others are 0.0.

    ``values`` has the values, and ``places``, int64 and ascending, their places in the row. In
    ``distance_stats`` each block of ``PIECE`` numbers is added by halves, and then the sums of the
    blocks in the same way. Zeros change no sum, so that they can be left out. Both arrays are
    overwritten. The scratch arrays, of shape (``PIECE``,), hold anything before and after. The
    result is 0.0 without values.
    """
    if size == 0:
        return 0.0
    # Each pass replaces the values of each block that has any by their sum, at the place of the
    # block among all blocks.
    while True:
        begin = blocks = np.int64(0)
        while begin < size:
            block = places[begin] // PIECE
            end = begin + 1
            while end < size and places[end] // PIECE == block:
                end += 1
            values[blocks] = _fold_block(places, values, begin, end, scratch_places, scratch_values)
            places[blocks] = block
            blocks += 1
            begin = end
        size = blocks
        n = (n + PIECE - 1) // PIECE
        if n <= 1:
            return values[0]


@njit(cache=True, nogil=True)
def _fold_block(places, values, begin, end, scratch_places, scratch_values):
    """Return the sum of the values ``begin`` to ``end - 1``, which are those of one block: in each
    step the values in its upper half are added to those in its lower half.

    ``places`` and ``values`` are those of ``_fold``, and overwritten from ``begin`` to ``end - 1``;
    the scratch arrays, of shape (``PIECE``,), hold anything before and after. Places count modulo
    the size of what is left of the block.

    Of two values that are left, the sum is the same in whichever step they would meet, so that the
    steps end there. A value without a partner is added to 0.0. That changes no value but -0.0, which
    becomes 0.0, and further times it changes nothing: so the steps that are left out are made up for
    by adding 0.0 once at the end.
    """
    half = PIECE // 2
    while end - begin > 2:
        upper = begin
        while upper < end and places[upper] % (2 * half) < half:
            upper += 1

        # Merge both halves by their places in the lower half; ``half`` stands for an end.
        i = begin
        j = upper
        n_folded = 0
        while i < upper or j < end:
            lower_place = places[i] % half if i < upper else half
            upper_place = places[j] % half if j < end else half
            # The smaller place is next: that of the lower value, the upper value, or both.
            scratch_places[n_folded] = min(lower_place, upper_place)
            # Choices of values, and no branches, which would be predicted badly.
            lower_value = values[i] if lower_place <= upper_place else 0.0
            upper_value = values[j] if upper_place <= lower_place else 0.0
            scratch_values[n_folded] = lower_value + upper_value
            i += lower_place <= upper_place
            j += upper_place <= lower_place
            n_folded += 1

        for folded in range(n_folded):
            places[begin + folded] = scratch_places[folded]
            values[begin + folded] = scratch_values[folded]
        end = begin + n_folded
        half //= 2
    return values[begin] + (values[begin + 1] if end - begin == 2 else 0.0) + 0.0


@njit(cache=True, nogil=True)
def stats(next_item, n_items, rows, edges_before, n, limit, results):
    """Write statistics of the distances of each row, the columns of
    ``search.distance_stats.DistanceStats``; a kernel for ``threads.run``.

    Parameters
    ----------
    next_item, n_items
        As in the head of this module.
    rows : Rows
    edges_before : integer array of shape (n_vertices + 1,)
        For each vertex the number of edges that leave the vertices before it.
    n : int
        Vertices of the graph.
    limit : number
        Farther vertices count for the edges alone.
    results : tuple of three arrays, output
        The numbers of vertices and edges, of shape (k, 2). The smallest and the largest distance,
        of shape (k, 2). The sums of the distances and of 1 / distance, of shape (2, k), or (0, k)
        if they are not wanted.
    """
    row_offsets = rows.offsets
    vertices = rows.vertices
    distance = rows.distance
    counts, extremes, sums = results
    places = np.empty(64, np.int64)
    values = np.empty((2, 64))
    scratch_places = np.empty(PIECE, np.int64)
    scratch_values = np.empty(PIECE)
    while True:
        chunk = atomic_add(next_item, 0, 1)
        if chunk >= n_items:
            return
        for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, row_offsets.size - 1)):
            begin = row_offsets[i]
            end = row_offsets[i + 1]
            if end - begin > places.size:
                places = np.empty(2 * (end - begin), np.int64)
                values = np.empty((2, 2 * (end - begin)))
            size = np.int64(0)

            # One pass for all that is exact; the numbers to be added are copied with their places.
            n_edges = 0
            nearest = extremes.dtype.type(np.inf)
            farthest = extremes.dtype.type(-np.inf)
            for entry in range(begin, end):
                v = vertices[entry]
                d = distance[entry]
                n_edges += edges_before[v + 1] - edges_before[v]
                if d <= limit:
                    if len(sums):
                        places[size] = v
                        values[0, size] = d
                        values[1, size] = 1.0 / values[0, size] if d > 0 else 0.0
                    nearest = min(nearest, d)
                    farthest = max(farthest, d)
                    size += 1
            # ``size`` vertices are within the limit; edges are counted for all vertices of the row.
            counts[i, 0] = size
            counts[i, 1] = n_edges
            extremes[i, 0] = nearest
            extremes[i, 1] = farthest

            for s in range(len(sums)):
                if s == 1:  # the first fold has overwritten the places
                    size = np.int64(0)
                    for entry in range(begin, end):
                        if distance[entry] <= limit:
                            places[size] = vertices[entry]
                            size += 1
                sums[s, i] = _fold(places, values[s], size, n, scratch_places, scratch_values)


@njit(cache=True, nogil=True, error_model="numpy")
def sums_within(next_item, n_items, rows, wanted, n, exact, rounded):
    """Write the sums of attributes of the vertices within each cutoff, per row, as
    ``cpu.opportunities.sums`` computes them of all distances; a kernel for ``threads.run``.

    ``rows`` are ``Rows``, ``wanted`` is ``opportunities.Within``, and ``n`` is the number of
    vertices of the graph. ``exact``, int64 of shape (k, n_integers, n_cutoffs), receives the sums
    of integers, and ``rounded``, float64 of shape (k, n_floats, n_cutoffs), those of floats.

    A sum of floats has the bits of the sum over a value per vertex of the graph, 0.0 where a vertex
    does not count. So ``_fold`` needs the vertices as places, and ``n``, which decide the order of
    the additions.
    """
    row_offsets = rows.offsets
    vertices = rows.vertices
    distance = rows.distance
    lowest = wanted.lowest
    bounds = wanted.bounds
    integers = wanted.integers
    floats = wanted.floats
    decay = wanted.decay
    # Scratch of the thread, which grows with the rows: the places and values to be added, and the
    # factors by which values decay.
    places = np.empty(64, np.int64)
    values = np.empty(64)
    weights = np.empty(0 if decay == NO_DECAY else 64)
    # Scratch of ``_sum_integers``: a row per cutoff, and a last row for vertices in no cutoff.
    within = np.empty((bounds.size + 1, len(integers)), np.int64)
    scratch_places = np.empty(PIECE, np.int64)
    scratch_values = np.empty(PIECE)
    while True:
        chunk = atomic_add(next_item, 0, 1)
        if chunk >= n_items:
            return
        for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, row_offsets.size - 1)):
            reached = vertices[row_offsets[i] : row_offsets[i + 1]]
            row = distance[row_offsets[i] : row_offsets[i + 1]]
            if len(integers):
                _sum_integers(reached, row, lowest, bounds, integers, within, exact[i])
            if len(floats) == 0:
                continue

            if row.size > places.size:
                places = np.empty(2 * row.size, np.int64)
                values = np.empty(2 * row.size)
            # Factors of vertices in no cutoff are not set: ``_take_within`` does not read them.
            if decay != NO_DECAY:
                if row.size > weights.size:
                    weights = np.empty(2 * row.size)
                for entry in range(row.size):
                    if lowest <= row[entry] and row[entry] <= bounds[-1]:
                        weights[entry] = weight_at(np.float64(row[entry]), decay, wanted.parameters)

            # Sums of floats depend on the order of their terms, so each cutoff is added anew.
            for a in range(len(floats)):
                for c in range(bounds.size):
                    size = _take_within(
                        reached, row, (lowest, bounds[c]), floats[a], weights, places, values
                    )
                    rounded[i, a, c] = _fold(
                        places, values, size, n, scratch_places, scratch_values
                    )


@njit(cache=True, nogil=True)
def _sum_integers(reached, row, lowest, bounds, integers, within, exact):
    """Write the sum of each integer attribute within each cutoff to ``exact``, of shape
    (n_integers, n_cutoffs).

    ``reached`` and ``row`` are the vertices and distances of a row, and ``lowest``, ``bounds`` and
    ``integers`` are those of ``opportunities.Within``. ``within``, of shape (n_cutoffs + 1,
    n_integers), is scratch with any values before. Each vertex adds to it at the smallest cutoff
    that holds the vertex, or in the last row, for vertices that are in no cutoff. The sums of the
    cutoffs follow from these.
    """
    n_attributes = len(integers)
    for c in range(bounds.size + 1):
        for a in range(n_attributes):
            within[c, a] = 0

    for entry in range(row.size):
        c = bounds.size
        if lowest <= row[entry]:
            c = 0
            for bound in bounds:  # all of them: a branch would be predicted badly
                c += row[entry] > bound
        for a in range(n_attributes):
            within[c, a] += integers[a, reached[entry]]
    for a in range(n_attributes):
        total = np.int64(0)
        for c in range(bounds.size):
            total += within[c, a]
            exact[a, c] = total


@njit(cache=True, nogil=True)
def _take_within(reached, row, interval, attribute, weights, places, values):
    """Copy what is to be added up for one cutoff to ``places`` and ``values``, as ``_fold`` takes
    them, and return how many values there are.

    ``reached`` and ``row`` are the vertices and distances of a row, ``interval`` the smallest and
    the largest distance that count, ``attribute`` the value of each vertex of the graph, and
    ``weights`` the factors by which values decay, per element of the row; of shape (0,) without a
    decay.
    """
    lowest, bound = interval
    size = np.int64(0)
    for entry in range(row.size):
        if lowest <= row[entry] and row[entry] <= bound:
            value = attribute[reached[entry]]
            if weights.size:
                value *= weights[entry]
            places[size] = reached[entry]
            values[size] = value
            size += 1
    return size


@njit(cache=True, nogil=True)
def bins(next_item, n_items, rows, limit, bins_per_unit, before, counts):
    """Count the vertices up to ``limit`` in bins of distance; a kernel for ``threads.run``.

    ``rows`` are ``Rows``. Row ``i`` has ``bins_per_unit[i]`` bins per unit of distance: distance d
    is in bin floor(d * bins_per_unit[i]). The first column of ``counts``, int64 of shape (k,
    n_bins), is for bin ``before[i]``. ``counts`` is added to.
    """
    row_offsets = rows.offsets
    distance = rows.distance
    while True:
        chunk = atomic_add(next_item, 0, 1)
        if chunk >= n_items:
            return
        for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, row_offsets.size - 1)):
            for entry in range(row_offsets[i], row_offsets[i + 1]):
                if distance[entry] <= limit:
                    counts[i, int(np.floor(distance[entry] * bins_per_unit[i])) - before[i]] += 1


@njit(cache=True, nogil=True)
def levels(next_item, n_items, rows, edges_before, limit, counts, edges):
    """Count the vertices of rows at each number of hops up to ``limit``, and the edges that leave
    the vertices of each row; a kernel for ``threads.run``.

    ``rows`` are ``Rows`` of hops. ``edges_before``, of shape (n_vertices + 1,), has for each vertex
    the number of edges that leave the vertices before it. ``counts``, int64 of shape (k, n_levels),
    and ``edges``, int64 of shape (k,), are added to.
    """
    row_offsets = rows.offsets
    vertices = rows.vertices
    distance = rows.distance
    while True:
        chunk = atomic_add(next_item, 0, 1)
        if chunk >= n_items:
            return
        for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, row_offsets.size - 1)):
            for entry in range(row_offsets[i], row_offsets[i + 1]):
                v = vertices[entry]
                edges[i] += edges_before[v + 1] - edges_before[v]
                if distance[entry] <= limit:
                    counts[i, distance[entry]] += 1


@njit(cache=True, nogil=True)
def point_back(edges, sources, rows, place, predecessor):
    """Set the predecessors of rows, and return how many vertices have none.

    ``edges`` are ``Edges`` of the graph, with weights of shape (0,) for hops, ``sources`` has the
    source of each row, and ``rows`` are ``Rows``. ``predecessor``, of the length of the vertices of
    the rows, receives a vertex number each, or -1; a source is its own predecessor. ``place``,
    int32 of shape (n_vertices,), is scratch: 0 before and after.

    The predecessor of a vertex is the smallest vertex with an edge that explains the distance
    (distance plus weight are equal to it) among those that are nearer. If none is nearer, it is the
    smallest of those that are one edge of length 0 closer to a vertex with a predecessor. Vertices
    without a predecessor lie on a cycle of edges of length 0.
    """
    row_offsets = rows.offsets
    vertices = rows.vertices
    distance = rows.distance
    n_lost = 0
    row = np.empty(64, distance.dtype)
    for i in range(sources.size):
        # Places of a row count from 1: place p is entry begin + p.
        begin = row_offsets[i] - 1
        size = row_offsets[i + 1] - begin
        if size > row.size:
            row = np.empty(2 * size, distance.dtype)
        # Place 0 stands for all vertices that are not in the row.
        row[0] = -1
        for u_place in range(1, size):
            row[u_place] = distance[begin + u_place]
            predecessor[begin + u_place] = -1
            place[vertices[begin + u_place]] = u_place

        n_left = size - 1
        if place[sources[i]]:
            predecessor[begin + place[sources[i]]] = sources[i]
            n_left -= 1
        n_left -= _point_to_nearer(edges, vertices, begin, row[:size], place, predecessor)
        if n_left:
            n_left -= _point_along_zeros(edges, vertices, begin, row[:size], place, predecessor)
        n_lost += n_left

        for u_place in range(1, size):
            place[vertices[begin + u_place]] = 0
    return n_lost


@njit(cache=True, nogil=True)
def _point_to_nearer(edges, vertices, begin, row, place, predecessor):
    """Set the predecessor of each vertex of a row to the smallest nearer vertex that explains its
    distance, if there is one; return how many were set.

    ``row`` has the distance at each place of the row, and -1 at place 0; place 1 is at ``begin +
    1`` in ``vertices`` and ``predecessor``. ``place`` has the place of each vertex of the graph, 0
    for vertices that are not in the row. ``edges`` are ``Edges``, with weights of shape (0,) for
    hops.
    """
    offsets = edges.offsets
    targets = edges.targets
    weights = edges.weights
    one_hop = weights.dtype.type(1)
    farthest = row[0]
    for d in row:
        farthest = max(farthest, d)
    n_pointed = 0
    for u_place in range(1, row.size):
        u = vertices[begin + u_place]
        d = row[u_place]
        if d >= farthest:
            continue  # no vertex of the row is farther
        for e in range(offsets[u], offsets[u + 1]):
            # What is not in the row has place 0 and the distance -1, which no sum is equal to.
            v_place = np.int64(place[targets[e]])
            further = d + (weights[e] if weights.size else one_hop)
            # Vertices ascend, so the first vertex that explains the distance is the smallest.
            if further == row[v_place] and d < further and predecessor[begin + v_place] < 0:
                predecessor[begin + v_place] = u
                n_pointed += 1
    return n_pointed


@njit(cache=True, nogil=True)
def _point_along_zeros(edges, vertices, begin, row, place, predecessor):
    """Set the predecessors that ``_point_to_nearer`` has left, along edges of length 0, layer by
    layer from vertices that have one. Return how many were set.

    The arguments are those of ``_point_to_nearer``. A layer holds the vertices with the same number
    of such edges before them.
    """
    offsets = edges.offsets
    targets = edges.targets
    weights = edges.weights
    one_hop = weights.dtype.type(1)
    layer = np.empty(row.size, np.int32)
    queue = np.empty(row.size, np.int64)
    first = last = depth = 0
    # All vertices are written to the queue; those with a predecessor stay there, as layer 0.
    for u_place in range(1, row.size):
        layer[u_place] = -1
        queue[last] = u_place
        if predecessor[begin + u_place] >= 0:
            layer[u_place] = 0
            last += 1

    # Layer by layer: a vertex that gets a predecessor joins the next layer. If several vertices of
    # one layer explain its distance, the smallest is taken.
    n_pointed = 0
    while first < last:
        depth += 1
        end = last
        for j in range(first, end):
            u_place = queue[j]
            u = vertices[begin + u_place]
            for e in range(offsets[u], offsets[u + 1]):
                v_place = np.int64(place[targets[e]])
                if row[u_place] + (weights[e] if weights.size else one_hop) != row[v_place]:
                    continue
                if layer[v_place] < 0:
                    layer[v_place] = depth
                    queue[last] = v_place
                    last += 1
                    predecessor[begin + v_place] = u
                    n_pointed += 1
                elif layer[v_place] == depth:
                    predecessor[begin + v_place] = min(predecessor[begin + v_place], u)
        first = end
    return n_pointed


@njit(cache=True, nogil=True)
def walk_back(row_offsets, vertices, predecessor, list_offsets, lists, place, sizes):
    """Return the vertices of the paths from the source of each row to the targets in its list, one
    path after the other, each from the source on.

    ``row_offsets`` and ``vertices`` are those of ``Rows``, and ``predecessor`` has the vertex
    before each of ``vertices``. ``lists`` are vertex numbers, and ``list_offsets``, of shape (k +
    1,), says where the list of each row begins. ``sizes``, of the shape of ``lists``, receives the
    number of vertices of each path: 0 for a target that is not in the row. ``place``, int32 of
    shape (n_vertices,), is scratch: 0 before and after.
    """
    paths = np.empty(64, vertices.dtype)
    first = np.int64(0)
    for i in range(row_offsets.size - 1):
        begin = row_offsets[i] - 1
        for entry in range(row_offsets[i], row_offsets[i + 1]):
            place[vertices[entry]] = entry - begin

        for j in range(list_offsets[i], list_offsets[i + 1]):
            # Walk back twice: to count the vertices, and to write them from the last place on.
            v = lists[j]
            before = np.int64(-1)
            size = np.int64(0)
            while place[v] and v != before:  # the source is its own predecessor
                before = v
                v = np.int64(predecessor[begin + place[v]])
                size = size + 1
            while paths.size < first + size:
                paths = _lengthen(paths, first)
            first = first + size
            v = lists[j]
            sizes[j] = size
            for step in range(size):
                paths[first - 1 - step] = v
                v = np.int64(predecessor[begin + place[v]])

        for entry in range(row_offsets[i], row_offsets[i + 1]):
            place[vertices[entry]] = 0
    return paths[:first]


@njit(cache=True, nogil=True)
def check(edges, rows, place, findings, predecessor):
    """Check rows by the rules of ``certificate``, over their vertices and the edges that leave
    these.

    C1: the source is at 0. C2: vertices ascend, and distances are numbers from 0 up to the limit.
    C3: no edge that leaves a vertex of the row allows a distance within the limit that is shorter
    than that of the vertex it leads to, or leads to one that is not in the row. C4: an edge from a
    vertex of the row explains the distance of each vertex but the source. C5: so does a chain of
    such edges that begins at the source, also along edges of length 0. A vertex that is not in the
    row is then farther than the limit: on a shortest path to it, the edge to the first vertex that
    is not in the row breaks C3. With predecessors, those of C4 and C5 are edges from the
    predecessors, and that of the source is the source.

    Parameters
    ----------
    edges : Edges
        Weights are 0 or more, and of shape (0,) for hops.
    rows : CheckedRows
    place : int32 array of shape (n_vertices,)
        0 in each place, before and after.
    findings : int64 array of shape (5, 3)
        For each rule the number of violations, and the position of the source and the vertex of an
        example. They are added.
    predecessor : array of the length of the vertices of the rows, or None
        The vertex before each vertex, if predecessors are checked, too; None checks distances only.
    """
    sources = rows.sources
    row_offsets = rows.offsets
    vertices = rows.vertices
    distance = rows.distance
    row = np.empty(64, distance.dtype)
    state = np.zeros(64, np.uint8)
    queue = np.empty(64, np.int64)
    for i in range(sources.size):
        if not _check_values(i, rows, edges.weights.size > 0, place.size, findings, predecessor):
            continue

        # Places of a row count from 1: place p is at ``before + p`` in ``vertices``.
        before = row_offsets[i] - 1
        size = row_offsets[i + 1] - before
        if size > row.size:
            row = np.empty(2 * size, distance.dtype)
            state = np.zeros(2 * size, np.uint8)
            queue = np.empty(2 * size, np.int64)
        # Place 0 stands for what is not in the row.
        row[0] = -1
        for v_place in range(1, size):
            row[v_place] = distance[before + v_place]
            place[vertices[before + v_place]] = v_place
        state[place[sources[i]]] = _EXPLAINED

        scratch = _RowScratch(row[:size], state, place)
        _check_edges(i, rows, edges, scratch, findings, predecessor)
        _explain_by_chains(edges, vertices, before, scratch, queue, predecessor)

        # Note what is not explained, and clear the places.
        for v_place in range(1, size):
            v = vertices[before + v_place]
            if state[v_place] == _WAITS:
                note(findings, C5, i, v)
            elif state[v_place] < _WAITS:
                note(findings, C4, i, v)
            place[v] = 0
            state[v_place] = 0


@njit(cache=True, nogil=True)
def _check_values(i, rows, has_weights, n_vertices, findings, predecessor):
    """Check C1 and C2 of row ``i``; return whether C2 holds, so that its vertices can be used as
    indices. The rules and the arguments are those of ``check``.
    """
    sources = rows.sources
    vertices = rows.vertices
    distance = rows.distance
    limits = rows.limits
    begin = rows.offsets[i]
    end = rows.offsets[i + 1]
    is_sound = True
    has_source = False
    for entry in range(begin, end):
        v = vertices[entry]
        d = distance[entry]
        ascends = v >= 0 and v < n_vertices and (entry == begin or vertices[entry - 1] < v)
        is_within = d >= 0 and d <= limits[i] and d < np.inf
        is_negative_zero = has_weights and np.signbit(np.float64(d))
        # An example must be a vertex, also where the number is below 0 or too large: the maximum
        # and the minimum make it 0, or the last vertex.
        if not (ascends and is_within) or is_negative_zero:
            note(findings, C2, i, max(0, min(v, n_vertices - 1)))
            is_sound = False

        if v == sources[i]:
            has_source = True
            if d != 0:
                note(findings, C1, i, v)
            if predecessor is not None and predecessor[entry] != v:
                note(findings, C1, i, v)
    if limits[i] >= 0 and not has_source:
        note(findings, C1, i, sources[i])
    return is_sound


@njit(cache=True, nogil=True)
def _check_edges(i, rows, edges, scratch, findings, predecessor):
    """Check C3 of row ``i``, and mark in ``scratch.state`` which vertices a nearer vertex explains,
    and which wait for a chain. ``scratch`` is ``_RowScratch``; the other arguments are those of
    ``check``.
    """
    offsets = edges.offsets
    targets = edges.targets
    weights = edges.weights
    vertices = rows.vertices
    before = rows.offsets[i] - 1
    limit = rows.limits[i]
    row = scratch.row
    state = scratch.state
    place = scratch.place
    one_hop = weights.dtype.type(1)
    for u_place in range(1, row.size):
        u = vertices[before + u_place]
        d = row[u_place]
        if weights.size == 0 and d >= limit:
            continue  # one hop more is beyond the limit

        is_broken = False
        for e in range(offsets[u], offsets[u + 1]):  # branches would be predicted badly
            v_place = place[targets[e]]
            further = d + (weights[e] if weights.size else one_hop)
            is_broken |= (further < row[v_place]) | ((v_place == 0) & (further <= limit))
            is_equal = further == row[v_place]
            # At place 0 the predecessor that is read is not of this row; ``is_equal`` is False there.
            if predecessor is not None:
                is_equal &= predecessor[before + v_place] == u
            # What a nearer vertex does not explain waits until a chain from the source reaches it.
            state[v_place] |= _WAITS * is_equal | _EXPLAINED * (is_equal & (d < further))
        if not is_broken:
            continue

        # An edge breaks C3, which is rare: a second pass finds which.
        for e in range(offsets[u], offsets[u + 1]):
            v_place = place[targets[e]]
            further = d + (weights[e] if weights.size else one_hop)
            if further < row[v_place] or (v_place == 0 and further <= limit):
                note(findings, C3, i, targets[e])


@njit(cache=True, nogil=True)
def _explain_by_chains(edges, vertices, before, scratch, queue, predecessor):
    """Mark as explained the vertices that wait and are reached from explained ones, along edges
    that explain distances.

    ``before`` is 1 less than where the row begins in ``vertices`` and ``predecessor``, so that
    place p is at ``before + p``. ``queue`` is scratch with a place per vertex of the row.
    """
    offsets = edges.offsets
    targets = edges.targets
    weights = edges.weights
    row = scratch.row
    state = scratch.state
    place = scratch.place
    one_hop = weights.dtype.type(1)
    n_waiting = 0
    for u_place in range(1, row.size):
        n_waiting += state[u_place] == _WAITS
    if n_waiting == 0:
        return

    # All vertices are written to the queue; those that are explained stay there.
    first = last = 0
    for u_place in range(1, row.size):
        queue[last] = u_place
        last += state[u_place] >= _EXPLAINED

    # Follow the edges of explained vertices; a vertex that is explained by one joins the queue.
    while first < last:
        u_place = queue[first]
        first += 1
        u = vertices[before + u_place]
        for e in range(offsets[u], offsets[u + 1]):
            v_place = np.int64(place[targets[e]])
            is_equal = row[u_place] + (weights[e] if weights.size else one_hop) == row[v_place]
            if predecessor is not None:
                is_equal &= predecessor[before + v_place] == u
            if state[v_place] == _WAITS and is_equal:
                state[v_place] = _EXPLAINED
                queue[last] = v_place
                last += 1


@njit(cache=True, nogil=True)
def note(findings, rule, i, v):
    """Count a violation of ``rule``, one of ``C1`` to ``C5``, at the row ``i`` and the vertex
    ``v``; the first violation of a rule is kept as its example.

    ``findings``, int64 of shape (5, 3), has for each rule the count, and the row and the vertex of
    the example.
    """
    if findings[rule, 0] == 0:
        findings[rule, 1] = i
        findings[rule, 2] = v
    findings[rule, 0] += 1
