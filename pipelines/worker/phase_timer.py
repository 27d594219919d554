"""Seconds by phase of what a worker does: load, traverse, certify, rows, write."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator


class Phases:
    """Seconds by phase of one part; the time of a nested phase does not count for the outer one."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(("load", "traverse", "certify", "rows", "write"), 0.0)
        self._started = time.perf_counter()
        self._within = 0.0  # seconds of nested phases that have ended since the current phase began

    @contextlib.contextmanager
    def __call__(self, phase: str) -> Iterator[Lap]:
        lap, before = Lap(), self._within
        self._within = 0.0
        try:
            yield lap
        finally:
            lap.seconds = time.perf_counter() - lap.started
            self.seconds[phase] += lap.seconds - self._within
            self._within = before + lap.seconds

    @property
    def elapsed(self) -> float:
        return round(time.perf_counter() - self._started, 6)

    def rounded(self) -> dict[str, float]:
        return {name: round(value, 6) for name, value in self.seconds.items()}


class Lap:
    """One timed interval of a phase; ``seconds`` is set when it ends."""

    def __init__(self) -> None:
        self.started = time.perf_counter()
        self.seconds = 0.0
