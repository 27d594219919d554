"""A plug-in: a result kind with the farthest vertices of each source, and an option of its own, how many.

With the environment variable KEPLER_PLUGINS=examples.farthest_plugin, ``bfs_many(graph, sources, result="farthest",
n_farthest=2)`` returns it, and the job writes it with ``--result farthest --n-farthest 2``.

The module is looked for in the current folder, too: of a checkout as above; elsewhere copy this file there, and set
KEPLER_PLUGINS=farthest_plugin.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kepler_traverse import InputError
from kepler_traverse.extend import (
    Asked,
    Column,
    KindOptions,
    ResultKind,
    SourceRecords,
    Traversals,
    Values,
    option,
    to_host,
)


@dataclass(frozen=True, kw_only=True)
class FarthestOptions(KindOptions):
    """Options of the kind."""

    n_farthest: int = option(3, help="number of vertices per source")

    def __post_init__(self) -> None:
        if type(self.n_farthest) is not int or self.n_farthest < 1:
            raise InputError(
                f"n_farthest must be a whole number of 1 or more, not {self.n_farthest!r}"
            )

    @property
    def rows_per_source(self) -> int:
        return self.n_farthest


def make_records(asked: Asked[FarthestOptions], traversals: Traversals) -> SourceRecords:
    """Return the farthest vertices of each source within the limit, by descending distance and then by vertex."""
    vertices = []
    distances = []
    for traversal in traversals:
        distance, is_missing = asked.returned(to_host(traversal.distance))
        reached = np.flatnonzero(~is_missing)
        order = np.lexsort((reached, -distance[reached]))
        first = reached[order][: asked.options.n_farthest]
        vertices.append(first)
        distances.append(distance[first])
    sizes = np.array([each.size for each in vertices])
    ranks = [np.arange(1, size + 1) for size in sizes]
    values = {
        "rank": np.concatenate(ranks),
        "vertex": np.concatenate(vertices),
        "distance": np.concatenate(distances),
    }
    return SourceRecords(values, sizes)


def make_columns(asked: Asked[FarthestOptions], values: Values) -> dict[str, Column]:
    """Return the columns after ``source``."""
    return {
        "rank": Column(values["rank"]),
        "vertex": Column.of_vertices(asked.graph, values["vertex"].astype(np.int64)),
        "distance": Column(values["distance"]),
    }


KINDS = (
    ResultKind(
        name="farthest",
        means="a row for each source and rank: one of the farthest vertices that it reaches",
        columns=("source", "rank", "vertex", "distance"),
        make_records=make_records,
        make_columns=make_columns,
        options_class=FarthestOptions,
    ),
)
