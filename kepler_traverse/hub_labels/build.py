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
_SCRATCH = 1 << 22  # candidates of the vertices that threads share at a time
_FEW = 24  # integers that are sorted by insertion
_TEST = 64  # sums of a test between two looks whether it is decided


class Ranked(NamedTuple):
    """A hierarchy by rank: its levels from the top to the bottom, within a level by position."""

    order: np.ndarray  # int32 array of shape (n,): the position of each rank
    levels: np.ndarray  # int64 array of shape (n_levels + 1,): where each level begins
    upward: Edges  # from each rank to smaller ranks
    downward: Edges  # to each rank from smaller ranks; the same object if it is symmetric


class Share(NamedTuple):
    """Ranks from ``start`` on, of which a thread takes ``chunk`` at a time."""

    start: int
    chunk: int


class Above(NamedTuple):
    """What the labels of a level are made of."""

    edges: Edges  # from each rank to higher levels
    labels: LabelLists  # finished labels of higher levels, in the direction of the edges
    labels_back: LabelLists  # those of the other direction, by which candidates are tested
    unreached: np.integer  # in ``dense``: a rank that is no candidate


class Scratch(NamedTuple):
    """Candidates of some ranks that follow each other; those that are kept become their labels."""

    places: np.ndarray  # int64 array of shape (n + 1,): where those of each rank begin
    hubs: np.ndarray  # int32 array of shape (places[-1],) or more: ranks
    distances: np.ndarray  # of the same shape, of the type of the sums
    counts: np.ndarray  # int64 array of shape (n,), output: rows of each finished label


def build_labels(hierarchy: Hierarchy, metric: str, likely_rows: int = 0) -> HubLabels:
    """Return the labels of a hierarchy; the result does not depend on the number of threads.

    ``likely_rows`` are those of a direction, for which memory is reserved: pages that are not
    needed are never touched.
    """
    start_time = time.perf_counter()
    ranked = ranked_by_level(hierarchy)
    outward = _GrowingLists(hierarchy.n_vertices, hierarchy.dtype, likely_rows)
    inward = outward
    if not hierarchy.is_symmetric:
        inward = _GrowingLists(hierarchy.n_vertices, hierarchy.dtype, likely_rows)
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
    """Return a hierarchy by rank. A vertex is as high as those below it require, so that the levels
    at the top are small.
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
    """Return the height of each position, int64: 0 without an edge from below in either direction,
    else 1 more than the highest of these.
    """
    n = offsets.size - 1
    height = np.zeros(n, np.int64)
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
    - ``_hubs``, ``_distances``: the rows, int32 and of the type of sums, with space behind them.
    - ``_scratch``: hubs and distances of ``Scratch``.
    - ``_dense``: per thread an array of shape (n,) with the sum of each candidate of a rank, all
      unreached before and after.
    """

    def __init__(self, n_vertices: int, dtype: np.dtype, likely_rows: int):
        self._offsets = np.zeros(n_vertices + 1, np.int64)
        self._hubs = np.empty(likely_rows, np.int32)
        self._distances = np.empty(likely_rows, dtype)
        self._scratch = np.empty(0, np.int32), np.empty(0, dtype)
        self._dense = [np.full(n_vertices, UNREACHED[dtype], dtype) for _ in range(threads.count())]

    def lists(self) -> LabelLists:
        """Return the labels of all levels that were added."""
        rows = self._offsets[-1]
        return LabelLists(self._offsets, self._hubs[:rows], self._distances[:rows])

    def _arrays(self) -> LabelLists:
        """Return the arrays with the space behind the labels."""
        return LabelLists(self._offsets, self._hubs, self._distances)

    def add(self, first: int, last: int, edges: Edges, labels_back: _GrowingLists) -> None:
        """Add the labels of a level, the ranks ``first`` to ``last - 1``.

        ``edges`` lead from each to higher levels, and ``labels_back`` are those of the other
        direction.
        """
        # A candidate is a row of a neighbor above: count those of each edge of the level.
        sizes = np.diff(self._offsets)[edges.heads[edges.offsets[first] : edges.offsets[last]]]
        candidates_before = np.concatenate([[0], np.cumsum(sizes)])
        # candidates at most, and the vertex itself, of all before each rank of the level
        bounds = candidates_before[edges.offsets[first : last + 1] - edges.offsets[first]]
        bounds += np.arange(last - first + 1)

        # As many ranks at a time as the scratch holds, one at least.
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
        """Add the labels of some ranks from ``first`` on; ``places`` is that of ``Scratch``."""
        n_ranks = places.size - 1
        if places[-1] > self._scratch[0].size:
            n_candidates = max(_SCRATCH, int(places[-1]))
            self._scratch = (
                np.empty(n_candidates, np.int32),
                np.empty(n_candidates, self._distances.dtype),
            )
        scratch = Scratch(places, *self._scratch, np.zeros(n_ranks, np.int64))
        chunk = max(1, min(_CHUNK, n_ranks // 16))
        n_items = -(-n_ranks // chunk)
        share = Share(first, chunk)
        unreached = UNREACHED[self._distances.dtype]
        above = Above(edges, self._arrays(), labels_back._arrays(), unreached)
        threads.run(_form_labels, n_items, share, above, scratch, own=[self._dense])

        # The labels end where their sizes say; those of later ranks are empty yet.
        offsets = self._offsets
        np.cumsum(scratch.counts, out=offsets[first + 1 : first + n_ranks + 1])
        offsets[first + 1 : first + n_ranks + 1] += offsets[first]
        self._reserve(int(offsets[first]), int(offsets[first + n_ranks]))
        offsets[first + n_ranks + 1 :] = offsets[first + n_ranks]
        threads.run(_copy_to_lists, n_items, share, scratch, self._arrays())

    def _reserve(self, used: int, needed: int) -> None:
        """Have space for ``needed`` rows; the first ``used`` stay."""
        if needed <= self._hubs.size:
            return
        for name in ("_hubs", "_distances"):
            array = getattr(self, name)
            larger = np.empty(max(needed, 2 * array.size, _SCRATCH), array.dtype)
            larger[:used] = array[:used]
            setattr(self, name, larger)


@njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _longest_above(v, edges, labels):
    """Return the edge to the neighbor above with the longest label, -1 without one."""
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
    """Add the hubs of another neighbor: new ones to ``hubs`` from ``end`` on, smaller sums to
    ``dense``. Return where the hubs end then.
    """
    labels = above.labels
    neighbor = above.edges.heads[e]
    weight = above.edges.weights[e]
    size = 0
    for i in range(labels.offsets[neighbor], labels.offsets[neighbor + 1]):
        hub = labels.hubs[i]
        total = labels.distances[i] + weight
        if dense[hub] == above.unreached:
            hubs[end + size] = hub
            size += 1
        dense[hub] = min(dense[hub], total)
    return end + size


@njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _sort(numbers):
    """Sort a few integers in place."""
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
    """Sort the candidates from ``first`` on into those before, which ascend.

    They are ``hubs[at : at + size]``; ``distances`` in the same places are scratch.
    """
    # The new ones are moved away, so that the merge, from the end on, can write over them.
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
    """Write the hubs of all neighbors above to ``scratch.hubs``, from ``at`` on in ascending order,
    and the smallest sum of each to its place in ``dense``. Return their number.

    The longest label is copied, as it is sorted; what others add is sorted and merged.
    """
    edges = above.edges
    hubs = scratch.hubs
    longest = _longest_above(v, edges, above.labels)
    if longest < 0:
        return 0
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
    """Return whether a hub above ``hub`` answers ``distance``, or less.

    ``dense`` has the candidates, ``labels_back`` the final label of the hub.
    """
    begin = labels_back.offsets[hub]
    end = labels_back.offsets[hub + 1] - 1  # without the hub itself
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
    """Set the places of the candidates of ``v`` in ``dense`` to ``unreached``, after
    ``write_candidates``.
    """
    for e in range(edges.offsets[v], edges.offsets[v + 1]):
        clear(edges.heads[e], labels, dense, unreached)


@njit(cache=True, nogil=True)
def _form_labels(next_item, n_items, share, above, scratch, dense):
    """Write the labels of some ranks to the scratch. ``dense``, of shape (n,), is all unreached,
    before and after.
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

            # Keep the candidates that no hub above answers.
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
    """Copy finished labels of some ranks from the scratch to their lists, from ``labels.offsets``
    on.
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
