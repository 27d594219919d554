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
    """Adds up the time during which at least one thread compiles, and per thread the time during
    which that thread compiles or waits for another that does.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._active = 0  # compilations that have begun and not ended
        self._since = 0.0  # when the first of these began
        self._total = 0.0  # seconds of those that have ended
        # per thread: ``depth``, how deep compilations are nested; ``since``, the clock of all
        # threads when the outermost began; and ``total``, the seconds of those that have ended
        self._own = threading.local()

    def begin(self) -> None:
        """A compilation begins."""
        with self._lock:
            if not self._active:
                self._since = time.perf_counter()
            self._active += 1

    def end(self) -> None:
        """A compilation ends."""
        with self._lock:
            self._active -= 1
            if self._active:
                return
            seconds = time.perf_counter() - self._since
            self._total += seconds
        _LOG.debug("compiled for %.3g s", seconds)

    def seconds(self) -> float:
        """Return the time of all threads, that of compilations that have not ended included."""
        with self._lock:
            if not self._active:
                return self._total
            return self._total + time.perf_counter() - self._since

    def enter(self) -> None:
        """This thread begins to compile, or to wait for another that compiles."""
        depth = getattr(self._own, "depth", 0)
        if not depth:
            self._own.since = self.seconds()
        self._own.depth = depth + 1

    def leave(self) -> None:
        """This thread ends what it entered last."""
        depth = getattr(self._own, "depth", 0)
        if not depth:  # it was entered before ``listen`` was called
            return
        self._own.depth = depth - 1
        if depth == 1:
            self._own.total = getattr(self._own, "total", 0.0) + self.seconds() - self._own.since

    def thread_seconds(self) -> float:
        """Return the time of this thread."""
        return getattr(self._own, "total", 0.0)


_CLOCK = _Clock()
_is_listening = False


def listen() -> None:
    """Measure from now on what Numba compiles, in all threads."""
    global _is_listening
    if _is_listening:
        return
    _is_listening = True
    from numba.core import event

    class Listener(event.Listener):
        def __init__(self, on_start: Callable[[], None], on_end: Callable[[], None]):
            self._on_start = on_start
            self._on_end = on_end

        def on_start(self, _event: Any) -> None:
            self._on_start()

        def on_end(self, _event: Any) -> None:
            self._on_end()

    event.register("numba:compile", Listener(_CLOCK.begin, _CLOCK.end))
    event.register("numba:compiler_lock", Listener(_CLOCK.enter, _CLOCK.leave))


@contextlib.contextmanager
def compiling() -> Iterator[None]:
    """Count the time of the block as compiling; for compilers other than Numba."""
    _CLOCK.enter()
    _CLOCK.begin()
    try:
        yield
    finally:
        _CLOCK.end()
        _CLOCK.leave()


@contextlib.contextmanager
def waiting() -> Iterator[None]:
    """Count the time of the block, in which another thread compiles, as that of this thread."""
    _CLOCK.enter()
    try:
        yield
    finally:
        _CLOCK.leave()


def seconds() -> float:
    """Return the seconds during which at least one thread of this process compiled."""
    return _CLOCK.seconds()


def thread_seconds() -> float:
    """Return the seconds that this thread has compiled, or waited for another thread that compiled."""
    return _CLOCK.thread_seconds()
