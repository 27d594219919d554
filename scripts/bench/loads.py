"""Betweenness and flows beside igraph, NetworKit and AequilibraE on a CPU.

Values from the same sources differ by 1e-12 at most, relative; by 1e-11 where the peer adds floats over all sources.
``EstimateBetweenness`` selects its sources itself, so that it is timed alone. Flows are compared with distances: volume
times weight, over edges, is volume times distance, over pairs. NetworKit and AequilibraE have as many threads as this
library; igraph has one. ``processor`` is the time of the processor, which other programs do not lengthen as much.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd

from kepler_traverse import Graph, bfs_many, read_graph, sssp_many, sssp_pairs
from kepler_traverse.cpu import threads
from scripts.bench.libraries import edges_of, graph_of, igraph_graph, networkit_graph, tails_of
from scripts.measure.clock import with_processor
from scripts.measure.work import OURS, Baseline, Call, Inputs, Prepare, Work, unless

PACKAGES = ("igraph", "networkit", "aequilibrae")
ROADS = "USA-road-d.NY"
HUBS = "email-Enron"
TOLERANCE = 1e-12
FLOAT_SUMS = 1e-11  # the latter where a peer adds up floats over all sources
EPSILON = 0.05
DELTA = 0.1
# Graph, what counts, and the number of sources.
SAMPLES = (
    ("soc-Slashdot0902", "hops", 512),
    (HUBS, "hops", 512),
    ("luxembourg_osm", "weights", 128),
    ("as-caida20071105", "weights", 128),
)
FLOWS = ((10_000, 100), (1_000, 1_000))  # origins, and destinations of each


class Case:
    """One graph in all libraries."""

    def __init__(self, inputs: Inputs, name: str, metric: str) -> None:
        self.graph = graph_of(inputs, name)
        self.n = self.graph.n_vertices
        self.many = sssp_many
        *self.ends, self.weights = edges_of(self.graph)
        if metric == "hops":
            self.many = bfs_many
            self.weights = None

    def some(self, count: int) -> np.ndarray:
        return np.sort(np.random.default_rng(1).choice(self.n, count, replace=False))

    def ours(self, sources: Any, **options: Any) -> np.ndarray:
        given = {"normalized": False, **options}
        found = self.many(self.graph, sources, result="betweenness", **given)
        values = np.zeros(self.n)
        values[found["vertex"]] = found["betweenness"]
        return values

    @cached_property
    def exact(self) -> np.ndarray:
        """The normalized betweenness of all vertices."""
        return self.ours("all") * 2 / ((self.n - 1) * (self.n - 2))


def differences(expected: np.ndarray, found: np.ndarray, tolerance: float = TOLERANCE) -> str:
    error = np.abs(found - expected) / np.where(expected > 0, expected, 1)
    return unless(error.max() <= tolerance, f"values differ by {error.max():.1e}")


# --- betweenness


def of_sources(case: Case, count: int | None) -> Call:
    sources = "all" if count is None else case.some(count)
    return lambda: case.ours(sources)


def of_igraph(case: Case, count: int) -> Call:
    directed = case.graph.directed
    other = igraph_graph(case.n, *case.ends, directed)
    given = {"weights": case.weights, "sources": case.some(count).tolist()}
    return lambda: np.array(other.betweenness(directed=directed, **given))


def of_networkit(case: Case, name: str, *arguments: Any, scale: float = 1.0) -> Call:
    """Prepare a class of NetworKit, whose scores are multiplied by ``scale``."""
    import networkit

    other = networkit_graph(case.n, *case.ends, case.weights, directed=case.graph.directed)

    def run() -> np.ndarray:
        found = getattr(networkit.centrality, name)(other, *arguments)
        found.run()
        return np.array(found.scores()) * scale

    return run


def networkit(name: str, *arguments: Any, scale: float = 1.0) -> Prepare:
    return lambda case: of_networkit(case, name, *arguments, scale=scale)


def is_within(prepare: Prepare) -> Prepare:
    """Prepare the same, and say which values are within ``EPSILON`` of the right ones."""

    def of(case: Case) -> Call:
        exact = case.exact
        call = prepare(case)
        return lambda: (np.abs(call() - exact) <= EPSILON).astype(np.float64)

    return of


def approximate(case: Case) -> Call:
    return partial(case.ours, "all", normalized=True, epsilon=EPSILON, delta=DELTA)


def beside(metric: str, count: int) -> dict:
    """Return the peers of betweenness from some sources."""
    estimate = {"NetworKit EstimateBetweenness": (count, False, True)}
    if metric == "hops":  # its parallel estimates are slower than those on one thread
        estimate = {"NetworKit EstimateBetweenness, one thread": (count,)} | estimate
    return {
        OURS: partial(of_sources, count=count),
        "igraph": partial(of_igraph, count=count),
        **{
            name: Baseline(prepare=networkit("EstimateBetweenness", *given), is_compared=False)
            for name, given in estimate.items()
        },
    }


def betweenness() -> Iterator[Work]:
    for graph, metric, count in SAMPLES:
        yield Work(
            name=f"{count} sources, {metric}",
            graph=graph,
            size=count,
            case=partial(Case, name=graph, metric=metric),
            peers=beside(metric, count),
            check=differences,
            clock=with_processor,
        )
    # NetworKit's scores of an undirected graph are twice the betweenness.
    kadabra = networkit("KadabraBetweenness", EPSILON, DELTA, scale=0.5)
    of_all = {OURS: partial(of_sources, count=None)}
    bound = f"an error of {EPSILON} at most, with probability {1 - DELTA}, hops"
    for graph, name, peers in (
        (
            HUBS,
            "all sources, hops",
            of_all | {"NetworKit Betweenness": networkit("Betweenness", scale=0.5)},
        ),
        (
            HUBS,
            bound,
            {OURS: is_within(approximate), "NetworKit KadabraBetweenness": is_within(kadabra)},
        ),
        ("soc-Slashdot0902", "all sources, hops", of_all),
    ):
        yield Work(
            name=name,
            graph=graph,
            case=partial(Case, name=graph, metric="hops"),
            peers=peers,
            check=partial(differences, tolerance=FLOAT_SUMS),
            facts=lambda case: {"size": case.n},
            clock=with_processor,
        )


# --- flows


class Flows:
    """Volumes between pairs of vertices of a road network with a hierarchy."""

    def __init__(self, graph: Graph, origins: int, ends: int) -> None:
        graph.hierarchy()
        random = np.random.default_rng(2)
        ids = np.asarray(graph.ids)
        some = random.choice(ids, origins, replace=False)
        block = random.choice(ids, ends, replace=False)
        to = np.broadcast_to(block, (origins, ends))
        if origins > ends:
            to = random.choice(ids, (origins, ends))
        self.graph = graph
        self.pairs = np.repeat(some, ends), np.ascontiguousarray(to).ravel()
        self.volumes = random.integers(1, 100, origins * ends)
        self.src = tails_of(graph)
        edges = pd.MultiIndex.from_arrays([ids[self.src], ids[graph.targets]])
        self.weights = pd.Series(graph.weights, edges)

    def total(self) -> int:
        """Return volume times distance, over pairs."""
        return int(
            (sssp_pairs(self.graph, *self.pairs)["distance"].to_numpy() * self.volumes).sum()
        )

    def over_edges(self, found: pd.DataFrame) -> int:
        """Return volume times weight, over the edges of our flows."""
        weights = self.weights.loc[pd.MultiIndex.from_frame(found[["src", "dst"]])].to_numpy()
        return int((weights * found["volume"]).sum())


def flows_of(inputs: Inputs, origins: int, ends: int) -> Flows:
    return Flows(read_graph(inputs.file(ROADS), directed=True, device="cpu"), origins, ends)


def our_flows(flows: Flows) -> Call:
    call = partial(sssp_pairs, flows.graph, *flows.pairs, result="flows", volumes=flows.volumes)
    if flows.over_edges(call()) != flows.total():
        raise SystemExit("volume times weight over edges is not volume times distance over pairs")
    return call


def aequilibrae(flows: Flows) -> Call:
    """Prepare its assignment of all volumes to shortest paths; it takes a square matrix of zones."""
    from aequilibrae.matrix import AequilibraeMatrix
    from aequilibrae.paths import AssignmentResults, allOrNothing
    from aequilibrae.paths import Graph as Network

    graph = flows.graph
    ends = [np.searchsorted(np.asarray(graph.ids), each) + 1 for each in flows.pairs]
    zones = np.unique(np.concatenate(ends))
    network = Network()
    matrix = AequilibraeMatrix()
    links = {
        "link_id": np.arange(flows.src.size) + 1,
        "a_node": flows.src + 1,
        "b_node": graph.targets + np.int64(1),
        "direction": 1,
        "distance": np.asarray(graph.weights, np.float64),
    }
    network.network = pd.DataFrame(links)
    network.prepare_graph(zones)
    network.set_graph("distance")
    network.set_blocked_centroid_flows(False)
    matrix.create_empty(zones=zones.size, matrix_names=["volumes"], memory_only=True)
    matrix.index[:], matrix.matrix["volumes"][:] = zones, 0
    places = tuple(np.searchsorted(zones, each) for each in ends)
    np.add.at(matrix.matrix["volumes"], places, flows.volumes)
    matrix.computational_view(["volumes"])
    total = flows.total()

    def run() -> None:
        results = AssignmentResults()
        results.set_cores(threads.count())
        results.prepare(network, matrix)
        allOrNothing("volumes", matrix, network, results).execute()
        loads = results.get_load_results()
        names = [name for name in loads if name.endswith("_tot")]
        loads = loads[names].fillna(0).iloc[:, 0].reindex(links["link_id"])
        if int(loads.to_numpy() @ links["distance"]) != total:
            raise SystemExit(
                "AequilibraE: volume times weight over edges is not that of this library"
            )

    return run


def flows() -> Iterator[Work]:
    for origins, ends in FLOWS:
        square = {} if origins > ends else {"AequilibraE allOrNothing": aequilibrae}
        yield Work(
            name=f"flows of {origins:,} x {ends:,} pairs, over a hierarchy",
            graph=ROADS,
            size=origins,
            case=partial(flows_of, origins=origins, ends=ends),
            peers={OURS: our_flows} | square,
            check=lambda *_: "",  # the calls compare their sums with that over pairs
            clock=with_processor,
        )


WORKS = (*flows(), *betweenness())
