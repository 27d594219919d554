"""The point nearest to each of many others, on a plane or on the earth, by a tree of boxes.

Points are sorted along a Z-order curve. Each leaf of the tree has the box of a few consecutive
points, and each other node that of its two children. Boxes lie in space, where places on the earth
are unit vectors, so that poles and the line of 180 degrees are no exceptions.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from . import threads
from .atomics import atomic_add
from .compiled import njit

EARTH_RADIUS = 6_371_008.8  # metres, mean
_LEAF = 8  # points
_BITS = 21  # of each of three axes on the curve
# how bits move apart, so that two others fit between each two: shift, and what is kept
_SPREAD = (
    (32, 0x1F00000000FFFF),
    (16, 0x1F0000FF0000FF),
    (8, 0x100F00F00F00F00F),
    (4, 0x10C30C30C30C30C3),
    (2, 0x1249249249249249),
)
_DEEPEST = 64  # nodes that wait during a search
_SLACK = 1e-15  # what rounding may add to a gap between a place and a box of unit vectors
_SHARE = 1 - 1e-12  # of a square of such gaps, which rounding cannot make too large


class Tree(NamedTuple):
    """Points in the order of the curve, and the boxes of the nodes of a complete binary tree.

    Node 1 is the root, and node i has the children 2 i and 2 i + 1.
    """

    # x, y: float64 of shape (n_points,): of each point, as they were given
    x: np.ndarray
    y: np.ndarray
    number: np.ndarray  # the position of each point among those that were given
    # low, high: float64 of shape (n_nodes, 3): the corners of the box of each node, in space. Row 0
    # is no node's.
    low: np.ndarray
    high: np.ndarray


class Locations(NamedTuple):
    """Where the nearest points are looked for, and the same places in space."""

    # x, y: float64 of shape (n,), as they were given
    x: np.ndarray
    y: np.ndarray
    in_space: np.ndarray  # float64 of shape (n, 3): the same places in space
    order: np.ndarray  # int64 of shape (n,): in which they are taken


def nearest_points(
    x: np.ndarray, y: np.ndarray, of_x: np.ndarray, of_y: np.ndarray, *, on_sphere: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of the point nearest to each location, and its distance; of equally near
    points the first.

    All are finite float64: ``x, y`` are the points, at least one, and ``of_x, of_y`` the locations.
    With ``on_sphere`` they are longitudes and latitudes in degrees, and distances are metres along
    great circles, by haversines. Nothing is rounded between two distances that are compared.
    """
    numbers = np.empty(of_x.size, np.int64)
    squares = np.empty(of_x.size)
    tree = _build_tree(x, y, _place_in_space(x, y, on_sphere))
    in_space = _place_in_space(of_x, of_y, on_sphere)
    # one after another along the curve, so that the boxes that are looked at stay in the cache
    locations = Locations(of_x, of_y, in_space, np.argsort(_places_on_curve(in_space)))
    threads.run(_find_nearest, of_x.size, tree, locations, on_sphere, numbers, squares)
    if on_sphere:
        return numbers, 2 * EARTH_RADIUS * np.arcsin(np.sqrt(np.minimum(squares, 1)))
    return numbers, np.sqrt(squares)


def _place_in_space(x: np.ndarray, y: np.ndarray, on_sphere: bool) -> np.ndarray:
    """Return places as points of shape (n, 3): unit vectors on the sphere, and z = 0 on the plane."""
    in_space = np.zeros((x.size, 3))
    if on_sphere:
        longitude = np.radians(x)
        latitude = np.radians(y)
        in_space[:, 0] = np.cos(latitude) * np.cos(longitude)
        in_space[:, 1] = np.cos(latitude) * np.sin(longitude)
        in_space[:, 2] = np.sin(latitude)
    else:
        in_space[:, 0] = x
        in_space[:, 1] = y
    return in_space


def _build_tree(x: np.ndarray, y: np.ndarray, in_space: np.ndarray) -> Tree:
    """Return the tree of points, from the boxes of the leaves up to that of the root."""
    order = np.argsort(_places_on_curve(in_space))
    begins = np.arange(0, x.size, _LEAF)
    n_leaves = 1 << (begins.size - 1).bit_length()

    # Nodes without a point have an empty box, which is infinitely far from everything.
    low = np.full((2 * n_leaves, 3), np.inf)
    high = np.full((2 * n_leaves, 3), -np.inf)
    low[n_leaves : n_leaves + begins.size] = np.minimum.reduceat(in_space[order], begins)
    high[n_leaves : n_leaves + begins.size] = np.maximum.reduceat(in_space[order], begins)

    # Nodes first to 2 first - 1 are one level, and their children the next.
    first = n_leaves // 2
    while first:
        children = slice(2 * first, 4 * first)
        low[first : 2 * first] = low[children].reshape(-1, 2, 3).min(axis=1)
        high[first : 2 * first] = high[children].reshape(-1, 2, 3).max(axis=1)
        first //= 2
    return Tree(x[order], y[order], order, low, high)


def _places_on_curve(in_space: np.ndarray) -> np.ndarray:
    """Return the place of each point on the Z-order curve through the box of all, uint64."""
    low = in_space.min(axis=0, initial=np.inf)
    extent = in_space.max(axis=0, initial=-np.inf) - low
    steps = (in_space - low) / np.where(extent > 0, extent, 1) * (2**_BITS - 1)
    places = np.zeros(len(in_space), np.uint64)
    for axis in range(3):
        bits = steps[:, axis].astype(np.uint64)
        for shift, mask in _SPREAD:
            bits = (bits | bits << np.uint64(shift)) & np.uint64(mask)
        places |= bits << np.uint64(axis)
    return places


@njit(cache=True, nogil=True, error_model="numpy")
def _find_nearest(next_item, n_items, tree, locations, on_sphere, numbers, squares):
    """Write the number of the point nearest to each location, and the square of their distance.

    Nodes of the tree are taken from a stack, the nearer child first. One whose box is farther than
    the best point so far is left out. Of points as near, the smallest number wins.
    """
    n_leaves = len(tree.low) // 2
    waiting = np.empty(_DEEPEST, np.int64)
    bounds = np.empty(_DEEPEST)  # the bound of each node that waits
    while True:
        item = atomic_add(next_item, 0, 1)
        if item >= n_items:
            return
        i = locations.order[item]
        best = np.inf
        nearest = tree.number.size
        waiting[0] = 1
        bounds[0] = 0.0
        n_waiting = 1
        while n_waiting:
            n_waiting -= 1
            if bounds[n_waiting] > best:
                continue

            # A leaf: look at its points.
            node = waiting[n_waiting]
            if node >= n_leaves:
                begin = (node - n_leaves) * _LEAF
                for point in range(begin, min(begin + _LEAF, tree.number.size)):
                    square = _measure(tree, point, locations, i, on_sphere)
                    number = tree.number[point]
                    if square < best or (square == best and number < nearest):
                        best = square
                        nearest = number
                continue

            # Both children wait, the nearer one on top: the last one is taken first.
            left_bound = _bound_of_box(tree, 2 * node, locations.in_space, i, on_sphere)
            right_bound = _bound_of_box(tree, 2 * node + 1, locations.in_space, i, on_sphere)
            is_left_last = left_bound <= right_bound
            waiting[n_waiting] = 2 * node + is_left_last
            bounds[n_waiting] = max(left_bound, right_bound)
            waiting[n_waiting + 1] = 2 * node + 1 - is_left_last
            bounds[n_waiting + 1] = min(left_bound, right_bound)
            n_waiting += 2

        numbers[i] = nearest
        squares[i] = best


@njit(cache=True, nogil=True, error_model="numpy")
def _bound_of_box(tree, node, places, i, on_sphere):
    """Return a bound that no point in the box of a node is below, in the units of ``_measure``."""
    bound = 0.0
    if on_sphere:
        for axis in range(3):
            gap = max(
                tree.low[node, axis] - places[i, axis], places[i, axis] - tree.high[node, axis]
            )
            gap = max(gap - _SLACK, 0.0)
            bound += gap * gap
        return bound / 4 * _SHARE  # a quarter of the square of a chord is a haversine
    for axis in range(2):
        gap = max(
            tree.low[node, axis] - places[i, axis], places[i, axis] - tree.high[node, axis], 0.0
        )
        bound += gap * gap
    return bound


@njit(cache=True, nogil=True, error_model="numpy")
def _measure(tree, point, locations, i, on_sphere):
    """Return the square of a distance on the plane; the haversine of the angle on the sphere."""
    east = tree.x[point] - locations.x[i]
    north = tree.y[point] - locations.y[i]
    if not on_sphere:
        return east * east + north * north
    # differences in degrees, which are exact for places near each other
    across = math.sin(math.radians(east) / 2)
    along = math.sin(math.radians(north) / 2)
    shrunk = math.cos(math.radians(tree.y[point])) * math.cos(math.radians(locations.y[i]))
    return along * along + shrunk * (across * across)
