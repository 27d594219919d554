"""Breadth-first search: distances in hops from one source or from many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from .._signatures import as_bfs_many, as_bfs_pairs
from ..graph import Graph
from ..multi_source.entry_points import GivenPairs, Registry
from ..multi_source.outputs import GivenCall
from ..multi_source.planning import MultiSourcePlan
from ..protocols import Frame, Ids, Knobs, Sources, VertexId
from ..runtime.progress import Report
from ..search.algorithms import BFS
from ..search.frames import frame_of_one
from ..search.plan import Plan
from ..search.strategy import Shape
from .registry import MULTI_SOURCE, STRATEGIES

__all__ = ["bfs", "bfs_many", "bfs_pairs", "plan_bfs", "plan_bfs_many"]

REGISTRY = Registry(
    algorithm=BFS, single_source=STRATEGIES, multi_source=MULTI_SOURCE, searches=STRATEGIES
)


def plan_bfs(
    graph: Graph,
    *,
    strategy: str = "auto",
    predecessors: bool = True,
    max_depth: int | None = None,
    targets: Ids | None = None,
    knobs: Knobs | None = None,
) -> Plan:
    """Check, compile and allocate once. The plan then traverses from any number of sources.

    Parameters are those of ``bfs``. The arrays of a result are valid until the next traversal of
    the plan.

    Returns
    -------
    Plan
        Called with the id of a source, it returns a ``Traversal``, whose ``distance`` and
        ``predecessor`` have an element per vertex.

    Examples
    --------
    >>> import numpy as np
    >>> plan = plan_bfs(graph_from_edges(np.array([0, 1]), np.array([1, 2])))
    >>> plan(0).distance
    array([0, 1, 2], dtype=int32)
    """
    return REGISTRY.plan(
        graph,
        strategy=strategy,
        predecessors=predecessors,
        limit=max_depth,
        targets=targets,
        knobs=knobs,
    )


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
        Also return the previous vertex on a shortest path for each vertex.
    max_depth : int, optional
        Largest number of hops (inclusive; 0 is the source alone).
    targets : sequence of ids, optional
        Return these vertices only, and stop once all of them are reached.
    knobs : mapping or object, optional
        Options of the strategy by name (``strategies()`` lists the names; others keep their
        published values), or an instance of its ``Strategy.knobs``. By default the strategy chooses
        them for the graph.
    unreached : {"omit", "null", "cugraph"}
        Vertices without a path are left out, returned with nulls, or returned as by
        ``cugraph.bfs``: distance is the largest value of the type, and predecessor is -1 (also that
        of the source). Distances then have the type of the ids, int32 or int64. The ids must be
        signed integers other than -1.

    Returns
    -------
    pandas.DataFrame or cudf.DataFrame
        Columns ``vertex, distance[, predecessor]``, ordered by vertex. The source's predecessor is
        itself.

    Raises
    ------
    UnknownVertexError
        The source or a target is not in the graph.
    StrategyError
        The device has no such strategy, or the strategy cannot take this graph or these knobs.
    InputError
        ``max_depth`` is negative, or a knob is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> bfs(graph_from_edges(np.array([5, 6]), np.array([6, 7])), 5)
       vertex  distance  predecessor
    0       5         0            5
    1       6         1            5
    2       7         2            6
    """
    plan = plan_bfs(
        graph,
        strategy=strategy,
        predecessors=predecessors,
        max_depth=max_depth,
        targets=targets,
        knobs=knobs,
    )
    return frame_of_one(plan, source, unreached)


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
    """Choose a strategy for many sources, check, compile and allocate. The plan then takes any
    number of sources.

    Parameters are those of ``bfs_many`` and the following.

    Parameters
    ----------
    n_sources : int
        Approximate number of sources, on which the choice depends.
    shape : Shape, optional
        ``shape`` of an earlier plan of the same graph. With it the plan makes no search to survey
        the graph.

    Returns
    -------
    MultiSourcePlan
        ``run`` takes the vertex numbers of a group of sources, ``iter_groups`` those of any number
        of sources. ``why`` explains the choice.

    Raises
    ------
    InputError
        The plan does not fit into memory; and as in ``bfs_many``.

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


@as_bfs_many
def bfs_many(
    graph: Graph,
    sources: Sources,
    *,
    result: str = "distances",
    strategy: str = "auto",
    max_depth: int | Sequence[int] | None = None,
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
    """Return the hop distances from each of several sources, or results that are computed from
    them.

    Like ``bfs`` per source: results are separate for each source, except with ``result="nearest"``.
    A source that is given twice is searched once and returned twice. All sources are looked up
    before the first search.

    Ctrl-C ends the call after the searches that run, one per thread, or after the level or kernel
    that runs. It leaves no thread at work and no memory of the call.

    Parameters
    ----------
    graph : Graph
    sources : ids, one id, or "all"
        Any iterable of ids: a list, range, generator, array, Series or pyarrow array, in the order
        of the result. A set has no order: its ids are taken in the order of the graph's. ``"all"``
        is every vertex, in the order of the graph's ids. It is refused if a vertex has this name.
    result : str
        - ``"distances"``: a frame ``source, vertex, distance``, in the order of the sources, then
          by vertex.
        - ``"predecessors"``: the same with the previous vertex on a shortest path.
        - ``"matrix"``: an array on the graph's device with one row per source and one column per
          vertex, by ascending id (or one column per target, in the given order), in the narrowest
          integer type; -1 where there is no path.
        - ``"targets"``: a frame ``source, target, distance`` of every pair; null where there is no
          path.
        - ``"summary"``: a frame ``source, reached, eccentricity, sum, mean, closeness, harmonic``:
          the number of vertices reached, including the source; the largest distance; sum and mean
          over the other vertices; (reached - 1)^2 / (sum (n - 1)); and the sum of 1 / distance. It
          never holds distances of all sources. See ``direction``.
        - ``"levels"``: a frame ``source, distance, vertices``: the number of vertices at each
          distance (a hop plot).
        - ``"reachable"``: a uint8 array with one row per source; vertex v is bit v % 8 of byte v //
          8.
        - ``"nearest"``: a frame ``vertex, source, distance`` with the nearest source of each vertex
          that a source reaches, by one search from all sources together. Of several sources at the
          same distance it is the one to which the canonical predecessors lead. Of ``sssp_many`` it
          takes ``start_costs``, a number of 0 or more per source, which its distances begin with.
        - ``"opportunities"``: a frame ``source, cutoff``, and a column per attribute in ``values``:
          its sum over the vertices within each of ``cutoffs``, including the source. It never holds
          distances of all sources.
        - ``"within"``: a frame ``source, cutoff, vertices``: the number of vertices within each of
          ``cutoffs``.
        - ``"streets"``: a frame ``source, cutoff``, and a column per column of ``along``: its sum
          over the rows of the edge list within each of ``cutoffs``; a row that a search enters and
          does not cross counts with the share within it. Rows that building dropped, parallel ones
          and loops (``graph.report``), do not count. All sums are float64.
        - ``"isochrones"``: a frame ``source, vertex, band``: the smallest of ``cutoffs`` that holds
          the vertex.
        - ``"flows"``: a frame ``src, dst, volume``, with ``edge`` if the graph knows its rows: what
          each edge carries if one unit goes from each source to each target, or to each vertex, on
          its shortest path. Volumes are multiplied by ``source_weights``, ``target_weights`` (one
          per target) and ``decay``. ``of="vertices"``: ``vertex, volume``. ``through`` names edges,
          of which a path must use one: by their rows of the edge list, or by their ends as pairs.
        - ``"betweenness"``: a frame ``vertex, betweenness``; with ``of="edges"`` ``src, dst,
          betweenness``; see ``docs/results.md``.
    strategy : str
        ``"auto"``, a name that ``strategies()`` lists for many sources, or a name for one source.
        The latter runs once per source. ``result="nearest"`` is one search and takes a name for one
        source.
    max_depth : int or sequence of int, optional
        As in ``bfs``; or one per source, in their order or with an index of ids. All searches then
        run to the largest, and results are cut at their own.
    targets, knobs, unreached
        As in ``bfs``.
    direction : {"out", "in"}
        Direction of the distances: ``"out"`` from the source to the other vertices, ``"in"`` from
        these to the source, by searches over the reversed edges: the way from 33,000 homes to one
        hospital is one search. Columns keep their names. NetworkX's ``closeness_centrality`` and
        ``harmonic_centrality`` use ``"in"``. Distances, predecessors, reachable, flows and
        betweenness take ``"out"`` only.
    memory : int, optional
        Bytes that a traversal may take in addition to the graph and the result. Default: 80 % of
        the free memory.
    hierarchy : {"auto", "yes", "no"}
        Whether to build a hierarchy of the graph first, as ``graph.hierarchy`` does, which keeps
        it. ``"auto"`` builds one if the plan's estimates say that this saves at least 5 seconds,
        and neither ``strategy`` nor ``memory`` is given. ``"no"`` also leaves one alone that is
        there. Results are the same.
    progress : bool or callable, optional
        True shows a bar on a terminal or in a notebook, and elsewhere a line on stderr every ten
        seconds. A function is called as ``progress(done, total, rate)``: before the first search
        with 0 done, and after each group of sources. ``total`` is the number of searches: a source
        that is given twice counts once, in a stream twice. ``rate`` is in sources per second since
        the first search. It excludes compiling, and the caller's time between the groups of a
        stream. An exception that the function raises ends the call.
    stream : bool or "arrow"
        True returns an iterator of results, each of a group of sources. Joined, they are the result
        without ``stream``. ``"arrow"`` returns them as a ``pyarrow.RecordBatchReader``, whose
        columns have the same types in each batch; it is not for arrays (``"matrix"``,
        ``"reachable"``). The library holds the memory of one group at a time. A source that is
        given twice is searched twice. Not for ``"nearest"``.
    cutoffs : sequence of int or float, optional
        For ``"opportunities"``, ``"within"``, ``"streets"`` and ``"isochrones"``: distances in
        ascending order. A vertex at a cutoff is within it. The largest one ends the search.
    values : table, mapping or array, optional
        For ``"opportunities"``: a table with a column ``vertex``, or an index of ids, and a column
        per attribute, in which vertices that are not listed have 0; a mapping of names to arrays
        with one value per vertex, by ascending id; or one such array, or a Series with an index of
        ids, of the name ``value``. Sums of integers are exact int64. Sums of floats are float64,
        folded by halves in an order that only the number of vertices decides; they are equal on
        both devices.
    decay : str, optional
        Weights each value by its distance d: ``"exponential:R"`` by exp(-R d), ``"linear:D"`` by 1
        - d / D up to D and 0 beyond, ``"gaussian:D"`` by exp(-(d / D)^2 / 2), ``"step:D"`` by 1 up to D
        and 0 beyond, ``"logistic:D,S"`` by (1 + exp(-D / w)) / (1 + exp((d - D) / w)) with w = S
        sqrt(3) / pi, ``"power:B"`` by d^-B from 1 on. Sums are then float64. By default every
        weight is 1.
    k : int, optional
        For ``"nearest"``, which then means ``"k_nearest"``: return a frame ``vertex, rank, source,
        distance`` with the k nearest sources of each vertex, by ascending distance, and at the same
        distance by ascending source. Hops and integer weights take one search from all sources.
        Float weights, and a GPU without memory for the labels, take one search per source; memory
        holds one group of these. The strategy is then one for many sources. With ``targets`` the
        frame is ``source, rank, target, distance``: the k nearest targets of each source, in the
        order of the sources. Searches begin at the sources or at the targets; ``k`` is then 1 by
        default.
    groups : sequence of int or str, optional
        With ``k``: the group of each source, or with ``targets`` of each target, in their order or
        by an index. The frame has a column ``group`` and the k nearest of each group, such as the
        nearest school and the nearest hospital.
    source_weights : sequence of int or float, optional
        For ``"opportunities"``: a number per source, by which its sums are multiplied, such as the
        people who live there. Sums of integers stay exact if the weights are integers. For
        ``"flows"`` it multiplies the volumes.
    **options
        ``along`` of targets, matrix and the kinds of nearest: a table of columns of the edge list,
        one value per row, to add up along the shortest paths, of a graph that was built with
        ``edge_ids=True``; one column each, and a matrix becomes a dict of arrays. ``of``,
        ``target_weights`` and ``through`` of ``"flows"``; ``of``, ``endpoints``,
        ``normalized``, ``samples``, ``seed``, ``epsilon`` and ``delta`` of ``"betweenness"``; and
        options of result kinds that a plug-in has added; see ``kepler_traverse.extend``.

    Returns
    -------
    pandas.DataFrame or cudf.DataFrame or array
        With ``stream=True`` an iterator of these. Its ``close`` releases its memory; so does a
        ``with`` block that is left early. With ``stream="arrow"`` a ``pyarrow.RecordBatchReader``.

    Raises
    ------
    UnknownVertexError, StrategyError
        As ``bfs``.
    PrecisionError
        A sum of ``values`` could exceed int64 or float64.
    InputError
        There is no such result, or not with these options; it does not fit into memory; and as in
        ``bfs``.

    Examples
    --------
    >>> import numpy as np
    >>> graph = graph_from_edges(np.array([0, 1, 2]), np.array([1, 2, 3]))
    >>> bfs_many(graph, [0, 2], result="summary")[["source", "reached", "eccentricity", "sum"]]
       source  reached  eccentricity  sum
    0       0        4             3    6
    1       2        2             1    1
    >>> for frame in bfs_many(graph, "all", result="levels", stream=True):
    ...     print(len(frame))
    10
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
        limit=max_depth,
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


@as_bfs_pairs
def bfs_pairs(
    graph: Graph,
    origins: Any,
    destinations: Ids | None = None,
    *,
    strategy: str = "auto",
    max_depth: int | None = None,
    knobs: Knobs | None = None,
    memory: int | None = None,
    result: str = "pairs",
    direction: str = "out",
    **options: Any,
) -> Frame:
    """Return the number of hops of each pair of an origin and a destination.

    Each distinct origin is searched once, in groups, and a search stops once the destinations of
    its own rows are settled. Memory holds the result and the distances of one group.

    Parameters
    ----------
    graph : Graph
    origins, destinations : sequences of ids, of the same length
        Columns of a table: row i asks for the distance from ``origins[i]`` to ``destinations[i]``.
        Two Series belong together by their labels. Without ``destinations``, ``origins`` are pairs
        in any form that ``paths`` takes.
    strategy, knobs, memory
        As in ``bfs_many``.
    max_depth : int, optional
        As in ``bfs``. Pairs that are farther apart are null.

    direction : {"out", "in"}
        ``"in"``: the distance from the destination to the origin, by searches from the origins over
        the reversed edges.
    result : {"pairs", "flows"}
        ``"flows"``: what each edge carries if the volume of each pair takes its shortest path; see
        ``docs/results.md``.
    **options
        Of ``"pairs"``: ``along``, columns of the edge list to add up along the paths; see
        ``bfs_many``. Of ``"flows"``: ``volumes``, one per pair (default: 1); ``of``, ``decay`` and ``through`` as
        in ``bfs_many``. ``of="pairs"``: ``pair, source, target, volume``, which lists the pairs
        that count.

    Returns
    -------
    pandas.DataFrame or cudf.DataFrame
        Columns ``source, target, distance``: one row per row given, in its order and with its
        index. ``distance`` is null where there is no path, and otherwise equal to that of ``bfs``.

    Raises
    ------
    UnknownVertexError
        A row holds no vertex of the graph; the message names the row and the id.
    StrategyError, InputError
        As ``bfs_many``. InputError if there are not as many origins as destinations.

    Examples
    --------
    >>> import numpy as np
    >>> graph = graph_from_edges(np.array([0, 1, 2]), np.array([1, 2, 3]))
    >>> bfs_pairs(graph, [0, 3, 0], [3, 0, 1])
       source  target  distance
    0       0       3         3
    1       3       0      <NA>
    2       0       1         1
    """
    call = GivenPairs(strategy, max_depth, knobs, memory, result)
    return REGISTRY.search_pairs(graph, origins, destinations, call, direction=direction, **options)
