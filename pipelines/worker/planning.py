"""The plan of a run's traversals: the driver makes one to know its memory, and each worker makes one to run it."""

from __future__ import annotations

from functools import partial
from typing import Any

from kepler_traverse.bfs import REGISTRY as BFS
from kepler_traverse.extremes import ExtremesSearch
from kepler_traverse.graph import Graph
from kepler_traverse.kinds.paths import may_walk_by_distances
from kepler_traverse.multi_source.outputs import graph_in_direction
from kepler_traverse.multi_source.planning import FEW_PATHS, MultiSourcePlan
from kepler_traverse.multi_source.together import KNearestSearch, NearestSearch, SearchTogether
from kepler_traverse.search.algorithms import ALGORITHMS
from kepler_traverse.search.plan import make_query
from kepler_traverse.sssp import REGISTRY as SSSP

from ..output.schemas import EXTREMES, OUTPUT_SCHEMAS
from .request import Request


def plan_for(graph: Graph, request: Request) -> MultiSourcePlan | SearchTogether:
    """Plan the traversals of a ``Request``.

    The certificate needs all distances, so a certified plan outputs all of them. Without a certificate a plan may output
    only what the written result is derived from.
    """
    graph = graph_in_direction(graph, request.direction)
    kind = OUTPUT_SCHEMAS[request.result]
    if request.result == EXTREMES:
        return ExtremesSearch(graph, request.algorithm, request.unconnected, request.memory)
    registry = BFS if request.algorithm == "bfs" else SSSP
    if kind.merged and request.k is None:
        strategies, _ = registry.listed_for(request.strategy, graph.device)
        query = make_query(graph, True, request.limit, None, request.knobs, registry.algorithm.limit_name)
        return NearestSearch(graph, request.algorithm, strategies, request.strategy, query, request.at_once)
    proven = request.certify != "none"
    if kind.needs_pairs:
        return _plan_of_pairs(graph, request, proven)
    as_it_is = kind.has_predecessors or not (proven or kind.keeps == "all")
    if request.limits is not None and kind.keeps == "counts":  # counts cannot be cut at a limit of each source
        as_it_is = False
    result = request.result if as_it_is else "distances"
    options: dict[str, Any] = {
        "n_sources": request.at_once,
        "strategy": request.strategy,
        "result": result,
        "targets": request.targets,
        "knobs": request.knobs,
        "memory": request.memory,
    }
    if request.shape is not None:
        options["shape"] = request.shape
    # A certificate reads interleaved distances as they are; ``BatchTraverser`` makes rows of them where records need rows.
    options |= {"limit": request.limit, "interleaved": request.k is None and not kind.has_predecessors}
    options["sparse"] = request.k is None and kind.reads_sparse and request.unreached == "omit"
    if request.k is None:
        return registry.plan_multi_source(graph, **options)
    plan_for = partial(registry.plan_multi_source, graph, **options)
    may_take_one = request.strategy == "auto"
    return KNearestSearch(
        graph, request.algorithm, request.limit, request.k, options.pop("n_sources"), plan_for, may_take_one
    )


def _plan_of_pairs(graph: Graph, request: Request, proven: bool) -> MultiSourcePlan:
    """Plan searches whose targets come with each run.

    Paths that follow from certified distances need no predecessors. Where a hierarchy makes the search short, computing and
    certifying those of all vertices would take longer than all else.
    """
    pairs: Any = request.pairs
    per_source = pairs.rows.size / max(pairs.sources.size, 1)
    by_distances = (
        graph.derived.known_hierarchy(ALGORITHMS[request.algorithm].metric) is not None and per_source <= FEW_PATHS
    )
    by_distances &= proven and may_walk_by_distances(graph, request.algorithm)
    return (BFS if request.algorithm == "bfs" else SSSP).plan_multi_source(
        graph,
        n_sources=request.at_once,
        result=request.result,
        strategy=request.strategy,
        limit=request.limit,
        targets=None,
        knobs=request.knobs,
        memory=request.memory,
        shape=request.shape,
        output="all" if proven else None,
        targets_per_source=per_source,
        predecessors=False if by_distances else None,
        sample=pairs.sample(),
    )
