"""The hierarchy of a graph: its arrays, ready for sweeps."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from .._arrays import make_offsets, positions_in_groups
from .contraction import Contraction, Lists
from .sweep import UNREACHED, depth_first, longest_upward, positions_above

MAX_SUM = 2**61  # sums of hierarchies stop there


class Edges(NamedTuple):
    """Edges between positions in compressed sparse rows."""

    offsets: np.ndarray  # int64 array of shape (n + 1,)
    heads: np.ndarray  # int32 array: positions above
    weights: np.ndarray  # int32 or int64 array: multiples of the unit of the hierarchy


class Restriction(NamedTuple):
    """The part of a hierarchy that a sweep for some targets needs."""

    # int32 array of shape (n,): the place of each position in the sweep, -1 if it takes no part
    places: np.ndarray
    downward: Edges  # between places


@dataclass(frozen=True, eq=False, kw_only=True)
class Hierarchy:
    """A contraction hierarchy: an order of the vertices, and shortcuts that keep all distances.

    ``Graph.hierarchy`` makes one. From each vertex to each other one a shortest path leads upward
    first and then downward.

    Attributes
    ----------
    order, position : int32 arrays of shape (n_vertices,)
        The vertex at each position, from the top, and the position of each vertex.
    upward, downward : Edges
        Edges and shortcuts from each position to positions above it, and those to each position
        from positions above it. The same object for an undirected graph.
    unit : float
        The power of two that weights are multiples of; 1 for integers.
    longest : int
        An upper bound of all finite distances, in units.
    levels : int
        Levels of the hierarchy: an edge leads to a higher level.
    shortcuts : int
        Edges that are not of the graph. In an undirected graph each counts once.
    seconds : float
        Seconds that contraction took; 0 for a stored hierarchy.
    """

    order: np.ndarray
    position: np.ndarray
    upward: Edges
    downward: Edges
    unit: float
    longest: int
    levels: int
    shortcuts: int
    seconds: float = field(default=0.0, compare=False)

    @property
    def n_vertices(self) -> int:
        return int(self.order.size)

    @property
    def dtype(self) -> np.dtype:
        """Type of sums: int32 if it holds all, else int64."""
        return self.upward.weights.dtype

    @property
    def is_symmetric(self) -> bool:
        return self.upward is self.downward

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        edges = (self.upward,) if self.is_symmetric else (self.upward, self.downward)
        return int(
            self.order.nbytes
            + self.position.nbytes
            + sum(array.nbytes for each in edges for array in each)
        )

    def reversed(self) -> Hierarchy:
        """Return the hierarchy of the graph with all edges reversed; it shares the arrays."""
        if self.is_symmetric:
            return self
        return replace(self, upward=self.downward, downward=self.upward)

    def restricted(self, targets: np.ndarray) -> Restriction:
        """Return what a sweep for some vertices needs, by their numbers in int64."""
        kept = positions_above(self.position[targets], self.downward.offsets, self.downward.heads)
        places = np.full(self.n_vertices, -1, np.int32)
        places[kept] = np.arange(kept.size, dtype=np.int32)
        offsets, edges = _rows(self.downward.offsets[kept], np.diff(self.downward.offsets)[kept])
        # all of them are kept: they are above a kept position
        heads = places[self.downward.heads[edges]]
        return Restriction(places, Edges(offsets, heads, self.downward.weights[edges]))

    def __repr__(self) -> str:
        if self.seconds:
            took = f", built in {self.seconds:.1f} s"
        else:
            took = ""
        return (
            f"<Hierarchy: {self.n_vertices:,} vertices, {self.levels:,} levels, {self.shortcuts:,} shortcuts, "
            f"{self.nbytes / 2**20:,.0f} MiB{took}>"
        )


def hierarchy_from(contraction: Contraction, unit: float, seconds: float) -> Hierarchy | None:
    """Return the hierarchy of a finished contraction, or None if its sums reach ``MAX_SUM``."""
    ahead, back = (_edges(lists) for lists in (contraction.ahead, contraction.back))
    n = ahead.offsets.size - 1
    order = np.empty(n, np.int32)
    position = np.full(n, -1, np.int32)
    if contraction.is_symmetric:
        above = ahead
    else:
        above = _joined(ahead, back)
    depth_first(above.offsets, above.heads, order, position)
    upward = renumbered(ahead, order, position)
    if contraction.is_symmetric:
        downward = upward
    else:
        downward = renumbered(back, order, position)
    longest = sum(int(longest_upward(*edges, MAX_SUM)) for edges in (upward, downward))
    if longest >= MAX_SUM:
        return None
    if longest < UNREACHED[np.dtype(np.int32)]:
        narrow = [
            edges._replace(weights=edges.weights.astype(np.int32)) for edges in (upward, downward)
        ]
        upward = narrow[0]
        if contraction.is_symmetric:
            downward = narrow[0]
        else:
            downward = narrow[1]
    return Hierarchy(
        order=order,
        position=position,
        upward=upward,
        downward=downward,
        unit=unit,
        longest=longest,
        levels=int(contraction.level.max(initial=-1)) + 1,
        shortcuts=contraction.shortcuts,
        seconds=seconds,
    )


def _rows(begins: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the offsets of rows that are put one after the other, and where their entries were."""
    return make_offsets(sizes), np.repeat(begins, sizes) + positions_in_groups(sizes)


def _edges(lists: Lists) -> Edges:
    offsets, at = _rows(lists.begin, lists.size)
    return Edges(offsets, lists.head[at], lists.weight[at])


def renumbered(edges: Edges, order: np.ndarray, position: np.ndarray) -> Edges:
    """Return edges with row ``order[i]`` as row i, and ``position`` as the number of each head."""
    offsets, at = _rows(edges.offsets[order], np.diff(edges.offsets)[order])
    return Edges(offsets, position[edges.heads[at]], edges.weights[at])


def _joined(ahead: Edges, back: Edges) -> Edges:
    """Each vertex's neighbors above, whatever the direction of the edge."""
    sizes = np.diff(ahead.offsets)
    sizes_back = np.diff(back.offsets)
    offsets = ahead.offsets + back.offsets
    heads = np.empty(offsets[-1], np.int32)
    heads[_rows(offsets[:-1], sizes)[1]] = ahead.heads
    heads[_rows(offsets[:-1] + sizes, sizes_back)[1]] = back.heads
    nothing: Any = np.empty(0, np.int64)
    return Edges(offsets, heads, nothing)
