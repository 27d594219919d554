"""``--result labels``: the rows of hub labels. ``hub_labels`` builds the labels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..graph import Graph
from ..graph.closed import refuse_closed
from ..hub_labels.estimate import LabelEstimate, refuse_long_labels
from ..search.algorithms import ALGORITHMS
from ..search.frames import Column
from ..search.results import Traversals
from .records import Asked, SourceRecords, Values
from .result_kinds import LabelOptions, ResultKind


@dataclass(frozen=True, kw_only=True)
class CheckedLabels(LabelOptions):
    """Checked options of ``labels``: the estimated size of the labels of the graph."""

    estimate: LabelEstimate  # how many hubs a label of the graph has on average

    @property
    def rows_per_source(self) -> int:
        """The estimated number of hubs of a label, rounded up: a source has a record per hub of its
        label.
        """
        return math.ceil(self.estimate.hubs)

    @property
    def recorded(self) -> dict[str, Any]:
        """What identifies the options in a manifest: nothing, as the estimate follows from the
        graph.
        """
        return {}


def check_options(
    options: LabelOptions,  # noqa: ARG001
    kind: ResultKind,  # noqa: ARG001
    graph: Graph,
    algorithm: str,
    numbers: Mapping[str, Any],  # noqa: ARG001
) -> CheckedLabels:
    """Return the options with an estimate of the size of the labels.

    There is no option to check: ``options``, ``kind`` and ``numbers`` are ignored. ``algorithm``
    says whether labels are of hops or of weights.

    Raises InputError (the graph has closed vertices) or HierarchyError (labels would be too long).
    """
    refuse_closed(graph, "a table of labels has one label per vertex")
    estimate = graph.derived.estimate_labels(ALGORITHMS[algorithm].metric)
    refuse_long_labels(estimate)
    return CheckedLabels(estimate=estimate)


def make_records(asked: Asked[CheckedLabels], group: Traversals) -> SourceRecords:
    """Return the records ``hub, distance`` of the labels of a group: one per source and hub of its
    label.

    ``asked`` is what is asked of the kind. ``group`` was made from labels and not by a search. Its
    distances are ``SparseDistances``, whose vertices are hubs.
    """
    rows: Any = group.distance
    distance, _ = asked.returned(rows.distance)  # no hub is missing, and there is no limit
    return SourceRecords({"hub": rows.vertices, "distance": distance}, rows.sizes)


def make_columns(asked: Asked[CheckedLabels], values: Values) -> dict[str, Column]:
    """Return columns ``hub, distance``.

    ``asked`` is what is asked of the kind, and ``values`` has the arrays of the records by name.
    """
    hubs = values["hub"].astype(np.int64, copy=False)
    return {
        "hub": Column.of_vertices(asked.graph, hubs),
        "distance": Column(values["distance"]),
    }
