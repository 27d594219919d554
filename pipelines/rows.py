"""What is written of a group of traversals: the rows of each source in the form that was asked for, and their checksum."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kepler_traverse import cuda
from kepler_traverse._arrays import namespace, to_host
from kepler_traverse.answers import (
    figures_of_counts,
    figures_of_distances,
    level_columns,
    pair_columns,
    summary_columns,
)
from kepler_traverse.frames import Column, arrow_table, table_of
from kepler_traverse.query import Query
from kepler_traverse.results import Traversals

from .checksums import bits_of, checksum_of_rows
from .sink import as_written
from .tallies import counted, edges_of, histogram_of, histogram_of_counts, histogram_of_values, level_counts


class Rows(NamedTuple):
    """The rows of one source: its id, a table, the table's checksum; and for ``Tally`` what is counted of them."""

    source: object
    table: pa.Table
    checksum: int
    counts: tuple


def rows_of(result: str, graph, query: Query, traversals: Traversals, asked: np.ndarray | None) -> Iterator[Rows]:
    """Yield the rows of each source of a group, in order.

    Parameters
    ----------
    result : str
        Name of a form whose rows belong to one source each.
    graph : Graph
    query : Query
        What the traversals were asked for.
    traversals : Traversals
    asked : int64 array or None
        Vertex numbers of the targets, in the order of the rows.
    """
    if result == "targets":
        return _of_pairs(graph, query, traversals, asked)
    return _MAKERS[result](graph, query, traversals)


def _of_distances(graph, query, traversals, with_predecessors=False) -> Iterator[Rows]:
    for traversal in traversals:
        shown = traversal if with_predecessors else replace(traversal, predecessor=None)
        checksum, *counts = counted(graph, traversal, as_written(traversal, query))
        yield Rows(id_of(graph, traversal.source), table_of(graph, shown, query), checksum, tuple(counts))


def _of_predecessors(graph, query, traversals) -> Iterator[Rows]:
    return _of_distances(graph, query, traversals, with_predecessors=True)


def _of_reached(graph, query, traversals) -> Iterator[Rows]:
    for traversal in traversals:
        written = as_written(traversal, query)
        xp = namespace(written.distance)
        vertex = xp.flatnonzero(written.reached)
        source = Column(graph.ids_at(xp.full(vertex.size, traversal.source)))
        table = arrow_table({"source": source, "vertex": Column(graph.ids_at(vertex))})
        checksum = checksum_of_rows(traversal.source, [bits_of(to_host(vertex))])
        counts = edges_of(graph, traversal), int(traversal.rounds), histogram_of(written)
        yield Rows(id_of(graph, traversal.source), table, checksum, counts)


def _of_pairs(graph, query, traversals, asked) -> Iterator[Rows]:
    xp = namespace(traversals.distance)
    # Where nothing had to be proven, the plan has kept the distances of the targets alone, in their own order.
    all_there = traversals.distance.shape[1] == graph.n_vertices and query.keep == "all"
    places = xp.asarray(asked if all_there else np.searchsorted(query.targets, asked))
    number = bits_of(asked)
    for i, source in enumerate(traversals.sources):
        distance = traversals.distance[i][places]
        columns = pair_columns(graph, traversals.sources[i : i + 1], asked, distance, query.limit)
        values, missing = (to_host(array) for array in (columns["distance"].values, columns["distance"].is_null))
        checksum = checksum_of_rows(source, [number, bits_of(values, missing)])
        if all_there:
            traversal = traversals[i]
            _, *counts = counted(graph, traversal, as_written(traversal, query))
        else:
            counts = 0, int(traversals.rounds[i]), histogram_of_values(traversals.algorithm, values[~missing])
        yield Rows(id_of(graph, source), arrow_table(columns), checksum, tuple(counts))


def _of_levels(graph, query, traversals) -> Iterator[Rows]:
    levels, counts = zip(*_levels(graph, query, traversals), strict=True)
    columns = level_columns(graph, traversals.sources, levels)
    return _cut(graph, traversals.sources, columns, [row.size for row in levels], counts)


def _of_summaries(graph, query, traversals) -> Iterator[Rows]:
    if traversals.algorithm == "bfs":
        levels, counts = zip(*_levels(graph, query, traversals), strict=True)
        figures = [figures_of_counts(row) for row in levels]
    else:
        figures, counts = [], []
        for traversal in traversals:
            written = as_written(traversal, query)
            figures.append(figures_of_distances(written.distance[written.reached]))
            counts.append((edges_of(graph, traversal), int(traversal.rounds), histogram_of(written)))
    columns = summary_columns(graph, traversals.algorithm, traversals.sources, figures)
    return _cut(graph, traversals.sources, columns, [1] * len(traversals), counts)


def _levels(graph, query, traversals) -> Iterator[tuple[np.ndarray, tuple]]:
    """Of each source how many vertices lie at each hop count, and what ``Tally`` takes."""
    if traversals.counts is not None:  # the plan has kept nothing else, so nobody knows which vertices they are
        for row, rounds in zip(traversals.counts, traversals.rounds, strict=True):
            row = row[: np.flatnonzero(row)[-1] + 1]
            yield row, (0, int(rounds), histogram_of_counts(row))
        return
    for traversal in traversals:
        row = level_counts(as_written(traversal, query))
        yield row, (edges_of(graph, traversal), int(traversal.rounds), histogram_of_counts(row))


def _cut(graph, sources: np.ndarray, columns: dict[str, Column], sizes: list[int], counts) -> Iterator[Rows]:
    """Cut the rows of a group at the sources, so that a part is made of the same pieces however large the groups were."""
    table = arrow_table(columns)
    bits = [bits_of(column.values) for name, column in columns.items() if name != "source"]
    end = 0
    for source, size, count in zip(sources, sizes, counts, strict=True):
        begin, end = end, end + size
        checksum = checksum_of_rows(source, [column[begin:end] for column in bits])
        yield Rows(id_of(graph, source), table.slice(begin, size), checksum, count)


_MAKERS = {
    "distances": _of_distances,
    "predecessors": _of_predecessors,
    "summary": _of_summaries,
    "levels": _of_levels,
    "reachable": _of_reached,
}


def id_of(graph, number: int):
    """The user's id of one vertex, as a plain Python value."""
    return names_of(graph, np.array([number]))[0]


def names_of(graph, numbers: np.ndarray) -> list:
    """The user's ids of vertices, as plain Python values."""
    if graph.device == "cuda" and not graph.has_string_ids:
        return graph.ids[cuda.cp.asarray(numbers)].tolist()
    return graph.ids_at(numbers).tolist()
