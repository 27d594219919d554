"""Distances and paths to single vertices over a hierarchy, without a sweep: only what lies above
these vertices is visited.

A source is searched upward. The distance of a vertex then follows from those of the positions above
it, which are looked up once per source. A path needs the distances of its vertices and of their
in-neighbors. Hub labels, where there are some, take the place of the hierarchy for paths: each
distance is a pass over one label.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..cpu import threads
from ..cpu.path_walk import NO_EDGE, Above, Walks, distances_at, walk
from ..errors import CertificateError
from .arrays import Hierarchy
from .sweep import UNREACHED, LookupArrays, look_up, search_upward

# a sweep is faster if a source has more targets than one per so many vertices
_VERTICES_PER_TARGET = 500
BYTES_PER_VERTEX = 3 * 8 + 5 * 4 + 8 + 8  # of one ``Lookup``, with sums of 64 bits


class Lookup:
    """What one thread needs to look up distances and paths; pages that it never touches cost
    little.

    ``weights`` are those of ``graph.reverse``, None for hops. ``labels`` are hub labels that take
    the place of the hierarchy, or None.

    - ``_above``: what lies above the source and the targets, see ``cpu.path_walk.Above``.
    - ``_distance``: of shape (n,), by position: distances from the last source, -1 where not known.
    - ``_laid_out``: the positions or hubs at which ``_above.tentative`` holds something of the last
      source.
    - ``_level``, ``_queue``, ``_path``, ``_reached``, ``_other``: arrays of shape (n,), scratch.
    """

    def __init__(
        self, graph: Any, hierarchy: Hierarchy, weights: np.ndarray | None, labels: Any = None
    ):
        self._graph = graph
        self._hierarchy = hierarchy
        self._weights = weights
        self._labels = labels
        n = graph.n_vertices
        self._unreached = UNREACHED[hierarchy.dtype]

        heap, self._reached, known, self._queue = np.empty((4, n), np.int32)
        at, self._path = np.empty((2, n), np.int64)
        tentative, self._other = np.full((2, n), self._unreached, hierarchy.dtype)
        n_known = np.zeros(1, np.int64)
        if labels is None:
            searched = hierarchy.position, *hierarchy.downward
        else:
            searched = labels.rank, *labels.inward
        scratch = tentative, heap, at, known, n_known
        self._above = Above(*searched, *scratch, is_label=labels is not None)

        # What is known of the last source, which ``start`` clears.
        self._distance = np.full(n, -1, hierarchy.dtype)
        self._level = np.full(n, -1, np.int32)
        self._laid_out = known[:0]
        self._source = -1

    def start(self, source: int) -> None:
        """Search upward from a vertex, or lay out its label; what follows is about this source."""
        above = self._above
        hierarchy = self._hierarchy
        # Clear what is known of the last source.
        above.tentative[self._laid_out] = self._unreached
        self._distance[above.known[: above.n_known[0]]] = -1
        above.n_known[0] = 0

        self._source = source
        position = int(above.position[source])
        if self._labels is None:
            scratch = above.tentative, above.stack, self._reached, self._unreached
            count = search_upward(position, hierarchy.upward, hierarchy.downward, *scratch)
            self._laid_out = self._reached[:count]
        else:
            offsets, hubs, distances = self._labels.outward
            begin, end = offsets[position : position + 2].tolist()
            self._laid_out = hubs[begin:end]
            above.tentative[self._laid_out] = distances[begin:end]

    def distances(self, targets: np.ndarray, sums: np.ndarray) -> None:
        """Write the distances of some vertices into ``sums``, in units of the hierarchy;
        ``UNREACHED`` where there is none.
        """
        distances_at(targets, self._distance, self._above, sums)

    def write_distances(
        self,
        next_item: np.ndarray,
        sources: np.ndarray,
        lists: tuple[np.ndarray, np.ndarray],
        sums: Any,
    ) -> None:
        """Write the distances at the targets of each source that no other thread takes. No source
        was started before.
        """
        both_ways = self._hierarchy.upward, self._hierarchy.downward
        arrays = LookupArrays(self._above, self._other, self._distance, self._reached)
        look_up(next_item, sources, lists, sums, both_ways, arrays, self._unreached)

    def path(self, target: int) -> np.ndarray:
        """Return the path to a vertex that is reached, along canonical predecessors.

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
        return self._path[:size][::-1].astype(self._graph.targets.dtype)


def looks_up(query: Any, n_vertices: int) -> bool:
    """Return whether the targets of each source are looked up in place of a sweep, by the
    ``Query``.
    """
    if not query.has_target_lists:
        return False
    is_few = query.targets_per_source * _VERTICES_PER_TARGET <= n_vertices
    return query.output == "paths" or (query.output == "targets" and is_few)


class Lookups:
    """A ``Lookup`` per thread, made when the thread has its first source."""

    def __init__(
        self, graph: Any, hierarchy: Hierarchy, weights: np.ndarray | None, labels: Any = None
    ):
        self._arguments = (graph, hierarchy, weights, labels)
        self._by_thread: list[Lookup | None] = [None] * threads.max_threads()
        self._sum_dtype = hierarchy.dtype
        self._vertex_dtype = graph.targets.dtype

    def look_up_lists(
        self, sources: np.ndarray, lists: Any, bound: Any, finds_paths: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return distances at the targets of each source, in units, and paths to those that are
        nearer than ``bound``.

        ``lists`` are ``TargetLists``. Return the distances, integers of shape (n_targets,), and the
        sizes and vertices of ``results.Routes``; without ``finds_paths`` there are no vertices.
        """
        source_numbers = np.asarray(sources, np.int64)
        sums = np.empty(lists.vertices.size, self._sum_dtype)
        sizes = np.zeros(lists.vertices.size, np.int64)
        paths: list[list[np.ndarray]] = [[] for _ in source_numbers]
        next_item = np.zeros(1, np.int64)  # the source that the next free thread takes

        def get_lookup(thread: int) -> Lookup:
            """Return the ``Lookup`` of a thread."""
            lookup = self._by_thread[thread] or Lookup(*self._arguments)
            self._by_thread[thread] = lookup
            return lookup

        def find_paths(i: int, thread: int) -> None:
            """Look up the distances and the paths of the i-th source."""
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
            """Look up the distances of sources that no other thread takes."""
            get_lookup(thread).write_distances(next_item, source_numbers, tuple(lists), sums)

        if finds_paths:
            threads.for_each(find_paths, source_numbers.size)
        else:
            threads.on_each(
                find_distances,
                source_numbers.size,
                stop=lambda: next_item.fill(source_numbers.size),
            )
        vertices = [np.empty(0, self._vertex_dtype)]  # so that there is an array without a path
        for paths_of_source in paths:
            vertices += paths_of_source
        return sums, sizes, np.concatenate(vertices)
