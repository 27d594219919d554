"""Sums of vertex attributes within cutoffs, per source, in one pass over its distances. The twin of
``kepler_traverse.kinds.opportunities_gpu``."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from . import threads
from .atomics import atomic_add
from .compiled import njit
from .distance_stats import fold_sums
from .simd_statistics import PIECE

# Decays: how the weight of a vertex falls with its distance; ``weight_at`` has the formulas. The
# kernel for GPUs has the same numbers.
NO_DECAY, EXPONENTIAL, LINEAR, GAUSSIAN, STEP, LOGISTIC, POWER = range(7)


class Within(NamedTuple):
    """What is added up within cutoffs: attributes of vertices, such as jobs or people."""

    # of the type of the distances: vertices at smaller distances do not count, such as unreached
    # ones at -1
    lowest: Any
    # of the type of the distances, of shape (n_cutoffs,): the largest distance within each cutoff,
    # ascending
    bounds: np.ndarray
    # integers, floats: int64 of shape (n_integers, n_vertices) and float64 of shape (n_floats,
    # n_vertices): a number per attribute and vertex. Integers are not decayed
    integers: np.ndarray
    floats: np.ndarray
    decay: int  # one of NO_DECAY to POWER, for the floats
    parameters: tuple[float, float]  # the two numbers that ``weight_at`` takes


def sums(
    distance, lowest, bounds, integers, floats, decay: int, parameters: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray]:
    """Add up attributes of the vertices within each cutoff, per source.

    ``distance``, of shape (k, n_vertices), has a row per source: hops, -1 where unreached, or
    weighted distances. The other arguments are the fields of ``Within``: ``lowest`` and ``bounds``
    are the smallest distance that counts and the largest within each cutoff, and ``decay`` and
    ``parameters`` say how floats fall with the distance. Return the sums of integers, an int64
    array of shape (k, n_integers, n_cutoffs), and those of floats, a float64 array of shape (k,
    n_floats, n_cutoffs).
    """
    # Sums of floats are kept per block of ``PIECE`` vertices, and the blocks are added at the end,
    # in an order that does not depend on threads.
    k, n = distance.shape
    exact = np.zeros((k, len(integers), bounds.size), np.int64)
    rounded = np.zeros((k, len(floats), bounds.size, -(-n // PIECE)))
    wanted = Within(lowest, bounds, integers, floats, decay, parameters)
    threads.run(_sum_within, k, distance, wanted, exact, rounded)
    return exact, fold_sums(rounded)


@njit(cache=True, nogil=True, error_model="numpy")
def _sum_within(next_item, n_items, distance, wanted, exact, rounded):
    """Add integer attributes to ``exact``, and write the sums of floats over each block of
    ``PIECE`` vertices to ``rounded``.

    ``exact`` is int64 of shape (k, n_integers, n_cutoffs), and 0 before. ``rounded`` is float64 of
    shape (k, n_floats, n_cutoffs, n_blocks). ``distance`` has a row per source, and ``wanted`` is
    ``Within``. An item is a source. Threads take items from the counter ``next_item``, until it is
    ``n_items``.
    """
    lowest = wanted.lowest
    bounds = wanted.bounds
    integers = wanted.integers
    floats = wanted.floats
    decay = wanted.decay
    # Scratch for the vertices of a block: the decayed values of an attribute; the same values, 0
    # for vertices beyond a cutoff; and the weights by which values decay.
    values = np.empty(PIECE)
    masked = np.empty(PIECE)
    weights = np.empty(PIECE)
    n = distance.shape[1]
    while True:
        source = atomic_add(next_item, 0, 1)
        if source >= n_items:
            return
        for piece in range(rounded.shape[3]):
            first = piece * PIECE
            size = min(PIECE, n - first)
            part = distance[source, first : first + size]

            for a in range(len(integers)):
                attribute = integers[a, first : first + size]
                _add_integers(part, attribute, lowest, bounds, exact[source, a])

            # Values are weighted once, and added up for each cutoff.
            if len(floats) and decay != NO_DECAY:
                for i in range(size):
                    weights[i] = 0.0
                    if lowest <= part[i] and part[i] <= bounds[-1]:
                        weights[i] = weight_at(np.float64(part[i]), decay, wanted.parameters)
            for a in range(len(floats)):
                for i in range(size):
                    values[i] = floats[a, first + i]
                    if decay != NO_DECAY:
                        values[i] *= weights[i]
                for c in range(bounds.size):
                    rounded[source, a, c, piece] = _sum_block(
                        part, values, lowest, bounds[c], masked
                    )


@njit(cache=True, nogil=True)
def _add_integers(part, attribute, lowest, bounds, exact):
    """Add the values of an attribute of the vertices within each cutoff to ``exact``, of shape
    (n_cutoffs,).

    ``part`` and ``attribute`` have the distance and the value of each vertex of a block. A vertex
    is within a cutoff if its distance is from ``lowest`` to the element of ``bounds``.
    """
    for c in range(bounds.size):
        bound = bounds[c]
        total = np.int64(0)
        for i in range(part.size):
            total += attribute[i] if lowest <= part[i] and part[i] <= bound else 0
        exact[c] += total


@njit(cache=True, nogil=True)
def _sum_block(part, values, lowest, bound, masked):
    """Return the sum of the values of a block whose vertices are at distances from ``lowest`` to
    ``bound``.

    ``part`` has the distances, of which the last block may have fewer than ``PIECE``. ``values``
    has the value of each, and ``masked``, of shape (PIECE,), is scratch, which holds anything
    before. Values are added by halves, value i and value i + half, until one is left, which is the
    order of the GPU.
    """
    for i in range(part.size):
        masked[i] = values[i] if lowest <= part[i] and part[i] <= bound else 0.0
    for i in range(part.size, PIECE):
        masked[i] = 0.0

    half = PIECE // 2
    while half > 0:
        for i in range(half):
            masked[i] += masked[i + half]
        half //= 2
    return masked[0]


@njit(cache=True, nogil=True, error_model="numpy")
def weight_at(d, decay, parameters):
    """Return the weight of a vertex at a distance ``d`` of 0 or more, from 0 to 1.

    ``decay`` is one of ``EXPONENTIAL`` to ``POWER``. ``parameters`` are the number of the decay,
    such as a rate or a distance, and for a logistic decay its width.
    """
    parameter, width = parameters
    if decay == LINEAR:
        return 1.0 - d / parameter if d < parameter else 0.0
    if decay == EXPONENTIAL:
        return exponential(-(parameter * d))
    if decay == STEP:
        return 1.0 if d <= parameter else 0.0
    if decay == LOGISTIC:
        return logistic(d, parameter, width)
    if decay == POWER:
        return exponential(-(parameter * logarithm(d))) if d > 1.0 else 1.0
    # GAUSSIAN
    t = d / parameter
    return exponential(-0.5 * (t * t))


@njit(cache=True, nogil=True, error_model="numpy")
def logistic(d, middle, width):
    """Return (1 + exp(-middle / width)) / (1 + exp((d - middle) / width)), which is 1 at d = 0.

    ``d`` is 0 or more, and ``width`` is above 0.
    """
    at_zero = 1.0 + exponential(-(middle / width))
    z = (d - middle) / width
    if z <= 0.0:
        return at_zero / (1.0 + exponential(z))

    # The same quotient, times exp(-z): exp(z) could overflow.
    small = exponential(-z)
    return at_zero * small / (1.0 + small)


@njit(cache=True, nogil=True, error_model="numpy")
def logarithm(x):
    """Return ln x for x > 1, computed by products, quotients and sums, which round alike on each
    device; the logarithms that devices have do not.
    """
    # x is 2^n times a number near 1, whose logarithm is 2 artanh(s) = 2 (s + s^3 / 3 + ...).
    n = 0
    while x > 1.4142135623730951:  # sqrt(2)
        x *= 0.5
        n += 1

    s = (x - 1.0) / (x + 1.0)
    t = s * s
    p = 1.0 / 23.0
    p = p * t + 1.0 / 21.0
    p = p * t + 1.0 / 19.0
    p = p * t + 1.0 / 17.0
    p = p * t + 1.0 / 15.0
    p = p * t + 1.0 / 13.0
    p = p * t + 1.0 / 11.0
    p = p * t + 1.0 / 9.0
    p = p * t + 1.0 / 7.0
    p = p * t + 1.0 / 5.0
    p = p * t + 1.0 / 3.0
    p = p * t + 1.0
    return n * 0.6931471805599453 + 2.0 * s * p  # ln 2 and the series


@njit(cache=True, nogil=True, error_model="numpy")
def exponential(x):
    """Return exp(x) for x <= 0, computed by products and sums, which round alike on each device.

    The exponential functions that devices have do not.
    """
    if not x > -746.0:  # below the smallest subnormal number; also of NaN
        return 0.0

    # x is n ln 2 + r, where n is x / ln 2 rounded, so that r is at most ln 2 / 2 in size. ln 2 is
    # subtracted in two parts, of which the first times n is exact.
    n = np.int64(np.floor(x * 1.4426950408889634 + 0.5))
    r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10

    # The series of exp(r).
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0

    # Two factors, because 2^n may be subnormal.
    half = n // 2
    return p * math.ldexp(1.0, half) * math.ldexp(1.0, n - half)
