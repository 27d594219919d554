"""Watch the workers of a run: which are lost, have joined, are paused or hang, and whether a
scheduler is left.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from kepler_traverse.runtime.display import in_units

from .errors import ClusterError
from .executor import BatchExecutor, BatchFuture, BatchObserver, Task
from .heartbeat import read_heartbeat

_LOOK_EVERY = 2.0  # seconds between two checks of the workers
_MAX_NAMED = 5  # names listed in one message
_MORE_MEMORY = "start the workers with a larger --memory-limit, or 0 for none"

# The progress of a worker: the keys of its tasks, each with the number of the part that it is at,
# None if it has not begun.
Progress = tuple[tuple[str, int | None], ...]


def first_names(names: list[str]) -> str:
    """Return the first ``_MAX_NAMED`` names for a message, and the number of further names: "a, b,
    c, d, e and 2 more".
    """
    shown = ", ".join(names[:_MAX_NAMED])
    more = len(names) - _MAX_NAMED
    return f"{shown} and {more} more" if more > 0 else shown


def _name_workers(workers: Iterable[str]) -> str:
    """Return the first workers by their names, for a message."""
    names = sorted(workers)
    return f"worker{'s' if len(names) > 1 else ''} {first_names(names)}"


class WorkerMonitor:
    """Checks the workers every few seconds, and reports what has changed.

    ``executor``: knows the workers. ``notices``: its method ``notice`` gets the messages.
    ``patience``: seconds without any worker after which the run ends.

    Attributes
    ----------
    n_running : int
        Number of workers that take tasks, as of the last check.
    """

    def __init__(self, executor: BatchExecutor, notices: BatchObserver, patience: float):
        self._executor = executor
        self._notices = notices
        self._patience = patience
        self.n_running = 1  # as if there were one, until the first check
        self._seen_at = time.monotonic()  # when a worker was last known to be there
        self._checked_at = 0.0  # when the last check began; 0.0 makes the next one due
        # By worker its progress at the last check, and since when (``time.monotonic``) it is so.
        self._last_progress: dict[str, tuple[Progress | None, float]] = {}
        self._known: set[str] | None = None  # workers as of the last check; None before the first
        self._paused: set[str] = set()  # known workers that were reported as paused

    def note_result(self) -> None:
        """Note that a worker has delivered a result or has joined, so that there is one."""
        self._seen_at = time.monotonic()

    def check_soon(self) -> None:
        """Make the next check due now, to report a lost worker at once."""
        self._checked_at = 0.0

    def is_due(self) -> bool:
        """Whether it is time for the next check."""
        return time.monotonic() - self._checked_at >= _LOOK_EVERY

    def check(
        self, in_flight: Mapping[BatchFuture, Task], deadline: float
    ) -> list[tuple[str, list[tuple[BatchFuture, Task]]]]:
        """Report changes; return the workers whose tasks have made no progress for longer than the
        deadline, with the tasks.

        ``in_flight``: all tasks that are submitted and have not ended. ``deadline``: seconds that a
        batch may take.

        Raises ClusterError: no worker, or no scheduler, for too long, or a worker has joined that
        cannot take part.
        """
        now = time.monotonic()
        self._checked_at = now
        self.look_for_scheduler()
        try:
            states = self._executor.states(deadline)
        except (OSError, TimeoutError):
            self.n_running = 0
            if now - self._seen_at > self._patience:
                raise self.no_scheduler() from None
            return []

        workers = states.workers
        running = states.running
        self.n_running = len(running)
        self._report_workers(workers, workers - running)

        if running:
            self._seen_at = now
        elif now - self._seen_at > self._patience:
            if not workers:
                raise self.no_workers()
            # A paused worker finishes what it has begun, so the run waits while a task has begun.
            if not any(read_heartbeat(task.heartbeat) for task in in_flight.values()):
                raise ClusterError(
                    f"all {len(workers)} workers have been paused for {self._patience:g} seconds, since they use more "
                    f"memory than their limits allow; {_MORE_MEMORY}, and run again with --resume"
                )
        return self._find_hung(states.processing, in_flight, deadline, now)

    def _report_workers(self, workers: set[str], not_running: set[str]) -> None:
        """Report which workers were lost, have joined, were paused or have resumed since the last
        check.

        ``workers``: all that are there. ``not_running``: those of them that take no tasks. Raises
        ClusterError: one that has joined cannot take part.
        """
        known = self._known
        if known is None:  # the first check reports nothing
            known = workers
        lost = known - workers
        joined = workers - known
        self._known = workers
        count = f"{len(workers)} worker{'' if len(workers) == 1 else 's'} now"
        if lost:
            self._notices.notice(f"lost: {_name_workers(lost)}; {count}")
        if joined:
            self._notices.notice(f"joined: {_name_workers(joined)}; {count}")
            self._executor.admit(sorted(joined))  # takes long if one of them dies meanwhile
            self.note_result()

        resumed = (self._paused & workers) - not_running
        self._paused &= not_running
        if resumed:
            self._notices.notice(f"no longer paused: {_name_workers(resumed)}")
        if not_running - self._paused:
            self._report_paused(not_running - self._paused)

    def _report_paused(self, not_running: set[str]) -> None:
        """Report those of the workers ``not_running`` that Dask has paused, with the memory of the
        first of them; workers that start or close are not reported. Nothing is if the scheduler
        does not answer.
        """
        try:
            paused = self._executor.paused(not_running)  # facts of Dask by worker
        except (OSError, TimeoutError):
            return
        self._paused |= set(paused)
        if paused:
            worker, facts = min(paused.items())
            used = facts["metrics"].get("memory", 0)
            limit = facts["memory_limit"] or 0
            self._notices.notice(
                f"paused by Dask: {_name_workers(paused)}: {worker} uses {in_units(used)} of its memory limit of "
                f"{in_units(limit)}, and begins no task until it uses less; {_MORE_MEMORY}"
            )

    def look_for_scheduler(self) -> None:
        """Raise ClusterError if the connection to the scheduler is lost."""
        if self._executor.is_gone():
            raise self.no_scheduler()

    def no_scheduler(self) -> ClusterError:
        """Return the error for a lost scheduler."""
        return ClusterError(
            "the connection to the Dask scheduler is lost; start it "
            "anew and run again with --resume"
        )

    def no_workers(self) -> ClusterError:
        """Return the error for a run without workers."""
        return ClusterError(
            f"no worker has answered for {self._patience:g} seconds; run again with --resume"
        )

    def _find_hung(
        self,
        processing: dict[str, list[Any]],
        in_flight: Mapping[BatchFuture, Task],
        deadline: float,
        now: float,
    ) -> list[tuple[str, list[tuple[BatchFuture, Task]]]]:
        """Return the workers whose progress is the same for longer than the deadline, with their
        tasks.

        ``in_flight``: the tasks of this run that have not ended. ``processing``: keys of the tasks
        that each worker has, also of other runs. ``deadline`` in seconds, and ``now`` in those of
        ``time.monotonic``.
        """
        by_key = {future.key: (future, task) for future, task in in_flight.items()}
        latest: dict[str, tuple[Progress | None, float]] = {}
        hung = []
        for worker, keys in processing.items():
            # sorted, so that the same tasks compare as equal progress in whichever order they come
            tasks = [by_key[key] for key in sorted(key for key in keys if key in by_key)]
            parts: list[tuple[Any, int | None]] = []
            for future, task in tasks:
                place = read_heartbeat(task.heartbeat)
                parts.append((future.key, None if place is None else place.part))
            progress = tuple(parts)

            # ``since``: when the progress became what it is; now for a worker that is new
            last_progress, since = self._last_progress.get(worker, (None, now))
            if progress != last_progress:
                since = now
            # A worker that hangs is forgotten, since it is restarted: its time begins anew.
            if tasks and now - since > deadline:
                hung.append((worker, tasks))
            else:
                latest[worker] = (progress, since)
        self._last_progress = latest
        return hung
