"""All-or-nothing flows over a hierarchy compared with those of searches and SciPy."""

import numba
import numpy as np
import pandas as pd
import pytest

from kepler_traverse.assignment import BPR, VehicleClass, all_or_nothing, assign
from kepler_traverse.assignment.all_or_nothing import (
    Ground,
    SearchLoader,
    SweepLoader,
    whole_costs,
)
from kepler_traverse.assignment.loaders import make_loader
from kepler_traverse.assignment.network import read_network, read_trips
from kepler_traverse.assignment.problem import Problem
from kepler_traverse.errors import CertificateError
from tests.assignment import networks

ANY = 10**9


def loader_of(problem, is_selected=None):
    return SweepLoader(problem, Ground.of(problem, ANY), is_selected)


@pytest.mark.parametrize("seed", range(4))
def test_distances_and_flows_are_those_of_shortest_paths(seed):
    problem, cost = networks.problem_of(seed)
    loader = loader_of(problem)
    found = loader.load(cost)
    searched = SearchLoader(problem, None).load(cost)
    demand = problem.demand
    links = problem.network.links
    of_class = np.repeat(demand.user_class, np.diff(demand.first_pair))
    origins = np.repeat(demand.origin, np.diff(demand.first_pair))
    assert found.distance == pytest.approx(searched.distance, rel=1e-12)
    for k in range(2):
        volume = np.where(of_class == k, demand.volume, 0.0)
        assert found.flow[k] @ cost[k] == pytest.approx(volume @ searched.distance, rel=1e-12)
        n = problem.network.n_vertices
        out, into = (np.bincount(each, found.flow[k], n) for each in (links.tails, links.heads))
        begun, ended = (np.bincount(each, volume, n) for each in (origins, demand.destination))
        assert np.array_equal(out - into, begun - ended)
        closed = links.is_closed
        assert np.array_equal(out[closed], begun[closed])  # no path leads through
    assert np.array_equal(loader.prove(cost), found.distance)


@pytest.mark.parametrize("seed", range(2))
def test_selected_flows_are_those_of_the_pairs_whose_paths_use_the_links(seed):
    problem, cost = networks.problem_of(seed)
    loaded = loader_of(problem).load(cost)
    rng = np.random.default_rng(seed)
    is_selected = np.zeros(cost.shape[1], bool)
    is_selected[rng.choice(np.flatnonzero(loaded.flow.sum(axis=0)), 3)] = True
    found = loader_of(problem, is_selected).load(cost)
    assert np.array_equal(found.flow, loaded.flow)
    alone = problem.demand.volume.copy()
    ground = Ground.of(problem, ANY)
    for pair in range(alone.size):  # the paths of one pair at a time
        problem.demand.volume[:] = 0.0
        problem.demand.volume[pair] = alone[pair]
        flow = SweepLoader(problem, ground, None).load(cost).flow
        expected = alone[pair] if flow[:, is_selected].any() else 0.0
        assert found.selected_volume[pair] == expected
        found.selected_flow[:] -= flow if expected else 0.0
    assert not found.selected_flow.any()


@pytest.mark.parametrize("seed", range(3))
def test_a_path_passes_no_link_twice_where_links_cost_nothing(seed):
    problem, cost = networks.problem_of(seed)
    cost[0] = cost[0] * (np.random.default_rng(seed).random(cost.shape[1]) < 0.3)
    cost[1] = 0.0
    alone = problem.demand.volume.copy()
    for pair in np.flatnonzero(alone)[::7]:
        problem.demand.volume[:] = 0.0
        problem.demand.volume[pair] = alone[pair]
        flow = loader_of(problem).load(cost).flow
        assert set(np.unique(flow)) <= {0.0, alone[pair]}


def test_loads_have_equal_bits_on_any_number_of_threads():
    problem, cost = networks.problem_of(5, n_zones=300)
    problem.demand.volume[:] = np.random.default_rng(1).random(problem.demand.volume.size)
    before = numba.get_num_threads()
    loads = []
    try:
        for n in range(1, before + 1):
            numba.set_num_threads(n)
            loads.append(loader_of(problem).load(cost))
    finally:
        numba.set_num_threads(before)
    for each in loads[1:]:
        assert np.array_equal(each.flow, loads[0].flow)
        assert np.array_equal(each.distance, loads[0].distance)


def test_a_load_holds_nothing_of_the_one_before():
    # The memory of the results is kept, and with it what is not written again.
    problem, cost = networks.problem_of(8)
    is_selected = np.zeros(cost.shape[1], bool)
    is_selected[:3] = True
    loader = loader_of(problem, is_selected)
    loader.load(cost)
    loader.prove(cost)
    other = cost[:, ::-1].copy()
    again = loader.load(other)
    fresh = loader_of(problem, is_selected).load(other)
    for found, expected in zip(again, fresh, strict=True):
        assert np.array_equal(found, expected)
    distance = again.distance.copy()
    assert np.array_equal(loader.prove(other), distance)


@pytest.mark.parametrize("factor", [1e-300, 1e-9, 0.0, 1.0, 1e200, 1e304])
def test_costs_are_rounded_down_by_less_than_a_unit(factor):
    cost = np.random.default_rng(1).random(1000) * factor
    tails = np.arange(cost.size)
    (rounded,) = whole_costs(cost, tails, tails + 1)
    whole, shift, n_bits, leaves_out = rounded
    assert n_bits == 0
    assert not leaves_out
    assert whole.sum() < all_or_nothing.MAX_SUM
    below = cost - np.ldexp(whole.astype(float), -shift)
    assert (below >= 0).all()
    assert (below < 2.0**-shift).all()
    assert below.sum() <= 1e-12 * cost.sum()


@pytest.mark.parametrize("factor", [1e-200, 1.0, 1e250])
def test_links_are_left_out_that_cost_more_than_all_others_together(factor):
    cost = np.random.default_rng(1).random(1000)
    cost[[5, 7]] = 1e9
    cost[9] = 1e18
    cost *= factor
    tails = np.arange(cost.size)
    roundings = list(whole_costs(cost, tails, tails + 1))
    left_out = [np.flatnonzero(each.costs == all_or_nothing.UNREACHED) for each in roundings]
    assert [each.tolist() for each in left_out] == [[5, 7, 9], [9], []]
    assert [each.leaves_out for each in roundings] == [True, True, False]
    for each in roundings:
        is_kept = each.costs < all_or_nothing.UNREACHED
        assert each.costs[is_kept].sum() < all_or_nothing.MAX_SUM
        below = cost[is_kept] - np.ldexp(each.costs[is_kept].astype(float), -each.shift)
        assert (below >= 0).all()
        assert below.max() <= 2.0**-56 * cost[is_kept].sum()


@pytest.mark.parametrize("is_needed", [False, True])
def test_a_link_that_costs_far_more_than_others_leaves_them_their_digits(is_needed):
    links, _ = networks.grid(side=6)
    links = links[["src", "dst"]]
    cost = 1 + np.random.default_rng(3).random(len(links))
    end = 5
    unit = 0.0
    if is_needed:  # by the other pair, whose cost the gap is a part of
        cost[links.dst == end] = 1e14
        unit = 2.0**-56 * 4e14
    cost[20] = 1e16
    trips = pd.DataFrame({"origin": [355, 115], "destination": [end, 215], "volume": 1.0})
    network = read_network(
        links.assign(free_flow_time=cost, capacity=1, b=0, power=1), (None, None), None
    )
    problem = Problem(
        network, read_trips(trips, network, [VehicleClass()]), [VehicleClass()], BPR()
    )
    ids, distance, _ = networks.distances(links, cost)
    expected = [
        distance[np.searchsorted(ids, pair)[0], np.searchsorted(ids, pair)[1]]
        for pair in ((115, 215), (355, end))
    ]
    loader = loader_of(problem)
    by_link = network.by_link(cost[None])
    found = loader.load(by_link)
    assert found.distance == pytest.approx(expected, rel=1e-14, abs=20 * unit)
    assert found.flow[0] @ by_link[0] == pytest.approx(sum(expected), rel=1e-14)
    assert np.array_equal(loader.prove(by_link), found.distance)


def test_weights_that_are_not_those_of_the_costs_are_reported(monkeypatch):
    problem, cost = networks.problem_of(6)
    loader = loader_of(problem)
    right = loader._weights_at

    def raise_weights(costs, searches):
        weights = right(costs, searches)
        loader._arcs.weights[loader._arcs.weights < all_or_nothing.UNREACHED] += 1
        return weights

    monkeypatch.setattr(loader, "_weights_at", raise_weights)
    with pytest.raises(CertificateError, match="not proved"):
        loader.load(cost)


def test_distances_that_a_link_makes_shorter_are_reported(monkeypatch):
    problem, cost = networks.problem_of(6)
    loader = loader_of(problem)
    right = loader._weights_at

    def lose_an_arc(costs, searches):
        weights = right(costs, searches)
        weights.fall[0] = all_or_nothing.UNREACHED
        return weights

    assert loader.prove(cost).size
    monkeypatch.setattr(loader, "_weights_at", lose_an_arc)
    with pytest.raises(CertificateError, match="not proved"):
        loader.prove(cost)


def test_assignment_refuses_a_bound_that_the_links_do_not_prove(monkeypatch):
    links, trips = networks.grid()
    monkeypatch.setattr(SweepLoader, "prove", lambda self, cost: self.load(cost).distance * 0.99)
    with pytest.raises(CertificateError, match="not proved"):
        assign(links, trips, method="frank_wolfe", gap=1e-3)


def test_both_ways_reach_the_same_equilibrium(monkeypatch, tmp_path):
    links, trips = networks.grid(seed=12)
    options = {"method": "frank_wolfe", "gap": 1e-4, "closed": [5], "select_link": [3]}
    swept = assign(links, trips, **options)
    monkeypatch.setattr(Ground, "of", lambda *_, **__: None)
    searched = assign(links, trips, **options)
    assert (swept.shortest_by, searched.shortest_by) == ("hierarchy", "searches")
    assert swept.links.flow.to_numpy() == pytest.approx(searched.links.flow, rel=0.05, abs=1.0)
    assert searched.certify() == searched.bound
    file = tmp_path / "state.npz"
    assign(links, trips, **options, max_iterations=4, checkpoint=file)
    resumed = assign(links, trips, **options, checkpoint=file)
    pd.testing.assert_frame_equal(resumed.links, searched.links, check_exact=True)
    with np.load(file) as arrays:  # as version 0.1.0 has written it
        earlier = {name: arrays[name] for name in arrays.files if name != "checksum"}
    np.savez(file, **earlier)
    monkeypatch.undo()
    resumed = assign(links, trips, **options, checkpoint=file)
    assert resumed.shortest_by == "searches"
    pd.testing.assert_frame_equal(resumed.links, searched.links, check_exact=True)


def test_network_without_small_separators_is_searched():
    n = 60
    ends = np.array([(u, v) for u in range(n) for v in range(n) if u != v])
    links = pd.DataFrame(ends, columns=["src", "dst"])
    links = links.assign(free_flow_time=1.0, capacity=1.0, b=0.15, power=4.0)
    trips = pd.DataFrame({"origin": [0], "destination": [1], "volume": [1.0]})
    network = read_network(links, (None, None), None)
    problem = Problem(
        network, read_trips(trips, network, [VehicleClass()]), [VehicleClass()], BPR()
    )
    assert make_loader(problem, None, "cpu").name == "searches"
