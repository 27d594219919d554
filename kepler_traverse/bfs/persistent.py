"""BFS without a return to the host between levels: a cluster of blocks first, and the grid
continues.

See persistent_cluster.cu and persistent_grid.cu.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..cuda import cp
from ..cuda.compiler import Request, kernel, start_compiling
from ..cuda.csr_build import degree_statistics
from ..cuda.kernel_spec import Entry, struct_layout
from ..cuda.kernel_trace import TracedSearch, words
from ..cuda.launch import blocks_at_once, max_cluster, prepare, target_arguments
from ..search.strategy import Outcome
from . import tuning as bfs_tuning

_KERNELS = Path(__file__).parent / "kernels"
_MIN_CHUNK = min(length for length, _ in bfs_tuning.CHUNKS.values())
_CLUSTER = Entry(
    "bfs_cluster",
    _KERNELS / "persistent_cluster.cu",
    bfs_tuning.CLUSTER_BLOCK,
    constants=(
        ("TRACE", 0),
        ("PREDECESSORS", 1),
        ("CHUNK", _MIN_CHUNK),
        ("QUEUE_CAPACITY", bfs_tuning.CLUSTER_QUEUE_CAPACITY),
        ("BATCH_EDGES", bfs_tuning.BATCH_EDGES),
        ("CLUSTER", 1),
    ),
)
_GRID = Entry(
    "bfs_persistent",
    _KERNELS / "persistent_grid.cu",
    bfs_tuning.PERSISTENT_BLOCK,
    is_cooperative=True,
    constants=(
        ("TRACE", 0),
        ("PREDECESSORS", 1),
        ("CHUNK", _MIN_CHUNK),
        ("CHUNK_WARPS", 0),
        ("SHARED_LISTS", 0),
        ("UNROLL", bfs_tuning.UNROLL),
        ("CLEANS_UP", bfs_tuning.CLEANS_UP),
        ("MIN_BLOCKS", bfs_tuning.MIN_BLOCKS),
        ("PATIENCE", bfs_tuning.PATIENCE),
        ("ALPHA", bfs_tuning.PULL_ABOVE),
        ("BETA", bfs_tuning.PUSH_BELOW),
    ),
)
ENTRIES = (_CLUSTER, _GRID)


def plan(graph, query) -> TracedSearch:
    """Allocate and compile; return the search, which is called with a vertex number.

    ``graph`` is a ``Graph`` on a GPU, and ``query`` a ``Query``, the options of the search. The
    returned search holds the trace of its last call, if ``Tuning.trace`` asks for one.
    """
    n = graph.n_vertices
    m = graph.n_edges
    index = graph.targets.dtype
    incoming = graph.reverse if _can_pull(graph) else None
    cluster_entry, grid_entry = entries_for(graph, query)
    constants = dict(grid_entry.constants)
    # Both begin to compile before the first is waited for.
    start_compiling([Request(cluster_entry, index), Request(grid_entry, index)])
    cluster_kernel = kernel(cluster_entry, index)
    grid_kernel = kernel(grid_entry, index)
    n_blocks = dict(cluster_entry.constants)["CLUSTER"]

    # The state of a search. ``packed`` has a word per vertex, its distance in the upper half and
    # its predecessor in the lower.
    distance = cp.empty(n, np.int32)
    if query.predecessors:
        predecessor = cp.empty(n, index)
        packed = cp.empty(n, np.uint64)
        # The queue shares memory with the predecessors: only the last pass writes these, and
        # nothing is queued after it.
        queue = predecessor
    else:
        predecessor = None
        packed = None
        queue = cp.empty(n, index)
    # Memory for the edge chunks of a frontier. Lists of CHUNK edges or more are cut into chunks, of
    # which the last may be partial: so a list has fewer than twice as many as it would fill.
    chunks = cp.empty(2 * m // constants["CHUNK"] + 1, np.uint64)
    # three bitmaps of the vertices: visited, frontier and next frontier
    bitmaps = cp.empty(3 * (-(-n // 32)), np.uint32)
    # Three copies of the loop's state: an iteration reads one, writes one and clears one.
    states = cp.zeros(
        3 * struct_layout(_KERNELS / "bfs_persistent_state.cuh", "LoopState").itemsize // 8,
        np.int64,
    )

    arrived = cp.zeros(1, np.uint32)  # blocks that have come to a barrier of the grid
    # What the kernels report: the number of levels, and whether the search was stopped. The host
    # reads it in pinned memory.
    outcome_layout = struct_layout(_GRID.file, "Outcome")
    outcome = cp.zeros(outcome_layout.itemsize // 8, np.int64)
    outcome_on_host = np.frombuffer(
        cp.cuda.alloc_pinned_memory(outcome.nbytes), np.int64, outcome.size
    )
    if constants["TRACE"]:
        trace = cp.zeros(words(constants["TRACE"]), np.int64)  # of so many iterations
    else:
        trace = None

    # Every shortest path has fewer hops than the graph has vertices.
    last_level = np.int32(n if query.limit is None else min(query.limit, n))
    # The array in which the kernels claim vertices: with predecessors, a claim holds both the
    # distance and the predecessor in one word.
    claims = distance if packed is None else packed
    shared_args = {
        "offsets": graph.offsets,
        "targets": graph.targets,
        "last_level": last_level,
        **target_arguments(query.copy_targets_to_gpu()),  # the targets and their number
        "packed": packed,
        "queue": queue,
        "chunks": chunks,
        "states": states,
        "arrived": arrived,
        "distance": distance,
        "trace": trace,
    }
    # Arguments are packed once. Each traversal sets its source.
    # ``prepare`` returns a function that launches the kernel, with other values for some arguments.
    run_cluster = prepare(cluster_kernel, n_blocks, {**shared_args, "source": index.type(0)})
    grid_args = {
        "in_offsets": None if incoming is None else incoming.offsets,
        "in_targets": None if incoming is None else incoming.targets,
        "n_vertices": np.int64(n),
        "n_edges": np.int64(m),
        "bitmaps": bitmaps,
        "predecessor": predecessor,
        "outcome": outcome,
    }
    # Barriers of the grid need all of its blocks resident at once.
    run_grid = prepare(grid_kernel, blocks_at_once(grid_kernel), {**shared_args, **grid_args})
    is_clean = False  # whether the last search has cleared the claims

    def traverse(source: int) -> Outcome:
        """Search from the vertex number ``source``. Return its ``Outcome``: hops, predecessors if
        they are wanted, and the number of levels. The arrays are valid until the next call.

        If the query's limit or its targets stop the search, the limit of the outcome is the last
        level searched, up to which distances are complete; otherwise it is that of the query.
        """
        nonlocal is_clean
        if not is_clean:
            claims.data.memset_async(0xFF, claims.nbytes)  # all bits: no claim
        is_clean = False  # if this call is interrupted, the next one clears
        run_cluster(source=index.type(source))
        run_grid()
        outcome.get(out=outcome_on_host)
        # With CLEANS_UP the last kernel resets the claims for the next search. Without predecessors
        # it cannot: the claims are the distances, which are the result.
        is_clean = packed is not None and constants["CLEANS_UP"] == 1

        result = outcome_on_host.view(outcome_layout)[0]
        levels = int(result["levels"])
        # The kernels set ``is_stopped`` if vertices are left in the frontier: the last level was
        # reached, or all targets were, and so no vertex beyond ``levels`` hops was.
        limit = levels if result["is_stopped"] else query.limit
        return Outcome(distance, predecessor, limit, levels)

    return TracedSearch(traverse, trace)


def entries_for(graph, query) -> tuple[Entry, Entry]:
    """Return the entries of the cluster kernel and of the grid kernel, with the compile-time
    constants for a graph and a query.
    """
    tuning = query.get_tuning(bfs_tuning.Tuning)
    _, _, max_degree = degree_statistics(graph.offsets)
    # Edges per chunk of a long adjacency list, and warps that share a chunk (0: a whole block).
    chunk, warps = bfs_tuning.CHUNKS["pull" if _can_pull(graph) else "push"]
    constants = {"PREDECESSORS": int(query.predecessors), "TRACE": tuning.trace, "CHUNK": chunk}
    # On a device without clusters one block runs the first levels.
    cluster_entry = _CLUSTER.variant(**constants, CLUSTER=min(tuning.cluster, max_cluster()))
    # SHARED_LISTS: lanes also share the adjacency lists of a small frontier, where some are long.
    return cluster_entry, _GRID.variant(
        **constants, CHUNK_WARPS=warps, SHARED_LISTS=int(max_degree >= tuning.long_row)
    )


def likely_kernels(directed: bool, predecessors: bool) -> list[Request]:
    """Return the kernels of a search in a graph that is not known yet, so that they can be compiled
    while it is read: those for even and for uneven degrees, with vertex numbers of 32 bits.

    ``directed`` and ``predecessors`` are those of the graph and of the query.
    """
    # Of a directed graph the reverse is not there yet, so it is pushed only.
    chunk, warps = bfs_tuning.CHUNKS["push" if directed else "pull"]
    constants: dict[str, Any] = {"PREDECESSORS": int(predecessors), "CHUNK": chunk}
    cluster_entry = _CLUSTER.variant(
        **constants, CLUSTER=min(bfs_tuning.Tuning().cluster, max_cluster())
    )
    grid_entries = [
        _GRID.variant(**constants, CHUNK_WARPS=warps, SHARED_LISTS=uneven) for uneven in (0, 1)
    ]
    return [Request(entry) for entry in (cluster_entry, *grid_entries)]


def _can_pull(graph) -> bool:
    """Return whether a search may pull, which needs the reversed graph.

    An undirected graph is its own reverse. Of a directed one the reverse is used only if it is
    there or requested: building it costs more than one search gains by pulling.
    """
    return not graph.directed or graph.may_pull


def memory(n_vertices: int, n_edges: int, predecessors: bool) -> int:
    """Return the bytes of a run: 4 per vertex for its distance, 4 for its predecessor or a place in
    the queue, and 8 for its claim; 8 for each edge chunk of long lists; and three bitmaps.

    ``predecessors``: whether they are wanted. Without them the distances are the claims.
    """
    return (
        n_vertices * (4 + 4 + 8 * predecessors)
        + 16 * n_edges // _MIN_CHUNK
        + 8
        + 12 * (n_vertices // 32 + 1)
    )
