"""Which calls this backend answers. NetworkX answers the others itself, and logs the reasons given
here.
"""

from __future__ import annotations

import inspect
import math
import reprlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import networkx as nx
import numpy as np

from .graph import UNEVEN, KeplerGraph, is_view, may_be_uneven
from .weights import Weights, read_weights

# Converting a lattice and searching it took no longer than NetworkX's search alone from these
# numbers of nodes and edges on: 10,000 for paths from one source, 120,000 for distances from one,
# 400 for closeness and for all pairs (2 cores).
MIN_SIZE_FOR_ONE_SEARCH = 20_000
MIN_SIZE_FOR_ALL_SOURCES = 400

_ONE_PAIR = frozenset({
    "bidirectional_dijkstra", "bidirectional_shortest_path", "has_path",
})  # fmt: skip
_LOADS = frozenset({
    "betweenness_centrality", "betweenness_centrality_subset", "edge_betweenness_centrality",
    "edge_betweenness_centrality_subset", "newman_betweenness_centrality",
})  # fmt: skip
_SUBSETS = frozenset({"betweenness_centrality_subset", "edge_betweenness_centrality_subset"})
_ALL_SOURCES = _LOADS | frozenset({
    "average_shortest_path_length", "barycenter", "center", "closeness_centrality", "diameter", "eccentricity",
    "global_efficiency", "harmonic_centrality", "periphery", "radius", "wiener_index",
})  # fmt: skip
_OF_BOTH_DIRECTIONS = _ALL_SOURCES | {"connected_components", "number_connected_components"}
# Their integers would be floats if a path has one: which path a search takes decides, and a summary
# does not name it.
_NEEDS_ONE_KIND = frozenset({"diameter", "eccentricity", "radius", "wiener_index"})
_MANY_SOURCES = frozenset({
    "multi_source_dijkstra", "multi_source_dijkstra_path", "multi_source_dijkstra_path_length", "voronoi_cells",
})  # fmt: skip
# functions whose argument ``sources`` this backend serves
_WITH_SOURCES = _MANY_SOURCES | _SUBSETS | {"bfs_layers"}
# arguments by which a function uses other results than distances, and their harmless values
_HANDED_OVER = {
    "attr": (None,),
    "e": (None,),
    "sort_neighbors": (None,),
    "sources": (None,),
    "sp": (None,),
    "usebounds": (False, None),
}
_METHODS = (None, "unweighted", "dijkstra", "bellman-ford")
# key of NetworkX's cache of a graph, which NetworkX empties when the graph changes
_MEMORY = "kepler_traverse"


def can_run(
    functions: dict[str, Callable[..., Any]],
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> bool | str:
    """Return True, or why the backend cannot answer a call as NetworkX does.

    ``functions`` are the backend's, whose signatures are NetworkX's.
    """
    try:
        bound = inspect.signature(functions[name]).bind(*args, **kwargs)
    except TypeError as error:
        return f"{error}"
    bound.apply_defaults()
    arguments = bound.arguments
    return (
        _iterator_problem(arguments)
        or _handed_over_problem(name, arguments)
        or _limits_problem(name, arguments)
        or _method_problem(name, arguments)
        or _graph_problem(name, arguments)
        or True
    )


# functions and reasons that users were warned of; NetworkX itself says nothing of them
_REPORTED: set[tuple[str, str]] = set()


def warn_once(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], problem: Any) -> None:
    """Warn once of each reason for which a call under the priority is left to NetworkX, if the
    graph is large.
    """
    if problem is True or "kepler" not in nx.config.backend_priority.algos:
        return
    graph = args[0] if args else kwargs.get("G")
    if not isinstance(graph, nx.Graph) or _is_small(name, graph):
        return
    if (name, problem) in _REPORTED:
        return
    _REPORTED.add((name, problem))
    warnings.warn(f"kepler leaves {name} to NetworkX, as {problem}", stacklevel=2)


def _iterator_problem(arguments: dict[str, Any]) -> str:
    """Say which argument can be read only once; ``""`` if none is.

    What is read here would be missing in the search, or in that of NetworkX after a refusal.
    """
    for argument, value in arguments.items():
        if argument != "G" and isinstance(value, Iterator):
            return f"{argument} is an iterator, which can be read only once"
    return ""


def _handed_over_problem(name: str, arguments: dict[str, Any]) -> str:
    """Say which argument has a value by which NetworkX returns more than distances give, or uses
    results that the caller hands over; ``""`` if none does.

    ``arguments`` are those of a call by name, here and below.
    """
    for argument, harmless in _HANDED_OVER.items():
        is_served = argument == "sources" and name in _WITH_SOURCES
        if argument not in arguments or is_served:
            continue
        if not any(arguments[argument] is value for value in harmless):
            return f"{argument} is given"
    return ""


def _limits_problem(name: str, arguments: dict[str, Any]) -> str:
    """Say which limit of a search is no number, or too large; ``""`` if none is."""
    limits = ["cutoff", "depth_limit"]
    if name == "descendants_at_distance":  # to others it is the name of weights
        limits.append("distance")
    for argument in limits:
        if argument in arguments:
            problem = _limit_problem(argument, arguments[argument])
            if problem:
                return problem
    return ""


def _method_problem(name: str, arguments: dict[str, Any]) -> str:
    """Say which method NetworkX has and this backend has not; ``""`` if it has it."""
    methods = _METHODS if name == "average_shortest_path_length" else _METHODS[2:]
    if "method" in arguments and arguments["method"] not in methods:
        return f"method {arguments['method']!r} is not served"
    return ""


def _graph_problem(name: str, arguments: dict[str, Any]) -> str:
    """Say why this backend would return something else of a graph and its weights; ``""`` if it
    would not.
    """
    graph = arguments["G"]
    _forget_view(graph)
    if _may_be_tree(graph, name, arguments):
        return "the graph may be a tree, for which NetworkX takes linear time"
    if name in _LOADS:
        problem = _load_problem(graph, name, arguments)
        if problem:
            return problem
    weight = _weight_of_call(name, arguments)
    problem = ""
    if weight is not None:
        problem = _weight_problem(graph, name, weight)
    return problem or _direction_problem(graph, name, weight)


def _forget_view(graph: Any) -> None:
    """Empty the cache of a view: NetworkX empties that of a graph that changes, but not those of
    its views.
    """
    if isinstance(graph, KeplerGraph) or not is_view(graph):
        return
    if graph.__networkx_cache__ is not None:
        graph.__networkx_cache__ = None


def _may_be_tree(graph: Any, name: str, arguments: dict[str, Any]) -> bool:
    """Return whether NetworkX may know a faster way, since the graph has as many edges as a tree."""
    if name not in ("center", "barycenter"):
        return False
    if arguments["weight"] is not None or graph.is_directed():
        return False
    return bool(graph.number_of_edges() == len(graph) - 1)


def _weight_of_call(name: str, arguments: dict[str, Any]) -> Any:
    """Return the weights of a call, None for hops."""
    if arguments.get("method") == "unweighted":
        return None
    if name in ("closeness_centrality", "harmonic_centrality"):
        return arguments.get("distance")
    return arguments.get("weight")


def _direction_problem(graph: Any, name: str, weight: Any) -> str:
    """Refuse undirected views whose directions differ, where each edge is searched as one edge of
    both directions; ``""`` for others.
    """
    if name not in _OF_BOTH_DIRECTIONS or graph.is_directed():
        return ""
    if not isinstance(graph, KeplerGraph):
        if not may_be_uneven(graph):
            return ""
        graph = KeplerGraph(graph, None if weight is None else {weight: 1})
    if graph.is_even(weight):
        return ""
    return UNEVEN


def _limit_problem(argument: str, value: Any) -> str:
    """Say why a value is no limit that this backend serves; ``""`` if it is one."""
    if value is None or type(value) in (int, bool):
        if value is None or abs(value) < 2**53:
            return ""
        return f"{argument} is beyond 2^53"
    if type(value) is float:
        if math.isnan(value):
            return f"{argument} is not a number"
        return ""
    return f"{argument} is of type {type(value).__name__}"


def _load_problem(graph: Any, name: str, arguments: dict[str, Any]) -> str:
    """Say why betweenness or load is left to NetworkX, but for weights; ``""`` if it is not."""
    if name.startswith("edge_") and graph.is_multigraph():
        return "edges of multigraphs have keys"
    if name == "newman_betweenness_centrality":
        if arguments["weight"] is not None:
            return "NetworkX leaves out predecessors after the source, in the order of its search"
        cutoff = arguments["cutoff"]
        if cutoff and not (type(cutoff) is int and cutoff > 0):
            return "cutoff is not a whole number above 0"
        if not _can_be_sorted(graph):
            return "nodes do not compare, and NetworkX sorts those at equal distances"
    if name in _SUBSETS:
        try:
            sources = list(arguments["sources"])
            _ = set(arguments["targets"])  # TypeError if one has no hash
            if len(set(sources)) < len(sources) or not all(node in graph for node in sources):
                return "a source is given twice, or is not in the graph"
        except TypeError:
            return "sources or targets are not lists of nodes"
    return ""


def _can_be_sorted(graph: Any) -> bool:
    """Return whether nodes can be sorted."""
    try:
        sorted(graph)
    except TypeError:
        return False
    return True


def _weight_problem(graph: Any, name: str, weight: Any) -> str:
    """Say why the weights of a call are left to NetworkX; ``""`` if they are not."""
    if callable(weight):
        return "weights are a function"
    try:
        hash(weight)
    except TypeError:
        return "weight is not the name of an edge attribute"
    if isinstance(graph, KeplerGraph) and not graph.has_weights(weight):
        return f"the graph was converted without edge attribute {weight!r}; give it as edge_attrs"

    weights = _read_once(graph, weight)
    if weights.problem:
        return weights.problem
    if name in _LOADS and weights.values.size:
        problem = _counting_problem(graph, weights)
        if problem:
            return problem
    if weights.has_negative and name in _ALL_SOURCES | _MANY_SOURCES:
        return "weights are negative, and NetworkX's result depends on the order of the search"
    if name in _NEEDS_ONE_KIND and weights.kind == "mixed":
        return "weights mix integers and floats, and the type of the result depends on the paths"
    if name == "barycenter" and weights.kind != "int":
        return "NetworkX compares sums of floats, which depend on the order of addition"
    return ""


def _counting_problem(graph: Any, weights: Weights) -> str:
    """Say which weight makes NetworkX's numbers of shortest paths depend on the order of its
    search; ``""`` if none does.
    """
    lightest = weights.values.min()
    heaviest = weights.values.max()
    if not lightest > 0:
        edge = _describe_edge(graph, int(weights.values.argmin()))
        return (
            f"{edge} has the weight {lightest}, and paths are counted where all weights are above 0"
        )
    if weights.kind != "int" and lightest < np.spacing(heaviest * len(graph)):
        edge = _describe_edge(graph, int(weights.values.argmin()))
        return (
            f"{edge} has the weight {lightest}, which is too small "
            f"beside {heaviest} for sums of floats"
        )
    return ""


def _describe_edge(graph: Any, position: int) -> str:
    """Name the edge at a position of an array of weights, by its ends."""
    source, target = map(reprlib.repr, _edge_at(graph, position))
    return f"the edge from {source} to {target}"


def _edge_at(graph: Any, position: int) -> tuple[Any, Any]:
    """Return the ends of the edge at a position of an array of weights."""
    if isinstance(graph, KeplerGraph):
        offsets, targets = graph.outgoing
        src = int(np.searchsorted(offsets, position, side="right")) - 1
        return graph.nodes[src], graph.nodes[int(targets[position])]
    for u, neighbors in graph._adj.items():
        ends = list(neighbors)
        if position < len(ends):
            return u, ends[position]
        position -= len(ends)
    raise IndexError(position)


def _read_once(graph: Any, weight: Any) -> Weights:
    """Return what is known of the weights of a graph. Those of a NetworkX graph are read once, if
    NetworkX keeps what is converted.
    """
    if isinstance(graph, KeplerGraph):
        return graph.weights(weight)
    known: dict[Any, Weights] = {}
    cache = getattr(graph, "__networkx_cache__", None)
    if nx.config.cache_converted_graphs and cache is not None:
        known = cache.setdefault(_MEMORY, {})
    if weight not in known:
        known[weight] = read_weights(graph._adj, weight, 1, graph.is_multigraph())
    return known[weight]


def should_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """Return True, or why NetworkX itself is faster: the graph is small, and converting it takes
    longer than the search.
    """
    arguments = dict(zip(("G", "source", "target"), args, strict=False)) | kwargs
    graph = arguments["G"]
    if isinstance(graph, KeplerGraph) or _is_converted(graph):
        return True
    has_both_ends = arguments.get("source") is not None and arguments.get("target") is not None
    may_take_one_pair = name.startswith(("dijkstra_path", "shortest_path"))
    if name in _ONE_PAIR or (may_take_one_pair and has_both_ends):
        return "one pair is searched faster than the graph is converted"
    if _is_small(name, graph):
        size = _count_nodes_and_edges(graph)
        min_size = _min_size(name)
        return f"the graph has {size} nodes and edges, and the conversion pays from {min_size} on"
    return True


def _is_converted(graph: Any) -> bool:
    """Return whether an earlier call has converted the graph, and NetworkX has kept what it became."""
    cache = getattr(graph, "__networkx_cache__", None) or {}
    conversions = cache.get("backends", {}).get("kepler", {})
    return any(isinstance(converted, KeplerGraph) for converted in conversions.values())


def _is_small(name: str, graph: Any) -> bool:
    """Return whether NetworkX is over before the graph would be converted."""
    return _count_nodes_and_edges(graph) < _min_size(name)


def _count_nodes_and_edges(graph: Any) -> int:
    """Return the number of nodes and edges together."""
    return len(graph) + int(graph.number_of_edges())


def _min_size(name: str) -> int:
    """Return the nodes and edges together from which on converting a graph pays."""
    if name in _ALL_SOURCES or name.startswith("all_pairs"):
        return MIN_SIZE_FOR_ALL_SOURCES
    return MIN_SIZE_FOR_ONE_SEARCH
