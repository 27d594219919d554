"""What the plots of a run show, as plain numbers and colours: for the SVG of the report and for Bokeh on the dashboard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .run_stats import OTHERS, PHASES, RunStats, Share

if TYPE_CHECKING:
    from ..output.manifest_types import Histogram

# Readable on white and on black.
COLOURS = (
    "#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#b8962e",
    "#b07aa1", "#d37295", "#9c755f", "#499894", "#8cb369", "#79706e",
)  # fmt: skip
PHASE_COLOURS = dict(zip(PHASES, ("#9a9a9a", "#b07aa1", "#4e79a7", "#59a14f", "#b8962e", "#f28e2b"), strict=True))
MAX_ROWS = 32  # maximum number of workers with a row of their own
MAX_BARS = 3000  # batches drawn apart; of more, neighbours become one bar


def colour_of(i: int, name: str) -> str:
    """Return the colour of the worker ``i``."""
    return COLOURS[-1] if name == OTHERS else COLOURS[i % (len(COLOURS) - 1)]


def time_unit(span: float) -> tuple[str, float]:
    """The unit in which a time axis of so many seconds is read easily, and the seconds of it."""
    return ("hours", 3600.0) if span > 7200 else ("minutes", 60.0) if span > 300 else ("seconds", 1.0)


def large_unit(most: float) -> tuple[str, float]:
    """How an axis up to so many is read easily: what its label begins with, and by what to divide."""
    for size, word in ((1e9, "billion "), (1e6, "million "), (1e4, "thousand ")):
        if most >= size:
            return word, size if word != "thousand " else 1e3
    return "", 1.0


class Bars(NamedTuple):
    """A plot of rectangles in the units of its axes.

    Attributes
    ----------
    columns : dict of str to list
        ``left, right, bottom, top, label, colour, tip`` of each rectangle, and more. ``label`` is for the legend, if it is
        not empty, and ``tip`` for the pointer.
    title, x_label, y_label : str
    x, y : tuple of float
        Where the axes begin and end.
    rows : tuple of str
        Names along the vertical axis, from the top, in place of numbers.
    hops : bool
        Whether the horizontal axis is that of whole hops.
    """

    columns: dict[str, list[Any]]
    title: str
    x_label: str
    y_label: str
    x: tuple[float, float]
    y: tuple[float, float]
    rows: tuple[str, ...] = ()
    hops: bool = False


def _columns(bars: Sequence[tuple[Any, ...]], *more: str) -> dict[str, list[Any]]:
    keys = ("left", "right", "bottom", "top", "label", "colour", "tip", *more)
    return {key: [bar[i] for bar in bars] for i, key in enumerate(keys)}


def rates_of(chronicle: RunStats, what: str) -> Bars:
    """Return what each worker did per second in each bin of time; ``what`` is "sources" or "edges"."""
    begins, rates = chronicle.series(what)
    unit, second = time_unit(chronicle.ended - chronicle.started)
    total = sum(rates.values(), np.zeros(begins.size))
    word, size = large_unit(total.max())
    bottom = np.zeros(begins.size)
    bars = []
    for i, (name, rate) in enumerate(rates.items()):
        for k in np.flatnonzero(rate):
            left, right = begins[k] / second, (begins[k] + chronicle.width) / second
            tip = f"{name}: {rate[k]:,.1f} {what}/s, from {left:.3g} to {right:.3g}"
            place = (left, right, bottom[k] / size, (bottom[k] + rate[k]) / size)
            bars.append((*place, name, colour_of(i, name), tip, rate[k]))
        bottom += rate
    x, y = (0, begins.size * chronicle.width / second), (0, 1.05 * total.max() / size or 1)
    title, labels = f"{what} per second, by worker", (f"{unit} from the start", f"{word}{what}/s")
    return Bars(_columns(bars, "rate"), title, *labels, x, y)


def phases_of(shares: dict[str, Share]) -> Bars:
    """Return the seconds of each worker by phase."""
    named = {name: share for name, share in shares.items() if name != OTHERS}  # a bar of many would dwarf the rest
    bars, longest = [], 0.0
    for i, (name, share) in enumerate(named.items()):
        left = 0.0
        for phase in PHASES:
            took = share.phases.get(phase, 0.0)
            tip = f"{name}: {phase} {took:,.2f} s"
            bars.append((left, left + took, *_row(i, len(named)), phase, PHASE_COLOURS[phase], tip, took))
            left += took
        longest = max(longest, left)
    title = "seconds by phase" + (" of the busiest workers" if len(named) < len(shares) else "")
    ends = (0, 1.03 * longest or 1), (0, len(named) or 1)
    return Bars(_columns(bars, "seconds"), title, "seconds of work", "", *ends, tuple(named))


def _row(i: int, count: int) -> tuple[float, float]:
    return count - i - 0.875, count - i - 0.125


def histogram_of(distances: Histogram, algorithm: str) -> Bars:
    """Return how many pairs of source and vertex lie at each distance.

    ``columns`` also has ``first, last, count`` of each bar, and for the hop plot ``within``, the share of the reached pairs
    up to ``last``, with ``tip_within``.
    """
    hops = algorithm == "bfs"
    counts = np.asarray(distances["counts"], np.float64)
    firsts = (distances["first"] + np.arange(counts.size)) * distances["width"]
    lasts = firsts + distances["width"] - hops  # whole hops: the last one of a bin, where a distance has its limit
    word, size = large_unit(counts.max())
    bars = []
    for first, last, count, within in zip(firsts, lasts, counts, np.cumsum(counts) / counts.sum(), strict=True):
        which = f"{first:.10g}" if first == last else f"{first:.10g} to {last:.10g}"
        place = (first - 0.5 * hops, last + 0.5 * hops, 0, count / size)
        tip, tip_within = f"distance {which}: {count:,.0f} pairs", f"up to {last:.10g}: {100 * within:.1f} %"
        bars.append((*place, "", COLOURS[0], tip, first, last, count, within, tip_within))
    columns = _columns(bars, "first", "last", "count", "within", "tip_within")
    ends = (firsts[0] - 0.5 * hops, lasts[-1] + 0.5 * hops), (0, 1.05 * counts.max() / size)
    return Bars(columns, "distances", "hops" if hops else "distance", f"{word}pairs of source and vertex", *ends, hops=hops)


def timeline_of(chronicle: RunStats, batches: Sequence[dict[str, Any]]) -> Bars:
    """Return when each worker was busy, and with what; ``batches`` are as ``run_stats.batch_of`` makes them."""
    names = chronicle.busiest(MAX_ROWS)
    lanes = {name: name if name in names else names[-1] for name in {batch["worker"] for batch in batches}}
    unit, second = time_unit(chronicle.ended - chronicle.started)
    bars = []
    for bar in _bars(batches, lanes):
        begin, took = bar["started"] - chronicle.started, bar["ended"] - bar["started"]
        phases = {phase: bar["phases"].get(phase, 0.0) for phase in PHASES if phase != "load"}
        scale = min(1.0, took / max(sum(phases.values()), 1e-9))  # what a bar of several lacks is the time between them
        for phase, seconds in phases.items():
            place = (begin / second, (begin + seconds * scale) / second, *_row(names.index(bar["lane"]), len(names)))
            bars.append((*place, phase, PHASE_COLOURS[phase], f"{bar['shown']}: {phase} {seconds:.3f} s"))
            begin += seconds * scale
    columns = _columns(bars)
    ends = (0, 1.01 * max(columns["right"], default=0.0) or 1), (0, len(names) or 1)
    return Bars(columns, "timeline of batches", f"{unit} from the start", "", *ends, tuple(names))


def _bars(batches: Sequence[dict[str, Any]], lanes: dict[str, str]) -> list[dict[str, Any]]:
    by_lane: dict[str, list[dict[str, Any]]] = {}
    for batch in sorted(batches, key=lambda batch: batch["started"]):
        by_lane.setdefault(lanes[batch["worker"]], []).append(batch)
    together = -(-len(batches) // MAX_BARS)
    bars = []
    for lane, row in by_lane.items():
        for begin in range(0, len(row), together):
            some = row[begin : begin + together]
            phases = {phase: sum(batch["phases"].get(phase, 0.0) for batch in some) for phase in PHASES}
            shown = f"batch {some[0]['part']}" + (f" and {len(some) - 1} more" if len(some) > 1 else "")
            ended = max(batch["ended"] for batch in some)
            bars.append({"lane": lane, "started": some[0]["started"], "ended": ended, "phases": phases, "shown": shown})
    return bars
