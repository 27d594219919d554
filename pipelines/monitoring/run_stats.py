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

# what a worker does: load the graph, compile, search, certify, make rows of results, write files
PHASES = ("load", "compile", "traverse", "certify", "rows", "write")
OTHERS = "others"  # the name under which workers without an entry of their own are added up
MAX_BINS = 240  # time bins; if a run needs more, neighboring bins are joined in pairs
MAX_WORKERS = 1024  # workers listed separately; a restarted worker has a new address
MAX_LISTED = 12  # slowest batches, failures and retries that are listed in full
_FIRST_WIDTH = 0.125  # initial width of a bin in seconds
_IN_BINS = ("sources", "edges")  # what is counted per bin of time
_RATE_SECONDS = 60.0  # over which the current rate is averaged


def summarize_batch(part: int, summary: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the times and counts of a batch as a dictionary that is small enough to be sent.

    ``part`` is the number of its part file, and ``summary`` its entry in the manifest. Return None
    if the entry has no times, since the file was found and not written by a run of this manifest.

    The dictionary has ``part``; ``worker``, its address without the protocol; the numbers of
    ``sources``, ``rows``, ``bytes`` and ``edges``; ``started`` and ``ended``, in seconds since the
    epoch; the seconds by phase as ``phases``; and ``slowest``, the source that took longest and its
    seconds, or None.
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
    """Totals of one worker, or of several."""

    batches: int = 0  # number of part files that it has written
    sources: int = 0  # number of sources in these
    edges: int = 0  # number of stored edges of the vertices that were reached
    bytes: int = 0  # bytes of the part files
    # seconds of work by phase
    phases: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PHASES, 0.0))

    def add(self, batch: Mapping[str, Any]) -> None:
        """Add a batch, as ``summarize_batch`` makes it, or ``vars`` of another ``Share``."""
        self.batches += batch.get("batches", 1)
        for key in ("sources", "edges", "bytes"):
            setattr(self, key, getattr(self, key) + batch[key])
        for phase, seconds in batch["phases"].items():
            self.phases[phase] = self.phases.get(phase, 0.0) + seconds


def _by_number(name: str) -> list[Any]:
    """Return a sort key of the name of a worker, by which numbers in names are compared as numbers:
    10.0.0.9 comes before 10.0.0.10.
    """
    return [int(piece) if piece.isdecimal() else piece for piece in re.split(r"(\d+)", name)]


def _minus_seconds_and_part(batch: Mapping[str, Any]) -> tuple[float, int]:
    """Return a sort key of batches: the slowest first, and of equally slow ones the one with the
    smallest number of its part.
    """
    return batch["started"] - batch["ended"], batch["part"]


class RunStats:
    """Statistics of a run, to which batches are added as they finish.

    ``started`` is the begin of the run, in seconds since the epoch. ``total`` is the number of its
    sources, and ``kept`` the number of these that an earlier run has computed.
    """

    def __init__(self, started: float, total: int, kept: int = 0):
        self.started = started
        self.total = total
        self.kept = kept
        self.whole = Share()  # totals of all workers
        self.workers: dict[str, Share] = {}  # totals by worker; ``OTHERS`` if there are too many
        self.failed_sources = 0
        self.failures = 0  # number of reports, each of one source or of several
        self.retries = 0  # number of batches that were submitted again
        # The newest failures and retries, as ``take`` gets them.
        self.failed: deque[dict[str, Any]] = deque(maxlen=MAX_LISTED)
        self.retried: deque[dict[str, Any]] = deque(maxlen=MAX_LISTED)
        # histogram of the distances of all batches, which the caller of ``add`` keeps up to date
        self.distances: Histogram | None = None
        self.width = _FIRST_WIDTH  # seconds per bin of time
        self.ended = started  # the end of the last batch so far, in seconds since the epoch
        # by worker, float64 array of a row for each of ``_IN_BINS``, and ``MAX_BINS`` columns
        self._bins: dict[str, np.ndarray] = {}
        self.slowest: list[dict[str, Any]] = []  # the slowest batches, the slowest first
        # (seconds, source, number of the part), at most one per batch, the slowest first
        self.slowest_sources: list[tuple[float, str, int]] = []
        # of the batches of the last minute: when they were added, their sources, and their edges
        self._arrivals: deque[tuple[float, int, int]] = deque()

    @property
    def done(self) -> int:
        """Number of sources that are computed, by an earlier run too."""
        return self.kept + self.whole.sources

    @property
    def left(self) -> int:
        """Number of sources that are neither computed nor failed."""
        return max(0, self.total - self.done - self.failed_sources)

    def add(self, batch: dict[str, Any], now: float | None = None) -> None:
        """Add one batch, as ``summarize_batch`` makes it. ``now`` is the time at which it counts
        for the current rate, in seconds since the epoch; by default the present.
        """
        now = time.time() if now is None else now
        worker = batch["worker"]
        if worker not in self.workers and len(self.workers) >= MAX_WORKERS:
            worker = OTHERS
        self.whole.add(batch)
        self.workers.setdefault(worker, Share()).add(batch)
        self._add_to_bins(worker, batch)

        # The slowest batches and sources, the slowest first.
        insort(self.slowest, batch, key=_minus_seconds_and_part)
        del self.slowest[MAX_LISTED:]
        if batch["slowest"] is not None:
            source, seconds = batch["slowest"]
            entry = (seconds, str(source), batch["part"])
            insort(self.slowest_sources, entry, key=lambda entry: -entry[0])
            del self.slowest_sources[MAX_LISTED:]

        self._arrivals.append((now, batch["sources"], batch["edges"]))
        self._drop_arrivals(now)

    def take(self, updates: Mapping[str, Any], now: float | None = None) -> None:
        """Add several updates: ``updates`` may have the lists ``batches``, of what ``add`` takes,
        ``failed`` and ``retried``; a missing list is empty. ``now`` is that of ``add``.

        A failure has ``part``, ``sources``, which are the first of those that failed, their number
        ``n``, and ``error``. A retry has ``part`` and ``why``.
        """
        for batch in updates.get("batches", ()):
            self.add(batch, now)
        for failure in updates.get("failed", ()):
            self.failures += 1
            self.failed_sources += failure["n"]
            self.failed.append(failure | {"sources": failure["sources"][:MAX_LISTED]})
        retried = updates.get("retried", ())
        self.retries += len(retried)
        self.retried.extend(retried)

    def rates(self, now: float | None = None) -> tuple[float, float]:
        """Return sources per second and edges per second, over the last minute, or since the run
        began if it began within that minute; 0 before any batch. ``now`` is in seconds since the
        epoch, by default the present.
        """
        now = time.time() if now is None else now
        self._drop_arrivals(now)
        # A worker compiles once, before its first batch is done: what is left takes no such time.
        compiled = max(
            (share.phases.get("compile", 0.0) for share in self.workers.values()), default=0.0
        )
        seconds = min(_RATE_SECONDS, now - self.started - compiled)
        if seconds <= 0 or not self._arrivals:
            return 0.0, 0.0
        n_sources = sum(sources for _, sources, _ in self._arrivals)
        n_edges = sum(edges for _, _, edges in self._arrivals)
        return n_sources / seconds, n_edges / seconds

    def seconds_left(self, now: float | None = None) -> float | None:
        """Return the estimated remaining time in seconds, at the current rate; None if the rate is
        0. ``now`` is in seconds since the epoch, by default the present.
        """
        sources_per_second, _ = self.rates(now)
        return self.left / sources_per_second if sources_per_second else None

    def busiest(self, most: int) -> list[str]:
        """Return ``most`` names at most, of the workers with the largest numbers of sources, in the
        order of the names. If there are more workers, the last name is ``OTHERS``, which stands for
        all workers that are not named.
        """
        if len(self.workers) <= most and OTHERS not in self.workers:
            return sorted(self.workers, key=_by_number)
        names = [name for name in self.workers if name != OTHERS]
        names.sort(key=lambda name: -self.workers[name].sources)
        return [*sorted(names[: most - 1], key=_by_number), OTHERS]

    def series(self, what: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Return the seconds from the start of the run at which each bin of time begins, and by the
        name of a worker the rate per second in each bin: float64 arrays with a value per bin.

        ``what`` is "sources" or "edges". The workers beyond ``MAX_LISTED`` are summed as
        ``OTHERS``.
        """
        n_bins = max(1, int(np.ceil((self.ended - self.started) / self.width)))
        rates = {name: np.zeros(n_bins) for name in self.busiest(MAX_LISTED)}
        for worker, bins in self._bins.items():
            name = worker if worker in rates else OTHERS
            rates[name] += bins[_IN_BINS.index(what), :n_bins] / self.width
        return np.arange(n_bins) * self.width, rates

    def shares(self, most: int) -> dict[str, Share]:
        """Return the totals by the name of a worker, ``most`` of them at most. If there are more
        workers, the rest are added up as ``OTHERS``.
        """
        shares: dict[str, Share] = {name: Share() for name in self.busiest(most)}
        for name, share in self.workers.items():
            shares[name if name in shares else OTHERS].add(vars(share))
        return shares

    def _drop_arrivals(self, now: float) -> None:
        """Forget the batches that were added more than ``_RATE_SECONDS`` before ``now``, since the
        current rate does not count them.
        """
        while self._arrivals and self._arrivals[0][0] < now - _RATE_SECONDS:
            self._arrivals.popleft()

    def _add_to_bins(self, worker: str, batch: dict[str, Any]) -> None:
        """Distribute the counts of a batch evenly over the bins of time in which it ran."""
        # Clocks of hosts differ. A batch that seems to begin before the run is treated as beginning
        # with it.
        begin = max(batch["started"], self.started)
        end = max(batch["ended"], begin + 1e-3)  # not ``begin``, since the duration divides below
        self.ended = max(self.ended, end)

        # Join neighboring bins in pairs until all of them hold the run. The second half of the bins
        # is free then.
        while end - self.started > MAX_BINS * self.width:
            self.width *= 2
            for bins in self._bins.values():
                pairs = bins.reshape(len(_IN_BINS), -1, 2)
                bins[:] = np.pad(pairs.sum(axis=2), ((0, 0), (0, MAX_BINS // 2)))

        # Which share of the batch is in each bin.
        bin_ends = np.arange(MAX_BINS + 1) * self.width + self.started
        share = np.diff(np.clip((bin_ends - begin) / (end - begin), 0.0, 1.0))
        if worker not in self._bins:
            self._bins[worker] = np.zeros((len(_IN_BINS), MAX_BINS))
        for counts, what in zip(self._bins[worker], _IN_BINS, strict=True):
            counts += share * batch[what]
