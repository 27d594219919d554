"""Edges as text, a row a line: what CSV, SNAP and DIMACS share. pyarrow splits the lines, columns.py checks values."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass

from ..errors import EdgeListError
from .columns import IdText, WeightText
from .edges import EdgeColumns, EdgeList, Where
from .files import DataFile

BLOCK_BYTES = 1 << 18  # larger blocks are no faster and leave more behind in Arrow's memory pool
LONGEST_LINE = 1 << 20

_PLAIN_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
# Each way to match takes time linear in the text: no digit can be taken by two parts.
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")


@dataclass(frozen=True, kw_only=True)
class TextLayout:
    """How the lines of one file are to be read.

    Attributes
    ----------
    names : tuple of str
        Of all columns, in order.
    columns : EdgeColumns
    id_type : str
        Declared, or found in the first row; never ``"auto"``.
    found : bool
        Whether ``id_type`` was found rather than declared.
    header : bool
        Whether the first line holds names.
    delimiter : str
    quotes : bool
        Whether ``"`` quotes a value.
    """

    names: tuple[str, ...]
    columns: EdgeColumns
    id_type: str
    found: bool
    header: bool = False
    delimiter: str = "\t"
    quotes: bool = False


def read_lines(file: DataFile, source, layout: TextLayout) -> EdgeList:
    """Read all rows of one file.

    Parameters
    ----------
    file : DataFile
    source : file object or pyarrow stream
        Decompressed bytes from the start of the file.
    layout : TextLayout

    Raises
    ------
    EdgeListError
        A line with too few or too many values, or a value that is no id or no weight.
    """
    import pyarrow
    import pyarrow.csv

    roles = layout.columns.roles
    wanted = list(dict.fromkeys(roles.values()))
    takers = {
        role: WeightText(Where(file, role, name))
        if role == "weight"
        else IdText(Where(file, role, name), layout.id_type, layout.found)
        for role, name in roles.items()
    }
    with pyarrow.csv.open_csv(
        source,
        # One thread: only so do errors carry the number of the line.
        read_options=pyarrow.csv.ReadOptions(
            use_threads=False,
            block_size=BLOCK_BYTES,
            column_names=None if layout.header else list(layout.names),
        ),
        parse_options=pyarrow.csv.ParseOptions(
            delimiter=layout.delimiter, quote_char='"' if layout.quotes else False, double_quote=layout.quotes
        ),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(wanted, pyarrow.string()),
            include_columns=wanted,
            null_values=[""],
            strings_can_be_null=True,
        ),
    ) as blocks:
        for block in blocks:
            for role, name in roles.items():
                takers[role].append(block.column(name))
    table = pyarrow.table({role: taker.column() for role, taker in takers.items()})
    if table.num_rows == 0:
        raise no_rows(file)
    return EdgeList(table=table, columns=layout.columns, rows=((file.name, table.num_rows),))


def no_rows(file: DataFile) -> EdgeListError:
    """The error for a file without a single edge."""
    return EdgeListError(f"{file}: the file holds no edges (0 rows)")


def id_type_of(file: DataFile, columns: EdgeColumns, names: list[str], row: list[str]) -> str:
    """Tell from the first row whether ids are integers or strings.

    Raises
    ------
    EdgeListError
        They are numbers but no integers.
    """
    values = {
        role: row[names.index(columns.roles[role])].strip()
        for role in ("src", "dst")
        if names.index(columns.roles[role]) < len(row)
    }
    for role, value in values.items():
        if _NUMBER.fullmatch(value) and not re.fullmatch(r"[+-]?[0-9]+", value):
            raise Where(file, role, columns.roles[role]).error(
                f"has {value[:40]!r}, which is not an integer; id_type='string' takes ids as they are written", 0
            )
    return "int64" if all(_PLAIN_INTEGER.fullmatch(value) for value in values.values()) else "string"


def is_number(text: str) -> bool:
    """Whether a value is written as a number."""
    return _NUMBER.fullmatch(text.strip()) is not None


def first_lines(source, count: int) -> list[str]:
    """Return the first lines that are not blank, without their ends, at most ``count``."""
    lines, rest = [], b""
    while len(lines) < count:
        block = source.read(1 << 16)
        *whole, rest = (rest + block).split(b"\n")
        whole = whole if block else [*whole, rest]
        lines += [line.rstrip(b"\r") for line in whole if line.strip()]
        if not block or len(rest) > LONGEST_LINE:
            break
    return [line.decode("utf-8-sig", errors="replace") for line in lines[:count]]


class BlankSeparated(io.RawIOBase):
    """A text stream with runs of blanks made one tab, and comments and blank lines left out.

    Parameters
    ----------
    source : file object
    comment : bytes
        Characters that start a comment when they start a line.
    """

    def __init__(self, source, comment: bytes):
        self._source = source
        self._comment = re.compile(rb"^[ \t]*[" + re.escape(comment) + rb"].*\n?", re.MULTILINE)
        self._signs = comment
        self._ready, self._at, self._rest = b"", 0, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        while self._at == len(self._ready):
            block = self._source.read(BLOCK_BYTES)
            if not block and not self._rest:
                return 0
            if block:
                cut = block.rfind(b"\n") + 1
                if not cut:
                    self._rest += block
                    continue
                lines, self._rest = self._rest + block[:cut], block[cut:]
            else:
                lines, self._rest = self._rest + b"\n", b""
            self._ready, self._at = self._clean(lines), 0
        piece = self._ready[self._at : self._at + len(buffer)]
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)

    def _clean(self, lines: bytes) -> bytes:
        if any(bytes([sign]) in lines for sign in self._signs):
            lines = self._comment.sub(b"", lines)
        lines = lines.replace(b"\r\n", b"\n").replace(b" ", b"\t")
        if b"\t\t" in lines:
            lines = re.sub(rb"\t+", b"\t", lines)
        lines = lines.replace(b"\n\t", b"\n").replace(b"\t\n", b"\n").removeprefix(b"\t")
        while b"\n\n" in lines:
            lines = lines.replace(b"\n\n", b"\n")
        return lines.removeprefix(b"\n")
