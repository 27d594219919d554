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

# why calls with an undirected view are refused whose directions differ
UNEVEN = "the two directions of an edge of this undirected view differ; take its copy()"
_NO_FLAGS = np.zeros(0, np.uint8)


class Adjacency(NamedTuple):
    """The edges of one direction, as CSR in NetworkX's order."""

    # int64 array of shape (n_vertices + 1,): where the edges of each vertex begin
    offsets: np.ndarray
    # integer array of shape (n_edges,): the number of the vertex at the other end of each edge
    targets: np.ndarray


def is_view(graph: Any) -> bool:
    """Return whether a graph of NetworkX is a view: it shows the edges of another graph, and so
    changes with that graph.
    """
    # where a view of NetworkX refers to the graph that it shows
    return getattr(graph, "_graph", None) is not None


def may_be_uneven(graph: Any) -> bool:
    """Return whether the edges of an undirected graph of NetworkX may differ by direction.

    Those of a view may, since a view computes each direction for itself. In a plain graph, whose
    adjacency is a ``dict``, both directions share one dictionary of attributes.
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

    Attributes
    ----------
    directed, multigraph : bool
        Whether NetworkX's graph is directed, and whether it is of a class with parallel edges.
    nodes : list
        The nodes in NetworkX's order. The position of a node is its vertex number.
    numbered : bool
        Whether each node is the integer that is its vertex number, so that none need be looked up.
    outgoing, incoming : Adjacency
        The edges that leave each vertex, and those that lead to it. One object if undirected.

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
        # The vertex number of each node. The name is that of the dictionary in which NetworkX's own
        # functions look up whether a node is in a graph.
        self._adj = dict(zip(self.nodes, range(len(self.nodes)), strict=True))
        self.numbered = all(type(node) is int for node in self.nodes) and self.nodes == list(
            range(len(self.nodes))
        )
        self.outgoing = self._adjacency(graph._adj)
        if self.directed:
            self.incoming = self._adjacency(graph._pred)
        else:
            self.incoming = self.outgoing

        # by attribute, the weights in the order of the edges of ``outgoing`` and of ``incoming``
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
        # by attribute, None for hops: the library's graphs that ``searched`` has made
        self._searched: dict[Hashable, Graph] = {}
        self._may_be_uneven = not self.directed and may_be_uneven(graph)
        # by attribute, None for hops: what ``is_even`` has found
        self._even: dict[Hashable, bool] = {}

    def _adjacency(self, adjacency: Mapping[Any, Mapping[Any, Any]]) -> Adjacency:
        """Return NetworkX's adjacency as arrays, in its order.

        ``adjacency`` maps each node, in the order of ``nodes``, to a mapping by its neighbors.
        """
        n = len(self.nodes)
        neighbors: list[Any] = list(adjacency.values())
        # The ``len`` of a mapping in a view may count edges that the view hides. A list of its keys
        # has those alone that it shows.
        if any(type(neighbors_of_node) is not dict for neighbors_of_node in neighbors):
            neighbors = list(map(list, neighbors))
        offsets = np.zeros(n + 1, np.int64)
        np.cumsum(np.fromiter(map(len, neighbors), np.int64, n), out=offsets[1:])
        targets = map(self._adj.__getitem__, chain.from_iterable(neighbors))
        return Adjacency(offsets, np.fromiter(targets, index_dtype(n), int(offsets[-1])))

    def is_directed(self) -> bool:
        """Return whether the graph is directed, as ``networkx.Graph.is_directed``."""
        return self.directed

    def is_multigraph(self) -> bool:
        """Return whether the class of NetworkX's graph has parallel edges; they are merged here."""
        return self.multigraph

    def __contains__(self, node: Any) -> bool:
        """Return whether an object is a node of the graph, as in ``networkx.Graph``."""
        try:
            return node in self._adj
        except TypeError:  # an object without a hash is no node
            return False

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the nodes, by ascending vertex number."""
        return iter(self.nodes)

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.nodes)

    def number_of_nodes(self) -> int:
        """Return the number of nodes, as ``networkx.Graph.number_of_nodes``."""
        return len(self.nodes)

    order = number_of_nodes

    def number_of_edges(self) -> int:
        """Return the number of edges. Parallel edges count once, and so does an undirected edge."""
        if self.directed:
            return int(self.outgoing.targets.size)
        # the arrays hold an undirected edge in both directions, but a self-loop only once
        offsets, targets = self.outgoing
        loops = np.count_nonzero(np.repeat(np.arange(len(self)), np.diff(offsets)) == targets)
        return int((targets.size + loops) // 2)

    def nbunch_iter(self, nbunch: Any = None) -> Iterator[Any]:
        """Iterate over the nodes of ``nbunch`` that are in the graph, over all nodes if it is None,
        as ``networkx.Graph.nbunch_iter``.
        """
        return nx.Graph.nbunch_iter(self, nbunch)

    def __str__(self) -> str:
        """Describe the graph in NetworkX's words: its kind, and its numbers of nodes and edges."""
        kind = ("Multi" if self.multigraph else "") + ("DiGraph" if self.directed else "Graph")
        return f"{kind} with {len(self)} nodes and {self.number_of_edges()} edges"

    def __repr__(self) -> str:
        """Describe the graph, with the name of this class."""
        return f"<KeplerGraph: {self}>"

    def has_weights(self, name: Hashable) -> bool:
        """Return whether the edge attribute ``name`` was kept when the graph was converted."""
        return name in self._weights

    def weights(self, name: Hashable | None, incoming: bool = False) -> Weights:
        """Return the weights of the edge attribute ``name``; if it is None, 1 for each edge.

        They are in the order of the edges of ``self.outgoing``, or with ``incoming`` in that of
        ``self.incoming``. NotImplementedError: the attribute was not kept.
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
        """A weight of 1 for each edge, in either direction: both have the same number of edges."""
        ones = np.ones(self.outgoing.targets.size, np.int64)
        return Weights(values=ones, floats=_NO_FLAGS, kind="int", has_negative=False, problem="")

    def to_number(self, node: Any, error: Callable[[], Exception]) -> int:
        """Return the vertex number of a node. If it is not in the graph, raise the exception that
        ``error()`` returns.
        """
        try:
            return self._adj[node]
        except (KeyError, TypeError):  # TypeError: an object without a hash is no node
            raise error() from None

    def names(self, vertices: np.ndarray) -> list[Any]:
        """Return the nodes whose vertex numbers are in ``vertices``, in that order."""
        numbers = vertices.tolist()
        if self.numbered:
            return numbers
        return list(map(self.nodes.__getitem__, numbers))

    def is_even(self, weight: Hashable | None) -> bool:
        """Return whether each edge of an undirected graph is there in both directions, with the
        same ``weight``. Of a directed graph, return True.

        The directions may differ in an undirected view of a directed graph, and in a view with a
        filter of edges. NetworkX then searches each direction as it is.
        """
        if not self._may_be_uneven:
            return True
        if weight not in self._even:
            self._even[weight] = self._compare_directions(weight)
        return self._even[weight]

    def _compare_directions(self, weight: Hashable | None) -> bool:
        """Return whether each edge is there in both directions, with the same ``weight``: compare
        all edges with their reverses.
        """
        offsets, targets = self.outgoing
        src = np.repeat(np.arange(len(self)), np.diff(offsets))
        dst = targets.astype(np.int64)
        # One number per edge, and the number that its reverse has. If both are equal once sorted,
        # ``order`` and ``reversed_order`` have an edge and its reverse at the same position.
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
        """Return the library's graph that ``bfs_many`` and ``sssp_many`` search. Its ids are vertex
        numbers, and its weights the edge attribute ``weight``, if that is not None.

        It is made once per attribute. NotImplementedError: the graph is undirected, and the
        directions of an edge differ.
        """
        if not self.is_even(weight):
            raise NotImplementedError(UNEVEN)
        if weight not in self._searched:
            offsets, targets = self.outgoing
            src = np.repeat(np.arange(len(self), dtype=targets.dtype), np.diff(offsets))
            values = None
            if weight is not None:
                values = self.weights(weight).values
            # Of the two directions of an undirected edge the library takes one. ``<=`` includes
            # self-loops, which are there once.
            if not self.directed:
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
        """Build and return hub labels: an index that answers the distance of two nodes without a
        search. NetworkX's functions of such a distance use it from then on.

        ``weight`` is an edge attribute, None for hops. NotImplementedError: the directions of an
        undirected edge differ. HierarchyError: labels of this graph would not pay.
        """
        return self.searched(weight).labels(_metric(weight))

    def distance_by_labels(
        self, weight: Hashable | None, source: int, target: int
    ) -> int | float | None:
        """Return the distance from ``source`` to ``target``, two vertex numbers, by hub labels;
        infinite without a path.

        Return None if ``labels`` has not been called for this attribute, or if some weights are
        floats: NetworkX returns the type of the sum along a path, which labels do not know.
        """
        graph = self._searched.get(weight)
        if graph is None:  # then no labels have been built, either
            return None
        labels = graph.derived.known_labels(_metric(weight))
        if labels is None or self.weights(weight).kind != "int":
            return None
        total = labels.between(np.array([source]), np.array([target]))[0]
        if total == labels.unreached:
            return math.inf
        return int(total)


def _metric(weight: Hashable | None) -> str:
    """Return the library's name of the distances by the edge attribute ``weight``: "hops" if it is
    None, else "weights".
    """
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
    """Convert a graph of NetworkX to a KeplerGraph, and return a KeplerGraph as it is.

    NetworkX calls this and keeps the result in the graph's cache. ``edge_attrs`` maps each edge
    attribute that is kept to the weight of edges that lack it. ``preserve_edge_attrs`` asks for all
    attributes, and is refused with NotImplementedError: they are not known to be numbers. The other
    arguments are a part of NetworkX's protocol, and ignored.
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

    ``name``, a function of NetworkX, is a part of NetworkX's protocol, and ignored.

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
    converted.add_nodes_from(result.nodes)  # before the edges, to keep the order of the nodes
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
    """Return the vertex numbers of ``nodes`` in their order, int64. For a node that is not in the
    graph, raise the exception that ``error(node)`` returns.
    """
    numbers = [graph.to_number(node, partial(error, node)) for node in nodes]
    return np.array(numbers, np.int64)
