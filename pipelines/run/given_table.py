"""Tables that the user gives to a run beside the edge list, that of ``--pairs`` among them:
Parquet, or CSV with a header.

Text has no types, so a text file has ids as strings here, until it is known of which type the ids
of the graph are.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq

from kepler_traverse.errors import InputError, UnknownVertexError, one_line
from kepler_traverse.formats.column_names import end_pairs, listed
from kepler_traverse.formats.files import shown
from kepler_traverse.formats.ids import (
    IdFile,
    columns_of_vertices,
    detect_delimiter,
    read_vertex_table,
)
from kepler_traverse.formats.log_tables import refuse_log_table, refuse_unread_table
from kepler_traverse.formats.sizes import require_parquet_at, require_text_at
from kepler_traverse.graph import Graph
from kepler_traverse.graph.closed import where_pairs_end
from kepler_traverse.kinds.pairs import numbers_of_rows, pair_table
from kepler_traverse.runtime.object_stores import local_path
from kepler_traverse.runtime.regular_files import open_regular
from kepler_traverse.search.query import PairTable

from ..cli.options import Settings
from ..output.tables_in_memory import table_in_memory

DISTANCE = "distance"  # the column that is added to the table
_INTEGER = "^(0|-?[1-9][0-9]{0,19})$"  # "0", "-12"; as in edge lists, 007 and +7 are strings
# By the type that Arrow guesses for a column, a pattern of texts that a number would change: 01234,
# +49, 0x10, which Arrow takes for 16, or an integer that float64 does not hold exactly. Columns
# with such texts stay text.
_NOT_KEPT = {"int64": r"^\s*([+-]?0[0-9xX]|\+)", "double": r"^\s*([+-]?0[0-9]|\+|-?[0-9]{16,}\s*$)"}


def read_given_table(
    path: str, what: str, choose: Callable[[list[str]], tuple[str, ...]]
) -> tuple[pa.Table, tuple[str, ...]]:
    """Return a table of the user's, and the names of its columns of ids.

    Parameters
    ----------
    path : str
        Of a Parquet or text file. It may be a URL, or the name of a table in memory.
    what : str
        What the table is of, such as "pairs", for errors.
    choose : callable
        Returns the names of the columns of ids, given the names of all columns.

    Returns
    -------
    table : pyarrow.Table
        With all columns. From a text file, ids are strings, and so are codes like 01234.
    names : tuple of str
        What ``choose`` has returned.

    Raises
    ------
    InputError
        The file cannot be read, or ``choose`` refuses its columns.
    """
    # ``_choose_ids`` calls ``choose``, and refuses a table that has a name of a column twice.
    in_memory = table_in_memory(path)
    if in_memory is not None:
        return in_memory, _choose_ids(path, what, in_memory.column_names, choose)
    try:
        file = local_path(path)
        if _is_parquet(file):
            # A file inside a table of Delta Lake or Iceberg is refused: only the log of that table
            # says which of its files and rows are live.
            refuse_log_table(path, what)
            with pq.ParquetFile(file, page_checksum_verification=True) as parquet:
                names = _choose_ids(path, what, parquet.schema_arrow.names, choose)
                # Refuse a file whose columns would unpack to more memory than it may take.
                require_parquet_at(file, path)
                return parquet.read(), names

        require_text_at(file, path)  # refuse a compressed text that unpacks to an absurd size
        parse_options = csv.ParseOptions(delimiter=detect_delimiter(file))
        # The header comes first: which columns hold ids decides the types of all columns.
        with csv.open_csv(file, parse_options=parse_options) as reader:
            names = _choose_ids(path, what, reader.schema.names, choose)
        return _read_text(file, parse_options, names), names
    except InputError:
        raise
    except (OSError, ValueError, pa.ArrowException) as error:
        # A path that cannot be read may be the folder of such a table with a log: the error of this
        # call says so, and what to do instead.
        refuse_unread_table(path, what, error)
        problem = one_line(getattr(error, "strerror", None) or error, 300)
        raise InputError(f"{path}: the table of {what} cannot be read: {problem}") from None


def _read_text(path: Any, parse_options: csv.ParseOptions, ids: tuple[str, ...]) -> pa.Table:
    """Read a CSV file. Its columns of ids (``ids``) stay text, and so does a column in which a
    number would lose a part of a text, such as the zero of 01234.
    """
    table = _read_csv(path, parse_options, column_types=dict.fromkeys(ids, pa.string()))
    # Arrow has taken these columns for numbers: read them again as texts, and look for such a text.
    patterns = {
        field.name: _NOT_KEPT[str(field.type)]
        for field in table.schema
        if str(field.type) in _NOT_KEPT
    }
    if patterns:
        as_texts = dict.fromkeys(patterns, pa.string())
        texts = _read_csv(path, parse_options, column_types=as_texts, include_columns=[*patterns])
        for name, pattern in patterns.items():
            if pc.any(pc.match_substring_regex(texts[name], pattern)).as_py():
                table = table.set_column(table.schema.get_field_index(name), name, texts[name])
    return table


def read_vertex_columns(path: str, names: list[str]) -> tuple[IdFile, dict[str, pa.ChunkedArray]]:
    """Return the ids of the table of ``--vertices``, and the columns of these names.

    ``path``: of the file, or the name of a table in memory, whose first column has the ids.
    """
    in_memory = table_in_memory(path)
    if in_memory is None:
        return read_vertex_table(path, names)
    return columns_of_vertices(path, in_memory, in_memory.column_names[0], names)


def _is_typed(path: str) -> bool:
    """Whether a table has types, so that it distinguishes integers from strings; text has none."""
    return table_in_memory(path) is not None or _is_parquet(path)


def _is_parquet(path: str) -> bool:
    """Whether a file begins as Parquet does."""
    with open_regular(local_path(path), follow=True) as file:
        return bool(file.read(4) == b"PAR1")


def _choose_ids(
    path: str, what: str, names: list[str], choose: Callable[[list[str]], tuple[str, ...]]
) -> tuple[str, ...]:
    """Return the columns of ids that ``choose`` finds among ``names``; raise InputError for a name
    that occurs twice. ``path`` and ``what`` name the table in errors.
    """
    chosen = choose(names)
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise InputError(
            f"{path}: the table of {what} has more than one column "
            f"{shown(repeated[0])}; rename all but one"
        )
    return chosen


def _read_csv(path: Any, parse_options: csv.ParseOptions, **options: Any) -> pa.Table:
    """Read a CSV file, in which an empty value is null. The text NA stays text, as it may be a
    name. ``options``: further ones of ``pyarrow.csv.ConvertOptions``.
    """
    convert_options = csv.ConvertOptions(null_values=[""], strings_can_be_null=True, **options)
    return csv.read_csv(path, parse_options=parse_options, convert_options=convert_options)


def named_columns(
    path: str, what: str, names: list[str], chosen: tuple[str, ...]
) -> tuple[str, ...]:
    """Return ``chosen``, the columns that options name; raise InputError unless the table has each
    of them once.

    ``what``: what the table is of, for errors. ``names``: all columns of the table.
    """
    for name in chosen:
        if names.count(name) != 1:
            has = "no" if name not in names else "more than one"
            raise InputError(
                f"{path}: {has} column {shown(name)}; the table of {what} has {listed(names)}"
            )
    return chosen


def is_text(column_type: pa.DataType) -> bool:
    """Whether a type of Arrow is a type of strings, with offsets of 32 or of 64 bits."""
    return pa.types.is_string(column_type) or pa.types.is_large_string(column_type)


def plain_column(table: pa.Table, name: str) -> pa.Array:
    """Return a column as one array, with values in place of the codes of a dictionary."""
    column = table[name].combine_chunks()
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    return column


def ids_in_column(path: str, table: pa.Table, name: str, strings: bool) -> Any:
    """Return the column ``name`` of ids as a pyarrow array of strings or integers, as ``strings``
    says.

    ``path``: of the table, for errors, and to know whether it has types. Raises InputError (the
    type of the column cannot be that of ids) or UnknownVertexError (a row has no id, or one of the
    other type; the message names the row).
    """
    column = plain_column(table, name)
    if column.null_count:
        row = pc.index(column.is_null(), True).as_py()
        raise UnknownVertexError(
            f"{path}: column {shown(name)}, row {row}: it holds no id; drop such rows"
        )
    if not is_text(column.type) and not pa.types.is_integer(column.type):
        raise InputError(
            f"{path}: column {shown(name)} has type {column.type}; ids are integers or strings"
        )
    # A column without rows fits either type. Text of a file without types may be integers.
    if len(column) and is_text(column.type) != strings and (strings or _is_typed(path)):
        kind = "strings" if strings else "integers"
        value = repr(column[0].as_py())[:40]
        raise UnknownVertexError(
            f"{path}: column {shown(name)} holds {column.type}, such as "
            f"{value}, and the ids of this graph are {kind}"
        )
    if strings:
        return column.cast(pa.string())
    if is_text(column.type):
        return _integers_in_text(f"{path}: column {shown(name)}", column)
    return column


def _integers_in_text(where: str, column: pa.Array) -> pa.Array:
    """Return a column of text as int64, or as uint64 if int64 does not hold all of it; ``where``
    names the column for errors. Raises UnknownVertexError: a text is no integer, or neither type
    holds it.
    """
    trimmed = pc.utf8_trim_whitespace(column)
    are_integers = pc.match_substring_regex(trimmed, _INTEGER)
    if not pc.all(are_integers, min_count=0).as_py():  # true of a column without rows
        row = pc.index(are_integers, False).as_py()
        value = column[row].as_py()[:40]
        raise UnknownVertexError(
            f"{where}, row {row}: {value!r} is no vertex: the ids of this graph are integers"
        )
    for integer_type in (pa.int64(), pa.uint64()):
        with contextlib.suppress(pa.ArrowInvalid):
            return pc.cast(trimmed, integer_type)
    raise UnknownVertexError(
        f"{where} has an id beyond int64 and uint64; the ids of this graph are integers"
    )


def numbers_in_column(graph: Graph, path: str, table: pa.Table, name: str) -> np.ndarray:
    """Return the vertex numbers of a column of ids (int64 array).

    ``path``: of the table, for errors, which also name the column, the row and the id.
    """
    ids = ids_in_column(path, table, name, graph.has_string_ids)
    try:
        return numbers_of_rows(graph, name, ids if graph.has_string_ids else ids.to_numpy())
    except UnknownVertexError as error:
        raise UnknownVertexError(f"{path}: column {error}") from None


def read_pairs(graph: Graph, settings: Settings, path: str) -> PairTable:
    """Return the rows of ``--pairs`` as vertex numbers, grouped by source; ``path`` is that of the
    table, for errors.

    Raises InputError (the file cannot be read, it is not sure which columns hold the ids, or a
    column has the name of the one to add) or UnknownVertexError (a row holds no vertex of the
    graph; the message names the file, the column, the row and the id).
    """
    table, names = read_pair_table(settings)
    origins, destinations = (numbers_in_column(graph, path, table, name) for name in names)
    if not origins.size:
        raise InputError(f"{path}: the table of pairs has no row")
    # A closed vertex has two numbers: paths end at another one than they begin at.
    return pair_table(origins, where_pairs_end(graph, origins, destinations))


def read_pair_table(settings: Settings) -> tuple[pa.Table, tuple[str, ...]]:
    """Return the table of ``--pairs`` and the names of its columns of origins and destinations.

    Raises InputError: the file cannot be read, it is not sure which columns these are, or a column
    has the name of one that the result adds.
    """
    path = str(settings.pairs)

    def choose_ids(names: list[str]) -> tuple[str, ...]:
        """Return the columns of origins and destinations: those that options name, or else the only
        two with known names.
        """
        # Columns that the result adds to the table must not be there already.
        added: list[str] = []
        if settings.kind.adds_to == "pairs":
            added = [DISTANCE, *(settings.along or ())]
        taken = next((name for name in added if name in names), None)
        if taken is not None:
            raise InputError(
                f"{path}: the table of pairs has a column {taken!r}, "
                "which the result adds; rename it"
            )

        # The columns that options name, or else the only pair of known names, such as src and dst.
        origin = settings.column("origin")
        destination = settings.column("destination")
        if origin is not None and destination is not None:
            return named_columns(path, "pairs", names, (origin, destination))
        pairs = end_pairs(names)
        if len(pairs) != 1:
            how = "name them with --columns origin=NAME,destination=NAME"
            raise InputError(
                f"{path}: it is not sure which columns hold the pairs; the "
                f"table has {listed(names)}; {how}"
            )
        return pairs[0]

    return read_given_table(path, "pairs", choose_ids)
