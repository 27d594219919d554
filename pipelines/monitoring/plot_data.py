"""What the plots of a run show, as plain numbers and colours: for the SVG of the report and for Bokeh on the dashboard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..output.manifest_types import Histogram
from .run_stats import OTHERS, PHASES, RunStats

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


class Rates(NamedTuple):
    """Stacked bars over time.

    Attributes
    ----------
    columns : dict of str to list or array
        ``left, right, bottom, top, rate, worker, colour`` of each bar, in the units of the axes.
    x_label, y_label : str
    x_end, y_end : float
    """

    columns: dict[str, Any]
    x_label: str
    y_label: str
    x_end: float
    y_end: float


def rates_of(chronicle: RunStats, what: str) -> Rates:
    """Return what each worker did per second in each bin of time; ``what`` is "sources" or "edges"."""
    begins, rates = chronicle.series(what)
    unit, time_size = time_unit(chronicle.ended - chronicle.started)
    total = sum(rates.values(), np.zeros(begins.size))
    word, size = large_unit(total.max())
    bottom = np.zeros(begins.size)
    keys = ("left", "right", "bottom", "top", "rate", "worker", "colour")
    columns: dict[str, list[Any]] = {key: [] for key in keys}
    for i, (name, rate) in enumerate(rates.items()):
        some = np.flatnonzero(rate)
        columns["left"].append(begins[some] / time_size)
        columns["right"].append((begins[some] + chronicle.width) / time_size)
        columns["bottom"].append(bottom[some] / size)
        columns["top"].append((bottom[some] + rate[some]) / size)
        columns["rate"].append(rate[some])
        columns["worker"] += [name] * some.size
        columns["colour"] += [colour_of(i, name)] * some.size
        bottom += rate
    numbers = {key: np.concatenate(column) for key, column in columns.items() if key not in ("worker", "colour") and column}
    return Rates(
        columns | numbers,
        f"{unit} from the start",
        f"{word}{what}/s",
        begins.size * chronicle.width / time_size,
        1.05 * total.max() / size or 1,
    )


class Reach(NamedTuple):
    """A histogram of distances, and the hop plot.

    Attributes
    ----------
    columns : dict of str to array
        ``left, right, first, last, count, height, within`` of each bin.
    y_label : str
    y_end : float
        Of the histogram.
    x_start, x_end : float
    """

    columns: dict[str, np.ndarray]
    y_label: str
    y_end: float
    x_start: float
    x_end: float


def reach_of(distances: Histogram, algorithm: str) -> Reach:
    """Return the bins of a histogram of distances, with the share of the pairs that lie within each."""
    hops = algorithm == "bfs"
    counts = np.asarray(distances["counts"], np.float64)
    first = (distances["first"] + np.arange(counts.size)) * distances["width"]
    last = first + distances["width"] - hops  # whole hops: the last one of a bin, where a distance has its limit
    word, size = large_unit(counts.max())
    columns = {
        "left": first - 0.5 * hops,
        "right": last + 0.5 * hops,
        "first": first,
        "last": last,
        "count": counts,
        "height": counts / size,
        "within": np.cumsum(counts) / counts.sum(),
    }
    label = f"{word}pairs of source and vertex"
    return Reach(columns, label, 1.05 * counts.max() / size, first[0] - 0.5 * hops, last[-1] + 0.5 * hops)


def timeline_data(batches: Sequence[dict[str, Any]], lanes: dict[str, str], started: float, unit: float) -> dict[str, Any]:
    """Bars of batches in the lanes of their workers, each cut by phase.

    Parameters
    ----------
    batches : list of dict
        As ``run_stats.batch_of`` makes them, with ``started`` and ``ended`` on the axis of ``started``.
    lanes : dict of str to str
        The lane of each worker.
    unit : float
        Seconds of the axis's unit.
    """
    columns: dict[str, list[Any]] = {key: [] for key in ("lane", "left", "right", "colour", "phase", "seconds", "part")}
    for bar in _bars(batches, lanes):
        begin, took = bar["started"] - started, bar["ended"] - bar["started"]
        phases = {phase: bar["phases"].get(phase, 0.0) for phase in PHASES if phase != "load"}
        scale = min(1.0, took / max(sum(phases.values()), 1e-9))  # what a bar of several lacks is the time between them
        for phase, seconds in phases.items():
            columns["lane"].append(bar["lane"])
            columns["left"].append(round(begin / unit, 5))
            begin += seconds * scale
            columns["right"].append(round(begin / unit, 5))
            columns["colour"].append(PHASE_COLOURS[phase])
            columns["phase"].append(phase)
            columns["seconds"].append(round(seconds, 4))
            columns["part"].append(bar["shown"])
    return columns


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
