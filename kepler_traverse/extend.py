"""What a plug-in may use: the types of result kinds and of strategies.

A plug-in is a module with ``KINDS``, a tuple of ``ResultKind``, with ``STRATEGIES``, a mapping of
``"bfs"`` and ``"sssp"`` to tuples of ``Strategy`` and ``MultiSourceStrategy``, or with both. An
installed package names it by an entry point of the group ``kepler_traverse.plugins``; without an
installation the environment variable ``KEPLER_PLUGINS`` does.

``examples/farthest_plugin.py`` and ``examples/dijkstra_plugin.py`` are plug-ins. They import
``kepler_traverse`` and this module alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol, TypeVar

from ._arrays import to_host
from .kinds.constraints import Constraint
from .kinds.records import Asked, SourceRecords, Values
from .kinds.result_kinds import KindOptions, OptionsT, ResultKind
from .protocols import KindName
from .search.frames import Column
from .search.query import Query
from .search.results import Traversals
from .search.strategy import (
    MultiSourceOutcome,
    MultiSourceSearch,
    MultiSourceStrategy,
    Outcome,
    Search,
    Shape,
    Strategy,
)

__all__ = [
    "Asked",
    "Column",
    "Constraint",
    "KindName",
    "KindOptions",
    "MakeColumns",
    "MakeRecords",
    "MultiSourceOutcome",
    "MultiSourceSearch",
    "MultiSourceStrategy",
    "Outcome",
    "PluginWithKinds",
    "PluginWithStrategies",
    "Query",
    "ResultKind",
    "Search",
    "Shape",
    "SourceRecords",
    "Strategy",
    "Traversals",
    "Values",
    "option",
    "to_host",
]

ValueT = TypeVar("ValueT")


class MakeRecords(Protocol[OptionsT]):
    """The type of ``ResultKind.make_records``."""

    def __call__(self, asked: Asked[OptionsT], traversals: Traversals, /) -> SourceRecords:
        """Return the records of one group of searches.

        Parameters
        ----------
        asked : Asked
            The question: graph, limit, targets and the options of the kind.
        traversals : Traversals
            A search per source of the group. Their arrays are valid until this function returns.

        Returns
        -------
        SourceRecords
            Arrays of shape (n_records,) by name, one source after the other, and the int64 number
            of records of each source.
        """
        ...


class MakeColumns(Protocol[OptionsT]):
    """The type of ``ResultKind.make_columns``."""

    def __call__(self, asked: Asked[OptionsT], values: Values, /) -> dict[str, Column]:
        """Return the columns of records, beside ``source``.

        Parameters
        ----------
        asked : Asked
            The question.
        values : mapping of str to array
            The arrays of ``SourceRecords`` for any records, in any order.

        Returns
        -------
        dict of str to Column
            A column per name in ``ResultKind.columns``, in their order, without ``source``.
        """
        ...


class PluginWithKinds(Protocol):
    """A plug-in with result kinds: a module with this name in it."""

    KINDS: Sequence[ResultKind]  # in a tuple or list


class PluginWithStrategies(Protocol):
    """A plug-in with strategies: a module with this name in it."""

    # by algorithm, "bfs" or "sssp": the strategies, in a tuple or list
    STRATEGIES: Mapping[str, Sequence[Strategy | MultiSourceStrategy]]


def option(
    default: ValueT,
    *,
    help: str,
    least: float | None = None,
    example: object = None,
    in_library: bool = True,
    in_job: bool = True,
) -> ValueT:
    """Return a field of a dataclass of options with the base ``KindOptions``.

    The field is a keyword argument of ``bfs_many`` and ``sssp_many``, a flag of the job and a key
    of its settings file. The type of the field is that of the flag: int, float, bool, str, a
    Literal of texts, or a list of str or of numbers; each with None, if None is the default.

    Parameters
    ----------
    default
        The value of an option that is not given.
    help : str
        What the option does, for ``--help``.
    least : float, optional
        The smallest value that the job takes. ``__post_init__`` of the dataclass checks values for
        the library.
    example : optional
        A value that the settings file of the documentation shows if the default is None.
    in_library : bool
        Whether it is a keyword argument.
    in_job : bool
        Whether it is a flag. An option of another type than those above must not be one.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, kw_only=True)
    ... class FarthestOptions(KindOptions):
    ...     n_farthest: int = option(3, help="number of vertices per source", least=1)
    >>> FarthestOptions().n_farthest
    3
    """
    # The metadata of the field. A missing key has a default: no smallest value, no example, an
    # option of both library and job.
    facts: dict[str, Any] = {"help": help}
    if least is not None:
        facts["least"] = least
    if example is not None:
        facts["example"] = example
    if not in_library:
        facts["library"] = False
    if not in_job:
        facts["job"] = False
    return field(default=default, metadata=facts)
