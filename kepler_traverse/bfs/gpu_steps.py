"""BFS steps on a GPU: top-down with a queue; a thread or a warp takes the edges of a frontier
vertex.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .._arrays import MAX_HOP_COUNT, NO_PREDECESSOR, UNREACHED
from ..cuda import cp
from ..cuda.compiler import kernel
from ..cuda.frontier import Frontier
from ..cuda.kernel_spec import WARP, make_entries
from ..cuda.launch import Named, PackedLaunches, launch, named
from ..search.strategy import state_bytes

if TYPE_CHECKING:
    from .._arrays import Array
    from ..graph import Graph
    from ..search.query import Query

BLOCK = 256  # threads; small, so that a block with a hub occupies few threads

_PUSH_FILE = Path(__file__).parent / "kernels" / "push.cu"
_entry = make_entries(_PUSH_FILE, BLOCK)
_PUSH = {
    "thread": _entry("bfs_push_thread"),
    "warp": _entry("bfs_push_warp", item_threads=WARP),
}
_COUNT_UNREACHED = _entry("bfs_count_unreached")
_LIST_LEVEL = _entry("bfs_list_level")
ENTRIES = (*_PUSH.values(), _COUNT_UNREACHED, _LIST_LEVEL)


class Run:
    """The state of a BFS on a GPU: distances, predecessors, the frontier, and the number of targets
    that are not reached.

    ``n_counters``: int64 counters of the frontier, the first for its vertices, the second for
    targets that are not reached. ``queue_capacity``: vertices that a queue of the frontier takes;
    None: all. n is the number of vertices.

    - ``frontier``: a ``Frontier``: the queue of this level, that of the next, and counters.
    - ``distance``: int32 array of shape (n,): hops, or UNREACHED.
    - ``predecessor``: array of shape (n,) of the type of vertices, or NO_PREDECESSOR. None if no
      predecessors are wanted.
    - ``host_targets``, ``target_vertices``: the targets in NumPy and on the GPU, None without any.
    - ``targets_left``: the number of targets that are not reached.
    """

    # The level up to which distances are final. A target that is farther counts as unreached, since
    # a subclass that relaxes all edges in each round may still bring it nearer.
    complete_up_to = MAX_HOP_COUNT

    @property
    def counted(self) -> dict[str, int] | None:
        """Counters of the strategy, if it has any and they were requested."""
        return None

    def __init__(self, graph, query, n_counters: int = 2, queue_capacity: int | None = None):
        """Allocate the state of searches of ``graph`` with the options ``query``."""
        n = graph.n_vertices
        index = graph.targets.dtype
        self.graph = graph
        self.distance = cp.empty(n, np.int32)
        if query.predecessors:
            self.predecessor = cp.empty(n, index)
        else:
            self.predecessor = None
        self.frontier = Frontier(n if queue_capacity is None else queue_capacity, index, n_counters)
        self.host_targets = query.targets
        self.target_vertices = query.copy_targets_to_gpu()
        self._count_unreached = kernel(_COUNT_UNREACHED, index)

    def start(self, source: int) -> None:
        """Begin a search from the vertex number ``source``, which alone is in the frontier."""
        self.distance.fill(UNREACHED)
        self.distance[source] = 0
        if self.predecessor is not None:
            self.predecessor.fill(NO_PREDECESSOR)
            self.predecessor[source] = source
        self.frontier.start(source)
        # Targets are distinct, so that at most one of them is the source.
        if self.target_vertices is None:
            self.targets_left = 0
        else:
            self.targets_left = int((self.host_targets != source).sum())

    def arguments(self) -> Named:
        """Return what kernels may take, by name: attributes of this run, arrays of the graph, and
        those of the frontier.

        The arguments stay the same while the two queues of the frontier keep their order.
        """
        return named(self, self.graph, **self.frontier.arguments())

    @property
    def frontier_size(self) -> int:
        """The number of vertices in the frontier; the search ends at 0."""
        return self.frontier.size

    def count_targets_left(self) -> None:
        """Launch the kernel that counts the targets that are unreached, in the frontier's second
        counter. The host does not wait.
        """
        if self.target_vertices is not None:
            targets = self.target_vertices
            n_targets = np.int64(targets.size)
            hops = np.int32(self.complete_up_to)
            args = (targets, n_targets, hops, self.distance, self.frontier.counters)
            launch(self._count_unreached, targets.size, args)

    def list_level(self, level: int, queue: Array, counter: Array) -> None:
        """Write the vertices whose distance is ``level`` to ``queue``, in any order, by a scan of
        all distances.

        ``counter``, an int64 array of shape (1,), receives their number. Each vertex is queued
        once, so a queue of n vertices does not overflow.
        """
        n = self.graph.n_vertices
        args = (
            self.distance,
            np.int64(n),
            np.int32(level),
            np.int64(queue.size),
            queue,
            counter,
        )
        launch(kernel(_LIST_LEVEL, queue.dtype), n, args)

    def close_level(self) -> None:
        """Wait for a level, and make the vertices that it has queued the frontier."""
        self.count_targets_left()
        self.targets_left = self.frontier.advance()

    def targets_reached(self) -> bool:
        """Return whether there are targets and all are reached."""
        return self.target_vertices is not None and self.targets_left == 0


class PushRun(Run):
    """The state of a BFS by the push kernels.

    - ``push``: the launches of each kernel by its scope, ``"thread"`` or ``"warp"``.
    """

    def __init__(self, graph: Graph, query: Query):
        """Allocate the state, and compile the kernels."""
        super().__init__(graph, query)
        self.push = {
            scope: PackedLaunches(kernel(entry, graph.targets.dtype))
            for scope, entry in _PUSH.items()
        }


memory = state_bytes(4, numbers=2)  # distance and predecessor; two queues


def push_frontier(run: Run, launches: PackedLaunches, level: int) -> None:
    """Search one level by one launch over the frontier at ``level``, which queues the vertices at
    ``level + 1``. They become the frontier.

    ``launches`` are those of the kernel.
    """
    frontier = run.frontier
    frontier.clear_counters()
    size = frontier.size
    # The address tells which of the two queues is read, and so which packed arguments fit.
    queue_address = frontier.queue.data.ptr
    launches.launch(
        size, queue_address, run.arguments, n_frontier=np.int64(size), level=np.int32(level + 1)
    )
    run.close_level()


def push(scope: str):
    """Return the top-down step in which a ``"thread"`` or a ``"warp"`` takes the edges of a
    frontier vertex.
    """

    def step(run: PushRun, level: int) -> None:
        """Search one level: the vertices at ``level + 1`` become the frontier."""
        push_frontier(run, run.push[scope], level)

    return step
