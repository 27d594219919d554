"""The graph that NetworkX's graphs are converted to: arrays in the order of NetworkX's
dictionaries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import cached_property, partial
from itertools import chain
from typing import Any, NamedTuple

import networkx as nx
import numpy as np

from .._arrays import index_dtype
from ..graph import Graph
from ..graph.build import graph_from_numbers
from ..hub_labels.arrays import HubLabels
from .weights import Weights, read_weights, to_numbers

UNEVEN = "the two directions of an edge of this undirected view differ; take its copy()"
_NO_FLAGS = np.zeros(0, np.uint8)


class Adjacency(NamedTuple):
    """The edges of one direction, as CSR in NetworkX's order."""

    # int64 array of shape (n_vertices + 1,): where the edges of each vertex begin
    offsets: np.ndarray
    targets: np.ndarray  # array of shape (n_edges,): the vertex at the other end


def is_view(graph: Any) -> bool:
    """Return whether a graph of NetworkX shows another one, which may change below it."""
    return getattr(graph, "_graph", None) is not None


def may_be_uneven(graph: Any) -> bool:
    """Return whether the edges of an undirected graph of NetworkX may differ by direction: those of
    a view are computed.
    """
    return is_view(graph) or type(graph._adj) is not dict


class KeplerGraph:
    """A graph of NetworkX as arrays. NetworkX dispatches calls with such a graph to this backend.

    It is a snapshot: a later change of the graph of NetworkX does not change it. Parallel edges are
    one edge with the smallest weight of each attribute. Attributes of nodes and of the graph are
    not kept.

    Parameters
    ----------
    graph : networkx.Graph or a subclass
    edge_attrs : mapping of attribute to default, optional
        Edge attributes to keep as weights. An edge that lacks one has the default.

    Raises
    ------
    NotImplementedError
        Weights that cannot be represented exactly. NetworkX then takes another backend.
    """

    __networkx_backend__ = "kepler"

    def __init__(self, graph: Any, edge_attrs: Mapping[Hashable, Any] | None = None):
        self.directed = bool(graph.is_directed())
        self.multigraph = bool(graph.is_multigraph())
        self.nodes: list[Any] = list(graph._adj)  # by vertex number
        # the number of each node, under the name that NetworkX's own functions look for nodes in
        self._adj = dict(zip(self.nodes, range(len(self.nodes)), strict=True))
        # whether nodes are their own numbers, so that none need be looked up
        self.numbered = all(type(node) is int for node in self.nodes) and self.nodes == list(
            range(len(self.nodes))
        )
        self.outgoing = self._adjacency(graph._adj)
        if self.directed:
            self.incoming = self._adjacency(graph._pred)
        else:
            self.incoming = self.outgoing

        # by attribute, the weights in the order of ``outgoing`` and of ``incoming``
        self._weights: dict[Hashable, tuple[Weights, Weights]] = {}
        for name, default in (edge_attrs or {}).items():
            outgoing = read_weights(graph._adj, name, default, self.multigraph)
            if self.directed:
                incoming = read_weights(graph._pred, name, default, self.multigraph)
            else:
                incoming = outgoing
            if outgoing.problem:
                raise NotImplementedError(outgoing.problem)
            self._weights[name] = (outgoing, incoming)
        # by attribute, None for hops: the graphs that were searched
        self._searched: dict[Hashable, Graph] = {}
        self._may_be_uneven = not self.directed and may_be_uneven(graph)
        # by attribute, None for hops: what ``is_even`` has found
        self._even: dict[Hashable, bool] = {}

    def _adjacency(self, adjacency: Mapping[Any, Mapping[Any, Any]]) -> Adjacency:
        """Return NetworkX's adjacency as arrays, in its order."""
        n = len(self.nodes)
        neighbors: list[Any] = list(adjacency.values())
        # Neighbors in a view, whose len may count what it hides: listing them counts what it shows.
        if any(type(neighbors_of_node) is not dict for neighbors_of_node in neighbors):
            neighbors = list(map(list, neighbors))
        offsets = np.zeros(n + 1, np.int64)
        np.cumsum(np.fromiter(map(len, neighbors), np.int64, n), out=offsets[1:])
        targets = map(self._adj.__getitem__, chain.from_iterable(neighbors))
        return Adjacency(offsets, np.fromiter(targets, index_dtype(n), int(offsets[-1])))

    def is_directed(self) -> bool:
        return self.directed

    def is_multigraph(self) -> bool:
        return self.multigraph

    def __contains__(self, node: Any) -> bool:
        try:
            return node in self._adj
        except TypeError:
            return False

    def __iter__(self) -> Iterator[Any]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def number_of_nodes(self) -> int:
        return len(self.nodes)

    order = number_of_nodes

    def number_of_edges(self) -> int:
        """Return the number of edges; parallel edges count once."""
        if self.directed:
            return int(self.outgoing.targets.size)
        offsets, targets = self.outgoing
        loops = np.count_nonzero(np.repeat(np.arange(len(self)), np.diff(offsets)) == targets)
        return int((targets.size + loops) // 2)

    def nbunch_iter(self, nbunch: Any = None) -> Iterator[Any]:
        """Iterate over the nodes of ``nbunch`` that are in the graph, as
        ``networkx.Graph.nbunch_iter``.
        """
        return nx.Graph.nbunch_iter(self, nbunch)

    def __str__(self) -> str:
        kind = ("Multi" if self.multigraph else "") + ("DiGraph" if self.directed else "Graph")
        return f"{kind} with {len(self)} nodes and {self.number_of_edges()} edges"

    def __repr__(self) -> str:
        return f"<KeplerGraph: {self}>"

    def has_weights(self, name: Hashable) -> bool:
        """Return whether an attribute was kept."""
        return name in self._weights

    def weights(self, name: Hashable | None, incoming: bool = False) -> Weights:
        """Return the weights of an attribute in the order of ``outgoing`` or ``incoming``; 1
        without an attribute.
        """
        if name is None:
            return self._unit_weights
        if name not in self._weights:
            raise NotImplementedError(
                f"the graph was converted without edge attribute {name!r}; give it as edge_attrs"
            )
        outgoing_weights, incoming_weights = self._weights[name]
        return incoming_weights if incoming else outgoing_weights

    @cached_property
    def _unit_weights(self) -> Weights:
        ones = np.ones(self.outgoing.targets.size, np.int64)
        return Weights(values=ones, floats=_NO_FLAGS, kind="int", has_negative=False, problem="")

    def to_number(self, node: Any, error: Callable[[], Exception]) -> int:
        """Return the vertex number of a node, or raise what ``error`` makes."""
        try:
            return self._adj[node]
        except (KeyError, TypeError):
            raise error() from None

    def names(self, vertices: np.ndarray) -> list[Any]:
        """Return the nodes of vertex numbers."""
        numbers = vertices.tolist()
        if self.numbered:
            return numbers
        return list(map(self.nodes.__getitem__, numbers))

    def is_even(self, weight: Hashable | None) -> bool:
        """Return whether each edge of an undirected graph is there, and has the same weight, in
        both directions.

        A view of a directed graph may say otherwise, and so may a view with a filter of edges.
        NetworkX then searches each direction as it is.
        """
        if not self._may_be_uneven:
            return True
        if weight not in self._even:
            self._even[weight] = self._compare_directions(weight)
        return self._even[weight]

    def _compare_directions(self, weight: Hashable | None) -> bool:
        """Return whether each edge is there, with the same weight, in both directions, by a pass
        over all edges.
        """
        offsets, targets = self.outgoing
        src = np.repeat(np.arange(len(self)), np.diff(offsets))
        dst = targets.astype(np.int64)
        # One number per edge, and that of the edge in the other direction.
        keys = src * len(self) + dst
        reversed_keys = dst * len(self) + src
        order = np.argsort(keys)
        reversed_order = np.argsort(reversed_keys)
        if not np.array_equal(keys[order], reversed_keys[reversed_order]):
            return False
        weights = self.weights(weight)
        columns = [weights.values]
        if weights.floats.size:
            columns.append(weights.floats)
        return all(np.array_equal(column[order], column[reversed_order]) for column in columns)

    def searched(self, weight: Hashable | None) -> Graph:
        """Return the graph that ``bfs_many`` and ``sssp_many`` search, with vertex numbers as ids.
        It is kept.

        Raises NotImplementedError: the graph is undirected, and its directions differ
        (``is_even``).
        """
        if not self.is_even(weight):
            raise NotImplementedError(UNEVEN)
        if weight not in self._searched:
            offsets, targets = self.outgoing
            src = np.repeat(np.arange(len(self), dtype=targets.dtype), np.diff(offsets))
            values = None
            if weight is not None:
                values = self.weights(weight).values
            if not self.directed:  # each edge is there in both directions: take one of them
                is_first = src <= targets
                src = src[is_first]
                targets = targets[is_first]
                if values is not None:
                    values = values[is_first]
            ids = np.arange(len(self), dtype=np.int64)
            self._searched[weight] = graph_from_numbers(
                src, targets, values, ids=ids, directed=self.directed
            )
        return self._searched[weight]

    def labels(self, weight: Hashable | None) -> HubLabels:
        """Return the hub labels that answer the distance of two nodes from then on; see
        ``Graph.labels``.

        Raises NotImplementedError (as ``searched``) or HierarchyError (there are none that pay).
        """
        return self.searched(weight).labels(_metric(weight))

    def distance_by_labels(
        self, weight: Hashable | None, source: int, target: int
    ) -> int | float | None:
        """Return the distance of two vertices by the labels, infinite without a path.

        None if there are no labels, or if some weights are floats: NetworkX returns the type of the
        sum along a path, which labels do not know.
        """
        graph = self._searched.get(weight)
        if graph is None:
            return None
        labels = graph.derived.known_labels(_metric(weight))
        if labels is None or self.weights(weight).kind != "int":
            return None
        total = labels.between(np.array([source]), np.array([target]))[0]
        if total == labels.unreached:
            return math.inf
        return int(total)


def _metric(weight: Hashable | None) -> str:
    """Return the metric of ``Graph.hierarchy`` for an attribute of edges, None for hops."""
    return "hops" if weight is None else "weights"


def convert_from_nx(
    graph: Any,
    edge_attrs: Mapping[Hashable, Any] | None = None,
    node_attrs: Mapping[Hashable, Any] | None = None,  # no function here reads them  # noqa: ARG001
    preserve_edge_attrs: bool = False,
    preserve_node_attrs: bool = False,  # noqa: ARG001
    preserve_graph_attrs: bool = False,  # noqa: ARG001
    name: str | None = None,  # noqa: ARG001
    graph_name: str | None = None,  # noqa: ARG001
) -> Any:
    """Convert a graph of NetworkX; NetworkX calls this and keeps the result in the graph's cache.

    A KeplerGraph is returned as it is. ``edge_attrs`` maps attributes to defaults.
    ``preserve_edge_attrs`` is refused: types of all attributes are not known to be numbers. The
    other arguments are a part of NetworkX's protocol, and ignored.
    """
    if isinstance(graph, KeplerGraph):
        return graph
    if preserve_edge_attrs:
        raise NotImplementedError(
            "all edge attributes cannot be kept; name those that are weights as edge_attrs"
        )
    return KeplerGraph(graph, edge_attrs)


def convert_to_nx(result: Any, name: str | None = None) -> Any:  # noqa: ARG001
    """Convert a KeplerGraph to a graph of NetworkX; other results are returned as they are.

    Raises
    ------
    NotImplementedError
        The graph had parallel edges, which were merged, or is undirected and differs by direction.
    """
    if not isinstance(result, KeplerGraph):
        return result
    for weight in (None, *result._weights):
        if not result.is_even(weight):
            raise NotImplementedError(UNEVEN)
    if result.multigraph:
        raise NotImplementedError("parallel edges were merged; call NetworkX with its own graph")
    converted = nx.DiGraph() if result.directed else nx.Graph()
    converted.add_nodes_from(result.nodes)
    offsets, targets = result.outgoing
    src = np.repeat(np.arange(len(result)), np.diff(offsets))
    converted.add_edges_from(zip(result.names(src), result.names(targets), strict=True))
    for weight, (outgoing, _) in result._weights.items():
        all_edges = np.arange(outgoing.values.size)
        values = to_numbers(outgoing.values, outgoing.floats, all_edges)
        for u, v, value in zip(result.names(src), result.names(targets), values, strict=True):
            converted[u][v][weight] = value
    return converted


def find_vertices(
    graph: KeplerGraph, nodes: Iterable[Any], error: Callable[[Any], Exception]
) -> np.ndarray:
    """Return the vertex numbers of several nodes, int64; ``error`` makes what is raised for a node
    that is not in the graph.
    """
    numbers = [graph.to_number(node, partial(error, node)) for node in nodes]
    return np.array(numbers, np.int64)
