"""Results that are stored without unreached vertices, as frames of cuGraph."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import arguments, cuda
from .._arrays import NO_PREDECESSOR, to_host
from ..errors import InputError, UnknownVertexError
from ..graph import Graph
from ..graph.closed import refuse_closed
from ..protocols import Frame
from ..search.frames import Column, check_unreached, cugraph_distances, frame_from, holds_hops


def as_cugraph(frame: Frame, graph: Graph) -> Any:
    """Return a frame of distances as cuGraph's functions would return it.

    The result is that of ``unreached="cugraph"``, made from a frame without unreached vertices,
    such as the part files of a job.

    Parameters
    ----------
    frame : pandas.DataFrame or cudf.DataFrame
        Columns ``[source,] vertex, distance[, predecessor]``: a result of ``bfs``, ``sssp``, or a
        function for many sources with ``result="distances"`` or ``"predecessors"``; or files of a
        job with these results.
    graph : Graph
        The graph that was traversed. Its ids are signed integers other than -1.

    Returns
    -------
    pandas.DataFrame or cudf.DataFrame
        Hops: ``[source,] vertex, distance[, predecessor]``. Sums of weights: ``[source,] distance,
        vertex[, predecessor]``. One row per source and vertex, in the order of the sources, then by
        vertex.

    Raises
    ------
    InputError
        Columns are missing or hold nulls, a vertex occurs twice for one source, or an id is not in
        the graph; and as with ``unreached="cugraph"``.
    PrecisionError
        An integer distance has no exact value in cuGraph's type.

    Examples
    --------
    >>> from kepler_traverse import bfs_many, graph_from_edges
    >>> graph = graph_from_edges(np.array([0, 2]), np.array([1, 3]))
    >>> as_cugraph(bfs_many(graph, [0], result="predecessors"), graph)
       source  vertex             distance  predecessor
    0       0       0                    0           -1
    1       0       1                    1            0
    2       0       2  9223372036854775807           -1
    3       0       3  9223372036854775807           -1
    """
    arguments.instance("graph", graph, Graph, "it is the one that was traversed")
    refuse_closed(graph, "a frame of cuGraph has one row per vertex")
    _check_columns(frame)
    check_unreached("cugraph", graph)
    xp: Any = cuda.cp if hasattr(frame, "to_arrow") else np
    vertex = _vertex_numbers(graph, frame, "vertex")
    if "source" in frame.columns:
        source = _vertex_numbers(graph, frame, "source")
    else:
        source = np.zeros(vertex.size, np.int64)

    # The row of the result for each row of the frame. Each source has n rows of the result, in the
    # order in which the frame has the sources: ``rank`` is the position of a source in that order.
    distinct, first, inverse = np.unique(source, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(order.size, np.int64)
    rank[order] = np.arange(order.size)
    n = graph.n_vertices
    n_rows = distinct.size * n
    row = xp.asarray(rank[inverse] * n + vertex)

    # Distances by row of the result, and where the frame has one.
    known_distances = xp.asarray(frame["distance"].values)
    is_reached = xp.zeros(n_rows, bool)
    is_reached[row] = True
    distance = xp.zeros(n_rows, known_distances.dtype)
    distance[row] = known_distances
    # A row of the result that two rows of the frame have written is counted once.
    if int(xp.count_nonzero(is_reached)) < len(frame):
        raise InputError("frame holds a vertex twice for one source")

    # Columns in the order of cuGraph's BFS, or of its SSSP.
    # The result is where the frame is, which need not be where the graph is.
    ids = xp.asarray(to_host(graph.ids))
    is_hops = holds_hops(graph, frame)
    vertices = Column(xp.tile(ids, distinct.size))
    distances = Column(cugraph_distances(graph, distance, is_reached, is_hops))
    columns = {}
    if "source" in frame.columns:
        columns["source"] = Column(xp.repeat(ids[xp.asarray(distinct[order])], n))
    if is_hops:
        columns |= {"vertex": vertices, "distance": distances}
    else:
        columns |= {"distance": distances, "vertex": vertices}
    if "predecessor" in frame.columns:
        # raises an error if one is not in the graph
        _vertex_numbers(graph, frame, "predecessor")
        before = xp.asarray(frame["predecessor"].values)
        predecessor = xp.full(n_rows, NO_PREDECESSOR, ids.dtype)
        # a source is its own predecessor here, and has none in cuGraph
        predecessor[row] = xp.where(
            before == xp.asarray(frame["vertex"].values), before.dtype.type(NO_PREDECESSOR), before
        )
        columns["predecessor"] = Column(predecessor)
    return frame_from(columns, "cpu" if xp is np else "cuda")


def _check_columns(frame: Frame) -> None:
    """Raise InputError unless a frame has columns of vertices and of numeric distances, and no null
    in any column.
    """
    if not hasattr(frame, "columns") or not hasattr(frame, "merge"):
        raise InputError(
            f"frame must be a data frame of pandas or cuDF, not {arguments.describe(frame)}"
        )
    for name in ("vertex", "distance"):
        if name not in frame.columns:
            raise InputError(
                f"frame has no column {name!r}; give a result of distances or predecessors"
            )
    # A null is what ``unreached="null"`` writes for a vertex that is not reached.
    for name in frame.columns:
        if bool(frame[name].isna().any()):
            raise InputError(
                f"frame has nulls in column {name!r}; it must be made with unreached='omit'"
            )
    if getattr(frame["distance"].dtype, "kind", "") not in ("i", "f"):
        raise InputError(f"frame must hold numbers as distances, not {frame['distance'].dtype}")


def _vertex_numbers(graph: Graph, frame: Frame, name: str) -> np.ndarray:
    """Return the column ``name`` of a frame, which holds ids, as vertex numbers, int64; raise
    InputError if an id is not in the graph.
    """
    try:
        return graph.to_numbers(frame[name].values, "id")
    except UnknownVertexError as error:
        raise InputError(f"column {name!r} of the frame: {error}") from None
