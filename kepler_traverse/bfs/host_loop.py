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
    """The ``plan`` of a strategy: a loop of steps until the frontier is empty.

    A loop is called as ``loop(graph, query)``, and returns ``traverse(source)``.
    """

    # ``new_run(graph, query)`` allocates the state of a search, a ``LevelRun``
    new_run: Callable[[Graph, Query], LevelRun]
    # ``step(run, level)`` searches from the frontier at ``level``. It returns how many levels it
    # has searched, None for one. To look at single levels, wrap it:
    # ``replace(loop, step=wrapped)``
    step: Step

    def __call__(self, graph: Graph, query: Query) -> Search:
        """Allocate the state of a search; return ``traverse(source)``, which uses it each time."""
        run = self.new_run(graph, query)
        step = self.step

        def traverse(source: int) -> Outcome:
            """Search from the vertex number ``source``. Return its ``Outcome``: hops, predecessors
            if they are wanted, the number of levels, and what the strategy counts. The arrays are
            valid until the next call.
            """
            run.start(source)
            level = 0
            # Up to where distances are complete: the query's limit, or the level of an early stop.
            limit = query.limit
            while run.frontier_size:
                if (query.limit is not None and level >= query.limit) or run.targets_reached():
                    limit = level
                    break
                level += step(run, level) or 1  # most steps are one level and return None
            return Outcome(run.distance, run.predecessor, limit, level, run.counted)

        return traverse


levels = LevelLoop


def switch(push: Step, pull: Step, should_pull: Callable[[Any], bool]) -> Step:
    """Return a step that calls ``pull`` at each level for which ``should_pull(run)`` is true, and
    else ``push``.

    A push follows the edges that leave the frontier. A pull searches the incoming edges of
    unreached vertices for one of the frontier. ``run`` is the state of the search.
    """

    def step(run: Any, level: int) -> int | None:
        """Push or pull from the frontier at ``level``; return the number of levels, or None for
        one.
        """
        if should_pull(run):
            return pull(run, level)
        return push(run, level)

    return step
