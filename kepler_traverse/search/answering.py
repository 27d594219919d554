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
# Paths of an origin share what lies above them in a hierarchy, and the more of them the less each
# takes. On USA-road-d.NY, of 400 vertices each, in us of a core per path by labels and by the
# hierarchy: one path per origin 580 and 780, 10 paths 400 and 450, 100 paths 310 and 300.
_PATHS_PER_SOURCE = 10


def answering_labels(graph: Any, query: Query, metric: str) -> HubLabels | None:
    """Return the hub labels of a graph if it has some, and if they answer the query in less time
    than a search; else None.

    Hub labels give the distance between two vertices without a search. They answer queries for
    distances at few targets per source, or for paths to few targets. ``metric`` is "hops" or
    "weights".
    """
    if query.output not in ("targets", "paths"):
        return None
    labels: HubLabels | None = graph.derived.known_labels(metric)
    if labels is None:
        return None

    # What is faster depends on the number of targets per source. They are those of each source, or
    # those of all sources.
    if query.output == "paths":
        has_few_targets = query.has_target_lists and query.targets_per_source <= _PATHS_PER_SOURCE
    elif query.has_target_lists:
        # whether looking up each target takes less time than a sweep over all vertices
        has_few_targets = looks_up(query, graph.n_vertices)
    else:
        has_few_targets = (
            query.targets is not None
            and query.targets.size * labels.hubs_per_vertex <= _ROWS_PER_SWEEP
        )
    if has_few_targets:
        return labels
    return None


def targets_per_source(query: Query) -> float:
    """Return the mean number of targets of a source in ``query``, whether each source has targets
    of its own or all have the same.
    """
    if query.has_target_lists or query.targets is None:
        return query.targets_per_source
    return float(query.targets.size)
