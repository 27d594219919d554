"""Filters of rows: a text such as ``highway != 'motorway' and lanes >= 2``, or an expression of pyarrow.

The text is parsed here and never run. A comparison with a missing value is neither true nor false, as in SQL, and only rows
are kept for which the whole is true.
"""

from __future__ import annotations

import functools
import math
import operator
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._arrays import arrow_compute as compute
from .._arrays import arrow_types as kinds
from .._arrays import pyarrow
from ..errors import EdgeListError, InputError, one_line, option_text
from .columns import plain_column
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
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_FUNCTIONS = {
    "==": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}
_SPELLED = {"=": "==", "<>": "!="}
_REVERSED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}

Literal = str | int | float | bool


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    at: int  # the first character, from 0


@dataclass(frozen=True)
class _Node:
    """One operation of a filter."""

    kind: str  # {"and", "or", "not", "is null", "in", "compare", "compare columns", "column"}
    column: str = ""  # the column that it is about
    sign: str = ""  # of a comparison
    values: tuple[Any, ...] = ()  # of a comparison with a value, and of ``in``; for ``"compare columns"`` the other column
    parts: tuple[_Node, ...] = ()  # of ``and``, ``or`` and ``not``

    def nodes(self) -> Iterator[_Node]:
        yield self
        for part in self.parts:
            yield from part.nodes()


@dataclass(frozen=True, eq=False)
class RowFilter:
    """A condition that each row meets or does not."""

    text: str  # as it was given
    columns: tuple[str, ...] | None  # the columns that it is about; None if that is not known (an expression of pyarrow)
    _node: _Node | None = field(default=None, repr=False)
    _expression: Any = field(default=None, repr=False)

    def kept(self, table: Any, file: DataFile) -> np.ndarray:
        """Return the numbers of the rows for which the condition is true.

        The pyarrow.Table has the columns of the filter, under their own names. EdgeListError, with the name of the file, if
        one is compared with what it does not hold.
        """
        try:
            mask = self._mask_of_expression(table) if self._node is None else _mask(self._node, table)
        except _WrongColumnError as error:
            raise EdgeListError(f"{file}: {option_text('where')}: {error}") from None
        except (pyarrow.ArrowException, TypeError, KeyError) as error:
            problem = f"{option_text('where')} {shown(self.text)} cannot be evaluated ({one_line(error)})"
            raise EdgeListError(f"{file}: {problem}") from None
        return np.flatnonzero(compute.fill_null(mask, False).to_numpy())

    def _mask_of_expression(self, table: Any) -> Any:
        mask = pyarrow.dataset.dataset(table).scanner(columns={"kept": self._expression}).to_table()["kept"]
        if mask.type != pyarrow.bool_():
            raise _WrongColumnError(f"the expression gives {mask.type}, and it must be true or false")
        return mask

    def text_kind(self, column: str) -> str:
        """Return what the values of a column of text are compared with: text, numbers, booleans, or ``""`` if unknown."""
        if self._node is None:
            return ""
        kinds = set()
        for node in self._node.nodes():
            if node.column == column and node.kind in ("compare", "in"):
                kinds |= {_classify(value) for value in node.values}
            elif node.column == column and node.kind == "column":
                kinds.add("booleans")
        return kinds.pop() if len(kinds) == 1 else ""


class _WrongColumnError(Exception):
    """A column that a filter cannot compare as it wants to."""


def row_filter(where: Any) -> RowFilter:
    """Return the filter of a text or of an expression of pyarrow; the InputError for a text names the position."""
    if isinstance(where, str):
        return _parsed(where)
    if isinstance(where, compute.Expression):
        return RowFilter(str(where), None, _expression=where)
    kind = type(where).__name__
    raise InputError(f"{option_text('where')} must be text or an expression of pyarrow, not a value of type {kind}")


@functools.lru_cache(maxsize=8)
def _parsed(text: str) -> RowFilter:
    if len(text) > MAX_LENGTH:
        raise InputError(
            f"{option_text('where')} has {len(text)} characters, and {MAX_LENGTH} are the most; filter the edge list before"
        )
    node = _Parser(text).whole()
    columns = [name for one in node.nodes() for name in (one.column, *(one.values if one.kind == "compare columns" else ()))]
    return RowFilter(text, tuple(dict.fromkeys(name for name in columns if name)), node)


class _Parser:
    """Recursive descent: or, and, not, comparison."""

    def __init__(self, text: str):
        self.text, self.depth = text, 0
        self.tokens = list(self._tokens())
        self.at = 0

    def _tokens(self) -> Iterator[_Token]:
        at = 0
        while True:
            match = _TOKEN.match(self.text, at)
            if match is None:
                at += len(self.text[at:]) - len(self.text[at:].lstrip())
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
        begin, end = max(0, at - 30), at + 30
        near = ("..." if begin else "") + self.text[begin:end] + ("..." if end < len(self.text) else "")
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
        what = "the end" if self.next.kind == "end" else repr(self.next.text[:40])
        return self.error(self.next.at, f"{problem}, before {what}")

    def whole(self) -> _Node:
        if self.next.kind == "end":
            raise InputError(f"{option_text('where')} is empty; give a condition such as \"highway != 'motorway'\"")
        node = self.parse_or()
        if self.next.kind != "end":
            raise self.wrong("'and' or 'or' is missing")
        return node

    def parse_or(self) -> _Node:
        parts = [self.parse_and()]
        while self.take("or"):
            parts.append(self.parse_and())
        return parts[0] if len(parts) == 1 else _Node("or", parts=tuple(parts))

    def parse_and(self) -> _Node:
        parts = [self.negation()]
        while self.take("and"):
            parts.append(self.negation())
        return parts[0] if len(parts) == 1 else _Node("and", parts=tuple(parts))

    def negation(self) -> _Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.error(self.next.at, f"more than {MAX_DEPTH} levels of parentheses and 'not'")
        if self.take("not"):
            node = _Node("not", parts=(self.negation(),))
        elif self.take("("):
            node = self.parse_or()
            self.expect(")")
        else:
            node = self.comparison()
        self.depth -= 1
        return node

    def comparison(self) -> _Node:
        token = self.next
        if token.kind in ("number", "string") or self.is_next("true", "false", "null"):
            value = self.literal()
            sign = self.sign()
            if sign is None:
                raise self.error(token.at, f"{token.text[:40]!r} is no column; a condition compares a column")
            return _Node("compare", self.column(), _REVERSED.get(sign, sign), (value,))
        column = self.column()
        if self.take("is"):
            negated = self.take("not")
            self.expect("null")
            node = _Node("is null", column)
            return _Node("not", parts=(node,)) if negated else node
        negated = self.take("not")
        if negated or self.is_next("in"):
            self.expect("in")
            node = _Node("in", column, values=self.values())
            return _Node("not", parts=(node,)) if negated else node
        sign = self.sign()
        if sign is None:
            return _Node("column", column)
        if self.next.kind == "quoted" or (self.next.kind == "word" and self.next.text.lower() not in _KEYWORDS):
            return _Node("compare columns", column, sign, (self.column(),))
        return _Node("compare", column, sign, (self.literal(),))

    def sign(self) -> str | None:
        text = _SPELLED.get(self.next.text, self.next.text)
        if self.next.kind != "sign" or text not in _COMPARISONS:
            return None
        self.at += 1
        return text

    def column(self) -> str:
        token = self.next
        if token.kind == "quoted":
            self.at += 1
            return token.text[1:-1].replace("``", "`")
        if token.kind != "word" or token.text.lower() in _KEYWORDS:
            raise self.wrong("the name of a column is missing")
        self.at += 1
        return token.text

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
            raise self.error(self.tokens[self.at - 1].at, "the list mixes text, numbers or booleans")
        return tuple(values)

    def literal(self) -> Literal:
        token = self.next
        self.at += 1
        if token.kind == "string":
            quote = token.text[0]
            return token.text[1:-1].replace(quote * 2, quote)
        if token.kind == "number":
            if re.fullmatch("[+-]?[0-9]+", token.text):
                return int(token.text) if len(token.text) < 400 else self._too_large(token)
            value = float(token.text)
            return value if math.isfinite(value) else self._too_large(token)
        word = token.text.lower() if token.kind == "word" else ""
        if word in ("true", "false"):
            return word == "true"
        self.at -= 1
        if word == "null":
            raise self.error(token.at, "nothing is equal to null; write 'is null' or 'is not null'")
        if token.kind == "word":
            raise self.error(token.at, f"{token.text[:40]!r} is no value here; text is written in quotes")
        raise self.wrong("a value is missing: a number, text in quotes, true or false")

    def _too_large(self, token: _Token) -> Literal:
        raise self.error(token.at, "the number is too large")


def _classify(value: Literal) -> str:
    return "text" if isinstance(value, str) else "booleans" if isinstance(value, bool) else "numbers"


def _mask(node: _Node, table: Any) -> Any:
    """Return a chunked array of true, false and null for each row."""
    if node.kind in ("and", "or"):
        combine = compute.and_kleene if node.kind == "and" else compute.or_kleene
        return functools.reduce(combine, (_mask(part, table) for part in node.parts))
    if node.kind == "not":
        return compute.invert(_mask(node.parts[0], table))
    column = plain_column(table.column(node.column))
    if node.kind == "is null":
        return column.is_null()
    what, name = _kind_of_column(column), shown(node.column)
    if what == "nothing":
        return _constant(column, None)
    if node.kind == "column":
        if what != "booleans":
            raise _WrongColumnError(f"column {name} is {column.type} and no condition; compare it with a value")
        return column
    if node.kind == "compare columns":
        return _compared_columns(node, column, plain_column(table.column(node.values[0])))
    for value in node.values:
        if _classify(value) != what and not (what == "times" and isinstance(value, str)):
            raise _WrongColumnError(f"column {name} is {column.type} and is compared with {value!r}")
    if what == "times":
        node = _Node(node.kind, node.column, node.sign, tuple(_time(value, column, name) for value in node.values))
    if what == "booleans" and node.sign not in ("==", "!=", ""):
        raise _WrongColumnError(f"column {name} is {column.type}, which {node.sign} does not order")
    if node.kind == "in":
        return _is_member(column, node.values, what)
    return _compared(column, node.sign, node.values[0], what)


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
    if kinds.is_temporal(kind):
        return "times"
    raise _WrongColumnError(f"a column of type {kind} cannot be compared; cast it to numbers or strings")


def _constant(like: Any, value: bool | None) -> Any:
    """One value for each row, null where the column is."""
    nothing = pyarrow.scalar(None, pyarrow.bool_())
    return compute.if_else(like.is_null(), nothing, pyarrow.scalar(value, pyarrow.bool_()))


def _compared(column: Any, sign: str, value: Any, what: str) -> Any:
    if what == "numbers" and kinds.is_integer(column.type):
        limits = np.iinfo(column.type.to_pandas_dtype())
        if value != math.floor(value):
            # No integer lies between a number and the integer below it.
            if sign in ("==", "!="):
                return _constant(column, sign == "!=")
            sign = "<=" if sign in ("<", "<=") else ">"
        value = math.floor(value)
        if not limits.min <= value <= limits.max:
            return _constant(column, _COMPARISONS[sign](0, value))
    elif what == "numbers":
        column, value = column.cast(pyarrow.float64()), _exact_float(value, column)
    value = value if isinstance(value, pyarrow.Scalar) else pyarrow.scalar(value, column.type)
    return compute.call_function(_FUNCTIONS[sign], [column, value])


def _is_member(column: Any, values: tuple[Any, ...], what: str) -> Any:
    chosen = list(values)
    if what == "numbers" and kinds.is_integer(column.type):
        limits = np.iinfo(column.type.to_pandas_dtype())
        chosen = [int(value) for value in values if value == math.floor(value) and limits.min <= value <= limits.max]
    elif what == "numbers":
        column, chosen = column.cast(pyarrow.float64()), [_exact_float(value, column) for value in values]
        chosen += [-value for value in chosen if value == 0]  # pyarrow looks values up by their bits
    is_member = compute.is_in(column, value_set=pyarrow.array(chosen, column.type))
    return compute.if_else(column.is_null(), pyarrow.scalar(None, pyarrow.bool_()), is_member)


def _exact_float(value: int | float, column: Any) -> float:
    if abs(value) > sys.float_info.max or float(value) != value:
        raise _WrongColumnError(f"{value} is an integer that float64 does not hold, and the column is {column.type}")
    return float(value)


def _time(text: str, column: Any, name: str) -> Any:
    try:
        return pyarrow.scalar(text).cast(column.type)
    except (pyarrow.ArrowException, ValueError) as error:
        raise _WrongColumnError(f"column {name} is {column.type}, and {text!r} is none ({one_line(error, 120)})") from None


def _compared_columns(node: _Node, column: Any, other: Any) -> Any:
    kind, other_kind = _kind_of_column(column), _kind_of_column(other)
    if "nothing" in (kind, other_kind):
        return compute.and_kleene(_constant(column, None), _constant(other, None))
    if kind != other_kind or (kind == "times" and column.type != other.type):
        names = f"{shown(node.column)} is {column.type} and column {shown(node.values[0])} is {other.type}"
        raise _WrongColumnError(f"column {names}; they cannot be compared")
    if kind == "numbers" and kinds.is_floating(column.type) != kinds.is_floating(other.type):
        column, other = column.cast(pyarrow.float64()), other.cast(pyarrow.float64())  # refuses integers that it rounds
    elif kind == "text":
        column, other = column.cast(pyarrow.large_string()), other.cast(pyarrow.large_string())
    return compute.call_function(_FUNCTIONS[node.sign], [column, other])
