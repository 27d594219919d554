"""Start the workers of an own cluster while the graph is read, where the settings name them.

Reading and planning take about as long as worker processes take to import and to open their GPUs.
A thread holds the cluster, so that the driver imports nothing of Dask meanwhile.
"""

from __future__ import annotations

import multiprocessing
import weakref
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING

from kepler_traverse import _uninterrupted
from kepler_traverse._uninterrupted import Answer, Promise

from ..cli.options import Settings

if TYPE_CHECKING:
    from distributed import Client

_NAME = "Dask Worker process"  # how the names of Dask's worker processes begin
_POLL = 0.1  # seconds


def can_start_ahead(settings: Settings) -> bool:
    """Whether it is known before the graph that a run has so many workers of its own."""
    return (
        settings.scheduler is None
        and settings.workers not in ("auto", 1)
        and not (settings.plan or settings.resume)
    )


class ClusterAhead:
    """An own cluster that starts on a thread by ``start``, and ends with ``close``."""

    def __init__(self, settings: Settings):
        self._settings = settings
        self._client: Answer[Client] = Answer()
        self._end: SimpleQueue[None] = SimpleQueue()  # has an item once the cluster is to end
        # The thread knows the queue alone: the cluster ends, too, if an interrupt comes before
        # ``close`` has begun.
        weakref.finalize(self, self._end.put, None)
        self._held = Promise(partial(_hold, settings, self._client, self._end))
        # Workers of other clusters of this process, as those of a notebook, are not killed.
        self._others = {process.pid for process in multiprocessing.active_children()}

    def start(self) -> None:
        """Return at once; ``client`` waits."""
        _uninterrupted.start(self._held.keep, "kepler-cluster")

    def client(self) -> Client:
        """Wait for the cluster, and return a client of it.

        Raises ClusterError: its workers do not start.
        """
        return self._client.take()

    def close(self) -> None:
        """End the cluster; one that is still starting is not waited for."""
        self._end.put(None)
        has_ended = self._held.revoke()
        while not has_ended:
            if not self._client.is_given:
                self._kill_workers()
            has_ended = self._held.wait(_POLL)

    def _kill_workers(self) -> None:
        for process in multiprocessing.active_children():
            if process.name.startswith(_NAME) and process.pid not in self._others:
                process.kill()


def _hold(settings: Settings, client: Answer[Client], end: SimpleQueue[None]) -> None:
    """Start a cluster, give a client of it, and end it when ``end`` has an item."""
    try:
        from .cluster import cluster_for

        assert settings.workers != "auto"
        with cluster_for(
            settings, settings.device, settings.workers, is_wanted=end.empty
        ) as opened:
            client.give(opened)
            end.get()
    except BaseException as error:
        client.give(error=error)
