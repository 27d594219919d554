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
    """What distinguishes one algorithm from the other, by the name that public functions, files and
    the command line use.
    """

    name: str  # {"bfs", "sssp"}
    # whether a distance is a number of edges; else it is a sum of weights, and the graph needs
    # weights
    counts_hops: bool
    limit_name: str  # {"max_depth", "cutoff"}: the option that bounds the distance
    # The distance of a vertex without a path: -1 or infinity. In int64 distances of sums, the
    # largest integer stands for it in place of infinity.
    unreached: float
    no_limit: float  # a limit that every distance is within

    @property
    def is_weighted(self) -> bool:
        """Whether distances are sums of weights; else they are numbers of edges."""
        return not self.counts_hops

    @property
    def metric(self) -> str:
        """What distances are: "hops" or "weights", as ``Graph.hierarchy`` names it."""
        return "hops" if self.counts_hops else "weights"

    def result_dtype(self, graph: Any) -> np.dtype:
        """Return the type of the column ``distance`` of results: int32 for hops, else
        ``graph.distance_dtype``.
        """
        if self.counts_hops:
            return np.dtype(np.int32)
        return graph.distance_dtype

    def narrowest_dtype(self, graph: Any) -> np.dtype:
        """Return the narrowest type in which distances from several sources may come: int8 for
        hops, else the type of the weights. A group of searches may need a wider one.
        """
        if self.counts_hops:
            return np.dtype(np.int8)
        return graph.weights.dtype

    def largest_limit(self, limit: float) -> float:
        """Return a limit, lowered to the largest hop count of int32 if distances are hops."""
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
