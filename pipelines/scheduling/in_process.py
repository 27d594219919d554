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
import signal
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError
from queue import SimpleQueue

from kepler_traverse import _uninterrupted
from kepler_traverse._uninterrupted import Answer

from ..output.manifest_types import BatchOutcome
from .errors import ProcessUnusableError
from .executor import BatchExecutor, Task, WorkerStates

NAME = "this process"  # of the only worker
# seconds beyond the deadline of a batch, in which the main thread itself would have noticed
_ALARM_AFTER = 30.0
_END_SECONDS = 10.0  # in which a task that runs ends, unless it hangs


class LocalFuture:
    """A ``BatchFuture`` of a task in this process.

    It ends once: by outcomes, an error or a cancellation, whichever comes first. Later ends have no
    effect. ``key`` is the number of the task.
    """

    def __init__(self, task: Task):
        self.task = task
        self.key = task.number
        self._end: Answer[list[BatchOutcome]] = Answer()
        # what is called once the task has ended; each is taken out before it is called
        self._calls: deque[Callable[[LocalFuture], object]] = deque()

    @property
    def status(self) -> str:
        """One of "pending", "finished", "error" and "cancelled"."""
        if not self._end.is_given:
            return "pending"
        error = self._end.error
        if isinstance(error, CancelledError):
            return "cancelled"
        return "finished" if error is None else "error"

    def done(self) -> bool:
        """Whether the task has ended, in whatever way."""
        return self._end.is_given

    def exception(self) -> BaseException | None:
        """Return the error of the task, a CancelledError if it was cancelled; None if it has
        finished without an error, or has not ended.
        """
        return self._end.error

    def outcomes(self) -> list[BatchOutcome]:
        """Wait for the outcomes; raise the error of the task."""
        return self._end.take()

    def add_done_callback(self, call: Callable[[LocalFuture], object], /) -> None:
        """Call ``call(self)`` once the task has ended: in the thread that ends it, or here and at
        once if it has ended before.
        """
        # Added before the check: a task that ends in between finds the function, or this does.
        self._calls.append(call)
        if self.done():
            self._call()

    def end(
        self, outcomes: list[BatchOutcome] | None = None, error: BaseException | None = None
    ) -> None:
        """End the task by its outcomes or an error, unless it has ended."""
        self._end.give(outcomes, error)
        self._call()

    def _call(self) -> None:
        """Call the functions that wait for the end of the task, each once, also if two threads do
        so.
        """
        with contextlib.suppress(IndexError):  # none is left
            while True:
                self._calls.popleft()(self)

    def release(self) -> None:
        """Do nothing: the outcomes go with the future."""


# Runs a task and returns its outcomes. Its second argument is called so that the next task begins.
Run = Callable[[Task, Callable[[], object]], list[BatchOutcome]]


class InProcessExecutor(BatchExecutor):
    """A ``BatchExecutor`` without worker processes.

    ``run(task, begin_next)`` runs a task and returns its outcomes. It calls ``begin_next()`` where only
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
        # tasks that no thread has begun; None ends the thread that takes it
        self._queue: SimpleQueue[LocalFuture | None] = SimpleQueue()
        # Tasks that have not ended, by their numbers. Threads share both without a lock: each use
        # is one step under the GIL.
        self._pending: dict[int, LocalFuture] = {}
        self._running: dict[int, Answer[None]] = {}  # which is given at the end of the task
        # The thread ends when this object is gone, also if an interrupt comes before ``__exit__``
        # has begun.
        weakref.finalize(self, self._queue.put, None)

    def __enter__(self) -> InProcessExecutor:
        """Start the thread that runs tasks."""
        self._start_thread()
        return self

    def __exit__(self, *_: object) -> None:
        """Cancel the tasks that have not ended, and wait for the running ones, which may hang."""
        if self._is_watched:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        self.cancel(list(self._pending.values()))
        self._queue.put(None)
        for has_ended in list(self._running.values()):  # of tasks that may write part files
            has_ended.wait(_END_SECONDS)

    def submit(self, task: Task) -> LocalFuture:
        """Queue a task, and return its future."""
        future = LocalFuture(task)
        self._pending[future.key] = future
        self._queue.put(future)
        return future

    def cancel(self, futures: Iterable[LocalFuture]) -> None:
        """End the futures of tasks; a task that runs goes on, and its outcomes are ignored."""
        for future in futures:
            self._pending.pop(future.key, None)
            future.end(error=CancelledError())

    def states(self, deadline: float) -> WorkerStates:
        """Return this process as the one worker; set the alarm that ends it if it hangs.

        ``deadline``: seconds that a batch may take. Each call sets the alarm anew, so it rings only
        if the main thread has not come here for longer than that.
        """
        if self._is_watched:
            # A kernel may hold the interpreter. The signal's default action ends the process also
            # then.
            signal.setitimer(signal.ITIMER_REAL, deadline + _ALARM_AFTER)
        return WorkerStates(workers={NAME}, running={NAME}, processing={NAME: list(self._pending)})

    def restart(self, worker: str, why: str) -> None:  # noqa: ARG002
        """Raise ProcessUnusableError: this process cannot end itself and go on.

        ``worker`` is ignored, since this process is the only worker. ``why`` is the reason, of
        which the error leaves out what follows ", which" (that the worker is restarted).
        """
        raise ProcessUnusableError(f"{why.partition(', which')[0]}; run again with --resume")

    def _start_thread(self) -> None:
        """Start a thread that runs tasks; a daemon, so that a batch that hangs does not keep the
        job from ending.
        """
        serve = functools.partial(_serve, self._queue, weakref.ref(self))
        _uninterrupted.start(serve, "kepler-batches")

    def run_one(self, future: LocalFuture) -> bool:
        """Run a task and end its future; return whether another thread takes the next task, so that
        this one ends.
        """
        next_has_begun = False

        def begin_next() -> None:
            """Start a thread for the next task, once."""
            nonlocal next_has_begun
            if not next_has_begun:
                next_has_begun = True
                self._start_thread()

        outcomes: list[BatchOutcome] | None = None
        failure: BaseException | None = None
        has_ended: Answer[None] = Answer()
        self._running[future.key] = has_ended
        # All exceptions are caught: one that interrupts a task is its failure, too, and the main
        # thread decides what becomes of it.
        try:
            outcomes = self._run(future.task, begin_next)
        except BaseException as error:
            failure = error
            if self._is_unusable(error):
                failure = ProcessUnusableError(
                    "this process cannot compute any longer "
                    f"({type(error).__name__}: {error}); run again with --resume"
                )
        self._running.pop(future.key, None)
        has_ended.give()
        self._pending.pop(future.key, None)
        future.end(outcomes, failure)  # no effect if its batches were given out again
        return next_has_begun


def _serve(
    tasks: SimpleQueue[LocalFuture | None], executor: weakref.ref[InProcessExecutor]
) -> None:
    """Run tasks of a queue, one after another; this is what a thread of the executor does.

    It ends when a task has started another thread for the next one, or at None in the queue.
    ``executor`` is a weak reference, so that a thread that waits for a task does not keep the
    executor alive: when that is gone, its finalizer puts None.
    """
    next_has_begun = False
    while not next_has_begun:
        future = tasks.get()
        owner = executor()
        if future is None or owner is None:
            return
        if not future.done():
            next_has_begun = owner.run_one(future)
        del future, owner  # or they would live while this thread waits
