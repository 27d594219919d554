"""Distances and paths by textbook algorithms, in Python integers, and in floats that are rounded after each sum.

Nothing here imports the package under test, nor does ``answers``.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from scripts.storm.edges import INTEGERS, NO_WEIGHTS, EdgeList, round_to

MAX_INTEGER = 2**63 - 1


class NegativeCycle(Exception):
    """A negative cycle can be reached, so no distances exist."""


class Unrepresentable(Exception):
    """A type of the distances does not hold them: a sum overflows, or rounding lowers distances forever."""


class Network:
    """The graph that an edge list means.

    Of parallel edges the smallest weight counts, and of equal ones the first row. A self-loop is on no shortest path, but
    for a negative one, which is a negative cycle.

    Attributes
    ----------
    ids : list
        All vertices in ascending order; texts by their code points, which is the order of their UTF-8 bytes.
    arcs, arcs_into : dict of dict
        Weight by both ends, from the first end and from the second.
    row_of : dict
        Row of the edge list by both ends.
    """

    def __init__(self, edges: EdgeList):
        self.edges = edges
        ends = {end for u, v, _ in edges.rows for end in (u, v)}
        self.ids = sorted(ends | set(edges.more_vertices))
        self.rank = {vertex: place for place, vertex in enumerate(self.ids)}
        self.arcs = {vertex: {} for vertex in self.ids}
        self.arcs_into = {vertex: {} for vertex in self.ids}
        self.row_of = {}
        self.negative_loops = set()
        for row, (u, v, weight) in enumerate(edges.rows):
            self._add(row, u, v, 1 if weight is None else weight + 0)  # -0.0 + 0 is 0.0
            if edges.back is not None and edges.back[row] is not None:
                self._add(row, v, u, edges.back[row] + 0)

    def _add(self, row: int, u: Any, v: Any, weight: Any) -> None:
        if u == v:
            if weight < 0 and u not in self.edges.closed:  # its loop is on no path
                self.negative_loops.add(u)
            return
        ways = [(u, v)] if self.edges.directed else [(u, v), (v, u)]
        for a, b in ways:
            if b not in self.arcs[a] or weight < self.arcs[a][b]:
                self.arcs[a][b] = weight
                self.arcs_into[b][a] = weight
                self.row_of[a, b] = row

    def reversed(self) -> Network:
        """Return the same graph with each edge in the other direction."""
        rows = [(v, u, weight) for u, v, weight in self.edges.rows]
        return Network(replace(self.edges, rows=rows))

    def lengths(self, algorithm: str) -> Lengths:
        """Return how an algorithm adds up edges."""
        return Lengths(self, algorithm)


class Lengths:
    """The lengths of edges: one hop each, or their weights, with sums as the type of the weights has them."""

    def __init__(self, network: Network, algorithm: str):
        self.network = network
        self.counts_hops = algorithm == "bfs"
        weights = network.edges.weights
        is_whole = self.counts_hops or weights in (NO_WEIGHTS, INTEGERS)
        self.weights = INTEGERS if is_whole else weights
        self.zero = 0 if is_whole else 0.0

    @property
    def is_exact(self) -> bool:
        """Whether sums are integers."""
        return self.weights == INTEGERS

    @cached_property
    def has_negative_arcs(self) -> bool:
        """Whether an edge that may be on a path has a weight below zero."""
        return not self.counts_hops and any(
            weight < 0 for arcs in self.network.arcs.values() for weight in arcs.values()
        )

    @property
    def may_be_negative(self) -> bool:
        return self.has_negative_arcs or (
            not self.counts_hops and bool(self.network.negative_loops)
        )

    def add(self, distance: Any, weight: Any) -> Any:
        """Return a distance and the weight of an edge, added up and rounded."""
        if self.counts_hops:
            return distance + 1
        if self.is_exact:
            return distance + weight
        return round_to(self.weights, distance + weight)

    def starts_at(self, sources: Iterable[Any]) -> dict:
        """Return what each source has at its beginning: its cost in a mapping, or else nothing."""
        if isinstance(sources, Mapping):
            return {source: self.zero + cost for source, cost in sources.items()}
        return dict.fromkeys(sources, self.zero)

    def distances(self, sources: Iterable[Any]) -> dict:
        """Return the smallest distance of each vertex that one of the sources reaches.

        A mapping has a cost per source, which its distances begin with. Raises NegativeCycle or
        Unrepresentable.
        """
        starts = self.starts_at(sources)
        found = self._by_rounds(starts) if self.may_be_negative else self._by_heap(starts)
        if self.is_exact and any(abs(distance) > MAX_INTEGER for distance in found.values()):
            raise Unrepresentable("a distance is beyond int64")
        if any(math.isinf(distance) for distance in found.values()):
            raise Unrepresentable("a sum of weights is beyond the largest float")
        return found

    def distance_onward(self, vertex: Any, distance: dict, starts: dict) -> Any:
        """Return what paths have at a vertex that lead on from it: from a closed one, those that
        begin there; None if none does.
        """
        return (starts if vertex in self.network.edges.closed else distance).get(vertex)

    def _by_heap(self, starts: dict) -> dict:
        rank = self.network.rank
        best = dict(starts)
        heap = [(cost, rank[source], source) for source, cost in starts.items()]
        heapq.heapify(heap)
        done = set()
        while heap:
            _, _, u = heapq.heappop(heap)
            if u in done:
                continue
            done.add(u)
            distance = self.distance_onward(u, best, starts)
            if distance is None:
                continue
            for v, weight in self.network.arcs[u].items():
                through = self.add(distance, weight)
                if v not in best or through < best[v]:
                    best[v] = through
                    heapq.heappush(heap, (through, rank[v], v))
        return best

    def _by_rounds(self, starts: dict) -> dict:
        best = dict(starts)
        for _ in range(len(self.network.ids) + 1):
            changed = False
            for u in list(best):
                distance = self.distance_onward(u, best, starts)
                if distance is None:
                    continue
                for v, weight in self.network.arcs[u].items():
                    through = self.add(distance, weight)
                    if v not in best or through < best[v]:
                        best[v] = through
                        changed = True
            if not changed:
                break
        else:
            self._name_cycle(best)
        closed = self.network.edges.closed
        if self.network.negative_loops & best.keys():
            raise NegativeCycle("a negative self-loop")
        for source in closed & starts.keys():
            if best[source] < starts[source]:
                if len(starts) == 1:
                    raise NegativeCycle("back to a closed source")
                self._by_rounds({source: self.zero})  # or else another source leads to it
        return best

    def _name_cycle(self, reached: dict) -> None:
        """Raise the error of distances that sink forever: by exact sums there is a negative cycle, or there is none."""
        exact = dict.fromkeys(reached, Fraction(0))
        for _ in range(len(exact) + 1):
            changed = False
            for u in exact.keys() - self.network.edges.closed:
                for v, weight in self.network.arcs[u].items():
                    if exact[u] + Fraction(weight) < exact[v]:
                        exact[v] = exact[u] + Fraction(weight)
                        changed = True
            if not changed:
                raise Unrepresentable("rounding closes a cycle")
        raise NegativeCycle("a cycle")

    def tight_arcs_into(self, vertex: Any, distance: dict) -> list:
        """Return the starts of the edges that explain the distance of a vertex, in ascending order."""
        if vertex not in distance:
            return []
        own = distance[vertex]
        starts = [
            u
            for u, weight in self.network.arcs_into[vertex].items()
            if u in distance and self.add(distance[u], weight) == own
        ]
        return sorted(starts)

    def predecessors(self, source: Any, distance: dict) -> dict:
        """Return the canonical predecessor of each vertex that is reached; that of the source is itself.

        It is the smallest vertex that explains the distance and is strictly nearer. A vertex without such a one takes the
        smallest of those with the fewest steps from a vertex that has one, over edges that explain distances. With negative
        weights all vertices take the smallest of those with the fewest steps from the source.
        """
        return self._point_back({source}, distance)[0]

    def nearest_sources(self, sources: Iterable[Any], distance: dict) -> dict:
        """Return the source to which the canonical predecessors of each vertex lead, without negative weights."""
        before, order = self._point_back(set(sources), distance)
        owner = {}
        for vertex in order:
            owner[vertex] = vertex if before[vertex] == vertex else owner[before[vertex]]
        return owner

    def _point_back(self, roots: set[Any], distance: dict) -> tuple[dict, list]:
        before = {root: root for root in roots if distance[root] == 0}
        shut = self.network.edges.closed - roots
        tight = {
            vertex: [u for u in self.tight_arcs_into(vertex, distance) if u not in shut]
            for vertex in distance
        }
        for vertex, starts in tight.items():
            nearer = [u for u in starts if distance[u] < distance[vertex]]
            if vertex not in before and nearer and not self.has_negative_arcs:
                before[vertex] = nearer[0]
        ends = defaultdict(list)
        for vertex, starts in tight.items():
            for u in starts:
                ends[u].append(vertex)
        layer = dict.fromkeys(before, 0)
        last = sorted(layer)
        depth = 0
        while len(layer) < len(distance):
            depth += 1
            reached = {}
            for u in last:
                for vertex in ends[u]:
                    if vertex not in layer:
                        reached.setdefault(vertex, u)
            if not reached:
                raise Unrepresentable("rounding closes a cycle of equal distances")
            before |= reached
            layer |= dict.fromkeys(reached, depth)
            last = sorted(reached)
        order = sorted(distance, key=lambda vertex: (distance[vertex], layer[vertex]))
        return before, order


def path_to(vertex: Any, before: dict) -> list:
    """Return the vertices from the source to a vertex, along predecessors."""
    way = [vertex]
    while before[way[-1]] != way[-1]:
        way.append(before[way[-1]])
    return way[::-1]
