"""Generate the rows of each source from a group of traversals, in the requested output schema, with their checksums.

Rows of all reached vertices are generated in host memory, on whichever device the traversals ran. A GPU transfers a group at
once, and the rows are computed by CPU cores that would be idle otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa

from kepler_traverse import cuda
from kepler_traverse._arrays import Array, flatten_distances, is_hops, is_reached, namespace, to_host, unreached_of
from kepler_traverse.graph import BuildReport, Graph
from kepler_traverse.kinds.opportunities import bands_of
from kepler_traverse.kinds.result_kinds import ResultKind
from kepler_traverse.kinds.source_records import add_source_column, positions_in_groups
from kepler_traverse.multi_source.outputs import pair_columns
from kepler_traverse.multi_source.pairs import PairTable, returned_distances
from kepler_traverse.multi_source.routes import routes_of, rows_of_edges, summed_along
from kepler_traverse.search.frames import Column, arrow_table, columns_of, table_of
from kepler_traverse.search.query import Query
from kepler_traverse.search.results import Traversal, Traversals, checksum

from ..question import Question
from .buffer_pool import BUFFERS, FROM_GPU
from .checksums import bits_of, checksum_of_rows, sums_of_rows
from .manifest_types import Histogram
from .matrix_file import UNREACHED_KEY, list_of, unreached_in_file
from .part_file import as_written
from .part_stats import counted, edges_of, histogram_of, histogram_of_values, histograms_of_group, histograms_of_levels
from .schemas import OUTPUT_SCHEMAS

OF_ALL_REACHED = tuple(name for name, form in OUTPUT_SCHEMAS.items() if form.records in ("vertex", "matrix"))


class Rows(NamedTuple):
    """The rows of one source: its id, a table, the table's checksum, and counts for ``PartStats.add``."""

    source: object
    table: pa.Table
    checksum: int
    counts: tuple[Any, ...]


def is_made_on_host(question: Question, query: Query, graph: Graph) -> bool:
    """Whether rows are generated in host memory from whole traversals; on a GPU rows of targets are selected there.

    Rows of unreached vertices are made as frames are, on the device.
    """
    if question.unreached != "omit":
        return False
    return question.result in OF_ALL_REACHED and (query.targets is None or graph.device == "cpu")


def on_host(traversals: Traversals) -> Traversals:
    """Copy traversals to host memory of their own, so that the plan can run again."""
    return replace(traversals, distance=_moved(traversals.distance), predecessor=_moved(traversals.predecessor))


def _moved(array: Any) -> Any:
    if array is None:
        return None
    if namespace(array) is np:
        here = BUFFERS.empty(array.shape, array.dtype)
        np.copyto(here, array)
    elif array.strides[1] == array.itemsize:  # one transfer, including the padding between rows
        memory, pitch = flatten_distances(array)
        here = FROM_GPU.empty((len(array), int(pitch)), array.dtype)
        memory.get(out=here.reshape(-1)[: memory.size])
        here = here[:, : array.shape[1]]
    else:  # row by row, so that the device needs extra memory for only one row
        here = FROM_GPU.empty(array.shape, array.dtype)
        for i in range(len(array)):
            array[i].get(out=here[i])
    return here


class Vertices:
    """Columns of reached vertices; they are reused if a source reaches the same vertices as the one before, as most do.

    Parameters
    ----------
    graph : Graph
        On either device.
    """

    def __init__(self, graph: Graph):
        self._graph = graph
        self._host: Graph | None = None
        self._zeros: pa.Array | None = None
        self._last: Selection | None = None
        # Determined here, because the graph in host memory lacks the weights.
        self._integers = graph.distance_dtype if graph.weights is not None and graph.returns_integers else None
        self._is_signed = graph.weights is not None and graph.has_negative_weights

    def shown(self, distance: np.ndarray) -> np.ndarray:
        """Convert distances of reached vertices to the type of the column."""
        return distance if self._integers is None or is_hops(distance.dtype) else distance.astype(self._integers)

    def listed(self, traversal: Traversal) -> pa.Table:
        """Return the record of one source in a matrix."""
        distance = traversal.distance
        unreached = unreached_in_file(is_hops(distance.dtype), self._integers is not None, self._is_signed)
        name = self.graph.ids_at(np.array([traversal.source]))
        return pa.table(
            {"source": name, "distance": list_of(distance, is_reached(distance), unreached)},
            metadata={UNREACHED_KEY: str(unreached)},
        )

    @property
    def graph(self) -> Graph:
        """The graph in host memory; a copy from a GPU lacks the edges."""
        return self.bring()

    def bring(self) -> Graph:
        """Copy the needed arrays of the graph to host memory, once."""
        if self._host is None:
            graph = self._graph
            here: dict[str, Any] = {"offsets": to_host(graph.offsets), "targets": np.empty(0, graph.targets.dtype)}
            here |= {"edge_rows": None, "edges_of_rows": None}
            ids = graph.ids if graph.has_string_ids else to_host(graph.ids)
            self._host = graph if graph.device == "cpu" else replace(graph, ids=ids, weights=None, **here)
        return self._host

    def source_column(self, source: int, size: int) -> pa.DictionaryArray:
        """Return a column that repeats a source's id, as a dictionary array; ``part_file.plain`` expands it."""
        graph = self.graph
        if self._zeros is None or len(self._zeros) < size:
            self._zeros = pa.array(np.zeros(max(size, graph.n_vertices), np.int8))
        name = graph.ids_at(np.array([source]))
        name = pa.array(name) if isinstance(name, np.ndarray) else name
        return pa.DictionaryArray.from_arrays(self._zeros.slice(0, size), name, safe=False)

    def of(self, traversal: Traversal) -> Selection:
        """Return the vertices that a traversal in host memory reaches."""
        graph, last = self.graph, self._last
        reached = BUFFERS.empty(graph.n_vertices, bool)
        np.not_equal(traversal.distance, unreached_of(traversal.distance.dtype), out=reached)
        size = int(np.count_nonzero(reached))
        if last is not None and last.size == size and (size == reached.size or np.array_equal(last.reached, reached)):
            return last
        number = None if size == reached.size else np.flatnonzero(reached)
        ids = graph.ids if number is None else graph.ids_at(number)
        ids = pa.array(ids) if isinstance(ids, np.ndarray) else ids
        found = Selection(reached, size, number, ids, edges_of(graph, traversal))
        self._last = found  # threads may overwrite each other here; each continues with its own ``found``
        return found


class Selection(NamedTuple):
    """The reached vertices: a mask, their count, their numbers (None if all), their ids, and their stored edges."""

    reached: np.ndarray
    size: int
    number: np.ndarray | None
    ids: pa.Array
    edges: int

    def taken(self, values: np.ndarray) -> np.ndarray:
        """Return the values of these vertices from an array over all vertices."""
        if self.number is None:
            return values
        return np.take(values, self.number, out=BUFFERS.empty(self.size, values.dtype), mode="clip")


def rows_of(
    question: Question,
    graph: Graph,
    query: Query,
    traversals: Traversals,
    target_order: np.ndarray | None = None,
    vertices: Vertices | None = None,
) -> Iterator[Rows]:
    """Yield the rows of each source of a group, in order.

    Parameters
    ----------
    question : Question
        Its result has rows that belong to one source each.
    graph : Graph
    query : Query
        The query of the traversals.
    traversals : Traversals
        May be the result of ``on_host``, if ``is_made_on_host``.
    target_order : int64 array, optional
        Vertex numbers of the targets, in the order of the rows.
    vertices : Vertices, optional
        Those of the graph, reused from group to group.
    """
    if is_made_on_host(question, query, graph):
        here = traversals if namespace(traversals.distance) is np else on_host(traversals)
        of_kind = _of_matrix if OUTPUT_SCHEMAS[question.result].records == "matrix" else _of_all_reached
        return of_kind(question, vertices or Vertices(graph), query, here)
    kind = OUTPUT_SCHEMAS[question.result].bound(question.reduction)
    if kind.records == "vertex" and question.unreached != "omit":
        return _of_all_vertices(graph, query, traversals, kind.has_predecessors, question.unreached)
    if kind.records == "vertex":
        return _of_targets(graph, query, traversals, kind.has_predecessors)
    if kind.records == "pair":
        return _of_pair_table(graph, query, traversals, _held(question.pairs))
    if kind.records == "path":
        along = {} if question.along is None else question.along.values
        return _of_paths(graph, query, traversals, _held(question.pairs), along)
    if kind.records == "target":
        return _of_pairs(graph, query, traversals, target_order)
    return _of_sources(kind, graph, query, traversals)


def warm_up(result: str, algorithm: str, kind: np.dtype | str, integers: bool = False) -> None:
    """Generate rows of a graph of one vertex, to load their code: the first Numba function takes a second."""
    weight = np.zeros(0, kind) if algorithm == "sssp" else None
    graph = Graph(
        offsets=np.zeros(2, np.int64),
        targets=np.zeros(0, np.int32),
        weights=weight,
        ids=np.zeros(1, np.int64),
        directed=True,
        report=BuildReport(),
        integer_weights=integers and algorithm == "sssp",
    )
    found = Traversals(
        algorithm=algorithm,
        sources=np.zeros(1, np.int64),
        distance=np.zeros((1, 1), kind),
        predecessor=np.zeros((1, 1), np.int32) if OUTPUT_SCHEMAS[result].has_predecessors else None,
        limits=[None],
        strategy="",
        rounds=[0],
    )
    for _ in rows_of(Question(algorithm=algorithm, result=result, certify="none", limit=None), graph, Query(), found):
        pass


def _held(array: Array | None) -> Any:
    """Return an array that results of this kind always have."""
    assert array is not None
    return array


def _of_all_reached(question: Question, vertices: Vertices, query: Query, traversals: Traversals) -> Iterator[Rows]:
    kind, reduction = OUTPUT_SCHEMAS[question.result], question.reduction
    for i in range(len(traversals)):
        traversal = _of_one(traversals, i)
        written = as_written(traversal, query)
        selection = vertices.of(written)
        columns = {"source": vertices.source_column(traversal.source, selection.size), "vertex": selection.ids}
        if reduction is not None:
            number = np.arange(selection.size) if selection.number is None else selection.number
            band = bands_of(selection.taken(written.distance), reduction.cutoffs)
            total = checksum_of_rows(traversal.source, [bits_of(number), bits_of(band)])
            columns["band"] = pa.array(band)
        elif not kind.has_distance:
            number = np.arange(selection.size) if selection.number is None else selection.number
            total = checksum_of_rows(traversal.source, [bits_of(number)])
        else:
            total = checksum(written, vertices.graph.returns_integers)
            columns["distance"] = pa.array(vertices.shown(selection.taken(written.distance)))
        if kind.has_predecessors:
            before = vertices.graph.ids_at(selection.taken(_held(traversals.predecessor)[i]))
            columns["predecessor"] = pa.array(before) if isinstance(before, np.ndarray) else before
        edges = selection.edges if written is traversal else edges_of(vertices.graph, traversal)
        counts = edges, int(traversal.rounds), histogram_of(written)
        yield Rows(id_of(vertices.graph, traversal.source), pa.table(columns), total, counts)


def _of_matrix(_question: Question, vertices: Vertices, query: Query, traversals: Traversals) -> Iterator[Rows]:
    for i in range(len(traversals)):
        traversal = _of_one(traversals, i, widens=False)
        written = as_written(traversal, query)
        total = checksum(written, vertices.graph.returns_integers)
        counts = edges_of(vertices.graph, traversal), int(traversal.rounds), histogram_of(written)
        yield Rows(id_of(vertices.graph, traversal.source), vertices.listed(written), total, counts)


def _of_targets(graph: Graph, query: Query, traversals: Traversals, with_predecessors: bool) -> Iterator[Rows]:
    for traversal in traversals:
        shown = traversal if with_predecessors else replace(traversal, predecessor=None)
        total, *counts = counted(graph, traversal, as_written(traversal, query))
        yield Rows(id_of(graph, traversal.source), table_of(graph, shown, query), total, tuple(counts))


def _of_all_vertices(
    graph: Graph, query: Query, traversals: Traversals, with_predecessors: bool, unreached: str
) -> Iterator[Rows]:
    """Yield a row per vertex or target, also of those without a path."""
    for traversal in traversals:
        shown = traversal if with_predecessors else replace(traversal, predecessor=None)
        columns = columns_of(graph, shown, query, unreached, with_source=True)
        vertex = np.arange(graph.n_vertices) if query.targets is None else to_host(query.targets)
        distance = columns["distance"]
        missing = None if distance.is_null is None else to_host(distance.is_null)
        of_column = {"vertex": bits_of(vertex), "distance": bits_of(to_host(distance.values), missing)}
        bits = [of_column[name] for name in columns if name in of_column]
        counts = counted(graph, traversal, as_written(traversal, query))[1:]
        total = checksum_of_rows(traversal.source, bits)
        yield Rows(id_of(graph, traversal.source), arrow_table(columns), total, tuple(counts))


def _of_one(traversals: Traversals, i: int, widens: bool = True) -> Traversal:
    """Return the distances of one source in memory of their own, because rows outlive the plan's next run.

    Hops are int32, or int16 if they fit and ``widens`` is false.
    """
    bfs, found = traversals.algorithm == "bfs", _held(traversals.distance)
    hops = np.int32 if widens or found.dtype.itemsize > 2 else np.int16
    distance = BUFFERS.empty(found.shape[1], hops if bfs else found.dtype)
    np.copyto(distance, found[i])
    return Traversal(
        algorithm=traversals.algorithm,
        source=int(traversals.sources[i]),
        distance=distance,
        predecessor=None,
        limit=traversals.limits[i],
        strategy=traversals.strategy,
        rounds=traversals.rounds[i],
    )


def _of_pairs(graph: Graph, query: Query, traversals: Traversals, target_order: Any) -> Iterator[Rows]:
    found: Any = _held(traversals.distance)
    xp = namespace(found)
    # Without a certificate the plan may output only the distances of the targets, in their own order.
    all_there = found.shape[1] == graph.n_vertices and query.output == "all"
    places = xp.asarray(target_order if all_there else np.searchsorted(_held(query.targets), target_order))
    number = bits_of(target_order)
    for i, source in enumerate(traversals.sources):
        distance = found[i][places]
        columns = pair_columns(graph, traversals.sources[i : i + 1], target_order, distance, query.limit)
        values, missing = (to_host(array) for array in (columns["distance"].values, columns["distance"].is_null))
        checksum = checksum_of_rows(source, [number, bits_of(values, missing)])
        if all_there:
            traversal = cast(Traversal, traversals[i])
            counts = counted(graph, traversal, as_written(traversal, query))[1:]
        else:
            counts = 0, int(traversals.rounds[i]), histogram_of_values(traversals.algorithm, values[~missing])
        yield Rows(id_of(graph, source), arrow_table(columns), checksum, counts)


def _of_pair_table(graph: Graph, query: Query, traversals: Traversals, pairs: PairTable) -> Iterator[Rows]:
    table = pairs.of(traversals.sources)
    all_there = query.output == "all"
    found = table.lists.take(_held(traversals.distance)) if all_there else _held(traversals.distance)
    values, missing = map(to_host, returned_distances(graph, found, query.limit))
    bits = [bits_of(table.rows), bits_of(table.lists.vertices), bits_of(values, missing)]
    xp = namespace(graph.offsets)
    for i, (source, begin, end) in enumerate(
        zip(traversals.sources.tolist(), table.lists.offsets[:-1].tolist(), table.lists.offsets[1:].tolist(), strict=True)
    ):
        own = slice(begin, end)
        columns = {
            "pair": Column(table.rows[own]),
            "source": Column(graph.ids_at(xp.full(end - begin, source))),
            "target": Column(graph.ids_at(xp.asarray(table.lists.vertices[own]))),
            "distance": Column(values[own], missing[own]),
        }
        total = checksum_of_rows(source, [each[own] for each in bits])
        edges = edges_of(graph, cast(Traversal, traversals[i])) if all_there else 0
        histogram = histogram_of_values(traversals.algorithm, values[own][~missing[own]])
        yield Rows(id_of(graph, source), arrow_table(columns), total, (edges, int(traversals.rounds[i]), histogram))


def _of_paths(
    graph: Graph, query: Query, traversals: Traversals, pairs: PairTable, along: Mapping[str, np.ndarray]
) -> Iterator[Rows]:
    table = pairs.of(traversals.sources)
    routes = routes_of(graph, traversals, table.lists, query.limit)
    all_there = traversals.offsets is None
    edges, begins = rows_of_edges(graph, routes)
    pair, position = np.repeat(table.rows, routes.sizes), positions_in_groups(routes.sizes)
    vertex = to_host(routes.vertices)
    sums = {name: summed_along(name, values, edges, begins, routes.sizes) for name, values in along.items()}
    bits = [bits_of(pair), bits_of(position), bits_of(vertex), bits_of(edges, begins), *map(bits_of, sums.values())]
    ends = np.concatenate([[0], np.cumsum(routes.sizes)])[table.lists.offsets]
    xp = namespace(graph.offsets)
    for i, source in enumerate(traversals.sources.tolist()):
        own = slice(int(ends[i]), int(ends[i + 1]))
        columns = {
            "pair": Column(pair[own]),
            "source": Column(graph.ids_at(xp.full(own.stop - own.start, source))),
            "position": Column(position[own]),
            "vertex": Column(graph.ids_at(routes.vertices[own])),
            "edge": Column(edges[own], begins[own]),
            **{name: Column(values[own]) for name, values in sums.items()},
        }
        total = checksum_of_rows(source, [each[own] for each in bits])
        traversal = cast(Traversal, traversals[i])
        if all_there:
            counts = counted(graph, traversal, as_written(traversal, query))[1:]
        else:  # the search has looked up the paths, and no distances but those at their ends
            values, missing = map(to_host, returned_distances(graph, traversal.distance, query.limit))
            counts = 0, int(traversal.rounds), histogram_of_values(traversals.algorithm, values[~missing])
        yield Rows(id_of(graph, source), arrow_table(columns), total, counts)


def _of_sources(kind: ResultKind, graph: Graph, query: Query, traversals: Traversals) -> Iterator[Rows]:
    """Yield records of one source each; statistics for ``PartStats`` are collected while records are generated."""
    edges: list[int] = []
    histograms: list[Histogram | None] = []
    assert kind.records_of is not None
    assert kind.columns_of is not None

    def observe(counts: Any, stored: np.ndarray, farthest: np.ndarray) -> None:
        edges.extend(stored.tolist())
        histograms.extend(histograms_of_levels(counts, farthest))

    found = kind.records_of(graph, traversals, query.limit, observe)
    if found.figures is not None:
        edges.extend(found.figures.edges.tolist())
        histograms.extend(histograms_of_group(traversals.distance, query.limit, found.figures))
    elif not edges:  # the records needed neither
        for traversal in traversals:
            _, stored, _, histogram = counted(graph, traversal, as_written(traversal, query))
            edges.append(stored)
            histograms.append(histogram)
    columns = kind.columns_of(graph, traversals.algorithm, found.values, found.sizes)
    columns = add_source_column(graph, traversals.sources, found.sizes, columns)
    return _cut(traversals, columns, found.sizes, edges, histograms)


def _cut(
    traversals: Traversals,
    columns: dict[str, Column],
    sizes: np.ndarray,
    edges: list[int],
    histograms: list[Histogram | None],
) -> Iterator[Rows]:
    """Split the rows of a group by source, so that a part has the same tables whatever the group size."""
    table = arrow_table(columns)
    bits = [
        bits_of(column.values if column.numbers is None else column.numbers, column.is_null)
        for name, column in columns.items()
        if name != "source"
    ]
    starts = np.cumsum(sizes) - sizes
    names = table["source"].take(pa.array(starts)).to_pylist()
    checksums = np.add.reduceat(sums_of_rows(np.repeat(traversals.sources, sizes), bits), starts)
    counts = zip(edges, map(int, traversals.rounds), histograms, strict=True)
    for name, start, size, total, count in zip(
        names, starts.tolist(), sizes.tolist(), checksums.tolist(), counts, strict=True
    ):
        yield Rows(name, table.slice(start, size), total, count)


def id_of(graph: Graph, number: int) -> Any:
    """Return the user's id of one vertex, as a plain Python value."""
    return names_of(graph, np.array([number]))[0]


def names_of(graph: Graph, numbers: np.ndarray) -> list[Any]:
    """Return the user's ids of vertices, as plain Python values."""
    if graph.device == "cuda" and not graph.has_string_ids:
        ids: Any = graph.ids
        return ids[cuda.cp.asarray(numbers)].tolist()
    return graph.ids_at(numbers).tolist()
