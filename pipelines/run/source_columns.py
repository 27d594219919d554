"""Columns of the user's tables: the group, the limit, the weight or the partition of sources and
targets, volumes of pairs.

The columns of ``--along``, of the edge list, and the table of ``--through`` are read here, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kepler_traverse._arrays import MAX_HOP_COUNT, MAX_INTEGER, sort_distinct
from kepler_traverse.errors import EdgeListError, InputError, options_spelled
from kepler_traverse.formats import read_edges
from kepler_traverse.formats.column_names import end_pairs, listed
from kepler_traverse.formats.files import shown
from kepler_traverse.graph import Graph
from kepler_traverse.graph.closed import where_pairs_end, where_paths_end
from kepler_traverse.kinds.along import AlongPaths, columns_along
from kepler_traverse.kinds.flows import Through, check_amounts, through_ends, through_rows
from kepler_traverse.kinds.k_nearest import SourceGroups
from kepler_traverse.kinds.nearest import check_start_costs
from kepler_traverse.kinds.opportunities import check_source_weights
from kepler_traverse.kinds.result_kinds import GROUP
from kepler_traverse.search.query import SourceValues

from ..cli.options import Settings, flag_text, options_of_files
from ..output.layout import PARTITION_NAME, partition_name
from ..output.rows import get_id
from .answered_tables import read_source_table
from .given_table import (
    is_text,
    named_columns,
    numbers_in_column,
    plain_column,
    read_given_table,
    read_pair_table,
)

EDGE = "edge"  # the column of a table of edges that are rows of the edge list
_INT64_END = 2**63
_MAX_FOLDER_BYTES = 255  # of the name of the folder of a partition
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"  # what readers of Hive's layout take for null


def read_groups(graph: Graph, settings: Settings, name: str) -> SourceGroups:
    """Return the groups of the sources, by the column ``name`` of their table; for kinds that group
    targets, those of the targets.

    Raises InputError: the table has no such column, or the column holds no integers or texts; the
    message names file, column and row.
    """
    numbers, groups, where = read_column(graph, settings, name, settings.find_table("group"))
    if not pa.types.is_integer(groups.type):
        if not is_text(groups.type):
            raise InputError(f"{where} has type {groups.type}; groups are integers or strings")
        groups = groups.cast(pa.string())
    return SourceGroups(groups.to_pylist(), numbers)


def read_limits(graph: Graph, settings: Settings, name: str) -> SourceValues:
    """Return the limit (hops or distance) of each source, by the column ``name`` of the table of
    sources.

    Raises InputError: the table has no such column; a limit is no number of 0 or more, or for hops
    no integer; a source has two limits. The message names file, column and row.
    """
    numbers, column, where = read_column(graph, settings, name)
    are_hops = settings.algorithm == "bfs"
    if not pa.types.is_integer(column.type) and (are_hops or not pa.types.is_floating(column.type)):
        rule = "limits are numbers: all of a text file are integers, or none has over 15 digits"
        if are_hops:
            rule = "the largest number of hops is an integer"
        raise InputError(f"{where} has type {column.type}; {rule}")

    # Each must be 0 or more and finite; an error names the first row that is not.
    limits = column.to_numpy(zero_copy_only=False)
    is_limit = (limits >= 0) & np.isfinite(limits)
    if limits.dtype.kind == "u":  # limits become int64, which does not hold all of uint64
        is_limit &= limits <= MAX_INTEGER
    wrong = np.flatnonzero(~is_limit)
    if wrong.size:
        row = int(wrong[0])
        raise InputError(
            f"{where}, row {row}: {limits[row].item()!r} is no limit; "
            "give finite numbers of 0 or more"
        )
    if are_hops:  # they are int32 in searches, and no path has more hops
        limits = np.minimum(limits, MAX_HOP_COUNT)
    limits = limits.astype(np.float64 if limits.dtype.kind == "f" else np.int64)

    def two_limits(row: int, first: int) -> InputError:
        """Return the error for a source whose limit in ``row`` differs from that in ``first``, the
        first row that has the source.
        """
        return InputError(
            f"{where}, row {row}: source {get_id(graph, int(numbers[row]))!r} has the limit {limits[row].item()!r} here and "
            f"{limits[first].item()!r} in row {first}; give it one limit"
        )

    return SourceValues.of_rows(numbers, limits, two_limits)


def read_weights(graph: Graph, settings: Settings, name: str) -> SourceValues:
    """Return the weight of each source, by the column ``name`` of the table of sources.

    Raises InputError: the table has no such column; a weight is no finite number; a source has two
    weights. The message names the file.
    """
    numbers, column, where = read_column(graph, settings, name)
    return check_source_weights(graph, numbers, _numbers(where, column), where)


def read_start_costs(graph: Graph, settings: Settings, name: str) -> SourceValues:
    """Return the start cost of each source (what its distances begin with, in place of 0), by the
    column ``name`` of the table of sources.

    Raises InputError: the table has no such column; a cost is no number of 0 or more that the
    weights of the graph could be; a source has two. The message names the file.
    """
    numbers, column, where = read_column(graph, settings, name)
    return check_start_costs(graph, numbers, _numbers(where, column, "start costs"), where)


def read_target_weights(graph: Graph, settings: Settings, name: str) -> np.ndarray:
    """Return the weight of each target, by the column ``name`` of the table of targets, in the
    order of its rows (array of shape (rows,)).

    Raises InputError: the table has no such column; a weight is no finite number of 0 or more. The
    message names the file.
    """
    numbers, column, where = read_column(graph, settings, name, "targets")
    if sort_distinct(numbers).size < numbers.size:
        raise InputError(
            f"{settings.targets_file}: a target has several rows, and each "
            "its weight; give one row per target"
        )
    return check_amounts(where, _numbers(where, column))


def read_volumes(_: Graph, settings: Settings, name: str) -> np.ndarray:
    """Return the volume (number of trips) of each row of the table of pairs, by its column
    ``name``, in the order of its rows. The graph is not used, but all readers of columns get it.

    Raises InputError: the table has no such column; a volume is no finite number of 0 or more. The
    message names the file.
    """
    path = str(settings.pairs)
    table, _ids = read_pair_table(settings)
    named_columns(path, "pairs", table.column_names, (name,))
    where = f"{path}: column {shown(name)}"
    return check_amounts(where, _numbers(where, _without_nulls(path, name, table)))


def read_through(graph: Graph, _: Settings, path: str) -> Through:
    """Return the edges of the table of ``--through`` (``path``): only pairs whose paths use one of
    these edges count.

    The table has the two ends of each edge, or the number of its row in the edge list. The settings
    are not used, but all readers of columns get them.

    Raises InputError: the file cannot be read, has no row, or a row holds no edge of the graph; or
    it is not sure which columns hold the edges. The message names file and row.
    """

    def choose_ids(names: list[str]) -> tuple[str, ...]:
        """Return the two columns with the ends of edges; none if a column has row numbers of the
        edge list.
        """
        pairs = end_pairs(names)
        if len(pairs) == 1:
            return pairs[0]
        if not pairs and names.count(EDGE) == 1:
            return ()
        how = f"call them src and dst, or {EDGE} if they are rows of the edge list"
        raise InputError(
            f"{path}: it is not sure which columns hold the edges; the "
            f"table has {listed(names)}; {how}"
        )

    # With names of two columns, edges are given by their ends; else by their row numbers.
    table, names = read_given_table(path, "edges", choose_ids)
    if not table.num_rows:
        raise InputError(f"{path}: the table of edges has no row")
    if names:
        src, dst = (numbers_in_column(graph, path, table, name) for name in names)
        # A closed vertex has two numbers: edges enter another one than they leave.
        return through_ends(graph, src, where_pairs_end(graph, src, dst), path)
    where = f"{path}: column {shown(EDGE)}"
    rows = _numbers(where, _without_nulls(path, EDGE, table), "rows of the edge list")
    return through_rows(graph, rows, where)


def read_along(graph: Graph, settings: Settings, names: list[str]) -> AlongPaths:
    """Return the columns of the edge list whose sums along paths ``--along`` asks for.

    The edge list is read once per column. ``graph``: built from the edge list, with ``edge_rows``.

    Raises InputError: the edge list has no such column, or the column holds no finite numbers, or
    its name is that of another column of the result; or a sum of integers may exceed int64.
    """
    result_columns = (*settings.kind.columns, GROUP)
    for name in names:
        if name in result_columns:
            raise InputError(
                f"--along {shown(name)}: the result has a column of this "
                "name; rename it in the edge list"
            )
        if names.count(name) > 1:
            raise InputError(f"--along names {shown(name)} twice")
    columns = columns_along(graph, {name: _read_edge_column(settings, name) for name in names})
    for name, values in columns.items():
        if values.dtype.kind != "i" or not values.size:
            continue
        # No path has more edges than the graph has vertices.
        largest = max(int(values.max()), -int(values.min()))
        if largest * graph.n_vertices >= _INT64_END:
            raise InputError(
                f"--along {shown(name)}: the sum over a path may exceed "
                "int64; give the column as floats"
            )
    return AlongPaths(columns)


def _read_edge_column(settings: Settings, name: str) -> np.ndarray:
    """Return the column ``name`` of the edge list: an array with one number per row, 0 in the rows
    that ``--where`` leaves out.

    The function that reads edge lists takes the column for that of the weights. Therefore its
    messages, which speak of weights, are put into the words of ``--along``.
    """

    def spelled(option: str, value: object = None) -> str:
        """Return an option as messages name it: ``--along`` in place of the option that names the
        column of weights, and any other as its flag, with the ``value`` if it is not None.
        """
        if option == "weight_column":
            return "--along"
        return flag_text(option, value)

    with options_spelled(spelled):
        # ``weighted=None`` reads the column of weights also for bfs, which takes none.
        options = options_of_files(settings, weighted=None, weight_column=name)
        try:
            edges = read_edges(settings.edges, options, settings.format)
        except EdgeListError as error:
            message = error.message
            for of_weights, of_sums in _WORDS_OF_SUMS.items():
                message = message.replace(of_weights, of_sums)
            raise InputError(f"--along {shown(name)}: {message}") from None
    table: Any = edges.table
    values = table["weight"].to_numpy()  # the column ``name``, which was read as weights
    if edges.row_numbers is None:  # all rows were read
        return values
    values_by_row = np.zeros(edges.n_rows, values.dtype)
    values_by_row[edges.row_numbers] = values
    return values_by_row


# What messages of weights say, in the words of ``--along``.
_WORDS_OF_SUMS = {
    "weight column": "column",
    "every edge has a weight": "fill such values",
    "cannot be the weight, too": "cannot be added up, too",
}
# text of which a number keeps all, such as "-12.50" or "3e8", and not "007" or "+7"
_EXACT_NUMBER = r"^-?(0|[1-9][0-9]{0,17})([.][0-9]+)?([eE][+-]?[0-9]+)?$"
# Functions ``read(graph, settings, column)`` by the field of ``Question`` or the option of a kind.
COLUMN_READERS: dict[str, Callable[[Graph, Settings, Any], Any]] = {
    "groups": read_groups,
    "limits": read_limits,
    "source_weights": read_weights,
    "start_costs": read_start_costs,
    "target_weights": read_target_weights,
    "volumes": read_volumes,
    "through": read_through,
    "along": read_along,
}


def _numbers(where: str, column: pa.Array, what: str = "weights and volumes") -> np.ndarray:
    """Return a column of integers or floats as an array; raise InputError for one of another type.

    ``where`` names the column, and ``what`` says what its numbers are, both for errors.
    """
    if not pa.types.is_integer(column.type) and not pa.types.is_floating(column.type):
        # A column of a CSV file stays text if int64 and float64 do not keep one of its numbers.
        if is_text(column.type):
            row = pc.index(pc.match_substring_regex(column, _EXACT_NUMBER), False).as_py()
            if row >= 0:
                rule = (
                    f"{what} are numbers, within int64 or with a point, and without leading zeros"
                )
                raise InputError(
                    f"{where}, row {row}: {column[row].as_py()[:40]!r} is kept as text; {rule}"
                )
        raise InputError(
            f"{where} has type {column.type}; {what} are integers or floats: cast the column"
        )
    return column.to_numpy(zero_copy_only=False)


def by_partition(
    graph: Graph, settings: Settings, numbers: np.ndarray
) -> tuple[np.ndarray, dict[str, int]]:
    """Order sources by their value in the column ``--partition-by``, and sources of one value as
    they are given.

    Return the vertex numbers in that order, and the number of sources by the name of the folder for
    their value. ``numbers``: int64 array, distinct vertex numbers of the sources.

    Raises InputError: the table of sources has no such column, or it cannot name folders; the
    message names file, column and row.
    """
    # Of each row of the table: its vertex number and its value in the column.
    name = str(settings.partition_by)
    table_numbers, column, where = read_column(graph, settings, name)
    result_columns = (*settings.kind.columns, *(settings.values or ()))
    if name.lower() in map(str.lower, result_columns):
        raise InputError(
            f"{where}: the parts have a column of that name, which would "
            "be in their folder, too; rename it"
        )
    if not (pa.types.is_integer(column.type) or is_text(column.type)):
        raise InputError(f"{where} has type {column.type}; partitions are integers or strings")

    # The values in ascending order, and their folders.
    values = column.unique()
    values = values.take(pc.array_sort_indices(values))
    folders = [_name_partition(where, name, value) for value in values.to_pylist()]

    def two_partitions(row: int, first: int) -> InputError:
        """Return the error for a source whose value in ``row`` differs from that in ``first``, the
        first row that has the source.
        """
        source = get_id(graph, int(table_numbers[row]))
        return InputError(
            f"{where}, row {row}: source {source!r} is in {shown(str(column[row]))} here and in "
            f"{shown(str(column[first]))} in row {first}; give it one"
        )

    # The partition of each row of the table, and then of each source, as an index in ``values``.
    codes = pc.index_in(column, value_set=values).to_numpy(zero_copy_only=False).astype(np.int64)
    by_source = SourceValues.of_rows(table_numbers, codes, two_partitions)
    partitions = np.array(by_source.of(numbers), np.int64)
    counts = np.bincount(partitions, minlength=len(folders)).tolist()
    return numbers[np.argsort(partitions, kind="stable")], dict(zip(folders, counts, strict=True))


def _name_partition(where: str, column: str, value: object) -> str:
    """Return the name of the folder for a ``value`` of a ``column``; raise InputError if no folder
    may be called so, because readers would skip it or take it for null. ``where`` begins messages.
    """
    folder = partition_name(column, value)
    is_hidden = not PARTITION_NAME.fullmatch(folder)
    if is_hidden or folder.endswith(f"={_HIVE_NULL}") or len(folder.encode()) > _MAX_FOLDER_BYTES:
        raise InputError(
            f"{where}: {str(value)[:40]!r} cannot be a partition: the name of its folder has at most {_MAX_FOLDER_BYTES} "
            "bytes, begins with neither . nor _, and has a value; rename it"
        )
    return folder


def read_target_table(settings: Settings) -> tuple[pa.Table, str]:
    """Return the table of ``--targets`` and the name of its column of ids; raise InputError as
    ``read_given_table``.
    """
    path = str(settings.targets_file)
    column = str(settings.column("target"))

    def choose_ids(names: list[str]) -> tuple[str, ...]:
        """Return the column of ids; raise InputError if the table has none of that name."""
        return named_columns(path, "targets", names, (column,))

    table, _ = read_given_table(path, "targets", choose_ids)
    return table, column


# by the setting that names the table: functions that return the table and its column of ids
READ_TABLE = {"sources": read_source_table, "targets": read_target_table}


class ReadColumn(NamedTuple):
    """A column without nulls of a table of vertices."""

    numbers: np.ndarray  # int64 array: vertex numbers of the rows
    values: pa.Array  # values of the rows
    where: str  # how errors name the column


def read_column(graph: Graph, settings: Settings, name: str, what: str = "sources") -> ReadColumn:
    """Read the column ``name`` of the table that the setting ``what`` names.

    That is the table of ``sources``, where paths begin, or of ``targets``, where they end.
    """
    path = str(getattr(settings, what))
    table, ids = READ_TABLE[what](settings)
    named_columns(path, what, table.column_names, (name,))
    numbers = numbers_in_column(graph, path, table, ids)
    if what == "targets":  # a closed vertex ends paths by another number than it begins them
        numbers = where_paths_end(graph, numbers)
    values = _without_nulls(path, name, table)
    return ReadColumn(numbers, values, f"{path}: column {shown(name)}")


def _without_nulls(path: str, name: str, table: pa.Table) -> pa.Array:
    """Return a column of a table; raise InputError, which names the row, if it has a null."""
    column = plain_column(table, name)
    if column.null_count:
        row = pc.index(column.is_null(), True).as_py()
        raise InputError(
            f"{path}: column {shown(name)}, row {row}: it holds no "
            "value; fill it in, or drop such rows"
        )
    return column
