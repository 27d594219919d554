"""Shortest paths of pairs: walked back along the predecessors of one group of sources, so that no
more are held at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import (
    Array,
    at_most,
    is_reached,
    is_rows,
    make_offsets,
    namespace,
    positions_in_groups,
    to_host,
)
from ..cpu import edge_rows as edge_rows_on_cpu
from ..cpu import threads
from ..cpu.path_walk import NO_EDGE, Walks, count_back, new_walk_scratch, walk, write_back
from ..cuda import edge_rows as edge_rows_on_gpu
from ..errors import InputError, PrecisionError
from ..graph import Graph
from ..protocols import EdgeRowsBackend
from ..search.algorithms import ALGORITHMS
from ..search.frames import Column
from ..search.query import TargetLists
from ..search.results import Routes, Traversals
from .along import ALONG, INT64_END, columns_of_sums
from .records import Asked, SourceRecords, Values, unexplained_error
from .result_kinds import PathOptions

_MAX_PATHS_ONE_BY_ONE = 16  # if no more paths are still that long, each is added up alone
_VERTICES_PER_PATH = 256  # an estimate, by which parts are sized


def find_routes(
    graph: Graph, traversals: Traversals, lists: TargetLists, limit: float | None
) -> Routes:
    """Return the paths to the targets of each source: as the search found them, along predecessors,
    or by distances.

    Targets without a path, or beyond the limit, have a path without a vertex.
    """
    distances: Any = traversals.distance
    if traversals.routes is not None:
        return traversals.routes
    # Of sparse distances the predecessors are found now, unless the search has found them.
    if not is_rows(distances):
        if distances.predecessor is None:
            distances = distances.point_back(graph, traversals.sources)
        sizes, vertices = distances.walk_back(lists)
        return Routes(sizes, namespace(graph.offsets).asarray(vertices))
    if traversals.predecessor is None:
        return walk_by_distances(graph, traversals, lists, limit)
    return walk_back(traversals, lists, limit)


def may_walk_by_distances(graph: Graph, algorithm: str) -> bool:
    """Return whether ``walk_by_distances`` can find paths: with negative weights, distances alone
    do not order the vertices.
    """
    return graph.device == "cpu" and not (
        ALGORITHMS[algorithm].is_weighted and graph.has_negative_weights
    )


def walk_by_distances(
    graph: Graph, traversals: Traversals, lists: TargetLists, limit: float | None
) -> Routes:
    """Return the paths to the targets of each source, along the canonical predecessors that
    distances imply.

    On the CPU, without negative weights. Only the predecessors of the vertices of the paths are
    computed.
    """
    distance = traversals.distance
    is_weighted = ALGORITHMS[traversals.algorithm].is_weighted
    reverse = graph.reverse
    weights: Array = reverse.weights
    if is_weighted:
        weights = weights.astype(distance.dtype, copy=False)
    else:
        weights = None
    scratch_of_threads: list[Any] = [None] * threads.max_threads()
    sizes = np.zeros(lists.vertices.size, np.int64)  # vertices of each path, 0 without one
    paths_of_sources: list[list[np.ndarray]] = [[] for _ in range(len(traversals))]

    def walk_from(i: int, thread: int) -> None:
        """Walk the paths from source i, with the scratch of a thread."""
        if scratch_of_threads[thread] is None:
            scratch_of_threads[thread] = new_walk_scratch(graph.n_vertices)
        row = distance[i]
        scratch = scratch_of_threads[thread]
        begin, end = lists.offsets[i : i + 2].tolist()
        targets = lists.vertices[begin:end]
        is_found = is_reached(row[targets])
        if limit is not None:
            is_found &= at_most(row[targets], limit)
        source = int(traversals.sources[i])
        walks = Walks(reverse.offsets, reverse.targets, weights, None, row, None, *scratch)
        for j in np.flatnonzero(is_found).tolist():
            size = walk(source, int(targets[j]), walks)
            if size == NO_EDGE:
                raise unexplained_error(graph, targets[j], distance.dtype)
            # from the source to the target, as a copy: the scratch is used again
            paths_of_sources[i].append(walks.path[:size][::-1].astype(graph.targets.dtype))
            sizes[begin + j] = size

    threads.for_each(walk_from, len(traversals))
    parts = [np.empty(0, graph.targets.dtype)]  # so that there is one, also without a path
    for paths in paths_of_sources:
        parts += paths
    return Routes(sizes, np.concatenate(parts))


def walk_back(traversals: Traversals, lists: TargetLists, limit: float | None) -> Routes:
    """Return the paths to the targets of each source, along the predecessors of a group.

    On a GPU all paths advance together by one vertex per step, so that a step is one operation on
    arrays.
    """
    distance: Array = traversals.distance
    predecessor: Array = traversals.predecessor
    xp = namespace(distance)
    rows = xp.asarray(np.repeat(np.arange(len(traversals)), np.diff(lists.offsets)))
    vertex = xp.asarray(lists.vertices)
    is_found = is_reached(distance[rows, vertex])
    if limit is not None:
        is_found &= at_most(distance[rows, vertex], limit)

    # ``path`` has the positions of the paths that are walked, in the order of ``lists``. ``rows``
    # and ``vertex`` belong to them: the number of the source, and the vertex that is reached.
    sizes = xp.zeros(vertex.size, np.int64)
    path = xp.flatnonzero(is_found)
    rows = rows[path]
    vertex = vertex[path]
    if xp is np:
        found_sizes = np.zeros(path.size, np.int64)
        count_back(predecessor, rows, vertex, found_sizes)
        vertices = np.empty(int(found_sizes.sum()), predecessor.dtype)
        write_back(predecessor, rows, vertex, found_sizes, vertices)
        sizes[path] = found_sizes
        return Routes(sizes, vertices)

    steps = []
    while path.size:
        steps.append((path, vertex))
        sizes[path] += 1
        # A source, which is its own predecessor, ends its path.
        previous = predecessor[rows, vertex].astype(np.int64)
        continues = previous != vertex
        path = path[continues]
        rows = rows[continues]
        vertex = previous[continues]

    # The first step has the last vertex of each path.
    ends = xp.cumsum(sizes)
    vertices = xp.empty(int(ends[-1]) if ends.size else 0, predecessor.dtype)
    for step, (path, vertex) in enumerate(steps):
        vertices[ends[path] - 1 - step] = vertex
    return Routes(to_host(sizes), vertices)


def rows_of_edges(graph: Graph, routes: Routes) -> tuple[np.ndarray, np.ndarray]:
    """Return the row of the edge list that leads to each vertex of some paths, int64, and a mask.

    The mask is True at the vertices that begin a path: no edge leads to them, and their row is 0.

    Raises InputError: the graph does not know its rows.
    """
    edge_rows: Any = graph.edge_rows
    if edge_rows is None:
        raise InputError("the graph does not know its rows; build it with edge_ids=True")

    begins = positions_in_groups(routes.sizes) == 0
    steps = np.flatnonzero(~begins)
    xp = namespace(routes.vertices)
    backend: EdgeRowsBackend = edge_rows_on_gpu if graph.device == "cuda" else edge_rows_on_cpu

    src = routes.vertices[xp.asarray(steps - 1)]
    dst = routes.vertices[xp.asarray(steps)]
    edges = backend.find_edges(graph.offsets, graph.targets, src, dst, np.dtype(np.int64))
    rows = np.zeros(begins.size, np.int64)
    rows[steps] = to_host(edge_rows[edges])
    return rows, begins


def sums_along(values: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the sum of the values of each path up to each of its vertices, added in the order of
    the path.

    Paths have one value per vertex, 0 at the first, and ``sizes`` vertices.
    """
    total = values.copy()
    starts = np.cumsum(sizes) - sizes
    longest = int(sizes.max(initial=0))
    # The longest paths come first: ``counts`` says how many have more vertices than a position.
    order = np.argsort(-sizes, kind="stable")
    counts = np.searchsorted(-sizes[order], -np.arange(longest), side="left")

    # All paths advance together, while many are that long.
    for position in range(1, longest):
        longer_paths = order[: counts[position]]
        if longer_paths.size <= _MAX_PATHS_ONE_BY_ONE:
            for path in longer_paths.tolist():
                rest = total[starts[path] + position - 1 : starts[path] + sizes[path]]
                np.add.accumulate(rest, out=rest)
            break
        places = starts[longer_paths] + position
        total[places] += total[places - 1]
    return total


def make_records(asked: Asked[PathOptions], group: Traversals) -> SourceRecords:
    """Return ``pair, position, vertex`` of the paths of each origin, their edges, and the sums
    along them: one record per vertex.

    ``edge`` is the row of the edge list that leads to the vertex. ``begins`` is True where a path
    begins, and there is none.
    """
    table = asked.select_pairs(group)
    graph = asked.graph
    routes = find_routes(graph, group, table.lists, asked.query.limit)
    values: dict[str, Array] = {
        "pair": np.repeat(table.rows, routes.sizes),
        "position": positions_in_groups(routes.sizes),
        "vertex": routes.vertices,
    }
    if asked.options.edges or asked.options.values:
        rows, begins = rows_of_edges(graph, routes)
        if asked.options.edges:
            values |= {"edge": rows, "begins": begins}
        for name, column in asked.options.values.items():
            values[ALONG + name] = sum_column_along(name, column, rows, begins, routes.sizes)
    return SourceRecords(values, np.diff(make_offsets(routes.sizes)[table.lists.offsets]))


def make_columns(asked: Asked[PathOptions], values: Values) -> dict[str, Column]:
    """Return columns ``pair, position, vertex[, edge]`` and the sums along the paths."""
    numbers = {
        name: values[name].astype(np.int64, copy=False) for name in ("pair", "position", "vertex")
    }
    columns = {"pair": Column(numbers["pair"]), "position": Column(numbers["position"])}
    columns["vertex"] = Column.of_vertices(asked.graph, numbers["vertex"])
    if asked.options.edges:
        columns["edge"] = Column(
            values["edge"].astype(np.int64, copy=False), values["begins"].astype(bool, copy=False)
        )
    return columns | columns_of_sums(asked.options, values)


def sum_column_along(
    name: str, values: np.ndarray, rows: np.ndarray, begins: np.ndarray, sizes: np.ndarray
) -> np.ndarray:
    """Return the sum of a column of the edge list up to each vertex of some paths.

    ``rows`` and ``begins`` are results of ``rows_of_edges``, and ``sizes`` the numbers of vertices
    of the paths. Raises PrecisionError: a sum of integers may exceed int64, or one of floats
    float64.
    """
    steps = np.zeros(begins.size, values.dtype)
    steps[~begins] = values[rows[~begins]]
    if steps.dtype.kind == "i" and steps.size:
        largest = max(int(steps.max()), -int(steps.min()))
        if largest * int(sizes.max()) >= INT64_END:
            raise PrecisionError(
                f"along[{name!r}]: the sum over a path may exceed int64; give the column as floats"
            )
    with np.errstate(over="ignore"):
        sums = sums_along(steps, sizes)
    if steps.dtype.kind == "f" and not np.isfinite(sums).all():
        raise PrecisionError(
            f"along[{name!r}]: the sum over a path exceeds float64; scale the column down"
        )
    return sums


def rows(question: Any, n_vertices: int, depth: int) -> tuple[int, int]:  # noqa: ARG001
    """Return the number of vertices of the paths of an origin, estimated, and at most.

    ``question`` is a ``Question`` with pairs. At most is a guess, too: paths of all vertices would
    be far too many to size memory by.
    """
    n_paths, most_paths = question.pairs.rows_per_source
    estimate = n_paths * min(n_vertices, _VERTICES_PER_PATH)
    return estimate, most_paths * min(n_vertices, 16 * _VERTICES_PER_PATH)
