"""The texts of flags as values: numbers, sizes, lists, ids or the name of a file.

Functions that parse a text raise ``argparse.ArgumentTypeError`` for a wrong one, by which argparse
makes an error that names the flag.
"""

from __future__ import annotations

import argparse
import math
import os
import re
from collections.abc import Callable

_INTEGER = re.compile(r"[+-]?[0-9]{1,300}")  # "12", "-7"
# "2", "2.", "2.5e-3", ".5", "inf", "NaN"
_NUMBER = re.compile(
    r"[+-]?([0-9]+\.?[0-9]*([eE][+-]?[0-9]+)?|\.[0-9]+([eE][+-]?[0-9]+)?|inf|infinity|nan)",
    re.IGNORECASE,
)
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)")  # "2000", "1.5GB", "40 GiB"
_UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def split_names(what: str, text: str) -> list[str]:
    """Parse a list with commas between its items, none of which may be empty. ``what`` is the noun
    of an item, for errors.
    """
    pieces = [piece.strip() for piece in text.split(",")]
    if not all(pieces):
        raise argparse.ArgumentTypeError(
            f"{text!r} holds an empty {what}; give {what}s with one comma between two of them"
        )
    return pieces


def integer(text: str) -> int:
    """Parse an integer as in a file of ids.

    Python's ``int`` alone would accept 1_0 as 10, and digits of any script.
    """
    if not _INTEGER.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def number(text: str) -> float:
    """Parse a decimal number, inf or nan. Python's ``float`` alone would accept 1_0 as 10, and
    digits of any script.
    """
    if not _NUMBER.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number")
    return float(text)


def number_or_auto(parse: Callable[[str], float], what: str, text: str) -> float | str:
    """Return the text "auto" as it is, and parse any other text by ``parse``. ``what`` describes
    the values that ``parse`` returns, for errors.
    """
    try:
        return text if text == "auto" else parse(text)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither {what} nor 'auto'") from None


def size_in_bytes(text: str) -> int:
    """Parse a number of bytes, with or without a unit, such as 2000, 1.5GB or 40 GiB."""
    match = _SIZE.fullmatch(text.strip(" "))
    if match is not None and match[2] in _UNITS:
        size = float(match[1]) * _UNITS[match[2]]
        if math.isfinite(size):
            return int(size)
    units = ", ".join(unit for unit in _UNITS if unit)
    raise argparse.ArgumentTypeError(
        f"{text!r} is not a size; give bytes, or a number with one of {units}"
    )


def is_url(place: str | None) -> bool:
    """Return whether a place, a path or None, is the URL of an object store."""
    from kepler_traverse.runtime.object_stores import URL  # --help need not import it

    return place is not None and URL.match(place) is not None


def ids_or_file(text: str) -> list[str] | str:
    """Return the ids that a text lists with commas, or the text itself if it is a URL or the name
    of a file that exists. The name of an existing file that may also be integer ids, such as "3" or
    "3,17", is an error.
    """
    if is_url(text):
        return text
    if not os.path.exists(text) or os.path.isdir(text):
        return split_names("id", text)
    if all(_INTEGER.fullmatch(piece.strip()) for piece in text.split(",")):
        raise argparse.ArgumentTypeError(
            f"{text!r} may be ids or the file of this name; for the file give ./{text}"
        )
    return text


def exact_number(text: str) -> int | float:
    """Parse a number; an integer becomes an int, since floats lack some integers beyond 2^53."""
    if _INTEGER.fullmatch(text):
        return integer(text)
    return number(text)


def numbers(text: str) -> list[int | float]:
    """Parse a list of numbers with commas between them; integers stay ints."""
    return [exact_number(piece.strip()) for piece in text.split(",")]
