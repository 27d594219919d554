"""Seconds by phase of what a worker does: load, compile, traverse, certify, rows, write."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from kepler_traverse.cpu import compile_clock


class Phases:
    """Seconds by phase of one part; the time of a nested phase does not count for the outer one.

    What a thread compiles, or waits for another thread to compile, is a phase of its own.
    """

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(
            ("load", "compile", "traverse", "certify", "rows", "write"), 0.0
        )
        self._started = time.perf_counter()
        self._within = 0.0  # seconds of nested phases that have ended since the current phase began
        self._compiled_within = 0.0  # of them, those of compiling

    @contextlib.contextmanager
    def __call__(self, phase: str) -> Iterator[Lap]:
        """Add the time of a block to a phase; to none if it is ``""``, as time is that this thread
        waits for others.
        """
        lap = Lap()
        before = self._within
        compiled_before = self._compiled_within
        self._within = self._compiled_within = 0.0
        compiled_since = compile_clock.thread_seconds()
        try:
            yield lap
        finally:
            took = time.perf_counter() - lap.started
            compiled = compile_clock.thread_seconds() - compiled_since
            lap.seconds = took - compiled
            own_compiled = compiled - self._compiled_within
            self.seconds["compile"] += own_compiled
            if phase:
                self.seconds[phase] += took - self._within - own_compiled
            self._within = before + took
            self._compiled_within = compiled_before + compiled

    def add(self, other: Phases) -> None:
        """Add the seconds of work that other threads have done for this part."""
        for phase, seconds in other.seconds.items():
            self.seconds[phase] += seconds

    @property
    def elapsed(self) -> float:
        """Seconds since the start, without those of compiling."""
        return round(time.perf_counter() - self._started - self.seconds["compile"], 6)

    def rounded(self) -> dict[str, float]:
        return {name: round(value, 6) for name, value in self.seconds.items()}


class Lap:
    """One timed interval of a phase; ``seconds``, without those of compiling, is set when it ends."""

    def __init__(self) -> None:
        self.started = time.perf_counter()
        self.seconds = 0.0
