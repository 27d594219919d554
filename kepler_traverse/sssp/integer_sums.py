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

# Distances fall to this one and no further, so that their sums with weights stay within int64.
_LOWEST = -(2**62)
SOURCES_PER_THREAD = 8  # of a group, so that threads end at about the same time
group_size = per_core(SOURCES_PER_THREAD)


def plan(graph, query):
    """Return ``traverse(source_vertex)``, as strategies for one source do. It returns the
    ``Outcome`` of one search.

    ``graph`` is a ``Graph`` with integer weights, on either device, and ``query`` a ``Query``.
    """
    search_group = _plan(graph, query)

    def traverse(source: int) -> Outcome:
        """Search from the vertex number ``source``. Return its ``Outcome``: int64 distances of
        shape (n,), predecessors if they are wanted, the limit and the rounds.
        """
        outcome = search_group(np.array([source], np.int64))
        if outcome.predecessor is None:
            predecessor = None
        else:
            predecessor = outcome.predecessor[0]
        return Outcome(outcome.distance[0], predecessor, outcome.limits[0], outcome.rounds[0])

    return traverse


def memory(n_vertices: int, n_edges: int, predecessors: bool) -> int:
    """Return the bytes of a run at most: 8 per vertex for its distance, 8 for its predecessor, and
    24 for its layer and places in two queues; a heap may hold an entry of 16 bytes per edge.
    """
    return n_vertices * (8 + 8 * predecessors + 24) + 16 * n_edges


def memory_of_multi_source(shape, query, group: int) -> int:
    """Return the bytes of a run: results of a group, and the state of one search per thread.

    ``shape`` is a ``Shape`` (size of the graph), ``query`` a ``Query``, and ``group`` the number of
    sources that are searched together.
    """
    rows = group * shape.n_vertices * 8 * (1 + query.predecessors)
    return rows + threads.count() * memory(shape.n_vertices, shape.n_edges, query.predecessors)


def terms(shape, n_sources: int, group: int, machine) -> dict[str, float]:  # noqa: ARG001
    """Return no terms. The arguments, which ``terms`` of all strategies have, are ignored: this
    strategy replaces others where floats would round, and its cost is never compared.
    """
    return {}


def plan_multi_source(graph, query, _group: int = 0):
    """Return ``traverse(source_vertices)``, as strategies for several sources do. Its
    NegativeCycleError names the cycle by the user's ids.

    ``graph`` is a ``Graph`` with integer weights, on either device, and ``query`` a ``Query``.
    ``_group``, the most sources of a call, is ignored: each call allocates its own results.
    """
    search_group = _plan(graph, query)

    def traverse(sources) -> MultiSourceOutcome:
        """Search from each of the vertex numbers ``sources``. Return the outcome: int64 distances,
        and predecessors if they are wanted, a row per source.

        Raises NegativeCycleError or PrecisionError: a negative cycle is reached, or a sum exceeds
        int64.
        """
        try:
            return search_group(sources)
        except NegativeCycleError as error:
            raise NegativeCycleError(
                graph.ids_at(np.array(error.cycle)).tolist(), error.weight
            ) from None

    return traverse


def _plan(graph, query):
    """Return ``traverse(source_vertices)``, whose NegativeCycleError names vertex numbers.

    The search runs on the host. Its results are on the device of the graph. Without negative
    weights it is Dijkstra's algorithm, which ends at the limit of ``query``. With negative weights
    it is that of Bellman and Ford, which ignores the limit: distances beyond the limit are in the
    outcome, whose ``limits`` are None, and the caller cuts them off.
    """
    device = graph.device
    graph = graph.derived.sums_in("int64")  # the same graph with int64 weights
    host = graph.to("cpu")
    edges = Edges.of(host)
    has_negative_weights = graph.has_negative_weights
    # ``max_sum`` bounds the absolute sum of any path, which must stay above _LOWEST.
    if has_negative_weights and graph.derived.max_sum >= -_LOWEST:
        raise overflow_error()
    # with negative weights a path may lead through vertices beyond the limit
    if has_negative_weights:
        limit = None
    else:
        limit = query.limit
    # The largest int64 distance that is kept. Without a limit it is MAX_INTEGER - 1, the largest
    # finite one, as MAX_INTEGER means unreached.
    bound = as_distance(limit, np.dtype(np.int64))

    def traverse(sources) -> MultiSourceOutcome:
        """Search from each of the vertex numbers ``sources``. Return the outcome, a row per source:
        int64 distances of all vertices or at the query's targets, MAX_INTEGER where unreached, and
        predecessors if they are wanted.

        Raises NegativeCycleError or PrecisionError: a negative cycle is reached, or a sum exceeds
        int64.
        """
        sources = np.asarray(sources, np.int64)
        distance = np.empty((sources.size, host.n_vertices), np.int64)
        rounds = np.zeros(sources.size, np.int64)
        source_numbers = sources.tolist()

        if has_negative_weights:
            for i, source in enumerate(source_numbers):
                rounds[i] = _bellman_ford(host, source, distance[i])
                # A closed source has one number where paths begin and one where they end: a path
                # back to it is no cycle of the CSR, and is refused here if it is negative.
                refuse_negative_return(host, source, distance[i])
            # Self-loops are no edges of the CSR. A negative one is a cycle, if it is reached.
            for vertex, weight in graph.negative_loops.items():
                if (distance[:, vertex] != MAX_INTEGER).any():
                    raise NegativeCycleError([vertex], weight)
        else:
            overflows = np.zeros(sources.size, np.bool_)

            def search_one(i: int, _thread: int) -> None:
                """Search from the i-th source. Settled vertices count as rounds."""
                rounds[i], overflows[i] = _dijkstra(edges, source_numbers[i], bound, distance[i])

            threads.for_each(search_one, sources.size)
            # With a limit, a sum that does not fit is beyond it, and so unreached.
            if overflows.any() and limit is None:
                raise overflow_error()

        # None if the query wants no predecessors.
        predecessor = cpu_steps.point_back(host, query, sources, distance)
        if query.output == "targets":
            distance = distance[:, query.targets]
        move = cuda.cp.asarray if device == "cuda" else np.asarray
        if predecessor is not None:
            predecessor = move(predecessor)
        limits = [limit] * sources.size
        return MultiSourceOutcome(move(distance), predecessor, limits, rounds.tolist())

    return traverse


def overflow_error() -> PrecisionError:
    """Return the error for a sum that int64 does not hold."""
    return PrecisionError(
        "a sum of integer weights exceeds 2^63 - 1, the largest int64; scale "
        "the weights down, or give float weights"
    )


@njit(cache=True, nogil=True)
def _dijkstra(edges, source, limit, distance):
    """Write the distances from the vertex ``source`` to ``distance``, int64 of shape (n,):
    MAX_INTEGER where unreached or beyond ``limit``.

    ``edges`` are ``Edges`` with non-negative int64 weights. Return how many vertices were settled,
    and whether a vertex has paths, but all of them are longer than int64 holds.
    """
    offsets = edges.offsets
    targets = edges.targets
    weights = edges.weights
    distance[:] = MAX_INTEGER
    distance[source] = 0
    is_too_far = np.zeros(distance.size, np.bool_)  # where a path was too long for int64
    heap = [(np.int64(0), np.int64(source))]  # (distance, vertex); a vertex may be there repeatedly
    n_settled = 0

    while len(heap):
        distance_u, u = heapq.heappop(heap)
        if distance_u != distance[u]:  # an entry that a shorter path has replaced
            continue
        n_settled += 1
        for e in range(offsets[u], offsets[u + 1]):
            v = targets[e]
            weight = weights[e]
            if weight >= MAX_INTEGER - distance_u:  # the sum does not fit, or is "unreached"
                is_too_far[v] = True
                continue
            candidate = distance_u + weight
            if candidate < distance[v] and candidate <= limit:
                distance[v] = candidate
                heapq.heappush(heap, (candidate, np.int64(v)))

    overflows = False
    for v in range(distance.size):
        overflows |= is_too_far[v] and distance[v] == MAX_INTEGER
    return n_settled, overflows


def _bellman_ford(graph, source: int, distance) -> int:
    """Write the distances from the vertex ``source`` to ``distance``, int64 of shape (n,), and
    return the number of rounds. Weights may be negative.

    Raises NegativeCycleError: a negative cycle is reached.
    """
    n = graph.n_vertices
    distance.fill(MAX_INTEGER)
    distance[source] = 0
    parent = np.full(n, NO_PREDECESSOR, graph.targets.dtype)
    queued_in = np.full(n, -1, np.int64)
    frontier = np.array([source], np.int64)
    n_rounds = 0
    # Cycles are searched for after 16, 32, 64, ... rounds. More rounds than vertices improve
    # distances only around a negative cycle.
    next_search = FIRST_CYCLE_SEARCH
    while frontier.size:
        frontier = _relax(Edges.of(graph), frontier, n_rounds, distance, parent, queued_in)
        n_rounds += 1
        if n_rounds >= next_search and frontier.size:
            negative_cycles.search(graph, parent)  # raises if the parents form a negative cycle
            next_search *= 2
        if n_rounds > n and frontier.size:
            negative_cycles.give_up(graph, parent)  # always raises
    if distance.min() <= _LOWEST:  # no path without a cycle is so short
        negative_cycles.give_up(graph, parent)
    return n_rounds


@njit(cache=True, nogil=True)
def _relax(edges, frontier, round_number, distance, parent, queued_in):
    """Relax the edges of ``frontier``, int64 vertex numbers. Return the vertices that improved,
    each once: the next frontier.

    ``distance``, ``parent`` and ``queued_in``, of shape (n,), are updated: int64 distances, the
    vertex that lowered each one last, and the round that last put the vertex on the frontier.
    ``round_number`` is that of this round. ``edges`` are ``Edges``.
    """
    offsets = edges.offsets
    targets = edges.targets
    weights = edges.weights
    next_frontier = np.empty(distance.size, np.int64)
    n_next = 0
    for i in range(frontier.size):
        u = frontier[i]
        for e in range(offsets[u], offsets[u + 1]):
            v = targets[e]
            # cut off, so that the sums of a negative cycle do not overflow before it is found
            candidate = max(distance[u] + weights[e], _LOWEST)
            if candidate < distance[v]:
                distance[v] = candidate
                parent[v] = u
                if queued_in[v] != round_number:
                    queued_in[v] = round_number
                    next_frontier[n_next] = v
                    n_next += 1
    return next_frontier[:n_next]
