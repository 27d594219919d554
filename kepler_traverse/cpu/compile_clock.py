"""Wall time that this process spends on compiling, by Numba and by the CUDA compiler.

Compiled code is stored on disk, so this happens once per machine. Measurements of a search exclude
it.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

_LOG = logging.getLogger("kepler_traverse")


class _Clock:
    """Adds up the seconds during which at least one thread compiles, and per thread the seconds
    during which that thread compiles or waits for another that does.

    ``begin`` and ``end`` enclose a compilation, of any thread. ``enter`` and ``leave`` enclose a
    time during which the calling thread may compile or wait. Both may be nested. Of this time, the
    seconds of the thread are those during which any thread compiled.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._active = 0  # compilations that have begun and not ended
        self._since = 0.0  # when the first active one began, by ``time.perf_counter``
        self._total = 0.0  # seconds before ``_since`` during which a thread compiled
        # per thread: ``depth``, how many times it has entered and not left; ``since``, the seconds
        # of all threads when it first did; and ``total``, its seconds before that
        self._own = threading.local()

    def begin(self) -> None:
        """Record that a compilation begins."""
        with self._lock:
            if not self._active:
                self._since = time.perf_counter()
            self._active += 1

    def end(self) -> None:
        """Record that a compilation ends; add its seconds unless another one still runs."""
        with self._lock:
            self._active -= 1
            if self._active:
                return
            seconds = time.perf_counter() - self._since
            self._total += seconds
        _LOG.debug("compiled for %.3g s", seconds)

    def seconds(self) -> float:
        """Return the seconds during which at least one thread compiled, until now."""
        with self._lock:
            if not self._active:
                return self._total
            return self._total + time.perf_counter() - self._since

    def enter(self) -> None:
        """Record that this thread begins to compile, or to wait for another that compiles."""
        depth = getattr(self._own, "depth", 0)
        if not depth:
            self._own.since = self.seconds()
        self._own.depth = depth + 1

    def leave(self) -> None:
        """Record that this thread ends what it entered last; add its seconds if nothing is left."""
        depth = getattr(self._own, "depth", 0)
        if not depth:  # it was entered before ``listen`` was called
            return
        self._own.depth = depth - 1
        if depth == 1:
            self._own.total = getattr(self._own, "total", 0.0) + self.seconds() - self._own.since

    def thread_seconds(self) -> float:
        """Return the seconds of this thread, without what it has entered and not left."""
        return getattr(self._own, "total", 0.0)


_CLOCK = _Clock()
_is_listening = False


def listen() -> None:
    """Measure from now on what Numba compiles, in all threads. Further calls do nothing."""
    global _is_listening
    if _is_listening:
        return
    _is_listening = True
    from numba.core import event

    class Listener(event.Listener):
        """Calls one function when an event of Numba begins, and another one when it ends."""

        def __init__(self, on_start: Callable[[], None], on_end: Callable[[], None]):
            self._on_start = on_start
            self._on_end = on_end

        def on_start(self, _event: Any) -> None:
            """Call the function for the beginning; Numba calls this, with an event, which is not
            used: the clock needs only that something begins.
            """
            self._on_start()

        def on_end(self, _event: Any) -> None:
            """Call the function for the end; Numba calls this, with an event, which is not used."""
            self._on_end()

    # A thread that compiles holds Numba's lock, for which other threads wait: so the event of the
    # lock covers both compiling and waiting.
    event.register("numba:compile", Listener(_CLOCK.begin, _CLOCK.end))
    event.register("numba:compiler_lock", Listener(_CLOCK.enter, _CLOCK.leave))


@contextlib.contextmanager
def compiling() -> Iterator[None]:
    """Count the time of a ``with`` block as compiling; for compilers other than Numba, whose events
    ``listen`` counts.
    """
    _CLOCK.enter()
    _CLOCK.begin()
    try:
        yield
    finally:
        _CLOCK.end()
        _CLOCK.leave()


@contextlib.contextmanager
def waiting() -> Iterator[None]:
    """Count the time of a ``with`` block during which another thread compiles as time that this
    thread compiles.
    """
    _CLOCK.enter()
    try:
        yield
    finally:
        _CLOCK.leave()


def seconds() -> float:
    """Return the seconds during which at least one thread of this process compiled."""
    return _CLOCK.seconds()


def thread_seconds() -> float:
    """Return the seconds that this thread has compiled, or waited for another thread that
    compiled.
    """
    return _CLOCK.thread_seconds()
