"""Worker processes that start in a thread, while this process answers the first batches."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Generic, TypeVar

Started = TypeVar("Started")


class StartingWorkers(Generic[Started]):
    """Enters a context in a thread of its own; as a context, leaves it in the end.

    Parameters
    ----------
    start : callable
        ``start()`` returns the context that starts the workers and ends them.
    """

    def __init__(self, start: Callable[[], AbstractContextManager[Started]]):
        self._start_workers, self._stack = start, ExitStack()
        self._started: Started | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._start, name="kepler-starting", daemon=True)

    def __enter__(self) -> StartingWorkers[Started]:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        # Processes that are being started cannot be ended cleanly before they are up.
        self._thread.join()
        self._stack.close()

    def are_ready(self) -> bool:
        """Whether the workers have started, or will never."""
        return not self._thread.is_alive()

    def result(self) -> Started:
        """Wait for the workers; return what the context yields, or raise why they do not start."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._started is not None  # no context here yields None
        return self._started

    def _start(self) -> None:
        try:
            self._started = self._stack.enter_context(self._start_workers())
        except BaseException as error:
            self._error = error
