"""Arrow IPC files and streams, and Feather version 2, which is the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from .._arrays import arrow_types as kinds
from .._arrays import pyarrow
from ..errors import EdgeListError
from .column_names import choose_columns
from .columns import edge_column, is_duration_type, is_number_type, plain_column
from .edge_list import EdgeColumns, EdgeList, ReadOptions, no_rows, read_each
from .files import WEIGHTS, DataFile, Where, reading
from .selection import row_mask, select_rows
from .sizes import require_arrow, require_plain, value_type

# The bytes that a file begins with, in Arrow IPC and in Feather version 1, and the bytes that a
# stream of Arrow IPC ends with.
FILE_MAGIC = b"ARROW1"
FEATHER_V1_MAGIC = b"FEA1"
END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"


def read_arrow(files: list[DataFile], options: ReadOptions) -> EdgeList:
    """Return the edges of Arrow IPC files or streams, distinguished by their first bytes."""
    return read_each(files, options, _read_one)


def _read_one(file: DataFile, options: ReadOptions) -> EdgeList:
    """Return the edges of one file or stream; NoRowsError if it has no row. With
    ``options.scratch`` it is read batch by batch, and columns are put into files.

    A file without rows may lack columns. Then the error says that it is empty, and not which column
    is missing, since other files may have the edges.
    """
    with reading(file, "Arrow IPC"):
        batches = _open(file)
        try:
            columns = typed_columns(batches.schema, options, file)
        except EdgeListError:
            if any(batch.num_rows for batch in _iter_batches(batches)):
                raise
            raise no_rows(file) from None
        # Columns of partitions are in the names of folders, and not in the file.
        names = [name for name in columns.read_names if name not in file.partition_names]
        if options.scratch is not None:
            return edges_of_batches(
                (batch.select(names) for batch in _iter_batches(batches)), options, file, columns
            )
        return check_edges(batches.read_all().select(names), options, file, columns)


def _iter_batches(batches: Any) -> Iterator[pyarrow.RecordBatch]:
    """Yield the record batches of a reader as ``_open`` returns it: of a file by their numbers, of
    a stream one after another.
    """
    if hasattr(batches, "num_record_batches"):
        yield from map(batches.get_batch, range(batches.num_record_batches))
    else:
        yield from batches


def typed_columns(schema: pyarrow.Schema, options: ReadOptions, file: DataFile) -> EdgeColumns:
    """Return the columns of the edges of a file whose schema has types. Columns of its partitions,
    which its folders hold, may be among them.

    The types say which columns hold numbers, dates or durations, which names alone do not.
    """
    numeric = {field.name for field in schema if is_number_type(field.type)}
    numeric |= {name for name, value in file.partitions if isinstance(value, int | float)}
    dates = {
        field.name
        for field in schema
        if kinds.is_temporal(field.type) and not is_duration_type(field.type)
    }
    names = [*schema.names, *file.partition_names]
    columns = choose_columns(
        names, options, file, numeric=frozenset(numeric), dates=frozenset(dates)
    )
    # Durations are read in seconds, so files that are read together must agree on them.
    durations = {field.name for field in schema if is_duration_type(value_type(field.type))}
    weights_in_time = [
        role for role, name in columns.roles.items() if role in WEIGHTS and name in durations
    ]
    return replace(columns, durations=tuple(weights_in_time))


def edges_of_batches(
    batches: Iterable[pyarrow.RecordBatch],
    options: ReadOptions,
    file: DataFile,
    columns: EdgeColumns,
) -> EdgeList:
    """Return the edges of the batches of one file, whose columns are checked and brought to the
    types of an edge list.

    One batch is in memory at a time: what is made of it goes to files, if there is scratch space.
    There are no columns beside those of the edges, so no filter and no directions. NoRowsError if
    no batch has a row.
    """
    # By role, what collects the chunks of the column: a list, or a file in the scratch space.
    collected = {role: options.new_chunks() for role in columns.roles}
    rows = 0  # of the batches so far, which is the number of the next batch's first row
    for batch in batches:
        if batch.num_rows:
            piece = check_edges(
                pyarrow.Table.from_batches([batch]), options, file, columns, rows
            ).table
            for role, chunks in collected.items():
                chunks += piece[role].chunks
            rows += batch.num_rows
    if rows == 0:
        raise no_rows(file, columns)
    table = pyarrow.table(
        {role: pyarrow.chunked_array(list(chunks)) for role, chunks in collected.items()}
    )
    return EdgeList(table=table, columns=columns, rows=((file.name, rows),))


def check_edges(
    table: pyarrow.Table, options: ReadOptions, file: DataFile, columns: EdgeColumns, first: int = 0
) -> EdgeList:
    """Return the edges of a table of pyarrow, whose columns are checked and brought to the types of
    an edge list.

    ``columns`` says which columns these are, by the names that the table or the partitions of the
    file have. ``first`` is the number in the file of the first row of ``table``, for errors: above
    0 if the table is a part of the file. NoRowsError without a row; EdgeListError for a value that
    is no id or weight.
    """
    table.validate(full=True)
    for column in table.columns:
        require_plain(file, column)  # before a dictionary or views are unpacked below
    if table.num_rows == 0:
        raise no_rows(file, columns)

    def make_column(name: str) -> pyarrow.ChunkedArray:
        """Return a column of the table, or of the partitions of the file, with all rows."""
        is_partition = name in file.partition_names
        if is_partition:
            return file.partition_column(name, table.num_rows)
        return table.column(name)

    row_numbers = directions = None
    if columns.selection_names:
        selecting = pyarrow.table({name: make_column(name) for name in columns.selection_names})
        # the numbers of the rows that are left, None for all; and the directions of these rows
        row_numbers, directions = select_rows(selecting, columns, options, file)

    # Columns of the edges are converted in the rows that are left.
    if row_numbers is None:
        mask = None
    else:
        mask = row_mask(row_numbers, table.num_rows)
    typed = {}
    for role, name in columns.roles.items():
        if mask is None:
            column = make_column(name)
        else:
            column = plain_column(make_column(name)).filter(mask)
        where = Where(file, role, name, row_numbers, first)
        # ``where.role`` says whether these are ids or weights. With ``closes`` a null weight
        # becomes -1; else nulls are errors.
        typed[role] = edge_column(column, where, options.id_type, options.closes)
    return EdgeList(
        table=pyarrow.table(typed),
        columns=columns,
        rows=((file.name, table.num_rows),),
        row_numbers=row_numbers,
        directions=directions,
    )


def _open(file: DataFile) -> Any:
    """Return a reader of the record batches of a file or stream of pyarrow; EdgeListError if it is
    cut short, or asks for too much memory.
    """
    source = file.open_random(memory_map=True)
    start = source.read(8)
    size = source.size()
    if start.startswith(FEATHER_V1_MAGIC):
        raise EdgeListError(
            f"{file}: Feather version 1 is not supported; write it again as version 2 (Arrow IPC)"
        )
    if start.startswith(FILE_MAGIC):
        source.seek(0)
        batches = pyarrow.ipc.open_file(source)
        # An error if the buffers unpack to more than the memory that is free, or the footer lists a
        # batch twice. The first 8 bytes are the magic, filled up.
        require_arrow(file, source, batches.num_record_batches, begin=8)
        return batches
    # A stream cut between two batches reads as a shorter stream without an error, so its end must
    # be there.
    source.seek(max(0, size - len(END_OF_STREAM)))
    if source.read(len(END_OF_STREAM)) != END_OF_STREAM:
        raise EdgeListError(
            f"{file}: neither an Arrow file nor a whole Arrow stream; it may be cut short"
        )
    require_arrow(file, source, None, begin=0)
    source.seek(0)
    return pyarrow.ipc.open_stream(source)
