"""BFS by layers and by frontiers, top-down and hybrid; and as a product of a sparse matrix and a
vector.

Sevilmis, Sivri, Aydin. CS406 Project: Parallelization of BFS. 2019, section 5. By layers: "threads
are spread over the distance array", and a thread that finds the level there processes the
neighbors. By frontiers: "every thread picks the corresponding vertex from the frontier". Each
exists top-down and as a hybrid: "if frontier size < (number of vertices/32), then Top-Down kernel
is launched. Otherwise, Bottom-Up kernel is launched". ``scan_level`` is top-down by layers and
``queue_thread`` top-down by frontiers; the hybrids are here.

Differences from the paper: its top-down kernel by layers counts the level that it expands. This one
counts the level that it reaches, which is the frontier of the rule, and claims with a
compare-and-swap so that the count is right. The array ``front_check``, by which a bottom-up thread
finds the frontier, is the distance here, as in the paper's kernel by layers. Bottom-up "requires
the inverse graph" of a directed graph, as in the paper.

Deng, Wang, Mu. Taming irregular EDA applications on GPUs. ICCAD 2009. Luo, Wong, Hwu 2010 write of
it (section 2): "each frontier propagation can be transformed into a matrix-vector multiplication
... the running time of each matrix-vector multiplication is O(E)". The product is a kernel of this
library (``kernels/spmv.cu``), not one of cuSPARSE. The product of a library computes sums: it needs
a number per edge, 4 bytes more, and gives the number of predecessors of a vertex but not which.
Minima instead of sums give the predecessor directly.

``graph`` is a Graph on the GPU, and ``query`` says what a search computes: predecessors or none, a
limit of hops, targets. A run is the state of a search, which a plan uses again for each source. A
function of a run and the level of its frontier makes one level.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from ..._arrays import NO_PREDECESSOR
from ...bfs import gpu_steps
from ...bfs.cpu_steps import is_dense
from ...bfs.host_loop import levels, switch
from ...cuda import cp
from ...cuda.compiler import kernel
from ...cuda.kernel_spec import WARP, make_entries
from ...cuda.launch import Named, PackedLaunches, launch
from ...search.strategy import Strategy, state_bytes

BLOCK = 256

_KERNELS = Path(__file__).parent / "kernels"
_hybrid = make_entries(_KERNELS / "hybrid.cu", BLOCK)
_spmv = make_entries(_KERNELS / "spmv.cu", BLOCK)
_LAYER_PUSH = _hybrid("bfs_layer_push_thread")
_PULL = _hybrid("bfs_pull_thread")
_PRODUCT = _spmv("bfs_product")
_TAKE = _spmv("bfs_product_take", optional="predecessor")
ENTRIES = (_LAYER_PUSH, _PULL, _PRODUCT, _TAKE)


class LayerRun(gpu_steps.Run):
    """A traversal without a queue: a vertex is in the frontier if its distance is the level. The
    kernels count the vertices of each level.
    """

    def __init__(self, graph, query):
        super().__init__(graph, query, queue_capacity=1)  # no queue; it cannot be empty
        self.in_offsets = graph.reverse.offsets  # the edges that enter each vertex, for the pull
        self.in_targets = graph.reverse.targets
        self.push = PackedLaunches(kernel(_LAYER_PUSH, graph.targets.dtype))
        self.pull = PackedLaunches(kernel(_PULL, graph.targets.dtype))

    def arguments(self) -> Named:
        """Return the arguments of both kernels by name, without the level."""
        return super().arguments() | {"capacity": np.int64(0), "next": None}  # no queue

    def finish(self) -> None:
        """Wait for a level, and read how many vertices it has and how many targets are left."""
        self.count_targets_left()
        self.frontier.size, self.targets_left = self.frontier.read_counters()


def push_layer(run: LayerRun, level: int) -> None:
    """Make a level top-down: a thread per vertex checks whether the vertex is at the level, and if
    so, claims its unreached neighbors for the next one.
    """
    run.frontier.clear_counters()
    run.push.launch(run.graph.n_vertices, None, run.arguments, level=np.int32(level + 1))
    run.finish()


def pull_layer(run: LayerRun, level: int) -> None:
    """Make a level bottom-up, without a queue: every unreached vertex looks for a neighbor that is
    at the level and leads to it.
    """
    run.frontier.clear_counters()
    run.pull.launch(run.graph.n_vertices, None, run.arguments, level=np.int32(level + 1))
    run.finish()


class QueueRun(gpu_steps.PushRun):
    """A traversal with a queue that either kernel fills, top-down or bottom-up."""

    def __init__(self, graph, query):
        super().__init__(graph, query)
        self.in_offsets = graph.reverse.offsets  # the edges that enter each vertex, for the pull
        self.in_targets = graph.reverse.targets
        self.pull = PackedLaunches(kernel(_PULL, graph.targets.dtype))


def pull_queue(run: QueueRun, level: int) -> None:
    """Make a level bottom-up: every unreached vertex looks for a neighbor at the level, and enters
    the next queue if it has one.
    """
    run.frontier.clear_counters()
    run.pull.launch(
        run.graph.n_vertices, run.frontier.queue.data.ptr, run.arguments, level=np.int32(level + 1)
    )
    run.close_level()


class ProductRun(gpu_steps.Run):
    """A traversal whose frontier is a vector of zeros and ones."""

    def __init__(self, graph, query):
        super().__init__(graph, query, queue_capacity=1)  # no queue; it cannot be empty
        n = graph.n_vertices
        index = graph.targets.dtype
        self.incoming = graph.reverse
        self.x = cp.empty(n, np.uint8)  # by vertex, 1 if it is in the frontier, else 0
        # the product: of the frontier vertices with an edge to each vertex the smallest, or -1
        self.y = cp.empty(n, index)
        self.product = kernel(_PRODUCT, index)
        self.take = kernel(_TAKE, index)
        # As many lanes per row of the matrix as rows have entries on average, rounded up to a power
        # of two.
        mean_entries = -(-graph.n_edges // max(n, 1))
        self.width = min(1 << max(mean_entries - 1, 0).bit_length(), WARP)

    def start(self, source: int) -> None:
        """Begin a search: the source alone is in the frontier."""
        super().start(source)
        self.x.fill(0)
        self.x[source] = 1
        self.y.fill(NO_PREDECESSOR)


def multiply(run: ProductRun, level: int) -> None:
    """Make one level: compute the product of the matrix of incoming edges and the frontier, then
    find those vertices of the product that are not reached yet.
    """
    n = np.int64(run.graph.n_vertices)
    incoming = run.incoming
    run.frontier.clear_counters()
    matrix = (incoming.offsets, incoming.targets, n)
    launch(run.product, int(n) * run.width, (*matrix, np.int32(run.width), run.x, run.y))
    results = (run.distance, run.predecessor, run.frontier.counters)
    launch(run.take, int(n), (n, np.int32(level + 1), run.y, run.x, *results))
    run.count_targets_left()
    run.frontier.size, run.targets_left = run.frontier.read_counters()


_on_gpu = partial(Strategy, device="cuda")
STRATEGIES = (
    _on_gpu(
        name="scan_switch",
        plan=levels(LayerRun, switch(push_layer, pull_layer, is_dense)),
        memory=state_bytes(4),
        paper="Sevilmis, Sivri, Aydin 2019, section 5.1, hybrid",
        rationale=(
            "visiting every vertex in each level is cheap where levels are "
            "few, and bottom-up does no more than that"
        ),
        complexity="O(D V + E) pushing, O(V + E) per level pulling",
        aliases=("sevilmis-layer-hybrid",),
    ),
    _on_gpu(
        name="queue_switch",
        plan=levels(QueueRun, switch(gpu_steps.push("thread"), pull_queue, is_dense)),
        memory=gpu_steps.memory,
        paper="Sevilmis, Sivri, Aydin 2019, section 5.2, hybrid; Beamer, Asanovic, Patterson 2012",
        rationale=(
            "push while the queue is small, pull once it holds 1/32 of "
            "the vertices; one thread per vertex"
        ),
        complexity="O(V + E) pushing, O(V + E) per level pulling",
        aliases=("sevilmis-frontier-hybrid",),
    ),
    _on_gpu(
        name="sparse_product",
        plan=levels(ProductRun, multiply),
        memory=state_bytes(4 + 1, numbers=1),  # two vectors beside the distances
        paper="Deng, Wang, Mu 2009, by Luo, Wong, Hwu 2010, section 2",
        rationale=(
            "a level is a matrix-vector product: equal work for all "
            "threads, but every level reads all edges"
        ),
        complexity="O(V + D E)",
        aliases=("deng-spmv",),
    ),
)
