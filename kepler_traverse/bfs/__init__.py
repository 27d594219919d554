"""Breadth-first search: distances in hops from one source or from many."""

from __future__ import annotations

from typing import Any

from ..algorithms import BFS
from ..entry_points import Registry
from ..graph import Graph
from ..multi_source.planning import MultiSourcePlan
from ..plan import Plan
from ..protocols import Frame, Ids, Knobs, VertexId
from ..strategy import Shape
from .registry import MULTI_SOURCE, STRATEGIES

__all__ = ["MULTI_SOURCE", "STRATEGIES", "bfs", "bfs_many", "plan_bfs", "plan_bfs_many"]

REGISTRY = Registry(algorithm=BFS, single_source=STRATEGIES, multi_source=MULTI_SOURCE, searches=STRATEGIES)


def plan_bfs(
    graph: Graph,
    *,
    strategy: str = "auto",
    predecessors: bool = True,
    max_depth: int | None = None,
    targets: Ids | None = None,
    knobs: Knobs | None = None,
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
    return REGISTRY.plan(graph, strategy=strategy, predecessors=predecessors, limit=max_depth, targets=targets, knobs=knobs)


def bfs(
    graph: Graph,
    source: VertexId,
    *,
    strategy: str = "auto",
    predecessors: bool = True,
    max_depth: int | None = None,
    targets: Ids | None = None,
    knobs: Knobs | None = None,
    unreached: str = "omit",
) -> Frame:
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
    return REGISTRY.search(plan, source, unreached)


def plan_bfs_many(
    graph: Graph,
    *,
    n_sources: int,
    result: str = "distances",
    strategy: str = "auto",
    max_depth: int | None = None,
    targets: Ids | None = None,
    knobs: Knobs | None = None,
    memory: int | None = None,
    shape: Shape | None = None,
) -> MultiSourcePlan:
    """Choose how to search from many sources, check, compile and allocate; the plan then takes any number of them.

    Parameters are those of ``bfs_many``, but for these.

    Parameters
    ----------
    n_sources : int
        About how many there will be: the choice depends on it.
    shape : Shape, optional
        ``shape`` of an earlier plan of the same graph: no search is made to see it.

    Returns
    -------
    MultiSourcePlan
        ``run`` takes the vertex numbers of a group of sources, ``iter_groups`` those of any number of them; ``why`` explains
        the choice.

    Raises
    ------
    InputError
        It does not fit into the memory; and as ``bfs_many``.

    Examples
    --------
    >>> import numpy as np
    >>> plan = plan_bfs_many(graph_from_edges(np.array([0, 1]), np.array([1, 2])), n_sources=2)
    >>> plan.run([0, 1]).distance
    array([[ 0,  1,  2],
           [-1,  0,  1]], dtype=int8)
    """
    return REGISTRY.plan_multi_source(
        graph,
        n_sources=n_sources,
        result=result,
        strategy=strategy,
        limit=max_depth,
        targets=targets,
        knobs=knobs,
        memory=memory,
        shape=shape,
    )


def bfs_many(
    graph: Graph,
    sources: Ids,
    *,
    result: str = "distances",
    strategy: str = "auto",
    max_depth: int | None = None,
    targets: Ids | None = None,
    knobs: Knobs | None = None,
    unreached: str = "omit",
    direction: str = "out",
    memory: int | None = None,
) -> Any:
    """Return the hop distances from each of several sources, or what follows from them.

    As ``bfs``, once for every source: the answers are separate, never merged, but for ``result="nearest"``. Sources given
    twice are computed once and answered twice. All sources are looked up before any work starts.

    Parameters
    ----------
    graph : Graph
    sources : sequence of ids
    result : str
        - ``"distances"``: a frame ``source, vertex, distance``, in the order of the sources, then by vertex.
        - ``"predecessors"``: the same with the previous vertex on a shortest path.
        - ``"matrix"``: an array on the graph's device, a row a source and a column a vertex, by ascending id (or a column a
          target, in the order given), in the narrowest integer type; -1 where there is no path.
        - ``"targets"``: a frame ``source, target, distance`` of every pair; null where there is no path.
        - ``"summary"``: a frame ``source, reached, eccentricity, sum, mean, closeness, harmonic``: how many vertices it
          reaches, itself included; the largest distance, the sum and mean over the others; (reached - 1)^2 / (sum (n - 1))
          and the sum of 1 / distance. Never holds distances of all sources. See ``direction``.
        - ``"levels"``: a frame ``source, distance, vertices``: how many there are at each distance (a hop plot).
        - ``"reachable"``: a uint8 array, a row a source; vertex v is bit v % 8 of byte v // 8.
        - ``"nearest"``: a frame ``vertex, source, distance`` with the nearest source of each vertex that any reaches: one
          search from all sources together. Of several equally near, the one that the canonical predecessor leads to.
    strategy : str
        ``"auto"``, a name that ``strategies()`` lists for many sources, or one for a single source, which then runs once
        for each. ``result="nearest"``, which is one search, takes the latter.
    max_depth, targets, knobs, unreached
        As in ``bfs``.
    direction : {"out", "in"}
        Of the distances of a summary: ``"out"`` from the source to the others, ``"in"`` from the others to the source, which
        is what NetworkX's ``closeness_centrality`` and ``harmonic_centrality`` count. Other results take ``"out"`` only.
    memory : int, optional
        Bytes that a traversal may take beside the graph and the answer. Default: 80 % of what is free.

    Returns
    -------
    pandas.DataFrame or cudf.DataFrame or array

    Raises
    ------
    UnknownVertexError, StrategyError
        As ``bfs``.
    InputError
        No such result, or not with these options; it does not fit into the memory; and as ``bfs``.

    Examples
    --------
    >>> import numpy as np
    >>> graph = graph_from_edges(np.array([0, 1, 2]), np.array([1, 2, 3]))
    >>> bfs_many(graph, [0, 2], result="summary")[["source", "reached", "eccentricity", "sum"]]
       source  reached  eccentricity  sum
    0       0        4             3    6
    1       2        2             1    1
    """
    return REGISTRY.search_many(
        graph,
        sources,
        result=result,
        strategy=strategy,
        limit=max_depth,
        targets=targets,
        knobs=knobs,
        unreached=unreached,
        direction=direction,
        memory=memory,
    )
