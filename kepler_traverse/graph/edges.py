"""Build a Graph from edges in memory: a table of any library, or columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .. import arguments
from .._arrays import get_device, pyarrow
from ..errors import EdgeListError, InputError, options_spelled
from ..formats import ReadOptions, tables
from ..formats.files import WEIGHTS, DataFile
from ..formats.selection import RowSelection, make_directions
from ..labels import Partner, digest_of_labels, ends_in_order, in_order, index_of_rows
from . import Graph
from .build import graph_from_arrays
from .edge_list_graph import BuildRules, make_graph, system_memory_pool
from .hints import warn_of_hints, with_hints

_NAMES = ("src", "dst", "weight")  # arguments that may be given by position, in this order

# What the readers of files call the arguments of this function, and what to do here in place of an
# argument it lacks.
_ARGUMENTS = {
    "src_column": "src",
    "dst_column": "dst",
    "weight_column": "weight",
    "oneway_column": "oneway",
    "reverse_weight_column": "reverse_weight",
}


def _argument_text(name: str, value: object = None) -> str:
    """Return the text by which an error names an argument of ``graph_from_edges``: "src" for the
    option "src_column" of the readers of files, or "src='u'" with the value 'u'.

    ``graph_from_edges`` has no argument for "id_type"; the text then says what to do instead.
    """
    if name == "id_type":  # this function has no such argument
        return "a conversion of the integers, such as .astype(str),"
    name = _ARGUMENTS.get(name, name)
    return name if value is None else f"{name}={value!r}"


def graph_from_edges(
    *edges: Any,
    src: Any = None,
    dst: Any = None,
    weight: Any = None,
    reverse_weight: Any = None,
    directed: bool = True,
    vertices: Any = None,
    weighted: bool | None = None,
    weight_type: str = "auto",
    where: Any = None,
    oneway: Any = None,
    only_vertices: Any = None,
    closed: Any = None,
    largest_component: bool = False,
    edge_ids: bool = False,
) -> Graph:
    """Build a graph from a table of edges, or from columns.

    ``graph_from_edges(table)`` takes a table whose columns are known by their names, as
    ``read_graph`` does for files; ``src``, ``dst`` and ``weight`` name others.
    ``graph_from_edges(src, dst, weight)`` takes the columns themselves.

    Parallel edges keep the minimum weight. Self-loops are dropped; ``sssp`` refuses a source that
    reaches one of negative weight. An undirected edge is stored in both directions with the minimum
    of their weights. ``graph.report`` counts everything that is dropped, and says which columns
    were used.

    Parameters
    ----------
    *edges : table, or src, dst and optionally weight
        A table is a data frame of pandas, GeoPandas, polars, cuDF or Dask; a pyarrow table, record
        batch or reader; a relation of DuckDB; any object with ``__arrow_c_stream__`` or
        ``__dataframe__``; a mapping of columns; a square sparse matrix of SciPy or CuPy; a list or
        an iterator of ``(src, dst)`` or ``(src, dst, weight)``; a structured array; an array or
        tensor ``edge_index`` of shape (2, n_edges), also with ``weight=``; or a ``Data`` of PyTorch
        Geometric. Named levels of a data frame's index are columns. Names of columns may follow the
        table in place of ``src=`` and so on. A column of ids has shape (n_edges,) and holds
        integers or strings: arrays of NumPy or CuPy, tensors, lists, ranges, Series, pyarrow
        arrays. ``(src, dst, weight)`` may also be one tuple. Series belong together by their
        labels. What is in GPU memory and has integer ids gives a graph on the GPU, everything else
        a graph on the CPU.
    src, dst, weight : str or column, optional
        With a table, names of its columns. Without one, the columns. Weights are finite numbers, or
        durations, which are seconds. Distances of integer weights are exact integers. Those of
        float weights are sums rounded from left to right.
    reverse_weight : str or column, optional
        A second weight per row, that from dst to src: the row is an edge in both directions. A
        weight in either column that is below 0, null or infinite closes that direction, as in the
        tables of pgRouting. The graph is directed.
    directed : bool
        False: each row is an edge in both directions.
    vertices : sequence of ids, optional
        Additional vertices, which may have no edge.
    weighted : bool, optional
        True: there must be a weight. False: read none. None: read one if it is given, named or
        found.
    weight_type : {"auto", "float32", "float64"}
        Type of float weights and of their distances. ``"float32"`` rounds float64 input. For
        integer weights it is the type in which exact distances are returned, or float64 if the
        weights need that. A distance that the type cannot represent raises ``PrecisionError``.
    where : str or pyarrow.compute.Expression, optional
        The rows of a table that are edges, for example ``"highway != 'motorway' and (lanes >= 2 or
        toll is null)"``. Comparisons are ``==``, ``!=``, ``<``, ``<=``, ``>``, ``>=`` of a column
        with a number, text in quotes, ``true``, ``false`` or another column, ``in (...)``, ``is
        null``, ``is not null``; ``and``, ``or``, ``not`` and parentheses combine them. A column
        alone must hold booleans. Names that are no words stand in backticks. Dates are compared
        with text such as ``'2026-01-31'``. A comparison with a missing value is neither true nor
        false, and only rows are read for which the whole is true. Times of day are compared with
        ``'07:30'``, durations with seconds or ``'00:10:00'``.
    oneway : str or column, optional
        Which rows are edges in one direction: True, 1, ``"yes"``, ``"true"``, ``"forward"`` or
        ``"FT"`` from src to dst only; False, 0, ``"no"``, ``"false"`` or ``"both"`` in both
        directions; -1, ``"-1"``, ``"reverse"``, ``"backward"`` or ``"TF"`` from dst to src only, in
        any case. Or F, B and T in capitals, if one is B. Other values and missing ones are refused.
        The graph is directed. The name of a column of a table; beside columns, a list of edges or
        an ``edge_index`` a column of its own.
    only_vertices : sequence of ids, optional
        The vertices of the graph: edges are kept if both ends are among them. Each must be a vertex
        of the edges that ``where`` leaves, or of ``vertices``.
    closed : sequence of ids, optional
        The vertices through which no path leads: paths may begin and end there, as at the centroid
        of a zone. The graph then has two numbers for each, is directed, and needs weights; see
        ``Graph.closed``. Hops and some results refuse it.
    largest_component : bool
        Keep the largest strongly connected component alone, as ``only_vertices`` of its vertices
        would; ``components`` lists all. Building takes twice as long.
    edge_ids : bool
        Keep which row each edge is: ``graph.edge_rows``, ``paths(..., edges=True)`` and
        ``with_weights``. It takes 4 bytes per stored edge and, if some row has no stored edge of
        its own, 4 per row, or 8 if a row can be two edges (undirected, or ``oneway``). Each is
        twice as much from 2^31 edges on.

    Returns
    -------
    Graph

    Raises
    ------
    EdgeListError
        Ids are neither integers nor strings; weights are NaN, infinite or beyond int64; a column
        has nulls or masked rows; columns are missing, or several could be meant.
    InputError
        Another argument has a wrong type or value.
    DeviceError
        Columns are on different devices.

    Notes
    -----
    The stored entries of a sparse matrix are edges from their row to their column, explicit zeros included, and 0..n-1 are
    the vertices. Boolean entries have no weight. A DIA matrix stores no zeros of its own: as in SciPy, none is an edge. A
    BSR matrix with zeros in its blocks is refused, and so is a matrix that stores an entry twice and has weights.

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
    if only_vertices is not None:
        only_vertices = arguments.ids("only_vertices", only_vertices)
    if closed is not None:
        closed = arguments.ids("closed", closed)
    rules = BuildRules(
        directed=directed,
        weight_type=weight_type,
        edge_ids=edge_ids,
        only_vertices=only_vertices,
        closed=closed,
        largest_component=largest_component,
    )
    # InputError for directions of rows beside directed=False, which makes all rows two-way.
    rules.check_oneway(oneway, "oneway")
    rules.check_oneway(reverse_weight, "reverse_weight")
    if oneway is not None and reverse_weight is not None:
        raise InputError(
            "reverse_weight says by itself which rows are edges in both directions; leave oneway out"
        )
    if weighted is not None:
        weighted = arguments.flag("weighted", weighted)

    # An iterator or a set of edges becomes a list of them. A tuple of columns means the same as the
    # columns.
    named = {"src": src, "dst": dst, "weight": weight, "reverse_weight": reverse_weight}
    if len(edges) == 1:
        edges = (tables.as_rows(edges[0]),)
    if len(edges) == 1 and (columns := tables.column_tuple(edges[0])) is not None:
        edges = columns

    # Three cases: a table with names of its columns by position behind it; an edge_index, which has
    # the two ends alone, with other columns beside it; a table alone, or with names by keyword.
    others = (weight, reverse_weight, oneway)
    has_other_columns = any(column is not None for column in others) and not _has_name(
        *named.values(), oneway
    )
    names = None  # of the columns of a table
    if (
        len(edges) > 1
        and tables.is_table(edges[0])
        and all(isinstance(name, str) for name in edges[1:])
    ):
        names = _merge_columns(edges[1:], named)
    elif len(edges) == 1 and tables.is_edge_index(edges[0]) and has_other_columns:
        edges = (edges[0][0], edges[0][1])
    elif len(edges) == 1 and (tables.is_table(edges[0]) or _has_name(*named.values())):
        names = named
    if names is not None:
        graph = _from_table(edges[0], names, oneway, where, vertices, weighted, rules)
        # Hints say what may have been meant otherwise, such as an unused column of directions.
        warn_of_hints(graph)
        return graph

    # Columns.
    if where is not None:
        raise InputError(
            "where is for tables and files, whose columns have names; "
            "leave the rows out of the columns"
        )
    return _from_columns(_merge_columns(edges, named), oneway, vertices, weighted, rules)


def _has_name(*values: Any) -> bool:
    """Return whether one of some values is the name of a column, and not the column itself."""
    return any(isinstance(value, str) for value in values)


def _merge_columns(positional: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """Return a dict with the keys of ``named``: for each role its column, or the name of its
    column; None if it was not given.

    ``positional`` are the arguments src, dst and weight that were given by position. ``named`` has
    the arguments that were given by keyword, None for others. InputError if more than three are
    given by position, or one both ways.
    """
    if len(positional) > len(_NAMES):
        raise InputError(
            f"graph_from_edges takes a table, or src, dst and weight, not {len(positional)} columns"
        )
    by_position = dict(zip(_NAMES, positional, strict=False))
    twice = next((name for name in by_position if named[name] is not None), None)
    if twice is not None:
        raise InputError(f"{twice} is given twice, by position and by name")
    return {**named, **by_position}


def _require_columns(columns: dict[str, Any], oneway: Any, weighted: bool | None) -> None:
    """Raise InputError unless the columns of ``graph_from_edges`` are enough to build a graph, and
    do not contradict each other.

    ``columns`` has a column or None for ``src``, ``dst``, ``weight`` and ``reverse_weight``.
    """
    if isinstance(columns["src"], str):
        raise EdgeListError(
            (
                "src must be a column, not "
                f"{arguments.describe(columns['src'])}; read_graph reads files"
            ),
            column="src",
        )
    missing = next((role for role in ("src", "dst") if columns[role] is None), None)
    if missing is not None:
        # A single value may be a graph of another library, which has a converter.
        library = type(columns["src"]).__module__.partition(".")[0]
        if library in ("networkx", "igraph", "cugraph"):
            graph = f"; convert.from_{library} takes a graph"
        else:
            graph = ""
        raise EdgeListError(
            f"{missing} is missing: give a table, or src and dst{graph}", column=missing
        )

    if isinstance(oneway, str):
        raise InputError(
            f"oneway={oneway!r} names a column, and there is no table; give the column itself"
        )

    if weighted is False and columns["weight"] is not None:
        raise InputError("weight and weighted=False contradict each other; take one of the two")
    if weighted and columns["weight"] is None:
        raise EdgeListError("weighted=True requires weights: give weight", column="weight")
    if columns["reverse_weight"] is not None and columns["weight"] is None:
        raise EdgeListError(
            "reverse_weight is the weight from dst to src; give that from src to dst, too, by weight",
            column="weight",
        )


def _as_column(role: str, column: Any, closes: bool) -> Any:
    """Return the column of a role as the builder takes it: an array of numbers, or a chunked array
    of pyarrow if it holds strings.

    With ``closes`` a weight may close its direction, so that it may be null.
    """
    if closes and role in WEIGHTS:
        return tables.as_costs(role, column)
    return tables.as_column(role, column)


def _from_columns(
    columns: dict[str, Any], oneway: Any, vertices: Any, weighted: bool | None, rules: BuildRules
) -> Graph:
    """Build a graph of columns in memory.

    ``columns`` has, for ``src``, ``dst``, ``weight`` and ``reverse_weight``, the column or None.
    ``oneway`` is the column of directions, or None. Columns of strings go the way of columns of a
    file; integers are built from the memory and on the device where they are.
    """
    _require_columns(columns, oneway, weighted)
    closes = columns["reverse_weight"] is not None  # whether a weight may close a direction
    # Series are brought into the order of the labels of src and dst, whose digest is ``labels``.
    columns, oneway, labels = _in_one_order(columns, oneway)
    columns = {
        role: _as_column(role, column, closes)
        for role, column in columns.items()
        if column is not None
    }
    directions = _row_directions(oneway, columns["src"])

    # Strings, which Arrow holds, are numbered as strings of a file are. Errors of the readers call
    # their options by the arguments of ``graph_from_edges``.
    if any(isinstance(column, pyarrow.ChunkedArray) for column in columns.values()):
        with options_spelled(_argument_text), system_memory_pool():
            options = ReadOptions(reverse_weight_column="reverse_weight" if closes else None)
            edges = [tables.edges_of_columns(columns, options, DataFile.named("the edge list"))]
            del columns
            # No name is left for the edges here: their memory is given back while the graph is
            # built.
            graph = make_graph(
                replace(edges.pop(), directions=directions), "cpu", _as_ids(vertices), rules
            )
            return _with_labels(graph, labels)

    # Integers are built from where they are.
    tables.require_same_lengths(columns)
    src = columns.pop("src")
    dst = columns.pop("dst")
    weight = columns.pop("weight", None)
    selection = RowSelection(total=src.size, directions=directions)
    graph = graph_from_arrays(
        src,
        dst,
        weight,
        vertices=vertices,
        reverse_weight=columns.pop("reverse_weight", None),
        **rules.builder_arguments(selection, has_string_ids=False),
    )
    return _with_labels(graph, labels)


def _in_one_order(columns: dict[str, Any], oneway: Any) -> tuple[dict[str, Any], Any, str]:
    """Return columns of edges by role, the column of their directions, and the digest of the labels
    of their rows, ``""`` without labels.

    Columns with labels, such as Series, are put in the order of the labels of src and dst. Columns
    that are None stay so.
    """
    src, dst, index = ends_in_order(("src", "dst"), (columns["src"], columns["dst"]))
    # The other columns follow the order of these two; the name is for errors.
    partner = Partner("src and dst", index)
    weights = {role: in_order(role, columns[role], partner) for role in WEIGHTS}
    return (
        {"src": src, "dst": dst, **weights},
        in_order("oneway", oneway, partner),
        digest_of_labels(index),
    )


def _with_labels(graph: Graph, labels: str) -> Graph:
    """Return the graph, with the digest ``labels`` of the labels of its rows in its report.

    A later column of weights per row is then compared with these labels. Only a graph that knows
    its rows takes such a column, so others stay without the digest.
    """
    is_known = labels and graph.edge_rows is not None
    if is_known:
        return replace(graph, report=replace(graph.report, row_labels=labels))
    return graph


def _from_table(
    table: Any,
    names: dict[str, Any],
    oneway: Any,
    where: Any,
    vertices: Any,
    weighted: bool | None,
    rules: BuildRules,
) -> Graph:
    """Build a graph of a table.

    ``names`` has the name of each column by role, or None. ``oneway`` is the name of the column of
    directions; beside a list of edges, which has no names, it may be the column itself.
    """
    if rules.edge_ids:
        labels = digest_of_labels(index_of_rows(table))
    else:
        labels = ""

    # Names of columns; beside edges without names, directions are a column of their own.
    directions = None
    if isinstance(table, (list, tuple)) and not isinstance(oneway, str):
        # Edges of a list have no labels: InputError if those of a Series mean no order of them.
        oneway = in_order("oneway", oneway, Partner("the edges"))
        directions = _row_directions(oneway, table)
        oneway = None
    for name, value in {**names, "oneway": oneway}.items():
        if arguments.is_integer(value):
            raise InputError(
                f"{name} must be the name of a column of the table, as "
                f"text: give {name}={str(value)!r}"
            )
        if value is not None:
            arguments.text(name, value, "the name of a column of the table")

    # The edges are the only element of a list, so that building can free them early. Errors of the
    # readers call their options by the arguments of ``graph_from_edges``.
    with options_spelled(_argument_text), system_memory_pool():
        options = ReadOptions(
            src_column=names["src"],
            dst_column=names["dst"],
            weight_column=names["weight"],
            weighted=weighted,
            oneway_column=oneway,
            reverse_weight_column=names["reverse_weight"],
            where=where,
            may_be_empty=vertices is not None,
        )
        edges = [tables.read_table(table, options)]
        del table
        # A column of directions beside the table has a direction for each row.
        if directions is not None:
            edges = [replace(edges.pop(), directions=directions)]
        columns = edges[0].columns
        device = _device_of_table(edges[0].table)
        graph = make_graph(edges.pop(), device, _as_ids(vertices), rules)
        # ``with_hints`` puts the names of the columns, and hints, into the report.
        return _with_labels(with_hints(graph, columns), labels)


def _device_of_table(table: Any) -> str:
    """Return the device, "cpu" or "cuda", of the table of an ``EdgeList``: a dict of arrays, a
    pyarrow table or a frame of cuDF.
    """
    if isinstance(table, dict):
        return get_device(table["src"])
    if type(table).__module__.startswith("cudf."):
        return "cuda"
    return "cpu"


def _row_directions(oneway: Any, rows: Any) -> Any:
    """Return the directions of rows, int8 of shape (rows,) with the values of
    ``formats.selection``; None without a column of them.

    ``oneway`` is that column, and ``rows`` is anything that has as many elements as there are rows.
    """
    if oneway is None:
        return None
    return make_directions(tables.as_arrow_column("oneway", oneway), len(rows))


def _as_ids(vertices: Any) -> Any:
    """Return additional vertices as a list or an integer array of ids; None stays None."""
    if vertices is None:
        return None
    return arguments.ids("vertices", vertices)
