"""TNTP, the text files of the Transportation Networks for Research: networks and trips.

A file begins with lines ``<NAME> value`` up to ``<END OF METADATA>``. Lines that begin with ``~`` are
comments. A row of a network ends with a semicolon. Trips are ``Origin n``, then entries
``destination : volume;``.
"""

from __future__ import annotations

import codecs
import io
import re
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..errors import EdgeListError, InputError
from .column_names import choose_columns
from .edge_list import EdgeList, ReadOptions
from .files import DataFile, find_files
from .ids import integer_id
from .text import NUMBER, CleanedLines, TextLayout, read_texts

LINK_COLUMNS = (
    "init_node",
    "term_node",
    "capacity",
    "length",
    "free_flow_time",
    "b",
    "power",
    "speed",
    "toll",
    "link_type",
)
# names of lines of the header: the first vertex that paths may lead through, and the last line
FIRST_THROUGH = "FIRST THRU NODE"
_END = "END OF METADATA"
# names of lines of the header that may occur several times only with the same value
_NUMBERS_OF_HEADER = (FIRST_THROUGH, "NUMBER OF LINKS", "TOTAL OD FLOW")
# Words of the comment above the rows: columns that could be taken for each other.
_HEADINGS = ("init", "term", "capacity", "length", "freeflow", "power", "speed", "toll", "type")
# a line of the header, such as "<NUMBER OF LINKS> 76": its name, and its value with blanks
_HEADER = re.compile(r"\s*<([^>]*)>(.*)")
_PIECE = 2**20  # bytes that are read at a time
_MAX_ENDING = 80  # characters of a line in a message


class LinkTable(NamedTuple):
    """The links of a network of a TNTP file."""

    first_through: int  # the first vertex that paths may lead through, 1 if the file does not say
    # by the names of ``LINK_COLUMNS``, of shape (n_links,): int64 for vertices and types, else
    # float64
    columns: dict[str, np.ndarray]


def read_tntp(files: list[DataFile], options: ReadOptions) -> EdgeList:
    """Return the links of networks as an edge list: src, dst, and the weight if one is read.

    These are three of the ten columns ``LINK_COLUMNS``: init_node, term_node and length, unless the
    options name others.
    """
    edges = read_texts(files, options, "TNTP", _detect_layout, _open_rows)
    # Each file states the first vertex that paths may lead through. The files are one network with
    # the same vertices, so a vertex that one file closes is closed in all: the largest counts.
    first_through = []
    for file in files:
        header, _ = _parse_header(file, _read_text(file))
        first_through.append(_first_through(file, header))
    return replace(edges, columns=replace(edges.columns, first_through=max(first_through)))


def _open_rows(file: DataFile, source: Any) -> Any:
    """Return a stream of the rows of a network, with tabs between values, for pyarrow to split.

    ``source`` has the decompressed bytes of ``file``.
    """
    return io.BufferedReader(_LinkRows(file, source))


def _detect_layout(file: DataFile, options: ReadOptions, id_type: str) -> TextLayout:
    """Return the layout of a network, whose columns the format states. Ids are int64, unless
    ``id_type`` is another type than "auto".
    """
    # those that the options name, else the ends and the length; partitions have columns, too
    columns = choose_columns([*LINK_COLUMNS, *file.partition_names], options, file)
    return TextLayout(
        names=LINK_COLUMNS,
        columns=columns,
        id_type="int64" if id_type == "auto" else id_type,
        found=options.id_type == "auto",  # whether no option declares the type of the ids
        numbered=True,  # vertices are numbers, so that errors of ids advise no other type
    )


class _LinkRows(CleanedLines):
    """The rows of a network, with tabs between the values; the header and comments are left out."""

    def __init__(self, file: DataFile, source: Any):
        super().__init__(file, source)
        self._in_header = True  # until the line that ends the metadata
        self._line = 0  # counted from 1

    def _clean(self, lines: bytes) -> bytes:
        """Return the rows of whole lines below the header, without comments, with tabs between
        values; b"" if there is no row.

        Lines of the header give no rows. EdgeListError for a line above the end of the header that
        is neither a comment nor a line of the header, and for a row that has not a value per column
        of ``LINK_COLUMNS``.
        """
        rows = []
        if not self._line:
            lines = lines.removeprefix(codecs.BOM_UTF8)
        for line in lines.removesuffix(b"\n").split(b"\n"):
            self._line += 1
            text = line.strip()
            # A comment may name the columns, wherever it stands.
            if text.startswith(b"~"):
                _check_order(self._file, self._line, line.decode("utf-8", "replace"))
            # Lines of the header are passed over up to its last one; the rows follow.
            if self._in_header:
                match = _HEADER.match(text.decode("utf-8", "replace"))
                self._in_header = match is None or _header_name(match) != _END
                if text and not text.startswith((b"<", b"~")):
                    raise _error(
                        self._file, self._line, line.decode("utf-8", "replace"), _NO_HEADER
                    )
            elif text and not text.startswith((b"~", b"<")):
                values = text.rstrip(b"; \t\r").split()
                if len(values) != len(LINK_COLUMNS):
                    shown = line.decode("utf-8", "replace")
                    raise _error(self._file, self._line, shown, _NO_ROW)
                rows.append(b"\t".join(values) + b"\n")
        return b"".join(rows)


def _check_order(file: DataFile, line: int, text: str) -> None:
    """Raise EdgeListError for a comment that names all columns in another order than the format
    has. ``line`` is the number of the comment's line, counted from 1, and ``text`` the comment.
    """
    # without blanks and signs, so that "Free Flow Time" is "freeflowtime"
    letters = "".join(filter(str.isalpha, text.lower()))
    places = [letters.find(name) for name in _HEADINGS]
    # ``find`` returns -1 for a name that does not occur, so ``min`` tells whether all occur.
    if min(places) >= 0 and places != sorted(places):
        what = f"names the columns in another order than TNTP has: {', '.join(LINK_COLUMNS)}"
        raise _error(file, line, text, what)


_NO_HEADER = f"stands before <{_END}>; is the file a TNTP network?"
_NO_ROW = f"has not {len(LINK_COLUMNS)} values: {', '.join(LINK_COLUMNS)}"


def _error(file: DataFile, line: int, text: str, what: str) -> EdgeListError:
    """Return the error for the line number ``line``, counted from 1, of a file. The message has its
    ``text``, cut, and says ``what`` of it.
    """
    return EdgeListError(f"{file}: line {line} {text.strip()[:_MAX_ENDING]!r} {what}")


def _one_file(path: Any) -> DataFile:
    """Return the file that a path names; InputError if it names several."""
    files = find_files(path, {".tntp"})
    if len(files) != 1:
        raise InputError(f"{path}: it holds {len(files)} files; name one")
    return files[0]


def _read_text(file: DataFile) -> str:
    """Return the whole text of a file; bytes that are no UTF-8 become replacement characters."""
    with file.open_stream() as stream:
        # a compressed stream cannot say how much is left
        pieces = iter(lambda: bytes(stream.read(_PIECE)), b"")
        return b"".join(pieces).removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace")


def _header_name(match: re.Match[str]) -> str:
    """Return the name of a line of the header, a match of ``_HEADER``, in the usual spelling."""
    return " ".join(match[1].upper().replace("THROUGH", "THRU").split())


def _lines(text: str) -> list[str]:
    """Return the lines of a text, without their ends. ``str.splitlines`` would also break at other
    marks, which a comment may hold.
    """
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _parse_header(file: DataFile, text: str) -> tuple[dict[str, str], int]:
    """Return the values of the lines of the header, texts by the names of the lines, and how many
    lines the header has, its last one included.

    EdgeListError if it does not end, or two lines of ``_NUMBERS_OF_HEADER`` contradict each other.
    """
    header: dict[str, str] = {}
    for number, line in enumerate(_lines(text), 1):
        match = _HEADER.match(line)
        if match is None:  # a blank line or a comment, or no header
            if line.strip() and not line.lstrip().startswith("~"):
                raise _error(file, number, line, _NO_HEADER)
            continue
        name = _header_name(match)
        if name == _END:
            return header, number
        value = match[2].strip()
        if name in _NUMBERS_OF_HEADER and header.get(name, value) != value:
            raise _error(
                file, number, line, f"says another thing than a line before: {header[name]}"
            )
        header[name] = value
    raise EdgeListError(f"{file}: it has no <{_END}>; is it a TNTP file?")


def _first_through(file: DataFile, header: dict[str, str]) -> int:
    """Return the first vertex that paths may lead through, 1 if the header does not say; InputError
    if it is no integer.
    """
    text = header.get(FIRST_THROUGH, "1")
    first = integer_id(text)
    if first is None:
        raise InputError(f"{file}: <{FIRST_THROUGH}> is {text!r}, which is no whole number")
    return first


def _number_in_header(file: DataFile, header: dict[str, str], name: str) -> float | None:
    """Return the number of the line ``name`` of the header, None if there is no such line, or no
    value in it; EdgeListError if the value is no number.
    """
    text = header.get(name, "")
    if not text:
        return None
    if not NUMBER.fullmatch(text):
        raise EdgeListError(
            f"{file}: <{name}> is {text!r}, which is no number; correct it, or leave the line out"
        )
    return float(text)


def read_link_table(path: Any) -> LinkTable:
    """Return the links of the network in a TNTP file, with all their columns.

    Raises
    ------
    EdgeListError
        A line has another number of values, or one that is no number; or rows are missing.
    """
    file = _one_file(path)
    text = _read_text(file)
    header, n_before = _parse_header(file, text)
    first_through = _first_through(file, header)

    # The values of each row, and the number of its line.
    rows = []
    lines = []
    for number, line in enumerate(_lines(text)[n_before:], n_before + 1):
        if line.lstrip().startswith("~"):
            _check_order(file, number, line)
        values = line.rstrip("; \t\r").split()
        if not values or values[0].startswith(("~", "<")):
            continue
        if len(values) != len(LINK_COLUMNS):
            raise _error(file, number, line, _NO_ROW)
        rows.append(values)
        lines.append(number)
    if _number_in_header(file, header, "NUMBER OF LINKS") not in (None, len(rows)):
        stated = header["NUMBER OF LINKS"]
        raise EdgeListError(f"{file}: it has {len(rows)} links, and its header says {stated}")

    # Each column as numbers. If one is wrong, the first such row is named.
    columns = {}
    for place, name in enumerate(LINK_COLUMNS):
        kind = np.int64 if name in ("init_node", "term_node", "link_type") else np.float64
        try:
            columns[name] = np.array([_parse_number(kind, row[place]) for row in rows], kind)
            if not np.isfinite(columns[name]).all():
                raise ValueError  # like a text that is no number, for the error below
        except (ValueError, OverflowError):
            number, row = next(
                (line, row)
                for line, row in zip(lines, rows, strict=True)
                if not _is_number(kind, row[place])
            )
            what = f"has the {name} {row[place]!r}, which is no number"
            raise _error(file, number, " ".join(row), what) from None
    return LinkTable(first_through, columns)


def _is_number(kind: Any, text: str) -> bool:
    """Return whether a text is a finite number of the type ``kind``, int64 or float64."""
    try:
        return bool(np.isfinite(np.array(_parse_number(kind, text), kind)))
    except (ValueError, OverflowError):
        return False


def _parse_number(kind: Any, text: str) -> int | float:
    """Return the number that a text is: int if ``kind`` is ``numpy.int64``, else float. ValueError
    for another text, also for one that Python takes for a number, such as ``1_0``.
    """
    if kind is np.int64:
        number = integer_id(text)
        if number is None:
            raise ValueError
        return number
    if not NUMBER.fullmatch(text):
        raise ValueError
    return float(text)


# a line such as "Origin 12", whose group is the origin
_ORIGIN = re.compile(r"^\s*Origin\s+(\S+)\s*$", re.IGNORECASE | re.MULTILINE)


def read_trip_table(path: Any) -> dict[str, np.ndarray]:
    """Return the trips of a TNTP file: ``origin`` and ``destination``, int64, and ``volume``,
    float64, each of shape (entries,), of all its entries.

    Raises
    ------
    EdgeListError
        An entry is no ``destination : volume``, or the sum is not that of the header.
    """
    file = _one_file(path)
    text = _read_text(file)
    header, n_before = _parse_header(file, text)
    body = "\n".join(line for line in _lines(text)[n_before:] if not line.lstrip().startswith("~"))
    # The text before the first origin, and then each origin and the text of its entries by turns.
    before, *blocks = _ORIGIN.split(body)
    if before.strip() or not blocks:
        raise EdgeListError(f"{file}: the trips do not begin with a line 'Origin n'")

    origins = []
    ends = []
    volumes = []
    for origin, entries in zip(blocks[::2], blocks[1::2], strict=True):
        destination, volume = _parse_entries(file, origin, entries)
        ends.append(destination)
        volumes.append(volume)
        origins.append(np.full(destination.size, int(origin), np.int64))
    trips = {
        "origin": np.concatenate(origins),
        "destination": np.concatenate(ends),
        "volume": np.concatenate(volumes),
    }
    _check_total(file, _number_in_header(file, header, "TOTAL OD FLOW"), trips["volume"])
    return trips


def _parse_entries(file: DataFile, origin: str, entries: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the destinations, int64, and the volumes, float64, in the text of the entries of an
    origin: ``destination : volume;`` each.

    EdgeListError if one of these, or the origin, is no number.
    """
    pairs = [entry.split(":") for entry in entries.split(";") if entry.strip()]
    try:
        np.int64(_parse_number(np.int64, origin))  # only checked: OverflowError beyond int64
        # another number of parts than two is a ValueError, too
        numbers = [
            (_parse_number(np.int64, end.strip()), _parse_number(np.float64, trips.strip()))
            for end, trips in pairs
        ]
        destination = np.array([end for end, _ in numbers], np.int64)
        volume = np.array([trips for _, trips in numbers], np.float64)
        if not np.isfinite(volume).all():
            raise ValueError
    except (ValueError, OverflowError):
        raise EdgeListError(
            f"{file}: the entries of origin {origin!r} are not all 'destination : volume;'"
        ) from None
    return destination, volume


def _check_total(file: DataFile, total: float | None, volume: np.ndarray) -> None:
    """Raise EdgeListError if the volumes do not add up to ``total``, which the header says; None if
    it says none.
    """
    if total is None:
        return
    # The volumes and the total are rounded, so they may differ by a thousandth of the total, or by
    # a thousandth of a trip if the total is below 1.
    if abs(volume.sum() - total) > 1e-3 * max(total, 1.0):
        raise EdgeListError(
            f"{file}: the volumes add up to {volume.sum():.1f}, and the header says {total:.1f}; "
            "is the file complete?"
        )
