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
    """Return the out-degree of every vertex, int64."""
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
    # In integers, so that the deviation is rounded once: that of equal degrees is 0.
    squares = n_vertices * (low + (high << 32)) - n_edges * n_edges
    return n_edges / n_vertices, math.sqrt(squares) / n_vertices, largest


def hub(offsets: Array) -> int:
    """Return the first vertex of the highest degree."""
    n_vertices = offsets.size - 1
    _, _, largest = degree_statistics(offsets)
    first = cp.asarray(np.full(1, n_vertices, np.int64))  # the kernel lowers it
    launch(
        kernel(_FIRST_OF_DEGREE, np.int32),
        n_vertices,
        (offsets, np.int64(n_vertices), np.int64(largest), first),
    )
    return int(first.get()[0])


def degrees_at(offsets: Array, vertices: np.ndarray) -> np.ndarray:
    """Return the out-degrees of some vertices, NumPy."""
    counts = cp.empty(vertices.size, np.int64)
    sampled = (cp.asarray(vertices, np.int64), np.int64(vertices.size))
    launch(kernel(_DEGREES_AT, np.int32), vertices.size, (offsets, *sampled, counts))
    return counts.get()


def edges_at(
    offsets: Array, targets: Array, positions: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the vertices that some edges leave and those that they enter, NumPy; edges are
    positions.
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
    """Return the number of vertices that a search reached, of their edges, and of vertices at no
    more than ``half`` hops.
    """
    n_vertices = offsets.size - 1
    counts = cp.zeros(3, np.uint64)
    args = (offsets, cp.ascontiguousarray(distance), np.int64(n_vertices), np.int32(half), counts)
    launch(kernel(_COUNT_REACHED, np.int32), n_vertices, args)
    vertices, edges, early = counts.get().tolist()
    return vertices, edges, early


def max_hops(rows: Array) -> int:
    """Return the largest of hop counts of shape (k, n), -1 if all are unreached; rows may be
    farther apart than they are long.
    """
    memory, pitch = flatten_distances(rows)
    largest = cp.asarray(np.full(1, -1, np.int32))
    sizes = (np.int32(rows.itemsize), pitch, np.int64(rows.shape[1]), np.int64(len(rows)))
    launch(kernel(_MAX_HOPS, np.int32), rows.shape[1], (memory.view(np.uint8), *sizes, largest))
    return int(largest.get()[0])


def hubs(offsets: Array, min_degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the vertices of at least ``min_degree`` edges, ascending, and their degrees, NumPy."""
    n_vertices = offsets.size - 1
    n_edges = int(offsets[-1:].get()[0])
    # (vertex, degree) in any order; no more vertices have so many edges
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
    """Return the edge chunks of adjacency lists of at least ``chunk`` edges, as uint64 words: the
    number of the chunk in its list in the upper half, and the vertex in the lower.
    """
    vertices, lengths = hubs(offsets, chunk)
    n_chunks = -(-lengths // chunk)
    indexes = positions_in_groups(n_chunks).astype(np.uint64)
    vertex_of_chunk = np.repeat(vertices, n_chunks).astype(np.uint64)
    return cp.asarray(indexes << np.uint64(32) | vertex_of_chunk)
