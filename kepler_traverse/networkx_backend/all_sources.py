"""NetworkX's functions of the distances between all nodes, by the searches of ``bfs_many`` and
``sssp_many``.

Functions without an underscore have the parameters and results of NetworkX's function of the same
name. They are called by position. A parameter ``_`` is None in each call: ``refusals`` leaves calls
with precomputed results (``e``, ``sp``) and those that change the graph (``attr``) to NetworkX.
``weight`` or ``distance`` is the name of an edge attribute, or None to count hops. ``G._adj`` maps
each node to its vertex number.
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

Weight = Hashable | None  # name of the edge attribute that holds weights; None counts hops

# Sources times edges from which a GPU, where there is one, searches: below, a CPU takes less time
# than starting the GPU.
_EDGES_FOR_GPU = 1 << 30
PROGRESS_NAME = "NetworkX by kepler"  # before each line of progress


class _Summary(NamedTuple):
    """What the distances of each source add up to: lists with one number per source, in the order
    of the sources. Distances are hops or sums of weights.
    """

    reached: list[int]  # number of vertices reached, the source included
    eccentricity: list[Any]  # the largest distance of a reached vertex
    total: list[Any]  # the sum of the distances of the reached vertices
    harmonic: list[float]  # the sum of the reciprocals of the distances above 0


def searched_where_fast(graph: KeplerGraph, weight: Weight, n_sources: int) -> Graph:
    """Return the graph for searches from ``n_sources`` vertices with ``weight``. It is on a GPU if
    there is one and the work is large enough to pay for starting it, else on the CPU.
    """
    searched = graph.searched(weight)
    if n_sources * searched.n_edges >= _EDGES_FOR_GPU and cuda.available():
        return searched.to("cuda")
    return searched


def _summary(
    graph: KeplerGraph, sources: np.ndarray, weight: Weight, direction: str = "out"
) -> _Summary:
    """Return the summary of the distances from ``sources``, or with ``direction="in"`` to them.

    ``sources`` are int64 vertex numbers, which are the ids of the searched graph. ``weight`` is an
    edge attribute, None for hops.
    """
    searched = searched_where_fast(graph, weight, sources.size)
    search: Any = bfs_many if weight is None else sssp_many
    # A reader of record batches, whose table is of pyarrow on either device.
    table = search(
        searched,
        sources,
        result="summary",
        direction=direction,
        stream="arrow",
        progress=late_lines(PROGRESS_NAME),  # lines only if the search takes long
    ).read_all()
    return _Summary(
        *(table[name].to_pylist() for name in ("reached", "eccentricity", "sum", "harmonic"))
    )


def _all_vertices(graph: KeplerGraph) -> np.ndarray:
    """Return the numbers of all vertices, ascending."""
    return np.arange(len(graph))


def _is_strongly_connected(graph: KeplerGraph) -> bool:
    """Return whether each node reaches every other one. The graph must have at least one node."""
    directions = (graph.outgoing, graph.incoming) if graph.directed else (graph.outgoing,)
    # Two searches are enough: if vertex 0 reaches all others and all others reach it, each vertex
    # reaches every other one by way of it. The last argument stands for no limit of levels.
    first = np.zeros(1, np.int64)
    for edges in directions:  # offsets and targets
        order, _, _ = kernels.bfs(*edges, first, np.iinfo(np.int32).max)
        if order.size < len(graph):  # ``order`` has the vertices that are reached
            return False
    return True


def closeness_centrality(G: KeplerGraph, u: Any, distance: Weight, wf_improved: bool) -> Any:
    """Return the closeness of the node ``u``, or a dictionary by node if ``u`` is None.

    Closeness counts the distances from the other nodes to the node: by the edge attribute
    ``distance``, or in hops if that is None. ``wf_improved`` is that of ``_closeness``.
    """
    n = len(G)
    if u is not None:
        if distance is None:
            missing = f"Source {u} is not in G"
        else:
            missing = f"Node {u} not found in graph"
        vertex = G.to_number(u, lambda: nx.NodeNotFound(missing))
        if distance is None:
            search = search_levels(G, vertex, None, True)  # True: against the edges
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
    """Return NetworkX's closeness of a node: the number of other nodes that reach it, divided by
    the sum of their distances to it.

    ``reached`` is the number of nodes that reach it, itself included, ``total`` the sum of their
    distances, and ``n`` the number of nodes of the graph. ``wf_improved`` scales the result by the
    share of the other nodes that reach it (Wasserman and Faust).
    """
    if total <= 0 or n <= 1:
        return 0.0
    closeness = (reached - 1.0) / total
    if wf_improved:
        return closeness * ((reached - 1.0) / (n - 1))
    return closeness


def harmonic_centrality(G: KeplerGraph, nbunch: Any, distance: Weight, _: None) -> dict[Any, Any]:
    """Return the sum of the reciprocal distances to each node of ``nbunch``, or of the graph if it
    is None. The last parameter is NetworkX's ``sources``.
    """
    names = list(set(G.nbunch_iter(nbunch)))
    if not names:
        return {}
    summary = _summary(G, np.array([G._adj[node] for node in names]), distance, "in")
    # ``or 0``: where no other node has a path to it, NetworkX returns the integer 0, not 0.0
    return {node: value or 0 for node, value in zip(names, summary.harmonic, strict=True)}


def eccentricity(G: KeplerGraph, v: Any, _: None, weight: Weight) -> Any:
    """Return the largest distance from the node ``v``, or a dictionary by node if ``v`` is None or
    several nodes. The third parameter is NetworkX's ``sp``. ``weight`` is an edge attribute, None
    for hops.

    NetworkXError: a node of ``v`` does not reach every other node.
    """
    names = list(G.nbunch_iter(v))
    if not names:
        return {}
    summary = _summary(G, np.array([G._adj[node] for node in names]), weight)
    if min(summary.reached) < len(G):
        raise _infinite_path(G)
    # ``or 0``: for a graph of one node NetworkX returns the integer 0, not 0.0
    by_node = {node: value or 0 for node, value in zip(names, summary.eccentricity, strict=True)}
    return by_node[v] if v in G else by_node


def _extreme(name: str) -> Callable[..., Any]:
    """Return the backend's ``diameter``, ``radius``, ``periphery`` or ``center``, as ``name`` says.

    The first two return the largest and the smallest eccentricity, the other two a list of the
    nodes that have it. On most graphs searches from a few nodes are enough.
    """

    def function(G: KeplerGraph, _: None, usebounds: bool, weight: Weight) -> Any:
        """Return what NetworkX's function of that name returns. The second parameter is its ``e``.

        ``usebounds`` chooses between two methods of NetworkX. Here it decides about an error alone.
        ``weight`` is an edge attribute, None for hops.
        """
        # without bounds NetworkX's ``center`` first asks whether the graph is a tree
        if name == "center" and not usebounds:
            _refuse_no_tree(G, weight)
        if not len(G):
            # the ValueError that NetworkX raises: that of max() or min() of nothing
            largest_or_smallest = max if name in ("diameter", "periphery") else min
            return largest_or_smallest([])
        if not _is_strongly_connected(G):  # before all sources are searched in vain
            raise _infinite_path(G)
        # ``want`` limits the searches to what the function returns. ``found`` has a distance, or
        # vertex numbers, by the name of the function.
        found = extremes(
            G.searched(weight), algorithm="bfs" if weight is None else "sssp", want=(name,)
        )
        extreme = getattr(found, name)
        if name in ("center", "periphery"):
            return G.names(extreme)
        return extreme or 0  # the integer 0, not 0.0, as NetworkX

    return function


diameter, radius, periphery, center = map(_extreme, ("diameter", "radius", "periphery", "center"))


def _refuse_no_tree(graph: KeplerGraph, weight: Weight) -> None:
    """Raise NetworkXPointlessConcept for an undirected graph without nodes, in a call without
    weights: there NetworkX asks whether the graph is a tree, which raises this.
    """
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
    """Return the nodes whose sum of distances to all others is the smallest; an empty list for a
    directed graph, or one with a ``weight``, without nodes. ``weight`` is an edge attribute, None
    for hops. The parameters ``_`` are NetworkX's ``attr`` and ``sp``.
    """
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
    """Return the mean distance of all ordered pairs of two nodes.

    ``method="unweighted"`` counts hops whatever ``weight`` is. NetworkX's other methods give the
    same distances, so they are not distinguished here.
    """
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
    """Return the sum of the distances of all pairs of nodes, infinite if a pair has no path. An
    undirected graph counts a pair once, a directed one in both directions. ``weight`` is an edge
    attribute, None for hops.
    """
    if not len(G):
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    if not _is_strongly_connected(G):
        return float("inf")
    # a single node has no pair: the sum is the integer 0, also where weights are floats
    if len(G) > 1:
        total = sum(_summary(G, _all_vertices(G), weight).total)
    else:
        total = 0
    return total if G.directed else total / 2  # the search has each pair in both directions


def global_efficiency(G: KeplerGraph) -> float:
    """Return the mean of the reciprocal hops of all ordered pairs of two nodes; a pair without a
    path counts as 0.
    """
    n = len(G)
    if n < 2:
        return 0
    return sum(_summary(G, _all_vertices(G), None).harmonic) / (n * (n - 1))
