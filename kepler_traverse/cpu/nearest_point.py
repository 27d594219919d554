"""The point nearest to each of many others, by a sweep over points in the order of x."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from . import threads
from .atomics import atomic_add
from .compiled import njit


class Points(NamedTuple):
    """Points in the order of x."""

    x: np.ndarray
    y: np.ndarray
    number: np.ndarray  # in the order in which they were given


class Locations(NamedTuple):
    """Where the nearest points are looked for."""

    x: np.ndarray
    y: np.ndarray
    begin: np.ndarray  # the first point that is not before each in x


def nearest_points(
    x: np.ndarray, y: np.ndarray, of_x: np.ndarray, of_y: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of the point nearest to each location, and its distance; of equally near
    points the first.

    All are float64: ``x, y`` are the points, at least one, and ``of_x, of_y`` the locations.
    """
    order = np.argsort(x, kind="stable")
    numbers = np.empty(of_x.size, np.int64)
    squares = np.empty(of_x.size)
    begins = np.searchsorted(x[order], of_x)
    points = Points(x[order], y[order], order)
    locations = Locations(of_x, of_y, begins)
    threads.run(_nearest, of_x.size, points, locations, numbers, squares)
    return numbers, np.sqrt(squares)


@njit(cache=True, nogil=True, error_model="numpy")
def _nearest(next_item, n_items, points, locations, numbers, squares):
    x = points.x
    y = points.y
    order = points.number
    of_x = locations.x
    of_y = locations.y
    begins = locations.begin
    while True:
        i = atomic_add(next_item, 0, 1)
        if i >= n_items:
            return
        right = begins[i]
        left = right - 1
        best = np.inf
        nearest = order.size
        while True:  # the nearer of the two in x comes next, until no further point can be as near
            before = of_x[i] - x[left] if left >= 0 else np.inf
            after = x[right] - of_x[i] if right < x.size else np.inf
            gap = min(before, after)
            if gap == np.inf or gap * gap > best:
                break
            at = left if before <= after else right
            if before <= after:
                left -= 1
            else:
                right += 1
            square = gap * gap + (of_y[i] - y[at]) ** 2
            if square < best or (square == best and order[at] < nearest):
                best = square
                nearest = order[at]
        numbers[i] = nearest
        squares[i] = best
