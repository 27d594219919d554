"""Builds a CSR on a GPU: the same arrays as ``kepler_traverse.cpu.csr_build``, bit for bit.

Edges are counted per vertex, the counts are summed, and edges are scattered with the offsets as
cursors. Then the adjacency lists are sorted, a part of the edges at a time.

Memory, in bytes per stored edge with 32-bit ends and weights (12 bytes per edge of the edge list):

- the caller's edge list: 12, or 6 if edges are stored both ways,
- targets and weights: 8,
- sorting a sixteenth of the edges at a time: 2.5 (keys 8, their copy in argsort 8, the order 8,
  buffers of the radix sort 16), or, if parallel edges were merged, one copy of the targets or the
  weights: 4.

Together that is 2 times the edge list, and 8 bytes per vertex. An adjacency list longer than such a
part is sorted whole, with 40 bytes per edge.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .._arrays import Array
from . import cp
from .compiler import kernel
from .copies import copy_array, copy_into
from .graph_statistics import degree_statistics as degree_statistics
from .graph_statistics import edges_at
from .kernel_spec import WARP, make_entries
from .launch import launch
from .vertex_ids import renumber as renumber  # a part of protocols.CsrBackend

BLOCK = 256
PIECES = 16  # parts of the edges, which are sorted one after the other to save memory
MIN_PIECE = 1 << 16  # edges of a part; below it launches cost more than sorting
SHIFTED_AT_ONCE = 1 << 20  # offsets that are summed, or moved, in one step

_FILE = Path(__file__).parent / "kernels" / "csr_build.cu"
_entry = make_entries(_FILE, BLOCK)
_COUNT_DEGREES = _entry("csr_count_degrees")
_SCATTER = _entry("csr_scatter")
_COUNT_TARGETS = _entry("csr_count_targets")
_SCATTER_REVERSE = _entry("csr_scatter_reverse_warp", item_threads=WARP)
_SORT_KEYS = _entry("csr_sort_keys_warp", item_threads=WARP)
_LOWER_WEIGHTS = _entry("csr_lower_weights")
_DECODE_WEIGHTS = _entry("csr_decode_weights")


_CARRY = _entry("csr_carry")
_COUNT_SETS = _entry("csr_count_sets")
_FLAG_SETS = _entry("csr_flag_sets")
_TAKE_SETS = _entry("csr_take_sets", optional="weights lowest")
_REORDER = _entry("csr_reorder")
_STORE_TARGETS = _entry("csr_store_targets")
_FIND_STARTS = _entry("csr_find_starts")
_MARK_TARGETS = _entry("csr_mark_targets")
_COUNT_ISOLATED = _entry("csr_count_isolated", optional="is_target")
ENTRIES = (
    _COUNT_DEGREES,
    _SCATTER,
    _COUNT_TARGETS,
    _SCATTER_REVERSE,
    _SORT_KEYS,
    _LOWER_WEIGHTS,
    _DECODE_WEIGHTS,
    _CARRY,
    _COUNT_SETS,
    _FLAG_SETS,
    _TAKE_SETS,
    _REORDER,
    _STORE_TARGETS,
    _FIND_STARTS,
    _MARK_TARGETS,
    _COUNT_ISOLATED,
)


def assemble(
    src: Array, dst: Array, weight: Array | None, n_vertices: int, both_ways: bool = False
) -> tuple[Array, Array, Array | None, int, int]:
    """Build the CSR of an edge list, without self-loops and parallel edges.

    ``src``, ``dst`` and ``weight``, which may be None, are CuPy arrays of shape (rows,); the first
    two hold vertex numbers. ``both_ways`` also stores each edge from dst to src.

    Return int64 offsets of shape (n_vertices + 1,); targets, ascending within an adjacency list;
    weights, the smallest one of parallel edges, or None; the number of rows that are self-loops;
    and the number of parallel edges that were merged, counted as they would have been stored.
    """
    # Kernels take contiguous arrays only.
    src = cp.ascontiguousarray(src)
    dst = cp.ascontiguousarray(dst)
    if weight is not None:
        weight = cp.ascontiguousarray(weight)
    types = _types(src, weight)  # the types of vertices and weights that kernels are compiled for
    n_edges = np.int64(src.size)
    ways = np.int32(both_ways)

    # Count the edges of each vertex; the first counter has the self-loops, which are left out. Each
    # ``launch`` runs a kernel over so many items, here the rows.
    offsets = cp.zeros(n_vertices + 1, np.int64)
    counters = cp.zeros(2, np.int64)
    launch(kernel(_COUNT_DEGREES, *types), src.size, (src, dst, n_edges, ways, offsets, counters))
    _degrees_to_offsets(offsets)
    total = int(offsets[-1])

    # Write each edge into the adjacency list of its vertex, in any order. The offset of a vertex is
    # the cursor of its list, and afterwards the end of the list.
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
    _restore_offsets(offsets)

    # Sorting merges parallel edges, which leaves arrays that are too long: a copy frees the rest.
    stored = _sort_lists(offsets, targets, weights)
    if stored < total:
        targets = copy_array(targets[:stored])
        if weights is not None:
            weights = copy_array(weights[:stored])
    return offsets, targets, weights, int(counters[0]), total - stored


def count_isolated(offsets: Array, targets: Array, directed: bool) -> int:
    """Return the number of vertices that no edge leaves and no edge enters.

    ``offsets`` and ``targets`` are those of the CSR. In an undirected graph each edge is stored at
    both ends, so that a vertex without an outgoing edge has no edge at all.
    """
    n_vertices = offsets.size - 1
    index = targets.dtype
    is_target = None  # of a directed graph: by vertex, 1 if an edge enters it
    counter = cp.zeros(1, np.int64)
    if directed:
        is_target = cp.zeros(n_vertices, np.uint8)
        launch(
            kernel(_MARK_TARGETS, index), targets.size, (targets, np.int64(targets.size), is_target)
        )
    launch(
        kernel(_COUNT_ISOLATED, index),
        n_vertices,
        (offsets, is_target, np.int64(n_vertices), counter),
    )
    return int(counter.get()[0])


def transpose(
    offsets: Array, targets: Array, weights: Array | None
) -> tuple[Array, Array, Array | None]:
    """Return the CSR of the reversed edges: offsets, sources and weights.

    The arguments are those of a CSR without parallel edges; ``weights`` may be None, as may the
    ones returned. ``sources`` has, by vertex, where the edges that lead to it begin, ascending.
    """
    types = _types(targets, weights)
    n_vertices = offsets.size - 1
    # Count the edges that lead to each vertex.
    reverse_offsets = cp.zeros(offsets.size, np.int64)
    launch(
        kernel(_COUNT_TARGETS, *types),
        targets.size,
        (targets, np.int64(targets.size), reverse_offsets),
    )
    _degrees_to_offsets(reverse_offsets)

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
    # Warps scatter in any order, and lists are sorted then. No edges are parallel, so that none is
    # merged, and the number that is returned is known.
    launch(kernel(_SCATTER_REVERSE, *types), n_vertices, reversed_edges)
    _restore_offsets(reverse_offsets)
    _sort_lists(reverse_offsets, sources, reverse_weights)
    return reverse_offsets, sources, reverse_weights


def _types(vertices: Array, weights: Array | None) -> tuple[np.dtype, np.dtype]:
    """Return the types of vertices and weights for which kernels are compiled. Without weights that
    of weights does not matter.
    """
    return vertices.dtype, np.dtype(np.float32) if weights is None else weights.dtype


def _degrees_to_offsets(counts: Array) -> None:
    """Replace counts by their cumulative sums, in place: degrees become offsets.

    This is done part by part, because CuPy's cumsum of the whole array would allocate a second one.
    """
    for first in range(0, counts.size, SHIFTED_AT_ONCE):
        part = counts[first : first + SHIFTED_AT_ONCE]
        if first:  # add the last sum of the part before to the first count of this part
            launch(kernel(_CARRY, np.int32), 1, (counts, np.int64(first)))
        copy_into(part, cp.cumsum(part))


def _restore_offsets(offsets: Array) -> None:
    """Restore offsets, in place, after a scatter has moved each one to the end of its adjacency
    list: where the next list begins. So each moves by one place, and the first becomes 0.
    """
    # From the end to the beginning, so that no part is overwritten before it is moved. The part
    # ``first`` to ``last - 1`` moves to ``first + 1`` to ``last``.
    for last in range(offsets.size - 1, 0, -SHIFTED_AT_ONCE):
        first = max(0, last - SHIFTED_AT_ONCE)
        copy_into(offsets[first + 1 : last + 1], copy_array(offsets[first:last]))
    offsets[:1].data.memset_async(0, offsets.itemsize)


def _sort_lists(offsets: Array, targets: Array, weights: Array | None) -> int:
    """Sort each adjacency list by target and merge parallel edges, all in place. Return the number
    of edges that are left.

    The remaining edges move to the front of ``targets`` and ``weights``, which may be None, and
    ``offsets`` are changed to match. What is behind them in both arrays means nothing.
    """
    if not targets.size:
        return 0
    n_vertices = offsets.size - 1
    types = _types(targets, weights)
    # A key of 63 bits holds a target and, above it, a vertex of the part: this limits the number of
    # vertices of a part.
    target_bits = max(1, (n_vertices - 1).bit_length())
    find_starts = kernel(_FIND_STARTS, *types)
    max_vertices = 1 << (63 - target_bits)
    stored = 0  # edges of earlier parts that are left
    # A part has the vertices ``first_vertex`` to ``last_vertex - 1``, whose edges are ``first`` to
    # ``last - 1``.
    for first_vertex, last_vertex, first, last in _iter_parts(offsets, targets, max_vertices):
        # A key has the vertex of an edge, counted in the part, above its target.
        n_listed = last_vertex - first_vertex
        keys = cp.empty(last - first, np.int64)
        key_args = {
            "offsets": offsets,
            "targets": targets,
            "first_vertex": np.int64(first_vertex),
            "n_vertices": np.int64(n_listed),
            "first_edge": np.int64(first),
            "target_bits": np.int32(target_bits),
            "keys": keys,
        }
        launch(kernel(_SORT_KEYS, *types), n_listed, key_args)

        part_weights = None if weights is None else weights[first:last]
        if keys.size and weights is None:
            keys.sort()
        elif keys.size:
            keys, part_weights = _sort_with_weights(keys, part_weights)
        keys, part_weights = _merge_equal_keys(keys, part_weights)
        # Lists begin elsewhere only where edges were merged, here or in an earlier part.
        # _FIND_STARTS writes the new offsets of the part's vertices.
        if stored != first or keys.size < last - first:
            start_args = (
                np.int64(keys.size),
                np.int64(n_listed),
                np.int32(target_bits),
                np.int64(stored),
            )
            launch(find_starts, n_listed, (keys, *start_args, offsets[first_vertex:last_vertex]))

        # The edges of this part are in keys now. Merged edges of the parts before it take no more
        # space than they did.
        place = slice(stored, stored + keys.size)
        launch(
            kernel(_STORE_TARGETS, *types),
            keys.size,
            (keys, np.int64(keys.size), np.int32(target_bits), targets[place]),
        )
        if weights is not None:
            copy_into(weights[place], part_weights)
        stored += keys.size
    copy_into(offsets[n_vertices:], cp.asarray(np.array([stored], np.int64)))
    return stored


def _sort_with_weights(keys: Array, weights: Array) -> tuple[Any, ...]:
    """Return keys in ascending order, and the weights of their edges in the same order."""
    order = cp.argsort(keys)
    sorted_keys = cp.empty(keys.size, np.int64)
    sorted_weights = cp.empty(keys.size, weights.dtype)
    reordered = (order, keys, weights, np.int64(keys.size), sorted_keys, sorted_weights)
    launch(kernel(_REORDER, np.int32, weights.dtype), keys.size, reordered)
    return sorted_keys, sorted_weights


def _merge_equal_keys(keys: Array, weights: Array) -> tuple[Array, Array]:
    """Return one key of each run of equal ones, and the smallest weight of each run.

    ``keys``, int64, ascend; equal ones are parallel edges. ``weights`` are those of the same edges,
    or None, and so is then what is returned for them. Without equal keys both are returned as they
    are.
    """
    types = (np.int32, np.dtype(np.float32) if weights is None else weights.dtype)
    size = np.int64(keys.size)
    # _COUNT_SETS counts the runs of equal keys, which are adjacent.
    counter = cp.zeros(1, np.int64)
    launch(kernel(_COUNT_SETS, *types), keys.size, (keys, size, counter))
    n_sets = int(counter.get()[0])
    if n_sets == keys.size:
        return keys, weights

    # The number of a run, counted from 1, is the sum of the flags of first keys up to there. Flags
    # are dropped as soon as they are summed, since each of these arrays has a word per edge.
    flags = cp.empty(keys.size, np.int64)
    launch(kernel(_FLAG_SETS, *types), keys.size, (keys, size, flags))
    sets = cp.cumsum(flags)
    del flags
    distinct = cp.empty(n_sets, np.int64)
    lowest = None
    if weights is not None:
        lowest = cp.empty(n_sets, np.dtype(f"i{weights.dtype.itemsize}"))
    # _TAKE_SETS writes the key of each run to ``distinct``, and the first weight of a run, as an
    # integer of the same order, to ``lowest``. Smaller weights of the run then lower it.
    launch(kernel(_TAKE_SETS, *types), keys.size, (keys, sets, weights, size, distinct, lowest))
    if weights is not None:
        lower_weights(sets, weights, 1, lowest)
        weights = decode_weights(lowest, weights.dtype)
    return distinct, weights


def lower_weights(edges: Array, weights: Array, first: int, lowest: Array) -> None:
    """Replace each entry of ``lowest`` by the smallest weight of its rows, if that is smaller.

    ``edges``, int64, and ``weights`` have an element per row. The weight of row i belongs to entry
    ``edges[i] - first`` of ``lowest``, and to none if that is below 0. ``lowest`` holds keys:
    integers in the order of the weights and of their width, as ``kt::to_ordered`` makes them,
    because atomic minima on a GPU are of integers.
    """
    args = (edges, weights, np.int64(edges.size), np.int64(first), lowest)
    launch(kernel(_LOWER_WEIGHTS, np.int32, weights.dtype), edges.size, args)


def decode_weights(lowest: Array, dtype: np.dtype) -> Array:
    """Return weights of a type from their keys: integers in the order of the weights, as
    ``kt::to_ordered`` makes them.
    """
    weights = cp.empty(lowest.size, dtype)
    launch(
        kernel(_DECODE_WEIGHTS, np.int32, dtype),
        lowest.size,
        (lowest, np.int64(lowest.size), weights),
    )
    return weights


def _iter_parts(
    offsets: Array, targets: Array, max_vertices: int
) -> Iterator[tuple[int, int, int, int]]:
    """Yield (first vertex, end vertex, first edge, end edge) of parts of a CSR, of whole adjacency
    lists and about 1 / PIECES of the edges each. No part has more than ``max_vertices`` vertices.
    """
    n_vertices = offsets.size - 1
    n_edges = targets.size
    part_size = max(MIN_PIECE, -(-n_edges // PIECES))
    first_edges = np.arange(part_size, n_edges, part_size)
    # the vertices whose lists contain these edges; each begins a part
    sources, _ = edges_at(offsets, targets, first_edges)
    vertices = sorted({0, n_vertices, *sources.tolist(), *range(0, n_vertices, max_vertices)})
    # a copy to the host for each, as there are few
    edges = [int(offsets[vertex : vertex + 1].get()[0]) for vertex in vertices]
    for i in range(len(vertices) - 1):
        yield vertices[i], vertices[i + 1], edges[i], edges[i + 1]
