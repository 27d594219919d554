"""Sources to batches, and the sliding window that keeps every worker busy without flooding the scheduler."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError

import numpy as np
from distributed import Client, KilledWorker, wait
from distributed.scheduler import NoValidWorkerError

from kepler_traverse.errors import KeplerError, NegativeCycleError

from . import interrupts
from .cluster import NO_WORKERS_SECONDS

WINDOW = 3  # batches a worker that are on their way: one runs, the next ones are there already
SHARED_DEATHS = 2  # deaths of its worker after which a batch runs alone, since batches queued beside a bad one die with it
ALONE_DEATHS = 2  # deaths while alone after which it is given up
_TICK = 1.0  # seconds


class ClusterError(KeplerError):
    """The workers or the scheduler are gone."""


def batches_of(numbers: np.ndarray, batch_size: int) -> Iterator[tuple[int, list[int]]]:
    """Cut sources, in the order given, into numbered batches."""
    for part, begin in enumerate(range(0, len(numbers), batch_size)):
        yield part, numbers[begin : begin + batch_size].tolist()


class Window:
    """Runs batches on a cluster, a few a worker at a time.

    Parameters
    ----------
    client : distributed.Client
    submit : callable
        ``submit(part, attempt)`` starts a batch and returns its future.
    on_done : callable
        ``on_done(part, summary)``.
    on_failed : callable
        ``on_failed(part, error)`` for a batch that raised or that keeps killing its workers; the rest goes on.
    on_retried : callable
        ``on_retried(part, why)`` for a batch that is tried again.
    """

    def __init__(self, client: Client, submit: Callable, on_done: Callable, on_failed: Callable, on_retried: Callable):
        self._client, self._submit, self._on_done, self._on_failed = client, submit, on_done, on_failed
        self._on_retried = on_retried
        self._flying: dict = {}
        self._deaths: Counter[int] = Counter()
        self._suspects: deque[int] = deque()
        self._workers_seen_at = time.monotonic()

    def run(self, parts: list[int]) -> None:
        """Run all batches.

        Raises
        ------
        NegativeCycleError
            From any batch; no further one is started.
        ClusterError
            No worker, or no scheduler, for a minute.
        """
        waiting = deque(parts)
        room = WINDOW * max(1, len(self._client.nthreads()))
        try:
            while waiting or self._flying or self._suspects:
                interrupts.check()
                while waiting and len(self._flying) < room:
                    self._start(waiting.popleft())
                if not self._flying and self._suspects:
                    self._start(self._suspects.popleft())
                for future in self._finished():
                    self._settle(future, self._flying.pop(future), waiting)
        finally:
            if self._flying and self._client.status == "running":
                self._client.cancel(list(self._flying))

    def _start(self, part: int) -> None:
        self._flying[self._submit(part, self._deaths[part])] = part

    def _finished(self) -> list:
        try:
            with self._client.as_current():
                done = wait(list(self._flying), timeout=_TICK, return_when="FIRST_COMPLETED").done
        except TimeoutError:
            self._look_for_workers()
            return []
        except CancelledError:
            raise ClusterError("the connection to the Dask scheduler is lost; run again with --resume") from None
        self._workers_seen_at = time.monotonic()
        return list(done)

    def _look_for_workers(self) -> None:
        try:
            alive = self._client.status == "running" and bool(self._client.nthreads())
        except (OSError, TimeoutError):
            alive = False
        now = time.monotonic()
        if alive:
            self._workers_seen_at = now
        elif now - self._workers_seen_at > NO_WORKERS_SECONDS:
            raise ClusterError(f"no Dask worker has answered for {NO_WORKERS_SECONDS} seconds; run again with --resume")

    def _settle(self, future, part: int, waiting: deque[int]) -> None:
        error = future.exception() if future.status == "error" else None
        if future.status == "finished":
            self._on_done(part, future.result())
        elif isinstance(error, KilledWorker):
            self._count_death(part, error, waiting)
        elif isinstance(error, NegativeCycleError):
            raise error
        elif isinstance(error, NoValidWorkerError):
            raise ClusterError(f"no Dask worker has answered for {NO_WORKERS_SECONDS} seconds; run again with --resume")
        elif error is None:
            raise ClusterError(f"batch {part} was {future.status} by the Dask scheduler; run again with --resume")
        else:
            self._on_failed(part, error)
        future.release()

    def _count_death(self, part: int, error: Exception, waiting: deque[int]) -> None:
        self._deaths[part] += 1
        if self._deaths[part] >= SHARED_DEATHS + ALONE_DEATHS:
            self._on_failed(part, RuntimeError(f"its worker died {self._deaths[part]} times ({error})"))
            return
        self._on_retried(part, "its worker died")
        if self._deaths[part] >= SHARED_DEATHS:
            self._suspects.append(part)
        else:
            waiting.append(part)
