"""A record per vertex: ``result="distances"``, ``"predecessors"``, ``"isochrones"``, and the part
files of ``"reachable"``.

``columns_of_source`` makes the records of one source, for frames and part files. A frame of integer
ids in host memory is written at once, each column into memory of its final size. The number of rows
is known only after the last search, and a plan uses its arrays again. So the distances of reached
vertices are kept as they are, a byte or two each for hops. Sources that reach the same vertices
share one list of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numba
import numpy as np

from .._arrays import is_hops, is_rows, namespace
from .._uninterrupted import map_on_threads
from ..graph import Graph
from ..graph.closed import listed_vertices
from ..search.algorithms import ALGORITHMS
from ..search.frames import Column, FrameKind, Selection, check_unreached, make_columns, select
from ..search.query import Query
from ..search.results import Traversal, Traversals
from ..search.sparse import to_sparse
from .opportunities import find_bands
from .records import Asked, SourceRecords, Values
from .result_kinds import UnreachedOptions

_ROWS_PER_THREAD = 2**18  # fewer rows take less time than starting a thread


def check_options(
    options: UnreachedOptions, _kind: Any, graph: Graph, _algorithm: str, _numbers: Any
) -> UnreachedOptions:
    """Return the options as they are; raise InputError if the graph does not allow that unreached
    vertices are shown in the way that they ask for.

    The kind, the algorithm and the numbers of sources and targets make no difference, and are
    ignored.
    """
    check_unreached(options.unreached, graph)
    return options


def columns_of_source(
    asked: Asked[UnreachedOptions], traversal: Traversal, selection: Selection | None = None
) -> dict[str, Column]:
    """Return the columns of one source by name, besides ``source``: a row per vertex that is shown.

    ``asked`` is what is asked of the kind, and ``traversal`` has the distances from the source.
    ``selection`` says which vertices are shown; None: it is found from the distances here.
    """
    names = asked.kind.columns
    # a band is the smallest cutoff that holds the distance
    if "band" in names:
        names = (*names, "distance")
    columns = make_columns(
        asked.graph, traversal, asked.query, asked.options.unreached, selection, names
    )
    return _with_bands(asked, columns)


def _with_bands(asked: Asked, columns: dict[str, Column]) -> dict[str, Column]:
    """Return the columns by name, with a column ``band`` in place of ``distance`` if the kind of
    ``asked`` has bands: the smallest of its cutoffs that holds each distance. Columns of other
    kinds are returned as they are.
    """
    if "band" not in asked.kind.columns:
        return columns
    band = Column(find_bands(columns.pop("distance").values, asked.options.cutoffs))
    return columns | {"band": band}


def make_frame(
    asked: Asked[UnreachedOptions],
    groups: Iterable[Traversals],
    places: np.ndarray,
    frames: FrameKind,
) -> Any:
    """Return one frame with the records of all sources.

    ``asked`` is what is asked of the kind. ``groups`` are the searches, one group of sources at a
    time. ``places``, int64, has the position of each source of the result in the groups, counted
    over all of them; it may name one twice. ``frames`` makes the frames.
    """
    graph = asked.graph
    if not places.size:
        return _empty_frame(asked, frames)
    # Integer ids in host memory, without rows of unreached vertices: all columns are written at
    # once, each into memory of its final size. Otherwise each source gets a frame, and these are
    # joined.
    if graph.device == "cpu" and not graph.has_string_ids and asked.options.unreached == "omit":
        rows = [row for group in groups for row in _rows_of_group(asked, group)]
        return frames.make(_with_bands(asked, _columns_of_rows(graph, [rows[i] for i in places])))

    parts = []
    for group in groups:
        for traversal in group:
            columns = columns_of_source(asked, traversal)
            source = Column.of_vertices(
                graph, np.full(len(columns["vertex"].values), traversal.source)
            )
            parts.append(frames.make({"source": source, **columns}))
    return frames.concatenate([parts[i] for i in places])


def _empty_frame(asked: Asked[UnreachedOptions], frames: FrameKind) -> Any:
    """Return a frame without a record, for an empty list of sources, made by ``frames``. Its
    columns have the same types as those of other frames with what is ``asked``.
    """
    graph = asked.graph
    xp = namespace(graph.offsets)
    traversal = Traversal(
        algorithm=asked.algorithm,
        source=0,
        distance=xp.zeros(0, ALGORITHMS[asked.algorithm].result_dtype(graph)),
        predecessor=xp.zeros(0, graph.targets.dtype) if asked.query.predecessors else None,
        limit=None,
        strategy="",
        rounds=0,
    )
    # An empty list of targets selects no vertex. None would stand for all vertices, of which there
    # is no distance here.
    asked_without_targets = replace(
        asked, query=Query(predecessors=asked.query.predecessors, targets=np.zeros(0, np.int64))
    )
    source = Column.of_vertices(graph, xp.zeros(0, np.int64))
    return frames.make({"source": source, **columns_of_source(asked_without_targets, traversal)})


def make_records(asked: Asked[UnreachedOptions], group: Traversals) -> SourceRecords:
    """Return the records ``vertex, distance[, predecessor]`` of the vertices that each source
    reaches within the limit, or of the targets among them.

    Vertices and predecessors are vertex numbers.

    ``asked`` is what is asked of the kind, and ``group`` has the distances from some of the
    sources.
    """
    distances: Any = group.distance
    # A plan that has changed its strategy may return an array with a row per source.
    if is_rows(distances):
        distances = to_sparse(distances, group.predecessor if asked.kind.has_predecessors else None)
        # ``within`` takes one limit per source, and leaves out what is farther.
        if asked.query.limit is not None:
            distances = distances.within([asked.query.limit] * len(distances))

    # A closed vertex has two numbers, and is listed by the one where paths end.
    targets = asked.query.targets
    if targets is None:
        targets = listed_vertices(asked.graph)
    if targets is not None:
        distances = distances.at(targets)  # of these vertices alone, ascending as all rows are

    values = {
        "vertex": distances.vertices,
        "distance": distances.distance,
        "predecessor": distances.predecessor,
    }
    if distances.predecessor is None:
        del values["predecessor"]
    return SourceRecords(values, distances.sizes)


def columns_of_records(asked: Asked[UnreachedOptions], values: Values) -> dict[str, Column]:
    """Return the columns of the kind besides ``source`` by name, from the arrays of
    ``make_records`` with records in any order.

    ``asked`` is what is asked of the kind, and ``values`` has the arrays of the records by name.
    """
    dtype = ALGORITHMS[asked.algorithm].result_dtype(asked.graph)
    vertices = values["vertex"].astype(np.int64, copy=False)
    distances = values["distance"].astype(dtype, copy=False)
    columns = {
        "vertex": Column.of_vertices(asked.graph, vertices),
        "distance": Column(distances),
    }
    columns = _with_bands(asked, columns)
    if asked.kind.has_predecessors:
        columns["predecessor"] = Column.of_vertices(
            asked.graph, values["predecessor"].astype(np.int64, copy=False)
        )
    return {name: column for name, column in columns.items() if name in asked.kind.columns}


class _Rows(NamedTuple):
    """The rows of one source."""

    source: int  # its vertex number
    selection: Selection  # the vertices of the rows
    # distance, predecessor: the distances and the predecessors of these vertices, in their order.
    # Predecessors are vertex numbers; None for kinds without them.
    distance: np.ndarray
    predecessor: np.ndarray | None


def _rows_of_group(asked: Asked[UnreachedOptions], group: Traversals) -> list[_Rows]:
    """Return the rows of each source of a group, in memory of their own, as the plan uses its
    arrays again for the next group. ``asked`` has the limit and the targets, which select the rows.
    """

    def make_share(begin: int, end: int) -> list[_Rows]:
        """Return the rows of the sources ``begin`` to ``end - 1``. A source that reaches the same
        vertices as the one before it shares its list of them.
        """
        rows: list[_Rows] = []
        last = None
        for i in range(begin, end):
            rows.append(_make_rows(asked, group, i, last))
            last = rows[-1].selection
        return rows

    shares = _in_threads(make_share, len(group), len(group) * asked.graph.n_vertices)
    return list(itertools.chain.from_iterable(shares))


def _make_rows(
    asked: Asked[UnreachedOptions], group: Traversals, i: int, last: Selection | None
) -> _Rows:
    """Return the rows of source i of a group.

    ``last`` is the selection of the source before it, None for the first source of a thread. If
    both sources reach the same vertices, they share the list of these.
    """
    # A plan that has changed its strategy may return distances in another form.
    if not is_rows(group.distance):
        group = cast(Traversals, group[i : i + 1]).as_rows()
        i = 0

    distance = group.distance[i]
    query = asked.query
    selection = select(asked.graph, distance, query.limit, query.targets, last)
    predecessor = None
    if group.predecessor is not None and asked.kind.has_predecessors:
        predecessor = selection.take(group.predecessor[i])
    return _Rows(int(group.sources[i]), selection, selection.take(distance), predecessor)


def _columns_of_rows(graph: Graph, rows: Sequence[_Rows]) -> dict[str, Column]:
    """Return columns ``source, vertex, distance[, predecessor]`` with ids, from the rows of at
    least one source, in their order.
    """
    ids: Any = graph.ids
    # where the rows of each source end in the columns
    ends = np.cumsum([row.selection.size for row in rows])
    total = int(ends[-1])

    # Groups may differ in their types: hops are in the narrowest one that holds them, and sums are
    # widened where they could round.
    kinds = {row.distance.dtype for row in rows}
    if all(map(is_hops, kinds)):
        kind = np.dtype(np.int32)
    elif graph.returns_integers:
        kind = graph.distance_dtype
    else:
        kind = np.result_type(*kinds)
    columns = {
        "source": np.empty(total, ids.dtype),
        "vertex": np.empty(total, ids.dtype),
        "distance": np.empty(total, kind),
    }
    if rows[0].predecessor is not None:
        columns["predecessor"] = np.empty(total, ids.dtype)

    def write(begin: int, end: int) -> None:
        """Write the rows of the sources ``begin`` to ``end - 1`` to their places in the columns.
        ``last`` is where the rows of a source end.
        """
        for row, last in zip(rows[begin:end], ends[begin:end].tolist(), strict=True):
            place = slice(last - row.selection.size, last)
            columns["source"][place] = ids[row.source]
            # With the default mode, "raise", NumPy would write to a buffer before ``out``.
            if row.selection.is_shared:
                # The ids are looked up once for all sources that share them. Two threads may make
                # the same array, of which one is kept.
                columns["vertex"][place] = row.selection.ids
            else:
                number: Any = row.selection.number
                np.take(ids, number, out=columns["vertex"][place], mode="clip")
            columns["distance"][place] = row.distance
            if row.predecessor is not None:
                np.take(ids, row.predecessor, out=columns["predecessor"][place], mode="clip")

    _in_threads(write, len(rows), total)
    return {name: Column(values) for name, values in columns.items()}


def _in_threads(work: Callable[[int, int], Any], size: int, n_rows: int) -> list[Any]:
    """Return the results of ``work(begin, end)``, called for equal shares of ``range(size)``, one
    share per thread.

    There are at most as many threads as Numba would use, and fewer if they had few of the
    ``n_rows`` rows each.
    """
    count = max(1, min(numba.get_num_threads(), size, n_rows // _ROWS_PER_THREAD))
    bounds = [size * i // count for i in range(count + 1)]
    if count == 1:
        return [work(0, size)]
    return map_on_threads(lambda bound: work(*bound), list(itertools.pairwise(bounds)), count)
