"""Near-far on the CPU: settle what lies below a threshold before touching what lies above, all in
compiled code.

Davidson, Baxter, Garland, Owens. Work-efficient parallel GPU methods for single-source shortest
paths. IPDPS 2014, section 3.3. Against a heap it spares sorting: a vertex is lowered at once, and
again if a shorter path turns up before the threshold has passed it. One thread relaxes a small near
pile without an atomic; all threads share a large one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._arrays import as_distance, compute_mean
from ..cpu import threads
from ..cpu.atomics import atomic_add, atomic_exchange, atomic_min, from_ordered, to_ordered
from ..cpu.compiled import njit
from ..cpu.edges import Edges
from ..search.strategy import Outcome, state_bytes
from . import cpu_steps
from .tuning import EDGES_PER_PILE, SHARED_NEAR

# ``shared_from`` of a search that one thread is to make alone: no near pile has as many vertices
NEVER = np.iinfo(np.int64).max
_RELAXED = -1  # in place of the round that a vertex was queued in
_SHARE = 128  # vertices of the near pile that a thread takes at a time
_BUFFER_SIZE = 1024  # vertices that a thread collects before it takes places for them
_CONTINUE = -1  # in place of a source: go on with the search that was left
# Elements of a small array that one thread writes to: so many that no other thread's array lies in
# the same line of the cache.
_PADDED = 16
# Indices into ``State.sizes``: vertices that a shared round has put on the next near pile, and that
# are on the far pile and on the near pile; the number of the round; and which of ``State.piles`` is
# the near one, 0 or 1.
_LOWERED, _FAR, _NEAR, _ROUNDS, _SWAPPED = range(5)


class State(NamedTuple):
    """The state of a search, which ``search`` keeps when it leaves a large pile to several threads.

    n is the number of vertices. A vertex below the threshold is near, any other one is far.
    """

    # array of shape (3, n) of vertices: two near piles, of which each round reads one and writes
    # the other, and the far pile
    piles: np.ndarray
    # int32 array of shape (n,): the round that last put a vertex on a near pile. _RELAXED: it has
    # been relaxed since
    queued_in: np.ndarray
    is_far: np.ndarray  # uint8 array of shape (n,): 1 where the vertex is on the far pile
    distance: np.ndarray  # float array of shape (n,), infinite where unreached
    # int64 array of shape (_PADDED,): sizes of the piles, rounds begun, and which of two piles is
    # the near one, at the indices _LOWERED, ..., _SWAPPED
    sizes: np.ndarray
    # array of shape (_PADDED,) of the type of distances: at 0 the threshold; at 1 the distance up
    # to which the result is complete, infinite for everywhere
    bounds: np.ndarray


def plan(graph, query):
    """Allocate the state of a search; return ``traverse(source)``, which uses it each time.

    ``graph`` is a ``Graph`` with non-negative weights, and ``query`` a ``Query``.
    """
    run = cpu_steps.Run(graph, query)
    n = graph.n_vertices
    dtype = graph.weights.dtype
    piles = np.empty((3, n), graph.targets.dtype)
    is_far = np.empty(n, np.uint8)
    # Predecessors are found after the search, so their queues may take the memory of its piles.
    run.queue, run.next_queue = piles[:2]
    limit = as_distance(query.limit, dtype)  # infinite without one
    targets = query.shared_targets  # target vertices, an empty array without any
    edges = Edges.of(graph)
    width = pile_width(graph)
    sizes, bounds = new_state(dtype)

    def traverse(source: int) -> Outcome:
        """Search from the vertex number ``source``. Return its ``Outcome``: distances, predecessors
        if they are wanted, and the number of rounds. The arrays are valid until the next call.

        The limit of the outcome is the distance at which the targets stopped the search, or else
        that of the query.
        """
        state = State(piles, run.queued_in, is_far, run.distance, sizes, bounds)
        # One thread alone never hands a pile over.
        shared_from = SHARED_NEAR if threads.count() > 1 else NEVER
        search(edges, source, limit, targets, width, shared_from, state)
        while sizes[_NEAR]:  # ``search`` left a pile that is worth the start of other threads
            # One round by all threads. Then ``search`` goes on from the pile that they have filled.
            sizes[_LOWERED] = 0
            n_shares = -(-int(sizes[_NEAR]) // _SHARE)
            threads.run(_relax_shared, n_shares, edges, limit, run.keys, state)
            sizes[_NEAR] = sizes[_LOWERED]
            sizes[_SWAPPED] = 1 - sizes[_SWAPPED]
            sizes[_ROUNDS] += 1
            search(edges, _CONTINUE, limit, targets, width, shared_from, state)

        run.finish(source)  # checks for overflow, and finds predecessors if they are wanted
        # Without a stop at targets ``bounds[1]``, up to where the result is complete, is infinite.
        # Then the limit of the query is the bound.
        complete_to = bounds[1]
        if np.isinf(complete_to):
            limit_of_result = query.limit
        else:
            limit_of_result = float(complete_to)
        return Outcome(run.distance, run.predecessor, limit_of_result, count_rounds(sizes))

    return traverse


def new_state(dtype) -> tuple[np.ndarray, np.ndarray]:
    """Allocate ``sizes`` and ``bounds`` of a ``State``; ``dtype`` is the type of the distances."""
    return np.zeros(_PADDED, np.int64), np.zeros(_PADDED, dtype)


def count_rounds(sizes) -> int:
    """Return the number of rounds that a finished search took, from ``sizes`` of its ``State``."""
    return int(sizes[_ROUNDS]) - 1  # they are numbered from 1


# at most: a third pile and a second mark
memory = state_bytes(1, numbers=1, beside=cpu_steps.memory)


def pile_width(graph):
    """Return the width of a pile, the difference of two thresholds, in the type of the weights.

    It is EDGES_PER_PILE mean weights, divided by the mean degree. So vertices have about as many
    edges that are shorter in every graph, and the work of a pile does not depend on the degrees.
    """
    mean = compute_mean(graph.weights)
    return as_distance(
        EDGES_PER_PILE * mean * graph.n_vertices / max(graph.n_edges, 1), graph.weights.dtype
    )


@njit(cache=True, nogil=True)
def search(edges, source, limit, target_vertices, width, shared_from, state):
    """Search from the vertex ``source``, or continue with ``_CONTINUE`` in its place, until all is
    done or the near pile has ``shared_from`` vertices or more.

    ``edges`` are ``Edges``, and ``state`` is a ``State``. No path longer than ``limit`` is
    followed. The search ends early once all ``target_vertices``, unless there are none, have final
    distances. ``width`` is the difference of two thresholds.

    The near pile of a finished search is empty: ``state.sizes[_NEAR]`` is 0. Its result is complete
    up to ``state.bounds[1]``, infinity for everywhere.
    """
    if source != _CONTINUE:
        _begin(source, width, state)
    # The rounds are no function of their own: one that unpacked the arrays from tuples in each
    # round made searches 1.2 to 3.7 times as long, since references are counted.
    offsets = edges.offsets
    targets = edges.targets
    weights = edges.weights
    piles = state.piles
    queued_in = state.queued_in
    is_far = state.is_far
    distance = state.distance
    sizes = state.sizes
    bounds = state.bounds

    # Each round reads ``near``, and writes to ``lowered`` the vertices that it lowers below the
    # threshold.
    infinity = distance.dtype.type(np.inf)
    near = piles[sizes[_SWAPPED]]
    lowered = piles[1 - sizes[_SWAPPED]]
    far = piles[2]
    threshold = bounds[0]
    n_near = sizes[_NEAR]
    n_settled = 0  # of the targets, as many from the first on have final distances
    while True:
        while n_near:
            # A pile for several threads: leave what they and the next call need.
            if n_near >= shared_from:
                bounds[0] = threshold
                sizes[_NEAR] = n_near
                return

            # Relax the edges of the near pile: what falls below the threshold makes the next one,
            # all else goes onto the far pile.
            round_number = sizes[_ROUNDS]
            n_lowered = 0
            n_far = sizes[_FAR]
            for i in range(n_near):
                u = near[i]
                queued_in[u] = _RELAXED
                distance_u = distance[u]
                for e in range(offsets[u], offsets[u + 1]):
                    v = targets[e]
                    candidate = distance_u + weights[e]
                    if not (candidate < distance[v] and candidate <= limit):
                        continue
                    distance[v] = candidate
                    # With an infinite threshold all is near, an infinite distance included.
                    if candidate < threshold or threshold == np.inf:
                        # The round before this one has filled ``near``. A vertex that was queued in
                        # it or later is in this pile and yet to come, or in the next one already.
                        if queued_in[v] < round_number - 1:
                            queued_in[v] = round_number
                            lowered[n_lowered] = v
                            n_lowered += 1
                    elif not is_far[v]:
                        is_far[v] = 1
                        far[n_far] = v
                        n_far += 1
            sizes[_FAR] = n_far
            near, lowered = lowered, near
            n_near = n_lowered
            sizes[_SWAPPED] = 1 - sizes[_SWAPPED]
            sizes[_ROUNDS] += 1
        sizes[_NEAR] = 0

        # The near pile is empty, so all distances below the threshold are final: so may be those of
        # all targets.
        if target_vertices.size:
            while (
                n_settled < target_vertices.size
                and distance[target_vertices[n_settled]] < threshold
            ):
                n_settled += 1
            if n_settled == target_vertices.size:
                bounds[1] = _cut_at_farthest(target_vertices, distance)
                return

        # The next threshold follows from the nearest vertex of the far pile, if there is one.
        nearest = _drop_settled(far, distance, is_far, threshold, sizes)
        if sizes[_FAR] == 0:
            return
        # Where the width vanishes beside the distance, the nearest vertices alone make the next
        # pile: there is always progress, whatever the weights.
        smallest = np.nextafter(nearest, infinity)
        if nearest + width > smallest:
            threshold = nearest + width
        else:
            threshold = smallest
        n_near = _split(far, distance, is_far, queued_in, threshold, near, sizes)


@njit(cache=True, nogil=True)
def _begin(source, width, state):
    """Reset ``state``, put the vertex ``source`` alone onto the near pile, and set the first
    threshold, which is ``width``.
    """
    distance = state.distance
    sizes = state.sizes
    infinity = distance.dtype.type(np.inf)
    for v in range(distance.size):
        distance[v] = infinity
        state.queued_in[v] = _RELAXED
        state.is_far[v] = 0
    distance[source] = 0
    state.piles[0, 0] = source
    state.queued_in[source] = 0
    sizes[_FAR] = 0
    sizes[_NEAR] = 1
    sizes[_ROUNDS] = 1
    sizes[_SWAPPED] = 0
    # Above 0 also if the width is 0, so that the source is below it.
    state.bounds[0] = max(width, np.nextafter(distance[source], infinity))
    state.bounds[1] = infinity


@njit(cache=True, nogil=True)
def _cut_at_farthest(target_vertices, distance):
    """Return the distance of the farthest target, and set all larger distances to infinite, as they
    may not be final.
    """
    farthest = distance[target_vertices[0]]
    for target in target_vertices:
        farthest = max(farthest, distance[target])
    for v in range(distance.size):
        if distance[v] > farthest:
            distance[v] = np.inf
    return farthest


@njit(inline="always")
def _drop_settled(far, distance, is_far, threshold, sizes):
    """Drop the vertices of the far pile that are nearer than the threshold: a shorter path was
    found since, and they were settled. Return the smallest distance of those that stay, infinite
    without one.

    ``far`` is the far pile, whose size ``sizes[_FAR]`` is updated, as is ``is_far``.
    """
    nearest = distance.dtype.type(np.inf)
    n_kept = 0
    for i in range(sizes[_FAR]):
        v = far[i]
        if distance[v] < threshold:
            is_far[v] = 0
            continue
        far[n_kept] = v
        n_kept += 1
        nearest = distance[v] if distance[v] < nearest else nearest
    sizes[_FAR] = n_kept
    return nearest


@njit(inline="always")
def _split(far, distance, is_far, queued_in, threshold, near, sizes):
    """Move the vertices below the threshold from the far pile ``far`` to the near pile ``near``,
    which is empty. Return how many they are.

    ``is_far``, ``queued_in`` and ``sizes[_FAR]`` are updated.
    """
    # The moved vertices count as queued by the last round, as all vertices of a near pile do.
    last_round = sizes[_ROUNDS] - 1
    n_near = n_kept = 0
    for i in range(sizes[_FAR]):
        v = far[i]
        if distance[v] < threshold or threshold == np.inf:
            is_far[v] = 0
            queued_in[v] = last_round
            near[n_near] = v
            n_near += 1
        else:
            far[n_kept] = v
            n_kept += 1
    sizes[_FAR] = n_kept
    return n_near


@njit(cache=True, nogil=True)
def _relax_shared(next_share, n_shares, edges, limit, keys, state):
    """Relax the edges of the near pile, by several threads: a round of ``search``.

    Each thread calls this function. It takes shares of _SHARE vertices of the pile, of which there
    are ``n_shares``, by the counter ``next_share``. ``keys`` are the distances as integers of the
    same order (``cpu.atomics``), which an atomic minimum lowers. Vertices that improve are put on
    the next near pile, and counted in ``state.sizes[_LOWERED]``, or on the far pile.
    """
    offsets = edges.offsets
    targets = edges.targets
    weights = edges.weights
    queued_in = state.queued_in
    is_far = state.is_far
    sizes = state.sizes
    near = state.piles[sizes[_SWAPPED]][: sizes[_NEAR]]
    lowered = state.piles[1 - sizes[_SWAPPED]]
    far = state.piles[2]
    threshold = state.bounds[0]
    round_number = sizes[_ROUNDS]
    buffer = np.empty(_BUFFER_SIZE, near.dtype)
    far_buffer = np.empty(_BUFFER_SIZE, near.dtype)

    # Each thread collects vertices, and takes places for many at a time.
    n_buffered = n_far_buffered = 0
    share = atomic_add(next_share, 0, 1)
    while share < n_shares:
        end = (share + 1) * _SHARE
        for i in range(share * _SHARE, end if end < near.size else near.size):
            u = near[i]
            distance_u = from_ordered(keys[u])
            for e in range(offsets[u], offsets[u + 1]):
                v = targets[e]
                candidate = distance_u + weights[e]
                key = to_ordered(candidate)
                # A plain comparison first, as most candidates fail it. Another thread may have
                # lowered v since: then the atomic minimum returns a key that is as small.
                if not (key < keys[v] and candidate <= limit) or atomic_min(keys, v, key) <= key:
                    continue
                # The one thread that changes the mark of a vertex puts it on the pile.
                if candidate < threshold or threshold == np.inf:
                    if atomic_exchange(queued_in, v, round_number) != round_number:
                        if n_buffered == _BUFFER_SIZE:
                            n_buffered = _append(buffer, n_buffered, lowered, sizes, _LOWERED)
                        buffer[n_buffered] = v
                        n_buffered += 1
                elif atomic_exchange(is_far, v, 1) == 0:
                    if n_far_buffered == _BUFFER_SIZE:
                        n_far_buffered = _append(far_buffer, n_far_buffered, far, sizes, _FAR)
                    far_buffer[n_far_buffered] = v
                    n_far_buffered += 1
        share = atomic_add(next_share, 0, 1)
    _append(buffer, n_buffered, lowered, sizes, _LOWERED)
    _append(far_buffer, n_far_buffered, far, sizes, _FAR)


@njit
def _append(buffer, n_buffered, pile, sizes, pile_size):
    """Copy the first ``n_buffered`` vertices of a buffer to the end of a pile, whose size is
    ``sizes[pile_size]``. Return the new number of vertices in the buffer, 0.

    Several threads append to one pile: an atomic addition to its size gives each its own places.
    """
    begin = atomic_add(sizes, pile_size, n_buffered)
    for i in range(n_buffered):
        pile[begin + i] = buffer[i]
    return 0
