"""Multi-source SSSP on a GPU with one source per lane: one load of an edge serves 32 sources. See
source_per_lane.cu.

For graphs of few rounds and many edges. Memory accesses bound the time: each relaxed edge reads the
distances of a vertex from 32 sources, 128 bytes of float32, and again after each improvement.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..._arrays import as_distance
from ...cuda import cp, graph_statistics
from ...cuda.compiler import Request, kernel
from ...cuda.csr_build import degree_statistics
from ...cuda.kernel_spec import Entry
from ...cuda.launch import Named, PackedLaunches, named
from ...search.strategy import MultiSourceOutcome
from .. import cpu_steps, gpu_steps
from ..near_far_gpu import first_width
from ..tuning import SourcePerLaneTuning

_DEFAULTS = SourcePerLaneTuning()
_FILE = Path(__file__).parents[1] / "kernels" / "source_per_lane.cu"
_ENTRY = Entry(
    "sssp_source_per_lane_warp",
    _FILE,
    _DEFAULTS.block,
    constants=(("CHUNK", min(_DEFAULTS.uneven_chunk, _DEFAULTS.even_chunk)),),
)
ENTRIES = (_ENTRY,)
GROUP = 32
group_size = partial(min, GROUP)


def memory(shape, query, group: int) -> int:
    """Return the bytes of a run.

    32 distances and two masks per vertex, edge chunks, distances per source, and the arrays that
    compute predecessors. ``shape`` is a ``Shape`` (size of the graph), ``query`` a ``Query``, and
    ``group`` the number of sources that are searched together.
    """
    n = shape.n_vertices
    tuning = query.get_tuning(SourcePerLaneTuning)  # the defaults, unless the query has its own
    n_chunks = 2 * shape.n_edges // min(tuning.uneven_chunk, tuning.even_chunk) + 1
    state = n * (GROUP * shape.weight + 8) + 8 * n_chunks
    if query.output == "targets" and query.targets is not None:
        columns = query.targets.size
    else:
        columns = n
    predecessor_bytes = group * n * shape.index if query.predecessors else 0
    target_bytes = GROUP * (n if query.targets is not None or query.has_target_lists else 0)
    # the state of one search, which finds predecessors and overflows
    single = gpu_steps.memory(n, shape.n_edges, query.predecessors)
    return state + group * columns * shape.weight + target_bytes + predecessor_bytes + single + 4096


def terms(shape, n_sources: int, group: int, machine) -> dict[str, float]:  # noqa: ARG001
    """Return how much work all searches take, by terms of the cost model: the host waits at each
    round, and each relaxed edge reads 32 distances.

    The model (``auto.costs``) multiplies each amount by fitted nanoseconds per unit. ``shape`` is a
    ``Shape`` (size of the graph), and ``machine`` a ``Machine`` (cache and speeds).
    ``group`` is ignored: a group that is not full takes as long as one of 32 sources.
    """
    groups = -(-n_sources // GROUP)
    # Edges that groups relax, in units of distances of 4 bytes. ``edge_share`` is the share of the
    # edges that at least one search of a group visits.
    edges = groups * shape.n_edges * shape.edge_share(GROUP) * max(shape.weight, 4) / 4
    return {
        "start": groups,
        "level": groups * shape.likely_rounds,  # rounds
        "edge": edges,
        # Edges that are relaxed again, the more, the more weights differ: ``spread`` is their
        # standard deviation divided by their mean.
        "again": edges * shape.spread,
        "extra_round": groups * shape.extra_rounds,  # rounds that uneven weights add
        "vertex": groups * shape.likely_rounds * shape.n_vertices,  # masks that are read
        # Edges whose distances miss the cache. ``scatter`` is the share of the edges whose two ends
        # have numbers far apart.
        "miss": edges
        * shape.scatter
        * machine.share_of_misses(GROUP * max(shape.weight, 4) * shape.n_vertices),
        "write": groups * GROUP * shape.n_vertices,  # distances
    }


def _size_chunks(graph, tuning: SourcePerLaneTuning) -> tuple[bool, int]:
    """Return whether degrees are uneven, and the number of edges of an edge chunk: adjacency lists
    of as many edges or more are split.
    """
    mean, _, max_degree = degree_statistics(graph.offsets)
    is_uneven = max_degree >= tuning.uneven_from * mean
    if is_uneven:
        return True, tuning.uneven_chunk
    return False, tuning.even_chunk


def kernels(graph, query, group: int) -> list[Request]:  # noqa: ARG001
    """Return the kernels that ``plan`` needs for the same arguments, so that they can be compiled
    before it is called. ``group`` is ignored: the kernel has a lane for each of 32
    sources, whatever their number.
    """
    tuning = query.get_tuning(SourcePerLaneTuning)
    _, chunk = _size_chunks(graph, tuning)
    entry = _ENTRY.variant(block=tuning.block, CHUNK=chunk)
    return [Request(entry, graph.targets.dtype, graph.weights.dtype)]


def plan(graph, query, _group: int):
    """Allocate and compile; return ``traverse(sources, lists=None)`` for up to 32 vertex numbers at
    once.

    ``graph`` is a ``Graph`` on a GPU, and ``query`` a ``Query``, the options of the search.
    ``_group`` is ignored: there is memory for 32 sources, the lanes of a warp.
    """
    run = _Run(graph, query)

    def traverse(sources, lists=None) -> MultiSourceOutcome:
        """Search from the vertex numbers ``sources``, 32 at most. Return the outcome, a row per
        source: distances of all vertices or at the targets, and predecessors if they are wanted.

        ``lists`` (``TargetLists``) are the targets of each source, if each has its own, else None.
        If the query outputs distances at targets, those at the lists are one array, list after
        list.
        """
        sources = np.asarray(sources, np.int64)
        k = sources.size
        if lists is not None:
            # The searches may end once the targets of all sources are settled.
            union = lists.union()
            run.wait_for(union)
        rounds, limits, threshold = run.search(sources)
        distance, predecessor = run.results(sources)
        # Each source has distances at the targets of all sources; take those of its own list.
        if lists is not None and query.output == "targets":
            distance = lists.take(distance, union)
        # ``below``: no finite distance is beyond the last threshold.
        return MultiSourceOutcome(
            distance, predecessor, limits, [rounds] * k, below=float(threshold)
        )

    return traverse


class _Run:
    """The state of the searches from up to 32 sources: 32 distances per vertex, and masks of the
    sources whose distance improved.

    A vertex is near in a search if its distance is below a threshold, and else far. Attributes
    without an underscore are passed to the kernel by their names. n is the number of vertices.

    - ``_distances``: of shape (n, 32), the type of the weights: those of the i-th source in lane i.
    - ``keys``: the same memory as integers, whose order is that of the distances.
    - ``now``, ``next``: uint32 of shape (n,). Bit i is set if the vertex improved in the i-th search
      and its edges are still to be relaxed: in this round or later, and in the next round.
    - ``hub_chunks``: edge chunks of long adjacency lists, uint64.
    - ``counters``: int64 of shape (3,): near vertices that improved, edges relaxed, and ``_infinite``
      less the key of the smallest far distance, 0 if no vertex is far.
    - ``_infinite``: the key of an infinite distance.
    - ``_target_vertices``: int64 on the GPU; a search may end once they are final. None without any.
    - ``_single``: state of one search, which finds predecessors and overflows; None if it is not
      needed.
    - ``_first_width``: the width of the first pile; infinite if all vertices are near.
    """

    def __init__(self, graph, query):
        """Compile the kernel, and allocate for up to 32 sources."""
        n = graph.n_vertices
        self._graph = graph
        self._query = query
        self._tuning = tuning = query.get_tuning(SourcePerLaneTuning)
        self._real = real = graph.weights.dtype
        is_uneven, chunk = _size_chunks(graph, tuning)
        self._kernel = kernel(
            _ENTRY.variant(block=tuning.block, CHUNK=chunk), graph.targets.dtype, real
        )
        # Distances and masks, which ``_start`` resets.
        self._distances = cp.empty((n, GROUP), real)
        self.keys = self._distances.view(f"i{real.itemsize}")
        self._infinite = int(np.array([np.inf], real).view(self.keys.dtype)[0])
        self.now = cp.empty(n, np.uint32)
        self.next = cp.empty(n, np.uint32)
        self.hub_chunks = graph_statistics.chunks_of_hubs(graph.offsets, chunk)
        self.counters = cp.zeros(3, np.int64)
        self._launches = PackedLaunches(self._kernel)
        self._counters_on_host = np.frombuffer(cp.cuda.alloc_pinned_memory(24), np.int64, 3)
        self._target_vertices = query.copy_targets_to_gpu()
        may_overflow = query.limit is None and cpu_steps.may_overflow(graph)
        self._single = gpu_steps.Run(graph, query) if query.predecessors or may_overflow else None
        self.limit = as_distance(query.limit, real)
        may_stop = query.may_stop  # it has a limit or targets
        # Any vertex is near in one of 32 searches. Where degrees are uneven, piles save little work
        # and cost rounds.
        is_all_near = is_uneven and not may_stop
        if is_all_near:
            self._first_width = real.type(np.inf)
        else:
            self._first_width = first_width(graph, may_stop)

    def wait_for(self, targets) -> None:
        """Set the targets of the next searches, which may end once the distances of all of them are
        final. ``targets`` are vertex numbers.
        """
        self._target_vertices = cp.asarray(targets, np.int64)

    def search(self, sources) -> tuple[int, list[Any], Any]:
        """Relax until no distance improves, or the targets are final.

        ``sources`` are int64 vertex numbers of shape (k,). Return the number of rounds; for each
        source the distance up to which it is complete, None for everywhere; and the last threshold,
        a scalar of the type of the distances.
        """
        self._start(sources)
        width = self._first_width  # the difference of two thresholds
        rounds = 0
        # Edges relaxed, and rounds, since the width was last considered.
        edges_of_pile = 0
        pile_rounds = 0
        threshold = _beyond(self._real.type(0), width)
        while True:
            # ``gap`` is the key of infinity minus that of the smallest far distance, 0 for none.
            n_near, n_walked, gap = self._relax(threshold)
            rounds += 1
            pile_rounds += 1
            edges_of_pile += n_walked
            if n_near:
                continue
            if not gap:  # no vertex is far either
                return rounds, [self._query.limit] * sources.size, threshold

            # The near pile is empty: all distances below the threshold are final.
            if self._target_vertices is not None:
                farthest = self._find_farthest(sources.size)
                distances = farthest.get().view(self._real)
                if distances.max() < threshold:
                    # Distances beyond the farthest target may not be final: forget them.
                    keys = self.keys[:, : sources.size]
                    keys[keys > farthest] = self._infinite
                    return rounds, distances.tolist(), threshold

            # Wider piles where rounds have few edges.
            if pile_rounds >= self._tuning.warm_up:
                with np.errstate(over="ignore"):
                    if edges_of_pile < self._tuning.light * pile_rounds:
                        width = width + width
                edges_of_pile = pile_rounds = 0

            # The next pile begins at the nearest far vertex, whose distance the gap tells.
            nearest = np.array([self._infinite - gap], self.keys.dtype).view(self._real)[0]
            threshold = _beyond(nearest, width)

    def _find_farthest(self, k: int):
        """Return the distance of the farthest target from each of the ``k`` sources, 0 without a
        target, as keys of shape (k,), CuPy.

        Keys, integers in the order of the distances, are compared in place of floats, since CuPy
        treats subnormal floats as 0.
        """
        if not self._target_vertices.size:
            return cp.zeros(k, self.keys.dtype)
        return self.keys[self._target_vertices, :k].max(axis=0)

    def _start(self, sources) -> None:
        """Begin the searches from the vertex numbers ``sources``: the i-th has distance 0 in lane
        i, and alone is near.
        """
        self._distances.fill(np.inf)
        places = cp.asarray(sources)
        self._distances[places, cp.arange(sources.size)] = 0
        self.next.data.memset_async(0, self.next.nbytes)
        self.now.data.memset_async(0, self.now.nbytes)
        # Sources may be the same vertex, whose mask then has several bits.
        vertices, place_of_source = np.unique(sources, return_inverse=True)
        masks = np.zeros(vertices.size, np.uint32)
        np.bitwise_or.at(
            masks, place_of_source, np.uint32(1) << np.arange(sources.size, dtype=np.uint32)
        )
        self.now[cp.asarray(vertices)] = cp.asarray(masks)

    def _relax(self, threshold) -> tuple[int, int, int]:
        """Relax all near vertices that improved, in one round; distances from ``threshold`` on are
        far.

        Return how many near vertices improved, how many edges were relaxed, and the key of infinity
        minus the key of the smallest far distance, 0 if no vertex is far.
        """
        self.counters.data.memset_async(0, self.counters.nbytes)
        # The key tells the order of the two masks, which rounds swap.
        self._launches.launch(
            self._graph.n_vertices, self.now.data.ptr, self._arguments, threshold=threshold
        )
        self.now, self.next = self.next, self.now
        self.next.data.memset_async(0, self.next.nbytes)
        self.counters.get(out=self._counters_on_host)
        return tuple(self._counters_on_host.tolist())

    def _arguments(self) -> Named:
        """Return what the kernel takes, by name: attributes of this run, arrays of the graph."""
        return named(self, self._graph, n_hub_chunks=np.int64(self.hub_chunks.size))

    def results(self, sources):
        """Return the distances of the last search, which was from ``sources``, and the predecessors
        if they are wanted, else None.

        Distances have shape (k, n), or (k, n_targets) if the query asks for targets; predecessors
        have shape (k, n).

        Raises PrecisionError: a distance overflows.
        """
        query = self._query
        single = self._single
        k = sources.size
        # All distances are needed to find predecessors and overflows.
        needs_all = query.output == "all" or single is not None
        if needs_all:
            by_vertex = self._distances
        else:
            by_vertex = self._distances[self._target_vertices]
        distance = cp.ascontiguousarray(by_vertex[:, :k].T)
        # Raises PrecisionError for an overflow. None without ``single``, or if none are wanted.
        predecessor = gpu_steps.finish_each(single, sources, distance)
        if query.output == "targets" and single is not None:
            distance = distance[:, self._target_vertices]
        return distance, predecessor


def _beyond(distance, width):
    """Return the threshold of a pile that begins at ``distance``: that plus ``width``, or the next
    number after it if that is larger, so that each pile makes progress.
    """
    real = type(distance)
    with np.errstate(over="ignore"):
        return max(real(distance + width), np.nextafter(distance, real(np.inf)))
