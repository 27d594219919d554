"""Systems without a queue: each level scans all vertices or all edges, and the host reads whether
any vertex was reached.

All of them give what every strategy must give and no paper does: the smallest predecessors, a
maximum depth, and targets. Predecessors cost an atomic minimum if two vertices of a level reach the
same vertex, or a pass over the edges at the end. With ``predecessors=False`` there is neither, as
in the papers.

``graph`` is a Graph on the GPU, and ``query`` says what a search computes: predecessors or none, a
limit of hops, targets, knobs. A run (``Scan``) is the state of a search, which a plan uses again
for each source. ``scan_level`` makes one level of it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..._arrays import NO_PREDECESSOR, UNREACHED
from ...bfs import gpu_steps
from ...bfs.host_loop import levels
from ...cuda import cp
from ...cuda.compiler import kernel
from ...cuda.kernel_spec import WARP, Entry, make_entries
from ...cuda.launch import Named, PackedLaunches, blocks_for, graph_arguments, launch, launch_blocks
from ...search.strategy import Strategy, state_bytes
from .params import DeferKnobs, ScanKnobs, VirtualWarpKnobs

BLOCK = 256

_KERNELS = Path(__file__).parent / "kernels"
_scan = make_entries(_KERNELS / "topology_driven.cu", BLOCK)
_hops = make_entries(_KERNELS / "bellman_ford_hops.cu", BLOCK)
_LEVEL = _scan("bfs_scan_level_thread")
_REDIRECTED = _scan("bfs_scan_redirected_thread")
_VIRTUAL_WARP = _scan("bfs_scan_virtual_warp")
_DEFERRED = _scan("bfs_scan_deferred")
_LEVEL_OF_EDGES = _scan("bfs_scan_edges")
_FLAGS = _scan("bfs_scan_flags_thread")
_ADVANCE_FLAGS = _scan("bfs_scan_flags_advance")
_RELAX = _hops("bfs_relax_thread")
_RELAX_EDGES = _hops("bfs_relax_edges")
_FIND_PREDECESSORS = _hops("bfs_find_predecessors_warp", item_threads=WARP)
_LIST_SOURCES = _hops("bfs_list_sources_warp", item_threads=WARP)
_RENAME = _hops("bfs_rename_warp", item_threads=WARP)
ENTRIES = (
    _LEVEL,
    _REDIRECTED,
    _VIRTUAL_WARP,
    _DEFERRED,
    _LEVEL_OF_EDGES,
    _FLAGS,
    _ADVANCE_FLAGS,
    _RELAX,
    _RELAX_EDGES,
    _FIND_PREDECESSORS,
    _LIST_SOURCES,
    _RENAME,
)


# Arguments that only some scans use, with values for the others: all scans have one argument
# struct.
_DEFAULT_ARGUMENTS = {
    "sources": None,
    "order": None,
    "n_edges": np.int64(0),
    "width": np.int32(1),
    "defer_from": np.int64(0),
    "queue_capacity": np.int32(0),
}


class Scan(gpu_steps.Run):
    """A traversal whose frontier is not listed: each level scans all vertices or all edges.

    The size of its frontier is 1 if the last level reached any vertex, and else 0.

    Parameters
    ----------
    graph : Graph
    query : Query
    entry : Entry
        The kernel of the scan.
    n_threads : int
        Number of threads that have work. It decides about the grid, unless the knobs do.
    shared_bytes : int
        Dynamic shared memory of a block.
    **arguments
        Arguments of the kernel other than the graph and the state of a search.
    """

    def __init__(
        self, graph, query, entry: Entry, n_threads: int, shared_bytes: int = 0, **arguments: Any
    ):
        super().__init__(graph, query, queue_capacity=1)  # the frontier is not listed
        self.knobs = query.knobs or ScanKnobs()
        self.own_arguments = _DEFAULT_ARGUMENTS | arguments
        entry = entry.variant(block=self.knobs.block)
        self.blocks = self.knobs.grid or blocks_for(entry, n_threads)
        self.kernel = kernel(entry, graph.targets.dtype)
        self.launches = PackedLaunches(self.kernel, shared_bytes=shared_bytes)

    def arguments(self) -> Named:
        """Return the arguments of the scan by name, without the level."""
        return super().arguments() | self.own_arguments

    def scan(self, level: int) -> None:
        """Expand a level by a scan of all vertices or edges, in one launch."""
        # The kernel gets the level of the vertices that it reaches.
        self.launches.launch_blocks(self.blocks, None, self.arguments, level=np.int32(level + 1))


def scan_level(run: Scan, level: int) -> None:
    """Make one level by one scan, and copy two counters to the host. This is the step of every
    strategy here.
    """
    run.frontier.clear_counters()
    run.scan(level)
    run.close_level()


def edge_list_arguments(graph) -> dict[str, Any]:
    """Return the arguments of a scan of all edges, by name: an array with the vertex that each edge
    leaves, and the number of edges.
    """
    sources = cp.empty_like(graph.targets)
    launch(
        kernel(_LIST_SOURCES, sources.dtype),
        graph.n_vertices,
        {**graph_arguments(graph), "sources": sources},
    )
    return {"sources": sources, "n_edges": np.int64(graph.n_edges)}


def by_thread(graph, query) -> Scan:
    """Return a traversal of ``graph`` with one thread per vertex."""
    return Scan(graph, query, _LEVEL, graph.n_vertices)


def by_virtual_warp(graph, query) -> Scan:
    """Return a traversal of ``graph`` in which several lanes of a warp, as many as a knob says,
    share the edges of a vertex.
    """
    width = (query.knobs or VirtualWarpKnobs()).width
    return Scan(graph, query, _VIRTUAL_WARP, width * graph.n_vertices, width=np.int32(width))


def with_hubs_deferred(graph, query) -> Scan:
    """Return a traversal of ``graph`` in which vertices of high degree wait in a queue of their
    block until it has scanned all others.
    """
    knobs = query.knobs or DeferKnobs()
    return Scan(
        graph,
        query,
        _DEFERRED,
        graph.n_vertices,
        shared_bytes=knobs.room * graph.targets.itemsize,
        defer_from=np.int64(knobs.defer_from),
        queue_capacity=np.int32(knobs.room),
    )


def by_edge(graph, query) -> Scan:
    """Return a traversal of ``graph`` with one thread per edge."""
    return Scan(graph, query, _LEVEL_OF_EDGES, graph.n_edges, **edge_list_arguments(graph))


def order_by_degree(graph):
    """Return the numbers of all vertices in the order of their degrees, ascending, as a CuPy array
    of the targets' type.
    """
    return cp.argsort(cp.diff(graph.offsets)).astype(graph.targets.dtype)


def in_order_of_degrees(graph, query) -> Scan:
    """Return a traversal of ``graph`` with one thread per vertex. Threads read their vertices from
    an array in the order of degrees, so that those of a warp have lists of about the same length.
    """
    return Scan(graph, query, _REDIRECTED, graph.n_vertices, order=order_by_degree(graph))


class FlagScan(Scan):
    """A traversal whose frontier is a flag per vertex.

    Three uint8 arrays of shape (n_vertices,) have 1 for a vertex that was visited, that is in the
    frontier, and that the current level has reached.
    """

    def __init__(self, graph, query):
        super().__init__(graph, query, _FLAGS, graph.n_vertices)
        self.flags = cp.zeros((3, graph.n_vertices), np.uint8)
        self.visited, self.in_frontier, self.updated = self.flags  # its rows
        self.advance = kernel(_ADVANCE_FLAGS.variant(block=self.knobs.block), graph.targets.dtype)

    def start(self, source: int) -> None:
        """Begin a search: the source alone is visited and in the frontier."""
        super().start(source)
        self.flags.fill(0)
        self.visited[source] = self.in_frontier[source] = 1

    def arguments(self) -> Named:
        """Return the arguments of the scan by name: those of ``Scan``, and the three flags."""
        return super().arguments() | {
            "visited": self.visited,
            "frontier": self.in_frontier,
            "updated": self.updated,
        }

    def scan(self, level: int) -> None:  # noqa: ARG002
        """Expand a level in two launches. The first flags the vertices that are reached; the second
        makes these flags the frontier, and the vertices visited. ``level`` is ignored: this kernel
        adds 1 to the distance of the vertex that it comes from.
        """
        self.launches.launch_blocks(self.blocks, None, self.arguments)
        flags = (self.visited, self.in_frontier, self.updated)
        n_vertices = np.int64(self.graph.n_vertices)
        launch_blocks(self.advance, self.blocks, (n_vertices, *flags, self.frontier.counters))


class Relaxation(Scan):
    """A traversal in rounds that relax all edges (Bellman-Ford). After r rounds the distances of
    vertices within r hops are final, and others may not be.
    """

    def scan(self, level: int) -> None:
        """Relax all edges once. ``level`` is the number of rounds before."""
        # a target beyond this many hops counts as unreached, since it may still get nearer
        self.complete_up_to = level + 1
        launch_blocks(self.kernel, self.blocks, self.arguments())


class Predecessors:
    """Predecessors of a search that computes none, found from its distances by one more pass over
    all edges.

    ``array`` has the predecessors of the last search, of the targets' type and shape (n_vertices,).
    It is None if the query asks for none.
    """

    def __init__(self, graph, query):
        self.graph = graph
        if query.predecessors:
            self.array = cp.empty(graph.n_vertices, graph.targets.dtype)
        else:
            self.array = None
        self.kernel = kernel(_FIND_PREDECESSORS, graph.targets.dtype)

    def find(self, source: int, distance):
        """Return the predecessors of a search from ``source``, -1 where unreached, or None if the
        query asks for none. ``distance`` has the hops of its result, -1 where unreached.
        """
        if self.array is not None:
            self.array.fill(NO_PREDECESSOR)
            self.array[source] = source
            graph = graph_arguments(self.graph)
            launch(self.kernel, self.graph.n_vertices, (*graph.values(), distance, self.array))
        return self.array


def plan_relaxation(entry: Entry):
    """Return the ``plan`` of a strategy that relaxes all edges in each round. ``entry`` is the
    kernel of a round.
    """

    def new_run(graph, query):
        """Return the state of a search, with the threads that the kernel needs."""
        if entry is _RELAX_EDGES:
            return Relaxation(graph, query, entry, graph.n_edges, **edge_list_arguments(graph))
        return Relaxation(graph, query, entry, graph.n_vertices)

    def plan(graph, query):
        """Allocate the state of a search in ``graph`` with the options ``query``. Return
        ``traverse(source)``, which uses the state each time.
        """
        # Predecessors are found when the search has ended. ``levels`` makes a search of the state
        # and of the step that is repeated until the frontier is empty, here a round.
        search = levels(new_run, scan_level)(graph, replace(query, predecessors=False))
        predecessors = Predecessors(graph, query)

        def traverse(source: int):
            """Search from the vertex number ``source``. Return its ``Outcome``: hops, predecessors
            if they are wanted, and the number of rounds. The arrays are valid until the next call.

            The limit of the outcome is the number of rounds if the query's limit or its targets
            stopped the search, else that of the query; None if there is none.
            """
            outcome = search(source)
            if outcome.limit is not None:  # distances beyond the limit may not be settled
                outcome.distance[outcome.distance > outcome.limit] = UNREACHED
            return outcome._replace(predecessor=predecessors.find(source, outcome.distance))

        return traverse

    return plan


def plan_by_degree(graph, query):
    """Plan a scan of a copy of the graph whose vertices are renamed in the order of their degrees.
    Return the search, a function of a source, whose results have the old names (vertex numbers).
    """
    # The renamed graph. By new name ``order`` has the old one, and by old name ``rank`` the new.
    order = order_by_degree(graph)
    index = graph.targets.dtype
    rank = cp.empty_like(order)
    rank[order] = cp.arange(graph.n_vertices, dtype=index)
    offsets = cp.zeros_like(graph.offsets)
    targets = cp.empty_like(graph.targets)
    offsets[1:] = cp.cumsum(cp.diff(graph.offsets)[order])
    n_vertices = np.int64(graph.n_vertices)
    launch(
        kernel(_RENAME, index),
        n_vertices,
        (graph.offsets, graph.targets, rank, offsets, n_vertices, targets),
    )

    # Searches in the renamed graph. Their predecessors would be the smallest by the new names, so
    # that they are found in the graph itself.
    target_vertices = None
    if query.targets is not None:
        target_vertices = rank[cp.asarray(query.targets)].astype(np.int64).get()
    renamed = replace(graph, offsets=offsets, targets=targets, weights=None)
    # ``levels`` makes a search of a state, ``by_thread``, and of the step for one level.
    search = levels(by_thread, scan_level)(
        renamed, replace(query, predecessors=False, targets=target_vertices)
    )
    predecessors = Predecessors(graph, query)
    distance = cp.empty(graph.n_vertices, np.int32)

    def traverse(source: int):
        """Search from ``source``, a vertex number of the graph itself. Return the ``Outcome`` with
        hops and predecessors by the graph's vertex numbers, valid until the next call.

        The limit of the outcome is the level at which the query's limit or its targets stopped the
        search, else that of the query; None if there is none.
        """
        outcome = search(int(rank[source]))
        cp.take(outcome.distance, rank, out=distance)
        return outcome._replace(distance=distance, predecessor=predecessors.find(source, distance))

    return traverse


_strategy = partial(
    Strategy, device="cuda", memory=state_bytes(4), complexity="O(D V + E)", knobs=ScanKnobs
)

# "Springer" is: Breadth-first Search in CUDA, Tokyo Institute of Technology. Aliases with this name
# are those of its kernels. The paper varies the size of the grid and of its blocks: ``ScanKnobs``.
STRATEGIES = (
    # Springer's figure 9: one thread per vertex relaxes all of its edges in each round until no
    # distance changes. Here with an atomic minimum and a pass for predecessors;
    # kernels/bellman_ford_hops.cu says why.
    _strategy(
        name="scan_relax",
        aliases=("springer-simple",),
        plan=plan_relaxation(_RELAX),
        paper="Springer, section 3",
        rationale="without a frontier every edge is walked in every round: Bellman-Ford",
        complexity="O(D (V + E))",
    ),
    # Harish, Narayanan, HiPC 2007, with the three masks and two kernels of their published code.
    # Springer's figure 10 is the same with a stride, so one strategy represents both.
    _strategy(
        name="scan_flags",
        aliases=("iiit-bfs", "harish-narayanan", "springer-frontier"),
        plan=levels(FlagScan, scan_level),
        memory=state_bytes(4 + 3),
        paper="Harish, Narayanan 2007 (IIIT-BFS); Springer, section 3.1",
        rationale=(
            "flags in place of a queue cost nothing to append to, and a "
            "look at every vertex each level"
        ),
    ),
    # Springer's figure 11, after Hong et al.: the distance is the flag. The base of the strategies
    # below.
    _strategy(
        name="scan_level",
        aliases=("springer-frontier-numbers", "sevilmis-layer-top-down"),
        plan=levels(by_thread, scan_level),
        paper="Springer, section 3.2; Hong, Kim, Oguntebi, Olukotun 2011",
        rationale=(
            "the number of the level serves as the flag: one array instead "
            "of four, one kernel instead of two"
        ),
    ),
    # Springer's figure 12, after Hong et al. Its threshold and capacity are knobs. The queue is in
    # dynamic shared memory, so one kernel serves all sizes.
    _strategy(
        name="scan_deferred",
        aliases=("springer-frontier-numbers-defer",),
        plan=levels(with_hubs_deferred, scan_level),
        paper="Springer, section 3.3; Hong, Kim, Oguntebi, Olukotun 2011",
        rationale=(
            "hubs wait until the end of their block, so no vertex of low degree waits for them"
        ),
        knobs=DeferKnobs,
    ),
    # Springer, section 3.4, first way: the kernel of scan_level on a graph whose vertices are
    # renamed by degree. The paper does not say how results get their old names. Here distances are
    # permuted back, and predecessors are found in the graph before renaming, since the smallest by
    # the old names is needed. Both are part of the search; renaming is part of planning.
    _strategy(
        name="scan_by_degree",
        aliases=("springer-reordering",),
        plan=plan_by_degree,
        # and a renamed graph with its distances
        memory=state_bytes(4 + 12, numbers=1, edge_numbers=1),
        paper="Springer, section 3.4; Zhang, Jiang, Guo, Tian, Shen 2011",
        rationale=(
            "if vertices are ordered by degree, the lanes of a warp have "
            "lists of about the same length"
        ),
    ),
    # Springer, section 3.4, second way: the same order by an array of all vertices, from which each
    # thread reads its own.
    _strategy(
        name="scan_redirected",
        aliases=("springer-redirection",),
        plan=levels(in_order_of_degrees, scan_level),
        memory=state_bytes(4, numbers=1),
        paper="Springer, section 3.4; Zhang, Jiang, Guo, Tian, Shen 2011",
        rationale="a list in the order of degrees saves the copy, and scatters every other read",
    ),
    # Hong et al., PPoPP 2011, and Springer's figure 13, where a virtual warp visits as many
    # vertices as it has lanes, one after the other. Here consecutive virtual warps visit
    # consecutive vertices. The width is a knob.
    _strategy(
        name="scan_virtual_warp",
        aliases=("virtual-warp", "springer-virtual-wc"),
        plan=levels(by_virtual_warp, scan_level),
        paper="Hong, Kim, Oguntebi, Olukotun 2011; Springer, section 3.5",
        rationale=(
            "several lanes per vertex: long lists finish sooner, and lanes idle at short ones"
        ),
        knobs=VirtualWarpKnobs,
    ),
    # Springer's figure 16: scan_relax with one thread per edge, and an array of all sources, which
    # is part of planning.
    _strategy(
        name="scan_relax_edges",
        aliases=("springer-per-edge-basic",),
        plan=plan_relaxation(_RELAX_EDGES),
        memory=state_bytes(4, edge_numbers=1),  # the sources of all edges
        paper="Springer, section 4.1",
        rationale="with one thread per edge all threads have equal work, whatever the degrees",
        complexity="O(D E)",
    ),
    # Jia et al., GPU Computing Gems, 2011: the forward phase of their betweenness centrality
    # without the counts of paths. Springer's figure 17 is the same kernel, so one strategy
    # represents both: two arrays of n_edges elements, O(ED) work.
    _strategy(
        name="scan_edges",
        aliases=("edge-parallelism", "springer-per-edge-frontier-numbers"),
        plan=levels(by_edge, scan_level),
        memory=state_bytes(4, edge_numbers=1),  # the sources of all edges
        paper="Jia et al. 2011 (edge parallelism); Springer, section 4.2",
        rationale="no thread waits for another's list, but every level reads every edge",
        complexity="O(D E)",
    ),
)
