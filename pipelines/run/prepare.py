"""Everything that can be checked before a run writes anything: the graph, the sources, the targets,
the plan.
"""

from __future__ import annotations

import contextlib
import gc
import glob
import hashlib
import json
import math
import os
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
from kepler_traverse.bfs.registry import MULTI_SOURCE
from kepler_traverse.cpu import compile_clock
from kepler_traverse.errors import (
    CapacityError,
    DeviceError,
    HierarchyError,
    InputError,
    OutputError,
    option_text,
)
from kepler_traverse.formats.files import stored_objects
from kepler_traverse.graph import Graph
from kepler_traverse.graph.closed import where_paths_begin
from kepler_traverse.graph.read import read_graph
from kepler_traverse.graph.storage import FORMAT, load_graph, stored_origin
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
from ..cli.constraints import has_effect
from ..cli.options import FILES_OF_IDS, Settings, read_options
from ..cli.terminal import say
from ..output.graph_cache import cached_graph, found_graph, local_cache, put_graph
from ..output.layout import Layout
from ..output.rows import Ids, get_names
from ..output.run_folder import writing_to
from ..output.tables_in_memory import ids_given
from ..scheduling.strategy_choice import StrategyChoice
from ..worker.host_limits import CPU_COUNT, MEMORY_LIMIT
from ..worker.label_plan import answers_all_pairs, proof_seconds, proved_labels
from ..worker.planning import Plan, Request, plan_for, require_weights
from ..worker.writer_pool import can_write_in_background
from .geometry import check_geometry
from .memory_plan import DISTANCES_AT_ONCE, Sizing, sources_per_part
from .question import read_question, read_vertices
from .reading import without_warnings
from .source_columns import by_partition


@dataclass(kw_only=True)
class Prepared:
    """A run that may start."""

    # Deleted by ``release``.
    graph: Graph
    plan: Plan = field(init=False)
    request: Request
    # digest of the inputs of the graph (see ``digest_inputs``); ``""`` if they cannot be identified
    origin: str
    # where the graph is already stored: in the graph cache, or by an interrupted run
    folder: Path | None
    reused: bool  # whether the graph was loaded from there
    numbers: np.ndarray  # int64 array: vertex numbers of the distinct sources, in the given order
    names: Ids  # their ids
    duplicates: int  # number of sources that were given more than once
    # seconds of reading, of building if the graph was not loaded, of planning and of compiling
    seconds: dict[str, float]
    # sources by the folder of their parts, in the order of ``numbers``
    partitions: dict[str, int] | None = None
    # The results of ``KeplerEngine.size`` and ``KeplerEngine.choose``.
    sizing: Sizing = field(init=False)
    choice: StrategyChoice | None = None
    threads: int = 0  # number of threads that the plan is made for; 0 if it does not depend on them
    # bytes of memory beyond which the graph is built in files; None if it never is
    build_limit: int | None = None

    @property
    def n_sources(self) -> int:
        return int(self.numbers.size)

    def layout(self, batch_size: int) -> Layout:
        """Return which sources are in which part."""
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
    given: Graph | None = None,
    check: Callable[[Graph], object] | None = None,
) -> Prepared:
    """Read the graph, look up sources and targets, and plan.

    ``stored``: where an interrupted run may have left its graph. ``given``: the graph, in place of
    an edge list. ``check`` is called with the graph; it may raise InputError.

    Raises InputError: the input is invalid; nothing has been written.
    """
    compile_clock.listen()
    started = time.perf_counter()
    compiled = compile_clock.thread_seconds()
    if given is None:
        origin = digest_inputs(settings)
    else:
        origin = origin_of_graph(given)
    _start_compiling(settings)
    graph, folder, reused = _graph_where_it_fits(settings, origin, stored, given)
    if settings.hierarchy == "no":
        graph = graph.derived.without_hierarchy()
    if check is not None:
        check(graph)
    built = time.perf_counter()
    compiled_to_build = compile_clock.thread_seconds() - compiled
    seconds = dict((given is None and graph.report.seconds) or {"read": built - started})
    step = "build" if "build" in seconds else "read"
    seconds[step] = max(0.0, seconds[step] - compiled_to_build)
    steps.begin("planning")
    if settings.algorithm == "sssp":
        require_weights(graph)
    question = read_question(graph, settings)
    sample = getattr(question.options, "sources", None)
    numbers, duplicates = chosen_sources(graph, settings, question.pairs, sample)
    epsilon = settings.epsilon
    if sample is None and epsilon is not None:
        say(
            f"{option_text('epsilon', epsilon)} needs all {graph.n_vertices:,} "
            "vertices as sources: the result is exact"
        )
    partitions = None
    if settings.partition_by is not None:
        numbers, partitions = by_partition(graph, settings, numbers)
    check_geometry(graph, settings)
    request = Request.to_answer(question, settings, _at_once(settings, graph, question, numbers))
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
        duplicates=duplicates,
        seconds=seconds,
        partitions=partitions,
        build_limit=_build_limit(settings) if given is None else None,
    )
    del graph  # the plan may move its edges
    _add_hierarchy(settings, prepared, None)
    _add_labels(settings, prepared)
    _make_plan(settings, prepared)
    is_new = _add_hierarchy(settings, prepared, prepared.plan)
    if _prove_labels(settings, prepared) or is_new:
        _make_plan(settings, prepared)
    shape = getattr(prepared.plan, "shape", None)
    prepared.request = replace(prepared.request, shape=shape)
    at_once = _at_once(settings, prepared.graph, question, numbers, shape)
    if at_once > prepared.request.at_once:  # only now is it known that searches end early
        prepared.request = replace(prepared.request, at_once=at_once)
        _make_plan(settings, prepared)
    compiled = compile_clock.thread_seconds() - compiled
    seconds["plan"] = max(0.0, time.perf_counter() - built - (compiled - compiled_to_build))
    seconds["compile"] = compiled
    return prepared


def _start_compiling(settings: Settings) -> None:
    """Compile in threads what a run on a GPU needs, while the edge list is read."""
    if _device(settings) != "cuda":
        return
    from kepler_traverse.api.compile_ahead import compile_ahead

    # An error of the compiler is raised where the kernel is needed, after errors of the input.
    with contextlib.suppress(DeviceError):
        compile_ahead(
            settings.algorithm,
            result=settings.result if settings.kind.takes_sources else "distances",
            directed=settings.directed,
            weight_type="float64" if settings.weight_type == "float64" else "float32",
            certify=settings.certify != "none",
        )


def chosen_sources(
    graph: Graph,
    settings: Settings,
    pairs: PairTable | None = None,
    sample: np.ndarray | None = None,
) -> tuple[np.ndarray, int]:
    """Return the numbers of the distinct sources in the settings, or of a sample, and how many were
    duplicates.
    """
    if pairs is not None:
        return pairs.sources, 0
    if not settings.kind.takes_sources:
        if not graph.n_vertices:
            raise InputError("the graph has no vertices, so it has no eccentricities")
        return np.zeros(1, np.int64), 0  # nominal: see ExtremesSearch
    if sample is None:
        given = _sources(graph, settings)
    else:
        given = sample
    numbers = given[np.sort(np.unique(given, return_index=True)[1])]
    return numbers, given.size - numbers.size


def estimate_reach(
    graph: Graph, question: Question, shape: Shape | None, depth: int
) -> tuple[int, int]:
    """Return the vertices that a search visits, all unless it is known to end early, and the rows
    per source.
    """
    if question.kind.of_labels:  # no search visits anything
        rows = question.options.rows_per_source
        return rows, rows
    is_short = shape is not None and shape.is_short
    if shape is not None and is_short:
        visited = math.ceil(shape.reach * graph.n_vertices)
    else:
        visited = graph.n_vertices
    return visited, question.kind.size(question, graph.n_vertices, depth, visited).rows


def _at_once(
    settings: Settings,
    graph: Graph,
    question: Question,
    numbers: np.ndarray,
    shape: Shape | None = None,
) -> int:
    """Estimate the number of sources per part, which is the number that a worker gets at once."""
    if question.kind.one_search:
        return numbers.size
    if settings.batch_size != "auto":
        return min(settings.batch_size, numbers.size)
    visited, rows = estimate_reach(graph, question, shape, depth=1)
    return min(sources_per_part(visited, rows, graph.device), numbers.size)


def plan_for_one_process(settings: Settings, prepared: Prepared) -> None:
    """Plan again if the plan is for the threads of one of several workers, and this process takes
    the place of all.
    """
    if prepared.threads not in (0, CPU_COUNT):
        started = time.perf_counter()
        compiled = compile_clock.thread_seconds()
        del prepared.plan  # its memory is free for the new one
        _make_plan(settings, prepared, CPU_COUNT)
        compiled = compile_clock.thread_seconds() - compiled
        prepared.seconds["compile"] += compiled
        prepared.seconds["plan"] += max(0.0, time.perf_counter() - started - compiled)


def _make_plan(settings: Settings, prepared: Prepared, threads: int | None = None) -> None:
    """Plan with a number of threads, by default those of a worker.

    Where a GPU does not hold the graph and the arrays of its searches, its edges move to host
    memory.
    """
    try:
        _plan_where_edges_are(settings, prepared, threads)
        return
    except CapacityError:
        if not may_stream(settings, prepared.graph):
            raise
    stream_edges(settings, prepared)


def may_stream(settings: Settings, graph: Graph | None = None) -> bool:
    """Whether the edges of a graph, or of any, may move from a GPU to host memory for a run."""
    if settings.algorithm != "bfs" or _device(settings) != "cuda":
        return False
    if graph is not None and graph.derived.edges_on_host:
        return False
    return settings.strategy == "auto" or _is_streaming(settings.strategy)


def _is_streaming(strategy: str) -> bool:
    return any(each.edges == "host" and each.is_called(strategy) for each in MULTI_SOURCE)


def stream_edges(settings: Settings, prepared: Prepared) -> None:
    """Move the edges of a graph to host memory, and plan again."""
    say(
        f"the edges stay in host memory ({in_units(prepared.graph.nbytes)}), because the GPU does not "
        "hold them and the arrays of the searches"
    )
    prepared.graph = prepared.graph.to("cuda", edges="host")
    prepared.request = replace(prepared.request, edges="host", memory=None)
    gc.collect()
    cuda.cp.get_default_memory_pool().free_all_blocks()
    _plan_where_edges_are(settings, prepared, None)


def _plan_where_edges_are(settings: Settings, prepared: Prepared, threads: int | None) -> None:
    graph = prepared.graph
    n_sources = prepared.n_sources
    with (
        _threads_of_a_worker(settings, graph, n_sources)
        if threads is None
        else with_threads(threads)
    ):
        if graph.device == "cuda":
            prepared.threads = 0
        else:
            prepared.threads = numba.get_num_threads()
        prepared.request, prepared.plan = _planned_in_share(
            settings, graph, prepared.request, n_sources
        )


def _planned_in_share(
    settings: Settings, graph: Graph, request: Request, n_sources: int
) -> tuple[Request, Plan]:
    """Plan within a worker's share of memory: on a CPU half of the free memory is for plans, the
    rest for all else.
    """
    if graph.device == "cuda":
        more = _beyond_a_part(settings, graph, request, n_sources)
        if more is not None:
            return more
        if settings.gpu_memory is not None:
            held = graph.derived.nbytes_on_device + bytes_of_ids(graph)
            spare = settings.gpu_memory - held
            if spare <= 0:
                raise CapacityError(
                    f"the graph takes {in_units(held)} on each GPU, and --gpu-memory leaves "
                    f"{in_units(settings.gpu_memory)}; take a smaller graph or a larger limit"
                )
            request = replace(request, memory=spare)
        plan = plan_for(graph, request)
        # So that a worker makes the same plan: memory in its pool does not count as free.
        return replace(request, memory=plan.nbytes), plan
    spare = available_memory("cpu") // 2
    if settings.workers == "auto":
        workers = CPU_COUNT
    else:
        workers = max(settings.workers, 1)
    request = replace(request, memory=spare // workers)
    try:
        return request, plan_for(graph, request)
    except InputError as error:
        if settings.workers != "auto":
            if isinstance(error, CapacityError):
                raise CapacityError(f"--workers {settings.workers}: {error}") from None
            raise
        request = replace(request, memory=spare)  # then the run gets fewer workers: see memory_plan
        return request, plan_for(graph, request)


@contextlib.contextmanager
def with_threads(count: int) -> Iterator[None]:
    """Set the number of Numba threads, so that plans and estimates are those of a worker with as
    many.
    """
    before = numba.get_num_threads()
    numba.set_num_threads(max(1, min(count, numba.config.NUMBA_NUM_THREADS)))
    try:
        yield
    finally:
        numba.set_num_threads(before)


def _threads_of_a_worker(
    settings: Settings, graph: Graph, n_sources: int
) -> AbstractContextManager[None]:
    """Return a context with the threads of a worker of an own cluster, assuming memory for all
    workers.
    """
    if graph.device == "cuda" or settings.scheduler:
        return contextlib.nullcontext()
    if settings.workers == "auto":
        workers = min(CPU_COUNT, n_sources)
    else:
        workers = settings.workers
    if settings.kind.one_search:
        workers = 1
    return with_threads(CPU_COUNT // max(workers, 1))


def bytes_of_ids(graph: Graph) -> int:
    """Return the bytes of the user's ids, numbers or strings."""
    ids: Any = graph.ids
    return ids.nbytes


def _beyond_a_part(
    settings: Settings, graph: Graph, request: Request, n_sources: int
) -> tuple[Request, Plan] | None:
    """Plan groups that span several parts, if parts are written in the background and a quarter of
    free memory suffices.
    """
    at_once = min(DISTANCES_AT_ONCE // max(graph.n_vertices, 1), n_sources)
    whole = request.targets is None and request.kind.has_all_vertices
    writes_in_background = (
        whole
        and not settings.scheduler
        and can_write_in_background(request.at_once, graph.n_vertices, request.options.sort)
    )
    if not writes_in_background or at_once <= request.at_once:
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
        return (replace(wider, memory=plan.nbytes), plan)
    return None


def _add_hierarchy(settings: Settings, prepared: Prepared, plan: Plan | None) -> bool:
    """Build the hierarchy of a graph if the settings want it, and store it with the graph. Return
    whether it is new.

    "auto" decides by the estimates of a plan without a hierarchy; None before there is one. Raises
    HierarchyError: the settings ask for a hierarchy, and the graph has none.
    """
    graph = prepared.graph
    n_sources = prepared.n_sources
    folder = prepared.folder
    metric = ALGORITHMS[settings.algorithm].metric
    if settings.plan or graph.derived.known_hierarchy(metric) is not None:
        return False
    if plan is None:
        if settings.hierarchy != "yes":
            return False
    else:
        if (
            settings.hierarchy != "auto"
            or settings.strategy != "auto"
            or not isinstance(plan, MultiSourcePlan)
        ):
            return False
        estimate = plan.estimate_hierarchy()
        if estimate is None or not estimate.is_worth_it(n_sources):
            return False
        say(f"building a hierarchy: {estimate}, and {n_sources:,} are given")
    try:
        hierarchy = graph.hierarchy(metric)
    except HierarchyError as error:
        if plan is None:
            raise
        say(str(error))
        return False
    say(repr(hierarchy))
    if folder is not None:
        _store_hierarchy(settings, prepared, metric)
    return True


def _store_hierarchy(settings: Settings, prepared: Prepared, metric: str) -> None:
    """Store the hierarchy of a graph in the folder of the graph, and in its cache."""
    folder = prepared.folder
    assert folder is not None
    graph = prepared.graph
    with writing_to(folder):
        save_hierarchy(graph.hierarchy(metric), folder, graph.fingerprint, metric)
    if settings.graph_cache is not None and URL.match(settings.graph_cache):
        put_graph(settings.graph_cache, folder, prepared.origin, FOLDERS[metric])


def _add_labels(settings: Settings, prepared: Prepared) -> None:
    """Build and prove the labels of a run that writes them, and store them with the graph."""
    request = prepared.request
    if settings.plan or not request.kind.of_labels:
        return
    say(f"building labels: {request.options.estimate}")
    labels = proved_labels(prepared.graph, request)
    say(repr(labels))
    folder = prepared.folder
    if folder is None or has_labels(folder, labels.metric):
        return
    _store_hierarchy(settings, prepared, labels.metric)  # without which labels are of no use
    with writing_to(folder):
        save_labels(labels, folder, prepared.graph.fingerprint)
    if settings.graph_cache is not None and URL.match(settings.graph_cache):
        stored = LABEL_FOLDERS[labels.metric]
        put_graph(settings.graph_cache, folder, prepared.origin, stored)


def _graph_where_it_fits(
    settings: Settings, origin: str, stored: Path | None, given: Graph | None
) -> tuple[Graph, Path | None, bool]:
    """Return what ``_graph`` does. The edges of a graph that the GPU does not hold are in host
    memory.
    """
    streams = may_stream(settings)
    if given is not None and given.derived.edges_on_host and streams:
        return given, None, False
    if not _is_streaming(settings.strategy):
        try:
            return _graph(settings, origin, stored, given)
        except MemoryError:
            if not streams:
                raise
    if not streams:
        return _graph(settings, origin, stored, given)  # planning says what is wrong
    cuda.cp.get_default_memory_pool().free_all_blocks()
    graph, folder, reused = _graph(replace(settings, device="cpu"), origin, stored, given)
    return graph.to("cuda", edges="host"), folder, reused


def _prove_labels(settings: Settings, prepared: Prepared) -> bool:
    """Prove the labels that a graph has, if they answer all pairs, and certificates of searches
    would take longer. Return whether they answer.
    """
    request = prepared.request
    graph = prepared.graph
    plan = prepared.plan
    may_answer = request.certify != "none" and settings.strategy == "auto"
    if not (may_answer and answers_all_pairs(graph, request)):
        return False
    assert isinstance(plan, MultiSourcePlan)
    # A certificate takes about as long as a search.
    searching = 2 * plan.ranked(prepared.n_sources)[0].seconds
    if proof_seconds(request, graph) > searching:
        return False
    if not settings.plan:
        say("proving the labels of the graph, which answer all pairs")
        proved_labels(graph, request)
    prepared.request = replace(request, is_proved_by_labels=True)
    return True


def _graph(
    settings: Settings, origin: str, stored: Path | None, given: Graph | None = None
) -> tuple[Graph, Path | None, bool]:
    """Return the graph, the folder where it is already stored, and whether it was loaded from
    there.
    """

    def read() -> Graph:
        if given is None:
            return read_edge_list(settings)
        return given.to(_device(settings))

    if settings.graph_cache is not None:
        if not origin:
            say(
                "--graph-cache is not used: only an edge list of local files, or "
                "in a store, can be recognised later"
            )
        elif settings.plan:
            graph = found_graph(settings.graph_cache, origin, _device(settings), say)
            return (graph or read()), None, graph is not None
        else:
            return cached_graph(settings.graph_cache, origin, _device(settings), read, say)
    if stored is not None and origin and stored_origin(stored) == origin:
        # InputError: the graph is half-written, as after a crash of the machine. It is built again.
        with contextlib.suppress(InputError):
            return load_graph(stored, _device(settings)), stored, True
    return read(), None, False


def _device(settings: Settings) -> str:
    if settings.device != "auto":
        return settings.device
    return "cuda" if cuda.available() else "cpu"


def read_edge_list(settings: Settings) -> Graph:
    """Read the edge list and build the graph, with edges in files of the graph cache if memory is
    short.

    Raises OutputError (there is no room for these files) or InputError (as ``read_graph``).
    """
    if settings.device == "cuda":
        cuda.require()
    in_files: dict[str, Any] = {}
    limit = _build_limit(settings)
    if settings.graph_cache is not None and limit is not None:
        cache = local_cache(settings.graph_cache)
        # With --plan it need not be there, nor where an output is verified; the files have no
        # names.
        folder = next(path for path in (cache, *cache.parents) if os.path.isdir(path))
        if os.access(folder, os.W_OK):
            in_files = {"scratch": folder, "build_memory": limit}
        else:
            in_files = {}
    try:
        with without_warnings():  # the job says these itself, also of a stored graph
            options = read_options(settings)
            ids = {name: ids_given(options[name]) for name in FILES_OF_IDS}
            return read_graph(
                settings.edges, device=settings.device, **{**options, **ids}, **in_files
            )
    except OSError as error:
        if not in_files:
            raise
        raise OutputError(
            f"{in_files['scratch']}: the graph cannot be built there: {error.strerror or error}"
        ) from None


def _build_limit(settings: Settings) -> int | None:
    """Return the bytes in which a graph is read and built, beyond which it is in files; None if it
    is in memory anyway.
    """
    if not has_effect("build_memory", settings):
        return None
    return settings.build_memory or min(available_memory("cpu"), MEMORY_LIMIT)


def origin_of_graph(graph: Graph) -> str:
    """Return a digest of a graph that is in memory already, as ``digest_inputs`` returns one of
    files.
    """
    rows = [] if graph.edge_rows is None else ["edge_rows"]
    return hashlib.sha256(
        json.dumps([FORMAT, "graph", graph.fingerprint, *rows]).encode()
    ).hexdigest()


def digest_inputs(settings: Settings) -> str:
    """Return a digest of the inputs of a graph; ``""`` if some inputs are neither plain local files
    nor objects of a store.

    It covers each file's absolute path, size, and modification times, the options of reading, and
    the format of stored graphs. The modification times are those of the content and of the inode;
    tools that set the former cannot set the latter. Contents are not read: that would take as long
    as reading the edge list, which the digest avoids. Of an object it covers URL, size and version.
    """
    files: list[tuple[object, ...]] = []
    for path in (
        *settings.edges,
        *filter(None, (getattr(settings, name) for name in FILES_OF_IDS)),
    ):
        if URL.match(path):
            try:
                files += stored_objects(path)
            except (OSError, InputError):
                return ""  # the error is raised when the file is read
            continue
        if os.path.exists(path):
            paths = [path]
        else:
            paths = sorted(glob.glob(path, recursive=True))
        for name in paths:
            if os.path.isfile(name):
                inside = [name]
            else:
                inside = sorted(str(p) for p in Path(name).rglob("*") if p.is_file())
            for file in inside:
                facts = os.stat(file)
                files.append(
                    (os.path.abspath(file), facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
                )
        if not paths:
            return ""  # as above
    return hashlib.sha256(
        json.dumps([FORMAT, files, read_options(settings)], sort_keys=True).encode()
    ).hexdigest()


def _sources(graph: Graph, settings: Settings) -> np.ndarray:
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
    """Draw distinct vertices that have an outgoing edge; a seed gives the same vertices on every
    machine and device.
    """
    candidates = np.flatnonzero(to_host(graph.derived.degrees))
    if count > candidates.size:
        raise InputError(
            f"{count} random sources are asked for, and {candidates.size} "
            "vertices have an outgoing edge; take fewer"
        )
    return np.random.default_rng(seed).choice(candidates, count, replace=False)
