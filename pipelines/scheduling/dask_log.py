"""The level of Dask's log in the processes of a run. The job itself reports workers that are lost."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

import dask

_DEBUG = "kepler-traverse.debug"  # a setting of Dask, which worker processes inherit
_LOGGERS = ("distributed", "distributed.client")  # Dask gives both a level
# Errors of coroutines and callbacks whose results are not awaited, in a process that only runs a
# worker.
_LOGGERS_OF_WORKER = (*_LOGGERS, "tornado.application", "asyncio")


def level(debug: bool) -> int:
    """Return the lowest level of Dask's messages that is printed."""
    return logging.WARNING if debug else logging.CRITICAL


@contextlib.contextmanager
def silenced(debug: bool) -> Iterator[None]:
    """Within the block, silence Dask's log in this process, and in the workers that start in the
    block; with ``debug`` print warnings.
    """
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    old_levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(level(debug))
        with dask.config.set({_DEBUG: debug}):
            yield
    finally:
        for logger, old_level in zip(loggers, old_levels, strict=True):
            logger.setLevel(old_level)


def silence_worker() -> None:
    """Silence Dask's log to the end of this worker process.

    A cluster's ``silence_logs`` ends with the worker object. A heartbeat that is on its way then
    would print that the connection is closed.
    """
    debug = dask.config.get(_DEBUG, False)
    for name in _LOGGERS_OF_WORKER:
        logging.getLogger(name).setLevel(level(debug))
