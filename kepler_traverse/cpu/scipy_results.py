"""Distances and predecessors in SciPy's form, one thread per source."""

from __future__ import annotations

import numpy as np

from . import threads
from .atomics import atomic_add
from .breadth_first_order import NO_VERTEX
from .compiled import njit
from .edges import Edges

_NO_WEIGHTS = np.zeros(0, np.float32)


def write_distances(group, unreached, rows, distances) -> None:
    """Write the distances of a group of sources as float64, with inf where there is no path.

    ``group``, of shape (k, n_vertices), has any type of distances, and ``unreached`` in it means no
    path. ``rows`` (k,) has, for each source, the number of its row in ``distances``, a float64
    matrix with a column per vertex, which is written.
    """
    threads.run(_write_distances, rows.size, group, unreached, rows, distances)


@njit(cache=True, nogil=True)
def _write_distances(next_row, n_rows, group, unreached, rows, distances):
    """Copy the rows of a group to the rows ``rows`` of ``distances``, with inf in place of
    ``unreached``. Threads take rows from the counter ``next_row``, until it is ``n_rows``.
    """
    i = atomic_add(next_row, 0, 1)
    while i < n_rows:
        row = distances[rows[i]]
        values = group[i]
        for v in range(row.size):
            value = values[v]
            row[v] = np.inf if value == unreached else value
        i = atomic_add(next_row, 0, 1)


def write_predecessors(offsets, targets, weights, sources, rows, distances, predecessors) -> None:
    """Write the predecessors that Dijkstra's algorithm finds first: of all in-neighbors that
    explain a distance, the in-neighbor nearest to the source, and of equally near ones the
    smallest.

    Parameters
    ----------
    offsets, targets, weights : arrays
        The graph in compressed sparse rows. No weight is negative. ``weights`` may be None: edges
        have length 1 then.
    sources : integer array of shape (k,)
        Vertex numbers.
    rows : integer array of shape (k,)
        The row of each source in both matrices.
    distances : float64 matrix, a column per vertex
        Each distance is the smallest sum, in float64, of the distance of a vertex and the weight of
        the edge from it; inf where there is no path.
    predecessors : int32 matrix of the same shape
        Written: the vertex before each vertex, ``NO_VERTEX`` for the source and where there is no
        path.
    """
    edges = Edges(offsets, targets, _NO_WEIGHTS if weights is None else weights)
    threads.run(_write_predecessors, rows.size, edges, sources, rows, distances, predecessors)


@njit(cache=True, nogil=True)
def _write_predecessors(next_row, n_rows, edges, sources, rows, distances, predecessors):
    """Write the predecessors of one source after another, as ``write_predecessors`` says.

    ``edges`` are ``Edges``, with weights of shape (0,) if edges have length 1. ``next_row`` is a
    counter from which each thread takes its next source, of ``n_rows`` in all.
    """
    offsets = edges.offsets
    targets = edges.targets
    weights = edges.weights
    queue = np.empty(0, np.int32)  # allocated when it is needed first
    i = atomic_add(next_row, 0, 1)
    while i < n_rows:
        source = sources[i]
        distance = distances[rows[i]]
        predecessor = predecessors[rows[i]]
        predecessor[:] = NO_VERTEX

        # The nearest in-neighbor that explains a distance; the first of equally near ones is the
        # smallest.
        n_reached = 0
        n_found = 0
        for u in range(distance.size):
            d = distance[u]
            if d == np.inf:
                continue
            n_reached += 1
            for e in range(offsets[u], offsets[u + 1]):
                v = targets[e]
                weight = np.float64(weights[e]) if weights.size else 1.0
                if d + weight == distance[v] and d < distance[v] < np.inf:
                    if predecessor[v] == NO_VERTEX:
                        predecessor[v] = u
                        n_found += 1
                    elif d < distance[predecessor[v]]:
                        predecessor[v] = u

        # The vertices that are left, but the source, have no nearer in-neighbor: edges that add
        # nothing lead to them. A vertex gets its predecessor only after this predecessor has got
        # its own, so that no cycle of such edges becomes a cycle of predecessors.
        if n_found + 1 < n_reached:
            if queue.size == 0:
                queue = np.empty(distance.size, np.int32)
            # All that have a predecessor, and the source, wait in the queue, up to ``last``.
            last = 0
            for u in range(distance.size):
                if u == source or predecessor[u] != NO_VERTEX:
                    queue[last] = u
                    last += 1

            first = 0
            while first < last:
                u = queue[first]
                first += 1
                for e in range(offsets[u], offsets[u + 1]):
                    v = targets[e]
                    weight = np.float64(weights[e]) if weights.size else 1.0
                    if (
                        v != source
                        and predecessor[v] == NO_VERTEX
                        and distance[u] + weight == distance[v] < np.inf
                    ):
                        predecessor[v] = u
                        queue[last] = v
                        last += 1
        i = atomic_add(next_row, 0, 1)
