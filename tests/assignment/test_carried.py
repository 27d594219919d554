"""Flows of the links that carry something, and what all links cost, compared with passes of NumPy over all links."""

import numpy as np
import pytest

from kepler_traverse.assignment.carried import Carried, Side, add_up_curvature, change_to
from kepler_traverse.assignment.link_costs import BLOCK, measure_extent, round_down, scale_sums
from tests.assignment import networks

N_LINKS = 2 * BLOCK + 100  # several blocks, of which the last one is not full
SHAPE = (2, N_LINKS)
N_FLOWS = 2 * N_LINKS
N_ALL = N_FLOWS + 7  # what follows the flows is combined with them


def some_flows(seed, share):
    rng = np.random.default_rng(seed)
    flows = rng.random(N_ALL) * 100
    flows[:N_FLOWS][rng.random(N_FLOWS) > share] = 0.0
    return flows


def arrays_of(n_targets):
    flows, following, *targets = (some_flows(seed, 0.2) for seed in range(2 + n_targets))
    return flows, following, targets


@pytest.mark.parametrize("n_targets", range(3))
def test_links_that_carry_something_are_those_of_any_array_and_class(n_targets):
    flows, following, targets = arrays_of(n_targets)
    carried = Carried.of(flows, following, targets, SHAPE)
    every = np.array([flows, following, *targets])
    expected = np.flatnonzero(every[:, :N_FLOWS].reshape(-1, N_LINKS).any(axis=0))
    assert np.array_equal(carried.links, expected)
    places = np.concatenate([expected, expected + N_LINKS, np.arange(N_FLOWS, N_ALL)])
    assert np.array_equal(carried.places, places)
    found = [carried.flows, carried.next, *carried.targets]
    assert np.array_equal(found, every[:, places])


def test_a_single_array_of_one_target_counts():
    flows = np.zeros(N_ALL)
    last = flows.copy()
    before = flows.copy()
    last[BLOCK] = 1.0
    before[N_LINKS + 5] = 1.0
    assert Carried.of(flows, flows, [last, before], SHAPE).links.tolist() == [5, BLOCK]
    assert Carried.of(flows, flows, [], SHAPE).links.size == 0


def test_steps_have_the_bits_of_passes_over_all_links():
    flows, following, targets = arrays_of(2)
    carried = Carried.of(flows, following, targets, SHAPE)
    target = carried.combine((1.0, 0.3, 0.7), 2.0)
    of_all = (following + 0.3 * targets[0] + 0.7 * targets[1]) / 2.0
    assert np.array_equal(target, of_all[carried.places])
    moved = flows.copy()
    carried.move(target, 0.4, moved, targets[1])
    assert np.array_equal(moved, flows + 0.4 * (of_all - flows))
    # all that the array of the last target but one had is written again
    assert np.array_equal(targets[1], of_all)


def test_curvature_has_the_bits_of_sums_in_order():
    rng = np.random.default_rng(4)
    side = Side(rng.random(500), rng.random(500), np.array([1.0, 2.5]))
    following, last, before = rng.random((3, 2, 500))
    directions = []
    for each in (following, last, before):
        directions.append(1.0 * each[0] + 2.5 * each[1] - side.flow)
        assert np.array_equal(change_to(each, side), directions[-1])
    to_next, to_last, to_before = directions
    mixed = 0.4 * to_last + (1.0 - 0.4) * to_before

    def add_up(x, y):
        return sum((x * side.slope * y).tolist())  # in order

    assert add_up_curvature(following, last, before, side, 0.4) == (
        add_up(to_last, to_next),
        add_up(to_last, to_last),
        add_up(to_last, to_next - to_last),
        add_up(mixed, to_next),
        add_up(mixed, to_before - to_last),
    )


def test_loads_at_other_flows_are_those_that_are_made_anew():
    problem, _ = networks.problem_of(3)
    rng = np.random.default_rng(5)
    loads = problem.loads_at(np.zeros(problem.network.n_links))
    flow = np.zeros((2, problem.network.n_links))
    for _ in range(4):
        changes = rng.random(flow.shape) < 0.3
        flow[changes] = rng.choice([0.0, 1.0, 7.5], changes.sum())
        loads = problem.loads_again(flow, loads)
        expected = problem.loads_at(problem.common_flow(flow))
        for found, each in zip(loads, expected, strict=True):
            assert np.array_equal(found, each)


@pytest.mark.parametrize("limit", [0.0, 0.5, np.inf])
def test_extent_of_costs(limit):
    values = np.random.default_rng(6).random(N_LINKS)
    values[-1] = 3.0
    total, n_above, largest = measure_extent(values, limit)
    assert total == pytest.approx(values[values <= limit].sum())
    assert n_above == (values > limit).sum()
    assert largest == 3.0


def test_sums_of_whole_numbers_are_scaled_back():
    values = np.random.default_rng(7).random(N_LINKS)
    values[:5] = [0.0, 1e-3, 0.25, 5.0, 0.5]
    whole = np.empty(N_LINKS, np.int64)
    assert round_down(values, 1.0, 4, 2**61, whole) == (values < 2.0**-4).sum()
    assert whole[:5].tolist() == [0, 0, 4, 2**61, 8]
    back = np.empty(N_LINKS)
    low_bits = np.where(whole < 2**61, (whole << 3) + 5, whole)
    assert not scale_sums(low_bits, (3, 4), 2**61, back)
    assert back[:5].tolist() == [0.0, 0.0, 0.25, np.inf, 0.5]
    assert scale_sums(whole[:3], (0, 4), 2**61, back[:3])
