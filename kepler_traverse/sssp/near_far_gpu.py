"""SSSP in one launch: near and far piles, split by thresholds that the device chooses itself. See near_far.cu."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .._arrays import iter_slices
from ..cuda import cp
from ..cuda.csr_build import degree_statistics
from ..cuda.kernel_spec import Entry, struct_arguments, struct_layout
from ..cuda.kernel_trace import TracedSearch, words
from ..cuda.launch import blocks_at_once, prepare
from ..strategy import Outcome
from . import gpu_steps
from . import tuning as sssp_tuning

_FILE = Path(__file__).parent / "kernels" / "near_far" / "near_far.cu"
_STATE_FILE = _FILE.with_name("near_far_state.cuh")
_ENTRY = Entry(
    "sssp_near_far",
    _FILE,
    sssp_tuning.WORKERS["short rows"][0],
    struct_arguments(_FILE, "NearFarArgs"),
    is_cooperative=True,
    constants=(
        ("TRACE", 0),
        ("PREDECESSORS", 0),
        ("CLEANS_UP", sssp_tuning.CLEANS_UP),
        ("CHUNK", sssp_tuning.PIECE),
        ("SMALL", sssp_tuning.SMALL_FRONTIER),
        ("SMALL_EDGES", sssp_tuning.SMALL_EDGES),
        ("SMALL_FAR", sssp_tuning.SMALL_FAR),
        ("LOCAL_ROUND_EDGES", sssp_tuning.LOCAL_ROUND_EDGES),
        ("LOCAL_ROUND_DEGREE", sssp_tuning.LOCAL_ROUND_DEGREE),
        ("CHUNK_WARPS", sssp_tuning.PIECE_WARPS),
        ("SHARED_LISTS", 0),
        ("UNROLL", 1),
        ("MIN_BLOCKS", 0),
        ("EDGES_PER_LANE", sssp_tuning.EDGES_PER_LANE),
        ("LOCAL", sssp_tuning.WIDE_IMPROVED_CAPACITY),
        ("LIGHT", sssp_tuning.LIGHT_STEP),
        ("WARM_UP", sssp_tuning.WARM_UP),
        ("TAIL", 0),
    ),
)
ENTRIES = (_ENTRY,)

_NO_LABEL = np.uint64(0x7F800000_FFFFFFFF)  # infinite, without a predecessor: packed_distance.cuh
_MAX_STEPS = 1 << 30  # since the marks were last cleared


def plan(graph, query) -> TracedSearch:
    """Allocate and compile; the search that is returned keeps the trace of its last call."""
    entry = entry_for(graph, query.predecessors, query.tuning_of(sssp_tuning.Tuning))
    constants = dict(entry.constants)
    run, arrays = _allocate(graph, query, entry)
    of_search = struct_layout(_FILE, "Outcome")
    outcome = cp.zeros(of_search.itemsize // 8, np.int64)
    on_host = np.frombuffer(cp.cuda.alloc_pinned_memory(outcome.nbytes), np.int64, outcome.size)
    trace = cp.zeros(words(constants["TRACE"]), np.int64) if constants["TRACE"] else None
    target_vertices = None if query.targets is None else cp.asarray(query.targets, np.int64)
    arrived = cp.zeros(1, np.uint32)
    is_short = _has_short_rows(graph)
    edges_per_width = sssp_tuning.EDGES_PER_WIDTH if is_short else sssp_tuning.LONG_ROWS_PER_WIDTH
    offsets, targets, weights = run.edges
    args = {
        "offsets": offsets,
        "targets": targets,
        "weights": weights,
        "n_vertices": run.n_vertices,
        "limit": run.limit,
        "width": first_width(graph, query.targets is not None, edges_per_width),
        "target_vertices": target_vertices,
        "n_target_vertices": np.int64(0 if target_vertices is None else target_vertices.size),
        "n_local_rounds": np.int32(hops_for(graph)),
        # Each traversal has its own.
        "source": graph.targets.dtype.type(0),
        "first_step": np.int32(0),
        **arrays,
        "arrived": arrived,
        "outcome": outcome,
        "trace": trace,
    }
    search = prepare(run.relax["all"], blocks_at_once(run.relax["all"]), args)
    packed, marks = arrays["packed"], run.queued_in
    first_step = -1  # where what the kernel expects cleared is not

    def traverse(source: int) -> Outcome:
        nonlocal first_step
        if not constants["CLEANS_UP"]:
            first_step = 0  # it clears all itself
        elif first_step < 0 or first_step > _MAX_STEPS:
            marks.data.memset_async(0xFF, marks.nbytes)  # -1: before all steps
            if packed is not None:
                packed.fill(_NO_LABEL)
            first_step = 0
        begun, first_step = first_step, -1  # if this call is interrupted, the next one clears
        arrived.data.memset_async(0, arrived.nbytes)
        search(source=graph.targets.dtype.type(source), first_step=np.int32(begun))
        outcome.get(out=on_host)
        found = on_host.view(of_search)[0]
        last_step, n_open = int(found["last_step"]), int(found["n_open"])
        run.finish(source, n_open if constants["PREDECESSORS"] else None)
        if run.predecessor is None or (constants["PREDECESSORS"] and n_open == 0):
            first_step = last_step + 1  # else the marks have served to find predecessors
        keys = np.array([found["limit"], found["threshold"]], run.keys.dtype)
        settled, threshold = keys.view(run.distance.dtype).tolist()
        reached_limit, below = (settled, None) if found["is_settled"] else (query.limit, threshold)
        return Outcome(run.distance, run.predecessor, reached_limit, last_step - begun, below=below)

    return TracedSearch(traverse, trace)


def entry_for(graph, predecessors: bool, tuning: sssp_tuning.Tuning) -> Entry:
    """The kernel with the constants for a graph."""
    is_narrow = graph.weights.dtype.itemsize + graph.targets.dtype.itemsize == 8
    inside = predecessors and tuning.predecessors_inside and is_narrow
    _, _, largest = degree_statistics(graph.offsets)
    has_long_rows = largest >= sssp_tuning.UNEVEN
    block, at_least, ahead = sssp_tuning.WORKERS["long rows" if has_long_rows else "short rows"]
    return _ENTRY.variant(
        block=block,
        MIN_BLOCKS=at_least,
        UNROLL=ahead,
        PREDECESSORS=int(inside),
        TRACE=tuning.trace,
        SHARED_LISTS=int(has_long_rows),
        TAIL=0 if _has_short_rows(graph) else sssp_tuning.TAIL_EDGES,
        # More would not fit the shared memory that a block has without asking.
        LOCAL=sssp_tuning.IMPROVED_CAPACITY if is_narrow else sssp_tuning.WIDE_IMPROVED_CAPACITY,
    )


def hops_for(graph) -> int:
    """Hops that each block takes alone between two barriers of the grid."""
    return sssp_tuning.ROAD_LOCAL_ROUNDS if _has_short_rows(graph) else sssp_tuning.LOCAL_ROUNDS


def _has_short_rows(graph) -> bool:
    return graph.n_edges <= sssp_tuning.SHORT_ROWS * graph.n_vertices


def _allocate(graph, query, entry: Entry) -> tuple[gpu_steps.Run, dict]:
    """The state of a run, and the kernel's arguments that it holds, by name."""
    n, m, index = graph.n_vertices, graph.n_edges, graph.targets.dtype
    constants = dict(entry.constants)
    piles, packed, results = cp.empty(2 * n, index), None, {}
    if constants["PREDECESSORS"]:
        packed = cp.empty(n, np.uint64)
        # Until the last pass, after which nothing is far, the piles lie where the results come to lie.
        results = {"distance": piles[:n].view(graph.weights.dtype), "predecessor": piles[n:]}
    run = gpu_steps.Run(graph, query, {"all": entry}, **results)
    # A row of CHUNK edges or more has one piece more than it fills, at most; and one turn's are read while another's come.
    chunk_capacity = 2 * m // constants["CHUNK"] + 1
    return run, {
        "packed": packed,
        "keys": run.keys,
        "predecessor": run.predecessor,
        "last_queued": run.queued_in,
        "queue": run.frontier.queue,
        "next_queue": run.frontier.next,
        "piles": piles,
        "chunks": cp.empty(2 * chunk_capacity, np.uint64),
        "chunk_capacity": np.int64(chunk_capacity),
        "states": cp.zeros(3 * struct_layout(_STATE_FILE, "LoopState").itemsize // 8, np.int64),
    }


def first_width(graph, may_stop: bool = False, edges: float = sssp_tuning.EDGES_PER_WIDTH):
    """Distance between the first two thresholds.

    So wide that a vertex has ``edges`` edges shorter than that, if weights are even, but no less than the
    lightest edge: narrower piles would spare no work. With equal weights no vertex is lowered twice, so that all are near,
    as in a BFS; unless the search may stop, which it does between piles.
    """
    weights, real = graph.weights, graph.weights.dtype
    if not graph.n_edges:
        return real.type(0)
    with np.errstate(over="ignore"):  # of weights near the largest number: all are near then
        found = [
            (float(part.min()), float(part.max()), float(part.sum(dtype=np.float64))) for _, part in iter_slices(weights)
        ]
        lightest, heaviest = min(low for low, _, _ in found), max(high for _, high, _ in found)
        if lightest == heaviest and not may_stop:
            return real.type(np.inf)
        mean = sum(total for *_, total in found) / weights.size
        return real.type(max(edges * mean * graph.n_vertices / graph.n_edges, lightest))


def memory(n_vertices: int, n_edges: int, predecessors: bool) -> int:
    """Bytes of a run at most: float64 distances, predecessor, marks, two queues, two piles, pieces of long rows."""
    index = 4 if n_vertices < 2**31 else 8
    return n_vertices * (8 + 4 + index * (4 + predecessors)) + 32 * n_edges // sssp_tuning.PIECE + 16
