"""Knobs of the published systems, options of one strategy each: frozen dataclasses whose fields
state which values they take.
"""

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
    """Options of one strategy. Each field of a subclass is made by ``whole``, ``number``,
    ``one_of`` or ``switch``, which state the values that it takes.

    Attributes
    ----------
    of : str
        Name of the strategy, or what else errors call the owner of the knobs. One per class.

    Raises
    ------
    InputError
        A value is of a wrong type or out of range. The message names the knob.
    """

    of: ClassVar[str]

    def __post_init__(self) -> None:
        """Check the value of each field by what its metadata say (see ``_knob``)."""
        for knob in fields(self):  # type: ignore[arg-type]  # subclasses are dataclasses
            value = getattr(self, knob.name)
            expected, fits = knob.metadata["takes"]
            if not fits(value):
                raise InputError(f"knob {knob.name} of {self.of} must be {expected}, not {value!r}")


def _knob(default: Any, expected: str, fits: Callable[[Any], bool]) -> Any:
    """Return a dataclass field that takes the values for which ``fits`` is true. ``expected``
    describes these values in errors, after "must be".
    """
    return field(default=default, metadata={"takes": (expected, fits)})


def whole(default: int, least: int, most: int = ENDLESS) -> Any:
    """Return a field that takes whole numbers from ``least`` to ``most``, both included."""
    end = "on" if most >= ENDLESS else f"to {most}"

    def fits(value: Any) -> bool:
        """Return whether a value is a whole number of the range."""
        return _is_whole(value) and least <= value <= most

    return _knob(default, f"a whole number from {least} {end}", fits)


def number(default: float, expected: str = "a number, 0 or more", most: float = math.inf) -> Any:
    """Return a field that takes finite numbers from 0 to ``most``, both included. ``expected``
    describes them in errors.
    """

    def fits(value: Any) -> bool:
        """Return whether a value is a number of the range."""
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
        """Return whether a value is one of ``values``."""
        # the type is compared, too, as to Python 1 is equal to True and to 1.0
        return type(value) is type(default) and value in values

    return _knob(default, expected, fits)


def switch(default: bool) -> Any:
    """Return a field that takes True or False."""
    return _knob(default, "true or false", lambda value: isinstance(value, bool))


def _is_whole(value: Any) -> bool:
    """Return whether a value is an integer, and not True or False, which are integers to Python."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    """Return whether a value is a number, and not True or False, which Python counts as numbers."""
    return isinstance(value, Real) and not isinstance(value, bool)
