"""Generate the rows of each source from a group of traversals, in the requested output schema, with
their checksums.

Rows of all reached vertices are generated in host memory, on whichever device the traversals ran. A
GPU transfers a group at once, and the rows are computed by CPU cores that would be idle otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa

from kepler_traverse import cuda
from kepler_traverse._arrays import (
    flatten_distances,
    is_hops,
    is_reached,
    is_rows,
    namespace,
    to_host,
)
from kepler_traverse.graph import BuildReport, Graph
from kepler_traverse.kinds.distances import columns_of_source
from kepler_traverse.kinds.loads import Loads
from kepler_traverse.kinds.question import Question
from kepler_traverse.kinds.records import Asked, columns_of_records, records_of_group
from kepler_traverse.kinds.result_kinds import CELL_COLUMNS
from kepler_traverse.search.frames import Column, Selection, arrow_array, arrow_table, select
from kepler_traverse.search.query import Query
from kepler_traverse.search.results import Traversal, Traversals, checksum

from .buffer_pool import BUFFERS, FROM_GPU
from .checksums import bits_of_columns, checksum_of_cells, checksum_of_rows, sums_of_rows
from .manifest_types import Histogram
from .matrix_file import UNREACHED_KEY, make_list, unreached_in_file
from .part_file import Answer
from .part_stats import GroupStats, count_edges, make_histogram
from .schemas import ROWS_PER_GROUP

Ids = list[Any]  # the user's ids: integers, or strings


class Rows(NamedTuple):
    """The rows of one source or of several, and counts for ``PartStats.add``."""

    answer: Answer  # the rows, with ids and checksums of the sources
    # Stored edges of reached vertices, largest number of rounds, and histograms of distances.
    counts: tuple[int, int, list[Histogram | None]]


def is_made_on_host(question: Question, query: Query, graph: Graph) -> bool:
    """Whether rows are generated in host memory from whole traversals.

    Otherwise they are made on the device of the search: rows that include unreached vertices, and
    on a GPU rows of targets, which are few and are selected there. ``query`` has the targets.
    """
    if question.options.unreached != "omit":
        return False
    return question.kind.has_all_vertices and (query.targets is None or graph.device == "cpu")


def on_host(traversals: Traversals) -> Traversals:
    """Return a copy of traversals in host memory of their own, so that the plan can run again; the
    same traversals if their distances are not an array with a row per source.
    """
    # Distances in other forms than one row per source are new arrays of each search, which the
    # next one does not overwrite.
    if not is_rows(traversals.distance):
        return traversals
    return replace(
        traversals,
        distance=_copy_to_host(traversals.distance),
        predecessor=_copy_to_host(traversals.predecessor),
    )


def _copy_to_host(array: Any) -> Any:
    """Return a copy of an array of shape (sources, vertices) in host memory that a pool lends.

    ``array``: of NumPy or of CuPy. None (no predecessors) is returned for None. The rows of the
    copy may have padding between them.
    """
    if array is None:
        return None
    if namespace(array) is np:
        copy = BUFFERS.empty(array.shape, array.dtype)
        np.copyto(copy, array)
    elif array.strides[1] == array.itemsize:  # one transfer, including the padding between rows
        # ``memory`` is the array as one dimension, and ``pitch`` the step from row to row in it.
        memory, pitch = flatten_distances(array)
        copy = FROM_GPU.empty((len(array), int(pitch)), array.dtype)
        memory.get(out=copy.reshape(-1)[: memory.size])  # the last row has no padding
        copy = copy[:, : array.shape[1]]
    else:  # row by row, so that the device needs extra memory for only one row
        copy = FROM_GPU.empty(array.shape, array.dtype)
        for i in range(len(array)):
            array[i].get(out=copy[i])
    return copy


class SourceRows(NamedTuple):
    """The rows of one source."""

    table: pa.Table  # all columns, as they are written
    columns: dict[str, Column]  # the columns for checksums, without the source
    edges: int | None = None  # stored edges of the vertices of the rows; None if not counted


class HostRows:
    """Makes the rows of a source from its distances in host memory.

    Each subclass makes one layout of rows, which ``ResultKind.written_as`` names in ``HOST_ROWS``.
    ``graph`` may be on either device.
    """

    widens = True  # whether hops of two bytes become int32

    def __init__(self, graph: Graph):
        self._graph = graph

    @cached_property
    def graph(self) -> Graph:
        """The graph in host memory. Of a graph on a GPU it is a copy, made at the first use.

        The copy has offsets and ids, which rows need, but neither edges nor weights.
        """
        graph = self._graph
        if graph.device == "cpu":
            return graph
        ids = graph.ids
        if not graph.has_string_ids:
            ids = to_host(ids)
        return replace(
            graph,
            offsets=to_host(graph.offsets),
            targets=np.empty(0, graph.targets.dtype),
            weights=None,
            ids=ids,
            edge_rows=None,
            edges_of_rows=None,
        )

    def make(self, asked: Asked, written: Traversal) -> SourceRows:
        """Return the rows of one source.

        ``asked``: the question, with the graph in host memory. ``written``: the traversal, cut at
        the limit and the targets.
        """
        raise NotImplementedError


class ListRows(HostRows):
    """A row with the list of all distances."""

    widens = False

    def __init__(self, graph: Graph):
        super().__init__(graph)
        # Determined here, because the graph in host memory lacks the weights.
        self._is_signed = graph.weights is not None and graph.has_negative_weights

    def make(self, asked: Asked, written: Traversal) -> SourceRows:  # noqa: ARG002
        """Return one row, with the id of the source and the list of its distances.

        ``asked`` is ignored: such rows need only the distances, and the graph of this object. The
        metadata of the table state the distance of unreached vertices. There are no columns for
        checksums, which are computed from the array.
        """
        distance = written.distance
        unreached = unreached_in_file(
            is_hops(distance.dtype), self._graph.returns_integers, self._is_signed
        )
        name = self.graph.ids_at(np.array([written.source]))
        columns = {"source": name, "distance": make_list(distance, is_reached(distance), unreached)}
        return SourceRows(pa.table(columns, metadata={UNREACHED_KEY: str(unreached)}), {})


class VertexRows(HostRows):
    """A row per vertex; columns are reused if a source reaches the same vertices as the one before,
    as most do.
    """

    def __init__(self, graph: Graph):
        super().__init__(graph)
        # Zeros, which are the positions in a dictionary of one id; None until they are needed.
        self._zeros: pa.Array | None = None
        # The vertices that the source before reached, None at first, and the number of their stored
        # edges.
        self._last: tuple[Selection | None, int] = (None, 0)

    def make(self, asked: Asked, written: Traversal) -> SourceRows:
        """Return a row per reached vertex, with its distance or the other columns of the kind.

        ``asked``: the question, with the graph in host memory. ``written``: the traversal, cut at
        the limit and the targets.
        """
        # ``last`` is the selection (reached vertices) of the source before, or None. ``select``
        # returns it itself if this source reaches the same vertices. ``n_edges`` is the number of
        # stored edges that leave them, which is then the same, too.
        last, n_edges = self._last
        selection = select(self.graph, written.distance, last=last, empty=BUFFERS.empty)
        if selection is not last:
            n_edges = count_edges(self.graph, written)
        # threads may overwrite each other here; each continues with its own ``selection``
        self._last = selection, n_edges

        # ``columns_of_source`` returns the columns of the kind but the source's, by name.
        columns = columns_of_source(asked, written, selection)
        arrays = {"source": self._source_column(written.source, selection.size)}
        arrays |= {name: arrow_array(column) for name, column in columns.items()}
        return SourceRows(pa.table(arrays), columns, n_edges)

    def _source_column(self, source: int, size: int) -> pa.DictionaryArray:
        """Return a column that repeats the id of a source ``size`` times, as a dictionary array.

        Its dictionary has the one id, so that the file can encode it without a pass over the rows.
        """
        graph = self.graph
        if self._zeros is None or len(self._zeros) < size:
            self._zeros = pa.array(np.zeros(max(size, graph.n_vertices), np.int8))
        ids = graph.ids_at(np.array([source]))  # the dictionary, of one id
        if isinstance(ids, np.ndarray):
            ids = pa.array(ids)
        # Not checked: the position 0 is in it.
        return pa.DictionaryArray.from_arrays(self._zeros.slice(0, size), ids, safe=False)


HOST_ROWS: dict[str, type[HostRows]] = {
    "vertices": VertexRows,
    "lists": ListRows,
    "records": HostRows,
}


def make_rows(
    question: Question,
    graph: Graph,
    query: Query,
    traversals: Traversals,
    host_rows: HostRows | None = None,
) -> Iterator[Rows]:
    """Yield the rows of each source of a group, in order.

    The result must have rows per source, not sums over all of them.

    Parameters
    ----------
    question : Question
        Says which rows are asked for.
    graph : Graph
        In the direction of the question, on either device.
    query : Query
        What the searches have computed.
    traversals : Traversals
        Results of a group of sources; a copy from ``on_host``, if ``is_made_on_host``, or not.
    host_rows : HostRows, optional
        Made for the graph by an earlier call, so that its columns are reused; else a new one.
    """
    asked = question.asked(graph, query)  # all that is asked, with the graph
    # Records, also of distances that are no array with a row per source; then rows per vertex, on
    # the device of the search or in host memory.
    if not (asked.kind.has_all_vertices and is_rows(traversals.distance)):
        return _make_records(asked, traversals)
    if not is_made_on_host(question, query, graph):
        return _make_vertex_rows(asked, traversals)
    if namespace(traversals.distance) is not np:
        traversals = on_host(traversals)
    if host_rows is None:
        host_rows = HOST_ROWS[asked.kind.written_as](graph)
    return _make_host_rows(asked, host_rows, traversals)


def answer_of_loads(graph: Graph, loads: Loads, sources: np.ndarray) -> Answer:
    """Return the sums over all sources of a part, as rows that count as those of the first source.

    There is a row per edge, vertex or pair (cell) whose sum is not 0. ``loads``: the sums.
    ``sources``: vertex numbers of the sources that are in the sums.
    """
    sums = loads.sums
    cells = sums.nonzero()  # numbers of the cells with a sum other than 0
    # Sums are integers of 128 bits, in units of a power of two. A file has their two halves as
    # int64; the lower one is unsigned, and keeps its bits.
    low = sums.low[cells].view(np.int64)
    high = sums.high[cells]
    values = (cells, low, high, np.full(cells.size, sums.exponent))
    columns = {name: Column(value) for name, value in zip(CELL_COLUMNS, values, strict=True)}
    table = arrow_table(columns)
    total = checksum_of_cells(cells, low, high)
    of_others = [0] * (sources.size - 1)
    return Answer(get_names(graph, sources), [cells.size, *of_others], table, [total, *of_others])


def warm_up(question: Question, dtype: np.dtype | str, integers: bool = False) -> None:
    """Generate rows of a graph of one vertex, to load the compiled code that makes rows.

    Loading the first Numba function takes a second. ``dtype`` is the type of distances that the
    code is loaded for. ``integers`` says whether weights are integers, also where ``dtype`` is a
    type of floats.
    """
    # A graph of one vertex without edges, and a search from this vertex.
    is_weighted = question.algorithm == "sssp"
    graph = Graph(
        offsets=np.zeros(2, np.int64),
        targets=np.zeros(0, np.int32),
        weights=np.zeros(0, dtype) if is_weighted else None,
        ids=np.zeros(1, np.int64),
        directed=True,
        report=BuildReport(),
        integer_weights=integers and is_weighted,
    )
    traversals = Traversals(
        algorithm=question.algorithm,
        sources=np.zeros(1, np.int64),
        distance=np.zeros((1, 1), dtype),
        predecessor=np.zeros((1, 1), np.int32) if question.kind.has_predecessors else None,
        limits=[None],
        strategy="",
        rounds=[0],
    )
    for _ in make_rows(question, graph, Query(), traversals):
        pass


def _make_host_rows(asked: Asked, host_rows: HostRows, traversals: Traversals) -> Iterator[Rows]:
    """Yield the rows of each source, from distances in host memory.

    ``asked``: the question. ``host_rows``: makes the rows. ``traversals`` have a row of distances
    per source. They may belong to a plan, so each is copied.
    """
    query = asked.query
    asked = replace(asked, graph=host_rows.graph)
    for i in range(len(traversals)):
        # ``traversal`` has all that the search has reached, and ``written`` what rows are made of.
        traversal = _copy_traversal(traversals, i, host_rows.widens)
        # ``cut`` returns the traversal itself if nothing is to be cut. Else it drops the
        # predecessors. Those of the vertices that are left have not changed, so they are put back.
        written = traversal.cut(query.limit, query.targets)
        table, columns, n_edges = host_rows.make(
            asked, replace(written, predecessor=traversal.predecessor)
        )

        # With closed vertices (at which paths end, but through which none leads), the array of a
        # search has two entries for each of them, and rows have one. Then the checksum is computed
        # from the rows, not from the array.
        is_row_of_each = asked.graph.closed is None
        if "distance" in asked.kind.columns and is_row_of_each:  # from the array, in one pass
            total = checksum(written, asked.graph.returns_integers)
        else:
            total = checksum_of_rows(traversal.source, bits_of_columns(columns))

        # Edges are those of all that the search has reached, also where rows are fewer. So what was
        # counted for the rows serves only if nothing was cut.
        if n_edges is None or written is not traversal:
            n_edges = count_edges(asked.graph, traversal)
        counts = n_edges, traversal.rounds, [make_histogram(written)]
        yield Rows(Answer.of_one(get_id(asked.graph, traversal.source), table, total), counts)


def _make_vertex_rows(asked: Asked, traversals: Traversals) -> Iterator[Rows]:
    """Yield a row per reached vertex or target, made on the device of the traversals.

    Vertices without a path have a row, too, if the question says so.
    """
    graph = asked.graph
    query = asked.query
    for traversal in traversals:
        # columns of the kind but the source's, for the vertices that the question shows
        columns = columns_of_source(asked, traversal)
        source = np.full(len(columns["vertex"].values), traversal.source)
        table = arrow_table({"source": Column.of_vertices(graph, source), **columns})
        total = checksum_of_rows(traversal.source, bits_of_columns(columns))
        # The histogram is of what is within the limit and the targets; edges are those of all that
        # the search has reached.
        histogram = make_histogram(traversal.cut(query.limit, query.targets))
        counts = count_edges(graph, traversal), traversal.rounds, [histogram]
        yield Rows(Answer.of_one(get_id(graph, traversal.source), table, total), counts)


def _copy_traversal(traversals: Traversals, i: int, widens: bool) -> Traversal:
    """Return the traversal at position ``i``, with distances in memory of their own, because rows
    outlive the plan's next run.

    Hops become int32. If ``widens`` is False, hops that the search has as int16 stay so.
    """
    rows = traversals.distance
    dtype = rows.dtype
    if traversals.algorithm == "bfs":
        dtype = np.dtype(np.int32 if widens or dtype.itemsize > 2 else np.int16)
    distance = BUFFERS.empty(rows.shape[1], dtype)
    np.copyto(distance, rows[i])
    return Traversal(
        algorithm=traversals.algorithm,
        source=int(traversals.sources[i]),
        distance=distance,
        predecessor=None if traversals.predecessor is None else traversals.predecessor[i],
        limit=traversals.limits[i],
        strategy=traversals.strategy,
        rounds=int(traversals.rounds[i]),
    )


def _make_records(asked: Asked, traversals: Traversals) -> Iterator[Rows]:
    """Yield the rows of results that have records per source, such as summaries or pairs.

    The sources of the group are taken a bounded number at a time, so that about
    ``ROWS_PER_GROUP`` rows are held. Each step yields the rows of its sources in one table.
    """
    graph = asked.graph
    query = asked.query
    step = len(traversals)  # sources per table: all of them, unless each has a row per target
    if asked.targets is not None:
        step = max(1, ROWS_PER_GROUP // max(asked.targets.size, 1))
    for begin in range(0, len(traversals), step):
        group = traversals
        if step < len(traversals):
            group = cast(Traversals, traversals[begin : begin + step])

        # If records are made of level counts, ``stats.add_levels`` gets these while the records
        # are made, and nothing is computed twice.
        stats = GroupStats()
        records = records_of_group(asked, group, stats.add_levels)
        # ``records.sizes`` has the number of rows of each source. If ``counts_rows``, the histogram
        # is of the distances in the rows; else of those that the searches have returned, within the
        # limit and the targets.
        source = np.repeat(group.sources, records.sizes)
        columns = columns_of_records(asked, source, records.values)
        if asked.kind.counts_rows:
            stats.add_rows(graph, query, group, columns["distance"], records.sizes)
        elif not stats.edges:  # ``add_levels`` was not called
            stats.add_group(graph, query, group)

        table = arrow_table(columns)
        # Sources as a dictionary array, so that they are encoded as in tables of one source each.
        if asked.kind.written_as == "vertices":
            ids = arrow_array(Column.of_vertices(graph, group.sources))
            positions = np.repeat(np.arange(len(group), dtype=np.int32), records.sizes)
            repeated = pa.DictionaryArray.from_arrays(positions, ids)
            table = table.set_column(table.schema.get_field_index("source"), "source", repeated)

        # The checksum of a source is a difference of sums over all rows so far, modulo 2^64.
        sums = np.zeros(source.size + 1, np.uint64)
        np.cumsum(sums_of_rows(source, bits_of_columns(columns)), out=sums[1:])
        ends = np.cumsum(records.sizes)
        totals = sums[ends] - sums[ends - records.sizes]
        answer = Answer(get_names(graph, group.sources), records.sizes, table, totals.tolist())
        yield Rows(answer, (sum(stats.edges), max(map(int, group.rounds)), stats.histograms))


def get_id(graph: Graph, number: int) -> Any:
    """Return the user's id of one vertex, as a plain Python value."""
    return get_names(graph, np.array([number]))[0]


def get_names(graph: Graph, numbers: np.ndarray) -> list[Any]:
    """Return the user's ids of vertices, as plain Python values, in the order of ``numbers``
    (vertex numbers).
    """
    if graph.device == "cuda" and not graph.has_string_ids:
        ids: Any = graph.ids
        return ids[cuda.cp.asarray(numbers)].tolist()
    return graph.ids_at(numbers).tolist()
