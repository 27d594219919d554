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

Weights must be above 0, as the canonical predecessor is nearer to the source. That from a closed
vertex to itself is on no other path.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..cpu.compiled import njit
from .arrays import Edges, Hierarchy, hierarchy_from
from .build import MAX_PAIRS, edges_in_units
from .contraction import Contraction

_NO_PARTS = -2  # in ``left``: nothing is known of the path yet
EDGE = -1  # in ``left``: an edge of the graph
# Contraction is given up where pairs of edges that meet become so many times as many. On
# USA-road-NY they become 1.0 times as many with weights and 1.4 with hops, on a lattice of 60 x 60
# vertices, where all ways tie, 780 times.
_GROWTH = 2.0
_FEW_PAIRS = 1 << 20  # take a fraction of a second


class Entries(NamedTuple):
    """The edges and shortcuts in one direction, with what each stands for. An entry is one of them,
    by its position in the arrays.
    """

    # offsets, heads, weights: as in ``arrays.Edges``
    offsets: np.ndarray
    heads: np.ndarray
    weights: np.ndarray
    # left: int32 array. Of a shortcut that passes v: the entry downward of the edge to v. ``EDGE``
    # for an edge of the graph, _NO_PARTS while nothing is known
    left: np.ndarray
    # right: int32 array. Of a shortcut that passes v: the entry upward of the edge from v. Of an
    # edge of the graph: its position in the reversed graph
    right: np.ndarray


class Canonical(NamedTuple):
    """What compiled code reads of the hierarchy."""

    up: Entries
    down: Entries  # those of each position in the order of the paths, seen from their end
    up_tail: np.ndarray  # int32 array: the position from which an edge leads upward
    order: np.ndarray  # int32 array of shape (n,): the vertex at each position, 0 is the top


class CanonicalHierarchy(NamedTuple):
    """A hierarchy, and what its entries stand for."""

    hierarchy: Hierarchy
    paths: Canonical


def build_canonical(graph: Any, known: Hierarchy, metric: str) -> CanonicalHierarchy | None:
    """Return the hierarchy of canonical paths of a graph in host memory, from its hierarchy by the
    same metric.

    None if an edge has a length of 0 that is not the way from a closed vertex to itself, or if it
    would have many more edges than that hierarchy, because of ties or of hubs.
    """
    reverse = graph.reverse
    lengths = edges_in_units(graph, metric, known.unit)
    n_closed = 0
    if graph.closed is not None:
        n_closed = graph.closed.shape[1]
    # each closed vertex has one edge of length 0, to itself
    if np.count_nonzero(lengths == 0) > n_closed:
        return None

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
    if not contraction.run_in_order(rank, max(_GROWTH * first_pairs, _FEW_PAIRS)):
        return None
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
    """Return how many entries a stack of ``is_before`` holds at most: two more per level, as an
    entry is taken apart at a vertex of a lower level.
    """
    return 2 * hierarchy.levels + 4


def new_stacks(canonical: CanonicalHierarchy) -> np.ndarray:
    """Return the scratch with which a thread compares paths."""
    return np.empty((2, _stack_size(canonical.hierarchy)), np.int64)


def _new_entries(edges: Edges) -> Entries:
    """Return entries of which it is not known yet what they stand for."""
    left, right = np.full((2, edges.heads.size), _NO_PARTS, np.int32)
    return Entries(*edges, left, right)


def _with_sorted_rows(paths: Canonical, by_path: np.ndarray) -> Canonical:
    """Return the hierarchy with entry ``by_path[i]`` downward as entry i, and references to entries
    changed likewise.
    """
    new_entry = np.empty_like(by_path)
    new_entry[by_path] = np.arange(by_path.size, dtype=np.int32)

    def renumber(left: np.ndarray) -> np.ndarray:
        """Return ``left`` by the new numbers; what is negative is no entry."""
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
    """Return whether one path comes before another one of the same length and end.

    A path is a stack of entries with the last one on top: 2 e for the entry e upward, 2 e + 1
    downward. ``a`` and ``b``, int64, hold the stacks; they are changed. ``size_a`` and ``size_b``
    are the entries on them. Where a stack is empty, the path goes on with the entry that led to the
    vertex, ``parent[vertex]``, up to the source; it ends there if ``parent`` is None.
    """
    up = paths.up
    down = paths.down
    up_tail = paths.up_tail
    order = paths.order
    met = np.int64(-1)  # the vertex up to which both paths are the same, seen from their end
    while True:
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

        # Compare the last entries of both paths. Bit 0 tells downward from upward.
        entry_a = a[size_a - 1]
        entry_b = b[size_b - 1]
        tail_a = np.int64(down.heads[entry_a >> 1] if entry_a & 1 else up_tail[entry_a >> 1])
        tail_b = np.int64(down.heads[entry_b >> 1] if entry_b & 1 else up_tail[entry_b >> 1])
        left_a = np.int64(down.left[entry_a >> 1] if entry_a & 1 else up.left[entry_a >> 1])
        left_b = np.int64(down.left[entry_b >> 1] if entry_b & 1 else up.left[entry_b >> 1])
        if entry_a == entry_b or (left_a < 0 and left_b < 0):
            if tail_a != tail_b:  # two edges of the graph to one vertex: the smaller predecessor
                return order[tail_a] < order[tail_b]
            met = tail_a
            size_a -= 1
            size_b -= 1
            continue

        right_a = np.int64(down.right[entry_a >> 1] if entry_a & 1 else up.right[entry_a >> 1])
        right_b = np.int64(down.right[entry_b >> 1] if entry_b & 1 else up.right[entry_b >> 1])
        # the one that passes the higher vertex is taken apart, so that equal parts meet
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
    """Mark the entries that are edges of the graph, with their positions in the reversed graph.

    ``offsets``, ``sources`` and ``lengths`` are its edges: those that lead to each vertex, with
    their tails. ``place``, int32 of shape (n,), is -1 before and after: meanwhile it has the entry
    downward from each position to the head.
    """
    up = paths.up
    down = paths.down

    for head in range(offsets.size - 1):
        q = position[head]
        for k in range(down.offsets[q], down.offsets[q + 1]):
            place[down.heads[k]] = k
        for e in range(offsets[head], offsets[head + 1]):
            p = position[sources[e]]
            if p > q:
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
    """Let entry ``k`` stand for the path over the entries ``i``, downward, and ``j``, upward, if
    that comes before the path that it stands for.

    ``entries`` has the entry: those upward with ``parity`` 0, those downward with 1.
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
    """Find the first of the shortest paths for which each shortcut can stand.

    When a vertex is visited, the entries of its rows are final, as their paths pass lower vertices.
    ``place``, int32 of shape (n,), is -1 before and after.
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
    """Sort the entries of each row downward by their paths, by insertion, as rows are short."""
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
    """Add up a column of the edges of the reversed graph along what each entry stands for.

    ``column`` is int64; ``up_sums`` and ``down_sums``, int64, receive a sum per entry. Lower
    vertices come first, as shortcuts pass them.
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
