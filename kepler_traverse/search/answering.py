"""When hub labels answer a query in place of a search."""

from __future__ import annotations

from typing import Any

from ..hierarchy.lookup import looks_up
from ..hub_labels.arrays import HubLabels
from .query import Query


def answering_labels(graph: Any, query: Query, metric: str) -> HubLabels | None:
    """Return the labels of a graph if it has some and they answer the query: distances at few
    targets per source.
    """
    if query.output != "targets" or not looks_up(query, graph.n_vertices):
        return None
    return graph.derived.known_labels(metric)
