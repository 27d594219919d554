"""Small SVG plots: dots on a logarithmic axis, lines over the values of a knob, clouds of dots in panels."""

from __future__ import annotations

import math
from html import escape

COLOURS = ("#4e79a7", "#f28e2b", "#e15759", "#76b7b2", "#59a14f", "#edc948", "#b07aa1", "#ff9da7", "#9c755f", "#888888")
MARKS = ("circle", "square", "triangle")  # colours start again with the next shape
WIDTH, LEFT, RIGHT, TOP, ROW = 860, 190, 200, 46, 22
CLOUDS_LEFT = 70


def colour(i: int) -> str:
    return COLOURS[i % len(COLOURS)]


def text(x: float, y: float, words: str, anchor: str = "start", size: int = 11, weight: str = "normal") -> str:
    style = f'text-anchor="{anchor}" font-size="{size}" font-weight="{weight}"'
    return f'<text x="{x:.0f}" y="{y:.0f}" {style}>{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, stroke: str = "#dddddd", width: float = 1) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{stroke}" stroke-width="{width}"/>'


def mark(i: int, x: float, y: float) -> str:
    shape = MARKS[i // len(COLOURS) % len(MARKS)]
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour(i)}"/>'
    if shape == "square":
        return f'<rect x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8" fill="{colour(i)}"/>'
    return f'<path d="M{x - 5:.1f} {y + 4:.1f}h10l-5 -9z" fill="{colour(i)}"/>'


def legend(labels: list[str], height: float, marks: list[int] | None = None) -> list[str]:
    x = WIDTH - RIGHT + 16
    step = min(18.0, (height - TOP) / max(len(labels), 1))
    parts = []
    for i, label in enumerate(labels):
        y = TOP + i * step + 6
        parts += [mark(marks[i] if marks else i, x, y), text(x + 10, y + 4, label)]
    return parts


def picture(title: str, height: float, parts: list[str]) -> str:
    style = 'font-family="sans-serif" fill="#222222"'
    begin = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" {style}>'
    white = f'<rect width="{WIDTH}" height="{height:.0f}" fill="#ffffff"/>'
    return "\n".join([begin, white, text(12, 20, title, size=13, weight="bold"), *parts, "</svg>"]) + "\n"


def ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten within the range; powers alone if those are too many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    fine = [m * 10.0**p for p in powers for m in (1, 2, 5) if low <= m * 10.0**p <= high]
    return fine if len(fine) <= 10 else [t for t in fine if round(math.log10(t), 6).is_integer()]


def dots(title: str, axis: str, rows: dict[str, dict[str, float]], reference: float | None = 1.0) -> str:
    """Plot one row of dots per name, with a color per label, on a logarithmic axis with a line at ``reference``."""
    labels = list(dict.fromkeys(label for values in rows.values() for label in values))
    numbers = [value for values in rows.values() for value in values.values()]
    numbers += [] if reference is None else [reference]
    low, high = min(numbers) / 1.15, max(numbers) * 1.15
    height = max(TOP + ROW * len(rows), TOP + 18 * len(labels)) + 44
    bottom = TOP + ROW * len(rows)

    def at(value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log(value / low) / math.log(high / low)

    parts = [text((LEFT + WIDTH - RIGHT) / 2, bottom + 34, axis, "middle")]
    for value in ticks(low, high):
        parts += [line(at(value), TOP - 8, at(value), bottom), text(at(value), bottom + 16, f"{value:g}", "middle")]
    if reference is not None:
        parts.append(line(at(reference), TOP - 8, at(reference), bottom, "#222222", 1.5))
    for i, (name, values) in enumerate(rows.items()):
        y = TOP + ROW * i + ROW / 2
        parts += [text(LEFT - 8, y + 4, name, "end"), line(LEFT, y, WIDTH - RIGHT, y, "#eeeeee")]
        parts += [mark(labels.index(label), at(value), y) for label, value in values.items()]
    return picture(title, height, parts + legend(labels, height))


def lines(title: str, axis: str, rows: dict[str, dict[str, float]]) -> str:
    """Plot one line per name over the labels, which are at equal distances; values are from 0 to 1."""
    labels = list(dict.fromkeys(label for values in rows.values() for label in values))
    height = max(300, TOP + 18 * len(rows) + 10)
    bottom = height - 44

    def across(label: str) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (labels.index(label) + 0.5) / len(labels)

    def up(value: float) -> float:
        return bottom - (bottom - TOP) * value

    parts = [text((LEFT + WIDTH - RIGHT) / 2, bottom + 34, axis, "middle")]
    for value in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts += [line(LEFT, up(value), WIDTH - RIGHT, up(value)), text(LEFT - 8, up(value) + 4, f"{value:g}", "end")]
    parts += [text(across(label), bottom + 16, label, "middle") for label in labels]
    for i, values in enumerate(rows.values()):
        points = [(across(label), up(value)) for label, value in values.items()]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour(i)}" stroke-width="1.5"/>')
        parts += [mark(i, x, y) for x, y in points]
    return picture(title, height, parts + legend(list(rows), height))


def clouds(title: str, panels: list[tuple[str, str, dict[str, list[tuple[float, float]]]]], known: tuple[str, ...]) -> str:
    """Plot panels (axis, vertical axis, dots per label) one below the other, with a logarithmic vertical axis.

    The position of a label in ``known`` decides its color, so that it is the same in all plots.
    """
    labels = [label for label in known if any(label in kinds for *_, kinds in panels)]
    each, gap, right = 210, 56, WIDTH - RIGHT
    height = max(TOP + (each + gap) * len(panels), TOP + 18 * len(labels) + 10)
    parts = []
    for i, (axis, vertical, kinds) in enumerate(panels):
        top = TOP + (each + gap) * i
        points = [point for found in kinds.values() for point in found]
        furthest = max(1.0, *(x for x, _ in points))
        low, high = min(y for _, y in points) / 1.15, max(y for _, y in points) * 1.15

        def at(x: float, y: float, top=top, furthest=furthest, low=low, high=high) -> tuple[float, float]:
            share = math.log(y / low) / math.log(high / low)
            return CLOUDS_LEFT + (right - CLOUDS_LEFT) * x / furthest, top + each - each * share

        parts.append(text(CLOUDS_LEFT, top - 6, vertical))
        for value in ticks(low, high):
            _, y = at(0, value)
            parts += [line(CLOUDS_LEFT, y, right, y), text(CLOUDS_LEFT - 8, y + 4, f"{value:g}", "end")]
        for value in whole_ticks(furthest):
            x, _ = at(value, low)
            parts += [line(x, top, x, top + each, "#eeeeee"), text(x, top + each + 16, f"{value:,}", "middle")]
        parts.append(text((CLOUDS_LEFT + right) / 2, top + each + 34, axis, "middle"))
        for label, found in kinds.items():
            path = "".join("M{:.1f} {:.1f}h0".format(*at(*point)) for point in found)
            look = f'stroke="{colour(known.index(label))}" stroke-width="{4 if len(found) > 100 else 6}"'
            parts.append(f'<path d="{path}" {look} stroke-linecap="round" fill="none"/>')
    return picture(title, height, parts + legend(labels, height, [known.index(label) for label in labels]))


def whole_ticks(furthest: float) -> list[int]:
    """Return about five whole numbers at equal distances, from 0."""
    step = 10 ** max(0, math.floor(math.log10(furthest / 5)))
    step = next((step * m for m in (1, 2, 5, 10) if furthest / (step * m) <= 8), step * 10)
    return list(range(0, int(furthest) + 1, step))
