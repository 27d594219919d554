"""Weights counted in a unit, as integers: minutes with one decimal are integers in tenths."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import arguments
from .._arrays import iter_slices, namespace
from ..errors import InputError, several
from . import Graph
from .new_weights import with_weights

_MAX_DECIMALS = 9  # the smallest unit that is tried is 1e-9
# Counts must be below it: float64 has all integers up to it exactly.
_MAX_COUNT = 2.0**53
_SAMPLED = 1 << 12  # weights that are looked at before all of them
_MIN_UNIT = 1e-323  # the smallest power of ten that float64 has
_FEW = 1000.0  # units in the mean weight, so that rounding changes it by less than a thousandth


class IntegerWeights(NamedTuple):
    """A graph whose weights count a unit.

    Attributes
    ----------
    graph : Graph
        On the same edges, with integer weights.
    unit : float
        A distance of the graph, times ``unit``, is a distance by the weights that were given.
    error : float
        The largest difference between a weight and its count of units times ``unit``: 0 if no
        weight was rounded. A distance over ``e`` edges is off by at most ``e * error``.
    """

    graph: Graph
    unit: float
    error: float


def integer_weights(graph: Graph, unit: float | None = None) -> IntegerWeights:
    """Return a graph with the weights as integers that count a unit; distances are then exact.

    Minutes with one decimal are integers in tenths. A graph of integer weights may have a
    hierarchy, whose sweeps are tens of times as fast on road networks, and exact sums.

    Parameters
    ----------
    graph : Graph
        With weights.
    unit : float, optional
        Weights are rounded to multiples of it. By default the largest power of ten that all
        weights are multiples of, from 1 down to 1e-9, so that none is rounded.

    Returns
    -------
    IntegerWeights
        ``graph``, ``unit``, and ``error``, by which rounding changed a weight at most.

    Raises
    ------
    InputError
        The graph has no weights, or a self-loop of negative weight; they are no multiples of a power
        of ten, and no unit is given: the message names one, and its error; the unit is not above 0,
        or so small that the counts leave 2^53; it makes a weight 0 that is not.

    Examples
    --------
    >>> import numpy as np
    >>> graph = graph_from_edges(np.array([0, 1]), np.array([1, 2]), np.array([0.1, 2.5]))
    >>> found = integer_weights(graph)
    >>> found.graph.weights.tolist(), found.unit, found.error
    ([1.0, 25.0], 0.1, 0.0)
    """
    arguments.instance("graph", graph, Graph, "read_graph and graph_from_edges make one")
    if graph.weights is None:
        raise InputError("the graph has no weights; name the weight column when reading it")
    if graph.negative_loops:
        many = several(len(graph.negative_loops), "vertex")
        raise InputError(
            f"the graph has {many} with a self-loop of negative weight, which no unit counts; "
            "build it without such rows"
        )
    if unit is None:
        unit = find_decimal_unit(graph)
        if unit is None:
            raise InputError(
                f"the weights are no multiples of a power of ten; {describe_rounding(graph)}"
            )
    else:
        arguments.real("unit", unit)
        try:
            unit = float(unit)
        except OverflowError:
            unit = np.inf
        if not 0 < unit < np.inf:
            raise InputError(f"unit must be above 0 and finite, not {unit}")
    with np.errstate(over="ignore"):  # counts beyond float64 are refused
        return _count(graph, unit)


def find_decimal_unit(graph: Graph) -> float | None:
    """Return the largest power of ten, from 1 to 1e-9, that all weights are multiples of; None if
    there is none.

    A float counts as a multiple if no number of its type is nearer to that multiple, as decimal
    fractions such as 0.1 are not exact in binary.
    """
    weights: Any = graph.weights
    # A power that does not fit is mostly seen at the first weights, so that all are rarely read.
    sample = weights[:_SAMPLED]
    for decimals in range(_MAX_DECIMALS + 1):
        scale = 10.0**decimals
        with np.errstate(over="ignore"):  # counts beyond float64 are refused
            if _are_multiples(sample, scale) and _are_multiples(weights, scale):
                return 1 / scale
    return None


def describe_rounding(graph: Graph) -> str:
    """Return the part of a message that says which unit would round the weights of a graph little,
    and by how much at most; or that none does.
    """
    unit = suggest_unit(graph)
    if unit is None:
        return "no unit counts both the smallest and the largest; make the smallest ones 0"
    # Between two multiples a weight is half a unit from the nearest, at most.
    return (
        f"unit={unit:g} rounds them by at most {unit / 2:g} each: integer_weights(graph, {unit:g})"
    )


def suggest_unit(graph: Graph) -> float | None:
    """Return the largest power of ten that is at most the smallest absolute weight above 0, and at
    most a thousandth of the mean, so that rounding to it changes weights little.

    It is larger if the largest weight would otherwise count more units than float64 has exactly.
    None if the smallest weight would then count none.
    """
    weights: Any = graph.weights
    xp = namespace(weights)
    nonzero = abs(weights[weights != 0])
    if not nonzero.size:
        return 1.0  # any unit does
    smallest = float(nonzero.min())
    largest = float(nonzero.max())
    mean = float(xp.mean(nonzero, dtype=np.float64))
    # A weight that is the mean counts at least ``_FEW`` units.
    few = max(min(mean / _FEW, smallest), _MIN_UNIT)
    power = int(np.floor(np.log10(few)))
    # below it the largest count would leave the integers that float64 has
    power = max(power, int(np.ceil(np.log10(max(largest / _MAX_COUNT, _MIN_UNIT)))))
    # The text is the power of ten that a message shows. A logarithm may be off by a rounding.
    units = [float(f"1e{power}"), float(f"1e{power + 1}")]
    for unit in units:
        (of_smallest, of_largest), _ = _round_to(np.array([smallest, largest]), unit)
        if of_largest < _MAX_COUNT and of_smallest > 0:
            return unit
    return None


def _are_multiples(weights: Any, scale: float) -> bool:
    """Return whether each weight is the number of its type that is nearest to an integer divided by
    ``scale``, a power of ten: whether all count units of ``1 / scale``.
    """
    xp = namespace(weights)
    for _, part in iter_slices(weights):
        counts = xp.rint(part.astype(np.float64) * scale)
        if not bool((abs(counts) < _MAX_COUNT).all()):
            return False
        # The division rounds to the nearest number, as the weight was rounded.
        if not bool(((counts / scale).astype(part.dtype) == part).all()):
            return False
    return True


def _count(graph: Graph, unit: float) -> IntegerWeights:
    """Return a graph with the weights as counts of a unit, which is above 0, rounded to integers.

    InputError if a count is 2^53 or more, or becomes 0 where the weight is not 0.
    """
    weights: Any = graph.weights
    wide = weights.astype(np.float64)
    counts, rounded = _round_to(wide, unit)
    if not bool((abs(counts) < _MAX_COUNT).all()):
        raise InputError(
            f"unit={unit:g} makes a weight of 2^53 units or more; {describe_rounding(graph)}"
        )
    if bool(((counts == 0) & (wide != 0)).any()):
        raise InputError(
            f"unit={unit:g} rounds a weight to 0 that is not; {describe_rounding(graph)}"
        )

    is_exact = bool((rounded.astype(weights.dtype) == weights).all())
    error = 0.0
    if not is_exact and weights.size:
        error = float(abs(rounded - wide).max())
    # ``per="edge"``: one weight per stored edge, in the order of ``targets``.
    return IntegerWeights(with_weights(graph, counts.astype(np.int64), per="edge"), unit, error)


def _round_to(weights: Any, unit: float) -> tuple[Any, Any]:
    """Return how many units each weight counts, rounded to integers, and the weights that these
    counts make; both float64, as ``weights`` are.
    """
    xp = namespace(weights)
    # A unit such as 0.1 is not exact, but the 10 that it divides 1 into is: counts are then the
    # weights times 10, and weights are counts divided by 10.
    divisor = np.rint(1 / unit)
    if divisor > 0 and unit == 1 / divisor:
        counts = xp.rint(weights * divisor)
        return counts, counts / divisor
    counts = xp.rint(weights / unit)
    return counts, counts * unit
