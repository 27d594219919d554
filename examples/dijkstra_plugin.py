"""A plug-in: a strategy for shortest paths from one source, by SciPy.

With the environment variable KEPLER_PLUGINS=examples.dijkstra_plugin, ``strategy="scipy_dijkstra"`` and
``--strategy scipy_dijkstra`` take it.

The module is looked for in the current folder, too: of a checkout as above; elsewhere copy this file there, and set
KEPLER_PLUGINS=dijkstra_plugin.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from kepler_traverse import Graph, StrategyError
from kepler_traverse.extend import Outcome, Query, Search, Strategy


def plan(graph: Graph, query: Query) -> Search:
    """Check and allocate; return ``traverse(source_vertex)``."""
    if query.predecessors:
        raise StrategyError(
            "scipy_dijkstra finds distances only; SciPy's predecessors are not the canonical ones"
        )
    weights = graph.weights
    if weights is None or not graph.integer_weights:
        raise StrategyError(
            "scipy_dijkstra takes integer weights only; SciPy adds floats in float64, whatever their type"
        )
    matrix = csr_array(
        (weights, graph.targets, graph.offsets), shape=(graph.n_vertices, graph.n_vertices)
    )
    limit = np.inf if query.limit is None else query.limit

    def traverse(source: int) -> Outcome:
        found = dijkstra(matrix, indices=source, limit=limit)
        return Outcome(
            distance=found.astype(weights.dtype),
            predecessor=None,
            limit=query.limit,
            rounds=1,
        )

    return traverse


def memory(n_vertices: int, n_edges: int, predecessors: bool) -> int:  # noqa: ARG001
    """Return the bytes beside the graph: distances, and SciPy's copies of the edges."""
    return 24 * n_vertices + 16 * n_edges


STRATEGIES = {
    "sssp": (
        Strategy(
            name="scipy_dijkstra",
            device="cpu",
            plan=plan,
            memory=memory,
            needs=frozenset({"weights", "non_negative", "narrow"}),
            paper="Dijkstra 1959",
            rationale="a heap settles one vertex after the other",
            complexity="O((V + E) log V)",
        ),
    ),
}
