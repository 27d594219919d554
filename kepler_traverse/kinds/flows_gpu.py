"""Flows on a GPU: volumes of pairs on the paths of given predecessors, summed per stored edge and vertex; see flows.cu.

For k sources and n vertices, the kernels read k n predecessors three times, and clear, fill and read 24 bytes per source and
vertex. Each vertex of a tree is left once, with up to three atomics. Atomics on the sums of edges are few: a thread adds the
volumes of up to ROWS sources over the same edge itself.
"""

from __future__ import annotations

from dataclasses import dataclass
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
_entry = entries_of(_FILE, BLOCK, constants=(("ROWS", ROWS), ("HOP_BYTES", 0), ("INTEGERS", 0), ("DECAY", 0)))
_PREDECESSORS = _entry("flows_predecessors_warp", struct="PredecessorArgs", item_threads=WARP)
_VOLUMES = _entry("flows_volumes_warp", struct="VolumeArgs")
_CHILDREN = _entry("flows_children", struct="TreeArgs")
_GATHER = _entry("flows_gather", struct="TreeArgs")
_ADD = _entry("flows_add", struct="AddArgs")
ENTRIES = (_PREDECESSORS, _VOLUMES, _CHILDREN, _GATHER, _ADD)


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


@dataclass(frozen=True)
class Volumes:
    """What the targets of each source take: an amount times the factor of the source times the decay of the distance.

    Attributes
    ----------
    targets, amounts : int64 array, and int64 or float64 array, of shape (n_targets,), NumPy
        Vertex numbers, the same ones for each source, or those of all pairs. Amounts are integers if the sums are.
    factors : array of shape (k,) of the type of the amounts, NumPy
    offsets : int64 array of shape (k + 1,), NumPy, or None
        Of pairs: those of source i are from ``offsets[i]`` to ``offsets[i + 1] - 1``.
    bound : number in the type of the distances, below infinity
        The largest distance that is served.
    exponent : int
        Of the unit of the sums.
    decay, parameter : int and float
        As ``cpu.opportunities`` has them.
    """

    targets: np.ndarray
    amounts: np.ndarray
    factors: np.ndarray
    offsets: np.ndarray | None
    bound: Any
    exponent: int = 0
    decay: int = 0
    parameter: float = 0.0

    def arguments(self, first: int, end: int) -> dict[str, Any]:
        """Return what the kernel takes for the sources from ``first`` to ``end - 1``."""
        rows, places = None, slice(None)
        if self.offsets is not None:
            places = slice(int(self.offsets[first]), int(self.offsets[end]))
            rows = cp.asarray(np.repeat(np.arange(end - first), np.diff(self.offsets[first : end + 1])), np.int64)
        return {
            "rows": rows,
            "targets": cp.asarray(self.targets[places], np.int64),
            "amounts": cp.asarray(self.amounts[places]).view(np.int64),
            "factors": cp.asarray(self.factors[first:end]).view(np.int64),
            "n_targets": np.int64(self.targets[places].size),
            "limit": np.int64(
                np.asarray(self.bound).view(f"i{np.asarray(self.bound).itemsize}")
            ),  # in the order of distances
            "parameter": np.float64(self.parameter),
            "exponent": np.int32(self.exponent),
        }


def add_flows(graph: Graph, distance: Array, before: Array, volumes: Volumes, of: str, sums: Any) -> None:
    """Add the volumes of a group of sources to the sums of the edges or of the vertices of their paths.

    Parameters
    ----------
    graph : Graph
        On a GPU. Its reverse is made if it is not there yet.
    distance, before : arrays of shape (k, n_vertices), CuPy
        Distances, and predecessors as in ``search.results.Traversals``.
    volumes : Volumes
    of : {"edges", "vertices"}
        The sums of vertices include volumes that begin or end there.
    sums : object with uint64 ``low`` and int64 ``high`` of shape (n_edges + 2,) or (n_vertices + 2,), CuPy
        Of the edges of the reversed graph, or of vertices; then of what has no path, and of the number of such pairs.
    """
    (k, n), reverse, of_hops = distance.shape, graph.reverse, is_hops(distance.dtype)
    at_once, n_cells = min(k, _rows_at_once(n)), sums.low.size - 2
    states = cp.empty((at_once, n), np.uint64), cp.empty((at_once, n), np.int64), cp.empty((at_once, n), np.uint64)
    cells = (None, None, sums.low, sums.high) if of == "edges" else (sums.low, sums.high, None, None)
    for first in range(0, k, at_once):
        end = min(first + at_once, k)
        rows = cp.ascontiguousarray(before[first:end])
        low, high, arrivals = (state[: end - first] for state in states)
        for state in (low, high, arrivals):
            state.data.memset_async(0, state.nbytes)
        memory, pitch = flatten_distances(distance[first:end])
        shared = {"n_vertices": np.int64(n), "n_rows": np.int64(end - first), "low": low, "high": high}
        lost = {"lost_low": sums.low[n_cells:], "lost_high": sums.high[n_cells:]}
        args = {**shared, **volumes.arguments(first, end), **lost, "distance": memory.view(np.uint8), "pitch": pitch}
        entry = _VOLUMES.variant(
            HOP_BYTES=distance.itemsize if of_hops else 0, INTEGERS=int(volumes.exponent == 0), DECAY=volumes.decay
        )
        items = int(args["n_targets"]) * (1 if volumes.offsets is not None else end - first)
        launch(kernel(entry, before.dtype, np.float32 if of_hops else distance.dtype), items, args)
        tree = {**shared, "predecessor": rows}
        launch(kernel(_CHILDREN, before.dtype), rows.size, {**tree, "arrivals": arrivals})
        launch(kernel(_GATHER, before.dtype), rows.size, {**tree, "arrivals": arrivals})
        lists = {"in_offsets": reverse.offsets, "in_targets": reverse.targets}
        names = ("vertex_low", "vertex_high", "edge_low", "edge_high")
        added = {**tree, **lists, **dict(zip(names, cells, strict=True))}
        launch(kernel(_ADD.variant(ROWS=ROWS), before.dtype), -(-(end - first) // ROWS) * n, added)


def bytes_needed(n_sources: int, n_vertices: int, n_pairs: int) -> int:
    """Return the bytes that ``add_flows`` takes at most in addition to the graph, predecessors and sums."""
    return 24 * n_vertices * min(n_sources, _rows_at_once(n_vertices)) + 32 * n_pairs + 8


def likely_kernels(vertex_t: Any) -> list[Request]:
    """Kernels for predecessors that are not known yet."""
    return [Request(_ADD, vertex_t)]


def _rows_at_once(n_vertices: int) -> int:
    return max(1, CELLS_AT_ONCE // max(n_vertices, 1))
