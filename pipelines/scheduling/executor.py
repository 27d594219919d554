"""The interface between the window of tasks and what runs them: this process, processes
of this host, or a Dask cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from ..output.manifest_types import BatchOutcome, PartSummary

ErrorKind = Literal["worker died", "worker left", "cancelled", "no worker", "error"]


@dataclass(frozen=True)
class Task:
    """One or several batches that are submitted to a worker together."""

    number: int  # counts all tasks of a run; a batch that is submitted again gets a new task
    parts: tuple[int, ...]  # numbers of the batches, which are those of their parts
    isolate: bool  # run one batch source by source, because it has failed before
    without: frozenset[int]  # sources (vertex numbers) that are given up
    heartbeat: Path  # the heartbeat file
    strategy: str = ""  # the strategy to traverse with; "" for the one that the worker has
    is_trial: bool = False  # the task tries a strategy, which later tasks may then use
    halved: bool = False  # the batches are half of a task that was lost


class BatchFuture(Protocol):
    """A task that was submitted."""

    key: Any  # names the task in ``WorkerStates.processing``
    # "pending", "finished", "error", "cancelled" or "lost" (its worker and its result are gone).
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
    """The workers of a run at one moment."""

    workers: set[str]  # addresses or names of all workers that are there
    running: set[str]  # those that take tasks; the others start, close or are paused
    # By worker the keys (``BatchFuture.key``) of the tasks that it has, which may be of other runs.
    processing: dict[str, list[Any]] = field(default_factory=dict)


class BatchObserver(Protocol):
    """Its methods are called with the outcome of each batch."""

    def done(self, part: int, summary: PartSummary, without: frozenset[int]) -> None:
        """A part is written, but for the sources (vertex numbers) ``without``."""

    def failed(self, part: int, sources: list[int] | None, reason: str) -> None:
        """Sources of a part (vertex numbers; None for all) are given up."""

    def retried(self, part: int, why: str) -> None:
        """A batch is submitted again."""

    def draining(self, tasks: int) -> None:
        """The job is interrupted and waits for the given number of running tasks."""

    def notice(self, message: str) -> None:
        """Show a message about workers or batches at once."""


class BatchExecutor:
    """Runs tasks; ``scheduler.Window`` gives it a few at a time and decides what is retried.

    ``submit(task)`` starts a ``Task`` and returns its ``BatchFuture``. ``admit(workers)`` raises
    ClusterError unless workers that have joined can take part. The methods of this base class suit
    workers that are there for the whole run; those of other workers override them.
    """

    submit: Callable[[Task], Any]
    admit: Callable[[list[str]], object] = staticmethod(lambda _: None)

    def get_outcomes(self, future: Any) -> list[BatchOutcome] | None:
        """Return the outcomes of a task that has ended, one per batch; None if it has failed or was
        cancelled, or if they are lost.

        Here ``future`` is a ``LocalFuture``, whose outcomes are in this process and cannot be lost.
        """
        if future.status == "finished":
            return future.outcomes()
        return None

    def classify_error(self, error: BaseException) -> ErrorKind:
        """Say what an error of a task means: "error" if its batches have failed, and another kind
        if its worker is the reason, so that the batches are only submitted again.

        Here a worker is never the reason: a cancelled task is "cancelled", any other error "error".
        """
        if isinstance(error, CancelledError):
            return "cancelled"
        return "error"

    def cancel(self, futures: Iterable[Any]) -> None:
        """Cancel tasks. One that has begun may go on; nothing waits for it."""
        raise NotImplementedError

    def is_connected(self) -> bool:
        """Whether tasks and results can be exchanged now: here always, as there is no network."""
        return True

    def is_gone(self) -> bool:
        """Whether the connection is lost for good: here never, as there is no network."""
        return False

    def states(self, deadline: float) -> WorkerStates:
        """Return the present workers; raises OSError or TimeoutError if they cannot be asked.

        ``deadline``: seconds that a batch may take. A process that runs batches itself counts as
        hung if this method is not called again for longer than that.
        """
        raise NotImplementedError

    def paused(self, workers: Iterable[str]) -> dict[str, Any]:  # noqa: ARG002
        """Return what Dask says of each worker among ``workers`` that it has paused for its memory,
        by worker. Workers without Dask are never paused: here ``workers`` is ignored, and the dict
        is empty.
        """
        return {}

    def restart(self, worker: str, why: str) -> None:
        """End the process of a worker that hangs; a new one takes its place.

        ``worker``: its name or address. ``why``: the reason, for errors. Raises
        ProcessUnusableError: the worker is this process.
        """
        raise NotImplementedError
