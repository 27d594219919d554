"""Edge lists in memory: tables of any library that speaks Arrow, sparse matrices, pairs, and
columns of any kind.
"""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .. import arguments
from .._arrays import extent, get_device, namespace, pyarrow
from ..errors import EdgeListError, InputError, one_line, option_text
from ..labels import columns_in_order
from .arrow import check_edges, typed_columns
from .columns import edge_column, in_seconds, is_duration_type, list_chunks, plain_column
from .edge_list import (
    COLUMN_OPTIONS,
    END_OPTIONS,
    EdgeColumns,
    EdgeList,
    ReadOptions,
    no_edges,
    refuse_absurd_size,
)
from .files import WEIGHTS, DataFile, Where
from .selection import row_mask, select_rows
from .sizes import is_string_type, value_type

TABLES = (
    "a data frame of pandas, polars, cuDF or Dask, a pyarrow table, anything with __arrow_c_stream__ or __dataframe__, a "
    "mapping of columns, a SciPy sparse matrix, a list of (src, dst[, weight]) or an edge_index of shape (2, n_edges)"
)
_ROLES = ("src", "dst", "weight")  # of the elements of a tuple that is an edge
_STREAM = "__arrow_c_stream__"  # of tables with an Arrow interface
_LONG_UNITS = ("m", "h", "D", "W")  # of durations of NumPy, which pyarrow does not take
_TIME_UNITS = (*_LONG_UNITS, "s", "ms", "us", "ns")  # units of durations that are read


def is_table(value: Any) -> bool:
    """Return whether a value holds whole edges, and not one column of them: a mapping, a sparse
    matrix, a data frame or a table of Arrow, an array of two dimensions, a graph of PyTorch
    Geometric, or a list of lists or tuples.
    """
    if isinstance(value, Mapping):
        return True
    if value is None or isinstance(value, (str, bytes, bytearray)):
        return False
    if is_sparse(value) or _has_any(value, "columns", "schema", "__dataframe__"):
        return True
    # A column of Arrow or polars may be a stream, too.
    is_column = _has_any(value, "to_pylist", "dtype")
    if not is_column and _has_any(value, _STREAM, "__arrow_c_array__"):
        return True
    if is_edge_index(value) or _has_edge_index(value) or getattr(value, "ndim", 1) == 2:
        return True
    return (
        isinstance(value, (list, tuple)) and len(value) > 0 and isinstance(value[0], (list, tuple))
    )


def as_rows(value: Any) -> Any:
    """Return a value that gives edges one by one, such as an iterator, a set, or another package's
    list, as a list of them.

    Structured arrays become mappings of their columns. Any other value is returned as it is.
    """
    if isinstance(value, (str, bytes, list, tuple, range, Mapping)):
        return value
    dtype = getattr(value, "dtype", None)
    if getattr(dtype, "names", None) and getattr(value, "ndim", 0) == 1:
        return arguments.columns("the structured array", value)
    if holds_rows(value):
        return list(value)
    # tables, and columns: arrays, Series, tensors
    if is_table(value) or hasattr(value, "dtype"):
        return value
    if any(
        hasattr(value, name)
        for name in ("nodes", "adj", "vs", "read", "to_pylist", "__arrow_c_stream__")
    ):
        return value  # a graph, whose items are vertices; a file; a column
    if not (hasattr(value, "__len__") and hasattr(value, "__iter__")):
        return value
    # What is left, such as a set or another package's list, is read once. Only if each item is a
    # tuple or a list, the items are edges.
    rows = list(value)
    if rows and all(isinstance(row, (tuple, list)) for row in rows):
        return [tuple(row) for row in rows]
    return value


def is_sparse(value: Any) -> bool:
    """Return whether a value is a sparse matrix or array of SciPy or CuPy, in any format."""
    return _has(value, "tocoo") and _has(value, "nnz") and _has(value, "shape")


def is_edge_index(value: Any) -> bool:
    """Return whether a value is an array of shape (2, n_edges), as PyTorch Geometric has edges."""
    return (
        getattr(value, "ndim", 1) == 2
        and not _has(value, "columns")
        and not is_sparse(value)
        and value.shape[0] == 2
    )


def column_tuple(value: Any) -> tuple[Any, ...] | None:
    """Return a value if it is a tuple of two or three columns, else None.

    A tuple of tuples is None, as it holds edges or pairs.
    """
    if type(value) is not tuple or len(value) not in (2, 3):
        return None
    if any(isinstance(part, (tuple, str, bytes)) or not _has(part, "__len__") for part in value):
        return None
    return value


def holds_rows(value: Any) -> bool:
    """Return whether a value gives edges or pairs one by one, and no columns: whether it is a list
    of tuples or lists, an iterator, or an index of pandas with several levels.
    """
    if isinstance(value, (list, tuple)):
        return column_tuple(value) is None and any(
            isinstance(row, (list, tuple)) for row in value[:1]
        )
    if _has_any(value, "columns", "schema", "dtype", "__dataframe__", _STREAM, "__arrow_c_array__"):
        return getattr(value, "nlevels", 1) > 1  # True only for an index of pandas with levels
    return isinstance(value, Iterator) or (
        isinstance(value, Sequence) and len(value) > 0 and isinstance(value[0], tuple)
    )


def listed_rows(name: str, rows: Iterable[Any], what: str, *forms: str) -> list[Any]:
    """Return edges or pairs as a list, in which each is a tuple or a list.

    For errors, ``name`` is what the rows are called, and ``what`` says what each is: "edges" or
    "pairs". ``forms`` are what a row may be, such as ``"(src, dst)"``. EdgeListError if a row has
    none of these forms, or another length than the first; or if lists could be columns.
    """
    entries = list(rows)
    widths = [form.count(",") + 1 for form in forms]  # how many elements a row may have
    if entries and isinstance(entries[0], (list, tuple)):
        width = len(entries[0])
    else:
        width = 0
    for row, entry in enumerate(entries):
        if not isinstance(entry, (list, tuple)) or len(entry) != width or width not in widths:
            must = ", or each ".join(forms)
            raise EdgeListError(
                f"{name}: row {row} is {arguments.describe(entry)}; each must be {must}", row
            )
    has_lists = any(isinstance(entry, list) for entry in entries)
    # Lists as many as a row has elements may be columns. A tuple may hold any number of columns.
    if has_lists and (len(entries) in widths or isinstance(rows, tuple)):
        raise EdgeListError(
            f"{name}: {len(entries)} lists could be {what} or columns: give {what} as tuples, [{forms[0]}, ...], or columns "
            "as one tuple of them"
        )
    return entries


def _has(value: Any, name: str) -> bool:
    """Return whether the type of a value has an attribute. To ask the value itself could compute
    the schema of a lazy frame, or warn.
    """
    return hasattr(type(value), name)


def _has_any(value: Any, *names: str) -> bool:
    """Return whether the type of a value has one of some attributes."""
    return any(_has(value, name) for name in names)


def _has_edge_index(value: Any) -> bool:
    """Return whether a value is a graph of PyTorch Geometric, or has the same attributes."""
    return _has(value, "is_edge_attr") and getattr(value, "edge_index", None) is not None


def _library(value: Any) -> str:
    """Return "cudf", "pandas", "polars" or "torch" if a value's type, or a type that it is derived
    from, is of that library; else ``""``.
    """
    packages = [base.__module__.partition(".")[0] for base in type(value).__mro__]
    return next((name for name in packages if name in ("cudf", "pandas", "polars", "torch")), "")


def read_table(value: Any, options: ReadOptions) -> EdgeList:
    """Return the edges of a table in memory, one of ``TABLES``; only the columns of the edges are
    converted.

    Levels of a data frame's index that have names, as ``u`` and ``v`` of OSMnx, are columns of the
    table. ``EdgeList.table`` of the result is a pyarrow table, a dict of arrays, or a cuDF frame if
    the value is one with integer ids. EdgeListError if columns are missing, or cannot be ids or
    weights, for nulls, or without rows; InputError if the value is no table.
    """
    name = f"the {_name_type(value)}"
    try:
        # The adapter at the end of ``_ADAPTERS`` fits any value, so there is always one.
        read = next(read for fits, read in _ADAPTERS if fits(value))
        return read(value, DataFile.named(name), options)
    except (InputError, MemoryError):
        raise
    except Exception as error:  # of the library that owns the table, which may raise anything
        raise EdgeListError(
            f"{name} cannot be read as a table ({type(error).__name__}: {one_line(error)})"
        ) from error


def _name_type(value: Any) -> str:
    """Return a value's type for messages, with its library: ``"pandas DataFrame"``."""
    module = type(value).__module__.partition(".")[0]
    if module == "builtins":
        return type(value).__name__
    return f"{module} {type(value).__name__}"


def _edges_of_arrow(value: Any, source: DataFile, options: ReadOptions) -> EdgeList:
    """Return the edges of a table with an Arrow or a data frame interface; InputError for any other
    value. ``source`` names the table in errors.
    """
    reader = _make_reader(value, source)
    columns = typed_columns(reader.schema, options, source)
    return _edges_of_batches(reader, columns, source, options, _has(value, "read_next_batch"))


def _make_reader(value: Any, source: DataFile) -> Any:
    """Return a pyarrow.RecordBatchReader of whatever has an Arrow or a data frame interface;
    InputError for other values.
    """
    if isinstance(value, pyarrow.RecordBatchReader):
        return value
    if hasattr(value, _STREAM):
        return pyarrow.RecordBatchReader.from_stream(value)
    if hasattr(value, "__arrow_c_array__"):
        batch = pyarrow.record_batch(value)
        return pyarrow.RecordBatchReader.from_batches(batch.schema, [batch])
    if hasattr(value, "__dataframe__"):
        return pyarrow.interchange.from_dataframe(value).to_reader()
    raise InputError(f"{source} is no table of edges; give {TABLES}")


def _edges_of_batches(
    batches: Iterable[Any],
    columns: EdgeColumns,
    source: DataFile,
    options: ReadOptions,
    is_reader: bool = False,
) -> EdgeList:
    """Return the edges of record batches, whose ``columns`` are known.

    As batches are taken one by one, what they hold beside the edges is never in memory at once.
    ``is_reader``: the user gave a reader, which is empty if it was read before. If no batch has a
    row, EdgeListError unless ``options.may_be_empty``.
    """
    selected = [batch.select(columns.read_names) for batch in batches]
    if not any(batch.num_rows for batch in selected):
        if is_reader:
            advice = "; a reader can be read once: make a new one"
        else:
            advice = _IF_NONE
        return _without_rows(source, options, columns, advice)
    table = pyarrow.Table.from_batches(selected)
    del selected
    # Here rows are filtered, and ids and weights checked and brought to their types.
    return check_edges(table, options, source, columns)


# what the error for a table without rows advises
_IF_NONE = "; for a graph without edges give its vertices, as vertices=ids"


def _without_rows(
    source: DataFile,
    options: ReadOptions,
    columns: EdgeColumns | None = None,
    advice: str = _IF_NONE,
) -> EdgeList:
    """Return the empty edge list of a table without rows; EdgeListError, which ends in ``advice``,
    unless ``options.may_be_empty``: a graph with neither edges nor vertices is refused.
    """
    if options.may_be_empty:
        return no_edges(source.name, columns)
    raise EdgeListError(f"{source} holds no edges (0 rows){advice}")


def _edges_of_lazy(frame: Any, source: DataFile, options: ReadOptions) -> EdgeList:
    """Return the edges of a lazy frame of polars, of which only the columns are collected that the
    edges and the filter need.
    """
    # The schema of the first 0 rows says which columns hold the edges.
    columns = typed_columns(frame.head(0).collect().to_arrow().schema, options, source)
    collected = frame.select(columns.read_names).collect()
    return _edges_of_batches(_make_reader(collected, source), columns, source, options)


def _columns_of_pandas(frame: Any) -> list[tuple[str, Any]]:
    """Return (name, values) of each level of the index that has a name, and then of each column."""
    levels = [
        (str(name), frame.index.get_level_values(i))
        for i, name in enumerate(frame.index.names)
        if name is not None
    ]
    return levels + [(str(name), frame.iloc[:, i]) for i, name in enumerate(frame.columns)]


def _schema_of_pandas(frame: Any) -> Any:
    """Return the schema of a frame of pandas by the types of its columns alone: no value is
    converted.

    A column whose type Arrow lacks, such as geometries, has the type null.
    """

    def detect_type(values: Any) -> Any:
        """Return the type of Arrow of a column, by converting none of its values."""
        try:
            return pyarrow.array(values[:0], from_pandas=True).type
        except Exception:  # whatever the library of that type raises: such a column is no edge's
            return pyarrow.null()

    return pyarrow.schema(
        [
            pyarrow.field(name, detect_type(values))
            for name, values in _columns_of_pandas(frame.head(0))
        ]
    )


def _edges_of_pandas(
    parts: Any, source: DataFile, options: ReadOptions, columns: EdgeColumns | None = None
) -> EdgeList:
    """Return the edges of a frame of pandas, or of a list of frames, which is emptied.

    Columns are converted one by one: a stream would convert all, geometries too. ``columns`` are
    those of the edges, if they are known already.
    """
    if not isinstance(parts, list):
        parts = [parts]
    # By names and types: the columns of the ends, of weights, directions and the filter.
    columns = columns or typed_columns(_schema_of_pandas(parts[0]), options, source)
    if not any(map(len, parts)):
        return _without_rows(source, options, columns)

    # Each part becomes a table, and is released.
    optional = _optional_columns(columns, options)  # columns that a filter may read or not
    lacking = set[str]()  # the columns of ``optional`` that pyarrow cannot convert
    tables = []
    is_one = len(parts) == 1
    while parts:
        # Popped, so that nothing but ``values`` holds the part.
        values = dict(_columns_of_pandas(parts.pop(0)))
        arrays = {}
        for name in columns.read_names:
            try:
                # ``arrow`` validates a column in Arrow's memory; any other is returned as it is.
                array = pyarrow.array(arguments.arrow(name, values[name]), from_pandas=True)
                # Columns of a frame share memory. As copies of their own, each is freed when it has
                # been joined. pyarrow copies only where it joins two arrays or more, so an empty
                # array is joined to each.
                if not is_one:
                    array = pyarrow.concat_arrays([*list_chunks(array), *list_chunks(array[:0])])
                arrays[name] = array
            except Exception as error:  # of pyarrow, or whatever the library of that type raises
                if name in optional and not isinstance(error, MemoryError):
                    lacking.add(name)
                    continue
                if not isinstance(
                    error, (pyarrow.ArrowException, TypeError, ValueError, OverflowError)
                ):
                    raise
                problem = (
                    "holds values of several kinds, or of none that is an id "
                    f"or a number ({one_line(error)})"
                )
                where = Where(source, _role_of_column(columns, name), name)
                raise where.error(f"{problem}; convert it") from None
        tables.append(pyarrow.table(arrays))
        del values, arrays, array

    # A column that is lacking in one part is left out of all.
    columns = replace(
        columns, filters=tuple(name for name in columns.filters if name not in lacking)
    )
    tables = [table.select(columns.read_names) for table in tables]
    # Partitions of Dask may differ in the width of a category's codes, or hold nothing but nulls.
    if len(tables) == 1:
        table = tables[0]
    else:
        table = pyarrow.concat_tables(tables, promote_options="permissive")
    del tables
    # Only here are rows filtered, nulls refused, and ids and weights brought to their types.
    return check_edges(table, options, source, columns)


def _role_of_column(columns: EdgeColumns, name: str) -> str:
    """Return what a column that is read is for, as errors call it: "src", "dst", "weight",
    "reverse_weight", "oneway" or "where".
    """
    for role, chosen in columns.roles.items():
        if chosen == name:
            return role
    return "oneway" if name == columns.oneway else "where"


def _optional_columns(columns: EdgeColumns, options: ReadOptions) -> set[str]:
    """Return the names of the columns that are read only because an expression of pyarrow does not
    say which columns it needs. It needs none that Arrow cannot hold, so these may be left out.
    """
    if options.names_columns:
        return set()
    return set(columns.filters) - {*columns.roles.values(), columns.oneway}


def _edges_of_dask(frame: Any, source: DataFile, options: ReadOptions) -> EdgeList:
    """Return the edges of a frame of Dask, of which only the columns that are read are computed.

    Partitions of cuDF are computed into one frame of cuDF, and those of pandas into a list of
    frames.
    """
    meta = frame._meta  # an empty frame with the columns and types of the partitions
    is_cudf = _library(meta) == "cudf"
    if is_cudf:
        schema = _with_levels(meta, source).to_arrow(preserve_index=False).schema
    else:
        schema = _schema_of_pandas(meta)
    columns = typed_columns(schema, options, source)
    chosen = frame[[label for label in frame.columns if str(label) in columns.read_names]]
    if is_cudf:
        return _edges_of_cudf(chosen.compute(), source, options, columns)

    # A local function, so that workers get its code and need not have this library.
    def put_in_cell(part: Any) -> Any:
        """Return a frame with one cell, which is a dict that holds a partition."""
        import pandas

        return pandas.DataFrame({"part": [{"frame": part}]})

    # Dask would put all partitions into one frame: a second copy of the edges beside them. So each
    # is one cell of the frame, in a dict that it can be taken out of.
    cells = chosen.map_partitions(put_in_cell, meta={"part": object}).compute()
    parts = [cell.pop("frame") for cell in cells["part"]]
    return _edges_of_pandas(parts, source, options, columns)


def _with_levels(frame: Any, source: DataFile) -> Any:
    """Return a frame of cuDF with all levels of its index as columns, if a level has a name; else
    the frame as it is.

    EdgeListError if a level and a column have one name.
    """
    levels = [name for name in frame.index.names if name is not None]
    twice = next((name for name in levels if name in frame.columns), None)
    if twice is not None:
        raise EdgeListError(
            f"{source}: {twice!r} is a level of the index and a column, too; rename one of them"
        )
    return frame.reset_index() if levels else frame


def _edges_of_cudf(
    frame: Any, source: DataFile, options: ReadOptions, columns: EdgeColumns | None = None
) -> EdgeList:
    """Return the edges of a frame of cuDF.

    They stay in GPU memory, as a frame of cuDF, if ids are integers, no column of the edges has
    nulls, and no type of ids was declared. Else they are converted on the host, to a pyarrow table.
    ``columns`` are those of the edges, if they are known already.
    """
    frame = _with_levels(frame, source)
    columns = columns or typed_columns(
        frame.head(0).to_arrow(preserve_index=False).schema, options, source
    )
    if not len(frame):
        return _without_rows(source, options, columns)

    # Numbers without nulls are taken as they are, all else by way of the host.
    names = list(columns.roles.values())
    are_numbers = all(frame[name].dtype.kind in "iu" for name in (columns.src, columns.dst))
    if columns.weight is not None:
        are_numbers = are_numbers and frame[columns.weight].dtype.kind in "iuf"
    if are_numbers and options.id_type == "auto":
        # None: no filter, so that all rows are left; and no column of directions.
        row_numbers = directions = None
        # Filter and directions are evaluated by pyarrow, on the host.
        if columns.selection_names:
            row_numbers, directions = select_rows(
                frame[columns.selection_names].to_arrow(preserve_index=False),
                columns,
                options,
                source,
            )
        if row_numbers is None:
            edges = frame[names]
        else:
            edges = frame[names].take(row_numbers)
        if not any(edges[name].isnull().any() for name in names):
            table = edges.rename(columns={name: role for role, name in columns.roles.items()})
            rows = ((source.name, len(frame)),)
            return EdgeList(
                table=table,
                columns=columns,
                rows=rows,
                row_numbers=row_numbers,
                directions=directions,
            )
    return check_edges(
        frame[columns.read_names].to_arrow(preserve_index=False), options, source, columns
    )


def _edges_of_sparse(matrix: Any, source: DataFile, options: ReadOptions) -> EdgeList:
    """Return the edges of a sparse matrix: an edge per stored entry, explicit zeros included, from
    the row of the entry to its column. 0..n-1 are the vertices.

    EdgeListError if the matrix is not square, or it is not sure what its entries mean.
    """
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise EdgeListError(
            f"{source} must be square to be the matrix of a graph, not "
            f"of shape {tuple(matrix.shape)}"
        )
    _refuse_names(source, options, is_numbered=True)
    n = int(matrix.shape[0])
    # EdgeListError for more vertices than memory could number, which a shape easily claims
    refuse_absurd_size(source, n)
    # Before SciPy converts the matrix: its compiled code takes the arrays for valid.
    arguments.sparse(str(source), matrix)
    _refuse_zeros_in_blocks(matrix, source)

    coo = matrix.tocoo(copy=False)
    weighted = options.weighted
    if weighted is None:  # the user left open whether there are weights
        weighted = coo.data.dtype.kind != "b"  # booleans only say that there is an edge
    entries = {"src": coo.row, "dst": coo.col}
    names = EdgeColumns(src="row", dst="column")
    if weighted:
        _refuse_repeated_entries(matrix, coo, source)
        entries["weight"] = coo.data
        names = EdgeColumns(src="row", dst="column", weight="data")
    columns = {role: arguments.as_array(role, entry) for role, entry in entries.items()}
    return _edges_of_arrays(columns, names, source, n_vertices=n)


def _refuse_zeros_in_blocks(matrix: Any, source: DataFile) -> None:
    """Raise EdgeListError for a matrix of blocks (BSR) that holds zeros: a block is stored whole,
    so that a zero may be an edge of weight 0 or no edge.
    """
    if matrix.format == "bsr" and tuple(matrix.blocksize) != (1, 1) and not matrix.data.all():
        raise EdgeListError(
            f"{source} holds zeros in its blocks, and whether those are edges of weight 0 or "
            f"no edges is not known: give matrix.tocsr(), in which each is an edge, and "
            f"first call eliminate_zeros() on that if none is"
        )


def _refuse_repeated_entries(matrix: Any, coo: Any, source: DataFile) -> None:
    """Raise EdgeListError for weights stored twice for one edge: SciPy adds them up, and a graph
    keeps the least. ``coo`` is the matrix in coordinate form.
    """
    # Converted to rows, entries of one place are added up, so that there are fewer.
    is_canonical = getattr(matrix, "has_canonical_format", False)
    if not is_canonical and coo.tocsr().nnz < coo.nnz:
        columns = "its row, col and data"
        if matrix.format != "coo":
            columns = "the row, col and data of its tocoo()"
        raise EdgeListError(
            f"{source} stores some entries more than once: call sum_duplicates() to add those "
            f"up, as SciPy takes them, or give {columns} as src, dst and weight to keep the least"
        )


def _refuse_names(
    source: DataFile, options: ReadOptions, *, only_ends: bool = False, is_numbered: bool = False
) -> None:
    """Raise InputError for options that name columns, for a table whose columns have no names.

    With ``only_ends`` just the two ends have none. With ``is_numbered`` a type of ids is refused,
    too, since the table numbers its vertices 0..n-1.
    """
    for option in END_OPTIONS if only_ends else (*COLUMN_OPTIONS, "where"):
        if getattr(options, option) is not None:
            raise InputError(f"{source} has no columns with names; leave {option_text(option)} out")
    if is_numbered and options.id_type != "auto":
        raise InputError(
            f"{source} numbers its vertices from 0; leave {option_text('id_type')} out"
        )


def _edges_of_index(array: Any, source: DataFile, options: ReadOptions) -> EdgeList:
    """Return the edges of an array of shape (2, n_edges), as PyTorch Geometric has them: tails in
    the first row, heads in the second. EdgeListError for another shape.
    """
    if array.shape[0] != 2:
        if array.shape[1] == 2:
            advice = "give its transpose"
        else:
            advice = "give src and dst"
        raise EdgeListError(
            f"{source} of shape {tuple(array.shape)} is no edge_index, "
            f"which has shape (2, n_edges); {advice}"
        )
    _refuse_names(source, options)
    # The first row has the tails, and the second the heads. Errors call the columns by position.
    columns = {role: as_column(role, array[i]) for i, role in enumerate(("src", "dst"))}
    if not len(columns["src"]):
        return _without_rows(source, options)
    return replace(
        edges_of_columns(columns, options, source), columns=EdgeColumns(src="0", dst="1")
    )


def _edges_of_data(data: Any, source: DataFile, options: ReadOptions) -> EdgeList:
    """Return the edges of a graph of PyTorch Geometric: the ends of its ``edge_index``, and as the
    weight the attribute of edges that is known by its name, or that the options name.
    """
    _refuse_names(source, options, only_ends=True, is_numbered=True)
    index = data.edge_index
    if not is_edge_index(index):
        raise EdgeListError(
            f"{source} has an edge_index of shape {tuple(index.shape)}, which must be (2, n_edges)"
        )

    # Attributes of edges are the other columns.
    with warnings.catch_warnings():
        # where the number of nodes is not stated, PyTorch Geometric warns here, too
        warnings.simplefilter("ignore")
        attributes = [
            name
            for name in data.keys()  # noqa: SIM118
            if name != "edge_index" and data.is_edge_attr(name)
        ]
    table = {"src": index[0], "dst": index[1]} | {name: data[name] for name in attributes}
    # The type null stands for "not known", so that columns are chosen by their names alone.
    schema = pyarrow.schema([pyarrow.field(name, pyarrow.null()) for name in table])
    columns = typed_columns(schema, options, source)
    chosen = {role: as_column(role, table[name]) for role, name in columns.roles.items()}

    # The number of vertices. PyTorch Geometric warns where it guesses, by the largest end.
    with warnings.catch_warnings(record=True) as guesses:
        warnings.simplefilter("always")
        n = data.num_nodes
    n_vertices = None
    if n is not None and not guesses:
        n_vertices = int(n)
    edges = _edges_of_arrays(chosen, columns, source, n_vertices)
    if not columns.selection_names:
        return edges
    return _select_from_columns(edges, table, options, source)


def _edges_of_pairs(pairs: Sequence[Any], source: DataFile, options: ReadOptions) -> EdgeList:
    """Return the edges of a list of tuples ``(src, dst)`` or ``(src, dst, weight)``, as NetworkX
    and igraph take them.
    """
    _refuse_names(source, options)
    listed_rows(str(source), pairs, "edges", "(src, dst)", "(src, dst, weight)")
    width = len(pairs[0])
    # One column at a time, as lists are larger than the arrays that they become.
    columns = {
        role: as_column(role, [pair[i] for pair in pairs]) for i, role in enumerate(_ROLES[:width])
    }
    return edges_of_columns(columns, options, source)


def _edges_of_mapping(table: Mapping[str, Any], source: DataFile, options: ReadOptions) -> EdgeList:
    """Return the edges of a mapping of columns.

    The table of the edges is a dict of arrays, on the device of the columns. It is a pyarrow table
    if ids are strings or a type of ids was declared, and where a filter was evaluated first.
    """
    unnamed = next((name for name in table if not isinstance(name, str)), None)
    if unnamed is not None:
        raise InputError(
            f"{source}: names of columns must be strings, not {arguments.describe(unnamed)}"
        )
    # Series with labels are brought into the order of the first column that has some.
    table = columns_in_order(str(source), table)
    # The type null stands for "not known": a column is converted only once it is chosen.
    schema = pyarrow.schema([pyarrow.field(name, pyarrow.null()) for name in table])
    columns = typed_columns(schema, options, source)

    # A filter comes before the columns are ids and weights: the rows that it leaves out need not
    # hold any.
    is_on_gpu = any(get_device(table[name]) == "cuda" for name in columns.roles.values())
    if options.where is not None and not is_on_gpu:
        arrow_columns, columns = _as_arrow_columns(table, columns, options, columns.read_names)
        if not any(map(len, arrow_columns.values())):
            return _without_rows(source, options, columns)
        return check_edges(pyarrow.table(arrow_columns), options, source, columns)

    chosen = {role: as_column(role, table[name]) for role, name in columns.roles.items()}
    if not any(map(len, chosen.values())):
        return _without_rows(source, options, columns)
    edges = replace(edges_of_columns(chosen, options, source), columns=columns)
    if not columns.selection_names:
        return edges
    return _select_from_columns(edges, table, options, source)


def _select_from_columns(
    edges: EdgeList, table: Mapping[str, Any], options: ReadOptions, source: DataFile
) -> EdgeList:
    """Return the edges in the rows that the filter leaves, with the directions of these rows.

    ``edges`` are in memory, and have all rows. ``table`` has, by name, the columns that the filter
    and the directions read.
    """
    edge_columns: Any = edges.table
    selecting, columns = _as_arrow_columns(
        table, edges.columns, options, edges.columns.selection_names
    )
    # Filter and directions must have a value for each row of the edges.
    require_same_lengths({"src": edge_columns["src"], **selecting})
    # the numbers of the rows that are left, None for all; and the directions of these rows
    row_numbers, directions = select_rows(pyarrow.table(selecting), columns, options, source)
    if row_numbers is not None and isinstance(edge_columns, dict):
        edge_columns = {
            role: column[namespace(column).asarray(row_numbers)]
            for role, column in edge_columns.items()
        }
    elif row_numbers is not None:
        edge_columns = edge_columns.filter(row_mask(row_numbers, edge_columns.num_rows))
    return replace(edges, table=edge_columns, row_numbers=row_numbers, directions=directions)


def _as_arrow_columns(
    table: Mapping[str, Any], columns: EdgeColumns, options: ReadOptions, names: Sequence[str]
) -> tuple[dict[str, Any], EdgeColumns]:
    """Return the columns ``names`` of a mapping, by name, as chunked arrays of pyarrow of one
    length; and a copy of ``columns`` whose ``filters`` are only the columns that were converted.

    A column that Arrow cannot hold is left out if a filter may read it or not; EdgeListError for
    any other such column, or if lengths differ.
    """
    arrow_columns = {}
    optional = _optional_columns(columns, options)
    for name in names:
        try:
            arrow_columns[name] = as_arrow_column(name, table[name])
        except EdgeListError:
            # An expression of pyarrow may name this column or not, and cannot read it.
            if name not in optional:
                raise
    require_same_lengths(arrow_columns)
    filters = tuple(name for name in columns.filters if name in arrow_columns)
    return arrow_columns, replace(columns, filters=filters)


def edges_of_columns(columns: dict[str, Any], options: ReadOptions, source: DataFile) -> EdgeList:
    """Return the edges of columns by role: ``src``, ``dst``, and perhaps ``weight`` and
    ``reverse_weight``, as ``as_column`` returns them.

    ``source`` names the columns in errors. The table of the edges is a dict of arrays, or a pyarrow
    table if ids are strings, or shall have a type of their own.
    """
    if options.weighted is False:
        columns = {role: column for role, column in columns.items() if role != "weight"}
    elif options.weighted and "weight" not in columns:
        raise EdgeListError(
            f"{source} has no weights, which {option_text('weighted', True)} requires; give weight"
        )
    # ``WEIGHTS`` are the two roles of weights. Columns in memory are called by their roles.
    weight, reverse_weight = (role if role in columns else None for role in WEIGHTS)
    names = EdgeColumns(src="src", dst="dst", weight=weight, reverse_weight=reverse_weight)

    # Arrays stay arrays, unless an id is a string or shall be one.
    as_text = options.id_type == "string" or any(
        isinstance(column, pyarrow.ChunkedArray) for column in columns.values()
    )
    if not as_text and options.id_type == "auto":
        return _edges_of_arrays(columns, names, source)
    require_same_lengths(columns)
    typed = {}
    for role, column in columns.items():
        if not isinstance(column, pyarrow.ChunkedArray):
            column = pyarrow.chunked_array(
                [pyarrow.array(column.get() if get_device(column) == "cuda" else column)]
            )
        where = Where(source, role, role)
        # EdgeListError for nulls; with ``closes`` a null weight becomes -1 instead.
        typed[role] = edge_column(column, where, options.id_type, options.closes)
    return EdgeList(
        table=pyarrow.table(typed), columns=names, rows=((source.name, len(typed["src"])),)
    )


def as_column(role: str, value: Any) -> Any:
    """Return a column as an array of numbers, or, if it holds strings, as a pyarrow chunked array.

    ``value`` is an array, tensor, list, range, Series or pyarrow array. Arrays in GPU memory stay
    there. ``role`` is what errors call it; a column of the roles of weights may hold durations,
    which become seconds. EdgeListError or InputError for nulls, mixed types, or no column.
    """
    # A column of Dask, of Python or of another library becomes one that the functions below know. A
    # column in GPU memory stays an array of CuPy or a Series of cuDF.
    if arguments.is_dask(value):
        value = value.compute()
    if isinstance(value, (list, tuple)):
        # a list in which scalars of other libraries are Python's own
        value = arguments.plain_list(value)
    if get_device(value) == "cpu":
        # validates a column in Arrow's memory; any other value is returned as it is
        value = arguments.arrow(role, value)
    if role in WEIGHTS and _holds_durations(value):
        return in_seconds(
            _durations_without_nulls(role, value),
            Where(DataFile.named("the edge list"), role, role),
        ).to_numpy()
    if role in WEIGHTS or not _holds_strings(value):
        return arguments.as_array(role, _array_of_tensor(role, value))
    return _strings_without_nulls(role, value)


def as_weights(role: str, value: Any) -> tuple[Any, np.ndarray | None]:
    """Return weights that may close an edge, and a bool per row: whether its weight is null.

    ``role`` is what errors call the column ``value``. The weights are an array of numbers, with
    ``CLOSED``, which is -1, in place of nulls. The bools are None if ``as_column`` finds no null
    and takes the column: NaN in it then stays NaN. EdgeListError for what is no number.
    """
    # ``as_column`` refuses a column with nulls: only then they are looked for.
    try:
        return as_column(role, value), None
    except InputError:
        column = _column_with_nulls(role, value)
        if column is None:
            raise
    where = Where(DataFile.named("the edge list"), role, role)
    is_null = np.asarray(column.is_null())
    return edge_column(column, where, "auto", closes=True).to_numpy(), is_null


def _column_with_nulls(role: str, value: Any) -> Any:
    """Return a column as a pyarrow chunked array if it is in host memory and has nulls; None for
    any other value.
    """
    if get_device(value) == "cuda":
        return None
    try:
        column = as_arrow_column(role, value)
    except InputError:
        return None
    return column if column.null_count else None


def as_costs(role: str, value: Any) -> Any:
    """Return weights that may close an edge as an array of numbers, with ``CLOSED``, which is -1,
    in place of nulls. EdgeListError for what is no number.
    """
    return as_weights(role, value)[0]


def as_arrow_column(name: str, value: Any) -> Any:
    """Return whatever ``as_column`` takes as a pyarrow chunked array, with its nulls; EdgeListError
    if it is no column.
    """
    if arguments.is_dask(value):
        value = value.compute()
    else:
        value = _array_of_tensor(name, value)
    value = arguments.arrow(name, value)
    # pyarrow raises any of these for objects of several kinds, or of none that it knows.
    try:
        return _chunked(value.get() if get_device(value) == "cuda" else value)
    except (
        pyarrow.ArrowException,
        TypeError,
        ValueError,
        AttributeError,
        OverflowError,
        LookupError,
    ) as error:
        raise EdgeListError(
            f"{name} cannot be read as a column of one type ({one_line(error)})", column=name
        ) from None


def _chunked(value: Any) -> pyarrow.ChunkedArray:
    """Return a column of host memory as a chunked array of pyarrow; NaN of NumPy and pandas is
    null.

    Two types of NumPy that pyarrow does not take are converted before: strings of variable width
    (kind "T"), and numbers in the other byte order.
    """
    if isinstance(value, np.ndarray) and value.dtype.kind == "T":
        value = value.astype(object)
    elif isinstance(value, np.ndarray) and not value.dtype.isnative:
        value = value.astype(value.dtype.newbyteorder("="))
    if isinstance(value, (pyarrow.Array, pyarrow.ChunkedArray)):
        array = value
    else:
        array = pyarrow.array(value, from_pandas=True)
    if isinstance(array, pyarrow.ChunkedArray):
        return array
    return pyarrow.chunked_array([array])


def _holds_durations(value: Any) -> bool:
    """Return whether a column holds lengths of time: of NumPy, pandas or Arrow, or
    ``datetime.timedelta`` of Python.
    """
    if isinstance(value, (list, tuple)):
        return len(value) > 0 and all(isinstance(item, datetime.timedelta) for item in value)
    kind = getattr(value, "type", None)
    if kind is not None and hasattr(value, "null_count"):
        return is_duration_type(kind)
    dtype = getattr(value, "dtype", None)
    dtype = getattr(dtype, "numpy_dtype", dtype)  # of pandas, with memory of Arrow
    if get_device(value) == "cuda" or not isinstance(dtype, np.dtype):
        return False
    is_object = dtype.kind == "O" and len(value) > 0 and not hasattr(value, "to_arrow")
    is_of_python = is_object and isinstance(next(iter(value)), datetime.timedelta)  # the first
    return is_of_python or (dtype.kind == "m" and np.datetime_data(dtype)[0] in _TIME_UNITS)


def _durations_without_nulls(role: str, value: Any) -> pyarrow.ChunkedArray:
    """Return durations as a chunked array of pyarrow without nulls.

    Those of NumPy in minutes, hours, days or weeks become seconds, as pyarrow does not take these
    units. EdgeListError for nulls, other values, and what int64 does not hold in seconds.
    """
    dtype = getattr(value, "dtype", None)
    if (
        isinstance(dtype, np.dtype)
        and dtype.kind == "m"
        and np.datetime_data(dtype)[0] in _LONG_UNITS
    ):
        seconds = np.asarray(value).astype("timedelta64[s]")
        # After an overflow, converting the seconds back gives another duration.
        if not np.array_equal(seconds.astype(dtype), np.asarray(value), equal_nan=True):
            raise EdgeListError(f"{role} holds durations beyond int64 in seconds", column=role)
        value = seconds
    try:
        column = _chunked(value)
    except (pyarrow.ArrowException, TypeError, ValueError) as error:
        raise EdgeListError(
            f"{role} holds durations and other values ({one_line(error)}); convert it", column=role
        ) from None
    if column.null_count:
        raise EdgeListError(f"{role} holds {column.null_count} nulls: drop those rows", column=role)
    return column


def _strings_without_nulls(role: str, value: Any) -> pyarrow.ChunkedArray:
    """Return a column of strings as a chunked array of pyarrow without a dictionary; EdgeListError
    for nulls, and for what is no string.
    """
    try:
        column = _chunked(arguments.arrow(role, value))
    except (pyarrow.ArrowException, TypeError) as error:
        raise EdgeListError(
            (
                f"{role} holds strings and other values "
                f"({one_line(error)}); convert all ids to strings"
            ),
            column=role,
        ) from None
    except UnicodeEncodeError:
        raise EdgeListError(
            f"{role} holds strings that are not valid Unicode text; correct those", column=role
        ) from None
    if column.null_count:
        raise EdgeListError(f"{role} holds {column.null_count} nulls: drop those rows", column=role)
    return plain_column(column)


def _holds_strings(value: Any) -> bool:
    """Return whether a column holds strings: one of pandas, polars, NumPy or Arrow with a type of
    strings, or one of Python objects, such as a list, with at least one string.
    """
    if isinstance(value, (list, tuple)):
        return any(isinstance(item, str) for item in value)
    kind = getattr(value, "type", None)  # pyarrow
    if kind is not None and hasattr(value, "null_count"):
        return is_string_type(value_type(kind))
    dtype = getattr(value, "dtype", None)
    if dtype is None or get_device(value) == "cuda":
        return False
    if isinstance(dtype, np.dtype):
        # A column of cuDF cannot be iterated; its objects are strings.
        is_text = dtype.kind == "O" and (
            hasattr(value, "to_arrow") or any(isinstance(item, str) for item in value)
        )
        return is_text or dtype.kind in "UT"
    # A type of pandas, polars or cuDF: its name tells. For categories, the name of the type of
    # their values does.
    name = str(getattr(getattr(dtype, "categories", None), "dtype", dtype)).lower()
    return any(word in name for word in ("str", "utf8", "object", "categorical", "enum"))


def _array_of_tensor(role: str, value: Any) -> Any:
    """Return a tensor of torch as an array of NumPy or CuPy on the same memory, and anything else
    as it is.
    """
    if _library(value) != "torch":
        return value
    try:
        value = value.detach()  # a tensor with gradients gives no array
        if value.device.type != "cuda":
            return value.numpy()
        from ..cuda import cp, require

        require()
        return cp.from_dlpack(value)
    except (RuntimeError, TypeError, BufferError) as error:
        # sparse tensors, bfloat16, other devices
        raise EdgeListError(
            f"{role} is a tensor that is no array of numbers ({one_line(error)})", column=role
        ) from None


def _edges_of_arrays(
    columns: dict[str, Any], names: EdgeColumns, source: DataFile, n_vertices: int | None = None
) -> EdgeList:
    """Return the edges of arrays of numbers, by role; ``names`` is what the columns are called.

    With ``n_vertices`` the vertices are 0..n_vertices-1. Each end must then be one of them, as
    building checks no bounds; EdgeListError if one is not.
    """
    require_same_lengths(columns)
    if n_vertices is not None:
        refuse_absurd_size(source, n_vertices)
    # The smallest and the largest id of each end tell whether all are vertices.
    if n_vertices is not None and columns["src"].size:
        for role in ("src", "dst"):
            if columns[role].dtype.kind not in "iu":
                raise EdgeListError(
                    f"{role}: vertex ids must be integers, not {columns[role].dtype}", column=role
                )
            low, high = extent(columns[role])
            if low < 0 or high >= n_vertices:
                odd = low if low < 0 else high
                raise EdgeListError(
                    (
                        f"{source} has {n_vertices} vertices, from 0 on, but "
                        f"{names.roles[role]} holds {odd}; correct the data"
                    ),
                    column=role,
                )
    return EdgeList(
        table=columns,
        columns=names,
        rows=((source.name, int(columns["src"].size)),),
        first_vertex=0,
        n_vertices=n_vertices,
    )


def require_same_lengths(columns: dict[str, Any]) -> None:
    """Raise EdgeListError unless columns have as many rows as each other."""
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        if lengths.keys() <= {*_ROLES, *WEIGHTS}:
            *others, last = lengths  # names of columns
            what = f"{', '.join(others)} and {last}"
        else:
            what = "columns"
        raise EdgeListError(f"{what} must be one-dimensional and of one length: {counts} rows")


# Pairs of a function that says whether a value is of some kind, and the one that reads its edges.
# The first kind that fits is read, so that the order matters.
_ADAPTERS: tuple[
    tuple[Callable[[Any], bool], Callable[[Any, DataFile, ReadOptions], EdgeList]], ...
] = (
    (is_sparse, _edges_of_sparse),
    (lambda value: isinstance(value, Mapping), _edges_of_mapping),
    (_has_edge_index, _edges_of_data),
    (
        lambda value: getattr(value, "ndim", None) == 2 and not _has(value, "columns"),
        _edges_of_index,
    ),
    (lambda value: isinstance(value, (list, tuple)), _edges_of_pairs),
    (arguments.is_dask, _edges_of_dask),
    (lambda value: _library(value) == "cudf", _edges_of_cudf),
    (lambda value: _library(value) == "pandas", _edges_of_pandas),
    (
        lambda value: (
            _has(value, "lazy") and _has(value, "collect_schema") and not _has(value, _STREAM)
        ),
        _edges_of_lazy,
    ),
    (lambda _: True, _edges_of_arrow),  # which refuses what is no table
)
