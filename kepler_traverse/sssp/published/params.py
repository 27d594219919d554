"""The knobs of the papers' SSSP systems, with their range and where each number came from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

from ...errors import InputError

# Edges of a vertex, on average, that are shorter than a pile is wide: Davidson et al. 2014, for warps of 32.
EDGES_PER_PILE = 32.0
# Piles that the list of thresholds holds at once. Of bucketing, which its knob may lower; and of delta-stepping, whose paper
# has as many as fit the heaviest edge: what lies beyond the last waits in a pile that is divided when the list is through.
MAX_BUCKETS = 10
DELTA_BUCKETS = 8
BLOCK = 256


def _require(strategy: str, name: str, value, expected: str, fits: bool) -> None:
    if not fits:
        raise InputError(f"knob {name} of {strategy} must be {expected}, not {value!r}")


def _is_number(value, least: float) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value) and value >= least


@dataclass(frozen=True, kw_only=True)
class NearFarKnobs:
    """Settings of the near and far piles (Davidson, Baxter, Garland, Owens 2014).

    Attributes
    ----------
    edges_a_pile : float, 0 or more
        The near pile is as wide as this many mean weights, divided by the mean degree; 0 takes the nearest vertices alone.

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
        A bucket is as wide as this many mean weights, divided by the mean degree; 0 takes the nearest vertices alone.
    n_buckets : int from 1 to 10
        Buckets that are told apart; what lies beyond waits in one pile.

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
        Width of a bucket, and the weight up to which an edge is light. 0 takes the heaviest weight divided by the mean
        degree: the paper's choice for weights up to 1 is of the order of 1 / degree.

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
    """Settings of the frontier by a threshold that the vertices give.

    Attributes
    ----------
    threshold : {"lightest_edges", "minimum"}
        ``"lightest_edges"``: the least sum of a waiting vertex's distance and its lightest edge, as nothing can fall below
        it any more (Ortega-Arranz, Torres, Llanos, Gonzalez-Escribano 2013). ``"minimum"``: the least distance, as in
        Dijkstra's algorithm, but of all vertices that have it (Martin, Torres, Gavilanes 2009).

    Raises
    ------
    InputError
        A value out of range.
    """

    threshold: str = "lightest_edges"

    def __post_init__(self):
        fits = self.threshold in ("lightest_edges", "minimum")
        _require("threshold_front", "threshold", self.threshold, "'lightest_edges' or 'minimum'", fits)
