"""BFS by layers and by frontiers, top-down and hybrid; and as a product of a sparse matrix and a vector.

Sevilmis, Sivri, Aydin. CS406 Project: Parallelization of BFS. 2019, section 5. Layers: "threads are spread over the
distance array", and whoever finds the level there processes its neighbours. Frontiers: "every thread picks the
corresponding vertex from the frontier". Of either there is a top-down form and a hybrid: "if frontier size < (number of
vertices/32), then Top-Down kernel is launched. Otherwise, Bottom-Up kernel is launched". Top-down by layers is
``scan_level``, by frontiers ``queue_thread``; the hybrids are here. What differs: their top-down kernel by layers counts the
level that it walks, this one the level that it reaches, which is the frontier that the rule is about, and claims with a
compare-and-swap to count right; the array ``front_check``, which tells a bottom-up thread who is in the frontier, is the
distance here, as in their kernel by layers. Bottom-up "requires the inverse graph" of a directed graph, here as there.

Deng, Wang, Mu. Taming irregular EDA applications on GPUs. ICCAD 2009, of which Luo, Wong, Hwu 2010 say (section 2): "each
frontier propagation can be transformed into a matrix-vector multiplication ... the running time of each matrix-vector
multiplication is O(E)". The product is a kernel of this library (``kernels/published/product.cu``) and none of cuSPARSE's: a
library's product sums numbers, so that it needs one at each edge, 4 bytes more, and says how many predecessors a vertex has
but not which. Minima in place of sums say that at once.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..._arrays import NO_PREDECESSOR
from ...cuda import cp
from ...cuda.compiler import kernel
from ...cuda.kernel_spec import WARP, Entry, arguments
from ...cuda.launch import launch
from ...strategy import Strategy
from .. import gpu_steps
from ..cpu_steps import is_dense
from ..host_loop import levels, switch

BLOCK = 256

_KERNELS = Path(__file__).parents[1] / "kernels" / "published"
_RESULTS = ("int32* distance", "vertex_t*? predecessor")
_REVERSE = ("offset_t* in_offsets", "vertex_t* in_targets", "int64 n_vertices")
_LAYER_PUSH = Entry(
    "bfs_layer_push_thread",
    _KERNELS / "hybrid.cu",
    BLOCK,
    arguments("offset_t* offsets", "vertex_t* targets", "int64 n_vertices", "int32 level", *_RESULTS, "int64* counters"),
)
_PULL = Entry(
    "bfs_pull_thread",
    _KERNELS / "hybrid.cu",
    BLOCK,
    arguments(*_REVERSE, "int32 level", "int64 capacity", *_RESULTS, "vertex_t*? next", "int64* counters"),
)
_PRODUCT = Entry("bfs_product", _KERNELS / "spmv.cu", BLOCK, arguments(*_REVERSE, "int32 width", "uint8* x", "vertex_t* y"))
_TAKE = Entry(
    "bfs_product_take",
    _KERNELS / "spmv.cu",
    BLOCK,
    arguments("int64 n_vertices", "int32 level", "vertex_t* y", "uint8* x", *_RESULTS, "int64* counters"),
)
ENTRIES = (_LAYER_PUSH, _PULL, _PRODUCT, _TAKE)


class LayerRun(gpu_steps.Run):
    """A traversal without a queue, of which the size of each level is counted."""

    def __init__(self, graph, query):
        super().__init__(graph, query, queue_capacity=1)
        self.incoming = graph.reverse
        self.push, self.pull = (kernel(entry, graph.targets.dtype) for entry in (_LAYER_PUSH, _PULL))

    def finish(self) -> None:
        """Wait for a level and read how many vertices it has."""
        self.count_targets_left()
        self.frontier.size, self.targets_left = self.frontier.read_counters()


def push_layer(run: LayerRun, level: int) -> None:
    """Top-down: all vertices look whether they are at the level."""
    graph = run.graph
    run.frontier.clear_counters()
    rows = (graph.offsets, graph.targets, np.int64(graph.n_vertices))
    results = (run.distance, run.predecessor, run.frontier.counters)
    launch(run.push, graph.n_vertices, (*rows, np.int32(level + 1), *results))
    run.finish()


def _pull(run, level: int, capacity: int, queue) -> None:
    """Bottom-up: every unreached vertex looks for a neighbour at the level."""
    n, incoming = run.graph.n_vertices, run.incoming
    run.frontier.clear_counters()
    rows = (incoming.offsets, incoming.targets, np.int64(n))
    results = (run.distance, run.predecessor, queue, run.frontier.counters)
    launch(run.pull, n, (*rows, np.int32(level + 1), np.int64(capacity), *results))


def pull_layer(run: LayerRun, level: int) -> None:
    """Bottom-up without a queue."""
    _pull(run, level, 0, None)
    run.finish()


class QueueRun(gpu_steps.PushRun):
    """A traversal with a queue that either kernel fills."""

    def __init__(self, graph, query):
        super().__init__(graph, query)
        self.incoming = graph.reverse
        self.pull = kernel(_PULL, graph.targets.dtype)


def pull_queue(run: QueueRun, level: int) -> None:
    """Bottom-up, and whoever is reached goes into the queue."""
    _pull(run, level, run.frontier.capacity, run.frontier.next)
    run.count_targets_left()
    run.targets_left = run.frontier.advance()


class ProductRun(gpu_steps.Run):
    """A traversal whose frontier is a vector of zeros and ones."""

    def __init__(self, graph, query):
        super().__init__(graph, query, queue_capacity=1)
        n, index = graph.n_vertices, graph.targets.dtype
        self.incoming = graph.reverse
        self.x, self.y = cp.empty(n, np.uint8), cp.empty(n, index)
        self.product, self.take = kernel(_PRODUCT, index), kernel(_TAKE, index)
        # As many lanes a row as rows have entries on average.
        self.width = min(1 << max(-(-graph.n_edges // max(n, 1)) - 1, 0).bit_length(), WARP)

    def start(self, source: int) -> None:
        super().start(source)
        self.x.fill(0)
        self.x[source] = 1
        self.y.fill(NO_PREDECESSOR)


def multiply(run: ProductRun, level: int) -> None:
    """One level: the product, then what of it is new."""
    n, incoming = np.int64(run.graph.n_vertices), run.incoming
    run.frontier.clear_counters()
    rows = (incoming.offsets, incoming.targets, n)
    launch(run.product, int(n) * run.width, (*rows, np.int32(run.width), run.x, run.y))
    results = (run.distance, run.predecessor, run.frontier.counters)
    launch(run.take, int(n), (n, np.int32(level + 1), run.y, run.x, *results))
    run.count_targets_left()
    run.frontier.size, run.targets_left = run.frontier.read_counters()


def layer_memory(n_vertices: int, _n_edges: int, predecessors: bool) -> int:
    """Bytes of a run: distance, predecessor."""
    return n_vertices * (4 + (4 if n_vertices < 2**31 else 8) * predecessors)


def product_memory(n_vertices: int, n_edges: int, predecessors: bool) -> int:
    """Bytes of a run: distance, predecessor, two vectors."""
    return layer_memory(n_vertices, n_edges, predecessors) + n_vertices * (1 + (4 if n_vertices < 2**31 else 8))


STRATEGIES = (
    Strategy(
        name="scan_switch",
        device="cuda",
        plan=levels(LayerRun, switch(push_layer, pull_layer, is_dense)),
        memory=layer_memory,
        paper="Sevilmis, Sivri, Aydin 2019, section 5.1, hybrid",
        rationale="visiting every vertex in each level is cheap where levels are few, and bottom-up does no more than that",
        complexity="O(D V + E) pushing, O(V + E) a level pulling",
        aliases=("sevilmis-layer-hybrid",),
    ),
    Strategy(
        name="queue_switch",
        device="cuda",
        plan=levels(QueueRun, switch(gpu_steps.push("thread"), pull_queue, is_dense)),
        memory=gpu_steps.memory,
        paper="Sevilmis, Sivri, Aydin 2019, section 5.2, hybrid; Beamer, Asanovic, Patterson 2012",
        rationale="push from a queue while it is small, pull while it holds a 32nd of the vertices, a thread a vertex",
        complexity="O(V + E) pushing, O(V + E) a level pulling",
        aliases=("sevilmis-frontier-hybrid",),
    ),
    Strategy(
        name="sparse_product",
        device="cuda",
        plan=levels(ProductRun, multiply),
        memory=product_memory,
        paper="Deng, Wang, Mu 2009, by Luo, Wong, Hwu 2010, section 2",
        rationale="a level is a matrix times a vector: equal work for all, and all edges in every level",
        complexity="O(V + D E)",
        aliases=("deng-spmv",),
    ),
)
