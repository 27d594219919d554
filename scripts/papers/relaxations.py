"""Relaxations of textbook algorithms, counted apart from the library: figure 9 of H-BF compares them."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def count_with_queue(offsets, targets, weights, source, most):
    """Return how many edges Bellman-Ford's algorithm with a queue relaxes from a source; -1 beyond ``most``.

    Sedgewick, Wayne. Algorithms. 2011: a vertex that improves is queued, unless it waits already.
    """
    n = offsets.size - 1
    distance = np.full(n, np.inf)
    distance[source] = 0.0
    queue = np.empty(n, np.int64)
    waits = np.zeros(n, np.bool_)
    queue[0] = source
    waits[source] = True
    first = 0
    size = 1
    relaxed = 0
    while size:
        u = queue[first]
        first = (first + 1) % n
        size -= 1
        waits[u] = False
        relaxed += offsets[u + 1] - offsets[u]
        if relaxed > most:
            return -1
        for e in range(offsets[u], offsets[u + 1]):
            v = targets[e]
            through = distance[u] + weights[e]
            if through < distance[v]:
                distance[v] = through
                if not waits[v]:
                    waits[v] = True
                    queue[(first + size) % n] = v
                    size += 1
    return relaxed


@njit(cache=True)
def count_without_queue(offsets, targets, weights, source, most):
    """Return how many edges Bellman-Ford's algorithm relaxes if each pass relaxes all; -1 beyond ``most``.

    It ends after a pass that improves nothing, where the published listing makes as many passes as there are vertices.
    """
    n = offsets.size - 1
    distance = np.full(n, np.inf)
    distance[source] = 0.0
    relaxed = 0
    improves = True
    while improves:
        improves = False
        relaxed += targets.size
        if relaxed > most:
            return -1
        for u in range(n):
            if distance[u] == np.inf:
                continue
            for e in range(offsets[u], offsets[u + 1]):
                through = distance[u] + weights[e]
                if through < distance[targets[e]]:
                    distance[targets[e]] = through
                    improves = True
    return relaxed
