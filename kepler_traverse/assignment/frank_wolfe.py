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
from .link_costs import Step, sum_products, take
from .path_flows import Loads
from .problem import Bound, Problem

_MAX_CONJUGATE = 0.99  # of the last target in a conjugate one
_STEPS = 60  # of the search for the length of a step


class _Move:
    """The choice of a target and of the length of the step towards it.

    Targets are arrays of the size of ``carried.places``. ``_costs`` are the costs of the links of
    ``carried`` as functions of their flows, and ``_side`` their flows and slopes before the step.
    """

    def __init__(self, problem: Problem, loads: Loads, carried: Carried) -> None:
        self._problem = problem
        self._carried = carried
        self._costs = problem.take_costs(carried.links)
        self._side = Side(
            flow=take(loads.flow, carried.links),
            slope=take(loads.slope, carried.links),
            per_vehicle=loads.per_vehicle,
        )

    def _by_class(self, flows: np.ndarray) -> np.ndarray:
        """Return the flows on the links, of shape (n_classes, n_links), of an array of ``carried``;
        what select link has behind them is left out.
        """
        shape = (self._side.per_vehicle.size, self._side.flow.size)
        return flows[: shape[0] * shape[1]].reshape(shape)

    def target(self, step: float) -> np.ndarray:
        """Return the target: the all-or-nothing flows, made conjugate to the last directions.

        Two directions are conjugate if their products with the slopes of the costs add up to 0.
        Where the formulas would divide by 0, it is the all-or-nothing flows alone. ``step``: the
        length of the last step.
        """
        carried = self._carried
        if not carried.targets:
            return carried.next
        last = self._by_class(carried.targets[0])
        before = self._by_class(carried.targets[-1])
        sums = add_up_curvature(self._by_class(carried.next), last, before, self._side, step)
        if len(carried.targets) == 1:
            if sums.last_difference == 0.0:
                return carried.next
            share = sums.last_direction / sums.last_difference
            share = min(max(share, 0.0), _MAX_CONJUGATE)
            return carried.combine((1.0 - share, share, 0.0), 1.0)
        if sums.mixed_difference == 0.0 or sums.last_last == 0.0 or step >= 1.0:
            return carried.next
        m = max(-sums.mixed_direction / sums.mixed_difference, 0.0)
        n = -sums.last_direction / sums.last_last + m * step / (1.0 - step)
        n = max(n, 0.0)
        return carried.combine((1.0, n, m), 1.0 + n + m)

    def step_towards(self, target: np.ndarray) -> float:
        """Return the part of the way to a target, from 0 to 1, at which the objective is least.

        The objective is convex, so its derivative along the way is 0 there, unless it is least at
        an end. The steps are those of Newton, or halve the interval where these lead out of it.
        """
        links = self._carried.links
        change = change_to(self._by_class(target), self._side)
        fixed = self._fixed_change(target)

        def derivative(size: float) -> tuple[float, float]:
            step = Step(self._side.flow, change, size)
            value, slope = self._problem.derivatives(links, self._costs, step)
            return value + fixed, slope

        low = 0.0
        high = 1.0
        if derivative(0.0)[0] >= 0.0:
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
            newton = step - value / slope if slope > 0.0 else low
            following = newton if low < newton < high else 0.5 * (low + high)
            if following == step:
                break
            step = following
        return step

    def _fixed_change(self, target: np.ndarray) -> float:
        """Return what the whole way to a target adds to the objective by the fixed parts of the
        costs, such as tolls. The derivative along the way has it at each point.
        """
        total = 0.0
        for k in np.flatnonzero(self._problem.has_fixed):
            fixed = take(self._problem.fixed[k], self._carried.links)
            change = self._by_class(target)[k] - self._by_class(self._carried.flows)[k]
            total += self._problem.per_vehicle[k] * sum_products(fixed, change)
        return total


class BiconjugateFrankWolfe:
    """The flows of all classes, the last two targets, and the last step.

    Flows, and of select link the flows and volumes too, are one array, since all are combined by
    the same factors: first the flows of all classes, (n_classes, n_links); with select link then as
    many selected flows, and the selected volume of each pair. ``_shape`` is (n_classes, n_links),
    ``_flows``, ``_next`` and each of ``_targets`` is such an array, and ``_step`` is the length of
    the last step. ``loads``: what the flows make of the links.
    """

    name = "frank_wolfe"

    def __init__(
        self, problem: Problem, loader: Loader, is_selected: np.ndarray | None = None
    ) -> None:
        self.problem = problem
        self.prover = loader
        self._shape = (len(problem.classes), problem.network.n_links)
        n_flows = self._shape[0] * self._shape[1]
        n_selected = n_flows + problem.demand.volume.size if is_selected is not None else 0
        self._flows = np.zeros(n_flows + n_selected)
        self._targets: list[np.ndarray] = []  # the last one first
        self._step = 0.0
        # The all-or-nothing flows at the current costs, in memory of the loader; empty before the
        # first ``measure``.
        self._next = np.zeros(0)
        self.loads = problem.loads_at(np.zeros(problem.network.n_links))

    @property
    def class_flow(self) -> np.ndarray:
        """The flows, of shape (n_classes, n_links)."""
        return self._flows[: self._shape[0] * self._shape[1]].reshape(self._shape)

    def begin(self) -> None:
        """Put all trips on the shortest paths of the network without flow."""
        following, _ = self._load()
        self._flows = following.copy()  # the loader writes the next flows to the same memory

    def measure(self) -> Bound:
        """Prove the gap of the flows, and find the all-or-nothing flows at their costs."""
        self.loads = self.problem.loads_again(self.class_flow, self.loads)
        self._next, distance = self._load()
        return self.problem.bound(self.class_flow, self.loads.cost, distance)

    def confirm(self, bound: Bound) -> None:
        """Raise CertificateError unless the links alone prove the bound.

        Searches have proved it so already. Sweeps over a hierarchy have proved it by the hierarchy.
        """
        if isinstance(self.prover, HierarchyLoader):
            distance = self.prover.prove(self.loads.cost)
            if self.problem.bound(self.class_flow, self.loads.cost, distance) != bound:
                raise CertificateError(FAULT)

    def _load(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the all-or-nothing flows at the current costs, and the distance of each pair."""
        loaded = self.prover.load(self.loads.cost)
        self.problem.require_reached(loaded.distance)
        flows = loaded.flow.ravel()
        if loaded.selected_flow is not None and loaded.selected_volume is not None:
            flows = np.concatenate([flows, loaded.selected_flow.ravel(), loaded.selected_volume])
        return flows, loaded.distance

    def improve(self, bound: Bound) -> None:  # noqa: ARG002
        """Move towards the target, as far as the costs there fall."""
        carried = Carried.of(self._flows, self._next, self._targets, self._shape)
        move = _Move(self.problem, self.loads, carried)
        target = move.target(self._step)
        step = move.step_towards(target)
        if step <= 0.0 and target is not carried.next:  # no descent: begin again with a plain step
            self._targets = []
            target = carried.next
            step = move.step_towards(target)
        if len(self._targets) == 2:
            # Its memory is used again. ``move`` overwrites all that it holds, since the links of a
            # target are among those that carry something.
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
        """Return what another object of the same problem goes on from, to the bit."""
        targets = {f"target_{i}": each for i, each in enumerate(self._targets)}
        return {"flows": self._flows, "step": np.array(self._step), **targets}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from a state; CertificateError if its flows are none of this problem."""
        names = [name for name in ("flows", "target_0", "target_1") if name in state]
        given = [state[name] for name in names]
        if any(
            each.shape != self._flows.shape
            or each.dtype != self._flows.dtype
            or not ((each >= 0) & np.isfinite(each)).all()
            for each in given
        ):
            raise CertificateError("the state of the flows is damaged; remove its file")
        self._flows, *self._targets = given
        self._step = float(state["step"])

    def flows_using(self, is_selected: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # noqa: ARG002
        """Return the flows of the paths that use one of the selected links, per class and link, and
        the volume of these paths per pair.
        """
        n_flows = self._shape[0] * self._shape[1]
        flow = self._flows[n_flows : 2 * n_flows].reshape(self._shape)
        return flow, self._flows[2 * n_flows :]
