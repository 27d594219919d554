"""Distances of pairs: one row per row given. Searches are grouped by origin, and each may stop at
its own destinations.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import arguments
from ..cpu.counting_sort import stable_order
from ..errors import EdgeListError, InputError, UnknownVertexError
from ..formats.column_names import end_pairs, listed
from ..formats.tables import (
    as_arrow_column,
    column_tuple,
    holds_rows,
    listed_rows,
    require_same_lengths,
)
from ..graph import Graph
from ..graph.closed import where_pairs_end, where_paths_end
from ..labels import columns_in_order, ends_in_order, get_index, index_of_rows, named_levels
from ..protocols import Ids
from ..search.frames import Column, columns_on_device, frame_from
from ..search.query import PairTable, TargetLists
from ..search.results import Traversals
from .along import columns_of_sums, sums_of_group
from .records import (
    Asked,
    SourceRecords,
    Values,
    columns_of_records,
    join_records,
    records_of_group,
)
from .result_kinds import RESULT_KINDS, KindOptions


def pair_table(origins: np.ndarray, destinations: np.ndarray) -> PairTable:
    """Return rows of origin and destination as a ``PairTable``: grouped by origin, the origins in
    the order of their first rows.

    ``origins`` and ``destinations`` are vertex numbers, int64 of shape (n_rows,). Rows of one
    origin stay in their order.
    """
    distinct, first_rows, place_of_row = np.unique(origins, return_index=True, return_inverse=True)
    order = np.argsort(first_rows, kind="stable")
    # ``place_of_row`` numbers the origins by ascending vertex, and ``order`` lists these numbers by
    # the first row of each. A rank is the number of an origin in that second order.
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    rank_of_row = rank[place_of_row]

    rows, offsets = stable_order(rank_of_row, order.size)
    return PairTable(distinct[order], TargetLists(offsets, destinations[rows]), rows)


class Ends(NamedTuple):
    """Two columns of ids in one order: row i is a pair."""

    # origins, destinations: the user's ids, of the same length
    origins: Ids
    destinations: Ids
    index: Any = None  # the pandas index of the rows; None if they have no labels


def ends_of_columns(
    origins: Any, destinations: Any, names: tuple[str, str] = ("origins", "destinations")
) -> Ends:
    """Return two columns of ids, ``origins`` and ``destinations``, as ``Ends``: row i of both is a
    pair. ``names`` are what errors call them.

    Raises InputError: a set has no order; or the columns have labels that differ.
    """
    for name, column in zip(names, (origins, destinations), strict=True):
        if isinstance(column, (set, frozenset)):
            raise InputError(f"{name} must be a list; a set has no order")
    return Ends(*ends_in_order(names, (origins, destinations)))


def ends_of_pairs(
    given: Any, name: str = "pairs", ends: tuple[str, str] = ("origins", "destinations")
) -> Ends:
    """Return the pairs that one argument, ``given``, has as ``Ends``: a tuple of two columns, rows
    of two ids, or a table with two columns of known names.

    ``name`` and ``ends`` are what errors call the pairs and their two columns.

    Raises InputError: it is none of these, or could be rows as well as columns.
    """
    unnamed_ends = _ends_without_names(given, name, ends)
    if unnamed_ends is not None:
        return unnamed_ends
    columns = _columns_by_name(given, name, ends)
    # the pairs of columns whose names say that they are origins and destinations
    candidates = end_pairs(list(columns))
    if len(candidates) != 1:
        raise InputError(
            f"it is not sure which columns hold the {name}; the table has "
            f"{listed(list(columns))}; give two columns, ({ends[0]}, {ends[1]})"
        )
    origin, destination = candidates[0]
    return Ends(columns[origin], columns[destination], index_of_rows(given))


def columns_of_pairs(
    given: Any, name: str = "pairs", ends: tuple[str, str] = ("origin", "destination")
) -> dict[str, Any]:
    """Return pairs, ``given`` in any form that ``ends_of_pairs`` takes, as Arrow columns of one
    length, by name.

    A table keeps all its columns. Two columns, and rows of two ids, have no names: they get those
    of ``ends``. ``name`` is what errors call the pairs.

    Raises InputError: as ``ends_of_pairs``; or a column holds values of several types, or is
    shorter than another.
    """
    unnamed_ends = _ends_without_names(given, name, ends)
    if unnamed_ends is not None:
        columns = dict(zip(ends, (unnamed_ends.origins, unnamed_ends.destinations), strict=True))
    else:
        columns = _columns_by_name(given, name, ends)
    return typed_columns(name, columns)


def typed_columns(name: str, columns: dict[str, Any]) -> dict[str, Any]:
    """Return columns by name as Arrow columns of one length. ``name`` is what errors call their
    table.

    Raises InputError: a column holds values of several types, or is shorter than another.
    """
    typed = {role: as_arrow_column(f"{name}: {role}", column) for role, column in columns.items()}
    require_same_lengths(typed)
    return typed


def _ends_without_names(given: Any, name: str, ends: tuple[str, str]) -> Ends | None:
    """Return the pairs that ``given`` has as ``Ends``, if it is a tuple of two columns, or rows of
    two ids; None for anything else, such as a table.

    ``name`` and ``ends`` are what errors call the pairs and their two columns.
    """
    columns = column_tuple(given)
    if columns is not None and len(columns) == 2:
        return ends_of_columns(*columns, ends)
    if not holds_rows(given):
        return None
    words = ", ".join(end.removesuffix("s") for end in ends)  # "origin, destination"
    try:
        rows = listed_rows(name, given, "pairs", f"({words})")
    except EdgeListError as error:
        raise InputError(error.message) from None
    return Ends([row[0] for row in rows], [row[1] for row in rows])


def _columns_by_name(given: Any, name: str, ends: tuple[str, str]) -> dict[str, Any]:
    """Return the columns of a table by name, with the levels of its index that have names.

    ``name`` and ``ends`` are what errors call the pairs and their two columns. Raises InputError:
    ``given`` is no table.
    """
    columns = arguments.columns(name, given)
    if columns is None:
        words = ", ".join(end.removesuffix("s") for end in ends)  # "origin, destination"
        raise InputError(
            f"{name} must be ({ends[0]}, {ends[1]}), rows of ({words}), or a table with two such "
            f"columns, not {arguments.describe(given)}"
        )
    columns = columns_in_order(name, named_levels(get_index(given)) | columns)
    return {str(each): column for each, column in columns.items()}


def numbers_of_pairs(
    graph: Graph,
    origins: Ids,
    destinations: Ids,
    names: tuple[str, str] = ("origins", "destinations"),
) -> tuple[np.ndarray, np.ndarray]:
    """Return the vertex numbers of the origins and of the destinations, two int64 arrays of shape
    (n_pairs,).

    They are the numbers where paths begin, and where they end: these differ for closed vertices,
    through which no path leads. ``names`` are the arguments that errors name.

    Raises UnknownVertexError (a row holds no vertex of the graph; the message names the row and the
    id) or InputError (there are not as many origins as destinations).
    """
    begins = numbers_of_rows(graph, names[0], origins)
    ends = numbers_of_rows(graph, names[1], destinations)
    if begins.size != ends.size:
        raise InputError(
            f"{begins.size} {names[0]} and {ends.size} {names[1]}: a pair needs one of each, so give columns of "
            "the same length"
        )
    return begins, where_pairs_end(graph, begins, ends)


def _find_unknown(graph: Graph, ids: Any, role: str) -> int:
    """Return the first row whose id is that of no vertex. There must be one.

    The error for many ids does not say which row is wrong. So half of the rows are looked up, and
    then half of the remaining ones, until one row is left. ``role`` is what errors call a vertex.
    """
    # The row is from here to ``end - 1``.
    row = 0
    end = len(ids)
    while end - row > 1:
        middle = (row + end) // 2
        try:
            graph.to_numbers(ids[row:middle], role)
            row = middle
        except UnknownVertexError:
            end = middle
    return row


def numbers_of_rows(graph: Graph, name: str, given: Ids) -> np.ndarray:
    """Return the vertex numbers, int64, of one column of ids, ``given``. ``name`` is the name of
    the column in errors.

    Raises UnknownVertexError: an id is missing, or is that of no vertex; the message names the row.
    """
    given = arguments.arrow(name, given)  # a valid array of pyarrow, if it is a column of Arrow

    # What a table marks as missing, of pandas or of Arrow, is named before ids are looked up.
    if hasattr(given, "isna"):
        missing = given.isna()
    elif hasattr(given, "is_null"):
        missing = given.is_null()
    else:
        missing = None
    if missing is not None:
        is_missing = np.asarray(missing, bool)
        if is_missing.any():
            raise UnknownVertexError(
                f"{name}, row {int(is_missing.argmax())}: it holds no id; drop such rows"
            )

    ids = arguments.ids(name, given)
    role = name.removesuffix("s")
    try:
        return graph.to_numbers(ids, role)
    except UnknownVertexError:
        row = _find_unknown(graph, ids, role)
        # Data frames mark what is missing with NaN, which differs from itself.
        if ids[row] is None or ids[row] != ids[row]:
            raise UnknownVertexError(f"{name}, row {row}: it holds no id; drop such rows") from None
        # The error of this row alone names its id, and the row is added to it.
        try:
            graph.to_numbers(ids[row : row + 1], role)
        except UnknownVertexError as error:
            raise UnknownVertexError(f"{name}, row {row}: {error}") from None
        raise


def frame_of_pairs(
    name: str,
    plan: Any,
    table: PairTable,
    without: str,
    options: KindOptions,
    index: Any = None,
) -> Any:
    """Search from all origins of a table of pairs and return a frame in the order of the rows of
    the table.

    Parameters
    ----------
    name : str
        The name of the kind, such as "pairs" or "paths".
    plan : MultiSourcePlan
        The plan for the origins, with their destinations as targets.
    table : PairTable
    without : str
        The column of the kind that the frame leaves out.
    options : KindOptions
        The checked options of the kind.
    index : pandas.Index, optional
        The labels of the rows of the table, for kinds with one record per row.
    """
    graph = plan.graph
    asked: Asked[Any] = Asked(
        kind=RESULT_KINDS[name],
        graph=graph,
        algorithm=plan.algorithm,
        query=plan.query,
        options=options,
        pairs=table,
    )
    # What lies beyond the limit need not be cut from the searches (``cut``): records leave it out.
    if plan.query.targets is not None:  # one origin, whose plan has its destinations
        groups = iter([plan.run(table.sources, cut=False)])
    else:
        groups = plan.iter_groups(table.sources, table.lists, cut=False)
    # The records of each group, and the source of each record: ``sizes`` has how many records each
    # source of the group has.
    parts = []
    sources = [np.zeros(0, np.int64)]
    for group in groups:
        parts.append(records_of_group(asked, group))
        sources.append(np.repeat(group.sources, parts[-1].sizes))
    records = join_records(parts)

    # Groups are by origin: put the records into the order of the rows, those of a row as they are.
    # Where there are none, their numbers have no integer type yet.
    row_of_record = records.values["pair"].astype(np.int64, copy=False)
    order, _ = stable_order(row_of_record, table.rows.size)
    columns = columns_of_records(asked, np.concatenate(sources)[order], records.take(order))
    del columns[without]
    frame = frame_from(columns_on_device(columns, graph), graph.device)
    if index is not None:
        frame.index = index
    return frame


def make_records(asked: Asked, group: Traversals) -> SourceRecords:
    """Return the records ``pair, target, distance, missing``, one per row of the table of pairs,
    and the sums of columns along the paths.

    The records are by origin. ``pair`` is the number of the row in the table. ``missing`` is True
    where there is no path within the limit.

    ``asked`` is what is asked of the kind, and ``group`` has the distances from some of the
    sources.
    """
    table = asked.select_pairs(group)
    distance = group.distance

    # A search that knows the destinations of each origin returns one distance per pair. Another one
    # returns an array with a row per origin: of all vertices, or of the targets of all origins.
    if distance.ndim > 1:
        lists = table.lists
        # the vertex number of each column of the distances; None if they are those of all vertices
        columns = None if asked.query.output == "all" else asked.query.targets
        # The targets are numbers where paths end. A pair of a closed vertex with itself, whose path
        # has no edge, has the number where paths begin.
        if columns is not None:
            lists = lists._replace(vertices=where_paths_end(asked.graph, lists.vertices))
        distance = lists.take(distance, columns)

    # in the type of the result; ``missing`` is True also beyond the limit
    distance, missing = asked.returned(distance)
    values = {
        "pair": table.rows,
        "target": table.lists.vertices,
        "distance": distance,
        "missing": missing,
    }
    values |= sums_of_group(asked, group, table.lists)
    return SourceRecords(values, np.diff(table.lists.offsets))


def make_columns(asked: Asked, values: Values) -> dict[str, Column]:
    """Return columns ``pair, target, distance``, and the sums along the paths. Distances and sums
    are null where there is no path.

    ``asked`` is what is asked of the kind, and ``values`` has the arrays of the records by name.
    """
    columns = asked.columns_at_targets(values)
    sums = columns_of_sums(asked.options, values, columns["distance"].is_null)
    return {"pair": Column(values["pair"]), **columns, **sums}


def rows(question: Any, n_vertices: int, depth: int) -> tuple[int, int]:  # noqa: ARG001
    """Return the number of pairs of an origin: the mean, rounded up, and the largest. ``question``
    is a ``Question`` with pairs. The numbers of vertices and of levels are ignored: a record is a
    pair.
    """
    return question.pairs.rows_per_source
