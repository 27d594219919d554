"""The size of a prepared run: its load, this machine, and the workers, batches and memory that
follow from them.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import psutil
import pyarrow.parquet as pq

from kepler_traverse import cuda
from kepler_traverse.errors import InputError, several
from kepler_traverse.graph import Graph
from kepler_traverse.hierarchy.stored import FOLDERS
from kepler_traverse.kinds.loads import EXTRA, count_cells
from kepler_traverse.multi_source.planning import MultiSourcePlan
from kepler_traverse.runtime.memory import available_memory
from kepler_traverse.runtime.scratch import temporary_folder

from ..cli.options import Settings
from ..cli.shards import parse_shard
from ..output.part_file import write_part
from ..output.schemas import SOURCES_PER_PART
from ..output.store import Store
from ..scheduling.gpu_pool import POOL_SHARE
from ..worker.batch_context import BatchContext
from ..worker.host_limits import CPU_COUNT, MEMORY_LIMIT
from ..worker.traversal_worker import Traverser, traverser_for
from .memory_plan import (
    BATCHES_PER_WORKER,
    Load,
    Machine,
    Sizing,
    most_per_part,
    runs_in_this_process,
    size_up,
    sources_per_part,
    with_capacity,
)
from .prepare import Prepared, bytes_of_ids, estimate_reach, plan_for_one_process

_N_SAMPLED = 4  # sources by which the size of a part is estimated


def size_run(
    settings: Settings,
    prepared: Prepared,
    batch_size: int | Literal["auto"],
    may_run_here: bool,
    stays_here: bool,
) -> Sizing:
    """Choose workers and batch size, and whether this process runs the batches.

    Parameters
    ----------
    settings : Settings
        All options of the run.
    prepared : Prepared
        Graph, plan and sources. It is planned again if this process runs the batches.
    batch_size : int or "auto"
        Sources per part, or "auto" to choose it.
    may_run_here : bool
        Whether this process may run the batches, in place of worker processes.
    stays_here : bool
        Whether it then does so however long they take.

    Raises
    ------
    CapacityError
        The run does not fit.
    """
    machine = machine_for(prepared, settings.gpu_memory)
    # With --device auto the device is known only now.
    if machine.device == "cpu" and settings.gpu_memory is not None:
        raise InputError(
            "--gpu-memory has no effect: no GPU answers, so the run is on the CPU; leave it out"
        )
    _refuse_missing_gpus(settings, machine)  # fewer GPUs than --workers asks for

    # The sizes of the job, or of one shard of it. ``per_part`` is the number of sources that fill a
    # part file of --part-size, by writing a trial part.
    per_part = None
    if settings.part_size is not None and batch_size == "auto":
        per_part = _measure_sources_per_part(prepared, settings.part_size)
    load = make_load(prepared, per_part)
    shard = parse_shard(settings.shard, {})
    if shard is not None:
        if batch_size == "auto":
            # All shards need the same parts: by the graph and the question, and not by the
            # machine of a shard.
            # ``rows``: estimate per source. None and 1: without what the plan, which is made for
            # this machine, has measured.
            _, rows = estimate_reach(prepared.graph, prepared.request, None, depth=1)
            most = sources_per_part(prepared.graph.n_vertices, rows, "cpu", per_part)
            batch_size = min(most, -(-prepared.n_sources // (BATCHES_PER_WORKER * shard.count)))
        assert batch_size != "auto"  # it has been chosen above
        n_parts = len(shard.parts(prepared.layout(batch_size).n_parts))
        load = replace(load, n_sources=max(1, min(n_parts * batch_size, load.n_sources)))

    # Workers and batches.
    if settings.scheduler:
        machine, size = _size_by_workers(settings, machine, batch_size)
    else:
        size = partial(size_up, machine=machine, workers=settings.workers, batch_size=batch_size)
    # This sizing has memory for further strategies, to which measured times may lead.
    sizing = _with_candidates(settings, prepared, load, size)

    # This process runs the batches if it may, and if worker processes would not pay. A shard with
    # one worker runs them itself: if it dies, it is started again, which costs less without a
    # worker process.
    stays_here |= shard is not None and sizing.workers == 1
    if may_run_here and (
        stays_here or runs_in_this_process(load, sizing, machine, _search_seconds(prepared))
    ):
        # The sizes follow from the new plan; the sources stay those of the shard.
        plan_for_one_process(settings, prepared)
        load = replace(make_load(prepared, per_part), n_sources=load.n_sources)
        size = partial(size_up, machine=machine, workers=1, batch_size=sizing.batch_size)
        sizing = replace(_with_candidates(settings, prepared, load, size), in_process=True)
    return replace(sizing, n_batches=prepared.layout(sizing.batch_size).n_parts)  # of all shards


def _size_by_workers(
    settings: Settings, machine: Machine, batch_size: int | Literal["auto"]
) -> tuple[Machine, Callable[[Load], Sizing]]:
    """Ask the workers of an existing cluster how much memory they have, and size a run for them.

    Return the machine without the limits of this host, and a function that returns the sizing of a
    load for these workers. ``batch_size``: sources per part, or "auto".
    """
    from ..scheduling.existing_cluster import refuse_small_workers, survey

    surveyed = survey(settings, machine.device)
    # The memory of the workers counts, which ``refuse_small_workers`` looks at: they may be on
    # other hosts. The memory of a GPU here stands for that of their GPUs.
    if machine.device == "cpu":
        machine = replace(machine, available=sys.maxsize)

    def size(load: Load) -> Sizing:
        """Size a load for all workers; raise CapacityError if one of them has too little memory."""
        sizing = size_up(load, machine, len(surveyed), batch_size)
        refuse_small_workers(surveyed, sizing.shared_bytes, sizing.worker_bytes)
        return sizing

    return machine, size


def _refuse_missing_gpus(settings: Settings, machine: Machine) -> None:
    """Raise InputError if this host has fewer GPUs than the settings ask for workers. There is
    nothing to check on a CPU, on a cluster that exists already, or if the number of workers is
    "auto".
    """
    n_workers = settings.workers
    if machine.device == "cpu" or settings.scheduler or n_workers == "auto":
        return
    if n_workers > machine.n_gpus:
        raise InputError(
            f"--workers {n_workers} takes a GPU for each, and this process sees "
            f"{several(machine.n_gpus, 'GPU')}; take fewer workers"
        )


def _with_candidates(
    settings: Settings, prepared: Prepared, load: Load, size: Callable[[Load], Sizing]
) -> Sizing:
    """Return the sizing of a run, with memory for further strategies, which its tasks may change to
    if they prove faster.

    ``size(load)`` returns the sizing of a load. The field ``strategies`` names those that fit.
    """
    plan = prepared.plan
    states = {}  # bytes of a plan, by the name of its strategy
    if settings.strategy == "auto" and isinstance(plan, MultiSourcePlan):
        for candidate in plan.ranked(prepared.request.at_once):
            # Without constants of the cost model the time of a strategy is unknown (infinite).
            if math.isfinite(candidate.seconds):
                states[candidate.name] = state_bytes(prepared, candidate.group, candidate.nbytes)
    sizing, names = with_capacity(load, states, size, plan.strategy.name)
    return replace(sizing, strategies=tuple(names))


def _search_seconds(prepared: Prepared) -> float | None:
    """Return the estimated seconds of all searches in this process, with all of its threads; 0 for
    hub labels; None if not known: the plan has no estimates, or none for its strategy.
    """
    if prepared.request.kind.of_labels:  # labels are built before; nothing is searched
        return 0.0
    if not isinstance(prepared.plan, MultiSourcePlan):
        return None
    ranked = prepared.plan.ranked(prepared.n_sources)
    seconds_of = {candidate.name: candidate.seconds for candidate in ranked}
    seconds = seconds_of[prepared.plan.strategy.name]
    return seconds if math.isfinite(seconds) else None


def _measure_sources_per_part(prepared: Prepared, size: int) -> int | None:
    """Return how many sources fill a part file of ``size`` bytes, by a trial part of a few sources;
    None if all of these fail.

    There is no trial if no part could be as large. The bytes of a part depend on graph, question
    and sources alone, so shards on different machines get the same number.
    """
    load = make_load(prepared)
    # With ``per_part`` as large as it may be, the number of rows does not limit the sources.
    most = most_per_part(replace(load, per_part=SOURCES_PER_PART), prepared.graph.device)
    if most * load.most_rows * load.row_bytes <= size:
        return most  # no part gets more sources, and so many do not fill one

    # The run computes the sources of the trial again, and certifies them then.
    request = replace(prepared.request, certify="none")
    traverser = traverser_for(prepared.graph, prepared.plan, request)
    trial = write_trial_part(prepared, traverser, _N_SAMPLED, BatchContext())
    if trial is None:
        return None
    return max(1, size * trial.n_sources // max(trial.row_bytes, 1))


class TrialPart(NamedTuple):
    """A part of a few sources that was written to a temporary folder, to measure it."""

    n_sources: int  # of the part
    row_bytes: int  # of the file, for its rows
    footer_bytes: int  # of the file, most of which each part has once, however many rows it has


def write_trial_part(
    prepared: Prepared, traverser: Traverser, n_sources: int, context: BatchContext
) -> TrialPart | None:
    """Search from ``n_sources`` sources, spread over all of the run, and write their part to a
    temporary folder; return its sizes, or None if all of these sources fail.

    The clock of ``context`` measures the seconds of the phases.
    """
    positions = np.linspace(0, prepared.n_sources - 1, n_sources).astype(np.int64)
    numbers = prepared.numbers[np.unique(positions)].tolist()
    with temporary_folder() as folder:
        rows = traverser.answer_batch(0, numbers, context)
        with context.clock("write"):
            part = write_part(Store(Path(folder)), 0, prepared.layout(len(numbers)), rows)
        if part is None:
            return None
        footer_bytes = 0
        if prepared.request.kind.suffix == "parquet":
            footer_bytes = pq.read_metadata(Path(folder) / part["file"]).serialized_size
    return TrialPart(len(numbers), part["bytes"] - footer_bytes, footer_bytes)


def make_load(prepared: Prepared, per_part: int | None = None) -> Load:
    """Return the sizes of a prepared run, from which its memory and its workers follow.

    ``per_part``: number of sources that fill a part file, if that was measured.
    """
    graph = prepared.graph
    plan = prepared.plan
    request = prepared.request
    kind = request.kind

    # Bytes of an id, where a string takes 16 as an estimate, and of a distance.
    ids: Any = graph.ids
    id_bytes = 16 if graph.has_string_ids else ids.dtype.itemsize
    distance_bytes = 4 if request.algorithm == "bfs" else graph.distance_dtype.itemsize

    # Whether searches or certificates follow edges backward; on a CPU a BFS does, when it pulls.
    is_proved = kind.of_labels or request.is_proved_by_labels
    certified = request.certify != "none" and not is_proved
    # A nearest-source search has a graph of its own, which is always directed.
    one_way = graph.directed or kind.one_search
    if request.direction == "in":
        needs_reverse = True
    elif graph.device == "cpu":
        needs_reverse = certified or request.algorithm == "bfs"
    else:  # a plan that needs the reverse has built it and counts it in its own memory
        # A certificate with predecessors follows no edge backward. ``reverses``: whether the
        # strategy builds the reverse; only multi-source strategies have this attribute.
        reverses = getattr(plan.strategy, "reverses", False)
        needs_reverse = certified and not kind.has_predecessors and not reverses

    # Rows of the result: ``size`` has the largest number of rows per source (``most``), and how
    # many columns hold ids, distances and other numbers. ``rows`` is an estimate per source.
    size = kind.size(request, graph.n_vertices, plan.depth)
    most_rows = size.most
    if kind.adds_up:  # ``EXTRA``: the sums of pairs without a path
        most_rows = EXTRA + count_cells(graph, request.options.of, request.pairs)
    visited, rows = estimate_reach(graph, request, getattr(plan, "shape", None), plan.depth)

    # ``FOLDERS`` has the names of metrics, "weights" and "hops", as its keys.
    hierarchies = [graph.derived.known_hierarchy(metric) for metric in FOLDERS]
    return Load(
        n_vertices=graph.n_vertices,
        n_sources=prepared.numbers.size,
        graph_bytes=graph.derived.nbytes_on_device
        + bytes_of_ids(graph)
        + sum(hierarchy.nbytes for hierarchy in hierarchies if hierarchy)
        + getattr(plan, "labels_nbytes", 0),
        # an undirected graph is its own reverse
        reverse_bytes=graph.derived.nbytes_on_device if one_way and needs_reverse else 0,
        pinned_bytes=_pinned_bytes(graph, one_way),
        state_bytes=state_bytes(prepared, plan.group, plan.nbytes),
        row_bytes=size.row_bytes(id_bytes, distance_bytes),
        rows_per_source=rows,
        most_rows=most_rows,
        certified=certified,
        adds_up=kind.adds_up,
        one_search=kind.one_search,
        visited=visited,
        is_sorted=request.options.sort != "source",
        per_part=per_part,
        # on a CPU a worker plans with fewer threads than here
        group=plan.group if graph.device == "cuda" else 1,
    )


def _pinned_bytes(graph: Graph, one_way: bool) -> int:
    """Return the bytes of edges that a worker with a GPU holds in pinned memory of its host.

    ``one_way``: whether the graph is directed; its reverse is there, too.
    """
    if not graph.derived.edges_on_host:
        return 0
    return (1 + one_way) * (graph.nbytes - graph.derived.nbytes_on_device)


def state_bytes(prepared: Prepared, group: int, nbytes: int) -> int:
    """Return the bytes of a plan and of the statistics of its results, without the graph.

    ``group``: sources that are searched together. ``nbytes``: those of the plan alone.
    """
    graph = prepared.graph
    request = prepared.request
    # Results that are cut at the limit of each source are copies, of at most 8 bytes per value.
    if request.limits is not None:
        # The depth matters for the rows alone, which are not used.
        visited, _ = estimate_reach(graph, request, getattr(prepared.plan, "shape", None), depth=1)
        nbytes += group * visited * 8 * (1 + request.kind.has_predecessors)
    # sums of each thread, of kinds that add up over sources; else 0
    nbytes += request.kind.bytes_of_loads(graph, max(prepared.threads, 1), request)
    if graph.device == "cuda":  # what the records of a group and their statistics need there
        nbytes += request.kind.bytes_on_gpu(request, group, graph.n_vertices)
    return nbytes


def machine_for(prepared: Prepared, gpu_memory: int | None = None) -> Machine:
    """Return the sizes of this host for a prepared run.

    Memory that the graph occupies now counts as free: ``Load`` counts it. ``gpu_memory``: bytes per
    GPU that the run may take at most; None for no such limit.
    """
    if prepared.graph.device == "cuda":
        # Memory in CuPy's pool is not free for CUDA, but is for this run. Part of each GPU stays
        # for CUDA itself.
        runtime = cuda.cp.cuda.runtime
        free, total = runtime.memGetInfo()
        free += cuda.cp.get_default_memory_pool().total_bytes()
        # The least of three: what is free, the share of a GPU that a run may take, and the limit.
        available = min(free, int(POOL_SHARE * total), gpu_memory or total)
        return Machine(
            device="cuda",
            cores=CPU_COUNT,
            n_gpus=runtime.getDeviceCount(),
            available=available,
            host=min(available_memory("cpu"), MEMORY_LIMIT),
        )
    available = min(psutil.virtual_memory().available + prepared.graph.nbytes, MEMORY_LIMIT)
    return Machine(device="cpu", cores=CPU_COUNT, n_gpus=0, available=available)
