"""One way to read part files, Parquet or Arrow: a group of rows at a time, so that a large part
need not fit memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from . import matrix_file


@dataclass(frozen=True)
class PartReader:
    """An open part."""

    _file: Any
    metadata: Mapping[bytes, bytes]  # metadata of the file, with the job's footer
    schema: pa.Schema
    group_rows: Sequence[int]  # number of rows of each group

    @property
    def n_rows(self) -> int:
        return sum(self.group_rows)

    def read(self, group: int, columns: Sequence[str] | None = None) -> pa.Table:
        """Read a group of rows; all columns if none are named."""
        if isinstance(self._file, pq.ParquetFile):
            return self._file.read_row_group(group, columns=columns)
        table = pa.Table.from_batches([self._file.get_batch(group)])
        return table if columns is None else table.select(columns)

    def misleading(self, group: int, rows: pa.Table) -> str:
        """Describe what the footer says of a group of rows that would mislead readers who skip;
        ``""`` if nothing does.
        """
        if not isinstance(self._file, pq.ParquetFile):
            return ""
        facts = self._file.metadata.row_group(group)
        for number, name in enumerate(rows.column_names):
            column = facts.column(number)
            if getattr(column, "bloom_filter_offset", None) is not None:
                return f"column {name!r} has a Bloom filter, which this job does not write"
            if column.is_stats_set:
                wrong = _misleading_statistics(column.statistics, rows[name])
            else:
                wrong = ""
            if wrong:
                return f"column {name!r}: {wrong}"
        keys = [rows.column_names[each.column_index] for each in facts.sorting_columns]
        if any(each.descending for each in facts.sorting_columns) or not _ascends(
            rows.select(keys)
        ):
            return f"it is said to be sorted by {', '.join(keys)}"
        return ""

    def tables(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield all groups, one after another."""
        return (self.read(group, columns) for group in range(len(self.group_rows)))


def _misleading_statistics(statistics: Any, column: pa.ChunkedArray) -> str:
    """Describe how the statistics of a column of a row group differ from its values; ``""`` if they
    do not.
    """
    if statistics.has_null_count and statistics.null_count != column.null_count:
        return f"{statistics.null_count} nulls are stated, and it has {column.null_count}"
    if not statistics.has_min_max:
        return ""
    known = pc.min_max(column).as_py()
    for what, stated in (("min", statistics.min), ("max", statistics.max)):
        # Of floats, zero has two signs, and NaN is in no bound.
        if stated != known[what] and not (stated == 0 == known[what]):
            return f"{what} is stated as {stated!r:.60}, and it is {known[what]!r:.60}"
    return ""


def _ascends(keys: pa.Table) -> bool:
    """Return whether rows ascend by their columns, the first one first."""
    if not keys.num_columns or keys.num_rows < 2:
        return True
    n_rows = keys.num_rows
    is_decided: Any = None  # where an earlier column decides
    for column in keys.columns:
        before = column.slice(0, n_rows - 1)
        after = column.slice(1)
        if column.null_count:
            return False
        if is_decided is not None:
            falls = pc.and_(pc.greater(before, after), pc.invert(is_decided))
        else:
            falls = pc.greater(before, after)
        if pc.any(falls).as_py():
            return False
        rises = pc.less(before, after)
        if is_decided is not None:
            is_decided = pc.or_(rises, is_decided)
        else:
            is_decided = rises
    return True


@contextmanager
def open_part(path: Path) -> Iterator[PartReader]:
    """Open a part file; its name says which format it has.

    Raises OSError, pyarrow.ArrowException: it cannot be read.
    """
    if path.suffix == ".arrow":
        with pa.OSFile(str(path)) as source:
            arrow = pa.ipc.open_file(source)
            metadata, rows = matrix_file.metadata_and_rows(arrow)
            yield PartReader(arrow, metadata, arrow.schema, rows)
        return
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        counts = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
        yield PartReader(file, file.metadata.metadata or {}, file.schema_arrow, counts)
