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

    An array of all flows has those of all links, class by class, and behind them, with select link,
    the selected flows and volumes, which are never left out.

    ``links`` (n_carried,) int64: the links that carry something, ascending. ``places`` int64: the
    positions in an array of all flows that are kept, those of these links for each class and all
    that follow. ``flows``, ``next`` and each of ``targets``, float64 of the size of ``places``:
    the current flows, the all-or-nothing flows at their costs, and the last targets, at most two
    and the last one first.
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
        carries = np.empty(n_links, np.bool_)
        counts = np.empty(count_blocks(n_links), np.int64)
        arrays = (flows, *_three(following, targets))
        threads.run(_mark_blocks, counts.size, arrays, shape, carries, counts)
        first = make_offsets(counts)
        n_carried = int(first[-1])
        n_flows = n_classes * n_links
        places = np.empty(n_classes * n_carried + flows.size - n_flows, np.int64)
        places[n_classes * n_carried :] = np.arange(n_flows, flows.size)
        threads.run(_list_blocks, counts.size, carries, first, n_classes, places)
        # The first places are those of the first class, and so the numbers of the links.
        return cls(
            places[:n_carried],
            places,
            take(flows, places),
            take(following, places),
            [take(each, places) for each in targets],
        )

    def combine(self, factors: tuple[float, float, float], divisor: float) -> np.ndarray:
        """Return ``next``, the last target and the one before it, each times its factor, added up
        and divided by ``divisor``. The factor of a target that does not exist must be 0.
        """
        combined = np.empty(self.places.size)
        arrays = _three(self.next, self.targets)
        threads.run(
            _combine_blocks, count_blocks(combined.size), arrays, factors, divisor, combined
        )
        return combined

    def move(self, target: np.ndarray, size: float, flows: np.ndarray, last: np.ndarray) -> None:
        """Write to ``flows``, an array of all flows, those after a step of some size towards a
        target, and to ``last``, another such array, the target.

        All other places of both stay, since their links carry nothing.
        """
        n_blocks = count_blocks(self.places.size)
        threads.run(_move_blocks, n_blocks, self.places, self.flows, (target, size), flows, last)


def _three(following: np.ndarray, targets: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Return the all-or-nothing flows, the last target and the one before it.

    Compiled code takes three arrays. The all-or-nothing flows stand for a target that does not
    exist: they add no link, and their factor in a combination is 0.
    """
    return (following, *targets, following, following)[:3]


@njit(cache=True, nogil=True)
def _mark_blocks(next_item, n_items, arrays, shape, carries, counts):
    """Set which links carry something in one of four arrays of all flows, and how many per block.

    ``carries`` (n_links,) bool. ``counts`` (n_items,) int64: of each block of ``BLOCK`` links.
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
    """Write the positions of the flows of the links that carry something.

    ``first`` (n_items + 1,): how many such links precede each block. ``places``: all of the first
    class, then all of the second one, and so on.
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
    """Write the combination of the three ``arrays`` of ``_three``, per block of their places."""
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

    ``before``: the flows at these places. ``step``: the target there, and the size.
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
    """The state of some links before a step.

    ``flow`` (n,) float64: of all classes together. ``slope`` (n,) float64: the derivative of the
    cost there. ``per_vehicle`` (n_classes,) float64: the units of flow of a vehicle of each class.
    """

    flow: np.ndarray
    slope: np.ndarray
    per_vehicle: np.ndarray


def change_to(target: np.ndarray, side: Side) -> np.ndarray:
    """Return by how much the common flow of each link grows from ``side.flow`` to a target of shape
    (n_classes, n_links), float64 of shape (n_links,).
    """
    change = np.empty(side.flow.size)
    threads.run(_change_blocks, count_blocks(change.size), target, side, change)
    return change


@njit(cache=True, nogil=True)
def _change_blocks(next_item, n_items, target, side, change):
    while True:
        block = atomic_add(next_item, 0, 1)
        if block >= n_items:
            break
        for i in range(block * BLOCK, min((block + 1) * BLOCK, change.size)):
            change[i] = common_flow(i, target, side.per_vehicle) - side.flow[i]


class Curvature(NamedTuple):
    """Sums over the links of a direction, times the slope of the cost, times another direction.

    Directions lead from the current flows: ``direction`` to the all-or-nothing flows, ``last`` to
    the last target, ``mixed`` to a point between the last target and the one before it.
    """

    last_direction: float  # last, times direction
    last_last: float  # last, times itself; the others are named alike
    last_difference: float  # between the direction and the last one
    mixed_direction: float  # mixed, times direction
    mixed_difference: float  # between the one before and the last one


@njit(cache=True, nogil=True)
def add_up_curvature(following, last, before, side, step):
    """Return the ``Curvature`` of flows of shape (n_classes, n_links), added in order, which NumPy
    does not promise.

    ``step``: the part that the last direction has of the mixed one.
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
