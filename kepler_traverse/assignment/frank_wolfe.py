"""Equilibrium by all-or-nothing flows: bi-conjugate Frank-Wolfe (Mitradjieva and Lindberg, 2013).

Each iteration puts all trips on the shortest paths at the costs of the current flows, and moves
towards a combination of these flows and the last two targets. Memory does not grow with the number
of paths. The gap falls slowly below 1e-4.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..errors import CertificateError
from .all_or_nothing import FAULT, HierarchyLoader, Loader
from .carried import Carried, Side, add_up_curvature, change_to
from .checkpoints import or_new_folder
from .link_costs import Step, sum_products, take
from .path_flows import Loads
from .problem import Bound, Problem

_MAX_CONJUGATE = 0.99  # the largest share that the last target may have in a new one
_STEPS = 60  # most iterations of the search for the length of a step


class _Move:
    """The choice of a target and of the length of the step towards it.

    A target is a set of flows that the next step goes towards: an array of the size of
    ``carried.places``, in which only links with a flow are kept (see ``Carried``). ``_costs`` are
    the costs of these links as functions of their flows, and ``_side`` their flows and slopes
    before the step.
    """

    def __init__(self, problem: Problem, loads: Loads, carried: Carried) -> None:
        """Take from ``loads``, those of all links at the current flows, what belongs to the links
        of ``carried``.
        """
        self._problem = problem
        self._carried = carried
        self._costs = problem.take_costs(carried.links)
        self._side = Side(
            flow=take(loads.flow, carried.links),
            slope=take(loads.slope, carried.links),
            per_vehicle=loads.per_vehicle,
        )

    def _by_class(self, flows: np.ndarray) -> np.ndarray:
        """Return the first part of an array of ``carried`` as flows of shape (n_classes,
        n_carried), without the selected flows and volumes that follow with select link.
        """
        shape = (self._side.per_vehicle.size, self._side.flow.size)
        return flows[: shape[0] * shape[1]].reshape(shape)

    def target(self, step: float) -> np.ndarray:
        """Return the target of the next step: a convex combination of the all-or-nothing flows and
        the last two targets, such that the new direction is conjugate to the last directions.

        Two directions are conjugate if their products over the links, times the slopes of the
        costs, add up to 0. There are three cases: without an earlier target, the result is the
        all-or-nothing flows (``carried.next``) alone; with one, it is conjugate to one direction;
        with two, to two. Where the formulas would divide by 0, it is ``carried.next``, too.
        ``step``: the length of the last step, from 0 to 1.

        The result has the size of ``carried.places``. The formulas are those of Mitradjieva and
        Lindberg (2013).
        """
        carried = self._carried
        if not carried.targets:  # the first step
            return carried.next
        last = self._by_class(carried.targets[0])
        # The target before ``last``; with one target alone, ``last`` again, whose sums are not
        # read.
        before = self._by_class(carried.targets[-1])
        # Products of two directions from the current flows: ``direction`` leads to the all-or-nothing
        # flows, ``last`` to the last target, and ``mixed`` to a point between the last two targets.
        # A ``difference`` is one direction less another: to the all-or-nothing flows less that to
        # the last target; next to ``mixed``, to the target before the last less that to the last.
        sums = add_up_curvature(self._by_class(carried.next), last, before, self._side, step)
        # With one earlier target: conjugate to the direction of the last step.
        if len(carried.targets) == 1:
            if sums.last_difference == 0.0:
                return carried.next
            # The part of the last target in the new one; the all-or-nothing flows have the rest.
            share = sums.last_direction / sums.last_difference
            share = min(max(share, 0.0), _MAX_CONJUGATE)
            return carried.combine((1.0 - share, share, 0.0), 1.0)
        # With two: conjugate to the directions of the last two steps. ``n`` is the weight of the
        # last target and ``m`` that of the target before it; the all-or-nothing flows have weight
        # 1. The sum of the weights divides the result. Weights below 0, which are replaced by 0,
        # would leave the convex combinations.
        if sums.mixed_difference == 0.0 or sums.last_last == 0.0 or step >= 1.0:
            return carried.next
        m = max(-sums.mixed_direction / sums.mixed_difference, 0.0)
        n = -sums.last_direction / sums.last_last + m * step / (1.0 - step)
        n = max(n, 0.0)
        return carried.combine((1.0, n, m), 1.0 + n + m)

    def step_towards(self, target: np.ndarray) -> float:
        """Return the part of the way to a target, from 0 to 1, at which the objective is least.

        The objective is convex. So its derivative along the way is 0 at that part, unless the
        objective is least at an end of the way. The root is found by steps of Newton within an
        interval, which is halved instead where such a step would leave it.
        """
        links = self._carried.links
        # How much more flow of all classes each link has at the target, and the part of the
        # derivative that comes from tolls and other fixed costs.
        change = change_to(self._by_class(target), self._side)
        fixed = self._fixed_change(target)

        def derivative(size: float) -> tuple[float, float]:
            """Return the first and the second derivative of the objective at ``size``, a part of
            the way from 0 to 1.
            """
            step = Step(self._side.flow, change, size)
            value, slope = self._problem.derivatives(links, self._costs, step)
            return value + fixed, slope

        low = 0.0
        high = 1.0
        if derivative(0.0)[0] >= 0.0:  # the objective does not fall at the start
            return 0.0
        if derivative(1.0)[0] <= 0.0:
            return 1.0
        step = 0.5
        for _ in range(_STEPS):
            value, slope = derivative(step)
            if value > 0.0:
                high = step
            else:
                low = step
            # Without a slope there is no step of Newton: ``low`` is no point inside, so halve.
            newton = step - value / slope if slope > 0.0 else low
            following = newton if low < newton < high else 0.5 * (low + high)
            if following == step:
                break
            step = following
        return step

    def _fixed_change(self, target: np.ndarray) -> float:
        """Return by how much the fixed parts of the costs, such as tolls, change the objective over
        the whole way to a target. It is linear, so this is also its derivative at each point of the
        way.
        """
        total = 0.0
        for k in np.flatnonzero(self._problem.has_fixed):
            fixed = take(self._problem.fixed[k], self._carried.links)
            change = self._by_class(target)[k] - self._by_class(self._carried.flows)[k]
            total += self._problem.per_vehicle[k] * sum_products(fixed, change)
        return total


class BiconjugateFrankWolfe:
    """A solver by all-or-nothing flows: the current flows, the last two targets, and the last step.

    Flows are one float64 array of one dimension, a state vector: first the flows of all classes,
    n_classes * n_links; with select link then as many flows of the paths that use a selected link,
    and the volume of these paths per pair, n_pairs. All are in one array since each step combines
    all of them by the same factors.

    Attributes
    ----------
    problem : Problem
    prover : Loader
        Computes all-or-nothing flows and proved distances.
    loads : Loads
        Costs and slopes of the links at the current flows.

    ``_shape`` is (n_classes, n_links). ``_flows``, ``_next`` and each of ``_targets`` are state
    vectors: the current flows, the all-or-nothing flows at their costs, and the last targets.
    ``_step`` is the length of the last step, from 0 to 1.
    """

    name = "frank_wolfe"

    def __init__(
        self, problem: Problem, loader: Loader, is_selected: np.ndarray | None = None
    ) -> None:
        """Allocate flows of 0. ``is_selected`` (n_links,) bool: the links of select link, None
        without; ``loader`` must have the same.
        """
        self.problem = problem
        self.prover = loader
        self._shape = (len(problem.classes), problem.network.n_links)
        n_flows = self._shape[0] * self._shape[1]
        n_selected = n_flows + problem.demand.volume.size if is_selected is not None else 0
        self._flows = np.zeros(n_flows + n_selected)
        self._targets: list[np.ndarray] = []  # at most two, the last target first
        self._step = 0.0
        # The all-or-nothing flows at the current costs, in memory of the loader; empty before the
        # first ``measure``.
        self._next = np.zeros(0)
        self.loads = problem.loads_at(np.zeros(problem.network.n_links))

    @property
    def class_flow(self) -> np.ndarray:
        """The current flows in vehicles, a view of shape (n_classes, n_links)."""
        return self._flows[: self._shape[0] * self._shape[1]].reshape(self._shape)

    def begin(self) -> None:
        """Set the current flows: all trips on the paths that are shortest without any flow."""
        following, _ = self._load()
        self._flows = following.copy()  # the loader writes the next flows to the same memory

    def measure(self) -> Bound:
        """Return the proved bound of the current flows, and find the all-or-nothing flows at their
        costs for ``improve``.
        """
        # Costs are computed anew only where a flow has changed.
        self.loads = self.problem.loads_again(self.class_flow, self.loads)
        self._next, distance = self._load()
        return self.problem.bound(self.class_flow, self.loads.cost, distance)

    def confirm(self, bound: Bound) -> None:
        """Raise CertificateError unless the links alone prove the bound.

        Distances of searches were compared with all links when they were found, so nothing is left
        to do. Distances of sweeps over a hierarchy were proved by the arcs of the hierarchy only.
        They are found again, from the same whole numbers as costs, so that right ones have the same
        bits.
        """
        if isinstance(self.prover, HierarchyLoader):
            distance = self.prover.prove(self.loads.cost)
            if self.problem.bound(self.class_flow, self.loads.cost, distance) != bound:
                raise CertificateError(FAULT)

    def _load(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the all-or-nothing flows at the current costs, as a state vector, and the distance
        of each pair, (n_pairs,). InputError if a pair has no path.
        """
        loaded = self.prover.load(self.loads.cost)
        self.problem.require_reached(loaded.distance)
        flows = loaded.flow.ravel()
        if loaded.selected_flow is not None and loaded.selected_volume is not None:
            flows = np.concatenate([flows, loaded.selected_flow.ravel(), loaded.selected_volume])
        return flows, loaded.distance

    def improve(self, bound: Bound) -> None:  # noqa: ARG002
        """Move the flows towards a new target, as far as the objective falls.

        ``bound`` is not used; other solvers take it.
        """
        # ``carried`` has the flows of those links alone that carry something in one of the arrays.
        # ``target`` combines the all-or-nothing flows with the last targets, and ``step`` is the
        # part of the way to it at which the objective is least.
        carried = Carried.of(self._flows, self._next, self._targets, self._shape)
        move = _Move(self.problem, self.loads, carried)
        target = move.target(self._step)
        step = move.step_towards(target)
        if step <= 0.0 and target is not carried.next:  # no descent: begin again with a plain step
            self._targets = []
            target = carried.next
            step = move.step_towards(target)
        # ``last``, of the size of ``_flows``, receives the target, and is 0 elsewhere.
        if len(self._targets) == 2:
            # The memory of the older target, which is dropped, receives the new one. ``move``
            # writes only to the places that ``carried`` keeps. These include each place at which
            # the older target is not 0, so nothing of it remains.
            last = self._targets.pop()
        else:
            last = np.zeros_like(self._flows)
        carried.move(target, step, self._flows, last)
        self._step = step
        # After a whole step the flows are the target: there is no direction to it any more.
        if step >= 1.0:
            self._targets = []
        else:
            self._targets = [last, *self._targets]

    def state(self) -> dict[str, np.ndarray]:
        """Return the arrays from which ``restore`` of another object goes on with the same bits:
        ``flows``, ``step`` and, as many as there are, ``target_0`` and ``target_1``.
        """
        targets = {f"target_{i}": each for i, each in enumerate(self._targets)}
        return {"flows": self._flows, "step": np.array(self._step), **targets}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from a state; CertificateError unless its flows have the size of this problem, and
        are finite and at least 0.
        """
        # A state has no target before the first step and after a whole one, but always flows, which
        # so are the first of ``given``.
        names = [name for name in ("flows", "target_0", "target_1") if name in state]
        given = [state[name] for name in names]
        if any(
            each.shape != self._flows.shape
            or each.dtype != self._flows.dtype
            or not ((each >= 0) & np.isfinite(each)).all()
            for each in given
        ):
            raise CertificateError(
                f"the state of the flows is damaged; {or_new_folder('remove its file')}"
            )
        self._flows, *self._targets = given
        self._step = float(state["step"])

    def flows_using(self, is_selected: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # noqa: ARG002
        """Return the flows of the paths that use a selected link, (n_classes, n_links), and the
        volume of these paths per pair, (n_pairs,).

        Both are views of the state vector. ``is_selected`` is not used: the links were given when
        the object was made. Without select link then, both would have no element.
        """
        n_flows = self._shape[0] * self._shape[1]
        flow = self._flows[n_flows : 2 * n_flows].reshape(self._shape)
        return flow, self._flows[2 * n_flows :]
