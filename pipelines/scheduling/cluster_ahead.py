"""Start the workers of an own cluster while the graph is read, where the settings name them.

Reading and planning take about as long as worker processes take to import and to open their GPUs.
A thread holds the cluster, so that the driver imports nothing of Dask meanwhile.
"""

from __future__ import annotations

import multiprocessing
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING

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
    """An own cluster that starts on a thread, and ends with ``close``."""

    def __init__(self, settings: Settings):
        self._settings = settings
        self._client: Future[Client] = Future()
        self._ends = threading.Event()
        # Workers of other clusters of this process, as those of a notebook, are not killed.
        self._others = {process.pid for process in multiprocessing.active_children()}
        self._thread = threading.Thread(target=self._hold, name="kepler-cluster", daemon=True)
        self._thread.start()

    def client(self) -> Client:
        """Wait for the cluster, and return a client of it.

        Raises ClusterError: its workers do not start.
        """
        return self._client.result()

    def close(self) -> None:
        """End the cluster; one that is still starting is not waited for."""
        self._ends.set()
        while self._thread.is_alive():
            if not self._client.done():
                self._kill_workers()
            self._thread.join(_POLL)

    def _hold(self) -> None:
        try:
            from .cluster import cluster_for

            assert self._settings.workers != "auto"
            with cluster_for(
                self._settings,
                self._settings.device,
                self._settings.workers,
                is_wanted=lambda: not self._ends.is_set(),
            ) as client:
                self._client.set_result(client)
                self._ends.wait()
        except BaseException as error:
            if not self._client.done():
                self._client.set_exception(error)

    def _kill_workers(self) -> None:
        for process in multiprocessing.active_children():
            if process.name.startswith(_NAME) and process.pid not in self._others:
                process.kill()
