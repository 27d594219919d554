"""The hierarchy of a graph: its arrays, ready for sweeps."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from .._arrays import make_offsets, positions_in_groups
from .contraction import Contraction, Lists
from .sweep import UNREACHED, depth_first, longest_upward, positions_above

MAX_SUM = 2**61  # a hierarchy on which a sum of weights may reach this is refused


class Edges(NamedTuple):
    """Edges of a hierarchy in one direction, between positions (0 is the top), in compressed sparse
    rows. Shortcuts are among them.

    The row of a position has the edges that join it to positions above it: those from it in
    ``Hierarchy.upward``, those to it in ``Hierarchy.downward``.
    """

    # int64 array of shape (n + 1,): the edges of row p are those from ``offsets[p]`` up to
    # ``offsets[p + 1]``
    offsets: np.ndarray
    heads: np.ndarray  # int32 array: the position above, at the other end of each edge
    weights: np.ndarray  # int32 or int64 array: multiples of the unit of the hierarchy


class Restriction(NamedTuple):
    """The part of a hierarchy that a sweep for some targets needs: the positions above a target,
    targets included, numbered anew by places 0 to n_places - 1 in the same order.
    """

    # int32 array of shape (n,): the place of each position, -1 if it takes no part
    places: np.ndarray
    downward: Edges  # edges downward between places


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
        Edges that are not of the graph. In an undirected graph each shortcut counts once.
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
        """Number of vertices."""
        return int(self.order.size)

    @property
    def dtype(self) -> np.dtype:
        """Type of weights and of their sums: int32 if it holds all sums, else int64."""
        return self.upward.weights.dtype

    @property
    def is_symmetric(self) -> bool:
        """Whether the graph is undirected, so that both directions have the same edges."""
        return self.upward is self.downward

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        directions = (self.upward,) if self.is_symmetric else (self.upward, self.downward)
        bytes_of_edges = sum(array.nbytes for edges in directions for array in edges)
        return int(self.order.nbytes + self.position.nbytes + bytes_of_edges)

    def reversed(self) -> Hierarchy:
        """Return the hierarchy of the graph with all edges reversed; it shares the arrays."""
        if self.is_symmetric:
            return self
        return replace(self, upward=self.downward, downward=self.upward)

    def restrict(self, targets: np.ndarray) -> Restriction:
        """Return the part that a sweep needs to find the distances of some vertices: all positions
        above them, themselves included.

        ``targets`` are the vertex numbers of these vertices, int64 of shape (k,).
        """
        positions = positions_above(
            self.position[targets], self.downward.offsets, self.downward.heads
        )
        places = np.full(self.n_vertices, -1, np.int32)
        places[positions] = np.arange(positions.size, dtype=np.int32)
        # ``edges``: the number, in ``downward``, of each edge of the part. ``offsets``: where those
        # of each place begin.
        offsets, edges = concatenate_rows(
            self.downward.offsets[positions], np.diff(self.downward.offsets)[positions]
        )
        # All heads have a place, since what is above a position of the part is in the part.
        heads = places[self.downward.heads[edges]]
        return Restriction(places, Edges(offsets, heads, self.downward.weights[edges]))

    def __repr__(self) -> str:
        """Return size, levels and memory of the hierarchy, and how long it took to build."""
        if self.seconds:
            took = f", built in {self.seconds:.1f} s"
        else:
            took = ""
        return (
            f"<Hierarchy: {self.n_vertices:,} vertices, {self.levels:,} levels, {self.shortcuts:,} shortcuts, "
            f"{self.nbytes / 2**20:,.0f} MiB{took}>"
        )


def hierarchy_from(contraction: Contraction, unit: float, seconds: float) -> Hierarchy | None:
    """Return the hierarchy of a finished contraction, or None if sums of weights may reach
    ``MAX_SUM``.

    ``unit`` is the number that its weights are multiples of, and ``seconds`` the time that
    contraction took.
    """
    edges_ahead = _edges(contraction.ahead)
    edges_back = _edges(contraction.back)

    # Number the vertices by positions: each after all that are above it, and soon after one of
    # them, so that positions that a sweep reads together are near in memory.
    n = edges_ahead.offsets.size - 1
    order = np.empty(n, np.int32)
    position = np.full(n, -1, np.int32)
    if contraction.is_symmetric:
        edges_above = edges_ahead
    else:
        edges_above = _join_directions(edges_ahead, edges_back)
    depth_first(edges_above.offsets, edges_above.heads, order, position)

    upward = renumbered(edges_ahead, order, position)
    if contraction.is_symmetric:
        downward = upward
    else:
        downward = renumbered(edges_back, order, position)
    # A shortest path leads upward and then downward, so it is at most the sum of both maxima.
    longest = sum(int(longest_upward(*edges, MAX_SUM)) for edges in (upward, downward))
    if longest >= MAX_SUM:
        return None

    # Take 32 bits where they hold all sums, which must be below the number that stands for no path:
    # a sweep then handles twice as many sources at a time.
    if longest < UNREACHED[np.dtype(np.int32)]:
        upward = upward._replace(weights=upward.weights.astype(np.int32))
        if contraction.is_symmetric:
            downward = upward
        else:
            downward = downward._replace(weights=downward.weights.astype(np.int32))
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


def concatenate_rows(begins: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return how to put rows of an array one after the other: where each row then begins, int64 of
    shape (n + 1,), and for each new entry its position in the old array.

    ``begins`` and ``sizes`` (n,) are where each row begins in the old array, and its length: begins
    [7, 2] and sizes [2, 3] give [0, 2, 5] and [7, 8, 2, 3, 4].
    """
    return make_offsets(sizes), np.repeat(begins, sizes) + positions_in_groups(sizes)


def _edges(lists: Lists) -> Edges:
    """Return the adjacency lists of a finished contraction as edges: a row per vertex, and heads
    that are vertex numbers.
    """
    offsets, entries = concatenate_rows(lists.begin, lists.size)
    return Edges(offsets, lists.head[entries], lists.weight[entries])


def renumbered(edges: Edges, order: np.ndarray, position: np.ndarray) -> Edges:
    """Return edges in other numbers: row ``order[i]`` becomes row i, and head v becomes
    ``position[v]``. ``order`` and ``position``, of shape (n,), are inverse permutations.
    """
    offsets, entries = concatenate_rows(edges.offsets[order], np.diff(edges.offsets)[order])
    return Edges(offsets, position[edges.heads[entries]], edges.weights[entries])


def _join_directions(ahead: Edges, back: Edges) -> Edges:
    """Return the neighbors above each vertex over edges in either direction, without weights: rows
    of ``ahead`` followed by those of ``back``. A neighbor may occur twice.
    """
    sizes_ahead = np.diff(ahead.offsets)
    sizes_back = np.diff(back.offsets)
    offsets = ahead.offsets + back.offsets
    heads = np.empty(offsets[-1], np.int32)
    # ``concatenate_rows`` is used in reverse: the positions that it returns say where the rows of
    # one direction go among the joined rows.
    heads[concatenate_rows(offsets[:-1], sizes_ahead)[1]] = ahead.heads
    heads[concatenate_rows(offsets[:-1] + sizes_ahead, sizes_back)[1]] = back.heads
    no_weights: Any = np.empty(0, np.int64)
    return Edges(offsets, heads, no_weights)
