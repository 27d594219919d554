"""``result="levels"``: the number of vertices at each hop count, up to the last nonempty level of
each source.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import Array, positions_in_groups, to_host
from ..search.frames import Column
from .records import Asked, SourceRecords, Values, last_levels


def of_levels(asked: Asked, counts: Array) -> SourceRecords:  # noqa: ARG001
    """Return the records ``distance, vertices``: one per source and level, without the empty levels
    at the end.

    ``counts``, of shape (k, n_levels), are the vertices of each source at 0, 1, 2, ... hops.
    ``asked`` is ignored, since the kind has no options.
    """
    counts = to_host(counts)
    sizes = last_levels(counts) + 1
    vertices = counts[np.arange(counts.shape[1]) < sizes[:, None]]
    return SourceRecords({"distance": positions_in_groups(sizes), "vertices": vertices}, sizes)


def make_columns(asked: Asked, values: Values) -> dict[str, Column]:  # noqa: ARG001
    """Return columns ``distance, vertices``, int32 and int64, in host memory.

    ``values`` has the arrays of the records by name. ``asked`` is ignored: the records hold no
    vertices, whose ids would be needed.
    """
    return {
        "distance": Column(values["distance"].astype(np.int32)),
        "vertices": Column(values["vertices"].astype(np.int64, copy=False)),
    }


def rows(question: Any, n_vertices: int, depth: int) -> tuple[int, int]:
    """Return the number of levels of a source, as an estimate and as an upper bound.

    ``question`` is a ``Question``, whose limit bounds the levels. ``n_vertices`` is the number of
    vertices of the graph. ``depth`` is the number of levels of one search, 0 if none was made.
    """
    if question.limit is None:
        max_rows = n_vertices
    else:
        max_rows = int(min(n_vertices, question.limit + 1))  # the source itself is at level 0
    # A search from the periphery has up to twice the levels of one from the center. The source
    # itself is at one level more. Without a search, each vertex may be at a level of its own.
    estimate = 2 * depth + 1 if depth else n_vertices
    return min(max_rows, estimate), max_rows
