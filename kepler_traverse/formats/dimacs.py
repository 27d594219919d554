"""DIMACS shortest-path graphs (.gr): ``c`` comments, one line ``p sp VERTICES ARCS``, then arcs ``a SRC DST WEIGHT``."""

from __future__ import annotations

import io
import re

from .._arrays import arrow_compute as compute
from .._arrays import pyarrow
from ..errors import EdgeListError
from .edge_list import EdgeColumns, EdgeList, ReadOptions, no_column_names, refuse_absurd_size
from .files import DataFile, reading
from .text import BlankSeparated, TextLayout, first_lines, no_rows, read_lines


def read_dimacs(files: list[DataFile], options: ReadOptions) -> EdgeList:
    """Read one .gr file, since vertices are numbered within a file: 1..n, also those without arcs."""
    file = only_file(files, "DIMACS")
    no_column_names(options, file, "DIMACS")
    with reading(file, "DIMACS"):
        n_vertices, n_arcs = _problem(file)
        refuse_absurd_size(file, n_vertices)
        unused = ("weight",) if options.weighted is False else ()
        columns = EdgeColumns(
            src="src", dst="dst", weight=None if unused else "weight", unused=unused, unused_numbers=unused
        )
        layout = TextLayout(
            names=("src", "dst", "weight"),
            columns=columns,
            id_type=numbers_type(options),
            found=False,
            numbered=True,
        )
        with file.open_stream() as source:
            edges = read_lines(file, io.BufferedReader(_Arcs(file, source)), layout)
    if edges.table.num_rows != n_arcs:
        raise EdgeListError(
            f"{file}: {edges.table.num_rows} arcs, but the problem line says {n_arcs}; the file may be cut short"
        )
    check_numbers(file, edges, n_vertices)
    table = as_strings(edges.table) if options.id_type == "string" else edges.table
    return EdgeList(table=table, columns=columns, rows=edges.rows, n_vertices=n_vertices)


def only_file(files: list[DataFile], kind: str) -> DataFile:
    """Return the one file of a format that numbers its vertices."""
    if len(files) != 1:
        raise EdgeListError(
            f"{files[1]}: {kind} files number their vertices each for itself; give one file, not {len(files)}"
        )
    return files[0]


def numbers_type(options: ReadOptions) -> str:
    """The type to read vertices in that are numbered 1..n: ``01`` is vertex 1, also where ids shall be strings then."""
    return "int64" if options.id_type in ("auto", "string") else options.id_type


def as_strings(table: pyarrow.Table) -> pyarrow.Table:
    """Return the edges with their ids as strings."""
    for role in ("src", "dst"):
        table = table.set_column(table.column_names.index(role), role, table[role].cast("string"))
    return table


def check_numbers(file: DataFile, edges: EdgeList, n_vertices: int) -> None:
    """Refuse ids outside 1..n."""
    for role in ("src", "dst"):
        ids = edges.table[role]
        row = compute.index(compute.or_(compute.less(ids, 1), compute.greater(ids, n_vertices)), True).as_py()
        if row >= 0:
            raise EdgeListError(
                f"{file}, row {row}: {role} {ids[row]} is outside 1..{n_vertices}, the vertices of this file", row, role
            )


def _problem(file: DataFile) -> tuple[int, int]:
    """Vertices and arcs, from the first line that is no comment."""
    with file.open_stream() as source:
        line = (first_lines(file, BlankSeparated(file, source, b"c"), 1) or [""])[0].replace("\t", " ")
    if not line:
        raise no_rows(file)
    found = re.fullmatch(r"p sp ([0-9]{1,18}) ([0-9]{1,18})", line)
    if found is None:
        raise EdgeListError(f"{file}: the first line must be 'p sp VERTICES ARCS', not {line[:80]!r}")
    if int(found[2]) == 0:
        raise no_rows(file)
    return int(found[1]), int(found[2])


class _Arcs(BlankSeparated):
    """The arcs of a .gr file as ``src, dst, weight`` lines."""

    def __init__(self, file: DataFile, source: pyarrow.NativeFile):
        super().__init__(file, source, b"c")
        self._row, self._in_head = 0, True

    def _clean(self, lines: bytes) -> bytes:
        lines = super()._clean(lines)
        if self._in_head and lines:
            lines = lines.partition(b"\n")[2]  # the problem line
            self._in_head = False
        arcs, n_arcs = re.subn(rb"^a\t", b"", lines, flags=re.MULTILINE)
        if n_arcs != lines.count(b"\n"):
            row, line = next((i, line) for i, line in enumerate(lines.split(b"\n")) if not line.startswith(b"a\t"))
            shown = line[:80].replace(b"\t", b" ").decode(errors="replace")
            raise EdgeListError(
                f"{self._file}, row {self._row + row}: an arc is 'a SRC DST WEIGHT', not {shown!r}", self._row + row
            )
        self._row += n_arcs
        return arcs
