"""The interface between the window of tasks and what runs them: a Dask cluster, or this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from ..output.manifest_types import BatchOutcome

ErrorKind = Literal["worker died", "worker left", "cancelled", "no worker", "error"]


@dataclass(frozen=True)
class Task:
    """One or several batches that are submitted to a worker together."""

    number: int  # counts all tasks of a run; a batch that is submitted again gets a new task
    parts: tuple[int, ...]
    isolate: bool  # run one batch source by source, because it has failed before
    without: frozenset[int]  # sources (vertex numbers) that are given up
    mark: Path  # the heartbeat file
    strategy: str = ""  # the strategy to traverse with; "" for the one that the worker has
    is_trial: bool = False  # the task tries a strategy, which later tasks may then use
    halved: bool = False  # the batches are half of a task that was lost


class BatchFuture(Protocol):
    """A task that was submitted."""

    key: Any  # names the task in ``WorkerStates.processing``
    status: str  # "pending", "finished", "error", "cancelled" or "lost"

    def add_done_callback(self, call: Callable[[Any], object], /) -> object:
        """Call ``call(future)`` once the task has ended, in any thread."""

    def done(self) -> bool:
        """Whether the task has ended, in whatever way."""

    def exception(self) -> Any:
        """Return the error of a task whose status is "error"."""

    def release(self) -> object:
        """Forget the task; its result is not needed any more."""


@dataclass(frozen=True, kw_only=True)
class WorkerStates:
    """The workers at one moment."""

    workers: set[str]
    running: set[str]  # those that take tasks; the others start, close or are paused
    processing: dict[str, list[Any]] = field(default_factory=dict)  # keys of the tasks that each worker has


class BatchExecutor(Protocol):
    """Runs tasks; ``scheduler.Window`` gives it a few at a time and decides what is retried."""

    def submit(self, task: Task, /) -> Any:
        """Start a task and return its ``BatchFuture``."""

    def get_outcomes(self, future: Any) -> list[BatchOutcome] | None:
        """Return the outcomes of a task that has ended; None if it has none, or if they are lost."""

    def classify_error(self, error: BaseException) -> ErrorKind:
        """Say whether an error of a task is about its worker and not about its batches."""

    def cancel(self, futures: Iterable[Any]) -> None:
        """Cancel tasks. One that has begun may go on; nothing waits for it."""

    def is_connected(self) -> bool:
        """Whether tasks and results can be exchanged now."""

    def is_gone(self) -> bool:
        """Whether the connection is lost for good."""

    def states(self, deadline: float) -> WorkerStates:
        """Return the present workers; raises OSError or TimeoutError if they cannot be asked.

        ``deadline`` is the number of seconds in which this process must answer again, or else hangs.
        """

    def admit(self, workers: list[str], /) -> object:
        """Raise ClusterError unless workers that have joined can take part."""

    def paused(self, workers: Iterable[str]) -> dict[str, Any]:
        """Return the facts of those of the workers that Dask has paused for their memory."""

    def restart(self, worker: str, why: str) -> None:
        """End the process of a worker that hangs; a new one takes its place.

        Raises ProcessUnusableError: the worker is this process.
        """
