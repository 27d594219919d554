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
_ALIKE = 1.5
# groups of a trial; the first one also compiles and warms up, and is not measured
_TRIED_GROUPS = 2


class StrategyChoice:
    """The strategy of a run's tasks, with estimates and measurements of each candidate.

    Of ``candidates`` the first was chosen by estimates; ``seconds`` are per batch.
    ``across_batches``: whether a group may span several batches.

    Attributes
    ----------
    strategy : str
        The strategy of the next tasks.
    record : dict
        The entry in the manifest, which is modified in place.
    """

    def __init__(
        self,
        candidates: Sequence[Candidate],
        batch_size: int,
        n_sources: int,
        across_batches: bool = False,
    ):
        self._batch_size = batch_size
        self._seconds = {each.name: each.seconds for each in candidates}
        self._trial_sizes: dict[str, int] = {}
        for each in candidates:
            group = each.group if across_batches else min(each.group, batch_size)
            self._trial_sizes[each.name] = -(-_TRIED_GROUPS * group // batch_size)
        self._choice = Choice(
            {
                name: functools.partial(operator.mul, seconds)
                for name, seconds in self._seconds.items()
            },
            dict.fromkeys(self._seconds, 1),
        )
        self._pending = ""  # the strategy of the current trial
        self._next_trial: tuple[str, int] | None = None
        self._left_out: set[str] = set()
        self.strategy = candidates[0].name
        self.record: Record = {
            "first": self.strategy,
            "candidates": [
                {
                    "strategy": each.name,
                    "estimated": _rounded(each.seconds * n_sources / batch_size),
                    "sources_at_once": each.group,
                    "bytes": each.nbytes,
                }
                for each in candidates
            ],
            "measured": [],
            "switches": [],
        }

    def resume(self, before: Record | None) -> None:
        """Take over the measurements of an earlier run, if its estimates were about the same."""
        if not before:
            return
        now = {each["strategy"]: each["estimated"] for each in self.record["candidates"]}
        then = {each["strategy"]: each["estimated"] for each in before["candidates"]}
        if now.keys() != then.keys() or not all(
            now[name] <= _ALIKE * then[name] and then[name] <= _ALIKE * now[name] for name in now
        ):
            return
        if not {before["first"], *(each["strategy"] for each in before["switches"])} <= now.keys():
            return  # the manifest was modified
        for each in before["measured"]:
            if each["strategy"] in now and each["sources"]:
                self._note(each["strategy"], each["sources"], each["seconds"])
        self.record["first"] = before["first"]
        self.record["switches"] = list(before["switches"])
        self.strategy = current_strategy(self.record)

    def note(self, reported: str, measured: Measured | None) -> None:
        """Record the time of a part's groups, if they ran the strategy that the task named."""
        if not measured:
            return
        name, sources, seconds = measured
        if name == reported and name in self._seconds and sources > 0:
            self._note(name, sources, seconds)

    def _note(self, name: str, sources: int, seconds: float) -> None:
        """Add the time of some sources with a strategy to the choice and to the record."""
        self._choice.note(name, sources / self._batch_size, seconds)
        entry = next((each for each in self.record["measured"] if each["strategy"] == name), None)
        if entry is None:
            entry = Measurement(strategy=name, sources=0, seconds=0.0, estimated=0.0)
            self.record["measured"].append(entry)
        entry["sources"] += sources
        entry["seconds"] = round(entry["seconds"] + seconds, 6)
        entry["estimated"] = _rounded(
            entry["estimated"] + self._seconds[name] * sources / self._batch_size
        )

    def decide(self, left: int) -> str | None:
        """Decide the strategy of the batches that no worker has begun.

        Return a message if tasks that are already submitted must be recalled, None if nothing
        changes.
        """
        if self._pending or left <= 0:
            return None
        name, _ = self._choice.next(self.strategy, left)
        if name == self.strategy:
            return None
        before = self.strategy
        rate = self._rate(self.strategy)
        other = self._rate(name)
        if other is None:
            size = self._trial_sizes[name]
            if size >= left:
                return None
            self._pending = name
            self._next_trial = (name, size)
            return (
                f"one task tries strategy {name}: {before} takes {rate}, estimated "
                f"{_per_source(self._of_source(before))}"
            )
        if self._choice.expected(before, left) < CLEARLY * self._choice.expected(name, left):
            return None
        self.strategy = name
        done = sum(each["sources"] for each in self.record["measured"])
        self.record["switches"].append({"strategy": name, "measured_sources": done})
        return f"strategy {name} goes on: it takes {other}, {before} {rate}"

    @property
    def is_trying(self) -> bool:
        """Whether a trial is under way, so that the strategy may soon change."""
        return bool(self._pending)

    def take_trial(self) -> tuple[str, int] | None:
        """Return strategy and number of batches of a pending trial, only once; None if no trial is
        pending.
        """
        trial = self._next_trial
        self._next_trial = None
        return trial

    def end_trial(self, lost: bool = False) -> str | None:
        """End a trial whose task ended, or was lost after it began; a strategy without a
        measurement is not tried again.
        """
        name = self._pending
        self._pending = ""
        if self._rate(name) is not None:
            return None
        self._left_out.add(name)
        self._choice.keep({each: 1 for each in self._seconds if each not in self._left_out})
        return (
            f"strategy {name} is not tried again: "
            f"{'its worker was lost' if lost else 'the worker could not measure it'}"
        )

    def drop_trial(self) -> None:
        """Cancel a trial whose task was lost before it began; the strategy may be tried again."""
        self._pending = ""

    def _of_source(self, name: str) -> float:
        return self._seconds[name] / self._batch_size

    def _rate(self, name: str) -> str | None:
        """Return the measured time per source as text; None if there is no measurement."""
        for each in self.record["measured"]:
            if each["strategy"] == name:
                return _per_source(each["seconds"] / each["sources"])
        return None


def _per_source(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms per source"


def _rounded(seconds: float) -> float:
    """Return seconds with four digits; a large number for those that are not known."""
    if math.isfinite(seconds):
        return float(f"{min(seconds, 1e12):.4g}")
    return 1e12
