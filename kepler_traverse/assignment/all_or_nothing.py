"""All-or-nothing flows: all trips on the shortest paths at one set of costs, with proved distances.

There are two ways. Searches find a tree per origin at costs in float64. Sweeps go over a hierarchy
(see ``hierarchy.customizable``: arcs between vertices that stand for links or for two other arcs)
whose arcs get new weights in each iteration. Costs are rounded down to whole numbers of a unit, a
power of two, so that distances are exact sums and no larger than those of the costs. A path over
arcs may pass a vertex twice if the links between cost nothing; so such links count in bits below
the unit. Which way is taken depends on the network and the trips alone.

A group is a class of vehicles and an origin, with its pairs. A block is some groups that a thread
works on together. A share is some blocks whose volumes are added up in an array of their own.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from .._arrays import make_offsets
from ..cpu import threads
from ..cpu.components import strong_components
from ..errors import CertificateError
from ..hierarchy.customizable import (
    MAX_SUM,
    UNREACHED,
    Customizable,
    customize,
    equal_shares,
    find_shorter,
    find_subtrees,
    hand_down,
    lists_above,
    make_customizable,
    mark_sides,
    new_arcs,
    part_above,
)
from . import link_costs, searched_loads, swept_loads
from .link_costs import Extent, measure_extent, round_down, scale_sums, take
from .path_flows import Demand, Searches
from .problem import Problem
from .trees import NO_LINK

_MAX_BLOCKS = 32  # of groups, for searches; each block has an array of flows of its own
_MAX_SHARES = 16  # of groups, for sweeps; each share has an array of volumes of its own
_MAX_SHIFT = 1074  # the unit is 2 ** -shift, and 2 ** -1074 is the smallest float64 above 0
# A usual cost is at most this many times the mean. At most one of this many costs is not usual.
_USUAL = 16.0
_HUGE = 2.0**900  # sums of larger costs might be beyond float64
_FAR_BELOW = 128  # such costs are divided by 2 to this power
FAULT = "the distances of an assignment are not proved; report this fault of the library"


class Loaded(NamedTuple):
    """The result of an all-or-nothing assignment; all arrays are float64. The next call of the same
    loader may overwrite them.

    ``distance`` (n_pairs,): the least cost of each pair, infinite without a path. ``flow``
    (n_classes, n_links): the vehicles of each class on each link. ``selected_flow`` (n_classes,
    n_links) and ``selected_volume`` (n_pairs,): the same flows, and the volume of each pair, of
    those paths alone that use a selected link; both None where no link is selected.
    """

    distance: np.ndarray
    flow: np.ndarray
    selected_flow: np.ndarray | None = None
    selected_volume: np.ndarray | None = None


class Prover(Protocol):
    """An algorithm that computes proved shortest distances of all pairs of an assignment."""

    name: str  # "searches" or "hierarchy"
    device: str  # "cpu" or "cuda", which computes the distances

    def prove(self, cost: np.ndarray) -> np.ndarray:
        """Return the distance of each pair, float64 of shape (n_pairs,), at costs of shape
        (n_classes, n_links). The proof compares distances with the costs of the links, and trusts
        no hierarchy. Distances are infinite without a path.
        """
        ...


class Loader(Prover, Protocol):
    """An algorithm that puts all trips on their shortest paths (all-or-nothing flows)."""

    def load(self, cost: np.ndarray) -> Loaded:
        """Return distances, flows and selected flows at costs of shape (n_classes, n_links). The
        next call may overwrite the arrays. Distances are infinite without a path.
        """
        ...


class SearchProver:
    """Distances by a search per group (a class and an origin), each from nothing."""

    name = "searches"
    device = "cpu"

    def __init__(self, problem: Problem) -> None:
        """``problem`` has the links and the pairs."""
        self._problem = problem

    def prove(self, cost: np.ndarray) -> np.ndarray:
        """Return the distance of each pair, (n_pairs,), at costs of shape (n_classes, n_links);
        infinite without a path.

        The search of each group proves its distances itself: it ends with a pass over all links
        that finds none by which a vertex is nearer (``trees.find_tree``).
        """
        # No values to sum up, so of the results only the distances.
        return sum_along(self._problem, self._problem.demand, cost, ())[0]


class SearchLoader(SearchProver):
    """All-or-nothing flows by a search per group, which begins with the tree of the last call.

    ``is_selected`` (n_links,) bool: the links of select link; None without. ``_trees`` (n_groups,
    n_vertices) int32: per group the link by which its shortest path tree enters each vertex, or
    ``NO_LINK``. ``_first_group`` (n_blocks + 1,): the first group of each block, and the number of
    groups. ``_scratches``: the working memory of each thread.
    """

    def __init__(self, problem: Problem, is_selected: np.ndarray | None) -> None:
        """Allocate a tree per group, and divide the groups into blocks."""
        super().__init__(problem)
        n_groups = problem.demand.origin.size
        n_blocks = min(_MAX_BLOCKS, n_groups)
        self._is_selected = is_selected
        self._trees = np.full((n_groups, problem.network.n_vertices), NO_LINK, np.int32)
        self._first_group = np.arange(n_blocks + 1) * n_groups // n_blocks
        self._scratches = problem.scratches()

    def load(self, cost: np.ndarray) -> Loaded:
        """Return distances, flows and selected flows at costs of shape (n_classes, n_links). The
        last two fields of the result are None if no link is selected.

        The arrays are new in each call. The trees are kept for the next call.
        """
        demand = self._problem.demand
        n_blocks = self._first_group.size - 1
        has_selected = self._is_selected is not None
        # Each block has flows of its own, (n_blocks, n_classes, n_links). They are added in the
        # order of the blocks, so that the sums do not depend on which thread was first. Arrays of
        # size 0 tell compiled code that no link is selected.
        flow = np.zeros((n_blocks, *cost.shape))
        selected_flow = np.zeros((n_blocks if has_selected else 0, *cost.shape))
        selected_volume = np.zeros(demand.volume.size if has_selected else 0)
        distance = np.empty(demand.volume.size)
        threads.run(
            searched_loads.load_blocks,
            n_blocks,
            (self._first_group, self._trees),
            Searches(demand, self._problem.network.links, cost),
            self._is_selected if has_selected else np.zeros(0, np.bool_),
            (distance, flow, selected_flow, selected_volume),
            own=[self._scratches],  # one of them for each thread
        )
        if not has_selected:
            return Loaded(distance, _sum_rows(flow))
        return Loaded(distance, _sum_rows(flow), _sum_rows(selected_flow), selected_volume)


def sum_along(
    problem: Problem, demand: Demand, cost: np.ndarray, values: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the distance of each pair of ``demand``, and sums of values of the links along its
    canonical path, which is the same whatever tree a search began with.

    ``cost`` has shape (n_classes, n_links), and each array of ``values`` (n_links,). The distances
    have shape (n_pairs,), and the sums (number of values, n_pairs), both float64. Without a path
    the distance is infinite, and the sums are NaN. The distances are proved: a search ends only
    after a pass over all links in which no link makes a vertex nearer.
    """
    network = problem.network
    # ``reshape`` gives the shape (0, n_links) where there are no values.
    rows = np.array(values, np.float64).reshape(-1, network.n_links)
    distance = np.empty(demand.volume.size)
    sums = np.empty((rows.shape[0], demand.volume.size))
    scratches = problem.scratches()
    trees = np.empty((len(scratches), network.n_vertices), np.int32)
    threads.run(
        searched_loads.sum_along,
        demand.origin.size,
        Searches(demand, network.links, cost),
        rows,
        (distance, sums),
        own=[list(zip(trees, scratches, strict=True))],  # a tree and a scratch for each thread
    )
    return distance, sums


class WholeCosts(NamedTuple):
    """Costs of links as whole numbers, whose sums are exact.

    The whole number of a cost is ``floor(cost * 2 ** shift) * 2 ** n_bits``, plus 1 for a link on a
    cycle of links whose whole cost is 0. So among paths of the same whole cost, one with fewer such
    links is shorter, and no shortest path goes around a cycle.

    Attributes
    ----------
    costs : int64 array of shape (n_links,)
        The whole numbers; ``UNREACHED`` for a link that is left out.
    shift : int
        Costs are rounded down to multiples of ``2 ** -shift``.
    n_bits : int
        Number of the lowest bits of each number, which count links and are no part of the cost.
    leaves_out : bool
        Whether a link is left out since it costs far more than others.
    """

    costs: np.ndarray
    shift: int
    n_bits: int
    leaves_out: bool

    def write_distances(self, sums: np.ndarray, distances: np.ndarray) -> bool:
        """Convert ``sums`` (int64) of whole numbers along shortest paths to distances in the unit
        of the costs, and write them to ``distances`` (float64); infinite where there is no path.
        Return whether each sum belongs to a path.
        """
        return scale_sums(sums, (self.n_bits, self.shift), UNREACHED, distances)


def whole_costs(
    cost: np.ndarray, tails: np.ndarray, heads: np.ndarray, memory: np.ndarray | None = None
) -> Iterator[WholeCosts]:
    """Yield the costs of one class as whole numbers, first without the links that cost far more
    than others, then with more and more of these. The last ``WholeCosts`` leave out no link.

    The costs that are not left out add up to less than ``MAX_SUM``, 2 ** 58, so that sums over a
    hierarchy fit int64. A caller takes the next ``WholeCosts`` only if a pair has no path without
    the links that are left out.

    The unit of the whole numbers is proportional to the sum of all costs that count. If one link
    cost more than all others together, the unit would be so large that the others lost digits. Such
    a link is on no shortest path between two vertices that the others join: a path uses no link
    twice, so one over the others costs at most their sum. Hence links may be left out of which each
    costs more than the sum of all that are not, unless a pair has no path without them. Here each
    costs more than twice that sum, so that rounding cannot change the comparison. Where a pair does
    need such a link, its path costs as much as the link. Then the cost of all trips, which the gap
    is relative to, is large as well, and the lost digits do not matter.

    Parameters
    ----------
    cost : float64 array of shape (n_links,)
        At least 0.
    tails, heads : integer arrays of shape (n_links,)
        The vertices that the links leave and enter.
    memory : int64 array of shape (n_links,), optional
        Receives the numbers of each ``WholeCosts``, so that the next ones overwrite the last. By
        default each has an array of its own.
    """
    # ``scaled`` is ``cost`` divided by 2 ** ``down``.
    scaled = cost
    down = 0
    extent = measure_extent(cost, math.inf)
    if extent.largest > _HUGE:  # no sum may be beyond float64
        down = _FAR_BELOW
        scaled = np.ldexp(cost, -down)
        extent = measure_extent(scaled, math.inf)
    # Links that cost more than ``limit`` are left out; ``total`` is the sum of the others.
    limit, total = _usual(scaled, extent)
    leaves_out = True
    while leaves_out:
        # A link may be left out only if it costs more than twice the sum of all that are not. A
        # higher limit lets more links in, and so the sum grows, until both agree.
        while 2.0 * total > limit:
            limit = 2.0 * total
            total = measure_extent(scaled, limit).total
        leaves_out = extent.largest > limit
        # With this shift the sum of the whole numbers is below half of ``MAX_SUM``. The upper half
        # is for the counts of links in the lowest bits. ``frexp`` gives an exponent e such that
        # ``total`` is below 2 ** e. ``MAX_SUM`` is 2 ** 58, for which ``frexp`` gives 59. So the 2
        # that is subtracted makes 57 of it, the exponent of half of ``MAX_SUM``.
        shift = math.frexp(float(MAX_SUM))[1] - 2 - math.frexp(total)[1]
        if memory is None:
            costs = np.empty(cost.size, np.int64)
        else:
            costs = memory
        rounded = _round_down(scaled, limit, shift, (tails, heads), costs)
        yield rounded._replace(shift=rounded.shift - down, leaves_out=leaves_out)
        # The next costs have the cheapest of the links that were left out.
        if leaves_out:
            limit = float(scaled[scaled > limit].min())
            total = measure_extent(scaled, limit).total


def _round_down(
    cost: np.ndarray,
    limit: float,
    most_shift: int,
    ends: tuple[np.ndarray, np.ndarray],
    costs: np.ndarray,
) -> WholeCosts:
    """Return costs up to ``limit`` as whole numbers of a unit; those above it are ``UNREACHED``.

    The unit is ``2 ** -most_shift``. If links lie on cycles of cost 0, it is larger by the number
    of the lowest bits, which count such links. ``ends`` are the tails and heads of the links.
    ``costs``, int64 of shape (n_links,), receives the numbers. ``leaves_out`` of the result is
    always False: the caller sets it.
    """
    # Bits for the counts make the unit larger. A larger unit rounds more costs down to 0, so that
    # more links may lie on cycles, which may need more bits: repeat until the bits suffice. Two
    # results: without a link of cost 0 no bits are needed; else the numbers are shifted by n_bits.
    n_bits = 0
    while True:
        shift = min(most_shift - n_bits, _MAX_SHIFT)
        n_free = round_down(cost, limit, shift, UNREACHED, costs)
        if not n_free:
            return WholeCosts(costs, shift, n_bits, False)
        # A shortest path enters each vertex at most once, so it counts at most ``n_passed``.
        n_passed, is_on_cycle = _find_free_cycles(costs, *ends)
        needed = n_passed.bit_length()
        if needed <= n_bits:
            break
        n_bits = needed
    if n_bits:
        costs[costs < UNREACHED] <<= n_bits
        costs += is_on_cycle
    return WholeCosts(costs, shift, n_bits, False)


def _usual(cost: np.ndarray, extent: Extent) -> tuple[float, float]:
    """Return a limit that few costs exceed, and the sum of the costs up to it.

    The limit is about ``_USUAL`` times the mean of the costs up to it, and at most one of
    ``_USUAL`` costs exceeds it. It is infinite if no cost is unusual in this sense. ``extent`` is
    that of all costs.
    """
    # Each limit leaves out the largest costs, which lowers the mean and so the next limit, until a
    # limit would fall by less than half, or leave out too many.
    limit = math.inf
    total = extent.total
    while True:
        lower = _USUAL * total / cost.size
        if lower >= limit / 2:
            return limit, total
        below = measure_extent(cost, lower)
        if below.n_above * _USUAL > cost.size:
            return limit, total
        limit = lower
        total = below.total


def _find_free_cycles(
    costs: np.ndarray, tails: np.ndarray, heads: np.ndarray
) -> tuple[int, np.ndarray]:
    """Return how many vertices lie on cycles of links of cost 0, and a bool array of shape
    (n_links,): whether each link is on such a cycle.

    ``costs`` (n_links,) are whole numbers, and ``tails`` and ``heads`` the ends of the links.
    """
    is_on_cycle = np.zeros(costs.size, np.bool_)
    # The links of cost 0, sorted by tail, are a graph in compressed rows.
    free = np.flatnonzero(costs == 0)
    free = free[np.argsort(tails[free], kind="stable")]
    n_vertices = int(max(tails.max(), heads.max())) + 1
    offsets = make_offsets(np.bincount(tails[free], minlength=n_vertices))
    # A link of cost 0 is on a cycle of these if both ends are in one strong component.
    label = strong_components(offsets, heads[free])
    is_on_cycle[free] = label[tails[free]] == label[heads[free]]
    return np.unique(heads[is_on_cycle]).size, is_on_cycle


class Ground(NamedTuple):
    """A hierarchy for any costs of a network, and the parts of it that the trips need.

    No path may lead through a closed vertex. So it is represented by two vertices: links enter the
    vertex itself, and leave a copy, whose number follows those of all vertices.
    """

    customizable: Customizable  # the hierarchy of vertices and copies
    # tails, heads: int32 (n_links,): the ranks in the hierarchy of the ends of each link; the tail
    # of a link that leaves a closed vertex is that of the copy
    tails: np.ndarray
    heads: np.ndarray
    # the parts of the hierarchy above the origins and above the destinations, with the places of
    # origins and destinations in them
    searches: swept_loads.Ground

    @classmethod
    def of(cls, problem: Problem, most_triangles: int) -> Ground | None:
        """Return the hierarchy of a problem; None if it would have more than ``most_triangles``
        triangles (two arcs of a vertex, and the arc that joins their heads), since searches then
        take less time.
        """
        links = problem.network.links
        n = problem.network.n_vertices
        closed = np.flatnonzero(links.is_closed)
        # The number of each vertex where paths begin: of a closed one that of its copy. No path
        # leads through either of the two (``is_end``).
        begin = np.arange(n, dtype=np.int32)
        begin[closed] = n + np.arange(closed.size)
        is_end = np.append(links.is_closed, np.ones(closed.size, np.bool_))
        customizable = make_customizable(
            n + closed.size, begin[links.tails], links.heads, is_end, most_triangles
        )
        if customizable is None:
            return None
        rank = customizable.rank
        demand = problem.demand
        # ``origins``: the distinct ranks of the origins, ascending. ``start``: for each group the
        # position of its origin in them.
        origins, start = np.unique(rank[begin[demand.origin]], return_inverse=True)
        ends = rank[demand.destination]
        rise = part_above(customizable.topology, origins)
        fall = part_above(customizable.topology, ends)
        # One list per distinct origin: the positions in ``rise`` of all ranks above it.
        list_offsets, lists = lists_above(rise, rise.numbers_at(origins))
        searches = swept_loads.Ground(
            rise=rise,
            fall=fall,
            meets=_numbers_in(fall.ranks, rise.ranks),  # where each rank of ``rise`` is in ``fall``
            start=start.astype(np.int32),
            list_offsets=list_offsets,
            lists=lists,
            end=fall.numbers_at(ends),
        )
        return cls(customizable, rank[begin[links.tails]], rank[links.heads], searches)

    def with_all_ranks(self) -> swept_loads.Ground:
        """Return ``searches`` with the whole hierarchy in place of the part above the destinations.

        Sweeps over it find the distances of all vertices, which a proof by the links needs.
        """
        searches = self.searches
        topology = self.customizable.topology
        # In a part of all ranks the number of a rank is the rank itself. So ``meets`` is the ranks
        # of ``rise``, and ``end`` the ranks of the destinations.
        fall = part_above(topology, np.arange(topology.offsets.size - 1))
        ends = searches.fall.ranks[searches.end]
        return searches._replace(fall=fall, meets=searches.rise.ranks, end=ends)


def _numbers_in(ranks: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the position in ``ranks``, which ascend, of each rank of ``wanted``, or -1 if
    ``ranks`` lacks it; int32 of the shape of ``wanted``.
    """
    # Positions; ``ranks.size`` for a rank above all, which the minimum below makes a valid index.
    at = np.searchsorted(ranks, wanted)
    is_there = ranks[np.minimum(at, ranks.size - 1)] == wanted
    return np.where(is_there, at, -1).astype(np.int32)


class HierarchyLoader(ABC):
    """All-or-nothing flows by sweeps over a hierarchy, whose weights are made anew from the costs.

    Subclasses for the CPU and the GPU implement ``_load_class`` and ``_prove_class``.

    ``is_selected`` (n_links,) bool: the links of select link; None without. ``_first_group``
    (n_classes + 1,): the first group of each class, and the number of groups. ``_costs`` (n_links,)
    int64: the costs of the class at work as whole numbers (``WholeCosts.costs``). ``_near``
    (n_pairs,) int64: distances in these numbers, ``UNREACHED`` or more without a path. ``_flow``
    (n_classes, n_links) and ``_distance`` (n_pairs,) float64: the results of the last call.
    """

    name = "hierarchy"
    device: str  # "cpu" or "cuda"

    def __init__(self, problem: Problem, ground: Ground, is_selected: np.ndarray | None) -> None:
        """Allocate the memory of all calls. ``ground`` is the hierarchy of the problem;
        ``is_selected`` is described at the class.
        """
        self._problem = problem
        self._ground = ground
        self._is_selected = is_selected
        class_of = problem.demand.user_class  # of each group; ascending
        self._first_group = np.searchsorted(class_of, np.arange(len(problem.classes) + 1))
        # Memory that all calls use. To allocate it anew in each call would take longer than to fill
        # it.
        n_pairs = problem.demand.volume.size
        self._costs = self._new_memory(problem.network.n_links, np.int64)
        self._near = self._new_memory(n_pairs, np.int64)
        self._flow = self._new_memory(problem.fixed.size, np.float64).reshape(problem.fixed.shape)
        self._distance = np.empty(n_pairs)

    def _new_memory(self, n: int, kind: type) -> np.ndarray:
        """Return an array of ``n`` numbers of a type, not set, that the device can write to."""
        return np.empty(n, kind)

    def load(self, cost: np.ndarray) -> Loaded:
        """Return distances, flows and selected flows at costs of shape (n_classes, n_links).

        Distances and flows are in the memory of this object, which the next call overwrites. The
        selected flows are in new arrays, or None if no link is selected.
        """
        if self._is_selected is None:
            result = Loaded(self._distance, self._flow)
        else:
            selected_volume = np.zeros(self._distance.size)
            result = Loaded(self._distance, self._flow, np.empty(cost.shape), selected_volume)
        self._find_distances(cost, lambda k, costs: self._load_class(k, costs, result))
        return result

    def prove(self, cost: np.ndarray) -> np.ndarray:
        """Return the distance of each pair, (n_pairs,), at costs of shape (n_classes, n_links),
        proved by the links alone; infinite without a path. The next call overwrites the array.
        """
        self._find_distances(cost, self._prove_class)
        return self._distance

    def _find_distances(self, cost: np.ndarray, find: Callable[[int, np.ndarray], None]) -> None:
        """Write the distances of all pairs to ``_distance``, at costs of shape (n_classes,
        n_links).

        ``find(k, costs)`` is called with the number of a class and its costs as whole numbers, and
        writes the distances of its pairs to ``_near``. The first costs leave out links that cost
        far more than others. ``find`` is called again with more links until each pair has a path or
        no link is left out.
        """
        tails = self._ground.tails
        heads = self._ground.heads
        for k in range(len(self._problem.classes)):
            pairs = self._pairs(k)
            for whole in whole_costs(cost[k], tails, heads, self._costs):
                find(k, whole.costs)
                is_reached = whole.write_distances(self._near[pairs], self._distance[pairs])
                if is_reached or not whole.leaves_out:
                    break

    @abstractmethod
    def _load_class(self, k: int, costs: np.ndarray, result: Loaded) -> None:
        """Write the flows of class ``k`` to ``result``, and the distances of its pairs to
        ``_near``, proved by the hierarchy.

        ``costs`` (n_links,) int64 are whole numbers (``WholeCosts.costs``). The selected flows of
        ``result`` are None if no link is selected. CertificateError if the proof fails.
        """

    @abstractmethod
    def _prove_class(self, k: int, costs: np.ndarray) -> None:
        """Write the distances of the pairs of class ``k`` to ``_near``, proved by the links.

        ``costs`` (n_links,) int64 are whole numbers. CertificateError if the proof fails.
        """

    def _n_blocks(self, k: int) -> int:
        """Return the number of blocks of ``WIDTH`` groups that class ``k`` has."""
        n_groups = int(self._first_group[k + 1] - self._first_group[k])
        return -(-n_groups // swept_loads.WIDTH)

    def _first_blocks(self, k: int, n_shares: int) -> np.ndarray:
        """Return the first block of each of ``n_shares`` equal shares of the blocks of class ``k``,
        and the number of blocks: an int64 array of shape (n_shares + 1,). A class without pairs has
        no share, so that the array has a 0 alone.
        """
        return np.arange(n_shares + 1) * self._n_blocks(k) // max(n_shares, 1)

    def _n_shares(self, k: int) -> int:
        """Return the number of shares of class ``k``; 0 for a class without pairs. Each share has
        an array of its own for the volumes on the arcs.

        The number does not depend on the threads. So the sums of volumes do not, either.
        """
        return min(_MAX_SHARES, self._n_blocks(k))

    def _pairs(self, k: int) -> slice:
        """Return the range of the pairs of class ``k`` in arrays over pairs."""
        first_pair = self._problem.demand.first_pair
        return slice(first_pair[self._first_group[k]], first_pair[self._first_group[k + 1]])


class SweepLoader(HierarchyLoader):
    """All-or-nothing flows by sweeps over a hierarchy on the CPU.

    ``_arcs``: the arcs of the hierarchy with their weights, made anew for each class.
    ``_first_rank`` (_MAX_SHARES + 1,): the first rank of each of the shares in which threads prove
    these weights. ``_subtrees``: the independent shares in which threads compute them.
    ``_scratches``: the working memory of each thread.
    """

    device = "cpu"

    def __init__(
        self, problem: Problem, ground: Ground, is_selected: np.ndarray | None = None
    ) -> None:
        """Allocate the weights and the memory of threads. ``is_selected`` (n_links,) bool: the
        links of select link; None without.
        """
        super().__init__(problem, ground, is_selected)
        topology = ground.customizable.topology
        self._arcs = new_arcs(topology)
        self._first_rank = equal_shares(topology, _MAX_SHARES)
        self._subtrees = find_subtrees(topology)
        self._scratches = [
            swept_loads.new_scratch(ground.searches, is_selected is not None)
            for _ in range(threads.count())
        ]

    def _load_class(self, k: int, costs: np.ndarray, result: Loaded) -> None:
        """Write the flows of class ``k`` to ``result``, and the distances of its pairs to
        ``_near``.

        There are three steps: weights of the arcs from ``costs`` (n_links,), whole numbers; volumes
        on the arcs; and these volumes handed to the links. CertificateError if the result of a step
        is not proved. The selected flows of ``result`` are None if no link is selected.
        """
        weights = self._weights_at(costs, self._ground.searches)
        # The arrays still hold the flows of the last call, and ``_hand_down`` adds to them.
        for each in (result.flow, result.selected_flow):
            if each is not None:
                each[k] = 0.0
        n_shares = self._n_shares(k)
        is_proved = np.zeros(n_shares, np.bool_)
        carried = self._new_carried(n_shares)
        # A volume of size 0 tells compiled code that no link is selected.
        if result.selected_volume is None:
            selected = np.zeros(0), self._new_carried(0)
        else:
            selected = result.selected_volume, self._new_carried(n_shares)
        threads.run(
            swept_loads.load_shares,
            n_shares,
            self._trips(k, n_shares),
            self._ground.searches,
            weights,
            (self._near, carried, is_proved, *selected),
            own=[self._scratches],  # one of them for each thread
        )
        is_right = bool(is_proved.all()) and self._proves_weights(costs)
        is_right &= self._hand_down(costs, carried, result.flow[k])
        if result.selected_flow is not None:
            is_right &= self._hand_down(costs, selected[1], result.selected_flow[k])
        if not is_right:
            raise CertificateError(FAULT)

    def _trips(self, k: int, n_items: int) -> swept_loads.Trips:
        """Return the trips of class ``k``, with its blocks divided into ``n_items`` items of work
        for threads.
        """
        groups = self._first_group[k : k + 2]
        return swept_loads.Trips(groups, self._first_blocks(k, n_items), self._problem.demand)

    def _weights_at(self, costs: np.ndarray, searches: swept_loads.Ground) -> swept_loads.Weights:
        """Set the weights of the hierarchy from ``costs`` (n_links,) int64, and return those of
        both parts of ``searches``, upward and downward.

        If links are selected, the result also marks the arcs that stand for a selected link; else
        its marks have size 0.
        """
        topology = self._ground.customizable.topology
        customize(costs, topology, self._subtrees, self._arcs)
        rise, fall = searches.sides()
        rise_marks = fall_marks = np.zeros(0, np.uint8)
        if self._is_selected is not None:
            marks = np.empty(self._arcs.weights.size, np.uint8)
            mark_sides(self._arcs, self._is_selected, marks)
            rise_marks = marks[rise]
            fall_marks = marks[fall]
        weights = self._arcs.weights
        return swept_loads.Weights(take(weights, rise), take(weights, fall), rise_marks, fall_marks)

    def _proves_weights(self, costs: np.ndarray) -> bool:
        """Return whether the weights of the arcs are proved: no link and no triangle (two arcs of a
        lower vertex) is shorter than the arc that stands for it.
        """
        # True at first, so that a share that no thread worked on would count as unproved.
        is_shorter = np.ones(_MAX_SHARES, np.bool_)
        threads.run(
            find_shorter,
            _MAX_SHARES,
            self._first_rank,
            costs,
            self._ground.customizable.topology,
            self._arcs.weights,
            is_shorter,
        )
        return not is_shorter.any()

    def _new_carried(self, n_shares: int) -> swept_loads.Carried:
        """Return arrays for the volumes on the arcs of both parts, all 0, with a row per share."""
        searches = self._ground.searches
        return swept_loads.Carried(
            np.zeros((n_shares, searches.rise.arcs.size)),
            np.zeros((n_shares, searches.fall.arcs.size)),
        )

    def _hand_down(self, costs: np.ndarray, carried: swept_loads.Carried, flow: np.ndarray) -> bool:
        """Add the volumes on the arcs, ``carried``, to ``flow`` (n_links,) of the links that the
        arcs stand for. Return whether these links cost as much as the arcs, at ``costs`` (n_links,)
        in whole numbers.
        """
        # by side, which is an arc in one direction: what it carries over all shares
        loads = np.zeros(self._arcs.weights.size)
        for sides, rows in zip(self._ground.searches.sides(), carried, strict=True):
            n_blocks = link_costs.count_blocks(sides.size)
            threads.run(swept_loads.add_up_shares, n_blocks, rows, sides, loads)
        topology = self._ground.customizable.topology
        return hand_down(costs, topology, self._subtrees, self._arcs, loads, flow)

    def _prove_class(self, k: int, costs: np.ndarray) -> None:
        """Write the distances of the pairs of class ``k`` to ``_near``; CertificateError if the
        links do not prove the distances of all vertices from each origin.

        ``costs`` (n_links,) int64 are whole numbers.
        """
        searches = self._ground.with_all_ranks()
        scratches = [swept_loads.new_scratch(searches, False) for _ in range(threads.count())]
        n_blocks = self._n_blocks(k)
        is_proved = np.zeros(n_blocks, np.bool_)
        threads.run(
            swept_loads.prove_distances,
            n_blocks,
            self._trips(k, n_blocks),
            (searches, self._weights_at(costs, searches)),
            (self._ground.tails, self._ground.heads, costs),
            (self._near, is_proved),
            own=[scratches],  # one of them for each thread
        )
        if not is_proved.all():
            raise CertificateError(FAULT)


def _sum_rows(rows: np.ndarray) -> np.ndarray:
    """Return the sum of ``rows`` over the first axis, the blocks, added in order, so that its bits
    are always the same. ``numpy.sum`` promises no order. Without blocks the sum is 0.
    """
    total = np.zeros(rows.shape[1:])
    for row in rows:
        total += row
    return total
