"""Tasks on the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError
from typing import Any

from distributed import Client, Future, KilledWorker
from distributed.scheduler import NoValidWorkerError

from ..output.manifest_types import BatchOutcome
from .executor import BatchExecutor, ErrorKind, Task, WorkerStates

_ANSWER_SECONDS = 30  # timeout of a request to the scheduler
# timeout for the result of a finished task; it takes longer only if its worker has died
_FETCH_SECONDS = 10


class DaskExecutor(BatchExecutor):
    """A ``BatchExecutor`` that submits tasks to a scheduler.

    ``submit(task)`` starts a ``Task`` and returns its future, whose result is that of
    ``plugin.run_batches``.
    """

    def __init__(self, client: Client, submit: Callable[[Task], Future[Any]]):
        self._client = client
        self.submit = submit

    def get_outcomes(self, future: Future[Any]) -> list[BatchOutcome] | None:
        """Fetch the outcomes of a task that has ended, one per batch; None if it has not finished
        without an error, or if its outcomes are lost with their worker.
        """
        if future.status != "finished":
            return None
        try:
            return future.result(timeout=_FETCH_SECONDS)
        except (OSError, TimeoutError, CancelledError, KilledWorker):
            return None

    def classify_error(self, error: BaseException) -> ErrorKind:
        """Say what an error of a task means: its worker died, or left after an announcement, there
        is no worker, the task was cancelled, or its own code has failed ("error").
        """
        if isinstance(error, KilledWorker):
            if self._has_closed(error.last_worker.address):
                return "worker left"
            return "worker died"
        if isinstance(error, NoValidWorkerError):
            return "no worker"
        return super().classify_error(error)

    def _has_closed(self, worker: str) -> bool:
        """Whether a worker, named by its address, announced that it closes.

        It does so after a signal to its nanny (the process that watches it). Then its task is not
        the cause of its end.
        """
        try:
            events = self._ask(self._scheduler.events, topic=worker)
        except (OSError, TimeoutError):
            return False
        # The last event counts: another worker may have got the address since.
        has_closed = False
        for _, event in events:
            if isinstance(event, dict) and event.get("action") in ("add-worker", "closing-worker"):
                has_closed = event["action"] == "closing-worker"
        return has_closed

    def cancel(self, futures: Iterable[Future[Any]]) -> None:
        """Cancel tasks, given by their futures, also if other clients wait for them (``force``)."""
        self._client.cancel(list(futures), force=True)

    def is_connected(self) -> bool:
        """Whether the scheduler is connected now."""
        return self._client.status == "running"

    def is_gone(self) -> bool:
        """Whether the client has given up connecting to the scheduler again."""
        return self._client.status not in ("running", "connecting")

    def states(self, deadline: float) -> WorkerStates:  # noqa: ARG002
        """Ask the scheduler for its workers, and for the tasks that each has.

        In the result ``running`` are those of ``workers`` that take tasks; the others start, close
        or are paused. ``deadline`` is ignored: it is for a process that runs batches itself, and
        has to be ended when it hangs. Raises OSError or TimeoutError if the scheduler does not
        answer.
        """
        workers = set(self._ask(self._scheduler.ncores))
        if not workers:  # without them the other questions are needless
            return WorkerStates(workers=set(), running=set())
        running = set(self._ask(self._scheduler.ncores_running))
        return WorkerStates(
            workers=workers, running=running, processing=self._ask(self._scheduler.processing)
        )

    def paused(self, workers: Iterable[str]) -> dict[str, Any]:
        """Return the scheduler's facts about each paused worker among ``workers`` (addresses), by
        its address. A worker is paused while it has too little memory. Raises OSError or
        TimeoutError if the scheduler does not answer.
        """
        facts = self._ask(self._scheduler.identity)["workers"]
        return {
            worker: facts[worker]
            for worker in workers
            if facts.get(worker, {}).get("status") == "paused"
        }

    def restart(self, worker: str, why: str) -> None:  # noqa: ARG002
        """Have the nanny of a worker (the process that watches it) end it and start it again.

        ``worker``: its address. ``why`` is ignored: the process is ended from outside, so that no
        error tells the reason. The scheduler answers without waiting for the new process. Raises
        OSError or TimeoutError if it does not answer.
        """
        # The scheduler gives up the nanny before ``_ask`` gives up the scheduler. ``stimulus_id``
        # is the reason in Dask's log.
        self._ask(
            self._scheduler.restart_workers,
            workers=[worker],
            timeout=_ANSWER_SECONDS / 2,
            wait_for_workers=False,
            on_error="return",
            stimulus_id="kepler-batch-deadline",
        )

    def _ask(self, question: Callable[..., Any], **arguments: Any) -> Any:
        """Call a remote function of the scheduler, and wait for its answer.

        Raises OSError or TimeoutError: no answer came in ``_ANSWER_SECONDS``.
        """
        return self._client.sync(question, callback_timeout=_ANSWER_SECONDS, **arguments)

    @property
    def _scheduler(self) -> Any:
        """The scheduler as a remote object; anew each time, as the client may connect again."""
        return self._client.scheduler
