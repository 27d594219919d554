"""Plans for many sources: ``MultiSourcePlan``.

Planning has four steps, each in a module or a function of its own: which strategies can run and
what the searches visit (``workload``), which of them fit into memory, in groups of which size, and
how long they take (``candidates``), what the fastest of them needs to search (``group_search``),
and why it was chosen (``explanation``).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import numpy as np

from .. import arguments, cuda
from ..auto.choice import Measured
from ..errors import InputError
from ..hierarchy.estimate import Estimate
from ..runtime import LOG
from ..runtime.concurrency import SharedItems
from ..runtime.display import in_units
from ..search.algorithms import ALGORITHMS
from ..search.exact import Sums
from ..search.plan import passes_limit
from ..search.query import TargetLists
from ..search.results import Traversals, join_traversals, without_farther
from ..search.strategy import MultiSourceStrategy, Shape
from .candidates import Candidate, Candidates, Capacity, fit, list_unsupported
from .explanation import describe_choice, explain_plan
from .group_search import GroupSearch, search_group
from .workload import (
    Strategies,
    Workload,
    check_n_sources,
    find_usable,
    measure_shapes,
    start_kernels,
)


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
        work: Workload,
        strategies: Strategies,
        name: str,
        memory: int | None = None,
        shape: Shape | None = None,
    ):
        """Choose a strategy, and allocate and compile its search.

        ``work`` is what is searched, ``strategies`` are those of the algorithm, and ``name`` is one
        of their names or "auto". ``memory`` are the bytes that a run may take in addition to the
        graph; None: a share of what is free. ``shape`` is that of an earlier plan, or None.
        """
        # Which strategies can run, and how far their searches go.
        work = work._replace(n_sources=check_n_sources(work.n_sources))
        graph = work.graph
        algorithm = work.algorithm
        if memory is not None:
            memory = arguments.whole("memory", memory)
        usable = find_usable(work, strategies, name)
        start_kernels(work, usable)  # they are compiled while the survey runs
        shapes = measure_shapes(work, strategies, usable, shape)

        # The facts that the choice depends on, and the strategies that fit into memory.
        self.graph = graph
        self.algorithm = algorithm
        self.n_sources = work.n_searches
        self.shape = shapes.at_nearest
        self.depth = self.shape.depth
        self.is_named = name != "auto"
        self.sums = Sums(graph, algorithm, work.query.limit)  # the types that sums may need
        self._work = work
        self._strategies = strategies
        # Only results of this thread are not copied, and only it may change the strategy.
        self._owner = threading.current_thread()
        self._lock = threading.Lock()  # held while the strategy may change, and during a search
        self._clock = time.perf_counter
        self._search: Any = None  # a ``SerializedSearch``; None while nothing is allocated
        self._candidates: Candidates = fit(
            work, strategies, usable, shapes, Capacity(memory, self.sums)
        )

        # Begin with the fastest candidate. ``ranked`` is empty if there is only one.
        self.left_out = self._candidates.left_out
        if not self.is_named and work.n_sources > 1:
            self.left_out = list_unsupported(work, strategies) | self.left_out
        self._choice = self._candidates.make_choice()
        ranked = self._candidates.compare(self.n_sources)
        names = [each.name for each in ranked] or list(self._candidates.fitting)
        self._use_candidate(names[0])
        self._why = describe_choice(self, ranked)
        LOG.info("%s from %d sources: %s", algorithm, work.n_sources, self._why)

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
        """Return a text per strategy that ran, with its measured and estimated time; none if there
        was no choice.
        """
        measured = []
        for name in dict.fromkeys(each.strategy for each in self.history):
            groups = [each for each in self.history if each.strategy == name]
            n_sources = sum(each.sources for each in groups)
            seconds = sum(each.seconds for each in groups)
            estimated = sum(each.estimated for each in groups)
            measured.append(
                f"{name} {n_sources:,} sources in {seconds:.3g} s (estimated {estimated:.3g} s)"
            )
        return measured

    def __repr__(self) -> str:
        """Return one line: the algorithm, the strategy, the size and bytes of a group, and the
        graph.
        """
        return (
            f"<MultiSourcePlan: {self.algorithm}, {self.strategy.name}, "
            f"{self.group:,} sources per group, {in_units(self.nbytes)}, on {self.graph!r}>"
        )

    @property
    def history(self) -> list[Measured]:
        """Measured and estimated time of each group, if there was a choice of strategies."""
        return self._choice.history

    def ranked(self, n_sources: int) -> list[Candidate]:
        """Return the strategies that fit into memory, with estimates for ``n_sources`` sources,
        fastest first.
        """
        return self._candidates.ranked(n_sources)

    def estimate_hierarchy(self, rounded: bool = False) -> Estimate | None:
        """Estimate how long building a hierarchy of the graph would take, and how long searches
        take with and without it; None if the graph has one already, or is not likely to have a
        small one.

        Networks with hubs, and weights that are no integers, are taken as not likely. With few
        sources on a GPU there is no estimate either. ``rounded``: as if the weights were rounded to
        integers.
        """
        return self._candidates.estimate_hierarchy(self._strategies, rounded)

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
            With negative weights a search passes vertices beyond its limit. True: they are
            unreached in the result. False: they are in the result, whose limit is None, so that it
            can be certified.

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
        # Another thread may change the strategy, so its fields are read together.
        with self._lock:
            self._allocate()
            search = self._search
            strategy = self.strategy
            group = self.group
        if numbers.size > group:
            raise InputError(
                f"{numbers.size} sources at once, and this plan takes {group}; use iter_groups()"
            )

        # A type that is wider than planned may have smaller groups: then there are several parts.
        result = self._run(search, strategy, numbers, lists)
        parts = [result]
        done = len(result)
        while done < numbers.size:
            parts[-1] = parts[-1].copy()  # the next search writes to the same arrays
            lists_left = None if lists is None else lists.part(done, numbers.size)
            result = self._run(search, strategy, numbers[done:], lists_left)
            # Parts of a result must have one type.
            if (
                ALGORITHMS[self.algorithm].is_weighted
                and result.distance.dtype != parts[-1].distance.dtype
            ):
                return self.run(numbers, lists, cut)  # all in the type that is wider still
            parts.append(result)
            done += len(result)
        joined = join_traversals(parts)  # of several groups, as those of one
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
        """Make the calling thread the owner of the plan, whose results are not copied and which
        alone may change the strategy. Results of earlier searches become invalid.
        """
        with self._lock:
            self._owner = threading.current_thread()
            if self._search is not None:
                self._search.adopt()

    def release(self) -> None:
        """Release the plan's memory. Results of earlier searches become invalid; the next search
        allocates again.
        """
        # Not while another thread searches in it.
        with self._lock:
            self._search = None

    def _allocate(self) -> None:
        """Allocate again, if there is no search after ``release``, or after an interrupt during a
        change of the strategy. The caller holds the lock.
        """
        if self._search is None:
            self._use_candidate(self.strategy.name)

    def _cut(self, result: Traversals) -> Traversals:
        """Return a result without the vertices beyond the limit of its searches.

        Only with negative weights do searches reach any: a path to a vertex within the limit may
        lead through them. Other results are returned as they are.
        """
        if passes_limit(self.graph, self.algorithm, self._work.query):
            return cast(Traversals, without_farther(result, cast(float, self._work.query.limit)))
        return result

    def _use_candidate(self, name: str) -> None:
        """Make the candidate called ``name`` the strategy that runs: allocate and compile it.
        Results of the previous one become invalid.
        """
        self._search = None  # frees the previous candidate's memory before this one allocates
        chosen = self._candidates.fitting[name]
        self.strategy = chosen.strategy
        self.group = chosen.group
        self.nbytes = chosen.nbytes
        query = self._work.query
        self.query = replace(query, knobs=chosen.strategy.knobs_from(query.knobs))
        work = self._work._replace(query=self.query)
        self._search = GroupSearch(work, self._strategies.many, chosen).plan()

    @property
    def _may_change(self) -> bool:
        """Whether the calling thread may change the strategy, by the times that it measures: it is
        the owner of the plan, and there is a choice.
        """
        return len(self._candidates) > 1 and threading.current_thread() is self._owner

    def _groups(self, numbers: np.ndarray, lists: TargetLists | None) -> Iterator[Traversals]:
        """Yield the results of groups of sources, each by the strategy that is chosen when the
        result is requested.

        ``numbers`` are the vertex numbers of all sources, int64, and ``lists`` the targets of each,
        if each has its own.
        """
        limits = self._work.query.limits
        begin = 0
        while begin < numbers.size:
            # ``size`` is the most sources of the group. Each group may have another strategy.
            search, strategy, size = self._next_search(numbers.size - begin)
            end = min(begin + size, numbers.size)
            lists_of_group = None
            if lists is not None:
                lists_of_group = lists.part(begin, end)
            group = self._run(search, strategy, numbers[begin:end], lists_of_group)
            begin += len(group)  # fewer than asked for if sums needed a wider type
            # Sources that have limits of their own are searched to the largest limit.
            if limits is None:
                yield group
            else:
                yield group.within(limits.of(group.sources))  # farther vertices become unreached
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

        ``search`` is a ``SerializedSearch`` of ``strategy``, ``numbers`` are the vertex numbers of
        the sources, and ``lists`` has the targets of each source, if each has its own. The time is
        recorded if the owner thread runs the search and there was a choice of strategies.
        """
        output = self.query.output
        # The lock of the search would not do: another thread may still run the previous strategy.
        with self._lock:
            began = self._clock()  # which tests replace
            started = time.perf_counter()
            # ``outcome.sources`` are those that were searched from, the first of ``numbers``.
            outcome = search_group(search, numbers, lists, output)
            if self._may_change:
                # Kernels may still run when a search returns.
                if self.graph.device == "cuda":
                    cuda.cp.cuda.get_current_stream().synchronize()
                self._choice.note(strategy.name, outcome.sources.size, self._clock() - began)
        # It names the strategy that ran: for sums in int64 it is not the chosen one.
        group = outcome.to_traversals(self.algorithm, strategy, self._strategies.many, output)
        LOG.debug(
            "%s: searched from %d sources in %.3g s",
            group.strategy,
            outcome.sources.size,
            time.perf_counter() - started,
        )
        return group

    def _next_search(self, n_left: int) -> tuple[Any, MultiSourceStrategy, int]:
        """Return the search, the strategy and the number of sources of the next group, where
        ``n_left`` sources are left.

        The strategy is changed here if another one is expected to be faster. Only the owner thread
        may do that: a change frees memory that holds the owner's results.
        """
        with self._lock:
            self._allocate()
            size = self.group
            if self._may_change:
                # By the estimates, corrected by the times that ``_run`` has noted.
                current = self.strategy.name
                name, size = self._choice.next(current, n_left)
                try:
                    if name != current:
                        self._use_candidate(name)
                except MemoryError:
                    # The new strategy does not fit any more, and is no candidate from now on. The
                    # choice is restricted to the other candidates.
                    del self._candidates.fitting[name]
                    self._choice.keep(self._candidates.groups)
                    self._use_candidate(current)
                    size = self.group
            return self._search, self.strategy, size


def _check_lists(lists: Any) -> None:
    """Raise InputError if target lists are of another type, such as the pairs themselves."""
    if lists is not None:
        arguments.instance(
            "lists", lists, TargetLists, "bfs_pairs and sssp_pairs take pairs as they are"
        )
