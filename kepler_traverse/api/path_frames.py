"""``paths``: shortest paths from the frame of a traversal, or of a table of pairs by searches of
their own.
"""

from __future__ import annotations

from typing import Any

from .. import arguments
from ..bfs import REGISTRY as BFS
from ..errors import InputError
from ..graph import Graph
from ..kinds.along import AlongPaths, columns_along
from ..kinds.pairs import ends_of_pairs, frame_of_pairs, numbers_of_pairs, pair_table
from ..kinds.result_kinds import RESULT_KINDS, PathOptions
from ..protocols import Frame
from ..search import frames
from ..search.algorithms import ALGORITHMS
from ..sssp import REGISTRY as SSSP


def paths(
    frame: Frame | Graph,
    targets: Any,
    *,
    graph: Graph | None = None,
    edges: bool = False,
    along: Any = None,
    algorithm: str | None = None,
    strategy: str = "auto",
    memory: int | None = None,
) -> Any:
    """Return shortest paths: from the frame of a traversal to targets, or of pairs, which are
    searched for.

    ``paths(frame, targets)`` follows the predecessors of a frame to all targets at once.
    ``paths(graph, pairs)`` searches from each distinct origin of the pairs, in groups. Memory then
    holds the paths and the predecessors of one group.

    Parameters
    ----------
    frame : pandas.DataFrame, cudf.DataFrame or Graph
        Result of ``bfs``, ``sssp``, ``bfs_many`` or ``sssp_many`` with predecessors and
        ``unreached="omit"``; or the graph to search.
    targets : iterable of ids, or pairs
        With a frame: where the paths end. With several sources, each source gets a path to each
        target that it reaches. With a graph: ``(origins, destinations)``, a tuple of two columns of
        the same length; a list or iterator of tuples ``(origin, destination)``; or a table whose
        columns have known names, such as ``source`` and ``target`` or ``origin`` and
        ``destination``. A list of two lists could be rows or columns and is refused.
    graph : Graph, optional
        With a frame, the graph that was traversed. With it, targets that no source reaches have no
        row, and ids that are not vertices are refused. Without it both are refused.
    edges : bool
        Also return the edges, of a graph that was built with ``edge_ids=True``.
    along : table, optional
        Columns of the edge list to sum along the paths, of a graph that was built with
        ``edge_ids=True``: a data frame, an Arrow table, or a mapping of names to columns, with one
        row per row of the edge list. A data frame has the index of the one that the graph was built
        from, or 0 to n-1. For pairs only.
    algorithm : {"bfs", "sssp"}, optional
        For pairs only. Default: ``"sssp"`` if the graph has weights.
    strategy, memory
        As in ``bfs_many``. For pairs only.

    Returns
    -------
    pandas.DataFrame or cudf.DataFrame
        Columns ``[source,] target, position, vertex`` of a frame, ``pair, position, vertex`` of
        pairs: a row for each vertex of each path, position 0 at the source; ``pair`` is the number
        of the row, from 0, and pairs are in order. A target or pair without a path has no row. With
        ``edges``, a column ``edge``: the row of the edge list, by ``graph.edge_rows``, of the edge
        that leads to the vertex from the one before it; null at position 0. With ``along``, a
        column of each name: the sum from the source up to the vertex, so that the last row of a
        path has the sum of the whole path. Sums of integers are exact. Floats are added in the
        order of the path, in float64.

    Raises
    ------
    InputError
        The frame has no predecessors, or lacks a vertex that a path leads through (it was cut to
        targets). With ``edges`` or ``along``: the graph does not know its rows, a step of a path is
        no edge of it, or ``along`` has not one row per row of the edge list.
    UnknownVertexError
        A target is not a vertex of the graph (without ``graph``: is in no row of the frame), or
        ``targets`` is not a list of ids. For pairs the message names the row.
    PrecisionError
        A sum of integers may exceed int64.
    NegativeCycleError, StrategyError
        As ``sssp_many``, for pairs.

    Examples
    --------
    >>> import numpy as np
    >>> graph = graph_from_edges(np.array([0, 1]), np.array([1, 2]), edge_ids=True)
    >>> paths(bfs(graph, 0), [2])
       target  position  vertex
    0       2         0       0
    1       2         1       1
    2       2         2       2
    >>> paths(graph, ([0, 1], [2, 2]), along={"metres": [70, 30]})
       pair  position  vertex  metres
    0     0         0       0       0
    1     0         1       1      70
    2     0         2       2     100
    3     1         0       1       0
    4     1         1       2      30
    """
    if not isinstance(frame, Graph):
        if along is not None or algorithm is not None or strategy != "auto" or memory is not None:
            raise InputError(
                "along, algorithm, strategy and memory are for pairs: "
                "paths(graph, (origins, destinations))"
            )
        return frames.paths(frame, targets, graph=graph, edges=edges)
    if graph is not None:
        raise InputError(
            "graph= is for the paths of a frame; paths(graph, pairs) searches in its first argument"
        )

    # Pairs, which are searched for in a graph.
    arguments.flag("edges", edges)
    graph = frame
    if algorithm is None:
        algorithm = "bfs" if graph.weights is None else "sssp"
    arguments.choice("algorithm", algorithm, tuple(ALGORITHMS))
    if (edges or along is not None) and graph.edge_rows is None:
        raise InputError("the graph does not know its rows; build it with edge_ids=True")
    sums = {} if along is None else columns_along(graph, along)
    for name in sums:
        if name in RESULT_KINDS["paths"].columns:
            raise InputError(f"along[{name!r}]: the result has a column of this name; rename it")

    # ``table`` groups the pairs by origin, so that each distinct origin is searched from once. The
    # plan gets the mean number of targets of an origin, a sample of the table, and the forms besides
    # an array of rows in which this result takes distances.
    ends = ends_of_pairs(targets)
    table = pair_table(*numbers_of_pairs(graph, ends.origins, ends.destinations))
    plan = (SSSP if algorithm == "sssp" else BFS).plan_multi_source(
        graph,
        n_sources=table.sources.size,
        result="paths",
        strategy=strategy,
        memory=memory,
        targets_per_source=table.rows.size / max(table.sources.size, 1),
        sample=table.sample(),
        forms=RESULT_KINDS["paths"].reads,
    )
    columns: Any = AlongPaths(sums)
    # The kind "paths" has a column ``source``; "source" takes it out, as ``pair`` says the same.
    return frame_of_pairs("paths", plan, table, "source", PathOptions(along=columns, edges=edges))
