"""Shortest path trees of many origins at costs that change a little from one call to the next.

The tree of an origin begins as the last one: the distances along it at the new costs are lengths of
paths. A pass over all links finds the vertices that are nearer by another link, and a search from
these lowers what lies beyond them. The passes end when no link is violated, which is the certificate
of the distances: ``distance[v] <= distance[u] + cost`` for each link, and equality for one of them.

Distances are sums in path order in float64, and rounding is monotonic. So there is one result for
given costs, whatever tree the search began with. The link before a vertex is canonical, too: of the
links that explain a distance, those from nearer vertices come first, then the smallest vertex
number, then the first row of the table. Among vertices at one distance, links of cost 0 count by
levels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..cpu.compiled import njit

NO_LINK = -1
_UNRESOLVED = -2  # a vertex that only links of cost 0 explain, until its level is known


class Links(NamedTuple):
    """The links in the order of their heads, then tails, then rows, and the way out of each vertex.

    ``in_offsets`` (n_vertices + 1,) int64, ``tails`` and ``heads`` (n_links,) int32: the links that
    lead to each vertex. ``out_offsets`` (n_vertices + 1,) int64, ``out_links`` (n_links,) int32: the
    positions of those that leave it. ``is_closed`` (n_vertices,) bool: no path leads through.
    """

    in_offsets: np.ndarray
    tails: np.ndarray
    heads: np.ndarray
    out_offsets: np.ndarray
    out_links: np.ndarray
    is_closed: np.ndarray


class Scratch(NamedTuple):
    """What one thread needs: arrays over the vertices, and a heap."""

    distance: np.ndarray  # float64
    onward: np.ndarray  # float64: the distance from which paths go on; infinite where they may not
    stack: np.ndarray  # int32
    keys: np.ndarray  # float64, of the heap
    entries: np.ndarray  # int32, of the heap
    carried: np.ndarray  # float64: the volume that each vertex passes on; all 0 before and after
    waits: np.ndarray  # int32: children that have yet to pass on; all 0 before and after
    uses: np.ndarray  # uint8: whether the path to each vertex uses a selected link


def new_scratch(n_vertices: int, n_links: int) -> Scratch:
    """Allocate the scratch of one thread."""
    return Scratch(
        distance=np.empty(n_vertices),
        onward=np.empty(n_vertices),
        stack=np.empty(n_vertices, np.int32),
        keys=np.empty(n_vertices + n_links + 1),
        entries=np.empty(n_vertices + n_links + 1, np.int32),
        carried=np.zeros(n_vertices),
        waits=np.zeros(n_vertices, np.int32),
        uses=np.empty(n_vertices, np.uint8),
    )


@njit(cache=True, nogil=True)
def _push(keys, entries, size, key, entry):
    at = size
    while at > 0:
        above = (at - 1) >> 1
        if keys[above] <= key:
            break
        keys[at] = keys[above]
        entries[at] = entries[above]
        at = above
    keys[at] = key
    entries[at] = entry
    return size + 1


@njit(cache=True, nogil=True)
def _pop(keys, entries, size):
    """Remove the first entry; the last one takes its place and sinks."""
    size -= 1
    key = keys[size]
    entry = entries[size]
    at = 0
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and keys[below + 1] < keys[below]:
            below += 1
        if key <= keys[below]:
            break
        keys[at] = keys[below]
        entries[at] = entries[below]
        at = below
    keys[at] = key
    entries[at] = entry
    return size


@njit(cache=True, nogil=True)
def _measure(origin, tree, costs, links, scratch):
    """Set the distances along a tree; a vertex without a link is not reached."""
    distance = scratch.distance
    onward = scratch.onward
    stack = scratch.stack
    distance[:] = -1.0
    distance[origin] = 0.0
    for first in range(distance.size):
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
def _check(origin, tree, costs, links, scratch):
    """Give each vertex its canonical link, and put those that a link makes nearer into the heap.

    Returns the size of the heap: 0 if the distances are certified.
    """
    distance = scratch.distance
    onward = scratch.onward
    size = 0
    n_flat = 0
    begin = links.in_offsets[0]
    for v in range(distance.size):
        end = links.in_offsets[v + 1]
        best = distance[v]
        chosen = np.int32(NO_LINK)
        flat = False
        for e in range(begin, end):
            near = onward[links.tails[e]]
            candidate = near + costs[e]
            if candidate < best:
                best = candidate
                chosen = np.int32(e)
            elif candidate == best and chosen == NO_LINK and candidate < np.inf:
                if near < best:
                    chosen = np.int32(e)
                else:
                    flat = True
        begin = end
        if v == origin:
            continue
        if best < distance[v]:
            distance[v] = best
            if not links.is_closed[v]:
                onward[v] = best
            size = _push(scratch.keys, scratch.entries, size, best, np.int32(v))
        elif chosen == NO_LINK and flat:
            chosen = np.int32(_UNRESOLVED)
            scratch.stack[n_flat] = v
            n_flat += 1
        tree[v] = chosen
    tree[origin] = NO_LINK
    if n_flat:
        _resolve(n_flat, tree, costs, links, scratch)
    return size


@njit(cache=True, nogil=True)
def _resolve(n_flat, tree, costs, links, scratch):
    """Give a link to each vertex that only links of cost 0 explain, by levels.

    The vertices are the first ``n_flat`` of the stack. Those that were nearer by another link come
    again, since the search after this changes them.
    """
    distance = scratch.distance
    onward = scratch.onward
    stack = scratch.stack
    left = n_flat
    while left:
        n_kept = 0
        n_found = 0
        for i in range(left):
            v = np.int64(stack[i])
            chosen = np.int32(NO_LINK)
            for e in range(links.in_offsets[v], links.in_offsets[v + 1]):
                u = links.tails[e]
                if tree[u] != _UNRESOLVED and onward[u] + costs[e] == distance[v]:
                    chosen = np.int32(e)
                    break
            if chosen == NO_LINK:
                stack[n_kept] = v
                n_kept += 1
            else:
                # The links of this level wait in the heap's far end, so that none of them counts yet.
                n_found += 1
                scratch.entries[scratch.entries.size - n_found] = chosen
        for i in range(n_found):
            e = scratch.entries[scratch.entries.size - 1 - i]
            tree[links.heads[e]] = e
        if n_found == 0:
            for i in range(n_kept):
                tree[stack[i]] = NO_LINK  # a vertex on its way is to be lowered
            break
        left = n_kept


@njit(cache=True, nogil=True)
def _settle(size, tree, costs, links, scratch):
    """Lower the distances of what lies beyond the vertices in the heap."""
    distance = scratch.distance
    onward = scratch.onward
    keys = scratch.keys
    entries = scratch.entries
    while size > 0:
        key = keys[0]
        v = np.int64(entries[0])
        size = _pop(keys, entries, size)
        if key != onward[v]:  # lowered since, or closed
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
    """Make a tree the canonical one at these costs; its distances are in the scratch.

    Parameters
    ----------
    origin : int
    tree : int32 array of shape (n_vertices,)
        The link to each vertex of any tree from this origin, or ``NO_LINK``; overwritten.
    costs : float64 array of shape (n_links,)
        At least 0, in the order of ``links``.
    links : Links
    scratch : Scratch
    """
    _measure(origin, tree, costs, links, scratch)
    size = _check(origin, tree, costs, links, scratch)
    while size > 0:
        _settle(size, tree, costs, links, scratch)
        size = _check(origin, tree, costs, links, scratch)


@njit(cache=True, nogil=True)
def load_tree(origin, tree, links, scratch, flow):
    """Add what the vertices of a tree carry (``scratch.carried``, which becomes 0) to the links of
    their paths.
    """
    carried = scratch.carried
    waits = scratch.waits
    for v in range(carried.size):
        if tree[v] != NO_LINK:
            waits[links.tails[tree[v]]] += 1
    for first in range(carried.size):
        v = np.int64(first)
        while v != origin and tree[v] != NO_LINK and waits[v] == 0:
            waits[v] = -1
            e = tree[v]
            u = np.int64(links.tails[e])
            if carried[v] != 0.0:
                flow[e] += carried[v]
                carried[u] += carried[v]
                carried[v] = 0.0
            waits[u] -= 1
            v = u
    waits[:] = 0
    carried[origin] = 0.0


@njit(cache=True, nogil=True)
def mark_users(origin, tree, is_selected, links, scratch):
    """Set ``scratch.uses`` of each vertex whose path in the tree uses one of some links."""
    uses = scratch.uses
    stack = scratch.stack
    uses[:] = 2  # not known yet
    uses[origin] = 0
    for first in range(uses.size):
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
