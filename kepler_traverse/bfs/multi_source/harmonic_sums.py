"""Harmonic centrality of all vertices of a graph on a GPU, estimated from the hops of sampled sources.

The harmonic centrality of v is the sum of 1 / d(u, v) over all u other than v (Boldi, Vigna. Axioms
for centrality. Internet Mathematics 10, 2014), here divided by n - 1. Each source adds to the sums
of all vertices that it reaches: after each level the bits of a frontier are counted per vertex, so
no distance is stored. Sums are integers, in units of 2^-40, so that their bits do not depend on the
order of sources and groups.

Eppstein, Wang. Fast approximation of centrality. Journal of Graph Algorithms and Applications 8,
2004: the mean over k sources drawn at random is within an error of the mean over all, for every
vertex at once, by Hoeffding's inequality and the union bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..._arrays import Array
from ...cuda import cp, graph_statistics
from ...cuda.launch import launch
from ...graph import Graph
from ...search.query import Query
from .bit_parallel_gpu import ADD, BITSET_WORDS, WORD, GroupRun

UNIT_BITS = 40  # sums of 2^24 sources fit into 64 bits
MAX_SOURCES = 1 << (64 - UNIT_BITS)


def sample_size(n_vertices: int, error: float, confidence: float) -> int:
    """Return how many random sources suffice for an estimate of the harmonic centrality, divided by
    n - 1, of every vertex.

    Each estimate is within ``error`` (absolute, above 0) for all vertices at once with probability
    ``confidence`` (below 1). By Hoeffding's inequality and the union bound that takes k sources
    with ``k >= ln(2 n / (1 - confidence)) / (2 error^2)``, as each adds a number between 0 and 1.
    """
    return math.ceil(math.log(2 * n_vertices / (1 - confidence)) / (2 * error**2))


class _HarmonicRun(GroupRun):
    """A bit-parallel search that adds 1 / d(u, v) to a sum per reached vertex v, for each source u.

    ``sums``: uint64 array of shape (n,), in units of 2^-40. Searches add up; nothing clears it.
    """

    def __init__(self, graph: Graph, query: Query, group: int):
        """Allocate for up to ``group`` sources, and sums of 0."""
        super().__init__(graph, query, group)
        self.sums = cp.zeros(graph.n_vertices, np.uint64)

    def count_level(self, level: int) -> None:
        """Add 1 / ``level``, in units of 2^-40, to the sum of each vertex of the frontier, once for
        each source that has reached it in this level.
        """
        unit = np.uint64((1 << UNIT_BITS) // level)
        args = (self.front, self.in_front, self.n, unit, self.sums)
        launch(self.kernels[ADD], self.n, args)


class HarmonicSums:
    """Sums of 1 / d(u, v) over sources u, for each vertex v, in units of 2^-40.

    ``graph`` is on a GPU. ``group``: sources that are searched together, 32 to 1,024 by powers of
    two.

    - ``n_added``: how many sources have been added, those without edges included.
    """

    def __init__(self, graph: Graph, group: int = WORD * BITSET_WORDS[-1]):
        """Allocate sums of 0, to which no source has been added."""
        self._graph = graph
        self.group = group
        # With this output a run calls ``count_level`` after each level, and stores no distances.
        query = Query(predecessors=False, output="counts")
        self._run = _HarmonicRun(graph, query, group)
        self.n_added = 0  # sources, those without edges included

    def add(self, sources: np.ndarray, progress: Callable[[int], object] | None = None) -> None:
        """Search from ``sources``, distinct vertex numbers, and add to the sums what they reach.

        A source without an outgoing edge reaches nothing, and is not searched from. ``progress`` is
        called after each group with the number of its sources.
        """
        degrees = graph_statistics.degrees_at(self._graph.offsets, sources)
        searched = sources[degrees > 0]
        for first in range(0, searched.size, self.group):
            group = searched[first : first + self.group]
            self._run.search(group)
            if progress is not None:
                progress(group.size)
        self.n_added += sources.size

    @property
    def sums(self) -> Array:
        """The sums in units of 2^-40, uint64 of shape (n_vertices,)."""
        return self._run.sums

    def centrality(self) -> Array:
        """Return the estimate of the harmonic centrality of each vertex divided by n - 1, float64."""
        # The mean over the sources estimates the sum over all vertices divided by n, in which a
        # vertex adds 0 to itself. n / (n - 1) makes it the sum divided by n - 1.
        n = self._graph.n_vertices
        scale = n / (max(n - 1, 1) * max(self.n_added, 1) * float(1 << UNIT_BITS))
        return self.sums.astype(np.float64) * scale
