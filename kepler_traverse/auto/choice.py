"""Choose the strategy of the next group of sources from estimates, corrected by the measured times
of earlier groups.

The error of an estimate is a factor that differs between strategies. A strategy therefore begins
with few sources where that costs little, and its measured time corrects its estimate. Another
strategy gets a group if it is expected to be faster for the remaining sources. It also gets one if
it may be faster and the trial is short compared with the remaining time. All strategies return the
same bits, so only the run time depends on the choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

FASTER = 1.3  # expected speedup for the remaining sources at which another strategy gets a group
DOUBT = 5.0  # factor by which an estimate may be wrong in either direction
TRIAL = 0.01  # fraction of the remaining time that a trial may take if no speedup is expected
# remaining seconds from which on a trial pays; in shorter runs trials cost more than they gained
WORTH = 0.5
_SMALLEST = 16  # a trial has the sources of a group, halved at most down to 1 / _SMALLEST of them
_SETTLED = 2  # groups after which a strategy is judged: the first one includes loading and warm-up
_RECENT = 4  # number of latest groups by which a strategy is judged


class Measured(NamedTuple):
    """Measured and estimated seconds of one group of sources."""

    strategy: str  # its name
    sources: float  # of the group
    seconds: float  # that the group took
    estimated: float  # seconds before any correction


class Choice:
    """Estimates and measurements of the candidate strategies, by which each group of sources gets
    one.

    - ``estimates``: for each strategy by name, a function of the number of sources that returns
      seconds.
    - ``groups``: for each strategy, the largest number of sources of a group.
    - ``history``: the groups that were ``Measured``, in their order.
    - ``_ratios``: for each strategy, the measured seconds of each of its groups divided by the
      estimate.
    """

    def __init__(
        self, estimates: Mapping[str, Callable[[float], float]], groups: Mapping[str, int]
    ):
        """Begin without a measurement. ``estimates`` and ``groups`` are those that the class
        describes.
        """
        self._estimates = estimates
        self._groups = groups
        self._ratios: dict[str, list[float]] = {}
        self.history: list[Measured] = []

    def note(self, name: str, sources: float, seconds: float) -> None:
        """Record that the strategy ``name`` took some seconds for a group of so many sources."""
        estimated = self._estimates[name](sources)
        self.history.append(Measured(name, sources, seconds, estimated))
        if 0 < estimated < float("inf"):  # else there is no ratio
            self._ratios.setdefault(name, []).append(seconds / estimated)

    def expected(self, name: str, sources: int) -> float:
        """Return the expected seconds of the strategy ``name`` for a number of sources: the
        estimate times the measured correction.
        """
        return self._estimates[name](sources) * self.factor(name)

    def factor(self, name: str) -> float:
        """Return the measured correction of the estimates of the strategy ``name``: the smallest
        ratio of measured to estimated seconds of its latest groups; 1 without a measurement.

        The smallest ratio is taken because disturbances only add time.
        """
        return min(self._ratios.get(name, [1.0])[-_RECENT:])

    def keep(self, groups: Mapping[str, int]) -> None:
        """Restrict the choice to the strategies that ``groups`` names, with these largest sizes of
        a group.
        """
        self._estimates = {name: self._estimates[name] for name in groups}
        self._groups = groups

    def next(self, current: str, left: int) -> tuple[str, int]:
        """Return the strategy and the number of sources of the next group.

        ``current`` is the strategy now in use, which also has the first group of all. ``left`` is
        the number of sources that remain; no group is larger.
        """
        # The strategies that have had a group. The best of them goes on, unless another is worth a
        # trial.
        measured = [name for name in self._estimates if name in self._ratios]
        if not measured:
            return current, self._first_group(current, left)
        best = min(measured, key=lambda name: self.expected(name, left))
        # A first group that was slow may have included loading: try it again with few sources.
        if len(self._ratios[best]) < _SETTLED and self.factor(best) > FASTER:
            return best, self._first_group(best, left)
        trial = self._trial(best, left)
        if trial is not None:
            return trial
        return best, min(self._groups[best], left)

    def _trial(self, best: str, left: int) -> tuple[str, int] | None:
        """Return a strategy that has had no group and is worth a trial, and the number of sources
        of the trial; None if no strategy is.

        ``best`` is the strategy that would otherwise go on, and ``left`` the number of sources that
        remain.
        """
        expected = self.expected(best, left)
        if expected < WORTH:
            return None
        # the strategies without a group, those with the shortest estimate first
        others = [name for name in self._estimates if name not in self._ratios]
        for name in sorted(others, key=lambda other: self._estimates[other](left)):
            size = self._trial_size(name, left, TRIAL * expected)
            cost = self._estimates[name](size)
            is_faster = self._estimates[name](left) * FASTER <= expected
            may_be_faster = self._estimates[name](left) * FASTER <= DOUBT * expected
            if size < left and (is_faster or (may_be_faster and cost <= TRIAL * expected)):
                return name, size
        return None

    def _first_group(self, name: str, left: int) -> int:
        """Return the number of sources of the first group of the strategy ``name``.

        It is that of a whole group. But it is smaller if another strategy may be faster, and
        splitting the sources in two costs little. ``left`` is the number of sources that remain.
        """
        # Both estimates may be wrong by the factor ``DOUBT``, this strategy's too low and that of
        # another strategy too high.
        seconds_at_once = self._estimates[name](left)
        doubtful = any(
            self._estimates[other](left) <= DOUBT * DOUBT * seconds_at_once
            for other in self._estimates
            if other != name
        )
        if not doubtful or self.factor(name) * seconds_at_once < WORTH:
            return min(self._groups[name], left)
        # A strategy is judged after ``_SETTLED`` groups: each gets its part of a trial's time.
        size = self._trial_size(name, left, TRIAL * seconds_at_once / _SETTLED)
        if size < left:
            seconds_in_two = self._estimates[name](size) + self._estimates[name](left - size)
        else:
            seconds_in_two = seconds_at_once
        if seconds_in_two <= (1 + TRIAL) * seconds_at_once:
            return size
        return min(self._groups[name], left)

    def _trial_size(self, name: str, left: int, seconds: float) -> int:
        """Return the number of sources of a trial of the strategy ``name``: its group size, halved
        until its estimate is at most ``seconds``, or it is as small as a trial may be. It is at
        most ``left``, the number of sources that remain.
        """
        size = min(self._groups[name], left)
        smallest = max(1, size // _SMALLEST)
        while size > smallest and self._estimates[name](size) > seconds:
            size //= 2
        return size
