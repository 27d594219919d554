"""Near-far: relax the vertices below a threshold until none is left, then raise the threshold.

Davidson, Baxter, Garland, Owens. Work-efficient parallel GPU methods for single-source shortest paths. IPDPS 2014; the
pile of Busato and Bombieri 2015, section 3. The loop over thresholds is written once.
"""

from __future__ import annotations

import numpy as np

from ..strategy import Outcome


def piles(new_run, relax, split):
    """Return the ``plan`` of a strategy with a near and a far pile.

    Beside what ``rounds`` asks of a run, it has ``far_size`` and ``nearest_far()``; ``relax(run, round, threshold)`` puts
    vertices at or above the threshold on the far pile, and ``split(run, old, new)`` moves those that now lie below it to
    the frontier and drops those settled before.
    """

    def plan(graph, query):
        run = new_run(graph, query)
        kind = graph.weights.dtype.type
        infinity = kind(np.inf)

        def next_threshold(nearest):
            # Where the width vanishes beside the distance, the nearest vertices alone make the next pile: there is
            # always progress, whatever the weights.
            with np.errstate(over="ignore"):
                return max(kind(nearest + run.width), np.nextafter(kind(nearest), infinity))

        def traverse(source: int):
            run.start(source)
            threshold = next_threshold(kind(0))
            count = 0
            limit = query.limit
            while True:
                while run.frontier_size:
                    relax(run, count, threshold)
                    count += 1
                if query.targets is not None and run.far_size:
                    farthest = run.distance[query.targets].max()
                    if farthest < threshold:
                        limit = float(farthest)
                        run.forget_beyond(limit)
                        break
                nearest = run.nearest_far(threshold)
                if nearest == infinity:
                    break
                old, threshold = threshold, next_threshold(nearest)
                split(run, old, threshold)
            run.finish(source)
            return Outcome(run.distance, run.predecessor, limit, count, run.counted)

        return traverse

    return plan
