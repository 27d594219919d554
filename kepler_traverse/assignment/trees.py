"""Shortest path trees of many origins at costs that change a little from one call to the next.

The tree of an origin begins as the tree of the last call: the distances along it at the new costs
are lengths of paths. A pass over all links finds the vertices that are nearer by another link, and
a search from these lowers what lies beyond them. The passes end when no link is violated, which is
the certificate of the distances: ``distance[v] <= distance[u] + cost`` for each link, and equality
for one of them.

Distances are sums in path order in float64, and rounding is monotonic. So there is one result for
given costs, whatever tree the search began with. The tree itself may depend on it, where paths are
equally short. The links of the paths that are used are therefore chosen anew, by the distances
alone: of the links that explain a distance, those from nearer vertices come first, then the
smallest id of the tail, then the first row of the table. Among vertices at one distance, which
links of cost 0 join, the way to a nearer one with the fewest links counts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..cpu.compiled import njit

NO_LINK = -1  # in a tree: the origin, and a vertex that is not reached
# in ``Scratch.first_step``, in place of a link:
_UNSEEN = -1  # a vertex that the search among equal distances has not met
_BEGIN = -2  # the vertex at which that search begins


class Links(NamedTuple):
    """The links in the order of their heads, then tails, then rows, and the way out of each vertex.

    ``in_offsets`` (n_vertices + 1,) int64: the links that lead to vertex v are those from
    ``in_offsets[v]`` up to ``in_offsets[v + 1]``. ``tails`` and ``heads`` (n_links,) int32: the
    ends of each link. ``out_offsets`` (n_vertices + 1,) int64 and ``out_links`` (n_links,) int32:
    for each vertex the positions in this order of the links that leave it. ``is_closed``
    (n_vertices,) bool: whether no path leads through the vertex.
    """

    in_offsets: np.ndarray
    tails: np.ndarray
    heads: np.ndarray
    out_offsets: np.ndarray
    out_links: np.ndarray
    is_closed: np.ndarray


class Scratch(NamedTuple):
    """The working memory of one thread: arrays of shape (n_vertices,), and a binary heap.

    The heap is ``keys``, distances, and ``entries``, the vertices at these distances. Both have
    shape (n_vertices + n_links + 1,), since each vertex and each link adds one entry at most.
    """

    distance: np.ndarray  # float64: the distance of each vertex from the origin; infinite: none
    # float64: the distance of each vertex as the start of further links; infinite where no path may
    # go on, at closed vertices and those that are not reached
    onward: np.ndarray
    stack: np.ndarray  # int32: vertices on the way up a tree, or those queued by a search
    # int32: in a search among equal distances, the link by which it left its start on the way to
    # each vertex; all _UNSEEN before and after
    first_step: np.ndarray
    is_chosen: np.ndarray  # uint8: 1 if the canonical link to a vertex was chosen for this origin
    keys: np.ndarray  # float64, of the heap
    entries: np.ndarray  # int32, of the heap
    # float64: the volume that each vertex has yet to pass on towards the origin; all 0 before and
    # after
    carried: np.ndarray
    # int32: number of children in the tree that have yet to pass on their volume; all 0 before and
    # after
    waits: np.ndarray
    uses: np.ndarray  # uint8: 1 if the path to each vertex uses a selected link, else 0


def new_scratch(n_vertices: int, n_links: int) -> Scratch:
    """Allocate the working memory of one thread for searches in a network of this size."""
    return Scratch(
        distance=np.empty(n_vertices),
        onward=np.empty(n_vertices),
        stack=np.empty(n_vertices, np.int32),
        first_step=np.full(n_vertices, _UNSEEN, np.int32),
        is_chosen=np.zeros(n_vertices, np.uint8),
        keys=np.empty(n_vertices + n_links + 1),
        entries=np.empty(n_vertices + n_links + 1, np.int32),
        carried=np.zeros(n_vertices),
        waits=np.zeros(n_vertices, np.int32),
        uses=np.empty(n_vertices, np.uint8),
    )


@njit(cache=True, nogil=True)
def _push(keys, entries, size, key, entry):
    """Insert an entry into the binary heap, whose smallest key is at position 0. Return the new
    size of the heap.

    ``keys`` and ``entries`` are its arrays, of which the first ``size`` elements are in use.
    """
    position = size
    while position > 0:
        above = (position - 1) >> 1
        if keys[above] <= key:
            break
        keys[position] = keys[above]
        entries[position] = entries[above]
        position = above
    keys[position] = key
    entries[position] = entry
    return size + 1


@njit(cache=True, nogil=True)
def _pop(keys, entries, size):
    """Remove the entry with the smallest key from the heap; return its new size.

    The last entry takes the first place, and sinks below entries with smaller keys. The caller has
    read ``keys[0]`` and ``entries[0]`` before.
    """
    size -= 1
    key = keys[size]
    entry = entries[size]
    position = 0
    while True:
        below = 2 * position + 1
        if below >= size:
            break
        if below + 1 < size and keys[below + 1] < keys[below]:
            below += 1
        if key <= keys[below]:
            break
        keys[position] = keys[below]
        entries[position] = entries[below]
        position = below
    keys[position] = key
    entries[position] = entry
    return size


@njit(cache=True, nogil=True)
def _measure(origin, tree, costs, links, scratch):
    """Set ``scratch.distance`` to the lengths of the paths in a tree at new costs, and
    ``scratch.onward`` to match.

    ``tree`` (n_vertices,) has the link to each vertex. A vertex without a link is not reached: its
    distance is infinite. ``onward`` of a closed vertex is infinite, unless it is the origin, since
    paths may begin there.
    """
    distance = scratch.distance
    onward = scratch.onward
    stack = scratch.stack
    distance[:] = -1.0  # not known yet
    distance[origin] = 0.0
    for first in range(distance.size):
        # Go up the tree to a vertex whose distance is known, and down again. So each vertex is
        # visited once, however deep the tree is, without recursion.
        v = np.int64(first)
        depth = 0
        while distance[v] < 0:
            stack[depth] = v
            depth += 1
            if tree[v] == NO_LINK:
                break
            v = np.int64(links.tails[tree[v]])
        while depth > 0:
            depth -= 1
            v = np.int64(stack[depth])
            e = tree[v]
            if e == NO_LINK:
                distance[v] = np.inf
            else:
                distance[v] = distance[links.tails[e]] + costs[e]
    for v in range(distance.size):
        onward[v] = np.inf if links.is_closed[v] else distance[v]
    onward[origin] = 0.0


@njit(cache=True, nogil=True)
def _check(tree, costs, links, scratch):
    """Compare the distances in ``scratch`` with all links at ``costs`` (n_links,). A vertex that a
    link makes nearer takes this link, in ``tree``, and distance, and is put into the heap, which is
    empty before.

    Return the size of the heap. 0 certifies the distances: no link makes a vertex nearer.
    """
    distance = scratch.distance
    onward = scratch.onward
    size = 0
    begin = links.in_offsets[0]
    for v in range(distance.size):
        # The link by which the vertex is nearest, if it is nearer than before. Links are sorted by
        # their heads, so those to v begin where those to v - 1 end.
        end = links.in_offsets[v + 1]
        before = distance[v]
        best = before
        chosen = np.int32(NO_LINK)
        for e in range(begin, end):
            candidate = onward[links.tails[e]] + costs[e]
            if candidate < best:
                best = candidate
                chosen = np.int32(e)
        begin = end
        if best < before:
            distance[v] = best
            tree[v] = chosen
            if not links.is_closed[v]:
                onward[v] = best
            size = _push(scratch.keys, scratch.entries, size, best, np.int32(v))
    return size


@njit(cache=True, nogil=True)
def _settle(size, tree, costs, links, scratch):
    """Lower the distances of the vertices beyond those in the heap, as Dijkstra's algorithm does,
    until the heap is empty.

    ``size`` is the number of entries of the heap. ``tree`` receives the links that lower distances.
    """
    distance = scratch.distance
    onward = scratch.onward
    keys = scratch.keys
    entries = scratch.entries
    while size > 0:
        key = keys[0]
        v = np.int64(entries[0])
        size = _pop(keys, entries, size)
        # The entry is outdated if the distance was lowered since; a closed vertex leads nowhere.
        if key != onward[v]:
            continue
        for i in range(links.out_offsets[v], links.out_offsets[v + 1]):
            e = links.out_links[i]
            w = links.heads[e]
            candidate = key + costs[e]
            if candidate < distance[w]:
                distance[w] = candidate
                tree[w] = e
                if not links.is_closed[w]:
                    onward[w] = candidate
                size = _push(keys, entries, size, candidate, w)


@njit(cache=True, nogil=True)
def find_tree(origin, tree, costs, links, scratch):
    """Make a tree one of shortest paths at these costs.

    Parameters
    ----------
    origin : int
        Number of the vertex where paths begin.
    tree : int32 array of shape (n_vertices,)
        The link to each vertex of any tree from this origin, or ``NO_LINK``; all may be
        ``NO_LINK``. It is overwritten by a shortest path tree. The nearer it is to such a tree, the
        less time the search takes.
    costs : float64 array of shape (n_links,)
        At least 0, in the order of ``links``.
    links : Links
    scratch : Scratch
        ``distance`` and ``onward`` receive the distances at these costs.
    """
    # The search lowers distances after the check has compared them with the links, so both are
    # repeated. The check that finds nothing is the certificate.
    _measure(origin, tree, costs, links, scratch)
    size = _check(tree, costs, links, scratch)
    while size > 0:
        _settle(size, tree, costs, links, scratch)
        size = _check(tree, costs, links, scratch)


@njit(cache=True, nogil=True)
def _link_from_nearer(v, in_offsets, tails, costs, distance, onward):
    """Return the first link to vertex ``v`` that comes from a nearer vertex and explains the
    distance of ``v``: the distance of its tail and its cost add up to it. Return ``NO_LINK`` if
    there is none.

    The arguments are fields of ``Links`` and ``Scratch``: to pass the whole tuples would take
    longer than the loop.
    """
    distance_of_v = distance[v]
    for e in range(in_offsets[v], in_offsets[v + 1]):
        distance_of_tail = onward[tails[e]]
        is_nearer = distance_of_tail < distance_of_v
        if is_nearer and distance_of_tail + costs[e] == distance_of_v:
            return e
    return NO_LINK


@njit(cache=True, nogil=True)
def choose_paths(origin, vertices, is_wanted, tree, costs, links, scratch):
    """Replace the paths to some vertices, in a tree of ``find_tree``, by the canonical ones.

    The canonical path depends on the distances alone, and not on the tree that a search began with:
    its last link is the first in the order of ``links`` that explains the distance and comes from a
    nearer vertex. Where links of cost 0 lead to a vertex, there may be no such link. Then the path
    goes back over links between vertices at the same distance, as few as possible, to a vertex that
    has a link from a nearer vertex, or to the origin.

    ``vertices`` are the ends of the paths. ``is_wanted`` has one number per element of
    ``vertices``, which is not 0 for those that count; these must be reached. ``tree`` (n_vertices,)
    int32 has the link to each vertex, and receives the canonical links along the paths. ``scratch``
    holds the distances of ``find_tree``.
    """
    in_offsets = links.in_offsets
    tails = links.tails
    distance = scratch.distance
    onward = scratch.onward
    queue = scratch.stack
    first_step = scratch.first_step
    is_chosen = scratch.is_chosen
    is_chosen[:] = 0
    is_chosen[origin] = 1
    for i in range(vertices.size):
        if not is_wanted[i]:
            continue
        # From the vertex towards the origin, up to a vertex whose link is chosen already.
        v = np.int64(vertices[i])
        while not is_chosen[v]:
            is_chosen[v] = 1
            chosen = np.int64(_link_from_nearer(v, in_offsets, tails, costs, distance, onward))

            # If there is none, search breadth first and backward over links between vertices at
            # this distance, until a vertex has a link from a nearer one, or is the origin.
            # ``first_step`` of a vertex is the link into v by which the search went to it. The
            # queue is in the order of these links, so the first vertex found has the link that
            # counts.
            distance_of_v = distance[v]
            n_done = 0
            n_queued = 0
            if chosen == NO_LINK:
                queue[0] = v
                first_step[v] = _BEGIN
                n_queued = 1
            while n_done < n_queued and chosen == NO_LINK:
                w = np.int64(queue[n_done])
                n_done += 1
                for e in range(in_offsets[w], in_offsets[w + 1]):
                    u = np.int64(tails[e])
                    if first_step[u] != _UNSEEN or onward[u] + costs[e] != distance_of_v:
                        continue
                    step = np.int32(e) if w == v else first_step[w]
                    first_step[u] = step
                    queue[n_queued] = u
                    n_queued += 1
                    link = _link_from_nearer(u, in_offsets, tails, costs, distance, onward)
                    if u == origin or link != NO_LINK:
                        chosen = np.int64(step)
                        break
            for k in range(n_queued):
                first_step[queue[k]] = _UNSEEN

            tree[v] = chosen
            v = np.int64(tails[chosen])


@njit(cache=True, nogil=True)
def load_tree(origin, tree, links, scratch, flow):
    """Add the volume of each vertex of a tree to all links of its path from the origin.

    ``scratch.carried`` (n_vertices,) has the volume that ends at each vertex, and becomes 0.
    ``flow`` (n_links,) is that of one class, to which the volumes are added.
    """
    carried = scratch.carried
    waits = scratch.waits
    # How many children each vertex waits for.
    for v in range(carried.size):
        if tree[v] != NO_LINK:
            waits[links.tails[tree[v]]] += 1
    # From the leaves towards the origin: a vertex passes its volume on to the tail of its link
    # after all of its children have. So each link is visited once.
    for first in range(carried.size):
        v = np.int64(first)
        while v != origin and tree[v] != NO_LINK and waits[v] == 0:
            waits[v] = -1  # it has passed on, and does so once
            e = tree[v]
            u = np.int64(links.tails[e])
            if carried[v] != 0.0:
                flow[e] += carried[v]
                carried[u] += carried[v]
                carried[v] = 0.0
            waits[u] -= 1
            v = u
    # All 0 for the next origin. What the origin has received is at its destination.
    waits[:] = 0
    carried[origin] = 0.0


@njit(cache=True, nogil=True)
def mark_users(origin, tree, is_selected, links, scratch):
    """Set ``scratch.uses`` of each vertex: 1 if its path from the origin in the tree uses a
    selected link, else 0.

    ``tree`` (n_vertices,) has the link to each vertex, ``NO_LINK`` for a vertex that is not
    reached, which gets 0. ``uses`` holds anything before. ``is_selected`` (n_links,) bool: True for
    a selected link.
    """
    uses = scratch.uses
    stack = scratch.stack
    uses[:] = 2  # not known yet
    uses[origin] = 0
    for first in range(uses.size):
        # Go up the tree to a vertex that is known, and down again, so that each vertex is set once.
        v = np.int64(first)
        depth = 0
        while uses[v] == 2:
            stack[depth] = v
            depth += 1
            if tree[v] == NO_LINK:
                uses[v] = 0
                break
            v = np.int64(links.tails[tree[v]])
        while depth > 0:
            depth -= 1
            v = np.int64(stack[depth])
            e = tree[v]
            if e != NO_LINK:
                uses[v] = 1 if is_selected[e] else uses[links.tails[e]]
