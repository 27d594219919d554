"""Flows on a GPU: volumes of pairs on the paths of given predecessors, summed per stored edge and vertex; see flows.cu.

For k sources and n vertices, the kernels read k n predecessors three times, and clear, fill and read 24 bytes per source and
vertex. Each vertex of a tree is left once, with up to three atomics. Atomics on the sums of edges are few: a thread adds the
volumes of up to ROWS sources over the same edge itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arrays import Array, flatten_distances, is_hops
from ..cuda import cp
from ..cuda.compiler import Request, kernel
from ..cuda.kernel_spec import WARP, entries_of
from ..cuda.launch import launch

if TYPE_CHECKING:
    from ..graph import Graph

BLOCK = 256
ROWS = 32  # sources whose volumes a thread adds before it touches a sum that others add to
CELLS_AT_ONCE = 1 << 26  # sources times vertices whose volumes are held at once, 1.6 GB, but at least those of one source

_FILE = Path(__file__).parent / "kernels" / "flows.cu"
_entry = entries_of(_FILE, BLOCK, constants=(("ROWS", ROWS), ("HOP_BYTES", 0)))
_PREDECESSORS = _entry("flows_predecessors_warp", struct="PredecessorArgs", item_threads=WARP)
_PLACE = _entry("flows_place", struct="PlaceArgs")
_CHILDREN = _entry("flows_children", struct="TreeArgs")
_GATHER = _entry("flows_gather", struct="TreeArgs")
_ADD = _entry("flows_add", struct="AddArgs")
ENTRIES = (_PREDECESSORS, _PLACE, _CHILDREN, _GATHER, _ADD)


def predecessors(graph: Graph, sources: np.ndarray, distance: Array) -> Array | None:
    """Return the canonical predecessors that distances from positive weights, or hops, imply.

    Parameters
    ----------
    graph : Graph
        On a GPU. Its reverse is made if it is not there yet.
    sources : int64 array of shape (k,), NumPy
    distance : array of shape (k, n_vertices), CuPy

    Returns
    -------
    array of shape (k, n_vertices), CuPy, or None
        As in ``search.results.Traversals``. None if a shortest path has an edge that adds nothing to its length.
    """
    of_hops = is_hops(distance.dtype)
    reverse = (graph if of_hops else graph.derived.sums_in(distance.dtype.name)).reverse
    memory, pitch = flatten_distances(distance)
    found, without = cp.empty(distance.shape, graph.targets.dtype), cp.zeros(1, np.int64)
    args = {
        "in_offsets": reverse.offsets,
        "in_targets": reverse.targets,
        "in_weights": None if of_hops else reverse.weights,
        "n_vertices": np.int64(distance.shape[1]),
        "n_rows": np.int64(len(distance)),
        "distance": memory.view(np.uint8),
        "pitch": pitch,
        "sources": cp.asarray(sources, np.int64),
        "predecessor": found,
        "without": without,
    }
    entry = _PREDECESSORS.variant(HOP_BYTES=distance.itemsize if of_hops else 0)
    launch(
        kernel(entry, found.dtype, np.float32 if of_hops else distance.dtype),
        len(distance) * -(-distance.shape[1] // WARP),
        args,
    )
    return None if int(without.get()[0]) else found


class PairVolumes:
    """Volumes of pairs, as ``add_flows`` takes them.

    Parameters
    ----------
    offsets : int64 array of shape (k + 1,), NumPy
        The pairs of each source are those from ``offsets[i]`` to ``offsets[i + 1] - 1``.
    targets : int64 array of shape (n_pairs,), NumPy
        Vertex numbers.
    low, high : uint64 and int64 arrays of shape (n_pairs,), NumPy
        Volumes in the unit of the sums.

    Attributes
    ----------
    unreached : int64 array of shape (1,), CuPy
        Pairs without a path so far. They add nothing.
    """

    def __init__(self, offsets: np.ndarray, targets: np.ndarray, low: np.ndarray, high: np.ndarray):
        self._offsets, self._targets, self._low, self._high = offsets, targets, low, high
        self.unreached = cp.zeros(1, np.int64)

    def place(self, first: int, predecessor: Array, low: Array, high: Array) -> None:
        """Add the volumes of the sources from the one at ``first``; the arrays have shape (n_sources, n_vertices)."""
        offsets = self._offsets[first : first + len(predecessor) + 1]
        pairs = slice(int(offsets[0]), int(offsets[-1]))
        args = {
            "rows": cp.asarray(np.repeat(np.arange(len(predecessor)), np.diff(offsets)), np.int64),
            "targets": cp.asarray(self._targets[pairs], np.int64),
            "volume_low": cp.asarray(self._low[pairs], np.uint64),
            "volume_high": cp.asarray(self._high[pairs], np.int64),
            "n_pairs": np.int64(pairs.stop - pairs.start),
            "n_vertices": np.int64(predecessor.shape[1]),
            "predecessor": predecessor,
            "low": low,
            "high": high,
            "unreached": self.unreached,
        }
        _launch(_PLACE, pairs.stop - pairs.start, args)


class TargetVolumes:
    """The same volumes from each source, as ``add_flows`` takes them: uint64 ``low`` and int64 ``high`` per vertex, CuPy."""

    def __init__(self, low: Array, high: Array):
        self._low, self._high = low, high

    def place(self, first: int, predecessor: Array, low: Array, high: Array) -> None:  # noqa: ARG002  (all take these)
        """As ``PairVolumes.place``."""
        low[...], high[...] = self._low, self._high


def add_flows(graph: Graph, predecessor: Array, volumes: Any, edge_sums: Any, vertex_sums: Any = None) -> None:
    """Add volumes to the sums of the edges and vertices of their paths.

    Parameters
    ----------
    graph : Graph
        On a GPU.
    predecessor : array of shape (k, n_vertices), CuPy
        As in ``search.results.Traversals``. Volumes at vertices that are not reached add nothing.
    volumes : PairVolumes or TargetVolumes
    edge_sums, vertex_sums : objects with uint64 ``low`` and int64 ``high``, CuPy
        Of stored edges and of vertices; those of vertices are optional, and include volumes that begin or end there.
    """
    k, n = predecessor.shape
    at_once = min(k, _rows_at_once(n))
    states = cp.empty((at_once, n), np.uint64), cp.empty((at_once, n), np.int64), cp.empty((at_once, n), np.uint64)
    sums = {
        "offsets": graph.offsets,
        "targets": graph.targets,
        "vertex_low": None if vertex_sums is None else vertex_sums.low,
        "vertex_high": None if vertex_sums is None else vertex_sums.high,
        "edge_low": edge_sums.low,
        "edge_high": edge_sums.high,
    }
    for first in range(0, k, at_once):
        rows = cp.ascontiguousarray(predecessor[first : first + at_once])
        low, high, arrivals = (state[: len(rows)] for state in states)
        for state in (low, high, arrivals):
            state.data.memset_async(0, state.nbytes)
        volumes.place(first, rows, low, high)
        tree = {"predecessor": rows, "n_vertices": np.int64(n), "n_rows": np.int64(len(rows)), "low": low, "high": high}
        _launch(_CHILDREN, rows.size, {**tree, "arrivals": arrivals})
        _launch(_GATHER, rows.size, {**tree, "arrivals": arrivals})
        _launch(_ADD, -(-len(rows) // ROWS) * n, {**tree, **sums})


def bytes_needed(n_sources: int, n_vertices: int, n_pairs: int) -> int:
    """Return the bytes that ``add_flows`` takes at most in addition to the graph, predecessors and sums."""
    return 24 * n_vertices * min(n_sources, _rows_at_once(n_vertices)) + 32 * n_pairs + 8


def likely_kernels(vertex_t: Any) -> list[Request]:
    """Kernels for predecessors that are not known yet."""
    return [Request(_ADD, vertex_t)]


def _launch(entry: Any, items: int, args: dict[str, Any]) -> None:
    launch(kernel(entry, args["predecessor"].dtype), items, args)


def _rows_at_once(n_vertices: int) -> int:
    return max(1, CELLS_AT_ONCE // max(n_vertices, 1))
