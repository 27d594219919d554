"""Many searches at once on the CPU over a graph without a cycle: each core sweeps its vertices in
topological order, for 16 sources side by side.

When the sweep comes to a vertex, all edges to it have been relaxed. So each edge is relaxed once,
negative weights included, and it is read once for 16 sources. The edges are copied in the order of
the sweep, so that they are read sequentially.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..._arrays import as_distance
from ...cpu import threads
from ...cpu.compiled import njit
from ...cpu.edges import Edges
from ...cpu.simd_distances import lower_by_line
from ...cpu.simd_sums import clear_line
from ...search.query import Query
from ...search.strategy import MultiSourceOutcome, Shape, per_core, sources_per_worker
from .. import cpu_steps

LANES = 16
# tells compiled code, by its length, that there are 2^4 lanes
_DOUBLINGS = (0,) * 4
_FIRST_LINE = 1  # line 0 has the largest distances of interest
_COLUMNS_AT_ONCE = 64  # are written for one source after the other, while a cache has their lines
group_size = per_core(LANES)


class SweepState(NamedTuple):
    """The memory of one thread for a sweep.

    A position is the number of a vertex in the topological order. A lane is one of up to 16
    searches.
    """

    # float array of shape (n_vertices + 1, LANES): line p + 1 has the distances of position p of
    # the order, a lane per source. Line 0 has the limit in each lane
    lines: np.ndarray
    is_reached: np.ndarray  # uint8 array of shape (n_vertices,): 1 where a position's line is set


def memory(shape: Shape, query: Query, group: int) -> int:
    """Return the bytes of a run: the edges in the order of the sweep, distances of a group, and
    lines and marks per core.

    ``group`` is the number of sources that are searched together.
    """
    # Edges, with 8 bytes per vertex for each of offsets, order and position.
    ordered = 24 * shape.n_vertices + shape.n_edges * (shape.index + shape.weight)
    rows = group * shape.n_vertices * shape.weight
    per_core = shape.n_vertices * (LANES * shape.weight + 1)
    predecessor_bytes = 0
    if query.predecessors:
        predecessor_bytes = cpu_steps.memory(shape.n_vertices, shape.n_edges, True)
        predecessor_bytes += group * shape.n_vertices * shape.index
    return ordered + rows + per_core * threads.count() + predecessor_bytes


def terms(shape: Shape, n_sources: int, group: int, machine: Any) -> dict[str, float]:  # noqa: ARG001
    """Return how much work one core has, by terms of the cost model: what a sweep for several
    sources reaches, and the writing of distances.

    The model (``auto.costs``) multiplies each amount by fitted nanoseconds per unit. ``machine`` is
    a ``Machine`` (cores and speeds). ``group`` is ignored: a sweep has up to ``LANES`` sources.
    """
    lanes = min(n_sources, LANES)
    sweeps = sources_per_worker(-(-n_sources // lanes), machine.cores)
    # Vertices that at least one of the sources of a sweep reaches, where ``reach`` is the mean share
    # of the vertices that one reaches; and edges that at least one visits.
    reached = shape.n_vertices * (1 - (1 - min(shape.reach, 1.0)) ** lanes)
    edges = shape.n_edges * shape.edge_share(lanes)
    bytes_of_lines = LANES * max(shape.weight, 4) * reached
    return {
        "sort": shape.n_vertices + shape.n_edges,  # the edges are copied in topological order
        "vertex": sweeps * reached,
        "edge": sweeps * edges,
        # Edges whose line comes from memory; ``scatter`` is the share of the edges whose two ends
        # have numbers far apart.
        "fetch": sweeps * shape.scatter * edges * machine.share_from_memory(bytes_of_lines),
        "write": sources_per_worker(n_sources, machine.cores) * shape.n_vertices,  # distances
    }


def plan(graph: Any, query: Query, _group: int) -> Any:
    """Copy the edges in topological order; return ``traverse(sources)`` for several vertex numbers.

    ``graph`` is a ``Graph`` without a cycle, whose weights may be negative. ``_group``, the most
    sources of a call, is ignored: each call allocates its own results.
    """
    n = graph.n_vertices
    dtype = graph.weights.dtype
    order = graph.derived.topological_order
    position = np.empty(n, np.int64)
    position[order] = np.arange(n)
    edges = _in_order(order, position, Edges.of(graph))
    # the position of each column of the result
    if query.output == "targets":
        columns = position[query.shared_targets]
    else:
        columns = position
    # with negative weights a path may lead through vertices beyond the limit
    limit = None if graph.has_negative_weights else query.limit
    counts_overflows = limit is None and cpu_steps.may_overflow(graph)
    states: dict[int, SweepState] = {}

    def get_state(thread: int) -> SweepState:
        """Return the memory of a thread, which is allocated when it has its first sources."""
        if thread not in states:
            states[thread] = SweepState(np.empty((n + 1, LANES), dtype), np.zeros(n, np.uint8))
            states[thread].lines[0] = as_distance(
                limit, dtype
            )  # bounds what ``lower_by_line`` writes
        return states[thread]

    def traverse(sources: Any) -> MultiSourceOutcome:
        """Search from the vertex numbers ``sources``. Return the outcome, a row per source:
        distances of all vertices or at the query's targets, and predecessors if they are wanted.

        Raises PrecisionError: a distance overflows.
        """
        source_numbers = np.asarray(sources, np.int64)
        k = source_numbers.size
        begins = position[source_numbers]
        distance = np.empty((k, columns.size), dtype)
        overflows = np.zeros(-(-k // LANES), np.bool_)  # one per sweep

        def sweep_lanes(i: int, thread: int) -> None:
            """Sweep for the i-th 16 sources, fewer at the end, and write their rows."""
            state = get_state(thread)
            lanes = slice(i * LANES, (i + 1) * LANES)
            _sweep(begins[lanes], edges, state, _DOUBLINGS)
            if counts_overflows:
                overflows[i] = _has_overflow(edges, state, begins[lanes].size)
            _write_rows(state, columns, distance[lanes])

        threads.for_each(sweep_lanes, overflows.size)
        if overflows.any():
            raise cpu_steps.overflow_error(graph)
        # None if the query wants no predecessors.
        predecessor = cpu_steps.point_back(graph, query, source_numbers, distance)
        # one round each, as each edge is relaxed once
        return MultiSourceOutcome(distance, predecessor, [limit] * k, [1] * k)

    return traverse


@njit(cache=True, nogil=True)
def _in_order(order, position, edges):
    """Return ``edges`` (``Edges``) with positions in place of vertex numbers, in the order of their
    tails.

    ``order`` has the vertex at each position of the topological order, and ``position`` the
    position of each vertex.
    """
    offsets = np.empty_like(edges.offsets)
    targets = np.empty_like(edges.targets)
    weights = np.empty_like(edges.weights)
    n_edges = 0
    for p in range(order.size):
        offsets[p] = n_edges
        u = order[p]
        for e in range(edges.offsets[u], edges.offsets[u + 1]):
            targets[n_edges] = position[edges.targets[e]]
            weights[n_edges] = edges.weights[e]
            n_edges += 1
    offsets[order.size] = n_edges
    return Edges(offsets, targets, weights)


@njit(cache=True, nogil=True)
def _sweep(begins, edges, state, doublings):
    """Write the distances from the positions ``begins``, one per lane, to the lines of ``state``.

    ``edges`` are those that ``_in_order`` returns. ``doublings`` is the tuple whose length tells
    compiled code the number of lanes.
    """
    lines = state.lines
    is_reached = state.is_reached
    unreached = lines.dtype.type(np.inf)

    # Lines are not cleared before a sweep, but each when it is first reached.
    is_reached[:] = 0
    for lane in range(begins.size):
        p = begins[lane]
        if not is_reached[p]:
            is_reached[p] = 1
            clear_line(lines, p + _FIRST_LINE, unreached, doublings)
        lines[p + _FIRST_LINE, lane] = 0

    # Edges lead to higher positions only. So no position before the first source is reached, and
    # all edges to a position are relaxed when the sweep comes to it.
    for p in range(begins.min(), is_reached.size):
        if not is_reached[p]:
            continue
        for e in range(edges.offsets[p], edges.offsets[p + 1]):
            head = np.int64(edges.targets[e])
            if not is_reached[head]:
                is_reached[head] = 1
                clear_line(lines, head + _FIRST_LINE, unreached, doublings)
            # relaxes the edge in all lanes: line ``head`` takes line ``p`` plus the weight, where
            # that is smaller, and not beyond the limit in line 0
            lower_by_line(lines, head + _FIRST_LINE, p + _FIRST_LINE, edges.weights[e], doublings)


@njit(cache=True, nogil=True)
def _has_overflow(edges, state, n_lanes):
    """Return whether a distance overflows, in one of the first ``n_lanes`` lanes: an edge leads
    from a finite distance to a vertex that has none.

    ``edges`` and ``state`` are those of ``_sweep``, after a sweep without a limit.
    """
    lines = state.lines
    is_reached = state.is_reached
    for p in range(is_reached.size):
        if not is_reached[p]:
            continue
        for e in range(edges.offsets[p], edges.offsets[p + 1]):
            head = edges.targets[e] + _FIRST_LINE
            for lane in range(n_lanes):
                distance = lines[p + _FIRST_LINE, lane]
                if np.isfinite(distance) and not np.isfinite(lines[head, lane]):
                    return True
    return False


@njit(cache=True, nogil=True)
def _write_rows(state, columns, rows):
    """Write the lines of ``state`` to ``rows``: one row per source, and a column per position of
    ``columns``.

    Lines of positions that were not reached hold distances of an earlier sweep, and are not read:
    their columns become infinite.
    """
    lines = state.lines
    is_reached = state.is_reached
    for begin in range(0, columns.size, _COLUMNS_AT_ONCE):
        end = min(begin + _COLUMNS_AT_ONCE, columns.size)
        for lane in range(rows.shape[0]):
            for column in range(begin, end):
                p = columns[column]
                rows[lane, column] = lines[p + _FIRST_LINE, lane] if is_reached[p] else np.inf
