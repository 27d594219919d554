"""Equilibrium by all-or-nothing flows: bi-conjugate Frank-Wolfe (Mitradjieva and Lindberg, 2013).

Each iteration puts all trips on the shortest paths at the costs of the current flows, and moves
towards a combination of these flows and the last two targets. Memory does not grow with the number
of paths. The gap falls slowly below 1e-4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ..cpu.compiled import njit
from ..errors import CertificateError
from .all_or_nothing import FAULT, HierarchyLoader, Loader
from .link_costs import sum_products
from .path_flows import Loads
from .problem import Bound, Problem

_MAX_CONJUGATE = 0.99  # of the last target in a conjugate one
_STEPS = 60  # of the search for the length of a step


@njit(cache=True, nogil=True)
def _weighted(x, weights, y):
    """Return the sum of weighted products, added in order, which NumPy does not promise."""
    total = 0.0
    for i in range(x.size):
        total += x[i] * weights[i] * y[i]
    return total


class _Carried(NamedTuple):
    """Flows on the links alone that carry something in some of them. All others add 0 to each sum.

    ``links`` int64. ``places`` int64: where the flows of these links are in an array of all flows,
    class by class, and what follows them. ``flows``, ``next`` and ``targets``: what is there.
    """

    links: np.ndarray
    places: np.ndarray
    flows: np.ndarray
    next: np.ndarray
    targets: list[np.ndarray]

    @classmethod
    def of(
        cls,
        flows: np.ndarray,
        following: np.ndarray,
        targets: list[np.ndarray],
        n_classes: int,
        n_links: int,
    ) -> _Carried:
        """Return the parts of arrays of all flows."""
        n_flows = n_classes * n_links
        carries = np.zeros(n_links, np.bool_)
        for each in (flows, following, *targets):
            for of_class in each[:n_flows].reshape(n_classes, n_links):
                carries |= of_class != 0
        links = np.flatnonzero(carries)
        of_classes = np.arange(n_classes)[:, None] * n_links + links
        places = np.concatenate([of_classes.ravel(), np.arange(n_flows, flows.size)])
        return cls(
            links,
            places,
            flows[places],
            following[places],
            [each[places] for each in targets],
        )


class _Move:
    """The choice of a target and of the length of the step towards it."""

    def __init__(self, problem: Problem, loads: Loads, carried: _Carried) -> None:
        self._problem = problem
        self._carried = carried
        self._flow = loads.flow[carried.links]
        self._slope = loads.slope[carried.links]
        self._fixed = np.take(problem.fixed, carried.links, axis=1)

    def _class_flows(self, flows: np.ndarray) -> np.ndarray:
        n_classes, n_links = self._fixed.shape
        return flows[: n_classes * n_links].reshape(n_classes, n_links)

    def _change(self, target: np.ndarray) -> np.ndarray:
        """Return how the common flow differs between a target and the flows."""
        return self._problem.common_flow(self._class_flows(target)) - self._flow

    def target(self, step: float) -> np.ndarray:
        """Return the target: the all-or-nothing flows, made conjugate to the last directions.

        ``step``: the length of the last step.
        """
        carried = self._carried
        if not carried.targets:
            return carried.next
        slope = self._slope
        direction = self._change(carried.next)
        last = self._change(carried.targets[0])
        if len(carried.targets) == 1:
            below = _weighted(last, slope, direction - last)
            if below == 0.0:
                return carried.next
            share = _weighted(last, slope, direction) / below
            share = min(max(share, 0.0), _MAX_CONJUGATE)
            return share * carried.targets[0] + (1.0 - share) * carried.next
        before = self._change(carried.targets[1])
        mixed = step * last + (1.0 - step) * before
        below_mixed = _weighted(mixed, slope, before - last)
        below_last = _weighted(last, slope, last)
        if below_mixed == 0.0 or below_last == 0.0 or step >= 1.0:
            return carried.next
        m = max(-_weighted(mixed, slope, direction) / below_mixed, 0.0)
        n = -_weighted(last, slope, direction) / below_last + m * step / (1.0 - step)
        n = max(n, 0.0)
        combined = carried.next + n * carried.targets[0] + m * carried.targets[1]
        return combined / (1.0 + n + m)

    def step_towards(self, target: np.ndarray) -> float:
        """Return the part of the way to a target at which the objective is least."""
        change = self._change(target)
        by_class = self._class_flows(target) - self._class_flows(self._carried.flows)
        fixed = 0.0
        for k, weight in enumerate(self._problem.per_vehicle):
            fixed += weight * sum_products(self._fixed[k], by_class[k])

        def derivative(step: float) -> tuple[float, float]:
            value, slope = self._problem.derivatives(self._carried.links, self._flow, change, step)
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


class BiconjugateFrankWolfe:
    """The flows of all classes, the last two targets, and the last step.

    Flows, and of select link the flows and volumes too, are one array, since all are combined by the
    same factors.
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
        self._next = np.zeros(0)  # the all-or-nothing flows at the current costs
        self.loads = problem.loads_at(np.zeros(problem.network.n_links))

    @property
    def class_flow(self) -> np.ndarray:
        """The flows, of shape (n_classes, n_links)."""
        return self._flows[: self._shape[0] * self._shape[1]].reshape(self._shape)

    def begin(self) -> None:
        """Put all trips on the shortest paths of the network without flow."""
        self._flows, _ = self._load()

    def measure(self) -> Bound:
        """Prove the gap of the flows, and find the all-or-nothing flows at their costs."""
        self.loads = self.problem.loads_at(self.problem.common_flow(self.class_flow))
        self._next, distance = self._load()
        return self.problem.bound(self.class_flow, self.loads.cost, distance)

    def confirm(self, bound: Bound) -> None:
        """Raise CertificateError unless the links alone prove the bound; a search has proved it so."""
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
        n_classes, n_links = self._shape
        carried = _Carried.of(self._flows, self._next, self._targets, n_classes, n_links)
        move = _Move(self.problem, self.loads, carried)
        target = move.target(self._step)
        step = move.step_towards(target)
        if step <= 0.0 and target is not carried.next:  # no descent: begin again with a plain step
            self._targets = []
            target = carried.next
            step = move.step_towards(target)
        self._flows[carried.places] = carried.flows + step * (target - carried.flows)
        self._step = step
        if step >= 1.0:
            self._targets = []
            return
        if target is carried.next:
            last = self._next
        else:
            last = np.zeros_like(self._next)
            last[carried.places] = target
        self._targets = [last, *self._targets][:2]

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
