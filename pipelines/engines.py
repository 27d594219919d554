"""The engines of a run: this library, or cuGraph on all workers together."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager

from .cli.options import MG, Settings
from .cli.supervisor import Supervision
from .run.engine import Engine, Given, KeplerEngine
from .scheduling.cluster_ahead import ClusterAhead, can_start_ahead


def open_engine(
    settings: Settings, supervision: Supervision, given: Given
) -> AbstractContextManager[Engine]:
    """Return a context that yields the engine named in the settings and stops what the engine has
    started.
    """
    if settings.engine == MG:
        from .multi_gpu.engine import mg_engine  # its packages are those of RAPIDS

        return mg_engine(settings)
    return _kepler_engine(settings, supervision, given)


@contextlib.contextmanager
def _kepler_engine(
    settings: Settings, supervision: Supervision, given: Given
) -> Iterator[KeplerEngine]:
    """Yield the engine; workers that the settings name start already."""
    if not can_start_ahead(settings):
        yield KeplerEngine(settings, supervision, given)
        return
    with contextlib.closing(ClusterAhead(settings)) as ahead:
        ahead.start()
        yield KeplerEngine(settings, supervision, given, ahead)
