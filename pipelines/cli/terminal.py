"""All output to stdout and stderr: escaped, in the encoding of the stream, and without errors of
its own.

Ids, paths and errors come from untrusted files. With raw control characters, a file could color,
hide or forge what a terminal shows. Therefore everything that is not printable is written as by
``repr``.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parents[1]
# The name of the job's package as one types it: short in a checkout, and in an installation the one
# that no other project has.
if _FOLDER.parent.name == "kepler_traverse":
    _PACKAGE = "kepler_traverse.pipelines"
else:
    _PACKAGE = "pipelines"


def called_as(module: str) -> str:
    """Return the command that runs a module of this package, such as "verify", for messages.

    It has the form in which this program was called: ``kepler-traverse COMMAND``, or
    ``python -m ...``.
    """
    words = sys.argv[0].split(" ")
    if words[0] == "kepler-traverse" and len(words) == 2:  # as ``__main__`` sets it
        # the job's module has two commands, ``run`` and ``plan``
        is_run = module == "batch_sources"
        if is_run == (words[1] in ("run", "plan")):
            return sys.argv[0]
        return f"kepler-traverse {'run' if is_run else module}"
    return f"python -m {_PACKAGE}.{module}"


def pasted(words: Sequence[str]) -> str:
    """Return words as a command line that can be pasted into a shell: one printable line, which the
    shell divides into the same words again.
    """
    quoted = [shlex.quote(word) if word.isprintable() else _quote_bytes(word) for word in words]
    return " ".join(quoted)


def _quote_bytes(word: str) -> str:
    """Return a word in the notation ``$'...'`` of shells, in which line ends, and bytes that are no
    text, are written as ``\\xHH``.
    """
    characters = []
    for byte in os.fsencode(word):
        is_plain = 32 <= byte < 127 and byte not in b"\\'"
        characters.append(chr(byte) if is_plain else f"\\x{byte:02x}")
    return f"$'{''.join(characters)}'"


def printable(text: str) -> str:
    """Return a text as one line, in which each character that is not printable, such as a line end,
    is escaped as by ``repr``.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def say(*lines: str) -> None:
    """Write lines to stderr. If it cannot be written to, they are lost and the run continues."""
    with contextlib.suppress(OSError):
        _write(sys.stderr, lines)


def show(*lines: str) -> None:
    """Write lines to stdout. A reader that has closed the pipe, as in ``... | head -1``, is no
    error.

    Raises OutputError: they cannot be written for another reason, such as a full disk.
    """
    try:
        _write(sys.stdout, lines)
    except OSError as error:
        # only here, because the scheduler imports nothing of the library
        from kepler_traverse.errors import OutputError

        raise OutputError(f"stdout cannot be written to: {error.strerror or error}") from None


@contextlib.contextmanager
def log_said(is_wanted: bool) -> Iterator[None]:
    """Write to stderr what the library logs within the block, from its lowest level on; nothing if
    not ``is_wanted``.
    """
    if not is_wanted:
        yield
        return
    import logging  # only here, because --help does not need it

    logger = logging.getLogger("kepler_traverse")
    handler = logging.Handler()
    handler.emit = lambda record: say(handler.format(record))  # type: ignore[method-assign]
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def flush() -> None:
    """Write out what stdout and stderr buffer. A stream that is closed or full is no error."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()


def _write(stream: Any, lines: tuple[str, ...]) -> None:
    """Write lines to a stream, with escapes for characters that are not printable or that its
    encoding lacks. A pipe without a reader is no error.
    """
    if stream is None or stream.closed:  # as after 2>&-
        return
    text = "".join(f"{printable(line)}\n" for line in lines)
    encoding = stream.encoding or "utf-8"
    try:
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except BrokenPipeError:
        # The rest of the buffer would fail again when the interpreter ends: it goes nowhere.
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), stream.fileno())
