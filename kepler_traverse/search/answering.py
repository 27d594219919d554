"""When hub labels answer a query in place of a search."""

from __future__ import annotations

from typing import Any

from ..hierarchy.lookup import looks_up
from ..hub_labels.arrays import HubLabels
from .query import Query

# Rows of labels that are read in the time of a sweep from one source to some targets. On
# USA-road-d.NY a sweep to 1 to 1,000 targets takes a core 34 to 56 us per source, and a row of the
# labels of 10 to 1,000 targets 1.6 to 2.5 ns.
_ROWS_PER_SWEEP = 20_000


def answering_labels(graph: Any, query: Query, metric: str) -> HubLabels | None:
    """Return the labels of a graph if it has some and they answer the query: distances at few
    targets per source.
    """
    if query.output != "targets":
        return None
    labels: HubLabels | None = graph.derived.known_labels(metric)
    if labels is None or query.has_target_lists:
        return labels if looks_up(query, graph.n_vertices) else None
    if query.targets is None or query.targets.size * labels.hubs_per_vertex > _ROWS_PER_SWEEP:
        return None
    return labels


def targets_per_source(query: Query) -> float:
    """Return the mean number of targets of a source: its own, or those of all sources."""
    if query.has_target_lists or query.targets is None:
        return query.targets_per_source
    return float(query.targets.size)
