"""Measure betweenness and flows next to igraph, NetworKit and AequilibraE on a CPU.

``python -m scripts.bench --suite loads GRAPHS`` measures and writes docs/benchmarks/loads.json, of which
``scripts.bench.performance_page`` makes a table. The part ``gpu`` of that file is kept: it has rows of
``scripts.bench.loads_gpu``. GRAPHS is a folder with the Parquet files. A peer that is not installed is left out.

Values of a peer from the same sources are compared before a time is recorded. They differ by 1e-12 at most, relative; by
1e-11 where the peer adds floats over all sources. ``EstimateBetweenness`` selects its sources itself, so that it is timed
alone. Flows are compared with distances: volume times weight, over edges, is volume times distance, over pairs.
NetworKit and AequilibraE have as many threads as this library; igraph has one.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from kepler_traverse import Graph, bfs_many, graph_from_edges, read_graph, sssp_many, sssp_pairs
from kepler_traverse.cpu import threads
from scripts.measure.environment import ROOT, about, timed
from scripts.pages import read_record, write_record

RECORD = ROOT / "docs" / "benchmarks" / "loads.json"
# directed?
GRAPHS = {
    "email-Enron": False,
    "as-caida20071105": False,
    "soc-Slashdot0902": True,
    "luxembourg_osm": False,
}
LIBRARIES = ("igraph", "networkit", "aequilibrae")
HAS = {name: find_spec(name) is not None for name in LIBRARIES}
TOLERANCE, FLOAT_SUMS = 1e-12, 1e-11  # the latter where a peer adds up floats over all sources
RUNS, LONG = 3, 20.0  # calls of more seconds are made once
EPSILON, DELTA = 0.05, 0.1
Answer = Callable[[], "np.ndarray | None"]  # None: values that cannot be compared


class Work(NamedTuple):
    """What is measured: ``ours`` and ``peers`` return values of vertices or edges, and differ by ``tolerance``."""

    graph: str
    name: str
    size: int
    ours: Answer
    peers: dict[str, Answer]
    tolerance: float = TOLERANCE


def edges_of(folder: Path, name: str) -> pd.DataFrame:
    """Return the edges of a graph, each once, with integer weights from 1 to 100 that follow from their ends."""
    edges = pd.read_parquet(folder / f"{name}.parquet")[["src", "dst"]].astype(np.int64)
    edges = edges[edges["src"] != edges["dst"]]
    if not GRAPHS[name]:
        edges = pd.DataFrame({"src": edges.min(axis=1), "dst": edges.max(axis=1)})
    edges = edges.drop_duplicates(ignore_index=True)
    return edges.assign(weight=(edges["src"] * 7919 + edges["dst"] * 104729) % 100 + 1)


class Case:
    """One graph in all libraries."""

    def __init__(self, folder: Path, name: str, weighted: bool = False) -> None:
        edges, self.directed = edges_of(folder, name), GRAPHS[name]
        self.name, self.edges, self.weighted = name, edges, weighted
        self.graph = graph_from_edges(
            edges if weighted else edges[["src", "dst"]], directed=self.directed
        )
        self.n = int(edges[["src", "dst"]].to_numpy().max()) + 1
        self.weights = edges["weight"].to_numpy(np.float64)

    def some(self, count: int) -> np.ndarray:
        return np.sort(np.random.default_rng(1).choice(self.graph.ids, count, replace=False))

    def ours(self, sources: Any, **options: Any) -> np.ndarray:
        many = sssp_many if self.weighted else bfs_many
        found = many(self.graph, sources, result="betweenness", **{"normalized": False, **options})
        values = np.zeros(self.n)
        values[found["vertex"]] = found["betweenness"]
        return values

    def igraph(self, sources: np.ndarray) -> dict[str, Answer]:
        if not HAS["igraph"]:
            return {}
        import igraph

        other = igraph.Graph(
            n=self.n, edges=self.edges[["src", "dst"]].to_numpy(), directed=self.directed
        )
        options = {
            "directed": self.directed,
            "weights": self.weights.tolist() if self.weighted else None,
        }
        chosen = sources.tolist()
        return {"igraph": lambda: np.array(other.betweenness(sources=chosen, **options))}

    def networkit(
        self, name: str, *arguments: Any, scale: float | None = None, note: str = ""
    ) -> dict[str, Answer]:
        """Return a call of a class; its values are multiplied by ``scale``, or cannot be compared."""
        if not HAS["networkit"]:
            return {}
        import networkit

        networkit.setNumberOfThreads(threads.count())
        rows = self.edges["src"].to_numpy(), self.edges["dst"].to_numpy()
        triples = (self.weights, rows) if self.weighted else rows
        other = networkit.GraphFromCoo(
            triples, n=self.n, directed=self.directed, weighted=self.weighted
        )

        def run() -> np.ndarray | None:
            found = getattr(networkit.centrality, name)(other, *arguments)
            found.run()
            return None if scale is None else np.array(found.scores()) * scale

        return {f"NetworKit {name}{note}": run}


def betweenness(folder: Path) -> Iterator[Work]:
    """Yield comparisons of betweenness."""
    for name, weighted, count in (
        ("soc-Slashdot0902", False, 512),
        ("email-Enron", False, 512),
        ("luxembourg_osm", True, 128),
        ("as-caida20071105", True, 128),
    ):
        case = Case(folder, name, weighted)
        some = case.some(count)
        beside = case.igraph(some)
        if not weighted:  # its parallel estimates are slower than those on one thread
            beside |= case.networkit("EstimateBetweenness", count, note=", one thread")
        beside |= case.networkit("EstimateBetweenness", count, False, True)
        yield Work(
            name,
            f"{count} sources, {'weights' if weighted else 'hops'}",
            count,
            partial(case.ours, some),
            beside,
        )
    hubs = Case(folder, "email-Enron")
    kept: list[np.ndarray] = []

    def all_of_hubs() -> np.ndarray:
        kept.append(hubs.ours("all"))
        return kept[-1]

    yield Work(
        *(
            hubs.name,
            "all sources, hops",
            hubs.n,
            all_of_hubs,
            hubs.networkit("Betweenness", scale=0.5),
        ),
        tolerance=FLOAT_SUMS,
    )
    true = kept[-1] * 2 / ((hubs.n - 1) * (hubs.n - 2))

    def is_within(run: Answer) -> np.ndarray:
        return (np.abs(run() - true) <= EPSILON).astype(np.float64)

    # Its scores of an undirected graph are twice the normalized betweenness.
    kadabra = hubs.networkit("KadabraBetweenness", EPSILON, DELTA, scale=0.5)
    ours = partial(hubs.ours, "all", normalized=True, epsilon=EPSILON, delta=DELTA)
    name = f"an error of {EPSILON} at most, with probability {1 - DELTA}, hops"
    yield Work(
        hubs.name,
        name,
        hubs.n,
        partial(is_within, ours),
        {key: partial(is_within, run) for key, run in kadabra.items()},
    )
    social = Case(folder, "soc-Slashdot0902")
    yield Work(social.name, "all sources, hops", social.n, partial(social.ours, "all"), {})


def flows(graph: Graph, name: str) -> Iterator[Work]:
    """Yield flows over a hierarchy, of integer volumes; the sum over edges is compared with that over pairs."""
    random, ids = np.random.default_rng(2), np.asarray(graph.ids)
    graph.hierarchy()
    src = np.repeat(np.arange(graph.n_vertices), np.diff(graph.offsets))
    weights = pd.Series(graph.weights, pd.MultiIndex.from_arrays([ids[src], ids[graph.targets]]))
    for origins, ends in ((10_000, 100), (1_000, 1_000)):
        some = random.choice(ids, origins, replace=False)
        block = random.choice(ids, ends, replace=False)
        to = (
            random.choice(ids, (origins, ends))
            if origins > ends
            else np.broadcast_to(block, (origins, ends))
        )
        pairs, volumes = (
            (np.repeat(some, ends), np.ascontiguousarray(to).ravel()),
            random.integers(1, 100, origins * ends),
        )

        def run() -> np.ndarray:
            return sssp_pairs(graph, *pairs, result="flows", volumes=volumes)  # noqa: B023

        found = run()
        over_edges = int(
            (
                weights.loc[pd.MultiIndex.from_frame(found[["src", "dst"]])].to_numpy()
                * found["volume"]
            ).sum()
        )
        if over_edges != int((sssp_pairs(graph, *pairs)["distance"].to_numpy() * volumes).sum()):
            raise SystemExit(
                f"flows of {name}: volume times weight over edges is not volume times distance over pairs"
            )
        # it takes a square matrix
        peers = {} if origins > ends else aequilibrae(src, graph, pairs, volumes, over_edges)
        yield Work(
            name, f"flows of {origins:,} x {ends:,} pairs, over a hierarchy", origins, run, peers
        )


def aequilibrae(
    src: np.ndarray, graph: Graph, pairs: Any, volumes: np.ndarray, total: int
) -> dict[str, Answer]:
    """Return its assignment of all volumes to shortest paths, whose volume times weight, over edges, must be ``total``."""
    if not HAS["aequilibrae"]:
        return {}
    from aequilibrae.matrix import AequilibraeMatrix
    from aequilibrae.paths import AssignmentResults, allOrNothing
    from aequilibrae.paths import Graph as Network

    ends = [np.searchsorted(np.asarray(graph.ids), each) + 1 for each in pairs]
    zones = np.unique(np.concatenate(ends))
    network, matrix = Network(), AequilibraeMatrix()
    links = {
        "link_id": np.arange(src.size) + 1,
        "a_node": src + 1,
        "b_node": graph.targets + np.int64(1),
        "direction": 1,
    }
    network.network = pd.DataFrame(links | {"distance": np.asarray(graph.weights, np.float64)})
    network.prepare_graph(zones)
    network.set_graph("distance")
    network.set_blocked_centroid_flows(False)
    matrix.create_empty(zones=zones.size, matrix_names=["volumes"], memory_only=True)
    matrix.index[:], matrix.matrix["volumes"][:] = zones, 0
    np.add.at(
        matrix.matrix["volumes"], tuple(np.searchsorted(zones, each) for each in ends), volumes
    )
    matrix.computational_view(["volumes"])

    def run() -> None:
        results = AssignmentResults()
        results.set_cores(threads.count())
        results.prepare(network, matrix)
        allOrNothing("volumes", matrix, network, results).execute()
        loads = results.get_load_results()
        loads = (
            loads[[name for name in loads if name.endswith("_tot")]]
            .fillna(0)
            .iloc[:, 0]
            .reindex(links["link_id"])
        )
        if int(loads.to_numpy() @ network.network["distance"].to_numpy()) != total:
            raise SystemExit(
                "flows of AequilibraE: volume times weight over edges is not that of this library"
            )

    return {"AequilibraE allOrNothing": run}


def measured(work: Work) -> list[dict]:
    """Return a row per peer, or one without a peer; calls take turns, so that what else the machine does slows both."""
    rows = []
    for name, peer in (work.peers or {"": lambda: None}).items():
        times: list[tuple[float, ...]] = []
        # not of the processor
        while len(times) < RUNS and sum(each[0] + each[2] for each in times) < LONG:
            found, *taken = clocked(work.ours)
            expected, *theirs = clocked(peer)
            times.append((*taken, *theirs))
            if expected is not None:
                error = np.abs(found - expected) / np.where(expected > 0, expected, 1)
                if not error.max() <= work.tolerance:
                    raise SystemExit(
                        f"{work.graph}, {work.name}: values differ from those of {name} by {error.max():.1e}"
                    )
        least = [round(min(each), 4) for each in zip(*times, strict=True)]
        row = {
            "graph": work.graph,
            "work": work.name,
            "size": work.size,
            "seconds": least[0],
            "processor_seconds": least[1],
        }
        if name:
            row |= {"peer": name, "peer_seconds": least[2], "peer_processor_seconds": least[3]}
        rows.append(row)
        print(rows[-1], flush=True)
    return rows


def clocked(call: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return what a call returns, its seconds, and those of the processor, which other programs do not lengthen as much."""
    used = time.process_time()
    found, seconds = timed(call)
    return found, seconds, time.process_time() - used


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.bench --suite loads", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("graphs", type=Path)
    parser.add_argument("--output", type=Path, default=RECORD)
    options = parser.parse_args(arguments)
    warm_up = graph_from_edges([0, 1], [1, 2], [1, 1])
    for many in (bfs_many, sssp_many):
        many(warm_up, "all", result="betweenness")
    roads = read_graph(options.graphs / "USA-road-d.NY.parquet", directed=True)
    works = chain(flows(roads, "USA-road-d.NY"), betweenness(options.graphs))
    rows = [row for work in works for row in measured(work)]
    record = about(
        ("numpy", "numba", *LIBRARIES), "python -m scripts.bench --suite loads GRAPHS"
    ) | {"works": rows}
    before = read_record(RECORD) if RECORD.exists() else {}
    write_record(options.output, record | ({"gpu": before["gpu"]} if "gpu" in before else {}))
    return 0
