"""The passes over vertices and edges on a GPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .._arrays import NO_PREDECESSOR, UNREACHED, at_most
from ..cuda import cp
from ..cuda.entry import WARP, Entry, arguments
from ..cuda.launch import launch
from ..cuda.loader import kernel
from ..errors import InputError

BLOCK = 256

_FILE = Path(__file__).parent / "kernels" / "check.cu"
_HOPS = Entry(
    "certificate_check_hops_warp",
    _FILE,
    BLOCK,
    arguments(
        "offset_t* offsets",
        "vertex_t* targets",
        "int64 n_vertices",
        "int32* distance",
        "vertex_t* predecessor",
        "int32 limit",
        "uint8* explained",
        "int64* counts",
    ),
    item_threads=WARP,
)
_WEIGHTED = Entry(
    "certificate_check_weighted_warp",
    _FILE,
    BLOCK,
    arguments(
        "offset_t* offsets",
        "vertex_t* targets",
        "weight_t* weights",
        "int64 n_vertices",
        "weight_t* distance",
        "vertex_t* predecessor",
        "weight_t limit",
        "uint8* explained",
        "int64* counts",
    ),
    item_threads=WARP,
)
_UNEXPLAINED = Entry(
    "certificate_count_unexplained",
    _FILE,
    BLOCK,
    arguments("vertex_t* predecessor", "int64 n_vertices", "uint8* explained", "int64* counts"),
)
ENTRIES = (_HOPS, _WEIGHTED, _UNEXPLAINED)


def check_vertices(result, limit, negative: bool) -> tuple[int, int, int, int]:
    """Look at each vertex alone, for C1 and C2, as ``certificate.cpu.check_vertices`` does."""
    d, p = result.distance, result.predecessor
    if d.dtype.kind == "i":
        unreached, sound = d == UNREACHED, d >= UNREACHED
    else:
        unreached, sound = cp.isposinf(d), ~cp.isnan(d) & ~cp.isneginf(d)
        bits = d.view(f"i{d.itemsize}")
        # No sum of weights is -0.0, which is the smallest integer.
        sound &= bits != np.iinfo(bits.dtype).min if negative else bits >= 0
    sound &= (p >= NO_PREDECESSOR) & (p < p.size) & ((p == NO_PREDECESSOR) == unreached)
    sound &= unreached | at_most(d, limit)
    bad = int(d.size - sound.sum())
    first = int(cp.argmin(sound)) if bad else d.size
    return int((p == cp.arange(p.size)).sum()), bad, first, int(d.size - unreached.sum())


def check_edges(graph, source: int, distance, predecessor, limit, reached: int) -> np.ndarray:  # noqa: ARG001
    """Check C3 and C4 in one pass over the edges, as ``certificate.cpu.check_edges`` does.

    Parameters
    ----------
    graph : Graph
    source : int
    distance, predecessor : arrays of shape (n_vertices,)
        In range already. Integer distances are hops, floating ones are weighted.
    limit : scalar of the distances' type
        Vertices beyond it may be unreached; the largest value means no limit.
    reached : int
        Vertices reached.

    Returns
    -------
    numpy int64 array of shape (5,)
        Edges that break C3, the smallest vertex such an edge leads to, vertices that break C4, the smallest of them,
        vertices no farther than their predecessor (where C4 is broken, perhaps not all).

    Raises
    ------
    InputError
        The distances are of another type than this graph's traversals have.
    """
    weighted = distance.dtype.kind == "f"
    expected = graph.weights.dtype if weighted and graph.weights is not None else np.dtype(np.int32)
    if distance.dtype != expected:
        raise InputError(f"distances of this graph are {expected}, the result has {distance.dtype}; convert the column")
    n, types = np.int64(graph.n_vertices), (graph.targets.dtype, expected if weighted else np.float32)
    explained = cp.zeros(graph.n_vertices, np.uint8)
    explained[source] = 1
    counts = cp.asarray(np.array([0, n, 0, n], np.int64))
    found = (n, distance, predecessor, limit, explained, counts)
    if weighted:
        launch(kernel(_WEIGHTED, *types), n, (graph.offsets, graph.targets, graph.weights, *found))
    else:
        launch(kernel(_HOPS, *types), n, (graph.offsets, graph.targets, *found))
    launch(kernel(_UNEXPLAINED, *types), n, (predecessor, n, explained, counts))
    return np.append(counts.get(), _level(source, distance, predecessor))


def _level(source: int, distance, predecessor) -> int:
    if distance.dtype.kind == "i":
        return 0  # a hop leads farther
    back = cp.where(predecessor == NO_PREDECESSOR, source, predecessor)
    level = (predecessor != NO_PREDECESSOR) & ~(distance[back] < distance)
    level[source] = False
    return int(level.sum())
