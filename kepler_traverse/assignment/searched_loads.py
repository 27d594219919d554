"""Volumes on the shortest paths of one set of costs by a search per origin, and sums of other
columns along them.
"""

from __future__ import annotations

import numpy as np

from ..cpu.atomics import atomic_add
from ..cpu.compiled import njit
from .trees import NO_LINK, choose_paths, find_tree, load_tree, mark_users


@njit(cache=True, nogil=True)
def load_blocks(next_item, n_items, blocks, searches, is_selected, results, scratch):
    """Find the shortest path tree of each group (a class and an origin), and put the volumes of its
    pairs on the links of their paths.

    Each block of groups has flows of its own, so that their sum does not depend on the threads.

    Parameters
    ----------
    next_item, n_items : int64 array, int
        The counter from which threads take blocks, and the number of blocks.
    blocks : tuple of arrays
        The first group of each block, and the number of groups, of shape (n_blocks + 1,); and the
        tree of each group, int32 of shape (n_groups, n_vertices), which its search begins with and
        overwrites.
    searches : Searches
    is_selected : bool array of shape (n_links,)
        True for a selected link; of size 0 if no link is selected.
    results : tuple of four float64 arrays, output
        The distance of each pair, (n_pairs,); the flow, (n_blocks, n_classes, n_links); and, of the
        paths that use a selected link alone, the same flow, and the volume of each pair,
        (n_pairs,). The last two are of size 0 if no link is selected, else 0 before.
    scratch : Scratch
        The memory of this thread.
    """
    first_group, trees = blocks
    demand, links, cost = searches
    distance, flow, selected_flow, selected_volume = results
    while True:
        block = atomic_add(next_item, 0, 1)
        if block >= n_items:
            break
        flow[block] = 0.0
        for group in range(first_group[block], first_group[block + 1]):
            # The tree of the group, with the distances of its pairs.
            origin = np.int64(demand.origin[group])
            k = demand.user_class[group]
            tree = trees[group]
            own = cost[k]  # (n_links,): the costs for class k
            begin = demand.first_pair[group]
            end = demand.first_pair[group + 1]
            ends = demand.destination[begin:end]
            near = distance[begin:end]
            is_reached = _find_paths(origin, ends, near, tree, own, links, scratch)
            # The volumes of the pairs, on their paths: ``load_tree`` takes them from
            # ``scratch.carried``, which is all 0 before and after, and adds them to the flow.
            for pair in range(begin, end):
                if is_reached[pair - begin]:
                    scratch.carried[demand.destination[pair]] += demand.volume[pair]
            load_tree(origin, tree, links, scratch, flow[block, k])
            # Once more, for the volumes of paths that use a selected link; ``scratch.uses`` is 1
            # for the ends of such paths, else 0.
            if is_selected.size:
                mark_users(origin, tree, is_selected, links, scratch)
                for pair in range(begin, end):
                    v = demand.destination[pair]
                    selected_volume[pair] = demand.volume[pair] * scratch.uses[v]
                    scratch.carried[v] += selected_volume[pair]
                load_tree(origin, tree, links, scratch, selected_flow[block, k])


@njit(cache=True, nogil=True)
def sum_along(next_item, n_items, searches, values, results, working):
    """Find the distance of each pair, and the sums of some values of the links along its canonical
    path, added from the origin on; NaN where there is no path.

    ``searches`` is a ``Searches``, and ``values`` has shape (number of values, n_links).
    ``results``, written, are the distances (n_pairs,) and the sums (number of values, n_pairs).
    ``working`` is the memory of this thread: a tree (n_vertices,) and a ``Scratch``; both may hold
    anything before that an earlier group has left. ``next_item``: the counter from which threads
    take groups 0 to ``n_items`` - 1.
    """
    demand, links, cost = searches
    distance, sums = results
    tree, scratch = working
    while True:
        group = atomic_add(next_item, 0, 1)
        if group >= n_items:
            break
        origin = np.int64(demand.origin[group])
        own = cost[demand.user_class[group]]  # (n_links,): the costs for the class of the group
        tree[:] = NO_LINK  # the thread's last tree is of another origin
        begin = demand.first_pair[group]
        end = demand.first_pair[group + 1]
        ends = demand.destination[begin:end]
        near = distance[begin:end]
        is_reached = _find_paths(origin, ends, near, tree, own, links, scratch)
        for pair in range(begin, end):
            # List the links of the path from the destination back to the origin, in the memory of
            # the heap, and then add from the origin on.
            v = np.int64(demand.destination[pair])
            length = 0
            while is_reached[pair - begin] and v != origin:
                scratch.entries[length] = tree[v]
                length += 1
                v = np.int64(links.tails[tree[v]])
            for i in range(values.shape[0]):
                total = 0.0 if is_reached[pair - begin] else np.nan
                for at in range(length - 1, -1, -1):
                    total += values[i, scratch.entries[at]]
                sums[i, pair] = total


@njit(cache=True, nogil=True)
def _find_paths(origin, ends, distance, tree, costs, links, scratch):
    """Find the shortest paths from ``origin`` to some vertices, ``ends``, at the costs of one
    class, (n_links,).

    ``tree`` (n_vertices,), any tree from the origin, becomes one of shortest paths, whose paths to
    ``ends`` are the canonical ones. ``distance`` receives the distance of each of ``ends``,
    infinite if there is no path. Return a bool per vertex of ``ends``: whether it is reached.

    The search proves the distances: it ends only after a pass over all links in which no link makes
    a vertex nearer.
    """
    find_tree(origin, tree, costs, links, scratch)
    for i in range(ends.size):
        distance[i] = scratch.distance[ends[i]]
    is_reached = distance < np.inf
    choose_paths(origin, ends, is_reached, tree, costs, links, scratch)
    return is_reached
