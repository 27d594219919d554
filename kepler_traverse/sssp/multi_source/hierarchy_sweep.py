"""Many searches at once on the CPU over a contraction hierarchy: each core sweeps it for 16 sources side by side.

For paths, and for distances at few targets per source, nothing is swept: each core looks them up for one source at a time.

Distances are sums of integers, which no order of addition changes, so they are those of every other strategy. Sums that the
type of the graph's distances does not hold are found as usual for integer weights (see ``exact``); for other weights the
group is searched without the hierarchy.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from ..._arrays import EXACT_BELOW, as_distance
from ...cpu import threads
from ...hierarchy.lookup import BYTES_PER_VERTEX, Lookups, looks_up
from ...hierarchy.sweep import DOUBLINGS, LANES, UNREACHED, SweepState, search, write_rows
from ...search.results import Routes
from ...search.strategy import MultiSourceOutcome, per_core, sources_per_worker
from .. import cpu_steps
from . import source_per_thread

_LANES = LANES[np.dtype(np.int32)]
group_size = per_core(_LANES)


def memory(shape, query, group: int) -> int:
    """Bytes of a run: distances of a group; lines, marks, and the state of an upward search per core."""
    cores = threads.count()
    if looks_up(query, shape.n_vertices):
        needs_reverse = shape.directed and query.output == "paths"
        reverse = 8 * shape.n_vertices + (shape.index + shape.weight) * shape.n_edges
        return BYTES_PER_VERTEX * shape.n_vertices * cores + reverse * needs_reverse
    rows = -(-group // _LANES) * _LANES if query.output == "all" or query.targets is None else 0
    single = cpu_steps.memory(shape.n_vertices, shape.n_edges, True) if query.predecessors else 0
    predecessors = group * shape.index if query.predecessors else 0
    return shape.n_vertices * (shape.weight * rows + predecessors + (64 + 1 + 16) * cores) + single


def terms(shape, n_sources: int, group: int, machine) -> dict[str, float]:  # noqa: ARG001  (all take a group)
    """Amounts of the terms of the cost: those of a sweep, and of writing its distances as rows."""
    # A group that is smaller than the lanes takes as long as a full one.
    if shape.keep == "paths":
        per_worker = sources_per_worker(n_sources, machine.cores)
        hops = shape.likely_depth / 2  # of a path between two random vertices
        return {"lookup": per_worker * hops, "chain": per_worker * shape.per_source * hops}
    per_worker = sources_per_worker(-(-n_sources // _LANES) * _LANES, machine.cores)
    if shape.keep == "targets":
        return {"start": 2 * per_worker, "clear": shape.n_vertices}
    return {
        "start": per_worker,
        "vertex": per_worker * shape.n_vertices,
        "write": per_worker * shape.n_vertices * max(shape.weight, 4),
    }


def plan(graph, query, group: int):
    """Return ``traverse(sources)`` for several vertex numbers."""
    if looks_up(query, graph.n_vertices):
        return _plan_lookups(graph, query)
    hierarchy = graph.derived.known_hierarchy("weights")
    kind, integers = graph.weights.dtype, hierarchy.dtype
    lanes, doublings, unreached = LANES[integers], DOUBLINGS[integers], UNREACHED[integers]
    unit, bound = kind.type(hierarchy.unit), _first_beyond(query.limit, hierarchy, kind)
    # No distance of these is ever rounded; those of integers are checked by the caller.
    needs_check = not graph.integer_weights and hierarchy.longest > EXACT_BELOW[kind]
    if query.output == "targets" and query.targets is not None:
        places, swept = hierarchy.restricted(query.targets)
        columns = places[hierarchy.position[query.targets]]
    else:
        places, swept = np.empty(0, np.int32), hierarchy.downward
        columns = hierarchy.position
    n_rows = -(-group // lanes) * lanes
    rows = np.empty((n_rows, columns.size), kind)
    states = [SweepState(graph.n_vertices, swept.offsets.size - 1, integers) for _ in range(threads.max_threads())]
    longest = float(hierarchy.longest + 1) * hierarchy.unit

    def traverse(sources, lists=None) -> MultiSourceOutcome:  # of all vertices, from which the caller takes those of lists
        numbers = np.asarray(sources, np.int64)
        positions = hierarchy.position[numbers].astype(np.int64)
        k = numbers.size

        def sweep(i: int, thread: int) -> None:
            state = states[thread]
            first = i * lanes
            edges = hierarchy.upward, hierarchy.downward, swept
            search(positions[first : first + lanes], *edges, places, *state.arrays(), unreached, doublings)
            write_rows(state.lines, columns, rows[first : first + lanes], bound, unit, doublings)

        threads.for_each(sweep, -(-k // lanes))
        distance = rows[:k]
        if needs_check and _any_beyond(distance, EXACT_BELOW[kind] * hierarchy.unit):
            return source_per_thread.plan(graph, query, k)(sources, lists)
        predecessor = cpu_steps.point_back(graph, numbers, distance) if query.predecessors else None
        return MultiSourceOutcome(distance, predecessor, [query.limit] * k, [hierarchy.levels] * k, below=longest)

    return traverse


def _plan_lookups(graph, query):
    """Return ``traverse(sources, lists)``, which looks up the distances at the targets of each source, and paths to them."""
    hierarchy, finds_paths = graph.derived.known_hierarchy("weights"), query.output == "paths"
    kind = graph.weights.dtype
    unreached, bound = UNREACHED[hierarchy.dtype], _first_beyond(query.limit, hierarchy, kind)
    needs_check = not graph.integer_weights and hierarchy.longest > EXACT_BELOW[kind]
    longest = float(hierarchy.longest + 1) * hierarchy.unit
    lookups = Lookups(graph, hierarchy, graph.reverse.weights if finds_paths else None)

    def traverse(sources, lists) -> MultiSourceOutcome:
        sums, *routes = lookups.of(sources, lists, bound, finds_paths)
        distance = np.where(sums < bound, sums * hierarchy.unit, np.inf).astype(kind)
        if needs_check and bool((sums[sums < unreached] > EXACT_BELOW[kind]).any()):
            whole = replace(query, output="all") if finds_paths else query
            return source_per_thread.plan(graph, whole, len(sources))(sources, lists)
        limits, rounds = [query.limit] * len(sources), [hierarchy.levels] * len(sources)
        return MultiSourceOutcome(
            distance, None, limits, rounds, below=longest, routes=Routes(*routes) if finds_paths else None
        )

    return traverse


def _first_beyond(limit, hierarchy, kind):
    """The smallest sum, in units, that is no distance: beyond the limit, or unreached."""
    unreached = UNREACHED[hierarchy.dtype]
    limit = np.inf if limit is None else float(as_distance(limit, kind))
    if math.isinf(limit):
        return unreached
    return unreached.dtype.type(min(int(unreached), math.floor(Fraction(limit) / Fraction(hierarchy.unit)) + 1))


def _any_beyond(distance: np.ndarray, bound: float) -> bool:
    return any(bool((np.isfinite(row) & (row > bound)).any()) for row in distance)
