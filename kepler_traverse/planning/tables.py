"""Files of planners: networks and trips in TNTP and GMNS, matrices in OMX, tables for map matching."""

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
    """A network of a file.

    ``links``: a data frame with a row per directed link. ``closed``: the vertices through which no
    path leads, those below FIRST THRU NODE, ascending; empty where the file does not say.
    """

    links: Any
    closed: list[int]


def read_network(path: Any, *, use: str | None = None) -> RoadNetwork:
    """Read the links of a TNTP file (``.tntp``) or a GMNS folder (or its ``link.csv``).

    Parameters
    ----------
    path : path
    use : str, optional
        Of GMNS: read only the links that this may use, such as ``"auto"``, by their ``allowed_uses``.
        A link without ``allowed_uses`` is open to all. Default: all links, with an
        ``EdgeListWarning`` if some are not open to all.

    Returns
    -------
    RoadNetwork
        Of TNTP the columns of the file, from ``init_node`` to ``link_type``. Of GMNS ``src``, ``dst``,
        ``is_reverse``, ``length``, ``free_flow_time`` in minutes, ``capacity`` of all lanes, ``toll``,
        and ``b``, ``power`` and ``link_id`` where the file has them. ``kepler_traverse.assignment``
        takes both.

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
        table = tntp.read_link_table(path)
        ends = sort_distinct(
            np.concatenate([table.columns["init_node"], table.columns["term_node"]])
        )
        return RoadNetwork(_frame(table.columns), ends[ends < table.first_through].tolist())
    return RoadNetwork(_frame(gmns.read_link_table(path, use)), [])


def read_trips(path: Any) -> Any:
    """Read the trips of a TNTP file, or of ``demand.csv`` of a GMNS folder.

    Returns
    -------
    data frame
        ``origin``, ``destination``, ``volume``, in the order of the file.
    """
    if _is_tntp(path):
        return _frame(tntp.read_trip_table(path))
    return _frame(gmns.read_trip_table(path))


def _is_tntp(path: Any) -> bool:
    return ".tntp" in _path(path).suffixes


def _frame(columns: dict[str, Any]) -> Any:
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
    given = arguments.columns("table", table)
    if given is None:
        raise InputError(f"table must be a table, not {arguments.describe(table)}")
    given = columns_in_order("table", given)
    pairs = end_pairs([str(name) for name in given])
    if len(pairs) != 1:
        raise InputError(
            f"table: it is not sure which columns hold the pairs; it has {listed(given)}; "
            "rename two to origin and destination"
        )
    path = _path(path)
    arguments.text("lookup", lookup)
    if columns is None:
        names = [name for name in given if name not in pairs[0]]
    else:
        names = arguments.names("columns", columns)
    missing = next((name for name in names if name not in given), None)
    if missing is not None or not names:
        raise InputError(f"table has no column {missing!r} of values; it has {listed(given)}")
    omx.check_names([*names, lookup])
    ends = [np.asarray(each) for each in ends_of_one_type("table", {e: given[e] for e in pairs[0]})]
    if not ends[0].size:
        raise InputError("table has no row; OMX holds no matrix without zones")
    zones, places = np.unique(np.concatenate(ends), return_inverse=True)
    rows, cells = np.split(places, 2)
    flat = rows * zones.size + cells
    omx.require_memory(path, zones.size**2, len(names))
    if sort_distinct(flat).size < flat.size:
        again = np.sort(flat)
        pair = again[np.flatnonzero(again[1:] == again[:-1])[0]]
        raise InputError(
            f"table: the pair {zones[pair // zones.size]} to {zones[pair % zones.size]} has two rows"
        )
    matrices = {}
    for name in names:
        values = np.full(zones.size**2, np.nan)
        values[flat] = arguments.size(
            f"table, column {name!r}",
            _values(f"table, column {name!r}", given[name]),
            flat.size,
            f"one per {pairs[0][0]!r}",
        )
        matrices[name] = values.reshape(zones.size, zones.size)
    omx.write_matrices(path, matrices, zones, lookup)


def _path(path: Any) -> Path:
    if not arguments.is_path(path):
        raise InputError(f"path must be a path, not {arguments.describe(path)}")
    return Path(path)


def _values(name: str, column: Any) -> np.ndarray:
    """Return a column of numbers as float64; null is NaN."""
    if not hasattr(column, "isna"):
        return omx.exact_floats(name, to_host(arguments.as_array(name, column)))
    is_there = ~np.asarray(to_host(column.isna()), np.bool_)
    values = np.full(is_there.size, np.nan)
    values[is_there] = omx.exact_floats(name, to_host(arguments.as_array(name, column[is_there])))
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
        The array with the ids of the zones, if there are several. Without one, zones are numbered from
        1.

    Returns
    -------
    data frame
        ``origin``, ``destination``, and a column per matrix. Pairs that are NaN in all are left out.
    """
    names = None if matrices is None else arguments.names("matrices", matrices)
    if lookup is not None:
        arguments.text("lookup", lookup)
    values, rows, columns = omx.read_matrices(_path(path), names, lookup)
    is_there = np.logical_or.reduce([~np.isnan(each) for each in values.values()])
    at = np.nonzero(is_there)
    table = {"origin": rows[at[0]], "destination": columns[at[1]]}
    twice = next((name for name in values if name in table), None)
    if twice is not None:
        raise InputError(
            f"{path}: a matrix is called {twice!r}, as a column of the pairs is; name others by matrices="
        )
    return _frame({**table, **{name: each[at] for name, each in values.items()}})


def write_ubodt(graph: Graph, path: Any, cutoff: float, *, sources: Any = "all") -> int:
    """Write the table of fast map matching (fmm): the shortest path of each pair within a bound.

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

    Returns
    -------
    int
        The number of rows.
    """
    arguments.instance("graph", graph, Graph, "read_graph and graph_from_edges make one")
    path = _path(path)
    if graph.has_string_ids:
        raise InputError("fmm knows vertices by integers; this graph has ids that are strings")
    if graph.closed is not None:
        raise InputError("fmm knows no closed vertices; build the graph without closed=")
    if graph.edge_rows is None:
        raise InputError("graph has no numbers of edges; build it with edge_ids=True")
    n_rows = 0
    groups = sssp_many(graph, sources, result="predecessors", cutoff=cutoff, stream=True)
    with written_whole(path) as partial, partial.open("w", encoding="ascii") as file:
        file.write(_UBODT_HEADER)
        for group in groups:
            n_rows += _write_rows(graph, group, file)
    return n_rows


def _write_rows(graph: Graph, group: Any, file: Any) -> int:
    """Write the rows of a group of sources: a step from each vertex to the one after the source."""
    source = to_host(graph.to_numbers(group["source"]))
    vertex = to_host(graph.to_numbers(group["vertex"]))
    before = to_host(graph.to_numbers(group["predecessor"]))
    distance = np.asarray(group["distance"])
    is_target = vertex != source
    # Within a source, rows are in the order of the vertices: the position of a predecessor follows.
    key = source * graph.n_vertices + vertex
    order = np.argsort(key, kind="stable")
    place = order[np.searchsorted(key[order], source * graph.n_vertices + before)]
    following = np.where(before == source, np.arange(vertex.size), -1)
    while (following < 0).any():
        # Each step doubles the part of the path that is known.
        following = np.where(following < 0, following[place], following)
        place = place[place]
    first = vertex[following]
    rows = _rows_of_edges(graph, source[is_target], first[is_target])
    ids = [to_host(graph.ids_at(each[is_target])) for each in (source, vertex, first, before)]
    columns = zip(
        *(each.tolist() for each in ids), rows.tolist(), distance[is_target].tolist(), strict=True
    )
    file.writelines(f"{s};{t};{n};{p};{e};{d}\n" for s, t, n, p, e, d in columns)
    return int(is_target.sum())


def _rows_of_edges(graph: Graph, tails: np.ndarray, heads: np.ndarray) -> np.ndarray:
    """Return the rows of edges in the edge list."""
    offsets = to_host(graph.offsets)
    targets = to_host(graph.targets).astype(np.int64)
    n = graph.n_vertices
    key = np.repeat(np.arange(n), np.diff(offsets)) * n + targets
    at = np.searchsorted(key, tails * n + heads)
    if not np.array_equal(key[at], tails * n + heads):
        raise EdgeListError("an edge of a shortest path is not in the graph")
    return to_host(graph.edge_rows)[at]
