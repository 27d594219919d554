"""The knobs of the published SSSP systems: their ranges, and the origin of each default."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

from ...errors import InputError

# Mean number of edges per vertex that are lighter than the width of a pile: Davidson et al. 2014, for warps of 32.
EDGES_PER_PILE = 32.0
MAX_BUCKETS = 10  # length of the list of thresholds of bucketing; its knob may be lower
# The same of delta-stepping. The paper has as many buckets as the heaviest edge needs. Here vertices beyond the last bucket
# wait in one pile, which is divided after the last bucket.
DELTA_BUCKETS = 8
BLOCK = 256


def _require(strategy: str, name: str, value, expected: str, fits: bool) -> None:
    if not fits:
        raise InputError(f"knob {name} of {strategy} must be {expected}, not {value!r}")


def _is_number(value, minimum: float) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value) and value >= minimum


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

    def __post_init__(self):
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

    def __post_init__(self):
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

    def __post_init__(self):
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

    def __post_init__(self):
        fits = self.threshold in ("lightest_edges", "minimum")
        _require("threshold_front", "threshold", self.threshold, "'lightest_edges' or 'minimum'", fits)
