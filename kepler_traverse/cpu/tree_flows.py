"""What the vertices and edges of one source's paths carry: volumes at the targets, added up back to the source.

The paths are those of ``path_walk``: their union is a tree, whose edges follow from the distances alone. Each walk ends
where an earlier one has been. Walks are then added up in the reverse order, each from its target, so that all that joins a
vertex is there before the vertex hands it on. So each vertex of the tree is visited twice, however many targets lie beyond
it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from .exact_sums import add, split
from .opportunities import NO_DECAY, weight_at
from .path_walk import NO_EDGE, along_level, nearer_edge

_NOWHERE = -1


class Tree(NamedTuple):
    """Scratch of one thread, of shape (n_vertices,) each.

    Attributes
    ----------
    place : int32 array
        The entry of each vertex of the tree; -1 before and after.
    vertex, edge, parent : integer arrays
        Of each entry: its vertex, the edge that leads to it, and the entry that this edge comes from.
    first : int64 array
        Where each walk begins.
    low, high : uint64 and int64 arrays
        What each entry carries: all 0, before and after.
    """

    place: np.ndarray
    vertex: np.ndarray
    edge: np.ndarray
    parent: np.ndarray
    first: np.ndarray
    low: np.ndarray
    high: np.ndarray


def new_tree(n: int) -> Tree:
    place, vertex, parent = np.empty((3, n), np.int32)
    place.fill(_NOWHERE)
    edge, first = np.empty((2, n), np.int64)
    return Tree(place, vertex, edge, parent, first, np.zeros(n, np.uint64), np.zeros(n, np.int64))


@njit(cache=True, nogil=True)
def carry(source, targets, volumes, limit, walks, tree, of_edges, low, high, lost):
    """Add to ``low`` and ``high`` what each edge, or each vertex, of the paths to some targets carries.

    Parameters
    ----------
    source : int
    targets : int64 array of shape (k,)
    volumes : tuple of uint64 and int64 arrays of shape (k,)
        What each target takes, as ``exact_sums`` has it.
    limit : scalar of the type of the distances
        The largest distance of a target that is served; an unreached vertex is at -1 or beyond it.
    walks : path_walk.Walks
    tree : Tree
    of_edges : bool
        Whether cells are the positions of edges in the reversed graph, and not vertices.
    low, high : uint64 and int64 arrays
    lost : array of bool of shape (k,), output
        Which targets are not reached.

    Returns
    -------
    int
        A vertex whose distance no edge explains, or ``NO_EDGE``.
    """
    offsets, sources, weights, unit = walks.offsets, walks.sources, walks.weights, walks.unit
    distance, above, path = walks.distance, walks.above, walks.path
    place, vertex, edge, parent, first, own_low, own_high = tree
    place[source], vertex[0], parent[0], edge[0] = 0, source, _NOWHERE, NO_EDGE
    count, n_walks = 1, 0
    wrong = np.int64(NO_EDGE)
    for i in range(targets.size):
        v = np.int64(targets[i])
        far = distance[v]
        lost[i] = not 0 <= far <= limit
        if lost[i] or (volumes[0][i] == 0 and volumes[1][i] == 0):
            continue
        if place[v] == _NOWHERE:
            first[n_walks] = count
            n_walks += 1
            while place[v] == _NOWHERE:
                own = distance[v]
                e = nearer_edge(v, own, offsets, sources, weights, unit, distance, above)
                place[v], vertex[count], edge[count], parent[count] = count, v, e, count + 1
                count += 1
                if e != NO_EDGE:
                    v = np.int64(sources[e])
                    continue
                # Edges of length zero: each step of the way is to the smallest in-neighbor on a shortest one.
                size = along_level(v, source, own, np.int64(0), walks)
                if size == NO_EDGE:
                    wrong = v
                    break
                for j in range(size):
                    u = path[j]
                    e = offsets[v]
                    while sources[e] != u:
                        e += 1
                    edge[count - 1] = e
                    v = np.int64(u)
                    if place[v] != _NOWHERE or j == size - 1:
                        break
                    place[v], vertex[count], parent[count] = count, v, count + 1
                    count += 1
            if wrong != NO_EDGE:
                break
            parent[count - 1] = place[v]
        add(own_low, own_high, place[targets[i]], volumes[0][i], volumes[1][i])
    for k in range(n_walks - 1, -1, -1):
        end = count if k == n_walks - 1 else first[k + 1]
        for entry in range(first[k], end):
            x, y, p = own_low[entry], own_high[entry], parent[entry]
            own_low[entry], own_high[entry] = 0, 0
            place[vertex[entry]] = _NOWHERE
            if wrong != NO_EDGE:
                continue
            cell = edge[entry] if of_edges else np.int64(vertex[entry])
            add(low, high, cell, x, y)
            add(own_low, own_high, p, x, y)
    if not of_edges and wrong == NO_EDGE:
        add(low, high, source, own_low[0], own_high[0])
    place[source], own_low[0], own_high[0] = _NOWHERE, 0, 0
    return wrong


@njit(cache=True, nogil=True)
def volumes_at(distance, targets, amounts, factor, limit, decay, parameter, exponent):
    """Return what each target takes: its amount times a factor of the source times the decay of its distance.

    Amounts are int64 for sums of integers, and else float64. Without a path no volume decays.
    """
    low, high = np.zeros(targets.size, np.uint64), np.zeros(targets.size, np.int64)
    for i in range(targets.size):
        volume = amounts[i] * factor
        if exponent == 0:
            low[i] = np.uint64(np.int64(volume))
            continue
        far = distance[targets[i]]
        if decay != NO_DECAY and 0 <= far <= limit:
            volume *= weight_at(np.float64(far), decay, parameter)
        low[i], high[i] = split(np.float64(volume), exponent)
    return low, high
