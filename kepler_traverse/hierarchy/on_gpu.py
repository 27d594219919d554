"""The arrays of a hierarchy on a GPU: edges by vertex number, and the levels of a sweep."""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

import numpy as np

from ..cpu.compiled import njit
from ..cuda import cp
from .arrays import Edges, Hierarchy, renumbered


class EdgesOnGpu(NamedTuple):
    """Edges of a hierarchy in one direction in compressed sparse rows, CuPy arrays.

    The row of a vertex (or place, see ``Sweep``) has the edges that join it to those above it.
    """

    offsets: Any  # int64 of shape (n + 1,): where the edges of each row begin, and the end
    heads: Any  # int32: the row above at the other end of each edge
    weights: Any  # int32 or int64: multiples of the unit of the hierarchy


class Sweep(NamedTuple):
    """The arrays of a sweep, which goes over the levels of a hierarchy from the top to the bottom
    and lowers the distances of each vertex by its edges from above.

    A vertex that takes part has a line of distances. A place is the number of its line.
    """

    downward: EdgesOnGpu  # the edges to each place from places above it
    by_level: Any  # int32 array of shape (n_places,), CuPy: places from the top level to the bottom
    # int64 array of shape (n_levels + 1,), NumPy: where each level begins in ``by_level``, and the
    # end
    levels: np.ndarray
    level_offsets: Any  # ``levels`` on the GPU, int64, CuPy
    # int32 array of shape (n_vertices,), CuPy, or None: the place of each vertex, -1 for one that
    # takes no part. None: all vertices take part, and the place is the vertex number.
    places: Any

    @property
    def n_places(self) -> int:
        """Number of vertices that take part."""
        return int(self.by_level.size)


class HierarchyOnGpu:
    """A hierarchy in the memory of the current GPU.

    Attributes
    ----------
    upward : EdgesOnGpu
        The edges from each vertex to vertices above it. Rows and heads are vertex numbers, not
        positions.
    sweep : Sweep
        Of all vertices.
    """

    def __init__(self, hierarchy: Hierarchy):
        """Copy a hierarchy to the current GPU."""
        self._hierarchy = hierarchy
        # Renumber rows and heads from positions to vertex numbers.
        order = hierarchy.order
        position = hierarchy.position
        self.upward = _on_gpu(renumbered(hierarchy.upward, position, order))
        if hierarchy.is_symmetric:
            downward = self.upward
        else:
            downward = _on_gpu(renumbered(hierarchy.downward, position, order))
        by_level, levels = _levels(hierarchy.downward)
        self.sweep = Sweep(downward, cp.asarray(order[by_level]), levels, cp.asarray(levels), None)

    def restrict(self, targets: np.ndarray) -> tuple[Sweep, np.ndarray]:
        """Return a sweep that finds the distances of some vertices only, and their places in it,
        int64 of shape (k,), NumPy.

        ``targets`` are the vertex numbers of these vertices, int64 of shape (k,), NumPy.
        """
        hierarchy = self._hierarchy
        # ``places`` is by position; ``Sweep.places`` is by vertex.
        places, edges = hierarchy.restrict(targets)
        by_level, levels = _levels(edges)
        place_of_vertex = places[hierarchy.position]
        sweep = Sweep(
            _on_gpu(edges),
            cp.asarray(by_level),
            levels,
            cp.asarray(levels),
            cp.asarray(place_of_vertex),
        )
        return sweep, place_of_vertex[targets].astype(np.int64)


# Of each hierarchy that is alive, the copies by the number of the GPU.
_COPIES: weakref.WeakKeyDictionary[Hierarchy, dict[int, HierarchyOnGpu]] = (
    weakref.WeakKeyDictionary()
)


def on_gpu(hierarchy: Hierarchy) -> HierarchyOnGpu:
    """Return the copy of a hierarchy on the current GPU. It is made at the first call for this GPU,
    and kept as long as the hierarchy itself.
    """
    copies = _COPIES.setdefault(hierarchy, {})
    device = cp.cuda.runtime.getDevice()
    if device not in copies:
        copies[device] = HierarchyOnGpu(hierarchy)
    return copies[device]


def _on_gpu(edges: Edges) -> EdgesOnGpu:
    """Return a copy of ``edges`` on the current GPU."""
    return EdgesOnGpu(*(cp.asarray(np.ascontiguousarray(array)) for array in edges))


def _levels(edges: Edges) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of ``edges`` by level, from the top level to the bottom, int32, and where
    each level begins, with the end, int64 of shape (n_levels + 1,).

    Edges lead from a row to rows above it, which come before it. The height of a row is only as
    large as the rows below it require, so that the levels at the top are small. Within a level rows
    keep their order, in which neighbors are close in memory.
    """
    heights = _heights(edges.offsets, edges.heads)
    n_levels = int(heights.max(initial=-1)) + 1  # 0 without a row
    level = n_levels - 1 - heights
    by_level = np.argsort(level, kind="stable").astype(np.int32)
    counts = np.bincount(level, minlength=n_levels)
    return by_level, np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


@njit(cache=True, nogil=True)
def _heights(offsets, heads):
    """Return the height of each row, int32 of shape (n,): 0 if no edge leads to it, else 1 more
    than the largest height of the rows from which one leads to it.
    """
    n = offsets.size - 1
    height = np.zeros(n, np.int32)
    # Heads come before their row, so from the last row on each height is final when it is read.
    for row in range(n - 1, -1, -1):
        for e in range(offsets[row], offsets[row + 1]):
            height[heads[e]] = max(height[heads[e]], height[row] + 1)
    return height
