"""The plots of a run in SVG, for the report."""

from __future__ import annotations

import itertools

from markupsafe import Markup

from .plot_data import COLOURS, Bars
from .svg import BOTTOM, TOP, Plane, left_of, picture

_ROW = 18  # height of a row with a name


def draw_bars(bars: Bars) -> Markup:
    columns = bars.columns
    legend = [look for look in dict.fromkeys(zip(columns["label"], columns["colour"], strict=True)) if look[0]]
    if bars.rows:
        height = TOP + BOTTOM + _ROW * len(bars.rows)
        plane = Plane(bars.title, bars.x, bars.y, 1140, height, left_of(bars.rows), legend=legend)
        plane.rows_axis(bars.rows)
    else:
        plane = Plane(bars.title, bars.x, bars.y, 560, legend=legend)
        plane.y_axis(bars.y_label)
    plane.x_axis(bars.x_label, whole=bars.hops)
    keys = ("left", "right", "bottom", "top", "colour", "tip")
    for left, right, bottom, top, colour, tip in zip(*(columns[key] for key in keys), strict=True):
        if left < right:
            # There may be thousands of bars: only those that the pointer can find have a text.
            plane.bar((left, right), (bottom, top), colour, tip if plane.at_x(right) - plane.at_x(left) >= 1 else "")
    return picture(plane)


def draw_reach(bars: Bars) -> Markup:
    """Draw the hop plot of a histogram of distances: which share of the pairs that were reached lies within a distance."""
    plane = Plane("hop plot" if bars.hops else "pairs within a distance", bars.x, (0, 1.03), 560)
    plane.x_axis(bars.x_label, whole=bars.hops)
    plane.y_axis("share of reached pairs", percent=True)
    points = list(zip(bars.columns["last"], bars.columns["within"], strict=True))
    steps = [[(x, before), (x, y)] for (_, before), (x, y) in itertools.pairwise(points)]
    plane.line([*points[:1], *itertools.chain.from_iterable(steps)], COLOURS[1])
    for (x, y), tip in zip(points, bars.columns["tip_within"], strict=True):
        plane.mark(x, y, COLOURS[1], title=tip)
    return picture(plane)
