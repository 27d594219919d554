"""The partitions of a run: a folder of parts for each value of a column of the table of sources."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kepler_traverse.errors import InputError
from kepler_traverse.formats.files import shown
from kepler_traverse.graph import Graph
from kepler_traverse.search.query import SourceValues

from ..cli.options import Settings
from ..output.layout import PARTITION_NAME, partition_name
from ..output.rows import get_id
from .given_table import is_text
from .source_columns import read_column

_MAX_BYTES = 255  # of the name of a folder
_NULL = "__HIVE_DEFAULT_PARTITION__"


def by_partition(graph: Graph, settings: Settings, numbers: np.ndarray) -> tuple[np.ndarray, dict[str, int]]:
    """Order sources by their partition, and within one as they are given; return the number in each folder, too.

    ``numbers`` (int64 array): distinct vertex numbers of the sources.

    Raises InputError: the table of sources has no such column, or it cannot name folders; the message names file, column and
    row.
    """
    name = str(settings.partition_by)
    rows, column, where = read_column(graph, settings, name)
    if name.lower() in {each.lower() for each in (*settings.kind.columns, *(settings.value("values") or ()))}:
        raise InputError(f"{where}: the parts have a column of that name, which would be in their folder, too; rename it")
    if not (pa.types.is_integer(column.type) or is_text(column.type)):
        raise InputError(f"{where} has type {column.type}; partitions are integers or strings")
    values = column.unique()
    values = values.take(pc.array_sort_indices(values))
    folders = [partition_name(name, value) for value in values.to_pylist()]
    for value, folder in zip(values.to_pylist(), folders, strict=True):
        if not PARTITION_NAME.fullmatch(folder) or folder.endswith(f"={_NULL}") or len(folder.encode()) > _MAX_BYTES:
            raise InputError(
                f"{where}: {str(value)[:40]!r} cannot be a partition: the name of its folder has at most {_MAX_BYTES} "
                "bytes, begins with neither . nor _, and has a value; rename it"
            )

    def twice(row: int, first: int) -> InputError:
        source = get_id(graph, int(rows[row]))
        one, other = (shown(str(column[at])) for at in (row, first))
        return InputError(
            f"{where}, row {row}: source {source!r} is in {one} here and in {other} in row {first}; give it one"
        )

    codes = pc.index_in(column, value_set=values).to_numpy(zero_copy_only=False).astype(np.int64)
    own = np.array(SourceValues.of_rows(rows, codes, twice).of(numbers), np.int64)
    counts = np.bincount(own, minlength=len(folders)).tolist()
    return numbers[np.argsort(own, kind="stable")], dict(zip(folders, counts, strict=True))
