"""Parquet: each file must have the columns; types may differ in width between files."""

from __future__ import annotations

import contextlib
import sys
from typing import Any, NamedTuple

import numpy as np

from .._arrays import arrow_types as kinds
from .._arrays import pyarrow
from ..errors import EdgeListError
from .arrow import check_edges, edges_of_batches, typed_columns
from .columns import check_type
from .edge_list import EdgeColumns, EdgeList, ReadOptions, columns_of_all, no_rows, read_each
from .files import WEIGHTS, DataFile, Where, reading
from .sizes import require_parquet, value_type

# Fewer rows are decoded on the host and copied to the GPU in less time than cuDF takes to import.
# On the host of an H200 16.8 million rows take 0.40 s with pyarrow and the copy, and 1.58 s with
# cuDF, of which almost all is its import. At this number of rows both would take equally long, if
# the time of pyarrow and the copy grows with the rows and the time of cuDF does not.
_ROWS_FOR_CUDF = 60_000_000
# rows, and bytes of the pages of a column, that are in memory at a time where columns are put into
# files
_ROWS_AT_ONCE = 1 << 14
_PAGES_AT_ONCE = 1 << 20


def read_parquet(files: list[DataFile], options: ReadOptions) -> EdgeList:
    """Return the edges of Parquet files. If the device is a GPU, cuDF reads them there where ids
    and weights are plain numbers and rows are many. All other files are read by pyarrow.
    """
    # Strings, filters, directions and weights that close an edge are left to the reader of the
    # host.
    if options.device == "cuda" and options.id_type != "string" and not options.reads_more:
        edges = _read_on_gpu(files, options)
        if edges is not None:
            return edges
    return read_each(files, options, _read_one)


def rows_in(file: DataFile) -> tuple[int, bool]:
    """Return the number of rows of a file, by its footer, and whether one of its columns holds
    text; raises EdgeListError if the file is damaged.
    """
    with reading(file, "Parquet"), file.open_random() as source:
        _check_head(source, file)
        metadata = pyarrow.parquet.read_metadata(source)
        # Text, and other bytes of any length, are of the physical type BYTE_ARRAY.
        types = {metadata.schema.column(i).physical_type for i in range(metadata.num_columns)}
        return metadata.num_rows, "BYTE_ARRAY" in types


def _read_one(file: DataFile, options: ReadOptions) -> EdgeList:
    """Return the edges of one file; NoRowsError if it has no row. With ``options.scratch`` it is
    read batch by batch, and columns are put into files.

    A file without rows may lack columns. Then the error says that it is empty, and not which column
    is missing, since other files may have the edges.
    """
    with reading(file, "Parquet"), file.open_random() as source:
        _check_head(source, file)
        metadata = pyarrow.parquet.read_metadata(source)
        source.seek(0)
        schema = metadata.schema.to_arrow_schema()
        try:
            columns = _choose_columns(schema, file, options)
        except EdgeListError:
            if metadata.num_rows:
                raise
            raise no_rows(file) from None
        if not metadata.num_rows:
            raise no_rows(file, columns)

        names = [name for name in columns.read_names if name not in file.partition_names]
        # Without scratch all row groups are in memory at once, so their sum counts (``whole``);
        # else each one alone.
        require_parquet(file, source, names, whole=options.scratch is None)
        if options.scratch is not None:
            with pyarrow.parquet.ParquetFile(
                source,
                page_checksum_verification=True,
                buffer_size=_PAGES_AT_ONCE,
                pre_buffer=False,
            ) as parquet:
                batches = parquet.iter_batches(_ROWS_AT_ONCE, columns=names)
                # puts what it makes of each batch into files, before the next one is read
                return edges_of_batches(batches, options, file, columns)
        # Not by ParquetFile, which decodes row groups one after another.
        table = pyarrow.parquet.read_table(
            source,
            columns=names,
            page_checksum_verification=True,
            pre_buffer=not file.is_local,  # few large reads, which pay where each one takes long
            partitioning=None,  # a folder named src=1 would give the column src
        )
        # Here rows are filtered, nulls refused, and ids and weights brought to their types.
        return check_edges(table, options, file, columns)


def _check_head(source: pyarrow.NativeFile, file: DataFile) -> None:
    """Raise EdgeListError for a file that does not begin as a Parquet file does; leave ``source``
    at its beginning. Readers of Parquet go by the end of a file alone.
    """
    if source.read(4) != b"PAR1":
        raise EdgeListError(f"{file}: it does not begin as a Parquet file does; it may be damaged")
    source.seek(0)


def _choose_columns(schema: pyarrow.Schema, file: DataFile, options: ReadOptions) -> EdgeColumns:
    """Return the columns of the edges of a file; EdgeListError for ids or weights of a wrong type,
    before any value is read.
    """
    columns = typed_columns(schema, options, file)
    for role, name in columns.roles.items():
        if name in file.partition_names:
            continue
        where = Where(file, role, name)
        kind = value_type(schema.field(name).type)
        if role not in WEIGHTS:
            check_type(kind, where)
        elif kinds.is_nested(kind):
            raise where.error(f"has type {kind}; weights must be integers, floats or durations")
    return columns


def _read_on_gpu(files: list[DataFile], options: ReadOptions) -> EdgeList | None:
    """Return the edges of files that cuDF reads; None if the columns are not plain numbers, or the
    rows few, so that the reader of the host decides.

    Every footer is read by pyarrow first: cuDF does not notice all damage, nor a column that one
    file lacks.
    """
    # What the footers say: columns, their types, and how many rows there are.
    heads: list[_Head] = []
    for file in files:
        head = _read_head(file, options)
        if head is None:
            return None
        if heads:
            # EdgeListError if the edges are in other columns or units than in the first file
            head.columns.agree_with(heads[0].columns, file, files[0])
        # The values of a column of a partition are in the names of folders, not in the file.
        if set(head.columns.roles.values()) & set(file.partition_names):
            return None
        heads.append(head)
    # those of the first file, with the unused columns of all
    columns = columns_of_all([head.columns for head in heads])
    types_of_files = [head.get_types(heads[0].columns) for head in heads]
    if not _are_plain_numbers(types_of_files, options) or any(file.compression for file in files):
        return None
    n_rows = sum(head.n_rows for head in heads)
    # Once cuDF is imported, few rows pay, too.
    if "cudf" not in sys.modules and n_rows < _ROWS_FOR_CUDF:
        return None
    import cudf

    # cuDF reads files of one schema in one call.
    groups = [[file] for file in files]
    if all(types == types_of_files[0] for types in types_of_files):
        groups = [files]
    frame = _join_frames(cudf, groups, list(columns.roles.values()))
    # Of a damaged file cuDF may return another number of rows; the host reader says what is wrong.
    if frame is None or len(frame) != n_rows:
        return None
    table = cudf.DataFrame({role: frame[name] for role, name in columns.roles.items()})
    rows = tuple((file.name, head.n_rows) for file, head in zip(files, heads, strict=True))
    return EdgeList(table=table, columns=columns, rows=rows)


class _Head(NamedTuple):
    """What the footer of a Parquet file says."""

    n_rows: int  # at least 1
    columns: EdgeColumns  # those that are read
    schema: pyarrow.Schema  # of all columns

    def get_types(self, columns: EdgeColumns) -> dict[str, Any]:
        """Return the types of Arrow that ``columns`` have in this file, by role."""
        return {role: self.schema.field(name).type for role, name in columns.roles.items()}


def _read_head(file: DataFile, options: ReadOptions) -> _Head | None:
    """Return what the footer of a file says, with its columns of edges; None if the file has no
    row. EdgeListError if the file is damaged, or lacks the columns.
    """
    with reading(file, "Parquet"), file.open_random() as source:
        _check_head(source, file)
        with pyarrow.parquet.ParquetFile(source) as parquet:
            if not parquet.metadata.num_rows:
                return None
            schema = parquet.schema_arrow
            return _Head(parquet.metadata.num_rows, _choose_columns(schema, file, options), schema)


def _join_frames(cudf: Any, groups: list[list[DataFile]], names: list[str]) -> Any:
    """Return the columns ``names`` of files as one frame of cuDF, one file below another; None if a
    value is null.

    ``cudf`` is the module. Files of a group have the same types, and are read in one call.
    """
    frames = [_frame(cudf, group, names) for group in groups]
    if any(frame[name].isnull().any() for frame in frames for name in names):
        return None
    if len(frames) == 1:
        return frames[0]
    return cudf.concat(frames, ignore_index=True)


def _are_plain_numbers(types_of_files: list[dict[str, Any]], options: ReadOptions) -> bool:
    """Return whether cuDF may read the files: whether their ids are of the integer type that is
    asked for, their weights integers, float32 or float64, and each column of one type in all files,
    or of integer types that one integer type holds.

    ``types_of_files`` has for each file the types of Arrow of its columns, by role.
    """
    for types in types_of_files:
        for role, kind in types.items():
            if role != "weight" and options.id_type not in ("auto", str(kind)):
                return False
            if not (
                kinds.is_integer(kind)
                or (role == "weight" and kind in (pyarrow.float32(), pyarrow.float64()))
            ):
                return False
    # Types that differ and that NumPy joins as floats go to the host reader, which looks whether a
    # float holds each integer. So do float32 beside float64, although joining them loses nothing.
    for role in types_of_files[0]:
        dtypes = {types[role].to_pandas_dtype() for types in types_of_files}
        if len(dtypes) > 1 and np.result_type(*dtypes).kind not in "iu":
            return False
    return True


def _frame(cudf: Any, files: list[DataFile], names: list[str]) -> Any:
    """Return the columns ``names`` of files with the same types as one frame of cuDF.

    ``cudf`` is the module. It opens local files itself, by their paths; files of other file systems
    are opened here.
    """
    with contextlib.ExitStack() as open_files:
        sources = []
        for file in files:
            if file.is_plain_path:
                sources.append(file.path)
            else:
                source = file.filesystem.open(file.path, "rb")
                sources.append(open_files.enter_context(source))
        # Without this a folder named src=1 would overwrite the column src of the file.
        no_partitions = {"partitioning": None}
        return cudf.read_parquet(
            sources, columns=names, use_pandas_metadata=False, dataset_kwargs=no_partitions
        )
