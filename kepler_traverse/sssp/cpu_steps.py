"""SSSP on the CPU: relaxing a frontier, and computing predecessors from final distances.

Distances are stored as integers whose order is that of the floats (``cpu.atomics``), so a
relaxation is one atomic minimum. The sum d[u] + w is rounded once to the graph's type, and the
rounded sum is monotonic in d[u]. So with non-negative weights the distances equal Dijkstra's bit
for bit, in any order of relaxation and with any number of threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._arrays import NO_PREDECESSOR, Array, as_distance, is_reached, unreached_value
from ..cpu import threads
from ..cpu.atomics import (
    atomic_add,
    atomic_exchange,
    atomic_min,
    atomic_umin,
    compare_and_swap,
    from_ordered,
    ordered_dtype,
    to_ordered,
)
from ..cpu.compiled import njit
from ..cpu.edges import Edges
from ..errors import PrecisionError, option_text
from ..search.query import Query
from ..search.sparse import closed_cycle_error
from ..search.strategy import state_bytes
from .tuning import SERIAL_FRONTIER

if TYPE_CHECKING:
    from ..graph import Graph

_UNRESOLVED = -1  # in place of a layer: the vertex has no predecessor yet
_SHARE = 256  # vertices of a frontier that a thread takes at a time
_CHUNK = 1 << 14  # vertices that a thread takes at a time where all are visited


class Labels(NamedTuple):
    """What the rounds of a search know of each vertex, in arrays of shape (n,), as compiled
    functions take it and change it.
    """

    keys: np.ndarray  # distances as integers in the same order (``cpu.atomics.to_ordered``)
    limit: Any  # scalar of the type of the distances: no farther vertex is reached
    # int32: the last round that queued the vertex, -1 for none, so that a round queues it once
    queued_in: np.ndarray
    # the vertex that lowered it last, NO_PREDECESSOR for none. Empty without negative weights
    parent: np.ndarray
    counter: np.ndarray  # int64 array of shape (1,): the vertices of the next queue


class Predecessors(NamedTuple):
    """Predecessors, and the final distances that they follow from, in arrays of shape (n,).

    An edge is tight if the distance of its tail plus its weight is the distance of its head.
    """

    distance: np.ndarray  # final distances, floats or int64
    unreached: Any  # the distance that stands for no path, a scalar of their type
    predecessor: np.ndarray  # output: vertex numbers, NO_PREDECESSOR for none
    layer: np.ndarray  # int32: the level of a BFS along tight edges, or ``_UNRESOLVED``
    counter: np.ndarray  # int64 array of shape (1,): the vertices of the next queue


class Run:
    """The state of a search on a CPU, and what makes distances and predecessors of it. n is the
    number of vertices.

    - ``distance``: array of shape (n,) of the type of the weights, infinite where unreached.
    - ``keys``: the same memory as integers in the order of the distances. With negative weights
      ``finish`` turns them back into floats.
    - ``limit``: scalar of the type of the distances; no farther vertex is reached.
    - ``may_overflow``: whether a sum of weights could exceed that type, so that ``finish`` looks.
    - ``predecessor``: array of shape (n,), set by ``finish``; None if no predecessors are wanted.
    - ``queue``, ``next_queue``: arrays of shape (n,). The frontier is the first ``frontier_size``
      vertices of ``queue``.
    - ``queued_in``, ``parent``: those of ``Labels``.
    - ``labels``: what compiled code takes of all these.
    """

    counted: dict[str, int] | None = None  # counters of the strategy; this one has none

    def __init__(self, graph: Graph, query: Query):
        """Allocate the state of searches of ``graph`` with the options ``query``."""
        weights: Array = graph.weights
        n = graph.n_vertices
        index = graph.targets.dtype
        real = weights.dtype
        self.graph = graph
        self.distance = np.empty(n, real)
        self.keys = self.distance.view(ordered_dtype(real))
        # With negative weights a path may lead through vertices beyond the limit: no pruning then.
        if query.limit is None or graph.has_negative_weights:
            limit = np.inf
        else:
            limit = query.limit
        self.limit = as_distance(limit, real)
        self.may_overflow = self.limit == np.inf and may_overflow(graph)
        self.predecessor = np.empty(n, index) if query.predecessors else None
        self.queue, self.next_queue = np.empty((2, n), index)
        self.queued_in = np.empty(n, np.int32)
        self.parent = np.empty(n if graph.has_negative_weights else 0, index)
        counter = np.zeros(1, np.int64)
        self.labels = Labels(self.keys, self.limit, self.queued_in, self.parent, counter)

    def start(self, source: int) -> None:
        """Begin a search from the vertex number ``source``, which alone is in the frontier."""
        self.distance.fill(np.inf)
        self.distance[source] = 0
        self.queued_in.fill(-1)
        self.parent.fill(NO_PREDECESSOR)
        self.queue[0] = source
        self.frontier_size = 1

    def finish(self, source: int) -> None:
        """Turn what the rounds left into distances, check them for overflow, and find predecessors.

        ``source`` is the vertex number that the search began at.

        Raises PrecisionError: a distance exceeds its type, or a vertex has no predecessor.
        """
        graph = self.graph
        # The keys of non-negative floats are their bits already.
        if graph.has_negative_weights:
            _decode(self.keys, self.distance)
        if self.may_overflow and count_overflows(graph, self.distance):
            raise overflow_error(graph)
        if self.predecessor is not None:  # the rounds are over, so the other arrays are free
            _find_predecessors(
                graph,
                source,
                self.distance,
                self.predecessor,
                self.queued_in,
                self.queue,
                self.next_queue,
            )


def _shares(n_frontier: int) -> int:
    """Return in how many shares of _SHARE vertices threads take a frontier of that size."""
    return -(-n_frontier // _SHARE)


def _chunks(graph) -> int:
    """Return in how many chunks of _CHUNK vertices threads take all vertices of a graph."""
    return -(-graph.n_vertices // _CHUNK)


# at most: float64 distances and predecessor, a mark; two queues, parent
memory = state_bytes(8 + 4, numbers=3)


def may_overflow(graph) -> bool:
    """Return whether a path could be longer than the largest number of the graph's float type."""
    if not graph.n_edges:
        return False
    # A shortest path has fewer edges than the graph has vertices.
    heaviest = max(abs(float(graph.weights.max())), abs(float(graph.weights.min())))
    return heaviest * graph.n_vertices >= float(np.finfo(graph.weights.dtype).max)


def count_overflows(graph, distance, run=threads.run) -> int:
    """Return the number of edges from a vertex at a finite distance to one without a finite
    distance, over which the sum is infinite. In a search without a limit there are such edges only
    if a distance overflows.

    ``distance`` has shape (n,), and ``run`` is ``threads.run``, or ``threads.run_alone`` to use the
    calling thread only.
    """
    counters = np.zeros(1, np.int64)
    run(_count_overflows, _chunks(graph), Edges.of(graph), distance, counters)
    return int(counters[0])


def point_back(graph, query: Query, sources, distance) -> np.ndarray | None:
    """Return predecessors from the distances of several searches, or None if the query wants none.

    ``sources`` are k vertex numbers, and ``distance`` their final distances, of shape
    (k, n_vertices), as are the predecessors: NO_PREDECESSOR where unreached; that of a source is
    itself.

    Raises PrecisionError: a reached vertex has no predecessor.
    """
    if not query.predecessors:
        return None
    predecessor = np.empty(distance.shape, graph.targets.dtype)
    index = graph.targets.dtype
    layer = np.empty(graph.n_vertices, np.int32)
    queues = np.empty((2, graph.n_vertices), index)
    for i, source in enumerate(np.asarray(sources).tolist()):
        _find_predecessors(graph, source, distance[i], predecessor[i], layer, *queues)
    return predecessor


def _find_predecessors(graph, source: int, distance, predecessor, layer, queue, next_queue) -> None:
    """Write to ``predecessor`` what follows from the final distances from the vertex ``source``.

    All arrays have shape (n,). ``layer`` (int32), ``queue`` and ``next_queue`` (vertex numbers) are
    scratch: they may hold anything before, and hold nothing of use afterwards. Below, an edge is
    tight if the distance of its tail plus its weight is the distance of
    its head.

    Raises PrecisionError: a reached vertex has no predecessor.
    """
    unreached = unreached_value(distance.dtype)
    counter = np.zeros(1, np.int64)
    predecessors = Predecessors(distance, unreached, predecessor, layer, counter)
    edges = Edges.of(graph)
    reached = is_reached(distance)

    # Most vertices have a tight in-neighbor that is nearer. With negative weights such predecessors
    # could form a cycle, so that only the source has one at first.
    predecessor.fill(NO_PREDECESSOR)
    predecessor[source] = source
    if graph.has_negative_weights:
        layer.fill(_UNRESOLVED)
        layer[source] = 0
        queue[0] = source
        size = 1
    else:
        threads.run(_point_to_nearer, _chunks(graph), edges, predecessors)
        size = _list_resolved(predecessors, queue)
        if size == np.count_nonzero(reached):
            return

    # All other reached vertices get a predecessor by a breadth-first search along tight edges, from
    # the vertices that have one. The tail of such an edge is found one level earlier, so there is
    # no cycle.
    depth = 0
    while size:
        depth += 1
        counter[0] = 0
        frontier = queue[:size]
        threads.run(
            _point_along_tight, _shares(size), edges, frontier, depth, predecessors, next_queue
        )
        queue, next_queue = next_queue, queue
        size = int(counter[0])
    if bool((reached & (predecessor == NO_PREDECESSOR)).any()):
        raise closed_cycle_error(distance.dtype)


def overflow_error(graph) -> PrecisionError:
    """Return the error for a distance beyond the largest float of the type of the weights."""
    if graph.weights.dtype.itemsize < 8:
        wider = option_text("weight_type", "float64")
        advice = f"build the graph with {wider}, or scale"
    else:
        advice = "scale"
    return PrecisionError(
        f"a distance exceeds the largest {graph.weights.dtype}; {advice} the weights down"
    )


def relax(run: Run, round_number: int) -> None:
    """Relax the edges of the frontier, in round ``round_number``, from 0 on. The vertices that
    improved become the frontier.
    """
    counter = run.labels.counter
    counter[0] = 0
    frontier = run.queue[: run.frontier_size]
    n_shares = _shares(run.frontier_size)

    # Threads do not pay for a small frontier.
    if run.frontier_size < SERIAL_FRONTIER:
        run_kernel = threads.run_alone
    else:
        run_kernel = threads.run
    run_kernel(
        _relax, n_shares, Edges.of(run.graph), frontier, round_number, run.labels, run.next_queue
    )
    run.queue, run.next_queue = run.next_queue, run.queue
    run.frontier_size = int(counter[0])


@njit(cache=True, nogil=True)
def _relax(next_share, n_shares, edges, frontier, round_number, labels, queue):
    """Relax the edges of ``frontier``, vertex numbers. Vertices that improved are put on ``queue``,
    each once in this round, ``round_number``.

    Each of several threads calls this function. It takes shares of _SHARE vertices of the frontier,
    of which there are ``n_shares``, by the counter ``next_share``. ``edges`` are ``Edges``, and
    ``labels`` are ``Labels``, whose counter is the number of vertices on ``queue``.
    """
    offsets = edges.offsets
    targets = edges.targets
    weights = edges.weights
    keys = labels.keys
    limit = labels.limit
    queued_in = labels.queued_in
    parent = labels.parent

    share = atomic_add(next_share, 0, 1)
    while share < n_shares:
        end = (share + 1) * _SHARE
        for i in range(share * _SHARE, end if end < frontier.size else frontier.size):
            u = frontier[i]
            distance_u = from_ordered(keys[u])
            for e in range(offsets[u], offsets[u + 1]):
                v = targets[e]
                candidate = distance_u + weights[e]
                key = to_ordered(candidate)
                # A plain comparison first, as most candidates fail it.
                if not (key < keys[v] and candidate <= limit):
                    continue
                if atomic_min(keys, v, key) <= key:  # another thread was faster
                    continue
                if parent.size:
                    # may race with another improvement of v; only the search for cycles reads it
                    parent[v] = u
                # The one thread that changes the mark queues the vertex.
                if atomic_exchange(queued_in, v, round_number) != round_number:
                    queue[atomic_add(labels.counter, 0, 1)] = v
        share = atomic_add(next_share, 0, 1)


@njit(cache=True, nogil=True)
def _decode(keys, distance):
    """Turn ``keys``, the integers that stand for distances (``cpu.atomics``), into ``distance``.

    Both arrays may be the same memory.
    """
    for v in range(keys.size):
        distance[v] = from_ordered(keys[v])


@njit(cache=True, nogil=True)
def _count_overflows(next_chunk, n_chunks, edges, distance, counters):
    """Add to ``counters[0]`` the number of edges from a finite distance over which the sum is
    infinite, to a vertex without a finite distance.

    Each of several threads calls this function. It takes chunks of _CHUNK vertices, of which there
    are ``n_chunks``, by the counter ``next_chunk``. ``edges`` are ``Edges``.
    """
    offsets = edges.offsets
    targets = edges.targets
    weights = edges.weights
    chunk = atomic_add(next_chunk, 0, 1)
    while chunk < n_chunks:
        end = (chunk + 1) * _CHUNK
        for u in range(chunk * _CHUNK, end if end < distance.size else distance.size):
            if np.isfinite(distance[u]):
                for e in range(offsets[u], offsets[u + 1]):
                    if np.isinf(distance[u] + weights[e]) and np.isinf(distance[targets[e]]):
                        atomic_add(counters, 0, 1)
        chunk = atomic_add(next_chunk, 0, 1)


@njit(cache=True, nogil=True)
def _point_to_nearer(next_chunk, n_chunks, edges, predecessors):
    """Set predecessors to the smallest tight in-neighbor that is strictly nearer, so that they form
    no cycle. Vertices without one keep what they have.

    Each of several threads calls this function. It takes chunks of _CHUNK vertices, of which there
    are ``n_chunks``, by the counter ``next_chunk``. ``edges`` are ``Edges``, and ``predecessors``
    are ``Predecessors``, with NO_PREDECESSOR everywhere but at the source.
    """
    offsets = edges.offsets
    targets = edges.targets
    weights = edges.weights
    distance = predecessors.distance
    unreached = predecessors.unreached
    predecessor = predecessors.predecessor
    chunk = atomic_add(next_chunk, 0, 1)
    while chunk < n_chunks:
        end = (chunk + 1) * _CHUNK
        for u in range(chunk * _CHUNK, end if end < distance.size else distance.size):
            d = distance[u]
            if d < unreached:
                for e in range(offsets[u], offsets[u + 1]):
                    v = targets[e]
                    # As unsigned numbers NO_PREDECESSOR, -1, is the largest.
                    if d < distance[v] < unreached and d + weights[e] == distance[v]:
                        atomic_umin(predecessor, v, u)
        chunk = atomic_add(next_chunk, 0, 1)


@njit(cache=True)
def _list_resolved(predecessors, queue):
    """Write the vertices that have a predecessor to ``queue``, ascending; return how many they are.

    They are layer 0 of a breadth-first search along tight edges, and all others are _UNRESOLVED.
    These are unreached, or only edges over which the distance does not grow lead to them. They get
    a predecessor layer by layer: those of layer n + 1 from vertices of layer n.
    """
    predecessor = predecessors.predecessor
    layer = predecessors.layer
    size = 0
    for v in range(predecessor.size):
        layer[v] = _UNRESOLVED
        if predecessor[v] != NO_PREDECESSOR:
            layer[v] = 0
            queue[size] = v
            size += 1
    return size


@njit(cache=True, nogil=True)
def _point_along_tight(next_share, n_shares, edges, frontier, depth, predecessors, next_queue):
    """Search one level of a BFS along tight edges, which gives a predecessor to vertices that have
    no nearer tight in-neighbor.

    ``frontier`` are the vertices of layer ``depth - 1``. The unresolved heads of their tight edges
    become layer ``depth``, and are written to ``next_queue``. Their predecessor is the smallest of
    these tails. Each of several threads calls this function. It takes shares of _SHARE vertices of
    the frontier, of which there are ``n_shares``, by the counter ``next_share``. ``edges`` are
    ``Edges``, and ``predecessors`` are ``Predecessors``, whose counter must be 0.
    """
    offsets = edges.offsets
    targets = edges.targets
    weights = edges.weights
    distance = predecessors.distance
    unreached = predecessors.unreached
    predecessor = predecessors.predecessor
    layer = predecessors.layer
    share = atomic_add(next_share, 0, 1)
    while share < n_shares:
        end = (share + 1) * _SHARE
        for i in range(share * _SHARE, end if end < frontier.size else frontier.size):
            u = frontier[i]
            for e in range(offsets[u], offsets[u + 1]):
                v = targets[e]
                if not (distance[v] < unreached and distance[u] + weights[e] == distance[v]):
                    continue
                # The one thread that puts v into the layer queues it.
                if (
                    layer[v] == _UNRESOLVED
                    and compare_and_swap(layer, v, _UNRESOLVED, depth) == _UNRESOLVED
                ):
                    next_queue[atomic_add(predecessors.counter, 0, 1)] = v
                if layer[v] == depth:
                    atomic_umin(predecessor, v, u)
        share = atomic_add(next_share, 0, 1)
