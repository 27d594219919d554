"""Plans for many sources with tuning parameters other than the defaults, which force a path on small graphs."""

from __future__ import annotations


def tuned_plan(registry, graph, tuning, *, n_sources, strategy, result="distances", limit=None, targets=None, **others):
    """Plan as ``plan_bfs_many`` or ``plan_sssp_many`` does, with ``tuning`` for the strategy."""
    options = {"knobs": None, "memory": None, **others}
    return registry.plan_multi_source(
        graph, n_sources=n_sources, strategy=strategy, result=result, limit=limit, targets=targets, tuning=tuning, **options
    )
