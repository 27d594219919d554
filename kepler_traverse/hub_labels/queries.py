"""Distances of pairs by hub labels: the smallest sum over the hubs that two labels share."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..cpu.atomics import atomic_add
from ..cpu.compiled import njit
from ..cpu.simd_sums import prefetch_entry

CHUNK = 256  # pairs that a thread takes at a time
# Pairs before one is answered, its labels are prefetched; and its offsets twice as many before.
_PREFETCH_DISTANCE = 4
_LINE = 16  # integers of 32 bits per cache line
_NO_MATCH = 62  # bits by which the sum of two hubs that differ is moved beyond all others


class BothLabels(NamedTuple):
    """What answers pairs, as compiled code takes it."""

    outward: Any  # ``LabelLists``: distances from each rank to its hubs
    inward: Any  # ``LabelLists``: distances to each rank from its hubs
    unreached: np.integer  # what stands for no path


class PairLists(NamedTuple):
    """Some sources with targets of their own."""

    sources: np.ndarray  # ranks, of shape (k,)
    offsets: np.ndarray  # int64 array of shape (k + 1,): where the targets of each source begin
    targets: np.ndarray  # ranks, of shape (n_targets,): one list after the other


@njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _prefetch(rank, lists):
    """Begin to load the label of a rank into the cache, line by line."""
    row = lists.offsets[rank]
    while row < lists.offsets[rank + 1] + _LINE:  # one line more, as the first may be a part of one
        prefetch_entry(lists.hubs, row)
        prefetch_entry(lists.distances, row)
        row += _LINE


@njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def merge(source, target, answers):
    """Return the smallest sum over the common hubs of two ranks, ``unreached`` without one.

    The loop has no branch but its end: which label is behind cannot be predicted.
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
        i += np.uint64(hub <= hub_in)
        j += np.uint64(hub_in <= hub)
    return best


@njit(cache=True, nogil=True)
def answer_pairs(next_item, n_items, sources, targets, answers, sums):
    """Write the distance of each pair of ranks to ``sums``, int64. Threads take chunks of pairs
    from the counter ``next_item``.

    ``sources`` and ``targets`` have shape (n_pairs,); ``answers`` are ``BothLabels``.
    """
    n = sources.size
    outward = answers.outward
    inward = answers.inward
    while True:
        item = atomic_add(next_item, 0, 1)
        if item >= n_items:
            return
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
    """Write the distances of a label to the places of its hubs in ``dense``, of shape (n,)."""
    for i in range(lists.offsets[rank], lists.offsets[rank + 1]):
        dense[lists.hubs[i]] = lists.distances[i]


@njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def clear(rank, lists, dense, unreached):
    """Set the places of the hubs of a label in ``dense`` to ``unreached``, after ``lay_out``."""
    for i in range(lists.offsets[rank], lists.offsets[rank + 1]):
        dense[lists.hubs[i]] = unreached


@njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def smallest_sum(begin, end, lists, dense, unreached):
    """Return the smallest sum over the hubs that two labels share, at least ``unreached`` if they
    share none.

    One label is the rows ``begin`` to ``end - 1`` of ``lists``. The other one is laid out in
    ``dense``, of shape (n,), which has its distances at the places of its hubs.
    """
    smallest = unreached
    for i in range(begin, end):
        smallest = min(smallest, dense[lists.hubs[i]] + lists.distances[i])
    return smallest


@njit(cache=True, nogil=True)
def answer_lists(next_item, n_items, pairs, answers, sums, dense):
    """Write the distances from each source to its targets to ``sums``, int64.

    ``pairs`` are ``PairLists``; ``dense``, of shape (n,), is all unreached, before and after.
    """
    outward = answers.outward
    inward = answers.inward
    unreached = answers.unreached
    begins = inward.offsets
    while True:
        item = atomic_add(next_item, 0, 1)
        if item >= n_items:
            return
        source = pairs.sources[item]
        lay_out(source, outward, dense)
        for i in range(pairs.offsets[item], pairs.offsets[item + 1]):
            target = pairs.targets[i]
            sums[i] = smallest_sum(begins[target], begins[target + 1], inward, dense, unreached)
        clear(source, outward, dense, unreached)
