"""Files of planners: networks and trips in TNTP and GMNS, matrices in OMX, tables for map
matching.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import arguments
from .._arrays import sort_distinct, to_host
from ..errors import EdgeListError, InputError, listed, option_text
from ..formats import gmns, omx, tntp
from ..formats.column_names import end_pairs
from ..graph import Graph
from ..graph.ids import ends_of_one_type
from ..labels import columns_in_order
from ..runtime.regular_files import written_whole
from ..search.frames import Column, frame_from
from ..sssp import sssp_many

_UBODT_HEADER = "source;target;next_n;prev_n;next_e;distance\n"


class RoadNetwork(NamedTuple):
    """A road network that was read from a file.

    Attributes
    ----------
    links : pandas.DataFrame
        A row per directed link. ``read_network`` says which columns each format has.
    closed : list of int
        The ids of the vertices at which paths begin and end, but through which none leads,
        ascending. In TNTP these are the vertices with an id below FIRST THRU NODE. Empty where the
        file does not say.
    """

    links: Any
    closed: list[int]


def read_network(path: Any, *, use: str | None = None) -> RoadNetwork:
    """Read the links of a TNTP file (``.tntp``) or a GMNS folder (or its ``link.csv``).

    Parameters
    ----------
    path : path
        A file or a folder.
    use : str, optional
        Of GMNS: read only the links that this may use, such as ``"auto"``, by their
        ``allowed_uses``. A link without ``allowed_uses`` is open to all. Default: all links, with
        an ``EdgeListWarning`` if some are not open to all.

    Returns
    -------
    RoadNetwork
        Of TNTP the columns of the file, from ``init_node`` to ``link_type``. Of GMNS ``src``,
        ``dst``, ``is_reverse``, ``length``, ``free_flow_time`` in minutes, ``capacity`` of all
        lanes, ``toll``, and ``b``, ``power`` and ``link_id`` where the file has them.
        ``kepler_traverse.assignment`` takes both.

    Raises
    ------
    EdgeListError, InputError
        The message names file, line or row, and column.
    """
    if use is not None:
        arguments.text("use", use)
    if _is_tntp(path):
        if use is not None:
            raise InputError(
                f"{option_text('use', use)} is for GMNS; TNTP files have no uses of links"
            )
        # ``first_through`` is FIRST THRU NODE: no path leads through vertices of smaller ids.
        first_through, columns = tntp.read_link_table(path)
        vertices = sort_distinct(np.concatenate([columns["init_node"], columns["term_node"]]))
        return RoadNetwork(_make_frame(columns), vertices[vertices < first_through].tolist())
    # GMNS has no closed vertices. Only links that ``use`` may take are read; None: all.
    return RoadNetwork(_make_frame(gmns.read_link_table(path, use)), [])


def read_trips(path: Any) -> Any:
    """Read the trips of a TNTP file, or of ``demand.csv`` of a GMNS folder.

    Parameters
    ----------
    path : path
        A file with the ending ``.tntp``, or a folder.

    Returns
    -------
    data frame
        ``origin``, ``destination``, ``volume``, in the order of the file.
    """
    if _is_tntp(path):
        return _make_frame(tntp.read_trip_table(path))
    return _make_frame(gmns.read_trip_table(path))


def _is_tntp(path: Any) -> bool:
    """Return whether a path names a TNTP file: one of its endings is ``.tntp``. Any other path
    names a network of GMNS.
    """
    return ".tntp" in _checked_path(path).suffixes


def _make_frame(columns: dict[str, Any]) -> Any:
    """Return columns, arrays in host memory by name, as a pandas data frame in this order."""
    return frame_from({name: Column(values) for name, values in columns.items()}, "cpu")


def write_omx(
    path: Any, table: Any, columns: str | Sequence[str] | None = None, *, lookup: str = "zone"
) -> None:
    """Write a table of pairs as OMX matrices, which openmatrix reads. Needs the extra ``omx``.

    Parameters
    ----------
    path : path
        A new file, or one to replace.
    table : table
        A pair per row: two columns of ids with known names (``origin`` and ``destination``,
        ``source`` and ``target``), and the values.
    columns : str or sequence of str, optional
        One matrix each. Default: all others.
    lookup : str
        The name of the array with the ids of the zones, which are those of both ends, ascending.

    Raises
    ------
    InputError
        A pair has two rows, or a column is missing. Pairs without a row are NaN.
    """
    # ``origin`` and ``destination`` are the names of the columns of the pairs, and ``names`` are
    # the names of the columns of values.
    table_columns = arguments.columns("table", table)
    if table_columns is None:
        raise InputError(f"table must be a table, not {arguments.describe(table)}")
    table_columns = columns_in_order("table", table_columns)  # rows in one order, by their labels
    pairs = end_pairs([str(name) for name in table_columns])  # pairs of names known as ends
    if len(pairs) != 1:
        raise InputError(
            f"table: it is not sure which columns hold the pairs; it has {listed(table_columns)}; "
            "rename two to origin and destination"
        )
    origin, destination = pairs[0]
    path = _checked_path(path)
    arguments.text("lookup", lookup)
    if columns is None:
        names = [name for name in table_columns if name not in (origin, destination)]
    else:
        names = arguments.names("columns", columns)
    missing = next((name for name in names if name not in table_columns), None)
    if missing is not None or not names:
        raise InputError(
            f"table has no column {missing!r} of values; it has {listed(table_columns)}"
        )
    # InputError for a name that HDF5 does not take, such as one with a slash
    omx.check_names([*names, lookup])

    # ``zones`` has the ids of both ends, ascending: zone i is row i and column i of each matrix.
    # ``cells`` has, per pair, its position in a matrix that is flattened row by row.
    # The ends are arrays of one integer type or lists of strings; InputError if they are mixed.
    origins, destinations = ends_of_one_type(
        "table",
        {origin: table_columns[origin], destination: table_columns[destination]},
    )
    if not len(origins):
        raise InputError("table has no row; OMX holds no matrix without zones")
    zones, places = np.unique(np.concatenate([origins, destinations]), return_inverse=True)
    rows_of_matrix, columns_of_matrix = np.split(places, 2)
    cells = rows_of_matrix * zones.size + columns_of_matrix
    omx.require_memory(path, zones.size**2, len(names))  # CapacityError if matrices do not fit
    if sort_distinct(cells).size < cells.size:
        ordered = np.sort(cells)
        cell = ordered[np.flatnonzero(ordered[1:] == ordered[:-1])[0]]
        raise InputError(
            f"table: the pair {zones[cell // zones.size]} to {zones[cell % zones.size]} has two rows"
        )

    # A matrix per column of values; pairs without a row stay NaN.
    matrices = {}
    for name in names:
        owner = f"table, column {name!r}"
        # float64, NaN for nulls; InputError for an integer that float64 does not hold
        column = _float_values(owner, table_columns[name])
        values = np.full(zones.size**2, np.nan)
        # ``size`` returns the column, or raises InputError if it has not a value per pair.
        values[cells] = arguments.size(owner, column, cells.size, f"one per {origin!r}")
        matrices[name] = values.reshape(zones.size, zones.size)
    omx.write_matrices(path, matrices, zones, lookup)


def _checked_path(path: Any) -> Path:
    """Return what a caller has given as a path as ``Path``; InputError if it is no path. Whether a
    file or folder of this name exists is not checked.
    """
    if not arguments.is_path(path):
        raise InputError(f"path must be a path, not {arguments.describe(path)}")
    return Path(path)


def _float_values(name: str, column: Any) -> np.ndarray:
    """Return a column of numbers as a float64 array in host memory, NaN where the column is null.

    ``name`` says what the column is, for errors. InputError for an integer that float64 does not
    hold exactly.
    """
    if not hasattr(column, "isna"):  # no series of pandas or cuDF, so it has no nulls of theirs
        return omx.exact_floats(name, to_host(arguments.as_array(name, column)))
    is_known = ~np.asarray(to_host(column.isna()), np.bool_)
    values = np.full(is_known.size, np.nan)
    values[is_known] = omx.exact_floats(name, to_host(arguments.as_array(name, column[is_known])))
    return values


def read_omx(
    path: Any, matrices: str | Sequence[str] | None = None, *, lookup: str | None = None
) -> Any:
    """Read OMX matrices as a table of pairs. Needs the extra ``omx``.

    Parameters
    ----------
    path : path
    matrices : str or sequence of str, optional
        Default: all.
    lookup : str, optional
        The array with the ids of the zones, if there are several. Without one, zones are numbered
        from 1.

    Returns
    -------
    data frame
        ``origin``, ``destination``, and a column per matrix. Pairs that are NaN in all are left
        out.
    """
    names = None if matrices is None else arguments.names("matrices", matrices)
    if lookup is not None:
        arguments.text("lookup", lookup)
    # ``matrix_of`` has float64 matrices by name, all of one shape. ``origins`` and ``destinations``
    # have the ids of their rows and columns.
    matrix_of, origins, destinations = omx.read_matrices(_checked_path(path), names, lookup)
    has_value = np.logical_or.reduce([~np.isnan(matrix) for matrix in matrix_of.values()])
    row, column = np.nonzero(has_value)
    pairs = {"origin": origins[row], "destination": destinations[column]}
    twice = next((name for name in matrix_of if name in pairs), None)
    if twice is not None:
        raise InputError(
            f"{path}: a matrix is called {twice!r}, as a column of the pairs is; name others by matrices="
        )
    return _make_frame(pairs | {name: matrix[row, column] for name, matrix in matrix_of.items()})


def write_ubodt(graph: Graph, path: Any, cutoff: float, *, sources: Any = "all") -> int:
    """Write the table of fast map matching (fmm): the shortest path of each pair within a bound.

    The table has a row per source and other vertex that the source reaches within ``cutoff``.

    Parameters
    ----------
    graph : Graph
        Weighted, with integer ids, and with ``edge_ids=True``, by which edges have numbers.
    path : path
        A text file: ``source;target;next_n;prev_n;next_e;distance``, sources in their order and
        targets ascending. ``next_n`` is the vertex after the source, ``prev_n`` that before the
        target, and ``next_e`` the row of the first edge in the edge list. Vertices are ids: fmm
        expects those of its own index, from 0.
    cutoff : float
        The largest distance, inclusive.
    sources : ids or "all"
        The vertices at which the paths begin; ``"all"`` for every vertex of the graph.

    Returns
    -------
    int
        The number of rows.
    """
    arguments.instance("graph", graph, Graph, "read_graph and graph_from_edges make one")
    path = _checked_path(path)
    if graph.has_string_ids:
        raise InputError("fmm knows vertices by integers; this graph has ids that are strings")
    if graph.closed is not None:
        raise InputError("fmm knows no closed vertices; build the graph without closed=")
    if graph.edge_rows is None:
        raise InputError("graph has no numbers of edges; build it with edge_ids=True")
    # One group of sources at a time is in memory. Rows are written to ``partial``, a temporary
    # file, which takes the place of ``path`` when all rows are written.
    n_rows = 0
    # With ``stream`` it yields a frame per group of sources.
    groups = sssp_many(graph, sources, result="predecessors", cutoff=cutoff, stream=True)
    with written_whole(path) as partial, partial.open("w", encoding="ascii") as file:
        file.write(_UBODT_HEADER)
        for group in groups:
            n_rows += _write_rows(graph, group, file)
    return n_rows


def _write_rows(graph: Graph, group: Any, file: Any) -> int:
    """Write the rows of a group of sources to an open text file; return their number.

    ``group`` is a frame of ``sssp_many`` with the columns ``source``, ``vertex``, ``predecessor``
    and ``distance``; the predecessor of a source is the source itself. All is computed on the host,
    which writes the text. Arrays of vertices have vertex numbers, one per row of ``group``.
    """
    source = to_host(graph.to_numbers(group["source"]))
    vertex = to_host(graph.to_numbers(group["vertex"]))
    before = to_host(graph.to_numbers(group["predecessor"]))
    distance = np.asarray(group["distance"])
    is_target = vertex != source  # the row of a source itself is not written

    # ``row_before`` has, per row, the row of the same source whose vertex is the predecessor. It is
    # found by a key of source and vertex, which is unique.
    key = source * graph.n_vertices + vertex
    order = np.argsort(key, kind="stable")
    row_before = order[np.searchsorted(key[order], source * graph.n_vertices + before)]

    # ``first_row`` has, per row, the row of the vertex after the source on the path, -1 until it is
    # known. All rows of one path share it, so that it is taken from a row further back on the path.
    # Each step doubles how far back ``row_before`` leads, so that few steps suffice for long paths.
    # A row whose predecessor is the source is itself the row of that vertex.
    first_row = np.where(before == source, np.arange(vertex.size), -1)
    while (first_row < 0).any():
        first_row = np.where(first_row < 0, first_row[row_before], first_row)
        row_before = row_before[row_before]
    first = vertex[first_row]  # of each row, the vertex after the source on the path

    columns = [to_host(graph.ids_at(v[is_target])) for v in (source, vertex, first, before)]
    columns.append(_rows_of_edges(graph, source[is_target], first[is_target]))
    columns.append(distance[is_target])
    file.writelines(
        f"{source_id};{target};{next_n};{prev_n};{next_e};{length}\n"
        for source_id, target, next_n, prev_n, next_e, length in zip(
            *(column.tolist() for column in columns), strict=True
        )
    )
    return int(is_target.sum())


def _rows_of_edges(graph: Graph, tails: np.ndarray, heads: np.ndarray) -> np.ndarray:
    """Return, per pair of ``tails`` and ``heads``, the row in the edge list of the edge from the
    tail to the head.

    ``tails`` and ``heads`` are vertex numbers, int64 arrays of the same length. EdgeListError if
    the graph lacks one of the edges.
    """
    # Each edge of the graph has the key tail * n + head.
    offsets = to_host(graph.offsets)
    targets = to_host(graph.targets).astype(np.int64)
    n = graph.n_vertices
    keys = np.repeat(np.arange(n), np.diff(offsets)) * n + targets  # ascending, as lists are sorted
    wanted = tails * n + heads
    edges = np.searchsorted(keys, wanted)
    if (edges == keys.size).any() or not np.array_equal(keys[edges], wanted):
        raise EdgeListError("an edge of a shortest path is not in the graph")
    return to_host(graph.edge_rows)[edges]
