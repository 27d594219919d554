"""Many searches at once on a GPU, 32 side by side: each edge load serves all of them. See source_per_lane.cu.

For graphs of few rounds and many edges. What bounds it: each edge relaxed reads a row of 32 distances, 128 bytes of float32,
and so many times that as vertices are lowered again.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..._arrays import as_distance
from ...cuda import cp, graph_statistics
from ...cuda.compiler import Request, kernel
from ...cuda.csr_build import degree_statistics
from ...cuda.kernel_spec import Entry, struct_arguments
from ...cuda.launch import prepare_items
from ...strategy import MultiSourceOutcome
from .. import cpu_steps, gpu_steps, tuning
from ..near_far_gpu import first_width

_FILE = Path(__file__).parents[1] / "kernels" / "source_per_lane.cu"
_ENTRY = Entry(
    "sssp_source_per_lane_warp",
    _FILE,
    tuning.ROWS_BLOCK,
    struct_arguments(_FILE, "RelaxArgs"),
    constants=(("CHUNK", min(tuning.ROWS_PIECES.values())),),
)
ENTRIES = (_ENTRY,)
GROUP = 32


def group_size(n_sources: int) -> int:
    """Sources a group."""
    return min(n_sources, GROUP)


def memory(shape, query, group: int) -> int:
    """Bytes of a run.

    Rows of 32 distances, two masks, and pieces of long rows; distances a row a source; and what makes predecessors.
    """
    n = shape.n_vertices
    rows = n * (GROUP * shape.weight + 8) + 8 * (2 * shape.n_edges // min(tuning.ROWS_PIECES.values()) + 1)
    columns = query.targets.size if query.output == "targets" else n
    back = group * n * shape.index if query.predecessors else 0
    marked = GROUP * (n if query.targets is not None else 0)
    return (
        rows + group * columns * shape.weight + marked + back + gpu_steps.memory(n, shape.n_edges, query.predecessors) + 4096
    )


def terms(shape, n_sources: int, group: int, machine) -> dict[str, float]:  # noqa: ARG001  (all take a group)
    """Amounts of the terms of the cost: the host waits at each round; each edge walked reads a row of distances."""
    groups = -(-n_sources // GROUP)
    edges = groups * shape.n_edges * shape.together(GROUP) * max(shape.weight, 4) / 4
    return {
        "start": groups,
        "level": groups * shape.likely_rounds,
        "edge": edges,
        "again": edges * shape.spread,
        "stretch": groups * shape.stretch,
        "vertex": groups * shape.likely_rounds * shape.n_vertices,
        "miss": edges * shape.scatter * machine.missing(GROUP * max(shape.weight, 4) * shape.n_vertices),
        "write": groups * GROUP * shape.n_vertices,
    }


def _rows_of(graph) -> tuple[bool, int]:
    """Whether degrees are uneven, and from how many edges on a row is cut into pieces."""
    mean, _, largest = degree_statistics(graph.offsets)
    is_uneven = largest >= tuning.ROWS_UNEVEN * mean
    return is_uneven, tuning.ROWS_PIECES["uneven" if is_uneven else "even"]


def _variant(piece: int) -> Entry:
    return _ENTRY.variant(block=tuning.ROWS_BLOCK, CHUNK=piece)


def kernels(graph, query, group: int) -> list[Request]:  # noqa: ARG001  (all take a query and a group)
    """See ``MultiSourceStrategy.kernels``."""
    return [Request(_variant(_rows_of(graph)[1]), graph.targets.dtype, graph.weights.dtype)]


def plan(graph, query, _group: int):
    """Allocate and compile; return ``traverse(sources)`` for up to 32 vertex numbers at once."""
    run = _Run(graph, query)

    def traverse(sources) -> MultiSourceOutcome:
        sources = np.asarray(sources, np.int64)
        k = sources.size
        rounds, limits, threshold = run.search(sources)
        distance, predecessor = run.results(sources)
        return MultiSourceOutcome(distance, predecessor, limits, [rounds] * k, below=float(threshold))

    return traverse


class _Run:
    """The state of a group: a row of distances a vertex, and which of them are to be relaxed."""

    def __init__(self, graph, query):
        n, self._graph, self._query = graph.n_vertices, graph, query
        self._real = real = graph.weights.dtype
        is_uneven, piece = _rows_of(graph)
        self._kernel = kernel(_variant(piece), graph.targets.dtype, real)
        self._rows = cp.empty((n, GROUP), real)
        self._keys = self._rows.view(f"i{real.itemsize}")
        self._infinite = int(np.array([np.inf], real).view(self._keys.dtype)[0])
        self._now, self._next = cp.empty(n, np.uint32), cp.empty(n, np.uint32)
        self._hubs = _pieces_of_long_rows(graph.offsets, piece)
        self._counters = cp.zeros(3, np.int64)
        self._launches: dict = {}
        self._on_host = np.frombuffer(cp.cuda.alloc_pinned_memory(24), np.int64, 3)
        self._target_vertices = None if query.targets is None else cp.asarray(query.targets, np.int64)
        may_overflow = query.limit is None and cpu_steps.may_overflow(graph)
        self._single = gpu_steps.Run(graph, query) if query.predecessors or may_overflow else None
        self._limit = as_distance(np.inf if query.limit is None else query.limit, real)
        may_stop = query.limit is not None or query.targets is not None
        # Of 32 searches one is near any vertex: piles spare little where degrees are uneven, and rounds cost.
        everything = is_uneven and not may_stop
        self._first_width = real.type(np.inf) if everything else first_width(graph, may_stop)

    def search(self, sources) -> tuple[int, list, object]:
        """Relax until nothing changes; return the rounds, up to where each source is complete, and the last threshold."""
        self._start(sources)
        width, rounds, edges, pile_rounds = self._first_width, 0, 0, 0
        threshold = _beyond(self._real.type(0), width)
        while True:
            near, walked, gap = self._relax(threshold)
            rounds, pile_rounds, edges = rounds + 1, pile_rounds + 1, edges + walked
            if near:
                continue
            if not gap:
                return rounds, [self._query.limit] * sources.size, threshold
            if self._target_vertices is not None:
                # As integers, since CuPy takes subnormal numbers for 0.
                farthest = self._keys[self._target_vertices, : sources.size].max(axis=0)
                distances = farthest.get().view(self._real)
                if distances.max() < threshold:
                    keys = self._keys[:, : sources.size]
                    keys[keys > farthest] = self._infinite
                    return rounds, distances.tolist(), threshold
            if pile_rounds >= tuning.MULTI_SOURCE_WARM_UP:
                with np.errstate(over="ignore"):
                    width = width + width if edges < tuning.ROWS_LIGHT * pile_rounds else width
                edges = pile_rounds = 0
            nearest = np.array([self._infinite - gap], self._keys.dtype).view(self._real)[0]
            threshold = _beyond(nearest, width)

    def _start(self, sources) -> None:
        self._rows.fill(np.inf)
        places = cp.asarray(sources)
        self._rows[places, cp.arange(sources.size)] = 0
        self._next.data.memset_async(0, self._next.nbytes)
        self._now.data.memset_async(0, self._now.nbytes)
        vertices, which = np.unique(sources, return_inverse=True)
        masks = np.zeros(vertices.size, np.uint32)
        np.bitwise_or.at(masks, which, np.uint32(1) << np.arange(sources.size, dtype=np.uint32))
        self._now[cp.asarray(vertices)] = cp.asarray(masks)

    def _relax(self, threshold) -> tuple[int, int, int]:
        """One round; return rows lowered below the threshold, edges relaxed, and how near the nearest is that waits."""
        self._counters.data.memset_async(0, self._counters.nbytes)
        self._prepared()(threshold=threshold)
        self._now, self._next = self._next, self._now
        self._next.data.memset_async(0, self._next.nbytes)
        self._counters.get(out=self._on_host)
        return tuple(self._on_host.tolist())

    def _prepared(self):
        """The launch of a round; its arguments are packed once for each order of the two masks, which rounds swap."""
        key = self._now.data.ptr
        if key not in self._launches:
            graph, n = self._graph, self._graph.n_vertices
            args = {
                "offsets": graph.offsets,
                "targets": graph.targets,
                "weights": graph.weights,
                "n_vertices": np.int64(n),
                "hub_chunks": self._hubs,
                "n_hub_chunks": np.int64(self._hubs.size),
                "threshold": self._real.type(0),
                "limit": self._limit,
                "keys": self._keys,
                "now": self._now,
                "next": self._next,
                "counters": self._counters,
            }
            self._launches[key] = prepare_items(self._kernel, n, args)
        return self._launches[key]

    def results(self, sources):
        """Distances, a row a source, and predecessors, by the launches that all strategies share; overflows are errors."""
        query, single, k = self._query, self._single, sources.size
        rows = self._rows if query.output == "all" or single is not None else self._rows[self._target_vertices]
        distance = cp.ascontiguousarray(rows[:, :k].T)
        predecessor = cp.empty((k, self._graph.n_vertices), self._graph.targets.dtype) if query.predecessors else None
        for i, source in enumerate(sources.tolist() if single is not None else ()):
            single.distance[...] = distance[i]
            single.finish(source)
            if predecessor is not None:
                predecessor[i] = single.predecessor
        if query.output == "targets" and single is not None:
            distance = distance[:, self._target_vertices]
        return distance, predecessor


def _beyond(distance, width):
    """Above a distance by a width, and at least the next one: there is always progress."""
    real = type(distance)
    with np.errstate(over="ignore"):
        return max(real(distance + width), np.nextafter(distance, real(np.inf)))


def _pieces_of_long_rows(offsets, piece: int):
    """Rows of PIECE edges or more in pieces, as the kernel takes them: which piece above, vertex below."""
    vertices, lengths = graph_statistics.hubs(offsets, piece)
    pieces = -(-lengths // piece)
    which = np.arange(int(pieces.sum())) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    return cp.asarray(which.astype(np.uint64) << np.uint64(32) | np.repeat(vertices, pieces).astype(np.uint64))
