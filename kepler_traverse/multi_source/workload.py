"""The searches that a plan for many sources is made for: the strategies that can make them, and the
shapes by which their costs are estimated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from .. import arguments
from ..auto.survey import outline, survey
from ..cuda.compiler import start_compiling
from ..errors import InputError, StrategyError
from ..graph import Graph
from ..hub_labels.arrays import HubLabels
from ..search import short_search
from ..search.algorithms import ALGORITHMS
from ..search.answering import answering_labels, targets_per_source
from ..search.query import Query
from ..search.strategy import MultiSourceStrategy, Shape, Strategy, pick
from .one_at_a_time import one_at_a_time

FEW_PATHS = 256  # targets of one source up to which paths are looked up in a hierarchy
_MAX_SOURCES = 1 << 62  # a larger number would not fit into an int64
# edges that a sample of searches which end early may always visit, and never exceed
_MIN_SAMPLE_EDGES = 1 << 16
_MAX_SAMPLE_EDGES = 1 << 23
_SAMPLE_SHARE = 0.02  # share of the edge visits of whole searches that such a sample may make
# A row of hub labels takes up to 10 ns of a core. Searches from many sources take 1 ns or more per
# source and vertex, so that labels answer faster from 10 vertices per row on; 20 is twice as many.
_VERTICES_PER_ROW = 20


class Workload(NamedTuple):
    """The searches that a plan is made for."""

    graph: Graph  # that is searched
    algorithm: str  # "bfs" or "sssp"
    query: Query  # options of all searches: the limit, the targets, the output
    n_sources: int  # 0 for a plan whose sources come later, or without a source

    @property
    def n_searches(self) -> int:
        """The number of sources, at least 1: that of a plan whose sources come later."""
        return max(self.n_sources, 1)

    @property
    def counts_hops(self) -> bool:
        """Whether distances are hops, and not sums of weights."""
        return ALGORITHMS[self.algorithm].counts_hops

    @property
    def labels(self) -> HubLabels | None:
        """The hub labels of the graph that answer the query, for a strategy that needs a hierarchy."""
        return answering_labels(self.graph, self.query, ALGORITHMS[self.algorithm].metric)


class Strategies(NamedTuple):
    """The strategies of an algorithm that a plan knows."""

    many: Sequence[MultiSourceStrategy]  # strategies for many sources
    # strategies for one source, of which one is repeated for each source
    single_source: Sequence[Strategy]
    searches: Sequence[Strategy]  # for BFS from one source, by which a graph is surveyed

    def defaults(self, graph: Graph) -> list[MultiSourceStrategy]:
        """Return the default strategies for many sources of the graph's device, and of the place of
        its edges.
        """
        return [
            each
            for each in self.many
            if each.default and each.device == graph.device and each.matches_edges(graph)
        ]


class Usable(NamedTuple):
    """The strategies that a plan may choose among."""

    loop: MultiSourceStrategy  # repeats a search from one source for each source
    strategies: list[MultiSourceStrategy]  # all that may be chosen; may include the loop

    @property
    def is_loop(self) -> bool:
        """Whether the loop is the only strategy that may be chosen."""
        return self.strategies == [self.loop]


class Shapes(NamedTuple):
    """The shape of a graph as searches see it: a ``Shape`` says how far they go, by which their
    time and memory are estimated.
    """

    at_nearest: Shape  # for searches that end at the nearest targets, if the query asks for these
    whole: Shape  # for searches that do not end there

    @classmethod
    def alike(cls, shape: Shape) -> Shapes:
        """Return ``shape`` for both, where the nearest targets make no difference."""
        return cls(shape, shape)

    def of(self, strategy: MultiSourceStrategy) -> Shape:
        """Return the shape for the searches of a strategy, by whether these end at the nearest
        targets.
        """
        if strategy.ends_at_nearest:
            return self.at_nearest
        return self.whole

    def for_output(self, work: Workload) -> Shapes:
        """Return the shapes with fields that follow from the query: the output of the searches, the
        targets per source, and the length of the hub labels that answer it, 0 without labels.
        """
        query = work.query
        per_source = query.targets_per_source
        labels = work.labels
        hubs = 0.0
        if labels is not None:
            per_source = targets_per_source(query)
            hubs = labels.hubs_per_vertex
        fields: dict[str, Any] = {"keep": query.output, "per_source": per_source, "hubs": hubs}
        return Shapes(*(shape._replace(**fields) for shape in self))


def check_n_sources(n_sources: Any) -> int:
    """Return a number of sources, given by a caller, at most as large as int64 arithmetic allows.

    Raises InputError: it is no whole number, or negative.
    """
    return min(arguments.whole("n_sources", n_sources), _MAX_SOURCES)


def query_for(strategy: MultiSourceStrategy, query: Query) -> Query:
    """Return the query as a strategy takes it.

    A strategy that finds no paths, or takes no targets per source, outputs the distances of all
    vertices instead.
    """
    if query.output == "paths" and not strategy.finds_paths:
        query = replace(query, output="all")
    if not query.has_target_lists or strategy.takes_target_lists:
        return query
    return replace(query, has_target_lists=False, output="all")


def find_usable(work: Workload, strategies: Strategies, name: str) -> Usable:
    """Return the strategies that a plan may choose among: the one called ``name``, or with
    ``"auto"`` all default strategies that can run on the graph.

    Raises StrategyError: there is no such strategy, or it cannot run.
    """
    name = arguments.text("strategy", name, "a name that strategies() lists", StrategyError)
    single = strategies.single_source
    name_of_single = "auto"
    # A name of a strategy for one source names the loop that runs it.
    if any(each.is_called(name) for each in single):
        name_of_single = name
    # ``pick`` refuses a strategy that cannot run on the graph, and takes the first default for
    # "auto".
    loop = one_at_a_time(pick(single, name_of_single, work.graph), work.algorithm)
    if name != "auto":
        return Usable(loop, [pick([*strategies.many, loop], name, work.graph)])

    fitting = [
        each
        for each in strategies.defaults(work.graph)
        if each.unsupported_reason(work.graph) is None
    ]
    # Where no search could be faster, and with one source, no estimate is made. With edges in host
    # memory most strategies are left out.
    answering = _list_answering(work, fitting)
    if answering:
        return Usable(loop, answering)
    if work.n_sources <= 1:
        return Usable(loop, _find_for_one_source(work, fitting) or [loop])
    if work.graph.derived.edges_on_host and fitting:
        return Usable(loop, _list_streaming(work.query, fitting))
    return Usable(loop, [*fitting, loop])


def _list_answering(
    work: Workload, fitting: Sequence[MultiSourceStrategy]
) -> list[MultiSourceStrategy]:
    """Return those of the strategies ``fitting`` that answer from hub labels, if the pairs of the
    query take less than any search. Empty: a search may be faster, or there are no labels.

    Searches that would measure how far others go take longer than many thousands of such answers.
    """
    query = work.query
    if not query.has_target_lists or query.output != "targets":
        return []
    labels = work.labels
    if labels is None:
        return []
    rows_per_source = query.targets_per_source * labels.hubs_per_vertex
    if rows_per_source * _VERTICES_PER_ROW > work.graph.n_vertices:
        return []
    # The strategies over hierarchies answer from hub labels where there are some.
    return [each for each in fitting if "hierarchy" in each.needs]


def _list_streaming(
    query: Query, fitting: Sequence[MultiSourceStrategy]
) -> list[MultiSourceStrategy]:
    """Return those of the strategies ``fitting`` whose time is estimated well where the edges of a
    GPU's graph are in host memory.

    Strategies for such edges copy them to the GPU. Others read them in place, at the speed of the
    bus, which no estimate knows: they are left out unless searches end early, and so read few.
    """
    if query.may_stop:
        return list(fitting)
    return [each for each in fitting if each.edges == "host"]


def _find_for_one_source(
    work: Workload, fitting: Sequence[MultiSourceStrategy]
) -> list[MultiSourceStrategy]:
    """Return those of the strategies ``fitting`` for many sources that are better for one source
    than a strategy for one source. Empty: a strategy for one source is best.

    No searches are made to decide that: they would take longer than the choice could save.
    """
    query = work.query
    # The strategies over hierarchies answer from hub labels where there are some.
    over_hierarchy = [each for each in fitting if "hierarchy" in each.needs]
    if over_hierarchy and work.labels is not None:
        return over_hierarchy
    # Short searches end at the nearest targets, and no search for one source does.
    if query.nearest is not None:
        return [each for each in fitting if each.name == "short_search" and each.device == "cpu"]
    # Strategies that find paths search from pair to pair, which pays for few targets.
    if query.has_target_lists and query.targets_per_source <= FEW_PATHS:
        return [each for each in fitting if each.finds_paths]
    return []


def start_kernels(work: Workload, usable: Usable) -> None:
    """Begin to compile the kernels of all usable strategies, in the background, if the graph is on
    a GPU.
    """
    if work.graph.device != "cuda":
        return
    requests = []
    for strategy in usable.strategies:
        if strategy.kernels is not None:
            group = strategy.group_size(work.n_searches)
            requests += strategy.kernels(work.graph, work.query, group)
    start_compiling(requests)


def measure_shapes(
    work: Workload, strategies: Strategies, usable: Usable, known: Shape | None
) -> Shapes:
    """Return the shapes of the searches: how far they go. Where there is a choice of strategies, a
    few searches are made to find out.

    ``known`` is the shape of an earlier plan of the same graph, which takes the place of a survey,
    or None.

    Raises InputError: ``known`` is no shape of this graph.
    """
    # A sample of searches that end early says more than the shape of the whole graph, also if that
    # is known.
    _check_shape(known, work.graph)
    shapes = None
    if _may_end_early(work, usable):
        shapes = _sample_searches(work, known)
    if shapes is None:
        shape = known
        if shape is None:
            shape = _survey_graph(work, strategies, usable)
        shapes = Shapes.alike(shape)
    return shapes.for_output(work)


def _check_shape(shape: Any, graph: Graph) -> None:
    """Raise InputError if ``shape`` is neither None nor a shape of this graph, by the numbers of
    its vertices and edges.
    """
    if shape is None:
        return
    is_shape = isinstance(shape, Shape)
    if not is_shape or (shape.n_vertices, shape.n_edges) != (graph.n_vertices, graph.n_edges):
        raise InputError("shape must be that of an earlier plan of the same graph (plan.shape)")


def _may_end_early(work: Workload, usable: Usable) -> bool:
    """Return whether a few trial searches are worth making before a strategy is chosen.

    They are if searches may end before they have reached all vertices, and if ``short_search``,
    which is fast where they do, may be chosen. The trial searches are those of ``sample_reach``.
    """
    graph = work.graph
    query = work.query
    # Trial searches take non-negative weights only.
    if graph.has_negative_weights or not graph.n_edges:
        return False
    weights: Any = graph.weights
    # Trial searches, which touch only what they reach, add floats.
    if work.algorithm == "sssp" and weights.dtype.kind == "i":
        return False
    # A search ends at the limit, or once its targets are settled: those of the query, or targets of
    # its own. Where each source has its own, ``query.sample`` has some sources with their targets,
    # from which the trial searches are made.
    knows_end = query.limit is not None or query.targets is not None or query.sample is not None
    return knows_end and any(each.name == "short_search" for each in usable.strategies)


def _sample_searches(work: Workload, known: Shape | None) -> Shapes | None:
    """Return the shapes that a few searches show which end early, at the limit or the targets of
    the query; None if these visit too many edges, so that they are not short.

    ``known`` is the shape of an earlier plan of the same graph, or None.
    """
    graph = work.graph
    query = work.query
    # A shape that is short is one of searches which end early, and not of the whole graph.
    base = known
    if base is None or base.is_short:
        base = outline(graph)  # sizes and types, without a search
    # The sample may take a small share of what searches of the whole graph would visit, but always
    # _MIN_SAMPLE_EDGES and never more than _MAX_SAMPLE_EDGES.
    affordable = int(_SAMPLE_SHARE * work.n_sources * graph.n_edges)
    max_edges = min(max(_MIN_SAMPLE_EDGES, affordable), _MAX_SAMPLE_EDGES)
    # ``sample(query=...)`` returns ``base`` with the reach that the searches of a query have, or
    # ``base`` as it is if they visit too many edges to be called short.
    sample = partial(
        short_search.sample_reach, graph, base, counts_hops=work.counts_hops, most=max_edges
    )
    at_nearest = sample(query=query)
    if not at_nearest.is_short:
        return None
    # Strategies that do not end at the nearest targets go on to the limit, or search everything.
    if query.nearest is None:
        return Shapes.alike(at_nearest)
    if query.limit is None:
        return Shapes(at_nearest, base)
    return Shapes(at_nearest, sample(query=replace(query, targets=None, nearest=None)))


def _survey_graph(work: Workload, strategies: Strategies, usable: Usable) -> Shape:
    """Return the shape of the graph, from a few searches if they are of use: to choose a strategy,
    or for BFS to know how deep searches are, on which memory depends.
    """
    has_choice = len(usable.strategies) > 1
    # Neither the loop nor labels, which strategies over hierarchies read, take memory by depth.
    is_answered = work.labels is not None and "hierarchy" in usable.strategies[0].needs
    needs_depth = work.algorithm == "bfs" and not usable.is_loop and not is_answered
    if has_choice or needs_depth:
        return survey(work.graph, work.algorithm, strategies.searches, work.n_sources)
    return outline(work.graph)
