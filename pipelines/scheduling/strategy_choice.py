"""Choose the strategy of a run's tasks: the plan's choice, corrected by measured times, once for
all workers.

The rules are those of ``kepler_traverse.auto.choice``, applied to batches instead of groups. If it
seems worth it, one task tries another strategy, and later tasks use the faster one. Parts and
digest do not depend on the choice.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence

from kepler_traverse.auto.choice import Choice
from kepler_traverse.multi_source.candidates import Candidate

from ..output.choice_text import current_strategy
from ..output.manifest_types import Measured, Measurement
from ..output.manifest_types import StrategyChoice as Record

# minimum speedup for a change of strategy, because each change makes all workers plan again
CLEARLY = 1.1
# maximum ratio of the estimates of a run and of its resumption, if both are of the same machine
_MAX_ESTIMATE_RATIO = 1.5
# groups of a trial; the first one also compiles and warms up, and is not measured
_TRIAL_GROUPS = 2


class StrategyChoice:
    """The strategy of a run's tasks, with estimates and measurements of each candidate.

    ``candidates``: the strategies; the first was chosen by estimates. Their ``seconds`` are
    estimates per batch, and ``group`` is the number of sources that each searches together.
    ``batch_size``: sources per batch. ``n_sources``: of the run. ``across_batches``: whether a
    group may span several batches.

    Attributes
    ----------
    strategy : str
        The strategy of the next tasks.
    record : dict
        The entry of the choice in the manifest: candidates, measurements and switches. It is
        modified in place.
    """

    def __init__(
        self,
        candidates: Sequence[Candidate],
        batch_size: int,
        n_sources: int,
        across_batches: bool = False,
    ):
        self._batch_size = batch_size
        # estimated seconds per batch, by strategy
        self._seconds = {candidate.name: candidate.seconds for candidate in candidates}
        self._trial_sizes: dict[str, int] = {}  # batches of a trial, by strategy
        for candidate in candidates:
            group = candidate.group
            if not across_batches:
                group = min(group, batch_size)
            # as many batches as hold the groups of a trial, rounded up
            self._trial_sizes[candidate.name] = -(-_TRIAL_GROUPS * group // batch_size)

        # ``Choice`` decides for units of work in groups. Here a unit is a batch, and a group is one
        # unit. The estimate for n batches is n times the seconds of one.
        estimates = {
            name: functools.partial(operator.mul, seconds)
            for name, seconds in self._seconds.items()
        }
        self._choice = Choice(estimates, dict.fromkeys(self._seconds, 1))
        self._trial = ""  # the strategy of the current trial; "" if there is none
        # strategy and batches of a trial whose task is not submitted yet; None if there is none
        self._next_trial: tuple[str, int] | None = None
        self._left_out: set[str] = set()  # strategies that could not be measured

        self.strategy = candidates[0].name
        self.record: Record = {
            "first": self.strategy,
            "candidates": [
                {
                    "strategy": candidate.name,
                    "estimated": _rounded(candidate.seconds * n_sources / batch_size),
                    "sources_at_once": candidate.group,
                    "bytes": candidate.nbytes,
                }
                for candidate in candidates
            ],
            "measured": [],
            "switches": [],
        }

    def resume(self, before: Record | None) -> None:
        """Take over strategy and measurements of an earlier run, if its estimates were about the
        same.

        Others are of another machine, where measured times would mislead. ``before``: the record in
        the manifest of the earlier run; None if it has none.
        """
        if not before:
            return

        estimates = _estimates(self.record)
        earlier = _estimates(before)
        if estimates.keys() != earlier.keys():
            return
        for name, seconds in estimates.items():
            # the larger of the two estimates must not be far above the smaller one
            larger = max(seconds, earlier[name])
            if larger > _MAX_ESTIMATE_RATIO * min(seconds, earlier[name]):
                return
        used = {before["first"], *(switch["strategy"] for switch in before["switches"])}
        if not used <= estimates.keys():
            return  # the manifest was modified

        for measured in before["measured"]:
            if measured["strategy"] in estimates and measured["sources"]:
                self._add_time(measured["strategy"], measured["sources"], measured["seconds"])
        self.record["first"] = before["first"]
        self.record["switches"] = list(before["switches"])
        self.strategy = current_strategy(self.record)

    def note(self, requested: str, measured: Measured | None) -> None:
        """Record the time of a part's groups, if they ran the strategy that the task named.

        ``requested``: that strategy. ``measured``: the strategy that ran, number of sources, and
        seconds; None if no group was measured.
        """
        if not measured:
            return
        name, n_sources, seconds = measured
        if name == requested and name in self._seconds and n_sources > 0:
            self._add_time(name, n_sources, seconds)

    def _add_time(self, name: str, n_sources: int, seconds: float) -> None:
        """Add the ``seconds`` that ``n_sources`` sources took with the strategy ``name`` to the
        choice and to the record.
        """
        self._choice.note(name, n_sources / self._batch_size, seconds)
        entry = self._measurement(name)
        if entry is None:
            entry = Measurement(strategy=name, sources=0, seconds=0.0, estimated=0.0)
            self.record["measured"].append(entry)
        entry["sources"] += n_sources
        entry["seconds"] = round(entry["seconds"] + seconds, 6)
        entry["estimated"] = _rounded(
            entry["estimated"] + self._seconds[name] * n_sources / self._batch_size
        )

    def _measurement(self, name: str) -> Measurement | None:
        """Return the entry of a strategy in the record; None if it was not measured."""
        for measurement in self.record["measured"]:
            if measurement["strategy"] == name:
                return measurement
        return None

    def decide(self, left: int) -> str | None:
        """Decide the strategy of the ``left`` batches that no worker has begun.

        Return a message if something changes, so that tasks that are already submitted must be
        recalled: one task tries another strategy, or all tasks use another one from now on. Return
        None if nothing changes, as while a trial is under way.
        """
        if self._trial or left <= 0:
            return None
        current = self.strategy
        # The second value, a number of batches, is not used: a trial has its own size, and
        # ``TaskSizer`` sizes other tasks.
        name, _ = self._choice.next(current, left)
        if name == current:
            return None

        # A strategy that was not measured is tried first, if batches are left after the trial.
        current_rate = self._rate(current)
        rate = self._rate(name)
        if rate is None:
            size = self._trial_sizes[name]
            if size >= left:
                return None
            self._trial = name
            self._next_trial = (name, size)
            estimate = _per_source(self._seconds[current] / self._batch_size)
            return (
                f"one task tries strategy {name}: {current} takes {current_rate}, "
                f"estimated {estimate}"
            )

        # A strategy that was measured takes over if it is clearly faster for the batches left.
        if self._choice.expected(current, left) < CLEARLY * self._choice.expected(name, left):
            return None
        self.strategy = name
        n_measured = sum(measured["sources"] for measured in self.record["measured"])
        self.record["switches"].append({"strategy": name, "measured_sources": n_measured})
        return f"strategy {name} goes on: it takes {rate}, {current} {current_rate}"

    @property
    def is_trying(self) -> bool:
        """Whether a trial is under way, so that the strategy may soon change."""
        return bool(self._trial)

    def take_trial(self) -> tuple[str, int] | None:
        """Return strategy and number of batches of a pending trial, only once; None if no trial is
        pending.
        """
        trial = self._next_trial
        self._next_trial = None
        return trial

    def end_trial(self, lost: bool = False) -> str | None:
        """End a trial whose task has ended, or was lost after it began (``lost``).

        If the strategy that was tried has no measurement even now, it is not tried again, and a
        message that says so is returned; else None.
        """
        name = self._trial
        self._trial = ""
        if self._rate(name) is not None:
            return None
        self._left_out.add(name)
        # Only the other strategies may be chosen from now on, each in groups of one batch as
        # before.
        self._choice.keep({other: 1 for other in self._seconds if other not in self._left_out})
        why = "the worker could not measure it"
        if lost:
            why = "its worker was lost"
        return f"strategy {name} is not tried again: {why}"

    def drop_trial(self) -> None:
        """Cancel a trial whose task was lost before it began; the strategy may be tried again."""
        self._trial = ""

    def _rate(self, name: str) -> str | None:
        """Return the measured time per source as text; None if there is no measurement."""
        measurement = self._measurement(name)
        if measurement is None:
            return None
        return _per_source(measurement["seconds"] / measurement["sources"])


def _estimates(record: Record) -> dict[str, float]:
    """Return the estimated seconds of all sources by strategy."""
    return {candidate["strategy"]: candidate["estimated"] for candidate in record["candidates"]}


def _per_source(seconds: float) -> str:
    """Return seconds per source as text."""
    return f"{1e3 * seconds:.3g} ms per source"


def _rounded(seconds: float) -> float:
    """Return seconds rounded to four digits, but 1e12 at most. An estimate that is not known is not
    finite, and becomes 1e12, too, since the manifest allows only finite numbers.
    """
    if math.isfinite(seconds):
        return float(f"{min(seconds, 1e12):.4g}")
    return 1e12
