"""Arrays with one row per source: ``result="matrix"`` of distances, and ``result="reachable"`` with
one bit per vertex.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .._arrays import (
    Array,
    at_most,
    is_reached,
    is_rows,
    make_offsets,
    namespace,
    unreached_value,
)
from ..graph.closed import listed_vertices, refuse_closed
from ..runtime.memory import require_memory
from ..search.algorithms import ALGORITHMS
from ..search.exact import common_type, convert_distances, narrow_distances
from ..search.query import TargetLists
from ..search.results import Traversals
from .along import ALONG, sums_of_group
from .records import Asked
from .targets import places_of_targets


def matrix(asked: Asked[Any], groups: Iterable[Traversals], places: np.ndarray) -> Any:
    """Return distances as an array: one row per source, one column per vertex or per target in the
    order of the user.

    ``asked`` is what is asked of the kind. ``groups`` are the searches, one group of sources at a
    time. ``places``, int64, has the position of each source of the result in the groups, counted
    over all of them; it may name one twice. With sums of columns along the paths, return a dict of
    such arrays: ``distance``, and the sums by the names of the columns.
    """
    graph = asked.graph
    limit = asked.query.limit
    xp = namespace(graph.offsets)
    kind = ALGORITHMS[asked.algorithm].narrowest_dtype(graph)
    targets = asked.targets
    if targets is None:
        targets = listed_vertices(graph)

    # Which columns of the arrays of distances the result has, in its order; None for all.
    places_in_row = targets
    if asked.targets is not None:
        # Searches may have returned the distances of these targets alone, ascending.
        places_in_row = places_of_targets(asked, asked.targets)
    if places_in_row is None:
        columns = slice(None)
        width = graph.n_vertices
    else:
        columns = xp.asarray(places_in_row)
        width = places_in_row.size
    require_memory(
        places.size * width * kind.itemsize,
        graph.device,
        f"a matrix of {places.size:,} sources and {width:,} columns",
        "take stream=True for one group of sources at a time, fewer sources, or targets=",
    )

    # The result begins in the narrowest type, and is widened when a group has a wider one.
    result = xp.zeros((places.size, width), kind)
    # The options may name columns of the edge list to add up along the paths: an array for each.
    sums = {
        name: np.zeros(result.shape, column.dtype) for name, column in asked.options.values.items()
    }
    first = 0
    for group in groups:
        _take_sums(asked, group, places - first, targets, sums)  # nothing without such columns
        result = convert_distances(result, common_type(result.dtype, group.distance.dtype))
        # the rows of the result whose sources are in this group
        rows = np.flatnonzero((places >= first) & (places < first + len(group)))
        for row, i in zip(rows.tolist(), (places[rows] - first).tolist(), strict=True):
            distance = group.distance[i][columns]
            if limit is not None:  # searches with negative weights are not pruned
                distance = xp.where(
                    at_most(distance, limit), distance, unreached_value(distance.dtype)
                )
            if distance.dtype.kind != result.dtype.kind:
                distance = convert_distances(distance, result.dtype)
            result[row] = distance
        first += len(group)

    # Where one group needed int64, a float type may still hold all distances of the result.
    if result.dtype == np.int64:
        result = narrow_distances(graph, result)
    if not sums:
        return result
    return {"distance": result} | {name: xp.asarray(values) for name, values in sums.items()}


def _take_sums(
    asked: Asked[Any],
    group: Traversals,
    places: np.ndarray,
    targets: np.ndarray | None,
    sums: dict[str, np.ndarray],
) -> None:
    """Write the sums of columns along the paths of a group into ``sums``, which has arrays of shape
    (n_sources, n_columns) by the names of the columns of the edge list.

    ``asked`` is what is asked of the kind. Without columns, ``sums`` is empty and nothing is done.
    ``places`` has, for each source of the result, its position in the group: below 0, or beyond the
    group, for sources of other groups. ``targets`` are the vertex numbers of the columns of the
    arrays; None for all vertices.
    """
    if not sums:
        return
    # Each source has the same list of targets.
    columns = np.arange(asked.graph.n_vertices) if targets is None else targets
    sizes = np.full(len(group), columns.size)
    lists = TargetLists(make_offsets(sizes), np.tile(columns, len(group)))
    sums_at_targets = sums_of_group(asked, group, lists)
    rows = np.flatnonzero((places >= 0) & (places < len(group)))
    for name, values in sums.items():
        values[rows] = sums_at_targets[ALONG + name].reshape(len(group), -1)[places[rows]]


def bitmap(asked: Asked, groups: Iterable[Traversals], places: np.ndarray) -> Array:
    """Return which vertices each source reaches, one bit each: uint8 of shape (k, ceil(n / 8)),
    vertex v in bit v % 8 of byte v // 8.

    ``asked`` is what is asked of the kind. ``groups`` are the searches, one group of sources at a
    time. ``places``, int64, has the position of each source of the result in the groups, counted
    over all of them; it may name one twice.
    """
    refuse_closed(asked.graph, "result='reachable' has one bit per vertex")
    n = asked.graph.n_vertices
    limit = asked.query.limit
    xp = namespace(asked.graph.offsets)
    # A row per distinct source, in the order of the groups. At the end ``places`` repeats the rows
    # and puts them into the order of the result.
    bits = xp.zeros((int(places.max(initial=-1)) + 1, -(-n // 8)), np.uint8)
    first = 0
    for group in groups:
        if not is_rows(group.distance):
            bits[first : first + len(group)] = xp.asarray(group.distance.bitmap())
            first += len(group)
            continue

        # Vertices 0, 8, 16, ... are bit 0 of bytes 0, 1, 2, ..., and so on for the other bits.
        reached = is_reached(group.distance)
        if limit is not None:
            reached &= at_most(group.distance, limit)
        for bit in range(min(n, 8)):
            ones = reached[:, bit::8].astype(np.uint8) << bit
            bits[first : first + len(group), : ones.shape[1]] |= ones
        first += len(group)
    return bits[xp.asarray(places)]
