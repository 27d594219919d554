"""Paths along canonical predecessors, found from distances alone: no predecessor of another vertex
is computed.

A path is walked back from its target. The predecessor of a vertex is the smallest tight in-neighbor
that is nearer to the source. A vertex that has none lies behind edges of length zero;
``along_level`` finds its predecessors.

Distances are those of an array of all vertices, or are looked up when a step needs them, in a
contraction hierarchy or in hub labels. The distance of a position is the smallest of what the
upward search from the source has found there, and of the sums over the edges from above. That of a
rank is the smallest sum over the hubs that its label and that of the source share. It is looked up
once per source, so that near vertices share what lies above them.

An edge is tight if the distance of its tail and its length make up the distance of its head.
Distances never increase along a walk, and a step over an edge of length zero leads to a lower level
of the vertices at that distance. So each walk ends, whatever the distances are; ``walk`` says if no
edge explains one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .compiled import njit

NO_EDGE = -1  # no edge explains a distance
CIRCLE = -2  # predecessors lead around a circle
_LEAST = np.int64(-1)  # below every distance
# values of ``level`` that are no layers
_UNSEEN = -1  # the vertex is in no layer
_OFF = -2  # the vertex is in a layer, but no path along the layers leads from it to an end


class Above(NamedTuple):
    """What distances from one source are looked up in: a contraction hierarchy, or hub labels.

    A hierarchy orders the vertices by position, 0 at the top. Hub labels hold, per vertex, the
    distances from some vertices above it, its hubs, and order them by rank; a position is a rank
    then.
    """

    position: np.ndarray  # integer array of shape (n,): the position of each vertex
    # offsets, heads, weights: compressed sparse rows by position: the edges to each position from
    # positions above it, ``heads``, with their weights; or its hubs, and the distances from there.
    # Weights are in units
    offsets: np.ndarray
    heads: np.ndarray
    weights: np.ndarray
    # array of shape (n,), by position: the distances that the upward search from the source found,
    # or those of the label of the source; unreached, a number beyond all sums, elsewhere
    tentative: np.ndarray
    # stack, next_edge: arrays of shape (n,): scratch of a depth-first search: the positions on the
    # way, and the edge of each to be looked at next
    stack: np.ndarray
    next_edge: np.ndarray
    # known, n_known: arrays of shape (n,) and (1,): output: the positions that were looked up, and
    # their number, by which the caller sets their distances back to -1 for the next source
    known: np.ndarray
    n_known: np.ndarray
    is_label: bool  # whether these are labels, and not a hierarchy


class Walks(NamedTuple):
    """What the walks to one source have in common.

    The walks begin at targets of a search and end at its source. ``sources`` are no search sources:
    they are the vertices that the edges leave.
    """

    # offsets, sources, weights: the reversed graph: the tails of the edges into each vertex, its
    # in-neighbors, ascending, and the weights of these edges; None for hops
    offsets: np.ndarray
    sources: np.ndarray
    weights: np.ndarray | None
    # The number that weights are multiples of, in which distances are then counted, as int64; None
    # if distances are sums of the weights as they are.
    unit: float | None
    # distance, above: of shape (n,): either the distance from the source to each vertex, -1 or
    # beyond all others where unreached, and None; or the distance to each position, -1 until it is
    # looked up, and what it is looked up in
    distance: np.ndarray
    above: Above | None
    # int32 array of shape (n,): scratch of ``along_level``: the layer of each vertex, its number of
    # edges from the vertex where that search begins; -1 for none, as before and after
    level: np.ndarray
    # queue, path: integer arrays of shape (n,): scratch, the vertices layer by layer; and output,
    # the vertices of the path, from the target back to the source
    queue: np.ndarray
    path: np.ndarray


def new_walk_scratch(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ``level``, ``queue`` and ``path`` of ``Walks`` for ``n`` vertices, for one thread."""
    queue, path = np.empty((2, n), np.int64)
    return np.full(n, -1, np.int32), queue, path


@njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _look_up(p, of_heads, enough, distance, above):
    """Look up the distance of the position ``p``, by those of the positions above it, or of its
    hubs, and write it to ``distance``.

    ``of_heads``, of shape (n,), has the distances of the positions above, or of the hubs. The
    caller knows that no sum is below ``enough``, so that a sum that is equal to it ends the
    look-up. ``above`` is ``Above``.
    """
    best = above.tentative[p]
    for e in range(above.offsets[p], above.offsets[p + 1]):
        total = of_heads[above.heads[e]] + above.weights[e]
        if total < best:
            best = total
            if best <= enough:
                break
    distance[p] = best
    above.known[above.n_known[0]] = p
    above.n_known[0] += 1


@njit(cache=True, nogil=True)
def distance_at(v, distance, above):
    """Return the distance of a vertex. There are three cases: it is known already, or it is looked
    up in a label, or in a hierarchy.

    ``distance`` and ``above`` are as in ``Walks``: without ``above``, the distance of each vertex
    is known; else that of each position, -1 if it has not been looked up. What is looked up here is
    kept in ``distance``.
    """
    if above is None:
        return distance[v]
    p = above.position[v]
    if distance[p] >= 0:
        return distance[p]

    # The hubs of a label have distances already: one pass over them is enough.
    if above.is_label:
        _look_up(p, above.tentative, _LEAST, distance, above)
        return distance[p]

    # In a hierarchy, the distances of the positions above are needed first: visit these depth
    # first. ``stack[:depth + 1]`` are the positions on the way from p.
    offsets = above.offsets
    heads = above.heads
    stack = above.stack
    next_edge = above.next_edge
    depth = 0
    stack[0] = p
    next_edge[0] = offsets[p]
    while depth >= 0:
        q = stack[depth]
        e = next_edge[depth]
        end = offsets[q + 1]
        while e < end and distance[heads[e]] >= 0:
            e += 1
        if e < end:  # an unknown position above: go there, and come back to this edge
            next_edge[depth] = e
            depth += 1
            stack[depth] = heads[e]
            next_edge[depth] = offsets[heads[e]]
            continue

        _look_up(q, distance, _LEAST, distance, above)
        depth -= 1
    return distance[p]


@njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _distance_before(u, least, distance, above):
    """Return the distance of the in-neighbor ``u``, of which the caller knows that it is at least
    ``least``.

    So the first sum of a label that is no more than ``least`` is the distance, and ends the pass
    over the label. ``distance`` and ``above`` are as in ``Walks``.
    """
    if above is None:
        return distance[u]
    p = above.position[u]
    if above.is_label and distance[p] < 0:
        _look_up(p, above.tentative, least, distance, above)
    return distance_at(u, distance, above)


@njit(cache=True, nogil=True)
def distances_at(vertices, distance, above, distances):
    """Write the distance of each of ``vertices`` to ``distances``, of the same length. ``distance``
    and ``above`` are as in ``Walks``.
    """
    for i in range(vertices.size):
        distances[i] = distance_at(vertices[i], distance, above)


@njit(cache=True, nogil=True)
def _length(weights, e, unit):
    """Return the length of edge ``e``: one hop if ``weights`` is None, its weight if ``unit`` is
    None, and else how many units its weight has, int64.
    """
    if weights is None:
        return np.int64(1)
    if unit is None:
        return weights[e]
    if unit == 1:
        return np.int64(weights[e])
    return np.int64(weights[e] / unit)


@njit(cache=True, nogil=True)
def nearer_edge(v, own_distance, walks):
    """Return the tight edge into v from the smallest in-neighbor that is nearer, or ``NO_EDGE``.

    ``own_distance`` is the distance of v, and ``walks`` are ``Walks``. Edges are positions in the
    reversed graph, where in-neighbors ascend, so that the first in-neighbor that fits is the
    smallest.
    """
    offsets = walks.offsets
    sources = walks.sources
    weights = walks.weights
    unit = walks.unit
    distance = walks.distance
    above = walks.above
    # An edge is tight if the distance of its tail and its length make up the distance of v.
    for e in range(offsets[v], offsets[v + 1]):
        length = _length(weights, e, unit)
        # No in-neighbor is nearer than this, or v would be nearer, too.
        d = _distance_before(np.int64(sources[e]), own_distance - length, distance, above)
        # Compared in the type of the distances, in which the search has added.
        if 0 <= d < own_distance and distance.dtype.type(d + length) == own_distance:
            return np.int64(e)
    return np.int64(NO_EDGE)


@njit(cache=True, nogil=True)
def along_level(v, source, own_distance, size, walks):
    """Append to ``walks.path`` the way from the vertex ``v``, back over edges of length zero, to a
    vertex that has a nearer in-neighbor, or to the source.

    All vertices of the way are at the distance ``own_distance``. It has as few edges as possible,
    and each step leads to the smallest in-neighbor from which so few edges suffice. Such a way is
    needed where all tight edges into ``v`` have length zero. ``walks`` are ``Walks``. There are
    ``size`` vertices on the path before. Return how many are on it afterwards, without ``v`` itself
    being added, or ``NO_EDGE`` if there is no such way.
    """
    # A search back from v, by layers, finds the nearest ends. Then vertices of layers from which no
    # end can be reached are taken out, and the way follows the smallest vertices that are left.
    depth, last = _search_level(v, source, own_distance, walks)
    n_path = np.int64(NO_EDGE)
    if depth >= 0:
        _mark_dead_ends(source, own_distance, depth, last, walks)
        n_path = size
        x = v
        while walks.level[x] < depth:
            x = _next_of_level(x, own_distance, walks)
            walks.path[n_path] = x
            n_path += 1

    for i in range(last):
        walks.level[walks.queue[i]] = _UNSEEN
    return n_path


@njit(cache=True, nogil=True)
def _is_end(x, source, own_distance, walks):
    """Return whether a way over edges of length zero may end at ``x``: it is the source, or a tight
    edge leads to it from a nearer in-neighbor. ``own_distance`` is the distance of ``x``.
    """
    if x == source:
        return True
    return nearer_edge(x, own_distance, walks) != NO_EDGE


@njit(cache=True, nogil=True)
def _is_level(e, own_distance, walks):
    """Return whether edge ``e`` adds nothing to the distance ``own_distance``, in the type of the
    distances: its length is zero, or lost by rounding.
    """
    distance = walks.distance
    return distance.dtype.type(own_distance + _length(walks.weights, e, walks.unit)) == own_distance


@njit(cache=True, nogil=True)
def _search_level(v, source, own_distance, walks):
    """Search back from ``v``, over edges of length zero and layer by layer, until a layer has a
    vertex at which the way may end.

    ``own_distance`` is the distance of ``v``, and so of all these vertices. A layer holds the
    vertices with the same number of edges to ``v``, which is layer 0. The layer
    of each vertex is written to ``walks.level``, and the vertices to ``walks.queue``. Return the
    last layer, or -1 if none has an end, and how many vertices are in the queue.
    """
    level = walks.level
    queue = walks.queue
    queue[0] = v
    level[v] = 0
    first = 0
    last = 1
    depth = 0
    while first < last:
        end = last
        is_found = False
        for i in range(first, end):
            x = np.int64(queue[i])
            # v itself is known to have no nearer in-neighbor.
            if x == source or (depth > 0 and _is_end(x, source, own_distance, walks)):
                is_found = True
            elif not is_found:
                last = _add_layer(x, own_distance, depth + 1, last, walks)
        if is_found:
            return depth, last
        first = end
        depth += 1
    return -1, last


@njit(cache=True, nogil=True)
def _add_layer(x, own_distance, depth, last, walks):
    """Put the in-neighbors of ``x`` over edges of length zero that are at its distance
    ``own_distance``, and in no layer yet, into the layer ``depth``.

    There are ``last`` vertices in ``walks.queue`` before. Return how many there are afterwards.
    """
    for e in range(walks.offsets[x], walks.offsets[x + 1]):
        u = np.int64(walks.sources[e])
        if walks.level[u] != _UNSEEN or not _is_level(e, own_distance, walks):
            continue
        if distance_at(u, walks.distance, walks.above) == own_distance:
            walks.level[u] = depth
            walks.queue[last] = u
            last += 1
    return last


@njit(cache=True, nogil=True)
def _mark_dead_ends(source, own_distance, depth, last, walks):
    """Mark by ``_OFF`` the vertices of the queue from which no way along the layers leads to an end
    in the layer ``depth``. There are ``last`` vertices in the queue, all at ``own_distance``.
    """
    level = walks.level
    # From the last layer on: whether a vertex leads on depends on the layer behind it.
    for i in range(last - 1, -1, -1):
        x = np.int64(walks.queue[i])
        if level[x] == depth:
            leads = _is_end(x, source, own_distance, walks)
        else:
            leads = level[x] < depth and _next_of_level(x, own_distance, walks) >= 0
        if not leads:
            level[x] = _OFF


@njit(cache=True, nogil=True)
def _next_of_level(x, own_distance, walks):
    """Return the smallest in-neighbor of ``x`` over an edge of length zero in the next layer, by
    ``walks.level``, or -1 if there is none. ``own_distance`` is the distance of ``x``.
    """
    for e in range(walks.offsets[x], walks.offsets[x + 1]):
        u = np.int64(walks.sources[e])
        if walks.level[u] == walks.level[x] + 1 and _is_level(e, own_distance, walks):
            return u
    return np.int64(-1)


@njit(cache=True, nogil=True)
def walk(source, target, walks):
    """Write the path from a reached target back to the source into ``walks.path``.

    ``source`` is that of the search, and ``walks`` are ``Walks`` with the distances from it. With
    ``walks.above``, distances that are looked up stay in ``walks.distance``, and ``above`` keeps
    the list of them, so that later walks to the same source find them. Return the number of
    vertices of the path, or ``NO_EDGE`` if no edge explains the distance of one of them.
    """
    sources = walks.sources  # the tails of the edges of the graph, by their positions
    distance = walks.distance
    above = walks.above
    path = walks.path
    path[0] = target
    # of one type in each call: a function is compiled for each type of an argument
    size = np.int64(1)
    v = np.int64(target)
    while v != source:
        own_distance = distance_at(v, distance, above)
        edge = nearer_edge(v, own_distance, walks)
        if edge != NO_EDGE:
            v = np.int64(sources[edge])
            path[size] = v
            size += 1
            continue
        # No in-neighbor on a shortest path is nearer: edges of length zero lead here.
        size = along_level(v, source, own_distance, size, walks)
        if size == NO_EDGE:
            return size
        v = np.int64(path[size - 1])
    return size


@njit(cache=True, nogil=True)
def count_back(predecessor, rows, ends, sizes):
    """Write to ``sizes`` the number of vertices of each path, from its end back along predecessors
    to a vertex that is its own predecessor, the source.

    ``predecessor``, of shape (k, n), has a row per source: the vertex before each vertex. ``rows``
    has, for each path, the row that it follows, and ``ends`` the vertex where it ends. A size
    becomes ``NO_EDGE`` if the path leads to a negative predecessor, and ``CIRCLE`` if it does not
    end. After a circle no further size is written.
    """
    n = predecessor.shape[1]
    for i in range(ends.size):
        v = np.int64(ends[i])
        size = np.int64(1)
        before = np.int64(predecessor[rows[i], v])
        # A path of more than n vertices passes one of them twice, and so never ends.
        while before != v and before >= 0 and size <= n:
            v = before
            before = np.int64(predecessor[rows[i], v])
            size += 1
        if before < 0:
            size = np.int64(NO_EDGE)
        elif size > n:
            sizes[i] = CIRCLE
            return
        sizes[i] = size


@njit(cache=True, nogil=True)
def write_back(predecessor, rows, ends, sizes, vertices):
    """Write the vertices of the paths of ``count_back``, one path after the other, each from its
    source to its end.

    ``predecessor``, ``rows`` and ``ends`` are the arguments of ``count_back``, and ``sizes`` are
    its results, none of them negative. ``vertices`` has as many places as their sum.
    """
    stop = np.int64(0)  # the place behind the last vertex of the path
    for i in range(ends.size):
        stop += sizes[i]
        v = np.int64(ends[i])
        for back in range(sizes[i]):
            vertices[stop - 1 - back] = v
            v = np.int64(predecessor[rows[i], v])
