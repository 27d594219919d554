"""Many searches at once on the CPU over a contraction hierarchy: each core sweeps it for 16 sources
side by side.

For paths, and for distances at few targets per source, nothing is swept: each core looks them up
for one source at a time. Hub labels, if the graph has some, answer the distances at few targets and
along few paths.

Distances are sums of integers, which no order of addition changes, so they are those of every other
strategy. Sums that the type of the graph's distances does not hold are found as usual for integer
weights (see ``exact``); for other weights the group is searched without the hierarchy.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ..._arrays import EXACT_BELOW
from ...bfs.multi_source import hierarchy_sweep as of_hops
from ...cpu import threads
from ...cuda.interleaved import sums_up_to
from ...hierarchy.column_sums import BYTES_PER_VERTEX
from ...hierarchy.lookup import Lookups, looks_up
from ...hierarchy.sweep import (
    DOUBLINGS,
    LANES,
    UNREACHED,
    SweepEdges,
    SweepState,
    search,
    write_rows,
)
from ...search.answering import answering_labels
from ...search.query import TargetLists
from ...search.results import Routes
from ...search.strategy import MultiSourceOutcome
from .. import cpu_steps
from . import source_per_thread

group_size = of_hops.group_size


def memory(shape, query, group: int) -> int:
    """Return the bytes of a run: those of a sweep for hops, with wider distances; and what finds
    predecessors, or adds columns of the edges up along paths.

    ``shape`` is a ``Shape`` (size of the graph), ``query`` a ``Query``, and ``group`` the number of
    sources that are searched together.
    """
    if shape.is_summed_by_labels:  # hub labels answer all that the query asks for
        return of_hops.memory(shape, query, group)
    has_state = query.predecessors and not looks_up(query, shape.n_vertices)
    if has_state:
        other_bytes = cpu_steps.memory(shape.n_vertices, shape.n_edges, True)
    else:
        other_bytes = 0
    if query.sums is not None:  # columns of the edges are added up along the paths
        other_bytes += BYTES_PER_VERTEX * shape.n_vertices * threads.count()
    return of_hops.memory(shape, query, group, shape.weight) + other_bytes


def terms(shape, n_sources: int, group: int, machine) -> dict[str, float]:
    """Return how much work one core has, by terms of the cost model: that of a sweep for hops,
    where wider distances are written, so that ``"write"`` counts bytes.

    The model (``auto.costs``) multiplies each amount by fitted nanoseconds per unit. ``shape`` is a
    ``Shape`` (size of the graph), and ``machine`` a ``Machine`` (cores and speeds).
    """
    amounts = of_hops.terms(shape, n_sources, group, machine)
    if shape.is_summed_by_labels:  # hub labels answer, and nothing is written
        return amounts
    return amounts | {"write": amounts.get("write", 0) * max(shape.weight, 4)}


def plan(graph, query, group: int):
    """Allocate what sweeps or lookups need; return ``traverse(sources, lists=None)`` for up to
    ``group`` vertex numbers at once.

    ``graph`` is a ``Graph`` that has a hierarchy of its weights, and ``query`` a ``Query``, the
    options of the search.
    """
    # Few targets are looked up; otherwise the whole hierarchy is swept.
    if query.sums is not None and query.output == "targets" and query.targets is not None:
        return _plan_sums(graph, query)
    # Hub labels, if the graph has some and they answer this query faster than a search; else None.
    labels = answering_labels(graph, query, "weights")
    if labels is not None or looks_up(query, graph.n_vertices):
        return _plan_lookups(graph, query, labels)
    hierarchy = graph.derived.known_hierarchy("weights")
    dtype = graph.weights.dtype
    sum_dtype = hierarchy.dtype
    lanes = LANES[sum_dtype]
    doublings = DOUBLINGS[sum_dtype]  # a tuple whose length tells compiled code the lanes
    unreached = UNREACHED[sum_dtype]  # the sum that stands for no path
    # Sums are integers: multiples of the unit. Those from ``bound`` on are no distances.
    unit = dtype.type(hierarchy.unit)
    bound = first_beyond(query.limit, hierarchy, dtype)
    # Up to EXACT_BELOW the type of the distances holds all integers. If the longest path is within
    # it, no distance is rounded. Distances of integer weights are checked by the caller.
    needs_check = not graph.integer_weights and hierarchy.longest > EXACT_BELOW[dtype]

    places, swept, columns = of_hops.part_to_sweep(hierarchy, query)
    edges = SweepEdges(hierarchy.upward, hierarchy.downward, swept, places)
    # The distances of the result, one row per source; the last line may have lanes without one.
    n_rows = -(-group // lanes) * lanes
    rows = np.empty((n_rows, columns.size), dtype)
    states = [
        SweepState(graph.n_vertices, swept.offsets.size - 1, sum_dtype)
        for _ in range(threads.max_threads())
    ]
    # Above all finite distances: ``MultiSourceOutcome.below``, by which the caller tells whether
    # sums may have been rounded.
    above_longest = math.nextafter(hierarchy.longest * hierarchy.unit, math.inf)

    def traverse(sources, lists=None) -> MultiSourceOutcome:
        """Search from the vertex numbers ``sources``. Return the outcome, a row per source:
        distances, and predecessors if they are wanted.

        ``lists`` (``TargetLists``) are the targets of each source, if each has its own, else None.
        The sweep ignores them: the distances are those of all vertices, from which the caller takes
        those at the targets. Only ``source_per_thread``, which searches again where a sum may have
        been rounded, uses them.
        """
        source_numbers = np.asarray(sources, np.int64)
        positions = hierarchy.position[source_numbers].astype(np.int64)
        k = source_numbers.size

        def sweep_line(i: int, thread: int) -> None:
            """Sweep for the sources of the i-th line, ``lanes`` of them, and write their rows."""
            # ``search`` goes upward from each source, then sweeps downward. It leaves a lane of
            # sums per source in ``state.lines``.
            state = states[thread]
            first = i * lanes
            line_positions = positions[first : first + lanes]
            search(line_positions, edges, state.arrays(), unreached, doublings)
            write_rows(state.lines, columns, rows[first : first + lanes], bound, unit, doublings)

        threads.for_each(sweep_line, -(-k // lanes))

        # Sums that floats would round depend on the order of addition. Then all sources are
        # searched again, without the hierarchy, as a search adds from the source on.
        distance = rows[:k]
        if needs_check and _any_beyond(distance, EXACT_BELOW[dtype] * hierarchy.unit):
            return source_per_thread.plan(graph, query, k)(sources, lists)
        predecessor = cpu_steps.point_back(graph, query, source_numbers, distance)
        return MultiSourceOutcome(
            distance, predecessor, [query.limit] * k, [hierarchy.levels] * k, below=above_longest
        )

    return traverse


def _plan_sums(graph, query):
    """Return ``traverse(sources)``, which finds the distances of the targets, the same for all
    sources, and adds columns of the edges up along the paths to them.

    ``query.sums``, a ``SumSweeps``, does both.
    """
    hierarchy = query.sums.hierarchy
    dtype = graph.weights.dtype
    bound = first_beyond(query.limit, hierarchy, dtype)
    size = query.targets.size
    above_longest = math.nextafter(hierarchy.longest * hierarchy.unit, math.inf)

    def traverse(sources, lists=None) -> MultiSourceOutcome:  # noqa: ARG001
        """Find the distances and sums at the targets for the vertex numbers ``sources``. Return the
        outcome: distances of shape (k, n_targets), infinite where unreached, and sums of shape
        (k, n_targets, n_columns), 0 there.

        ``lists`` is ignored: this search is planned only where all sources share the targets of the
        query.
        """
        source_numbers = np.asarray(sources, np.int64)
        k = source_numbers.size
        # The targets of the query, as a list per source.
        same_lists = TargetLists(np.arange(k + 1) * size, np.tile(query.targets, k))
        distance, sums = query.sums.at_targets(source_numbers, same_lists)
        # The sums of targets without a path, or beyond the limit, mean nothing.
        sums[distance >= bound] = 0
        distance = np.where(distance < bound, distance * hierarchy.unit, np.inf).astype(dtype)
        return MultiSourceOutcome(
            distance.reshape(k, size),
            None,
            [query.limit] * k,
            [hierarchy.levels] * k,
            below=above_longest,
            sums=sums.reshape(k, size, -1),
        )

    return traverse


def _plan_lookups(graph, query, labels):
    """Return ``traverse(sources, lists=None)``, which looks up the distances at the targets of each
    source, and paths to them if the query asks for these.

    ``labels`` are the hub labels that answer, or None if the hierarchy does.
    """
    hierarchy = graph.derived.known_hierarchy("weights")
    finds_paths = query.output == "paths"
    dtype = graph.weights.dtype
    unreached = UNREACHED[hierarchy.dtype]  # the sum that stands for no path
    bound = first_beyond(query.limit, hierarchy, dtype)
    # Up to EXACT_BELOW the type of the distances holds all integers. Distances of integer weights
    # are checked by the caller.
    needs_check = not graph.integer_weights and hierarchy.longest > EXACT_BELOW[dtype]
    above_longest = math.nextafter(hierarchy.longest * hierarchy.unit, math.inf)
    # Labels alone give distances. Paths, and distances without labels, take lookups.
    lookups = None
    if finds_paths:
        lookups = Lookups(graph, hierarchy, graph.reverse.weights, labels)
    elif labels is None:
        lookups = Lookups(graph, hierarchy, None)

    def traverse(sources, lists=None) -> MultiSourceOutcome:
        """Look up the targets of the vertex numbers ``sources``. Return the outcome: the distances
        at the targets, and if the query outputs paths, these as ``routes``.

        ``lists`` (``TargetLists``) are the targets of each source: the distances are one array,
        list after list. With None all sources have the targets of the query, and the distances have
        a row per source. Where a sum may have been rounded, all sources are searched by
        ``source_per_thread`` instead, which gives predecessors in place of paths.
        """
        routes = None
        if lookups is None:
            sums = of_hops.answer_by_labels(labels, query, sources, lists)
        else:
            sums, *sizes_and_vertices = lookups.look_up_lists(sources, lists, bound, finds_paths)
            if finds_paths:
                routes = Routes(*sizes_and_vertices)
        distance = np.where(sums < bound, sums * hierarchy.unit, np.inf).astype(dtype)
        if needs_check and bool((sums[sums < unreached] > EXACT_BELOW[dtype]).any()):
            # Sums that floats would round depend on the order of addition. Then all sources are
            # searched, as a search adds from the source on. That strategy finds no paths, but
            # predecessors.
            query_of_search = query
            if finds_paths:
                query_of_search = replace(query, output="all")
            return source_per_thread.plan(graph, query_of_search, len(sources))(sources, lists)

        limits = [query.limit] * len(sources)
        rounds = [hierarchy.levels] * len(sources)
        return MultiSourceOutcome(
            distance, None, limits, rounds, below=above_longest, routes=routes
        )

    return traverse


def first_beyond(limit, hierarchy, dtype):
    """Return the smallest sum that is no distance of the result, as it is beyond the limit or means
    unreached: an integer, in units of the hierarchy and of its type.

    ``limit`` is a distance, or None. ``dtype`` is the type of the distances. If it rounds a sum
    within the limit, only unreached vertices are left out, so that a check for rounded sums sees
    all of them.
    """
    # ``sums_up_to`` returns the largest sum within the limit. Up to EXACT_BELOW the type of the
    # distances holds all integers.
    beyond = sums_up_to(limit, hierarchy.unit, hierarchy.dtype) + 1
    if beyond > EXACT_BELOW[dtype]:
        return UNREACHED[hierarchy.dtype]
    return hierarchy.dtype.type(beyond)


def _any_beyond(distance: np.ndarray, bound: float) -> bool:
    """Return whether a finite distance is larger than ``bound``. ``distance`` has shape (k, n)."""
    # Row by row, so that temporary arrays are small.
    return any(bool((np.isfinite(row) & (row > bound)).any()) for row in distance)
