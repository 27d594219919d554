"""Metrics of a worker's batches, for Dask and Prometheus.

Dask's fine performance metrics get the seconds and counts of each phase; the dashboard shows them
at /individual-fine-performance-metrics. Prometheus reads the same as counters from /metrics of each
worker's HTTP server.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import time
from collections.abc import Callable, Iterator

from ..output.manifest_types import PartSummary
from .run_stats import PHASES

# A function that records the outcome of a batch: takes the summary of its part file, None without
# one; the number of sources; and (source, reason) of those that failed. See ``watched``.
RecordOutcome = Callable[[PartSummary | None, int, list[tuple[int, str]]], None]


class _Metrics:
    """The metrics of this process, in the registry that Dask's workers serve; workers of one
    process share them.
    """

    def __init__(self) -> None:
        from prometheus_client import Counter, Gauge

        # Labels: a series for each algorithm.
        by_algorithm = ["algorithm"]
        self.sources = Counter("kepler_sources", "Sources computed and written", by_algorithm)
        self.edges = Counter("kepler_edges", "Stored edges of the vertices reached", by_algorithm)
        self.bytes = Counter("kepler_bytes", "Bytes of the part files written", by_algorithm)
        self.seconds = Counter(
            "kepler_phase_seconds", "Time by phase: " + ", ".join(PHASES), [*by_algorithm, "phase"]
        )
        self.failures = Counter(
            "kepler_failures",
            "Failed sources, and batches that raised, by error",
            [*by_algorithm, "error"],
        )
        self.running = Gauge("kepler_batches_in_progress", "Batches in progress", by_algorithm)
        self.since = Gauge(
            "kepler_batch_started_timestamp_seconds",
            "When the current batch began; 0 between batches",
            by_algorithm,
        )

    def add_part(self, algorithm: str, n_sources: int, summary: PartSummary) -> None:
        """Count a part file that is written, with so many sources. ``summary`` has its numbers."""
        self.sources.labels(algorithm).inc(n_sources)
        self.edges.labels(algorithm).inc(summary["edges"])
        self.bytes.labels(algorithm).inc(summary["bytes"])
        for phase, seconds in summary["phases"].items():
            self.seconds.labels(algorithm, phase).inc(seconds)


@functools.cache  # since the registry refuses a metric that it has already
def _metrics_of_process() -> _Metrics | None:
    """Return the metrics of this process, which are made on the first call; None without the
    package prometheus_client.
    """
    try:
        return _Metrics()
    except ModuleNotFoundError:
        # An external worker may lack the package. Dask's own page /metrics says so then.
        return None


@contextlib.contextmanager
def watched(algorithm: str) -> Iterator[RecordOutcome]:
    """Count one batch that a task of Dask computes within the block. A batch that raises an
    exception is one failure.

    Yield a function ``record(summary, n_sources, failed)``, by which the block reports the outcome:
    the summary of the part file, None without one; the number of its sources; and
    ``(source, reason)`` of those that failed. ``algorithm`` is a label of the metrics.
    """
    if "distributed" not in sys.modules:  # no server of this process has metrics
        yield lambda *_: None
        return
    from distributed.metrics import context_meter

    metrics = _metrics_of_process()
    if metrics is not None:
        metrics.running.labels(algorithm).inc()
        metrics.since.labels(algorithm).set(time.time())

    def record(summary: PartSummary | None, n_sources: int, failed: list[tuple[int, str]]) -> None:
        """Record the outcome of the batch: in the metrics of Prometheus and in those of Dask."""
        if metrics is not None:
            for (
                _,
                reason,
            ) in failed:  # counted by the class of the error, which a reason begins with
                metrics.failures.labels(algorithm, reason.partition(":")[0]).inc()
        if summary is None:
            return
        # Dask's fine performance metrics.
        for phase, seconds in summary["phases"].items():
            context_meter.digest_metric(phase, seconds, "seconds")
        context_meter.digest_metric("traverse", summary["edges"], "edges")
        context_meter.digest_metric("traverse", n_sources, "sources")
        context_meter.digest_metric("write", summary["bytes"], "bytes")
        if metrics is not None:
            metrics.add_part(algorithm, n_sources, summary)

    try:
        yield record
    except Exception as error:
        if metrics is not None:
            metrics.failures.labels(algorithm, type(error).__name__).inc()
        raise
    finally:
        if metrics is not None:
            metrics.running.labels(algorithm).dec()
            metrics.since.labels(algorithm).set(0)
