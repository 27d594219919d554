"""Ctrl-C and SIGTERM end a job with a clean manifest, also when a library catches the exception
that they raise.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

from kepler_traverse._uninterrupted import start

from .terminal import flush, say

EXIT_INTERRUPTED = 128 + signal.SIGINT
_HURRY_SECONDS = 5.0
_requested = False
_held = False
_has_ended = False


def heeded() -> list[signal.Signals]:
    """The signals that end this process; one that was ignored at its start, as SIGINT in the
    background, stays ignored.
    """
    return [
        number
        for number in (signal.SIGINT, signal.SIGTERM)
        if signal.getsignal(number) is not signal.SIG_IGN
    ]


def listen() -> None:
    """Raise KeyboardInterrupt on both signals from now on, so that SIGTERM from a batch system acts
    like Ctrl-C.
    """
    for number in heeded():
        signal.signal(number, interrupt)


def run_heeding(program: Callable[[], int]) -> int:
    """Run a program that both signals end with 130, and return its exit code.

    It has a few seconds to end by itself, as a request to an object store or a kernel may keep it
    from hearing the signal. Once it has ended, a signal does not change its exit code.
    """
    for number in heeded():
        signal.signal(number, _end_soon)
    try:
        code = program()
        _heed_no_more()
        return code
    except KeyboardInterrupt:
        _heed_no_more()
        say("interrupted")
        return EXIT_INTERRUPTED


def _heed_no_more() -> None:
    """Let no signal end this process while its interpreter ends.

    The end of an interpreter takes its handlers away, but leaves ignored signals ignored. They are
    ignored no earlier, as processes that begin here would inherit it.
    """
    global _has_ended
    _has_ended = True
    for number in heeded():
        signal.signal(number, lambda *_: None)
    atexit.register(ignore)


def ignore() -> None:
    """Ignore both signals from now on."""
    for number in heeded():
        signal.signal(number, signal.SIG_IGN)


def _end_soon(number: Any, frame: Any) -> None:
    start(_end_late, "kepler-end")
    interrupt(number, frame)


def _end_late() -> None:
    """End this process if it has not ended by itself in a few seconds."""
    time.sleep(_HURRY_SECONDS)
    if not _has_ended:
        say("interrupted")
    flush()
    os._exit(EXIT_INTERRUPTED)


def check() -> None:
    """Raise KeyboardInterrupt again if one is pending because other code caught it."""
    if _requested:
        raise KeyboardInterrupt


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Delay a first interrupt until the end of the block; a second one is not delayed."""
    global _held
    _held = True
    try:
        yield
    finally:
        _held = False
    check()


def interrupt(_number: Any, _frame: Any) -> None:
    """Handle a signal: raise KeyboardInterrupt, unless a first one is held."""
    global _requested
    is_first = not _requested
    _requested = True
    if not (_held and is_first):
        raise KeyboardInterrupt
