"""NetworkX's functions that search from one source, from all pairs, or from several sources
together.

Functions with the name of a NetworkX function take its parameters by position and return what it
returns; names and defaults are added where the backend lists them. ``weight`` is the name of an
edge attribute, None for hops. NodeNotFound is raised for a node that is not in the graph, and
NetworkXNoPath if no path leads to the target. ``G._adj`` maps each node to its vertex number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from operator import methodcaller
from typing import Any

import networkx as nx
import numpy as np
from networkx.algorithms.shortest_paths.generic import _build_paths_from_predecessors

from ..cpu import threads
from . import kernels
from .graph import KeplerGraph, find_vertices
from .kernels import NONE
from .weights import to_numbers

Weight = Hashable | None  # name of the edge attribute that holds weights; None counts hops
_NO_LEVEL = np.iinfo(np.int32).max  # the ``max_level`` of a search without a limit
_GROUP_BYTES = 1 << 26  # of the results of the searches from all sources that are made ahead
_SEARCHES_PER_THREAD = 16  # that are made ahead


class Paths(Mapping[Any, list[Any]]):
    """A path for each node that a search reached, computed when it is read: a dictionary of lists
    would hold every path.

    It is equal to NetworkX's dictionary of lists; ``dict`` makes one. Keys are nodes, and a value
    is the list of the nodes of a path.

    Parameters
    ----------
    graph : KeplerGraph
    order : integer array
        Vertex numbers of the nodes that are reached, in the order of NetworkX's dictionary.
    walk : callable
        ``walk(vertex)`` returns a new list: the vertex numbers of the path from the source to a
        vertex of ``order``, both included.
    reverse : bool
        Whether paths lead from their end to the source, after a search against the edges.
    """

    def __init__(
        self,
        graph: KeplerGraph,
        order: np.ndarray,
        walk: Callable[[int], list[int]],
        reverse: bool = False,
    ):
        self._graph = graph
        self._order = order
        self._walk = walk
        self._reverse = reverse
        self._reached = np.zeros(len(graph), bool)  # by vertex, whether it is in ``order``
        self._reached[order] = True

    def __getitem__(self, node: Any) -> list[Any]:
        """Return the path of a node, as nodes. KeyError: the search did not reach it."""
        vertex = self._graph._adj[node]
        if not self._reached[vertex]:
            raise KeyError(node)
        path = self._walk(vertex)
        if self._reverse:
            path.reverse()
        if self._graph.numbered:  # nodes are their own vertex numbers
            return path
        return list(map(self._graph.nodes.__getitem__, path))

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the nodes that are reached, in the order of NetworkX's dictionary."""
        return iter(self._graph.names(self._order))

    def __len__(self) -> int:
        """Return the number of nodes that are reached."""
        return int(self._order.size)

    def __repr__(self) -> str:
        """Describe the mapping as the dictionary that NetworkX returns, with all paths."""
        return repr(dict(self))


def walk_to_parents(parent: np.ndarray) -> Callable[[int], list[int]]:
    """Return a function that returns the path from the source to a vertex, as ``Paths`` calls it.

    ``parent`` has, by vertex, the previous vertex on its path, -1 at the source.
    """
    listed_parents: list[int] = []  # ``parent`` as a list, empty until the first path is read

    def walk(vertex: int) -> list[int]:
        """Return the vertex numbers of the path from the source to ``vertex``."""
        # Python reads a list faster than an array. The list takes as long as many paths, so it is
        # made when a path is asked for, if ever.
        if not listed_parents:
            listed_parents.extend(parent.tolist())
        path = [vertex]
        while (vertex := listed_parents[vertex]) != NONE:
            path.append(vertex)
        path.reverse()
        return path

    return walk


@dataclass(frozen=True, eq=False)
class Search:
    """The result of a search from one source or several, from which NetworkX's dictionaries are
    made.
    """

    graph: KeplerGraph  # the graph that was searched, which has the names of its nodes
    sources: np.ndarray  # int64: vertex numbers
    # integer array: the vertices that are reached, in the order of NetworkX's dictionary
    order: np.ndarray
    distance: np.ndarray  # of shape (n_vertices,): hops, or int64 or float64 sums of weights
    # uint8 array of shape (n_vertices,): 1 for a distance that is a float to Python, where integers
    # and floats are mixed; else empty
    floats: np.ndarray
    # of shape (n_vertices,): the previous vertex on the path, -1 for a source and where unreached
    parent: np.ndarray

    def distances(self) -> dict[Any, Any]:
        """Return NetworkX's dictionary of distances by node. The distance of a source is the
        integer 0, also if other distances are floats.
        """
        lengths = to_numbers(self.distance, self.floats, self.order)
        by_node = dict(zip(self.graph.names(self.order), lengths, strict=True))
        # Here all distances are floats, that of the source, too. Where integers and floats are
        # mixed, ``floats`` has 0 for a source, and ``to_numbers`` has made an integer of it.
        if self.distance.dtype.kind == "f" and not self.floats.size:
            by_node.update((node, 0) for node in self.graph.names(self.sources) if node in by_node)
        return by_node

    def paths(self, reverse: bool = False) -> Paths:
        """Return NetworkX's dictionary of paths by node, each computed when it is read. ``reverse``
        is for a search against the edges: paths then lead from their end to the source.
        """
        return Paths(self.graph, self.order, walk_to_parents(self.parent), reverse)


@dataclass(frozen=True, eq=False)
class BellmanFord(Search):
    """A search whose vertices have lists of parents: all previous vertices on shortest paths.

    Those of ``order[i]`` are ``parent[starts[i] : starts[i + 1]]``. Unlike in ``Search``, an index
    of ``parent`` is not a vertex number.
    """

    starts: np.ndarray  # int64 array of shape (order.size + 1,)

    def paths(self, reverse: bool = False) -> Paths:
        """Return NetworkX's dictionary of paths by node, each computed when it is read, by the
        first parent of each vertex. ``reverse`` is that of ``Search.paths``.
        """
        source = int(self.sources[0])
        n = len(self.graph)
        place = np.full(n, NONE, np.int64)  # the position of each vertex in ``order``
        place[self.order] = np.arange(self.order.size)
        starts = self.starts.tolist()
        parents = self.parent.tolist()
        places = place.tolist()

        def walk(vertex: int) -> list[int]:
            """Return the vertex numbers of the path from the source to ``vertex``."""
            path = [vertex]
            last = vertex
            # ``last`` is the vertex that the walk back has come to. A path of more than n vertices
            # has a vertex twice: first parents lead in a circle.
            while last != source and len(path) <= n:
                last = parents[starts[places[last]]]
                path.append(last)
            if len(path) > n:  # a cycle of weight 0: NetworkX leaves it by another predecessor
                lists = {
                    v: parents[starts[i] : starts[i + 1]] for i, v in enumerate(self.order.tolist())
                }
                return next(_build_paths_from_predecessors({source}, vertex, lists))
            path.reverse()
            return path

        return Paths(self.graph, self.order, walk, reverse)


def max_level(cutoff: float | None) -> int:
    """Return the last level, in hops, of a search whose NetworkX function has a ``cutoff``.

    NetworkX expands every level below the cutoff, which may be a fraction or negative. None stands
    for no limit.
    """
    if cutoff is None or cutoff >= _NO_LEVEL:
        return _NO_LEVEL
    return math.ceil(cutoff) if cutoff > 0 else 0


def _missing(text: str) -> Callable[[], Exception]:
    """Return a function that makes NetworkX's error, with this text, for a node that is not in the
    graph.
    """
    return lambda: nx.NodeNotFound(text)


def _both(search: Search) -> tuple[dict[Any, Any], Paths]:
    """Return NetworkX's dictionaries of the distances and of the paths of ``search``, by node."""
    return search.distances(), search.paths()


def search_levels(
    graph: KeplerGraph, source: int, cutoff: float | None = None, incoming: bool = False
) -> Search:
    """Search breadth-first from the vertex number ``source``, along edges or, with ``incoming``,
    against them. ``cutoff`` is NetworkX's limit of hops, None for none.
    """
    edges = graph.incoming if incoming else graph.outgoing
    sources = np.array([source], np.int64)
    order, parent, level = kernels.bfs(*edges, sources, max_level(cutoff))
    return Search(graph, sources, order, level, np.zeros(0, np.uint8), parent)


def search_weighted(
    graph: KeplerGraph,
    sources: np.ndarray,
    weight: Weight,
    cutoff: float | None = None,
    target: int = NONE,
    incoming: bool = False,
) -> Search:
    """Search by Dijkstra's algorithm from all ``sources`` together, along edges or, with
    ``incoming``, against them.

    ``sources`` are vertex numbers. Distances above ``cutoff`` are left out. The search ends when
    the distance of the vertex number ``target`` is final; -1 stands for no target. ValueError: a
    weight is negative.
    """
    edges = _weighted_edges(graph, weight, incoming)
    limit = find_limit(cutoff, edges.weights.dtype)
    status, order, distance, parent, floats, *_ = kernels.dijkstra(
        edges, sources, limit, target, False
    )
    _check(status)
    return Search(graph, sources, order, distance, floats, parent)


def search_dijkstra(
    graph: KeplerGraph,
    source: int,
    cutoff: float | None = None,
    weight: Weight = "weight",
    incoming: bool = False,
) -> Search:
    """Search by Dijkstra's algorithm from the vertex number ``source``, along edges or, with
    ``incoming``, against them. Distances above ``cutoff``, None for no limit, are left out.
    ``weight`` is an edge attribute; with None each edge counts 1.
    """
    return search_weighted(graph, np.array([source]), weight, cutoff, incoming=incoming)


def search_bellman_ford(
    graph: KeplerGraph, source: int, weight: Weight, heuristic: bool = True, incoming: bool = False
) -> BellmanFord:
    """Search by the Bellman-Ford algorithm from the vertex number ``source``, along edges or, with
    ``incoming``, against them. ``weight`` is an edge attribute; with None each edge counts 1.
    ``heuristic`` looks for a negative cycle at each improvement, which notices it earlier.
    NetworkXUnbounded: there is a negative cycle.
    """
    edges = _weighted_edges(graph, weight, incoming)
    status, distance, floats, discovered, starts, parents = kernels.bellman_ford(
        edges, source, heuristic
    )
    _check(status)
    return BellmanFord(graph, np.array([source]), discovered, distance, floats, parents, starts)


def _weighted_edges(
    graph: KeplerGraph, weight: Weight, incoming: bool = False
) -> kernels.WeightedEdges:
    """Return the edges that leave each vertex, or with ``incoming`` those that lead to it, with the
    weights of the edge attribute ``weight``, 1 if it is None.
    """
    adjacency = graph.incoming if incoming else graph.outgoing
    return kernels.WeightedEdges.of(adjacency, graph.weights(weight, incoming))


def find_limit(cutoff: float | None, dtype: np.dtype) -> Any:
    """Return the largest distance of type ``dtype``, int64 or float64, that is not above a cutoff;
    the largest of all if the cutoff is None.
    """
    if dtype.kind == "f":
        return dtype.type(np.inf if cutoff is None else cutoff)
    largest = np.iinfo(dtype).max
    if cutoff is None or cutoff >= largest:
        return largest
    return dtype.type(-largest if cutoff < -largest else math.floor(cutoff))


def _check(status: int) -> None:
    """Raise NetworkX's error for the status that a kernel returns, unless it is DONE."""
    if status == kernels.CONTRADICTION:
        raise ValueError("Contradictory paths found:", "negative weights?")
    if status == kernels.NEGATIVE_CYCLE:
        raise nx.NetworkXUnbounded("Negative cycle detected.")


def _from_each(graph: KeplerGraph, search: Callable[[int], Search]) -> Iterator[tuple[Any, Search]]:
    """Yield each node and the result of ``search(vertex)`` for its vertex number.

    Threads search a few sources ahead. A result is let go once it has been yielded, since all of
    them may not fit in memory.
    """
    n = len(graph)
    # How many results fit in memory, with up to 32 bytes per vertex, but one per thread at least.
    n_in_memory = max(_GROUP_BYTES // (32 * max(n, 1)), threads.count())
    n_ahead = min(threads.count() * _SEARCHES_PER_THREAD, n_in_memory)
    for begin in range(0, n, n_ahead):
        results: list[Any] = [None] * min(n_ahead, n - begin)

        # As defaults, ``begin`` and ``results`` are those of this group of sources: as variables
        # of the loop they would change with it.
        def search_one(
            i: int, _thread: int, begin: int = begin, results: list[Any] = results
        ) -> None:
            """Write the result of source ``i`` of the group, which is vertex ``begin + i``. The
            number of the thread is ignored: each search has memory of its own.
            """
            results[i] = search(begin + i)

        threads.for_each(search_one, len(results))
        for i in range(len(results)):
            yield graph.nodes[begin + i], results[i]
            results[i] = None


# Functions that search between nodes


def bidirectional_shortest_path(G: KeplerGraph, source: Any, target: Any) -> list[Any]:
    """Return one path of fewest hops from ``source`` to ``target``, as nodes."""
    begin = G.to_number(source, _missing(f"Source {source} is not in G"))
    end = G.to_number(target, _missing(f"Target {target} is not in G"))
    meeting, parents, children = kernels.bidirectional_bfs(*G.outgoing, *G.incoming, begin, end)
    if meeting == NONE:
        raise nx.NetworkXNoPath(f"No path between {source} and {target}.")
    return _join_halves(G, int(meeting), parents, children)


def _hops(G: KeplerGraph, source: Any, target: Any) -> int | float:
    """Return the smallest number of hops from ``source`` to ``target``, by hub labels if the graph
    has them, else by a search.
    """
    begin = G.to_number(source, _missing(f"Source {source} is not in G"))
    end = G.to_number(target, _missing(f"Target {target} is not in G"))
    by_labels = G.distance_by_labels(None, begin, end)
    if by_labels == math.inf:
        raise nx.NetworkXNoPath(f"No path between {source} and {target}.")
    if by_labels is not None:
        return by_labels
    return len(bidirectional_shortest_path(G, source, target)) - 1


def _join_halves(
    graph: KeplerGraph, meeting: int, parents: np.ndarray, children: np.ndarray
) -> list[Any]:
    """Return the path that searches from both ends have found, as nodes.

    ``meeting`` is a vertex on it. From there ``parents`` leads back to the source and ``children``
    on to the target: each has, by vertex, the next vertex that way, -1 at the end.
    """
    to_meeting = walk_to_parents(parents)(meeting)
    from_target = walk_to_parents(children)(meeting)  # begins at the target
    path = to_meeting + from_target[-2::-1]  # without the vertex that both halves have
    return [graph.nodes[vertex] for vertex in path]


def predecessor(
    G: KeplerGraph,
    source: Any,
    target: Any = None,
    cutoff: float | None = None,
    return_seen: bool | None = None,
) -> Any:
    """Return all predecessors on paths of fewest hops from ``source``: a dictionary of lists by
    node, or the list of ``target``, empty if it is not reached. With ``return_seen`` return the
    hops, too, by node or of the target, which has -1 if it is not reached. ``cutoff`` is the
    largest number of hops, None or 0 for no limit; other cutoffs below 1 count as 1.
    """
    vertex = G.to_number(source, _missing(f"Source {source} not in G"))
    # NetworkX looks at the cutoff after it has expanded a level, so that it expands one at least,
    # and takes a cutoff of 0 for none.
    search = search_levels(G, vertex, max(cutoff, 1) if cutoff else None)
    # ``flat`` has the predecessors of all vertices, and ``starts`` where those of each one begin.
    starts, flat = kernels.bfs_predecessors(*G.outgoing, search.order, search.distance)
    lists = _lists(G, search.order, starts, flat)
    if target is not None:
        of_target = lists.get(target, [])
        if return_seen:
            return (of_target, search.distances().get(target, -1))
        return of_target
    if return_seen:
        return (lists, search.distances())
    return lists


def _lists(
    graph: KeplerGraph, vertices: np.ndarray, starts: np.ndarray, flat: np.ndarray
) -> dict[Any, list[Any]]:
    """Return a dictionary that maps each node of ``vertices`` to a list of nodes.

    All arguments hold vertex numbers or positions: the list of ``vertices[i]`` is
    ``flat[starts[i] : starts[i + 1]]``.
    """
    names = graph.names(flat)
    bounds = starts.tolist()
    return {
        node: names[begin:end]
        for node, begin, end in zip(graph.names(vertices), bounds[:-1], bounds[1:], strict=True)
    }


def _find_sources(graph: KeplerGraph, sources: Any) -> np.ndarray:
    """Return the vertex numbers of ``sources``, a collection of nodes.

    Raise NetworkX's error if it is empty, ValueError, or if a node is not in the graph,
    NodeNotFound.
    """
    if not sources:
        raise ValueError("sources must not be empty")
    return find_vertices(
        graph, sources, lambda node: nx.NodeNotFound(f"Node {node} not found in graph")
    )


def _from_nearest(graph: KeplerGraph, sources: Any, cutoff: float | None, weight: Weight) -> Search:
    """Search from several nodes together, so that each vertex has the distance from its nearest
    source. Distances above ``cutoff``, None for no limit, are left out. ``weight`` is an edge
    attribute; with None each edge counts 1.
    """
    return search_weighted(graph, _find_sources(graph, sources), weight, cutoff)


def multi_source_dijkstra(
    G: KeplerGraph, sources: Any, target: Any, cutoff: float | None, weight: Weight
) -> tuple[Any, Any]:
    """Return two dictionaries by node, of distances and of paths from the nearest source. With a
    ``target`` return its distance and its path. Distances above ``cutoff``, None for no limit, are
    left out. ``weight`` is an edge attribute; with None each edge counts 1.
    """
    vertices = _find_sources(G, sources)
    if target is None:
        return _both(search_weighted(G, vertices, weight, cutoff))
    if target in sources:
        return 0, [target]
    # For a target that is not in the graph NetworkX searches the whole graph, and then finds no
    # path; so does a search without a target (NONE).
    end = G._adj.get(target, NONE)
    search = search_weighted(G, vertices, weight, cutoff, end)
    return _length_of_last(search, end, f"No path to {target}."), search.paths()[target]


def _length_of_last(search: Search, end: int, error: str) -> Any:
    """Return the distance of the vertex number ``end``, which a search to this target settled last.

    If the search did not reach it, or it is -1, raise NetworkXNoPath with the text ``error``.
    """
    if end == NONE or not search.order.size or search.order[-1] != end:
        raise nx.NetworkXNoPath(error)
    return to_numbers(search.distance, search.floats, search.order[-1:])[0]


def dijkstra_path_length(G: KeplerGraph, source: Any, target: Any, weight: Weight) -> Any:
    """Return the distance from ``source`` to ``target``, by hub labels if the graph has them, else
    by a search. ``weight`` is an edge attribute; with None each edge counts 1.
    """
    begin = G.to_number(source, _missing(f"Node {source} not found in graph"))
    if source == target:
        return 0
    end = G._adj.get(target, NONE)
    by_labels = None if end == NONE else G.distance_by_labels(weight, begin, end)
    if by_labels == math.inf:
        raise nx.NetworkXNoPath(f"Node {target} not reachable from {source}")
    if by_labels is not None:
        return by_labels
    search = search_weighted(G, np.array([begin]), weight, target=end)
    return _length_of_last(search, end, f"Node {target} not reachable from {source}")


def dijkstra_predecessor_and_distance(
    G: KeplerGraph, source: Any, cutoff: float | None, weight: Weight
) -> tuple[dict[Any, list[Any]], dict[Any, Any]]:
    """Return two dictionaries by node: all predecessors on shortest paths from ``source``, and
    distances. Distances above ``cutoff``, None for no limit, are left out. ``weight`` is an edge
    attribute; with None each edge counts 1.
    """
    vertex = G.to_number(source, _missing(f"Node {source} is not found in the graph"))
    edges = _weighted_edges(G, weight)
    sources = np.array([vertex])
    limit = find_limit(cutoff, edges.weights.dtype)
    # The search ends at no target (``NONE``), and collects all predecessors (True): ``flat`` has
    # those of the vertices in ``discovered``, and ``starts`` where each list begins.
    status, order, distance, parent, floats, discovered, starts, flat = kernels.dijkstra(
        edges, sources, limit, NONE, True
    )
    _check(status)
    search = Search(G, sources, order, distance, floats, parent)
    return _lists(G, discovered, starts, flat), search.distances()


def bidirectional_dijkstra(
    G: KeplerGraph, source: Any, target: Any, weight: Weight
) -> tuple[Any, list[Any]]:
    """Return the distance from ``source`` to ``target``, and a shortest path, as nodes. ``weight``
    is an edge attribute; with None each edge counts 1. NetworkXNoPath: there is no path.
    """
    begin = G.to_number(source, _missing(f"Source {source} is not in G"))
    end = G.to_number(target, _missing(f"Target {target} is not in G"))
    if begin == end:
        return 0, [source]
    outgoing = _weighted_edges(G, weight)
    incoming = _weighted_edges(G, weight, incoming=True)
    status, length, is_float, meeting, parents, children = kernels.bidirectional_dijkstra(
        outgoing, incoming, begin, end
    )
    if status == kernels.CONTRADICTION:
        raise ValueError("Contradictory paths found: negative weights?")
    if status == kernels.NO_PATH:
        raise nx.NetworkXNoPath(f"No path between {source} and {target}.")
    path = _join_halves(G, int(meeting), parents, children)
    # Mixed weights are summed as floats: a path of integers has an integer as its length.
    if G.weights(weight).kind == "mixed" and not is_float:
        return int(length), path
    return np.asarray(length).item(), path  # a number of Python, not of NumPy


def voronoi_cells(G: KeplerGraph, center_nodes: Any, weight: Weight) -> dict[Any, set[Any]]:
    """Return a dictionary that maps each center to the set of the nodes nearest to it. Nodes that
    no center reaches are under the key "unreachable", if there are some. ``center_nodes`` are
    nodes, at least one. ``weight`` is an edge attribute; with None each edge counts 1.
    """
    search = _from_nearest(G, center_nodes, None, weight)
    # the center that each vertex belongs to, -1 for a vertex that none reaches
    owner = np.full(len(G), NONE, np.int64)
    owner[search.sources] = search.sources
    kernels.spread_owners(search.order, search.parent, owner)

    # Sorted by their centers, the vertices of a cell follow each other. A cell begins where the
    # center changes.
    by_owner = search.order[np.argsort(owner[search.order], kind="stable")]
    begins = np.flatnonzero(np.diff(owner[by_owner], prepend=NONE))
    members = {}
    for cell in np.split(by_owner, begins[1:]):
        if cell.size:
            members[int(owner[cell[0]])] = set(G.names(cell))
    # NetworkX's order of keys: that in which the centers are given
    cells: dict[Any, set[Any]] = {
        G.nodes[vertex]: members[vertex] for vertex in search.sources.tolist()
    }
    unreachable = np.flatnonzero(owner == NONE)
    if unreachable.size:
        cells["unreachable"] = set(G.names(unreachable))
    return cells


def bellman_ford_predecessor_and_distance(
    G: KeplerGraph, source: Any, _target: Any, weight: Weight, heuristic: bool = False
) -> tuple[dict[Any, list[Any]], dict[Any, Any]]:
    """Return two dictionaries by node: all predecessors on shortest paths from ``source``, and
    distances. Weights may be negative. ``_target`` is not read, as NetworkX's result does not
    depend on it.

    ``weight`` is an edge attribute; with None each edge counts 1. NetworkXUnbounded: there is a
    negative cycle. ``heuristic`` looks for it at each improvement.
    """
    vertex = G.to_number(source, _missing(f"Node {source} is not found in the graph"))
    # NetworkX refuses a loop of negative weight anywhere in the graph, before it searches.
    is_loop = np.repeat(np.arange(len(G)), np.diff(G.outgoing.offsets)) == G.outgoing.targets
    if (G.weights(weight).values[is_loop] < 0).any():
        raise nx.NetworkXUnbounded("Negative cycle detected.")
    if len(G) == 1:  # as NetworkX, which does not search then
        return {source: []}, {source: 0}
    search = search_bellman_ford(G, vertex, weight, bool(heuristic))
    return _lists(G, search.order, search.starts, search.parent), search.distances()


def single_source_bellman_ford(
    G: KeplerGraph, source: Any, target: Any, weight: Weight
) -> tuple[Any, Any]:
    """Return two dictionaries by node, of distances and of paths from ``source``. With a ``target``
    return its distance and its path. ``weight`` is an edge attribute; with None each edge counts 1.
    Weights may be negative; NetworkXUnbounded: there is a negative cycle.
    """
    # NetworkX has one message where the source is the target, and another one elsewhere.
    if source == target:
        G.to_number(source, _missing(f"Node {source} is not found in the graph"))
        return 0, [source]
    vertex = G.to_number(source, _missing(f"Source {source} not in G"))
    lengths, paths = _both(search_bellman_ford(G, vertex, weight))
    if target is None:
        return lengths, paths
    if target not in lengths:
        raise nx.NetworkXNoPath(f"Target {target} cannot be reached from given sources")
    return lengths[target], paths[target]


def bellman_ford_path_length(G: KeplerGraph, source: Any, target: Any, weight: Weight) -> Any:
    """Return the distance from ``source`` to ``target``. ``weight`` is an edge attribute; with None
    each edge counts 1. Weights may be negative; NetworkXUnbounded: there is a negative cycle.
    """
    # NetworkX has one message where the source is the target, and another one elsewhere.
    if source == target:
        G.to_number(source, _missing(f"Node {source} not found in graph"))
        return 0
    vertex = G.to_number(source, _missing(f"Source {source} not in G"))
    lengths = search_bellman_ford(G, vertex, weight).distances()
    if target not in lengths:
        raise nx.NetworkXNoPath(f"node {target} not reachable from {source}")
    return lengths[target]


def has_path(G: KeplerGraph, source: Any, target: Any) -> bool:
    """Return whether a path leads from the source to the target. NodeNotFound: one of them is not
    in the graph.
    """
    try:
        bidirectional_shortest_path(G, source, target)
    except nx.NetworkXNoPath:
        return False
    return True


def _dijkstra_path(G: KeplerGraph, source: Any, target: Any, weight: Weight) -> list[Any]:
    """Return a shortest path from ``source`` to ``target``, as nodes, by searches from both that
    meet. ``weight`` is an edge attribute; with None each edge counts 1.
    """
    _, path = bidirectional_dijkstra(G, source, target, weight)
    return path


def bellman_ford_path(G: KeplerGraph, source: Any, target: Any, weight: Weight) -> Any:
    """Return a shortest path from ``source`` to ``target``, as nodes. ``weight`` is an edge
    attribute; with None each edge counts 1. Weights may be negative.
    """
    _, path = single_source_bellman_ford(G, source, target, weight)
    return path


# by NetworkX's ``method``: a function (graph, vertex, weight, incoming) that searches from a vertex
_SEARCHES: dict[str, Callable[..., Search]] = {
    "unweighted": lambda graph, vertex, _, incoming: search_levels(
        graph, vertex, incoming=incoming
    ),
    "dijkstra": lambda graph, vertex, weight, incoming: search_dijkstra(
        graph, vertex, None, weight, incoming
    ),
    "bellman-ford": lambda graph, vertex, weight, incoming: search_bellman_ford(
        graph, vertex, weight, incoming=incoming
    ),
}
# by NetworkX's ``method``: functions (graph, source, target, weight) of a path and of a distance
# between two nodes
_BETWEEN_TWO: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "unweighted": (
        lambda G, source, target, _: bidirectional_shortest_path(G, source, target),
        lambda G, source, target, _: _hops(G, source, target),
    ),
    "dijkstra": (_dijkstra_path, dijkstra_path_length),
    "bellman-ford": (bellman_ford_path, bellman_ford_path_length),
}


def _shortest(
    is_length: bool, graph: KeplerGraph, source: Any, target: Any, weight: Weight, method: str
) -> Any:
    """Return NetworkX's ``shortest_path``, or ``shortest_path_length`` if ``is_length``.

    The result depends on which of ``source`` and ``target`` are None: one path or distance if none
    is; a dictionary by node if one is, in a search against the edges if that is ``source``; an
    iterator of each node and its dictionary if both are. ``method`` is "dijkstra" or
    "bellman-ford", which matters only with a ``weight``.
    """
    if method not in ("dijkstra", "bellman-ford"):
        raise ValueError(f"method not supported: {method}")
    if weight is None:
        method = "unweighted"
    if source is not None and target is not None:
        find_path, find_length = _BETWEEN_TWO[method]
        return (find_length if is_length else find_path)(graph, source, target, weight)

    incoming = source is None and target is not None  # from all nodes to one: against the edges

    def search(vertex: int) -> Search:
        """Search from a vertex number, or to it."""
        return _SEARCHES[method](graph, vertex, weight, incoming)

    def result(search: Search) -> Any:
        """Return NetworkX's dictionary of distances, or of paths unless ``is_length``, for a
        search.
        """
        if is_length:
            return search.distances()
        return search.paths(incoming)

    if source is None and target is None:
        return ((node, result(found)) for node, found in _from_each(graph, search))

    # One end is given. NetworkX's message for a node that is not in the graph is that of the
    # function which it calls for this case.
    end = target if incoming else source
    if method == "dijkstra":
        missing = f"Node {end} not found in graph"
    elif is_length and weight is None:
        missing = f"Source {end} is not in G"
    else:
        missing = f"Source {end} not in G"
    return result(search(graph.to_number(end, _missing(missing))))


def _predecessors_by(
    graph: KeplerGraph, source: Any, weight: Weight, method: str
) -> dict[Any, list[Any]]:
    """Return a dictionary of lists by node: all predecessors on shortest paths from ``source``.

    ``method`` is "dijkstra" or "bellman-ford", which matters only with a ``weight``.
    """
    if weight is None:
        return predecessor(graph, source)
    if method == "dijkstra":
        predecessors, _ = dijkstra_predecessor_and_distance(graph, source, None, weight)
    elif method == "bellman-ford":
        predecessors, _ = bellman_ford_predecessor_and_distance(graph, source, None, weight)
    else:
        raise ValueError(f"method not supported: {method}")
    return predecessors


def all_shortest_paths(
    G: KeplerGraph, source: Any, target: Any, weight: Weight, method: str
) -> Iterator[list[Any]]:
    """Yield all shortest paths from ``source`` to ``target``, each a list of nodes.

    ``weight`` is an edge attribute, None for hops. ``method`` is "dijkstra" or "bellman-ford",
    which matters only with a ``weight``.
    """
    return _build_paths_from_predecessors(
        {source}, target, _predecessors_by(G, source, weight, method)
    )


def single_source_all_shortest_paths(
    G: KeplerGraph, source: Any, weight: Weight, method: str
) -> Iterator[tuple[Any, list[list[Any]]]]:
    """Yield each node that ``source`` reaches, with a list of all shortest paths to it.

    ``weight`` is an edge attribute, None for hops. ``method`` is "dijkstra" or "bellman-ford",
    which matters only with a ``weight``.
    """
    lists = _predecessors_by(G, source, weight, method)
    for node in lists:
        yield node, list(_build_paths_from_predecessors({source}, node, lists))


def all_pairs_all_shortest_paths(
    G: KeplerGraph, weight: Weight, method: str
) -> Iterator[tuple[Any, dict[Any, list[list[Any]]]]]:
    """Yield each node with a dictionary that maps each node which it reaches to a list of all
    shortest paths from the first to the second. ``weight`` and ``method`` are those of
    ``single_source_all_shortest_paths``.
    """
    for node in G:
        yield node, dict(single_source_all_shortest_paths(G, node, weight, method))


# Functions that are one search and one method of its result. ``search`` is called with a graph, a
# vertex number and the options of the NetworkX function; ``result`` makes of a Search what the
# NetworkX function returns.


def _from_one(
    search: Callable[..., Search], result: Callable[[Search], Any], missing: str
) -> Callable[..., Any]:
    """Return a function of a graph and a node, with more options, that returns the result of a
    search from the node.

    ``missing`` is the text of the error for a node that is not in the graph, with ``{}`` in place
    of the node.
    """

    def answer(graph: KeplerGraph, node: Any, *options: Any) -> Any:
        """Search from ``node`` with ``options``, those of ``search`` by position, and return the
        result. NodeNotFound: the node is not in the graph.
        """
        vertex = graph.to_number(node, _missing(missing.format(node)))
        return result(search(graph, vertex, *options))

    return answer


def _from_all(search: Callable[..., Search], result: Callable[[Search], Any]) -> Callable[..., Any]:
    """Return a function of a graph, with more options, that searches from each node. It returns an
    iterator of the nodes, each with the result of its search.
    """

    def answer(graph: KeplerGraph, *options: Any) -> Iterator[tuple[Any, Any]]:
        """Search from each node with ``options``, those of ``search`` by position. Return an
        iterator of the nodes, each with its result.
        """

        def search_one(vertex: int) -> Search:
            """Search from one vertex number."""
            return search(graph, vertex, *options)

        return ((node, result(found)) for node, found in _from_each(graph, search_one))

    return answer


# What functions return of a Search: its distances, its paths, and its paths after a search against
# the edges.
_distances = methodcaller("distances")
_paths = methodcaller("paths")
_reversed = methodcaller("paths", reverse=True)
_search_back = partial(search_levels, incoming=True)
# By the name of the NetworkX function, functions with its parameters by position.
FROM_TABLE: dict[str, Callable[..., Any]] = {
    "single_source_shortest_path_length": _from_one(
        search_levels, _distances, "Source {} is not in G"
    ),
    "single_source_shortest_path": _from_one(search_levels, _paths, "Source {} not in G"),
    "single_target_shortest_path_length": _from_one(
        _search_back, _distances, "Target {} is not in G"
    ),
    "single_target_shortest_path": _from_one(_search_back, _reversed, "Target {} not in G"),
    "single_source_dijkstra_path_length": _from_one(
        search_dijkstra, _distances, "Node {} not found in graph"
    ),
    "single_source_dijkstra_path": _from_one(search_dijkstra, _paths, "Node {} not found in graph"),
    "single_source_bellman_ford_path_length": _from_one(
        search_bellman_ford, _distances, "Source {} not in G"
    ),
    "single_source_bellman_ford_path": _from_one(search_bellman_ford, _paths, "Source {} not in G"),
    "all_pairs_shortest_path_length": _from_all(search_levels, _distances),
    "all_pairs_shortest_path": _from_all(search_levels, _paths),
    "all_pairs_dijkstra_path_length": _from_all(search_dijkstra, _distances),
    "all_pairs_dijkstra_path": _from_all(search_dijkstra, _paths),
    "all_pairs_dijkstra": _from_all(search_dijkstra, _both),
    "all_pairs_bellman_ford_path_length": _from_all(search_bellman_ford, _distances),
    "all_pairs_bellman_ford_path": _from_all(search_bellman_ford, _paths),
    "multi_source_dijkstra_path_length": lambda *asked: _from_nearest(*asked).distances(),
    "multi_source_dijkstra_path": lambda *asked: _from_nearest(*asked).paths(),
    "single_source_dijkstra": lambda G, source, *more: multi_source_dijkstra(G, [source], *more),
    "dijkstra_path": lambda G, source, target, weight: multi_source_dijkstra(
        G, [source], target, None, weight
    )[1],
    "bellman_ford_path": bellman_ford_path,
    "shortest_path": partial(_shortest, False),
    "shortest_path_length": partial(_shortest, True),
}
