"""Results of traversals from many sources, in the forms of ``RESULT_KINDS``.

``bfs_many`` and ``sssp_many`` take the name of a form as ``result=``. Results are assembled group by group, so that memory
holds the result and the distances of one group. Frames of cuDF, of strings and with unreached vertices are in memory twice
while they are concatenated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .. import arguments
from .._arrays import NO_PREDECESSOR, Array, at_most, is_hops, is_reached, namespace, unreached_of
from ..algorithms import ALGORITHMS, BFS
from ..errors import InputError, NegativeCycleError
from ..frames import Column, as_returned_distance, attach_query, check_unreached, columns_of, concatenate_frames, frame_from
from ..graph import BuildReport, Graph
from ..plan import Plan
from ..protocols import Ids
from ..query import Query
from ..result_kinds import RESULT_KINDS, ResultKind
from ..results import Traversal
from ..source_records import add_source_column, join_groups, positions_in_groups
from ..strategy import Strategy
from .frame_rows import can_write_rows, columns_of_rows, rows_of_group

RESULTS = tuple(RESULT_KINDS)
DIRECTIONS = ("out", "in")


def outputs_needed_by(result: str, algorithm: str, targets: Ids | None) -> str:
    """Return the output that a query needs for a result; see ``Query.output``.

    Raises
    ------
    InputError
        The result does not exist, or not for this algorithm, or it needs targets.
    """
    kind = RESULT_KINDS[arguments.choice("result", result, tuple(RESULT_KINDS))]
    if algorithm not in kind.algorithms:
        raise InputError(f"result={result!r} counts hops; take bfs_many, or result='summary'")
    if kind.needs_targets and targets is None:
        raise InputError(f"result={result!r} needs targets=, the vertices where the ways end")
    if targets is not None and not kind.limits_targets:
        raise InputError(f"result={result!r} is about all vertices; leave targets out")
    return kind.keeps_for(ALGORITHMS[algorithm].counts_hops, targets is not None)


def check_arguments(
    graph: Graph, sources: Ids, targets: Ids | None, result: str, direction: str, unreached: str, memory: int | None
) -> tuple[Graph, Any, Any]:
    """Check arguments of ``bfs_many`` and ``sssp_many``. Return the graph to search, and sources and targets as lists."""
    arguments.instance("graph", graph, Graph, "read_graph and graph_from_edges make one")
    kind = RESULT_KINDS[arguments.choice("result", result, tuple(RESULT_KINDS))]
    check_unreached(unreached, graph)
    if memory is not None:
        arguments.whole("memory", memory)
    if arguments.choice("direction", direction, DIRECTIONS) == "in" and not kind.takes_direction:
        able = " or ".join(f"result={name!r}" for name, other in RESULT_KINDS.items() if other.takes_direction)
        raise InputError(f"direction='in' is for {able}, not {result!r}; take graph.reverse in place of graph")
    sources = arguments.ids("sources", sources)
    targets = None if targets is None else arguments.ids("targets", targets)
    return graph_in_direction(graph, direction), sources, targets


def graph_in_direction(graph: Graph, direction: str) -> Graph:
    """Return the graph, or its reverse for distances to a source (``direction="in"``)."""
    if arguments.choice("direction", direction, DIRECTIONS) == "out" or not graph.directed:
        return graph
    return graph.linked_reverse()


def cycle_in_direction(error: NegativeCycleError, direction: str) -> NegativeCycleError:
    """Return an error of a search in the reverse (``direction="in"``), with the cycle in the direction of the edges."""
    return error if direction == "out" else NegativeCycleError(error.cycle[::-1], error.weight)


def compute_result(plan: Any, sources: Ids, result: str, targets: Ids | None, unreached: str) -> Any:
    """Run a plan for many sources and return the result of that name."""
    graph = plan.graph
    numbers = graph.numbers_of(sources)
    check_unreached(unreached, graph)
    distinct, places = np.unique(numbers, return_inverse=True)
    kind = RESULT_KINDS[result]
    if kind.is_array and not kind.is_dense:
        return _bitmap(plan, distinct, places)
    if kind.records == "vertex":
        return _frame_of_vertices(plan, distinct, places, unreached)
    if kind.records == "source":
        return _frame_of_sources(plan, kind, distinct, places, numbers)
    target_order: Any = None if targets is None else graph.numbers_of(targets, "target")
    matrix = _matrix(plan, distinct, places, target_order)
    return matrix if kind.is_array else _frame_of_pairs(plan, numbers, target_order, matrix)


def _frame_of_vertices(plan: Any, distinct: np.ndarray, places: np.ndarray, unreached: str) -> Any:
    """Return one frame for all sources: ``source, vertex, distance[, predecessor]``."""
    graph, query = plan.graph, plan.query
    if can_write_rows(graph, unreached) and places.size:
        rows = [row for group in plan.iter_groups(distinct) for row in rows_of_group(graph, query, group)]
        return attach_query(frame_from(columns_of_rows(graph, [rows[i] for i in places]), graph.device), plan)
    frames = []
    for group in plan.iter_groups(distinct):
        for traversal in group:
            frames.append(frame_from(columns_of(graph, traversal, query, unreached, with_source=True), graph.device))
    if not frames:
        return frame_from(_empty_columns(plan, unreached), graph.device)
    return attach_query(concatenate_frames([frames[i] for i in places], graph.device), plan)


def _empty_columns(plan: Any, unreached: str) -> dict[str, Column]:
    """Return columns of the right types without a record, for an empty list of sources."""
    graph = plan.graph
    xp = namespace(graph.offsets)
    nothing = xp.zeros(0, np.int64)
    result = Traversal(
        algorithm=plan.algorithm,
        source=0,
        distance=xp.zeros(0, np.int32 if ALGORITHMS[plan.algorithm].counts_hops else plan.sums.dtype),
        predecessor=xp.zeros(0, graph.targets.dtype) if plan.query.predecessors else None,
        limit=None,
        strategy=plan.strategy.name,
        rounds=0,
    )
    no_rows = Query(predecessors=plan.query.predecessors, targets=np.zeros(0, np.int64))
    columns = columns_of(graph, result, no_rows, unreached)
    return {"source": Column(graph.ids_at(nothing)), **columns}


def _matrix(plan: Any, distinct: np.ndarray, places: np.ndarray, target_order: np.ndarray | None) -> Array:
    """Return distances as an array: one row per source, one column per vertex or per target in the requested order."""
    graph = plan.graph
    xp = namespace(graph.offsets)
    kind = ALGORITHMS[plan.algorithm].narrowest_dtype(graph)
    columns = slice(None) if target_order is None else xp.asarray(np.searchsorted(plan.query.targets, target_order))
    matrix = xp.empty((places.size, graph.n_vertices if target_order is None else target_order.size), kind)
    at = 0
    for group in plan.iter_groups(distinct):
        if group.distance.dtype != matrix.dtype:
            matrix = _in_wider_type(matrix, group.distance.dtype)
        rows = np.flatnonzero((places >= at) & (places < at + len(group)))
        for row, i in zip(rows.tolist(), (places[rows] - at).tolist(), strict=True):
            distance = group.distance[i][columns]
            if plan.query.limit is not None:  # searches with negative weights are not pruned
                distance = xp.where(at_most(distance, plan.query.limit), distance, unreached_of(distance.dtype))
            matrix[row] = distance
        at += len(group)
    return matrix


def _in_wider_type(matrix: Array, dtype: np.dtype) -> Array:
    """Return a matrix in the type of a later group, or the matrix itself if its type holds that type."""
    if np.can_cast(dtype, matrix.dtype, "safe") and dtype.kind == matrix.dtype.kind:
        return matrix
    xp = namespace(matrix)
    reached = is_reached(matrix)
    return xp.where(reached, xp.where(reached, matrix, 0).astype(dtype), unreached_of(dtype))


def _frame_of_pairs(plan: Any, numbers: np.ndarray, target_order: np.ndarray, matrix: Array) -> Any:
    """Return ``source, target, distance`` of all pairs in the order of the arguments, null where there is no path."""
    return frame_from(pair_columns(plan.graph, numbers, target_order, matrix, plan.query.limit), plan.graph.device)


def pair_columns(
    graph: Graph, numbers: np.ndarray, target_order: np.ndarray, distance: Array, limit: float | None
) -> dict[str, Column]:
    """Return columns ``source, target, distance`` of a matrix of distances, null without a path within the limit.

    Parameters
    ----------
    graph : Graph
    numbers, target_order : int64 arrays of vertex numbers, NumPy
        Sources of the rows, and targets of the columns of ``distance``.
    distance : array of shape (n_sources, n_targets)
    limit : int, float or None
    """
    xp = namespace(distance)
    distance = distance.ravel()
    hops = is_hops(distance.dtype)
    missing = ~is_reached(distance)
    if limit is not None:
        missing |= ~at_most(distance, limit)
    distance = distance.astype(np.int32) if hops else as_returned_distance(graph, distance, missing)
    sources, ends = xp.repeat(xp.asarray(numbers), target_order.size), xp.tile(xp.asarray(target_order), numbers.size)
    return {
        "source": Column(graph.ids_at(sources)),
        "target": Column(graph.ids_at(ends)),
        "distance": Column(distance, missing),
    }


def _bitmap(plan: Any, distinct: np.ndarray, places: np.ndarray) -> Array:
    """Return the vertices that each source reaches: uint8 of shape (k, ceil(n / 8)), v in bit v % 8 of byte v // 8."""
    n = plan.graph.n_vertices
    xp = namespace(plan.graph.offsets)
    bitmap = xp.zeros((distinct.size, -(-n // 8)), np.uint8)
    at = 0
    for group in plan.iter_groups(distinct):
        reached = is_reached(group.distance)
        if plan.query.limit is not None:
            reached &= at_most(group.distance, plan.query.limit)
        for bit in range(min(n, 8)):
            ones = reached[:, bit::8].astype(np.uint8) << bit
            bitmap[at : at + len(group), : ones.shape[1]] |= ones
        at += len(group)
    return bitmap[xp.asarray(places)]


def _frame_of_sources(plan: Any, kind: ResultKind, distinct: np.ndarray, places: np.ndarray, numbers: np.ndarray) -> Any:
    """Return a frame of records that belong to one source each, in the order of the sources."""
    graph = plan.graph
    if kind.records_of is None or kind.columns_of is None:
        raise TypeError(f"the result kind {kind.name!r} says nothing of how its records are made")
    groups = [kind.records_of(graph, group, plan.query.limit, None) for group in plan.iter_groups(distinct)]
    values, sizes = join_groups(groups, kind.values)
    starts = np.cumsum(sizes) - sizes
    sizes, starts = sizes[places], starts[places]
    chosen = np.repeat(starts, sizes) + positions_in_groups(sizes)
    columns = kind.columns_of(graph, plan.algorithm, {name: value[chosen] for name, value in values.items()}, sizes)
    return _frame_on_device(add_source_column(graph, numbers, sizes, columns), graph)


def _frame_on_device(columns: dict[str, Column], graph: Graph) -> Any:
    """Return columns in host memory as a frame on the graph's device."""
    xp = namespace(graph.offsets)
    moved = {name: Column(xp.asarray(c.values) if hasattr(c.values, "dtype") else c.values) for name, c in columns.items()}
    return frame_from(moved, graph.device)


def compute_nearest(
    graph: Graph, sources: Ids, algorithm: str, single_source: Sequence[Strategy], query: Query, strategy: str = "auto"
) -> Any:
    """Run a nearest-source search; see ``bfs_many`` and ``sssp_many``."""
    numbers = np.unique(graph.numbers_of(sources))
    if not numbers.size:
        raise InputError("result='nearest' needs at least one source")
    _, found = nearest_source_search(graph, numbers, algorithm, single_source, strategy, query)
    columns, _ = nearest_columns(graph, found, query.limit)
    return frame_from(columns, graph.device)


def nearest_source_search(
    graph: Graph, numbers: np.ndarray, algorithm: str, single_source: Sequence[Strategy], strategy: str, query: Query
) -> tuple[Graph, Traversal]:
    """Search for the nearest of several sources of each vertex.

    The search begins at an additional vertex, which an edge of length 0 (for hops, of length 1) joins to each source. So it
    finds the distance from the nearest source of each vertex. Predecessors lead back to that source.

    Returns
    -------
    Graph
        The graph with the additional vertex, which is the last one.
    Traversal
        The traversal of that graph from that vertex; ``certify`` can check it.

    Raises
    ------
    NegativeCycleError
        A negative cycle is reachable from one of the sources (SSSP only).
    """
    limit = query.limit
    if limit is not None and ALGORITHMS[algorithm].counts_hops:
        limit = BFS.largest_limit(limit + 1)
    rooted = _add_root(graph, numbers)
    plan = Plan(rooted, algorithm, single_source, strategy, Query(predecessors=True, limit=limit, knobs=query.knobs))
    try:
        return rooted, plan.run_number(graph.n_vertices)
    except NegativeCycleError as error:  # ids of the searched graph are vertex numbers
        raise NegativeCycleError(graph.ids_at(np.array(error.cycle)).tolist(), error.weight) from None


def nearest_columns(
    graph: Graph, found: Traversal, limit: float | None
) -> tuple[dict[str, Column], tuple[Array, Array, Array]]:
    """Return ``vertex, source, distance`` of a nearest-source search by ascending vertex, as columns and as numbers."""
    xp = namespace(found.distance)
    n, algorithm = graph.n_vertices, ALGORITHMS[found.algorithm]
    owner = xp.where(found.predecessor == NO_PREDECESSOR, xp.arange(n + 1), found.predecessor)
    owner = xp.where(owner == n, xp.arange(n + 1), owner)  # each source is its own root
    while True:
        further = owner[owner]
        if bool((further == owner).all()):
            break
        owner = further
    reached = found.reached[:n]
    distance = found.distance[:n] - 1 if algorithm.counts_hops else found.distance[:n]
    if limit is not None:
        reached &= at_most(distance, algorithm.largest_limit(limit))
    vertex = xp.flatnonzero(reached)
    source, distance = owner[:n][vertex], as_returned_distance(graph, distance[vertex])
    columns = {
        "vertex": Column(graph.ids_at(vertex)),
        "source": Column(graph.ids_at(source)),
        "distance": Column(distance),
    }
    return columns, (vertex, source, distance)


def _add_root(graph: Graph, numbers: np.ndarray) -> Graph:
    """Add a last vertex to a graph, with an edge to each of the given vertices."""
    xp = namespace(graph.offsets)
    added = xp.asarray(numbers)
    return replace(
        graph,
        offsets=xp.append(graph.offsets, graph.n_edges + numbers.size),
        targets=xp.append(graph.targets, added.astype(graph.targets.dtype)),
        weights=None if graph.weights is None else xp.append(graph.weights, xp.zeros(numbers.size, graph.weights.dtype)),
        ids=xp.arange(graph.n_vertices + 1),
        directed=True,
        report=BuildReport(),
    )
