"""A hierarchy for any weights compared with SciPy: its order, its weights, and what it hands down."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra

from kepler_traverse.cpu.threads import run_alone
from kepler_traverse.hierarchy import customizable
from kepler_traverse.hierarchy.customizable import (
    DOWN,
    NO_LINK,
    UNREACHED,
    UP,
    customize,
    equal_shares,
    find_shorter,
    find_subtrees,
    hand_down,
    make_customizable,
    mark_sides,
    new_arcs,
)
from kepler_traverse.hierarchy.elimination import eliminate

ANY = 10**9


def random_links(seed, n=40):
    """Return links of a few parts, some parallel, some loops; 3 vertices only begin, 3 only end."""
    rng = np.random.default_rng(seed)
    tails, heads = rng.integers(0, n, (2, 3 * n))
    heads = np.where(rng.random(3 * n) < 0.8, (tails + rng.integers(0, 4, 3 * n)) % n, heads)
    part = np.arange(n) % 2 == 0
    keeps = part[tails] == part[heads] if seed % 2 else np.ones(3 * n, bool)
    is_end = np.zeros(n, bool)
    begins, ends = np.split(rng.choice(n, 6, replace=False), 2)
    is_end[begins] = True
    is_end[ends] = True
    keeps &= ~np.isin(tails, ends) & ~np.isin(heads, begins)
    tails, heads = tails[keeps], heads[keeps]
    return n, np.append(tails, tails[:9]), np.append(heads, heads[:9]), is_end


def made_of(seed):
    n, tails, heads, is_end = random_links(seed)
    made = make_customizable(n, tails, heads, is_end, ANY)
    rng = np.random.default_rng(seed + 100)
    costs = rng.integers(0, 4 if seed % 3 else 1000, tails.size)
    arcs = new_arcs(made.topology)
    customize(costs, made.topology, find_subtrees(made.topology), arcs)
    return n, tails, heads, costs, made, arcs


def lengths(n, tails, heads, costs):
    """Return all distances; SciPy takes an edge of weight 0 for none."""
    order = np.lexsort((costs, heads, tails))
    tails, heads, costs = tails[order], heads[order], costs[order]
    is_first = np.append(True, (np.diff(tails) != 0) | (np.diff(heads) != 0))
    weights = np.where(costs == 0, 1e-6, costs)[is_first]
    matrix = csr_matrix((weights, (tails[is_first], heads[is_first])), (n, n))
    found = dijkstra(matrix)
    return np.where(np.isinf(found), UNREACHED, np.round(np.where(np.isinf(found), 0, found)))


@pytest.mark.parametrize("seed", range(6))
def test_least_way_up_and_down_is_the_distance(seed):
    n, tails, heads, costs, made, arcs = made_of(seed)
    weights = arcs.weights
    topology = made.topology
    up = np.full((n, n), 2.0 * UNREACHED)
    down = np.full((n, n), 2.0 * UNREACHED)
    for v in range(n):
        up[v, v] = down[v, v] = 0
    for x in range(n - 1, -1, -1):  # from the top: up[x, y] over arcs upward only
        for arc in range(topology.offsets[x], topology.offsets[x + 1]):
            y = topology.heads[arc]
            up[x] = np.minimum(up[x], weights[2 * arc + UP] + up[y])
            down[x] = np.minimum(down[x], weights[2 * arc + DOWN] + down[y])
    least = (up[:, None, :] + down[None, :, :]).min(axis=2)
    expected = lengths(n, tails, heads, costs)
    by_rank = np.empty_like(expected)
    by_rank[np.ix_(made.rank, made.rank)] = expected
    assert np.array_equal(np.minimum(least, UNREACHED), by_rank)


@pytest.mark.parametrize("seed", range(4))
def test_loads_of_arcs_end_on_links_that_cost_as_much(seed):
    n, tails, heads, costs, made, arcs = made_of(seed)
    weights = arcs.weights
    reached = np.flatnonzero(weights < UNREACHED)
    rng = np.random.default_rng(seed)
    for side in rng.choice(reached, 20):
        loads = np.zeros(weights.size)
        loads[side] = 1.5
        flow = np.zeros(costs.size)
        subtrees = find_subtrees(made.topology)
        assert hand_down(costs, made.topology, subtrees, arcs, loads, flow)
        assert flow @ costs == 1.5 * weights[side]
        ends = made.topology.tails[side // 2], made.topology.heads[side // 2]
        begin, end = ends if side % 2 == UP else ends[::-1]
        net = np.bincount(made.rank[tails], flow, n) - np.bincount(made.rank[heads], flow, n)
        expected = np.zeros(n)
        expected[begin] += 1.5
        expected[end] -= 1.5
        assert np.array_equal(net, expected)
        is_marked = np.zeros(costs.size, bool)
        is_marked[rng.integers(0, costs.size, costs.size // 8)] = True
        marks = np.empty(weights.size, np.uint8)
        mark_sides(arcs, is_marked, marks)
        assert marks[side] == (flow[is_marked] > 0).any()


@pytest.mark.parametrize("change", [1, -1])
def test_weights_that_are_not_those_of_the_costs_are_found(change):
    _, _, _, costs, made, arcs = made_of(3)
    shares = equal_shares(made.topology, 4)
    subtrees = find_subtrees(made.topology)
    loads = np.where(arcs.weights < UNREACHED, 1.0, 0.0)

    def is_proved(weights):
        is_shorter = np.ones(4, bool)
        run_alone(find_shorter, 4, shares, costs, made.topology, weights, is_shorter)
        flow = np.zeros(costs.size)
        changed = arcs._replace(weights=weights)
        given = (costs, made.topology, subtrees, changed, loads.copy(), flow)
        is_explained = hand_down(*given)
        return is_explained and not is_shorter.any()

    assert is_proved(arcs.weights)
    rng = np.random.default_rng(1)
    for side in rng.choice(np.flatnonzero(loads), 30):
        wrong = arcs.weights.copy()
        wrong[side] += change
        assert not is_proved(wrong)


@pytest.mark.parametrize("seed", range(6))
def test_subtrees_have_the_bits_of_all_ranks_one_after_another(seed, monkeypatch):
    _, _, _, costs, made, arcs = made_of(seed)
    topology = made.topology
    rng = np.random.default_rng(seed)
    loads = rng.random(arcs.weights.size) * (arcs.weights < UNREACHED)
    one = find_subtrees(topology)
    assert one.first.tolist() == [0, topology.offsets.size - 1]
    flow = np.zeros(costs.size)
    assert hand_down(costs, topology, one, arcs, loads.copy(), flow)
    monkeypatch.setattr(customizable, "_FEW_TRIANGLES", 0)
    monkeypatch.setattr(customizable, "_SUBTREES", 5)
    shares = find_subtrees(topology)
    assert shares.first.size > 4
    assert sorted(shares.ranks) == list(range(topology.offsets.size - 1))
    again = new_arcs(topology)
    customize(costs, topology, shares, again)
    for found, expected in zip(again, arcs, strict=True):
        assert np.array_equal(found, expected)
    shared = np.zeros(costs.size)
    assert hand_down(costs, topology, shares, again, loads.copy(), shared)
    assert np.array_equal(shared, flow)


def test_vertices_without_a_way_through_come_first_and_are_not_joined():
    leaves = 50
    ring = np.arange(leaves, leaves + 4)
    tails = np.concatenate([np.full(leaves, leaves + 4), ring])
    heads = np.concatenate([np.arange(leaves), np.roll(ring, 1)])
    is_end = np.arange(leaves + 5) < leaves
    hub = make_customizable(leaves + 5, tails, heads, is_end, ANY)
    assert set(hub.rank[:leaves]) == set(range(leaves))
    assert hub.topology.n_ends == leaves
    assert hub.topology.heads.size == leaves + 4 + 1  # one diagonal of the ring
    assert hub.topology.sides.min() > NO_LINK


def test_elimination_stops_at_too_many_triangles():
    n = 30
    others = np.array([v for u in range(n) for v in range(n) if u != v], np.int32)
    offsets = np.arange(n + 1) * (n - 1)
    no_end = np.zeros(n, bool)
    n_triangles = n * (n - 1) * (n - 2) // 6
    assert eliminate(offsets, others, no_end, n_triangles - 1) is None
    assert eliminate(offsets, others, no_end, n_triangles).n_triangles == n_triangles
