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
_LEAF = 8  # points of a leaf
_BITS = 21  # bits of a place on the curve per axis; those of three axes fit into 64
# The steps by which the bits of a number move apart, so that the bits of two other numbers fit
# between each two: a shift, and the bits that are kept after it. 111 becomes 1001001.
_SPREAD = (
    (32, 0x1F00000000FFFF),
    (16, 0x1F0000FF0000FF),
    (8, 0x100F00F00F00F00F),
    (4, 0x10C30C30C30C30C3),
    (2, 0x1249249249249249),
)
_DEEPEST = 64  # the capacity of the stack of nodes; a search needs one place per level of the tree
_SLACK = 1e-15  # what rounding may add to a gap between a place and a box of unit vectors
# A factor for a sum of squares of such gaps, which more than covers its rounding: the product is
# a lower bound.
_SHARE = 1 - 1e-12


class Tree(NamedTuple):
    """Points in the order of the curve, and the boxes of the nodes of a complete binary tree.

    Node 1 is the root, and node i has the children 2 i and 2 i + 1. The last half of the nodes are
    leaves: leaf i has the points ``_LEAF`` i to ``_LEAF`` (i + 1) - 1.
    """

    # x, y: float64 of shape (n_points,): of each point, as they were given
    x: np.ndarray
    y: np.ndarray
    # int64 of shape (n_points,): the position of each point among those that were given
    number: np.ndarray
    # low, high: float64 of shape (n_nodes, 3): the smallest and the largest coordinates of the box
    # of each node, in space. Row 0 is no node's.
    low: np.ndarray
    high: np.ndarray


class Locations(NamedTuple):
    """The n places of which the nearest points are looked for."""

    # x, y: float64 of shape (n,), as they were given
    x: np.ndarray
    y: np.ndarray
    # float64 of shape (n, 3): the same places in space, as ``_place_in_space`` has them
    in_space: np.ndarray
    order: np.ndarray  # int64 of shape (n,): the positions of the places, as threads take them


def nearest_points(
    x: np.ndarray, y: np.ndarray, of_x: np.ndarray, of_y: np.ndarray, *, on_sphere: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of the point nearest to each location, int64, and its distance, float64; of
    equally near points the first. Both have an element per location.

    All are finite float64: ``x, y`` are the points, at least one, and ``of_x, of_y`` the locations.
    With ``on_sphere`` they are longitudes and latitudes in degrees, and distances are metres along
    great circles, by haversines. Nothing is rounded between two distances that are compared.
    """
    numbers = np.empty(of_x.size, np.int64)
    # the squares of the distances, or on the sphere their haversines, which are squares of sines
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
    """Return places as points in space, float64 of shape (n, 3).

    ``x`` and ``y``, of shape (n,), are longitudes and latitudes in degrees if ``on_sphere``: the
    points are unit vectors then. Otherwise they are coordinates of a plane, and z is 0.
    """
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
    """Return the tree of points, from the boxes of the leaves up to that of the root.

    ``x`` and ``y`` are the points as they were given, and ``in_space`` the same places in space.
    """
    # ``begins`` has the first point of each leaf that has points. A complete tree has a power of
    # two of leaves.
    order = np.argsort(_places_on_curve(in_space))
    begins = np.arange(0, x.size, _LEAF)
    n_leaves = 1 << (begins.size - 1).bit_length()

    # Nodes without a point have an empty box, which is infinitely far from everything.
    low = np.full((2 * n_leaves, 3), np.inf)
    high = np.full((2 * n_leaves, 3), -np.inf)
    low[n_leaves : n_leaves + begins.size] = np.minimum.reduceat(in_space[order], begins)
    high[n_leaves : n_leaves + begins.size] = np.maximum.reduceat(in_space[order], begins)

    # Nodes ``first`` to 2 ``first`` - 1 are one level, and their children the level below.
    first = n_leaves // 2
    while first:
        children = slice(2 * first, 4 * first)
        low[first : 2 * first] = low[children].reshape(-1, 2, 3).min(axis=1)
        high[first : 2 * first] = high[children].reshape(-1, 2, 3).max(axis=1)
        first //= 2
    return Tree(x[order], y[order], order, low, high)


def _places_on_curve(in_space: np.ndarray) -> np.ndarray:
    """Return the place of each point on the Z-order curve through the box of all points, uint64 of
    shape (n,).

    Points that are near on the curve are near in space. ``in_space`` has shape (n, 3). Each axis is
    divided into 2^_BITS steps, and the bits of the three numbers of steps take turns.
    """
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
    """Write the number of the point nearest to each location to ``numbers``, and what ``_measure``
    returns for it to ``squares``.

    Nodes of the tree are taken from a stack, the nearer child first. One whose box is farther than
    the best point so far is left out. Of points as near, the smallest number wins. An item is a
    location. Threads take items from the counter ``next_item``, until it is ``n_items``. ``tree``
    is ``Tree``, and ``locations`` are ``Locations``.
    """
    n_leaves = len(tree.low) // 2
    waiting = np.empty(_DEEPEST, np.int64)  # the stack of nodes
    bounds = np.empty(_DEEPEST)  # for each node of the stack, the result of ``_bound_of_box``
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
            # Equal is not enough: a point as near may have a smaller number.
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

            # Both children wait. The nearer one is on top of the stack, from where it is taken
            # first: with the smaller bound, the minimum.
            left_bound = _bound_of_box(tree, 2 * node, locations.in_space, i, on_sphere)
            right_bound = _bound_of_box(tree, 2 * node + 1, locations.in_space, i, on_sphere)
            # The left child is 2 node, the right one 2 node + 1; the truth value counts as 0 or 1.
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
    """Return a lower bound of what ``_measure`` returns for place ``i`` and any point in the box of
    a node.

    ``places`` is ``Locations.in_space``. The gap between a place and a box is 0 along an axis on
    which the place is inside. The bound is a haversine if ``on_sphere``, else the square of a
    distance on the plane.
    """
    bound = 0.0
    if on_sphere:
        for axis in range(3):
            # How far the place is below the box, or above it; both are negative inside.
            gap = max(
                tree.low[node, axis] - places[i, axis], places[i, axis] - tree.high[node, axis]
            )
            gap = max(gap - _SLACK, 0.0)
            bound += gap * gap
        return bound / 4 * _SHARE  # a quarter of the square of a chord is a haversine
    # On the plane nothing is taken off for rounding: ``_measure`` does the same operations on larger
    # or equal differences, and rounding keeps their order.
    for axis in range(2):
        gap = max(
            tree.low[node, axis] - places[i, axis], places[i, axis] - tree.high[node, axis], 0.0
        )
        bound += gap * gap
    return bound


@njit(cache=True, nogil=True, error_model="numpy")
def _measure(tree, point, locations, i, on_sphere):
    """Return the square of the distance between a point of the tree and location ``i`` on the
    plane, or the haversine of the angle between them on the sphere. Both grow with the distance.
    """
    east = tree.x[point] - locations.x[i]
    north = tree.y[point] - locations.y[i]
    if not on_sphere:
        return east * east + north * north
    # differences in degrees, which are exact for places near each other
    across = math.sin(math.radians(east) / 2)
    along = math.sin(math.radians(north) / 2)
    shrunk = math.cos(math.radians(tree.y[point])) * math.cos(math.radians(locations.y[i]))
    return along * along + shrunk * (across * across)
