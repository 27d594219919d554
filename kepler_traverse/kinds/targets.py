"""``result="targets"``: the distance of each pair of source and target, null where there is no way."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import is_rows, make_offsets, namespace
from ..search.frames import Column
from ..search.query import TargetLists
from ..search.results import Traversals
from .along import columns_of_sums, sums_of_group
from .records import Asked, SourceRecords, Values


def make_records(asked: Asked, group: Traversals) -> SourceRecords:
    """Return the records ``target, distance, missing`` of each source and each distinct target, and
    the sums of columns along the paths.

    The targets of a source are in the order in which the user names each of them first. ``missing``
    is True where there is no path within the limit.

    ``asked`` is what is asked of the kind, and ``group`` has the distances from some of the
    sources.
    """
    assert asked.targets is not None
    # each target once, at the place where it is named first
    _, first = np.unique(asked.targets, return_index=True)
    targets = asked.targets[np.sort(first)]
    targets_of_all = np.tile(targets, len(group))
    distance = group.distance
    # From an array with a row per source, or from distances that hold reached vertices alone.
    if is_rows(distance):
        xp = namespace(distance)
        distance = distance[:, xp.asarray(places_of_targets(asked, targets))].ravel()
    else:
        xp = namespace(asked.graph.offsets)
        rows = np.repeat(np.arange(len(group)), targets.size)
        distance = distance.at_each(rows, targets_of_all)
    distance, missing = asked.returned(distance)
    sizes = np.full(len(group), targets.size)
    lists = TargetLists(make_offsets(sizes), targets_of_all)
    values = {"target": xp.asarray(targets_of_all), "distance": distance, "missing": missing}
    return SourceRecords(values | sums_of_group(asked, group, lists), sizes)


def places_of_targets(asked: Asked, targets: np.ndarray) -> np.ndarray:
    """Return, for some targets, the columns of the arrays of distances that hold their distances,
    int64.

    ``asked.query`` says what the columns are: all vertices, or the targets of the query.
    ``targets`` are vertex numbers in any order. Each is one of the targets of the query.
    """
    searched: Any = asked.query.targets
    # With the output "all", a column is a vertex number. Otherwise, without a certificate, a plan
    # outputs only the distances of the targets, ascending.
    if asked.query.output == "all":
        return targets
    return np.searchsorted(searched, targets)


def make_columns(asked: Asked, values: Values) -> dict[str, Column]:
    """Return columns ``target, distance``, and the sums along the paths. Distances and sums are
    null where there is no path.

    ``asked`` is what is asked of the kind, and ``values`` has the arrays of the records by name.
    """
    columns = asked.columns_at_targets(values)
    return columns | columns_of_sums(asked.options, values, columns["distance"].is_null)
