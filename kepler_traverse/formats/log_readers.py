"""The live rows of tables of Delta Lake and Apache Iceberg, read by their own packages (extra
``tables``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from .._arrays import pyarrow
from ..errors import EdgeListError, InputError, one_line
from .arrow import check_edges, typed_columns
from .edge_list import EdgeColumns, EdgeList, ReadOptions, no_rows, read_each
from .files import DataFile
from .log_tables import LOG_FORMATS, METADATA, LocalFolder, metadata_in, unread_error

_HINT = "version-hint.text"  # the file that some writers of Iceberg leave beside the metadata


def read_delta(files: list[DataFile], options: ReadOptions) -> EdgeList:
    """Return the edges of the live rows of tables of Delta Lake, in their newest version. ``files``
    are the folders of the tables.
    """
    return read_each(files, options, _read_delta)


def _read_delta(file: DataFile, options: ReadOptions) -> EdgeList:
    """Return the edges of one table of Delta Lake, of which only the columns are read that the
    edges and the filter need. NoRowsError if it has no row.
    """
    with _reading_table(file, "delta", "deltalake"):
        from deltalake import DeltaTable

        table = DeltaTable(file.path)
        schema = pyarrow.schema(table.schema().to_arrow())
        # the columns of the edges and of the filter, by their names and types
        columns = typed_columns(schema, options, file)
        # What readers of the first version read, a dataset of pyarrow knows, too.
        if table.protocol().min_reader_version == 1:
            batches: Any = (
                table.to_pyarrow_dataset().scanner(columns=columns.read_names).to_reader()
            )
        else:
            # what a dataset of pyarrow does not know: deletion vectors, columns under other names
            batches = pyarrow.RecordBatchReader.from_stream(table.scan(columns=columns.read_names))
        return _edges_of_table(batches, columns, options, file)


def read_iceberg(files: list[DataFile], options: ReadOptions) -> EdgeList:
    """Return the edges of the live rows of tables of Apache Iceberg, in their current version.
    ``files`` are the folders of the tables, or their files of metadata.
    """
    return read_each(files, options, _read_iceberg)


def _read_iceberg(file: DataFile, options: ReadOptions) -> EdgeList:
    """Return the edges of one table of Iceberg, of which only the columns are read that the edges
    and the filter need. NoRowsError if it has no row.
    """
    with _reading_table(file, "iceberg", "pyiceberg"):
        from pyiceberg.table import StaticTable

        table = StaticTable.from_metadata(_current_metadata(file))
        # the columns of the edges and of the filter, by their names and types
        columns = typed_columns(table.schema().as_arrow(), options, file)
        batches = table.scan(selected_fields=tuple(columns.read_names)).to_arrow_batch_reader()
        return _edges_of_table(batches, columns, options, file)


def _current_metadata(file: DataFile) -> str:
    """Return the path of the file with the current metadata of a table of Iceberg: the file that
    the user has named, else the file that a hint beside the metadata names, else the only file.

    Only the catalog of a table knows for certain which is current. EdgeListError if there are
    several files and no hint, or the hint names none of them.
    """
    if file.path.endswith(METADATA):
        return file.path
    folder = LocalFolder(file.path)
    # The folder of the metadata within that of the table, and the names of its files, sorted.
    below, names = metadata_in(folder)
    if folder.has(f"{below}/{_HINT}"):
        # The hint is the name of the file, with its ending or without, or a number of a version.
        hint = folder.head(f"{below}/{_HINT}").decode().strip()
        named = {hint, f"{hint}{METADATA}", f"v{hint}{METADATA}"}.intersection(names)
        if len(named) != 1:
            raise EdgeListError(
                f"{file}: {_HINT} names the metadata {hint[:80]!r}, which the table does not have"
            )
        return f"{file.path}/{below}/{named.pop()}"
    if len(names) == 1:
        return f"{file.path}/{below}/{names[0]}"
    raise EdgeListError(
        f"{file}: it is a table of Apache Iceberg with {len(names)} files of metadata, and only its catalog knows which is "
        f"current; give that file, such as {file.path}/{below}/{names[-1]} (pyiceberg: table.metadata_location)"
    )


def _edges_of_table(
    batches: Iterable[Any], columns: EdgeColumns, options: ReadOptions, file: DataFile
) -> EdgeList:
    """Return the edges of record batches of a table, checked as those of a file whose columns have
    types. NoRowsError if there is no row.
    """
    selected = [batch.select(columns.read_names) for batch in batches]
    if not any(batch.num_rows for batch in selected):
        raise no_rows(file, columns)
    return check_edges(pyarrow.Table.from_batches(selected), options, file, columns)


@contextmanager
def _reading_table(file: DataFile, name: str, package: str) -> Iterator[None]:
    """Turn whatever goes wrong in the block into an error that names the table and the package that
    reads it.

    ``name`` is the format of the table in ``LOG_FORMATS``. If ``package`` is not installed, the
    error says how to install it.
    """
    form = LOG_FORMATS[name]
    try:
        yield
    except (InputError, MemoryError):
        raise
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:  # a package that this one needs
            raise
        raise unread_error(str(file), form) from None  # which says how to install the package
    except Exception as error:  # of the package that reads the table
        problem = f"{type(error).__name__}: {one_line(error)}"
        raise EdgeListError(
            f"{file}: the table of {form.title} cannot be read by {package} ({problem})"
        ) from error
