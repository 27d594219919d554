"""Merrill, Garland, Grimshaw. Scalable GPU graph traversal. PPoPP 2012: expansion, contraction, and
four ways to join them.

Expansion gathers the edges that leave the frontier. Contraction keeps those targets that are
discovered. BFS-4K describes the paper as follows (section 3): "parallel prefix-scan and three
different approaches to deal with the workload imbalance: vertex expansion and edge contraction,
edge contraction and vertex expansion, and hybrid. The algorithm also relies on a technique to
reduce redundant work due to duplicate vertices on the frontiers". What goes beyond that account is
from memory of the paper.

Gathering (knob ``gathering``) is by block, warp and lane: ``edges_of_block`` in
kernels/advances.cuh. Contraction reads a bit, then the distance, which it writes with a plain
store. It removes duplicates with one table per block (history) and one per warp.

Differences from the paper:

- The finest gathering finds edges within a warp, by shuffles. The paper writes them to shared
  memory of the block.
- Vertices are queued through registers (kt/thread_queue.cuh), not by a scan over the block.
- Distances are always written, and predecessors are the smallest. For the smallest predecessor
  every edge of a level must be visited. So bits are set one level later than in the paper, and
  vertices of the same level are found by their distance.
- A queue that overflows with duplicates is rebuilt from the distances. The paper makes its queues
  larger.

``graph`` is a Graph on the GPU, and ``query`` says what a search computes: predecessors or none, a
limit of hops, targets, knobs. A run is the state of a search, which a plan uses again for each
source. A function of a run and the level of its frontier makes one level.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..._arrays import Array
from ...bfs import gpu_steps
from ...bfs.host_loop import levels, switch
from ...cuda import cp
from ...cuda.compiler import kernel
from ...cuda.kernel_spec import WARP, Entry, make_entries
from ...cuda.launch import Named, PackedLaunches, resident_threads
from ...search.strategy import Strategy, state_bytes
from .params import GatherKnobs

BLOCK = 256
NEVER = 2**62  # edges; no vertex has as many

_FILE = Path(__file__).parent / "kernels" / "expand_contract.cu"
_CONSTANTS = (("CULLING", 7), ("COUNTING", 0))
# The bits of the constant CULLING, by knob: ways to find vertices that were queued before.
_CULLING = {"bits": 1, "warp_culling": 2, "history_culling": 4}
# What kernels count, in the order of the kernel file: neighbors looked at, those that each way has
# rejected, and vertices queued.
_COUNTED = ("inspected", "by_bits", "by_history", "by_warp", "queued")
# Degrees from which on a block, and a warp, visits an adjacency list.
_GATHERED_FROM = {
    "scan_warp_block": (BLOCK, WARP),
    "scan_warp": (NEVER, WARP),
    "scan": (NEVER, NEVER),
    "warp": (NEVER, 1),
}
_entry = make_entries(_FILE, BLOCK, constants=_CONSTANTS)
_EXPAND = _entry("bfs_gather_expand")
_CONTRACT = _entry("bfs_gather_contract")
_EXPAND_CONTRACT = _entry("bfs_gather_expand_contract")
_CONTRACT_EXPAND = _entry("bfs_gather_contract_expand")
ENTRIES = (_EXPAND, _CONTRACT, _EXPAND_CONTRACT, _CONTRACT_EXPAND)


class VertexRun(gpu_steps.Run):
    """A traversal whose frontier is a queue of vertices, some of which may be in it twice.

    Attributes named like fields of the kernels' argument struct are passed to the kernels.
    """

    entries: tuple[Entry, ...] = (_EXPAND_CONTRACT,)  # the kernels that its steps launch

    def __init__(self, graph, query, n_counters: int = 2, queue_capacity: int | None = None):
        """Allocate the state of a search and compile its kernels.

        ``n_counters`` is the number of the frontier's counters, and ``queue_capacity`` the number
        of entries of each of its queues; None for as many as vertices.
        """
        super().__init__(graph, query, n_counters, queue_capacity)
        self.knobs = knobs = query.knobs or GatherKnobs()
        # bit v % 8 of byte v // 8 is set if vertex v was visited
        self.visited = cp.zeros(-(-graph.n_vertices // 8), np.uint8)
        self.on_device = cp.zeros(len(_COUNTED), np.int64)  # what kernels count
        self.overflows = 0  # queues that were too small for their vertices

        # The kernels, with one bit of a constant per way to find duplicates.
        culling = sum(bit for name, bit in _CULLING.items() if getattr(knobs, name))
        constants: dict[str, Any] = {"CULLING": culling, "COUNTING": int(knobs.counters)}
        self.block_from, self.warp_from = map(np.int64, _GATHERED_FROM[knobs.gathering])
        index = graph.targets.dtype
        self.launches = {
            entry: PackedLaunches(kernel(entry.variant(**constants), index))
            for entry in self.entries
        }

        # What only an EdgeRun has: the sources of queued edges, and the queue of vertices.
        self.sources: Array = None
        self.next_sources: Array = None
        self.vertices: Array = cp.empty(0, index)

    def start(self, source: int) -> None:
        """Begin a search: the source alone is visited and in the frontier."""
        super().start(source)
        self.visited.fill(0)
        self.visited[source // 8] = 1 << source % 8
        self.on_device.fill(0)
        self.overflows = 0

    @property
    def counted(self) -> dict[str, int] | None:
        """What the kernels have counted since the search began, by name; None without the knob
        ``counters``.
        """
        if not self.knobs.counters:
            return None
        counted = dict(zip(_COUNTED, self.on_device.get().tolist(), strict=True))
        return counted | {"overflows": self.overflows}

    def arguments(self) -> Named:
        """Return the arguments of all kernels by name, without those that each launch adds."""
        queue = {"queue": self.vertices, "queue_capacity": np.int64(self.vertices.size)}
        return super().arguments() | {"counted": self.on_device, **queue}

    def launch(self, entry: Entry, work_items: int, size: int, level: int) -> None:
        """Launch a kernel.

        ``work_items`` decides about the number of threads, and ``size`` is the number of entries of
        the frontier. ``level`` is that of the vertices which the kernel discovers.
        """
        # Packed arguments are known by the address of the queue: the two queues exchange places.
        key = self.frontier.queue.data.ptr
        launches = self.launches[entry]
        launches.launch(
            work_items, key, self.arguments, n_frontier=np.int64(size), level=np.int32(level)
        )

    def list_level(self, level: int, queue, counter) -> None:
        """Fill ``queue``, which overflowed, with the vertices of a level by a scan of the
        distances; ``counter`` receives their number. Count the overflow.
        """
        self.overflows += 1
        super().list_level(level, queue, counter)


def expand_contract(run: VertexRun, level: int) -> None:
    """Make a level by one launch, which gathers the edges of the frontier and keeps the targets
    that are discovered. Edges are never stored.
    """
    frontier = run.frontier
    frontier.clear_counters()
    run.launch(_EXPAND_CONTRACT, frontier.size, frontier.size, level + 1)
    run.count_targets_left()  # a kernel, whose result is the second counter below
    size, run.targets_left, *_ = frontier.read_counters()
    # Duplicates may fill the queue. The distances list each vertex of the level once.
    if size > frontier.capacity:
        frontier.clear_counters()
        run.list_level(level + 1, frontier.next, frontier.counters)
        size, *_ = frontier.read_counters()
    frontier.swap(size)


class EdgeRun(VertexRun):
    """A traversal whose frontier is a queue of edges. Two kernels exchange vertices through a queue
    of vertices.

    An edge in a queue is its target, in the queues of ``frontier``, and its source, at the same
    place of ``sources`` or ``next_sources``. Sources are there for predecessors alone. The three
    counters are the edges queued, the targets that are not reached, and the vertices queued.
    """

    entries = (_EXPAND, _CONTRACT, _CONTRACT_EXPAND)

    def __init__(self, graph, query):
        index = graph.targets.dtype
        m = max(graph.n_edges, 1)  # a queue has a place per edge of the graph, and is not empty
        super().__init__(graph, query, n_counters=3, queue_capacity=m)
        if query.predecessors:
            self.sources, self.next_sources = cp.empty((2, m), index)
        self.vertices = cp.empty(graph.n_vertices, index)
        self.resident = resident_threads()

    def start(self, source: int) -> None:
        """Begin a search: the edges that leave the source are the frontier."""
        super().start(source)
        self.frontier.clear_counters()
        self.vertices[0] = source
        self.frontier.counters[2] = 1  # vertices in that queue
        self.expand(1)
        n_edges, *_ = self.frontier.read_counters()
        self.swap(n_edges)

    def expand(self, max_vertices: int) -> None:
        """Gather the edges of the queued vertices into the next queue of edges. Only the device
        knows how many vertices are queued: ``max_vertices`` at most.
        """
        # The kernel reads the number of vertices from a counter, and neither a size nor a level.
        self.launch(_EXPAND, max_vertices, 0, 0)

    def swap(self, size: int) -> None:
        """Make the next queue of edges, which holds ``size`` of them, the frontier."""
        self.frontier.swap(size)
        self.sources, self.next_sources = self.next_sources, self.sources

    def finish(self, level: int) -> None:
        """Wait for the vertices of a level and their edges, and make the edges the frontier. If a
        queue overflowed, list the vertices once each, and gather their edges anew.
        """
        frontier = self.frontier
        n = self.vertices.size
        self.count_targets_left()
        n_edges, self.targets_left, n_queued = frontier.read_counters()
        if n_edges > frontier.capacity or n_queued > n:
            frontier.clear_counters()
            self.list_level(level, self.vertices, frontier.counters[2:])
            self.expand(n)
            n_edges, *_ = frontier.read_counters()
        self.swap(n_edges)


def two_phase(run: EdgeRun, level: int) -> None:
    """Make a level by two launches. The first keeps those targets of the queued edges that are
    discovered, in a queue of vertices; the second gathers their edges into the next queue of edges.
    """
    run.frontier.clear_counters()
    size = run.frontier.size
    run.launch(_CONTRACT, size, size, level + 1)
    run.expand(min(size, run.vertices.size))
    run.finish(level + 1)


def contract_expand(run: EdgeRun, level: int) -> None:
    """Make a level by one launch. Its threads expand the vertices that are discovered at once, so
    that these are never stored.
    """
    run.frontier.clear_counters()
    size = run.frontier.size
    run.launch(_CONTRACT_EXPAND, size, size, level + 1)
    run.finish(level + 1)


def is_small(run: EdgeRun) -> bool:
    """Return whether the hybrid makes one launch for a level: while the frontier has at most one
    edge per thread that the device runs at once.
    """
    return run.frontier.size <= run.resident


def edge_memory(n_vertices: int, n_edges: int, predecessors: bool) -> int:
    """Return the bytes of device memory of an ``EdgeRun``: distance, predecessor, a queue of
    vertices, a bit per vertex, and two queues of edges.
    """
    index = 4 if n_vertices < 2**31 else 8
    n_numbers = 1 + predecessors  # per vertex, beside the distance, and per edge of a queue
    per_vertex = 4 + index * n_numbers
    return n_vertices * per_vertex + n_vertices // 8 + 1 + 2 * n_edges * index * n_numbers


_PAPER = "Merrill, Garland, Grimshaw 2012"
_gathering = partial(
    Strategy,
    device="cuda",
    memory=edge_memory,
    paper=_PAPER,
    complexity="O(V + E)",
    knobs=GatherKnobs,
)
STRATEGIES = (
    _gathering(
        name="gather_expand_contract",
        plan=levels(VertexRun, expand_contract),
        memory=state_bytes(1 / 8, beside=gpu_steps.memory),  # a bit per vertex
        rationale=(
            "an adjacency list goes to lanes, a warp or a block by its length; "
            "each vertex passes through memory once"
        ),
        aliases=("merrill-expand-contract",),
    ),
    _gathering(
        name="gather_contract_expand",
        plan=levels(EdgeRun, contract_expand),
        rationale=(
            "a queue of edges gives threads equal work, for as much traffic as there are edges"
        ),
        aliases=("merrill-contract-expand",),
    ),
    _gathering(
        name="gather_two_phase",
        plan=levels(EdgeRun, two_phase),
        rationale="two kernels per level, each of which gives its threads equal work",
        aliases=("merrill-two-phase",),
    ),
    _gathering(
        name="gather_switch",
        plan=levels(EdgeRun, switch(two_phase, contract_expand, is_small)),
        rationale="one launch while the frontier is small, two kernels while it is large",
        aliases=("merrill-hybrid",),
    ),
)
