"""An assignment that is asked in another way has the flows that follow: no oracle is needed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from kepler_traverse.assignment import BPR, Conical, CostFunction, VehicleClass, assign
from tests.assignment import networks

LINKS, TRIPS = networks.grid(side=4, n_zones=5, volume=90, seed=4)
ORDER = np.random.default_rng(0).permutation(len(LINKS))
GAPS = {"paths": 1e-8, "frank_wolfe": 1e-4}
FACTOR = 4.0


def solved(links, trips, method, **options):
    result = assign(links, trips, method=method, gap=GAPS[method], **options)
    result.certify()
    return result


def in_other_order(links, trips):
    """Rows of the trips in another order; those of links decide ties, and keep theirs."""
    return links, trips.iloc[::-1], {}


def split(links, trips):
    """Each volume in two rows, whose sum is exact."""
    half = trips.assign(volume=trips.volume / 2, trucks=trips.trucks / 2)
    return links, pd.concat([half, half]), {}


def renamed(links, trips):
    """Ids as texts in the same order."""
    return (
        links.assign(src=links.src.map("v{:05d}".format), dst=links.dst.map("v{:05d}".format)),
        trips.assign(
            origin=trips.origin.map("v{:05d}".format),
            destination=trips.destination.map("v{:05d}".format),
        ),
        {},
    )


def multiplied(links, trips):
    """Costs times a power of two, by which sums are multiplied exactly."""
    return links.assign(free_flow_time=links.free_flow_time * FACTOR), trips, {}


def with_rows_that_change_nothing(links, trips):
    none = trips.iloc[:2].assign(volume=0.0, trucks=0.0)
    return links, pd.concat([trips, none]), {"select_link": [0]}


CHANGES = [in_other_order, split, renamed, multiplied, with_rows_that_change_nothing]


@pytest.mark.parametrize("method", GAPS)
@pytest.mark.parametrize("change", CHANGES)
def test_flows_follow_from_those_before(change, method):
    before = solved(LINKS, TRIPS, method)
    links, trips, options = change(LINKS, TRIPS)
    now = solved(links, trips, method, **options)
    factor = FACTOR if change is multiplied else 1.0
    assert np.array_equal(now.class_flow, before.class_flow)
    assert np.array_equal(now.cost, before.cost * factor)
    assert (now.gaps, now.total) == (before.gaps, before.total * factor)


@pytest.mark.parametrize("method", GAPS)
def test_links_in_another_order_reach_the_same_objective(method):
    """The flows at the gap may differ in their last bits: of equal paths the first row wins."""
    before = solved(LINKS, TRIPS, method)
    now = solved(LINKS.iloc[ORDER], TRIPS, method)
    excess = GAPS[method] * before.total
    assert now.objective == pytest.approx(before.objective, abs=excess)
    flow = np.empty(len(LINKS))
    flow[ORDER] = now.links.flow
    assert flow == pytest.approx(before.links.flow, abs=0.05 * before.links.flow.max())


@pytest.mark.parametrize("method", GAPS)
def test_a_class_in_two_columns_has_the_flows_of_one(method):
    both = TRIPS.assign(first=TRIPS.volume / 2, second=TRIPS.volume / 2)
    classes = [VehicleClass(volume="first"), VehicleClass(volume="second")]
    before = solved(LINKS, TRIPS, method)
    now = solved(LINKS, both, method, classes=classes)
    excess = GAPS[method] * before.total
    assert now.objective == pytest.approx(before.objective, abs=excess)


@pytest.mark.parametrize("cost", [BPR(b=0.3, power=2), Conical(alpha=5)])
def test_a_function_with_the_same_costs_reaches_the_same_objective(cost):
    free = LINKS.free_flow_time.to_numpy()
    ratio = {"capacity": LINKS.capacity.to_numpy()}

    def of_bpr(flow):
        return free * (1 + 0.3 * (flow / ratio["capacity"]) ** 2)

    def of_conical(flow):
        u = 5 * (1 - flow / ratio["capacity"])
        return free * (2 + np.sqrt(u * u + 1.125**2) - u - 1.125)

    value = of_bpr if isinstance(cost, BPR) else of_conical
    before = solved(LINKS, TRIPS, "paths", cost=cost)
    now = solved(LINKS, TRIPS, "paths", cost=CostFunction(value=value))
    assert now.total == pytest.approx(before.total, rel=1e-5)
