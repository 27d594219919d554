"""A hierarchy for any weights of a graph: its edges are found once, and each set of weights takes one
pass over its triangles (Dibbelt, Strasser, Wagner 2014).

Vertices are numbered by ranks, rank 0 at the bottom. Links are the directed edges of the graph. An
arc joins two ranks in both directions; a side is an arc in one direction, number ``2 * arc + UP``
or ``2 * arc + DOWN``. Where two vertices have arcs from a third one below them, an arc joins them:
the three arcs are a triangle. The weight of a side is the least of its links, and of each way by a
vertex below both of its ends. So from each vertex to each other one a shortest path leads upward
first and then downward.

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

NO_LINK = -1  # in ``Arcs.first``: no way; in ``Topology.sides``: a link from a vertex to itself
NO_SIDE = -1  # in ``Arcs.second``: a link explains the weight, or nothing does
UNREACHED = 2**61  # the weight where there is no way; a sum of two of them fits int64
MAX_SUM = 2**58  # the costs of all links may add up to this at most
UP, DOWN = 0, 1  # the directions of an arc: from its lower rank to the higher one, and back
_BLOCK = 1 << 14  # links that a thread takes at a time
_SUBTREES = 16  # a share of the ranks has at most one part in this many of all triangles
_FEW_TRIANGLES = 1 << 16  # fewer take less time than it takes to wake the threads


class Topology(NamedTuple):
    """The arcs between ranks, for all weights.

    ``offsets`` (n + 1,) int64, ``heads`` (n_arcs,) int32: the arcs of rank v are those from
    ``offsets[v]`` up to ``offsets[v + 1]``, and lead to the ranks ``heads`` above it, in ascending
    order. ``tails`` (n_arcs,) int32: the lower rank of each arc. ``below_offsets`` (n + 1,) int64,
    ``below`` (n_arcs,) int32: the numbers of the arcs that lead up to each rank, by ascending
    tails. ``sides`` (n_links,) int32: the side of each link, ``2 * arc + UP`` or ``2 * arc +
    DOWN``; ``NO_LINK`` for a link from a vertex to itself. ``n_ends`` int: the number of ranks
    through which no path leads; they are the lowest.
    """

    offsets: np.ndarray
    heads: np.ndarray
    tails: np.ndarray
    below_offsets: np.ndarray
    below: np.ndarray
    sides: np.ndarray
    n_ends: int


class Customizable(NamedTuple):
    """A hierarchy without weights, which fits any weights of its links."""

    topology: Topology  # its arcs, between ranks
    rank: np.ndarray  # int32 array of shape (n,): the rank of each vertex; rank 0 is the lowest
    n_triangles: int  # pairs of arcs of one rank upward: the work of a set of weights


def make_customizable(
    n: int, tails: np.ndarray, heads: np.ndarray, is_end: np.ndarray, most_triangles: int
) -> Customizable | None:
    """Return the hierarchy of links between n vertices; None if it would have more than
    ``most_triangles`` triangles.

    ``tails`` and ``heads`` (n_links,) int: the vertices that each link leaves and enters.
    ``is_end`` (n,) bool: True for a vertex with links in one direction only, so that no path leads
    through it.
    """
    # The order of the vertices, and the arcs: from each rank to the neighbors above it, which it
    # has when it is taken out of the graph. None if there would be too many triangles.
    offsets, neighbors = _join_directions(n, tails, heads)
    elimination = eliminate(offsets, neighbors, is_end, most_triangles)
    if elimination is None:
        return None

    # The arc of each link, and the arcs that lead to each rank from below.
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
    """Return the neighbors of each vertex over links in either direction, in ascending order, each
    once and without the vertex itself.

    The result is offsets int64 (n + 1,), where the list of each vertex begins, and neighbors int32.
    """
    ends = np.concatenate([tails, heads])
    others = np.concatenate([heads, tails])
    # Sort by the neighbor, and then stably by the vertex.
    order = stable_order(others, n)[0]
    by_end, offsets = stable_order(ends[order], n)
    neighbors: Any = _drop_repeated(offsets, others[order[by_end]])
    return offsets, neighbors


@njit(cache=True, nogil=True)
def _drop_repeated(offsets, neighbors):
    """Drop loops (a vertex that is its own neighbor) and repeated neighbors from sorted lists, and
    return the neighbors that stay.

    ``offsets`` (n + 1,) become those of the new lists. ``neighbors`` is overwritten, too: what
    stays moves to its front.
    """
    n_kept = np.int64(0)
    begin = np.int64(0)  # of the old list, as ``offsets[v]`` is that of the new one already
    for v in range(offsets.size - 1):
        last = v  # the last neighbor that was kept
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
    """Write to ``sides`` the side of each link, ``2 * arc + UP`` or ``2 * arc + DOWN``, and
    ``NO_LINK`` for a link from a vertex to itself, per block of ``_BLOCK`` links.

    ``ends`` are the ranks of the tails and of the heads of the links. ``offsets`` and ``heads`` are
    the arcs, as in ``Topology``. ``next_item``: the counter from which threads take blocks 0 to
    ``n_items`` - 1.
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
            # The arc of a link is one of its lower rank, whose heads are sorted.
            low = min(tail, head)
            above = heads[offsets[low] : offsets[low + 1]]
            arc = offsets[low] + np.searchsorted(above, max(tail, head))
            sides[link] = 2 * arc + (tail > head)  # 1, which is ``DOWN``, from the higher rank


class Arcs(NamedTuple):
    """The weights of all sides (an arc in one direction, ``2 * arc + UP`` or ``2 * arc + DOWN``) at
    some costs of the links, and what explains each.

    ``weights`` (2 * n_arcs,) int64: ``UNREACHED`` where there is no way. ``first`` and ``second``
    (2 * n_arcs,) int32: if a link explains the weight, its number and ``NO_SIDE``; if a way by a
    lower vertex does, the two sides of lower arcs in the order in which the way passes them; if
    there is no way, ``NO_LINK`` and ``NO_SIDE``. Where several explain it, a link takes precedence
    over ways, the link with the smallest number over other links, and the way by the lowest vertex
    over other ways.
    """

    weights: np.ndarray
    first: np.ndarray
    second: np.ndarray


def new_arcs(topology: Topology) -> Arcs:
    """Allocate the arrays that ``customize`` fills."""
    n_sides = 2 * topology.heads.size
    return Arcs(
        np.empty(n_sides, np.int64), np.empty(n_sides, np.int32), np.empty(n_sides, np.int32)
    )


class Subtrees(NamedTuple):
    """Shares of the ranks on which threads can work independently, and the ranks above all shares.

    No arc and no triangle joins two shares. The exception are arcs of ends (ranks through which no
    path leads): they may lead to other shares, but no weight and no volume of another arc follows
    from them.

    ``ranks`` (n,) int32: the ranks share by share, ascending within each, and at last the ranks
    above all shares. ``first`` (n_shares + 2,) int64: where each share begins in ``ranks``, where
    the ranks above begin, and the end.
    """

    ranks: np.ndarray
    first: np.ndarray

    def run(self, kernel: Any, topology: Topology, *args: Any) -> None:
        """Call a kernel for all shares, on all threads: ``kernel(next_item, n_items, ranks,
        first_rank, topology, *args)``, where the ranks of share i are ``ranks[first_rank[i] :
        first_rank[i + 1]]``.
        """
        n_shares = self.first.size - 2
        if n_shares:
            threads.run(kernel, n_shares, self.ranks, self.first[:-1], topology, *args)

    def run_above(self, kernel: Any, topology: Topology, *args: Any) -> None:
        """Call a kernel as ``run`` does, for the ranks above all shares as one share, on the
        calling thread.
        """
        threads.run_alone(kernel, 1, self.ranks, self.first[-2:], topology, *args)


def find_subtrees(topology: Topology) -> Subtrees:
    """Return independent shares of the ranks. Each is a rank with all ranks below it that has a
    small part of the triangles; the other ranks are above all shares.

    Where there are few triangles there is no share, since threads would not pay.
    """
    work = _count_triangles(topology)
    total = int(work.sum())
    if total < _FEW_TRIANGLES:
        largest = -1  # no rank has so few triangles, so all are above the shares
    else:
        largest = total // _SUBTREES
    share, n_shares = _mark_subtrees(topology.offsets, topology.heads, work, largest)
    ranks, first = stable_order(share, n_shares + 1)
    return Subtrees(ranks.astype(np.int32), first)


def _count_triangles(topology: Topology) -> np.ndarray:
    """Return an upper bound of the triangles of which each rank is the middle one, int64 of shape
    (n,): the sum, over the arcs to it from below, of the arcs upward of their tails.
    """
    n_above = np.diff(topology.offsets)[topology.tails[topology.below]]
    # A sum over the arcs below each rank is a difference of two cumulative sums.
    added = np.concatenate([[0], np.cumsum(n_above)])
    return np.diff(added[topology.below_offsets])


@njit(cache=True, nogil=True)
def _mark_subtrees(offsets, heads, work, largest):
    """Return the share of each rank, int64 of shape (n,), and the number of shares. Ranks above all
    shares have the number of shares as their share.

    ``work`` (n,) are the triangles of each rank, and a share has at most ``largest`` of them. The
    lowest neighbor above a rank has arcs to all other neighbors above that rank, unless the rank is
    an end. So the ranks are a tree in which the parent of a rank is its lowest neighbor above, and
    a share is a subtree.
    """
    # the triangles of the subtree below each rank, itself included
    below = work.copy()
    n_ranks = work.size
    for x in range(n_ranks):
        if offsets[x] < offsets[x + 1]:
            below[heads[offsets[x]]] += below[x]
    # From the top: a rank whose subtree is small is of the share of its parent, or, where the
    # parent has none, begins a new one.
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
    """Set the weights of ``arcs``, and what explains them, from the costs of the links.

    ``costs`` (n_links,) int64 are at least 0, and add up to at most ``MAX_SUM``; ``UNREACHED``
    leaves a link out.
    """
    # The weights of links, and then the ways by lower ranks. Weights of lower arcs must be final
    # before those above: the shares of the ranks on all threads, then the ranks above them.
    _set_links(costs, topology, arcs)
    subtrees.run(_lower_arcs, topology, arcs)
    subtrees.run_above(_lower_arcs, topology, arcs)


@njit(cache=True, nogil=True)
def _set_links(costs, topology, arcs):
    """Set the weight of each side (an arc in one direction) to the cost of its cheapest link, the
    first of equally cheap ones, and note this link. A side without a link is ``UNREACHED``.

    ``costs`` (n_links,) int64 are those of the links. ``arcs``, written, are ``Arcs``.
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
    """Lower the weights of the arcs of each share of the ranks to the shortest ways by lower ranks,
    and note the two sides of each such way. ``arcs``, written, are ``Arcs`` after ``_set_links``.

    The ranks of share i are ``ranks[first_rank[i] : first_rank[i + 1]]``, in ascending order.
    ``next_item``: the counter from which threads take shares 0 to ``n_items`` - 1.
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
            if middle < topology.n_ends:  # an end: no path leads through it
                continue
            for arc in range(offsets[middle], offsets[middle + 1]):
                arc_to[heads[arc]] = arc
            for i in range(topology.below_offsets[middle], topology.below_offsets[middle + 1]):
                # ``low`` and ``high`` are the first sides of the two arcs of ``bottom``, and
                # ``side`` that of the arc that joins their heads.
                low = 2 * np.int64(topology.below[i])
                bottom = topology.tails[low >> 1]
                if bottom < topology.n_ends:
                    continue
                up = weights[low + UP]
                down = weights[low + DOWN]
                # Later arcs of ``bottom`` lead above ``middle``. ``ahead`` is the way by ``bottom``
                # from ``middle`` up to there, and ``back`` the way down to ``middle``.
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
    """Set ``is_shorter`` (n_items,) bool of each share of the ranks: True if a link or a way by a
    lower rank (a triangle) is shorter than the weight of its side.

    If none is, the weights are proved: no way between two vertices is shorter than the shortest way
    that leads up first and then down. ``first_rank`` (n_items + 1,) int64: the first rank of each
    share, and the end. The first share also checks all links. ``next_item``: the counter from which
    threads take shares 0 to ``n_items`` - 1.
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
        # The triangles, as in ``_lower_arcs``.
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
    """Return the first rank of each of ``n_shares`` ranges of ranks with about as many triangles
    each, and the number of ranks: int64 of shape (n_shares + 1,).
    """
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
    """Add the volumes on the sides to the links that the sides stand for.

    A side passes its volume to the link that explains its weight, or to the two sides of lower arcs
    that explain it together. These pass it on in turn.

    Parameters
    ----------
    costs : int64 array of shape (n_links,)
    topology : Topology
    subtrees : Subtrees
    arcs : Arcs
        As ``customize`` has set them at these costs.
    loads : float64 array of shape (2 * n_arcs,)
        The volume on each side; overwritten.
    flow : float64 array of shape (n_links,)
        The volumes are added to it.

    Returns
    -------
    bool
        Whether all volumes reached links, and the costs of these add up to the weights of the
        sides.
    """
    # The ranks above all shares come first, as what they carry is handed down to the shares. Of
    # several volumes on an arc, those of higher ranks are added first, and none comes from another
    # share. So the order of additions does not depend on the threads.
    are_right = np.ones(subtrees.first.size - 1, np.bool_)
    handed = costs, loads, flow
    subtrees.run_above(_hand_down, topology, arcs, handed, are_right[-1:])
    subtrees.run(_hand_down, topology, arcs, handed, are_right)
    return bool(are_right.all())


@njit(cache=True, nogil=True)
def _hand_down(next_item, n_items, ranks, first_rank, topology, arcs, handed, are_right):
    """Hand down the volumes on the arcs of each share of the ranks, from the highest rank on.

    ``handed`` are the arguments ``costs``, ``loads`` and ``flow`` of ``hand_down``. ``are_right``
    (n_items,) bool receives per share whether all of its volumes were handed down, over links and
    arcs that cost as much. The ranks of share i are ``ranks[first_rank[i] : first_rank[i + 1]]``.
    ``next_item``: the counter from which threads take shares 0 to ``n_items`` - 1.
    """
    # Sides are visited from the last to the first. The sides that explain one come before it in the
    # arrays, so each side has received all volumes when it is visited.
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
                if second != NO_SIDE:  # two sides of lower arcs explain it, else a link
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
    """Set ``marks`` (2 * n_arcs,) uint8 of each side: 1 if the links that it stands for, those that
    ``hand_down`` would add its volume to, include a marked one, else 0.

    ``is_marked`` (n_links,) bool: True for a marked link.
    """
    # Sides ascend: those that explain a side come before it in the arrays.
    for side in range(marks.size):
        first = arcs.first[side]
        second = arcs.second[side]
        if second != NO_SIDE:
            marks[side] = marks[first] | marks[second]
        else:
            marks[side] = first != NO_LINK and is_marked[first]


class Part(NamedTuple):
    """Some ranks of a hierarchy, all ranks that arcs upward from them lead to, and the arcs between
    them.

    ``ranks`` (n_part,) int32: the ranks in ascending order. The number of a rank is its position
    there. ``offsets`` (n_part + 1,) int64, ``heads`` and ``tails`` (n_part_arcs,) int32: the arcs
    from each number to numbers above it, and the lower number of each arc. ``arcs`` (n_part_arcs,)
    int32: the number of each of these arcs in the whole hierarchy.
    """

    ranks: np.ndarray
    offsets: np.ndarray
    heads: np.ndarray
    tails: np.ndarray
    arcs: np.ndarray

    def numbers_at(self, ranks: np.ndarray) -> np.ndarray:
        """Return the number in the part of each of ``ranks``, int32. All must be in the part."""
        return np.searchsorted(self.ranks, ranks).astype(np.int32)


def part_above(topology: Topology, ranks: np.ndarray) -> Part:
    """Return the part of a hierarchy above some ranks, these included; ``ranks`` may be in any
    order and repeat.
    """
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
    """Mark in ``is_above`` (n,) bool all ranks that arcs upward from marked ranks lead to.

    One pass in ascending order is enough, since an arc leads to a higher rank.
    """
    for x in range(is_above.size):
        if is_above[x]:
            for arc in range(offsets[x], offsets[x + 1]):
                is_above[heads[arc]] = True


def lists_above(part: Part, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return for each of ``starts``, which are numbers of ``part``, the list of the numbers above
    it, in ascending order, itself first.

    The result is where each list begins, and the end, int64 of shape (n_starts + 1,); and the
    lists, one after the other, int32: list i is ``lists[offsets[i] : offsets[i + 1]]``.
    """
    list_offsets = np.zeros(starts.size + 1, np.int64)
    numbers: Any = _lists_above(part.offsets, part.heads, starts, list_offsets)
    return list_offsets, numbers


@njit(cache=True, nogil=True)
def _lists_above(offsets, heads, starts, list_offsets):
    """Return the lists of ``lists_above``, one after the other, and write where each begins to
    ``list_offsets`` (n_starts + 1,).

    ``offsets`` and ``heads`` are the arcs of the part.
    """
    n = offsets.size - 1
    numbers = np.empty(1024, np.int32)  # the lists so far; it grows
    is_seen = np.zeros(n, np.bool_)
    size = np.int64(0)
    for i_start in range(starts.size):
        begin = size
        next_number = begin
        if size + n > numbers.size:  # a list has n numbers at most
            larger = np.empty(2 * numbers.size + n, np.int32)
            larger[:size] = numbers[:size]
            numbers = larger
        # Search along arcs upward; the list is also the queue.
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
