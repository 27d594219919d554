"""The names of the columns of a given table, from its header alone."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq

from kepler_traverse.formats.ids import detect_delimiter, is_id_table
from kepler_traverse.runtime.object_stores import local_path
from kepler_traverse.runtime.regular_files import open_regular

from .tables_in_memory import columns_in_memory, is_in_memory


def columns_of_file(path: str, what: str, is_table: bool) -> list[str] | None:
    """Return the names of the columns of a table of ids; None for a file of ids alone, or one that
    cannot be read.

    ``path``: of the file, or the name of a table in memory. ``what``: "sources", "targets" or
    "pairs". ``is_table``: whether it is a table for sure. Otherwise a text file is one if its name
    and header say so, and a Parquet file if it has several columns.
    """
    if is_in_memory(path):
        return columns_in_memory(path)
    try:
        here = local_path(path)
        with open_regular(here, follow=True) as file:
            is_parquet = file.read(4) == b"PAR1"
        if is_parquet:
            names = list(pq.read_schema(here).names)
            return names if is_table or len(names) > 1 else None

        if not is_table and not is_id_table(here, what):
            return None
        # Only the first line is needed, so rows below it that do not fit are no error here.
        options = csv.ParseOptions(
            delimiter=detect_delimiter(here), invalid_row_handler=lambda _: "skip"
        )
        with csv.open_csv(here, parse_options=options) as reader:
            return list(reader.schema.names)
    except (OSError, ValueError, pa.ArrowException):
        return None  # the error is raised where the file is read
