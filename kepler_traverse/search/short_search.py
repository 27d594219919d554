"""Strategies for many sources whose searches touch only what they reach; one core per source.

A heap (Dijkstra 1959) or a queue (BFS) per core, and rows of the vertices reached in place of arrays over all vertices: for
searches that end early, within a limit or at targets nearby.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .._arrays import MAX_HOP_COUNT, UNREACHED, as_distance, hops_dtype
from ..cpu import short_search as cpu
from ..cpu import threads
from .query import Query, TargetLists
from .sparse import SparseDistances, offsets_of
from .strategy import MultiSourceOutcome, MultiSourceStrategy, Shape, sources_per_worker

SOURCES = 1 << 14  # of a group
_ROWS_PER_CORE = 16  # sources of a group that are taken whatever memory their rows need
_MOST = 1 << 28  # bytes of the rows of larger groups
_AT_ONCE = 128  # sources that a thread takes at a time
_NO_END = np.iinfo(np.int64).max
_TOO_LARGE = 1 << 62  # bytes
SAMPLE, _SEED = 64, 7  # sources whose reach is measured


def group_size(n_sources: int) -> int:
    """Sources per group."""
    return min(n_sources, SOURCES)


def memory(shape: Shape, query: Query, group: int) -> int:
    """Bytes of a run: marks of each vertex per core, and what the searches of a group reach."""
    width = shape.weight or 4
    marks = threads.count() * shape.n_vertices * (width + 1)
    if query.output == "targets":
        return marks
    marks += int(8 * group * min(shape.depth, query.limit or shape.depth)) if query.output == "counts" else 0
    rows = int(2 * group * shape.n_vertices * shape.reach * (shape.index + width))
    if query.output == "all" and ("sparse" not in query.forms or query.predecessors):
        rows += group * shape.n_vertices * (width + shape.index * query.predecessors)
    # Larger groups save nothing per source, and those whose rows leave the cache take longer.
    is_small = group <= _ROWS_PER_CORE * threads.count()
    return marks + rows if rows <= _MOST or is_small else _TOO_LARGE


def terms(shape: Shape, n_sources: int, _group: int, machine: Any) -> dict[str, float]:
    """Amounts of the terms of the cost: what the searches reach, over the cores."""
    per_worker = sources_per_worker(n_sources, machine.cores)
    reached = shape.n_vertices * shape.reach
    return {
        "start": per_worker,
        "vertex": per_worker * reached,
        "sort": per_worker * reached * math.log2(1 + reached),
        "edge": per_worker * shape.n_edges * shape.walked,
    }


def strategy(**of_algorithm: Any) -> MultiSourceStrategy:
    """Return the strategy of an algorithm: its plan, needs, paper and complexity, and what all algorithms share."""
    return MultiSourceStrategy(
        name="short_search",
        device="cpu",
        memory=memory,
        group_size=group_size,
        terms=terms,
        takes_target_lists=True,
        rationale="a search touches only what it reaches: for those that end early, by a limit or at targets nearby",
        default=True,
        **of_algorithm,
    )


class Kernel(NamedTuple):
    """The search of an algorithm: a compiled function, weights (empty for hops), and numbers of the type of distances."""

    search: Any
    weights: Any
    limit: Any
    unreached: Any


def kernel_of(graph: Any, query: Query, counts_hops: bool) -> Kernel:
    if counts_hops:
        limit = np.int32(MAX_HOP_COUNT if query.limit is None else min(query.limit, MAX_HOP_COUNT))
        return Kernel(cpu.search_hops, np.empty(0, np.int32), limit, np.int32(UNREACHED))
    kind = graph.weights.dtype
    limit = as_distance(np.inf if query.limit is None else query.limit, kind)
    return Kernel(cpu.search_sums, graph.weights, limit, kind.type(np.inf))


def plan(graph: Any, query: Query, counts_hops: bool, point_back: Any, overflow_error: Any = None) -> Any:
    """Return ``traverse(sources, lists=None)``.

    Parameters
    ----------
    graph : Graph
    query : Query
    counts_hops : bool
    point_back : callable
        ``point_back(graph, sources, distance)`` returns the predecessors of distances to all vertices.
    overflow_error : callable, optional
        ``overflow_error(graph)`` returns the error for a distance beyond the type of the weights.
    """
    n, (search, weights, limit, unreached) = graph.n_vertices, kernel_of(graph, query, counts_hops)
    kind = unreached.dtype
    marks: list[Any] = [None] * threads.max_threads()
    shared = np.empty(0, np.int64) if query.targets is None else query.targets
    is_at_targets, is_sorted = query.output == "targets", query.output == "all"

    def narrowest(rows: Any) -> Any:
        return rows.astype(hops_dtype(int(rows.max(initial=0))), copy=False) if counts_hops else rows

    def traverse(sources: Any, lists: TargetLists | None = None) -> MultiSourceOutcome:
        sources = np.asarray(sources, np.int64)
        k = sources.size
        limits = np.full(k, limit, kind)
        values = shared if lists is None else lists.vertices
        list_of = np.empty((k, 2), np.int64)
        list_of[:, 0], list_of[:, 1] = (0, shared.size) if lists is None else (lists.offsets[:-1], lists.offsets[1:])
        answers = np.arange(k) * shared.size if lists is None else lists.offsets[:-1]
        shape = (k, shared.size) if lists is None else (values.size,)
        at_targets = np.full(shape if is_at_targets else 0, unreached, kind)
        parts: list[Any] = [None] * -(-k // _AT_ONCE)

        def search_some(item: int, thread: int) -> None:
            if marks[thread] is None:
                marks[thread] = np.full(n, unreached, kind), np.zeros(n, np.uint8)
            part = slice(item * _AT_ONCE, (item + 1) * _AT_ONCE)
            wanted = limits[part], values, list_of[part], is_sorted, at_targets.reshape(-1), answers[part]
            parts[item] = search(graph.offsets, graph.targets, weights, sources[part], *wanted, _NO_END, *marks[thread])

        threads.for_each(search_some, len(parts))
        sizes, vertices, distance, stops = (np.concatenate([part[i] for part in parts]) for i in range(4))
        if overflow_error is not None and np.isnan(stops).any():
            raise overflow_error(graph)
        found = SparseDistances(offsets_of(sizes), vertices, distance, n)
        ends = [query.limit if stop == limit else stop for stop in stops.tolist()]
        rounds = [1] * k
        if is_at_targets:
            return MultiSourceOutcome(narrowest(at_targets), None, ends, rounds)
        if query.output == "counts":  # what the rows hold then
            counts = np.zeros((k, int(sizes.max(initial=1))), np.int64)
            counts[found.rows_of_entries(), np.arange(distance.size) - np.repeat(found.offsets[:-1], sizes)] = distance
            return MultiSourceOutcome(None, None, ends, rounds, counts)
        if "sparse" in query.forms and not query.predecessors:
            return MultiSourceOutcome(found, None, ends, rounds)
        rows = narrowest(found.rows())
        return MultiSourceOutcome(rows, point_back(graph, sources, rows) if query.predecessors else None, ends, rounds)

    return traverse


def sampled(graph: Any, shape: Shape, query: Query, counts_hops: bool, most: int) -> Shape:
    """Return the shape with the reach of searches that end early, measured on a few of them.

    It stays as it is where these walk more than ``most`` edges, all together.
    """
    n, (search, weights, limit, unreached) = graph.n_vertices, kernel_of(graph, query, counts_hops)
    if query.sample is not None:
        sources, lists = query.sample
        values, list_of = lists.vertices, np.stack([lists.offsets[:-1], lists.offsets[1:]], axis=1)
    else:
        sources = np.unique(np.random.default_rng(_SEED).integers(0, n, SAMPLE))
        values = np.empty(0, np.int64) if query.targets is None else query.targets
        list_of = np.tile(np.array([0, values.size], np.int64), (sources.size, 1))
    kind, k = unreached.dtype, sources.size
    wanted = np.full(k, limit, kind), values, list_of, True, np.empty(0, kind), np.zeros(k, np.int64), most
    marks = np.full(n, unreached, kind), np.zeros(n, np.uint8)
    sizes, _, _, _, walked = search(graph.offsets, graph.targets, weights, sources, *wanted, *marks)
    if walked > most or not k:
        return shape
    return shape._replace(reach=float(sizes.mean()) / n, walked=walked / (k * max(graph.n_edges, 1)), is_short=True)
