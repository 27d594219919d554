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

from dask.system import CPU_COUNT
from distributed import WorkerPlugin, get_worker, secede

from kepler_traverse import plan_bfs_many, plan_sssp_many
from kepler_traverse.answers import turned
from kepler_traverse.errors import InputError
from kepler_traverse.graph import Graph
from kepler_traverse.many import ManyPlan
from kepler_traverse.storage import load_graph
from kepler_traverse.strategy import Shape

from .answers import Answers, Kept, free_memory, is_out_of_memory, is_sticky
from .cluster import ClusterError
from .existing import version_here
from .forms import FORMS
from .manifest import cannot_write
from .marks import Mark
from .merged import MergedAnswers, MergedPlan
from .metrics import watched
from .phases import Phases
from .rows import OF_ALL_REACHED, warm_up
from .sink import write_part
from .tallies import Tally
from .writers import Writers, fits_beside, writers_for


@dataclass(frozen=True, kw_only=True)
class Work:
    """What every batch of a run shares; small enough to be sent to each worker.

    Attributes
    ----------
    run : str
        Fingerprint of the run.
    graph_folder, output : Path
        Absolute, and the same on every worker.
    limit : int, float or None
        Largest hop count or distance.
    targets : list of ids or None
    result : str
        Name of the form that is written.
    knobs : dict or None
        Settings of the strategy.
    direction : {"out", "in"}
        Of the distances: from the sources, or to them.
    at_once : int
        Sources that a plan answers at once: those of a part, about, or of more parts where the device has room.
    memory : int or None
        Bytes that the plan of one worker may take beside the graph; None takes what is free.
    chosen : str
        Strategy that the driver has chosen where ``strategy`` is "auto"; "" otherwise.
    shape : Shape or None
        What the driver's plan has seen of the graph, so that no worker searches for it again.
    threads : int
        For each worker's kernels; 0 takes as many as the worker has for tasks.
    writers : int
        Most threads of each worker that write parts while it traverses.
    version : str
        Of this package on the driver, where a worker may have another; see ``existing.version_here``.
    """

    run: str
    graph_folder: Path
    output: Path
    device: str
    algorithm: str
    strategy: str
    limit: float | None
    targets: list | None
    result: str
    certify: str
    knobs: dict | None
    direction: str = "out"
    at_once: int = 1
    memory: int | None = None
    chosen: str = ""
    shape: Shape | None = None
    threads: int
    writers: int = 1
    version: str = ""


def plan_for(graph: Graph, work) -> ManyPlan | MergedPlan:
    """Plan the traversals of a ``Work`` or a ``Request``.

    Distances are proven right before anything is made of them, so a plan keeps all of them, unless nothing is to be proven:
    then it may hold no more than what is written is made of.
    """
    graph = turned(graph, work.direction)
    if FORMS[work.result].merged:
        return MergedPlan(graph, work.algorithm, work.strategy, work.limit, work.knobs, work.at_once)
    proven = work.certify != "none"
    as_it_is = work.result == "predecessors" or not (proven or work.result == "reachable")
    result = work.result if as_it_is else "distances"
    options = {
        "n_sources": work.at_once,
        "strategy": work.strategy,
        "result": result,
        "targets": work.targets,
        "knobs": work.knobs,
        "memory": work.memory,
    }
    if getattr(work, "shape", None) is not None:
        options["shape"] = work.shape
    if work.algorithm == "bfs":
        return plan_bfs_many(graph, max_depth=work.limit, **options)
    return plan_sssp_many(graph, cutoff=work.limit, **options)


def plan_told(graph: Graph, work: Work, strategy: str) -> ManyPlan | MergedPlan:
    """Plan with a strategy that the driver names; where this worker cannot run it, with the one that it chooses itself."""
    if strategy:
        try:
            return plan_for(graph, replace(work, strategy=strategy))
        except (InputError, MemoryError):  # another kind of device, or one that holds less
            free_memory()
    return plan_for(graph, work)


def answers_for(graph: Graph, plan: ManyPlan | MergedPlan, work) -> Answers | MergedAnswers:
    """What answers with a plan that ``plan_for`` has made for the same ``Work`` or ``Request``."""
    return (MergedAnswers if FORMS[work.result].merged else Answers)(turned(graph, work.direction), plan, work)


class TraversalPlugin(WorkerPlugin):
    """Holds the graph and the plan of one worker; set up again whenever a worker is started anew."""

    def __init__(self, work: Work, name: str):
        self.work, self.name = work, name
        self.graph: Graph | None = None
        self.plan: ManyPlan | MergedPlan | None = None
        self._answers: Answers | MergedAnswers | None = None
        self._writers: Writers | None = None
        self._lock: threading.Lock | None = None
        self._threads = work.threads
        self._load_seconds = 0.0
        self._told = ""

    async def setup(self, worker) -> None:
        self._lock = threading.Lock()
        self._threads = self.work.threads or worker.state.nthreads
        # In a thread, so that the worker answers the scheduler meanwhile.
        await asyncio.to_thread(self._load)

    def teardown(self, worker) -> None:  # noqa: ARG002
        self.graph = self.plan = self._answers = None
        if self._writers is not None:
            self._writers.close()

    def _load(self) -> None:
        started = time.perf_counter()
        if self.work.version and self.work.version != version_here():  # it has joined after the others were asked
            raise ClusterError(
                f"a worker on host {socket.gethostname()} has another version of this package ({version_here()}) than the "
                f"job ({self.work.version}); install the same one, start the worker anew, and run again with --resume"
            )
        self._take_fair_share()
        self.graph = load_graph(self.work.graph_folder, self.work.device)
        if self.work.writers > 1 and not FORMS[self.work.result].merged:
            cores = min(self.work.writers, len(os.sched_getaffinity(0)))
            most = writers_for(self.graph.n_vertices, cores, CPU_COUNT)
            self._writers = Writers(most) if most > 1 else None
        warming = threading.Thread(target=self._warm_up)
        warming.start()
        self._told = self.work.chosen
        self.plan = plan_told(self.graph, self.work, self._told)
        self._answers = answers_for(self.graph, self.plan, self.work)
        warming.join()
        self._load_seconds = time.perf_counter() - started

    def _warm_up(self) -> None:
        """What threads that write would all wait for at once, before there is anything to write."""
        if self._writers is not None and self.work.result in OF_ALL_REACHED:
            self._take_fair_share()
            kind = "int16" if self.work.algorithm == "bfs" else self.graph.weights.dtype
            warm_up(self.work.result, self.work.algorithm, kind, self.graph.returns_integers)

    def _take(self, strategy: str) -> None:
        """Plan anew if the driver now names another strategy; what the plan before had is given back first."""
        if not strategy or strategy == self._told:
            return
        self._told = strategy
        if self.plan.strategy.name == strategy:
            return
        started = time.perf_counter()
        self._answers.let_go()
        self.plan = self._answers = None
        free_memory()
        self.plan = plan_told(self.graph, self.work, strategy)
        self._answers = answers_for(self.graph, self.plan, self.work)
        self._load_seconds += time.perf_counter() - started

    def _take_fair_share(self) -> None:
        # Numba keeps the number of threads per calling thread, so each thread that traverses must set it.
        import numba

        numba.set_num_threads(min(self._threads, numba.config.NUMBA_NUM_THREADS))

    def answer(
        self,
        batches: Sequence[tuple[int, Sequence[int]]],
        careful: bool,
        mark_path: Path,
        make_way: Callable = lambda: None,
        strategy: str = "",
    ) -> list[dict]:
        """Answer the batches of a task, one part each; see ``run_batches``.

        ``make_way`` is called once all of them are traversed, when the next task may begin.
        """
        with Mark(mark_path) as mark:
            try:
                with self._lock:  # a plan holds one traversal at a time, and a foreign worker may have several threads
                    self._take_fair_share()
                    if self._answers is None:  # Dask keeps a worker whose plugin failed to set up
                        self._load()
                    self._take(strategy)
                    if isinstance(self.plan, ManyPlan):
                        self.plan.adopt()  # a task's results are used up before the lock is let go, in whichever thread
                    most = max((len(sources) for _, sources in batches), default=0)
                    if self._writers is None or careful or not fits_beside(most, self.graph.n_vertices):
                        return [self._part(part, sources, careful, mark) for part, sources in batches]
                    begun = time.perf_counter()
                    parts = self._writers.take(self._ends(batches, mark))
                    seconds = time.perf_counter() - begun
                make_way()
                return self._outcomes(batches, parts, seconds, mark)
            except Exception as error:
                if is_sticky(error):
                    mark.leave(f"{type(error).__name__}: {error}")
                    # Every later call in this process would fail, too. Ending it lets the nanny start a fresh one.
                    os._exit(1)
                raise

    def _part(self, part: int, sources: Sequence[int], careful: bool, mark: Mark) -> dict:
        try:
            return self._written(part, sources, careful, mark)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
        # Not at a source but while rows were written: once more, one source at a time and with all memory that can be had.
        free_memory()
        try:
            return self._written(part, sources, True, mark)
        except MemoryError as error:
            reason = f"MemoryError: its part could not be written: {error}"
            return {"part": part, "summary": None, "failed": [(int(source), reason) for source in sources]}

    def _outcomes(self, batches, parts: list[Future], seconds: float, mark: Mark) -> list[dict]:
        """What has come of parts that are written on threads, after ``seconds`` in which the last one was begun."""
        wait(parts)
        done = [part.result()["summary"] for part in parts if part.exception() is None]
        written = sum(summary["phases"][phase] for summary in done if summary for phase in ("rows", "write"))
        # By which tasks are sized; parts side by side share their time, and no thread writes faster than it can.
        seconds = round(max(seconds, written / self._writers.most) / max(len(parts), 1), 6)
        outcomes = []
        for (part, sources), future in zip(batches, parts, strict=False):
            with watched(self.work.algorithm) as note:
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
                    self._writers.most = max(1, self._writers.most // 2)
                    free_memory()
                    outcome = self._part(part, sources, True, mark)
            outcomes.append(outcome)
        return outcomes

    def _ends(self, batches: Sequence[tuple[int, Sequence[int]]], mark: Mark) -> Iterator[Callable[[], dict]]:
        """Traverse from the sources of the parts; yields for each part what is left to do for it."""
        answers = self._answers  # as the next task may be told another strategy while these parts are written
        for kept in answers.kept(batches, mark):
            kept.clock.seconds["load"], self._load_seconds = self._load_seconds, 0.0
            yield functools.partial(self._end, answers, kept, mark)

    def _end(self, answers: Answers, kept: Kept, mark: Mark) -> dict:
        rows = answers.of_kept(kept)
        outcome = self._ended(kept.part, rows, kept.started, kept.clock, kept.tally, kept.failed, mark)
        return outcome | {"measured": answers.measured.pop(kept.part, None)}

    def _ended(self, part, answers, started, clock, tally, failed, mark) -> dict:
        with clock("write"):
            summary = write_part(self.work.output, part, self.work.run, answers, mark.is_wanted, self.work.result)
        if summary is not None:
            summary |= {"started": round(started, 3), "ended": round(time.time(), 3), "seconds": clock.elapsed}
            summary |= {"phases": clock.rounded()} | tally.summary()
        return {"part": part, "summary": summary, "failed": failed}

    def _written(self, part: int, sources: Sequence[int], careful: bool, mark: Mark) -> dict:
        started, clock, tally = time.time(), Phases(), Tally()
        clock.seconds["load"], self._load_seconds = self._load_seconds, 0.0
        failed: list[tuple[int, str]] = []
        mark.at(part)
        with watched(self.work.algorithm) as note:
            answers = self._answers.of(part, sources, careful, mark, clock, tally, failed)
            outcome = self._ended(part, answers, started, clock, tally, failed, mark)
            note(outcome["summary"], len(sources) - len(failed), failed)
        return outcome | {"measured": self._answers.measured.pop(part, None)}


def dask_setup(_worker) -> None:
    """Preload of the workers of an own cluster: Ctrl-C reaches the whole group, and ending them is the driver's part."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def run_batches(
    plugin: str, batches: Sequence[tuple[int, Sequence[int]]], careful: bool, mark: Path, strategy: str = ""
) -> list[dict]:
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
        For each batch ``part``; ``failed``, a list of (source, reason); ``measured``, ``[strategy, sources, seconds]`` of
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
    answering = worker.plugins[plugin]
    try:
        outcomes = answering.answer(batches, careful, mark, secede, strategy)
    except OSError as error:
        raise cannot_write(answering.work.output, error) from None
    for outcome in outcomes:
        if outcome["summary"] is not None:
            outcome["summary"]["worker"] = worker.address
    return outcomes
