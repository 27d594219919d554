"""The point nearest to each of many others, by a sweep over points in the order of x."""

from __future__ import annotations

import numpy as np

from . import threads
from .atomics import atomic_add
from .compiled import njit


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
    threads.run(
        _nearest, of_x.size, x[order], y[order], order, of_x, of_y, begins, numbers, squares
    )
    return numbers, np.sqrt(squares)


@njit(cache=True, nogil=True, error_model="numpy")
def _nearest(next_item, n_items, x, y, order, of_x, of_y, begins, numbers, squares):
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
