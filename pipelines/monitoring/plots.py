"""The plots that the dashboard's page and the report share, drawn by Bokeh from the statistics of a run.

Each has one data source of bounded size. The dashboard replaces its data; the report sets them once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, FactorRange, NumeralTickFormatter, Range1d
from bokeh.plotting import figure

from ..output.manifest_types import Histogram
from .run_stats import OTHERS, PHASES, RunStats, Share

# Readable on white and on black.
_COLOURS = (
    "#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#b8962e",
    "#b07aa1", "#d37295", "#9c755f", "#499894", "#8cb369", "#79706e",
)  # fmt: skip
PHASE_COLOURS = dict(zip(PHASES, ("#9a9a9a", "#4e79a7", "#59a14f", "#b8962e", "#f28e2b"), strict=True))
MAX_ROWS = 32  # maximum number of workers with a row each
MAX_BARS = 3000  # maximum number of bars; with more batches, adjacent ones share a bar
HEIGHT = 260


def _colour(i: int, name: str) -> str:
    return _COLOURS[-1] if name == OTHERS else _COLOURS[i % (len(_COLOURS) - 1)]


def _frame(title: str, x: str, y: str, height: int = HEIGHT, rows: Sequence[str] | None = None) -> figure:
    # Explicit ranges, because Bokeh warns about automatic ranges without data.
    plot = figure(
        title=title,
        x_axis_label=x,
        y_axis_label=y,
        height=height,
        sizing_mode="stretch_width",
        tools="xpan,xwheel_zoom,xbox_zoom,save,reset,hover",
        x_range=Range1d(0, 1),
        y_range=Range1d(0, 1) if rows is None else FactorRange(factors=list(rows)[::-1]),
    )
    plot.toolbar.logo = None
    plot.toolbar.autohide = True
    plot.min_border_right = 20
    plot.hover.tooltips = None
    plot.hover.mode = "mouse"
    for axis in plot.axis:
        axis.axis_label_text_font_style = "normal"
    return plot


def _legend_above(plot: figure) -> None:
    legend = plot.legend[0]
    legend.orientation = "horizontal"
    legend.label_text_font_size = "8.5pt"
    legend.padding = legend.margin = 2
    legend.border_line_color = None
    legend.background_fill_alpha = 0.0
    legend.ncols = 4
    plot.add_layout(legend, "above")


def _bars_of_phases(plot: figure, source: ColumnDataSource, row: str) -> None:
    sides = {"left": "left", "right": "right", "height": 0.75}
    plot.hbar(source=source, y=row, **sides, color="colour", line_width=0, legend_field="phase")


def time_unit(span: float) -> tuple[str, float]:
    """Return a suitable unit for a time axis of this length, and its seconds."""
    return ("hours", 3600.0) if span > 7200 else ("minutes", 60.0) if span > 300 else ("seconds", 1.0)


def large_unit(most: float) -> tuple[str, float]:
    """Return the prefix of the label of an axis up to this number, and the divisor."""
    for size, word in ((1e9, "billion "), (1e6, "million "), (1e4, "thousand ")):
        if most >= size:
            return word, size if word != "thousand " else 1e3
    return "", 1.0


def rate_source() -> ColumnDataSource:
    return ColumnDataSource({key: [] for key in ("left", "right", "bottom", "top", "rate", "worker", "colour")})


def rate_figure(source: ColumnDataSource, what: str) -> figure:
    """Return a plot of the rates of the workers over time; ``draw_rates`` fills it."""
    plot = _frame(f"{what} per second, by worker", "seconds from the start", f"{what}/s")
    sides = {side: side for side in ("left", "right", "bottom", "top")}
    plot.quad(source=source, **sides, color="colour", line_width=0, legend_field="worker")
    plot.hover.tooltips = [
        ("worker", "@worker"),
        ("from", "@left{0.[00]} to @right{0.[00]}"),
        (f"{what}/s", "@rate{0,0.[0]}"),
    ]
    _legend_above(plot)
    return plot


def draw_rates(plot: figure, source: ColumnDataSource, chronicle: RunStats, what: str) -> None:
    """Draw stacked bars: the rate of each worker per bin of time."""
    begins, rates = chronicle.series(what)
    unit, time_size = time_unit(chronicle.ended - chronicle.started)
    total = sum(rates.values(), np.zeros(begins.size))
    word, size = large_unit(total.max())
    bottom = np.zeros(begins.size)
    columns: dict[str, list[Any]] = {key: [] for key in source.data}
    for i, (name, rate) in enumerate(rates.items()):
        some = np.flatnonzero(rate)
        columns["left"].append(begins[some] / time_size)
        columns["right"].append((begins[some] + chronicle.width) / time_size)
        columns["bottom"].append(bottom[some] / size)
        columns["top"].append((bottom[some] + rate[some]) / size)
        columns["rate"].append(rate[some])
        columns["worker"] += [name] * some.size
        columns["colour"] += [_colour(i, name)] * some.size
        bottom += rate
    numbers = {key: np.concatenate(column) for key, column in columns.items() if key not in ("worker", "colour") and column}
    source.data = columns | numbers
    plot.xaxis.axis_label = f"{unit} from the start"
    plot.yaxis.axis_label = f"{word}{what}/s"
    plot.x_range.end = begins.size * chronicle.width / time_size
    plot.y_range.end = 1.05 * total.max() / size or 1


def phase_source() -> ColumnDataSource:
    return ColumnDataSource({key: [] for key in ("worker", "left", "right", "seconds", "phase", "colour")})


def phase_figure(source: ColumnDataSource) -> figure:
    """Return a plot of the seconds by phase, one row per worker; ``draw_phases`` fills it."""
    plot = _frame("seconds by phase", "seconds of work", "", rows=[])
    _bars_of_phases(plot, source, "worker")
    plot.hover.tooltips = [("worker", "@worker"), ("@phase", "@seconds{0,0.00} s")]
    _legend_above(plot)
    return plot


def draw_phases(plot: figure, source: ColumnDataSource, shares: dict[str, Share]) -> None:
    """Draw stacked bars: the seconds of each worker by phase."""
    columns: dict[str, list[Any]] = {key: [] for key in source.data}
    # One bar for many workers would dwarf the others.
    named = {name: share for name, share in shares.items() if name != OTHERS}
    for name, share in named.items():
        left = 0.0
        for phase in PHASES:
            took = share.phases[phase]
            for key, value in (("left", left), ("right", left + took), ("seconds", took)):
                columns[key].append(value)
            columns["worker"].append(name)
            columns["phase"].append(phase)
            columns["colour"].append(PHASE_COLOURS[phase])
            left += took
    plot.y_range.factors = list(named)[::-1]
    plot.title.text = "seconds by phase" + (" of the busiest workers" if len(named) < len(shares) else "")
    plot.x_range.end = 1.03 * max(columns["right"], default=0) or 1
    source.data = columns


def reach_source() -> ColumnDataSource:
    return ColumnDataSource({key: [] for key in ("left", "right", "first", "last", "count", "height", "within")})


def histogram_figure(source: ColumnDataSource) -> figure:
    """Return a histogram of the distances of all pairs of source and vertex; ``draw_reach`` fills it."""
    plot = _frame("distances", "distance", "pairs of source and vertex")
    plot.quad(source=source, left="left", right="right", bottom=0, top="height", color=_COLOURS[0], line_color=None)
    plot.hover.tooltips = [("distance", "@first to @last"), ("pairs", "@count{0,0}")]
    return plot


def reach_figure(source: ColumnDataSource) -> figure:
    """Return the hop plot: the share of reached pairs within each distance; ``draw_reach`` fills it."""
    plot = _frame("hop plot", "distance", "share of reached pairs")
    plot.y_range.end = 1.03
    plot.step(source=source, x="last", y="within", mode="after", line_width=2, color=_COLOURS[1])
    plot.scatter(source=source, x="last", y="within", size=4, color=_COLOURS[1])
    plot.hover.tooltips = [("distance", "up to @last"), ("share", "@within{0.0 %}")]
    plot.yaxis.formatter = NumeralTickFormatter(format="0 %")
    return plot


def draw_reach(
    histogram: figure, reach: figure, source: ColumnDataSource, distances: Histogram | None, algorithm: str
) -> None:
    """Fill both plots from a histogram of distances."""
    hops = algorithm == "bfs"
    reach.title.text = "hop plot" if hops else "pairs within a distance"
    for plot in (histogram, reach):
        plot.xaxis.axis_label = "hops" if hops else "distance"
        plot.xaxis.ticker.min_interval = 1.0 if hops else 0.0
    if distances is None:
        return
    counts = np.asarray(distances["counts"], np.float64)
    first = (distances["first"] + np.arange(counts.size)) * distances["width"]
    last = first + distances["width"] - hops  # hops are integers: the right end of a bin is its last hop count
    word, size = large_unit(counts.max())
    histogram.yaxis.axis_label = f"{word}pairs of source and vertex"
    histogram.y_range.end = 1.05 * counts.max() / size
    for plot in (histogram, reach):
        plot.x_range.start, plot.x_range.end = first[0] - 0.5 * hops, last[-1] + 0.5 * hops
    source.data = {
        "left": first - 0.5 * hops,
        "right": last + 0.5 * hops,
        "first": first,
        "last": last,
        "count": counts,
        "height": counts / size,
        "within": np.cumsum(counts) / counts.sum(),
    }


def timeline_data(batches: Sequence[dict[str, Any]], lanes: dict[str, str], started: float, unit: float) -> dict[str, Any]:
    """Return bars of batches in the lanes of their workers, divided by phase.

    Parameters
    ----------
    batches : list of dict
        As returned by ``run_stats.batch_of``, with ``started`` and ``ended`` on the axis of ``started``.
    lanes : dict of str to str
        The lane of each worker.
    unit : float
        Seconds of the axis's unit.
    """
    columns: dict[str, list[Any]] = {key: [] for key in ("lane", "left", "right", "colour", "phase", "seconds", "part")}
    for bar in _bars(batches, lanes):
        begin, took = bar["started"] - started, bar["ended"] - bar["started"]
        phases = {phase: bar["phases"].get(phase, 0.0) for phase in PHASES if phase != "load"}
        scale = min(1.0, took / max(sum(phases.values()), 1e-9))  # a bar of several batches lacks the time between them
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


def timeline_figure(data: dict[str, Any], lanes: Sequence[str], unit: str) -> figure:
    """Return a timeline of the workers, by phase."""
    plot = _frame("timeline of batches", f"{unit} from the start", "", 120 + 18 * len(lanes), lanes)
    _bars_of_phases(plot, ColumnDataSource(data), "lane")
    plot.hover.tooltips = [("", "@part"), ("@phase", "@seconds{0,0.000} s")]
    plot.x_range.end = 1.01 * max(data["right"])
    _legend_above(plot)
    return plot
