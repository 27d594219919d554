"""Detect a negative cycle early, in the predecessors that Bellman-Ford writes.

While a negative cycle is relaxed, its vertices become predecessors of each other. Predecessors
written by racing threads can also form a cycle that is not negative, so the weights of every cycle
found are summed exactly. A reported cycle is therefore negative. None is missed, because relaxation
continues until a cycle is found, no distance changes, or V rounds have passed.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from .._arrays import namespace, to_host
from ..cpu.compiled import njit
from ..errors import NegativeCycleError, PrecisionError
from ..search.sparse import without_rounding


def search(graph, parent) -> None:
    """Raise NegativeCycleError, with vertex numbers, if the parents form a negative cycle. Return
    if they do not.

    ``parent`` is an array of shape (n,) on either device: the vertex that improved each distance
    last, -1 for none.
    """
    parent = to_host(parent)
    # ``cycles`` has the vertices of all cycles, one cycle after the other. ``starts`` has where
    # each cycle begins in it, and where the last cycle ends.
    cycles, starts = _cycles(parent)
    for begin, end in pairwise(starts):
        cycle = cycles[begin:end][::-1]  # found in the reverse direction of the edges
        weights = _weights_along(graph, cycle)
        if weights is not None and math.fsum(weights) < 0:
            raise NegativeCycleError([int(v) for v in cycle], math.fsum(weights))


def give_up(graph, parent) -> None:
    """Raise the error of a search that still improves distances after as many rounds as the graph
    has vertices.

    It is NegativeCycleError if ``parent``, as in ``search``, has a negative cycle, and else
    PrecisionError.
    """
    search(graph, parent)
    raise PrecisionError(
        f"distances still fall after {graph.n_vertices} rounds, though no cycle of exactly negative weight was found: "
        f"rounding in {graph.weights.dtype} makes a cycle of weight zero look negative; "
        f"{without_rounding(graph.weights.dtype)}"
    )


def _weights_along(graph, cycle) -> list[float] | None:
    """Return the weights of the edges of a cycle, or None if one of the edges does not exist.

    ``cycle`` has vertex numbers, NumPy, in the direction of the edges. The last vertex has an edge
    to the first.
    """
    xp = namespace(graph.offsets)
    vertices = xp.asarray(cycle)
    # Look at all edges of the vertices: ``place_of_edge`` is the place of the tail of each on the
    # cycle. Of each vertex, choose the edge to the next vertex of the cycle.
    begin = to_host(graph.offsets[vertices])
    end = to_host(graph.offsets[vertices + 1])
    place_of_edge = np.repeat(np.arange(cycle.size), end - begin)
    edges = xp.asarray(
        np.concatenate([np.arange(*bounds) for bounds in zip(begin, end, strict=True)])
    )
    on_cycle = to_host(graph.targets[edges]) == np.roll(cycle, -1)[place_of_edge]
    # A CSR has no parallel edges, so that each vertex has one edge to the next one, or none.
    if on_cycle.sum() != cycle.size:
        return None
    return to_host(graph.weights[edges])[on_cycle].astype(np.float64).tolist()


@njit(cache=True)
def _cycles(parent):
    """Return all cycles of a graph in which every vertex has at most one predecessor, in O(V), as
    two int64 arrays: ``cycles`` and ``starts``.

    ``parent`` has the predecessor of each vertex, negative for none. The vertices of the i-th
    cycle, each followed by its predecessor, are ``cycles[starts[i]:starts[i + 1]]``.
    """
    n = parent.size
    # Of each vertex, the walk that visited it: a walk is named by its first vertex plus 1. 0: none.
    walk = np.zeros(n, np.int64)
    cycles = np.empty(n, np.int64)
    starts = [0]
    size = 0
    for start in range(n):
        # Walk back until a vertex has no predecessor or was visited before.
        v = start
        while v >= 0 and walk[v] == 0:
            walk[v] = start + 1
            v = parent[v]

        # If this walk itself visited the vertex, it is on a cycle. If an earlier walk did, what
        # follows is known already.
        if v >= 0 and walk[v] == start + 1:
            u = v
            while True:
                cycles[size] = u
                size += 1
                u = parent[u]
                if u == v:
                    break
            starts.append(size)
    return cycles[:size], np.array(starts)
