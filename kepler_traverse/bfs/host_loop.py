"""The level loop, written once for every strategy that returns to the host between levels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..graph import Graph
from ..protocols import LevelRun, Step
from ..search.query import Query
from ..search.strategy import Outcome, Search


@dataclass(frozen=True)
class LevelLoop:
    """The ``plan`` of a strategy: a loop of steps until the frontier is empty."""

    # ``new_run(graph, query)`` allocates the state of a search, a ``LevelRun``
    new_run: Callable[[Graph, Query], LevelRun]
    step: Step  # to look at single levels, wrap it: ``replace(loop, step=wrapped)``

    def __call__(self, graph: Graph, query: Query) -> Search:
        """Allocate the state of a search and return the search."""
        run = self.new_run(graph, query)
        step = self.step

        def traverse(source: int) -> Outcome:
            """Search from a vertex number."""
            run.start(source)
            level = 0
            limit = query.limit  # of the result: where the search stops, if it does
            while run.frontier_size:
                if (query.limit is not None and level >= query.limit) or run.targets_reached():
                    limit = level
                    break
                level += step(run, level) or 1  # most steps are one level and return None
            return Outcome(run.distance, run.predecessor, limit, level, run.counted)

        return traverse


levels = LevelLoop


def switch(push: Step, pull: Step, should_pull: Callable[[Any], bool]) -> Step:
    """Combine two steps into one that pulls at each level for which ``should_pull(run)`` is true,
    and else pushes.
    """

    def step(run: Any, level: int) -> int | None:
        """Make one level."""
        if should_pull(run):
            return pull(run, level)
        return push(run, level)

    return step
