"""The search of a plan for many sources: one strategy, planned for groups of one size.

A search is a chain of calls. ``SerializedSearch`` admits one thread at a time. ``WideningSearch``
repeats the search in a wider type where sums could round. In a wider type a search may take the
first sources of a group only. Where each source has targets of its own, a strategy gets them if it
takes them. The plan cuts the results at ``Query.limits``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..runtime.concurrency import SerializedSearch
from ..search.exact import Sums, WideningSearch
from ..search.plan import strategy_that_ran, traversal_fields
from ..search.query import Query, SourcesWithTargets, TargetLists
from ..search.results import Traversals
from ..search.strategy import (
    MultiSourceOutcome,
    MultiSourceSearch,
    MultiSourceStrategy,
    strategy_for_sums,
)
from .candidates import Fitting
from .workload import Workload, query_for


@dataclass(frozen=True)
class GroupSearch:
    """What the search of a group is planned from.

    Attributes
    ----------
    work : Workload
        Graph, algorithm, query and number of sources. The query has the knobs of the strategy.
    strategies : sequence of MultiSourceStrategy
        All strategies of the algorithm: the one for sums in int64 is among them.
    chosen : Fitting
        The strategy that searches, and the sizes of its groups.
    """

    work: Workload
    strategies: Sequence[MultiSourceStrategy]
    chosen: Fitting

    def plan(self) -> SerializedSearch:
        """Allocate and compile the search, which any thread may call."""
        work = self.work

        def plan_widening() -> WideningSearch:
            """Return a search that is planned for the first type of sums, and later for wider ones
            if they are needed.
            """
            sums = Sums(work.graph, work.algorithm, work.query.limit)
            return WideningSearch(sums, self._plan_for_sums)

        return SerializedSearch(plan_widening)

    def _plan_for_sums(self, sums: Sums) -> MultiSourceSearch:
        """Allocate and compile the search for one type of sums: float32, float64 or int64.

        In a wider type than planned, memory may hold fewer sources. The search then takes the first
        sources of a group only.
        """
        planned = self.chosen.group  # sources of a group in the first type
        group = planned
        if not self.work.counts_hops:
            group = self.chosen.group_in[sums.dtype]

        # Sums in int64 have a strategy of their own, in place of the chosen one for floats. The
        # weights of ``sums.graph`` have the type of the sums.
        strategy = strategy_for_sums(
            self.chosen.strategy, self.strategies, sums, self.work.algorithm
        )
        # A limit is rounded as float sums are, so that a sum within the limit stays within it.
        query = self.work.query
        rounded = query
        if strategy.sums == "float":
            rounded = sums.round_limits(query)

        # ``query_for`` asks for distances of all vertices where the strategy finds no paths, or
        # takes no targets per source.
        search: Any = strategy.plan(sums.graph, query_for(strategy, rounded), group)
        if query.has_target_lists:
            search = _take_target_lists(search, strategy, query)
        if group < planned:
            search = _limit_to_first(search, group)
        return search


def _limit_to_first(search: Any, group: int) -> MultiSourceSearch:
    """Return a search that searches from the first ``group`` of its sources, and leaves out all
    others.

    ``search`` is a ``MultiSourceSearch``, or one that takes ``SourcesWithTargets``.
    """

    def search_first(argument: Any) -> MultiSourceOutcome:
        """Search from the first ``group`` sources of ``argument``: vertex numbers, or
        ``SourcesWithTargets`` if each source has targets of its own. The outcome has fewer limits
        than there are sources.
        """
        if isinstance(argument, SourcesWithTargets):
            return search(argument.part(0, group))
        return search(argument[:group])

    return search_first


def _take_target_lists(
    search: Any, strategy: MultiSourceStrategy, query: Query
) -> MultiSourceSearch:
    """Return a search that takes ``SourcesWithTargets``, from one that ``strategy`` has planned.

    A strategy that takes no targets per source returns the distances of all vertices. Hops and
    integers are reduced to the targets here. Floats are not: whether their sums are exact is seen
    from the distances of all vertices, by the caller.
    """
    if strategy.takes_target_lists:
        return lambda argument: search(*argument)

    def search_and_reduce(argument: Any) -> MultiSourceOutcome:
        """Search from ``argument``, ``SourcesWithTargets``. Return the outcome with one array of
        distances at the targets; or with those of all vertices if these are floats, or if the query
        asks for all.
        """
        outcome = search(argument.sources)
        if query.output == "targets" and outcome.distance.dtype.kind == "i":
            outcome = outcome._replace(distance=argument.lists.take(outcome.distance))
        return outcome

    return search_and_reduce


class GroupOutcome(NamedTuple):
    """What a search has found from a group of sources, or from the first of them."""

    sources: np.ndarray  # int64 vertex numbers of the sources that were searched from
    lists: TargetLists | None  # the targets of each of these sources, if each has its own
    outcome: MultiSourceOutcome  # distances and all else that was found, a row per source

    def to_traversals(
        self,
        algorithm: str,
        strategy: MultiSourceStrategy,
        strategies: Sequence[MultiSourceStrategy],
        output: str,
    ) -> Traversals:
        """Return what was found as ``Traversals``.

        ``strategy`` is the one that was chosen. The result names the one that ran: for int64 sums
        it is another one of ``strategies``. ``output`` is that of the query.
        """
        # Distances, or paths, at the targets of each source are one list after the other; the
        # offsets say where that of each source begins.
        offsets = None
        is_at_targets = output == "targets" or self.outcome.routes is not None
        if self.lists is not None and is_at_targets:
            offsets = self.lists.offsets
        return Traversals(
            algorithm=algorithm,
            sources=self.sources,
            strategy=strategy_that_ran(strategy, strategies, self.outcome).name,
            offsets=offsets,
            **traversal_fields(self.outcome),  # the fields that both classes have
        )


def search_group(
    search: Callable[[Any], MultiSourceOutcome],
    sources: np.ndarray,
    lists: TargetLists | None,
    output: str,
) -> GroupOutcome:
    """Search from a group of sources, or from the first of them if all are too many for the type of
    sums that they need.

    ``search`` takes ``sources``, int64 vertex numbers, or with ``lists``, the targets of each
    source, ``SourcesWithTargets``. ``output`` is that of the query.
    """
    # The outcome has a limit per source that was searched from.
    if lists is None:
        outcome = search(sources)
        return GroupOutcome(sources[: len(outcome.limits)], None, outcome)

    outcome = search(SourcesWithTargets(sources, lists))
    n_searched = len(outcome.limits)
    lists = lists.part(0, n_searched)
    # Float distances of all vertices were needed to know whether their sums round. They are reduced
    # to the targets only now.
    distance: Any = outcome.distance
    if output == "targets" and distance.ndim > 1:
        outcome = outcome._replace(distance=lists.take(distance))
    return GroupOutcome(sources[:n_searched], lists, outcome)
