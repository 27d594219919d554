"""The k nearest sources of each vertex by one search from all of them, with up to k labels per
vertex.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..cpu.compiled import njit
from ..cpu.edges import Edges

# labels that are taken from the heap before Python may raise an interrupt: some tenths of a second
_LABELS_AT_ONCE = 1 << 20

# what ``_offer`` returns in place of a position: nothing is left to prove, or the labels are wrong
_KNOWN = -1
_WRONG = -2


class Labels(NamedTuple):
    """The nearest sources of each vertex that the search has found so far."""

    # distance, owner: int64 of shape (n_vertices, k): of each vertex the distances from its nearest
    # sources, in the order in which they were found, and the positions of these in the array of the
    # sources; -1 where there is none yet
    distance: np.ndarray
    owner: np.ndarray
    n_labels: np.ndarray  # int64 of shape (n_vertices,): how many of the k are found


def k_nearest(edges: Edges, sources, k: int, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the distances and the positions of the k nearest sources of each vertex.

    A label is a vertex with a source and the length of a path from there. Labels are taken in the
    order of (distance, source), and an edge of weight 0 or more leads to no label that is earlier
    in this order. So the first k labels of a vertex that are of different sources are its nearest
    ones. A label that comes later need not go on.

    Parameters
    ----------
    edges : Edges
        Weights are int64 and 0 or more, or of shape (0,), where every edge counts 1. No sum along a
        path may exceed int64.
    sources : int64 array
        Distinct vertex numbers, ascending.
    k : int
    limit : int
        Distances beyond it are left out.

    Returns
    -------
    distance, owner : int64 arrays of shape (n_vertices, k)
        Distances, and positions in ``sources``, in ascending order of (distance, position); -1
        where there is none.
    """
    n = edges.offsets.size - 1
    labels = Labels(
        np.full((n, k), -1, np.int64), np.full((n, k), -1, np.int64), np.zeros(n, np.int64)
    )

    # A heap of labels: distance, position of the source, vertex. Those of distance 0 are a heap in
    # the order of the sources.
    heap = np.zeros((max(2 * sources.size, 1024), 3), np.int64)
    heap[: sources.size, 1] = np.arange(sources.size)
    heap[: sources.size, 2] = sources
    size = sources.size
    while size:
        heap, size = _take_labels(edges, labels, limit, heap, size, _LABELS_AT_ONCE)
    return labels.distance, labels.owner


@njit(cache=True, nogil=True)
def _take_labels(edges, labels, limit, heap, size, max_labels):
    """Take labels from the heap until it is empty or ``max_labels`` are taken; return the heap and
    its size.

    Labels that a vertex needs are written to ``labels``. Labels beyond ``limit`` do not enter the
    heap. ``edges`` are those of ``k_nearest``. ``heap``, int64 of shape (capacity, 3), has in each
    row a distance, the position of a source and a vertex, and ``size`` of its rows are in use.
    """
    offsets = edges.offsets
    targets = edges.targets
    weights = edges.weights
    distance = labels.distance
    owner = labels.owner
    n_labels = labels.n_labels
    k = owner.shape[1]
    # int64 in each call: Numba compiles a function once more for another type of an argument
    size = np.int64(size)
    n_left = max_labels
    while size > 0 and n_left > 0:
        # Take the first label, and keep it unless the vertex has enough, or one of the same source.
        d = heap[0, 0]
        source = heap[0, 1]
        v = heap[0, 2]
        size -= 1
        n_left -= 1
        _pop_first(heap, size)
        n_found = n_labels[v]
        if n_found == k or _has_source(owner, v, n_found, source):
            continue
        distance[v, n_found] = d
        owner[v, n_found] = source
        n_labels[v] = n_found + 1

        # Offer it to the neighbors that may still need it.
        for e in range(offsets[v], offsets[v + 1]):
            u = np.int64(targets[e])
            further = d + (weights[e] if weights.size else 1)
            if (
                further <= limit
                and n_labels[u] < k
                and not _has_source(owner, u, n_labels[u], source)
            ):
                heap = _push(heap, size, further, source, u)
                size += 1
    return heap, size


@njit(cache=True, nogil=True)
def violation(edges, sources, limit, distance, owner):
    """Return the number of a vertex whose labels are wrong, -1 if all are those of ``k_nearest``.

    ``edges`` are ``Edges``, with weights of shape (0,) for hops. ``sources`` and ``limit`` are
    those of ``k_nearest``. ``distance`` and ``owner``, int64 of shape (n_vertices, k), are its
    results: ``owner`` has positions in ``sources``, and -1 where there is no label.

    Three facts prove the labels. First, the labels of a vertex are in order and of different
    sources. Second, each label is reached from the label of its source at itself, along edges that
    add up to it exactly: so it is the length of a path. Third, each edge extends each label of its
    start to a label of its end, and the end has one as good of the same source, or k better ones.
    So, by induction along a shortest path, no label is missing. One pass over the edges of each
    label checks the second and the third fact.
    """
    offsets = edges.offsets
    targets = edges.targets
    weights = edges.weights
    k = owner.shape[1]
    n_labels = 0
    for v in range(offsets.size - 1):
        if not _are_in_order(v, sources.size, limit, distance, owner):
            return v
        for j in range(k):
            n_labels += owner[v, j] >= 0

    # The label of each source at itself is proven; from there on labels prove those of neighbors.
    # The stack has the labels that are proven and not yet followed, each as vertex * k + position.
    # Each label is proven once, so that all of them fit.
    is_proven = np.zeros((offsets.size - 1, k), np.bool_)
    stack = np.empty(n_labels, np.int64)
    size = 0
    for source in range(sources.size):
        if limit < 0:  # not even a source is within it
            break
        verdict = _offer(sources[source], 0, source, distance, owner, is_proven)
        if verdict == _WRONG:
            return sources[source]
        if verdict >= 0:
            stack[size] = sources[source] * k + verdict
            size += 1

    while size > 0:
        size -= 1
        u = stack[size] // k
        j = stack[size] % k
        for e in range(offsets[u], offsets[u + 1]):
            v = np.int64(targets[e])
            further = distance[u, j] + (weights[e] if weights.size else 1)
            if further > limit:
                continue
            verdict = _offer(v, further, owner[u, j], distance, owner, is_proven)
            if verdict == _WRONG:
                return v
            if verdict >= 0:
                stack[size] = v * k + verdict
                size += 1

    for v in range(offsets.size - 1):
        for j in range(k):
            if owner[v, j] >= 0 and not is_proven[v, j]:
                return v
    return -1


@njit(cache=True, nogil=True)
def _are_in_order(v, n_sources, limit, distance, owner):
    """Return whether the labels of vertex ``v`` are in order, within the limit, of different
    sources, and without a gap between them.

    ``n_sources`` is the number of sources. ``distance`` and ``owner`` are results of ``k_nearest``.
    """
    for j in range(owner.shape[1]):
        # No label is at this place, so that none may follow. One that does is refused below, since
        # the place before it has none.
        if owner[v, j] < 0:
            continue
        if distance[v, j] < 0 or distance[v, j] > limit:
            return False
        if owner[v, j] >= n_sources or _has_source(owner, v, j, owner[v, j]):
            return False
        if j == 0:
            continue
        if owner[v, j - 1] < 0:
            return False
        if _is_before(distance, owner, v, j, distance[v, j - 1], owner[v, j - 1]):
            return False
    return True


@njit(cache=True, nogil=True, forceinline=True)
def _offer(v, d, source, distance, owner, is_proven):
    """Compare the label of vertex ``v`` with one that a path proves: of ``source``, a position in
    the sources, at the distance ``d``.

    ``is_proven``, bool of shape (n_vertices, k), says which labels are proven; it is updated.
    Return the position of the vertex's label if this proves it for the first time, ``_KNOWN`` if
    there is nothing to prove, and ``_WRONG`` if the vertex should have this label or a better one,
    and has not.
    """
    k = owner.shape[1]
    j = 0
    while j < k and owner[v, j] != source:
        j += 1
    # The vertex has no label of this source, which is right if it has k better ones. Its labels
    # ascend by (distance, source), as ``_are_in_order`` has checked. So all k are better if the
    # last one is. Where there is none at the last place, the vertex has fewer than k.
    if j == k:
        has_better = owner[v, k - 1] >= 0 and _is_before(distance, owner, v, k - 1, d, source)
        return _KNOWN if has_better else _WRONG
    # The vertex has a label of this source: a longer one than the path is wrong. A shorter one is
    # left to be proven by another path.
    if distance[v, j] > d:
        return _WRONG
    if distance[v, j] < d or is_proven[v, j]:
        return _KNOWN
    is_proven[v, j] = True
    return j


@njit(cache=True, nogil=True)
def _is_before(distance, owner, v, j, d, source):
    """Return whether label j of vertex ``v`` precedes the label (d, source) in the order of
    distance, and then of source. ``distance`` and ``owner`` have the labels by vertex.
    """
    return distance[v, j] < d or (distance[v, j] == d and owner[v, j] < source)


@njit(cache=True, nogil=True)
def _has_source(owner, v, count, source):
    """Return whether one of the first ``count`` labels of vertex ``v`` is of ``source``, a position
    in the sources. ``owner``, of shape (n_vertices, k), has such positions.
    """
    for j in range(count):  # noqa: SIM110
        if owner[v, j] == source:
            return True
    return False


@njit(cache=True, nogil=True)
def _is_heap_before(heap, i, d, source):
    """Return whether entry i of the heap precedes the label (d, source) in the order of distance,
    and then of source.
    """
    return heap[i, 0] < d or (heap[i, 0] == d and heap[i, 1] < source)


@njit(cache=True, nogil=True)
def _copy_label(heap, from_place, to, to_place):
    """Copy row ``from_place`` of ``heap`` to row ``to_place`` of ``to``, number by number.

    The assignment of a whole row would be compiled with a check of its length and the text of an
    error, which takes seconds.
    """
    to[to_place, 0] = heap[from_place, 0]
    to[to_place, 1] = heap[from_place, 1]
    to[to_place, 2] = heap[from_place, 2]


@njit(cache=True, nogil=True)
def _push(heap, size, d, source, v):
    """Add the label (d, source) of vertex ``v`` to a heap of ``size`` rows; return the heap, which
    is a new array if it had to grow.
    """
    if size == len(heap):
        grown = np.empty((2 * size, 3), np.int64)
        for i in range(size):
            _copy_label(heap, i, grown, i)
        heap = grown

    # Entries on the way to the top that come later move down by one level.
    place = size
    while place > 0 and not _is_heap_before(heap, (place - 1) // 2, d, source):
        parent = (place - 1) // 2
        _copy_label(heap, parent, heap, place)
        place = parent
    heap[place, 0] = d
    heap[place, 1] = source
    heap[place, 2] = v
    return heap


@njit(cache=True, nogil=True)
def _pop_first(heap, size):
    """Remove the first label of a heap that has ``size + 1`` rows. The last row takes its place,
    and sinks until both its children come later. ``size`` is the number of rows without the first.
    """
    d = heap[size, 0]
    source = heap[size, 1]
    v = heap[size, 2]
    # The earlier one of the two children moves up, as long as it precedes the label that sinks.
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and _is_heap_before(heap, child + 1, heap[child, 0], heap[child, 1]):
            child += 1
        if not _is_heap_before(heap, child, d, source):
            break
        _copy_label(heap, child, heap, place)
        place = child
    heap[place, 0] = d
    heap[place, 1] = source
    heap[place, 2] = v
