"""Blocks of many sources checked on a GPU. The twin of ``batch_cpu``; see batch_hops.cu and batch_weighted.cu.

What bounds it, in bytes, for k sources, n vertices and m edges, with b bytes a distance (a hop count has 1, or 2, or 4):

- the rows of distances, read once and written as lines: 2 k n b,
- an edge reads the line of its far end and its own number (and weight): k m b + k / (64 / b) m (4 + w),
- a vertex reads its own line and its offsets: k n b + 8 n k / (64 / b).

Rows in place of lines would read a sector of 32 bytes for each edge and source. So 1,024 searches of kron20 (n = 0.65
million, m = 31 million, lines of 41 MB, which a cache of 50 MB holds) are predicted to move 34 GB, of which 2 GB are the
edges: 10 ms at 3.4 TB/s. The prediction is not measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .._arrays import MAX_HOP_COUNT, flat
from ..cuda import cp
from ..cuda.compiler import Request, kernel
from ..cuda.copies import copy_of
from ..cuda.kernel_spec import WARP, Entry, arguments
from ..cuda.launch import launch
from .batch import C1, C2, C3, C4, C5, NOTHING, TILE_BYTES, bound, leads_farther

BLOCK = 256
PIECE = 512  # edges of a part of a row; rows of as many and more are cut, so that no warp is alone with a hub
_TILE = 64  # vertices, as in certificate_tiles.cuh
_N_FINDINGS = 10
_FARTHEST, _UNFOUNDED = 8, 9

_HOPS_FILE = Path(__file__).parent / "kernels" / "batch_hops.cu"
_WEIGHTED_FILE = Path(__file__).parent / "kernels" / "batch_weighted.cu"
_GRAPH = ("offset_t* offsets", "vertex_t* neighbours")
_HUBS = ("vertex_t* hubs", "uint64* pieces", "int64* counts")
_SOURCES = ("int64* sources", "int64 n_sources")
_ROWS = ("int64 pitch", "int64 n_vertices", *_SOURCES)


_SIZES = (("PIECE", PIECE), ("TILE_BYTES", TILE_BYTES))


def _hops(name: str, *declared: str) -> Entry:
    return Entry(name, _HOPS_FILE, BLOCK, arguments(*declared), constants=(*_SIZES, ("KEY_BYTES", 1)))


def _weighted(name: str, *declared: str, item_threads: int = 1) -> Entry:
    return Entry(name, _WEIGHTED_FILE, BLOCK, arguments(*declared), item_threads, constants=_SIZES)


_LIST_HUBS = _hops(
    "certificate_list_hubs", _GRAPH[0], "int64 n_vertices", "vertex_t* vertices", "uint64* pieces", "int64* counts"
)
_LAY_OUT_HOPS = _hops(
    "certificate_lay_out_hops",
    *("uint8* distance", "int32 hop_bytes", *_ROWS, "int32 limit", "uint32* lines", "int64* findings"),
)
_MANY_HOPS = _hops(
    "certificate_batch_hops_warp",
    *(*_GRAPH, "int64 n_vertices", *_HUBS, "uint32* lines", *_SOURCES, "uint32 limit", "uint32* best_of_hubs"),
    "int64* findings",
)
_FINALIZE_HOPS = _hops(
    "certificate_finalize_hops",
    *(_HUBS[0], _HUBS[2], "uint32* lines", *_SOURCES, "uint32 limit", "uint32* best_of_hubs", "int64* findings"),
)
_LAY_OUT_WEIGHTED = _weighted(
    "certificate_lay_out_weighted",
    *("weight_t* distance", *_ROWS, "weight_t limit", "int32 is_negative", "ordered_t* lines", "int64* findings"),
)
_LINES = ("ordered_t* lines", *_SOURCES, "weight_t limit", "int32 is_negative", "ordered_t* best_of_hubs")
_MANY_WEIGHTED = _weighted(
    "certificate_batch_weighted_warp",
    *(*_GRAPH, "weight_t* weights", "int64 n_vertices", *_HUBS, *_LINES, "uint32* unfounded", "int64* findings"),
)
_FINALIZE_WEIGHTED = _weighted(
    "certificate_finalize_weighted", _HUBS[0], _HUBS[2], *_LINES, "uint32* unfounded", "int64* findings"
)
_FOUND = _weighted(
    "certificate_found_warp",
    *(*_GRAPH, "weight_t* weights", "vertex_t* list", "int64 n_listed", "ordered_t* lines", "uint32* unfounded"),
    "int64* taken",
    item_threads=WARP,
)
ENTRIES = (
    *(_LIST_HUBS, _LAY_OUT_HOPS, _MANY_HOPS, _FINALIZE_HOPS),
    *(_LAY_OUT_WEIGHTED, _MANY_WEIGHTED, _FINALIZE_WEIGHTED, _FOUND),
)


def likely_kernels(hops: bool, weight_t) -> list[Request]:
    """Kernels of a certificate of a graph that is not known yet, with vertex numbers of 32 bits."""
    if hops:
        return [Request(_MANY_HOPS.variant(PIECE=PIECE, KEY_BYTES=width)) for width in (1, 2)]
    lists_hubs = Request(_LIST_HUBS.variant(PIECE=PIECE))
    return [lists_hubs, Request(_MANY_WEIGHTED.variant(PIECE=PIECE), np.int32, weight_t)]


class Checker:
    """Checks blocks of sources of one graph; a ``protocols.BatchChecker``.

    Parameters
    ----------
    graph : Graph
        On a GPU. Its reverse is made if it is not there yet.
    limit : float or None
        Up to where the distances are complete.
    """

    def __init__(self, graph, limit):
        self._graph, self._limit = graph, limit
        self._n = np.int64(graph.n_vertices)
        self._reverse = graph.reverse
        self._lines = self._best = self._unreached = None
        self._hubs, self._pieces, self._counts = hub_rows(self._reverse)
        self._n_hubs, self._n_pieces = self._counts.get().tolist()

    def summaries(self, blocks) -> Iterator[tuple[int, np.ndarray]]:
        """See ``protocols.BatchChecker.summaries``."""
        waiting = []
        for sources, rows, kind in blocks:
            if kind.kind == "f":
                yield len(rows), self._weighted(sources, rows, kind)
            else:
                waiting.append((sources, TILE_BYTES // kind.itemsize, self._hops(sources, rows, kind)))
        if waiting:  # the first copy waits for all kernels
            for sources, in_line, findings in waiting:
                yield sources.size, self._summary(findings.get(), sources, in_line)

    def _kernel(self, entry: Entry, kind=np.float32, **constants):
        return kernel(entry.variant(PIECE=PIECE, **constants), self._graph.targets.dtype, kind)

    def _allocate_for(self, kind: np.dtype, unreached) -> None:
        """Lines, and what is kept of heavy rows: two numbers a source where they are weighted."""
        if self._lines is None or self._lines.dtype != kind:
            self._lines = cp.empty((int(self._n), TILE_BYTES // kind.itemsize), kind)
        of_a_row = TILE_BYTES if kind.kind == "u" else 2 * TILE_BYTES // kind.itemsize
        size = max(1, self._n_hubs) * of_a_row
        if self._unreached is None or (self._unreached.dtype, self._unreached.size) != (kind, size):
            self._unreached = cp.asarray(np.full(size, unreached, kind))
        self._best = copy_of(self._unreached)

    def _hops(self, sources, rows, kind: np.dtype):
        """Findings of a block of hop counts, still on the device."""
        self._allocate_for(np.dtype(np.uint32), np.iinfo(np.uint32).max)
        memory, pitch = flat(rows)
        findings = _no_findings()
        limit, width = np.uint32(bound(self._limit, kind)), {"KEY_BYTES": kind.itemsize}
        beyond = np.int32(MAX_HOP_COUNT if self._limit is None else min(self._limit, MAX_HOP_COUNT))
        n, of = self._n, (cp.asarray(sources), np.int64(sources.size))
        laid_out = (memory.view(np.uint8), np.int32(rows.itemsize), pitch, n, *of, beyond, self._lines, findings)
        launch(self._kernel(_LAY_OUT_HOPS, **width), _threads_to_lay_out(n), laid_out)
        graph, hubs = (self._reverse.offsets, self._reverse.targets, n), (self._hubs, self._pieces, self._counts)
        kept = (self._lines, *of, limit, self._best, findings)
        lanes = TILE_BYTES // 4
        launch(self._kernel(_MANY_HOPS, **width), max(n, self._n_pieces) * lanes, (*graph, *hubs, *kept))
        launch(self._kernel(_FINALIZE_HOPS, **width), self._n_hubs * lanes, (self._hubs, self._counts, *kept))
        return findings

    def _weighted(self, sources, rows, kind: np.dtype) -> np.ndarray:
        ordered, graph, reverse = np.dtype(f"i{kind.itemsize}"), self._graph, self._reverse
        self._allocate_for(ordered, int(np.array(np.inf, kind).view(ordered)))
        memory, pitch = flat(rows)
        findings = _no_findings()
        unfounded = cp.zeros(int(self._n), np.uint32)
        limit, negative = bound(self._limit, kind), np.int32(graph.has_negative_weights)
        n, of, lanes = self._n, (cp.asarray(sources), np.int64(sources.size)), TILE_BYTES // kind.itemsize
        laid_out = (memory, pitch, n, *of, limit, negative, self._lines, findings)
        launch(self._kernel(_LAY_OUT_WEIGHTED, kind), _threads_to_lay_out(n), laid_out)
        edges, hubs = (reverse.offsets, reverse.targets, reverse.weights), (self._hubs, self._pieces, self._counts)
        kept = (self._lines, *of, limit, negative, self._best, unfounded, findings)
        launch(self._kernel(_MANY_WEIGHTED, kind), max(n, self._n_pieces) * lanes, (*edges, n, *hubs, *kept))
        launch(self._kernel(_FINALIZE_WEIGHTED, kind), self._n_hubs * lanes, (self._hubs, self._counts, *kept))
        found = findings.get()
        summary = self._summary(found, sources, lanes)
        if summary[[C1, C2], 0].any() or not found[_UNFOUNDED]:
            return summary
        farthest = found[_FARTHEST : _FARTHEST + 1].astype(ordered).view(kind)[0]
        if not leads_farther(graph.min_weight, farthest):
            summary[C5] = self._in_cycles(kind, unfounded)
        return summary

    def _in_cycles(self, kind: np.dtype, unfounded) -> tuple[int, int, int]:
        """Take the bits of vertices that a chain of exact edges joins to one without, and count those that stay."""
        reverse = self._reverse
        found = self._kernel(_FOUND, kind)
        edges = (reverse.offsets, reverse.targets, reverse.weights)
        while True:
            listed = cp.flatnonzero(unfounded).astype(self._graph.targets.dtype)
            taken = cp.zeros(1, np.int64)
            launch(found, listed.size, (*edges, listed, np.int64(listed.size), self._lines, unfounded, taken))
            if not int(taken.get()[0]):
                break
        if not listed.size:
            return 0, 0, 0
        bits = unfounded[listed].get()
        lowest = int(bits[0])
        return int(np.bitwise_count(bits).sum()), (lowest & -lowest).bit_length() - 1, int(listed[:1].get()[0])

    def _summary(self, found: np.ndarray, sources, in_line: int) -> np.ndarray:
        """What the kernels have found, as ``findings_of`` tells it."""
        summary, n = NOTHING.copy(), int(self._n)
        counts, places = found[: 2 * C4 + 1 : 2], found[1 : 2 * C4 + 2 : 2].tolist()
        if counts[C1]:
            summary[C1] = counts[C1], places[C1], sources[places[C1]]
        if counts[C2]:
            summary[C2] = counts[C2], places[C2] // n, places[C2] % n
        if summary[:, 0].any():
            return summary
        for rule in (C3, C4):
            if counts[rule]:
                summary[rule] = counts[rule], places[rule] % in_line, places[rule] // in_line
        return summary


def hub_rows(graph) -> tuple:
    """Rows of PIECE edges and more in any order, their pieces as kernels take them, and how many there are of both."""
    n, m, index = graph.n_vertices, graph.n_edges, graph.targets.dtype
    hubs, pieces = cp.empty(m // PIECE + 1, index), cp.empty(2 * m // PIECE + 1, np.uint64)
    counts = cp.zeros(2, np.int64)
    listed = (graph.offsets, np.int64(n), hubs, pieces, counts)
    launch(kernel(_LIST_HUBS.variant(PIECE=PIECE), index), n, listed)
    return hubs, pieces, counts


def _threads_to_lay_out(n: np.int64) -> int:
    return -(-int(n) // _TILE) * BLOCK


def _no_findings():
    findings = np.zeros(_N_FINDINGS, np.int64)
    findings[1 : 2 * C4 + 2 : 2] = np.iinfo(np.int64).max
    return cp.asarray(findings)
