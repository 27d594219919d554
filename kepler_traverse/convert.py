"""Graphs of other libraries to ours and back: NetworkX, igraph, cuGraph, SciPy, Arrow."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import arguments
from ._arrays import to_host
from .edges import graph_from_edges
from .errors import InputError
from .graph import Graph


def from_networkx(graph: Any, weight: str | None = None) -> Graph:
    """Convert a graph of NetworkX; see ``Graph.from_networkx``."""
    for method in ("is_directed", "is_multigraph", "edges", "nodes"):
        if not hasattr(graph, method):
            raise InputError(f"graph must be a graph of NetworkX, not {arguments.describe(graph)}")
    nodes = list(graph.nodes)
    kinds = {str if isinstance(node, str) else int if _is_integer(node) else object for node in nodes}
    if len(kinds) > 1 or object in kinds:
        odd = next(node for node in nodes if not isinstance(node, str) and (str in kinds or not _is_integer(node)))
        raise InputError(
            f"node {arguments.describe(odd)} can be no vertex id: all nodes must be integers or all strings; "
            f"networkx.convert_node_labels_to_integers(graph, label_attribute=...) numbers them"
        )
    if weight is None:
        ends = [(u, v) for u, v in graph.edges()]
        weights = None
    else:
        arguments.text("weight", weight, "the name of an edge attribute")
        triples = list(graph.edges(data=weight))
        missing = next(((u, v) for u, v, value in triples if value is None), None)
        if missing is not None:
            raise InputError(f"edge {missing} has no attribute {weight!r}; give it one, or another name for weight")
        ends = [(u, v) for u, v, _ in triples]
        weights = [value for _, _, value in triples]
    src, dst = ([end[i] for end in ends] for i in (0, 1))
    if kinds == {str}:
        return graph_from_edges(_strings(src), _strings(dst), weights, directed=graph.is_directed(), vertices=nodes)
    return graph_from_edges(src, dst, weights, directed=graph.is_directed(), vertices=nodes)


def _is_integer(node: Any) -> bool:
    return isinstance(node, (int, np.integer)) and not isinstance(node, bool)


def _strings(values: list[str]) -> Any:
    import pyarrow

    return pyarrow.chunked_array([pyarrow.array(values, pyarrow.string())])


def from_igraph(graph: Any, weight: str | None = None, ids: str | None = None) -> Graph:
    """Convert a graph of igraph; see ``Graph.from_igraph``."""
    for method in ("get_edgelist", "vcount", "is_directed", "vs", "es"):
        if not hasattr(graph, method):
            raise InputError(f"graph must be a graph of igraph, not {arguments.describe(graph)}")
    for name, value, known in (("weight", weight, graph.es), ("ids", ids, graph.vs)):
        if value is not None and arguments.text(name, value, "the name of an attribute") not in known.attributes():
            raise InputError(
                f"{name}={value!r} is none of the attributes {', '.join(map(repr, known.attributes())) or '(none)'}"
            )
    ends = np.array(graph.get_edgelist(), np.int64).reshape(-1, 2)
    vertices: Any = np.arange(graph.vcount(), dtype=np.int64)
    src, dst = ends[:, 0], ends[:, 1]
    weights = None if weight is None else list(graph.es[weight])
    if ids is not None:
        names = list(graph.vs[ids])
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"attribute {ids!r} gives {arguments.describe(twice)} to several vertices; ids must differ")
        src, dst, vertices = [names[i] for i in src], [names[i] for i in dst], names
        if all(isinstance(name, str) for name in names):
            src, dst = _strings(src), _strings(dst)
    return graph_from_edges(src, dst, weights, directed=graph.is_directed(), vertices=vertices)


def from_cugraph(graph: Any) -> Graph:
    """Convert a graph of cuGraph; see ``Graph.from_cugraph``."""
    for method in ("view_edge_list", "is_directed", "nodes"):
        if not hasattr(graph, method):
            raise InputError(f"graph must be a graph of cuGraph, not {arguments.describe(graph)}")
    edges = graph.view_edge_list()
    names = list(edges.columns)
    src, dst = _one_name(graph.source_columns), _one_name(graph.destination_columns)
    weight = None
    if graph.is_weighted():
        weight = _one_name(graph.weight_column)
        weight = weight if weight in names else next(name for name in names if name not in (src, dst))
    return graph_from_edges(
        edges, src=src, dst=dst, weight=weight, directed=graph.is_directed(), vertices=graph.nodes().to_arrow().to_pylist()
    )


def _one_name(columns: Any) -> str:
    if isinstance(columns, str):
        return columns
    if len(columns) != 1:
        raise InputError(f"ids of several columns ({', '.join(map(str, columns))}) cannot be vertex ids; join them first")
    return str(columns[0])


def to_scipy(graph: Graph) -> Any:
    """Convert to a SciPy matrix; see ``Graph.to_scipy``."""
    import scipy.sparse

    n = graph.n_vertices
    weights = np.ones(graph.n_edges, np.int8) if graph.weights is None else _as_given(graph, to_host(graph.weights))
    return scipy.sparse.csr_array((weights, to_host(graph.targets), to_host(graph.offsets)), shape=(n, n))


def to_arrow(graph: Graph) -> Any:
    """Convert to an Arrow table of edges; see ``Graph.to_arrow``."""
    import pyarrow

    src, dst, weights = _edges_once(graph)
    ids = graph.ids if graph.has_string_ids else pyarrow.array(to_host(graph.ids))
    columns = {"src": ids.take(pyarrow.array(src)), "dst": ids.take(pyarrow.array(dst))}
    if weights is not None:
        columns["weight"] = pyarrow.array(_as_given(graph, weights))
    return pyarrow.table(columns)


def to_networkx(graph: Graph, weight: str = "weight") -> Any:
    """Convert to a NetworkX graph; see ``Graph.to_networkx``."""
    import networkx

    src, dst, weights = _edges_once(graph)
    ids = graph.ids.to_pylist() if graph.has_string_ids else to_host(graph.ids).tolist()
    made = networkx.DiGraph() if graph.directed else networkx.Graph()
    made.add_nodes_from(ids)
    ends = [(ids[u], ids[v]) for u, v in zip(src.tolist(), dst.tolist(), strict=True)]
    if weights is None:
        made.add_edges_from(ends)
    else:
        values = _as_given(graph, weights).tolist()
        made.add_weighted_edges_from(
            [(u, v, value) for (u, v), value in zip(ends, values, strict=True)], weight=arguments.text("weight", weight)
        )
    return made


def _edges_once(graph: Graph) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Ends and weights of all edges on the host, each undirected edge once."""
    offsets, targets = to_host(graph.offsets), to_host(graph.targets)
    src = np.repeat(np.arange(graph.n_vertices, dtype=targets.dtype), np.diff(offsets))
    weights = None if graph.weights is None else to_host(graph.weights)
    if not graph.directed:
        once = src < targets
        src, targets, weights = src[once], targets[once], None if weights is None else weights[once]
    return src, targets, weights


def _as_given(graph: Graph, weights: np.ndarray) -> np.ndarray:
    """Integer weights as integers; a graph stores them as floats where those are exact."""
    return weights.astype(np.int64) if graph.returns_integers else weights
