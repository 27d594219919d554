"""SSSP in one launch: near and far piles, split by thresholds that the device chooses itself. See
near_far.cu.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .._arrays import iter_slices
from ..cuda import cp, edge_weights
from ..cuda.csr_build import degree_statistics
from ..cuda.kernel_spec import Entry, struct_layout
from ..cuda.kernel_trace import TracedSearch, words
from ..cuda.launch import blocks_at_once, prepare, target_arguments
from ..search.strategy import Outcome, state_bytes
from . import gpu_steps
from . import tuning as sssp_tuning

_FILE = Path(__file__).parent / "kernels" / "near_far" / "near_far.cu"
_STATE_FILE = _FILE.with_name("near_far_state.cuh")
_ENTRY = Entry(
    "sssp_near_far",
    _FILE,
    sssp_tuning.WORKERS["short lists"][0],
    is_cooperative=True,
    constants=(
        ("TRACE", 0),
        ("PREDECESSORS", 0),
        ("CLEANS_UP", sssp_tuning.CLEANS_UP),
        ("CHUNK", sssp_tuning.CHUNK),
        ("SMALL", sssp_tuning.SMALL_FRONTIER),
        ("SMALL_EDGES", sssp_tuning.SMALL_EDGES),
        ("SMALL_FAR", sssp_tuning.SMALL_FAR),
        ("LOCAL_ROUND_EDGES", sssp_tuning.LOCAL_ROUND_EDGES),
        ("LOCAL_ROUND_DEGREE", sssp_tuning.LOCAL_ROUND_DEGREE),
        ("CHUNK_WARPS", sssp_tuning.CHUNK_WARPS),
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
_MAX_STEPS = 1 << 30  # since the stamps were last cleared


def plan(graph, query) -> TracedSearch:
    """Allocate and compile; return the search, which is called with a vertex number.

    ``graph`` is a ``Graph`` on a GPU, and ``query`` a ``Query``, the options of the search. The
    returned search holds the trace of its last call, if ``Tuning.trace`` asks for one.
    """
    entry = entry_for(graph, query.predecessors, query.get_tuning(sssp_tuning.Tuning))
    constants = dict(entry.constants)
    run, arrays = _allocate(graph, query, entry)

    # What the kernel leaves for the host, which reads it in pinned memory.
    outcome_layout = struct_layout(_FILE, "Outcome")
    outcome = cp.zeros(outcome_layout.itemsize // 8, np.int64)
    outcome_on_host = np.frombuffer(
        cp.cuda.alloc_pinned_memory(outcome.nbytes), np.int64, outcome.size
    )

    if constants["TRACE"]:
        trace = cp.zeros(words(constants["TRACE"]), np.int64)  # of so many iterations
    else:
        trace = None

    arrived = cp.zeros(1, np.uint32)  # blocks that have come to a barrier of the grid
    is_short = _has_short_lists(graph)
    if is_short:
        edges_per_width = sssp_tuning.EDGES_PER_WIDTH
    else:
        edges_per_width = sssp_tuning.LONG_LISTS_EDGES_PER_WIDTH

    args = run.arguments() | {
        "width": first_width(graph, query.targets is not None, edges_per_width),
        **target_arguments(query.copy_targets_to_gpu()),  # the targets and their number
        "n_local_rounds": np.int32(local_rounds_for(graph)),
        # Set for each traversal.
        "source": graph.targets.dtype.type(0),
        "first_step": np.int32(0),
        **arrays,
        "arrived": arrived,
        "outcome": outcome,
        "trace": trace,
    }
    # Arguments are packed once. Barriers of the grid need all of its blocks resident at once.
    # ``prepare`` returns a function that launches the kernel, with other values for some arguments.
    search = prepare(run.relax["all"], blocks_at_once(run.relax["all"]), args)
    packed = arrays["packed"]  # per vertex its distance and predecessor in one word, or None
    stamps = run.queued_in  # per vertex the last step that queued it
    first_step = -1  # of the next search; negative: labels and stamps must be cleared before it

    def traverse(source: int) -> Outcome:
        """Search from the vertex number ``source``. Return its ``Outcome``: distances, predecessors
        if they are wanted, and the number of rounds. The arrays are valid until the next call.

        The limit of the outcome is the distance at which the targets stopped the search, or else
        that of the query. Only in the second case ``below`` is set.
        """
        nonlocal first_step
        # With CLEANS_UP the kernel ends by a reset of the labels for the next search. Stamps stay:
        # steps are numbered on from search to search, so that old stamps are of earlier steps.
        # Without it the kernel clears labels and stamps when it begins.
        if not constants["CLEANS_UP"]:
            first_step = 0
        elif first_step < 0 or first_step > _MAX_STEPS:
            stamps.data.memset_async(0xFF, stamps.nbytes)  # -1: before all steps
            if packed is not None:
                packed.fill(_NO_LABEL)
            first_step = 0
        step_before = first_step
        first_step = -1  # if this call is interrupted, the next one clears

        arrived.data.memset_async(0, arrived.nbytes)
        search(source=graph.targets.dtype.type(source), first_step=np.int32(step_before))
        outcome.get(out=outcome_on_host)

        result = outcome_on_host.view(outcome_layout)[0]
        last_step = int(result["last_step"])
        n_open = int(result["n_open"])  # reached vertices without a predecessor
        # None: the kernel has looked for no predecessor, so ``finish`` has to find all.
        run.finish(source, n_open if constants["PREDECESSORS"] else None)
        if run.predecessor is None or (constants["PREDECESSORS"] and n_open == 0):
            first_step = last_step + 1  # otherwise the search for predecessors overwrote the stamps

        # The kernel leaves ``limit`` and ``threshold`` as the bits of distances. A search that has
        # settled its targets is complete up to ``limit``. In any other one no finite distance is
        # beyond the last threshold, which ``Outcome.below`` tells the caller.
        limit_and_threshold = np.array([result["limit"], result["threshold"]], run.keys.dtype)
        settled_limit, threshold = limit_and_threshold.view(run.distance.dtype).tolist()
        if result["is_settled"]:
            result_limit = settled_limit
            below = None
        else:
            result_limit = query.limit
            below = threshold
        return Outcome(
            run.distance, run.predecessor, result_limit, last_step - step_before, below=below
        )

    return TracedSearch(traverse, trace)


def entry_for(graph, predecessors: bool, tuning: sssp_tuning.Tuning) -> Entry:
    """Return the entry of the kernel with the compile-time constants for a graph.

    ``predecessors``: whether they are wanted. The search itself finds them if ``tuning`` says so
    and a distance and a vertex number fit into one word of 64 bits.
    """
    is_narrow = graph.weights.dtype.itemsize + graph.targets.dtype.itemsize == 8
    finds_predecessors = predecessors and tuning.predecessors_inside and is_narrow
    _, _, max_degree = degree_statistics(graph.offsets)
    has_long_lists = max_degree >= sssp_tuning.UNEVEN
    block, min_blocks, unroll = sssp_tuning.WORKERS[
        "long lists" if has_long_lists else "short lists"
    ]
    return _ENTRY.variant(
        block=block,
        MIN_BLOCKS=min_blocks,  # resident per multiprocessor, which bounds their registers
        UNROLL=unroll,
        PREDECESSORS=int(finds_predecessors),
        TRACE=tuning.trace,
        SHARED_LISTS=int(has_long_lists),  # whether lanes share lists, so that none waits
        # Once the far pile shrinks, the width doubles after a pile of fewer edges than this; 0:
        # never.
        TAIL=0 if _has_short_lists(graph) else sssp_tuning.TAIL_EDGES,
        # More would exceed the shared memory that a block has by default.
        LOCAL=sssp_tuning.IMPROVED_CAPACITY if is_narrow else sssp_tuning.WIDE_IMPROVED_CAPACITY,
    )


def local_rounds_for(graph) -> int:
    """Return how many local rounds a block makes between two grid barriers: rounds in which it
    relaxes the vertices that it has improved itself.
    """
    if _has_short_lists(graph):
        return sssp_tuning.ROAD_LOCAL_ROUNDS
    return sssp_tuning.LOCAL_ROUNDS


def _has_short_lists(graph) -> bool:
    """Return whether adjacency lists are short on average, as in road networks and lattices."""
    return graph.n_edges <= sssp_tuning.SHORT_LISTS * graph.n_vertices


def _allocate(graph, query, entry: Entry) -> tuple[gpu_steps.Run, dict[str, Any]]:
    """Return the state of a run, and by name the further arrays that the kernel of ``entry``
    takes. ``packed``, a word per vertex with its distance and predecessor, is None if the kernel
    does not find predecessors.
    """
    n = graph.n_vertices
    m = graph.n_edges
    index = graph.targets.dtype
    constants = dict(entry.constants)
    piles = cp.empty(2 * n, index)
    packed = None
    results = {}
    if constants["PREDECESSORS"]:
        packed = cp.empty(n, np.uint64)
        # The results share memory with the piles, which are not used any more in the last pass.
        results = {"distance": piles[:n].view(graph.weights.dtype), "predecessor": piles[n:]}
    run = gpu_steps.Run(graph, query, {"all": entry}, **results)
    # Chunks of long adjacency lists in one iteration: a list of CHUNK edges or more has at most one
    # chunk that is not full, so fewer than two chunks per CHUNK edges. Two iterations have memory,
    # as one reads what the other writes.
    chunk_capacity = 2 * m // constants["CHUNK"] + 1
    return run, {
        "packed": packed,
        "last_queued": run.queued_in,
        "queue": run.frontier.queue,
        "next_queue": run.frontier.next,
        "piles": piles,
        "chunks": cp.empty(2 * chunk_capacity, np.uint64),
        "chunk_capacity": np.int64(chunk_capacity),
        # three copies of the loop's state: an iteration reads one, writes one and clears one
        "states": cp.zeros(3 * struct_layout(_STATE_FILE, "LoopState").itemsize // 8, np.int64),
    }


def first_width(graph, may_stop: bool = False, edges: float = sssp_tuning.EDGES_PER_WIDTH):
    """Return the width of the first pile, the difference of two thresholds, in the type of the
    weights.

    The width is ``edges`` mean weights, divided by the mean degree. So vertices have about as many
    edges that are shorter in every graph, and the work of a pile does not depend on the degrees. It
    is at least the lightest weight: narrower piles would save no work. If all weights are equal, no
    vertex improves twice. Then the width is infinite, so that all vertices are near, as in a BFS;
    unless ``may_stop``: the search may stop early, which it does between piles.
    """
    weights = graph.weights
    real = graph.weights.dtype
    if not graph.n_edges:
        return real.type(0)
    with np.errstate(over="ignore"):  # with weights near the largest number, all vertices are near
        extents = [(float(part.min()), float(part.max())) for _, part in iter_slices(weights)]
        lightest = min(smallest for smallest, _ in extents)
        heaviest = max(largest for _, largest in extents)
        if lightest == heaviest and not may_stop:
            return real.type(np.inf)
        mean = edge_weights.total(weights) / weights.size
        return real.type(max(edges * mean * graph.n_vertices / graph.n_edges, lightest))


# Float64 distances and predecessor, stamps; two queues, two piles; edge chunks.
memory = state_bytes(8 + 4, numbers=4, edge_bytes=32 / sssp_tuning.CHUNK, once=16)
