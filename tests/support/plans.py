"""Plans for many sources with tuning parameters other than the defaults, which force a path on small graphs."""

from __future__ import annotations

import numpy as np

from kepler_traverse.search.frames import Column, arrow_table, make_columns


def tuned_plan(registry, graph, tuning, *, n_sources, strategy, result="distances", limit=None, targets=None, **others):
    """Plan as ``plan_bfs_many`` or ``plan_sssp_many`` does, with ``tuning`` for the strategy."""
    options = {"knobs": None, "memory": None, **others}
    return registry.plan_multi_source(
        graph, n_sources=n_sources, strategy=strategy, result=result, limit=limit, targets=targets, tuning=tuning, **options
    )


def table_of(graph, result, query):
    """Return the records of one traversal as a table ``source, vertex, distance[, predecessor]``."""
    columns = make_columns(graph, result, query)
    source = Column.of_vertices(graph, np.full(len(columns["vertex"].values), result.source))
    return arrow_table({"source": source, **columns})
