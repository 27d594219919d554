"""Which of several strategies answers the next group of sources: by estimates, corrected by what groups took.

An estimate may be wrong by some factor for a strategy, and by another for the next one. So a strategy begins with few
sources where that costs little, what it took corrects its estimate, and another strategy gets a group of its own where it is
expected to be faster for what is left, or where it may be and the trial is small beside that. All strategies give the same
bits, so only time depends on the choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

FASTER = 1.3  # by which another strategy is expected to be faster for what is left before it gets a group
DOUBT = 5.0  # by which an estimate may be wrong in either direction
TRIAL = 0.01  # of what is left that a trial may take by its estimate, where it is not expected to be faster
WORTH = 0.5  # seconds left from which on a trial of another strategy pays; below, trials cost more than they gained
_SMALLEST = 16  # a trial has a group's sources, or by halves down to this share of them
_SETTLED = 2  # groups from which on a strategy is judged: the first one also loads and warms up
_RECENT = 4  # groups by which a strategy is judged


class Measured(NamedTuple):
    """What a group of sources took."""

    strategy: str
    sources: int
    seconds: float
    estimated: float


class Choice:
    """The current choice, and what has been measured.

    Parameters
    ----------
    estimates : mapping of str to callable
        Of each strategy, ``estimate(n_sources)``: seconds for so many.
    groups : mapping of str to int
        Sources that each takes at once.

    Attributes
    ----------
    history : list of Measured
    """

    def __init__(self, estimates: Mapping[str, Callable[[float], float]], groups: Mapping[str, int]):
        self._estimates, self._groups = estimates, groups
        self._ratios: dict[str, list[float]] = {}
        self.history: list[Measured] = []

    def note(self, name: str, sources: float, seconds: float) -> None:
        """Take down what a group took."""
        estimated = self._estimates[name](sources)
        self.history.append(Measured(name, sources, seconds, estimated))
        if 0 < estimated < float("inf"):
            self._ratios.setdefault(name, []).append(seconds / estimated)

    def expected(self, name: str, sources: int) -> float:
        """Seconds for so many sources: the estimate, corrected where there is a measurement."""
        return self._estimates[name](sources) * self.factor(name)

    def factor(self, name: str) -> float:
        """Recent ratio of measured to estimated time; 1 without a measurement. The minimum: disturbances only add time."""
        return min(self._ratios.get(name, [1.0])[-_RECENT:])

    def keep(self, groups: Mapping[str, int]) -> None:
        """Go on with some of the strategies, and with groups of other sizes."""
        self._estimates = {name: self._estimates[name] for name in groups}
        self._groups = groups

    def next(self, current: str, left: int) -> tuple[str, int]:
        """The strategy for the next group after one of ``current``, and how many sources that has."""
        measured = [name for name in self._estimates if name in self._ratios]
        if not measured:
            return current, self._first_group(current, left)
        best = min(measured, key=lambda name: self.expected(name, left))
        if len(self._ratios[best]) < _SETTLED and self.factor(best) > FASTER:
            return best, self._first_group(best, left)
        trial = self._trial(best, left)
        return trial or (best, min(self._groups[best], left))

    def _trial(self, best: str, left: int) -> tuple[str, int] | None:
        """A strategy that has not been measured and is worth a group, and how many sources that has."""
        expected = self.expected(best, left)
        if expected < WORTH:
            return None
        others = [name for name in self._estimates if name not in self._ratios]
        for name in sorted(others, key=lambda each: self._estimates[each](left)):
            size = self._small(name, left, TRIAL * expected)
            cost = self._estimates[name](size)
            is_faster = self._estimates[name](left) * FASTER <= expected
            may_be_faster = self._estimates[name](left) * FASTER <= DOUBT * expected
            if size < left and (is_faster or (may_be_faster and cost <= TRIAL * expected)):
                return name, size
        return None

    def _first_group(self, name: str, left: int) -> int:
        """A group, or fewer sources where another strategy may turn out to be faster and parting them costs little."""
        whole = self._estimates[name](left)
        doubtful = any(self._estimates[other](left) <= DOUBT * DOUBT * whole for other in self._estimates if other != name)
        if not doubtful or self.factor(name) * whole < WORTH:
            return min(self._groups[name], left)
        size = self._small(name, left, TRIAL * whole / _SETTLED)
        parted = self._estimates[name](size) + self._estimates[name](left - size) if size < left else whole
        return size if parted <= (1 + TRIAL) * whole else min(self._groups[name], left)

    def _small(self, name: str, left: int, seconds: float) -> int:
        """Sources of a group, by halves until they are estimated to take no longer than some seconds."""
        most = size = min(self._groups[name], left)
        while size > max(1, most // _SMALLEST) and self._estimates[name](size) > seconds:
            size //= 2
        return size
