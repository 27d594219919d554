"""Systems for one core of a CPU: the algorithms of textbooks, which the papers for GPUs use as
baselines.

``sweeps``: Bellman-Ford's algorithm. H-BF, algorithms 1 and 2.
    There all edges are relaxed V - 1 times. Here the search ends after a sweep in which no vertex
    improved that the sweep had already passed.
``fifo``: the same with a queue of active vertices. H-BF, section 4, after Sedgewick, Wayne [30];
Table 2, "Queue-Based Seq."
    A vertex is in the queue at most once: a vertex that improves while it waits is not queued
    again. Here the queue is divided into the passes of Bellman-Ford, and negative cycles are
    searched for between them.
``heap``: Dijkstra's algorithm. H-BF, section 3, and Table 2, where it is Boost's with a relaxed
heap.
    Here a binary heap with decrease-key. Targets end the search.

All give the canonical predecessors (``cpu_steps.Run.finish``), for which all threads visit the
edges once more. Only a time without predecessors is therefore the time of one core.

``graph`` is a Graph, and ``query`` says what a search computes: predecessors or none, a limit of
the distance, targets. A run (``sssp.cpu_steps.Run``) is the state of a search: ``queue`` and
``next_queue`` of vertices, ``frontier_size``, ``labels`` with the distances, and ``queued_in``.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from ..._arrays import as_distance
from ...cpu.atomics import from_ordered, to_ordered
from ...cpu.compiled import njit
from ...cpu.edges import Edges
from ...search.strategy import Outcome, Strategy, state_bytes
from ...sssp import cpu_steps
from ...sssp.host_loop import rounds

# In ``queued_in``, which elsewhere holds the round that queued a vertex: the vertex waits, and need
# not be queued again. 0 or -1: it does not.
_WAITS = 1
_NOWHERE = -1  # the place of a vertex that is not in the heap


class SweepRun(cpu_steps.Run):
    """A search that relaxes the edges of all vertices in each round, while any distance falls."""

    def __init__(self, graph, query):
        super().__init__(graph, query)
        self.all_vertices = np.arange(graph.n_vertices, dtype=graph.targets.dtype)


def _sweep(run: SweepRun, _count: int) -> None:
    """Make one round: relax the edges of all vertices in the order of their numbers.

    The vertices that improve after the sweep has passed them are the frontier: without any, the
    search ends. ``_count``, the number of rounds before, is ignored.
    """
    run.queued_in.fill(_WAITS)  # a vertex that improves before the sweep reaches it needs no queue
    run.frontier_size = _relax_in_order(run, run.all_vertices)


def _pass(run: cpu_steps.Run, _count: int) -> None:
    """Make one round: relax the edges of the vertices that are in the queue when the round begins.
    ``_count``, the number of rounds before, is ignored: ``queued_in`` says whether a vertex waits,
    and not in which round it was queued.
    """
    run.frontier_size = _relax_in_order(run, run.queue[: run.frontier_size])
    run.queue, run.next_queue = run.next_queue, run.queue


def _relax_in_order(run: cpu_steps.Run, order) -> int:
    """Relax the edges of the vertices ``order``, one after the other; return how many vertices are
    in ``run.next_queue`` then.
    """
    return _relax(Edges.of(run.graph), order, run.labels, run.next_queue)


@njit(cache=True)
def _relax(edges, order, labels, queue):
    """Relax the edges of the vertices ``order``, one after the other. Write to ``queue`` those
    vertices that improve and do not wait yet; return their number.

    ``edges`` is the CSR with weights. ``labels`` (``cpu_steps.Labels``) has, in arrays of shape
    (n_vertices,): the distances as keys, integers in the order of distances; in ``queued_in``
    whether a vertex waits, in the queue or for the sweep to reach it; and in ``parent``, which may
    be empty, the vertex that lowered it last. No distance beyond ``labels.limit`` is stored.
    """
    offsets = edges.offsets
    targets = edges.targets
    weights = edges.weights
    keys = labels.keys
    limit = labels.limit
    waits = labels.queued_in
    parent = labels.parent
    n_queued = 0
    for i in range(order.size):
        u = order[i]
        waits[u] = 0  # it no longer waits
        distance = from_ordered(keys[u])
        if distance == np.inf:  # a sweep also takes vertices that are not reached
            continue
        for e in range(offsets[u], offsets[u + 1]):
            v = targets[e]
            candidate = distance + weights[e]
            key = to_ordered(candidate)
            if not (key < keys[v] and candidate <= limit):
                continue
            keys[v] = key
            if parent.size:
                parent[v] = u
            if waits[v] != _WAITS:
                waits[v] = _WAITS
                queue[n_queued] = v
                n_queued += 1
    return n_queued


class Heap(NamedTuple):
    """The vertices that wait, the nearest first: a binary heap in arrays of shape (n_vertices,).

    Below place i are the places 2 i + 1 and 2 i + 2, whose vertices are not nearer.
    """

    vertices: np.ndarray  # vertex numbers; the caller knows how many of them there are
    place: np.ndarray  # by vertex, its position in ``vertices``, or ``_NOWHERE``


def _plan_heap(graph, query):
    """Return ``traverse(source)``, a search by Dijkstra's algorithm.

    The arrays of a run that serve other strategies as queues and marks are used as the heap and as
    the flags of targets.
    """
    run = cpu_steps.Run(graph, query)
    limit = as_distance(query.limit, graph.weights.dtype)
    edges = Edges.of(graph)
    n_target_vertices = 0
    if query.targets is not None:
        n_target_vertices = query.targets.size

    def traverse(source: int) -> Outcome:
        """Search from the vertex number ``source``. Return its ``Outcome``: distances, predecessors
        if they are wanted, and as rounds the number of settled vertices. The arrays are valid until
        the next call.

        If the targets stop the search, the limit of the outcome is the distance up to which all
        vertices are settled; otherwise it is that of the query.
        """
        distance = run.distance
        heap = Heap(run.queue, run.next_queue)
        is_target = run.queued_in
        distance.fill(np.inf)
        heap.place.fill(_NOWHERE)
        is_target.fill(0)
        if n_target_vertices:
            is_target[query.targets] = 1
        n_settled, stop = _dijkstra(
            edges, source, limit, n_target_vertices, distance, heap, is_target
        )
        reached_limit = query.limit
        # All targets are settled: distances up to ``stop`` are final, and larger ones may not be.
        if stop < np.inf:
            distance[distance > stop] = np.inf
            reached_limit = float(stop)
        run.finish(source)
        return Outcome(distance, run.predecessor, reached_limit, n_settled)

    return traverse


@njit(cache=True)
def _dijkstra(edges, source, limit, n_target_vertices, distance, waiting, is_target):
    """Search from the vertex ``source``. Return the number of settled vertices, and the distance up
    to which the result is complete, infinite if it is complete everywhere.

    ``edges`` is the CSR with weights. No distance beyond ``limit`` is stored. The search ends once
    ``n_target_vertices`` vertices with a 1 in ``is_target`` are settled; 0 stands for no targets.
    ``distance`` is infinite everywhere, and ``waiting``, a ``Heap``, is empty: its ``place`` has
    ``_NOWHERE`` everywhere, and ``vertices`` may hold anything.
    """
    offsets = edges.offsets
    targets = edges.targets
    weights = edges.weights
    heap = waiting.vertices
    place = waiting.place
    stop = distance[source]  # infinite, in the type of distances
    distance[source] = 0
    heap[0] = source
    place[source] = 0
    size = 1
    n_settled = 0
    while size:
        # The nearest vertex is settled. The last vertex of the heap takes its place, and sinks.
        u = heap[0]
        settled = distance[u]
        if settled > stop:
            break
        size -= 1
        if size:
            _sink(heap, place, distance, size, heap[size])
        n_settled += 1
        if is_target[u]:
            n_target_vertices -= 1
            if n_target_vertices == 0:
                stop = settled  # other vertices may have the same distance
        for e in range(offsets[u], offsets[u + 1]):
            v = targets[e]
            candidate = settled + weights[e]
            if candidate < distance[v] and candidate <= limit:
                distance[v] = candidate
                if place[v] == _NOWHERE:
                    place[v] = size
                    size += 1
                _rise(heap, place, distance, v)
    return n_settled, stop


@njit
def _rise(heap, place, distance, v):
    """Move vertex ``v`` from its place in the heap upwards, while the one above it is farther."""
    i = place[v]
    while i > 0:
        above = (i - 1) // 2
        if distance[heap[above]] <= distance[v]:
            break
        heap[i] = heap[above]
        place[heap[i]] = i
        i = above
    heap[i] = v
    place[v] = i


@njit
def _sink(heap, place, distance, size, v):
    """Put vertex ``v`` at the top of a heap of ``size`` vertices, in place of the one there, and
    move it towards the end while a vertex below is nearer.
    """
    i = 0
    while 2 * i + 1 < size:
        below = 2 * i + 1
        if below + 1 < size and distance[heap[below + 1]] < distance[heap[below]]:
            below += 1
        if distance[heap[below]] >= distance[v]:
            break
        heap[i] = heap[below]
        place[heap[i]] = i
        i = below
    heap[i] = v
    place[v] = i


_on_cpu = partial(Strategy, device="cpu", memory=cpu_steps.memory, needs=frozenset({"weights"}))
STRATEGIES = (
    _on_cpu(
        name="sweeps",
        aliases=("bellman_ford",),
        plan=rounds(SweepRun, _sweep),
        memory=state_bytes(numbers=1, beside=cpu_steps.memory),
        paper="Bellman 1958, Ford 1956; Busato, Bombieri 2015, algorithm 1",
        rationale="relax every edge again and again until nothing falls",
        complexity="O(V E)",
    ),
    _on_cpu(
        name="fifo",
        aliases=("bellman_ford_queue",),
        plan=rounds(cpu_steps.Run, _pass),
        paper="Sedgewick, Wayne 2011; Busato, Bombieri 2015, section 4",
        rationale="only a vertex that fell has anything new to offer",
        complexity="O(V E)",
    ),
    _on_cpu(
        name="heap",
        aliases=("dijkstra",),
        plan=_plan_heap,
        needs=frozenset({"weights", "non_negative"}),
        paper="Dijkstra 1959; Cormen, Leiserson, Rivest, Stein, section 24.3",
        rationale="the nearest vertex first: every edge is relaxed once, one after the other",
        complexity="O(E log V)",
    ),
)
