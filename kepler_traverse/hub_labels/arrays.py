"""The hub labels of a graph: their arrays, and the distances that they answer."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from .. import arguments
from .._arrays import get_device, unreached_value
from ..cpu import threads
from ..errors import InputError
from ..hierarchy.sweep import UNREACHED
from .queries import CHUNK, BothLabels, PairLists, answer_lists, answer_pairs

# The number of targets per source from which on the label of a source is written once to an array
# with a place per vertex, in which the hubs of all its targets are looked up.
_TARGETS_PER_SOURCE = 2
# With fewer targets than one per so many vertices, clearing that array takes longer than it saves.
_VERTICES_PER_TARGET = 1000


class LabelLists(NamedTuple):
    """The labels of one direction, one per rank: each is a range of rows, a hub and its distance.

    A rank is the place of a vertex in the order of the hierarchy, 0 at the top.
    """

    # int64 array of shape (n + 1,): the label of rank r is rows offsets[r] to offsets[r + 1] - 1
    offsets: np.ndarray
    # int32 array of shape (rows,): the rank of each hub, ascending within a label; the last hub of
    # a label is the label's own rank
    hubs: np.ndarray
    # int32 or int64 array of shape (rows,): the distance to or from each hub, in units; 0 in the
    # last row of a label
    distances: np.ndarray


@dataclass(frozen=True, eq=False, kw_only=True)
class HubLabels:
    """The hub labels of a graph: the distance of any pair is the smallest sum over a common hub.

    ``Graph.labels`` makes them. A label holds the hubs of one vertex and the distances to them; a
    directed graph has another label per vertex, with the distances from its hubs. For each pair
    with a path, the highest vertex of all shortest paths between the two is in both labels.

    Attributes
    ----------
    order, rank : int32 arrays of shape (n_vertices,)
        The vertex of each rank, from the top of the hierarchy, and the rank of each vertex. Hubs
        are ranks: those of most labels come first.
    outward, inward : LabelLists
        Distances from each vertex to its hubs, and to each vertex from its hubs. The same object
        for an undirected graph.
    unit : float
        The power of two that distances are multiples of; 1 for integers.
    metric : {"weights", "hops"}
        What distances are: sums of weights, or numbers of edges.
    seconds : float
        Seconds that building took; 0 for stored labels.
    """

    order: np.ndarray
    rank: np.ndarray
    outward: LabelLists
    inward: LabelLists
    unit: float
    metric: str
    seconds: float = field(default=0.0, compare=False)

    @property
    def n_vertices(self) -> int:
        """The number of vertices of the graph."""
        return int(self.order.size)

    @property
    def is_symmetric(self) -> bool:
        """Whether both directions share their labels, as in an undirected graph."""
        return self.outward is self.inward

    @property
    def dtype(self) -> np.dtype:
        """Type of distances: int32 if it holds all sums, else int64."""
        return self.outward.distances.dtype

    @property
    def directions(self) -> dict[str, LabelLists]:
        """The label lists that are stored, by name: one of an undirected graph, else two."""
        if self.is_symmetric:
            return {"outward": self.outward}
        return {"outward": self.outward, "inward": self.inward}

    @property
    def rows(self) -> int:
        """Number of pairs of a vertex and a hub, of all directions that are stored."""
        return sum(int(lists.hubs.size) for lists in self.directions.values())

    @property
    def hubs_per_vertex(self) -> float:
        """Mean length of a label: its number of hubs, the vertex itself included."""
        return self.rows / max(1, self.n_vertices * len(self.directions))

    @property
    def longest(self) -> int:
        """Number of hubs of the longest label."""
        return max(int(np.diff(lists.offsets).max(initial=0)) for lists in self.directions.values())

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        lists = self.directions.values()
        arrays = [self.order, self.rank, *(array for label_lists in lists for array in label_lists)]
        return sum(array.nbytes for array in arrays)

    def reversed(self) -> HubLabels:
        """Return the labels of the graph with all edges reversed; they share the arrays."""
        if self.is_symmetric:
            return self
        return replace(self, outward=self.inward, inward=self.outward)

    def between(self, sources: Any, targets: Any) -> Any:
        """Return the distance of each pair, on all threads, or on the GPU that holds the arrays.

        Parameters
        ----------
        sources, targets : integer arrays or lists of length n_pairs, or int64 arrays of CuPy
            Vertex numbers (``Graph.to_numbers``). Labels are copied to a GPU once.

        Returns
        -------
        int64 array of shape (n_pairs,), on the same device
            Distances in units, ``unreached`` where there is no path.

        Raises
        ------
        InputError
            There are not as many sources as targets, or one array alone is on a GPU.
        UnknownVertexError
            What is not on a GPU holds what is no vertex number.
        """
        # Numbers on a GPU are not read here, since that would wait for it.
        devices = {get_device(sources), get_device(targets)}
        if len(devices) > 1:
            raise InputError("sources and targets are on two devices; copy one to the other's")
        if devices == {"cpu"}:
            sources = arguments.vertex_numbers(sources, self.n_vertices, "sources")
            targets = arguments.vertex_numbers(targets, self.n_vertices, "targets")
        if sources.shape != targets.shape or sources.ndim != 1:
            raise InputError(
                f"{sources.shape} sources and {targets.shape} targets: a pair needs one of each"
            )
        if devices == {"cuda"}:
            from .on_gpu import on_gpu

            return on_gpu(self).between(sources, targets)

        # Threads take chunks of pairs. Labels are by rank.
        sums = np.empty(len(sources), np.int64)
        n_items = -(-sums.size // CHUNK)
        begins = self.rank[sources]
        ends = self.rank[targets]
        threads.run(answer_pairs, n_items, begins, ends, self.answers, sums)
        return sums

    def to_lists(self, sources: np.ndarray, offsets: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Return the distances from each source to its own targets, as ``between``.

        Parameters
        ----------
        sources : integer array of shape (k,)
            Vertex numbers.
        offsets : int64 array of shape (k + 1,)
            Where the targets of each source begin in ``targets``, and the number of targets.
        targets : integer array of shape (n_targets,)
            Vertex numbers, grouped by source in the order of ``sources``.

        Returns
        -------
        int64 array of shape (n_targets,)
            Distances in units, ``unreached`` where there is no path.
        """
        # Pair by pair, if the arrays that are made below would not pay.
        has_few_targets = targets.size * _VERTICES_PER_TARGET < self.n_vertices
        if has_few_targets or targets.size < _TARGETS_PER_SOURCE * len(sources):
            return self.between(np.repeat(sources, np.diff(offsets)), targets)

        # Each thread writes the label of a source to an array of its own, with a place per rank
        # that holds ``unreached`` where the rank is no hub of the source.
        sums = np.empty(targets.size, np.int64)
        scratch = [
            np.full(self.n_vertices, self.unreached, self.dtype)
            for _ in range(min(threads.count(), len(sources)))
        ]
        pairs = PairLists(self.rank[sources], offsets, self.rank[targets])
        threads.run(answer_lists, len(sources), pairs, self.answers, sums, own=[scratch])
        return sums

    def to_distances(self, graph: Any, sums: np.ndarray) -> np.ndarray:
        """Return sums in units as distances of the graph, in the type in which these are certified;
        ``unreached`` becomes what stands for no path in that type.

        ``sums`` is int64 of any shape, as ``between`` returns it, and ``graph`` is the graph of the
        labels. Distances in hops are int32, those of integer weights int64, of the same numbers as
        ``sums``. All others are floats, sums times ``unit``.
        """
        if self.metric == "hops":
            dtype: Any = np.dtype(np.int32)
        elif graph.integer_weights:
            dtype = np.dtype(np.int64)
        else:
            dtype = graph.distance_dtype
        distances: Any = sums
        if dtype.kind == "f":
            distances = sums * self.unit
        return np.where(sums == self.unreached, unreached_value(dtype), distances).astype(dtype)

    @property
    def answers(self) -> BothLabels:
        """The labels of both directions in a form that compiled code takes."""
        return BothLabels(self.outward, self.inward, self.unreached)

    @property
    def unreached(self) -> np.integer:
        """The number that stands for "no path" in answers; all sums of distances are smaller."""
        return UNREACHED[self.dtype]

    def __repr__(self) -> str:
        took = ""
        if self.seconds:
            took = f", built in {self.seconds:.1f} s"
        return (
            f"<HubLabels: {self.n_vertices:,} vertices, {self.hubs_per_vertex:,.1f} hubs per vertex, "
            f"{self.rows:,} rows, {self.nbytes / 2**20:,.0f} MiB{took}>"
        )
