"""``result="targets"``: the distance of each pair of source and target, null where there is no way."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import Array, namespace
from ..search.frames import Column
from ..search.results import Traversals
from .records import Asked, SourceRecords, Values


def records_of(asked: Asked, group: Traversals) -> SourceRecords:
    """Return ``target, distance, missing`` of each source, with the targets in the requested order."""
    order: Any = asked.targets
    distance = at_targets(asked, group).ravel()
    values, missing = asked.returned(distance)
    xp = namespace(distance)
    target = xp.tile(xp.asarray(order), len(group))
    return SourceRecords({"target": target, "distance": values, "missing": missing}, np.full(len(group), order.size))


def at_targets(asked: Asked, group: Traversals) -> Array:
    """Return distances of shape (k, n_targets), in the requested order of the targets."""
    order: Any = asked.targets
    known: Any = asked.query.targets
    # Without a certificate a plan may output only the distances of the targets, ascending.
    places = order if asked.query.output == "all" else np.searchsorted(known, order)
    return group.distance[:, namespace(group.distance).asarray(places)]


def columns_of(asked: Asked, values: Values) -> dict[str, Column]:
    """Return columns ``target, distance``."""
    return asked.columns_at_targets(values)
