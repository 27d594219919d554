"""Plots of the benchmark pages: dots on a logarithmic axis, and clouds of dots in panels."""

from __future__ import annotations

from pipelines.monitoring.run_plots import COLOURS
from pipelines.monitoring.svg import BOTTOM, TOP, Plane, Size, left_margin, picture

WIDTH = 860
ROW = 22
_SHAPES = ("circle", "square", "triangle")


def look_of(i: int) -> tuple[str, str]:
    """Return colour and shape of the marks of the label ``i``; colours start again with the next shape."""
    return COLOURS[i % len(COLOURS)], _SHAPES[i // len(COLOURS) % len(_SHAPES)]


def legend_of(labels: list[str]) -> list[tuple[str, ...]]:
    return [(label, *look_of(i)) for i, label in enumerate(labels)]


def dots(
    title: str, axis: str, rows: dict[str, dict[str, float]], reference: float | None = 1.0
) -> str:
    """Plot one row of dots per name, with a color per label, on a logarithmic axis with a line at ``reference``."""
    labels = list(dict.fromkeys(label for values in rows.values() for label in values))
    numbers = [value for values in rows.values() for value in values.values()]
    numbers += [] if reference is None else [reference]
    ends = (min(numbers) / 1.15, max(numbers) * 1.15)
    height = TOP + BOTTOM + ROW * len(rows)
    size = Size(WIDTH, height, left_margin(rows))
    plane = Plane(title, ends, (0, len(rows)), size, legend=legend_of(labels), log="x")
    plane.x_axis(axis)
    plane.rows_axis(list(rows))
    if reference is not None:
        plane.rule(x=reference, kind="axis")
    for i, values in enumerate(rows.values()):
        plane.rule(y=len(rows) - i - 0.5)
        for label, value in values.items():
            plane.mark(value, len(rows) - i - 0.5, *look_of(labels.index(label)))
    return picture(plane, file=True)


def clouds(
    title: str,
    panels: list[tuple[str, str, dict[str, list[tuple[float, float]]]]],
    known: tuple[str, ...],
) -> str:
    """Plot panels (axis, vertical axis, dots per label) one below the other, with a logarithmic vertical axis.

    The position of a label in ``known`` decides its color, so that it is the same in all plots.
    """
    legend = [
        entry for entry in legend_of(list(known)) if any(entry[0] in kinds for *_, kinds in panels)
    ]
    planes = []
    for i, (axis, vertical, kinds) in enumerate(panels):
        points = [point for found in kinds.values() for point in found]
        x_end = max(1.0, *(x for x, _ in points))
        y_ends = min(y for _, y in points) / 1.15, max(y for _, y in points) * 1.15
        head = {"title": "" if i else title, "legend": () if i else legend}
        plane = Plane(x=(0, x_end), y=y_ends, size=Size(WIDTH, 290, 70), log="y", **head)
        plane.x_axis(axis, whole=True)
        plane.y_axis(vertical)
        for label, found in kinds.items():
            colour = look_of(known.index(label))[0]
            width = 4 if len(found) > 100 else 6
            # many dots as one element
            drawn = "".join(f"M{plane.at_x(x):.0f} {plane.at_y(y):.0f}h0" for x, y in found)
            look = f'stroke="{colour}" stroke-width="{width}" stroke-linecap="round" fill="none"'
            plane.parts.append(f'<path d="{drawn}" {look}/>')
        planes.append(plane)
    return picture(*planes, file=True)
