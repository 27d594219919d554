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
# states of a vertex in a search by Dijkstra's algorithm
UNSEEN = 0
QUEUED = 1  # in the heap, with a distance that may still become smaller
SETTLED = 2  # taken from the heap: its distance is final
# status that a search returns
DONE = 0
CONTRADICTION = 1  # a settled vertex has a shorter path, so that a weight is negative
NEGATIVE_CYCLE = 2
NO_PATH = 3


class WeightedEdges(NamedTuple):
    """The edges of one direction with their weights, in NetworkX's order."""

    # int64 array of shape (n_vertices + 1,): where the edges of each vertex begin
    offsets: np.ndarray
    # integer array of shape (n_edges,): the number of the vertex at the other end of each edge
    targets: np.ndarray
    weights: np.ndarray  # int64 or float64 array of shape (n_edges,)
    # uint8 array of shape (n_edges,): 1 for a weight that is a float to Python, where integers and
    # floats are mixed; else empty
    floats: np.ndarray

    @classmethod
    def of(cls, adjacency: Any, weights: Any) -> WeightedEdges:
        """Return the edges of ``adjacency``, an ``Adjacency``, with ``weights``, their ``Weights``
        in the same order.
        """
        return cls(adjacency.offsets, adjacency.targets, weights.values, weights.floats)


@njit(cache=True, nogil=True)
def bfs(offsets, targets, sources, max_level):
    """Search breadth-first from all vertices ``sources`` together, up to ``max_level`` hops.

    ``offsets`` and ``targets`` are the edges as CSR. Return three arrays: the vertices that are
    reached, in the order of their discovery; the parent of each vertex, of shape (n_vertices,), -1
    for a source and where unreached; and its level, the hops from the nearest source, int32 of
    shape (n_vertices,), -1 where unreached.
    """
    n = offsets.size - 1
    order = np.empty(n, targets.dtype)
    parent = np.full(n, NONE, targets.dtype)
    level = np.full(n, NONE, np.int32)
    n_reached = 0

    for source in sources:
        if level[source] == NONE:  # a source may be given twice
            level[source] = 0
            order[n_reached] = source
            n_reached += 1

    # ``order`` is also the queue: vertices before ``head`` have been expanded.
    head = 0
    while head < n_reached:
        v = order[head]
        head += 1
        if level[v] == max_level:  # levels ascend in the queue, so no later vertex is expanded
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
    """Find all predecessors of each vertex on paths of fewest hops.

    ``offsets`` and ``targets`` are the edges as CSR. ``order`` and ``level`` are results of
    ``bfs``: the vertices that are reached, and the hops of each vertex, -1 where unreached.

    Return ``starts``, int64 of shape (order.size + 1,), and ``predecessors``. Those of ``order[i]``
    are ``predecessors[starts[i] : starts[i + 1]]``, in the order in which the search meets them.
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
    """Find the components of an undirected graph, whose edges ``offsets`` and ``targets`` have in
    both directions.

    Return ``order``, all vertices by component, and ``starts``, int64: component i is
    ``order[starts[i] : starts[i + 1]]``. Components ascend by their smallest vertex.
    """
    n = offsets.size - 1
    order = np.empty(n, targets.dtype)
    seen = np.zeros(n, np.uint8)
    starts = np.zeros(n + 1, np.int64)
    n_seen = head = n_components = 0

    # A breadth-first search from each vertex that no earlier search has seen. ``order`` is also the
    # queue: vertices before ``head`` have been expanded.
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
    """Find a path of fewest hops by breadth-first searches from ``source`` and, against the edges,
    from ``target``, until they meet. Each step expands the smaller of both frontiers.

    ``offsets`` and ``targets`` are the edges from each vertex as CSR; ``offsets_in`` and
    ``targets_in`` are the edges to it, with the vertices where they begin.

    Return a vertex on a shortest path, -1 if there is no path, and two arrays of shape
    (n_vertices,), -1 for none. From that vertex the first leads back to the source, by the previous
    vertex of each, and the second leads on to the target, by the next vertex of each.
    """
    n = offsets.size - 1
    # Row 0 of each array is of the search from the source, row 1 of that from the target. A
    # frontier, the vertices to expand next, is ``order[side, begins[side] : ends[side]]``; at first
    # it is the source or the target.
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
        level_end = ends[side]  # ``ends`` grows while the level is expanded
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
    """Return whether vertex u leaves the heap before vertex v: by ``distance``, then by ``stamp``,
    the time at which the distance was last improved. NetworkX breaks ties so.
    """
    return distance[u] < distance[v] or (distance[u] == distance[v] and stamp[u] < stamp[v])


@njit(cache=True, nogil=True)
def _rise(heap, place, distance, stamp, i):
    """Move the vertex at position ``i`` of a binary heap up to where it belongs.

    ``heap`` holds vertices in the order of ``_precedes``, by ``distance`` and ``stamp``, and
    ``place`` the position of each vertex in it. Both are changed.
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
    """Remove the first vertex of a binary heap and return it.

    ``heap`` holds ``size`` vertices in the order of ``_precedes``, by ``distance`` and ``stamp``,
    and ``place`` the position of each in it. Both are changed. The caller lowers its own size.
    """
    first = heap[0]
    # The last vertex fills the gap: it sinks from the root until both children follow it.
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
    """Search by Dijkstra's algorithm from all sources together.

    ``edges`` is a WeightedEdges, ``sources`` an array of vertex numbers. The search ends when it
    settles the vertex ``target``, -1 for none. It drops distances above ``limit``.
    ``all_predecessors`` asks for all predecessors of each vertex on shortest paths.

    Return, in this order:

    - the status: DONE, or CONTRADICTION, which means a negative weight;
    - the settled vertices, in the order in which they are settled;
    - distances and parents, of shape (n_vertices,), which mean nothing where unreached;
    - uint8 of shape (n_vertices,): 1 for a distance that is a float to Python; empty if
      ``edges.floats`` is;
    - the vertices in the order of their discovery;
    - two arrays that hold lists of predecessors: that of ``discovered[i]`` is
      ``predecessors[starts[i] : starts[i + 1]]``. Unless ``all_predecessors``, they are empty.
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
    size = clock = np.int64(0)  # ``size`` is the number of vertices in the heap
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
            # A settled vertex cannot improve, but a path of the same length adds a predecessor.
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
    """Copy linked lists of predecessors into one array, in the order of ``vertices``.

    ``first`` has the first element of the list of each vertex, -1 if it is empty. By element,
    ``following`` has the next one, -1 at the end, and ``origin`` the predecessor that it holds.

    Return ``starts``, int64 of shape (vertices.size + 1,), and ``flat``: the predecessors of
    ``vertices[i]`` are ``flat[starts[i] : starts[i + 1]]``.
    """
    # The first pass counts the elements of each list, and the second copies them.
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
    """Find a shortest path by Dijkstra's algorithm from both ends, which settle a vertex in turn.

    ``outgoing`` and ``incoming`` are WeightedEdges: those from each vertex and those to it.

    Return, in this order:

    - the status: DONE, CONTRADICTION, which means a negative weight, or NO_PATH;
    - the length of the path, in the type of the weights;
    - whether it is a float to Python; False unless the weights mix integers and floats;
    - a vertex on the path;
    - two arrays of shape (n_vertices,), -1 for none: from that vertex the first leads back to the
      source, by the previous vertex of each, the second on to the target, by the next of each.
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
    stamp = np.zeros((2, n), np.int64)  # the time of the last improvement, counted by ``clock``
    state = np.zeros((2, n), np.uint8)  # UNSEEN, QUEUED or SETTLED
    is_float = np.zeros((2, n if floats.size else 0), np.uint8)
    parent = np.full((2, n), NONE, targets.dtype)
    heap = np.empty((2, n), targets.dtype)
    place = np.empty((2, n), targets.dtype)  # the position of each queued vertex in its heap
    sizes = np.ones(2, np.int64)  # of the heaps, which begin with the source and the target

    for side, end in enumerate((source, target)):
        heap[side, 0] = end
        place[side, end] = 0
        state[side, end] = QUEUED
    length = distance[0, 0]  # a zero of this type, until a path is found
    length_is_float = False
    meeting = NONE
    clock = np.int64(0)
    side = 1  # the loop changes sides first, so that it begins with the source

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
    """Return whether a predecessor of a vertex is in the queue.

    ``element`` is the first element of the linked list of its predecessors, -1 for an empty list.
    By element, ``following`` has the next one and ``origin`` the predecessor. ``queued`` is 1 for
    a vertex in the queue.
    """
    while element != NONE:
        if queued[origin[element]]:
            return True
        element = following[element]
    return False


@njit(cache=True, nogil=True)
def _lengthen(following, origin):
    """Return copies of ``following`` and ``origin``, the elements of the linked lists of
    predecessors, of twice the size. New elements follow none (-1).
    """
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

    ``edges`` is a WeightedEdges, ``source`` a vertex number. With ``heuristic`` a negative cycle is
    looked for at each improvement; else it is noticed when a vertex is queued for the n-th time.

    Return, in this order:

    - the status: DONE or NEGATIVE_CYCLE;
    - distances of shape (n_vertices,), which mean nothing where unreached;
    - uint8 of shape (n_vertices,): 1 for a distance that is a float to Python; empty if
      ``edges.floats`` is;
    - the vertices that are reached, in the order of their discovery;
    - two arrays that hold lists of predecessors: that of ``discovered[i]`` is
      ``predecessors[starts[i] : starts[i + 1]]``.
    """
    offsets = edges.offsets
    targets = edges.targets
    weights = edges.weights
    floats = edges.floats
    n = offsets.size - 1

    distance = np.zeros(n, weights.dtype)
    is_float = np.zeros(n if floats.size else 0, np.uint8)
    reached = np.zeros(n, np.uint8)  # 1 for a vertex that has a distance
    queued = np.zeros(n, np.uint8)  # 1 for a vertex that is in the queue
    times_queued = np.zeros(n, np.int64)
    parent = np.full(n, NONE, targets.dtype)  # the vertex that improved each one last
    # Of each vertex the ends of the edge on its path that was improved last: if one of them is
    # improved by way of the vertex, the path closes a negative cycle.
    recent_src = np.full(n, NONE, targets.dtype)
    recent_dst = np.full(n, NONE, targets.dtype)
    discovered = np.empty(n, targets.dtype)
    n_discovered = 1
    # Linked lists of the predecessors of each vertex: an element has the next one in ``following``
    # and a predecessor in ``origin``. A vertex may be queued again, so their number has no bound,
    # and these two arrays grow.
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

    # Each pass takes a vertex from the queue and relaxes its edges, as ``_inner_bellman_ford`` of
    # NetworkX does.
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
            elif candidate == np.inf:  # to NetworkX no improvement on the distance of no path
                continue
            if improves:
                # An edge improves v again by way of v itself; else note the edge for v.
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
                    # without a negative cycle a vertex is queued less than n times
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
    """Write to ``owner``, by vertex, the owner of each vertex's parent where it is -1, for none.

    ``order`` has the vertices that are reached, each after its ``parent``.
    """
    for v in order:
        if owner[v] == NONE:
            owner[v] = owner[parent[v]]


@njit(cache=True, nogil=True)
def add_subset_loads(offsets, sources, lengths, distance, order, is_target, loads):
    """Add to ``loads`` what each edge carries for one source by the rule of NetworkX's
    ``edge_betweenness_centrality_subset``: the share of the shortest paths to targets over it.

    ``offsets``, ``sources`` and ``lengths`` are, as CSR, the edges that lead to each vertex:
    ``sources`` has the vertices where they begin. Lengths are above 0, in the type of the
    distances. ``distance``, of shape (n_vertices,), is -1 where unreached if it counts hops, else
    the largest integer or infinite. ``order`` has the vertices that are reached, by ascending
    distance; the first is the source of the search. ``is_target`` is bool of shape (n_vertices,).
    ``loads`` is float64 of shape (n_edges,).

    Return whether the loads were added: False, with nothing added, if a vertex has 2^1000 shortest
    paths or more.
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

    # Backward: what each vertex carries, divided among the edges that lead to it. The source, at
    # position 0, has none.
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
                # A target's paths are divided by their numbers; a vertex that is no target divides
                # evenly what it carries, as NetworkX does.
                if is_target[v]:
                    share = paths[u] / paths[v] * (1.0 + carried[v])
                else:
                    share = carried[v] / n_predecessors
                loads[edge] += share
                carried[u] += share
    return True
