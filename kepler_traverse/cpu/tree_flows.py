"""What the vertices and edges of one source's paths carry: volumes at the targets, added up back to
the source.

The paths are those of ``path_walk``: their union is a tree, whose edges follow from the distances
alone. A queue begins with the targets. Each vertex of it finds its edge of the tree, and puts the
vertex before it into the queue unless it is there. So each is visited once, however many targets
lie beyond it, and what the next ones read is prefetched while one is looked at. Then each vertex
hands on what it carries when all that joins it is there. Where paths must use one of some edges,
those of the tree that do are marked before that, and the others carry nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .compiled import njit
from .exact_sums import add, split
from .opportunities import NO_DECAY, weight_at
from .path_walk import NO_EDGE, along_level, nearer_edge
from .simd_sums import prefetch_entry

_NOWHERE = -1
_UNKNOWN = -2  # an edge that is not found yet
EDGES, VERTICES, PAIRS = range(3)  # what carries the loads, in the order of ``kinds.loads.CELLS``
_UNMARKED, _USES, _USES_NONE = range(3)
# entries before one is looked at, what it needs is prefetched
_OFFSETS = 24
_EDGES = 16
_DISTANCES = 8
_NEAR = 3  # in-neighbors whose distances are prefetched


class Served(NamedTuple):
    """The targets of one source, of shape (k,), and what they take."""

    vertices: np.ndarray  # int64
    # low, high: uint64 and int64: what each takes, as ``exact_sums`` has it
    low: np.ndarray
    high: np.ndarray
    # of the type of the distances: the largest one that is served; an unreached vertex is at -1 or
    # beyond it
    limit: Any
    # lost, sent: of bool, output: which are not reached, and which take something on a path that
    # counts
    lost: np.ndarray
    sent: np.ndarray


class Decay(NamedTuple):
    """How amounts become volumes."""

    limit: Any  # no volume decays beyond this distance
    # kind, parameters: as ``opportunities.weight_at`` takes them
    kind: int
    parameters: tuple[float, float]
    exponent: int  # of the unit of the volumes; 0 for integers


class Tree(NamedTuple):
    """Scratch of one thread, of shape (n_vertices,) each."""

    place: np.ndarray  # int32: the entry of each vertex of the tree; -1 before and after
    # vertex, edge, parent: integers: of each entry its vertex, the edge that leads to it, and the
    # entry that this edge comes from
    vertex: np.ndarray
    edge: np.ndarray
    parent: np.ndarray
    # int32: how many entries have yet to hand on to each; all 0, before and after
    waits: np.ndarray
    # low, high: uint64 and int64: what each entry carries; all 0, before and after
    low: np.ndarray
    high: np.ndarray
    # uint8: whether the path to each entry uses a named edge; all unmarked, before and after
    mark: np.ndarray


def new_tree(n: int) -> Tree:
    place, vertex, parent = np.empty((3, n), np.int32)
    place.fill(_NOWHERE)
    waits, low, high, mark = (
        np.zeros(n, kind) for kind in (np.int32, np.uint64, np.int64, np.uint8)
    )
    return Tree(place, vertex, np.empty(n, np.int64), parent, waits, low, high, mark)


@njit(cache=True, nogil=True)
def _mark(count, named, tree):
    """Mark which entries have a named edge on their paths: up to one that is marked or has one, and
    down again.
    """
    edge = tree.edge
    parent = tree.parent
    mark = tree.mark
    mark[0] = _USES_NONE  # the source
    for first in range(1, count):
        i = np.int64(first)
        while mark[i] == _UNMARKED and not named[edge[i]]:
            i = np.int64(parent[i])
        last = i
        use = mark[i] if mark[i] != _UNMARKED else np.uint8(_USES)
        i = np.int64(first)
        while mark[i] == _UNMARKED:
            mark[i] = use
            if i == last:
                break
            i = np.int64(parent[i])


@njit(cache=True, nogil=True)
def carry(source, served, walks, tree, named, of, sums):
    """Add to the sums what each edge, or each vertex, of the paths to some targets
    carries.

    Parameters
    ----------
    source : int
    served : Served
    walks : path_walk.Walks
    tree : Tree
    named : uint8 array
        Not 0 at the edges of which a path must use one, by their positions in the reversed graph;
        empty if all paths count.
    of : {EDGES, VERTICES, PAIRS}
        Whether cells are positions of edges in the reversed graph, or vertices. Of pairs nothing is
        added.
    sums : tuple of uint64 and int64 arrays

    Returns
    -------
    int
        A vertex whose distance no edge explains, or ``NO_EDGE``.
    """
    # One function: as several, by its steps, it took 1.12 to 1.3 times as long.
    offsets = walks.offsets
    sources = walks.sources
    weights = walks.weights
    distance = walks.distance
    path = walks.path
    targets = served.vertices
    taken_low = served.low
    taken_high = served.high
    limit = served.limit
    lost = served.lost
    sent = served.sent
    place = tree.place
    vertex = tree.vertex
    edge = tree.edge
    parent = tree.parent
    waits = tree.waits
    own_low = tree.low
    own_high = tree.high
    mark = tree.mark
    low, high = sums
    place[source] = 0
    vertex[0] = source
    edge[0] = NO_EDGE
    count = np.int64(1)
    for i in range(targets.size):
        v = np.int64(targets[i])
        lost[i] = not 0 <= distance[v] <= limit
        sent[i] = not lost[i] and not (taken_low[i] == 0 and taken_high[i] == 0)
        if not sent[i]:
            continue
        if place[v] == _NOWHERE:
            place[v] = count
            vertex[count] = v
            edge[count] = _UNKNOWN
            count += 1
        add(own_low, own_high, place[v], taken_low[i], taken_high[i])
    wrong = np.int64(NO_EDGE)
    entry = np.int64(1)
    while entry < count:
        if entry + _OFFSETS < count:
            prefetch_entry(offsets, vertex[entry + _OFFSETS])
        if entry + _EDGES < count:
            begin = offsets[vertex[entry + _EDGES]]
            prefetch_entry(sources, begin)
            prefetch_entry(weights, begin)
        if entry + _DISTANCES < count:
            v = np.int64(vertex[entry + _DISTANCES])
            for e in range(offsets[v], min(offsets[v] + _NEAR, offsets[v + 1])):
                prefetch_entry(distance, sources[e])
        v = np.int64(vertex[entry])
        if edge[entry] == _UNKNOWN:
            own = distance[v]
            edge[entry] = nearer_edge(v, own, walks)
            if edge[entry] == NO_EDGE:
                # Edges of length zero: each step of the way is to the smallest in-neighbor on a
                # shortest one.
                size = along_level(v, source, own, np.int64(0), walks)
                if size == NO_EDGE:
                    wrong = v
                    break
                at = entry
                for j in range(size):
                    u = path[j]
                    e = offsets[v]
                    while sources[e] != u:
                        e += 1
                    edge[at] = e
                    if j == size - 1 or place[u] != _NOWHERE:
                        break
                    place[u] = count
                    vertex[count] = u
                    at = count
                    v = np.int64(u)
                    count += 1
        u = sources[edge[entry]]
        if place[u] == _NOWHERE:
            place[u] = count
            vertex[count] = u
            edge[count] = _UNKNOWN
            count += 1
        parent[entry] = place[u]
        waits[place[u]] += 1
        entry += 1
    if wrong == NO_EDGE and named.size:
        _mark(count, named, tree)
        for i in range(targets.size):
            sent[i] = sent[i] and mark[place[targets[i]]] == _USES
        for i in range(count):
            if mark[i] != _USES:
                own_low[i] = 0
                own_high[i] = 0
            mark[i] = _UNMARKED
    if wrong == NO_EDGE and of != PAIRS:
        for first in range(1, count):
            i = np.int64(first)
            while i > 0 and waits[i] == 0:
                waits[i] = _NOWHERE
                cell = edge[i] if of == EDGES else np.int64(vertex[i])
                prefetch_entry(low, cell)
                prefetch_entry(high, cell)
                p = np.int64(parent[i])
                add(own_low, own_high, p, own_low[i], own_high[i])
                waits[p] -= 1
                i = p
    for i in range(count):
        if wrong == NO_EDGE and (of == VERTICES or (of == EDGES and i > 0)):
            add(low, high, edge[i] if of == EDGES else np.int64(vertex[i]), own_low[i], own_high[i])
        place[vertex[i]] = _NOWHERE
        own_low[i] = 0
        own_high[i] = 0
        waits[i] = 0
    return wrong


@njit(cache=True, nogil=True)
def volumes_at(distance, targets, amounts, factor, decay):
    """Return what each target takes: its amount times a factor of the source times the decay of its
    distance.

    Amounts are int64 for sums of integers, and else float64. Without a path no volume decays.
    """
    low = np.zeros(targets.size, np.uint64)
    high = np.zeros(targets.size, np.int64)
    for i in range(targets.size):
        volume = amounts[i] * factor
        if decay.exponent == 0:
            low[i] = np.uint64(np.int64(volume))
            continue
        far = distance[targets[i]]
        if decay.kind != NO_DECAY and 0 <= far <= decay.limit:
            volume *= weight_at(np.float64(far), decay.kind, decay.parameters)
        low[i], high[i] = split(np.float64(volume), decay.exponent)
    return low, high
