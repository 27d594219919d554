"""Plots as SVG: plain text, drawn in a few milliseconds, without a script; for the report and for
pages of documentation.

Colours of text and lines are those of the style sheet of the page, so the plots are light or dark
as the reader has it. A file is light. The values of a bar are its ``<title>``, which browsers show
where the pointer rests.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup, escape

from .html_fragments import printed

HEIGHT = 260
# around the plane; ``MARGIN`` where there is no axis
TOP = 34
BOTTOM = 46
MARGIN = 12
_LEFT = 62
_LEGEND_ROW = 16
_TICKS = 5
_CHARACTER = 6.6  # width of one


def left_margin(names: Iterable[str]) -> int:
    """Return the width of a margin for the names of rows."""
    return min(16 + math.ceil(_CHARACTER * max(map(len, names), default=0)), 400)


def make_ticks(start: float, end: float, most: int = _TICKS, whole: bool = False) -> list[float]:
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


def make_log_ticks(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times powers of ten within a range; powers alone if those are too many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    fine = [m * 10.0**p for p in powers for m in (1, 2, 5) if low <= m * 10.0**p <= high]
    if len(fine) <= 2 * _TICKS:
        return fine
    return [t for t in fine if round(math.log10(t), 6).is_integer()]


def _text(value: object) -> Markup:
    return escape(printed(value))


class Size(NamedTuple):
    """Width and height of an image without its legend, and the margins at the left and the bottom,
    in pixels.
    """

    width: int
    height: int = HEIGHT
    left: int = _LEFT
    bottom: int = BOTTOM


class Plane:
    """A plot under construction: a plane between margins, in pixels of an image of a size.

    ``x`` and ``y``: the values at the left and the right, and at the bottom and the top.
    ``legend``, above the plane: names with the colour, and the shape if it is no square, of what
    they stand for. ``log``: the axes that are logarithmic.
    """

    def __init__(
        self,
        title: str,
        x: tuple[float, float],
        y: tuple[float, float],
        size: Size,
        legend: Iterable[tuple[str, ...]] = (),
        log: str = "",
    ):
        width, height, left, bottom = size
        rows = _legend_rows(legend, width - left - MARGIN)
        self.width = width
        self.height = height + _LEGEND_ROW * len(rows)
        self._x = x
        self._y = y
        self._log = log
        self.left = left
        self.top = TOP + _LEGEND_ROW * len(rows)
        self.right = width - MARGIN
        self.bottom = self.height - bottom
        self.parts: list[str] = []
        if title:
            self.text(left, 18, title, "title")
        for i, row in enumerate(rows):
            at = left
            for name, *look in row:
                self._mark(at + 5, 35 + _LEGEND_ROW * i, *look)
                self.text(at + 14, 39 + _LEGEND_ROW * i, name)
                at += _legend_width(name)

    def at_x(self, value: float) -> float:
        return self.left + self._share(value, self._x, "x") * (self.right - self.left)

    def at_y(self, value: float) -> float:
        return self.bottom - self._share(value, self._y, "y") * (self.bottom - self.top)

    def _share(self, value: float, ends: tuple[float, float], axis: str) -> float:
        value, low, high = map(math.log, (value, *ends)) if axis in self._log else (value, *ends)
        return (value - low) / ((high - low) or 1)

    def text(self, x: float, y: float, words: object, kind: str = "", more: str = "") -> None:
        """Write at a place in pixels."""
        classes = f' class="{kind}"' if kind else ""
        self.parts.append(f'<text{classes} x="{x:.1f}" y="{y:.1f}"{more}>{_text(words)}</text>')

    def rule(self, x: float | None = None, y: float | None = None, kind: str = "grid") -> None:
        """Draw a line across the plane, at one value of an axis."""
        place = ""
        if y is not None:
            place += f"M{self.left} {self.at_y(y):.1f}H{self.right}"
        if x is not None:
            place += f"M{self.at_x(x):.1f} {self.top}V{self.bottom}"
        self.parts.append(f'<path class="{kind}" d="{place}"/>')

    def x_axis(self, label: str, whole: bool = False) -> None:
        """Draw the ticks and the label of the horizontal axis."""
        ticks = make_ticks(*self._x, whole=whole)
        if "x" in self._log:
            ticks = make_log_ticks(*self._x)
        for tick in ticks:
            self.rule(x=tick)
            self.text(self.at_x(tick), self.bottom + 16, f"{tick:,.10g}", "middle")
        self.x_label(label)

    def x_label(self, label: str) -> None:
        self.text((self.left + self.right) / 2, self.bottom + 36, label, "middle")
        self.parts.append(f'<path class="axis" d="M{self.left} {self.bottom}H{self.right}"/>')

    def y_axis(self, label: str, percent: bool = False) -> None:
        """Draw the ticks and the label of the vertical axis."""
        for tick in make_log_ticks(*self._y) if "y" in self._log else make_ticks(*self._y):
            shown = f"{100 * tick:.0f} %" if percent else f"{tick:,.10g}"
            self.rule(y=tick)
            self.text(self.left - 6, self.at_y(tick) + 4, shown, "end")
        middle = (self.top + self.bottom) / 2
        self.text(14, middle, label, "middle", f' transform="rotate(-90 14 {middle:.0f})"')

    def rows_axis(self, names: Sequence[str]) -> None:
        """Name the rows 0, 1, ... from the top."""
        for i, name in enumerate(names):
            self.text(self.left - 6, self.at_y(len(names) - i - 0.5) + 4, name, "end")

    def bar(
        self, x: tuple[float, float], y: tuple[float, float], colour: str, title: str = ""
    ) -> None:
        """Draw a rectangle between values of the axes."""
        left = self.at_x(x[0])
        right = self.at_x(x[1])
        low = self.at_y(y[0])
        high = self.at_y(y[1])
        place = f'x="{left:.2f}" y="{high:.2f}" width="{max(right - left, 0.3):.2f}" height="{low - high:.2f}"'
        self._shape("rect", place, colour, title)

    def line(self, path: Iterable[tuple[float, float]], colour: str) -> None:
        """Draw a line through points of the plane."""
        corners = " ".join(f"{self.at_x(x):.1f},{self.at_y(y):.1f}" for x, y in path)
        self.parts.append(
            f'<polyline points="{corners}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )

    def mark(self, x: float, y: float, colour: str, shape: str = "circle", title: str = "") -> None:
        self._mark(self.at_x(x), self.at_y(y), colour, shape, title)

    def _mark(
        self, x: float, y: float, colour: str, shape: str = "square", title: str = ""
    ) -> None:
        """Draw a mark at a place in pixels."""
        tag, place = {
            "circle": ("circle", f'cx="{x:.1f}" cy="{y:.1f}" r="4"'),
            "square": ("rect", f'x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8"'),
            "triangle": ("path", f'd="M{x - 5:.1f} {y + 4:.1f}h10l-5 -9z"'),
        }[shape]
        self._shape(tag, place, colour, title)

    def _shape(self, tag: str, place: str, colour: str, title: str) -> None:
        tip = f"<title>{_text(title)}</title>" if title else ""
        self.parts.append(f'<{tag} {place} fill="{colour}">{tip}</{tag}>')


def picture(*planes: Plane, file: bool = False) -> Markup:
    """Return the element of an image of planes, one below the other; with ``file``, an image for
    itself.
    """
    width = planes[0].width
    height = 0
    parts = []
    between = "\n" if file else ""
    for plane in planes:
        parts.append(f'<g transform="translate(0 {height})">{between.join(plane.parts)}</g>')
        height += plane.height
    head = f'class="plot" viewBox="0 0 {width} {height}" role="img"'
    drawn = between.join(parts)
    if not file:
        return Markup(f"<svg {head}>{drawn}</svg>")
    style = f'<style>\n{_light_style()}\n</style>\n<rect width="{width}" height="{height}" fill="#ffffff"/>'
    return Markup(f'<svg xmlns="http://www.w3.org/2000/svg" {head}>\n{style}\n{drawn}\n</svg>\n')


@functools.cache
def _light_style() -> str:
    """Return the rules for plots of the style sheet, with the colours of the light scheme in place."""
    css = Path(__file__).with_name("templates").joinpath("style.css").read_text(encoding="utf-8")
    light = dict(re.findall(r"--(\w+): (#\w+)", css.partition("@media")[0]))
    rules = "\n".join(
        line for line in css.splitlines() if line.startswith((".plot text", ".plot ."))
    )
    return re.sub(r"var\(--(\w+)\)", lambda name: light[name[1]], rules)


def _legend_width(name: str) -> int:
    return 28 + math.ceil(_CHARACTER * len(name))


def _legend_rows(legend: Iterable[tuple[str, ...]], available: int) -> list[list[tuple[str, ...]]]:
    """Divide the entries of a legend into rows that are not too wide."""
    rows: list[list[tuple[str, ...]]] = []
    used = available
    for entry in legend:
        wide = _legend_width(entry[0])
        if used + wide > available:
            rows.append([])
            used = 0
        rows[-1].append(entry)
        used += wide
    return rows
