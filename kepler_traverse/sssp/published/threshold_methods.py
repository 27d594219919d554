"""The loop over an ascending list of distance thresholds, of which near-far, bucketing, delta-stepping and Dijkstra-like
frontiers are made. See threshold_methods.cu.

While vertices wait beyond the last threshold, a rule makes a new list of the nearest of them; then one pile after the other
is relaxed in rounds until nothing falls into it any more. The systems differ in the list alone:

========================  =====================================================================================
``near_far_piles``        one threshold
``buckets``               ten
``delta_stepping``        eight, and only the light edges are relaxed in rounds: the heavy ones once, when the
                          bucket is empty, as they lead beyond it
``threshold_front``       one, which the waiting vertices give: all up to it are final
========================  =====================================================================================

H-BF, section 3, says of the papers [9], [20], [5] and [6] what they do: bucketing there sorts to emulate buckets, and the
others look at arrays over all vertices. What differs here from all of them: whoever lowers a vertex puts it into its pile; a
new list begins at the nearest vertex that waits, so that no empty pile is looked at and any weights are got through; a warp
takes 32 rows and gives each lane an edge. Targets do not end a search early.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...cuda import cp
from ...cuda.compiler import kernel
from ...cuda.kernel_spec import WARP, Entry, arguments
from ...cuda.launch import launch
from ...strategy import Outcome
from .. import gpu_steps
from .params import BLOCK

_FILE = Path(__file__).parents[1] / "kernels" / "published" / "threshold_methods.cu"
_GRAPH = ("offset_t* offsets", "vertex_t* targets", "weight_t* weights")
_LIST = ("ordered_t* thresholds", "int32 n_thresholds", "int32 side")
_LIGHTEST = Entry(
    "sssp_piles_lightest_warp",
    _FILE,
    BLOCK,
    arguments(*_GRAPH, "int64 n_vertices", "ordered_t* lightest"),
    item_threads=WARP,
)
_KERNELS = {
    "nearest": Entry(
        "sssp_piles_nearest",
        _FILE,
        BLOCK,
        arguments(
            "vertex_t* pile", "int64 size", "ordered_t* keys", "ordered_t floor", "ordered_t*? lightest", "int64* counters"
        ),
    ),
    "split": Entry(
        "sssp_piles_split",
        _FILE,
        BLOCK,
        arguments(
            *("vertex_t* pile", "int64 size", "ordered_t* keys", "ordered_t floor"),
            *_LIST,
            *("int64 pile_capacity", "vertex_t* piles", "int64* sizes"),
        ),
    ),
    "relax": Entry(
        "sssp_piles_relax",
        _FILE,
        BLOCK,
        arguments(
            *_GRAPH,
            *("vertex_t* list", "int64 size", "weight_t limit"),
            *("ordered_t floor", "ordered_t lighter", "ordered_t heaviest"),
            *_LIST,
            *("int32 present", "int32 keeps", "int32 round", "int64 pile_capacity"),
            *("ordered_t* keys", "int32* queued_in", "vertex_t* next"),
            *("vertex_t* piles", "int64* sizes", "int64* counters"),
        ),
        item_threads=WARP,
    ),
}
ENTRIES = (_LIGHTEST, *_KERNELS.values())


class Run(gpu_steps.Run):
    """The state of a search by piles: a pile for each threshold, and two in turn for what lies beyond them."""

    def __init__(self, graph, query, n_thresholds: int):
        super().__init__(graph, query, _KERNELS)
        real, self.n = graph.weights.dtype, graph.n_vertices
        self.infinite = int(np.array(np.inf, real).view(self.keys.dtype))
        self.piles = cp.empty((n_thresholds + 2, self.n), graph.targets.dtype)
        self.thresholds = cp.empty(n_thresholds, self.keys.dtype)
        self.sizes = cp.zeros(n_thresholds + 1, np.int64)
        self._sizes_on_host = np.frombuffer(cp.cuda.alloc_pinned_memory(self.sizes.nbytes), np.int64, n_thresholds + 1)

    def key(self, number) -> np.generic:
        return self.keys.dtype.type(number)

    def start(self, source: int) -> None:
        super().start(source)
        self.side, self.floor, self.rounds = 0, 0, 0  # the floor: where the present list ends, and the last pile begins
        self.piles[-2, 0] = source
        self.waiting = 1  # in the last pile, stale entries included
        self.begin = -1  # distances, as keys, at which the present list begins and where each of its piles ends
        self.ends: list[int] = []

    def nearest(self, lightest=None) -> tuple[int, int]:
        """The least distance in the last pile as a key, and the least sum with a lightest edge; infinite for none."""
        self.frontier.clear_counters()
        counters = self.frontier.counters
        beyond = (self.piles[self.side - 2], np.int64(self.waiting), self.keys, self.key(self.floor))
        launch(self.relax["nearest"], self.waiting, (*beyond, lightest, counters))
        gap, gap_through = self.frontier.read_counters()
        return self.infinite - gap, self.infinite - gap_through

    def divide(self, begin: int, ends: list[int]) -> list[int]:
        """Divide the last pile by new thresholds; return how many vertices are in each pile."""
        self.thresholds[...] = cp.asarray(np.array(ends, self.keys.dtype))
        beyond = (self.piles[self.side - 2], np.int64(self.waiting), self.keys, self.key(self.floor))
        self.begin, self.ends, self.floor, self.side = begin, ends, ends[-1], 1 - self.side
        self.sizes.data.memset_async(0, self.sizes.nbytes)
        into = (*self._list(), np.int64(self.n), self.piles, self.sizes)
        launch(self.relax["split"], self.waiting, (*beyond, *into))
        return self.read_sizes()

    def read_sizes(self) -> list[int]:
        self.sizes.get(out=self._sizes_on_host)
        *sizes, self.waiting = self._sizes_on_host.tolist()
        return sizes

    def _list(self):
        return self.thresholds, np.int32(len(self.ends)), np.int32(self.side)

    def relax_edges(self, vertices, size: int, present: int, lighter: int, heaviest: int, keeps: bool) -> None:
        """Relax the edges of a list whose weights lie above ``lighter`` and up to ``heaviest``."""
        floor = self.ends[present - 1] if present else self.begin
        self.frontier.clear_counters()
        launch(
            self.relax["relax"],
            size,
            (
                *self.edges,
                *(vertices, np.int64(size), self.limit),
                *map(self.key, (floor, lighter, heaviest)),
                *self._list(),
                *(np.int32(present), np.int32(keeps), np.int32(self.rounds), np.int64(self.n)),
                *(self.keys, self.queued_in, self.frontier.next, self.piles, self.sizes, self.frontier.counters),
            ),
        )
        self.rounds += 1
        self.frontier.advance()

    def settle(self, present: int, size: int, light: int) -> None:
        """Relax a pile in rounds until nothing falls into it; edges heavier than ``light`` once at the end."""
        has_heavy = light < self.infinite
        self.relax_edges(self.piles[present], size, present, -1, light, has_heavy)
        while self.frontier.size:
            self.relax_edges(self.frontier.queue, self.frontier.size, present, -1, light, has_heavy)
        if has_heavy:
            self.relax_edges(self.piles[present], self.read_sizes()[present], present, light, self.infinite, False)


def thresholds(rule_of, knobs):
    """Return the ``plan`` of a strategy by a list of thresholds; ``knobs`` are those of a query that has none.

    ``rule_of(graph, knobs)`` is asked once a plan, for the length of the list and ``rule(run)``. That one is asked whenever
    the list is through, and gives where the next begins, where each of its piles ends - keys that ascend - and the key of
    the weight up to which an edge is light; None once nothing waits any more.
    """

    def plan(graph, query):
        n_thresholds, rule = rule_of(graph, query.knobs or knobs)
        run = Run(graph, query, n_thresholds)

        def traverse(source: int) -> Outcome:
            run.start(source)
            while run.waiting and (found := rule(run)) is not None:
                begin, ends, light = found
                sizes = run.divide(begin, ends)
                for present in range(len(ends)):
                    if sizes[present]:
                        run.settle(present, sizes[present], light)
                        sizes = run.read_sizes()
            run.finish(source)
            return Outcome(run.distance, run.predecessor, query.limit, run.rounds)

        return traverse

    return plan


def by_width(width, n: int, has_heavy: bool = False):
    """``n`` equal widths from the nearest vertex on, as a rule; with ``has_heavy`` an edge is heavy if wider than that."""
    width = np.asarray(width)

    def rule(run: Run):
        begin, _ = run.nearest()
        if begin == run.infinite:
            return None
        ends, light = [begin], int(width.view(run.keys.dtype)) if has_heavy else run.infinite
        for _ in range(n):
            here = np.array(ends[-1], run.keys.dtype).view(width.dtype)
            with np.errstate(over="ignore"):
                end = int((here + width).view(run.keys.dtype))
            if end == ends[-1] < run.infinite:
                # The width vanishes beside the distance: the nearest vertices alone make a pile, and an edge wider than the
                # width may lead back into it.
                end, light = end + 1, run.infinite
            ends.append(end)
        return begin, ends[1:], light

    return n, rule


def mean_width(graph, edges: float):
    """So wide that a vertex has about so many edges that are shorter, were weights even."""
    with np.errstate(over="ignore"):  # of weights near the largest number: all are near then
        mean = float(graph.weights.mean(dtype=np.float64)) if graph.n_edges else 0.0
    return _width(graph, edges * mean)


def delta_for(graph, delta: float):
    """The width given, or the heaviest weight divided by the mean degree."""
    real = graph.weights.dtype
    if delta:
        return real.type(min(delta, float(np.finfo(real).max)))
    return _width(graph, float(graph.weights.max()) if graph.n_edges else 0.0)


def _width(graph, weight: float):
    real = graph.weights.dtype
    width = weight * graph.n_vertices / max(graph.n_edges, 1)
    return real.type(min(width, float(np.finfo(real).max)))


def by_vertices(graph, with_edges: bool):
    """The rule of a threshold that the waiting vertices give."""
    lightest = None
    if with_edges:
        real = graph.weights.dtype
        lightest = cp.full(graph.n_vertices, np.inf, real).view(f"i{real.itemsize}")
        find = kernel(_LIGHTEST, graph.targets.dtype, real)
        launch(find, graph.n_vertices, (graph.offsets, graph.targets, graph.weights, np.int64(graph.n_vertices), lightest))

    def rule(run: Run):
        begin, through = run.nearest(lightest)
        if begin == run.infinite:
            return None
        return begin, [min((through if with_edges else begin) + 1, run.infinite)], run.infinite

    return 1, rule


def memory(n_thresholds: int, lightest: bool = False):
    """Return the row's ``memory``: beside the state of any GPU traversal its piles, and the lightest edges."""

    def bytes_of(n_vertices: int, n_edges: int, predecessors: bool) -> int:
        index = 4 if n_vertices < 2**31 else 8
        piles = n_vertices * (index * (n_thresholds + 2) + 8 * lightest)
        return piles + 8 * (2 * n_thresholds + 1) + gpu_steps.memory(n_vertices, n_edges, predecessors)

    return bytes_of
