"""Results of all sources together: objects that search, certify and make the columns, for the
library and the job.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from .._arrays import Array, make_offsets, namespace, positions_in_groups, sort_distinct, to_host
from ..certificate import certify, certify_group
from ..errors import InputError
from ..graph import Graph
from ..graph.closed import where_paths_end
from ..kinds.along import (
    ALONG,
    AlongPaths,
    columns_of_sums,
    sums_along_predecessors,
    sums_at_targets,
)
from ..kinds.k_nearest import (
    SourceGroups,
    certify_labels,
    columns_of_rows,
    merge_groups,
    rows_of_labels,
    search_labels,
    takes_one_search,
)
from ..kinds.nearest import nearest_columns, nearest_source_search
from ..kinds.pairs import pair_table
from ..kinds.result_kinds import GROUP
from ..runtime import LOG
from ..runtime.progress import Meter
from ..search.algorithms import ALGORITHMS
from ..search.frames import Column, columns_on_device, frame_from, labels_at
from ..search.plan import make_query
from ..search.query import Nearest, Query
from ..search.results import Traversals
from ..search.sparse import SparseDistances
from ..search.strategy import MultiSourceOutcome, MultiSourceStrategy, Shape, Strategy, pick
from .outputs import graph_in_direction
from .planning import MultiSourcePlan
from .workload import Workload

_ARRAYS_OF_MERGE = 8  # of 8 bytes per vertex, while one source is merged

# times the block of a phase: "traverse" or "certify"
Clock = Callable[[str], AbstractContextManager[Any]]
# per group its label, and the vertex numbers of its sources, int64 and ascending
Groups = Sequence[tuple[Any, np.ndarray]]


def _untimed(_phase: str) -> AbstractContextManager[None]:
    """Return a context manager that does nothing, in place of one that times a phase."""
    return contextlib.nullcontext()


class RunOptions(NamedTuple):
    """How a search from all sources together runs."""

    # each group has k nearest sources of its own; None if all sources are one group
    groups: Groups | None = None
    certified: bool = False  # whether its distances are certified before columns are made of them
    clock: Clock = _untimed  # ``clock(phase)`` times its block
    meter: Meter | None = None  # reports each source that is done; None for no report
    of_kind: Any = None  # the checked options of the result kind, ``KindOptions``

    @property
    def along(self) -> AlongPaths | None:
        """The columns of the edge list that are added up along the paths; None without any."""
        return getattr(self.of_kind, "along", None)

    def advance(self, n_sources: int) -> None:
        """Report that ``n_sources`` further sources are done."""
        if self.meter is not None:
            self.meter.advance(n_sources)


PLAIN = RunOptions()


class SearchTogether:
    """A search from all sources together, or of the whole graph, ready to run. Subclasses have
    ``find``.

    ``work`` is what the search is for, and ``strategy``, ``nbytes`` and ``why`` are the attributes.

    Attributes
    ----------
    graph : Graph
    algorithm : {"bfs", "sssp"}
    group : int
        Number of all sources.
    strategy
        Any object with a ``name``, a ``device`` and a ``rationale``.
    query : Query
    nbytes : int
        Bytes that a run takes in addition to the graph.
    why : str
        Explains the choice.
    depth : int
        Levels of the deepest search that a survey made; 0 if there was none.
    """

    depth = 0

    def __init__(
        self,
        work: Workload,
        strategy: Any,
        nbytes: int,
        why: str,
    ):
        """Keep the attributes, and log why the strategy was chosen."""
        self.graph = work.graph
        self.algorithm = work.algorithm
        self.group = work.n_sources
        self.strategy = strategy
        self.query = work.query
        self.nbytes = nbytes
        self.why = why
        LOG.info("%s from %d sources together: %s", self.algorithm, self.group, why)

    def find(
        self, numbers: np.ndarray, options: RunOptions = PLAIN
    ) -> tuple[dict[str, Column], int]:
        """Search from ``numbers``, distinct vertex numbers. Return the columns of the result by
        name, and the levels or rounds that the search took.

        Raises NegativeCycleError (a negative cycle is reachable from one of the sources, SSSP only)
        or CertificateError (a distance is wrong).
        """
        raise NotImplementedError


def require_sources(work: Workload) -> tuple[Graph, int]:
    """Return the graph and the number of sources of a search for the nearest ones.

    Raises InputError: there is no source.
    """
    if not work.n_sources:
        raise InputError("result='nearest' needs at least one source")
    return work.graph, work.n_sources


class NearestSearch(SearchTogether):
    """One search for the nearest source of each vertex.

    ``strategies`` are those for one source, and ``strategy`` names one of them or is ``"auto"``.
    The search begins at an additional vertex, which has an edge to each source.
    """

    def __init__(
        self,
        work: Workload,
        strategies: Sequence[Strategy],
        strategy: str,
    ):
        """Choose the strategy; ``find`` searches.

        Raises InputError (there is no source) or StrategyError (no such strategy can run).
        """
        graph, n_sources = require_sources(work)
        self._strategies = strategies
        chosen = pick(strategies, strategy, graph)  # with "auto" the first default that fits
        owners = 3 * 8 * graph.n_vertices  # arrays of ``nearest_columns``
        # A copy of the graph with one vertex more, and an edge from it to each source. True: the
        # search finds predecessors, which lead back to the nearest source.
        nbytes = (
            graph.derived.nbytes_on_device
            + chosen.memory(graph.n_vertices + 1, graph.n_edges + n_sources, True)
            + owners
        )
        why = f"{graph!r}; {chosen.name}, one search from all {n_sources} sources together"
        query = replace(work.query, knobs=chosen.knobs_from(work.query.knobs))
        super().__init__(work._replace(query=query), chosen, nbytes, why)

    def find(
        self, numbers: np.ndarray, options: RunOptions = PLAIN
    ) -> tuple[dict[str, Column], int]:
        """Search from ``numbers``, distinct vertex numbers. Return the columns ``vertex, source,
        distance`` by name, with those of sums along the paths, and the rounds of the search.
        """
        name = self.strategy.name
        numbers = np.sort(numbers)
        with options.clock("traverse"):
            rooted, result = nearest_source_search(
                self.graph,
                numbers,
                self.algorithm,
                self._strategies,
                name,
                self.query,
                # the lengths of the edges to the sources, by source; None: 0, or one hop
                getattr(options.of_kind, "start_costs", None),
            )
        with options.clock("certify"):
            # ``rooted`` is the graph with the additional vertex, the source of ``result``.
            if options.certified:
                certify(rooted, result).require()  # raises CertificateError
        options.advance(numbers.size)

        columns = nearest_columns(self.graph, result, self.query.limit)
        # Sums along the path from the nearest source to each vertex. A closed vertex has two
        # numbers: the path ends at another one than that of the column.
        if options.along is not None:
            vertices = where_paths_end(self.graph, np.asarray(to_host(columns["vertex"].numbers)))
            sums = sums_along_predecessors(self.graph, result, vertices, options.along)
            columns |= columns_of_sums(options.along, sums)
        return columns, int(result.rounds)


class OnlyWay(NamedTuple):
    """What stands for the strategy of a search that chooses among none: the fields of one that are
    shown.
    """

    device: str  # "cpu" or "cuda"
    name: str
    rationale: str  # one line


# name and rationale in place of a strategy
_LABELS = "k_labels", "one search from all sources, with up to k labels per vertex"


class KNearestSearch(SearchTogether):
    """The search for the k nearest sources of each vertex.

    It is one search from all sources, which keeps up to k labels, a distance and a source, per
    vertex. Where that is not possible, or with ``may_take_one=False``, each source is searched
    from, and the distances of all are merged. For these searches ``plan_for(n_sources=n,
    forms=forms)`` returns a ``MultiSourcePlan`` of distances.

    - ``searches``: the plan of searches from each source; None where one search finds all.

    Raises InputError: there is no source.
    """

    def __init__(
        self,
        work: Workload,
        k: int,
        plan_for: Callable[..., MultiSourcePlan],
        may_take_one: bool = True,
    ):
        """Choose between one search from all sources and a search from each, for which a plan is
        made; ``find`` searches.
        """
        self._k = k
        self._plan_for = plan_for
        graph, n_sources = require_sources(work)
        self.searches: MultiSourcePlan | None = None
        # Bytes of the labels, a distance and a source each, and of the arrays that merge a source.
        labels = 8 * graph.n_vertices * (2 * self._k + _ARRAYS_OF_MERGE)
        about = f"the {self._k} nearest of {n_sources} sources"

        # One search takes sums that are exact integers of 0 or more, and on a GPU the memory for
        # its labels. ``may_take_one`` is False where the caller wants a strategy of its choice.
        if may_take_one and takes_one_search(graph, work.counts_hops, min(self._k, n_sources)):
            limit = work.query.limit
            query = make_query(graph, work.algorithm, predecessors=False, limit=limit)
            strategy = OnlyWay(graph.device, *_LABELS)
            why = f"{graph!r}; {strategy.rationale}; {about}"
            # Three times: a round reads one set of labels and writes another, and some are
            # returned.
            super().__init__(work._replace(query=query), strategy, 3 * labels, why)
            return

        # "sparse": distances may come as entries of reached vertices alone, which can be merged,
        # too.
        plan = self.searches = plan_for(n_sources=n_sources, forms=("sparse",))
        why = f"{plan.why}; {about}"
        super().__init__(work._replace(query=plan.query), plan.strategy, plan.nbytes + labels, why)
        self.depth = plan.depth

    def find(
        self, numbers: np.ndarray, options: RunOptions = PLAIN
    ) -> tuple[dict[str, Column], int]:
        """Search from ``numbers``, distinct vertex numbers, for the k nearest of all, or of each
        group of ``options.groups``.

        Return the columns ``vertex, rank, source, distance`` by name, with a column of groups and
        those of sums along the paths where they are wanted, and the rounds of the longest search.
        """
        groups = options.groups
        if groups is None:
            parts = [np.sort(numbers)]
        else:
            parts = [members for _, members in groups]
        # Rows of each group (vertex, rank, source, distance), and the rounds of its longest search.
        try:
            results = [self.make_rows(sources, options) for sources in parts]
        except BaseException:  # a kept error keeps this frame, and with it the plan's memory
            if self.searches is not None:
                self.searches.release()
            raise

        xp = namespace(self.graph.offsets)
        rounds = max(rounds_of_part for _, rounds_of_part in results)
        rows_of_parts = [rows for rows, _ in results]
        if len(results) == 1:
            rows = rows_of_parts[0]
        else:
            rows = tuple(map(xp.concatenate, zip(*rows_of_parts, strict=True)))
        columns = columns_of_rows(self.graph, rows)
        if options.along is not None:
            columns |= columns_of_sums(options.along, self._sums(rows, options.along))
        if groups is None:
            return columns, rounds
        # The group of each row: rows are group by group.
        places = np.repeat(np.arange(len(groups)), [vertex.size for vertex, *_ in rows_of_parts])
        return {GROUP: labels_at([label for label, _ in groups], places), **columns}, rounds

    def _sums(
        self, rows: tuple[Array, Array, Array, Array], along: AlongPaths
    ) -> dict[str, np.ndarray]:
        """Return the sums along the path of each row, by name, arrays of shape (n_rows,).

        ``rows`` are vertex, rank, source and distance, as ``rows_of_labels`` returns them.
        ``along`` has the columns of the edge list to add up. The paths are found by searches from
        the sources.
        """
        # Each row is a pair of a source and a vertex. The table groups pairs by source, and knows
        # the row of each, to which its sum is written.
        vertex, _, source, _ = (to_host(each) for each in rows)
        table = pair_table(source, vertex.astype(np.int64))
        # ``sums_at_targets`` walks the paths back along distances of all vertices, and adds up. So
        # the searches themselves add up no columns (``walks=None``), and return arrays with a row
        # per source (``forms=()``).
        plan = self._plan_for(n_sources=table.sources.size, forms=(), walks=None, output="all")
        sums: dict[str, np.ndarray] = {}
        begin = 0
        # ``cut=False``: vertices beyond the limit stay in the groups, as paths may lead through
        # them where weights are negative. ``sums_at_targets`` applies the limit.
        for group in plan.iter_groups(table.sources, cut=False):
            lists = table.lists.part(begin, begin + len(group))
            begin += len(group)
            sums_of_group = sums_at_targets(self.graph, group, lists, self.query.limit, along)
            # position of the group's first pair in the lists of all groups
            first = int(table.lists.offsets[begin - len(group)])
            for name, values in sums_of_group.items():
                if name not in sums:
                    sums[name] = np.zeros(vertex.size, values.dtype)
                sums[name][table.rows[first : first + values.size]] = values
        if not sums:  # without a row: empty arrays of the types that the columns have
            return {ALONG + name: value[:0] for name, value in along.values.items()}
        return sums

    def make_rows(
        self, ascending: np.ndarray, options: RunOptions
    ) -> tuple[tuple[Array, Array, Array, Array], int]:
        """Return the rows of the k nearest of some sources for each vertex, and the rounds of the
        longest search.

        ``ascending`` are the vertex numbers of the sources, in that order. Rows are four arrays
        ``vertex, rank, source, distance``, by ascending vertex and rank, with vertex numbers, on
        the device of the graph.
        """
        graph = self.graph
        algorithm = self.algorithm
        limit = self.query.limit
        k = min(self._k, ascending.size)
        clock = options.clock
        certified = options.certified
        # One search with labels. ``distance`` and ``owner`` have shape (n_vertices, k): an owner is
        # a position in ``ascending``, -1 for no label.
        if self.searches is None:
            with clock("traverse"):
                distance, owner = search_labels(graph, algorithm, ascending, k, limit)
            with clock("certify"):
                if certified:
                    # raises CertificateError
                    certify_labels(graph, algorithm, ascending, limit, distance, owner)
            options.advance(ascending.size)
            # One search counts as one round, since it does not report any.
            return rows_of_labels(graph, algorithm, ascending, distance, owner), 1

        # A search from each source, merged group by group. With negative weights searches pass
        # vertices beyond the limit. ``cut=False`` keeps these in the groups, as the certificate
        # needs them; ``merge_groups`` leaves them out.
        self.searches.adopt()  # this thread gets results that are not copied
        groups = self.searches.iter_groups(ascending, cut=False)
        rounds = 0

        def certified_groups() -> Iterator[Traversals]:
            """Yield the groups of all sources, timed, and certified if that is wanted."""
            nonlocal rounds
            while True:
                with clock("traverse"):
                    group = next(groups, None)
                if group is None:
                    return
                rounds = max(rounds, *map(int, group.rounds))
                with clock("certify"):
                    if certified:
                        certify_group(graph, group)  # raises CertificateError
                yield group
                options.advance(len(group))

        # Of the same shape and meaning as above: (n_vertices, k), positions in ``ascending`` or -1.
        distance, owner = merge_groups(
            certified_groups(), graph.n_vertices, k, limit, namespace(graph.offsets)
        )
        return rows_of_labels(graph, algorithm, ascending, distance, owner), rounds


def frame_of_all(
    search: SearchTogether,
    numbers: np.ndarray,
    members: SourceGroups | None,
    meter: Meter,
    of_kind: Any,
) -> Any:
    """Run a search from all sources together, and return its result as a frame.

    ``numbers`` are the vertex numbers of the sources, and ``members`` their groups, or None if all
    are one group. ``of_kind`` are the checked options of the kind of result.
    """
    if members is None:
        groups = None
    else:
        groups = list(zip(members.labels, members.members, strict=True))
    with meter.running():
        options = RunOptions(groups=groups, meter=meter, of_kind=of_kind)
        columns, _ = search.find(sort_distinct(numbers), options)
    return frame_from(columns_on_device(columns, search.graph), search.graph.device)


class SearchFromTargets:
    """Finds the nearest targets of sources by searches that begin at the targets, over the reversed
    edges. These are made once, and find the nearest targets of all vertices.

    A call, with the vertex numbers of sources, returns their nearest targets. ``nearest`` says
    which targets there are, and how many are wanted. ``plan_for(graph, n_sources=n, forms=forms)``
    returns a plan of distances, for searches from each target.
    """

    def __init__(
        self,
        graph: Graph,
        algorithm: str,
        plan_for: Callable[..., MultiSourcePlan],
        nearest: Nearest,
        query: Query,
    ):
        """Keep what a search needs; the first call searches. ``query`` is that of the sources."""
        self._graph = graph
        self._algorithm = algorithm
        self._plan_for = plan_for
        self._nearest = nearest
        self._query = query

    @cached_property
    def _labels(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The nearest targets of all vertices, in host memory, vertex by vertex, as three arrays:
        where those of each vertex begin, int64 of shape (n_vertices + 1,); the vertex numbers of
        the targets, ascending for each vertex; and their distances.

        The searches are made when this is first read.
        """
        n = self._graph.n_vertices
        k = self._nearest.k
        # In the reverse graph the targets of a group are the sources: their k nearest for a vertex
        # are its k nearest targets.
        reverse = graph_in_direction(self._graph, "in")
        options = RunOptions(certified=self._is_certified)
        labels = []
        for targets in self._nearest.members:
            work = Workload(reverse, self._algorithm, self._query, targets.size)
            search = KNearestSearch(work, k, partial(self._plan_for, reverse))
            (vertex, _, target, distance), _ = search.make_rows(targets, options)
            labels.append([to_host(each) for each in (vertex, target, distance)])
        vertex, target, distance = (np.concatenate(each) for each in zip(*labels, strict=True))

        # A target in several groups has the same distance in each, and is kept once. Each pair of
        # vertex and target is one number, and distinct numbers are in the order of the vertices.
        # ``first`` has the position of the first occurrence of each.
        _, first = np.unique(vertex * n + target, return_index=True)
        return make_offsets(np.bincount(vertex[first], minlength=n)), target[first], distance[first]

    @property
    def _is_certified(self) -> bool:
        """Whether the distances of the searches from targets are certified. A caller that wants it
        asks for all distances as output.
        """
        return self._query.output == "all"

    def __call__(self, sources: np.ndarray) -> MultiSourceOutcome:
        """Return the nearest targets of the vertex numbers ``sources``, int64, and their distances,
        as sparse distances: a row per source that holds these targets only.
        """
        offsets, targets, distance = self._labels
        sizes = offsets[sources + 1] - offsets[sources]
        entries = np.repeat(offsets[sources], sizes) + positions_in_groups(sizes)
        rows = SparseDistances(
            make_offsets(sizes),
            targets[entries],
            distance[entries],
            self._graph.n_vertices,
            # for results on the GPU; the rows themselves are in host memory
            self._graph if self._graph.device == "cuda" else None,
            None,  # no scratch of a search: it is made anew
            # so that these rows, which lack other vertices, are not checked once more
            self._is_certified,
        )
        limits = [self._query.limit] * sources.size
        return MultiSourceOutcome(rows, None, limits, [1] * sources.size)


def from_targets(
    graph: Graph, algorithm: str, plan_for: Callable[..., MultiSourcePlan], nearest: Nearest
) -> MultiSourceStrategy:
    """Return the strategy that finds the nearest targets of many sources by searches from the
    targets, a ``SearchFromTargets``, whose parameters these are.

    It takes no negative weights: from the targets it would meet negative cycles that no source
    reaches, and miss others.
    """
    k = nearest.k
    n = graph.n_vertices
    is_weighted = ALGORITHMS[algorithm].is_weighted

    def terms(shape: Shape, n_sources: int, _group: int, _machine: Any) -> dict[str, float]:
        """Return how much work all searches take, by terms of the cost model (``auto.costs``): what
        begins, labels of all vertices, and labels that are read for the sources. A label is a
        nearest target of a vertex, with its distance. ``_group`` and ``_machine`` are ignored: the
        labels serve all groups, and no term depends on cores or caches.
        """
        # The mean share of the vertices that a search reaches, at least its source.
        reach = max(shape.reach, 1 / n)
        n_labels = sum(n * min(k, targets.size * reach) for targets in nearest.members)
        return {"start": n * k, "vertex": n_labels, "row": n_sources * n_labels / max(n, 1)}

    return MultiSourceStrategy(
        name="from_targets",
        device=graph.device,
        edges="any",
        paper="",
        rationale="searches from the targets over the reversed edges, once for all sources",
        default=True,
        needs=frozenset({"non_negative"}) if is_weighted else frozenset(),
        sums="any",
        plan=lambda _graph, query, _group: SearchFromTargets(
            graph, algorithm, plan_for, nearest, query
        ),
        # 24 = 3 * 8: what ``KNearestSearch`` estimates, for each group of targets
        memory=lambda _shape, _query, _group: (
            24 * n * (2 * k + _ARRAYS_OF_MERGE) * len(nearest.members)
        ),
        group_size=lambda n_sources: n_sources,
        terms=terms,
    )
