"""Matrix Market coordinate files: general, symmetric and skew-symmetric; real, integer and pattern. Vertices are 1..n."""

from __future__ import annotations

import io

import numpy as np

from ..errors import EdgeListError
from .dimacs import only_file
from .edges import EdgeColumns, EdgeList, ReadOptions, no_column_names
from .files import DataFile, reading
from .text import no_rows


def read_matrix_market(files: list[DataFile], options: ReadOptions) -> EdgeList:
    """Read one .mtx file: the entry in row i, column j is an edge from i to j.

    A symmetric file gives each edge both ways, a skew-symmetric one with the negative weight backwards.

    Parameters
    ----------
    files : list of DataFile
        One file: vertices are numbered within a file.
    options : ReadOptions

    Returns
    -------
    EdgeList
        Ids 1..n as the file has them.

    Raises
    ------
    EdgeListError
        Not square, dense (``array``), complex or Hermitian, or not a well-formed file.
    """
    import pyarrow
    import scipy.io

    file = only_file(files, "Matrix Market")
    no_column_names(options, file, "Matrix Market")
    with reading(file, "Matrix Market", ValueError, OverflowError):
        with file.open_stream() as source:
            text = source.read()
        if not text.strip():
            raise no_rows(file)
        rows, columns, _, layout, field, symmetry = scipy.io.mminfo(io.BytesIO(text))
        _refuse_other_kinds(file, rows, columns, layout, field, symmetry)
        matrix = scipy.io.mmread(io.BytesIO(text), spmatrix=False)
    if field == "pattern" and options.weighted:
        raise EdgeListError(f"{file}: a pattern has no weights; leave weighted out", column="weight")
    if matrix.nnz == 0:
        raise no_rows(file)
    del text
    kind = pyarrow.type_for_alias("int64" if options.id_type == "auto" else options.id_type)
    number = np.int32 if rows <= np.iinfo(np.int32).max else np.int64
    table = {
        role: _ids(file, role, ends.astype(number, copy=False), rows, kind)
        for role, ends in zip(("src", "dst"), matrix.coords, strict=True)
    }
    if field != "pattern" and options.weighted is not False:
        table["weight"] = pyarrow.array(matrix.data)
    table = pyarrow.table(table)
    edge_columns = EdgeColumns(src="row", dst="column", weight="value" if "weight" in table.column_names else None)
    return EdgeList(table=table, columns=edge_columns, rows=((file.name, table.num_rows),), n_vertices=rows)


def _ids(file: DataFile, role: str, ends, n_vertices: int, kind):
    """Numbers from 0 back to ids from 1, in the type asked for."""
    import pyarrow

    ends += 1
    try:
        pyarrow.scalar(n_vertices).cast(kind)
    except pyarrow.ArrowInvalid as error:
        raise EdgeListError(
            f"{file}: ids up to {n_vertices} do not fit id_type={str(kind)!r} ({error})", column=role
        ) from None
    return pyarrow.array(ends).cast(kind)


def _refuse_other_kinds(file: DataFile, rows: int, columns: int, layout: str, field: str, symmetry: str) -> None:
    if layout != "coordinate":
        raise EdgeListError(f"{file}: a dense matrix ({layout}) is no edge list; write it in coordinate form")
    if field not in ("real", "double", "integer", "unsigned-integer", "pattern"):
        raise EdgeListError(f"{file}: entries of kind {field} are no weights; use real, integer or pattern")
    if symmetry not in ("general", "symmetric", "skew-symmetric"):
        raise EdgeListError(f"{file}: symmetry {symmetry} is not supported; use general, symmetric or skew-symmetric")
    if rows != columns:
        raise EdgeListError(f"{file}: the matrix is {rows} x {columns}; a graph needs a square one")
