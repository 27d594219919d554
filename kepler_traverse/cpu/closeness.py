"""Prove that the closeness of vertices, by hops, is below a threshold, with searches that end as
soon as it is proven.

A search that has found all vertices within d hops of v knows how many there are and the sum of
their distances. Each other vertex is at least d + 1 hops away, and no more are at d + 1 hops than
edges leave the vertices at d hops. So the search bounds the sum of distances from below, and the
closeness from above (Bergamini, Borassi, Crescenzi, Marino, Meyerhenke 2017, BFSCut). The number r
of vertices that v reaches lies between two known numbers. The bound is largest at one of them, or
where the vertices at d + 1 hops are used up: the quotient of (r - 1)^2 and a convex function of r
that is linear between these has no maximum inside a linear piece.

The proof of a threshold is checked by a second pass over the visited edges, which does not use what
the search counted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from . import threads
from .atomics import atomic_add
from .compiled import njit
from .edges import Neighbors

# Verdicts: the closeness of a vertex is not proven to be below the threshold; it is; or it was, but
# the check of the proof failed, so that the search returned wrong distances.
OPEN = 0
BELOW = 1
WRONG = 2
_BETWEEN_BOUNDS = 256  # edges that are visited within a level before the bound is computed again
_SLACK = 1 + 2.0**-40  # a factor that exceeds the rounding of a bound


class Links(NamedTuple):
    """The edges of a graph, in compressed sparse rows."""

    # offsets, targets: vertex v has edges to targets[offsets[v]] to targets[offsets[v + 1] - 1]
    offsets: np.ndarray
    targets: np.ndarray
    directed: bool  # whether each edge has one direction; else it is stored both ways


class Claims(NamedTuple):
    """What is to be proven of some vertices, for all threads."""

    vertices: np.ndarray  # integers of shape (k,): the numbers of these vertices
    # least, most: int64 arrays of shape (n_vertices,): a lower and an upper bound of how many
    # vertices each vertex reaches, itself included
    least: np.ndarray
    most: np.ndarray
    threshold: float  # the closeness must be below it
    # A vertex number, that of the k-th vertex: the closeness of vertices of a larger number may
    # also be equal to the threshold, since of equal vertices the smaller number comes first.
    last: int
    certified: bool  # whether each proof is checked
    # int8 array of shape (k,), output: ``OPEN``, ``BELOW`` or ``WRONG`` per element of ``vertices``
    verdicts: np.ndarray


class Explored(NamedTuple):
    """What a search from one vertex has found."""

    # int32 array of shape (n_vertices,): hops from the source, -1 where not found, and everywhere
    # before and after a search
    distance: np.ndarray
    # integers of shape (n_vertices + 1,): the vertices that were found, in this order, and one more
    # place, to which a search writes before it knows whether a vertex is new
    queue: np.ndarray
    n_done: int  # of the queue, from its beginning: the number of vertices whose edges were visited
    n_found: int  # the number of vertices in the queue


class Components(NamedTuple):
    """The strongly connected components of a graph."""

    labels: np.ndarray  # of shape (n_vertices,): the number of the component of each vertex
    sizes: np.ndarray  # int64 array of shape (n_components,): the number of vertices of each
    members: np.ndarray  # of shape (n_vertices,): the vertices, sorted by component
    # int64 array of shape (n_components + 1,): component c is members[begins[c]:begins[c + 1]]
    begins: np.ndarray


class Hub(NamedTuple):
    """One strongly connected component, ideally the largest one, that bounds what others reach."""

    label: int  # the number of the component
    # in_reach, reaches: bool arrays of shape (n_vertices,): True for a vertex that the component
    # reaches, and True for a vertex that reaches the component
    in_reach: np.ndarray
    reaches: np.ndarray


def prove_below(
    graph, vertices, reach, threshold: float, last: int, certified: bool
) -> tuple[np.ndarray, int]:
    """Try to prove, for each of some vertices, that its closeness in hops is below a threshold.

    Parameters
    ----------
    graph : Graph
        In host memory.
    vertices : integer array of shape (k,)
        Vertex numbers.
    reach : two int64 arrays of shape (n_vertices,)
        A lower and an upper bound of the number of vertices that each vertex reaches, itself
        included.
    threshold : float
    last : int
        A vertex number. For vertices of a larger number it is enough that the closeness is at most
        the threshold.
    certified : bool
        Whether each proof is checked.

    Returns
    -------
    verdicts : int8 array of shape (k,)
        ``OPEN``, ``BELOW`` or ``WRONG`` per vertex.
    n_edges : int
        The number of edges that were visited.
    """
    n = graph.n_vertices
    verdicts = np.full(vertices.size, OPEN, np.int8)
    n_threads = max(1, min(threads.count(), vertices.size))
    distance = np.full((n_threads, n), -1, np.int32)
    queues = np.empty((n_threads, n + 1), graph.targets.dtype)
    # Of 8 entries the first is used: a cache line per counter, so that threads do not wait for each
    # other.
    next_item = np.zeros(8, np.int64)
    n_edges = np.zeros((n_threads, 8), np.int64)

    links = Links(graph.offsets, graph.targets, graph.directed)
    least, most = reach
    claims = Claims(vertices, least, most, threshold, last, certified, verdicts)

    def work(thread: int) -> None:
        """Prove claims with the memory of one thread until all are taken."""
        _prove(next_item, links, claims, distance[thread], queues[thread], n_edges[thread])

    def stop() -> None:
        """Leave no claim for the threads to take, after an interrupt."""
        next_item[0] = vertices.size

    threads.on_each(work, n_threads, stop)
    if certified:
        _require_clear(distance, verdicts)
    return verdicts, int(n_edges.sum())


def _require_clear(distance, verdicts) -> None:
    """Set all ``verdicts`` to ``WRONG`` if a search gave a vertex a distance without a place in its
    queue, where it was not counted.

    ``distance``, of shape (n_threads, n_vertices), is that of ``Explored``. Each search clears the
    distances of its queue, so that only such a vertex leaves a distance behind.
    """
    if (distance != -1).any():
        verdicts[:] = WRONG


@njit(cache=True, nogil=True)
def count_levels(distance):
    """Return the number of vertices at each number of hops from 0 to the largest, int64.

    ``distance`` has the hops of all vertices; vertices at -1 are not counted.
    """
    counts = np.zeros(1024, np.int64)
    n_levels = 0
    for d in distance:
        if d >= counts.size:
            grown = np.zeros(max(2 * counts.size, d + 1), np.int64)
            # The assignment of a slice would take seconds to compile, for its error message.
            for i in range(counts.size):
                grown[i] = counts[i]
            counts = grown
        if d >= 0:
            counts[d] += 1
            n_levels = max(n_levels, d + 1)
    return counts[:n_levels]


@njit(cache=True, nogil=True)
def sum_over_neighbors(offsets, targets, values):
    """Return, per vertex, the sum of ``values``, int64 with one per vertex, over the heads of its
    edges. ``offsets`` and ``targets`` are those of the CSR.
    """
    # Indices are unsigned, so that Numba does not ask whether they are negative.
    sums = np.zeros(offsets.size - 1, np.int64)
    for v in range(sums.size):
        for e in range(np.uint64(offsets[v]), np.uint64(offsets[v + 1])):
            sums[v] += values[np.uint64(targets[e])]
    return sums


@njit(cache=True, nogil=True)
def bound_component(distance, labels, label, least, degrees, n_reached, bound):
    """Lower ``bound``, upper bounds of the closeness with one per vertex of the graph, for the
    vertices of one strongly connected component.

    ``label`` is the number of the component, and ``labels`` has that of each vertex. ``distance``
    has the hops from one vertex of the component to all vertices. ``least`` has, for each number of
    hops, a lower bound of the sum of distances of a vertex at so many hops, plus the degree of the
    vertex, which is in ``degrees``. A vertex of the component reaches ``n_reached`` vertices,
    itself included.
    """
    others = n_reached - 1
    share = others / (labels.size - 1)

    # The closeness of NetworkX: (others / sum of distances) * (share of the graph that is reached).
    for v in range(labels.size):
        if labels[v] == label:
            least_sum = least[distance[v]] - degrees[v]
            if least_sum > 0:  # else it bounds nothing
                bound[v] = min(bound[v], others / least_sum * share)


def reach_bounds(graph, labels, hub, in_reach, reaches) -> tuple[np.ndarray, np.ndarray]:
    """Return a lower and an upper bound of the number of vertices that each vertex of a directed
    graph reaches, itself included: two int64 arrays of shape (n_vertices,).

    ``graph`` is in host memory. ``labels`` has the number of the strongly connected component of
    each vertex, and ``hub`` is the number of one component, ideally the largest one. ``in_reach``
    and ``reaches``, of type bool, say which vertices it reaches, and which reach it.
    """
    sizes = np.bincount(labels)
    least, most = np.empty((2, sizes.size), np.int64)
    components = Components(
        labels,
        sizes,
        members=np.argsort(labels, kind="stable"),
        begins=np.concatenate([[0], np.cumsum(sizes)]),
    )
    _bound_components(Neighbors.of(graph), components, Hub(hub, in_reach, reaches), least, most)
    return least[labels], most[labels]


@njit(cache=True, nogil=True)
def _bound_components(edges, components, hub, least, most):
    """Write a lower and an upper bound of the number of vertices that the vertices of each
    component reach, to ``least`` and ``most``, int64 of shape (n_components,).

    ``edges`` are ``Neighbors``, ``components`` are ``Components``, and ``hub`` is ``Hub``.
    Components are passed in an order in which none comes before those it has an edge to. A
    component reaches, beside its own vertices, at least what any of its successors reaches, and at
    most what all of them reach together. A component that reaches the hub reaches all that the hub
    does, and beyond this at most what it and its successors reach outside.
    """
    offsets = edges.offsets
    targets = edges.targets
    labels = components.labels
    sizes = components.sizes
    members = components.members
    begins = components.begins
    in_reach = hub.in_reach
    reaches = hub.reaches
    n_components = sizes.size

    # Order the components topologically (Kahn 1962).
    missing = np.zeros(n_components, np.int64)  # edges from components that are not listed yet
    for u in range(labels.size):
        for e in range(offsets[u], offsets[u + 1]):
            missing[labels[targets[e]]] += labels[u] != labels[targets[e]]

    order = np.empty(n_components, np.int64)
    n_ordered = 0
    for c in range(n_components):
        if missing[c] == 0:
            order[n_ordered] = c
            n_ordered += 1

    head = 0
    while head < n_ordered:
        c = order[head]
        head += 1
        for i in range(begins[c], begins[c + 1]):
            for e in range(offsets[members[i]], offsets[members[i] + 1]):
                other = labels[targets[e]]
                if other != c:
                    missing[other] -= 1
                    if missing[other] == 0:
                        order[n_ordered] = other
                        n_ordered += 1

    n_reached = n_reaching = 0
    for v in range(labels.size):
        n_reached += in_reach[v]
        n_reaching += reaches[v]

    # From the last component on, so that the bounds of all successors are known. ``outside`` has an
    # upper bound of the vertices that a component reaches and the hub does not. ``seen`` has, per
    # component, the last component that had it as a successor, so that each counts once.
    outside = np.zeros(n_components, np.int64)
    seen = np.full(n_components, -1, np.int64)
    for j in range(n_components - 1, -1, -1):
        c = order[j]
        # Of the successors: the sum of ``outside``, the largest lower bound, and the sum of the
        # upper bounds. Both sums count a vertex that several successors reach more than once.
        beyond = farthest = total = 0
        for i in range(begins[c], begins[c + 1]):
            for e in range(offsets[members[i]], offsets[members[i] + 1]):
                other = labels[targets[e]]
                if other != c and seen[other] != c:
                    seen[other] = c
                    farthest = max(farthest, least[other])
                    total = min(total + most[other], labels.size)
                    if not in_reach[members[begins[other]]]:
                        beyond = min(beyond + outside[other], labels.size)

        first = members[begins[c]]  # stands for all: vertices of a component reach the same
        outside[c] = sizes[c] + beyond
        least[c] = sizes[c] + farthest
        most[c] = sizes[c] + total
        if c == hub.label:
            least[c] = most[c] = n_reached
        elif reaches[first]:
            least[c] = max(least[c], sizes[c] + n_reached)
            most[c] = min(most[c], outside[c] + n_reached)
        else:  # what does not reach the hub reaches nothing that does
            most[c] = min(most[c], labels.size - n_reaching)
        most[c] = min(most[c], labels.size)


@njit(cache=True, nogil=True)
def _prove(next_item, links, claims, distance, queue, n_edges):
    """Try to prove the claims of vertices that no other thread has taken, until all are taken.

    ``next_item`` is the counter from which threads take positions in ``claims.vertices``. ``links``
    is ``Links``, and ``claims`` is ``Claims``. ``distance`` and ``queue``, as in ``Explored``, are
    the thread's own. The number of edges that it visits is added to ``n_edges[0]``.
    """
    offsets = links.offsets
    vertices = claims.vertices
    item = atomic_add(next_item, 0, 1)
    while item < vertices.size:
        v = vertices[item]
        least = claims.least[v]
        most = claims.most[v]
        if v <= claims.last:
            goal = claims.threshold
        else:  # a closeness below the float after the threshold is at most the threshold
            goal = np.nextafter(claims.threshold, np.inf)

        n_done, n_found, is_below = _explore(links, v, least, most, goal, distance, queue)
        if is_below:
            explored = Explored(distance, queue, n_done, n_found)
            is_proven = not claims.certified or _is_proven(links, v, least, most, goal, explored)
            claims.verdicts[item] = BELOW if is_proven else WRONG

        for i in range(n_found):
            distance[queue[i]] = -1
        for i in range(n_done):
            n_edges[0] += offsets[queue[i] + 1] - offsets[queue[i]]
        item = atomic_add(next_item, 0, 1)


@njit(cache=True, nogil=True)
def _explore(links, source, least, most, goal, distance, queue):
    """Search from a vertex by BFS until its closeness is proven to be below ``goal``, or until all
    vertices are found.

    ``least`` and ``most`` are bounds of the number of vertices that ``source`` reaches;
    ``distance`` and ``queue`` are as in ``Explored``, output. Return ``n_done`` and ``n_found`` of
    ``Explored``, and whether the closeness is below the goal.
    """
    offsets = links.offsets
    targets = links.targets
    directed = links.directed
    n = distance.size

    # Indices are unsigned, so that Numba does not ask whether they are negative.
    one = np.uint64(1)
    distance[source] = 0
    queue[0] = source
    head = np.uint64(0)
    tail = one
    # the level that is visited, in hops, and the sum of the distances of all vertices up to it
    level = total = np.int64(0)

    while head < tail:
        level_end = tail
        # Edges of the level that may lead to new vertices: of an undirected graph, one edge per
        # vertex leads back to the vertex before it.
        edges_left = np.int64(0)
        for i in range(head, level_end):
            u = np.uint64(queue[i])
            edges_left += np.int64(offsets[u + one] - offsets[u]) - (not directed and level > 0)

        if _largest_closeness(np.int64(level_end), total, level, edges_left, least, most, n) < goal:
            return np.int64(head), np.int64(tail), True

        visited = 0
        while head < level_end:
            u = np.uint64(queue[head])
            head += one
            begin = np.uint64(offsets[u])
            finish = np.uint64(offsets[u + one])
            for e in range(begin, finish):
                # Every neighbor is written to the queue, and stays there if it is new.
                neighbor = targets[e]
                queue[tail] = neighbor
                v = np.uint64(neighbor)
                known = distance[v]
                is_new = known < 0
                distance[v] = level + 1 if is_new else known
                tail += np.uint64(is_new)
            degree = np.int64(finish - begin)
            edges_left -= degree - (not directed and level > 0)
            visited += degree

            # Within a long level: the edges that are left bound the next level better.
            if visited >= _BETWEEN_BOUNDS and head < level_end:
                visited = 0
                most_next = np.int64(tail - level_end) + edges_left
                if (
                    _largest_closeness(np.int64(level_end), total, level, most_next, least, most, n)
                    < goal
                ):
                    return np.int64(head), np.int64(tail), True

        level += 1
        total += level * np.int64(tail - level_end)
    return np.int64(head), np.int64(tail), False


@njit(cache=True, nogil=True)
def _is_proven(links, source, least, most, goal, explored):
    """Return whether a proof of ``_explore`` is right. Distances that are too small make the bound
    larger, so that they prove nothing wrong, and distances that are too large break a rule.

    ``explored`` is ``Explored``, and the other arguments are those of ``_explore``. Each edge from
    a visited vertex must lead to a vertex that was found, at most one hop farther. So no vertex
    whose distance is at most that of the first vertex that was not visited is nearer than stated.
    In an undirected graph each vertex but the source needs a neighbor that is one hop nearer, since
    the bound leaves out one edge of each. That all vertices with a distance are in the queue is
    checked at the end, by ``_require_clear``.
    """
    offsets = links.offsets
    targets = links.targets
    directed = links.directed
    distance = explored.distance
    queue = explored.queue
    n_done = explored.n_done
    n_found = explored.n_found
    if n_found < 1 or queue[0] != source or distance[source] != 0 or n_done >= n_found:
        return False

    # The level of the first vertex that was not visited. Up to it there are ``within`` vertices,
    # whose distances have the sum ``total``, and ``beyond`` were found at one hop more. Of the
    # vertices at this level that were not visited, ``edges_left`` edges may lead to further ones.
    level = np.int64(distance[queue[n_done]])
    within = total = beyond = edges_left = np.int64(0)
    for i in range(n_found):
        u = queue[i]
        hops = distance[u]
        # Only the source, the first in the queue, is at 0. Visited vertices are not beyond the
        # level, and others not before it.
        if (
            hops < (i > 0)
            or hops > level + 1
            or (i < n_done and hops > level)
            or (i >= n_done and hops < level)
        ):
            return False

        within += hops <= level
        beyond += hops > level
        total += hops * (hops <= level)

        # ``nearest`` becomes the smallest distance of a neighbor, if that is less.
        degree = offsets[u + 1] - offsets[u]
        nearest = hops
        if i < n_done:
            for e in range(offsets[u], offsets[u + 1]):
                neighbor_hops = distance[targets[e]]
                if neighbor_hops < 0 or neighbor_hops > hops + 1:
                    return False
                nearest = min(nearest, neighbor_hops)
        elif hops == level:
            edges_left += degree - (not directed and level > 0)
            for e in range(offsets[u], offsets[u + 1] if not directed else offsets[u]):
                neighbor_hops = distance[targets[e]]
                nearest = min(nearest, neighbor_hops if neighbor_hops >= 0 else hops)

        if not directed and 0 < hops <= level and nearest != hops - 1:
            return False

    # No vertex may be counted twice: its distance is cleared the first time. The caller clears the
    # same vertices afterwards.
    for i in range(n_found):
        if distance[queue[i]] < 0:
            return False
        distance[queue[i]] = -1
    return (
        _largest_closeness(within, total, level, beyond + edges_left, least, most, distance.size)
        < goal
    )


@njit(cache=True, nogil=True)
def _largest_closeness(within, total, level, most_next, least, most, n):
    """Return an upper bound of the closeness of a vertex in a graph of ``n`` vertices.

    ``within`` vertices, itself included, are within ``level`` hops, with ``total`` as the sum of
    their distances, and at most ``most_next`` are at one hop more. It reaches from ``least`` to
    ``most`` vertices; if these are equal, the bound is rounded as the closeness is. The bound is
    largest if it reaches ``least`` vertices, or ``most``, or just all ``most_next`` at one hop more
    and none farther: the maximum of these three.
    """
    least = max(least, within)
    bound = _closeness(most - within, within, total, level, most_next, n)
    if least < most:
        bound = max(bound, _closeness(least - within, within, total, level, most_next, n))
        if least < within + most_next < most:
            bound = max(bound, _closeness(most_next, within, total, level, most_next, n))
        bound *= _SLACK
    return bound


@njit(cache=True, nogil=True)
def _closeness(others, within, total, level, most_next, n):
    """Return the closeness of a vertex that reaches ``others`` vertices beyond ``level`` hops, as
    near as they can be.

    ``within`` vertices, itself included, are within ``level`` hops, with distances of the sum
    ``total``. At most ``most_next`` are at one hop more. ``n`` is the number of vertices of the
    graph. The result is 0 if the sum of distances is 0.
    """
    # Each of ``others`` counts level + 1, and those beyond ``most_next``, for which there is no
    # place at one hop more, count 1 more.
    least_sum = total + (level + 1) * others + max(others - most_next, 0)
    reached = within + others - 1
    if least_sum > 0:
        return reached / least_sum * (reached / (n - 1))
    return 0.0
