"""``result="nearest"``: one search from all sources together finds the nearest of them for each
vertex.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .._arrays import NO_PREDECESSOR, at_most, namespace
from ..errors import NegativeCycleError
from ..graph import BuildReport, Graph
from ..graph.closed import listed_vertices
from ..search.algorithms import ALGORITHMS, BFS
from ..search.frames import Column, as_returned_distance
from ..search.plan import Plan
from ..search.query import Query
from ..search.results import Traversal
from ..search.strategy import Strategy


def nearest_source_search(
    graph: Graph,
    numbers: np.ndarray,
    algorithm: str,
    single_source: Sequence[Strategy],
    strategy: str,
    query: Query,
) -> tuple[Graph, Traversal]:
    """Search for the nearest of several sources of each vertex.

    The search begins at an additional vertex, which an edge of length 0 (for hops, of length 1)
    joins to each source. So it finds the distance from the nearest source of each vertex.
    Predecessors lead back to that source.

    Returns
    -------
    Graph
        The graph with the additional vertex, which is the last one.
    Traversal
        That of this graph from that vertex, for ``certify``.

    Raises NegativeCycleError: a negative cycle is reachable from one of the sources (SSSP only).
    """
    limit = query.limit
    if limit is not None and ALGORITHMS[algorithm].counts_hops:
        limit = BFS.largest_limit(limit + 1)
    rooted = _add_root(graph, numbers)
    plan = Plan(
        rooted,
        algorithm,
        single_source,
        strategy,
        Query(predecessors=True, limit=limit, knobs=query.knobs),
    )
    try:
        return rooted, plan.run_number(graph.n_vertices, cut=False)
    except NegativeCycleError as error:  # ids of the searched graph are vertex numbers
        raise NegativeCycleError(
            graph.ids_at(np.array(error.cycle)).tolist(), error.weight
        ) from None


def nearest_columns(graph: Graph, search: Traversal, limit: float | None) -> dict[str, Column]:
    """Return ``vertex, source, distance`` of a nearest-source search by ascending vertex."""
    xp = namespace(search.distance)
    n = graph.n_vertices
    algorithm = ALGORITHMS[search.algorithm]
    owner = xp.where(search.predecessor == NO_PREDECESSOR, xp.arange(n + 1), search.predecessor)
    owner = xp.where(owner == n, xp.arange(n + 1), owner)  # each source is its own root
    while True:
        further = owner[owner]
        if bool((further == owner).all()):
            break
        owner = further
    reached = search.reached[:n]
    if algorithm.counts_hops:
        distance = search.distance[:n] - 1
    else:
        distance = search.distance[:n]
    if limit is not None:
        reached &= at_most(distance, algorithm.largest_limit(limit))
    listed = listed_vertices(graph)
    if listed is None:
        vertex = xp.flatnonzero(reached)
    else:
        listed = xp.asarray(listed)
        vertex = listed[reached[listed]]
    source = owner[:n][vertex]
    distance = as_returned_distance(graph, distance[vertex])
    return {
        "vertex": Column.of_vertices(graph, vertex),
        "source": Column.of_vertices(graph, source),
        "distance": Column(distance),
    }


def _add_root(graph: Graph, numbers: np.ndarray) -> Graph:
    """Add a last vertex to a graph, with an edge to each of the given vertices."""
    xp = namespace(graph.offsets)
    added = xp.asarray(numbers)
    return replace(
        graph,
        offsets=xp.append(graph.offsets, graph.n_edges + numbers.size),
        targets=xp.append(graph.targets, added.astype(graph.targets.dtype)),
        weights=None
        if graph.weights is None
        else xp.append(graph.weights, xp.zeros(numbers.size, graph.weights.dtype)),
        ids=xp.arange(graph.n_vertices + 1),
        directed=True,
        report=BuildReport(),
        edge_rows=None,
        edges_of_rows=None,
        closed=None,
    )
