"""The table of ``--pairs``: one pair of origin and destination per row, with any other columns."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq

from kepler_traverse.errors import InputError, UnknownVertexError
from kepler_traverse.formats.column_names import end_pairs, listed
from kepler_traverse.formats.files import shown
from kepler_traverse.graph import Graph
from kepler_traverse.multi_source.pairs import PairTable, numbers_of_rows, pair_table

from ..cli.options import Settings
from ..output.pair_answers import distances_by_pair

DISTANCE = "distance"  # the column that is added to the table
_DELIMITERS = ",\t;"
_INTEGER = "^[+-]?[0-9]{1,18}$"  # an int64 holds any of them


def read_pairs(graph: Graph, settings: Settings) -> PairTable | None:
    """Return the rows of ``--pairs`` as vertex numbers, None without that option.

    Raises
    ------
    InputError
        The file cannot be read, it is not sure which columns hold the ids, or a column has the name of the one to add.
    UnknownVertexError
        A row holds no vertex of the graph; the message names the file, the column, the row and the id.
    """
    if settings.pairs is None:
        return None
    table, names = _read(settings)
    origins, destinations = (_numbers(graph, settings.pairs, table, name) for name in names)
    if not origins.size:
        raise InputError(f"{settings.pairs}: the table of pairs has no row")
    return pair_table(origins, destinations)


def pairs_digest(table: PairTable) -> str:
    """Return the SHA-256 of the vertex numbers of all rows."""
    arrays = table.sources, table.lists.offsets, table.lists.vertices, table.rows
    return hashlib.sha256(b"".join(np.ascontiguousarray(array, "<i8").tobytes() for array in arrays)).hexdigest()


def answered_table(settings: Settings, distance: pa.ChunkedArray) -> pa.Table:
    """Return the table of ``--pairs`` as it was given, with the column of distances added."""
    table, _ = _read(settings)
    if table.num_rows != len(distance):
        raise InputError(f"{settings.pairs}: the table has changed since the run began; run again with the table as it was")
    return table.append_column(DISTANCE, distance)


def differing_pairs(path: Path, parts: Sequence[Path], settings: Settings) -> str:
    """Describe how the answered table differs from what the part files and the given table make; ``""`` if it does not."""
    try:
        found = pq.read_table(path)
        right = answered_table(settings, distances_by_pair(parts))
    except FileNotFoundError:
        return "the file is not there"
    except (OSError, ValueError, pa.ArrowException) as error:
        return f"it cannot be checked ({' '.join(str(error).split())})"
    return "" if found.equals(right) else "it is not the table of pairs with the distances of the part files"


def _read(settings: Settings) -> tuple[pa.Table, tuple[str, str]]:
    """Return the table and the names of the two columns of ids; a text file has these columns as strings."""
    path = str(settings.pairs)
    try:
        with open(path, "rb") as file:
            head = file.read(4)
        if head == b"PAR1":
            with pq.ParquetFile(path) as parquet:
                names = _columns(settings, parquet.schema_arrow.names)
                table = parquet.read()
        else:
            parse = csv.ParseOptions(delimiter=_delimiter(Path(path)))
            with csv.open_csv(path, parse_options=parse) as reader:
                names = _columns(settings, reader.schema.names)
            as_text = csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True)
            table = csv.read_csv(path, parse_options=parse, convert_options=as_text)
    except InputError:
        raise
    except (OSError, ValueError) as error:  # pyarrow's errors are ValueErrors
        problem = " ".join(str(getattr(error, "strerror", None) or error).split())[:300]
        raise InputError(f"{path}: the table of pairs cannot be read: {problem}") from None
    if DISTANCE in table.column_names:
        raise InputError(f"{path}: the table of pairs has a column {DISTANCE!r}, which the result adds; rename it")
    return table, names


def _delimiter(path: Path) -> str:
    """Return the delimiter that occurs most often in the header of a text file."""
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        header = file.readline(1 << 16)
    return max(_DELIMITERS, key=header.count)


def _columns(settings: Settings, names: list[str]) -> tuple[str, str]:
    path, how = settings.pairs, "name them with --origin-column and --destination-column"
    if settings.origin_column is not None and settings.destination_column is not None:
        chosen = settings.origin_column, settings.destination_column
        for name in chosen:
            if names.count(name) != 1:
                raise InputError(
                    f"{path}: {'no' if name not in names else 'more than one'} column {shown(name)}; "
                    f"the table of pairs has {listed(names)}"
                )
        return chosen
    pairs = end_pairs(names)
    if len(pairs) != 1:
        raise InputError(f"{path}: it is not sure which columns hold the pairs; the table has {listed(names)}; {how}")
    return pairs[0]


def _numbers(graph: Graph, path: str, table: pa.Table, name: str) -> np.ndarray:
    """Return the vertex numbers of a column of ids."""
    column = table[name]
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if column.null_count:
        row = pc.index(column.is_null(), True).as_py()
        raise UnknownVertexError(f"{path}: column {shown(name)}, row {row}: it holds no id; drop such rows")
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if not is_text and not pa.types.is_integer(column.type):
        raise InputError(f"{path}: column {shown(name)} has type {column.type}; ids are integers or strings")
    if is_text and not graph.has_string_ids:
        bare = pc.utf8_trim_whitespace(column)
        fits = pc.match_substring_regex(bare, _INTEGER)
        if not pc.all(fits, min_count=0).as_py():
            row = pc.index(fits, False).as_py()
            value = column[row].as_py()
            raise UnknownVertexError(
                f"{path}: column {shown(name)}, row {row}: {value[:40]!r} is no vertex: the ids of this graph are integers"
            )
        column = pc.cast(bare, pa.int64())
    given: Any = column.cast(pa.string()).combine_chunks() if graph.has_string_ids else column.to_numpy()
    try:
        return numbers_of_rows(graph, name, given)
    except UnknownVertexError as error:
        raise UnknownVertexError(f"{path}: column {error}") from None
