"""The loop over an ascending list of distance thresholds: near-far, bucketing, delta-stepping and
Dijkstra-like frontiers.

While vertices wait beyond the last threshold, a rule makes a new list for the nearest of them. Then
one pile after the other is relaxed in rounds until no vertex falls into it. See
threshold_methods.cu. The systems differ only in the list:

- ``near_far_piles``: one threshold.
- ``buckets``: ten.
- ``delta_stepping``: eight; only the light edges are relaxed in rounds. The heavy edges are relaxed
  once, when the bucket is empty, since they lead beyond it.
- ``threshold_front``: one, computed from the vertices that wait: all vertices up to it are final.

H-BF, section 3, describes the papers [9], [20], [5] and [6]: bucketing there sorts to emulate
buckets, and the others scan arrays over all vertices. Differences from all of them: the thread that
improves a vertex puts it into its pile; a new list begins at the nearest vertex that waits, so no
empty pile is visited and any weights work; a warp takes 32 adjacency lists and assigns one edge to
each lane. Targets do not end a search early.

``graph`` is a Graph on the GPU without negative weights, and ``query`` says what a search computes:
predecessors or none, a limit of the distance, knobs. A ``Run`` is the state of a search, which a
plan uses again for each source.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from ...cuda import cp
from ...cuda.compiler import kernel
from ...cuda.kernel_spec import WARP, make_entries
from ...cuda.launch import PackedLaunches, launch
from ...search.strategy import Memory, Outcome, Strategy, state_bytes
from ...sssp import gpu_steps
from .params import (
    BLOCK,
    DELTA_BUCKETS,
    MAX_BUCKETS,
    BucketKnobs,
    DeltaSteppingKnobs,
    NearFarKnobs,
    ThresholdKnobs,
)

_FILE = Path(__file__).parent / "kernels" / "threshold_methods.cu"
_entry = make_entries(_FILE, BLOCK)
_LIGHTEST = _entry("sssp_piles_lightest_warp", item_threads=WARP)
_KERNELS = {
    "nearest": _entry("sssp_piles_nearest", optional="lightest"),
    "split": _entry("sssp_piles_split"),
    "relax": _entry("sssp_piles_relax", item_threads=WARP),
}
ENTRIES = (_LIGHTEST, *_KERNELS.values())


class Run(gpu_steps.Run):
    """The state of a search: one pile of vertices per threshold, and a last pile for the vertices
    beyond the last threshold.

    Distances are handled as keys: integers in the order of the distances, with their bits. The last
    pile is one of two arrays in turn, as dividing it writes to the other one.

    Attributes
    ----------
    piles : CuPy array of shape (n_thresholds + 2, n_vertices)
        Vertex numbers. Row i has the vertices whose distance is below threshold i and not below the
        one before. The last two rows are the two arrays of the last pile. A vertex that has moved
        to a nearer pile stays in the old one, as a stale entry.
    thresholds : CuPy array of shape (n_thresholds,)
        The current list of thresholds, ascending keys.
    sizes : CuPy int64 array of shape (n_thresholds + 1,)
        Entries of each pile, and last those of the last pile.
    side : {0, 1}
        Which of its two arrays the last pile is in: row ``side - 2`` of ``piles``.
    floor : int
        Key at which the current list ends and the last pile begins.
    begin, ends : int, list of int
        Keys at which the current list begins, and at which each of its piles ends.
    waiting : int
        Entries of the last pile, stale ones included.
    rounds : int
        Rounds since the search began.
    """

    def __init__(self, graph, query, n_thresholds: int):
        super().__init__(graph, query, _KERNELS)
        real = graph.weights.dtype
        n = graph.n_vertices
        self.pile_capacity = np.int64(n)
        # Arguments of rounds. A division takes the same struct but does not read these, so that any
        # values do.
        weight_bounds = {"above": self.key(0), "up_to": self.key(0)}
        self.arguments_of_rounds = weight_bounds | dict.fromkeys(
            ("current", "keeps", "round"), np.int32(0)
        )
        self.infinite = int(np.array(np.inf, real).view(self.keys.dtype))  # as a key
        self.piles = cp.empty((n_thresholds + 2, n), graph.targets.dtype)
        self.thresholds = cp.empty(n_thresholds, self.keys.dtype)
        self.sizes = cp.zeros(n_thresholds + 1, np.int64)  # of the piles; the last pile is one
        self._sizes_on_host = np.frombuffer(
            cp.cuda.alloc_pinned_memory(self.sizes.nbytes), np.int64, n_thresholds + 1
        )
        self.launches = {name: PackedLaunches(self.relax[name]) for name in ("split", "relax")}

    def key(self, number) -> np.generic:
        """Return an integer as a scalar of the type of keys, as kernels take it."""
        return self.keys.dtype.type(number)

    def start(self, source: int) -> None:
        """Begin a search with the vertex number ``source`` in the last pile, and no list of
        thresholds.
        """
        super().start(source)
        self.side = 0
        self.floor = 0
        self.rounds = 0
        self.piles[-2, 0] = source
        self.waiting = 1
        self.begin = -1
        self.ends: list[int] = []

    def nearest(self, lightest=None) -> tuple[int, int]:
        """Return two keys of the vertices in the last pile: the smallest distance, and the smallest
        sum of a distance and the vertex's lightest edge. Both are infinite if no vertex is there,
        and the second one if ``lightest`` is None.

        ``lightest`` has, by vertex, the weight of its lightest edge as a key.
        """
        self.frontier.clear_counters()
        counters = self.frontier.counters
        beyond = (
            self.piles[self.side - 2],
            np.int64(self.waiting),
            self.keys,
            self.key(self.floor),
        )
        launch(self.relax["nearest"], self.waiting, (*beyond, lightest, counters))
        # Counters are cleared to 0 and grow by atomic maxima: they hold how much smaller than
        # infinity a key is.
        gap, gap_of_sums = self.frontier.read_counters()
        return self.infinite - gap, self.infinite - gap_of_sums

    def divide(self, begin: int, ends: list[int]) -> list[int]:
        """Divide the vertices of the last pile among piles that end at the keys ``ends``,
        ascending, the first of which begins at the key ``begin``. Return how many vertices are in
        each pile; those beyond the last end make the new last pile.
        """
        self.thresholds[...] = cp.asarray(np.array(ends, self.keys.dtype))
        last_pile = self.piles[self.side - 2]
        floor = self.floor
        self.begin = begin
        self.ends = ends
        self.floor = ends[-1]
        # the old last pile is read, while the new one is written to the other array
        self.side = 1 - self.side
        self.sizes.data.memset_async(0, self.sizes.nbytes)
        self.launches["split"].launch(
            self.waiting,
            self.side,
            lambda: self.arguments() | {"vertices": last_pile, **self.arguments_of_rounds},
            size=np.int64(self.waiting),
            floor=self.key(floor),
            n_thresholds=np.int32(len(ends)),
            side=np.int32(self.side),
        )
        return self.read_sizes()

    def read_sizes(self) -> list[int]:
        """Wait for the device and return the sizes of the piles of the list. That of the last pile
        is stored in ``waiting``.
        """
        self.sizes.get(out=self._sizes_on_host)
        *sizes, self.waiting = self._sizes_on_host.tolist()
        return sizes

    def relax_edges(
        self, vertices, size: int, current: int, above: int, up_to: int, keeps: bool
    ) -> None:
        """Make one round: relax those edges of ``vertices[:size]`` whose weights are in
        (``above``, ``up_to``], two keys. Vertices that fall into the current pile are the frontier
        then.

        ``current`` is the number of the pile that is relaxed. With ``keeps``, vertices that fall
        into it are appended to it, so that their heavy edges can be relaxed at its end.
        """
        # the key at which the pile begins: an entry with a smaller distance is stale
        floor = self.ends[current - 1] if current else self.begin
        self.frontier.clear_counters()
        self.launches["relax"].launch(
            size,
            (vertices.data.ptr, self.frontier.next.data.ptr),
            lambda: self.arguments() | {"vertices": vertices},
            size=np.int64(size),
            floor=self.key(floor),
            above=self.key(above),
            up_to=self.key(up_to),
            n_thresholds=np.int32(len(self.ends)),
            side=np.int32(self.side),
            current=np.int32(current),
            keeps=np.int32(keeps),
            round=np.int32(self.rounds),
        )
        self.rounds += 1
        self.frontier.advance()  # waits, and makes the vertices that were queued the frontier

    def settle(self, current: int, size: int, light: int) -> None:
        """Relax pile ``current``, of ``size`` vertices, in rounds until no vertex falls into it.
        Then the distances in it are final. Edges heavier than the key ``light`` are relaxed once at
        the end.
        """
        has_heavy = light < self.infinite
        self.relax_edges(self.piles[current], size, current, -1, light, has_heavy)
        while self.frontier.size:
            self.relax_edges(self.frontier.queue, self.frontier.size, current, -1, light, has_heavy)
        if has_heavy:
            size = self.read_sizes()[current]
            self.relax_edges(self.piles[current], size, current, light, self.infinite, False)


def plan_thresholds(rule_of, knobs):
    """Return the ``plan`` of a strategy with a list of thresholds.

    Parameters
    ----------
    rule_of : callable
        ``rule_of(graph, knobs)`` is called once per plan. It returns the length of the list and a
        function ``rule(run)``. That is called before each new list. It returns ``begin, ends,
        light``: the key at which the list begins, the ascending keys at which its piles end, and
        the key of the weight up to which an edge is light; or None if no vertex waits. A key is a
        distance or a weight as an integer with the same bits, in the same order.
    knobs : Knobs
        The defaults.

    Returns
    -------
    callable
        ``plan(graph, query)``, which allocates the state of a search and returns the search.
    """

    def plan(graph, query):
        """Allocate the state of a search in ``graph`` with the options ``query``. Return
        ``traverse(source)``, which uses the state each time.
        """
        n_thresholds, rule = rule_of(graph, query.knobs or knobs)
        run = Run(graph, query, n_thresholds)

        def traverse(source: int) -> Outcome:
            """Search from the vertex number ``source``. Return its ``Outcome``: distances,
            predecessors if they are wanted, and the number of rounds. The arrays are valid until
            the next call. Targets do not stop the search, so that its limit is that of the query.
            """
            run.start(source)
            # Each pass makes a new list for the nearest vertices of the last pile. ``divide`` and
            # ``read_sizes`` set ``run.waiting``, the number of entries of that pile.
            while run.waiting and (division := rule(run)) is not None:
                begin, ends, light = division
                sizes = run.divide(begin, ends)
                for current in range(len(ends)):
                    if sizes[current]:  # relaxing a pile fills those after it
                        run.settle(current, sizes[current], light)
                        sizes = run.read_sizes()
            run.finish(source)
            return Outcome(run.distance, run.predecessor, query.limit, run.rounds)

        return traverse

    return plan


def by_width(width, n: int, has_heavy: bool = False):
    """Return ``n`` and a rule, as ``plan_thresholds`` expects of ``rule_of``: a list of ``n`` piles
    of equal width from the nearest vertex on.

    ``width`` is a number of the weights' type. With ``has_heavy`` edges of a larger weight are
    heavy; else none is.
    """
    width = np.asarray(width)

    def rule(run: Run):
        """Return the key at which the list begins, the keys at which its piles end, and the key up
        to which edges are light; None if no vertex waits.
        """
        begin, _ = run.nearest()
        if begin == run.infinite:
            return None
        light = run.infinite
        if has_heavy:
            light = int(width.view(run.keys.dtype))

        # Each end is the distance of the end before it plus the width. The bits of the sum are its
        # key.
        ends = [begin]
        for _ in range(n):
            # the end before, as a distance
            last = np.array(ends[-1], run.keys.dtype).view(width.dtype)
            with np.errstate(over="ignore"):
                end = int((last + width).view(run.keys.dtype))
            if end == ends[-1] < run.infinite:
                # The width is lost in rounding: only the nearest vertices are in the pile, and an
                # edge heavier than the width may lead back into it.
                end = end + 1
                light = run.infinite
            ends.append(end)
        return begin, ends[1:], light

    return n, rule


def mean_width(graph, edges: float):
    """Return the width of piles: ``edges`` mean weights, divided by the mean degree. So vertices
    have about as many edges that are lighter in every graph.
    """
    mean = 0.0
    if graph.n_edges:
        # the sum of weights near the largest number is infinite: then all vertices are near
        with np.errstate(over="ignore"):
            mean = float(graph.weights.mean(dtype=np.float64))
    return _width(graph, edges * mean)


def delta_for(graph, delta: float):
    """Return the width of buckets, in the type of the weights: ``delta``, or if that is 0 the
    largest weight divided by the mean degree.
    """
    if delta:
        return _as_weight(graph, delta)
    largest = 0.0
    if graph.n_edges:
        largest = float(graph.weights.max())
    return _width(graph, largest)


def _width(graph, weight: float):
    """Return ``weight`` divided by the mean degree of the graph, in the type of the weights."""
    return _as_weight(graph, weight * graph.n_vertices / max(graph.n_edges, 1))


def _as_weight(graph, number: float):
    """Return a number in the type of the weights, or the largest finite number of the type if that
    is smaller.
    """
    real = graph.weights.dtype
    return real.type(min(number, float(np.finfo(real).max)))


def by_vertices(graph, with_edges: bool):
    """Return 1 and a rule, as ``plan_thresholds`` expects of ``rule_of``: a list of one threshold
    that is computed from the waiting vertices.

    The threshold is their smallest distance, or ``with_edges`` the smallest sum of a distance and
    the vertex's lightest edge: no vertex up to it can fall any more.
    """
    lightest = None
    if with_edges:  # by vertex, the key of the weight of its lightest edge
        real = graph.weights.dtype
        lightest = cp.full(graph.n_vertices, np.inf, real).view(f"i{real.itemsize}")
        find = kernel(_LIGHTEST, graph.targets.dtype, real)
        launch(
            find,
            graph.n_vertices,
            (graph.offsets, graph.targets, graph.weights, np.int64(graph.n_vertices), lightest),
        )

    def rule(run: Run):
        """Return the key at which the list begins, the key at which its pile ends, and the key up
        to which edges are light, which all are; None if no vertex waits.
        """
        begin, smallest_sum = run.nearest(lightest)
        if begin == run.infinite:
            return None
        threshold = begin
        if with_edges:
            threshold = smallest_sum
        end = min(threshold + 1, run.infinite)  # the pile holds the threshold, too
        return begin, [end], run.infinite

    return 1, rule


def _near_far(graph, knobs):
    """Return 1 and the rule of ``near_far_piles``: one pile, of a width by the mean weight."""
    return by_width(mean_width(graph, knobs.edges_a_pile), 1)


def _buckets(graph, knobs):
    """Return the number of buckets and the rule of ``buckets``: a width by the mean weight."""
    return by_width(mean_width(graph, knobs.edges_a_bucket), knobs.n_buckets)


def _delta_stepping(graph, knobs):
    """Return the number of buckets and the rule of ``delta_stepping``, which has heavy edges."""
    return by_width(delta_for(graph, knobs.delta), DELTA_BUCKETS, has_heavy=True)


def _threshold_front(graph, knobs):
    """Return 1 and the rule of ``threshold_front``: a threshold by the vertices that wait."""
    return by_vertices(graph, knobs.threshold == "lightest_edges")


def _memory(n_thresholds: int, lightest: bool = False) -> Memory:
    """Return a function that estimates the bytes of a strategy of these piles: the state of any
    GPU traversal, the piles and, with ``lightest``, the lightest edges.
    """
    once = 8 * (2 * n_thresholds + 1)  # thresholds, and the sizes of all piles
    return state_bytes(8 * lightest, numbers=n_thresholds + 2, once=once, beside=gpu_steps.memory)


_DAVIDSON = "Davidson, Baxter, Garland, Owens 2014"
_AT_WORST = "O(V E) at worst; an edge is relaxed again only while its pile is near"
_on_gpu = partial(Strategy, device="cuda", needs=frozenset({"weights", "non_negative"}))
STRATEGIES = (
    _on_gpu(
        name="near_far_piles",
        aliases=("near_far_pile",),
        plan=plan_thresholds(_near_far, NearFarKnobs()),
        memory=_memory(1),
        paper=f"{_DAVIDSON} (Near-Far Pile)",
        rationale="one threshold: most of what is far falls further before it is touched",
        complexity=_AT_WORST,
        knobs=NearFarKnobs,
    ),
    _on_gpu(
        name="buckets",
        aliases=("bucketing",),
        plan=plan_thresholds(_buckets, BucketKnobs()),
        memory=_memory(MAX_BUCKETS),
        paper=f"{_DAVIDSON} (Bucketing)",
        rationale="more thresholds sort more of what is far, and divide it less often",
        complexity=_AT_WORST,
        knobs=BucketKnobs,
    ),
    _on_gpu(
        name="delta_stepping",
        aliases=("meyer_sanders",),
        plan=plan_thresholds(_delta_stepping, DeltaSteppingKnobs()),
        memory=_memory(DELTA_BUCKETS),
        paper="Meyer, Sanders 2003",
        rationale=(
            "delta leads from Dijkstra to Bellman-Ford; heavy edges are relaxed once per bucket"
        ),
        complexity=_AT_WORST,
        knobs=DeltaSteppingKnobs,
    ),
    _on_gpu(
        name="threshold_front",
        aliases=("martin", "ortega_arranz"),
        plan=plan_thresholds(_threshold_front, ThresholdKnobs()),
        memory=_memory(1, lightest=True),
        paper=(
            "Martin, Torres, Gavilanes 2009; Ortega-Arranz, Torres, Llanos, Gonzalez-Escribano 2013"
        ),
        rationale=(
            "Dijkstra on a GPU: all that is known to be final is relaxed at "
            "once, each vertex once in a search"
        ),
        complexity="O(E) relaxations, O(D V) looks at what waits",
        knobs=ThresholdKnobs,
    ),
)
