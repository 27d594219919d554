"""Strategies: registry entries with a name, a device and a function that makes a plan. Independent
of the algorithm.

A strategy is planned once and run many times: ``Strategy.plan`` allocates, compiles and returns a
``Search``. ``MultiSourceStrategy.plan`` returns a ``MultiSourceSearch``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from .. import arguments
from .._arrays import Array, index_dtype
from ..cpu import threads
from ..errors import InputError, StrategyError, is_for_library, option_text
from ..formats.column_names import listed
from ..graph import Graph
from .algorithms import ALGORITHMS
from .exact import Sums
from .query import Query

# why a strategy does not run, by the place where it reads edges
_WRONG_PLACE = {
    "device": "needs the edges in the memory of the GPU, and they are in host memory",
    "host": (
        "is for edges in host memory, and they are in the memory of the GPU; "
        "graph.to('cuda', edges='host') moves them"
    ),
}

StrategyT = TypeVar("StrategyT", bound="BaseStrategy")


def _why_no_weights(_strategy: BaseStrategy, graph: Graph) -> str | None:
    """Return a text that says why a graph without weights cannot be searched, or None if it has
    weights. The strategy is ignored: it is the same for all.

    The functions below return the same about other requirements. They are the values of
    ``WHY_NOT``.
    """
    if graph.weights is not None:
        return None
    unused = ""
    if graph.report.unused_columns:
        unused = f" (not used: {listed(list(graph.report.unused_columns))})"
    return f"needs weights, and this graph has none; name the weight column when reading it{unused}"


def _why_not_narrow(_strategy: BaseStrategy, graph: Graph) -> str | None:
    """Return why the vertex numbers of a graph cannot be taken, or None if they have 32 bits. The
    strategy is ignored: it is the same for all.
    """
    if graph.targets.dtype.itemsize <= 4:
        return None
    return "cannot take 2^31 vertices or more"


def _why_not_non_negative(_strategy: BaseStrategy, graph: Graph) -> str | None:
    """Return why the weights of a graph cannot be taken, or None if none is negative. The strategy
    is ignored: it is the same for all.
    """
    if not graph.has_negative_weights:
        return None
    return "cannot take negative weights"


def _why_not_acyclic(_strategy: BaseStrategy, graph: Graph) -> str | None:
    """Return why paths in a graph cannot be summed in topological order, or None if they can. The
    strategy is ignored: it is the same for all.
    """
    # There is no such order of an undirected graph, nor of one with a cycle.
    if graph.derived.topological_order is None:
        return "needs a directed graph without a cycle, and this graph has one"
    # A self-loop is not among the edges of the graph. But with a negative weight, paths through its
    # vertex have no shortest length.
    if graph.negative_loops:
        return "cannot take a negative weight from a vertex to itself"
    if graph.closed is not None and graph.has_negative_weights:
        return "cannot take negative weights with closed vertices"
    return None


def _why_no_hierarchy(strategy: BaseStrategy, graph: Graph) -> str | None:
    """Return that a graph lacks the hierarchy that a strategy needs, and how to build it; None if
    it has one, of hops or of weights as the strategy needs.
    """
    if graph.derived.known_hierarchy(strategy.metric) is not None:
        return None
    if not is_for_library():
        how = option_text("hierarchy", "yes")
        return f"needs a hierarchy, and this graph has none; a run with {how} builds one"
    if strategy.metric == "hops":
        return (
            "needs a hierarchy of hops, and this graph has none; build one "
            "by graph.hierarchy(metric='hops')"
        )
    if graph.integer_weights:
        return "needs a hierarchy, and this graph has none; build one by graph.hierarchy()"
    return (
        "needs a hierarchy, and this graph has none; graph.hierarchy() builds one of "
        "weights that integer_weights has counted in a unit"
    )


# For each requirement of a strategy, a function that returns why a graph does not meet it, or None
# if it does. They are called in this order, as the later ones take longer.
WHY_NOT: dict[str, Callable[[BaseStrategy, Graph], str | None]] = {
    "weights": _why_no_weights,
    "narrow": _why_not_narrow,
    "non_negative": _why_not_non_negative,
    "hierarchy": _why_no_hierarchy,
    "acyclic": _why_not_acyclic,
}


class Outcome(NamedTuple):
    """Result of a strategy for one source. Its fields are those of ``Traversal``, but for
    ``below``.
    """

    distance: Array  # of shape (n_vertices,)
    predecessor: Array | None  # of shape (n_vertices,); None if none are wanted
    limit: float | None  # up to where the distances are complete; None: everywhere
    rounds: int  # levels or rounds that the search took
    counters: dict[str, int] | None = None  # of the strategy, if it has any
    below: float | None = None  # upper bound of all finite distances, if the strategy knows one


class MultiSourceOutcome(NamedTuple):
    """Result of a strategy for several sources. The fields are those of ``Traversals``, except
    ``below``.

    Counts stay on the device that computed them. A caller that needs them in host memory copies
    them.
    """

    # Of shape (k, n_vertices); or (k, n_targets) if only the distances at the targets of all
    # sources are wanted; or (n_targets,) if each source has a list of targets. None if only counts
    # are wanted.
    distance: Array | None
    predecessor: Array | None  # of shape (k, n_vertices); None if none are wanted
    limits: list[Any]  # per source, up to where its distances are complete; None: everywhere
    rounds: list[int]  # per source, the levels or rounds of its search
    # of shape (k, levels): the vertices at 0, 1, 2, ... hops, if these numbers alone are wanted
    counts: Array | None = None
    below: float | None = None  # as in ``Outcome``
    routes: Any = None  # ``results.Routes``, if the strategy finds paths and they are wanted
    # int64 of shape (k, n_targets, n_columns): what was added up along the paths, if that is wanted
    sums: np.ndarray | None = None


# Searches from a vertex number, and from an array of vertex numbers of at most one group. They are
# compiled, and their arrays are allocated. The arrays of an outcome are valid until the next call.
Search = Callable[[int], Outcome]
MultiSourceSearch = Callable[[np.ndarray], MultiSourceOutcome]
Prepare = Callable[[Graph, Query], Search]  # checks, compiles and allocates
PrepareMany = Callable[[Graph, Query, int], MultiSourceSearch]  # for groups of at most that size


class MultiSourceModule(Protocol):
    """A module that implements a ``MultiSourceStrategy`` by functions of these names.

    ``plan(graph, query, group)`` prepares a search, ``memory(shape, query, group)`` returns bytes,
    ``group_size(n_sources)`` how many sources are searched together, and ``terms(shape, n_sources,
    group, machine)`` amounts of the cost model.
    """

    @property
    def plan(self) -> PrepareMany: ...

    @property
    def memory(self) -> Callable[..., int]: ...

    @property
    def group_size(self) -> Callable[[int], int]: ...

    @property
    def terms(self) -> Callable[..., dict[str, float]]: ...


@dataclass(frozen=True, kw_only=True)
class BaseStrategy:
    """What a strategy for one source and a strategy for several sources have in common.

    Attributes
    ----------
    name : str
        Named after its mechanism.
    aliases : tuple of str
        Other accepted names: those of published systems that it represents.
    device : {"cpu", "cuda"}
    needs : frozenset of str
        Requirements: a subset of ``"weights"``, ``"non_negative"``, ``"narrow"`` (32-bit vertex
        numbers), ``"acyclic"`` and ``"hierarchy"`` (one that ``Graph.hierarchy`` has built or
        ``load_graph`` has found; of hops without ``"weights"``).
    default : bool
        Whether ``auto`` may choose it. For one source ``auto`` takes the first default that fits.
    paper, rationale : str
        Its publication, and the idea behind it.
    complexity : str
        Work of one search in terms of V, E, the number D of levels or rounds, and the number S of
        sources.
    knobs : type, optional
        Dataclass of its options, each with a default. Its constructor raises InputError for a value
        out of range.
    published : bool
        Whether it reproduces a published system, for study and measurement. ``auto`` chooses none
        of these.
    edges : {"device", "host", "any"}
        Where the edges of a graph are whose device is a GPU: in its memory, or in that of the host
        (``Graph.derived.edges_on_host``).
    sums : {"float", "int64", "any"}
        Type of the sums that it computes: that of the graph's weights, int64, or what its own
        searches choose. The int64 strategy replaces any other one where float64 could round.
    """

    name: str
    device: str
    paper: str
    rationale: str
    complexity: str = ""
    needs: frozenset[str] = frozenset()
    default: bool = False
    aliases: tuple[str, ...] = ()
    knobs: type | None = None
    published: bool = False
    sums: str = "float"
    edges: str = "any"

    def is_called(self, name: str) -> bool:
        """Return whether a name is that of the strategy or one of its aliases."""
        return name == self.name or name in self.aliases

    @property
    def metric(self) -> str:
        """What distances are, "weights" or "hops"; a hierarchy that the strategy uses must be of
        the same.
        """
        return "weights" if "weights" in self.needs else "hops"

    def matches_edges(self, graph: Graph) -> bool:
        """Return whether the edges of a graph are in the memory where this strategy reads them."""
        place = "host" if graph.derived.edges_on_host else "device"
        return self.edges in (place, "any")

    def unsupported_reason(self, graph: Graph) -> str | None:
        """Return a text that says why this strategy cannot run on the graph, or None if it can."""
        if not self.matches_edges(graph):
            return _WRONG_PLACE[self.edges]
        for need, find_reason in WHY_NOT.items():
            if need in self.needs:
                reason = find_reason(self, graph)
                if reason is not None:
                    return reason
        if self.sums == "int64" and not graph.integer_weights:
            return "needs integer weights"
        return None

    def knobs_from(self, knobs: Any) -> Any:
        """Return options of this strategy from an instance of ``knobs`` or a mapping of names to
        values; None stays None. Names that a mapping leaves out get their defaults.

        Raises
        ------
        StrategyError
            The strategy has no options, has none of that name, or ``knobs`` belongs to another
            strategy.
        """
        if knobs is None or (self.knobs is not None and isinstance(knobs, self.knobs)):
            return knobs
        if self.knobs is None:
            raise StrategyError(f"strategy {self.name!r} has no knobs; leave them out")

        # The values of a mapping are checked: names and types here, ranges by the dataclass.
        names = [field.name for field in fields(self.knobs)]
        if not isinstance(knobs, Mapping):
            raise StrategyError(
                f"strategy {self.name!r} takes knobs of type "
                f"{self.knobs.__name__}, not {type(knobs).__name__}"
            )
        unknown = [name for name in knobs if name not in names]
        if unknown:
            raise StrategyError(
                f"strategy {self.name!r} has no knob "
                f"{arguments.describe(unknown[0])}; it has {', '.join(names)}"
            )
        for field in fields(self.knobs):
            if field.name in knobs:
                _check_type(
                    f"knob {field.name} of {self.name}", knobs[field.name], type(field.default)
                )
        return self.knobs(**knobs)


@dataclass(frozen=True, kw_only=True)
class Strategy(BaseStrategy):
    """One way to search from one source.

    Attributes
    ----------
    plan : callable
        ``plan(graph, query)`` checks, compiles and allocates. It returns
        ``traverse(source_vertex)``, which returns the ``Outcome`` of a vertex number.
    memory : callable
        ``memory(n_vertices, n_edges, predecessors)`` returns the bytes that it allocates in
        addition to the graph.
    """

    plan: Prepare
    memory: Memory


def _check_type(name: str, value: Any, kind: type) -> None:
    """Raise InputError unless the value of a knob has the type of its default, ``kind``. ``name``
    is what the error calls it.

    Types besides bool, int, float and str, such as that of None, are not checked. The dataclass of
    the knobs checks the range.
    """
    if kind is bool:
        if not isinstance(value, bool):
            raise InputError(f"{name} must be true or false, not {arguments.describe(value)}")
    elif kind is int:
        arguments.whole(name, value, least=None)
    elif kind is float:
        arguments.real(name, value)
    elif kind is str:
        arguments.text(name, value)


_PATH_DEGREE = 2.01  # largest degree of paths and cycles, with a margin for rounding
# Largest mean degree (that of a triangulation) and skew of a lattice. Hubs of higher degree make
# paths short.
_LATTICE_DEGREE = 6
_LATTICE_SKEW = 6


class Shape(NamedTuple):
    """Properties of a graph and a query by which a strategy for many sources is chosen.

    Some of them are measured by a survey: a few searches of the graph, before the run, that are
    cheap compared with it (``auto.survey``).
    """

    # n_vertices, n_edges: of the graph; an undirected edge is stored, and counts, twice
    n_vertices: int
    n_edges: int
    directed: bool
    depth: int  # levels of the deepest search of the survey, 0 without a search
    # index, weight: bytes per vertex number, and per weight and distance (0 without weights)
    index: int  # type: ignore[assignment]  # hides a method of tuples that nothing calls
    weight: int
    # reach, walked: the share of the vertices that a search from a random source reaches, and the
    # share of the edges that it visits, from 0 to 1. Both are means over the searches of the
    # survey.
    reach: float = 1.0
    walked: float = 1.0
    most: float = 1.0  # the largest share of the edges that a search of the survey visits
    # Mean number of levels (BFS) or rounds (SSSP) of a search; 0 without a search. A round of SSSP
    # relaxes the edges of the vertices of a pile: those up to a distance, which grows pile by pile.
    rounds: float = 0.0
    skew: float = 1.0  # largest degree divided by the mean
    spread: float = 0.5  # standard deviation of the weights divided by their mean
    scatter: float = 1.0  # share of the edges whose two vertex numbers are far apart
    # {"all", "targets", "counts", "paths"}: what each search outputs, as ``Query.output`` has it
    keep: str = "all"
    # mean number of targets that each source has of its own: ``Query.targets_per_source``
    per_source: float = 1.0
    # whether ``reach`` and ``walked`` are those of searches that end early, as the query asks
    is_short: bool = False
    # mean length of the hub labels that answer the query in place of a hierarchy; 0 if none do
    hubs: float = 0.0
    tail: float = 1.0  # mean of the weights divided by their median: above 1 where few are large

    @property
    def is_summed_by_labels(self) -> bool:
        """Whether sums of hub labels are all that the query asks for."""
        return self.hubs > 0 and self.keep == "targets"

    @property
    def likely_depth(self) -> float:
        """The number of levels of the deepest search; without a search, an estimate from the
        degrees.
        """
        return self.depth or self.guessed_depth

    @property
    def guessed_depth(self) -> float:
        """The number of levels of a search, estimated from the degrees: that of a path, that of a
        lattice for few edges and no hubs, or else a small number.
        """
        degree = self.n_edges / max(self.n_vertices, 1)
        # ``skew`` is the largest degree divided by the mean, so the product is the largest degree.
        # On a path or a cycle, the farthest vertex is at half of the vertices or beyond, wherever
        # the source is.
        if degree * self.skew <= _PATH_DEGREE and not self.directed:
            return max(0.5 * self.n_vertices, 1.0)
        # 12 is a guess for all other graphs: many edges, or hubs, make paths short.
        return self._sides if self.is_lattice_like else 12

    @property
    def extra_rounds(self) -> float:
        """Additional rounds of a search of a lattice: with uneven weights, paths of more edges can
        be shorter. 0 for other graphs, and for paths.
        """
        is_path = self.guessed_depth > self._sides
        if self.is_lattice_like and not is_path:
            return self._sides * self.spread
        return 0.0

    @property
    def unevenness(self) -> float:
        """How much longer one block needs per edge if few vertices have most edges, in fitted
        units: the binary logarithm of the skew, 0 if all degrees are equal.
        """
        return math.log2(max(self.skew, 1.0))

    @property
    def detours(self) -> float:
        """Estimate how often uneven weights make a search relax an edge again, in fitted units.

        It grows with the number of levels, since each may improve a path. It grows with the number
        of edges in excess of a tree, since a tree has one path per vertex only. Both exponents are
        fitted to searches of lattices, meshes and road networks with uneven weights.
        """
        # An undirected tree has two stored edges per vertex. The excess counts up to 2.
        beyond_tree = min(max(self.n_edges / (2 * max(self.n_vertices, 1)) - 1, 0.0), 2.0)
        return self.spread * beyond_tree * self.likely_rounds**0.75 / (1 + self.unevenness / 2)

    @property
    def repeats(self) -> float:
        """Estimate how often a search with piles on the CPU relaxes an edge again, in fitted units.

        A pile is as wide as some mean weights. Where few weights are large, most of the graph is in
        one pile, whose rounds improve the same vertices again and again: the more, the more rounds
        there are. The exponents are fitted to road networks, lattices and random graphs, with
        weights that are even, exponential, and as many from 1 to 10 as from 10 to 100 and so on.
        """
        # as in ``detours``: the edges in excess of a tree, which has two stored edges per vertex
        beyond_tree = min(max(self.n_edges / (2 * max(self.n_vertices, 1)) - 1, 0.0), 2.0)
        rounds = max(self.likely_rounds, 1.0)
        # 0 for even weights, and below the number of rounds however few weights are large
        excess = max(self.tail - 1, 0.0)
        excess_per_pile = excess / (1 + excess / rounds)
        return beyond_tree * rounds**0.1 * excess_per_pile**1.2 / (1 + self.unevenness / 2)

    @property
    def is_lattice_like(self) -> bool:
        """Whether the graph has few edges and no hubs, as lattices, meshes and road networks."""
        return self.n_edges <= _LATTICE_DEGREE * self.n_vertices and self.skew <= _LATTICE_SKEW

    @property
    def _sides(self) -> float:
        """The number of levels of a search of a square lattice with as many vertices, about 1.4
        times its side: one side from the center, and two from a corner.
        """
        return 1.4 * self.n_vertices**0.5

    @property
    def likely_rounds(self) -> float:
        """The mean number of levels or rounds of a search, estimated if the survey made none."""
        return self.rounds or self.likely_depth

    def fetches(self, machine: Any, state: float) -> float:
        """Return how many loads of one search come from memory, since no cache has what they read.

        A vertex takes two, its offset and the begin of its edges. An edge takes one from the memory
        of the search, which has ``state`` bytes per vertex. ``machine`` is a ``Machine`` of
        ``auto.costs``. Searches that reach a part of the graph keep that part in the caches. Where
        neighbors have near numbers, as in road networks that are sorted, earlier loads have brought
        them there.
        """
        n_reached = self.n_vertices * self.reach
        n_walked = self.n_edges * self.walked
        # of the graph: an offset of 8 bytes per vertex, and a target and a weight per edge
        graph_bytes = 8 * n_reached + (self.index + self.weight) * n_walked
        # ``share_from_memory(n)``: of random loads from a table of n bytes, those that no cache has
        of_vertices = 2 * n_reached * machine.share_from_memory(graph_bytes)
        of_edges = n_walked * machine.share_from_memory(state * n_reached)
        return self.scatter * (of_vertices + of_edges)

    def frontier_share(self, n_sources: int) -> float:
        """Return the estimated share of the vertices that are in the frontier of at least one of
        ``n_sources`` searches on one level. A frontier is the vertices of the present level: of one
        search, those that it reaches divided by its rounds. Frontiers are taken not to overlap, and
        the sum is at most 1.
        """
        return min(1.0, n_sources * self.reach / max(self.likely_rounds, 1.0))

    def edge_share(self, n_sources: int) -> float:
        """Return the estimated share of the edges that at least one of ``n_sources`` searches
        visits: each search is taken to miss an edge independently of the others.
        """
        return 1 - (1 - min(self.walked, 1.0)) ** n_sources


# ``memory(n_vertices, n_edges, predecessors)`` returns bytes: see ``Strategy.memory``
Memory = Callable[[int, int, bool], int]


def state_bytes(
    fixed: float = 0,
    *,
    numbers: float = 0,
    edge_bytes: float = 0,
    edge_numbers: float = 0,
    once: int = 0,
    beside: Memory | None = None,
) -> Memory:
    """Return the function ``memory`` of a strategy, which estimates the bytes that it allocates for
    a graph.

    Parameters
    ----------
    fixed : float
        Bytes per vertex.
    numbers : float
        Vertex numbers per vertex, each of 4 or 8 bytes.
    edge_bytes, edge_numbers : float
        Bytes and vertex numbers per edge.
    once : int
        Bytes that do not depend on the graph.
    beside : callable, optional
        The ``memory`` of a strategy whose memory is needed, too. It includes the predecessors;
        without it, they are added here.
    """

    def estimate_bytes(n_vertices: int, n_edges: int, predecessors: bool) -> int:
        """Return the bytes for a graph of ``n_vertices`` vertices and ``n_edges`` stored edges, as
        ``Strategy.memory`` does. ``predecessors`` says whether predecessors are computed, a vertex
        number per vertex.
        """
        index = index_dtype(n_vertices).itemsize
        bytes_of_state = n_vertices * (fixed + index * numbers) + n_edges * (
            edge_bytes + index * edge_numbers
        )
        if beside is None:
            predecessor_bytes = index * n_vertices * predecessors
        else:
            predecessor_bytes = beside(n_vertices, n_edges, predecessors)
        return once + math.ceil(bytes_of_state) + predecessor_bytes

    return estimate_bytes


def per_core(n: int) -> Callable[[int], int]:
    """Return the function ``group_size`` of a strategy that searches from ``n`` sources per core at
    once. It takes the number of sources of the run, and returns no more than these.
    """
    return lambda n_sources: min(n_sources, n * threads.count())


def sources_per_worker(n_sources: int, at_once: int) -> float:
    """Return how many of ``n_sources`` sources each of ``at_once`` workers searches from if they
    share them evenly; at least 1, and it may be a fraction.
    """
    return max(1.0, n_sources / at_once)


def slowdown(per_processor: int, n_sources: int, processors: int) -> float:
    """Return the factor by which a thread block is slower because it shares its multiprocessor with
    other blocks, of which there are ``n_sources``, one per source.

    Up to ``per_processor`` blocks run at once on each of ``processors`` multiprocessors. Blocks
    mostly wait for loads, and one computes while another waits. In the measurements of
    docs/regret.md, four blocks on a multiprocessor take twice as long as one: hence the square
    root. It is taken of the blocks on the fullest multiprocessor, ``n_sources / processors``
    rounded up, or of ``per_processor`` if these are more: the others wait for their turn.
    """
    return min(per_processor, -(-n_sources // processors)) ** 0.5


@dataclass(frozen=True, kw_only=True)
class MultiSourceStrategy(BaseStrategy):
    """One way to search from several sources together.

    Attributes
    ----------
    plan : callable
        ``plan(graph, query, group)`` returns ``traverse(source_vertices)``, which returns the
        ``MultiSourceOutcome`` of up to ``group`` vertex numbers.
    memory : callable
        ``memory(shape, query, group)`` returns the bytes that it allocates in addition to the
        graph, including the results of one group.
    group_size : callable
        ``group_size(n_sources)`` returns how many sources it searches together if memory allows.
    terms : callable
        ``terms(shape, n_sources, group, machine)`` returns a dict with the amount of each term of
        its cost (see ``costs``) for all sources, in groups of ``group``. ``auto`` takes the
        cheapest strategy that fits.
    repeats : bool
        Whether it runs a strategy for one source once per source.
    takes_target_lists : bool
        Whether its searches take ``query.TargetLists`` as a second argument. They may stop once the
        targets of a source are settled; with ``Query.output="targets"`` their distances are of
        shape ``(n_targets,)``, in the order of the lists. Other strategies search without stopping.
    ends_at_nearest : bool
        Whether its searches end at the targets that ``Query.nearest`` asks for.
    finds_paths : bool
        Whether it takes ``Query.output="paths"``. Other strategies then compute predecessors.
    reverses : bool
        Whether it builds the reverse of a directed graph. If so, its ``memory`` and ``terms``
        include the reverse.
    kernels : callable, optional
        ``kernels(graph, query, group)`` returns the kernels that a plan will need, which can be
        compiled before it is made.
    """

    plan: PrepareMany
    memory: Callable[[Shape, Query, int], int]
    group_size: Callable[[int], int]
    terms: Callable[[Shape, int, int, object], dict[str, float]]
    edges: str = "device"
    repeats: bool = False
    takes_target_lists: bool = False
    ends_at_nearest: bool = False
    finds_paths: bool = False
    reverses: bool = False
    kernels: Callable[..., list[Any]] | None = None

    @classmethod
    def from_module(cls, module: MultiSourceModule, **fields: Any) -> MultiSourceStrategy:
        """Return a strategy from the module that defines its functions ``plan``, ``memory``,
        ``group_size`` and ``terms``, and perhaps ``kernels``. ``fields`` are the other fields.
        """
        return cls(
            plan=module.plan,
            memory=module.memory,
            group_size=module.group_size,
            terms=module.terms,
            kernels=getattr(module, "kernels", None),  # strategies of the CPU have none
            **fields,
        )


def strategy_for_sums(
    strategy: StrategyT, strategies: Sequence[StrategyT], sums: Sums, algorithm: str
) -> StrategyT:
    """Return the strategy that runs: the chosen one, or where ``sums`` are int64 the strategy for
    int64 sums of its device, one of ``strategies``. Where ``algorithm`` counts hops, it is always
    the chosen one.
    """
    if ALGORITHMS[algorithm].counts_hops:
        return strategy
    return strategy_for_dtype(strategy, strategies, sums.dtype)


def strategy_for_dtype(
    strategy: StrategyT, strategies: Sequence[StrategyT], dtype: np.dtype
) -> StrategyT:
    """Return the strategy that runs where sums have the type ``dtype``: the chosen one,
    ``strategy``, for floats, else that of ``strategies`` for int64 sums of its device.
    """
    if dtype.kind == "f":
        return strategy
    return next(
        other for other in strategies if other.sums == "int64" and other.device == strategy.device
    )


def pick(strategies: Sequence[StrategyT], name: str, graph: Graph) -> StrategyT:
    """Return the one of ``strategies`` that is called ``name`` on the graph's device, or for
    ``"auto"`` the first default that fits.

    Raises
    ------
    StrategyError
        The device has no strategy of that name (the message lists those that fit), or it cannot run
        on this graph.
    """
    name = arguments.text("strategy", name, "a name that strategies() lists", StrategyError)
    # the strategies for the device, and the names of those that can run on the graph
    on_device = [strategy for strategy in strategies if strategy.device == graph.device]
    fitting = [
        strategy.name for strategy in on_device if strategy.unsupported_reason(graph) is None
    ]
    if name == "auto":
        for strategy in on_device:
            if strategy.default and strategy.unsupported_reason(graph) is None:
                return strategy
        raise StrategyError(f"no strategy fits: {on_device[0].unsupported_reason(graph)}")
    for strategy in on_device:
        if strategy.is_called(name):
            reason = strategy.unsupported_reason(graph)
            if reason is None:
                return strategy
            others = f"; these can: {', '.join(fitting)}" if fitting else ""
            raise StrategyError(f"strategy {name!r} {reason}{others}")
    raise StrategyError(
        f"no strategy {name!r} on device {graph.device!r}; these "
        f"fit: {', '.join(['auto', *fitting])}"
    )
