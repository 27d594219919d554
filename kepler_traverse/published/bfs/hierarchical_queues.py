"""BFS with a queue of vertices and one thread per vertex: queues of blocks, or a prefix sum over
flags.

``queue_of_blocks``: Springer. Breadth-first Search in CUDA. Tokyo Institute of Technology, section
3.6, after Luo, Wong, Hwu (UIUC-BFS) 2010, section 3.2. "Every block has a queue in shared memory
... all shared memory queues are merged into a single global memory queue", with one atomic per
block. Springer has one queue per block. The knob ``queues`` gives each warp its own, as Luo et al.
did. In the papers "large graphs cannot be processed if a shared memory queue overflows", and a
vertex that two threads reach is queued twice. Here a vertex that exceeds the capacity goes to the
global queue directly, and a compare-and-swap lets one thread queue a vertex.

``queue_by_prefix_sum``: Springer, section 3.7. A level sets a flag per vertex, and a prefix sum
over all flags gives each vertex its place in the queue. The paper computes the sum with NVIDIA's
scan of GPU Gems 3 and stores it in an array. Here three launches keep one sum per tile
(``kernels/prefix_sum.cu``), and the flag is the distance, as in section 3.2.

``queue_of_warps``: Luo, Wong, Hwu. An effective GPU implementation of breadth-first search. DAC
2010, section 3.3 in full. Intra-block synchronization "only applies to the levels with frontiers of
no larger than 512 vertices". Up to 15,360 vertices, as many as a GTX 280 has threads in blocks of
512, blocks synchronize within one launch. "Only when the frontier has more" is a kernel launched
per level, that of ``queue_of_blocks``. In the paper a W-frontier is shared by threads that never
run at the same time, eight per block. Since Volta there are no such threads, so each warp has one
W-frontier and reserves slots by an atomic in shared memory. The paper's barrier is that of Xiao and
Feng, for at most one block per multiprocessor. Here it is that of a cooperative launch of as many
blocks. High-degree vertices: ``row_splitting``.

``graph`` is a Graph on the GPU, and ``query`` says what a search computes: predecessors or none, a
limit of hops, targets, knobs. A run is the state of a search, which a plan uses again for each
source. A function of a run and the level of its frontier makes one level or several. Numbers in
parentheses are sections of the paper.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from ...bfs import gpu_steps
from ...bfs.host_loop import levels
from ...cuda import cp
from ...cuda.compiler import kernel
from ...cuda.csr_build import degree_statistics
from ...cuda.kernel_spec import WARP, make_entries
from ...cuda.launch import (
    PackedLaunches,
    launch,
    launch_blocks,
    max_grid,
    resident_threads,
    threads_per_multiprocessor,
)
from ...search.strategy import Strategy, state_bytes
from .params import BlockQueueKnobs, WarpQueueKnobs
from .row_splitting import split

BLOCK = 512  # threads, as in UIUC-BFS, 3.3
# vertices whose flags a block sums at once; Springer's listing has as many in shared memory
TILE = 1024

_KERNELS = Path(__file__).parent / "kernels"
_QUEUES_FILE = _KERNELS / "block_queues.cu"
_PREFIX_FILE = _KERNELS / "prefix_sum.cu"
_queues = make_entries(_QUEUES_FILE, BLOCK)
_prefix = make_entries(_PREFIX_FILE, gpu_steps.BLOCK)
_LEVEL = _queues("bfs_block_queues")
_GRID = _queues("bfs_block_queues_grid", is_cooperative=True)
_SINGLE_BLOCK = _queues("bfs_block_queues_single_block")
_VISIT = _prefix("bfs_prefix_visit", optional="predecessor")
_COUNT = _prefix("bfs_prefix_count")
_SUM = _prefix("bfs_prefix_sum")
_LIST = _prefix("bfs_prefix_list")
ENTRIES = (_LEVEL, _GRID, _SINGLE_BLOCK, _VISIT, _COUNT, _SUM, _LIST)


class _Run(gpu_steps.Run):
    """A traversal with queues of blocks in shared memory, which are emptied into a queue in global
    memory, the next frontier.

    Attributes named like fields of the kernels' argument struct are passed to the kernels.

    Parameters
    ----------
    graph : Graph
    query : Query
    n_counters : int
        Counters of the frontier that kernels write.
    shared_capacity : int
        Vertices that all queues of a block hold together.
    n_queues : int
        Queues of a block: one, or one per warp.
    queue_capacity : int, optional
        Capacity of the queues in global memory; by default the number of vertices.
    """

    def __init__(
        self,
        graph,
        query,
        n_counters: int,
        shared_capacity: int,
        n_queues: int,
        queue_capacity: int | None = None,
    ):
        super().__init__(graph, query, n_counters, queue_capacity)
        # adjacency lists are not split into edge chunks; a WarpQueueRun may set these
        self.first_chunk = None
        self.owner = None
        # What kernels read that make several levels in one launch. The first two stand in for
        # arguments that such launches give.
        self.last_level = np.int32(0)
        self.max_frontier = np.int64(0)
        self.arrived = cp.zeros(1, np.uint32)  # threads at the barrier of the grid
        # The queues of a block share its capacity; each holds at least one vertex.
        capacity = max(shared_capacity // n_queues, 1)
        self.n_queues = np.int32(n_queues)
        self.queue_capacity = np.int32(capacity)
        self.shared_bytes = n_queues * capacity * graph.targets.dtype.itemsize
        self.level = PackedLaunches(
            kernel(_LEVEL, graph.targets.dtype), shared_bytes=self.shared_bytes
        )


class BlockQueueRun(_Run):
    """A traversal by the strategy ``queue_of_blocks``: one launch per level."""

    def __init__(self, graph, query):
        knobs = query.knobs or BlockQueueKnobs()
        n_queues = 1
        if knobs.queues == "warp":
            n_queues = BLOCK // WARP
        super().__init__(graph, query, n_counters=2, shared_capacity=knobs.room, n_queues=n_queues)


def expand(run: _Run, level: int) -> None:
    """Make one level in one launch."""
    gpu_steps.push_frontier(run, run.level, level)


def rule(mean: float, largest: int, threads: int) -> WarpQueueKnobs:
    """Return the knobs for a graph by the mean and the largest of its degrees, and for a grid of
    ``threads`` threads.

    A frontier of at most ``threads`` vertices is expanded by the grid in one launch. Long adjacency
    lists are split if degrees are uneven: those of more than twice the mean, or 8 edges.
    """
    is_uneven = largest > 16 * max(mean, 1.0)
    split_above = 0
    if is_uneven:
        split_above = max(8, 2 * int(mean))
    return WarpQueueKnobs(grid_up_to=threads, split_above=split_above)


class WarpQueueRun(_Run):
    """A traversal by the strategy ``queue_of_warps``: three kernels for small, middle and large
    frontiers, and long adjacency lists in edge chunks.

    The first three of its counters are the size of the next frontier, the targets that are not
    reached, and the levels that a launch has made. In the other three the grid counts the frontiers
    of three levels: one is read, one written, one cleared.
    """

    def __init__(self, graph, query):
        # One block per multiprocessor (3.3), so that all run at once.
        self.blocks = resident_threads() // threads_per_multiprocessor()
        mean, _, largest = degree_statistics(graph.offsets)
        self.knobs = knobs = query.knobs or rule(mean, largest, self.blocks * BLOCK)

        # With edge chunks, the queues hold these in place of vertices. ``owner`` has the vertex of
        # each chunk, ``first`` the first chunk of each vertex, and ``offsets`` the edges of chunks.
        chunks = None
        if knobs.split_above:
            chunks = split(graph, knobs.split_above)
        queue_capacity = None
        if chunks is not None:
            queue_capacity = chunks.owner.size
        super().__init__(
            graph,
            query,
            n_counters=6,
            shared_capacity=knobs.room,
            n_queues=BLOCK // WARP,
            queue_capacity=queue_capacity,
        )
        if chunks is not None:
            self.first_chunk = chunks.first
            self.owner = chunks.owner
            self.offsets = chunks.offsets

        # The kernels of several levels. A single block also has the frontier in shared memory.
        index = graph.targets.dtype
        with_frontier = self.shared_bytes + knobs.alone_up_to * index.itemsize
        self.grid = PackedLaunches(kernel(_GRID, index), shared_bytes=self.shared_bytes)
        self.single_block = PackedLaunches(kernel(_SINGLE_BLOCK, index), shared_bytes=with_frontier)
        self.max_level = graph.n_vertices  # no path has as many hops
        if query.limit is not None:
            self.max_level = min(int(query.limit), graph.n_vertices)

    def start(self, source: int) -> None:
        """Begin a search: the frontier is the source or, if lists are split, all of its edge
        chunks.
        """
        super().start(source)
        if self.first_chunk is not None:
            # The chunks of vertex v are ``first_chunk[v]`` to ``first_chunk[v + 1] - 1``.
            first, end = self.first_chunk[source : source + 2].get().tolist()
            self.frontier.queue[: end - first] = cp.arange(
                first, end, dtype=self.frontier.queue.dtype
            )
            self.frontier.size = end - first


def step(run: WarpQueueRun, level: int) -> int | None:
    """Expand the frontier by a single block, by a grid with barriers, or by one launch per level,
    as its size demands (3.3). Return the number of levels that this made; None stands for one.
    """
    knobs = run.knobs
    frontier = run.frontier
    if frontier.size > max(knobs.alone_up_to, knobs.grid_up_to):
        expand(run, level)
        return None

    # To stop at the level of a target, the host counts after each level.
    last_level = run.max_level
    if run.target_vertices is not None:
        last_level = level + 1
    # Either kernel continues while the frontier has no more than ``max_frontier`` vertices.
    is_alone = frontier.size <= knobs.alone_up_to
    if is_alone:
        launches = run.single_block
        blocks = 1
        max_frontier = knobs.alone_up_to
    else:
        launches = run.grid
        blocks = run.blocks
        max_frontier = knobs.grid_up_to
    frontier.clear_counters()
    run.arrived.data.memset_async(0, run.arrived.nbytes)  # no thread is at the barrier yet
    launches.launch_blocks(
        blocks,
        frontier.queue.data.ptr,
        run.arguments,
        n_frontier=np.int64(frontier.size),
        level=np.int32(level),
        last_level=np.int32(last_level),
        max_frontier=np.int64(max_frontier),
    )
    run.count_targets_left()  # a kernel, whose result is the second counter below
    size, run.targets_left, n_levels, *_ = frontier.read_counters()
    # The single block writes its last frontier to the next queue. The grid has exchanged the queues
    # in each level, so that after an even number the frontier is in the same queue as before.
    if is_alone or n_levels % 2:
        frontier.swap(size)
    else:
        frontier.size = size
    return n_levels


class PrefixSumRun(gpu_steps.Run):
    """A traversal by the strategy ``queue_by_prefix_sum``, with its four kernels."""

    def __init__(self, graph, query):
        super().__init__(graph, query)
        index = graph.targets.dtype
        self.visit = kernel(_VISIT, index)
        self.count = kernel(_COUNT, index)
        self.sum = kernel(_SUM, index)
        self.list = kernel(_LIST, index)
        self.sums = cp.empty(-(-graph.n_vertices // TILE), np.int64)  # one per tile of vertices


def visit_and_list(run: PrefixSumRun, level: int) -> None:
    """Make one level: write the distances of unreached neighbors of the frontier, then list the
    vertices that have this distance in the next queue.
    """
    graph = run.graph
    frontier = run.frontier
    frontier.clear_counters()
    queue = (frontier.queue, np.int64(frontier.size), np.int32(level + 1))
    launch(
        run.visit,
        frontier.size,
        (graph.offsets, graph.targets, *queue, run.distance, run.predecessor),
    )

    # The flag of a vertex is that its distance is the level. Tiles are counted, their counts are
    # summed, and the vertices of a tile are listed from its sum on.
    n_tiles = run.sums.size
    largest = max_grid(gpu_steps.BLOCK)
    flags = (
        run.distance,
        np.int64(graph.n_vertices),
        np.int32(level + 1),
        np.int64(TILE),
        run.sums,
    )
    launch_blocks(run.count, min(n_tiles, largest), flags)
    launch_blocks(run.sum, 1, (np.int64(n_tiles), run.sums, frontier.counters))
    launch_blocks(
        run.list, min(n_tiles, largest), (*flags, np.int64(frontier.capacity), frontier.next)
    )
    run.close_level()


# Edge chunks of the published length, which make queues longer.
_CHUNKS = 1 / WarpQueueKnobs.split_above
warp_queue_memory = state_bytes(
    8 + 8, numbers=3, edge_bytes=8 * _CHUNKS, edge_numbers=3 * _CHUNKS, beside=gpu_steps.memory
)


_on_gpu = partial(Strategy, device="cuda", complexity="O(V + E)")
STRATEGIES = (
    _on_gpu(
        name="queue_of_blocks",
        plan=levels(BlockQueueRun, expand),
        memory=gpu_steps.memory,
        paper="Springer, section 3.6; Luo, Wong, Hwu 2010, section 3.2",
        rationale=(
            "each block has a queue in shared memory: one atomic per "
            "block instead of one per vertex"
        ),
        aliases=("springer-frontier-queue",),
        knobs=BlockQueueKnobs,
    ),
    _on_gpu(
        name="queue_by_prefix_sum",
        plan=levels(PrefixSumRun, visit_and_list),
        memory=state_bytes(8 / TILE, beside=gpu_steps.memory),
        paper="Springer, section 3.7; scan of Harris, Sengupta, Owens 2007",
        rationale="a queue without an atomic, for a pass over all vertices per level",
        complexity="O(D V + E)",
        aliases=("springer-frontier-scan",),
    ),
    _on_gpu(
        name="queue_of_warps",
        plan=levels(WarpQueueRun, step),
        memory=warp_queue_memory,
        paper="Luo, Wong, Hwu 2010 (UIUC-BFS)",
        rationale=(
            "a small frontier stays in one block, a middle one behind a "
            "barrier of blocks: the host is asked seldom"
        ),
        aliases=("uiuc-bfs",),
        knobs=WarpQueueKnobs,
    ),
)
