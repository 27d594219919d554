"""The knobs of the published SSSP systems: their ranges, and the origin of each default."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import InputError
from ..knobs import WIDTHS, Knobs, number, one_of, switch, whole

# Width of a pile, in mean weights divided by the mean degree: Davidson et al. 2014, for warps of 32.
EDGES_PER_PILE = 32.0
MAX_BUCKETS = 10  # length of the list of thresholds of bucketing; its knob may be lower
# The same of delta-stepping. The paper has as many buckets as the heaviest edge needs. Here
# vertices beyond the last bucket wait in one pile, which is divided after the last bucket.
DELTA_BUCKETS = 8
BLOCK = 256


@dataclass(frozen=True, kw_only=True)
class NearFarKnobs(Knobs):
    """Settings of the near and far piles (Davidson, Baxter, Garland, Owens 2014).

    Attributes
    ----------
    edges_a_pile : float, 0 or more
        The width of the near pile is this many mean weights, divided by the mean degree. 0: only
        the nearest vertices.
    """

    of = "near_far_piles"
    edges_a_pile: float = number(EDGES_PER_PILE)


@dataclass(frozen=True, kw_only=True)
class BucketKnobs(Knobs):
    """Settings of the buckets (Davidson, Baxter, Garland, Owens 2014).

    Attributes
    ----------
    edges_a_bucket : float, 0 or more
        The width of a bucket is this many mean weights, divided by the mean degree. 0: only the
        nearest vertices.
    n_buckets : int from 1 to 10
        Number of buckets. Vertices beyond the last one wait in one pile.
    """

    of = "buckets"
    edges_a_bucket: float = number(EDGES_PER_PILE)
    n_buckets: int = whole(MAX_BUCKETS, 1, MAX_BUCKETS)


@dataclass(frozen=True, kw_only=True)
class DeltaSteppingKnobs(Knobs):
    """Settings of delta-stepping (Meyer, Sanders 2003).

    Attributes
    ----------
    delta : float, 0 or more
        Width of a bucket, and the weight up to which an edge is light. 0: the largest weight
        divided by the mean degree, since the paper's choice for weights up to 1 is of the order of
        1 / degree.
    """

    of = "delta_stepping"
    delta: float = number(0.0)


@dataclass(frozen=True, kw_only=True)
class ThresholdKnobs(Knobs):
    """Settings of the frontier by a threshold computed from the waiting vertices.

    Attributes
    ----------
    threshold : {"lightest_edges", "minimum"}
        ``"lightest_edges"``: the smallest sum of a waiting vertex's distance and its lightest edge,
        since no vertex can fall below it any more (Ortega-Arranz, Torres, Llanos,
        Gonzalez-Escribano 2013). ``"minimum"``: the smallest distance, as in Dijkstra's algorithm,
        but for all vertices that have it (Martin, Torres, Gavilanes 2009).
    """

    of = "threshold_front"
    threshold: str = one_of("lightest_edges", "minimum")


@dataclass(frozen=True, kw_only=True)
class HBfKnobs(Knobs):
    """Options of H-BF. The defaults are those of the paper (Busato, Bombieri 2015), whose sections
    are in parentheses.

    Attributes
    ----------
    edge_classes : bool
        Whether two bits per edge let rounds skip edges that lead nowhere, and skip atomics where a
        single edge leads to a vertex (4.1). This needs a copy of the targets and limits vertex
        numbers to 2^30.
    duplicates : {"atomic64", "mark", "keep"}
        Handling of a vertex that is improved twice in a round. ``"atomic64"``: queued once, since
        one word holds the round and the distance (4.2; float32 only). ``"mark"``: queued once, by
        an atomic on a separate mark. ``"keep"``: queued twice.
    stream_frontier, read_only_edges, bypass_l1 : bool
        Cache hints (5.1, items 1 to 3): frontier and offsets are evicted first; targets and weights
        of edges are read through the read-only cache; distances bypass the L1 cache.
    enqueue : {"shared", "prefix_sum", "atomic"}
        How vertices are added to the next frontier. ``"shared"``: collected per thread, compacted
        in shared memory and written contiguously (5.1). ``"prefix_sum"``: collected and written
        from registers. ``"atomic"``: each at once.
    vertices_per_warp : int from 1 to 1024
        Vertices that a virtual warp processes one after the other (5.2).
    rounds_per_read : int from 1 to 1024
        Rounds that are launched before the host reads the size of the frontier. The paper reads it
        after each round. A traversal begins with single rounds, and later launches at most an
        eighth of the rounds so far.
    min_width, max_width : {1, 2, 4, 8, 16, 32}
        Bounds on the lanes of a virtual warp: resident threads / frontier size, rounded down to a
        power of two (5.2). Equal bounds give a static width.
    heavy : {"children", "blocks", "none"}
        Mapping of the edges of a vertex with more than ``heavy_degree``: a child kernel (5.3; at
        most 2,048 may be pending), a block, or the virtual warp that processes the vertex.
    heavy_degree : int, 1 or more
        The paper's T_DP (5.3).
    counters : bool
        Whether to fill ``Traversal.counters``, which takes time.
    """

    of = "h_bf"
    edge_classes: bool = switch(True)
    duplicates: str = one_of("atomic64", "mark", "keep")
    stream_frontier: bool = switch(True)
    read_only_edges: bool = switch(True)
    bypass_l1: bool = switch(True)
    enqueue: str = one_of("shared", "prefix_sum", "atomic")
    vertices_per_warp: int = whole(32, 1, 1024)
    rounds_per_read: int = whole(1, 1, 1024)
    min_width: int = one_of(*WIDTHS, default=4)
    max_width: int = one_of(*WIDTHS, default=32)
    heavy: str = one_of("children", "blocks", "none")
    heavy_degree: int = whole(4096, 1, 2**31 - 1)
    counters: bool = switch(False)

    def __post_init__(self) -> None:
        """Check the value of each field, and that the bounds of the width do not cross."""
        super().__post_init__()
        if self.min_width > self.max_width:
            raise InputError(
                "knob min_width of h_bf must not exceed max_width, and "
                f"{self.min_width} > {self.max_width}"
            )
