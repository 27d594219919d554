"""Strategies and result kinds from outside the library, and the published systems, which come the same way.

A plug-in is a module with ``STRATEGIES``, a mapping of ``"bfs"`` and ``"sssp"`` to tuples of ``Strategy`` and
``MultiSourceStrategy``, or with ``KINDS``, a tuple of ``ResultKind``, or with both. ``strategy=`` and ``result=`` take their
names; ``auto`` chooses among the library's own strategies. Plug-ins are

- those of ``BUILT_IN``,
- installed packages with an entry point of the group ``kepler_traverse.plugins`` that names such a module,
- modules whose names stand in the environment variable ``KEPLER_PLUGINS``, separated by commas.

Worker processes that a job starts take over its environment. On a cluster of its own, each host needs the plug-ins, too.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import TypeVar

from .errors import InputError
from .kinds.result_kinds import OWN_MODULES, RESULT_KINDS
from .search.strategy import BaseStrategy

BUILT_IN = ("kepler_traverse.published", *OWN_MODULES)
GROUP = "kepler_traverse.plugins"
VARIABLE = "KEPLER_PLUGINS"
StrategyT = TypeVar("StrategyT", bound=BaseStrategy)


def modules() -> tuple[ModuleType, ...]:
    """Import the plug-ins and add their kinds to ``RESULT_KINDS``.

    InputError if one of them cannot be imported, or has a kind of a name that is taken.
    """
    return _modules(os.environ.get(VARIABLE, ""))


@functools.cache
def _modules(named: str) -> tuple[ModuleType, ...]:
    from importlib import metadata  # takes longer to import than most of the library

    installed = sorted(each.value for each in metadata.entry_points(group=GROUP))
    imported = []
    for name in dict.fromkeys((*BUILT_IN, *installed, *filter(None, map(str.strip, named.split(","))))):
        try:
            imported.append(import_module(name))
        except ImportError as error:
            raise InputError(f"the plug-in {name!r} cannot be imported: {error}; see {VARIABLE}") from error
        for kind in getattr(imported[-1], "KINDS", ()):
            if RESULT_KINDS.setdefault(kind.name, kind) is not kind:
                raise InputError(f"the plug-in {name!r} has a result kind {kind.name!r}, and there is one; rename it")
    return tuple(imported)


def find_kind(name: object) -> None:
    """Import the plug-ins if no known result kind has this name."""
    if isinstance(name, str) and name not in RESULT_KINDS:
        modules()


def with_plugins(own: Sequence[StrategyT], algorithm: str) -> tuple[StrategyT, ...]:
    """Return strategies of the library and those of the same class that plug-ins have for the algorithm."""
    kind = type(own[0])
    added = [each for module in modules() for each in getattr(module, "STRATEGIES", {}).get(algorithm, ())]
    return (*own, *(each for each in added if isinstance(each, kind)))
