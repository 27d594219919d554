"""The plots of the dashboard's page: ``plot_data``, drawn by Bokeh. Those of the report are ``svg_plots``.

Each has one data source of bounded size, which the page replaces.
"""

from __future__ import annotations

from bokeh.models import ColumnDataSource, NumeralTickFormatter, Range1d
from bokeh.plotting import figure

from .plot_data import COLOURS, Bars

_KEYS = ("left", "right", "bottom", "top", "label", "colour", "tip", "last", "within", "tip_within")


def _frame(title: str, tip: str) -> figure:
    # Explicit ranges, because Bokeh warns about automatic ranges without data.
    plot = figure(
        title=title,
        height=260,
        sizing_mode="stretch_width",
        tools="xpan,xwheel_zoom,xbox_zoom,save,reset,hover",
        x_range=Range1d(0, 1),
        y_range=Range1d(0, 1),
    )
    plot.toolbar.logo = None
    plot.toolbar.autohide = True
    plot.min_border_right = 20
    plot.hover.tooltips = [("", tip)]
    plot.hover.mode = "mouse"
    for axis in plot.axis:
        axis.axis_label_text_font_style = "normal"
    return plot


def bars_figure(title: str, legend: bool = True) -> figure:
    """Return a plot that ``draw_bars`` fills."""
    plot = _frame(title, "@tip")
    sides = {side: side for side in ("left", "right", "bottom", "top")}
    more = {"legend_field": "label"} if legend else {}
    plot.quad(source=ColumnDataSource({key: [] for key in _KEYS}), **sides, color="colour", line_width=0, **more)
    if legend:
        above = plot.legend[0]
        above.orientation = "horizontal"
        above.label_text_font_size = "8.5pt"
        above.padding = above.margin = 2
        above.border_line_color = None
        above.background_fill_alpha = 0.0
        above.ncols = 4
        plot.add_layout(above, "above")
    return plot


def draw_bars(plot: figure, bars: Bars) -> None:
    plot.title.text, plot.xaxis.axis_label, plot.yaxis.axis_label = bars.title, bars.x_label, bars.y_label
    plot.xaxis.ticker.min_interval = float(bars.hops)
    (plot.x_range.start, plot.x_range.end), (plot.y_range.start, plot.y_range.end) = bars.x, bars.y
    if bars.rows:
        middles = {len(bars.rows) - i - 0.5: name for i, name in enumerate(bars.rows)}
        plot.yaxis.ticker, plot.yaxis.major_label_overrides = list(middles), middles
    plot.renderers[0].data_source.data = bars.columns


def reach_figure() -> figure:
    """Return the hop plot, the share of reached pairs within each distance, which ``draw_reach`` fills."""
    plot = _frame("hop plot", "@tip_within")
    source = ColumnDataSource({key: [] for key in _KEYS})
    plot.step(source=source, x="last", y="within", mode="after", line_width=2, color=COLOURS[1])
    plot.scatter(source=source, x="last", y="within", size=4, color=COLOURS[1])
    plot.yaxis.formatter = NumeralTickFormatter(format="0 %")
    return plot


def draw_reach(plot: figure, bars: Bars) -> None:
    """Draw the hop plot of a histogram of distances."""
    title = "hop plot" if bars.hops else "pairs within a distance"
    draw_bars(plot, bars._replace(title=title, y_label="share of reached pairs", y=(0, 1.03)))
