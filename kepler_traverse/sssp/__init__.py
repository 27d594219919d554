"""Single-source shortest paths: weighted distances from one source or from many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from .._signatures import as_sssp_many, as_sssp_pairs
from ..bfs.registry import STRATEGIES as BFS_STRATEGIES
from ..graph import Graph
from ..multi_source.entry_points import GivenPairs, Registry
from ..multi_source.outputs import GivenCall
from ..multi_source.planning import MultiSourcePlan
from ..protocols import Frame, Ids, Knobs, Sources, VertexId
from ..runtime.progress import Report
from ..search.algorithms import SSSP
from ..search.frames import frame_of_one
from ..search.plan import Plan
from ..search.strategy import Shape
from .registry import MULTI_SOURCE, STRATEGIES

__all__ = ["plan_sssp", "plan_sssp_many", "sssp", "sssp_many", "sssp_pairs"]

REGISTRY = Registry(
    algorithm=SSSP, single_source=STRATEGIES, multi_source=MULTI_SOURCE, searches=BFS_STRATEGIES
)


def plan_sssp(
    graph: Graph,
    *,
    strategy: str = "auto",
    predecessors: bool = True,
    cutoff: float | None = None,
    targets: Ids | None = None,
    knobs: Knobs | None = None,
) -> Plan:
    """Check, compile and allocate once. The plan then traverses from any number of sources.

    Parameters are those of ``sssp``. The arrays of a result are valid until the next traversal of
    the plan.

    Returns
    -------
    Plan
        Called with the id of a source, it returns a ``Traversal``, whose ``distance`` and
        ``predecessor`` have an element per vertex.

    Examples
    --------
    >>> import numpy as np
    >>> ends = np.array([0, 1]), np.array([1, 2])
    >>> plan = plan_sssp(graph_from_edges(*ends, np.array([2, 3])))
    >>> plan(0).distance
    array([0., 2., 5.], dtype=float32)
    """
    return REGISTRY.plan(
        graph,
        strategy=strategy,
        predecessors=predecessors,
        limit=cutoff,
        targets=targets,
        knobs=knobs,
    )


def sssp(
    graph: Graph,
    source: VertexId,
    *,
    strategy: str = "auto",
    predecessors: bool = True,
    cutoff: float | None = None,
    targets: Ids | None = None,
    knobs: Knobs | None = None,
    unreached: str = "omit",
) -> Frame:
    """Return the shortest distance of every vertex from a source.

    With integer weights distances are exact integers. With float weights a distance is the smallest
    sum over all paths. A path is summed from the source, and every sum is rounded to the type of
    the weights. With non-negative weights these are the distances of Dijkstra's algorithm in that
    type, bit for bit, on every device and in every run. With negative weights ``auto`` chooses
    among the strategies that take them.

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
        Largest distance (inclusive; 0 keeps the source and the vertices at distance 0). It is
        compared with each distance as the number that it is; distances of float32 weights are
        float32 numbers.
    targets : sequence of ids, optional
        Return these vertices only, and stop once all of them are settled.
    knobs : mapping or object, optional
        As in ``bfs``.
    unreached : {"omit", "null", "cugraph"}
        As in ``bfs``. With ``"cugraph"`` the columns are those of ``cugraph.sssp``, ``distance,
        vertex[, predecessor]``, and distances of integer weights are floats: float32 if the weights
        were given in at most 32 bits, else float64.

    Returns
    -------
    pandas.DataFrame or cudf.DataFrame
        Columns ``vertex, distance[, predecessor]``, ordered by vertex. ``distance`` is int64 for
        integer weights, else it has the type of the weights. The source's predecessor is itself.

    Raises
    ------
    UnknownVertexError
        The source or a target is not in the graph.
    StrategyError
        The device has no such strategy, or the strategy cannot take the weights of this graph or
        these knobs.
    InputError
        ``cutoff`` is negative, or a knob is out of range.
    NegativeCycleError
        A negative cycle can be reached from the source; the error holds its vertices.
    PrecisionError
        A distance is too large for the type of the weights, or for int64 if weights are integers;
        with ``unreached="cugraph"``, for the float type that holds it exactly.

    Examples
    --------
    >>> import numpy as np
    >>> sssp(graph_from_edges(np.array([5, 6]), np.array([6, 7]), np.array([1, 2])), 5)
       vertex  distance  predecessor
    0       5         0            5
    1       6         1            5
    2       7         3            6
    """
    plan = plan_sssp(
        graph,
        strategy=strategy,
        predecessors=predecessors,
        cutoff=cutoff,
        targets=targets,
        knobs=knobs,
    )
    return frame_of_one(plan, source, unreached)


def plan_sssp_many(
    graph: Graph,
    *,
    n_sources: int,
    result: str = "distances",
    strategy: str = "auto",
    cutoff: float | None = None,
    targets: Ids | None = None,
    knobs: Knobs | None = None,
    memory: int | None = None,
    shape: Shape | None = None,
) -> MultiSourcePlan:
    """Choose a strategy for many sources, check, compile and allocate. The plan then takes any
    number of sources.

    Parameters are those of ``sssp_many``; ``n_sources`` and ``shape`` are those of
    ``plan_bfs_many``. So are the errors.

    Returns
    -------
    MultiSourcePlan
        ``run`` takes the vertex numbers of a group of sources, ``iter_groups`` those of any number
        of sources. ``why`` explains the choice.

    Examples
    --------
    >>> import numpy as np
    >>> ends = np.array([0, 1]), np.array([1, 2])
    >>> plan_sssp_many(graph_from_edges(*ends, np.array([2, 3])), n_sources=2).run([0, 1]).distance
    array([[ 0.,  2.,  5.],
           [inf,  0.,  3.]], dtype=float32)
    """
    return REGISTRY.plan_multi_source(
        graph,
        n_sources=n_sources,
        result=result,
        strategy=strategy,
        limit=cutoff,
        targets=targets,
        knobs=knobs,
        memory=memory,
        shape=shape,
    )


@as_sssp_many
def sssp_many(
    graph: Graph,
    sources: Sources,
    *,
    result: str = "distances",
    strategy: str = "auto",
    cutoff: float | Sequence[float] | None = None,
    targets: Ids | None = None,
    knobs: Knobs | None = None,
    unreached: str = "omit",
    direction: str = "out",
    memory: int | None = None,
    hierarchy: Literal["auto", "yes", "no"] = "auto",
    progress: bool | Report | None = False,
    stream: bool | Literal["arrow"] = False,
    cutoffs: Sequence[float] | None = None,
    values: Any = None,
    decay: str | None = None,
    k: int | None = None,
    groups: Sequence[Any] | None = None,
    source_weights: Sequence[float] | None = None,
    **options: Any,
) -> Any:
    """Return the shortest distances from each of several sources, or results that are computed from
    them.

    Like ``sssp`` per source: results are separate for each source, except with
    ``result="nearest"``. A source that is given twice is searched once and returned twice. All
    sources are looked up before the first search.

    Parameters
    ----------
    graph : Graph
        With weights.
    sources : ids, one id, or "all"
        As in ``bfs_many``.
    result : str
        As in ``bfs_many``, without ``"levels"``. A matrix is float32 or float64 with inf where
        there is no path. With integer weights it has the narrower type that holds all of its
        distances exactly. Integer distances beyond 2^53 make it int64, with 2^63 - 1 where there is
        no path. In a summary, sums of integer distances are exact. Other sums are added in float64,
        in an order that only the number of vertices decides.
    strategy, direction, memory, hierarchy, progress, stream
        As in ``bfs_many``.
    cutoffs, values, decay, k, groups, source_weights
        Of some results alone, as in ``bfs_many``. ``cutoffs`` are the distances within which
        vertices or streets count. ``values`` are the attributes that ``"opportunities"`` adds up.
        ``decay`` weights these, or the volumes of ``"flows"``, by distance. ``k`` is how many
        sources of each vertex, or with ``targets`` how many targets of each source, ``"nearest"``
        returns; with ``groups``, of each group. ``source_weights`` are factors, one per source, of
        its sums or volumes.
    cutoff : float or sequence of float, optional
        As in ``sssp``; or one per source. All searches then run to the largest, and results are cut
        at their own.
    targets, knobs, unreached
        As in ``sssp``.
    **options
        Options of a result kind that a plug-in has added; see ``kepler_traverse.extend``.

    Returns
    -------
    pandas.DataFrame or cudf.DataFrame or array
        With ``stream`` an iterator of these, or a ``pyarrow.RecordBatchReader``, as in
        ``bfs_many``.

    Raises
    ------
    UnknownVertexError, StrategyError, NegativeCycleError, PrecisionError
        As ``sssp``.
    InputError
        As ``bfs_many``, and a negative cutoff.

    Examples
    --------
    >>> import numpy as np
    >>> graph = graph_from_edges(np.array([0, 1]), np.array([1, 2]), np.array([2, 3]))
    >>> sssp_many(graph, [0, 1], targets=[2], result="targets")
       source  target  distance
    0       0       2         5
    1       1       2         3
    """
    of_kind = {
        "cutoffs": cutoffs,
        "values": values,
        "decay": decay,
        "source_weights": source_weights,
        **options,
        "k": k,
        "groups": groups,
    }
    call = GivenCall(
        result=result,
        limit=cutoff,
        strategy=strategy,
        targets=targets,
        knobs=knobs,
        unreached=unreached,
        direction=direction,
        memory=memory,
        hierarchy=hierarchy,
        progress=progress,
        stream=stream,
        of_kind=of_kind,
    )
    return REGISTRY.search_many(graph, sources, call)


@as_sssp_pairs
def sssp_pairs(
    graph: Graph,
    origins: Any,
    destinations: Ids | None = None,
    *,
    strategy: str = "auto",
    cutoff: float | None = None,
    knobs: Knobs | None = None,
    memory: int | None = None,
    result: str = "pairs",
    direction: str = "out",
    **options: Any,
) -> Frame:
    """Return the shortest distance of each pair of an origin and a destination.

    Each distinct origin is searched once, in groups, and a search stops once the destinations of
    its own rows are settled. Memory holds the result and the distances of one group.

    Parameters
    ----------
    graph : Graph
    origins, destinations, result, direction, **options
        As in ``bfs_pairs``.
    strategy, knobs, memory
        As in ``sssp_many``.
    cutoff : float, optional
        As in ``sssp``. Pairs that are farther apart are null.

    Returns
    -------
    pandas.DataFrame or cudf.DataFrame
        Columns ``source, target, distance``: one row per row given, in its order. ``distance`` is
        null where there is no path, and otherwise equal to that of ``sssp``.

    Raises
    ------
    UnknownVertexError
        A row holds no vertex of the graph; the message names the row and the id.
    StrategyError, NegativeCycleError, PrecisionError, InputError
        As ``sssp_many``. Also InputError if there are not as many origins as destinations.

    Examples
    --------
    >>> import numpy as np
    >>> graph = graph_from_edges(np.array([0, 1]), np.array([1, 2]), np.array([2, 3]))
    >>> sssp_pairs(graph, [0, 2, 0], [2, 0, 1])
       source  target  distance
    0       0       2         5
    1       2       0      <NA>
    2       0       1         2
    """
    call = GivenPairs(strategy, cutoff, knobs, memory, result)
    return REGISTRY.search_pairs(graph, origins, destinations, call, direction=direction, **options)
