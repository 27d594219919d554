"""BFS of which nothing returns to the host: a cluster of blocks begins, the grid goes on. See cluster.cu, persistent.cu."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..cuda import cp
from ..cuda.csr import degree_statistics
from ..cuda.entry import Entry, arguments
from ..cuda.launch import blocks_at_once, largest_cluster, prepare
from ..cuda.loader import kernel
from ..cuda.trace import TracedSearch, words
from ..strategy import Outcome
from . import params

_KERNELS = Path(__file__).parent / "kernels"
_SHORTEST_PIECE = min(length for length, _ in params.PIECES.values())
_CLUSTER = Entry(
    "bfs_cluster",
    _KERNELS / "cluster.cu",
    params.CLUSTER_BLOCK,
    arguments(
        "offset_t* offsets",
        "vertex_t* targets",
        "vertex_t source",
        "int32 last_level",
        "int64*? wanted",
        "int64 n_wanted",
        "uint64*? packed",
        "vertex_t* queue",
        "uint64* pieces",
        "int64* counts",
        "uint32* arrived",
        "int32* distance",
        "int64*? trace",
    ),
    constants=(
        ("TRACE", 0),
        ("PREDECESSORS", 1),
        ("CHUNK", _SHORTEST_PIECE),
        ("ROOM", params.CLUSTER_ROOM),
        ("BATCH_EDGES", params.BATCH_EDGES),
        ("CLUSTER", 1),
    ),
)
_GRID = Entry(
    "bfs_persistent",
    _KERNELS / "persistent.cu",
    params.PERSISTENT_BLOCK,
    arguments(
        "offset_t* offsets",
        "vertex_t* targets",
        "offset_t*? in_offsets",
        "vertex_t*? in_targets",
        "int64 n_vertices",
        "int64 n_edges",
        "int32 last_level",
        "int64*? wanted",
        "int64 n_wanted",
        "uint64*? packed",
        "vertex_t* queue",
        "uint64* pieces",
        "uint32* bitmaps",
        "int64* counts",
        "uint32* arrived",
        "int32* distance",
        "vertex_t*? predecessor",
        "int64* outcome",
        "int64*? trace",
    ),
    is_cooperative=True,
    constants=(
        ("TRACE", 0),
        ("PREDECESSORS", 1),
        ("CHUNK", _SHORTEST_PIECE),
        ("PIECE_WARPS", 0),
        ("SHARED_ROWS", 0),
        ("AHEAD", params.AHEAD),
        ("CLEANS_UP", params.CLEANS_UP),
        ("MIN_BLOCKS", params.MIN_BLOCKS),
        ("PATIENCE", params.PATIENCE),
        ("ALPHA", params.PULL_ABOVE),
        ("BETA", params.PUSH_BELOW),
    ),
)
ENTRIES = (_CLUSTER, _GRID)
_N_COUNTS = 6  # in each of three turns


def plan(graph, query) -> TracedSearch:
    """Allocate and compile; the search that is returned keeps the trace of its last call."""
    n, m, index = graph.n_vertices, graph.n_edges, graph.targets.dtype
    incoming = graph.reverse if _can_pull(graph) else None
    begins, goes_on = entries_for(graph, query)
    constants = dict(goes_on.constants)
    cluster, grid = kernel(begins, index), kernel(goes_on, index)
    clusters = dict(begins.constants)["CLUSTER"]
    distance = cp.empty(n, np.int32)
    predecessor = cp.empty(n, index) if query.predecessors else None
    packed = cp.empty(n, np.uint64) if query.predecessors else None
    # Until the last pass, after which nothing is queued, the queue lies where predecessors come to lie.
    queue = cp.empty(n, index) if predecessor is None else predecessor
    # A row of CHUNK edges or more has one piece more than it fills, at most.
    pieces = cp.empty(2 * m // constants["CHUNK"] + 1, np.uint64)
    bitmaps = cp.empty(3 * (-(-n // 32)), np.uint32)
    counts = cp.zeros(3 * _N_COUNTS, np.int64)
    arrived = cp.zeros(1, np.uint32)
    outcome = cp.zeros(2, np.int64)
    on_host = np.frombuffer(cp.cuda.alloc_pinned_memory(outcome.nbytes), np.int64, 2)
    trace = cp.zeros(words(constants["TRACE"]), np.int64) if constants["TRACE"] else None
    wanted = None if query.targets is None else cp.asarray(query.targets, np.int64)
    # No path has as many hops as there are vertices.
    last_level = np.int32(n if query.limit is None else min(query.limit, n))
    claims = distance if packed is None else packed
    ends = (last_level, wanted, np.int64(0 if wanted is None else wanted.size))
    state = (packed, queue, pieces)
    reverse = (None, None) if incoming is None else (incoming.offsets, incoming.targets)
    rows = (graph.offsets, graph.targets)
    sizes = (np.int64(n), np.int64(m))
    begin = prepare(cluster, clusters, (*rows, index.type(0), *ends, *state, counts, arrived, distance, trace))
    results = (distance, predecessor, outcome, trace)
    go_on = prepare(grid, blocks_at_once(grid), (*rows, *reverse, *sizes, *ends, *state, bitmaps, counts, arrived, *results))
    is_clean = False

    def traverse(source: int) -> Outcome:
        nonlocal is_clean
        if not is_clean:
            claims.data.memset_async(0xFF, claims.nbytes)  # all bits: no claim
        is_clean = False  # if this call is interrupted, the next one clears
        begin(source=index.type(source))
        go_on()
        outcome.get(out=on_host)
        is_clean = packed is not None and constants["CLEANS_UP"] == 1
        levels, is_stopped = on_host.tolist()
        return Outcome(distance, predecessor, levels if is_stopped else query.limit, levels)

    return TracedSearch(traverse, trace)


def entries_for(graph, query) -> tuple[Entry, Entry]:
    """The kernels of cluster and grid with the constants for a graph."""
    tuning = query.tuning or params.Tuning()
    _, _, largest = degree_statistics(graph.offsets)
    piece, warps = params.PIECES["pull" if _can_pull(graph) else "push"]
    shared = {"PREDECESSORS": int(query.predecessors), "TRACE": tuning.trace, "CHUNK": piece}
    # Without clusters the first levels are one block's.
    begins = _CLUSTER.variant(**shared, CLUSTER=min(tuning.cluster, largest_cluster()))
    return begins, _GRID.variant(**shared, PIECE_WARPS=warps, SHARED_ROWS=int(largest >= tuning.long_row))


def _can_pull(graph) -> bool:
    """Whether a reverse is at hand: without one its making would cost more than pulling gains."""
    return not graph.directed or "reverse" in vars(graph)


def memory(n_vertices: int, n_edges: int, predecessors: bool) -> int:
    """Bytes of a run: distance, predecessor or queue, claims, pieces of long rows, three bitmaps."""
    return n_vertices * (4 + 4 + 8 * predecessors) + 16 * n_edges // _SHORTEST_PIECE + 8 + 12 * (n_vertices // 32 + 1)
