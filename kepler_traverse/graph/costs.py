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
    xp = namespace(weight)
    weight, reverse_weight = in_one_type(weight, reverse_weight)
    there = is_open(weight)  # from src to dst
    back = is_open(reverse_weight)  # from dst to src
    rows = xp.flatnonzero(there | back)
    n_closed = 2 * weight.size - int(there.sum()) - int(back.sum())

    # From here on the arrays have the open rows alone.
    there = there[rows]
    back = back[rows]
    ways = xp.where(there & back, BOTH_WAYS, xp.where(there, SRC_TO_DST, DST_TO_SRC))
    # ``first``: the weight of the edge of each row. A row that is open from dst to src alone is one
    # edge, with ``reverse_weight``. ``second``: the weight of its edge back, 0 without one.
    first = xp.where(there, weight[rows], reverse_weight[rows])
    second = xp.where(there & back, reverse_weight[rows], first.dtype.type(0))
    return OpenCosts(rows, to_host(ways).astype(np.int8), xp.concatenate([first, second]), n_closed)


def in_one_type(weight: Any, reverse_weight: Any) -> list[Any]:
    """Return ``weight`` and ``reverse_weight``, arrays of shape (rows,), in one type that holds
    each number exactly.

    EdgeListError if there is none, or a column holds other things than numbers.
    """
    kind = np.result_type(weight.dtype, reverse_weight.dtype)
    converted = []
    for role, column in (("weight", weight), ("reverse_weight", reverse_weight)):
        if column.dtype.kind not in "iuf":
            raise EdgeListError(f"{role} must hold numbers, not {column.dtype}", column=role)
        values = column.astype(kind, copy=False)
        # Integers that become floats may be rounded. Unsigned ones that become signed fit anyway.
        may_round = column.dtype.kind != kind.kind
        if may_round and not bool((values.astype(column.dtype) == column).all()):
            raise EdgeListError(
                f"{role} holds integers that {kind} does not hold exactly; give both weights as "
                "integers, or as floats",
                column=role,
            )
        converted.append(values)
    return converted
