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


def closed_sources(graph: Graph, sources: Iterable[int]) -> dict[int, int]:
    """Return where paths end at those of some sources that a negative cycle may lead back to."""
    if graph.closed is None or not graph.has_negative_weights:
        return {}
    last_of = dict(zip(*graph.closed.tolist(), strict=True))
    return {source: last_of[source] for source in sources if source in last_of}


def refuse_negative_return(graph: Graph, source: int, distance: Array) -> None:
    """Raise NegativeCycleError, with vertex numbers, if a source is closed and a path back to it is
    shorter than none; PrecisionError if it is so by rounding alone.

    ``distance`` has all vertices.
    """
    for last in closed_sources(graph, [source]).values():
        if float(distance[last]) < 0:
            cycle, weights = _path(graph, source, last, to_host(distance))
            weight = math.fsum(weights)
            if weight < 0:
                raise NegativeCycleError(cycle, weight)
            raise PrecisionError(
                f"rounding in {distance.dtype} makes a cycle through a closed vertex look negative; "
                "build the graph with weight_type='float64', or scale the weights to integers"
            )


def _path(
    graph: Graph, source: int, last: int, distance: np.ndarray
) -> tuple[list[int], list[float]]:
    """Return the vertices of a shortest path without its end, and the weights of its edges."""
    host: Any = graph.derived.on_host
    before = {source: (source, 0.0)}
    reached = [source]
    while last not in before:
        u = reached.pop()
        for e in range(host.offsets[u], host.offsets[u + 1]):
            v = int(host.targets[e])
            weight = host.weights[e]
            if v not in before and distance[u] + weight == distance[v]:
                before[v] = u, float(weight)
                reached.append(v)
    vertices = []
    weights = []
    v = last
    while v != source:
        v, weight = before[v]
        vertices.append(v)
        weights.append(weight)
    return vertices[::-1], weights[::-1]
