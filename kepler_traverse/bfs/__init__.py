"""Breadth-first search: distances in hops from one source or from many."""

from __future__ import annotations

from dataclasses import replace

from .. import frames
from .._arrays import LARGEST_HOP_COUNT
from ..graph import Graph
from ..plan import Plan, query_for
from .catalogue import STRATEGIES

__all__ = ["STRATEGIES", "bfs", "bfs_many", "plan_bfs"]


def plan_bfs(
    graph: Graph,
    *,
    strategy: str = "auto",
    predecessors: bool = True,
    max_depth: int | None = None,
    targets=None,
    knobs=None,
) -> Plan:
    """Check, compile and allocate once; the plan then traverses from any number of sources.

    Parameters are those of ``bfs``. The arrays of a result hold until the plan's next traversal.

    Examples
    --------
    >>> import numpy as np
    >>> plan = plan_bfs(graph_from_edges(np.array([0, 1]), np.array([1, 2])))
    >>> plan(0).distance
    array([0, 1, 2], dtype=int32)
    """
    query = query_for(graph, predecessors, max_depth, targets, knobs, "max_depth")
    if max_depth is not None:
        query = replace(query, limit=int(min(max_depth, LARGEST_HOP_COUNT)))
    return Plan(graph, "bfs", STRATEGIES, strategy, query)


def bfs(
    graph: Graph,
    source,
    *,
    strategy: str = "auto",
    predecessors: bool = True,
    max_depth: int | None = None,
    targets=None,
    knobs=None,
    unreached: str = "omit",
):
    """Return the hop distance of every vertex from a source.

    Parameters
    ----------
    graph : Graph
    source : int or str
        The user's own id of a vertex.
    strategy : str
        ``"auto"``, or a name that ``strategies()`` lists for the graph's device.
    predecessors : bool
        Also give for each vertex the previous one on a shortest path.
    max_depth : int, optional
        Go no further than this many hops (inclusive; 0 is the source alone).
    targets : sequence of ids, optional
        Give these vertices only, and stop once all of them are reached.
    knobs : mapping or object, optional
        Settings of the strategy by name (``strategies()`` lists the names; those left out are as published), or an
        instance of its ``Strategy.knobs``. Default: what the strategy's rule takes for the graph.
    unreached : {"omit", "null", "cugraph"}
        Vertices without a path: left out, given with nulls, or as cuGraph does: the largest value of the type as
        distance, predecessor -1 (also of the source).

    Returns
    -------
    pandas.DataFrame or cudf.DataFrame
        Columns ``vertex, distance[, predecessor]``, ordered by vertex. The source's predecessor is itself.

    Raises
    ------
    UnknownVertexError
        The source or a target is not in the graph.
    StrategyError
        No such strategy for this device, or it cannot take this graph or these knobs.
    InputError
        ``max_depth`` is negative, or a knob's value out of range.

    Examples
    --------
    >>> import numpy as np
    >>> bfs(graph_from_edges(np.array([5, 6]), np.array([6, 7])), 5)
       vertex  distance  predecessor
    0       5         0            5
    1       6         1            5
    2       7         2            6
    """
    plan = plan_bfs(graph, strategy=strategy, predecessors=predecessors, max_depth=max_depth, targets=targets, knobs=knobs)
    return frames.frame_of_one(plan, source, unreached)


def bfs_many(
    graph: Graph,
    sources,
    *,
    strategy: str = "auto",
    predecessors: bool = False,
    max_depth: int | None = None,
    targets=None,
    knobs=None,
    unreached: str = "omit",
):
    """Return the hop distances from each of several sources.

    As ``bfs``, once for every source: the answers are separate, never merged. Sources given twice are computed once and
    answered twice. All sources are looked up before any work starts.

    Returns
    -------
    pandas.DataFrame or cudf.DataFrame
        Columns ``source, vertex, distance[, predecessor]``, in the order of the sources, then by vertex.
    """
    plan = plan_bfs(graph, strategy=strategy, predecessors=predecessors, max_depth=max_depth, targets=targets, knobs=knobs)
    return frames.frame_of_many(plan, sources, unreached)
