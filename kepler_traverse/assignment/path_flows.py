"""Flows on paths: searching for paths that are missing, and shifting flow to cheaper ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..cpu.atomics import atomic_add
from ..cpu.compiled import njit
from .link_costs import BPR, cost_and_slope
from .trees import Links, choose_paths, find_tree

NO_PATH = -1
_MIN_SHIFT = 2.0**-1022  # between paths with concave costs


class Demand(NamedTuple):
    """The pairs of all classes, by group: a class and an origin. Groups are in the order of
    classes.

    ``origin`` and ``user_class`` (n_groups,) int32: the vertex and the class of each group.
    ``first_pair`` (n_groups + 1,) int64: the pairs of a group are those from its first pair up to
    the first pair of the next group. ``destination`` (n_pairs,) int32: a vertex. ``volume``
    (n_pairs,) float64: vehicles.
    """

    origin: np.ndarray
    user_class: np.ndarray
    first_pair: np.ndarray
    destination: np.ndarray
    volume: np.ndarray


class Searches(NamedTuple):
    """What is searched for: the trees of the groups of ``demand`` over ``links``, whose ``cost`` is
    (n_classes, n_links) float64.
    """

    demand: Demand
    links: Links
    cost: np.ndarray


class Paths(NamedTuple):
    """The known paths of all pairs, a linked list per pair. A list ends with ``NO_PATH``.

    ``head`` (n_pairs,) int32: the first path of each pair. Per path: ``next`` int32, the next one
    of the pair; ``begin`` int64 and ``length`` int32, where its links are in ``links`` int32, from
    the origin on; ``flow`` float64, in vehicles. A path that is in no list is forgotten: its place
    is free once the lists are copied.
    """

    head: np.ndarray
    next: np.ndarray
    begin: np.ndarray
    length: np.ndarray
    flow: np.ndarray
    links: np.ndarray


class Loads(NamedTuple):
    """What flows make of the links; all arrays are float64.

    ``flow`` (n_links,): of all classes together. ``cost`` (n_classes, n_links): the cost of each
    link for each class. ``fixed`` (n_classes, n_links): the part of it that no flow changes, such
    as a toll. ``slope`` (n_links,): the derivative of the cost by the flow. ``per_vehicle``
    (n_classes,): the units of flow that a vehicle of each class adds.
    """

    flow: np.ndarray
    cost: np.ndarray
    fixed: np.ndarray
    slope: np.ndarray
    per_vehicle: np.ndarray


@njit(cache=True, nogil=True)
def search_groups(next_item, n_items, groups, searches, known, results, scratch):
    """Find the trees of some groups, and with them the distance and the new path of each pair.

    The shortest path of a pair is new if the pair has no path yet, or if it is cheaper than the
    cheapest known one by a part of that one's cost. ``known`` are the ``Paths`` and this part.
    ``results``: the tree of each group (n_groups, n_vertices), the distance of each pair, and the
    number of links of its new path, 0 without one (n_pairs,) int32.
    """
    demand, links, cost = searches
    paths, worth = known
    trees, distance, new_length = results
    while True:
        item = atomic_add(next_item, 0, 1)
        if item >= n_items:
            break
        group = groups[item]
        origin = np.int64(demand.origin[group])
        k = demand.user_class[group]
        tree = trees[group]
        own = cost[k]
        find_tree(origin, tree, own, links, scratch)
        # Views of what the group's pairs have; ``near`` and ``length`` are written.
        pairs = slice(demand.first_pair[group], demand.first_pair[group + 1])
        ends = demand.destination[pairs]
        length = new_length[pairs]
        near = distance[pairs]
        heads = paths.head[pairs]
        # The cheapest known path of each pair, and whether the shortest one is cheaper.
        for i in range(ends.size):
            near[i] = scratch.distance[ends[i]]
            best = np.inf
            path = heads[i]
            while path != NO_PATH:
                total = 0.0
                begin = paths.begin[path]
                for at in range(begin, begin + paths.length[path]):
                    total += own[paths.links[at]]
                best = min(best, total)
                path = paths.next[path]
            is_new = best == np.inf or near[i] < best - worth * best
            length[i] = 1 if is_new and near[i] < np.inf else 0  # not 0: a path is wanted
        choose_paths(origin, ends, length, tree, own, links, scratch)
        # The lengths of the new paths, in links.
        for i in range(ends.size):
            if not length[i]:
                continue
            n = 0
            v = np.int64(ends[i])
            while v != origin:
                v = np.int64(links.tails[tree[v]])
                n += 1
            length[i] = n


@njit(cache=True, nogil=True)
def add_paths(groups, demand, links, trees, new_length, paths, sizes):
    """Append the new paths of some groups, without flow, each as the first one of its pair.

    ``new_length`` (n_pairs,): the links of each new path, 0 without one. ``sizes``: how many paths
    and links there are before; the arrays of ``paths`` have room for the new ones.
    """
    n_paths, n_links = sizes
    for group in groups:
        tree = trees[group]
        for pair in range(demand.first_pair[group], demand.first_pair[group + 1]):
            length = new_length[pair]
            if length == 0:
                continue
            paths.begin[n_paths] = n_links
            paths.length[n_paths] = length
            paths.flow[n_paths] = 0.0
            paths.next[n_paths] = paths.head[pair]
            paths.head[pair] = n_paths
            n_paths += 1
            # Its links, written from the last one, which leads to the destination, backward.
            v = np.int64(demand.destination[pair])
            at = n_links + length
            while at > n_links:
                at -= 1
                paths.links[at] = tree[v]
                v = np.int64(links.tails[tree[v]])
            n_links += length


@njit(cache=True, nogil=True)
def load_new_pairs(groups, demand, paths, flow, per_vehicle):
    """Put the volume of each pair of some groups on its only path, and add it to ``flow``
    (n_links,).

    No pair has had a path before, so each has the one of its first search.
    """
    for group in groups:
        weight = per_vehicle[demand.user_class[group]]
        for pair in range(demand.first_pair[group], demand.first_pair[group + 1]):
            path = paths.head[pair]
            paths.flow[path] = demand.volume[pair]
            begin = paths.begin[path]
            for i in range(begin, begin + paths.length[path]):
                flow[paths.links[i]] += weight * demand.volume[pair]


@njit(cache=True, nogil=True)
def _set_flow(link, flow, loads, costs):
    """Set the flow of a link, at least 0, with its slope and its cost for each class."""
    flow = max(flow, 0.0)
    loads.flow[link] = flow
    time, loads.slope[link] = cost_and_slope(link, flow, costs)
    for k in range(loads.cost.shape[0]):
        loads.cost[k, link] = time + loads.fixed[k, link]


@njit(cache=True, nogil=True)
def _is_concave(ends, links, marked, costs):
    """Return whether a link of only one of two paths is steepest where it is empty, as BPR is with
    a power below 1.

    ``ends``: where the links of the path begin and end in ``links``, and those of its base.
    ``marked``: an array over the links, and a stamp, which the links of the base alone have in it;
    links of both paths have the next number.
    """
    begin, end, base_begin, base_end = ends
    mark, stamp = marked
    for i in range(begin, end):
        link = links[i]
        if mark[link] != stamp + 1 and costs.kind[link] == BPR and costs.power[link] < 1.0:
            return True
    for i in range(base_begin, base_end):
        link = links[i]
        if mark[link] == stamp and costs.kind[link] == BPR and costs.power[link] < 1.0:
            return True
    return False


@njit(cache=True, nogil=True)
def _difference_after(moved, ends, links, marked, loads, costs, k):
    """Return how much more a path costs than its base once ``moved`` vehicles have moved to the
    base.

    ``ends`` and ``marked`` are those of ``_is_concave``, and k is the class of the vehicles.
    """
    begin, end, base_begin, base_end = ends
    mark, stamp = marked
    change = loads.per_vehicle[k] * moved
    difference = 0.0
    for i in range(begin, end):
        link = links[i]
        if mark[link] != stamp + 1:
            after = max(loads.flow[link] - change, 0.0)
            difference += cost_and_slope(link, after, costs)[0] + loads.fixed[k, link]
    for i in range(base_begin, base_end):
        link = links[i]
        if mark[link] == stamp:
            after = loads.flow[link] + change
            difference -= cost_and_slope(link, after, costs)[0] + loads.fixed[k, link]
    return difference


@njit(cache=True, nogil=True)
def _equalized(moved, ends, links, marked, loads, costs, k):
    """Return how many of the ``moved`` vehicles to shift, so that the path then costs as much as
    its base, or still more. It is found by halving.

    Where costs are concave, a link that loses flow gets steeper: a step by the slopes before goes
    too far, and the next one as far back. With a power near 0, a link that gains its first flow is
    so steep that the part may be as small as 1e-200. So halving ends where no number lies between
    its bounds.
    """
    low = 0.0
    high = moved
    while True:
        if _difference_after(moved, ends, links, marked, loads, costs, k) >= 0.0:
            low = moved
        else:
            high = moved
        if high > 2.0 * low:  # halve exponents first
            moved = np.sqrt(max(low, _MIN_SHIFT)) * np.sqrt(high)
        else:
            moved = low + 0.5 * (high - low)
        if not low < moved < high:  # also where costs are not numbers
            return low


@njit(cache=True, nogil=True)
def _shift(path, base, k, paths, loads, costs, marked):
    """Shift flow from a path to another one, its base, until both cost the same or none is left.

    ``marked``: an array over the links, and the stamp of this call. A link with the stamp is of the
    base alone, and one with the next number is of both paths. Smaller numbers are of earlier calls.
    Returns the excess before it: the flow times the difference of the costs.
    """
    mark, stamp = marked
    links = paths.links
    begin = paths.begin[path]
    end = begin + paths.length[path]
    base_begin = paths.begin[base]
    base_end = base_begin + paths.length[base]

    # The difference of the costs, and its slope, over the links that are not on both paths.
    for i in range(base_begin, base_end):
        mark[links[i]] = stamp
    difference = 0.0
    slope = 0.0
    for i in range(begin, end):
        link = links[i]
        if mark[link] == stamp:
            mark[link] = stamp + 1  # on both
        else:
            difference += loads.cost[k, link]
            slope += loads.slope[link]
    for i in range(base_begin, base_end):
        link = links[i]
        if mark[link] == stamp:
            difference -= loads.cost[k, link]
            slope += loads.slope[link]
    flow = paths.flow[path]
    if difference <= 0.0:
        return 0.0

    # The vehicles to move: a step of Newton, as far as there are vehicles on the path.
    weight = loads.per_vehicle[k]
    moved = flow
    if slope > 0.0:
        moved = min(flow, difference / (slope * weight))
    if moved <= 0.0:
        return flow * difference
    ends = (begin, end, base_begin, base_end)
    if _is_concave(ends, links, marked, costs):
        moved = _equalized(moved, ends, links, marked, loads, costs, k)

    # Move them.
    paths.flow[path] = flow - moved
    paths.flow[base] += moved
    for i in range(begin, end):
        link = links[i]
        if mark[link] != stamp + 1:
            _set_flow(link, loads.flow[link] - weight * moved, loads, costs)
    for i in range(base_begin, base_end):
        link = links[i]
        if mark[link] == stamp:
            _set_flow(link, loads.flow[link] + weight * moved, loads, costs)
    return flow * difference


@njit(cache=True, nogil=True)
def shift_flows(groups, demand, paths, loads, costs, mark, stamp):
    """Shift flow to the cheapest known path of each pair, one pair after another; forget paths
    without flow.

    Returns the excess that was met (flow times the difference to the cheapest path, times the units
    of a vehicle), and the next stamp of ``mark``.
    """
    excess = 0.0
    for group in groups:
        k = demand.user_class[group]
        weight = loads.per_vehicle[k]
        for pair in range(demand.first_pair[group], demand.first_pair[group + 1]):
            path = paths.head[pair]
            if path == NO_PATH or paths.next[path] == NO_PATH:
                continue
            # The cheapest path of the pair.
            base = path
            least = np.inf
            while path != NO_PATH:
                total = 0.0
                begin = paths.begin[path]
                for i in range(begin, begin + paths.length[path]):
                    total += loads.cost[k, paths.links[i]]
                if total < least:
                    least = total
                    base = path
                path = paths.next[path]
            # Shift flow to it from each other path, and take empty ones out of the list.
            before = np.int32(NO_PATH)
            path = paths.head[pair]
            while path != NO_PATH:
                after = paths.next[path]
                if path != base:
                    if paths.flow[path] > 0.0:
                        excess += weight * _shift(path, base, k, paths, loads, costs, (mark, stamp))
                        stamp += 2  # a shift marks with two numbers
                    if paths.flow[path] == 0.0:
                        if before == NO_PATH:
                            paths.head[pair] = after
                        else:
                            paths.next[before] = after
                        path = after
                        continue
                before = path
                path = after
    return excess, stamp


@njit(cache=True, nogil=True)
def _keep_volume(pair, volume, paths):
    """Let the path with the largest flow have what the others of the pair leave of its volume.

    Each shift rounds the flows of both paths, so that their sum drifts from the volume.
    """
    largest = paths.head[pair]
    others = 0.0  # the sum of the flows of all paths but the largest so far
    path = paths.next[largest]
    while path != NO_PATH:
        less = path
        if paths.flow[path] > paths.flow[largest]:
            less = largest
            largest = path
        others += paths.flow[less]
        path = paths.next[path]
    paths.flow[largest] = max(volume - others, 0.0)


@njit(cache=True, nogil=True)
def add_up(demand, paths, class_flow, rest):
    """Add up the flows of the links from those of the paths, per class, in the order of the pairs.

    ``class_flow`` and ``rest`` are of shape (n_classes, n_links). What each addition rounds away is
    added up, too, so that the sums are right to two units in the last place.
    """
    class_flow[:] = 0.0
    rest[:] = 0.0
    for group in range(demand.origin.size):
        k = demand.user_class[group]
        for pair in range(demand.first_pair[group], demand.first_pair[group + 1]):
            path = paths.head[pair]
            if path == NO_PATH:
                continue
            _keep_volume(pair, demand.volume[pair], paths)
            while path != NO_PATH:
                flow = paths.flow[path]
                begin = paths.begin[path]
                for i in range(begin, begin + paths.length[path]):
                    link = paths.links[i]
                    before = class_flow[k, link]
                    after = before + flow
                    added = after - before
                    rest[k, link] += (before - (after - added)) + (flow - added)
                    class_flow[k, link] = after
                path = paths.next[path]
    for k in range(class_flow.shape[0]):
        for link in range(class_flow.shape[1]):
            class_flow[k, link] += rest[k, link]


@njit(cache=True, nogil=True)
def count_live(paths):
    """Return how many paths are in the lists of their pairs, and how many links these have."""
    n_paths = 0
    n_links = 0
    for pair in range(paths.head.size):
        path = paths.head[pair]
        while path != NO_PATH:
            n_paths += 1
            n_links += paths.length[path]
            path = paths.next[path]
    return n_paths, n_links


@njit(cache=True, nogil=True)
def copy_live(paths, compact):
    """Copy the paths in the lists of their pairs into arrays without gaps, in the order of the
    pairs.
    """
    n_paths = 0
    n_links = 0
    for pair in range(paths.head.size):
        path = paths.head[pair]
        last = np.int32(NO_PATH)  # the copy of the path before, which the next one is appended to
        compact.head[pair] = NO_PATH
        while path != NO_PATH:
            if last == NO_PATH:
                compact.head[pair] = n_paths
            else:
                compact.next[last] = n_paths
            last = np.int32(n_paths)
            compact.next[last] = NO_PATH
            compact.begin[last] = n_links
            compact.length[last] = paths.length[path]
            compact.flow[last] = paths.flow[path]
            begin = paths.begin[path]
            for i in range(paths.length[path]):
                compact.links[n_links] = paths.links[begin + i]
                n_links += 1
            n_paths += 1
            path = paths.next[path]


@njit(cache=True, nogil=True)
def flows_using(is_selected, demand, paths, class_flow, pair_volume):
    """Add up the flows of the paths that use one of some links: per class and link, and per pair.

    ``is_selected`` (n_links,) bool. ``class_flow`` (n_classes, n_links) and ``pair_volume``
    (n_pairs,) are 0 before.
    """
    for group in range(demand.origin.size):
        k = demand.user_class[group]
        for pair in range(demand.first_pair[group], demand.first_pair[group + 1]):
            path = paths.head[pair]
            while path != NO_PATH:
                begin = paths.begin[path]
                end = begin + paths.length[path]
                is_used = False
                for i in range(begin, end):
                    is_used = is_used or is_selected[paths.links[i]]
                if is_used:
                    pair_volume[pair] += paths.flow[path]
                    for i in range(begin, end):
                        class_flow[k, paths.links[i]] += paths.flow[path]
                path = paths.next[path]


@njit(cache=True, nogil=True)
def find_wrong_pair(demand, links, paths, tolerance):
    """Return the first pair whose paths do not lead from its origin to its destination, or do not
    carry its volume, or ``NO_PATH``. All positions must be within the arrays.
    """
    for group in range(demand.origin.size):
        origin = demand.origin[group]
        for pair in range(demand.first_pair[group], demand.first_pair[group + 1]):
            total = 0.0
            n_seen = 0
            path = paths.head[pair]
            while path != NO_PATH:
                n_seen += 1
                v = origin
                begin = paths.begin[path]
                for i in range(begin, begin + paths.length[path]):
                    link = paths.links[i]
                    if links.tails[link] != v or (links.is_closed[v] and v != origin):
                        return pair
                    v = links.heads[link]
                if v != demand.destination[pair] or not paths.flow[path] >= 0.0:
                    return pair
                if n_seen > paths.flow.size:  # a list that leads back into itself
                    return pair
                total += paths.flow[path]
                path = paths.next[path]
            if not abs(total - demand.volume[pair]) <= tolerance * demand.volume[pair]:
                return pair
    return NO_PATH
