"""A hierarchy for any weights of a graph: its edges are found once, and each set of weights takes one
pass over its triangles (Dibbelt, Strasser, Wagner 2014).

An arc joins two vertices in both directions. Where two vertices are above a third one, an arc joins
them. The weight of an arc is the least of its links, and of each way by a vertex below both of its
ends. So from each vertex to each other one a shortest path leads upward first and then downward.

What is given to arcs is handed down in the same way: from an arc to its first link that explains its
weight, else to the two arcs of the first triangle that does. On its way this pass proves the weights:
none exceeds that of a link or a triangle, and each that carries something is explained.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..cpu.compiled import njit
from .elimination import eliminate

NO_LINK = -1
UNREACHED = 2**61  # twice it fits int64
MAX_SUM = 2**58  # what the weights of all links may add up to
UP, DOWN = 0, 1


class Topology(NamedTuple):
    """The arcs between ranks, for all weights.

    ``offsets`` (n + 1,) int64, ``heads`` (n_arcs,) int32: the arcs from each rank to ranks above it,
    in ascending order; ``tails`` (n_arcs,) int32. ``below_offsets`` (n + 1,) int64, ``below``
    (n_arcs,) int32: the arcs that lead up to each rank, by their tails. ``sides`` (n_links,) int32:
    twice the arc of each link, and one more if the link leads downward; ``NO_LINK`` for a loop.
    ``n_ends`` int: the ranks through which no path leads, which are the first.
    """

    offsets: np.ndarray
    heads: np.ndarray
    tails: np.ndarray
    below_offsets: np.ndarray
    below: np.ndarray
    sides: np.ndarray
    n_ends: int


class Customizable(NamedTuple):
    """The arcs, the rank of each vertex, and how many triangles there are."""

    topology: Topology
    rank: np.ndarray
    n_triangles: int


def make_customizable(
    n: int, tails: np.ndarray, heads: np.ndarray, is_end: np.ndarray, most_triangles: int
) -> Customizable | None:
    """Return the hierarchy of links between n vertices; None if it had more triangles than wanted.

    ``is_end`` (n,) bool: vertices with links in one direction only, so that no path leads through.
    """
    low = np.minimum(tails, heads).astype(np.int64)
    high = np.maximum(tails, heads).astype(np.int64)
    keys = np.unique((low * n + high)[low < high])
    ends = np.concatenate([keys // n, keys % n]), np.concatenate([keys % n, keys // n])
    order = np.lexsort((ends[1], ends[0]))
    elimination = eliminate(
        _offsets(ends[0], n), ends[1][order].astype(np.int32), is_end, most_triangles
    )
    if elimination is None:
        return None
    rank = np.empty(n, np.int32)
    rank[elimination.order] = np.arange(n, dtype=np.int32)
    n_above = np.diff(elimination.offsets)
    arc_tails = np.repeat(np.arange(n, dtype=np.int32), n_above)
    arc_keys = arc_tails.astype(np.int64) * n + elimination.heads
    from_rank = rank[tails].astype(np.int64)
    to_rank = rank[heads].astype(np.int64)
    link_keys = np.minimum(from_rank, to_rank) * n + np.maximum(from_rank, to_rank)
    sides = 2 * np.searchsorted(arc_keys, link_keys) + (from_rank > to_rank)
    sides[from_rank == to_rank] = NO_LINK
    topology = Topology(
        offsets=elimination.offsets,
        heads=elimination.heads,
        tails=arc_tails,
        below_offsets=_offsets(elimination.heads, n),
        below=np.argsort(elimination.heads, kind="stable").astype(np.int32),
        sides=sides.astype(np.int32),
        n_ends=int(is_end.sum()),
    )
    return Customizable(topology, rank, elimination.n_triangles)


def _offsets(vertices: np.ndarray, n: int) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(np.bincount(vertices, minlength=n))]).astype(np.int64)


@njit(cache=True, nogil=True)
def customize(costs, topology, weights, first_link):
    """Set the weights of all arcs to those of these costs.

    Parameters
    ----------
    costs : int64 array of shape (n_links,)
        At least 0; all together at most ``MAX_SUM``.
    topology : Topology
    weights : int64 array of shape (2 * n_arcs,), output
        Of each arc upward and downward; ``UNREACHED`` where there is no way.
    first_link : int32 array of shape (2 * n_arcs,), output
        The first of the cheapest links of each arc and direction.
    """
    offsets = topology.offsets
    heads = topology.heads
    below_offsets = topology.below_offsets
    below = topology.below
    n = offsets.size - 1
    weights[:] = UNREACHED
    first_link[:] = NO_LINK
    for link in range(costs.size):
        side = topology.sides[link]
        if side != NO_LINK and costs[link] < weights[side]:
            weights[side] = costs[link]
            first_link[side] = link
    arc_to = np.empty(n, np.int32)
    for x in range(topology.n_ends, n):
        for arc in range(offsets[x], offsets[x + 1]):
            arc_to[heads[arc]] = arc
        for i in range(below_offsets[x], below_offsets[x + 1]):
            first = np.int64(below[i])
            m = topology.tails[first]
            if m < topology.n_ends:
                continue
            up = weights[2 * first + UP]
            down = weights[2 * first + DOWN]
            for second in range(first + 1, offsets[m + 1]):
                arc = np.int64(arc_to[heads[second]])
                ahead = down + weights[2 * second + UP]
                back = weights[2 * second + DOWN] + up
                weights[2 * arc + UP] = min(weights[2 * arc + UP], ahead)
                weights[2 * arc + DOWN] = min(weights[2 * arc + DOWN], back)


@njit(cache=True, nogil=True)
def hand_down(costs, topology, weights, first_link, loads, flow):
    """Add what the arcs carry to the links, and prove the weights.

    ``loads`` (2 * n_arcs,) float64: what each arc carries upward and downward; overwritten. ``flow``
    (n_links,) float64. Returns whether the weights are those of the costs.
    """
    offsets = topology.offsets
    heads = topology.heads
    below_offsets = topology.below_offsets
    below = topology.below
    n = offsets.size - 1
    is_right = True
    for link in range(costs.size):
        side = topology.sides[link]
        if side != NO_LINK and costs[link] < weights[side]:
            is_right = False
    arc_to = np.empty(n, np.int32)
    for x in range(n - 1, -1, -1):
        for arc in range(offsets[x], offsets[x + 1]):
            arc_to[heads[arc]] = arc
            for side in range(2 * arc, 2 * arc + 2):
                link = first_link[side]
                if loads[side] != 0.0 and link != NO_LINK and costs[link] == weights[side]:
                    flow[link] += loads[side]
                    loads[side] = 0.0
        for i in range(below_offsets[x], below_offsets[x + 1]):
            first = np.int64(below[i])
            m = topology.tails[first]
            if m < topology.n_ends:
                continue
            up = weights[2 * first + UP]
            down = weights[2 * first + DOWN]
            for second in range(first + 1, offsets[m + 1]):
                arc = np.int64(arc_to[heads[second]])
                ahead = down + weights[2 * second + UP] - weights[2 * arc + UP]
                back = weights[2 * second + DOWN] + up - weights[2 * arc + DOWN]
                if ahead < 0 or back < 0:
                    is_right = False
                if ahead == 0 and loads[2 * arc + UP] != 0.0:
                    loads[2 * first + DOWN] += loads[2 * arc + UP]
                    loads[2 * second + UP] += loads[2 * arc + UP]
                    loads[2 * arc + UP] = 0.0
                if back == 0 and loads[2 * arc + DOWN] != 0.0:
                    loads[2 * second + DOWN] += loads[2 * arc + DOWN]
                    loads[2 * first + UP] += loads[2 * arc + DOWN]
                    loads[2 * arc + DOWN] = 0.0
        for side in range(2 * offsets[x], 2 * offsets[x + 1]):
            if loads[side] != 0.0:
                is_right = False
    return is_right


@njit(cache=True, nogil=True)
def mark_arcs(costs, topology, weights, first_link, is_marked, marks):
    """Set ``marks``, uint8 of shape (2 * n_arcs,), of each arc and direction whose links, as
    ``hand_down`` finds them, are marked, one of them at least.
    """
    offsets = topology.offsets
    heads = topology.heads
    below_offsets = topology.below_offsets
    below = topology.below
    n = offsets.size - 1
    unknown = np.uint8(2)
    marks[:] = unknown
    arc_to = np.empty(n, np.int32)
    for x in range(n):
        for arc in range(offsets[x], offsets[x + 1]):
            arc_to[heads[arc]] = arc
            for side in range(2 * arc, 2 * arc + 2):
                link = first_link[side]
                if link != NO_LINK and costs[link] == weights[side]:
                    marks[side] = is_marked[link]
        for i in range(below_offsets[x], below_offsets[x + 1]):
            first = np.int64(below[i])
            m = topology.tails[first]
            if m < topology.n_ends:
                continue
            for second in range(first + 1, offsets[m + 1]):
                arc = np.int64(arc_to[heads[second]])
                ahead = weights[2 * first + DOWN] + weights[2 * second + UP]
                back = weights[2 * second + DOWN] + weights[2 * first + UP]
                if marks[2 * arc + UP] == unknown and ahead == weights[2 * arc + UP]:
                    marks[2 * arc + UP] = marks[2 * first + DOWN] | marks[2 * second + UP]
                if marks[2 * arc + DOWN] == unknown and back == weights[2 * arc + DOWN]:
                    marks[2 * arc + DOWN] = marks[2 * second + DOWN] | marks[2 * first + UP]
        for side in range(2 * offsets[x], 2 * offsets[x + 1]):
            marks[side] &= 1


class Part(NamedTuple):
    """The ranks above some others, which are included, and their arcs upward.

    ``ranks`` (n_part,) int32, in ascending order. Their numbers are 0 to n_part - 1: ``offsets``
    (n_part + 1,) int64, ``heads`` and ``tails`` (n,) int32 are the arcs between numbers. ``arcs``
    (n,) int32: which arcs of the hierarchy these are.
    """

    ranks: np.ndarray
    offsets: np.ndarray
    heads: np.ndarray
    tails: np.ndarray
    arcs: np.ndarray

    def number_of(self, ranks: np.ndarray) -> np.ndarray:
        """Return the numbers of ranks that the part has, int32."""
        return np.searchsorted(self.ranks, ranks).astype(np.int32)


def part_above(topology: Topology, ranks: np.ndarray) -> Part:
    """Return the part above some ranks."""
    is_above = np.zeros(topology.offsets.size - 1, np.bool_)
    is_above[ranks] = True
    _mark_above(topology.offsets, topology.heads, is_above)
    kept = np.flatnonzero(is_above).astype(np.int32)
    number = np.cumsum(is_above, dtype=np.int32) - np.int32(1)
    arcs = np.flatnonzero(is_above[topology.tails]).astype(np.int32)
    n_above = np.diff(topology.offsets)[kept]
    return Part(
        ranks=kept,
        offsets=np.concatenate([[0], np.cumsum(n_above)]).astype(np.int64),
        heads=number[topology.heads[arcs]],
        tails=number[topology.tails[arcs]],
        arcs=arcs,
    )


@njit(cache=True, nogil=True)
def _mark_above(offsets, heads, is_above):
    for x in range(is_above.size):
        if is_above[x]:
            for arc in range(offsets[x], offsets[x + 1]):
                is_above[heads[arc]] = True


def lists_above(part: Part, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers above each of some numbers of a part, itself first, in ascending order: int64
    offsets and int32 numbers.
    """
    list_offsets = np.zeros(starts.size + 1, np.int64)
    numbers: Any = _lists_above(part.offsets, part.heads, starts, list_offsets)
    return list_offsets, numbers


@njit(cache=True, nogil=True)
def _lists_above(offsets, heads, starts, list_offsets):
    n = offsets.size - 1
    numbers = np.empty(1024, np.int32)
    is_seen = np.zeros(n, np.bool_)
    size = np.int64(0)
    for at in range(starts.size):
        begin = size
        done = begin
        if size + n > numbers.size:
            larger = np.empty(2 * numbers.size + n, np.int32)
            larger[:size] = numbers[:size]
            numbers = larger
        numbers[size] = starts[at]
        is_seen[starts[at]] = True
        size += 1
        while done < size:
            v = numbers[done]
            done += 1
            for arc in range(offsets[v], offsets[v + 1]):
                if not is_seen[heads[arc]]:
                    is_seen[heads[arc]] = True
                    numbers[size] = heads[arc]
                    size += 1
        numbers[begin:size].sort()
        for i in range(begin, size):
            is_seen[numbers[i]] = False
        list_offsets[at + 1] = size
    return numbers[:size].copy()
