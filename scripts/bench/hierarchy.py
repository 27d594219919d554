"""Searches over hierarchies beside searches without, and beside pandana and RoutingKit, on road networks and a lattice.

Weights are those of the file, or hashed ones from 1 to 255. Searches run from fewer sources than sweeps: their time per
source does not depend on the number. RoutingKit orders vertices by coordinates, which the files lack. Differences of
distances from four corners of the network stand for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numba
import numpy as np

import kepler_traverse
from kepler_traverse import (
    Graph,
    certify_many,
    graph_from_edges,
    paths,
    plan_bfs_many,
    plan_sssp_many,
    sssp_many,
    sssp_pairs,
)
from kepler_traverse._arrays import to_host
from kepler_traverse.search.distance_stats import summary_of_distances
from kepler_traverse.sssp import REGISTRY
from scripts.bench.libraries import edges_of, graph_of, roads_of
from scripts.bench.pandana_network import network_of
from scripts.measure.environment import timed_on_gpu
from scripts.measure.work import (
    OURS,
    Baseline,
    Call,
    Inputs,
    Prepare,
    Repeats,
    Timed,
    Work,
    differences,
    planner,
    unless,
)

PACKAGES = ("pandana", "routingkit-cch")
ROADS = ("USA-road-NE-topology", "USA-road-d.NY")
LATTICE = "lattice 1500"
SWEEP = "hierarchy_sweep"
SEARCH = "near_far_per_thread"
SEARCH_ON_GPU = "source_per_block"
SEARCHED = 16
CHECKED = 16
PAIRS = 1000
TARGETS = 1000
WHOLE = 10_000
SIDE_BY_SIDE = 1024  # sources on a GPU
OWN = 100  # destinations of each origin
BASELINE_ORIGINS = 100


@lru_cache(1)
def network(inputs: Inputs, name: str) -> Graph:
    """Return an undirected graph; a small hierarchy is built first, which compiles."""
    side = np.arange(200)
    ring = graph_from_edges(side, (side + 1) % 200, np.ones(200, np.int64), directed=False)
    for metric in ("weights", "hops"):
        ring.hierarchy(metric)
    if name == LATTICE:
        return graph_of(inputs, name)
    return roads_of(inputs, name)


def drawn(graph: Graph, seed: int, count: int) -> np.ndarray:
    """Return numbers of random vertices."""
    return np.random.default_rng(seed).choice(graph.n_vertices, count, replace=False)


def same_rows(expected: Any, found: Any) -> str:
    """Compare frames, or arrays; the search has the first rows alone."""
    if not hasattr(expected, "equals"):
        return differences(expected, found)
    return unless(expected.head(len(found)).equals(found))


# --- building


def building(graph: Graph, metric: str, cores: int | None = None) -> Call:
    """Prepare the contraction of a graph, on all threads or some."""

    def run() -> Timed:
        before = numba.get_num_threads()
        numba.set_num_threads(cores or before)
        made = graph.derived.without_hierarchy().hierarchy(metric)
        numba.set_num_threads(before)
        facts = {"levels": made.levels, "shortcuts": made.shortcuts, "bytes": made.nbytes}
        return Timed(None, made.seconds, facts | {"vertices": graph.n_vertices})

    return run


def whole(graph: Graph) -> Call:
    """Prepare summaries with the hierarchy that they need."""
    sources = graph.ids_at(drawn(graph, 4, WHOLE))

    def run() -> None:
        bare = graph.derived.without_hierarchy()
        bare.hierarchy()
        sssp_many(bare, sources, result="summary")

    return run


# --- sweeps beside searches


class Search(NamedTuple):
    """A search from many sources, by hops or by weights."""

    metric: str

    @property
    def algorithm(self) -> str:
        return {"hops": "bfs", "weights": "sssp"}[self.metric]

    @property
    def many(self) -> Callable:
        return getattr(kepler_traverse, f"{self.algorithm}_many")

    def strategy(self, graph: Graph, is_sweep: bool, count: int) -> str:
        """Return the sweep, or what searches without a hierarchy."""
        if is_sweep:
            graph.hierarchy(self.metric)
            return SWEEP
        if self.metric == "hops":
            return plan_bfs_many(graph.derived.without_hierarchy(), n_sources=count).strategy.name
        return SEARCH


def distances(
    graph: Graph, search: Search, strategy: str, sources: np.ndarray, **options: Any
) -> Call:
    """Prepare distances from some sources; those of the first ones are returned."""
    make = planner(search.algorithm, many=True)
    plan = make(graph, n_sources=sources.size, strategy=strategy, **options)
    plan.run(sources[:2])  # compiles

    def run() -> np.ndarray:
        first = None
        for group in plan.iter_groups(sources):
            if first is None:
                first = group.distance[:CHECKED].copy()
        return first

    return run


def targets(graph: Graph, search: Search, strategy: str, sources: np.ndarray) -> Call:
    ends = graph.ids_at(drawn(graph, 3, TARGETS))
    return distances(graph, search, strategy, sources, targets=ends, result="targets")


def summaries(graph: Graph, search: Search, strategy: str, sources: np.ndarray) -> Call:
    ids = graph.ids_at(sources)
    call = partial(search.many, graph, result="summary", strategy=strategy)
    call(ids[:2])  # compiles
    return partial(call, ids)


def walks(graph: Graph, _search: Search, strategy: str, sources: np.ndarray) -> Call:
    """Prepare paths from each source to a vertex of its own."""
    numbers = np.random.default_rng(4).integers(0, graph.n_vertices, PAIRS)
    origins = graph.ids_at(sources)
    ends = graph.ids_at(numbers[: sources.size])
    call = partial(paths, graph, strategy=strategy)
    call((origins[:2], ends[:2]))  # compiles
    return partial(call, (origins, ends))


WEIGHTS = Search("weights")
HOPS = Search("hops")
# Work: what is asked, of which search, and the sources of the sweep and of the search.
ASKED: dict[str, tuple[Callable[..., Call], Search, int, int]] = {
    "distances": (distances, WEIGHTS, 512, SEARCHED),
    "summary": (summaries, WEIGHTS, 512, SEARCHED),
    "1,000 targets": (targets, WEIGHTS, TARGETS, SEARCHED),
    "distances, hops": (distances, HOPS, 512, 64),
    "summary, hops": (summaries, HOPS, WHOLE, 64),
    "paths of 1,000 pairs": (walks, WEIGHTS, PAIRS, PAIRS),
}


def prepare(graph: Graph, work: str, is_sweep: bool) -> Call:
    call, search, swept, searched = ASKED[work]
    sources = drawn(graph, 1, swept)[: swept if is_sweep else searched]
    return call(graph, search, search.strategy(graph, is_sweep, swept), sources)


def sweeps(graph: str) -> Iterator[Work]:
    for name, (_, _, swept, searched) in ASKED.items():
        if graph in ROADS or name in tuple(ASKED)[:3]:
            search = partial(prepare, work=name, is_sweep=False)
            yield Work(
                name=name,
                graph=graph,
                size=swept,
                case=partial(network, name=graph),
                peers={
                    OURS: partial(prepare, work=name, is_sweep=True),
                    "search": Baseline(prepare=search, size=searched),
                },
                check=same_rows,
            )


def builds(graph: str) -> Iterator[Work]:
    on_all = {OURS: building}
    one_core = {"one core": partial(building, cores=1)}
    for metric, peers in (("weights", on_all | one_core), ("hops", on_all)):
        yield Work(
            name=f"build, {metric}",
            graph=graph,
            case=partial(network, name=graph),
            peers={name: partial(call, metric=metric) for name, call in peers.items()},
            repeats=Repeats(most=1),
        )
    yield Work(
        name="building and 10,000 summaries",
        graph=graph,
        size=WHOLE,
        case=partial(network, name=graph),
        peers={OURS: whole},
        repeats=Repeats(most=1),
    )


# --- other libraries


class Network(NamedTuple):
    """A network of a library: distances of all pairs of origins and destinations, and of row by row."""

    table: Callable[[np.ndarray, np.ndarray], np.ndarray]
    pairs: Callable[[np.ndarray, np.ndarray], np.ndarray]


def of_kepler(graph: Graph) -> Network:
    graph.derived.without_hierarchy().hierarchy()
    graph.hierarchy()

    def table(origins: np.ndarray, ends: np.ndarray) -> np.ndarray:
        given = {"targets": graph.ids_at(ends), "result": "matrix"}
        return sssp_many(graph, graph.ids_at(origins), **given)

    def pairs(origins: np.ndarray, ends: np.ndarray) -> np.ndarray:
        return sssp_pairs(graph, graph.ids_at(origins), graph.ids_at(ends))["distance"].to_numpy()

    return Network(table, pairs)


def of_pandana(graph: Graph) -> Network:
    from pandana import Network as Pandana

    network = network_of(graph, Pandana)

    def pairs(origins: np.ndarray, ends: np.ndarray) -> np.ndarray:
        return np.array(network.shortest_path_lengths(origins, ends))

    def table(origins: np.ndarray, ends: np.ndarray) -> np.ndarray:
        found = pairs(np.repeat(origins, ends.size), np.tile(ends, origins.size))
        return found.reshape(origins.size, ends.size)

    return Network(table, pairs)


def of_routingkit(graph: Graph) -> Network:
    from routingkit_cch import CCH, CCHMetric, CCHOneToMany, CCHQuery, compute_order_inertial

    tails, heads, weights = edges_of(graph)
    doubled = ((tails, heads), (heads, tails), (weights, weights))
    src, dst, lengths = (np.concatenate(each).astype(np.int64).tolist() for each in doubled)
    places = (each.tolist() for each in coordinates(graph))
    order = compute_order_inertial(graph.n_vertices, src, dst, *places)
    metric = CCHMetric(CCH(order, src, dst, False), lengths)
    query = CCHQuery(metric)

    def table(origins: np.ndarray, ends: np.ndarray) -> np.ndarray:
        to_all = CCHOneToMany(metric, ends.tolist())
        return np.array([to_all.distances_from(origin) for origin in origins.tolist()], np.float64)

    def pairs(origins: np.ndarray, ends: np.ndarray) -> np.ndarray:
        rows = zip(origins.tolist(), ends.tolist(), strict=True)
        return np.array([query.run(*row).distance for row in rows], np.float64)

    return Network(table, pairs)


def coordinates(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    """Return differences of distances from two pairs of vertices that are far apart."""

    def from_farthest(values: np.ndarray) -> np.ndarray:
        number = int(np.where(np.isfinite(values), values, -np.inf).argmax())
        one = graph.ids_at(np.array([number]))
        found = sssp_many(graph, one, result="matrix", strategy="near_far")[0].astype(np.float64)
        if not np.isfinite(found).all():
            raise SystemExit("the network is not connected")
        return found

    west = from_farthest(from_farthest(np.zeros(graph.n_vertices)))
    east = from_farthest(west)
    south = from_farthest(np.minimum(west, east))
    north = from_farthest(south)
    return west - east, south - north


NETWORKS = {OURS: of_kepler, "pandana": of_pandana, "routingkit-cch": of_routingkit}


class Compared:
    """A graph in all libraries, each built once, with origins and destinations."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        rng = np.random.default_rng(4)
        self.origins = rng.choice(graph.n_vertices, min(PAIRS, graph.n_vertices), replace=False)
        self.ends = np.sort(rng.choice(graph.n_vertices, self.origins.size, replace=False))
        self.first = np.repeat(self.origins, OWN)
        self.second = rng.choice(graph.n_vertices, self.first.size)
        self._networks = {}

    def network(self, library: str) -> Network:
        if library not in self._networks:
            self._networks[library] = NETWORKS[library](self.graph)
        return self._networks[library]

    def calling(self, library: str, what: str) -> Call:
        network = self.network(library)
        count = BASELINE_ORIGINS
        if library == OURS:
            count = PAIRS
        if what == "table":
            return lambda: network.table(self.origins[:count], self.ends)
        rows = slice(OWN * count)
        return lambda: network.pairs(self.first[rows], self.second[rows])


def compared_of(inputs: Inputs, name: str) -> Compared:
    return Compared(network(inputs, name))


def beside_libraries(graph: str) -> Iterator[Work]:
    given = {"graph": graph, "case": partial(compared_of, name=graph)}
    yield Work(
        name="network",
        peers={
            library: lambda case, build=build: lambda: build(case.graph) and None
            for library, build in NETWORKS.items()
        },
        facts=lambda case: {"vertices": case.graph.n_vertices},
        repeats=Repeats(most=1),
        **given,
    )
    for what, per_origin in (("table", PAIRS), ("own destinations", OWN)):

        def prepared(library: str, what: str = what) -> Prepare:
            return lambda case: case.calling(library, what)

        others = {
            library: Baseline(prepare=prepared(library), size=BASELINE_ORIGINS * per_origin)
            for library in NETWORKS
            if library != OURS
        }
        yield Work(
            name=what,
            size=PAIRS * per_origin,
            peers={OURS: prepared(OURS)} | others,
            check=differences,
            **given,
        )


# --- GPU


class OnGpu:
    """A graph with its hierarchy on a GPU, and the groups that are measured."""

    def __init__(self, graph: Graph) -> None:
        graph.hierarchy()
        self.graph = graph.to("cuda")
        self.sources = drawn(graph, 1, SIDE_BY_SIDE)
        self.ends = drawn(graph, 2, TARGETS)

    def plan(self, strategy: str, forms: tuple[str, ...] = ()) -> Any:
        given = {"n_sources": SIDE_BY_SIDE, "result": "distances", "strategy": strategy}
        return REGISTRY.plan_multi_source(self.graph, forms=forms, **given)

    def rows(self, strategy: str, *forms: str) -> Call:
        plan = self.plan(strategy, forms)
        return lambda: plan.run(self.sources).distance

    def statistics(self) -> Call:
        """Prepare statistics of interleaved distances, which must be those of rows."""
        found = self.rows(SWEEP, "interleaved")()
        offsets = self.graph.offsets
        pairs = zip(
            summary_of_distances(found, offsets, None),
            summary_of_distances(self.rows(SEARCH_ON_GPU)(), offsets, None),
            strict=True,
        )
        if any(one.tobytes() != other.tobytes() for one, other in pairs):
            raise SystemExit("statistics of interleaved distances differ from those of rows")
        return lambda: summary_of_distances(found, offsets, None)

    def certificate(self, *forms: str) -> Call:
        found = self.rows(SWEEP, *forms)()
        return lambda: certify_many(self.graph, self.sources, found).require()

    def table(self, strategy: str) -> Call:
        ids = to_host(self.graph.ids)[self.ends]
        given = {"n_sources": TARGETS, "targets": ids, "result": "targets"}
        plan = plan_sssp_many(self.graph, strategy=strategy, **given)
        return lambda: plan.run(self.sources[:TARGETS]).distance

    def sums_from_all(self) -> Call:
        """Prepare the sums of distances from each vertex, with the hierarchy that they need."""

        def summarize() -> tuple[np.ndarray, float]:
            bare = self.graph.derived.without_hierarchy()
            build = bare.hierarchy().seconds
            frame = sssp_many(bare, "all", result="summary", strategy=SWEEP)
            return frame["sum"].to_numpy().astype(np.int64), build

        def run() -> Timed:
            (sums, build), seconds = timed_on_gpu(summarize)
            return Timed(sums, seconds, {"build": build})

        return run

    def sums_to_all(self) -> Call:
        """Prepare the sums of distances to each vertex, certified: those from it, as the graph is undirected."""
        import cupy as cp

        plan = self.plan(SWEEP, ("interleaved",))

        def sums() -> np.ndarray:
            sums = cp.zeros(self.graph.n_vertices, np.int64)
            for group in plan.iter_groups(np.arange(self.graph.n_vertices)):
                certify_many(self.graph, group.sources, group.distance).require()
                lines = group.distance.lines[:, : len(group)]
                sums += cp.where(lines < group.distance.bound, lines, 0).sum(axis=1, dtype=np.int64)
            return to_host(sums)

        return lambda: Timed(*timed_on_gpu(sums))


def on_gpu_of(inputs: Inputs, name: str) -> OnGpu:
    return OnGpu(network(inputs, name))


def same_on_gpu(expected: Any, found: Any) -> str:
    return unless(bool((expected == found).all()))


def prepared(call: Callable[..., Call], *arguments: Any) -> Prepare:
    """Return the function that prepares a call, timed with its kernels."""

    def of(case: OnGpu) -> Call:
        made = call(case, *arguments)
        return lambda: Timed(*timed_on_gpu(made))

    return of


# Work of a GPU: its size, and its peers.
ON_GPU: dict[str, tuple[int, dict[str, Prepare]]] = {
    "distances": (
        SIDE_BY_SIDE,
        {OURS: prepared(OnGpu.rows, SWEEP), SEARCH_ON_GPU: prepared(OnGpu.rows, SEARCH_ON_GPU)},
    ),
    "interleaved distances": (SIDE_BY_SIDE, {OURS: prepared(OnGpu.rows, SWEEP, "interleaved")}),
    "statistics of interleaved distances": (SIDE_BY_SIDE, {OURS: prepared(OnGpu.statistics)}),
    "certificate of interleaved distances": (
        SIDE_BY_SIDE,
        {OURS: prepared(OnGpu.certificate, "interleaved")},
    ),
    "certificate of distances": (SIDE_BY_SIDE, {OURS: prepared(OnGpu.certificate)}),
    "1,000 x 1,000 targets": (
        TARGETS,
        {OURS: prepared(OnGpu.table, SWEEP), SEARCH_ON_GPU: prepared(OnGpu.table, SEARCH_ON_GPU)},
    ),
    "summaries of all sources": (
        1,
        {OURS: OnGpu.sums_from_all, "sums to each vertex": OnGpu.sums_to_all},
    ),
}


def on_gpu(graph: str) -> Iterator[Work]:
    for name, (size, peers) in ON_GPU.items():
        yield Work(
            name=name,
            graph=graph,
            size=size,
            case=partial(on_gpu_of, name=graph),
            peers=peers,
            check=same_on_gpu,
            facts=lambda case: {"vertices": case.graph.n_vertices},
            repeats=Repeats(most=5),
        )


def works(inputs: Inputs) -> Iterator[Work]:
    if inputs.device == "cuda":
        for graph in ROADS:
            yield from (work for work in builds(graph) if work.name == "build, weights")
            yield from on_gpu(graph)
        return
    for graph in (*ROADS, LATTICE):
        yield from builds(graph)
        yield from sweeps(graph)
    yield from beside_libraries(ROADS[1])
