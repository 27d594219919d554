"""Knobs of the published systems: frozen dataclasses whose fields state what they take."""

from __future__ import annotations

import math
from dataclasses import field, fields
from numbers import Integral, Real
from typing import Any, ClassVar

from ..errors import InputError

WIDTHS = (1, 2, 4, 8, 16, 32)  # lanes that may share a vertex
ENDLESS = 2**62  # up to which a number without an upper bound goes: sums with it fit into int64


class Knobs:
    """Options of the strategy ``of``. InputError names a knob of which the value is wrong or out of
    range.
    """

    of: ClassVar[str]

    def __post_init__(self) -> None:
        for each in fields(self):  # type: ignore[arg-type]  # subclasses are dataclasses
            value = getattr(self, each.name)
            expected, fits = each.metadata["takes"]
            if not fits(value):
                raise InputError(f"knob {each.name} of {self.of} must be {expected}, not {value!r}")


def _knob(default: Any, expected: str, fits: Any) -> Any:
    return field(default=default, metadata={"takes": (expected, fits)})


def whole(default: int, least: int, most: int = ENDLESS) -> Any:
    """Return a field that takes whole numbers of a range."""
    expected = f"a whole number from {least} {'on' if most >= ENDLESS else f'to {most}'}"
    return _knob(default, expected, lambda value: _is_whole(value) and least <= value <= most)


def number(default: float, expected: str = "a number, 0 or more", most: float = math.inf) -> Any:
    """Return a field that takes finite numbers from 0 on."""
    return _knob(
        default,
        expected,
        lambda value: _is_number(value) and math.isfinite(value) and 0 <= value <= most,
    )


def one_of(*values: Any, default: Any = None) -> Any:
    """Return a field that takes these values, all of one type; the default is the first one, if it
    is not given.
    """
    default = values[0] if default is None else default
    *others, last = map(repr, values)
    if len(values) < 4:
        expected = f"{', '.join(others)} or {last}"
    else:
        expected = f"one of {values}"
    return _knob(default, expected, lambda value: type(value) is type(default) and value in values)


def switch(default: bool) -> Any:
    """Return a field that is on or off."""
    return _knob(default, "true or false", lambda value: isinstance(value, bool))


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
