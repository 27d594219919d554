"""Merrill, Garland, Grimshaw. Scalable GPU graph traversal. PPoPP 2012: expansion, contraction, and four ways to join them.

Expansion gathers the edges out of the frontier, contraction keeps the vertices among their far ends that are new. BFS-4K
says of it (section 3): "parallel prefix-scan and three different approaches to deal with the workload imbalance: vertex
expansion and edge contraction, edge contraction and vertex expansion, and hybrid. The algorithm also relies on a technique
to reduce redundant work due to duplicate vertices on the frontiers". What goes beyond that account is from memory of the
paper.

Gathering (knob ``gathering``) is by block, warp and lane: ``edges_of_block`` in published/advance_by_degree.cuh. Contraction
asks a bit, then the distance, which it marks by a plain store, and culls duplicates by a table a block (history) and one a
warp. What differs: the finest gathering looks for edges within a warp, by shuffles, where the paper lays them out in shared
memory for the block; vertices are queued by way of registers (kt/thread_queue.cuh) in place of a scan of the block;
distances are always written, and predecessors are the smallest. For those every edge of a level has to be looked at, so bits
are then set a level later than in the paper, and vertices of the same level are found by their distance. A queue that
overflows with duplicates is listed again out of the distances; the paper makes its queues larger.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...cuda import cp
from ...cuda.compiler import kernel
from ...cuda.kernel_spec import WARP, Entry, arguments
from ...cuda.launch import launch, resident_threads
from ...strategy import Strategy
from .. import gpu_steps
from ..host_loop import levels, switch
from .params import GatherKnobs

BLOCK = 256
NEVER = 2**62  # edges

_FILE = Path(__file__).parents[1] / "kernels" / "published" / "expand_contract.cu"
_CONSTANTS = (("CULLING", 7), ("COUNTING", 0))
# As in the kernel file.
_CULLING = {"bits": 1, "warp_culling": 2, "history_culling": 4}
_COUNTED = ("inspected", "by_bits", "by_history", "by_warp", "queued")
# Edges from which on a block, and a warp, takes a row.
_TAKEN_FROM = {"scan_warp_block": (BLOCK, WARP), "scan_warp": (NEVER, WARP), "scan": (NEVER, NEVER), "warp": (NEVER, 1)}

_GRAPH = ("offset_t* offsets", "vertex_t* targets")
_EDGES = ("vertex_t* edges", "vertex_t*? sources", "int64 n_edges", "int32 level")
_GATHERING = ("offset_t block_from", "offset_t warp_from", "int64 capacity")
_REACHED = ("uint8* visited", "int32* distance", "vertex_t*? predecessor")


def _entry(name: str, *declared: str) -> Entry:
    return Entry(f"bfs_gather_{name}", _FILE, BLOCK, arguments(*declared), constants=_CONSTANTS)


_EXPAND = _entry(
    "expand",
    *(
        *_GRAPH,
        "vertex_t* queue",
        "int64 queue_capacity",
        *_GATHERING,
        "vertex_t* edges",
        "vertex_t*? sources",
        "int64* counters",
    ),
)
_CONTRACT = _entry(
    "contract", *_EDGES, "int64 queue_capacity", *_REACHED, "vertex_t* queue", "int64* counters", "int64* counted"
)
_EXPAND_CONTRACT = _entry(
    "expand_contract",
    *(*_GRAPH, "vertex_t* frontier", "int64 n_frontier", "int32 level", *_GATHERING, *_REACHED),
    *("vertex_t* next", "int64* counters", "int64* counted"),
)
_CONTRACT_EXPAND = _entry(
    "contract_expand",
    *(*_GRAPH, *_EDGES, *_GATHERING, *_REACHED),
    *("vertex_t* next", "vertex_t*? next_sources", "int64* counters", "int64* counted"),
)
_LIST_LEVEL = _entry(
    "list_level",
    *("int64 n_vertices", "int32 level", "int32* distance", "int64 capacity", "vertex_t* queue", "int64* counter"),
)
ENTRIES = (_EXPAND, _CONTRACT, _EXPAND_CONTRACT, _CONTRACT_EXPAND, _LIST_LEVEL)


class VertexRun(gpu_steps.Run):
    """A traversal whose frontier is a queue of vertices, some of them perhaps twice."""

    entries = (_EXPAND_CONTRACT, _LIST_LEVEL)

    def __init__(self, graph, query, n_counters: int = 2, queue_capacity: int | None = None):
        super().__init__(graph, query, n_counters, queue_capacity)
        self.knobs = knobs = query.knobs or GatherKnobs()
        self.visited = cp.zeros(-(-graph.n_vertices // 8), np.uint8)
        self.on_device = cp.zeros(len(_COUNTED), np.int64)
        self.overflows = 0
        culling = sum(bit for name, bit in _CULLING.items() if getattr(knobs, name))
        constants = {"CULLING": culling, "COUNTING": int(knobs.counters)}
        self.kernels = {entry: kernel(entry.variant(**constants), graph.targets.dtype) for entry in self.entries}
        self.taken_from = tuple(map(np.int64, _TAKEN_FROM[knobs.gathering]))

    def start(self, source: int) -> None:
        super().start(source)
        self.visited.fill(0)
        self.visited[source // 8] = 1 << source % 8
        self.on_device.fill(0)
        self.overflows = 0

    @property
    def counted(self) -> dict[str, int] | None:
        """What the kernels counted since the start; None unless asked for."""
        if not self.knobs.counters:
            return None
        return dict(zip(_COUNTED, self.on_device.get().tolist(), strict=True)) | {"overflows": self.overflows}

    @property
    def gathering(self) -> tuple:
        return (*self.taken_from, np.int64(self.frontier.capacity))

    @property
    def reached(self) -> tuple:
        return self.visited, self.distance, self.predecessor

    def list_level(self, level: int, queue, counter) -> None:
        """Queue the vertices of a level out of the distances, once each, so that they fit."""
        self.overflows += 1
        n = self.graph.n_vertices
        values = (np.int64(n), np.int32(level), self.distance, np.int64(queue.size), queue, counter)
        launch(self.kernels[_LIST_LEVEL], n, values)


def expand_contract(run: VertexRun, level: int) -> None:
    """One launch: edges are gathered and contracted at once, and never stored."""
    graph, frontier = run.graph, run.frontier
    frontier.clear_counters()
    vertices = (frontier.queue, np.int64(frontier.size), np.int32(level + 1))
    values = (graph.offsets, graph.targets, *vertices, *run.gathering, *run.reached, frontier.next, frontier.counters)
    launch(run.kernels[_EXPAND_CONTRACT], frontier.size, (*values, run.on_device))
    run.count_targets_left()
    size, run.targets_left, *_ = frontier.read_counters()
    if size > frontier.capacity:
        frontier.clear_counters()
        run.list_level(level + 1, frontier.next, frontier.counters)
        size = frontier.read_counters()[0]
    frontier.swap(size)


class EdgeRun(VertexRun):
    """A traversal whose frontier is a queue of edges; a queue of vertices lies between two kernels."""

    entries = (_EXPAND, _CONTRACT, _CONTRACT_EXPAND, _LIST_LEVEL)

    def __init__(self, graph, query):
        index, m = graph.targets.dtype, max(graph.n_edges, 1)
        super().__init__(graph, query, 3, m)
        self.sources, self.next_sources = cp.empty((2, m), index) if query.predecessors else (None, None)
        self.vertices = cp.empty(graph.n_vertices, index)
        self.resident = resident_threads()

    def start(self, source: int) -> None:
        super().start(source)
        self.frontier.clear_counters()
        self.vertices[0] = source
        self.frontier.counters[2] = 1
        self.expand(1)
        self.swap(self.frontier.read_counters()[0])

    @property
    def edges(self) -> tuple:
        return self.frontier.queue, self.sources, np.int64(self.frontier.size)

    @property
    def next_edges(self) -> tuple:
        return self.frontier.next, self.next_sources, self.frontier.counters

    def expand(self, at_most: int) -> None:
        """Gather the edges of the queued vertices, which only the device has counted."""
        graph = self.graph
        values = (graph.offsets, graph.targets, self.vertices, np.int64(self.vertices.size))
        launch(self.kernels[_EXPAND], at_most, (*values, *self.gathering, *self.next_edges))

    def swap(self, size: int) -> None:
        self.frontier.swap(size)
        self.sources, self.next_sources = self.next_sources, self.sources

    def finish(self, level: int) -> None:
        """Wait for a level; where a queue had no room, gather once more without duplicates."""
        frontier, n = self.frontier, self.vertices.size
        self.count_targets_left()
        size, self.targets_left, queued = frontier.read_counters()
        if size > frontier.capacity or queued > n:
            frontier.clear_counters()
            self.list_level(level, self.vertices, frontier.counters[2:])
            self.expand(n)
            size = frontier.read_counters()[0]
        self.swap(size)


def two_phase(run: EdgeRun, level: int) -> None:
    """Two launches: edges are contracted into a queue of vertices, and those expanded into the next queue of edges."""
    run.frontier.clear_counters()
    size, n = run.frontier.size, run.vertices.size
    queue = (run.vertices, run.frontier.counters, run.on_device)
    launch(run.kernels[_CONTRACT], size, (*run.edges, np.int32(level + 1), np.int64(n), *run.reached, *queue))
    run.expand(min(size, n))
    run.finish(level + 1)


def contract_expand(run: EdgeRun, level: int) -> None:
    """One launch: what contraction leaves is expanded at once, and vertices are never stored."""
    graph = run.graph
    run.frontier.clear_counters()
    values = (graph.offsets, graph.targets, *run.edges, np.int32(level + 1), *run.gathering, *run.reached, *run.next_edges)
    launch(run.kernels[_CONTRACT_EXPAND], run.frontier.size, (*values, run.on_device))
    run.finish(level + 1)


def is_small(run: EdgeRun) -> bool:
    """The rule of the hybrid: one launch while there is no more than an edge for each resident thread."""
    return run.frontier.size <= run.resident


def vertex_memory(n_vertices: int, n_edges: int, predecessors: bool) -> int:
    """Bytes of a run: those of any with queues, and a bit a vertex."""
    return gpu_steps.memory(n_vertices, n_edges, predecessors) + n_vertices // 8 + 1


def edge_memory(n_vertices: int, n_edges: int, predecessors: bool) -> int:
    """Bytes of a run: distance, predecessor, a queue of vertices, bits, two queues of edges."""
    index = 4 if n_vertices < 2**31 else 8
    return n_vertices * (4 + index * (1 + predecessors)) + n_vertices // 8 + 1 + 2 * n_edges * index * (1 + predecessors)


_PAPER = "Merrill, Garland, Grimshaw 2012"
STRATEGIES = (
    Strategy(
        name="gather_expand_contract",
        device="cuda",
        plan=levels(VertexRun, expand_contract),
        memory=vertex_memory,
        paper=_PAPER,
        rationale="a row goes to lanes, a warp or a block by its length, and each vertex passes through memory once",
        complexity="O(V + E)",
        aliases=("merrill-expand-contract",),
        knobs=GatherKnobs,
    ),
    Strategy(
        name="gather_contract_expand",
        device="cuda",
        plan=levels(EdgeRun, contract_expand),
        memory=edge_memory,
        paper=_PAPER,
        rationale="a queue of edges gives threads equal work, for as much traffic as there are edges",
        complexity="O(V + E)",
        aliases=("merrill-contract-expand",),
        knobs=GatherKnobs,
    ),
    Strategy(
        name="gather_two_phase",
        device="cuda",
        plan=levels(EdgeRun, two_phase),
        memory=edge_memory,
        paper=_PAPER,
        rationale="two kernels a level, each of which gives its threads equal work",
        complexity="O(V + E)",
        aliases=("merrill-two-phase",),
        knobs=GatherKnobs,
    ),
    Strategy(
        name="gather_switch",
        device="cuda",
        plan=levels(EdgeRun, switch(two_phase, contract_expand, is_small)),
        memory=edge_memory,
        paper=_PAPER,
        rationale="one launch while the frontier is small, two kernels while it is large",
        complexity="O(V + E)",
        aliases=("merrill-hybrid",),
        knobs=GatherKnobs,
    ),
)
