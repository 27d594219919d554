"""What an assignment solves, and the bound of how far some flows are from its solution."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..cpu import threads
from ..errors import InputError
from . import link_costs
from .cost_functions import CostFunction
from .link_costs import CostArrays, sum_products
from .network import Network, Trips, VehicleClass
from .path_flows import Demand, Loads
from .trees import Scratch, new_scratch

_UNIT = 2.0**-53  # the largest relative error of one operation in float64
_OTHER_ROUNDING = 1024  # rounded operations per flow and cost, besides the sums along a path


class Bound(NamedTuple):
    """How far flows are from equilibrium, proved.

    The objective (the sum of the integrals of the link costs) is convex. So it exceeds its least
    value by at most ``total - shortest``.

    Attributes
    ----------
    total : float
        The cost of all trips on the paths that they use, each vehicle weighted by the units of
        flow that it adds.
    shortest : float
        The same sum if all trips used shortest paths at the same costs of the links.
    relative_gap : float
        ``(total - shortest) / total``, plus an upper bound of the error by rounding; 0 if no trip
        costs anything.
    """

    total: float
    shortest: float
    relative_gap: float


class Problem:
    """Links, trips and costs of an assignment.

    Arrays over links are in the order of ``network.links``, not in that of the rows of the table.

    Attributes
    ----------
    network : Network
        The links.
    trips : Trips
        The pairs of origin and destination with their volumes.
    classes : sequence of VehicleClass
        Class k has index k in all arrays over classes.
    cost : BPR, Conical or CostFunction
        What a link costs at a flow, for all classes alike.
    fixed : float64 array of shape (n_classes, n_links)
        The part of the costs that no flow changes, such as tolls, in units of time.
    has_fixed : bool array of shape (n_classes,)
        Whether a class has such a part that is not 0 everywhere.
    per_vehicle : float64 array of shape (n_classes,)
        The units of flow that a vehicle of each class adds to a link.

    ``_arrays`` are the costs as functions of the flow, for compiled code. Those of a
    ``CostFunction`` are its tangents at the flow of the last call of ``arrays_at``.
    """

    def __init__(
        self,
        network: Network,
        trips: Trips,
        classes: Sequence[VehicleClass],
        cost: Any,
    ) -> None:
        """Compute the fixed costs, and check the cost: InputError for a number that is wrong."""
        self.network = network
        self.trips = trips
        self.classes = classes
        self.cost = cost
        # Classes and costs return values by row of the table; here they are by link.
        self.fixed = network.by_link(
            np.stack([each.fixed_costs(network.table) for each in classes])
        )
        self.has_fixed = self.fixed.any(axis=1)
        self.per_vehicle = np.array([each.passenger_cars for each in classes], np.float64)
        if isinstance(cost, CostFunction):
            # ``check`` evaluates flows up to 4 times its first argument. So the largest one is the
            # volume of all trips, as if all used one link.
            cost.check(max(trips.volume, 1.0) / 4, network.n_links)  # 1 if there are no trips
            self._arrays = self._linear(np.zeros(network.n_links))
        else:
            # the costs as functions of the flow, ``CostArrays``, by row of the table
            rows = cost.arrays(network.table)
            self._arrays = CostArrays(*(network.by_link(each) for each in rows))

    @property
    def demand(self) -> Demand:
        """The pairs of the trips, by class and origin."""
        return self.trips.demand

    @property
    def is_linearized(self) -> bool:
        """Whether the cost is a Python function of the user's, of which compiled code has only the
        tangents at some flows.
        """
        return isinstance(self.cost, CostFunction)

    @property
    def rounding(self) -> float:
        """The largest error of a relative gap by rounding.

        A distance is a sum of at most ``n_vertices - 1`` costs, and each addition rounds once.
        """
        return (self.network.n_vertices + _OTHER_ROUNDING) * _UNIT

    def require_gap(self, gap: float) -> None:
        """Raise InputError for a relative gap, as a user asks for it, that float64 cannot prove on
        this network.
        """
        if not math.isfinite(gap):
            raise InputError(f"gap must be finite, not {gap}")
        if gap <= self.rounding:
            raise InputError(
                f"gap={gap:g} cannot be proved: rounding may hide {self.rounding:.1e} "
                "on a network of this size; ask for a larger gap"
            )

    def arrays_at(self, flow: np.ndarray) -> CostArrays:
        """Return the costs as functions of the flow, for compiled code.

        Those of BPR and conical costs hold at any flow. Those of a function of the user's are its
        tangents at ``flow`` (n_links,), so they hold near this flow only. ``take_costs`` returns
        the same arrays from then on.
        """
        if self.is_linearized:
            self._arrays = self._linear(flow)
        return self._arrays

    def _linear(self, flow: np.ndarray) -> CostArrays:
        """Return the tangents of a function of the user's at the flows of the links, (n_links,), as
        ``CostArrays`` of the kind LINEAR.
        """
        by_row = self.network.by_row(flow)  # the function takes flows in the order of the table
        value = self.cost.values(by_row)
        slope = self.cost.slopes(by_row, value)
        n = flow.size
        return CostArrays(
            kind=np.full(n, link_costs.LINEAR, np.uint8),
            free=self.network.by_link(value - slope * by_row),  # the tangent at flow 0
            scale=self.network.by_link(slope),
            power=np.zeros(n),
            capacity=np.ones(n),
        )

    def times(self, flow: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the cost of each link that all classes share (without ``fixed``), and its
        derivative by the flow; both float64 of shape (n_links,).

        ``flow`` (n_links,) is that of all classes together.
        """
        time = np.empty(flow.size)
        slope = np.empty(flow.size)
        n_blocks = link_costs.count_blocks(flow.size)
        threads.run(link_costs.evaluate, n_blocks, flow, self.arrays_at(flow), time, slope)
        if self.is_linearized:  # the values of the function itself: those of a tangent are rounded
            time = self.network.by_link(self.cost.values(self.network.by_row(flow)))
        return time, slope

    def derivatives(
        self, links: np.ndarray, costs: CostArrays, step: link_costs.Step
    ) -> tuple[float, float]:
        """Return the first and the second derivative of the objective by the size of a step, at the
        flows after the step.

        The objective here is the sum of the integrals of the costs that all classes share. For a
        function of the user's the function itself is called, else compiled code reads ``costs``.

        Parameters
        ----------
        links : int64 array of shape (n,)
            The links of the step. All others carry nothing, and add 0 to both derivatives.
        costs : CostArrays
            What ``take_costs`` returned for these links; not read for a function of the user's.
        step : Step
            The flows of these links before the step, their change over the whole way, and the
            part of the way that the step goes.
        """
        # A function of the user's takes the flows of all rows, so those of other links are 0.
        if self.is_linearized:
            of_all = np.zeros(self.network.n_links)
            of_all[links] = np.maximum(step.flow + step.size * step.change, 0.0)
            time, slope = (each[links] for each in self.times(of_all))
            return sum_products(time, step.change), sum_products(step.change * slope, step.change)
        # Each block of links writes its part of the first and of the second derivative.
        n_blocks = link_costs.count_blocks(links.size)
        sums = np.empty((n_blocks, 2))
        threads.run(link_costs.add_up_change, n_blocks, step, costs, sums)
        # ``sum_products`` adds in order and compensates for rounding. With factors 1 it is a sum.
        ones = np.ones(n_blocks)
        return sum_products(sums[:, 0], ones), sum_products(sums[:, 1], ones)

    def take_costs(self, links: np.ndarray) -> CostArrays:
        """Return the costs of some links, in the order of ``links``, for ``derivatives``. Those of
        a function of the user's are of all links, and are not read.
        """
        if self.is_linearized:  # ``derivatives`` calls the function, and does not read the arrays
            return self._arrays
        return self._arrays.at(links)

    def common_flow(self, class_flow: np.ndarray) -> np.ndarray:
        """Return the flow of all classes together, (n_links,), in units of flow.

        ``class_flow`` (n_classes, n_links) are vehicles. Classes are added in their order, so that
        rounding is the same in each call.
        """
        flow = self.per_vehicle[0] * class_flow[0]
        for weight, of_class in zip(self.per_vehicle[1:], class_flow[1:], strict=True):
            flow += weight * of_class
        return flow

    def loads_at(self, flow: np.ndarray) -> Loads:
        """Return costs and slopes of the links at a flow of all classes together, (n_links,).

        InputError if a cost is beyond float64.
        """
        time, slope = self.times(flow)
        loads = Loads(
            flow=flow,
            cost=time + self.fixed,
            fixed=self.fixed,
            slope=slope,
            per_vehicle=self.per_vehicle,
        )
        if not np.isfinite(loads.cost.max()):  # NaN is the largest number for NumPy
            self._refuse_costs(loads)
        return loads

    def loads_again(self, class_flow: np.ndarray, loads: Loads) -> Loads:
        """Return the loads at the flows ``class_flow`` (n_classes, n_links), from ``loads`` at
        earlier flows. InputError if a cost is beyond float64.

        BPR and conical costs are computed only where a flow has changed. They are written to the
        arrays of ``loads``, which is returned. Costs of a user's function are in new arrays.
        """
        if self.is_linearized:
            return self.loads_at(self.common_flow(class_flow))
        # per block of links: whether all of its costs are finite
        is_finite = np.empty(link_costs.count_blocks(loads.flow.size), np.bool_)
        threads.run(
            link_costs.evaluate_again, is_finite.size, class_flow, self._arrays, loads, is_finite
        )
        if not is_finite.all():
            self._refuse_costs(loads)
        return loads

    def _refuse_costs(self, loads: Loads) -> None:
        """Raise InputError about the first link whose cost is not finite; ``loads`` has one."""
        link = np.flatnonzero(~np.isfinite(loads.cost).all(axis=0))[0]
        raise InputError(
            f"links, row {self.network.row[link]}: the cost at flow {loads.flow[link]:g} is beyond "
            "float64; choose a smaller power or factor, a larger capacity, or other units"
        )

    def bound(self, class_flow: np.ndarray, cost: np.ndarray, distance: np.ndarray) -> Bound:
        """Return the bound of flows of shape (n_classes, n_links).

        ``cost``, of the same shape, are the costs at these flows, and ``distance`` (n_pairs,) the
        certified distances of the pairs at these costs. InputError if a sum is beyond float64.
        """
        total = 0.0
        shortest = 0.0
        # Groups of pairs are sorted by class. ``first`` has the first group of each class, and the
        # number of groups; ``pairs`` the first pair of each class, and the number of pairs.
        first = np.searchsorted(self.demand.user_class, np.arange(len(self.classes) + 1))
        pairs = self.demand.first_pair[first]
        for k, weight in enumerate(self.per_vehicle):
            own = slice(pairs[k], pairs[k + 1])  # the pairs of class k
            total += float(weight * sum_products(class_flow[k], cost[k]))
            shortest += float(weight * sum_products(self.demand.volume[own], distance[own]))
        if not (np.isfinite(total) and np.isfinite(shortest)):
            raise InputError(
                "what all trips cost together is beyond float64; choose other units of volume or time"
            )
        if total <= 0:  # nothing costs anything, so that no path is better than another
            return Bound(total, shortest, 0.0)
        # Rounding may make ``shortest`` a little larger than ``total``; the gap is then 0.
        relative = max(total - shortest, 0.0) / total + self.rounding
        return Bound(total, shortest, relative)

    def objective(self, class_flow: np.ndarray) -> float | None:
        """Return the objective at flows of shape (n_classes, n_links): the sum over the links of
        the integral of the cost from flow 0, and of the fixed costs of all vehicles.

        None if the cost is a function of the user's that was given without its integral.
        """
        flow = self.common_flow(class_flow)
        if self.is_linearized:
            integrals = self.cost.integrals(self.network.by_row(flow))
            if integrals is None:
                return None
            total = sum_products(integrals, np.ones(integrals.size))
        else:
            total = link_costs.sum_integrals(flow, self._arrays)
        for k, weight in enumerate(self.per_vehicle):
            total += weight * sum_products(class_flow[k], self.fixed[k])
        return float(total)

    def scratches(self) -> list[Scratch]:
        """Return one ``Scratch`` per thread, for searches over all links."""
        n_links = self.network.n_links
        return [new_scratch(self.network.n_vertices, n_links) for _ in range(threads.count())]

    def require_reached(self, distance: np.ndarray) -> None:
        """Raise InputError if a pair has no path: if its ``distance`` (n_pairs,) is infinite."""
        missing = np.flatnonzero(np.isinf(distance))
        if not missing.size:
            return
        # The message names the ends of the first such pair. Its origin is that of its group. Ids are
        # looked up by rank, the order of the ids.
        pair = missing[0]
        group = int(np.searchsorted(self.demand.first_pair, pair, side="right")) - 1
        numbers = np.array([self.demand.origin[group], self.demand.destination[pair]])
        origin, destination = self.network.ids.at(self.network.rank[numbers]).tolist()
        raise InputError(
            f"trips: no path leads from {origin!r} to {destination!r} "
            f"({missing.size:,} such pairs); drop them, or open closed vertices"
        )

    def fingerprint(self, method: str) -> str:
        """Return the SHA-256, in hexadecimal, of all that the flows depend on: ``method`` (a text
        that names the method and its options), links, trips and costs.

        A checkpoint file of another problem is recognized by it.
        """
        digest = hashlib.sha256(f"assignment 1 {method}".encode())
        # The code of a user's function cannot be hashed. It enters by its values where each link
        # carries all trips, and by its tangents at flow 0.
        flow = np.full(self.network.n_links, self.trips.volume)
        arrays = (
            *self.network.links,
            self.network.row,
            *self.demand,
            self.fixed,
            self.per_vehicle,
            self.times(flow)[0],
            *self.arrays_at(np.zeros_like(flow)),
        )
        for each in arrays:
            digest.update(f"{each.dtype} {each.shape}".encode())
            digest.update(np.ascontiguousarray(each).data)
        return digest.hexdigest()
