"""Searches that visit edges in the order of NetworkX's dictionaries, so that ties are broken as
NetworkX breaks them.

The strategies of this library give canonical predecessors, which do not depend on the order of
edges. NetworkX returns the path that its loop finds first, and dictionaries in the order of
discovery. Only the same order of visits gives the same. Every kernel runs on one thread and
releases the GIL.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..cpu.compiled import njit

NONE = -1  # no vertex, no edge
UNSEEN = 0
QUEUED = 1
SETTLED = 2
DONE = 0
CONTRADICTION = 1
NEGATIVE_CYCLE = 2
NO_PATH = 3


class WeightedEdges(NamedTuple):
    """The edges of one direction with their weights, in NetworkX's order."""

    # int64 array of shape (n_vertices + 1,): where the edges of each vertex begin
    offsets: np.ndarray
    targets: np.ndarray  # array of shape (n_edges,): the vertex at the other end
    weights: np.ndarray  # int64 or float64 array of shape (n_edges,)
    # uint8 array of shape (n_edges,): 1 for a weight that is a float to Python, where integers and
    # floats are mixed; else empty
    floats: np.ndarray

    @classmethod
    def of(cls, adjacency: Any, weights: Any) -> WeightedEdges:
        """Return the edges of an ``Adjacency`` with their ``Weights``."""
        return cls(adjacency.offsets, adjacency.targets, weights.values, weights.floats)


@njit(cache=True, nogil=True)
def bfs(offsets, targets, sources, max_level):
    """Search from all sources together.

    Return the vertices that are reached, in the order of their discovery, and arrays of shape
    (n_vertices,) of parents and levels, -1 where unreached; the parent of a source is -1.
    """
    n = offsets.size - 1
    order = np.empty(n, targets.dtype)
    parent = np.full(n, NONE, targets.dtype)
    level = np.full(n, NONE, np.int32)
    n_reached = 0

    for source in sources:
        if level[source] == NONE:
            level[source] = 0
            order[n_reached] = source
            n_reached += 1

    head = 0
    while head < n_reached:
        v = order[head]
        head += 1
        if level[v] == max_level:
            break
        for edge in range(offsets[v], offsets[v + 1]):
            u = targets[edge]
            if level[u] == NONE:
                level[u] = level[v] + 1
                parent[u] = v
                order[n_reached] = u
                n_reached += 1
    return order[:n_reached], parent, level


@njit(cache=True, nogil=True)
def bfs_predecessors(offsets, targets, order, level):
    """Find all predecessors on shortest paths, by vertex in the given order.

    Return where the list of each vertex of ``order`` begins, and the end of the last, as int64; and
    the predecessors, in the order in which the search meets them. ``level`` is that of each vertex,
    -1 where unreached.
    """
    n = offsets.size - 1
    place = np.full(n, NONE, np.int64)  # the position of each vertex in ``order``, -1 for none
    starts = np.zeros(order.size + 1, np.int64)
    for i in range(order.size):
        place[order[i]] = i

    # Count the predecessors of each vertex, add the counts up to where each list begins, and write.
    for v in order:
        for edge in range(offsets[v], offsets[v + 1]):
            u = targets[edge]
            if level[u] == level[v] + 1:
                starts[place[u] + 1] += 1
    for i in range(order.size):
        starts[i + 1] += starts[i]
    cursor = starts[:-1].copy()
    predecessors = np.empty(starts[-1], targets.dtype)
    for v in order:
        for edge in range(offsets[v], offsets[v + 1]):
            u = targets[edge]
            if level[u] == level[v] + 1:
                predecessors[cursor[place[u]]] = v
                cursor[place[u]] += 1
    return starts, predecessors


@njit(cache=True, nogil=True)
def components(offsets, targets):
    """Return the vertices of an undirected graph by component, and where each component begins in
    them, and the end.
    """
    n = offsets.size - 1
    order = np.empty(n, targets.dtype)
    seen = np.zeros(n, np.uint8)
    starts = np.zeros(n + 1, np.int64)
    n_seen = head = n_components = 0

    for root in range(n):
        if seen[root]:
            continue
        starts[n_components] = n_seen
        n_components += 1
        seen[root] = 1
        order[n_seen] = root
        n_seen += 1
        while head < n_seen:
            v = order[head]
            head += 1
            for edge in range(offsets[v], offsets[v + 1]):
                u = targets[edge]
                if not seen[u]:
                    seen[u] = 1
                    order[n_seen] = u
                    n_seen += 1
    starts[n_components] = n_seen
    return order, starts[: n_components + 1]


@njit(cache=True, nogil=True)
def bidirectional_bfs(offsets, targets, offsets_in, targets_in, source, target):
    """Search from both ends, the smaller frontier first.

    ``offsets`` and ``targets`` are the edges from each vertex, those with ``_in`` the edges to it.
    Return a vertex on a shortest path, -1 if there is none, and two arrays of shape (n_vertices,),
    -1 for none. The first, parents, leads from that vertex back to the source, and the second,
    children, on to the target.
    """
    n = offsets.size - 1
    # Row 0 of each array is of the search from the source, row 1 of that from the target. A
    # frontier is ``order[side, begins[side] : ends[side]]``.
    parent = np.full((2, n), NONE, targets.dtype)
    seen = np.zeros((2, n), np.uint8)
    order = np.empty((2, n), targets.dtype)
    begins = np.zeros(2, np.int64)
    ends = np.ones(2, np.int64)

    for side, end in enumerate((source, target)):
        order[side, 0] = end
        seen[side, end] = 1
    meeting = source if source == target else NONE
    while meeting == NONE and begins[0] < ends[0] and begins[1] < ends[1]:
        # One level from the side whose frontier is smaller.
        if ends[0] - begins[0] <= ends[1] - begins[1]:
            side = 0
        else:
            side = 1
        level_end = ends[side]
        for i in range(begins[side], level_end):
            v = order[side, i]
            begin, end = (
                (offsets[v], offsets[v + 1]) if side == 0 else (offsets_in[v], offsets_in[v + 1])
            )
            for edge in range(begin, end):
                u = targets[edge] if side == 0 else targets_in[edge]
                if not seen[side, u]:
                    parent[side, u] = v
                    seen[side, u] = 1
                    order[side, ends[side]] = u
                    ends[side] += 1
                if seen[1 - side, u]:
                    return np.int64(u), parent[0], parent[1]
        begins[side] = level_end
    return np.int64(meeting), parent[0], parent[1]


@njit(cache=True, nogil=True)
def _precedes(distance, stamp, u, v):
    """Return whether u leaves the heap before v: by distance, then by the time of its last
    improvement.
    """
    return distance[u] < distance[v] or (distance[u] == distance[v] and stamp[u] < stamp[v])


@njit(cache=True, nogil=True)
def _rise(heap, place, distance, stamp, i):
    """Move the vertex at position ``i`` of a heap up to where it belongs; ``place`` has the
    position of each vertex.
    """
    v = heap[i]
    while i > 0:
        parent = (i - 1) >> 1
        if not _precedes(distance, stamp, v, heap[parent]):
            break
        heap[i] = heap[parent]
        place[heap[i]] = i
        i = parent
    heap[i] = v
    place[v] = i


@njit(cache=True, nogil=True)
def _pop(heap, place, distance, stamp, size):
    """Remove the first vertex of a heap of ``size`` vertices and return it."""
    first = heap[0]
    v = heap[size - 1]
    size -= 1
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and _precedes(distance, stamp, heap[child + 1], heap[child]):
            child += 1
        if not _precedes(distance, stamp, heap[child], v):
            break
        heap[i] = heap[child]
        place[heap[i]] = i
        i = child
    heap[i] = v
    place[v] = i
    return first


@njit(cache=True, nogil=True)
def dijkstra(edges, sources, limit, target, all_predecessors):
    """Search by Dijkstra's algorithm from all sources together, up to a target, -1 for none;
    distances above the limit are dropped.

    Return, in this order:

    - the status: DONE, or CONTRADICTION, which means a negative weight;
    - the settled vertices, in their order;
    - distances and parents, of shape (n_vertices,), which mean nothing where unreached;
    - uint8 of shape (n_vertices,): 1 for a distance that is a float to Python; empty if
      ``edges.floats`` is;
    - the vertices in the order of their discovery;
    - where the predecessors of each of these begin, and all predecessors, one list after the other;
      empty unless ``all_predecessors``.
    """
    offsets = edges.offsets
    targets = edges.targets
    weights = edges.weights
    floats = edges.floats
    n = offsets.size - 1
    distance = np.zeros(n, weights.dtype)
    stamp = np.zeros(n, np.int64)  # the time of the last improvement, counted by ``clock``
    state = np.zeros(n, np.uint8)  # UNSEEN, QUEUED or SETTLED
    is_float = np.zeros(n if floats.size else 0, np.uint8)
    parent = np.full(n, NONE, targets.dtype)
    order = np.empty(n, targets.dtype)
    discovered = np.empty(n, targets.dtype)
    heap = np.empty(n, targets.dtype)
    place = np.empty(n, targets.dtype)  # the position of each queued vertex in the heap

    # A vertex is settled once, so each edge is in at most one list of predecessors, and its number
    # is that of the element. ``following`` links the elements of a list, and ``origin`` has the
    # predecessor.
    n_lists = 0
    n_elements = 0
    if all_predecessors:
        n_lists = n
        n_elements = targets.size
    first_element = np.full(n_lists, NONE, np.int64)
    last_element = np.full(n_lists, NONE, np.int64)
    following = np.full(n_elements, NONE, np.int64)
    origin = np.empty(n_elements, targets.dtype)
    starts = np.zeros(1, np.int64)
    predecessors = np.empty(0, targets.dtype)

    n_settled = n_discovered = 0
    size = clock = np.int64(0)
    for source in sources:
        clock += 1
        if state[source] == UNSEEN:
            state[source] = QUEUED
            stamp[source] = clock
            heap[size] = source
            _rise(heap, place, distance, stamp, size)
            size += 1
            discovered[n_discovered] = source
            n_discovered += 1

    while size:
        v = _pop(heap, place, distance, stamp, size)
        size -= 1
        state[v] = SETTLED
        order[n_settled] = v
        n_settled += 1
        if v == target:
            break

        for edge in range(offsets[v], offsets[v + 1]):
            u = targets[edge]
            candidate = distance[v] + weights[edge]
            if candidate > limit:
                continue
            if state[u] == SETTLED:
                if candidate < distance[u]:
                    return (
                        CONTRADICTION,
                        order[:0],
                        distance,
                        parent,
                        is_float,
                        discovered[:0],
                        starts,
                        predecessors,
                    )
                improves = False
            else:
                improves = state[u] == UNSEEN or candidate < distance[u]

            if improves:
                distance[u] = candidate
                parent[u] = v
                clock += 1
                stamp[u] = clock
                if floats.size:
                    is_float[u] = is_float[v] | floats[edge]
                if state[u] == UNSEEN:
                    state[u] = QUEUED
                    heap[size] = u
                    place[u] = size
                    size += 1
                    discovered[n_discovered] = u
                    n_discovered += 1
                _rise(heap, place, distance, stamp, np.int64(place[u]))
            # An improvement begins a new list of predecessors.
            if all_predecessors and candidate == distance[u]:
                origin[edge] = v
                if improves or first_element[u] == NONE:
                    first_element[u] = edge
                else:
                    following[last_element[u]] = edge
                last_element[u] = edge
    discovered = discovered[:n_discovered]
    if all_predecessors:
        starts, predecessors = _flatten(discovered, first_element, following, origin)
    return DONE, order[:n_settled], distance, parent, is_float, discovered, starts, predecessors


@njit(cache=True, nogil=True)
def _flatten(vertices, first, following, origin):
    """Return lists of predecessors one after the other: where that of each of ``vertices`` begins,
    and the predecessors.

    ``first`` has the first element of the list of each vertex, ``following`` the next element, and
    ``origin`` the predecessor of each.
    """
    starts = np.zeros(vertices.size + 1, np.int64)
    for i in range(vertices.size):
        size = 0
        element = first[vertices[i]]
        while element != NONE:
            size += 1
            element = following[element]
        starts[i + 1] = starts[i] + size
    flat = np.empty(starts[-1], origin.dtype)
    for i in range(vertices.size):
        end = starts[i]
        element = first[vertices[i]]
        while element != NONE:
            flat[end] = origin[element]
            end += 1
            element = following[element]
    return starts, flat


@njit(cache=True, nogil=True)
def bidirectional_dijkstra(outgoing, incoming, source, target):
    """Search by Dijkstra's algorithm from both ends, one settled vertex from each in turn.

    Return the status, DONE, CONTRADICTION or NO_PATH; the length, in the type of the weights; and
    whether it is a float to Python, where integers and floats are mixed. Then follow a vertex on
    the path, parents, which lead from it back to the source, and children, which lead on to the
    target.
    """
    offsets = outgoing.offsets
    targets = outgoing.targets
    weights = outgoing.weights
    floats = outgoing.floats
    offsets_in = incoming.offsets
    targets_in = incoming.targets
    weights_in = incoming.weights
    floats_in = incoming.floats
    n = offsets.size - 1

    # Row 0 of each array is of the search from the source, row 1 of that from the target.
    distance = np.zeros((2, n), weights.dtype)
    stamp = np.zeros((2, n), np.int64)
    state = np.zeros((2, n), np.uint8)
    is_float = np.zeros((2, n if floats.size else 0), np.uint8)
    parent = np.full((2, n), NONE, targets.dtype)
    heap = np.empty((2, n), targets.dtype)
    place = np.empty((2, n), targets.dtype)
    sizes = np.ones(2, np.int64)

    for side, end in enumerate((source, target)):
        heap[side, 0] = end
        place[side, end] = 0
        state[side, end] = QUEUED
    length = distance[0, 0]
    length_is_float = False
    meeting = NONE
    clock = np.int64(0)
    side = 1

    while sizes[0] and sizes[1]:
        side = 1 - side
        v = _pop(heap[side], place[side], distance[side], stamp[side], sizes[side])
        sizes[side] -= 1
        state[side, v] = SETTLED
        if state[1 - side, v] == SETTLED:  # settled from both ends: no shorter path is left
            return DONE, length, length_is_float, meeting, parent[0], parent[1]

        begin, end = (
            (offsets[v], offsets[v + 1]) if side == 0 else (offsets_in[v], offsets_in[v + 1])
        )
        for edge in range(begin, end):
            u = targets[edge] if side == 0 else targets_in[edge]
            candidate = distance[side, v] + (weights[edge] if side == 0 else weights_in[edge])
            if state[side, u] == SETTLED:
                if candidate < distance[side, u]:
                    return CONTRADICTION, length, False, NONE, parent[0], parent[1]
            elif state[side, u] == UNSEEN or candidate < distance[side, u]:
                distance[side, u] = candidate
                parent[side, u] = v
                clock += 1
                stamp[side, u] = clock
                if floats.size:
                    is_float[side, u] = is_float[side, v] | (
                        floats[edge] if side == 0 else floats_in[edge]
                    )
                if state[side, u] == UNSEEN:
                    state[side, u] = QUEUED
                    heap[side, sizes[side]] = u
                    place[side, u] = sizes[side]
                    sizes[side] += 1
                _rise(
                    heap[side], place[side], distance[side], stamp[side], np.int64(place[side, u])
                )
                # the best path so far over a vertex that both searches have seen
                if state[1 - side, u] != UNSEEN:
                    whole = candidate + distance[1 - side, u]
                    if meeting == NONE or length > whole:
                        length = whole
                        meeting = u
                        length_is_float = floats.size > 0 and (is_float[0, u] | is_float[1, u]) != 0
    return NO_PATH, length, False, NONE, parent[0], parent[1]


@njit(cache=True, nogil=True)
def _is_waiting(element, following, origin, queued):
    """Return whether a vertex of a list of predecessors is in the queue; ``element`` is the first
    of the list.
    """
    while element != NONE:
        if queued[origin[element]]:
            return True
        element = following[element]
    return False


@njit(cache=True, nogil=True)
def _lengthen(following, origin):
    """Return the lists of predecessors with space for as many more elements."""
    n = origin.size
    longer_following = np.full(2 * n, NONE, np.int64)
    longer_origin = np.empty(2 * n, origin.dtype)
    # the assignment of a slice would take seconds to compile, for its error message
    for i in range(n):
        longer_following[i] = following[i]
        longer_origin[i] = origin[i]
    return longer_following, longer_origin


@njit(cache=True, nogil=True)
def bellman_ford(edges, source, heuristic):
    """Search by the Bellman-Ford algorithm with a queue of vertices, as NetworkX does.

    With ``heuristic`` a negative cycle is looked for at each improvement.

    Return the status, DONE or NEGATIVE_CYCLE; distances of shape (n_vertices,); uint8 flags of the
    same shape, 1 for a distance that is a float to Python, or empty; the vertices that are reached,
    in the order of their discovery; and where the predecessors of each of these begin, and all
    predecessors, one list after the other.
    """
    offsets = edges.offsets
    targets = edges.targets
    weights = edges.weights
    floats = edges.floats
    n = offsets.size - 1

    distance = np.zeros(n, weights.dtype)
    is_float = np.zeros(n if floats.size else 0, np.uint8)
    reached = np.zeros(n, np.uint8)
    queued = np.zeros(n, np.uint8)
    times_queued = np.zeros(n, np.int64)
    parent = np.full(n, NONE, targets.dtype)
    # Of each vertex the ends of the edge on its path that was improved last: if one of them is
    # improved by way of the vertex, the path closes a negative cycle.
    recent_src = np.full(n, NONE, targets.dtype)
    recent_dst = np.full(n, NONE, targets.dtype)
    discovered = np.empty(n, targets.dtype)
    n_discovered = 1
    # A vertex may be queued again, so these lists have no bound: the memory of all elements grows.
    first_element = np.full(n, NONE, np.int64)
    last_element = np.full(n, NONE, np.int64)
    following = np.full(n + 1, NONE, np.int64)
    origin = np.empty(n + 1, targets.dtype)
    n_elements = 0

    # circular: no vertex is in it twice, and one place more tells a full queue from an empty one
    queue = np.empty(n + 1, targets.dtype)
    head = 0
    tail = 1
    queue[0] = source
    queued[source] = 1
    reached[source] = 1
    discovered[0] = source
    status = DONE

    while head != tail and status == DONE:
        u = queue[head]
        head = (head + 1) % queue.size
        queued[u] = 0
        # A predecessor in the queue may improve u, which is then queued again.
        if _is_waiting(first_element[u], following, origin, queued):
            continue

        for edge in range(offsets[u], offsets[u + 1]):
            v = targets[edge]
            candidate = distance[u] + weights[edge]
            improves = True
            if reached[v]:
                if not candidate <= distance[v]:  # also if the candidate is NaN
                    continue
                improves = candidate < distance[v]
            elif candidate == np.inf:
                continue
            if improves:
                if heuristic:
                    if v == recent_src[u] or v == recent_dst[u]:
                        status = NEGATIVE_CYCLE
                        break
                    if parent[v] == u:
                        recent_src[v] = recent_src[u]
                        recent_dst[v] = recent_dst[u]
                    else:
                        recent_src[v] = u
                        recent_dst[v] = v

                if not queued[v]:
                    queue[tail] = v
                    tail = (tail + 1) % queue.size
                    queued[v] = 1
                    times_queued[v] += 1
                    if times_queued[v] == n:
                        status = NEGATIVE_CYCLE
                        break
                if not reached[v]:
                    reached[v] = 1
                    discovered[n_discovered] = v
                    n_discovered += 1
                if floats.size:
                    is_float[v] = is_float[u] | floats[edge]
                distance[v] = candidate
                parent[v] = u

            # u is a predecessor of v, the first of a new list if it has improved v.
            if n_elements == origin.size:
                following, origin = _lengthen(following, origin)
            origin[n_elements] = u
            if improves or first_element[v] == NONE:
                first_element[v] = n_elements
            else:
                following[last_element[v]] = n_elements
            last_element[v] = n_elements
            n_elements += 1
    discovered = discovered[:n_discovered]
    starts, predecessors = _flatten(discovered, first_element, following, origin)
    return status, distance, is_float, discovered, starts, predecessors


@njit(cache=True, nogil=True)
def spread_owners(order, parent, owner):
    """Give each vertex without an owner that of its parent, which precedes it in ``order``.
    ``owner`` has -1 for none.
    """
    for v in order:
        if owner[v] == NONE:
            owner[v] = owner[parent[v]]


@njit(cache=True, nogil=True)
def add_subset_loads(offsets, sources, lengths, distance, order, is_target, loads):
    """Add what each edge carries for one source by the rule of NetworkX's
    ``edge_betweenness_centrality_subset``.

    ``offsets``, ``sources`` and ``lengths`` are the edges that lead to each vertex, so that
    ``sources`` are the tails of edges; lengths are above 0, in the type of the distances.
    ``distance`` is negative where unreached, if it counts hops. ``order`` has the vertices that are
    reached, by ascending distance; the first is the source of the search. ``is_target`` is bool.
    ``loads``, float64 of shape (n_edges,), is added to. Return False, with nothing added, if a
    vertex has too many paths.
    """
    # of each vertex, the number of shortest paths to it, and what it carries for vertices behind it
    paths, carried = np.zeros((2, distance.size))

    # Forward: the number of shortest paths to each vertex.
    paths[order[0]] = 1.0
    for v in order[1:]:
        for edge in range(offsets[v], offsets[v + 1]):
            u = sources[edge]
            if 0 <= distance[u] < distance[v] and distance[u] + lengths[edge] == distance[v]:
                paths[v] += paths[u]
        if paths[v] >= 2.0**1000:  # the next sums could become infinite
            return False

    # Backward: what each vertex carries, divided among the edges that lead to it.
    for v in order[:0:-1]:
        n_predecessors = np.int64(0)
        for edge in range(offsets[v], offsets[v + 1]):
            u = sources[edge]
            n_predecessors += (
                0 <= distance[u] < distance[v] and distance[u] + lengths[edge] == distance[v]
            )
        for edge in range(offsets[v], offsets[v + 1]):
            u = sources[edge]
            if 0 <= distance[u] < distance[v] and distance[u] + lengths[edge] == distance[v]:
                if is_target[v]:
                    share = paths[u] / paths[v] * (1.0 + carried[v])
                else:
                    share = carried[v] / n_predecessors
                loads[edge] += share
                carried[u] += share
    return True
