"""``_pairs.parquet``: the table of ``--pairs`` as it was given, with a column of distances, in the order of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from .part_reader import open_part

PAIRS = "_pairs.parquet"


def distances_by_pair(parts: Sequence[Path]) -> pa.ChunkedArray:
    """Return the column ``distance`` of some part files, in the order of the rows of the table of pairs.

    Raises
    ------
    ValueError
        The parts do not hold each row of the table once.
    """
    rows, found = [], []
    for part in parts:
        with open_part(part) as file:
            for table in file.tables(["pair", "distance"]):
                rows.append(table["pair"].to_numpy())
                found.append(table["distance"])
    row = np.concatenate(rows)
    order = np.full(row.size, -1, np.int64)
    if row.size and (row.min() < 0 or row.max() >= row.size):
        raise ValueError("a part holds a row that the table of pairs does not have")
    order[row] = np.arange(row.size)
    if (order < 0).any():
        raise ValueError(f"no part holds row {int((order < 0).argmax())} of the table of pairs")
    return pa.chunked_array([chunk for column in found for chunk in column.chunks]).take(pa.array(order))
