"""Operations of a worker on its partition of the edges, as functions of arrays.

A partition has all edges that leave one range of vertices, so each edge is in exactly one
partition. Arrays are NumPy's or CuPy's. Weights are never negative or subnormal here
(``check_chunk`` refuses both). Therefore CuPy's kernels, which flush subnormal numbers to zero,
compute the same sums as the traversal.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from kepler_traverse._arrays import UNREACHED, Array, as_distance, namespace, to_host
from kepler_traverse.errors import EdgeListError


class Part(NamedTuple):
    """Edges between vertex numbers, ascending by (src, dst), each once."""

    # Integer arrays of shape (n,).
    src: Array
    dst: Array
    weight: Array | None  # float array of shape (n,) or None


class Facts(NamedTuple):
    """Facts about one chunk of the rows that the driver needs before it builds the graph."""

    rows: int
    self_loops: int
    negative_zeros: int
    ids: np.ndarray  # integer array, NumPy: ids of its vertices, ascending, each once
    # Smallest and largest weight; 0 without weights.
    low: float
    high: float


class Checked(NamedTuple):
    """The outcome of checking distances from a source against one partition."""

    # Edges that allow a shorter distance; edges along which a distance exceeds its type.
    longer: int
    overflows: int
    at: int  # head of the first such edge, -1 without one
    # Uint8 array: one bit per vertex: an edge of this partition, from a strictly nearer vertex,
    # explains its distance.
    founded: np.ndarray


def rows_in(frame: Any, columns: dict[str, str], files: str) -> Part:
    """Return the columns of a frame of pandas or cuDF as arrays.

    Raises EdgeListError: a value is missing, or a weight is NaN.
    """
    arrays = {}
    for role, name in columns.items():
        column = frame[name]
        # pandas counts NaN as missing; cuDF may not, and its nulls compare equal to themselves.
        missing = max(
            int(column.isnull().sum()),
            int((column != column).sum()) if column.dtype.kind == "f" else 0,
        )
        if missing:
            values = "value is" if missing == 1 else "values are"
            what = "edge has a weight" if role == "weight" else "edge has two ends"
            raise EdgeListError(
                f"{files}: {role} column {name!r}: {missing} {values} missing or NaN; every {what}"
            )
        arrays[role] = column.values
    return Part(arrays["src"], arrays["dst"], arrays.get("weight"))


def check_chunk(rows: Part, weight_kind: np.dtype | None, files: str) -> Facts:
    """Check one chunk of the rows; ``weight_kind`` is the type that float weights will have.

    Raises EdgeListError: a weight that this engine does not support.
    """
    xp = namespace(rows.src)
    ids = to_host(xp.unique(xp.concatenate([rows.src, rows.dst])))
    loops = int((rows.src == rows.dst).sum())
    low = high = zeros = 0
    if rows.weight is not None:
        # on the host, where comparisons and casts keep subnormal numbers
        weight = to_host(rows.weight)
        if weight.size:
            low = weight.min().item()
            high = weight.max().item()
        if weight.dtype.kind in "iu":
            _refuse(weight[weight < 0], files, "negative")
        else:
            kind = weight.dtype if weight_kind is None else weight_kind
            zeros = _check_floats(weight, kind, files)
    return Facts(rows.src.size, loops, zeros, ids, low, high)


def _check_floats(weight: np.ndarray, kind: np.dtype, files: str) -> int:
    """Refuse invalid weights; returns how many are -0.0."""
    with np.errstate(over="ignore"):
        cast = weight.astype(kind, copy=False)
    _refuse(weight[~np.isfinite(cast)], files, "infinite")
    _refuse(weight[cast < 0], files, "negative")
    _refuse(weight[(weight != 0) & (cast < np.finfo(kind).tiny)], files, "tiny")
    return int(((cast == 0) & np.signbit(cast)).sum())


_WHY = {
    "infinite": "every weight must be finite: drop or correct the rows",
    "negative": (
        "cuGraph takes none below zero; --engine kepler does, on a machine "
        "that holds the graph (--device cpu?)"
    ),
    "tiny": "numbers so small lose bits on a GPU; scale the weights up, or take --engine kepler",
}


def _refuse(bad: np.ndarray, files: str, what: str) -> None:
    """Raise EdgeListError if there are bad weights."""
    if bad.size:
        raise EdgeListError(
            f"{files}: weight {bad[0]:g} ({what}; {bad.size} such rows in one block): {_WHY[what]}"
        )


def numbered(
    rows: Part, ids: np.ndarray, weight_kind: np.dtype | None, index: np.dtype, both_ways: bool
) -> Part:
    """Convert ids to vertex numbers, without self-loops, and with each edge in both directions if
    requested.
    """
    xp = namespace(rows.src)
    ids = xp.asarray(ids)
    src, dst = (
        xp.searchsorted(ids, end.astype(ids.dtype, copy=False)).astype(index) for end in rows[:2]
    )
    keep = src != dst
    src = src[keep]
    dst = dst[keep]
    weight = None
    if weight_kind is not None and rows.weight is not None:
        weight = rows.weight.astype(weight_kind, copy=False)[keep] + weight_kind.type(0)
    if both_ways:
        src, dst = xp.concatenate([src, dst]), xp.concatenate([dst, src])
        if weight is not None:
            weight = xp.concatenate([weight, weight])
    return _each_once(src, dst, weight, ids.size)


def _each_once(src: Any, dst: Any, weight: Any, n_vertices: int) -> Part:
    """Sort edges, and keep the one with the smallest weight of parallel edges."""
    xp = namespace(src)
    key = src.astype(np.int64) * n_vertices + dst
    if weight is None:
        order = xp.argsort(key, kind="stable")
    else:
        order = xp.argsort(weight, kind="stable")
        order = order[xp.argsort(key[order], kind="stable")]
    key = key[order]
    first = xp.ones(key.size, bool)
    first[1:] = key[1:] != key[:-1]
    order = order[first]
    return Part(src[order], dst[order], None if weight is None else weight[order])


def select_sample(part: Part, count: int) -> np.ndarray:
    """Return about ``count`` edge starts at equal intervals; each represents the same number of
    edges.
    """
    step = max(1, part.src.size // count)
    return to_host(part.src[::step])


def cut(part: Part, bounds: np.ndarray) -> list[Part]:
    """Split at vertices: piece i has the edges that leave ``bounds[i]`` to below ``bounds[i + 1]``."""
    xp = namespace(part.src)
    at = to_host(xp.searchsorted(part.src, xp.asarray(bounds.astype(part.src.dtype)))).tolist()
    return [
        Part(*(None if array is None else array[begin:end] for array in part))
        for begin, end in pairwise(at)
    ]


def joined(pieces: Sequence[Part], n_vertices: int) -> Part:
    """Join pieces of one range of vertices."""
    xp = namespace(pieces[0].src)
    arrays = [
        None if column[0] is None else xp.concatenate(column)
        for column in zip(*pieces, strict=True)
    ]
    src, dst, weight = arrays
    return _each_once(src, dst, weight, n_vertices)


def outline(part: Part, low: int, high: int, n_vertices: int) -> tuple[np.ndarray, np.ndarray]:
    """Return degrees of the vertices from ``low`` to below ``high``, and a bitmap of the vertices
    that edges lead to.
    """
    xp = namespace(part.src)
    degrees = xp.bincount((part.src - low).astype(np.int64), minlength=high - low)
    return to_host(degrees).astype(np.int64), _bits(part.dst, n_vertices)


def host_column(part: Part, name: str) -> np.ndarray:
    return to_host(getattr(part, name))


def make_frame(part: Part) -> Any:
    """Return the edges as a cuDF frame for cuGraph."""
    import cudf

    columns = {"src": part.src, "dst": part.dst}
    return cudf.DataFrame(columns if part.weight is None else columns | {"weight": part.weight})


def found_in(frame: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return vertices and distances from one worker's piece of cuGraph's result."""
    return to_host(frame["vertex"].values), to_host(frame["distance"].values)


def check(part: Part, distance: np.ndarray, limit: float | None) -> Checked:
    """Check every edge against the distances from one source, in the arithmetic of the traversal,
    without a tolerance.

    ``distance`` (array of shape (n_vertices,), NumPy): int32 hops with -1, or weighted distances
    with ``inf``, of all vertices. ``limit``: limit up to which the distances should be complete.
    """
    edges = _look_up(part, distance)
    claimed = edges.is_reached
    if limit is not None:
        claimed = claimed & (edges.along <= as_distance(limit, edges.along.dtype))
    is_shorter = edges.along < edges.head
    if distance.dtype.kind == "i":
        is_shorter |= edges.head == UNREACHED
    longer = claimed & is_shorter
    overflows = claimed & (edges.along == np.inf)
    wrong = namespace(longer).flatnonzero(longer | overflows)
    forward = edges.explains() & (edges.tail < edges.head)
    return Checked(
        longer=int(longer.sum()),
        overflows=int(overflows.sum()),
        at=int(part.dst[wrong[0]]) if wrong.size else -1,
        founded=_bits(part.dst[forward], distance.size),
    )


def spread(part: Part, distance: np.ndarray, founded: np.ndarray) -> np.ndarray:
    """Return a bitmap of vertices that an edge of length zero explains, from a vertex that is
    founded itself.
    """
    edges = _look_up(part, distance)
    xp = namespace(part.src)
    level = edges.explains() & (edges.tail == edges.head)
    level &= xp.unpackbits(xp.asarray(founded))[part.src].astype(bool)
    return _bits(part.dst[level], distance.size)


class _Edges(NamedTuple):
    """Per edge the distances of its tail and its head, that along it, and whether its tail is
    reached.
    """

    tail: Any
    head: Any
    along: Any
    is_reached: Any

    def explains(self) -> Any:
        """Return which edges explain the distances of their heads."""
        return self.is_reached & (self.along == self.head)


def _look_up(part: Part, distance: np.ndarray) -> _Edges:
    """Return the distances that belong to each edge of a partition."""
    xp = namespace(part.src)
    there = xp.asarray(distance)
    tail = there[part.src]
    head = there[part.dst]
    if distance.dtype.kind == "i":
        return _Edges(tail, head, tail + distance.dtype.type(1), tail != UNREACHED)
    with np.errstate(over="ignore"):
        return _Edges(tail, head, tail + part.weight, xp.isfinite(tail))


def _bits(vertices: Any, n_vertices: int) -> np.ndarray:
    """Return a bitmap of some vertices."""
    xp = namespace(vertices)
    marked = xp.zeros(n_vertices, bool)
    marked[vertices] = True
    return to_host(xp.packbits(marked))
