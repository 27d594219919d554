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

MAX_LENGTH = 100_000  # characters
MAX_DEPTH = 50  # of parentheses and "not"
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
_SPELLED = {"=": "==", "<>": "!="}
_REVERSED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}

# What may be compared with a column of dates and times; a number is one of seconds.
_COMPARED_WITH = {"dates": ("text",), "times of day": ("text",), "durations": ("text", "numbers")}
_UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_CLOCK = re.compile(
    r"(?P<sign>-)?(?:(?P<days>[0-9]{1,6}) days?,? )?(?P<h>[0-9]{1,6}):(?P<m>[0-5][0-9])"
    r"(?::(?P<s>[0-5][0-9](?:\.[0-9]{1,9})?))?"
)

Literal = str | int | float | bool
Mask = Callable[[Any], Any]  # makes a chunked array of true, false and null for each row of a table


class _Token(NamedTuple):
    kind: str
    text: str
    at: int  # the first character, from 0


@dataclass(frozen=True, eq=False)
class RowFilter:
    """A condition that each row meets or does not."""

    text: str  # as it was given
    # the columns that it is about; None if that is not known (an expression of pyarrow)
    columns: tuple[str, ...] | None
    mask: Mask = field(repr=False)
    # what columns are compared with
    compared: dict[str, set[str]] = field(default_factory=dict, repr=False)

    def find_rows(self, table: Any, file: DataFile) -> np.ndarray:
        """Return the numbers of the rows for which the condition is true.

        The pyarrow.Table has the columns of the filter, under their own names. EdgeListError, with
        the name of the file, if one is compared with what it does not hold.
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
        """Return what the values of a column of text are compared with: text, numbers, booleans, or
        ``""`` if unknown.
        """
        compared = self.compared.get(column, ())
        return next(iter(compared)) if len(compared) == 1 else ""


class _WrongColumnError(Exception):
    """A column that a filter cannot compare as it wants to."""


def _mask_of_expression(expression: Any, table: Any) -> Any:
    mask = pyarrow.dataset.dataset(table).scanner(columns={"mask": expression}).to_table()["mask"]
    if mask.type != pyarrow.bool_():
        raise _WrongColumnError(f"the expression gives {mask.type}, and it must be true or false")
    return mask


def row_filter(where: Any) -> RowFilter:
    """Return the filter of a text or of an expression of pyarrow; the InputError for a text names
    the position.
    """
    if isinstance(where, str):
        return _parsed(where)
    if isinstance(where, compute.Expression):
        return RowFilter(str(where), None, partial(_mask_of_expression, where))
    kind = type(where).__name__
    raise InputError(
        f"{option_text('where')} must be text or an expression of "
        f"pyarrow, not a value of type {kind}"
    )


@functools.lru_cache(maxsize=8)
def _parsed(text: str) -> RowFilter:
    if len(text) > MAX_LENGTH:
        raise InputError(
            f"{option_text('where')} has {len(text)} characters, and {MAX_LENGTH} "
            "are the most; filter the edge list before"
        )
    parser = _Parser(text)
    mask = parser.whole()
    return RowFilter(text, tuple(parser.compared), mask, parser.compared)


class _Parser:
    """Recursive descent: or, and, not, comparison."""

    def __init__(self, text: str):
        self.text = text
        self.depth = 0
        self.at = 0
        self.tokens = list(self._tokens())
        # columns, and the kinds of values that each is compared with
        self.compared: dict[str, set[str]] = {}

    def _tokens(self) -> Iterator[_Token]:
        at = 0
        while True:
            match = _TOKEN.match(self.text, at)
            if match is None:
                while self.text[at].isspace():
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
        begin = max(0, at - 30)
        end = at + 30
        near = (
            ("..." if begin else "")
            + self.text[begin:end]
            + ("..." if end < len(self.text) else "")
        )
        return InputError(f"{option_text('where')} at character {at + 1}: {problem} ({near!r})")

    @property
    def next(self) -> _Token:
        return self.tokens[self.at]

    def is_next(self, *texts: str) -> bool:
        token = self.next
        return token.kind in ("word", "sign") and token.text.lower() in texts

    def take(self, *texts: str) -> bool:
        if not self.is_next(*texts):
            return False
        self.at += 1
        return True

    def expect(self, text: str) -> None:
        if not self.take(text):
            raise self.wrong(f"{text!r} is missing here")

    def wrong(self, problem: str) -> InputError:
        if self.next.kind == "end":
            what = "the end"
        else:
            what = repr(self.next.text[:40])
        return self.error(self.next.at, f"{problem}, before {what}")

    def whole(self) -> Mask:
        if self.next.kind == "end":
            raise InputError(
                f"{option_text('where')} is empty; give a condition such as \"highway != 'motorway'\""
            )
        mask = self.parse_or()
        if self.next.kind != "end":
            raise self.wrong("'and' or 'or' is missing")
        return mask

    def parse_or(self) -> Mask:
        parts = [self.parse_and()]
        while self.take("or"):
            parts.append(self.parse_and())
        return _joined("or_kleene", parts)

    def parse_and(self) -> Mask:
        parts = [self.negation()]
        while self.take("and"):
            parts.append(self.negation())
        return _joined("and_kleene", parts)

    def negation(self) -> Mask:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.error(self.next.at, f"more than {MAX_DEPTH} levels of parentheses and 'not'")
        if self.take("not"):
            mask = _inverted(self.negation())
        elif self.take("("):
            mask = self.parse_or()
            self.expect(")")
        else:
            mask = self.comparison()
        self.depth -= 1
        return mask

    def comparison(self) -> Mask:
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
            negated = self.take("not")
            self.expect("null")
            if negated:
                return _inverted(partial(_is_null, column))
            return partial(_is_null, column)
        negated = self.take("not")
        if negated or self.is_next("in"):
            self.expect("in")
            mask = self.compare(column, "in", *self.values())
            return _inverted(mask) if negated else mask
        sign = self.sign()
        if sign is None:
            self.compared[column].add("booleans")
            return partial(_condition, column)
        if self.next.kind == "quoted" or (
            self.next.kind == "word" and self.next.text.lower() not in _KEYWORDS
        ):
            return partial(_compared_columns, column, sign, self.column())
        return self.compare(column, sign, self.literal())

    def compare(self, column: str, sign: str, *values: Literal) -> Mask:
        self.compared[column].update(map(_classify, values))
        return partial(_compared, column, sign, values)

    def sign(self) -> str | None:
        text = _SPELLED.get(self.next.text, self.next.text)
        if self.next.kind != "sign" or text not in _COMPARISONS:
            return None
        self.at += 1
        return text

    def column(self) -> str:
        token = self.next
        if token.kind != "quoted" and (token.kind != "word" or token.text.lower() in _KEYWORDS):
            raise self.wrong("the name of a column is missing")
        self.at += 1
        if token.kind == "quoted":
            name = token.text[1:-1].replace("``", "`")
        else:
            name = token.text
        self.compared.setdefault(name, set())
        return name

    def values(self) -> tuple[Literal, ...]:
        close = {"(": ")", "[": "]"}.get(self.next.text, "")
        if self.next.kind != "sign" or not close:
            raise self.wrong("'in' needs a list such as ('a', 'b')")
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
        token = self.next
        self.at += 1
        if token.kind == "string":
            quote = token.text[0]
            return token.text[1:-1].replace(quote * 2, quote)
        if token.kind == "number":
            if re.fullmatch("[+-]?[0-9]+", token.text):
                if len(token.text) < 400:
                    return int(token.text)
                return self._too_large(token)
            value = float(token.text)
            if math.isfinite(value):
                return value
            return self._too_large(token)
        word = token.text.lower() if token.kind == "word" else ""
        if word in ("true", "false"):
            return word == "true"
        self.at -= 1
        if word == "null":
            raise self.error(token.at, "nothing is equal to null; write 'is null' or 'is not null'")
        if token.kind == "word":
            raise self.error(
                token.at, f"{token.text[:40]!r} is no value here; text is written in quotes"
            )
        raise self.wrong("a value is missing: a number, text in quotes, true or false")

    def _too_large(self, token: _Token) -> Literal:
        raise self.error(token.at, "the number is too large")


def _classify(value: Literal) -> str:
    if isinstance(value, str):
        return "text"
    if isinstance(value, bool):
        return "booleans"
    return "numbers"


def _joined(function: str, parts: list[Mask]) -> Mask:
    def mask(table: Any) -> Any:
        each = (part(table) for part in parts)
        return functools.reduce(
            lambda one, other: compute.call_function(function, [one, other]), each
        )

    return parts[0] if len(parts) == 1 else mask


def _inverted(mask: Mask) -> Mask:
    return lambda table: compute.invert(mask(table))


def _is_null(name: str, table: Any) -> Any:
    return plain_column(table.column(name)).is_null()


def _condition(name: str, table: Any) -> Any:
    column = plain_column(table.column(name))
    kind = _kind_of_column(column)
    if kind not in ("booleans", "nothing"):
        raise _WrongColumnError(
            f"column {shown(name)} is {column.type} and no condition; compare it with a value"
        )
    if kind == "booleans":
        return column
    return _constant(column, None)


def _compared(name: str, sign: str, values: tuple[Any, ...], table: Any) -> Any:
    """Compare a column with the one value of a sign, or with those of a list (``"in"``)."""
    column = plain_column(table.column(name))
    kind = _kind_of_column(column)
    if kind == "nothing":
        return _constant(column, None)
    for value in values:
        if _classify(value) not in _COMPARED_WITH.get(kind, (kind,)):
            raise _WrongColumnError(
                f"column {shown(name)} is {column.type} and is compared with {value!r}"
            )
    if kind == "dates":
        values = tuple(_date(value, column, shown(name)) for value in values)
    elif kind in ("times of day", "durations"):
        values = tuple(_units(value, column, kind, shown(name)) for value in values)
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
    (value,) = values
    if kinds.is_integer(column.type):
        limits = np.iinfo(column.type.to_pandas_dtype())
        if value != math.floor(value):
            # No integer lies between a number and the integer below it.
            if sign in ("==", "!="):
                return _constant(column, sign == "!=")
            sign = "<=" if sign in ("<", "<=") else ">"
        value = math.floor(value)
        if not limits.min <= value <= limits.max:
            return _constant(column, _COMPARISONS[sign][0](0, value))
    if not isinstance(value, pyarrow.Scalar):
        value = pyarrow.scalar(value, column.type)
    return compute.call_function(_COMPARISONS[sign][1], [column, value])


def _kind_of_column(column: Any) -> str:
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
    """One value for each row, null where the column is."""
    nothing = pyarrow.scalar(None, pyarrow.bool_())
    return compute.if_else(like.is_null(), nothing, pyarrow.scalar(value, pyarrow.bool_()))


def _is_member(column: Any, values: list[Any]) -> Any:
    if kinds.is_integer(column.type):
        limits = np.iinfo(column.type.to_pandas_dtype())
        values = [
            int(value)
            for value in values
            if value == math.floor(value) and limits.min <= value <= limits.max
        ]
    elif kinds.is_floating(column.type):
        # pyarrow looks values up by their bits
        values += [-value for value in values if value == 0]
    is_member = compute.is_in(column, value_set=pyarrow.array(values, column.type))
    return compute.if_else(column.is_null(), pyarrow.scalar(None, pyarrow.bool_()), is_member)


def _exact_float(value: int | float, column: Any) -> float:
    if abs(value) > sys.float_info.max or float(value) != value:
        raise _WrongColumnError(
            f"{value} is an integer that float64 does not hold, and the column is {column.type}"
        )
    return float(value)


def _date(text: str, column: Any, name: str) -> Any:
    """Return a date, or a time of a date, as a scalar of a column's type."""
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


def _units(value: Any, column: Any, kind: str, name: str) -> Fraction:
    """Return a time of day, or a duration as text or in seconds, as a number of the units of a
    column.
    """
    per = _UNITS[getattr(column.type, "unit", "ns")]
    if not isinstance(value, str):
        return Fraction(value) * per
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
    return (-seconds if match["sign"] else seconds) * per


def _in_units(column: Any) -> Any:
    """Return times of day and durations in their units, those of intervals in nanoseconds."""
    if not kinds.is_interval(column.type):
        narrow = kinds.is_time32(column.type)
        return column.cast(pyarrow.int32() if narrow else pyarrow.int64()).cast(pyarrow.int64())
    present = column.is_valid()
    months, days, nanoseconds = parts_of_intervals(column.drop_null())
    if months.any():
        raise _WrongColumnError(
            f"an interval has {months[np.flatnonzero(months)[0]]} months, whose length is not fixed"
        )
    whole = np.zeros(len(column), np.int64)
    whole[present.to_numpy()] = 86_400 * 10**9 * days + nanoseconds
    return pyarrow.chunked_array([pyarrow.array(whole, mask=~present.to_numpy())])


def _compared_columns(name: str, sign: str, other_name: str, table: Any) -> Any:
    column, other = (plain_column(table.column(each)) for each in (name, other_name))
    kind = _kind_of_column(column)
    other_kind = _kind_of_column(other)
    if "nothing" in (kind, other_kind):
        return compute.and_kleene(_constant(column, None), _constant(other, None))
    if kind != other_kind or (
        kind not in ("numbers", "text", "booleans") and column.type != other.type
    ):
        names = f"{shown(name)} is {column.type} and column {shown(other_name)} is {other.type}"
        raise _WrongColumnError(f"column {names}; they cannot be compared")
    if kind == "numbers" and kinds.is_floating(column.type) != kinds.is_floating(other.type):
        # refuses integers that it rounds
        column = column.cast(pyarrow.float64())
        other = other.cast(pyarrow.float64())
    elif kind == "text":
        column = column.cast(pyarrow.large_string())
        other = other.cast(pyarrow.large_string())
    elif kind in ("times of day", "durations"):
        column = _in_units(column)
        other = _in_units(other)
    return compute.call_function(_COMPARISONS[sign][1], [column, other])
