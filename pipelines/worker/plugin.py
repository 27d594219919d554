"""What runs in a worker: the graph is loaded and the traversal planned once, then batches of sources are answered."""

from __future__ import annotations

import asyncio
import functools
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np
from dask.system import CPU_COUNT
from distributed import Worker, WorkerPlugin, get_worker, secede

from kepler_traverse.errors import InputError
from kepler_traverse.graph import Graph
from kepler_traverse.multi_source.outputs import turned
from kepler_traverse.multi_source.planning import MultiSourcePlan
from kepler_traverse.storage import load_graph

from ..monitoring.prometheus import watched
from ..output.manifest_types import BatchOutcome
from ..output.part_file import write_part
from ..output.rows import OF_ALL_REACHED, warm_up
from ..output.run_folder import cannot_write
from ..output.schemas import OUTPUT_SCHEMAS
from ..scheduling.cluster import ClusterError
from ..scheduling.existing_cluster import version_here
from ..scheduling.heartbeat import Mark
from .batch_context import BatchContext
from .device_errors import is_out_of_memory, is_sticky
from .nearest_source import NearestSourcePlan, NearestSourceTraverser
from .planning import plan_for
from .request import Request, weights_of
from .traverse import Batches, BatchTraverser, SourceRows, TraversedBatch, release_cached_memory
from .writer_pool import Writers, can_write_in_background, writers_for

Traverser = BatchTraverser | NearestSourceTraverser


@dataclass(frozen=True, kw_only=True)
class Work:
    """What every batch of a run shares; small enough to be sent to each worker.

    Attributes
    ----------
    request : Request
    run : str
        Fingerprint of the run.
    graph_folder, output : Path
        Absolute, and the same on every worker.
    threads : int
        For each worker's kernels; 0 takes as many as the worker has for tasks.
    writers : int
        Most threads of each worker that write parts while it traverses.
    version : str
        Of this package on the driver, where a worker may have another; see ``existing_cluster.version_here``.
    """

    request: Request
    run: str
    graph_folder: Path
    output: Path
    device: str
    threads: int
    writers: int = 1
    version: str = ""


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """What a worker holds once its plugin is set up.

    Attributes
    ----------
    graph : Graph
    plan : MultiSourcePlan or NearestSourcePlan
    answers : Answers or NearestSourceTraverser
    writers : Writers or None
        None where parts are written by the thread that traverses.
    """

    graph: Graph
    plan: MultiSourcePlan | NearestSourcePlan
    answers: BatchTraverser | NearestSourceTraverser
    writers: Writers | None


def plan_told(graph: Graph, request: Request, strategy: str) -> MultiSourcePlan | NearestSourcePlan:
    """Plan with a strategy that the driver names; where this worker cannot run it, with the one that it chooses itself."""
    if strategy:
        try:
            return plan_for(graph, replace(request, strategy=strategy))
        except (InputError, MemoryError):  # another kind of device, or one that holds less
            release_cached_memory()
    return plan_for(graph, request)


def answers_for(
    graph: Graph, plan: MultiSourcePlan | NearestSourcePlan, request: Request
) -> BatchTraverser | NearestSourceTraverser:
    """What answers with a plan that ``plan_for`` has made for the same request."""
    graph = turned(graph, request.direction)
    return (
        NearestSourceTraverser(graph, plan, request)
        if isinstance(plan, NearestSourcePlan)
        else BatchTraverser(graph, plan, request)
    )


class TraversalPlugin(WorkerPlugin):
    """Holds the graph and the plan of one worker; set up again whenever a worker is started anew.

    Attributes
    ----------
    loaded : Loaded or None
        None before ``setup``, and where it has failed.
    """

    _lock: threading.Lock  # made in the worker, as it cannot be sent there

    def __init__(self, work: Work, name: str):
        self.work, self.name = work, name
        self.loaded: Loaded | None = None
        self._threads = work.threads
        self._load_seconds = 0.0
        self._reported = ""

    async def setup(self, worker: Worker) -> None:
        self._lock = threading.Lock()
        self._threads = self.work.threads or worker.state.nthreads
        # In a thread, so that the worker answers the scheduler meanwhile.
        await asyncio.to_thread(self._load)

    def teardown(self, worker: Worker) -> None:  # noqa: ARG002
        loaded, self.loaded = self.loaded, None
        if loaded is not None and loaded.writers is not None:
            loaded.writers.close()

    def _load(self) -> Loaded:
        started = time.perf_counter()
        if self.work.version and self.work.version != version_here():  # it has joined after the others were asked
            raise ClusterError(
                f"a worker on host {socket.gethostname()} has another version of this package ({version_here()}) than the "
                f"job ({self.work.version}); install the same one, start the worker anew, and run again with --resume"
            )
        self._take_fair_share()
        request, writers = self.work.request, None
        graph = load_graph(self.work.graph_folder, self.work.device)
        if self.work.writers > 1 and not OUTPUT_SCHEMAS[request.result].merged:
            cores = min(self.work.writers, len(os.sched_getaffinity(0)))
            most = writers_for(graph.n_vertices, cores, CPU_COUNT)
            writers = Writers(most) if most > 1 else None
        warming = threading.Thread(target=self._warm_up, args=(graph, writers))
        warming.start()
        self._reported = request.chosen
        plan = plan_told(graph, request, self._reported)
        answers = answers_for(graph, plan, request)
        self.loaded = loaded = Loaded(graph=graph, plan=plan, answers=answers, writers=writers)
        warming.join()
        self._load_seconds = time.perf_counter() - started
        return loaded

    def _warm_up(self, graph: Graph, writers: Writers | None) -> None:
        """What threads that write would all wait for at once, before there is anything to write."""
        request = self.work.request
        if writers is not None and request.result in OF_ALL_REACHED:
            self._take_fair_share()
            kind = np.dtype(np.int16) if request.algorithm == "bfs" else weights_of(graph).dtype
            warm_up(request.result, request.algorithm, kind, graph.returns_integers)

    def _ready(self, strategy: str) -> Loaded:
        """What answers with the strategy that the driver names; plans anew where it names another one than before."""
        loaded = self.loaded or self._load()  # Dask keeps a worker whose plugin failed to set up
        if not strategy or strategy == self._reported:
            return loaded
        self._reported = strategy
        if loaded.plan.strategy.name == strategy:
            return loaded
        started = time.perf_counter()
        graph, writers, request = loaded.graph, loaded.writers, self.work.request
        if isinstance(loaded.answers, BatchTraverser):
            loaded.answers.let_go()
        self.loaded = None
        del loaded  # what the plan before had is given back first
        release_cached_memory()
        plan = plan_told(graph, request, strategy)
        answers = answers_for(graph, plan, request)
        self.loaded = loaded = Loaded(graph=graph, plan=plan, answers=answers, writers=writers)
        self._load_seconds += time.perf_counter() - started
        return loaded

    def _take_fair_share(self) -> None:
        # Numba keeps the number of threads per calling thread, so each thread that traverses must set it.
        import numba

        numba.set_num_threads(min(self._threads, numba.config.NUMBA_NUM_THREADS))

    def answer(
        self,
        batches: Batches,
        isolate: bool,
        mark_path: Path,
        make_way: Callable[[], object] = lambda: None,
        strategy: str = "",
    ) -> list[BatchOutcome]:
        """Answer the batches of a task, one part each; see ``run_batches``.

        ``make_way`` is called once all of them are traversed, when the next task may begin.
        """
        with Mark(mark_path) as mark:
            try:
                with self._lock:  # a plan holds one traversal at a time, and a foreign worker may have several threads
                    self._take_fair_share()
                    loaded = self._ready(strategy)
                    if isinstance(loaded.plan, MultiSourcePlan):
                        loaded.plan.adopt()  # a task's results are used up before the lock is let go, in whichever thread
                    most = max((len(sources) for _, sources in batches), default=0)
                    writers, answers, n_vertices = loaded.writers, loaded.answers, loaded.graph.n_vertices
                    del loaded  # so that the next task can give the plan back while these parts are written
                    if (
                        writers is None
                        or isinstance(answers, NearestSourceTraverser)
                        or isolate
                        or not can_write_in_background(most, n_vertices)
                    ):
                        return [self._part(answers, part, sources, isolate, mark) for part, sources in batches]
                    begun = time.perf_counter()
                    parts = writers.take(self._ends(answers, batches, mark))
                    seconds = time.perf_counter() - begun
                make_way()
                return self._outcomes(writers, batches, parts, seconds, mark)
            except Exception as error:
                if is_sticky(error):
                    mark.leave(f"{type(error).__name__}: {error}")
                    # Every later call in this process would fail, too. Ending it lets the nanny start a fresh one.
                    os._exit(1)
                raise

    def _part(self, answers: Traverser, part: int, sources: Sequence[int], isolate: bool, mark: Mark) -> BatchOutcome:
        try:
            return self._written(answers, part, sources, isolate, mark)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
        # Not at a source but while rows were written: once more, one source at a time and with all memory that can be had.
        release_cached_memory()
        try:
            return self._written(answers, part, sources, True, mark)
        except MemoryError as error:
            reason = f"MemoryError: its part could not be written: {error}"
            return {"part": part, "summary": None, "failed": [(int(source), reason) for source in sources]}

    def _outcomes(
        self,
        writers: Writers,
        batches: Batches,
        parts: list[Future[BatchOutcome]],
        seconds: float,
        mark: Mark,
    ) -> list[BatchOutcome]:
        """What has come of parts that are written on threads, after ``seconds`` in which the last one was begun."""
        wait(parts)
        done = [part.result()["summary"] for part in parts if part.exception() is None]
        written = sum(summary["phases"][phase] for summary in done if summary for phase in ("rows", "write"))
        # By which tasks are sized; parts side by side share their time, and no thread writes faster than it can.
        seconds = round(max(seconds, written / writers.most) / max(len(parts), 1), 6)
        outcomes: list[BatchOutcome] = []
        for (part, sources), future in zip(batches, parts, strict=False):
            with watched(self.work.request.algorithm) as note:
                error = future.exception()
                if error is None:
                    outcome = future.result()
                    summary, failed = outcome["summary"], outcome["failed"]
                    if summary is not None:
                        summary["seconds"] = seconds
                    note(summary, len(sources) - len(failed), failed)
                elif not is_out_of_memory(error):
                    raise error
            if error is not None:
                error.__traceback__ = None  # whose frames hold on to memory
                with self._lock:
                    writers.most = max(1, writers.most // 2)
                    release_cached_memory()
                    # The next task may have planned anew by now.
                    outcome = self._part(self._ready("").answers, part, sources, True, mark)
            outcomes.append(outcome)
        return outcomes

    def _ends(self, answers: BatchTraverser, batches: Batches, mark: Mark) -> Iterator[Callable[[], BatchOutcome]]:
        """Traverse from the sources of the parts; yields for each part what is left to do for it."""
        for kept in answers.traverse_batches(batches, mark):
            kept.context.clock.seconds["load"], self._load_seconds = self._load_seconds, 0.0
            yield functools.partial(self._end, answers, kept, mark)

    def _end(self, answers: BatchTraverser, kept: TraversedBatch, mark: Mark) -> BatchOutcome:
        outcome = self._ended(kept.part, answers.rows_of_batch(kept), kept.context, mark)
        return {**outcome, "measured": answers.measured.pop(kept.part, None)}

    def _ended(self, part: int, rows: Iterator[SourceRows], context: BatchContext, mark: Mark) -> BatchOutcome:
        with context.clock("write"):
            summary = write_part(self.work.output, part, self.work.run, rows, mark.is_wanted, self.work.request.result)
        if summary is not None:
            context.finish(summary)
        return {"part": part, "summary": summary, "failed": context.failed}

    def _written(self, answers: Traverser, part: int, sources: Sequence[int], isolate: bool, mark: Mark) -> BatchOutcome:
        context = BatchContext(progress=mark)
        context.clock.seconds["load"], self._load_seconds = self._load_seconds, 0.0
        mark.at(part)
        with watched(self.work.request.algorithm) as note:
            outcome = self._ended(part, answers.of(part, sources, isolate, context), context, mark)
            note(outcome["summary"], len(sources) - len(context.failed), context.failed)
        return {**outcome, "measured": answers.measured.pop(part, None)}


def dask_setup(_worker: Worker) -> None:
    """Preload of the workers of an own cluster: Ctrl-C reaches the whole group, and ending them is the driver's part."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def run_batches(plugin: str, batches: Batches, isolate: bool, mark: Path, strategy: str = "") -> list[BatchOutcome]:
    """One task: some batches, a part for each. Small arguments, and an answer of 1 to 2 KB a batch.

    Parameters
    ----------
    plugin : str
        Name of the worker's ``TraversalPlugin``.
    batches : sequence of (part, vertex numbers of its sources)
    careful : bool
        Traverse from one source at a time, since a worker has died of one of them.
    mark : Path
        File that tells the driver where this is.
    strategy : str
        To traverse with; "" for the one that the worker has.

    Returns
    -------
    list of dict
        For each batch ``part``; ``failed``, a list of (source, reason); ``measured``, ``(strategy, sources, seconds)`` of
        groups by which strategies are compared, or None; and ``summary``, None if no source was answered:
        what ``write_part`` returns, and for the manifest and whoever watches: ``worker`` (its address), ``started`` and
        ``ended`` (seconds since the epoch), ``seconds``, ``phases`` (seconds by phase; a worker's first part also has the
        time that loading and planning took before it), and what ``Tally`` counts. Nothing of it goes into the file.

    Raises
    ------
    NegativeCycleError
    OutputError
        The output folder does not take the part.
    """
    worker = get_worker()
    answering = cast(TraversalPlugin, worker.plugins[plugin])
    try:
        outcomes = answering.answer(batches, isolate, mark, secede, strategy)
    except OSError as error:
        raise cannot_write(answering.work.output, error) from None
    for outcome in outcomes:
        if outcome["summary"] is not None:
            outcome["summary"]["worker"] = worker.address
    return outcomes
