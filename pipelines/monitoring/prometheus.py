"""Metrics of a worker's batches, for Dask and Prometheus.

Dask's fine performance metrics get the seconds and counts of each phase; the dashboard shows them at
/individual-fine-performance-metrics. Prometheus reads the same as counters from /metrics of each worker's HTTP server.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

from distributed.metrics import context_meter

from ..output.manifest_types import PartSummary
from .run_stats import PHASES

try:
    from prometheus_client import Counter, Gauge
except ModuleNotFoundError:  # the image of an external worker may lack it; Dask's /metrics then reports that itself
    Counter = Gauge = None  # type: ignore[misc, assignment]


class _Counts:
    """The metrics of this process, in the registry that Dask's workers serve; workers of one process share them."""

    def __init__(self) -> None:
        one = ["algorithm"]
        self.sources = Counter("kepler_sources", "Sources computed and written", one)
        self.edges = Counter("kepler_edges", "Stored edges of the vertices reached", one)
        self.bytes = Counter("kepler_bytes", "Bytes of the part files written", one)
        self.seconds = Counter("kepler_phase_seconds", "Time by phase: " + ", ".join(PHASES), [*one, "phase"])
        self.failures = Counter("kepler_failures", "Failed sources, and batches that raised, by error", [*one, "error"])
        self.running = Gauge("kepler_batches_in_progress", "Batches in progress", one)
        self.since = Gauge("kepler_batch_started_timestamp_seconds", "When the current batch began; 0 between batches", one)


_COUNTS = None if Counter is None else _Counts()


@contextlib.contextmanager
def watched(algorithm: str) -> Iterator[Callable[[PartSummary | None, int, list[tuple[int, str]]], None]]:
    """Count one batch that a Dask task computes within the block.

    Yields
    ------
    callable
        ``note(summary, n_sources, failed)`` records the outcome: the summary of the part file, None without one; the number
        of its sources; and ``(source, reason)`` of those that failed. A batch that raises as a whole is one failure.
    """
    counts = _COUNTS
    if counts is not None:
        counts.running.labels(algorithm).inc()
        counts.since.labels(algorithm).set(time.time())

    def note(summary: PartSummary | None, n_sources: int, failed: list[tuple[int, str]]) -> None:
        if counts is not None:
            for _, reason in failed:
                counts.failures.labels(algorithm, reason.partition(":")[0]).inc()
        if summary is None:
            return
        for phase, seconds in summary["phases"].items():
            context_meter.digest_metric(phase, seconds, "seconds")
        context_meter.digest_metric("traverse", summary["edges"], "edges")
        context_meter.digest_metric("traverse", n_sources, "sources")
        context_meter.digest_metric("write", summary["bytes"], "bytes")
        if counts is not None:
            counts.sources.labels(algorithm).inc(n_sources)
            counts.edges.labels(algorithm).inc(summary["edges"])
            counts.bytes.labels(algorithm).inc(summary["bytes"])
            for phase, seconds in summary["phases"].items():
                counts.seconds.labels(algorithm, phase).inc(seconds)

    try:
        yield note
    except Exception as error:
        if counts is not None:
            counts.failures.labels(algorithm, type(error).__name__).inc()
        raise
    finally:
        if counts is not None:
            counts.running.labels(algorithm).dec()
            counts.since.labels(algorithm).set(0)
