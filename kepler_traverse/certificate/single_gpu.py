"""The passes over edges and vertices on a GPU: one each, and one wait. See single.cu."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..cuda import cp
from ..cuda.compiler import kernel
from ..cuda.kernel_spec import WARP, make_entries
from ..cuda.launch import launch
from ..errors import InputError
from . import batch_gpu

BLOCK = 256

_FILE = Path(__file__).parent / "kernels" / "single.cu"
_entry = make_entries(_FILE, BLOCK, constants=batch_gpu.SIZES)
_CHECK_HOPS = _entry("certificate_check_hops_warp", item_threads=WARP)
_LOOK_AT_HOPS = _entry("certificate_look_at_hops")
_CHECK_WEIGHTED = _entry("certificate_check_weighted_warp", item_threads=WARP)
_LOOK_AT_WEIGHTED = _entry("certificate_look_at_weighted")
ENTRIES = (_CHECK_HOPS, _LOOK_AT_HOPS, _CHECK_WEIGHTED, _LOOK_AT_WEIGHTED)


def check(graph, result, limit) -> list[int]:
    """Check the rules C1 to C4 for a traversal, on a GPU.

    ``result`` is a ``Traversal`` with predecessors. ``limit`` is a scalar of the type of the
    distances: no vertex may be farther, and the largest value means no limit. Return nine numbers:
    those of ``_Findings``, in their order.

    Raises InputError: the type of the distances is not that of the graph.
    """
    distance = result.distance
    predecessor = result.predecessor
    is_weighted = distance.dtype.kind == "f"  # int64 has a module of its own
    if is_weighted and graph.weights is not None:
        expected = graph.weights.dtype
    else:
        expected = np.dtype(np.int32)
    if distance.dtype != expected:
        raise InputError(
            f"distances of this graph are {expected}, the result has "
            f"{distance.dtype}; convert the column"
        )

    n = np.int64(graph.n_vertices)
    source = np.int64(result.source)
    distance = cp.ascontiguousarray(distance)
    predecessor = cp.ascontiguousarray(predecessor)
    types = (graph.targets.dtype, expected if is_weighted else np.float32)
    # 1 for each vertex whose distance an edge from its predecessor explains
    is_explained = cp.zeros(graph.n_vertices, np.uint8)
    # The nine numbers that are returned. n stands where kernels take the smallest vertex.
    counts = cp.asarray(np.array([0, 0, n, 0, 0, n, 0, n, 0], np.int64))
    if is_weighted:
        entries = (_CHECK_WEIGHTED, _LOOK_AT_WEIGHTED)
    else:
        entries = (_CHECK_HOPS, _LOOK_AT_HOPS)
    check_edges, check_vertices = (
        kernel(entry.variant(CHUNK=batch_gpu.CHUNK), *types) for entry in entries
    )

    result_args = {
        "n_vertices": n,
        "distance": distance,
        "predecessor": predecessor,
        "limit": limit,
        "explained": is_explained,
        "counts": counts,
    }
    # Vertices with long adjacency lists, which are divided into chunks, so that several warps share
    # a hub. ``n_hubs`` has two numbers: of hubs, and of chunks.
    hubs, chunks, n_hubs = batch_gpu.list_hubs(graph)
    edge_args = {
        "offsets": graph.offsets,
        "targets": graph.targets,
        "weights": graph.weights if is_weighted else None,
    }
    hub_args = {"hubs": hubs, "chunks": chunks, "n_hubs": n_hubs}

    # Two passes: a warp per 32 vertices, and per chunk of a hub, checks edges, and marks vertices
    # that are explained. Then a thread per vertex looks at it, and at its mark.
    launch(check_edges, -(-int(n) // WARP) + chunks.size, {**edge_args, **hub_args, **result_args})
    is_negative = np.int32(is_weighted and graph.has_negative_weights)
    launch(check_vertices, n, {**result_args, "is_negative": is_negative, "source": source})
    return counts.get().tolist()
