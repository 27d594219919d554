"""What a traversal returns: arrays over all vertices, on the graph's device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np

from .._arrays import (
    NO_PREDECESSOR,
    Array,
    at_most,
    get_device,
    is_reached,
    is_rows,
    make_offsets,
    namespace,
    unreached_value,
)
from ..cpu import checksum as checksums
from ..cpu.checksum import mix
from ..runtime.display import html_table
from .algorithms import ALGORITHMS
from .distance_stats import DistanceStats, summary_of_distances


class _DisplayedRows:
    """Base of results that are displayed as rows, each a name and a value."""

    def _rows(self) -> list[tuple[str, object]]:
        """Return the rows: pairs of a name and a value."""
        raise NotImplementedError

    def __repr__(self) -> str:
        """Return the name of the class and the rows as a short text."""
        return (
            f"<{type(self).__name__}: "
            f"{', '.join(f'{name} {value}' for name, value in self._rows())}>"
        )

    def _repr_html_(self) -> str:
        """Return the rows as an HTML table, which notebooks show."""
        return html_table(type(self).__name__, self._rows())


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Traversal(_DisplayedRows):
    """Distances, and optionally predecessors, from one source.

    The arrays belong to the plan that made them and are valid until its next traversal. ``copy``
    makes them independent.

    Attributes
    ----------
    algorithm : {"bfs", "sssp"}
    source : int
        Vertex number.
    distance : array of shape (n_vertices,)
        BFS: int32 hops, ``-1`` where unreached. SSSP: float32 or float64, ``inf`` where unreached.
        Sums of integer weights are exact: where float64 could round one, all distances are int64,
        and ``2**63 - 1`` where unreached.
    predecessor : array of shape (n_vertices,), of the targets' type, or None
        Previous vertex on a shortest path. Among all candidates with a smaller (distance,
        zero-length hops) it is the smallest, so it is equal on every device and in every run. The
        source is its own predecessor; ``-1`` where unreached.
    limit : int, float or None
        Every vertex at distance ``limit`` or less is reached, all others are unreached. None means
        no limit.
    strategy : str
        Name of the strategy that ran.
    rounds : int
        Number of levels or relaxation rounds.
    counters : dict of str to int, or None
        Counters of the strategy, if they were requested.
    """

    algorithm: str
    source: int
    distance: Array
    predecessor: Array | None
    limit: float | None
    strategy: str
    rounds: int
    counters: dict[str, int] | None = None

    @property
    def reached(self) -> Array:
        """Boolean array of shape (n_vertices,): True for vertices that were reached."""
        return is_reached(self.distance)

    def _rows(self) -> list[tuple[str, object]]:
        """Return what is displayed of the traversal: pairs of a name and a value."""
        return [
            ("algorithm", self.algorithm),
            ("source number", self.source),
            *_rows_of_arrays(self.distance, self.predecessor),
            ("limit", self.limit),
            ("strategy", self.strategy),
            ("rounds", self.rounds),
        ]

    def cut(self, limit: float | None, targets: np.ndarray | None = None) -> Traversal:
        """Return the traversal, without predecessors, in which vertices beyond a limit, and
        vertices that are no targets, are unreached.

        ``targets`` are vertex numbers. Without a limit and targets, the traversal itself is
        returned.
        """
        if limit is None and targets is None:
            return self
        # What is kept is reached, within the limit and a target.
        xp = namespace(self.distance)
        is_kept = self.reached
        if limit is not None:
            is_kept &= at_most(self.distance, limit)
        if targets is not None:
            is_target = xp.zeros(is_kept.size, bool)
            is_target[xp.asarray(targets)] = True
            is_kept &= is_target
        return replace(
            self,
            distance=xp.where(is_kept, self.distance, unreached_value(self.distance.dtype)),
            predecessor=None,
        )

    def copy(self) -> Traversal:
        """Return a traversal with copies of the arrays."""
        if self.predecessor is None:
            predecessor = None
        else:
            predecessor = self.predecessor.copy()
        return replace(self, distance=self.distance.copy(), predecessor=predecessor)


class Routes(NamedTuple):
    """Paths from sources to the targets of their lists (``TargetLists``), in the order of these."""

    # int64 array of shape (n_targets,), NumPy: the number of vertices of each path; 0 without a
    # path
    sizes: np.ndarray
    # integer array of vertex numbers, on the device of the search: the paths, one after the other,
    # each from its source to its target.
    vertices: Array

    def part(self, begin: int, end: int) -> Routes:
        """Return the paths to the targets at the positions ``begin`` to ``end - 1``."""
        first = int(self.sizes[:begin].sum())
        sizes = self.sizes[begin:end]
        return Routes(sizes, self.vertices[first : first + int(sizes.sum())])


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Traversals(_DisplayedRows):
    """Distances, and optionally predecessors, from several sources, one array row per source.

    The arrays may belong to the plan that made them and are then valid until its next run.

    Attributes
    ----------
    algorithm : {"bfs", "sssp"}
    sources : int64 array of shape (k,), NumPy
        Vertex numbers.
    distance : array of shape (k, n_vertices)
        BFS: hops in the narrowest of int8, int16 and int32 that holds them, ``-1`` where unreached.
        SSSP: as in ``Traversal``. The shape is ``(k, n_targets)`` if only targets were requested,
        and ``(n_targets,)`` if each source has targets of its own.
    predecessor : array of shape (k, n_vertices), of the targets' type, or None
        As in ``Traversal``.
    limits : list of int, float or None
        The limit of each source, as in ``Traversal``.
    strategy : str
    rounds : list of int
        Levels or rounds of each source.
    counts : int32 or int64 array of shape (k, levels), or None
        Number of vertices at 0, 1, 2, ... hops, if only these counts were requested. The array is
        on the graph's device if the strategy counted there.
    offsets : int64 array of shape (k + 1,), NumPy, or None
        Where the distances of each source begin, if only those at the targets of each source were
        requested.
    routes : Routes or None
        The paths to the targets of each source, if the strategy has found them in place of
        predecessors.
    sums : int64 array of shape (k, n_targets, n_columns), NumPy, or None
        What was added up along the paths to the targets, if the strategy has done that; 0 where a
        target was not reached.
    """

    algorithm: str
    sources: np.ndarray
    distance: Array
    predecessor: Array | None
    limits: list[Any]
    strategy: str
    rounds: list[int]
    counts: Array | None = None
    offsets: np.ndarray | None = None
    routes: Routes | None = None
    sums: np.ndarray | None = None

    def _rows(self) -> list[tuple[str, object]]:
        """Return what is displayed of the traversals: pairs of a name and a value."""
        return [
            ("algorithm", self.algorithm),
            ("sources", f"{len(self):,}"),
            *_rows_of_arrays(self.distance, self.predecessor),
            ("strategy", self.strategy),
        ]

    def __len__(self) -> int:
        """Return the number of sources."""
        return self.sources.size

    def __getitem__(self, i: int | slice) -> Traversal | Traversals:
        """Return the traversal from the i-th source, with hops as int32 like those of a plan for
        one source; or a slice.
        """
        if isinstance(i, slice):
            return self._part(i)
        i = range(len(self))[i]  # counts a negative one from the end, and raises IndexError
        if not is_rows(self.distance):  # of another form: that of one source becomes a row
            return self._part(slice(i, i + 1)).as_rows()[0]

        if self.offsets is None:
            distance = self.distance[i]
        else:
            distance = self.distance[self.offsets[i] : self.offsets[i + 1]]
        if ALGORITHMS[self.algorithm].counts_hops:
            distance = distance.astype(np.int32, copy=False)
        return Traversal(
            algorithm=self.algorithm,
            source=int(self.sources[i]),
            distance=distance,
            predecessor=None if self.predecessor is None else self.predecessor[i],
            limit=self.limits[i],
            strategy=self.strategy,
            rounds=self.rounds[i],
        )

    def _part(self, part: slice) -> Traversals:
        """Return the traversals from the sources in the slice ``part``, whose step is 1. Arrays are
        views of these.
        """
        names = ("sources", "distance", "predecessor", "limits", "rounds", "counts", "sums")
        fields = {name: getattr(self, name) for name in names}
        selected: dict[str, Any] = {
            name: None if array is None else array[part] for name, array in fields.items()
        }
        if self.offsets is not None:
            # The distances of all sources follow each other: those of some are a slice of them.
            begin, end, _ = part.indices(len(self))
            offsets = self.offsets[begin : end + 1]
            selected["distance"] = self.distance[offsets[0] : offsets[-1]]
            selected["offsets"] = offsets - offsets[0]
            if self.routes is not None:
                selected["routes"] = self.routes.part(int(offsets[0]), int(offsets[-1]))
        return replace(self, **selected)

    def __iter__(self) -> Any:
        """Yield the traversal from each source, as ``Traversal``."""
        return (self[i] for i in range(len(self)))

    def copy(self) -> Traversals:
        """Return traversals with copies of the arrays."""
        arrays = {name: getattr(self, name) for name in ("distance", "predecessor", "counts")}
        copies: dict[str, Any] = {
            name: array.copy() for name, array in arrays.items() if array is not None
        }
        return replace(self, **copies)

    def as_rows(self) -> Traversals:
        """Return traversals whose distances and predecessors are arrays with a row per source, on
        the device of the graph.

        If they are arrays already, these traversals themselves are returned.
        """
        distances: Any = self.distance
        if is_rows(distances):
            return self
        if distances.form != "sparse":
            return replace(self, distance=distances.rows())
        predecessor = distances.predecessor_rows()
        if predecessor is not None:
            predecessor = distances.move(predecessor)
        return replace(self, distance=distances.move(distances.rows()), predecessor=predecessor)

    def within(self, limits: list[Any]) -> Traversals:
        """Return traversals in which vertices beyond the limit of their source are unreached, in
        arrays of their own. ``limits`` has one limit per source. Sparse distances stay sparse;
        other forms become an array with a row per source.
        """
        if getattr(self.distance, "form", "") == "sparse":
            return replace(self, distance=cast(Any, self.distance).within(limits), limits=limits)
        rows = self.as_rows()
        distance = rows.distance
        predecessor = rows.predecessor
        xp = namespace(distance)
        is_beyond = xp.stack(
            [~at_most(row, limit) for row, limit in zip(distance, limits, strict=True)]
        )
        distance = xp.where(is_beyond, unreached_value(distance.dtype), distance)
        if predecessor is not None:
            predecessor = xp.where(is_beyond, predecessor.dtype.type(NO_PREDECESSOR), predecessor)
        return replace(self, distance=distance, predecessor=predecessor, limits=limits)

    def stats(self, offsets: Array, limit: float | None, has_sums: bool = True) -> DistanceStats:
        """Return ``summary_of_distances`` of weighted distances up to a limit.

        They are computed once, as the records and the statistics of a file both need them.
        ``offsets`` are those of the graph. With ``has_sums`` False the caller needs neither the sum
        of the distances nor that of their reciprocals: they may be 0. Of sparse distances the sums
        take longer than all else.
        """
        # The results are kept in ``vars``, as a frozen dataclass takes no new attribute otherwise.
        stats_of_limit = vars(self).setdefault("_stats", {})
        if limit not in stats_of_limit:
            # Statistics without sums are not kept, since a later caller may need the sums.
            if not has_sums and getattr(self.distance, "form", "") == "sparse":
                return DistanceStats(*cast(Any, self.distance).stats(offsets, limit, has_sums))
            stats_of_limit[limit] = summary_of_distances(self.distance, offsets, limit)
        return stats_of_limit[limit]


def without_farther(result: Any, limit: float) -> Any:
    """Return a ``Traversal`` or ``Traversals`` in which no vertex is beyond a limit, in arrays of
    its own.

    With negative weights, a vertex within the limit may have a predecessor beyond it. It is then
    without a predecessor, as its path leads through a vertex that is not in the result.
    """
    if isinstance(result, Traversals):
        rows: Any = result.as_rows()
        limits: dict[str, Any] = {"limits": [limit] * len(rows)}
    else:
        rows = result
        limits = {"limit": limit}
    xp = namespace(rows.distance)
    is_far = ~at_most(rows.distance, limit)
    predecessor = rows.predecessor
    if predecessor is not None:
        # NO_PREDECESSOR, -1, reads the entry of the last vertex. That does not matter, since such a
        # predecessor stays as it is.
        leads_from_far = xp.take_along_axis(is_far, predecessor.astype(np.int64), axis=-1)
        predecessor = xp.where(
            is_far | leads_from_far, predecessor.dtype.type(NO_PREDECESSOR), predecessor
        )
    distance = xp.where(is_far, unreached_value(rows.distance.dtype), rows.distance)
    return replace(rows, distance=distance, predecessor=predecessor, **limits)


def join_traversals(parts: Sequence[Traversals]) -> Traversals:
    """Return the traversals of several groups of one plan, at least one, as those of one group.

    Their distances are of one form: arrays with a row per source, or all of another form, such as
    ``SparseDistances``. Hops get the widest type of a group. Optional arrays that the groups lack
    stay None.
    """
    first = parts[0]
    if len(parts) == 1:
        return first

    joined: dict[str, Any] = {"sources": np.concatenate([part.sources for part in parts])}
    distances: list[Any] = [part.distance for part in parts]
    if first.distance is not None and is_rows(first.distance):
        joined["distance"] = namespace(first.distance).concatenate(distances)
    elif first.distance is not None:
        joined["distance"] = distances[0].joined(distances[1:])

    # Optional arrays: all groups of a plan have them, or none.
    for name in ("predecessor", "sums"):
        if getattr(first, name) is not None:
            arrays = [getattr(part, name) for part in parts]
            joined[name] = namespace(arrays[0]).concatenate(arrays)
    if first.counts is not None:
        joined["counts"] = _join_counts([part.counts for part in parts])
    if first.offsets is not None:
        joined["offsets"] = make_offsets(
            np.concatenate([np.diff(cast(Any, part.offsets)) for part in parts])
        )
    if first.routes is not None:
        routes = [cast(Routes, part.routes) for part in parts]
        vertices = namespace(first.routes.vertices).concatenate(
            [route.vertices for route in routes]
        )
        joined["routes"] = Routes(np.concatenate([route.sizes for route in routes]), vertices)

    for name in ("limits", "rounds"):
        joined[name] = [value for part in parts for value in getattr(part, name)]
    return replace(first, **joined)


def _join_counts(parts: Sequence[Array]) -> Array:
    """Return ``parts``, the numbers of vertices per source and level of several groups, as one
    array of shape (k, levels).

    A group with fewer levels than another gets zeros behind its last one.
    """
    xp = namespace(parts[0])
    n_levels = max(part.shape[1] for part in parts)
    return xp.concatenate([xp.pad(part, ((0, 0), (0, n_levels - part.shape[1]))) for part in parts])


def _rows_of_arrays(distance: Array | None, predecessor: Array | None) -> list[tuple[str, object]]:
    """Return the types of a result's arrays for display, as pairs of a name and a value; None
    stands for an array that the result lacks. Their contents are not read, as they may be in GPU
    memory.
    """
    if distance is None:
        description = "none"
    else:
        description = f"{distance.dtype} of shape {distance.shape} on {get_device(distance)}"
    return [
        ("distance", description),
        ("predecessor", "no" if predecessor is None else str(predecessor.dtype)),
    ]


def checksum(result: Traversal, integers: bool = False) -> int:
    """Return a 64-bit sum over (source, vertex, distance) of all reached vertices.

    Equal results have equal sums on every device and in any order of the vertices. The checksums of
    several sources can be added. The sum detects lost and exchanged results, but it does not
    protect against an adversary.

    Parameters
    ----------
    integers : bool
        Whether the distances represent integers, in whatever type they were summed.
    """
    distance = result.distance
    if get_device(distance) == "cuda":
        return _checksum_of_arrays(result, integers)
    # Floats that represent integers are hashed as these; other distances by their bits.
    unreached = unreached_value(distance.dtype)
    if integers and distance.dtype.kind == "f":
        return int(checksums.checksum_of_integers(distance, unreached, np.uint64(result.source)))
    bits = distance.view(f"u{distance.dtype.itemsize}")
    return int(checksums.checksum(distance, bits, unreached, np.uint64(result.source)))


def _checksum_of_arrays(result: Traversal, integers: bool = False) -> int:
    """Return the sum that ``checksum`` returns, by operations on arrays of NumPy or CuPy: for
    results in GPU memory. Sums of 64 bits wrap around. ``integers`` says whether distances
    represent integers.
    """
    xp = namespace(result.distance)
    vertex = xp.flatnonzero(result.reached)
    distance = result.distance[vertex]
    if integers:
        distance = distance.astype(np.int64, copy=False)
    bits = distance.view(f"u{distance.dtype.itemsize}").astype(np.uint64)
    # ``mix`` is a bijective hash of 64 bits. It keeps 0, so that vertex 0 needs ``ODD``, an odd
    # constant, as a summand.
    mixed = mix(mix(vertex.astype(np.uint64) + checksums.ODD) ^ bits)
    return int(mix(mixed + xp.uint64(result.source)).sum(dtype=np.uint64))
