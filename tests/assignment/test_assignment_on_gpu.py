"""Assignments on a GPU, or on the host harness: the bits of a CPU, and the proof of distances."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from kepler_traverse import cuda
from kepler_traverse.assignment import assign, sweep_loader_gpu, swept_loads_gpu
from kepler_traverse.assignment.all_or_nothing import Ground, SweepLoader
from kepler_traverse.assignment.sweep_loader_gpu import SweepLoaderOnGpu
from kepler_traverse.errors import CertificateError, DeviceError
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
        SweepLoaderOnGpu.of(problem, ground, is_selected),
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
def test_a_load_holds_nothing_of_the_one_before():
    problem, cost = problem_of(2, 9)
    on_cpu, on_gpu = loaders_of(problem)
    on_gpu.load(cost)
    on_gpu.prove(cost)
    other = cost[:, ::-1].copy()
    expected = on_cpu.load(other)
    found = on_gpu.load(other)
    assert np.array_equal(found.distance, expected.distance)
    assert np.array_equal(found.flow, expected.flow)


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


OPTIONS = {
    "method": "frank_wolfe",
    "gap": 1e-2,
    "classes": networks.CLASSES,
    "closed": [5],
    "select_link": [12, 19, 50],
}


def require_equal_results(found, expected):
    pd.testing.assert_frame_equal(found.links, expected.links, check_exact=True)
    pd.testing.assert_frame_equal(found.selected_pairs, expected.selected_pairs, check_exact=True)
    assert (found.gaps, found.bound) == (expected.gaps, expected.bound)
    assert found.shortest_by == expected.shortest_by


@pytest.mark.usefixtures("one_order")
def test_assignment_has_the_bits_of_a_cpu():
    links, trips = networks.grid(side=4, n_zones=5)
    expected = assign(links, trips, **OPTIONS)
    found = assign(links, trips, **OPTIONS, device="cuda")
    assert (expected.shortest_on, found.shortest_on) == ("cpu", "cuda")
    assert found.shortest_by == "hierarchy"
    require_equal_results(found, expected)
    assert len(found.selected_pairs)
    assert found.certify() == expected.bound
    assert "shortest_by='hierarchy', shortest_on='cuda'" in repr(found)


@pytest.mark.usefixtures("one_order")
@pytest.mark.parametrize("devices", [("cpu", "cuda"), ("cuda", "cpu")])
def test_assignment_of_one_device_goes_on_on_the_other_one(devices, tmp_path):
    links, trips = networks.grid(side=4, n_zones=5)
    file = tmp_path / "state.npz"
    first, second = devices
    begun = assign(links, trips, **OPTIONS, device=first, checkpoint=file, max_iterations=3)
    assert not begun.is_converged
    found = assign(links, trips, **OPTIONS, device=second, checkpoint=file)
    assert found.shortest_on == second
    require_equal_results(found, assign(links, trips, **OPTIONS))


def complete_graph(n):
    """Return links between all of n vertices, and one pair: searches take less time than a hierarchy."""
    ends = [(u, v) for u in range(n) for v in range(n) if u != v]
    links = pd.DataFrame(ends, columns=["src", "dst"])
    links = links.assign(free_flow_time=1.0, capacity=1.0, b=0.15, power=4.0)
    trips = pd.DataFrame({"origin": [0], "destination": [1], "volume": 1.0, "trucks": 1.0})
    return links, trips


@pytest.mark.usefixtures("one_order")
@pytest.mark.parametrize(
    ("tables", "options", "most_levels", "shortest_by"),
    [
        (complete_graph(60), {}, None, "searches"),
        (networks.grid(side=4, n_zones=5), {"method": "paths"}, None, "searches"),
        (networks.grid(side=4, n_zones=5), {}, 3, "hierarchy"),
    ],
    ids=["no hierarchy", "paths", "too many levels"],
)
def test_what_no_gpu_takes_is_computed_on_the_cpu(
    tables, options, most_levels, shortest_by, monkeypatch
):
    if most_levels is not None:
        monkeypatch.setattr(sweep_loader_gpu, "MAX_LEVELS", most_levels)
    asked = OPTIONS | options
    found = assign(*tables, **asked, device="cuda")
    assert (found.shortest_by, found.shortest_on) == (shortest_by, "cpu")
    require_equal_results(found, assign(*tables, **asked))


def test_a_gpu_that_is_not_there_is_refused(monkeypatch):
    monkeypatch.setattr(cuda, "available", lambda: False)
    for method in ("paths", "frank_wolfe"):
        with pytest.raises(DeviceError, match="take device 'cpu'"):
            assign(*networks.grid(), method=method, device="cuda")


@pytest.fixture
def files(tmp_path):
    """Return the words that name links and trips in files."""
    links, trips = networks.grid(side=4, n_zones=5)
    links.to_parquet(tmp_path / "links.parquet")
    trips.to_parquet(tmp_path / "trips.parquet")
    return [str(tmp_path / "links.parquet"), "--trips", str(tmp_path / "trips.parquet")]


@pytest.mark.usefixtures("one_order")
@pytest.mark.parametrize("method", ["paths", "frank_wolfe"])
def test_outputs_of_the_job_are_those_of_a_cpu(method, files, tmp_path, capsys):
    by_gpu = {"frank_wolfe": "cuda", "paths": "cpu"}
    how = ["--method", method, "--gap", "1e-2", "--select-link", "12,19,50"]
    written = []
    for device, shortest_on in (("cpu", "cpu"), ("cuda", by_gpu[method])):
        folder = tmp_path / device
        assert assignment.main([*files, *how, "--device", device, "--output", str(folder)]) == 0
        manifest = json.loads((folder / assignment.MANIFEST).read_text())
        assert manifest["shortest_on"] == shortest_on
        says_so = "the CPU found the shortest paths (shortest_by: searches)"
        assert (says_so in capsys.readouterr().err) == (device != shortest_on)
        tables = [(folder / name).read_bytes() for name in (assignment.LINKS, assignment.SELECTED)]
        written.append((tables, manifest["settings"]))
        assert len(pd.read_parquet(folder / assignment.SELECTED))
    assert written[0] == written[1]
    for device in ("cpu", "cuda"):
        for folder in ("cpu", "cuda"):
            verify = ["--verify", str(tmp_path / folder), "--device", device]
            assert assignment.main([*files, *verify]) == 0


@pytest.mark.usefixtures("one_order")
@pytest.mark.parametrize("devices", [("cpu", "cuda"), ("cuda", "cpu")])
def test_run_of_one_device_is_resumed_on_the_other_one(devices, files, tmp_path):
    how = ["--method", "frank_wolfe", "--gap", "1e-2", "--select-link", "12,19,50"]
    out = tmp_path / "resumed"
    first, second = ([*files, *how, "--device", device, "--output", str(out)] for device in devices)
    assert assignment.main([*first, "--max-iterations", "3"]) == assignment.EXIT_NOT_MET
    assert assignment.main([*second, "--resume"]) == 0
    whole = tmp_path / "whole"
    assert assignment.main([*files, *how, "--output", str(whole)]) == 0
    for name in (assignment.LINKS, assignment.SELECTED):
        assert (out / name).read_bytes() == (whole / name).read_bytes()
