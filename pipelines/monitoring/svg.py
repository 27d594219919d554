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

HEIGHT = 260  # of an image; all sizes are in pixels
# Margins around the plane; ``MARGIN`` where there is no axis.
TOP = 34
BOTTOM = 46
MARGIN = 12
_LEFT = 62
_LEGEND_ROW_HEIGHT = 16
_TICKS = 5  # about the number of ticks of an axis
_CHARACTER_WIDTH = 6.6  # about that of the font of plots


def left_margin(names: Iterable[str]) -> int:
    """Return the width of a left margin in pixels: as wide as the longest of ``names`` (of rows)
    and a space of 16 pixels, but 400 at most. Without names it is the space.
    """
    return min(16 + math.ceil(_CHARACTER_WIDTH * max(map(len, names), default=0)), 400)


def make_ticks(start: float, end: float, most: int = _TICKS, whole: bool = False) -> list[float]:
    """Return round numbers from ``start`` to ``end`` for the ticks of an axis, about ``most`` at
    most; with ``whole`` only whole numbers. An axis without length has one tick, at ``start``.
    """
    span = end - start
    if not span > 0:
        return [start]
    # The smallest step of 1, 2 or 5 times a power of ten with which there are not too many.
    step = 10.0 ** math.floor(math.log10(span / most))
    step *= next(factor for factor in (1, 2, 5, 10) if factor * step * most >= span)
    if whole:
        step = max(1.0, round(step))
    # Ticks are the multiples of the step from the one numbered ``first`` to the one numbered
    # ``last``. The ends of the axis count even if rounding puts them just outside.
    first = math.ceil(start / step - 1e-9)
    last = math.floor(end / step + 1e-9)
    return [i * step for i in range(first, last + 1)]


def make_log_ticks(low: float, high: float) -> list[float]:
    """Return numbers from ``low`` to ``high`` for the ticks of a logarithmic axis: 1, 2 and 5 times
    powers of ten, or powers of ten alone if those are too many.
    """
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = []
    for exponent in exponents:
        for factor in (1, 2, 5):
            if low <= factor * 10.0**exponent <= high:
                ticks.append(factor * 10.0**exponent)
    if len(ticks) <= 2 * _TICKS:
        return ticks
    return [tick for tick in ticks if round(math.log10(tick), 6).is_integer()]


def _escape(value: object) -> Markup:
    """Return a value as text of the image, printable and escaped."""
    return escape(printed(value))


class Size(NamedTuple):
    """Width and height of an image without its legend, and the margins at the left and the bottom,
    in pixels.
    """

    width: int
    height: int = HEIGHT
    left: int = _LEFT  # width of the left margin, for the names along the vertical axis
    bottom: int = BOTTOM  # height of the bottom margin


class Plane:
    """A plot under construction: a plane between two axes and margins, in an image of a size.

    Parameters
    ----------
    title : str
        Text above the plane; "" for none.
    x, y : pair of float
        The values of the axes at the left and the right, and at the bottom and the top.
    size : Size
    legend : iterable of tuples of str
        Entries above the plane: a name, its colour, and perhaps the shape of its mark ("square" by
        default).
    log : str
        The axes that are logarithmic: "", "x", "y" or "xy".

    Attributes
    ----------
    width, height : int
        Of the image.
    left, top, right, bottom : int
        Where the plane is in the image.
    parts : list of str
        The elements of SVG so far.
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
        # The legend makes the image higher, and moves the plane down.
        width, height, left, bottom = size
        legend_rows = _legend_rows(legend, width - left - MARGIN)
        legend_height = _LEGEND_ROW_HEIGHT * len(legend_rows)
        self.width = width
        self.height = height + legend_height
        self._x = x
        self._y = y
        self._log = log
        self.left = left
        self.top = TOP + legend_height
        self.right = width - MARGIN
        self.bottom = self.height - bottom
        self.parts: list[str] = []
        # The title and the legend, whose entries are a mark and a name.
        if title:
            self.text(left, 18, title, "title")
        for i, entries in enumerate(legend_rows):
            x_of_entry = left
            for name, *look in entries:
                self._mark(x_of_entry + 5, 35 + _LEGEND_ROW_HEIGHT * i, *look)
                self.text(x_of_entry + 14, 39 + _LEGEND_ROW_HEIGHT * i, name)
                x_of_entry += _legend_width(name)

    def at_x(self, value: float) -> float:
        """Return where a value of the horizontal axis is, in pixels from the left."""
        return self.left + self._fraction(value, self._x, "x") * (self.right - self.left)

    def at_y(self, value: float) -> float:
        """Return where a value of the vertical axis is, in pixels from the top."""
        return self.bottom - self._fraction(value, self._y, "y") * (self.bottom - self.top)

    def _fraction(self, value: float, ends: tuple[float, float], axis: str) -> float:
        """Return how far along an axis a value is: 0 at its begin, 1 at its end.

        ``ends`` are the values at its begin and its end, and ``axis`` is "x" or "y", which may be
        logarithmic.
        """
        low, high = ends
        if axis in self._log:
            value, low, high = map(math.log, (value, low, high))
        return (value - low) / ((high - low) or 1)  # an axis may have the length 0

    def text(
        self, x: float, y: float, words: object, css_class: str = "", attributes: str = ""
    ) -> None:
        """Write words at a place in pixels of the image. ``css_class`` is their class in the style
        sheet, and ``attributes`` are further ones of the element, as SVG with a leading space.
        """
        classes = f' class="{css_class}"' if css_class else ""
        self.parts.append(
            f'<text{classes} x="{x:.1f}" y="{y:.1f}"{attributes}>{_escape(words)}</text>'
        )

    def rule(self, x: float | None = None, y: float | None = None, kind: str = "grid") -> None:
        """Draw a line across the plane at a value of an axis: ``x`` draws a vertical line, ``y`` a
        horizontal line, both draw two; None draws none. ``kind`` is the class in the style sheet.
        """
        path = ""
        if y is not None:
            path += f"M{self.left} {self.at_y(y):.1f}H{self.right}"
        if x is not None:
            path += f"M{self.at_x(x):.1f} {self.top}V{self.bottom}"
        self.parts.append(f'<path class="{kind}" d="{path}"/>')

    def x_axis(self, label: str, whole: bool = False) -> None:
        """Draw the horizontal axis with ticks and a label. ``whole`` has ticks at whole numbers
        only.
        """
        ticks = make_ticks(*self._x, whole=whole)
        if "x" in self._log:
            ticks = make_log_ticks(*self._x)
        for tick in ticks:
            self.rule(x=tick)
            self.text(self.at_x(tick), self.bottom + 16, f"{tick:,.10g}", "middle")
        self.x_label(label)

    def x_label(self, label: str) -> None:
        """Draw the horizontal axis without ticks, and its label."""
        self.text((self.left + self.right) / 2, self.bottom + 36, label, "middle")
        self.parts.append(f'<path class="axis" d="M{self.left} {self.bottom}H{self.right}"/>')

    def y_axis(self, label: str, percent: bool = False) -> None:
        """Draw the ticks and the label of the vertical axis. ``percent`` writes values, shares from
        0 to 1, in percent.
        """
        ticks = make_ticks(*self._y)
        if "y" in self._log:
            ticks = make_log_ticks(*self._y)
        for tick in ticks:
            number = f"{100 * tick:.0f} %" if percent else f"{tick:,.10g}"
            self.rule(y=tick)
            self.text(self.left - 6, self.at_y(tick) + 4, number, "end")
        middle = (self.top + self.bottom) / 2
        self.text(14, middle, label, "middle", f' transform="rotate(-90 14 {middle:.0f})"')

    def rows_axis(self, names: Sequence[str]) -> None:
        """Write the names of rows of height 1 beside the vertical axis, the first at the top."""
        for i, name in enumerate(names):
            self.text(self.left - 6, self.at_y(len(names) - i - 0.5) + 4, name, "end")

    def bar(
        self, x: tuple[float, float], y: tuple[float, float], colour: str, title: str = ""
    ) -> None:
        """Draw a rectangle between two values of each axis: left and right, bottom and top.
        ``title`` is the text that browsers show where the pointer rests.
        """
        left, right = map(self.at_x, x)
        bottom, top = map(self.at_y, y)
        width = max(right - left, 0.3)  # or a browser would not draw it
        place = f'x="{left:.2f}" y="{top:.2f}" width="{width:.2f}" height="{bottom - top:.2f}"'
        self._shape("rect", place, colour, title)

    def line(self, path: Iterable[tuple[float, float]], colour: str) -> None:
        """Draw a line through points, given by values of the axes."""
        corners = " ".join(f"{self.at_x(x):.1f},{self.at_y(y):.1f}" for x, y in path)
        self.parts.append(
            f'<polyline points="{corners}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )

    def mark(self, x: float, y: float, colour: str, shape: str = "circle", title: str = "") -> None:
        """Draw a mark at values of the axes. ``shape`` is "circle", "square" or "triangle", and
        ``title`` the text that browsers show where the pointer rests.
        """
        self._mark(self.at_x(x), self.at_y(y), colour, shape, title)

    def _mark(
        self, x: float, y: float, colour: str, shape: str = "square", title: str = ""
    ) -> None:
        """Draw a mark around a place in pixels of the image. ``colour``, ``shape`` ("circle",
        "square" or "triangle") and ``title`` are those of ``mark``.
        """
        tag, place = {
            "circle": ("circle", f'cx="{x:.1f}" cy="{y:.1f}" r="4"'),
            "square": ("rect", f'x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8"'),
            "triangle": ("path", f'd="M{x - 5:.1f} {y + 4:.1f}h10l-5 -9z"'),
        }[shape]
        self._shape(tag, place, colour, title)

    def _shape(self, tag: str, place: str, colour: str, title: str) -> None:
        """Draw a filled shape: an element ``tag`` of SVG, with the attributes ``place`` that say
        where it is. ``title`` is the text that browsers show where the pointer rests.
        """
        tip = f"<title>{_escape(title)}</title>" if title else ""
        self.parts.append(f'<{tag} {place} fill="{colour}">{tip}</{tag}>')


def picture(*planes: Plane, file: bool = False) -> Markup:
    """Return an image of planes, one below the other, as SVG: an element for a page that has the
    style sheet, or with ``file`` the text of a file, which includes it.
    """
    width = planes[0].width
    height = 0  # of the planes so far: where the next one begins
    groups = []
    separator = "\n" if file else ""
    for plane in planes:
        groups.append(f'<g transform="translate(0 {height})">{separator.join(plane.parts)}</g>')
        height += plane.height
    attributes = f'class="plot" viewBox="0 0 {width} {height}" role="img"'
    content = separator.join(groups)
    if not file:  # a page has the style sheet already
        return Markup(f"<svg {attributes}>{content}</svg>")
    style = f"<style>\n{_light_style()}\n</style>"
    background = f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    return Markup(
        f'<svg xmlns="http://www.w3.org/2000/svg" {attributes}>\n'
        f"{style}\n{background}\n{content}\n</svg>\n"
    )


@functools.cache
def _light_style() -> str:
    """Return the rules of the style sheet that are for plots, as CSS, with the colours of the light
    scheme in place of its variables.
    """
    style_sheet = Path(__file__).with_name("templates") / "style.css"
    css = style_sheet.read_text(encoding="utf-8")
    light_scheme, _, _ = css.partition("@media")  # what follows is the dark one
    colours = dict(re.findall(r"--(\w+): (#\w+)", light_scheme))  # by name: "--ink: #24292f"
    rules = [line for line in css.splitlines() if line.startswith((".plot text", ".plot ."))]
    # "var(--ink)" becomes its colour
    return re.sub(r"var\(--(\w+)\)", lambda variable: colours[variable[1]], "\n".join(rules))


def _legend_width(name: str) -> int:
    """Return the width in pixels of an entry of a legend: a mark, a name and the space behind."""
    return 28 + math.ceil(_CHARACTER_WIDTH * len(name))


def _legend_rows(legend: Iterable[tuple[str, ...]], available: int) -> list[list[tuple[str, ...]]]:
    """Divide the entries of a legend, tuples that begin with a name, into rows that are at most
    ``available`` pixels wide. An entry that is wider has a row of its own.
    """
    rows: list[list[tuple[str, ...]]] = []
    used = available  # so that the first entry begins a row
    for entry in legend:
        width = _legend_width(entry[0])
        if used + width > available:
            rows.append([])
            used = 0
        rows[-1].append(entry)
        used += width
    return rows
