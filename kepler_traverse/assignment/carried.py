"""The flows of links that carry something, in arrays of their own, and steps between them.

All other links add 0 to each sum. Sums over links are added in their order, on one thread; the rest
runs on all threads, by blocks of links.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._arrays import make_offsets
from ..cpu import threads
from ..cpu.atomics import atomic_add
from ..cpu.compiled import njit
from .link_costs import BLOCK, common_flow, count_blocks, take


class Carried(NamedTuple):
    """Some arrays of flows, reduced to the links that carry something in at least one of them.

    An array of all flows is a state vector of ``BiconjugateFrankWolfe``: the flows of all links,
    class by class, and behind them, with select link, the selected flows and volumes. The latter
    are never left out.

    ``links`` (n_carried,) int64: the links that carry something, ascending. ``places`` int64: the
    positions in an array of all flows that are kept, those of these links for each class and all
    that follow. ``flows``, ``next`` and each of ``targets``, float64 of the size of ``places``: the
    current flows, the all-or-nothing flows at their costs, and the targets of the last steps, at
    most two, that of the last step first.
    """

    links: np.ndarray
    places: np.ndarray
    flows: np.ndarray
    next: np.ndarray
    targets: list[np.ndarray]

    @classmethod
    def of(
        cls,
        flows: np.ndarray,
        following: np.ndarray,
        targets: list[np.ndarray],
        shape: tuple[int, int],
    ) -> Carried:
        """Return the reduced form of arrays of all flows.

        ``flows`` are the current ones, ``following`` the all-or-nothing flows, and ``targets`` the
        last ones. ``shape`` has the numbers of classes and of links, whose flows come first.
        """
        n_classes, n_links = shape
        # Mark the links that carry something, and count them per block of links.
        carries = np.empty(n_links, np.bool_)
        counts = np.empty(count_blocks(n_links), np.int64)
        arrays = (flows, *_three(following, targets))
        threads.run(_mark_blocks, counts.size, arrays, shape, carries, counts)
        # List their places, and behind these all places of selected flows and volumes.
        first = make_offsets(counts)
        n_carried = int(first[-1])
        n_flows = n_classes * n_links
        places = np.empty(n_classes * n_carried + flows.size - n_flows, np.int64)
        places[n_classes * n_carried :] = np.arange(n_flows, flows.size)
        threads.run(_list_blocks, counts.size, carries, first, n_classes, places)
        # In an array of all flows, the place of a link of the first class is the link's number. So
        # the first places are the links.
        return cls(
            places[:n_carried],
            places,
            take(flows, places),
            take(following, places),
            [take(each, places) for each in targets],
        )

    def combine(self, factors: tuple[float, float, float], divisor: float) -> np.ndarray:
        """Return ``next``, the last target and the target before it, each times its factor, added
        up and divided by ``divisor``: float64 of the size of ``places``. The factor of a target
        that does not exist must be 0.
        """
        combined = np.empty(self.places.size)
        arrays = _three(self.next, self.targets)
        threads.run(
            _combine_blocks, count_blocks(combined.size), arrays, factors, divisor, combined
        )
        return combined

    def move(self, target: np.ndarray, size: float, flows: np.ndarray, last: np.ndarray) -> None:
        """Write the flows after a step to ``flows``, and the target to ``last``; both are arrays of
        all flows.

        ``target`` has the size of ``places``, and ``size``, from 0 to 1, is the part of the way to
        it. Other places of both arrays stay as they are: their links carry nothing, so ``last``
        must be 0 there before.
        """
        n_blocks = count_blocks(self.places.size)
        threads.run(_move_blocks, n_blocks, self.places, self.flows, (target, size), flows, last)


def _three(following: np.ndarray, targets: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Return three arrays for compiled code: the all-or-nothing flows (``following``), the last
    target and the target before it.

    ``targets`` has at most two arrays. Where one is missing, the all-or-nothing flows take its
    place: in ``_mark_blocks`` they mark no further link, and in ``combine`` the factor is 0.
    """
    return (following, *targets, following, following)[:3]


@njit(cache=True, nogil=True)
def _mark_blocks(next_item, n_items, arrays, shape, carries, counts):
    """Set which links carry something in one of four arrays of all flows, and how many per block.

    ``arrays`` are the four: the current flows, the all-or-nothing flows, and the last target
    (``last``) and the target before it (``before``). ``shape`` is (n_classes, n_links). The outputs
    are ``carries`` (n_links,) bool, True for a link with a flow other than 0 in any class, and
    ``counts`` (n_items,) int64, per block of ``BLOCK`` links. ``next_item``: the counter from which
    threads take blocks 0 to ``n_items`` - 1.
    """
    flows, following, last, before = arrays
    n_classes, n_links = shape
    while True:
        block = atomic_add(next_item, 0, 1)
        if block >= n_items:
            break
        begin = block * BLOCK
        end = min(begin + BLOCK, n_links)
        carries[begin:end] = False
        for k in range(n_classes):
            for link in range(begin, end):
                at = k * n_links + link
                here = (flows[at] != 0.0) | (following[at] != 0.0)
                carries[link] |= here | (last[at] != 0.0) | (before[at] != 0.0)
        counts[block] = carries[begin:end].sum()


@njit(cache=True, nogil=True)
def _list_blocks(next_item, n_items, carries, first, n_classes, places):
    """Write to ``places`` the positions, in an array of all flows, of the flows of the links that
    carry something: all of the first class, then all of the second one, and so on.

    ``carries`` (n_links,) bool: True for such a link. ``first`` (n_items + 1,): the number of such
    links before each block of ``BLOCK`` links. ``next_item``: the counter from which threads take
    blocks 0 to ``n_items`` - 1.
    """
    n_links = carries.size
    n_carried = first[-1]
    while True:
        block = atomic_add(next_item, 0, 1)
        if block >= n_items:
            break
        i = first[block]
        for link in range(block * BLOCK, min((block + 1) * BLOCK, n_links)):
            if carries[link]:
                for k in range(n_classes):
                    places[k * n_carried + i] = k * n_links + link
                i += 1


@njit(cache=True, nogil=True)
def _combine_blocks(next_item, n_items, arrays, factors, divisor, combined):
    """Write to ``combined`` the sum of the three ``arrays``, each times its element of ``factors``,
    divided by ``divisor``, per block of ``BLOCK`` elements.

    ``next_item``: the counter from which threads take blocks 0 to ``n_items`` - 1.
    """
    following, last, before = arrays
    while True:
        block = atomic_add(next_item, 0, 1)
        if block >= n_items:
            break
        for i in range(block * BLOCK, min((block + 1) * BLOCK, combined.size)):
            two = factors[0] * following[i] + factors[1] * last[i]
            combined[i] = (two + factors[2] * before[i]) / divisor


@njit(cache=True, nogil=True)
def _move_blocks(next_item, n_items, places, before, step, flows, last):
    """Write flows after a step, and the target, at some places of two arrays of all flows.

    ``before``: the flows before the step at these places. ``step``: the target at these places, and
    the part of the way to it. The two arrays, output, are ``flows`` and ``last``, which receives
    the target and so becomes the last target. ``next_item``: the counter from which threads take
    blocks 0 to ``n_items`` - 1 of ``places``.
    """
    target, size = step
    while True:
        block = atomic_add(next_item, 0, 1)
        if block >= n_items:
            break
        for i in range(block * BLOCK, min((block + 1) * BLOCK, places.size)):
            flows[places[i]] = before[i] + size * (target[i] - before[i])
            last[places[i]] = target[i]


class Side(NamedTuple):
    """The flows and slopes of some links before a step.

    ``flow`` (n,) float64: of all classes together. ``slope`` (n,) float64: the derivative of the
    cost there. ``per_vehicle`` (n_classes,) float64: the units of flow of a vehicle of each class.
    """

    flow: np.ndarray
    slope: np.ndarray
    per_vehicle: np.ndarray


def change_to(target: np.ndarray, side: Side) -> np.ndarray:
    """Return the common flow (of all classes together) of each link in a target, minus
    ``side.flow``: float64 of shape (n_links,).

    ``target`` (n_classes, n_links) are vehicles, of the links of ``side``.
    """
    change = np.empty(side.flow.size)
    threads.run(_change_blocks, count_blocks(change.size), target, side, change)
    return change


@njit(cache=True, nogil=True)
def _change_blocks(next_item, n_items, target, side, change):
    """Write to ``change`` the common flow of each link in ``target`` minus ``side.flow``, per block
    of ``BLOCK`` links.

    ``next_item``: the counter from which threads take blocks 0 to ``n_items`` - 1.
    """
    while True:
        block = atomic_add(next_item, 0, 1)
        if block >= n_items:
            break
        for i in range(block * BLOCK, min((block + 1) * BLOCK, change.size)):
            change[i] = common_flow(i, target, side.per_vehicle) - side.flow[i]


class Curvature(NamedTuple):
    """Products of two directions: sums over the links of one direction, times the slope of the
    cost, times the other. Two directions are conjugate if their product is 0.

    Directions are differences to the current flows: ``direction`` of the all-or-nothing flows,
    ``last`` of the last target, ``before`` of the target before it, and ``mixed`` of a point
    between these two targets.
    """

    last_direction: float  # last times direction
    last_last: float  # last times last
    last_difference: float  # last times (direction - last)
    mixed_direction: float  # mixed times direction
    mixed_difference: float  # mixed times (before - last)


@njit(cache=True, nogil=True)
def add_up_curvature(following, last, before, side, step):
    """Return the ``Curvature`` of flows of shape (n_classes, n_links).

    ``following`` are the all-or-nothing flows, ``last`` and ``before`` the last two targets, and
    ``side`` the current flows with the slopes. ``step`` is the share of the last target in the
    mixed point. Sums are added in the order of the links, which NumPy does not promise, so that
    their bits are the same on every machine.
    """
    last_direction = 0.0
    last_last = 0.0
    last_difference = 0.0
    mixed_direction = 0.0
    mixed_difference = 0.0
    for i in range(side.flow.size):
        flow = side.flow[i]
        slope = side.slope[i]
        to_next = common_flow(i, following, side.per_vehicle) - flow
        to_last = common_flow(i, last, side.per_vehicle) - flow
        to_before = common_flow(i, before, side.per_vehicle) - flow
        mixed = step * to_last + (1.0 - step) * to_before
        last_direction += to_last * slope * to_next
        last_last += to_last * slope * to_last
        last_difference += to_last * slope * (to_next - to_last)
        mixed_direction += mixed * slope * to_next
        mixed_difference += mixed * slope * (to_before - to_last)
    return Curvature(last_direction, last_last, last_difference, mixed_direction, mixed_difference)
