"""Equilibria beside closed forms, a textbook Frank-Wolfe, SciPy's distances and published flows."""

import math
import os
from functools import cache
from pathlib import Path

import numba
import numpy as np
import pandas as pd
import pytest

from kepler_traverse import InputError
from kepler_traverse.assignment import (
    BPR,
    Conical,
    CostFunction,
    VehicleClass,
    assign,
    link_costs,
)
from kepler_traverse.errors import CertificateError, UnknownVertexError
from tests.assignment import networks

METHODS = [("paths", 1e-9), ("frank_wolfe", 1e-4)]
DATA = Path(os.environ.get("KEPLER_DATA", "../shared/data"))


def two_routes(**columns):
    """Return two links from 1 to 2, with a column of numbers per argument."""
    links = pd.DataFrame({"src": [1, 1], "dst": [2, 2], **columns})
    return links, pd.DataFrame({"origin": [1], "destination": [2], "volume": [6.0]})


def linear(**columns):
    return two_routes(**columns, b=[1.0, 1.0], power=[1.0, 1.0])


@pytest.mark.parametrize(("method", "gap"), METHODS)
def test_two_routes_share_the_volume_as_the_closed_form_says(method, gap):
    # 1 + x = 3 (1 + (6 - x) / 6): x = 10 / 3
    links, trips = linear(free_flow_time=[1.0, 3.0], capacity=[1.0, 6.0])
    result = assign(links, trips, method=method, gap=gap)
    assert result.is_converged
    assert result.links.flow.to_list() == pytest.approx([10 / 3, 8 / 3], rel=1e-3)


def test_braess_network_costs_more_with_the_shortcut():
    links = pd.DataFrame(
        {"src": [1, 1, 2, 3, 2], "dst": [2, 3, 4, 4, 3], "free_flow_time": [1e-9, 50.0, 50.0, 1e-9, 10.0],
         "capacity": [1e-10, 50.0, 50.0, 1e-10, 10.0], "b": 1.0, "power": 1.0}
    )  # fmt: skip
    trips = {"origin": [1], "destination": [4], "volume": [6.0]}
    without = assign(links[:4], trips, gap=1e-10)
    with_shortcut = assign(links, trips, gap=1e-10)
    assert without.total / 6 == pytest.approx(83)
    assert with_shortcut.total / 6 == pytest.approx(92)
    assert with_shortcut.links.flow.to_list() == pytest.approx([4, 2, 2, 4, 2])


@cache
def by_the_textbook():
    links, trips = networks.grid(side=4, n_zones=5, volume=90)
    flow = networks.textbook(links, trips, networks.bpr_of(links), 150)
    return links, trips, flow


@pytest.mark.parametrize(("method", "gap"), METHODS)
def test_flows_match_a_textbook_frank_wolfe(method, gap):
    links, trips, expected = by_the_textbook()
    result = assign(links, trips, method=method, gap=gap)
    assert result.is_converged
    assert np.abs(result.links.flow - expected).sum() < 1e-2 * expected.sum()
    assert result.links.time.to_numpy() == pytest.approx(networks.bpr(links, result.links.flow))


@pytest.mark.parametrize(("method", "gap"), METHODS)
def test_gap_bounds_what_scipy_finds(method, gap):
    links, trips = networks.grid(seed=2)
    result = assign(links, trips, method=method, gap=gap)
    _, shortest = networks.all_or_nothing(links, trips, result.links.cost.to_numpy())
    total = math.fsum(result.links.flow * result.links.cost)
    assert result.total == pytest.approx(total, rel=1e-12)
    assert result.shortest == pytest.approx(shortest, rel=1e-12)
    assert (total - shortest) / total <= result.relative_gap <= gap
    assert result.average_excess == pytest.approx((total - shortest) / trips.volume.sum(), abs=1e-9)


@pytest.mark.parametrize(("method", "gap"), METHODS)
def test_vehicle_classes_see_tolls_and_lengths(method, gap):
    links, trips = networks.grid(seed=3)
    classes = [
        VehicleClass(volume="volume", value_of_time=2.0),
        VehicleClass(volume="trucks", distance_weight=0.5, passenger_cars=2.5),
    ]
    result = assign(links, trips, classes=classes, method=method, gap=gap)
    frame = result.links
    assert frame.flow.to_numpy() == pytest.approx(frame.flow_volume + 2.5 * frame.flow_trucks)
    assert frame.cost_volume.to_numpy() == pytest.approx(frame.time + links.toll / 2)
    assert frame.cost_trucks.to_numpy() == pytest.approx(frame.time + 0.5 * links.length)
    shortest = 0.0
    for name, weight in (("volume", 1.0), ("trucks", 2.5)):
        own = trips[["origin", "destination"]].assign(volume=trips[name])
        shortest += weight * networks.all_or_nothing(links, own, frame[f"cost_{name}"])[1]
    assert result.shortest == pytest.approx(shortest, rel=1e-12)
    assert result.certify().relative_gap <= gap


def test_classes_that_are_alike_flow_as_one():
    links, trips = networks.grid(seed=4)
    half = trips.assign(a=trips.volume / 2, c=trips.volume / 2)
    classes = [VehicleClass(volume="a"), VehicleClass(volume="c")]
    one = assign(links, trips, gap=1e-10).links.flow
    two = assign(links, half, classes=classes, gap=1e-10).links.flow
    assert np.abs(one - two).sum() < 1e-5 * one.sum()


@pytest.mark.parametrize("method", ["paths", "frank_wolfe"])
@pytest.mark.parametrize("power", [0.5, 1.0, 2.5, 5.0])
def test_any_power_gives_equal_costs_on_used_routes(method, power):
    links, trips = two_routes(free_flow_time=[1.0, 2.0], capacity=[2.0, 3.0], b=[1.5, 1.0])
    links["power"] = power
    result = assign(links, trips, method=method, gap=1e-6)
    assert result.is_converged
    assert result.links.time.to_numpy() == pytest.approx(networks.bpr(links, result.links.flow))
    assert result.links.time[0] == pytest.approx(result.links.time[1], rel=1e-3)


@pytest.mark.parametrize("power", [0.01, 0.05, 0.3, 0.5])
def test_concave_costs_reach_small_gaps(power):
    for seed in range(4):
        links, trips = networks.grid(side=5, seed=seed, n_zones=6)
        links["power"] = np.where(np.arange(len(links)) % 3, power, 1.0)
        links["b"] = 2.0
        result = assign(links, trips, gap=1e-9, max_iterations=300)
        assert result.is_converged, (seed, result)


def test_powers_beyond_float64_end_as_those_of_python():
    for exponent in (-0.5, 1e-300, 0.5, 70.5, 1e3, 1e12, 1.7e308):
        for base in (5e-324, 1e-200, 0.5, 1 - 2**-53, 1.0, 1 + 2**-52, 3.0, 1e300, math.inf):
            with np.errstate(over="ignore", under="ignore"):
                expected = np.float64(base) ** exponent
            found = link_costs._power(base, exponent)
            assert found == pytest.approx(expected, rel=1e-12), (base, exponent)


@pytest.mark.parametrize("method", ["paths", "frank_wolfe"])
def test_a_power_that_no_flow_bears_is_refused(method):
    links, trips = two_routes(free_flow_time=1.0, capacity=1.0, b=1.0, power=1e300)
    with pytest.raises(InputError, match="is beyond float64; choose a smaller power"):
        assign(links, trips, method=method)


def test_power_0_and_capacity_0_are_constant_costs():
    links, trips = two_routes(
        free_flow_time=[2.0, 3.0], capacity=[0.0, 0.0], b=[0.5, 0.0], power=[0.0, 4.0]
    )
    result = assign(links, trips)
    assert result.links.time.to_list() == [3.0, 3.0]
    assert result.relative_gap < 1e-12
    links.power = 4.0
    with pytest.raises(InputError, match="row 0: the capacity is 0"):
        assign(links, trips)


def test_conical_costs_are_equal_and_integrate():
    links, trips = two_routes(free_flow_time=[1.0, 1.4], capacity=[3.0, 2.0], alpha=[4.0, 6.0])
    result = assign(links, trips, cost=Conical(alpha="alpha"), gap=1e-9)
    flow = result.links.flow.to_numpy()

    def cost(x):
        alpha = links.alpha.to_numpy()
        e = (2 * alpha - 1) / (2 * alpha - 2)
        u = alpha * (1 - x / links.capacity.to_numpy())
        return links.free_flow_time.to_numpy() * (2 + np.sqrt(u * u + e * e) - u - e)

    assert result.links.time.to_numpy() == pytest.approx(cost(flow))
    assert cost(flow)[0] == pytest.approx(cost(flow)[1], rel=1e-6)
    steps = (np.arange(20_000)[:, None] + 0.5) / 20_000
    assert result.objective == pytest.approx(cost(steps * flow).mean(axis=0) @ flow, rel=1e-7)


@cache
def of_bpr():
    return assign(*networks.grid(seed=5), gap=1e-9).links.flow.to_numpy()


@pytest.mark.parametrize(("method", "gap"), METHODS)
@pytest.mark.parametrize("has_slope", [True, False])
def test_function_of_the_users_gives_the_flows_of_bpr(method, gap, has_slope):
    links, trips = networks.grid(seed=5)

    time, capacity = links.free_flow_time.to_numpy(), links.capacity.to_numpy()

    def slope(flow):
        return 4 * 0.15 * time * (flow / capacity) ** 3 / capacity

    cost = CostFunction(value=networks.bpr_of(links), slope=slope if has_slope else None)
    result = assign(links, trips, cost=cost, method=method, gap=gap)
    expected = of_bpr()
    assert result.is_converged
    assert result.objective is None
    tolerance = 1e-4 if method == "paths" else 2e-2
    difference = np.abs(result.links.flow - expected).sum()
    assert difference < tolerance * expected.sum()


def test_objective_is_the_sum_of_integrals():
    links, trips = networks.grid(seed=6)
    result = assign(links, trips, classes=VehicleClass(distance_weight=0.1), gap=1e-6)
    flow = result.links.flow.to_numpy()
    ratio = flow / links.capacity.to_numpy()
    integrals = links.free_flow_time * (flow + 0.15 * links.capacity * ratio**5 / 5)
    assert result.objective == pytest.approx(integrals.sum() + 0.1 * (links.length * flow).sum())


@pytest.mark.parametrize("method", ["paths", "frank_wolfe"])
def test_no_path_leads_through_closed_vertices(method):
    # 1 -> 2 -> 3 is short, and 2 is closed; it may still end and begin there
    links = pd.DataFrame(
        {"src": [1, 2, 1, 4, 2], "dst": [2, 3, 4, 3, 2], "free_flow_time": [1.0, 1, 5, 5, 0]}
    ).assign(capacity=10.0, b=0.15, power=4.0)
    trips = pd.DataFrame(
        {"origin": [1, 1, 2, 2], "destination": [3, 2, 3, 2], "volume": [4.0, 2, 3, 9]}
    )
    flow = assign(links, trips, method=method, closed=[2], gap=1e-4).links.flow
    assert flow.to_list() == [2.0, 3.0, 4.0, 4.0, 0.0]
    assert assign(links, trips, method=method, gap=1e-4).links.flow[2] == 0.0


def state_of(result):
    return [result.links, result.gaps, result.objective, result.bound]


def assert_equal_bits(one, other):
    pd.testing.assert_frame_equal(one.links, other.links, check_exact=True)
    assert state_of(one)[1:] == state_of(other)[1:]


@pytest.mark.parametrize(("method", "gap"), METHODS)
def test_flows_have_equal_bits_on_any_number_of_threads(method, gap):
    links, trips = networks.grid(seed=7)
    many = assign(links, trips, method=method, gap=gap)
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        assert_equal_bits(many, assign(links, trips, method=method, gap=gap))
    finally:
        numba.set_num_threads(before)


@pytest.mark.parametrize(("method", "gap"), METHODS)
@pytest.mark.parametrize("n", [1, 4])
def test_resumed_assignment_has_equal_bits(tmp_path, method, gap, n):
    links, trips = networks.grid(seed=8)
    whole = assign(links, trips, method=method, gap=gap)
    file = tmp_path / "state.npz"
    first = assign(links, trips, method=method, gap=gap, max_iterations=n, checkpoint=file)
    assert not first.is_converged
    assert first.iterations == n
    for _ in range(2):  # the second time nothing is left to do
        resumed = assign(links, trips, method=method, gap=gap, checkpoint=file)
        assert_equal_bits(whole, resumed)


def test_interrupted_assignment_goes_on_with_equal_bits(tmp_path):
    links, trips = networks.grid(seed=9)
    file = tmp_path / "state.npz"

    def stop(iterations, _):
        if iterations == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        assign(links, trips, gap=1e-9, checkpoint=file, progress=stop)
    assert file.exists()
    seen = []
    resumed = assign(
        links, trips, gap=1e-9, checkpoint=file, progress=lambda n, gap: seen.append((n, gap))
    )
    assert seen[-1] == (resumed.iterations, resumed.relative_gap)
    assert_equal_bits(assign(links, trips, gap=1e-9), resumed)


@pytest.mark.parametrize("n_selected", [3, 1100])
def test_checkpoint_of_other_selected_links_is_refused(n_selected, tmp_path):
    links, trips = networks.grid(side=20, n_zones=4)
    rows = np.arange(n_selected)
    others = np.setdiff1d(np.arange(n_selected + 1), [n_selected // 2])
    file = tmp_path / "state.npz"
    options = {"method": "frank_wolfe", "gap": 1e-3, "max_iterations": 3, "checkpoint": file}
    begun = assign(links, trips, select_link=rows, **options)
    with np.printoptions(threshold=2, linewidth=9):  # as a user may have set them
        again = assign(links, trips, select_link=rows, **options)
    assert_equal_bits(again, begun)
    with pytest.raises(InputError, match="of other links, trips, costs"):
        assign(links, trips, select_link=others, **options)


def test_checkpoint_of_another_assignment_is_refused(tmp_path):
    links, trips = networks.grid()
    file = tmp_path / "state.npz"
    assign(links, trips, gap=1e-3, checkpoint=file)
    with pytest.raises(InputError, match="of other links, trips, costs"):
        assign(links, trips.assign(volume=trips.volume + 1), gap=1e-3, checkpoint=file)
    with pytest.raises(InputError, match="another method"):
        assign(links, trips, gap=1e-3, checkpoint=file, method="frank_wolfe")
    file.write_bytes(b"no state")
    with pytest.raises(InputError, match="cannot be read"):
        assign(links, trips, gap=1e-3, checkpoint=file)


def sealed(state, file):
    """Write a state as if an assignment had written it."""
    from kepler_traverse.assignment.checkpoints import Checkpoint

    arrays = {name: each for name, each in state.items() if name != "checksum"}
    Checkpoint(file, str(arrays.pop("fingerprint"))).write(arrays, is_last=True)


CHANGES = {
    "missing": None,
    "empty": lambda each: each.reshape(-1)[:0],
    "text": lambda each: np.full(each.shape, "x"),
    "float32": lambda each: each.astype(np.float32),
    "nan": lambda each: np.full(each.shape, np.nan),
    "two": lambda each: np.stack([each, each]),
    "longer": lambda each: np.append(each, each),
    "large": lambda each: np.full(each.shape, 2**40),
}


# gaps that take several iterations after the four of the file
@pytest.mark.parametrize(("method", "gap"), [("paths", 1e-6), ("frank_wolfe", 1e-2)])
def test_damaged_checkpoints_are_refused_or_change_no_bit(tmp_path, method, gap):
    links, trips = networks.grid(side=4, n_zones=5, volume=90)
    whole = assign(links, trips, method=method, gap=gap)
    file = tmp_path / "state.npz"
    assign(links, trips, method=method, gap=gap, checkpoint=file, max_iterations=4)
    written = file.read_bytes()
    with np.load(file) as kept:
        state = {name: kept[name] for name in kept.files}

    def go_on(is_equal=True):
        """Return what refuses the file, "" if nothing does."""
        try:
            result = assign(links, trips, method=method, gap=gap, checkpoint=file)
        except (InputError, CertificateError) as error:
            return str(error)
        result.certify()
        if is_equal:
            assert_equal_bits(whole, result)
        return ""

    rng = np.random.default_rng(0)
    for cut in rng.integers(0, len(written), 10):
        file.write_bytes(written[:cut])
        assert go_on()
    n_refused = 0
    # the directory of the archive is at its end, with the names of the arrays
    for at in [*rng.integers(0, len(written), 20), *range(len(written) - 600, len(written), 13)]:
        flipped = bytearray(written)
        flipped[at] ^= 1 << int(rng.integers(8))
        file.write_bytes(flipped)
        n_refused += "remove" in go_on()
    assert n_refused > 20
    with file.open("wb") as array:
        np.save(array, np.arange(3))
    assert go_on()
    for name in set(state) - {"fingerprint", "checksum"}:
        for how, change in CHANGES.items():
            changed = dict(state)
            if change is None:
                del changed[name]
            else:
                with np.errstate(invalid="ignore"):
                    changed[name] = change(state[name])
            np.savez(file, **changed)
            assert "damaged; remove it" in go_on(), (name, how)
            file.unlink()
            sealed(changed, file)
            go_on(is_equal=False)


@pytest.mark.parametrize(("method", "gap"), METHODS)
def test_select_link_has_the_flows_of_the_pairs_that_use_it(method, gap):
    links, trips = networks.grid(seed=10)
    plain = assign(links, trips, method=method, gap=gap)
    row = int(plain.links.flow.argmax())
    result = assign(links, trips, method=method, gap=gap, select_link=[row])
    pd.testing.assert_frame_equal(result.links.drop(columns="selected"), plain.links)
    assert result.links.selected[row] == pytest.approx(plain.links.flow[row])
    assert (result.links.selected <= plain.links.flow * (1 + 1e-9) + 1e-9).all()
    pairs = result.selected_pairs
    assert pairs.volume.sum() == pytest.approx(plain.links.flow[row])
    # Selected flows begin and end as the selected pairs do.
    leaving = links.assign(x=result.links.selected).groupby("src").x.sum()
    arriving = links.assign(x=result.links.selected).groupby("dst").x.sum()
    begun = (
        pairs.groupby("origin")
        .volume.sum()
        .sub(pairs.groupby("destination").volume.sum(), fill_value=0)
    )
    net = leaving.sub(arriving, fill_value=0)
    assert net.reindex(begun.index).to_numpy() == pytest.approx(begun.to_numpy(), abs=1e-6)
    everything = assign(links, trips, method=method, gap=gap, select_link=range(len(links)))
    assert everything.links.selected.to_numpy() == pytest.approx(plain.links.flow.to_numpy())


def test_skims_are_sums_along_shortest_paths():
    links, trips = networks.grid(seed=11)
    result = assign(links, trips, gap=1e-8)
    ids, distance, before = networks.distances(links, result.links.cost)
    zones = np.unique(trips[["origin", "destination"]])
    skims = result.skims(["length", "time"], zones=zones)
    assert len(skims) == zones.size**2
    at = (np.searchsorted(ids, skims.origin), np.searchsorted(ids, skims.destination))
    assert skims.cost.to_numpy() == pytest.approx(distance[at])
    assert skims.time.to_numpy() == pytest.approx(distance[at])
    cheapest = links.assign(cost=result.links.cost).sort_values("cost", kind="stable")
    length = cheapest.drop_duplicates(["src", "dst"]).set_index(["src", "dst"]).length
    for row in skims.itertuples():
        s, t = np.searchsorted(ids, (row.origin, row.destination))
        total = 0.0
        while s != t:
            total += length[ids[before[s, t]], ids[t]]
            t = before[s, t]
        assert row.length == pytest.approx(total)
    of_trips = result.skims("length")
    assert len(of_trips) == ((trips.origin != trips.destination) & (trips.volume > 0)).sum()


@pytest.mark.parametrize(
    "along", ["cost", ["time", "time"], "metres", None, 3, b"x", [1.5, 2], {"time"}]
)
def test_skims_refuse_columns_that_are_taken_or_missing(along):
    links, trips = linear(free_flow_time=[1.0, 3.0], capacity=[1.0, 6.0])
    with pytest.raises(InputError, match=r"along=|no column 'metres'|along must be a name"):
        assign(links, trips).skims(along)


@pytest.mark.parametrize("name", ["volume", "toll", "length"])
@pytest.mark.parametrize("value", [None, 3, ["a"], {}, b"a"])
def test_classes_name_columns_by_texts(name, value):
    links, trips = linear(free_flow_time=[1.0, 3.0], capacity=[1.0, 6.0])
    with pytest.raises(InputError, match=f"{name} of a class must be the name of a column"):
        assign(links, trips, classes=VehicleClass(**{name: value}))


@pytest.mark.parametrize("name", ["value_of_time", "distance_weight", "passenger_cars"])
@pytest.mark.parametrize("value", [10**400, math.nan, math.inf, -1, True, "1", [1]])
def test_numbers_of_classes_are_finite(name, value):
    links, trips = linear(free_flow_time=[1.0, 3.0], capacity=[1.0, 6.0])
    with pytest.raises(InputError, match=f"{name} of class 'volume' must be"):
        assign(links, trips, classes=VehicleClass(**{name: value}))


def test_skims_without_a_path_are_null():
    links, trips = linear(free_flow_time=[1.0, 3.0], capacity=[1.0, 6.0])
    skims = assign(links, trips).skims("time", zones=[1, 2])
    assert skims.cost.isna().to_list() == [False, False, True, False]
    assert skims.time.to_list()[::3] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda flow: flow * 1.01, "begin and end"),
        (lambda flow: -flow, "begin and end"),
        (lambda flow: flow[:, ::-1], "begin and end"),
    ],
)
def test_certify_reports_other_flows(change, message):
    links, trips = networks.grid()
    result = assign(links, trips, gap=1e-6)
    assert result.certify() == result.bound
    object.__setattr__(result, "class_flow", change(result.class_flow))
    with pytest.raises(CertificateError, match=message):
        result.certify()


def test_certify_reports_another_gap_and_other_costs():
    links, trips = networks.grid()
    result = assign(links, trips, gap=1e-6)
    bound = result.bound
    object.__setattr__(result, "bound", bound._replace(relative_gap=bound.relative_gap / 2))
    with pytest.raises(CertificateError, match="is stated"):
        result.certify()
    object.__setattr__(result, "bound", bound)
    object.__setattr__(result, "cost", result.cost * 1.001)
    with pytest.raises(CertificateError, match="costs of the links"):
        result.certify()


def test_ids_may_be_strings_and_tables_of_any_kind():
    links, trips = linear(free_flow_time=[1.0, 3.0], capacity=[1.0, 6.0])
    named = {**links.to_dict("list"), "src": ["a", "a"], "dst": ["é", "é"]}
    result = assign(named, {"origin": ["a"], "destination": ["é"], "volume": [6]}, gap=1e-9)
    assert result.links.src.to_list() == ["a", "a"]
    assert result.links.flow.to_list() == assign(links, trips, gap=1e-9).links.flow.to_list()


def test_names_that_are_tuples_are_no_raw_errors():
    links, trips = networks.grid()
    for levels in (2, 1):
        for given in ((links, trips), (trips, links)):
            table = given[0].copy()
            names = [(name, "")[:levels] for name in table.columns]
            table.columns = pd.Index(names, tupleize_cols=levels > 1)
            both = (table, trips) if given[0] is links else (links, table)
            with pytest.raises(InputError, match=r"have no column '(free_flow_time|volume)'"):
                assign(*both)


def test_links_of_a_result_have_the_index_of_the_links():
    links, trips = networks.grid()
    expected = assign(links, trips).links
    assert expected.index.equals(pd.RangeIndex(len(links)))
    for name, index in {
        "filtered": links.index + 7,
        "sorted": links.index[::-1],
        "texts": [f"row {n}" for n in links.index],
        "not unique": [0] * len(links),
        "levels": pd.MultiIndex.from_frame(links[["src", "dst"]], names=["u", "v"]),
    }.items():
        labelled = links.set_axis(index)
        for table in (labelled, dict(labelled.items())):
            found = assign(table, trips).links
            assert found.index.equals(labelled.index), name
            assert found.reset_index(drop=True).equals(expected), name


def test_trips_within_a_zone_use_no_link_and_count_in_the_excess():
    links, trips = linear(free_flow_time=[1.0, 3.0], capacity=[1.0, 6.0])
    more = pd.concat([trips, pd.DataFrame({"origin": [2], "destination": [2], "volume": [94.0]})])
    result = assign(links, more, gap=1e-3)
    assert result.links.flow.sum() == 6.0
    assert result.average_excess == pytest.approx((result.total - result.shortest) / 100)


WRONG = [
    ({"capacity": [1.0, -1.0]}, {}, "column 'capacity', row 1: -1.0 is no capacity"),
    ({"free_flow_time": [math.nan, 1.0]}, {}, "column 'free_flow_time', row 0"),
    ({"power": [-1.0, 1.0]}, {}, "row 0: -1.0 is no power"),
    ({}, {"gap": 1e-14}, "cannot be proved"),
    ({}, {"gap": "small"}, "gap"),
    ({}, {"method": "msa"}, "method='msa' is none of"),
    ({}, {"max_iterations": 0}, "max_iterations"),
    ({}, {"cost": 3}, "cost must be"),
    ({}, {"cost": BPR(b="beta")}, "no column 'beta', which is the factor b"),
    ({}, {"cost": Conical(alpha=1)}, "must be above 1"),
    ({}, {"classes": []}, "classes must be"),
    ({}, {"classes": [VehicleClass(), VehicleClass()]}, "same column of volumes"),
    ({}, {"classes": VehicleClass(value_of_time=0)}, "value_of_time"),
    ({}, {"classes": VehicleClass(value_of_time=2.0)}, "no column 'toll'"),
    ({}, {"classes": VehicleClass(distance_weight=-1)}, "distance_weight"),
    ({}, {"classes": VehicleClass(volume="cars")}, "no column 'cars'"),
    ({}, {"select_link": [2]}, "is no row of the links"),
    ({}, {"progress": 3}, "progress must be"),
    ({}, {"src_column": "x", "dst_column": "y"}, "no column 'x'"),
    ({}, {"src_column": "src"}, "belong together"),
    ({}, {"src_column": "src", "dst_column": "src"}, "is named for both ends"),
    ({}, {"gap": math.nan}, "gap must be finite"),
    ({}, {"gap": math.inf}, "gap must be finite"),
    ({}, {"classes": 3}, "classes must be"),
    ({}, {"classes": VehicleClass(passenger_cars=None)}, "passenger_cars"),
    ({}, {"classes": VehicleClass(passenger_cars=True)}, "passenger_cars"),
    ({"toll": [1.0, 2.0]}, {"classes": VehicleClass(value_of_time=1e-320)}, "row 0: what class"),
    ({"power": [1000.0, 1000.0]}, {}, "row 0: the cost at flow"),
    ({}, {"cost": Conical(alpha=1e300)}, "row 0: the cost at flow"),
    ({}, {"checkpoint": 3}, "checkpoint must be a path"),
    ({}, {"cost": CostFunction(value=None)}, "value of the cost must be a function"),
    ({}, {"cost": CostFunction(value=lambda flow: flow, slope=3)}, "slope of the cost must be"),
    ({}, {"cost": CostFunction(value=lambda flow: 5 - flow)}, "cost, row 0: the function decreases|0 or more"),
    ({}, {"cost": CostFunction(value=lambda flow: flow[:1])}, "has 1 value, not 2"),
]  # fmt: skip


@pytest.mark.parametrize(("columns", "options", "message"), WRONG)
def test_wrong_arguments_are_refused_by_name(columns, options, message):
    links, trips = linear(free_flow_time=[1.0, 3.0], capacity=[1.0, 6.0])
    with pytest.raises(InputError, match=message):
        assign(links.assign(**columns), trips, **options)


def test_wrong_trips_are_refused_by_name():
    links, trips = linear(free_flow_time=[1.0, 3.0], capacity=[1.0, 6.0])
    with pytest.raises(InputError, match=r"column 'volume', row 0: -1\.0 is no volume"):
        assign(links, trips.assign(volume=-1.0))
    with pytest.raises(UnknownVertexError, match="1 origin is not in the graph: 7"):
        assign(links, trips.assign(origin=7))
    with pytest.raises(UnknownVertexError, match="closed vertex"):
        assign(links, trips, closed=[9])
    with pytest.raises(InputError, match="no path leads from 2 to 1"):
        assign(links, trips.assign(origin=2, destination=1))
    with pytest.raises(InputError, match="no volume above 0"):
        assign(links, trips.assign(volume=0.0))
    with pytest.raises(InputError, match="not sure which columns hold the ends"):
        assign(links, trips.rename(columns={"origin": "o"}))
    for volume in (1e300, 1e308):
        with pytest.raises(InputError, match="beyond float64"):
            assign(links, trips.assign(volume=volume))
    with pytest.raises(InputError, match="zones is empty"):
        assign(links, trips).skims(zones=[])


@pytest.mark.parametrize("name", ["dst", "capacity", "origin", "destination", "volume"])
def test_columns_of_other_lengths_are_refused_by_name(name):
    links, trips = linear(free_flow_time=[1.0, 3.0], capacity=[1.0, 6.0])
    tables = [links.to_dict("list"), trips.to_dict("list")]
    for table in tables:
        if name in table:
            table[name] = table[name] * 3
    with pytest.raises(InputError, match=f"column '(destination|{name})' has [0-9]+ values?, not"):
        assign(*tables)


@pytest.mark.parametrize(
    ("first", "kinds"),
    [(1, ("uint64", "int64")), (2**60, ("uint64", "int64")), (2**63, ("uint64", "uint64"))],
)
def test_ends_may_be_integers_of_two_types(first, kinds):
    links, trips = linear(free_flow_time=[1.0, 3.0], capacity=[1.0, 6.0])
    expected = assign(links, trips).links.flow.tolist()
    for table in (links, trips):
        for name, kind in zip(table.columns[:2], kinds, strict=True):
            table[name] = (table[name].to_numpy(np.uint64) + np.uint64(first)).astype(kind)
    result = assign(links, trips).links
    assert result.flow.tolist() == expected
    assert result.src.tolist() == links.src.tolist()
    with pytest.raises(InputError, match="both hold integers, or both strings"):
        assign(links.assign(src=links.src.astype(str)), trips)


def test_function_of_the_users_may_change_what_it_is_given():
    links, trips = linear(free_flow_time=[1.0, 3.0], capacity=[1.0, 6.0])

    def grow(flow):
        flow += 1.0
        return flow

    pure = assign(links, trips, cost=CostFunction(value=lambda flow: flow + 1.0))
    result = assign(links, trips, cost=CostFunction(value=grow))
    assert result.is_converged
    assert result.links.flow.tolist() == pure.links.flow.tolist()


def test_iterations_end_without_the_gap_and_say_so(capsys):
    links, trips = networks.grid(volume=300)
    result = assign(links, trips, gap=1e-9, max_iterations=2, progress=True)
    assert not result.is_converged
    assert result.relative_gap > 1e-9
    assert "is_converged=False" in repr(result)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in lines] == ["iteration 1", "iteration 2"]


PUBLISHED = [
    ("SiouxFalls", 0.0, 1, 1e-6, 1e-4),
    ("Anaheim", 0.0, 39, 1e-8, 1e-4),
    ("Chicago-Sketch", 0.04, 1, 1e-8, 1e-4),
]


@pytest.mark.real
@pytest.mark.parametrize(("name", "weight", "first_through", "gap", "tolerance"), PUBLISHED)
def test_flows_are_those_published(name, weight, first_through, gap, tolerance):
    files = {part: DATA / f"tntp-{name}-{part}.parquet" for part in ("links", "trips", "flow")}
    if not files["flow"].exists():
        pytest.skip("needs the networks of KEPLER_DATA")
    links, trips, published = (pd.read_parquet(file) for file in files.values())
    result = assign(
        links, trips, classes=VehicleClass(distance_weight=weight), gap=gap,
        closed=range(1, first_through), src_column="init", dst_column="term",
    )  # fmt: skip
    difference = np.abs(result.links.flow - published.volume).sum()
    assert difference < tolerance * published.volume.sum()
    assert result.links.cost.to_numpy() == pytest.approx(published.cost.to_numpy(), rel=1e-2)
