"""BFS-4K: two kernels, four ways to advance, and the rules that choose between them at each level.

Busato, Bombieri. BFS-4K: an efficient implementation of BFS for Kepler GPU architectures. IEEE TPDS
2015. Every feature is a knob (``params.Bfs4kKnobs``). Two differences from the paper: high-degree
vertices are taken from a list of all of them, not from the frontier, which may hold them twice; and
predecessors are the smallest, so that no race decides them.

``graph`` is a Graph on the GPU, and ``query`` says what a search computes: predecessors or none, a
limit of hops, targets, knobs. A ``Run`` is the state of a search, which a plan uses again for each
source. ``step`` is called with the run and the level of its frontier until the frontier is empty.
Numbers in parentheses are sections of the paper.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ...bfs import gpu_steps
from ...bfs.host_loop import levels
from ...cuda import cp
from ...cuda.compiler import kernel
from ...cuda.csr_build import degree_statistics
from ...cuda.kernel_spec import WARP, make_entries
from ...cuda.launch import (
    MAX_CHILDREN,
    Named,
    PackedLaunches,
    max_grid,
    n_blocks,
    resident_threads,
    shared_memory,
    threads_per_multiprocessor,
)
from ...errors import StrategyError
from ...search.strategy import Strategy
from .params import Bfs4kKnobs

_FILE = Path(__file__).parent / "kernels" / "bfs_4k.cu"

# Numbers by which the kernel file knows the values of knobs and the ways to advance, which is to
# visit the edges of a frontier. They are the same there.
_DUPLICATES = {"keep": 0, "hash64": 1, "atomic": 2}
_APPEND = {"thread": 0, "warp": 1, "block": 2}
_HEAVY = {"none": 0, "blocks": 1, "children": 2}
_VIRTUAL_WARPS, _SHARED_READS, _DISCOVERY, _EXTENDED = range(4)  # ways to advance
# what kernels count, in the order of the kernel file: duplicates that Hash64 finds, its conflicts,
# vertices queued, edges visited, and child kernels
_COUNTED = ("duplicates", "conflicts", "queued", "edges", "children")

# what the host counts: launches of either kernel, and queues that were too small
_STEPS = ("single_block", "many_blocks", "overflows")
_RESERVED = 2048  # bytes of a block's shared memory for other variables and for the system
_TABLE_WORD = 8  # bytes of an entry of the hash table

_CONSTANTS = (("DUPLICATES", 1), ("APPEND", 2), ("HEAVY", 0), ("COUNTING", 0))
_entry = make_entries(_FILE, 128, constants=_CONSTANTS)
MANY_BLOCKS = _entry("bfs_4k_many_blocks")
SINGLE_BLOCK = _entry("bfs_4k_single_block", block=1024)  # as many threads as a block may have
# Launched by MANY_BLOCKS only. It is declared so that its arguments are checked like those of the
# others.
CHILD = _entry("bfs_4k_child")
ENTRIES = (MANY_BLOCKS, SINGLE_BLOCK, CHILD)


def rule(mean: float, deviation: float, largest: int) -> Bfs4kKnobs:
    """Return the knobs for a graph by the mean, the standard deviation and the largest of its
    degrees: section 7 of the paper in numbers, with what an H200 changes.

    As published, ``k1`` grows with the mean and the deviation from 4 to 32; ``k2`` is for degrees
    beyond 2,048; ``k4`` is 2 for low and uneven degrees and 0 for high ones; ``k5`` is 0 for high
    degrees. Measured on an H200: its shared memory holds eight times the frontier, so that a single
    block runs the whole of a search on a road network; there nothing is gained by searching for
    edges. A compare-and-swap makes no duplicates, at about the cost of Hash64
    (docs/published/bfs-4k.md).
    """
    # These bounds are what the paper's words mean here.
    is_high = mean >= 16
    is_uneven = deviation > 2 * mean
    is_even_and_low = not is_high and deviation < mean
    knobs = Bfs4kKnobs(k2=0.0, k6=256, k7=17, append="block", duplicates="atomic")
    if largest > 2048:
        knobs = replace(knobs, k2=0.0015)
    if is_high or deviation > 32:
        knobs = replace(knobs, k1=32)
    elif mean >= 8:
        knobs = replace(knobs, k1=8)
    if is_high:
        return replace(knobs, k4=0, k5=0)
    if is_even_and_low:
        return replace(knobs, k4=0, k5=8, append="warp")
    if is_uneven:
        return replace(knobs, k4=2)
    return knobs


def high_degree_vertices(graph, knobs: Bfs4kKnobs):
    """Return the numbers of the high-degree vertices of a graph, which are expanded separately, as
    a CuPy array of the targets' type; and the smallest degree of one.

    They are at most the fraction ``k2`` of all vertices, and at most as many as child kernels may
    wait on the device. Each has edges enough for the threads of a whole block. If there are none,
    the array is empty, and the degree is more than any vertex has.
    """
    max_vertices = min(int(knobs.k2 * graph.n_vertices), MAX_CHILDREN)
    if knobs.heavy == "none" or max_vertices == 0:
        return cp.zeros(0, graph.targets.dtype), graph.n_edges + 1
    degrees = cp.diff(graph.offsets)
    min_degree = knobs.k3 * knobs.k6
    candidates = cp.flatnonzero(degrees >= min_degree)
    if candidates.size > max_vertices:
        # Take those of the highest degrees. Degrees of which not all vertices fit are left out
        # entirely, so that the degree alone says which vertices are expanded separately.
        highest_rejected = int(cp.sort(degrees[candidates])[-max_vertices - 1])
        min_degree = highest_rejected + 1
        candidates = candidates[degrees[candidates] >= min_degree]
    return candidates.astype(graph.targets.dtype), min_degree


def _fit_to_shared_memory(knobs: Bfs4kKnobs, block_bytes: int, index) -> Bfs4kKnobs:
    """Return the knobs with a ``k5``, the vertices per thread of frontiers for a single block, such
    that these fit into ``block_bytes`` of shared memory. ``index`` is the type of vertex numbers.
    """
    # Two queues, of this frontier and of the next one, leave space for a table of two entries.
    fits = (block_bytes - _RESERVED - 2 * _TABLE_WORD) // (2 * SINGLE_BLOCK.block * index.itemsize)
    return replace(knobs, k5=min(knobs.k5, fits))


class _SharedMemory:
    """The layout of a block's shared memory: two queues, if the block works alone, and the hash
    table that finds duplicates, Hash64 (5.5).

    Parameters
    ----------
    size : int
        Bytes of shared memory.
    queue_capacity : int
        Vertices that each queue holds; 0 for no queues.
    index : dtype
        Type of vertex numbers.
    knobs : Bfs4kKnobs

    Attributes
    ----------
    queue_capacity : int
        As given.
    hash_bits : int
        Binary logarithm of the number of entries of the table.
    nbytes : int
        Bytes of the queues and the table.
    """

    def __init__(self, size: int, queue_capacity: int, index, knobs: Bfs4kKnobs):
        self.queue_capacity = queue_capacity
        queue_bytes = 2 * queue_capacity * index.itemsize
        table_bytes = size - _RESERVED - queue_bytes
        if table_bytes < 2 * _TABLE_WORD:
            raise StrategyError(
                f"knob k5 = {knobs.k5} of bfs_4k needs {queue_bytes} bytes of shared memory for its "
                f"queues, and a block of this device has {size}; take a smaller one"
            )
        # The largest power of two of entries that fits. Without a table the kernel gets 1, which it
        # does not read.
        self.hash_bits = 1
        self.nbytes = queue_bytes
        if knobs.duplicates == "hash64":
            self.hash_bits = (table_bytes // _TABLE_WORD).bit_length() - 1
            self.nbytes += _TABLE_WORD << self.hash_bits


class Run(gpu_steps.Run):
    """The state of a traversal: the knobs, the high-degree vertices, and the kernels compiled for
    them.

    Attributes named like fields of the kernels' argument struct are passed to the kernels. Its
    three counters are the size of the next frontier, the targets that are not reached, and the
    levels that a launch has made.
    """

    def __init__(self, graph, query):
        super().__init__(graph, query, n_counters=3)
        index = graph.targets.dtype
        block_bytes, multiprocessor_bytes = shared_memory()
        self.knobs = knobs = query.knobs or _fit_to_shared_memory(
            rule(*degree_statistics(graph.offsets)), block_bytes, index
        )
        self.limit = query.limit  # the largest number of hops, None for no limit
        self.high_degree, min_high_degree = high_degree_vertices(graph, knobs)
        self.n_high_degree = np.int32(self.high_degree.size)
        self.min_high_degree = np.int64(min_high_degree)
        self.coalesced_from = np.int32(knobs.k7)  # mean vertices per thread's queue: see the knob

        # The kernel of many blocks, each with its share of a multiprocessor's memory. Code for
        # high-degree vertices is compiled only if there are any.
        heavy = knobs.heavy if self.high_degree.size else "none"
        constants: dict[str, Any] = {
            "DUPLICATES": _DUPLICATES[knobs.duplicates],
            "APPEND": _APPEND[knobs.append],
            "COUNTING": int(knobs.counters),
        }
        variant: dict[str, Any] = {
            "block": knobs.k6,
            "launches_children": heavy == "children",
            "HEAVY": _HEAVY[heavy],
            **constants,
        }
        bytes_per_block = multiprocessor_bytes * knobs.k6 // threads_per_multiprocessor()
        self.many_memory = _SharedMemory(bytes_per_block, 0, index, knobs)
        many_blocks = kernel(MANY_BLOCKS.variant(**variant), index)
        self.many_blocks = PackedLaunches(many_blocks, shared_bytes=self.many_memory.nbytes)
        self.resident = resident_threads()

        # The kernel of a single block, if the knobs give it frontiers.
        self.max_for_one_block = knobs.k5 * SINGLE_BLOCK.block  # vertices of a frontier
        if self.max_for_one_block:
            # Only many blocks launch children: the single block expands high-degree vertices
            # itself.
            alone = SINGLE_BLOCK.variant(
                HEAVY=_HEAVY["blocks" if self.high_degree.size else "none"], **constants
            )
            # Twice the capacity saves most spills to global memory, if shared memory is large
            # enough.
            queue_capacity = self.max_for_one_block
            if 4 * queue_capacity * index.itemsize <= block_bytes // 2:
                queue_capacity *= 2
            self.single_memory = _SharedMemory(block_bytes, queue_capacity, index, knobs)
            self.single_block = PackedLaunches(
                kernel(alone, index), shared_bytes=self.single_memory.nbytes
            )
        self.on_device = cp.zeros(len(_COUNTED), np.int64)

    def start(self, source: int) -> None:
        """Begin a search from a vertex number, with all counts at 0."""
        super().start(source)
        if self.knobs.counters:
            self.on_device.fill(0)
        self.steps = dict.fromkeys(_STEPS, 0)

    @property
    def counted(self) -> dict[str, int] | None:
        """What the kernels and the host have counted since the search began, by name; None without
        the knob ``counters``.
        """
        if not self.knobs.counters:
            return None
        return dict(zip(_COUNTED, self.on_device.get().tolist(), strict=True)) | self.steps

    def arguments(self) -> Named:
        """Return the arguments of both kernels by name, without those that each launch adds."""
        knobs = self.knobs
        n = self.graph.n_vertices
        return super().arguments() | {
            "counted": self.on_device,
            "u": self.graph.targets.dtype.type(0),  # child kernels alone have a vertex of their own
            "edges_per_child": np.int32(knobs.k3 * knobs.k6),
            # No path has as many hops as there are vertices.
            "last_level": np.int32(n if self.limit is None else min(self.limit, n)),
            "max_frontier": np.int32(self.max_for_one_block),
            "max_width": np.int32(WARP if knobs.dynamic_width else knobs.k1),
            # vertices of a frontier below which the lanes of the single block search for their
            # edges; of many blocks the field ``advance`` decides
            "discover_below": np.int32(SINGLE_BLOCK.block // knobs.k4 if knobs.k4 else 0),
            "discovery": np.int32(_EXTENDED if knobs.extended else _DISCOVERY),
        }

    def launch(
        self,
        launches: PackedLaunches,
        memory: _SharedMemory,
        blocks: int,
        level: int,
        advance: int,
        width: int,
    ):
        """Launch either kernel over the frontier of a level.

        ``launches`` is the kernel, ``memory`` the layout of its shared memory, and ``blocks`` the
        number of its blocks. ``level`` is that of the frontier. ``advance`` is the way to visit
        edges, one of the four numbers at the top of the file, and ``width`` the number of lanes
        that share a vertex.
        """
        sizes = {
            "hash_bits": np.int32(memory.hash_bits),
            "queue_capacity": np.int32(memory.queue_capacity),
        }
        # Packed arguments are known by the address of the queue, as the two queues exchange places.
        launches.launch_blocks(
            blocks,
            self.frontier.queue.data.ptr,
            lambda: self.arguments() | sizes,
            n_frontier=np.int64(self.frontier.size),
            level=np.int32(level),
            advance=np.int32(advance),
            width=np.int32(width),
        )


def step(run: Run, level: int) -> int:
    """Expand the frontier of a level with the kernel that suits its size; return how many levels
    that made. A single block makes several levels in one launch.
    """
    frontier = run.frontier
    frontier.clear_counters()
    is_alone = frontier.size <= run.max_for_one_block
    if is_alone:
        run.steps["single_block"] += 1
        run.launch(run.single_block, run.single_memory, 1, level, _VIRTUAL_WARPS, run.knobs.k1)
    else:
        run.steps["many_blocks"] += 1
        _launch_many_blocks(run, level)
    run.count_targets_left()  # a kernel, whose result is the second counter below

    size, run.targets_left, n_levels = frontier.read_counters()
    if not is_alone:
        n_levels = 1  # only the kernel of a single block counts its levels
    if size > frontier.capacity:  # the queue is cut off: its level is listed from the distances
        run.steps["overflows"] += 1
        frontier.clear_counters()
        run.list_level(level + n_levels, frontier.next, frontier.counters)
        size, *_ = frontier.read_counters()
    frontier.swap(size)
    return n_levels


def _launch_many_blocks(run: Run, level: int) -> None:
    """Launch the kernel of many blocks for one level, with the way to visit edges and the number of
    threads that suit the frontier.
    """
    knobs = run.knobs
    size = run.frontier.size
    advance, width = choose_advance(knobs, size, run.resident)
    if advance == _VIRTUAL_WARPS:
        threads = size * width
    else:
        threads = size
    largest = max_grid(knobs.k6)
    # As many blocks as the threads need, but at least one per high-degree vertex that the frontier
    # may hold; and never more than fill the device.
    blocks = max(n_blocks(threads, knobs.k6, largest), min(run.high_degree.size, size, largest))
    run.launch(run.many_blocks, run.many_memory, blocks, level, advance, width)


def choose_advance(knobs: Bfs4kKnobs, size: int, resident: int) -> tuple[int, int]:
    """Return the way in which many blocks visit the edges of a frontier of ``size`` vertices, one
    of the four numbers at the top, and how many lanes share a vertex (5.2, 5.4, 5.6).

    ``resident`` is the number of threads that the device runs at once.
    """
    # A small frontier: lanes search for their edges, so that none is idle.
    if knobs.k4 and size < resident // knobs.k4:
        return (_EXTENDED if knobs.extended else _DISCOVERY), WARP
    # Else virtual warps, which grow as long as there are threads for them.
    width = knobs.k1
    while knobs.dynamic_width and width < WARP and 2 * width * size <= resident:
        width *= 2
    if knobs.shared_reads and width == WARP and size > resident:
        return _SHARED_READS, width
    return _VIRTUAL_WARPS, width


def memory(n_vertices: int, n_edges: int, predecessors: bool) -> int:
    """Return the bytes of device memory of a run: those of any traversal with queues, and of the
    longest list of high-degree vertices.
    """
    return gpu_steps.memory(n_vertices, n_edges, predecessors) + 8 * min(n_vertices, MAX_CHILDREN)


STRATEGIES = (
    Strategy(
        name="bfs_4k",
        device="cuda",
        plan=levels(Run, step),
        memory=memory,
        paper="Busato, Bombieri 2015 (BFS-4K)",
        rationale=(
            "the frontier's size chooses the kernel, the lanes per vertex, and the search for edges"
        ),
        complexity="O(V + E), and more for duplicates that remain",
        knobs=Bfs4kKnobs,
    ),
)
