"""Volumes on the shortest paths of one set of costs, and sums of other columns along them."""

from __future__ import annotations

import numpy as np

from ..cpu.atomics import atomic_add
from ..cpu.compiled import njit
from .trees import NO_LINK, find_tree, load_tree, mark_users


@njit(cache=True, nogil=True)
def load_blocks(
    next_item, n_items, first_group, demand, links, cost, trees, is_selected, results, scratch
):
    """Put the volumes of some blocks of groups on their trees.

    ``results`` are the distance of each pair, the flows per block, class and link, and, of the paths
    that use one of some links, the same flows and the volume of each pair. Each block has flows of
    its own, so that their sum does not depend on the threads. With ``is_selected`` of size 0 no link
    is selected.
    """
    distance, flow, selected_flow, selected_volume = results
    while True:
        block = atomic_add(next_item, 0, 1)
        if block >= n_items:
            break
        flow[block] = 0.0
        for group in range(first_group[block], first_group[block + 1]):
            origin = np.int64(demand.origin[group])
            k = demand.user_class[group]
            tree = trees[group]
            find_tree(origin, tree, cost[k], links, scratch)
            begin = demand.first_pair[group]
            end = demand.first_pair[group + 1]
            for pair in range(begin, end):
                v = demand.destination[pair]
                distance[pair] = scratch.distance[v]
                scratch.carried[v] += demand.volume[pair]
            load_tree(origin, tree, links, scratch, flow[block, k])
            if is_selected.size:
                mark_users(origin, tree, is_selected, links, scratch)
                for pair in range(begin, end):
                    v = demand.destination[pair]
                    selected_volume[pair] = demand.volume[pair] * scratch.uses[v]
                    scratch.carried[v] += selected_volume[pair]
                load_tree(origin, tree, links, scratch, selected_flow[block, k])


@njit(cache=True, nogil=True)
def sum_along(next_item, n_items, demand, links, cost, values, distance, sums, tree, scratch):
    """Find the distance of each pair, and the sums of some values of the links along its canonical
    path, added from the origin on; NaN where there is no path.
    """
    while True:
        group = atomic_add(next_item, 0, 1)
        if group >= n_items:
            break
        origin = np.int64(demand.origin[group])
        tree[:] = NO_LINK
        find_tree(origin, tree, cost[demand.user_class[group]], links, scratch)
        for pair in range(demand.first_pair[group], demand.first_pair[group + 1]):
            v = np.int64(demand.destination[pair])
            distance[pair] = scratch.distance[v]
            for i in range(values.shape[0]):
                sums[i, pair] = 0.0 if v == origin else np.nan
            if v == origin or scratch.distance[v] == np.inf:
                continue
            length = 0
            while v != origin:
                scratch.entries[length] = tree[v]
                length += 1
                v = np.int64(links.tails[tree[v]])
            for i in range(values.shape[0]):
                total = 0.0
                for at in range(length - 1, -1, -1):
                    total += values[i, scratch.entries[at]]
                sums[i, pair] = total
