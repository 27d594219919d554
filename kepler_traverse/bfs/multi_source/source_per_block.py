"""Multi-source BFS on a GPU with one source per block. See source_per_block.cu, and
``source_per_thread`` for the CPU.

For graphs of many small levels. There sources cannot share a pass over edges, and a barrier of the
grid would dominate the time of a level. Random requests to the second-level cache bound the time: 3
to 4 per reached vertex, for its offsets, edges and hop count, of 152 billion per second.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..._arrays import MAX_HOP_COUNT, Array, hops_dtype
from ...cuda import cp
from ...cuda.compiler import Request, kernel, start_compiling
from ...cuda.kernel_spec import Entry, struct_layout
from ...cuda.launch import (
    blocks_at_once,
    launch_blocks,
    named,
    resident_threads,
    shared_memory,
    threads_per_multiprocessor,
)
from ...errors import StrategyError
from ...search.strategy import MultiSourceOutcome, slowdown, sources_per_worker
from ..tuning import SourcePerBlockTuning
from .bit_parallel_gpu import PREDECESSORS, kernels_for, predecessors_from_hops, row_pitch

_DEFAULTS = SourcePerBlockTuning()
# Compiled into the kernel.
_BUCKET = 4  # slots per bucket of the hash table
_LEVEL_BITS = 4  # of a word of the table; the others hold a vertex
# What a search reports in place of the level at which it was stopped: it was not stopped; or it
# found a vertex beyond the largest hop count, or level, that its arrays hold.
_STOPPED_NOWHERE = -1
_TOO_DEEP = -2

_MAX_VERTICES = 2 ** (32 - _LEVEL_BITS) - 1
_FILE = Path(__file__).parents[1] / "kernels" / "source_per_block.cu"
_ENTRIES = {
    np.dtype(hops): Entry(
        f"bfs_source_per_block_{8 * np.dtype(hops).itemsize}",
        _FILE,
        _DEFAULTS.sharing_block,
        constants=(
            ("SHARED_BITS", 0),
            ("SHARED_WORDS", 0),
            ("SLOTS", _DEFAULTS.min_slots),
            ("QUEUE_CAPACITY", _DEFAULTS.queue_capacity),
            ("UNDIRECTED", 0),
            ("UNROLL", _DEFAULTS.bits_unroll),
            ("MAX_HOPS", _DEFAULTS.short_hops),
            ("BUCKET", _BUCKET),
            ("LEVEL_BITS", _LEVEL_BITS),
            ("STOPPED_NOWHERE", _STOPPED_NOWHERE),
            ("TOO_DEEP", _TOO_DEEP),
        ),
    )
    for hops in ("int16", "int32")
}
ENTRIES = tuple(_ENTRIES.values())
GROUP = 1024
group_size = partial(min, GROUP)
_SLOT_BYTES = 5  # a word, and a quarter of one that a bucket has
_BLOCK_SHARED = 1024  # static shared memory, and some that the driver takes
_COUNT_BYTES = 12  # of a level: int32 in a run, and int64 in what is made of it
_SOURCE_BYTES = 32  # what a run holds per source besides distances
_RUN_BYTES = 1024  # counters of all blocks
# What an estimate takes of a multiprocessor; a run asks the device itself.
_MAX_BLOCKS_PER_PROCESSOR = 4
_SHARED = 227 << 10


@dataclass(frozen=True)
class _Layout:
    """Resources of a block."""

    block: int  # threads
    shared_bits: bool  # True: one visited bit per vertex; False: a hash table of visited vertices
    slots: int  # words of the hash table; with visited bits one bucket, which is not used
    queue_capacity: int  # vertices that a queue holds in shared memory
    nbytes: int  # of shared memory: visited bits or hash table, and two queues
    shared_words: int = 0  # words of the visited bits in shared memory; 0: all of them
    outside: int = 0  # bytes of the visited bits in global memory


def _choose_layout(n: int, tuning: SourcePerBlockTuning) -> _Layout:
    """Return the resources of a block for a graph of ``n`` vertices.

    A block marks visited vertices by bits in shared memory if they fit, or if a part of them does.
    Else it has a hash table of the vertices of the last levels.
    """
    # The same for all graphs with visited bits: it is a compile-time constant, and each value of it
    # needs a kernel of its own.
    queue_capacity = tuning.queue_capacity
    bytes_per_block, _ = shared_memory()
    available = bytes_per_block - _BLOCK_SHARED

    # All visited bits in shared memory; blocks of other sizes where two share a multiprocessor.
    # Beside them are two queues of 4 bytes per vertex.
    bit_bytes = -(-n // 32) * 4
    # bytes of shared memory for visited bits, whole words: what the queues leave, up to a maximum
    shared_bytes = min(available - 8 * queue_capacity, tuning.max_shared_bits) // 4 * 4
    if bit_bytes <= shared_bytes:
        if 2 * (bit_bytes + 8 * queue_capacity) <= available:
            block = tuning.sharing_block
        else:
            block = tuning.alone_block
        return _Layout(block, True, _BUCKET, queue_capacity, bit_bytes + 8 * queue_capacity)

    # A part of the visited bits in shared memory, and the others in global memory, as long as these
    # are few bytes for all blocks together.
    processors = resident_threads() // threads_per_multiprocessor()
    shared_bytes = min(shared_bytes, tuning.split_bits)
    if shared_bytes and (bit_bytes - shared_bytes) * processors <= tuning.max_bits_outside:
        return _Layout(
            tuning.alone_block,
            True,
            _BUCKET,
            queue_capacity,
            shared_bytes + 8 * queue_capacity,
            shared_bytes // 4,
            bit_bytes - shared_bytes,
        )

    # Else a hash table. A level of a planar graph has about sqrt(n) vertices. The table holds three
    # levels and is less than half full. Its size is a power of two, as hashes are cut by a mask: at
    # most the power above ``n``, and at least ``min_slots`` if these fit.
    slots = min(1 << int(tuning.slots_per_root * n**0.5).bit_length(), 1 << int(n).bit_length())
    slots = max(slots, tuning.min_slots)
    while slots * (_SLOT_BYTES + 1) > available:
        slots //= 2
    # A queue has a vertex of 4 bytes per 8 slots: two queues take the 1 byte per slot added above.
    queue_capacity = max(queue_capacity, slots // 8)
    return _Layout(
        tuning.sharing_block, False, slots, queue_capacity, slots * _SLOT_BYTES + 8 * queue_capacity
    )


def _max_blocks(n: int, tuning: SourcePerBlockTuning) -> int:
    """Return how many blocks the device holds at once, as threads and shared memory allow, for a
    graph of ``n`` vertices.
    """
    if tuning.in_flight:
        return tuning.in_flight
    layout = _choose_layout(n, tuning)
    threads = threads_per_multiprocessor()
    processors = resident_threads() // threads
    _, bytes_per_processor = shared_memory()
    by_memory = bytes_per_processor // (layout.nbytes + _BLOCK_SHARED)
    return processors * max(1, min(threads // layout.block, by_memory))


def memory(shape, query, group: int) -> int:
    """Return the bytes of a run: distances per source or per block, spilled queues and visited bits
    per block, counts of levels, distances of targets, and predecessors.

    ``shape`` is a ``Shape`` (size and depth of the graph), ``query`` a ``Query``, and ``group`` the
    number of sources that are searched together.
    """
    n = shape.n_vertices
    depth = 2 * shape.depth  # other searches may be deeper than the one that is known
    tuning = query.get_tuning(SourcePerBlockTuning)  # the defaults, unless the query has its own
    blocks = min(group, _max_blocks(n, tuning))
    n_arrays = group if query.output == "all" else blocks
    width = max(hops_dtype(depth).itemsize, 2)
    if hops_dtype(shape.depth).itemsize == 1:
        width += 1  # results of int8 exist together with the int16 that they are converted from
    distances = n_arrays * row_pitch(n) * width  # rows are padded to ``row_pitch`` elements
    queues = 2 * shape.index * min(n, tuning.spill_capacity)
    spilled = blocks * (queues + _choose_layout(n, tuning).outside)

    counts = at_targets = predecessor_bytes = 0
    if query.output == "counts":
        n_levels = min(n, max(depth, tuning.short_hops)) + 1
        counts = group * n_levels * _COUNT_BYTES
    if query.targets is not None:
        at_targets = 4 * group * query.targets.size
    if query.predecessors:
        predecessor_bytes = group * n * shape.index
        if shape.directed:  # the edges reversed, with their offsets
            predecessor_bytes += shape.n_edges * shape.index + 8 * n
    return (
        distances
        + spilled
        + counts
        + at_targets
        + predecessor_bytes
        + group * _SOURCE_BYTES
        + _RUN_BYTES
    )


def terms(shape, n_sources: int, group: int, machine) -> dict[str, float]:  # noqa: ARG001
    """Return how much work all searches take, by terms of the cost model: requests of all blocks;
    levels and edges of the consecutive searches of one block.

    The model (``auto.costs``) multiplies each amount by fitted nanoseconds per unit. ``machine`` is
    a ``Machine``, whose cores are multiprocessors. ``shape`` is a ``Shape``, which says of the
    searches: ``reach`` and ``walked`` are the mean shares of the vertices that one reaches, and of
    the edges that it visits; ``most`` is the largest such share of the edges; ``likely_rounds`` is
    the mean number of levels, and ``likely_depth`` the largest one. ``scatter`` is the share of the
    edges whose two vertex numbers are far apart, so that caches do not help. ``unevenness`` is the
    logarithm of the largest degree divided by the mean. ``group`` is ignored: blocks take sources
    as they become free. For a graph of too many vertices the only term is infinite.
    """
    if shape.n_vertices > _MAX_VERTICES:
        return {"start": float("inf")}  # the strategy refuses such graphs
    # Shared memory of a block: a visited bit per vertex, and two queues of 4 bytes per vertex.
    block_bytes = shape.n_vertices // 8 + 8 * _DEFAULTS.queue_capacity
    blocks_per_processor = max(1, min(_MAX_BLOCKS_PER_PROCESSOR, _SHARED // block_bytes))
    per_worker = sources_per_worker(n_sources, blocks_per_processor * machine.cores)
    edges = n_sources * shape.n_edges * shape.walked
    # Edges of the block that ends last, divided by those of the graph: mean searches, and the
    # largest one last. ``slowdown`` is the factor by which blocks on one multiprocessor slow each
    # other down: the square root of their number.
    searched_share = (per_worker - 1) * shape.walked + shape.most
    edges_of_block = (
        shape.n_edges * searched_share * slowdown(blocks_per_processor, n_sources, machine.cores)
    )
    # distances that all blocks write at the same time
    results = min(n_sources, blocks_per_processor * machine.cores) * shape.n_vertices * shape.reach
    return {
        "start": 1,
        "chain": (per_worker - 1) * shape.likely_rounds + shape.likely_depth,  # levels of one block
        "share": edges_of_block,  # work of one block alone, which the others wait for in the end
        "uneven": edges_of_block * shape.unevenness,  # the more, the longer its threads wait
        # edges whose visited bit lies outside shared memory, which has 8 bits per byte
        "spill": edges_of_block * shape.scatter * max(0.0, 1 - 8 * _SHARED / shape.n_vertices),
        # edges that all searches visit, and vertices that they reach
        "edge": edges,
        "vertex": n_sources * shape.n_vertices * shape.reach,
        # Edges whose load misses the cache, which targets (4 bytes per edge), offsets (8 bytes per
        # vertex) and distances share.
        "miss": edges
        * shape.scatter
        * machine.share_of_misses(4 * shape.n_edges + 8 * shape.n_vertices + results),
        # distances, where the query outputs those of all vertices
        "write": n_sources * shape.n_vertices * (shape.keep == "all"),
    }


def _variants(graph, layout: _Layout, tuning: SourcePerBlockTuning) -> dict[np.dtype, Entry]:
    """Return the entries of the kernel with the compile-time constants for a graph, by the type of
    hop counts: int16 or int32.
    """
    constants: dict[str, Any] = {
        "SHARED_BITS": int(layout.shared_bits),
        "SHARED_WORDS": layout.shared_words,
        "SLOTS": layout.slots,
        "QUEUE_CAPACITY": layout.queue_capacity,
        "UNDIRECTED": int(not graph.directed),
        "UNROLL": tuning.bits_unroll if layout.shared_bits else tuning.table_unroll,
        "MAX_HOPS": tuning.short_hops,
    }
    return {
        hops: entry.variant(block=layout.block, **constants) for hops, entry in _ENTRIES.items()
    }


def kernels(graph, query, group: int) -> list[Request]:  # noqa: ARG001
    """Return the kernels that ``plan`` needs for the same arguments, so that they can be compiled
    before it is called. ``group`` is ignored: the kernels serve groups of any size.
    """
    tuning = query.get_tuning(SourcePerBlockTuning)
    variants = _variants(graph, _choose_layout(graph.n_vertices, tuning), tuning)
    return [Request(entry, graph.targets.dtype) for entry in variants.values()]


def plan(graph, query, group: int):
    """Allocate and compile; return ``traverse(sources, lists=None)`` for up to ``group`` vertex
    numbers at once.

    ``graph`` is a ``Graph`` on a GPU, and ``query`` a ``Query``, the options of the search.
    """
    run = _Run(graph, query, group)

    def traverse(sources, lists=None) -> MultiSourceOutcome:
        """Search from the vertex numbers ``sources``. Return the outcome: a row per source of what
        ``query.output`` asks for, counts or distances, and predecessors if they are wanted.

        ``lists`` (``TargetLists``) are the targets of each source, if each has its own, else None.
        If the query outputs distances at targets, those at the lists are one array, list after
        list. Each search has a limit of its own in the outcome: the level at which the query's
        limit or its targets stopped it, else the limit of the query.
        """
        sources = np.asarray(sources, np.int64)
        run.wait_for(lists)  # sets the targets of each source, if it has its own
        levels, stops = run.search(sources)
        limits = [query.limit if stop == _STOPPED_NOWHERE else stop for stop in stops.tolist()]
        # A search that was not stopped has run out of vertices: its last level was empty.
        depth = int((levels - (stops == _STOPPED_NOWHERE)).max(initial=0))
        if query.predecessors:
            predecessor = run.predecessors(sources)
        else:
            predecessor = None
        if query.output == "counts":
            counts = run.counts(sources.size, depth)
        else:
            counts = None
        return MultiSourceOutcome(
            run.distances(sources.size, depth), predecessor, limits, levels.tolist(), counts
        )

    return traverse


class _Run:
    """The state of the searches from a group of sources. Distances keep the type that the last
    group needed.

    Attributes without an underscore are passed to the kernel by their names. n is the number of
    vertices, and blocks the number of blocks that run at once.

    - ``is_per_source``: 1 if each source has a row of ``distance``, 0 if each block has one.
    - ``distance``: hop counts of shape (group or blocks, ``pitch``), int16 or int32.
    - ``spill``: vertices of shape (blocks, 2, ``spill_capacity``): what two queues of a block do not
      hold in shared memory.
    - ``outside``: uint32 of shape (blocks, words): visited bits that shared memory does not hold.
    - ``target_vertices``, ``target_offsets``: the targets, int64, and where those of each source
      begin. Both None without targets; the offsets None if all sources have the same targets.
    - ``at_target_vertices``: hop counts of shape (group, n_targets), or of the lists one after the
      other. None unless these are the output.
    - ``taken``: int64 array of shape (1,): the number of the next source that a block takes.
    - ``outcome``: int64 array of shape (group,): per source two int32 in one word, the struct
      ``Outcome`` of the kernel: levels searched, and the level at which the search was stopped.
    - ``columns``: levels that can be counted per source, level 0 included.
    - ``counts_of_levels``: vertices per source and level, int32 of shape (group, ``columns``). None
      unless these are the output.
    """

    def __init__(self, graph, query, group: int):
        """Compile the kernels, and allocate for up to ``group`` sources.

        Raises StrategyError: the graph has too many vertices for the words of the hash table.
        """
        n = graph.n_vertices
        self._query = query
        self._graph = graph
        self._group = group
        if n > _MAX_VERTICES:
            raise StrategyError(
                f"strategy 'source_per_block' cannot take {_MAX_VERTICES + 1} vertices or more"
            )
        tuning = query.get_tuning(SourcePerBlockTuning)
        layout = _choose_layout(n, tuning)
        entries = _variants(graph, layout, tuning)
        start_compiling(Request(entry, graph.targets.dtype) for entry in entries.values())
        self._kernels = {
            hops: kernel(entry, graph.targets.dtype) for hops, entry in entries.items()
        }
        # As many blocks as run at once: each takes one source after another.
        self._shared_bytes = layout.nbytes
        fitting = min(
            blocks_at_once(compiled, self._shared_bytes) for compiled in self._kernels.values()
        )
        self._n_blocks = max(1, min(group, _max_blocks(n, tuning), fitting))

        # What blocks need besides shared memory, and the targets.
        self.pitch = np.int64(row_pitch(n))
        self.is_per_source = np.int32(query.output == "all")
        self.spill = cp.empty(
            (self._n_blocks, 2, min(n, tuning.spill_capacity)), graph.targets.dtype
        )
        self.spill_capacity = np.int64(self.spill.shape[2])
        self.outside = cp.empty((self._n_blocks, layout.outside // 4), np.uint32)
        self.target_vertices = query.copy_targets_to_gpu()
        self.target_offsets = None

        # Results, at first for hop counts of 16 bits.
        self.taken = cp.zeros(1, np.int64)
        self.outcome = cp.zeros(group, np.int64)
        self.columns = min(n, tuning.short_hops) + 1
        self._dtype = np.dtype(np.int16)
        self.distance: Array = None
        self.at_target_vertices: Array = None
        self.counts_of_levels: Array = None
        self._allocate(self._dtype)
        self._predecessor_kernels = (
            kernels_for(graph, 1, tuple(PREDECESSORS.values())) if query.predecessors else None
        )

    def _allocate(self, dtype) -> None:
        """Allocate the arrays of results for hop counts of type ``dtype``, int16 or int32."""
        output = self._query.output
        # Frees the old arrays before new ones are allocated.
        self.distance = self.at_target_vertices = self.counts_of_levels = None
        self._dtype = dtype
        self.distance = cp.empty(
            (self._group if output == "all" else self._n_blocks, self.pitch), dtype
        )
        if output == "targets" and self.target_vertices is not None:
            size = self.target_vertices.size
            self.at_target_vertices = cp.empty(
                size if self._query.has_target_lists else (self._group, size), dtype
            )
        if output == "counts":
            self.counts_of_levels = cp.empty((self._group, self.columns), np.int32)

    def wait_for(self, lists) -> None:
        """Set the targets of the next search, if each source has its own.

        ``lists`` are ``TargetLists``. With None the targets of the query stay.
        """
        if lists is None:
            return
        self.target_offsets = cp.asarray(lists.offsets)
        self.target_vertices = cp.asarray(lists.vertices)
        if self._query.output == "targets":
            self.at_target_vertices = cp.empty(lists.vertices.size, self._dtype)

    def search(self, sources) -> tuple[np.ndarray, np.ndarray]:
        """Search from each of ``sources``, int64 vertex numbers of shape (k,).

        Return the number of levels that each search took, and the level at which it was stopped by
        the limit of the query or its targets, or _STOPPED_NOWHERE; both int64 of shape (k,).
        """
        on_device = cp.asarray(sources)
        while True:
            self._search(on_device)
            # the words on the host, as a structured array with the fields of the kernel's struct
            outcome = self.outcome[: sources.size].get().view(struct_layout(_FILE, "Outcome"))
            levels = outcome["levels"].astype(np.int64)
            stops = outcome["stopped"].astype(np.int64)
            if not (stops == _TOO_DEEP).any():
                return levels, stops
            # The type of hop counts, or ``columns`` (the levels that can be counted per source),
            # was too small for one of the searches: all are repeated, with int32 and more columns.
            # The repetitions end: int32 holds all hop counts, and no search has more levels than
            # there are vertices.
            self.columns = min(self._graph.n_vertices + 1, 4 * self.columns)
            self._allocate(np.dtype(np.int32))

    def _search(self, sources) -> None:
        """Launch the search from each of ``sources``, vertex numbers on the GPU.

        A search whose hop counts exceed their type, or whose levels exceed ``columns``, leaves
        _TOO_DEEP in its outcome.
        """
        graph = self._graph
        query = self._query
        # Blocks take sources from number 0 on, and add to the counts.
        self.taken.data.memset_async(0, self.taken.nbytes)
        if self.counts_of_levels is not None:
            self.counts_of_levels.data.memset_async(0, self.counts_of_levels.nbytes)
        last_level = np.int32(MAX_HOP_COUNT if query.limit is None else query.limit)
        # By name: these, public attributes of this run, the targets, and arrays of the graph. The
        # kernel takes those that its struct declares.
        args = named(
            self,
            graph,
            sources=sources,
            n_sources=np.int64(sources.size),
            last_level=last_level,
            columns=np.int64(self.columns),
            counts=self.counts_of_levels,
        )
        blocks = min(self._n_blocks, sources.size)
        launch_blocks(self._kernels[self._dtype], blocks, args, shared_bytes=self._shared_bytes)

    def predecessors(self, sources):
        """Return the predecessors of shape (k, n) that follow from the distances of the last
        search, which was from ``sources``.
        """
        graph = self._graph
        return predecessors_from_hops(graph, self._predecessor_kernels, sources, self.distance)

    def distances(self, k: int, depth: int):
        """Return the hop counts of the last search, -1 where unreached; None where they are only
        counted.

        The shape is (k, n) for ``k`` sources, (k, n_targets) for targets of all sources, or
        (n_targets,) for lists. The type is the narrowest one that holds ``depth``, the largest hop
        count.
        """
        if self._query.output == "counts":
            return None
        if self._query.output == "targets":
            distance = self.at_target_vertices
            if not self._query.has_target_lists:
                distance = distance[:k]
        else:
            distance = self.distance[:k, : self._graph.n_vertices]
        return distance.astype(hops_dtype(depth), copy=False)

    def counts(self, k: int, depth: int):
        """Return the number of vertices per source and level, int32 of shape (k, depth + 1).

        ``k`` is the number of sources of the last search, and ``depth`` the last level that has
        vertices. The array is valid until the next search.
        """
        return self.counts_of_levels[:k, : depth + 1]
