"""An order of the vertices in which each edge leads forward, if the graph has no cycle."""

from __future__ import annotations

import numpy as np

from .compiled import njit
from .edges import Neighbors

# states of a vertex
_NEW = 0  # not seen yet
_OPEN = 1  # on the path from the root of the search to the vertex that it is at
_DONE = 2  # all that it leads to is done


def topological_order(graph) -> np.ndarray | None:
    """Return the vertices of a graph in host memory in an order in which each edge leads to a later
    vertex; None if there is a cycle.

    The result has shape (n_vertices,) and the type of the vertex numbers.
    """
    order = np.empty(graph.n_vertices, graph.targets.dtype)
    if _find_order(Neighbors.of(graph), order):
        return order
    return None


@njit(cache=True, nogil=True)
def _find_order(neighbors, order):
    """Search in depth from each vertex, and write the vertices to ``order`` in the reverse order of
    being done.

    A vertex is done after all that it leads to. Return whether there is an order: the search ends
    at the first cycle, an edge to a vertex of the path. The path is kept in arrays, since recursion
    would overflow the stack on a long one.
    """
    offsets = neighbors.offsets
    targets = neighbors.targets
    n = order.size
    state = np.zeros(n, np.uint8)  # ``_NEW``, ``_OPEN`` or ``_DONE`` of each vertex
    path = np.empty(n, targets.dtype)  # the open vertices, from the root on
    next_edge = np.empty(n, np.int64)  # of each vertex of the path, the edge to be followed next
    first_done = n  # the places of ``order`` from here on are written
    for root in range(n):
        if state[root] != _NEW:
            continue
        depth = 0
        path[0] = root
        next_edge[0] = offsets[root]
        state[root] = _OPEN

        while depth >= 0:
            u = path[depth]
            if next_edge[depth] == offsets[u + 1]:  # all its edges were followed
                state[u] = _DONE
                first_done -= 1
                order[first_done] = u
                depth -= 1
                continue

            v = targets[next_edge[depth]]
            next_edge[depth] += 1
            if state[v] == _OPEN:
                return False
            if state[v] == _NEW:
                state[v] = _OPEN
                depth += 1
                path[depth] = v
                next_edge[depth] = offsets[v]
    return True
