"""A worker: it has the graph and the plan of the traversals, and runs batches of sources. It knows
no Dask.
"""

from __future__ import annotations

import contextlib
import functools
import os
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from kepler_traverse._uninterrupted import start
from kepler_traverse.cpu import compile_clock
from kepler_traverse.errors import InputError
from kepler_traverse.graph import Graph
from kepler_traverse.multi_source.outputs import graph_in_direction
from kepler_traverse.multi_source.planning import MultiSourcePlan
from kepler_traverse.multi_source.together import SearchTogether

from ..monitoring.prometheus import watched
from ..output.graph_cache import copy_graph
from ..output.layout import Layout
from ..output.manifest_types import BatchOutcome, PartSummary
from ..output.part_file import Answer, write_part
from ..output.row_groups import THIS_THREAD, Encoders
from ..output.rows import warm_up
from ..output.run_folder import writing_to
from ..output.store import Store, open_store
from ..scheduling.errors import ClusterError
from ..scheduling.heartbeat import Heartbeat
from ..scheduling.package_version import version_here
from .batch_context import BatchContext
from .device_errors import is_out_of_memory, is_sticky
from .host_limits import CPU_COUNT
from .phase_timer import PhaseTimer
from .planning import Plan, Request, plan_for, require_weights
from .together import TogetherTraverser
from .traverse import (
    Batches,
    BatchTraverser,
    LabelTraverser,
    TraversedBatch,
    release_cached_memory,
)
from .writer_pool import PartEncoders, Writers, can_write_in_background, writers_for

Traverser = BatchTraverser | TogetherTraverser


@dataclass(frozen=True, kw_only=True)
class Work:
    """What every batch of a run shares; small enough to be sent to each worker."""

    request: Request  # the question, and how it is answered
    layout: Layout  # how part files are named, sorted and identified
    # The folder of the stored graph; absolute, and the same on every worker.
    graph_folder: Path
    # The folder that parts are written to. None if driver and workers share none: each worker then
    # has a scratch folder, and sends its heartbeats as events.
    output: Path | None
    device: str  # "cpu" or "cuda", to which each worker loads the graph
    # Threads of the kernels of each worker; 0 takes as many as the worker has threads for tasks.
    threads: int
    writers: int = 1  # maximum number of threads per worker that write parts while it traverses
    # Version of this package on the driver, set if workers may have another one; see
    # ``package_version.version_here``.
    version: str = ""
    # the object store to which parts are moved from ``output``; "" if they stay there
    url: str = ""
    # Address of a cache in an object store, from which each host copies the graph; "" if all hosts
    # see ``graph_folder``. ``origin`` identifies the graph in the cache.
    graph_cache: str = ""
    origin: str = ""


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """What a worker holds once it has loaded the graph and planned."""

    graph: Graph  # in the direction of its edges
    plan: Plan  # with the strategy of the present task
    traverser: Traverser  # searches with the plan
    writers: Writers | None  # None if the thread that traverses also writes the parts


def plan_with_strategy(graph: Graph, request: Request, strategy: str) -> Plan:
    """Plan with the strategy that the driver names, or choose one here if this worker cannot run
    that strategy.

    ``strategy`` is the name of a strategy, or ``""`` if the driver names none.
    """
    if strategy:
        try:
            return plan_for(graph, replace(request, strategy=strategy))
        # The driver may have another kind of device, or more memory, than this worker.
        except (InputError, MemoryError):
            release_cached_memory()
    return plan_for(graph, request)


def traverser_for(graph: Graph, plan: Plan, request: Request) -> Traverser:
    """Return the object that runs a plan, which ``plan_for`` has made for the same request.

    ``graph`` has its edges in their own direction; it is reversed here if the request asks so.
    """
    graph = graph_in_direction(graph, request.direction)
    if isinstance(plan, SearchTogether):
        return TogetherTraverser(graph, plan, request)
    if request.kind.of_labels or request.is_proved_by_labels:
        return LabelTraverser(graph, plan, request)
    return BatchTraverser(graph, plan, request)


class TraversalWorker:
    """Holds the graph and the plan of one worker.

    ``load`` or ``hold`` is called once. ``answer`` then runs any number of tasks.

    Attributes
    ----------
    work : Work
        What every batch of the run shares.
    address : str
        Name of the worker in the manifest.
    loaded : Loaded or None
        Graph, plan, traverser and writers. None before ``load`` or ``hold``, after ``close``, and
        if loading has failed.
    """

    # Held while the plan is used. Created in the worker, because a lock cannot be pickled.
    _lock: threading.Lock

    def __init__(self, work: Work, address: str = ""):
        self.work = work
        self.address = address
        self.loaded: Loaded | None = None
        # Number of threads of kernels. It is 0 only in Dask, until ``TraversalPlugin.setup`` (the
        # subclass for Dask) replaces it by the number of threads that Dask gives the worker.
        self._threads = work.threads
        # seconds of loading and planning, and of compiling meanwhile, until a batch reports them
        self._load_seconds = 0.0
        self._compile_seconds = 0.0
        # Strategy that the driver named last, "" before it has named any. The plan may have another
        # strategy, if the named one cannot run on this worker.
        self._named_strategy = ""

    @functools.cached_property
    def _store(self) -> Store:
        """The store of the parts; it is opened in the worker, with the credentials that it has.

        ``work.output`` is where the files of an object store are prepared, too.
        """
        # Without a shared folder it is None only until ``TraversalPlugin.setup``, which enters a
        # scratch folder. The store is first used by a task, after that.
        assert self.work.output is not None
        return open_store(self.work.url or self.work.output, self.work.output)

    def make_heartbeat(self, path: Path, isolate: bool) -> Heartbeat:  # noqa: ARG002
        """Return the heartbeat of a task, which records its progress in the file ``path``.

        ``isolate``, whether the task searches from one source at a time, is ignored here: a file is
        cheap to write, so that each place is recorded. A subclass, whose heartbeats go over the
        network, uses it.
        """
        return Heartbeat(path)

    def hold(self, graph: Graph, plan: Plan) -> Loaded:
        """Take a graph that is in memory already, with a plan, and return what is loaded.

        The plan must be made for the number of threads that this worker has.
        """
        self._lock = threading.Lock()
        return self._hold(graph, plan, time.perf_counter())

    def load(self) -> None:
        """Load the stored graph, plan, and start the threads that write; ``loaded`` is set then."""
        self._lock = threading.Lock()
        self._load()

    def close(self) -> None:
        """Release the graph, and end the threads that write."""
        loaded = self.loaded
        self.loaded = None
        if loaded is not None and loaded.writers is not None:
            loaded.writers.close()

    def _load(self) -> Loaded:
        """Load the stored graph and plan; return what is loaded.

        Raises ClusterError: this package has another version than the driver's.
        """
        started = time.perf_counter()
        # This worker may have joined after the driver has checked the others.
        if self.work.version and self.work.version != version_here():
            raise ClusterError(
                f"a worker on host {socket.gethostname()} has another version of this package ({version_here()}) than the "
                f"job ({self.work.version}); install the same one, start the worker anew, and run again with --resume"
            )
        folder = self.work.graph_folder
        if self.work.graph_cache:
            folder = copy_graph(self.work.graph_cache, self.work.origin)
        graph = self.work.request.load(folder, self.work.device)
        return self._hold(graph, None, started)

    def _hold(self, graph: Graph, plan: Plan | None, started: float) -> Loaded:
        """Plan for a graph unless there is a plan, and start the threads that write.

        ``graph`` has its edges in their own direction. ``plan`` is None if there is none yet.
        ``started`` is when loading began, in seconds of ``time.perf_counter``. The seconds of
        loading, planning and compiling are recorded for the first batch.
        """
        # The clock counts the seconds in which this thread compiles kernels, for the whole process.
        compile_clock.listen()
        compiled_before = compile_clock.thread_seconds()
        self._limit_kernel_threads()
        request = self.work.request
        kind = request.kind

        # A search of all sources together (``one_search``), or a sum over them (``adds_up``), has
        # rows only at its end, so that no thread could write them while it runs.
        writers = None
        if self.work.writers > 1 and not (kind.one_search or kind.adds_up):
            cores = min(self.work.writers, len(os.sched_getaffinity(0)))
            # at most a thread per core, within this worker's share of half of the free memory
            n_threads = writers_for(graph.n_vertices, cores, CPU_COUNT)
            if n_threads > 1:
                writers = Writers(n_threads)
        # The code of the writer threads is loaded while this thread plans.
        warming = start(functools.partial(self._warm_up, graph, writers), "kepler-warming")

        # ``chosen`` is the strategy that the driver names at first, "" for none. A plan that is
        # given was made before that choice, and may have another one.
        self._named_strategy = request.chosen
        if plan is None or (request.chosen and plan.strategy.name != request.chosen):
            plan = plan_with_strategy(graph, request, request.chosen)
        loaded = self._use_plan(graph, plan, writers)

        warming.join()
        self._compile_seconds = compile_clock.thread_seconds() - compiled_before
        self._load_seconds = time.perf_counter() - started - self._compile_seconds
        return loaded

    def _warm_up(self, graph: Graph, writers: Writers | None) -> None:
        """Load the compiled functions that writer threads use, so that the threads do not all wait
        for them at the first part.

        ``writers`` is None if no thread writes in the background; then nothing is loaded. The
        functions depend on the type of the distances: hops of two bytes, or that of the weights.
        """
        request = self.work.request
        # Only rows per vertex, or lists with an entry per vertex, are made by compiled functions.
        if writers is not None and request.kind.has_all_vertices:
            self._limit_kernel_threads()
            if request.algorithm == "bfs":
                dtype = np.dtype(np.int16)
            else:
                dtype = require_weights(graph).dtype
            warm_up(request, dtype, graph.returns_integers)

    def _load_strategy(self, strategy: str) -> Loaded:
        """Return what is loaded, with a plan of the strategy that the driver names.

        ``strategy`` is ``""`` if the driver names none, and the present plan then stays. If the
        strategy differs from the one that the driver named before, and from that of the present
        plan, the worker plans again. If loading has failed before, it is tried again first.
        """
        loaded = self.loaded or self._load()  # Dask keeps a worker whose plugin failed to set up
        # Compared with the strategy named before, and not only with the plan's: a worker that
        # cannot run the named strategy has a plan of another one, and would plan again for each
        # task.
        if not strategy or strategy == self._named_strategy:
            return loaded
        self._named_strategy = strategy
        if loaded.plan.strategy.name == strategy:
            return loaded

        # The memory of the previous plan is released before the next one allocates. So no name may
        # refer to the plan: ``loaded`` is deleted, and a ``BatchTraverser``, which threads that
        # write earlier parts may still hold, drops it.
        started = time.perf_counter()
        graph = loaded.graph
        writers = loaded.writers
        if isinstance(loaded.traverser, BatchTraverser):
            loaded.traverser.release_plan()
        self.loaded = None
        del loaded
        release_cached_memory()

        plan = plan_with_strategy(graph, self.work.request, strategy)
        loaded = self._use_plan(graph, plan, writers)
        self._load_seconds += time.perf_counter() - started
        return loaded

    def _use_plan(self, graph: Graph, plan: Plan, writers: Writers | None) -> Loaded:
        """Make the traverser of a plan, and set and return ``loaded`` with it."""
        traverser = traverser_for(graph, plan, self.work.request)
        self.loaded = Loaded(graph=graph, plan=plan, traverser=traverser, writers=writers)
        return self.loaded

    def _limit_kernel_threads(self) -> None:
        """Limit the threads of kernels that this thread calls to those of this worker."""
        # Numba keeps the number of threads per calling thread, so each thread that traverses must
        # set it.
        import numba

        numba.set_num_threads(min(self._threads, numba.config.NUMBA_NUM_THREADS))

    def answer(
        self,
        batches: Batches,
        isolate: bool,
        heartbeat_path: Path,
        begin_next: Callable[[], object] = lambda: None,
        strategy: str = "",
    ) -> list[BatchOutcome]:
        """Run the batches of a task, one part file per batch; return what became of each.

        Parameters
        ----------
        batches : sequence of (int, sequence of int)
            Number of each part, with the vertex numbers of its sources.
        isolate : bool
            Whether to traverse from one source at a time, because a worker has died at one of them.
        heartbeat_path : Path
            The file that says how far the task is.
        begin_next : callable
            Called once all batches are traversed, so that the next task may begin while the last
            parts are written. It is called only if writer threads write the parts.
        strategy : str
            Strategy to traverse with; ``""`` for the one that the worker has.

        Returns
        -------
        list of BatchOutcome
            One per batch, in the same order.
        """
        with writing_to(self._store), self.make_heartbeat(heartbeat_path, isolate) as heartbeat:
            try:
                return self._answer(batches, isolate, heartbeat, begin_next, strategy)
            except Exception as error:
                # After such an error no later call succeeds, so the process ends. The heartbeat
                # then tells the driver why.
                if is_sticky(error):
                    heartbeat.record_reason(f"{type(error).__name__}: {error}")
                    self.give_up()
                raise

    def _answer(
        self,
        batches: Batches,
        isolate: bool,
        heartbeat: Heartbeat,
        begin_next: Callable[[], object],
        strategy: str,
    ) -> list[BatchOutcome]:
        """Search from the sources of batches, and write their parts, here or in the background.

        Parameters and result are those of ``answer``, with the open ``heartbeat`` of the task.
        """
        # A plan runs one traversal at a time, and a worker of an existing cluster may have several
        # threads for tasks.
        with self._lock:
            self._limit_kernel_threads()
            loaded = self._load_strategy(strategy)
            if isinstance(loaded.plan, MultiSourcePlan):
                # A plan copies its results, except for the thread that owns it. This thread may
                # become the owner: under the lock, no other one still reads results of the plan.
                loaded.plan.adopt()
            traverser = loaded.traverser
            writers = None
            if not isolate:
                writers = self._background_writers(loaded, batches)
            # No reference to the plan is left here, so that the next task can release it while
            # these parts are written.
            del loaded

            if writers is None or isinstance(traverser, TogetherTraverser):
                return [
                    self._write_with_retry(traverser, part, sources, heartbeat, isolate)
                    for part, sources in batches
                ]
            # This thread searches, in ``submit_parts``, and threads of ``writers`` write meanwhile.
            # The last parts may still be written when it returns; then the lock is free for the
            # search of the next task.
            started = time.perf_counter()
            parts = writers.submit_parts(
                self._search_and_write(writers, traverser, batches, heartbeat)
            )
            seconds = time.perf_counter() - started
        begin_next()
        return self._wait_for_parts(writers, batches, parts, seconds, heartbeat)

    def _background_writers(self, loaded: Loaded, batches: Batches) -> Writers | None:
        """Return the threads that write the parts of these batches; None if this thread does.

        The largest batch decides, since sorted rows of a part are all held in memory.
        """
        max_sources = max((len(sources) for _, sources in batches), default=0)
        sort = self.work.request.options.sort
        if can_write_in_background(max_sources, loaded.graph.n_vertices, sort):
            return loaded.writers
        return None

    def give_up(self) -> None:
        """Act on an error after which every later CUDA call in this process would fail, too.

        This method does nothing, so that the caller raises the error. Subclasses for workers that
        have a process of their own end the process.
        """

    def _write_with_retry(
        self,
        traverser: Traverser,
        part: int,
        sources: Sequence[int],
        heartbeat: Heartbeat,
        isolate: bool,
    ) -> BatchOutcome:
        """Search and write a part in this thread; if memory runs out, do so once more, with one
        source at a time.

        ``sources`` are vertex numbers. If memory runs out again, that of a GPU included, the outcome
        lists all sources as failed.
        """
        try:
            return self._write_batch(traverser, part, sources, heartbeat, isolate)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
        # Memory ran out while rows were written, not at a source: retry one source at a time, after
        # releasing unused memory.
        release_cached_memory()
        try:
            return self._write_batch(traverser, part, sources, heartbeat, isolate=True)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            reason = f"MemoryError: its part could not be written: {error}"
            return {
                "part": part,
                "summary": None,
                "failed": [(int(source), reason) for source in sources],
            }

    def _wait_for_parts(
        self,
        writers: Writers,
        batches: Batches,
        parts: list[Future[BatchOutcome]],
        seconds: float,
        heartbeat: Heartbeat,
    ) -> list[BatchOutcome]:
        """Wait for parts that writer threads write, and return their outcomes, in the order of the
        batches.

        ``parts``: the futures of the parts, in the order of the batches. ``seconds``: from the
        begin of the task until the last part was submitted. Raises the error of a part, unless
        memory ran out: such a part is written again.
        """
        wait(parts)
        seconds_per_part = _seconds_per_part(parts, seconds, writers.n_threads)
        outcomes: list[BatchOutcome] = []
        # After an error no further part is begun, so there may be fewer parts than batches.
        for (part, sources), future in zip(batches, parts, strict=False):
            # The monitoring counts the sources of each batch, and the errors.
            with watched(self.work.request.algorithm) as count_batch:
                outcome = _outcome_of_part(future, seconds_per_part)
                if outcome is not None:
                    failed = outcome["failed"]
                    count_batch(outcome["summary"], len(sources) - len(failed), failed)
            if outcome is None:
                outcome = self._write_with_fewer_threads(writers, part, sources, heartbeat)
            outcomes.append(outcome)
        return outcomes

    def _write_with_fewer_threads(
        self, writers: Writers, part: int, sources: Sequence[int], heartbeat: Heartbeat
    ) -> BatchOutcome:
        """Search and write a part again in this thread, one source at a time, after memory ran out
        in a writer thread; from now on half as many threads write.

        ``part`` and ``sources``: its number, and the vertex numbers of its sources.
        """
        with self._lock:
            writers.n_threads = max(1, writers.n_threads // 2)
            release_cached_memory()
            # The next task may have made another plan by now.
            traverser = self._load_strategy("").traverser
            return self._write_with_retry(traverser, part, sources, heartbeat, isolate=True)

    def _search_and_write(
        self, writers: Writers, traverser: BatchTraverser, batches: Batches, heartbeat: Heartbeat
    ) -> Generator[Callable[[], BatchOutcome]]:
        """Traverse from the sources of ``batches``; yield for each part a function that writes it.

        ``traverser`` searches, and ``writers`` make rows of the results. The function is yielded
        before all sources of its part are searched: it runs in a writer thread, and waits there for
        the results.
        """
        traversed = traverser.traverse_batches(batches, heartbeat, writers)
        with contextlib.closing(traversed):
            for batch in traversed:
                self._report_load(batch.context)
                yield functools.partial(
                    self._write_in_background, writers, traverser, batch, heartbeat
                )

    def _write_in_background(
        self,
        writers: Writers,
        traverser: BatchTraverser,
        batch: TraversedBatch,
        heartbeat: Heartbeat,
    ) -> BatchOutcome:
        """Write a part, in a thread of its own, while its sources are traversed.

        ``batch`` is the part, whose results arrive in pieces. Return what became of it.
        """
        # This thread has a timer of its own, because the search counts with that of the context.
        # Its seconds are added to the context's once the search of the part has ended.
        clock = PhaseTimer()
        encoders = PartEncoders(writers, clock)
        try:
            with clock("write"):
                rows = traverser.rows_of_batch(batch, clock)
                summary = self._write_part(batch.part, rows, heartbeat, encoders)
        except BaseException as error:
            # Without this, the thread that searches would wait until pieces are taken.
            batch.pieces.close(error)
            raise
        finally:  # after an error some row groups are pending, which no thread shall encode
            encoders.abandon()
        batch.context.clock.add(clock)
        return self._outcome(traverser, batch.part, summary, batch.context)

    def _write_part(
        self, part: int, rows: Iterator[Answer], heartbeat: Heartbeat, encoders: Encoders
    ) -> PartSummary | None:
        """Write the file of a part; return its summary, or None, and write no file, if ``rows``
        yields no results.

        The part is dropped if the driver has given it to another worker (``heartbeat.is_wanted``).
        """
        return write_part(self._store, part, self.work.layout, rows, heartbeat.is_wanted, encoders)

    def _outcome(
        self, traverser: Traverser, part: int, summary: PartSummary | None, context: BatchContext
    ) -> BatchOutcome:
        """Return what became of a part, and add times and statistics to its summary.

        ``measured`` has the seconds of the search, by which the driver compares strategies.
        """
        if summary is not None:
            context.finish(summary, self.address)
        measured = traverser.measured.pop(part, None)
        return {"part": part, "summary": summary, "failed": context.failed, "measured": measured}

    def _report_load(self, context: BatchContext) -> None:
        """Add the seconds of loading and planning to the times of a batch, the first one after it.

        They are then set to 0, so that no other batch reports them again.
        """
        context.clock.seconds["load"] = self._load_seconds
        self._load_seconds = 0.0
        context.clock.seconds["compile"] += self._compile_seconds
        self._compile_seconds = 0.0

    def _write_batch(
        self,
        traverser: Traverser,
        part: int,
        sources: Sequence[int],
        heartbeat: Heartbeat,
        isolate: bool,
    ) -> BatchOutcome:
        """Search and write a part in this thread; return what became of it.

        ``sources`` are vertex numbers. ``isolate``: whether to search from one at a time.
        """
        context = BatchContext(progress=heartbeat)
        self._report_load(context)
        heartbeat.record(part)
        with watched(self.work.request.algorithm) as count_batch:
            # ``rows`` is a generator, so the search runs while the part is written. The timer
            # counts it for its own phases, and not for "write".
            rows = traverser.answer_batch(part, sources, context, isolate=isolate)
            with context.clock("write"):
                summary = self._write_part(part, rows, heartbeat, THIS_THREAD)
            outcome = self._outcome(traverser, part, summary, context)
            count_batch(outcome["summary"], len(sources) - len(context.failed), context.failed)
        return outcome


def _seconds_per_part(
    parts: Sequence[Future[BatchOutcome]], seconds: float, n_threads: int
) -> float:
    """Return the mean seconds per part of a task, by which the driver sizes later tasks.

    ``parts`` have all ended. ``seconds`` is the time until the last one was submitted, and
    ``n_threads`` the number of writer threads. Where writing takes longer than searching, the
    result follows from the seconds of making and writing rows, divided by the threads. Parts that
    failed, or have no rows, add no such seconds.
    """
    summaries = [part.result()["summary"] for part in parts if part.exception() is None]
    written = sum(
        summary["phases"][phase] for summary in summaries if summary for phase in ("rows", "write")
    )
    return round(max(seconds, written / n_threads) / max(len(parts), 1), 6)


def _outcome_of_part(part: Future[BatchOutcome], seconds: float) -> BatchOutcome | None:
    """Return the outcome of a part that has ended; None if memory ran out; raise any other error.

    ``seconds`` are those per part, which the summary reports in place of the part's own, because
    parts of a task are written concurrently.
    """
    error = part.exception()
    if error is None:
        outcome = part.result()
        summary = outcome["summary"]
        if summary is not None:
            summary["seconds"] = seconds
        return outcome
    if not is_out_of_memory(error):
        raise error
    error.__traceback__ = None  # its frames keep arrays alive
    return None
