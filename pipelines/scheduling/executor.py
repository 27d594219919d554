"""The interface between the window of tasks and what runs them: a Dask cluster, or this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from ..output.manifest_types import BatchOutcome

ErrorKind = Literal["worker died", "cancelled", "no worker", "error"]


@dataclass(frozen=True)
class Task:
    """One or several batches that are submitted to a worker together.

    Attributes
    ----------
    number : int
        Counts all tasks of a run; a batch that is submitted again gets a new task.
    parts : tuple of int
    isolate : bool
        Run one batch source by source, because it has failed before.
    without : frozenset of int
        Sources (vertex numbers) that are given up.
    mark : Path
        The heartbeat file.
    strategy : str
        The strategy to traverse with; "" for the one that the worker has.
    is_trial : bool
        The task tries a strategy, which later tasks may then use.
    halved : bool
        The batches are half of a task that was lost.
    """

    number: int
    parts: tuple[int, ...]
    isolate: bool
    without: frozenset[int]
    mark: Path
    strategy: str = ""
    is_trial: bool = False
    halved: bool = False


class BatchFuture(Protocol):
    """A task that was submitted.

    Attributes
    ----------
    key : str
        Names the task in ``WorkerStates.processing``.
    status : str
        "pending", "finished", "error", "cancelled" or "lost".
    """

    key: Any
    status: str

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
    """The workers at one moment.

    Attributes
    ----------
    workers : set of str
    running : set of str
        Those that take tasks; the others start, close or are paused.
    processing : dict of str to list of str
        Keys of the tasks that each worker has.
    """

    workers: set[str]
    running: set[str]
    processing: dict[str, list[Any]] = field(default_factory=dict)


class BatchExecutor(Protocol):
    """Runs tasks; ``scheduler.Window`` gives it a few at a time and decides what is retried."""

    def submit(self, task: Task, /) -> Any:
        """Start a task and return its ``BatchFuture``."""

    def outcomes_of(self, future: Any) -> list[BatchOutcome] | None:
        """Return the outcomes of a task that has ended; None if it has none, or if they are lost."""

    def kind_of(self, error: BaseException) -> ErrorKind:
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

    def paused(self, workers: Iterable[str]) -> dict[str, Any]:
        """Return the facts of those of the workers that Dask has paused for their memory."""

    def restart(self, worker: str, why: str) -> None:
        """End the process of a worker that hangs; a new one takes its place.

        Raises
        ------
        ProcessUnusableError
            The worker is this process.
        """
