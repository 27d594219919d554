"""The one way by which text reaches stdout and stderr: escaped, in the stream's own encoding, and never an error of its own.

Ids, paths and errors come from files of strangers. Raw control characters among them would let a file colour, hide or
forge what a terminal shows, so everything that is not printable is written as ``repr`` writes it.
"""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from typing import Any


def printable(text: str) -> str:
    """One line: the text with everything that is not printable, line ends too, as ``repr`` writes it."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def say(*lines: str) -> None:
    """Write lines to stderr; if it is closed, the run continues."""
    with contextlib.suppress(OSError):
        _write(sys.stderr, lines)


def show(*lines: str) -> None:
    """Write lines to stdout; a reader that has gone, as in ``... | head -1``, has had enough, and that is no error.

    Raises
    ------
    OutputError
        They cannot be written for another reason: a disk is full.
    """
    try:
        _write(sys.stdout, lines)
    except OSError as error:
        from kepler_traverse.errors import OutputError  # only now: with it come NumPy and Numba, and --help needs neither

        raise OutputError(f"stdout cannot be written to: {error.strerror or error}") from None


def show_traceback(error: BaseException) -> None:
    """Write the traceback of an error to stderr."""
    say(*"".join(traceback.format_exception(error)).splitlines())


def _write(stream: Any, lines: tuple[str, ...]) -> None:
    if stream is None or stream.closed:  # as after 2>&-
        return
    text = "".join(f"{printable(line)}\n" for line in lines)
    encoding = stream.encoding or "utf-8"
    try:
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except BrokenPipeError:
        # What is left in the buffer would fail once more when the interpreter ends.
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), stream.fileno())


def in_units(size: int) -> str:
    """Return a number of bytes as readable text."""
    amount = float(size)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if amount < 1024 or unit == "GiB":
            break
        amount /= 1024
    return f"{amount:.0f} {unit}" if unit == "bytes" or amount >= 100 else f"{amount:.1f} {unit}"
