"""What distinguishes the two algorithms, as records: code reads a field in place of comparing
names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import MAX_HOP_COUNT, UNREACHED


@dataclass(frozen=True, kw_only=True)
class Algorithm:
    """One algorithm, by the name that the public functions, the files and the command line use."""

    name: str  # {"bfs", "sssp"}
    # whether a distance is a number of edges; else it is a sum of weights, and the graph needs
    # weights
    counts_hops: bool
    limit_name: str  # {"max_depth", "cutoff"}: the option that bounds the distance
    # Distance of a vertex without a path (in int64 distances, the largest integer stands for it;
    # see ``unreached_value``).
    unreached: float
    no_limit: float  # the bound that every distance meets

    @property
    def is_weighted(self) -> bool:
        """Whether distances are sums of weights."""
        return not self.counts_hops

    @property
    def metric(self) -> str:
        """What distances are, as ``Graph.hierarchy`` names it."""
        return "hops" if self.counts_hops else "weights"

    def result_dtype(self, graph: Any) -> np.dtype:
        """Type of the ``distance`` column of a graph's results: int32 for hops, else
        ``graph.distance_dtype``.
        """
        if self.counts_hops:
            return np.dtype(np.int32)
        return graph.distance_dtype

    def narrowest_dtype(self, graph: Any) -> np.dtype:
        """The narrowest type in which several sources' distances of a graph may come: int8, or that
        of the weights.
        """
        if self.counts_hops:
            return np.dtype(np.int8)
        return graph.weights.dtype

    def largest_limit(self, limit: float) -> float:
        """Return the limit, but no more than a distance can be."""
        if self.counts_hops:
            return min(limit, MAX_HOP_COUNT)
        return limit


BFS = Algorithm(
    name="bfs",
    counts_hops=True,
    limit_name="max_depth",
    unreached=UNREACHED,
    no_limit=MAX_HOP_COUNT,
)
SSSP = Algorithm(
    name="sssp", counts_hops=False, limit_name="cutoff", unreached=np.inf, no_limit=np.inf
)

ALGORITHMS = {algorithm.name: algorithm for algorithm in (BFS, SSSP)}
