"""Rows of many edges cut into pieces, so that a graph is near-regular to threads that take a row each; and its inverse.

Luo, Wong, Hwu. An effective GPU implementation of breadth-first search. DAC 2010, section 4: "when handling very irregular
graphs, we first converted them into near-regular graphs by splitting the big-degree nodes", once for many searches. The
paper does not say how distances stay right. Here the pieces of a vertex lie side by side, an edge still leads to the vertex,
and whoever reaches it queues all of its pieces: no edge is added, and none gets longer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._arrays import Array, namespace
from ...errors import StrategyError


@dataclass(frozen=True, eq=False)
class Pieces:
    """The rows of a graph in pieces; its targets stay as they are.

    Attributes
    ----------
    first : int64 array of shape (n_vertices + 1,)
        Pieces of vertex v are ``first[v]`` to ``first[v + 1] - 1``, one at least.
    owner : array of shape (n_pieces,), of the targets' type
        The vertex that each is a piece of.
    offsets : int64 array of shape (n_pieces + 1,)
        Edges of piece p are ``targets[offsets[p]:offsets[p + 1]]``.
    """

    first: Array
    owner: Array
    offsets: Array

    def joined(self) -> Array:
        """The offsets of the graph that was split: the inverse."""
        return self.offsets[self.first]


def split(graph, most: int) -> Pieces:
    """Cut the rows of a graph into pieces of at most ``most`` edges, on the graph's device.

    Raises
    ------
    StrategyError
        There are more pieces than the type of the targets can number.
    """
    xp = namespace(graph.offsets)
    n, index = graph.n_vertices, graph.targets.dtype
    first = xp.zeros(n + 1, np.int64)
    first[1:] = xp.cumsum(xp.maximum(-(-graph.degrees // most), 1))
    n_pieces = int(first[n])
    if n_pieces > np.iinfo(index).max:
        raise StrategyError(
            f"rows cut into pieces of {most} edges make {n_pieces} pieces, which numbers of type {index} cannot count; "
            "take longer pieces"
        )
    pieces = xp.arange(n_pieces, dtype=np.int64)
    owner = xp.searchsorted(first, pieces, side="right") - 1
    offsets = xp.empty(pieces.size + 1, np.int64)
    offsets[:-1] = graph.offsets[owner] + (pieces - first[owner]) * most
    offsets[-1:] = graph.offsets[-1:]
    return Pieces(first, owner.astype(index), offsets)
