"""The engines of a run: this library, or cuGraph on all workers together."""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager

from .cli.options import MG, Settings
from .cli.supervisor import Supervision
from .run.engine import Engine, Given, KeplerEngine


def open_engine(
    settings: Settings, supervision: Supervision, given: Given
) -> AbstractContextManager[Engine]:
    """Return a context that yields the engine named in the settings and stops what the engine has
    started.
    """
    if settings.engine == MG:
        from .multi_gpu.engine import mg_engine  # its packages are those of RAPIDS

        return mg_engine(settings)
    return contextlib.nullcontext(KeplerEngine(settings, supervision, given))
