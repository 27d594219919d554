"""Seconds by phase of what a worker does: load, compile, traverse, certify, rows, write."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from kepler_traverse.cpu import compile_clock


class PhaseTimer:
    """Seconds by phase of one part; the time of a nested phase does not count for the outer one.

    What a thread compiles, or waits for another thread to compile, is a phase of its own.
    ``seconds`` has the sum of each phase. Callers may change it.
    """

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(
            ("load", "compile", "traverse", "certify", "rows", "write"), 0.0
        )
        self._started = time.perf_counter()  # of ``elapsed``
        self._nested = 0.0  # seconds of nested phases that have ended since the current phase began
        self._nested_compiled = 0.0  # of them, those of compiling

    @contextlib.contextmanager
    def __call__(self, phase: str) -> Iterator[Lap]:
        """Add the time of a block to a phase; to none if it is ``""``, as time is that this thread
        waits for others.
        """
        lap = Lap()
        nested_before = self._nested
        compiled_before = self._nested_compiled
        self._nested = 0.0
        self._nested_compiled = 0.0
        compiled_at_start = compile_clock.thread_seconds()
        try:
            yield lap
        finally:
            elapsed = time.perf_counter() - lap.started
            compiled = compile_clock.thread_seconds() - compiled_at_start
            lap.seconds = elapsed - compiled

            # Nested phases have added their seconds themselves.
            own_compiled = compiled - self._nested_compiled
            self.seconds["compile"] += own_compiled
            if phase:
                self.seconds[phase] += elapsed - self._nested - own_compiled

            # For the phase around this one, this one is nested.
            self._nested = nested_before + elapsed
            self._nested_compiled = compiled_before + compiled

    def add(self, other: PhaseTimer) -> None:
        """Add the seconds of work that other threads have done for this part."""
        for phase, seconds in other.seconds.items():
            self.seconds[phase] += seconds

    @property
    def elapsed(self) -> float:
        """Seconds since the start, without those of compiling."""
        return round(time.perf_counter() - self._started - self.seconds["compile"], 6)

    def rounded(self) -> dict[str, float]:
        """Return the seconds by phase, in whole microseconds."""
        return {name: round(value, 6) for name, value in self.seconds.items()}


class Lap:
    """One timed interval of a phase; ``seconds``, without those of compiling, is set when it ends."""

    def __init__(self) -> None:
        self.started = time.perf_counter()
        self.seconds = 0.0
