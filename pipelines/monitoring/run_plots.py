"""The plots of a run in SVG, for the report and for the page of the dashboard."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from markupsafe import Markup

from .run_stats import OTHERS, PHASES, RunStats, Share
from .svg import BOTTOM, TOP, Plane, Size, left_margin, picture

if TYPE_CHECKING:
    from ..output.manifest_types import Histogram

# Readable on white and on black.
COLOURS = (
    "#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#b8962e",
    "#b07aa1", "#d37295", "#9c755f", "#499894", "#8cb369", "#79706e",
)  # fmt: skip
PHASE_COLOURS = dict(
    zip(PHASES, ("#9a9a9a", "#b07aa1", "#4e79a7", "#59a14f", "#b8962e", "#f28e2b"), strict=True)
)
MAX_ROWS = 32  # maximum number of workers with a row of their own
MAX_BARS = 3000  # batches drawn apart; of more, neighbors become one bar
_ROW = 18  # height of a row with a name


def time_unit(span: float) -> tuple[str, float]:
    """The unit in which a time axis of so many seconds is read easily, and the seconds of it."""
    if span > 7200:
        return ("hours", 3600.0)
    if span > 300:
        return ("minutes", 60.0)
    return ("seconds", 1.0)


def large_unit(most: float) -> tuple[str, float]:
    """How an axis up to so many is read easily: what its label begins with, and by what to divide."""
    for size, word in ((1e9, "billion "), (1e6, "million "), (1e4, "thousand ")):
        if most >= size:
            return word, size if word != "thousand " else 1e3
    return "", 1.0


class Bar(NamedTuple):
    """A rectangle in the units of the axes; ``tip`` is for the pointer, and ``label``, if not
    empty, for the legend.
    """

    left: float
    right: float
    bottom: float
    top: float
    colour: str
    tip: str
    label: str = ""


class Bars(NamedTuple):
    """A plot of rectangles."""

    bars: list[Bar]
    title: str
    x_label: str
    y_label: str
    # Where the axes begin and end.
    x: tuple[float, float]
    y: tuple[float, float]
    rows: tuple[str, ...] = ()  # names along the vertical axis, from the top, in place of numbers
    hops: bool = False  # whether the horizontal axis is that of whole hops

    def drawn(self) -> Markup:
        """Return the plot as an image."""
        legend = list(dict.fromkeys((bar.label, bar.colour) for bar in self.bars if bar.label))
        if self.rows:
            height = TOP + BOTTOM + _ROW * len(self.rows)
            size = Size(1140, height, left_margin(self.rows))
            plane = Plane(self.title, self.x, self.y, size, legend=legend)
            plane.rows_axis(self.rows)
        else:
            plane = Plane(self.title, self.x, self.y, Size(560), legend=legend)
            plane.y_axis(self.y_label)
        plane.x_axis(self.x_label, whole=self.hops)
        for bar in self.bars:
            if bar.left < bar.right:
                # There may be thousands of bars: only those that the pointer can find have a text.
                is_wide = plane.at_x(bar.right) - plane.at_x(bar.left) >= 1
                tip = bar.tip if is_wide else ""
                plane.bar((bar.left, bar.right), (bar.bottom, bar.top), bar.colour, tip)
        return picture(plane)


def draw_plots(
    stats: RunStats, algorithm: str, batches: Sequence[dict[str, Any]] = ()
) -> dict[str, Markup]:
    """Return the plots by their names: those of distances if these are known, and a timeline if
    there are batches.
    """
    plots = {what: make_rates(stats, what).drawn() for what in ("sources", "edges")}
    plots["phases"] = sum_phases(stats.shares(MAX_ROWS)).drawn()
    if batches:
        plots["timeline"] = make_timeline(stats, batches).drawn()
    if stats.distances is not None:
        plots["reach"] = draw_reach(stats.distances, algorithm)
        plots["histogram"] = make_histogram(stats.distances, algorithm).drawn()
    return plots


def make_rates(stats: RunStats, what: str) -> Bars:
    """Return what each worker did per second in each bin of time; ``what`` is "sources" or "edges"."""
    begins, rates = stats.series(what)
    unit, second = time_unit(stats.ended - stats.started)
    total = sum(rates.values(), np.zeros(begins.size))
    word, size = large_unit(total.max())
    bottom = np.zeros(begins.size)
    bars = []
    for i, (name, rate) in enumerate(rates.items()):
        colour = COLOURS[-1] if name == OTHERS else COLOURS[i % (len(COLOURS) - 1)]
        for k in np.flatnonzero(rate):
            left = begins[k] / second
            right = (begins[k] + stats.width) / second
            tip = f"{name}: {rate[k]:,.1f} {what}/s, from {left:.3g} to {right:.3g}"
            bars.append(
                Bar(left, right, bottom[k] / size, (bottom[k] + rate[k]) / size, colour, tip, name)
            )
        bottom += rate
    x = (0, begins.size * stats.width / second)
    y = (0, 1.05 * total.max() / size or 1)
    title = f"{what} per second, by worker"
    labels = (f"{unit} from the start", f"{word}{what}/s")
    return Bars(bars, title, *labels, x, y)


def sum_phases(shares: dict[str, Share]) -> Bars:
    """Return the seconds of each worker by phase."""
    # a bar of many would dwarf the rest
    named = {name: share for name, share in shares.items() if name != OTHERS}
    bars = []
    longest = 0.0
    for i, (name, share) in enumerate(named.items()):
        left = 0.0
        for phase in PHASES:
            took = share.phases.get(phase, 0.0)
            tip = f"{name}: {phase} {took:,.2f} s"
            bars.append(
                Bar(left, left + took, *_row(i, len(named)), PHASE_COLOURS[phase], tip, phase)
            )
            left += took
        longest = max(longest, left)
    title = "seconds by phase" + (" of the busiest workers" if len(named) < len(shares) else "")
    ends = (0, 1.03 * longest or 1), (0, len(named) or 1)
    return Bars(bars, title, "seconds of work", "", *ends, tuple(named))


def _row(i: int, count: int) -> tuple[float, float]:
    """Return where bars of a row begin and end, whose number counts from the top."""
    return count - i - 0.875, count - i - 0.125


def _summarize_bins(distances: Histogram, hops: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the smallest and the largest distance of each bin, and its count."""
    counts = np.asarray(distances["counts"], np.float64)
    firsts = (distances["first"] + np.arange(counts.size)) * distances["width"]
    # Hops are whole, and a distance ends where the next bin begins.
    return firsts, firsts + distances["width"] - hops, counts


def make_histogram(distances: Histogram, algorithm: str) -> Bars:
    """Return how many pairs of source and vertex lie at each distance."""
    hops = algorithm == "bfs"
    firsts, lasts, counts = _summarize_bins(distances, hops)
    word, size = large_unit(counts.max())
    bars = []
    for first, last, count in zip(firsts, lasts, counts, strict=True):
        which = f"{first:.10g}"
        if first != last:
            which += f" to {last:.10g}"
        tip = f"distance {which}: {count:,.0f} pairs"
        bars.append(Bar(first - 0.5 * hops, last + 0.5 * hops, 0, count / size, COLOURS[0], tip))
    ends = (firsts[0] - 0.5 * hops, lasts[-1] + 0.5 * hops), (0, 1.05 * counts.max() / size)
    return Bars(
        bars,
        "distances",
        "hops" if hops else "distance",
        f"{word}pairs of source and vertex",
        *ends,
        hops=hops,
    )


def draw_reach(distances: Histogram, algorithm: str) -> Markup:
    """Draw the hop plot: which share of the pairs that were reached lies within a distance."""
    hops = algorithm == "bfs"
    firsts, lasts, counts = _summarize_bins(distances, hops)
    ends = (firsts[0] - 0.5 * hops, lasts[-1] + 0.5 * hops), (0, 1.03)
    plane = Plane("hop plot" if hops else "pairs within a distance", *ends, Size(560))
    plane.x_axis("hops" if hops else "distance", whole=hops)
    plane.y_axis("share of reached pairs", percent=True)
    points = list(zip(lasts, np.cumsum(counts) / counts.sum(), strict=True))
    steps = [[(x, before), (x, y)] for (_, before), (x, y) in itertools.pairwise(points)]
    plane.line([*points[:1], *itertools.chain.from_iterable(steps)], COLOURS[1])
    for x, y in points:
        plane.mark(x, y, COLOURS[1], title=f"up to {x:.10g}: {100 * y:.1f} %")
    return picture(plane)


def make_timeline(stats: RunStats, batches: Sequence[dict[str, Any]]) -> Bars:
    """Return when each worker was busy, and with what; ``batches`` are as
    ``run_stats.summarize_batch`` makes them.
    """
    names = stats.busiest(MAX_ROWS)
    lanes = {
        name: name if name in names else names[-1]
        for name in {batch["worker"] for batch in batches}
    }
    unit, second = time_unit(stats.ended - stats.started)
    bars = []
    for span in _make_spans(batches, lanes):
        begin = span.started - stats.started
        phases = {phase: span.seconds(phase) for phase in PHASES if phase != "load"}
        # what a bar of several lacks is the time between them
        scale = min(1.0, (span.ended - span.started) / max(sum(phases.values()), 1e-9))
        row = _row(names.index(span.lane), len(names))
        for phase, seconds in phases.items():
            end = begin + seconds * scale
            tip = f"{span.name}: {phase} {seconds:.3f} s"
            colour = PHASE_COLOURS[phase]
            bars.append(Bar(begin / second, end / second, *row, colour, tip, phase))
            begin = end
    x = (0, 1.01 * max((bar.right for bar in bars), default=0.0) or 1)
    y = (0, len(names) or 1)
    return Bars(bars, "timeline of batches", f"{unit} from the start", "", x, y, tuple(names))


class _Span(NamedTuple):
    """One batch of a worker, or several that follow each other, as the timeline shows them."""

    lane: str
    batches: list[dict[str, Any]]

    @property
    def started(self) -> float:
        return self.batches[0]["started"]

    @property
    def ended(self) -> float:
        return max(batch["ended"] for batch in self.batches)

    @property
    def name(self) -> str:
        more = len(self.batches) - 1
        return f"batch {self.batches[0]['part']}" + (f" and {more} more" if more else "")

    def seconds(self, phase: str) -> float:
        """Return what a phase took of all batches."""
        return sum(batch["phases"].get(phase, 0.0) for batch in self.batches)


def _make_spans(batches: Sequence[dict[str, Any]], lanes: dict[str, str]) -> Iterator[_Span]:
    """Yield the batches by the lanes of their workers, several as one if there are many."""
    by_lane: dict[str, list[dict[str, Any]]] = {}
    for batch in sorted(batches, key=lambda batch: batch["started"]):
        by_lane.setdefault(lanes[batch["worker"]], []).append(batch)
    together = -(-len(batches) // MAX_BARS)
    for lane, row in by_lane.items():
        for begin in range(0, len(row), together):
            yield _Span(lane, row[begin : begin + together])
