"""Multi-source SSSP on a GPU with one source per block. See source_per_block.cu, and
``source_per_thread`` for the CPU.

Random requests to the second-level cache bound the time: per relaxed edge the distance, and if it
is improved, also the mark and an entry of a pile.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..._arrays import as_distance
from ...cuda import cp
from ...cuda.compiler import Request, kernel
from ...cuda.kernel_spec import Entry
from ...cuda.launch import blocks_at_once, launch_blocks, named, resident_threads
from ...search.strategy import MultiSourceOutcome, slowdown, sources_per_worker
from .. import cpu_steps, gpu_steps
from ..near_far_gpu import first_width
from ..tuning import SourcePerBlockTuning

_DEFAULTS = SourcePerBlockTuning()


def _constants(tuning: SourcePerBlockTuning) -> dict[str, Any]:
    """Return the compile-time constants of the kernel that tuning sets, by name."""
    return {
        name.upper(): getattr(tuning, name)
        for name in ("queue_capacity", "warm_up", "few", "unroll")
    }


_FILE = Path(__file__).parents[1] / "kernels" / "source_per_block.cu"
_ENTRY = Entry(
    "sssp_source_per_block", _FILE, _DEFAULTS.block, constants=tuple(_constants(_DEFAULTS).items())
)
ENTRIES = (_ENTRY,)
GROUP = 1024
group_size = partial(min, GROUP)


def memory(shape, query, group: int) -> int:
    """Return the bytes of a run.

    Distances per source or per block; three piles and as many marks per block; and the arrays that
    compute predecessors and find overflows of one search at a time. ``shape`` is a ``Shape`` (size
    of the graph), ``query`` a ``Query``, and ``group`` the number of sources that are searched
    together.
    """
    n = shape.n_vertices
    blocks = min(group, _max_blocks(n, query.get_tuning(SourcePerBlockTuning)))
    # an overflow is found in all distances
    if query.output == "all" or query.limit is None:
        n_arrays = group
    else:
        n_arrays = blocks
    if query.output == "targets" and query.targets is not None:
        at_targets = group * query.targets.size
    else:
        at_targets = 0
    predecessor_bytes = group * n * shape.index if query.predecessors else 0
    # the state of one search, which finds predecessors and overflows
    single = gpu_steps.memory(n, shape.n_edges, query.predecessors)
    scratch = blocks * (3 * n * shape.index + 3 * (n // 8 + 4)) + 64 * group
    return (n_arrays * n + at_targets) * shape.weight + scratch + predecessor_bytes + single


def _block(n: int, tuning: SourcePerBlockTuning) -> int:
    """Return the threads per block for a graph of ``n`` vertices: fewer for small graphs, whose
    near piles are smaller.
    """
    if n >= tuning.large:
        return tuning.block
    return tuning.block // 2


def _max_blocks(n: int, tuning: SourcePerBlockTuning) -> int:
    """Return how many blocks the device holds at once, as threads allow, for a graph of ``n``
    vertices.
    """
    return tuning.in_flight or max(1, resident_threads() // _block(n, tuning))


def terms(shape, n_sources: int, group: int, machine) -> dict[str, float]:  # noqa: ARG001
    """Return how much work all searches take, by terms of the cost model: requests of all blocks;
    rounds and edges of the consecutive searches of one block.

    The model (``auto.costs``) multiplies each amount by fitted nanoseconds per unit. ``shape`` is a
    ``Shape``, and ``machine`` a ``Machine``, whose cores are multiprocessors. The shape says of the
    searches: ``reach`` and ``walked`` are the mean shares of the vertices that one reaches, and of
    the edges that it visits; ``most`` is the largest such share of the edges; ``likely_rounds`` is
    the mean number of rounds. ``scatter`` is the share of the edges whose two vertex numbers are
    far apart, so that caches do not help. ``group`` is ignored: blocks take sources as they become
    free.
    """
    # Blocks for small graphs have half as many threads, so that twice as many run at once.
    blocks_per_processor = 2 if shape.n_vertices >= _DEFAULTS.large else 4
    per_worker = sources_per_worker(n_sources, blocks_per_processor * machine.cores)
    edges = n_sources * shape.n_edges * shape.walked
    # Edges of the block that ends last, divided by those of the graph: mean searches, and the
    # largest one last. ``slowdown`` is the factor by which blocks on one multiprocessor slow each
    # other down: the square root of their number.
    searched_share = (per_worker - 1) * shape.walked + shape.most
    edges_of_block = (
        shape.n_edges * searched_share * slowdown(blocks_per_processor, n_sources, machine.cores)
    )
    # Bytes of distances that the blocks in flight access.
    distances = (
        min(n_sources, blocks_per_processor * machine.cores)
        * shape.n_vertices
        * shape.weight
        * shape.reach
    )

    return {
        "start": 1,
        "chain": (per_worker - 1) * shape.likely_rounds + shape.likely_depth,  # rounds of one block
        "share": edges_of_block,  # work of one block alone, which the others wait for in the end
        # ``detours``: how often an edge is relaxed again, as weights are uneven
        "again": edges_of_block * shape.detours,
        # ``unevenness``: the logarithm of the largest degree divided by the mean
        "uneven": edges_of_block * shape.unevenness,
        "edge": edges,  # of all searches
        "extra_round": per_worker * shape.extra_rounds,  # rounds that uneven weights add
        "vertex": n_sources * shape.n_vertices * shape.reach,  # reached in all searches
        # edges whose load misses the cache, which targets, weights and distances share
        "miss": edges * shape.scatter * machine.share_of_misses(8 * shape.n_edges + distances),
        # distances of 4 bytes
        "write": n_sources * shape.n_vertices * shape.weight / 4 * (shape.keep == "all"),
    }


def _variant(n: int, tuning: SourcePerBlockTuning) -> Entry:
    """Return the entry of the kernel with the constants for a graph of ``n`` vertices."""
    return _ENTRY.variant(block=_block(n, tuning), **_constants(tuning))


def kernels(graph, query, group: int) -> list[Request]:  # noqa: ARG001
    """Return the kernels that ``plan`` needs for the same arguments, so that they can be compiled
    before it is called. ``group`` is ignored: the kernel serves groups of any size.
    """
    entry = _variant(graph.n_vertices, query.get_tuning(SourcePerBlockTuning))
    return [Request(entry, graph.targets.dtype, graph.weights.dtype)]


def plan(graph, query, group: int):
    """Allocate and compile; return ``traverse(sources, lists=None)`` for up to ``group`` vertex
    numbers at once.

    ``graph`` is a ``Graph`` on a GPU, and ``query`` a ``Query``, the options of the search.
    """
    run = _Run(graph, query, group)

    def traverse(sources, lists=None) -> MultiSourceOutcome:
        """Search from the vertex numbers ``sources``. Return the outcome, a row per source:
        distances of all vertices or at the targets, and predecessors if they are wanted.

        ``lists`` (``TargetLists``) are the targets of each source, if each has its own, else None.
        If the query outputs distances at targets, those at the lists are one array, list after
        list.
        """
        sources = np.asarray(sources, np.int64)
        run.wait_for(lists)  # sets the targets of each source, if it has its own
        rounds, complete, below = run.search(sources)
        # None if no predecessors are wanted. PrecisionError if a distance overflows.
        predecessor = gpu_steps.finish_each(run.single, sources, run.distance)
        # ``complete`` is infinite where a search was not stopped by its targets: then the limit of
        # the query is the bound.
        limits = [query.limit if np.isinf(distance) else float(distance) for distance in complete]
        # No finite distance of a search is beyond its last threshold.
        highest = float(below.max(initial=0))
        return MultiSourceOutcome(
            run.distances(sources.size), predecessor, limits, rounds, below=highest
        )

    return traverse


class _Run:
    """The state of the searches from a group of sources: distances, and the piles and marks of each
    block.

    A vertex below a threshold is near, any other queued one is far. Attributes without an
    underscore are passed to the kernel by their names. n is the number of vertices, and blocks the
    number of blocks that run at once.

    - ``single``: state of one search, which finds predecessors and overflows; None if it is not
      needed.
    - ``distance``: of shape (group, n) if ``_keeps_rows``, else (blocks, n): each block then uses one
      row for all its searches.
    - ``target_vertices``, ``target_offsets``: the targets, int64, and where those of each source
      begin. Both None without targets; the offsets None if all sources have the same targets.
    - ``at_target_vertices``: distances of shape (group, n_targets), or of the lists one after the
      other. None unless these are the output.
    - ``piles``: vertices of shape (blocks, 3, n): what shared memory does not hold of two near piles,
      and the far pile.
    - ``queued``: uint32 bits of shape (blocks, 3, words), one per vertex: set if the vertex is on that
      pile.
    - ``taken``: int64 array of shape (1,): the number of the next source that a block takes.
    - ``rounds``: int32 array of shape (group,), output.
    - ``_bounds``: of shape (2, group), output: the distance up to which each search is complete, and
      its last threshold.
    - ``width``: scalar of the type of the weights, of the first pile.
    """

    def __init__(self, graph, query, group: int):
        """Compile the kernel, and allocate for up to ``group`` sources."""
        n = graph.n_vertices
        index = graph.targets.dtype
        real = graph.weights.dtype
        self._graph = graph
        self._query = query
        tuning = query.get_tuning(SourcePerBlockTuning)
        self._kernel = kernel(_variant(n, tuning), index, real)
        self._n_blocks = max(1, min(group, _max_blocks(n, tuning), blocks_at_once(self._kernel)))

        # Predecessors and overflows are found in the distances of all vertices, a row per source.
        may_overflow = query.limit is None and cpu_steps.may_overflow(graph)
        self.single = gpu_steps.Run(graph, query) if query.predecessors or may_overflow else None
        self._keeps_rows = query.output == "all" or self.single is not None
        self.distance = cp.empty((group if self._keeps_rows else self._n_blocks, n), real)
        self.target_vertices = query.copy_targets_to_gpu()

        self.target_offsets = self.at_target_vertices = None
        if query.output == "targets" and query.targets is not None:
            self.at_target_vertices = cp.empty((group, query.targets.size), real)
        # What each block has in global memory, and what the searches report.
        self.piles = cp.empty((self._n_blocks, 3, n), index)
        self.queued = cp.empty((self._n_blocks, 3, -(-n // 32)), np.uint32)
        self.taken = cp.zeros(1, np.int64)
        self.rounds = cp.zeros(group, np.int32)
        self._bounds = cp.zeros((2, group), real)
        self.limit = as_distance(query.limit, real)
        self.width = first_width(graph, query.may_stop)

    def wait_for(self, lists) -> None:
        """Set the targets of the next search, if each source has its own.

        ``lists`` are ``TargetLists``. With None the targets of the query stay.
        """
        if lists is None:
            return
        self.target_offsets = cp.asarray(lists.offsets)
        self.target_vertices = cp.asarray(lists.vertices)
        if self._query.output == "targets":
            self.at_target_vertices = cp.empty(lists.vertices.size, self.distance.dtype)

    def search(self, sources) -> tuple[list[int], np.ndarray, np.ndarray]:
        """Search from each of ``sources``, int64 vertex numbers of shape (k,).

        Return for each search its rounds; the distance up to which it is complete, infinite for
        everywhere; and its last threshold. All have k elements; the last two are NumPy arrays.
        """
        graph = self._graph
        k = sources.size
        # The kernel takes distances as integers in the same order, for atomic minima.
        key_type = f"i{self.distance.itemsize}"
        self.taken.data.memset_async(0, self.taken.nbytes)
        complete, below = self._bounds.view(key_type)

        keys_at_targets = None
        if self.at_target_vertices is not None:
            keys_at_targets = self.at_target_vertices.view(key_type)
        # By name: these, public attributes of this run, and arrays of the graph. The kernel takes
        # those that its struct declares.
        args = named(
            self,
            graph,
            sources=cp.asarray(sources),
            n_sources=np.int64(k),
            is_per_source=np.int32(self._keeps_rows),
            keys=self.distance.view(key_type),
            at_target_vertices=keys_at_targets,
            complete=complete,
            below=below,
        )
        launch_blocks(self._kernel, min(self._n_blocks, k), args)
        return self.rounds[:k].get().tolist(), *self._bounds.get()[:, :k]

    def distances(self, k: int):
        """Return the distances of the last search, from ``k`` sources: of shape (k, n), (k,
        n_targets) for targets of all sources, or (n_targets,) for lists.
        """
        if self.at_target_vertices is None:
            return self.distance[:k]
        if self._query.has_target_lists:
            return self.at_target_vertices
        return self.at_target_vertices[:k]
