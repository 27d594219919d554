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
    """Return the ids of vertices as messages write them."""
    ids = graph.ids_at(namespace(graph.offsets).asarray(np.array(numbers, np.int64)))
    return [arguments.describe(each) for each in ids.tolist()]


def unexplained_error(graph: Graph, vertex: int, kind: np.dtype) -> PrecisionError:
    """Return the error for a vertex whose distance of a type is not the length of any path."""
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
        return {"reduction": self.digest}


@dataclass(frozen=True, kw_only=True)
class Asked(Generic[OptionsT]):
    """What is asked of a kind, the same for all groups of traversals."""

    kind: ResultKind[OptionsT]
    graph: Graph  # the one that is searched: for ``direction="in"`` the reverse
    algorithm: str  # "bfs" or "sssp"
    query: Query  # that of the traversals
    # what ``checked`` of the kind's own dataclass returns
    options: OptionsT = PLAIN  # type: ignore[assignment]
    # int64 vertex numbers, NumPy, in the order in which they were requested; None without targets
    targets: np.ndarray | None = None
    pairs: PairTable | None = None  # None for kinds that answer no pairs

    @property
    def counts_hops(self) -> bool:
        """Whether distances are hops."""
        return ALGORITHMS[self.algorithm].counts_hops

    def returned(self, distance: Array) -> tuple[Array, Array]:
        """Return distances in the type of a result, and a mask of the same shape.

        The mask is True where a distance is missing: without a path, or beyond the limit.
        """
        missing = ~is_reached(distance)
        if self.query.limit is not None:
            missing |= ~at_most(distance, self.query.limit)
        if is_hops(distance.dtype):
            return distance.astype(np.int32), missing
        return as_returned_distance(self.graph, distance, missing), missing

    def columns_at_targets(self, values: Values) -> dict[str, Column]:
        """Return columns ``target, distance`` of the vertex numbers of targets and of what
        ``returned`` returns.
        """
        kind = ALGORITHMS[self.algorithm].result_dtype(self.graph)
        distance = values["distance"].astype(kind, copy=False)
        missing = values["missing"].astype(bool, copy=False)
        target = Column.of_vertices(self.graph, values["target"].astype(np.int64, copy=False))
        return {"target": target, "distance": Column(distance, missing)}

    def select_pairs(self, group: Traversals) -> PairTable:
        """Return the pairs whose origins are the sources of a group."""
        assert self.pairs is not None
        return self.pairs.of(group.sources)


class SourceRecords(NamedTuple):
    """Records of the sources of one group."""

    # of each source, one source after the other; which names there are is a matter of the kind
    values: Values
    sizes: np.ndarray  # int64 (k,), NumPy: number of records of each source

    def take(self, records: np.ndarray) -> Values:
        """Return the values of some records, given by their positions."""
        # Without a source the values may be the mapping of ``join_records``, which lists no name.
        if not self.sizes.size:
            return self.values
        return {
            name: value[namespace(value).asarray(records)] for name, value in self.values.items()
        }


def records_of_group(
    asked: Asked, group: Traversals, fold: LevelFold | None = None
) -> SourceRecords:
    """Return the records of a group.

    ``fold`` is called with the level counts of some sources and their stored edges, while these are
    in memory, if the kind reads level counts.
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
    """Concatenate the records of any number of groups; without a group there is an empty array of
    any name.
    """
    if len(groups) == 1:
        return groups[0]
    if not groups:
        return SourceRecords(defaultdict(lambda: np.zeros(0)), np.zeros(0, np.int64))
    first = groups[0].values
    values = {name: concatenate_numbers([group.values[name] for group in groups]) for name in first}
    return SourceRecords(values, np.concatenate([group.sizes for group in groups]))


def columns_of_records(asked: Asked, source: np.ndarray, values: Values) -> dict[str, Column]:
    """Return the columns of records with ``source`` among them, where the kind has it.

    ``source`` has a vertex number per record.
    """
    assert asked.kind.make_columns is not None
    columns = list(asked.kind.make_columns(asked, values).items())
    place = asked.kind.columns.index("source")
    columns.insert(place, ("source", Column.of_vertices(asked.graph, source)))
    return dict(columns)


def iter_level_counts(
    graph: Graph, traversals: Traversals, limit: float | None
) -> Iterable[tuple[Array, np.ndarray]]:
    """Return level counts and the number of stored edges, for some sources at a time.

    Counts, of shape (k, n_levels), are the vertices at 0, 1, 2, ... hops from each source. The
    int64 numbers of edges, of shape (k,), are of all that leave the vertices reached. They are 0 if
    the plan returned only counts, which do not identify the vertices.
    """
    if traversals.counts is not None:
        return [(traversals.counts, np.zeros(len(traversals), np.int64))]
    return count_levels(traversals.distance, graph.offsets, limit)


def last_levels(counts: Array) -> np.ndarray:
    """Return the last level of each source that is not empty, from counts of vertices at 0, 1, 2,
    ... hops.
    """
    # The first one from behind; ``argmax`` finds the first True.
    n_empty = np.argmax(to_host(counts[:, ::-1] > 0), axis=1)
    return counts.shape[1] - 1 - n_empty
