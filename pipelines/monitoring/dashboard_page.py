"""The page at /kepler: HTML that is made for each request, and that a browser asks for again each
second.
"""

from __future__ import annotations

import time
from typing import Any

import dask
from tornado import web

from . import html_fragments
from .run_plots import MAX_ROWS, draw_plots
from .run_stats import OTHERS, Share

# by the state of a run, how the page names it
_STATES = {
    "running": "running",
    "done": "done",
    "failed": "ended with failures",
    "interrupted": "interrupted",
    "gone": (
        "the job ended without a message; its output folder has the "
        "finished batches, and --resume continues"
    ),
}


class Page(web.RequestHandler):
    """Answers a request with the page of the run that ``?run=NAME`` names, or of the newest one."""

    def initialize(self, plugin: Any, scheduler: Any) -> None:
        """Take the ``KeplerPage``, which has the runs, and Dask's scheduler; Tornado calls this."""
        self._plugin = plugin
        self._scheduler = scheduler

    def get(self) -> None:
        """Answer a request with the page, which says so if there is no run."""
        template = html_fragments.environment().get_template("dashboard.html")
        found = self._plugin.find_run(self.get_query_argument("run", None))
        facts = {}
        if found is not None:
            name, run = found
            facts = self._facts(name, run)
        self.write(template.render(facts))

    def _facts(self, name: str, run: Any) -> dict[str, Any]:
        """Return the variables of the page's template for a run, by name.

        ``name`` is that of the run on the page, and ``run`` a ``dashboard_plugin.Run``.
        """
        stats = run.stats
        # a run that has ended is shown as it was at its last message
        now = run.updated_at
        time_left = "-"
        if run.state == "running":
            now = time.time()
            time_left = html_fragments.seconds(stats.seconds_left(now))
        sources_per_second, edges_per_second = stats.rates(now)
        numbers = [
            ("sources done", f"{stats.done:,}"),
            ("left", f"{stats.left:,}"),
            ("sources/s", html_fragments.count(sources_per_second)),
            ("edges/s", html_fragments.edges_rate(stats, edges_per_second)),
            ("time so far", html_fragments.seconds(now - stats.started)),
            ("time left", time_left),
            ("failed sources", f"{stats.failed_sources:,}"),
            ("retries", f"{stats.retries:,}"),
        ]
        # Browsers ask each second, and messages of the job come less often: plots are drawn once
        # per message.
        if run.drawn_at != run.updated_at:
            run.plots = draw_plots(stats, run.facts["algorithm"])
            run.drawn_at = run.updated_at
        return {
            "name": name,
            "facts": run.facts,
            "run": stats,
            "title": html_fragments.title(run.facts),
            "state": _STATES[run.state],
            "numbers": numbers,
            "ago": round(max(0.0, time.time() - run.updated_at)),
            "others": [other for other in reversed(self._plugin.runs) if other != name],
            "plots": run.plots,
            **self._workers(stats),
        }

    def _workers(self, stats: Any) -> dict[str, Any]:
        """Return the rows of the table of workers, as ``workers``, and the number of workers that
        have no row, as ``more``.

        A row has the name of a worker, its ``Share`` of the work, and the three texts that
        ``describe_worker`` returns. If there are many workers, those with most sources have a row.
        ``stats`` is the ``RunStats`` of the run.
        """
        # Dask's state of the workers that are there, by their address without the protocol.
        states = {
            address.rpartition("//")[2]: state for address, state in self._scheduler.workers.items()
        }
        shares = stats.shares(MAX_ROWS)
        without_share = [name for name in sorted(states) if name not in shares]
        names = [*shares, *without_share][:MAX_ROWS]
        rows = [
            (name, shares.get(name, Share()), *describe_worker(states.get(name), name))
            for name in names
        ]
        n_more = 0
        if OTHERS not in names:  # else the row of all others stands for them
            n_more = len(states.keys() | stats.workers.keys()) - len(names)
        return {"workers": rows, "more": n_more}


def describe_worker(worker: Any, name: str) -> tuple[str, str, str]:
    """Return three texts for a row of the table: memory and utilization of a worker, or those of
    its GPU if it has one, and the address of its metrics.

    ``worker`` is Dask's state of the worker, None if it is gone, or if the row is that of several.
    ``name`` is the name of the row.
    """
    if worker is None:
        return "", "", "" if name == OTHERS else "gone"
    metrics = worker.metrics
    memory = f"{metrics.get('memory', 0) / 2**30:.2f} GiB"
    utilization = f"{metrics.get('cpu', 0):.0f} % CPU"
    # Dask measures a GPU only if the package for that is installed; it may lack some values.
    gpu = metrics.get("gpu")
    if gpu and gpu.get("memory-used") is not None:
        total = worker.extra.get("gpu", {}).get("memory-total")
        of_total = f" of {total / 2**30:.0f}" if total else ""
        memory = f"{gpu['memory-used'] / 2**30:.1f}{of_total} GiB (GPU)"
        percent = gpu.get("utilization")
        utilization = "" if percent is None else f"{percent} % GPU"
    return memory, utilization, _metrics_address(worker)


def _metrics_address(worker: Any) -> str:
    """Return the URL at which Prometheus reads the metrics of a worker, given by Dask's state of
    it; ``""`` if it has no HTTP server.
    """
    port = (worker.services or {}).get("dashboard")
    if port is None:
        return ""
    has_tls = dask.config.get("distributed.scheduler.dashboard.tls.cert")
    return f"{'https' if has_tls else 'http'}://{worker.host}:{port}/metrics"
