"""Graphs of other libraries to ours and back: NetworkX, igraph, cuGraph, SciPy, Arrow; and streets
of OpenStreetMap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import Any

import numpy as np

from . import arguments
from ._arrays import arrow_compute as compute
from ._arrays import index_dtype, pyarrow, to_host
from ._uninterrupted import load
from .errors import InputError
from .graph import Graph
from .graph.build import graph_from_numbers, of_nodes
from .graph.closed import refuse_closed
from .graph.edges import graph_from_edges
from .graph.osm import from_osm as from_osm

_AT_ONCE = 1 << 16  # edges that are Python objects at a time


def from_networkx(graph: Any, weight: str | None = None) -> Graph:
    """Convert a graph of NetworkX, or of OSMnx, on the CPU.

    Parameters
    ----------
    graph : networkx.Graph, DiGraph, MultiGraph or MultiDiGraph
        All nodes are integers, or all are strings. They are the ids. Parallel edges keep the
        minimum weight.
    weight : str, optional
        The edge attribute that is the weight, as ``"length"`` for a street network of OSMnx. Every
        edge must have it. Without a name the graph has no weights.

    Raises
    ------
    InputError
        Nodes of other or of mixed types, or an edge without the attribute: NetworkX takes such an
        edge for 1 long.

    Examples
    --------
    >>> import networkx
    >>> roads = networkx.Graph()
    >>> roads.add_edge("Ulm", "Bonn", minutes=240)
    >>> from_networkx(roads, weight="minutes")
    <Graph: 2 vertices, 2 stored edges, undirected, integer weights, cpu>
    """
    _require_methods(
        graph, "NetworkX", "is_directed", "is_multigraph", "edges", "nodes", "number_of_edges"
    )
    nodes = list(graph.nodes)
    for odd in _odd_ids(nodes):  # names the first one, if there is any
        raise InputError(
            f"node {arguments.describe(odd)} can be no vertex id: all nodes must be integers or all strings; "
            f"networkx.convert_node_labels_to_integers(graph, label_attribute=...) numbers them"
        )
    weights = None
    if weight is not None:
        arguments.text("weight", weight, "the name of an edge attribute")
        # ``edges`` yields None for an edge without the attribute.
        weights = [value for _, _, value in graph.edges(data=weight)]
        if any(value is None for value in weights):
            u, v = next((u, v) for u, v, value in graph.edges(data=weight) if value is None)
            ends = f"({arguments.describe(u)}, {arguments.describe(v)})"
            raise InputError(
                f"edge {ends} has no attribute {weight!r}; give it one, or another name for weight"
            )
        weights = arguments.as_array("weight", weights)

    # Number the nodes in the order of their ids, and the ends of the edges likewise. Edges come in
    # the same order as their weights above.
    ids, numbers = _sort_ids(nodes)
    number_of = dict(zip(nodes, numbers.tolist(), strict=True))
    pairs = ((number_of[u], number_of[v]) for u, v in graph.edges())
    src, dst = _split_ends(pairs, graph.number_of_edges(), numbers.dtype)
    return of_nodes(graph_from_numbers(src, dst, weights, ids=ids, directed=graph.is_directed()))


def _require_methods(graph: Any, library: str, *methods: str) -> None:
    """Raise InputError unless ``graph`` has all of ``methods``, by which a graph of ``library`` is
    recognized without importing the library.
    """
    if not all(hasattr(graph, method) for method in methods):
        raise InputError(f"graph must be a graph of {library}, not {arguments.describe(graph)}")


def _odd_ids(names: list[Any]) -> list[Any]:
    """Return the names of vertices that cannot be ids, since ids are all integers or all strings:
    those of other types, and integers if some names are strings.
    """
    has_text = any(isinstance(name, str) for name in names)
    return [
        name
        for name in names
        if not isinstance(name, str) and (has_text or not arguments.is_integer(name))
    ]


def _split_ends(
    pairs: Iterable[tuple[int, int]], count: int, dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the second numbers of ``count`` pairs, the ends of edges, as two arrays
    of type ``dtype``.
    """
    # In parts, since pairs as Python objects are many times as large as in arrays.
    pairs = iter(pairs)
    src = np.empty(count, dtype)
    dst = np.empty(count, dtype)
    for begin in range(0, count, _AT_ONCE):
        ends = np.array(list(islice(pairs, _AT_ONCE)), dtype)
        src[begin : begin + len(ends)] = ends[:, 0]
        dst[begin : begin + len(ends)] = ends[:, 1]
    return src, dst


def _sort_ids(ids: list[Any]) -> tuple[Any, np.ndarray]:
    """Return distinct ids in ascending order, and the position there, which is the vertex number,
    of each element of ``ids``.

    Ids are all integers (returned as an array of NumPy) or all strings (an array of Arrow).
    """
    if ids and all(isinstance(name, str) for name in ids):
        sorted_ids, order = _sort_texts(ids)
    else:
        names = arguments.as_array("vertices", ids)
        if names.dtype.kind not in "iu":
            raise InputError(f"vertex ids must be integers or strings, not {names.dtype}")
        order = np.argsort(names)
        sorted_ids = names[order]
    numbers = np.empty(len(ids), index_dtype(len(ids)))
    numbers[order] = np.arange(len(ids), dtype=numbers.dtype)
    return sorted_ids, numbers


def _sort_texts(ids: list[str]) -> tuple[Any, np.ndarray]:
    """Return strings in ascending order, as an array of Arrow, and the position in ``ids`` of each
    of them. InputError for a string that is not valid Unicode text.
    """
    odd = next((name for name in ids if not arguments.is_encodable(name)), None)
    if odd is not None:
        raise InputError(
            f"vertex id {arguments.describe(odd)} is not valid Unicode text; rename it"
        )
    names = pyarrow.array(ids, pyarrow.large_string())
    order = compute.sort_indices(names)
    sorted_ids = names.take(order)
    # Take offsets of 32 bits, as ids have elsewhere, if these suffice.
    if sorted_ids.nbytes <= np.iinfo(np.int32).max:
        sorted_ids = sorted_ids.cast(pyarrow.string())
    return sorted_ids, order.to_numpy()


def from_igraph(graph: Any, weight: str | None = None, ids: str | None = None) -> Graph:
    """Convert a graph of igraph, on the CPU.

    Parameters
    ----------
    graph : igraph.Graph
    weight : str, optional
        The edge attribute that is the weight. Without a name the graph has no weights.
    ids : str, optional
        The vertex attribute that holds the ids, as ``"name"``. By default ids are igraph's 0..n-1.

    Raises
    ------
    InputError
        No such attribute, ids that are missing, of other or of mixed types or given twice, or
        weights that are missing.
    """
    _require_methods(graph, "igraph", "ecount", "vcount", "is_directed", "vs", "es")
    for name, value, known in (("weight", weight, graph.es), ("ids", ids, graph.vs)):
        if (
            value is not None
            and arguments.text(name, value, "the name of an attribute") not in known.attributes()
        ):
            raise InputError(
                f"{name}={value!r} is none of the attributes "
                f"{', '.join(map(repr, known.attributes())) or '(none)'}"
            )
    # Ids must be of one kind and differ.
    names: list[Any] = list(range(graph.vcount())) if ids is None else list(graph.vs[ids])
    for odd in _odd_ids(names):
        raise InputError(
            f"attribute {ids!r} holds {arguments.describe(odd)}; ids must be "
            "integers or strings, all of one kind"
        )
    if len(set(names)) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise InputError(
            f"attribute {ids!r} gives {arguments.describe(twice)} to "
            "several vertices; ids must differ"
        )
    weights = None
    if weight is not None:
        weights = arguments.as_array("weight", graph.es[weight])

    sorted_ids, numbers = _sort_ids(names)
    src, dst = _split_ends((edge.tuple for edge in graph.es), graph.ecount(), numbers.dtype)
    # Edges have igraph's numbers, which are the vertex numbers only if they are the ids, too.
    if ids is not None:
        src = numbers[src]
        dst = numbers[dst]
    made = graph_from_numbers(src, dst, weights, ids=sorted_ids, directed=graph.is_directed())
    return of_nodes(made)


def from_cugraph(graph: Any) -> Graph:
    """Convert a graph of cuGraph, in GPU memory. Its weights are used if it has any.

    Parameters
    ----------
    graph : cugraph.Graph
        On one GPU. Vertices are integers, which stay in GPU memory, or strings, which give a graph
        on the CPU.

    Raises
    ------
    InputError
        Ids of several columns.
    """
    _require_methods(graph, "cuGraph", "view_edge_list", "is_directed", "is_weighted", "nodes")
    edges = graph.view_edge_list()
    names = list(edges.columns)
    src = _one_name(graph.source_columns, "src", names)
    dst = _one_name(graph.destination_columns, "dst", names)
    weight = None
    if graph.is_weighted():
        # The column of the weights has the user's name, or cuGraph's own.
        known = (getattr(graph, "weight_column", None), "weights")
        weight = next((name for name in known if name in names and name not in (src, dst)), None)
        if weight is None:
            raise InputError(
                f"the weights of the graph of cuGraph are in none of its columns {', '.join(map(str, names))}; "
                "give the frame of graph.view_edge_list() to graph_from_edges, with weight="
            )
    nodes = graph.nodes()
    made = graph_from_edges(
        edges,
        src=src,
        dst=dst,
        weight=weight,
        weighted=weight is not None,
        directed=graph.is_directed(),
        # integers as an array, since a Series of cuDF would be read as objects of Python
        vertices=nodes.values if nodes.dtype.kind in "iu" else nodes,
    )
    return of_nodes(made)


def _one_name(columns: Any, internal: str, names: list[str]) -> str:
    """Return the name of the column that holds the ids of an end of the edges.

    ``columns`` is the user's name, or a list with it, as cuGraph keeps it. ``internal`` is
    cuGraph's own name, which counts if the user's is not among ``names``, those of the table of
    edges. InputError if ids are in several columns.
    """
    if isinstance(columns, str):
        columns = [columns]
    else:
        columns = list(columns or [internal])
    if len(columns) != 1:
        raise InputError(
            f"ids of several columns ({', '.join(map(str, columns))}) "
            "cannot be vertex ids; join them first"
        )
    return columns[0] if columns[0] in names else internal


def to_scipy(graph: Graph) -> Any:
    """Return the adjacency matrix as ``scipy.sparse.csr_array`` of shape (n_vertices, n_vertices).

    Rows and columns are vertex numbers, in the order of ``ids``. An edge without a weight is an
    int8 one. A weight of zero is an explicit zero, which SciPy's ``csgraph`` takes for an edge.
    Self-loops of negative weight are entries of the diagonal. The matrix is a copy: changing it
    does not change the graph.
    """
    # ``load`` imports it such that Ctrl-C cannot interrupt the import half way; the statement then
    # finds it imported.
    load("scipy.sparse")
    import scipy.sparse

    _require_graph(graph)
    refuse_closed(graph, "a matrix has one row per vertex")
    n = graph.n_vertices
    if graph.weights is None:
        weights = np.ones(graph.n_edges, np.int8)
    else:
        weights = _restore_integers(graph, to_host(graph.weights))
    arrays = (weights, to_host(graph.targets), to_host(graph.offsets))
    # A copy, since SciPy changes matrices in place, and the arrays of a graph must not change.
    matrix = scipy.sparse.csr_array(arrays, shape=(n, n), copy=True)
    if graph.negative_loops and graph.weights is not None:
        # Join the lists of entries. A sum of two matrices would drop explicit zeros.
        edges = matrix.tocoo()
        vertices, loops = _negative_loops(graph, matrix.dtype)
        ends = np.concatenate([edges.row, vertices]), np.concatenate([edges.col, vertices])
        matrix = scipy.sparse.csr_array((np.concatenate([edges.data, loops]), ends), shape=(n, n))
    return matrix


def _negative_loops(graph: Graph, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the vertices with self-loops of negative weight, ascending, int64, and
    the weights of these self-loops, in type ``dtype``. A graph keeps such loops apart from its
    edges.
    """
    vertices = sorted(graph.negative_loops)
    weights = [graph.negative_loops[vertex] for vertex in vertices]
    return np.array(vertices, np.int64), np.array(weights, dtype)


def to_arrow(graph: Graph) -> Any:
    """Return the edges as a ``pyarrow.Table`` with columns ``src``, ``dst`` and, with weights,
    ``weight``.

    Ids are the user's. An undirected edge is one row. Self-loops of negative weight are rows.
    Vertices without an edge are in no row; ``ids`` has all.
    """
    src, dst, weights = _edges_once(graph)
    if graph.has_string_ids:
        ids = graph.ids
    else:
        ids = pyarrow.array(to_host(graph.ids))
    columns = {"src": ids.take(pyarrow.array(src)), "dst": ids.take(pyarrow.array(dst))}
    if weights is not None:
        columns["weight"] = pyarrow.array(_restore_integers(graph, weights))
    return pyarrow.table(columns)


def to_networkx(graph: Graph, weight: str = "weight") -> Any:
    """Return a ``networkx.DiGraph``, or ``networkx.Graph`` if undirected.

    Parameters
    ----------
    graph : Graph
    weight : str
        The edge attribute that gets the weights.
    """
    import networkx

    arguments.text("weight", weight, "the name of an edge attribute")
    src, dst, weights = _edges_once(graph)
    if graph.has_string_ids:
        ids = graph.ids.to_pylist()
    else:
        ids = to_host(graph.ids).tolist()
    if graph.directed:
        result = networkx.DiGraph()
    else:
        result = networkx.Graph()
    result.add_nodes_from(ids)
    # In parts, since edges as Python objects are many times as large as in arrays.
    for begin in range(0, src.size, _AT_ONCE):
        part = slice(begin, begin + _AT_ONCE)
        src_ids = [ids[v] for v in src[part].tolist()]
        dst_ids = [ids[v] for v in dst[part].tolist()]
        if weights is None:
            result.add_edges_from(zip(src_ids, dst_ids, strict=True))
        else:
            values = _restore_integers(graph, weights[part]).tolist()
            edges = zip(src_ids, dst_ids, values, strict=True)
            result.add_weighted_edges_from(edges, weight=weight)
    return result


def _require_graph(graph: Graph) -> None:
    """Raise InputError unless the argument ``graph`` is a graph of this library."""
    arguments.instance("graph", graph, Graph, "read_graph and graph_from_edges make one")


def _edges_once(graph: Graph) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return the edges of a graph as three arrays in host memory: the vertex numbers of both ends,
    and the weights, None without weights.

    Each undirected edge is listed once, from the smaller number to the larger one. Self-loops of
    negative weight are at the end. InputError for a graph with closed vertices.
    """
    _require_graph(graph)
    refuse_closed(graph, "a table of edges cannot say that")
    offsets = to_host(graph.offsets)
    targets = to_host(graph.targets)
    src = np.repeat(np.arange(graph.n_vertices, dtype=targets.dtype), np.diff(offsets))
    weights = None
    if graph.weights is not None:
        weights = to_host(graph.weights)
    # Both directions of an undirected edge are stored; list one of them.
    if not graph.directed:
        is_listed = src < targets
        src = src[is_listed]
        targets = targets[is_listed]
        if weights is not None:
            weights = weights[is_listed]
    if graph.negative_loops and weights is not None:
        vertices, loops = _negative_loops(graph, weights.dtype)
        vertices = vertices.astype(targets.dtype)
        src = np.concatenate([src, vertices])
        targets = np.concatenate([targets, vertices])
        weights = np.concatenate([weights, loops])
    return src, targets, weights


def _restore_integers(graph: Graph, weights: np.ndarray) -> np.ndarray:
    """Return weights as int64 if the graph was built from integers, without a float type of the
    user's choice; else as they are. A graph stores integers as floats, in which searches sum them.
    """
    if graph.returns_integers:
        return weights.astype(np.int64)
    return weights
