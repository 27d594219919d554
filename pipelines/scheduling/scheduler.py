"""Split sources into batches and batches into tasks, and keep every worker busy with a sliding
window of tasks.

Dask's ``retries`` cover exceptions only. Its ``allowed-failures`` count every task that was queued
on a worker that died. So neither is used. A task that is lost with its worker is submitted again.
Its heartbeat file (see ``heartbeat``) says whether it had begun and which source it was at. A
source at which workers keep dying is left out and reported; a worker that announced that it closes
does not count. If a worker traversed from the sources of several parts together, the parts are
split in half and resubmitted. So the part that kills workers is found by bisection.
"""

from __future__ import annotations

import queue
import time
import uuid
from collections import Counter, defaultdict, deque
from pathlib import Path

from kepler_traverse.errors import NegativeCycleError, OutputError

from ..cli import signals
from ..cli.options import Settings
from ..output.manifest_types import BatchOutcome
from ..output.part_file import part_exists
from ..output.run_folder import ChangedFolderError
from .errors import ClusterError, ProcessUnusableError
from .executor import BatchExecutor, BatchFuture, BatchObserver, Task
from .heartbeat import read_heartbeat
from .strategy_choice import StrategyChoice
from .task_size import TaskSizer
from .worker_monitor import WorkerMonitor, first_names

WINDOW = 3  # tasks in flight per worker: one runs, the others are queued on the worker
# failures before a source or batch is given up: a worker dies or hangs, or a whole task fails
MAX_FAILURES = 3
MAX_LOSSES = 30  # consecutive lost tasks with the same batch, with no finished task in between
_DRAIN_TICK = 0.01  # seconds between two looks at the tasks while draining
_DROP_SECONDS = 0.2  # time for a worker to learn that a task is cancelled
_TICK = 1.0  # seconds; longest wait for a finished task
# of --batch-deadline auto: seconds, and a multiple of the slowest batch so far
_MIN_DEADLINE = 600.0
_TIMES_SLOWEST = 20.0


class Window:
    """Runs batches on an executor, with a few tasks per worker in flight.

    Parameters
    ----------
    executor : BatchExecutor
        Runs tasks, in this process or on workers.
    observer : BatchObserver
        Its methods are called with what becomes of each batch.
    folder : Path
        Where tasks write their heartbeat files.
    settings : Settings
        Only the deadline of a batch, the notice of an interrupt, and the time without a worker are
        used.
    first : int
        Number of batches of the first tasks, until the time of a batch is known.
    choice : StrategyChoice, optional
        The choice between strategies; without it tasks name no strategy.
    """

    def __init__(
        self,
        executor: BatchExecutor,
        observer: BatchObserver,
        folder: Path,
        settings: Settings = Settings(edges=[]),  # noqa: B008
        first: int = 1,
        choice: StrategyChoice | None = None,
    ):
        self._executor = executor
        self._observer = observer
        self._folder = folder
        self._deadline = settings.batch_deadline
        self._notice_seconds = settings.notice  # of an interrupt, for the running tasks to end
        self._monitor = WorkerMonitor(executor, observer, settings.worker_timeout)
        self._task_sizer = TaskSizer(first)
        self._choice = choice
        # It is in the names of heartbeat files, since workers of an earlier run may still live and
        # write some.
        self._token = uuid.uuid4().hex[:8]
        self._n_submitted = 0  # tasks
        self._in_flight: dict[BatchFuture, Task] = {}  # in the order of submission
        # tasks that have ended, also cancelled ones; other threads put them there
        self._finished: queue.SimpleQueue[BatchFuture] = queue.SimpleQueue()
        # Batches that are not in flight, by their part numbers: those that any task may have, those
        # that are run alone and source by source, and halves of tasks that were lost.
        self._waiting: deque[int] = deque()
        self._retry_alone: deque[int] = deque()
        self._bisected: deque[list[int]] = deque()
        # Sources (vertex numbers) that are given up, by the numbers of their batches.
        self._given_up: dict[int, set[int]] = defaultdict(set)
        # Failures by batch and source; the source is None if it is not known.
        self._failure_counts: Counter[tuple[int, int | None]] = Counter()
        # By batch, how often it was lost since a task last finished.
        self._losses: Counter[int] = Counter()
        self._recalled: list[Path] = []  # heartbeat files of tasks that were cancelled
        self._unreported_retries: defaultdict[str, list[int]] = defaultdict(list)  # by reason

    def run(self, parts: list[int]) -> None:
        """Run the batches of ``parts`` (their numbers), until each is written or given up.

        Raises NegativeCycleError (from any batch; no further batch is started), OutputError (a
        worker cannot write to the output folder), ClusterError (no worker, or no scheduler, for too
        long) or KeyboardInterrupt (after the running tasks have ended, or after the notice).
        """
        self._waiting.extend(parts)
        try:
            while self._waiting or self._retry_alone or self._bisected or self._in_flight:
                signals.check()
                self._look_after_workers()
                self._fill()
                for future in self._wait():
                    with signals.held():  # an interrupt waits until the results are in the manifest
                        self._on_task_done(future)
        except KeyboardInterrupt:
            self._drain()
            raise
        finally:
            self._report_retries()
            for heartbeat in self._recalled:  # a task may have begun while it was recalled
                heartbeat.unlink(missing_ok=True)
            if self._in_flight and self._executor.is_connected():
                self._executor.cancel(list(self._in_flight))

    def _fill(self) -> None:
        """Submit tasks until each worker has a few, or no batch is left.

        Halves of lost tasks come first, and batches that are run alone come last.
        """
        # During a trial a new task may get the slower strategy. So tasks are small then, and none
        # is queued.
        is_trying = self._choice is not None and self._choice.is_trying
        tasks_per_worker = 1 if is_trying else WINDOW
        # Without workers, too, a few tasks wait at the scheduler: an adaptive cluster starts
        # workers for tasks alone.
        while len(self._in_flight) < tasks_per_worker * max(self._monitor.n_running, 1):
            if self._bisected:
                self._start(self._bisected.popleft(), isolate=False, halved=True)
            elif self._waiting:
                self._start_waiting(is_trying)
            elif self._retry_alone:
                self._start([self._retry_alone.popleft()], isolate=True)
            else:
                return

    def _start_waiting(self, is_trying: bool) -> None:
        """Submit a task of waiting batches; it tries another strategy if a trial is due.

        ``is_trying``: whether a trial is under way, or due. Other tasks then have one batch each.
        """
        left = len(self._waiting)  # number of batches that wait
        # A pending trial is returned once: its strategy and its number of batches.
        trial = None if self._choice is None else self._choice.take_trial()
        trial_strategy = ""
        count = 1  # during a trial
        if trial is not None:
            trial_strategy, count = trial
        elif not is_trying:
            count = self._task_sizer.batches(left, self._monitor.n_running)
        parts = [self._waiting.popleft() for _ in range(min(count, left))]
        self._start(parts, isolate=False, trial_strategy=trial_strategy)

    def _start(
        self, parts: list[int], isolate: bool, halved: bool = False, trial_strategy: str = ""
    ) -> None:
        """Submit a task of the batches ``parts``.

        ``isolate``: whether it searches from one source at a time. ``halved``: whether the batches
        are half of a lost task. ``trial_strategy``: the strategy that it tries; "" if none.
        """
        self._n_submitted += 1
        strategy = trial_strategy
        if not strategy and self._choice is not None:
            strategy = self._choice.strategy
        task = Task(
            number=self._n_submitted,
            parts=tuple(parts),
            isolate=isolate,
            # sources that are given up, which the task leaves out
            without=frozenset().union(*(self._given_up.get(part, ()) for part in parts)),
            heartbeat=self._folder / f".task-{self._n_submitted:06d}.{self._token}.tmp",
            strategy=strategy,
            is_trial=bool(trial_strategy),
            halved=halved,
        )
        # Interrupts are held back: one that comes while a lock of the future is held would leave it
        # locked, and the task would never end.
        with signals.held():
            future: BatchFuture = self._executor.submit(task)
            self._in_flight[future] = task
            future.add_done_callback(self._finished.put)

    def _wait(self) -> list[BatchFuture]:
        """Return the futures of tasks that have ended; wait at most ``_TICK`` seconds for the first
        of them. None are returned if no task has ended by then.
        """
        try:
            finished = [self._finished.get(timeout=_TICK)]
            while not self._finished.empty():
                finished.append(self._finished.get_nowait())
        except queue.Empty:
            return []
        return [future for future in finished if future in self._in_flight]  # not cancelled ones

    def _on_task_done(self, future: BatchFuture) -> None:
        """Record the outcomes of a task that has ended; without outcomes, act on its error, or have
        its batches run again.
        """
        task = self._in_flight.pop(future)
        outcomes = self._executor.get_outcomes(future)
        if outcomes is not None:
            self._losses.clear()  # losses count only while no task finishes
            self._monitor.note_result()  # the time without an answer begins anew
            self._record_outcomes(task, outcomes)
            if self._choice is not None:
                self._choose_strategy(task, self._choice)
        elif future.status == "error":
            self._on_task_error(task, future.exception())
        else:  # cancelled from outside, or its result was lost with its worker
            self._monitor.look_for_scheduler()  # raises an error if the scheduler is lost, too
            # Dask computes a lost result again, so the heartbeat of a task that had ended is that
            # of another worker.
            self._on_task_lost(task, "its result is gone", is_crash=future.status == "cancelled")

        # Dask would compute a result again whose worker dies, as long as it is referenced.
        future.release()

    def _on_task_error(self, task: Task, error: Exception) -> None:
        """Act on the error of a task.

        If its worker was lost, its batches run again. If the error ends the run, it is raised. Any
        other error counts as a failure of each of its batches.
        """
        kind = self._executor.classify_error(error)
        if kind in ("worker died", "worker left"):
            self._on_task_lost(task, f"its {kind}", is_crash=kind == "worker died")
            return

        # Errors that end the run. Where this process is unusable, worker processes continue it, and
        # the batches of the task are reported as retried.
        if isinstance(error, ProcessUnusableError):
            for part in task.parts:
                # without the advice, which stands behind a semicolon
                self._note_retry(part, str(error).partition(";")[0])
        if isinstance(error, NegativeCycleError | OutputError | ChangedFolderError | ClusterError):
            raise error
        if isinstance(error, ImportError):
            raise ClusterError(
                f"a worker lacks a package that this job has ({error}); install the same where the worker runs, start it "
                "anew, and run again with --resume"
            )
        if kind == "no worker":
            raise self._monitor.no_workers()

        if kind == "cancelled":  # a lost scheduler is an error; else the batches run again
            self._monitor.look_for_scheduler()
            self._on_task_lost(task, "its result is gone")
            return
        for part in task.parts:
            self._count_failure(part, None, f"{type(error).__name__}: {error}")
        # A strategy whose trial has ended without a measured time is not tried again; the notice
        # says so.
        if task.is_trial and self._choice is not None:
            self._show_notice(self._choice.end_trial())

    def _record_outcomes(self, task: Task, outcomes: list[BatchOutcome]) -> None:
        """Record the outcomes of the batches of a task, and the times of their searches."""
        for outcome in outcomes:
            if self._choice is not None:
                self._choice.note(task.strategy, outcome.get("measured"))
            self._on_batch_done(outcome)

    def _choose_strategy(self, task: Task, choice: StrategyChoice) -> None:
        """Change the strategy of the next tasks, or let one task try another, if the measurements
        say so.

        ``task``: the one that has just ended; it may have been the trial.
        """
        if task.is_trial:
            self._show_notice(choice.end_trial())
        # A worker runs its tasks in order, so the first tasks in flight are the running ones.
        queued = list(self._in_flight.values())[self._monitor.n_running :]
        n_not_begun = len(self._waiting) + sum(len(other.parts) for other in queued)
        message = choice.decide(n_not_begun)
        if message is not None:
            self._show_notice(message)
            self._recall_tasks()

    def _recall_tasks(self) -> None:
        """Cancel the tasks that no worker has begun, so that they are submitted again with the
        current strategy.

        A task that begins before its worker learns of this is not waited for. Its work is done
        again, and gives the same bytes.
        """
        queued = [
            (future, task)
            for future, task in self._in_flight.items()
            if not (future.done() or task.isolate or task.halved or self._has_begun(task))
        ]
        self._executor.cancel([future for future, _ in queued])
        for future, task in queued:
            del self._in_flight[future]
            task.heartbeat.unlink(missing_ok=True)  # a task that begins nevertheless writes no part
            self._recalled.append(task.heartbeat)
        for _, task in reversed(queued):  # so that batches wait in their order
            self._waiting.extendleft(reversed(task.parts))

    def _show_notice(self, message: str | None) -> None:
        """Show a message of the choice of strategies, if there is one."""
        if message is not None:
            self._observer.notice(message)

    def _on_batch_done(self, outcome: BatchOutcome) -> None:
        """Report the outcome of a batch, and remember which sources are given up."""
        part = outcome["part"]
        summary = outcome["summary"]
        for source, reason in outcome["failed"]:
            self._observer.failed(part, [source], reason)
            self._given_up[part].add(source)
        if summary is not None:
            self._task_sizer.note(summary["seconds"])
            self._observer.done(part, summary, frozenset(self._given_up.get(part, ())))

    def _on_task_lost(self, task: Task, why: str, is_crash: bool = True) -> None:
        """Have the batches of a lost task run again; count a failure of the source that it was at,
        if that may be the reason.

        ``why``: what was lost, for messages. ``is_crash``: whether the task may have ended its
        worker; the heartbeat file then says where it was.
        """
        self._monitor.check_soon()  # so that a lost worker is reported at once
        place = None  # of the task; None if it had not begun, or is not the reason
        if is_crash:
            place = read_heartbeat(task.heartbeat)
        # A worker that still lives sees that its file is gone, and writes no part from now on.
        task.heartbeat.unlink(missing_ok=True)

        # A trial that had begun may have ended its worker, so that its strategy is tried again only
        # if it was measured. One that had not begun may be repeated.
        if self._choice is not None and task.is_trial:
            if place is None:
                self._choice.drop_trial()
            else:
                self._show_notice(self._choice.end_trial(lost=True))
        self._count_loss(task, why)  # raises an error if a batch is lost again and again
        if place is None:
            self._requeue(task)
            return

        # The batches that were searched when the worker died are ``begun``. All others of the task
        # wait again: those before are written, but their outcomes are lost, and those behind had
        # not begun. If one batch was searched, it gets the failure. Of several that were searched
        # together, one is the reason: they are tried again in halves.
        # ``place`` names the first and the last part that were searched; their positions in the
        # task:
        first = task.parts.index(place.part)
        last = task.parts.index(place.last)
        begun = task.parts[first : last + 1]
        self._waiting.extendleft(part for part in reversed(task.parts) if part not in begun)
        why = place.reason or why
        if len(begun) == 1:
            self._count_failure(place.part, place.source, why)
            return
        middle = len(begun) // 2
        self._bisected += [list(begun[:middle]), list(begun[middle:])]
        for part in begun:
            self._note_retry(part, why)

    def _count_loss(self, task: Task, why: str) -> None:
        """Count a loss of each batch of a task; raise ClusterError if one was lost too often."""
        self._losses.update(task.parts)
        if any(self._losses[part] > MAX_LOSSES for part in task.parts):
            raise ClusterError(
                f"workers have been lost {MAX_LOSSES} times without finishing anything (the last time: {why}); "
                "see the log of a worker, and run again with --resume"
            )

    def _requeue(self, task: Task) -> None:
        """Have the batches of a lost task wait again, in the queue that they came from."""
        # They go to the front, in their order: ``extendleft`` reverses what it is given.
        if task.isolate:
            self._retry_alone.extendleft(task.parts)
        elif task.halved:
            self._bisected.appendleft(list(task.parts))
        else:
            self._waiting.extendleft(reversed(task.parts))

    def _count_failure(self, part: int, source: int | None, why: str) -> None:
        """Count a failure of a batch at a source, and have the batch run again, alone.

        ``source``: its vertex number; None if it is not known. After ``MAX_FAILURES`` the source,
        or the whole batch, is given up.
        """
        self._failure_counts[part, source] += 1
        n_failures = self._failure_counts[part, source]
        if n_failures < MAX_FAILURES:
            self._note_retry(part, why)
            self._retry_alone.append(part)
            return

        # Give up the source, or all sources of the batch.
        sources = None if source is None else [source]
        self._observer.failed(part, sources, f"{why} ({n_failures} times)")
        if source is not None:  # the other sources of the batch are still to be searched
            self._given_up[part].add(source)
            self._retry_alone.append(part)

    def _note_retry(self, part: int, why: str) -> None:
        """Record that a batch is submitted again, and why; ``_report_retries`` prints it later."""
        self._observer.retried(part, why)
        self._unreported_retries[why].append(part)

    def _report_retries(self) -> None:
        """Report retries, one message per reason: one per batch would be too many if many workers
        are lost at once.
        """
        for why, parts in self._unreported_retries.items():
            distinct = sorted(set(parts))
            plural = "es" if len(distinct) > 1 else ""
            numbers = first_names([str(part) for part in distinct])
            self._observer.notice(f"given out again: batch{plural} {numbers}: {why}")
        self._unreported_retries.clear()

    def _look_after_workers(self) -> None:
        """If the next check is due, report changes of the workers, and restart those that hang."""
        if not self._monitor.is_due():
            return
        self._report_retries()
        # "auto": a multiple of the slowest batch so far, and never less than ten minutes.
        if self._deadline == "auto":
            deadline = max(_MIN_DEADLINE, _TIMES_SLOWEST * self._task_sizer.slowest)
        else:
            deadline = self._deadline
        for worker, tasks in self._monitor.check(self._in_flight, deadline):
            self._restart(worker, tasks, deadline)

    def _restart(self, worker: str, tasks: list[tuple[BatchFuture, Task]], deadline: float) -> None:
        """Cancel all tasks of a worker that hangs, and end its process; another one takes its
        place.

        ``tasks``: those of the worker, which are run again. ``deadline``: seconds that have passed.
        """
        self._executor.cancel([future for future, _ in tasks])
        why = (
            f"a batch took longer than {deadline:g} seconds at worker {worker}, which is restarted"
        )
        for future, task in tasks:
            del self._in_flight[future]
            self._on_task_lost(task, why)
        self._executor.restart(worker, why)

    def _drain(self) -> None:
        """After an interrupt, wait for running tasks to end, and record their results; at most as
        long as the notice.
        """
        if not self._executor.is_connected():
            return

        # Cancel what has not begun.
        queued = [
            future
            for future, task in self._in_flight.items()
            if not future.done() and not self._has_begun(task)
        ]
        self._executor.cancel(queued)
        cancelled = [self._in_flight.pop(future) for future in queued]
        if self._in_flight:
            self._observer.draining(len(self._in_flight))

        # Wait for the rest, and in any case until workers know of the cancelled tasks.
        now = time.monotonic()
        deadline = now + self._notice_seconds
        known_at = now + _DROP_SECONDS
        while (
            (self._in_flight or time.monotonic() < known_at)
            and time.monotonic() < deadline
            and self._executor.is_connected()
        ):
            # A cancelled task that has begun nevertheless must not write a part that no process
            # records: without its heartbeat file it writes none.
            for task in cancelled:
                task.heartbeat.unlink(missing_ok=True)
            # Futures are polled: the interrupt may have come after one was taken from the queue,
            # before it was handled.
            ended = [(future, task) for future, task in self._in_flight.items() if future.done()]
            for future, task in ended:
                del self._in_flight[future]
                self._record_outcomes(task, self._executor.get_outcomes(future) or [])
            if not ended:
                time.sleep(_DRAIN_TICK)

    def _has_begun(self, task: Task) -> bool:
        """Whether a worker runs the task, or has finished it and the result is in transit.

        A task that runs has a heartbeat file. It deletes the file when it ends, so the part files
        are checked, too.
        """
        return read_heartbeat(task.heartbeat) is not None or any(
            part_exists(self._folder, part) for part in task.parts
        )
