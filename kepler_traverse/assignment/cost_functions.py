"""What a link costs at a flow, as users say it: BPR, conical, or a function of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import arguments
from ..errors import InputError
from . import link_costs
from .link_costs import CostArrays

# The step of the difference quotient that stands for a slope, as a part of the flow.
_STEP = 1e-6
_GRID = (
    0.0,
    0.25,
    0.5,
    1.0,
    2.0,
    4.0,
)  # flows at which a function must not decrease, times its scale


class LinkTable:
    """The columns of the table of links, by name, as the user gave them.

    Each has ``n_rows`` values, one per link.
    """

    def __init__(self, columns: Mapping[Any, Any], n_rows: int) -> None:
        """``columns`` are not checked before ``numbers`` reads them."""
        self._columns = columns
        self.n_rows = n_rows

    def numbers(self, column: str | float, role: str, least: float = 0.0) -> np.ndarray:
        """Return a column as float64 of shape (n_rows,).

        ``column`` is its name, or one number that counts for all rows. ``role`` says in errors
        what the numbers mean, as "capacity". InputError for a column that does not exist, and for a
        number that is not finite or below ``least``; it names the row.
        """
        if not isinstance(column, str):
            number = _at_least(role, [column], role, least)
            return np.full(self.n_rows, number[0], np.float64)
        if column not in self._columns:
            raise InputError(
                f"links have no column {column!r}, which is the {role}; "
                f"they have {', '.join(map(repr, self._columns))}"
            )
        name = f"links, column {column!r}"
        numbers = _at_least(name, self._columns[column], role, least)
        arguments.size(name, numbers, self.n_rows, "one per row")
        return numbers.astype(np.float64)


def _at_least(name: str, values: Any, role: str, least: float) -> np.ndarray:
    """Return ``values`` as an int64 or float64 array; InputError unless all are finite and at least
    ``least``.

    The error names the column (``name``), the first wrong row, and what its number should be
    (``role``, as "capacity").
    """
    return arguments.numbers(
        name,
        values,
        lambda numbers: numbers >= least,
        f"is no {role}; it must be {least:g} or more",
    )


@dataclass(frozen=True, kw_only=True)
class BPR:
    """``free_flow_time * (1 + b * (flow / capacity) ** power)``, of the Bureau of Public Roads.

    Each field is the name of a column of the links, or one number for all of them. With power 0 the
    cost is ``free_flow_time * (1 + b)`` at every flow. Capacity 0 is allowed where the cost does
    not depend on it: with b, power or free-flow time 0.
    """

    free_flow_time: str | float = "free_flow_time"
    capacity: str | float = "capacity"
    b: str | float = "b"
    power: str | float = "power"

    def arrays(self, table: LinkTable) -> CostArrays:
        """Return the costs of the links, in the order of the rows of the table.

        InputError for a row without a cost: a missing or negative number, or capacity 0 where the
        cost depends on it.
        """
        free = table.numbers(self.free_flow_time, "free-flow time")
        capacity = table.numbers(self.capacity, "capacity")
        b = table.numbers(self.b, "factor b")
        power = table.numbers(self.power, "power")
        # Costs that no flow changes are of another kind, whose capacity is not read.
        is_constant = (b == 0) | (power == 0) | (free == 0)
        _require_capacity(capacity, ~is_constant)
        return CostArrays(
            kind=np.where(is_constant, link_costs.CONSTANT, link_costs.BPR).astype(np.uint8),
            free=np.where(power == 0, free * (1.0 + b), free),
            scale=np.where(is_constant, 0.0, b),
            power=np.where(is_constant, 0.0, power),
            capacity=np.where(is_constant, 1.0, capacity),
        )


@dataclass(frozen=True, kw_only=True)
class Conical:
    """The conical function of Spiess (1990): the free-flow time at flow 0, and twice that at
    capacity.

    ``alpha``, above 1, says how steep it is at capacity. Each field is the name of a column of the
    links, or one number for all of them.
    """

    free_flow_time: str | float = "free_flow_time"
    capacity: str | float = "capacity"
    alpha: str | float = 4.0

    def arrays(self, table: LinkTable) -> CostArrays:
        """Return the costs of the links, in the order of the rows of the table.

        InputError for a row without a cost: a missing or negative number, ``alpha`` of 1 or less,
        or capacity 0 where the cost depends on it.
        """
        free = table.numbers(self.free_flow_time, "free-flow time")
        capacity = table.numbers(self.capacity, "capacity")
        alpha = table.numbers(self.alpha, "alpha", least=1.0)
        flat = np.flatnonzero(alpha == 1.0)  # the formula divides by alpha - 1
        if flat.size:
            raise InputError(f"alpha, row {flat[0]}: it is 1; it must be above 1")
        is_constant = free == 0
        _require_capacity(capacity, ~is_constant)
        return CostArrays(
            kind=np.where(is_constant, link_costs.CONSTANT, link_costs.CONICAL).astype(np.uint8),
            free=free,
            scale=np.where(is_constant, 0.0, alpha),
            power=np.zeros(table.n_rows),
            capacity=np.where(is_constant, 1.0, capacity),
        )


def _require_capacity(capacity: np.ndarray, is_needed: np.ndarray) -> None:
    """Raise InputError for the first row whose capacity is 0 and is needed.

    ``capacity`` float64 and ``is_needed`` bool have one value per row: ``is_needed`` is True where
    the cost depends on the capacity.
    """
    missing = np.flatnonzero(is_needed & (capacity == 0))
    if missing.size:
        raise InputError(
            f"links, row {missing[0]}: the capacity is 0 and the cost depends on it; "
            "set the factor b to 0 for a constant cost, or drop the row for a closed link"
        )


@dataclass(frozen=True, kw_only=True)
class CostFunction:
    """A function of the user's: ``value(flow)`` returns the costs of all rows of the links.

    Parameters
    ----------
    value : callable
        Takes the flows, float64 of shape (n_rows,), and returns as many costs, finite and at least
        0. The cost of a row depends on the flow of this row alone, and does not decrease with it.
    slope : callable, optional
        Returns the derivatives; a difference quotient where there is none.
    integral : callable, optional
        Returns the integrals from 0, for the objective, which is not known without.
    """

    value: Callable[[np.ndarray], Any]
    slope: Callable[[np.ndarray], Any] | None = None
    integral: Callable[[np.ndarray], Any] | None = None

    def check(self, scale: float, n_rows: int) -> None:
        """Raise InputError if a field is no function, or if the cost of a row decreases from one
        flow to the next.

        The flows are those of ``_GRID`` times ``scale``, the same for all ``n_rows`` rows.
        """
        functions = {"value": self.value, "slope": self.slope, "integral": self.integral}
        for name, function in functions.items():
            is_left_out = function is None and name != "value"
            if not (callable(function) or is_left_out):
                raise InputError(
                    f"{name} of the cost must be a function of the flows, "
                    f"not {arguments.describe(function)}"
                )

        # The costs of all rows at one flow after another, which may not fall.
        before = self.values(np.zeros(n_rows))
        for factor in _GRID[1:]:
            after = self.values(np.full(n_rows, factor * scale))
            decreasing = np.flatnonzero(after < before)
            if decreasing.size:
                row = decreasing[0]
                raise InputError(
                    f"cost, row {row}: the function decreases from {before[row]:g} to {after[row]:g}"
                    f" at flow {factor * scale:g}; costs may not decrease with the flow"
                )
            before = after

    def values(self, flow: np.ndarray) -> np.ndarray:
        """Return the costs of all rows, float64 of shape (n_rows,), at their flows, ``flow`` of the
        same shape. InputError names a row whose cost is not finite, or below 0.
        """
        # A copy, here and in ``slopes`` and ``integrals``: the user's function may write to its
        # argument.
        return self._checked("cost", self.value(flow.copy()), flow.size)

    def slopes(self, flow: np.ndarray, value: np.ndarray) -> np.ndarray:
        """Return the derivatives of the costs by the flow, float64 of shape (n_rows,): those of the
        user's function ``slope``, or difference quotients without one.

        ``flow`` and ``value`` (n_rows,) are the flows, and the costs at these flows.
        """
        if self.slope is not None:
            return self._checked("slope", self.slope(flow.copy()), flow.size)
        step = _STEP * np.maximum(flow, 1.0)  # at flow 0 there must be a step, too
        # The function may not decrease, so a difference below 0 is rounding.
        return np.maximum((self.values(flow + step) - value) / step, 0.0)

    def integrals(self, flow: np.ndarray) -> np.ndarray | None:
        """Return the integral of the cost of each row from flow 0 to its flow, float64 of shape
        (n_rows,); None if the user gave no function ``integral``.
        """
        if self.integral is None:
            return None
        return self._checked("integral", self.integral(flow.copy()), flow.size)

    @staticmethod
    def _checked(role: str, returned: Any, n_rows: int) -> np.ndarray:
        """Return the result of a user's function, ``returned``, as float64 of shape (n_rows,).

        InputError names a row whose number is not finite, or below 0. ``role`` is the name of the
        function in the error: cost, slope or integral.
        """
        values = arguments.numbers(
            f"{role}, as its function returns it",
            returned,
            lambda numbers: numbers >= 0,
            "is not allowed; it must be 0 or more",
        )
        arguments.size(
            f"{role}, as its function returns it,", values, n_rows, "one per row of links"
        )
        return values.astype(np.float64)
