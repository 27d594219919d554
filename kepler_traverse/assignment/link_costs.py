"""Costs of links: BPR, conical, and functions of the user's, as arrays that compiled code reads.

Costs have the same bits on every machine: whole powers are products in one order, other powers are
computed by ``_power`` from additions, multiplications and divisions, and none of these is fused.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..cpu import threads
from ..cpu.atomics import atomic_add
from ..cpu.compiled import njit

CONSTANT, BPR, CONICAL, LINEAR = range(4)  # in ``CostArrays.kind``: the formula of a link
# Of flow to capacity. The slope of a power below 1 is infinite at 0. Below this ratio it is taken
# as the slope at this ratio.
_MIN_RATIO = 1e-3
# ln 2 in two parts, of which the first has trailing zeros: products with small integers are exact
_LN2_HIGH = 0.6931471803691238
_LN2_LOW = 1.9082149292705877e-10
_BEYOND = 1e3  # an exponent whose power of e is beyond float64, as is the reciprocal
BLOCK = 1 << 14  # links of a block, the piece of work that a thread takes at a time
_MAX_WHOLE = 64  # whole exponents up to here are products; larger ones are computed by logarithms


class CostArrays(NamedTuple):
    """The costs of all links as functions of their flows, each array of shape (n_links,).

    ========  =================  ==================  ============  ============
    kind      ``free``           ``scale``           ``power``     ``capacity``
    ========  =================  ==================  ============  ============
    CONSTANT  the cost           0                   0             1
    BPR       the cost at 0      factor of the term  of the ratio  capacity
    CONICAL   the cost at 0      alpha               0             capacity
    LINEAR    the line at 0      its slope           0             1
    ========  =================  ==================  ============  ============

    BPR is ``free * (1 + scale * (flow / capacity) ** power)``. LINEAR is a tangent of a function of
    the user's, which holds near one flow.
    """

    kind: np.ndarray  # uint8: CONSTANT, BPR, CONICAL or LINEAR, the row of the table above
    free: np.ndarray  # float64, in units of time
    scale: np.ndarray  # float64
    power: np.ndarray  # float64
    capacity: np.ndarray  # float64, in units of flow; above 0

    def at(self, links: np.ndarray) -> CostArrays:
        """Return the costs of the links with the numbers ``links`` (n,), in the order of ``links``:
        new arrays of shape (n,).
        """
        return CostArrays(*(take(each, links) for each in self))


def take(values: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return ``values[places]`` of two arrays with one dimension, computed on all threads."""
    taken = np.empty(places.size, values.dtype)
    threads.run(_take_blocks, count_blocks(places.size), values, places, taken)
    return taken


def count_blocks(n: int) -> int:
    """Return the number of blocks of ``BLOCK`` links that ``n`` links make; the last block may be
    smaller.
    """
    return -(-n // BLOCK)


@njit(cache=True, nogil=True)
def _take_blocks(next_item, n_items, values, places, taken):
    """Write ``values[places]`` to ``taken``, per block of ``BLOCK`` places.

    ``next_item``: the counter from which threads take blocks 0 to ``n_items`` - 1.
    """
    while True:
        block = atomic_add(next_item, 0, 1)
        if block >= n_items:
            break
        for i in range(block * BLOCK, min((block + 1) * BLOCK, places.size)):
            taken[i] = values[places[i]]


@njit(cache=True, nogil=True)
def _whole_power(base, exponent):
    """Return ``base ** exponent`` for a whole exponent of at least 0, by repeated squaring."""
    result = 1.0
    while exponent > 0:
        if exponent & 1:
            result *= base
        base *= base
        exponent >>= 1
    return result


@njit(cache=True, nogil=True)
def _logarithm(value):
    """Return an integer k and a float y such that the natural logarithm of ``value``, which is
    above 0, is ``k * ln 2 + y``.
    """
    # Halve or double the value until it is between the roots of 1/2 and 2. There z is at most 0.172,
    # so that 14 terms of the series below are more than float64 can tell.
    k = 0
    while value > 1.4142135623730951:
        value *= 0.5
        k += 1
    while value < 0.7071067811865476:
        value *= 2.0
        k -= 1
    # ln m = 2 atanh((m - 1) / (m + 1)): the sum of z, z^3 / 3, z^5 / 5 and so on, twice
    z = (value - 1.0) / (value + 1.0)
    square = z * z
    term = z
    series = 0.0
    for i in range(1, 28, 2):
        series += term / i
        term *= square
    return k, 2.0 * series


@njit(cache=True, nogil=True)
def _power(base, exponent):
    """Return ``base ** exponent`` for a base of at least 0; the error is a few units in the last
    place.

    It is computed as ``e ** (exponent * ln base)`` from basic operations alone, whose bits are the
    same on every machine. The logarithm is ``k * ln 2 + rest``, with ln 2 in two parts, so that the
    product with k loses no digits.
    """
    if base <= 0.0:
        return 0.0
    if base == np.inf:  # no halving in ``_logarithm`` would make it smaller
        return np.inf if exponent > 0.0 else 0.0
    k, rest = _logarithm(base)
    value = exponent * (k * _LN2_HIGH) + exponent * (rest + k * _LN2_LOW)
    # The result is 0 or infinite from here on: larger values would only add steps to the loops
    # below.
    value = min(max(value, -_BEYOND), _BEYOND)
    # e^value = 2^j e^rest, with a rest of at most ln 2 / 2: the series of e by Horner, then 2^j. For
    # such a rest 18 terms are more than float64 can tell.
    j = np.int64(np.floor(value / 0.6931471805599453 + 0.5))
    rest = (value - j * _LN2_HIGH) - j * _LN2_LOW
    result = 1.0
    for i in range(18, 0, -1):
        result = 1.0 + rest * result / i
    while j > 0:
        result *= 2.0
        j -= 1
    while j < 0:
        result *= 0.5
        j += 1
    return result


@njit(cache=True, nogil=True)
def _ratio_to(base, exponent):
    """Return ``base ** exponent`` for a base of at least 0.

    Whole exponents from 0 to ``_MAX_WHOLE`` are computed by products, which is faster and more
    exact than logarithms.
    """
    whole = np.int64(exponent)
    if whole == exponent and 0 <= whole <= _MAX_WHOLE:
        return _whole_power(base, whole)
    return _power(base, exponent)


@njit(cache=True, nogil=True)
def cost_and_slope(link, flow, costs):
    """Return the cost of a link at a flow, and its derivative by the flow.

    ``link`` is the number of the link in ``costs``, a ``CostArrays``.
    """
    # The next function takes numbers and no arrays: a call with arrays copies the fields of each to
    # the stack, which takes longer than the cost.
    return _cost_and_slope(
        flow,
        costs.kind[link],
        costs.free[link],
        costs.scale[link],
        costs.power[link],
        costs.capacity[link],
    )


@njit(cache=True, nogil=True)
def _cost_and_slope(flow, kind, free, scale, power, capacity):
    """Return the cost of one link at a flow, and its derivative by the flow.

    ``kind`` to ``capacity`` are the fields of ``CostArrays`` for this link; a kind has a branch
    each: BPR (with a power below 1, or from 1 on), CONICAL, LINEAR and CONSTANT.
    """
    if kind == BPR:
        # cost = free (1 + scale ratio^power), with ratio = flow / capacity
        per_capacity = 1.0 / capacity
        ratio = flow * per_capacity
        if power < 1.0:
            # The slope, infinite at ratio 0, is that at ``_MIN_RATIO`` at least.
            least = max(ratio, _MIN_RATIO)
            slope = power * _ratio_to(least, power - 1.0)
            cost = free + free * scale * _ratio_to(ratio, power)
            return cost, free * scale * slope * per_capacity
        # One power serves both results: ratio^power = ratio * ratio^(power - 1).
        below = _ratio_to(ratio, power - 1.0)
        steep = free * scale * below
        return free + steep * ratio, steep * power * per_capacity
    if kind == CONICAL:
        # alpha is ``scale``, e the beta of Spiess: 2 + sqrt(alpha^2 (1 - ratio)^2 + beta^2)
        # - alpha (1 - ratio) - beta
        e = (2.0 * scale - 1.0) / (2.0 * scale - 2.0)
        u = scale * (1.0 - flow / capacity)
        root = np.sqrt(u * u + e * e)
        return free * (2.0 + root - u - e), free * scale / capacity * (1.0 - u / root)
    if kind == LINEAR:
        return max(free + scale * flow, 0.0), scale  # a tangent may fall below 0, a cost may not
    return free, 0.0  # CONSTANT


@njit(cache=True, nogil=True)
def evaluate(next_item, n_items, flow, costs, cost, slope):
    """Write the cost and the slope of each link at its flow, per block of ``BLOCK`` links.

    ``next_item``: the counter from which threads take blocks 0 to ``n_items`` - 1. ``flow`` and the
    outputs ``cost`` and ``slope`` are float64 of shape (n_links,); ``costs`` is a ``CostArrays``.
    """
    while True:
        block = atomic_add(next_item, 0, 1)
        if block >= n_items:
            break
        for link in range(block * BLOCK, min((block + 1) * BLOCK, flow.size)):
            cost[link], slope[link] = cost_and_slope(link, flow[link], costs)


@njit(cache=True, nogil=True)
def evaluate_again(next_item, n_items, class_flow, costs, loads, is_finite):
    """Change ``loads``, a ``path_flows.Loads`` of earlier flows, to those of ``class_flow``
    (n_classes, n_links): overwrite its flow, cost and slope.

    A link whose flow has not changed keeps its cost, so that only changed ones are computed.
    ``is_finite`` (n_items,) bool is written per block of ``BLOCK`` links: whether all costs that
    were computed are finite. ``next_item``: the counter from which threads take blocks 0 to
    ``n_items`` - 1.
    """
    while True:
        block = atomic_add(next_item, 0, 1)
        if block >= n_items:
            break
        is_right = True  # whether all costs of the block so far are finite
        for link in range(block * BLOCK, min((block + 1) * BLOCK, loads.flow.size)):
            flow = common_flow(link, class_flow, loads.per_vehicle)
            if flow == loads.flow[link]:
                continue
            loads.flow[link] = flow
            # ``time`` is the part of the cost that all classes share.
            time, loads.slope[link] = cost_and_slope(link, flow, costs)
            for k in range(class_flow.shape[0]):
                cost = time + loads.fixed[k, link]
                loads.cost[k, link] = cost
                is_right &= np.isfinite(cost)
        is_finite[block] = is_right


@njit(cache=True, nogil=True)
def common_flow(link, class_flow, per_vehicle):
    """Return the flow of all classes together on a link, in units of flow.

    ``class_flow`` (n_classes, n_links) are vehicles, and ``per_vehicle`` (n_classes,) the units
    that a vehicle of each class adds. Classes are added in their order, so that rounding is always
    the same.
    """
    flow = per_vehicle[0] * class_flow[0, link]
    for k in range(1, class_flow.shape[0]):
        flow += per_vehicle[k] * class_flow[k, link]
    return flow


class Step(NamedTuple):
    """A step of the flows of some links: from ``flow`` to ``flow + size * change``.

    ``flow`` (n,) float64 is the flow of all classes together before the step. ``change`` (n,)
    float64 is the flow of the target minus ``flow``. ``size`` is the part of the way to the target,
    from 0 to 1.
    """

    flow: np.ndarray
    change: np.ndarray
    size: float


@njit(cache=True, nogil=True)
def add_up_change(next_item, n_items, step, costs, sums):
    """Write, per block of ``BLOCK`` links, the first and the second derivative of the objective by
    the size of a step.

    The first is the sum over the links of the cost after the step times ``change``. The second is
    the sum of the slope of the cost times ``change`` squared. ``step`` is a ``Step``, ``costs`` the
    ``CostArrays`` of its links. ``sums`` (n_items, 2) float64 receives both per block.
    ``next_item``: the counter from which threads take blocks 0 to ``n_items`` - 1.
    """
    flow, change, size = step
    while True:
        block = atomic_add(next_item, 0, 1)
        if block >= n_items:
            break
        total = 0.0
        rest = 0.0
        slopes = 0.0
        for i in range(block * BLOCK, min((block + 1) * BLOCK, flow.size)):
            after_step = max(flow[i] + size * change[i], 0.0)  # not below 0 by rounding
            cost, slope = cost_and_slope(i, after_step, costs)
            product = cost * change[i]
            # ``rest`` collects what each addition to ``total`` rounds away.
            after = total + product
            added = after - total
            rest += (total - (after - added)) + (product - added)
            total = after
            slopes += change[i] * slope * change[i]
        sums[block, 0] = total + rest
        sums[block, 1] = slopes


@njit(cache=True, nogil=True)
def _conical_part(z, e):
    """Return the integral of ``sqrt(x * x + e * e)`` over x from 0 to z; e is above 0.

    The integral is ``(z root + e^2 ln((z + root) / e)) / 2``, with ``root = sqrt(z^2 + e^2)``. It
    is computed for ``abs(z)``, where no digits cancel in the logarithm; the integrand is even.
    """
    size = abs(z)
    root = np.sqrt(size * size + e * e)
    k, rest = _logarithm((size + root) / e)
    area = 0.5 * (size * root + e * e * (k * 0.6931471805599453 + rest))
    if z < 0.0:
        return -area
    return area


@njit(cache=True, nogil=True)
def integral_at(link, flow, costs):
    """Return the integral of the cost of a link from flow 0 to a flow.

    ``link`` is the number of the link in ``costs``, a ``CostArrays`` without the kind LINEAR:
    integrals of a user's function are computed by the user.
    """
    kind = costs.kind[link]
    free = costs.free[link]
    scale = costs.scale[link]
    if kind == BPR:
        power = costs.power[link]
        ratio = flow / costs.capacity[link]
        return free * flow * (1.0 + scale * _ratio_to(ratio, power) / (power + 1.0))
    if kind == CONICAL:
        e = (2.0 * scale - 1.0) / (2.0 * scale - 2.0)  # beta of Spiess; ``scale`` is alpha
        per_flow = costs.capacity[link] / scale
        # The cost is ``free * (2 - e + sqrt(u^2 + e^2) - u)``, and u = alpha (1 - flow / capacity)
        # falls from alpha as the flow grows. So each term is integrated over u.
        u = scale - flow / per_flow
        square = 0.5 * per_flow * (u * u - scale * scale)
        roots = per_flow * (_conical_part(scale, e) - _conical_part(u, e))
        return free * ((2.0 - e) * flow + square + roots)
    return free * flow  # CONSTANT


@njit(cache=True, nogil=True)
def sum_integrals(flow, costs):
    """Return the sum over all links of the integral of the cost from flow 0 to ``flow``
    (n_links,), added in their order, so that rounding is always the same.

    ``costs`` is the ``CostArrays`` of the links, without the kind LINEAR.
    """
    total = 0.0
    for link in range(flow.size):
        total += integral_at(link, flow[link], costs)
    return total


@njit(cache=True, nogil=True)
def sum_products(x, y):
    """Return the sum of ``x[i] * y[i]`` over two float64 arrays, added in order.

    What each addition rounds away is collected in ``rest`` and added at the end. The fixed order
    gives the same bits on every machine, which ``numpy.dot`` does not promise.
    """
    total = 0.0
    rest = 0.0
    for i in range(x.size):
        product = x[i] * y[i]
        after = total + product
        added = after - total
        rest += (total - (after - added)) + (product - added)
        total = after
    return total + rest


class Extent(NamedTuple):
    """The size of some values, compared with a limit."""

    total: float  # the sum of the values that are at most the limit
    n_above: int  # the number of values above the limit
    largest: float  # the largest of all values, also of those above the limit


def measure_extent(values: np.ndarray, limit: float) -> Extent:
    """Return the ``Extent`` of an array of float64 values of at least 0, for a limit.

    Sums are made per block and then added exactly, so that they do not depend on the threads.
    """
    n_blocks = count_blocks(values.size)
    sums = np.empty(n_blocks)
    n_above = np.empty(n_blocks, np.int64)
    largest = np.empty(n_blocks)
    threads.run(_measure_blocks, n_blocks, values, limit, sums, n_above, largest)
    return Extent(math.fsum(sums), int(n_above.sum()), float(largest.max()))


@njit(cache=True, nogil=True)
def _measure_blocks(next_item, n_items, values, limit, sums, n_above, largest):
    """Write the fields of ``Extent`` of each block of ``BLOCK`` values to ``sums``, ``n_above`` and
    ``largest``, arrays of shape (n_items,).

    ``next_item``: the counter from which threads take blocks 0 to ``n_items`` - 1.
    """
    while True:
        block = atomic_add(next_item, 0, 1)
        if block >= n_items:
            break
        total = 0.0
        above = 0
        most = 0.0
        for i in range(block * BLOCK, min((block + 1) * BLOCK, values.size)):
            if values[i] <= limit:
                total += values[i]
            else:
                above += 1
            most = max(most, values[i])
        sums[block] = total
        n_above[block] = above
        largest[block] = most


def round_down(values: np.ndarray, limit: float, shift: int, beyond: int, whole: np.ndarray) -> int:
    """Write to ``whole`` (int64) each value times ``2 ** shift``, rounded down, or ``beyond`` if
    the value is above ``limit``. Return how many became 0.

    ``values`` are float64 of at least 0, of the shape of ``whole``.
    """
    half = shift // 2  # two factors, since one of 2 ** 1074 is beyond float64
    factors = 2.0**half, 2.0 ** (shift - half)
    n_free = np.empty(count_blocks(values.size), np.int64)
    threads.run(_round_blocks, n_free.size, values, (limit, *factors), beyond, whole, n_free)
    return int(n_free.sum())


@njit(cache=True, nogil=True)
def _round_blocks(next_item, n_items, values, rule, beyond, whole, n_free):
    """Write to ``whole`` each value times a power of two, rounded down, or ``beyond`` if the value
    is above a limit. Write to ``n_free`` (n_items,) how many became 0 in each block of ``BLOCK``.

    ``rule``: the limit, and two factors whose product is the power of two. ``next_item``: the
    counter from which threads take blocks 0 to ``n_items`` - 1.
    """
    limit, half, rest = rule
    while True:
        block = atomic_add(next_item, 0, 1)
        if block >= n_items:
            break
        free = 0
        for i in range(block * BLOCK, min((block + 1) * BLOCK, values.size)):
            if values[i] <= limit:
                whole[i] = np.int64(values[i] * half * rest)
                free += whole[i] == 0
            else:
                whole[i] = beyond
        n_free[block] = free


def scale_sums(sums: np.ndarray, unit: tuple[int, int], beyond: int, values: np.ndarray) -> bool:
    """Convert sums of whole numbers, as ``round_down`` makes them, back to float64.

    Each sum loses its last bits and is divided by a power of two. A sum of ``beyond`` or more
    becomes infinite.

    Parameters
    ----------
    sums : int64 array
    unit : tuple of int, int
        The number of last bits of a sum, which count links and are no part of the cost, and the
        ``shift`` that ``round_down`` was called with.
    beyond : int
        The number that stands for no path.
    values : float64 array of the shape of ``sums``, output

    Returns
    -------
    bool
        Whether all sums are below ``beyond``.
    """
    is_below = np.empty(count_blocks(sums.size), np.bool_)
    n_bits, shift = unit
    rule = n_bits, 2.0**-shift  # a product with it is rounded once, if at all
    threads.run(_scale_blocks, is_below.size, sums, rule, beyond, values, is_below)
    return bool(is_below.all())


@njit(cache=True, nogil=True)
def _scale_blocks(next_item, n_items, sums, rule, beyond, values, is_below):
    """Write to ``values`` each sum without its last bits, times a factor, or infinity if the sum is
    ``beyond`` or more. Write to ``is_below`` (n_items,) whether no sum of a block of ``BLOCK`` is.

    ``rule``: the number of last bits, and the factor. ``next_item``: the counter from which threads
    take blocks 0 to ``n_items`` - 1.
    """
    n_bits, factor = rule
    while True:
        block = atomic_add(next_item, 0, 1)
        if block >= n_items:
            break
        are_all = True
        for i in range(block * BLOCK, min((block + 1) * BLOCK, sums.size)):
            if sums[i] < beyond:
                values[i] = (sums[i] >> n_bits) * factor
            else:
                values[i] = np.inf
                are_all = False
        is_below[block] = are_all
