"""Strategies from outside the library, and the published systems, which come the same way.

A plug-in is a module with ``STRATEGIES``: a mapping of ``"bfs"`` and ``"sssp"`` to tuples of ``Strategy`` and
``MultiSourceStrategy``. ``strategy=`` takes their names; ``auto`` chooses among the library's own. Plug-ins are

- those of ``BUILT_IN``,
- installed packages with an entry point of the group ``kepler_traverse.plugins`` that names such a module,
- modules whose names stand in the environment variable ``KEPLER_PLUGINS``, separated by commas.

Worker processes that a job starts take over its environment. On a cluster of its own, each host needs the plug-ins, too.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from importlib import import_module, metadata
from types import ModuleType
from typing import TypeVar

from .errors import InputError
from .strategy import BaseStrategy

BUILT_IN = ("kepler_traverse.published",)
GROUP = "kepler_traverse.plugins"
VARIABLE = "KEPLER_PLUGINS"
StrategyT = TypeVar("StrategyT", bound=BaseStrategy)


def modules() -> tuple[ModuleType, ...]:
    """Import the plug-ins.

    Raises
    ------
    InputError
        One of them cannot be imported.
    """
    return _modules(os.environ.get(VARIABLE, ""))


@functools.cache
def _modules(named: str) -> tuple[ModuleType, ...]:
    installed = sorted(each.value for each in metadata.entry_points(group=GROUP))
    found = []
    for name in dict.fromkeys((*BUILT_IN, *installed, *filter(None, map(str.strip, named.split(","))))):
        try:
            found.append(import_module(name))
        except ImportError as error:
            raise InputError(f"the plug-in {name!r} cannot be imported: {error}; see {VARIABLE}") from error
    return tuple(found)


def with_plugins(own: Sequence[StrategyT], algorithm: str) -> tuple[StrategyT, ...]:
    """Return strategies of the library and those of the same class that plug-ins have for the algorithm."""
    kind = type(own[0])
    added = [each for module in modules() for each in getattr(module, "STRATEGIES", {}).get(algorithm, ())]
    return (*own, *(each for each in added if isinstance(each, kind)))
