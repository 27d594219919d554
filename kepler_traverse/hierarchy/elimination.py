"""An order for a hierarchy that fits any weights, and its edges: elimination by smallest degree.

Where a vertex is taken out of a graph and all its neighbors are joined, distances stay, whatever the
weights are (Dibbelt, Strasser, Wagner 2014: customizable contraction hierarchies). The vertex with the
fewest neighbors left goes first, which keeps the joins few where the graph has small separators.
Vertices through which no path leads go before all others, and their neighbors are not joined.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..cpu import threads
from ..cpu.atomics import atomic_add
from ..cpu.compiled import njit

_NONE = -1  # the end of a linked list of vertices
_BLOCK = 1 << 14  # lists that a thread takes at a time


class Elimination(NamedTuple):
    """The order in which vertices are taken out of a graph, and the neighbors above each vertex:
    the neighbors that it has when it is taken out.

    ``order`` (n,) int32: the vertex of each rank; the vertex of rank 0 goes first. ``offsets``
    (n + 1,) int64 and ``heads`` (n_arcs,) int32: the ranks above rank v are ``heads[offsets[v] :
    offsets[v + 1]]``, in ascending order. ``n_triangles`` int: the number of pairs of neighbors
    above one vertex, over all vertices that paths may lead through.
    """

    order: np.ndarray
    offsets: np.ndarray
    heads: np.ndarray
    n_triangles: int


def eliminate(
    offsets: np.ndarray, neighbors: np.ndarray, is_end: np.ndarray, most_triangles: int
) -> Elimination | None:
    """Order the vertices of an undirected graph by elimination: the vertex with the fewest
    neighbors left is taken out, and its neighbors are joined.

    Parameters
    ----------
    offsets, neighbors : int64 array of shape (n + 1,), int32 array
        The neighbors of each vertex in ascending order, each once, itself not among them.
    is_end : bool array of shape (n,)
        True for a vertex through which no path leads. These go first, and their neighbors are not
        joined.
    most_triangles : int
        The most triangles (pairs of neighbors above one vertex) that the result may have.

    Returns
    -------
    Elimination or None
        None if there would be more triangles.
    """
    n = offsets.size - 1
    order = np.empty(n, np.int32)
    above_offsets = np.zeros(n + 1, np.int64)
    above, n_triangles = _eliminate(
        offsets, neighbors, is_end, most_triangles, order, above_offsets
    )
    if n_triangles > most_triangles:
        return None

    # Replace the vertices in the lists by their ranks, and sort each list.
    rank = np.empty(n, np.int32)
    rank[order] = np.arange(n, dtype=np.int32)
    heads = rank[above]
    threads.run(_sort_lists, -(-n // _BLOCK), above_offsets, heads)
    return Elimination(order, above_offsets, heads, int(n_triangles))


@njit(cache=True, nogil=True)
def _sort_lists(next_item, n_items, offsets, numbers):
    """Sort the numbers of each list, ``numbers[offsets[v] : offsets[v + 1]]``, in place, per block
    of ``_BLOCK`` lists.

    ``next_item``: the counter from which threads take blocks 0 to ``n_items`` - 1.
    """
    while True:
        block = atomic_add(next_item, 0, 1)
        if block >= n_items:
            break
        for v in range(block * _BLOCK, min((block + 1) * _BLOCK, offsets.size - 1)):
            numbers[offsets[v] : offsets[v + 1]].sort()


@njit(cache=True, nogil=True)
def _with_space(array, size, needed):
    """Return an array with space for ``needed`` entries: ``array`` itself, or, if it is too small,
    another array, at least twice as large, with a copy of its first ``size`` entries.
    """
    if needed <= array.size:
        return array
    larger = np.empty(max(needed, 2 * array.size), array.dtype)
    larger[:size] = array[:size]
    return larger


@njit(cache=True, nogil=True)
def _insert(v, degree, first, following, previous):
    """Put vertex ``v`` at the front of the list of vertices with ``degree`` neighbors.

    There is a doubly linked list per degree. ``first`` has the first vertex of each list, by
    degree; ``following`` and ``previous`` have, by vertex, the next and the previous vertex of its
    list. ``_NONE`` stands for no vertex.
    """
    head = first[degree]
    following[v] = head
    previous[v] = _NONE
    if head != _NONE:
        previous[head] = v
    first[degree] = v


@njit(cache=True, nogil=True)
def _remove(v, degree, first, following, previous):
    """Remove vertex ``v`` from the list of vertices with ``degree`` neighbors.

    ``first`` has the first vertex of each list, by degree; ``following`` and ``previous`` have, by
    vertex, the next and the previous vertex of its list; ``_NONE`` stands for no vertex.
    """
    before = previous[v]
    after = following[v]
    if before == _NONE:
        first[degree] = after
    else:
        following[before] = after
    if after != _NONE:
        previous[after] = before


@njit(cache=True, nogil=True)
def _begin_with_ends(offsets, neighbors, is_end, order, above_offsets):
    """Give the lowest ranks to the vertices that no path leads through (``is_end``), in the order
    of their numbers: write them to ``order``.

    The neighbors above such a vertex are all its neighbors of a higher rank, ends or not; where its
    list ends is written to ``above_offsets``. Return the number of these vertices, and an array
    that begins with their lists and has space for more.
    """
    n = order.size
    rank_of = np.full(n, n, np.int32)  # n for all other vertices, which are above these
    n_ordered = 0
    for v in range(n):
        if is_end[v]:
            order[n_ordered] = v
            rank_of[v] = n_ordered
            n_ordered += 1
    above = np.empty(2 * neighbors.size + 16, np.int32)
    n_above = np.int64(0)
    for rank in range(n_ordered):
        v = order[rank]
        for i in range(offsets[v], offsets[v + 1]):
            if rank_of[neighbors[i]] > rank:
                above[n_above] = neighbors[i]
                n_above += 1
        above_offsets[rank + 1] = n_above
    return n_ordered, above


@njit(cache=True, nogil=True)
def _join(neighbors_of_u, neighbors_of_v, v, u, joined):
    """Write to ``joined`` the neighbors that u, a neighbor of v, has after v is taken out and all
    neighbors of v are joined, in ascending order. Return their number.

    ``neighbors_of_u`` and ``neighbors_of_v``: the neighbors of u and of v, in ascending order. The
    result is their union without u and v.
    """
    # Merge both lists: take the smaller number of their next ones, and once if both have it.
    n_joined = 0
    i = 0
    j = 0
    while i < neighbors_of_u.size or j < neighbors_of_v.size:
        if j == neighbors_of_v.size or (
            i < neighbors_of_u.size and neighbors_of_u[i] <= neighbors_of_v[j]
        ):
            w = neighbors_of_u[i]
            if j < neighbors_of_v.size and neighbors_of_v[j] == w:
                j += 1
            i += 1
        else:
            w = neighbors_of_v[j]
            j += 1
        if w != u and w != v:
            joined[n_joined] = w
            n_joined += 1
    return n_joined


@njit(cache=True, nogil=True)
def _eliminate(offsets, neighbors, is_end, most_triangles, order, above_offsets):
    """Eliminate all vertices, ends (``is_end``) first, and then always the vertex with the fewest
    neighbors left.

    The outputs ``order`` and ``above_offsets`` are those of ``Elimination``. Return the neighbors
    above each rank, as vertex numbers, and the number of triangles. It stops early, with the
    outputs incomplete, once there are more than ``most_triangles`` triangles.
    """
    n = order.size
    n_ordered, above = _begin_with_ends(offsets, neighbors, is_end, order, above_offsets)
    n_above = above_offsets[n_ordered]

    # The neighbors that are left of vertex v are ``lists[begin[v] : begin[v] + size[v]]``, with
    # room for ``capacity[v]`` there.
    begin = np.empty(n, np.int64)
    size = np.zeros(n, np.int64)
    capacity = np.empty(n, np.int64)
    lists = np.empty(2 * neighbors.size + 16, np.int32)
    n_listed = np.int64(0)
    for v in range(n):
        begin[v] = n_listed
        if not is_end[v]:
            for i in range(offsets[v], offsets[v + 1]):
                if not is_end[neighbors[i]]:
                    lists[n_listed + size[v]] = neighbors[i]
                    size[v] += 1
        capacity[v] = size[v]
        n_listed += size[v]

    # A linked list of the vertices with each number of neighbors; see ``_insert``. It inserts at
    # the front, so the last vertex goes first, and each list begins with its smallest vertex.
    first = np.full(n + 1, _NONE, np.int32)
    following = np.empty(n, np.int32)
    previous = np.empty(n, np.int32)
    for v in range(n - 1, -1, -1):
        if not is_end[v]:
            _insert(v, size[v], first, following, previous)

    joined = np.empty(n, np.int32)
    least = np.int64(0)  # no vertex that is left has fewer neighbors
    n_triangles = np.int64(0)
    while n_ordered < n:
        # Take the vertex with the fewest neighbors left.
        while first[least] == _NONE:
            least += 1
        v = np.int64(first[least])
        _remove(v, least, first, following, previous)
        order[n_ordered] = v
        n_ordered += 1
        n_triangles += size[v] * (size[v] - 1) // 2
        if n_triangles > most_triangles:
            break

        # All neighbors that it has left are above it.
        above = _with_space(above, n_above, n_above + size[v])
        neighbors_of_v = above[n_above : n_above + size[v]]
        neighbors_of_v[:] = lists[begin[v] : begin[v] + size[v]]
        n_above += size[v]
        above_offsets[n_ordered] = n_above

        # Join them. A list that outgrows its place moves to the end.
        for u in neighbors_of_v:
            n_joined = _join(lists[begin[u] : begin[u] + size[u]], neighbors_of_v, v, u, joined)
            if n_joined > capacity[u]:
                capacity[u] = n_joined + n_joined // 2 + 4  # half more and some, so that few move
                lists = _with_space(lists, n_listed, n_listed + capacity[u])
                begin[u] = n_listed
                n_listed += capacity[u]
            lists[begin[u] : begin[u] + n_joined] = joined[:n_joined]
            # Move u to the vertices with as many neighbors as it has now.
            if n_joined != size[u]:
                _remove(u, size[u], first, following, previous)
                size[u] = n_joined
                _insert(u, n_joined, first, following, previous)
                least = min(least, n_joined)
    return above[:n_above], n_triangles
