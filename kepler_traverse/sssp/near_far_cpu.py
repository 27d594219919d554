"""Near-far on the CPU: settle what lies below a threshold before touching what lies above, all in compiled code.

Davidson, Baxter, Garland, Owens. Work-efficient parallel GPU methods for single-source shortest paths. IPDPS 2014, section
3.3. Against a heap it spares sorting: a vertex is lowered at once, and again if a shorter path turns up before the threshold
has passed it. One thread relaxes a small near pile without an atomic; all threads share a large one.
"""

from __future__ import annotations

import numba
import numpy as np
from numba import njit, prange

from .._arrays import as_distance
from ..cpu.atomics import atomic_add, atomic_exchange, atomic_min, from_ordered, to_ordered
from ..strategy import Outcome
from . import cpu_steps
from .tuning import EDGES_PER_PILE, SHARED_NEAR

NEVER = np.iinfo(np.int64).max  # vertices from which on threads share a pile that one thread is to relax alone
_RELAXED = -1  # in place of the round that a vertex was queued in
_SHARE = 128  # vertices of the near pile that a thread takes at a time
_HELD = 1024  # vertices that a thread collects before it takes places for them


def plan(graph, query):
    """Return ``traverse(source)``."""
    run = cpu_steps.Run(graph, query)
    n, kind = graph.n_vertices, graph.weights.dtype
    piles, is_far = np.empty((3, n), graph.targets.dtype), np.empty(n, np.uint8)
    run.queue, run.next_queue = piles[:2]  # which predecessors need only afterwards
    limit = as_distance(np.inf if query.limit is None else query.limit, kind)
    targets = np.empty(0, np.int64) if query.targets is None else query.targets
    width = pile_width(graph)

    def traverse(source: int) -> Outcome:
        edges = (graph.offsets, graph.targets, graph.weights)
        with numba.parallel_chunksize(1):  # threads take shares of a large pile as they become free
            rounds, stop = search(
                *edges, source, limit, targets, width, SHARED_NEAR, piles, run.queued_in, is_far, run.keys, run.distance
            )
        run.finish(source)
        return Outcome(run.distance, run.predecessor, query.limit if np.isinf(stop) else float(stop), rounds)

    return traverse


def memory(n_vertices: int, n_edges: int, predecessors: bool) -> int:
    """Bytes of a run at most: a third pile and a second mark beside the state of any CPU traversal."""
    index = 4 if n_vertices < 2**31 else 8
    return n_vertices * (index + 1) + cpu_steps.memory(n_vertices, n_edges, predecessors)


def pile_width(graph):
    """Width of a pile: the mean weight divided by how many edges of a vertex it should hold on average."""
    mean = float(graph.weights.mean(dtype=np.float64)) if graph.n_edges else 0.0
    return as_distance(EDGES_PER_PILE * mean * graph.n_vertices / max(graph.n_edges, 1), graph.weights.dtype)


@njit(cache=True)
def search(
    offsets, targets, weights, source, limit, target_vertices, width, shared_from, piles, queued_in, is_far, keys, distance
):
    """Search from one source; return the rounds it took and up to where it is complete, infinity for everywhere.

    Near piles of ``shared_from`` vertices or more are relaxed by all threads, for which ``keys`` are the same distances as
    integers.
    """
    infinity = distance.dtype.type(np.inf)
    near, lowered, far = piles[0], piles[1], piles[2]
    distance[:] = infinity
    queued_in[:] = _RELAXED
    is_far[:] = 0
    distance[source] = 0
    near[0] = source
    sizes = np.zeros(2, np.int64)  # of what was lowered below the threshold, and of the far pile
    n_near, rounds = 1, 1
    queued_in[source] = 0
    threshold = max(width, np.nextafter(distance[source], infinity))
    while True:
        while n_near:
            sizes[0] = 0
            pile = near[:n_near]
            state = (queued_in, is_far, lowered, far, sizes)
            if n_near < shared_from:
                _relax(offsets, targets, weights, pile, limit, threshold, rounds, distance, *state)
            else:
                _relax_shared(offsets, targets, weights, pile, limit, threshold, rounds, keys, *state)
            near, lowered = lowered, near
            n_near = sizes[0]
            rounds += 1
        if target_vertices.size:
            farthest = distance[target_vertices].max()
            if farthest < threshold:
                for v in range(distance.size):
                    if distance[v] > farthest:
                        distance[v] = infinity
                return rounds - 1, farthest
        nearest = _drop_settled(far, distance, is_far, threshold, sizes)
        if sizes[1] == 0:
            return rounds - 1, infinity
        # Where the width vanishes beside the distance, the nearest vertices alone make the next pile: there is always
        # progress, whatever the weights.
        threshold = max(nearest + width, np.nextafter(nearest, infinity))
        n_near = _split(far, distance, is_far, queued_in, rounds - 1, threshold, near, sizes)


@njit(cache=True)
def _relax(offsets, targets, weights, near, limit, threshold, count, distance, queued_in, is_far, lowered, far, sizes):
    """Relax the edges of the near pile; what falls below the threshold is lowered, all else goes onto the far pile."""
    n_lowered, n_far = sizes
    for i in range(near.size):
        u = near[i]
        queued_in[u] = _RELAXED
        here = distance[u]
        for e in range(offsets[u], offsets[u + 1]):
            v = targets[e]
            through = here + weights[e]
            if not (through < distance[v] and through <= limit):
                continue
            distance[v] = through
            if through < threshold or threshold == np.inf:
                if queued_in[v] < count - 1:  # else it is in this pile and yet to come, or in the next one already
                    queued_in[v] = count
                    lowered[n_lowered] = v
                    n_lowered += 1
            elif not is_far[v]:
                is_far[v] = 1
                far[n_far] = v
                n_far += 1
    sizes[0], sizes[1] = n_lowered, n_far


@njit(parallel=True, cache=True)
def _relax_shared(offsets, targets, weights, near, limit, threshold, count, keys, queued_in, is_far, lowered, far, sizes):
    """The same by all threads, with distances as integers (``cpu_steps.atomics``), so that lowering one is an atomic
    minimum."""
    for share in prange((near.size + _SHARE - 1) // _SHARE):
        held, held_far = np.empty(_HELD, near.dtype), np.empty(_HELD, near.dtype)
        n_held = n_far = 0
        for i in range(share * _SHARE, min(near.size, (share + 1) * _SHARE)):
            u = near[i]
            here = from_ordered(keys[u])
            for e in range(offsets[u], offsets[u + 1]):
                v = targets[e]
                through = here + weights[e]
                key = to_ordered(through)
                if not (key < keys[v] and through <= limit) or atomic_min(keys, v, key) <= key:
                    continue
                if through < threshold or threshold == np.inf:
                    if atomic_exchange(queued_in, v, count) != count:
                        held[n_held] = v
                        n_held += 1
                        if n_held == _HELD:
                            n_held = _append(held, n_held, lowered, sizes, 0)
                elif atomic_exchange(is_far, v, 1) == 0:
                    held_far[n_far] = v
                    n_far += 1
                    if n_far == _HELD:
                        n_far = _append(held_far, n_far, far, sizes, 1)
        _append(held, n_held, lowered, sizes, 0)
        _append(held_far, n_far, far, sizes, 1)


@njit(cache=True)
def _append(held, n_held, pile, sizes, which):
    if n_held:
        at = atomic_add(sizes, which, n_held)
        pile[at : at + n_held] = held[:n_held]
    return 0


@njit(cache=True)
def _drop_settled(far, distance, is_far, threshold, sizes):
    """Keep what is still to come of the far pile; return the smallest distance among it."""
    nearest = distance.dtype.type(np.inf)
    kept = 0
    for i in range(sizes[1]):
        v = far[i]
        if distance[v] < threshold:
            is_far[v] = 0
            continue
        far[kept] = v
        kept += 1
        nearest = min(nearest, distance[v])
    sizes[1] = kept
    return nearest


@njit(cache=True)
def _split(far, distance, is_far, queued_in, count, threshold, near, sizes):
    """Move what lies below the threshold from the far pile to the near one; return how much that is."""
    n_near = kept = 0
    for i in range(sizes[1]):
        v = far[i]
        if distance[v] < threshold or threshold == np.inf:
            is_far[v] = 0
            queued_in[v] = count
            near[n_near] = v
            n_near += 1
        else:
            far[kept] = v
            kept += 1
    sizes[1] = kept
    return n_near
