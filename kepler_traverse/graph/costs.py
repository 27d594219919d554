"""Two weights per row of an edge list, one per direction, each of which may close its direction."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._arrays import Array, namespace, to_host
from ..errors import EdgeListError
from ..formats.selection import BOTH_WAYS, DST_TO_SRC, SRC_TO_DST


class OpenCosts(NamedTuple):
    """The rows of an edge list that are open in some direction; n is their number."""

    rows: Array  # (n,): their positions among all rows, ascending
    directions: np.ndarray  # int8 (n,): ``SRC_TO_DST``, ``BOTH_WAYS`` or ``DST_TO_SRC``
    # (2 n,): first the weight of the edge of each row, in its direction, and then that of its edge
    # back, which is 0 where the row is open in one direction alone
    weights: Array
    n_closed: int  # how many directions of all rows are closed: up to two per row


def is_open(weight: Array) -> Array:
    """Return a bool per weight: True where it closes no edge, as it is 0 or more and finite. NaN
    closes one.
    """
    return (weight >= 0) & (weight < np.inf)


def open_costs(weight: Any, reverse_weight: Any) -> OpenCosts:
    """Return the rows of which a direction is open, with their directions and weights.

    ``weight`` has the weights from src to dst, and ``reverse_weight`` those from dst to src, both
    of shape (rows,). A weight that is below 0, NaN or infinite closes its direction.
    """
    require_numbers(weight, reverse_weight)
    xp = namespace(weight)
    there = is_open(weight)  # from src to dst
    back = is_open(reverse_weight)  # from dst to src
    rows = xp.flatnonzero(there | back)
    n_closed = 2 * weight.size - int(there.sum()) - int(back.sum())

    # From here on the arrays have the open rows alone. Directions that are closed have the weight
    # 0, which any type holds.
    there = there[rows]
    back = back[rows]
    ways = xp.where(there & back, BOTH_WAYS, xp.where(there, SRC_TO_DST, DST_TO_SRC))
    weight, reverse_weight = in_one_type(
        xp.where(there, weight[rows], weight.dtype.type(0)),
        xp.where(back, reverse_weight[rows], reverse_weight.dtype.type(0)),
    )
    # ``first``: the weight of the edge of each row. A row that is open from dst to src alone is one
    # edge, with ``reverse_weight``. ``second``: the weight of its edge back, 0 without one.
    first = xp.where(there, weight, reverse_weight)
    second = xp.where(there, reverse_weight, weight.dtype.type(0))
    return OpenCosts(rows, to_host(ways).astype(np.int8), xp.concatenate([first, second]), n_closed)


def require_numbers(weight: Any, reverse_weight: Any) -> None:
    """Raise EdgeListError if one of two arrays of weights holds other things than numbers."""
    for role, column in (("weight", weight), ("reverse_weight", reverse_weight)):
        if column.dtype.kind not in "iuf":
            raise EdgeListError(f"{role} must hold numbers, not {column.dtype}", column=role)


def in_one_type(weight: Any, reverse_weight: Any) -> list[Any]:
    """Return ``weight`` and ``reverse_weight``, arrays of numbers of shape (rows,), in one type
    that holds each number exactly. No number is below 0. Integers of two types stay integers.

    EdgeListError if there is no such type.
    """
    kind = np.result_type(weight.dtype, reverse_weight.dtype)
    if weight.dtype.kind in "iu" and reverse_weight.dtype.kind in "iu" and kind.kind == "f":
        # NumPy's type for uint64 beside a signed type is float64, as it holds numbers below 0.
        kind = np.dtype(np.uint64)
    converted = []
    for role, column in (("weight", weight), ("reverse_weight", reverse_weight)):
        values = column.astype(kind, copy=False)
        # Integers that become floats may be rounded; those that stay integers fit.
        may_round = column.dtype.kind != kind.kind
        if may_round and not bool((values.astype(column.dtype) == column).all()):
            raise EdgeListError(
                f"{role} holds integers that {kind} does not hold exactly; give both weights as "
                "integers, or as floats",
                column=role,
            )
        converted.append(values)
    return converted
