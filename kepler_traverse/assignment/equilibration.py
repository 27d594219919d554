"""Equilibrium by shifting flow between paths: gradient projection.

Each iteration finds the shortest path of each pair at the costs of the current flows. That proves
the gap of the flows, and gives the paths that are missing. Then flow is shifted to the cheapest
known path of each pair, one pair after another, and the costs of the links follow at once. Shifting
is repeated while it pays, since it is cheaper than the search.

Searches share costs, and run on all threads. Shifts run on one, in the order of the pairs. So the
flows have the same bits on any number of threads.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..cpu import threads
from ..errors import CertificateError
from . import path_flows
from .all_or_nothing import SearchProver
from .checkpoints import or_new_folder
from .path_flows import NO_PATH, Paths
from .problem import Bound, Problem
from .trees import NO_LINK

# The first paths are loaded in this many steps, each at the costs of what is loaded so far.
_STEPS = 24
# A path is new if it is cheaper by this part of the relative gap: less would not lower the gap.
_WORTH = 0.2
# Shifting ends when the excess that it meets is this part of the gap between total and shortest.
_SHIFTED = 0.05
_MAX_SHIFTS = 20
# The error by rounding that the sum of the flows of a pair may have, as a part of its volume.
_FEASIBLE = 1e-9
# Arrays are copied without forgotten paths when paths in use have less than this part of all links.
_MAX_DEAD = 0.5


class PathEquilibration:
    """A solver that keeps the flow of each path, and shifts flow between the paths of a pair.

    A group is a class and an origin, with its pairs. A path that lost all of its flow is forgotten:
    it is in no list any more, but its entries stay in the arrays until these are copied.

    Attributes
    ----------
    problem : Problem
    prover : SearchProver
        Proves distances for ``Equilibrium.certify``.
    class_flow : float64 array of shape (n_classes, n_links)
        Vehicles of each class on each link, by the last ``measure``.
    loads : Loads
        Flows of all classes together, costs and slopes of the links.

    ``_paths``: the known paths; its arrays may be larger than needed. ``_n_paths`` and ``_n_links``
    say how many paths and links of paths they hold, forgotten ones included. ``_relative_gap``: of
    the last ``measure``. ``_trees`` (n_groups, n_vertices) int32: the last shortest path tree of
    each group, with which its next search begins. ``_distance`` (n_pairs,): at the costs of the
    last search. ``_new_length`` (n_pairs,) int32: number of links of the new path that a search
    found for each pair, 0 without one. ``_mark`` (n_links,) int64: scratch, in which a shift marks
    the links of its two paths by the number ``_stamp`` or the next one; stamps ascend, so nothing
    is cleared. ``_rest`` (n_classes, n_links): scratch, what sums of flows have rounded away.
    """

    name = "paths"

    def __init__(self, problem: Problem) -> None:
        """Allocate arrays without a path and without flow; ``begin`` or ``restore`` fills them."""
        self.problem = problem
        self.prover = SearchProver(problem)
        demand = problem.demand
        shape = (len(problem.classes), problem.network.n_links)
        self._paths = Paths(
            head=np.full(demand.volume.size, NO_PATH, np.int32),
            next=np.empty(0, np.int32),
            begin=np.empty(0, np.int64),
            length=np.empty(0, np.int32),
            flow=np.empty(0),
            links=np.empty(0, np.int32),
        )
        self._n_paths = 0
        self._n_links = 0
        self._relative_gap = 0.0
        self._trees = np.full((demand.origin.size, problem.network.n_vertices), NO_LINK, np.int32)
        self._distance = np.zeros(demand.volume.size)
        self._new_length = np.zeros(demand.volume.size, np.int32)
        self._scratches = problem.scratches()
        self._mark = np.zeros(problem.network.n_links, np.int64)
        self._stamp = 1
        self._rest = np.zeros(shape)
        self.class_flow = np.zeros(shape)
        self.loads = problem.loads_at(np.zeros(problem.network.n_links))

    def begin(self) -> None:
        """Find the first path of each pair, and load all trips: in several steps, each of a part of
        the groups on the shortest paths at the costs of what is loaded so far.
        """
        demand = self.problem.demand
        n_groups = demand.origin.size
        n_steps = min(_STEPS, n_groups)
        volumes = np.add.reduceat(demand.volume, demand.first_pair[:-1])  # of each group
        flow = np.zeros(self.problem.network.n_links)  # of all classes together
        for step in range(n_steps):
            groups = np.arange(step, n_groups, n_steps)  # each group is in one step
            self._search(groups)
            # Put the volumes of these groups on the paths that were found, and add them to ``flow``.
            path_flows.load_new_pairs(groups, demand, self._paths, flow, self.problem.per_vehicle)
            # The volume of this step's groups and of those before.
            loaded = volumes[np.arange(n_groups) % n_steps <= step].sum()
            # Costs are those of the flow so far, scaled up towards all trips. The full ratio would
            # be too much, since the part that is loaded is on fewer links. Of the powers 0, 0.5,
            # 0.8 and 1 of the ratio, 0.5 left least to shift.
            self.loads = self.problem.loads_at(flow * np.sqrt(volumes.sum() / loaded))

    def measure(self) -> Bound:
        """Return the proved bound of the current flows.

        Flows of links are added up from those of the paths, and shortest paths are searched at
        their costs. Those that are cheaper than the known paths are added, without flow.
        """
        path_flows.add_up(self.problem.demand, self._paths, self.class_flow, self._rest)
        self.loads = self.problem.loads_at(self.problem.common_flow(self.class_flow))
        self._search(np.arange(self.problem.demand.origin.size))
        bound = self.problem.bound(self.class_flow, self.loads.cost, self._distance)
        self._relative_gap = bound.relative_gap
        return bound

    def improve(self, bound: Bound) -> None:
        """Shift flow to the cheapest known path of each pair, and repeat this until little is left
        to gain with the known paths. Forget paths without flow.

        ``bound`` is that of the last ``measure``.
        """
        demand = self.problem.demand
        groups = np.arange(demand.origin.size)
        costs = self.problem.arrays_at(self.loads.flow)  # as functions of the flow
        for _ in range(_MAX_SHIFTS):
            # ``excess`` is what the flows, as the shifts met them, cost more than on the cheapest
            # known path of their pairs. It is compared with ``bound.total - bound.shortest``: what
            # the flows cost more, at the last ``measure``, than on the shortest of all paths.
            excess, self._stamp = path_flows.shift_flows(
                groups, demand, self._paths, self.loads, costs, self._mark, self._stamp
            )
            # For a function of the user's, shifts used its tangents at the flows before. These hold
            # near those flows only, so the function is evaluated again.
            if self.problem.is_linearized:
                self.loads = self.problem.loads_at(self.loads.flow)
                costs = self.problem.arrays_at(self.loads.flow)
            if excess < _SHIFTED * (bound.total - bound.shortest):
                break

        # Make the arrays smaller once most of their links are of forgotten paths. The numbers are
        # those of the paths that are not forgotten, and of their links.
        n_paths, n_links = path_flows.count_live(self._paths)
        if n_links < _MAX_DEAD * self._n_links:
            self._paths = self._compact(n_paths, n_links)

    def _search(self, groups: np.ndarray) -> None:
        """Find the distances of the pairs of the groups with these numbers, at the costs of
        ``loads``. Append to ``_paths`` each shortest path that is cheaper than the known paths of
        its pair. InputError if a pair has no path.
        """
        demand = self.problem.demand
        links = self.problem.network.links
        # Written are the tree of each group, and for each of its pairs the distance and the number
        # of links of its new path, 0 without one. A new path saves the given part of the cost.
        threads.run(
            path_flows.search_groups,
            groups.size,
            groups,
            path_flows.Searches(demand, links, self.loads.cost),
            (self._paths, _WORTH * self._relative_gap),
            (self._trees, self._distance, self._new_length),
            own=[self._scratches],  # one of them for each thread
        )
        # Pairs of groups that were not searched yet have distance 0, which counts as reached.
        self.problem.require_reached(self._distance)

        # Make room for the new paths, and append them.
        n_paths = self._n_paths + int(np.count_nonzero(self._new_length))
        n_links = self._n_links + int(self._new_length.sum())
        self._paths = self._paths._replace(
            next=_grown(self._paths.next, n_paths),
            begin=_grown(self._paths.begin, n_paths),
            length=_grown(self._paths.length, n_paths),
            flow=_grown(self._paths.flow, n_paths),
            links=_grown(self._paths.links, n_links),
        )
        path_flows.add_paths(
            groups,
            demand,
            links,
            self._trees,
            self._new_length,
            self._paths,
            (self._n_paths, self._n_links),
        )
        # The next search may be of other groups, and must not find the lengths of these.
        self._new_length[:] = 0
        self._n_paths = n_paths
        self._n_links = n_links

    def _compact(self, n_paths: int, n_links: int) -> Paths:
        """Return a copy of the paths that are not forgotten, in the order of their pairs.

        ``n_paths`` is the number of these paths, and ``n_links`` that of their links.
        """
        compact = Paths(
            head=np.empty_like(self._paths.head),
            next=np.empty(n_paths, np.int32),
            begin=np.empty(n_paths, np.int64),
            length=np.empty(n_paths, np.int32),
            flow=np.empty(n_paths),
            links=np.empty(n_links, np.int32),
        )
        path_flows.copy_live(self._paths, compact)
        self._n_paths = n_paths
        self._n_links = n_links
        return compact

    def state(self) -> dict[str, np.ndarray]:
        """Return the arrays, by name, from which ``restore`` of the same problem goes on with the
        same bits: copies of the fields of ``Paths`` without unused room, and ``relative_gap``, of
        shape ().
        """
        per_path = {
            name: getattr(self._paths, name)[: self._n_paths].copy()
            for name in ("next", "begin", "length", "flow")
        }
        return {
            "head": self._paths.head.copy(),
            **per_path,
            "links": self._paths.links[: self._n_links].copy(),
            "relative_gap": np.array(self._relative_gap),
        }

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from a state that ``state`` returned; CertificateError unless its paths lead from
        the origins to the destinations of all pairs and carry their volumes.
        """
        # The arrays of a state have no room beyond what is in use.
        self._paths = Paths(**{name: state[name] for name in Paths._fields})
        self._n_paths = self._paths.flow.size
        self._n_links = self._paths.links.size
        self._relative_gap = float(state["relative_gap"])
        self._check_paths()

    def _check_paths(self) -> None:
        """Raise CertificateError unless the paths, which were read from a file, lead from the
        origins to the destinations of all pairs and carry their volumes.

        Compiled code does not check its indices, so all positions are checked before it runs.
        """
        paths = self._paths
        n_pairs = self.problem.demand.volume.size
        per_path = (paths.next, paths.begin, paths.length)
        are_positions = (
            paths.head.size == n_pairs
            and all(array.size == self._n_paths for array in per_path)
            and _is_within(paths.head, NO_PATH, self._n_paths)
            and _is_within(paths.next, NO_PATH, self._n_paths)
            and _is_within(paths.begin, 0, self._n_links + 1)
            and _is_within(paths.length, 0, self._n_links + 1)
            and _is_within(paths.begin + paths.length, 0, self._n_links + 1)
            and _is_within(paths.links, 0, self.problem.network.n_links)
        )
        if not are_positions:
            raise CertificateError(
                f"the state of the paths is damaged; {or_new_folder('remove its file')}"
            )
        links = self.problem.network.links
        pair = path_flows.find_wrong_pair(self.problem.demand, links, paths, _FEASIBLE)
        if pair != NO_PATH:
            raise CertificateError(
                f"the paths of pair {pair} do not carry its volume from origin to destination; "
                f"{or_new_folder('remove the file of the state')}"
            )

    def flows_using(self, is_selected: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the flows of the paths that use a selected link, (n_classes, n_links), and the
        volume of these paths per pair, (n_pairs,).

        ``is_selected`` (n_links,) bool: True for a selected link.
        """
        flow = np.zeros_like(self.class_flow)
        volume = np.zeros(self.problem.demand.volume.size)
        path_flows.flows_using(is_selected, self.problem.demand, self._paths, flow, volume)
        return flow, volume


def _is_within(values: np.ndarray, least: int, end: int) -> bool:
    """Return whether all integers of an array are at least ``least`` and below ``end``."""
    return values.size == 0 or (int(values.min()) >= least and int(values.max()) < end)


def _grown(array: np.ndarray, size: int) -> np.ndarray:
    """Return ``array`` if it has ``size`` elements or more, else a larger array that begins with
    its elements and ends with zeros.
    """
    if array.size >= size:
        return array
    # At least half as many again, so that few of the appends copy the array.
    grown = np.zeros(max(size, array.size + array.size // 2), array.dtype)
    grown[: array.size] = array
    return grown
