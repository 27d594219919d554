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
_ROW_HEIGHT = 18  # of a row with a name, in pixels


def time_unit(span: float) -> tuple[str, float]:
    """Return the unit in which a time axis of ``span`` seconds is read easily: its name, and how
    many seconds it has.
    """
    if span > 7200:
        return "hours", 3600.0
    if span > 300:
        return "minutes", 60.0
    return "seconds", 1.0


def large_unit(most: float) -> tuple[str, float]:
    """Return the unit in which an axis up to the number ``most`` is read easily: the word that its
    label begins with, such as "million ", and its size. Below 10,000 they are "" and 1.
    """
    for begins_at, word, size in (
        (1e9, "billion ", 1e9),
        (1e6, "million ", 1e6),
        (1e4, "thousand ", 1e3),
    ):
        if most >= begins_at:
            return word, size
    return "", 1.0


class Bar(NamedTuple):
    """A rectangle of a plot, whose sides are values of the axes."""

    left: float  # value of the horizontal axis, as ``right``
    right: float
    bottom: float  # value of the vertical axis, as ``top``
    top: float
    colour: str  # as SVG takes it
    tip: str  # the text that browsers show at the pointer
    label: str = ""  # what the colour means, for the legend; "" if the bar has no entry there


class Bars(NamedTuple):
    """A plot of rectangles."""

    bars: list[Bar]
    title: str  # text above the plot
    x_label: str  # text below the horizontal axis
    y_label: str  # text beside the vertical axis; unused with ``rows``
    x: tuple[float, float]  # values at which the horizontal axis begins and ends
    y: tuple[float, float]  # values at which the vertical axis begins and ends
    rows: tuple[str, ...] = ()  # names along the vertical axis, from the top, in place of numbers
    x_is_whole: bool = False  # whether the horizontal axis has whole numbers only, as hops are

    def draw(self) -> Markup:
        """Return the plot as an image, with its axes and a legend."""
        # each label once, in the order of the bars
        legend = list(dict.fromkeys((bar.label, bar.colour) for bar in self.bars if bar.label))
        if self.rows:
            height = TOP + BOTTOM + _ROW_HEIGHT * len(self.rows)
            size = Size(1140, height, left_margin(self.rows))
            plane = Plane(self.title, self.x, self.y, size, legend=legend)
            plane.rows_axis(self.rows)
        else:
            plane = Plane(self.title, self.x, self.y, Size(560), legend=legend)
            plane.y_axis(self.y_label)
        plane.x_axis(self.x_label, whole=self.x_is_whole)
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
    """Return the plots of a run as SVG, by name: rates, phases, a timeline if there are
    ``batches``, as ``run_stats.summarize_batch`` makes them, and plots of distances if these are
    known.
    """
    plots = {what: plot_rates(stats, what).draw() for what in ("sources", "edges")}
    plots["phases"] = plot_phases(stats.shares(MAX_ROWS)).draw()
    if batches:
        plots["timeline"] = plot_timeline(stats, batches).draw()
    if stats.distances is not None:
        plots["reach"] = draw_reach(stats.distances, algorithm)
        plots["histogram"] = plot_histogram(stats.distances, algorithm).draw()
    return plots


def plot_rates(stats: RunStats, what: str) -> Bars:
    """Return the plot of what each worker did per second in each bin of time, with a bar per worker
    on top of those of the workers before it.

    ``what`` is the quantity that is counted: "sources" or "edges".
    """
    begins, rates = stats.series(what)
    unit, unit_seconds = time_unit(stats.ended - stats.started)
    total = sum(rates.values(), np.zeros(begins.size))
    word, size = large_unit(total.max())
    bottom = np.zeros(begins.size)  # by bin, the sum of the rates of the workers so far
    bars = []
    for i, (name, rate) in enumerate(rates.items()):
        # The last colour is that of the workers without a bar of their own, taken together.
        colour = COLOURS[-1] if name == OTHERS else COLOURS[i % (len(COLOURS) - 1)]
        top = bottom + rate
        for k in np.flatnonzero(rate):
            left = begins[k] / unit_seconds
            right = (begins[k] + stats.width) / unit_seconds
            tip = f"{name}: {rate[k]:,.1f} {what}/s, from {left:.3g} to {right:.3g}"
            bars.append(Bar(left, right, bottom[k] / size, top[k] / size, colour, tip, name))
        bottom = top
    return Bars(
        bars,
        title=f"{what} per second, by worker",
        x_label=f"{unit} from the start",
        y_label=f"{word}{what}/s",
        x=(0, begins.size * stats.width / unit_seconds),
        # Some space above the highest bar; to 1 if all are 0, since an axis has a length.
        y=(0, 1.05 * total.max() / size or 1),
    )


def plot_phases(shares: dict[str, Share]) -> Bars:
    """Return the plot of the seconds of each worker by phase, with a row per worker. ``shares`` has
    the totals by the name of the worker.
    """
    # The bar of all others together would dwarf the rest.
    named = {name: share for name, share in shares.items() if name != OTHERS}
    bars = []
    longest = 0.0
    for i, (name, share) in enumerate(named.items()):
        bottom, top = _row_ends(i, len(named))
        left = 0.0
        for phase in PHASES:
            seconds = share.phases.get(phase, 0.0)
            right = left + seconds
            tip = f"{name}: {phase} {seconds:,.2f} s"
            bars.append(Bar(left, right, bottom, top, PHASE_COLOURS[phase], tip, phase))
            left = right
        longest = max(longest, left)
    return Bars(
        bars,
        title="seconds by phase" + (" of the busiest workers" if len(named) < len(shares) else ""),
        x_label="seconds of work",
        y_label="",
        x=(0, 1.03 * longest or 1),  # some space behind the longest; 1 if all are 0
        y=(0, len(named) or 1),
        rows=tuple(named),
    )


def _row_ends(i: int, count: int) -> tuple[float, float]:
    """Return the bottom and the top of the bars in row ``i`` of ``count`` rows, the first of which
    is at the top. They are values of an axis on which a row has the height 1, and a bar 0.75.
    """
    return count - i - 0.875, count - i - 0.125


def _summarize_bins(
    distances: Histogram, are_hops: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return three float64 arrays with a number per bin of a histogram: the smallest and the
    largest distance that it holds, and the number of pairs of source and vertex. ``are_hops`` is
    whether distances are hops.
    """
    counts = np.asarray(distances["counts"], np.float64)
    firsts = (distances["first"] + np.arange(counts.size)) * distances["width"]
    # A bin ends where the next begins; a bin of hops, which are whole, ends one before that.
    return firsts, firsts + distances["width"] - are_hops, counts


def plot_histogram(distances: Histogram, algorithm: str) -> Bars:
    """Return the plot of how many pairs of source and vertex lie at each distance. With "bfs" as
    the ``algorithm`` distances are hops.
    """
    are_hops = algorithm == "bfs"
    # ``firsts`` and ``lasts``: smallest and largest distance of each bin
    firsts, lasts, counts = _summarize_bins(distances, are_hops)
    margin = 0.5 * are_hops  # a number of hops is in the middle of its bar
    word, size = large_unit(counts.max())
    bars = []
    for first, last, count in zip(firsts, lasts, counts, strict=True):
        interval = f"{first:.10g}"
        if first != last:
            interval += f" to {last:.10g}"
        tip = f"distance {interval}: {count:,.0f} pairs"
        bars.append(Bar(first - margin, last + margin, 0, count / size, COLOURS[0], tip))
    return Bars(
        bars,
        title="distances",
        x_label="hops" if are_hops else "distance",
        y_label=f"{word}pairs of source and vertex",
        x=(firsts[0] - margin, lasts[-1] + margin),
        y=(0, 1.05 * counts.max() / size),
        x_is_whole=are_hops,
    )


def draw_reach(distances: Histogram, algorithm: str) -> Markup:
    """Return the hop plot as SVG: which share of the pairs of source and reached vertex lies within
    each distance. With "bfs" as the ``algorithm`` distances are hops.
    """
    are_hops = algorithm == "bfs"
    firsts, lasts, counts = _summarize_bins(distances, are_hops)
    margin = 0.5 * are_hops
    title = "hop plot" if are_hops else "pairs within a distance"
    plane = Plane(title, (firsts[0] - margin, lasts[-1] + margin), (0, 1.03), Size(560))
    plane.x_axis("hops" if are_hops else "distance", whole=are_hops)
    plane.y_axis("share of reached pairs", percent=True)

    # The share rises in a step at the largest distance of each bin (``lasts``): each corner is at
    # the share before the step, or at the share after it.
    points = list(zip(lasts, np.cumsum(counts) / counts.sum(), strict=True))
    corners = points[:1]
    for (_, share_before), (x, share) in itertools.pairwise(points):
        corners += [(x, share_before), (x, share)]
    plane.line(corners, COLOURS[1])
    for x, share in points:
        plane.mark(x, share, COLOURS[1], title=f"up to {x:.10g}: {100 * share:.1f} %")
    return picture(plane)


def plot_timeline(stats: RunStats, batches: Sequence[dict[str, Any]]) -> Bars:
    """Return the plot of when each worker was busy, and in which phase, with a row per worker.

    ``batches`` are as ``run_stats.summarize_batch`` makes them.
    """
    names = stats.busiest(MAX_ROWS)
    # name of the row of each worker: its own, or the last of ``names``, which stands for all
    # workers without a row
    rows = {
        worker: worker if worker in names else names[-1]
        for worker in {batch["worker"] for batch in batches}
    }
    unit, unit_seconds = time_unit(stats.ended - stats.started)
    bars = []
    for span in _make_spans(batches, rows):
        bottom, top = _row_ends(names.index(span.row), len(names))
        # without loading, which ended before the first batch of a worker began
        phases = {phase: span.seconds(phase) for phase in PHASES if phase != "load"}
        # Phases may overlap, and then add up to more than the time of the span: they are drawn one
        # after another, shortened to fit into it.
        scale = min(1.0, (span.ended - span.started) / max(sum(phases.values()), 1e-9))
        begin = span.started - stats.started
        for phase, seconds in phases.items():
            end = begin + seconds * scale
            left = begin / unit_seconds
            right = end / unit_seconds
            tip = f"{span.name}: {phase} {seconds:.3f} s"
            bars.append(Bar(left, right, bottom, top, PHASE_COLOURS[phase], tip, phase))
            begin = end
    return Bars(
        bars,
        title="timeline of batches",
        x_label=f"{unit} from the start",
        y_label="",
        # some space behind the last bar; 1 if none has a length
        x=(0, 1.01 * max((bar.right for bar in bars), default=0.0) or 1),
        y=(0, len(names) or 1),
        rows=tuple(names),
    )


class _Span(NamedTuple):
    """One batch of a worker, or several that follow each other, as the timeline shows them."""

    row: str  # name of the row of the timeline
    # batches as ``run_stats.summarize_batch`` makes them, ordered by their start; at least one
    batches: list[dict[str, Any]]

    @property
    def started(self) -> float:
        """Begin of the first batch, in seconds since the epoch."""
        return self.batches[0]["started"]

    @property
    def ended(self) -> float:
        """End of the last batch, in seconds since the epoch."""
        return max(batch["ended"] for batch in self.batches)

    @property
    def name(self) -> str:
        """The batches in words."""
        more = len(self.batches) - 1
        return f"batch {self.batches[0]['part']}" + (f" and {more} more" if more else "")

    def seconds(self, phase: str) -> float:
        """Return the seconds of a phase in all batches."""
        return sum(batch["phases"].get(phase, 0.0) for batch in self.batches)


def _make_spans(batches: Sequence[dict[str, Any]], rows: dict[str, str]) -> Iterator[_Span]:
    """Yield the batches as spans, row by row and by their start: one batch per span, or several if
    there are more than ``MAX_BARS``.

    ``rows`` has the name of the row of each worker.
    """
    batches_by_row: dict[str, list[dict[str, Any]]] = {}
    for batch in sorted(batches, key=lambda batch: batch["started"]):
        batches_by_row.setdefault(rows[batch["worker"]], []).append(batch)
    batches_per_span = -(-len(batches) // MAX_BARS)
    for row, row_batches in batches_by_row.items():
        for begin in range(0, len(row_batches), batches_per_span):
            yield _Span(row, row_batches[begin : begin + batches_per_span])
