"""The page at /kepler, as a Bokeh document that is updated during a run."""

from __future__ import annotations

import time
from typing import Any

import dask
from bokeh.document import Document
from bokeh.models import Div
from jinja2 import Template

from . import html_fragments, plots
from .html_fragments import Markup
from .plot_data import MAX_ROWS
from .run_stats import MAX_LISTED, OTHERS

_UPDATE_EVERY = 1000  # milliseconds
_STATES = {
    "running": "running",
    "done": "done",
    "failed": "ended with failures",
    "interrupted": "interrupted",
    "gone": "the job ended without a message; its output folder has the finished batches, and --resume continues",
}
_ROOTS = ("head", "sources", "edges", "histogram", "reach", "phases", "workers", "slowest", "trouble")

_PAGES = {
    "kepler": "kepler",
    "status": "status",
    "workers": "workers",
    "tasks": "tasks",
    "groups": "groups",
    "phases": "individual-fine-performance-metrics",
    "profile": "profile",
}
_TEMPLATE = Template(
    """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }}</title>
<link rel="icon" href="data:,">
{{ bokeh_css }}
{{ bokeh_js }}
<style>{{ style }}</style>
</head>
<body>
<nav>{% for name, address in pages.items() %}<a href="{{ address }}">{{ name }}</a>{% endfor %}</nav>
<main>
{% macro place(name) %}<div id="{{ roots[name].elementid }}" data-root-id="{{ roots[name].id }}"
 style="display: contents;"></div>{% endmacro %}
<p id="waiting" class="soft">Waiting for the data of the run.</p>
{{ place("head") }}
<div class="pair"><section>{{ place("sources") }}</section><section>{{ place("edges") }}</section></div>
<div class="pair"><section>{{ place("reach") }}</section><section>{{ place("histogram") }}</section></div>
<section>{{ place("phases") }}</section>
<section><h2>Workers</h2>{{ place("workers") }}</section>
<section><h2>Slowest batches and sources</h2>{{ place("slowest") }}</section>
<section><h2>Failures and retries</h2>{{ place("trouble") }}</section>
{{ plot_script }}
<script>{{ script }}</script>
</main>
</body>
</html>
"""
)


def document(plugin: Any, scheduler: Any, extra: dict[str, Any], doc: Document) -> None:  # noqa: ARG001
    """Fill a new document; called by Bokeh for each browser that opens the page."""
    asked = doc.session_context.request.arguments.get("run", [b""])[0].decode(errors="replace")
    view = View(plugin, scheduler, asked)
    view.update()
    for name, root in view.roots.items():
        root.name = name
        doc.add_root(root)
    doc.title = "kepler-traverse"
    doc.template = _TEMPLATE
    doc.template_variables.update({"style": html_fragments.STYLE, "script": html_fragments.SCHEME_SCRIPT, "pages": _PAGES})
    doc.add_periodic_callback(view.update, _UPDATE_EVERY)


def _text() -> Div:
    return Div(text="", stylesheets=[html_fragments.STYLE], sizing_mode="stretch_width")


class View:
    """The models of the page in one browser, which are updated from the run that it shows.

    Attributes
    ----------
    roots : dict of str to bokeh model
    """

    def __init__(self, plugin: Any, scheduler: Any, asked: str) -> None:
        self._plugin, self._scheduler, self._asked = plugin, scheduler, asked
        self._drawn: tuple[Any, ...] | None = None
        self._sources = {"sources": plots.rate_source(), "edges": plots.rate_source()}
        self._reach, self._phases = plots.reach_source(), plots.phase_source()
        self.roots = {what: plots.rate_figure(source, what) for what, source in self._sources.items()}
        self.roots["histogram"] = plots.histogram_figure(self._reach)
        self.roots["reach"] = plots.reach_figure(self._reach)
        self.roots["phases"] = plots.phase_figure(self._phases)
        self.roots |= {name: _text() for name in _ROOTS if name not in self.roots}

    def update(self) -> None:
        """Update the text and, if there are new messages, the plots."""
        found = self._plugin.shown(self._asked)
        if found is None:
            self._put("head", Markup("<h1>kepler-traverse</h1><p>No run has been seen on this scheduler yet.</p>"))
            return
        name, run = found
        self._put("head", self._head(name, run))
        self._put("workers", self._workers(run))
        drawn = (name, run.news_at)
        if drawn == self._drawn:
            return
        self._drawn = drawn
        self._draw(run)
        self._put("slowest", html_fragments.slowest(run.chronicle))
        self._put("trouble", html_fragments.trouble(run.chronicle))

    def _put(self, name: str, html: str) -> None:
        if self.roots[name].text != html:
            self.roots[name].text = html

    def _draw(self, run: Any) -> None:
        chronicle = run.chronicle
        for what, source in self._sources.items():
            plots.draw_rates(self.roots[what], source, chronicle, what)
        histogram, reach = self.roots["histogram"], self.roots["reach"]
        plots.draw_reach(histogram, reach, self._reach, chronicle.distances, run.facts["algorithm"])
        plots.draw_phases(self.roots["phases"], self._phases, chronicle.shares(MAX_LISTED))

    def _head(self, name: str, run: Any) -> Markup:
        chronicle, facts = run.chronicle, run.facts
        now = time.time() if run.state == "running" else run.news_at
        rate, edges = chronicle.rates(now)
        share = chronicle.done / max(1, chronicle.total)
        trouble = "bad" if chronicle.failures else "good"
        numbers = [
            ("sources done", f"{chronicle.done:,}"),
            ("left", f"{chronicle.left:,}"),
            ("sources/s", html_fragments.count(rate)),
            ("edges/s", html_fragments.edges_rate(chronicle, edges)),
            ("time so far", html_fragments.seconds(now - chronicle.started)),
            ("time left", html_fragments.seconds(chronicle.seconds_left(now)) if run.state == "running" else "-"),
            ("failed sources", Markup(f'<span class="{trouble}">{chronicle.failed_sources:,}</span>')),
            ("retries", f"{chronicle.retries:,}"),
        ]
        others = [other for other in self._plugin.runs if other != name]
        links = "".join(
            f' <a href="?run={html_fragments.text(other)}">{html_fragments.text(other)}</a>' for other in reversed(others)
        )
        return Markup(
            f"<h1>{html_fragments.text(html_fragments.title(facts))}</h1>"
            f"<p>{html_fragments.text(facts['strategy'])} on {html_fragments.text(facts['device'])}, "
            f"{facts['vertices']:,} vertices, "
            f"{facts['stored_edges']:,} stored edges; results go to <code>{html_fragments.text(facts['output'])}</code>, "
            f"{html_fragments.text(facts['means'])}</p>"
            f'<p>Run {html_fragments.text(name)}: <b class="state">{html_fragments.text(_STATES[run.state])}</b>, '
            f"{chronicle.whole.batches:,} batches"
            f'<span class="soft">, last update {html_fragments.seconds(round(max(0.0, time.time() - run.news_at)))} ago'
            + (f"; other runs:{links}" if links else "")
            + f'</span></p>{html_fragments.cards(numbers)}<div class="meter"><i style="width: {100 * share:.2f}%"></i></div>'
        )

    def _workers(self, run: Any) -> Markup:
        """Return a table of workers with their progress and memory; if there are many, those with most sources."""
        present = {address.rpartition("//")[2]: state for address, state in self._scheduler.workers.items()}
        shares = run.chronicle.shares(MAX_ROWS)
        names = [*shares, *(name for name in sorted(present) if name not in shares)][:MAX_ROWS]
        rows = []
        for name in names:
            share = shares.get(name)
            done = (share.batches, share.sources, share.edges) if share else (0, 0, 0)
            rows.append([name, *(f"{value:,}" for value in done), *state_of(present.get(name), name)])
        more = len(set(present) | set(run.chronicle.workers)) - len(names)
        heads = ("worker", "batches", "sources", "edges", "memory", "use", "metrics")
        note = f'<p class="soft">and {more:,} more</p>' if more > 0 and OTHERS not in names else ""
        return Markup(html_fragments.table(heads, rows, numbers=(1, 2, 3, 4, 5)) + note)


def state_of(worker: Any, name: str) -> tuple[str, str, str | Markup]:
    """Return memory, utilization and the address of the metrics of a worker, and those of its GPU if it has one."""
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
    url = f"{scheme}://{worker.host}:{port}/metrics"
    return memory, use, Markup(f'<a href="{html_fragments.text(url)}">metrics</a>')
