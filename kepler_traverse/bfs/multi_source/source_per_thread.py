"""Multi-source BFS on the CPU with one source per core, each with a queue of its own.

The search of the textbook (Cormen, Leiserson, Rivest, Stein, section 22.2) per source. Where levels
are many and small, sources cannot share a pass over edges, and no barrier is needed. A core takes
the next source when it has finished one.
"""

from __future__ import annotations

import numpy as np

from ..._arrays import MAX_HOP_COUNT, UNREACHED, hops_dtype
from ...cpu import threads
from ...cpu.compiled import njit
from ...cpu.edges import Neighbors
from ...search.strategy import MultiSourceOutcome, per_core, sources_per_worker
from .. import cpu_steps

SOURCES_PER_CORE = 16  # of a group, so that cores end at about the same time
group_size = per_core(SOURCES_PER_CORE)
# In place of a number of levels: the search outgrew the type of its distances. In place of the
# level at which it was stopped: it was not stopped.
_NOT_YET = -1


def memory(shape, query, group: int) -> int:
    """Return the bytes of a run: distances per source or per core, and a queue per core.

    ``shape`` is a ``Shape`` (size and depth of the graph), ``query`` a ``Query``, and ``group`` the
    number of sources that are searched together.
    """
    rows = group if query.output == "all" else threads.count()
    if query.output == "counts":
        counts = 8 * group * shape.depth
    else:
        counts = 0
    row_bytes = rows * hops_dtype(shape.depth).itemsize
    return shape.n_vertices * (row_bytes + shape.index * threads.count()) + counts


def terms(shape, n_sources: int, group: int, machine) -> dict[str, float]:  # noqa: ARG001
    """Return how much work one core has, by terms of the cost model: it visits what its sources
    reach; beyond the cache an edge is a cache miss.

    The model (``auto.costs``) multiplies each amount by fitted nanoseconds per unit. ``shape`` is a
    ``Shape`` (size and depth of the graph), and ``machine`` a ``Machine`` (cores and speeds).
    ``group`` is ignored: each search takes as long in a group of any size.
    """
    per_worker = sources_per_worker(n_sources, machine.cores)
    # ``walked`` is the share of the edges that a search visits, and ``reach`` below that of the
    # vertices; ``scatter`` is the share of the edges whose two ends have numbers far apart.
    edges = per_worker * shape.n_edges * shape.walked
    return {
        "start": per_worker,  # searches
        "clear": per_worker * shape.n_vertices,  # distances that are set to unreached
        # vertices that are reached, and edges that are visited
        "vertex": per_worker * shape.n_vertices * shape.reach,
        "edge": edges,
        # loads that miss the cache of a core, and that come from memory; distances have two bytes
        "miss": edges * shape.scatter * machine.share_of_misses(2 * shape.n_vertices),
        "fetch": per_worker * shape.fetches(machine, 2),
    }


def plan(graph, query, _group: int):
    """Allocate a queue per thread; return ``traverse(source_vertices, lists=None)`` for several
    vertex numbers.

    ``graph`` is a ``Graph``, and ``query`` a ``Query``, the options of the search. ``_group``, the
    most sources of a call, is ignored: each call allocates its own results.
    """
    n = graph.n_vertices
    # For as many threads as there may ever be: the caller's number of them may change. Memory that
    # is never touched costs nothing. ``_search`` needs space for one vertex more.
    queues = np.empty((threads.max_threads(), n + 1), graph.targets.dtype)
    if query.limit is None:
        limit = MAX_HOP_COUNT
    else:
        limit = query.limit
    shared_targets = query.shared_targets
    edges = Neighbors.of(graph)
    dtype = hops_dtype(0)  # of distances: the narrowest at first; ``traverse`` widens it

    def search_all(sources, lists, levels, stops) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Search from each source, once, with distances of type ``dtype``.

        ``sources`` are int64 vertex numbers of shape (k,), and ``lists`` the targets of each, or
        None if all have those of the query. ``levels`` and ``stops``, int64 of shape (k,), receive
        the number of levels of each search and the level at which it was stopped; for both _NOT_YET
        has a meaning.

        Return the distances, those at the targets, and the number of vertices per source and level.
        What the query does not ask for is empty, or scratch of the threads.
        """
        source_numbers = sources.tolist()
        k = sources.size
        keeps_all = query.output == "all"
        keeps_targets = query.output == "targets"
        # Where distances are not wanted, each thread has one array for all its searches.
        n_rows = k if keeps_all else queues.shape[0]
        distance = np.empty((n_rows, n), dtype)
        if lists is None:
            at_targets = np.empty((k, shared_targets.size if keeps_targets else 0), dtype)
        else:
            at_targets = np.empty(lists.vertices.size if keeps_targets else 0, dtype)
        n_levels = 0
        if query.output == "counts":
            n_levels = min(np.iinfo(dtype).max, n) + 1
        counts = np.zeros((k, n_levels), np.int64)

        def search_one(i: int, thread: int) -> None:
            """Search from the i-th source, on the thread of number ``thread``."""
            row = distance[i if keeps_all else thread]
            if lists is None:
                targets = shared_targets
                answers = at_targets[i]
            else:
                targets = lists.of(i)
                answers = at_targets[lists.offsets[i] : lists.offsets[i + 1]]
            levels[i], stops[i] = _search(
                edges, source_numbers[i], limit, targets, queues[thread], row, counts[i]
            )
            if keeps_targets:
                answers[:] = row[targets]

        threads.for_each(search_one, k)
        return distance, at_targets, counts

    def traverse(sources, lists=None) -> MultiSourceOutcome:
        """Search from the vertex numbers ``sources``. Return the outcome: a row per source of what
        ``query.output`` asks for, counts or distances, and predecessors if they are wanted.

        If a search is deeper than the type of the distances can tell, all are repeated with a wider
        type. ``lists`` (``TargetLists``) are the targets of each source, if each has its own, else
        None. If the query outputs distances at targets, those at the lists are one array, list
        after list.
        """
        nonlocal dtype
        sources = np.asarray(sources, np.int64)
        levels, stops = np.empty((2, sources.size), np.int64)
        while True:
            distance, at_targets, counts = search_all(sources, lists, levels, stops)
            if not (levels == _NOT_YET).any():
                break
            dtype = hops_dtype(np.iinfo(dtype).max + 1)  # kept, as the next group will need it too

        limits = [query.limit if stop == _NOT_YET else stop for stop in stops.tolist()]
        predecessor = cpu_steps.point_back(graph, query, sources, distance)
        rounds = levels.tolist()
        if query.output == "counts":
            deepest_level = int(np.flatnonzero(counts.any(axis=0)).max(initial=0))
            return MultiSourceOutcome(
                None, predecessor, limits, rounds, counts[:, : deepest_level + 1]
            )
        # ``distance`` is the scratch of threads unless all distances are wanted.
        result = distance if query.output == "all" else at_targets
        # A search that ran out of vertices has searched one level more, which was empty. An earlier
        # group may have needed a wider type.
        depth = int((levels - (stops == _NOT_YET)).max(initial=0))
        result = result.astype(hops_dtype(depth), copy=False)
        return MultiSourceOutcome(result, predecessor, limits, rounds)

    return traverse


@njit(cache=True, nogil=True)
def _search(edges, source, limit, target_vertices, queue, distance, counts):
    """Search from the vertex ``source``. Return the number of levels that were searched, and the
    level at which the search was stopped; in place of this level _NOT_YET if it was not stopped.

    Both are _NOT_YET if there is a vertex beyond the last level that the type of the distances
    holds. The search stops at level ``limit``, or once all ``target_vertices``, unless there are
    none, are reached.

    ``edges`` are ``Neighbors``. ``distance``, a signed integer array of shape (n,), becomes the hop
    counts, -1 where unreached. ``counts``, unless it is empty, becomes the number of vertices at
    each level; it must be 0 before. ``queue`` is scratch with space for all vertices and one more:
    a neighbor that is not new is written behind its end.
    """
    offsets = edges.offsets
    targets = edges.targets
    deepest = np.iinfo(distance.dtype).max
    for v in range(distance.size):
        distance[v] = UNREACHED
    distance[source] = 0
    queue[0] = source
    if counts.size:
        counts[0] = 1
    # Indices are unsigned, so that Numba does not ask whether they are negative.
    one = np.uint64(1)
    at = np.uint64(0)  # the next vertex of the queue whose edges are followed
    end = one  # of the queue
    level = 0
    next_target = 0  # the first target that is not reached
    while at < end:
        if level >= limit:
            return level, np.int64(limit)
        if target_vertices.size:
            while (
                next_target < target_vertices.size
                and distance[target_vertices[next_target]] != UNREACHED
            ):
                next_target += 1
            if next_target == target_vertices.size:
                return level, level

        # The vertices of a level follow each other in the queue.
        level += 1
        end_of_level = end
        while at < end_of_level:
            u = np.uint64(queue[at])
            at += one
            for e in range(np.uint64(offsets[u]), np.uint64(offsets[u + one])):
                # Every neighbor is written to the queue, and stays there if it is new. A branch
                # would be predicted badly.
                neighbor = targets[e]
                queue[end] = neighbor
                v = np.uint64(neighbor)
                hops = distance[v]
                is_new = hops == UNREACHED
                distance[v] = level if is_new else hops
                end += np.uint64(is_new)

        # The distances of this level did not fit into their type: the caller searches again.
        if level > deepest and end > end_of_level:
            return _NOT_YET, _NOT_YET
        if counts.size and end > end_of_level:
            counts[level] = end - end_of_level
    return level, _NOT_YET
