"""Certified searches from vertices that are chosen as bounds need them, in groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import arguments
from .._arrays import Array, is_hops, is_reached, namespace, to_host
from ..bfs import plan_bfs_many
from ..certificate import certify_many
from ..cpu import threads
from ..errors import InputError, option_text
from ..graph import Graph
from ..multi_source.planning import MultiSourcePlan
from ..search.algorithms import ALGORITHMS
from ..search.exact import to_integers
from ..sssp import plan_sssp_many

# Numbers of sources for which plans are made: a plan is a search that is checked and allocated. A
# group of sources takes the smallest plan that holds it.
GROUPS = (2, 16, 128)
# The number of vertices up to which groups are as large as possible: on so small a graph the number
# of groups takes more time than superfluous searches.
TINY = 512
# A factor that exceeds the rounding of the few operations by which a bound is computed.
SLACK = 1 + 2.0**-40
# The number of edges up to which a few searches in hops take one thread each, rather than being
# made together, level by level.
_SMALL = 1 << 20
# How many times as many searches large groups take, at most, on meshes such as road networks: each
# source of a group is chosen without the bounds that the searches of the same group give.
_WASTE = 3


class Searches:
    """Searches from vertices of a graph, in groups, to compute bounds of their distances.

    Attributes
    ----------
    graph : Graph
    algorithm : {"bfs", "sssp"}
        Count hops, or add weights.
    count : int
        Searches that were made so far, of both directions.
    certified : bool
        Whether each distance is proved right, by one pass over the edges, before it is returned.
    _memory : int or None
        Bytes that a plan may take in addition to the graph; None for the default.
    _plans : dict
        A plan by direction (True: in the reverse graph) and number of sources, one of ``GROUPS``.
    _groups_save_time : bool or None
        Whether large groups take less time although they need more searches; None until ``widest``
        has estimated it.
    """

    def __init__(self, graph: Graph, algorithm: str, certified: bool, memory: int | None) -> None:
        """Keep the arguments, which are described at the class; nothing is planned yet."""
        self.graph = graph
        self.algorithm = algorithm
        self.count = 0
        self.certified = certified
        self._memory = memory
        self._plans: dict[tuple[bool, int], MultiSourcePlan] = {}
        self._groups_save_time: bool | None = None

    def iter_distances(
        self, numbers: np.ndarray, backward: bool = False, require_all: bool = True
    ) -> Iterator[tuple[int, Array]]:
        """Yield each vertex with its distances to all vertices, or with ``backward`` from all
        vertices.

        ``numbers`` are the sources: vertex numbers, int64, NumPy. Distances have shape (n,).
        Distances in hops are int32, or int64 for very many vertices. Those of integer weights are
        int64. Both are on the device of the graph. Other distances are those of the search in
        float64, on the host. Unreached vertices have the distance of their type that stands for
        "unreached": -1 hop, ``2**63 - 1`` as an int64 sum, infinity as a float.

        Raises InputError (a vertex is not reached, and ``require_all`` is True) or CertificateError
        (a distance is wrong).
        """
        # ``linked_reverse`` keeps this graph as the reverse of its reverse. A certificate reads the
        # reverse of the graph that was searched, and so builds no third graph.
        if backward:
            graph = self.graph.derived.linked_reverse()
        else:
            graph = self.graph
        # ``iter_groups`` searches from as many sources at a time as the plan holds. The result of a
        # group, a ``Traversals``, is valid until the next one is requested.
        for group in self._plan(graph, backward, numbers.size).iter_groups(numbers):
            if self.certified:
                certify_many(graph, group.sources, group.distance).require()  # or CertificateError
            self.count += len(group)
            # ``group.distance`` has a row per source of the group.
            for i, number in enumerate(group.sources.tolist()):
                distance = group.distance[i]
                if require_all:
                    self._require_reached(number, distance, backward)
                yield number, self._as_bounds(distance)

    def widest(self, narrow: int = 0) -> int:
        """Return the number of sources up to which groups may grow.

        Sources of one group do not profit from each other's bounds, so that large groups need more
        searches in all. So groups are large only where each search then takes a fraction of the
        time, by the estimates of the plans. Otherwise the result is ``narrow`` or the number of
        threads, whichever is larger, and 2 at least.
        """
        if self.graph.n_vertices <= TINY:
            return GROUPS[-1]
        if self._groups_save_time is None:
            in_small_group = self._seconds_per_source(2)
            in_large_group = self._seconds_per_source(GROUPS[-1])
            self._groups_save_time = in_large_group * _WASTE < in_small_group
        if self._groups_save_time:
            return GROUPS[-1]
        if self.graph.device == "cpu":
            per_thread = threads.count()
        else:
            per_thread = 1
        # ``narrow`` is the caller's least size; 0 names none. Plans hold ``GROUPS[-1]`` at most.
        return max(2, narrow, min(per_thread, GROUPS[-1]))

    def _seconds_per_source(self, size: int) -> float:
        """Return the estimated seconds per source of the best strategy for a group of ``size``
        sources, searched forward.
        """
        # ``ranked`` has the strategies with their estimated seconds for the group, fastest first.
        return self._plan(self.graph, False, size).ranked(size)[0].seconds / size

    def _plan(self, graph: Graph, backward: bool, n_sources: int) -> MultiSourcePlan:
        """Return a plan for the smallest of ``GROUPS`` that holds ``n_sources``, or for the largest
        of ``GROUPS`` if ``n_sources`` exceeds all; the plan then splits the sources.

        ``graph`` is ``self.graph``, or its reverse with ``backward``. Plans are kept for the next
        call. Those of one direction share a shape: the degrees, depth and reach of the graph, which
        the first plan has estimated by a few searches.
        """
        size = next((group for group in GROUPS if n_sources <= group), GROUPS[-1])
        # An undirected graph is its own reverse, so that both directions share plans.
        is_reversed = backward and graph is not self.graph
        if (is_reversed, size) in self._plans:
            return self._plans[is_reversed, size]
        shapes = [plan.shape for (way, _), plan in self._plans.items() if way == is_reversed]

        make: Any = plan_bfs_many
        if ALGORITHMS[self.algorithm].is_weighted:
            make = plan_sssp_many
        # By "auto" the plan chooses the strategy by estimated time; "source_per_thread" makes each
        # search on one thread. ``shape=None`` lets the plan estimate the shape.
        strategy = "auto"
        if self._is_one_per_thread(graph, size):
            strategy = "source_per_thread"
        plan = make(
            graph,
            n_sources=size,
            memory=self._memory,
            shape=next(iter(shapes), None),
            strategy=strategy,
        )
        self._plans[is_reversed, size] = plan
        return plan

    def _is_one_per_thread(self, graph: Graph, size: int) -> bool:
        """Return whether each search of a group takes one thread: few searches in hops in a graph
        of few edges, on the CPU. ``size`` is the number of sources of the group.
        """
        if ALGORITHMS[self.algorithm].is_weighted or graph.device != "cpu":
            return False
        is_few = size <= GROUPS[1] or graph.n_vertices <= TINY
        return is_few and graph.n_edges <= _SMALL

    def _require_reached(self, number: int, distance: Array, backward: bool) -> None:
        """Raise InputError, which names both ends, if a vertex is not reached.

        ``distance`` has the distances of all vertices from the vertex ``number``, or with
        ``backward`` to it.
        """
        reached = is_reached(distance)
        if not bool(reached.all()):
            unreached = int(to_host(namespace(distance).argmin(reached)))  # the first False
            ends = (unreached, number) if backward else (number, unreached)
            start, end = self.graph.ids_at(namespace(distance).asarray(ends)).tolist()
            raise InputError(
                f"the graph is not {'strongly ' if self.graph.directed else ''}connected: there is no path from vertex "
                f"{start!r} to vertex {end!r}, so eccentricities are infinite; pass {option_text('unconnected', 'largest')} "
                "for the largest component"
            )

    def _as_bounds(self, distance: Array) -> Array:
        """Return the distances of a search in the type of ``bound_dtype``. There are three forms:
        hops; distances of integer weights, as int64; and all else, as float64 on the host.
        """
        if is_hops(distance.dtype):
            return distance.astype(bound_dtype(self.graph, self.algorithm))
        if self.graph.integer_weights:
            return to_integers(distance)
        # on the host, as CuPy would treat subnormal numbers as 0
        return to_host(distance).astype(np.float64)


def bound_dtype(graph: Graph, algorithm: str) -> np.dtype:
    """Return the type that bounds of distances are computed in: int64 for integer weights, float64
    for others, and int32 or int64 for hops.
    """
    if ALGORITHMS[algorithm].is_weighted:
        return np.dtype(np.int64 if graph.integer_weights else np.float64)
    # A sum of two numbers of hops fits, since a path has fewer edges than the graph has vertices.
    return np.dtype(np.int32 if graph.n_vertices < 2**30 else np.int64)


def is_weighted(graph: Graph, algorithm: str) -> bool:
    """Return whether an algorithm, "bfs" or "sssp", adds weights.

    Raise InputError if there is no such algorithm, or if it adds weights and those of the graph are
    missing or negative.
    """
    if not ALGORITHMS[arguments.choice("algorithm", algorithm, tuple(ALGORITHMS))].is_weighted:
        return False
    if graph.weights is None:
        raise InputError(
            "algorithm='sssp' needs weights, and the graph has none; "
            "pass algorithm='bfs' to count hops"
        )
    if graph.has_negative_weights:
        raise InputError(
            "the graph has negative weights, which the bounds do not cover; "
            "take sssp_many with result='summary'"
        )
    return True
