"""The Dask worker plugin: it loads the graph and plans the traversal once in each worker process,
and runs its tasks.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import threading
from dataclasses import replace
from pathlib import Path
from typing import cast

from distributed import Worker, WorkerPlugin, get_worker, secede
from distributed.core import Status
from distributed.utils import sync

from ..output.manifest_types import BatchOutcome
from ..scheduling import dask_log
from ..scheduling.gpu_pool import GPU_OF_WORKER
from ..scheduling.heartbeat import Heartbeat
from . import lean_imports, own_gpu
from .traversal_worker import TraversalWorker, Work
from .traverse import Batches

# Part, source and last part, as ``Heartbeat.record`` takes them. The source is None if it is not
# known, and the last part is None if there is only one.
_Place = tuple[int, int | None, int | None]
_ANSWER_SECONDS = 30  # timeout of a request to the scheduler

__all__ = ["TraversalPlugin", "Work", "dask_setup", "run_batches"]


class TraversalPlugin(TraversalWorker, WorkerPlugin):
    """A ``TraversalWorker`` in a worker of Dask; set up again whenever the worker process restarts.

    ``name``: of the plug-in, which is also the topic of its events. Without a shared folder
    (``work.output`` is None), ``setup`` gives it scratch space and has heartbeats sent as events.
    """

    def __init__(self, work: Work, name: str):
        super().__init__(work)
        self.name = name
        self._sends_heartbeats = False  # whether they are events in place of files

    async def setup(self, worker: Worker) -> None:
        """Load the graph in a Dask worker, and plan; Dask calls this when the worker starts.

        Where driver and workers share no folder, the worker writes its parts to scratch space of
        its own, from which they are moved to the object store.
        """
        self.address = worker.address
        self._threads = self.work.threads or worker.state.nthreads
        if self.work.output is None:
            scratch = Path(worker.local_directory) / self.name
            scratch.mkdir(mode=0o700, exist_ok=True)
            self.work = replace(self.work, output=scratch)
            self._sends_heartbeats = True

        # What takes long runs in a thread, so that the event loop keeps answering the scheduler.
        if _is_own_process:
            if _opening is not None:
                await asyncio.to_thread(_opening.join)
            lean_imports.hide_unused_packages(uses_cudf=False)
            if self.work.device == "cuda":
                own_gpu.limit_process()
        await asyncio.to_thread(self.load)

    def teardown(self, worker: Worker) -> None:  # noqa: ARG002
        """Release the graph, and delete the scratch space, if the worker has some; Dask calls this
        when the worker ends. ``worker`` is ignored: what is released is held by this object.
        """
        self.close()
        # Only a worker without a shared folder sends heartbeats, and has scratch space, in which
        # its store prepares files.
        if self._sends_heartbeats:
            shutil.rmtree(self._store.path, ignore_errors=True)

    def make_heartbeat(self, path: Path, isolate: bool) -> Heartbeat:
        """Return the heartbeat of a task: events where no folder is shared, else a file.

        ``path`` is the file, whose name also names the events. ``isolate`` says whether the task
        searches from one source at a time.
        """
        if self._sends_heartbeats:
            return EventHeartbeat(path, self.name, isolate)
        return super().make_heartbeat(path, isolate)

    def give_up(self) -> None:
        """End the process at once, without returning: no later CUDA call in it would succeed."""
        os._exit(1)  # the nanny starts a new process


class EventHeartbeat(Heartbeat):
    """The heartbeat of a task as events of Dask, for a driver that shares no folder with the
    worker.

    The task waits until the scheduler has each event, so the last event outlives the worker. This
    takes a round trip over the network. Therefore single sources are reported only where the task
    searches from one at a time (``isolate``). If a worker dies at any other task, the driver runs
    its batch again with ``isolate`` to find the source.

    ``path``: names the heartbeat. ``topic``: of the events. ``isolate``: whether the task searches
    from one source at a time.
    """

    def __init__(self, path: Path, topic: str, isolate: bool):
        super().__init__(path)
        self._topic = topic
        self._isolate = isolate
        self._worker = get_worker()
        self._task = self._worker.get_current_task()
        # the place that was sent last; part -1 stands for none yet
        self._place: _Place = (-1, None, None)

    def __enter__(self) -> EventHeartbeat:
        """Send nothing: the driver has no file of a task that has not begun."""
        return self

    def __exit__(self, *_: object) -> None:
        """Say that the task has ended."""
        self._send(None)

    def record(self, part: int, source: int | None = None, last: int | None = None) -> None:
        """Send the place of the task, if it is another one than before.

        ``part`` and ``last`` are the numbers of the first and the last part of the group of sources
        that is searched now; ``last`` is None if there is only one. ``source`` is the vertex number
        of a source that is searched alone, else None. It is left out unless the task is isolated.
        """
        place = (part, source if self._isolate else None, last)
        if place != self._place:
            self._place = place
            self._send(place)

    def record_reason(self, reason: str) -> None:
        """Send why this process will end now, with the place that was sent last."""
        self._send(self._place, reason)

    def is_wanted(self) -> bool:
        """Whether the scheduler still waits for this worker's result, by what the worker knows of
        its connection and of the task. A part is written only if so.
        """
        task = self._worker.state.tasks.get(self._task)
        is_connected = self._worker.status in (
            Status.running,
            Status.paused,
            Status.closing_gracefully,
        )
        return is_connected and task is not None and task.state in ("executing", "long-running")

    def _send(self, place: _Place | None, reason: str = "") -> None:
        """Send the place of the task to the driver, or None when the task has ended.

        ``reason`` says why this process ends now; ``""`` if it goes on. The driver writes what it
        gets to a file, by ``heartbeat.write_heartbeat``.
        """
        # An error is suppressed: a worker that has lost its scheduler ends without it.
        with contextlib.suppress(OSError, TimeoutError):
            sync(
                self._worker.loop,
                self._worker.scheduler.log_event,
                topic=self._topic,
                msg=(self._path.name, place, reason),
                callback_timeout=_ANSWER_SECONDS,
            )


# Whether this process is a worker of the cluster that the job has started. A worker of an existing
# cluster also runs tasks of others, so nothing of its process may be changed.
_is_own_process = False
_opening: threading.Thread | None = None  # opens the GPU while the graph is read; None without one


def dask_setup(worker: Worker) -> None:
    """Prepare a worker of the job's own cluster; Dask calls this before the worker starts.

    The worker ignores Ctrl-C, which the terminal sends to all processes of the job, because the
    driver ends its workers. The worker's HTTP server is stopped, because every user of the machine
    could read it.
    """
    global _is_own_process, _opening
    _is_own_process = True
    if GPU_OF_WORKER in os.environ:
        _opening = own_gpu.begin_to_open()
    dask_log.silence_worker()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    worker.services.pop("dashboard").stop()


def run_batches(
    plugin: str, batches: Batches, isolate: bool, heartbeat: Path, strategy: str = ""
) -> list[BatchOutcome]:
    """Run one task in a Dask worker: some batches, one part file each.

    Arguments are small, and the result has 1 to 2 KB per batch, since both pass the scheduler.

    Parameters
    ----------
    plugin : str
        Name of the worker's ``TraversalPlugin``.
    batches : sequence of (int, sequence of int)
        Number of each part, with the vertex numbers of its sources.
    isolate : bool
        Whether to traverse from one source at a time, because a worker has died at one of them.
    heartbeat : Path
        The heartbeat file, from which the driver learns how far the task is.
    strategy : str
        Strategy to traverse with; ``""`` for the one that the worker has.

    Returns
    -------
    list of BatchOutcome
        One per batch. ``summary`` is what ``write_part`` returns, or None if no source has a
        result. To it are added ``worker`` (its address), ``started`` and ``ended`` (seconds since
        the epoch), ``seconds``, ``phases`` (seconds by phase; those of a worker's first part
        include loading and planning) and statistics of the part, which the part file lacks.
        ``failed`` has a pair of source and reason per source that failed. ``measured`` is
        ``(strategy, sources, seconds)``, by which strategies are compared, or None.

    Raises
    ------
    NegativeCycleError
        A source reaches a negative cycle.
    OutputError
        The part cannot be written to the output folder.
    """
    worker = cast(TraversalPlugin, get_worker().plugins[plugin])
    return worker.answer(batches, isolate, heartbeat, secede, strategy)
