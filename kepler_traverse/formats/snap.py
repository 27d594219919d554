"""SNAP text: one edge per line, ends and weight apart by blanks or tabs, comments that begin with
# or %.
"""

from __future__ import annotations

import codecs
import io
from typing import Any

from ..errors import EdgeListError, option_text
from .edge_list import EdgeList, ReadOptions, no_rows
from .files import DataFile
from .header import has_words_over_numbers, holds_names, layout_of_rows
from .text import (
    SAMPLE_LINES,
    BlankSeparated,
    TextLayout,
    first_lines,
    header_doubt,
    is_number,
    read_texts,
)


def read_snap(files: list[DataFile], options: ReadOptions) -> EdgeList:
    """Return the edges of SNAP text files, whose columns are called ``"0"``, ``"1"``, ``"2"`` by
    position if there is no header.

    A first line that may be a header is an error.
    """
    return read_texts(files, options, "SNAP text", _detect_layout, _open_rows)


def _open_rows(file: DataFile, source: Any) -> Any:
    """Return a stream of the lines that are no comments, with tabs between values, for pyarrow to
    split. ``source`` has the decompressed bytes of ``file``.
    """
    return io.BufferedReader(BlankSeparated(file, source, b"#%"))


def _detect_layout(file: DataFile, options: ReadOptions, id_type: str) -> TextLayout:
    """Return header, columns and the type of the ids of a file, by its first lines.

    ``id_type`` is the type of the ids if it is known already, else ``"auto"``. NoRowsError for a
    file without edges, HeaderDoubtError if the first line may be names or an edge.
    """
    # Whether comments stand above the rows, and the first rows without comments.
    with file.open_stream() as source:
        # 4 bytes: a byte order mark has 3, and the sign of a comment 1
        below_comments = source.read(4).removeprefix(codecs.BOM_UTF8)[:1] in (b"#", b"%")
    with file.open_stream() as source:
        lines = first_lines(file, _open_rows(file, source), SAMPLE_LINES)
    if not lines:
        raise no_rows(file)
    rows = [line.split("\t") for line in lines]
    if len(rows[0]) == 1 and any(sign in lines[0] for sign in ",;|"):
        raise EdgeListError(
            f"{file}: no blank in the first line {lines[0][:80]!r}; "
            f"{option_text('format', 'csv')} reads other delimiters"
        )
    # Columns without names are called by their positions.
    header = _has_header(file, rows, options, below_comments)
    if header:
        names = rows[0]
    else:
        names = [str(i) for i in range(len(rows[0]))]
    return layout_of_rows(file, options, names, rows, header, id_type)


def _has_header(
    file: DataFile, rows: list[list[str]], options: ReadOptions, below_comments: bool
) -> bool:
    """Return whether the first of some rows is a header, as the options state; HeaderDoubtError if
    it may be one, and no option decides.

    SNAP text has no header, but some is written with one. Names are never taken for an edge, nor an
    edge for names. ``below_comments``: whether comments stand above the rows.
    """
    # None where the line could be names or an edge
    header = holds_names(
        rows, options, file.partition_names, in_snap=True, below_comments=below_comments
    )
    # The first line looks like names, which SNAP text does not have and no option announces. So the
    # user must say what it is.
    if options.header == "auto" and options.src_column is None and header:
        raise header_doubt(
            file, " ".join(rows[0]), "looks like a header, which SNAP text has as a comment"
        )
    # Where it could be either, two words over other words are an edge of vertices with names.
    # Numbers, and words over numbers, stay in doubt.
    is_word = not any(map(is_number, rows[0][:2]))
    if header is None and (has_words_over_numbers(rows) or not is_word):
        raise header_doubt(file, " ".join(rows[0]))
    return bool(header)
