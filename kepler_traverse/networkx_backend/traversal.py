"""NetworkX's functions of breadth-first search: edges, trees, layers, descendants, components.

Functions without an underscore have the parameters of NetworkX's function of the same name, by
position, and return what it returns. A parameter ``_``, NetworkX's ``sort_neighbors``, is None in
each call. ``depth_limit`` is the largest number of hops, None for no limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, pairwise
from typing import Any

import networkx as nx
import numpy as np

from . import kernels
from .graph import KeplerGraph, find_vertices
from .single_source import max_level


def _tree_edges(
    graph: KeplerGraph, source: Any, incoming: bool, depth_limit: float | None
) -> tuple[list[Any], list[Any]]:
    """Return the edges of the tree of a breadth-first search from the node ``source``: two lists of
    nodes, parents and their children, in the order in which the children are discovered.

    With ``incoming`` the search is against the edges. ``depth_limit`` is the largest number of
    hops, None for no limit.
    """
    graph_kind = "digraph" if graph.directed else "graph"
    vertex = graph.to_number(
        source, lambda: nx.NetworkXError(f"The node {source} is not in the {graph_kind}.")
    )
    edges = graph.incoming if incoming else graph.outgoing
    order, parent, _ = kernels.bfs(*edges, np.array([vertex]), max_level(depth_limit))
    # the first vertex of ``order`` is the source, which has no parent
    return graph.names(parent[order[1:]]), graph.names(order[1:])


def bfs_edges(
    G: KeplerGraph, source: Any, reverse: bool, depth_limit: float | None, _: None
) -> Iterator[tuple[Any, Any]]:
    """Yield the edges of the tree of a breadth-first search from the node ``source``, each as
    (parent, child). With ``reverse`` the search is against the edges. ``depth_limit`` is the
    largest number of hops, None for no limit. The last parameter, NetworkX's ``sort_neighbors``, is
    None in each call.
    """
    yield from zip(*_tree_edges(G, source, reverse, depth_limit), strict=True)


def bfs_tree(
    G: KeplerGraph, source: Any, reverse: bool, depth_limit: float | None, _: None
) -> nx.DiGraph:
    """Return the tree of a breadth-first search, as a graph of NetworkX whose edges lead from the
    source. With ``reverse`` the search is against the edges of ``G``. ``depth_limit`` is the
    largest number of hops, None for no limit. The last parameter, NetworkX's ``sort_neighbors``, is
    None in each call.
    """
    tree = nx.DiGraph()
    tree.add_node(source)  # the source is in the tree also if it has no edges
    tree.add_edges_from(bfs_edges(G, source, reverse, depth_limit, None))
    return tree


def bfs_predecessors(
    G: KeplerGraph, source: Any, depth_limit: float | None, _: None
) -> Iterator[tuple[Any, Any]]:
    """Yield each node that the source reaches, without the source, and its parent in the tree of
    the search. ``depth_limit`` is the largest number of hops, None for no limit. The last
    parameter, NetworkX's ``sort_neighbors``, is None in each call.
    """
    parents, children = _tree_edges(G, source, False, depth_limit)
    yield from zip(children, parents, strict=True)


def bfs_successors(
    G: KeplerGraph, source: Any, depth_limit: float | None, _: None
) -> Iterator[tuple[Any, list[Any]]]:
    """Yield each node that has children in the tree of a breadth-first search, with a list of them.
    If no node has any, yield the source and an empty list, as NetworkX does. ``depth_limit`` is the
    largest number of hops, None for no limit. The last parameter, NetworkX's ``sort_neighbors``, is
    None in each call.
    """
    pairs = zip(*_tree_edges(G, source, False, depth_limit), strict=True)
    has_children = False
    # the search discovers all children of a parent before those of the next one
    for parent, group in groupby(pairs, key=lambda pair: pair[0]):
        has_children = True
        yield parent, [child for _, child in group]
    if not has_children:
        yield source, []


def bfs_layers(G: KeplerGraph, sources: Any) -> Iterator[list[Any]]:
    """Yield a list of the nodes at each number of hops from the nearest source, 0 first.

    ``sources`` is one node, or several. A node that is not in the graph raises NetworkXError.
    """
    # ``set``, as NetworkX: it decides about the order of the sources
    nodes = [sources] if sources in G else list(set(sources))
    vertices = find_vertices(
        G, nodes, lambda node: nx.NetworkXError(f"The node {node} is not in the graph.")
    )
    order, _, level = kernels.bfs(*G.outgoing, vertices, max_level(None))
    # Levels ascend in the order of discovery: a layer begins where the level changes.
    begins = np.flatnonzero(np.diff(level[order], prepend=-1))
    for layer in np.split(order, begins[1:]):
        if layer.size:  # without sources ``split`` returns one empty part
            yield G.names(layer)


def descendants_at_distance(G: KeplerGraph, source: Any, distance: float) -> set[Any]:
    """Return the nodes that are exactly ``distance`` hops from the source."""
    vertex = G.to_number(
        source, lambda: nx.NetworkXError(f"The node {source} is not in the graph.")
    )
    order, _, level = kernels.bfs(*G.outgoing, np.array([vertex]), max_level(distance))
    return set(G.names(order[level[order] == distance]))


def descendants(G: KeplerGraph, source: Any) -> set[Any]:
    """Return the nodes that the source reaches, without the source."""
    _, children = _tree_edges(G, source, False, None)
    return set(children)


def ancestors(G: KeplerGraph, source: Any) -> set[Any]:
    """Return the nodes that reach the source, without the source."""
    _, children = _tree_edges(G, source, True, None)
    return set(children)


def connected_components(G: KeplerGraph) -> Iterator[set[Any]]:
    """Yield the set of the nodes of each component of an undirected graph."""
    order, starts = kernels.components(*G.outgoing)
    for begin, end in pairwise(starts.tolist()):
        yield set(G.names(order[begin:end]))


def number_connected_components(G: KeplerGraph) -> int:
    """Return the number of components of an undirected graph."""
    _, starts = kernels.components(*G.outgoing)
    return int(starts.size - 1)


def is_connected(G: KeplerGraph) -> bool:
    """Return whether an undirected graph is one component: vertex 0 reaches all others."""
    if not len(G):
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    order, _, _ = kernels.bfs(*G.outgoing, np.zeros(1, np.int64), max_level(None))
    return bool(order.size == len(G))


def node_connected_component(G: KeplerGraph, n: Any) -> set[Any]:
    """Return the nodes of the component of the node ``n``. KeyError: it is not in the graph."""
    vertex = G.to_number(n, lambda: KeyError(n))
    order, _, _ = kernels.bfs(*G.outgoing, np.array([vertex]), max_level(None))
    return set(G.names(order))
