"""A strategy is a row of a table: a name, a device and a way to plan. Nothing here knows an algorithm."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from . import arguments
from .algorithms import ALGORITHMS
from .errors import InputError, StrategyError
from .graph import Graph
from .protocols import MultiSourceModule, Prepare, PrepareMany


class Outcome(NamedTuple):
    """What a strategy gives for one source; see ``Traversal``, whose fields these are."""

    distance: object
    predecessor: object | None
    limit: float | None
    rounds: int
    counters: dict[str, int] | None = None
    below: float | None = None  # no field of a traversal: all finite distances are smaller, where the strategy knows that


class MultiSourceOutcome(NamedTuple):
    """What a strategy gives for several sources; see ``Traversals``, whose fields these are.

    Counts stay where they were made: who wants them in host memory fetches them.
    """

    distance: object | None
    predecessor: object | None
    limits: list
    rounds: list[int]
    counts: object | None = None
    below: float | None = None  # as in ``Outcome``


@dataclass(frozen=True, kw_only=True)
class Strategy:
    """One way to compute an answer.

    Attributes
    ----------
    name : str
        Named by mechanism; ``also`` holds the names of published systems that it stands for.
    device : {"cpu", "cuda"}
    plan : callable
        ``plan(graph, query)`` checks, compiles and allocates, and returns ``traverse(source)``, which gives an
        ``Outcome`` for a vertex number.
    needs : frozenset of str
        Of ``"weights"``, ``"non_negative"``, ``"narrow"`` (vertex numbers of 32 bits).
    default : bool
        Whether ``auto`` may choose it; the first that fits is taken.
    paper, teaches : str
        Where it comes from, and what one learns from it.
    complexity : str
        Work of one search, in V, E, the number of levels or rounds D, and sources S where there are many.
    wins : str
        When it is the fastest, as far as that has been measured; empty where nothing has been.
    memory : callable
        ``memory(n_vertices, n_edges, predecessors)`` gives the bytes it allocates beside the graph.
    knobs : type, optional
        Dataclass of its settings, each with a default; making one raises InputError for a value out of range.
    published : bool
        Whether it reproduces a published system, to read and to measure; ``auto`` takes none of them.
    sums : {"float", "int64"}
        Type of the sums that it computes; the one that computes in int64 serves all others where float64 could round.
    """

    name: str
    device: str
    plan: Prepare
    memory: Callable[[int, int, bool], int]
    paper: str
    teaches: str
    complexity: str = ""
    wins: str = ""
    needs: frozenset[str] = frozenset()
    default: bool = False
    also: tuple[str, ...] = ()
    knobs: type | None = None
    published: bool = False
    sums: str = "float"

    def unsupported_reason(self, graph: Graph) -> str | None:
        """Say why this strategy cannot run on the graph, or None if it can."""
        if "weights" in self.needs and graph.weights is None:
            return "needs weights, and this graph has none; name the weight column when reading it"
        if "narrow" in self.needs and graph.targets.dtype.itemsize > 4:
            return "cannot take 2^31 vertices or more"
        if "non_negative" in self.needs and graph.has_negative_weights:
            return "cannot take negative weights"
        if self.sums == "int64" and not graph.integer_weights:
            return "needs integer weights"
        return None

    def knobs_from(self, given):
        """Return settings of this strategy from an instance of ``knobs`` or a mapping of names to values; None stays None.

        Raises
        ------
        StrategyError
            It has no settings, not one of that name, or those given are another strategy's.
        """
        if given is None or (self.knobs is not None and isinstance(given, self.knobs)):
            return given
        if self.knobs is None:
            raise StrategyError(f"strategy {self.name!r} has no knobs; leave them out")
        names = [field.name for field in fields(self.knobs)]
        if not isinstance(given, Mapping):
            raise StrategyError(
                f"strategy {self.name!r} takes knobs of type {self.knobs.__name__}, not {type(given).__name__}"
            )
        unknown = [name for name in given if name not in names]
        if unknown:
            raise StrategyError(
                f"strategy {self.name!r} has no knob {arguments.shown(unknown[0])}; it has {', '.join(names)}"
            )
        for field in fields(self.knobs):
            if field.name in given:
                _check_type(f"knob {field.name} of {self.name}", given[field.name], type(field.default))
        return self.knobs(**given)


def _check_type(name: str, value, kind: type) -> None:
    """Raise InputError unless a value has the type of a knob's default; its range is for the knobs themselves to check."""
    if kind is bool:
        if not isinstance(value, bool):
            raise InputError(f"{name} must be true or false, not {arguments.shown(value)}")
    elif kind is int:
        arguments.whole(name, value, least=None)
    elif kind is float:
        arguments.real(name, value)
    elif kind is str:
        arguments.text(name, value)


_PATH_DEGREE = 2.01  # the largest of paths and cycles
_LATTICE_DEGREE, _LATTICE_SKEW = 6, 6  # the mean of a triangulation; larger degrees, by the mean, make short ways


class Shape(NamedTuple):
    """What the choice of a way to answer many sources goes by.

    Attributes
    ----------
    n_vertices, n_edges : int
        Stored edges: an undirected edge counts twice.
    directed : bool
    depth : int
        Levels of the deepest search seen, 0 where there was none.
    index, weight : int
        Bytes per vertex number and per distance (0 without weights).
    reach, walked : float
        Shares of the vertices that a search from a random source reaches, and of the edges that it walks; means over the
        searches seen.
    most : float
        The largest such share of the edges.
    rounds : float
        Mean levels (BFS) or pile rounds (SSSP) of a search, 0 where there was none.
    skew : float
        Largest degree divided by the mean.
    spread : float
        Standard deviation of the weights divided by their mean.
    scatter : float
        Share of the edges whose ends are far apart by number.
    keep : {"all", "targets", "counts"}
        What is asked for of each search, as in ``Query``.
    """

    n_vertices: int
    n_edges: int
    directed: bool
    depth: int
    index: int
    weight: int
    reach: float = 1.0
    walked: float = 1.0
    most: float = 1.0
    rounds: float = 0.0
    skew: float = 1.0
    spread: float = 0.5
    scatter: float = 1.0
    keep: str = "all"

    @property
    def likely_depth(self) -> float:
        """Levels of the deepest search; where none was seen, those that graphs of such degrees have."""
        return self.depth or self.guessed_depth

    @property
    def guessed_depth(self) -> float:
        """Levels by the degrees alone: of paths, of a lattice where there are few edges and no hubs, else few."""
        degree = self.n_edges / max(self.n_vertices, 1)
        if degree * self.skew <= _PATH_DEGREE and not self.directed:
            return max(0.5 * self.n_vertices, 1.0)
        return self._sides if self._is_lattice else 12

    @property
    def stretch(self) -> float:
        """Rounds of a lattice that are more since uneven weights make ways round about the shorter ones."""
        is_path = self.guessed_depth > self._sides
        return self._sides * self.spread if self._is_lattice and not is_path else 0.0

    @property
    def unevenness(self) -> float:
        """How much longer an edge takes one block where few vertices have most edges, in units that are fitted."""
        return math.log2(max(self.skew, 1.0))

    @property
    def detours(self) -> float:
        """How often uneven weights make a search relax an edge again, about, in units that are fitted.

        It grows with the levels, since a path may be improved on each, and with the edges beyond those of a tree, without
        which there is one path only. Both powers are read off searches of lattices, meshes and roads with uneven weights.
        """
        beyond_tree = min(max(self.n_edges / (2 * max(self.n_vertices, 1)) - 1, 0.0), 2.0)
        return self.spread * beyond_tree * self.likely_rounds**0.75 / (1 + self.unevenness / 2)

    @property
    def _is_lattice(self) -> bool:
        return self.n_edges <= _LATTICE_DEGREE * self.n_vertices and self.skew <= _LATTICE_SKEW

    @property
    def _sides(self) -> float:
        return 1.4 * self.n_vertices**0.5

    @property
    def likely_rounds(self) -> float:
        """Mean levels of a search."""
        return self.rounds or self.likely_depth

    def frontier(self, n_sources: int) -> float:
        """Share of the vertices that the frontiers of several searches have on one level, about."""
        return min(1.0, n_sources * self.reach / max(self.likely_rounds, 1.0))

    def together(self, n_sources: int) -> float:
        """Share of the edges that any of several searches walks."""
        return 1 - (1 - min(self.walked, 1.0)) ** n_sources


def sources_per_worker(n_sources: int, at_once: int) -> float:
    """How often all workers that take sources one by one have had one; the last turn may be a part of one."""
    return max(1.0, n_sources / at_once)


def slowdown(per_processor: int, n_sources: int, processors: int) -> float:
    """How much longer a block takes beside others on its multiprocessor.

    Blocks mostly wait for loads, and one works while another waits: four on a multiprocessor take twice as long as one, by
    the sweep of docs/regret.md.
    """
    return min(per_processor, -(-n_sources // processors)) ** 0.5


@dataclass(frozen=True, kw_only=True)
class MultiSourceStrategy(Strategy):
    """One way to answer several sources at once.

    Attributes
    ----------
    plan : callable
        ``plan(graph, query, group)`` returns ``traverse(sources)``, which gives a ``MultiSourceOutcome`` for up to ``group``
        vertex numbers.
    memory : callable
        ``memory(shape, query, group)``: bytes that it allocates beside the graph, results of a group included.
    group_size : callable
        ``group_size(n_sources)``: how many sources it takes at once if memory allows.
    terms : callable
        ``terms(shape, n_sources, group, machine)``: how much there is of each term of its cost (see ``costs``) for all
        sources, in groups of ``group``, as a dict. Of those that fit the cheapest is taken.
    repeats : bool
        Whether it is a strategy for one source, run again and again.
    reverses : bool
        Whether it builds the reverse of a directed graph, which its ``memory`` and ``terms`` then count.
    """

    plan: PrepareMany
    memory: Callable
    group_size: Callable[[int], int]
    terms: Callable[[Shape, int, int, object], dict[str, float]]
    repeats: bool = False
    reverses: bool = False

    @classmethod
    def of(cls, module: MultiSourceModule, **fields: Any) -> MultiSourceStrategy:
        """Return the strategy that a module implements by ``plan``, ``memory``, ``group_size`` and ``terms``."""
        return cls(plan=module.plan, memory=module.memory, group_size=module.group_size, terms=module.terms, **fields)


def in_use(strategy: Strategy, rows: Sequence[Strategy], sums, algorithm: str) -> Strategy:
    """Return the strategy that runs in place of the one chosen: another one where sums are int64."""
    if ALGORITHMS[algorithm].counts_hops or sums.dtype.kind == "f":
        return strategy
    return next(row for row in rows if row.sums == "int64" and row.device == strategy.device)


def pick(rows: Sequence[Strategy], name: str, graph: Graph) -> Strategy:
    """Return the row of that name for the graph's device, or for ``"auto"`` the first default that fits.

    Raises
    ------
    StrategyError
        No such name for the device (the names that fit are listed), or the row cannot take this graph.
    """
    name = arguments.text("strategy", name, "a name that strategies() lists", StrategyError)
    here = [row for row in rows if row.device == graph.device]
    fitting = [row.name for row in here if row.unsupported_reason(graph) is None]
    if name == "auto":
        for row in here:
            if row.default and row.unsupported_reason(graph) is None:
                return row
        raise StrategyError(f"no strategy fits: {here[0].unsupported_reason(graph)}")
    for row in here:
        if name == row.name or name in row.also:
            if row.unsupported_reason(graph):
                raise StrategyError(
                    f"strategy {name!r} {row.unsupported_reason(graph)}"
                    + (f"; these can: {', '.join(fitting)}" if fitting else "")
                )
            return row
    raise StrategyError(f"no strategy {name!r} on device {graph.device!r}; these fit: {', '.join(['auto', *fitting])}")
