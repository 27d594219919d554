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
    """Return ``target, distance, missing`` of each source and distinct target, which are in the
    requested order.
    """
    assert asked.targets is not None
    order = asked.targets[np.sort(np.unique(asked.targets, return_index=True)[1])]
    distance = group.distance
    xp = namespace(distance if is_rows(distance) else asked.graph.offsets)
    if is_rows(distance):
        distance = distance[:, xp.asarray(places_of_targets(asked, order))].ravel()
    else:
        distance = distance.at_each(
            np.repeat(np.arange(len(group)), order.size), np.tile(order, len(group))
        )
    values, missing = asked.returned(distance)
    target = xp.tile(xp.asarray(order), len(group))
    sizes = np.full(len(group), order.size)
    lists = TargetLists(make_offsets(sizes), np.tile(order, len(group)))
    records = {"target": target, "distance": values, "missing": missing}
    return SourceRecords(records | sums_of_group(asked, group, lists), sizes)


def places_of_targets(asked: Asked, order: np.ndarray) -> np.ndarray:
    """Return the columns of distances that hold those of some targets."""
    known: Any = asked.query.targets
    # Without a certificate a plan may output only the distances of the targets, ascending.
    if asked.query.output == "all":
        return order
    return np.searchsorted(known, order)


def make_columns(asked: Asked, values: Values) -> dict[str, Column]:
    """Return columns ``target, distance``."""
    columns = asked.columns_at_targets(values)
    return columns | columns_of_sums(asked.options, values, columns["distance"].is_null)
