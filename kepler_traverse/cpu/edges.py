"""The edges of a graph as compiled functions take them: one argument in place of two or three."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Neighbors(NamedTuple):
    """Where the edges out of each vertex lead, in compressed sparse rows; of a reversed graph,
    where the edges into each vertex come from.
    """

    # int64 array of shape (n_vertices + 1,): vertex v has edges offsets[v] to offsets[v + 1] - 1
    offsets: np.ndarray
    # integer array of shape (n_edges,): the vertex at the other end of each edge, ascending for
    # each vertex
    targets: np.ndarray

    @classmethod
    def of(cls, graph: Any) -> Neighbors:
        """Return the neighbors of all vertices of a ``Graph``."""
        return cls(graph.offsets, graph.targets)


class Edges(NamedTuple):
    """``Neighbors``, and the weight of each edge."""

    # offsets, targets: as in ``Neighbors``
    offsets: np.ndarray
    targets: np.ndarray
    # the weight of each edge, of shape (n_edges,) and the type in which sums are computed; or of
    # shape (0,), for functions that then count hops
    weights: np.ndarray

    @classmethod
    def of(cls, graph: Any) -> Edges:
        """Return the edges of a ``Graph`` with weights."""
        return cls(graph.offsets, graph.targets, graph.weights)
