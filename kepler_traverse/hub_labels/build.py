"""Build the hub labels of a graph from its contraction hierarchy, level by level on all threads.

Abraham, Delling, Goldberg, Werneck 2012 (hierarchical hub labelings). The label of a vertex is made
of those of its neighbors above: a candidate is a hub of a neighbor, at the weight of the edge and
the distance from there. It is dropped if a hub above it answers no more than that distance, by the
candidates of the vertex and the final label of the hub. What is left is the smallest labeling of
that order: a hub of v is the highest vertex of all shortest paths between the two.

Vertices of one level are in no label of each other. So threads share a level, and a label depends
on those of higher levels only, never on the number of threads.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from ..cpu import threads
from ..cpu.atomics import atomic_add
from ..cpu.compiled import njit
from ..hierarchy.arrays import Edges, Hierarchy, renumbered
from ..hierarchy.sweep import UNREACHED
from .arrays import HubLabels, LabelLists
from .queries import clear

_CHUNK = 64  # vertices that a thread takes at a time; fewer where there are few
_SCRATCH = 1 << 22  # the number of candidates that is held at a time, for all threads
_FEW = 24  # the number of integers up to which they are sorted by insertion
_TEST = 64  # hubs that are looked at without a branch before the test of a candidate may end


class Ranked(NamedTuple):
    """A hierarchy whose vertices are numbered by rank: by level from the top to the bottom, and
    within a level by position, the place of a vertex in the order of the hierarchy.
    """

    order: np.ndarray  # int32 array of shape (n,): the position of each rank
    # int64 array of shape (n_levels + 1,): level i is the ranks levels[i] to levels[i + 1] - 1
    levels: np.ndarray
    upward: Edges  # from each rank to smaller ranks
    # to each rank from smaller ranks, which are ``heads``; the same object if it is symmetric
    downward: Edges


class Share(NamedTuple):
    """How threads share a range of ranks."""

    start: int  # the first rank
    chunk: int  # ranks that a thread takes at a time


class Above(NamedTuple):
    """What the labels of a level are made of, in one direction.

    A candidate is a hub of a neighbor above, which may become a hub of the vertex. ``dense`` is an
    array with the sum of each candidate of one rank at the place of the hub.
    """

    edges: Edges  # from each rank to smaller ranks, those of higher levels
    labels: LabelLists  # finished labels of higher levels, in the direction of the edges
    labels_back: LabelLists  # those of the other direction, by which candidates are tested
    unreached: np.integer  # in ``dense``: the rank is no candidate; larger than all sums


class Scratch(NamedTuple):
    """Memory for the candidates of n ranks that follow each other; it holds anything before. At the
    end the finished label of each rank is at the beginning of the space of the rank.
    """

    # int64 array of shape (n + 1,): the space of the i-th rank is places[i] to places[i + 1] - 1
    places: np.ndarray
    hubs: np.ndarray  # int32 array of shape (places[-1],) or more: ranks
    distances: np.ndarray  # of the same shape, of the type of the sums: int32 or int64
    counts: np.ndarray  # int64 array of shape (n,), output: rows of each finished label


def build_labels(hierarchy: Hierarchy, metric: str, likely_rows: int = 0) -> HubLabels:
    """Return the labels of a hierarchy; the result does not depend on the number of threads.

    ``metric`` says what the weights of the hierarchy are: "weights" or "hops". ``likely_rows`` is
    the number of rows per direction for which memory is reserved. It may be too large, since pages
    that are not needed are never touched, or too small, since the arrays grow.
    """
    start_time = time.perf_counter()
    ranked = ranked_by_level(hierarchy)
    outward = _GrowingLists(hierarchy.n_vertices, hierarchy.dtype, likely_rows)
    inward = outward
    if not hierarchy.is_symmetric:
        inward = _GrowingLists(hierarchy.n_vertices, hierarchy.dtype, likely_rows)
    # Level by level from the top. A label needs those of higher levels of both directions.
    for begin, end in zip(ranked.levels[:-1].tolist(), ranked.levels[1:].tolist(), strict=True):
        outward.add(begin, end, ranked.upward, inward)
        if inward is not outward:
            inward.add(begin, end, ranked.downward, outward)

    order = hierarchy.order[ranked.order]
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size, dtype=np.int32)
    lists = outward.lists()
    return HubLabels(
        order=order,
        rank=rank,
        outward=lists,
        inward=lists if inward is outward else inward.lists(),
        unit=hierarchy.unit,
        metric=metric,
        seconds=time.perf_counter() - start_time,
    )


def ranked_by_level(hierarchy: Hierarchy) -> Ranked:
    """Return a hierarchy with its vertices numbered by rank.

    The level of a vertex is the largest height less its own, where ``heights`` is as small as the
    edges from below allow. So the levels at the top are small.
    """
    upward = hierarchy.upward
    downward = hierarchy.downward
    height = heights(upward.offsets, upward.heads, downward.offsets, downward.heads)
    depth = height.max(initial=0) - height
    order = np.argsort(depth, kind="stable").astype(np.int32)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size, dtype=np.int32)
    levels = np.concatenate([[0], np.cumsum(np.bincount(depth), dtype=np.int64)])
    edges = renumbered(upward, order, rank)
    if hierarchy.is_symmetric:
        return Ranked(order, levels, edges, edges)
    return Ranked(order, levels, edges, renumbered(downward, order, rank))


@njit(cache=True, nogil=True)
def heights(offsets, heads, offsets_back, heads_back):
    """Return the height of each position, int64 of shape (n,): 0 without an edge from below in
    either direction, else 1 more than the largest height of the positions below.

    ``offsets`` and ``heads``, and those ``_back`` of the other direction, lead from each position
    to positions above it, which have smaller numbers.
    """
    n = offsets.size - 1
    height = np.zeros(n, np.int64)
    # From the bottom to the top, so that the height of a position is final when it is passed on.
    for p in range(n - 1, -1, -1):
        height_above = height[p] + 1
        for e in range(offsets[p], offsets[p + 1]):
            height[heads[e]] = max(height[heads[e]], height_above)
        for e in range(offsets_back[p], offsets_back[p + 1]):
            height[heads_back[e]] = max(height[heads_back[e]], height_above)
    return height


class _GrowingLists:
    """The label lists of one direction, while levels are added to them, in the order of the ranks.

    - ``_offsets``: int64 of shape (n + 1,): where the rows of each rank begin. Ranks that have no
      label yet begin where the last label ends.
    - ``_hubs``, ``_distances``: the rows, int32 and of the type of sums, with unused space behind
      them.
    - ``_scratch``: the arrays ``hubs`` and ``distances`` of ``Scratch``, which are kept for the
      next level.
    - ``_dense``: per thread an array of shape (n,) with the sum of each candidate of a rank at the
      place of the hub. All of it is unreached between two ranks.
    """

    def __init__(self, n_vertices: int, dtype: np.dtype, likely_rows: int):
        """Allocate empty labels, with space for ``likely_rows`` rows; ``dtype`` is that of sums."""
        self._offsets = np.zeros(n_vertices + 1, np.int64)
        self._hubs = np.empty(likely_rows, np.int32)
        self._distances = np.empty(likely_rows, dtype)
        self._scratch = np.empty(0, np.int32), np.empty(0, dtype)
        self._dense = [np.full(n_vertices, UNREACHED[dtype], dtype) for _ in range(threads.count())]

    def lists(self) -> LabelLists:
        """Return the labels of all levels that were added, without the unused space."""
        rows = self._offsets[-1]
        return LabelLists(self._offsets, self._hubs[:rows], self._distances[:rows])

    def _arrays(self) -> LabelLists:
        """Return the arrays with the unused space behind the labels, as compiled code takes
        them.
        """
        return LabelLists(self._offsets, self._hubs, self._distances)

    def add(self, first: int, last: int, edges: Edges, labels_back: _GrowingLists) -> None:
        """Add the labels of a level, the ranks ``first`` to ``last - 1``.

        ``edges`` lead from each rank to smaller ranks, those of higher levels. ``labels_back`` has
        the labels of the other direction, up to the level above at least.
        """
        # A candidate is a row of a neighbor above. ``sizes`` has the rows of the neighbor at each
        # edge of the level, and ``candidates_before`` their number before each edge. A hub may be a
        # candidate by way of several neighbors, so that these are upper bounds.
        sizes = np.diff(self._offsets)[edges.heads[edges.offsets[first] : edges.offsets[last]]]
        candidates_before = np.concatenate([[0], np.cumsum(sizes)])
        # ``bounds[i]``: how much space the first i ranks of the level need at most: for their
        # candidates, and one row each for the rank itself.
        bounds = candidates_before[edges.offsets[first : last + 1] - edges.offsets[first]]
        bounds += np.arange(last - first + 1)

        # As many ranks at a time as ``_SCRATCH`` candidates allow, one at least. ``begin`` and
        # ``end`` count from ``first``.
        begin = 0
        while begin < last - first:
            max_bound = bounds[begin] + _SCRATCH
            end = max(int(np.searchsorted(bounds, max_bound, side="right")) - 1, begin + 1)
            places = bounds[begin : end + 1] - bounds[begin]
            self._add_part(first + begin, places, edges, labels_back)
            begin = end

    def _add_part(
        self, first: int, places: np.ndarray, edges: Edges, labels_back: _GrowingLists
    ) -> None:
        """Add the labels of some ranks of a level, from ``first`` on.

        ``places``, of shape (n_ranks + 1,), is that of ``Scratch``: where the space of each rank
        begins. The other arguments are those of ``add``.
        """
        n_ranks = places.size - 1
        if places[-1] > self._scratch[0].size:
            n_candidates = max(_SCRATCH, int(places[-1]))
            self._scratch = (
                np.empty(n_candidates, np.int32),
                np.empty(n_candidates, self._distances.dtype),
            )
        scratch = Scratch(places, *self._scratch, np.zeros(n_ranks, np.int64))
        chunk = max(1, min(_CHUNK, n_ranks // 16))  # 16 items at least, if possible
        n_items = -(-n_ranks // chunk)
        share = Share(first, chunk)
        unreached = UNREACHED[self._distances.dtype]
        above = Above(edges, self._arrays(), labels_back._arrays(), unreached)
        threads.run(_form_labels, n_items, share, above, scratch, own=[self._dense])

        # Set where the new labels end, and that those of later ranks are empty yet.
        offsets = self._offsets
        np.cumsum(scratch.counts, out=offsets[first + 1 : first + n_ranks + 1])
        offsets[first + 1 : first + n_ranks + 1] += offsets[first]
        self._reserve(int(offsets[first]), int(offsets[first + n_ranks]))
        offsets[first + n_ranks + 1 :] = offsets[first + n_ranks]
        threads.run(_copy_to_lists, n_items, share, scratch, self._arrays())

    def _reserve(self, used: int, needed: int) -> None:
        """Make space for ``needed`` rows, and keep the first ``used``, which are finished."""
        if needed <= self._hubs.size:
            return
        for name in ("_hubs", "_distances"):
            array = getattr(self, name)
            # The rows needed, but at least twice the size before, so that rows are copied few
            # times, and at least ``_SCRATCH``.
            larger = np.empty(max(needed, 2 * array.size, _SCRATCH), array.dtype)
            larger[:used] = array[:used]
            setattr(self, name, larger)


@njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _longest_above(v, edges, labels):
    """Return the index of the edge from rank ``v`` to the neighbor above with the longest label; -1
    if there is no neighbor above. ``edges`` and ``labels`` are those of ``Above``.
    """
    longest = -1
    max_size = -1
    for e in range(edges.offsets[v], edges.offsets[v + 1]):
        neighbor = edges.heads[e]
        size = labels.offsets[neighbor + 1] - labels.offsets[neighbor]
        if size > max_size:
            max_size = size
            longest = e
    return longest


@njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _copy_hubs(e, above, hubs, at, dense):
    """Write the hubs of the neighbor at the end of edge ``e`` as candidates to ``hubs``, from
    ``at`` on, and their sums to ``dense``. Return their number.

    A sum is the weight of the edge and the distance of the neighbor's row. ``above`` is ``Above``.
    There are no candidates before.
    """
    labels = above.labels
    neighbor = above.edges.heads[e]
    weight = above.edges.weights[e]
    begin = labels.offsets[neighbor]
    size = labels.offsets[neighbor + 1] - begin
    for i in range(size):
        hub = labels.hubs[begin + i]
        hubs[at + i] = hub
        dense[hub] = labels.distances[begin + i] + weight
    return size


@njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _add_hubs(e, above, hubs, end, dense):
    """Add the hubs of the neighbor at the end of edge ``e`` to the candidates before: new ones to
    ``hubs`` from ``end`` on, and smaller sums to ``dense``. Return where the hubs end afterwards.
    ``above`` is ``Above``.
    """
    labels = above.labels
    neighbor = above.edges.heads[e]
    weight = above.edges.weights[e]
    size = 0
    for i in range(labels.offsets[neighbor], labels.offsets[neighbor + 1]):
        hub = labels.hubs[i]
        total = labels.distances[i] + weight
        if dense[hub] == above.unreached:  # the hub is no candidate yet
            hubs[end + size] = hub
            size += 1
        dense[hub] = min(dense[hub], total)
    return end + size


@njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _sort(numbers):
    """Sort integers in place; few of them by insertion, which is faster then."""
    if numbers.size > _FEW:
        numbers.sort()
        return
    for i in range(1, numbers.size):
        number = numbers[i]
        place = i
        while place > 0 and numbers[place - 1] > number:
            numbers[place] = numbers[place - 1]
            place -= 1
        numbers[place] = number


@njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _merge_new(hubs, distances, at, first, size):
    """Sort the candidates of a rank, ``hubs[at : at + size]``, of which the first ``first`` ascend
    and the others, the new ones, are in no order.

    ``distances[at : at + size]`` holds nothing yet and is used as memory for the merge.
    """
    # The new ones are moved to ``distances``, so that the merge, from the end on, can write over
    # them.
    n_new = size - first
    _sort(hubs[at + first : at + size])
    for i in range(n_new):
        distances[at + i] = hubs[at + first + i]
    place = at + size - 1
    i = at + first - 1
    j = at + n_new - 1
    while j >= at:
        if i >= at and hubs[i] > distances[j]:
            hubs[place] = hubs[i]
            i -= 1
        else:
            hubs[place] = distances[j]
            j -= 1
        place -= 1


@njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def write_candidates(v, above, scratch, at, dense):
    """Write the candidates of rank ``v``, the hubs of all its neighbors above, to ``scratch.hubs``,
    from ``at`` on in ascending order, and the smallest sum of each to its place in ``dense``.
    Return their number.

    ``above`` is ``Above``, and ``scratch`` is ``Scratch``. The longest label of a neighbor is
    copied, as it is sorted; hubs that the labels of other neighbors add are sorted and merged. The
    result is 0 if there is no neighbor above. ``dense`` is all unreached before.
    """
    edges = above.edges
    hubs = scratch.hubs
    longest = _longest_above(v, edges, above.labels)
    if longest < 0:
        return 0
    # The first ``first`` hubs are sorted; those that other labels add follow up to ``end``.
    first = _copy_hubs(longest, above, hubs, at, dense)
    end = at + first
    for e in range(edges.offsets[v], edges.offsets[v + 1]):
        if e != longest:
            end = _add_hubs(e, above, hubs, end, dense)
    if end > at + first:
        _merge_new(hubs, scratch.distances, at, first, end - at)
    return end - at


@njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _is_answered(hub, distance, labels_back, dense, unreached):
    """Return whether a hub above ``hub`` answers the pair of a vertex and ``hub`` by ``distance``
    or less, so that the vertex needs no row for ``hub``.

    ``dense`` has the sums of the candidates of the vertex, and ``labels_back`` the final label of
    the hub. ``unreached`` is the value of ``dense`` for a rank that is no candidate.
    """
    begin = labels_back.offsets[hub]
    end = labels_back.offsets[hub + 1] - 1  # without the hub itself
    # Blocks of ``_TEST`` rows have a loop without a branch, which is faster than a test per row.
    while begin < end:
        smallest = unreached
        for i in range(begin, min(begin + _TEST, end)):
            smallest = min(smallest, dense[labels_back.hubs[i]] + labels_back.distances[i])
        if smallest <= distance:
            return True
        begin += _TEST
    return False


@njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def forget_candidates(v, edges, labels, dense, unreached):
    """Set the places of the candidates of rank ``v`` in ``dense`` to ``unreached``, after
    ``write_candidates``. They are the hubs of all neighbors of ``v`` above, by ``edges``, whose
    labels are in ``labels``.
    """
    for e in range(edges.offsets[v], edges.offsets[v + 1]):
        clear(edges.heads[e], labels, dense, unreached)


@njit(cache=True, nogil=True)
def _form_labels(next_item, n_items, share, above, scratch, dense):
    """Write the labels of some ranks of one level to ``scratch``, and their sizes to
    ``scratch.counts``.

    ``share`` is ``Share``, and ``above`` is ``Above``. An item is a chunk of ranks. Threads take
    items from the counter ``next_item``, until it is ``n_items``. ``dense``, of shape (n,), is the
    thread's own, and all unreached before and after.
    """
    chunk = share.chunk
    unreached = above.unreached
    hubs = scratch.hubs
    distances = scratch.distances
    counts = scratch.counts
    while True:
        item = atomic_add(next_item, 0, 1)
        if item >= n_items:
            return
        for j in range(item * chunk, min((item + 1) * chunk, counts.size)):
            v = share.start + j
            at = scratch.places[j]
            size = write_candidates(v, above, scratch, at, dense)

            # Keep the candidates that no hub above answers. They move forward over those that are
            # dropped, and stay sorted. The rank itself, which is larger than all, is the last row.
            end = at
            for i in range(at, at + size):
                hub = hubs[i]
                if not _is_answered(hub, dense[hub], above.labels_back, dense, unreached):
                    hubs[end] = hub
                    distances[end] = dense[hub]
                    end += 1
            hubs[end] = v
            distances[end] = 0
            counts[j] = end + 1 - at
            forget_candidates(v, above.edges, above.labels, dense, unreached)


@njit(cache=True, nogil=True)
def _copy_to_lists(next_item, n_items, share, scratch, labels):
    """Copy the finished labels of some ranks from ``scratch`` to ``labels``, where the label of
    each rank begins at its element of ``labels.offsets``.

    ``share`` is ``Share``. An item is a chunk of ranks. Threads take items from the counter
    ``next_item``, until it is ``n_items``.
    """
    chunk = share.chunk
    while True:
        item = atomic_add(next_item, 0, 1)
        if item >= n_items:
            return
        for j in range(item * chunk, min((item + 1) * chunk, scratch.counts.size)):
            scratch_begin = scratch.places[j]
            begin = labels.offsets[share.start + j]
            for i in range(scratch.counts[j]):
                labels.hubs[begin + i] = scratch.hubs[scratch_begin + i]
                labels.distances[begin + i] = scratch.distances[scratch_begin + i]
