"""Negative cycles through a closed vertex: paths that begin and end there, and are shorter than none.

The two numbers of a closed vertex hide such a cycle from the searches: it begins at the first number
and ends at the second. Only a search from the vertex itself finds it, as no path leads through.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from .._arrays import Array, to_host
from ..errors import NegativeCycleError, PrecisionError
from ..graph import Graph
from .sparse import without_rounding


def closed_sources(graph: Graph, sources: Iterable[int]) -> dict[int, int]:
    """Return, for those of some sources that are closed, the number where paths to them end, by the
    number where paths from them begin. No path leads through a closed vertex, which has these two
    numbers.

    A negative cycle that begins and ends at one of these is found by no search from elsewhere. In a
    graph without negative weights the result is empty. ``sources`` are vertex numbers.
    """
    if graph.closed is None or not graph.has_negative_weights:
        return {}
    # ``closed`` has two rows: the numbers where paths begin, and those where they end.
    end_of = dict(zip(*graph.closed.tolist(), strict=True))
    return {source: end_of[source] for source in sources if source in end_of}


def refuse_negative_return(graph: Graph, source: int, distance: Array) -> None:
    """Raise NegativeCycleError, with vertex numbers, if a source is closed and a path back to it
    has a negative length.

    If the length is negative by rounding alone, raise PrecisionError. ``distance``, of shape
    (n_vertices,), has the distances from the source.
    """
    for end in closed_sources(graph, [source]).values():
        if float(distance[end]) < 0:
            cycle, weights = _path(graph, source, end, to_host(distance))
            weight = math.fsum(weights)
            if weight < 0:
                raise NegativeCycleError(cycle, weight)
            raise PrecisionError(
                f"rounding in {distance.dtype} makes a cycle through a closed vertex look negative; "
                f"{without_rounding(distance.dtype)}"
            )


def _path(
    graph: Graph, source: int, end: int, distance: np.ndarray
) -> tuple[list[int], list[float]]:
    """Return the vertices of a shortest path from a source to ``end``, without ``end`` itself, and
    the weights of its edges, both in the order of the path.

    ``distance`` has the distances from the source, of shape (n_vertices,). The path is searched for
    along edges whose weight makes up the distance between their ends. There is one, since the
    search has reached ``end``.
    """
    host: Any = graph.derived.on_host
    # of each vertex that was found, the vertex before it and the weight of the edge from there
    predecessor_and_weight = {source: (source, 0.0)}
    stack = [source]
    while end not in predecessor_and_weight:
        u = stack.pop()
        for e in range(host.offsets[u], host.offsets[u + 1]):
            v = int(host.targets[e])
            weight = host.weights[e]
            if v not in predecessor_and_weight and distance[u] + weight == distance[v]:
                predecessor_and_weight[v] = u, float(weight)
                stack.append(v)

    # from the end back to the source, and then in reversed order
    vertices = []
    weights = []
    v = end
    while v != source:
        v, weight = predecessor_and_weight[v]
        vertices.append(v)
        weights.append(weight)
    return vertices[::-1], weights[::-1]
