"""Matrix Market coordinate files: general, symmetric and skew-symmetric; real, integer and pattern. Vertices are 1..n.

Not read with SciPy, whose reader ends the process at some damaged files (1.17).
"""

from __future__ import annotations

import io
import re

from .._arrays import arrow_compute as compute
from .._arrays import pyarrow
from ..errors import EdgeListError, option_text
from .columns import cast_exactly
from .dimacs import as_strings, check_numbers, numbers_type, only_file
from .edge_list import EdgeColumns, EdgeList, ReadOptions, no_column_names, refuse_absurd_size
from .files import DataFile, Where, reading
from .text import BlankSeparated, TextLayout, first_lines, no_rows, read_lines


def read_matrix_market(files: list[DataFile], options: ReadOptions) -> EdgeList:
    """Read one .mtx file: the entry in row i, column j is an edge from i to j.

    Ids are 1..n as the file has them, so there is one file. A symmetric file gives each edge both ways, a skew-symmetric one
    with the negative weight backwards; these edges come after the entries of the file. A dense (``array``), complex or
    Hermitian matrix, and one that is not square, is an error.
    """
    file = only_file(files, "Matrix Market")
    no_column_names(options, file, "Matrix Market")
    with reading(file, "Matrix Market"):
        field, symmetry = _banner(file)
        n_vertices, n_entries = _size(file)
        names = ("row", "column") if field == "pattern" else ("row", "column", "value")
        weighted = field != "pattern" and options.weighted is not False
        if options.weighted and not weighted:
            raise EdgeListError(f"{file}: a pattern has no weights; take {option_text('weighted', False)}", column="weight")
        if n_entries == 0:
            raise no_rows(file)
        unused = names[2:] if not weighted else ()
        columns = EdgeColumns(
            src="row", dst="column", weight="value" if weighted else None, unused=unused, unused_numbers=unused
        )
        id_type = numbers_type(options)
        _refuse_narrow_ids(file, n_vertices, id_type)
        layout = TextLayout(names=names, columns=columns, id_type=id_type, found=False, numbered=True)
        with file.open_stream() as source:
            edges = read_lines(file, io.BufferedReader(_Entries(file, source, b"%")), layout)
    if edges.table.num_rows != n_entries:
        raise EdgeListError(
            f"{file}: {edges.table.num_rows} entries, but the header says {n_entries}; the file may be cut short"
        )
    check_numbers(file, edges, n_vertices)
    table = _both_ways(_typed(file, edges.table, field), symmetry)
    table = as_strings(table) if options.id_type == "string" else table
    return EdgeList(table=table, columns=columns, rows=((file.name, table.num_rows),), n_vertices=n_vertices)


def _banner(file: DataFile) -> tuple[str, str]:
    """Field and symmetry, from the first line."""
    with file.open_stream() as source:
        line = (first_lines(file, source, 1) or [""])[0]
    if not line:
        raise no_rows(file)
    words = line.lower().split()
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        raise EdgeListError(
            f"{file}: the first line must be '%%MatrixMarket matrix coordinate FIELD SYMMETRY', not {line[:80]!r}"
        )
    layout, field, symmetry = words[2:]
    if layout != "coordinate":
        raise EdgeListError(f"{file}: a dense matrix ({layout[:20]}) is no edge list; write it in coordinate form")
    if field not in ("real", "double", "integer", "unsigned-integer", "pattern"):
        raise EdgeListError(f"{file}: entries of kind {field[:20]} are no weights; use real, integer or pattern")
    if symmetry not in ("general", "symmetric", "skew-symmetric"):
        raise EdgeListError(f"{file}: symmetry {symmetry[:20]} is not supported; use general, symmetric or skew-symmetric")
    return field, symmetry


def _size(file: DataFile) -> tuple[int, int]:
    """Vertices and entries, from the first line that is no comment."""
    with file.open_stream() as source:
        line = (first_lines(file, BlankSeparated(file, source, b"%"), 1) or [""])[0].replace("\t", " ")
    found = re.fullmatch(r"([0-9]{1,18}) ([0-9]{1,18}) ([0-9]{1,18})", line)
    if found is None:
        raise EdgeListError(f"{file}: the line below the comments must be 'ROWS COLUMNS ENTRIES', not {line[:80]!r}")
    rows, columns, entries = map(int, found.groups())
    if rows != columns:
        raise EdgeListError(f"{file}: the matrix is {rows} x {columns}; a graph needs a square one")
    refuse_absurd_size(file, rows)
    return rows, entries


def _refuse_narrow_ids(file: DataFile, n_vertices: int, id_type: str) -> None:
    """Vertices without entries are there too, so the type must hold every number."""
    try:
        pyarrow.scalar(n_vertices).cast(pyarrow.type_for_alias(id_type))
    except pyarrow.ArrowInvalid as error:
        raise EdgeListError(
            f"{file}: ids up to {n_vertices} do not fit {option_text('id_type', id_type)} ({error})", column="src"
        ) from None


class _Entries(BlankSeparated):
    """The lines below the size."""

    _in_head = True

    def _clean(self, lines: bytes) -> bytes:
        lines = super()._clean(lines)
        if self._in_head and lines:
            lines = lines.partition(b"\n")[2]
            self._in_head = False
        return lines


def _typed(file: DataFile, table: pyarrow.Table, field: str) -> pyarrow.Table:
    """Weights of a real matrix are floats, also if all happen to be whole numbers."""
    if "weight" in table.column_names and field in ("real", "double"):
        at = table.column_names.index("weight")
        where = Where(file, "weight", "value")
        weights = pyarrow.chunked_array(cast_exactly(table["weight"].chunks, pyarrow.float64(), where, []))
        table = table.set_column(at, "weight", weights)
    return table


def _both_ways(table: pyarrow.Table, symmetry: str) -> pyarrow.Table:
    """Add the entries on the other side of the diagonal."""
    if symmetry == "general":
        return table
    below = table.filter(compute.not_equal(table["src"], table["dst"]))
    turned = {"src": below["dst"], "dst": below["src"]}
    if "weight" in table.column_names:
        turned["weight"] = compute.negate(below["weight"]) if symmetry == "skew-symmetric" else below["weight"]
    return pyarrow.concat_tables([table, pyarrow.table(turned)])
