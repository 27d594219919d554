"""Contraction of a graph: the order of its vertices, and the shortcuts that keep distances, on the
threads of the CPU.

Geisberger, Sanders, Schultes, Delling 2008 (contraction hierarchies), with the priorities of
Delling, Goldberg, Nowatzyk, Werneck 2011 (PHAST), but for ``_PER_LEVEL``. Vertices are contracted
in rounds. A round takes all vertices whose priority is lower than that of their neighbors; no two
of them are neighbors, so threads contract them independently. What a round does depends on the
graph as it was before the round only, never on the number of threads.

A vertex v is contracted by joining its neighbors: for each edge (u, v) and (v, w), a shortcut (u,
w) with the sum of both weights, unless a witness exists, a path from u to w that is not longer and
avoids all vertices of the round. A witness search that gives up early costs a superfluous shortcut,
never a wrong distance. Where ties are kept, a witness must be shorter, so that no shortest path is
lost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..cpu import threads
from ..cpu.atomics import atomic_add
from ..cpu.compiled import is_compiled, njit

MAX_SUM = 2**61  # no sum of weights is larger: larger ones are cut to it, and refused at the end
# vertices that a thread takes at a time; fewer where there are few, since the last ones take long
_CHUNK = 64
_LONG_LIST = 64  # entries from which on insertion would take long to sort a list
# In ``via``: an edge of the graph; in ``seen``: no round; in ``half_depth``: not reached.
_NONE = -1
_DISTANCE, _STAMP, _LIMIT, _GOAL = range(4)  # the last index of ``Workspace.marks``
# neighbors from which on a vertex waits for others to be contracted, whatever its priority
_HUB = 1000
# edges that a witness search may scan per vertex that it may settle; it needs more only near hubs
_SCANNED = 40
# Vertices that a witness search settles (makes final) at most: when a priority is estimated, and
# when a vertex is contracted. The second pair counts once at most ``_CORE`` vertices are left: in
# this dense last part, superfluous shortcuts cost more than searches.
_CORE = 20_000
_SETTLED = (30, 60)
_SETTLED_IN_CORE = (200, 500)
_HEAP = 4096  # capacity of the heap of a witness search; what does not fit is not searched from
# What a level counts in a priority; PHAST has 5. With 3, USA-road-d.NY has 2 % fewer shortcuts and
# 5 % fewer hubs per vertex in its labels, with as many levels.
_PER_LEVEL = 3
_LONG = 3  # an edge counts as at most so many original edges in a priority


class ListArrays(NamedTuple):
    """The arrays of ``Lists``, for compiled code.

    The list of vertex v is the entries ``begin[v]`` to ``begin[v] + size[v] - 1`` of the pool, by
    ascending weight. The pool is the last four arrays.
    """

    begin: np.ndarray  # int64 array of shape (n,)
    size: np.ndarray  # int32 array of shape (n,): entries
    capacity: np.ndarray  # int32 array of shape (n,): entries that fit from ``begin`` on
    head: np.ndarray  # int32: the vertex at the other end of the edge
    weight: np.ndarray  # int64
    via: np.ndarray  # int32: the vertex that a shortcut passes, -1 for an edge of the graph
    hops: np.ndarray  # uint8: the number of edges of the graph that it stands for, at most 255


class Shortcuts(NamedTuple):
    """Shortcuts, one per entry of the arrays."""

    tail: np.ndarray  # int32: the vertex that it leaves
    head: np.ndarray  # int32: the vertex that it leads to
    weight: np.ndarray  # int64
    via: np.ndarray  # int32: the contracted vertex that it passes
    hops: np.ndarray  # uint8: the number of edges of the graph that it stands for, at most 255

    @staticmethod
    def empty(n: int) -> Shortcuts:
        """Return arrays for ``n`` shortcuts, not set."""
        return Shortcuts(
            *(np.empty(n, dtype) for dtype in (np.int32, np.int32, np.int64, np.int32, np.uint8))
        )

    def reverse(self) -> Shortcuts:
        """Return the shortcuts with tails and heads exchanged."""
        return self._replace(tail=self.head, head=self.tail)

    def at(self, positions: np.ndarray) -> Shortcuts:
        """Return the shortcuts at ``positions``, which may be an integer or a bool array, as new
        arrays.
        """
        return Shortcuts(*(array[positions] for array in self))


class Lists:
    """Adjacency lists that change: one range of a pool of entries per vertex, with capacity to
    grow.

    The attributes are the arrays of ``ListArrays``, and ``used``, the number of entries of the pool
    up to the end of the last range. ``offsets``, ``targets`` and ``weights`` are the first edges,
    in compressed sparse rows.
    """

    def __init__(self, offsets: np.ndarray, targets: np.ndarray, weights: np.ndarray):
        """Copy the edges, and sort the list of each vertex by weight."""
        self.begin = offsets[:-1].astype(np.int64)
        self.size = np.diff(offsets).astype(np.int32)
        self.capacity = self.size.copy()
        # Spare entries at the end of the pool, where lists move that outgrow their range.
        spare = offsets[-1] // 2 + 1024
        self.head = np.concatenate([targets.astype(np.int32), np.empty(spare, np.int32)])
        self.weight = np.concatenate([weights.astype(np.int64), np.empty(spare, np.int64)])
        self.via = np.full(self.head.size, _NONE, np.int32)
        self.hops = np.ones(self.head.size, np.uint8)
        self.used = int(offsets[-1])
        _sort_all(self.begin, self.size, self.head, self.weight)

    def arrays(self) -> ListArrays:
        """Return the arrays for compiled code; they are not copied."""
        return ListArrays(*(getattr(self, name) for name in ListArrays._fields))

    def reserve(self, vertices: np.ndarray, added: np.ndarray) -> None:
        """Ensure that the list of each vertex of ``vertices`` has capacity for as many more entries
        as ``added`` (an integer array of the same shape) says. Lists without it move to the end of
        the pool.
        """
        needed = self.size[vertices] + added
        needs_more = needed > self.capacity[vertices]
        moved_lists = vertices[needs_more]
        if not moved_lists.size:
            return

        capacities = (needed[needs_more] * 3 // 2 + 4).astype(np.int64)  # so that few move again
        total = int(capacities.sum())
        # Enlarge the pool if they do not fit: by what they need, but half of the pool at least, so
        # that it is seldom copied.
        if self.used + total > self.head.size:
            n_more = max(total, self.head.size // 2)
            for name in ("head", "weight", "via", "hops"):
                pool = getattr(self, name)
                setattr(
                    self, name, np.concatenate([pool[: self.used], np.empty(n_more, pool.dtype)])
                )

        begins = self.used + np.concatenate([[0], np.cumsum(capacities)[:-1]])
        self.used += total
        _move(moved_lists, begins, capacities, self.arrays())


@njit(cache=True, nogil=True)
def _move(vertices, begins, capacities, lists):
    """Move the list of each vertex of ``vertices`` within the pool: it begins at ``begins`` then,
    and has the capacity that ``capacities`` says. Both are arrays of the shape of ``vertices``.
    """
    begin = lists.begin
    size = lists.size
    capacity = lists.capacity
    head = lists.head
    weight = lists.weight
    via = lists.via
    hops = lists.hops
    for j in range(vertices.size):
        v = vertices[j]
        old = begin[v]
        new = begins[j]
        for i in range(size[v]):
            head[new + i] = head[old + i]
            weight[new + i] = weight[old + i]
            via[new + i] = via[old + i]
            hops[new + i] = hops[old + i]
        begin[v] = new
        capacity[v] = capacities[j]


@njit(cache=True, nogil=True)
def _sort_all(begin, size, head, weight):
    """Sort each list by weight, stably. Only ``head`` and ``weight`` are moved: before contraction,
    all entries have the same ``via`` and ``hops``.
    """
    for v in range(begin.size):
        if size[v] > _LONG_LIST:  # a hub, of which the loop below would take quadratic time
            list_range = slice(begin[v], begin[v] + size[v])
            order = np.argsort(weight[list_range], kind="mergesort")
            head[list_range] = head[list_range][order]
            weight[list_range] = weight[list_range][order]
            continue
        for i in range(begin[v] + 1, begin[v] + size[v]):
            moved_head = head[i]
            moved_weight = weight[i]
            at = i
            while at > begin[v] and weight[at - 1] > moved_weight:
                head[at] = head[at - 1]
                weight[at] = weight[at - 1]
                at -= 1
            head[at] = moved_head
            weight[at] = moved_weight


# --- witness searches ---------------------------------------------------------------------------------------------------


class Workspace(NamedTuple):
    """The memory of witness searches. Arrays have a row per thread; in a thread's own ``Workspace``
    they are that row, without the first axis.
    """

    # int64 array of shape (threads, n, 4): per vertex, in one cache line: its tentative distance
    # (_DISTANCE), and the number of the search that wrote it (_STAMP); how long a witness to it may
    # be (_LIMIT), and the number of the search that still looks for one (_GOAL; 0: none). Numbers
    # ascend, so that nothing is cleared between searches.
    marks: np.ndarray
    # int64 array of shape (threads, entries, 2): a binary heap of distances and vertices
    heap: np.ndarray
    # int64 array of shape (threads, 8): the number of the last search, alone in its cache line
    state: np.ndarray


class Inherited(NamedTuple):
    """What contracted neighbors change of a vertex; int32 arrays of shape (n,)."""

    level: np.ndarray  # 0, or one more than the highest level of a contracted neighbor
    contracted: np.ndarray  # number of contracted neighbors
    seen: np.ndarray  # the last round in which a neighbor of the vertex was contracted, or -1


class Reach(NamedTuple):
    """The bounds of a witness search from one vertex: when it ends, and what counts as a witness.

    A goal is a neighbor for which a witness is sought: a path that makes a shortcut superfluous.
    """

    longest: int  # the length of the longest shortcut; longer paths are no witnesses
    # No witness comes to its goal from a vertex farther than this from the start: with its last
    # edge it would be too long. So vertices beyond it are not searched from.
    slack: int
    wanted: int  # number of goals without a witness, when the search begins
    margin: int  # how much shorter than the shortcut a witness must be: 0, or 1 where ties are kept


class Items(NamedTuple):
    """The vertices that threads work on, in chunks."""

    vertices: np.ndarray  # int32 array of vertex numbers
    chunk: int  # number of vertices that a thread takes at a time; an item is one chunk


class Search(NamedTuple):
    """The arguments that the witness searches of all threads have in common."""

    # uint8 array of shape (n,): 1 for a vertex that no witness may pass: those of the round. The
    # vertex that is contracted is left out in any case.
    chosen: np.ndarray
    most: int  # number of vertices that a search settles (makes final) at most
    # Whether ``ahead`` and ``back`` are the same, of an undirected graph. Each pair of edges is
    # then joined once.
    is_symmetric: bool
    # ahead, back: lists of the edges from and to vertices
    ahead: ListArrays
    back: ListArrays
    works: Workspace
    # int64 array of shape (1,), a counter: the row of ``works`` for the next thread that begins
    next_row: np.ndarray
    margin: int  # how much shorter than the shortcut a witness must be: 0, or 1 where ties are kept


@njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _push(heap, size, key, value):
    """Add an entry to a binary heap, and return its new size.

    ``heap`` is int64 of shape (capacity, 2): keys and values, the smallest key first. ``size``
    entries are in use.
    """
    i = size
    while i > 0:
        parent = (i - 1) >> 1
        if heap[parent, 0] <= key:
            break
        heap[i, 0] = heap[parent, 0]
        heap[i, 1] = heap[parent, 1]
        i = parent
    heap[i, 0] = key
    heap[i, 1] = value
    return size + 1


@njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _pop(heap, size):
    """Remove the entry with the smallest key from a binary heap, and return its new size.

    The caller has read the entry at ``heap[0]`` before. The last entry takes its place, and sinks
    below entries with smaller keys.
    """
    size -= 1
    key = heap[size, 0]
    value = heap[size, 1]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1, 0] < heap[child, 0]:
            child += 1
        if heap[child, 0] >= key:
            break
        heap[i, 0] = heap[child, 0]
        heap[i, 1] = heap[child, 1]
        i = child
    heap[i, 0] = key
    heap[i, 1] = value
    return size


@njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _find_witnesses(source, avoided, search, reach, work, now):
    """Search for witnesses, paths from ``source`` that make shortcuts superfluous, until each goal
    has one or the search has settled as many vertices as it may. Goals with a witness lose their
    mark.

    It is Dijkstra's search, cut short. A goal need not be settled: its tentative distance is
    already the length of a path.

    Parameters
    ----------
    source : int
    avoided : int
        The vertex that is contracted; no witness may pass it.
    search : Search
    reach : Reach
    work : Workspace
        The memory of this thread. ``marks[w, _GOAL]`` is ``now`` for each goal w, and
        ``marks[w, _LIMIT]`` the length of its shortcut.
    now : int
        The number of this search. Marks with other numbers are of earlier ones.
    """
    chosen = search.chosen
    begin = search.ahead.begin
    size = search.ahead.size
    head = search.ahead.head
    weight = search.ahead.weight
    marks = work.marks
    heap = work.heap
    longest = reach.longest
    slack = reach.slack
    wanted = reach.wanted
    margin = reach.margin
    most = search.most

    n_heap = _push(heap, 0, 0, source)
    marks[source, _DISTANCE] = 0
    marks[source, _STAMP] = now
    n_scans_left = _SCANNED * most
    for _ in range(most):
        if n_heap == 0:
            return
        distance = heap[0, 0]
        u = heap[0, 1]
        if distance > slack:
            return
        n_heap = _pop(heap, n_heap)
        if distance > marks[u, _DISTANCE]:  # an entry that a shorter path has replaced
            continue

        # Scan all edges of the source; of other vertices no more than the search may still scan.
        if n_scans_left <= 0 and u != source:
            return
        if u == source:
            n_scanned = np.int64(size[u])
        else:
            n_scanned = min(np.int64(size[u]), n_scans_left)
        n_scans_left -= n_scanned

        for i in range(begin[u], begin[u] + n_scanned):
            v = head[i]
            candidate = distance + weight[i]
            if candidate > longest:  # so are the edges that follow, as lists are sorted by weight
                break
            if v == avoided or chosen[v]:
                continue
            if marks[v, _STAMP] == now and marks[v, _DISTANCE] <= candidate:
                continue
            marks[v, _STAMP] = now
            marks[v, _DISTANCE] = candidate
            # A path to a goal that is short enough is a witness.
            if marks[v, _GOAL] == now and candidate + margin <= marks[v, _LIMIT]:
                marks[v, _GOAL] = 0
                wanted -= 1
                if wanted == 0:
                    return
            if candidate <= slack and n_heap < heap.shape[0]:  # else the search is cut short there
                n_heap = _push(heap, n_heap, candidate, v)


@njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _take_workspace(search):
    """Return a row of the workspaces of ``search`` that no other thread has taken, for the calling
    thread.
    """
    row = atomic_add(search.next_row, 0, 1)
    works = search.works
    return Workspace(works.marks[row], works.heap[row], works.state[row])


@njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _contract(v, search, work, shortcuts, at, emits):
    """Find the shortcuts between neighbors of ``v`` that must replace ``v`` if it is contracted.

    Parameters
    ----------
    v : int
    search : Search
    work : Workspace
        The memory of this thread.
    shortcuts : Shortcuts
        With ``emits``, the shortcuts are written to it from position ``at`` on.
    at : int
    emits : bool
        False: the shortcuts are only counted.

    Returns
    -------
    int, int
        The position after the last shortcut, and the number of edges of the graph that the
        shortcuts stand for. In this number each of the two edges of a shortcut counts as ``_LONG``
        at most.
    """
    ahead = search.ahead
    back = search.back
    is_symmetric = search.is_symmetric
    begin = ahead.begin
    size = ahead.size
    head = ahead.head
    weight = ahead.weight
    hops = ahead.hops
    begin_back = back.begin
    size_back = back.size
    head_back = back.head
    weight_back = back.weight
    hops_back = back.hops
    marks = work.marks
    state = work.state

    n_edges = 0
    first = begin[v]
    end = first + size[v]
    for i in range(begin_back[v], begin_back[v] + size_back[v]):
        u = head_back[i]
        to_v = weight_back[i]

        # Neighbors u before v, one at a time. The goals of its search are the neighbors w after v:
        # without a path from u to w that is no longer than the way by v, a shortcut is needed.
        state[0] += 1
        now = state[0]
        wanted = 0
        longest = 0
        slack = -1
        # In an undirected graph both lists are one, and each pair of its entries is joined once.
        first_partner = i + 1 if is_symmetric else first
        for j in range(first_partner, end):
            w = head[j]
            if w != u:
                through = min(to_v + weight[j], MAX_SUM)
                marks[w, _GOAL] = now
                marks[w, _LIMIT] = through
                longest = max(longest, through)
                # A witness ends with an edge to w that is not from v. The lightest such edge, the
                # first or second of the list of w, bounds how far the vertex before w may be.
                lightest = begin_back[w]
                lightest += head_back[lightest] == v and size_back[w] > 1
                slack = max(slack, through - weight_back[lightest])
                wanted += 1

        if wanted == 0:
            continue
        reach = Reach(longest, slack, wanted, search.margin)
        _find_witnesses(u, v, search, reach, work, now)

        # A goal that still has its mark has no witness.
        for j in range(first_partner, end):
            w = head[j]
            if w != u and marks[w, _GOAL] == now:
                n_edges += min(np.int64(hops_back[i]), _LONG) + min(np.int64(hops[j]), _LONG)
                if emits:
                    shortcuts.tail[at] = u
                    shortcuts.head[at] = w
                    shortcuts.weight[at] = marks[w, _LIMIT]
                    shortcuts.via[at] = v
                    shortcuts.hops[at] = min(np.int64(hops_back[i]) + np.int64(hops[j]), 255)
                at += 1
    return at, n_edges


# --- the steps of a round -----------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _evaluate(next_item, n_items, items, search, shortcuts, difference):
    """Write to ``difference``, int64 of shape (n,), a term of the priority of each vertex of
    ``items``: twice the number of edges that contracting it would add (shortcuts less its own
    edges), plus the number of original edges that the shortcuts stand for.

    Threads take chunks of ``items`` from the counter ``next_item`` until it reaches ``n_items``. A
    hub counts as if all its neighbors were joined, so that it waits; no shortcuts of it are
    searched for. ``shortcuts`` is not written.
    """
    vertices = items.vertices
    chunk = items.chunk
    work = _take_workspace(search)
    size = search.ahead.size
    size_back = search.back.size

    while True:
        item = atomic_add(next_item, 0, 1)
        if item >= n_items:
            return
        for j in range(item * chunk, min((item + 1) * chunk, vertices.size)):
            v = vertices[j]
            # Its own edges, which contraction removes from the rest.
            if search.is_symmetric:
                degree = np.int64(size[v])
            else:
                degree = np.int64(size[v]) + size_back[v]
            if degree > _HUB:
                difference[v] = degree * degree
                continue
            added, n_edges = _contract(v, search, work, shortcuts, 0, False)
            difference[v] = 2 * (added - degree) + n_edges


@njit(cache=True, nogil=True)
def _emit(next_item, n_items, items, search, shortcuts, places, counts):
    """Write the shortcuts that contracting the vertices of a round needs to ``shortcuts``: those of
    the j-th vertex of ``items`` from ``places[j]`` on, and their number to ``counts[j]``.

    Threads take chunks of ``items`` from the counter ``next_item`` until it reaches ``n_items``.
    """
    vertices = items.vertices
    chunk = items.chunk
    work = _take_workspace(search)
    while True:
        item = atomic_add(next_item, 0, 1)
        if item >= n_items:
            return
        for j in range(item * chunk, min((item + 1) * chunk, vertices.size)):
            end, _ = _contract(vertices[j], search, work, shortcuts, places[j], True)
            counts[j] = end - places[j]


@njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _is_before(u, v, priority):
    """Return whether vertex u is contracted before v: it has the lower priority, or, of equal ones,
    the lower hash of its number.
    """
    if priority[u] != priority[v]:
        return priority[u] < priority[v]
    # By their numbers alone, long paths of vertices in order would be contracted one per round. The
    # product with an odd constant, modulo 2^64, scatters numbers, and no two have the same.
    a = np.uint64(u) * np.uint64(0x9E3779B97F4A7C15)
    b = np.uint64(v) * np.uint64(0x9E3779B97F4A7C15)
    return a < b


@njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _is_first(v, priority, lists):
    """Return whether vertex ``v`` is contracted before all neighbors in its list of ``lists``, by
    ``priority`` (n,) as in ``_is_before``; True without neighbors.
    """
    begin = lists.begin
    size = lists.size
    head = lists.head
    is_first = True
    for i in range(begin[v], begin[v] + size[v]):
        is_first &= _is_before(v, head[i], priority)
    return is_first


@njit(cache=True, nogil=True)
def _mark_first(next_item, n_items, items, priority, ahead, back, marks):
    """Set ``marks[j]``, bool: whether the j-th vertex of ``items`` is contracted before all its
    neighbors in either direction.

    ``priority`` (n,): vertices with lower ones are contracted first. ``ahead`` and ``back`` are the
    lists of edges from and to vertices; ``back`` is None for an undirected graph, which has one.
    Threads take chunks of ``items`` from the counter ``next_item`` until it reaches ``n_items``.
    """
    vertices = items.vertices
    chunk = items.chunk
    while True:
        item = atomic_add(next_item, 0, 1)
        if item >= n_items:
            return
        for j in range(item * chunk, min((item + 1) * chunk, vertices.size)):
            v = vertices[j]
            marks[j] = _is_first(v, priority, ahead)
            if back is not None:
                marks[j] &= _is_first(v, priority, back)


@njit(cache=True, nogil=True)
def _list_neighbors(vertices, lists, inherited, round_number, touched, n_touched):
    """Append the neighbors of the vertices of a round, ``vertices``, by ``lists``, to the first
    ``n_touched`` elements of ``touched``, each once per round. Return the new number of elements.

    It also updates ``inherited`` (an ``Inherited``): a neighbor is at least one level above the
    vertex, and has one contracted neighbor more. ``round_number`` is stored in ``inherited.seen``,
    so that nothing must be cleared between rounds.
    """
    begin = lists.begin
    size = lists.size
    head = lists.head
    level = inherited.level
    contracted = inherited.contracted
    seen = inherited.seen
    for j in range(vertices.size):
        v = vertices[j]
        for i in range(begin[v], begin[v] + size[v]):
            u = head[i]
            contracted[u] += 1
            level[u] = max(level[u], level[v] + 1)
            if seen[u] != round_number:
                seen[u] = round_number
                touched[n_touched] = u
                n_touched += 1
    return n_touched


@njit(cache=True, nogil=True)
def _update(next_item, n_items, items, chosen, lists, first, added):
    """Remove the neighbors that this round contracts from the lists of the vertices of ``items``,
    and add shortcuts.

    ``chosen``, uint8 of shape (n,), is 1 for a vertex that this round contracts. The shortcuts of
    the j-th vertex are ``first[j]`` to ``first[j + 1] - 1`` of ``added``, a ``Shortcuts`` sorted by
    tail. The lists have capacity for them. Threads take chunks of ``items`` from the counter
    ``next_item`` until it reaches ``n_items``.
    """
    touched = items.vertices
    chunk = items.chunk
    begin = lists.begin
    size = lists.size
    head = lists.head
    weight = lists.weight
    via = lists.via
    hops = lists.hops
    new_heads = added.head
    new_weights = added.weight
    new_vias = added.via
    new_hops = added.hops
    while True:
        item = atomic_add(next_item, 0, 1)
        if item >= n_items:
            return
        for j in range(item * chunk, min((item + 1) * chunk, touched.size)):
            u = touched[j]

            # Drop the contracted neighbors; the neighbors that stay move up.
            start = begin[u]
            end = begin[u]
            for i in range(start, start + size[u]):
                if not chosen[head[i]]:
                    head[end] = head[i]
                    weight[end] = weight[i]
                    via[end] = via[i]
                    hops[end] = hops[i]
                    end += 1

            # Add each shortcut, or let it replace a heavier entry to the same vertex.
            for k in range(first[j], first[j + 1]):
                w = new_heads[k]
                at = start
                while at < end and head[at] != w:
                    at += 1
                # Three cases: no entry leads to w (``at`` is ``end``), and one is appended; a
                # heavier entry is replaced; a lighter or equal one stays.
                if at == end or new_weights[k] < weight[at]:
                    head[at] = w
                    weight[at] = new_weights[k]
                    via[at] = new_vias[k]
                    hops[at] = new_hops[k]
                    end = max(end, at + 1)

            # Sort by weight, by insertion, as most entries are in order.
            for i in range(start + 1, end):
                if weight[i] < weight[i - 1]:
                    moved_head = head[i]
                    moved_weight = weight[i]
                    moved_via = via[i]
                    moved_hops = hops[i]
                    at = i
                    while at > start and weight[at - 1] > moved_weight:
                        head[at] = head[at - 1]
                        weight[at] = weight[at - 1]
                        via[at] = via[at - 1]
                        hops[at] = hops[at - 1]
                        at -= 1
                    head[at] = moved_head
                    weight[at] = moved_weight
                    via[at] = moved_via
                    hops[at] = moved_hops
            size[u] = end - start


# --- all rounds ---------------------------------------------------------------------------------------------------------


class Contraction:
    """The state of a contraction of a graph with integer weights of at least 0.

    Vertices are contracted in rounds: removed, and replaced by shortcuts between their neighbors.

    Parameters
    ----------
    offsets, targets, weights : arrays
        The edges from each vertex in compressed sparse rows.
    reverse : tuple of offsets, targets, weights, optional
        The edges of the reversed graph. None: the graph is undirected, and has both directions of
        each edge.
    keeps_ties : bool
        Whether shortcuts that are as long as another path are kept, so that no shortest path is
        lost. By default only distances are kept.

    Attributes
    ----------
    level : int32 array of shape (n,)
        0, or one more than the highest level of a contracted neighbor.
    rounds : list of int32 arrays
        The vertices that each round has contracted.
    remaining : int32 array
        The vertices that are left.
    ahead, back : Lists
        The edges from and to each vertex, shortcuts included: of vertices that are left, those
        between them; of a contracted vertex, those to the vertices above it. One object if
        undirected.
    """

    def __init__(
        self,
        offsets: np.ndarray,
        targets: np.ndarray,
        weights: np.ndarray,
        reverse: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
        keeps_ties: bool = False,
    ):
        """Copy the edges; nothing is contracted yet. Arguments are those of the class."""
        n = offsets.size - 1
        # With ties kept, a witness must be shorter than the shortcut, by 1 at least.
        self._margin = int(keeps_ties)
        self.ahead = Lists(offsets, targets, weights)
        self.is_symmetric = reverse is None
        if reverse is None:
            self.back = self.ahead
        else:
            self.back = Lists(*reverse)
        self.level = np.zeros(n, np.int32)
        self.rounds: list[np.ndarray] = []
        self._n = n
        # Of each vertex:
        self._contracted = np.zeros(n, np.int32)  # number of its contracted neighbors
        # the term of its priority for the edges that contracting it would add
        self._difference = np.zeros(n, np.int64)
        self._is_stale = np.ones(n, np.uint8)  # 1: ``_difference`` is out of date
        # the last round in which a neighbor was contracted, -1 for none
        self._seen = np.full(n, _NONE, np.int32)
        self._chosen = np.zeros(n, np.uint8)  # 1: this round contracts it; all 0 between rounds
        self._none_chosen = np.zeros(n, np.uint8)  # 0 everywhere, for estimates of priorities
        rows = threads.count()
        self._works = Workspace(
            np.zeros((rows, n, 4), np.int64),
            np.empty((rows, _HEAP, 2), np.int64),
            np.zeros((rows, 8), np.int64),
        )
        self.remaining = np.arange(n, dtype=np.int32)

    def run(self, check: Callable[[], object] = lambda: None) -> None:
        """Contract all vertices in rounds. ``check()`` is called before each round; an error that
        it raises ends the contraction.
        """
        while self.remaining.size:
            check()
            self._run_round()

    def run_in_order(self, rank: np.ndarray, most_pairs: float) -> bool:
        """Contract all vertices in a given order: those of lower ``rank`` (n,) int64 before their
        neighbors of higher rank.

        Return True at the end; return False, with some vertices left, as soon as ``pairs_of_rest``
        exceeds ``most_pairs``.
        """
        while self.remaining.size:
            if self.pairs_of_rest() > most_pairs:
                return False
            self._contract(self._first(self.remaining, rank))
        return True

    def edges_of_rest(self) -> int:
        """Return the number of edges between the vertices that are left; in an undirected graph
        each counts twice.
        """
        return int(self.ahead.size[self.remaining].sum())

    def pairs_of_rest(self) -> int:
        """Return the number of pairs of an edge to and an edge from the same vertex, over all
        vertices that are left. The time of a round is proportional to it.

        Of the edges from a vertex, at most ``_HUB`` count, since hubs wait and are not evaluated.
        """
        n_in, n_out = (
            lists.size[self.remaining].astype(np.int64) for lists in (self.back, self.ahead)
        )
        return int((n_in * np.minimum(n_out, _HUB)).sum())

    @property
    def shortcuts(self) -> int:
        """Number of edges in all lists that are not edges of the graph."""
        directions = (self.ahead,) if self.is_symmetric else (self.ahead, self.back)
        return sum(_count_shortcuts(lists.begin, lists.size, lists.via) for lists in directions)

    @property
    def _max_settled(self) -> tuple[int, int]:
        """The most vertices that a witness search may settle: to estimate a priority, and to
        contract a vertex.
        """
        if self.remaining.size > _CORE:
            return _SETTLED
        return _SETTLED_IN_CORE

    def _search(self, chosen: np.ndarray, most: int) -> Search:
        """Return the common arguments of witness searches that pass no vertex of which ``chosen``
        (n,) uint8 is 1, and settle at most ``most`` vertices.
        """
        lists = self.ahead.arrays(), self.back.arrays()
        next_row = np.zeros(1, np.int64)  # so that the first thread takes row 0 of the workspaces
        return Search(chosen, most, self.is_symmetric, *lists, self._works, next_row, self._margin)

    def _evaluate(self, vertices: np.ndarray) -> None:
        """Bring ``_difference`` of some vertices up to date: what contracting each would add."""
        max_settled, _ = self._max_settled
        search = self._search(self._none_chosen, max_settled)
        threads.run(_evaluate, *_in_chunks(vertices), search, Shortcuts.empty(0), self._difference)
        self._is_stale[vertices] = 0

    def _first(self, vertices: np.ndarray, priority: np.ndarray) -> np.ndarray:
        """Return those of ``vertices`` that come before all their neighbors by ``priority`` (n,),
        the lowest first. No two of them are neighbors.
        """
        marks = np.empty(vertices.size, np.bool_)
        ahead = self.ahead.arrays()
        back = None if self.is_symmetric else self.back.arrays()
        threads.run(_mark_first, *_in_chunks(vertices), priority, ahead, back, marks)
        return vertices[marks]

    def _priority(self, vertices: np.ndarray | slice) -> np.ndarray:
        """Return the priorities of some vertices, int64; the lowest are contracted first.

        A vertex waits that would add many edges, has many contracted neighbors, or is on a high
        level: so contraction proceeds evenly, with few levels.
        """
        terms = self._difference[vertices] + self._contracted[vertices]
        return terms + _PER_LEVEL * self.level[vertices]

    def _run_round(self) -> None:
        """Contract the vertices that come before all their neighbors by priority.

        The priority of a vertex changes when a neighbor is contracted. It is computed anew only
        when the vertex is a candidate, which saves most evaluations. If no candidate comes first by
        its new priority, nothing is contracted, and the next call takes the new priorities.
        """
        if not self.rounds:  # the first round: all vertices need a priority
            self._evaluate(self.remaining)
        priority = self._priority(slice(None))
        candidates = self._first(self.remaining, priority)
        # those of which a neighbor was contracted since they were evaluated
        stale = candidates[self._is_stale[candidates] == 1]
        if stale.size:
            self._evaluate(stale)
            priority[stale] = self._priority(stale)
            candidates = self._first(candidates, priority)
            if not candidates.size:
                return
        self._contract(candidates)

    def _contract(self, vertices: np.ndarray) -> None:
        """Contract vertices of which no two are neighbors: find their shortcuts, and update the
        lists of their neighbors. The lists of the vertices themselves stay as they are.
        """
        chosen = self._chosen
        chosen[vertices] = 1
        added = self._find_shortcuts(vertices)
        touched = self._list_neighbors(vertices)
        if self.is_symmetric:  # each shortcut was found once, and is in the lists of both ends
            arrays = zip(added, added.reverse(), strict=True)
            both_ways = Shortcuts(*(np.concatenate(pair) for pair in arrays))
            self._update(self.ahead, touched, both_ways)
        else:
            self._update(self.ahead, touched, added)
            self._update(self.back, touched, added.reverse())

        self._is_stale[touched] = 1
        self.rounds.append(vertices)
        self.remaining = self.remaining[chosen[self.remaining] == 0]
        chosen[vertices] = 0

    def _find_shortcuts(self, vertices: np.ndarray) -> Shortcuts:
        """Return the shortcuts that contracting some vertices needs, in the order of the vertices.

        ``_chosen`` is 1 for these vertices, so that no witness passes one of them.
        """
        # Threads write without knowing the numbers of others: each vertex has places for as many
        # shortcuts as it has pairs of edges.
        degree = self.ahead.size[vertices].astype(np.int64)
        if self.is_symmetric:
            bound = degree * (degree - 1) // 2
        else:
            bound = degree * self.back.size[vertices]
        places = np.concatenate([[0], np.cumsum(bound)])
        shortcuts = Shortcuts.empty(int(places[-1]))
        counts = np.empty(vertices.size, np.int64)
        # The shortcuts of each vertex are written from its place on; ``counts`` is their number.
        # A witness search, for a path that makes a shortcut superfluous, settles ``max_settled``
        # vertices at most.
        _, max_settled = self._max_settled
        search = self._search(self._chosen, max_settled)
        threads.run(_emit, *_in_chunks(vertices), search, shortcuts, places, counts)

        # Most places stay empty. Take the shortcuts without the gaps behind those of each vertex:
        # ``gaps`` is the number of empty places before each vertex.
        gaps = places[:-1] - np.concatenate([[0], np.cumsum(counts)[:-1]])
        return shortcuts.at(np.repeat(gaps, counts) + np.arange(int(counts.sum())))

    def _list_neighbors(self, vertices: np.ndarray) -> np.ndarray:
        """Return the neighbors of ``vertices``, which this round contracts, in either direction:
        int32, ascending, each once. Update their levels and numbers of contracted neighbors.
        """
        inherited = Inherited(self.level, self._contracted, self._seen)
        number = len(self.rounds)
        touched = np.empty(self.remaining.size, np.int32)
        count = 0
        for lists in (self.ahead,) if self.is_symmetric else (self.ahead, self.back):
            count = _list_neighbors(vertices, lists.arrays(), inherited, number, touched, count)
        return np.sort(touched[:count])

    def _update(self, lists: Lists, touched: np.ndarray, added: Shortcuts) -> None:
        """Remove the neighbors that this round contracts from the lists of ``touched``, and add the
        shortcuts ``added`` to the lists of their tails.

        ``touched`` are vertices in ascending order, and ``lists`` those of one direction.
        """
        # Sorted by their tails, the shortcuts of the j-th vertex of ``touched`` are a range: from
        # ``first[j]`` up to ``first[j + 1]``.
        added = added.at(np.argsort(added.tail, kind="stable"))
        first = np.searchsorted(added.tail, np.concatenate([touched, [self._n]]))
        lists.reserve(touched, np.diff(first))
        threads.run(_update, *_in_chunks(touched), self._chosen, lists.arrays(), first, added)


@njit(cache=True, nogil=True)
def half_depth(begin, size, head, start):
    """Search breadth first from vertex ``start``. Return the depth, in edges, of the vertex in the
    middle of the order in which vertices are reached, and the number of vertices that are reached.

    So half of the vertices reached are within this depth. ``begin``, ``size`` and ``head`` are
    those of ``ListArrays``.
    """
    depth = np.full(size.size, _NONE, np.int32)
    queue = np.empty(size.size, np.int32)
    depth[start] = 0
    queue[0] = start
    # The queue from ``first`` to before ``last`` waits; all before ``last`` are reached.
    first = 0
    last = 1
    while first < last:
        u = queue[first]
        first += 1
        for i in range(begin[u], begin[u] + size[u]):
            if depth[head[i]] == _NONE:
                depth[head[i]] = depth[u] + 1
                queue[last] = head[i]
                last += 1
    return depth[queue[last // 2]], last


@njit(cache=True, nogil=True)
def _count_shortcuts(begin, size, via):
    """Return the number of entries of lists that are shortcuts; the arguments are arrays of
    ``ListArrays``.
    """
    count = 0
    for v in range(begin.size):
        for i in range(begin[v], begin[v] + size[v]):
            count += via[i] != _NONE
    return count


def must_compile() -> bool:
    """Return whether contraction takes seconds to compile first: once per machine."""
    return not is_compiled(_evaluate)


def _in_chunks(vertices: np.ndarray) -> tuple[int, Items]:
    """Return the number of chunks of ``vertices``, and the vertices with the size of a chunk: the
    arguments ``n_items`` and ``items`` of the kernels above.

    There are at least 8 chunks per thread where there are enough vertices, so that all threads end
    at about the same time.
    """
    chunk = max(1, min(_CHUNK, vertices.size // (8 * threads.count())))
    return -(-vertices.size // chunk), Items(vertices, chunk)
