"""``result="nearest_targets"``: the k nearest targets of each source, of each group if targets have
groups.

Of targets at the same distance those of the smaller vertex numbers are nearer, whichever side the
searches begin at.
"""

from __future__ import annotations

import numpy as np

from .._arrays import at_most, is_rows, make_offsets, positions_in_groups, to_host
from ..search.algorithms import ALGORITHMS
from ..search.frames import Column, labels_at
from ..search.query import TargetLists
from ..search.results import Traversals
from ..search.sparse import to_sparse
from .along import columns_of_sums, sums_of_group
from .records import Asked, SourceRecords, Values
from .result_kinds import GROUP


def make_records(asked: Asked, group: Traversals) -> SourceRecords:
    """Return ``group, rank, target, distance`` of each source."""
    query = asked.query
    distances = group.distance
    assert query.nearest is not None
    if is_rows(distances):  # of a strategy that searches further
        at_targets = to_host(
            distances if query.output == "targets" else distances[:, query.targets]
        )
        distances = to_sparse(at_targets)
        vertices = np.asarray(query.targets)[distances.vertices]
    else:
        distances = distances.at(query.targets)
        vertices = distances.vertices.astype(np.int64)
    row = distances.rows_of_entries()
    distance = distances.distance
    if query.limit is None:
        is_near = np.ones(row.size, bool)
    else:
        is_near = at_most(distance, query.limit)
    parts = []
    for members in query.nearest.members:
        places = np.minimum(np.searchsorted(members, vertices), members.size - 1)
        own = np.flatnonzero(is_near & (members[places] == vertices))
        own = own[np.lexsort((distance[own], row[own]))]  # vertices ascend in each row
        rank = 1 + positions_in_groups(np.bincount(row[own], minlength=len(group)))
        parts.append((own[rank <= query.nearest.k], rank[rank <= query.nearest.k]))
    own, rank = (np.concatenate(each) for each in zip(*parts, strict=True))
    of = np.repeat(np.arange(len(parts)), [each.size for each, _ in parts])
    if len(parts) > 1:
        order = np.lexsort((rank, of, row[own]))
        own = own[order]
        rank = rank[order]
        of = of[order]
    values = {"group": of, "rank": rank, "target": vertices[own], "distance": distance[own]}
    sizes = np.bincount(row[own], minlength=len(group))
    lists = TargetLists(make_offsets(sizes), vertices[own])
    return SourceRecords(values | sums_of_group(asked, group, lists), sizes)


def make_columns(asked: Asked, values: Values) -> dict[str, Column]:
    """Return columns ``[group,] rank, target, distance``."""
    assert asked.query.nearest is not None
    labels = asked.query.nearest.labels
    kind = ALGORITHMS[asked.algorithm].result_dtype(asked.graph)
    if labels is None:
        named = {}
    else:
        named = {GROUP: labels_at(labels, values["group"].astype(np.int64, copy=False))}
    return {
        **named,
        "rank": Column(values["rank"].astype(np.int64, copy=False)),
        "target": Column.of_vertices(asked.graph, values["target"].astype(np.int64, copy=False)),
        "distance": Column(values["distance"].astype(kind, copy=False)),
        **columns_of_sums(asked.options, values),
    }
