"""Engines that run the traversals: this library, in this process or on Dask workers, or another
one.
"""

from __future__ import annotations

import contextlib
import functools
import time
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from kepler_traverse import cuda
from kepler_traverse.cpu import compile_clock
from kepler_traverse.errors import CapacityError
from kepler_traverse.graph import Graph
from kepler_traverse.graph.storage import write_graph
from kepler_traverse.multi_source.planning import MultiSourcePlan
from kepler_traverse.runtime.object_stores import URL

from ..cli.options import Settings
from ..cli.supervisor import UNWATCHED, Supervision
from ..output.graph_cache import put_graph
from ..output.manifest_types import BatchOutcome
from ..output.run_folder import writing_to
from ..output.store import open_store
from ..scheduling.executor import BatchExecutor, Task
from ..scheduling.heartbeat import write_heartbeat
from ..scheduling.in_process import NAME, InProcessExecutor
from ..scheduling.package_version import version_here
from ..scheduling.scheduler import Window
from ..scheduling.strategy_choice import StrategyChoice
from ..scheduling.worker_processes import WorkerProcesses
from ..worker import lean_imports
from ..worker.device_errors import is_sticky
from ..worker.process import ProcessWorker
from ..worker.traversal_worker import TraversalWorker, Work
from ..worker.writer_pool import can_write_in_background, sources_per_piece
from .batch_run import BatchRun
from .memory_plan import Sizing
from .prepare import Prepared, prepare, stream_edges, with_threads
from .reading import may_stream, origin_of_graph
from .sizing import size_run

# Dask is imported only where its workers run batches: that takes the better part of a second.
if TYPE_CHECKING:
    from distributed import Future


@dataclass(frozen=True, kw_only=True)
class CallerInputs:
    """What a caller in Python gives a run beyond its settings."""

    graph: Graph | None = None  # the graph, in place of the files of an edge list
    # Whether batches run in this process however long they take, unless the settings name workers.
    stays_here: bool = False
    # ``check(graph)`` is called before anything is written, and may raise InputError.
    check: Callable[[Graph], object] | None = None


NO_INPUTS = CallerInputs()


class Engine(Protocol):
    """What runs the traversals of a run. The driver calls these methods in this order."""

    def prepare(self, stored: Path | None, /) -> Prepared:
        """Read and build the graph, look up sources and targets, and plan; return all that the run
        needs to know before it begins.

        ``stored``: folder in which an interrupted run may have left the graph; None without one.
        """
        ...

    def size(self, prepared: Prepared, batch_size: int | Literal["auto"], /) -> Sizing:
        """Choose workers and batch size, and return them with the memory that they take.

        ``batch_size``: sources per part, or "auto" to choose it here.
        """
        ...

    def choose(self, prepared: Prepared, /) -> StrategyChoice | None:
        """Return the choice between several strategies; None if there is none."""
        ...

    def answer(self, run: BatchRun, /) -> None:
        """Run all batches of ``run``, report their outcomes to it, and then call ``run.finish``."""
        ...


# Yields the engine that the settings name, and stops what it has started.
OpenEngine = Callable[[Settings, Supervision, CallerInputs], AbstractContextManager[Engine]]


class KeplerEngine:
    """This library, with the whole graph in this process, in each worker process of its own, or in
    each worker of a Dask cluster.

    ``supervision``: whether another process takes over if this one dies, and whether batches may
    run in this one. ``inputs``: what a caller in Python gives beyond the settings. ``processes``:
    worker processes that are starting; None if batches on worker processes start their own.
    """

    def __init__(
        self,
        settings: Settings,
        supervision: Supervision = UNWATCHED,
        inputs: CallerInputs = NO_INPUTS,
        processes: WorkerProcesses | None = None,
    ):
        self._settings = settings
        self._supervision = supervision
        self._inputs = inputs
        self._processes = processes
        # whether batches run on the workers of a cluster that the job has not started
        self._is_external = settings.scheduler is not None

    def prepare(self, stored: Path | None) -> Prepared:
        """Read and build the graph, look up sources and targets, and plan.

        ``stored``: folder in which an interrupted run may have left the graph; None without one.

        Raises InputError before anything is written.
        """
        if self._supervision.is_watched:  # this process is the job's own, and may skip imports
            lean_imports.hide_unused_packages(
                uses_cudf=self._settings.device != "cpu" and cuda.available()
            )
        return prepare(self._settings, stored, self._inputs.graph, self._inputs.check)

    def size(self, prepared: Prepared, batch_size: int | Literal["auto"]) -> Sizing:
        """Choose workers and batch size; raise CapacityError if the run does not fit.

        ``batch_size``: sources per part, or "auto" to choose it. If the run does not fit with the
        edges on a GPU, they move to host memory, and it is sized again.
        """
        # This process may run the batches unless a process that did so has died, or the settings
        # ask for workers.
        may_run_here = not (self._supervision.needs_workers or self._settings.wants_workers)
        size = functools.partial(
            size_run,
            self._settings,
            prepared,
            batch_size,
            may_run_here=may_run_here,
            stays_here=self._inputs.stays_here,
        )
        try:
            return size()
        except CapacityError:
            if not may_stream(self._settings, prepared.graph):
                raise
        stream_edges(self._settings, prepared)
        return size()

    def choose(self, prepared: Prepared) -> StrategyChoice | None:
        """Return the choice between several strategies: the planned one first, and then the others
        by their estimates; None if there is only one.

        During the run, measured times may change the choice. The strategies are those for which
        ``prepared.sizing`` has memory. This also sets the fields of ``prepared.request`` that the
        workers' plans need.
        """
        if self._settings.strategy != "auto" or not isinstance(prepared.plan, MultiSourcePlan):
            return None
        planned = prepared.plan.strategy.name
        sizing = prepared.sizing
        batch_size = sizing.batch_size
        # ``chosen`` names the strategy of a worker's first plan. It also has a GPU wait for its
        # kernels, so that the times of strategies can be compared.
        request = replace(prepared.request, chosen=planned)
        prepared.request = request
        if len(sizing.strategies) < 2:
            return None

        # Estimates with the threads of a worker, scaled to one batch. Where groups span several
        # batches, the estimate is of a group.
        across_batches = self._writes_in_background(
            sizing, prepared.graph.n_vertices, request.options.sort
        )
        n_estimated = request.at_once if across_batches else batch_size
        is_own_on_cpu = prepared.graph.device == "cpu" and not self._is_external
        with with_threads(sizing.threads) if is_own_on_cpu else contextlib.nullcontext():
            ranked = prepared.plan.ranked(n_estimated)  # by ascending estimates
        candidates = [
            candidate._replace(seconds=candidate.seconds * batch_size / n_estimated)
            for candidate in ranked
            if candidate.name in sizing.strategies
        ]
        # The planned one comes first; the sort keeps the others in the order of their estimates.
        candidates.sort(key=lambda candidate: candidate.name != planned)

        memory = request.memory
        # The memory is fixed here, so that a worker makes the same plan: memory that its pool holds
        # does not count as free there.
        if prepared.graph.device == "cuda":
            memory = max(candidate.nbytes for candidate in candidates)
        prepared.request = replace(request, memory=memory)
        return StrategyChoice(candidates, batch_size, prepared.n_sources, across_batches)

    def _writes_in_background(self, sizing: Sizing, n_vertices: int, sort: str) -> bool:
        """Whether workers write parts on threads, so that a group of sources may span parts.

        Workers of a cluster that exists already have no such threads (``make_work``). ``sort``:
        order of the rows, "source" or "distance". A part that is sorted by distance is written as a
        whole, unless it is small.
        """
        return (
            not self._is_external
            and sizing.writers > 1
            and can_write_in_background(sizing.batch_size, n_vertices, sort)
        )

    def answer(self, run: BatchRun) -> None:
        """Run all batches, and then ``run.finish``. Parts that were written before an error are
        complete.

        Raises ClusterError (workers are lost for good), OutputError or NegativeCycleError.
        """
        if run.prepared.sizing.in_process:
            self._answer_here(run)
        elif self._settings.has_own_processes:
            self._answer_in_processes(run)
        else:
            self._answer_on_cluster(run)

    def _answer_here(self, run: BatchRun) -> None:
        """Run all batches of ``run`` in this process, which has the graph and the plan already."""
        started = time.perf_counter()
        compiled_before = compile_clock.thread_seconds()
        name = NAME  # "this process"
        if self._settings.shard is not None:
            name = f"shard {self._settings.shard}"
        worker = TraversalWorker(self.make_work(run), address=name)
        # ``hold`` gives the worker what workers in other processes load; it plans again if the
        # chosen strategy is not that of the plan.
        # The worker alone refers to the plan from now on: a change of the strategy releases it.
        plan = vars(run.prepared).pop("plan")
        worker.hold(run.prepared.graph, plan)
        ready = time.perf_counter()
        compiled = compile_clock.thread_seconds() - compiled_before
        times = {"start": ready - started - compiled, "compile": compiled}
        run.announce(times)  # prints that the batches begin
        # If this process dies from now on, the one that watches it resumes with worker processes.
        self._supervision.begin()

        def run_task(task: Task, begin_next: Callable[[], object]) -> list[BatchOutcome]:
            """Run the batches of a task, and return what became of each.

            ``begin_next`` lets the next task begin. The worker calls it once all batches are
            searched, while threads still write their last parts.
            """
            return worker.answer(
                run.batches_of(task), task.isolate, task.heartbeat, begin_next, task.strategy
            )

        with (
            InProcessExecutor(run_task, self._supervision.is_watched, is_sticky) as executor,
            run.watch(None),
        ):
            self.make_window(run, executor).run(list(run.batches))
        run.finish(times | {"traverse": time.perf_counter() - ready})
        worker.close()

    def _answer_in_processes(self, run: BatchRun) -> None:
        """Run all batches in worker processes of this host, which load the stored graph and plan."""
        work = self.make_work(run)
        started = time.perf_counter()
        n_workers = self._hand_over_graph(run, work)
        stored = time.perf_counter()
        with contextlib.ExitStack() as stack:
            # Processes that were started early have imported what they need by now.
            processes = self._processes
            if processes is None:
                processes = stack.enter_context(contextlib.closing(WorkerProcesses()))
                processes.start()
            if not processes.has_workers:
                processes.add(n_workers, work.device)
            # Each process loads the graph and plans; this waits until all have done so.
            processes.give(ProcessWorker(work), run.batches_of)
            ready = time.perf_counter()
            times = {"store": stored - started, "start": ready - stored}
            run.announce(times)
            with run.watch(None):
                self.make_window(run, processes).run(list(run.batches))
            run.finish(times | {"traverse": time.perf_counter() - ready})

    def _hand_over_graph(self, run: BatchRun, work: Work) -> int:
        """Store the graph for the workers, unless it is stored already; release it in this process;
        return the number of workers to start.

        ``work`` says where workers look for the graph.
        """
        if run.prepared.folder is None:
            with writing_to(run.folder.path):
                write_graph(run.prepared.graph, work.graph_folder, work.origin)
        run.prepared.release()
        return min(run.prepared.sizing.workers, len(run.batches))

    def _answer_on_cluster(self, run: BatchRun) -> None:
        """Run all batches on the workers of Dask, which load the stored graph and plan."""
        from ..scheduling.cluster import cluster_for, give_plugin, take_plugin
        from ..scheduling.dask_executor import DaskExecutor
        from ..scheduling.existing_cluster import check_existing, check_newcomers
        from ..worker.plugin import TraversalPlugin, run_batches

        work = self.make_work(run)
        if self._is_external:
            shared_folders = []  # that all workers must see
            if not run.url:
                shared_folders.append(run.folder.path)
                # The graph is in a cache, or in the output folder. Its own folder gets no other
                # file, by which workers could be asked whether they see it.
                if run.prepared.folder is not None:
                    shared_folders.append(run.prepared.folder.parent)
            distinct = list(dict.fromkeys(shared_folders))
            # Raise an error unless all workers can run the job, and see these folders.
            check_existing(self._settings, work.device, distinct, run.url)

        # Where driver and workers share no folder, the graph goes to them through the object store
        # of the output, unless it is in a cache of a store.
        started = time.perf_counter()
        n_workers = self._hand_over_graph(run, work)
        run_cache = f"{run.url}/{run.folder.graph.name}"
        if work.graph_cache == run_cache:
            put_graph(run_cache, work.graph_folder, work.origin)
        stored = time.perf_counter()

        # Several runs may be on one cluster: the token distinguishes their plug-ins and tasks.
        token = uuid.uuid4().hex[:8]
        plugin = f"kepler-traverse-{token}"
        with cluster_for(self._settings, work.device, n_workers) as client:

            def submit(task: Task) -> Future[Any]:
                """Give a task to Dask; the plug-in runs it on a worker."""
                # "bfs-000012-...": the dashboard groups tasks by the text before the first number.
                key = f"{work.request.algorithm}-{task.parts[0]:06d}-{task.number}-{token}"
                return client.submit(
                    run_batches,
                    plugin,
                    run.batches_of(task),
                    task.isolate,
                    task.heartbeat,
                    task.strategy,
                    key=key,
                    pure=False,  # a call writes files, so that no earlier result serves
                )

            if work.output is None:  # workers send their heartbeats, which are kept in files here
                client.subscribe_topic(plugin, functools.partial(write_heartbeat, run.folder.path))
            # Each worker loads the graph and plans when it sets up the plug-in.
            give_plugin(client, TraversalPlugin(work, plugin), plugin)
            ready = time.perf_counter()
            times = {"store": stored - started, "start": ready - stored}
            run.announce(times)
            with run.watch(client):
                executor = DaskExecutor(client, submit)
                # Workers may join an external cluster during the run: they are checked first.
                if self._is_external:
                    sizing = run.prepared.sizing
                    needed = sizing.shared_bytes + sizing.worker_bytes
                    executor.admit = functools.partial(
                        check_newcomers, client, needed=needed, url=run.url
                    )
                try:
                    self.make_window(run, executor).run(list(run.batches))
                finally:
                    # An external cluster goes on without the run; one of the job's own ends.
                    if client.status == "running" and self._is_external:
                        take_plugin(client, plugin)
                        if work.output is None:
                            client.unsubscribe_topic(plugin)
                    if work.graph_cache == run_cache:
                        with writing_to(run.folder.path):
                            open_store(run.url, run.folder.path).delete(run.folder.graph.name)
            run.finish(times | {"traverse": time.perf_counter() - ready})

    def make_work(self, run: BatchRun) -> Work:
        """Return what all batches of ``run`` share: the request, where workers find the graph, and
        where the parts go.
        """
        prepared = run.prepared
        request = prepared.request
        if prepared.choice is not None:
            request = replace(request, chosen=prepared.choice.strategy)
        # Workers of an external cluster may see none of the driver's folders. With an output in an
        # object store, the store is all that they need to share.
        shares_store_only = self._is_external and bool(run.url)
        # A graph that is in no cache of a store goes to the workers through the store of the
        # output.
        cache = self._settings.graph_cache or ""
        if prepared.folder is None or not URL.match(cache):
            cache = f"{run.url}/{run.folder.graph.name}"
        return Work(
            request=request,
            layout=run.layout,
            graph_folder=prepared.folder or run.folder.graph,
            graph_cache=cache if shares_store_only else "",
            # digest of the inputs of the graph, by which its copy in a cache is found
            origin=prepared.origin or origin_of_graph(prepared.graph),
            output=None if shares_store_only else run.folder.path,
            url=run.url,
            device=prepared.graph.device,
            threads=0 if self._is_external else prepared.sizing.threads,
            writers=1 if self._is_external else prepared.sizing.writers,
            version=version_here() if self._is_external else "",
        )

    def make_window(self, run: BatchRun, executor: BatchExecutor) -> Window:
        """Return the window that gives the batches of a run to an executor, as tasks.

        A window has a bounded number of tasks at the executor at any time. ``executor`` runs tasks,
        in this process or on workers.
        """
        sizing = run.prepared.sizing
        n_vertices = run.folder.manifest["graph"]["vertices"]
        batches_per_task = 1
        # A first task has two pieces of results per writing thread, so that all threads have work.
        # Both numbers below are rounded up.
        if self._writes_in_background(sizing, n_vertices, run.prepared.request.options.sort):
            pieces_per_batch = -(-sizing.batch_size // sources_per_piece(n_vertices))
            batches_per_task = -(-2 * sizing.writers // pieces_per_batch)
        return Window(
            executor, run, run.folder.path, self._settings, batches_per_task, run.prepared.choice
        )
