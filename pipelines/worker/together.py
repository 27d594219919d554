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

    ``columns`` are by name, each with a value per row, and None if the search has failed.
    ``rounds`` are those of the search. ``reason`` is ``""`` unless it has failed.
    ``memory_ran_out`` says whether that was for want of memory, so that the search is tried again.
    """

    columns: dict[str, Column] | None = None
    rounds: int = 0
    reason: str = ""
    memory_ran_out: bool = False


class TogetherTraverser:
    """Searches from all sources together; it has the same method as ``BatchTraverser``."""

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
        """Yield the results of the sources in order; all rows are those of the first one.

        Parameters are those of ``BatchTraverser.answer_batch``. Sources cannot be isolated here, so
        ``isolate`` has no effect.

        Raises NegativeCycleError or Exception (a CUDA error after which this process cannot
        continue (``is_sticky``)).
        """
        numbers = np.asarray(sources, np.int64)
        if not numbers.size:  # all sources were given up
            return

        context.progress.record(part)
        attempt = self._try(numbers, context.clock)
        if attempt.memory_ran_out:  # retry after releasing unused memory
            release_cached_memory()
            attempt = self._try(numbers, context.clock)
        columns = attempt.columns
        if columns is None:
            context.failed.extend((int(number), attempt.reason) for number in numbers)
            return

        last_column = list(columns)[-1]  # distances, or eccentricities
        distance = to_host(columns[last_column].values)
        histogram = histogram_of_rows(self._plan.algorithm, distance, np.array([distance.size]))
        seconds = context.clock.seconds["traverse"]
        # No source is named as the slowest, since one search serves all.
        context.stats.add([], seconds, self._count_edges(columns), attempt.rounds, [histogram])

        # Each row counts for its source in the checksums; without a column of sources, for the
        # first.
        table = arrow_table(columns)
        source = np.full(distance.size, numbers[0])
        if "source" in columns:
            source = to_host(columns["source"].numbers)
        checksums = checksums_by_source(numbers, source, bits_of_columns(columns))
        sizes = [table.num_rows, *[0] * (numbers.size - 1)]
        yield Answer(get_names(self._graph, numbers), sizes, table, checksums)

    def _count_edges(self, columns: dict[str, Column]) -> int:
        """Return the number of stored edges of the vertices that any source reaches; 0 without
        sources.
        """
        if "source" not in columns:
            return 0
        vertex: Any = columns["vertex"].numbers
        if "rank" in columns:  # a vertex has a row for each of its k nearest sources
            vertex = vertex[columns["rank"].values == 1]
        return int(self._graph.derived.degrees[vertex].sum())

    def _try(self, numbers: np.ndarray, clock: PhaseTimer) -> _Attempt:
        """Search from all sources; the exception, which keeps arrays alive, is gone when this
        returns.
        """
        request = self._request
        groups = None  # of sources, by their labels
        requested = getattr(request.options, "groups", None)
        if requested is not None:
            groups = []
            for label, members in zip(requested.labels, requested.members, strict=True):
                left = members[np.isin(members, numbers)]  # the others were given up
                if left.size:
                    groups.append((label, left))
        try:
            is_certified = request.certify != "none"
            options = RunOptions(groups, is_certified, clock, of_kind=request.options)
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
