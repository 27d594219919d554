"""Searches that end early, beside pandana, igraph and NetworKit, and on a GPU beside another strategy."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np
import pandas as pd

from kepler_traverse import Graph, bfs_many, graph_from_edges, read_graph, sssp_many, sssp_pairs
from scripts.bench.libraries import igraph_graph, networkit_graph, tails_of
from scripts.bench.pandana_network import differences, network_of
from scripts.measure.work import OURS, Baseline, Call, Inputs, Prepare, Repeats, Work

PACKAGES = ("pandana", "igraph", "networkit")
ROADS = "USA-road-d.NY"
HUBS = "soc-Slashdot0902"
LARGE = "USA-road-NE"
NEAR = 5000
FAR = 20000
STEPS = 4
CUTOFFS = [FAR * (i + 1) // STEPS for i in range(STEPS)]
ATTRIBUTES = ("jobs", "shops", "beds")
AREA = "area"  # an attribute of floats
POINTS = 500
NEAREST = 3
PAIRS = 1_000_000
PAIRS_WITHIN = 3000
NEIGHBORS_OF = 100_000
HOPS = 2
WALK = 24_000  # in 30 minutes at 80 m per minute: a weight of 1 is 0.1 m
# sources whose results a CPU checks, and the strategy of searches that are not short
CHECKED = 20_000
WHOLE = "source_per_block"
# sources of NetworKit, which cannot end a search early and returns distances to all vertices
WHOLE_SEARCHES = 200
ON_CPU = "kepler on the CPU"
DIAMETER = 1e9


class Roads:
    """A road network, here and in pandana, and what is drawn of it."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.n = graph.n_vertices
        random = np.random.default_rng(1)
        self.values = {name: random.integers(0, 100, self.n) for name in ATTRIBUTES}
        # quarters, so that sums in any order are equal
        self.values[AREA] = np.random.default_rng(4).integers(0, 400, self.n) / 4
        self.points = np.sort(random.choice(self.n, POINTS, replace=False))
        sources = np.sort(random.choice(self.n, min(self.n, PAIRS // 8), replace=False))
        near = sssp_many(graph, graph.ids[sources], cutoff=PAIRS_WITHIN)
        self.pairs = near.iloc[random.permutation(len(near))[:PAIRS]]

    @cached_property
    def network(self) -> Any:
        import pandana

        return network_of(self.graph, pandana.Network)

    def within(self, cutoff: int) -> Any:
        return sssp_many(self.graph, "all", cutoff=cutoff)["distance"]

    def alone(self) -> Any:
        return sssp_many(self.graph, "all", result="within", cutoffs=[0])["vertices"]

    def sums(self, names: tuple[str, ...], cutoffs: list[int]) -> np.ndarray:
        given = {name: self.values[name] for name in names}
        found = sssp_many(self.graph, "all", result="opportunities", values=given, cutoffs=cutoffs)
        return found[list(names)].to_numpy().reshape(self.n, len(cutoffs), len(names))

    def sums_of_pandana(self, names: tuple[str, ...], cutoffs: list[int]) -> np.ndarray:
        nodes = pd.Series(np.arange(self.n))
        if len(cutoffs) > 1:  # then it is faster to look up all vertices near each vertex, once
            self.network.precompute(max(cutoffs))
        found = []
        for cutoff in cutoffs:
            for name in names:
                values = pd.Series(self.values[name].astype(float))
                self.network.set(nodes, variable=values, name=name)
                sums = self.network.aggregate(cutoff, type="sum", decay="flat", name=name)
                found.append(sums.to_numpy())
        return np.stack(found, axis=1).reshape(self.n, len(cutoffs), len(names))

    def nearest(self) -> np.ndarray:
        points = self.graph.ids[self.points]
        found = sssp_many(self.graph.reverse, points, result="nearest", k=NEAREST)
        return found["distance"].to_numpy().reshape(-1, NEAREST)

    def nearest_of_pandana(self) -> np.ndarray:
        places = pd.Series(self.points.astype(float))
        self.network.set_pois("points", DIAMETER, NEAREST, places, places * 0)
        return self.network.nearest_pois(DIAMETER, "points", num_pois=NEAREST).to_numpy()

    def lengths(self) -> np.ndarray:
        return sssp_pairs(self.graph, *self.ends())["distance"].to_numpy()

    def lengths_of_pandana(self) -> np.ndarray:
        numbers = (self.graph.to_numbers(ids) for ids in self.ends())
        return np.array(self.network.shortest_path_lengths(*numbers, "weight"))

    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        return self.pairs["source"].to_numpy(), self.pairs["vertex"].to_numpy()


@lru_cache(1)
def roads_of(inputs: Inputs) -> Roads:
    return Roads(read_graph(inputs.file(ROADS), directed=True, device="cpu"))


@lru_cache(1)
def hubs_of(inputs: Inputs) -> Graph:
    return read_graph(inputs.file(HUBS), directed=True, weighted=False, device="cpu")


def sources_of(graph: Graph, count: int) -> np.ndarray:
    return np.random.default_rng(2).integers(0, graph.n_vertices, count)


def neighborhoods(graph: Graph, count: int) -> Call:
    ids = graph.ids[sources_of(graph, count)]
    return lambda: bfs_many(graph, ids, result="within", cutoffs=[HOPS])["vertices"].to_numpy()


def neighborhoods_of_igraph(graph: Graph) -> Call:
    other = igraph_graph(graph.n_vertices, tails_of(graph), graph.targets)
    sources = sources_of(graph, NEIGHBORS_OF).tolist()
    return lambda: np.array(other.neighborhood_size(sources, order=HOPS, mode="out"))


def neighborhoods_of_networkit(graph: Graph) -> Call:
    import networkit

    other = networkit_graph(graph.n_vertices, tails_of(graph), graph.targets)

    def counts() -> np.ndarray:
        search = networkit.distance.SPSP(other, sources_of(graph, WHOLE_SEARCHES).tolist())
        search.run()
        return (search.getDistances(asarray=True) <= HOPS).sum(axis=1)

    return counts


def calling(method: str, *arguments: Any) -> Prepare:
    """Prepare a method of the roads; what pandana builds is built before."""

    def of(roads: Roads) -> Call:
        if method.endswith("pandana"):
            _ = roads.network
        return partial(getattr(roads, method), *arguments)

    return of


ONE = (("jobs",), [NEAR])
ALL = (ATTRIBUTES, CUTOFFS)
ONE_OF_FLOATS = ((AREA,), [NEAR])
# Name: our method, pandana's or none, and their arguments.
ON_ROADS: dict[str, tuple[str, str, tuple]] = {
    f"distances within {NEAR:,}": ("within", "", (NEAR,)),
    "one vertex: within 0": ("alone", "", ()),
    f"1 attribute within {NEAR:,}": ("sums", "sums_of_pandana", ONE),
    f"1 attribute of floats within {NEAR:,}": ("sums", "sums_of_pandana", ONE_OF_FLOATS),
    f"{len(ATTRIBUTES)} attributes within {STEPS} cutoffs up to {FAR:,}": (
        "sums",
        "sums_of_pandana",
        ALL,
    ),
    f"the {NEAREST} nearest of {POINTS} targets": ("nearest", "nearest_of_pandana", ()),
    f"pairs within {PAIRS_WITHIN:,} of each other": ("lengths", "lengths_of_pandana", ()),
}
WITHIN_HOPS = f"vertices within {HOPS} hops"


def on_cpu() -> Iterator[Work]:
    for name, (ours, peer, arguments) in ON_ROADS.items():
        peers = {OURS: calling(ours, *arguments)}
        yield Work(
            name=name,
            graph=ROADS,
            case=roads_of,
            peers=peers | ({"pandana": calling(peer, *arguments)} if peer else {}),
            check=differences,
            facts=lambda roads, ours=ours: {
                "size": len(roads.pairs) if ours == "lengths" else roads.n
            },
        )
    for name, count, library, peer in (
        (WITHIN_HOPS, NEIGHBORS_OF, "igraph", neighborhoods_of_igraph),
        (
            f"{WITHIN_HOPS}, beside whole searches",
            WHOLE_SEARCHES,
            "NetworKit",
            neighborhoods_of_networkit,
        ),
    ):
        yield Work(
            name=name,
            graph=HUBS,
            size=count,
            case=hubs_of,
            peers={OURS: partial(neighborhoods, count=count), library: peer},
            check=differences,
        )


def on_device(inputs: Inputs, graph: str) -> Graph:
    """Return a road network on the device; the larger one has no weights: each edge takes that of a random other's edge."""
    roads = read_graph(inputs.file(ROADS), directed=True, device="cpu")
    if graph == ROADS:
        return roads.to(inputs.device)
    edges = pd.read_parquet(inputs.file(f"{LARGE}-topology"))
    weights = np.random.default_rng(3).choice(roads.weights, len(edges))
    return graph_from_edges(edges["src"], edges["dst"], weights, directed=False).to(inputs.device)


def sums(
    graph: Graph, cutoff: int, count: int | None = None, strategy: str = "auto", device: str = ""
) -> Call:
    """Prepare sums of an attribute within a cutoff, of all vertices or the first ones."""
    where = graph.to(device or graph.device)
    values = np.random.default_rng(1).integers(0, 100, graph.n_vertices)
    sources = "all" if count is None else where.ids[:count]
    options = {"values": {"jobs": values}, "cutoffs": [cutoff], "strategy": strategy}
    return lambda: sssp_many(where, sources, result="opportunities", **options)["jobs"].to_numpy()


def on_gpu() -> Iterator[Work]:
    """Yield sums within a cutoff of all vertices, which those of a CPU and of another strategy, of some, must equal."""
    for graph, cutoff in ((ROADS, NEAR), (ROADS, FAR), (LARGE, WALK)):
        few = partial(sums, cutoff=cutoff, count=CHECKED)
        yield Work(
            name=f"1 attribute within {cutoff:,}",
            graph=graph,
            case=partial(on_device, graph=graph),
            peers={
                OURS: partial(sums, cutoff=cutoff),
                WHOLE: Baseline(prepare=partial(few, strategy=WHOLE), size=CHECKED),
                ON_CPU: Baseline(prepare=partial(few, device="cpu"), size=CHECKED),
            },
            facts=lambda graph: {"size": graph.n_vertices},
            repeats=Repeats(seconds=60.0),
        )


def works(inputs: Inputs) -> Iterator[Work]:
    if inputs.device == "cuda":
        return on_gpu()
    return on_cpu()
