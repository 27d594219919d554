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
    """Return the paths to the targets of each source of a group, in the order of ``lists``.

    ``traversals`` are the results of the group. Paths that the search has found are returned as
    they are. Otherwise they are walked back along the predecessors of the group, or along the
    predecessors that its distances imply. A target without a path within ``limit``, None for no
    limit, has a path of 0 vertices.
    """
    distances: Any = traversals.distance
    if traversals.routes is not None:
        return traversals.routes
    # Distances of reached vertices alone (``SparseDistances``) are within the limit. Their
    # predecessors are found now, unless the search has found them.
    if not is_rows(distances):
        if distances.predecessor is None:
            distances = distances.point_back(graph, traversals.sources)
        sizes, vertices = distances.walk_back(lists)
        return Routes(sizes, namespace(graph.offsets).asarray(vertices))
    if traversals.predecessor is None:
        return walk_by_distances(graph, traversals, lists, limit)
    return walk_back(traversals, lists, limit)


def may_walk_by_distances(graph: Graph, algorithm: str) -> bool:
    """Return whether ``walk_by_distances`` can find paths in a graph. ``algorithm`` is "bfs" or
    "sssp".

    It runs on the CPU, and without negative weights: with them, distances do not grow along a path.
    """
    return graph.device == "cpu" and not (
        ALGORITHMS[algorithm].is_weighted and graph.has_negative_weights
    )


def walk_by_distances(
    graph: Graph, traversals: Traversals, lists: TargetLists, limit: float | None
) -> Routes:
    """Return the paths to the targets of each source, in the order of ``lists``, from the distances
    of a group alone.

    ``traversals`` has an array of distances with a row per source. Distances imply the canonical
    predecessors. Only those of the vertices of the paths are computed. The graph is on the CPU and
    has no negative weights. A target without a path within ``limit``, None for no limit, has a path
    of 0 vertices.

    Raises PrecisionError: no path explains a distance.
    """
    distance = traversals.distance
    is_weighted = ALGORITHMS[traversals.algorithm].is_weighted
    reverse = graph.reverse
    weights: Array = reverse.weights
    if is_weighted:
        weights = weights.astype(distance.dtype, copy=False)
    else:
        weights = None
    # made when a thread begins with its first source
    scratch_of_threads: list[Any] = [None] * threads.max_threads()
    sizes = np.zeros(lists.vertices.size, np.int64)  # vertices of each path, 0 without one
    paths_of_sources: list[list[np.ndarray]] = [[] for _ in range(len(traversals))]

    def walk_from(i: int, thread: int) -> None:
        """Walk the paths from source i of the group, with the scratch of a thread."""
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
        # None twice: distances are sums of the weights as they are, in no other unit, and are all
        # known, so that nothing looks them up on the way.
        walks = Walks(reverse.offsets, reverse.targets, weights, None, row, None, *scratch)
        for j in np.flatnonzero(is_found).tolist():
            size = walk(source, int(targets[j]), walks)
            if size == NO_EDGE:  # in place of a size: no edge makes up the distance of a vertex
                raise unexplained_error(graph, targets[j], distance.dtype)
            # from the source to the target, as a copy: the scratch is used again
            paths_of_sources[i].append(walks.path[:size][::-1].astype(graph.targets.dtype))
            sizes[begin + j] = size

    threads.for_each(walk_from, len(traversals))
    # the first part is empty, so that there is one also where no path is
    parts = [np.empty(0, graph.targets.dtype)]
    for paths in paths_of_sources:
        parts += paths
    return Routes(sizes, np.concatenate(parts))


def walk_back(traversals: Traversals, lists: TargetLists, limit: float | None) -> Routes:
    """Return the paths to the targets of each source, in the order of ``lists``, along the
    predecessors of a group.

    ``traversals`` has arrays of distances and predecessors with a row per source, of NumPy or CuPy.
    On a GPU all paths advance together by one vertex per step, so that a step is one operation on
    arrays; in host memory compiled code walks. A target without a path within ``limit`` has a path
    of 0 vertices.
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
    # In host memory compiled code counts the vertices of each path, and then writes them.
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

    # Steps lead from the targets back to the sources: the first one has the last vertex of each
    # path. ``ends`` has the position behind the last vertex of each path.
    ends = xp.cumsum(sizes)
    vertices = xp.empty(int(ends[-1]) if ends.size else 0, predecessor.dtype)
    for step, (path, vertex) in enumerate(steps):
        vertices[ends[path] - 1 - step] = vertex
    return Routes(to_host(sizes), vertices)


def rows_of_edges(graph: Graph, routes: Routes) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of the edge list that lead to the vertices of some paths, int64, and a mask,
    bool. Both have one entry per vertex of ``routes``.

    The mask is True at the vertices that begin a path: no edge leads to them, and their row is 0.

    Raises InputError: the graph does not know its rows.
    """
    edge_rows: Any = graph.edge_rows
    if edge_rows is None:
        raise InputError("the graph does not know its rows; build it with edge_ids=True")

    begins = positions_in_groups(routes.sizes) == 0
    # the vertices with one before them on the path, from which an edge leads
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
    """Return, for each vertex of some paths, the sum of the values up to it, added in the order of
    the path.

    ``values`` has one value per vertex, path by path, and 0 at the first vertex of each. ``sizes``,
    int64, has the number of vertices of each path.
    """
    total = values.copy()
    starts = np.cumsum(sizes) - sizes
    longest = int(sizes.max(initial=0))
    # ``order`` lists the paths, the longest first. ``counts[p]`` says how many have a vertex at
    # position p, counted from 0.
    order = np.argsort(-sizes, kind="stable")
    # Negated, sizes and positions ascend, and the paths with more vertices than p come first.
    counts = np.searchsorted(-sizes[order], -np.arange(longest), side="left")

    # All paths that are long enough advance together by one vertex, an operation on arrays. Once
    # few are left, the rest of each is added up alone, as a step of few paths costs as much.
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
    """Return the records of the paths from each origin, one per vertex of a path.

    They are ``pair`` (the number of the row in the table of pairs), ``position`` (in the path, from
    0) and ``vertex``. If they are asked for, there are also ``edge``, the row of the edge list that
    leads to the vertex, and the sums of columns along the path up to the vertex. ``begins`` is True
    where a path begins, and ``edge`` is null.

    ``asked`` is what is asked of the kind, and ``group`` has the distances from some of the
    sources.
    """
    table = asked.select_pairs(group)
    graph = asked.graph
    routes = find_routes(graph, group, table.lists, asked.query.limit)
    values: dict[str, Array] = {
        "pair": np.repeat(table.rows, routes.sizes),
        "position": positions_in_groups(routes.sizes),
        "vertex": routes.vertices,
    }
    # Both the edges and the sums of their columns need the rows of the edge list.
    if asked.options.edges or asked.options.values:
        rows, begins = rows_of_edges(graph, routes)
        if asked.options.edges:
            values |= {"edge": rows, "begins": begins}
        for name, column in asked.options.values.items():
            values[ALONG + name] = sum_column_along(name, column, rows, begins, routes.sizes)
    return SourceRecords(values, np.diff(make_offsets(routes.sizes)[table.lists.offsets]))


def make_columns(asked: Asked[PathOptions], values: Values) -> dict[str, Column]:
    """Return columns ``pair, position, vertex[, edge]``, and the sums along the paths. ``edge`` is
    null where a path begins.

    ``asked`` is what is asked of the kind, and ``values`` has the arrays of the records by name.
    """
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
    """Return the sum of one column of the edge list up to each vertex of some paths.

    ``name`` is the name of the column, for errors, and ``values`` has its value per row of the edge
    list, int64 or float64. ``rows`` and ``begins`` are results of ``rows_of_edges``, and ``sizes``
    the numbers of vertices of the paths.

    Raises PrecisionError: a sum of integers may exceed int64, or one of floats exceeds float64.
    """
    # the value of the edge that leads to each vertex; none leads to the first one of a path
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
    """Return the number of records of an origin, as an estimate and as an upper bound: the vertices
    of all its paths.

    ``question`` is a ``Question`` with pairs, and ``n_vertices`` is the number of vertices of the
    graph. ``depth``, the number of levels of one search, is ignored: it is none of these paths. The
    length of paths is not known, and both numbers are guesses. A true bound, with all vertices on
    each path, would be far too large to size memory by.
    """
    n_paths, most_paths = question.pairs.rows_per_source  # the mean and the largest number
    estimate = n_paths * min(n_vertices, _VERTICES_PER_PATH)
    return estimate, most_paths * min(n_vertices, 16 * _VERTICES_PER_PATH)
