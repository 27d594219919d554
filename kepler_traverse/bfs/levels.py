"""The level loop, written once for every strategy that returns to the host between levels."""

from __future__ import annotations


def levels(new_run, step):
    """Return the ``plan`` of a strategy: a loop of ``step(run, level)`` until the frontier is empty.

    ``new_run(graph, query)`` allocates the state. A run has ``start(source)``, ``frontier_size``, ``targets_reached()``
    and ``distance`` / ``predecessor``; a step claims the vertices at ``level + 1`` and makes them the frontier.
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
                step(run, level)
                level += 1
            return run.distance, run.predecessor, query.limit if stopped is None else stopped, level

        return traverse

    return plan


def switch(push, pull, rule):
    """Combine two steps into one that asks ``rule(run)`` each level whether to pull."""

    def step(run, level):
        (pull if rule(run) else push)(run, level)

    return step
