"""BFS-4K: two kernels, four ways to walk a frontier, and the rules that choose between them at every step.

Busato, Bombieri. BFS-4K: an efficient implementation of BFS for Kepler GPU architectures. IEEE TPDS 2015. Every feature is
a knob (``tuning.Bfs4kKnobs``). What differs from the paper: heavy vertices are found in a list of them all rather than in
the frontier, which may hold them twice; and predecessors are the smallest, so that they do not depend on a race.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from ...cuda import cp
from ...cuda.compiler import kernel
from ...cuda.csr_build import degree_statistics
from ...cuda.kernel_spec import WARP, Entry, arguments, struct_arguments
from ...cuda.launch import (
    MAX_CHILDREN,
    launch,
    launch_blocks,
    max_grid,
    n_blocks,
    resident_threads,
    shared_memory,
    threads_per_multiprocessor,
)
from ...errors import StrategyError
from .. import gpu_steps
from ..tuning import Bfs4kKnobs

_FILE = Path(__file__).parents[1] / "kernels" / "published" / "bfs_4k.cu"

# As in the kernel file.
_DUPLICATES = {"keep": 0, "hash64": 1, "atomic": 2}
_APPEND = {"thread": 0, "warp": 1, "block": 2}
_HEAVY = {"none": 0, "blocks": 1, "children": 2}
_VIRTUAL_WARPS, _SHARED_READS, _DISCOVERY, _EXTENDED = range(4)
_COUNTED = ("duplicates", "conflicts", "queued", "edges", "children")

_STEPS = ("single_block", "many_blocks", "overflows")
_VARIABLES = 2048  # bytes of a block's shared memory that are set aside for other variables, and for the system
_TABLE_WORD = 8  # bytes

_CONSTANTS = (("DUPLICATES", 1), ("APPEND", 2), ("HEAVY", 0), ("COUNTING", 0))
_GRAPH = ("offset_t* offsets", "vertex_t* targets")
_RESULTS = (
    "int64 capacity",
    "int32* distance",
    "vertex_t*? predecessor",
    "vertex_t* next",
    "int64* counters",
    "int64* counted",
)
MANY_BLOCKS = Entry(
    "bfs_4k_many_blocks",
    _FILE,
    128,
    struct_arguments(_FILE, "ManyBlocksArgs"),
    argument_struct="ManyBlocksArgs",
    constants=_CONSTANTS,
)
SINGLE_BLOCK = Entry(
    "bfs_4k_single_block",
    _FILE,
    1024,  # as many threads as a block may have
    struct_arguments(_FILE, "SingleBlockArgs"),
    argument_struct="SingleBlockArgs",
    constants=_CONSTANTS,
)
# Launched by MANY_BLOCKS only; declared so that its parameters are checked like those of the others.
CHILD = Entry(
    "bfs_4k_child",
    _FILE,
    128,
    arguments(*_GRAPH, "vertex_t u", "int32 level", "int32 coalesced_from", *_RESULTS),
    constants=_CONSTANTS,
)
LIST_LEVEL = Entry(
    "bfs_4k_list_level",
    _FILE,
    128,
    arguments("int64 n_vertices", "int32 level", "int32* distance", "int64 capacity", "vertex_t* queue", "int64* counters"),
    constants=_CONSTANTS,
)
ENTRIES = (MANY_BLOCKS, SINGLE_BLOCK, CHILD, LIST_LEVEL)


def rule(mean: float, deviation: float, largest: int) -> Bfs4kKnobs:
    """Knobs from the degrees: section 7 of the paper in numbers, with what an H200 changes.

    As published, ``k1`` grows with the mean and the deviation from 4 to 32; ``k2`` is for degrees beyond 2,048; ``k4`` is
    2 for low and uneven degrees and 0 for high ones; ``k5`` is 0 for high degrees. Measured on an H200: its shared memory
    holds eight times the frontier, so that a single block runs the whole of a search on a road network; there nothing is
    gained by searching for edges. A compare-and-swap makes no duplicates, at about the cost of Hash64 (docs/papers.md).
    """
    high = mean >= 16
    uneven = deviation > 2 * mean
    even_and_low = not high and deviation < mean
    return Bfs4kKnobs(
        k1=32 if high or deviation > 32 else 8 if mean >= 8 else 4,
        k2=0.0015 if largest > 2048 else 0.0,
        k4=2 if uneven and not high else 0 if high or even_and_low else 1,
        k5=0 if high else 8 if even_and_low else 1,
        k6=256,
        k7=17,
        append="warp" if even_and_low else "block",
        duplicates="atomic",
    )


def heavy_vertices(graph, knobs: Bfs4kKnobs):
    """Return the vertices that are walked apart, and the degree from which on a vertex is one of them.

    Those of the highest degrees: no more than the share ``k2``, nor than children may wait, and each worth a block.
    """
    most = min(int(knobs.k2 * graph.n_vertices), MAX_CHILDREN)
    if knobs.heavy == "none" or most == 0:
        return cp.zeros(0, graph.targets.dtype), graph.n_edges + 1
    degrees = cp.diff(graph.offsets)
    least = knobs.k3 * knobs.k6
    candidates = cp.flatnonzero(degrees >= least)
    if candidates.size > most:
        first_left_out = int(cp.sort(degrees[candidates])[-most - 1])
        least = first_left_out + 1
        candidates = candidates[degrees[candidates] >= least]
    return candidates.astype(graph.targets.dtype), least


def _within(knobs: Bfs4kKnobs, of_block: int, index) -> Bfs4kKnobs:
    """Return the rule's knobs with the single block's frontier no larger than shared memory takes."""
    fits = (of_block - _VARIABLES - 2 * _TABLE_WORD) // (2 * SINGLE_BLOCK.block * index.itemsize)
    return replace(knobs, k5=min(knobs.k5, fits))


class _SharedMemory:
    """How a block's shared memory is divided: two queues, where it is alone, and the table of Hash64 (5.5)."""

    def __init__(self, size: int, queue_capacity: int, index, knobs: Bfs4kKnobs):
        self.queue_capacity = queue_capacity
        queues = 2 * queue_capacity * index.itemsize
        table = size - _VARIABLES - queues
        if table < 2 * _TABLE_WORD:
            raise StrategyError(
                f"knob k5 = {knobs.k5} of bfs_4k needs {queues} bytes of shared memory for its queues, and a block of this "
                f"device has {size}; take a smaller one"
            )
        # Both are powers of two; without a table the kernel is told 1 and looks at none.
        self.hash_bits = (table // _TABLE_WORD).bit_length() - 1 if knobs.duplicates == "hash64" else 1
        self.nbytes = queues + (_TABLE_WORD << self.hash_bits if knobs.duplicates == "hash64" else 0)


class Run(gpu_steps.Run):
    """The state of a traversal: the knobs, the heavy vertices, and the kernels compiled for them."""

    def __init__(self, graph, query):
        super().__init__(graph, query, n_counters=3)
        index = graph.targets.dtype
        of_block, of_multiprocessor = shared_memory()
        self.knobs = knobs = query.knobs or _within(rule(*degree_statistics(graph.offsets)), of_block, index)
        self.limit = query.limit
        self.heavy, self.heavy_degree = heavy_vertices(graph, knobs)
        heavy = knobs.heavy if self.heavy.size else "none"
        constants = {
            "DUPLICATES": _DUPLICATES[knobs.duplicates],
            "APPEND": _APPEND[knobs.append],
            "COUNTING": int(knobs.counters),
        }
        of_many = {"block": knobs.k6, "launches_children": heavy == "children", "HEAVY": _HEAVY[heavy], **constants}
        self.many_blocks = kernel(MANY_BLOCKS.variant(**of_many), index)
        self.list_level = kernel(LIST_LEVEL.variant(**of_many), index)
        self.resident = resident_threads()
        share = of_multiprocessor * knobs.k6 // threads_per_multiprocessor()
        self.many_memory = _SharedMemory(share, 0, index, knobs)
        self.threshold = knobs.k5 * SINGLE_BLOCK.block
        if self.threshold:
            # Children belong to many blocks: here the block itself walks the heavy vertices.
            alone = SINGLE_BLOCK.variant(HEAVY=_HEAVY["blocks" if self.heavy.size else "none"], **constants)
            self.single_block = kernel(alone, index)
            # Twice the room saves most spills to global memory, if there is as much.
            twice = 4 * self.threshold * index.itemsize <= of_block // 2
            self.single_memory = _SharedMemory(of_block, self.threshold * (1 + twice), index, knobs)
        self.on_device = cp.zeros(len(_COUNTED), np.int64)

    def start(self, source: int) -> None:
        super().start(source)
        if self.knobs.counters:
            self.on_device.fill(0)
        self.steps = dict.fromkeys(_STEPS, 0)

    @property
    def counted(self) -> dict[str, int] | None:
        """What the kernels and the host counted since the start; None unless asked for."""
        if not self.knobs.counters:
            return None
        return dict(zip(_COUNTED, self.on_device.get().tolist(), strict=True)) | self.steps

    @property
    def arguments(self) -> dict:
        """What the kernels of both kinds of step take."""
        frontier, heavy = self.frontier, self.heavy
        return {
            "offsets": self.graph.offsets,
            "targets": self.graph.targets,
            "frontier": frontier.queue,
            "n_frontier": np.int64(frontier.size),
            "heavy": heavy,
            "n_heavy": np.int32(heavy.size),
            "heavy_degree": np.int64(self.heavy_degree),
            "coalesced_from": np.int32(self.knobs.k7),
            "capacity": np.int64(frontier.capacity),
            "distance": self.distance,
            "predecessor": self.predecessor,
            "next": frontier.next,
            "counters": frontier.counters,
            "counted": self.on_device,
        }


def step(run: Run, level: int) -> int:
    """Go on from a level with the kernel that suits the size of the frontier; return how many levels that took."""
    frontier = run.frontier
    frontier.clear_counters()
    alone = frontier.size <= run.threshold
    (_one_block if alone else _many_blocks)(run, level)
    run.count_targets_left()
    size, run.targets_left, taken = frontier.read_counters()
    taken = taken if alone else 1
    run.steps["single_block" if alone else "many_blocks"] += 1
    if size > frontier.capacity:
        run.steps["overflows"] += 1
        size = _list_level(run, level + taken)
    frontier.swap(size)
    return taken


def _one_block(run: Run, level: int) -> None:
    knobs, memory = run.knobs, run.single_memory
    # No path has as many hops as there are vertices.
    last_level = run.graph.n_vertices if run.limit is None else min(run.limit, run.graph.n_vertices)
    block = SINGLE_BLOCK.block
    launch_blocks(
        run.single_block,
        1,
        {
            **run.arguments,
            "level": np.int32(level),
            "last_level": np.int32(last_level),
            "target_vertices": run.targets,
            "n_target_vertices": np.int64(0 if run.targets is None else run.targets.size),
            "threshold": np.int32(run.threshold),
            "queue_capacity": np.int32(memory.queue_capacity),
            "min_width": np.int32(knobs.k1),
            "max_width": np.int32(WARP if knobs.dynamic_width else knobs.k1),
            "discover_below": np.int32(block // knobs.k4 if knobs.k4 else 0),
            "discovery": np.int32(_EXTENDED if knobs.extended else _DISCOVERY),
            "hash_bits": np.int32(memory.hash_bits),
        },
        shared_bytes=memory.nbytes,
    )


def _many_blocks(run: Run, level: int) -> None:
    knobs, memory, size = run.knobs, run.many_memory, run.frontier.size
    walk, width = way_to_walk(knobs, size, run.resident)
    threads = size * width if walk == _VIRTUAL_WARPS else size
    largest = max_grid(knobs.k6)
    # A block for each heavy vertex, if there may be one on the frontier.
    blocks = max(n_blocks(threads, knobs.k6, largest), min(run.heavy.size, size, largest))
    launch_blocks(
        run.many_blocks,
        blocks,
        {
            **run.arguments,
            "level": np.int32(level),
            "walk": np.int32(walk),
            "width": np.int32(width),
            "edges_per_child": np.int32(knobs.k3 * knobs.k6),
            "hash_bits": np.int32(memory.hash_bits),
        },
        shared_bytes=memory.nbytes,
    )


def way_to_walk(knobs: Bfs4kKnobs, size: int, resident: int) -> tuple[int, int]:
    """Return how many blocks walk a frontier of that size, and how many lanes share a vertex (5.2, 5.4, 5.6)."""
    if knobs.k4 and size < resident // knobs.k4:
        return (_EXTENDED if knobs.extended else _DISCOVERY), WARP
    width = knobs.k1
    while knobs.dynamic_width and width < WARP and 2 * width * size <= resident:
        width *= 2
    if knobs.shared_reads and width == WARP and size > resident:
        return _SHARED_READS, width
    return _VIRTUAL_WARPS, width


def _list_level(run: Run, level: int) -> int:
    """Make the vertices of a level the next frontier, out of the distances: each of them once, so that they fit."""
    frontier, n = run.frontier, run.graph.n_vertices
    frontier.clear_counters()
    capacity = np.int64(frontier.capacity)
    arguments_ = (np.int64(n), np.int32(level), run.distance, capacity, frontier.next, frontier.counters)
    launch(run.list_level, n, arguments_)
    return frontier.read_counters()[0]


def memory(n_vertices: int, n_edges: int, predecessors: bool) -> int:
    """Bytes of a run: those of any traversal with queues, and the list of heavy vertices at its longest."""
    return gpu_steps.memory(n_vertices, n_edges, predecessors) + 8 * min(n_vertices, MAX_CHILDREN)
