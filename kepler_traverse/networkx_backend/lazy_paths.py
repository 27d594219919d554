"""Paths that are computed when they are read: a dictionary of lists would hold every path whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from .graph import KeplerGraph
from .kernels import NONE


class Paths(Mapping[Any, list[Any]]):
    """A path for each node that a search reached. It is equal to NetworkX's dictionary of lists; ``dict`` makes one.

    Parameters
    ----------
    order : array of the vertices that are reached
        The order of iteration.
    walk : callable
        ``walk(vertex)`` returns the vertex numbers of the path from the source to a vertex that is reached.
    reverse : bool
        Return every path from its end to the source.
    """

    def __init__(self, graph: KeplerGraph, order: np.ndarray, walk: Callable[[int], list[int]], reverse: bool = False):
        self._graph, self._order, self._walk, self._reverse = graph, order, walk, reverse
        self._reached = np.zeros(len(graph), bool)
        self._reached[order] = True

    def __getitem__(self, node: Any) -> list[Any]:
        vertex = self._graph._adj[node]
        if not self._reached[vertex]:
            raise KeyError(node)
        path = self._walk(vertex)
        if self._reverse:
            path.reverse()
        return path if self._graph.numbered else list(map(self._graph.nodes.__getitem__, path))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._graph.names(self._order))

    def __len__(self) -> int:
        return int(self._order.size)

    def __repr__(self) -> str:
        return repr(dict(self))


def walk_to_parents(parent: np.ndarray) -> Callable[[int], list[int]]:
    """Return the ``walk`` of ``Paths`` along the one parent of each vertex."""
    parents: list[int] = []

    def walk(vertex: int) -> list[int]:
        if not parents:  # a list is read faster than an array, and its making takes as long as many paths
            parents.extend(parent.tolist())
        path = [vertex]
        while (vertex := parents[vertex]) != NONE:
            path.append(vertex)
        path.reverse()
        return path

    return walk
