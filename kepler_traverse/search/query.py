"""The options of a traversal."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from .._arrays import Array, is_rows, make_offsets, namespace, positions_in_groups, sort_distinct
from ..cuda import cp
from ..errors import InputError

TuningClass = TypeVar("TuningClass")

_SAMPLE = 64  # about how many origins a sample of a table of pairs has


class Nearest(NamedTuple):
    """Which of the nearest targets are wanted, where all sources have the same targets, in groups
    or in one group.
    """

    k: int  # how many targets of each group are wanted, the nearest ones
    members: list[np.ndarray]  # int64 arrays: the distinct vertex numbers of each group, ascending
    # the labels of the groups, integers or strings, in the order of ``members``; None if there is
    # one group without a label
    labels: list[Any] | None = None


class TargetLists(NamedTuple):
    """Targets of several sources, a list of its own for each source."""

    # int64 array of shape (k + 1,): where the list of each source begins in ``vertices``, and where
    # the last list ends
    offsets: np.ndarray
    # int64 array of shape (n_targets,) of vertex numbers: the lists, one after the other. A list
    # may be in any order and hold a vertex twice.
    vertices: np.ndarray

    def part(self, begin: int, end: int) -> TargetLists:
        """Return the lists of the sources ``begin`` to ``end - 1``."""
        offsets = self.offsets[begin : end + 1]
        return TargetLists(offsets - offsets[0], self.vertices[offsets[0] : offsets[-1]])

    def of(self, source: int) -> np.ndarray:
        """Return the targets of the source at the position ``source``."""
        return self.vertices[self.offsets[source] : self.offsets[source + 1]]

    def union(self) -> np.ndarray:
        """Return the distinct targets of all sources, ascending."""
        return sort_distinct(self.vertices)

    def take(self, distance: Array, columns: np.ndarray | None = None) -> Array:
        """Return the distance from each source to each target of its list, of shape (n_targets,),
        in the order of the lists.

        ``distance`` has a row per source with one distance per column, or is ``SparseDistances``.
        ``columns`` are the vertex numbers of the columns, ascending; None means that all vertices
        have one.
        """
        # of each target, the row of its source
        rows = np.repeat(np.arange(self.offsets.size - 1), np.diff(self.offsets))
        if not is_rows(distance):  # ``SparseDistances``
            return distance.at_each(rows, self.vertices)
        xp = namespace(distance)
        if columns is None:
            places = self.vertices
        else:
            places = np.searchsorted(columns, self.vertices)
        return distance[xp.asarray(rows), xp.asarray(places)]


class SourcesWithTargets(NamedTuple):
    """What a search from several sources takes if each has targets of its own."""

    sources: np.ndarray  # int64 array of shape (k,): vertex numbers
    lists: TargetLists  # a list per source

    def part(self, begin: int, end: int) -> SourcesWithTargets:
        """Return the sources ``begin`` to ``end - 1`` with their targets."""
        return SourcesWithTargets(self.sources[begin:end], self.lists.part(begin, end))


@dataclass(frozen=True, eq=False)
class PairTable:
    """A table of rows with an origin and a destination, grouped by origin."""

    # int64 array of vertex numbers: the distinct origins, in the order of their first rows
    sources: np.ndarray
    # the destinations of each origin, in the order of their rows; a destination that is given twice
    # is in its list twice
    lists: TargetLists
    # int64 array of shape (n_rows,): for each destination in ``lists``, the number of its row in
    # the table of the user
    rows: np.ndarray

    @cached_property
    def _order(self) -> np.ndarray:
        """The positions of the origins in ``sources``, by ascending vertex number."""
        return np.argsort(self.sources, kind="stable")

    @property
    def rows_per_source(self) -> tuple[int, int]:
        """The mean number of rows of an origin, rounded up, and the largest number."""
        rounded_up = -(-self.rows.size // max(self.sources.size, 1))
        return rounded_up, int(np.diff(self.lists.offsets).max(initial=0))

    @property
    def digest(self) -> str:
        """The SHA-256 of the vertex numbers of all rows, as hexadecimal digits."""
        arrays = self.sources, self.lists.offsets, self.lists.vertices, self.rows
        return hashlib.sha256(
            b"".join(np.ascontiguousarray(array, "<i8").tobytes() for array in arrays)
        ).hexdigest()

    def of(self, sources: np.ndarray) -> PairTable:
        """Return the part of the table with some of its origins, ``sources``, in their order. They
        are vertex numbers, and each must be an origin of the table.
        """
        if np.array_equal(sources, self.sources):  # all origins, of one group
            return self
        # the positions of these origins in ``sources``, and of their entries in the lists
        places = self._order[np.searchsorted(self.sources, sources, sorter=self._order)]
        sizes = np.diff(self.lists.offsets)[places]
        entries = np.repeat(self.lists.offsets[places], sizes) + positions_in_groups(sizes)
        lists = TargetLists(make_offsets(sizes), self.lists.vertices[entries])
        return PairTable(np.asarray(sources), lists, self.rows[entries])

    def sample(self) -> SourcesWithTargets:
        """Return about ``_SAMPLE`` origins, spread over the table, with their destinations."""
        part = self.of(self.sources[:: max(1, self.sources.size // _SAMPLE)])
        return SourcesWithTargets(part.sources, part.lists)


class Digested:
    """Base of bundles of values that are equal if their digests are; they cannot be hashed."""

    digest: Any  # what identifies the values, a text

    def __eq__(self, other: object) -> bool:
        """Return whether another object is of the same class and has an equal digest."""
        return isinstance(other, type(self)) and self.digest == other.digest

    __hash__ = None  # type: ignore[assignment]


def compute_digest(values: Any, arrays: Iterable[np.ndarray] = ()) -> str:
    """Return the SHA-256, as hexadecimal digits, of values that JSON can hold, followed by the
    bytes of arrays.
    """
    digest = hashlib.sha256(json.dumps(values).encode())
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


class SourceValues(Digested):
    """A number per source: its limit, its weight or its start cost.

    Attributes
    ----------
    numbers : int64 array of shape (k,)
        Distinct vertex numbers of the sources, ascending.
    values : int64 or float64 array of shape (k,)
        Their values.
    """

    def __init__(self, numbers: np.ndarray, values: np.ndarray):
        self.numbers = numbers
        self.values = values

    @classmethod
    def of_rows(
        cls,
        numbers: np.ndarray,
        values: np.ndarray,
        differing_error: Callable[[int, int], InputError],
    ) -> SourceValues:
        """Return the values of sources that are given in any order. A source that occurs twice must
        have the same value each time.

        ``numbers`` and ``values`` have one entry per row. ``differing_error(row, first)`` returns
        the error for a row whose value is not that of the first row of its source.
        """
        distinct, first_row, index = np.unique(numbers, return_index=True, return_inverse=True)
        differing = np.flatnonzero(values != values[first_row][index])
        if differing.size:
            raise differing_error(int(differing[0]), int(first_row[index[differing[0]]]))
        return cls(distinct, values[first_row])

    @property
    def largest(self) -> Any:
        """The largest value; None without a source."""
        if self.values.size:
            return self.values.max().item()
        return None

    def of(self, sources: Any) -> list[Any]:
        """Return the values of some sources, given by their vertex numbers, in their order. Each
        must be among ``numbers``.
        """
        return self.values[np.searchsorted(self.numbers, np.asarray(sources, np.int64))].tolist()

    @property
    def digest(self) -> str:
        """The SHA-256 of the numbers and values, as hexadecimal digits."""
        return compute_digest([self.numbers.tolist(), self.values.tolist()])


@dataclass(frozen=True, kw_only=True)
class Query:
    """Options of a traversal, without its source."""

    predecessors: bool = True  # whether predecessors are wanted
    limit: float | None = None  # largest distance of interest (inclusive); None without a limit
    # The limits of the sources, where these differ; ``limit`` is the largest of them. A plan cuts
    # its results at the limit of each source, and a search may end there.
    limits: SourceValues | None = None
    # int64 array of vertex numbers (NumPy, ascending, distinct) or None: the traversal may stop
    # once these are settled.
    targets: Array | None = None
    # Whether each source has targets of its own, which come with each run as ``TargetLists``. With
    # ``output="targets"`` the distances at the targets of all sources are then one array of shape
    # ``(n_targets,)``.
    has_target_lists: bool = False
    # Options of the strategy, an instance of its ``Strategy.knobs``. With None the strategy chooses
    # them.
    knobs: object | None = None
    # Tuning parameters of one strategy in place of the measured defaults: an instance of its class
    # in ``bfs.tuning`` or ``sssp.tuning``. None for the defaults.
    tuning: Any = None
    # {"all", "targets", "counts", "paths"}: output of a traversal from many sources: distances of
    # all vertices, distances of the targets, or only the number of vertices at each hop count.
    # ``"paths"``: the paths to the targets of each source, and the distances at these; a strategy
    # that finds no paths returns distances and predecessors of all vertices instead.
    output: str = "all"
    # In which forms besides an array of rows the caller takes distances from many sources:
    # ``"interleaved"`` (``cuda.interleaved.InterleavedDistances``) and ``"sparse"``
    # (``search.sparse.SparseDistances``).
    forms: tuple[str, ...] = ()
    # mean number of targets that each source has of its own, by which the time is estimated
    targets_per_source: float = 1.0
    # Some sources with their targets, by which a plan estimates how far searches go before these
    # are settled.
    sample: SourcesWithTargets | None = None
    # Which of the nearest targets are wanted; None if all are. A search may stop once these are
    # settled, and those that are as far as the last of them.
    nearest: Nearest | None = None
    # Whether paths are walked back along the distances later. These must then be the sums from the
    # sources on, and not from the other end.
    walks: bool = False
    # ``hierarchy.column_sums.SumSweeps``: columns of the edge list that a strategy may add up on
    # its way to the targets; None if there are none
    sums: Any = None

    @property
    def shared_targets(self) -> Array:
        """The targets of all sources, int64, for compiled code; of shape (0,) if there are none."""
        if self.targets is None:
            return np.empty(0, np.int64)
        return self.targets

    def copy_targets_to_gpu(self) -> Array | None:
        """Return the targets of all sources in the memory of the current GPU, int64, or None if
        there are none.
        """
        return None if self.targets is None else cp.asarray(self.targets, np.int64)

    @property
    def may_stop(self) -> bool:
        """Whether a search may end before it has reached all vertices."""
        return self.limit is not None or self.targets is not None or self.has_target_lists

    def get_tuning(self, kind: type[TuningClass]) -> TuningClass:
        """Return the tuning parameters of a strategy, an instance of its class ``kind``: its
        defaults if the query has none.

        Raises TypeError: the query has those of another strategy.
        """
        if self.tuning is None:
            return kind()
        if not isinstance(self.tuning, kind):
            raise TypeError(
                f"tuning must be of type {kind.__name__}, not {type(self.tuning).__name__}"
            )
        return self.tuning
