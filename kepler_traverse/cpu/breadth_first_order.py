"""The order in which a queue visits the vertices of a matrix, as ``scipy.sparse.csgraph`` defines
it.
"""

from __future__ import annotations

import numpy as np

from .compiled import njit
from .csr_build import read_only

NO_VERTEX = -9999  # SciPy's predecessor of a vertex that has none


def breadth_first_order(matrices, source: int):
    """Visit vertices from a source, in the order in which they enter a queue.

    ``matrices`` are one or two of (indptr, indices): the neighbors of a vertex are those of the
    first, then those of the second. Indices of one vertex may be in any order and may repeat.
    Return the order, int32 of shape (n_reached,), and the predecessors, int32 of shape
    (n_vertices,), ``NO_VERTEX`` for the source and for vertices that are not reached.
    """
    (first, targets), *others = matrices
    second, more_targets = others[0] if others else (first[:1], targets[:0])
    n = first.size - 1
    order = np.empty(n, np.int32)
    predecessor = np.full(n, NO_VERTEX, np.int32)
    arrays = [
        read_only(np.ascontiguousarray(array)) for array in (first, targets, second, more_targets)
    ]
    reached = _visit(*arrays, bool(others), source, order, predecessor)
    return order[:reached], predecessor


@njit(cache=True)
def _visit(first, targets, second, more_targets, both, source, order, predecessor):
    predecessor[source] = source  # so that one comparison tells what is visited
    order[0] = source
    done = 0
    found = 1
    while done < found:
        u = order[done]
        done += 1
        for e in range(first[u], first[u + 1]):
            v = targets[e]
            if predecessor[v] == NO_VERTEX:
                order[found] = v
                predecessor[v] = u
                found += 1
        if both:
            for e in range(second[u], second[u + 1]):
                v = more_targets[e]
                if predecessor[v] == NO_VERTEX:
                    order[found] = v
                    predecessor[v] = u
                    found += 1
    predecessor[source] = NO_VERTEX
    return found
