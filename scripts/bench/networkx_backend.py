"""The backend of NetworkX compared with NetworkX, nx-parallel and nx-cugraph.

For all sources of a large graph, NetworkX searches from a sample of them, so that the page's time is estimated; the other
libraries have no call for a sample. A library that needs another release of NetworkX is measured in another environment,
and ``add`` puts its rows beside the others.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from importlib.metadata import entry_points
from typing import Any

from scripts.measure.clock import undisturbed
from scripts.measure.work import OURS, Baseline, Call, Inputs, Repeats, Work

PACKAGES = ("networkx", "nx-parallel", "nx-cugraph-cu13")
GRAPH = "USA-road-d.NY"
CONVERTING = "kepler, with conversion"
STREETS = 90_000
TOWN = 20_000
DISTRICT = 2_000
QUARTER = 1_000  # nodes of parts of the network
SAMPLE = 40  # sources for which NetworkX's time of all sources is measured


@lru_cache(1)
def street_network(inputs: Inputs) -> Any:
    """The streets of New York: weights are lengths in tenths of a foot, of parallel ones the smallest."""
    import networkx as nx
    import pyarrow.parquet

    nx.config.warnings_to_ignore.add("cache")
    table = pyarrow.parquet.read_table(inputs.file(GRAPH)).to_pydict()
    edges = zip(table["src"], table["dst"], table["weight"], strict=True)
    graph = nx.Graph()
    graph.add_weighted_edges_from(sorted(edges, reverse=True))
    return graph


def part_of(graph: Any, n_nodes: int) -> Any:
    """The nodes nearest to the first one by hops, as a graph of their own."""
    import networkx as nx

    near = nx.single_source_shortest_path_length(graph, next(iter(graph)), backend="networkx")
    return graph.subgraph(list(near)[:n_nodes]).copy()


@lru_cache(1)
def case_of(inputs: Inputs, n_nodes: int) -> Any:
    return part_of(street_network(inputs), n_nodes)


def require(backend: str) -> None:
    """Raise ModuleNotFoundError unless a backend is installed and works with this release of NetworkX."""
    if backend == "networkx":
        return
    points = list(entry_points(group="networkx.backends", name=backend))
    if not points:
        raise ModuleNotFoundError(f"there is no backend {backend}")
    points[0].load()
    if backend == "parallel":
        import networkx as nx

        nx.config.backends.parallel.active = True
        nx.config.backends.parallel.n_jobs = len(os.sched_getaffinity(0))


def nodes_of(graph: Any, count: int) -> list[Any]:
    return list(graph)[:: max(len(graph) // count, 1)][:count]


def closeness(graph: Any, backend: str, distance: str | None) -> Any:
    import networkx as nx

    return nx.closeness_centrality(graph, distance=distance, backend=backend)


def betweenness(graph: Any, backend: str, weight: str | None) -> Any:
    import networkx as nx

    return nx.betweenness_centrality(graph, weight=weight, backend=backend)


def closeness_of_some(graph: Any, backend: str, distance: str | None) -> Any:
    import networkx as nx

    given = {"distance": distance, "backend": backend}
    return {
        node: nx.closeness_centrality(graph, u=node, **given) for node in nodes_of(graph, SAMPLE)
    }


def of_nodes(name: str, n_sources: int, graph: Any, backend: str) -> Any:
    """Call a function of NetworkX with the first nodes: 0, none; 1, one; several, a list."""
    import networkx as nx

    nodes = list(graph)[:n_sources]
    sources = [] if not n_sources else [nodes[0]] if n_sources == 1 else [nodes]
    found = getattr(nx, name)(graph, *sources, backend=backend)
    if n_sources:
        return found
    return dict(found)


# As it is written in Python, nodes, the call, and that of a sample where NetworkX would take too long for all.
CALLS: tuple[tuple[str, int, Callable[[Any, str], Any], Callable[[Any, str], Any] | None], ...] = (
    *(
        (
            f"closeness_centrality(G{'' if distance is None else f', distance={distance!r}'})",
            n_nodes,
            partial(closeness, distance=distance),
            None if n_nodes == DISTRICT else partial(closeness_of_some, distance=distance),
        )
        for distance, n_nodes in ((None, STREETS), ("weight", TOWN), ("weight", DISTRICT))
    ),
    *(
        (
            f"betweenness_centrality(G{'' if weight is None else f', weight={weight!r}'})",
            QUARTER,
            partial(betweenness, weight=weight),
            None,
        )
        for weight in (None, "weight")
    ),
    *(
        (title, n_nodes, partial(of_nodes, name, n_sources), None)
        for title, n_nodes, name, n_sources in (
            (
                "dict(all_pairs_shortest_path_length(G))",
                DISTRICT,
                "all_pairs_shortest_path_length",
                0,
            ),
            (
                "dict(all_pairs_dijkstra_path_length(G))",
                DISTRICT,
                "all_pairs_dijkstra_path_length",
                0,
            ),
            (
                "multi_source_dijkstra_path_length(G, 10 nodes)",
                STREETS,
                "multi_source_dijkstra_path_length",
                10,
            ),
            (
                "single_source_dijkstra_path_length(G, node)",
                STREETS,
                "single_source_dijkstra_path_length",
                1,
            ),
            (
                "single_source_shortest_path_length(G, node)",
                STREETS,
                "single_source_shortest_path_length",
                1,
            ),
        )
    ),
)


def differences(expected: Any, found: Any) -> str:
    """Compare two results, floats to 12 digits; of a sample its nodes alone."""
    if isinstance(expected, Mapping):
        if not set(found) <= set(expected):
            return "results have different nodes"
        of_nodes = (differences(expected[node], value) for node, value in found.items())
        return next(filter(None, of_nodes), "")
    if isinstance(expected, float):
        is_same = math.isclose(expected, found, rel_tol=1e-12)
    else:
        is_same = expected == found
    if is_same:
        return ""
    return f"{found!r} is not {expected!r}"


def prepare(backend: str, call: Callable[[Any, str], Any]) -> Callable[[Any], Call]:
    def of(graph: Any) -> Call:
        require(backend)
        return partial(call, graph, backend)

    return of


def converting(call: Callable[[Any, str], Any]) -> Callable[[Any], Call]:
    """Prepare a call of this library that converts the graph anew."""

    def of(graph: Any) -> Call:
        def run() -> Any:
            graph.__networkx_cache__.clear()
            return call(graph, OURS)

        return run

    return of


def peers_of(call: Callable[[Any, str], Any], sampled: Callable[[Any, str], Any] | None) -> dict:
    ours = {OURS: prepare(OURS, call), CONVERTING: converting(call)}
    if sampled is not None:
        return ours | {"networkx": Baseline(prepare=prepare("networkx", sampled), size=SAMPLE)}
    return ours | {name: prepare(name, call) for name in ("networkx", "parallel", "cugraph")}


WORKS = tuple(
    Work(
        name=f"{name}, {n_nodes:,} nodes",
        graph=GRAPH,
        size=n_nodes,
        case=partial(case_of, n_nodes=n_nodes),
        peers=peers_of(call, sampled),
        check=differences,
        clock=undisturbed,
        repeats=Repeats(seconds=60.0),
    )
    for name, n_nodes, call, sampled in CALLS
)
