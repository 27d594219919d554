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
# What kernels find, int64: at 2 r the number of violations of the rule r, C1 to C4, and at 2 r + 1
# the place of an example; then the largest distance, and the vertices and lanes that C5 is open for
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
    """Return the kernels of a certificate of a graph that is not known yet, so that they can be
    compiled before it is read: those for vertex numbers of 32 bits.

    ``hops``: whether distances are hops; else they have the type ``weight_t``.
    """
    if hops:
        return [Request(_MANY_HOPS.variant(CHUNK=CHUNK, KEY_BYTES=width)) for width in (1, 2)]
    lists_hubs = Request(_LIST_HUBS.variant(CHUNK=CHUNK))
    return [lists_hubs, Request(_MANY_WEIGHTED.variant(CHUNK=CHUNK), np.int32, weight_t)]


def summaries(graph, blocks) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the size of each block of sources, and its findings.

    ``blocks`` are ``batch.Block``. Findings, int64 of shape (5, 3), NumPy, have per rule the number
    of violations, and the position of the source and the vertex of an example.
    """
    return _Checker(graph).summaries(blocks)


class _Checker:
    """Checks blocks of sources of one graph. Its arrays are used again for each block.

    - ``_tiles``: keys of shape (n, 64 bytes): the distances of each vertex from all sources of a
      block, as integers in the same order. None before the first block.
    - ``_best``: minima over the edges of each hub, which several warps lower; all unreached before a
      block. ``_unreached`` is a copy in that state.
    - ``_hubs``, ``_chunks``, ``_counts``: what ``list_hubs`` returns of the reversed graph, and
      ``_n_hubs`` and ``_n_chunks`` the two counts on the host.
    """

    def __init__(self, graph):
        """List the hubs of the reverse graph, which is made if it is not there yet."""
        self._graph = graph
        self._n = np.int64(graph.n_vertices)
        self._reverse = graph.reverse
        self._tiles = self._best = self._unreached = None
        self._hubs, self._chunks, self._counts = list_hubs(self._reverse)
        self._n_hubs, self._n_chunks = self._counts.get().tolist()

    def summaries(self, blocks) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the size and the findings of each of ``blocks``, those of hops after all blocks are
        checked.

        Findings of hops stay on the GPU meanwhile, so that the host does not wait for each block.
        """
        pending = []  # of hops: sources, lanes, and findings on the GPU
        for sources, distances, key_dtype, limits in blocks:
            if key_dtype.kind == "f":
                yield len(distances), self._weighted(sources, distances, key_dtype, limits)
            else:
                findings = self._hops(sources, distances, key_dtype, limits)
                pending.append((sources, TILE_BYTES // key_dtype.itemsize, findings))
        if pending:  # the first copy waits for all kernels
            for sources, n_lanes, findings in pending:
                yield sources.size, self._summary(findings.get(), sources, n_lanes)

    def _kernel(self, entry: Entry, dtype=np.float32, **constants):
        """Return the compiled kernel of an entry for the graph, a type of distances, and further
        compile-time constants.
        """
        return kernel(entry.variant(CHUNK=CHUNK, **constants), self._graph.targets.dtype, dtype)

    def _allocate_for(self, dtype: np.dtype, unreached) -> None:
        """Allocate tiles, and the minima over the edges of hubs, for keys of type ``dtype``, unless
        those of the last block fit. Reset the minima to ``unreached``.

        A hub has one minimum per source, or two if edges have weights: over all edges, and over
        those from strictly nearer vertices.
        """
        if self._tiles is None or self._tiles.dtype != dtype:
            self._tiles = cp.empty((int(self._n), TILE_BYTES // dtype.itemsize), dtype)
        # Hops, of a byte or more in a tile, have as many sources as bytes at most. Each minimum of
        # theirs takes a word.
        if dtype.kind == "u":
            per_hub = TILE_BYTES
        else:
            per_hub = 2 * TILE_BYTES // dtype.itemsize
        size = max(1, self._n_hubs) * per_hub
        if self._unreached is None or (self._unreached.dtype, self._unreached.size) != (
            dtype,
            size,
        ):
            self._unreached = cp.asarray(np.full(size, unreached, dtype))
        self._best = copy_array(self._unreached)

    def _hops(self, sources, distances, key_dtype: np.dtype, limits: list[Any]):
        """Check a block of hop counts. Return what the kernels find (_N_FINDINGS), in GPU memory.

        The arguments are the fields of ``batch.Block``. The host does not wait.
        """
        # Keys of hops, of 1, 2 or 4 bytes, are packed into words of 32 bits.
        self._allocate_for(np.dtype(np.uint32), np.iinfo(np.uint32).max)
        # the distances in one dimension; those of source i begin at ``i * pitch``
        memory, pitch = flatten_distances(distances)
        findings = _no_findings()
        constants = {"KEY_BYTES": key_dtype.itemsize}
        # The limits as keys, and as hop counts.
        keys = np.array([bound(limit, key_dtype) for limit in limits], np.uint32)
        max_hops = [
            MAX_HOP_COUNT if limit is None else min(limit, MAX_HOP_COUNT) for limit in limits
        ]

        # Transpose the distances into tiles, which checks C1 and C2.
        n = self._n
        shared_args = self._common(sources, findings)
        layout_args = {
            **shared_args,
            "distance": memory.view(np.uint8),
            "hop_bytes": np.int32(distances.itemsize),
            "pitch": pitch,
            "limits": cp.asarray(np.array(max_hops, np.int32)),
        }
        launch(self._kernel(_LAY_OUT_HOPS, **constants), _threads_to_lay_out(n), layout_args)

        # Check C3 and C4: all vertices, and of hubs the minima that several warps have found.
        check_args = {
            **shared_args,
            **self._edges(),
            "limits": cp.asarray(keys),
            "best_of_hubs": self._best,
        }
        lanes = TILE_BYTES // 4
        launch(self._kernel(_MANY_HOPS, **constants), max(n, self._n_chunks) * lanes, check_args)
        launch(self._kernel(_FINALIZE_HOPS, **constants), self._n_hubs * lanes, check_args)
        return findings

    def _common(self, sources, findings) -> dict[str, Any]:
        """Return the arguments, by name, that all kernels of a block take: those that transpose
        distances, and those that check them.
        """
        return {
            "n_vertices": self._n,
            "sources": cp.asarray(sources),
            "n_sources": np.int64(sources.size),
            "tiles": self._tiles,
            "findings": findings,
        }

    def _edges(self) -> dict[str, Any]:
        """Return the reverse graph, and its hubs, as arguments of the kernels that check edges, by
        name.
        """
        return {
            "offsets": self._reverse.offsets,
            "neighbors": self._reverse.targets,
            "hubs": self._hubs,
            "chunks": self._chunks,
            "counts": self._counts,
        }

    def _weighted(self, sources, distances, dtype: np.dtype, limits: list[Any]) -> np.ndarray:
        """Check a block of weighted distances, of type ``dtype``. Return its findings in the form
        of ``summaries``.

        The arguments are the fields of ``batch.Block``.
        """
        # Keys are the bits of the floats, as integers.
        key_dtype = np.dtype(f"i{dtype.itemsize}")
        graph = self._graph
        self._allocate_for(key_dtype, int(np.array(np.inf, dtype).view(key_dtype)))
        # the distances in one dimension; those of source i begin at ``i * pitch``
        memory, pitch = flatten_distances(distances)
        findings = _no_findings()
        # A set bit is a lane in which no strictly nearer vertex explains the distance of the
        # vertex.
        unfounded = cp.zeros(int(self._n), np.uint32)
        bounds = cp.asarray(np.array([bound(limit, dtype) for limit in limits], dtype))
        negative = np.int32(graph.has_negative_weights)
        n = self._n
        lanes = TILE_BYTES // dtype.itemsize
        shared_args = {**self._common(sources, findings), "limits": bounds, "is_negative": negative}
        layout_args = {**shared_args, "distance": memory, "pitch": pitch}

        # Transpose the distances into tiles, which checks C1 and C2. Then check C3 and C4.
        launch(self._kernel(_LAY_OUT_WEIGHTED, dtype), _threads_to_lay_out(n), layout_args)
        weight_args = {
            "weights": self._reverse.weights,
            "best_of_hubs": self._best,
            "unfounded": unfounded,
        }
        check_args = {**shared_args, **self._edges(), **weight_args}
        launch(self._kernel(_MANY_WEIGHTED, dtype), max(n, self._n_chunks) * lanes, check_args)
        launch(self._kernel(_FINALIZE_WEIGHTED, dtype), self._n_hubs * lanes, check_args)

        # C5 is open only for vertices that no strictly nearer one explains, and only if an edge may
        # lead no farther: if the smallest weight, added to the largest distance, may be rounded
        # away.
        numbers = findings.get()
        summary = self._summary(numbers, sources, lanes)
        if summary[[C1, C2], 0].any() or not numbers[_UNFOUNDED]:
            return summary
        farthest = numbers[_FARTHEST : _FARTHEST + 1].astype(key_dtype).view(dtype)[0]
        if not leads_farther(graph.derived.min_weight, farthest):
            summary[C5] = self._count_in_cycles(dtype, unfounded)
        return summary

    def _count_in_cycles(self, dtype: np.dtype, unfounded) -> tuple[int, int, int]:
        """Clear the bits of vertices that exact edges connect to a vertex without the bit, and
        count the bits that stay: violations of C5.

        An edge is exact in a lane if the distance of its tail and its weight add up to the distance
        of its head. ``unfounded``, uint32, has a bit per lane. Return the count, and lane and
        vertex of an example.
        """
        reverse = self._reverse
        clear_kernel = self._kernel(_FOUND, dtype)
        while True:
            vertices = cp.flatnonzero(unfounded).astype(self._graph.targets.dtype)
            n_cleared = cp.zeros(1, np.int64)
            args = {
                "offsets": reverse.offsets,
                "neighbors": reverse.targets,
                "weights": reverse.weights,
                "list": vertices,
                "n_listed": np.int64(vertices.size),
                "tiles": self._tiles,
                "unfounded": unfounded,
                "taken": n_cleared,
            }
            launch(clear_kernel, vertices.size, args)
            if not int(n_cleared.get()[0]):
                break

        # The lowest bit of the first vertex is an example.
        if not vertices.size:
            return 0, 0, 0
        bits = unfounded[vertices].get()
        lanes_of_first = int(bits[0])
        lowest_lane = (lanes_of_first & -lanes_of_first).bit_length() - 1
        return int(np.bitwise_count(bits).sum()), lowest_lane, int(vertices[:1].get()[0])

    def _summary(self, findings: np.ndarray, sources, n_lanes: int) -> np.ndarray:
        """Return what the kernels find, int64 of shape (_N_FINDINGS,), in the form of
        ``summaries``. ``n_lanes`` is the number of sources that a tile has space for.

        C1 demands that a source is at distance 0, C2 that distances are numbers in range, C3 that no
        edge makes a vertex nearer, and C4 that an edge explains each distance. Where C1 or C2 is
        violated, C3 and C4 are left out: what they compared were no distances.
        """
        summary = NOTHING.copy()
        n = int(self._n)
        # Per rule a count and a place: the row for C1, ``row * n + vertex`` for C2, and ``vertex *
        # n_lanes + lane`` for C3 and C4.
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
                summary[rule] = counts[rule], places[rule] % n_lanes, places[rule] // n_lanes
        return summary


# of each graph: ``EdgeWeights`` by their unit and the type of their multiples
_WEIGHTS: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def are_interleaved_valid(
    graph, sources: np.ndarray, distances: InterleavedDistances, limit: float
) -> bool:
    """Return whether distances from several sources obey all rules; False also if weights are no
    multiples of the unit.

    ``sources`` are vertex numbers, and ``limit`` is that of all, None for none.
    Each vertex reads the lines of its in-neighbors, so that a line that the cache still holds
    serves several vertices. Nothing is transposed. Weights are positive, so that no distances
    explain each other (C5).
    """
    weights_of_graph = _WEIGHTS.setdefault(graph, {})
    unit_and_dtype = distances.unit, distances.lines.dtype
    if unit_and_dtype not in weights_of_graph:
        weights_of_graph[unit_and_dtype] = EdgeWeights(graph, *unit_and_dtype)
    return weights_of_graph[unit_and_dtype].fits and distances.is_certified(
        graph.reverse, weights_of_graph[unit_and_dtype].in_units, sources, limit
    )


def list_hubs(graph) -> tuple[Any, ...]:
    """Return the hubs, vertices with adjacency lists of CHUNK edges or more, in any order; the
    chunks of their edges as kernels read them, uint64; and an int64 array with the numbers of hubs
    and of chunks. All are on the GPU.

    The first two arrays are longer than their contents, so that the host need not wait for the
    numbers.
    """
    n = graph.n_vertices
    m = graph.n_edges
    index = graph.targets.dtype
    hubs = cp.empty(m // CHUNK + 1, index)
    chunks = cp.empty(2 * m // CHUNK + 1, np.uint64)
    counts = cp.zeros(2, np.int64)
    args = (graph.offsets, np.int64(n), hubs, chunks, counts)
    launch(kernel(_LIST_HUBS.variant(CHUNK=CHUNK), index), n, args)
    return hubs, chunks, counts


def _threads_to_lay_out(n: np.int64) -> int:
    """Return how many threads transpose the distances of ``n`` vertices: a block of BLOCK threads
    per TILE vertices.
    """
    return -(-int(n) // TILE) * BLOCK


def _no_findings():
    """Return an array for what the kernels find, before any of them has run, on the GPU: counts of
    0, and for the examples places beyond all others, which kernels lower.
    """
    findings = np.zeros(_N_FINDINGS, np.int64)
    findings[1 : 2 * C4 + 2 : 2] = np.iinfo(np.int64).max
    return cp.asarray(findings)
