"""Volumes on shortest paths over a customizable hierarchy, for eight origins side by side.

An origin is searched upward, over all arcs above it. One sweep downward, over what lies above the
destinations of all pairs, finds the distances (RPHAST). The same arcs in reverse order carry the
volumes back: from each vertex over the first arc that explains its distance, or, where the search
upward does, down to the origin. This pass also proves the distances: no arc may make a vertex
nearer. Volumes are added up on arcs; ``customizable.hand_down`` hands them to the links.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..cpu.atomics import atomic_add
from ..cpu.compiled import njit
from ..cpu.edges import Edges
from ..cpu.simd_sums import compare_line, lower_line
from ..hierarchy.customizable import DOWN, UNREACHED, UP, Part
from ..hierarchy.sweep import DOUBLINGS, LANES, aligned_lines
from .link_costs import BLOCK
from .path_flows import Demand

KIND = np.dtype(np.int64)  # of distances
# Groups of a block: as many as there are int64 numbers in a cache line. Each has a lane, a column
# of the arrays of ``SweepScratch``.
WIDTH = LANES[KIND]
_NOTHING = np.int64(UNREACHED)  # the distance where there is no path
_SIDE_BY_SIDE = DOUBLINGS[KIND]  # tells ``simd_sums`` at compile time how many lanes a line has
# In results of ``compare_line``: the bits of lanes whose distances an arc explains exactly. The
# bits above are of lanes in which the arc would lower a distance.
_ALL = (1 << WIDTH) - 1
NO_ARC = -1


class Ground(NamedTuple):
    """The parts of a hierarchy that the searches of all groups of trips need.

    A group is a class and an origin. A number is the position of a vertex in one of the two parts;
    numbers ascend from the bottom of the hierarchy to its top.
    """

    rise: Part  # the vertices above the origins, origins included
    fall: Part  # the vertices above the destinations, destinations included
    # int32 (n_rise,): the number in ``fall`` of the vertex with each number of ``rise``; -1 if it
    # is not in ``fall``
    meets: np.ndarray
    start: np.ndarray  # int32 (n_groups,): which list of ``lists`` belongs to the origin
    # list_offsets, lists: int64 (n_lists + 1,) and int32: one list per origin, with the numbers of
    # ``rise`` above it in ascending order, so that the origin itself is the first
    list_offsets: np.ndarray
    lists: np.ndarray
    end: np.ndarray  # int32 (n_pairs,): the number in ``fall`` of the destination of each pair

    def sides(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the sides (arcs in one direction, ``2 * arc + UP`` or ``+ DOWN``) of the whole
        hierarchy that the searches follow: those upward of ``rise``, and those downward of
        ``fall``.
        """
        return 2 * self.rise.arcs + UP, 2 * self.fall.arcs + DOWN


class Trips(NamedTuple):
    """The trips of one class, in blocks of ``WIDTH`` groups.

    ``groups`` (2,): the first group of the class, and the group after its last. ``first_block``
    (n_items + 1,) int64: the first block of each item of work, and the number of blocks.
    ``demand`` has the pairs of all groups.
    """

    groups: np.ndarray
    first_block: np.ndarray
    demand: Demand


class Weights(NamedTuple):
    """The weights of the arcs of both parts at the costs of one class.

    ``rise`` and ``fall`` int64, by the arcs of the part: weights upward and downward.
    ``rise_marks`` and ``fall_marks`` uint8, likewise: 1 if the links that the arc stands for
    include a selected one, else 0; of size 0 if no link is selected.
    """

    rise: np.ndarray
    fall: np.ndarray
    rise_marks: np.ndarray
    fall_marks: np.ndarray


class Carried(NamedTuple):
    """The volumes on the arcs, float64, with a row per share of the blocks, so that each share is
    added up by one thread in a fixed order.

    ``rise`` (n_shares, arcs of the part above the origins): upward. ``fall`` (n_shares, arcs of
    the part above the destinations): downward.
    """

    rise: np.ndarray
    fall: np.ndarray


class SweepScratch(NamedTuple):
    """The working memory of one thread for a block of groups.

    A lane, from 0 to ``WIDTH`` - 1, is a group of the block at work. ``n_rise`` and ``n_fall`` are
    the sizes of the two parts of ``Ground``; rows are numbers of a part.
    """

    lines: np.ndarray  # int64 (n_fall, WIDTH): distances from the origin of each lane
    # float64 (n_fall, WIDTH): the volume at each number that is not passed on towards the origin
    # yet; all 0 between blocks
    waiting: np.ndarray
    # uint8 (n_fall,): bit i is set if the path of lane i to this number leads upward only, so that
    # its distance is that of the search upward; all 0 between blocks
    from_below: np.ndarray
    # int32 (n_fall, WIDTH): the last arc of the path, an arc of ``fall``; ``NO_ARC`` if nothing was
    # carried over it; no rows if no link is selected
    parents: np.ndarray
    # uint8 (n_fall, WIDTH): 1 if the path uses a selected link; no rows if no link is selected
    uses: np.ndarray
    tentative: np.ndarray  # int64 (n_rise,): distances of a search upward; else all UNREACHED
    entry: np.ndarray  # int32 (n_rise,): the last arc of each path upward, an arc of ``rise``
    climb: np.ndarray  # float64 (n_rise,): volumes that paths upward carry; all 0 between origins
    climb_uses: np.ndarray  # uint8 (n_rise,): 1 if the path upward uses a selected link
    # int64 (WIDTH, longest list): per lane, distances upward of the numbers in the list of its
    # origin, in their order
    far: np.ndarray
    via: np.ndarray  # int32 (WIDTH, longest list): likewise the last arc of each path upward


def new_scratch(ground: Ground, keeps_parents: bool) -> SweepScratch:
    """Allocate the scratch of one thread.

    ``keeps_parents``: whether links are selected. Volumes of paths over selected links go over the
    same arcs a second time, so these arcs are kept.
    """
    n_fall = ground.fall.ranks.size
    n_rise = ground.rise.ranks.size
    longest = int(np.diff(ground.list_offsets).max(initial=0))
    n_kept = n_fall if keeps_parents else 0
    return SweepScratch(
        lines=aligned_lines(n_fall, KIND),
        waiting=np.zeros((n_fall, WIDTH)),
        from_below=np.zeros(n_fall, np.uint8),
        parents=np.empty((n_kept, WIDTH), np.int32),
        uses=np.empty((n_kept, WIDTH), np.uint8),
        tentative=np.full(n_rise, _NOTHING),
        entry=np.empty(n_rise, np.int32),
        climb=np.zeros(n_rise),
        climb_uses=np.empty(n_rise, np.uint8),
        far=np.empty((WIDTH, longest), np.int64),
        via=np.empty((WIDTH, longest), np.int32),
    )


@njit(cache=True, nogil=True)
def load_shares(next_item, n_items, trips, ground, weights, results, scratch):
    """Find the distances of the trips of one class, and put their volumes on the arcs of their
    paths.

    Parameters
    ----------
    next_item, n_items : int64 array, int
        The counter from which threads take shares of the trips, and the number of shares.
    trips : Trips
        The groups of the class in blocks, and the first block of each share.
    ground : Ground
    weights : Weights
    results : tuple, output
        The distance of each pair in whole numbers, int64 of shape (n_pairs,), ``UNREACHED`` or more
        without a path; the volumes on the arcs, ``Carried``;
        a bool per share: whether its distances are proved; the volume of each pair whose path uses
        a selected link, float64 of shape (n_pairs,), or of size 0 if no link is selected; and the
        volumes of these paths on the arcs, ``Carried``.
    scratch : SweepScratch
        The memory of this thread.
    """
    demand = trips.demand
    distance, carried, is_proved, selected_volume, selected_carried = results
    while True:
        share = atomic_add(next_item, 0, 1)
        if share >= n_items:
            break
        is_right = True  # whether all distances so far are proved
        for block in range(trips.first_block[share], trips.first_block[share + 1]):
            # The groups of the block are ``first`` to ``last`` - 1; the last block may have fewer
            # than ``WIDTH``.
            first = trips.groups[0] + block * WIDTH
            last = min(first + WIDTH, trips.groups[1])
            # The distances: upward from each origin, then downward for all of the block.
            scratch.lines[:] = _NOTHING
            for group in range(first, last):
                is_right &= _rise(group - first, ground.start[group], ground, weights, scratch)
            _fall(ground.fall, weights.fall, scratch.lines)
            for group in range(first, last):
                is_right &= _join(group - first, ground.start[group], ground, scratch)
                for pair in range(demand.first_pair[group], demand.first_pair[group + 1]):
                    near = scratch.lines[ground.end[pair], group - first]
                    distance[pair] = near
                    if near < _NOTHING:  # a volume without a path is put nowhere
                        scratch.waiting[ground.end[pair], group - first] += demand.volume[pair]
            # The volumes, from the destinations back to the origins.
            is_right &= _carry_back(ground.fall, weights.fall, carried.fall[share], scratch)
            for group in range(first, last):
                _carry_down(
                    group - first, ground.start[group], ground, carried.rise[share], scratch
                )
            # Once more, for the volumes whose path uses a selected link.
            if selected_volume.size:
                _mark_paths(first, last, ground, weights, scratch)
                for group in range(first, last):
                    for pair in range(demand.first_pair[group], demand.first_pair[group + 1]):
                        end = ground.end[pair]
                        used = demand.volume[pair] * scratch.uses[end, group - first]
                        selected_volume[pair] = used
                        scratch.waiting[end, group - first] += used
                _carry_again(ground.fall, selected_carried.fall[share], scratch)
                for group in range(first, last):
                    _carry_down(
                        group - first,
                        ground.start[group],
                        ground,
                        selected_carried.rise[share],
                        scratch,
                    )
            scratch.from_below[:] = 0
        is_proved[share] = is_right


@njit(cache=True, nogil=True)
def add_up_shares(next_item, n_items, rows, sides, loads):
    """Write to ``loads`` the volume on each arc of a part, added over the shares in their order.

    ``rows`` (n_shares, n_part_arcs): the volumes per share. ``sides`` (n_part_arcs,): the position
    of each arc in ``loads`` (2 * n_arcs,), which has both directions of all arcs of the hierarchy.
    ``next_item``: the counter from which threads take blocks 0 to ``n_items`` - 1 of ``BLOCK``
    arcs.
    """
    while True:
        block = atomic_add(next_item, 0, 1)
        if block >= n_items:
            break
        for i in range(block * BLOCK, min((block + 1) * BLOCK, sides.size)):
            total = 0.0
            for share in range(rows.shape[0]):
                total += rows[share, i]
            loads[sides[i]] = total


@njit(cache=True, nogil=True)
def prove_distances(next_item, n_items, trips, hierarchy, links, results, scratch):
    """Find the distances of all pairs of a class, and prove them by the links alone.

    The distances of all vertices from an origin are right if that of the origin is 0, and no link
    makes a vertex nearer.

    Parameters
    ----------
    next_item, n_items : int64 array, int
        The counter from which threads take blocks of ``WIDTH`` groups, and their number.
    trips : Trips
    hierarchy : tuple of Ground, Weights
        ``fall`` of the ground must have all vertices.
    links : tuple of arrays of shape (n_links,)
        The numbers in ``fall`` of the tail and of the head of each link, and its cost, int64.
    results : tuple, output
        The distance of each pair, int64 of shape (n_pairs,), and a bool per block: whether its
        distances are proved.
    scratch : SweepScratch
        The memory of this thread.
    """
    demand = trips.demand
    ground, weights = hierarchy
    distance, is_proved = results
    tails, heads, costs = links
    while True:
        block = atomic_add(next_item, 0, 1)
        if block >= n_items:
            break
        # The groups of the block are ``first`` to ``last`` - 1.
        first = trips.groups[0] + block * WIDTH
        last = min(first + WIDTH, trips.groups[1])
        scratch.lines[:] = _NOTHING
        for group in range(first, last):
            _rise(group - first, ground.start[group], ground, weights, scratch)
        _fall(ground.fall, weights.fall, scratch.lines)
        is_right = True
        for group in range(first, last):
            # The origin is the first of its list, and is in ``fall``, which has all vertices.
            origin = ground.meets[ground.lists[ground.list_offsets[ground.start[group]]]]
            is_right &= scratch.lines[origin, group - first] == 0
            for pair in range(demand.first_pair[group], demand.first_pair[group + 1]):
                distance[pair] = scratch.lines[ground.end[pair], group - first]
        for link in range(costs.size):
            found = compare_line(
                scratch.lines, heads[link], tails[link], costs[link], _SIDE_BY_SIDE
            )
            is_right &= found <= _ALL  # a bit above is of a lane whose distance the link lowers
        is_proved[block] = is_right


@njit(cache=True, nogil=True)
def _rise(lane, start, ground, weights, scratch):
    """Search upward from an origin, and write the distances to ``scratch.far`` and, for vertices
    that are also in ``ground.fall``, to ``scratch.lines``. Return whether they are proved: the
    origin has distance 0, and no arc upward makes a vertex nearer.

    ``lane`` is the column of the group in the lines, and ``start`` the list of its origin.
    """
    offsets = ground.rise.offsets
    heads = ground.rise.heads
    lengths = weights.rise
    tentative = scratch.tentative
    entry = scratch.entry
    numbers = ground.lists[ground.list_offsets[start] : ground.list_offsets[start + 1]]
    # Relax the arcs of all numbers above the origin, which are in ascending order.
    tentative[numbers[0]] = 0
    entry[numbers[0]] = NO_ARC
    for v in numbers:
        far = tentative[v]
        if far == _NOTHING:
            continue
        for arc in range(offsets[v], offsets[v + 1]):
            if far + lengths[arc] < tentative[heads[arc]]:
                tentative[heads[arc]] = far + lengths[arc]
                entry[heads[arc]] = arc
    # Prove that no arc makes a vertex nearer.
    is_right = tentative[numbers[0]] == 0
    for v in numbers:
        far = tentative[v]
        for arc in range(offsets[v], offsets[v + 1]):
            is_right &= far + lengths[arc] >= tentative[heads[arc]]
    # Keep the paths for the way back, and write the distances where both parts meet.
    for i in range(numbers.size):
        v = numbers[i]
        scratch.far[lane, i] = tentative[v]
        scratch.via[lane, i] = entry[v]
        if ground.meets[v] >= 0:
            scratch.lines[ground.meets[v], lane] = tentative[v]
    # Clear ``tentative`` for the next search, only where it was written: the whole array is long.
    for v in numbers:
        tentative[v] = _NOTHING
    return is_right


@njit(cache=True, nogil=True)
def _fall(fall, lengths, lines):
    """Sweep downward: lower the distances in ``lines`` of each number by its arcs from above, from
    the top of the hierarchy on.

    ``fall`` is the part above the destinations, ``lengths`` the weights of its arcs downward.
    ``lines`` hold the distances of the searches upward, ``_NOTHING`` elsewhere.
    """
    edges = Edges(fall.offsets, fall.heads, lengths)
    is_set = np.uint8(1)  # so that ``lower_line`` takes what the line holds into account
    for v in range(fall.offsets.size - 2, -1, -1):
        lower_line(lines, v, is_set, edges, _NOTHING, _SIDE_BY_SIDE)


@njit(cache=True, nogil=True)
def _join(lane, start, ground, scratch):
    """Set the bit of the lane in ``scratch.from_below`` for each number of ``fall`` whose final
    distance equals the distance that the search upward found.

    Return whether no final distance is larger than the distance of the search upward, which is part
    of the proof. ``lane`` is the column of the group, and ``start`` the list of its origin.
    ``scratch.lines`` has the final distances, and ``scratch.far`` those of the search upward.
    """
    begin = ground.list_offsets[start]
    is_right = True
    for i in range(ground.list_offsets[start + 1] - begin):
        at = ground.meets[ground.lists[begin + i]]
        if at >= 0:
            is_right &= scratch.lines[at, lane] <= scratch.far[lane, i]
            if scratch.far[lane, i] == scratch.lines[at, lane]:
                scratch.from_below[at] |= np.uint8(1 << lane)
    return is_right


@njit(cache=True, nogil=True)
def _carry_back(fall, lengths, flow, scratch):
    """Pass the volumes in ``scratch.waiting`` on towards the origins, over the arcs of ``fall`` in
    reverse, and add them to ``flow`` (n_part_arcs,).

    Numbers are visited from the lowest upward. Each passes its volume to the head of its first arc
    that explains the distance: the distance of the head and the weight add up to it. A volume stays
    where the search upward explains the distance; ``_carry_down`` takes it from there.

    Return whether the distances are proved (no arc makes a number nearer) and each volume was
    passed on. ``lengths`` are the weights of the arcs downward.
    """
    offsets = fall.offsets
    heads = fall.heads
    lines = scratch.lines
    waiting = scratch.waiting
    keeps_parents = scratch.parents.size > 0
    is_right = True
    for v in range(offsets.size - 1):
        # The lanes that have a volume to pass on by an arc of this part.
        lanes = np.uint64(0)
        for lane in range(WIDTH):
            if waiting[v, lane] != 0.0:
                lanes |= np.uint64(1 << lane)
        lanes &= ~np.uint64(scratch.from_below[v])
        if keeps_parents:
            scratch.parents[v] = NO_ARC
        # ``found``: bits of the lanes whose distance the arc explains; beyond ``_ALL`` if the arc
        # makes this number nearer in a lane, which the proof forbids.
        for arc in range(offsets[v], offsets[v + 1]):
            u = heads[arc]
            found = compare_line(lines, v, u, lengths[arc], _SIDE_BY_SIDE)
            is_right &= found <= _ALL
            moved = found & lanes
            if moved:
                lanes &= ~moved
                for lane in range(WIDTH):
                    if (moved >> np.uint64(lane)) & np.uint64(1):
                        volume = waiting[v, lane]
                        waiting[v, lane] = 0.0
                        waiting[u, lane] += volume
                        flow[arc] += volume
                        if keeps_parents:
                            scratch.parents[v, lane] = arc
        is_right &= lanes == 0  # no volume is left without an arc
    return is_right


@njit(cache=True, nogil=True)
def _carry_down(lane, start, ground, flow, scratch):
    """Pass the volumes that wait at the ends of paths upward down to the origin of a group, and add
    them to ``flow`` (arcs of ``rise``).

    ``lane`` is the column of the group, and ``start`` the list of its origin. The list is read from
    its highest number on, so that each number has received all volumes when it passes them on.
    """
    begin = ground.list_offsets[start]
    climb = scratch.climb  # the volume at each number of ``rise`` that came down from above
    for i in range(ground.list_offsets[start + 1] - begin - 1, -1, -1):
        v = ground.lists[begin + i]
        volume = climb[v]
        climb[v] = 0.0
        # Volumes of ``fall`` wait at the same vertex if its path leads upward only.
        at = ground.meets[v]
        if at >= 0 and (scratch.from_below[at] >> lane) & 1:
            volume += scratch.waiting[at, lane]
            scratch.waiting[at, lane] = 0.0
        if volume != 0.0 and i > 0:  # the origin, i = 0, passes nothing on
            arc = scratch.via[lane, i]
            flow[arc] += volume
            climb[ground.rise.tails[arc]] += volume


@njit(cache=True, nogil=True)
def _mark_paths(first, last, ground, weights, scratch):
    """Set ``scratch.uses`` of all numbers of ``fall`` that a path of ``_carry_back`` leads through:
    1 if the path from the origin to there uses a selected link, else 0.

    ``first`` is the first group of the block, and ``last`` the group after the block. The arcs of
    the paths are those that ``_rise`` wrote to ``scratch.via`` and ``_carry_back`` to
    ``scratch.parents``.
    """
    uses = scratch.uses
    above = scratch.climb_uses
    uses[:] = 0
    # Upward from each origin, as far as paths go that way.
    for group in range(first, last):
        lane = group - first
        begin = ground.list_offsets[ground.start[group]]
        for i in range(ground.list_offsets[ground.start[group] + 1] - begin):
            v = ground.lists[begin + i]
            arc = scratch.via[lane, i]
            above[v] = 0
            if i > 0 and scratch.far[lane, i] < _NOTHING:
                above[v] = above[ground.rise.tails[arc]] | weights.rise_marks[arc]
            at = ground.meets[v]
            if at >= 0 and (scratch.from_below[at] >> lane) & 1:
                uses[at, lane] = above[v]
    # Downward from there, the highest number first: a path reaches a number from a higher one.
    for v in range(uses.shape[0] - 1, -1, -1):
        for lane in range(WIDTH):
            arc = scratch.parents[v, lane]
            if arc != NO_ARC:
                uses[v, lane] = uses[ground.fall.heads[arc], lane] | weights.fall_marks[arc]


@njit(cache=True, nogil=True)
def _carry_again(fall, flow, scratch):
    """Pass the volumes of paths with a selected link, in ``scratch.waiting``, on over the arcs of
    ``fall`` that ``_carry_back`` has written to ``scratch.parents``, and add them to ``flow``
    (n_part_arcs,). Volumes of paths that lead upward only (``NO_ARC``) stay, for ``_carry_down``.
    """
    waiting = scratch.waiting
    for v in range(waiting.shape[0]):
        for lane in range(WIDTH):
            arc = scratch.parents[v, lane]
            if arc != NO_ARC and waiting[v, lane] != 0.0:
                flow[arc] += waiting[v, lane]
                waiting[fall.heads[arc], lane] += waiting[v, lane]
                waiting[v, lane] = 0.0
