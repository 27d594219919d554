"""Many searches at once on the CPU: each core takes a source, and keeps its near and far piles to
itself.

The search is that of ``near_far_cpu``, where the paper is named. Sources are handed to cores one by
one as these become free.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._arrays import as_distance
from ...cpu import threads
from ...cpu.edges import Edges
from ...search.query import Query, TargetLists
from ...search.strategy import MultiSourceOutcome, Shape, per_core, sources_per_worker
from .. import cpu_steps
from ..near_far_cpu import NEVER, State, count_rounds, new_state, pile_width, search

SOURCES_PER_CORE = 8  # of a group, so that cores end at about the same time
group_size = per_core(SOURCES_PER_CORE)


def memory(shape: Shape, query: Query, group: int) -> int:
    """Return the bytes of a run: distances of a group, or of one search per core; three piles and
    two marks per core, which have 4 bytes and 1 byte per vertex.

    ``group`` is the number of sources that are searched together. ``shape`` has the bytes of a
    vertex number, ``index``, and of a distance, ``weight``.
    """
    cores = threads.count()
    rows = group if query.output == "all" else cores
    if query.predecessors:
        predecessor_bytes = cpu_steps.memory(shape.n_vertices, shape.n_edges, True)
    else:
        predecessor_bytes = 0
    return (
        shape.n_vertices * (shape.weight * rows + (3 * shape.index + 5) * cores) + predecessor_bytes
    )


def terms(shape: Shape, n_sources: int, group: int, machine: Any) -> dict[str, float]:  # noqa: ARG001
    """Return how much work one core has, by terms of the cost model.

    The model (``auto.costs``) multiplies each amount by fitted nanoseconds per unit. ``machine`` is
    a ``Machine`` (cores and speeds). ``group`` is ignored: each search takes as long in a group of
    any size.
    """
    per_worker = sources_per_worker(n_sources, machine.cores)
    edges = per_worker * shape.n_edges * shape.walked
    return {
        "start": per_worker,  # searches
        "chain": per_worker * shape.likely_rounds,  # rounds, as many as the mean search takes
        "clear": per_worker * shape.n_vertices,  # distances that are set to unreached
        # Vertices that are reached (``reach``: the share of all), and edges that are relaxed, and
        # relaxed again (``repeats``: how often, as piles with few large weights need more rounds).
        "vertex": per_worker * shape.n_vertices * shape.reach,
        "edge": edges,
        "again": edges * shape.repeats,
        # Loads that miss the cache of a core, and that come from memory: of a distance, a mark of 4
        # bytes and one of 1. ``scatter`` is the share of the edges whose ends have far numbers.
        "miss": edges
        * shape.scatter
        * machine.share_of_misses(shape.n_vertices * max(shape.weight, 4)),
        "fetch": per_worker * shape.fetches(machine, shape.weight + 5),
    }


def plan(graph: Any, query: Query, _group: int) -> Any:
    """Allocate the piles of each thread; return ``traverse(sources, lists=None)`` for several
    vertex numbers.

    ``graph`` is a ``Graph`` with non-negative weights. ``_group``, the most sources of a call, is
    ignored: each call allocates its own results.
    """
    n = graph.n_vertices
    dtype = graph.weights.dtype
    # As many as there may ever be: the caller's number of threads may change. Memory that is never
    # touched costs nothing.
    cores = threads.max_threads()
    piles = np.empty((cores, 3, n), graph.targets.dtype)
    last_queued = np.empty((cores, n), np.int32)
    is_far = np.empty((cores, n), np.uint8)
    limit = as_distance(query.limit, dtype)  # infinite without one
    shared_targets = query.shared_targets
    edges = Edges.of(graph)
    width = pile_width(graph)
    # With a limit, sums that overflow are beyond it, and so are unreached.
    counts_overflows = cpu_steps.may_overflow(graph) and query.limit is None

    def traverse(sources: Any, lists: TargetLists | None = None) -> MultiSourceOutcome:
        """Search from the vertex numbers ``sources``. Return the outcome, a row per source:
        distances of all vertices or at the targets, and predecessors if they are wanted.

        ``lists`` are the targets of each source, if each has its own, else None. If the query
        outputs distances at targets, those at the lists are one array, list after list.

        Raises PrecisionError: a distance overflows.
        """
        source_numbers = [int(source) for source in sources]
        k = len(source_numbers)
        keeps_rows = query.output == "all"  # else each thread has one array for all its searches
        distance = np.empty((k if keeps_rows else cores, n), dtype)
        # Distances at the targets: a row per source, or those of the lists one after the other.
        keeps_targets = query.output == "targets"
        shape: Any = 0
        if keeps_targets:
            shape = (k, shared_targets.size) if lists is None else lists.vertices.size
        at_targets = np.empty(shape, dtype)
        rounds = np.empty(k, np.int64)
        stops = np.empty(k, dtype)  # up to where each search is complete, infinite for everywhere
        overflows = np.zeros(k, np.int64)

        def search_one(i: int, thread: int) -> None:
            """Search from the i-th source, on the thread of number ``thread``."""
            row = distance[i if keeps_rows else thread]
            targets = shared_targets if lists is None else lists.of(i)
            # counters of the search, and the distances between which it works
            sizes, bounds = new_state(dtype)
            state = State(piles[thread], last_queued[thread], is_far[thread], row, sizes, bounds)
            # NEVER: this thread makes the search alone. Without it ``search`` would leave a pile of
            # many vertices to several threads.
            search(edges, source_numbers[i], limit, targets, width, NEVER, state)
            rounds[i] = count_rounds(sizes)
            stops[i] = bounds[1]  # the distance up to which the result is complete
            # ``run_alone`` counts on this thread: the others have searches of their own.
            if counts_overflows:
                overflows[i] = cpu_steps.count_overflows(graph, row, threads.run_alone)
            if keeps_targets:
                part = i if lists is None else slice(*lists.offsets[i : i + 2])
                at_targets[part] = row[targets]

        threads.for_each(search_one, k)
        if overflows.any():
            raise cpu_steps.overflow_error(graph)

        limits = [query.limit if np.isinf(stop) else float(stop) for stop in stops]
        # Where predecessors are wanted, ``distance`` has a row per source; else nothing is done.
        predecessor = cpu_steps.point_back(graph, query, source_numbers, distance)
        return MultiSourceOutcome(
            distance if keeps_rows else at_targets, predecessor, limits, rounds.tolist()
        )

    return traverse
