"""The Dask worker plugin: it loads the graph and plans the traversal once in each worker process, and runs its tasks."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from pathlib import Path
from typing import cast

from distributed import Worker, WorkerPlugin, get_worker, secede

from ..output.manifest_types import BatchOutcome
from . import lean_imports
from .traversal_worker import TraversalWorker, Work
from .traverse import Batches

__all__ = ["TraversalPlugin", "Work", "dask_setup", "run_batches"]


class TraversalPlugin(TraversalWorker, WorkerPlugin):
    """A ``TraversalWorker`` in a worker of Dask; set up again whenever the worker process restarts."""

    def __init__(self, work: Work, name: str):
        super().__init__(work)
        self.name = name

    async def setup(self, worker: Worker) -> None:
        self._lock, self.address = threading.Lock(), worker.address
        self._threads = self.work.threads or worker.state.nthreads
        if _is_own_process and self.work.device == "cpu":
            lean_imports.settle(uses_cudf=False)
        # In a thread, so that the event loop keeps answering the scheduler.
        await asyncio.to_thread(self._load)

    def teardown(self, worker: Worker) -> None:  # noqa: ARG002
        self.close()

    def give_up(self) -> None:
        os._exit(1)  # the nanny starts a new process


_is_own_process = False  # of the job's own cluster; a worker of an existing one has work of others, too


def dask_setup(worker: Worker) -> None:
    """Preload for workers of the job's own cluster.

    They ignore Ctrl-C, which reaches the whole group: the driver ends them. They have no HTTP server: every user of the
    machine could read it.
    """
    global _is_own_process
    _is_own_process = True
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    worker.services.pop("dashboard").stop()


def run_batches(plugin: str, batches: Batches, isolate: bool, mark: Path, strategy: str = "") -> list[BatchOutcome]:
    """Run one task: some batches, one part file each. Arguments are small; the result has 1 to 2 KB per batch.

    Parameters
    ----------
    plugin : str
        Name of the worker's ``TraversalPlugin``.
    isolate : bool
        Traverse from one source at a time, because a worker has died at one of them.
    mark : Path
        The heartbeat file, from which the driver learns how far the task is.
    strategy : str
        The strategy to traverse with; "" for the one that the worker has.

    Returns
    -------
    list of dict
        For each batch ``part``; ``failed``, a list of (source, reason); ``measured``, ``(strategy, sources, seconds)`` of
        groups, by which strategies are compared, or None; and ``summary``, None if no source has a result.
        The summary has what ``write_part`` returns. For the manifest and the monitoring it also has ``worker`` (its
        address), ``started`` and ``ended`` (seconds since the epoch), ``seconds``, ``phases`` and the part's statistics.
        ``phases`` are seconds by phase; a worker's first part includes the time of loading and planning. These values are
        not written to the part file.

    Raises
    ------
    NegativeCycleError
    OutputError
        The part cannot be written to the output folder.
    """
    return cast(TraversalPlugin, get_worker().plugins[plugin]).answer(batches, isolate, mark, secede, strategy)
