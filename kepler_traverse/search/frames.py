"""Results as data frames: pandas on the CPU, cuDF on a GPU, pyarrow for files. Vertex numbers are
converted to ids here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .. import arguments, cuda
from .._arrays import (
    EXACT_BELOW,
    NO_PREDECESSOR,
    Array,
    at_most,
    is_hops,
    is_reached,
    namespace,
    positions_in_groups,
    to_host,
    unreached_value,
)
from .._uninterrupted import load
from ..cpu import edge_rows as edge_rows_on_cpu
from ..cpu.path_walk import CIRCLE, NO_EDGE, count_back, write_back
from ..cuda import edge_rows as edge_rows_on_gpu
from ..errors import InputError, PrecisionError, UnknownVertexError, option_text
from ..graph import Graph, has_vertex
from ..graph.closed import identifying_numbers, listed_vertices, where_paths_end
from ..protocols import EdgeRowsBackend, Frame, Ids, VertexId
from ..runtime.concurrency import SharedIterator
from .algorithms import BFS
from .exact import narrow_distances
from .query import Query
from .results import Traversal

_QUERY = "kepler_traverse"  # the key of the record in ``attrs`` of a frame
UNREACHED_CHOICES = ("omit", "null", "cugraph")


class Column:
    """One column of a frame to be returned.

    - ``values``: an array of NumPy or CuPy, or pyarrow strings.
    - ``is_null``: bool array of the same length; True where a row has no value. None: all have one.
    - ``numbers``: int array, NumPy: the vertex numbers whose ids the values are, where a checksum
      needs them; else None.
    """

    def __init__(
        self, values: Any, is_null: Array | None = None, numbers: np.ndarray | None = None
    ) -> None:
        self.values = values
        self.is_null = is_null
        self.numbers = numbers

    @classmethod
    def of_vertices(cls, graph: Graph, numbers: np.ndarray) -> Column:
        """Return a column of the ids of vertices, on the device of the graph. ``numbers`` are
        vertex numbers, on either device.
        """
        ids = graph.ids_at(namespace(graph.offsets).asarray(numbers))
        # A closed vertex has two numbers, of which checksums take one in place of both.
        return cls(ids, numbers=identifying_numbers(graph, numbers))


def labels_at(labels: list[Any], places: np.ndarray) -> Column:
    """Return a column of labels, in host memory.

    ``labels`` are integers or strings, and ``places``, int64, has the position in that list of the
    label of each row.
    """
    pyarrow = load("pyarrow")
    selected = pyarrow.array(labels).take(pyarrow.array(places))
    return Column(selected if pyarrow.types.is_string(selected.type) else selected.to_numpy())


class FrameKind(NamedTuple):
    """Functions that make frames of one kind: the data frames of a device, or pyarrow tables."""

    make: Callable[[dict[str, Column]], Any]  # ``make(columns)`` returns a frame
    concatenate: Callable[[list[Any]], Any]  # ``concatenate(frames)`` returns one frame


def frames_on(device: str) -> FrameKind:
    """Return the functions that make data frames of a device: of pandas for "cpu", of cuDF for
    "cuda".
    """
    return FrameKind(
        lambda columns: frame_from(columns, device),
        lambda frames: _library(device).concat(frames, ignore_index=True),
    )


def arrow_tables() -> FrameKind:
    """Return the functions that make pyarrow tables, in host memory."""
    return FrameKind(arrow_table, load("pyarrow").concat_tables)


def frame_of_one(plan: Any, source: VertexId, unreached: str) -> Any:
    """Run ``plan``, a ``Plan``, from the vertex with the id ``source`` and return its frame.

    ``unreached`` says how vertices without a path are shown, one of ``UNREACHED_CHOICES``.
    """
    check_unreached(unreached, plan.graph)
    # The traversal is not cut at the limit: ``make_columns`` leaves out what is beyond it, and
    # still names the predecessors of the rest.
    result = plan.run_number(int(plan.graph.to_numbers([source])[0]), cut=False)
    return attach_query(
        frame_from(make_columns(plan.graph, result, plan.query, unreached), plan.graph.device), plan
    )


def attach_query(frame: Frame, plan: Any) -> Any:
    """Record in the ``attrs`` of a frame, if it has them, which query of ``plan`` it answers, for
    ``certify``; return the frame.

    Most pandas operations preserve ``attrs``.
    """
    if hasattr(frame, "attrs"):
        query = plan.query
        frame.attrs[_QUERY] = {
            "algorithm": plan.algorithm,
            "limit": query.limit,
            "targets": query.targets is not None,
        }
    return frame


class Selection:
    """The vertices whose records a result holds, of one source or of several that have the same
    ones.

    - ``mask``: bool of shape (n_vertices,), or (n_targets,) if only targets were asked for; True for
      a vertex of the selection.
    - ``number``: vertex numbers, ascending, of shape (size,); None for all vertices.
    - ``size``: how many vertices are selected.
    - ``is_shared``: whether several sources have this selection.
    - ``_empty``: ``empty(size, dtype)`` returns an array in host memory that is not filled.
    """

    def __init__(
        self,
        graph: Graph,
        mask: Array,
        number: Array | None,
        size: int,
        empty: Callable[..., np.ndarray],
    ) -> None:
        self.mask = mask
        self.number = number
        self.size = size
        self._graph = graph
        self._empty = empty
        self.is_shared = False

    @cached_property
    def ids(self) -> Any:
        """The ids of the vertices, in their order. Several columns may share the array, so that no
        caller may change it.
        """
        if self.number is None:
            return self._graph.ids
        return self._graph.ids_at(self.number)

    @cached_property
    def numbers(self) -> Array:
        """The vertex numbers, as an array also where all vertices are selected."""
        if self.number is None:
            return namespace(self.mask).arange(self.size)
        return self.number

    def take(self, values: Array) -> Array:
        """Return the values of the selected vertices from an array over all vertices; that array
        itself if all are selected.
        """
        if self.number is None:
            return values
        if namespace(values) is not np:
            return values[self.number]
        # Numbers are in range; with mode="raise" NumPy would buffer the output.
        out = self._empty(self.size, values.dtype)
        return np.take(values, self.number, out=out, mode="clip")


def select(
    graph: Graph,
    distance: Array,
    limit: float | None = None,
    targets: np.ndarray | None = None,
    last: Selection | None = None,
    empty: Callable[..., np.ndarray] | None = None,
) -> Selection:
    """Return the vertices that a search has reached within a limit, or those of the targets that it
    has.

    Parameters
    ----------
    graph : Graph
    distance : array of shape (n_vertices,)
    limit : float, optional
        The largest distance of a selected vertex.
    targets : int64 array, optional
        Vertex numbers, ascending: only these are selected.
    last : Selection, optional
        The selection of another source, in host memory. It is returned if both are equal.
    empty : callable, optional
        ``empty(size, dtype)`` returns host memory for masks and values. With it ``number`` may be
        None, for all vertices.
    """
    xp = namespace(distance)
    # A closed vertex, through which no path leads, has two numbers: it is listed by the one where
    # paths end. ``listed_vertices`` is None if no vertex is closed, so that all are listed.
    if targets is None:
        targets = listed_vertices(graph)
    if xp is np:
        # as ``is_reached``, but into the memory of the caller
        mask = (empty or np.empty)(distance.size, bool)
        np.not_equal(distance, unreached_value(distance.dtype), out=mask)
    else:
        mask = is_reached(distance)
    if limit is not None:
        mask &= at_most(distance, limit)
    if targets is not None:
        targets = xp.asarray(targets)
        mask = mask[targets]

    # In host memory: share the selection of another source, or avoid the numbers of all vertices.
    candidates: Any = targets
    if xp is np:
        size = int(np.count_nonzero(mask))
        if (
            last is not None
            and last.size == size
            and (size == mask.size or np.array_equal(last.mask, mask))
        ):
            last.is_shared = True
            return last
        # All are selected: no new array of numbers is needed.
        if size == mask.size and (candidates is not None or empty is not None):
            return Selection(graph, mask, candidates, size, empty or np.empty)

    if candidates is None:
        number = xp.flatnonzero(mask)
    else:
        number = candidates[mask]
    return Selection(graph, mask, number, number.size, empty or np.empty)


def make_columns(
    graph: Graph,
    result: Traversal,
    query: Query,
    unreached: str = "omit",
    selection: Selection | None = None,
    names: Collection[str] = ("vertex", "distance", "predecessor"),
) -> dict[str, Column]:
    """Return the records of one traversal as columns ``vertex, distance[, predecessor]`` by name,
    ordered by vertex.

    Parameters
    ----------
    graph : Graph
    result : Traversal
    query : Query
        Its limit and its targets select the vertices.
    unreached : {"omit", "null", "cugraph"}
        Whether unreached vertices have no record, nulls, or the marks of cuGraph. With "cugraph",
        types and order of the columns are those of cuGraph's functions.
    selection : Selection, optional
        The vertices, if they are known. Columns may then share memory with it and with the
        traversal.
    names : collection of str
        The columns that are needed.
    """
    if unreached != "omit":
        return {
            name: column
            for name, column in _columns_of_all(graph, result, query, unreached).items()
            if name in names
        }
    # Columns of reached vertices alone.
    vertices = selection or select(graph, result.distance, query.limit, query.targets)
    numbers = identifying_numbers(graph, vertices.numbers)
    columns = {"vertex": Column(vertices.ids, numbers=numbers)}
    if "distance" in names:
        columns["distance"] = Column(as_returned_distance(graph, vertices.take(result.distance)))
    if result.predecessor is not None and "predecessor" in names:
        columns["predecessor"] = Column(graph.ids_at(vertices.take(result.predecessor)))
    return columns


def _columns_of_all(
    graph: Graph, result: Traversal, query: Query, unreached: str
) -> dict[str, Column]:
    """Return the columns of all vertices, or of all targets of the query, by name. ``result`` has
    the distances, and perhaps predecessors. The rows of vertices that are not reached have nulls,
    or the marks of cuGraph, as ``unreached`` says: "null" or "cugraph".
    """
    xp = namespace(result.distance)
    reached = result.reached
    if query.limit is not None:
        reached &= at_most(result.distance, query.limit)
    targets = listed_vertices(graph) if query.targets is None else query.targets
    if targets is None:
        vertex = xp.arange(graph.n_vertices)
    else:
        vertex = xp.asarray(targets)
    is_reached = reached[vertex]
    columns = {"vertex": Column.of_vertices(graph, vertex)}
    if unreached == "cugraph":
        columns["distance"] = Column(
            cugraph_distances(
                graph, result.distance[vertex], is_reached, is_hops(result.distance.dtype)
            )
        )
        if not is_hops(result.distance.dtype):
            # cugraph.sssp has the distance first, cugraph.bfs the vertex
            columns["vertex"] = columns.pop("vertex")
    else:
        columns["distance"] = Column(
            as_returned_distance(graph, result.distance[vertex], ~is_reached), ~is_reached
        )
    if result.predecessor is not None:
        # any vertex in place of -1, which has no id; a mask hides it below
        numbers = xp.where(is_reached, result.predecessor[vertex], 0)
        if unreached == "cugraph":
            # A source, which is its own predecessor here, has none in cuGraph.
            source_end = int(where_paths_end(graph, np.array([result.source]))[0])
            has_none = ~is_reached | (vertex == source_end)
            ids = graph.ids_at(numbers)
            columns["predecessor"] = Column(xp.where(has_none, ids.dtype.type(NO_PREDECESSOR), ids))
        else:
            columns["predecessor"] = Column(graph.ids_at(numbers), ~is_reached)
    return columns


def as_returned_distance(graph: Graph, distance: Array, missing: Array | None = None) -> Array:
    """Return distances in the type of the result: those of integer weights become integers, in
    whatever type they were summed. They stay floats if the user has chosen a float type for them.

    ``missing``, bool, is True for vertices that were not reached, where the result has no meaning;
    None means that all were reached.
    """
    if is_hops(distance.dtype) or not graph.returns_integers:
        return distance
    if missing is not None:  # infinity is no integer
        distance = namespace(distance).where(missing, distance.dtype.type(0), distance)
    return distance.astype(graph.distance_dtype)


def cugraph_distance_dtype(graph: Graph, hops: bool) -> np.dtype:
    """Return the type that distances of a graph have in cuGraph. ``hops`` says whether they are
    numbers of edges.

    Hops have the type of the ids there. Other distances have the type of the weights, if these are
    floats. Integer weights of up to 32 bits in the edge list become float32, and wider ones, or
    those of an unknown type, float64.
    """
    if hops:
        ids: Any = graph.ids
        return np.dtype(np.int64 if ids.dtype.itemsize == 8 else np.int32)
    if not graph.returns_integers:
        return graph.distance_dtype
    # the name of the type of the weights in the edge list, such as "int32"; "" if it is not known
    source = graph.report.weight_source
    return np.dtype(np.float32 if source and np.dtype(source).itemsize <= 4 else np.float64)


def cugraph_distances(graph: Graph, distance: Array, reached: Array, hops: bool) -> Array:
    """Return distances in cuGraph's type, with its largest value where a vertex was not reached.

    ``reached`` is a mask of the same shape, and ``hops`` says whether distances are numbers of
    edges.

    Raises PrecisionError: that type does not hold an integer distance exactly.
    """
    xp = namespace(distance)
    dtype = cugraph_distance_dtype(graph, hops)
    if dtype.kind == "i":
        largest = np.iinfo(dtype).max
    else:
        largest = np.finfo(dtype).max
    # Unreached vertices have infinity or -1. It gives way to 0, so that it is neither taken for the
    # farthest distance nor converted.
    distance = xp.where(reached, distance, distance.dtype.type(0))
    if not hops and graph.returns_integers and distance.size:
        farthest = max(int(distance.max()), -int(distance.min()))
        if farthest >= EXACT_BELOW[dtype]:
            raise PrecisionError(
                f"a distance is {farthest:,}. cuGraph's type for these weights, {dtype}, does not hold every integer from "
                f"{EXACT_BELOW[dtype]:,} on. Take unreached='null' for exact integer distances"
                + (", or weights of 64 bits" if dtype == np.float32 else "")
            )
    return xp.where(reached, distance.astype(dtype), dtype.type(largest))


def arrow_table(columns: dict[str, Column]) -> Any:
    """Return columns by name as a pyarrow table, in host memory."""
    pyarrow = load("pyarrow")
    return pyarrow.table({name: arrow_array(column) for name, column in columns.items()})


def arrow_reader(schema: Any, tables: Iterator[Any]) -> Any:
    """Return a ``pyarrow.RecordBatchReader`` with a schema over pyarrow tables. The iterator makes
    each table when the reader needs it.
    """
    pyarrow = load("pyarrow")
    return pyarrow.RecordBatchReader.from_batches(schema, _Batches(tables))


class _Batches(SharedIterator):
    """The record batches of pyarrow tables, one after the other, which any threads may read."""

    def __init__(self, tables: Iterator[Any]) -> None:
        super().__init__("the stream")
        self._tables = tables
        self._pending: list[Any] = []

    def _make_next(self) -> Any:
        """Return the next batch; raise StopIteration after the last one."""
        while not self._pending:
            self._pending = next(self._tables).to_batches()
        # The batch is removed, so that its memory can be freed before the next table is made.
        return self._pending.pop(0)


def paths(frame: Frame, targets: Ids, *, graph: Graph | None = None, edges: bool = False) -> Any:
    """Return the paths to all targets at once from the frame of a traversal: a frame with a row per
    vertex of a path, and columns ``[source,] target, position, vertex[, edge]``.

    ``frame`` has predecessors, and no rows of unreached vertices. ``targets`` are ids. With
    ``edges``, ``edge`` is the row of the edge list that leads to the vertex; ``graph`` is then
    needed. ``api.path_frames.paths`` describes it for users.

    Raises InputError (the frame has not this form) or UnknownVertexError (a target is in no row, or
    no vertex).
    """
    check_frame("frame", frame)
    if arguments.flag("edges", edges):
        if graph is None:
            raise InputError("edges=True needs graph=, the graph that was traversed")
        arguments.instance("graph", graph, Graph, "it is the one that was traversed")
        if graph.edge_rows is None:
            raise InputError("the graph does not know its rows; build it with edge_ids=True")
    if frame["distance"].isna().any() or has_cugraph_marks(frame):
        raise InputError("paths need a frame with unreached='omit'")
    is_cudf = hasattr(frame, "to_arrow")
    xp = cuda.cp if is_cudf else np
    library = _library("cuda" if is_cudf else "cpu")
    has_sources = "source" in frame.columns
    keys = ["source", "vertex"] if has_sources else ["vertex"]
    rows = frame[[*keys, "predecessor"]].drop_duplicates(subset=keys).reset_index(drop=True)

    # The number of the row of each row's predecessor, by a join on (source, vertex): walks from row
    # to row follow.
    row_numbers = rows[keys].assign(row=xp.arange(len(rows)))
    join_keys = ["source", "predecessor"] if has_sources else ["predecessor"]
    joined = rows.assign(at=xp.arange(len(rows))).merge(
        row_numbers.rename(columns={"vertex": "predecessor"}), on=join_keys
    )
    previous = xp.full(len(rows), -1, np.int64)  # -1: the predecessor has no row
    previous[xp.asarray(joined["at"])] = xp.asarray(joined["row"])

    # Paths are walked back from the rows of the targets.
    requested = library.DataFrame(
        {"vertex": _targets_in_frame(rows["vertex"], targets, graph, library)}
    )
    ends = xp.sort(xp.asarray(row_numbers.merge(requested, on="vertex")["row"]))
    # A step is a vertex of a path: ``steps`` has its row, and ``path_of_step`` the number of its
    # path.
    sizes, walked_rows = _walk_back(to_host(previous), to_host(ends))
    steps = xp.asarray(walked_rows)
    path_of_step = xp.asarray(np.repeat(np.arange(sizes.size), sizes))

    if has_sources:
        columns = {"source": rows["source"].take(ends[path_of_step]).reset_index(drop=True)}
    else:
        columns = {}
    columns["target"] = rows["vertex"].take(ends[path_of_step]).reset_index(drop=True)
    columns["position"] = library.Series(xp.asarray(positions_in_groups(sizes)))
    columns["vertex"] = rows["vertex"].take(steps).reset_index(drop=True)
    if edges:
        # No edge leads to the first vertex of a path, which is where the number of the path
        # changes.
        traversed: Any = graph
        if path_of_step.size:
            is_first = path_of_step != xp.concatenate([xp.full(1, -1), path_of_step[:-1]])
        else:
            is_first = xp.zeros(0, bool)
        device = "cuda" if is_cudf else "cpu"
        columns["edge"] = _series(
            Column(_rows_of_steps(traversed, rows["vertex"], steps, is_first), is_first), device
        )
    return library.DataFrame(columns)


def _walk_back(previous: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of rows of each path, int64, and the rows of all paths, path by path from
    its first vertex on.

    ``ends`` has the row of the frame at which each path ends. ``previous`` has, for each row, the
    row of its predecessor, -1 where there is none. A source is its own predecessor, at which a path
    begins.

    Raises InputError: a predecessor has no row, or predecessors lead around a circle.
    """
    sizes = np.zeros(ends.size, np.int64)
    # a table of predecessors with one row, in which all paths are
    predecessor = previous[None]
    first = np.zeros(ends.size, np.int64)
    # It writes the sizes, or in place of one ``NO_EDGE``, where a walk comes to a row with -1, or
    # ``CIRCLE``.
    count_back(predecessor, first, ends, sizes)
    if (sizes == NO_EDGE).any():
        raise InputError(
            "a path leads through a vertex that is not in the frame; "
            "traverse without targets= and cutoff="
        )
    if (sizes == CIRCLE).any():
        raise InputError(
            "the predecessors of this frame run in a circle; it was not made by this library"
        )
    rows = np.empty(int(sizes.sum()), np.int64)
    write_back(predecessor, first, ends, sizes, rows)
    return sizes, rows


def _rows_of_steps(graph: Graph, vertices: Any, walk: Array, begins: Array) -> Array:
    """Return, for each vertex of some paths, the row of the edge list of the edge that leads to it,
    int64 of shape (steps,); 0 where a path begins.

    ``walk`` has the vertices of the paths, path by path, as positions in ``vertices``, a series of
    ids. ``begins``, bool, is True at the first vertex of each path. Both have the shape (steps,).

    Raises InputError: two vertices in a row are joined by no edge of the graph.
    """
    xp = namespace(begins)
    if hasattr(vertices, "to_arrow"):
        ids = vertices.to_arrow().to_pylist()
    else:
        ids = vertices
    id_numbers = graph.to_numbers(ids, "vertex")
    index_dtype = graph.targets.dtype
    numbers = id_numbers.astype(index_dtype)[to_host(walk)]
    # A closed vertex has a second number, to which edges lead.
    end_numbers = where_paths_end(graph, id_numbers).astype(index_dtype)[to_host(walk)]

    # Each step but the first of a walk is an edge, from the vertex before it.
    edge_steps = np.flatnonzero(~to_host(begins))  # the numbers of these steps
    on_gpu = graph.device == "cuda"
    backend: EdgeRowsBackend = edge_rows_on_gpu if on_gpu else edge_rows_on_cpu
    move = cuda.cp.asarray if on_gpu else np.asarray  # to the device of the graph
    tails = move(numbers[edge_steps - 1])
    heads = move(end_numbers[edge_steps])
    edges = to_host(
        backend.find_edges(graph.offsets, graph.targets, tails, heads, np.dtype(np.int64))
    )
    if (edges < 0).any():  # below 0: there is no such edge
        step = int(edge_steps[int((edges < 0).argmax())])
        u, v = (graph.ids_at([int(number)])[0] for number in numbers[step - 1 : step + 1])
        raise InputError(
            f"the frame has a step from {u} to {v}, which is no edge of "
            "the graph; give the graph of the frame"
        )

    edge_rows: Any = graph.edge_rows
    rows = np.zeros(numbers.size, np.int64)
    rows[edge_steps] = to_host(edge_rows[move(edges)])
    return xp.asarray(rows)


def check_frame(name: str, frame: Frame) -> None:
    """Raise InputError unless a frame has the columns of a result with predecessors, with all ids
    of one kind and with numbers as distances. ``name`` is what errors call the frame.
    """
    if not hasattr(frame, "columns") or not hasattr(frame, "merge"):
        raise InputError(
            f"{name} must be a data frame that bfs, sssp or a function for many sources returned, not "
            f"{arguments.describe(frame)}"
        )
    # What a result with predecessors has; ``source`` is not there if it has one source alone.
    missing = [
        column for column in ("distance", "predecessor", "vertex") if column not in frame.columns
    ]
    if missing:
        raise InputError(
            f"the {name} has no column {missing[0]!r}: traverse with predecessors=True, and from many sources with "
            "result='predecessors'"
        )

    kinds = {
        column: _kind_of_ids(frame[column])
        for column in ("source", "vertex", "predecessor")
        if column in frame.columns
    }
    if len(set(kinds.values())) > 1 or "" in kinds.values():
        types = ", ".join(f"{column} is {frame[column].dtype}" for column in kinds)
        raise InputError(f"the {name} must hold ids of one type, integers or strings: {types}")
    if getattr(frame["distance"].dtype, "kind", "") not in ("i", "u", "f"):
        raise InputError(
            f"the {name} must hold numbers as distances, not {frame['distance'].dtype}"
        )


def has_cugraph_marks(frame: Frame) -> bool:
    """Return whether a frame marks missing predecessors by -1, as ``unreached="cugraph"`` does."""
    if _kind_of_ids(frame["predecessor"]) != "integers":
        return False
    has_mark = bool((frame["predecessor"] == NO_PREDECESSOR).any())
    # A graph may have a vertex -1, which is then the predecessor.
    return has_mark and not bool((frame["vertex"] == NO_PREDECESSOR).any())


def _kind_of_ids(column: Any) -> str:
    """Return "integers" or "strings", by the type of a column; "" if it cannot hold ids."""
    code = getattr(column.dtype, "kind", "")
    if code in ("i", "u"):
        return "integers"
    if code == "O" or str(column.dtype) in ("str", "string"):
        return "strings"
    return ""


def _targets_in_frame(vertex: Any, targets: Ids, graph: Graph | None, library: Any) -> Any:
    """Return the distinct targets that occur in a frame's column of vertices, as a series of
    ``library``, pandas or cuDF.

    Raises UnknownVertexError: a target is no vertex of ``graph``; without a graph, it is in no row
    of the frame.
    """
    # The types of the targets must be that of the ids of the frame.
    requested = arguments.ids("targets", targets)
    if isinstance(requested, np.ndarray):
        requested = requested.tolist()
    kind = _kind_of_ids(vertex)
    id_type = int if kind == "integers" else str
    for target in requested:
        if not isinstance(target, id_type) or isinstance(target, bool):
            raise UnknownVertexError(
                f"target {arguments.describe(target)} is not a vertex: "
                f"the ids of this frame are {kind}"
            )
    # With a graph, an id that is no vertex raises an error; a target that is in no row has no path.
    if graph is not None:
        arguments.instance("graph", graph, Graph, "it is the one that was traversed")
        graph.to_numbers(requested, "target")

    # Ids that the type of the column cannot hold are in no row. They are left out, since a series
    # of that type cannot be made of them.
    requested = list(dict.fromkeys(requested))
    if id_type is int:
        limits = np.iinfo(str(vertex.dtype).lower())  # of nullable types, too, as "Int64"
        possible = [target for target in requested if limits.min <= target <= limits.max]
    else:
        possible = [target for target in requested if arguments.is_encodable(target)]
    possible_targets = library.Series(possible, dtype=vertex.dtype)
    present = possible_targets[possible_targets.isin(vertex)]

    # Without a graph, both look alike: the error says so.
    if graph is None and len(present) < len(requested):
        if hasattr(present, "to_arrow"):
            present_ids = set(present.to_arrow().to_pylist())
        else:
            present_ids = set(present.tolist())
        missing = [target for target in requested if target not in present_ids]
        shown = ", ".join(map(arguments.describe, missing[:10]))
        if len(missing) > 10:
            shown += ", ..."
        raise UnknownVertexError(
            f"{len(missing)} target{'s are' if len(missing) > 1 else ' is'} in no row of the frame: {shown}. No path leads "
            "there, or there is no such vertex: leave them out, or give graph= to have no rows for targets without a path"
        )
    return present


def get_query(frame: Frame) -> dict[str, Any]:
    """Return the record that ``attach_query`` made in a frame; an empty dict if there is none, as
    after some operations of pandas.
    """
    record = getattr(frame, "attrs", {}).get(_QUERY)
    return record if isinstance(record, dict) else {}


def holds_hops(graph: Graph, frame: Frame) -> bool:
    """Return whether the distances of a frame are hops, by its record.

    Without a record, integers are taken as hops, except int64 distances where the weights of the
    graph are integers.
    """
    dtype: Any = frame["distance"].dtype
    if dtype.kind not in "iu":
        return False
    algorithm = get_query(frame).get("algorithm")
    if algorithm is not None:
        return algorithm == BFS.name
    has_integer_weights = graph.weights is not None and graph.returns_integers
    return dtype.itemsize < 8 or not has_integer_weights


def to_traversals(graph: Graph, frame: Frame, limit: float | None = None) -> Any:
    """Yield a ``Traversal`` per source, in their order, from a frame of ``bfs`` or ``sssp`` or of
    their functions for many sources. It is the inverse of making the frame.

    ``limit`` is that of the traversals, in which vertices without a row are unreached.

    Raises InputError: the frame is no result of a traversal: a vertex occurs twice or is not in the
    graph, or there is no source.
    """
    pandas = load("pandas")
    are_hops = holds_hops(graph, frame)
    table: Any = frame
    if hasattr(table, "to_arrow"):
        table = table.to_arrow().to_pandas()
    table = table[table["distance"].notna()]  # a null stands for an unreached vertex
    if "source" not in table.columns:
        groups = [(None, table)]
    else:
        groups = table.groupby("source", sort=False)
    for source, rows in groups:
        try:
            vertex = graph.to_numbers(rows["vertex"], "vertex")
            predecessor = graph.to_numbers(rows["predecessor"], "predecessor")
        except UnknownVertexError as error:
            raise InputError(str(error)) from None
        if pandas.Series(vertex).duplicated().any():
            raise InputError("the frame holds a vertex twice for one source")

        distance = rows["distance"].to_numpy()
        if distance.dtype.kind in "iu":
            distance = distance.astype(np.int32 if are_hops else np.int64)
        else:
            distance = _as_weights(graph, distance)

        # A frame of one source does not name it: it is the vertex that is its own predecessor.
        if source is None:
            roots = vertex[predecessor == vertex]
            if roots.size != 1:
                raise InputError(
                    f"the frame has {roots.size} vertices that are their own "
                    "predecessor, a source is one"
                )
            source_number = int(roots[0])
        else:
            source_number = int(graph.to_numbers([source])[0])

        # From rows of reached vertices to arrays over all vertices.
        all_distances = np.full(graph.n_vertices, unreached_value(distance.dtype), distance.dtype)
        all_predecessors = np.full(graph.n_vertices, NO_PREDECESSOR, np.int64)
        vertex_ends = where_paths_end(graph, vertex)  # another number for closed vertices alone
        all_distances[vertex_ends] = distance
        all_predecessors[vertex_ends] = predecessor
        # If a source is closed, its row stands for two numbers: paths from it begin at the first,
        # and end at the second, which is set above. The first one is set here.
        if (predecessor[vertex == source_number] == source_number).any():
            all_distances[source_number] = 0
            all_predecessors[source_number] = source_number
        # Integer distances return to the type in which searches sum the weights.
        if all_distances.dtype == np.int64:
            all_distances = narrow_distances(graph, all_distances)

        xp = namespace(graph.offsets)
        yield Traversal(
            algorithm="bfs" if is_hops(distance.dtype) else "sssp",
            source=source_number,
            distance=xp.asarray(all_distances),
            predecessor=xp.asarray(all_predecessors.astype(graph.targets.dtype)),
            limit=limit,
            strategy="",
            rounds=0,
        )


def _as_weights(graph: Graph, distance: np.ndarray) -> np.ndarray:
    """Return weighted distances in the type of the graph's weights, in which searches sum them. A
    file or an operation of pandas may have made float64 of float32.

    Raises InputError: the graph has no weights, or their type does not hold a distance.
    """
    if graph.weights is None:
        raise InputError("the frame holds weighted distances, and the graph has no weights")
    with np.errstate(over="ignore"):
        as_weights = distance.astype(graph.weights.dtype)
    if not np.array_equal(as_weights, distance, equal_nan=True):
        raise InputError(
            f"the frame's distances are {distance.dtype}, and no sums "
            f"of {graph.weights.dtype} weights"
        )
    return as_weights


def host_frame(records: list[dict[str, Any]]) -> Frame:
    """Return records, one dict by column name per row, as a pandas frame."""
    return load("pandas").DataFrame(records)


def check_unreached(unreached: str, graph: Graph) -> None:
    """Raise InputError unless ``unreached`` is one of ``UNREACHED_CHOICES``, and unreached vertices
    of the graph can be shown that way.
    """
    arguments.choice("unreached", unreached, UNREACHED_CHOICES)
    if unreached != "cugraph":
        return
    if graph.has_string_ids or graph.ids.dtype.kind != "i":
        how = option_text("unreached", "cugraph")
        raise InputError(f"{how} marks a missing predecessor by -1, which needs signed integer ids")
    if has_vertex(graph, NO_PREDECESSOR):
        how = option_text("unreached", "cugraph")
        other = option_text("unreached", "null")
        raise InputError(
            f"{how} marks a missing predecessor by -1, which is a "
            f"vertex of this graph; take {other}"
        )


def _library(device: str) -> Any:
    """Return the module of data frames of a device: pandas for "cpu", cuDF for "cuda"."""
    return load("cudf" if device == "cuda" else "pandas")


def columns_on_device(columns: dict[str, Column], graph: Graph) -> dict[str, Column]:
    """Return columns by name, some of which may be in host memory, as columns on the device of the
    graph, without vertex numbers.
    """
    xp = namespace(graph.offsets)

    def move(values: Any) -> Any:
        """Return ``values`` as an array on the device of the graph. Strings of pyarrow and None,
        which are no arrays, stay as they are.
        """
        if hasattr(values, "dtype"):
            return xp.asarray(values)
        return values

    return {
        name: Column(move(column.values), move(column.is_null)) for name, column in columns.items()
    }


def frame_from(columns: dict[str, Column], device: str) -> Any:
    """Return columns by name as a data frame of a device: of pandas for "cpu", of cuDF for "cuda".
    It may share memory with the columns.
    """
    if device == "cuda":
        return _library(device).DataFrame(
            {name: _series(column, device) for name, column in columns.items()}
        )
    # Nothing else holds the arrays, so that a copy would only take time. A series in place of an
    # array would be copied.
    values = {}
    for name, column in columns.items():
        if column.is_null is None and hasattr(column.values, "dtype"):
            values[name] = column.values
        else:
            values[name] = _series(column, device)
    return _library(device).DataFrame(values, copy=False)


def _series(column: Column, device: str) -> Any:
    """Return a column as a series of a device's library of data frames. Values without ``dtype``
    are strings of pyarrow.
    """
    library = _library(device)
    if device == "cuda":
        if not hasattr(column.values, "dtype"):
            return library.Series.from_arrow(arrow_array(column))
        series = library.Series(column.values)
        if column.is_null is None:
            return series
        return series.mask(library.Series(column.is_null))
    if not hasattr(column.values, "dtype"):
        return library.Series(arrow_array(column).to_pandas())
    if column.is_null is None:
        return library.Series(column.values)

    # pandas names its nullable types as NumPy does, but in capitals: Int64, UInt64, Float64
    name = str(column.values.dtype).capitalize().replace("Ui", "UI")
    nullable = library.array(column.values, dtype=name)
    nullable[column.is_null] = library.NA
    return library.Series(nullable)


def arrow_array(column: Column) -> Any:
    """Return a column as a pyarrow array in host memory, with nulls where it has no value."""
    pyarrow = load("pyarrow")
    compute = load("pyarrow.compute")
    if column.is_null is None:
        is_null = None
    else:
        is_null = to_host(column.is_null)
    # Values without ``dtype`` are strings, and an array of pyarrow already.
    if hasattr(column.values, "dtype"):
        return pyarrow.array(to_host(column.values), mask=is_null)
    if is_null is None:
        return column.values
    return compute.if_else(pyarrow.array(~is_null), column.values, None)
