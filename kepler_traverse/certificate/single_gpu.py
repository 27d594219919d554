"""The passes over edges and vertices on a GPU: one each, and one wait. See single.cu."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..cuda import cp
from ..cuda.compiler import kernel
from ..cuda.kernel_spec import WARP, Entry, arguments
from ..cuda.launch import launch
from ..errors import InputError
from . import batch_gpu
from .batch import TILE_BYTES

BLOCK = 256

_FILE = Path(__file__).parent / "kernels" / "single.cu"
_SIZES = (("PIECE", batch_gpu.PIECE), ("TILE_BYTES", TILE_BYTES))
_ROWS = ("int64 n_vertices", "vertex_t* hubs", "uint64* pieces", "int64* n_hubs")
_OF_VERTICES = ("vertex_t* predecessor", "uint8* explained", "int64 n_vertices", "int64 source")
_CHECK_HOPS = Entry(
    "certificate_check_hops_warp",
    _FILE,
    BLOCK,
    arguments(
        *("offset_t* offsets", "vertex_t* targets", *_ROWS, "int32* distance", "vertex_t* predecessor", "int32 limit"),
        *("uint8* explained", "int64* counts"),
    ),
    item_threads=WARP,
    constants=_SIZES,
)
_LOOK_AT_HOPS = Entry(
    "certificate_look_at_hops",
    _FILE,
    BLOCK,
    arguments("int32* distance", *_OF_VERTICES, "int32 limit", "int64* counts"),
    constants=_SIZES,
)
_CHECK_WEIGHTED = Entry(
    "certificate_check_weighted_warp",
    _FILE,
    BLOCK,
    arguments(
        *("offset_t* offsets", "vertex_t* targets", "weight_t* weights", *_ROWS, "weight_t* distance"),
        *("vertex_t* predecessor", "weight_t limit", "uint8* explained", "int64* counts"),
    ),
    item_threads=WARP,
    constants=_SIZES,
)
_LOOK_AT_WEIGHTED = Entry(
    "certificate_look_at_weighted",
    _FILE,
    BLOCK,
    arguments("weight_t* distance", *_OF_VERTICES, "weight_t limit", "int32 is_negative", "int64* counts"),
    constants=_SIZES,
)
ENTRIES = (_CHECK_HOPS, _LOOK_AT_HOPS, _CHECK_WEIGHTED, _LOOK_AT_WEIGHTED)


def check(graph, result, limit) -> list[int]:
    """Check C1 to C4, as ``certificate.cpu.check`` does.

    Raises
    ------
    InputError
        The distances are of another type than this graph's traversals have.
    """
    distance, predecessor = result.distance, result.predecessor
    weighted = distance.dtype.kind == "f"  # int64 has a module of its own
    expected = graph.weights.dtype if weighted and graph.weights is not None else np.dtype(np.int32)
    if distance.dtype != expected:
        raise InputError(f"distances of this graph are {expected}, the result has {distance.dtype}; convert the column")
    n, source = np.int64(graph.n_vertices), np.int64(result.source)
    distance, predecessor = cp.ascontiguousarray(distance), cp.ascontiguousarray(predecessor)
    types = (graph.targets.dtype, expected if weighted else np.float32)
    hubs = batch_gpu.hub_rows(graph)
    explained = cp.zeros(graph.n_vertices, np.uint8)
    counts = cp.asarray(np.array([0, 0, n, 0, 0, n, 0, n, 0], np.int64))
    check_edges, look = (_CHECK_WEIGHTED, _LOOK_AT_WEIGHTED) if weighted else (_CHECK_HOPS, _LOOK_AT_HOPS)
    check_edges, look = (kernel(entry.variant(PIECE=batch_gpu.PIECE), *types) for entry in (check_edges, look))
    edges = (graph.offsets, graph.targets, *((graph.weights,) if weighted else ()), n, *hubs)
    launch(check_edges, -(-int(n) // WARP) + hubs[1].size, (*edges, distance, predecessor, limit, explained, counts))
    signs = (np.int32(graph.has_negative_weights),) if weighted else ()
    launch(look, n, (distance, predecessor, explained, n, source, limit, *signs, counts))
    return counts.get().tolist()
