"""The level loop, written once for every strategy that returns to the host between levels."""

from __future__ import annotations

from ..strategy import Outcome


def levels(new_run, step):
    """Return the ``plan`` of a strategy: a loop of ``step(run, level)`` until the frontier is empty.

    ``new_run(graph, query)`` allocates the state. A run has ``start(source)``, ``frontier_size``, ``targets_reached()``
    and ``distance`` / ``predecessor``; ``counted`` is what it counted, or None. A step claims the vertices at
    ``level + 1`` and makes them the frontier; one that goes on alone returns how many levels it took. The plan keeps both
    as ``plan.new_run`` and ``plan.step``, so that whoever looks at single levels can wrap the step.
    """

    def plan(graph, query):
        run = new_run(graph, query)

        def traverse(source: int):
            run.start(source)
            level = 0
            stopped = None
            while run.frontier_size:
                if (query.limit is not None and level >= query.limit) or run.targets_reached():
                    stopped = level
                    break
                level += step(run, level) or 1
            limit = query.limit if stopped is None else stopped
            return Outcome(run.distance, run.predecessor, limit, level, run.counted)

        return traverse

    plan.new_run, plan.step = new_run, step
    return plan


def switch(push, pull, rule):
    """Combine two steps into one that asks ``rule(run)`` each level whether to pull."""

    def step(run, level):
        return (pull if rule(run) else push)(run, level)

    return step
