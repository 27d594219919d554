"""What BFS-4K does level by level: the frontier, what is queued, duplicates, the kernel that ran (figures 7 to 13)."""

from __future__ import annotations

from typing import Any

import numpy as np

from scripts.papers.experiments import Setting

MOST = 64  # steps that a record keeps; of a longer search, as many at equal distances
COLUMNS = ("level", "n_levels", "frontier", "queued", "duplicates", "conflicts")


def steps_of(graph: Any, knobs: Any, source: int) -> list[dict]:
    """Return a record per launch of BFS-4K: the kernel, the levels that it ran, and what it counted.

    ``knobs`` must ask for counters.
    """
    from kepler_traverse import plan_bfs
    from kepler_traverse.bfs.host_loop import levels

    ready = plan_bfs(graph, strategy="bfs_4k", knobs=knobs)
    step = ready.strategy.plan.step
    found = []

    def recorded(run: Any, level: int) -> int:
        before = run.counted
        size = run.frontier.size
        n_levels = step(run, level) or 1
        after = run.counted
        kernel = next(
            name for name in ("single_block", "many_blocks") if after[name] > before[name]
        )
        counted = {name: after[name] - before[name] for name in COLUMNS[3:]}
        found.append(
            {"kernel": kernel, "level": level, "n_levels": n_levels, "frontier": size} | counted
        )
        return n_levels

    levels(ready.strategy.plan.new_run, recorded)(graph, ready.query)(source)
    return found


def record(graph: Any, source: int, setting: Setting) -> dict:
    """Return the steps of a search from a source, and the number of vertices at each number of hops."""
    from examples.levels import frontier_sizes

    steps = steps_of(graph, setting.knobs, source)
    sizes = frontier_sizes(graph, source)
    return {
        "n_steps": len(steps),
        "steps": [
            [int(step["kernel"] == "single_block"), *(step[name] for name in COLUMNS)]
            for step in thinned(steps)
        ],
        "vertices": [[level, int(sizes[level])] for level in thinned(range(len(sizes)))],
    }


def thinned(values: Any) -> list:
    """Return all values, or MOST of them at equal distances."""
    if len(values) <= MOST:
        return list(values)
    return [values[i] for i in np.linspace(0, len(values) - 1, MOST).astype(int)]
