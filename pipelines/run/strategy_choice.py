"""Which strategy the tasks of a run are told: the plan's choice, corrected by what groups took, once for all workers.

The rules are those of ``kepler_traverse.auto.choice``, with a batch where a plan has a group: one task tries another
strategy where that is worth it, and the tasks that follow are told the better one. Parts and digest do not depend on it.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence

from kepler_traverse.auto.choice import Choice
from kepler_traverse.multi_source.planning import Candidate

from ..output.manifest_types import Measured, Measurement
from ..output.manifest_types import StrategyChoice as Record

CLEARLY = 1.1  # by which a measured strategy must be the faster one: each change has all workers plan anew
_ALIKE = 1.5  # factor within which the estimates of a run and of its resumption are of the same machine
_TRIED_GROUPS = 2  # the first one also compiles and warms up, and is not measured


class StrategyChoice:
    """The strategy of a run's tasks, and what is known of each candidate.

    Parameters
    ----------
    candidates : sequence of Candidate
        The first is the one chosen by estimates; seconds are those of one batch.
    batch_size, n_sources : int
        Sources of a batch, and of the run.
    across_batches : bool
        Whether groups have sources of several batches.

    Attributes
    ----------
    strategy : str
        What tasks are told.
    record : dict
        What the manifest holds: the first choice, candidates with estimates for the whole run, measurements and switches.
        The same dict throughout, changed in place.
    """

    def __init__(self, candidates: Sequence[Candidate], batch_size: int, n_sources: int, across_batches: bool = False):
        self._batch_size = batch_size
        self._seconds = {each.name: each.seconds for each in candidates}
        self._trial_sizes: dict[str, int] = {}
        for each in candidates:
            group = each.group if across_batches else min(each.group, batch_size)
            self._trial_sizes[each.name] = -(-_TRIED_GROUPS * group // batch_size)
        self._choice = Choice(
            {name: functools.partial(operator.mul, seconds) for name, seconds in self._seconds.items()},
            dict.fromkeys(self._seconds, 1),
        )
        self._pending = ""  # the strategy that is tried now
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
        """Take over what an earlier run has measured, if its estimates were about the same ones."""
        if not before:
            return
        now = {each["strategy"]: each["estimated"] for each in self.record["candidates"]}
        then = {each["strategy"]: each["estimated"] for each in before["candidates"]}
        if now.keys() != then.keys() or not all(
            now[name] <= _ALIKE * then[name] and then[name] <= _ALIKE * now[name] for name in now
        ):
            return
        if not {before["first"], *(each["strategy"] for each in before["switches"])} <= now.keys():
            return  # somebody has changed the manifest
        for each in before["measured"]:
            if each["strategy"] in now and each["sources"]:
                self._note(each["strategy"], each["sources"], each["seconds"])
        self.record["first"], self.record["switches"] = before["first"], list(before["switches"])
        self.strategy = current(self.record)

    def note(self, reported: str, measured: Measured | None) -> None:
        """Note what the groups of a part took, if they ran the strategy that the task was told."""
        if not measured:
            return
        name, sources, seconds = measured
        if name == reported and name in self._seconds and sources > 0:
            self._note(name, sources, seconds)

    def _note(self, name: str, sources: int, seconds: float) -> None:
        self._choice.note(name, sources / self._batch_size, seconds)
        entry = next((each for each in self.record["measured"] if each["strategy"] == name), None)
        if entry is None:
            entry = Measurement(strategy=name, sources=0, seconds=0.0, estimated=0.0)
            self.record["measured"].append(entry)
        entry["sources"] += sources
        entry["seconds"] = round(entry["seconds"] + seconds, 6)
        entry["estimated"] = _rounded(entry["estimated"] + self._seconds[name] * sources / self._batch_size)

    def decide(self, left: int) -> str | None:
        """Decide how the batches that no worker has begun go on.

        Returns
        -------
        str or None
            What to say of it, where tasks that have been given out are to be told something else; None if nothing changes.
        """
        if self._pending or left <= 0:
            return None
        name, _ = self._choice.next(self.strategy, left)
        if name == self.strategy:
            return None
        before, rate, other = self.strategy, self._rate(self.strategy), self._rate(name)
        if other is None:
            size = self._trial_sizes[name]
            if size >= left:
                return None
            self._pending, self._next_trial = name, (name, size)
            return f"one task tries strategy {name}: {before} takes {rate}, estimated {_per_source(self._of_source(before))}"
        if self._choice.expected(before, left) < CLEARLY * self._choice.expected(name, left):
            return None
        self.strategy = name
        done = sum(each["sources"] for each in self.record["measured"])
        self.record["switches"].append({"strategy": name, "measured_sources": done})
        return f"strategy {name} goes on: it takes {other}, {before} {rate}"

    @property
    def is_trying(self) -> bool:
        """Whether a trial is under way, so that what is told now may soon be another strategy."""
        return bool(self._pending)

    def take_trial(self) -> tuple[str, int] | None:
        """The strategy that the next task is to try and how many batches it gets, once; None if there is nothing to try."""
        found, self._next_trial = self._next_trial, None
        return found

    def end_trial(self, lost: bool = False) -> str | None:
        """The task of a trial has ended, or was lost after it had begun: what was not measured is not tried again."""
        name, self._pending = self._pending, ""
        if self._rate(name) is not None:
            return None
        self._left_out.add(name)
        self._choice.keep({each: 1 for each in self._seconds if each not in self._left_out})
        return f"strategy {name} is not tried again: {'its worker was lost' if lost else 'the worker could not measure it'}"

    def drop_trial(self) -> None:
        """The task of a trial was lost before it had begun; another one may try."""
        self._pending = ""

    def _of_source(self, name: str) -> float:
        return self._seconds[name] / self._batch_size

    def _rate(self, name: str) -> str | None:
        """What a source took by what was measured."""
        for each in self.record["measured"]:
            if each["strategy"] == name:
                return _per_source(each["seconds"] / each["sources"])
        return None


def current(record: Record) -> str:
    """The strategy that a run's tasks were told last."""
    return record["switches"][-1]["strategy"] if record["switches"] else record["first"]


def sentence(record: Record | None) -> str:
    """Say in one sentence what was chosen, what was measured, and what went on; "" where there was no choice."""
    if not record:
        return ""
    estimates = {each["strategy"]: each["estimated"] for each in record["candidates"]}
    others = ", ".join(f"{name} {_seconds(value)}" for name, value in estimates.items() if name != record["first"])
    text = f"{record['first']} was chosen by estimates for all sources: {_seconds(estimates.get(record['first']))}"
    text += f", {others}" if others else ""
    took = [
        f"{each['strategy']} {each['sources']:,} sources in {_seconds(each['seconds'])} "
        f"(estimated {_seconds(each['estimated'])})"
        for each in record["measured"]
    ]
    text += f"; measured: {', '.join(took)}" if took else ""
    for switch in record["switches"]:
        text += f"; {switch['strategy']} went on after {switch['measured_sources']:,} measured sources"
    return text


def _seconds(value: float | None) -> str:
    return "not estimated" if value is None else f"{value:.3g} s"


def _per_source(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms per source"


def _rounded(seconds: float) -> float:
    return float(f"{min(seconds, 1e12):.4g}") if math.isfinite(seconds) else 1e12
