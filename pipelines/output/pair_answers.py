"""Rows of all part files, for the tables that a finished run adds them to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from .part_reader import open_part

# Readers of the parts take all files that end in .parquet, or none that begin with an underscore: these are in neither.
PAIRS, SOURCES, POINTS, HULLS = "_pairs.pq", "_sources.pq", "_points.pq", "_hulls.pq"


def rows_by_pair(parts: Sequence[Path]) -> pa.Table:
    """Return ``source, target, distance`` of some part files, in the order of the rows of the table of pairs.

    Raises
    ------
    ValueError
        The parts do not hold each row of the table once.
    """
    found = rows_of_parts(parts)
    row = found["pair"].to_numpy()
    if row.size and (row.min() < 0 or row.max() >= row.size):
        raise ValueError("a part holds a row that the table of pairs does not have")
    order = np.full(row.size, -1, np.int64)
    order[row] = np.arange(row.size)
    if (order < 0).any():
        raise ValueError(f"no part holds row {int((order < 0).argmax())} of the table of pairs")
    return found.drop_columns(["pair"]).take(pa.array(order))


def rows_of_parts(parts: Sequence[Path]) -> pa.Table:
    """Return all rows of some part files."""
    tables: list[pa.Table] = []
    for part in parts:
        with open_part(part) as file:
            tables += [table.replace_schema_metadata(None) for table in file.tables()]
    return pa.concat_tables(tables)
