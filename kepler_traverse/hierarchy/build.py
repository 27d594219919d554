"""Build the hierarchy of a graph, or say why it has none that pays."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from .._arrays import EXACT_BELOW, to_host
from ..cpu import threads
from ..errors import HierarchyError
from .arrays import Hierarchy, hierarchy_from
from .contraction import MAX_SUM, Contraction, half_depth
from .estimate import round_seconds

_WEIGHTS_AT_ONCE = 1 << 22  # whose copies take bounded memory
_SPARE_BITS = 4  # float weights have this many bits less than sums, so that few sums round
# Contraction is given up if so many pairs of edges per vertex of the graph meet at vertices of the
# rest: the time of a round is proportional to them. Road networks have at most 8, and lattices 15.
MAX_PAIRS = 64
# vertices: a smaller graph may have as many pairs as one of this size; fewer pairs take no time
_SMALL = 1 << 18
# contraction is given up if the pairs become so many times as many; on graphs where it pays they
# become fewer
_GROWTH = 1.5
# times the depth of a random graph with as many pairs; meshes have 6 times that depth, road
# networks 13
_NEAR = 2.0
_TREE = 1.1  # edges per vertex up to which a graph has too few cycles for its depth to matter


def why_not(graph: Any, metric: str) -> str | None:
    """Return why a graph cannot have a hierarchy of a metric, "weights" or "hops"; None if it may
    have one.

    It reads the weights at most twice.
    """
    if metric == "hops" and graph.device != "cpu":
        return "a hierarchy of hops is used on the CPU; take graph.to('cpu')"
    if graph.targets.dtype.itemsize > 4:
        return "the graph has 2^31 vertices or more"
    if metric == "hops":
        return None
    if graph.weights is None:
        return (
            "the graph has no weights; name the weight column when "
            "reading it, or take metric='hops'"
        )
    if graph.has_negative_weights:
        return "the graph has negative weights"
    if graph.weights.dtype.kind == "i" and graph.derived.heaviest >= MAX_SUM:
        return "a weight is 2^61 or more"
    if not graph.integer_weights and find_unit(to_host(graph.weights)) is None:
        return (
            "the weights are floats whose sums depend on the order of addition; "
            "integer_weights(graph) counts them in a unit, as integers"
        )
    return None


def find_unit(weights: np.ndarray) -> float | None:
    """Return the largest power of two that all float weights are multiples of, None if their sums
    would round.

    Zero is a multiple of any. Without a weight other than zero it is 1.
    """
    unit = np.inf
    heaviest = 0.0
    for begin in range(0, weights.size, _WEIGHTS_AT_ONCE):
        part = weights[begin : begin + _WEIGHTS_AT_ONCE]
        part = part[part != 0].astype(np.float64)
        if part.size:
            # The lowest bit of a float that is set is the largest power of two that it is a
            # multiple of. Its 53 digits, as an integer, show that bit.
            mantissa, exponent = np.frexp(part)
            digits = (mantissa * 2.0**53).astype(np.int64)
            lowest_bit = (digits & -digits).astype(np.float64)
            unit = min(unit, float(np.ldexp(lowest_bit, exponent - 53).min()))
            heaviest = max(heaviest, float(part.max()))
    if not heaviest:
        return 1.0
    # A unit near the smallest float would not survive a product with a float32.
    if unit < 2.0**-100 or heaviest / unit >= EXACT_BELOW[weights.dtype] / 2**_SPARE_BITS:
        return None
    return unit


def build_hierarchy(graph: Any, metric: str = "weights") -> Hierarchy:
    """Contract a graph on the threads of the CPU. The result does not depend on their number.

    HierarchyError says why if the graph has no hierarchy of the metric, "weights" or "hops", that
    pays, or none at all.
    """
    reason = why_not(graph, metric)
    if reason:
        raise HierarchyError(f"no hierarchy: {reason}")

    # contraction has many small steps, for which a CPU is the better device
    graph = graph.to("cpu")
    start_time = time.perf_counter()
    unit = unit_of_lengths(graph, metric)
    lengths = edges_in_units(graph, metric, unit)
    backward = None
    if graph.directed:
        reverse = graph.reverse
        backward = (reverse.offsets, reverse.targets, edges_in_units(reverse, metric, unit))
    contraction = Contraction(graph.offsets, graph.targets, lengths, backward)

    pairs = contraction.pairs_of_rest()
    contraction.run(lambda: _refuse_dense_rest(contraction, graph.n_vertices, pairs))
    hierarchy = hierarchy_from(contraction, unit, time.perf_counter() - start_time)
    if hierarchy is None:
        raise HierarchyError("no hierarchy: a sum of weights may reach 2^61; take smaller weights")
    return hierarchy


def unit_of_lengths(graph: Any, metric: str) -> Any:
    """Return the number that lengths are multiples of, in a graph that may have a hierarchy of the
    metric.
    """
    if metric == "hops" or graph.integer_weights:
        return 1.0
    return find_unit(graph.weights)


def edges_in_units(graph: Any, metric: str, unit: float) -> np.ndarray:
    """Return the length of each stored edge, by a metric, in int64 multiples of the unit."""
    if metric == "hops":
        return np.ones(graph.n_edges, np.int64)
    if unit == 1.0:
        weights = graph.weights
    else:
        weights = graph.weights.astype(np.float64) / unit
    return weights.astype(np.int64)


def _refuse_dense_rest(contraction: Contraction, n_vertices: int, first_pairs: int) -> None:
    """Raise HierarchyError if contracting the rest would take longer than searches are likely to.

    ``first_pairs`` are the ``pairs_of_rest`` of the whole graph.
    """
    n_left = contraction.remaining.size
    pairs = contraction.pairs_of_rest()
    if pairs > max(_GROWTH * first_pairs, _SMALL) or pairs > MAX_PAIRS * max(n_vertices, _SMALL):
        degree = contraction.edges_of_rest() / n_left
        seconds = round_seconds(pairs, threads.count())
        raise HierarchyError(
            f"no hierarchy: with {n_left:,} of {n_vertices:,} vertices left, each has {degree:,.0f} "
            "neighbors on average and hubs have far more, and contracting more vertices adds more edges than it removes. "
            f"The next round alone would take about {seconds:,.2g} s, and later rounds longer. "
            "Networks with hubs have no hierarchy that pays; search without one"
        )

    # Before the first round only: shortcuts would make the depth smaller.
    if contraction.rounds:
        near_depth = 0
    else:
        near_depth = _depth_if_near_all(contraction, pairs)
    if near_depth:
        raise HierarchyError(
            f"no hierarchy: half of the vertices are within {near_depth} edges of one vertex, as in a "
            "random graph, so no few vertices separate it, and contracting vertices adds more edges "
            "than it removes. "
            "Networks with hubs have no hierarchy that pays; search without one"
        )


def _depth_if_near_all(contraction: Contraction, pairs: int) -> int:
    """Return within how many edges of the vertex with the most neighbors half of the others are; 0
    if that is more than in a random graph.

    ``pairs`` are the ``pairs_of_rest``: their number per edge is how many times as many vertices
    each level of a random graph has. So its depth is about the logarithm of the vertices by that
    base.
    """
    n = contraction.remaining.size
    edges = contraction.edges_of_rest()
    if pairs <= _SMALL or edges < 2 * _TREE * n:
        return 0
    lists = contraction.ahead
    depth, reached = half_depth(lists.begin, lists.size, lists.head, int(lists.size.argmax()))
    random_depth = math.log(n) / math.log(max(2, pairs / edges - 1))
    if reached > n // 4 and depth <= _NEAR * random_depth:
        return depth
    return 0
