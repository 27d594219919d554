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
from typing import Any, NamedTuple

from scripts.measure.clock import undisturbed
from scripts.measure.work import OURS, Baseline, Call, Inputs, Prepare, Repeats, Work, unless
from scripts.pages import listed

PACKAGES = ("networkx", "nx-parallel", "nx-cugraph-cu13")
GRAPH = "USA-road-d.NY"
CONVERTING = "kepler, with conversion"
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


def closeness_of_some(graph: Any, backend: str, **options: Any) -> Any:
    """Return the closeness of a sample of nodes, each by a call of its own."""
    import networkx as nx

    nodes = list(graph)[:: max(len(graph) // SAMPLE, 1)][:SAMPLE]
    given = options | {"backend": backend}
    return {node: nx.closeness_centrality(graph, u=node, **given) for node in nodes}


def calling(name: str, graph: Any, backend: str, nodes: int = 0, **options: Any) -> Any:
    """Call a function of NetworkX, with the first nodes if there are some: 1, one; several, a list."""
    import networkx as nx

    first = list(graph)[:nodes]
    sources = [first] if nodes > 1 else first
    found = getattr(nx, name)(graph, *sources, backend=backend, **options)
    if name.startswith("all_pairs"):
        return dict(found)
    return found


class Asked(NamedTuple):
    """A call: as it is written in Python, the nodes of the graph, and whether NetworkX would take too long for all."""

    title: str
    n_nodes: int
    options: Mapping = {}
    is_sampled: bool = False

    @property
    def name(self) -> str:
        return self.title.removeprefix("dict(").partition("(")[0]


CALLS = tuple(Asked(**about) for about in listed(__file__)["calls"])


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
    return unless(is_same, f"{found!r} is not {expected!r}")


def prepare(backend: str, call: Callable[[Any, str], Any]) -> Prepare:
    def of(graph: Any) -> Call:
        require(backend)
        return partial(call, graph, backend)

    return of


def converting(call: Callable[[Any, str], Any]) -> Prepare:
    """Prepare a call of this library that converts the graph anew."""

    def of(graph: Any) -> Call:
        def run() -> Any:
            graph.__networkx_cache__.clear()
            return call(graph, OURS)

        return run

    return of


def peers_of(asked: Asked) -> dict:
    call = partial(calling, asked.name, **asked.options)
    ours = {OURS: prepare(OURS, call), CONVERTING: converting(call)}
    if asked.is_sampled:
        some = partial(closeness_of_some, **asked.options)
        return ours | {"networkx": Baseline(prepare=prepare("networkx", some), size=SAMPLE)}
    return ours | {name: prepare(name, call) for name in ("networkx", "parallel", "cugraph")}


WORKS = tuple(
    Work(
        name=f"{asked.title}, {asked.n_nodes:,} nodes",
        graph=GRAPH,
        size=asked.n_nodes,
        case=partial(case_of, n_nodes=asked.n_nodes),
        peers=peers_of(asked),
        check=differences,
        clock=undisturbed,
        repeats=Repeats(seconds=60.0),
    )
    for asked in CALLS
)
