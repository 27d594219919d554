"""What the vertices and edges of one source's paths carry: volumes at the targets, added up back to
the source.

The paths are those of ``path_walk``: their union is a tree, whose edges follow from the distances
alone. A queue begins with the targets. Each vertex of it finds its edge of the tree, and puts the
vertex before it into the queue unless it is there. So each is visited once, however many targets
lie beyond it, and what the next ones read is prefetched while one is looked at. Then each vertex
hands on what it carries once it has received all that joins it. Where paths must use one of some
edges, the vertices of the tree whose paths do are marked before, and all others carry nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .compiled import njit
from .exact_sums import add, split
from .opportunities import NO_DECAY, weight_at
from .path_walk import NO_EDGE, along_level, nearer_edge
from .simd_sums import prefetch_entry

_NOWHERE = -1  # in ``place``: the vertex has no entry; in ``waits``: the entry has handed on
_UNKNOWN = -2  # in ``edge``: the edge into the entry is not found yet
EDGES, VERTICES, PAIRS = range(3)  # what carries the loads, in the order of ``kinds.loads.CELLS``
# values of ``mark``: not known yet, the path to the entry uses a named edge, or it uses none
_UNMARKED, _USES, _USES_NONE = range(3)
# How many entries before one is looked at, its offset, its edges and the distances of its first
# in-neighbors are prefetched.
_OFFSETS = 24
_EDGES = 16
_DISTANCES = 8
_PREFETCHED_NEIGHBORS = 3


class Served(NamedTuple):
    """The k targets of one source, and the volume that each of them takes.

    A volume is what travels from the source to a target, such as trips. Arrays have shape (k,).
    """

    vertices: np.ndarray  # int64 vertex numbers; one may be there several times
    # low, high: uint64 and int64: the volume that each takes, as a 128-bit integer of two words in
    # the unit of the sums (``exact_sums``)
    low: np.ndarray
    high: np.ndarray
    # of the type of the distances: the largest distance of a target that is served; the distance of
    # an unreached vertex is -1 or beyond it
    limit: Any
    # is_lost, is_sent: of bool, output: True for a target that is not reached within the limit; and
    # True for a target that takes a volume other than 0 on a path that counts
    is_lost: np.ndarray
    is_sent: np.ndarray


class Decay(NamedTuple):
    """How the amounts of targets become volumes: times a weight that falls with the distance."""

    limit: Any  # of the type of the distances: no volume decays beyond this distance
    # kind, parameters: as ``opportunities.weight_at`` takes them: one of ``NO_DECAY`` to ``POWER``,
    # and its two numbers
    kind: int
    parameters: tuple[float, float]
    exponent: int  # volumes are counted in units of 2**exponent; 0 for integers


class Tree(NamedTuple):
    """Scratch of one thread for the tree of the paths from one source.

    The vertices of the tree are entries, in the order in which they were found: entry 0 is the
    source. ``place`` is indexed by vertex numbers, all other arrays by entries. Each has shape
    (n_vertices,), of which entries take as many places as the tree has vertices.
    """

    place: np.ndarray  # int32: the entry of each vertex; -1 if it has none, as before and after
    # vertex, edge, parent: int32, int64, int32: of each entry its vertex, the edge of the tree that
    # leads to it as a position in the reversed graph, and the entry that this edge comes from. The
    # source has no edge: ``NO_EDGE``
    vertex: np.ndarray
    edge: np.ndarray
    parent: np.ndarray
    # int32: how many entries have yet to hand on to each, and -1 once it has handed on itself; all
    # 0, before and after
    waits: np.ndarray
    # low, high: uint64 and int64: the volume that each entry carries, as in ``Served``; all 0,
    # before and after
    low: np.ndarray
    high: np.ndarray
    # uint8: whether the path to each entry uses a named edge, ``_UNMARKED``, ``_USES`` or
    # ``_USES_NONE``; all unmarked, before and after
    mark: np.ndarray


def new_tree(n: int) -> Tree:
    """Return the scratch of one thread for ``n`` vertices, in the state that ``carry`` expects."""
    place, vertex, parent = np.empty((3, n), np.int32)
    place.fill(_NOWHERE)
    waits, low, high, mark = (
        np.zeros(n, kind) for kind in (np.int32, np.uint64, np.int64, np.uint8)
    )
    return Tree(place, vertex, np.empty(n, np.int64), parent, waits, low, high, mark)


@njit(cache=True, nogil=True)
def _mark_entries(count, named, tree):
    """Mark which of the ``count`` entries of ``tree`` have a named edge on their paths.

    ``named``, uint8 with one value per edge of the reversed graph, is not 0 at named edges. From
    each entry, walk toward the source up to an entry that is marked already or that a named edge
    leads to. Then walk the same way again, and give all entries on it the same mark. So each entry
    is marked once. Marks are all ``_UNMARKED`` before.
    """
    edge = tree.edge
    parent = tree.parent
    mark = tree.mark
    mark[0] = _USES_NONE  # the source
    for first in range(1, count):
        entry = np.int64(first)
        while mark[entry] == _UNMARKED and not named[edge[entry]]:
            entry = np.int64(parent[entry])
        top = entry
        mark_of_way = mark[entry] if mark[entry] != _UNMARKED else np.uint8(_USES)
        entry = np.int64(first)
        while mark[entry] == _UNMARKED:
            mark[entry] = mark_of_way
            if entry == top:
                break
            entry = np.int64(parent[entry])


@njit(cache=True, nogil=True)
def carry(source, served, walks, tree, named, cell_kind, sums):
    """Add to the sums the volume that each edge, or each vertex, of the paths from a source to some
    targets carries.

    Parameters
    ----------
    source : int
        A vertex number.
    served : Served
        The targets and their volumes; its ``is_lost`` and ``is_sent`` are written.
    walks : path_walk.Walks
        The reversed graph, the distances from the source, and scratch.
    tree : Tree
        Scratch.
    named : uint8 array
        Not 0 at the edges of which a path must use one, by their positions in the reversed graph;
        empty if all paths count.
    cell_kind : {EDGES, VERTICES, PAIRS}
        Whether cells are positions of edges in the reversed graph, or vertices. Of pairs nothing is
        added.
    sums : tuple of uint64 and int64 arrays
        What each cell carries, as ``exact_sums`` has it, to which is added. If a distance is not
        explained, nothing is added.

    Returns
    -------
    int
        A vertex whose distance no edge explains, or ``NO_EDGE``.
    """
    # One function: as several, by its steps, it took 1.12 to 1.3 times as long.
    offsets = walks.offsets
    sources = walks.sources  # the tails of the edges
    weights = walks.weights
    distance = walks.distance
    path = walks.path
    targets = served.vertices
    target_low = served.low
    target_high = served.high
    limit = served.limit
    is_lost = served.is_lost
    is_sent = served.is_sent
    place = tree.place
    vertex = tree.vertex
    edge = tree.edge
    parent = tree.parent
    waits = tree.waits
    entry_low = tree.low
    entry_high = tree.high
    mark = tree.mark
    low, high = sums

    # The source and the targets that take something are the first entries.
    place[source] = 0
    vertex[0] = source
    edge[0] = NO_EDGE
    n_entries = np.int64(1)
    for i in range(targets.size):
        v = np.int64(targets[i])
        is_lost[i] = not 0 <= distance[v] <= limit
        is_sent[i] = not is_lost[i] and not (target_low[i] == 0 and target_high[i] == 0)
        if not is_sent[i]:
            continue
        if place[v] == _NOWHERE:
            place[v] = n_entries
            vertex[n_entries] = v
            edge[n_entries] = _UNKNOWN
            n_entries += 1
        # ``add`` adds a 128-bit integer of two words to that of an entry, here the target's volume.
        add(entry_low, entry_high, place[v], target_low[i], target_high[i])

    # Find the edge of the tree into each entry; the queue grows by the vertices before.
    unexplained = np.int64(NO_EDGE)
    entry = np.int64(1)
    while entry < n_entries:
        if entry + _OFFSETS < n_entries:
            prefetch_entry(offsets, vertex[entry + _OFFSETS])
        if entry + _EDGES < n_entries:
            begin = offsets[vertex[entry + _EDGES]]
            prefetch_entry(sources, begin)
            prefetch_entry(weights, begin)
        if entry + _DISTANCES < n_entries:
            v = np.int64(vertex[entry + _DISTANCES])
            for e in range(offsets[v], min(offsets[v] + _PREFETCHED_NEIGHBORS, offsets[v + 1])):
                prefetch_entry(distance, sources[e])

        v = np.int64(vertex[entry])
        if edge[entry] == _UNKNOWN:
            # The edge that explains the distance, from the smallest in-neighbor that is nearer.
            own_distance = distance[v]
            edge[entry] = nearer_edge(v, own_distance, walks)
            if edge[entry] == NO_EDGE:
                # Edges of length zero: each step of the way is to the smallest in-neighbor on a
                # shortest one. The ``size`` vertices of the way, without v, are written to
                # ``path``.
                size = along_level(v, source, own_distance, np.int64(0), walks)
                if size == NO_EDGE:
                    unexplained = v
                    break
                # Each vertex of this way but its last gets an entry with its edge at once. ``step``
                # is the entry of v, and u is the vertex before v.
                step = entry
                for j in range(size):
                    u = path[j]
                    e = offsets[v]
                    while sources[e] != u:
                        e += 1
                    edge[step] = e
                    # The last vertex enters the queue like any other, when the entry that it
                    # leads to is looked at. A vertex that has an entry already finds the rest of
                    # the way by itself.
                    if j == size - 1 or place[u] != _NOWHERE:
                        break
                    place[u] = n_entries
                    vertex[n_entries] = u
                    step = n_entries
                    v = np.int64(u)
                    n_entries += 1

        # The vertex before this one joins the queue, and waits for this entry to hand on to it.
        u = sources[edge[entry]]
        if place[u] == _NOWHERE:
            place[u] = n_entries
            vertex[n_entries] = u
            edge[n_entries] = _UNKNOWN
            n_entries += 1
        parent[entry] = place[u]
        waits[place[u]] += 1
        entry += 1

    # Take away what entries carry whose paths use no named edge. An entry whose path uses one hands
    # on to entries whose paths use none, so that these carry it all the same.
    if unexplained == NO_EDGE and named.size:
        _mark_entries(n_entries, named, tree)
        for i in range(targets.size):
            is_sent[i] = is_sent[i] and mark[place[targets[i]]] == _USES
        for i in range(n_entries):
            if mark[i] != _USES:
                entry_low[i] = 0
                entry_high[i] = 0
            mark[i] = _UNMARKED

    # Hand on what an entry carries to the entry before it, from each entry that waits for no other,
    # and on from there as far as that goes.
    if unexplained == NO_EDGE and cell_kind != PAIRS:
        for first in range(1, n_entries):
            i = np.int64(first)
            while i > 0 and waits[i] == 0:
                waits[i] = _NOWHERE  # it has handed on, and must not do so again
                cell = edge[i] if cell_kind == EDGES else np.int64(vertex[i])
                prefetch_entry(low, cell)
                prefetch_entry(high, cell)
                parent_entry = np.int64(parent[i])
                add(entry_low, entry_high, parent_entry, entry_low[i], entry_high[i])
                waits[parent_entry] -= 1
                i = parent_entry

    # Add what entries carry to the sums, and clear the tree.
    for i in range(n_entries):
        if unexplained == NO_EDGE and (cell_kind == VERTICES or (cell_kind == EDGES and i > 0)):
            add(
                low,
                high,
                edge[i] if cell_kind == EDGES else np.int64(vertex[i]),
                entry_low[i],
                entry_high[i],
            )
        place[vertex[i]] = _NOWHERE
        entry_low[i] = 0
        entry_high[i] = 0
        waits[i] = 0
    return unexplained


@njit(cache=True, nogil=True)
def volumes_at(distance, targets, amounts, factor, decay):
    """Return the volume that each target takes, as the two words of a 128-bit integer, uint64 and
    int64 arrays: its amount times ``factor``, that of the source, times the decay of its distance.
    Integers (``decay.exponent`` 0) do not decay.

    ``distance`` has the distances of one source to all vertices, and ``targets`` are vertex
    numbers. ``amounts``, one per target, are int64 for sums of integers, and else float64;
    ``decay`` is a ``Decay``. Without a path no volume decays: it is reported as lost.
    """
    low = np.zeros(targets.size, np.uint64)
    high = np.zeros(targets.size, np.int64)
    for i in range(targets.size):
        volume = amounts[i] * factor
        if decay.exponent == 0:  # integers, which are not negative, so that the upper word is 0
            low[i] = np.uint64(np.int64(volume))
            continue
        d = distance[targets[i]]
        if decay.kind != NO_DECAY and 0 <= d <= decay.limit:
            volume *= weight_at(np.float64(d), decay.kind, decay.parameters)
        # the volume in units of 2**exponent, rounded to an integer of two words
        low[i], high[i] = split(np.float64(volume), decay.exponent)
    return low, high
