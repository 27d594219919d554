"""A hierarchy whose shortcuts stand for canonical paths, so that columns of the edges add up along
them.

The canonical path to a vertex comes from its smallest predecessor, and so on back to the source. Of
two shortest paths with the same end, the canonical one is hence the one that is first when both are
compared from the end on. That order does not change when both are prolonged, and each part of a
canonical path between two of its vertices is canonical. So it is enough that no shortest path is
lost when vertices are contracted, that each shortcut stands for the first of its shortest paths,
and that a sweep takes the first edge of those that tie.

Two shortcuts to a vertex from two vertices above it differ before the nearer of these is met, as
all that they pass lies lower. So their order is that of the shortcuts alone, and rows are sorted
by it once.

Weights must be above 0, as the canonical predecessor is nearer to the source. The one exception is
the edge of length 0 that a graph stores for a closed vertex (one that paths do not lead through),
between the two vertices that stand for it: it is on no other path.

An entry is an edge or a shortcut of the hierarchy, by its position in the arrays of its direction.
Positions of vertices are numbered from the top, 0.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..cpu.compiled import njit
from .arrays import Edges, Hierarchy, hierarchy_from
from .build import MAX_PAIRS, edges_in_units
from .contraction import Contraction

_NO_PARTS = -2  # in ``Entries.left``: it is not known yet what the entry stands for
EDGE = -1  # in ``Entries.left``: the entry is an edge of the graph
# Contraction is given up if the pairs of an edge to and an edge from the same vertex become this
# many times as many. On USA-road-NY they become 1.0 times as many with weights and 1.4 with hops,
# on a lattice of 60 x 60 vertices, where all ways tie, 780 times.
_GROWTH = 2.0
_FEW_PAIRS = 1 << 20  # so many pairs are always allowed: they take a fraction of a second


class Entries(NamedTuple):
    """The edges and shortcuts of a hierarchy in one direction, with what each stands for. An entry
    is one of them, by its position in the arrays after ``offsets``.
    """

    # offsets, heads, weights: as in ``arrays.Edges``: the entries of the row of each position, the
    # position above at their other end, and their weights
    offsets: np.ndarray
    heads: np.ndarray
    weights: np.ndarray
    # int32 array. A shortcut that passes v stands for two entries, one down to v and one up from v.
    # This is the entry downward. It is ``EDGE`` for an edge of the graph, and ``_NO_PARTS`` while
    # it is not known what the entry stands for
    left: np.ndarray
    # int32 array. For a shortcut that passes v, the entry upward from v. For an edge of the graph,
    # its position among the edges of the reversed graph
    right: np.ndarray


class Canonical(NamedTuple):
    """The arrays of a hierarchy of canonical paths, for compiled code."""

    up: Entries  # row of a position: the entries from it to positions above
    # row of a position: the entries to it from positions above, sorted by their paths (which are
    # compared from their end on)
    down: Entries
    up_tail: np.ndarray  # int32 array: the lower position of each entry of ``up``, its row
    order: np.ndarray  # int32 array of shape (n,): the vertex at each position, 0 is the top


class CanonicalHierarchy(NamedTuple):
    """A hierarchy whose shortcuts stand for canonical paths."""

    hierarchy: Hierarchy
    paths: Canonical  # its edges and shortcuts again, with the path that each stands for


def build_canonical(graph: Any, known: Hierarchy, metric: str) -> CanonicalHierarchy | None:
    """Return the hierarchy of canonical paths of a graph in host memory.

    ``known`` is the hierarchy of the graph by the same metric, "weights" or "hops": its order of
    vertices is taken. Return None in three cases: an edge has length 0, other than the edge that is
    stored for each closed vertex; contraction meets too many pairs of edges, because of ties or of
    hubs; or sums of weights may be too large.
    """
    reverse = graph.reverse
    lengths = edges_in_units(graph, metric, known.unit)
    n_closed = 0
    # ``closed`` has shape (2, n_closed): both numbers of each closed vertex, which is stored as
    # two.
    if graph.closed is not None:
        n_closed = graph.closed.shape[1]
    # The edges of length 0 that are allowed: one per closed vertex.
    if np.count_nonzero(lengths == 0) > n_closed:
        return None

    # Of an undirected graph the edges in both directions are the same, for which None stands.
    backward = None
    if graph.directed:
        lengths_back = edges_in_units(reverse, metric, known.unit)
        backward = (reverse.offsets, reverse.targets, lengths_back)
    else:
        lengths_back = lengths

    # Contract in the same order once more, with each tie kept.
    contraction = Contraction(graph.offsets, graph.targets, lengths, backward, keeps_ties=True)
    first_pairs = contraction.pairs_of_rest()
    if first_pairs > max(MAX_PAIRS * known.n_vertices, _FEW_PAIRS):
        return None
    rank = -known.position.astype(np.int64)  # the last position, which is the lowest, goes first
    # False as soon as there are more pairs than the second argument allows.
    if not contraction.run_in_order(rank, max(_GROWTH * first_pairs, _FEW_PAIRS)):
        return None
    # None if sums of weights may be too large. 0 is given for the seconds of the contraction.
    hierarchy = hierarchy_from(contraction, known.unit, 0.0)
    if hierarchy is None:
        return None

    # Each entry stands for an edge of the graph, or for two other entries.
    up = _new_entries(hierarchy.upward)
    down = _new_entries(hierarchy.downward)
    n_vertices = hierarchy.n_vertices
    up_tail = np.repeat(np.arange(n_vertices, dtype=np.int32), np.diff(up.offsets))
    paths = Canonical(up, down, up_tail, hierarchy.order)
    place = np.full(n_vertices, -1, np.int32)
    _find_edges(reverse.offsets, reverse.targets, lengths_back, hierarchy.position, place, paths)
    stacks = np.empty((2, _stack_size(hierarchy)), np.int64)
    _find_parts(place, stacks, paths)

    # Sort the entries of each row by the paths that they stand for.
    by_path = np.arange(down.heads.size, dtype=np.int32)
    _sort_rows(by_path, stacks, paths)
    paths = _with_sorted_rows(paths, by_path)
    sorted_edges = Edges(paths.down.offsets, paths.down.heads, paths.down.weights)
    return CanonicalHierarchy(replace(hierarchy, downward=sorted_edges), paths)


def _stack_size(hierarchy: Hierarchy) -> int:
    """Return the number of entries that fit any stack of ``is_before``.

    An entry is replaced by its two parts, which pass a vertex of a lower level. So a stack grows by
    at most two entries per level. The 4 are room for the entries that it begins with, two at most.
    """
    return 2 * hierarchy.levels + 4


def new_stacks(canonical: CanonicalHierarchy) -> np.ndarray:
    """Return the memory in which a thread compares two paths: two stacks for ``is_before``."""
    return np.empty((2, _stack_size(canonical.hierarchy)), np.int64)


def _new_entries(edges: Edges) -> Entries:
    """Return edges of a hierarchy as entries whose parts are not known yet."""
    left, right = np.full((2, edges.heads.size), _NO_PARTS, np.int32)
    return Entries(*edges, left, right)


def _with_sorted_rows(paths: Canonical, by_path: np.ndarray) -> Canonical:
    """Return the hierarchy with its entries downward in another order: entry ``by_path[i]`` becomes
    entry i. References to them, in ``left`` of both directions, are renumbered.

    ``by_path`` int32 permutes entries within their rows only.
    """
    new_entry = np.empty_like(by_path)
    new_entry[by_path] = np.arange(by_path.size, dtype=np.int32)

    def renumber(left: np.ndarray) -> np.ndarray:
        """Return ``left`` with the new numbers of entries; negative numbers are no entries."""
        return np.where(left >= 0, new_entry[left], left)

    down = paths.down
    sorted_down = Entries(
        offsets=down.offsets,
        heads=down.heads[by_path],
        weights=down.weights[by_path],
        left=renumber(down.left)[by_path],
        right=down.right[by_path],
    )
    up = paths.up._replace(left=renumber(paths.up.left))
    return paths._replace(up=up, down=sorted_down)


@njit(cache=True, nogil=True)
def is_before(a, size_a, b, size_b, parent, source, paths):
    """Return whether path a comes before path b, which has the same length and end.

    Paths are compared from their end on: at the first vertex whose predecessors differ, the path
    with the smaller predecessor comes first. Equal paths are not before each other.

    Parameters
    ----------
    a, b : int64 arrays
        A stack of entries per path, the last entry of the path on top: 2 e for entry e upward,
        2 e + 1 for entry e downward. They are overwritten.
    size_a, size_b : int
        Number of entries on each stack.
    parent : int32 array of shape (n,) or None
        Where a stack is empty, the path goes on backward with the entry upward ``parent[p]`` that
        leads to the position p reached so far, until the source. None: the path ends there.
    source : int
        Position where paths begin; of no meaning without ``parent``.
    paths : Canonical
    """
    up = paths.up
    down = paths.down
    up_tail = paths.up_tail
    order = paths.order
    met = np.int64(-1)  # the position up to which both paths are the same, seen from their end
    while True:
        # Where a stack is empty, go on with the path upward to ``met``.
        if size_a == 0 or size_b == 0:
            if parent is None:
                return False
            else:
                if met == source:
                    return False
                if size_a == 0:
                    a[0] = 2 * np.int64(parent[met])
                    size_a = 1
                if size_b == 0:
                    b[0] = 2 * np.int64(parent[met])
                    size_b = 1

        # Compare the last entries of both paths. Bit 0 is 1 for an entry downward. ``tail`` is the
        # position that the entry leaves, and ``left`` is negative for an edge of the graph.
        entry_a = a[size_a - 1]
        entry_b = b[size_b - 1]
        tail_a = np.int64(down.heads[entry_a >> 1] if entry_a & 1 else up_tail[entry_a >> 1])
        tail_b = np.int64(down.heads[entry_b >> 1] if entry_b & 1 else up_tail[entry_b >> 1])
        left_a = np.int64(down.left[entry_a >> 1] if entry_a & 1 else up.left[entry_a >> 1])
        left_b = np.int64(down.left[entry_b >> 1] if entry_b & 1 else up.left[entry_b >> 1])
        # Same entries, or two edges of the graph: go on before them, or decide.
        if entry_a == entry_b or (left_a < 0 and left_b < 0):
            if tail_a != tail_b:  # two edges of the graph to one vertex: the smaller predecessor
                return order[tail_a] < order[tail_b]
            met = tail_a
            size_a -= 1
            size_b -= 1
            continue

        right_a = np.int64(down.right[entry_a >> 1] if entry_a & 1 else up.right[entry_a >> 1])
        right_b = np.int64(down.right[entry_b >> 1] if entry_b & 1 else up.right[entry_b >> 1])
        # Replace a shortcut by its two parts. Of two shortcuts it is that which passes the higher
        # vertex (the smaller position), so that parts that both paths share become entries of both.
        if left_b < 0 or (left_a >= 0 and up_tail[right_a] <= up_tail[right_b]):
            a[size_a - 1] = 2 * left_a + 1
            a[size_a] = 2 * right_a
            size_a += 1
        else:
            b[size_b - 1] = 2 * left_b + 1
            b[size_b] = 2 * right_b
            size_b += 1


@njit(cache=True, nogil=True)
def _find_edges(offsets, sources, lengths, position, place, paths):
    """Set ``left`` and ``right`` of the entries that are edges of the graph: ``EDGE``, and their
    positions in the reversed graph.

    ``offsets``, ``sources`` and ``lengths`` are the reversed graph: for each vertex the edges that
    lead to it, with their tails and lengths. ``position`` (n,) is that of each vertex. ``place``,
    int32 of shape (n,), is scratch, -1 before and after: meanwhile it has the entry downward from
    each position to the current head. An entry lighter than the edge is a shortcut.
    """
    up = paths.up
    down = paths.down

    for head in range(offsets.size - 1):
        q = position[head]
        for k in range(down.offsets[q], down.offsets[q + 1]):
            place[down.heads[k]] = k
        for e in range(offsets[head], offsets[head + 1]):
            p = position[sources[e]]
            if p > q:  # the tail is below the head: an entry upward
                for k in range(up.offsets[p], up.offsets[p + 1]):
                    if up.heads[k] == q and up.weights[k] == lengths[e]:
                        up.left[k] = EDGE
                        up.right[k] = e
            elif p < q and place[p] >= 0:
                k = place[p]
                if down.weights[k] == lengths[e]:
                    down.left[k] = EDGE
                    down.right[k] = e
        for k in range(down.offsets[q], down.offsets[q + 1]):
            place[down.heads[k]] = -1


@njit(cache=True, nogil=True)
def _stand_for_if_first(k, parity, entries, i, j, stacks, paths):
    """Let shortcut ``k`` stand for the path over entry ``i`` downward and entry ``j`` upward, if it
    stands for nothing yet, or if this path comes before the path that it stands for now.

    ``entries`` are those of the direction of ``k``: upward with ``parity`` 0, downward with 1.
    ``stacks`` is scratch of ``is_before``.
    """
    if entries.left[k] != _NO_PARTS:
        stacks[0, 0] = 2 * i + 1
        stacks[0, 1] = 2 * j
        stacks[1, 0] = 2 * k + parity
        if not is_before(stacks[0], 2, stacks[1], 1, None, -1, paths):
            return
    entries.left[k] = i
    entries.right[k] = j


@njit(cache=True, nogil=True)
def _find_parts(place, stacks, paths):
    """Set ``left`` and ``right`` of all shortcuts: of the shortest paths that each can stand for,
    the path that comes first by ``is_before``.

    Vertices are visited from the lowest one upward. Each joins its entries from above and to above
    into the shortcuts that pass it. Its own entries are final by then, as their paths pass lower
    vertices. ``place``, int32 of shape (n,), is scratch, -1 before and after: the entry of one row
    to each position. ``stacks`` is scratch of ``is_before``.
    """
    up = paths.up
    down = paths.down
    for v in range(up.offsets.size - 2, -1, -1):
        begin = up.offsets[v]
        end = up.offsets[v + 1]
        begin_down = down.offsets[v]
        end_down = down.offsets[v + 1]
        # From u to v and on to each w above v: the entry upward from u to w.
        for i in range(begin_down, end_down):
            u = down.heads[i]
            for k in range(up.offsets[u], up.offsets[u + 1]):
                place[up.heads[k]] = k
            for j in range(begin, end):
                k = place[up.heads[j]]
                if k >= 0 and up.weights[k] == down.weights[i] + up.weights[j]:
                    _stand_for_if_first(np.int64(k), 0, up, i, j, stacks, paths)
            for k in range(up.offsets[u], up.offsets[u + 1]):
                place[up.heads[k]] = -1
        # The same ways: the entry downward from u to w.
        for j in range(begin, end):
            w = up.heads[j]
            for k in range(down.offsets[w], down.offsets[w + 1]):
                place[down.heads[k]] = k
            for i in range(begin_down, end_down):
                k = place[down.heads[i]]
                if k >= 0 and down.weights[k] == down.weights[i] + up.weights[j]:
                    _stand_for_if_first(np.int64(k), 1, down, i, j, stacks, paths)
            for k in range(down.offsets[w], down.offsets[w + 1]):
                place[down.heads[k]] = -1


@njit(cache=True, nogil=True)
def _sort_rows(by_path, stacks, paths):
    """Sort ``by_path``, which has the numbers of the entries downward, within each row: the entry
    whose path comes first is first.

    Rows are short, so it sorts by insertion. ``stacks`` is scratch of ``is_before``, int64 of shape
    (2, entries), and holds anything before. ``paths`` is ``Canonical``.
    """
    offsets = paths.down.offsets
    for v in range(offsets.size - 1):
        for i in range(offsets[v] + 1, offsets[v + 1]):
            entry = by_path[i]
            at = i
            while at > offsets[v]:
                stacks[0, 0] = 2 * np.int64(entry) + 1
                stacks[1, 0] = 2 * np.int64(by_path[at - 1]) + 1
                if not is_before(stacks[0], 1, stacks[1], 1, None, -1, paths):
                    break
                by_path[at] = by_path[at - 1]
                at -= 1
            by_path[at] = entry


@njit(cache=True, nogil=True)
def sum_entries(column, up_sums, down_sums, paths):
    """Add up a column along the path that each entry stands for.

    ``column``, int64, has a value per edge of the reversed graph. ``up_sums`` and ``down_sums``,
    int64, receive the sum of each entry upward and downward. Lower vertices come first, since the
    parts of a shortcut are entries of the lower vertex that it passes.
    """
    up = paths.up
    down = paths.down
    for v in range(up.offsets.size - 2, -1, -1):
        for k in range(up.offsets[v], up.offsets[v + 1]):
            if up.left[k] == EDGE:
                up_sums[k] = column[up.right[k]]
            else:
                up_sums[k] = down_sums[up.left[k]] + up_sums[up.right[k]]
        for k in range(down.offsets[v], down.offsets[v + 1]):
            if down.left[k] == EDGE:
                down_sums[k] = column[down.right[k]]
            else:
                down_sums[k] = down_sums[down.left[k]] + up_sums[down.right[k]]
