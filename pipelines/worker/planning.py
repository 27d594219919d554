"""A question with how it is answered, and its plan: the driver makes one to know its memory, each
worker one to run it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from kepler_traverse._arrays import Array
from kepler_traverse.bfs import REGISTRY as BFS
from kepler_traverse.errors import InputError
from kepler_traverse.extremes.eccentricities import ExtremesSearch
from kepler_traverse.graph import Graph
from kepler_traverse.graph.storage import load_graph
from kepler_traverse.kinds.paths import may_walk_by_distances
from kepler_traverse.kinds.question import Question
from kepler_traverse.multi_source.entry_points import AskedTogether
from kepler_traverse.multi_source.outputs import graph_in_direction
from kepler_traverse.multi_source.together import SearchTogether
from kepler_traverse.multi_source.workload import FEW_PATHS
from kepler_traverse.search.algorithms import ALGORITHMS
from kepler_traverse.search.query import Query, TargetLists
from kepler_traverse.search.results import Traversals
from kepler_traverse.search.strategy import Shape
from kepler_traverse.sssp import REGISTRY as SSSP

from ..cli.options import Settings
from .label_plan import LabelPlan

OVER_HIERARCHY = "hierarchy_sweep"  # the strategy that looks up hub labels, where there are some
Knobs = dict[str, bool | int | float | str] | None  # options of a strategy by name, None for none


class GroupPlan(Protocol):
    """A plan of searches from one group of sources after the other: ``MultiSourcePlan``, or that of
    ``--engine cugraph-mg``.

    The attributes mean the same as in ``MultiSourcePlan``. A strategy has ``name``, ``device`` and
    ``rationale``.
    """

    algorithm: str  # "bfs" or "sssp"
    query: Query  # what the searches compute, and within which limit
    nbytes: int  # bytes that a group takes in addition to the graph, with its results
    # Levels of the deepest of a few searches that measured the graph (its survey); 0 without one.
    depth: int

    @property
    def why(self) -> str:
        """Say why this strategy was chosen."""

    @property
    def strategy(self) -> Any:
        """The strategy that searches."""

    @property
    def group(self) -> int:
        """Number of sources that are searched together."""

    def run(
        self,
        numbers: Sequence[int] | np.ndarray,
        lists: TargetLists | None = None,
        /,
        cut: bool = True,
    ) -> Traversals:
        """Search from the sources of a group, and return their traversals.

        ``numbers``: vertex numbers of the sources. ``lists``: the targets of each source, or None
        if no pairs are asked for. ``cut``: whether vertices beyond the limit become unreached in
        the result. Searches with negative weights pass such vertices, and certificates need their
        distances, so False keeps them.
        """


Plan = GroupPlan | SearchTogether


@dataclass(frozen=True, kw_only=True)
class Request(Question[Any]):
    """A question and how it is answered; small enough to be sent to each worker.

    The fields of ``Question`` say what is computed: algorithm, result, limit, pairs, certificate.
    """

    strategy: str = "auto"  # name of a strategy, or "auto" to choose one by estimates
    knobs: Knobs = None  # options of the strategy
    # Maximum size of a group: about the sources of one part, or of several parts if the device has
    # enough memory.
    at_once: int = 1
    # Bytes that the plan of one worker may use in addition to the graph; None allows all free
    # memory.
    memory: int | None = None
    chosen: str = ""  # strategy that the driver has chosen if ``strategy`` is "auto"; "" otherwise
    # what the driver's plan has measured of the graph, so that no worker measures it again
    shape: Shape | None = None
    edges: str = "device"  # where a graph on a GPU has its edges, as ``Graph.to`` takes it
    uses_hierarchy: bool = True  # whether a hierarchy that is stored with the graph may be used
    # Whether hub labels answer all pairs, which are proved as a whole before the first part, so that
    # no search is certified.
    is_proved_by_labels: bool = False

    @classmethod
    def to_answer(cls, question: Question, settings: Settings, at_once: int = 1) -> Request:
        """Return a request that answers a question as the settings of the run say.

        ``at_once`` is the maximum number of sources that are searched together.
        """
        return cls(
            **vars(question),
            strategy=settings.strategy,
            knobs=settings.knobs,
            at_once=at_once,
            uses_hierarchy=settings.hierarchy != "no",
        )

    def load(self, folder: Path, device: str) -> Graph:
        """Load a stored graph, whose edges are where the driver's plan has them.

        ``folder`` holds the graph as ``save_graph`` wrote it. ``device`` is "cpu" or "cuda". The
        files are not verified, because the driver has done so, or has written them itself.
        """
        if self.edges == "host":  # loaded on the CPU first, so that the edges stay in its memory
            graph = load_graph(folder, "cpu", verify=False).to(device, edges="host")
        else:
            graph = load_graph(folder, device, verify=False)
        if not self.uses_hierarchy:
            graph = graph.derived.without_hierarchy()
        return graph


def require_weights(graph: Graph) -> Array:
    """Return the weights of a graph; raise InputError if it has none."""
    if graph.weights is None:
        raise InputError(
            "sssp needs weights, and this edge list has none; name their column "
            "by --columns weight=NAME, or take bfs"
        )
    return graph.weights


def plan_for(graph: Graph, request: Request) -> Plan:
    """Plan the traversals of a ``Request``.

    ``graph`` has its edges in their own direction; it is reversed here if the request asks so. The
    certificate needs all distances, so a certified plan outputs all of them. Without a certificate
    a plan may output only what the written result is derived from.
    """
    # First the results that no search from groups of sources computes.
    graph = graph_in_direction(graph, request.direction)
    kind = request.kind
    if not kind.takes_sources:  # a result about the whole graph, by its extremes
        return ExtremesSearch(graph, request.algorithm, request.options.unconnected, request.memory)
    if kind.of_labels:  # its rows are hub labels, which are looked up and not searched
        return LabelPlan(graph, request)

    # ``of_plan`` returns the arguments of a plan that follow from the question: result, limit,
    # targets, output (what each search returns) and forms of distances that the kind reads.
    options = request.of_plan() | {
        "n_sources": request.at_once,
        "strategy": request.strategy,
        "knobs": request.knobs,
        "memory": request.memory,
        "shape": request.shape,
    }
    # A strategy may return distances interleaved (those of several sources adjacent for each
    # vertex), since certificates read this form. ``BatchTraverser`` converts them to one row per
    # source where the kind of result does not read them. Only the forms that they read are for
    # kinds that need all sources together, such as the nearest one of each vertex (``one_search``),
    # that answer pairs, or that have predecessors.
    if not (kind.one_search or kind.needs_pairs or kind.has_predecessors):
        options["forms"] = ("interleaved", *options["forms"])
    if request.pairs is not None:
        options |= _options_of_pairs(graph, request)
    # Labels are proved as a whole, so that no certificate needs the distances of all vertices: with
    # the output None the plan computes what the kind needs, here those of the targets.
    if request.is_proved_by_labels:
        options |= {"output": None, "strategy": OVER_HIERARCHY}

    registry = BFS if request.algorithm == "bfs" else SSSP
    plan = partial(registry.plan_multi_source, graph, **options)
    if not kind.one_search:
        return plan()

    # Results that need all sources together are the nearest source of each vertex, which one search
    # from all sources finds, and the k nearest. For these ``plan_together`` chooses between one
    # search and groups of searches, planned by ``plan``, whose results are merged. A strategy that
    # the request names is one for such groups: so ``may_take_one`` allows one search of the k
    # nearest for "auto" alone.
    asked = AskedTogether(  # facts about the search from all sources
        getattr(request.options, "k", None),  # of the k nearest; None for the nearest alone
        request.strategy,
        request.limit,
        request.knobs,
        request.at_once,  # of one search these are all sources
    )
    return registry.plan_together(graph, asked, plan, may_take_one=request.strategy == "auto")


def _options_of_pairs(graph: Graph, request: Request) -> dict[str, Any]:
    """Return further options, by name, of a plan that gets the targets of its sources at each run.

    Paths can be derived from certified distances, without predecessors. Where a hierarchy makes the
    search of a pair short, computing and certifying predecessors of all vertices would take longer
    than all else, so the plan then omits them.
    """
    pairs: Any = request.pairs
    per_source = pairs.rows.size / max(pairs.sources.size, 1)  # mean number of targets
    # With few targets per source (``FEW_PATHS`` at most), a plan finds paths in the hierarchy.
    hierarchy = graph.derived.known_hierarchy(ALGORITHMS[request.algorithm].metric)
    walks_by_distances = (
        hierarchy is not None
        and per_source <= FEW_PATHS
        and request.certify != "none"
        and may_walk_by_distances(graph, request.algorithm)
    )
    return {
        "targets_per_source": per_source,
        "predecessors": False if walks_by_distances else None,  # None: as the kind says
        "sample": pairs.sample(),  # some origins with their targets, by which times are estimated
    }
