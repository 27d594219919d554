"""Flows on paths: searching for paths that are missing, and shifting flow to cheaper ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..cpu.atomics import atomic_add
from ..cpu.compiled import njit
from .link_costs import BPR, cost_and_slope
from .trees import Links, choose_paths, find_tree

NO_PATH = -1  # in ``Paths.head`` and ``Paths.next``: the end of a list of paths
# Vehicles: ``_equalized`` searches from this number upward, the smallest normal float64.
_MIN_SHIFT = 2.0**-1022


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
    """The arguments of searches for the shortest path trees of groups (a class and an origin)."""

    demand: Demand  # the groups and their pairs
    links: Links
    cost: np.ndarray  # float64 (n_classes, n_links): the cost of each link for each class


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
    """Flows of the links, with the costs at these flows; all arrays are float64.

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
    cheapest known path by a part of the cost of the known path.

    Parameters
    ----------
    next_item, n_items : int64 array, int
        The counter from which threads take positions in ``groups``, and their number.
    groups : integer array of shape (n_items,)
        Numbers of the groups to search.
    searches : Searches
    known : tuple of Paths, float
        The known paths, and the part of their cost that a new one must save.
    results : tuple of arrays, output
        The tree of each group, int32 of shape (n_groups, n_vertices), which is also the tree that
        its search begins with; the distance of each pair, float64 of shape (n_pairs,); and the
        number of links of its new path, 0 without one, int32 of shape (n_pairs,).
    scratch : Scratch
        The memory of this thread.
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
        own = cost[k]  # (n_links,): the costs for class k
        # ``tree`` becomes one of shortest paths; ``scratch.distance`` receives the distances.
        find_tree(origin, tree, own, links, scratch)
        # Views of arrays over pairs, for the pairs of this group; ``near`` and ``length`` are
        # written.
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
            # 1 for now: a path is wanted. Its length is counted once its links are known.
            length[i] = 1 if is_new and near[i] < np.inf else 0
        # Of several shortest paths take the canonical one, which does not depend on the tree that
        # the search began with.
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
    """Append the new paths of some groups to ``paths``, without flow, each as the first one in the
    list of its pair.

    ``trees`` (n_groups, n_vertices): the tree of each group, which has the links of the new paths.
    ``new_length`` (n_pairs,): the number of links of each new path, 0 without one. ``sizes``: the
    numbers of paths and of links before; the arrays of ``paths`` have room for the new ones.
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
            # The links of the path, written backward: first the link that enters the destination,
            # to the end of the path's places.
            v = np.int64(demand.destination[pair])
            at = n_links + length
            while at > n_links:
                at -= 1
                paths.links[at] = tree[v]
                v = np.int64(links.tails[tree[v]])
            n_links += length


@njit(cache=True, nogil=True)
def load_new_pairs(groups, demand, paths, flow, per_vehicle):
    """Put the volume of each pair of some groups on its only path, which its first search found.

    Add the volumes to ``flow`` (n_links,), the flow of all classes together, times the units that a
    vehicle of the class adds, ``per_vehicle`` (n_classes,).
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
    """Set the flow of a link in ``loads``, and its slope and its cost for each class to match.

    ``flow`` is that of all classes together; below 0 it counts as 0. ``costs`` is the
    ``CostArrays`` of all links.
    """
    flow = max(flow, 0.0)  # rounding of a difference may make it negative
    loads.flow[link] = flow
    time, loads.slope[link] = cost_and_slope(link, flow, costs)
    for k in range(loads.cost.shape[0]):
        loads.cost[k, link] = time + loads.fixed[k, link]


@njit(cache=True, nogil=True)
def _is_concave(ends, links, marked, costs):
    """Return whether a link of only one of two paths, ``path`` and ``base`` of ``_shift``, has a
    concave cost, which is steepest where the link is empty: BPR with a power below 1.

    ``ends``: where the links of the path begin and end in ``links``, and where those of its base
    do. ``marked``: an array over the links of the network, and a stamp. Links of the base alone
    have the stamp in that array, and links of both paths have the next number.
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
    """Return the cost of a path minus that of its base (the path that flow is shifted to) once
    ``moved`` vehicles of class ``k`` have moved from the path to the base. Links of both paths do
    not count: their flows do not change.

    ``ends``: where the links of the path begin and end in ``links``, and where those of its base
    do. ``marked``: an array over the links of the network, and a stamp. Links of the base alone
    have the stamp in that array, and links of both paths have the next number.
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
    """Return how many of the ``moved`` vehicles to shift so that afterwards the path costs as much
    as its base, or still more. The number is found by halving an interval.

    Where costs are concave, a link that loses flow gets steeper. A step by the slopes before it
    goes too far, and the next step goes back as far. With a power near 0, a link that gains its
    first flow is so steep that the number may be as small as 1e-200. So halving ends only where no
    float64 lies between its bounds. The result may be 0.

    ``ends`` to ``k`` are as for ``_difference_after``: where the links of both paths are in
    ``links``, the marks of these links, the flows, the costs, and the class.
    """
    # The path still costs as much or more after ``low`` vehicles, and less after ``high``.
    low = 0.0
    high = moved
    # A larger ``low`` than ``_MIN_SHIFT`` is the lower end of the halving of exponents below.
    while True:
        if _difference_after(moved, ends, links, marked, loads, costs, k) >= 0.0:
            low = moved
        else:
            high = moved
        # While the bounds differ by powers of two, halve the exponents, else it would take hundreds
        # of steps to reach 1e-200.
        if high > 2.0 * low:
            moved = np.sqrt(max(low, _MIN_SHIFT)) * np.sqrt(high)
        else:
            moved = low + 0.5 * (high - low)
        if not low < moved < high:  # no float64 is between; also true of NaN
            return low


@njit(cache=True, nogil=True)
def _shift(path, base, k, paths, loads, costs, marked):
    """Shift flow of class ``k`` from a path to another one of the pair, its base, until both cost
    about the same or no flow is left. Update ``loads`` at once.

    ``path`` and ``base`` are positions in ``paths``. ``marked``: an array over the links of the
    network, and the stamp of this call. A link that has the stamp in the array belongs to the base
    alone, and one that has the next number to both paths. Smaller numbers are of earlier calls, so
    that nothing must be cleared.

    Return the excess before the shift: the flow of the path times the difference of the costs, 0 if
    the path is not more expensive than the base. Flow is moved only if the path is more expensive:
    by a step of Newton, or, if a cost is concave, by halving (``_equalized``).
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
    if moved <= 0.0:  # no vehicle is left, or the step is so small that it rounds to 0
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
    """Shift flow to the cheapest known path of each pair of some groups, one pair after another.
    Forget paths without flow: take them out of the list of their pair.

    ``loads`` follows each shift at once, so that the next pair sees the new costs. ``costs`` are
    the ``CostArrays`` of all links. ``mark`` int64 of shape (n_links,) and ``stamp`` serve
    ``_shift`` to mark the links of two paths. ``mark`` holds numbers below ``stamp`` before, and
    below the returned stamp after.

    Return the excess that was met before the shifts (the sum over the paths of the flow, times its
    difference in cost to the cheapest path, times the units of a vehicle), and the next stamp.
    """
    excess = 0.0
    for group in groups:
        k = demand.user_class[group]
        weight = loads.per_vehicle[k]
        for pair in range(demand.first_pair[group], demand.first_pair[group + 1]):
            path = paths.head[pair]
            if path == NO_PATH or paths.next[path] == NO_PATH:  # fewer than two paths
                continue
            # Find the cheapest path of the pair, ``base``.
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
            before = np.int32(NO_PATH)  # the path before this one in the list
            path = paths.head[pair]
            while path != NO_PATH:
                after = paths.next[path]
                if path != base:
                    if paths.flow[path] > 0.0:
                        excess += weight * _shift(path, base, k, paths, loads, costs, (mark, stamp))
                        stamp += 2  # a shift marks with two numbers
                    if paths.flow[path] == 0.0:  # ``before`` stays, as its successor is another one
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
    """Set the flow of the path of a pair that has most flow to the volume of the pair less the
    flows of its other paths, 0 if these carry more than the volume.

    Each shift rounds the flows of two paths. Without this the sum of the flows of the pair would
    drift away from its volume. The pair must have a path.
    """
    largest = paths.head[pair]
    others = 0.0  # the sum of the flows of all paths but the largest so far
    path = paths.next[largest]
    while path != NO_PATH:
        less = path  # the smaller one of this path and the largest so far
        if paths.flow[path] > paths.flow[largest]:
            less = largest
            largest = path
        others += paths.flow[less]
        path = paths.next[path]
    paths.flow[largest] = max(volume - others, 0.0)


@njit(cache=True, nogil=True)
def add_up(demand, paths, class_flow, rest):
    """Write to ``class_flow`` (n_classes, n_links) the flow of each class on each link, added up
    over the paths in the order of the pairs.

    ``demand`` is ``Demand``, and ``paths`` are ``Paths``, of which flows are changed: that of one
    path per pair is corrected before, so that the flows of the pair add up to its volume. ``rest``,
    of the shape of ``class_flow``, is scratch, with any values before: it collects what each
    addition rounds away, which is added at the end, so that the sums are right to two units in the
    last place.
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
                    # ``added`` is what the rounded sum grew by; ``rest`` gets the exact difference.
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
    """Return the number of paths in the lists of the pairs, and the number of their links.
    Forgotten paths, which are in no list, do not count.
    """
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
    """Copy the paths in the lists of the pairs to ``compact``, in the order of the pairs. Forgotten
    paths, which are in no list, are left out, so that its arrays have no gaps.

    ``compact`` has arrays of the sizes that ``count_live`` returns.
    """
    n_paths = 0
    n_links = 0
    for pair in range(paths.head.size):
        path = paths.head[pair]
        # ``last``: the path of ``compact`` that was appended before to the list of this pair,
        # ``NO_PATH`` at the head of the list
        last = np.int32(NO_PATH)
        compact.head[pair] = NO_PATH
        while path != NO_PATH:
            # Append the path to the new list of the pair, as number ``n_paths``.
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
    """Add up the flows of the paths that use a selected link, per class and link, and per pair.

    ``is_selected`` (n_links,) bool: True for a selected link. The outputs ``class_flow``
    (n_classes, n_links) and ``pair_volume`` (n_pairs,), in vehicles, are 0 before.
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
    """Return the first pair whose paths do not lead from its origin to its destination, lead
    through a closed vertex, or do not carry its volume; ``NO_PATH`` if there is none.

    The sum of the flows of a pair may differ from its volume by ``tolerance`` times the volume. All
    positions in ``paths`` must be within its arrays.
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
                if n_seen > paths.flow.size:  # a list that leads back into itself, without an end
                    return pair
                total += paths.flow[path]
                path = paths.next[path]
            # Written so that NaN fails, too.
            if not abs(total - demand.volume[pair]) <= tolerance * demand.volume[pair]:
                return pair
    return NO_PATH
