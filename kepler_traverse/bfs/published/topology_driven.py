"""Systems without a queue: each level looks at every vertex or at every edge, and the host asks whether anything came of it.

All of them give what every row must and no paper does: the smallest predecessor, a depth at which to stop, and targets.
Predecessors cost an atomic minimum where two of a level reach one vertex, or a pass over the edges in the end; with
``predecessors=False`` there is neither, as in the papers.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from ..._arrays import NO_PREDECESSOR, UNREACHED
from ...cuda import cp
from ...cuda.compiler import kernel
from ...cuda.kernel_spec import WARP, Entry, arguments
from ...cuda.launch import launch
from ...strategy import Strategy
from .. import gpu_steps
from ..host_loop import levels
from .params import DeferKnobs, VirtualWarpKnobs

BLOCK = 256

_KERNELS = Path(__file__).parents[1] / "kernels" / "published"
_ROWS = ("offset_t* offsets", "vertex_t* targets")
_EDGES = ("vertex_t* sources", "vertex_t* targets", "int64 n_edges")
_RESULTS = ("int32 level", "int32* distance", "vertex_t*? predecessor", "int64* counters")


def _entry(file: str, name: str, *declared: str, item_threads: int = 1) -> Entry:
    return Entry(name, _KERNELS / f"{file}.cu", BLOCK, arguments(*declared), item_threads=item_threads)


_LEVEL = _entry("topology_driven", "bfs_scan_level_thread", *_ROWS, "int64 n_vertices", *_RESULTS)
_REDIRECTED = _entry(
    "topology_driven", "bfs_scan_redirected_thread", *_ROWS, "vertex_t* order", "int64 n_vertices", *_RESULTS
)
_VIRTUAL_WARP = _entry("topology_driven", "bfs_scan_virtual_warp", *_ROWS, "int64 n_vertices", "int32 width", *_RESULTS)
_DEFERRED = _entry(
    "topology_driven",
    "bfs_scan_deferred",
    *_ROWS,
    "int64 n_vertices",
    "offset_t defer_from",
    "int32 queue_capacity",
    *_RESULTS,
)
_LEVEL_OF_EDGES = _entry("topology_driven", "bfs_scan_edges", *_EDGES, *_RESULTS)
_FLAGS = _entry(
    "topology_driven",
    "bfs_scan_flags_thread",
    *_ROWS,
    *(
        "uint8* visited",
        "int64 n_vertices",
        "uint8* frontier",
        "uint8* updated",
        "int32* distance",
        "vertex_t*? predecessor",
    ),
)
_ADVANCE_FLAGS = _entry(
    "topology_driven",
    "bfs_scan_flags_advance",
    "int64 n_vertices",
    "uint8* visited",
    "uint8* frontier",
    "uint8* updated",
    "int64* counters",
)
_RELAX = _entry("bellman_ford_hops", "bfs_relax_thread", *_ROWS, "int64 n_vertices", "int32* distance", "int64* counters")
_RELAX_EDGES = _entry("bellman_ford_hops", "bfs_relax_edges", *_EDGES, "int32* distance", "int64* counters")
_COUNT_UNSETTLED = _entry(
    "bellman_ford_hops",
    "bfs_count_unsettled",
    "int64* target_vertices",
    "int64 n_target_vertices",
    "int32 rounds",
    "int32* distance",
    "int64* counters",
)
_FIND_PREDECESSORS = _entry(
    "bellman_ford_hops",
    "bfs_find_predecessors_warp",
    *(*_ROWS, "int64 n_vertices", "int32* distance", "vertex_t* predecessor"),
    item_threads=WARP,
)
_LIST_SOURCES = _entry(
    "bellman_ford_hops", "bfs_list_sources_warp", *_ROWS, "int64 n_vertices", "vertex_t* sources", item_threads=WARP
)
_RENAME = _entry(
    "bellman_ford_hops",
    "bfs_rename_warp",
    *(*_ROWS, "vertex_t* rank", "offset_t* renamed_offsets", "int64 n_vertices", "vertex_t* renamed"),
    item_threads=WARP,
)
ENTRIES = (
    *(_LEVEL, _REDIRECTED, _VIRTUAL_WARP, _DEFERRED, _LEVEL_OF_EDGES, _FLAGS, _ADVANCE_FLAGS),
    *(_RELAX, _RELAX_EDGES, _COUNT_UNSETTLED, _FIND_PREDECESSORS, _LIST_SOURCES, _RENAME),
)


class Scan(gpu_steps.Run):
    """A traversal whose frontier is nowhere listed: its size is 1 while the last level reached anything, else 0.

    ``walked`` are the arguments of ``entry`` before the level and the results; ``n_threads`` is how many may share the work.
    """

    def __init__(self, graph, query, entry: Entry, walked: tuple, n_threads: int, shared_bytes: int = 0):
        super().__init__(graph, query, queue_capacity=1)
        self.kernel = kernel(entry, graph.targets.dtype)
        self.walked, self.n_threads, self.shared_bytes = walked, n_threads, shared_bytes

    def look(self, level: int) -> None:
        """Let every vertex or edge see whether it has something to do in a level."""
        results = (np.int32(level + 1), self.distance, self.predecessor, self.frontier.counters)
        launch(self.kernel, self.n_threads, (*self.walked, *results), shared_bytes=self.shared_bytes)


def look(run: Scan, level: int) -> None:
    """The step of every row here: one look at everything, and one copy of two counters to the host."""
    run.frontier.clear_counters()
    run.look(level)
    run.count_targets_left()
    run.targets_left = run.frontier.advance()


def rows_of(graph) -> tuple:
    """The arguments that a walk over all vertices takes."""
    return graph.offsets, graph.targets, np.int64(graph.n_vertices)


def edges_of(graph) -> tuple:
    """The graph as a list of edges, with the source of each beside its target: the arguments of a walk over them."""
    sources = cp.empty_like(graph.targets)
    launch(kernel(_LIST_SOURCES, sources.dtype), graph.n_vertices, (*rows_of(graph), sources))
    return sources, graph.targets, np.int64(graph.n_edges)


def by_thread(graph, query) -> Scan:
    return Scan(graph, query, _LEVEL, rows_of(graph), graph.n_vertices)


def by_virtual_warp(graph, query) -> Scan:
    width = (query.knobs or VirtualWarpKnobs()).width
    return Scan(graph, query, _VIRTUAL_WARP, (*rows_of(graph), np.int32(width)), width * graph.n_vertices)


def with_outliers_deferred(graph, query) -> Scan:
    knobs = query.knobs or DeferKnobs()
    walked = (*rows_of(graph), np.int64(knobs.defer_from), np.int32(knobs.room))
    return Scan(graph, query, _DEFERRED, walked, graph.n_vertices, knobs.room * graph.targets.itemsize)


def by_edge(graph, query) -> Scan:
    return Scan(graph, query, _LEVEL_OF_EDGES, edges_of(graph), graph.n_edges)


def order_by_degree(graph):
    """All vertices, those of few edges first."""
    return cp.argsort(cp.diff(graph.offsets)).astype(graph.targets.dtype)


def redirected(graph, query) -> Scan:
    walked = (graph.offsets, graph.targets, order_by_degree(graph), np.int64(graph.n_vertices))
    return Scan(graph, query, _REDIRECTED, walked, graph.n_vertices)


class FlagScan(Scan):
    """A traversal whose frontier is flags: who is in it, who was, and who has just been reached."""

    def __init__(self, graph, query):
        super().__init__(graph, query, _FLAGS, rows_of(graph), graph.n_vertices)
        self.visited, self.in_frontier, self.updated = self.flags = cp.zeros((3, graph.n_vertices), np.uint8)
        self.advance = kernel(_ADVANCE_FLAGS, graph.targets.dtype)

    def start(self, source: int) -> None:
        super().start(source)
        self.flags.fill(0)
        self.visited[source] = self.in_frontier[source] = 1

    def look(self, level: int) -> None:  # noqa: ARG002  (the distance of the frontier says it)
        offsets, targets, n_vertices = self.walked
        flags = (self.in_frontier, self.updated)
        walked = (offsets, targets, self.visited, n_vertices, *flags, self.distance, self.predecessor)
        launch(self.kernel, self.n_threads, walked)
        launch(self.advance, self.n_threads, (n_vertices, self.visited, *flags, self.frontier.counters))


class Relaxation(Scan):
    """A traversal in rounds, after r of which the vertices within r hops are settled and others may not be."""

    def __init__(self, graph, query, *walk):
        super().__init__(graph, query, *walk)
        self.count_unsettled = kernel(_COUNT_UNSETTLED, graph.targets.dtype)

    def look(self, level: int) -> None:
        self.rounds = np.int32(level + 1)
        launch(self.kernel, self.n_threads, (*self.walked, self.distance, self.frontier.counters))

    def count_targets_left(self) -> None:
        if self.targets is not None:
            size = self.targets.size
            arguments_ = (self.targets, np.int64(size), self.rounds, self.distance, self.frontier.counters)
            launch(self.count_unsettled, size, arguments_)


class Predecessors:
    """Predecessors of a search that has none, found in its distances by one more walk over all edges."""

    def __init__(self, graph, query):
        self.graph = graph
        self.array = cp.empty(graph.n_vertices, graph.targets.dtype) if query.predecessors else None
        self.kernel = kernel(_FIND_PREDECESSORS, graph.targets.dtype)

    def of(self, source: int, distance):
        if self.array is not None:
            self.array.fill(NO_PREDECESSOR)
            self.array[source] = source
            launch(self.kernel, self.graph.n_vertices, (*rows_of(self.graph), distance, self.array))
        return self.array


def relaxing(entry: Entry, walk, n_threads_of):
    """Return the ``plan`` of a row that relaxes edges: those that ``walk(graph)`` gives to so many threads."""

    def plan(graph, query):
        def new_run(graph, query):
            return Relaxation(graph, query, entry, walk(graph), n_threads_of(graph))

        search = levels(new_run, look)(graph, replace(query, predecessors=False))
        predecessors = Predecessors(graph, query)

        def traverse(source: int):
            outcome = search(source)
            if outcome.limit is not None:  # what lies beyond was found on the way, and need not be right
                outcome.distance[outcome.distance > outcome.limit] = UNREACHED
            return outcome._replace(predecessor=predecessors.of(source, outcome.distance))

        return traverse

    return plan


def by_degree(graph, query):
    """Plan a scan of the graph whose vertices are renamed in the order of their degrees, and name them back in the end."""
    order, index = order_by_degree(graph), graph.targets.dtype
    rank = cp.empty_like(order)
    rank[order] = cp.arange(graph.n_vertices, dtype=index)
    offsets, targets = cp.zeros_like(graph.offsets), cp.empty_like(graph.targets)
    offsets[1:] = cp.cumsum(cp.diff(graph.offsets)[order])
    n_vertices = np.int64(graph.n_vertices)
    launch(kernel(_RENAME, index), n_vertices, (graph.offsets, graph.targets, rank, offsets, n_vertices, targets))

    target_vertices = None if query.targets is None else rank[cp.asarray(query.targets)].astype(np.int64).get()
    renamed = replace(graph, offsets=offsets, targets=targets, weights=None)
    search = levels(by_thread, look)(renamed, replace(query, predecessors=False, targets=target_vertices))
    predecessors, distance = Predecessors(graph, query), cp.empty(graph.n_vertices, np.int32)

    def traverse(source: int):
        outcome = search(int(rank[source]))
        cp.take(outcome.distance, rank, out=distance)
        return outcome._replace(distance=distance, predecessor=predecessors.of(source, distance))

    return traverse


def memory(*, flags: int = 0, numbers: int = 0, sources: bool = False, renamed: bool = False):
    """Return the ``memory`` of a row that has flags and numbers for each vertex beside distance and predecessor.

    ``sources``: those of all edges; ``renamed``: a graph with other names, and its distances.
    """

    def of(n_vertices: int, n_edges: int, predecessors: bool) -> int:
        index = 4 if n_vertices < 2**31 else 8
        of_graph = index * n_edges * (sources + renamed) + (8 + 4) * n_vertices * renamed
        return n_vertices * (4 + flags + index * (numbers + predecessors)) + of_graph

    return of


_row = partial(Strategy, device="cuda")

# "Springer" is: Breadth-first Search in CUDA, Tokyo Institute of Technology. Names with it are those of its kernels, where
# it shows them. It tries out sizes of grids; here a grid has a thread for each item, up to four times what the device holds.
STRATEGIES = (
    # Springer's figure 9: a thread a vertex relaxes all of its edges in every round, whether or not anything changed, until
    # nothing does. Here with an atomic minimum and a pass for predecessors (kernels/published/scan_relax.cu says why).
    _row(
        name="scan_relax",
        aliases=("springer-simple",),
        plan=relaxing(_RELAX, rows_of, lambda graph: graph.n_vertices),
        memory=memory(),
        paper="Springer, section 3",
        rationale="without a frontier every edge is walked in every round: Bellman-Ford",
        complexity="O(D (V + E))",
    ),
    # Harish, Narayanan, HiPC 2007, with the three masks and two kernels of the code that they published; Springer's figure
    # 10 is the same with a stride, so one row stands for both.
    _row(
        name="scan_flags",
        aliases=("iiit-bfs", "harish-narayanan", "springer-frontier"),
        plan=levels(FlagScan, look),
        memory=memory(flags=3),
        paper="Harish, Narayanan 2007 (IIIT-BFS); Springer, section 3.1",
        rationale="flags in place of a queue cost nothing to append to, and a look at every vertex each level",
        complexity="O(D V + E)",
    ),
    # Springer's figure 11, after Hong et al.: the distance is the flag. The base of the rows below.
    _row(
        name="scan_level",
        aliases=("springer-frontier-numbers", "sevilmis-layer-top-down"),
        plan=levels(by_thread, look),
        memory=memory(),
        paper="Springer, section 3.2; Hong, Kim, Oguntebi, Olukotun 2011",
        rationale="a level's number is flag enough: one array and one kernel do for four and two",
        complexity="O(D V + E)",
    ),
    # Springer's figure 12, after Hong et al.; its threshold and its room are knobs. The queue lies in shared memory that the
    # launch asks for, so that one kernel serves all sizes.
    _row(
        name="scan_deferred",
        aliases=("springer-frontier-numbers-defer",),
        plan=levels(with_outliers_deferred, look),
        memory=memory(),
        paper="Springer, section 3.3; Hong, Kim, Oguntebi, Olukotun 2011",
        rationale="heavy vertices that wait for the end of a block hold up each other, and no light one",
        complexity="O(D V + E)",
        knobs=DeferKnobs,
    ),
    # Springer, section 3.4, first way: the kernel of scan_level on a graph whose vertices are renamed by degree. The paper
    # does not say what becomes of the names; here distances get their old places back, and predecessors are looked for in
    # the graph as it was, since the smallest by name is wanted. Both count as part of the search, renaming as planning.
    _row(
        name="scan_by_degree",
        aliases=("springer-reordering",),
        plan=by_degree,
        memory=memory(numbers=1, renamed=True),
        paper="Springer, section 3.4; Zhang, Jiang, Guo, Tian, Shen 2011",
        rationale="vertices stored by degree give the lanes of a warp rows of one length",
        complexity="O(D V + E)",
    ),
    # Springer, section 3.4, second way: the same order by an array of all vertices that each thread reads its own from.
    _row(
        name="scan_redirected",
        aliases=("springer-redirection",),
        plan=levels(redirected, look),
        memory=memory(numbers=1),
        paper="Springer, section 3.4; Zhang, Jiang, Guo, Tian, Shen 2011",
        rationale="a list in the order of degrees saves the copy, and scatters every other read",
        complexity="O(D V + E)",
    ),
    # Hong et al., PPoPP 2011, and Springer's figure 13, where a virtual warp takes as many vertices as it has lanes, one
    # after the other; here neighbouring virtual warps take neighbouring vertices. The width is a knob.
    _row(
        name="scan_virtual_warp",
        aliases=("virtual-warp", "springer-virtual-wc"),
        plan=levels(by_virtual_warp, look),
        memory=memory(),
        paper="Hong, Kim, Oguntebi, Olukotun 2011; Springer, section 3.5",
        rationale="some lanes per vertex: long rows finish sooner, lanes beyond a short one idle",
        complexity="O(D V + E)",
        knobs=VirtualWarpKnobs,
    ),
    # Springer's figure 16: scan_relax with a thread an edge, and an array of their sources, made as part of planning.
    _row(
        name="scan_relax_edges",
        aliases=("springer-per-edge-basic",),
        plan=relaxing(_RELAX_EDGES, edges_of, lambda graph: graph.n_edges),
        memory=memory(sources=True),
        paper="Springer, section 4.1",
        rationale="a thread an edge has equal work, whatever the degrees",
        complexity="O(D E)",
    ),
    # Jia et al., GPU Computing Gems, 2011: the forward phase of their betweenness centrality without the counts of paths.
    # Springer's figure 17 is the same kernel, so one row stands for both: two arrays of the length of the edges, O(ED) work.
    _row(
        name="scan_edges",
        aliases=("edge-parallelism", "springer-per-edge-frontier-numbers"),
        plan=levels(by_edge, look),
        memory=memory(sources=True),
        paper="Jia et al. 2011 (edge parallelism); Springer, section 4.2",
        rationale="no thread waits for another's row, and every level reads every edge",
        complexity="O(D E)",
    ),
)
