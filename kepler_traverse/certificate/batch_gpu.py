"""Check distances from many sources on a GPU, in blocks of sources. See batch_hops.cu,
batch_weighted.cu and ``batch_cpu``.

Memory traffic bounds the time. In bytes, for k sources, n vertices and m edges, with b bytes per
distance (a hop count has 1, 2 or 4) and w bytes per weight:

- transposing distances into tiles reads and writes each once: 2 k n b,
- an edge reads the tile of its other end, a vertex number and a weight: k m b + k / (64 / b) m (4 +
  w),
- a vertex reads its own tile and its offsets: k n b + 8 n k / (64 / b).

Without tiles, each edge and source would read a sector of 32 bytes. For 1,024 searches of kron20 (n
= 0.65 million, m = 31 million, tiles of 41 MB, which fit a cache of 50 MB) this predicts 34 GB, of
which 2 GB are edges: 10 ms at 3.4 TB/s. The prediction is not measured.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .._arrays import MAX_HOP_COUNT, flatten_distances
from ..cuda import cp
from ..cuda.compiler import Request, kernel
from ..cuda.copies import copy_array
from ..cuda.interleaved import EdgeWeights, InterleavedDistances
from ..cuda.kernel_spec import WARP, Entry, make_entries
from ..cuda.launch import launch
from .batch import C1, C2, C3, C4, C5, NOTHING, TILE_BYTES, bound, leads_farther

BLOCK = 256
# edges per edge chunk; longer adjacency lists are split, so that several warps share a hub
CHUNK = 512
TILE = 64  # vertices whose distances a thread block transposes at once
_N_FINDINGS = 10
_FARTHEST = 8
_UNFOUNDED = 9

_HOPS_FILE = Path(__file__).parent / "kernels" / "batch_hops.cu"
_WEIGHTED_FILE = Path(__file__).parent / "kernels" / "batch_weighted.cu"
SIZES = (("CHUNK", CHUNK), ("TILE", TILE), ("TILE_BYTES", TILE_BYTES))  # of certificate_tiles.cuh
_HOP_SIZES = (*SIZES, ("KEY_BYTES", 1))
_hops = make_entries(_HOPS_FILE, BLOCK, constants=_HOP_SIZES)
_weighted = make_entries(_WEIGHTED_FILE, BLOCK, constants=SIZES)
_LIST_HUBS = _hops("certificate_list_hubs")
_LAY_OUT_HOPS = _hops("certificate_lay_out_hops")
_MANY_HOPS = _hops("certificate_batch_hops_warp")
_FINALIZE_HOPS = _hops("certificate_finalize_hops")
_LAY_OUT_WEIGHTED = _weighted("certificate_lay_out_weighted")
_MANY_WEIGHTED = _weighted("certificate_batch_weighted_warp")
_FINALIZE_WEIGHTED = _weighted("certificate_finalize_weighted")
_FOUND = _weighted("certificate_found_warp", item_threads=WARP)
ENTRIES = (
    *(_LIST_HUBS, _LAY_OUT_HOPS, _MANY_HOPS, _FINALIZE_HOPS),
    *(_LAY_OUT_WEIGHTED, _MANY_WEIGHTED, _FINALIZE_WEIGHTED, _FOUND),
)


def likely_kernels(hops: bool, weight_t) -> list[Request]:
    """Kernels of a certificate of a graph that is not known yet, with vertex numbers of 32 bits."""
    if hops:
        return [Request(_MANY_HOPS.variant(CHUNK=CHUNK, KEY_BYTES=width)) for width in (1, 2)]
    lists_hubs = Request(_LIST_HUBS.variant(CHUNK=CHUNK))
    return [lists_hubs, Request(_MANY_WEIGHTED.variant(CHUNK=CHUNK), np.int32, weight_t)]


def summaries(graph, blocks) -> Iterator[tuple[int, np.ndarray]]:
    """See ``batch.Summaries``."""
    return _Checker(graph).summaries(blocks)


class _Checker:
    """Checks blocks of sources of one graph."""

    def __init__(self, graph):
        self._graph = graph
        self._n = np.int64(graph.n_vertices)
        self._reverse = graph.reverse
        self._tiles = self._best = self._unreached = None
        self._hubs, self._chunks, self._counts = list_hubs(self._reverse)
        self._n_hubs, self._n_chunks = self._counts.get().tolist()

    def summaries(self, blocks) -> Iterator[tuple[int, np.ndarray]]:
        waiting = []
        for sources, distances, kind, limits in blocks:
            if kind.kind == "f":
                yield len(distances), self._weighted(sources, distances, kind, limits)
            else:
                waiting.append(
                    (
                        sources,
                        TILE_BYTES // kind.itemsize,
                        self._hops(sources, distances, kind, limits),
                    )
                )
        if waiting:  # the first copy waits for all kernels
            for sources, in_tile, findings in waiting:
                yield sources.size, self._summary(findings.get(), sources, in_tile)

    def _kernel(self, entry: Entry, kind=np.float32, **constants):
        return kernel(entry.variant(CHUNK=CHUNK, **constants), self._graph.targets.dtype, kind)

    def _allocate_for(self, kind: np.dtype, unreached) -> None:
        """Allocate tiles, and the minima of hubs: per source one number, or two if edges have
        weights.
        """
        if self._tiles is None or self._tiles.dtype != kind:
            self._tiles = cp.empty((int(self._n), TILE_BYTES // kind.itemsize), kind)
        if kind.kind == "u":
            per_hub = TILE_BYTES
        else:
            per_hub = 2 * TILE_BYTES // kind.itemsize
        size = max(1, self._n_hubs) * per_hub
        if self._unreached is None or (self._unreached.dtype, self._unreached.size) != (kind, size):
            self._unreached = cp.asarray(np.full(size, unreached, kind))
        self._best = copy_array(self._unreached)

    def _hops(self, sources, distances, kind: np.dtype, limits: list[Any]):
        """Return the findings of a block of hop counts, in GPU memory."""
        self._allocate_for(np.dtype(np.uint32), np.iinfo(np.uint32).max)
        memory, pitch = flatten_distances(distances)
        findings = _no_findings()
        width = {"KEY_BYTES": kind.itemsize}
        keys = np.array([bound(limit, kind) for limit in limits], np.uint32)
        beyond = np.array(
            [MAX_HOP_COUNT if limit is None else min(limit, MAX_HOP_COUNT) for limit in limits],
            np.int32,
        )
        n = self._n
        common = self._common(sources, findings)
        laid_out = {
            **common,
            "distance": memory.view(np.uint8),
            "hop_bytes": np.int32(distances.itemsize),
            "pitch": pitch,
            "limits": cp.asarray(beyond),
        }
        launch(self._kernel(_LAY_OUT_HOPS, **width), _threads_to_lay_out(n), laid_out)
        checked = {
            **common,
            **self._edges(),
            "limits": cp.asarray(keys),
            "best_of_hubs": self._best,
        }
        lanes = TILE_BYTES // 4
        launch(self._kernel(_MANY_HOPS, **width), max(n, self._n_chunks) * lanes, checked)
        launch(self._kernel(_FINALIZE_HOPS, **width), self._n_hubs * lanes, checked)
        return findings

    def _common(self, sources, findings) -> dict[str, Any]:
        """Arguments of the kernels that transpose distances and of those that check them."""
        return {
            "n_vertices": self._n,
            "sources": cp.asarray(sources),
            "n_sources": np.int64(sources.size),
            "tiles": self._tiles,
            "findings": findings,
        }

    def _edges(self) -> dict[str, Any]:
        """The reverse graph, and its hubs, as the kernels that check edges take them."""
        return {
            "offsets": self._reverse.offsets,
            "neighbors": self._reverse.targets,
            "hubs": self._hubs,
            "chunks": self._chunks,
            "counts": self._counts,
        }

    def _weighted(self, sources, distances, kind: np.dtype, limits: list[Any]) -> np.ndarray:
        ordered = np.dtype(f"i{kind.itemsize}")
        graph = self._graph
        self._allocate_for(ordered, int(np.array(np.inf, kind).view(ordered)))
        memory, pitch = flatten_distances(distances)
        findings = _no_findings()
        unfounded = cp.zeros(int(self._n), np.uint32)
        bounds = cp.asarray(np.array([bound(limit, kind) for limit in limits], kind))
        negative = np.int32(graph.has_negative_weights)
        n = self._n
        lanes = TILE_BYTES // kind.itemsize
        common = {**self._common(sources, findings), "limits": bounds, "is_negative": negative}
        laid_out = {**common, "distance": memory, "pitch": pitch}
        launch(self._kernel(_LAY_OUT_WEIGHTED, kind), _threads_to_lay_out(n), laid_out)
        weights = {
            "weights": self._reverse.weights,
            "best_of_hubs": self._best,
            "unfounded": unfounded,
        }
        checked = {**common, **self._edges(), **weights}
        launch(self._kernel(_MANY_WEIGHTED, kind), max(n, self._n_chunks) * lanes, checked)
        launch(self._kernel(_FINALIZE_WEIGHTED, kind), self._n_hubs * lanes, checked)
        numbers = findings.get()
        summary = self._summary(numbers, sources, lanes)
        if summary[[C1, C2], 0].any() or not numbers[_UNFOUNDED]:
            return summary
        farthest = numbers[_FARTHEST : _FARTHEST + 1].astype(ordered).view(kind)[0]
        if not leads_farther(graph.derived.min_weight, farthest):
            summary[C5] = self._in_cycles(kind, unfounded)
        return summary

    def _in_cycles(self, kind: np.dtype, unfounded) -> tuple[int, int, int]:
        """Clear the bits of vertices that exact edges connect to a vertex without the bit, and
        count the bits that stay.
        """
        reverse = self._reverse
        clear = self._kernel(_FOUND, kind)
        while True:
            listed = cp.flatnonzero(unfounded).astype(self._graph.targets.dtype)
            taken = cp.zeros(1, np.int64)
            args = {
                "offsets": reverse.offsets,
                "neighbors": reverse.targets,
                "weights": reverse.weights,
                "list": listed,
                "n_listed": np.int64(listed.size),
                "tiles": self._tiles,
                "unfounded": unfounded,
                "taken": taken,
            }
            launch(clear, listed.size, args)
            if not int(taken.get()[0]):
                break
        if not listed.size:
            return 0, 0, 0
        bits = unfounded[listed].get()
        lowest = int(bits[0])
        return (
            int(np.bitwise_count(bits).sum()),
            (lowest & -lowest).bit_length() - 1,
            int(listed[:1].get()[0]),
        )

    def _summary(self, findings: np.ndarray, sources, in_tile: int) -> np.ndarray:
        """Return the findings of the kernels in the form of ``check_distances``."""
        summary = NOTHING.copy()
        n = int(self._n)
        counts = findings[: 2 * C4 + 1 : 2]
        places = findings[1 : 2 * C4 + 2 : 2].tolist()
        if counts[C1]:
            summary[C1] = counts[C1], places[C1], sources[places[C1]]
        if counts[C2]:
            summary[C2] = counts[C2], places[C2] // n, places[C2] % n
        if summary[:, 0].any():
            return summary
        for rule in (C3, C4):
            if counts[rule]:
                summary[rule] = counts[rule], places[rule] % in_tile, places[rule] // in_tile
        return summary


_WEIGHTS: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def are_interleaved_valid(
    graph, sources: np.ndarray, distances: InterleavedDistances, limit: float
) -> bool:
    """Return whether distances from several sources obey all rules; False also if weights are no
    multiples of the unit.

    Each vertex reads the lines of its in-neighbors, so that a line that the cache still holds
    serves several vertices. Nothing is transposed. Weights are positive, so that no distances
    explain each other (C5).
    """
    of_graph = _WEIGHTS.setdefault(graph, {})
    key = distances.unit, distances.lines.dtype
    if key not in of_graph:
        of_graph[key] = EdgeWeights(graph, *key)
    return of_graph[key].fits and distances.is_certified(
        graph.reverse, of_graph[key].in_units, sources, limit
    )


def list_hubs(graph) -> tuple[Any, ...]:
    """Return adjacency lists of CHUNK edges or more in any order, their chunks as kernels read
    them, and both numbers.
    """
    n = graph.n_vertices
    m = graph.n_edges
    index = graph.targets.dtype
    hubs = cp.empty(m // CHUNK + 1, index)
    chunks = cp.empty(2 * m // CHUNK + 1, np.uint64)
    counts = cp.zeros(2, np.int64)
    listed = (graph.offsets, np.int64(n), hubs, chunks, counts)
    launch(kernel(_LIST_HUBS.variant(CHUNK=CHUNK), index), n, listed)
    return hubs, chunks, counts


def _threads_to_lay_out(n: np.int64) -> int:
    return -(-int(n) // TILE) * BLOCK


def _no_findings():
    findings = np.zeros(_N_FINDINGS, np.int64)
    findings[1 : 2 * C4 + 2 : 2] = np.iinfo(np.int64).max
    return cp.asarray(findings)
