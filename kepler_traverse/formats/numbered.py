"""Files that number their vertices 1..n: DIMACS shortest-path graphs (.gr) and Matrix Market
coordinate files (.mtx).

DIMACS has ``c`` comments, one line ``p sp VERTICES ARCS``, then arcs ``a SRC DST WEIGHT``. Of
Matrix Market general, symmetric and skew-symmetric matrices are read; real, integer and pattern. It
is not read with SciPy, whose reader ends the process at some damaged files (1.17).
"""

from __future__ import annotations

import io
import re
from dataclasses import replace

from .._arrays import arrow_compute as compute
from .._arrays import pyarrow
from ..errors import EdgeListError, InputError, option_text
from .columns import cast_exactly
from .edge_list import (
    COLUMN_OPTIONS,
    EdgeColumns,
    EdgeList,
    ReadOptions,
    no_rows,
    refuse_absurd_size,
)
from .files import DataFile, Where, reading
from .text import BlankSeparated, TextLayout, first_lines, read_lines


class _BelowHead(BlankSeparated):
    """A stream of the lines below the head, the first line that is no comment, with tabs between
    values.
    """

    _in_head = True  # whether the head is still to come

    def _clean(self, lines: bytes) -> bytes:
        """Return the rows of whole lines with tabs between values, without comments and the head;
        b"" if there is no row.
        """
        lines = super()._clean(lines)
        if self._in_head and lines:
            lines = lines.partition(b"\n")[2]
            self._in_head = False
        return lines


class _Arcs(_BelowHead):
    """A stream of the arcs of a .gr file, as lines ``src, dst, weight`` with tabs between."""

    _row = 0  # number of the next arc, from 0

    def _clean(self, lines: bytes) -> bytes:
        """Return the arcs of whole lines as rows with tabs between values, without the letter ``a``
        that begins each arc; b"" if there is none. EdgeListError for a line without the letter.
        """
        lines = super()._clean(lines)
        arcs, n_arcs = re.subn(rb"^a\t", b"", lines, flags=re.MULTILINE)
        # A line without the letter was not counted: the first such line is named.
        if n_arcs != lines.count(b"\n"):
            row, line = next(
                (i, line)
                for i, line in enumerate(lines.split(b"\n"))
                if not line.startswith(b"a\t")
            )
            shown = line[:80].replace(b"\t", b" ").decode(errors="replace")
            raise EdgeListError(
                f"{self._file}, row {self._row + row}: an arc is 'a SRC DST WEIGHT', not {shown!r}",
                self._row + row,
            )
        self._row += n_arcs
        return arcs


def read_dimacs(files: list[DataFile], options: ReadOptions) -> EdgeList:
    """Return the edges of one .gr file of DIMACS. Its vertices are 1..n, those without an arc
    included.

    EdgeListError for a file that is no such graph, or has another number of arcs than it says.
    """
    file = _only_file(files, options, "DIMACS")
    with reading(file, "DIMACS"):
        line = _first_line(file, b"c")
        if not line:
            raise no_rows(file)
        problem = re.fullmatch(r"p sp ([0-9]{1,18}) ([0-9]{1,18})", line)
        if problem is None:
            raise EdgeListError(
                f"{file}: the first line must be 'p sp VERTICES ARCS', not {line[:80]!r}"
            )
        n_vertices, n_arcs = map(int, problem.groups())
        if n_arcs == 0:
            raise no_rows(file)
        # Before anything is allocated for so many.
        refuse_absurd_size(file, n_vertices)
        edges = _read_rows(file, options, ("src", "dst", "weight"), _Arcs, b"c", n_vertices)
    return _check_rows(file, options, edges, n_arcs, "arcs", "problem line")


def read_matrix_market(files: list[DataFile], options: ReadOptions) -> EdgeList:
    """Return the edges of one .mtx file: the entry in row i, column j is an edge from i to j.

    A symmetric file gives each edge both ways, a skew-symmetric one with the negative weight
    backwards; these edges come after the entries of the file. A dense (``array``), complex or
    Hermitian matrix, and one that is not square, is an error.
    """
    file = _only_file(files, options, "Matrix Market")
    with reading(file, "Matrix Market"):
        field, symmetry = _banner(file)
        n_vertices, n_entries = _size(file)
        names = ("row", "column") if field == "pattern" else ("row", "column", "value")
        if options.weighted and field == "pattern":
            raise EdgeListError(
                f"{file}: a pattern has no weights; take {option_text('weighted', False)}",
                column="weight",
            )
        if n_entries == 0:
            raise no_rows(file)
        edges = _read_rows(file, options, names, _BelowHead, b"%", n_vertices)

    # Weights that are declared as floats are floats, also if all are whole numbers.
    if "weight" in edges.table.column_names and field in ("real", "double"):
        where = Where(file, "weight", "value")
        # EdgeListError for an integer that float64 would round; [] collects the chunks
        chunks = cast_exactly(edges.table["weight"].chunks, pyarrow.float64(), where, [])
        # the third column, behind src and dst
        table = edges.table.set_column(2, "weight", pyarrow.chunked_array(chunks))
        edges = replace(edges, table=table)
    # The header counts the entries of the file, so mirrored entries are added afterwards. They
    # count as rows of the edge list, too.
    edges = _check_rows(file, options, edges, n_entries, "entries", "header")
    table = _mirror_entries(edges.table, symmetry)
    return replace(edges, table=table, rows=((file.name, table.num_rows),))


def _only_file(files: list[DataFile], options: ReadOptions, kind: str) -> DataFile:
    """Return the only one of ``files``, which are of a format that numbers its vertices and has no
    names of columns.

    ``kind`` is what errors call the format. EdgeListError for several files, InputError for options
    that name columns.
    """
    if len(files) != 1:
        raise EdgeListError(
            f"{files[1]}: {kind} files number their vertices each for "
            f"itself; give one file, not {len(files)}"
        )
    for option in (*COLUMN_OPTIONS, "where"):
        if getattr(options, option) is not None:
            raise InputError(
                f"{files[0]}: {kind} files have no column names; leave {option_text(option)} out"
            )
    return files[0]


def _first_line(file: DataFile, comment: bytes = b"") -> str:
    """Return the first line that is neither blank nor a comment, with single blanks; ``""`` if
    there is none. Comments begin with one of the signs in ``comment``; without it no line is one.
    """
    with file.open_stream() as source:
        cleaned = BlankSeparated(file, source, comment) if comment else source
        lines = first_lines(file, cleaned, 1)
    if not lines:
        return ""
    return lines[0].replace("\t", " ")


def _banner(file: DataFile) -> tuple[str, str]:
    """Return the field and the symmetry of a matrix, such as "real" and "general", from the first
    line of the file; EdgeListError for those that are not read. NoRowsError for an empty file.
    """
    line = _first_line(file)
    if not line:
        raise no_rows(file)
    # Five words: %%MatrixMarket matrix coordinate FIELD SYMMETRY.
    words = line.lower().split()
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        raise EdgeListError(
            f"{file}: the first line must be '%%MatrixMarket matrix "
            f"coordinate FIELD SYMMETRY', not {line[:80]!r}"
        )
    layout, field, symmetry = words[2:]
    if layout != "coordinate":
        raise EdgeListError(
            f"{file}: a dense matrix ({layout[:20]}) is no edge list; write it in coordinate form"
        )
    if field not in ("real", "double", "integer", "unsigned-integer", "pattern"):
        raise EdgeListError(
            f"{file}: entries of kind {field[:20]} are no weights; use real, integer or pattern"
        )
    if symmetry not in ("general", "symmetric", "skew-symmetric"):
        raise EdgeListError(
            f"{file}: symmetry {symmetry[:20]} is not supported; use "
            "general, symmetric or skew-symmetric"
        )
    return field, symmetry


def _size(file: DataFile) -> tuple[int, int]:
    """Return the numbers of vertices and of entries, from the first line that is no comment;
    EdgeListError if the matrix is not square, or larger than the memory could number.
    """
    line = _first_line(file, b"%")
    size = re.fullmatch(r"([0-9]{1,18}) ([0-9]{1,18}) ([0-9]{1,18})", line)
    if size is None:
        raise EdgeListError(
            f"{file}: the line below the comments must be 'ROWS COLUMNS ENTRIES', not {line[:80]!r}"
        )
    rows, columns, entries = map(int, size.groups())
    if rows != columns:
        raise EdgeListError(f"{file}: the matrix is {rows} x {columns}; a graph needs a square one")
    refuse_absurd_size(file, rows)
    return rows, entries


def _read_rows(
    file: DataFile,
    options: ReadOptions,
    names: tuple[str, ...],
    lines: type[_BelowHead],
    comment: bytes,
    n_vertices: int,
) -> EdgeList:
    """Return the edges in the rows below the head of a file, whose ids are integers.

    ``names`` are the columns of the rows: the two ends and, if there is a third one, the weight,
    which the options may leave out. ``lines`` is the class of the stream that makes rows of the
    lines. Lines that begin with a sign in ``comment`` are comments. ``n_vertices`` is what the head
    says. EdgeListError if the type of the ids does not hold it, or a row is no edge.
    """
    # ``01`` is vertex 1, also where ids shall be strings then.
    if options.id_type in ("auto", "string"):
        id_type = "int64"
    else:
        id_type = options.id_type
    try:  # vertices without a row are there, too, so the type must hold every number
        pyarrow.scalar(n_vertices).cast(pyarrow.type_for_alias(id_type))
    except pyarrow.ArrowInvalid as error:
        raise EdgeListError(
            (
                f"{file}: ids up to {n_vertices} do not fit "
                f"{option_text('id_type', id_type)} ({error})"
            ),
            column="src",
        ) from None

    weight = None
    if len(names) > 2 and options.weighted is not False:
        weight = names[2]
    unused = () if weight else names[2:]
    columns = EdgeColumns(
        src=names[0], dst=names[1], weight=weight, unused=unused, unused_numbers=unused
    )
    # ``found`` False: the type counts as declared, so that integers such as 01 are taken.
    layout = TextLayout(names=names, columns=columns, id_type=id_type, found=False, numbered=True)
    with file.open_stream() as source:
        edges = read_lines(file, io.BufferedReader(lines(file, source, comment)), layout)
    return replace(edges, n_vertices=n_vertices)


def _check_rows(
    file: DataFile, options: ReadOptions, edges: EdgeList, n_rows: int, rows: str, head: str
) -> EdgeList:
    """Return edges after a check against the head of their file, with strings as ids where the
    options ask for these.

    EdgeListError for another number of rows than ``n_rows``, which the head says, and for ids
    outside 1..n. ``rows`` and ``head`` are what the format calls its rows and its head, for errors.
    """
    # As many rows as the head says, and each end one of its vertices.
    table = edges.table
    n = edges.n_vertices
    if table.num_rows != n_rows:
        raise EdgeListError(
            f"{file}: {table.num_rows} {rows}, but the {head} says {n_rows}; the file may be cut short"
        )
    for role in ("src", "dst"):
        ids = table[role]
        is_outside = compute.or_(compute.less(ids, 1), compute.greater(ids, n))
        row = compute.index(is_outside, True).as_py()
        if row >= 0:
            raise EdgeListError(
                (
                    f"{file}, row {row}: {role} {ids[row]} is outside "
                    f"1..{n}, the vertices of this file"
                ),
                row,
                role,
            )
        if options.id_type == "string":
            table = table.set_column(table.column_names.index(role), role, ids.cast("string"))
    return replace(edges, table=table)


def _mirror_entries(table: pyarrow.Table, symmetry: str) -> pyarrow.Table:
    """Return the entries of a matrix, and behind them their mirror images at the diagonal, as a
    symmetric file lists one side of it alone.

    ``table`` has the columns src, dst and perhaps weight. ``symmetry`` is "general", for which
    nothing is added, "symmetric" or "skew-symmetric", for which added weights are negative.
    """
    if symmetry == "general":
        return table
    # An entry on the diagonal is its own mirror.
    off_diagonal = table.filter(compute.not_equal(table["src"], table["dst"]))
    mirrored = {"src": off_diagonal["dst"], "dst": off_diagonal["src"]}
    if "weight" in table.column_names:
        weight = off_diagonal["weight"]
        if symmetry == "skew-symmetric":
            weight = compute.negate(weight)
        mirrored["weight"] = weight
    return pyarrow.concat_tables([table, pyarrow.table(mirrored)])
