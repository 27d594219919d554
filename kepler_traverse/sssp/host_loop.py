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
    """The ``plan`` of a strategy: relax the frontier until no distance changes.

    A loop is called as ``loop(graph, query)``, and returns ``traverse(source)``.
    """

    # ``new_run(graph, query)`` allocates the state of a search, a ``RoundRun``
    new_run: Callable[[Graph, Query], RoundRun]
    # ``relax(run, round)`` relaxes the edges of the frontier. It returns how many rounds it has
    # made, None for one
    relax: Step

    def __call__(self, graph: Graph, query: Query) -> Search:
        """Allocate the state of a search; return ``traverse(source)``, which uses it each time."""
        run = self.new_run(graph, query)
        relax = self.relax

        def traverse(source: int) -> Outcome:
            """Search from the vertex number ``source``. Return its ``Outcome``: distances,
            predecessors if they are wanted, the number of rounds, and what the strategy counts. The
            arrays are valid until the next call.

            Raises NegativeCycleError or PrecisionError: distances do not stop falling, or exceed
            their type.
            """
            run.start(source)
            n_rounds = 0
            next_search = FIRST_CYCLE_SEARCH  # rounds before the next search for a cycle
            while run.frontier_size:
                n_rounds += relax(run, n_rounds) or 1  # most steps are one round and return None
                # With V vertices a shortest path has fewer than V edges, so that further rounds
                # improve distances around a negative cycle, or by rounding. Cycles are searched for
                # earlier, after 16, 32, 64, ... rounds.
                if graph.has_negative_weights and run.frontier_size:
                    if n_rounds > graph.n_vertices:
                        negative_cycles.give_up(graph, run.parent)  # always raises
                    if n_rounds >= next_search:
                        # raises if the parents form a negative cycle
                        negative_cycles.search(graph, run.parent)
                        next_search *= 2
            run.finish(source)  # checks for overflow, and finds predecessors if they are wanted

            # With negative weights a path may lead through vertices beyond the limit, so all of
            # them were computed.
            if graph.has_negative_weights:
                limit = None
            else:
                limit = query.limit
            return Outcome(run.distance, run.predecessor, limit, n_rounds, run.counted)

        return traverse


rounds = RoundLoop
