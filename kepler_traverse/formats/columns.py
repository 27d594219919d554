"""Columns of a file to columns of an edge list: ids become integers or strings, weights integers or
floats, or an error.
"""

from __future__ import annotations

import mmap
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np

from .._arrays import arrow_compute as compute
from .._arrays import arrow_types as kinds
from .._arrays import pyarrow
from ..errors import EdgeListError, option_text
from ..runtime.scratch import writing_to
from .files import WEIGHTS, Where
from .sizes import is_string_type, value_type

CLOSED = -1  # stands for a null among weights that may close an edge, as each below 0 does

# Patterns of ids that are refused: signs that belong to no id, and blanks at an end, which need not
# belong to an id whose type was not declared. ``_OTHER_DELIMITERS`` is appended to the second.
_DOUBTFUL = r"[\x00\n\x{feff}]"
_DOUBTFUL_PLAIN = _DOUBTFUL + r"|^[\s\p{Z}]|[\s\p{Z}]$"
_OTHER_DELIMITERS = r"|^[,;|]|[,;|]$"


def edge_column(
    column: pyarrow.ChunkedArray, where: Where, id_type: str, closes: bool = False
) -> pyarrow.ChunkedArray:
    """Return a typed column (Parquet, Arrow) as ids or weights; EdgeListError for nulls, or a type
    that is neither.

    ``where.role`` says whether it is a column of ids or of weights. Ids become of ``id_type``, one
    of ``ID_TYPES``. With ``closes``, a weight may be null, and is then ``CLOSED``.
    """
    column = plain_column(column)
    is_weight = where.role in WEIGHTS
    if not is_weight:
        check_type(column.type, where)
    # Nulls: in weights they may close an edge, and everywhere else they are refused.
    if column.null_count and is_weight and closes:
        return _with_closed(column, where)
    if column.null_count:
        raise null_error(column, where)
    if not is_weight:
        return _ids(column, where, id_type)
    if kinds.is_integer(column.type) or kinds.is_floating(column.type):
        if kinds.is_float16(column.type):
            return column.cast(pyarrow.float32())  # the narrowest float that a graph has
        return column
    if is_duration_type(column.type):
        return in_seconds(column, where)
    raise where.error(
        f"has type {column.type}; weights must be integers, floats "
        "or durations, cast the column first"
    )


def _with_closed(column: pyarrow.ChunkedArray, where: Where) -> pyarrow.ChunkedArray:
    """Return a column of weights with ``CLOSED`` in place of its nulls, as a chunked array with one
    chunk. Unsigned integers become signed, as ``CLOSED`` is -1.
    """
    # A column of nothing but nulls may have a type of its own, which holds no number.
    if kinds.is_null(column.type):
        column = column.cast(pyarrow.int8())
    is_known = np.asarray(column.is_valid())
    # "auto" is a type of ids, which has no effect on weights.
    known = edge_column(column.drop_null(), where, "auto").to_numpy()
    # Unsigned integers get the next signed type, which holds CLOSED, too.
    if known.dtype.kind == "u":
        kind = np.result_type(known.dtype, np.int8)
        if kind.kind != "i":  # of uint64, with which NumPy takes float64
            kind = np.dtype(np.int64)
        known = _cast(pyarrow.array(known), pyarrow.from_numpy_dtype(kind), where).to_numpy()
    weights = np.full(is_known.size, CLOSED, known.dtype)
    weights[is_known] = known
    return pyarrow.chunked_array([pyarrow.array(weights)])


def is_duration_type(kind: pyarrow.DataType) -> bool:
    """Return whether a type of Arrow holds lengths of time."""
    return bool(kinds.is_duration(kind) or kinds.is_interval(kind))


def in_seconds(column: pyarrow.ChunkedArray, where: Where) -> pyarrow.ChunkedArray:
    """Return durations in seconds: as int64 if all are whole, else as the nearest float64.

    The column has no nulls, and holds durations or intervals. A day of an interval has 24 hours.
    EdgeListError for one with months, which have no fixed length.
    """
    # Whole seconds, and the rest in units, of which a second has ``per``.
    if kinds.is_duration(column.type):
        per = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[column.type.unit]
        seconds, rest = np.divmod(column.cast(pyarrow.int64()).to_numpy(), per)
    else:
        per = 10**9
        months, days, nanoseconds = parts_of_intervals(column)
        if months.any():
            row = int(np.flatnonzero(months)[0])
            raise where.error(
                (
                    f"has an interval of {months[row]} months, whose length is "
                    "not fixed; give days or seconds"
                ),
                row,
            )
        seconds, rest = np.divmod(nanoseconds, per)
        seconds += 86_400 * days
    if not rest.any():
        return pyarrow.chunked_array([pyarrow.array(seconds)])

    # The quotient is the nearest float64 where the dividend is an integer that float64 holds, below
    # 2^53: the seconds give less than 2^52 units, and the rest is less than ``per``, 10^9 at most.
    # Elsewhere the product may overflow, and is replaced: Python divides exact integers, and rounds
    # once.
    is_exact = np.abs(seconds) < 2**52 // per
    floats = (seconds * per + rest) / per
    for row in np.flatnonzero(~is_exact).tolist():
        floats[row] = (int(seconds[row]) * per + int(rest[row])) / per
    return pyarrow.chunked_array([pyarrow.array(floats)])


def parts_of_intervals(column: pyarrow.ChunkedArray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return months, days and nanoseconds of intervals, int64 of shape (n,) each.

    They are read from the memory of Arrow, in whose layout an interval is 16 bytes.
    """
    layout = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanoseconds", "<i8")])
    # The second buffer has the values; a slice of a longer array begins later in it. An empty chunk
    # may have no buffer.
    chunks = [
        np.frombuffer(
            chunk.buffers()[1], layout, count=len(chunk), offset=chunk.offset * layout.itemsize
        )
        for chunk in column.chunks
        if len(chunk)
    ]
    parts = np.concatenate([np.zeros(0, layout), *chunks])
    return (
        parts["months"].astype(np.int64),
        parts["days"].astype(np.int64),
        parts["nanoseconds"].astype(np.int64),
    )


def plain_column(column: pyarrow.ChunkedArray) -> pyarrow.ChunkedArray:
    """Return a column with the same values and neither a dictionary nor string views, for which
    pyarrow lacks functions. Other columns are returned as they are.
    """
    if kinds.is_dictionary(column.type):
        kind = column.type.value_type
        if not kinds.is_string_view(kind):
            return column.cast(kind)
        kind = pyarrow.large_string()  # pyarrow casts no dictionary of string views
        return pyarrow.chunked_array(
            [chunk.dictionary.cast(kind).take(chunk.indices) for chunk in column.chunks], kind
        )
    if kinds.is_string_view(column.type):
        return column.cast(pyarrow.large_string())
    return column


def is_number_type(kind: pyarrow.DataType) -> bool:
    """Return whether a column of a type of Arrow holds integers or floats, which could be weights;
    of a dictionary the type of its values counts.
    """
    kind = value_type(kind)
    return kinds.is_integer(kind) or kinds.is_floating(kind)


def check_type(kind: pyarrow.DataType, where: Where) -> None:
    """Raise an error of ``where`` for a type of Arrow that can be no id, before values are read."""
    if not kinds.is_integer(kind) and not is_string_type(kind):
        raise where.error(
            f"has type {kind}; vertex ids must be integers or strings, cast the column first"
        )


def null_error(column: pyarrow.ChunkedArray, where: Where, rows_before: int = 0) -> EdgeListError:
    """Return the error for a column with nulls, which says how many they are, and where the first
    is.

    ``column`` may be a part of the column that begins after ``rows_before`` rows.
    """
    first = compute.index(column.is_null(), True).as_py()
    values = "value" if column.null_count == 1 else "values"
    if where.role in WEIGHTS:
        what = "edge has a weight"
    else:
        what = "edge has two ends"
    return where.error(
        f"has {column.null_count} missing {values}, the first here; every {what}",
        rows_before + first,
    )


def _ids(column: pyarrow.ChunkedArray, where: Where, id_type: str) -> pyarrow.ChunkedArray:
    """Return a column of ids, integers or strings, in the type ``id_type``, one of ``ID_TYPES``;
    raise an error of ``where`` for an id that does not fit.

    With "auto" the column keeps its type, and with "string" strings do. Other strings are read as
    integers.
    """
    if id_type == "auto" or (id_type == "string" and not kinds.is_integer(column.type)):
        return column
    if id_type == "string":
        return column.cast(pyarrow.string())
    if not kinds.is_integer(column.type):  # strings, which are converted as those of a text file
        return IdText(where, id_type).append(column).column()
    try:
        return column.cast(pyarrow.type_for_alias(id_type))
    except pyarrow.ArrowInvalid as error:
        extent = compute.min_max(column).as_py()
        raise where.error(
            f"does not fit {option_text('id_type', id_type)} ({error}); "
            f"take {_types_that_hold(str(extent['min']), str(extent['max']))}"
        ) from None


def _types_that_hold(*ids: str) -> str:
    """Return the types of ids to propose for integers that another type does not hold: the first of
    int64 and uint64 that holds all, if any does, or strings.
    """
    for kind in ("int64", "uint64"):
        limits = np.iinfo(kind)
        if all(_is_within(text, limits.min, limits.max) for text in ids):
            return f"{option_text('id_type', kind)} or {option_text('id_type', 'string')}"
    return option_text("id_type", "string")


def _is_text_type(kind: pyarrow.DataType) -> bool:
    """Return whether a type of Arrow that ids or weights have is one of strings, and not of
    numbers.
    """
    return not (kinds.is_integer(kind) or kinds.is_floating(kind))


def type_for_all(pieces: list[pyarrow.ChunkedArray], places: list[Where]) -> pyarrow.DataType:
    """Return a type that holds the values of the same column of several files.

    ``pieces`` has that column of each file, and ``places`` what errors call it there. EdgeListError
    if some hold strings and others numbers, or no integer type holds all.
    """
    types = {piece.type for piece in pieces}
    if len(types) == 1:
        return types.pop()
    is_text = [_is_text_type(piece.type) for piece in pieces]
    if all(is_text):
        return pyarrow.large_string()
    if any(is_text):
        odd = is_text.index(not is_text[0])  # the first file that differs from the first one
        raise places[odd].error(
            f"has type {pieces[odd].type}, but {pieces[0].type} in {places[0].file}; files read together must all hold "
            "integers, or all strings"
        )
    kind = np.result_type(*(piece.type.to_pandas_dtype() for piece in pieces))
    if kind.kind == "f" and all(kinds.is_integer(piece.type) for piece in pieces):
        # int64 beside uint64: NumPy says float64, which would merge neighboring ids.
        extents = [compute.min_max(piece).as_py() for piece in pieces]
        low = min(extent["min"] for extent in extents)
        high = max(extent["max"] for extent in extents)
        if low < 0 and high > np.iinfo(np.int64).max:
            raise places[0].error(
                "holds negative numbers in one file and numbers of 2^63 and above in another"
            )
        kind = np.dtype(np.int64 if low < 0 else np.uint64)
    return pyarrow.from_numpy_dtype(kind)


def cast_exactly(
    chunks: Iterable[pyarrow.Array], kind: pyarrow.DataType, where: Where, into: Any
) -> Any:
    """Convert the chunks of a column to the type ``kind``, add them to ``into``, a list or a
    ``ColumnFile``, and return ``into``.

    An integer that a float type cannot hold is refused with its row by an error of ``where``, not
    rounded.
    """
    first = where.first  # the number in the file of the first row of the next chunk
    for chunk in chunks:
        into += [_cast(chunk, kind, replace(where, first=first))]
        first += len(chunk)
    return into


def _cast(column: pyarrow.Array, kind: pyarrow.DataType, where: Where) -> pyarrow.Array:
    """Return a column in the type ``kind``; raise an error of ``where`` for an integer that a float
    type cannot hold exactly.
    """
    if not (kinds.is_integer(column.type) and kinds.is_floating(kind)):
        return column.cast(kind)
    cast = column.cast(kind, safe=False)
    # Integers are exact if converting the floats back gives the same integers (``back``). Integers
    # just below 2^63 or 2^64 are rounded up to ``highest``, and would be converted back to the
    # largest integer, which may be the original one. So 0 is converted in place of them, and
    # differs from each.
    highest = float(2 ** (63 if kinds.is_signed_integer(column.type) else 64))
    back = compute.if_else(compute.less(cast, highest), cast, 0).cast(column.type, safe=False)
    row = compute.index(compute.equal(back, column), False).as_py()
    if row < 0:
        return cast
    raise where.error(
        f"has the integer {column[row]}, which {kind} cannot hold exactly; scale the weights down",
        row,
    )


class ColumnFile:
    """Chunks of one column of pyarrow, in a file: ``+=`` adds chunks, as to a list, and iterating
    yields them.

    The file is a temporary one in ``folder``, and is gone with the object. It is an Arrow stream,
    whose schema is that of the first chunk.
    """

    def __init__(self, folder: str | os.PathLike[str]):
        self._folder = folder
        with writing_to(folder):
            self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        self._writer: Any = None  # of pyarrow; None before the first chunk, whose type it needs

    def __del__(self) -> None:
        """Close the file, which has no name and is deleted by that."""
        self._file.close()

    def __iadd__(self, chunks: Iterable[pyarrow.Array]) -> Self:
        """Write chunks to the end of the file; OutputError if the disk is full."""
        for chunk in chunks:
            batch = pyarrow.record_batch([chunk], ["column"])
            if self._writer is None:
                self._writer = pyarrow.ipc.new_stream(self._file, batch.schema)
            with writing_to(self._folder):
                self._writer.write_batch(batch)
        return self

    def __iter__(self) -> Iterator[pyarrow.Array]:
        """Yield the chunks, which are views of the file; nothing can be added afterwards."""
        if self._writer is None:
            return
        with writing_to(self._folder):
            self._writer.close()
            self._file.flush()
        mapped = pyarrow.py_buffer(mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ))
        for batch in pyarrow.ipc.open_stream(mapped):
            yield batch.column(0)


class _TextColumn:
    """A column written as text, which is converted block by block."""

    type: pyarrow.DataType  # of the converted values

    def __init__(self, where: Where, chunks: Any):
        self.where = where  # names the column in errors
        self.chunks = chunks  # a list or a ``ColumnFile``, which collects the converted blocks
        # how many rows were taken so far, so that an error names the row in the file
        self.rows = 0

    def append(self, strings: pyarrow.ChunkedArray) -> Self:
        """Convert further rows (a pyarrow string array or chunked array), add them to ``chunks``
        and return this object. EdgeListError for a null, or a text that is no value of the column.
        """
        if strings.null_count:
            raise null_error(strings, self.where, self.rows)
        converted = self._convert(strings)  # may replace what collects the chunks
        self.chunks += list_chunks(converted)
        self.rows += len(strings)
        return self

    def _convert(self, strings: pyarrow.ChunkedArray) -> pyarrow.ChunkedArray:
        """Return further rows, texts without nulls, in the type ``type`` of the column;
        EdgeListError, with the row, for a text that is no value of that type.
        """
        raise NotImplementedError

    def column(self) -> pyarrow.ChunkedArray:
        """Return all rows that were taken, as a chunked array."""
        return pyarrow.chunked_array(list(self.chunks), self.type)


class IdForm(NamedTuple):
    """How ids are written in a file of text."""

    # The type was not declared: integers are taken only as a program writes them, as "007" and "+7"
    # may be names, and strings only where it is sure what belongs to them.
    plain: bool = False
    trim: bool = False  # blanks before an id follow the delimiter and do not belong to the id
    # Blanks are the delimiter, so that a comma at an end of an id would be another one.
    blanks: bool = False
    numbered: bool = False  # the format numbers its vertices from 1, so that no other type helps


_AS_DECLARED = IdForm()


class IdText(_TextColumn):
    """Ids written as text, converted block by block to a type of ``ID_TYPES``.

    ``id_type`` is never ``"auto"``, and ``form`` says how the file writes ids. ``into``, a list or
    a ``ColumnFile``, collects the chunks; None is a new list.
    """

    def __init__(
        self,
        where: Where,
        id_type: str,
        form: IdForm = _AS_DECLARED,
        into: Any = None,
    ):
        super().__init__(where, [] if into is None else into)
        self.id_type = id_type
        self.plain = form.plain
        self.trim = form.trim
        self.numbered = form.numbered
        self.type = pyarrow.type_for_alias(id_type)

        # ``doubtful`` is a pattern of ids of which it is not sure what belongs to them, and
        # ``signs`` are all ASCII characters that it looks for. What is no ASCII is always looked
        # at.
        self.doubtful = _DOUBTFUL
        signs = b"\0\n"
        if form.plain:
            self.doubtful = _DOUBTFUL_PLAIN
            signs += b" \t\r\v\f\x1c\x1d\x1e\x1f,;|"
        if form.plain and form.blanks:
            self.doubtful += _OTHER_DELIMITERS
        self.signs = [bytes([sign]) for sign in signs]

    def _convert(self, strings: pyarrow.ChunkedArray) -> pyarrow.ChunkedArray:
        """Return further ids, texts without nulls, as strings or as integers of the type
        ``id_type``; EdgeListError for an id that is in doubt, or does not fit the type.
        """
        if self.id_type == "string":
            return self._check_names(strings)
        return self._parse_integers(strings)

    def _check_names(self, strings: pyarrow.ChunkedArray) -> pyarrow.ChunkedArray:
        """Return ids that are strings, without blanks before them if both ``plain`` and ``trim``
        are set; EdgeListError for an id that matches ``doubtful``.
        """
        if self.plain and self.trim:
            strings = compute.utf8_ltrim(strings, " \t")
        if self._may_be_doubtful(strings):
            row = compute.index(compute.match_substring_regex(strings, self.doubtful), True).as_py()
            if row >= 0:
                raise self.where.error(self._describe_doubt(strings[row].as_py()), self.rows + row)
        return strings

    def _may_be_doubtful(self, strings: pyarrow.ChunkedArray) -> bool:
        """Return whether one of some ids may match ``doubtful``: whether the bytes of all together
        hold one of its signs, or are not ASCII. That is much faster than to match each.
        """
        for chunk in list_chunks(strings):
            buffer = chunk.buffers()[2]  # the bytes of the texts, behind validity and offsets
            data = b"" if buffer is None else buffer.to_pybytes()
            if not data.isascii() or any(sign in data for sign in self.signs):
                return True
        return False

    def _describe_doubt(self, text: str) -> str:
        """Return what an error says of an id that matches ``doubtful``."""
        # What is wrong with any id, and then what is only wrong if no type was declared.
        if "\n" in text:
            return "has an id with a line break in it; is a quote left open?"
        if "\0" in text:
            return f"has an id with a NUL in it, {text[:40]!r}; the file is damaged, or no UTF-8"
        if "\ufeff" in text:
            return f"has an id with a byte order mark in it, {text[:40]!r}; remove the mark"
        declared = f"{option_text('id_type', 'string')} takes ids as they are written"
        if not text.strip():
            return f"has an id that is blank; every edge has two ends ({declared})"
        if text[:1].isspace() or text[-1:].isspace():
            return f"has {text[:40]!r}, with a blank at an end; remove the blank ({declared})"
        return (
            f"has {text[:40]!r}; is that a delimiter? "
            f"{option_text('format', 'csv')} reads other delimiters ({declared})"
        )

    def _parse_integers(self, strings: pyarrow.ChunkedArray) -> pyarrow.ChunkedArray:
        """Return ids as integers of the type ``id_type``; EdgeListError for one that is no integer,
        or beyond that type.
        """
        # Texts without blanks around them; and the first row that is no integer, -1 if all are.
        # With ``plain``, 007 and +7 are none.
        strings, odd_row = parse_integers(strings, self.plain)
        if odd_row >= 0:
            advice = f"{option_text('id_type', 'string')} takes ids as they are written"
            if self.numbered:
                advice = "vertices of this format are integers from 1"
            elif re.fullmatch(r"[+-]?[0-9]+\.0*", strings[odd_row].as_py()):
                advice = (
                    "write ids without a point, as 123 and 123.0 would be two ids "
                    "(pandas: column.astype('Int64'))"
                )
            elif self.plain:
                advice = f"the first row looked like integers; {advice}"
            raise self.where.error(
                f"has {_shorten(strings[odd_row])}, which is not an integer; {advice}",
                self.rows + odd_row,
            )

        # pyarrow does not say which integer is beyond the type.
        try:
            return compute.cast(strings, self.type)
        except pyarrow.ArrowInvalid:
            limits = np.iinfo(self.type.to_pandas_dtype())
            for row, text in enumerate(strings.to_pylist()):
                if not _is_within(text, limits.min, limits.max):
                    if self.numbered:
                        advice = "vertices of this format are numbered from 1"
                    else:
                        advice = f"take {_types_that_hold(text)}"
                    problem = f"has {text[:40]}, beyond {self.id_type}; {advice}"
                    raise self.where.error(problem, self.rows + row) from None
            raise  # all fit: pyarrow has another reason


class WeightText(_TextColumn):
    """Weights written as text: int64 as long as all are integers, else float64.

    The first row that is no integer turns those before it into floats, too. ``new_chunks`` returns
    an empty list or ``ColumnFile``, which collects the chunks. With ``closes``, an empty value is
    ``CLOSED``; without it, it is refused.
    """

    def __init__(self, where: Where, new_chunks: Callable[[], Any] = list, closes: bool = False):
        super().__init__(where, new_chunks())
        self._closes = closes
        self._new_chunks = new_chunks
        self.type = pyarrow.int64()

    def append(self, strings: pyarrow.ChunkedArray) -> Self:
        """Convert further rows, in which null stands for an empty value, add them to ``chunks`` and
        return this object. With ``closes`` null becomes ``CLOSED``; else EdgeListError.
        """
        return super().append(strings.fill_null(str(CLOSED)) if self._closes else strings)

    def _convert(self, strings: pyarrow.ChunkedArray) -> pyarrow.ChunkedArray:
        """Return further rows, texts without nulls, as numbers of the type ``type``.

        It is int64 until these rows have one that is no integer, and then becomes float64: these
        rows are returned as floats, and ``chunks`` is replaced by the earlier rows as floats.
        EdgeListError for a text that is no number, or that the type does not hold exactly.
        """
        # texts without blanks and plus signs; and the first row that is no integer, -1 if all are
        clean, odd_row = parse_integers(strings, plain=False)

        # Integers, as all before.
        if self.type == pyarrow.int64() and odd_row < 0:
            try:
                return compute.cast(clean, self.type)
            except pyarrow.ArrowInvalid:
                row = next(
                    i
                    for i, text in enumerate(clean.to_pylist())
                    if not _is_within(text, -(2**63), 2**63 - 1)
                )
                problem = f"has the integer {clean[row].as_py()[:40]}, beyond int64; scale down"
                raise self.where.error(problem, self.rows + row) from None

        # Floats. One column has one type, so the rows so far become floats, too.
        if self.type == pyarrow.int64():
            self.type = pyarrow.float64()
            self.chunks = cast_exactly(self.chunks, self.type, self.where, self._new_chunks())
        try:
            floats = compute.cast(clean, self.type)
        except pyarrow.ArrowInvalid:
            row = next(i for i, text in enumerate(clean.to_pylist()) if not _is_number(text))
            if re.fullmatch(r"[+-]?\d*,\d+", clean[row].as_py()):
                comma = "; write decimals with a point"
            else:
                comma = ""
            raise self.where.error(
                f"has {_shorten(clean[row])}, which is not a number{comma}", self.rows + row
            ) from None
        self._refuse_rounded(clean, floats)
        return floats

    def _refuse_rounded(self, strings: pyarrow.ChunkedArray, floats: pyarrow.ChunkedArray) -> None:
        """Raise EdgeListError for an integer that float64 cannot hold exactly, and for a number
        that is not 0 and has become 0. ``floats`` has what ``strings`` were converted to.
        """
        is_zero = compute.equal(floats, 0.0)
        if compute.any(is_zero).as_py():
            # a digit other than 0 before the exponent
            is_nonzero = compute.match_substring_regex(strings, "^[^eE]*[1-9]")
            row = compute.index(compute.and_(is_zero, is_nonzero), True).as_py()
            if row >= 0:
                raise self.where.error(
                    f"has {_shorten(strings[row])}, which float64 takes for 0; scale up",
                    self.rows + row,
                )
        # Up to 15 digits each integer has a float of its own.
        is_long = compute.match_substring_regex(strings, "^[+-]?[0-9]{16,}$")
        if not compute.any(is_long).as_py():
            return
        for row in np.flatnonzero(np.asarray(is_long)).tolist():
            text = strings[row].as_py()
            value = floats[row].as_py()
            if len(text) > 400 or int(text) != value:  # float64 ends before 400 digits
                problem = (
                    f"has the integer {text[:40]}, which float64 cannot hold exactly; scale down"
                )
                raise self.where.error(problem, self.rows + row)


def _is_within(text: str, low: int, high: int) -> bool:
    """Return whether a decimal integer of any length lies from ``low`` to ``high``, which have at
    most 64 bits.
    """
    digits = text.lstrip("+-0")
    if len(digits) > 20:  # 64 bits have at most 20, and Python refuses to convert very long texts
        return False
    number = int(digits or "0")
    if text.startswith("-"):
        number = -number
    return low <= number <= high


def _shorten(value: Any) -> str:
    """Return a string scalar of pyarrow for a message, in quotes and cut after 40 characters."""
    text = value.as_py()
    if len(text) <= 40:
        return repr(text)
    return f"{text[:40]!r}..."


def _is_number(text: str) -> bool:
    """Return whether pyarrow reads a text as a float."""
    try:
        pyarrow.array([text]).cast(pyarrow.float64())
    except pyarrow.ArrowInvalid:
        return False
    return True


def list_chunks(column: pyarrow.ChunkedArray | pyarrow.Array) -> list[pyarrow.Array]:
    """Return the chunks of a chunked array; for an array, a list of the array alone."""
    if hasattr(column, "chunks"):
        return column.chunks
    return [column]


def parse_integers(strings: pyarrow.ChunkedArray, plain: bool) -> tuple[pyarrow.ChunkedArray, int]:
    """Return strings without the blanks around them and their plus signs, as pyarrow casts them to
    numbers; and the first row that is no decimal integer, or -1.

    ``0x7`` is no decimal integer, although Arrow would read it as 7. With ``plain`` neither are
    ``007``, ``+7`` and ``-0``, and plus signs stay.
    """
    if plain:
        pattern = r"^(0|-?[1-9][0-9]*)$"
    else:
        pattern = r"^-?[0-9]+$"
    is_integer = compute.match_substring_regex(strings, pattern)
    if not compute.all(is_integer).as_py():  # few columns need to be cleaned
        strings = compute.utf8_trim_whitespace(strings)
        if not plain:
            strings = compute.replace_substring_regex(strings, r"^\+([0-9.])", r"\1")
        is_integer = compute.match_substring_regex(strings, pattern)
    return strings, compute.index(is_integer, False).as_py()
