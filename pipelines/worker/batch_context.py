"""What is recorded while one batch is traversed and written: progress, times, statistics and
failures.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, cast

from ..output.manifest_types import PartSummary
from ..output.part_stats import PartStats
from ..scheduling.heartbeat import TaskProgress
from .phase_timer import PhaseTimer


@dataclass(kw_only=True)
class BatchContext:
    """Progress, times, statistics and failures of one batch (the sources of one part file); passed
    to all functions that process the batch.
    """

    # Records which part and source the task works on, so that the driver knows where a worker died.
    progress: TaskProgress = field(default_factory=TaskProgress)
    # When work on the batch began, in seconds since the epoch.
    started: float = field(default_factory=time.time)
    clock: PhaseTimer = field(default_factory=PhaseTimer)  # seconds by phase
    # Edges, rounds and distances of the sources that have results.
    stats: PartStats = field(default_factory=PartStats)
    # Sources that are left out of the part: the vertex number of each, and the reason as a text.
    failed: list[tuple[int, str]] = field(default_factory=list)

    def finish(self, summary: PartSummary, worker: str = "") -> None:
        """Add times and statistics of a finished batch to the summary of its part, in place.

        ``summary`` is what ``write_part`` has returned. ``worker`` is the worker's name for the
        manifest, or ``""`` if it is not known here.
        """
        summary["started"] = round(self.started, 3)
        summary["ended"] = round(time.time(), 3)
        summary["seconds"] = self.clock.elapsed  # without those of compiling
        summary["phases"] = self.clock.rounded()
        if worker:
            summary["worker"] = worker
        summary.update(cast(Any, self.stats.summary()))
