"""NetworkX's functions of the distances between all nodes, by the searches of ``bfs_many`` and
``sssp_many``.

Parameters are NetworkX's, by position. ``refusals`` leaves calls with precomputed results (``e``,
``sp``) and those that change the graph (``attr``) to NetworkX.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import networkx as nx
import numpy as np

from .. import cuda
from ..bfs import bfs_many
from ..extremes import extremes
from ..graph import Graph
from ..runtime.progress import late_lines
from ..sssp import sssp_many
from . import kernels
from .graph import KeplerGraph
from .single_source import search_dijkstra, search_levels

Weight = Hashable | None

# Sources times edges from which a GPU, where there is one, searches: below, a CPU takes less time
# than starting the GPU.
_EDGES_FOR_GPU = 1 << 30
PROGRESS_NAME = "NetworkX by kepler"  # before each line of progress


class _Summary(NamedTuple):
    """Lists with one number per source; see ``bfs_many(result="summary")``."""

    reached: list[int]  # vertices reached, the source included
    eccentricity: list[Any]  # the largest distance
    total: list[Any]  # the sum of the distances
    harmonic: list[float]  # the sum of the reciprocals of the distances above 0


def searched_where_fast(graph: KeplerGraph, weight: Weight, n_sources: int) -> Graph:
    """Return the graph to search, on a GPU if that takes less time."""
    searched = graph.searched(weight)
    if n_sources * searched.n_edges >= _EDGES_FOR_GPU and cuda.available():
        return searched.to("cuda")
    return searched


def _summary(
    graph: KeplerGraph, sources: np.ndarray, weight: Weight, direction: str = "out"
) -> _Summary:
    """Return the summary of the distances from some vertices, or with ``"in"`` to them."""
    searched = searched_where_fast(graph, weight, sources.size)
    search: Any = bfs_many if weight is None else sssp_many
    table = search(
        searched,
        sources,
        result="summary",
        direction=direction,
        stream="arrow",
        progress=late_lines(PROGRESS_NAME),
    ).read_all()
    return _Summary(
        *(table[name].to_pylist() for name in ("reached", "eccentricity", "sum", "harmonic"))
    )


def _all_vertices(graph: KeplerGraph) -> np.ndarray:
    """Return the numbers of all vertices."""
    return np.arange(len(graph))


def _is_strongly_connected(graph: KeplerGraph) -> bool:
    """Return whether each node reaches every other one. The graph has nodes."""
    directions = (graph.outgoing, graph.incoming) if graph.directed else (graph.outgoing,)
    # if the first node reaches all others, and all others reach it
    first = np.zeros(1, np.int64)
    for edges in directions:
        order, _, _ = kernels.bfs(*edges, first, np.iinfo(np.int32).max)
        if order.size < len(graph):
            return False
    return True


def closeness_centrality(G: KeplerGraph, u: Any, distance: Weight, wf_improved: bool) -> Any:
    """Return the closeness by the distances to a node, or of each node."""
    n = len(G)
    if u is not None:
        if distance is None:
            missing = f"Source {u} is not in G"
        else:
            missing = f"Node {u} not found in graph"
        vertex = G.to_number(u, lambda: nx.NodeNotFound(missing))
        if distance is None:
            search = search_levels(G, vertex, None, True)
        else:
            search = search_dijkstra(G, vertex, None, distance, True)
        lengths = search.distances()
        return _closeness(len(lengths), sum(lengths.values()), n, wf_improved)

    summary = _summary(G, _all_vertices(G), distance, "in")
    return {
        node: _closeness(reached, total, n, wf_improved)
        for node, reached, total in zip(G.nodes, summary.reached, summary.total, strict=True)
    }


def _closeness(reached: int, total: float, n: int, wf_improved: bool) -> float:
    """Return NetworkX's closeness of a node to which ``reached`` nodes have distances of sum
    ``total``.
    """
    if total <= 0 or n <= 1:
        return 0.0
    closeness = (reached - 1.0) / total
    if wf_improved:
        return closeness * ((reached - 1.0) / (n - 1))
    return closeness


def harmonic_centrality(G: KeplerGraph, nbunch: Any, distance: Weight, _: None) -> dict[Any, Any]:
    """Return the sum of the reciprocal distances to each node of ``nbunch``."""
    names = list(set(G.nbunch_iter(nbunch)))
    if not names:
        return {}
    summary = _summary(G, np.array([G._adj[node] for node in names]), distance, "in")
    return {node: value or 0 for node, value in zip(names, summary.harmonic, strict=True)}


def eccentricity(G: KeplerGraph, v: Any, _: None, weight: Weight) -> Any:
    """Return the largest distance from each node."""
    names = list(G.nbunch_iter(v))
    if not names:
        return {}
    summary = _summary(G, np.array([G._adj[node] for node in names]), weight)
    if min(summary.reached) < len(G):
        raise _infinite_path(G)
    by_node = {node: value or 0 for node, value in zip(names, summary.eccentricity, strict=True)}
    return by_node[v] if v in G else by_node


def _extreme(name: str) -> Callable[..., Any]:
    """Return the function of an extreme eccentricity, or of its nodes, with searches from a few
    nodes on most graphs.
    """

    def function(G: KeplerGraph, _: None, usebounds: bool, weight: Weight) -> Any:
        """Answer a call of NetworkX's function of that name."""
        if name == "center" and not usebounds:
            _refuse_no_tree(G, weight)
        if not len(G):
            # raises what NetworkX raises
            largest_or_smallest = max if name in ("diameter", "periphery") else min
            return largest_or_smallest([])
        if not _is_strongly_connected(G):  # before all sources are searched in vain
            raise _infinite_path(G)
        found = extremes(
            G.searched(weight), algorithm="bfs" if weight is None else "sssp", want=(name,)
        )
        extreme = getattr(found, name)
        if name in ("center", "periphery"):
            return G.names(extreme)
        return extreme or 0

    return function


diameter, radius, periphery, center = map(_extreme, ("diameter", "radius", "periphery", "center"))


def _refuse_no_tree(graph: KeplerGraph, weight: Weight) -> None:
    """Raise what NetworkX raises where it asks whether a graph without nodes is a tree."""
    if not len(graph) and not graph.directed and weight is None:
        raise nx.NetworkXPointlessConcept("G has no nodes.")


def _infinite_path(graph: KeplerGraph) -> Exception:
    """Return NetworkX's error for a graph that is not connected."""
    if graph.directed:
        what = "digraph is not strongly connected"
    else:
        what = "graph is not connected"
    return nx.NetworkXError(f"Found infinite path length because the {what}")


def barycenter(G: KeplerGraph, weight: Weight, *_: None) -> list[Any]:
    """Return the nodes of the smallest sum of distances."""
    _refuse_no_tree(G, weight)
    if not len(G):
        return []
    if not _is_strongly_connected(G):
        raise nx.NetworkXNoPath(
            f"Input graph {G} is disconnected, so every induced "
            "subgraph has infinite barycentricity."
        )
    totals = _summary(G, _all_vertices(G), weight).total
    smallest = min(totals)
    return [node for node, total in zip(G.nodes, totals, strict=True) if total == smallest]


def average_shortest_path_length(G: KeplerGraph, weight: Weight, method: str | None) -> float:
    """Return the mean distance of all ordered pairs."""
    n = len(G)
    if n == 0:
        raise nx.NetworkXPointlessConcept(
            "the null graph has no paths, thus there is no average shortest path length"
        )
    if n == 1:
        return 0
    if not _is_strongly_connected(G):
        raise nx.NetworkXError(
            "Graph is not strongly connected." if G.directed else "Graph is not connected."
        )
    total = sum(_summary(G, _all_vertices(G), None if method == "unweighted" else weight).total)
    return total / (n * (n - 1))


def wiener_index(G: KeplerGraph, weight: Weight) -> Any:
    """Return the sum of the distances of all pairs."""
    if not len(G):
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    if not _is_strongly_connected(G):
        return float("inf")
    # the integer, also where weights are floats
    if len(G) > 1:
        total = sum(_summary(G, _all_vertices(G), weight).total)
    else:
        total = 0
    return total if G.directed else total / 2


def global_efficiency(G: KeplerGraph) -> float:
    """Return the mean of the reciprocal distances of all pairs."""
    n = len(G)
    if n < 2:
        return 0
    return sum(_summary(G, _all_vertices(G), None).harmonic) / (n * (n - 1))
