"""Strongly connected components, and the largest of them."""

from __future__ import annotations

import numpy as np

from .compiled import njit


@njit(cache=True, nogil=True)
def strong_components(offsets, targets):
    """Return the number of the strongly connected component of each vertex, of shape (n_vertices,)
    and the type of ``targets``, by one depth-first search.

    Components are numbered from 0 on, each after those that it leads to. Tarjan's algorithm as
    Pearce has it ("A space-efficient algorithm for finding strongly connected components", 2016).
    """
    n = offsets.size - 1
    labels = np.full(n, -1, targets.dtype)  # the component of each vertex; -1 until it is complete
    # the number of the earliest visit that a vertex leads back to, from 1; 0 before its own visit
    low = np.zeros(n, np.int64)
    # 1 if, as far as is known, a vertex is the root of its component: the first that was visited
    is_root = np.ones(n, np.uint8)
    next_edge = offsets[:-1].copy()  # for each vertex, the edge to look at next
    path = np.empty(n, targets.dtype)  # from ``start`` to the vertex that the search is at
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
                # The edge to a new vertex is looked at again when that vertex is done, since it was
                # not moved past above. Vertices whose component is complete do not lead back.
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
    """Return the number of the strongly connected component of each vertex, int64 of shape
    (n_vertices,). Component 0 is the largest; of equally large ones that with the smaller vertex
    comes first. ``offsets`` and ``targets`` are those of the CSR.
    """
    labels = strong_components(offsets, targets)
    _, first_vertex, component, sizes = np.unique(
        labels, return_index=True, return_inverse=True, return_counts=True
    )
    # The new number of each component: its place by falling size and then by its first vertex.
    rank = np.empty(sizes.size, np.int64)
    rank[np.lexsort((first_vertex, -sizes))] = np.arange(sizes.size)
    return rank[component]


def find_component(
    offsets: np.ndarray, targets: np.ndarray, vertex: int | None = None
) -> np.ndarray:
    """Return the vertex numbers of the strongly connected component of ``vertex``, ascending.

    If ``vertex`` is None, take the largest component, and of equally large ones the component with
    the smallest vertex. ``offsets`` and ``targets`` are those of the CSR.
    """
    labels = strong_components(offsets, targets)
    if vertex is None:
        # ``argmax`` returns the first, so the smallest, vertex of a largest component.
        sizes = np.bincount(labels)
        vertex = int(np.argmax(sizes[labels]))
    return np.flatnonzero(labels == labels[vertex])
