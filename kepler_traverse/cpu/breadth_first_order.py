"""The order in which a queue visits the vertices of a matrix, as ``scipy.sparse.csgraph`` defines
it.
"""

from __future__ import annotations

import numpy as np

from .compiled import njit
from .csr_build import read_only
from .edges import Neighbors

NO_VERTEX = -9999  # SciPy's predecessor of a vertex that has none


def breadth_first_order(matrices, source: int):
    """Visit vertices from a source, in the order in which they enter a queue.

    ``matrices`` are one or two of (indptr, indices): the neighbors of a vertex are those of the
    first, then those of the second. Indices of one vertex may be in any order and may repeat.
    Return the order, int32 of shape (n_reached,), and the predecessors, int32 of shape
    (n_vertices,), ``NO_VERTEX`` for the source and for vertices that are not reached.
    """
    parts = [
        Neighbors(*(read_only(np.ascontiguousarray(array)) for array in part)) for part in matrices
    ]
    first = parts[0]
    second = parts[-1]
    n = first.offsets.size - 1
    order = np.empty(n, np.int32)
    predecessor = np.full(n, NO_VERTEX, np.int32)
    reached = _visit(first, second, len(parts) > 1, source, order, predecessor)
    return order[:reached], predecessor


@njit(cache=True)
def _visit(first, second, both, source, order, predecessor):
    """Write the order and the predecessors, which are all ``NO_VERTEX`` before; return how many
    vertices are reached. ``second`` has edges of its own if ``both``.
    """
    offsets = first.offsets
    targets = first.targets
    more_offsets = second.offsets
    more_targets = second.targets
    predecessor[source] = source  # so that one comparison tells what is visited
    order[0] = source
    done = 0
    found = 1
    while done < found:
        u = order[done]
        done += 1
        for e in range(offsets[u], offsets[u + 1]):
            v = targets[e]
            if predecessor[v] == NO_VERTEX:
                order[found] = v
                predecessor[v] = u
                found += 1
        if both:
            for e in range(more_offsets[u], more_offsets[u + 1]):
                v = more_targets[e]
                if predecessor[v] == NO_VERTEX:
                    order[found] = v
                    predecessor[v] = u
                    found += 1
    predecessor[source] = NO_VERTEX
    return found
