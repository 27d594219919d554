"""The answers of one batch, source by source, and what happens where one does not come.

Sources are taken in groups, as many as the plan answers at once; where parts are written beside, these may be of several
parts. A group that fails is halved and tried again in the same worker, down to one source; the one that fails alone is left
out and reported, and the others are answered. What memory a group held is free before it is tried again. Rows are made of
one traversal at a time, when the writer wants them.
"""

from __future__ import annotations

import gc
import itertools
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa

from kepler_traverse import cuda
from kepler_traverse._arrays import namespace
from kepler_traverse.certificate import certify, certify_many
from kepler_traverse.errors import NegativeCycleError
from kepler_traverse.graph import Graph
from kepler_traverse.multi_source.outputs import turned_back
from kepler_traverse.results import Traversals

from ..output.buffer_pool import BUFFERS, FROM_GPU
from ..output.manifest_types import Measured
from ..output.rows import Vertices, id_of, is_made_on_host, on_host, rows_of
from ..scheduling.heartbeat import TaskProgress
from .batch_context import BatchContext
from .device_errors import is_out_of_memory, is_sticky
from .request import Request, SearchPlan


def release_cached_memory() -> None:
    """Give back what nobody holds any more."""
    gc.collect()
    BUFFERS.clear()
    FROM_GPU.clear()
    pa.default_memory_pool().release_unused()
    if cuda.available():
        cuda.cp.get_default_memory_pool().free_all_blocks()
        cuda.cp.get_default_pinned_memory_pool().free_all_blocks()


Batches = Sequence[tuple[int, Sequence[int]]]  # parts and the vertex numbers of their sources
Group = list[tuple[int, int]]  # sources that are searched from together, each with its part


@dataclass
class TraversedBatch:
    """A part whose sources are traversed, and what is not yet made of them.

    Attributes
    ----------
    part : int
    context : BatchContext
        Begun when the search from its first sources began.
    found : list of (Traversals or list of rows, float)
        In host memory: traversals where rows are made there, rows otherwise; and the seconds that one source took.
    error : Exception or None
        Memory ran out.
    """

    part: int
    context: BatchContext
    found: list[tuple[Traversals | list[SourceRows], float]] = field(default_factory=list)
    error: Exception | None = None


SourceRows = tuple[object, pa.Table, int]  # a source's id, the table of its rows, and the checksum of the table


class _Piece(NamedTuple):
    """What a group has of a part, when its search began, what one source took, and what all of them spent by phase."""

    part: int
    traversals: Traversals
    started: float
    seconds: float
    spent: dict[str, float]


class BatchTraverser:
    """Answers sources, each for itself, with one plan.

    Whatever is written of distances, they are proven right before anything is made of them.

    Parameters
    ----------
    graph, plan : Graph, MultiSourcePlan
    request : Request

    Attributes
    ----------
    group : int
        How many sources are answered at once. Halved wherever memory runs out, and kept so.
    measured : dict of int to tuple
        By part ``(strategy, sources, seconds)`` of its groups, for who takes it out. Not of the plan's first group, which
        also compiles and warms up, nor of sources that are taken one at a time.
    """

    def __init__(self, graph: Graph, plan: SearchPlan, request: Request):
        self._graph, self._plan, self._request = graph, plan, request
        self._target_order = None if request.targets is None else graph.numbers_of(request.targets, "target")
        self.group = plan.group
        self.measured: dict[int, Measured] = {}
        self._query = plan.query
        self._is_warm = False
        # With one candidate a plan returns before its last kernel has ended; where times are compared, it must not.
        self._waits = graph.device == "cuda" and bool(request.chosen)
        self._vertices = Vertices(graph)

    def let_go(self) -> None:
        """Give back the plan; what was kept of its traversals can still be written."""
        del self._plan

    def of(self, part: int, sources: Sequence[int], isolate: bool, context: BatchContext) -> Iterator[SourceRows]:
        """Yield (source id, table, checksum) for each source in order.

        Parameters
        ----------
        part : int
        sources : sequence of vertex numbers
        careful : bool
            One source at a time, because a worker has died of one of them.
        context : BatchContext
            Gets times, counts, and each source that is left out.

        Raises
        ------
        NegativeCycleError
        Exception
            A CUDA error after which this process cannot go on (``is_sticky``).
        """
        for traversals, seconds in self._groups([(part, sources)], isolate, context):
            yield from self._rows(traversals, seconds, context)
            context.progress.at(part)

    def traverse_batches(self, batches: Batches, progress: TaskProgress) -> Iterator[TraversedBatch]:
        """Traverse from the sources of several parts, together as many as the plan takes, whichever parts they are of.

        Yields each part in order, so that ``rows_of_batch`` can make its rows beside the next traversals.
        """
        self._vertices.bring()  # here, since other threads leave the device alone
        together = BatchContext(progress=progress)
        part_of = {source: part for part, sources in batches for source in sources}
        pieces = self._pieces(batches, part_of, together)
        piece = next(pieces, None)
        for part, _ in batches:
            started = time.time() if piece is None else piece.started
            batch = TraversedBatch(part, BatchContext(progress=progress, started=started))
            while piece is not None and piece.part == part:
                self._collect(batch, piece)
                piece = next(pieces, None)
            batch.context.failed = [(source, reason) for source, reason in together.failed if part_of[source] == part]
            yield batch

    def _pieces(self, batches: Batches, part_of: dict[int, int], context: BatchContext) -> Iterator[_Piece]:
        """Yield what groups have of each part, while the group's arrays hold; the context is that of all of them."""
        clock, started = context.clock, time.time()
        for traversals, seconds in self._groups(batches, False, context):
            spent, clock.seconds = clock.seconds, dict.fromkeys(clock.seconds, 0.0)
            parts, end = [part_of[source] for source in traversals.sources.tolist()], 0
            for part, own in itertools.groupby(parts):
                begin, end = end, end + len(list(own))
                context.progress.at(part)
                share = (end - begin) / len(parts)
                yield _Piece(
                    part,
                    cast(Traversals, traversals[begin:end]),
                    started,
                    seconds,
                    {name: share * spent[name] for name in spent},
                )
            started = time.time()

    def _collect(self, batch: TraversedBatch, piece: _Piece) -> None:
        for phase, seconds in piece.spent.items():
            batch.context.clock.seconds[phase] += seconds
        if batch.error is not None:
            return
        try:
            if is_made_on_host(self._request.result, self._query, self._graph):
                with batch.context.clock("rows"):
                    batch.found.append((on_host(piece.traversals), piece.seconds))
            else:
                rows = list(self._rows(piece.traversals, piece.seconds, batch.context))
                batch.found.append((rows, piece.seconds))
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            batch.error = error.with_traceback(None)  # whose frames hold on to memory

    def rows_of_batch(self, batch: TraversedBatch) -> Iterator[SourceRows]:
        """Yield what ``of`` yields, of what ``kept`` has yielded; in any thread.

        Raises
        ------
        Exception
            Memory ran out while it was kept.
        """
        if batch.error is not None:
            raise batch.error
        for held, seconds in batch.found:
            yield from held if isinstance(held, list) else self._rows(held, seconds, batch.context)

    def _rows(self, traversals: Traversals, seconds: float, context: BatchContext) -> Iterator[SourceRows]:
        clock, tally = context.clock, context.tally
        with clock("rows"):  # some of it is done here, and the rest from row to row
            made = rows_of(self._request.result, self._graph, self._query, traversals, self._target_order, self._vertices)
        while True:
            with clock("rows"):
                rows = next(made, None)
            if rows is None:
                return
            tally.add(rows.source, seconds, *rows.counts)
            yield rows.source, rows.table, rows.checksum

    def _groups(self, batches: Batches, isolate: bool, context: BatchContext) -> Iterator[tuple[Traversals, float]]:
        """Yield groups of traversals, proven right, and the seconds that one of their sources took."""
        left = deque((source, part) for part, sources in batches for source in sources)
        firsts = {sources[0] for _, sources in batches if len(sources)}  # of some all may have been given up
        groups: deque[Group] = deque()
        tried_again = None
        while groups or left:
            size = 1 if isolate else self.group
            group = groups.popleft() if groups else [left.popleft() for _ in range(min(size, len(left)))]
            traversals, seconds, reason, memory_ran_out = self._try(group, firsts, context)
            if traversals is not None:
                if self._is_warm and not isolate:
                    self._measure(group, traversals, seconds)
                self._is_warm = True
                yield traversals, seconds
                continue
            if memory_ran_out:
                release_cached_memory()
                self.group = max(1, min(self.group, len(group) // 2))
            if len(group) > 1:
                middle = len(group) // 2
                groups.extendleft((group[middle:], group[:middle]))
            elif memory_ran_out and tried_again != group[0]:
                tried_again = group[0]  # alone, and with all memory that can be had
                groups.appendleft(group)
            else:
                context.failed.append((int(group[0][0]), reason))

    def _measure(self, group: Group, traversals: Traversals, seconds: float) -> None:
        """Note by part what a group took, if the plan's own strategy ran and not another one in its place."""
        strategy = self._plan.strategy.name
        if traversals.strategy != strategy:
            return
        for part, own in itertools.groupby(part for _, part in group):
            count = len(list(own))
            _, sources, total = self.measured.get(part, (strategy, 0, 0.0))
            self.measured[part] = (strategy, sources + count, total + count * seconds)

    def _try(self, group: Group, firsts: set[int], context: BatchContext) -> tuple[Traversals | None, float, str, bool]:
        """Traverse from a group; the exception, which holds on to memory, is gone when this returns."""
        try:
            return *self._traverse(group, firsts, context), "", False
        except NegativeCycleError as error:
            raise turned_back(error, self._request.direction) from None
        except Exception as error:
            if is_sticky(error):
                raise
            name = f"source {id_of(self._graph, int(group[0][0]))}"
            return None, 0.0, ": ".join([type(error).__name__, name, str(error)]), is_out_of_memory(error)

    def _traverse(self, group: Group, firsts: set[int], context: BatchContext) -> tuple[Traversals, float]:
        """Distances from each source of a group, proven right, and the seconds that one took."""
        sources, parts = [source for source, _ in group], [part for _, part in group]
        # Of several, nobody could tell at which one the worker died; the driver then has them taken one at a time.
        context.progress.at(parts[0], int(sources[0]) if len(group) == 1 else None, parts[-1])
        with context.clock("traverse") as traversing:
            traversals = self._plan.run(sources)
            if self._waits:
                cuda.cp.cuda.get_current_stream().synchronize()
        with context.clock("certify"):
            if self._request.certify == "all":
                self._certify(traversals)
            elif self._request.certify == "sample":
                for i, source in enumerate(sources):
                    if source in firsts:
                        self._certify(cast(Traversals, traversals[i : i + 1]))
        return traversals, traversing.seconds / len(group)

    def _certify(self, traversals: Traversals) -> None:
        if traversals.predecessor is not None:
            for traversal in traversals:
                certify(self._graph, traversal).require()
            return
        limits = np.array([np.inf if limit is None else limit for limit in traversals.limits], np.float64)
        for limit in np.unique(limits):  # searches stopped by their targets end where they end
            these = np.flatnonzero(limits == limit)
            distance: Any = traversals.distance
            if these.size < len(traversals):
                distance = distance[namespace(distance).asarray(these)]
            limit = None if np.isinf(limit) else limit.item()
            certify_many(self._graph, traversals.sources[these], distance, limit).require()
