"""H-BF: Bellman-Ford with a frontier, with classes of edges, one atomic for distance and round, and
virtual warps.

Busato, Bombieri. An efficient implementation of the Bellman-Ford algorithm for Kepler GPU
architectures. IEEE TPDS 2015. Every feature is a knob (``params.HBfKnobs``).

Negative cycles are searched for in the predecessors on the host (``cycles``), after 16, 32, 64, ...
rounds. The searches of a traversal therefore cost O(V log rounds) in all, and nothing if no weight
is negative. A search on the device would save the copy of 4 bytes per vertex that each of these few
searches makes, but costs pointer jumping in O(V log V). Vertices that the rounds skip are on no
negative cycle: no edge leaves them, or only one that leads back with a weight that is not negative.

``graph`` is a Graph on the GPU, and ``query`` says what a search computes: predecessors or none, a
limit of the distance, knobs. A ``Run`` is the state of a search, which a plan uses again for each
source. Numbers in parentheses are sections of the paper, and hubs are vertices of more edges than
the knob ``heavy_degree``.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ...cuda import cp
from ...cuda.csr_build import degree_statistics
from ...cuda.kernel_spec import WARP, Entry, make_entries
from ...cuda.launch import (
    MAX_CHILDREN,
    Named,
    PackedLaunches,
    launch,
    max_grid,
    n_blocks,
    resident_threads,
)
from ...errors import FrontierOverflowError, StrategyError
from ...search.strategy import Strategy, state_bytes
from ...sssp import gpu_steps
from ...sssp.host_loop import rounds
from ..knobs import WIDTHS
from .params import HBfKnobs

BLOCK = 256

_FILE = Path(__file__).parent / "kernels" / "h_bf.cu"

# Numbers by which the kernel file knows the values of knobs.
_DUPLICATES = {"keep": 0, "mark": 1, "atomic64": 2}
_ENQUEUE = {"atomic": 0, "prefix_sum": 1, "shared": 2}
_HEAVY = {"none": 0, "blocks": 1, "children": 2}
# what kernels count, in the order of the kernel file
_COUNTED = (
    "relaxations",
    "successful",
    "direct_writes",
    "skipped_edges",
    "duplicates_avoided",
    "closed",
)
_MAX_VERTICES = 2**30  # their numbers leave two bits of 32 unused
# A word of a vertex (4.2) has the key of its distance in the upper 32 bits and the round that last
# improved it in the lower ones. The first of these stands for no round.
_BEFORE_ALL_ROUNDS = 0xFFFFFFFF
_INFINITE_KEY = 0x7F800000  # the bits of an infinite float32

_HINTS = (("STREAM", 1), ("READ_ONLY", 1), ("BYPASS_L1", 1))
_CONSTANTS = (
    ("DUPLICATES", 1),
    ("CLASSES", 1),
    *_HINTS,
    ("ENQUEUE", 2),
    ("HEAVY", 1),
    ("COUNTING", 0),
)
_entry = make_entries(_FILE, BLOCK, constants=_CONSTANTS)
RELAX = _entry("h_bf_relax")
RELAX_HUBS = _entry("h_bf_relax_hubs")
# Launched by RELAX only. It is declared so that its arguments are checked like those of the others.
RELAX_LIST = _entry("h_bf_relax_list")
COUNT_TARGETS = _entry("h_bf_count_targets")
CLASSIFY = _entry("h_bf_classify_warp", item_threads=WARP)
UNPACK = _entry("h_bf_unpack")
CLOSE = _entry("h_bf_close_warp", optional="counted", item_threads=WARP)
ENTRIES = (RELAX, RELAX_HUBS, RELAX_LIST, COUNT_TARGETS, CLASSIFY, UNPACK, CLOSE)


# Times T_DP: web graphs with degrees up to 18,000 gained nothing from child kernels, R-MAT graphs
# with 65,000 did.
_FAR_BEYOND = 8


def rule(graph) -> HBfKnobs:
    """Return the knobs for a graph, by its degrees, the width of its weights and the number of its
    vertices.

    Differences from the paper, as measured on an H200:

    - It has more resident threads than most frontiers have vertices, so each virtual warp takes one
      vertex.
    - A virtual warp has no more lanes than most vertices have edges if degrees are low and even,
      and else 32.
    - Edge classes gain a quarter on a directed R-MAT graph, which has many vertices of out-degree 0
      or in-degree 1. On road networks they gain nothing beyond the spread of the times.
    - Child kernels gain some 15 % where the largest degrees are far above the mean, and nothing on
      other graphs.
    - A round of a small frontier takes less time than the host needs to read its size.
    """
    mean, deviation, largest = degree_statistics(graph.offsets)

    # Lanes of a virtual warp.
    widths = [width for width in WIDTHS if width >= 4]
    max_width = next((width for width in widths if width >= mean + deviation), WARP)
    min_width = WARP
    if deviation < mean:
        min_width = max(width for width in widths if width <= max(mean, 4))

    # Also undirected graphs whose degrees vary, but by less than the mean.
    may_gain_by_classes = graph.directed or mean / 4 < deviation < mean
    return HBfKnobs(
        edge_classes=_has_class_bits(graph) and may_gain_by_classes,
        duplicates="atomic64" if graph.weights.dtype == np.float32 else "mark",
        enqueue="prefix_sum" if mean >= 8 else "atomic",
        vertices_per_warp=1,
        rounds_per_read=32,
        min_width=min_width,
        max_width=max(min_width, max_width),
        heavy="children" if largest > _FAR_BEYOND * HBfKnobs.heavy_degree else "none",
    )


def _has_class_bits(graph) -> bool:
    """Return whether vertex numbers leave two bits of 32 unused, in which the targets of edges hold
    the class of the edge.
    """
    return graph.targets.dtype == np.int32 and graph.n_vertices <= _MAX_VERTICES


def refuse(graph, knobs: HBfKnobs) -> None:
    """Raise StrategyError for knobs that a graph does not allow.

    ``edge_classes`` takes vertex numbers of 32 bits and at most 2^30 vertices. The value "atomic64"
    of ``duplicates`` takes float32 weights.
    """
    if knobs.edge_classes and not _has_class_bits(graph):
        raise StrategyError(
            "strategy 'h_bf' keeps edge classes in two bits of 32-bit vertex numbers, so of 2^30 vertices at most, and this "
            f"graph has {graph.n_vertices} with numbers of {8 * graph.targets.dtype.itemsize} bits; set its knob "
            "edge_classes to false"
        )
    if knobs.duplicates == "atomic64" and graph.weights.dtype != np.float32:
        raise StrategyError(
            "strategy 'h_bf' keeps distance and round in one word only for float32, and the weights of this graph are "
            f"{graph.weights.dtype}; set its knob duplicates to 'mark', or build the graph with weight_type='float32'"
        )


class Run(gpu_steps.Run):
    """The state of a traversal: the knobs, the kernels compiled for them, and the arrays that they
    need.

    Attributes named like fields of the kernels' argument struct are passed to the kernels.
    """

    def __init__(self, graph, query):
        self.knobs = knobs = query.knobs or rule(graph)
        refuse(graph, knobs)
        n_hubs = 0
        if knobs.heavy != "none":
            n_hubs = int((cp.diff(graph.offsets) > knobs.heavy_degree).sum())
        heavy = knobs.heavy if n_hubs else "none"  # without hubs no code for them is compiled
        # Two counters per round that the host does not wait for: the size of the next frontier, and
        # the high-degree vertices.
        super().__init__(
            graph, query, _choose_kernels(knobs, heavy), n_counters=2 * knobs.rounds_per_read
        )
        # by round since the host has waited: a view of the counters that begins with its two
        self.counters = [self.frontier.counters[2 * i :] for i in range(knobs.rounds_per_read)]

        # Arguments of the kernels; None without the feature.
        self.hubs = None  # the high-degree vertices of a frontier
        if heavy == "blocks":
            self.hubs = cp.empty(n_hubs, graph.targets.dtype)
        self.hub_capacity = np.int64({"children": MAX_CHILDREN, "blocks": n_hubs, "none": 0}[heavy])
        self.words = None  # distance and round of each vertex, in one integer
        if knobs.duplicates == "atomic64":
            self.words = cp.empty(graph.n_vertices, np.int64)
        self.on_device = None
        if knobs.counters:
            self.on_device = cp.zeros(len(_COUNTED), np.int64)
        self.resident = np.int64(resident_threads())
        self.heavy_degree = np.int64(knobs.heavy_degree)
        self.min_width = np.int32(knobs.min_width)
        self.max_width = np.int32(knobs.max_width)
        self.classified = graph.targets  # the targets, with the class of each edge in its top bits
        self.n_skipped = 0  # edges that rounds skip, which ``finish`` relaxes
        if knobs.edge_classes:
            self._classify()
        self.launches = {
            name: PackedLaunches(self.relax[name])
            for name in ("relax", "hubs")
            if name in self.relax
        }

    def _classify(self) -> None:
        """Copy the targets with the class of each edge in their two top bits (4.1): whether rounds
        skip the edge, and whether it is the only one that leads to its target. If no edge is of
        either class, the copy is not used.
        """
        graph = self.graph
        in_degrees = self.queued_in  # its memory is free before a search
        in_degrees.fill(0)
        launch(
            self.relax["count_targets"],
            graph.n_edges,
            (graph.targets, np.int64(graph.n_edges), in_degrees),
        )
        classified = cp.empty(graph.n_edges, graph.targets.dtype)
        self.frontier.clear_counters()
        launch(
            self.relax["classify"],
            graph.n_vertices,
            self.arguments()
            | {
                "directed": np.int32(graph.directed),
                "in_degrees": in_degrees,
                "classified": classified,
            },
        )
        self.n_skipped, n_only_edges, *_ = self.frontier.read_counters()  # of the two classes
        if self.n_skipped or n_only_edges:
            self.classified = classified

    def arguments_of_round(self, i: int) -> Named:
        """Return the arguments of kernels, by name, for round ``i`` since the host has waited, from
        0 on.
        """
        return self.arguments() | {
            "u": self.graph.targets.dtype.type(0),  # child kernels alone have a vertex of their own
            "targets": self.classified,
            "queued_in": self.queued_in if self.knobs.duplicates == "mark" else None,
            "counters": self.counters[i],
            "counted": self.on_device,
            # holds the size of the frontier, which the host knows for the first round alone
            "previous": self.counters[i - 1] if i else None,
        }

    def start(self, source: int) -> None:
        """Begin a search from a vertex number, with all counts at 0."""
        super().start(source)
        if self.words is not None:
            self.words.fill(_INFINITE_KEY << 32 | _BEFORE_ALL_ROUNDS)
            self.words[source] = _BEFORE_ALL_ROUNDS  # distance 0
        self.steps = {"enqueued": 0, "child_launches": 0, "overflows": 0}
        if self.on_device is not None:
            self.on_device.fill(0)

    @property
    def frontier_size(self) -> int:
        """Number of vertices of the frontier. If its queue overflowed with duplicates, each round
        takes all vertices of the graph, and this is their number.
        """
        if self.frontier.size > self.frontier.capacity:
            return int(self.n_vertices)
        return self.frontier.size

    def wait(self, n_rounds: int) -> int:
        """Wait for ``n_rounds`` rounds that were launched, and read the sizes of their frontiers.
        Return how many of the rounds had a frontier: later ones had nothing to do.

        FrontierOverflowError: more vertices were queued than a queue without duplicates can hold.
        """
        frontier = self.frontier
        counters = frontier.read_counters()
        for i in range(n_rounds):
            n_queued, n_hubs = counters[2 * i : 2 * i + 2]
            frontier.size = n_queued  # of the frontier that round i has left for the next one
            self.steps["enqueued"] += n_queued
            if self.knobs.heavy == "children":
                self.steps["child_launches"] += min(n_hubs, int(self.hub_capacity))
            # Only where vertices are queued twice may a queue overflow; rounds then scan all.
            if n_queued > frontier.capacity:
                if self.knobs.duplicates != "keep":
                    raise FrontierOverflowError(
                        f"the frontier holds {n_queued} vertices, its queue {frontier.capacity}"
                    )
                self.steps["overflows"] += 1
            if not n_queued:
                return i + 1
        return n_rounds

    @property
    def counted(self) -> dict[str, int] | None:
        """What the kernels and the host have counted since the search began, by name; None without
        the knob ``counters``.
        """
        if self.on_device is None:
            return None
        return dict(zip(_COUNTED, self.on_device.get().tolist(), strict=True)) | self.steps

    def finish(self, source: int, n_open: int | None = None) -> None:
        """Make the results: take the distances from the words, relax the edges that the rounds
        skipped, and compute predecessors.

        ``source`` is the vertex number that the search began at. ``n_open`` vertices that were
        reached lack a predecessor; None: all of them do.
        """
        n = self.n_vertices
        if self.words is not None:
            launch(self.relax["unpack"], n, (self.words, n, self.keys))
        if self.n_skipped:
            edges = (self.graph.offsets, self.classified, self.graph.weights)
            launch(self.relax["close"], n, (*edges, n, self.limit, self.keys, self.on_device))
        super().finish(source, n_open)


def _choose_kernels(knobs: HBfKnobs, heavy: str) -> dict[str, Entry]:
    """Return the entry points for these knobs, by name. All have the same constants, so that the
    file is compiled once. ``heavy`` is the mapping of high-degree vertices, "none" without any.
    """
    entries = {
        "relax": RELAX,
        "count_targets": COUNT_TARGETS,
        "classify": CLASSIFY,
        "unpack": UNPACK,
        "close": CLOSE,
    }
    if heavy == "blocks":
        entries["hubs"] = RELAX_HUBS
    constants = {
        "DUPLICATES": _DUPLICATES[knobs.duplicates],
        "CLASSES": int(knobs.edge_classes),
        "STREAM": int(knobs.stream_frontier),
        "READ_ONLY": int(knobs.read_only_edges),
        "BYPASS_L1": int(knobs.bypass_l1),
        "ENQUEUE": _ENQUEUE[knobs.enqueue],
        "HEAVY": _HEAVY[heavy],
        "COUNTING": int(knobs.counters),
    }
    return {
        name: entry.variant(launches_children=heavy == "children", **constants)
        for name, entry in entries.items()
    }


def width_for(knobs: HBfKnobs, size: int, resident: int) -> int:
    """Return how many lanes a virtual warp, which shares the edges of a vertex, has for a frontier
    of ``size`` vertices (5.2). The device runs ``resident`` threads at once.

    The kernel computes the same, because it alone may know the size.
    """
    width = knobs.min_width
    while width < knobs.max_width and 2 * width * size <= resident:
        width *= 2
    return width


def relax(run: Run, count: int) -> int:
    """Relax the edges of the frontier, for one round or several; return how many rounds had a
    frontier.

    ``count`` is the number of rounds so far. The host waits after an eighth as many rounds, after
    one at least and ``rounds_per_read`` at most. Rounds after the search has ended cost little.
    """
    run.frontier.clear_counters()
    n_rounds = max(1, min(run.knobs.rounds_per_read, count // 8))
    size = run.frontier_size
    for i in range(n_rounds):
        # The host does not know the size of later frontiers. Any grid gives right results, and in a
        # long traversal frontiers change slowly, so that twice the first size is enough.
        _launch_round(run, count + i, i, size if i == 0 else 2 * size)
    return run.wait(n_rounds)


def _launch_round(run: Run, count: int, i: int, size: int) -> None:
    """Launch round ``count`` of the search, which is round ``i`` since the last wait, with as many
    threads as a frontier of ``size`` vertices needs.
    """
    knobs = run.knobs
    frontier = run.frontier
    threads = -(-size // knobs.vertices_per_warp) * width_for(knobs, size, int(run.resident))
    # Packed arguments differ by queue, of which there are two, and by the counters of the round.
    key = (frontier.queue.data.ptr, i)
    pack = partial(run.arguments_of_round, i)
    changed: dict[str, Any] = {"n_frontier": np.int64(frontier.size), "round": np.int32(count)}
    # ``launch_blocks`` calls ``pack`` for a new key only; ``changed`` differs from round to round.
    blocks = n_blocks(threads, BLOCK, max_grid(BLOCK))
    run.launches["relax"].launch_blocks(blocks, key, pack, **changed)
    if run.hubs is not None:
        # The host does not know how many of these vertices the frontier holds. Blocks without one
        # end at once.
        blocks = min(run.hubs.size, size, max_grid(BLOCK))
        run.launches["hubs"].launch_blocks(blocks, key, pack, **changed)
    frontier.queue, frontier.next = frontier.next, frontier.queue


# At most: float64 distances, or float32 ones in words; stamps; two queues, high-degree vertices,
# parent; edge classes.
memory = state_bytes(4 + 8 + 4, numbers=4, edge_numbers=1)

STRATEGIES = (
    Strategy(
        name="h_bf",
        device="cuda",
        plan=rounds(Run, relax),
        memory=memory,
        needs=frozenset({"weights"}),
        paper="Busato, Bombieri 2015 (H-BF)",
        rationale="some classes of edges need no atomic, and some no relaxation before the end",
        complexity="O(V E)",
        knobs=HBfKnobs,
    ),
)
