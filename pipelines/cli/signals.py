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
_HURRY_SECONDS = 5.0  # that a program has to end by itself
_is_requested = False  # whether a signal has asked this process to end
_is_held = False  # whether a first interrupt is delayed
_has_ended = False  # whether the program of ``run_heeding`` has ended


def heeded() -> list[signal.Signals]:
    """Return the signals that are to end this process: SIGINT and SIGTERM. Left out is one that
    this process ignores, as it ignores SIGINT if a shell has started it in the background.
    """
    return [
        number
        for number in (signal.SIGINT, signal.SIGTERM)
        if signal.getsignal(number) is not signal.SIG_IGN
    ]


def _handle_by(handler: Any) -> None:
    """Have a handler, as ``signal.signal`` takes it, handle the signals that end this process."""
    for number in heeded():
        signal.signal(number, handler)


def listen() -> None:
    """Raise KeyboardInterrupt on both signals from now on, so that SIGTERM from a batch system acts
    like Ctrl-C.
    """
    _handle_by(interrupt)


def run_heeding(program: Callable[[], int]) -> int:
    """Run a program, which returns its exit code, and return that code. SIGINT and SIGTERM end the
    program with the exit code 130.

    After a signal it has a few seconds to end by itself, before this process is ended: a request to
    an object store, or a kernel, may keep it from seeing the signal. Once it has ended, a signal
    does not change its exit code.
    """
    _handle_by(_end_soon)
    try:
        code = program()
        _stop_heeding()
        return code
    except KeyboardInterrupt:
        _stop_heeding()
        say("interrupted")
        return EXIT_INTERRUPTED


def _stop_heeding() -> None:
    """Let no signal end this process while its interpreter ends.

    The end of an interpreter takes its handlers away, but leaves ignored signals ignored. They are
    ignored only then, by ``atexit``, as processes that this one starts would inherit it. Until then
    a handler does nothing.
    """
    global _has_ended
    _has_ended = True
    _handle_by(lambda *_: None)
    atexit.register(ignore)


def ignore() -> None:
    """Ignore the signals that end this process from now on."""
    _handle_by(signal.SIG_IGN)


def _end_soon(number: Any, frame: Any) -> None:
    """Handle a signal: raise KeyboardInterrupt, and end this process a few seconds later if it has
    not ended by then. ``number`` and ``frame`` are passed on to ``interrupt``.
    """
    start(_end_late, "kepler-end")
    interrupt(number, frame)


def _end_late() -> None:
    """End this process after a few seconds, if it has not ended by itself before."""
    time.sleep(_HURRY_SECONDS)
    if not _has_ended:
        say("interrupted")
    flush()
    os._exit(EXIT_INTERRUPTED)  # at once: the main thread may never come to an end


def check() -> None:
    """Raise KeyboardInterrupt again if one is pending because other code caught it."""
    if _is_requested:
        raise KeyboardInterrupt


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Delay the first signal to end, if it comes within the block, until the end of the block,
    where KeyboardInterrupt is raised. A second signal is not delayed.
    """
    global _is_held
    _is_held = True
    try:
        yield
    finally:
        _is_held = False
    check()


def interrupt(_number: Any, _frame: Any) -> None:
    """Handle a signal: raise KeyboardInterrupt, unless it is the first signal and ``held`` delays
    it. Number and frame of the signal, which Python passes, are ignored: all signals end the job.
    """
    global _is_requested
    is_first = not _is_requested
    _is_requested = True
    if not (_is_held and is_first):
        raise KeyboardInterrupt
