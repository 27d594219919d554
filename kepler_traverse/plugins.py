"""Strategies and result kinds from outside the library, and the published systems, which come the
same way.

A plug-in is a module with ``STRATEGIES``, a mapping of ``"bfs"`` and ``"sssp"`` to tuples of
``Strategy`` and ``MultiSourceStrategy``, or with ``KINDS``, a tuple of ``ResultKind``, or with
both. ``strategy=`` and ``result=`` take their names; ``auto`` chooses among the library's own
strategies. Plug-ins are

- those of ``BUILT_IN``,
- installed packages with an entry point of the group ``kepler_traverse.plugins`` that names such a
  module,
- modules whose names stand in the environment variable ``KEPLER_PLUGINS``, separated by commas.
  They are also looked for in the current folder, which is no place of modules for a program that
  was installed.

Worker processes that a job starts take over its environment. On a cluster of its own, each host
needs the plug-ins, too.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import TypeVar

from .errors import InputError, one_line
from .kinds.result_kinds import OWN_MODULES, RESULT_KINDS, ResultKind
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
    wanted = list(filter(None, map(str.strip, named.split(","))))
    imported = []
    for name in dict.fromkeys((*BUILT_IN, *installed, *wanted)):
        imported.append(_imported(name, is_named=name in wanted))
        for kind in _kinds_in(imported[-1]):
            if RESULT_KINDS.setdefault(kind.name, kind) is not kind:
                raise InputError(
                    f"the plug-in {name!r} has a result kind {kind.name!r}, "
                    "and there is one; rename it"
                )
    return tuple(imported)


def _imported(name: str, is_named: bool) -> ModuleType:
    """Import a plug-in; InputError if it cannot be imported, whatever it raises."""
    try:
        if is_named and not _is_found(name):
            sys.path.append(os.getcwd())
        return import_module(name)
    except (Exception, SystemExit) as error:
        if not isinstance(error, ImportError):
            why = f"{type(error).__name__}: {one_line(error)}"
        else:
            why = one_line(error)
        if is_named:
            where = f"see {VARIABLE}"
        else:
            where = f"an installed package names it by an entry point of {GROUP}"
        raise InputError(
            f"the plug-in {name[:100]!r} cannot be imported: {why}; {where}"
        ) from error


def _is_found(name: str) -> bool:
    """Whether the package of a module is where Python looks for modules, without the current
    folder.
    """
    from importlib import util

    return util.find_spec(name.partition(".")[0]) is not None


def _kinds_in(module: ModuleType) -> tuple[ResultKind, ...]:
    kinds = getattr(module, "KINDS", ())
    if not isinstance(kinds, tuple | list) or not all(
        isinstance(kind, ResultKind) for kind in kinds
    ):
        raise InputError(
            f"the plug-in {module.__name__!r}: KINDS is no tuple of "
            f"ResultKind, but {one_line(repr(kinds), 100)}"
        )
    return tuple(kinds)


def find_kind(name: object) -> None:
    """Import the plug-ins if no known result kind has this name."""
    if isinstance(name, str) and name not in RESULT_KINDS:
        modules()


def with_plugins(own: Sequence[StrategyT], algorithm: str) -> tuple[StrategyT, ...]:
    """Return strategies of the library and those of the same class that plug-ins have for the
    algorithm.
    """
    kind = type(own[0])
    added = [
        each
        for module in modules()
        for each in getattr(module, "STRATEGIES", {}).get(algorithm, ())
    ]
    return (*own, *(each for each in added if isinstance(each, kind)))
