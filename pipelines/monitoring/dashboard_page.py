"""The page at /kepler, as a Bokeh document that is updated during a run."""

from __future__ import annotations

import time
from typing import Any

import dask
from bokeh.document import Document
from bokeh.models import Div

from . import html_fragments, plots
from .html_fragments import environment, fragment
from .plot_data import MAX_ROWS, histogram_of, phases_of, rates_of
from .run_stats import MAX_LISTED, OTHERS, Share

_UPDATE_EVERY = 1000  # milliseconds
_STATES = {
    "running": "running",
    "done": "done",
    "failed": "ended with failures",
    "interrupted": "interrupted",
    "gone": "the job ended without a message; its output folder has the finished batches, and --resume continues",
}


def document(plugin: Any, scheduler: Any, extra: dict[str, Any], doc: Document) -> None:  # noqa: ARG001
    """Fill a new document; called by Bokeh for each browser that opens the page."""
    asked = doc.session_context.request.arguments.get("run", [b""])[0].decode(errors="replace")
    view = View(plugin, scheduler, asked)
    view.update()
    for name, root in view.roots.items():
        root.name = name
        doc.add_root(root)
    doc.title = "kepler-traverse"
    doc.template = environment().get_template("dashboard.html")
    doc.add_periodic_callback(view.update, _UPDATE_EVERY)


def _text() -> Div:
    style = environment().get_template("style.css").render()
    return Div(text="", stylesheets=[style], sizing_mode="stretch_width")


class View:
    """The models of the page in one browser, which are updated from the run that it shows.

    Attributes
    ----------
    roots : dict of str to bokeh model
    """

    def __init__(self, plugin: Any, scheduler: Any, asked: str) -> None:
        self._plugin, self._scheduler, self._asked = plugin, scheduler, asked
        self._drawn: tuple[Any, ...] | None = None
        titles = {what: f"{what} per second, by worker" for what in ("sources", "edges")} | {"phases": "seconds by phase"}
        self.roots = {name: plots.bars_figure(title) for name, title in titles.items()}
        self.roots |= {"histogram": plots.bars_figure("distances", legend=False), "reach": plots.reach_figure()}
        self.roots |= {name: _text() for name in ("head", "workers", "slowest", "trouble")}

    def update(self) -> None:
        """Update the text and, if there are new messages, the plots."""
        found = self._plugin.shown(self._asked)
        if found is None:
            self._put("head", "<h1>kepler-traverse</h1><p>No run has been seen on this scheduler yet.</p>")
            return
        name, run = found
        self._put("head", self._head(name, run))
        self._put("workers", self._workers(run))
        drawn = (name, run.news_at)
        if drawn == self._drawn:
            return
        self._drawn = drawn
        self._draw(run)
        for name in ("slowest", "trouble"):
            self._put(name, fragment("fragments.html", name, run.chronicle))

    def _put(self, name: str, html: str) -> None:
        if self.roots[name].text != html:
            self.roots[name].text = html

    def _draw(self, run: Any) -> None:
        chronicle = run.chronicle
        for what in ("sources", "edges"):
            plots.draw_bars(self.roots[what], rates_of(chronicle, what))
        plots.draw_bars(self.roots["phases"], phases_of(chronicle.shares(MAX_LISTED)))
        if chronicle.distances is not None:
            found = histogram_of(chronicle.distances, run.facts["algorithm"])
            plots.draw_bars(self.roots["histogram"], found)
            plots.draw_reach(self.roots["reach"], found)

    def _head(self, name: str, run: Any) -> str:
        chronicle = run.chronicle
        now = time.time() if run.state == "running" else run.news_at
        rate, edges = chronicle.rates(now)
        numbers = [
            ("sources done", f"{chronicle.done:,}"),
            ("left", f"{chronicle.left:,}"),
            ("sources/s", html_fragments.count(rate)),
            ("edges/s", html_fragments.edges_rate(chronicle, edges)),
            ("time so far", html_fragments.seconds(now - chronicle.started)),
            ("time left", html_fragments.seconds(chronicle.seconds_left(now)) if run.state == "running" else "-"),
            ("failed sources", f"{chronicle.failed_sources:,}"),
            ("retries", f"{chronicle.retries:,}"),
        ]
        title, ago = html_fragments.title(run.facts), round(max(0.0, time.time() - run.news_at))
        others = [other for other in reversed(self._plugin.runs) if other != name]
        return fragment("dashboard_parts.html", "head", name, run, title, _STATES[run.state], numbers, ago, others)

    def _workers(self, run: Any) -> str:
        """Return a table of workers with their progress and memory; if there are many, those with most sources."""
        present = {address.rpartition("//")[2]: state for address, state in self._scheduler.workers.items()}
        shares = run.chronicle.shares(MAX_ROWS)
        names = [*shares, *(name for name in sorted(present) if name not in shares)][:MAX_ROWS]
        rows = [(name, shares.get(name, Share()), *state_of(present.get(name), name)) for name in names]
        more = 0 if OTHERS in names else len(set(present) | set(run.chronicle.workers)) - len(names)
        return fragment("dashboard_parts.html", "workers", rows, more)


def state_of(worker: Any, name: str) -> tuple[str, str, str]:
    """Return memory and utilization of a worker, or those of its GPU if it has one, and the address of its metrics."""
    if worker is None:
        return "", "", "" if name == OTHERS else "gone"
    metrics, gpu = worker.metrics, worker.metrics.get("gpu")
    if gpu and gpu.get("memory-used") is not None:
        total = worker.extra.get("gpu", {}).get("memory-total")
        memory = f"{gpu['memory-used'] / 2**30:.1f}" + (f" of {total / 2**30:.0f}" if total else "") + " GiB (GPU)"
        use = f"{gpu['utilization']} % GPU" if gpu.get("utilization") is not None else ""
    else:
        memory = f"{metrics.get('memory', 0) / 2**30:.2f} GiB"
        use = f"{metrics.get('cpu', 0):.0f} % CPU"
    port = (worker.services or {}).get("dashboard")
    if port is None:
        return memory, use, ""
    scheme = "https" if dask.config.get("distributed.scheduler.dashboard.tls.cert") else "http"
    return memory, use, f"{scheme}://{worker.host}:{port}/metrics"
