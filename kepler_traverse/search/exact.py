"""Exact sums of integer weights: the type that represents every relevant sum, and when a search
needs a wider type.

A search with integer weights runs in float32, and in float64 or int64 only where float32 could
round. Let L be the integer above which the type may round: 2^24 for float32, 2^53 for float64. If
all finite distances of a result are smaller than L in absolute value, then all are exact, although
larger sums may have been rounded on the way:

- The result is a fixed point: ``fl(d[u] + w) >= d[v]`` for every edge, and equal for the edge that
  set ``d[v]`` last.
- Rounding is monotonic and keeps L, so a sum of absolute value L or more is never rounded to a
  smaller one.
- So the sum over an edge that set ``d[v]`` was exact where ``abs(d[v]) < L``. And no edge allows a
  shorter distance: its sum either was exact, or is L or more.
- The edge that set ``d[v]`` last comes from a vertex whose distance was final before. So these
  edges form a tree from the source, the distances are exact lengths of paths in it, and no edge
  shortens one.

If a bound on all path lengths is smaller than L, no check is needed. Otherwise one pass over the
distances decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from .._arrays import (
    EXACT_BELOW,
    MAX_INTEGER,
    Array,
    get_device,
    is_reached,
    is_rows,
    namespace,
    unreached_value,
)
from ..cpu.compiled import njit
from ..cuda import exact as exact_on_gpu
from ..errors import PrecisionError, option_text
from ..graph import Graph
from .algorithms import ALGORITHMS
from .query import Query, SourceValues

_AT_ONCE = 1 << 16  # weights that ``has_exact_sums`` looks at before it may end


def describe_distances(graph: Graph, algorithm: str) -> dict[str, str]:
    """Return a description, for display, of the distances that a search by ``algorithm`` in
    ``graph`` returns: their ``type``, and as ``sums`` what is guaranteed of them.
    """
    if ALGORITHMS[algorithm].counts_hops:
        return {"type": "int32", "sums": "hops"}
    # Sums of integer weights take a wider type where they could round. If the user has chosen the
    # type of the distances, such a sum is an error.
    if graph.returns_integers:
        exact = "exact integers"
    elif graph.integer_weights:
        exact = "exact integers, or an error"
    else:
        exact = ""
    return {
        "type": str(graph.distance_dtype),
        "sums": exact or "least sum over all paths, rounded from left to right",
    }


def has_exact_sums(graph: Graph, counts_hops: bool, limit: float | None) -> bool:
    """Return whether a search up to a limit never rounds a sum, so that a path is as long when it
    is added up from its other end. ``counts_hops`` says whether distances are numbers of edges,
    which always are exact.

    Sums of floats are exact below 2^24 (float32) or 2^53 (float64) times a power of two of which
    all weights are multiples.
    """
    if counts_hops:
        return True
    if graph.has_negative_weights:
        return False
    # ``max_sum`` bounds the sum of the weights of any path without a cycle.
    if limit is None:
        longest = graph.derived.max_sum
    else:
        longest = min(graph.derived.max_sum, limit)
    # A search also makes sums that are beyond the limit by one edge.
    longest += graph.derived.heaviest
    # Sums of integers take wider types up to int64, unless the user has chosen a float type.
    if graph.returns_integers:
        return bool(longest < MAX_INTEGER)
    weights: Array = graph.weights
    if not math.isfinite(longest):
        return False

    # All multiples of this power of two up to the longest sum are floats of the weights' type.
    # ``EXACT_BELOW`` has the L of a type, a power of two: its exponent is the bits of the mantissa.
    exponent = math.frexp(longest)[1]
    mantissa_bits = EXACT_BELOW[weights.dtype].bit_length() - 1
    unit = math.ldexp(1.0, exponent - mantissa_bits)
    # The unit is smaller than every positive float, so that each weight is a multiple of it.
    if unit == 0:
        return True
    for begin in range(0, weights.size, _AT_ONCE):
        part = weights[begin : begin + _AT_ONCE].astype(np.float64)
        if not (part % unit == 0).all():
            return False
    return True


def admits_all(graph: Graph, limit: float) -> bool:
    """Return whether a limit of weighted distances is beyond all distances that their type holds,
    so that it excludes none.
    """
    if graph.weights is None:
        return False
    if graph.returns_integers:
        return limit >= MAX_INTEGER
    return limit > float(np.finfo(graph.distance_dtype).max)


class Sums:
    """The type in which a plan sums distances, and the graph to search in, with weights of that
    type.

    A search begins in the type of the weights and changes to a wider one once a result needs it.
    Distances beyond the limit are not part of the result.

    - ``graph``: the graph, with weights in the present type.
    - ``_limit``: the limit; None if there is none, or if paths may lead beyond it.
    - ``_is_exact``: whether all sums must be exact, since weights are integers.
    - ``_may_round``: whether a sum could be rounded in the present type, so that distances must be
      checked.
    """

    def __init__(self, graph: Graph, algorithm: str, limit: float | None = None) -> None:
        """Begin with the type of the weights of ``graph``. ``algorithm`` is "bfs", whose hops never
        round, or "sssp". ``limit`` is the largest distance of interest; None without a limit.
        """
        self.graph = graph
        # with negative weights no search is pruned
        if graph.has_negative_weights:
            self._limit = None
        else:
            self._limit = limit
        self._is_exact = (
            ALGORITHMS[algorithm].is_weighted
            and graph.weights is not None
            and graph.integer_weights
        )
        self._decide()

    def _decide(self) -> None:
        """Set ``_may_round``: whether distances of a result must be checked, as one could be too
        large for the present type. ``EXACT_BELOW`` has, by type, the number L of the head of this
        module, from which on the type may round.
        """
        self._may_round = self._is_exact and self._longest >= EXACT_BELOW[self.dtype]

    @property
    def _longest(self) -> float:
        """A bound of the absolute value of each distance of a result: by the weights of any path,
        and by the limit.
        """
        longest = self.graph.derived.max_sum
        if self._limit is None:
            return longest
        return min(longest, self._limit)

    @property
    def wider_types(self) -> list[np.dtype]:
        """The types, wider than the present one, that sums may need; the narrowest first."""
        if not self.may_widen or self.graph.float_distances:
            return []
        dtypes = list(EXACT_BELOW)  # float32, float64, int64
        present = dtypes.index(self.dtype)
        # A type may be needed if the next narrower type could round the longest distance.
        longest = self._longest
        return [
            dtype
            for narrower, dtype in pairwise(dtypes[present:])
            if longest >= EXACT_BELOW[narrower]
        ]

    @property
    def dtype(self) -> np.dtype:
        """The present type of the sums, which is that of the weights: float32, float64 or int64."""
        weights: Array = self.graph.weights
        return weights.dtype

    @property
    def may_widen(self) -> bool:
        """Whether a wider type may be needed. If not, ``hold`` is always True, and need not be
        called.
        """
        return self._may_round and self.dtype.kind == "f"

    def round_limits(self, query: Query) -> Query:
        """Return the query of a search with sums of the present type: its limits are rounded as the
        sums are.

        If sums are rounded and limits are not, a sum that is equal to a limit could be beyond it.
        Such distances are too large for the type, so that ``hold`` finds them and a wider type is
        taken. Limits below all such distances stay as they are.
        """
        if self._is_exact and self.dtype.kind == "f":
            exact_below = EXACT_BELOW.get(self.dtype)
        else:
            exact_below = None
        if exact_below is None or query.limit is None or query.limit < exact_below:
            return query

        limits = query.limits
        with np.errstate(over="ignore"):  # a limit beyond the type becomes infinite
            limit = self.dtype.type(query.limit).item()
            if limits is not None:
                nearest = limits.values.astype(self.dtype).astype(np.float64)
                limits = SourceValues(
                    limits.numbers, np.where(limits.values < exact_below, limits.values, nearest)
                )
        return replace(query, limit=limit, limits=limits)

    def hold(self, distance: Array | None, below: float | None = None) -> bool:
        """Return whether the distances of a search, of shape (n,) or (k, n), are exact.

        ``below`` is a number that the search knows all finite distances to be below, or None. With
        it the distances may not have to be read.
        """
        if (
            not self.may_widen
            or distance is None
            or not distance.size
            or distance.dtype.kind == "i"
        ):
            return True
        bound = EXACT_BELOW[self.dtype]  # the type holds every integer below it
        # ``below`` bounds distances from above. Negative ones may be large in absolute value.
        if below is not None and below <= bound and not self.graph.has_negative_weights:
            return True
        return not any_beyond(distance, bound)

    def widen(self) -> None:
        """Change to the next wider type: ``graph`` then has weights of that type.

        Raises PrecisionError: the user has chosen the type of the distances, so that it must not
        change.
        """
        if self.graph.float_distances:
            raise PrecisionError(
                f"a distance is {EXACT_BELOW[self.dtype]:,} or more, where {self.dtype} does not hold every integer; "
                f"leave {option_text('weight_type')} out for exact integer distances"
            )
        kinds = list(EXACT_BELOW)  # float32, float64, int64
        self.graph = self.graph.derived.sums_in(kinds[kinds.index(self.dtype) + 1].name)
        self._decide()


class WideningSearch:
    """A planned search that repeats itself in a wider type if its sums could have been rounded.

    ``prepare(sums)`` compiles and allocates for the present type of ``Sums``. It returns
    ``search(argument)``, which returns an ``Outcome`` or a ``MultiSourceOutcome``. ``_search`` is
    the search of the present type, None while another one is prepared.
    """

    def __init__(self, sums: Sums, prepare: Callable[[Sums], Any]) -> None:
        """Prepare the search in the type of ``sums``."""
        self._sums = sums
        self._prepare = prepare
        self._search: Any = prepare(sums)

    def __call__(self, argument: Any) -> Any:
        """Search in the present type, or in the first wider one whose sums are exact, and return
        the outcome.

        ``argument`` is what the search takes: a vertex number, or those of several sources. The
        type stays for later calls.
        """
        while True:
            try:
                outcome = self._search(argument)
            except PrecisionError:
                if not self._sums.may_widen:
                    raise
            else:
                if self._sums.hold(outcome.distance, outcome.below):
                    return outcome
                del outcome  # frees its arrays before the next search allocates
            self._search = None  # frees the memory of the previous type
            self._sums.widen()
            self._search = self._prepare(self._sums)


def any_beyond(distance: Array, bound: int) -> bool:
    """Return whether a finite distance has an absolute value of ``bound`` or more.

    ``distance`` has the shape (n,) or (k, n), or is of another form, such as ``SparseDistances``.
    """
    if not is_rows(distance):
        return bool(distance.any_beyond(bound))
    if get_device(distance) == "cuda":
        return exact_on_gpu.any_beyond(distance, bound)
    rows = distance.reshape(-1, distance.shape[-1])
    as_distance_type = distance.dtype.type
    return any(_any_beyond(row, as_distance_type(bound), as_distance_type(np.inf)) for row in rows)


@njit(cache=True, nogil=True)
def _any_beyond(distance: np.ndarray, bound: Any, infinite: Any) -> bool:
    """Return whether a finite distance of one source has an absolute value of ``bound`` or more.
    ``bound`` and ``infinite``, which is infinity, have the type of the distances.
    """
    is_any_beyond = False
    for v in range(distance.size):  # no early exit, so that the compiler can vectorize the loop
        is_any_beyond |= (bound <= distance[v] < infinite) or (-infinite < distance[v] <= -bound)
    return is_any_beyond


def to_integers(distance: Array) -> Array:
    """Return weighted distances whose values are integers as int64, with ``2**63 - 1`` where
    unreached.
    """
    if distance.dtype.kind == "i":
        return distance
    xp = namespace(distance)
    reached = is_reached(distance)
    # infinity has no int64, so that 0 is converted in its place
    return xp.where(reached, xp.where(reached, distance, 0).astype(np.int64), np.int64(MAX_INTEGER))


def common_type(first: np.dtype, second: np.dtype) -> np.dtype:
    """Return the type that holds the distances of two groups of searches.

    ``first`` is the type of what earlier groups have found, and ``second`` that of the next group.
    If one is int64 and the other a float type, the result is int64: one group has sums that floats
    do not hold, and so all distances are integers. Before the first group a caller may pass int8 as
    ``first``, whatever the distances are: a float type as ``second`` then takes its place.
    """
    if first.kind == second.kind:
        return np.promote_types(first, second)
    if first == np.int64:
        return first
    return second


def convert_distances(distance: Array, dtype: np.dtype) -> Array:
    """Return distances in ``dtype``, a type that holds them; unreached vertices get the value that
    stands for them in that type. Between types of one kind, integers or floats, values are kept as
    they are.
    """
    if distance.dtype.kind == dtype.kind:
        return distance.astype(dtype, copy=False)
    xp = namespace(distance)
    reached = is_reached(distance)
    # 0 is converted in place of the value of unreached vertices, which the type may not hold
    return xp.where(reached, xp.where(reached, distance, 0).astype(dtype), unreached_value(dtype))


def concatenate_numbers(parts: Sequence[Array]) -> Array:
    """Concatenate ``parts``, arrays that several groups of searches have computed, at least one.

    If some are int64 and some are floats, the floats hold integers, and the result is int64. NumPy
    would make float64 of both, which may round.
    """
    xp = namespace(parts[0])
    dtypes = {part.dtype for part in parts}
    if np.dtype(np.int64) in dtypes and any(dtype.kind == "f" for dtype in dtypes):
        parts = [part.astype(np.int64, copy=False) for part in parts]
    return xp.concatenate(parts)


def narrow_distances(graph: Graph, distance: Array) -> Array:
    """Return int64 distances in the narrowest type, from that of the graph's weights on, that holds
    all of them exactly; the inverse of ``to_integers``.
    """
    xp = namespace(distance)
    is_finite = is_reached(distance)
    finite = xp.where(is_finite, distance, 0)
    if distance.size:
        largest = max(int(finite.max()), -int(finite.min()))
    else:
        largest = 0
    weights: Array = graph.weights
    dtypes = list(EXACT_BELOW)  # float32, float64, int64
    for dtype in dtypes[dtypes.index(weights.dtype) :]:
        # int64, the last type, is that of ``distance`` already.
        if largest < EXACT_BELOW[dtype] and dtype.kind == "f":
            return xp.where(is_finite, finite.astype(dtype), unreached_value(dtype))
    return distance
