"""``--result nearest``: one search from all sources together, written as one part.

The search runs on the graph with one added vertex (a super-source), which has an edge to each source. The search cannot be
split into groups. If it fails, all sources are reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from kepler_traverse._arrays import to_host
from kepler_traverse.bfs import STRATEGIES as BFS
from kepler_traverse.certificate import certify
from kepler_traverse.errors import NegativeCycleError
from kepler_traverse.frames import arrow_table
from kepler_traverse.graph import Graph
from kepler_traverse.multi_source import outputs as library
from kepler_traverse.plan import make_query
from kepler_traverse.results import Traversal
from kepler_traverse.sssp import STRATEGIES as SSSP
from kepler_traverse.strategy import pick

from ..output.checksums import bits_of, checksums_by_source
from ..output.manifest_types import Measured
from ..output.part_stats import histogram_of_values
from ..output.rows import names_of
from .batch_context import BatchContext
from .device_errors import is_out_of_memory, is_sticky
from .phase_timer import Phases
from .request import Knobs, Request
from .traverse import SourceRows, release_cached_memory


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
        self._singles = BFS if algorithm == "bfs" else SSSP
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
        traversal, seconds = found
        columns, (vertex, source, distance) = library.nearest_columns(self._graph, traversal, self._plan.query.limit)
        edges = int(self._graph.degrees[vertex].sum())
        vertex, source, distance = to_host(vertex), to_host(source), to_host(distance)
        context.tally.add(None, seconds, edges, int(traversal.rounds), histogram_of_values(traversal.algorithm, distance))
        table = arrow_table(columns)
        checksums = checksums_by_source(numbers, source, [bits_of(vertex), bits_of(distance)])
        for name, checksum in zip(names_of(self._graph, numbers), checksums, strict=True):
            yield name, table, checksum
            table = table.slice(0, 0)

    def _try(self, numbers: np.ndarray, clock: Phases) -> tuple[tuple[Traversal, float] | None, str, bool]:
        """Search from all sources; the exception, which keeps arrays alive, is gone when this returns."""
        try:
            with clock("traverse") as traversing:
                rooted, traversal = self._plan.run(numbers)
            with clock("certify"):
                if self._request.certify != "none":
                    certify(rooted, traversal).require()
        except NegativeCycleError:
            raise
        except Exception as error:
            if is_sticky(error):
                raise
            return None, f"{type(error).__name__}: the search from all sources together: {error}", is_out_of_memory(error)
        return (traversal, traversing.seconds), "", False
