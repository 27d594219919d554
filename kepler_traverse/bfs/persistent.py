"""BFS of which nothing returns to the host: a cluster of blocks begins, the grid goes on. See cluster.cu, persistent.cu."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..cuda import cp
from ..cuda.entry import Entry, arguments
from ..cuda.launch import blocks_at_once, largest_cluster, prepare
from ..cuda.loader import kernel
from ..strategy import Outcome
from . import params

_KERNELS = Path(__file__).parent / "kernels"
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
    ),
    constants=(
        ("PREDECESSORS", 1),
        ("CHUNK", params.PIECE),
        ("ROOM", params.CLUSTER_ROOM),
        ("BATCH_EDGES", params.BATCH_EDGES),
        ("CLUSTER", 1),
        ("HOPS", 1),
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
    ),
    is_cooperative=True,
    constants=(
        ("PREDECESSORS", 1),
        ("CHUNK", params.PIECE),
        ("PATIENCE", params.PATIENCE),
        ("ALPHA", params.PULL_ABOVE),
        ("BETA", params.PUSH_BELOW),
    ),
)
ENTRIES = (_CLUSTER, _GRID)
_N_COUNTS = 6  # in each of three turns


def plan(graph, query):
    """Allocate and compile; return ``traverse(source)``."""
    n, m, index = graph.n_vertices, graph.n_edges, graph.targets.dtype
    has_predecessors = int(query.predecessors)
    # Without clusters the first levels are one block's.
    clusters = min(params.CLUSTER, largest_cluster())
    # Two levels a barrier where most rows are short; not where it has to stop at the very level of a target.
    hops = 2 if m <= params.TWO_HOPS_BELOW * n and query.targets is None else 1
    cluster = kernel(_CLUSTER.variant(PREDECESSORS=has_predecessors, CLUSTER=clusters, HOPS=hops), index)
    grid = kernel(_GRID.variant(PREDECESSORS=has_predecessors), index)
    # Without a reverse at hand its making would cost more than pulling gains.
    incoming = graph.reverse if not graph.directed or "reverse" in vars(graph) else None
    distance = cp.empty(n, np.int32)
    predecessor = cp.empty(n, index) if query.predecessors else None
    packed = cp.empty(n, np.uint64) if query.predecessors else None
    queue = cp.empty(n, index)
    # A row of CHUNK edges or more has one piece more than it fills, at most.
    pieces = cp.empty(2 * m // dict(_GRID.constants)["CHUNK"] + 1, np.uint64)
    bitmaps = cp.empty(3 * (-(-n // 32)), np.uint32)
    counts = cp.zeros(3 * _N_COUNTS, np.int64)
    arrived = cp.zeros(1, np.uint32)
    outcome = cp.zeros(2, np.int64)
    on_host = np.frombuffer(cp.cuda.alloc_pinned_memory(outcome.nbytes), np.int64, 2)
    wanted = None if query.targets is None else cp.asarray(query.targets, np.int64)
    # No path has as many hops as there are vertices.
    last_level = np.int32(n if query.limit is None else min(query.limit, n))
    claims = distance if packed is None else packed
    ends = (last_level, wanted, np.int64(0 if wanted is None else wanted.size))
    state = (packed, queue, pieces)
    reverse = (None, None) if incoming is None else (incoming.offsets, incoming.targets)
    rows = (graph.offsets, graph.targets)
    sizes = (np.int64(n), np.int64(m))
    begin = prepare(cluster, clusters, (*rows, index.type(0), *ends, *state, counts, arrived, distance))
    results = (distance, predecessor, outcome)
    go_on = prepare(grid, blocks_at_once(grid), (*rows, *reverse, *sizes, *ends, *state, bitmaps, counts, arrived, *results))

    def traverse(source: int) -> Outcome:
        claims.data.memset_async(0xFF, claims.nbytes)  # all bits: no claim
        begin(source=index.type(source))
        go_on()
        outcome.get(out=on_host)
        levels, is_stopped = on_host.tolist()
        return Outcome(distance, predecessor, levels if is_stopped else query.limit, levels)

    return traverse


def memory(n_vertices: int, n_edges: int, predecessors: bool) -> int:
    """Bytes of a run: distance, predecessor, claims, one queue, pieces of long rows, three bitmaps."""
    return n_vertices * (4 + 4 + 12 * predecessors) + 16 * n_edges // params.PIECE + 12 * (n_vertices // 32 + 1)
