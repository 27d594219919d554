"""Knobs of the published systems: frozen dataclasses whose fields state what they take."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field, fields
from numbers import Integral, Real
from typing import Any, ClassVar

from ..errors import InputError

WIDTHS = (1, 2, 4, 8, 16, 32)  # lanes that may share a vertex
ENDLESS = 2**62  # up to which a number without an upper bound goes: sums with it fit into int64


class Knobs:
    """Options of the strategy that ``of`` names. Each field of a subclass is made by ``whole``,
    ``number``, ``one_of`` or ``switch``. InputError names a knob of which the value is wrong or out
    of range.
    """

    of: ClassVar[str]

    def __post_init__(self) -> None:
        for knob in fields(self):  # type: ignore[arg-type]  # subclasses are dataclasses
            value = getattr(self, knob.name)
            expected, fits = knob.metadata["takes"]
            if not fits(value):
                raise InputError(f"knob {knob.name} of {self.of} must be {expected}, not {value!r}")


def _knob(default: Any, expected: str, fits: Callable[[Any], bool]) -> Any:
    """Return a field that takes values which fit; ``expected`` is what an error calls them."""
    return field(default=default, metadata={"takes": (expected, fits)})


def whole(default: int, least: int, most: int = ENDLESS) -> Any:
    """Return a field that takes whole numbers of a range."""
    end = "on" if most >= ENDLESS else f"to {most}"

    def fits(value: Any) -> bool:
        return _is_whole(value) and least <= value <= most

    return _knob(default, f"a whole number from {least} {end}", fits)


def number(default: float, expected: str = "a number, 0 or more", most: float = math.inf) -> Any:
    """Return a field that takes finite numbers from 0 to ``most``."""

    def fits(value: Any) -> bool:
        return _is_number(value) and math.isfinite(value) and 0 <= value <= most

    return _knob(default, expected, fits)


def one_of(*values: Any, default: Any = None) -> Any:
    """Return a field that takes these values, all of one type; the default is the first one, if it
    is not given.
    """
    if default is None:
        default = values[0]
    *others, last = map(repr, values)
    if len(values) < 4:
        expected = f"{', '.join(others)} or {last}"
    else:
        expected = f"one of {values}"

    def fits(value: Any) -> bool:
        # by the type, as True is 1 and 1.0 is, too
        return type(value) is type(default) and value in values

    return _knob(default, expected, fits)


def switch(default: bool) -> Any:
    """Return a field that is on or off."""
    return _knob(default, "true or false", lambda value: isinstance(value, bool))


def _is_whole(value: Any) -> bool:
    """Whether a value is an integer, and not True or False."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    """Whether a value is a number, and not True or False."""
    return isinstance(value, Real) and not isinstance(value, bool)
