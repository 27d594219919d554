"""Rows of all sources as one frame in host memory, each column written once, into memory of its final size.

The number of rows is known only after the last search, and a plan uses its arrays again. So the distances of reached
vertices are kept as they are, a byte or two each for hops. Sources that reach the same vertices share one list of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numba
import numpy as np

from .._arrays import at_most, is_hops, is_reached
from ..graph import Graph
from ..search.frames import Column
from ..search.query import Query
from ..search.results import Traversals

_ROWS_PER_THREAD = 2**18  # fewer take less time than a thread


class Reached:
    """Vertices that one or several sources reach.

    Attributes
    ----------
    number : integer array
        Vertex numbers, ascending.
    """

    def __init__(self, number: np.ndarray, mask: np.ndarray):
        self.number, self.mask = number, mask
        self._ids: np.ndarray | None = None
        self.is_shared = False

    def write_ids(self, ids: np.ndarray, out: np.ndarray) -> None:
        """Write the ids of the vertices; those that serve several sources are looked up once."""
        if not self.is_shared:
            np.take(ids, self.number, out=out, mode="clip")
            return
        if self._ids is None:  # two threads may make the same array
            self._ids = ids[self.number]
        out[:] = self._ids


class Rows(NamedTuple):
    """The rows of one source: its vertex number, the reached vertices, and values of these."""

    source: int
    reached: Reached
    distance: np.ndarray
    predecessor: np.ndarray | None


def can_write_rows(graph: Graph, unreached: str) -> bool:
    """Whether the rows are those of this module: integer ids in host memory, without rows of unreached vertices."""
    return graph.device == "cpu" and not graph.has_string_ids and unreached == "omit"


def rows_of_group(graph: Graph, query: Query, group: Traversals) -> list[Rows]:
    """Return the rows of each source of a group, in memory of their own."""

    def rows(begin: int, end: int) -> list[Rows]:
        found: list[Rows] = []
        for i in range(begin, end):
            found.append(_rows_of(query, group, i, found[-1].reached if found else None))
        return found

    return [row for rows in _in_threads(rows, len(group), len(group) * graph.n_vertices) for row in rows]


def _rows_of(query: Query, group: Traversals, i: int, last: Reached | None) -> Rows:
    distance: Any = group.distance
    distance = distance[i]
    mask = is_reached(distance)
    if query.limit is not None:
        mask &= at_most(distance, query.limit)
    if query.targets is not None:
        mask = mask[query.targets]
    if last is not None and np.array_equal(mask, last.mask):
        reached = last
        reached.is_shared = True
    else:
        reached = Reached(np.flatnonzero(mask) if query.targets is None else query.targets[mask], mask)
    predecessor = None if group.predecessor is None else group.predecessor[i][reached.number]
    return Rows(int(group.sources[i]), reached, distance[reached.number], predecessor)


def columns_of_rows(graph: Graph, rows: Sequence[Rows]) -> dict[str, Column]:
    """Return the rows of sources as columns ``source, vertex, distance[, predecessor]``.

    Parameters
    ----------
    graph : Graph
    rows : sequence of Rows
        At least one, in the order of the frame.
    """
    ids: Any = graph.ids
    ends = np.cumsum([row.reached.number.size for row in rows])
    total = int(ends[-1])
    kinds = {row.distance.dtype for row in rows}
    if all(map(is_hops, kinds)):
        kind = np.dtype(np.int32)
    else:
        kind = graph.distance_dtype if graph.returns_integers else np.result_type(*kinds)
    columns = {"source": np.empty(total, ids.dtype), "vertex": np.empty(total, ids.dtype), "distance": np.empty(total, kind)}
    if rows[0].predecessor is not None:
        columns["predecessor"] = np.empty(total, ids.dtype)

    def write(begin: int, end: int) -> None:
        for row, last in zip(rows[begin:end], ends[begin:end].tolist(), strict=True):
            here = slice(last - row.reached.number.size, last)
            columns["source"][here] = ids[row.source]
            row.reached.write_ids(ids, columns["vertex"][here])
            columns["distance"][here] = row.distance
            if row.predecessor is not None:
                np.take(ids, row.predecessor, out=columns["predecessor"][here], mode="clip")

    _in_threads(write, len(rows), total)
    return {name: Column(values) for name, values in columns.items()}


def _in_threads(work: Callable[[int, int], Any], size: int, n_rows: int) -> list[Any]:
    """Call ``work(begin, end)`` for equal shares of ``range(size)``, one per thread that Numba would use."""
    count = max(1, min(numba.get_num_threads(), size, n_rows // _ROWS_PER_THREAD))
    bounds = [size * i // count for i in range(count + 1)]
    if count == 1:
        return [work(0, size)]
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, bounds[:-1], bounds[1:]))
