"""Everything that can be checked before a run writes anything: the graph, the sources, the targets,
the plan.
"""

from __future__ import annotations

import contextlib
import gc
import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numba
import numpy as np

from kepler_traverse import cuda
from kepler_traverse._arrays import to_host
from kepler_traverse.cpu import compile_clock
from kepler_traverse.errors import (
    CapacityError,
    DeviceError,
    HierarchyError,
    InputError,
    option_text,
)
from kepler_traverse.graph import Graph
from kepler_traverse.graph.closed import where_paths_begin
from kepler_traverse.hierarchy.stored import FOLDERS, save_hierarchy
from kepler_traverse.hub_labels.stored import LABEL_FOLDERS, has_labels, save_labels
from kepler_traverse.kinds.question import Question
from kepler_traverse.multi_source.planning import MultiSourcePlan
from kepler_traverse.runtime.display import in_units
from kepler_traverse.runtime.memory import available_memory
from kepler_traverse.runtime.object_stores import URL
from kepler_traverse.search.algorithms import ALGORITHMS
from kepler_traverse.search.query import PairTable
from kepler_traverse.search.strategy import Shape

from ..cli import steps
from ..cli.options import Settings
from ..cli.terminal import say
from ..output.graph_cache import put_graph
from ..output.layout import Layout
from ..output.rows import Ids, get_names
from ..output.run_folder import writing_to
from ..scheduling.strategy_choice import StrategyChoice
from ..worker.host_limits import CPU_COUNT
from ..worker.label_plan import answers_all_pairs, proof_seconds, prove_labels
from ..worker.planning import Plan, Request, plan_for, require_weights
from ..worker.writer_pool import can_write_in_background
from .geometry import check_geometry
from .memory_plan import DISTANCES_AT_ONCE, Sizing, sources_per_part
from .question import read_question, read_vertices
from .reading import (
    build_limit,
    device_of,
    digest_inputs,
    may_stream,
    obtain_graph,
    origin_of_graph,
)
from .source_columns import by_partition


@dataclass(kw_only=True)
class Prepared:
    """A run that may start."""

    graph: Graph  # in the direction of its edges; deleted by ``release``
    plan: Plan = field(init=False)  # of the searches; deleted by ``release``
    request: Request  # the question, and how workers answer it
    # digest of the inputs of the graph (see ``digest_inputs``); ``""`` if they cannot be identified
    origin: str
    # Where the graph is already stored: in the graph cache, or by an interrupted run; None if not.
    folder: Path | None
    reused: bool  # whether the graph was loaded from there
    numbers: np.ndarray  # int64 array: vertex numbers of the distinct sources, in the given order
    names: Ids  # the user's ids of the sources, in the same order
    duplicates: int  # number of sources that were given more than once
    # seconds of reading, of building if the graph was not loaded, of planning and of compiling
    seconds: dict[str, float]
    # Number of sources by the folder of their parts, in the order of ``numbers``; None if all parts
    # are in one folder.
    partitions: dict[str, int] | None = None
    sizing: Sizing = field(init=False)  # workers, batches and memory: result of ``Engine.size``
    # The choice between strategies: result of ``Engine.choose``; None if there is none.
    choice: StrategyChoice | None = None
    threads: int = 0  # number of threads that the plan is made for; 0 if it does not depend on them
    # bytes of memory beyond which the graph is built in files; None if it never is
    build_limit: int | None = None

    @property
    def n_sources(self) -> int:
        """Number of distinct sources."""
        return int(self.numbers.size)

    def layout(self, batch_size: int) -> Layout:
        """Return how the sources are divided into parts of ``batch_size``, and their names."""
        partitions = self.partitions or {"": self.n_sources}
        return Layout(self.request.kind.name, batch_size, partitions, self.request.options.sort)

    def release(self) -> None:
        """Release the memory of the graph before the workers load theirs."""
        del self.graph, self.plan
        gc.collect()
        if cuda.available():
            cuda.cp.get_default_memory_pool().free_all_blocks()


def prepare(
    settings: Settings,
    stored: Path | None = None,
    graph_in_memory: Graph | None = None,
    check: Callable[[Graph], object] | None = None,
) -> Prepared:
    """Read the graph, look up sources and targets, and plan.

    Parameters
    ----------
    settings : Settings
        All options of the run.
    stored : Path, optional
        Folder in which an interrupted run may have left its graph.
    graph_in_memory : Graph, optional
        The graph, in place of an edge list.
    check : callable, optional
        Called with the graph; it may raise InputError.

    Raises
    ------
    InputError
        The input is invalid; nothing has been written.
    """
    # The graph, and the seconds that it took.
    clock = StepClock()
    if graph_in_memory is None:
        origin = digest_inputs(settings)
    else:
        origin = origin_of_graph(graph_in_memory)
    _start_compiling(settings)
    # ``folder`` is where the graph is stored already; None if it is not.
    graph, folder, reused = obtain_graph(settings, origin, stored, graph_in_memory)
    if settings.hierarchy == "no":
        graph = graph.derived.without_hierarchy()
    if check is not None:
        check(graph)
    # A graph that was built here reports the seconds of reading and of building. The seconds in
    # which kernels were compiled are taken out of the step in which that happened.
    took, compiled = clock.lap()
    seconds = {"read": took}
    if graph_in_memory is None and graph.report.seconds:
        seconds = dict(graph.report.seconds)
    step = "build" if "build" in seconds else "read"
    seconds[step] = max(0.0, seconds[step] - compiled)

    # The question, its sources, and the request to the workers.
    steps.begin("planning")
    if settings.algorithm == "sssp":
        require_weights(graph)
    question = read_question(graph, settings)
    # vertex numbers of a sample, from which betweenness is estimated; None for other results
    sample = getattr(question.options, "sources", None)
    numbers, n_duplicates = choose_sources(graph, settings, question.pairs, sample)
    epsilon = settings.epsilon
    if sample is None and epsilon is not None:
        say(
            f"{option_text('epsilon', epsilon)} needs all {graph.n_vertices:,} "
            "vertices as sources: the result is exact"
        )
    # With --partition-by the sources are ordered by a column, and the parts of each of its values
    # have a folder. ``check_geometry`` refuses a --geometry that the result or the graph lacks.
    partitions = None  # all parts are in one folder
    if settings.partition_by is not None:
        numbers, partitions = by_partition(graph, settings, numbers)
    check_geometry(graph, settings)

    at_once = _estimate_at_once(settings, graph, question, numbers.size)
    request = Request.to_answer(question, settings, at_once)
    if graph.derived.edges_on_host:
        request = replace(request, edges="host")
    prepared = Prepared(
        graph=graph,
        request=request,
        origin=origin,
        folder=folder,
        reused=reused,
        numbers=numbers,
        names=get_names(graph, numbers),
        duplicates=n_duplicates,
        seconds=seconds,
        partitions=partitions,
        build_limit=build_limit(settings) if graph_in_memory is None else None,
    )
    # Planning may replace ``prepared.graph`` by one with its edges in host memory.
    del graph

    # The plan. It is made again where it shows that a hierarchy or labels serve the run better, or
    # that searches end early.
    _add_requested_hierarchy(settings, prepared)
    _add_labels(settings, prepared)
    _make_plan(settings, prepared)
    is_new = _add_hierarchy_if_it_pays(settings, prepared)
    if _prove_labels(settings, prepared) or is_new:
        _make_plan(settings, prepared)
    # ``shape`` has what the plan has measured of the graph, such as the share of the vertices that
    # a search reaches; None for plans without. Workers plan by it, and measure nothing again.
    shape = getattr(prepared.plan, "shape", None)
    prepared.request = replace(prepared.request, shape=shape)
    at_once = _estimate_at_once(settings, prepared.graph, question, numbers.size, shape)
    if at_once > prepared.request.at_once:
        prepared.request = replace(prepared.request, at_once=at_once)
        _make_plan(settings, prepared)
    took, compiled_to_plan = clock.lap()
    seconds["plan"] = max(0.0, took - compiled_to_plan)
    seconds["compile"] = compiled + compiled_to_plan
    return prepared


class StepClock:
    """Measures the steps of this thread one after another, and the time that it compiles in each."""

    def __init__(self) -> None:
        compile_clock.listen()
        self._since = time.perf_counter()
        self._compiled_before = compile_clock.thread_seconds()

    def lap(self) -> tuple[float, float]:
        """Return the seconds since the last call, or since this clock was made, and how many of
        them this thread compiled kernels.
        """
        now = time.perf_counter()
        compiled = compile_clock.thread_seconds()
        seconds = now - self._since
        compile_seconds = compiled - self._compiled_before
        self._since = now
        self._compiled_before = compiled
        return seconds, compile_seconds


def _start_compiling(settings: Settings) -> None:
    """Start threads that compile the kernels of a run on a GPU, while the edge list is read."""
    if device_of(settings) != "cuda":
        return
    from kepler_traverse.api.compile_ahead import compile_ahead

    # An error of the compiler is raised where the kernel is needed, after errors of the input.
    with contextlib.suppress(DeviceError):
        # A result of the whole graph is found by searches for distances. Weights are float32 unless
        # the settings say otherwise: their type is known only once they are read.
        compile_ahead(
            settings.algorithm,
            result=settings.result if settings.kind.takes_sources else "distances",
            directed=settings.directed,
            weight_type="float64" if settings.weight_type == "float64" else "float32",
            certify=settings.certify != "none",
        )


def choose_sources(
    graph: Graph,
    settings: Settings,
    pairs: PairTable | None = None,
    sample: np.ndarray | None = None,
) -> tuple[np.ndarray, int]:
    """Return the distinct sources of a run, and how many were given more than once.

    Sources are vertex numbers (int64 array) in the order in which each is first given. They come
    from ``pairs`` (the table of origins and destinations), from ``sample`` (vertex numbers), or
    else from the settings. A result about the whole graph has one nominal source, vertex 0.
    """
    if pairs is not None:
        return pairs.sources, 0
    if not settings.kind.takes_sources:
        if not graph.n_vertices:
            raise InputError("the graph has no vertices, so it has no eccentricities")
        return np.zeros(1, np.int64), 0  # nominal: rows of the whole graph are recorded as its rows
    numbers = _find_sources(graph, settings) if sample is None else sample
    _, first_rows = np.unique(numbers, return_index=True)  # where each number occurs first
    distinct = numbers[np.sort(first_rows)]
    return distinct, numbers.size - distinct.size


def estimate_reach(
    graph: Graph, question: Question, shape: Shape | None, depth: int
) -> tuple[int, int]:
    """Estimate how many vertices are visited per search, and how many rows the result has per
    source; return both.

    ``shape``: measurements of the graph by a plan, which say whether searches end early; None
    before there is a plan. ``depth``: number of levels of a search.
    """
    if question.kind.of_labels:  # no search visits anything
        rows = question.options.rows_per_source
        return rows, rows
    visited = graph.n_vertices
    if shape is not None and shape.is_short:
        visited = math.ceil(shape.reach * graph.n_vertices)
    return visited, question.kind.size(question, graph.n_vertices, depth, visited).rows


def _estimate_at_once(
    settings: Settings,
    graph: Graph,
    question: Question,
    n_sources: int,
    shape: Shape | None = None,
) -> int:
    """Return an estimate of the number of sources per part, which a worker searches from at once.

    ``shape``: measurements of the graph by a plan, which say whether searches end early; None
    before there is a plan.
    """
    if question.kind.one_search:
        return n_sources
    if settings.batch_size != "auto":
        return min(settings.batch_size, n_sources)
    # The depth matters for the rows of level counts alone, which are few for any depth.
    visited, rows = estimate_reach(graph, question, shape, depth=1)
    return min(sources_per_part(visited, rows, graph.device), n_sources)


def plan_for_one_process(settings: Settings, prepared: Prepared) -> None:
    """Plan again with all threads, if this process runs the batches, and the plan was made for a
    worker with a share of the threads.

    The seconds that this takes are added to those of the step ``plan``.
    """
    if prepared.threads in (0, CPU_COUNT):  # 0: the plan does not depend on threads
        return
    clock = StepClock()
    del prepared.plan  # its memory is free for the new one
    _make_plan(settings, prepared, CPU_COUNT)
    took, compiled = clock.lap()
    prepared.seconds["compile"] += compiled
    prepared.seconds["plan"] += max(0.0, took - compiled)


def _make_plan(settings: Settings, prepared: Prepared, threads: int | None = None) -> None:
    """Set the plan of ``prepared``, and the request that it answers.

    Where a GPU does not hold the graph and the arrays of its searches, the edges of the graph move
    to host memory. ``threads``: on a CPU the number of threads of a search; None for that of a
    worker.
    """
    try:
        _plan_where_edges_are(settings, prepared, threads)
        return
    except CapacityError:
        if not may_stream(settings, prepared.graph):
            raise
    stream_edges(settings, prepared)


def stream_edges(settings: Settings, prepared: Prepared) -> None:
    """Move the edges of the graph from the GPU to host memory, and plan again."""
    say(
        f"the edges stay in host memory ({in_units(prepared.graph.nbytes)}), because the GPU does not "
        "hold them and the arrays of the searches"
    )
    prepared.graph = prepared.graph.to("cuda", edges="host")
    prepared.request = replace(prepared.request, edges="host", memory=None)
    # The GPU must have the memory of the old graph and plan before the new plan asks for it.
    gc.collect()
    cuda.cp.get_default_memory_pool().free_all_blocks()
    _plan_where_edges_are(settings, prepared, None)


def _plan_where_edges_are(settings: Settings, prepared: Prepared, threads: int | None) -> None:
    """Plan for the device of the graph as it is; set plan, request and threads of ``prepared``."""
    graph = prepared.graph
    request = prepared.request
    n_sources = prepared.n_sources
    if graph.device == "cuda":
        prepared.threads = 0  # a plan on a GPU does not depend on them
        planned = _plan_across_parts(settings, graph, request, n_sources)
        if planned is None:
            planned = _plan_on_gpu(settings, graph, request)
        prepared.request, prepared.plan = planned
        return
    if threads is None:
        context = _with_worker_threads(settings, n_sources)
    else:
        context = with_threads(threads)
    with context:
        prepared.threads = numba.get_num_threads()
        prepared.request, prepared.plan = _plan_on_cpu(settings, graph, request)


def _plan_on_gpu(settings: Settings, graph: Graph, request: Request) -> tuple[Request, Plan]:
    """Plan within the free memory of a GPU, or within the limit of the settings.

    Return the request, with the bytes that the plan takes as its ``memory``, and the plan. Raises
    CapacityError: the graph alone exceeds the limit.
    """
    if settings.gpu_memory is not None:
        graph_bytes = graph.derived.nbytes_on_device + bytes_of_ids(graph)
        spare = settings.gpu_memory - graph_bytes
        if spare <= 0:
            raise CapacityError(
                f"the graph takes {in_units(graph_bytes)} on each GPU, and --gpu-memory leaves "
                f"{in_units(settings.gpu_memory)}; take a smaller graph or a larger limit"
            )
        request = replace(request, memory=spare)
    plan = plan_for(graph, request)
    # So that a worker makes the same plan: memory in its pool does not count as free.
    return replace(request, memory=plan.nbytes), plan


def _plan_on_cpu(settings: Settings, graph: Graph, request: Request) -> tuple[Request, Plan]:
    """Plan within a worker's share of the memory of the host; return the request with that share,
    and the plan.

    Half of what is free is for the plans of all workers, and the rest for all else. If no plan fits
    into the share, and the settings leave the number of workers open, the plan gets the share of
    all workers. Raises CapacityError, which names ``--workers`` if the settings do: no plan fits.
    """
    spare = available_memory("cpu") // 2
    workers = CPU_COUNT if settings.workers == "auto" else max(settings.workers, 1)
    request = replace(request, memory=spare // workers)
    try:
        return request, plan_for(graph, request)
    except InputError as error:  # an error other than CapacityError is raised again below
        if settings.workers != "auto":
            if isinstance(error, CapacityError):
                raise CapacityError(f"--workers {settings.workers}: {error}") from None
            raise
        request = replace(request, memory=spare)  # then the run gets fewer workers: see memory_plan
        return request, plan_for(graph, request)


@contextlib.contextmanager
def with_threads(count: int) -> Iterator[None]:
    """Within the block, let Numba use ``count`` threads, so that plans and estimates are those of a
    worker with as many.
    """
    before = numba.get_num_threads()
    numba.set_num_threads(max(1, min(count, numba.config.NUMBA_NUM_THREADS)))
    try:
        yield
    finally:
        numba.set_num_threads(before)


def _with_worker_threads(settings: Settings, n_sources: int) -> AbstractContextManager[None]:
    """Return a context in which Numba uses as many threads as one worker will have.

    The number of workers follows from the cores and the sources, as if memory sufficed for all of
    them, unless the settings name it. For workers of a cluster that exists already the number of
    threads stays as it is.
    """
    if settings.scheduler:  # workers of a cluster have the threads that it gives them
        return contextlib.nullcontext()
    workers = min(CPU_COUNT, n_sources) if settings.workers == "auto" else settings.workers
    if settings.kind.one_search:  # one search serves all sources
        workers = 1
    return with_threads(CPU_COUNT // max(workers, 1))


def bytes_of_ids(graph: Graph) -> int:
    """Return the bytes of the user's ids, numbers or strings."""
    ids: Any = graph.ids
    return ids.nbytes


def _plan_across_parts(
    settings: Settings, graph: Graph, request: Request, n_sources: int
) -> tuple[Request, Plan] | None:
    """Plan groups of sources that span several parts on a GPU, which is idle with few sources.

    Return the request with more sources at once, and the plan. Return None if parts are not written
    in the background, if parts have enough sources, or if a quarter of the free memory does not
    hold such groups. ``n_sources``: of the run.
    """
    # As many sources as keep a GPU busy, but no more than the run has. Only results of all vertices
    # fill a part with fewer. Workers of an existing cluster write each part before the next search.
    at_once = min(DISTANCES_AT_ONCE // max(graph.n_vertices, 1), n_sources)
    is_whole = request.targets is None and request.kind.has_all_vertices
    if not is_whole or settings.scheduler or at_once <= request.at_once:
        return None
    if not can_write_in_background(request.at_once, graph.n_vertices, request.options.sort):
        return None

    free = available_memory("cuda")
    if settings.gpu_memory is not None:
        free = min(free, settings.gpu_memory - graph.derived.nbytes_on_device - bytes_of_ids(graph))
    wider = replace(request, at_once=at_once, memory=free // 4)
    try:
        plan = plan_for(graph, wider)
    except CapacityError:
        return None
    if plan.group > request.at_once:
        return replace(wider, memory=plan.nbytes), plan
    return None


def _add_requested_hierarchy(settings: Settings, prepared: Prepared) -> None:
    """Build a hierarchy (shortcuts, over which searches are shorter) if the settings ask for one.

    Raises HierarchyError: the graph does not have a useful one.
    """
    if settings.hierarchy == "yes" and _may_build_hierarchy(settings, prepared):
        _build_hierarchy(settings, prepared)


def _add_hierarchy_if_it_pays(settings: Settings, prepared: Prepared) -> bool:
    """Build a hierarchy if the plan, which has none, estimates that it pays; return whether it was
    built.
    """
    plan = prepared.plan
    if settings.hierarchy != "auto" or settings.strategy != "auto":
        return False
    if not (isinstance(plan, MultiSourcePlan) and _may_build_hierarchy(settings, prepared)):
        return False
    estimate = plan.estimate_hierarchy()
    if estimate is None or not estimate.is_worth_it(prepared.n_sources):
        return False
    # Where the graph has no useful hierarchy, the run goes on without one.
    say(f"building a hierarchy: {estimate}, and {prepared.n_sources:,} are given")
    try:
        _build_hierarchy(settings, prepared)
    except HierarchyError as error:
        say(str(error))
        return False
    return True


def _may_build_hierarchy(settings: Settings, prepared: Prepared) -> bool:
    """Whether a hierarchy may be built: the graph has none for the algorithm, and a run is asked
    for, not its plan alone.
    """
    metric = ALGORITHMS[settings.algorithm].metric
    return not settings.plan and prepared.graph.derived.known_hierarchy(metric) is None


def _build_hierarchy(settings: Settings, prepared: Prepared) -> None:
    """Build the hierarchy of the graph, which keeps it, and store it where the graph is stored."""
    metric = ALGORITHMS[settings.algorithm].metric
    hierarchy = prepared.graph.hierarchy(metric)
    say(repr(hierarchy))
    if prepared.folder is not None:
        _store_hierarchy(settings, prepared, metric)


def _store_hierarchy(settings: Settings, prepared: Prepared, metric: str) -> None:
    """Store the hierarchy of the graph in the folder of the graph, and in a cache that is an object
    store.

    ``metric``: whether its shortcuts have "hops" or "weights".
    """
    folder = prepared.folder
    assert folder is not None  # callers have found that the graph is stored
    graph = prepared.graph
    with writing_to(folder):
        save_hierarchy(graph.hierarchy(metric), folder, graph.fingerprint, metric)
    if settings.graph_cache is not None and URL.match(settings.graph_cache):
        put_graph(settings.graph_cache, folder, prepared.origin, FOLDERS[metric])


def _add_labels(settings: Settings, prepared: Prepared) -> None:
    """If the run writes hub labels, build and prove them, and store them with the graph.

    ``prepared.graph`` then has them, so that the plan looks them up.
    """
    request = prepared.request
    if settings.plan or not request.kind.of_labels:
        return
    say(f"building labels: {request.options.estimate}")
    labels = prove_labels(prepared.graph, request)
    say(repr(labels))

    folder = prepared.folder
    if folder is None or has_labels(folder, labels.metric):  # not stored, or with its labels
        return
    _store_hierarchy(settings, prepared, labels.metric)  # labels are read over it
    with writing_to(folder):
        save_labels(labels, folder, prepared.graph.fingerprint)
    if settings.graph_cache is not None and URL.match(settings.graph_cache):
        stored = LABEL_FOLDERS[labels.metric]
        put_graph(settings.graph_cache, folder, prepared.origin, stored)


def _prove_labels(settings: Settings, prepared: Prepared) -> bool:
    """Prove the hub labels that the graph has, if they answer all pairs of the run and certificates
    of searches would take longer.

    Return whether the labels answer; the request then says so, and the run is planned again.
    """
    request = prepared.request
    graph = prepared.graph
    plan = prepared.plan
    may_answer = request.certify != "none" and settings.strategy == "auto"
    if not (may_answer and answers_all_pairs(graph, request)):
        return False
    assert isinstance(plan, MultiSourcePlan)  # as for all pairs
    # The alternative is searches with certificates. A certificate takes about as long as a search.
    fastest = plan.ranked(prepared.n_sources)[0]  # by ascending estimates
    if proof_seconds(request, graph) > 2 * fastest.seconds:
        return False

    if not settings.plan:
        say("proving the labels of the graph, which answer all pairs")
        prove_labels(graph, request)
    prepared.request = replace(request, is_proved_by_labels=True)
    return True


def _find_sources(graph: Graph, settings: Settings) -> np.ndarray:
    """Return the vertex numbers of the sources that the settings name, in the given order and with
    duplicates; raise InputError if there are none.
    """
    if settings.all_sources:
        numbers = where_paths_begin(graph)
    elif settings.random_sources:
        numbers = random_sources(graph, settings.random_sources, settings.seed)
    else:
        numbers = read_vertices(graph, settings, "sources")
    if numbers.size:
        return numbers
    if settings.sources_file is None:
        why = "the graph has no vertex"
    else:
        why = f"{settings.sources_file} has no row"
    raise InputError(f"there are no sources: {why}")


def random_sources(graph: Graph, count: int, seed: int) -> np.ndarray:
    """Return the numbers of ``count`` distinct random vertices that have an outgoing edge.

    The same ``seed`` gives the same vertices on every machine and device. Raises InputError: there
    are fewer such vertices.
    """
    candidates = np.flatnonzero(to_host(graph.derived.degrees))
    if count > candidates.size:
        raise InputError(
            f"{count} random sources are asked for, and {candidates.size} "
            "vertices have an outgoing edge; take fewer"
        )
    return np.random.default_rng(seed).choice(candidates, count, replace=False)
