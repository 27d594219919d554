"""Build the hierarchy of a graph, or say why it has none that pays."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from .._arrays import EXACT_BELOW, to_host
from ..cpu import threads
from ..errors import HierarchyError, is_for_library
from .arrays import Hierarchy, hierarchy_from
from .contraction import MAX_SUM, Contraction, half_depth
from .estimate import round_seconds

_WEIGHTS_AT_ONCE = 1 << 22  # weights that are looked at together, so that copies of them are small
_SPARE_BITS = 4  # float weights have this many bits less than sums, so that few sums round
# The rest is the graph of the vertices that are not contracted yet. A pair is an edge to and an
# edge from the same vertex of the rest; the time of a round is proportional to their number.
# Contraction is given up if there are more than this many pairs per vertex of the whole graph. Road
# networks have at most 8, and lattices 15.
MAX_PAIRS = 64
# A number of vertices, and of pairs: a smaller graph may have as many pairs as one of this size,
# since fewer pairs take no noticeable time.
_SMALL = 1 << 18
# Contraction is given up if the pairs become this many times as many as at first. On graphs where
# it pays they become fewer.
_GROWTH = 1.5
# A graph is like a random one if its depth is at most this many times that of a random graph with
# as many pairs. Meshes have 6 times that depth, road networks 13.
_NEAR = 2.0
_TREE = 1.1  # edges per vertex up to which a graph has too few cycles for its depth to matter


def why_not(graph: Any, metric: str) -> str | None:
    """Return the reason, as text for an error, why a graph cannot have a hierarchy of a metric,
    "weights" or "hops"; None if it may have one.

    Only properties of the graph are looked at: whether a hierarchy pays is seen while it is built.
    The weights are read at most twice.
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
        how = "scale and round them to integers"
        if is_for_library():
            how = "integer_weights(graph) counts them in a unit, as integers"
        return f"the weights are floats whose sums depend on the order of addition; {how}"
    return None


def find_unit(weights: np.ndarray) -> float | None:
    """Return the largest power of two that all weights (float32 or float64, at least 0) are
    multiples of; None if their sums would round in the type of the weights.

    Zero is a multiple of any number. If all weights are zero, the unit is 1.
    """
    unit = np.inf
    heaviest = 0.0
    for begin in range(0, weights.size, _WEIGHTS_AT_ONCE):
        part = weights[begin : begin + _WEIGHTS_AT_ONCE]
        part = part[part != 0].astype(np.float64)
        if part.size:
            # The lowest bit that is set in a float is the largest power of two that the float is a
            # multiple of. As an integer of 53 bits, ``digits & -digits`` is the lowest bit: of 12,
            # which is 1100 in bits, it is 4.
            mantissa, exponent = np.frexp(part)
            digits = (mantissa * 2.0**53).astype(np.int64)
            lowest_bit = (digits & -digits).astype(np.float64)
            unit = min(unit, float(np.ldexp(lowest_bit, exponent - 53).min()))
            heaviest = max(heaviest, float(part.max()))
    if not heaviest:
        return 1.0
    # A tiny unit could become 0 in a product with a float32. The largest weight, in units, must
    # leave spare bits for sums below ``EXACT_BELOW``, up to which the type holds all integers.
    if unit < 2.0**-100 or heaviest / unit >= EXACT_BELOW[weights.dtype] / 2**_SPARE_BITS:
        return None
    return unit


def build_hierarchy(graph: Any, metric: str = "weights") -> Hierarchy:
    """Return the contraction hierarchy of a graph by a metric, "weights" or "hops".

    It is built on the threads of the CPU, and does not depend on their number. HierarchyError says
    why if the graph can have no such hierarchy, or none that pays.
    """
    reason = why_not(graph, metric)
    if reason:
        raise HierarchyError(f"no hierarchy: {reason}")

    # Contraction has many small steps, for which a CPU is the better device.
    graph = graph.to("cpu")
    start_time = time.perf_counter()
    unit = unit_of_lengths(graph, metric)
    lengths = edges_in_units(graph, metric, unit)
    # Of an undirected graph the edges in both directions are the same, for which None stands.
    backward = None
    if graph.directed:
        reverse = graph.reverse
        backward = (reverse.offsets, reverse.targets, edges_in_units(reverse, metric, unit))
    contraction = Contraction(graph.offsets, graph.targets, lengths, backward)

    # ``run`` calls the function before each round; the error that it raises ends the contraction.
    # ``hierarchy_from`` returns None if a sum of weights may be too large.
    pairs = contraction.pairs_of_rest()
    contraction.run(lambda: _refuse_dense_rest(contraction, graph.n_vertices, pairs))
    hierarchy = hierarchy_from(contraction, unit, time.perf_counter() - start_time)
    if hierarchy is None:
        raise HierarchyError("no hierarchy: a sum of weights may reach 2^61; take smaller weights")
    return hierarchy


def unit_of_lengths(graph: Any, metric: str) -> Any:
    """Return a number that all lengths of edges are multiples of, by a metric, "weights" or "hops":
    1 for hops and integers, else the largest such power of two.

    The graph must be one that ``why_not`` accepts.
    """
    if metric == "hops" or graph.integer_weights:
        return 1.0
    return find_unit(graph.weights)


def edges_in_units(graph: Any, metric: str, unit: float) -> np.ndarray:
    """Return the length of each stored edge in multiples of ``unit``, int64 of shape (n_edges,): 1
    by the metric "hops", else the weight.
    """
    if metric == "hops":
        return np.ones(graph.n_edges, np.int64)
    if unit == 1.0:
        weights = graph.weights
    else:
        weights = graph.weights.astype(np.float64) / unit
    return weights.astype(np.int64)


def _refuse_dense_rest(contraction: Contraction, n_vertices: int, first_pairs: int) -> None:
    """Raise HierarchyError if contracting the vertices that are left is likely to take longer than
    searches without a hierarchy. It is called before each round.

    ``contraction`` has contracted some vertices, or none. ``n_vertices`` is that of the whole
    graph, and ``first_pairs`` its number of pairs of edges that meet at a vertex, as
    ``Contraction.pairs_of_rest`` returned it before the first round.
    """
    n_left = contraction.remaining.size
    pairs = contraction.pairs_of_rest()
    # Two limits: the growth since the first round, and the pairs per vertex. ``_SMALL`` spares
    # small graphs from both.
    if pairs > max(_GROWTH * first_pairs, _SMALL) or pairs > MAX_PAIRS * max(n_vertices, _SMALL):
        degree = contraction.edges_of_rest() / n_left
        seconds = round_seconds(pairs, threads.count())
        raise HierarchyError(
            f"no hierarchy: with {n_left:,} of {n_vertices:,} vertices left, each has {degree:,.0f} "
            "neighbors on average and hubs have far more, and contracting more vertices adds more edges than it removes. "
            f"The next round alone would take about {seconds:,.2g} s, and later rounds longer. "
            "Networks with hubs have no hierarchy that pays; search without one"
        )

    # Before the first round only: shortcuts would make the depth smaller. 0 refuses nothing.
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
    """Return the number of edges within which half of the vertices that the vertex with most
    neighbors reaches are from this vertex, if the graph is like a random one; else 0.

    It is not like a random graph if this number is clearly larger than in a random graph, or if the
    vertex reaches a quarter of all vertices or fewer. ``pairs`` is the ``pairs_of_rest``. In a
    random graph, pairs per edge, less 1, is the factor by which each level of a breadth-first
    search has more vertices than the level before. So its depth is about the logarithm of the
    number of vertices to the base of this factor. Small graphs and those with few cycles are never
    taken for random ones.
    """
    n = contraction.remaining.size
    edges = contraction.edges_of_rest()
    if pairs <= _SMALL or edges < 2 * _TREE * n:  # an undirected edge counts twice in ``edges``
        return 0
    lists = contraction.ahead
    depth, reached = half_depth(lists.begin, lists.size, lists.head, int(lists.size.argmax()))
    # The factor is 2 at least: its logarithm, a divisor, must be well above 0.
    random_depth = math.log(n) / math.log(max(2, pairs / edges - 1))
    if reached > n // 4 and depth <= _NEAR * random_depth:
        return depth
    return 0
