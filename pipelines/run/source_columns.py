"""Columns of the table of sources that say something of each source: ``--nearest-group``."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kepler_traverse.errors import InputError
from kepler_traverse.formats.files import shown
from kepler_traverse.graph import Graph

from ..cli.options import Settings
from ..worker.source_facts import SourceGroups
from .answered_tables import read_source_table
from .given_table import named_columns, numbers_in_column


def read_groups(graph: Graph, settings: Settings) -> SourceGroups | None:
    """Return the groups of the sources, None without ``--nearest-group``.

    Raises
    ------
    InputError
        The table has no such column, or the column holds no integers or texts; the message names file, column and row.
    """
    if settings.nearest_group is None:
        return None
    numbers, column = _column(graph, settings, settings.nearest_group)
    if not pa.types.is_integer(column.type):
        if not pa.types.is_string(column.type) and not pa.types.is_large_string(column.type):
            raise InputError(
                f"{settings.sources_file}: column {shown(settings.nearest_group)} has type {column.type}; groups are "
                "integers or strings"
            )
        column = column.cast(pa.string())
    return SourceGroups(column.to_pylist(), numbers)


def _column(graph: Graph, settings: Settings, name: str) -> tuple[np.ndarray, pa.Array]:
    """Return the vertex numbers of the rows of the table of sources, and one of its columns, which has no nulls."""
    path = str(settings.sources_file)
    table, ids = read_source_table(settings)
    named_columns(path, "sources", table.column_names, (name,))
    column = table[name].combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if column.null_count:
        row = pc.index(column.is_null(), True).as_py()
        raise InputError(f"{path}: column {shown(name)}, row {row}: it holds no value; fill it in, or drop such rows")
    return numbers_in_column(graph, path, table, ids), column
