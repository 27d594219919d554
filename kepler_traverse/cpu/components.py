"""Strongly connected components, and the largest of them."""

from __future__ import annotations

import numpy as np

from .compiled import njit


@njit(cache=True, nogil=True)
def strong_components(offsets, targets):
    """Number the strongly connected components of a graph from 0 on, in the type of ``targets``, by
    one depth-first search.

    Tarjan's algorithm as Pearce has it ("A space-efficient algorithm for finding strongly connected
    components", 2016).
    """
    n = offsets.size - 1
    labels = np.full(n, -1, targets.dtype)
    # the earliest visit that a vertex leads back to; 0 before its own visit
    low = np.zeros(n, np.int64)
    is_root = np.ones(n, np.uint8)  # of its component, as far as is known
    next_edge = offsets[:-1].copy()  # of each vertex, the next one to look at
    path = np.empty(n, targets.dtype)
    waiting = np.empty(n, targets.dtype)  # vertices that are done, and whose component is not
    visits = n_components = n_waiting = 0
    for start in range(n):
        if low[start]:
            continue
        visits += 1
        low[start] = visits
        path[0] = start
        depth = 0
        while depth >= 0:
            # Look at the next edge of the last vertex of the path, if there is one.
            v = path[depth]
            if next_edge[v] < offsets[v + 1]:
                u = targets[next_edge[v]]
                if low[u] == 0:
                    visits += 1
                    low[u] = visits
                    depth += 1
                    path[depth] = u
                    continue
                # A neighbor visited from here is looked at again, after its own edges.
                next_edge[v] += 1
                if labels[u] < 0 and low[u] < low[v]:
                    low[v] = low[u]
                    is_root[v] = 0
                continue

            # The vertex is done. A root takes what waits and leads back to it as its component.
            depth -= 1
            if not is_root[v]:
                waiting[n_waiting] = v
                n_waiting += 1
                continue
            while n_waiting and low[waiting[n_waiting - 1]] >= low[v]:
                n_waiting -= 1
                labels[waiting[n_waiting]] = n_components
            labels[v] = n_components
            n_components += 1
    return labels


def ranked_components(offsets: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the component of each vertex, int64, numbered by falling size and then by the smallest
    vertex.
    """
    labels = strong_components(offsets, targets)
    _, first_vertex, component, sizes = np.unique(
        labels, return_index=True, return_inverse=True, return_counts=True
    )
    rank = np.empty(sizes.size, np.int64)
    rank[np.lexsort((first_vertex, -sizes))] = np.arange(sizes.size)
    return rank[component]


def find_component(
    offsets: np.ndarray, targets: np.ndarray, vertex: int | None = None
) -> np.ndarray:
    """Return the vertex numbers of the strongly connected component of a vertex, ascending.

    Without a vertex it is the largest, and of equally large ones that with the smallest vertex.
    """
    labels = strong_components(offsets, targets)
    if vertex is None:
        sizes = np.bincount(labels)
        vertex = int(np.argmax(sizes[labels]))
    return np.flatnonzero(labels == labels[vertex])
