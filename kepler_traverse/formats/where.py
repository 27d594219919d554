"""Filters of rows: a text such as ``highway != 'motorway' and lanes >= 2``, or an expression of
pyarrow.

The text is parsed here and never run. A comparison with a missing value is neither true nor false,
as in SQL, and only rows are kept for which the whole is true.
"""

from __future__ import annotations

import functools
import math
import operator
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .._arrays import arrow_compute as compute
from .._arrays import arrow_types as kinds
from .._arrays import pyarrow
from ..errors import EdgeListError, InputError, one_line, option_text
from .columns import is_duration_type, parts_of_intervals, plain_column
from .files import DataFile, shown

MAX_LENGTH = 100_000  # characters of a text
MAX_DEPTH = 50  # levels of parentheses and "not" in each other
# A token of a text, with the blanks before it; its kind is the name of the group that matches. In
# turn: a number such as -1.5e3; text in quotes, where a doubled quote stands for one ('it''s'); the
# name of a column in backticks; a word, which is a keyword or the name of a column; a sign; the end
# of the text.
_TOKEN = re.compile(
    r"""\s*(?:
    (?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.]))
    |(?P<string>'(?:[^']|'')*'|"(?:[^"]|"")*")
    |(?P<quoted>`(?:[^`]|``)+`)
    |(?P<word>[^\W\d]\w*)
    |(?P<sign>==|!=|<>|<=|>=|[=<>(),\[\]])
    |(?P<end>\Z)
    )""",
    re.VERBOSE,
)
_KEYWORDS = frozenset({"and", "or", "not", "in", "is", "null", "true", "false"})
# The sign of a comparison: what it means for two numbers, and the function of pyarrow.
_COMPARISONS: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "==": (operator.eq, "equal"),
    "!=": (operator.ne, "not_equal"),
    "<": (operator.lt, "less"),
    "<=": (operator.le, "less_equal"),
    ">": (operator.gt, "greater"),
    ">=": (operator.ge, "greater_equal"),
}
_SPELLED = {"=": "==", "<>": "!="}  # other spellings of signs
# the sign of the same comparison with its sides exchanged
_REVERSED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}

# By the kind of a column of dates and times, the kinds of values that may be compared with it; a
# number is one of seconds. Any other column is compared with values of its own kind.
_COMPARED_WITH = {"dates": ("text",), "times of day": ("text",), "durations": ("text", "numbers")}
_UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}  # units of Arrow per second
# a time of day such as 07:30, or a duration such as "1 day 07:30:00"
_CLOCK = re.compile(
    r"(?P<sign>-)?(?:(?P<days>[0-9]{1,6}) days?,? )?(?P<h>[0-9]{1,6}):(?P<m>[0-5][0-9])"
    r"(?::(?P<s>[0-5][0-9](?:\.[0-9]{1,9})?))?"
)

Literal = str | int | float | bool  # a value that a column is compared with
# A function that takes a pyarrow.Table and returns a boolean chunked array: for each row whether a
# condition is true, or null where a value is missing.
Mask = Callable[[Any], Any]


class _Token(NamedTuple):
    """A piece of the text of a filter."""

    kind: str  # the group of ``_TOKEN`` that it matches: number, string, quoted, word, sign or end
    text: str  # as it is written, with its quotes
    at: int  # the position of its first character, from 0


@dataclass(frozen=True, eq=False)
class RowFilter:
    """A condition on the columns of a row. Rows for which it is true are kept."""

    text: str  # as it was given, or an expression of pyarrow as text
    # the columns that it is about; None if that is not known (an expression of pyarrow)
    columns: tuple[str, ...] | None
    # makes the mask of a table: true, false or null per row
    mask: Mask = field(repr=False)
    # for each column the kinds of values that it is compared with: "text", "numbers", "booleans";
    # no entry for an expression
    compared: dict[str, set[str]] = field(default_factory=dict, repr=False)

    def find_rows(self, table: Any, file: DataFile) -> np.ndarray:
        """Return the numbers of the rows of ``table`` for which the condition is true, int64,
        ascending.

        ``table`` is a pyarrow.Table that has the columns of the filter, under their own names.
        EdgeListError, with the name of the file, if one is compared with what it does not hold.
        """
        try:
            mask = self.mask(table)
        except _WrongColumnError as error:
            raise EdgeListError(f"{file}: {option_text('where')}: {error}") from None
        except (pyarrow.ArrowException, TypeError, KeyError) as error:
            problem = (
                f"{option_text('where')} {shown(self.text)} cannot be evaluated ({one_line(error)})"
            )
            raise EdgeListError(f"{file}: {problem}") from None
        return np.flatnonzero(compute.fill_null(mask, False).to_numpy())

    def text_kind(self, column: str) -> str:
        """Return what the values of a column are compared with: "text", "numbers" or "booleans";
        ``""`` if that is not known, or several of these. A column of a text file is converted so.
        """
        compared = self.compared.get(column, ())
        if len(compared) == 1:
            return next(iter(compared))
        return ""


class _WrongColumnError(Exception):
    """A column cannot be compared as a filter says; ``RowFilter.find_rows`` adds the file."""


def _mask_of_expression(expression: Any, table: Any) -> Any:
    """Return for each row of a table whether an expression of pyarrow is true, a boolean chunked
    array. pyarrow evaluates expressions only as columns of a scan.
    """
    mask = pyarrow.dataset.dataset(table).scanner(columns={"mask": expression}).to_table()["mask"]
    if mask.type != pyarrow.bool_():
        raise _WrongColumnError(f"the expression gives {mask.type}, and it must be true or false")
    return mask


def row_filter(where: Any) -> RowFilter:
    """Return the filter of a text or of an expression of pyarrow; InputError for other values, and
    for a text that is no condition, with the position in it.
    """
    if isinstance(where, str):
        return _parse(where)
    if isinstance(where, compute.Expression):
        return RowFilter(str(where), None, partial(_mask_of_expression, where))
    kind = type(where).__name__
    raise InputError(
        f"{option_text('where')} must be text or an expression of "
        f"pyarrow, not a value of type {kind}"
    )


@functools.lru_cache(maxsize=8)
def _parse(text: str) -> RowFilter:
    """Return the filter of a text. It is kept, since ``ReadOptions`` asks for it at each use."""
    if len(text) > MAX_LENGTH:
        raise InputError(
            f"{option_text('where')} has {len(text)} characters, and {MAX_LENGTH} "
            "are the most; filter the edge list before"
        )
    parser = _Parser(text)
    mask = parser.parse()
    return RowFilter(text, tuple(parser.compared), mask, parser.compared)


class _Parser:
    """A parser of the text of a filter by recursive descent: or, and, not, comparison.

    Each method that returns a ``Mask`` takes the tokens of one rule of the grammar, and raises
    InputError if the next tokens are none of it.
    """

    def __init__(self, text: str):
        self.text = text
        self.depth = 0  # of parentheses and "not" around the next token
        self.at = 0  # the position in ``tokens`` of the next one
        self.tokens = list(self._tokens())
        # by the names of columns, the kinds of values that each is compared with so far
        self.compared: dict[str, set[str]] = {}

    def _tokens(self) -> Iterator[_Token]:
        """Yield the tokens of the text in order, and then a token of the kind "end". InputError for
        a character that begins no token.
        """
        at = 0
        while True:
            match = _TOKEN.match(self.text, at)
            if match is None:
                while self.text[at].isspace():  # blanks belong to a token
                    at += 1
                sign = self.text[at]
                hint = ""
                if sign in "'\"`":
                    hint = "; a quote is left open"
                elif sign in "&|!~":
                    hint = "; write and, or, not"
                raise self.error(at, f"{sign!r} is not understood{hint}")
            kind = str(match.lastgroup)
            yield _Token(kind, match[kind], match.start(kind))
            if kind == "end":
                return
            at = match.end()

    def error(self, at: int, problem: str) -> InputError:
        """Return the error, which says ``problem``, for the character at position ``at`` of the
        text, with what stands around it: up to 30 characters before, and 30 from ``at`` on.
        """
        begin = max(0, at - 30)
        end = at + 30
        excerpt = self.text[begin:end]
        if begin:
            excerpt = f"...{excerpt}"
        if end < len(self.text):
            excerpt = f"{excerpt}..."
        return InputError(f"{option_text('where')} at character {at + 1}: {problem} ({excerpt!r})")

    @property
    def next(self) -> _Token:
        """The next token, which has not been taken yet."""
        return self.tokens[self.at]

    def is_next(self, *texts: str) -> bool:
        """Return whether the next token is one of some words, in any case, or signs."""
        token = self.next
        return token.kind in ("word", "sign") and token.text.lower() in texts

    def take(self, *texts: str) -> bool:
        """Take the next token if it is one of some words or signs; return whether it is."""
        if not self.is_next(*texts):
            return False
        self.at += 1
        return True

    def expect(self, text: str) -> None:
        """Take the next token, a word or sign; InputError if it is another one."""
        if not self.take(text):
            raise self.error_at_next(f"{text!r} is missing here")

    def error_at_next(self, problem: str) -> InputError:
        """Return the error for the next token, which says ``problem``."""
        if self.next.kind == "end":
            what = "the end"
        else:
            what = repr(self.next.text[:40])
        return self.error(self.next.at, f"{problem}, before {what}")

    def parse(self) -> Mask:
        """Return the mask of the whole text."""
        if self.next.kind == "end":
            raise InputError(
                f"{option_text('where')} is empty; give a condition such as \"highway != 'motorway'\""
            )
        mask = self.parse_or()
        if self.next.kind != "end":
            raise self.error_at_next("'and' or 'or' is missing")
        return mask

    def parse_or(self) -> Mask:
        """Take one condition or several with "or" between them, each as ``parse_and`` takes it, and
        return their mask.
        """
        parts = [self.parse_and()]
        while self.take("or"):
            parts.append(self.parse_and())
        return _combine("or_kleene", parts)

    def parse_and(self) -> Mask:
        """Take one condition or several with "and" between them, which binds closer than "or", each
        as ``parse_not`` takes it, and return their mask.
        """
        parts = [self.parse_not()]
        while self.take("and"):
            parts.append(self.parse_not())
        return _combine("and_kleene", parts)

    def parse_not(self) -> Mask:
        """Take a comparison, a condition in parentheses, or "not" and one of the two, and return
        its mask. InputError for more than ``MAX_DEPTH`` levels of parentheses and "not".
        """
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.error(self.next.at, f"more than {MAX_DEPTH} levels of parentheses and 'not'")
        if self.take("not"):
            mask = _invert(self.parse_not())
        elif self.take("("):
            mask = self.parse_or()
            self.expect(")")
        else:
            mask = self.parse_comparison()
        self.depth -= 1
        return mask

    def parse_comparison(self) -> Mask:
        """Take a condition without "and", "or" and parentheses, and return its mask.

        It is one of: a value, a sign and a column (``3 < lanes``); a column and a test for null
        (``toll is not null``); a column and a list (``kind not in ('a', 'b')``); a column, a sign
        and a value or a column (``lanes >= 2``); or a column alone, which must hold booleans.
        """
        # A value may come first: 3 < lanes, which is lanes > 3.
        token = self.next
        if token.kind in ("number", "string") or self.is_next("true", "false", "null"):
            value = self.literal()
            sign = self.sign()
            if sign is None:
                raise self.error(
                    token.at, f"{token.text[:40]!r} is no column; a condition compares a column"
                )
            return self.compare(self.column(), _REVERSED.get(sign, sign), value)

        column = self.column()
        if self.take("is"):
            is_negated = self.take("not")
            self.expect("null")
            if is_negated:
                return _invert(partial(_is_null, column))
            return partial(_is_null, column)
        is_negated = self.take("not")
        if is_negated or self.is_next("in"):
            self.expect("in")
            mask = self.compare(column, "in", *self.values())
            if is_negated:
                return _invert(mask)
            return mask

        # A sign with a column or a value; a column alone holds booleans.
        sign = self.sign()
        if sign is None:
            self.compared[column].add("booleans")
            return partial(_take_booleans, column)
        if self.next.kind == "quoted" or (
            self.next.kind == "word" and self.next.text.lower() not in _KEYWORDS
        ):
            return partial(_compare_columns, column, sign, self.column())
        return self.compare(column, sign, self.literal())

    def compare(self, column: str, sign: str, *values: Literal) -> Mask:
        """Return the mask of the comparison of a column with a value, or with the values of a list
        if ``sign`` is "in"; note what the column is compared with.
        """
        self.compared[column].update(map(_classify, values))
        return partial(_compare, column, sign, values)

    def sign(self) -> str | None:
        """Take the sign of a comparison, and return it as ``_COMPARISONS`` has it; None, and
        nothing is taken, if the next token is no such sign.
        """
        text = _SPELLED.get(self.next.text, self.next.text)
        if self.next.kind != "sign" or text not in _COMPARISONS:
            return None
        self.at += 1
        return text

    def column(self) -> str:
        """Take the name of a column, a word or a text in backticks, and return it without its
        backticks; note the column in ``compared``. InputError for any other token.
        """
        token = self.next
        if token.kind != "quoted" and (token.kind != "word" or token.text.lower() in _KEYWORDS):
            raise self.error_at_next("the name of a column is missing")
        self.at += 1
        if token.kind == "quoted":
            name = token.text[1:-1].replace("``", "`")
        else:
            name = token.text
        self.compared.setdefault(name, set())
        return name

    def values(self) -> tuple[Literal, ...]:
        """Take a list of values of one kind, in parentheses or brackets, and return the values."""
        close = {"(": ")", "[": "]"}.get(self.next.text, "")
        if self.next.kind != "sign" or not close:
            raise self.error_at_next("'in' needs a list such as ('a', 'b')")
        self.at += 1
        values = [self.literal()]
        while self.take(","):
            values.append(self.literal())
        self.expect(close)
        if len({_classify(value) for value in values}) > 1:
            raise self.error(
                self.tokens[self.at - 1].at, "the list mixes text, numbers or booleans"
            )
        return tuple(values)

    def literal(self) -> Literal:
        """Take a value, and return it: text in quotes as str without the quotes, a number as int or
        float, "true" and "false" as bool. InputError for any other token.
        """
        token = self.next
        self.at += 1
        if token.kind == "string":
            quote = token.text[0]
            return token.text[1:-1].replace(quote * 2, quote)
        if token.kind == "number":
            is_integer = re.fullmatch("[+-]?[0-9]+", token.text) is not None
            # float64 ends before 400 digits, and Python converts no text of more than 4,300 digits.
            if is_integer and len(token.text) < 400:
                return int(token.text)
            value = float(token.text)
            if is_integer or not math.isfinite(value):
                raise self.error(token.at, "the number is too large")
            return value
        word = token.text.lower() if token.kind == "word" else ""
        if word in ("true", "false"):
            return word == "true"
        self.at -= 1  # It is no value: the error is about this token.
        if word == "null":
            raise self.error(token.at, "nothing is equal to null; write 'is null' or 'is not null'")
        if token.kind == "word":
            raise self.error(
                token.at, f"{token.text[:40]!r} is no value here; text is written in quotes"
            )
        raise self.error_at_next("a value is missing: a number, text in quotes, true or false")


def _classify(value: Literal) -> str:
    """Return the kind of a value: "text", "booleans" or "numbers", as ``_kind_of_column`` has it
    for columns.
    """
    if isinstance(value, str):
        return "text"
    if isinstance(value, bool):  # before numbers: Python's booleans are integers
        return "booleans"
    return "numbers"


def _combine(function: str, parts: list[Mask]) -> Mask:
    """Return the mask of several conditions.

    ``function`` is the function of pyarrow that combines two masks, ``"and_kleene"`` or
    ``"or_kleene"``, for which null is neither true nor false.
    """

    def combine(table: Any) -> Any:
        """Return for each row of a table whether the combination of all conditions is true."""
        mask = parts[0](table)
        for part in parts[1:]:
            mask = compute.call_function(function, [mask, part(table)])
        return mask

    return combine


def _invert(mask: Mask) -> Mask:
    """Return the mask of the opposite of a condition: null where the condition is null."""
    return lambda table: compute.invert(mask(table))


def _is_null(name: str, table: Any) -> Any:
    """Return for each row of a table whether the value of the column ``name`` is missing."""
    return plain_column(table.column(name)).is_null()


def _take_booleans(name: str, table: Any) -> Any:
    """Return for each row of a table the value of a column of booleans; null for all rows if its
    type is null. _WrongColumnError for a column of another type.
    """
    column = plain_column(table.column(name))
    kind = _kind_of_column(column)
    if kind not in ("booleans", "nothing"):
        raise _WrongColumnError(
            f"column {shown(name)} is {column.type} and no condition; compare it with a value"
        )
    if kind == "booleans":
        return column
    return _constant(column, None)


def _compare(name: str, sign: str, values: tuple[Any, ...], table: Any) -> Any:
    """Return a mask of a table: for each row whether a comparison of the column ``name`` is true,
    null where the column is null.

    With ``sign`` ``"in"`` it is true where the column has one of ``values``, which may be several.
    With another sign of ``_COMPARISONS`` the column is compared with the only one of ``values``.
    _WrongColumnError if the type of the column cannot be compared with a value.
    """
    column = plain_column(table.column(name))
    kind = _kind_of_column(column)
    if kind == "nothing":
        return _constant(column, None)
    for value in values:
        if _classify(value) not in _COMPARED_WITH.get(kind, (kind,)):
            raise _WrongColumnError(
                f"column {shown(name)} is {column.type} and is compared with {value!r}"
            )

    # Column and values in types that pyarrow compares exactly.
    if kind == "dates":
        values = tuple(_parse_date(value, column, shown(name)) for value in values)
    elif kind in ("times of day", "durations"):
        values = tuple(_count_units(value, column, kind, shown(name)) for value in values)
        column = _in_units(column)
    elif kind == "booleans" and sign not in ("==", "!=", "in"):
        raise _WrongColumnError(
            f"column {shown(name)} is {column.type}, which {sign} does not order"
        )
    elif kinds.is_floating(column.type):
        values = tuple(_exact_float(value, column) for value in values)
        column = column.cast(pyarrow.float64())
    if sign == "in":
        return _is_member(column, list(values))

    # One value. An integer column takes none with a fraction, and none beyond its type.
    (value,) = values
    if kinds.is_integer(column.type):
        limits = np.iinfo(column.type.to_pandas_dtype())
        if value != math.floor(value):
            # No integer lies between a number and the integer below it.
            if sign in ("==", "!="):
                return _constant(column, sign == "!=")
            # So lanes < 2.5 and lanes <= 2.5 are lanes <= 2; with > and >= it is lanes > 2.
            sign = "<=" if sign in ("<", "<=") else ">"
        value = math.floor(value)
        if not limits.min <= value <= limits.max:
            # 0 lies on the same side of the value as all integers of the type.
            holds, _ = _COMPARISONS[sign]
            return _constant(column, holds(0, value))
    if not isinstance(value, pyarrow.Scalar):
        value = pyarrow.scalar(value, column.type)
    _, function = _COMPARISONS[sign]
    return compute.call_function(function, [column, value])


def _kind_of_column(column: Any) -> str:
    """Return what a column holds: "nothing" (its type is null), "booleans", "numbers", "text",
    "durations", "times of day" or "dates". _WrongColumnError for any other type.
    """
    # Durations and times of day are temporal types, too, so dates come last.
    kind = column.type
    if kinds.is_null(kind):
        return "nothing"
    if kinds.is_boolean(kind):
        return "booleans"
    if kinds.is_integer(kind) or kinds.is_floating(kind):
        return "numbers"
    if kinds.is_string(kind) or kinds.is_large_string(kind):
        return "text"
    if is_duration_type(kind):
        return "durations"
    if kinds.is_time(kind):
        return "times of day"
    if kinds.is_temporal(kind):
        return "dates"
    raise _WrongColumnError(
        f"a column of type {kind} cannot be compared; cast it to numbers or strings"
    )


def _constant(like: Any, value: bool | None) -> Any:
    """Return a mask with one value for all rows, but null in the rows where the column ``like`` is
    null.
    """
    nothing = pyarrow.scalar(None, pyarrow.bool_())
    return compute.if_else(like.is_null(), nothing, pyarrow.scalar(value, pyarrow.bool_()))


def _is_member(column: Any, values: list[Any]) -> Any:
    """Return for each row whether the value of a column is one of some values, null where it is
    missing.

    Values that the type of the column does not hold are in no row.
    """
    if kinds.is_integer(column.type):
        limits = np.iinfo(column.type.to_pandas_dtype())
        values = [
            int(value)
            for value in values
            if value == math.floor(value) and limits.min <= value <= limits.max
        ]
    elif kinds.is_floating(column.type):
        # pyarrow looks values up by their bits, of which 0.0 and -0.0 have different ones.
        values += [-value for value in values if value == 0]
    is_member = compute.is_in(column, value_set=pyarrow.array(values, column.type))
    return compute.if_else(column.is_null(), pyarrow.scalar(None, pyarrow.bool_()), is_member)


def _exact_float(value: int | float, column: Any) -> float:
    """Return a value that a column of floats is compared with as float; _WrongColumnError for an
    integer that float64 would round.
    """
    if abs(value) > sys.float_info.max or float(value) != value:
        raise _WrongColumnError(
            f"{value} is an integer that float64 does not hold, and the column is {column.type}"
        )
    return float(value)


def _parse_date(text: str, column: Any, name: str) -> Any:
    """Return a date, or a time of a date, as a scalar of the type of ``column``; _WrongColumnError,
    which calls the column ``name``, for a text that is none.
    """
    try:
        return pyarrow.scalar(text.strip()).cast(column.type)
    except (pyarrow.ArrowException, ValueError):
        if kinds.is_date(column.type):
            example = "2026-01-31"
        else:
            example = "2026-01-31 07:30:00"
        how = f"write it as '{example}'"
        if getattr(column.type, "tz", None):
            how = f"its times have a zone, so write it as '{example}Z' or '{example}+01:00'"
        raise _WrongColumnError(
            f"column {name} is {column.type}, and {text[:40]!r} is none; {how}"
        ) from None


def _count_units(value: Any, column: Any, kind: str, name: str) -> Fraction:
    """Return a time of day, or a duration, as an exact number of units of ``column``, in which
    ``_in_units`` returns its values: 90,000 for ``"00:01:30"`` if the unit is milliseconds.

    ``value`` is a text, or a number of seconds. ``kind`` says what the column holds: "times of day"
    or "durations". _WrongColumnError, which calls the column ``name``, for a text that is no time
    of day, or no duration.
    """
    per = _UNITS[getattr(column.type, "unit", "ns")]  # per second; intervals have no unit
    if not isinstance(value, str):
        return Fraction(value) * per
    # A time of day has no sign and no days, and a duration has seconds.
    match = _CLOCK.fullmatch(value.strip())
    if (
        match is None
        or (kind == "times of day" and (match["sign"] or match["days"]))
        or (kind == "durations" and not match["s"])
    ):
        if kind == "times of day":
            how = "'07:30' or '07:30:00.5'"
        else:
            how = "a number of seconds, or as '1 day 07:30:00' or '07:30:00'"
        raise _WrongColumnError(
            f"column {name} is {column.type}, and {value[:40]!r} is none; write it as {how}"
        )
    hours = int(match["h"]) + 24 * int(match["days"] or 0)
    seconds = 3600 * hours + 60 * int(match["m"]) + Fraction(match["s"] or 0)
    if match["sign"]:
        seconds = -seconds
    return seconds * per


def _in_units(column: Any) -> Any:
    """Return a column of times of day, durations or intervals as int64 numbers of the unit of its
    type, which is nanoseconds for intervals. Nulls stay. _WrongColumnError for an interval with
    months.
    """
    if kinds.is_time32(column.type):  # which pyarrow casts to its own width alone
        return column.cast(pyarrow.int32()).cast(pyarrow.int64())
    if not kinds.is_interval(column.type):
        return column.cast(pyarrow.int64())
    is_valid = column.is_valid().to_numpy()
    months, days, nanoseconds = parts_of_intervals(column.drop_null())
    if months.any():
        raise _WrongColumnError(
            f"an interval has {months[np.flatnonzero(months)[0]]} months, whose length is not fixed"
        )
    units = np.zeros(len(column), np.int64)
    units[is_valid] = 86_400 * 10**9 * days + nanoseconds
    return pyarrow.chunked_array([pyarrow.array(units, mask=~is_valid)])


def _compare_columns(name: str, sign: str, other_name: str, table: Any) -> Any:
    """Return a mask of a table: for each row whether the comparison by ``sign`` of the columns
    ``name`` and ``other_name`` is true, null where one of the two values is null.
    _WrongColumnError unless both columns are of one kind, as ``_kind_of_column`` returns it.

    Numbers, text and booleans may be of different types. All else, such as dates, must be of one
    type.
    """
    column = plain_column(table.column(name))
    other = plain_column(table.column(other_name))
    kind = _kind_of_column(column)
    other_kind = _kind_of_column(other)
    # A column without a type has nulls alone, so each comparison is null.
    if "nothing" in (kind, other_kind):
        return compute.and_kleene(_constant(column, None), _constant(other, None))
    if kind != other_kind or (
        kind not in ("numbers", "text", "booleans") and column.type != other.type
    ):
        names = f"{shown(name)} is {column.type} and column {shown(other_name)} is {other.type}"
        raise _WrongColumnError(f"column {names}; they cannot be compared")

    # Both in one type.
    if kind == "numbers" and kinds.is_floating(column.type) != kinds.is_floating(other.type):
        # The cast of pyarrow raises an error for an integer that float64 would round.
        column = column.cast(pyarrow.float64())
        other = other.cast(pyarrow.float64())
    elif kind == "text":
        column = column.cast(pyarrow.large_string())
        other = other.cast(pyarrow.large_string())
    elif kind in ("times of day", "durations"):
        column = _in_units(column)
        other = _in_units(other)
    _, function = _COMPARISONS[sign]
    return compute.call_function(function, [column, other])
