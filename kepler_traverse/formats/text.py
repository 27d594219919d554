"""Edges as text, one row per line: what CSV, SNAP, SIF, TNTP and the numbered formats share.
pyarrow splits the lines, and ``columns`` checks values.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._arrays import arrow_compute as compute
from .._arrays import arrow_types as kinds
from .._arrays import pyarrow
from ..errors import EdgeListError, option_text
from .columns import IdForm, IdText, WeightText, edge_column
from .edge_list import EdgeColumns, EdgeList, NoRowsError, ReadOptions, no_rows, read_each
from .files import WEIGHTS, DataFile, Where, reading
from .selection import row_mask, select_rows, text_column

BLOCK_BYTES = 1 << 18  # larger blocks are no faster and leave more behind in Arrow's memory pool
MAX_LINE_LENGTH = 1 << 20  # bytes
NO_OPTIONS = ReadOptions()  # all with their defaults
SAMPLE_LINES = 100  # at the beginning, from which delimiter, header and names are detected

# an integer as programs write it: 007 and +7 may be names
_PLAIN_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
# A decimal number: 7, +7., -0.5, .5 or 1e-3. Matching takes time linear in the text, as no digit
# can be taken by two parts of the pattern.
NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")


@dataclass(frozen=True, kw_only=True)
class TextLayout:
    """How the lines of one file are to be read."""

    names: tuple[str, ...]  # of all columns of the lines, in order, as the file writes them
    columns: EdgeColumns  # the columns of the edges, by their names without blanks
    # one of ``ID_TYPES``, declared by an option or found in the first row; never ``"auto"``
    id_type: str
    found: bool  # whether ``id_type`` was found rather than declared
    header: bool = False  # whether the first line holds names
    # Values of the first row, if it was taken for an edge and could instead count vertices and
    # edges. ``()``: an option says whether there is a header, or the line is one.
    first: tuple[str, ...] = ()
    delimiter: str = "\t"  # between values, once the lines are cleaned
    quotes: bool = False  # whether ``"`` quotes a value
    trim: bool = False  # whether a blank follows each delimiter
    # whether the format numbers its vertices, so that ids are integers whatever else is asked for
    numbered: bool = False

    def written(self, name: str) -> str:
        """Return the name of a column as the file writes it, which may have blanks around it;
        ``name`` has none.
        """
        return next(written for written in self.names if written.strip() == name)


# A function that returns the layout of a file by its first lines. Its last argument is the type of
# the ids, or ``"auto"`` if that is to be found.
Detect = Callable[[DataFile, ReadOptions, str], TextLayout]


def find_id_type(files: list[DataFile], options: ReadOptions, kind: str, detect: Detect) -> str:
    """Return the type of the ids of all files, one of ``ID_TYPES`` but "auto".

    It is ``options.id_type`` unless that is "auto". Then it is the type that the first row of data
    shows, in the first file that has rows and of whose first line it is sure whether it holds
    names; "int64" if there is no such file. ``kind`` names the format in errors, and ``detect``
    returns the layout of a file.
    """
    if options.id_type != "auto":
        return options.id_type
    for file in files:
        with contextlib.suppress(NoRowsError, HeaderDoubtError), _reading_text(file, kind):
            return detect(file, options, "auto").id_type
    return "int64"  # no file tells


@contextlib.contextmanager
def _reading_text(file: DataFile, kind: str) -> Iterator[None]:
    """Turn errors of reading a text in the block into an EdgeListError that names the file;
    ``kind`` is what it calls the format.

    A file without a byte is a text without rows: NoRowsError, since other files may have rows.
    """
    # A compressed file of 0 bytes is damaged, as compressing nothing gives some bytes.
    with reading(file, kind, allow_empty=not file.compression):
        if file.filesystem.size(file.path) == 0:
            raise no_rows(file, problem="the file is empty (0 bytes)")
        yield


def read_texts(
    files: list[DataFile],
    options: ReadOptions,
    kind: str,
    detect: Detect,
    lines: Callable[[DataFile, Any], Any],
) -> EdgeList:
    """Return the edges of files of one kind of text, whose layouts are detected.

    ``kind`` names the format in errors, and ``detect`` returns the layout of a file.
    ``lines(file, source)`` returns the stream that pyarrow splits into rows, of the decompressed
    bytes ``source``.
    """
    id_type = find_id_type(files, options, kind, detect)

    def read_one(file: DataFile, options: ReadOptions) -> EdgeList:
        """Return the edges of one of the files. Where its first line is in doubt, another file with
        the same first line may tell that the line is a header; else HeaderDoubtError.
        """
        with _reading_text(file, kind):
            try:
                layout = detect(file, options, id_type)
            except HeaderDoubtError:
                # A line that heads another file, whose rows tell so, heads this one, too.
                if not any(
                    _is_headed_alike(file, other, options, id_type, detect)
                    for other in files
                    if other is not file
                ):
                    raise
                layout = detect(file, replace(options, header="yes"), id_type)
            # ``lines`` makes of the bytes the rows that have the delimiter of the layout.
            with file.open_stream() as source:
                return read_lines(file, lines(file, source), layout, options)

    return read_each(files, options, read_one)


def _is_headed_alike(
    file: DataFile, other: DataFile, options: ReadOptions, id_type: str, detect: Detect
) -> bool:
    """Return whether another file begins with the same line as ``file``, and the rows of that other
    file say for sure that the line holds names.
    """
    with contextlib.suppress(EdgeListError):
        with file.open_stream() as source, other.open_stream() as other_source:
            if first_lines(file, source, 1) != first_lines(other, other_source, 1):
                return False
        return detect(other, options, id_type).header
    return False


def read_lines(
    file: DataFile,
    source: pyarrow.NativeFile,
    layout: TextLayout,
    options: ReadOptions = NO_OPTIONS,
) -> EdgeList:
    """Return the edges of one file, of all rows that a filter leaves.

    ``source`` is a stream of the lines from the start of the file, decompressed and with the
    delimiter of ``layout``. With a filter or directions in ``options`` the text of all wanted
    columns is in memory at once. EdgeListError for a line with too few or too many values, or a
    value that is no id or no weight.
    """
    # By role, the columns of the edges, and what converts the text of those that are in the lines.
    places = {role: Where(file, role, name) for role, name in layout.columns.roles.items()}
    converters = {
        role: _make_converter(where, layout, options)
        for role, where in places.items()
        if where.name not in file.partition_names
    }

    # The text of the columns, block by block; all blocks, where a filter decides which rows are
    # converted.
    selection_names = layout.columns.selection_names
    # ``written`` returns the name as the header has it, with the blanks around it.
    written = {role: layout.written(places[role].name) for role in converters}
    names = list(written.values())
    names += [layout.written(name) for name in selection_names if name not in file.partition_names]
    blocks_to_select = []
    n_rows = 0
    with _open_csv(source, layout, list(dict.fromkeys(names))) as blocks:
        for block in blocks:
            n_rows += block.num_rows
            if selection_names:
                blocks_to_select.append(block)
                continue
            for role, name in written.items():
                converters[role].append(block.column(name))
    if n_rows == 0:
        raise no_rows(file, layout.columns)

    # With a filter or directions, the rows that are left are converted only now.
    row_numbers = directions = None
    n_left = n_rows
    if selection_names:
        table = pyarrow.Table.from_batches(blocks_to_select)
        del blocks_to_select
        # the numbers of the rows that are left, None for all; and the directions of these rows
        row_numbers, directions = _select_rows(table, layout, options, file)
        mask = None
        if row_numbers is not None:
            n_left = row_numbers.size
            mask = row_mask(row_numbers, n_rows)
        for role, name in written.items():
            column = table.column(name)
            if mask is not None:
                column = column.filter(mask)
            # so that errors have the numbers of rows in the file
            converters[role].where = replace(converters[role].where, rows=row_numbers)
            converters[role].append(column)

    columns = {}
    for role, where in places.items():
        if role in converters:
            columns[role] = converters[role].column()
        else:
            columns[role] = _column_of_folder(file, where, layout, n_left)
    # The first row may count vertices and edges. A filter may have left it out: its number, 0,
    # would be the first of those left.
    if layout.first and (row_numbers is None or 0 in row_numbers[:1]):
        refuse_counts(file, layout.first, n_rows - 1, [columns["src"], columns["dst"]])
    return EdgeList(
        table=pyarrow.table(columns),
        columns=layout.columns,
        rows=((file.name, n_rows),),
        row_numbers=row_numbers,
        directions=directions,
    )


def _make_converter(where: Where, layout: TextLayout, options: ReadOptions) -> IdText | WeightText:
    """Return the object that converts the text of a column, block by block, to weights or ids, as
    ``where.role`` says.
    """
    if where.role in WEIGHTS:
        return WeightText(where, options.new_chunks, options.closes)
    form = IdForm(
        plain=layout.found,  # of a type that no option declares, only plain integers are sure
        trim=layout.trim,
        blanks=not layout.quotes,  # text without quotes is that in which blanks are the delimiter
        numbered=layout.numbered,
    )
    return IdText(where, layout.id_type, form, options.new_chunks())


def _open_csv(source: Any, layout: TextLayout, names: list[str]) -> Any:
    """Return a reader of pyarrow that yields the rows of a text in blocks, as record batches.

    ``names`` are the columns that are read, as the file writes them: strings, null where a value is
    empty.
    """
    column_names = None  # of the header
    if not layout.header:
        column_names = list(layout.names)
    quote_char: Any = False
    if layout.quotes:
        quote_char = '"'
    return pyarrow.csv.open_csv(
        source,
        # One thread: only so do errors carry the number of the line.
        read_options=pyarrow.csv.ReadOptions(
            use_threads=False, block_size=BLOCK_BYTES, column_names=column_names
        ),
        parse_options=pyarrow.csv.ParseOptions(
            delimiter=layout.delimiter, quote_char=quote_char, double_quote=layout.quotes
        ),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pyarrow.string()),
            include_columns=names or [layout.names[0]],  # with none, pyarrow would read all
            null_values=[""],
            strings_can_be_null=True,
        ),
    )


def _column_of_folder(file: DataFile, where: Where, layout: TextLayout, n_rows: int) -> Any:
    """Return a column of the edges whose value, the same in all ``n_rows`` rows, is in the name of
    the file's folder.
    """
    id_type = layout.id_type
    # A type that was found in the rows need not fit the value of the folder, which keeps its own.
    if id_type != "string" and layout.found:
        id_type = "auto"
    return edge_column(file.partition_column(where.name, n_rows), where, id_type)


def _select_rows(
    table: pyarrow.Table, layout: TextLayout, options: ReadOptions, file: DataFile
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Apply the filter to the text of all rows, and read the directions of the rows that it leaves.

    ``table`` has the columns of strings as the file calls them. Return the int64 numbers of the
    rows that are left, and their int8 directions; None without a filter, or without a column of
    directions.
    """
    condition = options.row_filter
    columns = {}
    for name in layout.columns.selection_names:
        if name in file.partition_names:
            columns[name] = file.partition_column(name, table.num_rows)
            continue
        strings = table.column(layout.written(name))
        if layout.trim:
            strings = compute.utf8_ltrim(strings, " \t")
        if condition is None or name not in layout.columns.filters:
            kind = "text"  # a column of directions
        else:
            # what the filter compares it with: text, numbers or booleans; "" if that is unknown
            kind = condition.text_kind(name)
        columns[name] = text_column(strings, kind, Where(file, "where", name))
    # the rows for which the filter is true, and their directions
    return select_rows(pyarrow.table(columns), layout.columns, options, file)


class HeaderDoubtError(EdgeListError):
    """It is not sure whether the first line of a file holds names or an edge."""


def header_doubt(
    file: DataFile, line: str, what: str = "may be a header or an edge"
) -> HeaderDoubtError:
    """Return the error for a first line that could be names, which says ``what`` of it."""
    return HeaderDoubtError(
        f"{file}: the first line {line[:80]!r} {what}; give "
        f"{option_text('header', 'yes')} or {option_text('header', 'no')}"
    )


def could_count(first: tuple[str, ...], n_below: int) -> bool:
    """Return whether the values of a first line could count vertices and edges, ``n m``, or rows,
    columns and entries of a matrix, ``n n m``, as far as ``n_below``, the number of rows below it,
    tells.
    """
    # 18 digits fit int64, and are read as int.
    if len(first) < 2 or not all(len(value) <= 18 and is_plain_integer(value) for value in first):
        return False
    n, *counts = map(int, first)
    has_form = len(counts) == 1 or (len(counts) == 2 and counts[0] == n)
    # m edges are m rows, or 2 m: an undirected edge may be two rows.
    return has_form and counts[-1] in (n_below, n_below / 2)


def refuse_counts(file: DataFile, first: tuple[str, ...], n_below: int, ends: list[Any]) -> None:
    """Raise EdgeListError if the first of all rows could count vertices and edges: ``n m``, or ``n
    n m`` of a matrix.

    ``first`` has the values of that line. It could count them if m is the number of rows below it
    (``n_below``), or half of that, and their vertices are 1..n or 0..n-1. ``ends``: the two columns
    of ids that were read, of which the first row is that line.
    """
    are_integers = all(kinds.is_integer(end.type) for end in ends)
    if len(ends[0]) < 2 or not are_integers or not could_count(first, n_below):
        return
    n = int(first[0])
    # The smallest and the largest id of the rows below the first line.
    extents = [compute.min_max(end.slice(1)).as_py() for end in ends]
    low = min(extent["min"] for extent in extents)
    high = max(extent["max"] for extent in extents)
    # The n vertices are 0..n-1 if the smallest id is 0, and else 1..n: the largest is below n + 0
    # or below n + 1.
    if low >= 0 and high < n + min(low, 1):
        raise HeaderDoubtError(
            f"{file}: the first line {' '.join(first)[:80]!r} may be an edge, or count vertices and edges, as {n_below} "
            f"rows follow; give {option_text('header', 'no')} if it is an edge, and delete it otherwise"
        )


def detect_id_type(file: DataFile, columns: EdgeColumns, names: list[str], row: list[str]) -> str:
    """Return ``"int64"`` if both ids in the first row are integers as programs write them, else
    ``"string"``; EdgeListError if one is a number but no integer.

    ``row`` has the values of the first row, and ``names`` the columns that these are of.
    """
    values = {}  # by role, the id as text
    for role in ("src", "dst"):
        name = columns.roles[role]
        if name in file.partition_names:
            values[role] = str(dict(file.partitions)[name])
        elif names.index(name) < len(row):
            values[role] = row[names.index(name)].strip()
    for role, value in values.items():
        if NUMBER.fullmatch(value) and not re.fullmatch(r"[+-]?[0-9]+", value):
            advice = f"{option_text('id_type', 'string')} takes ids as they are written"
            if re.fullmatch(r"[+-]?[0-9]+\.0*", value):
                advice = (
                    "write ids without a point, as 123 and 123.0 would be two ids "
                    "(pandas: column.astype('Int64'))"
                )
            raise Where(file, role, columns.roles[role]).error(
                f"has {value[:40]!r}, which is not an integer; {advice}", 0
            )
    if all(is_plain_integer(value) for value in values.values()):
        return "int64"
    return "string"


def is_plain_integer(text: str) -> bool:
    """Return whether a value is an integer as a program writes it: 7 and -7, but not 007 or +7."""
    return _PLAIN_INTEGER.fullmatch(text) is not None


def is_number(text: str) -> bool:
    """Return whether a value is written as a decimal number, blanks around it aside."""
    return NUMBER.fullmatch(text.strip()) is not None


def first_lines(file: DataFile, source: pyarrow.NativeFile, count: int) -> list[str]:
    """Return the first lines of a stream of bytes that are not blank, without their ends, at most
    ``count``.

    EdgeListError for a line of more than ``MAX_LINE_LENGTH`` bytes, or text in an encoding other
    than UTF-8.
    """
    lines: list[bytes] = []
    rest = b""  # the beginning of a line whose end was not read yet
    while len(lines) < count:
        block = source.read(1 << 16)
        if not lines and not rest:
            _refuse_other_encodings(file, block)
        *whole_lines, rest = (rest + block).split(b"\n")
        if not block:  # the end of the text ends the last line
            whole_lines.append(rest)
        lines += [line.rstrip(b"\r") for line in whole_lines if line.strip()]
        if not block:
            break
        if len(rest) > MAX_LINE_LENGTH and len(lines) < count:
            raise line_too_long(file)
    return [line.decode("utf-8-sig", errors="replace") for line in lines[:count]]


def line_too_long(file: DataFile) -> EdgeListError:
    """Return the error for a line that is longer than any edge; its end is not looked for."""
    return EdgeListError(
        f"{file}: it has a line of more than {MAX_LINE_LENGTH >> 20} "
        "MiB; is it an edge list, an edge a line?"
    )


def _refuse_other_encodings(file: DataFile, block: bytes) -> None:
    """Raise EdgeListError if the first bytes of a file are UTF-16 or UTF-32, by their mark or by
    the zero bytes that digits and Latin letters have in them.
    """
    if block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in block[:4]:
        raise EdgeListError(
            f"{file}: this is no UTF-8 but UTF-16, UTF-32 or no text at all; save it as UTF-8"
        )


class CleanedLines(io.RawIOBase):
    """A stream of a text whose lines are made rows of values with tabs between them, some lines at
    a time.

    ``source`` has the decompressed bytes of ``file``. A subclass makes rows of whole lines by
    ``_clean``.
    """

    def __init__(self, file: DataFile, source: pyarrow.NativeFile):
        self._file = file
        self._source = source
        self._ready = b""  # rows that are made, of which those from ``_at`` on are still to be read
        self._at = 0
        self._rest = b""  # the beginning of a line whose end is not read
        self._is_start = True  # whether nothing was read yet

    def _clean(self, lines: bytes) -> bytes:
        """Return the rows that ``lines`` hold, as bytes with tabs between values and an end of line
        behind each row; b"" if no line is a row, as where all are comments.

        ``lines`` are whole lines of the text, each with its end of line.
        """
        raise NotImplementedError

    def readable(self) -> bool:
        """Return True: ``io.BufferedReader`` asks before it reads."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Write bytes of rows to the beginning of ``buffer``, a writable buffer of bytes, and
        return how many: at least 1, and 0 only at the end of the text.
        """
        # Until there are rows: lines may all be comments.
        while self._at == len(self._ready):
            block = self._source.read(BLOCK_BYTES)
            if self._is_start:
                _refuse_other_encodings(self._file, block)
                # Without the byte order mark, which would make an edge of a comment behind it. If
                # the block was nothing but the mark, the next one follows: b"" would be the end.
                block = block.removeprefix(codecs.BOM_UTF8) or self._source.read(BLOCK_BYTES)
                self._is_start = False
            if not block and not self._rest:
                return 0

            # Whole lines: up to the last end of a line in the block, or to the end of the text.
            if block:
                end = block.rfind(b"\n") + 1
                # The whole lines of a block are BLOCK_BYTES at most. Beyond both bounds together,
                # ``_rest`` is longer than a line may be, and it is the beginning of one line.
                if len(self._rest) + (end or len(block)) > MAX_LINE_LENGTH + BLOCK_BYTES:
                    raise line_too_long(self._file)
                if not end:
                    self._rest += block
                    continue
                lines = self._rest + block[:end]
                self._rest = block[end:]
            else:
                lines = self._rest + b"\n"
                self._rest = b""
            self._ready = self._clean(lines)
            self._at = 0
        piece = self._ready[self._at : self._at + len(buffer)]
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)


class BlankSeparated(CleanedLines):
    """A stream of a text with runs of blanks and tabs made one tab, without blank lines and without
    lines that start with one of the signs in ``comment``.
    """

    def __init__(self, file: DataFile, source: pyarrow.NativeFile, comment: bytes):
        super().__init__(file, source)
        self._comment = re.compile(rb"^[ \t]*[" + re.escape(comment) + rb"].*\n?", re.MULTILINE)
        self._signs = comment

    def _clean(self, lines: bytes) -> bytes:
        """Return the rows of whole lines, without comments and blank lines, with one tab between
        values and no blanks at their ends; b"" if there is no row.
        """
        # Each step is taken only where it is needed, as most blocks need none.
        if any(bytes([sign]) in lines for sign in self._signs):
            lines = self._comment.sub(b"", lines)
        lines = lines.replace(b"\r\n", b"\n").replace(b" ", b"\t")
        if b"\t\t" in lines:
            lines = re.sub(rb"\t+", b"\t", lines)
        lines = lines.replace(b"\n\t", b"\n").replace(b"\t\n", b"\n").removeprefix(b"\t")
        while b"\n\n" in lines:
            lines = lines.replace(b"\n\n", b"\n")
        return lines.removeprefix(b"\n")
