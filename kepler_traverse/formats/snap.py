"""SNAP text: an edge a line, ends and weight apart by blanks or tabs, comment lines that begin with # or %."""

from __future__ import annotations

import io

from .edges import EdgeList, ReadOptions, choose_columns, read_each
from .files import DataFile, reading
from .text import BlankSeparated, TextLayout, first_lines, id_type_of, no_rows, read_lines


def read_snap(files: list[DataFile], options: ReadOptions) -> EdgeList:
    """Read SNAP text files; columns are called ``"0"``, ``"1"``, ``"2"`` by position.

    Parameters
    ----------
    files : list of DataFile
    options : ReadOptions

    Returns
    -------
    EdgeList

    Raises
    ------
    EdgeListError
        Short or long rows, values that are no ids or weights.
    """
    id_type = options.id_type
    if id_type == "auto":
        with reading(files[0], "SNAP text"):
            id_type = _layout_of(files[0], options, "auto").id_type
    return read_each(files, options, lambda file, wanted: _read_one(file, wanted, id_type))


def _read_one(file: DataFile, options: ReadOptions, id_type: str) -> EdgeList:
    with reading(file, "SNAP text"):
        layout = _layout_of(file, options, id_type)
        with file.open_stream() as source:
            return read_lines(file, io.BufferedReader(BlankSeparated(source, b"#%")), layout)


def _layout_of(file: DataFile, options: ReadOptions, id_type: str) -> TextLayout:
    with file.open_stream() as source:
        lines = first_lines(BlankSeparated(source, b"#%"), 1)
    if not lines:
        raise no_rows(file)
    row = lines[0].split("\t")
    names = [str(i) for i in range(len(row))]
    columns = choose_columns(names, options, file)
    return TextLayout(
        names=tuple(names),
        columns=columns,
        id_type=id_type_of(file, columns, names, row) if id_type == "auto" else id_type,
        found=options.id_type == "auto",
    )
