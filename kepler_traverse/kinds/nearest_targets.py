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
    """Return the records ``group, rank, target, distance`` of each source, and the sums of columns
    along the paths.

    The records of a source are by group of the targets, and then by rank, from 1 to k. ``group`` is
    the number of the group, in the order of the labels, and 0 if all targets are one group.

    ``asked`` is what is asked of the kind, and ``group`` has the distances from some of the
    sources.
    """
    # ``query.nearest`` has ``k``, how many targets of each group are wanted, and ``members``, the
    # vertex numbers of each group.
    query = asked.query
    distances = group.distance
    assert query.nearest is not None
    # A strategy that searches further than to the nearest targets returns an array with a row per
    # source: it becomes sparse, with the distances of the targets alone.
    if is_rows(distances):
        if query.output != "targets":
            distances = distances[:, query.targets]
        distances = to_sparse(to_host(distances))
        vertices = np.asarray(query.targets)[distances.vertices]
    else:
        distances = distances.at(query.targets)
        vertices = distances.vertices.astype(np.int64)
    # An entry is a target that a source reaches: the number of the source in the group, the vertex,
    # and the distance.
    source_of_entry = distances.rows_of_entries()
    distance = distances.distance
    if query.limit is None:
        is_near = np.ones(source_of_entry.size, bool)
    else:
        is_near = at_most(distance, query.limit)

    # Rank the entries of each group: distances at its targets, per source in ascending order.
    parts = []
    ranks = []
    for members in query.nearest.members:
        # Members ascend: a vertex is one of them if it stands at the place where it is looked for.
        place_in_group = np.minimum(np.searchsorted(members, vertices), members.size - 1)
        entries = np.flatnonzero(is_near & (members[place_in_group] == vertices))
        # Entries of equal distance stay in the order of their vertices.
        entries = entries[np.lexsort((distance[entries], source_of_entry[entries]))]
        rank = 1 + positions_in_groups(np.bincount(source_of_entry[entries], minlength=len(group)))
        is_kept = rank <= query.nearest.k
        parts.append(entries[is_kept])
        ranks.append(rank[is_kept])

    # Order the records by source, then by group, then by rank.
    group_of_entry = np.repeat(np.arange(len(parts)), [entries.size for entries in parts])
    entries = np.concatenate(parts)
    rank = np.concatenate(ranks)
    if len(parts) > 1:
        order = np.lexsort((rank, group_of_entry, source_of_entry[entries]))
        entries = entries[order]
        rank = rank[order]
        group_of_entry = group_of_entry[order]

    values = {
        "group": group_of_entry,
        "rank": rank,
        "target": vertices[entries],
        "distance": distance[entries],
    }
    # how many records each source has, and their targets as lists: at these, columns of the edge
    # list are added up, if some are asked for
    sizes = np.bincount(source_of_entry[entries], minlength=len(group))
    lists = TargetLists(make_offsets(sizes), vertices[entries])
    return SourceRecords(values | sums_of_group(asked, group, lists), sizes)


def make_columns(asked: Asked, values: Values) -> dict[str, Column]:
    """Return columns ``[group,] rank, target, distance`` with the labels of the groups, if they
    have some, and the sums along the paths.

    ``asked`` is what is asked of the kind, and ``values`` has the arrays of the records by name.
    """
    assert asked.query.nearest is not None
    labels = asked.query.nearest.labels
    kind = ALGORITHMS[asked.algorithm].result_dtype(asked.graph)
    columns = {}
    if labels is not None:
        columns[GROUP] = labels_at(labels, values["group"].astype(np.int64, copy=False))
    return {
        **columns,
        "rank": Column(values["rank"].astype(np.int64, copy=False)),
        "target": Column.of_vertices(asked.graph, values["target"].astype(np.int64, copy=False)),
        "distance": Column(values["distance"].astype(kind, copy=False)),
        **columns_of_sums(asked.options, values),
    }
