"""How many batches a task should hold, from the times of those that are done."""

from __future__ import annotations

from collections import deque

TASK_SECONDS = 3.0  # aimed at: short enough to lose little with a worker, long enough for the scheduler not to matter
MAX_TASK_SECONDS = 10.0
SECONDS_PER_WORKER = 0.01  # more of them need longer tasks: with these one scheduler works half of the time at most
MAX_BATCHES = 256  # of a task, where they take no time at all: so many answers still are a small message
_REMEMBERED = 64  # batches


class TaskSizer:
    """Sizes tasks: single batches until the first times are in, then as many as fill ``TASK_SECONDS``.

    What is in a part does not depend on this: only how many parts a task makes. The numbers come from
    ``scripts/bench/scheduler_model.py``; docs/operations.md has its table.

    Parameters
    ----------
    first : int
        Batches of a task until times are in: a worker that writes several at a time needs as many.
    """

    def __init__(self, first: int = 1):
        self._first = first
        self._seconds: deque[float] = deque(maxlen=_REMEMBERED)
        self.slowest = 0.0

    def note(self, seconds: float) -> None:
        """A batch has taken so long."""
        self._seconds.append(seconds)
        self.slowest = max(self.slowest, seconds)

    def batches(self, left: int, workers: int) -> int:
        """How many batches the next task gets, of those ``left``; fewer towards the end, so that workers end together."""
        fair = left if workers == 1 else -(-left // (2 * max(workers, 1)))
        if not self._seconds:
            return max(1, min(self._first, fair))
        mean = max(sum(self._seconds) / len(self._seconds), 1e-6)
        aim = min(max(TASK_SECONDS, workers * SECONDS_PER_WORKER), MAX_TASK_SECONDS)
        fitting = min(aim / mean, MAX_TASK_SECONDS / max(max(self._seconds), 1e-6))
        return max(1, min(int(fitting), fair, MAX_BATCHES))
