"""``result="betweenness"``: the share of the shortest paths between all pairs that each vertex or
edge is on.

All shortest paths count, by their edges and the distances that a search has found. So each
strategy, hierarchy and device serves: contracting a graph loses ties, and no contracted graph is
looked at here.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from .. import arguments
from .._arrays import (
    at_most,
    get_device,
    is_hops,
    is_reached,
    is_rows,
    namespace,
    sort_distinct,
    to_host,
    unreached_value,
)
from ..cpu import betweenness as cpu
from ..cpu import threads
from ..cpu.exact_sums import ExactSums
from ..errors import InputError, PrecisionError, option_text
from ..graph import Graph
from ..graph.closed import refuse_closed
from ..search.algorithms import ALGORITHMS
from ..search.frames import Column
from ..search.query import compute_digest
from ..search.results import Traversals
from ..search.sparse import closed_cycle_error
from . import betweenness_gpu as gpu
from .loads import CELLS, Loads, columns_of_cells, refuse_twice
from .path_counts import PathCounts, require_path_counts
from .records import Asked, CheckedOptions, format_ids
from .result_kinds import BetweennessOptions, ResultKind

DELTA = 0.1  # the default probability that the bound of an estimate fails
SEED = 1  # the default seed of a sample, and that of the job


class Sample(NamedTuple):
    """Sources that are searched in place of all vertices, to estimate betweenness."""

    # int64 vertex numbers in the order in which they are drawn: the first are those of a smaller
    # sample of this seed, unless its number is one for which Python draws otherwise.
    sources: np.ndarray
    seed: int  # the seed of Python's random generator, which draws them
    # epsilon, delta: with probability 1 - delta or more, no normalized value has an error beyond
    # epsilon
    epsilon: float
    delta: float

    @property
    def facts(self) -> dict[str, Any]:
        """What the result says of an estimate: the number of sources, and ``epsilon``, the bound of
        its error, which fails with a probability of at most ``delta``.
        """
        return {
            "estimate": {
                "sources": self.sources.size,
                "epsilon": self.epsilon,
                "delta": self.delta,
                "bound": "Serfling 1974, for all rows together, normalized",
            }
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class CheckedBetweenness(CheckedOptions):
    """Checked options of betweenness."""

    of: str  # {"vertices", "edges"}: what carries betweenness
    endpoints: bool  # whether a path also counts at the vertices where it begins and ends
    normalized: bool  # whether sums are divided by the number of pairs
    sample: Sample | None  # None for all vertices, or for the sources that are given

    def bytes_on_gpu(self, n_sources: int, n_vertices: int) -> int:
        """Return the bytes that the loads of a group of ``n_sources`` sources need on a GPU while
        they are computed, in a graph of ``n_vertices`` vertices.

        They are estimated for hops of one byte. The size of a vertex number, 8 here, does not
        matter for these. The number of edges is not known here, and 0 stands for it.
        """
        return gpu.bytes_needed(n_sources, n_vertices, 0, 8, one_byte_hops=True)

    @property
    def sources(self) -> np.ndarray | None:
        """The sources of the sample, int64 vertex numbers; None without a sample."""
        return None if self.sample is None else self.sample.sources

    @property
    def digest(self) -> str:
        """The SHA-256 of what determines a result except the sample, as hexadecimal digits."""
        return compute_digest([self.of, self.endpoints, self.normalized])

    @property
    def recorded(self) -> dict[str, Any]:
        """What identifies the options in a manifest: their digest, and the seed of the sample.

        The size and the bound of the sample are left out, since a larger sample of the same seed
        may extend a smaller one.
        """
        return super().recorded | ({} if self.sample is None else {"seed": self.sample.seed})


def check_options(
    options: BetweennessOptions,
    kind: ResultKind,
    graph: Graph,
    algorithm: str,
    numbers: Mapping[str, Any],
) -> CheckedBetweenness:
    """Return the checked options of betweenness.

    ``kind`` says what carries betweenness by default, ``algorithm`` is "bfs" or "sssp", and
    ``numbers`` may have ``sources``, int64 vertex numbers.

    Raises InputError: an option has a wrong value, or does not go with another; an edge has a
    weight of 0 or less; a source is given twice; a sample is requested of some sources.
    """
    given = kind.cells if options.of is None else options.of
    of = arguments.choice("of", given, CELLS)
    sources = numbers.get("sources")
    n = graph.n_vertices

    refuse_closed(graph, "betweenness is of paths that may lead anywhere")
    for name in ("endpoints", "normalized"):
        arguments.flag(name, getattr(options, name))
    if ALGORITHMS[algorithm].is_weighted:
        _refuse_weights_of_zero(graph)
    if sources is not None:
        refuse_twice(graph, sources, "paths")

    # A cell is what carries betweenness: a vertex or an edge.
    sample = select_sample(options, n, n if of == "vertices" else graph.n_edges)
    return CheckedBetweenness(
        of=of, endpoints=options.endpoints, normalized=options.normalized, sample=sample
    )


def select_sample(options: BetweennessOptions, n: int, cells: int) -> Sample | None:
    """Return the sources that NetworkX's ``k`` and ``seed`` select, or None if all vertices are
    searched.

    ``n`` is the number of vertices, and ``cells`` the number of vertices or edges that carry
    betweenness. If the options have ``epsilon`` and no number of samples, as many are taken as that
    error needs.

    Raises InputError: an option is out of range.
    """
    samples = options.samples
    epsilon = options.epsilon
    delta = options.delta
    if samples is None and epsilon is None:
        return None

    delta = DELTA if delta is None else _require_share("delta", delta)
    cells = max(cells, 1)  # the bound takes a logarithm of it
    if samples is None:
        samples = count_samples(_require_share("epsilon", epsilon), delta, n, cells)
    elif not 2 <= arguments.whole("samples", samples) <= n:
        what = f"must be from 2 to the number of vertices, {n}, not {samples}"
        if n < 2:
            what = f"needs 2 vertices, and the graph has {n}; leave it out"
        raise InputError(f"{option_text('samples')} {what}")
    if samples >= n:
        return None

    if options.seed is None:
        seed = SEED
    else:
        seed = arguments.whole("seed", options.seed)
    # the same calls as in NetworkX, so that the same vertices are drawn
    drawn = np.array(random.Random(seed).sample(range(n), samples), np.int64)
    return Sample(drawn, seed, error_bound(samples, delta, n, cells), delta)


def _require_share(name: str, value: Any) -> float:
    """Return an option as a float; raise InputError unless it is a number between 0 and 1, both
    excluded. ``value`` is what the user gives, and ``name`` is what the error calls it.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1:
        raise InputError(
            f"{option_text(name)} must be a number between 0 and 1, not {arguments.describe(value)}"
        )
    return float(value)


def error_bound(samples: int, delta: float, n: int, cells: int) -> float:
    """Return a bound of the error of each normalized value, which holds for all of them together
    with a probability of 1 - ``delta`` or more.

    ``samples`` of the ``n`` vertices are searched from, and ``cells`` vertices or edges have a
    value. The values of a cell for one source each are between 0 and 1, and the sources are drawn
    without being put back. So Serfling's bound holds for each cell (1974, corollary 1.1): of m
    values, sqrt((1 - (m - 1) / n) * log(2 / p) / (2 * m)) fails with a probability of at most p. It
    holds for all cells together with p = delta / cells. A vertex has no paths from itself, so that
    its own sample may have one source less: m is ``samples`` - 1.
    """
    return math.sqrt((1 - (samples - 2) / n) * math.log(2 * cells / delta) / (2 * (samples - 1)))


def count_samples(epsilon: float, delta: float, n: int, cells: int) -> int:
    """Return the least number of sources, from 2 on, that makes ``error_bound`` at most
    ``epsilon``; ``n`` if no smaller one does.

    ``delta``, ``n`` and ``cells`` are those of ``error_bound``, which falls as the number of
    sources grows.
    """
    low = 2
    high = n
    while low < high:
        middle = (low + high) // 2
        if error_bound(middle, delta, n, cells) <= epsilon:
            high = middle
        else:
            low = middle + 1
    return high


def _refuse_weights_of_zero(graph: Graph) -> None:
    """Raise InputError if an edge has a weight of 0 or less; the message names the first one."""
    if graph.weights is None or not graph.n_edges or graph.derived.min_weight > 0:
        return
    host = graph.derived.on_host
    edge = int(np.flatnonzero(~(host.weights > 0))[0])
    tail = np.searchsorted(host.offsets, edge, side="right") - 1
    src, dst = format_ids(graph, tail, host.targets[edge])
    raise InputError(
        f"the edge from {src} to {dst} has weight {host.weights[edge]}: shortest paths cannot be counted unless all weights "
        "are above 0; give a small weight instead, or contract the edge"
    )


def find_scales(
    options: BetweennessOptions | CheckedBetweenness,
    sample: Sample | None,
    n_vertices: int,
    directed: bool,
    cells: np.ndarray,
) -> Any:
    """Return the factors that make betweenness, as NetworkX defines it, of the sums of some cells:
    one number, or an array with one per cell.

    ``options`` has ``of``, ``endpoints`` and ``normalized``. ``sample`` has the sources that were
    searched from, None for all. ``cells``, int64, are numbers of vertices or of edges.
    ``n_vertices`` and ``directed`` are of the graph. With fewer than two vertices that can be ends
    of a pair, the factor is 1.
    """
    counts_ends = options.endpoints or options.of == "edges"
    # How many vertices a pair may have as ends: all, or without the vertex that the path leads
    # through. With fewer than two there is no pair.
    others = n_vertices if counts_ends else n_vertices - 1
    if others < 2:
        return 1.0

    def scale(k: int) -> float:
        """Return the factor of a sum over the paths from k sources."""
        # Each source makes a pair with each of the other ends.
        if options.normalized:
            return 1 / (k * (others - 1))
        # A sum over some sources stands for all. In an undirected graph each pair is there twice.
        return others / (k * (1 if directed else 2))

    if sample is None:
        return scale(others)
    k = sample.sources.size
    if counts_ends:
        return scale(k)
    # A vertex of the sample is no inner vertex of the paths from itself, so one source less counts.
    # If it is the only source, nothing is known of it.
    scale_of_source = scale(k - 1) if k > 1 else np.nan
    return np.where(np.isin(cells, sample.sources), scale_of_source, scale(k))


def scaled(
    options: BetweennessOptions, cells: np.ndarray, n_cells: int, n_vertices: int, directed: bool
) -> tuple[Any, dict[str, Any]]:
    """Return the factors by which the sums of some cells are multiplied, and what else is said of
    the result, by name: the bound of an estimate.

    ``cells``, int64, are some of the ``n_cells`` vertices or edges that carry betweenness. The job
    calls this function as ``ResultKind.scaled``. ``options`` say whether results are normalized and
    whether sources are sampled; ``n_vertices`` and ``directed`` are of the graph. Without a sample
    nothing else is said, and the dict is empty.
    """
    sample = select_sample(options, n_vertices, n_cells)
    scales = find_scales(options, sample, n_vertices, directed, cells)
    if sample is None:
        return scales, {}
    return scales, sample.facts


class HostRows(NamedTuple):
    """Distances in host memory: a row per source, or those of ``SparseDistances``."""

    # offsets, vertices: of distances that hold reached vertices alone: where those of each source
    # begin, int64 of shape (k + 1,), and their vertex numbers, source by source. Both are None for
    # a row per source.
    offsets: np.ndarray | None
    vertices: np.ndarray | None
    # of shape (k, n_vertices) for a row per source; else of the shape of ``vertices``
    distance: np.ndarray

    @classmethod
    def of(cls, distance: Any) -> HostRows:
        """Return the distances of a group as host rows.

        ``distance`` is a NumPy array of shape (k, n_vertices), or ``SparseDistances``.
        """
        if is_rows(distance):
            return cls(None, None, distance)
        return cls(distance.offsets, distance.vertices, distance.distance)

    def to_all(self, i: int, n_vertices: int) -> np.ndarray:
        """Return the distances of source i to all vertices, of shape (n_vertices,), with the value
        of unreached vertices where there is none.
        """
        distance = self.distance
        if self.offsets is None or self.vertices is None:
            return distance[i]
        row = np.full(n_vertices, unreached_value(distance.dtype), distance.dtype)
        row_slice = slice(self.offsets[i], self.offsets[i + 1])
        row[self.vertices[row_slice]] = distance[row_slice]
        return row


class Betweenness(Loads):
    """Betweenness of one call or of one part: the sum, over the sources, of what each cell carries.
    A cell is a vertex, or an edge.
    """

    def __init__(self, asked: Asked[CheckedBetweenness], is_even: bool = False) -> None:
        """``asked`` has the graph, the checked options and the targets, None for all vertices.

        ``is_even``: each predecessor of a vertex carries the same share of it, and not a share by
        its number of paths. That is NetworkX's ``load_centrality``, by hops alone.
        """
        question = asked.options
        super().__init__(asked, question.of, cpu.EXPONENT)  # sums are in units of 2**EXPONENT
        self._question = question
        self._is_even = is_even
        self._is_certified = False  # whether a source of this call or part has been certified
        # the memory of ``_add_exactly``, by thread and type of distances
        self._exact_scratch: dict[Any, tuple[cpu.Scratch, cpu.Exact]] = {}
        # The distinct targets, ascending vertex numbers, and an array of shape (n_vertices,) with 1
        # at each of them. Both are empty if all vertices are targets.
        self._targets = np.zeros(0, np.int64)
        self._is_target = np.zeros(0, np.uint8)
        if asked.targets is not None:
            if not asked.targets.size:
                raise InputError(
                    "result='betweenness' needs at least one target; leave "
                    "targets out for all vertices"
                )
            self._targets = sort_distinct(asked.targets)
            self._is_target = np.zeros(self.graph.n_vertices, np.uint8)
            self._is_target[self._targets] = 1

    def add(self, group: Traversals) -> None:
        """Add the loads of a group of sources.

        One source is certified first: of the first group, and of each group whose distances are an
        array with a row per source. Even shares have no certificate: its rules are about shares by
        the number of paths.
        """
        distance: Any = group.distance
        if not self._is_even and len(group) and (is_rows(distance) or not self._is_certified):
            self.certify(group)
            self._is_certified = True
        if is_rows(distance) and get_device(distance) == "cuda":
            self._add_on_gpu(group)
            return
        # Each thread adds the loads of some sources to sums of its own. Hops of any width are
        # compared as int32, so that one scratch serves all groups.
        kind = self._choose_type(distance)
        n_threads = max(1, min(threads.count(), len(group)))
        scratch = [
            self.get_scratch(thread, (kind, is_rows(distance))) for thread in range(n_threads)
        ]
        sums = [self.of_thread(thread) for thread in range(n_threads)]
        self._add_rows(group.sources, HostRows.of(distance), kind, scratch, sums)

    def _add_rows(
        self,
        sources: np.ndarray,
        rows: HostRows,
        kind: np.dtype,
        scratch: list[cpu.Scratch],
        sums: list[ExactSums],
        exponents: np.ndarray | None = None,
    ) -> None:
        """Add the loads of sources by distances in host memory.

        ``rows`` has the distances. ``kind`` is the type in which distances are compared.
        ``scratch`` and ``sums`` are one per thread.

        With ``exponents``, int64 of shape (n_vertices,), there is one source, which is to be
        certified. Its loads are added at vertices, without the ends of paths. Exponents are written
        if its counts of paths need them: there are ``paths * 2**exponents`` paths to a vertex.
        """
        edges = self._edges(kind)  # with weights in the type ``kind``, or without them for hops
        of_edges = self.of == "edges" and exponents is None
        endpoints = self._question.endpoints and exponents is None
        of = of_edges, endpoints  # as ``_select_counted`` takes it

        # Compiled code adds the loads of most sources, and leaves those with a ``status`` other
        # than 0.
        status = np.zeros(sources.size, np.int64)
        task = cpu.Task(
            sources,
            rows.offsets,
            rows.vertices,
            np.ascontiguousarray(rows.distance),
            self.find_bound(kind),
            unreached_value(kind),
            status,
        )
        kernel = cpu.add_by_weights
        if is_hops(kind):
            kernel = cpu.add_by_hops
        # Threads take sources one by one. ``own`` has what each thread uses alone: a scratch, and
        # sums to add to.
        threads.run(
            kernel,
            sources.size,
            task,
            edges,
            self._select_counted(of, self._is_even),
            own=(scratch, [cpu.Sums(each.low, each.high) for each in sums]),
        )

        # It leaves sources whose sums rounding may spoil, which need exact sums, and sources with
        # so many paths that their counts need exponents.
        if (status == cpu.NOT_EXPLAINED).any():  # no path is as long as a distance
            raise closed_cycle_error(kind)
        unfinished = np.flatnonzero(status).tolist()

        def add_one(item: int, thread: int) -> None:
            """Add the loads of one source that the kernel has left, as its status says. ``item`` is
            its position in ``unfinished``, and ``thread`` the number of the calling thread.
            """
            i = unfinished[item]
            source = int(sources[i])
            row = rows.to_all(i, self.graph.n_vertices)
            if status[i] == cpu.ABSORBS:  # else it is OVERFLOW: too many paths
                self._add_exactly(source, row, kind, sums[thread], of, thread)
            elif exponents is None:
                self._add_scaled(source, row, kind, sums[thread], of)
            else:
                self._add_scaled(source, row, kind, sums[thread], of, (scratch[0], exponents))

        threads.for_each(add_one, len(unfinished))

    def _find_least(self, kind: np.dtype) -> Any:
        """Return three quarters of the smallest weight if rounding may absorb a weight, else 0.
        ``kind`` is the type of the distances.

        A weight is absorbed if a distance plus this weight is rounded to that distance. Then exact
        sums must decide which edges are on shortest paths. ``cpu.absorbs`` takes the number that is
        returned. The whole weight would not do there: if it is half a unit in the last place of a
        distance, only every second distance absorbs it, and the distance that is tested may not.
        """
        graph = self.graph
        if kind.kind != "f" or graph.integer_weights or not graph.n_edges:
            return kind.type(0)
        least = kind.type(0.75) * kind.type(graph.derived.min_weight)
        # a bound of all distances: by the weights of any path, and by the limit
        longest = min(graph.derived.max_sum, float(self.find_bound(kind)))
        if cpu.absorbs(kind.type(longest), least):
            return least
        return kind.type(0)

    def _add_exactly(
        self,
        source: int,
        row: np.ndarray,
        kind: np.dtype,
        sums: ExactSums,
        of: tuple[bool, bool],
        thread: int,
    ) -> None:
        """Add the loads of one source, where rounding may absorb weights: exact sums of the weights
        decide which edges are on shortest paths.

        ``row`` are its distances in the type ``kind``, of shape (n_vertices,). ``of`` says whether
        loads are those of edges, and whether ends of paths count. ``thread`` is the number of the
        thread, whose scratch is used.
        """
        n = self.graph.n_vertices
        n_edges = self.graph.n_edges
        edges = self._edges(kind)
        if (thread, kind) not in self._exact_scratch:
            # ``ahead`` are the weights of the edges out of each vertex.
            scratch = cpu.new_scratch(n, n_edges, unreached_value(kind))
            self._exact_scratch[thread, kind] = scratch, cpu.new_exact(n, edges.ahead)
        scratch, exact = self._exact_scratch[thread, kind]

        scratch.distance[:] = row
        counted = self._select_counted(of)
        loads = cpu.Sums(sums.low, sums.high)
        # No vertices, an empty array of their type, stand for all.
        search = cpu.Search(source, scratch.order[:0], self.find_bound(kind))
        status = cpu.add_scaled(search, edges, counted, None, exact, scratch, loads)
        # Nothing was added: counts of paths need exponents. There is no other failure, since each
        # exact distance is the length of a path.
        if status == cpu.OVERFLOW:
            exponents = np.zeros(n, np.int64)
            cpu.add_scaled(search, edges, counted, exponents, exact, scratch, loads)

    def _add_scaled(
        self,
        source: int,
        row: Any,
        kind: np.dtype,
        sums: ExactSums,
        of: tuple[bool, bool],
        memory: Any = None,
    ) -> None:
        """Add the loads of one source that has so many shortest paths that their counts need
        exponents.

        ``row`` are its distances, of shape (n_vertices,), and ``kind`` is the type in which they
        are compared. The loads are added to ``sums``. ``of`` says whether loads are those of edges,
        and whether ends of paths count. ``memory`` is a pair: a ``cpu.Scratch``, and exponents,
        int64 of shape (n_vertices,), 0 before. Afterwards both hold the counts of paths of this
        source. By default a new pair is made.

        Raises PrecisionError: the load is that of ``is_even``, or rounding made distances that no
        path explains.
        """
        if self._is_even:
            raise PrecisionError(
                "a vertex has 2**1000 shortest paths or more, which this load does not count"
            )
        n = self.graph.n_vertices
        n_edges = self.graph.n_edges

        edges = self._edges(kind)
        # ``cpu.add_scaled`` takes edges with weights: by hops each is 1, and none is absorbed.
        if is_hops(kind):
            ones = np.ones(n_edges, kind)
            edges = cpu.WeightedEdges(edges, ones, ones, kind.type(0))
        if memory is None:
            memory = cpu.new_scratch(n, n_edges, unreached_value(kind)), np.zeros(n, np.int64)
        scratch, exponents = memory
        scratch.distance[:] = to_host(row)
        counted = self._select_counted(of)
        # No vertices, an empty array of their type, stand for all.
        search = cpu.Search(source, scratch.order[:0], self.find_bound(kind))
        loads = cpu.Sums(sums.low, sums.high)
        # None: without exact sums. What is returned is 0 if the loads were added.
        if cpu.add_scaled(search, edges, counted, exponents, None, scratch, loads):
            raise closed_cycle_error(kind)

    def _choose_type(self, distance: Any) -> np.dtype:
        """Return the type in which distances are compared: int32 for hops of any width, else that
        of the distances.

        So the compiled code and the scratch of hops are the same for all groups.
        """
        if is_hops(distance.dtype):
            return np.dtype(np.int32)
        return distance.dtype

    def _edges(self, kind: np.dtype) -> Any:
        """Return the edges for distances of the type ``kind``: ``cpu.Edges`` for hops, else
        ``cpu.WeightedEdges`` with weights of that type.
        """
        graph = self.graph
        if not is_hops(kind):
            graph = graph.derived.sums_in(kind.name)
        edges = cpu.Edges(
            graph.offsets, graph.targets, graph.reverse.offsets, graph.reverse.targets
        )
        if is_hops(kind):
            return edges
        weights: Any = graph.weights
        back: Any = graph.reverse.weights
        return cpu.WeightedEdges(edges, weights, back, self._find_least(kind))

    def _select_counted(self, of: tuple[bool, bool], is_even: bool = False) -> cpu.Counted:
        """Return what is counted of the paths. ``of`` says whether loads are those of edges, and
        whether ends of paths count. ``is_even``: the predecessors of a vertex share alike.
        """
        return cpu.Counted(self._is_target, self._targets, *of, is_even)

    def make_scratch(self, key: Any) -> cpu.Scratch:
        """Return new scratch of one thread.

        ``key`` has the type of the distances, and whether they are an array with a row per source.
        Both forms need a scratch of their own: rows overwrite all distances of a scratch, and the
        other form expects it to hold none. A mark per edge is needed by weights alone.
        """
        kind, _ = key
        return cpu.new_scratch(
            self.graph.n_vertices, 0 if is_hops(kind) else self.graph.n_edges, unreached_value(kind)
        )

    def _add_on_gpu(self, group: Traversals) -> None:
        """Add the loads of a group on the GPU.

        The loads of some sources are added on the host instead. For some, rounding may absorb a
        weight: a distance plus the weight is rounded to the distance. Others have so many shortest
        paths that float64 cannot count them without an exponent.
        """
        graph = self.asked.graph
        xp = namespace(group.distance)
        if self._targets.size:
            # Vertices beyond the farthest target are on no path, and may not be settled.
            is_target = xp.asarray(self._is_target)
            ends = group.distance[:, xp.asarray(self._targets)]
            ends = xp.where(is_reached(ends), ends, ends.dtype.type(0)).max(axis=1)
            # ``within`` makes all that is farther than the number of its source unreached.
            group = group.within([each.item() for each in to_host(ends)])
        else:
            is_target = None

        of = self.of == "edges", self._question.endpoints
        group = self._add_absorbed(group, of)
        sums = gpu.LoadSums(**{"edges" if of[0] else "vertices": self.on_gpu})
        # bool, True for sources of which the kernels have added nothing: a vertex has 2**1000 or
        # more shortest paths. Their distances absorb no weight, since those that do are gone.
        is_left = gpu.add_loads(graph, group.sources, group.distance, sums, is_target, of[1])
        for i in np.flatnonzero(is_left).tolist():
            kind = self._choose_type(group.distance)
            self._add_scaled(int(group.sources[i]), group.distance[i], kind, self.of_thread(0), of)

    def _add_absorbed(self, group: Traversals, of: tuple[bool, bool]) -> Traversals:
        """Add, in host memory, the loads of the sources from which rounding may absorb a weight,
        and return the group without these sources.

        ``of`` says whether loads are those of edges, and whether ends of paths count.
        """
        distance = group.distance
        kind = self._choose_type(distance)
        least = self._find_least(kind)
        if not least:
            return group

        xp = namespace(distance)
        # A weight is absorbed by a large distance first: the farthest one of each source decides.
        is_within = is_reached(distance) & at_most(distance, float(self.find_bound(kind)))
        farthest = to_host(xp.where(is_within, distance, kind.type(0)).max(axis=1))

        is_absorbed = np.array([cpu.absorbs(d, least) for d in farthest])
        absorbed = np.flatnonzero(is_absorbed)
        others = np.flatnonzero(~is_absorbed)
        rows = to_host(distance[xp.asarray(absorbed)])

        def add_one(i: int, thread: int) -> None:
            """Add the loads of the source at position ``i`` of ``absorbed``, from which rounding
            may absorb a weight, to the sums of the thread of number ``thread``.
            """
            self._add_exactly(
                int(group.sources[absorbed[i]]), rows[i], kind, self.of_thread(thread), of, thread
            )

        threads.for_each(add_one, absorbed.size)

        fields: dict[str, Any] = {
            "sources": group.sources[others],
            "distance": distance[xp.asarray(others)],
        }
        for name in ("limits", "rounds"):
            fields[name] = [getattr(group, name)[i] for i in others.tolist()]
        return replace(group, **fields)

    @property
    def sums_of_cells(self) -> ExactSums:
        """The sums of all threads and of the GPU, added to those of the first thread, as in
        ``Loads``.

        Kernels add the sums of edges in the order of the graph's edges. They are put into the order
        of the reversed graph first.
        """
        if self.of == "edges" and self._on_gpu is not None:
            self._on_gpu = gpu.order_by_in_edges(self.asked.graph, self._on_gpu)
        return super().sums_of_cells

    def certify(self, group: Traversals, i: int = 0) -> None:
        """Check the numbers of shortest paths and the loads of source i of a group by the rules of
        ``kinds.path_counts``.

        What the sources of this object have added stays as it is: everything is counted again, in
        memory of its own.

        Raises CertificateError: they are wrong.
        """
        n = self.graph.n_vertices
        kind = self._choose_type(group.distance)
        row = np.ascontiguousarray(to_host(group.distance[i]).astype(kind, copy=False))
        sums = ExactSums(n, cpu.EXPONENT)
        scratch = cpu.new_scratch(n, self.graph.n_edges, unreached_value(kind))
        exponents = np.zeros(n, np.int64)
        exact = None
        source = int(group.sources[i])
        bound = self.find_bound(kind)  # the largest distance that counts
        # three quarters of the smallest weight if rounding may absorb a weight, else 0
        least = self._find_least(kind)

        # Count the paths again, of this source alone. Both branches leave the counts of paths in
        # ``scratch.paths``, their exponents in ``exponents``, and the loads at vertices, without
        # the ends of paths, in ``sums``. If ``least`` is not 0, exact sums decide which edges are
        # on paths.
        if least:
            edges = self._edges(kind)
            exact = cpu.new_exact(n, edges.ahead)  # ``ahead``: the weights of the edges
            scratch.distance[:] = row
            # False twice: loads of vertices, without the ends of paths.
            counted = self._select_counted((False, False))
            loads_of_sums = cpu.Sums(sums.low, sums.high)
            # No vertices, an empty array of their type, stand for all.
            search = cpu.Search(source, scratch.order[:0], bound)
            # The status is not looked at. With exponents it is never ``OVERFLOW``. If it is
            # ``NOT_EXPLAINED``, no edge explains the distance of some vertex that is reached, and
            # ``require_path_counts`` refuses the paths to that vertex.
            cpu.add_scaled(search, edges, counted, exponents, exact, scratch, loads_of_sums)
        else:
            self._add_rows(
                group.sources[i : i + 1],
                HostRows.of(row[None]),
                kind,
                [scratch],
                [sums],
                exponents,
            )

        loads = sums.floats(np.arange(n))
        # A search may not have settled what lies beyond the farthest target, so the bound becomes
        # the distance of that target.
        if self._targets.size:
            ends = row[self._targets]
            bound = ends[(ends >= 0) & (ends <= bound)].max(initial=0)
        counts = PathCounts(scratch.paths, exponents, loads)
        require_path_counts(self.graph, source, row, bound, counts, self._is_target, exact)

    def columns(self) -> dict[str, Column]:
        """Return the columns of the result by name: a row per vertex or per edge, also where it
        carries nothing. An undirected edge has one row. Sums are multiplied by the factors of
        ``find_scales``.
        """
        sums = self.sums
        cells = np.arange(self.n_cells)
        # Of both directions of an edge, the one that leads to the larger vertex number has the sum.
        # Cells are positions in the reversed graph, whose edges are listed by their heads: ``dst``.
        if self.of == "edges" and not self.graph.directed:
            dst = np.repeat(np.arange(self.graph.n_vertices), np.diff(self.graph.reverse.offsets))
            cells = cells[self.graph.reverse.targets <= dst]

        question = self._question
        scales = find_scales(
            question, question.sample, self.graph.n_vertices, self.graph.directed, cells
        )
        return {
            **columns_of_cells(self.asked.graph, self.of, cells),
            self.value: Column(sums.floats(cells) * scales),
        }

    def facts(self) -> dict[str, Any]:
        """Return what the ``attrs`` of a frame say of an estimate: the number of sources, and the
        bound of its error.
        """
        sample = self._question.sample
        if sample is None:
            return {}
        return {f"kepler_traverse.{name}": value for name, value in sample.facts.items()}
