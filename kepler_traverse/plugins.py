"""Strategies and result kinds from outside the library, and the published systems, which come the
same way.

A plug-in is a module with ``STRATEGIES``, ``KINDS`` or both: see ``extend``. ``strategy=`` and
``result=`` take their names; ``auto`` chooses among the library's own strategies. Plug-ins are

- those of ``BUILT_IN``,
- installed packages with an entry point of the group ``kepler_traverse.plugins`` that names such a
  module,
- modules whose names stand in the environment variable ``KEPLER_PLUGINS``, separated by commas.
  They are also looked for in the current folder, which is no place of modules for a program that
  was installed.

A plug-in that cannot be used is left out, and the others are there. An error for a name that is not
known says so, and the job refuses to run. Worker processes that a job starts take over its
environment. On a cluster of its own, each host needs the plug-ins, too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from importlib import import_module
from operator import attrgetter
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

from . import arguments
from .errors import InputError, StrategyError, one_line
from .kinds.result_kinds import OWN_MODULES, RESULT_KINDS, KindOptions, ResultKind
from .search.algorithms import ALGORITHMS
from .search.strategy import BaseStrategy

BUILT_IN = ("kepler_traverse.published", *OWN_MODULES)
GROUP = "kepler_traverse.plugins"
VARIABLE = "KEPLER_PLUGINS"
OF_JOB_ALONE = ("extremes",)  # kinds of the job that the library has functions for
StrategyT = TypeVar("StrategyT", bound=BaseStrategy)


class Failed(NamedTuple):
    """A plug-in that cannot be used."""

    name: str  # of its module
    problem: str  # what is wrong with it: a predicate, such as "cannot be imported: ..."
    origin: str  # where its name comes from, such as "see KEPLER_PLUGINS"

    def __str__(self) -> str:
        """Return a sentence for an error, without the full stop."""
        return f"the plug-in {arguments.describe(self.name)} {self.problem}; {self.origin}"


class Plugins(NamedTuple):
    """The plug-ins of this process."""

    modules: tuple[ModuleType, ...]  # those that were imported and can be used
    failed: tuple[Failed, ...]  # those that cannot be used


def load() -> Plugins:
    """Import the plug-ins, add their result kinds to ``RESULT_KINDS``, and return them. It raises
    no error: plug-ins that cannot be used are listed in the result.

    Plug-ins are imported once per value of the environment variable.
    """
    names = os.environ.get(VARIABLE, "")
    if names in _LOADED:
        return _LOADED[names]
    plugins = _load(names)
    # If one has failed, the next call tries again, since it may be corrected meanwhile.
    if not plugins.failed:
        _LOADED[names] = plugins
    return plugins


# By the value of the environment variable: the plug-ins, if none of them has failed.
_LOADED: dict[str, Plugins] = {}


def _load(named: str) -> Plugins:
    """Import all plug-ins, add their result kinds to ``RESULT_KINDS``, and return them; one that
    cannot be used is listed as failed.

    ``named`` is the value of the environment variable, names of modules with commas between.
    """
    imported: list[ModuleType] = []
    failed: list[Failed] = []
    for name, origin in _find_names(named).items():
        try:
            module = _import_plugin(name, is_in_variable=origin == _NAMED)
            kinds = _read_kinds(module)
            _check_strategies(module, imported)
        except _UnfitError as error:
            failed.append(Failed(name, str(error), origin))
            continue
        # Only now, when nothing of the plug-in can be refused any more.
        imported.append(module)
        RESULT_KINDS.update({kind.name: kind for kind in kinds})
    return Plugins(tuple(imported), tuple(failed))


_NAMED = f"see {VARIABLE}"  # ``Failed.origin`` of a plug-in that the environment variable names


def _find_names(named: str) -> dict[str, str]:
    """Return the names of the modules of all plug-ins, each with a text that says where the name
    comes from. ``named`` is the value of the environment variable, names with commas between.

    A name that several places have counts once, with its first origin.
    """
    from importlib import metadata  # takes longer to import than most of the library

    names = dict.fromkeys(BUILT_IN, "it is part of kepler-traverse")
    for entry in sorted(metadata.entry_points(group=GROUP), key=attrgetter("value")):
        package = "an installed package" if entry.dist is None else f"the package {entry.dist.name}"
        names.setdefault(entry.value, f"{package} names it by an entry point of {GROUP}")
    for name in filter(None, map(str.strip, named.split(","))):
        names.setdefault(name, _NAMED)
    return names


class _UnfitError(Exception):
    """A plug-in cannot be used. The text is a predicate, which follows the name of the plug-in."""


def _import_plugin(name: str, is_in_variable: bool) -> ModuleType:
    """Import the module of a plug-in; _UnfitError for whatever it raises.

    ``is_in_variable``: whether the environment variable names it. Such modules are also looked for
    in the current folder.
    """
    try:
        # The current folder is the last place, so that it hides no other module.
        if is_in_variable and not _is_found(name):
            sys.path.append(os.getcwd())
        return import_module(name)
    except ImportError as error:
        why = one_line(error, 200)
    except (Exception, SystemExit) as error:  # a plug-in is code of others, and may raise anything
        why = f"{type(error).__name__}: {one_line(error, 200)}"
    raise _UnfitError(f"cannot be imported: {why}")


def _is_found(name: str) -> bool:
    """Return whether Python finds the package of the module ``name`` in the places where it looks
    for modules now. The package is not imported.
    """
    from importlib import util

    return util.find_spec(name.partition(".")[0]) is not None


def _read_kinds(module: ModuleType) -> tuple[ResultKind, ...]:
    """Return the result kinds of the plug-in ``module``, none if it has strategies alone.
    _UnfitError if it has neither kinds nor strategies, if the name of a kind is taken, or if its
    options are unfit.
    """
    if not hasattr(module, "KINDS") and not hasattr(module, "STRATEGIES"):
        raise _UnfitError("has neither KINDS nor STRATEGIES")
    kinds = _check_sequence(ResultKind, "KINDS", getattr(module, "KINDS", ()))
    names = [kind.name for kind in kinds]
    for kind in kinds:
        # After an earlier import of the same plug-in, its kinds are known already.
        known = RESULT_KINDS.get(kind.name)
        is_of_another = known is not None and known is not kind
        if is_of_another or kind.name in OF_JOB_ALONE or names.count(kind.name) > 1:
            raise _UnfitError(
                f"has a result kind {arguments.describe(kind.name)}, and there is one; rename it"
            )
        _check_options(kind)
    return kinds


def _check_options(kind: ResultKind) -> None:
    """Raise _UnfitError unless the options of a result kind can be keyword arguments and flags of
    the job: a dataclass with the base ``KindOptions`` whose fields have defaults and help texts.
    """
    whose = f"has a result kind {arguments.describe(kind.name)} whose options_class"
    if not isinstance(kind.options_class, type) or not issubclass(kind.options_class, KindOptions):
        raise _UnfitError(f"{whose} is no dataclass with the base KindOptions")
    try:
        kind.options_class()
    except Exception as error:
        why = f"{type(error).__name__}: {one_line(error, 200)}"
        raise _UnfitError(f"{whose} needs a default for each field: {why}") from None
    for field in fields(kind.options_class):
        if "column" not in field.metadata and not field.metadata.get("help"):
            raise _UnfitError(f"{whose} has a field {field.name!r} without help; make it by option")


def _check_strategies(module: ModuleType, others: Iterable[ModuleType]) -> None:
    """Raise _UnfitError unless ``STRATEGIES`` of a plug-in, if it has any, is a mapping of the
    algorithms to strategies, and no name of a strategy is taken.

    ``module`` is the plug-in, and ``others`` are the plug-ins that were imported before.
    """
    strategies = getattr(module, "STRATEGIES", {})
    if not isinstance(strategies, Mapping):
        raise _UnfitError(f"has STRATEGIES that are no mapping, but {_describe(strategies)}")
    for algorithm, entries in strategies.items():
        if algorithm not in ALGORITHMS:
            raise _UnfitError(
                f"has STRATEGIES of {_describe(algorithm)}; "
                f"the algorithms are {' and '.join(map(repr, ALGORITHMS))}"
            )
        # Compare each with those of other plug-ins, and with those of this one before it.
        known = [strategy for other in others for strategy in _get_strategies(other, algorithm)]
        for strategy in _check_sequence(BaseStrategy, f"STRATEGIES[{algorithm!r}]", entries):
            if any(_is_same_choice(strategy, other) for other in known):
                name = arguments.describe(strategy.name)
                raise _UnfitError(f"has a strategy {name}, and there is one; rename it")
            known.append(strategy)


def _is_same_choice(strategy: BaseStrategy, other: BaseStrategy) -> bool:
    """Return whether ``strategy`` and ``other`` share a name or an alias, are of one device, and
    both for single sources or both for many, so that the name would mean both.
    """
    names = {strategy.name, *strategy.aliases}
    return (
        type(strategy) is type(other)
        and strategy.device == other.device
        and not names.isdisjoint({other.name, *other.aliases})
    )


ItemT = TypeVar("ItemT")


def _check_sequence(kind: type[ItemT], name: str, items: Any) -> tuple[ItemT, ...]:
    """Return ``items``, a tuple or list that a plug-in has under ``name``, as a tuple. _UnfitError
    if it is something else, or if an item is not of type ``kind``.
    """
    if not isinstance(items, tuple | list) or not all(isinstance(item, kind) for item in items):
        raise _UnfitError(
            f"has {name} that are no tuple of {kind.__name__}, but {_describe(items)}"
        )
    return tuple(items)


def _describe(value: object) -> str:
    """Return text that shows any value in an error, short and on one line."""
    return one_line(repr(value), 100)


def refuse_failed() -> None:
    """Raise InputError, about the first plug-in that cannot be used, if there is one."""
    for failed in load().failed:
        raise InputError(str(failed))


def find_kind(name: object) -> None:
    """Import the plug-ins if ``name`` is that of no known result kind, since one of them may have
    it.

    Raises InputError if no plug-in has it, and one that may have it cannot be used. If all can be
    used, the caller refuses the name.
    """
    if not isinstance(name, str) or name in RESULT_KINDS:
        return
    failed = load().failed
    if not failed:
        return
    try:
        arguments.choice("result", name, tuple(RESULT_KINDS))
    except InputError as error:
        raise InputError(f"{error}; {failed[0]}") from None


def find_strategy(name: str, device: str, strategies: Sequence[BaseStrategy]) -> None:
    """Raise StrategyError if none of ``strategies`` on a device has this name, and a plug-in that
    may have it cannot be used. If all plug-ins can be used, the caller refuses the name.
    """
    failed = load().failed
    on_device = [strategy for strategy in strategies if strategy.device == device]
    if failed and not any(strategy.is_called(name) for strategy in on_device):
        known = ", ".join(["auto", *dict.fromkeys(strategy.name for strategy in on_device)])
        raise StrategyError(
            f"no strategy {arguments.describe(name)} on device {device!r}, "
            f"which has {known}; {failed[0]}"
        )


def with_plugins(own: Sequence[StrategyT], algorithm: str) -> tuple[StrategyT, ...]:
    """Return the strategies ``own`` of the library, and after them those that plug-ins have for an
    algorithm, "bfs" or "sssp".

    Only strategies of the class of the first of ``own`` are added: for single sources or for many.
    """
    kind = type(own[0])
    added: list[StrategyT] = []
    for module in load().modules:
        strategies = _get_strategies(module, algorithm)
        added += [strategy for strategy in strategies if isinstance(strategy, kind)]
    return (*own, *added)


def _get_strategies(module: ModuleType, algorithm: str) -> Sequence[BaseStrategy]:
    """Return the strategies that the plug-in ``module`` has for an algorithm, "bfs" or "sssp"; none
    if it has no ``STRATEGIES``.
    """
    return getattr(module, "STRATEGIES", {}).get(algorithm, ())
