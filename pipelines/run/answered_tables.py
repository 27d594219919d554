"""Files that a finished run writes of its part files.

``_pairs.pq`` is the table of ``--pairs`` with distances. ``_sources.pq`` is the table of
``--sources`` with the rows of its sources. Both are in the order of the given table. ``geometry``
makes the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kepler_traverse._arrays import positions_in_groups
from kepler_traverse.errors import InputError, one_line
from kepler_traverse.formats.files import shown
from kepler_traverse.graph import Graph
from kepler_traverse.kinds.result_kinds import GROUP
from kepler_traverse.runtime.regular_files import open_regular

from ..cli.options import Settings
from ..output.load_tables import CELLS, LOAD_FACTS, LOADS, OF_GRAPH, cells_table, merged_loads
from ..output.matrix_file import VERTICES, vertices_table
from ..output.part_file import read_footer
from ..output.part_reader import open_part
from .given_table import (
    DISTANCE,
    ids_in_column,
    is_text,
    named_columns,
    read_given_table,
    read_pair_table,
    read_pairs,
)

# Readers of the parts take all files that end in .parquet, or none that begin with an underscore:
# these are in neither.
PAIRS = "_pairs.pq"
SOURCES = "_sources.pq"
POINTS = "_points.pq"
HULLS = "_hulls.pq"
# metadata of a GeoParquet file: its geometries, and the version of GEOS that made hulls
GEO = b"geo"
GEOS = b"geos"
_DIFFERS = "it is not the given table with the results of the part files"
Make = Callable[[Sequence[Path]], Iterable[pa.Table]]  # each table becomes a row group


def answered_tables(settings: Settings) -> dict[str, Make]:
    """Return the functions that make the tables of a run from its part files, by the names of the
    files to write.

    Their errors are InputError if a given table has changed since the run began, ValueError if
    parts lack a row.
    """
    kind = settings.kind
    if kind.adds_up:
        of: dict[str, Any] = {"of": settings.of or kind.cells}
        options = replace(settings, **of)
        if settings.geometry is None:
            return {LOADS: lambda parts: merged_loads(kind, options, parts)}
        from . import geometry  # it needs a table of vertices

        return {
            LOADS: lambda parts: geometry.with_shapes(settings, merged_loads(kind, options, parts))
        }
    if kind.adds_to == "pairs":
        return {PAIRS: lambda parts: [_answered_pairs(settings, parts)]}
    if adds_to_sources(settings):
        return {SOURCES: lambda parts: [_answered_sources(settings, parts)]}
    if settings.geometry is not None:
        from . import geometry  # its packages are for these files alone

        if settings.geometry == "hulls":
            return {HULLS: lambda parts: geometry.hulls_of_parts(settings, parts)}
        return {POINTS: lambda parts: geometry.points_of_parts(settings, parts)}
    return {}


def list_tables(settings: Settings) -> set[str]:
    """Return the names of all tables that a finished run has beside its parts."""
    return {*answered_tables(settings), *tables_of_graph(settings)}


def tables_of_graph(settings: Settings) -> dict[str, Callable[[Graph], pa.Table]]:
    """Return the functions that make the tables which say what positions in the parts are, by the
    names of their files.
    """
    kind = settings.kind
    if kind.adds_up:
        of = settings.of or kind.cells

        def list_cells(graph: Graph) -> pa.Table:
            pairs = None
            if of == "pairs":
                pairs = read_pairs(graph, settings, str(settings.pairs))
            return cells_table(graph, of, pairs)

        return {CELLS: list_cells}
    if kind.written_as == "lists":
        return {VERTICES: vertices_table}
    return {}


def adds_to_sources(settings: Settings) -> bool:
    """Whether a run adds its results to the table of its sources."""
    given = settings.sources_file is not None and settings.column("source") is not None
    return given and (settings.keep_columns is not None or settings.kind.adds_to == "sources")


def differing_table(path: Path, make: Make, parts: Sequence[Path]) -> str:
    """Describe how a file differs from the tables that its maker makes of the part files; ``""`` if
    it does not.
    """
    try:
        with open_regular(path) as opened, pq.ParquetFile(opened) as file:
            group = 0
            for table in make(parts):
                held: list[pa.Table] = []
                while sum(map(len, held)) < table.num_rows and group < file.num_row_groups:
                    held.append(file.read_row_group(group))
                    group += 1
                differs = _difference(table, held)
                if differs:
                    return differs
            left = range(group, file.num_row_groups)  # a table without rows has one that is empty
            if any(file.metadata.row_group(i).num_rows for i in left):
                return _DIFFERS
            return ""
    except FileNotFoundError:
        return "the file is not there"
    except (OSError, ValueError, pa.ArrowException) as error:
        return f"it cannot be checked ({one_line(error)})"


def _difference(right: pa.Table, groups: list[pa.Table]) -> str:
    """Describe how the row groups of a file differ from a table; ``""`` if they do not."""
    written = pa.concat_tables(groups) if groups else right.slice(0, 0)
    right = _with_texts(right, written.schema)
    if groups:  # of a file without rows metadata are not compared
        here = right.schema.metadata or {}
        there = written.schema.metadata or {}
        if here.get(GEOS) != there.get(GEOS):
            made_with, version = (
                each.get(GEOS, b"no version").decode(errors="replace") for each in (there, here)
            )
            return (
                f"it was made with GEOS {made_with}, and can be checked with "
                f"that alone; here is GEOS {version}"
            )
        keys = (GEO, OF_GRAPH, *LOAD_FACTS.values())
        if any(here.get(key) != there.get(key) for key in keys):
            return _DIFFERS
    return "" if written.equals(right) else _DIFFERS


def _with_texts(table: pa.Table, written: pa.Schema) -> pa.Table:
    """Return a table with those integers as text that a written table has as text: earlier versions
    left ids of a CSV file as they were.
    """
    for at, field in enumerate(table.schema):
        if field.name in written.names and pa.types.is_integer(field.type):
            kind = written.field(field.name).type
            if pa.types.is_string(kind):
                table = table.set_column(at, field.name, table[field.name].cast(kind))
    return table


def read_source_table(settings: Settings) -> tuple[pa.Table, str]:
    """Return the table of ``--sources`` and its column of ids.

    Raises InputError: as ``read_given_table``; or a column has the name of one that the result
    adds.
    """
    path = str(settings.sources_file)
    column = str(settings.column("source"))
    kept = (column, *(settings.keep_columns or ()))
    table, _ = read_given_table(
        path, "sources", lambda names: named_columns(path, "sources", names, kept)[:1]
    )
    added: set[str] = set()
    if adds_to_sources(settings):
        added.update(settings.kind.columns[1:], settings.values or (), settings.along or ())
        if settings.column("group") is not None:
            added.add(GROUP)
    for name in table.column_names if settings.keep_columns is None else kept:
        if name in added:
            raise InputError(
                f"{path}: the table of sources has a column {shown(name)}, "
                "which the result adds; rename it"
            )
    return table, column


def _answered_pairs(settings: Settings, parts: Sequence[Path]) -> pa.Table:
    """Return the table of pairs with the distance of each row."""
    table, names = read_pair_table(settings)
    rows = rows_by_pair(parts)
    for name, role in zip(names, ("source", "target"), strict=True):
        ids = rows[role].combine_chunks()
        given = ids_in_column(str(settings.pairs), table, name, is_text(ids.type))
        if table.num_rows != rows.num_rows or not given.cast(ids.type).equals(ids):
            raise _changed(str(settings.pairs))
        table = table.set_column(table.schema.get_field_index(name), name, ids)
    for name in (DISTANCE, *(settings.along or ())):
        table = table.append_column(name, rows[name])
    return table


def _answered_sources(settings: Settings, parts: Sequence[Path]) -> pa.Table:
    """Return the table of sources, each row once per row of its result."""
    table, column = read_source_table(settings)
    rows = rows_of_parts(parts)
    known = []
    for part in parts:
        with open_part(part) as file:
            known += read_footer(file)["sources"]
    sources = pa.array(known, rows["source"].type)
    given = ids_in_column(str(settings.sources_file), table, column, is_text(sources.type))
    ids = given.cast(sources.type)
    table = table.set_column(table.schema.get_field_index(column), column, ids)
    place = pc.index_in(ids, value_set=sources)
    if place.null_count:
        raise _changed(str(settings.sources_file))
    owner = pc.index_in(rows["source"], value_set=sources).to_numpy()
    sizes = np.bincount(owner, minlength=len(sources))
    starts = (np.cumsum(sizes) - sizes)[place]
    each = np.maximum(sizes[place], 1)
    # One place more than there are rows: that of the nulls of a source without a row, whose start
    # may be behind the last.
    at = np.append(np.argsort(owner, kind="stable"), 0)[
        np.repeat(starts, each) + positions_in_groups(each)
    ]
    order = pa.array(at, mask=np.repeat(sizes[place] == 0, each))
    if settings.keep_columns is not None:
        table = table.select(dict.fromkeys([column, *settings.keep_columns]))
    table = table.take(np.repeat(np.arange(each.size), each))
    for name in rows.column_names[1:]:
        table = table.append_column(name, rows[name].take(order))
    return table


def rows_by_pair(parts: Sequence[Path]) -> pa.Table:
    """Return the columns besides ``pair`` of some part files, in the order of the rows of the table
    of pairs.

    Raises ValueError: the parts do not hold each row of the table once.
    """
    rows = rows_of_parts(parts)
    row = rows["pair"].to_numpy()
    if row.size and (row.min() < 0 or row.max() >= row.size):
        raise ValueError("a part holds a row that the table of pairs does not have")
    order = np.full(row.size, -1, np.int64)
    order[row] = np.arange(row.size)
    if (order < 0).any():
        raise ValueError(f"no part holds row {int((order < 0).argmax())} of the table of pairs")
    return rows.drop_columns(["pair"]).take(pa.array(order))


def rows_of_parts(parts: Sequence[Path]) -> pa.Table:
    """Return all rows of some part files."""
    tables: list[pa.Table] = []
    for part in parts:
        with open_part(part) as file:
            # A part without rows has no table, but its columns count.
            for table in (file.schema.empty_table(), *file.tables()):
                tables.append(table.replace_schema_metadata(None))
    return pa.concat_tables(tables)


def _changed(path: str) -> InputError:
    """Return the error for a table that is not what it was."""
    return InputError(
        f"{path}: the table has changed since the run began; run again with the one as it was"
    )
