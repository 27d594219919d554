"""Many searches at once on the CPU: each core takes a source, and keeps its piles to itself.

Near-far (Davidson, Baxter, Garland, Owens. Work-efficient parallel GPU methods for single-source shortest paths. IPDPS
2014) by one thread, without an atomic. Against a heap it spares sorting: a vertex is lowered at once, and again if a shorter
path turns up before the threshold has passed it. Sources are handed to cores one by one as these become free.
"""

from __future__ import annotations

import numba
import numpy as np
from numba import njit, prange

from .._arrays import as_distance
from ..strategy import ManyOutcome
from . import cpu
from .params import EDGES_A_PILE

SOURCES_A_CORE = 8  # of a group, so that cores end at about the same time
_NONE, _NEAR, _FAR = 0, 1, 2


def group_size(n_sources: int) -> int:
    """Sources a group."""
    return min(n_sources, SOURCES_A_CORE * numba.get_num_threads())


def memory(shape, query, group: int) -> int:
    """Bytes of a run: distances of a group, or of one search a core; three piles and a mark a core."""
    cores = numba.get_num_threads()
    rows = group if query.keep == "all" else cores
    single = cpu.memory(shape.n_vertices, shape.n_edges, True) if query.predecessors else 0
    return shape.n_vertices * (shape.weight * rows + (3 * shape.index + 1) * cores) + single


def cost(shape, n_sources: int) -> float:
    """Nanoseconds for all sources."""
    return -(-n_sources // numba.get_num_threads()) * (20 * shape.n_vertices + 10 * shape.n_edges)


def plan(graph, query, _group: int):
    """Return ``traverse(sources)`` for several vertex numbers."""
    n, kind = graph.n_vertices, graph.weights.dtype
    cores = numba.get_num_threads()
    piles = np.empty((cores, 3, n), graph.targets.dtype)
    marks = np.empty((cores, n), np.uint8)
    limit = as_distance(np.inf if query.limit is None else query.limit, kind)
    targets = np.empty(0, np.int64) if query.targets is None else query.targets
    width = as_distance(_width(graph), kind)
    graph_arrays = (graph.offsets, graph.targets, graph.weights)
    single = cpu.Run(graph, query) if query.predecessors else None

    def traverse(sources) -> ManyOutcome:
        sources = np.asarray(sources, np.int64)
        k = sources.size
        is_kept = query.keep == "all"  # else each core has one row for all its searches
        distance = np.empty((k if is_kept else cores, n), kind)
        at_targets = np.empty((k, targets.size if query.keep == "targets" else 0), kind)
        rounds, stops = np.empty(k, np.int64), np.empty(k, kind)
        overflows = np.zeros(k if cpu.may_overflow(graph) and query.limit is None else 0, np.int64)
        with numba.parallel_chunksize(1):
            _search_each(
                *graph_arrays,
                sources,
                limit,
                targets,
                width,
                piles,
                marks,
                is_kept,
                distance,
                at_targets,
                rounds,
                stops,
                overflows,
            )
        if overflows.any():
            raise cpu.overflow_error(graph)
        limits = [query.limit if np.isinf(stop) else float(stop) for stop in stops]
        predecessor = None
        if query.predecessors:
            predecessor = np.empty(distance.shape, graph.targets.dtype)
            for i, source in enumerate(sources.tolist()):
                single.distance[:] = distance[i]
                single.find_predecessors(source)
                predecessor[i] = single.predecessor
        return ManyOutcome(distance if is_kept else at_targets, predecessor, limits, rounds.tolist())

    return traverse


def _width(graph) -> float:
    """Width of a pile: the mean weight divided by how many edges of a vertex it should hold on average."""
    if not graph.n_edges:
        return 0.0
    return EDGES_A_PILE * float(graph.weights.mean(dtype=np.float64)) * graph.n_vertices / graph.n_edges


@njit(parallel=True, cache=True)
def _search_each(
    offsets,
    targets,
    weights,
    sources,
    limit,
    wanted,
    width,
    piles,
    marks,
    is_kept,
    distance,
    at_targets,
    rounds,
    stops,
    overflows,
):
    for i in prange(sources.size):
        core = np.int64(numba.get_thread_id())
        row = distance[np.int64(i) if is_kept else core]
        rounds[i], stops[i] = search(
            offsets, targets, weights, sources[i], limit, wanted, width, piles[core], marks[core], row
        )
        if overflows.size:
            overflows[i] = _overflows(offsets, targets, weights, row)
        for j in range(at_targets.shape[1]):
            at_targets[i, j] = row[wanted[j]]


@njit(cache=True)
def search(offsets, targets, weights, source, limit, wanted, width, piles, mark, distance):
    """Search from one source; return the rounds it took and up to where it is complete, infinity for everywhere."""
    infinity = distance.dtype.type(np.inf)
    near, lowered, far = piles[0], piles[1], piles[2]
    distance[:] = infinity
    mark[:] = _NONE
    distance[source] = 0
    near[0] = source
    n_near, n_far, rounds = 1, 0, 0
    threshold = max(width, np.nextafter(distance[source], infinity))
    while True:
        while n_near:
            n_lowered, n_far = _relax(
                offsets, targets, weights, near[:n_near], limit, threshold, distance, mark, lowered, far, n_far
            )
            near, lowered = lowered, near
            n_near = n_lowered
            rounds += 1
        if wanted.size:
            farthest = distance[wanted].max()
            if farthest < threshold:
                for v in range(distance.size):
                    if distance[v] > farthest:
                        distance[v] = infinity
                return rounds, farthest
        n_far, nearest = _drop_settled(far, n_far, distance, mark, threshold)
        if n_far == 0:
            return rounds, infinity
        threshold = max(nearest + width, np.nextafter(nearest, infinity))
        n_near, n_far = _split(far, n_far, distance, mark, threshold, near)


@njit(cache=True)
def _relax(offsets, targets, weights, near, limit, threshold, distance, mark, lowered, far, n_far):
    """Relax the edges of the near pile; what falls below the threshold is lowered, all else goes onto the far pile."""
    n_lowered = 0
    for i in range(near.size):
        u = near[i]
        mark[u] = _NONE
        here = distance[u]
        for e in range(offsets[u], offsets[u + 1]):
            v = targets[e]
            through = here + weights[e]
            if through < distance[v] and through <= limit:
                distance[v] = through
                if through < threshold or threshold == np.inf:
                    if mark[v] != _NEAR:
                        mark[v] = _NEAR
                        lowered[n_lowered] = v
                        n_lowered += 1
                elif mark[v] == _NONE:
                    mark[v] = _FAR
                    far[n_far] = v
                    n_far += 1
    return n_lowered, n_far


@njit(cache=True)
def _drop_settled(far, n_far, distance, mark, threshold):
    """Keep what is still to come of the far pile; return how many and the smallest distance among them."""
    nearest = distance.dtype.type(np.inf)
    kept = 0
    for i in range(n_far):
        v = far[i]
        if mark[v] != _FAR:
            continue  # it was near since
        if distance[v] < threshold:
            mark[v] = _NONE
            continue
        far[kept] = v
        kept += 1
        nearest = min(nearest, distance[v])
    return kept, nearest


@njit(cache=True)
def _split(far, n_far, distance, mark, threshold, near):
    n_near = kept = 0
    for i in range(n_far):
        v = far[i]
        if distance[v] < threshold or threshold == np.inf:
            mark[v] = _NEAR
            near[n_near] = v
            n_near += 1
        else:
            far[kept] = v
            kept += 1
    return n_near, kept


@njit(cache=True)
def _overflows(offsets, targets, weights, distance):
    """Count the edges that lead to a vertex which is reached at no finite distance."""
    found = 0
    for u in range(distance.size):
        if distance[u] != np.inf:
            for e in range(offsets[u], offsets[u + 1]):
                found += np.isinf(distance[u] + weights[e]) and np.isinf(distance[targets[e]])
    return found
