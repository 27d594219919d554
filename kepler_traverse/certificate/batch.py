"""Certify distances from many sources without predecessors: each edge is read once for a block of
sources.

Without predecessors C3 and C4 are one equation: the distance of a vertex, except the source, is the
minimum over its in-neighbors of their distance plus the weight of the edge. C5 remains for vertices
that are explained only by edges of length zero, or by weights that are rounded away (d + w == d).
They must be reached along such edges from vertices that a strictly nearer vertex explains.

A block has as many sources as fit into a tile of 64 bytes per vertex. ``batch_cpu`` and
``batch_gpu`` check one block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from .._arrays import Array, as_distance, get_device
from ..cuda.graph_statistics import max_hops
from ..graph import Graph

# bytes of the distances of one vertex from a block of sources; memory is accessed in units of this
# size
TILE_BYTES = 64

C1, C2, C3, C4, C5 = range(5)  # rows of findings
# Findings without a violation. A row per rule: the number of violations, and of an example the
# position of the source among those that are checked, and the vertex number.
NOTHING = np.zeros((5, 3), np.int64)


class Block(NamedTuple):
    """Sources that are checked together: their distances from one vertex fit into a tile."""

    sources: np.ndarray  # int64 array of shape (k,): vertex numbers
    distances: Array  # of shape (k, n_vertices), in the type that the caller has
    # the type of the keys, which stand for distances in a tile: unsigned for hops, else that of the
    # distances
    kind: np.dtype
    limits: list[Any]  # up to where the distances of each source are complete; None: everywhere


# ``summaries(graph, blocks)`` yields the size of each block and its findings in the form of
# ``check_distances``. C3 to C5 are checked only where C1 and C2 hold.
Summaries = Callable[[Graph, Iterator[Block]], Iterator[tuple[int, np.ndarray]]]


def check_distances(
    summaries: Summaries, graph: Graph, sources: np.ndarray, distances: Array, limits: list[Any]
) -> np.ndarray:
    """Check distances from several sources, on the device of the graph. Its reverse is made if it
    is not there yet.

    ``summaries`` is that of ``batch_cpu`` or ``batch_gpu``. Sources are vertex numbers, int64,
    NumPy. Distances, of shape (n_sources, n_vertices), are hops as int8, int16 or int32 with -1 for
    unreached, or weighted as float32 or float64 with inf; those from each source are complete up to
    its limit, None for everywhere. Return an int64 array of shape (5, 3), NumPy: for each of C1 to
    C5 the number of violations, and the position of the source and the vertex of an example.
    """
    findings = NOTHING.copy()
    first_row = 0
    for size, block_findings in summaries(graph, _blocks(sources, distances, limits)):
        # The example of a rule is that of the first block which has one. A block counts sources
        # from 0 on.
        is_first = (findings[:, 0] == 0) & (block_findings[:, 0] > 0)
        findings[is_first, 1:] = block_findings[is_first, 1:] + [first_row, 0]
        findings[:, 0] += block_findings[:, 0]
        first_row += size
    return findings


def _blocks(sources: np.ndarray, distances: Array, limits: list[Any]) -> Iterator[Block]:
    """Yield the sources in blocks of as many as fit into a tile of TILE_BYTES bytes per vertex,
    with their distances and limits.
    """
    first = 0  # position of the first source of the block, and ``end`` that behind its last
    while first < sources.size:
        # The largest hop count of a block decides whether hops are narrowed to one byte. So the
        # block begins with as many rows as that would allow, and loses some if it does not.
        least_bytes = distances.itemsize if distances.dtype.kind == "f" else 1
        block = distances[first : first + TILE_BYTES // least_bytes]
        kind = _key_type(block)
        block = block[: TILE_BYTES // kind.itemsize]
        end = first + len(block)
        yield Block(sources[first:end], block, kind, limits[first:end])
        first = end


def _key_type(distances: Array) -> np.dtype:
    """Return the narrowest type that holds the distances of a block, so that a tile holds many: an
    unsigned one for hops, else that of the distances.

    Its two largest numbers stay free: the largest stands for unreached, and an edge from the
    farthest vertex brings one hop more, which must differ from that.
    """
    if distances.dtype.kind == "f":
        weighted: np.dtype = distances.dtype
        return weighted
    is_on_gpu = get_device(distances) == "cuda"
    if distances.itemsize == 1:  # int8 always fits into one byte
        largest = 0
    elif is_on_gpu:
        largest = max_hops(distances)
    else:
        largest = int(distances.max())
    return next(np.dtype(f"u{size}") for size in (1, 2, 4) if largest < 2 ** (8 * size) - 2)


def bound(limit: float | None, kind: np.dtype) -> Any:
    """Return ``limit`` in ``kind``, the type of the keys. Their largest number, or infinity, means
    no limit, as None does.
    """
    if kind.kind == "f":
        return as_distance(limit, kind)
    largest = np.iinfo(kind).max
    return kind.type(largest if limit is None else min(limit, largest))


def leads_farther(min_weight: Any, farthest: Any) -> bool:
    """Return whether d + w > d, as floats are rounded, for the smallest weight ``min_weight`` of a
    graph and the largest distance ``farthest``. If so, no cycle has length zero.
    """
    # A weight of half a unit in the last place may be rounded away; a whole unit is not.
    return bool(min_weight > 0 and min_weight >= np.spacing(farthest))
