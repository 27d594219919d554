"""Traverse from the sources of batches and certify the results; retry groups that fail.

Sources are processed in groups of the plan's size. When writers run in the background, a group may
span several part files, and its results go to them in pieces. A group that fails is split in half
and retried in the same worker, down to single sources. A source that fails alone is left out and
reported; the other sources continue. The memory of a failed group is released before it is retried.
Without writers, rows are generated from one traversal at a time, when they are written.
"""

from __future__ import annotations

import functools
import gc
import itertools
import time
from collections import Counter, deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa

from kepler_traverse import cuda
from kepler_traverse.certificate import certify_group
from kepler_traverse.errors import CertificateError, NegativeCycleError
from kepler_traverse.graph import Graph
from kepler_traverse.kinds.loads import Loads
from kepler_traverse.multi_source.outputs import cycle_in_direction
from kepler_traverse.search.results import Traversals

from ..output.buffer_pool import BUFFERS, FROM_GPU
from ..output.manifest_types import Measured
from ..output.part_file import Answer
from ..output.row_groups import release_encoded_columns
from ..output.rows import (
    HOST_ROWS,
    Rows,
    answer_of_loads,
    get_id,
    get_names,
    is_made_on_host,
    make_rows,
    on_host,
)
from ..scheduling.heartbeat import TaskProgress
from .batch_context import BatchContext
from .device_errors import is_out_of_memory, is_sticky
from .phase_timer import PhaseTimer
from .planning import GroupPlan, Request
from .writer_pool import (
    PIECE_BYTES,
    AbandonedPartError,
    MadeRows,
    Pieces,
    Writers,
    sources_per_piece,
)


def release_cached_memory() -> None:
    """Release unused memory of Python, of the buffer pools, of pyarrow and of CuPy."""
    gc.collect()
    BUFFERS.clear()
    FROM_GPU.clear()
    release_encoded_columns()
    pa.default_memory_pool().release_unused()
    if cuda.available():
        cuda.cp.get_default_memory_pool().free_all_blocks()
        cuda.cp.get_default_pinned_memory_pool().free_all_blocks()


Batches = Sequence[tuple[int, Sequence[int]]]  # each part with the vertex numbers of its sources
Group = list[tuple[int, int]]  # sources that are searched together, each with its part


@dataclass(frozen=True)
class TraversedBatch:
    """A part whose sources are being traversed, and which another thread writes."""

    part: int  # number of the part file
    context: BatchContext  # its start time is the start of the search from the part's first sources
    pieces: Pieces  # its results, on their way from the search to the thread that writes


class _Piece(NamedTuple):
    """The results of one group for one part; a group that spans parts gives one piece to each."""

    part: int  # number of the part file
    traversals: Traversals  # of the sources of the part; valid until the next group runs
    started: float  # when the search of the group began, in seconds since the epoch
    seconds: float  # of the search, per source
    spent: dict[str, float]  # seconds by phase: the share of the part


class Attempt(NamedTuple):
    """What became of the search of a group: traversals and their seconds, or the reason for which
    there are none.
    """

    traversals: Traversals | None  # None if the search or its certificate has failed
    seconds: float = 0.0  # of the search, per source
    reason: str = ""  # the error and the first source of the group; "" without an error
    memory_ran_out: bool = False  # whether the error was want of memory


class BatchTraverser:
    """Computes results of each source separately, with one plan.

    Distances are certified, as ``request.certify`` says, before any output is derived from them.
    ``graph`` has its edges in the direction of the request, and ``plan`` was made for it.

    Attributes
    ----------
    group : int
        Number of sources that are searched together. It shrinks when memory runs out and does not
        grow again.
    measured : dict of int to tuple
        For each part number ``(strategy, sources, seconds)``: the name of the strategy, the number
        of sources that it was measured with, and their seconds. The caller removes the entries. The
        plan's first group is not measured, because it also compiles and warms up. Isolated sources
        are not measured either.
    """

    def __init__(self, graph: Graph, plan: GroupPlan, request: Request):
        self._graph = graph
        self._plan = plan
        self._request = request
        self.group = plan.group
        self.measured: dict[int, Measured] = {}
        self._query = plan.query
        self._is_warm = False  # whether the plan has searched, and so has compiled
        # Kernels on a GPU may still run when the plan returns. If the driver has chosen the
        # strategy, it compares measured times, so each search then waits for its last kernel.
        self._waits = graph.device == "cuda" and bool(request.chosen)
        # Rows of the result are made in host memory, by ``_host_rows``, or, if
        # ``_makes_rows_on_host`` is False, on the device of the search.
        self._host_rows = HOST_ROWS[request.kind.written_as](graph)
        self._makes_rows_on_host = is_made_on_host(request, plan.query, graph)

    def release_plan(self) -> None:
        """Release the plan and its memory. Batches that it has traversed can still be written; no
        further search is possible.
        """
        del self._plan

    def answer_batch(
        self, part: int, sources: Sequence[int], context: BatchContext, *, isolate: bool = False
    ) -> Iterator[Answer]:
        """Yield the results of the sources in order, without those of sources that fail.

        Parameters
        ----------
        part : int
            Number of the part file.
        sources : sequence of int
            Vertex numbers of the sources of the part.
        context : BatchContext
            Records times, counts, and each source that is left out.
        isolate : bool
            Whether to process one source at a time, because a worker has died at one of them.

        Raises
        ------
        NegativeCycleError
            A source reaches a negative cycle.
        Exception
            A CUDA error after which this process cannot continue (``is_sticky``).
        """
        if self._request.kind.adds_up:
            yield from self._add_up([(part, sources)], context, isolate)
            return
        for traversals, seconds in self._search_groups([(part, sources)], context, isolate):
            for rows in self._make_rows(traversals, context.clock):
                # ``counts``: edges, rounds and histograms
                context.stats.add(rows.answer.sources, seconds, *rows.counts)
                yield rows.answer
            context.progress.record(part)

    def _add_up(self, batches: Batches, context: BatchContext, isolate: bool) -> Iterator[Answer]:
        """Yield the sums over all sources of a part, as one result; none if all sources fail.

        Such a result, for example the flows of the edges, has no rows per source. ``batches`` has
        the one part. ``context`` and ``isolate`` are those of ``answer_batch``.
        """
        graph = self._graph
        clock = context.clock
        asked = self._request.asked(graph, self._query)  # the question, with the graph
        # ``make_loads`` returns sums of 0, to which each group of traversals is added.
        loads: Loads = cast(Any, asked.kind.make_loads)(asked)
        added = []  # vertex numbers of the sources whose loads are in the sums
        for traversals, seconds in self._search_groups(batches, context, isolate):
            with clock("rows"):
                loads.add(traversals)
            names = get_names(graph, traversals.sources)
            # Sums have no distances, so the statistics have no edges and no histogram.
            context.stats.add(names, seconds, 0, max(map(int, traversals.rounds)), [])
            added += traversals.sources.tolist()
        if added:
            with clock("rows"):
                answer = answer_of_loads(graph, loads, np.array(added))
            yield answer

    def traverse_batches(
        self, batches: Batches, progress: TaskProgress, writers: Writers
    ) -> Generator[TraversedBatch]:
        """Traverse from the sources of several parts, in groups of the plan's size that may span
        parts.

        Each part is yielded when it begins, in order, so that ``rows_of_batch`` can take its rows
        in another thread while further sources are traversed. The search of a part runs when the
        caller asks for the next one. If the caller closes this generator instead, the part fails
        with AbandonedPartError in the thread that writes it.

        Parameters
        ----------
        batches : sequence of (int, sequence of int)
            Number of each part, with the vertex numbers of its sources.
        progress : TaskProgress
            Records which part the task is at.
        writers : Writers
            The threads that make rows and write the parts.
        """
        if self._makes_rows_on_host:
            # The property copies the graph to host memory when it is first read: here, because the
            # writer threads, which need the copy, do not use the device.
            _ = self._host_rows.graph
        common = BatchContext(progress=progress)  # of the groups, which may span parts
        part_of = {source: part for part, sources in batches for source in sources}
        pieces = self._iter_pieces(batches, part_of, common)

        piece = next(pieces, None)
        for part, _ in batches:
            context = BatchContext(progress=progress)
            if piece is not None:
                context.started = piece.started
            # ``writers.open`` returns the queue of pieces to the thread that writes the part.
            # ``end`` and ``fail`` below are the last things in it: the part is whole, or is not to
            # be written.
            batch = TraversedBatch(part, context, writers.open())
            try:
                yield batch
                while piece is not None and piece.part == part:
                    self._pass_on(batch, piece)
                    piece = next(pieces, None)
                # The next piece is of a later part, or there is none. So all sources of this part
                # have been tried, and the failures among them are known.
                context.failed += [
                    (source, why) for source, why in common.failed if part_of[source] == part
                ]
            except BaseException:
                batch.pieces.fail(AbandonedPartError(f"part {part}: its search has ended"))
                raise
            batch.pieces.end()

    def _iter_pieces(
        self, batches: Batches, part_of: dict[int, int], context: BatchContext
    ) -> Iterator[_Piece]:
        """Yield the results of each group, one piece per part of its sources.

        A piece is valid until the next group runs, because the plan reuses its memory. ``part_of``:
        the part number of each source, by its vertex number. ``context`` is shared by all parts,
        and records failed sources and the times of the group that runs.
        """
        clock = context.clock
        started = time.time()
        for traversals, seconds in self._search_groups(batches, context, isolate=False):
            # The seconds by phase since the last group are divided among the parts, in proportion
            # to their sources. The clock begins anew at 0.
            spent = clock.seconds
            clock.seconds = dict.fromkeys(clock.seconds, 0.0)
            parts = [part_of[source] for source in traversals.sources.tolist()]
            end = 0
            for part, run in itertools.groupby(parts):
                begin = end
                end += len(list(run))
                context.progress.record(part)
                share = (end - begin) / len(parts)
                yield _Piece(
                    part,
                    cast(Traversals, traversals[begin:end]),
                    started,
                    seconds,
                    {name: share * spent[name] for name in spent},
                )
            started = time.time()

    def _pass_on(self, batch: TraversedBatch, piece: _Piece) -> None:
        """Give the results of one group to the thread that writes their part.

        If memory runs out here, the part fails, and the search of the others continues.
        """
        for phase, seconds in piece.spent.items():
            batch.context.clock.seconds[phase] += seconds
        try:
            if self._makes_rows_on_host:
                self._pass_on_distances(batch, piece)
            else:
                self._pass_on_rows(batch, piece)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            # Without its traceback, whose frames would keep arrays alive.
            batch.pieces.fail(error.with_traceback(None))

    def _pass_on_distances(self, batch: TraversedBatch, piece: _Piece) -> None:
        """Copy the distances of a piece to memory of their own, some sources at a time; helper
        threads make rows of them.

        The copy lets the plan search the next group while rows of this one are made.
        """
        # ``capacity`` waits until the threads can take another piece. ``put`` has a helper thread
        # call the function that it is given, with a clock of that thread.
        step = sources_per_piece(self._graph.n_vertices)
        for begin in range(0, len(piece.traversals), step):
            with batch.pieces.capacity() as put:
                with batch.context.clock("rows"):
                    copy = on_host(cast(Traversals, piece.traversals[begin : begin + step]))
                put(functools.partial(self._make_rows_of_piece, copy, piece.seconds))
                del copy  # or its memory would be held while this thread waits for capacity

    def _pass_on_rows(self, batch: TraversedBatch, piece: _Piece) -> None:
        """Make rows in this thread, since their distances are on the device, and pass on about
        ``PIECE_BYTES`` of them at a time.
        """
        remaining = self._make_rows(piece.traversals, batch.context.clock)
        # ``remaining`` is a generator: each round takes the rows of the next sources from it, once
        # the threads have capacity for another piece.
        while True:
            with batch.pieces.capacity() as put:
                made: list[Rows] = []
                n_bytes = 0
                for rows in remaining:
                    made.append(rows)
                    n_bytes += rows.answer.table.nbytes
                    if n_bytes >= PIECE_BYTES:
                        break
                if not made:
                    return
                put(functools.partial(_return_made, made, piece.seconds))
                del made  # as in ``_pass_on_distances``

    def _make_rows_of_piece(
        self, traversals: Traversals, seconds: float, clock: PhaseTimer
    ) -> MadeRows:
        """Return the rows of a piece; a helper thread calls this with a ``clock`` of its own.

        ``traversals``: some sources of one part, in host memory of their own. ``seconds``: of the
        search, per source; they are passed on unchanged.
        """
        return MadeRows(list(self._make_rows(traversals, clock)), seconds)

    def rows_of_batch(self, batch: TraversedBatch, clock: PhaseTimer) -> Iterator[Answer]:
        """Yield what ``answer_batch`` yields, for a batch of ``traverse_batches``; in any thread.

        ``clock`` is that of the calling thread. The search in the other thread adds its results to
        ``batch`` meanwhile, and this method waits for them.

        Raises
        ------
        Exception
            Memory ran out while rows were collected or made, or the search ended before the part
            was whole.
        """
        for rows, seconds in batch.pieces.rows(clock):
            # ``counts``: edges, rounds and histograms
            batch.context.stats.add(rows.answer.sources, seconds, *rows.counts)
            yield rows.answer

    def _make_rows(self, traversals: Traversals, clock: PhaseTimer) -> Iterator[Rows]:
        """Yield the rows of each source; making them counts for the phase "rows" of ``clock``.

        The time in which the caller uses the rows does not count: the clock stops at each yield.
        """
        with clock("rows"):  # part of the work is done here, the rest per source
            made = make_rows(self._request, self._graph, self._query, traversals, self._host_rows)
        while True:
            with clock("rows"):
                rows = next(made, None)
            if rows is None:
                return
            yield rows

    def _search_groups(
        self, batches: Batches, context: BatchContext, isolate: bool
    ) -> Iterator[tuple[Traversals, float]]:
        """Yield groups of traversals, certified as the request says, each with the seconds per
        source.

        A group that fails is halved, down to single sources. A source that fails alone is recorded
        in ``context.failed``. If that was for want of memory, it is first tried once more. With
        ``isolate`` all groups are of one source. Traversals are valid until the next group runs.
        """
        # Pairs of a source and its part.
        remaining = deque((source, part) for part, sources in batches for source in sources)
        # With the certificate "sample", the first source of each part is certified. A part is empty
        # if all its sources were given up.
        first_sources = {sources[0] for _, sources in batches if len(sources)}
        halves: deque[Group] = deque()  # of groups that failed, which are tried first
        last_retried = None  # the source, with its part, that was last retried for memory, alone
        while halves or remaining:
            if halves:
                group = halves.popleft()
            else:
                size = 1 if isolate else self.group
                group = [remaining.popleft() for _ in range(min(size, len(remaining)))]

            # ``_try`` searches and certifies; ``attempt`` has most failures, which are not raised.
            attempt = self._try(group, first_sources, context)
            if attempt.traversals is not None:
                # The first group also compiles, so that its seconds are not measured.
                if self._is_warm and not isolate:
                    self._measure(group, attempt.traversals, attempt.seconds)
                self._is_warm = True
                yield attempt.traversals, attempt.seconds
                continue

            # The group has failed: make later ones smaller if memory ran out, and halve this one.
            if attempt.memory_ran_out:
                release_cached_memory()
                self.group = max(1, min(self.group, len(group) // 2))
            if len(group) > 1:
                middle = len(group) // 2
                # ``extendleft`` reverses, so that the first half is in front.
                halves.extendleft((group[middle:], group[:middle]))
                continue
            # A source has failed alone. Want of memory may have been due to unused memory, which is
            # released now, so it is tried once more.
            (source_and_part,) = group
            if attempt.memory_ran_out and last_retried != source_and_part:
                last_retried = source_and_part
                halves.appendleft(group)
            else:
                source, _ = source_and_part
                context.failed.append((int(source), attempt.reason))

    def _measure(self, group: Group, traversals: Traversals, seconds: float) -> None:
        """Record the time of a group in ``measured``, by part.

        A group that another strategy than the plan's own has searched is not recorded.
        ``seconds``: of the search, per source.
        """
        strategy = self._plan.strategy.name
        if traversals.strategy != strategy:
            return
        for part, n_new in Counter(part for _, part in group).items():
            _, n_sources, total = self.measured.get(part, (strategy, 0, 0.0))
            self.measured[part] = (strategy, n_sources + n_new, total + n_new * seconds)

    def _try(self, group: Group, first_sources: set[int], context: BatchContext) -> Attempt:
        """Traverse from a group, and return what became of it: traversals with their seconds, or
        the text of an error. Two kinds of errors are raised instead: NegativeCycleError, with the
        cycle in the direction of the edges of the input, and CUDA errors after which this process
        cannot continue.

        An exception keeps the arrays of its frames alive. It is dropped when this method returns,
        so that their memory can be released before the group is tried again. ``first_sources`` are
        the vertex numbers of the first source of each part.
        """
        try:
            return Attempt(*self._traverse(group, first_sources, context))
        except NegativeCycleError as error:
            raise cycle_in_direction(error, self._request.direction) from None
        except Exception as error:
            if is_sticky(error):
                raise
            source, _ = group[0]
            return Attempt(
                None,
                reason=f"{type(error).__name__}: source {get_id(self._graph, int(source))}: {error}",
                memory_ran_out=is_out_of_memory(error),
            )

    def _traverse(
        self, group: Group, first_sources: set[int], context: BatchContext
    ) -> tuple[Traversals, float]:
        """Traverse from a group and certify as the request says; return the traversals, cut at the
        limit of each source if sources have their own, and the seconds of the search per source.

        ``first_sources``: vertex numbers of the first source of each part.
        """
        sources = [source for source, _ in group]
        parts = [part for _, part in group]
        # If a worker dies in a group of several, the source at fault is not known, so none is
        # recorded. The driver then has the sources searched one at a time.
        lone_source = int(sources[0]) if len(group) == 1 else None
        context.progress.record(parts[0], lone_source, parts[-1])

        with context.clock("traverse") as lap:
            traversals = self._run(sources)
            if self._waits:
                cuda.cp.cuda.get_current_stream().synchronize()
        with context.clock("certify"):
            self._certify_as_requested(traversals, first_sources)

        # A search may return distances interleaved or sparse, as their attribute ``form`` says; an
        # array with a row per source has none. Other forms become rows where the kind of result
        # does not read them. Each source may have a limit of its own.
        with context.clock("rows"):
            form = getattr(traversals.distance, "form", None)
            if form is not None and form not in self._request.kind.reads:
                traversals = traversals.as_rows()
            if self._request.limits is not None:
                traversals = traversals.within(self._request.limits.of(sources))
        return traversals, lap.seconds / len(group)

    def _run(self, sources: list[int]) -> Traversals:
        """Search from the sources of a group, each with its targets if there are pairs.

        With negative weights a search passes vertices beyond its limit. They stay in the result
        (``cut=False``), so that it can be certified; rows are cut at the limit when they are made.
        """
        pairs = self._request.pairs
        if pairs is None:
            return self._plan.run(np.array(sources), cut=False)
        return self._plan.run(sources, pairs.of(np.array(sources)).lists, cut=False)

    def _certify_as_requested(self, traversals: Traversals, first_sources: set[int]) -> None:
        """Certify all traversals ("all"), those from the first source of each part ("sample"), or
        none, as ``request.certify`` says.

        ``first_sources``: vertex numbers of the first source of each part; used for "sample" only.
        Raises CertificateError: a distance is wrong.
        """
        if self._request.certify == "all":
            self._certify(traversals)
        elif self._request.certify == "sample":
            for i, source in enumerate(traversals.sources.tolist()):
                if source in first_sources:
                    self._certify(cast(Traversals, traversals[i : i + 1]))

    def _certify(self, traversals: Traversals) -> None:
        """Raise CertificateError if a traversal is wrong."""
        certify_group(self._graph, traversals)


class LabelTraverser(BatchTraverser):
    """A ``BatchTraverser`` of hub labels, or of pairs that they answer.

    The driver has proved the labels as a whole (``label_plan.prove_labels``), so no search is
    certified here.
    """

    def _certify(self, traversals: Traversals) -> None:
        """Raise CertificateError if another strategy than the labels' has searched in their place:
        its results are not proved.
        """
        if traversals.strategy != self._plan.strategy.name:
            raise CertificateError(
                f"{traversals.strategy} has searched in place of hub labels, and is not certified; "
                "run again with --hierarchy no"
            )


def _return_made(rows: list[Rows], seconds: float, clock: PhaseTimer) -> MadeRows:  # noqa: ARG001
    """Return rows that are made already; it takes the place of ``_make_rows_of_piece``.

    ``rows``: in the order of the sources. ``seconds``: of the search, per source. ``clock``, the
    timer of the calling thread, is not used, since nothing is left to do.
    """
    return MadeRows(rows, seconds)
