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


class EdgeArrays(NamedTuple):
    """Edges as arrays, of NumPy or CuPy: rows of the edge list, or the edges of a partition.

    The ends of rows are ids, in any order. The ends of edges of a partition are vertex numbers, and
    the edges ascend by (src, dst), each once.
    """

    src: Array  # integer array of shape (n,): where each edge begins
    dst: Array  # integer array of shape (n,): where each edge ends
    weight: Array | None  # array of shape (n,), None without weights; of floats in a partition

    def take(self, rows: Any) -> EdgeArrays:
        """Return the edges that ``rows`` selects: a slice, a mask or an array of positions."""
        weight = None if self.weight is None else self.weight[rows]
        return EdgeArrays(self.src[rows], self.dst[rows], weight)


class Facts(NamedTuple):
    """Facts about one chunk of the rows that the driver needs before it builds the graph."""

    rows: int  # number of rows
    self_loops: int  # number of rows whose ends are equal
    negative_zeros: int  # number of weights of -0.0, which become 0.0
    ids: np.ndarray  # integer array, NumPy: ids of its vertices, ascending, each once
    low: float  # smallest weight; 0 without weights
    high: float  # largest weight; 0 without weights


class Checked(NamedTuple):
    """The outcome of checking distances from a source against one partition."""

    longer: int  # number of edges that allow a shorter distance than their head has
    overflows: int  # number of edges along which a distance exceeds the largest of its type
    at: int  # vertex number at the head of the first such edge, -1 without one
    # Bitmap, see ``_bitmap``: a vertex is set if an edge of this partition, from a strictly nearer
    # vertex, explains its distance, that is, leads to exactly this distance.
    founded: np.ndarray


def arrays_of_frame(frame: Any, columns: dict[str, str], files: str) -> EdgeArrays:
    """Return the columns of a frame of pandas or cuDF as arrays.

    ``columns`` has the name of the column by role: "src", "dst" and perhaps "weight". ``files``
    names the files of the edge list in errors.

    Raises EdgeListError: a value is missing, or a weight is NaN.
    """
    arrays = {}
    for role, name in columns.items():
        column = frame[name]
        n_missing = int(column.isnull().sum())
        if column.dtype.kind == "f":
            # pandas counts NaN as missing; cuDF may not, and its nulls compare equal to themselves.
            n_missing = max(n_missing, int((column != column).sum()))
        if n_missing:
            values = "value is" if n_missing == 1 else "values are"
            what = "edge has a weight" if role == "weight" else "edge has two ends"
            raise EdgeListError(
                f"{files}: {role} column {name!r}: {n_missing} {values} missing or NaN; every {what}"
            )
        arrays[role] = column.values
    return EdgeArrays(arrays["src"], arrays["dst"], arrays.get("weight"))


def check_chunk(rows: EdgeArrays, weight_dtype: np.dtype | None, files: str) -> Facts:
    """Check the weights of one chunk of the rows, and return facts about the chunk.

    ``weight_dtype`` is the type that float weights will have, None if their own. ``files`` names
    the files of the edge list in errors.

    Raises EdgeListError: a weight that this engine does not support.
    """
    xp = namespace(rows.src)
    ids = to_host(xp.unique(xp.concatenate([rows.src, rows.dst])))
    n_loops = int((rows.src == rows.dst).sum())
    low = 0
    high = 0
    n_negative_zeros = 0
    if rows.weight is not None:
        # on the host, where comparisons and casts keep subnormal numbers
        weight = to_host(rows.weight)
        if weight.size:
            low = weight.min().item()
            high = weight.max().item()
        if weight.dtype.kind in "iu":
            _refuse(weight[weight < 0], files, "negative")
        else:
            if weight_dtype is None:
                weight_dtype = weight.dtype
            n_negative_zeros = _check_floats(weight, weight_dtype, files)
    return Facts(rows.src.size, n_loops, n_negative_zeros, ids, low, high)


def _check_floats(weight: np.ndarray, dtype: np.dtype, files: str) -> int:
    """Raise EdgeListError for weights that are infinite, negative or subnormal in the type
    ``dtype``. Return how many are -0.0.
    """
    with np.errstate(over="ignore"):  # infinite ones are refused
        cast = weight.astype(dtype, copy=False)
    _refuse(weight[~np.isfinite(cast)], files, "infinite")
    _refuse(weight[cast < 0], files, "negative")
    # a weight that the cast rounds to 0 is one of these, too
    _refuse(weight[(weight != 0) & (cast < np.finfo(dtype).tiny)], files, "tiny")
    return int(((cast == 0) & np.signbit(cast)).sum())


# by what is wrong with a weight, why it is refused and what to do
_WHY = {
    "infinite": "every weight must be finite: drop or correct the rows",
    "negative": (
        "cuGraph takes none below zero; --engine kepler does, on a machine "
        "that holds the graph (--device cpu?)"
    ),
    "tiny": "numbers so small lose bits on a GPU; scale the weights up, or take --engine kepler",
}


def _refuse(weights: np.ndarray, files: str, what: str) -> None:
    """Raise EdgeListError unless ``weights``, those that are wrong, is empty. ``what``, a key of
    ``_WHY``, says what is wrong with them.
    """
    if weights.size:
        raise EdgeListError(
            f"{files}: weight {weights[0]:g} ({what}; {weights.size} such rows in one block): "
            f"{_WHY[what]}"
        )


def number_vertices(
    rows: EdgeArrays,
    ids: np.ndarray,
    weight_dtype: np.dtype | None,
    index: np.dtype,
    both_ways: bool,
) -> EdgeArrays:
    """Convert rows to edges between vertex numbers, which are positions in ``ids``. Return them
    sorted, without self-loops and parallel edges.

    ``ids`` are those of all vertices, ascending, NumPy. ``weight_dtype`` is the type of the
    weights, None without them, and ``index`` that of vertex numbers. ``both_ways`` adds each edge
    in the other direction.
    """
    xp = namespace(rows.src)
    ids = xp.asarray(ids)
    # The ends as vertex numbers: each id is in ``ids``, so that its position is found exactly.
    src, dst = (
        xp.searchsorted(ids, end.astype(ids.dtype, copy=False)).astype(index)
        for end in (rows.src, rows.dst)
    )
    weight = None
    if weight_dtype is not None and rows.weight is not None:
        weight = rows.weight.astype(weight_dtype, copy=False)
        weight = weight + weight_dtype.type(0)  # -0.0 becomes 0.0
    edges = EdgeArrays(src, dst, weight).take(src != dst)
    del src, dst, weight  # memory, before the edges are sorted
    if both_ways:
        edges = _concatenate([edges, EdgeArrays(edges.dst, edges.src, edges.weight)])
    return _sort_distinct(edges, ids.size)


def _concatenate(pieces: Sequence[EdgeArrays]) -> EdgeArrays:
    """Return the edges of all pieces, one after the other."""
    xp = namespace(pieces[0].src)
    weight = None
    if pieces[0].weight is not None:
        weight = xp.concatenate([piece.weight for piece in pieces])
    return EdgeArrays(
        xp.concatenate([piece.src for piece in pieces]),
        xp.concatenate([piece.dst for piece in pieces]),
        weight,
    )


def _sort_distinct(edges: EdgeArrays, n_vertices: int) -> EdgeArrays:
    """Return edges sorted by (src, dst), with the smallest weight of parallel edges."""
    xp = namespace(edges.src)
    key = edges.src.astype(np.int64) * n_vertices + edges.dst  # both ends in one integer
    if edges.weight is None:
        order = xp.argsort(key, kind="stable")
    else:  # stable, so that parallel edges stay sorted by weight
        order = xp.argsort(edges.weight, kind="stable")
        order = order[xp.argsort(key[order], kind="stable")]
    key = key[order]
    is_first = xp.ones(key.size, bool)  # of its parallel edges
    is_first[1:] = key[1:] != key[:-1]
    return edges.take(order[is_first])


def select_sample(edges: EdgeArrays, count: int) -> np.ndarray:
    """Return where some edges begin, vertex numbers in host memory: those of edges at equal
    intervals, about ``count`` of them, or up to twice as many. The edges must be sorted.
    """
    step = max(1, edges.src.size // count)
    return to_host(edges.src[::step])


def split(edges: EdgeArrays, bounds: np.ndarray) -> list[EdgeArrays]:
    """Split sorted edges by where they begin. Piece i has those that leave the vertices from
    ``bounds[i]`` to below ``bounds[i + 1]``; ``bounds``, int64, ascend.
    """
    xp = namespace(edges.src)
    bounds = xp.asarray(bounds.astype(edges.src.dtype))
    positions = to_host(xp.searchsorted(edges.src, bounds)).tolist()
    return [edges.take(slice(begin, end)) for begin, end in pairwise(positions)]


def join(pieces: Sequence[EdgeArrays], n_vertices: int) -> EdgeArrays:
    """Join pieces, whose edges leave the same range of vertices, to a partition: sorted, without
    parallel edges. ``n_vertices`` is that of the whole graph.
    """
    return _sort_distinct(_concatenate(pieces), n_vertices)


def outline(
    partition: EdgeArrays, low: int, high: int, n_vertices: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the degrees of the vertices from ``low`` to below ``high``, int64, which the edges of
    the partition leave; and a bitmap, as ``_bitmap`` makes it, of the vertices that edges lead to.
    """
    xp = namespace(partition.src)
    degrees = xp.bincount((partition.src - low).astype(np.int64), minlength=high - low)
    return to_host(degrees).astype(np.int64), _bitmap(partition.dst, n_vertices)


def host_column(partition: EdgeArrays, name: str) -> np.ndarray:
    """Return the array ``name`` of a partition, "src", "dst" or "weight", in host memory."""
    return to_host(getattr(partition, name))


def make_frame(partition: EdgeArrays) -> Any:
    """Return the edges as a cuDF frame ``src, dst[, weight]`` for cuGraph."""
    import cudf

    columns = {"src": partition.src, "dst": partition.dst}
    if partition.weight is not None:
        columns["weight"] = partition.weight
    return cudf.DataFrame(columns)


def results_of_frame(frame: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return vertex numbers and their distances, NumPy, from one worker's piece of cuGraph's
    result.
    """
    return to_host(frame["vertex"].values), to_host(frame["distance"].values)


def check(partition: EdgeArrays, distance: np.ndarray, limit: float | None) -> Checked:
    """Check every edge of a partition against the distances from one source, in the arithmetic of
    the traversal, without a tolerance.

    ``distance``, a NumPy array of shape (n_vertices,), has the distances of all vertices: int32
    hops, -1 where unreached, or weighted distances, infinite where unreached. They should be
    complete up to ``limit``; None stands for no limit.
    """
    # An edge counts if the distance along it is within the limit.
    edges = _look_up(partition, distance)
    is_within = edges.is_reached
    if limit is not None:
        is_within = is_within & (edges.along <= as_distance(limit, edges.along.dtype))
    is_shorter = edges.along < edges.head
    if distance.dtype.kind == "i":  # -1 is less than all hops, and an edge would shorten it
        is_shorter |= edges.head == UNREACHED
    longer = is_within & is_shorter
    overflows = is_within & (edges.along == np.inf)
    wrong = namespace(longer).flatnonzero(longer | overflows)

    is_from_nearer = edges.explains() & (edges.tail < edges.head)
    return Checked(
        longer=int(longer.sum()),
        overflows=int(overflows.sum()),
        at=int(partition.dst[wrong[0]]) if wrong.size else -1,
        founded=_bitmap(partition.dst[is_from_nearer], distance.size),
    )


def spread(partition: EdgeArrays, distance: np.ndarray, founded: np.ndarray) -> np.ndarray:
    """Return a bitmap, as ``_bitmap`` makes it, of the vertices whose distance an edge of length
    zero explains that comes from a founded vertex. These are founded, too.

    A vertex is founded if edges explain its distance all the way from the source. ``distance`` has
    weighted distances of all vertices from one source, infinite where unreached. ``founded`` is a
    bitmap of the vertices that are founded so far.
    """
    edges = _look_up(partition, distance)
    xp = namespace(partition.src)
    is_founding = edges.explains() & (edges.tail == edges.head)
    is_founding &= xp.unpackbits(xp.asarray(founded))[partition.src].astype(bool)
    return _bitmap(partition.dst[is_founding], distance.size)


class _EdgeDistances(NamedTuple):
    """Distances per edge of a partition: arrays of shape (n_edges,) on its device, in the order of
    its edges.
    """

    tail: Any  # distance of the vertex that the edge leaves
    head: Any  # distance of the vertex that it enters
    along: Any  # distance of the tail plus the weight of the edge, or plus one hop
    is_reached: Any  # bool: whether the tail is reached; otherwise ``along`` means nothing

    def explains(self) -> Any:
        """Return a mask of the edges that explain the distances of their heads: they lead to
        exactly this distance.
        """
        return self.is_reached & (self.along == self.head)


def _look_up(partition: EdgeArrays, distance: np.ndarray) -> _EdgeDistances:
    """Return the distances that belong to each edge of a partition. ``distance`` has those of all
    vertices, NumPy: hops, or weighted distances.
    """
    xp = namespace(partition.src)
    distance_here = xp.asarray(distance)
    tail = distance_here[partition.src]
    head = distance_here[partition.dst]
    if distance.dtype.kind == "i":
        along = tail + distance.dtype.type(1)
        return _EdgeDistances(tail, head, along, tail != UNREACHED)
    with np.errstate(over="ignore"):  # an overflow is found by ``check``
        along = tail + partition.weight
    return _EdgeDistances(tail, head, along, xp.isfinite(tail))


def _bitmap(vertices: Any, n_vertices: int) -> np.ndarray:
    """Return a bitmap of some vertices, given by their numbers: a uint8 array of
    ceil(n_vertices / 8) bytes in host memory. Vertex v has bit v, 1 if it is among them; the
    highest bit of a byte comes first, as ``numpy.packbits`` has it.
    """
    xp = namespace(vertices)
    is_in = xp.zeros(n_vertices, bool)
    is_in[vertices] = True
    return to_host(xp.packbits(is_in))
