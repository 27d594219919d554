"""The strategy for many sources that repeats a search from one source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .._arrays import hops_dtype, namespace, to_host
from ..graph import Graph
from ..search.algorithms import ALGORITHMS
from ..search.plan import Plan
from ..search.query import Query
from ..search.results import Traversal
from ..search.strategy import (
    MultiSourceOutcome,
    MultiSourceSearch,
    MultiSourceStrategy,
    Shape,
    Strategy,
)

ONE_AT_A_TIME = "one_at_a_time"
MAX_GROUP = 16  # maximum number of sources in a group
_STATE = 9  # bytes of a search per vertex: its distance, a number in a queue, a mark
_PULLED = 1 / 20  # share of the vertices in a level from which on a search for hops pulls


def one_at_a_time(single: Strategy, algorithm: str) -> MultiSourceStrategy:
    """Return a multi-source strategy that runs the strategy ``single`` for one source once per
    source. It has the same name.

    ``algorithm`` is "bfs" or "sssp".
    """

    def plan(graph: Graph, query: Query, _group: int) -> MultiSourceSearch:
        """Plan the search from one source, which outputs all distances. Return a function that
        searches from each of an array of vertex numbers, and returns the outcome with a row per
        source. ``_group``, the most sources of a call, is ignored: a plan has the state of one
        search.
        """
        # The plan for many sources widens sums, so that this one must not.
        single_plan = Plan(
            graph, algorithm, [single], single.name, replace(query, output="all"), may_widen=False
        )

        def run_each(sources: np.ndarray) -> Iterator[Traversal]:
            """Yield the requested output of each search, in arrays that stay valid after the next
            one.
            """
            for source in sources:
                # Without a lock, as the plan for many sources holds its own.
                result = single_plan.run_unguarded(int(source))
                xp = namespace(result.distance)
                # All distances, those of the targets, or the number of vertices at each hop count.
                # ``distance`` is the field of the result that carries any of these.
                if query.output == "all":
                    yield result.copy()
                elif query.output == "targets":
                    at_targets = result.distance[xp.asarray(query.targets)]
                    yield replace(result, distance=at_targets, predecessor=None)
                else:
                    counts = xp.bincount(result.distance[result.reached])
                    yield replace(result, distance=counts, predecessor=None)

        return lambda sources: _stack_traversals(list(run_each(sources)), graph, algorithm, query)

    def memory(shape: Shape, query: Query, group: int) -> int:
        """Return the bytes of a group of ``group`` sources in addition to the graph: the state of
        one search, and the rows of all, if the query outputs all distances. Outputs at targets and
        counts are small, and not counted.
        """
        width = shape.weight if algorithm == "sssp" else 4  # bytes of a distance
        # twice: a copy per traversal, and then the stacked arrays
        if query.output == "all":
            n_arrays = 2 * group
        else:
            n_arrays = 0
        state = single.memory(shape.n_vertices, shape.n_edges, query.predecessors)
        return state + n_arrays * shape.n_vertices * (width + shape.index * query.predecessors)

    is_on_cpu = single.device == "cpu"

    def terms(shape: Shape, n_sources: int, _group: int, machine: Any) -> dict[str, float]:
        """Return how much work all searches take, by terms of the cost model. ``_group`` is
        ignored, as searches are made one after the other.

        The model (``auto.costs``) multiplies each amount by fitted nanoseconds per unit.
        ``machine`` is a ``Machine`` (cores and speeds).
        """
        # Edges that all searches visit; ``walked`` is the share of the edges that one visits.
        edges = n_sources * shape.n_edges * shape.walked
        # "start", "count" and "level" count searches, outputs of counts, and levels or rounds;
        # "extra_round" rounds beyond these, which uneven weights cause; "again" edges that are
        # relaxed again; "miss" and "fetch" edges whose load misses the cache of a core, or all
        # caches. ``scatter`` is the share of the edges whose two ends have numbers far apart.
        amounts = {
            "start": n_sources,
            "count": n_sources * (shape.keep == "counts"),
            "level": n_sources * shape.likely_rounds,
            "vertex": n_sources * shape.n_vertices,
            "edge": edges,
            "again": 0,
            "extra_round": 0,
            "miss": edges * shape.scatter * machine.share_of_misses(4 * shape.n_vertices),
        }
        # What depends on the algorithm and the device. All cores share the edges of a large level.
        # ``repeats`` and ``detours`` estimate how often an edge is relaxed again: in a search with
        # piles on the CPU, and in one on the GPU.
        if is_on_cpu and algorithm == "bfs":
            amounts["edge"] = edges / machine.cores
        if algorithm == "sssp":
            amounts["again"] = edges * (shape.repeats if is_on_cpu else shape.detours)
            amounts["extra_round"] = n_sources * shape.extra_rounds
        # A search for hops that has large levels pulls, and then reads edges one after another.
        # ``frontier_share(1)`` is the mean share of the vertices in a level of one search.
        is_pulling = algorithm == "bfs" and shape.frontier_share(1) > _PULLED
        # "clear" counts distances that are set to unreached, "vertex" only vertices then reached.
        if is_on_cpu:
            amounts["clear"] = amounts["vertex"]
            amounts["vertex"] *= shape.reach
        if is_on_cpu and not is_pulling:
            amounts["fetch"] = n_sources * shape.fetches(machine, _STATE)
        return amounts

    return MultiSourceStrategy(
        name=single.name,
        device=single.device,
        plan=plan,
        memory=memory,
        needs=single.needs,
        paper=single.paper,
        rationale=single.rationale,
        default=True,
        aliases=(*single.aliases, ONE_AT_A_TIME),
        knobs=single.knobs,
        group_size=lambda n_sources: min(n_sources, MAX_GROUP),
        terms=terms,
        edges=single.edges,
        repeats=True,
    )


def _stack_traversals(
    traversals: list[Traversal], graph: Graph, algorithm: str, query: Query
) -> MultiSourceOutcome:
    """Return the outputs of single searches as the outcome of a group, with arrays of a row per
    search.

    The ``distance`` of each traversal is the output that the query asks for: distances of all
    vertices, those of the targets, or counts of vertices per level.
    """
    if not traversals:
        return _no_traversal(graph, algorithm, query)
    xp = namespace(graph.offsets)
    limits = [t.limit for t in traversals]
    rounds = [t.rounds for t in traversals]

    # Counts of a search have as many entries as it has levels; shorter ones are filled up with 0.
    if query.output == "counts":
        counts = np.zeros((len(traversals), max(t.distance.size for t in traversals)), np.int64)
        for row, traversal in zip(counts, traversals, strict=True):
            row[: traversal.distance.size] = to_host(traversal.distance)
        return MultiSourceOutcome(None, None, limits, rounds, counts)

    distance = xp.stack([t.distance for t in traversals])
    # Hops of one source are int32. Those of several are narrowed to the type that holds them.
    if algorithm == "bfs":
        farthest = int(distance.max()) if distance.size else 0
        distance = distance.astype(hops_dtype(farthest), copy=False)
    if query.predecessors and query.output == "all":
        predecessor = xp.stack([t.predecessor for t in traversals])
    else:
        predecessor = None
    return MultiSourceOutcome(distance, predecessor, limits, rounds)


def _no_traversal(graph: Graph, algorithm: str, query: Query) -> MultiSourceOutcome:
    """Return the outcome of a group without a source: arrays without a row, of the shapes and types
    that those of other groups have.
    """
    if query.output == "counts":
        return MultiSourceOutcome(None, None, [], [], np.zeros((0, 1), np.int64))
    n_columns = graph.n_vertices
    if query.output == "targets" and query.targets is not None:
        n_columns = query.targets.size
    dtype = ALGORITHMS[algorithm].narrowest_dtype(graph)
    distance = namespace(graph.offsets).zeros((0, n_columns), dtype)
    if query.predecessors and query.output == "all":
        predecessor = distance.astype(graph.targets.dtype)
    else:
        predecessor = None
    return MultiSourceOutcome(distance, predecessor, [], [])
