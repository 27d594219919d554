"""Assignments on a GPU, or on the host harness: the bits of a CPU, and the proof of distances."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from kepler_traverse.assignment import assign, sweep_loader_gpu, swept_loads_gpu
from kepler_traverse.assignment.all_or_nothing import Ground, SweepLoader
from kepler_traverse.assignment.sweep_loader_gpu import SweepLoaderOnGpu
from kepler_traverse.errors import CertificateError, InputError
from kepler_traverse.hierarchy.customizable import UNREACHED
from pipelines import assignment
from tests.assignment import networks
from tests.support.devices import FIRST, MODES, in_each, in_one, on_a_device

pytestmark = on_a_device

mode, one_order = in_each(MODES), in_one(FIRST)
ANY = 10**9


def problem_of(seed, n_zones):
    """Return a problem whose volumes have sums that depend on their order."""
    problem, cost = networks.problem_of(seed, n_zones, side=4)
    rng = np.random.default_rng(seed)
    problem.demand.volume[:] = rng.random(problem.demand.volume.size)
    return problem, cost


def loaders_of(problem, is_selected=None):
    ground = Ground.of(problem, ANY)
    return (
        SweepLoader(problem, ground, is_selected),
        SweepLoaderOnGpu(problem, ground, is_selected),
    )


def select(problem, cost, n_selected):
    """Return so many links that carry volumes of both classes or of one, and a link that carries none."""
    flow = loaders_of(problem)[0].load(cost).flow
    rng = np.random.default_rng(problem.demand.origin.size)
    is_selected = np.zeros(cost.shape[1], bool)
    is_selected[rng.choice(np.flatnonzero(flow.sum(axis=0)), n_selected, replace=False)] = True
    is_selected[np.flatnonzero(flow.sum(axis=0) == 0)[:1]] = True
    return is_selected


def require_equal_bits(found, expected):
    for name, value in expected._asdict().items():
        if value is not None:
            assert np.array_equal(getattr(found, name), value), name


@pytest.mark.usefixtures("mode")
@pytest.mark.parametrize("n_zones", [6, 40])
def test_loads_have_the_bits_of_a_cpu(n_zones):
    problem, cost = problem_of(n_zones, n_zones)
    on_cpu, on_gpu = loaders_of(problem)
    expected = on_cpu.load(cost)
    require_equal_bits(on_gpu.load(cost), expected)
    assert np.array_equal(on_gpu.prove(cost), expected.distance)


@pytest.mark.usefixtures("mode")
@pytest.mark.parametrize("n_zones", [6, 40])
@pytest.mark.parametrize("n_selected", [1, 4])
def test_selected_loads_have_the_bits_of_a_cpu(n_zones, n_selected):
    problem, cost = problem_of(n_zones, n_zones)
    on_cpu, on_gpu = loaders_of(problem, select(problem, cost, n_selected))
    expected = on_cpu.load(cost)
    assert 0 < np.count_nonzero(expected.selected_volume) < expected.selected_volume.size
    require_equal_bits(on_gpu.load(cost), expected)


@pytest.mark.usefixtures("one_order")
def test_loads_of_other_costs_hold_nothing_of_those_before():
    problem, cost = problem_of(6, 6)
    on_cpu, on_gpu = loaders_of(problem, select(problem, cost, 3))
    for costs in (cost, cost[::-1], cost):
        require_equal_bits(on_gpu.load(costs), on_cpu.load(costs))


@pytest.mark.usefixtures("one_order")
def test_lanes_that_do_not_fit_are_loaded_one_after_another(monkeypatch):
    # Shares of the origins end within a warp, and go on in the next one.
    problem, cost = problem_of(3, 100)
    monkeypatch.setattr(swept_loads_gpu, "_MAX_BYTES", 1)
    on_cpu, on_gpu = loaders_of(problem, select(problem, cost, 4))
    require_equal_bits(on_gpu.load(cost), on_cpu.load(cost))


@pytest.mark.usefixtures("one_order")
def test_free_cycles_and_links_that_are_left_out_have_the_bits_of_a_cpu():
    problem, cost = problem_of(7, 40)
    cost[0] *= np.random.default_rng(7).random(cost.shape[1]) < 0.3  # many links on free cycles
    cost[1, [2, 50, 90]] = [1e9, 1e12, 1e30]
    heads = problem.network.links.heads
    cost[1, heads == heads[-1]] = 1e15  # all ways to one vertex
    on_cpu, on_gpu = loaders_of(problem, select(problem, cost, 4))
    require_equal_bits(on_gpu.load(cost), on_cpu.load(cost))
    assert np.array_equal(on_gpu.prove(cost), on_cpu.prove(cost))


@pytest.mark.usefixtures("one_order")
@pytest.mark.parametrize(("name", "change"), [("load", 1), ("load", -1), ("prove", 1)])
def test_wrong_weights_are_reported(monkeypatch, name, change):
    problem, cost = problem_of(4, 6)
    on_gpu = loaders_of(problem)[1]
    customize = on_gpu._arcs.customize

    def change_weights(costs):
        customize(costs)
        weights = on_gpu._arcs.weights
        weights[(weights > 0) & (weights < UNREACHED)] += change

    monkeypatch.setattr(on_gpu._arcs, "customize", change_weights)
    with pytest.raises(CertificateError, match="not proved"):
        getattr(on_gpu, name)(cost)


@pytest.mark.usefixtures("one_order")
def test_assignment_has_the_bits_of_a_cpu():
    links, trips = networks.grid(side=4, n_zones=5)
    options = {"method": "frank_wolfe", "gap": 1e-3, "closed": [5]}
    expected = assign(links, trips, **options)
    found = assign(links, trips, **options, device="cuda")
    assert expected.shortest_by == found.shortest_by == "hierarchy"
    pd.testing.assert_frame_equal(found.links, expected.links, check_exact=True)
    assert found.gaps == expected.gaps
    assert found.certify() == expected.bound


@pytest.mark.usefixtures("one_order")
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "name that, or leave device out"),
        ({"method": "frank_wolfe", "select_link": [1]}, "leave one of them out"),
    ],
)
def test_what_no_gpu_computes_is_refused(options, says):
    links, trips = networks.grid()
    with pytest.raises(InputError, match=says):
        assign(links, trips, device="cuda", **options)


@pytest.mark.usefixtures("one_order")
def test_networks_that_a_gpu_does_not_take_are_refused(monkeypatch):
    ends = [(u, v) for u in range(60) for v in range(60) if u != v]
    links = pd.DataFrame(ends, columns=["src", "dst"])
    links = links.assign(free_flow_time=1.0, capacity=1.0, b=0.15, power=4.0)
    trips = pd.DataFrame({"origin": [0], "destination": [1], "volume": [1.0]})
    with pytest.raises(InputError, match="needs a hierarchy"):
        assign(links, trips, method="frank_wolfe", device="cuda")
    monkeypatch.setattr(sweep_loader_gpu, "MAX_LEVELS", 3)
    with pytest.raises(InputError, match="a GPU takes 3; leave device out"):
        assign(*networks.grid(side=4, n_zones=5), method="frank_wolfe", device="cuda")


@pytest.mark.usefixtures("one_order")
def test_outputs_of_the_job_are_those_of_a_cpu(tmp_path):
    links, trips = networks.grid(side=4, n_zones=5)
    links.to_parquet(tmp_path / "links.parquet")
    trips.to_parquet(tmp_path / "trips.parquet")
    given = [str(tmp_path / "links.parquet"), "--trips", str(tmp_path / "trips.parquet")]
    written = []
    for device in ("cpu", "cuda"):
        folder = tmp_path / device
        how = ["--method", "frank_wolfe", "--gap", "1e-2", "--device", device]
        assert assignment.main([*given, *how, "--output", str(folder)]) == 0
        manifest = json.loads((folder / assignment.MANIFEST).read_text())
        written.append((folder / assignment.LINKS).read_bytes())
        written.append(manifest["settings"])
    assert written[:2] == written[2:]
    for device in ("cpu", "cuda"):
        verify = ["--verify", str(tmp_path / "cuda"), "--device", device]
        assert assignment.main([*given, *verify]) == 0
