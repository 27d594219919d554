"""The plan of a run's traversals: the driver makes one to know its memory, and each worker makes one to run it."""

from __future__ import annotations

from functools import partial
from typing import Any

from kepler_traverse.bfs import REGISTRY as BFS
from kepler_traverse.extremes.eccentricities import ExtremesSearch
from kepler_traverse.graph import Graph
from kepler_traverse.kinds.paths import may_walk_by_distances
from kepler_traverse.kinds.result_kinds import ResultKind
from kepler_traverse.multi_source.outputs import graph_in_direction
from kepler_traverse.multi_source.planning import FEW_PATHS
from kepler_traverse.search.algorithms import ALGORITHMS
from kepler_traverse.sssp import REGISTRY as SSSP

from ..output.schemas import OUTPUT_SCHEMAS
from .request import Plan, Request


def plan_for(graph: Graph, request: Request) -> Plan:
    """Plan the traversals of a ``Request``.

    The certificate needs all distances, so a certified plan outputs all of them. Without a certificate a plan may output
    only what the written result is derived from.
    """
    graph = graph_in_direction(graph, request.direction)
    kind = OUTPUT_SCHEMAS[request.result]
    if not kind.takes_sources:
        return ExtremesSearch(graph, request.algorithm, request.options.unconnected, request.memory)
    registry = BFS if request.algorithm == "bfs" else SSSP
    options: dict[str, Any] = {
        "n_sources": request.at_once,
        "strategy": request.strategy,
        "result": "distances" if kind.one_search else request.result,
        "limit": request.limit,
        "limits": request.limits,
        "targets": request.targets,
        "knobs": request.knobs,
        "memory": request.memory,
        "shape": request.shape,
        # Certificates need all distances. Counts cannot be cut at a limit of each source.
        "output": "all" if request.certify != "none" or (request.limits is not None and kind.keeps == "counts") else None,
        "forms": () if kind.one_search else _forms(kind, request),
    }
    options |= request.options.of_query(None if request.targets is None else graph.to_numbers(request.targets, "target"))
    if request.pairs is not None:
        options |= _options_of_pairs(graph, request)
    plan = partial(registry.plan_multi_source, graph, **options)
    if not kind.one_search:
        return plan()
    own = getattr(request.options, "k", None), request.strategy, request.limit, request.knobs, request.at_once
    return registry.plan_together(graph, *own, plan, may_take_one=request.strategy == "auto")


def _forms(kind: ResultKind, request: Request) -> tuple[str, ...]:
    """Return the forms of distances that certificates read; ``BatchTraverser`` makes rows of those that records do not."""
    others = () if kind.needs_pairs or kind.has_predecessors else ("interleaved",)
    return (*others, *(kind.reads if request.options.unreached == "omit" else ()))


def _options_of_pairs(graph: Graph, request: Request) -> dict[str, Any]:
    """Return further options of a plan whose targets come with each run.

    Paths that follow from certified distances need no predecessors. Where a hierarchy makes the search short, computing and
    certifying those of all vertices would take longer than all else.
    """
    pairs: Any = request.pairs
    per_source = pairs.rows.size / max(pairs.sources.size, 1)
    hierarchy = graph.derived.known_hierarchy(ALGORITHMS[request.algorithm].metric)
    by_distances = hierarchy is not None and per_source <= FEW_PATHS and request.certify != "none"
    by_distances &= may_walk_by_distances(graph, request.algorithm)
    return {"targets_per_source": per_source, "predecessors": False if by_distances else None, "sample": pairs.sample()}
