"""Tasks in this process: where the work is little, no worker process has to import, to load the
graph and to plan.

One thread runs the tasks, one after another, while the main thread gives them out and records what
becomes of them. What a process of its own would survive is the business of
``pipelines.cli.supervisor``: if this process dies, or cannot go on, the remaining batches are run
by worker processes.
"""

from __future__ import annotations

import contextlib
import functools
import queue
import signal
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, InvalidStateError
from typing import Any

from ..output.manifest_types import BatchOutcome
from .errors import ProcessUnusableError
from .executor import BatchExecutor, Task, WorkerStates

NAME = "this process"  # of the only worker
# seconds beyond the deadline of a batch, in which the main thread itself would have noticed
_ALARM_AFTER = 30.0


class LocalFuture(Future[list[BatchOutcome]]):
    """A ``BatchFuture`` of a task in this process."""

    def __init__(self, task: Task):
        super().__init__()
        self.task = task
        self.key = task.number

    @property
    def status(self) -> str:
        if not self.done():
            return "pending"
        if self.cancelled():
            return "cancelled"
        if self.exception() is not None:
            return "error"
        return "finished"

    def release(self) -> None:
        """Do nothing: the outcomes go with the future."""


Run = Callable[[Task, Callable[[], object]], list[BatchOutcome]]


class InProcessExecutor(BatchExecutor):
    """A ``BatchExecutor`` without worker processes.

    ``run(task, make_way)`` runs a task and returns its outcomes. It calls ``make_way()`` where only
    its last parts remain to be written, so that the next task begins. ``is_watched``: whether
    another process takes over if this one dies; then a batch that hangs ends this process.
    ``is_unusable(error)``: whether an error makes every later task fail, too.
    """

    def __init__(
        self,
        run: Run,
        is_watched: bool = False,
        is_unusable: Callable[[BaseException], bool] = lambda _: False,
    ):
        self._run = run
        self._is_watched = is_watched
        self._is_unusable = is_unusable
        self.submit = self._submit
        self._queue: queue.SimpleQueue[LocalFuture | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._pending: dict[int, LocalFuture] = {}
        self._start_thread()

    def __enter__(self) -> InProcessExecutor:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_watched:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        self._queue.put(None)

    def _submit(self, task: Task) -> LocalFuture:
        future = LocalFuture(task)
        with self._lock:
            self._pending[future.key] = future
        self._queue.put(future)
        return future

    def get_outcomes(self, future: LocalFuture) -> list[BatchOutcome] | None:
        if future.status == "finished":
            return future.result()
        return None

    def cancel(self, futures: Iterable[LocalFuture]) -> None:
        for future in futures:
            with self._lock:
                self._pending.pop(future.key, None)
            future.cancel()

    def states(self, deadline: float) -> WorkerStates:
        if self._is_watched:
            # A kernel may hold the interpreter. The signal's default action ends the process also
            # then.
            signal.setitimer(signal.ITIMER_REAL, deadline + _ALARM_AFTER)
        with self._lock:
            keys: list[Any] = list(self._pending)
        return WorkerStates(workers={NAME}, running={NAME}, processing={NAME: keys})

    def restart(self, worker: str, why: str) -> None:  # noqa: ARG002
        raise ProcessUnusableError(f"{why.partition(', which')[0]}; run again with --resume")

    def _start_thread(self) -> None:
        # A daemon, so that a batch that hangs does not keep the job from ending.
        threading.Thread(target=self._serve, name="kepler-batches", daemon=True).start()

    def _serve(self) -> None:
        made_way = False

        def make_way() -> None:
            nonlocal made_way
            if not made_way:
                made_way = True
                self._start_thread()

        while not made_way:
            future = self._queue.get()
            if future is None:
                return
            if not future.cancelled():
                self._run_one(future, make_way)

    def _run_one(self, future: LocalFuture, make_way: Callable[[], None]) -> None:
        try:
            end = functools.partial(future.set_result, self._run(future.task, make_way))
        except BaseException as error:
            end = functools.partial(future.set_exception, error)
            if self._is_unusable(error):
                message = (
                    "this process cannot compute any longer "
                    f"({type(error).__name__}: {error}); run again with --resume"
                )
                end = functools.partial(future.set_exception, ProcessUnusableError(message))
        with self._lock:
            self._pending.pop(future.key, None)
        # it was cancelled, and its batches were given out again
        with contextlib.suppress(InvalidStateError):
            end()
