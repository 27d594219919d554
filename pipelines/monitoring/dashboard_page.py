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
    """Answers with the run that is asked for by ``?run=NAME``, or with the newest one."""

    def initialize(self, plugin: Any, scheduler: Any) -> None:
        self._plugin = plugin
        self._scheduler = scheduler

    def get(self) -> None:
        template = html_fragments.environment().get_template("dashboard.html")
        shown = self._plugin.shown(self.get_query_argument("run", None))
        self.write(template.render({} if shown is None else self._facts(*shown)))

    def _facts(self, name: str, run: Any) -> dict[str, Any]:
        """Return what the template of the page shows of a run."""
        stats = run.stats
        now = time.time() if run.state == "running" else run.updated_at
        rate, edges = stats.rates(now)
        numbers = [
            ("sources done", f"{stats.done:,}"),
            ("left", f"{stats.left:,}"),
            ("sources/s", html_fragments.count(rate)),
            ("edges/s", html_fragments.edges_rate(stats, edges)),
            ("time so far", html_fragments.seconds(now - stats.started)),
            (
                "time left",
                html_fragments.seconds(stats.seconds_left(now)) if run.state == "running" else "-",
            ),
            ("failed sources", f"{stats.failed_sources:,}"),
            ("retries", f"{stats.retries:,}"),
        ]
        if run.drawn_at != run.updated_at:
            run.drawn = draw_plots(stats, run.facts["algorithm"])
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
            "plots": run.drawn,
            **self._workers(stats),
        }

    def _workers(self, stats: Any) -> dict[str, Any]:
        """Return workers with their progress and memory; if there are many, those with most
        sources, and how many more.
        """
        present = {
            address.rpartition("//")[2]: state for address, state in self._scheduler.workers.items()
        }
        shares = stats.shares(MAX_ROWS)
        names = [*shares, *(name for name in sorted(present) if name not in shares)][:MAX_ROWS]
        rows = [
            (name, shares.get(name, Share()), *describe_worker(present.get(name), name))
            for name in names
        ]
        return {
            "workers": rows,
            "more": 0 if OTHERS in names else len(set(present) | set(stats.workers)) - len(names),
        }


def describe_worker(worker: Any, name: str) -> tuple[str, str, str]:
    """Return memory and utilization of a worker, or those of its GPU if it has one, and the address
    of its metrics.
    """
    if worker is None:
        return "", "", "" if name == OTHERS else "gone"
    metrics = worker.metrics
    memory = f"{metrics.get('memory', 0) / 2**30:.2f} GiB"
    use = f"{metrics.get('cpu', 0):.0f} % CPU"
    gpu = metrics.get("gpu")
    if gpu and gpu.get("memory-used") is not None:
        total = worker.extra.get("gpu", {}).get("memory-total")
        of_total = f" of {total / 2**30:.0f}" if total else ""
        memory = f"{gpu['memory-used'] / 2**30:.1f}{of_total} GiB (GPU)"
        used = gpu.get("utilization")
        use = "" if used is None else f"{used} % GPU"
    return memory, use, _metrics_address(worker)


def _metrics_address(worker: Any) -> str:
    """Return where Prometheus reads the metrics of a worker; ``""`` if it has no server."""
    port = (worker.services or {}).get("dashboard")
    if port is None:
        return ""
    has_tls = dask.config.get("distributed.scheduler.dashboard.tls.cert")
    return f"{'https' if has_tls else 'http'}://{worker.host}:{port}/metrics"
