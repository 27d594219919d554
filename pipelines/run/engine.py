"""Engines that run the traversals: this library, in this process or on Dask workers, or another one."""

from __future__ import annotations

import contextlib
import functools
import math
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import pyarrow.parquet as pq

from kepler_traverse import cuda
from kepler_traverse.cpu import compile_clock
from kepler_traverse.errors import InputError
from kepler_traverse.graph import Graph
from kepler_traverse.graph.storage import write_graph
from kepler_traverse.multi_source.planning import MultiSourcePlan
from kepler_traverse.runtime.object_stores import URL

from ..cli.options import OPTIONS, Settings
from ..cli.shards import parse_shard
from ..cli.supervisor import UNWATCHED, Supervision
from ..output.layout import Layout
from ..output.manifest_types import BatchOutcome
from ..output.part_file import write_part
from ..output.run_folder import writing_to
from ..output.schemas import OUTPUT_SCHEMAS, SOURCES_PER_PART
from ..output.store import Store, open_store
from ..scheduling.executor import BatchExecutor, Task
from ..scheduling.heartbeat import keep_mark
from ..scheduling.in_process import NAME, InProcessExecutor
from ..scheduling.package_version import version_here
from ..scheduling.scheduler import BatchObserver, Patience, Window
from ..worker import lean_imports
from ..worker.batch_context import BatchContext
from ..worker.device_errors import is_sticky
from ..worker.traversal_worker import TraversalWorker, Work, answers_for
from ..worker.writer_pool import can_write_in_background
from .graph_cache import put_graph
from .memory_plan import Load, Sizing, most_per_part, runs_in_this_process, size_up, with_capacity
from .prepare import (
    Prepared,
    machine_for,
    make_load,
    origin_of_graph,
    plan_for_one_process,
    prepare,
    sources_per_part_of_shards,
    state_bytes,
    with_threads,
)
from .strategy_choice import StrategyChoice

# Dask is imported only where there are worker processes: that takes the better part of a second.
if TYPE_CHECKING:
    from distributed import Client, Future

_SAMPLED = 4  # sources by which the size of a part is estimated
_OWN_DASHBOARD = next(option.default for option in OPTIONS if option.key == "dashboard_address")


@dataclass(frozen=True, kw_only=True)
class BatchRun:
    """The input of ``Engine.answer``."""

    batches: dict[int, list[int]]  # vertex numbers of the sources by part; entries do not change while the engine runs
    prepared: Prepared  # the result of ``Engine.prepare``; the engine may release it
    layout: Layout
    # The output folder of the parts, and where the graph is stored for worker processes if it is stored nowhere else.
    folder: Path
    graph: Path
    url: str  # the object store of the run, if it has one
    # Called once the cluster has started, if there is one, with the seconds of each step so far.
    announce: Callable[[dict[str, float]], None]
    # ``watch(client)`` returns a context that yields the observer of the batches; without a client there is no page.
    watch: Callable[[Client | None], AbstractContextManager[BatchObserver]]
    # Called once with the seconds of each step, as soon as all batches have ended: the results are complete then, and what
    # closes after that delays no result.
    finish: Callable[[dict[str, float]], None]


class Engine(Protocol):
    """The interface of an engine; the job calls the methods in this order."""

    def prepare(self, stored: Path | None) -> Prepared:
        """Read and build the graph, look up sources and targets, and plan; ``stored`` may have the graph already.

        Raises InputError: raised before anything is written.
        """

    def size(self, prepared: Prepared, batch_size: int | Literal["auto"]) -> Sizing:
        """Choose workers and batch size; raise CapacityError if the run does not fit."""

    def choose(self, prepared: Prepared) -> StrategyChoice | None:
        """Return the choice between several strategies for ``prepared.sizing``, by estimates; None if there is none.

        This sets the fields of ``prepared.request`` that the workers' plans need.
        """

    def answer(self, run: BatchRun) -> None:
        """Run all batches, and then ``run.finish``.

        Raises
        ------
        ClusterError
            Workers are lost for good. Parts that were written are complete.
        OutputError
        NegativeCycleError
        """


@dataclass(frozen=True, kw_only=True)
class Given:
    """What a caller in Python gives a run beyond its settings."""

    graph: Graph | None = None  # the graph, in place of the files of an edge list
    stays_here: bool = False  # batches run in this process however long they take, unless the settings name workers
    check: Callable[[Graph], object] | None = None  # ``check(graph)`` is called with the graph before anything is written


NOTHING_GIVEN = Given()


class KeplerEngine:
    """This library, with the whole graph in this process, or in each worker of its own cluster or of an existing one.

    ``supervision``: whether another process takes over if this one dies, and whether batches may run in this one.
    """

    def __init__(self, settings: Settings, supervision: Supervision = UNWATCHED, given: Given = NOTHING_GIVEN):
        self._settings, self._supervision, self._given = settings, supervision, given
        self._is_external = settings.scheduler is not None

    def prepare(self, stored: Path | None) -> Prepared:
        if self._supervision.is_watched:
            lean_imports.settle(uses_cudf=self._settings.device != "cpu" and cuda.available())
        return prepare(self._settings, stored, self._given.graph, self._given.check)

    def size(self, prepared: Prepared, batch_size: int | Literal["auto"]) -> Sizing:
        settings = self._settings
        machine = machine_for(prepared, settings.gpu_memory)
        if machine.device == "cpu" and settings.gpu_memory is not None:  # with --device auto the device is known only now
            raise InputError("--gpu-memory has no effect: no GPU answers, so the run is on the CPU; leave it out")
        if settings.part_size is not None and batch_size == "auto":
            prepared.per_part = _sources_of_bytes(prepared, settings.part_size)
        if self._is_external:
            from ..scheduling.existing_cluster import refuse_small_workers, survey

            surveyed = survey(settings, machine.device)
            if machine.device == "cpu":  # the memory of the workers counts, and they may be on other hosts
                machine = replace(machine, available=sys.maxsize)

            def size(load: Load) -> Sizing:
                sizing = size_up(load, machine, len(surveyed), batch_size)
                refuse_small_workers(surveyed, sizing.shared_bytes, sizing.worker_bytes)
                return sizing
        else:

            def size(load: Load) -> Sizing:
                return size_up(load, machine, settings.workers, batch_size)

        load, shard = make_load(prepared), parse_shard(settings.shard, {})
        if shard is not None:
            if batch_size == "auto":
                batch_size = sources_per_part_of_shards(prepared, shard.count)
            n_batches = prepared.layout(batch_size).n_parts
            own = len(shard.parts(n_batches)) * batch_size
            load = replace(load, n_sources=max(1, min(own, load.n_sources)))
        sizing, names = with_capacity(load, self._states(prepared), size, prepared.plan.strategy.name)
        # A shard is started again if it dies, and that costs less without a cluster of one worker.
        stays_here = self._given.stays_here or (shard is not None and sizing.workers == 1)
        if self._may_run_here() and (
            stays_here or runs_in_this_process(load, sizing, machine, self._search_seconds(prepared))
        ):
            size_of_parts = sizing.batch_size
            plan_for_one_process(settings, prepared)
            load = replace(make_load(prepared), n_sources=load.n_sources)
            sizing, names = with_capacity(
                load,
                self._states(prepared),
                lambda load: size_up(load, machine, 1, size_of_parts),
                prepared.plan.strategy.name,
            )
            sizing = replace(sizing, in_process=True)
        n_batches = prepared.layout(sizing.batch_size).n_parts  # of all shards
        return replace(sizing, strategies=tuple(names), n_batches=n_batches)

    def _may_run_here(self) -> bool:
        """Whether the settings leave it open in which process the batches run."""
        settings = self._settings
        return not (
            self._is_external
            or self._supervision.needs_workers
            or settings.workers not in ("auto", 1)
            or settings.dashboard_address != _OWN_DASHBOARD
            or settings.batch_deadline != "auto"
        )

    def _search_seconds(self, prepared: Prepared) -> float | None:
        """Return the estimated seconds of all searches in this process, with all of its threads; None if not known."""
        if not isinstance(prepared.plan, MultiSourcePlan):
            return None
        name = prepared.plan.strategy.name
        seconds = {each.name: each.seconds for each in prepared.plan.ranked(prepared.n_sources)}[name]
        return seconds if math.isfinite(seconds) else None

    def _states(self, prepared: Prepared) -> dict[str, int]:
        """Return the bytes that each candidate strategy needs; empty if there is nothing to choose."""
        if self._settings.strategy != "auto" or not isinstance(prepared.plan, MultiSourcePlan):
            return {}
        candidates = prepared.plan.ranked(prepared.request.at_once)
        # Without constants of the cost model the time of a strategy is unknown (infinite).
        return {
            each.name: state_bytes(prepared, each.group, each.nbytes) for each in candidates if math.isfinite(each.seconds)
        }

    def choose(self, prepared: Prepared) -> StrategyChoice | None:
        if self._settings.strategy != "auto" or not isinstance(prepared.plan, MultiSourcePlan):
            return None
        first, sizing = prepared.plan.strategy.name, prepared.sizing
        size, request = sizing.batch_size, replace(prepared.request, chosen=first)
        prepared.request = request
        if len(sizing.strategies) < 2:
            return None
        across = self._writes_beside(sizing, prepared.graph.n_vertices)
        unit = request.at_once if across else size
        is_own_on_cpu = prepared.graph.device == "cpu" and not self._is_external
        with with_threads(sizing.threads) if is_own_on_cpu else contextlib.nullcontext():
            ranked = prepared.plan.ranked(unit)
        candidates = [each._replace(seconds=each.seconds * size / unit) for each in ranked if each.name in sizing.strategies]
        candidates.sort(key=lambda each: each.name != first)
        memory = request.memory
        # So that a worker makes the same plan: memory in its pool does not count as free.
        if prepared.graph.device == "cuda":
            memory = max(each.nbytes for each in candidates)
        prepared.request = replace(request, memory=memory)
        return StrategyChoice(candidates, size, prepared.n_sources, across)

    def _writes_beside(self, sizing: Sizing, n_vertices: int) -> bool:
        """Whether workers write parts on threads, so that a group may span several parts."""
        return not self._is_external and sizing.writers > 1 and can_write_in_background(sizing.batch_size, n_vertices)

    def answer(self, run: BatchRun) -> None:
        if run.prepared.sizing.in_process:
            self._answer_here(run)
        else:
            self._answer_on_cluster(run)

    def _answer_here(self, run: BatchRun) -> None:
        """Run all batches in this process, which has the graph and the plan already."""
        started, compiled = time.perf_counter(), compile_clock.thread_seconds()
        prepared, graph = run.prepared, run.prepared.graph
        name = NAME if self._settings.shard is None else f"shard {self._settings.shard}"
        worker = TraversalWorker(self.work(run), address=name)
        worker.hold(graph, vars(prepared).pop("plan"))  # which a change of the strategy releases
        ready, compiled = time.perf_counter(), compile_clock.thread_seconds() - compiled
        times = {"start": ready - started - compiled, "compile": compiled}
        run.announce(times)
        self._supervision.begin()
        with self._executor_here(run, worker) as executor, run.watch(None) as observer:
            self.window(run, executor, observer, graph.n_vertices).run(list(run.batches))
        run.finish(times | {"traverse": time.perf_counter() - ready})
        worker.close()

    def _executor_here(self, run: BatchRun, worker: TraversalWorker) -> InProcessExecutor:
        def run_task(task: Task, make_way: Callable[[], object]) -> list[BatchOutcome]:
            return worker.answer(_list_batches(run, task), task.isolate, task.mark, make_way, task.strategy)

        return InProcessExecutor(run_task, self._supervision.is_watched, is_sticky)

    def _answer_on_cluster(self, run: BatchRun) -> None:
        """Run all batches in worker processes, which load the stored graph and plan."""
        from ..scheduling.cluster import cluster_for, give_plugin, take_plugin
        from ..scheduling.dask_executor import DaskExecutor
        from ..scheduling.existing_cluster import check_existing, check_newcomers
        from ..worker.plugin import TraversalPlugin

        work, sizing, n_vertices = self.work(run), run.prepared.sizing, run.prepared.graph.n_vertices
        if self._is_external:
            check_existing(self._settings, work.device, _shared_folders(run), run.url)
        started = time.perf_counter()
        if run.prepared.folder is None:
            with writing_to(run.folder):
                write_graph(run.prepared.graph, work.graph_folder, work.origin)
        own_cache = f"{run.url}/{run.graph.name}"
        if work.graph_cache == own_cache:
            put_graph(own_cache, work.graph_folder, work.origin)
        run.prepared.release()
        stored = time.perf_counter()
        count, token = min(sizing.workers, len(run.batches)), uuid.uuid4().hex[:8]
        with cluster_for(self._settings, work.device, count, sizing.memory["total"]) as client:
            plugin = f"kepler-traverse-{token}"
            if work.output is None:
                client.subscribe_topic(plugin, functools.partial(keep_mark, run.folder))
            give_plugin(client, TraversalPlugin(work, plugin), plugin)
            ready = time.perf_counter()
            times = {"store": stored - started, "start": ready - stored}
            run.announce(times)
            with run.watch(client) as observer:
                executor = DaskExecutor(client, _submitter(run, client, token))
                if self._is_external:
                    needed = sizing.shared_bytes + sizing.worker_bytes
                    executor.admit = functools.partial(check_newcomers, client, needed=needed, url=run.url)
                window = self.window(run, executor, observer, n_vertices)
                try:
                    window.run(list(run.batches))
                finally:
                    if client.status == "running" and self._is_external:
                        take_plugin(client, plugin)
                        if work.output is None:
                            client.unsubscribe_topic(plugin)
                    if work.graph_cache == own_cache:
                        with writing_to(run.folder):
                            open_store(run.url, run.folder).delete(run.graph.name)
            run.finish(times | {"traverse": time.perf_counter() - ready})

    def work(self, run: BatchRun) -> Work:
        """Return what all batches share."""
        request = run.prepared.request
        if run.prepared.choice is not None:
            request = replace(request, chosen=run.prepared.choice.strategy)
        is_apart = self._is_external and bool(run.url)  # then nothing but the store is shared with the workers
        cache = self._settings.graph_cache or ""
        if run.prepared.folder is None or not URL.match(cache):
            cache = f"{run.url}/{run.graph.name}"
        return Work(
            request=request,
            layout=run.layout,
            graph_folder=run.prepared.folder or run.graph,
            graph_cache=cache if is_apart else "",
            origin=run.prepared.origin or origin_of_graph(run.prepared.graph),
            output=None if is_apart else run.folder,
            url=run.url,
            device=run.prepared.graph.device,
            threads=0 if self._is_external else run.prepared.sizing.threads,
            writers=1 if self._is_external else run.prepared.sizing.writers,
            version=version_here() if self._is_external else "",
        )

    def window(self, run: BatchRun, executor: BatchExecutor, observer: BatchObserver, n_vertices: int) -> Window:
        """Return the window of tasks for the batches of a run."""
        settings, sizing = self._settings, run.prepared.sizing
        deadline = None if settings.batch_deadline == "auto" else settings.batch_deadline
        patience = Patience(deadline, settings.worker_timeout, settings.notice)
        first = 2 * sizing.writers if self._writes_beside(sizing, n_vertices) else 1
        return Window(executor, observer, run.folder, patience, first, run.prepared.choice)


def _shared_folders(run: BatchRun) -> list[Path]:
    """Return the folders that workers on all hosts must see; none if they share an object store."""
    if run.url:
        return []
    cache = run.prepared.folder
    return [run.folder] if cache is None else list(dict.fromkeys([run.folder, cache.parent]))


def _sources_of_bytes(prepared: Prepared, size: int) -> int | None:
    """Return how many sources fill a part file of a size, by a part of a few of them; None if all of these fail.

    They are not searched if no part could be as large. The bytes of a part depend on graph, question and sources alone, so
    shards on different machines get the same number.
    """
    load = make_load(prepared)
    most = most_per_part(replace(load, per_part=SOURCES_PER_PART), prepared.graph.device)
    if most * load.most_rows * load.row_bytes <= size:
        return most  # no part gets more sources, and so many do not fill one
    numbers = prepared.numbers[np.unique(np.linspace(0, prepared.numbers.size - 1, _SAMPLED).astype(np.int64))].tolist()
    request = replace(prepared.request, certify="none")  # they are computed and certified again
    with tempfile.TemporaryDirectory(prefix="kepler-") as folder:
        rows = answers_for(prepared.graph, prepared.plan, request).of(0, numbers, False, BatchContext())
        part = write_part(Store(Path(folder)), 0, prepared.layout(len(numbers)), rows)
        if part is None:
            return None
        sampled = part["bytes"]
        if OUTPUT_SCHEMAS[request.result].suffix == "parquet":  # without the footer, most of which every part has once
            sampled -= pq.read_metadata(Path(folder) / part["file"]).serialized_size
    return max(1, size * len(numbers) // max(sampled, 1))


def _list_batches(run: BatchRun, task: Task) -> list[tuple[int, list[int]]]:
    """Return the batches of a task, without the sources that are given up."""
    return [(part, [s for s in run.batches[part] if s not in task.without]) for part in task.parts]


def _submitter(run: BatchRun, client: Client, token: str) -> Callable[[Task], Future[Any]]:
    from ..worker.plugin import run_batches

    algorithm = run.prepared.request.algorithm

    def submit(task: Task) -> Future[Any]:
        # "bfs-000012-...": the dashboard groups tasks by the text before the first number.
        key = f"{algorithm}-{task.parts[0]:06d}-{task.number}-{token}"
        plugin = f"kepler-traverse-{token}"
        return client.submit(
            run_batches, plugin, _list_batches(run, task), task.isolate, task.mark, task.strategy, key=key, pure=False
        )

    return submit
