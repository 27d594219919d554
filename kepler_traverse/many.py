"""Traversals from many sources: which way is cheapest for a graph, how many sources at once, and what memory that takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from . import cuda
from ._arrays import hops_dtype, namespace, to_host
from .errors import CapacityError, InputError, PrecisionError
from .exact import Sums
from .graph import Graph
from .plan import Plan
from .query import Query
from .results import Traversal, Traversals
from .strategy import ManyOutcome, ManyStrategy, Shape, Strategy, in_use, pick

ONE_AT_A_TIME = "one_at_a_time"
LOOPED = 16  # sources of a group that are run one after the other
HOST_STEP = 20e3  # nanoseconds that a level costs where the host takes part
_SHARE = 0.8  # of the free memory that a plan may take


class ManyPlan:
    """Traversals from many sources, ready to run; made by ``plan_bfs_many`` and ``plan_sssp_many``.

    Attributes
    ----------
    graph : Graph
    algorithm : {"bfs", "sssp"}
    strategy : Strategy
        The row of the catalogue that runs.
    query : Query
    group : int
        Sources answered at once.
    nbytes : int
        Bytes that a run takes beside the graph, the results of one group included.
    depth : int
        Levels of one search from a vertex of the highest degree; 0 where none was made.
    why : str
        What the choice went by.
    sums : Sums
        As in ``Plan``.
    """

    def __init__(
        self,
        graph: Graph,
        algorithm: str,
        rows: Sequence[ManyStrategy],
        singles: Sequence[Strategy],
        name: str,
        query: Query,
        n_sources: int,
        memory: int | None = None,
    ):
        self.graph, self.algorithm = graph, algorithm
        is_single = any(name in (row.name, *row.also) for row in singles)
        single = pick(singles, name if is_single else "auto", graph)
        loop = _one_at_a_time(single, algorithm)
        if name != "auto":
            fitting = [pick([*rows, loop], name, graph)]
        elif n_sources <= 1:
            fitting = [loop]
        else:
            here = [row for row in rows if row.default and row.device == graph.device and row.misfit(graph) is None]
            fitting = [*here, loop]
        # Where there is nothing to choose and no depth to know, a search for it would be one too many.
        shape = _shape_of(graph, singles if algorithm == "bfs" and fitting != [loop] else ())
        why = [repr(graph)]
        if shape.depth:
            why.append(f"{shape.depth} levels")
        if len(fitting) > 1:
            costs = {row: row.cost(shape, n_sources) for row in fitting}
            fitting.sort(key=costs.get)
            why.append("estimated: " + ", ".join(f"{row.name} {costs[row] / 1e9:.3g} s" for row in fitting))
        self.strategy = fitting[0]
        self.query = query = replace(query, knobs=self.strategy.knobs_from(query.knobs))
        self.depth = shape.depth
        self.group, self.nbytes = _group(self.strategy, shape, query, max(n_sources, 1), memory)
        why.append(f"{self.strategy.name}, {self.group} sources at once, {self.nbytes / 2**20:,.0f} MiB")
        self._rows, self._n_sources, self._memory = rows, max(n_sources, 1), memory
        self.sums = Sums(graph, algorithm, query.limit)
        if algorithm == "sssp":
            why.append(f"sums in {self.sums.dtype}" + (", wider where these could round" if self.sums.may_widen else ""))
        self.why = "; ".join(why)
        self._prepare()

    def run(self, numbers) -> Traversals:
        """Traverse from up to ``group`` vertices, given by their numbers 0..n-1, in that order.

        Raises
        ------
        NegativeCycleError
            A negative cycle can be reached from one of them (SSSP only).
        PrecisionError
            A distance is too large for the graph's float type.
        """
        numbers = np.asarray(numbers, np.int64)
        if numbers.size > self.group:
            raise InputError(f"{numbers.size} sources at once, and this plan takes {self.group}; use over()")
        while True:
            found = self._run(numbers)
            if found is not None:
                return found
            self._widen()
            if numbers.size > self.group:  # the wider type leaves memory for fewer sources at once
                return _joined([_copied(found) for found in self.over(numbers)])

    def over(self, numbers) -> Iterator[Traversals]:
        """Traverse from any number of vertices, a group at a time; each result holds until the next is asked for."""
        numbers, begin = np.asarray(numbers, np.int64), 0
        while begin < numbers.size:
            group = numbers[begin : begin + self.group]
            found = self._run(group)
            if found is None:
                self._widen()
                continue
            yield found
            begin += group.size

    def _run(self, numbers: np.ndarray) -> Traversals | None:
        """Traverse from a group; None means that the sums need a wider type."""
        try:
            outcome = self._traverse(numbers)
        except PrecisionError:
            if not self.sums.may_widen:
                raise
            return None
        if not self.sums.hold(outcome.distance, outcome.below):
            return None
        fields = outcome._asdict()
        del fields["below"]
        return Traversals(algorithm=self.algorithm, sources=numbers, strategy=self._running.name, **fields)

    def _prepare(self) -> None:
        """Allocate for sums of the current type."""
        self._traverse = None  # gives back what the type before had
        self._running = in_use(self.strategy, self._rows, self.sums, self.algorithm)
        self._traverse = self._running.plan(self.sums.graph, self.query, self.group)

    def _widen(self) -> None:
        """Go on in the next wider type, with fewer sources at once where memory does for no more."""
        self._traverse = None
        self.sums.widen()
        running = in_use(self.strategy, self._rows, self.sums, self.algorithm)
        memory = self._memory if self._memory is None else max(self._memory, self.nbytes)
        group, self.nbytes = _group(
            running, _shape_of(self.sums.graph, ()), self.query, min(self.group, self._n_sources), memory
        )
        self.group = min(self.group, group)
        self._prepare()


def _copied(found: Traversals) -> Traversals:
    """With arrays that outlive the plan's next run."""
    predecessor = None if found.predecessor is None else found.predecessor.copy()
    return replace(found, distance=found.distance.copy(), predecessor=predecessor)


def _joined(found: list[Traversals]) -> Traversals:
    """The traversals of several groups, in arrays of their own."""
    first = found[0]
    xp = namespace(first.distance)

    def rows(name: str):
        return None if getattr(first, name) is None else xp.concatenate([getattr(each, name) for each in found])

    return replace(
        first,
        sources=np.concatenate([each.sources for each in found]),
        distance=rows("distance"),
        predecessor=rows("predecessor"),
        limits=[limit for each in found for limit in each.limits],
        rounds=[count for each in found for count in each.rounds],
    )


def free_memory(device: str) -> int:
    """Bytes that can be had on a device."""
    if device == "cuda":
        return cuda.cp.cuda.runtime.memGetInfo()[0] + cuda.cp.get_default_memory_pool().free_bytes()
    import psutil

    return psutil.virtual_memory().available


def _shape_of(graph: Graph, singles) -> Shape:
    """The graph's shape; with strategies for a BFS, one search from a vertex of the highest degree says how deep it is."""
    depth = 0
    if graph.n_edges and singles:
        xp = namespace(graph.offsets)
        hub = int(xp.argmax(xp.diff(graph.offsets)))  # graph.degrees would stay, and no plan counts it
        depth = Plan(graph, "bfs", singles, "auto", Query(predecessors=False)).run(hub).rounds
    weight = 0 if graph.weights is None else graph.weights.dtype.itemsize
    return Shape(graph.n_vertices, graph.n_edges, graph.directed, depth, graph.targets.dtype.itemsize, weight)


def _group(strategy: ManyStrategy, shape: Shape, query: Query, n_sources: int, memory: int | None) -> tuple[int, int]:
    """The largest group that fits, and its bytes.

    Raises
    ------
    InputError
        Not even the smallest one fits; the message has the numbers.
    """
    device = strategy.device
    most = int(free_memory(device) * _SHARE) if memory is None else memory
    sizes = {strategy.group_size(n_sources >> halvings) for halvings in range(n_sources.bit_length())}
    for group in sorted(sizes, reverse=True):
        needed = strategy.memory(shape, query, group)
        if needed <= most:
            return group, needed
    raise CapacityError(
        f"strategy {strategy.name!r} needs {needed / 2**20:,.1f} MiB beside the graph for {group} sources at once, and "
        f"{most / 2**20:,.1f} MiB are free; take a larger machine, a result that holds less (summary, targets), or "
        f"strategy={ONE_AT_A_TIME!r}"
    )


def _one_at_a_time(single: Strategy, algorithm: str) -> ManyStrategy:
    """The row that runs a strategy for one source again and again; it has that strategy's name."""

    def plan(graph, query, _group):
        one = Plan(graph, algorithm, [single], single.name, replace(query, keep="all"), may_widen=False)
        return lambda sources: _gathered([_kept(one.run(int(source)), query) for source in sources], graph, algorithm, query)

    def memory(shape, query, group):
        width = shape.weight if algorithm == "sssp" else 4
        rows = 2 * group if query.keep == "all" else 0  # each on its own, then side by side
        state = single.memory(shape.n_vertices, shape.n_edges, query.predecessors)
        return state + rows * shape.n_vertices * (width + shape.index * query.predecessors)

    def cost(shape, n_sources):
        if single.device == "cuda":
            # Measured on an H200: a launch, then levels or hops of roads, or the edges of what has few of those.
            each, an_edge, a_level = (3e5, 0.025, 4500) if algorithm == "sssp" else (6e4, 0.001, 2400)
            return n_sources * (each + 0.04 * shape.n_vertices + an_edge * shape.n_edges + a_level * shape.likely_depth)
        if algorithm == "sssp":
            return n_sources * (60 * shape.n_vertices + 20 * shape.n_edges)
        return n_sources * (20 * shape.n_vertices + 2 * shape.n_edges + HOST_STEP * shape.depth)

    return ManyStrategy(
        name=single.name,
        device=single.device,
        plan=plan,
        memory=memory,
        needs=single.needs,
        paper=single.paper,
        teaches=single.teaches,
        default=True,
        also=(*single.also, ONE_AT_A_TIME),
        knobs=single.knobs,
        group_size=lambda n_sources: min(n_sources, LOOPED),
        cost=cost,
    )


def _kept(traversal: Traversal, query: Query) -> Traversal:
    """What is wanted of a traversal, in arrays that outlive the plan's next run."""
    if query.keep == "all":
        return traversal.copy()
    xp = namespace(traversal.distance)
    if query.keep == "targets":
        return replace(traversal, distance=traversal.distance[xp.asarray(query.targets)], predecessor=None)
    return replace(traversal, distance=xp.bincount(traversal.distance[traversal.reached]), predecessor=None)


def _gathered(traversals: list[Traversal], graph: Graph, algorithm: str, query: Query) -> ManyOutcome:
    xp = namespace(graph.offsets)
    limits, rounds = [t.limit for t in traversals], [t.rounds for t in traversals]
    if query.keep == "counts":
        counts = np.zeros((len(traversals), max(t.distance.size for t in traversals)), np.int64)
        for row, traversal in zip(counts, traversals, strict=True):
            row[: traversal.distance.size] = to_host(traversal.distance)
        return ManyOutcome(None, None, limits, rounds, counts)
    distance = xp.stack([t.distance for t in traversals])
    if algorithm == "bfs":
        distance = distance.astype(hops_dtype(int(distance.max()) if distance.size else 0), copy=False)
    predecessor = xp.stack([t.predecessor for t in traversals]) if query.predecessors and query.keep == "all" else None
    return ManyOutcome(distance, predecessor, limits, rounds)
