"""Every error that this library raises on purpose.

``InputError`` and what derives from it mean that the caller can correct the call or the data; the
message names the file, the column, the row or the vertex and says what to do. All errors survive
pickling, since workers send them to the driver.

Messages name options by ``option_text``, in the words of the surface that the caller stands on.
"""

from __future__ import annotations

import re
import shlex
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any


def _argument_text(name: str, value: object = None) -> str:
    """Return the option ``name`` as a keyword argument of Python: ``header='yes'``, or ``header``
    if the value is None.
    """
    return name if value is None else f"{name}={value!r}"


# How messages write an option: the function takes its name and its value, None for the name alone.
# It is a context variable and no global one, so that a job that runs in one thread does not change
# the messages of calls in another.
_option_spelling: ContextVar[Callable[[str, object], str]] = ContextVar(
    "option_spelling", default=_argument_text
)


def option_text(name: str, value: object = None) -> str:
    """Write an option for a message: ``header='yes'`` for a caller in Python, what
    ``options_spelled`` says elsewhere.

    Parameters
    ----------
    name : str
        An argument of the public functions.
    value : object, optional
        The value that the message proposes or complains about.
    """
    return _option_spelling.get()(name, value)


def is_for_library() -> bool:
    """Return whether messages are for a caller of the library's functions, and not for one of a
    job or a command, who has options alone and no graph.
    """
    return _option_spelling.get() is _argument_text


_given_notices: set[str] = set()  # texts that were shown in this process
_show_notice: Callable[[str], None] | None = None  # shows a notice; None: by a warning of Python


def show_notices(show: Callable[[str], None]) -> None:
    """Show all further notices of this process by ``show(text)``, and not by Python's warnings."""
    global _show_notice
    _show_notice = show


def notice(text: str) -> None:
    """Show a text to the user, once per process: by a warning of Python, or by the function that a
    program has given to ``show_notices``.

    Notices concern the machine, such as a folder that cannot be written, and no result.
    """
    if text in _given_notices:
        return
    _given_notices.add(text)
    if _show_notice is None:
        warnings.warn(text, stacklevel=2)
    else:
        _show_notice(text)


@contextmanager
def options_spelled(
    spell: Callable[[str, object], str], by_default: bool = False
) -> Iterator[None]:
    """Let messages that are made in the ``with`` block write options by ``spell(name, value)``, as
    flags of a command line for instance; a value of None means the name alone.

    With ``by_default``, this holds only if no enclosing block has set another way.
    """
    before = _option_spelling.get()
    has_own_words = before is not _argument_text
    token = _option_spelling.set(before if by_default and has_own_words else spell)
    try:
        yield
    finally:
        _option_spelling.reset(token)


def one_line(error: object, most: int = 200) -> str:
    """Return the text of an error of another library on one line of at most ``most`` characters."""
    return " ".join(str(error).split())[:most]


def listed(names: Iterable[object], most: int = 10) -> str:
    """Return text with the first ``most`` names for a message, each in quotes and cut to 60
    characters, and the number of those that are left out.
    """
    all_names = list(names)
    texts = []
    for name in all_names[:most]:
        if len(str(name)) > 60:
            name = f"{str(name)[:57]}..."
        texts.append(repr(name))
    shown = ", ".join(texts)
    if len(all_names) <= most:
        return shown
    return f"{shown} and {len(all_names) - most:,} more"


# one character: a line end, or what a terminal would take for a command
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_LONG_WORD = re.compile(r"[^\s/]{200,}")


def shortened(message: str) -> str:
    """Return a message on one line that fits on a screen, whatever values it shows.

    Control characters are escaped. Words of 200 characters or more are cut, and of a message of
    more than 1,000 characters the middle is left out.
    """
    message = _CONTROL.sub(lambda sign: repr(sign[0])[1:-1], message)
    message = _LONG_WORD.sub(lambda word: f"{word[0][:90]}...", message)
    if len(message) <= 1000:
        return message
    return f"{message[:700]} ... {message[-250:]}"


# Beyond the bucket and the path: a query, or a user's name or password, also where a slash is
# missing. In addresses of Azure, @ follows a container. It matches "https://host/a?sig=1",
# "https://user@host/a" and "s3:/key:secret@bucket/a", but not "s3://bucket/a" and
# "abfs://container@account/a".
_SECRETS = re.compile(
    r"[a-z][a-z0-9+.-]*:/{1,2}(?!/)(.*[?#]|[^/]*:[^/]*@|(?<!abfs://)(?<!abfss://)[^/]*@)",
    re.IGNORECASE,
)
# In a message, where an address may be cut short, or have one slash as a path. A password may hold
# a slash. ``_USER`` matches "s3://key:secret@" of "s3://key:secret@bucket/a", and ``_SIGNATURE``
# all of "https://host/a?sig=1". The first group of each is what stays: "s3://", "https://host/a?".
_USER = re.compile(
    r"\b([a-z][a-z0-9+.-]*:/{1,2})([^\s'\"]*:[^\s'\"]*@|(?<!abfs://)(?<!abfss://)[^\s'\"/]*@)",
    re.IGNORECASE,
)
_SIGNATURE = re.compile(
    r"(\b[a-z][a-z0-9+.-]*:/[^\s?'\"]*\?)[^\s'\"]*(sig|key|token|secret|pass|cred)[^\s'\"]*",
    re.IGNORECASE,
)


def has_secrets(url: str) -> bool:
    """Return whether the address ``url`` holds more than a bucket and a path, which may be a
    password or a signature.
    """
    # a long text that is no address takes the pattern long
    return ":/" in url and _SECRETS.search(url) is not None


def without_secrets(text: str) -> str:
    """Return the message ``text``, in which users, passwords and signatures in addresses are
    replaced by "...".
    """
    return _SIGNATURE.sub(r"\1...", _USER.sub(r"\1...@", text))


def how_to_install(extra: str, *others: str) -> str:
    """Return the pip command that installs this package with an optional extra, such as "cloud",
    and ``others``, further packages, before it.

    It installs from the checkout of the source, since no package index has this package.
    """
    checkout = Path(__file__).resolve().parents[1]
    # Without this file, the package is installed elsewhere, and the path of the checkout is not
    # known.
    before = "".join(f"{package} " for package in others)
    if (checkout / "pyproject.toml").is_file():
        return f"pip install {before}-e " + shlex.quote(f"{checkout}[{extra}]")
    return f"in the checkout: pip install {before}-e '.[{extra}]'"


def plural(noun: str) -> str:
    """Return the plural of an English noun: of one in -ex with -ices, in -ch with -es, else with
    -s.
    """
    if noun.endswith("ex"):
        return noun[:-2] + "ices"
    return noun + ("es" if noun.endswith("ch") else "s")


def several(number: int, noun: str) -> str:
    """Return a number with a noun as text, as "1 row" or "2,000 rows"; ``noun`` is singular."""
    return f"{number:,} {noun if number == 1 else plural(noun)}"


class KeplerError(Exception):
    """Base of every error raised on purpose. Its text fits on a screen."""

    def __str__(self) -> str:
        """Return the message, shortened to fit on a screen."""
        return shortened(super().__str__())


class InputError(KeplerError, ValueError):
    """The input or the call is wrong, and the message says how to correct it."""


class EdgeListError(InputError):
    """An edge list cannot be used as it is.

    Attributes
    ----------
    row : int or None
        Row of the edge list, counted from 0 over all files in the order read, where one row is at
        fault.
    column : str or None
        The role of the column at fault: ``"src"``, ``"dst"`` or ``"weight"``.
    """

    def __init__(self, message: str, row: int | None = None, column: str | None = None):
        super().__init__(message, row, column)  # all arguments, so that pickling keeps them
        self.message = message
        self.row = row
        self.column = column

    def __str__(self) -> str:
        """Return the message, shortened to fit on a screen, without row and column."""
        return shortened(self.message)


class EdgeListWarning(UserWarning):
    """An edge list was read as it is, and something in it may have been meant otherwise:
    ``graph.report.hints``.
    """


class UnknownVertexError(InputError):
    """A source or target is not a vertex of the graph."""


class StrategyError(InputError):
    """No such strategy, or it does not fit this graph or this device."""


class HierarchyError(InputError):
    """The graph has no contraction hierarchy, or none that pays; or a stored one is damaged."""


class DeviceError(InputError):
    """The device asked for, or what it needs, is not available on this machine."""


class CapacityError(InputError):
    """The memory that there is does not do for the graph, the traversals or the results."""


class OutputError(InputError):
    """The output folder cannot take this run."""


class NegativeCycleError(KeplerError, ArithmeticError):
    """Distances are unbounded below: a negative cycle can be reached from the source.

    Attributes
    ----------
    cycle : list
        Vertices of one negative cycle in the order of its edges, each once; the last one leads back
        to the first.
    weight : float
        Sum of the weights along it, below zero.
    """

    def __init__(self, cycle: list[Any], weight: float):
        super().__init__(cycle, weight)
        self.cycle = cycle
        self.weight = weight

    def __str__(self) -> str:
        """Return a message with the weight and the first 20 vertices of the cycle."""
        vertices = [str(vertex) for vertex in self.cycle[:20]]
        if len(self.cycle) > 20:
            vertices.append("...")
        shown = " -> ".join(vertices)
        return shortened(
            f"negative cycle of {len(self.cycle)} vertices and weight {self.weight:g}: {shown} -> {self.cycle[0]}; "
            "shortest distances do not exist. Remove or raise a weight on it, or start where it cannot be reached."
        )


class PrecisionError(KeplerError, ArithmeticError):
    """Rounding in the graph's float type keeps lowering distances round a cycle whose exact weight
    is not negative.

    It is also raised where the type of a result does not hold a distance or a sum exactly, or not
    at all.
    """


class CertificateError(KeplerError):
    """A result is not what it claims to be."""


class ForkError(KeplerError, RuntimeError):
    """This process was forked from one that had used threads or a GPU, which do not survive that."""


class FrontierOverflowError(KeplerError):
    """A frontier queue exceeded its capacity; the search was stopped, so no vertex is missing from
    a result.
    """
