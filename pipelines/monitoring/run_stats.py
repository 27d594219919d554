"""Statistics of a run so far, by worker and by time, in bounded memory: for terminal, dashboard and
report.

Imports NumPy alone, because the scheduler, which does not import the library, holds these
statistics, too.
"""

from __future__ import annotations

import re
import time
from bisect import insort
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:  # which imports the table of result kinds
    from ..output.manifest_types import Histogram

PHASES = ("load", "compile", "traverse", "certify", "rows", "write")
OTHERS = "others"
MAX_BINS = 240  # time bins; if a run needs more, neighboring bins are joined in pairs
MAX_WORKERS = 1024  # workers listed separately; a restarted worker has a new address
MAX_LISTED = 12  # slowest batches, failures and retries that are listed in full
_FIRST_WIDTH = 0.125  # initial width of a bin in seconds
_IN_BINS = ("sources", "edges")
_LATELY = 60.0  # seconds over which the current rate is averaged


def summarize_batch(part: int, summary: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the times in the summary of a part file, small enough to be sent; None if an earlier
    run has written it.
    """
    if "started" not in summary or "worker" not in summary:
        return None
    return {
        "part": part,
        "worker": summary["worker"].rpartition("//")[2],
        "sources": len(summary["sources"]),
        "slowest": summary.get("slowest"),
        **{key: summary[key] for key in ("rows", "bytes", "edges", "started", "ended", "phases")},
    }


@dataclass
class Share:
    """Totals of one worker: seconds by phase, and ``edges``, the stored edges of reached vertices."""

    batches: int = 0
    sources: int = 0
    edges: int = 0
    bytes: int = 0
    phases: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PHASES, 0.0))

    def add(self, batch: Mapping[str, Any]) -> None:
        """Add a batch, or the totals of another worker."""
        self.batches += batch.get("batches", 1)
        for key in ("sources", "edges", "bytes"):
            setattr(self, key, getattr(self, key) + batch[key])
        for phase, seconds in batch["phases"].items():
            self.phases[phase] = self.phases.get(phase, 0.0) + seconds


def _by_number(name: str) -> list[Any]:
    """Return a sort key that places 10.0.0.9 before 10.0.0.10."""
    return [int(piece) if piece.isdecimal() else piece for piece in re.split(r"(\d+)", name)]


class RunStats:
    """Sums statistics of batches as they finish.

    ``started``: seconds since the epoch. ``total``: sources of the whole run. ``kept``: of these,
    the sources that an earlier run computed.
    """

    def __init__(self, started: float, total: int, kept: int = 0):
        self.started = started
        self.total = total
        self.kept = kept
        self.whole = Share()  # totals of all workers
        self.workers: dict[str, Share] = {}
        self.failed_sources = 0
        self.failures = 0
        self.retries = 0
        self.failed: deque[dict[str, Any]] = deque(maxlen=MAX_LISTED)  # the newest ones
        self.retried: deque[dict[str, Any]] = deque(maxlen=MAX_LISTED)
        self.distances: Histogram | None = None  # the caller of ``add`` merges it
        self.width = _FIRST_WIDTH  # seconds per bin of time
        self.ended = started
        self._bins: dict[str, np.ndarray] = {}  # by worker, a row for each of ``_IN_BINS``
        self.slowest: list[dict[str, Any]] = []  # the slowest batches, the slowest first
        # seconds, source and batch, at most one per batch
        self.slowest_sources: list[tuple[float, str, int]] = []
        self._arrivals: deque[tuple[float, int, int]] = deque()

    @property
    def done(self) -> int:
        return self.kept + self.whole.sources

    @property
    def left(self) -> int:
        return max(0, self.total - self.done - self.failed_sources)

    def add(self, batch: dict[str, Any], now: float | None = None) -> None:
        """Add one batch, as ``summarize_batch`` makes it."""
        now = time.time() if now is None else now
        name = batch["worker"]
        if name not in self.workers and len(self.workers) >= MAX_WORKERS:
            name = OTHERS
        self.whole.add(batch)
        self.workers.setdefault(name, Share()).add(batch)
        self._spread(name, batch)
        insort(
            self.slowest, batch, key=lambda each: (each["started"] - each["ended"], each["part"])
        )
        del self.slowest[MAX_LISTED:]
        if batch["slowest"] is not None:
            source, took = batch["slowest"]
            insort(
                self.slowest_sources, (took, str(source), batch["part"]), key=lambda each: -each[0]
            )
            del self.slowest_sources[MAX_LISTED:]
        self._arrivals.append((now, batch["sources"], batch["edges"]))
        self._forget(now)

    def take(self, updates: Mapping[str, Any], now: float | None = None) -> None:
        """Add lists of updates, as far as they are there: ``batches`` as of ``add``; ``failed``; and
        ``retried``.

        A failure has ``part``, ``sources``, which are the first of those that failed, their number
        ``n``, and ``error``. A retry has ``part`` and ``why``.
        """
        for batch in updates.get("batches", ()):
            self.add(batch, now)
        for failure in updates.get("failed", ()):
            self.failures += 1
            self.failed_sources += failure["n"]
            self.failed.append(failure | {"sources": failure["sources"][:MAX_LISTED]})
        self.retries += len(updates.get("retried", ()))
        self.retried.extend(updates.get("retried", ()))

    def rates(self, now: float | None = None) -> tuple[float, float]:
        """Return sources and edges per second over the last minute, or since a later start; 0
        before any batch.
        """
        now = time.time() if now is None else now
        self._forget(now)
        # A worker compiles once, before its first batch is done: the rest takes no such time.
        compiled = max(
            (share.phases.get("compile", 0.0) for share in self.workers.values()), default=0.0
        )
        seconds = min(_LATELY, now - self.started - compiled)
        if seconds <= 0 or not self._arrivals:
            return 0.0, 0.0
        sources = sum(n for _, n, _ in self._arrivals)
        edges = sum(n for _, _, n in self._arrivals)
        return sources / seconds, edges / seconds

    def seconds_left(self, now: float | None = None) -> float | None:
        """Return the estimated remaining time at the current rate; None if the rate is 0."""
        rate = self.rates(now)[0]
        return self.left / rate if rate else None

    def busiest(self, most: int) -> list[str]:
        """Return the workers with most sources, ordered by name; the others are summed as
        ``OTHERS`` at the end.
        """
        named = sorted(
            (name for name in self.workers if name != OTHERS),
            key=lambda name: -self.workers[name].sources,
        )
        if len(self.workers) <= most and OTHERS not in self.workers:
            return sorted(named, key=_by_number)
        return [*sorted(named[: most - 1], key=_by_number), OTHERS]

    def series(self, what: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Return the seconds from the start at which each bin of ``width`` begins, and the rates
        per second by worker.

        ``what`` is "sources" or "edges". The workers beyond ``MAX_LISTED`` are summed.
        """
        n = max(1, int(np.ceil((self.ended - self.started) / self.width)))
        names = self.busiest(MAX_LISTED)
        rates = {name: np.zeros(n) for name in names}
        for name, bins in self._bins.items():
            rates[name if name in rates else OTHERS] += bins[_IN_BINS.index(what), :n] / self.width
        return np.arange(n) * self.width, rates

    def shares(self, most: int) -> dict[str, Share]:
        """Return the totals per worker, with those beyond ``most`` summed."""
        shares: dict[str, Share] = {name: Share() for name in self.busiest(most)}
        for name, share in self.workers.items():
            shares[name if name in shares else OTHERS].add(vars(share))
        return shares

    def _forget(self, now: float) -> None:
        while self._arrivals and self._arrivals[0][0] < now - _LATELY:
            self._arrivals.popleft()

    def _spread(self, name: str, batch: dict[str, Any]) -> None:
        """Distribute the counts of a batch evenly over its duration."""
        # Clocks of hosts differ. A batch that seems to begin before the run is treated as beginning
        # with it.
        begin = max(batch["started"], self.started)
        end = max(batch["ended"], begin + 1e-3)
        self.ended = max(self.ended, end)
        while end - self.started > MAX_BINS * self.width:
            self.width *= 2
            for each in self._bins.values():
                each[:] = np.pad(each.reshape(2, -1, 2).sum(axis=2), ((0, 0), (0, MAX_BINS // 2)))
        edges = np.arange(MAX_BINS + 1) * self.width + self.started
        share = np.diff(np.clip((edges - begin) / (end - begin), 0.0, 1.0))
        if name not in self._bins:
            self._bins[name] = np.zeros((2, MAX_BINS))
        for amounts, what in zip(self._bins[name], _IN_BINS, strict=True):
            amounts += share * batch[what]
