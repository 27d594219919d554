"""Builds a CSR on a GPU: the same arrays as ``kepler_traverse.cpu.csr_build``, bit for bit.

Edges are counted per vertex, the counts are summed, and edges are scattered with the offsets as cursors. Then the adjacency
lists are sorted, a part of the edges at a time.

Memory, in bytes per stored edge with 32-bit ends and weights (12 bytes per edge of the edge list):

- the caller's edge list: 12, or 6 if edges are stored both ways,
- targets and weights: 8,
- sorting a sixteenth of the edges at a time: 2.5 (keys 8, their copy in argsort 8, the order 8, buffers of the radix sort
  16), or, if parallel edges were merged, one copy of the targets or the weights: 4.

Together that is 2 times the edge list, and 8 bytes per vertex. An adjacency list longer than such a part is sorted whole,
with 40 bytes per edge.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .._arrays import extent
from . import cp
from .compiler import kernel
from .kernel_spec import WARP, Entry, arguments, struct_arguments
from .launch import launch

BLOCK = 256
PIECES = 16
MIN_PIECE = 1 << 16  # edges; below it launches cost more than sorting
SHIFTED_AT_ONCE = 1 << 20  # offsets
MARKED_AT_ONCE = 1 << 20  # targets; CuPy widens indices to 64 bits, which would need too much memory for all
RENUMBERED_AT_ONCE = 1 << 24  # ids; bounds the temporaries of renumber to some 100 MB

_FILE = Path(__file__).parent / "kernels" / "csr_build.cu"
_COUNT_DEGREES = Entry(
    "csr_count_degrees",
    _FILE,
    BLOCK,
    arguments("vertex_t* src", "vertex_t* dst", "int64 n_edges", "int32 both_ways", "int64* counts", "int64* counters"),
)
_SCATTER = Entry("csr_scatter", _FILE, BLOCK, struct_arguments(_FILE, "ScatterArgs"))
_COUNT_TARGETS = Entry("csr_count_targets", _FILE, BLOCK, arguments("vertex_t* targets", "int64 n_edges", "int64* counts"))
_SCATTER_REVERSE = Entry("csr_scatter_reverse_warp", _FILE, BLOCK, struct_arguments(_FILE, "ReverseArgs"), item_threads=WARP)
_SORT_KEYS = Entry("csr_sort_keys_warp", _FILE, BLOCK, struct_arguments(_FILE, "SortKeyArgs"), item_threads=WARP)
_LOWER_WEIGHTS = Entry(
    "csr_lower_weights",
    _FILE,
    BLOCK,
    arguments("int64* sets", "weight_t* weights", "int64 n_edges", "ordered_t* lowest"),
)
_DECODE_WEIGHTS = Entry(
    "csr_decode_weights", _FILE, BLOCK, arguments("ordered_t* lowest", "int64 n_edges", "weight_t* weights")
)
ENTRIES = (_COUNT_DEGREES, _SCATTER, _COUNT_TARGETS, _SCATTER_REVERSE, _SORT_KEYS, _LOWER_WEIGHTS, _DECODE_WEIGHTS)


def assemble(src, dst, weight, n_vertices: int, both_ways: bool = False):
    """See ``protocols.CsrBackend.assemble``."""
    src, dst = cp.ascontiguousarray(src), cp.ascontiguousarray(dst)
    weight = None if weight is None else cp.ascontiguousarray(weight)
    types = _types(src, weight)
    n_edges, ways = np.int64(src.size), np.int32(both_ways)
    offsets, counters = cp.zeros(n_vertices + 1, np.int64), cp.zeros(2, np.int64)
    launch(kernel(_COUNT_DEGREES, *types), src.size, (src, dst, n_edges, ways, offsets, counters))
    _sum_up(offsets)
    total = int(offsets[-1])
    targets = cp.empty(total, src.dtype)
    weights = None if weight is None else cp.empty(total, weight.dtype)
    scattered = {
        "src": src,
        "dst": dst,
        "weight": weight,
        "n_edges": n_edges,
        "both_ways": ways,
        "cursor": offsets,
        "targets": targets,
        "weights": weights,
    }
    launch(kernel(_SCATTER, *types), src.size, scattered)
    _set_back(offsets)
    stored = _sort_lists(offsets, targets, weights)
    if stored < total:
        targets = targets[:stored].copy()
        weights = None if weights is None else weights[:stored].copy()
    return offsets, targets, weights, int(counters[0]), total - stored


def count_isolated(offsets, targets, directed: bool) -> int:
    """As ``cpu.csr.count_isolated``."""
    touched = offsets[1:] != offsets[:-1]
    for first in range(0, targets.size if directed else 0, MARKED_AT_ONCE):
        touched[targets[first : first + MARKED_AT_ONCE]] = True
    return touched.size - int(touched.sum())


def transpose(offsets, targets, weights):
    """Return the CSR of the reversed edges: offsets, sources (ascending per vertex), weights or None."""
    types = _types(targets, weights)
    n_vertices = offsets.size - 1
    reverse_offsets = cp.zeros(offsets.size, np.int64)
    launch(kernel(_COUNT_TARGETS, *types), targets.size, (targets, np.int64(targets.size), reverse_offsets))
    _sum_up(reverse_offsets)
    sources = cp.empty_like(targets)
    reverse_weights = None if weights is None else cp.empty_like(weights)
    reversed_edges = {
        "offsets": offsets,
        "targets": targets,
        "weights": weights,
        "n_vertices": np.int64(n_vertices),
        "cursor": reverse_offsets,
        "sources": sources,
        "reverse_weights": reverse_weights,
    }
    launch(kernel(_SCATTER_REVERSE, *types), n_vertices, reversed_edges)
    _set_back(reverse_offsets)
    _sort_lists(reverse_offsets, sources, reverse_weights)
    return reverse_offsets, sources, reverse_weights


def renumber(columns, dtype):
    """See ``protocols.CsrBackend.renumber``."""
    kind = np.result_type(*(column.dtype for column in columns))
    occupied = [column for column in columns if column.size]
    if not occupied:
        return cp.zeros(0, kind), [cp.zeros(0, dtype) for _ in columns]
    lows, highs = zip(*(extent(column) for column in occupied), strict=True)
    lowest = min(lows)
    span = max(highs) - lowest + 1
    if span <= 4 * sum(column.size for column in columns) + 1024 and lowest + span <= np.iinfo(np.int64).max:
        return _renumber_by_table(columns, dtype, kind, lowest, span)
    ids = cp.unique(cp.concatenate([cp.unique(column).astype(kind) for column in occupied]))
    return ids, [_in_parts(column, dtype, lambda part: cp.searchsorted(ids, part.astype(kind))) for column in columns]


def _renumber_by_table(columns, dtype, kind, lowest: int, span: int):
    """Rank ids by a table over their range, of which they occupy a large part."""
    present = cp.zeros(span, np.uint8)
    for column in columns:
        for first in range(0, column.size, RENUMBERED_AT_ONCE):
            present[_above(column[first : first + RENUMBERED_AT_ONCE], lowest)] = 1
    if bool(present.all()):
        ids = cp.arange(lowest, lowest + span, dtype=np.int64).astype(kind, copy=False)
        if lowest == 0:  # the ids are vertex numbers already, so the edge list is not copied
            return ids, [column.astype(dtype, copy=False) for column in columns]
        return ids, [_in_parts(column, dtype, lambda part: _above(part, lowest)) for column in columns]
    ids = (cp.flatnonzero(present) + lowest).astype(kind)
    rank = cp.cumsum(present, dtype=dtype)
    rank -= 1
    return ids, [_in_parts(column, dtype, lambda part: rank[_above(part, lowest)]) for column in columns]


def _above(ids, lowest: int):
    """Return how far ids are above the lowest, in 64 bits, because a narrow type may overflow."""
    return ids.astype(np.int64) - lowest


def _in_parts(column, dtype, number):
    """Apply ``number`` to a limited number of ids at a time, so that its temporaries stay small."""
    numbers = cp.empty(column.size, dtype)
    for first in range(0, column.size, RENUMBERED_AT_ONCE):
        last = first + RENUMBERED_AT_ONCE
        numbers[first:last] = number(column[first:last])
    return numbers


def _types(vertices, weights):
    return vertices.dtype, np.dtype(np.float32) if weights is None else weights.dtype


def degree_statistics(offsets) -> tuple[float, float, int]:
    """Return mean, standard deviation and maximum of the out-degrees; zeros for a graph without vertices."""
    if offsets.size < 2:
        return 0.0, 0.0, 0
    degrees = cp.diff(offsets)
    return float(degrees.mean()), float(degrees.std()), int(degrees.max())


def _sum_up(counts) -> None:
    """Turn degrees into offsets, in place. CuPy's cumsum would allocate a second array."""
    for first in range(0, counts.size, SHIFTED_AT_ONCE):
        part = counts[first : first + SHIFTED_AT_ONCE]
        if first:
            part[:1] += counts[first - 1 : first]
        part[:] = cp.cumsum(part)


def _set_back(offsets) -> None:
    """Restore offsets after a scatter, which has moved each one to the end of its adjacency list."""
    for last in range(offsets.size - 1, 0, -SHIFTED_AT_ONCE):
        first = max(0, last - SHIFTED_AT_ONCE)
        offsets[first + 1 : last + 1] = offsets[first:last].copy()
    offsets[0] = 0


def _sort_lists(offsets, targets, weights) -> int:
    """Sort each adjacency list by target and merge parallel edges, in place; return how many edges are left.

    The edges left move to the front of ``targets`` and ``weights``, and ``offsets`` follow.
    """
    if not targets.size:
        return 0
    n_vertices = offsets.size - 1
    types = _types(targets, weights)
    target_bits = max(1, (n_vertices - 1).bit_length())
    stored = 0
    for first_vertex, last_vertex, first, last in _pieces(offsets, targets.size, 1 << (63 - target_bits)):
        n_listed = last_vertex - first_vertex
        if first == last:
            offsets[first_vertex:last_vertex] = stored
            continue
        keys = cp.empty(last - first, np.int64)
        keyed = {
            "offsets": offsets,
            "targets": targets,
            "first_vertex": np.int64(first_vertex),
            "n_vertices": np.int64(n_listed),
            "first_edge": np.int64(first),
            "target_bits": np.int32(target_bits),
            "keys": keys,
        }
        launch(kernel(_SORT_KEYS, *types), n_listed, keyed)
        if weights is None:
            keys.sort()
            part_weights = None
        else:
            order = cp.argsort(keys)
            keys, part_weights = keys[order], weights[first:last][order]
            del order
        keys, part_weights = _merge(keys, part_weights)
        if stored != first or keys.size < last - first:
            starts = cp.searchsorted(keys, cp.arange(n_listed, dtype=np.int64) << target_bits)
            offsets[first_vertex:last_vertex] = starts + stored
        # The edges of this part are in keys now. Merged edges of the parts before it take no more space than they did.
        targets[stored : stored + keys.size] = keys & ((1 << target_bits) - 1)
        if weights is not None:
            weights[stored : stored + keys.size] = part_weights
        stored += keys.size
    offsets[n_vertices:] = stored
    return stored


def _merge(keys, weights):
    """Keep one edge of each run of equal keys, with the smallest weight of the run."""
    is_first = cp.ones(keys.size, np.bool_)
    cp.not_equal(keys[1:], keys[:-1], out=is_first[1:])
    n_sets = int(cp.count_nonzero(is_first))
    if n_sets == keys.size:
        return keys, weights
    if weights is not None:
        ordered = np.dtype(f"i{weights.dtype.itemsize}")
        sets = cp.cumsum(is_first, dtype=np.int64)
        sets -= 1
        lowest = cp.full(n_sets, np.iinfo(ordered).max, ordered)
        types = (np.int32, weights.dtype)
        launch(kernel(_LOWER_WEIGHTS, *types), keys.size, (sets, weights, np.int64(keys.size), lowest))
        weights = cp.empty(n_sets, weights.dtype)
        launch(kernel(_DECODE_WEIGHTS, *types), n_sets, (lowest, np.int64(n_sets), weights))
    return keys[is_first], weights


def _pieces(offsets, n_edges: int, max_vertices: int):
    """Yield (first vertex, end vertex, first edge, end edge) of parts, about 1 / PIECES of the edges each."""
    n_vertices = offsets.size - 1
    size = max(MIN_PIECE, -(-n_edges // PIECES))
    first_edges = np.arange(size, n_edges, size)
    # The vertices whose lists contain these edges; each begins a part.
    cuts = (cp.searchsorted(offsets, cp.asarray(first_edges), side="right") - 1).get().tolist() if first_edges.size else []
    vertices = sorted({0, n_vertices, *cuts, *range(0, n_vertices, max_vertices)})
    edges = offsets[cp.asarray(vertices, np.int64)].get().tolist()
    for i in range(len(vertices) - 1):
        yield vertices[i], vertices[i + 1], edges[i], edges[i + 1]
