"""A hierarchy for any weights of a graph: its edges are found once, and each set of weights takes one
pass over its triangles (Dibbelt, Strasser, Wagner 2014).

An arc joins two vertices in both directions. Where two vertices are above a third one, an arc joins
them. The weight of an arc is the least of its links, and of each way by a vertex below both of its
ends. So from each vertex to each other one a shortest path leads upward first and then downward.

What arcs carry is handed down in the same way: to the link that explains the weight, or to both arcs
of a triangle below. Weights are proved: ``find_shorter`` compares them with each link and triangle,
and ``hand_down`` those that carry something with what explains them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..cpu import threads
from ..cpu.atomics import atomic_add
from ..cpu.compiled import njit
from ..cpu.counting_sort import stable_order
from .elimination import eliminate

NO_LINK = -1
NO_SIDE = -1
UNREACHED = 2**61  # twice it fits int64
MAX_SUM = 2**58  # what the weights of all links may add up to
UP, DOWN = 0, 1
_BLOCK = 1 << 14  # links of an item of work
_SUBTREES = 16  # a share of the ranks has no more of the triangles than one of so many
_FEW_TRIANGLES = 1 << 16  # which take less time than threads to begin


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
    """A hierarchy for any weights."""

    topology: Topology  # its arcs, between ranks
    rank: np.ndarray  # int32 array of shape (n,): the rank of each vertex; rank 0 is the lowest
    n_triangles: int


def make_customizable(
    n: int, tails: np.ndarray, heads: np.ndarray, is_end: np.ndarray, most_triangles: int
) -> Customizable | None:
    """Return the hierarchy of links between n vertices; None if it had more than
    ``most_triangles``.

    ``tails`` and ``heads`` (n_links,) int: the ends of each link. ``is_end`` (n,) bool: vertices
    with links in one direction only, so that no path leads through.
    """
    offsets, neighbors = _join_directions(n, tails, heads)
    elimination = eliminate(offsets, neighbors, is_end, most_triangles)
    if elimination is None:
        return None
    rank = np.empty(n, np.int32)
    rank[elimination.order] = np.arange(n, dtype=np.int32)
    sides = np.empty(tails.size, np.int32)
    threads.run(
        _find_sides,
        -(-tails.size // _BLOCK),
        (rank[tails], rank[heads]),
        elimination.offsets,
        elimination.heads,
        sides,
    )
    below, below_offsets = stable_order(elimination.heads, n)
    topology = Topology(
        offsets=elimination.offsets,
        heads=elimination.heads,
        tails=np.repeat(np.arange(n, dtype=np.int32), np.diff(elimination.offsets)),
        below_offsets=below_offsets,
        below=below.astype(np.int32),
        sides=sides,
        n_ends=int(is_end.sum()),
    )
    return Customizable(topology, rank, elimination.n_triangles)


def _join_directions(n: int, tails: np.ndarray, heads: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the neighbors of each vertex, in either direction, in ascending order, each once:
    offsets int64 and neighbors int32.
    """
    ends = np.concatenate([tails, heads])
    others = np.concatenate([heads, tails])
    order = stable_order(others, n)[0]
    by_end, offsets = stable_order(ends[order], n)
    neighbors: Any = _drop_repeated(offsets, others[order[by_end]])
    return offsets, neighbors


@njit(cache=True, nogil=True)
def _drop_repeated(offsets, neighbors):
    """Drop loops and repeated neighbors from sorted lists, and return the neighbors that stay.

    ``offsets`` and ``neighbors`` are changed: the first become those of the new lists.
    """
    n_kept = np.int64(0)
    begin = np.int64(0)
    for v in range(offsets.size - 1):
        last = v
        for i in range(begin, offsets[v + 1]):
            if neighbors[i] != v and neighbors[i] != last:
                last = neighbors[i]
                neighbors[n_kept] = last
                n_kept += 1
        begin = offsets[v + 1]
        offsets[v + 1] = n_kept
    return neighbors[:n_kept].copy()


@njit(cache=True, nogil=True)
def _find_sides(next_item, n_items, ends, offsets, heads, sides):
    """Write the side of each link, as ``Topology.sides`` has it, per block of ``_BLOCK`` links.

    ``ends`` are the ranks of the tails and of the heads of the links, ``offsets`` and ``heads`` the
    arcs.
    """
    tails_of_links, heads_of_links = ends
    while True:
        block = atomic_add(next_item, 0, 1)
        if block >= n_items:
            break
        for link in range(block * _BLOCK, min((block + 1) * _BLOCK, sides.size)):
            tail = tails_of_links[link]
            head = heads_of_links[link]
            if tail == head:
                sides[link] = NO_LINK
                continue
            low = min(tail, head)
            above = heads[offsets[low] : offsets[low + 1]]
            arc = offsets[low] + np.searchsorted(above, max(tail, head))
            sides[link] = 2 * arc + (tail > head)


class Arcs(NamedTuple):
    """The arcs at some costs, each upward and downward: side ``2 * arc + UP`` and ``2 * arc + DOWN``.

    ``weights`` (2 * n_arcs,) int64: ``UNREACHED`` where there is no way. ``first`` and ``second``
    (2 * n_arcs,) int32 explain them: the link and ``NO_SIDE``, or the two sides of arcs below that are
    passed one after the other. Of several, the first link counts, then the lowest vertex.
    """

    weights: np.ndarray
    first: np.ndarray
    second: np.ndarray


def new_arcs(topology: Topology) -> Arcs:
    """Allocate the arcs for ``customize``."""
    n_sides = 2 * topology.heads.size
    return Arcs(
        np.empty(n_sides, np.int64), np.empty(n_sides, np.int32), np.empty(n_sides, np.int32)
    )


class Subtrees(NamedTuple):
    """Shares of the ranks that have neither an arc nor a triangle with each other, and the ranks
    above them all. Only ends have arcs to other shares: no weight and no volume of another arc
    follows from these.

    ``ranks`` (n,) int32, share by share, in ascending order in each. ``first`` int64: where each
    share begins, then the ranks above, and the end.
    """

    ranks: np.ndarray
    first: np.ndarray

    def run(self, kernel: Any, topology: Topology, *args: Any) -> None:
        """Call a kernel for all shares on all threads."""
        n_shares = self.first.size - 2
        if n_shares:
            threads.run(kernel, n_shares, self.ranks, self.first[:-1], topology, *args)

    def run_above(self, kernel: Any, topology: Topology, *args: Any) -> None:
        """Call a kernel for the ranks above all shares."""
        threads.run_alone(kernel, 1, self.ranks, self.first[-2:], topology, *args)


def find_subtrees(topology: Topology) -> Subtrees:
    """Return shares of the ranks: those below one rank, of which each has a small part of the
    triangles.
    """
    work = _count_triangles(topology)
    total = int(work.sum())
    if total < _FEW_TRIANGLES:
        largest = -1
    else:
        largest = total // _SUBTREES
    share, n_shares = _mark_subtrees(topology.offsets, topology.heads, work, largest)
    ranks, first = stable_order(share, n_shares + 1)
    return Subtrees(ranks.astype(np.int32), first)


def _count_triangles(topology: Topology) -> np.ndarray:
    """Return of how many triangles each rank is the one in the middle."""
    n_above = np.diff(topology.offsets)[topology.tails[topology.below]]
    added = np.concatenate([[0], np.cumsum(n_above)])
    return np.diff(added[topology.below_offsets])


@njit(cache=True, nogil=True)
def _mark_subtrees(offsets, heads, work, largest):
    """Return the share of each rank and the number of shares. That number is also the share of the
    ranks above all others.

    ``work`` are the triangles of each rank, and a share has at most ``largest`` of them. The lowest
    rank above a rank has all others above the rank above itself, unless the rank is an end. So what
    lies below one rank is a subtree.
    """
    below = work.copy()
    n_ranks = work.size
    for x in range(n_ranks):
        if offsets[x] < offsets[x + 1]:
            below[heads[offsets[x]]] += below[x]
    share = np.full(n_ranks, -1, np.int64)
    n_shares = 0
    for x in range(n_ranks - 1, -1, -1):
        if below[x] > largest:
            continue
        if offsets[x] < offsets[x + 1]:
            share[x] = share[heads[offsets[x]]]
        if share[x] < 0:
            share[x] = n_shares
            n_shares += 1
    for x in range(n_ranks):
        if share[x] < 0:
            share[x] = n_shares
    return share, n_shares


def customize(costs: np.ndarray, topology: Topology, subtrees: Subtrees, arcs: Arcs) -> None:
    """Set the arcs to those of the costs of the links, int64, which are at least 0, and all together
    at most ``MAX_SUM``.
    """
    _set_links(costs, topology, arcs)
    subtrees.run(_lower_arcs, topology, arcs)
    subtrees.run_above(_lower_arcs, topology, arcs)


@njit(cache=True, nogil=True)
def _set_links(costs, topology, arcs):
    """Set each side of the arcs to its cheapest link, of which the first counts; without one, it is
    unreached.
    """
    weights = arcs.weights
    first = arcs.first
    weights[:] = UNREACHED
    first[:] = NO_LINK
    arcs.second[:] = NO_SIDE
    for link in range(costs.size):
        side = topology.sides[link]
        if side != NO_LINK and costs[link] < weights[side]:
            weights[side] = costs[link]
            first[side] = link


@njit(cache=True, nogil=True)
def _lower_arcs(next_item, n_items, ranks, first_rank, topology, arcs):
    """Lower the arcs of each share of the ranks to the ways by lower vertices.

    The ranks of share i are ``ranks[first_rank[i] : first_rank[i + 1]]``, in ascending order.
    """
    offsets = topology.offsets
    heads = topology.heads
    weights = arcs.weights
    first = arcs.first
    second = arcs.second
    # by rank, the arc that leads there from ``middle``; not set where there is none
    arc_to = np.empty(offsets.size - 1, np.int32)

    # A triangle: two arcs of one vertex, ``bottom``, to ``middle`` and to a vertex above it, and
    # the arc of ``middle`` that joins these. ``middle`` ascends, so that the arcs of all vertices
    # below it are final, and with them those of ``bottom``.
    while True:
        share = atomic_add(next_item, 0, 1)
        if share >= n_items:
            break
        for middle in ranks[first_rank[share] : first_rank[share + 1]]:
            if middle < topology.n_ends:  # no path leads through, here and below
                continue
            for arc in range(offsets[middle], offsets[middle + 1]):
                arc_to[heads[arc]] = arc
            for i in range(topology.below_offsets[middle], topology.below_offsets[middle + 1]):
                low = 2 * np.int64(topology.below[i])
                bottom = topology.tails[low >> 1]
                if bottom < topology.n_ends:
                    continue
                up = weights[low + UP]
                down = weights[low + DOWN]
                for other in range((low >> 1) + 1, offsets[bottom + 1]):
                    high = 2 * other
                    side = 2 * np.int64(arc_to[heads[other]])
                    ahead = down + weights[high + UP]
                    back = weights[high + DOWN] + up
                    if ahead < weights[side + UP]:
                        weights[side + UP] = ahead
                        first[side + UP] = low + DOWN
                        second[side + UP] = high + UP
                    if back < weights[side + DOWN]:
                        weights[side + DOWN] = back
                        first[side + DOWN] = high + DOWN
                        second[side + DOWN] = low + UP


@njit(cache=True, nogil=True)
def find_shorter(next_item, n_items, first_rank, costs, topology, weights, is_shorter):
    """Set ``is_shorter``, bool, of each share of the ranks: True if a link or a triangle is shorter
    than the weight of its arc. If none is, no way between two vertices is shorter than the least
    one up and down.

    ``first_rank`` (n_items + 1,) int64: the first rank of each share, and the end. The first share
    also has all links.
    """
    offsets = topology.offsets
    heads = topology.heads
    arc_to = np.empty(offsets.size - 1, np.int32)
    while True:
        share = atomic_add(next_item, 0, 1)
        if share >= n_items:
            break
        smallest_difference = np.int64(0)  # negative once something is shorter than its arc
        if share == 0:
            for link in range(costs.size):
                if topology.sides[link] != NO_LINK:
                    smallest_difference = min(
                        smallest_difference, costs[link] - weights[topology.sides[link]]
                    )
        # the triangles, as in ``customize``
        for middle in range(first_rank[share], first_rank[share + 1]):
            for arc in range(offsets[middle], offsets[middle + 1]):
                arc_to[heads[arc]] = arc
            for i in range(topology.below_offsets[middle], topology.below_offsets[middle + 1]):
                low = 2 * np.int64(topology.below[i])
                bottom = topology.tails[low >> 1]
                if bottom < topology.n_ends:
                    continue
                up = weights[low + UP]
                down = weights[low + DOWN]
                for other in range((low >> 1) + 1, offsets[bottom + 1]):
                    side = 2 * np.int64(arc_to[heads[other]])
                    smallest_difference = min(
                        smallest_difference, down + weights[2 * other + UP] - weights[side + UP]
                    )
                    smallest_difference = min(
                        smallest_difference, weights[2 * other + DOWN] + up - weights[side + DOWN]
                    )
        is_shorter[share] = smallest_difference < 0


def equal_shares(topology: Topology, n_shares: int) -> np.ndarray:
    """Return the first rank of each share and one more, such that each has as many triangles, nearly."""
    added = np.concatenate([[0], np.cumsum(_count_triangles(topology))])
    first = np.searchsorted(added, np.arange(n_shares) * added[-1] / n_shares)
    return np.concatenate([first, [topology.offsets.size - 1]]).astype(np.int64)


def hand_down(
    costs: np.ndarray,
    topology: Topology,
    subtrees: Subtrees,
    arcs: Arcs,
    loads: np.ndarray,
    flow: np.ndarray,
) -> bool:
    """Add what the arcs carry to the links. Return whether all of it is, over links that cost as much.

    ``loads`` (2 * n_arcs,) float64: what each side carries; overwritten. ``flow`` (n_links,)
    float64. Sides descend: those that explain a side come before it in the arrays.
    """
    # The ranks above all shares come first, as what they carry is handed down to the shares. Of
    # several volumes on an arc, those of higher ranks are added first, and none is of another
    # share.
    are_right = np.ones(subtrees.first.size - 1, np.bool_)
    handed = costs, loads, flow
    subtrees.run_above(_hand_down, topology, arcs, handed, are_right[-1:])
    subtrees.run(_hand_down, topology, arcs, handed, are_right)
    return bool(are_right.all())


@njit(cache=True, nogil=True)
def _hand_down(next_item, n_items, ranks, first_rank, topology, arcs, handed, are_right):
    """Hand down what the arcs of each share of the ranks carry, from the highest rank on.

    ``handed`` are the costs, loads and flow of ``hand_down``. ``are_right``, bool, receives per
    share whether all that it carried was handed down, over links and arcs that cost as much.
    """
    costs, loads, flow = handed
    weights = arcs.weights
    while True:
        share = atomic_add(next_item, 0, 1)
        if share >= n_items:
            break
        is_right = True
        for i in range(first_rank[share + 1] - 1, first_rank[share] - 1, -1):
            x = ranks[i]
            for side in range(2 * topology.offsets[x + 1] - 1, 2 * topology.offsets[x] - 1, -1):
                load = loads[side]
                if load == 0.0:
                    continue
                first = arcs.first[side]
                second = arcs.second[side]
                if second != NO_SIDE:  # both are below
                    loads[first] += load
                    loads[second] += load
                    is_right &= weights[first] + weights[second] == weights[side]
                elif first != NO_LINK:
                    flow[first] += load
                    is_right &= costs[first] == weights[side]
                else:
                    is_right = False
        are_right[share] = is_right


@njit(cache=True, nogil=True)
def mark_sides(arcs, is_marked, marks):
    """Set ``marks``, uint8 of shape (2 * n_arcs,), of each side that ``hand_down`` would hand down
    to a link that is marked.

    ``is_marked`` has shape (n_links,). Sides ascend: those that explain a side come before it in
    the arrays.
    """
    for side in range(marks.size):
        first = arcs.first[side]
        second = arcs.second[side]
        if second != NO_SIDE:
            marks[side] = marks[first] | marks[second]
        else:
            marks[side] = first != NO_LINK and is_marked[first]


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

    def numbers_at(self, ranks: np.ndarray) -> np.ndarray:
        """Return the numbers of ranks that the part has, int32."""
        return np.searchsorted(self.ranks, ranks).astype(np.int32)


def part_above(topology: Topology, ranks: np.ndarray) -> Part:
    """Return the part above some ranks, these included."""
    is_above = np.zeros(topology.offsets.size - 1, np.bool_)
    is_above[ranks] = True
    _mark_above(topology.offsets, topology.heads, is_above)
    ranks_above = np.flatnonzero(is_above).astype(np.int32)
    number = np.cumsum(is_above, dtype=np.int32) - np.int32(1)
    arcs = np.flatnonzero(is_above[topology.tails]).astype(np.int32)
    n_above = np.diff(topology.offsets)[ranks_above]
    return Part(
        ranks=ranks_above,
        offsets=np.concatenate([[0], np.cumsum(n_above)]).astype(np.int64),
        heads=number[topology.heads[arcs]],
        tails=number[topology.tails[arcs]],
        arcs=arcs,
    )


@njit(cache=True, nogil=True)
def _mark_above(offsets, heads, is_above):
    """Mark the heads of the arcs of all marked ranks. Ranks ascend, as heads are above."""
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
    """Write ``list_offsets``, and return the numbers above each of ``starts``; see ``lists_above``."""
    n = offsets.size - 1
    numbers = np.empty(1024, np.int32)
    is_seen = np.zeros(n, np.bool_)
    size = np.int64(0)
    for i_start in range(starts.size):
        begin = size
        next_number = begin
        if size + n > numbers.size:  # a list has n numbers at most
            larger = np.empty(2 * numbers.size + n, np.int32)
            larger[:size] = numbers[:size]
            numbers = larger
        numbers[size] = starts[i_start]
        is_seen[starts[i_start]] = True
        size += 1
        while next_number < size:
            v = numbers[next_number]
            next_number += 1
            for arc in range(offsets[v], offsets[v + 1]):
                if not is_seen[heads[arc]]:
                    is_seen[heads[arc]] = True
                    numbers[size] = heads[arc]
                    size += 1

        numbers[begin:size].sort()
        for i in range(begin, size):
            is_seen[numbers[i]] = False
        list_offsets[i_start + 1] = size
    return numbers[:size].copy()
