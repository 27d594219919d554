"""Closed vertices, at which paths begin and end but through which none leads.

Building splits each into two numbers of one id: the first has the edges that leave it and none that
enters, the second those that enter it and none that leaves. An edge of weight 0, the tie of the
vertex, leads from the first to the second: the way from a vertex to itself. Searches begin at the
first and find the second, so strategies, hierarchies, labels and certificates need not know which
vertices are closed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._arrays import Array, index_dtype, namespace
from ..cpu import edge_rows as edge_rows_on_cpu
from ..cuda import edge_rows as edge_rows_on_gpu
from ..errors import InputError, option_text, several
from ..protocols import EdgeRowsBackend


class Split(NamedTuple):
    """The numbering of a graph whose closed vertices are split."""

    # int64 (2, n_closed), as ``Graph.closed`` has it: of each closed vertex the final number where
    # paths begin, and the final number where paths end. It is in host memory on any device.
    numbers: np.ndarray
    # Integers of shape (n,) for the n vertices as they were numbered first. ``first``: the final
    # number where paths begin. ``last``: the final number where paths end, which is the same unless
    # the vertex is closed.
    first: Array
    last: Array
    # int64 (n + n_closed,), of each final number: the vertex as it was numbered first. It is in
    # host memory.
    names: np.ndarray

    def map_ends(self, src: Array, dst: Array) -> tuple[Array, Array]:
        """Return the final ends of edges, given by the numbers that vertices had first. A self-loop
        stays one.
        """
        xp = namespace(src)
        # An edge leaves where paths begin and enters where they end. A self-loop of a closed vertex
        # would become the edge from its first number to its last, so it begins and ends at one.
        return self.first[src], xp.where(src == dst, self.first[dst], self.last[dst])


def split_numbers(is_closed: np.ndarray, xp: Any) -> Split:
    """Return the numbering that splits those of the vertices 0..n-1 for which the bools
    ``is_closed`` of shape (n,) are True. Numbers stay in the order of ids.

    ``xp`` is the module, NumPy or CuPy, whose arrays ``first`` and ``last`` are.
    """
    # of each vertex, how many closed ones have a smaller number; each takes one number more
    n_closed_before = np.cumsum(is_closed) - is_closed
    first = np.arange(is_closed.size) + n_closed_before
    last = first + is_closed
    kind = index_dtype(is_closed.size + int(is_closed.sum()))
    return Split(
        numbers=np.stack([first[is_closed], last[is_closed]]),
        first=xp.asarray(first.astype(kind)),
        last=xp.asarray(last.astype(kind)),
        names=np.repeat(np.arange(is_closed.size), 1 + is_closed),
    )


def find_ties(closed: np.ndarray, offsets: Array, targets: Array) -> Array:
    """Return the positions in ``targets`` of the edges from closed vertices to themselves, int64 of
    shape (n_closed,), in the order of ``closed``; a negative number where there is no such edge.

    ``closed`` is as ``Graph.closed``, and ``offsets`` and ``targets`` are of the CSR.
    """
    xp = namespace(offsets)
    backend: EdgeRowsBackend = edge_rows_on_cpu if xp is np else edge_rows_on_gpu
    # of each closed vertex, the number where paths begin and the number where they end
    first, last = (xp.asarray(numbers.astype(targets.dtype)) for numbers in closed)
    return backend.find_edges(offsets, targets, first, last, np.dtype(np.int64))


def are_two_numbers_each(closed: np.ndarray, n_vertices: int) -> bool:
    """Return whether ``closed``, integers of shape (2, n_closed), has two vertex numbers per closed
    vertex, as ``Graph.closed`` has them.

    Both numbers of a closed vertex are adjacent, as numbers are in the order of ids, and the pairs
    ascend. In a reversed graph paths begin at the second number of each vertex.
    """
    first, last = closed  # where paths begin, and where they end
    low, high = np.sort(closed, axis=0)
    is_in_range = low.size == 0 or (low[0] >= 0 and high[-1] < n_vertices)
    ascends = (low[1:] > high[:-1]).all() and (high == low + 1).all()
    is_one_way = (last > first).all() or (last < first).all()
    return bool(is_in_range and ascends and is_one_way)


def fault_of_closed(graph: Any) -> str:
    """Describe what is wrong with the closed vertices of a stored graph; ``""`` if nothing is."""
    if graph.closed is None:
        return ""
    first, last = graph.closed  # where paths begin, and where they end
    is_fit = graph.directed and graph.weights is not None
    if not (is_fit and are_two_numbers_each(graph.closed, graph.n_vertices)):
        return "its closed vertices are no two numbers each"
    leaving = graph.offsets[last + 1] - graph.offsets[last]  # out-degrees
    if leaving.any() or np.isin(graph.targets, first).any():
        return "an edge leaves or enters a closed vertex where none may"
    ties = find_ties(graph.closed, graph.offsets, graph.targets)
    if (ties < 0).any() or graph.weights[ties].any():
        return "a closed vertex has no way to itself"
    if graph.ids_at(first).tolist() != graph.ids_at(last).tolist():
        return "a closed vertex has two ids"
    return ""


def where_paths_end(graph: Any, numbers: np.ndarray) -> np.ndarray:
    """Return the vertex numbers at which paths to some vertices end, int64 of the shape of
    ``numbers``, which are those at which paths from the same vertices begin.

    The two differ for closed vertices alone.
    """
    # Stored graphs of earlier versions may have an empty array, for a list that closed none.
    if graph.closed is None or not graph.closed.size:
        return numbers
    first, last = graph.closed  # where paths begin, and where they end
    order = np.argsort(first)
    ranks = np.searchsorted(first, numbers, sorter=order)
    # The place of each number in ``first``, if it is one of these; else any place, whose number
    # differs. ``minimum``: a number above all of ``first`` has the rank ``first.size``.
    places = order[np.minimum(ranks, first.size - 1)]
    return np.where(first[places] == numbers, last[places], numbers)


def where_pairs_end(graph: Any, origins: np.ndarray, destinations: np.ndarray) -> np.ndarray:
    """Return the vertex number at which the path of each pair ends, of shape (n_pairs,).

    ``origins`` and ``destinations`` have the two vertices of each pair, of closed ones the number
    where paths begin, as ``Graph.to_numbers`` returns it. The path from a vertex to itself has no
    edge, so it ends where it begins, also if the vertex is closed.
    """
    return np.where(origins == destinations, origins, where_paths_end(graph, destinations))


def where_paths_begin(graph: Any) -> np.ndarray:
    """Return the vertex numbers of all possible sources, one per id, ascending: of a closed vertex
    the one where paths begin.
    """
    if graph.closed is None:
        return np.arange(graph.n_vertices)
    return _all_but(graph, graph.closed[1])


def identifying_numbers(graph: Any, numbers: Array) -> Array:
    """Return vertex numbers in which both numbers of a closed vertex are replaced by the smaller
    one, so that checksums do not depend on which of them a result has.
    """
    if graph.closed is None:
        return numbers
    # For each number, the smaller one of its vertex. In a reversed graph it is the second of
    # ``closed``.
    smaller = np.arange(graph.n_vertices)
    smaller[graph.closed.max(axis=0)] = graph.closed.min(axis=0)
    return namespace(numbers).asarray(smaller)[numbers]


def listed_vertices(graph: Any) -> np.ndarray | None:
    """Return the vertex numbers that results list, one per id, ascending: of a closed vertex the
    one where paths end. None if no vertex is closed, so that all are listed.
    """
    if graph.closed is None:
        return None
    return _all_but(graph, graph.closed[0])


def count_listed(graph: Any) -> int:
    """Return the number of ids, each counted once."""
    if graph.closed is None:
        return graph.n_vertices
    return graph.n_vertices - graph.closed.shape[1]


def begins_at_closed(graph: Any, sources: np.ndarray) -> np.ndarray:
    """Return a bool per source: whether it is closed. A search from such a source reaches both of
    its numbers, but the vertex counts once.
    """
    if graph.closed is None:
        return np.zeros(len(sources), bool)
    return np.isin(sources, graph.closed[0])


def _all_but(graph: Any, numbers: np.ndarray) -> np.ndarray:
    """Return all vertex numbers of a graph but ``numbers``, ascending."""
    is_left = np.ones(graph.n_vertices, bool)
    is_left[numbers] = False
    return np.flatnonzero(is_left)


def refuse_closed(graph: Any, why: str, remedy: str = "") -> None:
    """Raise InputError if a graph has closed vertices.

    The message begins with ``why``, which says what does not respect them, and ends with
    ``remedy``, what to do; without one it is to build the graph without closed vertices.
    """
    if graph.closed is not None:
        remedy = remedy or f"build the graph without {option_text('closed')}"
        size = several(graph.closed.shape[1], "closed vertex")
        raise InputError(f"{why}, and the graph has {size}, through which no path leads; {remedy}")
