"""Distances of pairs by hub labels: the smallest sum over the hubs that two labels share.

In all arguments a vertex is given by its rank: its place in the order of the hierarchy, 0 at the
top. Hubs are ranks, too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..cpu.atomics import atomic_add
from ..cpu.compiled import njit
from ..cpu.simd_sums import prefetch_entry

CHUNK = 256  # pairs that a thread takes at a time
# The labels of a pair are prefetched when the pair so many places before it is answered. To find a
# label takes its offsets, which are prefetched twice as many places before.
_PREFETCH_DISTANCE = 4
_LINE = 16  # integers of 32 bits per cache line
_NO_MATCH = 62  # the bit that is set in a sum over two hubs that differ: it exceeds all distances


class BothLabels(NamedTuple):
    """The hub labels of both directions, as compiled code takes them.

    ``LabelLists`` have ``offsets``, ``hubs`` and ``distances``: the label of rank r is the rows
    ``offsets[r]`` to ``offsets[r + 1] - 1``, with ascending hubs.
    """

    outward: Any  # ``LabelLists``: distances from each rank to its hubs
    inward: Any  # ``LabelLists``: distances to each rank from its hubs; may be the same object
    unreached: np.integer  # the sum that stands for no path; all sums of distances are smaller


class PairLists(NamedTuple):
    """Some sources with targets of their own."""

    sources: np.ndarray  # the ranks of the k sources, of shape (k,)
    # int64 array of shape (k + 1,): source i has targets offsets[i] to offsets[i + 1] - 1
    offsets: np.ndarray
    targets: np.ndarray  # ranks, of shape (n_targets,): the list of one source after the other


@njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _prefetch(rank, lists):
    """Begin to load the label of a rank into the cache, cache line by cache line; of distances of
    64 bits every other line. ``lists`` are ``LabelLists``.
    """
    row = lists.offsets[rank]
    # One line more than the rows fill, as the label may begin in the middle of a line.
    while row < lists.offsets[rank + 1] + _LINE:
        prefetch_entry(lists.hubs, row)
        prefetch_entry(lists.distances, row)
        row += _LINE


@njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def merge(source, target, answers):
    """Return the smallest sum over the common hubs of two ranks, int64; ``unreached`` without one.

    ``answers`` are ``BothLabels``. The sum is the distance from ``source`` to a hub and from there
    to ``target``. Both labels have ascending hubs, so that one pass over both finds the common
    ones. The loop has no branch but its end: which label has the smaller hub cannot be predicted.
    """
    outward = answers.outward
    inward = answers.inward
    hubs = outward.hubs
    distances = outward.distances
    hubs_in = inward.hubs
    distances_in = inward.distances
    # Indices are unsigned, so that Numba does not ask whether they are negative.
    i = np.uint64(outward.offsets[source])
    end = np.uint64(outward.offsets[source + 1])
    j = np.uint64(inward.offsets[target])
    end_in = np.uint64(inward.offsets[target + 1])

    best = np.int64(answers.unreached)
    while (i < end) & (j < end_in):
        hub = hubs[i]
        hub_in = hubs_in[j]
        total = np.int64(distances[i]) + np.int64(distances_in[j])
        # The sum of two hubs that differ gets a bit that makes it larger than every distance.
        best = min(best, total | (np.int64(hub != hub_in) << np.int64(_NO_MATCH)))
        # Move on in the label with the smaller hub, or in both if the hubs are equal.
        i += np.uint64(hub <= hub_in)
        j += np.uint64(hub_in <= hub)
    return best


@njit(cache=True, nogil=True)
def answer_pairs(next_item, n_items, sources, targets, answers, sums):
    """Write the distance of each pair of ranks to ``sums``, int64, ``unreached`` without a path.

    ``sources``, ``targets`` and ``sums`` have shape (n_pairs,); ``answers`` are ``BothLabels``. An
    item is a chunk of ``CHUNK`` pairs. Threads take items from the counter ``next_item``, until it
    is ``n_items``.
    """
    n = sources.size
    outward = answers.outward
    inward = answers.inward
    while True:
        item = atomic_add(next_item, 0, 1)
        if item >= n_items:
            return
        # A label is found by its offsets, so these are prefetched before the label itself.
        for i in range(item * CHUNK, min((item + 1) * CHUNK, n)):
            if i + 2 * _PREFETCH_DISTANCE < n:
                prefetch_entry(outward.offsets, sources[i + 2 * _PREFETCH_DISTANCE])
                prefetch_entry(inward.offsets, targets[i + 2 * _PREFETCH_DISTANCE])
            if i + _PREFETCH_DISTANCE < n:
                _prefetch(sources[i + _PREFETCH_DISTANCE], outward)
                _prefetch(targets[i + _PREFETCH_DISTANCE], inward)
            sums[i] = merge(sources[i], targets[i], answers)


@njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def lay_out(rank, lists, dense):
    """Write the distances of the label of ``rank`` to the places of its hubs in ``dense``, of shape
    (n,); all other places stay as they are. ``lists`` are ``LabelLists``.
    """
    for i in range(lists.offsets[rank], lists.offsets[rank + 1]):
        dense[lists.hubs[i]] = lists.distances[i]


@njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def clear(rank, lists, dense, unreached):
    """Set the places of the hubs of the label of ``rank`` in ``dense`` to ``unreached``, after
    ``lay_out``: this takes less time than setting all n places.
    """
    for i in range(lists.offsets[rank], lists.offsets[rank + 1]):
        dense[lists.hubs[i]] = unreached


@njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def smallest_sum(begin, end, lists, dense, unreached):
    """Return the smallest sum over the hubs that two labels share, ``unreached`` if they share
    none.

    The first label is the rows ``begin`` to ``end - 1`` of ``lists``. The second label is laid out
    in ``dense``, of shape (n,), which has its distances at the places of its hubs, and
    ``unreached`` at all other places.
    """
    smallest = unreached
    for i in range(begin, end):
        smallest = min(smallest, dense[lists.hubs[i]] + lists.distances[i])
    return smallest


@njit(cache=True, nogil=True)
def answer_lists(next_item, n_items, pairs, answers, sums, dense):
    """Write the distances from each source to its targets to ``sums``, int64 of the shape of
    ``pairs.targets``.

    ``pairs`` are ``PairLists``, and ``answers`` are ``BothLabels``. An item is a source. Threads
    take items from the counter ``next_item``, until it is ``n_items``. ``dense``, of shape (n,), is
    the thread's own, and all unreached before and after.
    """
    outward = answers.outward
    inward = answers.inward
    unreached = answers.unreached
    begins = inward.offsets
    while True:
        item = atomic_add(next_item, 0, 1)
        if item >= n_items:
            return
        # The label of the source is written to ``dense`` once, and looked up for each target.
        source = pairs.sources[item]
        lay_out(source, outward, dense)
        for i in range(pairs.offsets[item], pairs.offsets[item + 1]):
            target = pairs.targets[i]
            sums[i] = smallest_sum(begins[target], begins[target + 1], inward, dense, unreached)
        clear(source, outward, dense, unreached)
