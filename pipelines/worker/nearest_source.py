"""``--result nearest``: one search from all sources together, written as one part.

The search runs on the graph with one added vertex (a super-source), which has an edge to each source. The search cannot be
split into groups. If it fails, all sources are reported. With ``--nearest-k`` there is a search per source, and also one
part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kepler_traverse._arrays import Array, namespace, to_host
from kepler_traverse.bfs import REGISTRY as BFS
from kepler_traverse.certificate import certify
from kepler_traverse.errors import NegativeCycleError
from kepler_traverse.graph import Graph
from kepler_traverse.kinds.result_kinds import GROUP
from kepler_traverse.multi_source import outputs as library
from kepler_traverse.multi_source.k_nearest import (
    certify_labels,
    columns_of_rows,
    merge_groups,
    rows_of_labels,
    search_labels,
)
from kepler_traverse.multi_source.planning import MultiSourcePlan
from kepler_traverse.search.frames import Column, arrow_table
from kepler_traverse.search.plan import make_query
from kepler_traverse.search.results import Traversal, Traversals
from kepler_traverse.search.strategy import pick
from kepler_traverse.sssp import REGISTRY as SSSP

from ..output.checksums import bits_of, bits_of_texts, checksums_by_source
from ..output.manifest_types import Measured
from ..output.part_stats import histogram_of_values
from ..output.rows import names_of
from .batch_context import BatchContext
from .device_errors import is_out_of_memory, is_sticky
from .phase_timer import Phases
from .request import Knobs, Request
from .traverse import SourceRows, certify_group, release_cached_memory

_ARRAYS_OF_MERGE = 8  # of 8 bytes per vertex, while one source is merged


class Found(NamedTuple):
    """The rows of a search: columns, the source of each row, what a checksum covers, distances, and counts."""

    columns: dict[str, Column]
    source: np.ndarray
    bits: list[np.ndarray]
    distance: np.ndarray
    edges: int
    rounds: int
    seconds: float


class NearestSourcePlan:
    """A search from all sources together, ready to run; its attributes mean the same as in ``MultiSourcePlan``.

    Parameters
    ----------
    graph : Graph
    algorithm : {"bfs", "sssp"}
    strategy : str
        ``"auto"``, or a strategy for one source.
    limit : int, float or None
    knobs : dict or None
    n_sources : int
        Number of all sources.
    """

    def __init__(self, graph: Graph, algorithm: str, strategy: str, limit: float | None, knobs: Knobs, n_sources: int):
        self.graph, self.algorithm, self.group = graph, algorithm, n_sources
        self._singles, _ = (BFS if algorithm == "bfs" else SSSP).listed_for(strategy, graph.device)
        self.strategy = pick(self._singles, strategy, graph)
        query = make_query(graph, True, limit, None, knobs, "max_depth" if algorithm == "bfs" else "cutoff")
        self.query = replace(query, knobs=self.strategy.knobs_from(query.knobs))
        owners = 3 * 8 * graph.n_vertices
        scratch = self.strategy.memory(graph.n_vertices + 1, graph.n_edges + n_sources, True)
        self.nbytes = graph.nbytes + scratch + owners
        self.depth = 0
        self.why = f"{graph!r}; {self.strategy.name}, one search from all {n_sources} sources together"

    def run(self, numbers: np.ndarray) -> tuple[Graph, Traversal]:
        """Search; see ``kepler_traverse.multi_source.outputs.nearest_source_search``."""
        return library.nearest_source_search(
            self.graph, np.sort(numbers), self.algorithm, self._singles, self.strategy.name, self.query
        )


class NearestSourceTraverser:
    """Searches from all sources together; it has the same method as ``BatchTraverser``.

    Parameters
    ----------
    graph, plan : Graph, NearestSourcePlan
    request : Request
    """

    def __init__(self, graph: Graph, plan: NearestSourcePlan, request: Request):
        self._graph, self._plan, self._request = graph, plan, request
        self.measured: dict[int, Measured] = {}  # always empty: there is only one search

    def of(
        self,
        part: int,
        sources: Sequence[int],
        isolate: bool,  # noqa: ARG002
        context: BatchContext,
    ) -> Iterator[SourceRows]:
        """Yield (source id, table, checksum) for each source in order; the first table has the rows of all sources.

        Parameters are those of ``BatchTraverser.of``. Sources cannot be isolated here, so ``isolate`` has no effect.

        Raises
        ------
        NegativeCycleError
        Exception
            A CUDA error after which this process cannot continue (``is_sticky``).
        """
        numbers = np.asarray(sources, np.int64)
        if not numbers.size:  # all sources were given up
            return
        context.progress.at(part)
        found, reason, memory_ran_out = self._try(numbers, context.clock)
        if memory_ran_out:  # retry after releasing unused memory
            release_cached_memory()
            found, reason, _ = self._try(numbers, context.clock)
        if found is None:
            context.failed.extend((int(number), reason) for number in numbers)
            return
        histogram = histogram_of_values(self._plan.algorithm, found.distance)
        context.tally.add(None, found.seconds, found.edges, found.rounds, histogram)
        table = arrow_table(found.columns)
        checksums = checksums_by_source(numbers, found.source, found.bits)
        for name, checksum in zip(names_of(self._graph, numbers), checksums, strict=True):
            yield name, table, checksum
            table = table.slice(0, 0)

    def _search(self, numbers: np.ndarray, clock: Phases) -> Found:
        with clock("traverse") as traversing:
            rooted, traversal = self._plan.run(numbers)
        with clock("certify"):
            if self._request.certify != "none":
                certify(rooted, traversal).require()
        columns, (vertex, source, distance) = library.nearest_columns(self._graph, traversal, self._plan.query.limit)
        edges = int(self._graph.derived.degrees[vertex].sum())
        vertex, source, distance = to_host(vertex), to_host(source), to_host(distance)
        bits = [bits_of(vertex), bits_of(distance)]
        return Found(columns, source, bits, distance, edges, int(traversal.rounds), traversing.seconds)

    def _try(self, numbers: np.ndarray, clock: Phases) -> tuple[Found | None, str, bool]:
        """Search from all sources; the exception, which keeps arrays alive, is gone when this returns."""
        try:
            return self._search(numbers, clock), "", False
        except NegativeCycleError:
            raise
        except Exception as error:
            if is_sticky(error):
                raise
            return None, f"{type(error).__name__}: the search from all sources together: {error}", is_out_of_memory(error)


class LabelSearch(NamedTuple):
    """What stands for the strategy where one search finds the k nearest sources of all vertices."""

    device: str
    name: str = "k_labels"
    rationale: str = "one search from all sources, with up to k labels per vertex"


class KNearestPlan(NearestSourcePlan):
    """One search from all sources, or searches from each source whose groups are merged, for the k nearest of each vertex.

    Parameters
    ----------
    graph : Graph
    algorithm : {"bfs", "sssp"}
    limit : int, float or None
    k, n_sources : int
    searches : MultiSourcePlan or None
        Of distances; None if one search is enough.
    """

    def __init__(
        self, graph: Graph, algorithm: str, limit: float | None, k: int, n_sources: int, searches: MultiSourcePlan | None
    ):
        self.graph, self.algorithm, self.group, self.k, self.searches = graph, algorithm, n_sources, k, searches
        labels = 8 * graph.n_vertices * (2 * k + _ARRAYS_OF_MERGE)
        self.strategy: Any
        if searches is None:
            self.query = make_query(graph, False, limit, None, None, "max_depth" if algorithm == "bfs" else "cutoff")
            self.strategy, self.depth, self.nbytes = LabelSearch(graph.device), 0, 3 * labels
            self.why = f"{graph!r}; {self.strategy.rationale}; the {k} nearest of {n_sources} sources"
        else:
            self.query, self.strategy, self.depth = searches.query, searches.strategy, searches.depth
            self.nbytes = searches.nbytes + labels
            self.why = f"{searches.why}; the {k} nearest of {n_sources} sources"


class KNearestTraverser(NearestSourceTraverser):
    """Finds the k nearest sources of each vertex and certifies them; it has the same method as ``BatchTraverser``."""

    _plan: KNearestPlan

    def _search(self, numbers: np.ndarray, clock: Phases) -> Found:
        graph, groups = self._graph, self._request.groups
        if self._plan.searches is not None:
            self._plan.searches.adopt()
        if groups is None:
            rows, rounds, seconds = self._k_nearest(np.sort(numbers), clock)
            return self._found(columns_of_rows(graph, rows), [], tuple(map(to_host, rows)), rounds, seconds)
        # Sources that were given up are in no group.
        members = [own[np.isin(own, numbers)] for own in groups.members]
        named = [(label, own) for label, own in zip(groups.labels, members, strict=True) if own.size]
        every = [self._k_nearest(own, clock) for _, own in named]
        sizes = [found[0].size for found, _, _ in every]
        xp = namespace(graph.offsets)
        rows = tuple(xp.concatenate(column) for column in zip(*(found for found, _, _ in every), strict=True))
        labels = pa.array([label for label, _ in named]).take(pa.array(np.repeat(np.arange(len(named)), sizes)))
        is_text = pa.types.is_string(labels.type)
        bits = [bits_of_texts(labels) if is_text else bits_of(labels.to_numpy())]
        columns = {GROUP: Column(labels if is_text else labels.to_numpy()), **columns_of_rows(graph, rows)}
        rounds, seconds = max(each[1] for each in every), sum(each[2] for each in every)
        return self._found(columns, bits, tuple(map(to_host, rows)), rounds, seconds)

    def _found(self, columns: dict[str, Column], bits: list[np.ndarray], rows: Any, rounds: int, seconds: float) -> Found:
        vertex, rank, source, distance = rows
        edges = int(self._graph.derived.degrees[vertex[rank == 1]].sum())
        return Found(
            columns, source, [*bits, bits_of(vertex), bits_of(rank), bits_of(distance)], distance, edges, rounds, seconds
        )

    def _k_nearest(self, ascending: np.ndarray, clock: Phases) -> tuple[tuple[Array, Array, Array, Array], int, float]:
        """Return the rows of the k nearest of some sources, the rounds of the longest search, and the seconds."""
        plan, graph = self._plan, self._graph
        searches, limit, k = plan.searches, plan.query.limit, min(plan.k, ascending.size)
        seconds, rounds = 0.0, 0
        if searches is None:
            with clock("traverse") as traversing:
                distance, owner = search_labels(graph, plan.algorithm, ascending, k, limit)
            with clock("certify"):
                if self._request.certify != "none":
                    certify_labels(graph, plan.algorithm, ascending, limit, distance, owner)
            return rows_of_labels(graph, plan.algorithm, ascending, distance, owner), 1, traversing.seconds

        def certified() -> Iterator[Traversals]:
            nonlocal seconds, rounds
            groups = searches.iter_groups(ascending)
            while True:
                with clock("traverse") as traversing:
                    group = next(groups, None)
                if group is None:
                    return
                seconds += traversing.seconds
                rounds = max(rounds, *map(int, group.rounds))
                with clock("certify"):
                    if self._request.certify != "none":
                        certify_group(graph, group)
                yield group

        distance, owner = merge_groups(certified(), graph.n_vertices, k, limit, namespace(graph.offsets))
        return rows_of_labels(graph, plan.algorithm, ascending, distance, owner), rounds, seconds
