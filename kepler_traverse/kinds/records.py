"""Records of the result kinds: made from the traversals of a group, joined, and turned into
columns.

The library and the job share all of it: a kind makes arrays with one value per record
(``SourceRecords``), and columns from such arrays, in any order of the records. Statistics of a part
file read the level counts while a kind reads them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple

import numpy as np

from .. import arguments
from .._arrays import Array, at_most, is_hops, is_reached, namespace, to_host
from ..errors import PrecisionError
from ..graph import Graph
from ..search.algorithms import ALGORITHMS
from ..search.distance_stats import count_levels
from ..search.exact import concatenate_numbers
from ..search.frames import Column, as_returned_distance
from ..search.query import Digested, PairTable, Query
from ..search.results import Traversals
from ..search.sparse import closed_cycle_error
from .result_kinds import PLAIN, KindOptions, OptionsT, ResultKind

# arrays of shape (n_records,) by name, on the host or on the graph's device
Values = Mapping[str, Any]
LevelFold = Callable[[Array, np.ndarray], None]  # gets what ``iter_level_counts`` yields


def format_ids(graph: Graph, *numbers: Any) -> list[str]:
    """Return the ids of the vertices with some ``numbers`` as texts, one each, in the form in which
    error messages write them.
    """
    ids = graph.ids_at(namespace(graph.offsets).asarray(np.array(numbers, np.int64)))
    return [arguments.describe(each) for each in ids.tolist()]


def unexplained_error(graph: Graph, vertex: int, kind: np.dtype) -> PrecisionError:
    """Return the error for a vertex whose distance is the length of no path.

    ``vertex`` is its number. ``kind`` is the type of the distances, whose rounding may be the
    cause; the message names it.
    """
    (name,) = format_ids(graph, vertex)
    return PrecisionError(
        f"no path explains the distance of vertex {name}: {closed_cycle_error(kind)}"
    )


class CheckedOptions(Digested, KindOptions):
    """Options as ``KindOptions.checked`` returns them where ``is_recorded_whole``: a manifest has
    one digest of all of them.
    """

    @property
    def recorded(self) -> dict[str, Any]:
        """What a manifest records of the options: one digest, called ``reduction``."""
        return {"reduction": self.digest}


@dataclass(frozen=True, kw_only=True)
class Asked(Generic[OptionsT]):
    """What is asked of a kind, the same for all groups of traversals. A group is what a plan
    searches at once: some of the sources.
    """

    kind: ResultKind[OptionsT]  # the kind of result, such as that of "distances"
    graph: Graph  # the one that is searched: for ``direction="in"`` the reverse
    algorithm: str  # "bfs" or "sssp"
    query: Query  # the query of the searches: limit, targets, predecessors and output
    # the checked options of the kind: what ``checked`` of the kind's own dataclass returns
    options: OptionsT = PLAIN  # type: ignore[assignment]
    # int64 vertex numbers, NumPy, in the order in which they were requested; None without targets
    targets: np.ndarray | None = None
    # the table of origins and destinations; None for kinds that answer no pairs
    pairs: PairTable | None = None

    @property
    def counts_hops(self) -> bool:
        """Whether distances are numbers of edges; else they are sums of weights."""
        return ALGORITHMS[self.algorithm].counts_hops

    def returned(self, distance: Array) -> tuple[Array, Array]:
        """Return distances in the type of a result, and a mask of the same shape.

        The mask is True where a distance is missing: without a path, or beyond the limit. What the
        returned distances hold there has no meaning.
        """
        missing = ~is_reached(distance)
        if self.query.limit is not None:
            missing |= ~at_most(distance, self.query.limit)
        if is_hops(distance.dtype):
            return distance.astype(np.int32), missing
        return as_returned_distance(self.graph, distance, missing), missing

    def columns_at_targets(self, values: Values) -> dict[str, Column]:
        """Return columns ``target, distance``; a distance is null where there is no path.

        ``values`` has one entry per record: ``target``, a vertex number, and ``distance`` and
        ``missing`` as ``returned`` returns them.
        """
        kind = ALGORITHMS[self.algorithm].result_dtype(self.graph)
        distance = values["distance"].astype(kind, copy=False)
        missing = values["missing"].astype(bool, copy=False)
        target = Column.of_vertices(self.graph, values["target"].astype(np.int64, copy=False))
        return {"target": target, "distance": Column(distance, missing)}

    def select_pairs(self, group: Traversals) -> PairTable:
        """Return the rows of the table of pairs whose origins are the sources of a group, in the
        order of the sources.
        """
        assert self.pairs is not None
        return self.pairs.of(group.sources)


class SourceRecords(NamedTuple):
    """Records of the sources of one group."""

    # By name, an array with one value per record: the records of the first source, then those of
    # the second, and so on. Each kind has its own names.
    values: Values
    sizes: np.ndarray  # int64 (k,), NumPy: number of records of each source

    def take(self, records: np.ndarray) -> Values:
        """Return the values of some records by name, in the order of ``records``, which are int64
        positions in the arrays.
        """
        # Without a source the values may be the mapping of ``join_records``, which lists no name.
        if not self.sizes.size:
            return self.values
        return {
            name: value[namespace(value).asarray(records)] for name, value in self.values.items()
        }


def records_of_group(
    asked: Asked, group: Traversals, fold: LevelFold | None = None
) -> SourceRecords:
    """Return the records of a group of traversals, as the kind of ``asked`` makes them.

    Kinds with ``of_levels`` make them, by hops, from level counts: the numbers of vertices at 0, 1,
    2, ... hops. Then ``fold(counts, edges)`` is called with the level counts of some sources at a
    time, and the numbers of stored edges that leave what they reach. So statistics can read the
    counts while these are in memory. None: nothing is called.
    """
    kind = asked.kind
    if kind.of_levels is not None and asked.counts_hops:
        parts = []
        for counts, edges in iter_level_counts(asked.graph, group, asked.query.limit):
            parts.append(kind.of_levels(asked, counts))
            if fold is not None:
                fold(counts, edges)
        return join_records(parts)
    if kind.make_records is None or kind.make_columns is None:
        raise TypeError(f"the result kind {kind.name!r} says nothing of how its records are made")
    return kind.make_records(asked, group)


def join_records(groups: list[SourceRecords]) -> SourceRecords:
    """Concatenate the records of several groups, in their order.

    Without a group, the result has an empty array under any name that is asked for.
    """
    if len(groups) == 1:
        return groups[0]
    if not groups:
        return SourceRecords(defaultdict(lambda: np.zeros(0)), np.zeros(0, np.int64))
    first = groups[0].values
    # Values of groups may differ in type, such as int64 beside floats, which NumPy would join by
    # rounding. Sizes are int64 in each.
    values = {name: concatenate_numbers([group.values[name] for group in groups]) for name in first}
    return SourceRecords(values, np.concatenate([group.sizes for group in groups]))


def columns_of_records(asked: Asked, source: np.ndarray, values: Values) -> dict[str, Column]:
    """Return the columns of records by name, in the order of the kind's columns: those that the
    kind of ``asked`` makes, and ``source``.

    ``source`` has a vertex number per record, and ``values`` the other arrays of the records by
    name.
    """
    assert asked.kind.make_columns is not None
    columns = list(asked.kind.make_columns(asked, values).items())
    place = asked.kind.columns.index("source")
    columns.insert(place, ("source", Column.of_vertices(asked.graph, source)))
    return dict(columns)


def iter_level_counts(
    graph: Graph, traversals: Traversals, limit: float | None
) -> Iterable[tuple[Array, np.ndarray]]:
    """Return, for some sources at a time, their level counts and numbers of stored edges. They are
    counted from the distances of ``traversals`` up to ``limit``, None for no limit; counts that the
    searches returned are taken as they are, all at once.

    The counts have the shape (k, n_levels): the vertices at 0, 1, 2, ... hops from each source. The
    numbers of edges, int64 of shape (k,), count the edges that leave the vertices reached. They are
    0 if the searches returned counts alone, which do not say which vertices were reached.
    """
    if traversals.counts is not None:
        return [(traversals.counts, np.zeros(len(traversals), np.int64))]
    return count_levels(traversals.distance, graph.offsets, limit)


def last_levels(counts: Array) -> np.ndarray:
    """Return the number of the last level of each source that is not empty, int64 of shape (k,),
    NumPy.

    ``counts`` has the shape (k, n_levels): the vertices at 0, 1, 2, ... hops.
    """
    # In reversed order it is the first level with a vertex, and ``argmax`` finds the first True.
    n_empty = np.argmax(to_host(counts[:, ::-1] > 0), axis=1)
    return counts.shape[1] - 1 - n_empty
