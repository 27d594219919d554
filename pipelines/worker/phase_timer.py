"""Seconds by phase of what a worker does: load, compile, traverse, certify, rows, write."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from kepler_traverse.cpu import compile_clock


class PhaseTimer:
    """Seconds by phase of one part; the time of a nested phase does not count for the outer one.

    A timer is called with the name of a phase, and times the block: ``with timer("rows"): ...``.
    The time in which a thread compiles kernels, or waits for another thread to compile them, counts
    for the phase ``"compile"``. ``seconds`` has the sum of each phase. Callers may change it.
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
        """Add the time of a ``with`` block to a phase, and yield its ``Lap``.

        ``phase`` is a key of ``seconds``. With ``""`` the time counts for no phase, and only keeps
        it from counting for the phase around the block; this is for waiting for other threads,
        whose own timers count their work.
        """
        lap = Lap()
        # What the phase around this one has counted so far is set aside until this one ends.
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

            # Nested phases have already added their seconds, so only the rest is added here.
            own_compiled = compiled - self._nested_compiled
            self.seconds["compile"] += own_compiled
            if phase:
                self.seconds[phase] += elapsed - self._nested - own_compiled

            # The phase around this one must not count this one, with all that is nested in it.
            self._nested = nested_before + elapsed
            self._nested_compiled = compiled_before + compiled

    def add(self, other: PhaseTimer) -> None:
        """Add the seconds by phase of ``other``, the timer of another thread that has worked for
        this part.
        """
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
    """One timed interval of a phase.

    ``started`` is in seconds of ``time.perf_counter``. ``seconds`` is 0 until the interval ends,
    and then its length with nested phases, but without the time of compiling.
    """

    def __init__(self) -> None:
        self.started = time.perf_counter()
        self.seconds = 0.0
