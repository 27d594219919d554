"""What a run is expected to take and to write, for its plan: by a trial of a few of its sources.

The trial goes the whole way of a batch: search, certificate, rows, part file. The file is written
to a temporary folder. Costs of searches are scaled by the estimates of the plan, since sources of a
group share their search; what comes after a search is in proportion to the sources.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from kepler_traverse.errors import KeplerError, several
from kepler_traverse.multi_source.planning import MultiSourcePlan
from kepler_traverse.runtime.display import in_units

from ..cli.options import Settings
from ..cli.shards import parse_shard
from ..worker.batch_context import BatchContext
from ..worker.host_limits import CPU_COUNT
from ..worker.label_plan import PROOFS
from ..worker.traversal_worker import Traverser, traverser_for
from .memory_plan import START_SECONDS
from .prepare import Prepared, with_threads
from .sizing import write_trial_part

_TRIAL_SECONDS = 1.0  # that a trial is to take
_SHORT_TRIAL_SECONDS = 0.25  # after a shorter trial more sources are tried
_TRIAL_GROWTH = 4  # times as many
_LONG_TRIAL_SECONDS = 10.0  # of the first source, after which no other is tried
# Number of sources whose distances one pass over the edges certifies: weighted distances, hops that
# fit into a byte (in graphs of at most ``_MAX_BYTE_LEVELS`` levels), and other hops.
_WEIGHTED_PER_PASS = 16
_HOPS_PER_PASS = 64
_DEEP_HOPS_PER_PASS = 32
_MAX_BYTE_LEVELS = 254
# Of hub labels: seconds of a core, and bytes, per row that is written; measured on USA-road-d.NY.
_SECONDS_PER_LABEL_ROW = 2e-7
_BYTES_PER_LABEL_ROW = 4
_NAMED_FROM = 0.05  # seconds of a step that the text names
_STEPS = {
    "read": "reading",
    "build": "building",
    "plan": "planning",
    "start": "starting workers",
    "hierarchy": "building a hierarchy",
    "search": "searching",
    "labels": "building and proving labels",
    "finish": "certifying and writing",
}


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """The seconds of a run, and its part files with their bytes.

    ``steps`` has the seconds by step: those that the plan itself has taken (``read``, ``build``,
    ``plan``), ``start`` of worker processes, ``search``, and ``finish``: certificates, rows and
    files. A run may have ``hierarchy`` or ``labels``, too, if it builds them first.
    """

    sources_tried: int  # sources of the trial; 0 if an estimate took the place of a trial
    steps: dict[str, float]  # seconds by step
    n_parts: int  # number of part files
    output_bytes: int  # of all part files

    @property
    def seconds(self) -> float:
        """Seconds of the whole run."""
        return sum(self.steps.values())

    def facts(self) -> dict[str, object]:
        """Return the fields for a plan in JSON, by name, with seconds of three digits."""
        return {
            "sources_tried": self.sources_tried,
            "seconds": float(f"{self.seconds:.3g}"),
            "steps": {name: float(f"{seconds:.3g}") for name, seconds in self.steps.items()},
            "part_files": self.n_parts,
            "output_bytes": self.output_bytes,
        }

    def __str__(self) -> str:
        """Return the text of the line ``expected`` of a plan."""
        steps = [
            f"{_STEPS[name]} {_format_seconds(seconds)}"
            for name, seconds in self.steps.items()
            if seconds >= _NAMED_FROM
        ]
        seconds_by_step = f" ({', '.join(steps)})" if steps else ""
        origin = "an estimate"
        if self.sources_tried:
            origin = f"a trial of {several(self.sources_tried, 'source')}"
        return (
            f"about {_format_seconds(self.seconds)}{seconds_by_step}; writes "
            f"{several(self.n_parts, 'part file')} of {in_units(self.output_bytes)} in all; by {origin}"
        )


def _expect_labels(settings: Settings, prepared: Prepared) -> Expectation:
    """Return what a run that writes hub labels is expected to take, by their estimate."""
    estimate = prepared.request.options.estimate
    rows = round(estimate.hubs * prepared.n_sources)
    build = estimate.seconds
    if settings.certify != "none":
        build *= 1 + PROOFS  # a proof takes ``PROOFS`` times as long as building
    steps = {name: prepared.seconds.get(name, 0.0) for name in ("read", "build", "plan")}
    steps |= {"labels": build, "finish": _SECONDS_PER_LABEL_ROW * rows}
    return Expectation(
        sources_tried=0,
        steps=steps,
        n_parts=prepared.sizing.n_batches,
        output_bytes=round(_BYTES_PER_LABEL_ROW * rows),
    )


def _format_seconds(seconds: float) -> str:
    """Return seconds as text with two digits, in minutes or hours if there are many."""
    if seconds < 100:
        return f"{seconds:.2g} s"
    if seconds < 6000:
        return f"{seconds / 60:.2g} minutes"
    return f"{seconds / 3600:,.1f} hours"


class Trial(NamedTuple):
    """What the search from some sources and their part file took: seconds, and bytes of the file."""

    sources: int  # number of sources of the trial
    search: float  # seconds
    certify: float  # seconds
    write: float  # seconds of making and writing the rows
    row_bytes: int  # for the rows
    part_bytes: int  # for what each part has once, however many rows it has
    once: float = 0.0  # seconds that the first search of a run takes for all sources
    per_part: float = 0.0  # seconds of ``write`` that a part takes whatever its sources are

    @property
    def seconds(self) -> float:
        """Seconds of the whole trial."""
        return self.search + self.certify + self.write


def expect_run(settings: Settings, prepared: Prepared) -> Expectation | str:
    """Return what a run is expected to take, or a text that says why that is not known."""
    plan = prepared.plan
    kind = prepared.request.kind
    if kind.of_labels:
        return _expect_labels(settings, prepared)
    if not isinstance(plan, MultiSourcePlan) or kind.one_search:
        return "a trial of a few sources would not show it"
    if not prepared.n_sources:
        return "there are no sources"
    # The trial has the threads that the plan was made for; all, if it does not depend on them (0).
    with with_threads(prepared.threads or CPU_COUNT):
        try:
            trial = _try_sources(prepared, plan)
        except KeplerError as error:
            return f"the first sources fail: {error}"
        if trial is None:
            return "the first sources fail"
        return _scale(settings, prepared, plan, trial)


def _try_sources(prepared: Prepared, plan: MultiSourcePlan) -> Trial | None:
    """Search from some of the sources and write a part, in about ``_TRIAL_SECONDS``; return what
    that took, or None if all of the sources fail.
    """
    traverser = traverser_for(prepared.graph, plan, prepared.request)
    # whether a part has the sums over all its sources (loads), and no rows per source
    adds_up = prepared.request.kind.adds_up
    first = _try_part(prepared, traverser, 1)  # it also does what is done once for all sources
    if first is None:
        return None
    if first.seconds > _LONG_TRIAL_SECONDS:
        return _with_fixed_times(plan, first, first, adds_up)

    # Try as many sources as fit into the time, by what the first one took: numbers of sources from
    # ``fewest`` to ``most``. At most a group, all sources, or a part, whichever is least.
    most = min(plan.group, prepared.n_sources, prepared.sizing.batch_size)
    fewest = min(most, 2 if adds_up else 1)  # two show what each source adds to a part of loads
    n_sources = most
    while n_sources > fewest and _likely_seconds(plan, first, n_sources, adds_up) > _TRIAL_SECONDS:
        n_sources = max(fewest, n_sources // 2)
    trial = _try_part(prepared, traverser, n_sources)

    # Try more, if that trial was short. The first source was slower, since it did what is done once
    # for all sources. And a part of few sources shows what a part takes, and not what a source
    # takes.
    while trial is not None and n_sources < most and trial.seconds < _SHORT_TRIAL_SECONDS:
        n_sources = min(_TRIAL_GROWTH * n_sources, most)
        trial = _try_part(prepared, traverser, n_sources)
    if trial is None:
        return None
    return _with_fixed_times(plan, first, trial, adds_up)


def _with_fixed_times(plan: MultiSourcePlan, first: Trial, last: Trial, adds_up: bool) -> Trial:
    """Return the trial ``last`` with its fields ``once`` and ``per_part``, which follow from
    comparing it with the trial ``first``, of one source. Both may be the same trial.

    ``adds_up``: whether a part has the sums over its sources, so that its size is fixed.
    """
    # What the first search took beyond what a search from one source should take, by the time of
    # the search of ``last``, it did for all sources.
    once = max(0.0, first.search - last.search * _growth(plan, last.sources, first.sources))
    per_part = 0.0
    # Writing takes a time per source, by the difference of the two trials, and a time per part.
    if adds_up:
        added_sources = max(1, last.sources - first.sources)
        per_source = max(0.0, last.write - first.write) / added_sources
        per_part = max(0.0, last.write - per_source * last.sources)
    return last._replace(once=once, per_part=per_part)


def _likely_seconds(plan: MultiSourcePlan, first: Trial, n_sources: int, adds_up: bool) -> float:
    """Estimate the seconds of a trial of ``n_sources``, by the first trial, of one source.

    ``adds_up``: whether a part has the sums over its sources.
    """
    search = first.search * _growth(plan, 1, n_sources)
    n_tables = 1 if adds_up else n_sources  # a part of loads has one table for all its sources
    return search + first.certify * _count_passes(plan, n_sources) + first.write * n_tables


def _count_passes(plan: MultiSourcePlan, n_sources: int) -> int:
    """Return how many times certificates of ``n_sources`` sources read all edges."""
    if plan.algorithm != "bfs":
        sources_per_pass = _WEIGHTED_PER_PASS
    elif plan.shape.depth <= _MAX_BYTE_LEVELS:
        sources_per_pass = _HOPS_PER_PASS
    else:
        sources_per_pass = _DEEP_HOPS_PER_PASS
    return math.ceil(n_sources / sources_per_pass)


def _growth(plan: MultiSourcePlan, from_sources: int, to_sources: int) -> float:
    """Estimate how many times as long searches from ``to_sources`` sources take as those from
    ``from_sources``; in proportion if the plan has no estimate.
    """
    before = _estimate_seconds(plan, from_sources)
    after = _estimate_seconds(plan, to_sources)
    if before > 0 and math.isfinite(before) and math.isfinite(after):
        return after / before
    return to_sources / from_sources


def _estimate_seconds(plan: MultiSourcePlan, n_sources: int) -> float:
    """Return the seconds that a plan estimates for searches from ``n_sources`` sources with its
    strategy; infinite if it has no estimate.
    """
    name = plan.strategy.name
    return next(entry.seconds for entry in plan.ranked(n_sources) if entry.name == name)


def _try_part(prepared: Prepared, traverser: Traverser, n_sources: int) -> Trial | None:
    """Return what a part of ``n_sources`` sources takes; None if all of them fail."""
    context = BatchContext()
    part = write_trial_part(prepared, traverser, n_sources, context)
    if part is None:
        return None
    seconds = context.clock.seconds
    return Trial(
        sources=part.n_sources,
        search=seconds["traverse"],
        certify=seconds["certify"],
        write=seconds["rows"] + seconds["write"],
        row_bytes=part.row_bytes,
        part_bytes=part.footer_bytes,
    )


def _scale(
    settings: Settings, prepared: Prepared, plan: MultiSourcePlan, trial: Trial
) -> Expectation:
    """Return what the whole run is expected to take, scaled up from a trial of a few sources."""
    # The parts and sources of this process, which may be one shard of the run.
    sizing = prepared.sizing
    n_parts = sizing.n_batches
    n_sources = prepared.n_sources
    shard = parse_shard(settings.shard, {})
    if shard is not None:
        n_parts = len(shard.parts(n_parts))
        n_sources = min(n_sources, n_parts * sizing.batch_size)

    # Searches and certificates, in proportion to the groups that are searched. On a GPU a group may
    # span parts. On a CPU each part is written before the next one is searched.
    group = max(1, n_sources)  # a shard may have none
    if prepared.graph.device == "cpu":
        group = min(group, sizing.batch_size)
    # ``trial.once`` are the seconds that the first search takes for all. ``_growth`` is the ratio of
    # the estimated seconds of a group to those of the trial.
    n_groups = n_sources / group
    search = trial.once + trial.search * _growth(plan, trial.sources, group) * n_groups
    passes_ratio = _count_passes(plan, group) / _count_passes(plan, trial.sources) * n_groups

    # Rows, in proportion to the sources, and what each part takes whatever its sources are.
    sources_ratio = n_sources / trial.sources
    write = trial.per_part * n_parts + (trial.write - trial.per_part) * sources_ratio
    finish = trial.certify * passes_ratio + write
    # A part of loads has one table of sums, however many sources it has.
    tables_ratio = n_parts if prepared.request.kind.adds_up else sources_ratio
    row_bytes = trial.row_bytes * tables_ratio

    # Worker processes need time to start, and share the work. A hierarchy takes time to build, and
    # makes searches shorter.
    steps = {name: prepared.seconds.get(name, 0.0) for name in ("read", "build", "plan")}
    if not sizing.in_process:
        steps["start"] = START_SECONDS[prepared.graph.device]
        search /= _speedup_of_workers(prepared)
        finish /= sizing.workers
    # The run builds a hierarchy if the estimate says that it saves enough seconds for all sources.
    # It is None if the graph has one, or is not likely to have a small one.
    estimate = None
    if settings.hierarchy == "auto" and settings.strategy == "auto":
        estimate = plan.estimate_hierarchy()
    if estimate is not None and estimate.is_worth_it(prepared.n_sources):
        # The run builds one first, which its plan does not. ``sweep`` and ``search`` are seconds
        # per source with the hierarchy and without it.
        steps["hierarchy"] = estimate.build
        search *= estimate.sweep / estimate.search
    steps |= {"search": search, "finish": finish}
    return Expectation(
        sources_tried=trial.sources,
        steps=steps,
        n_parts=n_parts,
        output_bytes=round(row_bytes + trial.part_bytes * n_parts),
    )


def _speedup_of_workers(prepared: Prepared) -> float:
    """Return how many times as fast all workers together search as this process with its plan.

    GPUs are counted by workers, cores by threads. ``prepared.threads`` are those that the plan was
    made for; 0 if it does not depend on them.
    """
    sizing = prepared.sizing
    if prepared.graph.device == "cuda":
        return float(sizing.workers)
    return sizing.workers * sizing.threads / (prepared.threads or CPU_COUNT)
