"""Progress of a call that searches from many sources: sources done, their total, and sources per
second.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .. import arguments, cuda
from ..cpu import compile_clock
from ..errors import InputError

# Called with the number of sources done, their total, and the sources per second, 0 if not known.
Report = Callable[[int, int, float], object]

_LINE_EVERY = 10.0  # seconds between two lines if the output is not a terminal


class Meter:
    """Counts the sources of one call and reports them.

    The rate, in sources per second, is that of this call's own work. It excludes the time of
    compiling, and the time that a caller takes between two groups of a stream.

    Parameters
    ----------
    report : Report or None
        Called as ``report(done, total, rate)``. An exception that it raises ends the call;
        StopIteration becomes RuntimeError. None: nothing is counted.
    total : int
        Number of sources of the call.
    device : {"cpu", "cuda"}
        Where the searches run.

    ``_done``: number of sources done. ``_seconds``: seconds of work up to the time ``_since``.
    """

    def __init__(self, report: Report | None, total: int, device: str = "cpu") -> None:
        """Count no source yet. Arguments are those of the class."""
        self._report = report
        self._total = total
        self._device = device
        self._done = 0
        self._seconds = 0.0
        self._since = 0.0
        if report is not None:
            compile_clock.listen()  # so that ``_clock`` knows the time of compiling

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the time of the ``with`` block as work, less the time in which this thread compiles
        or waits for another one that does. Nothing is counted if the meter has no function to call.
        """
        if self._report is None:
            yield
            return
        self._since = _clock()
        try:
            yield
        finally:
            self._seconds += _clock() - self._since

    def begin(self) -> None:
        """Report that no source is done yet, so that a display appears before the first result."""
        if self._report is not None:
            self._report_progress(0.0)

    def advance(self, n_sources: int) -> None:
        """Report ``n_sources`` further sources as done; called within ``running``. It does nothing
        if the meter has no function to call.
        """
        if self._report is None:
            return
        # Launches of kernels return at once: without waiting, searches would count as done before
        # they are.
        if self._device == "cuda":
            cuda.cp.cuda.get_current_stream().synchronize()
        now = _clock()
        self._seconds = self._seconds + now - self._since
        self._since = now
        self._done += n_sources
        rate = 0.0
        if self._seconds > 0:
            rate = self._done / self._seconds
        self._report_progress(rate)
        self._since = _clock()  # the time that the function took is no work

    def _report_progress(self, rate: float) -> None:
        """Call the function with the sources done, the total and the rate.

        A StopIteration that it raises becomes RuntimeError: it would end a loop over results as if
        there were no more.
        """
        assert self._report is not None
        try:
            self._report(self._done, self._total, rate)
        except StopIteration as error:
            raise RuntimeError("the function progress= has raised StopIteration") from error

    def over(self, groups: Iterator[Any]) -> Iterator[Any]:
        """Yield groups of results, and report the sources of each group when the caller asks for
        the next one; called within ``running``.
        """
        for group in groups:
            yield group
            self.advance(len(group))

    def close(self) -> None:
        """Stop showing the bar, if there is one. Callers do this after an error, too."""
        if isinstance(self._report, _Bar):
            self._report.close()


def _clock() -> float:
    """Return the time of a clock in seconds, which stands still while this thread compiles or waits
    for another one that compiles.
    """
    return time.perf_counter() - compile_clock.thread_seconds()


def make_meter(progress: Any, total: int, device: str) -> Meter:
    """Return the meter for the argument ``progress`` of a public function.

    True shows a bar or lines, None and False show nothing, and a function is called with the
    sources done, their total and the rate. InputError for another value. ``total`` is the number of
    sources, and ``device`` "cpu" or "cuda".
    """
    if callable(progress):
        return Meter(progress, total, device)
    if progress is not None and not arguments.is_flag(progress):
        raise InputError(
            "progress must be True, False or a function of done, total and "
            f"rate, not {arguments.describe(progress)}"
        )
    report = _make_display() if progress else None
    return Meter(report, total, device)


class _Bar:
    """A ``Report`` that shows a bar of the package rich, on a terminal or in a notebook.

    ``_task`` is the number of the bar in ``_bar``, None before the first call.
    """

    def __init__(self, console: Any) -> None:
        """Prepare the bar for a console of rich; the first call shows it."""
        from rich import progress

        self._bar = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TextColumn("sources"),
            progress.TextColumn("{task.fields[rate]}"),
            progress.TimeElapsedColumn(),
            console=console,
            refresh_per_second=4,
        )
        self._task: Any = None

    def __call__(self, done: int, total: int, rate: float) -> None:
        """Show the sources done, their total and the rate in sources per second."""
        if self._task is None:
            self._bar.start()
            self._task = self._bar.add_task("searching", total=total, rate="")
        self._bar.update(self._task, completed=done, rate=_rate_and_time_left(done, total, rate))

    def close(self) -> None:
        """Stop showing the bar, and give the console back."""
        self._bar.stop()


class _Lines:
    """A ``Report`` that writes a line to stderr every ten seconds, and one at the end, where there
    is no terminal for a bar.

    ``_last`` is the time at which a line was last written; before any line it is the time at which
    the object was made. While ``_is_silent`` is True, a call that ends before a line is due has no
    line; the first line makes it False.
    """

    def __init__(self, name: str = "", is_late: bool = False) -> None:
        """``name`` begins each line. With ``is_late``, a call that takes less than ten seconds has
        no line at all.
        """
        self._last = time.monotonic()
        self._before = f"{name}: " if name else ""
        self._is_silent = is_late

    def __call__(self, done: int, total: int, rate: float) -> None:
        """Write a line with the sources done, their total and the rate, if ten seconds have passed
        since the line before.

        When all sources are done a line is written in any case, except while ``_is_silent``.
        """
        is_due = time.monotonic() - self._last >= _LINE_EVERY
        if not is_due and (done < total or self._is_silent):
            return
        self._last = time.monotonic()
        self._is_silent = False
        if sys.stderr is not None:  # as under pythonw and some servers
            line = f"{self._before}{done:,} of {total:,} sources {_rate_and_time_left(done, total, rate)}"
            sys.stderr.write(line.rstrip() + "\n")


def late_lines(name: str) -> Report:
    """Return a ``Report`` for calls that show no progress otherwise: it writes a line, which begins
    with ``name``, to stderr every ten seconds, and none in the first ten.
    """
    return _Lines(name, is_late=True)


def _rate_and_time_left(done: int, total: int, rate: float) -> str:
    """Return text with the rate in sources per second and the time that is left, as "12 per second,
    0:01:30 left"; an empty text if the rate is 0.
    """
    if not rate:
        return ""
    speed = f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"
    seconds = round((total - done) / rate)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    text = f"{speed} per second"
    if done < total:
        text += f", {hours}:{minutes:02}:{seconds:02} left"
    return text


def _make_display() -> _Bar | _Lines:
    """Return the ``Report`` for ``progress=True``: a bar on a terminal or in a notebook, if rich is
    installed, else lines.
    """
    try:
        from rich.console import Console
    except ImportError:
        return _Lines()
    console = Console(stderr=True, highlight=False)
    shows_bars = console.is_jupyter or (console.is_terminal and not console.is_dumb_terminal)
    return _Bar(console) if shows_bars else _Lines()
