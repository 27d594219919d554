"""The round loop of Bellman-Ford, written once for every strategy that returns to the host between
rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..graph import Graph
from ..protocols import RoundRun, Step
from ..search.query import Query
from ..search.strategy import Outcome, Search
from . import negative_cycles
from .tuning import FIRST_CYCLE_SEARCH


@dataclass(frozen=True)
class RoundLoop:
    """The ``plan`` of a strategy: relax the frontier until no distance changes."""

    # ``new_run(graph, query)`` allocates the state of a search, a ``RoundRun``
    new_run: Callable[[Graph, Query], RoundRun]
    relax: Step

    def __call__(self, graph: Graph, query: Query) -> Search:
        """Allocate the state of a search and return the search."""
        run = self.new_run(graph, query)
        relax = self.relax

        def traverse(source: int) -> Outcome:
            """Search from a vertex number."""
            run.start(source)
            n_rounds = 0
            next_search = FIRST_CYCLE_SEARCH
            while run.frontier_size:
                n_rounds += relax(run, n_rounds) or 1  # most steps are one round and return None
                if graph.has_negative_weights and run.frontier_size:
                    if n_rounds > graph.n_vertices:
                        negative_cycles.give_up(graph, run.parent)
                    if n_rounds >= next_search:
                        negative_cycles.search(graph, run.parent)
                        next_search *= 2
            run.finish(source)

            # With negative weights a path may lead through vertices beyond the limit, so all of
            # them were computed.
            if graph.has_negative_weights:
                limit = None
            else:
                limit = query.limit
            return Outcome(run.distance, run.predecessor, limit, n_rounds, run.counted)

        return traverse


rounds = RoundLoop
