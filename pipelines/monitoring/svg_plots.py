"""The plots of the report as SVG: plain text, drawn in a few milliseconds, without a script.

Colours of text and lines are those of the page's style sheet, so the plots are light or dark as the reader has it. The
values of a bar are its ``<title>``, which browsers show where the pointer rests.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from markupsafe import Markup, escape

from ..output.manifest_types import Histogram
from .html_fragments import printed
from .plot_data import COLOURS, PHASE_COLOURS, Rates, rates_of, reach_of
from .run_stats import OTHERS, PHASES, RunStats, Share

_HEIGHT = 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 14, 34, 46  # margins around the plane
_ROW = 18  # height of a worker's row
_LEGEND_ROW = 16
_TICKS = 5
_CHARACTER = 6.6  # width of one, in the legend


def ticks_of(start: float, end: float, most: int = _TICKS, whole: bool = False) -> list[float]:
    """Return round numbers within a range, at most about ``most``; whole numbers only if ``whole``."""
    span = end - start
    if not span > 0:
        return [start]
    step = 10.0 ** math.floor(math.log10(span / most))
    step *= next(factor for factor in (1, 2, 5, 10) if factor * step * most >= span)
    if whole:
        step = max(1.0, round(step))
    first = math.ceil(start / step - 1e-9)
    return [i * step for i in range(first, math.floor(end / step + 1e-9) + 1)]


def _text(value: object) -> Markup:
    return escape(printed(value))


def _number(value: float) -> str:
    return f"{value:,.10g}"


class _Plane:
    """A plot under construction: a plane with two axes, in pixels of an image ``width`` wide."""

    def __init__(
        self,
        title: str,
        x: tuple[float, float],
        y: tuple[float, float],
        width: int,
        height: int = _HEIGHT,
        left: int = _LEFT,
        legend: Sequence[tuple[str, str]] = (),
    ):
        rows = _legend_rows(legend, width - left - _RIGHT)
        self.width, self.height = width, height + _LEGEND_ROW * len(rows)
        self._x, self._y = x, y
        self.left, self.top = left, _TOP + _LEGEND_ROW * len(rows)
        self.right, self.bottom = width - _RIGHT, self.height - _BOTTOM
        self._parts = [f'<text class="title" x="{left}" y="18">{_text(title)}</text>']
        for i, row in enumerate(rows):
            at = left
            for name, colour in row:
                y_of_row = 30 + _LEGEND_ROW * i
                self._parts.append(f'<rect x="{at}" y="{y_of_row}" width="10" height="10" fill="{colour}"/>')
                self._parts.append(f'<text x="{at + 14}" y="{y_of_row + 9}">{_text(name)}</text>')
                at += _legend_width(name)

    def at_x(self, value: float) -> float:
        low, high = self._x
        return self.left + (value - low) / ((high - low) or 1) * (self.right - self.left)

    def at_y(self, value: float) -> float:
        low, high = self._y
        return self.bottom - (value - low) / ((high - low) or 1) * (self.bottom - self.top)

    def x_axis(self, label: str, whole: bool = False) -> None:
        for tick in ticks_of(*self._x, whole=whole):
            at = self.at_x(tick)
            self._parts.append(f'<path class="grid" d="M{at:.1f} {self.top}V{self.bottom}"/>')
            self._parts.append(f'<text class="middle" x="{at:.1f}" y="{self.bottom + 16}">{_number(tick)}</text>')
        middle = (self.left + self.right) / 2
        self._parts.append(f'<text class="middle" x="{middle:.0f}" y="{self.bottom + 36}">{_text(label)}</text>')
        self._parts.append(f'<path class="axis" d="M{self.left} {self.bottom}H{self.right}"/>')

    def y_axis(self, label: str, percent: bool = False) -> None:
        for tick in ticks_of(*self._y):
            at = self.at_y(tick)
            shown = f"{100 * tick:.0f} %" if percent else _number(tick)
            self._parts.append(f'<path class="grid" d="M{self.left} {at:.1f}H{self.right}"/>')
            self._parts.append(f'<text class="end" x="{self.left - 6}" y="{at + 4:.1f}">{shown}</text>')
        middle = (self.top + self.bottom) / 2
        turned = f'transform="rotate(-90 14 {middle:.0f})"'
        self._parts.append(f'<text class="middle" x="14" y="{middle:.0f}" {turned}>{_text(label)}</text>')

    def rows_axis(self, names: Sequence[str]) -> None:
        """Name the rows 0, 1, ... from the top."""
        for i, name in enumerate(names):
            at = self.at_y(len(names) - i - 0.5) + 4
            self._parts.append(f'<text class="end" x="{self.left - 6}" y="{at:.1f}">{_text(name)}</text>')

    def bar(self, x: tuple[float, float], y: tuple[float, float], colour: str, title: str) -> None:
        left, right, low, high = self.at_x(x[0]), self.at_x(x[1]), self.at_y(y[0]), self.at_y(y[1])
        place = f'x="{left:.2f}" y="{high:.2f}" width="{max(right - left, 0.3):.2f}" height="{low - high:.2f}"'
        shown = f"<title>{_text(title)}</title>" if title else ""
        self._parts.append(f'<rect {place} fill="{colour}">{shown}</rect>')

    def line(self, path: Iterable[tuple[float, float]], colour: str) -> None:
        corners = " ".join(f"{self.at_x(x):.1f},{self.at_y(y):.1f}" for x, y in path)
        self._parts.append(f'<polyline points="{corners}" fill="none" stroke="{colour}" stroke-width="2"/>')

    def point(self, x: float, y: float, colour: str, title: str) -> None:
        place = f'cx="{self.at_x(x):.1f}" cy="{self.at_y(y):.1f}"'
        self._parts.append(f'<circle {place} r="3" fill="{colour}"><title>{_text(title)}</title></circle>')

    def drawn(self) -> Markup:
        view = f'viewBox="0 0 {self.width} {self.height}"'
        return Markup(f'<svg class="plot" {view} role="img">{"".join(self._parts)}</svg>')


def _legend_width(name: str) -> int:
    return 28 + math.ceil(_CHARACTER * len(name))


def _legend_rows(legend: Sequence[tuple[str, str]], available: int) -> list[list[tuple[str, str]]]:
    rows: list[list[tuple[str, str]]] = []
    used = available
    for name, colour in legend:
        wide = _legend_width(name)
        if used + wide > available:
            rows.append([])
            used = 0
        rows[-1].append((name, colour))
        used += wide
    return rows


def rates(chronicle: RunStats, what: str) -> Markup:
    """Draw what the workers did per second over time; ``what`` is "sources" or "edges"."""
    found: Rates = rates_of(chronicle, what)
    columns = found.columns
    legend = list(dict.fromkeys(zip(columns["worker"], columns["colour"], strict=True)))
    plane = _Plane(f"{what} per second, by worker", (0, found.x_end), (0, found.y_end), 560, legend=legend)
    plane.x_axis(found.x_label)
    plane.y_axis(found.y_label)
    keys = ("left", "right", "bottom", "top", "rate", "worker", "colour")
    for left, right, bottom, top, rate, worker, colour in zip(*(columns[key] for key in keys), strict=True):
        title = f"{worker}: {rate:,.1f} {what}/s, from {left:.3g} to {right:.3g}"
        plane.bar((left, right), (bottom, top), colour, title)
    return plane.drawn()


def phases(shares: dict[str, Share]) -> Markup:
    """Draw the seconds of each worker by phase."""
    named = {name: share for name, share in shares.items() if name != OTHERS}  # a bar of many would dwarf the rest
    most = max((sum(share.phases.get(phase, 0.0) for phase in PHASES) for share in named.values()), default=0.0)
    title = "seconds by phase" + (" of the busiest workers" if len(named) < len(shares) else "")
    plane = _rows_plane(title, list(named), 1.03 * most or 1.0)
    plane.x_axis("seconds of work")
    for i, (name, share) in enumerate(named.items()):
        left = 0.0
        for phase in PHASES:
            took = share.phases.get(phase, 0.0)
            if took:
                plane.bar((left, left + took), _row(i, len(named)), PHASE_COLOURS[phase], f"{name}: {phase} {took:,.2f} s")
            left += took
    return plane.drawn()


def timeline(data: dict[str, list[object]], lanes: Sequence[str], unit: str) -> Markup:
    """Draw when each worker was busy, and with what; ``data`` is that of ``plot_data.timeline_data``."""
    right: list[float] = [value for value in data["right"] if isinstance(value, float | int)]
    plane = _rows_plane("timeline of batches", lanes, 1.01 * max(right, default=0.0) or 1.0)
    plane.x_axis(f"{unit} from the start")
    places = {name: i for i, name in enumerate(lanes)}
    keys = ("lane", "left", "right", "colour", "phase", "seconds", "part")
    for lane, left, end, colour, phase, seconds, part in zip(*(data[key] for key in keys), strict=True):
        if left == end:
            continue
        # Thousands of bars: only those that the pointer can find have a text.
        title = f"{part}: {phase} {seconds:.3f} s" if plane.at_x(end) - plane.at_x(left) >= 1 else ""
        plane.bar((left, end), _row(places[str(lane)], len(lanes)), str(colour), title)
    return plane.drawn()


def _rows_plane(title: str, names: Sequence[str], end: float) -> _Plane:
    height = _TOP + _BOTTOM + max(_ROW * len(names), _ROW)
    left = 16 + math.ceil(_CHARACTER * max(map(len, names), default=0))
    plane = _Plane(title, (0, end), (0, len(names) or 1), 1140, height, min(left, 400), list(PHASE_COLOURS.items()))
    plane.rows_axis(names)
    return plane


def _row(i: int, count: int) -> tuple[float, float]:
    return count - i - 0.875, count - i - 0.125


def histogram(distances: Histogram, algorithm: str) -> Markup:
    """Draw how many pairs of source and vertex lie at each distance."""
    found = reach_of(distances, algorithm)
    hops = algorithm == "bfs"
    plane = _Plane("distances", (found.x_start, found.x_end), (0, found.y_end), 560)
    plane.x_axis("hops" if hops else "distance", whole=hops)
    plane.y_axis(found.y_label)
    keys = ("left", "right", "height", "first", "last", "count")
    for left, right, height, first, last, count in zip(*(found.columns[key] for key in keys), strict=True):
        which = f"{first:.10g}" if first == last else f"{first:.10g} to {last:.10g}"
        plane.bar((left, right), (0, height), COLOURS[0], f"distance {which}: {count:,.0f} pairs")
    return plane.drawn()


def reach(distances: Histogram, algorithm: str) -> Markup:
    """Draw the hop plot: which share of the pairs that were reached lies within a distance."""
    found = reach_of(distances, algorithm)
    hops = algorithm == "bfs"
    title = "hop plot" if hops else "pairs within a distance"
    plane = _Plane(title, (found.x_start, found.x_end), (0, 1.03), 560)
    plane.x_axis("hops" if hops else "distance", whole=hops)
    plane.y_axis("share of reached pairs", percent=True)
    last, within = found.columns["last"].tolist(), found.columns["within"].tolist()
    steps: list[tuple[float, float]] = []
    for i, (x, y) in enumerate(zip(last, within, strict=True)):
        if i:
            steps.append((x, within[i - 1]))
        steps.append((x, y))
    plane.line(steps, COLOURS[1])
    for x, y in zip(last, within, strict=True):
        plane.point(x, y, COLOURS[1], f"up to {x:.10g}: {100 * y:.1f} %")
    return plane.drawn()
