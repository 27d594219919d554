"""Edge attributes as arrays, where the arrays can say exactly what Python's numbers say."""

from __future__ import annotations

import reprlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import FLOAT64_EXACT

_NO_FLAGS = np.zeros(0, np.uint8)
_INTEGERS = frozenset({int, bool, np.int64})
_FLOATS = frozenset({float, np.float64})
# The sum of the absolute weights of any walk that a search may try stays below this, so that the
# sum of two such walks is within int64.
_MAX_SUM = 1 << 62


@dataclass(frozen=True, eq=False, kw_only=True)
class Weights:
    """The weights of all edges by one edge attribute, in the order of NetworkX's adjacency."""

    # int64 array of shape (n_edges,) if all weights are integers, else float64
    values: np.ndarray
    # uint8 array of shape (n_edges,): 1 for a weight that is a float to Python, where integers and
    # floats are mixed; else empty
    floats: np.ndarray
    # what the weights are to Python: "int", "float", or "mixed" if both; "" if there is a problem
    kind: str
    has_negative: bool  # whether a weight is below 0
    # Why the arrays cannot represent the attribute; "" if they can. The other fields then mean
    # nothing.
    problem: str


def to_numbers(values: np.ndarray, floats: np.ndarray, positions: np.ndarray) -> list[Any]:
    """Return ``values[positions]`` as a list of Python's integers and floats.

    ``floats``, uint8, has 1 for each of ``values`` that is a float to Python, 0 for an integer that
    is stored as float64. It is empty if all are of one kind, which the type of ``values`` says.
    """
    numbers: list[Any] = values[positions].tolist()
    if not floats.size:
        return numbers
    return [
        value if is_float else int(value)
        for value, is_float in zip(numbers, floats[positions].tolist(), strict=True)
    ]


def read_weights(
    adjacency: Mapping[Any, Any], name: Hashable, default: Any, is_multigraph: bool
) -> Weights:
    """Return the weights of all edges by the edge attribute ``name``, in the order of NetworkX's
    adjacency. An edge that lacks the attribute has ``default``.

    ``adjacency`` maps each node to a mapping from its neighbors to the attributes of the edge, or
    with ``is_multigraph`` to the parallel edges, of which the smallest weight counts. The result
    has a ``problem`` if a weight is no finite integer or float, or if sums of weights could exceed
    their type.
    """
    edges = (data for neighbors in adjacency.values() for data in neighbors.values())
    if is_multigraph:
        values = [min_weight(data, name, default) for data in edges]
    else:
        values = [data.get(name, default) for data in edges]

    # Types as they are: instances of subclasses of numbers are refused, too.
    types = set(map(type, values))
    wrong_types = types - _INTEGERS - _FLOATS
    if wrong_types:
        value = next(value for value in values if type(value) in wrong_types)
        description = f"the value {reprlib.repr(value)} of type {type(value).__name__}"
        return _with_problem(
            f"edge attribute {name!r} has {description}; weights must be integers or floats"
        )
    try:
        return _as_arrays(values, types, name, len(adjacency))
    except OverflowError:
        return _with_problem(f"edge attribute {name!r} has integers beyond int64")


def min_weight(data: Mapping[Any, Mapping[Any, Any]], name: Hashable, default: Any) -> Any:
    """Return the smallest weight of parallel edges, the first of equal ones.

    ``data`` maps the key of each edge to its attributes. ``name`` is the attribute that holds the
    weight, and ``default`` the weight of an edge that lacks it. If a value is no number, or not a
    number (NaN), return that value, which the caller refuses.
    """
    values = [attributes.get(name, default) for attributes in data.values()]
    if len(values) == 1:
        return values[0]
    for value in values:
        if type(value) not in _INTEGERS and type(value) not in _FLOATS:
            return value
        if value != value:  # NaN
            return value
    return min(values)


def _as_arrays(numbers: list[Any], types: set[type], name: Hashable, n_nodes: int) -> Weights:
    """Return ``numbers``, the weights of all edges by attribute ``name``, as arrays. If their sums
    along a path could be wrong, return ``Weights`` that have that as their ``problem``.

    ``types`` are the types of the numbers. ``n_nodes`` bounds the length of a path. OverflowError:
    an integer is beyond int64.
    """
    are_floats = _NO_FLAGS
    if types <= _INTEGERS:
        kind = "int"
        values = np.array(numbers, np.int64)
    else:
        kind = "float"
        values = np.array(numbers, np.float64)
        if not np.isfinite(values).all():
            return _with_problem(
                f"edge attribute {name!r} has a weight that is infinite or not a number"
            )
        if types & _INTEGERS:
            kind = "mixed"
            are_floats = np.array([type(value) in _FLOATS for value in numbers], np.uint8)

    # The largest sum along any walk that a search may try must fit the type.
    if values.size:
        heaviest = max(abs(values.min().item()), abs(values.max().item()))
    else:
        heaviest = 0

    # a Bellman-Ford search may try walks of n^2 edges before it reports a cycle
    longest = (n_nodes + 1) ** 2
    if kind == "int" and heaviest * longest >= _MAX_SUM:
        return _with_problem(f"sums of the integers of edge attribute {name!r} may exceed int64")
    if kind != "int" and heaviest * float(longest) >= np.finfo(np.float64).max:
        return _with_problem(
            f"sums of edge attribute {name!r} may exceed float64, where "
            "NetworkX has infinite distances"
        )
    # Mixed weights are summed as float64, which represents integers exactly only below 2^53.
    integers = (abs(int(value)) for value in numbers if type(value) in _INTEGERS)
    if kind == "mixed" and max(integers, default=0) * longest >= FLOAT64_EXACT:
        return _with_problem(
            f"edge attribute {name!r} mixes floats with integers whose sums float64 may round"
        )
    return Weights(
        values=values,
        floats=are_floats,
        kind=kind,
        has_negative=bool((values < 0).any()),
        problem="",
    )


def _with_problem(problem: str) -> Weights:
    """Return ``Weights`` that hold nothing but a problem, the reason why there are none."""
    return Weights(
        values=np.zeros(0), floats=_NO_FLAGS, kind="", has_negative=False, problem=problem
    )
