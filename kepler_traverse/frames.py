"""Results as data frames: pandas on the CPU, cuDF on a GPU, pyarrow for files. Vertex numbers turn back into ids here."""

from __future__ import annotations

import numpy as np

from . import cuda
from ._arrays import NO_PREDECESSOR, Array, at_most, is_hops, namespace, to_host, unreached_of
from .errors import InputError, UnknownVertexError
from .exact import narrowed
from .graph import Graph
from .query import Query
from .results import Traversal

UNREACHED_CHOICES = ("omit", "null", "cugraph")


class Column:
    """One column of a frame on its way out: values (an array, or pyarrow strings) and where they are null."""

    def __init__(self, values, is_null: Array | None = None):
        self.values, self.is_null = values, is_null


def frame_of_one(plan, source, unreached: str):
    """Run a plan from one source and return its frame."""
    check_unreached(unreached, plan.graph)
    result = plan(source)
    return frame_from(columns_of(plan.graph, result, plan.query, unreached), plan.graph.device)


def columns_of(
    graph: Graph, result: Traversal, query: Query, unreached: str = "omit", with_source: bool = False
) -> dict[str, Column]:
    """Return the rows of one traversal as columns ``[source,] vertex, distance[, predecessor]``, ordered by vertex."""
    xp = namespace(result.distance)
    reached = result.reached
    if query.limit is not None:
        reached &= at_most(result.distance, query.limit)
    if query.targets is not None:
        vertex = xp.asarray(query.targets)
        vertex = vertex[reached[vertex]] if unreached == "omit" else vertex
    else:
        vertex = xp.flatnonzero(reached) if unreached == "omit" else xp.arange(graph.n_vertices)
    here = reached[vertex]
    missing = None if unreached == "omit" else ~here
    distance = shown_distance(graph, result.distance[vertex], missing)
    columns = {}
    if with_source:
        columns["source"] = Column(graph.ids_at(xp.full(vertex.size, result.source)))
    columns["vertex"] = Column(graph.ids_at(vertex))
    if unreached == "cugraph":
        kind = np.iinfo if distance.dtype.kind == "i" else np.finfo
        columns["distance"] = Column(xp.where(here, distance, kind(distance.dtype).max))
    else:
        columns["distance"] = Column(distance, missing)
    if result.predecessor is not None:
        predecessor = result.predecessor[vertex]
        known = xp.where(here, predecessor, 0)
        if unreached == "cugraph":
            none = ~here | (vertex == result.source)
            ids = graph.ids_at(known)
            columns["predecessor"] = Column(xp.where(none, ids.dtype.type(NO_PREDECESSOR), ids))
        else:
            columns["predecessor"] = Column(graph.ids_at(known), missing)
    return columns


def shown_distance(graph: Graph, distance: Array, missing: Array | None = None) -> Array:
    """Return distances in the type that users get: those of integer weights are integers, whatever they were summed in.

    Parameters
    ----------
    graph : Graph
    distance : array
        Hops, or weighted distances.
    missing : bool array, optional
        Where there is none, because the vertex was not reached; None: nowhere.
    """
    if is_hops(distance.dtype) or not graph.returns_integers:
        return distance
    if missing is not None:
        distance = namespace(distance).where(missing, distance.dtype.type(0), distance)
    return distance.astype(graph.distance_dtype)


def table_of(graph: Graph, result: Traversal, query: Query):
    """Return the reached vertices of one traversal as a pyarrow table ``source, vertex, distance[, predecessor]``."""
    return arrow_table(columns_of(graph, result, query, with_source=True))


def arrow_table(columns: dict[str, Column]):
    """Return columns as a pyarrow table, in host memory."""
    import pyarrow

    return pyarrow.table({name: _arrow(column) for name, column in columns.items()})


def paths(frame, targets):
    """Reconstruct the shortest paths to all targets at once.

    Parameters
    ----------
    frame : pandas.DataFrame or cudf.DataFrame
        What ``bfs``, ``sssp``, ``bfs_many`` or ``sssp_many`` returned, with predecessors and ``unreached="omit"``.
    targets : sequence of ids
        Where the paths end. With several sources, each source gets a path to each target.

    Returns
    -------
    pandas.DataFrame or cudf.DataFrame
        Columns ``[source,] target, position, vertex``: a row for each vertex of each path, position 0 at the source.
        Targets without a path have no row.

    Raises
    ------
    InputError
        The frame has no predecessors, or lacks a vertex that a path leads through (it was cut to targets).

    Examples
    --------
    >>> import numpy as np
    >>> graph = graph_from_edges(np.array([0, 1]), np.array([1, 2]))
    >>> paths(bfs(graph, 0), [2])
       target  position  vertex
    0       2         0       0
    1       2         1       1
    2       2         2       2
    """
    if "predecessor" not in frame.columns:
        raise InputError("paths need predecessors: traverse with predecessors=True")
    if frame["distance"].isna().any():
        raise InputError("paths need a frame with unreached='omit'")
    cudf_frame = hasattr(frame, "to_arrow")
    xp = cuda.cp if cudf_frame else np
    library = _library("cuda" if cudf_frame else "cpu")
    many = "source" in frame.columns
    keys = ["source", "vertex"] if many else ["vertex"]
    rows = frame[[*keys, "predecessor"]].drop_duplicates(subset=keys).reset_index(drop=True)
    # Row number of each row's predecessor, by a join on (source, vertex).
    numbered = rows[keys].assign(row=xp.arange(len(rows)))
    back = rows.assign(at=xp.arange(len(rows))).merge(
        numbered.rename(columns={"vertex": "predecessor"}), on=[k.replace("vertex", "predecessor") for k in keys]
    )
    previous = xp.full(len(rows), -1, np.int64)
    previous[xp.asarray(back["at"])] = xp.asarray(back["row"])
    wanted = library.DataFrame({"vertex": library.Series(list(dict.fromkeys(targets)), dtype=rows["vertex"].dtype)})
    ends = xp.sort(xp.asarray(numbered.merge(wanted, on="vertex")["row"]))
    walks, owners = [ends], [xp.arange(ends.size)]
    at, owner = ends, owners[0]
    while at.size:
        if len(walks) > len(rows) + 1:
            raise InputError("the predecessors of this frame run in a circle; it was not made by this library")
        before = previous[at]
        if bool((before < 0).any()):
            raise InputError("a path leads through a vertex that is not in the frame; traverse without targets=")
        onward = before != at
        at, owner = before[onward], owner[onward]
        walks.append(at)
        owners.append(owner)
    step = xp.concatenate([xp.full(o.size, i) for i, o in enumerate(owners)])
    owner, walk = xp.concatenate(owners), xp.concatenate(walks)
    order = xp.lexsort(xp.stack([-step, owner]))
    owner, walk, step = owner[order], walk[order], step[order]
    length = step[xp.searchsorted(owner, xp.arange(ends.size))]  # the first entry of each walk took the most steps
    found = {"source": rows["source"].take(ends[owner]).reset_index(drop=True)} if many else {}
    found["target"] = rows["vertex"].take(ends[owner]).reset_index(drop=True)
    found["position"] = library.Series(length[owner] - step)
    found["vertex"] = rows["vertex"].take(walk).reset_index(drop=True)
    return library.DataFrame(found)


def traversals_of(graph: Graph, frame, algorithm: str | None = None):
    """Turn a frame of ``bfs`` or ``sssp`` (or of their ``_many``) back into traversals over vertex numbers.

    Of integer distances, int64 are weighted if the graph has integer weights, and all others are hops, unless ``algorithm``
    says what they are.

    Yields
    ------
    Traversal
        One for each source, in the order of the frame.

    Raises
    ------
    InputError
        Rows that no traversal can have: a vertex twice, no source, a vertex that is not in the graph.
    """
    import pandas

    table = frame.to_arrow().to_pandas() if hasattr(frame, "to_arrow") else frame
    missing = {"vertex", "distance", "predecessor"} - set(table.columns)
    if missing:
        raise InputError(f"the frame has no column {sorted(missing)[0]!r}: traverse with predecessors=True")
    table = table[table["distance"].notna()]
    groups = [(None, table)] if "source" not in table.columns else table.groupby("source", sort=False)
    for source, rows in groups:
        try:
            vertex = graph.numbers_of(rows["vertex"], "vertex")
            predecessor = graph.numbers_of(rows["predecessor"], "predecessor")
        except UnknownVertexError as error:
            raise InputError(str(error)) from None
        if pandas.Series(vertex).duplicated().any():
            raise InputError("the frame holds a vertex twice for one source")
        distance = rows["distance"].to_numpy()
        if distance.dtype.kind == "i":
            weighted = distance.dtype.itemsize == 8 if algorithm is None else algorithm == "sssp"
            distance = distance.astype(np.int64 if weighted and graph.integer_weights else np.int32)
        if source is None:
            roots = vertex[predecessor == vertex]
            if roots.size != 1:
                raise InputError(f"the frame has {roots.size} vertices that are their own predecessor, a source is one")
            number = int(roots[0])
        else:
            number = int(graph.numbers_of([source])[0])
        all_distances = np.full(graph.n_vertices, unreached_of(distance.dtype), distance.dtype)
        all_predecessors = np.full(graph.n_vertices, NO_PREDECESSOR, np.int64)
        all_distances[vertex], all_predecessors[vertex] = distance, predecessor
        if all_distances.dtype == np.int64:
            all_distances = narrowed(graph, all_distances)
        xp = namespace(graph.offsets)
        yield Traversal(
            algorithm="bfs" if is_hops(distance.dtype) else "sssp",
            source=number,
            distance=xp.asarray(all_distances),
            predecessor=xp.asarray(all_predecessors.astype(graph.targets.dtype)),
            limit=None,
            strategy="",
            rounds=0,
        )


def concatenated(frames: list, device: str):
    """Frames one below the other, rows numbered anew."""
    return _library(device).concat(frames, ignore_index=True)


def host_frame(records: list[dict]):
    """Return records as a pandas frame."""
    import pandas

    return pandas.DataFrame(records)


def check_unreached(unreached: str, graph: Graph) -> None:
    """Raise InputError unless unreached vertices can be shown that way."""
    if unreached not in UNREACHED_CHOICES:
        raise InputError(f"unreached={unreached!r} is none of {', '.join(map(repr, UNREACHED_CHOICES))}")
    if unreached == "cugraph" and (graph.has_string_ids or graph.ids.dtype.kind != "i"):
        raise InputError("unreached='cugraph' marks a missing predecessor by -1, which needs signed integer ids")


def _library(device: str):
    if device == "cuda":
        import cudf

        return cudf
    import pandas

    return pandas


def frame_from(columns: dict[str, Column], device: str):
    """Return columns as a frame of the device's library."""
    return _library(device).DataFrame({name: _series(column, device) for name, column in columns.items()})


def _series(column: Column, device: str):
    library = _library(device)
    if device == "cuda":
        if not hasattr(column.values, "dtype"):
            return library.Series.from_arrow(_arrow(column))
        series = library.Series(column.values)
        return series if column.is_null is None else series.mask(library.Series(column.is_null))
    if not hasattr(column.values, "dtype"):
        return library.Series(_arrow(column).to_pandas())
    if column.is_null is None:
        return library.Series(column.values)
    nullable = library.array(column.values, dtype=str(column.values.dtype).capitalize().replace("Ui", "UI"))
    nullable[column.is_null] = library.NA
    return library.Series(nullable)


def _arrow(column: Column):
    """As a pyarrow array in host memory."""
    import pyarrow
    import pyarrow.compute

    is_null = None if column.is_null is None else to_host(column.is_null)
    if hasattr(column.values, "dtype"):
        return pyarrow.array(to_host(column.values), mask=is_null)
    if is_null is None:
        return column.values
    return pyarrow.compute.if_else(pyarrow.array(~is_null), column.values, None)
