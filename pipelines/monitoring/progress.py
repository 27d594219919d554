"""Progress of a run on stderr: on a terminal a few lines that are redrawn, elsewhere a line from
time to time.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ..cli.terminal import printable, say
from ..output.manifest_types import Histogram, Manifest, PartEntry
from ..output.part_stats import sum_histograms
from . import html_fragments
from .run_stats import MAX_LISTED, RunStats, summarize_batch

_LINE_EVERY = 10.0  # seconds between two lines of progress if the output is not a terminal
_MAX_WORKERS = 8  # maximum number of workers with a line each on a terminal


def collect_facts(manifest: Manifest) -> dict[str, Any]:
    """Return the facts of a run that do not change, in plain values, for the terminal and the
    dashboard. ``started`` is now, in seconds since the epoch.
    """
    keys = ("algorithm", "result", "means", "strategy", "device", "sources")
    return {
        **{key: dict(manifest)[key] for key in keys},
        "started": time.time(),
        "output": manifest["settings"]["output"],
        "vertices": manifest["graph"]["vertices"],
        "stored_edges": manifest["graph"]["stored_edges"],
    }


class Progress:
    """Progress of a run and estimated remaining time: on a terminal, a few lines that are redrawn;
    elsewhere, a line from time to time. The page of the dashboard gets the same.

    ``facts`` are those of ``collect_facts``, and ``kept``, the number of sources that an earlier
    run has computed. ``page`` is the ``PageUpdates`` that sends to the page, None without one.
    """

    def __init__(self, facts: dict[str, Any], page: Any = None) -> None:
        self._page = page
        self._stats = RunStats(facts["started"], facts["sources"], facts["kept"])
        self._lock = threading.Lock()  # a separate thread draws on the terminal
        self._console = Console(stderr=True, highlight=False)
        self._live: Live | None = None  # what redraws the lines; None if the output is no terminal
        self._last_report = time.monotonic()  # when a line was last printed, at first the begin

    def __enter__(self) -> Progress:
        """Begin to draw, if stderr is a terminal."""
        if self._console.is_terminal and not self._console.is_dumb_terminal:
            self._live = Live(
                get_renderable=self._draw_lines, console=self._console, refresh_per_second=2
            )
            self._live.start()
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        """Stop drawing, and tell the page how the run has ended. ``kind`` is the class of the
        exception that ends the run, None without one.
        """
        if self._live is not None:
            self._live.stop()
        if self._page is not None:
            state = "failed" if kind is not None or self._stats.failures else "done"
            if kind is not None and issubclass(kind, KeyboardInterrupt):
                state = "interrupted"
            self._page.end(state)

    def advance(self, part: int, summary: PartEntry) -> None:
        """Record that part file number ``part`` is written. ``summary`` is its entry in the
        manifest. Elsewhere than on a terminal, print a line of progress if the one before was
        printed ``_LINE_EVERY`` seconds ago or earlier.
        """
        batch = summarize_batch(part, summary)
        assert batch is not None  # a batch of this run has times
        self._add("batches", batch, summary["distances"])
        if self._live is None and time.monotonic() - self._last_report >= _LINE_EVERY:
            self._last_report = time.monotonic()
            say(self._describe_progress())

    def failed(self, part: int, sources: list[Any], error: str) -> None:
        """Record that some sources of batch number ``part`` failed with an error, and print it."""
        self._add(
            "failed",
            {"part": part, "sources": sources[:MAX_LISTED], "n": len(sources), "error": error},
        )
        say(f"batch {part} failed: {error}")

    def retried(self, part: int, why: str) -> None:
        """Record that batch number ``part`` is retried, and why."""
        self._add("retried", {"part": part, "why": why})

    def _add(self, what: str, item: dict[str, Any], distances: Histogram | None = None) -> None:
        """Add an item to the statistics of this process, and send it to the page.

        ``what`` is its kind, "batches", "failed" or "retried", and ``item`` what ``RunStats.take``
        expects of that kind. ``distances`` is the histogram of the item's part file.
        """
        with self._lock:
            self._stats.take({what: [item]})
            self._stats.distances = sum_histograms(self._stats.distances, distances)
        if self._page is not None:
            self._page.add(what, item, self._stats.distances)

    def _describe_progress(self) -> str:
        """Say how much is done, at which rates, and how long the rest takes."""
        stats = self._stats
        sources_per_second, edges_per_second = stats.rates()
        facts = [
            f"{stats.done:,}/{stats.total:,} sources",
            f"{html_fragments.count(sources_per_second)} sources/s",
        ]
        if stats.whole.edges:  # some results do not count edges
            facts.append(f"{html_fragments.count(edges_per_second)} edges/s")
        seconds_left = stats.seconds_left()
        if stats.left and sources_per_second and seconds_left is not None:
            facts.append(f"about {html_fragments.seconds(max(1, round(seconds_left)))} left")
        if stats.failures:
            facts.append(f"{stats.failed_sources:,} sources failed")
        if stats.retries:
            facts.append(f"{stats.retries:,} retries")
        return ", ".join(facts)

    def _draw_lines(self) -> Group:
        """Return the lines on a terminal: a bar, the rates, the shares of the phases of work, and
        the workers if they are few. A thread of its own calls this to redraw them.
        """
        with self._lock:
            stats = self._stats
            bar = Table.grid(expand=True)  # a bar does not end its line
            bar.add_row(
                ProgressBar(total=max(1, stats.total), completed=stats.done, complete_style="green")
            )
            lines: list[RenderableType] = [bar, Text(self._describe_progress(), style="bold")]
            total = sum(stats.whole.phases.values())
            if total:
                shares = ", ".join(
                    f"{phase} {100 * seconds / total:.0f} %"
                    for phase, seconds in stats.whole.phases.items()
                )
                so_far = html_fragments.seconds(time.time() - stats.started)
                lines.append(Text(f"{so_far} so far; {shares}"))
            if 1 < len(stats.workers) <= _MAX_WORKERS:
                lines.append(_workers_table(stats))
        return Group(*lines)


def _workers_table(stats: RunStats) -> Table:
    """Return a table for a terminal with a line per worker: its name, its batches, its sources, and
    the edges per second in the time that it has worked.
    """
    table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False)
    for name in ("worker", "batches", "sources", "edges/s"):
        table.add_column(name, justify="left" if name == "worker" else "right", style="dim")
    for name, share in sorted(stats.workers.items()):
        busy = sum(share.phases.values())
        rate = ""
        if busy and share.edges:
            rate = html_fragments.count(share.edges / busy)
        table.add_row(Text(printable(name)), f"{share.batches:,}", f"{share.sources:,}", rate)
    return table
