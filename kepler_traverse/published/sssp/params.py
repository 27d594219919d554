"""The knobs of the published SSSP systems: their ranges, and the origin of each default."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

from ...errors import InputError

WIDTHS = (1, 2, 4, 8, 16, 32)  # lanes that may share a vertex

# Mean number of edges per vertex that are lighter than the width of a pile: Davidson et al. 2014, for warps of 32.
EDGES_PER_PILE = 32.0
MAX_BUCKETS = 10  # length of the list of thresholds of bucketing; its knob may be lower
# The same of delta-stepping. The paper has as many buckets as the heaviest edge needs. Here vertices beyond the last bucket
# wait in one pile, which is divided after the last bucket.
DELTA_BUCKETS = 8
BLOCK = 256


def _require(strategy: str, name: str, value: Any, expected: str, fits: bool) -> None:
    if not fits:
        raise InputError(f"knob {name} of {strategy} must be {expected}, not {value!r}")


def _is_number(value: Any, minimum: float) -> bool:
    return not isinstance(value, bool) and issubclass(type(value), Real) and math.isfinite(value) and value >= minimum


@dataclass(frozen=True, kw_only=True)
class NearFarKnobs:
    """Settings of the near and far piles (Davidson, Baxter, Garland, Owens 2014).

    Attributes
    ----------
    edges_a_pile : float, 0 or more
        The width of the near pile is this many mean weights, divided by the mean degree. 0: only the nearest vertices.

    Raises
    ------
    InputError
        A value out of range.
    """

    edges_a_pile: float = EDGES_PER_PILE

    def __post_init__(self) -> None:
        value = self.edges_a_pile
        _require("near_far_piles", "edges_a_pile", value, "a number, 0 or more", _is_number(value, 0))


@dataclass(frozen=True, kw_only=True)
class BucketKnobs:
    """Settings of the buckets (Davidson, Baxter, Garland, Owens 2014).

    Attributes
    ----------
    edges_a_bucket : float, 0 or more
        The width of a bucket is this many mean weights, divided by the mean degree. 0: only the nearest vertices.
    n_buckets : int from 1 to 10
        Number of buckets. Vertices beyond the last one wait in one pile.

    Raises
    ------
    InputError
        A value out of range.
    """

    edges_a_bucket: float = EDGES_PER_PILE
    n_buckets: int = MAX_BUCKETS

    def __post_init__(self) -> None:
        value, n = self.edges_a_bucket, self.n_buckets
        _require("buckets", "edges_a_bucket", value, "a number, 0 or more", _is_number(value, 0))
        fits = isinstance(n, int) and not isinstance(n, bool) and 1 <= n <= MAX_BUCKETS
        _require("buckets", "n_buckets", n, f"a whole number from 1 to {MAX_BUCKETS}", fits)


@dataclass(frozen=True, kw_only=True)
class DeltaSteppingKnobs:
    """Settings of delta-stepping (Meyer, Sanders 2003).

    Attributes
    ----------
    delta : float, 0 or more
        Width of a bucket, and the weight up to which an edge is light. 0: the largest weight divided by the mean degree,
        since the paper's choice for weights up to 1 is of the order of 1 / degree.

    Raises
    ------
    InputError
        A value out of range.
    """

    delta: float = 0.0

    def __post_init__(self) -> None:
        _require("delta_stepping", "delta", self.delta, "a number, 0 or more", _is_number(self.delta, 0))


@dataclass(frozen=True, kw_only=True)
class ThresholdKnobs:
    """Settings of the frontier by a threshold computed from the waiting vertices.

    Attributes
    ----------
    threshold : {"lightest_edges", "minimum"}
        ``"lightest_edges"``: the smallest sum of a waiting vertex's distance and its lightest edge, since no vertex can fall
        below it any more (Ortega-Arranz, Torres, Llanos, Gonzalez-Escribano 2013). ``"minimum"``: the smallest distance, as
        in Dijkstra's algorithm, but for all vertices that have it (Martin, Torres, Gavilanes 2009).

    Raises
    ------
    InputError
        A value out of range.
    """

    threshold: str = "lightest_edges"

    def __post_init__(self) -> None:
        fits = self.threshold in ("lightest_edges", "minimum")
        _require("threshold_front", "threshold", self.threshold, "'lightest_edges' or 'minimum'", fits)


@dataclass(frozen=True, kw_only=True)
class HBfKnobs:
    """Options of H-BF. The defaults are those of the paper (Busato, Bombieri 2015), whose sections are in parentheses.

    Attributes
    ----------
    edge_classes : bool
        Whether two bits per edge let rounds skip edges that lead nowhere, and skip atomics where a single edge leads to a
        vertex (4.1). This needs a copy of the targets and limits vertex numbers to 2^30.
    duplicates : {"atomic64", "mark", "keep"}
        Handling of a vertex that is improved twice in a round. ``"atomic64"``: queued once, since one word holds the
        round and the distance (4.2; float32 only). ``"mark"``: queued once, by an atomic on a separate mark.
        ``"keep"``: queued twice.
    cache_modifiers : bool
        Whether reads of frontier and offsets bypass the caches, and weights are read through the read-only cache (5.1).
    enqueue : {"shared", "prefix_sum", "atomic"}
        How vertices are added to the next frontier. ``"shared"``: collected per thread, compacted in shared memory and
        written contiguously (5.1). ``"prefix_sum"``: collected and written from registers. ``"atomic"``: each at once.
    vertices_per_warp : int from 1 to 1024
        Vertices that a virtual warp processes one after the other (5.2).
    rounds_per_read : int from 1 to 1024
        Rounds that are launched before the host reads the size of the frontier. The paper reads it after each round. A
        traversal begins with single rounds, and later launches at most an eighth of the rounds so far.
    min_width, max_width : {1, 2, 4, 8, 16, 32}
        Bounds on the lanes of a virtual warp: resident threads / frontier size, rounded down to a power of two (5.2).
        Equal bounds give a static width.
    heavy : {"children", "blocks", "none"}
        Mapping of the edges of a vertex with more than ``heavy_degree``: a child kernel (5.3; at most 2,048 may be
        pending), a block, or the virtual warp that processes the vertex.
    heavy_degree : int, 1 or more
        The paper's T_DP (5.3).
    counters : bool
        Whether to fill ``Traversal.counters``, which takes time.

    Raises
    ------
    InputError
        A value is out of range.
    """

    edge_classes: bool = True
    duplicates: str = "atomic64"
    cache_modifiers: bool = True
    enqueue: str = "shared"
    vertices_per_warp: int = 32
    rounds_per_read: int = 1
    min_width: int = 4
    max_width: int = 32
    heavy: str = "children"
    heavy_degree: int = 4096
    counters: bool = False

    def __post_init__(self) -> None:
        def is_whole(value: Any, least: int, most: int) -> bool:
            return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most

        checks = {
            "duplicates": ("'atomic64', 'mark' or 'keep'", self.duplicates in ("atomic64", "mark", "keep")),
            "enqueue": ("'shared', 'prefix_sum' or 'atomic'", self.enqueue in ("shared", "prefix_sum", "atomic")),
            "heavy": ("'children', 'blocks' or 'none'", self.heavy in ("children", "blocks", "none")),
            "vertices_per_warp": ("a whole number from 1 to 1024", is_whole(self.vertices_per_warp, 1, 1024)),
            "rounds_per_read": ("a whole number from 1 to 1024", is_whole(self.rounds_per_read, 1, 1024)),
            "min_width": (f"one of {WIDTHS}", is_whole(self.min_width, 1, 32) and self.min_width in WIDTHS),
            "max_width": (f"one of {WIDTHS}", is_whole(self.max_width, 1, 32) and self.max_width in WIDTHS),
            "heavy_degree": ("a whole number from 1 to 2^31 - 1", is_whole(self.heavy_degree, 1, 2**31 - 1)),
        }
        for name in ("edge_classes", "cache_modifiers", "counters"):
            checks[name] = ("true or false", isinstance(getattr(self, name), bool))
        for name, (expected, fits) in checks.items():
            if not fits:
                raise InputError(f"knob {name} of h_bf must be {expected}, not {getattr(self, name)!r}")
        if self.min_width > self.max_width:
            raise InputError(f"knob min_width of h_bf must not exceed max_width, and {self.min_width} > {self.max_width}")
