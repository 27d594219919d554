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
# functions that search an undirected edge as one edge of both directions
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
# Values of an argument ``method``. The first two are served of one function alone.
_METHODS = (None, "unweighted", "dijkstra", "bellman-ford")
# Key under which ``_read_once`` keeps weights in NetworkX's cache of a graph. NetworkX empties the
# cache when the graph changes.
_MEMORY = "kepler_traverse"


def can_run(
    functions: dict[str, Callable[..., Any]],
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> bool | str:
    """Return True, or the reason why the backend cannot answer a call as NetworkX does.

    ``name`` is NetworkX's function, called with ``args`` and ``kwargs``. ``functions`` are the
    backend's by name, whose signatures are NetworkX's.
    """
    # A call that does not fit the signature is left to NetworkX, which raises its own error.
    try:
        bound = inspect.signature(functions[name]).bind(*args, **kwargs)
    except TypeError as error:
        return f"{error}"
    bound.apply_defaults()
    arguments = bound.arguments
    # the first reason there is: each function returns "" for none
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
    """Warn a user that a call is left to NetworkX, if it could have been much faster here: the user
    has set NetworkX's ``backend_priority`` to this backend, and the graph is large.

    ``name``, ``args`` and ``kwargs`` are the function and the arguments of the call. ``problem`` is
    the result of ``can_run`` for the call: a reason, or True for a call that is answered, of which
    nothing is said. A function and a reason are reported once per process.
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
    """Name an argument by whose value NetworkX returns more than distances give, or uses results
    that the caller hands over. Return ``""`` if there is none.

    ``name`` is the function that is called, and ``arguments`` has the value of each of its
    parameters, here and below.
    """
    for argument, harmless in _HANDED_OVER.items():
        is_served = argument == "sources" and name in _WITH_SOURCES
        if argument not in arguments or is_served:
            continue
        if not any(arguments[argument] is value for value in harmless):
            return f"{argument} is given"
    return ""


def _limits_problem(name: str, arguments: dict[str, Any]) -> str:
    """Say which limit of a search is no number, or too large. Return ``""`` if none is.

    ``name`` is the function that is called, and ``arguments`` has the values of its parameters.
    """
    limits = ["cutoff", "depth_limit"]
    if name == "descendants_at_distance":  # in other functions it names an edge attribute
        limits.append("distance")
    for argument in limits:
        if argument in arguments:
            problem = _limit_problem(argument, arguments[argument])
            if problem:
                return problem
    return ""


def _method_problem(name: str, arguments: dict[str, Any]) -> str:
    """Name the ``method`` of a call that this backend does not have. Return ``""`` if it has it, or
    if the function has no such parameter.

    ``name`` is the function that is called, and ``arguments`` has the values of its parameters.
    """
    methods = _METHODS if name == "average_shortest_path_length" else _METHODS[2:]
    if "method" in arguments and arguments["method"] not in methods:
        return f"method {arguments['method']!r} is not served"
    return ""


def _graph_problem(name: str, arguments: dict[str, Any]) -> str:
    """Say why this backend's result for a graph and its weights would differ from NetworkX's.
    Return ``""`` if it would not.

    ``name`` is the function that is called, and ``arguments`` has the values of its parameters.
    """
    graph = arguments["G"]
    _forget_view(graph)  # first, as the checks below keep what they read in the cache
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
    """Empty NetworkX's cache of ``graph`` if it is a view of another graph.

    When a graph changes NetworkX empties its cache, but not those of its views, so that these may
    hold a conversion of the graph as it was.
    """
    if isinstance(graph, KeplerGraph) or not is_view(graph):
        return
    if graph.__networkx_cache__ is not None:
        graph.__networkx_cache__ = None


def _may_be_tree(graph: Any, name: str, arguments: dict[str, Any]) -> bool:
    """Return whether NetworkX may have a faster method for a call, since the graph has as many
    edges as a tree. NetworkX has one for ``center`` and ``barycenter`` of trees, without weights.
    ``name`` is the function that is called, and ``arguments`` has the values of its parameters.
    """
    if name not in ("center", "barycenter"):
        return False
    if arguments["weight"] is not None or graph.is_directed():
        return False
    return bool(graph.number_of_edges() == len(graph) - 1)


def _weight_of_call(name: str, arguments: dict[str, Any]) -> Any:
    """Return the edge attribute that a call of the function ``name`` takes weights from, None for
    hops.

    It is ``weight`` of ``arguments``, or ``distance`` for two centralities. A method "unweighted"
    counts hops, whatever it is.
    """
    if arguments.get("method") == "unweighted":
        return None
    if name in ("closeness_centrality", "harmonic_centrality"):
        return arguments.get("distance")
    return arguments.get("weight")


def _direction_problem(graph: Any, name: str, weight: Any) -> str:
    """Say that the two directions of an edge differ, in an undirected view that function ``name``
    would search with one edge for both. Return ``""`` if they do not, or if it searches each.

    ``weight`` is the edge attribute of the call, None for hops.
    """
    if name not in _OF_BOTH_DIRECTIONS or graph.is_directed():
        return ""
    if not isinstance(graph, KeplerGraph):
        if not may_be_uneven(graph):
            return ""
        # an edge that lacks the attribute has a weight of 1 to NetworkX
        graph = KeplerGraph(graph, None if weight is None else {weight: 1})
    if graph.is_even(weight):
        return ""
    return UNEVEN


def _limit_problem(argument: str, value: Any) -> str:
    """Say why the ``value`` of ``argument`` is no limit of a search that this backend serves.
    Return ``""`` if it is one.
    """
    if value is None or type(value) in (int, bool):
        # smaller integers are exact as float64
        if value is None or abs(value) < 2**53:
            return ""
        return f"{argument} is beyond 2^53"
    if type(value) is float:
        if math.isnan(value):
            return f"{argument} is not a number"
        return ""
    return f"{argument} is of type {type(value).__name__}"


def _load_problem(graph: Any, name: str, arguments: dict[str, Any]) -> str:
    """Say why a call of betweenness or load is left to NetworkX, for other reasons than its
    weights. Return ``""`` if it is not.

    The reasons are edges of multigraphs, of ``load_centrality`` weights, unusual cutoffs and nodes
    that cannot be sorted, and of functions of subsets sources that are no distinct nodes.
    """
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
            _ = set(arguments["targets"])  # raises TypeError if a target has no hash
            if len(set(sources)) < len(sources) or not all(node in graph for node in sources):
                return "a source is given twice, or is not in the graph"
        except TypeError:
            return "sources or targets are not lists of nodes"
    return ""


def _can_be_sorted(graph: Any) -> bool:
    """Return whether Python can sort the nodes of a graph."""
    try:
        sorted(graph)
    except TypeError:
        return False
    return True


def _weight_problem(graph: Any, name: str, weight: Any) -> str:
    """Say why a call of the function ``name`` with the edge attribute ``weight`` is left to
    NetworkX. Return ``""`` if it is not.
    """
    # Whether the attribute can be read at all.
    if callable(weight):
        return "weights are a function"
    try:
        hash(weight)
    except TypeError:
        return "weight is not the name of an edge attribute"
    if isinstance(graph, KeplerGraph) and not graph.has_weights(weight):
        return f"the graph was converted without edge attribute {weight!r}; give it as edge_attrs"

    # ``problem`` says why a weight cannot be used at all, such as one that is not finite.
    weights = _read_once(graph, weight)
    if weights.problem:
        return weights.problem
    # Whether the function gives NetworkX's result with these weights.
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
    """Name an edge by whose weight NetworkX's numbers of shortest paths depend on the order of its
    search. Return ``""`` if there is none. ``weights`` are those of at least one edge.
    """
    lightest = weights.values.min()
    heaviest = weights.values.max()
    if not lightest > 0:
        edge = _describe_edge(graph, int(weights.values.argmin()))
        return (
            f"{edge} has the weight {lightest}, and paths are counted where all weights are above 0"
        )
    # A float sum along a path is at most ``heaviest * len(graph)``. A weight below the distance of
    # neighboring floats there may add nothing to it.
    if weights.kind != "int" and lightest < np.spacing(heaviest * len(graph)):
        edge = _describe_edge(graph, int(weights.values.argmin()))
        return (
            f"{edge} has the weight {lightest}, which is too small "
            f"beside {heaviest} for sums of floats"
        )
    return ""


def _describe_edge(graph: Any, position: int) -> str:
    """Describe an edge by its ends, for an error; ``position`` is that of its weight in the array
    that ``read_weights`` makes of the graph.
    """
    source, target = map(reprlib.repr, _edge_at(graph, position))
    return f"the edge from {source} to {target}"


def _edge_at(graph: Any, position: int) -> tuple[Any, Any]:
    """Return the ends of an edge, two nodes; ``position`` is that of its weight in the array that
    ``read_weights`` makes of the graph. IndexError: there are fewer edges.
    """
    if isinstance(graph, KeplerGraph):
        offsets, targets = graph.outgoing
        # the last vertex whose edges begin at the position or before
        src = int(np.searchsorted(offsets, position, side="right")) - 1
        return graph.nodes[src], graph.nodes[int(targets[position])]
    for u, neighbors in graph._adj.items():
        ends = list(neighbors)
        if position < len(ends):
            return u, ends[position]
        position -= len(ends)
    raise IndexError(position)


def _read_once(graph: Any, weight: Any) -> Weights:
    """Return the weights of a graph by the edge attribute ``weight``.

    Those of a graph of NetworkX are read anew in each call, unless NetworkX caches conversions of
    graphs: then they are read once and kept in the same cache.
    """
    if isinstance(graph, KeplerGraph):
        return graph.weights(weight)
    known: dict[Any, Weights] = {}
    cache = getattr(graph, "__networkx_cache__", None)
    if nx.config.cache_converted_graphs and cache is not None:
        known = cache.setdefault(_MEMORY, {})
    if weight not in known:  # 1 is the weight of an edge that lacks the attribute
        known[weight] = read_weights(graph._adj, weight, 1, graph.is_multigraph())
    return known[weight]


def should_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """Return True, or the reason why NetworkX itself is faster: converting the graph takes longer
    than NetworkX's search.

    ``name`` is NetworkX's function, called with ``args`` and ``kwargs``.
    """
    # Source and target are read for functions of one pair alone, which have them in these places.
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
    """Return whether an earlier call has converted the graph, and NetworkX has kept the result."""
    cache = getattr(graph, "__networkx_cache__", None) or {}
    conversions = cache.get("backends", {}).get("kepler", {})
    return any(isinstance(converted, KeplerGraph) for converted in conversions.values())


def _is_small(name: str, graph: Any) -> bool:
    """Return whether NetworkX's own function ``name`` would end before the graph is converted."""
    return _count_nodes_and_edges(graph) < _min_size(name)


def _count_nodes_and_edges(graph: Any) -> int:
    """Return the number of nodes and edges together."""
    return len(graph) + int(graph.number_of_edges())


def _min_size(name: str) -> int:
    """Return the number of nodes and edges together from which on converting a graph pays for one
    call of the function ``name``.
    """
    if name in _ALL_SOURCES or name.startswith("all_pairs"):
        return MIN_SIZE_FOR_ALL_SOURCES
    return MIN_SIZE_FOR_ONE_SEARCH
