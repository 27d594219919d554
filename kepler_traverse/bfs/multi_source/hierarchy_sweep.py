"""Many searches at once on the CPU over a contraction hierarchy of hops: each core sweeps it for 16
sources side by side.

It is the sweep of ``sssp``, with a weight of one per edge. For paths, and for distances at few
targets per source, nothing is swept. Each core then looks up the targets of one source at a time,
in the hierarchy or in hub labels. If only distances are wanted and there are labels, the sums of
the labels are the result (``answer_by_labels``).
"""

from __future__ import annotations

import numpy as np

from ..._arrays import UNREACHED as NO_HOPS
from ..._arrays import hops_dtype
from ...cpu import threads
from ...hierarchy.lookup import BYTES_PER_VERTEX, Lookups, looks_up
from ...hierarchy.sweep import (
    DOUBLINGS,
    LANES,
    UNREACHED,
    SweepEdges,
    SweepState,
    count_hops,
    search,
    write_hops,
)
from ...search.answering import answering_labels
from ...search.results import Routes
from ...search.strategy import MultiSourceOutcome, per_core, sources_per_worker
from .. import cpu_steps

_LANES = LANES[np.dtype(np.int32)]
# of a pair of source and target that labels answer: its ends, as numbers and ranks, and its sum
_BYTES_PER_ANSWER = 48
_SHARE_OF_LAID_OUT = 0.25  # of the time of a pair whose two labels are merged
_SHARE_BY_LABELS = 0.8  # of the time of a path whose distances are looked up in a hierarchy
group_size = per_core(_LANES)


def memory(shape, query, group: int, weight: int = 0) -> int:
    """Return the bytes of a run: distances of a group; lines, marks, and the state of an upward
    search per core.

    ``shape`` is a ``Shape`` (size and depth of the graph), ``query`` a ``Query``, and ``group`` the
    number of sources that are searched together. ``weight``: bytes of a weighted distance; 0 for
    hops.
    """
    # Hub labels answer, or lookups in the hierarchy: nothing is swept.
    if shape.is_summed_by_labels:
        return int(group * shape.per_source * _BYTES_PER_ANSWER) + 8 * shape.n_vertices
    cores = threads.count()
    if looks_up(query, shape.n_vertices):
        needs_reverse = shape.directed and query.output == "paths"
        reverse_bytes = 8 * shape.n_vertices + (shape.index + weight) * shape.n_edges
        return BYTES_PER_VERTEX * shape.n_vertices * cores + reverse_bytes * needs_reverse

    # Rows of distances; the last line of a sweep may have lanes without a source.
    keeps_rows = query.output == "all" or (query.output == "targets" and query.targets is None)
    if keeps_rows:
        rows = -(-group // _LANES) * _LANES * (weight or hops_dtype(shape.depth).itemsize)
    else:
        rows = 0
    # int64 counts; other searches may be twice as deep as the known one of ``shape.depth`` levels
    if query.output == "counts":
        counts = 8 * 2 * group * shape.depth
    else:
        counts = 0
    if query.predecessors:
        predecessors = group * shape.index
    else:
        predecessors = 0
    # Per core a line of 64 bytes, a mark, and 16 bytes for the search upward.
    return shape.n_vertices * (rows + predecessors + (64 + 1 + 16) * cores) + counts


def terms(shape, n_sources: int, group: int, machine) -> dict[str, float]:  # noqa: ARG001
    """Return how much work one core has, by terms of the cost model: those of hub labels that
    answer, of paths, or of sweeps with the writing or counting of their distances.

    The model (``auto.costs``) multiplies each amount by fitted nanoseconds per unit. ``shape`` is a
    ``Shape`` (size and depth of the graph), and ``machine`` a ``Machine`` (cores and speeds).
    ``group`` is ignored: the time per source does not depend on it.
    """
    # Hub labels answer: the hubs of two labels are merged per pair.
    if shape.is_summed_by_labels:
        pairs = sources_per_worker(n_sources, machine.cores) * shape.per_source
        # The label of a source is laid out once for several targets.
        share = 1.0 if shape.per_source < 2 else _SHARE_OF_LAID_OUT
        return {"merge": share * pairs * shape.hubs}
    # Paths: "lookup" counts vertices of the first path of a source, "chain" those of all its paths.
    if shape.keep == "paths":
        per_worker = sources_per_worker(n_sources, machine.cores)
        hops = shape.likely_depth / 2  # of a path between two random vertices
        if shape.hubs:
            hops *= _SHARE_BY_LABELS
        return {"lookup": per_worker * hops, "chain": per_worker * shape.per_source * hops}
    # Sweeps. A group that is smaller than the lanes takes as long as a full one.
    per_worker = sources_per_worker(-(-n_sources // _LANES) * _LANES, machine.cores)
    # With targets only the part of the hierarchy above them is swept, which takes about as long as
    # the search upward. Finding that part once visits the vertices.
    if shape.keep == "targets":
        return {"start": 2 * per_worker, "clear": shape.n_vertices}
    return {
        "start": per_worker,  # searches upward
        # sums that are lowered, distances that are written, and distances that are counted by level
        "vertex": per_worker * shape.n_vertices,
        "write": per_worker * shape.n_vertices * (shape.keep == "all"),
        "count": per_worker * shape.n_vertices * (shape.keep == "counts"),
    }


def plan(graph, query, group: int):
    """Allocate what sweeps or lookups need; return ``traverse(sources, lists=None)`` for up to
    ``group`` vertex numbers at once.

    ``graph`` is a ``Graph`` that has a hierarchy of hops, and ``query`` a ``Query``, the options of
    the search.
    """
    hierarchy = graph.derived.known_hierarchy("hops")
    sum_dtype = hierarchy.dtype
    lanes = LANES[sum_dtype]
    doublings = DOUBLINGS[sum_dtype]  # a tuple whose length tells compiled code the lanes
    unreached = UNREACHED[sum_dtype]  # the sum that stands for no path
    # The smallest sum of hops that is no distance of the result, as it is beyond the limit or means
    # unreached.
    if query.limit is None:
        bound = unreached
    else:
        bound = sum_dtype.type(min(int(query.limit) + 1, int(unreached)))
    # Hub labels, if the graph has some and they answer this query faster than a search; else None.
    # ``looks_up``: the targets of each source are few, and are looked up one by one.
    labels = answering_labels(graph, query, "hops")
    if labels is not None or looks_up(query, graph.n_vertices):
        return _plan_lookups(graph, query, bound, labels)

    places, swept, columns = part_to_sweep(hierarchy, query)
    edges = SweepEdges(hierarchy.upward, hierarchy.downward, swept, places)
    # One state per sweep, and not per thread: its lines, the interleaved sums of a sweep, are held
    # until all sweeps have shown which type the distances need.
    n_rows = -(-group // lanes) * lanes
    states = [
        SweepState(graph.n_vertices, swept.offsets.size - 1, sum_dtype)
        for _ in range(n_rows // lanes)
    ]
    counts_only = query.output == "counts"
    # The distances of the result, one row per source, in the narrowest type at first.
    rows = np.empty((0 if counts_only else n_rows, columns.size), hops_dtype(0))
    # No distance of the result exceeds the longest path of the hierarchy, the limit, or the hops of
    # a path through all vertices.
    n_levels = min(hierarchy.longest, int(bound) - 1, graph.n_vertices - 1) + 1
    counts = np.zeros((n_rows if counts_only else 0, n_levels), np.int64)
    n_used = 0  # levels that the last group has counted

    def traverse(sources, lists=None) -> MultiSourceOutcome:  # noqa: ARG001
        """Search from the vertex numbers ``sources``. Return the outcome, a row per source: hops,
        and predecessors if they are wanted; or vertices per level if the query outputs counts.

        ``lists``, the targets of each source if each has its own, are ignored: a sweep reaches all
        vertices, and the caller takes the distances at the targets from the rows.
        """
        nonlocal rows, n_used
        source_numbers = np.asarray(sources, np.int64)
        positions = hierarchy.position[source_numbers].astype(np.int64)
        k = source_numbers.size
        deepest = np.zeros(len(states), np.int64)  # the largest distance of each sweep
        counts[:, :n_used] = 0  # all that the last group has written

        def sweep_line(i: int, _thread: int) -> None:
            """Sweep for the sources of the i-th line: ``lanes`` sources, fewer in the last one."""
            line = slice(i * lanes, (i + 1) * lanes)
            n_sources = positions[line].size
            # It leaves in ``states[i].lines`` a lane of hops per source.
            search(positions[line], edges, states[i].arrays(), unreached, doublings)
            if counts_only:
                deepest[i] = count_hops(states[i].lines, n_sources, bound, counts[line])

        def write_line_rows(i: int, _thread: int) -> None:
            """Write the rows of the sources of the i-th line, in the type that ``rows`` has. If it
            is too narrow, some are left out, and ``deepest`` shows that.
            """
            line = slice(i * lanes, min((i + 1) * lanes, k))
            deepest[i] = write_hops(states[i].lines, columns, rows[line], bound)

        n_sweeps = -(-k // lanes)
        threads.for_each(sweep_line, n_sweeps)
        limits = [query.limit] * k
        rounds = [hierarchy.levels] * k  # a sweep goes through all levels of the hierarchy
        if counts_only:
            n_used = int(deepest.max()) + 1  # level 0 included
            return MultiSourceOutcome(None, None, limits, rounds, counts[:k, :n_used])

        # Rows are written once more if their type turns out to be too narrow.
        threads.for_each(write_line_rows, n_sweeps)
        needed = hops_dtype(int(deepest.max()))
        if needed.itemsize > rows.itemsize:  # kept, as the next group will need it too
            rows = np.empty(rows.shape, needed)
            threads.for_each(write_line_rows, n_sweeps)

        # an earlier group may have needed a wider type
        distance = rows[:k].astype(needed, copy=False)
        # None if the query wants no predecessors.
        predecessor = cpu_steps.point_back(graph, query, source_numbers, distance)
        return MultiSourceOutcome(distance, predecessor, limits, rounds)

    return traverse


def part_to_sweep(hierarchy, query):
    """Return which part of a hierarchy a sweep visits for a query, as places, edges, and columns.

    A position is the number of a vertex in the order of the hierarchy, and a place its number in
    the sweep. Only the positions above a target take part, if there are targets. The places are an
    int32 array of shape (n,): the place of each position, -1 for a position that takes no part. It
    is empty if all positions are swept in their order. The edges lead downward, between places. The
    columns are the place of each column of the result.
    """
    # ``hierarchy.position`` maps vertex numbers to positions.
    if query.output == "targets" and query.targets is not None:
        places, swept = hierarchy.restrict(query.targets)
        return places, swept, places[hierarchy.position[query.targets]]
    return np.empty(0, np.int32), hierarchy.downward, hierarchy.position


def answer_by_labels(labels, query, sources, lists=None):
    """Return the distances from each source to its targets as hub labels give them, int64 sums in
    units of the hierarchy.

    ``labels`` are ``HubLabels``, and ``sources`` k vertex numbers. With ``lists`` each source has
    targets of its own, and the sums have shape (n_targets,), one list after the other. Else all
    sources have the targets of the query, and the shape is (k, n_targets).
    """
    source_numbers = np.asarray(sources)
    if lists is not None:
        return labels.to_lists(source_numbers, *lists)  # their offsets and vertices
    # The targets of the query, as a list per source.
    offsets = np.arange(source_numbers.size + 1) * query.targets.size
    sums = labels.to_lists(source_numbers, offsets, np.tile(query.targets, source_numbers.size))
    return sums.reshape(source_numbers.size, query.targets.size)


def _plan_lookups(graph, query, bound, labels):
    """Return ``traverse(sources, lists=None)``, which looks up the hops to the targets of each
    source, and paths to them if the query asks for these.

    ``bound`` is the smallest sum that is no distance of the result. ``labels`` are the hub labels
    that answer, or None if the hierarchy does.
    """
    hierarchy = graph.derived.known_hierarchy("hops")
    finds_paths = query.output == "paths"
    lookups = None
    if finds_paths or labels is None:
        lookups = Lookups(graph, hierarchy, None, labels)  # None: no weights, as hops count 1

    def traverse(sources, lists=None) -> MultiSourceOutcome:
        """Look up the targets of the vertex numbers ``sources``. Return the outcome: the hops to
        the targets, and if the query outputs paths, these as ``routes``.

        ``lists`` (``TargetLists``) are the targets of each source: the hops are one array, list
        after list. With None all sources have the targets of the query, and the hops a row per
        source.
        """
        routes = None
        # Labels alone give distances. Paths, and distances without labels, take lookups.
        if lookups is None:
            sums = answer_by_labels(labels, query, sources, lists)
        else:
            sums, *sizes_and_vertices = lookups.look_up_lists(sources, lists, bound, finds_paths)
            if finds_paths:
                routes = Routes(*sizes_and_vertices)
        distance = np.where(sums < bound, sums, NO_HOPS)
        distance = distance.astype(hops_dtype(int(distance.max(initial=0))))
        limits = [query.limit] * len(sources)
        rounds = [hierarchy.levels] * len(sources)
        return MultiSourceOutcome(distance, None, limits, rounds, routes=routes)

    return traverse
