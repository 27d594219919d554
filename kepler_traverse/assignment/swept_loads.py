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

KIND = np.dtype(np.int64)
WIDTH = LANES[KIND]
_NOTHING = np.int64(UNREACHED)
_SIDE_BY_SIDE = DOUBLINGS[KIND]
_ALL = (1 << WIDTH) - 1
NO_ARC = -1


class Ground(NamedTuple):
    """What the searches of all groups of trips share.

    ``rise`` and ``fall`` are the parts of the hierarchy above the origins and above the
    destinations. A number is the position of a vertex in one of them. ``meets`` (n_rise,) int32:
    for each number of ``rise``, that of the same vertex in ``fall``, or -1 if it is not there.
    ``start`` (n_groups,) int32: the list of each group. ``list_offsets`` (n_lists + 1,) int64 and
    ``lists`` int32: each list has the numbers of ``rise`` above an origin, ascending, the origin
    first. ``end`` (n_pairs,) int32: the number in ``fall`` of each destination.
    """

    rise: Part
    fall: Part
    meets: np.ndarray
    start: np.ndarray
    list_offsets: np.ndarray
    lists: np.ndarray
    end: np.ndarray

    def sides(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the sides of the arcs of both parts that the searches follow: upward and downward."""
        return 2 * self.rise.arcs + UP, 2 * self.fall.arcs + DOWN


class Trips(NamedTuple):
    """The trips of one class, in blocks of ``WIDTH`` groups.

    ``groups`` (2,): the first group of the class, and the one after its last. ``first_block``
    (n_items + 1,) int64: the first block of each item of work, and the number of blocks.
    ``demand`` has the pairs of all groups.
    """

    groups: np.ndarray
    first_block: np.ndarray
    demand: Demand


class Weights(NamedTuple):
    """The weights of one class.

    ``rise`` and ``fall`` int64: those of the arcs of both parts, upward and downward.
    ``rise_marks`` and ``fall_marks`` uint8: 1 for an arc that stands for a selected link, else 0;
    of size 0 if no link is selected.
    """

    rise: np.ndarray
    fall: np.ndarray
    rise_marks: np.ndarray
    fall_marks: np.ndarray


class Carried(NamedTuple):
    """The volumes that the origins put on the arcs, float64, with a row per share of the origins.

    ``rise`` (n_shares, arcs of the part above the origins): upward. ``fall`` (n_shares, arcs of
    the part above the destinations): downward.
    """

    rise: np.ndarray
    fall: np.ndarray


class SweepScratch(NamedTuple):
    """What one thread needs. A lane, from 0 to ``WIDTH`` - 1, is a group of the block at work."""

    lines: np.ndarray  # int64 (n_fall, WIDTH): distances
    # float64 (n_fall, WIDTH): volumes that are not passed on; all 0 between blocks
    waiting: np.ndarray
    # uint8 (n_fall,): bits of lanes whose search upward explains the distance
    from_below: np.ndarray
    # int32 (n_fall, WIDTH): the arc that carries the volume, or ``NO_ARC``; this and ``uses`` have
    # no row if no link is selected
    parents: np.ndarray
    uses: np.ndarray  # uint8 (n_fall, WIDTH): whether the path uses a selected link
    tentative: np.ndarray  # int64 (n_rise,): all UNREACHED between searches
    entry: np.ndarray  # int32 (n_rise,): the last arc of each path upward
    climb: np.ndarray  # float64 (n_rise,): volumes; all 0 between origins
    climb_uses: np.ndarray  # uint8 (n_rise,): whether the path upward uses a selected link
    far: np.ndarray  # int64 (WIDTH, longest list): distances upward
    # int32 (WIDTH, longest list): the last arc of the path upward to each of the list
    via: np.ndarray


def new_scratch(ground: Ground, keeps_parents: bool) -> SweepScratch:
    """Allocate the scratch of one thread; ``keeps_parents``: whether links are selected, whose
    volumes go over the same arcs once more.
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
    """Put the volumes of some shares of the trips of one class on the arcs.

    ``results``: the distance of each pair; what is carried; a bool per share, whether its distances
    are proved; the volume of each pair whose path uses a selected link, of size 0 if no link is
    selected; and what these volumes carry.
    """
    demand = trips.demand
    distance, carried, is_proved, selected_volume, selected_carried = results
    while True:
        share = atomic_add(next_item, 0, 1)
        if share >= n_items:
            break
        is_right = True  # whether all distances so far are proved
        for block in range(trips.first_block[share], trips.first_block[share + 1]):
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
            # Once more, those whose path uses a selected link.
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
    """Write to ``loads`` what each arc of a part carries, added over the shares in their order.

    ``rows`` (n_shares, n_part_arcs). ``sides`` (n_part_arcs,): where in ``loads`` the arc is, with
    its direction. An item of work is ``BLOCK`` arcs.
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

    ``hierarchy`` are the ground, whose ``fall`` has all ranks, and its weights. An item of work is
    one block. ``links``: the numbers of the ends of each link, and its cost.
    """
    demand = trips.demand
    ground, weights = hierarchy
    distance, is_proved = results
    tails, heads, costs = links
    while True:
        block = atomic_add(next_item, 0, 1)
        if block >= n_items:
            break
        first = trips.groups[0] + block * WIDTH
        last = min(first + WIDTH, trips.groups[1])
        scratch.lines[:] = _NOTHING
        for group in range(first, last):
            _rise(group - first, ground.start[group], ground, weights, scratch)
        _fall(ground.fall, weights.fall, scratch.lines)
        is_right = True
        for group in range(first, last):
            # The origin, the first of its list, is in ``fall``, which has all ranks. Its distance 0
            # and that no link makes a vertex nearer prove all distances.
            origin = ground.meets[ground.lists[ground.list_offsets[ground.start[group]]]]
            is_right &= scratch.lines[origin, group - first] == 0
            for pair in range(demand.first_pair[group], demand.first_pair[group + 1]):
                distance[pair] = scratch.lines[ground.end[pair], group - first]
        for link in range(costs.size):
            found = compare_line(
                scratch.lines, heads[link], tails[link], costs[link], _SIDE_BY_SIDE
            )
            is_right &= found <= _ALL  # bits above are of distances that the link makes nearer
        is_proved[block] = is_right


@njit(cache=True, nogil=True)
def _rise(lane, start, ground, weights, scratch):
    """Search upward from an origin, and write the distances to the lines; return whether they are
    proved.

    ``lane`` is that of the group in its block, and ``start`` the list of numbers above its origin.
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
    # No arc makes a vertex nearer.
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
    # As the next search expects it: this is less work than to clear the whole array.
    for v in numbers:
        tentative[v] = _NOTHING
    return is_right


@njit(cache=True, nogil=True)
def _fall(fall, lengths, lines):
    """Lower the lines of all numbers, from the top on."""
    edges = Edges(fall.offsets, fall.heads, lengths)
    is_set = np.uint8(1)  # each line holds distances already, those of the search upward
    for v in range(fall.offsets.size - 2, -1, -1):
        lower_line(lines, v, is_set, edges, _NOTHING, _SIDE_BY_SIDE)


@njit(cache=True, nogil=True)
def _join(lane, start, ground, scratch):
    """Set the bit of the lane in ``from_below`` of each number whose distance is that of the search
    upward. Return whether no distance is larger than that of this search.
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
    """Pass volumes on from the lowest number upward, each by the first arc that explains the
    distance, and add them to ``flow`` (n_part_arcs,).

    Return whether the distances are proved, and each volume is passed on. Volumes stay where the
    search upward explains the distance.
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
        # ``found``: the lanes whose distance the arc explains; beyond ``_ALL`` if it makes one
        # nearer.
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
        is_right &= lanes == 0
    return is_right


@njit(cache=True, nogil=True)
def _carry_down(lane, start, ground, flow, scratch):
    """Pass the volumes that wait where paths of the search upward end back to the origin, and add
    them to ``flow`` of the arcs upward. The list is gone through from the highest number on.
    """
    begin = ground.list_offsets[start]
    climb = scratch.climb
    for i in range(ground.list_offsets[start + 1] - begin - 1, -1, -1):
        v = ground.lists[begin + i]
        volume = climb[v]
        climb[v] = 0.0
        at = ground.meets[v]
        if at >= 0 and (scratch.from_below[at] >> lane) & 1:
            volume += scratch.waiting[at, lane]
            scratch.waiting[at, lane] = 0.0
        if volume != 0.0 and i > 0:
            arc = scratch.via[lane, i]
            flow[arc] += volume
            climb[ground.rise.tails[arc]] += volume


@njit(cache=True, nogil=True)
def _mark_paths(first, last, ground, weights, scratch):
    """Set ``scratch.uses`` of all numbers that a path of ``_carry_back`` leads through: 1 if the
    path from the origin to there uses a selected link, else 0.

    ``first`` and ``last`` are the first group of the block, and the one after its last.
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
    # Downward from there.
    for v in range(uses.shape[0] - 1, -1, -1):
        for lane in range(WIDTH):
            arc = scratch.parents[v, lane]
            if arc != NO_ARC:
                uses[v, lane] = uses[ground.fall.heads[arc], lane] | weights.fall_marks[arc]


@njit(cache=True, nogil=True)
def _carry_again(fall, flow, scratch):
    """Pass volumes on by the arcs that ``_carry_back`` has written to ``parents``."""
    waiting = scratch.waiting
    for v in range(waiting.shape[0]):
        for lane in range(WIDTH):
            arc = scratch.parents[v, lane]
            if arc != NO_ARC and waiting[v, lane] != 0.0:
                flow[arc] += waiting[v, lane]
                waiting[fall.heads[arc], lane] += waiting[v, lane]
                waiting[v, lane] = 0.0
