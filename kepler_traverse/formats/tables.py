"""Edge lists in memory: tables of any library that speaks Arrow, sparse matrices, pairs, and columns of any kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .. import arguments
from .._arrays import device_of
from ..errors import EdgeListError, InputError
from .arrow import edges_of, typed_columns
from .columns import edge_column
from .edge_list import EdgeColumns, EdgeList, ReadOptions
from .files import DataFile, Where

TABLES = (
    "a data frame of pandas, polars, cuDF or Dask, a pyarrow table, anything with __arrow_c_stream__ or __dataframe__, a "
    "mapping of columns, a SciPy sparse matrix, a list of (src, dst[, weight]) or an edge_index of shape (2, n_edges)"
)


def is_table(value: Any) -> bool:
    """Whether a value holds whole edges, not one column of them."""
    if isinstance(value, (Mapping, str, bytes)) or value is None:
        return isinstance(value, Mapping)
    if is_sparse(value) or hasattr(value, "columns"):
        return True
    if any(hasattr(value, way) for way in ("schema", "__dataframe__")):
        return True
    if hasattr(value, "__arrow_c_stream__") and not hasattr(value, "to_pylist") and not hasattr(value, "dtype"):
        return True
    if getattr(value, "ndim", 1) == 2:
        return True
    return isinstance(value, (list, tuple)) and len(value) > 0 and isinstance(value[0], (list, tuple))


def is_sparse(value: Any) -> bool:
    """Whether a value is a sparse matrix or array of SciPy or CuPy, in any format."""
    return hasattr(value, "tocoo") and hasattr(value, "nnz") and hasattr(value, "shape")


def read_table(value: Any, options: ReadOptions) -> EdgeList:
    """Return the edges of a table.

    Parameters
    ----------
    value : table
        See ``TABLES``. Only the columns of the edges are converted. Columns of a data frame's index that have names, as
        ``u`` and ``v`` of OSMnx, are columns of the table.
    options : ReadOptions

    Returns
    -------
    EdgeList
        Its table is a cuDF frame if the value is in GPU memory and holds integer ids, else a pyarrow table.

    Raises
    ------
    EdgeListError
        Columns are missing, or their types cannot be ids or weights; nulls; no rows.
    InputError
        The value is no table.
    """
    name = f"the {_kind_of(value)}"
    try:
        return _edges_of_table(value, DataFile.named(name), options)
    except InputError:
        raise
    except Exception as error:  # of the library that owns the table
        text = " ".join(str(error).split())[:200]
        raise EdgeListError(f"{name} cannot be read as a table ({type(error).__name__}: {text})") from error


def _kind_of(value: Any) -> str:
    module = type(value).__module__.partition(".")[0]
    return type(value).__name__ if module == "builtins" else f"{module} {type(value).__name__}"


def _edges_of_table(value: Any, source: DataFile, options: ReadOptions) -> EdgeList:
    if is_sparse(value):
        return _edges_of_sparse(value, source, options)
    if isinstance(value, Mapping):
        return _edges_of_mapping(value, source, options)
    if getattr(value, "ndim", None) == 2 and not hasattr(value, "columns"):
        return _edges_of_index(value, source, options)
    if isinstance(value, (list, tuple)):
        return _edges_of_pairs(value, source, options)
    value = _with_index_columns(value)
    if hasattr(value, "npartitions") and hasattr(value, "compute"):  # Dask
        meta = _schema_of(value._meta)
        value = value[list(typed_columns(meta, options, source).roles.values())].compute()
        value = _with_index_columns(value)
    if hasattr(value, "collect_schema") and hasattr(value, "collect"):  # a lazy frame of polars
        value = value.collect()
    if type(value).__module__.partition(".")[0] == "cudf":
        return _edges_of_cudf(value, source, options)
    columns, table = _arrow_table(value, source, options)
    places = {role: Where(source, role, name) for role, name in columns.roles.items()}
    return edges_of(table, places, options, source, columns)


def _with_index_columns(frame: Any) -> Any:
    """A data frame whose named index levels are columns; others stay an index, which is no column."""
    names = [name for name in getattr(getattr(frame, "index", None), "names", None) or [] if name is not None]
    if not names or not hasattr(frame, "reset_index") or hasattr(frame, "npartitions"):
        return frame
    return frame.drop(columns=[name for name in names if name in frame.columns]).reset_index()


def _schema_of(frame: Any) -> Any:
    import pyarrow

    if hasattr(frame, "to_arrow"):
        return frame.to_arrow(preserve_index=False).schema
    return pyarrow.Schema.from_pandas(frame, preserve_index=False)


def _arrow_table(value: Any, source: DataFile, options: ReadOptions) -> tuple[EdgeColumns, Any]:
    """Choose the columns by the schema alone, then convert those."""
    import pyarrow

    if type(value).__module__.partition(".")[0] in ("pandas", "geopandas"):
        # By the frame itself: a stream of it would convert every column, geometries too.
        names = [str(name) for name in value.columns]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise EdgeListError(f"{source}: column {twice!r} occurs {names.count(twice)} times; rename all but one")
        simple = [column for column in value.columns if _may_hold_edges(value[column].dtype)]
        schema = pyarrow.Schema.from_pandas(value[simple].head(0), preserve_index=False)
        fields = {field.name: field for field in schema}
        everything = pyarrow.schema([fields.get(name, pyarrow.field(name, pyarrow.null())) for name in names])
        columns = typed_columns(everything, options, source)
        chosen = value[[column for column in value.columns if str(column) in columns.roles.values()]]
        return columns, pyarrow.Table.from_pandas(chosen, preserve_index=False)
    if isinstance(value, pyarrow.RecordBatchReader):
        reader = value
    elif hasattr(value, "__arrow_c_stream__"):
        reader = pyarrow.RecordBatchReader.from_stream(value)
    elif hasattr(value, "__arrow_c_array__"):
        batch = pyarrow.record_batch(value)
        reader = pyarrow.RecordBatchReader.from_batches(batch.schema, [batch])
    elif hasattr(value, "__dataframe__"):
        import pyarrow.interchange

        table = pyarrow.interchange.from_dataframe(value)
        reader = table.to_reader()
    else:
        raise InputError(f"{source} is no table of edges; give {TABLES}")
    columns = typed_columns(reader.schema, options, source)
    chosen = list(columns.roles.values())
    # Batch by batch: what a stream holds beside the edges is never in memory at once.
    batches = [batch.select(chosen) for batch in reader]
    schema = pyarrow.schema([reader.schema.field(name) for name in chosen])
    return columns, pyarrow.Table.from_batches(batches, schema)


def _may_hold_edges(dtype: Any) -> bool:
    """Whether pyarrow can convert a column of this type: geometries and periods, for example, it cannot."""
    return getattr(dtype, "name", str(dtype)) not in ("geometry", "interval", "period")


def _edges_of_cudf(frame: Any, source: DataFile, options: ReadOptions) -> EdgeList:
    """Edges of a frame in GPU memory, which stay there where ids are integers."""
    schema = _schema_of(frame.head(0))
    columns = typed_columns(schema, options, source)
    places = {role: Where(source, role, name) for role, name in columns.roles.items()}
    names = list(columns.roles.values())
    numeric = all(frame[name].dtype.kind in "iu" for name in (columns.src, columns.dst))
    if numeric and options.id_type == "auto" and not any(frame[name].isnull().any() for name in names) and len(frame):
        weight = columns.weight
        if weight is None or frame[weight].dtype.kind in "iuf":
            table = frame[names].rename(columns={name: role for role, name in columns.roles.items()})
            return EdgeList(table=table, columns=columns, rows=((source.name, len(frame)),))
    table = frame[names].to_arrow(preserve_index=False)
    return edges_of(table, places, options, source, columns)


def _edges_of_sparse(matrix: Any, source: DataFile, options: ReadOptions) -> EdgeList:
    """Stored entries are edges from their row to their column, explicit zeros included; 0..n-1 are the vertices."""
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise EdgeListError(f"{source} must be square to be the matrix of a graph, not of shape {tuple(matrix.shape)}")
    for option in ("src_column", "dst_column", "weight_column"):
        if getattr(options, option) is not None:
            raise InputError(f"{source} has no columns; leave the names of columns out")
    if matrix.format in ("coo", "csr", "csc") and not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()  # what such entries mean to SciPy, of whatever the caller holds
    coo = matrix.tocoo(copy=False)
    weighted = options.weighted if options.weighted is not None else coo.data.dtype.kind != "b"
    columns = {"src": coo.row, "dst": coo.col} | ({"weight": coo.data} if weighted else {})
    columns = {role: arguments.as_array(role, column) for role, column in columns.items()}
    names = EdgeColumns(src="row", dst="column", weight="data" if weighted else None)
    return _edges_of_arrays(columns, names, source, n_vertices=matrix.shape[0])


def _edges_of_index(array: Any, source: DataFile, options: ReadOptions) -> EdgeList:
    """Edges of an array of shape (2, n_edges), as PyTorch Geometric has them."""
    if array.shape[0] != 2:
        raise EdgeListError(
            f"{source} of shape {tuple(array.shape)} is no edge_index, which has shape (2, n_edges); give src and dst"
        )
    if options.src_column is not None or options.weight_column is not None:
        raise InputError(f"{source} has no columns; leave the names of columns out")
    columns = {role: arguments.as_array(role, array[i]) for i, role in enumerate(("src", "dst"))}
    return _edges_of_arrays(columns, EdgeColumns(src="0", dst="1"), source)


def _edges_of_pairs(pairs: Sequence[Any], source: DataFile, options: ReadOptions) -> EdgeList:
    """Edges of a list of tuples, as NetworkX and igraph take them."""
    if options.src_column is not None or options.weight_column is not None:
        raise InputError(f"{source} has no columns; leave the names of columns out")
    width = len(pairs[0])
    for row, pair in enumerate(pairs):
        if not isinstance(pair, (list, tuple)) or len(pair) != width or width not in (2, 3):
            what = arguments.describe(pair)
            raise EdgeListError(f"{source}: row {row} is {what}; each must be (src, dst), or each (src, dst, weight)", row)
    roles = ("src", "dst", "weight")[:width]
    return edges_of_columns(dict(zip(roles, map(list, zip(*pairs, strict=True)), strict=True)), options, source)


def _edges_of_mapping(table: Mapping[str, Any], source: DataFile, options: ReadOptions) -> EdgeList:
    import pyarrow

    unnamed = next((name for name in table if not isinstance(name, str)), None)
    if unnamed is not None:
        raise InputError(f"{source}: names of columns must be strings, not {arguments.describe(unnamed)}")
    # Types of the other columns are not known; none of them is converted.
    schema = pyarrow.schema([pyarrow.field(name, pyarrow.null()) for name in table])
    columns = typed_columns(schema, options, source)
    chosen = {role: table[name] for role, name in columns.roles.items()}
    return replace(edges_of_columns(chosen, options, source), columns=columns)


def edges_of_columns(columns: dict[str, Any], options: ReadOptions, source: DataFile) -> EdgeList:
    """Return the edges of two or three columns of any kind: arrays, tensors, Series, lists; of integers or strings.

    Parameters
    ----------
    columns : dict
        ``src``, ``dst`` and perhaps ``weight``.
    options : ReadOptions
    source : DataFile
        Names the columns in errors.
    """
    import pyarrow

    names = EdgeColumns(src="src", dst="dst", weight="weight" if "weight" in columns else None)
    found = {role: as_column(role, column) for role, column in columns.items()}
    if not any(isinstance(column, pyarrow.ChunkedArray) for column in found.values()):
        return _edges_of_arrays(found, names, source)
    typed = {}
    for role, column in found.items():
        if not isinstance(column, pyarrow.ChunkedArray):
            column = pyarrow.chunked_array([pyarrow.array(column.get() if device_of(column) == "cuda" else column)])
        typed[role] = edge_column(column, Where(source, role, role), options.id_type)
    _same_lengths(typed)
    return EdgeList(table=pyarrow.table(typed), columns=names, rows=((source.name, len(typed["src"])),))


def as_column(role: str, value: Any) -> Any:
    """Return a column as an array of numbers, or, if it holds strings, as a pyarrow chunked array.

    Raises
    ------
    EdgeListError
        Nulls, mixed types, or a value that is no column.
    """
    import pyarrow
    import pyarrow.types as kinds

    if role == "weight" or not _holds_strings(value):
        return arguments.as_array(role, _tensor(value))
    try:
        if hasattr(value, "to_arrow"):
            value = value.to_arrow()
        if hasattr(value, "cat") and hasattr(value, "astype"):  # pandas categorical
            value = value.astype(object)
        column = value if isinstance(value, pyarrow.ChunkedArray) else None
        if column is None:
            array = pyarrow.array(value.astype(object) if isinstance(value, np.ndarray) else value, from_pandas=True)
            column = array if isinstance(array, pyarrow.ChunkedArray) else pyarrow.chunked_array([array])
    except (pyarrow.ArrowException, TypeError) as error:
        text = " ".join(str(error).split())[:200]
        raise EdgeListError(
            f"{role} holds strings and other values ({text}); convert all ids to strings", column=role
        ) from None
    if column.null_count:
        raise EdgeListError(f"{role} holds {column.null_count} nulls: drop those rows", column=role)
    if kinds.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column


def _holds_strings(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(isinstance(item, str) for item in value)
    kind = getattr(value, "type", None)  # pyarrow
    if kind is not None and hasattr(value, "null_count"):
        import pyarrow.types as kinds

        kind = kind.value_type if kinds.is_dictionary(kind) else kind
        return kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind)
    dtype = getattr(value, "dtype", None)
    if dtype is None or device_of(value) == "cuda":
        return False
    if isinstance(dtype, np.dtype):
        return dtype.kind in "UT" or (dtype.kind == "O" and any(isinstance(item, str) for item in value))
    name = str(getattr(getattr(dtype, "categories", None), "dtype", dtype)).lower()
    return any(word in name for word in ("str", "utf8", "object", "categorical", "enum"))


def _tensor(value: Any) -> Any:
    """A tensor of torch as an array of the same memory; anything else as it is."""
    if type(value).__module__.partition(".")[0] != "torch":
        return value
    value = value.detach()
    if value.device.type == "cpu":
        return value.numpy()
    from ..cuda import cp

    return cp.from_dlpack(value)


def _edges_of_arrays(
    columns: dict[str, Any], names: EdgeColumns, source: DataFile, n_vertices: int | None = None
) -> EdgeList:
    _same_lengths(columns)
    return EdgeList(
        table=columns, columns=names, rows=((source.name, int(columns["src"].size)),), first_vertex=0, n_vertices=n_vertices
    )


def _same_lengths(columns: dict[str, Any]) -> None:
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise EdgeListError(f"src, dst and weight must be one-dimensional and of one length: {found} rows")
