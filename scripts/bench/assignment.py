"""What planners compute: equilibria of trips beside PyTraf, with as many threads, and skims beside plain tables.

Each call builds its network from arrays or tables in memory and ends at a relative gap. Flows of links are compared: both
are within the gap, so that the sums of differences are small parts of the sums of flows. ``processor`` is the time of the
processor, which other programs do not lengthen as much. The networks are those of the Transportation Networks for Research.

A skim has the seconds and the metres of all pairs of some zones of a road network. Each arc has one of seven speeds, by its
ends. The plain table has the seconds alone. All have their hierarchy, and the skim has been asked for once.

Equilibria of a thousand zones are measured on a GPU, too, beside the first iterations on the CPU, with the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from kepler_traverse import Graph, graph_from_edges, sssp_many
from kepler_traverse.cpu import threads
from pipelines.comparison import hashed_weights
from scripts.measure.clock import with_processor
from scripts.measure.work import OURS, Baseline, Call, Inputs, Repeats, Work

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
    options = {
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
    if share <= TOLERANCE:
        return ""
    return f"flows differ by {share:.1e} of their sum"


def facts(case: tuple[Any, Any, Network]) -> dict[str, int]:
    return {"links": len(case[0]), "pairs": len(case[1])}


# --- skims

ROAD = "USA-road-d.NY"
LARGE_ROAD = "USA-road-NE-topology"
ZONES = 1000
WALKED = 50
METRES = 20  # times hashed weights from 1 to 255, so that whole seconds leave the speeds
SPEEDS = np.array([8, 10, 12, 14, 20, 28, 33])  # metres per second


class Skims(NamedTuple):
    graph: Graph
    metres: np.ndarray
    origins: np.ndarray
    destinations: np.ndarray


def arcs(inputs: Inputs, name: str = ROAD) -> pd.DataFrame:
    """Return the arcs of a road network with the seconds that they take; metres that its file lacks are hashed ones."""
    table = pd.read_parquet(inputs.file(name))
    if "weight" not in table:
        table = table[table["src"] != table["dst"]]
        hashed = hashed_weights(table["src"].to_numpy(), table["dst"].to_numpy(), False)
        table = table.assign(weight=METRES * hashed)
        back = table.rename(columns={"src": "dst", "dst": "src"})
        table = pd.concat([table, back], ignore_index=True)
    ends = np.sort(table[["src", "dst"]].to_numpy(np.int64), axis=1)
    speed = SPEEDS[(ends[:, 0] * 1_000_003 + ends[:, 1] * 7919) % SPEEDS.size]
    return table.assign(seconds=np.maximum(1, (table["weight"] / speed).round()).astype(np.int64))


@lru_cache(1)
def skims_of(inputs: Inputs) -> Skims:
    table = arcs(inputs)
    graph = graph_from_edges(table, weight="seconds", edge_ids=True)
    graph.hierarchy()
    drawn = np.random.default_rng(inputs.seed).choice(graph.n_vertices, (2, ZONES), replace=False)
    return Skims(graph, table["weight"].to_numpy(), *map(graph.ids_at, drawn))


def table_of(case: Skims, size: int = ZONES, **options: Any) -> Call:
    """Prepare a table of some origins and all destinations, by one call."""
    given = {"result": "matrix", "targets": case.destinations, **options}
    return partial(sssp_many, case.graph, case.origins[:size], **given)


def skim(case: Skims, **options: Any) -> Call:
    return table_of(case, along={"metres": case.metres}, **options)


def same_skims(expected: Any, found: Any) -> str:
    for name, values in found.items():
        if not np.array_equal(expected[name][: len(values)], values):
            return f"{name} differs"
    return ""


SWEEP = "hierarchy_sweep"
SKIMS = Work(
    name="seconds and metres, 1,000 x 1,000",
    graph=ROAD,
    size=ZONES,
    case=skims_of,
    peers={
        OURS: partial(skim, strategy=SWEEP),
        "plain table": Baseline(prepare=partial(table_of, strategy=SWEEP), is_compared=False),
        "no hierarchy": Baseline(prepare=partial(skim, size=WALKED, hierarchy="no"), size=WALKED),
    },
    check=same_skims,
    clock=with_processor,
    repeats=Repeats(most=5, seconds=60.0),
)

# --- equilibria

LARGE = "equilibrium, 1,000 zones, 50 iterations"
LARGE_ZONES = 1000
ITERATIONS = 50


ON_CPU = 5  # iterations of the CPU beside a GPU


class Large(NamedTuple):
    links: pd.DataFrame
    trips: pd.DataFrame


def large_case(inputs: Inputs, name: str) -> Large:
    """Return links and trips of a road network: each zone sends 250 vehicles."""
    table = arcs(inputs, name)
    links = table[["src", "dst"]].assign(
        free_flow_time=table["seconds"] / 60, capacity=60.0 * table["weight"] / table["seconds"]
    )
    zones = np.random.default_rng(inputs.seed).choice(table["src"].unique(), LARGE_ZONES, False)
    ends = pd.MultiIndex.from_product([zones, zones], names=["origin", "destination"])
    trips = ends.to_frame(index=False).assign(volume=250.0 / LARGE_ZONES)
    return Large(links[links["capacity"] > 0], trips)


def large(case: Large, device: str = "cpu", iterations: int = ITERATIONS) -> Call:
    """Prepare an equilibrium, of which the gaps are compared after each iteration: they have the same bits."""
    from kepler_traverse.assignment import BPR, assign

    given = {"cost": BPR(b=0.15, power=4), "method": "frank_wolfe", "device": device}
    side = np.arange(50)
    ring = pd.DataFrame({"src": side, "dst": np.roll(side, 1)})
    ring = pd.concat([ring, ring.rename(columns={"src": "dst", "dst": "src"})])
    one = pd.DataFrame({"origin": side[:25], "destination": side[25:], "volume": 1.0})
    ring = ring.assign(free_flow_time=1.0, capacity=1.0)
    assign(ring, one, max_iterations=4, **given)  # compiles

    def call() -> np.ndarray:
        found = assign(*case, gap=1e-9, max_iterations=iterations, **given)
        return np.array(found.gaps)

    return call


def large_work(name: str, peers: dict[str, Any]) -> Work:
    return Work(
        name=LARGE,
        graph=name,
        size=LARGE_ZONES * ITERATIONS,
        case=partial(large_case, name=name),
        peers=peers,
        clock=with_processor,
        repeats=Repeats(most=1),
    )


def on_gpu() -> Iterator[Work]:
    for name in (ROAD, LARGE_ROAD):
        peers = {
            OURS: partial(large, device="cuda"),
            f"{ON_CPU} iterations on the CPU": Baseline(
                prepare=partial(large, iterations=ON_CPU), size=LARGE_ZONES * ON_CPU
            ),
        }
        yield large_work(name, peers)


ON_CPU_ALONE = (
    SKIMS,
    *(
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
    ),
    *(large_work(name, {OURS: large}) for name in (ROAD, LARGE_ROAD)),
)


def works(inputs: Inputs) -> Iterator[Work]:
    yield from on_gpu() if inputs.device == "cuda" else ON_CPU_ALONE
