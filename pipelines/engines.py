"""The engines of a run: this library, or cuGraph on all workers together."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager

from .cli.options import MG, Settings
from .cli.supervisor import Supervision
from .run.engine import CallerInputs, Engine, KeplerEngine
from .scheduling.worker_processes import WorkerProcesses, started_ahead


def open_engine(
    settings: Settings,
    supervision: Supervision,
    inputs: CallerInputs,
    processes: WorkerProcesses | None = None,
) -> AbstractContextManager[Engine]:
    """Return a context that yields the engine named in the settings and stops what the engine has
    started.

    ``supervision``: whether another process takes over if this one dies. ``inputs``: what a caller
    in Python gives beyond the settings. ``processes``: worker processes that are starting, and that
    the caller ends; None to start those that the settings ask for.
    """
    if settings.engine == MG:
        from .multi_gpu.engine import mg_engine  # its packages are those of RAPIDS

        return mg_engine(settings)
    return _kepler_engine(settings, supervision, inputs, processes)


@contextlib.contextmanager
def _kepler_engine(
    settings: Settings,
    supervision: Supervision,
    inputs: CallerInputs,
    processes: WorkerProcesses | None,
) -> Iterator[KeplerEngine]:
    """Yield the engine of this library, with worker processes that are starting already.

    If ``processes`` is None, those are started here, if the settings ask for some, and end with the
    block.
    """
    if processes is not None:
        yield KeplerEngine(settings, supervision, inputs, processes)
        return
    with started_ahead(settings) as processes:
        yield KeplerEngine(settings, supervision, inputs, processes)
