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
FIRST_THROUGH = "FIRST THRU NODE"
_END = "END OF METADATA"
_NUMBERS_OF_HEADER = (FIRST_THROUGH, "NUMBER OF LINKS", "TOTAL OD FLOW")
# Words of the comment above the rows: columns that could be taken for each other.
_HEADINGS = ("init", "term", "capacity", "length", "freeflow", "power", "speed", "toll", "type")
_HEADER = re.compile(r"\s*<([^>]*)>(.*)")
_PIECE = 2**20  # bytes
_MAX_ENDING = 80  # characters of a line in a message


class LinkTable(NamedTuple):
    """The links of a network."""

    first_through: int  # the first vertex that paths may lead through, 1 if the file does not say
    # by the names of ``LINK_COLUMNS``, of shape (n_links,): int64 for vertices and types, else
    # float64
    columns: dict[str, np.ndarray]


def read_tntp(files: list[DataFile], options: ReadOptions) -> EdgeList:
    """Read networks as edge lists; the columns are ``LINK_COLUMNS``."""
    edges = read_texts(files, options, "TNTP", _detect_layout, _open_rows)
    first_through = []
    for file in files:
        header, _ = _parse_header(file, _read_text(file))
        first_through.append(_first_through(file, header))
    return replace(edges, columns=replace(edges.columns, first_through=max(first_through)))


def _open_rows(file: DataFile, source: Any) -> Any:
    """Open the rows of a network for pyarrow; see ``read_texts``."""
    return io.BufferedReader(_LinkRows(file, source))


def _detect_layout(file: DataFile, options: ReadOptions, id_type: str) -> TextLayout:
    """Return the layout of a network, whose columns the format states."""
    columns = choose_columns([*LINK_COLUMNS, *file.partition_names], options, file)
    return TextLayout(
        names=LINK_COLUMNS,
        columns=columns,
        id_type="int64" if id_type == "auto" else id_type,
        found=options.id_type == "auto",
        numbered=True,
    )


class _LinkRows(CleanedLines):
    """The rows of a network, with tabs between the values."""

    def __init__(self, file: DataFile, source: Any):
        super().__init__(file, source)
        self._in_header = True  # until the line that ends the metadata
        self._line = 0  # counted from 1

    def _clean(self, lines: bytes) -> bytes:
        """Return the rows of whole lines, which lie below the header; comments are left out."""
        rows = []
        if not self._line:
            lines = lines.removeprefix(codecs.BOM_UTF8)
        for line in lines.removesuffix(b"\n").split(b"\n"):
            self._line += 1
            text = line.strip()
            if text.startswith(b"~"):
                _check_order(self._file, self._line, line.decode("utf-8", "replace"))
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
    """Refuse a comment that names the columns in another order than that of the format."""
    letters = "".join(filter(str.isalpha, text.lower()))
    places = [letters.find(name) for name in _HEADINGS]
    if min(places) >= 0 and places != sorted(places):
        what = f"names the columns in another order than TNTP has: {', '.join(LINK_COLUMNS)}"
        raise _error(file, line, text, what)


_NO_HEADER = f"stands before <{_END}>; is the file a TNTP network?"
_NO_ROW = f"has not {len(LINK_COLUMNS)} values: {', '.join(LINK_COLUMNS)}"


def _error(file: DataFile, line: int, text: str, what: str) -> EdgeListError:
    """Return the error for a line, counted from 1; ``what`` is said of its text."""
    return EdgeListError(f"{file}: line {line} {text.strip()[:_MAX_ENDING]!r} {what}")


def _one_file(path: Any) -> DataFile:
    """Return the file that a path names; InputError if it names several."""
    files = find_files(path, {".tntp"})
    if len(files) != 1:
        raise InputError(f"{path}: it holds {len(files)} files; name one")
    return files[0]


def _read_text(file: DataFile) -> str:
    """Return the whole text of a file; what is no UTF-8 has signs in its place."""
    with file.open_stream() as stream:
        # a compressed stream cannot say how much is left
        pieces = iter(lambda: bytes(stream.read(_PIECE)), b"")
        return b"".join(pieces).removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace")


def _header_name(match: re.Match[str]) -> str:
    """Return the name of a line of the header in the usual spelling."""
    return " ".join(match[1].upper().replace("THROUGH", "THRU").split())


def _lines(text: str) -> list[str]:
    """Return the lines of a file: a comment may hold other marks, at which ``splitlines`` breaks."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _parse_header(file: DataFile, text: str) -> tuple[dict[str, str], int]:
    """Return what the header says, by the names of its lines, and the number of these."""
    header: dict[str, str] = {}
    for number, line in enumerate(_lines(text), 1):
        match = _HEADER.match(line)
        if match is None:
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
    """Return the first vertex that paths may lead through, 1 if the header does not say."""
    text = header.get(FIRST_THROUGH, "1")
    first = integer_id(text)
    if first is None:
        raise InputError(f"{file}: <{FIRST_THROUGH}> is {text!r}, which is no whole number")
    return first


def _number_in_header(file: DataFile, header: dict[str, str], name: str) -> float | None:
    """Return a number of the header, None if it says none."""
    text = header.get(name, "")
    if not text:
        return None
    if not NUMBER.fullmatch(text):
        raise EdgeListError(
            f"{file}: <{name}> is {text!r}, which is no number; correct it, or leave the line out"
        )
    return float(text)


def read_link_table(path: Any) -> LinkTable:
    """Return the links of a network with all their columns.

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
    """Whether a text is a finite number of a type."""
    try:
        return bool(np.isfinite(np.array(_parse_number(kind, text), kind)))
    except (ValueError, OverflowError):
        return False


def _parse_number(kind: Any, text: str) -> int | float:
    """Return a number, int for ``numpy.int64``; ValueError for words that Python takes for one,
    such as ``1_0``.
    """
    if kind is np.int64:
        number = integer_id(text)
        if number is None:
            raise ValueError
        return number
    if not NUMBER.fullmatch(text):
        raise ValueError
    return float(text)


_ORIGIN = re.compile(r"^\s*Origin\s+(\S+)\s*$", re.IGNORECASE | re.MULTILINE)


def read_trip_table(path: Any) -> dict[str, np.ndarray]:
    """Return the trips of a file: ``origin``, ``destination`` and ``volume``, of all its entries.

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
    """Return the destinations, int64, and the volumes, float64, of the entries of an origin.

    EdgeListError if one of these, or the origin, is no number.
    """
    pairs = [entry.split(":") for entry in entries.split(";") if entry.strip()]
    try:
        np.int64(_parse_number(np.int64, origin))
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
    """Raise EdgeListError if the volumes do not add up to what the header says, but for rounding."""
    if total is None:
        return
    if abs(volume.sum() - total) > 1e-3 * max(total, 1.0):
        raise EdgeListError(
            f"{file}: the volumes add up to {volume.sum():.1f}, and the header says {total:.1f}; "
            "is the file complete?"
        )
