"""Build a Graph from edges in memory: a table of any library, or columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from . import arguments
from ._arrays import device_of
from .build import WEIGHT_TYPES, graph_from_arrays
from .edge_list_graph import BuildRules, graph_of
from .errors import InputError, options_spelled
from .formats import ReadOptions
from .formats.files import DataFile
from .formats.tables import as_column, edges_of_columns, is_table, read_table
from .graph import Graph

_NAMES = ("src", "dst", "weight")

# What the readers of files call the arguments of this function.
_ARGUMENTS = {"src_column": "src", "dst_column": "dst", "weight_column": "weight"}


def _argument_text(name: str, value: object = None) -> str:
    name = _ARGUMENTS.get(name, name)
    return name if value is None else f"{name}={value!r}"


def graph_from_edges(
    *edges: Any,
    src: Any = None,
    dst: Any = None,
    weight: Any = None,
    directed: bool | None = None,
    vertices: Any = None,
    weight_type: str = "auto",
) -> Graph:
    """Build a graph from a table of edges, or from columns.

    ``graph_from_edges(table)`` takes a table whose columns are known by their names, as ``read_graph`` does for files;
    ``src``, ``dst`` and ``weight`` name others. ``graph_from_edges(src, dst, weight)`` takes the columns themselves.

    Parallel edges keep the minimum weight. Self-loops are dropped; ``sssp`` refuses a source that reaches one of negative
    weight. An undirected edge is stored in both directions with the minimum of their weights. ``graph.report`` counts
    everything that is dropped, and says which columns were used.

    Parameters
    ----------
    *edges : table, or src, dst and optionally weight
        A table is a data frame of pandas, GeoPandas, polars, cuDF or Dask; a pyarrow table, record batch or reader; a
        relation of DuckDB; any object with ``__arrow_c_stream__`` or ``__dataframe__``; a mapping of columns; a square
        sparse matrix of SciPy or CuPy in any format, whose stored entries are edges, explicit zeros included; a list of
        ``(src, dst)`` or ``(src, dst, weight)``; or an ``edge_index`` of shape (2, n_edges). Named levels of a data
        frame's index are columns.
        A column of ids has shape (n_edges,) and holds integers or strings: arrays of NumPy or CuPy, tensors, lists,
        ranges, Series, pyarrow arrays.
        What is in GPU memory and has integer ids gives a graph on the GPU, everything else a graph on the CPU.
    src, dst, weight : str or column, optional
        With a table, names of its columns. Without one, the columns. Weights are finite numbers. Distances of integer
        weights are exact integers. Those of float weights are sums rounded from left to right.
    directed : bool, optional
        False: each row is an edge in both directions. By default edges are directed.
    vertices : sequence of ids, optional
        Additional vertices, which may have no edge.
    weight_type : {"auto", "float32", "float64"}
        Type of float weights and of their distances. ``"float32"`` rounds float64 input. For integer weights it is the
        type in which exact distances are returned, or float64 if the weights need that. A distance that the type cannot
        represent raises ``PrecisionError``.

    Returns
    -------
    Graph

    Raises
    ------
    EdgeListError
        Ids are neither integers nor strings; weights are NaN, infinite or beyond int64; a column has nulls or masked
        rows; columns are missing, or several could be meant.
    InputError
        Another argument has a wrong type or value.
    DeviceError
        Columns are on different devices.

    Examples
    --------
    >>> graph = graph_from_edges(np.array([10, 20]), np.array([20, 30]), directed=False)
    >>> graph.n_vertices, graph.n_edges
    (3, 4)
    >>> import pandas
    >>> roads = pandas.DataFrame({"from": ["Ulm", "Bonn"], "to": ["Bonn", "Kiel"], "minutes": [240, 300]})
    >>> graph_from_edges(roads)
    <Graph: 3 vertices, 2 stored edges, directed, integer weights, cpu>
    """
    directed = True if directed is None else arguments.flag("directed", directed)
    arguments.choice("weight_type", weight_type, WEIGHT_TYPES)
    rules = BuildRules(directed=directed, weight_type=weight_type)
    if (len(edges) == 1 and dst is None and is_table(edges[0])) or (len(edges) == 1 and _are_names(src, dst, weight)):
        return _from_table(edges[0], {"src": src, "dst": dst, "weight": weight}, vertices, rules)
    columns = _columns(edges, {"src": src, "dst": dst, "weight": weight})
    return _from_columns(columns, vertices, rules)


def _are_names(*values: Any) -> bool:
    return any(isinstance(value, str) for value in values)


def _columns(positional: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """The columns by role, from what was given by position and by name."""
    if len(positional) > len(_NAMES):
        raise InputError(f"graph_from_edges takes a table, or src, dst and weight, not {len(positional)} columns")
    twice = [name for name, _ in zip(_NAMES, positional, strict=False) if named[name] is not None]
    if twice:
        raise InputError(f"{twice[0]} is given twice, by position and by name")
    columns = {**named, **dict(zip(_NAMES, positional, strict=False))}
    return {name: column for name, column in columns.items() if column is not None or name != "weight"}


def _from_columns(columns: dict[str, Any], vertices: Any, rules: BuildRules) -> Graph:
    import pyarrow

    columns = {role: as_column(role, column) for role, column in columns.items()}
    if any(isinstance(column, pyarrow.ChunkedArray) for column in columns.values()):
        edges = edges_of_columns(columns, ReadOptions(), DataFile.named("the edge list"))
        return graph_of(edges, "cpu", _ids(vertices), rules)
    return graph_from_arrays(*columns.values(), vertices=vertices, directed=rules.directed, weight_type=rules.weight_type)


def _from_table(table: Any, names: dict[str, Any], vertices: Any, rules: BuildRules) -> Graph:
    for name, value in names.items():
        if value is not None:
            arguments.text(name, value, "the name of a column of the table")
    options = ReadOptions(src_column=names["src"], dst_column=names["dst"], weight_column=names["weight"])
    with options_spelled(_argument_text):
        edges = read_table(table, options)
    del table
    columns = edges.columns
    device = device_of(next(iter(edges.table.values()))) if isinstance(edges.table, dict) else "cpu"
    if type(edges.table).__module__.partition(".")[0] == "cudf":
        device = "cuda"
    graph = graph_of(edges, device, _ids(vertices), rules)
    return replace(graph, report=graph.report.with_columns(columns))


def _ids(vertices: Any) -> Any:
    return None if vertices is None else arguments.ids("vertices", vertices)
