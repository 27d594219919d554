"""The plots of the dashboard's page, drawn by Bokeh from a chronicle; those of the report are ``svg_plots``.

Each has one data source of bounded size, which the page replaces.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bokeh.models import ColumnDataSource, FactorRange, NumeralTickFormatter, Range1d
from bokeh.plotting import figure

from ..output.manifest_types import Histogram
from .plot_data import COLOURS, PHASE_COLOURS, rates_of, reach_of
from .run_stats import OTHERS, PHASES, RunStats, Share

HEIGHT = 260


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
    """Stacked bars: for each bin of time, what each worker did."""
    found = rates_of(chronicle, what)
    source.data = found.columns
    plot.xaxis.axis_label, plot.yaxis.axis_label = found.x_label, found.y_label
    plot.x_range.end, plot.y_range.end = found.x_end, found.y_end


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
    plot.quad(source=source, left="left", right="right", bottom=0, top="height", color=COLOURS[0], line_color=None)
    plot.hover.tooltips = [("distance", "@first to @last"), ("pairs", "@count{0,0}")]
    return plot


def reach_figure(source: ColumnDataSource) -> figure:
    """Return the hop plot: the share of reached pairs within each distance; ``draw_reach`` fills it."""
    plot = _frame("hop plot", "distance", "share of reached pairs")
    plot.y_range.end = 1.03
    plot.step(source=source, x="last", y="within", mode="after", line_width=2, color=COLOURS[1])
    plot.scatter(source=source, x="last", y="within", size=4, color=COLOURS[1])
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
    found = reach_of(distances, algorithm)
    histogram.yaxis.axis_label, histogram.y_range.end = found.y_label, found.y_end
    for plot in (histogram, reach):
        plot.x_range.start, plot.x_range.end = found.x_start, found.x_end
    source.data = found.columns
