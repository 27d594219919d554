"""Sources to batches, batches to tasks, and the sliding window that keeps every worker busy whatever happens to it.

Dask's own ``retries`` cover exceptions, and its ``allowed-failures`` count every task that was queued on a worker that died.
So neither is relied on. A task that is lost with its worker is given out again; its mark (see ``marks``) says whether it had
begun and which source it was at, and a source at which workers keep dying is left out and reported. Where a worker traversed
from the sources of several parts together, halves of them are given out, so that the one that kills workers is found.
"""

from __future__ import annotations

import queue
import time
import uuid
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from distributed import Client, Future, KilledWorker
from distributed.scheduler import NoValidWorkerError

from kepler_traverse.errors import NegativeCycleError, OutputError

from ..cli import signals
from ..cli.terminal import in_units
from ..output.manifest_types import BatchOutcome, PartSummary
from ..output.part_file import part_name
from ..run.strategy_choice import StrategyChoice
from .cluster import ClusterError
from .heartbeat import read_mark
from .task_size import TaskSizer

WINDOW = 3  # tasks a worker that are on their way: one runs, the next ones are there already
MAX_FAILURES = 3  # times that workers die or hang at a source, or a task fails as a whole, before it is given up
MAX_LOSSES = 30  # tasks lost in a row with one batch, without anything done in between
_DRAIN_TICK = 0.01  # seconds
_DROP_SECONDS = 0.2  # until a worker has heard that a task is cancelled
DRAIN_SECONDS = 20.0  # for tasks that run when the job is interrupted; the next signal ends it at once
_TICK = 1.0  # seconds
_LOOK_EVERY = 2.0  # seconds between two looks at the workers
_ANSWER_SECONDS = 30  # for the scheduler
_FETCH_SECONDS = 10  # for the answer of a task that is done; it takes longer only if its worker has died since
_MIN_DEADLINE, _TIMES_SLOWEST = 600.0, 20.0  # of "auto": seconds, and times the slowest batch so far
_MAX_NAMED = 5  # in one line
_MORE_MEMORY = "start the workers with a larger --memory-limit, or 0 for none"

Sign = tuple[tuple[str, int | None], ...]  # the tasks of a worker, and the part that each is at


class BatchObserver(Protocol):
    """Is told what becomes of the batches."""

    def done(self, part: int, summary: PartSummary, without: frozenset[int]) -> None:
        """A part is written, but for the sources (vertex numbers) ``without``."""

    def failed(self, part: int, sources: list[int] | None, reason: str) -> None:
        """Sources (vertex numbers; None for all) of a part are given up."""

    def retried(self, part: int, why: str) -> None:
        """A batch is given out once more."""

    def draining(self, tasks: int) -> None:
        """The job is interrupted, and so many tasks that run are waited for."""

    def notice(self, message: str) -> None:
        """Something happened to workers or batches that is to be seen at once."""


@dataclass(frozen=True)
class Task:
    """What one worker gets at a time.

    Attributes
    ----------
    number : int
        Of all tasks of a run; a batch that is given out again comes with another task.
    parts : tuple of int
    careful : bool
        One batch, source by source, because something went wrong with it.
    without : frozenset of int
        Sources (vertex numbers) that are given up.
    mark : Path
    strategy : str
        To traverse with; "" for the one that the worker has.
    is_trial : bool
        It tries a strategy, which the tasks that follow may be told.
    halved : bool
        Some batches of a task that was lost.
    """

    number: int
    parts: tuple[int, ...]
    isolate: bool
    without: frozenset[int]
    mark: Path
    strategy: str = ""
    is_trial: bool = False
    halved: bool = False


def batches_of(numbers: np.ndarray, batch_size: int) -> Iterator[tuple[int, list[int]]]:
    """Cut sources, in the order given, into numbered batches."""
    for part, begin in enumerate(range(0, len(numbers), batch_size)):
        yield part, numbers[begin : begin + batch_size].tolist()


def _some(names: list[str]) -> str:
    more = len(names) - _MAX_NAMED
    return ", ".join(names[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def _named(workers: Iterable[str]) -> str:
    names = sorted(workers)
    return f"worker{'s' if len(names) > 1 else ''} {_some(names)}"


class Window:
    """Runs batches on a cluster, a few tasks a worker at a time.

    Parameters
    ----------
    client : distributed.Client
    submit : callable
        ``submit(task)`` starts a ``Task`` and returns its future, whose result is that of ``plugin.run_batches``.
    observer : BatchObserver
    folder : Path
        Where tasks leave their marks.
    deadline : float or None
        Seconds that a batch may take before its worker is taken to hang and is restarted; None goes by the slowest batch.
    patience : float
        Seconds without any worker after which the run ends.
    first : int
        Batches of a task until it is known how long one takes.
    newcomers : callable, optional
        ``newcomers(addresses)`` raises ClusterError where workers that have joined cannot take part.
    choice : StrategyChoice, optional
        Which strategy tasks are told; without it they are told none.
    """

    def __init__(
        self,
        client: Client,
        submit: Callable[[Task], Future[Any]],
        observer: BatchObserver,
        folder: Path,
        deadline: float | None = None,
        patience: float = 60.0,
        first: int = 1,
        newcomers: Callable[[list[str]], None] | None = None,
        choice: StrategyChoice | None = None,
    ):
        self._client, self._submit, self._observer, self._folder = client, submit, observer, folder
        self._deadline, self._patience, self._newcomers = deadline, patience, newcomers
        self._pace, self._choice = TaskSizer(first), choice
        self._token = uuid.uuid4().hex[:8]  # workers of an earlier run may live yet and leave marks of their own
        self._in_flight: dict[Future[Any], Task] = {}
        self._finished: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()
        self._waiting: deque[int] = deque()
        self._retry_alone: deque[int] = deque()
        self._bisected: deque[list[int]] = deque()
        self._without: dict[int, set[int]] = defaultdict(set)
        self._failure_counts: Counter[tuple[int, int | None]] = Counter()
        self._losses: Counter[int] = Counter()
        self._given_out = 0
        self._workers = 1
        self._workers_seen_at = time.monotonic()
        self._looked_at = 0.0
        self._last_progress: dict[str, tuple[Sign | None, float]] = {}
        self._known: set[str] | None = None
        self._paused: set[str] = set()
        self._recalled: list[Path] = []
        self._again: defaultdict[str, list[int]] = defaultdict(list)  # batches by the reason, until it is told

    def run(self, parts: list[int]) -> None:
        """Run all batches.

        Raises
        ------
        NegativeCycleError
            From any batch; no further one is started.
        OutputError
            A worker cannot write to the output folder.
        ClusterError
            No worker, or no scheduler, for too long.
        KeyboardInterrupt
            After the tasks that run have ended, or ``DRAIN_SECONDS``.
        """
        self._waiting.extend(parts)
        try:
            while self._waiting or self._retry_alone or self._bisected or self._in_flight:
                signals.check()
                self._look_after_workers()
                self._fill()
                for future in self._wait():
                    with signals.held():  # what is done gets into the manifest
                        self._on_task_done(future)
        except KeyboardInterrupt:
            self._drain()
            raise
        finally:
            self._report_retries()
            for mark in self._recalled:  # of a task that began as it was taken back
                mark.unlink(missing_ok=True)
            if self._in_flight and self._client.status == "running":
                self._client.cancel(list(self._in_flight), force=True)

    def _fill(self) -> None:
        # What is given out while a strategy is tried may be told the wrong one: then tasks are small, and none is queued.
        is_trying = self._choice is not None and self._choice.is_trying
        window = 1 if is_trying else WINDOW
        while len(self._in_flight) < window * self._workers:
            if self._bisected:
                self._start(self._bisected.popleft(), isolate=False, halved=True)
            elif self._waiting:
                trial = self._choice.take_trial() if self._choice is not None else None
                tried, count = trial or ("", 1 if is_trying else self._pace.batches(len(self._waiting), self._workers))
                parts = [self._waiting.popleft() for _ in range(min(count, len(self._waiting)))]
                self._start(parts, isolate=False, tried=tried)
            elif self._retry_alone:
                self._start([self._retry_alone.popleft()], isolate=True)
            else:
                return

    def _start(self, parts: list[int], isolate: bool, halved: bool = False, tried: str = "") -> None:
        self._given_out += 1
        task = Task(
            number=self._given_out,
            parts=tuple(parts),
            isolate=isolate,
            without=frozenset().union(*(self._without.get(part, ()) for part in parts)),
            mark=self._folder / f".task-{self._given_out:06d}.{self._token}.tmp",
            strategy=tried or ("" if self._choice is None else self._choice.strategy),
            is_trial=bool(tried),
            halved=halved,
        )
        future = self._submit(task)
        self._in_flight[future] = task
        future.add_done_callback(self._finished.put)

    def _wait(self) -> list[Future[Any]]:
        """Futures that have come to an end, at least one if any does within a tick."""
        try:
            found = [self._finished.get(timeout=_TICK)]
            while not self._finished.empty():
                found.append(self._finished.get_nowait())
        except queue.Empty:
            return []
        return [future for future in found if future in self._in_flight]

    def _on_task_done(self, future: Future[Any]) -> None:
        task = self._in_flight.pop(future)
        outcomes = self._fetched(future)
        if outcomes is not None:
            self._losses.clear()
            self._workers_seen_at = time.monotonic()
            self._settle_batches(task, outcomes)
            if self._choice is not None:
                self._choose(task, self._choice)
        elif future.status == "error":
            self._on_task_error(task, future.exception())
        else:  # cancelled by somebody, or its result is gone with its worker
            self._look_for_scheduler()
            self._lost(task, "its result is gone")
        future.release()  # a result that is held would be computed again if its worker died

    def _fetched(self, future: Future[Any]) -> list[BatchOutcome] | None:
        if future.status != "finished":
            return None
        try:
            return future.result(timeout=_FETCH_SECONDS)
        except (OSError, TimeoutError, CancelledError, KilledWorker):
            return None

    def _on_task_error(self, task: Task, error: Exception) -> None:
        if isinstance(error, KilledWorker):
            self._lost(task, "its worker died")
        elif isinstance(error, NegativeCycleError | OutputError | ClusterError):
            raise error
        elif isinstance(error, ImportError):
            raise ClusterError(
                f"a worker lacks a package that this job has ({error}); install the same where the worker runs, start it "
                "anew, and run again with --resume"
            )
        elif isinstance(error, NoValidWorkerError):
            raise self._no_workers()
        elif isinstance(error, CancelledError):
            self._look_for_scheduler()
            self._lost(task, "its result is gone")
        else:
            for part in task.parts:
                self._count_failure(part, None, f"{type(error).__name__}: {error}")
            if task.is_trial and self._choice is not None:
                self._tell(self._choice.end_trial())

    def _settle_batches(self, task: Task, outcomes: list[BatchOutcome]) -> None:
        for outcome in outcomes:
            if self._choice is not None:
                self._choice.note(task.strategy, outcome.get("measured"))
            self._on_batch_done(outcome)

    def _choose(self, task: Task, choice: StrategyChoice) -> None:
        """Go on with another strategy, or have one task try one, where what was measured tells so."""
        if task.is_trial:
            self._tell(choice.end_trial())
        # A worker takes its tasks in order, so the first ones are those that run.
        queued = list(self._in_flight.values())[self._workers :]
        news = choice.decide(len(self._waiting) + sum(len(each.parts) for each in queued))
        if news is not None:
            self._tell(news)
            self._recall()

    def _recall(self) -> None:
        """Take back the tasks that no worker has begun, so that they are told what is known now.

        One that begins before it hears of this does work that is done again, with the same bytes; no task waits for it.
        """
        queued = [
            (future, task)
            for future, task in self._in_flight.items()
            if not (future.done() or task.isolate or task.halved or self._has_begun(task))
        ]
        self._client.cancel([future for future, _ in queued], force=True)
        for future, task in queued:
            del self._in_flight[future]
            task.mark.unlink(missing_ok=True)  # what begins all the same writes no part
            self._recalled.append(task.mark)
        self._waiting.extendleft(part for _, task in reversed(queued) for part in reversed(task.parts))

    def _tell(self, message: str | None) -> None:
        if message is not None:
            self._observer.notice(message)

    def _on_batch_done(self, outcome: BatchOutcome) -> None:
        part, summary = outcome["part"], outcome["summary"]
        for source, reason in outcome["failed"]:
            self._observer.failed(part, [source], reason)
            self._without[part].add(source)
        if summary is not None:
            self._pace.note(summary["seconds"])
            self._observer.done(part, summary, frozenset(self._without.get(part, ())))

    def _lost(self, task: Task, why: str) -> None:
        """Give the batches of a task out again, and blame the source that it was at, if it was at one."""
        self._looked_at = 0.0  # the next look, which tells of a worker that is lost, is now
        place = read_mark(task.mark)
        task.mark.unlink(missing_ok=True)  # from now on a worker that lives yet writes no part for it
        if self._choice is not None and task.is_trial:
            if place is None:
                self._choice.drop_trial()
            else:
                self._tell(self._choice.end_trial(lost=True))
        for part in task.parts:
            self._losses[part] += 1
            if self._losses[part] > MAX_LOSSES:
                raise ClusterError(
                    f"workers have been lost {MAX_LOSSES} times without finishing anything (the last time: {why}); "
                    "see the log of a worker, and run again with --resume"
                )
        if place is None:
            self._waiting.extendleft(reversed(task.parts))
            return
        begun = task.parts[task.parts.index(place.part) : task.parts.index(place.last) + 1]
        self._waiting.extendleft(part for part in reversed(task.parts) if part not in begun)
        why = place.reason or why
        if len(begun) == 1:
            self._count_failure(place.part, place.source, why)
            return
        self._bisected += [list(begun[: len(begun) // 2]), list(begun[len(begun) // 2 :])]
        for part in begun:
            self._try_again(part, why)

    def _count_failure(self, part: int, source: int | None, why: str) -> None:
        """Something went wrong with a batch, at a source or, if None, at none that is known."""
        self._failure_counts[part, source] += 1
        failures = self._failure_counts[part, source]
        if failures < MAX_FAILURES:
            self._try_again(part, why)
            self._retry_alone.append(part)
            return
        times = f"{why} ({failures} times)"
        self._observer.failed(part, None if source is None else [source], times)
        if source is not None:
            self._without[part].add(source)
            self._retry_alone.append(part)

    def _try_again(self, part: int, why: str) -> None:
        self._observer.retried(part, why)
        self._again[why].append(part)

    def _report_retries(self) -> None:
        """One line a reason: where many workers are lost at once there would be one a batch."""
        for why, parts in self._again.items():
            numbers = _some([str(part) for part in sorted(set(parts))])
            self._observer.notice(f"given out again: batch{'es' if len(set(parts)) > 1 else ''} {numbers}: {why}")
        self._again.clear()

    def _look_after_workers(self) -> None:
        now = time.monotonic()
        if now - self._looked_at < _LOOK_EVERY:
            return
        self._looked_at = now
        self._look_for_scheduler()
        try:
            workers = set(self._ask(self._scheduler.ncores))
            running = set(self._ask(self._scheduler.ncores_running)) if workers else set()
            processing = self._ask(self._scheduler.processing) if workers else {}
        except (OSError, TimeoutError):
            self._workers = 0
            if now - self._workers_seen_at > self._patience:
                raise self._no_scheduler() from None
            return
        self._workers = len(running)
        self._report_retries()
        self._report_workers(workers, workers - running)
        if running:
            self._workers_seen_at = now
        elif now - self._workers_seen_at > self._patience:
            if not workers:
                raise self._no_workers()
            if not any(read_mark(task.mark) for task in self._in_flight.values()):  # a paused worker finishes what it began
                raise ClusterError(
                    f"all {len(workers)} workers have been paused for {self._patience:g} seconds, since they use more "
                    f"memory than their limits allow; {_MORE_MEMORY}, and run again with --resume"
                )
        self._look_for_hung_workers(processing, now)

    def _report_workers(self, workers: set[str], not_running: set[str]) -> None:
        """Say which workers are lost, have joined, were paused or run again since the last look."""
        lost, joined = (self._known or workers) - workers, workers - (workers if self._known is None else self._known)
        self._known = workers
        count = f"{len(workers)} worker{'' if len(workers) == 1 else 's'} now"
        if lost:
            self._observer.notice(f"lost: {_named(lost)}; {count}")
        if joined:
            self._observer.notice(f"joined: {_named(joined)}; {count}")
            if self._newcomers is not None:
                self._newcomers(sorted(joined))
        resumed = (self._paused & workers) - not_running
        self._paused &= not_running
        if resumed:
            self._observer.notice(f"no longer paused: {_named(resumed)}")
        if not_running - self._paused:
            self._report_paused(not_running - self._paused)

    def _report_paused(self, not_running: set[str]) -> None:
        """Say what Dask has paused, with the memory that it goes by; the others are on their way up or down."""
        try:
            facts = self._ask(self._scheduler.identity)["workers"]
        except (OSError, TimeoutError):
            return
        paused = {worker: facts[worker] for worker in not_running if facts.get(worker, {}).get("status") == "paused"}
        self._paused |= set(paused)
        if paused:
            worker, first = min(paused.items())
            used, limit = first["metrics"].get("memory", 0), first["memory_limit"] or 0
            self._observer.notice(
                f"paused by Dask: {_named(paused)}: {worker} uses {in_units(used)} of its memory limit of "
                f"{in_units(limit)}, and begins no task until it uses less; {_MORE_MEMORY}"
            )

    def _ask(self, question: Callable[..., Any], **what: Any) -> Any:
        return self._client.sync(question, callback_timeout=_ANSWER_SECONDS, **what)

    @property
    def _scheduler(self) -> Any:
        return self._client.scheduler

    def _look_for_scheduler(self) -> None:
        if self._client.status not in ("running", "connecting"):
            raise self._no_scheduler()

    def _no_scheduler(self) -> ClusterError:
        return ClusterError("the connection to the Dask scheduler is lost; start it anew and run again with --resume")

    def _no_workers(self) -> ClusterError:
        return ClusterError(f"no Dask worker has answered for {self._patience:g} seconds; run again with --resume")

    def _look_for_hung_workers(self, processing: dict[str, list[Any]], now: float) -> None:
        """Restart a worker whose tasks have shown no sign of progress for longer than a batch may take."""
        deadline = self._deadline or max(_MIN_DEADLINE, _TIMES_SLOWEST * self._pace.slowest)
        ours = {future.key: (future, task) for future, task in self._in_flight.items()}
        signs: dict[str, tuple[Sign | None, float]] = {}
        for worker, keys in processing.items():
            mine = sorted(key for key in keys if key in ours)
            places = [read_mark(ours[key][1].mark) for key in mine]
            sign = tuple((key, place and place.part) for key, place in zip(mine, places, strict=True))
            before, since = self._last_progress.get(worker, (None, now))
            signs[worker] = (sign, since if sign == before else now)
            if mine and now - signs[worker][1] > deadline:
                self._restart(worker, [ours[key] for key in mine], deadline)
                del signs[worker]
        self._last_progress = signs

    def _restart(self, worker: str, theirs: list[tuple[Future[Any], Task]], deadline: float) -> None:
        """Take all tasks from a worker and end its process; its nanny starts another."""
        self._client.cancel([future for future, _ in theirs], force=True)
        for future, task in theirs:
            del self._in_flight[future]
            self._lost(task, f"a batch took longer than {deadline:g} seconds at worker {worker}, which is restarted")
        self._ask(
            self._scheduler.restart_workers,
            workers=[worker],
            timeout=_ANSWER_SECONDS / 2,
            wait_for_workers=False,
            on_error="return",
            stimulus_id=f"kepler-{self._token}-deadline",
        )

    def _drain(self) -> None:
        """Let tasks that run come to their end, and keep what they have done."""
        if self._client.status != "running":
            return
        queued = [future for future, task in self._in_flight.items() if not future.done() and not self._has_begun(task)]
        self._client.cancel(queued, force=True)
        dropped = [self._in_flight.pop(future) for future in queued]
        if self._in_flight:
            self._observer.draining(len(self._in_flight))
        now = time.monotonic()
        until, settled = now + DRAIN_SECONDS, now + _DROP_SECONDS
        while (
            (self._in_flight or time.monotonic() < settled) and time.monotonic() < until and self._client.status == "running"
        ):
            for task in dropped:  # one that began before it heard of this must write no part that nobody knows of
                task.mark.unlink(missing_ok=True)
            # Asked one by one: the interrupt may have come between taking one from the queue and settling it.
            ended = [(future, task) for future, task in self._in_flight.items() if future.done()]
            for future, task in ended:
                del self._in_flight[future]
                self._settle_batches(task, self._fetched(future) or [])
            if not ended:
                time.sleep(_DRAIN_TICK)

    def _has_begun(self, task: Task) -> bool:
        """Whether a worker is at it, or is done with it and the answer is on its way: a task takes its mark with it."""
        return read_mark(task.mark) is not None or any((self._folder / part_name(part)).exists() for part in task.parts)
