"""The candidates of a plan for many sources: strategies whose groups fit into memory, with the
sizes of their groups and their estimated seconds.
"""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from ..auto.calibration import get_machine
from ..auto.choice import Choice
from ..auto.costs import load_costs
from ..errors import CapacityError
from ..hierarchy.estimate import Estimate, build_seconds
from ..hierarchy.lookup import looks_up
from ..runtime.memory import available_memory
from ..search.exact import Sums
from ..search.query import Query
from ..search.strategy import MultiSourceStrategy, Shape, strategy_for_dtype
from .one_at_a_time import ONE_AT_A_TIME
from .workload import Shapes, Strategies, Usable, Workload, check_n_sources, query_for

# distances, or paths, that a group looks up in a hierarchy, whose memory does not grow with the
# group
_LOOKUPS = 1 << 10
# distances that hub labels answer in a group: on a GPU enough that all of its warps have several
_ANSWERS = {"cpu": 1 << 17, "cuda": 1 << 22}
_SHARE_OF_MEMORY = 0.8  # of the free memory, that a plan may take
# sources; for fewer on a GPU no hierarchy pays, and the estimate would calibrate the CPU
_MIN_SOURCES_ON_GPU = 4096


class Candidate(NamedTuple):
    """A strategy that a plan may choose, with its estimate."""

    name: str  # of the strategy
    group: int  # sources that it searches together
    nbytes: int  # of a group, in addition to the graph
    seconds: float  # estimated, of all the sources that are asked for


class Fitting(NamedTuple):
    """A strategy with its largest group that fits into memory."""

    strategy: MultiSourceStrategy
    group: int  # sources that it searches together, in the type of sums that a plan begins with
    nbytes: int  # of a group, in addition to the graph; in the type of sums that needs most
    # sizes of groups by the type of sums: the planned one, and each that they may need later. Empty
    # for hops.
    group_in: dict[np.dtype, int]


class Capacity(NamedTuple):
    """The memory that a plan may take, and the sums that its bytes depend on."""

    most: int | None  # bytes in addition to the graph; None for a share of what is free
    sums: Sums  # the type of sums, and those that it may be widened to


class Candidates:
    """The strategies whose groups fit into memory, with estimates of their time.

    Attributes
    ----------
    fitting : dict of str to Fitting
        Maps names to strategies, in the order in which these were tried.
    left_out : dict of str to str
        Maps strategies that ``auto`` could not choose among to the reason.
    """

    def __init__(
        self,
        work: Workload,
        shapes: Shapes,
        fitting: dict[str, Fitting],
        left_out: dict[str, str],
    ) -> None:
        """Keep what ``fit`` has found for the searches of ``work``; ``shapes`` say how far these
        go.
        """
        self.fitting = fitting
        self.left_out = left_out
        self._work = work
        self._shapes = shapes

    def __len__(self) -> int:
        """Return the number of strategies that fit."""
        return len(self.fitting)

    @property
    def groups(self) -> dict[str, int]:
        """The sizes of groups by name."""
        return {name: fitting.group for name, fitting in self.fitting.items()}

    def compare(self, n_sources: int) -> list[Candidate]:
        """Return the candidates with estimates for ``n_sources`` sources, fastest first. If only
        one strategy fits, return an empty list, as an estimate would be of no use and may calibrate
        the machine.
        """
        if len(self.fitting) == 1:
            return []
        return self.ranked(n_sources)

    def make_choice(self) -> Choice:
        """Return the object that chooses the strategy of each group, by estimates and by the times
        that are measured meanwhile.
        """
        return Choice({name: partial(self.estimate, name) for name in self.fitting}, self.groups)

    def estimate(self, name: str, n_sources: int) -> float:
        """Return the estimated seconds of the candidate ``name`` for ``n_sources`` sources."""
        candidate = self.fitting[name]
        strategy = candidate.strategy
        shape = self._shapes.of(strategy)
        return _estimate_seconds(self._work, strategy, shape, candidate.group, n_sources)

    def ranked(self, n_sources: int) -> list[Candidate]:
        """Return the candidates with estimates for ``n_sources`` sources, fastest first."""
        n_sources = check_n_sources(n_sources)
        candidates = [
            Candidate(name, fitting.group, fitting.nbytes, self.estimate(name, n_sources))
            for name, fitting in self.fitting.items()
        ]
        return sorted(candidates, key=attrgetter("seconds"))

    def estimate_hierarchy(self, strategies: Strategies, rounded: bool) -> Estimate | None:
        """Estimate how long building a hierarchy would take, and how long searches take with and
        without it; None where none is likely to pay.

        ``strategies`` are those of the algorithm, of which one searches over a hierarchy.
        ``rounded``: as if the weights were rounded to integers, which a hierarchy needs.
        """
        # The strategy that would search over the hierarchy; None if there is one already, or if
        # none can be built.
        sweep = _find_sweep(self._work, strategies, rounded)
        if sweep is None or not self._has_small_hierarchy:
            return None

        # Seconds per source, for so many sources that what a group takes once hardly counts.
        n_sources = max(self._work.n_searches, 1000)
        search_seconds = self.ranked(n_sources)[0].seconds / n_sources  # of the fastest candidate
        shape = self._shapes.at_nearest
        group = sweep.group_size(n_sources)
        sweep_seconds = _estimate_seconds(self._work, sweep, shape, group, n_sources) / n_sources

        graph = self._work.graph
        # The host builds the hierarchy. ``step``: its seconds per simple operation.
        host = get_machine("cpu")
        build = build_seconds(
            graph.n_vertices, graph.n_edges, graph.directed, host.cores, host.step
        )
        return Estimate(build, sweep_seconds, search_seconds, sweep.metric)  # "hops" or "weights"

    @property
    def _has_small_hierarchy(self) -> bool:
        """Whether the graph is likely to have a small hierarchy: it is like a lattice, and its
        vertex numbers have 32 bits.
        """
        has_narrow_numbers = self._work.graph.targets.dtype.itemsize <= 4
        return has_narrow_numbers and self._shapes.at_nearest.is_lattice_like


def fit(
    work: Workload, strategies: Strategies, usable: Usable, shapes: Shapes, capacity: Capacity
) -> Candidates:
    """Return the usable strategies that fit into memory, each with its largest group.

    ``shapes`` say how large the searches are, by which memory is estimated, and ``capacity`` how
    much memory there is.

    Raises CapacityError: none fits. The error is that of the first strategy.
    """
    fitting = {}
    left_out = {}
    errors = []
    for strategy in usable.strategies:
        try:
            fitting[strategy.name] = _fit_strategy(
                work, strategies, strategy, shapes.of(strategy), capacity
            )
        except CapacityError as error:
            errors.append(error)
            left_out[strategy.name] = str(error).partition(";")[0]  # without what to do
    if not fitting:
        try:
            raise errors[0]
        finally:
            errors.clear()  # an error that its own frame names keeps the callers' frames alive
    return Candidates(work, shapes, fitting, left_out)


def list_unsupported(work: Workload, strategies: Strategies) -> dict[str, str]:
    """Return the names of the default strategies that cannot run on the graph, each with the
    reason.
    """
    reasons = {
        each.name: each.unsupported_reason(work.graph) for each in strategies.defaults(work.graph)
    }
    return {name: reason for name, reason in reasons.items() if reason is not None}


def _fit_strategy(
    work: Workload,
    strategies: Strategies,
    strategy: MultiSourceStrategy,
    shape: Shape,
    capacity: Capacity,
) -> Fitting:
    """Return a strategy with its largest group that fits, in the type of sums that a plan begins
    with, and in each wider type that sums may need later.

    So a plan keeps to its memory if the type widens. ``strategies`` has the strategy for int64
    sums, and ``shape`` says how large the searches are.

    Raises CapacityError: there is too little memory for one of the float types.
    """
    group, nbytes = _largest_group(strategy, shape, work.query, work.n_searches, capacity.most)
    if work.counts_hops:
        return Fitting(strategy, group, nbytes, {})

    group_in = {capacity.sums.dtype: group}
    # Each wider type, a dtype, that sums of the longest paths may need.
    for kind in capacity.sums.wider_types:
        # For floats the same strategy, for int64 the one that adds int64. ``Shape.weight`` is the
        # bytes of a distance, by which memory is estimated.
        strategy_in_kind = strategy_for_dtype(strategy, strategies.many, kind)
        shape_in_kind = shape._replace(weight=kind.itemsize)
        # The weights are there once more, in the wider type, and so are those of the reverse.
        weights = kind.itemsize * work.graph.n_edges * (1 + work.graph.directed)
        try:
            group_in_kind, needed = _largest_group(
                strategy_in_kind, shape_in_kind, work.query, group, capacity.most, weights
            )
            nbytes = max(nbytes, needed)
        except CapacityError:
            if kind.kind == "f":
                raise
            group_in_kind = 1  # sums in int64 are computed in host memory, and hardly ever needed
        group_in[kind] = group_in_kind
    return Fitting(strategy, group, nbytes, group_in)


def _largest_group(
    strategy: MultiSourceStrategy,
    shape: Shape,
    query: Query,
    n_sources: int,
    most: int | None,
    beside: int = 0,
) -> tuple[int, int]:
    """Return the size of the largest group of ``n_sources`` sources or fewer that fits into memory,
    and its bytes.

    The bytes include ``beside``, further bytes that are needed at the same time. ``most`` are the
    bytes that all of it may take, or None for a share of what is free.

    Raises CapacityError: not even the smallest group fits. The message states the bytes needed and
    the bytes free.
    """
    if most is None:
        most = int(available_memory(strategy.device) * _SHARE_OF_MEMORY)
    for group in _list_sizes(strategy, shape, query, n_sources):
        needed = strategy.memory(shape, query_for(strategy, query), group) + beside
        if needed <= most:
            return group, needed
    raise CapacityError(
        f"strategy {strategy.name!r} needs {needed / 2**20:,.1f} MiB in addition to the graph for "
        f"{group} sources at once, and {most / 2**20:,.1f} MiB are free; take a larger machine, a "
        f"result that holds less (summary, targets), or strategy={ONE_AT_A_TIME!r}"
    )


def _answers_by_labels(strategy: MultiSourceStrategy, shape: Shape) -> bool:
    """Return whether hub labels of the graph answer the query: lists of distances per vertex, from
    which a strategy that needs a hierarchy takes distances without a search.

    It then takes groups of any size.
    """
    return shape.is_summed_by_labels and "hierarchy" in strategy.needs


def _list_sizes(
    strategy: MultiSourceStrategy, shape: Shape, query: Query, n_sources: int
) -> list[int]:
    """Return the sizes that groups of ``n_sources`` sources or fewer may have for a strategy,
    largest first.
    """
    # Labels answer groups of any size. As many distances as ``_ANSWERS`` are enough for one.
    if _answers_by_labels(strategy, shape):
        by_answers = int(_ANSWERS[strategy.device] / max(shape.per_source, 1))
        largest = max(1, min(n_sources, by_answers))
        return [largest >> halvings for halvings in range(largest.bit_length())]

    # Sizes are halved, as far as the strategy has groups of such sizes.
    sizes = {
        strategy.group_size(n_sources >> halvings) for halvings in range(n_sources.bit_length())
    }
    # A group that is looked up in a hierarchy from pair to pair has one size, as its memory does not
    # grow with the group. ``looks_up`` says that the query's targets are few enough for that.
    if "hierarchy" in strategy.needs and strategy.finds_paths and looks_up(query, shape.n_vertices):
        # The group of a sweep, or more sources if their lookups still are no more than _LOOKUPS.
        by_lookups = int(_LOOKUPS / max(query.targets_per_source, 1))
        return [max(*sizes, min(n_sources, by_lookups))]
    return sorted(sizes, reverse=True)


def _estimate_seconds(
    work: Workload, strategy: MultiSourceStrategy, shape: Shape, group: int, n_sources: int
) -> float:
    """Return the estimated seconds of a strategy for ``n_sources`` sources.

    ``group`` is the number of sources that memory admits in a group, and ``shape`` says how large
    the searches are.
    """
    # Fewer sources than memory admits make a smaller group.
    device = work.graph.device
    if not _answers_by_labels(strategy, shape):
        group = min(group, strategy.group_size(max(n_sources, 1)))
    # A strategy that finds no paths returns all distances and predecessors in their place.
    if shape.keep == "paths" and not strategy.finds_paths:
        shape = shape._replace(keep="all")
    # Fitted seconds per unit of work, times the amounts that ``strategy.terms`` returns.
    return load_costs(device).seconds(
        work.algorithm, strategy, shape, n_sources, group, get_machine(device)
    )


def _find_sweep(
    work: Workload, strategies: Strategies, rounded: bool
) -> MultiSourceStrategy | None:
    """Return the strategy that would search over a hierarchy which the graph does not have yet;
    None if there is one already or none can be built, or on a GPU if there are too few sources for
    it to pay.

    All sweeps of an algorithm search over the hierarchy of one metric, so that the first one stands
    for them. ``rounded``: as if the weights were rounded to integers, of which a hierarchy can be built.
    """
    graph = work.graph
    sweeps = [
        each
        for each in strategies.many
        if "hierarchy" in each.needs and each.device == graph.device
    ]
    if not sweeps or graph.derived.known_hierarchy(sweeps[0].metric) is not None:
        return None

    # A hierarchy of weights takes non-negative integers.
    is_of_integers = rounded or graph.integer_weights
    has_lengths = is_of_integers and not graph.has_negative_weights
    if sweeps[0].metric == "weights" and not has_lengths:
        return None
    if graph.device == "cuda" and work.n_searches < _MIN_SOURCES_ON_GPU:
        return None
    return sweeps[0]
