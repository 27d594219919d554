"""Equilibrium of trips beside PyTraf on a CPU, both with as many threads.

Each call builds its network from arrays or tables in memory and ends at a relative gap. Flows of links are compared: both
are within the gap, so that the sums of differences are small parts of the sums of flows. ``processor`` is the time of the
processor, which other programs do not lengthen as much. The networks are those of the Transportation Networks for Research.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from kepler_traverse.cpu import threads
from scripts.measure.clock import with_processor
from scripts.measure.work import OURS, Call, Inputs, Repeats, Work

PACKAGES = ("pytraf",)
TOLERANCE = 1e-2  # of the sum of flows
SHORT = Repeats(seconds=30.0)


class Network(NamedTuple):
    """A network: the weight of the length, and the first vertex that paths may lead through."""

    distance_weight: float
    first_through: int
    gaps: tuple[float, ...]


NETWORKS = {
    "Chicago-Sketch": Network(0.04, 1, (1e-4, 1e-6)),
    "Berlin-Center": Network(0.0, 866, (1e-6,)),
}


@lru_cache(1)
def tables(inputs: Inputs, name: str) -> tuple[pd.DataFrame, pd.DataFrame, Network]:
    links, trips = (
        pd.read_parquet(inputs.file(f"tntp-{name}-{part}")) for part in ("links", "trips")
    )
    return links, trips, NETWORKS[name]


def kepler(case: tuple[Any, Any, Network], gap: float) -> Call:
    from kepler_traverse.assignment import VehicleClass, assign

    links, trips, network = case
    options: dict[str, Any] = {
        "classes": VehicleClass(distance_weight=network.distance_weight),
        "closed": range(1, network.first_through),
        "src_column": "init",
        "dst_column": "term",
    }
    assign(links, trips, gap=0.1, **options)  # compiles
    return lambda: assign(links, trips, gap=gap, **options).links["flow"].to_numpy()


def pytraf(case: tuple[Any, Any, Network], gap: float) -> Call:
    import pytraf as peer

    links, trips, network = case
    trips = trips[trips["origin"] != trips["destination"]]
    n = int(links[["init", "term"]].to_numpy().max())
    column = {name: links[name].to_numpy(np.float64) for name in ("b", "power", "capacity")}
    # it takes neither power 0 nor capacity 0
    is_constant = (column["b"] == 0) | (column["power"] == 0)
    time_of_all = links["free_flow_time"] * np.where(column["power"] == 0, 1 + column["b"], 1)

    def call() -> np.ndarray:
        net = peer.Network(
            n,
            links["init"].to_numpy() - 1,
            links["term"].to_numpy() - 1,
            time_of_all.to_numpy(),
            np.where(is_constant, 1.0, column["capacity"]),
            np.where(is_constant, 0.0, column["b"]),
            np.where(is_constant, 4.0, column["power"]),
            is_centroid=np.arange(1, n + 1) < network.first_through,
        )
        ends = (trips[name].to_numpy() - 1 for name in ("origin", "destination"))
        cars = peer.TrafficClass(
            peer.Demand(n, *ends, trips["volume"].to_numpy()),
            extra_link_cost=network.distance_weight * links["length"].to_numpy(),
        )
        run = net.assign([cars], gap=gap, max_iter=1000, threads=threads.count())
        return np.asarray(run.links.flow)

    return call


def difference(expected: np.ndarray, found: np.ndarray) -> str:
    share = np.abs(expected - found).sum() / expected.sum()
    return "" if share <= TOLERANCE else f"flows differ by {share:.1e} of their sum"


def facts(case: tuple[Any, Any, Network]) -> dict[str, int]:
    return {"links": len(case[0]), "pairs": len(case[1])}


WORKS = tuple(
    Work(
        name=f"equilibrium, gap {gap:g}",
        graph=name,
        case=partial(tables, name=name),
        peers={OURS: partial(kepler, gap=gap), "pytraf": partial(pytraf, gap=gap)},
        check=difference,
        facts=facts,
        clock=with_processor,
        repeats=SHORT,
    )
    for name, network in NETWORKS.items()
    for gap in network.gaps
)
