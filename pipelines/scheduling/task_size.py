"""Choose the number of batches per task from the times of finished batches."""

from __future__ import annotations

from collections import deque

# target: short enough to lose little with a worker, long enough to hide the overhead of the
# scheduler
TASK_SECONDS = 3.0
MAX_TASK_SECONDS = 10.0  # upper bound of the target, however many workers there are
# many workers need longer tasks: then one scheduler is busy at most half of the time
SECONDS_PER_WORKER = 0.01
# per task, if batches take almost no time: the results of so many are still a small message
MAX_BATCHES = 256
_REMEMBERED = 64  # most recent batches whose times are used


class TaskSizer:
    """Decides how many batches a task has: ``first`` until the first times are known, then as many
    as fill ``TASK_SECONDS``.

    This decides only how many parts a task writes, not their content. The numbers come from
    a simulation of one scheduler and its workers; docs/benchmarks/log/2026-11-28-long-runs.md has
    its table.

    ``first``: batches per task until times are known: a worker that writes several parts at once
    needs as many.
    """

    def __init__(self, first: int = 1):
        self._first = first
        # seconds of each of the batches that have finished last, ``_REMEMBERED`` at most
        self._seconds: deque[float] = deque(maxlen=_REMEMBERED)
        self.slowest = 0.0  # seconds of the slowest batch so far, of all

    def note(self, seconds: float) -> None:
        """Record the seconds that a batch took."""
        self._seconds.append(seconds)
        self.slowest = max(self.slowest, seconds)

    def batches(self, left: int, workers: int) -> int:
        """Return how many of the ``left`` batches that remain the next task gets.

        ``left``: number of batches that are in no task yet. ``workers``: number of workers that
        take tasks; it may be 0. Tasks have fewer batches towards the end, so that workers end
        together. The result is 1 at least.
        """
        # With several workers a task gets at most half of a worker's share of what is left. Without
        # a worker, tasks are sized as for one of several: more may come.
        max_share = left
        if workers != 1:
            max_share = -(-left // (2 * max(workers, 1)))
        if not self._seconds:
            return max(1, min(self._first, max_share))

        # As many as fill the target if each takes the mean time, and stay below the bound if each
        # is as slow as the slowest. The target (seconds) grows with the workers, up to the bound.
        # The least time, 1e-6 s, avoids a division by 0.
        mean = max(sum(self._seconds) / len(self._seconds), 1e-6)
        slowest = max(max(self._seconds), 1e-6)
        target = min(max(TASK_SECONDS, workers * SECONDS_PER_WORKER), MAX_TASK_SECONDS)
        fitting = min(target / mean, MAX_TASK_SECONDS / slowest)
        return max(1, min(int(fitting), max_share, MAX_BATCHES))
