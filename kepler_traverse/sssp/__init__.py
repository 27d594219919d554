"""Single-source shortest paths: weighted distances from one source or from many."""

from __future__ import annotations

from .. import frames
from ..graph import Graph
from ..plan import Plan, query_for
from .catalogue import STRATEGIES

__all__ = ["STRATEGIES", "plan_sssp", "sssp", "sssp_many"]


def plan_sssp(
    graph: Graph, *, strategy: str = "auto", predecessors: bool = True, cutoff: float | None = None, targets=None, knobs=None
) -> Plan:
    """Check, compile and allocate once; the plan then traverses from any number of sources.

    Parameters are those of ``sssp``. The arrays of a result hold until the plan's next traversal.

    Examples
    --------
    >>> import numpy as np
    >>> ends = np.array([0, 1]), np.array([1, 2])
    >>> plan = plan_sssp(graph_from_edges(*ends, np.array([2, 3])))
    >>> plan(0).distance
    array([0., 2., 5.], dtype=float32)
    """
    return Plan(graph, "sssp", STRATEGIES, strategy, query_for(graph, predecessors, cutoff, targets, knobs, "cutoff"))


def sssp(
    graph: Graph,
    source,
    *,
    strategy: str = "auto",
    predecessors: bool = True,
    cutoff: float | None = None,
    targets=None,
    knobs=None,
    unreached: str = "omit",
):
    """Return the shortest distance of every vertex from a source.

    With non-negative weights the distances are, bit for bit, those of Dijkstra's algorithm in the graph's float type, on
    every device and in every run. Negative weights are taken by the strategies that ``auto`` then chooses from.

    Parameters
    ----------
    graph : Graph
        With weights.
    source : int or str
        The user's own id of a vertex.
    strategy : str
        ``"auto"``, or a name that ``strategies()`` lists for the graph's device.
    predecessors : bool
        Also give for each vertex the previous one on a shortest path.
    cutoff : float, optional
        Give no vertex farther than this (inclusive; 0 keeps the source and what lies at distance 0).
    targets : sequence of ids, optional
        Give these vertices only, and stop once all of them are settled.
    knobs : mapping or object, optional
        As in ``bfs``.
    unreached : {"omit", "null", "cugraph"}
        As in ``bfs``.

    Returns
    -------
    pandas.DataFrame or cudf.DataFrame
        Columns ``vertex, distance[, predecessor]``, ordered by vertex. The source's predecessor is itself.

    Raises
    ------
    UnknownVertexError
        The source or a target is not in the graph.
    StrategyError
        No such strategy for this device, or it cannot take this graph's weights or these knobs.
    InputError
        ``cutoff`` is negative, or a knob's value out of range.
    NegativeCycleError
        A negative cycle can be reached from the source; the error holds its vertices.
    PrecisionError
        A distance is too large for the graph's float type.

    Examples
    --------
    >>> import numpy as np
    >>> sssp(graph_from_edges(np.array([5, 6]), np.array([6, 7]), np.array([1, 2])), 5)
       vertex  distance  predecessor
    0       5       0.0            5
    1       6       1.0            5
    2       7       3.0            6
    """
    plan = plan_sssp(graph, strategy=strategy, predecessors=predecessors, cutoff=cutoff, targets=targets, knobs=knobs)
    return frames.frame_of_one(plan, source, unreached)


def sssp_many(
    graph: Graph,
    sources,
    *,
    strategy: str = "auto",
    predecessors: bool = False,
    cutoff: float | None = None,
    targets=None,
    knobs=None,
    unreached: str = "omit",
):
    """Return the shortest distances from each of several sources.

    As ``sssp``, once for every source: the answers are separate, never merged. Sources given twice are computed once and
    answered twice. All sources are looked up before any work starts.

    Returns
    -------
    pandas.DataFrame or cudf.DataFrame
        Columns ``source, vertex, distance[, predecessor]``, in the order of the sources, then by vertex.
    """
    plan = plan_sssp(graph, strategy=strategy, predecessors=predecessors, cutoff=cutoff, targets=targets, knobs=knobs)
    return frames.frame_of_many(plan, sources, unreached)
