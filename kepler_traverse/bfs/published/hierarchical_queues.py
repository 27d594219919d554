"""BFS with a queue of vertices, a thread a vertex: by way of queues of the blocks, or by a prefix sum over flags.

``queue_of_blocks``: Springer. Breadth-first Search in CUDA. Tokyo Institute of Technology, section 3.6, after Luo, Wong, Hwu
(UIUC-BFS) 2010, section 3.2. "Every block has a queue in shared memory ... all shared memory queues are merged into a single
global memory queue", by one atomic a block there. Springer has one queue a block; the knob ``queues`` gives each warp its
own, as Luo et al. did. Theirs: "large graphs cannot be processed if a shared memory queue overflows", and a vertex that two
threads reach is queued twice. Here what has no room goes to the global queue at once, and a compare-and-swap lets one thread
queue a vertex.

``queue_by_prefix_sum``: Springer, section 3.7. A level leaves a flag at each vertex, and a prefix sum over the flags of all
gives each vertex of the queue its place. There the sum is made by NVIDIA's scan of GPU Gems 3 and kept in an array; here by
three launches that keep a sum a tile (``kernels/published/prefix_sum.cu``), and the flag is the distance, as in section 3.2.

``queue_of_warps``: Luo, Wong, Hwu. An effective GPU implementation of breadth-first search. DAC 2010, section 3.3 in full.
Intra-block synchronization "only applies to the levels with frontiers of no larger than 512 vertices"; beyond, blocks wait
for each other up to 15,360 vertices, as many threads as a GTX 280 has in blocks of 512; "only when the frontier has more"
is a kernel launched for a level, that of ``queue_of_blocks``. Theirs: a W-frontier is shared by threads that never ran at
the same time, eight of them a block; since Volta there are no such threads, so each warp has one and takes places by an
atomic in shared memory. Their barrier is Xiao and Feng's, for no more blocks than multiprocessors; here it is that of a
cooperative launch, of as many. Vertices of many edges: ``pieces``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...cuda import cp
from ...cuda.compiler import kernel
from ...cuda.csr_build import degree_statistics
from ...cuda.kernel_spec import WARP, Entry, arguments
from ...cuda.launch import launch, launch_blocks, max_grid, resident_threads, threads_per_multiprocessor
from ...strategy import Strategy
from .. import gpu_steps
from ..host_loop import levels
from .params import BlockQueueKnobs, WarpQueueKnobs
from .row_splitting import split

BLOCK = 512  # threads, as in UIUC-BFS, 3.3
TILE = 1024  # vertices whose flags a block sums up at once, as many as Springer's listing has in shared memory

_KERNELS = Path(__file__).parents[1] / "kernels" / "published"
_QUEUES_FILE, _PREFIX_FILE = _KERNELS / "block_queues.cu", _KERNELS / "prefix_sum.cu"
_GRAPH = ("offset_t* offsets", "vertex_t* targets", "int64*? first_piece", "vertex_t*? owner")
_CAPACITIES = ("int32 n_queues", "int32 queue_capacity", "int64 capacity")
_RESULTS = ("int32* distance", "vertex_t*? predecessor", "vertex_t* next", "int64* counters")
_FRONTIER = ("vertex_t* frontier", "int64 n_frontier", "int32 level")
_SEVERAL = ("int32 last_level", "int64 most")
_LEVEL = Entry("bfs_block_queues", _QUEUES_FILE, BLOCK, arguments(*_GRAPH, *_FRONTIER, *_CAPACITIES, *_RESULTS))
_GRID = Entry(
    "bfs_block_queues_grid",
    _QUEUES_FILE,
    BLOCK,
    arguments(
        *_GRAPH, "vertex_t* queue", "int64 n_frontier", "int32 level", *_SEVERAL, *_CAPACITIES, *_RESULTS, "uint32* arrived"
    ),
    is_cooperative=True,
)
_ALONE = Entry(
    "bfs_block_queues_alone", _QUEUES_FILE, BLOCK, arguments(*_GRAPH, *_FRONTIER, *_SEVERAL, *_CAPACITIES, *_RESULTS)
)
_MARK = Entry(
    "bfs_prefix_mark",
    _PREFIX_FILE,
    gpu_steps.BLOCK,
    arguments("offset_t* offsets", "vertex_t* targets", *_FRONTIER, "int32* distance", "vertex_t*? predecessor"),
)
_FLAGS = ("int32* distance", "int64 n_vertices", "int32 level", "int64 tile", "int64* sums")
_COUNT = Entry("bfs_prefix_count", _PREFIX_FILE, gpu_steps.BLOCK, arguments(*_FLAGS))
_SUM = Entry("bfs_prefix_sum", _PREFIX_FILE, gpu_steps.BLOCK, arguments("int64 n_tiles", "int64* sums", "int64* counters"))
_LIST = Entry("bfs_prefix_list", _PREFIX_FILE, gpu_steps.BLOCK, arguments(*_FLAGS, "int64 capacity", "vertex_t* next"))
ENTRIES = (_LEVEL, _GRID, _ALONE, _MARK, _COUNT, _SUM, _LIST)


class _Run(gpu_steps.Run):
    """A traversal by queues of blocks."""

    first, owner = None, None  # the rows of the graph are whole

    def __init__(self, graph, query, n_counters: int, queue_capacity: int, n_queues: int, longest: int | None = None):
        super().__init__(graph, query, n_counters, longest)
        self.offsets = graph.offsets
        # A block's room is shared out to its queues, each of which has one place at least.
        self.n_queues, self.queue_capacity = n_queues, max(queue_capacity // n_queues, 1)
        self.shared_bytes = n_queues * self.queue_capacity * graph.targets.dtype.itemsize
        self.level = kernel(_LEVEL, graph.targets.dtype)

    def arguments(self, level: int, *of_several) -> tuple:
        """Those that the three kernels share."""
        frontier = self.frontier
        rows = (self.offsets, self.graph.targets, self.first, self.owner)
        capacities = (np.int32(self.n_queues), np.int32(self.queue_capacity), np.int64(frontier.capacity))
        results = (self.distance, self.predecessor, frontier.next, frontier.counters)
        return (*rows, frontier.queue, np.int64(frontier.size), np.int32(level), *of_several, *capacities, *results)


class BlockQueueRun(_Run):
    """A traversal by ``queue_of_blocks``."""

    def __init__(self, graph, query):
        knobs = query.knobs or BlockQueueKnobs()
        super().__init__(graph, query, 2, knobs.room, 1 if knobs.queues == "block" else BLOCK // WARP)


def expand(run: _Run, level: int) -> None:
    """One level by one launch."""
    frontier = run.frontier
    frontier.clear_counters()
    launch(run.level, frontier.size, run.arguments(level + 1), shared_bytes=run.shared_bytes)
    run.count_targets_left()
    run.targets_left = frontier.advance()


def rule(mean: float, largest: int, threads: int) -> WarpQueueKnobs:
    """Knobs for a graph and a device: the threads of its own multiprocessors; rows are cut where they are uneven."""
    uneven = largest > 16 * max(mean, 1.0)
    return WarpQueueKnobs(grid_up_to=threads, split_above=max(8, 2 * int(mean)) if uneven else 0)


class WarpQueueRun(_Run):
    """A traversal by ``queue_of_warps``: the kernel that suits a frontier, and the graph in pieces if it is split."""

    def __init__(self, graph, query):
        # A block a multiprocessor (3.3), so that all run at once.
        self.blocks = resident_threads() // threads_per_multiprocessor()
        mean, _, largest = degree_statistics(graph.offsets)
        self.knobs = knobs = query.knobs or rule(mean, largest, self.blocks * BLOCK)
        pieces = split(graph, knobs.split_above) if knobs.split_above else None
        super().__init__(graph, query, 6, knobs.room, BLOCK // WARP, None if pieces is None else pieces.owner.size)
        if pieces is not None:
            self.first, self.owner, self.offsets = pieces.first, pieces.owner, pieces.offsets
        index = graph.targets.dtype
        self.grid, self.alone = kernel(_GRID, index), kernel(_ALONE, index)
        self.arrived = cp.zeros(1, np.uint32)
        # No path has as many hops as there are vertices.
        self.last_level = graph.n_vertices if query.limit is None else min(int(query.limit), graph.n_vertices)

    def start(self, source: int) -> None:
        super().start(source)
        if self.first is not None:
            first, end = self.first[source : source + 2].get().tolist()
            self.frontier.queue[: end - first] = cp.arange(first, end, dtype=self.frontier.queue.dtype)
            self.frontier.size = end - first


def step(run: WarpQueueRun, level: int) -> int | None:
    """Go on from a level with one block, with blocks that wait for each other, or with one launch (3.3)."""
    knobs, frontier = run.knobs, run.frontier
    if frontier.size > max(knobs.alone_up_to, knobs.grid_up_to):
        return expand(run, level)
    # To stop at the level of a target the host counts after each.
    last = np.int32(run.last_level if run.targets is None else level + 1)
    frontier.clear_counters()
    alone = frontier.size <= knobs.alone_up_to
    if alone:
        values = run.arguments(level, last, np.int64(knobs.alone_up_to))
        shared = run.shared_bytes + knobs.alone_up_to * frontier.queue.dtype.itemsize
        launch_blocks(run.alone, 1, values, shared_bytes=shared)
    else:
        run.arrived.data.memset_async(0, run.arrived.nbytes)
        values = (*run.arguments(level, last, np.int64(knobs.grid_up_to)), run.arrived)
        launch_blocks(run.grid, run.blocks, values, shared_bytes=run.shared_bytes)
    run.count_targets_left()
    size, run.targets_left, taken, *_ = frontier.read_counters()
    if alone or taken % 2:
        frontier.swap(size)
    else:
        frontier.size = size
    return taken


class PrefixSumRun(gpu_steps.Run):
    """A traversal by ``queue_by_prefix_sum``."""

    def __init__(self, graph, query):
        super().__init__(graph, query)
        index = graph.targets.dtype
        self.mark, self.count, self.sum, self.list = (kernel(entry, index) for entry in (_MARK, _COUNT, _SUM, _LIST))
        self.sums = cp.empty(-(-graph.n_vertices // TILE), np.int64)


def mark_and_list(run: PrefixSumRun, level: int) -> None:
    """One level: mark what it reaches, then list what is marked."""
    graph, frontier = run.graph, run.frontier
    frontier.clear_counters()
    queue = (frontier.queue, np.int64(frontier.size), np.int32(level + 1))
    launch(run.mark, frontier.size, (graph.offsets, graph.targets, *queue, run.distance, run.predecessor))
    n_tiles, largest = run.sums.size, max_grid(gpu_steps.BLOCK)
    flags = (run.distance, np.int64(graph.n_vertices), np.int32(level + 1), np.int64(TILE), run.sums)
    launch_blocks(run.count, min(n_tiles, largest), flags)
    launch_blocks(run.sum, 1, (np.int64(n_tiles), run.sums, frontier.counters))
    launch_blocks(run.list, min(n_tiles, largest), (*flags, np.int64(frontier.capacity), frontier.next))
    run.count_targets_left()
    run.targets_left = frontier.advance()


def warp_queue_memory(n_vertices: int, n_edges: int, predecessors: bool) -> int:
    """Bytes of a run: those of any with queues, and rows in pieces of the published length, whose queues are longer."""
    index = 4 if n_vertices < 2**31 else 8
    pieces = n_vertices + n_edges // WarpQueueKnobs.split_above
    return gpu_steps.memory(n_vertices, n_edges, predecessors) + 8 * n_vertices + pieces * (8 + 3 * index)


def prefix_sum_memory(n_vertices: int, n_edges: int, predecessors: bool) -> int:
    """Bytes of a run: those of any with queues, and a sum a tile."""
    return gpu_steps.memory(n_vertices, n_edges, predecessors) + 8 * (n_vertices // TILE + 1)


STRATEGIES = (
    Strategy(
        name="queue_of_blocks",
        device="cuda",
        plan=levels(BlockQueueRun, expand),
        memory=gpu_steps.memory,
        paper="Springer, section 3.6; Luo, Wong, Hwu 2010, section 3.2",
        rationale="a queue of each block in shared memory: one atomic a block where there was one a vertex",
        complexity="O(V + E)",
        aliases=("springer-frontier-queue",),
        knobs=BlockQueueKnobs,
    ),
    Strategy(
        name="queue_by_prefix_sum",
        device="cuda",
        plan=levels(PrefixSumRun, mark_and_list),
        memory=prefix_sum_memory,
        paper="Springer, section 3.7; scan of Harris, Sengupta, Owens 2007",
        rationale="a queue without an atomic, for a pass over all vertices per level",
        complexity="O(D V + E)",
        aliases=("springer-frontier-scan",),
    ),
    Strategy(
        name="queue_of_warps",
        device="cuda",
        plan=levels(WarpQueueRun, step),
        memory=warp_queue_memory,
        paper="Luo, Wong, Hwu 2010 (UIUC-BFS)",
        rationale="a small frontier stays in one block, a middle one behind a barrier of blocks: the host is asked seldom",
        complexity="O(V + E)",
        aliases=("uiuc-bfs",),
        knobs=WarpQueueKnobs,
    ),
)
