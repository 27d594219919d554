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
    """Return the vertices reached from a source, in the order in which they enter a queue, and
    their predecessors.

    ``matrices`` are one or two of (indptr, indices): the neighbors of a vertex are those of the
    first, then those of the second. Indices of one vertex may be in any order and may repeat.
    The order is int32 of shape (n_reached,). The predecessors are int32 of shape (n_vertices,),
    ``NO_VERTEX`` for the source and for vertices that are not reached.
    """
    # Numba compiles a function for each kind of array: these are all contiguous and read-only.
    neighbors = []
    for indptr, indices in matrices:
        offsets = read_only(np.ascontiguousarray(indptr))
        targets = read_only(np.ascontiguousarray(indices))
        neighbors.append(Neighbors(offsets, targets))
    first = neighbors[0]
    second = neighbors[-1]
    n = first.offsets.size - 1
    order = np.empty(n, np.int32)
    predecessor = np.full(n, NO_VERTEX, np.int32)
    n_reached = _visit(first, second, len(neighbors) > 1, source, order, predecessor)
    return order[:n_reached], predecessor


@njit(cache=True)
def _visit(first, second, has_second, source, order, predecessor):
    """Write the order and the predecessors, which are all ``NO_VERTEX`` before. Return how many
    vertices are reached.

    ``first`` and ``second`` are ``Neighbors``; those of ``second`` are visited after those of
    ``first`` if ``has_second``. Otherwise ``second`` is ``first`` again, so that the function is
    compiled once for both cases.
    """
    offsets = first.offsets
    targets = first.targets
    more_offsets = second.offsets
    more_targets = second.targets
    predecessor[source] = source  # so that one comparison tells what is visited
    order[0] = source

    head = 0
    tail = 1
    while head < tail:
        u = order[head]
        head += 1
        for e in range(offsets[u], offsets[u + 1]):
            v = targets[e]
            if predecessor[v] == NO_VERTEX:
                order[tail] = v
                predecessor[v] = u
                tail += 1
        if has_second:
            for e in range(more_offsets[u], more_offsets[u + 1]):
                v = more_targets[e]
                if predecessor[v] == NO_VERTEX:
                    order[tail] = v
                    predecessor[v] = u
                    tail += 1

    predecessor[source] = NO_VERTEX
    return tail
