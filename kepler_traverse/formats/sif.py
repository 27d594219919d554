"""SIF, the simple interaction format of Cytoscape: a source, an interaction, and one target or more
per line; or the name of a vertex alone.
"""

from __future__ import annotations

import io
from typing import Any

from ..errors import EdgeListError
from .column_names import choose_columns
from .edge_list import EdgeList, ReadOptions, no_rows
from .files import DataFile
from .text import (
    SAMPLE_LINES,
    CleanedLines,
    TextLayout,
    detect_id_type,
    first_lines,
    read_texts,
)

COLUMNS = ("source", "interaction", "target")
MAX_BYTES_OF_A_LINE = 1 << 26  # of the rows that one line gives, which repeat its source


def read_sif(files: list[DataFile], options: ReadOptions) -> EdgeList:
    """Return the edges of SIF files, whose columns are called ``source``, ``interaction`` and
    ``target``.

    Values are apart by tabs in a file that has a tab, else by blanks. A line with one name becomes
    a row from that vertex to itself, without an interaction.
    """
    return read_texts(files, options, "SIF", _detect_layout, _open_rows)


def _open_rows(file: DataFile, source: Any) -> Any:
    """Return a stream of rows with one edge each, with tabs between values, for pyarrow to split.

    ``source`` has the decompressed bytes of ``file``. The file is opened once more for its first
    lines, which say whether it has tabs.
    """
    with file.open_stream() as sample:
        lines = first_lines(file, sample, SAMPLE_LINES)
    has_tabs = any("\t" in line.strip() for line in lines)
    return io.BufferedReader(_SifRows(file, source, has_tabs))


def _detect_layout(file: DataFile, options: ReadOptions, id_type: str) -> TextLayout:
    """Return the layout of a file, whose columns the format states. If ``id_type`` is "auto", the
    first row says whether ids are integers or strings.
    """
    with file.open_stream() as source:
        rows = [line.split("\t") for line in first_lines(file, _open_rows(file, source), 1)]
    if not rows:
        raise no_rows(file)
    columns = choose_columns([*COLUMNS, *file.partition_names], options, file)
    if id_type == "auto":
        id_type = detect_id_type(file, columns, list(COLUMNS), rows[0])
    return TextLayout(
        names=COLUMNS, columns=columns, id_type=id_type, found=options.id_type == "auto"
    )


class _SifRows(CleanedLines):
    """The rows of a SIF file: one per edge, with one source, an interaction and one target.

    ``has_tabs``: whether values are apart by tabs, as the first lines say, so that names may hold
    blanks.
    """

    def __init__(self, file: DataFile, source: Any, has_tabs: bool):
        super().__init__(file, source)
        self._has_tabs = has_tabs
        self._line = 0  # counted from 1

    def _clean(self, lines: bytes) -> bytes:
        """Return the rows that whole lines give, one edge each, with tabs between values; b"" if
        all lines are blank.
        """
        rows: list[bytes] = []
        for line in lines.removesuffix(b"\n").split(b"\n"):
            self._line += 1
            if line.strip():
                rows += self._edges(line.strip(b" \r\t"))
        return b"".join(rows)

    def _edges(self, line: bytes) -> list[bytes]:
        """Return the rows of a line that is not blank, one per target, each with an end of line:
        two rows for ``a pp b c``. A line with one name gives one row, from that vertex to itself.

        EdgeListError if the line is no line of SIF.
        """
        if self._has_tabs:
            values = [value.strip() for value in line.split(b"\t")]
            if len(values) == 1 and len(line.split()) > 2:
                raise self._error(
                    line,
                    "has no tab, and other lines have: it may be one name or an edge; write tabs "
                    "between the values, and give names of vertices without an edge by vertices=",
                )
        elif b"\t" in line:
            raise self._error(line, "has a tab, and the first lines have blanks between values")
        else:
            values = line.split()
        if len(values) == 1:  # a vertex without an edge: a self-loop, which building drops
            return [values[0] + b"\t\t" + values[0] + b"\n"]
        if len(values) == 2 or b"" in values:
            raise self._error(line, "is neither one name nor a source, an interaction and targets")
        begin = values[0] + b"\t" + values[1] + b"\t"  # of each row of this line
        if len(begin) * len(values) > MAX_BYTES_OF_A_LINE:
            raise self._error(line, "has too many targets for so long a source; cut it into lines")
        return [begin + target + b"\n" for target in values[2:]]

    def _error(self, line: bytes, what: str) -> EdgeListError:
        """Return the error for the line that is being read, which says ``what`` of it."""
        shown = line[:80].decode("utf-8", errors="replace")
        return EdgeListError(f"{self._file}: line {self._line} {shown!r} {what}")
