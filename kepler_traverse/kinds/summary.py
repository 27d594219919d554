"""``result="summary"``: how many vertices each source reaches, how far they are, and its closeness."""

from __future__ import annotations

import numpy as np

from .._arrays import Array
from ..graph.closed import begins_at_closed, count_listed
from ..search.algorithms import ALGORITHMS
from ..search.distance_stats import exact_totals, summary_of_levels
from ..search.frames import Column
from ..search.results import Traversals
from .records import Asked, SourceRecords, Values


def of_levels(asked: Asked, counts: Array) -> SourceRecords:  # noqa: ARG001
    """Return the records ``reached, farthest, total, harmonic`` by hops, one per source, as
    ``make_records`` does of sums of weights.

    ``counts``, of shape (k, n_levels), are the vertices of each source at 0, 1, 2, ... hops.
    ``asked`` is ignored, since the kind has no options.
    """
    summary = summary_of_levels(counts)
    reached, farthest, total, harmonic = summary.T
    values = {"reached": reached, "farthest": farthest, "total": total, "harmonic": harmonic}
    return SourceRecords(values, np.ones(len(summary), np.int64))  # one record per source


def make_records(asked: Asked, group: Traversals) -> SourceRecords:
    """Return the records ``reached, farthest, total, harmonic`` by sums of weights, one per source.

    They are the number of vertices that it reaches within the limit, their largest distance, the
    sum of their distances, and the sum of the reciprocals of positive distances. Sums of integer
    distances are exact.

    ``asked`` is what is asked of the kind, and ``group`` has the distances from some of the
    sources.

    Raises PrecisionError: a sum of integer distances exceeds int64.
    """
    graph = asked.graph
    limit = asked.query.limit
    # Sums of distances are float64 here. ``exact_totals`` adds integers again where that may round.
    stats = group.stats(graph.offsets, limit)
    if graph.integer_weights:
        total = exact_totals(group.distance, limit, stats)
    else:
        total = stats.total
    # A closed vertex, through which no path leads, has one number where paths begin and one where
    # they end. A search from it reaches both, which are one vertex.
    values = {
        "reached": stats.reached - begins_at_closed(graph, group.sources),
        "farthest": stats.farthest,
        "total": total,
        "harmonic": stats.harmonic,
    }
    return SourceRecords(values, np.ones(len(group), np.int64))


def make_columns(asked: Asked, values: Values) -> dict[str, Column]:
    """Return columns ``reached, eccentricity, sum, mean, closeness, harmonic``, in host memory.

    ``asked`` is what is asked of the kind, and ``values`` has the arrays of the records by name.
    """
    reached = values["reached"]
    total = values["total"]
    # without the source itself, which each search reaches
    others = reached - 1

    # The closeness of NetworkX: the reciprocal of the mean distance, times the share of the other
    # vertices that is reached. What float64 does not hold is infinite. Both choices of ``where``
    # are computed, so that a division by 0 is no error.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        mean = np.where(others > 0, total / others, 0.0)
        # ``count_listed`` counts a closed vertex, which has two numbers, once
        fraction = others / max(count_listed(asked.graph) - 1, 1)
        closeness = np.where(total > 0, others / total * fraction, 0.0)

    kind = ALGORITHMS[asked.algorithm].result_dtype(asked.graph)
    sum_dtype = np.int64 if kind.kind == "i" else np.float64
    return {
        "reached": Column(reached.astype(np.int64)),
        "eccentricity": Column(values["farthest"].astype(kind)),
        "sum": Column(total.astype(sum_dtype, copy=False)),
        "mean": Column(mean),
        "closeness": Column(closeness),
        "harmonic": Column(values["harmonic"]),
    }
