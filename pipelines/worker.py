"""What runs in a worker: the graph is loaded and the traversal planned once, then batches of sources are answered."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from distributed import WorkerPlugin, get_worker

from kepler_traverse import plan_bfs, plan_sssp
from kepler_traverse.certificate import certify
from kepler_traverse.frames import table_of
from kepler_traverse.graph import Graph
from kepler_traverse.plan import Plan
from kepler_traverse.results import checksum
from kepler_traverse.storage import load_graph

from .sink import as_written, write_part
from .tallies import Tally


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
    predecessors : bool
        Whether they are written.
    knobs : dict or None
        Settings of the strategy.
    threads : int
        For each worker's kernels; 0 takes as many as the worker has for tasks.
    """

    run: str
    graph_folder: Path
    output: Path
    device: str
    algorithm: str
    strategy: str
    limit: float | None
    targets: list | None
    predecessors: bool
    certify: str
    knobs: dict | None
    threads: int


def plan_for(graph: Graph, work) -> Plan:
    """Plan the traversal of a ``Work``; certificates need predecessors even where they are not written."""
    predecessors = work.predecessors or work.certify != "none"
    options = {
        "strategy": work.strategy,
        "predecessors": predecessors,
        "targets": work.targets,
        "knobs": work.knobs,
    }
    if work.algorithm == "bfs":
        return plan_bfs(graph, max_depth=work.limit, **options)
    return plan_sssp(graph, cutoff=work.limit, **options)


class TraversalPlugin(WorkerPlugin):
    """Holds the graph and the plan of one worker; set up again whenever a worker is started anew."""

    def __init__(self, work: Work, name: str):
        self.work, self.name = work, name
        self.graph: Graph | None = None
        self.plan: Plan | None = None
        self._lock: threading.Lock | None = None
        self._threads = work.threads
        self._load_seconds = 0.0

    async def setup(self, worker) -> None:
        self._lock = threading.Lock()
        self._threads = self.work.threads or worker.state.nthreads
        # In a thread, so that the worker answers the scheduler meanwhile.
        await asyncio.to_thread(self._load)

    def teardown(self, worker) -> None:  # noqa: ARG002
        self.graph = self.plan = None

    def _load(self) -> None:
        started = time.perf_counter()
        self._take_fair_share()
        self.graph = load_graph(self.work.graph_folder, self.work.device)
        self.plan = plan_for(self.graph, self.work)
        self._load_seconds = time.perf_counter() - started

    def _take_fair_share(self) -> None:
        # Numba keeps the number of threads per calling thread, so each thread that traverses must set it.
        import numba

        numba.set_num_threads(min(self._threads, numba.config.NUMBA_NUM_THREADS))

    def answer(self, number: int, sources: Sequence[int]) -> dict:
        """Traverse from each source of a batch, certify, and write one part.

        Returns
        -------
        dict
            What ``write_part`` returns, and for the manifest and whoever watches: ``started`` and ``ended`` (seconds
            since the epoch), ``seconds``, ``phases`` (seconds by phase; a worker's first part also has the time that
            loading and planning took before it), and what ``Tally`` counts. Nothing of it goes into the file.
        """
        started = time.time()
        clock = Phases()
        self._take_fair_share()
        tally = Tally()
        with self._lock:  # a plan holds one traversal at a time, and a foreign worker may have several threads
            clock.seconds["load"], self._load_seconds = self._load_seconds, 0.0
            summary = write_part(self.work.output, number, self.work.run, self._answers(sources, clock, tally))
        phases = clock.rounded()
        return (
            summary
            | {"started": round(started, 3), "ended": round(time.time(), 3), "seconds": clock.elapsed, "phases": phases}
            | tally.summary()
        )

    def _answers(self, sources: Sequence[int], clock: Phases, tally: Tally) -> Iterator[tuple]:
        graph, plan, work = self.graph, self.plan, self.work
        for i, source in enumerate(sources):
            try:
                with clock("traverse"):
                    traversal = plan.run(int(source))
                if work.certify == "all" or (work.certify == "sample" and i == 0):
                    with clock("certify"):
                        certify(graph, traversal).require()
            except Exception as error:
                error.add_note(f"source {id_of(graph, int(source))}")
                raise
            written = as_written(traversal, plan.query)
            tally.add(graph, traversal, written)
            table = table_of(graph, traversal if work.predecessors else replace(traversal, predecessor=None), plan.query)
            yield id_of(graph, int(source)), table, checksum(written)


class Phases:
    """Seconds by phase of one part; what is neither traversing nor certifying is making rows and writing them."""

    def __init__(self):
        self.seconds = {"load": 0.0, "traverse": 0.0, "certify": 0.0}
        self._started = time.perf_counter()

    @contextlib.contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        begin = time.perf_counter()
        yield
        self.seconds[phase] += time.perf_counter() - begin

    @property
    def elapsed(self) -> float:
        return round(time.perf_counter() - self._started, 6)

    def rounded(self) -> dict[str, float]:
        rest = time.perf_counter() - self._started - self.seconds["traverse"] - self.seconds["certify"]
        return {name: round(value, 6) for name, value in (self.seconds | {"write": rest}).items()}


def id_of(graph: Graph, number: int):
    """The user's id of one vertex, as a plain Python value."""
    return names_of(graph, np.array([number]))[0]


def names_of(graph: Graph, numbers: np.ndarray) -> list:
    """The user's ids of vertices, as plain Python values."""
    if graph.device == "cuda" and not graph.has_string_ids:
        from kepler_traverse.cuda import cp

        return graph.ids[cp.asarray(numbers)].tolist()
    return graph.ids_at(numbers).tolist()


def dask_setup(_worker) -> None:
    """Preload of the workers of an own cluster: Ctrl-C reaches the whole group, and ending them is the driver's part."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def run_batch(plugin: str, number: int, sources: Sequence[int]) -> dict:
    """The task of one batch: small arguments, an answer of 1 to 2 KB."""
    worker = get_worker()
    try:
        return worker.plugins[plugin].answer(number, sources) | {"worker": worker.address}
    except Exception as error:
        if type(error).__name__ == "CUDARuntimeError":
            # After an illegal access or a failed launch every later call in this process fails too. Ending it lets the
            # nanny start a fresh one, and the driver gives the batch to another worker.
            os._exit(1)
        raise
