"""Shared implementation of the public functions of both algorithms. Each algorithm has a
``Registry``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from .. import arguments
from .._arrays import namespace, sort_distinct, to_host
from ..errors import HierarchyError, NegativeCycleError
from ..graph import Graph
from ..hierarchy.column_sums import SumSweeps
from ..kinds import pairs, rules
from ..kinds.question import Question, Targets, check_options
from ..kinds.result_kinds import RESULT_KINDS
from ..labels import Partner, get_index, has_labels, in_order
from ..plugins import find_kind, find_strategy, with_plugins
from ..protocols import Ids
from ..runtime import LOG
from ..runtime.interrupts import forget_interrupted
from ..runtime.memory import out_of_memory
from ..runtime.progress import Meter, make_meter
from ..search import frames
from ..search.algorithms import Algorithm
from ..search.exact import has_exact_sums
from ..search.plan import Plan, make_query
from ..search.strategy import MultiSourceStrategy, Shape, Strategy
from . import outputs
from .planning import MultiSourcePlan
from .stream import ResultStream
from .together import KNearestSearch, NearestSearch, SearchTogether, frame_of_all, from_targets
from .workload import FEW_PATHS, Strategies, Workload, find_usable

# Names of the kinds of result that ``bfs_pairs`` and ``sssp_pairs`` take. A kind with predecessors
# is one of paths, which ``paths`` returns.
RESULTS_OF_PAIRS = tuple(
    each.name
    for each in RESULT_KINDS.values()
    if "pairs" in each.options and not each.has_predecessors
)
_HIERARCHIES = ("auto", "yes", "no")


class _Call(NamedTuple):
    """A search from several sources whose arguments are checked."""

    graph: Graph  # in the direction of the search
    question: Question  # what is asked, with checked options
    given: outputs.GivenCall  # the arguments as they were given
    # int64 vertex numbers of the sources, in the given order; one may be there several times
    numbers: np.ndarray

    @property
    def members(self) -> Any:
        """The ``SourceGroups`` of a search from all sources together, whose groups have nearest
        sources of their own; None if all sources are one group, or if each source is a search of
        its own.
        """
        if self.question.kind.one_search:  # a search from all sources, such as for the nearest one
            return getattr(self.question.options, "groups", None)
        return None

    def count_searches(self, is_all: bool) -> int:
        """Return how many sources are searched from, for the report of progress.

        ``is_all`` says that the sources are all vertices, which are distinct.
        """
        # A source that is in several groups is searched once for each.
        if self.members is not None:
            return sum(numbers.size for numbers in self.members.members)
        # A stream searches each of its sources, since it does not keep the results of earlier
        # groups.
        if self.given.stream or is_all:
            return self.numbers.size
        return int(sort_distinct(self.numbers).size)

    def stream(
        self,
        plan: MultiSourcePlan,
        meter: Meter,
        cycle_error: Callable[[NegativeCycleError], NegativeCycleError],
    ) -> Any:
        """Return the results of a plan as a stream, group by group: an iterator of frames or
        arrays, or with ``stream="arrow"`` a reader of record batches.

        ``meter`` reports the progress. ``cycle_error`` returns the error that the caller gets in
        place of a NegativeCycleError of the search.
        """
        is_arrow = self.given.stream == outputs.ARROW
        if is_arrow:
            frame_kind = frames.arrow_tables()
        else:
            frame_kind = frames.frames_on(self.graph.device)
        form = outputs.ResultForm(plan, self.question, frame_kind)
        groups = ResultStream(form, self.numbers, meter, cycle_error)
        if is_arrow:
            return frames.arrow_reader(form.make_empty().schema, groups)
        return groups


class AskedTogether(NamedTuple):
    """What is asked of one search from all sources."""

    k: int | None  # how many of the nearest sources of each vertex; None for the nearest alone
    strategy: str  # the name of a strategy, or "auto"
    limit: float | None  # the largest hop count or distance of interest; None without one
    knobs: Mapping[str, Any] | object | None  # options of the strategy, as the caller gives them
    n_sources: int  # number of all sources


class GivenPairs(NamedTuple):
    """The arguments of ``bfs_pairs`` and ``sssp_pairs`` but for graph, pairs and the options of a
    kind of result, as they are given and not yet checked.
    """

    strategy: str  # the name of a strategy, or "auto"
    limit: float | None  # ``max_depth`` or ``cutoff``; None without one
    knobs: Mapping[str, Any] | object | None  # options of the strategy; None: its own choice
    memory: int | None  # bytes that a search may take; None: a share of what is free
    result: str  # the name of a kind of result: "pairs" or "flows"


@dataclass(frozen=True, kw_only=True)
class Registry:
    """An algorithm and its strategies, without those of plug-ins, and what its public functions
    do.
    """

    algorithm: Algorithm  # BFS or SSSP
    single_source: tuple[Strategy, ...]  # strategies for one source
    multi_source: tuple[MultiSourceStrategy, ...]  # strategies for many sources
    # strategies for BFS from one source, by which a plan surveys the shape of a graph, also for
    # SSSP
    searches: tuple[Strategy, ...]

    def with_plugins(self) -> tuple[tuple[Strategy, ...], tuple[MultiSourceStrategy, ...]]:
        """Return the strategies for one source and for many, those of plug-ins included."""
        name = self.algorithm.name
        return with_plugins(self.single_source, name), with_plugins(self.multi_source, name)

    def listed_for(
        self, strategy: str, device: str
    ) -> tuple[tuple[Strategy, ...], tuple[MultiSourceStrategy, ...]]:
        """Return the strategies for one source and for many among which the name ``strategy`` is
        looked up: those of the library, or with those of plug-ins.

        Plug-ins are imported only for a name that the library does not have on ``device``. A name
        that is no text is refused later, by the plan.

        Raises StrategyError: no strategy has the name, and a plug-in could not be imported.
        """
        own_strategies = self.single_source, self.multi_source
        if not isinstance(strategy, str) or strategy == "auto":
            return own_strategies
        if any(
            known.device == device and known.is_called(strategy) for known in chain(*own_strategies)
        ):
            return own_strategies
        strategies = self.with_plugins()
        find_strategy(strategy, device, [*chain(*strategies)])  # raises if the name is unknown
        return strategies

    def plan(self, graph: Graph, *, strategy: str, **asked: Any) -> Plan:
        """Return a plan for searches from one source each, as ``plan_bfs`` and ``plan_sssp`` do.

        ``strategy`` is a name or "auto". ``asked`` are the fields of ``Query`` that the caller
        sets, with targets as ids.
        """
        query = make_query(graph, self.algorithm.name, **asked)
        single_source, _ = self.listed_for(strategy, graph.device)
        return Plan(graph, self.algorithm.name, single_source, strategy, query)

    def plan_multi_source(
        self,
        graph: Graph,
        *,
        n_sources: int,
        result: str,
        strategy: str = "auto",
        memory: int | None = None,
        shape: Shape | None = None,
        **query_fields: Any,
    ) -> MultiSourcePlan:
        """Return a plan for searches from several sources, as ``plan_bfs_many`` and
        ``plan_sssp_many`` do.

        Most parameters are those of ``plan_bfs_many``. ``query_fields`` are fields of ``Query``
        that take the place of those that follow from ``result``. Two of them differ from ``Query``:
        ``targets`` are ids, and ``walks`` has the columns that are added up along the paths
        (``AlongPaths``), or None.
        """
        name = self.algorithm.name
        find_kind(result)  # imports plug-ins, if the library has no such kind
        # A field that is None keeps the default of ``Query``. The limit alone has none.
        query_fields = {"limit": None} | {
            field: value for field, value in query_fields.items() if value is not None
        }

        # Sums along paths are added up over a hierarchy, or, where ``over_hierarchy`` returns None,
        # the paths are walked back, which takes the distances of all vertices.
        along = query_fields.pop("walks", None)
        if along is not None:
            columns = along.over_hierarchy(graph, name, n_sources)
            if columns is None:
                query_fields |= {"walks": True, "output": "all"}
            else:
                query_fields["sums"] = SumSweeps(columns)

        # Fields that follow from the result.
        query_fields["output"] = query_fields.get("output") or outputs.outputs_needed_by(
            result, name, query_fields.get("targets")
        )
        kind = RESULT_KINDS[result]
        # With pairs each source has targets of its own. A sample (some sources with their targets)
        # is given for such sources alone.
        is_per_source = kind.needs_pairs or query_fields.get("sample") is not None
        of_kind: dict[str, Any] = {
            "predecessors": kind.has_predecessors,
            "has_target_lists": is_per_source,
        }
        query_fields = of_kind | query_fields
        query = make_query(graph, name, **query_fields)
        if graph.device == "cuda" and query.output == "paths":
            query = replace(query, output="all")  # no strategy of this device finds paths

        # The nearest targets may also be found by searches that begin at them, unless paths are
        # walked back later (``walks``): these need sums from the sources on.
        single, many = self.listed_for(strategy, graph.device)
        if query.nearest is not None and not query.walks:
            plan_distances = partial(
                self.plan_multi_source,
                result="distances",
                strategy="auto" if strategy == "from_targets" else strategy,
                limit=query.limit,
                memory=memory,
            )
            many = (*many, from_targets(graph, name, plan_distances, query.nearest))
            # Sums that are rounded may differ by the side that they begin at, so that these always
            # begin at one: at the targets, unless weights are negative.
            is_exact = has_exact_sums(graph, self.algorithm.counts_hops, query.limit)
            if not is_exact and not graph.has_negative_weights:
                strategy = "from_targets"
        # The last ones are for BFS, by which a plan surveys how deep the graph is.
        strategies = Strategies(many, single, self.searches or single)
        work = Workload(graph, name, query, n_sources)
        return MultiSourcePlan(work, strategies, strategy, memory, shape)

    def plan_together(
        self,
        graph: Graph,
        asked: AskedTogether,
        plan_for: Callable[..., MultiSourcePlan],
        may_take_one: bool = True,
    ) -> SearchTogether:
        """Return a search for the nearest source of each vertex, or for the k nearest.

        ``plan_for`` and ``may_take_one`` are used for the k nearest only.
        ``plan_for(n_sources=n, forms=forms)`` returns a plan of a search from each source, and
        ``may_take_one`` says whether one search from all sources may take its place. The job passes
        False where its user has named a strategy.
        """
        name = self.algorithm.name
        # The predecessors lead from a vertex back to its nearest source. With ``k`` the sources are
        # found otherwise.
        query = make_query(
            graph, name, predecessors=asked.k is None, limit=asked.limit, knobs=asked.knobs
        )

        single, many = self.listed_for(asked.strategy, graph.device)
        work = Workload(graph, name, query, asked.n_sources)
        if asked.k is None:
            return NearestSearch(work, single, asked.strategy)
        # A name that is wrong, and knobs that no strategy takes, are refused here, since one search
        # from all sources uses neither. Two sources stand for any number: for a single source fewer
        # strategies are usable.
        strategies = Strategies(many, single, self.searches)
        usable = find_usable(work._replace(n_sources=2), strategies, asked.strategy)
        for usable_strategy in usable.strategies:
            usable_strategy.knobs_from(
                query.knobs
            )  # raises the errors of a plan, also where none is made
        return KNearestSearch(work, asked.k, plan_for, may_take_one)

    def search_many(self, graph: Graph, sources: Any, given: outputs.GivenCall) -> Any:
        """Search from several sources and return the result, a frame, an array or a stream, as
        ``bfs_many`` and ``sssp_many`` do.

        ``given`` are their other arguments, not yet checked.
        """
        find_kind(given.result)  # imports plug-ins, if the library has no such kind
        given = given.by_its_kind()  # "nearest" with ``k`` becomes the kind of the k nearest
        index = get_index(sources)
        call = self._with_or_without_hierarchy(self._check_call(graph, sources, given))
        question = call.question
        n_searches = call.count_searches(is_all=isinstance(sources, str))  # a string is "all"
        meter = make_meter(given.progress, n_searches, graph.device)
        is_handed_on = False  # whether a stream closes the meter
        try:
            meter.begin()
            if question.kind.one_search:  # such as the nearest source of each vertex
                return self._search_together(call, meter)

            # A stream searches while it is read, and so closes the meter itself.
            plan = self._plan_with_hierarchy(call)
            if given.stream:
                cycle_error = partial(outputs.cycle_in_direction, direction=question.direction)
                groups = call.stream(plan, meter, cycle_error)
                is_handed_on = True
                return groups

            # A result of one row per source has the index of the sources.
            frame = outputs.compute_result(plan, call.numbers, question, meter)
            if has_labels(index) and question.kind.is_one_per_source(question.options):
                frame.index = index
            return frame
        except NegativeCycleError as error:
            raise outputs.cycle_in_direction(error, question.direction) from None
        except KeyboardInterrupt as interrupt:
            # A shell that keeps the error would keep the arrays of the call with it.
            forget_interrupted(interrupt, graph.device)
            raise
        except MemoryError as error:
            raise out_of_memory(error) from None
        finally:
            if not is_handed_on:
                meter.close()

    def _check_call(self, graph: Graph, sources: Any, given: outputs.GivenCall) -> _Call:
        """Check the arguments of a search from several sources. Return the call with sources and
        targets as vertex numbers, and with checked options.

        Raises InputError or UnknownVertexError: an argument is wrong.
        """
        graph, numbers, ids, given = outputs.check_arguments(graph, sources, given, self.algorithm)
        name = self.algorithm.name
        kind = RESULT_KINDS[given.result]
        targets = Targets.of(graph, ids)  # ids with their vertex numbers; None without targets
        target_numbers = None if targets is None else targets.numbers
        options = check_options(
            kind, graph, name, given.of_kind, sources=numbers, targets=target_numbers
        )
        # Options of an estimate, such as that of betweenness, draw a sample of the vertices: the
        # searches begin at these, and not at the given sources.
        sampled_sources = getattr(options, "sources", None)
        if sampled_sources is not None:
            numbers = sampled_sources
        # None if ``given.limit`` is one limit for all sources.
        limits = outputs.limits_per_source(
            graph, self.algorithm, kind, given.limit, sources, numbers
        )
        question = Question.of(
            kind,
            name,
            limit=given.limit,
            limits=limits,
            options=options,
            targets=targets,
            direction=given.direction,
        )
        return _Call(graph, question, given, numbers)

    def _with_or_without_hierarchy(self, call: _Call) -> _Call:
        """Return the call after the argument ``hierarchy``: with "yes" its graph has one, which may
        be built here, with "no" its graph hides it, and with "auto" it is the same.
        """
        choice = arguments.choice("hierarchy", call.given.hierarchy, _HIERARCHIES)
        if choice == "no":
            return call._replace(graph=call.graph.derived.without_hierarchy())
        if choice == "yes":
            call.graph.hierarchy(self.algorithm.metric)
        return call

    def _plan_with_hierarchy(self, call: _Call) -> MultiSourcePlan:
        """Return a plan for the searches of a call. With ``hierarchy="auto"`` a hierarchy is built
        first, if that is estimated to save time.
        """
        # The first plan supplies the estimates. No hierarchy is built if the caller has named a
        # strategy or bounded the memory.
        plan = self._plan_call(call)
        given = call.given
        if given.hierarchy != "auto" or plan.is_named or given.memory is not None:
            return plan
        # None: the graph has a hierarchy already, or none is likely to pay. ``is_worth_it`` wants
        # seconds saved for this number of sources, also if the estimates are somewhat wrong.
        estimate = plan.estimate_hierarchy()
        if estimate is None or not estimate.is_worth_it(plan.n_sources):
            return plan

        LOG.info("building a hierarchy: %s", estimate)
        plan.release()  # its memory, which building may need
        try:
            call.graph.hierarchy(self.algorithm.metric)
        except HierarchyError as error:
            LOG.info("no hierarchy: %s", error)
            return plan
        return self._plan_call(call)  # strategies over the hierarchy are usable now

    def _plan_call(self, call: _Call, **changes: Any) -> MultiSourcePlan:
        """Return a plan for the searches of a call. ``changes`` take the place of arguments of
        ``plan_multi_source``, such as fields of the query.
        """
        # ``of_plan`` returns the arguments that follow from the question.
        asked = call.question.of_plan() | {
            "n_sources": call.numbers.size,
            "strategy": call.given.strategy,
            "knobs": call.given.knobs,
            "memory": call.given.memory,
        }
        return self.plan_multi_source(call.graph, **(asked | changes))

    def _search_together(self, call: _Call, meter: Meter) -> Any:
        """Return the result, a frame, of a kind for which one search begins at all sources: the
        nearest source, or the k nearest, of each vertex.
        """
        asked = AskedTogether(
            call.given.of_kind.get("k"),
            call.given.strategy,
            call.question.limit,
            call.given.knobs,
            call.numbers.size,
        )
        together = self.plan_together(call.graph, asked, partial(self._plan_call, call))
        return frame_of_all(together, call.numbers, call.members, meter, call.question.options)

    def search_pairs(
        self,
        graph: Graph,
        origins: Any,
        destinations: Ids | None,
        given: GivenPairs,
        *,
        direction: str,
        **of_kind: Any,
    ) -> Any:
        """Search from origins to destinations, and return the distances or the flows of these pairs
        as a frame, as ``bfs_pairs`` and ``sssp_pairs`` do.

        ``given`` are their other arguments, not yet checked, and ``of_kind`` the options of the
        kind of result.
        """
        arguments.instance("graph", graph, Graph, "read_graph and graph_from_edges make one")
        # Not all kinds of result take this direction. ``written`` has the options that are given,
        # as the caller writes them, for the message of the error.
        if arguments.choice("direction", direction, outputs.DIRECTIONS) == "in":
            kind = RESULT_KINDS[arguments.choice("result", given.result, RESULTS_OF_PAIRS)]
            written = {"pairs": "pairs", "direction": "direction='in'"}
            rules.check(kind, self.algorithm.name, written)
        searched = outputs.graph_in_direction(graph, direction)
        try:
            return self._search_pairs(searched, origins, destinations, given, of_kind)
        except NegativeCycleError as error:
            raise outputs.cycle_in_direction(error, direction) from None

    def _search_pairs(
        self,
        graph: Graph,
        origins: Any,
        destinations: Ids | None,
        given: GivenPairs,
        of_kind: dict[str, Any],
    ) -> Any:
        """Search from origins to destinations along the edges of ``graph``, and return the frame of
        the pairs.

        ``graph`` is already the reverse if distances are asked for in that direction. The other
        arguments are those of ``search_pairs``.
        """
        # Check the options, and read the pairs: origins and destinations as vertex numbers, grouped
        # by origin.
        kind = RESULT_KINDS[arguments.choice("result", given.result, RESULTS_OF_PAIRS)]
        outputs.refuse_unknown(of_kind)
        written = {name: None if value is None else name for name, value in of_kind.items()}
        rules.check(kind, self.algorithm.name, {"pairs": "pairs", **written})

        # ``ends`` are two columns of ids, with the index of the user's table of pairs, or None.
        if destinations is None:
            ends = pairs.ends_of_pairs(origins)  # one argument has both columns
        else:
            ends = pairs.ends_of_columns(origins, destinations)
        begins, stops = pairs.numbers_of_pairs(graph, ends.origins, ends.destinations)
        table = pairs.pair_table(begins, stops)
        if of_kind.get("volumes") is not None:
            of_kind["volumes"] = in_order(
                "volumes", of_kind["volumes"], Partner("the pairs", ends.index)
            )
        options = check_options(kind, graph, self.algorithm.name, of_kind, pairs=table)

        # If all pairs have one origin, their destinations are the targets of the plan: then every
        # strategy for one source can stop at them. Not so where few targets are looked up in a
        # hierarchy, where kinds such as flows are added up over the pairs (``adds_up``), or where
        # columns are added up along the paths of pairs (``walks``).
        has_hierarchy = graph.derived.known_hierarchy(self.algorithm.metric) is not None
        is_looked_up = has_hierarchy and table.rows.size <= FEW_PATHS
        is_one = table.sources.size == 1 and not is_looked_up
        is_one = is_one and not kind.adds_up and options.walks is None
        targets = None
        if is_one:
            targets = graph.ids_at(namespace(graph.offsets).asarray(table.lists.union()))
        plan = self.plan_multi_source(
            graph,
            n_sources=table.sources.size,
            walks=options.walks,
            result="targets" if is_one else kind.name,
            strategy=given.strategy,
            limit=given.limit,
            targets=targets,
            knobs=given.knobs,
            memory=given.memory,
            targets_per_source=table.rows.size / max(table.sources.size, 1),
            # some origins with their destinations, which show how far searches go
            sample=None if is_one else table.sample(),
            # Flows are also added up from other forms of distances than an array of rows.
            forms=kind.reads if kind.adds_up else (),
        )

        # Flows are added up over all searches: ``make_loads`` returns the object that adds them.
        # Distances are put into the rows of their pairs.
        if kind.make_loads is not None:
            question = Question(
                kind=kind, algorithm=self.algorithm.name, options=options, pairs=table
            )
            asked = question.asked(graph, plan.query)
            # ``cut=False``: with negative weights the groups keep vertices beyond the limit.
            groups = plan.iter_groups(table.sources, table.lists, cut=False)
            loads = outputs.loads_frame(
                kind.make_loads(asked), groups, frames.frames_on(graph.device)
            )
            if ends.index is not None and "pair" in loads.columns:
                loads.index = ends.index.take(to_host(loads["pair"].values))
            return loads
        # a frame of the kind "pairs", without its column "pair": the rows are in that order
        return pairs.frame_of_pairs("pairs", plan, table, "pair", options, index=ends.index)
