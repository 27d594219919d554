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

    answer: Answer
    counts: tuple[int, int, list[Histogram | None]]  # edges, rounds and histograms


def is_made_on_host(question: Question, query: Query, graph: Graph) -> bool:
    """Whether rows are generated in host memory from whole traversals; on a GPU rows of targets are
    selected there.

    Rows of unreached vertices are made as frames are, on the device.
    """
    if question.options.unreached != "omit":
        return False
    return question.kind.has_all_vertices and (query.targets is None or graph.device == "cpu")


def on_host(traversals: Traversals) -> Traversals:
    """Copy traversals to host memory of their own, so that the plan can run again."""
    if not is_rows(traversals.distance):
        return traversals  # a search writes no array of an earlier one
    return replace(
        traversals,
        distance=_copy_to_host(traversals.distance),
        predecessor=_copy_to_host(traversals.predecessor),
    )


def _copy_to_host(array: Any) -> Any:
    """Return a copy of an array of shape (sources, vertices) in host memory that a pool lends; None
    of None.
    """
    if array is None:
        return None
    if namespace(array) is np:
        copy = BUFFERS.empty(array.shape, array.dtype)
        np.copyto(copy, array)
    elif array.strides[1] == array.itemsize:  # one transfer, including the padding between rows
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

    table: pa.Table
    columns: dict[str, Column]  # without the source
    edges: int | None = None  # stored ones of the vertices, if these are known


class HostRows:
    """Makes the rows of a source from its distances in host memory, by the way in which a kind is
    written.

    ``graph`` may be on either device.
    """

    widens = True  # whether hops of two bytes become int32

    def __init__(self, graph: Graph):
        self._graph = graph

    @cached_property
    def graph(self) -> Graph:
        """The graph in host memory; a copy from a GPU, which lacks the edges, is made at the first
        use.
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
        """Return the rows of one source, whose distances within limit and targets are ``written``."""
        raise NotImplementedError


class ListRows(HostRows):
    """A row with the list of all distances."""

    widens = False

    def __init__(self, graph: Graph):
        super().__init__(graph)
        # Determined here, because the graph in host memory lacks the weights.
        self._is_signed = graph.weights is not None and graph.has_negative_weights

    def make(self, asked: Asked, written: Traversal) -> SourceRows:  # noqa: ARG002
        """Return a row with the id of the source and the list of its distances."""
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
        self._zeros: pa.Array | None = None  # positions in a dictionary of one id
        # the vertices that the last source reached, and their stored edges
        self._last: tuple[Selection | None, int] = (None, 0)

    def make(self, asked: Asked, written: Traversal) -> SourceRows:
        """Return a row per reached vertex."""
        last, n_edges = self._last
        selection = select(self.graph, written.distance, last=last, empty=BUFFERS.empty)
        if selection is not last:
            n_edges = count_edges(self.graph, written)
        # threads may overwrite each other here; each continues with its own ``selection``
        self._last = selection, n_edges

        columns = columns_of_source(asked, written, selection)
        arrays = {"source": self._source_column(written.source, selection.size)}
        arrays |= {name: arrow_array(column) for name, column in columns.items()}
        return SourceRows(pa.table(arrays), columns, n_edges)

    def _source_column(self, source: int, size: int) -> pa.DictionaryArray:
        """Return a column that repeats a source's id, as a dictionary array;
        ``part_file.expand_sources`` expands it.
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
    """Yield the rows of each source of a group, in order. The result must have rows per source, not
    sums over all of them.

    ``traversals`` may be the result of ``on_host``, if ``is_made_on_host``. ``host_rows``: one of
    the graph, used again from group to group.
    """
    asked = question.asked(graph, query)
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
    """Return the rows of all sources of a part together, which are in the name of the first one.

    ``loads``: their sums. ``sources``: vertex numbers.
    """
    sums = loads.sums
    cells = sums.nonzero()
    low = sums.low[cells].view(np.int64)  # the halves of sums of 128 bits
    high = sums.high[cells]
    values = (cells, low, high, np.full(cells.size, sums.exponent))
    columns = {name: Column(value) for name, value in zip(CELL_COLUMNS, values, strict=True)}
    table = arrow_table(columns)
    total = checksum_of_cells(cells, low, high)
    of_others = [0] * (sources.size - 1)
    return Answer(get_names(graph, sources), [cells.size, *of_others], table, [total, *of_others])


def warm_up(question: Question, dtype: np.dtype | str, integers: bool = False) -> None:
    """Generate rows of a graph of one vertex, to load their code: the first Numba function takes a
    second.

    ``dtype``: that of distances, for which code is loaded. ``integers``: whether they are integers.
    """
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
    """Yield the rows of each source, from distances in host memory."""
    query = asked.query
    asked = replace(asked, graph=host_rows.graph)
    for i in range(len(traversals)):
        traversal = _copy_traversal(traversals, i, host_rows.widens)
        # A cut drops all predecessors, and those of the vertices that are left are as they were.
        written = traversal.cut(query.limit, query.targets)
        table, columns, n_edges = host_rows.make(
            asked, replace(written, predecessor=traversal.predecessor)
        )

        # The array of a search has two numbers of each closed vertex; rows have one.
        is_row_of_each = asked.graph.closed is None
        if "distance" in asked.kind.columns and is_row_of_each:  # from the array, in one pass
            total = checksum(written, asked.graph.returns_integers)
        else:
            total = checksum_of_rows(traversal.source, bits_of_columns(columns))

        # Edges are those of all that the search has reached, also where rows are fewer.
        if n_edges is None or written is not traversal:
            n_edges = count_edges(asked.graph, traversal)
        counts = n_edges, traversal.rounds, [make_histogram(written)]
        yield Rows(Answer.of_one(get_id(asked.graph, traversal.source), table, total), counts)


def _make_vertex_rows(asked: Asked, traversals: Traversals) -> Iterator[Rows]:
    """Yield a row per vertex or target, as frames have it; also of those without a path, if the
    question says so.
    """
    graph = asked.graph
    query = asked.query
    for traversal in traversals:
        columns = columns_of_source(asked, traversal)
        source = np.full(len(columns["vertex"].values), traversal.source)
        table = arrow_table({"source": Column.of_vertices(graph, source), **columns})
        total = checksum_of_rows(traversal.source, bits_of_columns(columns))
        histogram = make_histogram(traversal.cut(query.limit, query.targets))
        counts = count_edges(graph, traversal), traversal.rounds, [histogram]
        yield Rows(Answer.of_one(get_id(graph, traversal.source), table, total), counts)


def _copy_traversal(traversals: Traversals, i: int, widens: bool) -> Traversal:
    """Return the traversal at a position, with distances in memory of their own, because rows
    outlive the plan's next run.

    Hops are int32, or int16 if they fit and ``widens`` is false.
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
    """Yield records of a bounded number of sources at a time; statistics read what the records
    read.
    """
    graph = asked.graph
    query = asked.query
    step = len(traversals)
    if asked.targets is not None:
        step = max(1, ROWS_PER_GROUP // max(asked.targets.size, 1))
    for begin in range(0, len(traversals), step):
        group = traversals
        if step < len(traversals):
            group = cast(Traversals, traversals[begin : begin + step])

        # If records are made of level counts, statistics get these meanwhile.
        stats = GroupStats()
        records = records_of_group(asked, group, stats.add_levels)
        source = np.repeat(group.sources, records.sizes)
        columns = columns_of_records(asked, source, records.values)
        if asked.kind.counts_rows:
            stats.add_rows(graph, query, group, columns["distance"], records.sizes)
        elif not stats.edges:
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
    """Return the user's ids of vertices, as plain Python values."""
    if graph.device == "cuda" and not graph.has_string_ids:
        ids: Any = graph.ids
        return ids[cuda.cp.asarray(numbers)].tolist()
    return graph.ids_at(numbers).tolist()
