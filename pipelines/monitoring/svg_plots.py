"""The plots of the report, in SVG."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from ..output.manifest_types import Histogram
from .plot_data import COLOURS, PHASE_COLOURS, Rates, rates_of, reach_of
from .run_stats import OTHERS, PHASES, RunStats, Share
from .svg import BOTTOM, TOP, Plane, left_of, picture

_ROW = 18  # height of a worker's row


def rates(chronicle: RunStats, what: str) -> Markup:
    """Draw what the workers did per second over time; ``what`` is "sources" or "edges"."""
    found: Rates = rates_of(chronicle, what)
    columns = found.columns
    legend = list(dict.fromkeys(zip(columns["worker"], columns["colour"], strict=True)))
    plane = Plane(f"{what} per second, by worker", (0, found.x_end), (0, found.y_end), 560, legend=legend)
    plane.x_axis(found.x_label)
    plane.y_axis(found.y_label)
    keys = ("left", "right", "bottom", "top", "rate", "worker", "colour")
    for left, right, bottom, top, rate, worker, colour in zip(*(columns[key] for key in keys), strict=True):
        title = f"{worker}: {rate:,.1f} {what}/s, from {left:.3g} to {right:.3g}"
        plane.bar((left, right), (bottom, top), colour, title)
    return picture(plane)


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
    return picture(plane)


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
    return picture(plane)


def _rows_plane(title: str, names: Sequence[str], end: float) -> Plane:
    height = TOP + BOTTOM + max(_ROW * len(names), _ROW)
    plane = Plane(title, (0, end), (0, len(names) or 1), 1140, height, left_of(names), legend=PHASE_COLOURS.items())
    plane.rows_axis(names)
    return plane


def _row(i: int, count: int) -> tuple[float, float]:
    return count - i - 0.875, count - i - 0.125


def histogram(distances: Histogram, algorithm: str) -> Markup:
    """Draw how many pairs of source and vertex lie at each distance."""
    found = reach_of(distances, algorithm)
    hops = algorithm == "bfs"
    plane = Plane("distances", (found.x_start, found.x_end), (0, found.y_end), 560)
    plane.x_axis("hops" if hops else "distance", whole=hops)
    plane.y_axis(found.y_label)
    keys = ("left", "right", "height", "first", "last", "count")
    for left, right, height, first, last, count in zip(*(found.columns[key] for key in keys), strict=True):
        which = f"{first:.10g}" if first == last else f"{first:.10g} to {last:.10g}"
        plane.bar((left, right), (0, height), COLOURS[0], f"distance {which}: {count:,.0f} pairs")
    return picture(plane)


def reach(distances: Histogram, algorithm: str) -> Markup:
    """Draw the hop plot: which share of the pairs that were reached lies within a distance."""
    found = reach_of(distances, algorithm)
    hops = algorithm == "bfs"
    title = "hop plot" if hops else "pairs within a distance"
    plane = Plane(title, (found.x_start, found.x_end), (0, 1.03), 560)
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
        plane.mark(x, y, COLOURS[1], title=f"up to {x:.10g}: {100 * y:.1f} %")
    return picture(plane)
