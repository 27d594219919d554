"""Numbers about a graph on a GPU, by which strategies and constants are chosen; see
graph_statistics.cu.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from .._arrays import Array, flatten_distances, positions_in_groups
from . import cp
from .compiler import kernel
from .kernel_spec import make_entries
from .launch import launch

BLOCK = 256

_FILE = Path(__file__).parent / "kernels" / "graph_statistics.cu"
_entry = make_entries(_FILE, BLOCK)
_DEGREES = _entry("graph_degrees")
_DEGREE_SUMS = _entry("graph_degree_sums")
_FIRST_OF_DEGREE = _entry("graph_first_of_degree")
_DEGREES_AT = _entry("graph_degrees_at")
_EDGES_AT = _entry("graph_edges_at")
_COUNT_REACHED = _entry("graph_count_reached")
_LIST_HUBS = _entry("graph_list_hubs")
_MAX_HOPS = _entry("graph_max_hops")
ENTRIES = (
    _DEGREES,
    _DEGREE_SUMS,
    _FIRST_OF_DEGREE,
    _DEGREES_AT,
    _EDGES_AT,
    _COUNT_REACHED,
    _LIST_HUBS,
    _MAX_HOPS,
)


def degrees(offsets: Array) -> Array:
    """Return the out-degree of every vertex, CuPy int64. ``offsets`` are those of the CSR, here and
    below.
    """
    n_vertices = offsets.size - 1
    counts = cp.empty(n_vertices, np.int64)
    launch(kernel(_DEGREES, np.int32), n_vertices, (offsets, np.int64(n_vertices), counts))
    return counts


def degree_statistics(offsets: Array) -> tuple[float, float, int]:
    """Return the mean, standard deviation and maximum of the out-degrees; zeros without a vertex."""
    n_vertices = offsets.size - 1
    if not n_vertices:
        return 0.0, 0.0, 0
    sums = cp.zeros(3, np.uint64)
    launch(kernel(_DEGREE_SUMS, np.int32), n_vertices, (offsets, np.int64(n_vertices), sums))
    largest, low, high = sums.get().tolist()
    n_edges = int(offsets[-1:].get()[0])
    # The kernel adds up the lower 32 bits of the squares of degrees, and the bits above,
    # separately: a square may exceed 64 bits. The rest is computed in integers, so that the
    # deviation is rounded once: that of equal degrees is 0.
    squares = n_vertices * (low + (high << 32)) - n_edges * n_edges
    return n_edges / n_vertices, math.sqrt(squares) / n_vertices, largest


def hub(offsets: Array) -> int:
    """Return the number of the first vertex that has the highest degree."""
    n_vertices = offsets.size - 1
    _, _, largest = degree_statistics(offsets)
    # a kernel's atomic minimum lowers it to the first vertex of this degree
    first = cp.asarray(np.full(1, n_vertices, np.int64))
    launch(
        kernel(_FIRST_OF_DEGREE, np.int32),
        n_vertices,
        (offsets, np.int64(n_vertices), np.int64(largest), first),
    )
    return int(first.get()[0])


def degrees_at(offsets: Array, vertices: np.ndarray) -> np.ndarray:
    """Return the out-degrees of the vertices with these numbers, NumPy int64, in their order."""
    counts = cp.empty(vertices.size, np.int64)
    sampled = (cp.asarray(vertices, np.int64), np.int64(vertices.size))
    launch(kernel(_DEGREES_AT, np.int32), vertices.size, (offsets, *sampled, counts))
    return counts.get()


def edges_at(
    offsets: Array, targets: Array, positions: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return, for some edges of a CSR, the vertices that they leave and those that they enter,
    NumPy int64. ``positions`` are those of the edges in ``targets``.
    """
    sources = cp.empty(positions.size, np.int64)
    ends = cp.empty(positions.size, np.int64)
    sampled = (
        np.int64(offsets.size - 1),
        cp.asarray(positions, np.int64),
        np.int64(positions.size),
    )
    launch(
        kernel(_EDGES_AT, targets.dtype),
        positions.size,
        (offsets, targets, *sampled, sources, ends),
    )
    return sources.get(), ends.get()


def count_reached(offsets: Array, distance: Array, half: int) -> tuple[int, int, int]:
    """Return three numbers of a search: the vertices that it reached, the edges that leave them,
    and the vertices that are reached by ``half`` hops or fewer.

    ``distance`` has hops of shape (n_vertices,), -1 where unreached.
    """
    n_vertices = offsets.size - 1
    counts = cp.zeros(3, np.uint64)
    args = (offsets, cp.ascontiguousarray(distance), np.int64(n_vertices), np.int32(half), counts)
    launch(kernel(_COUNT_REACHED, np.int32), n_vertices, args)
    vertices, edges, early = counts.get().tolist()
    return vertices, edges, early


def max_hops(rows: Array) -> int:
    """Return the largest of hop counts of shape (k, n), -1 if all are unreached (-1).

    Rows need not follow each other closely: they may be a part of the columns of an array.
    """
    memory, pitch = flatten_distances(rows)
    largest = cp.asarray(np.full(1, -1, np.int32))
    sizes = (np.int32(rows.itemsize), pitch, np.int64(rows.shape[1]), np.int64(len(rows)))
    launch(kernel(_MAX_HOPS, np.int32), rows.shape[1], (memory.view(np.uint8), *sizes, largest))
    return int(largest.get()[0])


def hubs(offsets: Array, min_degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the vertices that at least ``min_degree`` edges leave, ascending, and
    their degrees; both NumPy int64.
    """
    n_vertices = offsets.size - 1
    n_edges = int(offsets[-1:].get()[0])
    # Pairs (vertex, degree), in any order. More than ``n_edges // min_degree`` vertices cannot have
    # so many edges.
    pairs = cp.empty(2 * (n_edges // min_degree), np.int64)
    counter = cp.zeros(1, np.int64)
    launch(
        kernel(_LIST_HUBS, np.int32),
        n_vertices,
        (offsets, np.int64(n_vertices), np.int64(min_degree), pairs, counter),
    )
    rows = pairs[: 2 * int(counter.get()[0])].get().reshape(-1, 2)
    rows = rows[np.argsort(rows[:, 0])]
    return rows[:, 0], rows[:, 1]


def chunks_of_hubs(offsets: Array, chunk: int) -> Array:
    """Divide adjacency lists of at least ``chunk`` edges into edge chunks, slices of ``chunk``
    edges of which the last may be shorter. Kernels visit the chunks of a list in parallel.

    Return a CuPy uint64 array with a word per chunk: the number of the chunk in its list in the
    upper 32 bits, and the vertex in the lower.
    """
    vertices, lengths = hubs(offsets, chunk)
    n_chunks = -(-lengths // chunk)
    indexes = positions_in_groups(n_chunks).astype(np.uint64)
    vertex_of_chunk = np.repeat(vertices, n_chunks).astype(np.uint64)
    return cp.asarray(indexes << np.uint64(32) | vertex_of_chunk)
