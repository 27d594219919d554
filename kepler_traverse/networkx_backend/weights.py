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
_MAX_SUM = 1 << 62  # of the absolute weights of any walk that a search may try


@dataclass(frozen=True, eq=False, kw_only=True)
class Weights:
    """The weights of all edges of one attribute."""

    values: np.ndarray  # int64 or float64 array of shape (n_edges,)
    # uint8 array of shape (n_edges,), or empty: which weights are floats, where integers and floats
    # are mixed.
    floats: np.ndarray
    kind: str  # {"int", "float", "mixed"}
    has_negative: bool
    problem: str  # why the arrays cannot represent the attribute; ``""`` if they can


def to_numbers(values: np.ndarray, floats: np.ndarray, at: np.ndarray) -> list[Any]:
    """Values at some positions as Python's integers and floats; ``floats`` says which are floats,
    if they are mixed.
    """
    listed: list[Any] = values[at].tolist()
    if not floats.size:
        return listed
    return [
        value if flag else int(value)
        for value, flag in zip(listed, floats[at].tolist(), strict=True)
    ]


def read_weights(
    adjacency: Mapping[Any, Any], name: Hashable, default: Any, is_multigraph: bool
) -> Weights:
    """Weights of the edges of NetworkX's adjacency, in its order; the smallest of parallel edges.

    The result has a ``problem`` if a weight is no finite integer or float, or if sums of integers
    could exceed int64.
    """
    if is_multigraph:
        listed = [
            min_weight(data, name, default) for nbrs in adjacency.values() for data in nbrs.values()
        ]
    else:
        listed = [data.get(name, default) for nbrs in adjacency.values() for data in nbrs.values()]
    kinds = set(map(type, listed))
    wrong = kinds - _INTEGERS - _FLOATS
    if wrong:
        value = next(value for value in listed if type(value) in wrong)
        what = f"the value {reprlib.repr(value)} of type {type(value).__name__}"
        return _refused(f"edge attribute {name!r} has {what}; weights must be integers or floats")
    try:
        return _as_arrays(listed, kinds, name, len(adjacency))
    except OverflowError:
        return _refused(f"edge attribute {name!r} has integers beyond int64")


def min_weight(data: Mapping[Any, Mapping[Any, Any]], name: Hashable, default: Any) -> Any:
    """The smallest weight of parallel edges, the first of equal ones; a value that is no number if
    there is one.
    """
    values = [attributes.get(name, default) for attributes in data.values()]
    if len(values) == 1:
        return values[0]
    for value in values:
        if type(value) not in _INTEGERS and type(value) not in _FLOATS:
            return value
        if value != value:
            return value
    return min(values)


def _as_arrays(listed: list[Any], kinds: set[type], name: Hashable, n_nodes: int) -> Weights:
    flags = _NO_FLAGS
    if kinds <= _INTEGERS:
        kind = "int"
        values = np.array(listed, np.int64)
    else:
        kind = "float"
        values = np.array(listed, np.float64)
        if not np.isfinite(values).all():
            return _refused(
                f"edge attribute {name!r} has a weight that is infinite or not a number"
            )
        if kinds & _INTEGERS:
            kind = "mixed"
            flags = np.array([type(value) in _FLOATS for value in listed], np.uint8)
    if values.size:
        heaviest = max(abs(values.min().item()), abs(values.max().item()))
    else:
        heaviest = 0
    # a Bellman-Ford search may try walks of n^2 edges before it reports a cycle
    longest = (n_nodes + 1) ** 2
    if kind == "int" and heaviest * longest >= _MAX_SUM:
        return _refused(f"sums of the integers of edge attribute {name!r} may exceed int64")
    if kind != "int" and heaviest * float(longest) >= np.finfo(np.float64).max:
        return _refused(
            f"sums of edge attribute {name!r} may exceed float64, where "
            "NetworkX has infinite distances"
        )
    integers = (abs(int(value)) for value in listed if type(value) in _INTEGERS)
    if kind == "mixed" and max(integers, default=0) * longest >= FLOAT64_EXACT:
        return _refused(
            f"edge attribute {name!r} mixes floats with integers whose sums float64 may round"
        )
    return Weights(
        values=values, floats=flags, kind=kind, has_negative=bool((values < 0).any()), problem=""
    )


def _refused(problem: str) -> Weights:
    return Weights(
        values=np.zeros(0), floats=_NO_FLAGS, kind="", has_negative=False, problem=problem
    )
