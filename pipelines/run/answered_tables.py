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
from ..output.load_tables import CELLS, LOAD_FACTS, LOADS, OF_GRAPH, cells_table, merge_loads
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
# Makes a table of the paths of the part files. The tables that it returns follow each other in one
# file, each as a row group.
Make = Callable[[Sequence[Path]], Iterable[pa.Table]]


def answered_tables(settings: Settings) -> dict[str, Make]:
    """Return the functions that make the tables which a finished run adds to its parts.

    The key is the name of the file to write. A function takes the paths of the part files. It
    raises InputError if a table of the user's has changed since the run began, and ValueError if
    parts lack a row.
    """
    kind = settings.kind
    if kind.adds_up:
        return {LOADS: _loads_maker(settings)}
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


def _loads_maker(settings: Settings) -> Make:
    """Return the function that adds up the loads of all parts, with a column of shapes (lines or
    points) if the settings have a geometry.
    """
    kind = settings.kind
    cells: Any = settings.of or kind.cells
    options = replace(settings, of=cells)
    if settings.geometry is None:
        return lambda parts: merge_loads(kind, options, parts)
    from . import geometry  # its packages are for these files alone

    return lambda parts: geometry.with_shapes(settings, merge_loads(kind, options, parts))


def list_tables(settings: Settings) -> set[str]:
    """Return the names of the files of all tables that a finished run has beside its parts."""
    return {*answered_tables(settings), *tables_of_graph(settings)}


def tables_of_graph(settings: Settings) -> dict[str, Callable[[Graph], pa.Table]]:
    """Return the functions that make, from the graph, the tables which parts refer to.

    Parts of loads have numbers of edges, vertices or pairs, and parts of lists have distances in
    the order of the vertices. The tables list these in order. The key is the name of the file.
    """
    kind = settings.kind
    if kind.adds_up:
        cells = settings.of or kind.cells

        def list_cells(graph: Graph) -> pa.Table:
            """Return a table with a row per edge, vertex or pair, in the order of the loads."""
            pairs = None
            if cells == "pairs":
                pairs = read_pairs(graph, settings, str(settings.pairs))
            return cells_table(graph, cells, pairs)

        return {CELLS: list_cells}
    if kind.written_as == "lists":
        return {VERTICES: vertices_table}
    return {}


def adds_to_sources(settings: Settings) -> bool:
    """Whether a run adds its results to the table of its sources."""
    has_table = settings.sources_file is not None and settings.column("source") is not None
    return has_table and (settings.keep_columns is not None or settings.kind.adds_to == "sources")


def differing_table(path: Path, make: Make, parts: Sequence[Path]) -> str:
    """Describe how the Parquet file ``path`` differs from the tables that ``make`` makes of the
    part files; ``""`` if it does not.
    """
    try:
        with open_regular(path) as opened, pq.ParquetFile(opened) as file:
            # Each table is compared with as many row groups as hold its rows.
            next_group = 0
            for table in make(parts):
                groups: list[pa.Table] = []
                while sum(map(len, groups)) < table.num_rows and next_group < file.num_row_groups:
                    groups.append(file.read_row_group(next_group))
                    next_group += 1
                difference = _difference(table, groups)
                if difference:
                    return difference

            # A table without rows has a row group that is empty.
            further = range(next_group, file.num_row_groups)
            if any(file.metadata.row_group(i).num_rows for i in further):
                return _DIFFERS
            return ""
    except FileNotFoundError:
        return "the file is not there"
    except (OSError, ValueError, pa.ArrowException) as error:
        return f"it cannot be checked ({one_line(error)})"


def _difference(expected: pa.Table, groups: list[pa.Table]) -> str:
    """Describe how the row groups of a file differ from the table ``expected``, in metadata or
    rows; ``""`` if they do not.
    """
    written = pa.concat_tables(groups) if groups else expected.slice(0, 0)
    expected = _with_texts(expected, written.schema)

    # Metadata: reference system and kinds of geometries, the graph of loads, and facts of these. A
    # file without rows has none to compare.
    if groups:
        expected_facts = expected.schema.metadata or {}
        written_facts = written.schema.metadata or {}
        if expected_facts.get(GEOS) != written_facts.get(GEOS):
            return (
                f"it was made with GEOS {_geos_version(written_facts)}, and can be checked with "
                f"that alone; here is GEOS {_geos_version(expected_facts)}"
            )
        keys = (GEO, OF_GRAPH, *LOAD_FACTS.values())
        if any(expected_facts.get(key) != written_facts.get(key) for key in keys):
            return _DIFFERS
    return "" if written.equals(expected) else _DIFFERS


def _geos_version(facts: dict[bytes, bytes]) -> str:
    """Return the version of GEOS in the metadata of a table, as text for a message."""
    return facts.get(GEOS, b"no version").decode(errors="replace")


def _with_texts(table: pa.Table, written: pa.Schema) -> pa.Table:
    """Return a table in which columns of integers become text where ``written``, the schema of a
    file, has text.

    Earlier versions left the ids of a CSV file as they were, so their files have text.
    """
    for i, field in enumerate(table.schema):
        if field.name in written.names and pa.types.is_integer(field.type):
            written_type = written.field(field.name).type
            if pa.types.is_string(written_type):
                table = table.set_column(i, field.name, table[field.name].cast(written_type))
    return table


def read_source_table(settings: Settings) -> tuple[pa.Table, str]:
    """Return the table of ``--sources`` and its column of ids.

    Raises InputError: the file cannot be read, a column that options name is missing, or a column
    has the name of one that the result adds.
    """
    path = str(settings.sources_file)
    column = str(settings.column("source"))
    needed = (column, *(settings.keep_columns or ()))

    def choose_ids(names: list[str]) -> tuple[str, ...]:
        """Return the column of ids; raise InputError if a column is missing."""
        named_columns(path, "sources", names, needed)
        return (column,)

    table, _ = read_given_table(path, "sources", choose_ids)
    added: set[str] = set()
    if adds_to_sources(settings):
        added.update(settings.kind.columns[1:], settings.values or (), settings.along or ())
        if settings.column("group") is not None:
            added.add(GROUP)
    # Columns that are not kept are not in the answer, so that they may have any name.
    for name in table.column_names if settings.keep_columns is None else needed:
        if name in added:
            raise InputError(
                f"{path}: the table of sources has a column {shown(name)}, "
                "which the result adds; rename it"
            )
    return table, column


def _answered_pairs(settings: Settings, parts: Sequence[Path]) -> pa.Table:
    """Return the table of ``--pairs`` with the distance of each row, and with its sums along paths
    if there are any.

    Raises InputError: the table has changed since the run began.
    """
    table, names = read_pair_table(settings)
    rows = rows_by_pair(parts)
    # The ids of the table must be those of the parts, and are written as the parts have them.
    for name, role in zip(names, ("source", "target"), strict=True):
        ids = rows[role].combine_chunks()
        table_ids = ids_in_column(str(settings.pairs), table, name, is_text(ids.type))
        if table.num_rows != rows.num_rows or not table_ids.cast(ids.type).equals(ids):
            raise _table_changed(str(settings.pairs))
        table = table.set_column(table.schema.get_field_index(name), name, ids)
    for name in (DISTANCE, *(settings.along or ())):
        table = table.append_column(name, rows[name])
    return table


def _answered_sources(settings: Settings, parts: Sequence[Path]) -> pa.Table:
    """Return the table of sources joined with the rows of the results.

    Each row of the table occurs once per result of its source, and once, with nulls, if its source
    has none. Raises InputError: the table has a source that the run did not have.
    """
    table, column = read_source_table(settings)
    rows = rows_of_parts(parts)
    source_ids = []
    for part in parts:
        with open_part(part) as file:
            source_ids += read_footer(file)["sources"]
    sources = pa.array(source_ids, rows["source"].type)

    # The ids of the table are written as the parts have them. ``source_of`` is the index in
    # ``sources`` of each row of the table.
    table_ids = ids_in_column(str(settings.sources_file), table, column, is_text(sources.type))
    ids = table_ids.cast(sources.type)
    table = table.set_column(table.schema.get_field_index(column), column, ids)
    source_of = pc.index_in(ids, value_set=sources)
    if source_of.null_count:
        raise _table_changed(str(settings.sources_file))

    # Per row of the table, the results of its source: ``sizes`` of them, which begin at ``starts``
    # in the order of sources, and the number of rows that the answer has for them.
    result_source = pc.index_in(rows["source"], value_set=sources).to_numpy()
    sizes_by_source = np.bincount(result_source, minlength=len(sources))
    starts = (np.cumsum(sizes_by_source) - sizes_by_source)[source_of]
    sizes = sizes_by_source[source_of]
    n_answers = np.maximum(sizes, 1)  # a source without results has one row, with nulls

    # The position in ``rows`` of the result of each row of the answer. A source without results
    # may start behind the last one. Its position is null below, and the 0 that is appended here
    # keeps the index within the array.
    by_source = np.append(np.argsort(result_source, kind="stable"), 0)  # positions in ``rows``
    results = by_source[np.repeat(starts, n_answers) + positions_in_groups(n_answers)]
    # A set bit of the mask makes a position null, and ``take`` then returns a null.
    order = pa.array(results, mask=np.repeat(sizes == 0, n_answers))

    if settings.keep_columns is not None:
        table = table.select(dict.fromkeys([column, *settings.keep_columns]))
    table = table.take(np.repeat(np.arange(n_answers.size), n_answers))
    for name in rows.column_names[1:]:
        table = table.append_column(name, rows[name].take(order))
    return table


def rows_by_pair(parts: Sequence[Path]) -> pa.Table:
    """Return the rows of some part files, without their column ``pair``, in the order of the rows
    of the table of pairs.

    ``pair`` is the number of a row of that table. Raises ValueError: the parts do not hold each of
    the rows 0 to n - 1 once, where n is the number of their rows. The caller compares whether the
    table has n rows.
    """
    rows = rows_of_parts(parts)
    pairs = rows["pair"].to_numpy()  # row numbers in the table of pairs
    if pairs.size and (pairs.min() < 0 or pairs.max() >= pairs.size):
        raise ValueError("a part holds a row that the table of pairs does not have")
    # For each row of the table of pairs, its position in the parts; -1 if no part has it.
    order = np.full(pairs.size, -1, np.int64)
    order[pairs] = np.arange(pairs.size)
    if (order < 0).any():
        raise ValueError(f"no part holds row {int((order < 0).argmax())} of the table of pairs")
    return rows.drop_columns(["pair"]).take(pa.array(order))


def rows_of_parts(parts: Sequence[Path]) -> pa.Table:
    """Return all rows of some part files as one table, without metadata."""
    tables: list[pa.Table] = []
    for part in parts:
        with open_part(part) as file:
            # A part without rows has no table, but its columns count.
            for table in (file.schema.empty_table(), *file.tables()):
                tables.append(table.replace_schema_metadata(None))
    return pa.concat_tables(tables)


def _table_changed(path: str) -> InputError:
    """Return the error for a table of the user's that is not what it was when the run began."""
    return InputError(
        f"{path}: the table has changed since the run began; run again with the one as it was"
    )
