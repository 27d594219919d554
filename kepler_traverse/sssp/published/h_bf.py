"""H-BF: Bellman-Ford with a frontier, with classes of edges, one atomic for distance and round, and virtual warps.

Busato, Bombieri. An efficient implementation of the Bellman-Ford algorithm for Kepler GPU architectures. IEEE TPDS 2015.
Every feature is a knob (``tuning.HBfKnobs``). Negative cycles are looked for in the predecessors on the host (``cycles``):
after 16, 32, 64, ... rounds, so the searches of a traversal cost O(V log rounds) in all and nothing where no weight is
negative. A search on the device would save the copy of 4 bytes a vertex that each of these few searches makes, at the price
of pointer jumping in O(V log V). Vertices that the rounds skip lie on no negative cycle: no edge leaves them, or one does
that leads back over a weight that is not negative.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...cuda import cp
from ...cuda.csr_build import degree_statistics
from ...cuda.kernel_spec import WARP, Entry, arguments
from ...cuda.launch import MAX_CHILDREN, launch, launch_blocks, max_grid, n_blocks, resident_threads
from ...errors import FrontierOverflowError, StrategyError
from .. import gpu_steps
from ..tuning import WIDTHS, HBfKnobs

BLOCK = 256

_FILE = Path(__file__).parents[1] / "kernels" / "published" / "h_bf.cu"

# As in the kernel file.
_DUPLICATES = {"keep": 0, "mark": 1, "atomic64": 2}
_ENQUEUE = {"atomic": 0, "prefix_sum": 1, "shared": 2}
_HEAVY = {"none": 0, "blocks": 1, "children": 2}
_COUNTED = ("relaxations", "successful", "direct_writes", "skipped_edges", "duplicates_avoided", "closed")
_MAX_VERTICES = 2**30  # whose numbers leave two bits of 32 free
_BEFORE_ALL_ROUNDS = 0xFFFFFFFF
_INFINITE_KEY = 0x7F800000

_CONSTANTS = (("DUPLICATES", 1), ("CLASSES", 1), ("MODIFIERS", 1), ("ENQUEUE", 2), ("HEAVY", 1), ("COUNTING", 0))
_GRAPH = ("offset_t* offsets", "vertex_t* targets", "weight_t* weights")
_TENTATIVE = ("ordered_t* keys", "int32*? queued_in", "int64*? words", "vertex_t*? parent")
_QUEUE = ("vertex_t* next", "int64* counters", "int64*? counted")


def _entry(name: str, *declared: str, item_threads: int = 1) -> Entry:
    return Entry(name, _FILE, BLOCK, arguments(*declared), item_threads=item_threads, constants=_CONSTANTS)


RELAX = _entry(
    "h_bf_relax",
    *_GRAPH,
    "vertex_t* frontier",
    "int64 n_frontier",
    "int64*? previous",
    "int64 n_vertices",
    "int32 min_width",
    "int32 max_width",
    "int64 resident",
    "offset_t heavy_degree",
    "int64 heavy_capacity",
    "weight_t limit",
    "int32 round",
    "int64 capacity",
    *_TENTATIVE,
    "vertex_t*? heavy",
    *_QUEUE,
)
RELAX_HEAVY = _entry(
    "h_bf_relax_heavy",
    *_GRAPH,
    "vertex_t* heavy",
    "int64 heavy_capacity",
    "weight_t limit",
    "int32 round",
    "int64 capacity",
    *_TENTATIVE,
    *_QUEUE,
)
# Launched by RELAX only; declared so that its parameters are checked like those of the others.
RELAX_ROW = _entry(
    "h_bf_relax_row", *_GRAPH, "vertex_t u", "weight_t limit", "int32 round", "int64 capacity", *_TENTATIVE, *_QUEUE
)
COUNT_TARGETS = _entry("h_bf_count_targets", "vertex_t* targets", "int64 n_edges", "int32* in_degrees")
MARK = _entry(
    "h_bf_mark_warp",
    *_GRAPH,
    "int64 n_vertices",
    "int32 directed",
    "int32* in_degrees",
    "vertex_t* marked",
    "int64* counters",
    item_threads=WARP,
)
TAKE_APART = _entry("h_bf_take_apart", "int64* words", "int64 n_vertices", "ordered_t* keys")
CLOSE = _entry(
    "h_bf_close_warp",
    *_GRAPH,
    "int64 n_vertices",
    "weight_t limit",
    "ordered_t* keys",
    "int64*? counted",
    item_threads=WARP,
)
ENTRIES = (RELAX, RELAX_HEAVY, RELAX_ROW, COUNT_TARGETS, MARK, TAKE_APART, CLOSE)


_FAR_BEYOND = 8  # times T_DP: web graphs of degrees up to 18,000 gained nothing, R-MAT graphs of 65,000 did


def rule(graph) -> HBfKnobs:
    """Knobs for a graph and a device of today, from the degrees, the width of the weights and the number of vertices.

    What an H200 changes, as measured: it has more resident threads than most frontiers have vertices, so a virtual warp
    takes one vertex only; it has no more lanes than most vertices have edges where degrees are low and even, and 32
    anywhere else. Edge classes gain a little on road networks and in directed graphs, with their ends and in-degrees of 1,
    and cost as much on others. Child kernels halve the time where degrees go far beyond those of the paper, and nothing
    below. And a round of a small frontier takes less time than the host needs to learn its size.
    """
    mean, deviation, largest = degree_statistics(graph.offsets)
    fitting = [width for width in WIDTHS if width >= 4]
    widest = next((width for width in fitting if width >= mean + deviation), WARP)
    narrowest = WARP if deviation >= mean else max(width for width in fitting if width <= max(mean, 4))
    return HBfKnobs(
        edge_classes=_can_mark(graph) and (graph.directed or mean / 4 < deviation < mean),
        duplicates="atomic64" if graph.weights.dtype == np.float32 else "mark",
        enqueue="prefix_sum" if mean >= 8 else "atomic",
        vertices_per_warp=1,
        rounds_per_read=32,
        min_width=narrowest,
        max_width=max(narrowest, widest),
        heavy="children" if largest > _FAR_BEYOND * HBfKnobs.heavy_degree else "none",
    )


def _can_mark(graph) -> bool:
    return graph.targets.dtype == np.int32 and graph.n_vertices <= _MAX_VERTICES


def refuse(graph, knobs: HBfKnobs) -> None:
    """Raise StrategyError for knobs that the graph's types do not allow."""
    if knobs.edge_classes and not _can_mark(graph):
        raise StrategyError(
            f"strategy 'h_bf' marks edges in two bits of 32-bit vertex numbers, so of 2^30 vertices at most, and this graph "
            f"has {graph.n_vertices} with numbers of {8 * graph.targets.dtype.itemsize} bits; set its knob edge_classes to "
            "false"
        )
    if knobs.duplicates == "atomic64" and graph.weights.dtype != np.float32:
        raise StrategyError(
            "strategy 'h_bf' keeps distance and round in one word only for float32, and the weights of this graph are "
            f"{graph.weights.dtype}; set its knob duplicates to 'mark', or build the graph with weight_type='float32'"
        )


class Run(gpu_steps.Run):
    """The state of a traversal: the knobs, the kernels compiled for them, and what they need beside a plain frontier."""

    def __init__(self, graph, query):
        self.knobs = knobs = query.knobs or rule(graph)
        refuse(graph, knobs)
        n_heavy = 0 if knobs.heavy == "none" else int((cp.diff(graph.offsets) > knobs.heavy_degree).sum())
        heavy = knobs.heavy if n_heavy else "none"
        # Of each round that the host does not wait for: the size of the next frontier, and how many heavy vertices.
        super().__init__(graph, query, _compiled_for(knobs, heavy), n_counters=2 * knobs.rounds_per_read)
        self.counters = [self.frontier.counters[2 * i :] for i in range(knobs.rounds_per_read)]
        n, index = graph.n_vertices, graph.targets.dtype
        self.heavy = cp.empty(n_heavy, index) if heavy == "blocks" else None
        self.heavy_capacity = {"children": MAX_CHILDREN, "blocks": n_heavy, "none": 0}[heavy]
        self.words = cp.empty(n, np.int64) if knobs.duplicates == "atomic64" else None
        self.on_device = cp.zeros(len(_COUNTED), np.int64) if knobs.counters else None
        self.resident = resident_threads()
        self.marked, self.n_skipped = graph.targets, 0
        if knobs.edge_classes:
            self._mark()

    def _mark(self) -> None:
        """Copy the targets with the class of each edge in their two top bits (4.1); no copy where all bits are 0."""
        graph, counters, in_degrees = self.graph, self.frontier.counters, self.queued_in
        in_degrees.fill(0)
        launch(self.relax["count_targets"], graph.n_edges, (graph.targets, np.int64(graph.n_edges), in_degrees))
        marked = cp.empty(graph.n_edges, graph.targets.dtype)
        self.frontier.clear_counters()
        arguments_ = (*self.edges, self.n_vertices, np.int32(graph.directed), in_degrees, marked, counters)
        launch(self.relax["mark"], graph.n_vertices, arguments_)
        self.n_skipped, n_only, *_ = self.frontier.read_counters()
        if self.n_skipped or n_only:
            self.marked = marked

    @property
    def marked_edges(self) -> tuple:
        return (self.graph.offsets, self.marked, self.graph.weights)

    def start(self, source: int) -> None:
        super().start(source)
        if self.words is not None:
            self.words.fill(_INFINITE_KEY << 32 | _BEFORE_ALL_ROUNDS)
            self.words[source] = _BEFORE_ALL_ROUNDS  # distance 0
        self.steps = {"enqueued": 0, "child_launches": 0, "overflows": 0}
        if self.on_device is not None:
            self.on_device.fill(0)

    @property
    def frontier_size(self) -> int:
        """Vertices of the frontier; all of the graph where its queue had no room for them."""
        return int(self.n_vertices) if self.frontier.size > self.frontier.capacity else self.frontier.size

    def wait(self, n_rounds: int) -> int:
        """Wait for some rounds and count; return how many of them had a frontier."""
        frontier = self.frontier
        counted = frontier.read_counters()
        for i in range(n_rounds):
            queued, handed_over = counted[2 * i : 2 * i + 2]
            frontier.size = queued
            self.steps["enqueued"] += queued
            if self.knobs.heavy == "children":
                self.steps["child_launches"] += min(handed_over, self.heavy_capacity)
            if queued > frontier.capacity:
                if self.knobs.duplicates != "keep":
                    raise FrontierOverflowError(f"the frontier holds {queued} vertices, its queue {frontier.capacity}")
                self.steps["overflows"] += 1
            if not queued:
                return i + 1
        return n_rounds

    @property
    def counted(self) -> dict[str, int] | None:
        """What the kernels and the host counted since the start; None unless asked for."""
        if self.on_device is None:
            return None
        return dict(zip(_COUNTED, self.on_device.get().tolist(), strict=True)) | self.steps

    def finish(self, source: int) -> None:
        n = self.n_vertices
        if self.words is not None:
            launch(self.relax["take_apart"], n, (self.words, n, self.keys))
        if self.n_skipped:
            launch(self.relax["close"], n, (*self.marked_edges, n, self.limit, self.keys, self.on_device))
        super().finish(source)


def _compiled_for(knobs: HBfKnobs, heavy: str) -> dict[str, Entry]:
    """The kernels for these knobs, all of them in one module."""
    entries = {"relax": RELAX, "count_targets": COUNT_TARGETS, "mark": MARK, "take_apart": TAKE_APART, "close": CLOSE}
    if heavy == "blocks":
        entries["heavy"] = RELAX_HEAVY
    constants = {
        "DUPLICATES": _DUPLICATES[knobs.duplicates],
        "CLASSES": int(knobs.edge_classes),
        "MODIFIERS": int(knobs.cache_modifiers),
        "ENQUEUE": _ENQUEUE[knobs.enqueue],
        "HEAVY": _HEAVY[heavy],
        "COUNTING": int(knobs.counters),
    }
    return {name: entry.variant(launches_children=heavy == "children", **constants) for name, entry in entries.items()}


def width_for(knobs: HBfKnobs, size: int, resident: int) -> int:
    """Lanes of a virtual warp for a frontier of that size (5.2); the kernel, which may know it alone, does the same."""
    width = knobs.min_width
    while width < knobs.max_width and 2 * width * size <= resident:
        width *= 2
    return width


def relax(run: Run, count: int) -> int:
    """Offers along all edges of the frontier, which then is whoever took one; return how many rounds of that it was.

    The longer it takes already, the more rounds follow each other before the host waits; those after the last cost little.
    """
    run.frontier.clear_counters()
    n_rounds = max(1, min(run.knobs.rounds_per_read, count // 8))
    size = run.frontier_size
    for i in range(n_rounds):
        # Any grid is right. Frontiers of long traversals change slowly.
        _launch_round(run, count + i, i, size if i == 0 else 2 * size)
    return run.wait(n_rounds)


def _launch_round(run: Run, count: int, i: int, size: int) -> None:
    knobs, frontier = run.knobs, run.frontier
    threads = -(-size // knobs.vertices_per_warp) * width_for(knobs, size, run.resident)
    round_ = (run.limit, np.int32(count), np.int64(frontier.capacity))
    tentative = (run.keys, run.queued_in if knobs.duplicates == "mark" else None, run.words, run.parent)
    queue = (frontier.next, run.counters[i], run.on_device)
    heavy_capacity = np.int64(run.heavy_capacity)
    launch_blocks(
        run.relax["relax"],
        n_blocks(threads, BLOCK, max_grid(BLOCK)),
        (
            *run.marked_edges,
            frontier.queue,
            np.int64(frontier.size),
            run.counters[i - 1] if i else None,
            run.n_vertices,
            np.int32(knobs.min_width),
            np.int32(knobs.max_width),
            np.int64(run.resident),
            np.int64(knobs.heavy_degree),
            heavy_capacity,
            *round_,
            *tentative,
            run.heavy,
            *queue,
        ),
    )
    if run.heavy is not None:
        # The host does not know how many the frontier holds: blocks without one end at once.
        launch_blocks(
            run.relax["heavy"],
            min(run.heavy.size, size, max_grid(BLOCK)),
            (*run.marked_edges, run.heavy, heavy_capacity, *round_, *tentative, *queue),
        )
    frontier.queue, frontier.next = frontier.next, frontier.queue


def memory(n_vertices: int, n_edges: int, predecessors: bool) -> int:
    """Bytes of a run at most: float64 distances or float32 ones in words, marks, two queues, heavy vertices, parent,
    predecessor, marked targets."""
    index = 4 if n_vertices < 2**31 else 8
    return n_vertices * (4 + 8 + 4 + index * (4 + predecessors)) + n_edges * index
