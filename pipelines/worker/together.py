"""Results of all sources together, or of the whole graph, written as one part.

Such a search cannot be split into groups. If it fails, all sources are reported. The extremes of a
graph take no sources: their run has one nominal source, the vertex of the smallest id, to which all
rows belong in the manifest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from kepler_traverse._arrays import to_host
from kepler_traverse.errors import NegativeCycleError
from kepler_traverse.graph import Graph
from kepler_traverse.multi_source.together import RunOptions, SearchTogether
from kepler_traverse.search.frames import Column, arrow_table

from ..output.checksums import bits_of_columns, checksums_by_source
from ..output.manifest_types import Measured
from ..output.part_file import Answer
from ..output.part_stats import histogram_of_rows
from ..output.rows import get_names
from .batch_context import BatchContext
from .device_errors import is_out_of_memory, is_sticky
from .phase_timer import PhaseTimer
from .planning import Request
from .traverse import release_cached_memory


class _Attempt(NamedTuple):
    """What became of the search: columns of the result, or the reason for which there are none.

    Attributes
    ----------
    columns : dict of str to Column, or None
        By name, each with a value per row. None if the search has failed.
    rounds : int
        Number of levels (BFS) or rounds (SSSP) of the search.
    reason : str
        Class and message of the error by which the search has failed; ``""`` without one.
    memory_ran_out : bool
        Whether the search has failed for want of memory, so that it is tried again.
    """

    columns: dict[str, Column] | None = None
    rounds: int = 0
    reason: str = ""
    memory_ran_out: bool = False


class TogetherTraverser:
    """Searches from all sources together; it has the same method as ``BatchTraverser``.

    ``graph`` has its edges in the direction of the request. ``plan`` is the search, which returns
    the columns of the result. ``request`` is the question that it answers.
    """

    def __init__(self, graph: Graph, plan: SearchTogether, request: Request):
        self._graph = graph
        self._plan = plan
        self._request = request
        self.measured: dict[int, Measured] = {}  # always empty: there is only one search

    def answer_batch(
        self,
        part: int,
        sources: Sequence[int],
        context: BatchContext,
        *,
        isolate: bool = False,  # noqa: ARG002
    ) -> Iterator[Answer]:
        """Yield one answer with the rows of all sources; yield nothing if the search fails.

        The answer counts all rows as those of the first source, because the rows of a nearest
        source or an extreme are not in the order of the sources.

        Parameters
        ----------
        part : int
            Number of the part file.
        sources : sequence of int
            Vertex numbers of all sources of the run that were not given up.
        context : BatchContext
            Records times, counts, and, if the search fails, every source with the reason.
        isolate : bool
            Without effect: sources of one search cannot be isolated.

        Raises
        ------
        NegativeCycleError
            A source reaches a negative cycle.
        Exception
            A CUDA error after which this process cannot continue (``is_sticky``).
        """
        numbers = np.asarray(sources, np.int64)
        if not numbers.size:  # all sources were given up
            return

        context.progress.record(part)
        attempt = self._try(numbers, context.clock)  # it has most failures, which are not raised
        if attempt.memory_ran_out:  # retry after releasing unused memory
            release_cached_memory()
            attempt = self._try(numbers, context.clock)
        columns = attempt.columns
        if columns is None:
            context.failed.extend((int(number), attempt.reason) for number in numbers)
            return

        # The last column has the distances, or the eccentricities, of which statistics are made.
        last_column = list(columns)[-1]
        distance = to_host(columns[last_column].values)
        histogram = histogram_of_rows(self._plan.algorithm, distance, np.array([distance.size]))
        seconds = context.clock.seconds["traverse"]
        # No source is named as the slowest, since one search serves all.
        context.stats.add([], seconds, self._count_edges(columns), attempt.rounds, [histogram])

        # In the checksums each row counts for its own source. Where the result has no column of
        # sources, all rows count for the first one.
        table = arrow_table(columns)
        source = np.full(distance.size, numbers[0])
        if "source" in columns:
            source = to_host(columns["source"].numbers)
        checksums = checksums_by_source(numbers, source, bits_of_columns(columns))
        sizes = [table.num_rows, *[0] * (numbers.size - 1)]
        yield Answer(get_names(self._graph, numbers), sizes, table, checksums)

    def _count_edges(self, columns: dict[str, Column]) -> int:
        """Return the number of stored edges that leave the vertices of the rows.

        These are the vertices that any source reaches. A result without a column of sources, the
        extremes of a graph, counts 0.
        """
        if "source" not in columns:
            return 0
        vertex: Any = columns["vertex"].numbers
        if "rank" in columns:  # a vertex has a row for each of its k nearest sources
            vertex = vertex[columns["rank"].values == 1]
        return int(self._graph.derived.degrees[vertex].sum())

    def _try(self, numbers: np.ndarray, clock: PhaseTimer) -> _Attempt:
        """Search from all sources, and return what became of it: the columns of the result, or the
        text of an error. Two kinds of errors are raised instead: NegativeCycleError, and CUDA
        errors after which this process cannot continue.

        ``numbers`` are the vertex numbers of the sources, int64. ``clock`` times the phases of the
        search. An exception keeps the arrays of its frames alive. It is dropped when this method
        returns, so that their memory can be released before the search is tried again.
        """
        request = self._request
        # Pairs of the label of a group of sources and their vertex numbers; None if the question
        # has no groups. ``requested.members`` has the vertex numbers of all sources of each group,
        # in the order of ``requested.labels``.
        groups = None
        requested = getattr(request.options, "groups", None)
        if requested is not None:
            groups = []
            for label, members in zip(requested.labels, requested.members, strict=True):
                left = members[np.isin(members, numbers)]  # without sources that were given up
                if left.size:
                    groups.append((label, left))
        try:
            is_certified = request.certify != "none"
            options = RunOptions(groups, is_certified, clock, of_kind=request.options)
            # ``find`` returns the columns of the result and the rounds of the search.
            return _Attempt(*self._plan.find(numbers, options))
        except NegativeCycleError:
            raise
        except Exception as error:
            if is_sticky(error):
                raise
            return _Attempt(
                reason=f"{type(error).__name__}: the search from all sources together: {error}",
                memory_ran_out=is_out_of_memory(error),
            )
