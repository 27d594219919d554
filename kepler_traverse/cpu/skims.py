"""Sums of columns of the edges along canonical paths, from a source to some targets.

Each target is walked back, by ``path_walk``, to the first vertex whose sums are known, and the sums
of the vertices on the way are then added up from there. So each vertex of the union of the paths is
visited once per source, and floats are added in the order of the path.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .compiled import njit
from .path_walk import NO_EDGE, along_level, nearer_edge


class EdgeColumns(NamedTuple):
    """Columns of the edges to be summed, such as metres, with a row per edge: its position in the
    reversed graph.
    """

    integers: np.ndarray  # int64 of shape (n_edges, n_integer_columns)
    floats: np.ndarray  # float64 of shape (n_edges, n_float_columns)


class SumTree(NamedTuple):
    """Scratch of one thread: the sums along the paths from one source, a row per vertex.

    A stamp is a number of a search. Only sums of vertices with the stamp of the search count;
    others are of earlier searches. So nothing need be cleared between searches.
    """

    # int64 (n,): the stamp of the last search in which the sums of a vertex became known; -1 before
    stamp: np.ndarray
    # integers, floats: int64 and float64 (n, n_columns): the sums along the path to each vertex, in
    # the columns of ``EdgeColumns``
    integers: np.ndarray
    floats: np.ndarray
    hops: np.ndarray  # int32 (n,): the number of edges of the path to each vertex
    # vertex, edge: int32 and int64 (n,): scratch: the vertices of the way back that is walked, from
    # the target on, and the edge that leads to each of them, as its position in the reversed graph
    vertex: np.ndarray
    edge: np.ndarray
    # known, n_known: int32 (n,) and int64 (1,): the vertices whose sums the last search has made
    # known, in that order, and their number
    known: np.ndarray
    n_known: np.ndarray


def new_sum_tree(n: int, columns: EdgeColumns) -> SumTree:
    """Return the scratch of one thread for ``n`` vertices and the sums of ``columns``."""
    vertex, known, hops = np.empty((3, n), np.int32)
    return SumTree(
        stamp=np.full(n, -1),
        integers=np.empty((n, columns.integers.shape[1]), np.int64),
        floats=np.empty((n, columns.floats.shape[1])),
        hops=hops,
        vertex=vertex,
        edge=np.empty(n, np.int64),
        known=known,
        n_known=np.zeros(1, np.int64),
    )


@njit(cache=True, nogil=True)
def _begin_at_source(source, stamp, tree):
    """Make the sums of a source known in ``tree``, a ``SumTree``: they are 0. ``stamp`` is the
    number of the search.
    """
    tree.stamp[source] = stamp
    tree.hops[source] = 0
    tree.integers[source] = 0
    tree.floats[source] = 0
    tree.known[tree.n_known[0]] = source
    tree.n_known[0] += 1


@njit(cache=True, nogil=True)
def _add_along_way(depth, stamp, sources, columns, tree):
    """Make the sums of the first ``depth`` vertices of the way known. It begins at the vertex
    nearest to the source, ``tree.vertex[depth - 1]``, whose predecessor has known sums, and goes on
    to the target, ``tree.vertex[0]``.

    ``stamp`` is that of the search, and ``sources`` are the tails of the edges, by their positions
    in the reversed graph. ``columns`` are ``EdgeColumns``, and ``tree`` is ``SumTree``, which has
    the way.
    """
    for i in range(depth - 1, -1, -1):
        v = np.int64(tree.vertex[i])
        e = tree.edge[i]
        u = np.int64(sources[e])
        for c in range(columns.integers.shape[1]):
            tree.integers[v, c] = tree.integers[u, c] + columns.integers[e, c]
        for c in range(columns.floats.shape[1]):
            tree.floats[v, c] = tree.floats[u, c] + columns.floats[e, c]
        tree.hops[v] = tree.hops[u] + 1
        tree.stamp[v] = stamp
        tree.known[tree.n_known[0]] = v
        tree.n_known[0] += 1


@njit(cache=True, nogil=True)
def edge_between(u, v, offsets, sources):
    """Return the position in the reversed graph of the edge from ``u`` to ``v``; there is one.

    ``sources`` are the tails of the edges, which ascend for each ``v``, so that the edge is found
    by bisection.
    """
    low = offsets[v]
    high = offsets[v + 1]
    while low < high:
        middle = low + (high - low) // 2
        if sources[middle] < u:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def sum_to_targets(source, targets, limit, stamp, walks, columns, tree):
    """Make the sums of all targets within a distance of ``limit`` from a source known.

    Targets that are unreached or beyond the limit are left out. ``stamp`` is a number that no
    earlier search of this tree had; ``walks``, ``columns`` and ``tree`` are ``Walks``,
    ``EdgeColumns`` and ``SumTree``. Return a vertex whose distance no edge explains, or
    ``NO_EDGE``.
    """
    offsets = walks.offsets
    sources = walks.sources  # the tails of the edges
    distance = walks.distance
    tree.n_known[0] = 0
    _begin_at_source(source, stamp, tree)
    for i in range(targets.size):
        v = np.int64(targets[i])
        if not 0 <= distance[v] <= limit:
            continue

        # Walk back to a vertex whose sums are known.
        depth = 0
        while tree.stamp[v] != stamp:
            # The edge that explains the distance, from the smallest in-neighbor that is nearer.
            own_distance = distance[v]
            edge = nearer_edge(v, own_distance, walks)
            if edge != NO_EDGE:
                tree.vertex[depth] = v
                tree.edge[depth] = edge
                depth += 1
                v = np.int64(sources[edge])
                continue

            # Edges of length zero come before it; the path along them may meet a known vertex. Its
            # ``size`` vertices, without v, are written to ``walks.path``.
            size = along_level(v, source, own_distance, np.int64(0), walks)
            if size == NO_EDGE:
                return v
            for j in range(size):
                if tree.stamp[v] == stamp:
                    break
                u = np.int64(walks.path[j])
                tree.vertex[depth] = v
                tree.edge[depth] = edge_between(u, v, offsets, sources)
                depth += 1
                v = u

        _add_along_way(depth, stamp, sources, columns, tree)
    return np.int64(NO_EDGE)


@njit(cache=True, nogil=True)
def sum_along_predecessors(root, targets, predecessor, edges, columns, tree):
    """Make the sums of ``targets`` known, along predecessors that lead back to ``root``.

    The root is a vertex that was added to the graph, from which a search from several sources
    begins: its neighbors are these sources, and the steps to them add nothing. ``edges`` are the
    offsets and in-neighbors of the reversed graph, which lacks the root. ``predecessor``, the
    vertex before each vertex, has one more element, for the root. The tree is new, so that 0 serves
    as the stamp.
    """
    offsets, sources = edges
    tree.n_known[0] = 0
    for i in range(targets.size):
        v = np.int64(targets[i])
        # Walk back to a vertex whose sums are known, or to a source, whose sums are 0.
        depth = 0
        while tree.stamp[v] != 0:
            u = np.int64(predecessor[v])
            if u == root:
                _begin_at_source(v, 0, tree)
                break
            tree.vertex[depth] = v
            tree.edge[depth] = edge_between(u, v, offsets, sources)
            depth += 1
            v = u
        _add_along_way(depth, 0, sources, columns, tree)


@njit(cache=True, nogil=True)
def _edge_length(weights, e):
    """Return the length of edge ``e``: its weight, or one hop if ``weights`` is None."""
    if weights is None:
        return np.int64(1)
    return weights[e]


@njit(cache=True, nogil=True)
def violation(source, stamp, walks, columns, tree):
    """Return a vertex whose sums are not those of its canonical predecessor and the edge from
    there; -1 if all sums that the last search has made known are right.

    The canonical predecessor is the smallest of the in-neighbors that explain the distance of the
    vertex and are nearer to the source. Behind edges of length zero there may be none; then the
    sums are those of some in-neighbor at the same distance. ``source`` and ``stamp`` are those of
    the search, and the other arguments are as in ``sum_to_targets``.
    """
    distance = walks.distance
    kind = distance.dtype.type  # in which the search has added, and rounded
    for i in range(tree.n_known[0]):
        v = np.int64(tree.known[i])
        if v == source:
            continue
        own_distance = distance[v]
        is_right = False
        for e in range(walks.offsets[v], walks.offsets[v + 1]):
            u = np.int64(walks.sources[e])
            if not 0 <= distance[u] <= own_distance:
                continue
            if kind(distance[u] + _edge_length(walks.weights, e)) != own_distance:
                continue

            is_nearer = distance[u] < own_distance
            is_equal = tree.stamp[u] == stamp  # else the sums of u are not of this search
            for c in range(columns.integers.shape[1]):
                total = tree.integers[u, c] + columns.integers[e, c]
                is_equal = is_equal and tree.integers[v, c] == total
            for c in range(columns.floats.shape[1]):
                total_of_floats = tree.floats[u, c] + columns.floats[e, c]
                is_equal = is_equal and tree.floats[v, c] == total_of_floats

            # In-neighbors ascend: the first nearer one is canonical, and decides.
            if is_nearer:
                is_right = is_equal
                break
            is_right = is_right or is_equal
        if not is_right:
            return v
    return np.int64(-1)
