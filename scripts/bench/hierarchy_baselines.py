"""Measure distances over a hierarchy next to pandana and RoutingKit.

``python -m scripts.bench.hierarchy_baselines EDGES`` writes docs/benchmarks/hierarchy_baselines.json, of which
``scripts.measure`` makes the table of docs/hierarchies.md. EDGES is a Parquet file of the undirected edges of a
road network, with columns src, dst and an integer weight. ``pandana`` and ``routingkit-cch`` are used where they are
installed next to this package. Their distances are compared with those of this library before a time is recorded.

There are three requests: a table of all pairs of some origins and destinations, pairs of the origins with destinations of
their own, and pairs that have an origin of their own each. Baselines answer a part of each. This library answers them over
its hierarchy, and then by its hub labels.

Times are those of the CPU, of all threads together, which other programs on the machine hardly change.

RoutingKit orders vertices by coordinates, which the file lacks. Differences of distances from four corners of the network
stand for them.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kepler_traverse import Graph, sssp_many, sssp_pairs
from scripts.bench.hierarchy import graph_of
from scripts.measure.environment import ROOT, commit, machine
from scripts.pages import write_record

RECORD = ROOT / "docs" / "benchmarks" / "hierarchy_baselines.json"
NAMES = {"pandana": "pandana", "routingkit_cch": "routingkit-cch"}
OWN = 100  # destinations that each origin has of its own
REQUESTS = ("table", "own destinations", "own origins")
# how the time of a record was taken, and what its page says
CLOCKS = {"wall": "in", "cpu": "those of the CPU, of all threads together, in"}
Answer = Callable[[np.ndarray, np.ndarray], np.ndarray]
# of origins and destinations: distances of all their pairs, and of row by row
Baseline = tuple[Answer, Answer]


def edges_of(graph: Graph) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the edges of an undirected graph once each, as numbers."""
    tails = np.repeat(np.arange(graph.n_vertices), np.diff(graph.offsets))
    once = tails < graph.targets
    return tails[once], graph.targets[once].astype(np.int64), graph.weights[once].astype(np.int64)


def pandana(graph: Graph) -> Baseline:
    """Build a network of pandana."""
    import pandas as pd
    from pandana import Network

    tails, heads, weights = edges_of(graph)
    nothing = pd.Series(np.zeros(graph.n_vertices), index=np.arange(graph.n_vertices))
    edges = pd.DataFrame({"weight": weights.astype(np.float64)})
    network = Network(nothing, nothing, pd.Series(tails), pd.Series(heads), edges, twoway=True)

    def pairs(origins: np.ndarray, destinations: np.ndarray) -> np.ndarray:
        return np.array(network.shortest_path_lengths(origins, destinations, "weight"))

    def table(origins: np.ndarray, destinations: np.ndarray) -> np.ndarray:
        found = pairs(np.repeat(origins, destinations.size), np.tile(destinations, origins.size))
        return found.reshape(origins.size, destinations.size)

    return table, pairs


def routingkit_cch(graph: Graph) -> Baseline:
    """Customize a hierarchy of RoutingKit."""
    from routingkit_cch import CCH, CCHMetric, CCHOneToMany, CCHQuery, compute_order_inertial

    tails, heads, weights = edges_of(graph)
    both = [
        np.concatenate(each).tolist()
        for each in ((tails, heads), (heads, tails), (weights, weights))
    ]
    order = compute_order_inertial(
        graph.n_vertices, both[0], both[1], *(each.tolist() for each in coordinates(graph))
    )
    metric = CCHMetric(CCH(order, both[0], both[1], False), both[2])
    query = CCHQuery(metric)

    def table(origins: np.ndarray, destinations: np.ndarray) -> np.ndarray:
        to_all = CCHOneToMany(metric, destinations.tolist())
        return np.array([to_all.distances_from(origin) for origin in origins.tolist()], np.float64)

    def pairs(origins: np.ndarray, destinations: np.ndarray) -> np.ndarray:
        rows = zip(origins.tolist(), destinations.tolist(), strict=True)
        return np.array([query.run(*row).distance for row in rows], np.float64)

    return table, pairs


def coordinates(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    """Return differences of distances from two pairs of vertices that are far apart."""

    def distances(number: int) -> np.ndarray:
        return sssp_many(
            graph, graph.ids_at(np.array([number])), result="matrix", strategy="near_far"
        )[0].astype(np.float64)

    def farthest(values: np.ndarray) -> int:
        return int(np.where(np.isfinite(values), values, -np.inf).argmax())

    west = distances(farthest(distances(0)))
    east = distances(farthest(west))
    south = distances(farthest(np.minimum(west, east)))
    north = distances(farthest(south))
    found = west - east, south - north
    assert all(np.isfinite(each).all() for each in found), "the network is not connected"
    return found


BASELINES: dict[str, Callable[[Graph], Baseline]] = {
    "pandana": pandana,
    "routingkit_cch": routingkit_cch,
}


def timed(call: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """Return what a call returns, and its seconds of CPU, of all threads."""
    began = time.process_time()
    result = call(*arguments)
    return result, time.process_time() - began


class Library(NamedTuple):
    """A library, and what answers the three requests, each of row by row."""

    name: str
    build_seconds: float
    answers: Sequence[Answer]


def own_answers(graph: Graph) -> list[Answer]:
    """Return what answers the requests in this library, with what the graph has by then."""

    def table(origins: np.ndarray, destinations: np.ndarray) -> np.ndarray:
        ids = [graph.ids_at(each) for each in (origins, destinations)]
        return sssp_many(graph, ids[0], targets=ids[1], result="matrix")

    def pairs(origins: np.ndarray, destinations: np.ndarray) -> np.ndarray:
        ids = [graph.ids_at(each) for each in (origins, destinations)]
        return sssp_pairs(graph, *ids)["distance"].to_numpy()

    return [table, pairs, pairs]


def measure(graph: Graph, n_origins: int, n_destinations: int, baseline_origins: int) -> dict:
    """Return the record. Raise AssertionError if a distance of a baseline differs."""
    rng = np.random.default_rng(4)
    origins = rng.choice(graph.n_vertices, n_origins, replace=False)
    ends = np.sort(rng.choice(graph.n_vertices, n_destinations, replace=False))
    own = np.repeat(origins, OWN), rng.choice(graph.n_vertices, OWN * n_origins)
    alone = tuple(rng.choice(graph.n_vertices, (2, OWN * n_origins)))
    few = slice(0, OWN * baseline_origins)
    asked_of_baselines = [
        (origins[:baseline_origins], ends),
        *((each[0][few], each[1][few]) for each in (own, alone)),
    ]
    # a hierarchy alone takes 0.1 ms for a pair with an origin of its own
    asked = [(origins, ends), own, asked_of_baselines[2]]
    answers = own_answers(graph)
    _, build = timed(graph.hierarchy)
    library = Library("kepler_traverse", build, answers)
    expected: list[Any] = [answer(*given) for answer, given in zip(answers, asked, strict=True)]
    found = [entry(library, asked, expected)]
    labels, of_labels = timed(graph.labels)
    library = Library("kepler_traverse, hub labels", build + of_labels, answers)
    found.append(entry(library, [*asked[:2], alone], expected))
    for name, baseline in BASELINES.items():
        if find_spec(name) is None:
            print(f"{NAMES[name]} is not installed: left out", file=sys.stderr)
            continue
        (table_of, pairs_of), build = timed(baseline, graph)
        called = f"{NAMES[name]} {version(NAMES[name])}"
        library = Library(called, build, [table_of, pairs_of, pairs_of])
        found.append(entry(library, asked_of_baselines, expected))
    return {
        "vertices": graph.n_vertices,
        "edges": graph.n_edges // 2,
        "origins": n_origins,
        "destinations": n_destinations,
        "own_destinations": OWN,
        "clock": "cpu",
        "hubs_per_vertex": labels.hubs_per_vertex,
        "libraries": found,
    }


def entry(library: Library, asked: Sequence[Any], expected: Sequence[Any]) -> dict:
    """Return what the record has of a library, whose answers are the first of those expected."""
    requests = []
    for answer, given, right in zip(library.answers, asked, expected, strict=True):
        answer(*(each[:1] for each in given))  # compiles
        found, seconds = timed(answer, *given)
        n_known = min(len(found), len(right))
        assert np.array_equal(found[:n_known], right[:n_known]), (
            f"distances of {library.name} differ"
        )
        requests.append({"pairs": found.size, "microseconds_per_pair": 1e6 * seconds / found.size})
    return {
        "name": library.name,
        "build_seconds": library.build_seconds,
        "requests": requests,
    }


def rendered(record: dict) -> str:
    """Return the table of a record as Markdown."""
    host = record["machine"]
    clock = record.get("clock", "wall")  # older records do not say
    lines = [
        f"{record['graph']}, {record['vertices']:,} vertices, lengths as weights, on {host['cores']} cores of an\n"
        f"{host['cpu']}, at {record['commit']}: all pairs of {record['origins']:,} origins and {record['destinations']:,} "
        f"destinations,\n{record['own_destinations']} destinations of its own per origin, and pairs with an origin of their "
        f"own each.\nTimes are {CLOCKS[clock]} us per pair. Distances are equal.\n",
        f"| library | build, s | {' | '.join(REQUESTS)} |",
        "|---|---|---|---|---|",
    ]
    for each in record["libraries"]:
        times = ["-"] * len(REQUESTS)  # of a request that an older record lacks
        for place, one in enumerate(each["requests"]):
            times[place] = f"{one['microseconds_per_pair']:.3g} ({one['pairs']:,} pairs)"
        lines.append(f"| {each['name']} | {each['build_seconds']:.1f} | {' | '.join(times)} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("edges", type=Path)
    parser.add_argument("--out", type=Path, default=RECORD)
    parser.add_argument("--origins", type=int, default=1000)
    parser.add_argument("--destinations", type=int, default=1000)
    parser.add_argument(
        "--baseline-origins", type=int, default=100, help="origins of which baselines answer"
    )
    options = parser.parse_args()
    graph = graph_of(options.edges)
    found = measure(graph, options.origins, options.destinations, options.baseline_origins)
    write_record(
        options.out, {"machine": machine(), "commit": commit(), "graph": options.edges.stem} | found
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
