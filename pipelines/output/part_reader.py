"""One way to read part files, Parquet or Arrow: a group of rows at a time, so that a large part
need not fit memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from . import matrix_file
from .parquet_statements import Statements


@dataclass(frozen=True)
class PartReader:
    """An open part."""

    _path: Path  # of the file
    _file: Any  # pyarrow's ``ParquetFile``, or ``RecordBatchFileReader`` for Arrow
    metadata: Mapping[bytes, bytes]  # metadata of the file, with the job's footer
    schema: pa.Schema  # of its rows
    group_rows: Sequence[int]  # number of rows of each row group, or of each batch of Arrow

    @property
    def n_rows(self) -> int:
        """Number of rows of the part."""
        return sum(self.group_rows)

    def read(self, group: int, columns: Sequence[str] | None = None) -> pa.Table:
        """Read the row group (Parquet) or the batch (Arrow) at position ``group``, as a table.

        ``columns``: names of the columns; None for all.
        """
        if isinstance(self._file, pq.ParquetFile):
            return self._file.read_row_group(group, columns=columns)
        table = pa.Table.from_batches([self._file.get_batch(group)])
        return table if columns is None else table.select(columns)

    def describe_false_statement(self, group: int, rows: pa.Table) -> str:
        """Describe what the file states falsely of a group, such as a bound by which readers skip
        it; ``""`` if nothing.

        ``rows``: all rows of the group, which the statements are compared with. An Arrow file
        states nothing.
        """
        if not isinstance(self._file, pq.ParquetFile):
            return ""
        return self._statements.first_fault(group, rows)

    @cached_property
    def _statements(self) -> Statements:
        """What the Parquet file states; it is read once, when it is first compared."""
        return Statements(self._path)

    def tables(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield all groups of rows, in order, each as a table; ``columns`` as in ``read``."""
        return (self.read(group, columns) for group in range(len(self.group_rows)))


@contextmanager
def open_part(path: Path) -> Iterator[PartReader]:
    """Open a part file within the block; the ending of its name says which format it has.

    Raises OSError, pyarrow.ArrowException, ValueError: it cannot be read. The checksum of each page
    of a Parquet file is verified when it is read.
    """
    if path.suffix == ".arrow":
        with pa.OSFile(str(path)) as source:
            arrow = pa.ipc.open_file(source)
            metadata, rows = matrix_file.metadata_and_rows(arrow)
            yield PartReader(path, arrow, metadata, arrow.schema, rows)
        return
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        counts = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
        if file.metadata.num_rows != sum(counts):
            raise ValueError(
                f"its footer states {file.metadata.num_rows} rows, and its row groups {sum(counts)}"
            )
        yield PartReader(path, file, file.metadata.metadata or {}, file.schema_arrow, counts)
