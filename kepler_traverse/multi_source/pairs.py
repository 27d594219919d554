"""Distances of pairs: one row per row given. Searches are grouped by origin, and each may stop at its own destinations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from .. import arguments
from .._arrays import Array, at_most, is_reached, namespace
from ..errors import InputError, UnknownVertexError
from ..graph import Graph
from ..protocols import Ids
from ..search.algorithms import ALGORITHMS
from ..search.frames import Column, as_returned_distance, frame_from
from ..search.query import TargetLists
from ..search.results import Traversals

_CHECKED_ROWS = 4096  # rows that are looked up together to find the first one without a vertex


class PairTable(NamedTuple):
    """Rows of origin and destination, grouped by origin.

    Attributes
    ----------
    sources : int64 array of vertex numbers, NumPy
        The distinct origins, in the order of their first rows.
    lists : TargetLists
        The destinations of each origin, in the order of their rows; one that is given twice is there twice.
    rows : int64 array of shape (n_rows,), NumPy
        The row of each destination in ``lists``.
    """

    sources: np.ndarray
    lists: TargetLists
    rows: np.ndarray

    def of(self, sources: np.ndarray) -> PairTable:
        """Return the part of some origins, given as vertex numbers, in their order."""
        order = np.argsort(self.sources, kind="stable")
        places = order[np.searchsorted(self.sources, sources, sorter=order)]
        sizes = np.diff(self.lists.offsets)[places]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        entries = np.arange(offsets[-1]) + np.repeat(self.lists.offsets[places] - offsets[:-1], sizes)
        return PairTable(np.asarray(sources), TargetLists(offsets, self.lists.vertices[entries]), self.rows[entries])


def pair_table(origins: np.ndarray, destinations: np.ndarray) -> PairTable:
    """Group rows of vertex numbers by origin."""
    distinct, first, place = np.unique(origins, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    rank_of_row = rank[place]
    rows = np.argsort(rank_of_row, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(rank_of_row, minlength=order.size))])
    return PairTable(distinct[order], TargetLists(offsets.astype(np.int64), destinations[rows]), rows)


def numbers_of_pairs(graph: Graph, origins: Ids, destinations: Ids) -> tuple[np.ndarray, np.ndarray]:
    """Return the vertex numbers of the origins and of the destinations.

    Raises
    ------
    UnknownVertexError
        A row holds no vertex of the graph. The message names the row and the id.
    InputError
        There are not as many origins as destinations.
    """
    found = numbers_of_rows(graph, "origins", origins), numbers_of_rows(graph, "destinations", destinations)
    if found[0].size != found[1].size:
        raise InputError(
            f"{found[0].size} origins and {found[1].size} destinations: a pair needs one of each, so give columns of the "
            "same length"
        )
    return found


def numbers_of_rows(graph: Graph, name: str, given: Ids) -> np.ndarray:
    """Return the vertex numbers of one column of ids; the error for an unknown vertex names its row."""
    given = arguments.arrow(name, given)
    missing = given.isna() if hasattr(given, "isna") else given.is_null() if hasattr(given, "is_null") else None
    if missing is not None:
        is_missing = np.asarray(missing, bool)
        if is_missing.any():
            raise UnknownVertexError(f"{name}, row {int(is_missing.argmax())}: it holds no id; drop such rows")
    ids = arguments.ids(name, given)
    role = name.removesuffix("s")
    try:
        return graph.numbers_of(ids, role)
    except UnknownVertexError:
        for begin in range(0, len(ids), _CHECKED_ROWS):
            chunk = ids[begin : begin + _CHECKED_ROWS]
            if not _are_vertices(graph, chunk, role):
                row = next(i for i in range(len(chunk)) if not _are_vertices(graph, chunk[i : i + 1], role))
                _raise_for_row(graph, name, role, begin + row, chunk[row : row + 1])
        raise


def _are_vertices(graph: Graph, ids: Any, role: str) -> bool:
    try:
        graph.numbers_of(ids, role)
    except UnknownVertexError:
        return False
    return True


def _raise_for_row(graph: Graph, name: str, role: str, row: int, ids: Any) -> None:
    value = ids[0]
    if value is None or value != value:  # NaN, with which data frames mark what is missing
        raise UnknownVertexError(f"{name}, row {row}: it holds no id; drop such rows")
    try:
        graph.numbers_of(ids, role)
    except UnknownVertexError as error:
        raise UnknownVertexError(f"{name}, row {row}: {error}") from None


def distances_of_pairs(plan: Any, table: PairTable) -> Iterator[tuple[Traversals, Array, int, int]]:
    """Search from all origins. Yield each group with the distances at its entries of the table ``begin`` to ``end - 1``."""
    at = 0
    if plan.query.targets is not None:  # one origin, whose plan has its destinations
        group = plan.run(table.sources)
        yield group, table.lists.take(group.distance, plan.query.targets), 0, table.rows.size
        return
    for group in plan.iter_groups(table.sources, table.lists):
        begin, at = at, at + len(group)
        first, last = int(table.lists.offsets[begin]), int(table.lists.offsets[at])
        yield group, group.distance, first, last


def returned_distances(graph: Graph, distance: Array, limit: float | None) -> tuple[Array, Array]:
    """Return distances in the type of a result, and a mask of those that are missing."""
    missing = ~is_reached(distance)
    if limit is not None:
        missing |= ~at_most(distance, limit)
    counts_hops = distance.dtype.kind == "i" and distance.dtype.itemsize < 8
    return distance.astype(np.int32) if counts_hops else as_returned_distance(graph, distance, missing), missing


def frame_of_pairs(plan: Any, origins: np.ndarray, destinations: np.ndarray, table: PairTable) -> Any:
    """Return ``source, target, distance`` of all rows in their order, null where there is no path."""
    graph = plan.graph
    xp = namespace(graph.offsets)
    kind = ALGORITHMS[plan.algorithm].result_dtype(graph)
    values, is_missing = xp.zeros(origins.size, kind), xp.ones(origins.size, bool)
    for _, distance, begin, end in distances_of_pairs(plan, table):
        rows = xp.asarray(table.rows[begin:end])
        values[rows], is_missing[rows] = returned_distances(graph, distance, plan.query.limit)
    columns = {
        "source": Column(graph.ids_at(xp.asarray(origins))),
        "target": Column(graph.ids_at(xp.asarray(destinations))),
        "distance": Column(values, is_missing),
    }
    return frame_from(columns, graph.device)
