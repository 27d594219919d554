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

GROUPS = (2, 16, 128)  # sources of a plan; a group takes the smallest plan that holds it
TINY = 512  # vertices up to which groups are wide, as their number matters more than what they hold
SLACK = 1 + 2.0**-40  # more than the rounding of the few operations that a bound takes
# edges up to which a few searches in hops take one thread each, without levels in common
_SMALL = 1 << 20
# more searches, at most, that wide groups take on meshes, since their sources do not know of each
# other
_WASTE = 3


class Searches:
    """Searches from vertices of a graph, in groups; ``count`` is their number.

    ``certified``: whether each distance is certified before it is returned. ``_plans`` has a plan
    by direction (True: in the reverse graph) and group size. ``_groups_save_time`` is None until
    ``widest`` has estimated it.
    """

    def __init__(self, graph: Graph, algorithm: str, certified: bool, memory: int | None) -> None:
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

        ``numbers`` are vertex numbers, int64, NumPy. Distances in hops are int32, or int64 for very
        many vertices. Those of integer weights are int64. Other distances are those of the search
        in float64, on the host. Unreached vertices have the distance of their type that stands for
        them.

        Raises InputError (a vertex is not reached, and ``require_all`` is True) or CertificateError
        (a distance is wrong).
        """
        if backward:
            graph = self.graph.derived.linked_reverse()
        else:
            graph = self.graph
        for group in self._plan(graph, backward, numbers.size).iter_groups(numbers):
            if self.certified:
                certify_many(graph, group.sources, group.distance).require()
            self.count += len(group)
            for i, number in enumerate(group.sources.tolist()):
                distance = group.distance[i]
                if require_all:
                    self._require_reached(number, distance, backward)
                yield number, self._as_bounds(distance)

    def widest(self, narrow: int = 0) -> int:
        """Return the number of sources up to which groups may grow.

        Sources of one group do not profit from each other's bounds. So groups are wide only where
        each search then takes a fraction of the time, by the estimates of the plans. Otherwise
        there are ``narrow`` sources, or one per thread.
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
        return max(2, narrow, min(per_thread, GROUPS[-1]))

    def _seconds_per_source(self, size: int) -> float:
        """Return the estimate of the best strategy for a group of a size."""
        return self._plan(self.graph, False, size).ranked(size)[0].seconds / size

    def _plan(self, graph: Graph, backward: bool, n_sources: int) -> MultiSourcePlan:
        """Return a plan for the smallest group that holds so many sources, or for the largest one.

        Plans are kept. Those of one direction share what the first one has learned of the graph.
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
        """Return whether each search of a group takes a thread of its own: few searches for hops,
        of a small graph.
        """
        if ALGORITHMS[self.algorithm].is_weighted or graph.device != "cpu":
            return False
        is_few = size <= GROUPS[1] or graph.n_vertices <= TINY
        return is_few and graph.n_edges <= _SMALL

    def _require_reached(self, number: int, distance: Array, backward: bool) -> None:
        """Raise InputError, which names both ends, if there is a vertex without a path to or from
        ``number``.
        """
        reached = is_reached(distance)
        if not bool(reached.all()):
            unreached = int(to_host(namespace(distance).argmin(reached)))
            ends = (unreached, number) if backward else (number, unreached)
            start, end = self.graph.ids_at(namespace(distance).asarray(ends)).tolist()
            raise InputError(
                f"the graph is not {'strongly ' if self.graph.directed else ''}connected: there is no path from vertex "
                f"{start!r} to vertex {end!r}, so eccentricities are infinite; pass {option_text('unconnected', 'largest')} "
                "for the largest component"
            )

    def _as_bounds(self, distance: Array) -> Array:
        """Return distances in the type that bounds are computed in."""
        if is_hops(distance.dtype):
            return distance.astype(bound_dtype(self.graph, self.algorithm))
        if self.graph.integer_weights:
            return to_integers(distance)
        # on the host, as CuPy would treat subnormal numbers as 0
        return to_host(distance).astype(np.float64)


def bound_dtype(graph: Graph, algorithm: str) -> np.dtype:
    """Return the type that bounds of distances are computed in."""
    if ALGORITHMS[algorithm].is_weighted:
        return np.dtype(np.int64 if graph.integer_weights else np.float64)
    return np.dtype(np.int32 if graph.n_vertices < 2**30 else np.int64)


def is_weighted(graph: Graph, algorithm: str) -> bool:
    """Return whether the algorithm adds weights; raise InputError if those of the graph are missing
    or negative.
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
