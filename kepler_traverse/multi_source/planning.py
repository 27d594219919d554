"""Plans for many sources: choose the cheapest strategy, the group size and the memory that they
need.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

from .. import arguments, cuda
from .._arrays import hops_dtype, namespace, to_host
from ..auto.calibration import get_machine
from ..auto.choice import Choice, Measured
from ..auto.costs import load_costs
from ..auto.survey import outline, survey
from ..cuda.compiler import start_compiling
from ..errors import CapacityError, InputError, StrategyError
from ..graph import Graph
from ..hierarchy.estimate import Estimate, build_seconds
from ..hierarchy.lookup import looks_up
from ..runtime import LOG
from ..runtime.concurrency import SerializedSearch, SharedItems
from ..runtime.display import in_units
from ..runtime.memory import available_memory
from ..search import short_search
from ..search.algorithms import ALGORITHMS
from ..search.exact import Sums, WideningSearch
from ..search.plan import Plan, passes_limit, strategy_that_ran, traversal_fields
from ..search.query import Query, SourcesWithTargets, TargetLists
from ..search.results import Traversal, Traversals, join_traversals, without_farther
from ..search.strategy import (
    MultiSourceOutcome,
    MultiSourceSearch,
    MultiSourceStrategy,
    Shape,
    Strategy,
    pick,
    strategy_for_kind,
    strategy_for_sums,
)
from .explanation import explain_hierarchy, explain_plan

ONE_AT_A_TIME = "one_at_a_time"
FEW_PATHS = 256  # targets of one source up to which paths are looked up in a hierarchy
MAX_LOOP_GROUP = 16  # maximum group size of a strategy that runs its sources one after the other
# distances, or paths, that a group looks up in a hierarchy, whose memory does not grow with the
# group
_LOOKUPS = 1 << 10
_SHARE = 0.8  # fraction of the free memory that a plan may take
# sources; for fewer on a GPU no hierarchy pays, and the estimate would calibrate the CPU
_MANY_ON_GPU = 4096
# that the survey of searches which end early may always, and never walk
_FEW_EDGES = 1 << 16
_MANY_EDGES = 1 << 23
_SURVEY_SHARE = 0.02  # share of the edge visits of whole searches that this survey may make
_MAX_SOURCES = 1 << 62  # a larger number would not fit into an int64


class Candidate(NamedTuple):
    """A strategy that a plan may choose: its group size, its bytes in addition to the graph, and
    its estimated seconds.
    """

    name: str
    group: int
    nbytes: int
    seconds: float


class MultiSourcePlan:
    """A plan for traversals from many sources, made by ``plan_bfs_many`` and ``plan_sssp_many``.

    Any thread may run it, as with ``Plan``.

    Attributes
    ----------
    graph : Graph
    algorithm : {"bfs", "sssp"}
    strategy : MultiSourceStrategy
        The strategy that runs.
    query : Query
    group : int
        Number of sources that are searched together.
    nbytes : int
        Bytes that a run takes in addition to the graph, for one thread, including the results of
        one group.
    depth : int
        Levels of the deepest search that the survey made or extrapolated; 0 if it made none.
    why : str
        Explains the choice and lists the measurements made since.
    history : list of Measured
        Measured and estimated time of each group, if there was a choice of strategies.
    shape : Shape
        Properties of the graph that the choice used. A second plan of the same graph that receives
        it skips the survey.
    n_sources : int
        Number of sources that the choice was made for.
    is_named : bool
        Whether the caller has named the strategy.
    left_out : dict of str to str
        Maps strategies that ``auto`` could not choose among to the reason.
    """

    def __init__(
        self,
        graph: Graph,
        algorithm: str,
        strategies: Sequence[MultiSourceStrategy],
        single_source: Sequence[Strategy],
        name: str,
        query: Query,
        n_sources: int,
        memory: int | None = None,
        shape: Shape | None = None,
        searches: Sequence[Strategy] | None = None,
    ):
        self.graph = graph
        self.algorithm = algorithm
        n_sources = min(arguments.whole("n_sources", n_sources), _MAX_SOURCES)
        if memory is None:
            memory = None
        else:
            memory = arguments.whole("memory", memory)
        loop, usable = named_strategies(
            graph, algorithm, strategies, single_source, name, n_sources, query
        )
        if graph.device == "cuda":  # while the survey runs and its own kernels are compiled
            start_compiling(
                request
                for strategy in usable
                if strategy.kernels is not None
                for request in strategy.kernels(
                    graph, query, strategy.group_size(max(n_sources, 1))
                )
            )
        if shape is not None and (
            not isinstance(shape, Shape)
            or (shape.n_vertices, shape.n_edges) != (graph.n_vertices, graph.n_edges)
        ):
            raise InputError("shape must be that of an earlier plan of the same graph (plan.shape)")
        whole = None
        if self._ends_early(usable, query):
            most = min(max(_FEW_EDGES, int(_SURVEY_SHARE * n_sources * graph.n_edges)), _MANY_EDGES)
            if shape is None or shape.is_short:
                known = outline(graph)
            else:
                known = shape
            short = short_search.sampled(graph, known, query, algorithm == "bfs", most)
            if query.nearest is not None and short.is_short:
                further = replace(query, targets=None, nearest=None)
                no_limit = query.limit is None
                if no_limit:
                    whole = known
                else:
                    whole = short_search.sampled(graph, known, further, algorithm == "bfs", most)
            shape = short if short.is_short else shape
        if shape is None:
            # Without a choice, and without a depth to find out, the survey would be wasted.
            needs_survey = len(usable) > 1 or (algorithm == "bfs" and usable != [loop])
            if needs_survey:
                shape = survey(graph, algorithm, searches or single_source, n_sources)
            else:
                shape = outline(graph)
        self.shape = shape = shape._replace(keep=query.output, per_source=query.targets_per_source)
        if whole is None:
            self._whole = shape
        else:
            self._whole = whole._replace(keep=query.output, per_source=query.targets_per_source)
        why = [repr(graph)]
        if shape.depth:
            why.append(f"{shape.depth} levels")
        if shape.is_short:
            why.append(f"vertices that a search reaches: {shape.reach * shape.n_vertices:,.3g}")
        elif shape.reach < 1:
            why.append(f"a search reaches {shape.reach:.0%}")
        self.depth = shape.depth
        self._strategies = strategies
        self._memory = memory
        self._asked = query
        self.n_sources = max(n_sources, 1)
        self.is_named = name != "auto"
        self._owner = threading.current_thread()
        self._lock = threading.Lock()
        self.sums = Sums(graph, algorithm, query.limit)
        if self.is_named or n_sources <= 1:
            here = []
        else:
            here = _defaults(graph, strategies)
        reasons = {each.name: each.unsupported_reason(graph) for each in here}
        self.left_out = {each: reason for each, reason in reasons.items() if reason is not None}
        # with group sizes and bytes
        self._candidates: dict[str, tuple[MultiSourceStrategy, int, int]] = {}
        # group sizes by the wider types that sums may need
        self._groups_in_wider: dict[str, dict[np.dtype, int]] = {}
        errors = []
        for each in usable:
            try:
                self._add_candidate(each, query, memory)
            except CapacityError as error:
                errors.append(error)
                self.left_out[each.name] = str(error).partition(";")[0]
        if not self._candidates:
            raise errors[0]
        self._clock = time.perf_counter
        self._choice = Choice(
            {name: partial(self._estimate, name) for name in self._candidates},
            {name: group for name, (_, group, _) in self._candidates.items()},
        )
        first = next(iter(self._candidates))
        if len(self._candidates) > 1:
            ranked = self.ranked(self.n_sources)
            first = ranked[0].name
            why.append(
                "estimated: " + ", ".join(f"{each.name} {each.seconds:.3g} s" for each in ranked)
            )
        self._use_candidate(first)
        why.append(
            f"{self.strategy.name}, {self.group} sources at once, {self.nbytes / 2**20:,.0f} MiB"
        )
        if query.output == "paths" and self.strategy.finds_paths:
            why.append(f"paths are looked up, {query.targets_per_source:.3g} per source")
        if name == "auto":
            about_hierarchy = explain_hierarchy(self)
            if about_hierarchy:
                why.append(about_hierarchy)
        if algorithm == "sssp":
            why.append(
                f"sums in {self.sums.dtype}"
                + (", wider where these could round" if self.sums.may_widen else "")
            )
        self._why = "; ".join(why)
        LOG.info("%s from %d sources: %s", algorithm, n_sources, self._why)

    def _ends_early(self, strategies: Sequence[MultiSourceStrategy], query: Query) -> bool:
        """Whether searches may end early, and this matters for the choice."""
        if self.graph.has_negative_weights or not self.graph.n_edges:
            return False
        weights: Any = self.graph.weights
        # searches that touch only what they reach add floats
        if self.algorithm == "sssp" and weights.dtype.kind == "i":
            return False
        knows_end = query.limit is not None or query.targets is not None or query.sample is not None
        return knows_end and any(each.name == "short_search" for each in strategies)

    @property
    def why(self) -> str:
        """Explain the choice and list the measurements made since, in one line; ``explain`` has
        more.
        """
        measured = self.measurements()
        return self._why + ("; measured: " + ", ".join(measured) if measured else "")

    def explain(self) -> str:
        """Return a text that states the strategy, why it was chosen, the alternatives, and the
        memory of a group.

        For each alternative it lists the estimated seconds of all sources, the sources per group,
        and the memory of a group in addition to the graph.

        Examples
        --------
        >>> import numpy as np
        >>> plan = plan_bfs_many(graph_from_edges(np.array([0, 1]), np.array([1, 2])), n_sources=2, strategy="bit_parallel")
        >>> print(plan.explain().splitlines()[0])
        bfs from 2 sources, on <Graph: 3 vertices, 2 stored edges, directed, unweighted, cpu>
        """
        return explain_plan(self)

    def measurements(self) -> list[str]:
        """Describe the measured and estimated time of each strategy that ran; empty if there was no
        choice.
        """
        measured = []
        for name in dict.fromkeys(each.strategy for each in self.history):
            own = [each for each in self.history if each.strategy == name]
            taken = sum(each.seconds for each in own)
            estimated = sum(each.estimated for each in own)
            measured.append(
                f"{name} {sum(each.sources for each in own):,} sources in "
                f"{taken:.3g} s (estimated {estimated:.3g} s)"
            )
        return measured

    def __repr__(self) -> str:
        return (
            f"<MultiSourcePlan: {self.algorithm}, {self.strategy.name}, {self.group:,} sources per group, "
            f"{in_units(self.nbytes)}, on {self.graph!r}>"
        )

    @property
    def history(self) -> list[Measured]:
        """Measured and estimated time of each group, if there was a choice of strategies."""
        return self._choice.history

    def ranked(self, n_sources: int) -> list[Candidate]:
        """Candidates whose memory fits, with estimates for ``n_sources`` sources, fastest first."""
        n_sources = min(arguments.whole("n_sources", n_sources), _MAX_SOURCES)
        candidates = [
            Candidate(name, group, nbytes, self._estimate(name, n_sources))
            for name, (_, group, nbytes) in self._candidates.items()
        ]
        return sorted(candidates, key=lambda each: each.seconds)

    def estimate_hierarchy(self, rounded: bool = False) -> Estimate | None:
        """Estimate what a hierarchy would take and save; None if the graph has one already, or is
        not likely to have one.

        Networks with hubs, and weights that are no integers, are taken as not likely. With few
        sources on a GPU there is no estimate either. ``rounded``: as if the weights were rounded to
        integers.
        """
        graph = self.graph
        shape = self.shape
        sweeps = [
            each
            for each in self._strategies
            if "hierarchy" in each.needs and each.device == graph.device
        ]
        if not sweeps or graph.derived.known_hierarchy(sweeps[0].metric) is not None:
            return None
        if sweeps[0].metric == "weights" and (
            graph.has_negative_weights or not (graph.integer_weights or rounded)
        ):
            return None
        if not shape.is_lattice_like or graph.targets.dtype.itemsize > 4:
            return None
        if graph.device == "cuda" and self.n_sources < _MANY_ON_GPU:
            return None
        many = max(self.n_sources, 1000)
        search = self.ranked(many)[0].seconds / many
        group = sweeps[0].group_size(many)
        sweep = (
            _estimate_seconds(graph.device, self.algorithm, sweeps[0], shape, group, many) / many
        )
        host = get_machine("cpu")  # it builds the hierarchy
        build = build_seconds(
            graph.n_vertices, graph.n_edges, graph.directed, host.cores, host.step
        )
        return Estimate(build, sweep, search, sweeps[0].metric)

    def _estimate(self, name: str, n_sources: int) -> float:
        """Estimated seconds of a candidate for ``n_sources`` sources."""
        strategy, group, _ = self._candidates[name]
        return _estimate_seconds(
            self.graph.device,
            self.algorithm,
            strategy,
            self._make_shape(strategy),
            group,
            n_sources,
        )

    def _make_shape(self, strategy: MultiSourceStrategy) -> Shape:
        """Return the shape with the reach of a strategy's searches, which may not end at the
        nearest targets.
        """
        if strategy.ends_at_nearest:
            return self.shape
        return self._whole

    def _add_candidate(
        self, strategy: MultiSourceStrategy, query: Query, memory: int | None
    ) -> None:
        """Add a strategy with its largest group, in the planned type of sums and in each that they
        may need later.

        So a plan keeps to its memory if a type widens. Raises CapacityError: a type of float has
        too little memory.
        """
        shape = self._make_shape(strategy)
        name = strategy.name
        group, nbytes = _largest_group(strategy, shape, query, self.n_sources, memory)
        self._groups_in_wider[name] = {}
        for kind in self.sums.wider_types if self.algorithm == "sssp" else ():
            own = strategy_for_kind(strategy, self._strategies, kind)
            # The weights are there once more, in the wider type, and so are those of the reverse.
            weights = kind.itemsize * self.graph.n_edges * (1 + self.graph.directed)
            try:
                size, needed = _largest_group(
                    own, shape._replace(weight=kind.itemsize), query, group, memory, weights
                )
                nbytes = max(nbytes, needed)
            except CapacityError:
                if kind.kind == "f":
                    raise
                size = 1  # sums in int64 are computed in host memory, and hardly ever needed
            self._groups_in_wider[name][kind] = size
        self._candidates[name] = strategy, group, nbytes

    def _use_candidate(self, name: str) -> None:
        """Allocate and compile a candidate. Results of the previous one become invalid.

        A search is a chain of calls: ``SerializedSearch`` admits one thread at a time,
        ``WideningSearch`` repeats the search in a wider type where sums could round, and
        ``_prepared`` searches from fewer sources if that type needs it, and calls the strategy with
        targets per source if it takes them. ``iter_groups`` cuts the results at ``Query.limits``.
        """
        self._search: Any = None  # frees the previous candidate's memory before this one allocates
        self.strategy, self.group, self.nbytes = strategy, group, _ = self._candidates[name]
        self.query = query = replace(self._asked, knobs=strategy.knobs_from(self._asked.knobs))
        prepare = partial(self._prepared, strategy, group, query)
        self._search = SerializedSearch(
            lambda: WideningSearch(Sums(self.graph, self.algorithm, query.limit), prepare)
        )

    def run(
        self, source_vertices: Any, lists: TargetLists | None = None, cut: bool = True
    ) -> Traversals:
        """Traverse from up to ``group`` vertices, identified by their numbers 0..n-1, in that
        order.

        ``graph.to_numbers`` translates ids to vertex numbers.

        Parameters
        ----------
        source_vertices : iterable of int
        lists : TargetLists, optional
            The targets of each source, for a plan whose query ``has_target_lists``.
        cut : bool
            As in ``Plan.run_number``.

        Raises
        ------
        UnknownVertexError
            ``source_vertices`` are not vertex numbers of this graph.
        NegativeCycleError
            A negative cycle is reachable from one of the sources (SSSP only).
        PrecisionError
            A distance is too large for the graph's float type.
        """
        numbers = arguments.vertex_numbers(source_vertices, self.graph.n_vertices).astype(
            np.int64, copy=False
        )
        _check_lists(lists)
        cut = arguments.flag("cut", cut)
        with self._lock:
            self._allocate()
            search = self._search
            strategy = self.strategy
            group = self.group
        if numbers.size > group:
            raise InputError(
                f"{numbers.size} sources at once, and this plan takes {group}; use iter_groups()"
            )
        result = self._run(search, strategy, numbers, lists)
        parts = [result]
        done = len(result)
        while done < numbers.size:  # a type that is wider than planned may have smaller groups
            parts[-1] = parts[-1].copy()
            if lists is None:
                left = None
            else:
                left = lists.part(done, numbers.size)
            result = self._run(search, strategy, numbers[done:], left)
            if (
                ALGORITHMS[self.algorithm].is_weighted
                and result.distance.dtype != parts[-1].distance.dtype
            ):
                return self.run(numbers, lists, cut)  # all in the type that is wider still
            parts.append(result)
            done += len(result)
        joined = join_traversals(parts)
        if cut:
            return self._cut(joined)
        return joined

    def iter_groups(
        self, source_vertices: Any, lists: TargetLists | None = None, cut: bool = True
    ) -> Iterator[Traversals]:
        """Traverse from any number of vertices, identified by their numbers 0..n-1, in groups.

        Each result is valid until the next one is requested. Any threads may read the iterator; see
        ``adopt``. Arguments are those of ``run``.

        If groups take longer than estimated, another strategy may process the remaining sources.
        Results are the same.
        """
        numbers = arguments.vertex_numbers(source_vertices, self.graph.n_vertices).astype(
            np.int64, copy=False
        )
        _check_lists(lists)
        groups = self._groups(numbers, lists)
        if arguments.flag("cut", cut):
            groups = map(self._cut, groups)
        return SharedItems("the iterator of groups", groups)

    def adopt(self) -> None:
        """Make the calling thread the owner, whose results are not copied; see ``Plan.adopt``."""
        with self._lock:
            self._owner = threading.current_thread()
            if self._search is not None:
                self._search.adopt()

    def release(self) -> None:
        """Release the plan's memory. Results of earlier searches become invalid; the next search
        allocates again.
        """
        with self._lock:
            self._search = None

    def _allocate(self) -> None:
        """Allocate again after ``release``, or after an interrupt during a change of the strategy."""
        if self._search is None:
            self._use_candidate(self.strategy.name)

    def _cut(self, result: Traversals) -> Traversals:
        """Return a result without the vertices beyond the limit of its searches."""
        if passes_limit(self.graph, self.algorithm, self._asked):
            return cast(Traversals, without_farther(result, cast(float, self._asked.limit)))
        return result

    def _groups(self, numbers: np.ndarray, lists: TargetLists | None) -> Iterator[Traversals]:
        begin = 0
        while begin < numbers.size:
            search, strategy, size = self._next_search(numbers.size - begin)
            end = min(begin + size, numbers.size)
            group = self._run(
                search,
                strategy,
                numbers[begin:end],
                None if lists is None else lists.part(begin, end),
            )
            limits = self._asked.limits
            begin += len(group)
            yield group if limits is None else group.within(limits.of(group.sources))
            del group  # before the next one is made

    def _run(
        self,
        search: Any,
        strategy: MultiSourceStrategy,
        numbers: np.ndarray,
        lists: TargetLists | None,
    ) -> Traversals:
        """Traverse from a group, or from the first of its sources if all are too many for the type
        of sums that they need.

        Record its time if the owner thread runs it and there was a choice of strategies.
        """
        # the lock of the search would not do: another thread may still run the previous strategy
        with self._lock:
            began = self._clock()
            started = time.perf_counter()
            outcome = search(numbers if lists is None else SourcesWithTargets(numbers, lists))
            done = len(outcome.limits)
            numbers = numbers[:done]
            lists = None if lists is None else lists.part(0, done)
            if lists is not None and self.query.output == "targets" and outcome.distance.ndim > 1:
                outcome = outcome._replace(distance=lists.take(outcome.distance))
            if len(self._candidates) > 1 and threading.current_thread() is self._owner:
                if self.graph.device == "cuda":
                    cuda.cp.cuda.get_current_stream().synchronize()
                self._choice.note(strategy.name, numbers.size, self._clock() - began)
        name = strategy_that_ran(strategy, self._strategies, outcome).name
        LOG.debug(
            "%s: searched from %d sources in %.3g s",
            name,
            numbers.size,
            time.perf_counter() - started,
        )
        is_at_targets = self.query.output == "targets" or outcome.routes is not None
        if lists is None or not is_at_targets:
            offsets = None
        else:
            offsets = lists.offsets
        return Traversals(
            algorithm=self.algorithm,
            sources=numbers,
            strategy=name,
            offsets=offsets,
            **traversal_fields(outcome),
        )

    def _next_search(self, left: int) -> tuple[Any, MultiSourceStrategy, int]:
        """Return the search, the strategy and the number of sources of the next group.

        Only the owner thread may change the strategy: a change frees memory that holds the owner's
        results.
        """
        with self._lock:
            self._allocate()
            size = self.group
            if len(self._candidates) > 1 and threading.current_thread() is self._owner:
                before = self.strategy.name
                name, size = self._choice.next(before, left)
                try:
                    if name != before:
                        self._use_candidate(name)
                except MemoryError:
                    del self._candidates[name]
                    self._choice.keep(
                        {name: group for name, (_, group, _) in self._candidates.items()}
                    )
                    self._use_candidate(before)
                    size = self.group
            return self._search, self.strategy, size

    def _prepared(
        self, strategy: MultiSourceStrategy, planned: int, query: Query, sums: Sums
    ) -> MultiSourceSearch:
        """Allocate a search for one type of sums. In a wider type than planned it may take the
        first sources only.
        """
        group = planned
        if self.algorithm == "sssp" and sums.dtype != self.sums.dtype:
            group = self._groups_in_wider[strategy.name][sums.dtype]
        strategy = strategy_for_sums(strategy, self._strategies, sums, self.algorithm)
        asked = query
        if strategy.sums == "float":
            asked = sums.round_limits(query)
        search: Any = strategy.plan(sums.graph, _searchable(strategy, asked), group)
        if query.has_target_lists:
            search = _with_target_lists(search, strategy, query)
        if group == planned:
            return search

        def of_the_first(argument: Any) -> MultiSourceOutcome:
            return search(
                argument.part(0, group)
                if isinstance(argument, SourcesWithTargets)
                else argument[:group]
            )

        return of_the_first


def _searchable(strategy: MultiSourceStrategy, query: Query) -> Query:
    """Return the query for a strategy: one that takes no targets per source outputs the distances
    of all vertices.
    """
    if query.output == "paths" and not strategy.finds_paths:
        query = replace(query, output="all")
    if not query.has_target_lists or strategy.takes_target_lists:
        return query
    return replace(query, has_target_lists=False, output="all")


def _with_target_lists(
    search: Any, strategy: MultiSourceStrategy, query: Query
) -> MultiSourceSearch:
    """Return a search that takes ``SourcesWithTargets``.

    A strategy that takes no targets per source returns the distances of all vertices. Whether float
    sums are exact is seen from all of them, so that only hops and integers are reduced to the
    targets here.
    """
    if strategy.takes_target_lists:
        return lambda argument: search(*argument)

    def reduced(argument: Any) -> MultiSourceOutcome:
        outcome = search(argument.sources)
        if query.output == "targets" and outcome.distance.dtype.kind == "i":
            outcome = outcome._replace(distance=argument.lists.take(outcome.distance))
        return outcome

    return reduced


def named_strategies(
    graph: Graph,
    algorithm: str,
    strategies: Sequence[MultiSourceStrategy],
    single_source: Sequence[Strategy],
    name: str,
    n_sources: int,
    query: Query,
) -> tuple[MultiSourceStrategy, list[MultiSourceStrategy]]:
    """Return the strategy that searches from one source after another, and those that a plan may
    choose among.

    These are the named one, or with ``"auto"`` all defaults that can run.
    """
    name = arguments.text("strategy", name, "a name that strategies() lists", StrategyError)
    is_single = any(each.is_called(name) for each in single_source)
    loop = one_at_a_time(pick(single_source, name if is_single else "auto", graph), algorithm)
    if name != "auto":
        return loop, [pick([*strategies, loop], name, graph)]
    fitting = [
        each for each in _defaults(graph, strategies) if each.unsupported_reason(graph) is None
    ]
    if n_sources <= 1:  # without a survey, which would take longer than it could save
        if query.nearest is not None:
            return loop, [
                each for each in fitting if each.name == "short_search" and each.device == "cpu"
            ] or [loop]
        is_few = query.has_target_lists and query.targets_per_source <= FEW_PATHS
        return loop, [each for each in fitting if each.finds_paths and is_few] or [loop]
    return loop, [*fitting, loop]


def _defaults(graph: Graph, strategies: Sequence[MultiSourceStrategy]) -> list[MultiSourceStrategy]:
    """Return the default strategies of the graph's device."""
    return [each for each in strategies if each.default and each.device == graph.device]


def _estimate_seconds(
    device: str,
    algorithm: str,
    strategy: MultiSourceStrategy,
    shape: Shape,
    group: int,
    n_sources: int,
) -> float:
    """Estimated seconds of a strategy for ``n_sources`` sources."""
    group = min(group, strategy.group_size(max(n_sources, 1)))
    if shape.keep == "paths" and not strategy.finds_paths:
        shape = shape._replace(keep="all")
    return load_costs(device).seconds(
        algorithm, strategy, shape, n_sources, group, get_machine(device)
    )


def _largest_group(
    strategy: MultiSourceStrategy,
    shape: Shape,
    query: Query,
    n_sources: int,
    memory: int | None,
    beside: int = 0,
) -> tuple[int, int]:
    """Return the size of the largest group that fits, and its bytes, with those that are ``beside``
    its own.

    Raises CapacityError: not even the smallest group fits. The message states the bytes needed and
    the bytes free.
    """
    device = strategy.device
    if memory is None:
        most = int(available_memory(device) * _SHARE)
    else:
        most = memory
    sizes = {
        strategy.group_size(n_sources >> halvings) for halvings in range(n_sources.bit_length())
    }
    if "hierarchy" in strategy.needs and strategy.finds_paths and looks_up(query, shape.n_vertices):
        sizes = {max(sizes | {min(n_sources, int(_LOOKUPS / max(query.targets_per_source, 1)))})}
    for group in sorted(sizes, reverse=True):
        needed = strategy.memory(shape, _searchable(strategy, query), group) + beside
        if needed <= most:
            return group, needed
    raise CapacityError(
        f"strategy {strategy.name!r} needs {needed / 2**20:,.1f} MiB in addition to the graph for {group} sources at once, "
        f"and {most / 2**20:,.1f} MiB are free; take a larger machine, a result that holds less (summary, targets), or "
        f"strategy={ONE_AT_A_TIME!r}"
    )


def one_at_a_time(single: Strategy, algorithm: str) -> MultiSourceStrategy:
    """Return a multi-source strategy that runs a single-source strategy once per source. It has the
    same name.
    """

    def plan(graph: Graph, query: Query, _group: int) -> MultiSourceSearch:
        one = Plan(
            graph, algorithm, [single], single.name, replace(query, output="all"), may_widen=False
        )

        def outputs(sources: np.ndarray) -> Iterator[Traversal]:
            """Yield the requested output of each search, in arrays that stay valid after the next
            one.
            """
            for source in sources:
                result = one.run_unguarded(int(source))
                if query.output == "all":
                    yield result.copy()
                else:
                    xp = namespace(result.distance)
                    at_targets = query.output == "targets"
                    kept = result.distance[
                        xp.asarray(query.targets) if at_targets else result.reached
                    ]
                    yield replace(
                        result, distance=kept if at_targets else xp.bincount(kept), predecessor=None
                    )

        return lambda sources: _stack_traversals(list(outputs(sources)), graph, algorithm, query)

    def memory(shape: Shape, query: Query, group: int) -> int:
        width = shape.weight if algorithm == "sssp" else 4
        # twice: a copy per traversal, and then the stacked arrays
        if query.output == "all":
            n_arrays = 2 * group
        else:
            n_arrays = 0
        state = single.memory(shape.n_vertices, shape.n_edges, query.predecessors)
        return state + n_arrays * shape.n_vertices * (width + shape.index * query.predecessors)

    def terms(shape: Shape, n_sources: int, _group: int, machine: Any) -> dict[str, float]:
        edges = n_sources * shape.n_edges * shape.walked
        return {
            "start": n_sources,
            "count": n_sources * (shape.keep == "counts"),
            "level": n_sources * shape.likely_rounds,
            "vertex": n_sources * shape.n_vertices,
            "edge": edges / (machine.cores if single.device == "cpu" and algorithm == "bfs" else 1),
            "again": edges * shape.detours if algorithm == "sssp" else 0,
            "extra_round": n_sources * shape.extra_rounds if algorithm == "sssp" else 0,
            "miss": edges * shape.scatter * machine.missing(4 * shape.n_vertices),
        }

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
        group_size=lambda n_sources: min(n_sources, MAX_LOOP_GROUP),
        terms=terms,
        repeats=True,
    )


def _stack_traversals(
    traversals: list[Traversal], graph: Graph, algorithm: str, query: Query
) -> MultiSourceOutcome:
    if not traversals:
        return _no_traversal(graph, algorithm, query)
    xp = namespace(graph.offsets)
    limits = [t.limit for t in traversals]
    rounds = [t.rounds for t in traversals]
    if query.output == "counts":
        counts = np.zeros((len(traversals), max(t.distance.size for t in traversals)), np.int64)
        for row, traversal in zip(counts, traversals, strict=True):
            row[: traversal.distance.size] = to_host(traversal.distance)
        return MultiSourceOutcome(None, None, limits, rounds, counts)
    distance = xp.stack([t.distance for t in traversals])
    if algorithm == "bfs":
        distance = distance.astype(
            hops_dtype(int(distance.max()) if distance.size else 0), copy=False
        )
    if query.predecessors and query.output == "all":
        predecessor = xp.stack([t.predecessor for t in traversals])
    else:
        predecessor = None
    return MultiSourceOutcome(distance, predecessor, limits, rounds)


def _check_lists(lists: Any) -> None:
    if lists is not None:
        arguments.instance(
            "lists", lists, TargetLists, "bfs_pairs and sssp_pairs take pairs as they are"
        )


def _no_traversal(graph: Graph, algorithm: str, query: Query) -> MultiSourceOutcome:
    """Return the outcome of no source."""
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
