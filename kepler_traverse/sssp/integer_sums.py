"""Shortest distances that reach 2^53 or more: sums in int64, on the host, for graphs on either
device.

Float types hold every integer up to 2^53, and all strategies compute in them. Sums beyond that are
rare, so one plain method serves them: Dijkstra's algorithm with a binary heap, one source per
thread, and Bellman-Ford where a weight is negative. An unreached vertex has the distance 2^63 - 1.
"""

from __future__ import annotations

import heapq

import numpy as np

from .. import cuda
from .._arrays import MAX_INTEGER, NO_PREDECESSOR, as_distance
from ..cpu import threads
from ..cpu.compiled import njit
from ..cpu.edges import Edges
from ..errors import NegativeCycleError, PrecisionError
from ..search.closed_returns import refuse_negative_return
from ..search.strategy import MultiSourceOutcome, Outcome, per_core
from . import cpu_steps, negative_cycles
from .tuning import FIRST_CYCLE_SEARCH

# where falling distances stop: the sum with a weight above it stays within int64
_LOWEST = -(2**62)
SOURCES_PER_THREAD = 8  # of a group, so that threads end at about the same time
group_size = per_core(SOURCES_PER_THREAD)


def plan(graph, query):
    """Return ``traverse(source_vertex)``, as strategies for one source do."""
    many = _plan(graph, query)

    def traverse(source: int) -> Outcome:
        outcome = many(np.array([source], np.int64))
        if outcome.predecessor is None:
            predecessor = None
        else:
            predecessor = outcome.predecessor[0]
        return Outcome(outcome.distance[0], predecessor, outcome.limits[0], outcome.rounds[0])

    return traverse


def memory(n_vertices: int, n_edges: int, predecessors: bool) -> int:
    """Bytes of a run at most: distances, predecessors, layers, two queues; a heap may hold an entry
    per edge.
    """
    return n_vertices * (8 + 8 * predecessors + 24) + 16 * n_edges


def memory_of_multi_source(shape, query, group: int) -> int:
    """Bytes of a run: results of a group, and the state of one search per thread."""
    rows = group * shape.n_vertices * 8 * (1 + query.predecessors)
    return rows + threads.count() * memory(shape.n_vertices, shape.n_edges, query.predecessors)


def terms(shape, n_sources: int, group: int, machine) -> dict[str, float]:  # noqa: ARG001
    """Return no terms: the strategy replaces others where needed, and its cost is never compared."""
    return {}


def plan_multi_source(graph, query, _group: int = 0):
    """Return ``traverse(source_vertices)``, as strategies for several sources do."""
    search = _plan(graph, query)

    def traverse(sources) -> MultiSourceOutcome:
        try:
            return search(sources)
        except NegativeCycleError as error:
            raise NegativeCycleError(
                graph.ids_at(np.array(error.cycle)).tolist(), error.weight
            ) from None

    return traverse


def _plan(graph, query):
    """As ``plan_multi_source``, but a negative cycle is named by vertex numbers."""
    device = graph.device
    graph = graph.derived.sums_in("int64")
    host = graph.to("cpu")
    edges = Edges.of(host)
    negative = graph.has_negative_weights
    if negative and graph.derived.max_sum >= -_LOWEST:
        raise overflow_error()
    # with negative weights a path may lead through vertices beyond the limit
    if negative:
        limit = None
    else:
        limit = query.limit
    bound = as_distance(limit, np.dtype(np.int64))

    def traverse(sources) -> MultiSourceOutcome:
        sources = np.asarray(sources, np.int64)
        distance = np.empty((sources.size, host.n_vertices), np.int64)
        rounds = np.zeros(sources.size, np.int64)
        numbers = sources.tolist()
        if negative:
            for i, source in enumerate(numbers):
                rounds[i] = _bellman_ford(host, source, distance[i])
                refuse_negative_return(host, source, distance[i])
            for vertex, weight in graph.negative_loops.items():
                if (distance[:, vertex] != MAX_INTEGER).any():
                    raise NegativeCycleError([vertex], weight)
        else:
            overflows = np.zeros(sources.size, np.bool_)

            def search_one(i: int, _thread: int) -> None:
                rounds[i], overflows[i] = _dijkstra(edges, numbers[i], bound, distance[i])

            threads.for_each(search_one, sources.size)
            if overflows.any() and limit is None:
                raise overflow_error()
        predecessor = cpu_steps.point_back(host, query, sources, distance)
        if query.output == "targets":
            distance = distance[:, query.targets]
        move = cuda.cp.asarray if device == "cuda" else np.asarray
        moved = None if predecessor is None else move(predecessor)
        return MultiSourceOutcome(move(distance), moved, [limit] * sources.size, rounds.tolist())

    return traverse


def overflow_error() -> PrecisionError:
    return PrecisionError(
        "a sum of integer weights exceeds 2^63 - 1, the largest int64; scale "
        "the weights down, or give float weights"
    )


@njit(cache=True, nogil=True)
def _dijkstra(edges, source, limit, distance):
    """Return how many vertices were settled, and whether a path longer than int64 holds is all that
    leads to one.
    """
    offsets = edges.offsets
    targets = edges.targets
    weights = edges.weights
    distance[:] = MAX_INTEGER
    distance[source] = 0
    too_far = np.zeros(distance.size, np.bool_)
    heap = [(np.int64(0), np.int64(source))]
    settled = 0
    while len(heap):
        d, u = heapq.heappop(heap)
        if d != distance[u]:
            continue
        settled += 1
        for e in range(offsets[u], offsets[u + 1]):
            v = targets[e]
            w = weights[e]
            if w >= MAX_INTEGER - d:
                too_far[v] = True
                continue
            through = d + w
            if through < distance[v] and through <= limit:
                distance[v] = through
                heapq.heappush(heap, (through, np.int64(v)))
    overflows = False
    for v in range(distance.size):
        overflows |= too_far[v] and distance[v] == MAX_INTEGER
    return settled, overflows


def _bellman_ford(graph, source: int, distance) -> int:
    """Fill in the distances from a source and return the rounds; raise NegativeCycleError if there
    is such a cycle.
    """
    n = graph.n_vertices
    distance.fill(MAX_INTEGER)
    distance[source] = 0
    parent = np.full(n, NO_PREDECESSOR, graph.targets.dtype)
    queued_in = np.full(n, -1, np.int64)
    frontier = np.array([source], np.int64)
    count = 0
    next_search = FIRST_CYCLE_SEARCH
    while frontier.size:
        frontier = _relax(Edges.of(graph), frontier, count, distance, parent, queued_in)
        count += 1
        if count >= next_search and frontier.size:
            negative_cycles.search(graph, parent)
            next_search *= 2
        if count > n and frontier.size:
            negative_cycles.give_up(graph, parent)
    if distance.min() <= _LOWEST:  # no path without a cycle is so short
        negative_cycles.give_up(graph, parent)
    return count


@njit(cache=True, nogil=True)
def _relax(edges, frontier, count, distance, parent, queued_in):
    offsets = edges.offsets
    targets = edges.targets
    weights = edges.weights
    following = np.empty(distance.size, np.int64)
    size = 0
    for i in range(frontier.size):
        u = frontier[i]
        for e in range(offsets[u], offsets[u + 1]):
            v = targets[e]
            through = max(distance[u] + weights[e], _LOWEST)
            if through < distance[v]:
                distance[v] = through
                parent[v] = u
                if queued_in[v] != count:
                    queued_in[v] = count
                    following[size] = v
                    size += 1
    return following[:size]
