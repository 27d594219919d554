"""Distances and paths to single vertices over a hierarchy, without a sweep: only what lies above
these vertices is visited.

A position is the place of a vertex in the order of the hierarchy, 0 at the top. A source is
searched upward. The distance of a vertex then follows from those of the positions above it, which
are looked up once per source. A path needs the distances of its vertices and of their in-neighbors.

Hub labels, where there are some, take the place of the hierarchy for paths. The label of a vertex
is a list of vertices (hubs) with distances, such that each shortest path passes a hub that its ends
share. So each distance is a pass over one label.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..cpu import threads
from ..cpu.path_walk import NO_EDGE, Above, Walks, distances_at, walk
from ..errors import CertificateError
from .arrays import Hierarchy
from .sweep import UNREACHED, LookupArrays, look_up, search_upward

# A sweep (distances of all vertices) is faster if a source has more targets than one per this many
# vertices.
_VERTICES_PER_TARGET = 500
# Of the arrays of one ``Lookup``: three of sums of 64 bits, five of int32, and two of int64.
BYTES_PER_VERTEX = 3 * 8 + 5 * 4 + 8 + 8


class Lookup:
    """The memory and functions by which one thread looks up distances and paths from one source at
    a time.

    Its arrays have an element per vertex; the system gives memory only to the parts that are used.

    Parameters
    ----------
    graph : Graph
    hierarchy : Hierarchy
    weights : array or None
        Weights of ``graph.reverse``, None for hops.
    labels : hub labels or None
        They take the place of the hierarchy. Positions are then the ranks of the labels.

    - ``_above``, a ``cpu.path_walk.Above``: the edges to each position from positions above it, or
      the labels; and the distances that the search upward from the source found (``tentative``).
    - ``_distance``: of shape (n,), by position: distances from the source, that of the last call of
      ``start``; -1 where not known.
    - ``_laid_out``: the positions (or, with labels, the hubs) at which ``_above.tentative`` holds a
      distance of the source, and not ``UNREACHED``.
    - ``_source``: vertex number of the source, -1 before the first call of ``start``.
    - ``_level``, ``_queue``, ``_path``, ``_reached``, ``_other``: arrays of shape (n,), scratch.
    """

    def __init__(
        self, graph: Any, hierarchy: Hierarchy, weights: np.ndarray | None, labels: Any = None
    ):
        """Allocate the arrays; nothing is searched yet. Arguments are those of the class."""
        self._graph = graph
        self._hierarchy = hierarchy
        self._weights = weights
        self._labels = labels
        n = graph.n_vertices
        self._unreached = UNREACHED[hierarchy.dtype]

        # The arrays of ``_above``: the edges from above or the labels inward, and what changes from
        # source to source. ``stack``, ``next_edge``: scratch of the depth-first search. ``known``,
        # ``n_known``: the positions that were looked up, and their number, which ``start`` makes 0
        # again.
        stack, self._reached, known, self._queue = np.empty((4, n), np.int32)
        next_edge, self._path = np.empty((2, n), np.int64)
        tentative, self._other = np.full((2, n), self._unreached, hierarchy.dtype)
        n_known = np.zeros(1, np.int64)
        if labels is None:
            searched = hierarchy.position, *hierarchy.downward
        else:
            searched = labels.rank, *labels.inward
        self._above = Above(
            *searched,
            tentative=tentative,
            stack=stack,
            next_edge=next_edge,
            known=known,
            n_known=n_known,
            is_label=labels is not None,
        )

        # What is known of the last source; ``start`` sets it back for the next one.
        self._distance = np.full(n, -1, hierarchy.dtype)
        self._level = np.full(n, -1, np.int32)
        self._laid_out = known[:0]  # none yet: an empty array of positions
        self._source = -1

    def start(self, source: int) -> None:
        """Make a vertex the source of the calls of ``distances`` and ``path`` that follow: search
        upward from it, or write its label to the array ``_above.tentative``.
        """
        above = self._above
        hierarchy = self._hierarchy
        # Clear what is known of the last source.
        above.tentative[self._laid_out] = self._unreached
        self._distance[above.known[: above.n_known[0]]] = -1
        above.n_known[0] = 0

        self._source = source
        position = int(above.position[source])
        if self._labels is None:
            # The search writes the lengths of paths upward to ``tentative``. By the edges downward
            # it finds positions with a shorter path from above, and goes no further from these.
            scratch = above.tentative, above.stack, self._reached, self._unreached
            count = search_upward(position, hierarchy.upward, hierarchy.downward, *scratch)
            self._laid_out = self._reached[:count]
        else:
            offsets, hubs, distances = self._labels.outward
            begin, end = offsets[position : position + 2].tolist()
            self._laid_out = hubs[begin:end]
            above.tentative[self._laid_out] = distances[begin:end]

    def distances(self, targets: np.ndarray, sums: np.ndarray) -> None:
        """Write the distances of some vertices from the source of ``start`` to ``sums``, in units
        of the hierarchy; ``UNREACHED`` where there is no path. ``targets`` (n,) are vertex numbers,
        and ``sums`` (n,) has the type of the sums of the hierarchy.
        """
        distances_at(targets, self._distance, self._above, sums)

    def write_distances(
        self,
        next_item: np.ndarray,
        sources: np.ndarray,
        lists: tuple[np.ndarray, np.ndarray],
        sums: Any,
    ) -> None:
        """Write the distances at the targets of those sources that no other thread takes.

        ``start`` must not have been called before: after it, arrays hold values of its source,
        which this function expects to be clear.

        Parameters
        ----------
        next_item : int64 array of shape (1,)
            The counter from which threads take positions in ``sources``.
        sources : int64 array of shape (k,)
            Vertex numbers.
        lists : tuple of int64 arrays
            ``TargetLists``: where the targets of each source begin, and the targets.
        sums : integer array of shape (n_targets,), output
            Distances in units of the hierarchy; ``UNREACHED`` where there is no path.
        """
        both_ways = self._hierarchy.upward, self._hierarchy.downward
        arrays = LookupArrays(self._above, self._other, self._distance, self._reached)
        look_up(next_item, sources, lists, sums, both_ways, arrays, self._unreached)

    def path(self, target: int) -> np.ndarray:
        """Return the path from the source of ``start`` to a vertex that it reaches, along canonical
        predecessors: vertex numbers, both ends included.

        Raises CertificateError: no edge of the graph explains a distance of the hierarchy.
        """
        reverse = self._graph.reverse
        edges = (reverse.offsets, reverse.targets, self._weights, self._hierarchy.unit)
        walks = Walks(*edges, self._distance, self._above, self._level, self._queue, self._path)
        size = walk(self._source, target, walks)
        if size == NO_EDGE:
            raise CertificateError(
                f"no edge explains a distance on the way from {self._graph.ids_at([self._source])[0]} to "
                f"{self._graph.ids_at([target])[0]}: the hierarchy or its labels are not those of the graph; search in "
                "graph.derived.without_hierarchy(), or delete the stored graph"
            )
        # ``walk`` goes from the target back to the source.
        return self._path[:size][::-1].astype(self._graph.targets.dtype)


def looks_up(query: Any, n_vertices: int) -> bool:
    """Return whether, for a ``Query`` on a graph of ``n_vertices``, the targets of each source are
    looked up one by one, in place of a sweep that finds the distances of all vertices.

    Each source must have its own targets (``has_target_lists``). The search must return (``output``)
    the paths to them; or only their distances, and then the targets must be few per source.
    """
    if not query.has_target_lists:
        return False
    is_few = query.targets_per_source * _VERTICES_PER_TARGET <= n_vertices
    return query.output == "paths" or (query.output == "targets" and is_few)


class Lookups:
    """A ``Lookup`` per thread, made when the thread has its first source.

    ``_by_thread`` has the ``Lookup`` of each thread number, None before. ``_sum_dtype`` is the type
    of distances in units, and ``_vertex_dtype`` that of the vertices of paths.
    """

    def __init__(
        self, graph: Any, hierarchy: Hierarchy, weights: np.ndarray | None, labels: Any = None
    ):
        """Arguments are those of ``Lookup``, kept for the ``Lookup`` of each thread."""
        self._arguments = (graph, hierarchy, weights, labels)
        self._by_thread: list[Lookup | None] = [None] * threads.max_threads()
        self._sum_dtype = hierarchy.dtype
        self._vertex_dtype = graph.targets.dtype

    def look_up_lists(
        self, sources: np.ndarray, lists: Any, bound: Any, finds_paths: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return distances at the targets of each source, and paths to those that are nearer than
        ``bound``.

        Parameters
        ----------
        sources : integer array of shape (k,)
            Vertex numbers.
        lists : TargetLists
            The targets of each source, vertex numbers.
        bound : int
            In units of the hierarchy. Targets at this distance or beyond have no path.
        finds_paths : bool
            False: only distances are looked up.

        Returns
        -------
        sums : integer array of shape (n_targets,)
            Distances in units of the hierarchy; ``UNREACHED`` where there is no path.
        sizes : int64 array of shape (n_targets,)
            Number of vertices of each path, 0 without one.
        vertices : integer array
            The vertices of all paths, one path after the other.
        """
        source_numbers = np.asarray(sources, np.int64)
        sums = np.empty(lists.vertices.size, self._sum_dtype)
        sizes = np.zeros(lists.vertices.size, np.int64)
        paths: list[list[np.ndarray]] = [[] for _ in source_numbers]
        next_item = np.zeros(1, np.int64)  # the source that the next free thread takes

        def get_lookup(thread: int) -> Lookup:
            """Return the ``Lookup`` of the thread with this number; the first call makes it."""
            # None, before the first call of the thread, counts as False.
            lookup = self._by_thread[thread] or Lookup(*self._arguments)
            self._by_thread[thread] = lookup
            return lookup

        def find_paths(i: int, thread: int) -> None:
            """Look up the distances and the paths of the i-th source on the thread with this
            number, and write them to ``sums``, ``sizes`` and ``paths``.
            """
            lookup = get_lookup(thread)
            begin, end = lists.offsets[i : i + 2].tolist()
            lookup.start(int(source_numbers[i]))
            lookup.distances(lists.vertices[begin:end], sums[begin:end])
            for j in range(begin, end):
                if sums[j] < bound:
                    path = lookup.path(int(lists.vertices[j]))
                    paths[i].append(path)
                    sizes[j] = path.size

        def find_distances(thread: int) -> None:
            """Look up the distances of sources that no other thread takes, on the thread with this
            number, and write them to ``sums``.
            """
            get_lookup(thread).write_distances(next_item, source_numbers, tuple(lists), sums)

        # ``for_each`` calls its function once per source, ``on_each`` once per thread.
        if finds_paths:
            threads.for_each(find_paths, source_numbers.size)
        else:
            threads.on_each(
                find_distances,
                source_numbers.size,
                # after an interrupt: no source is left for the threads to take
                stop=lambda: next_item.fill(source_numbers.size),
            )
        # The empty array gives ``concatenate`` something to join where there is no path.
        vertices = [np.empty(0, self._vertex_dtype)]
        for paths_of_source in paths:
            vertices += paths_of_source
        return sums, sizes, np.concatenate(vertices)
