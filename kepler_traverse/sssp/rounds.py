"""The round loop of Bellman-Ford, written once for every strategy that returns to the host between rounds."""

from __future__ import annotations

from ..strategy import Outcome
from . import cycles
from .params import FIRST_CYCLE_SEARCH


def rounds(new_run, relax):
    """Return the ``plan`` of a strategy: relax the frontier until no distance changes.

    ``new_run(graph, query)`` allocates the state. A run has ``start(source)``, ``frontier_size``, ``finish()``,
    ``distance`` / ``predecessor``, ``counted`` (what it counted, or None), and ``parent`` where weights may be negative;
    ``relax(run, round)`` relaxes the edges of the frontier and makes those vertices whose distance fell the next one; if
    it goes on alone it returns how many rounds it took.
    """

    def plan(graph, query):
        run = new_run(graph, query)

        def traverse(source: int):
            run.start(source)
            count = 0
            next_search = FIRST_CYCLE_SEARCH
            while run.frontier_size:
                count += relax(run, count) or 1
                if graph.has_negative_weights and run.frontier_size:
                    if count > graph.n_vertices:
                        cycles.give_up(graph, run.parent)
                    if count >= next_search:
                        cycles.search(graph, run.parent)
                        next_search *= 2
            run.finish(source)
            # With negative weights a path may lead through vertices beyond the limit, so all of them were computed.
            limit = None if graph.has_negative_weights else query.limit
            return Outcome(run.distance, run.predecessor, limit, count, run.counted)

        return traverse

    return plan
