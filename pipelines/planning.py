"""The plan of a run's traversals, which the driver makes to know its memory and each worker makes to run it."""

from __future__ import annotations

from kepler_traverse import plan_bfs_many, plan_sssp_many
from kepler_traverse.answers import turned
from kepler_traverse.graph import Graph
from kepler_traverse.many import ManyPlan

from .forms import FORMS
from .merged import MergedPlan


def plan_for(graph: Graph, work) -> ManyPlan | MergedPlan:
    """Plan the traversals of a ``Work`` or a ``Request``.

    Distances are proven right before anything is made of them, so a plan keeps all of them, unless nothing is to be proven:
    then it may hold no more than what is written is made of.
    """
    graph = turned(graph, work.direction)
    kind = FORMS[work.result]
    if kind.merged:
        return MergedPlan(graph, work.algorithm, work.strategy, work.limit, work.knobs, work.at_once)
    proven = work.certify != "none"
    as_it_is = kind.has_predecessors or not (proven or kind.keeps == "all")
    result = work.result if as_it_is else "distances"
    options = {
        "n_sources": work.at_once,
        "strategy": work.strategy,
        "result": result,
        "targets": work.targets,
        "knobs": work.knobs,
        "memory": work.memory,
    }
    if getattr(work, "shape", None) is not None:
        options["shape"] = work.shape
    if work.algorithm == "bfs":
        return plan_bfs_many(graph, max_depth=work.limit, **options)
    return plan_sssp_many(graph, cutoff=work.limit, **options)
