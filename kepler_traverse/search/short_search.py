"""Strategies for many sources whose searches touch only what they reach; one core per source.

A queue (BFS) or buckets (delta-stepping) per core, and rows of the vertices reached in place of
arrays over all vertices: for searches that end early, within a limit or at targets nearby. Weighted
searches from sources near each other are made together.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .._arrays import (
    MAX_HOP_COUNT,
    as_distance,
    as_distances,
    compute_mean,
    hops_dtype,
    make_offsets,
    namespace,
    positions_in_groups,
    unreached_value,
)
from ..cpu import short_search as cpu
from ..cpu import threads
from ..cpu.edges import Neighbors
from ..cuda import short_search as on_gpu
from .query import Query, TargetLists
from .sparse import Marks, SparseDistances
from .strategy import MultiSourceOutcome, MultiSourceStrategy, Shape, sources_per_worker

SOURCES = 1 << 14  # largest number of sources of a group
_ROWS_PER_CORE = 16  # sources of a group that are taken whatever memory their rows need
# bytes of the rows of larger groups; hops gain less by these than the cache loses
_MAX_ROWS = 1 << 28
_MAX_ROWS_OF_HOPS = 1 << 26
_AT_ONCE = 512  # sources that a thread takes at a time
_NO_END = np.iinfo(np.int64).max
_TOO_LARGE = 1 << 62  # bytes that no memory has, so that a smaller group is taken
_MARKS = 9  # bytes of ``Marks`` of a vertex, per core
# A line is the sources that are searched from together (``cpu.short_search``).
_PER_LINE = 64  # bytes of a vertex that searches of a line reach, besides its distances
_CAPACITY = 1 << 10  # vertices for which the first search of a line has memory
_WEIGHTS = 1 << 10  # weights from which their mean is estimated
_BUCKETS_PER_EDGE = 2.0  # buckets that an edge of mean weight spans
SAMPLE = 64  # sources whose reach is measured
_FEW_SAMPLES = 3  # sources whose reach is enough to know where searches end at the nearest
_SEED = 7  # of the sample of sources, so that all runs take the same
_TIERS = len(on_gpu.IN_SHARED)  # table sizes in shared memory: all that short searches need
# on a GPU, the largest number of sources of a group, and bytes of the rows of larger groups
_SOURCES_ON_GPU = 1 << 19
_MAX_BYTES_ON_GPU = 1 << 30

# ``search(sources, lists, limits)`` searches from vertex numbers, with targets and limits of each.
# It returns the reached vertices with their distances, the distances at the targets (None, or an
# empty array, where they are not asked for), and up to which distance each search is complete.
Search = Callable[
    [np.ndarray, TargetLists | None, np.ndarray], tuple[SparseDistances, Any, np.ndarray]
]


# sources per group
group_size = partial(min, SOURCES)
group_size_on_gpu = partial(min, _SOURCES_ON_GPU)


def memory(shape: Shape, query: Query, group: int) -> int:
    """Return the bytes that searches from a group of ``group`` sources take on a CPU: marks of each
    vertex per core, and the rows of what they reach. ``shape`` describes the graph and the reach of
    the searches, and ``query`` what they return.

    For a group whose rows would be too large, return more than any memory has, so that a smaller
    group is taken.
    """
    distance_bytes = shape.weight or 4  # hops, for which ``weight`` is 0, are int32
    reached = shape.n_vertices * shape.reach  # vertices that one search reaches

    # What each thread has: marks, and for weighted searches a table with a line of distances per
    # vertex that any of ``line`` sources reaches. The table may double when it is full.
    marks = _MARKS * threads.count() * shape.n_vertices
    if shape.weight:
        line = 1 << len(cpu.LINE)  # ``LINE`` is a tuple whose length is the binary logarithm
        n_lines = threads.count() * 2 * min(line * reached, shape.n_vertices)
        marks += int(n_lines * (line * distance_bytes + _PER_LINE))
    if query.output == "targets":
        return marks

    # Rows are written to arrays of the threads, which grow, and then copied to those of the group.
    # The factor counts both.
    # A vertex of a row has its number and perhaps its predecessor, of ``shape.index`` bytes each,
    # and its distance.
    row = (shape.index * (1 + query.predecessors) + distance_bytes) * reached
    # Numbers of vertices per level: there are no more levels than vertices are reached, than the
    # deepest search had (0 if none was made), or than the limit allows.
    if query.output == "counts":
        n_levels = min(reached, shape.depth or reached, query.limit or reached)
        row = (shape.index + distance_bytes) * n_levels
    rows = int(2.5 * group * row)
    # Where the caller takes no sparse form, the rows are spread to arrays over all vertices.
    if query.output in ("all", "paths") and "sparse" not in query.forms:
        rows += group * shape.n_vertices * (distance_bytes + shape.index * query.predecessors)

    # Larger groups save nothing per source, and those whose rows leave the cache take longer.
    is_small = group <= _ROWS_PER_CORE * threads.count()
    max_rows = _MAX_ROWS if shape.weight else _MAX_ROWS_OF_HOPS
    if rows <= max_rows or is_small:
        return marks + rows
    return _TOO_LARGE


def terms(shape: Shape, n_sources: int, _group: int, machine: Any) -> dict[str, float]:
    """Return how much of each term of the cost model the searches from ``n_sources`` sources take
    on a CPU, as amounts of one core.

    The terms count searches (``start``), vertices reached (``vertex``), steps of sorting them
    (``sort``), edges visited (``edge``), and loads that come from memory (``fetch``). ``shape``
    describes the graph and the reach of the searches. The size of a group is ignored: the cost per
    source does not depend on it. ``machine`` is a ``Machine`` of ``auto.costs``.
    """
    # ``reach`` and ``walked`` are shares of the vertices and of the edges that a search visits.
    per_worker = sources_per_worker(n_sources, machine.cores)
    reached = shape.n_vertices * shape.reach
    return {
        "start": per_worker,
        "vertex": per_worker * reached,
        # the rows of a result are sorted by vertex; numbers of vertices per level have no rows
        "sort": per_worker * reached * math.log2(1 + reached) * (shape.keep != "counts"),
        "edge": per_worker * shape.n_edges * shape.walked,
        # The second argument is the bytes per vertex that an edge reads of the search itself.
        "fetch": per_worker * shape.fetches(machine, _MARKS),
    }


def terms_of_sums(shape: Shape, n_sources: int, group: int, machine: Any) -> dict[str, float]:
    """Return the same as ``terms`` for weighted searches, where searches from sources near each
    other are made together, as a line; and ``miss``, the loads that miss the cache of a core.

    The arguments are those of ``terms``: ``shape`` describes the graph and the reach of a search,
    ``n_sources`` is the number of sources of the run, and ``group`` makes no difference.

    The estimate takes sources as spread evenly over a plane, and what a search reaches as a disk.
    """
    amounts = terms(shape, n_sources, group, machine)
    reached = shape.n_vertices * shape.reach
    vertices_per_source = shape.n_vertices / max(n_sources, 1)
    # Sources are joined to lines where each has another within the ``LOOKS`` vertices that are
    # looked at around it. The lengths of ``LINE`` and ``ALONE`` are binary logarithms of sources.
    line = 1 << len(cpu.LINE if vertices_per_source <= cpu.LOOKS else cpu.ALONE)
    # The area of a disk grows with the square of its radius, so that square roots of numbers of
    # vertices add up as radii do.
    if line > 1:
        # a disk as large as what one search reaches, with the sources of the line at its center
        reached_together = (math.sqrt(reached) + math.sqrt(line * vertices_per_source)) ** 2
    else:
        reached_together = reached
    # An edge is read once for all sources of the line: ``share`` is what remains of the reads.
    share = min(1.0, reached_together / max(line * reached, 1.0))
    per_worker = sources_per_worker(n_sources, machine.cores)
    return amounts | {
        "edge": amounts["edge"] * share,
        "fetch": per_worker * share * shape.fetches(machine, _MARKS + line * shape.weight),
        "miss": amounts["vertex"]
        * machine.share_of_misses(reached_together * (line * shape.weight + _PER_LINE)),
    }


def memory_on_gpu(shape: Shape, query: Query, group: int) -> int:
    """Return the bytes that searches from a group of ``group`` sources take on a GPU: tables in
    global memory, and rows, which are put into the order of the sources. ``shape`` describes the
    graph and the reach of the searches, and ``query`` what they return.

    For a group whose rows would be too large, return more than any memory has, so that a smaller
    group is taken.
    """
    distance_bytes = shape.weight or 4  # hops, for which ``weight`` is 0, are int32
    # Rows exist twice while they are put into the order of the sources: as the searches have
    # written them, and in their places. The rest of the factor is a margin.
    rows = int(2.25 * group * shape.n_vertices * shape.reach * (shape.index + distance_bytes))
    if query.output == "all" and "sparse" not in query.forms:
        rows += group * shape.n_vertices * (distance_bytes + shape.index * query.predecessors)
    if rows <= _MAX_BYTES_ON_GPU or group <= _ROWS_PER_CORE:
        return on_gpu.MAX_TABLE_BYTES + rows
    return _TOO_LARGE


def terms_on_gpu(shape: Shape, n_sources: int, group: int, _machine: Any) -> dict[str, float]:
    """Return how much of each term of the cost model the searches from ``n_sources`` sources take
    on a GPU, in groups of ``group``. ``shape`` describes the graph and the reach of the searches.
    The machine is ignored: amounts are those of all searches together.

    A search keeps what it reaches in a table, in the shared memory of a multiprocessor or, if it is
    too large, in global memory. The terms count groups (``level``), searches (``start``), vertices
    reached (``vertex``), those of searches with a large table (``spill``), those that are lowered
    again in global memory (``again``), and vertices that one block reaches after another
    (``chain``).
    """
    reached = shape.n_vertices * shape.reach
    # the slots of the largest table in shared memory, and an eighth: larger tables leave each
    # multiprocessor with few searches at once
    max_in_shared = 1 << on_gpu.IN_SHARED[-1].log_capacity
    max_of_many = max_in_shared >> 3
    # of a table in global memory, with two slots per vertex
    table_bytes = 2 * max(reached, 1.0) * on_gpu.bytes_per_slot(shape.weight or 4, False)
    # All tables in global memory have ``MAX_TABLE_BYTES`` together.
    searches_at_once = max(1.0, on_gpu.MAX_TABLE_BYTES / table_bytes)
    return {
        "level": n_sources / group,
        "start": n_sources,
        "vertex": n_sources * reached,
        "spill": n_sources * reached * (reached > max_of_many),
        # In tables of global memory a vertex is lowered more often the farther a search goes: the
        # logarithm is below 0, and counts as 0, where the table is in shared memory.
        "again": n_sources * reached * max(0.0, math.log2(max(reached, 1.0) / max_in_shared)),
        # the vertices of one search, times the turns that the searches take where few fit at once
        "chain": reached
        * (max(1.0, n_sources / searches_at_once) if reached > max_in_shared else 1.0),
    }


def kernels(graph: Any, query: Query, group: int, counts_hops: bool) -> list[Any]:  # noqa: ARG001
    """Return requests for the kernels that a plan will need, so that they can be compiled before
    the plan is made.

    The kernels depend on the type of the distances alone: int32 if ``counts_hops``, else that of
    the weights. So ``query`` and ``group`` are ignored.
    """
    return on_gpu.likely_kernels(np.dtype(np.int32) if counts_hops else graph.weights.dtype)


def strategies(
    needs: frozenset[str] = frozenset(),
    overflow_error: Callable[[Any], Exception] | None = None,
    **fields: Any,
) -> tuple[MultiSourceStrategy, ...]:
    """Return the strategies of an algorithm that search in this way, one per device.

    ``needs`` are the requirements of ``BaseStrategy.needs``; with "weights" distances are sums of
    weights. ``overflow_error(graph)`` returns the error for a distance beyond the type of the
    weights. ``fields`` are fields of both strategies.
    """
    # What both strategies have in common; they differ in their estimates, and in what they need.
    counts_hops = "weights" not in needs
    fields |= {
        "name": "short_search",
        "default": True,
        "takes_target_lists": True,
        "ends_at_nearest": True,
    }
    fields["plan"] = lambda graph, query, _group: plan(graph, query, counts_hops, overflow_error)
    fields["rationale"] = (
        "a search touches only what it reaches: for those that end "
        "early, by a limit or at targets nearby"
    )

    return (
        MultiSourceStrategy(
            device="cpu",
            needs=needs,
            memory=memory,
            group_size=group_size,
            terms=terms if counts_hops else terms_of_sums,
            **fields,
        ),
        MultiSourceStrategy(
            device="cuda",
            edges="any",  # in the memory of the GPU, or in that of the host
            needs=needs | {"narrow"},  # the kernels take vertex numbers of 32 bits
            memory=memory_on_gpu,
            group_size=group_size_on_gpu,
            terms=terms_on_gpu,
            kernels=partial(kernels, counts_hops=counts_hops),
            **fields,
        ),
    )


def largest_distance(graph: Any, query: Query, counts_hops: bool) -> Any:
    """Return the limit of the query as a scalar in the type of the distances: int32 if
    ``counts_hops``, else the type of the weights.

    Without a limit, it is the largest hop count, or infinity.
    """
    if counts_hops:
        return np.int32(MAX_HOP_COUNT if query.limit is None else min(query.limit, MAX_HOP_COUNT))
    return as_distance(query.limit, graph.weights.dtype)


class _LineSearch:
    """Searches on a CPU from the sources of a line, which are searched from together. Each thread
    calls with arrays of its own (``Marks``).

    - ``_capacity``: for how many vertices the table of the next search has memory at first: as many
      as that of the last search had at its end.
    - ``_buckets_per_unit``: of the type of the weights: how many buckets a unit of distance spans.
      Vertices are taken bucket by bucket. Only weighted searches have it.
    """

    def __init__(self, graph: Any, counts_hops: bool):
        """Prepare searches in ``graph``, of hops or of sums of weights, as ``counts_hops`` says."""
        self._graph = graph
        self._counts_hops = counts_hops
        self._capacity = _CAPACITY
        # An edge of mean weight spans a fixed number of buckets. The mean is that of some weights.
        if not counts_hops:
            weights = graph.weights[:: max(1, graph.n_edges // _WEIGHTS)]
            mean = compute_mean(weights)
            dtype = graph.weights.dtype
            buckets_per_unit = 1.0
            if mean > _BUCKETS_PER_EDGE / np.finfo(dtype).max:  # else the quotient overflows
                buckets_per_unit = _BUCKETS_PER_EDGE / mean
            self._buckets_per_unit = dtype.type(buckets_per_unit)

    def __call__(
        self, line: tuple[int, ...], marks: tuple[np.ndarray, ...], wanted: cpu.Wanted
    ) -> tuple[Any, ...]:
        """Search, and return the number of vertices that each source reaches, these vertices, their
        distances, up to which distance each search is complete, and the number of edges visited, as
        ``cpu.search_sums`` does.

        The length of ``line`` is the binary logarithm of the number of sources that are searched
        from together; hops ignore it. ``marks`` are the arrays that ``Marks`` lends. ``wanted``
        says from which sources to search, and where the searches end.
        """
        graph = self._graph
        place, mark, stamp = marks
        if self._counts_hops:
            return cpu.search_hops(Neighbors.of(graph), wanted, mark, stamp)
        edges = cpu.BucketedEdges(
            graph.offsets, graph.targets, graph.weights, self._buckets_per_unit
        )
        *results, self._capacity = cpu.search_sums(edges, wanted, self._capacity, place, line)
        return tuple(results)


def plan(graph: Any, query: Query, counts_hops: bool, overflow_error: Any = None) -> Any:
    """Return ``traverse(sources, lists=None)``, which searches from a group of vertex numbers,
    perhaps with targets of each, and returns a ``MultiSourceOutcome``.

    The vertices reached, and their distances, come to host memory also from a GPU, and everything
    is computed of them there. ``query`` says what the outcome has, and ``counts_hops`` whether
    distances are numbers of edges. ``overflow_error(graph)`` returns the error for a distance
    beyond the type of the weights; None where there is no such distance.
    """
    is_on_gpu = graph.device == "cuda"
    plan_search = _search_on_gpu if is_on_gpu else _search_on_cpu
    search_group = plan_search(graph, query, counts_hops)
    limit = largest_distance(graph, query, counts_hops)
    move = namespace(graph.offsets).asarray

    def narrow(rows: Any) -> Any:
        """Return ``rows``, an array of distances, in the narrowest type if they are hops; weighted
        distances as they are.
        """
        if counts_hops:
            return rows.astype(hops_dtype(int(rows.max(initial=0))), copy=False)
        return rows

    def traverse(sources: Any, lists: TargetLists | None = None) -> MultiSourceOutcome:
        """Search from a group of ``sources``, vertex numbers, and return what the query asks for:
        distances at targets, numbers of vertices per level, or the distances of what is reached,
        sparse or in an array with a row per source.

        ``lists`` has targets of each source; None: those of the query, if there are some.
        """
        # A copy in C order: compiled code is compiled again for another layout.
        sources = np.array(sources, np.int64)
        result_limits: list[Any] = [query.limit] * sources.size
        bounds = np.full(sources.size, limit)
        if query.limits is not None:
            result_limits = query.limits.of(sources)
            bounds = as_distances(result_limits, limit.dtype)
        # the reached vertices with their distances, in host memory; the distances at the targets,
        # None or empty where they are not asked for; and up to where each search is complete
        reached, at_targets, stops = search_group(sources, lists, bounds)

        # A search without an end, which has stopped at infinity, must not meet a distance that is
        # too large for its type. Other searches may stop before such a distance.
        if overflow_error is not None and _may_overflow(graph, query, counts_hops):
            host = graph.derived.on_host
            edges = host.offsets, host.targets, host.weights
            # ``reached[i]`` has the distances from source i to all vertices, infinite elsewhere.
            for i in np.flatnonzero(np.isinf(stops)).tolist():
                if cpu.has_overflow(
                    *edges, reached.vertices, *reached.offsets[i : i + 2], reached[i]
                ):
                    raise overflow_error(graph)

        # Where a search has stopped before its limit, its result is complete up to that distance
        # only: this is the limit of the result.
        rounds = [1] * sources.size
        for i in np.flatnonzero(stops != bounds).tolist():
            result_limits[i] = stops[i].item()

        if query.output == "targets" and query.nearest is None:
            return MultiSourceOutcome(move(narrow(at_targets)), None, result_limits, rounds)
        if query.output == "counts":
            if is_on_gpu:
                counts = np.concatenate(
                    [counts for counts, _ in reached.levels(graph.offsets, None)]
                )
            # The search has written counts per level in place of distances: entry j of a row is
            # the number of vertices at j hops.
            else:
                counts = np.zeros((len(reached), int(reached.sizes.max(initial=1))), np.int64)
                counts[reached.rows_of_entries(), positions_in_groups(reached.sizes)] = (
                    reached.distance
                )
            return MultiSourceOutcome(None, None, result_limits, rounds, counts)

        # Predecessors follow from the distances. ``query.forms`` has the forms, besides arrays of
        # rows, that the caller can read.
        if query.predecessors:
            reached = reached.point_back(graph, sources)
        if "sparse" in query.forms:
            return MultiSourceOutcome(reached, None, result_limits, rounds)

        predecessor = reached.predecessor_rows()
        if predecessor is not None:
            predecessor = move(predecessor)
        rows = move(narrow(reached.rows()))
        return MultiSourceOutcome(rows, predecessor, result_limits, rounds)

    return traverse


def _search_on_cpu(graph: Any, query: Query, counts_hops: bool) -> Search:
    """Return the ``Search`` of a plan on a CPU, whose memory its searches share. ``query`` says
    what is kept of what they reach, and ``counts_hops`` whether distances are numbers of edges.
    """
    n = graph.n_vertices
    dtype = largest_distance(graph, query, counts_hops).dtype
    marks = Marks(n)
    search_line = _LineSearch(graph, counts_hops)
    goals = make_goals(graph, query)
    # What the searches keep of the vertices that they reach: all of them (``ROWS``); how many are
    # at each level; the goals among them, the targets at which a search may end; or nothing.
    keep = cpu.ROWS
    if query.output == "counts" and query.nearest is None:
        keep = cpu.COUNTS
    elif query.output == "targets" and query.nearest is not None:
        keep = cpu.GOALS
    elif query.output == "targets" and not _may_overflow(graph, query, counts_hops):
        keep = cpu.NOTHING  # but where a distance overflows, rows show it

    def search_group(
        sources: np.ndarray, lists: Any, limits: np.ndarray
    ) -> tuple[SparseDistances, Any, np.ndarray]:
        """Search from a group of sources, in parts that threads take.

        ``lists`` are ``TargetLists`` or None. ``limits`` has the largest distance of each source,
        in the type of the distances. Return the reached vertices with their distances, the
        distances at the targets, and up to where each search is complete.
        """
        # Where the distances at the targets of each source begin in ``at_targets``, flattened. All
        # sources have the same targets, or each has its own.
        k = sources.size
        list_values, list_of = _flatten_lists(query, lists, k)
        if lists is None:
            first_answer = np.arange(k) * list_values.size
        else:
            first_answer = lists.offsets[:-1]
        shape = (k, list_values.size) if lists is None else (list_values.size,)
        is_at_targets = query.output == "targets" and query.nearest is None
        at_targets = np.full(shape if is_at_targets else 0, unreached_value(dtype), dtype)

        # Sources near each other are searched from one after the other: they find in the caches
        # what the one before has loaded. Weighted searches are made together, as lines, if more
        # than half of the sources are near an earlier one.
        source_order = np.argsort(sources)
        line = cpu.ALONE
        if not counts_hops:
            with marks.lent() as thread_marks:
                near_order, n_near = cpu.near_each_other(
                    graph.offsets, graph.targets, sources[source_order], *thread_marks[:2]
                )
            source_order = source_order[near_order]
            line = cpu.LINE if 2 * n_near > k else cpu.ALONE

        # Each thread gets four parts or more, so that threads end at about the same time. Parts
        # consist of whole lines: at least one, and at most ``_AT_ONCE`` sources.
        line_size = 1 << len(cpu.LINE)
        whole_lines = k // (4 * threads.count()) // line_size * line_size
        part_size = max(line_size, min(_AT_ONCE, whole_lines))
        part_rows: list[Any] = [None] * -(-k // part_size)
        sizes = np.empty(k, np.int64)
        stops = np.empty(k, dtype)

        def search_part(item: int, _thread: int) -> None:
            """Search from the sources of part ``item``, and keep its rows, sizes and ends. The
            number of the thread is ignored: ``marks`` lends scratch to any thread.
            """
            part = source_order[item * part_size : (item + 1) * part_size]
            # ``_NO_END``: the searches may visit any number of edges.
            of_lists = list_values, list_of[part], keep, at_targets.reshape(-1), first_answer[part]
            wanted = cpu.Wanted(sources[part], limits[part], *of_lists, _NO_END, goals)
            with marks.lent() as thread_marks:
                sizes[part], *part_rows[item], stops[part], _ = search_line(
                    line, thread_marks, wanted
                )

        threads.for_each(search_part, len(part_rows))

        # Rows go to the places of their sources, which are known once all sizes are.
        offsets = make_offsets(sizes)
        vertices = np.empty(offsets[-1], graph.targets.dtype)
        distance = np.empty(offsets[-1], dtype)

        def put_part(item: int, _thread: int) -> None:
            """Copy the rows of part ``item`` to the places of their sources. The number of the
            thread is ignored: no scratch is needed.
            """
            part = source_order[item * part_size : (item + 1) * part_size]
            cpu.put_rows(*part_rows[item], sizes[part], offsets[part], vertices, distance)
            part_rows[item] = None  # frees them

        threads.for_each(put_part, len(part_rows))
        return SparseDistances(offsets, vertices, distance, n, marks=marks), at_targets, stops

    return search_group


def _flatten_lists(
    query: Query, lists: TargetLists | None, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the targets of ``k`` sources, and where the list of each source begins and ends among
    them: int64 arrays of shape (n_targets,) and (k, 2), as ``lists`` and ``list_of`` of
    ``cpu.Wanted``.

    Without ``lists``, all sources have the targets of the query. There are none if the nearest ones
    are asked for, at which searches end in another way.
    """
    if lists is not None:
        return lists.vertices, np.stack([lists.offsets[:-1], lists.offsets[1:]], axis=1)
    has_shared_targets = query.targets is not None and query.nearest is None
    values: Any = query.targets if has_shared_targets else np.empty(0, np.int64)
    # Without lists, each source has the same list, which begins at 0 and ends at its size.
    return values, np.tile(np.array([0, values.size], np.int64), (k, 1))


def make_goals(graph: Any, query: Query) -> cpu.Goals:
    """Return the targets at the nearest of which searches end, as ``cpu.Goals``: of each vertex the
    groups of targets that it is in, and how many targets each group needs. All arrays are empty if
    the query asks for no nearest targets.
    """
    if query.nearest is None:
        return cpu.NO_GOALS
    k = query.nearest.k
    members = query.nearest.members
    # One entry per target and group, sorted by target. ``first_group`` says where the entries of
    # each vertex begin.
    vertices = np.concatenate(members)
    groups = np.repeat(np.arange(len(members)), [group.size for group in members])
    order = np.argsort(vertices, kind="stable")
    first_group = make_offsets(np.bincount(vertices, minlength=graph.n_vertices))
    n_needed = [min(k, group.size) for group in members]
    return cpu.Goals(
        first_group.astype(np.int32), groups[order].astype(np.int32), np.array(n_needed, np.int32)
    )


def _may_overflow(graph: Any, query: Query, counts_hops: bool) -> bool:
    """Return whether a distance may exceed the largest number of its type: only without a limit in
    ``query``, and if a path of the heaviest edges may. Hops, as ``counts_hops`` says, never do.
    """
    if counts_hops or query.limit is not None or not graph.n_edges:
        return False
    return float(graph.derived.heaviest) * graph.n_vertices >= float(
        np.finfo(graph.weights.dtype).max
    )


def _search_on_gpu(graph: Any, query: Query, counts_hops: bool) -> Search:
    """Return the ``Search`` of a plan on a GPU. Distances at targets are looked up among those of
    the reached vertices, in host memory. ``counts_hops`` says whether distances are numbers of
    edges.
    """
    n = graph.n_vertices
    marks = Marks(n)
    searches: Any = _searches_on_gpu(graph, query, counts_hops)

    def search_group(
        sources: np.ndarray, lists: Any, limits: np.ndarray
    ) -> tuple[SparseDistances, Any, np.ndarray]:
        """Search from a group of sources, and return what a ``Search`` returns.

        ``lists`` are ``TargetLists`` or None, and ``limits`` has the largest distance of each
        source.
        """
        k = sources.size
        targets, list_of = _flatten_lists(query, lists, k)
        is_at_targets = query.output == "targets" and query.nearest is None
        # True: the source has targets, or all vertices are wanted
        is_searched = (list_of[:, 0] < list_of[:, 1]) | (not is_at_targets)
        # a limit below 0 makes no search
        searched_to = np.where(is_searched, limits, limits.dtype.type(-1))
        sizes, stops, vertices, distance = searches.rows(sources, searched_to, targets, list_of)
        reached = SparseDistances(make_offsets(sizes), vertices, distance, n, graph, marks)
        stops = np.where(is_searched, stops, limits)
        if not is_at_targets:
            return reached, None, stops

        # without a graph, so that distances stay in host memory
        on_host = SparseDistances(reached.offsets, vertices, distance, n, marks=marks)
        if lists is None:
            rows = np.repeat(np.arange(k), targets.size)
            at_targets = on_host.at_each(rows, np.tile(targets, k)).reshape(k, targets.size)
        else:
            rows = np.repeat(np.arange(k), np.diff(lists.offsets))
            at_targets = on_host.at_each(rows, targets)
        return reached, at_targets, stops

    return search_group


def _searches_on_gpu(graph: Any, query: Query, counts_hops: bool) -> on_gpu.ShortSearches:
    """Return the searches of a plan on a GPU, with the arrays that they use again and again.
    ``query`` has the nearest targets, if any, and ``counts_hops`` says whether distances are
    numbers of edges.
    """
    dtype = largest_distance(graph, query, counts_hops).dtype
    return on_gpu.ShortSearches(
        graph, None if counts_hops else graph.weights, dtype, make_goals(graph, query)
    )


def sample_reach(graph: Any, shape: Shape, query: Query, counts_hops: bool, most: int) -> Shape:
    """Return the shape of a graph with the reach of searches as the query asks for them, measured
    on a few searches.

    ``counts_hops`` says whether distances are numbers of edges. The shape stays as it is if these
    searches visit more than ``most`` edges, all together. For searches that end at the nearest
    targets, it is enough if a few end before ``most`` edges are visited. On a GPU ``most`` is
    ignored: there the shape stays as it is if the searches have neither a limit nor targets, or
    reach too much for the small tables.
    """
    # Search from random vertices. Where each source has its own targets, ``query.sample`` has some
    # of the sources of the run and the lists of their targets: these are searched from instead.
    n = graph.n_vertices
    limit = largest_distance(graph, query, counts_hops)
    sources = np.unique(np.random.default_rng(_SEED).integers(0, n, SAMPLE))
    lists = None
    if query.sample is not None:
        sources = np.ascontiguousarray(query.sample[0])
        lists = query.sample[1]
    k = sources.size
    list_values, list_of = _flatten_lists(query, lists, k)
    limits = np.full(k, limit)

    if graph.device == "cuda":
        rows = None
        if query.limit is not None or list_values.size or query.nearest is not None:
            rows = _searches_on_gpu(graph, query, counts_hops).rows(
                sources, limits, list_values, list_of, _TIERS
            )
        if rows is None:
            return shape
        # the edges that leave the reached vertices
        walked = int(graph.derived.degrees[namespace(graph.offsets).asarray(rows.vertices)].sum())
        measured = _with_reach(shape, rows.sizes, walked)
        # Other strategies take as many rounds as a search of what is reached, not as one of the
        # graph.
        n_vertices = max(rows.vertices.size // sources.size, 1)
        n_edges = walked // sources.size
        rounds = measured._replace(n_vertices=n_vertices, n_edges=n_edges, depth=0).likely_depth
        if counts_hops and query.limit is not None:
            rounds = min(rounds, float(query.limit))
        return measured._replace(rounds=rounds, depth=int(rounds))

    # Rows are kept, but no distances at the targets are written: that array is empty.
    targets_and_rows = (
        list_values,
        list_of,
        cpu.ROWS,
        np.empty(0, limit.dtype),
        np.zeros(k, np.int64),
    )
    wanted = cpu.Wanted(sources, limits, *targets_and_rows, most, make_goals(graph, query))
    # ``ALONE``: each source is searched from alone, and not together with others as a line.
    with Marks(n).lent() as marks:
        sizes, _, _, _, walked = _LineSearch(graph, counts_hops)(cpu.ALONE, marks, wanted)
    if walked > most:
        # The last search that began was stopped: it is left out, with those that did not begin. For
        # searches that end at the nearest targets, few are enough.
        sizes = sizes[: max(np.count_nonzero(sizes) - 1, 0)]
    if query.nearest is None:
        is_enough = walked <= most
    else:
        is_enough = sizes.size >= _FEW_SAMPLES
    if is_enough and sizes.size:
        return _with_reach(shape, sizes, walked)
    return shape


def _with_reach(shape: Shape, sizes: np.ndarray, walked: int) -> Shape:
    """Return the shape with the mean shares of the vertices and of the edges that sampled searches
    reached and visited.

    ``sizes``, int64, has the number of vertices that each search reached, and ``walked`` is the
    number of edges that all of them visited together.
    """
    reach = float(sizes.mean()) / shape.n_vertices
    walked_share = walked / (sizes.size * max(shape.n_edges, 1))
    return shape._replace(reach=reach, walked=walked_share, is_short=True)
