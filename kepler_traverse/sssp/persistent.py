"""SSSP in one launch: near and far piles, split by thresholds that the device chooses itself. See near_far.cu."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .._arrays import at_most, to_host
from ..cuda import cp
from ..cuda.entry import Entry, arguments
from ..cuda.launch import blocks_at_once, prepare
from ..strategy import Outcome
from . import gpu, params

_FILE = Path(__file__).parent / "kernels" / "near_far.cu"
_ENTRY = Entry(
    "sssp_near_far",
    _FILE,
    params.PERSISTENT_BLOCK,
    arguments(
        "offset_t* offsets",
        "vertex_t* targets",
        "weight_t* weights",
        "int64 n_vertices",
        "weight_t limit",
        "weight_t width",
        "int64*? wanted",
        "int64 n_wanted",
        "vertex_t source",
        "ordered_t* keys",
        "int32* marks",
        "vertex_t* queue",
        "vertex_t* next_queue",
        "vertex_t* piles",
        "uint64* pieces",
        "int64 piece_room",
        "int64* words",
        "uint32* arrived",
        "int64* outcome",
    ),
    is_cooperative=True,
    constants=(
        ("CHUNK", params.PIECE),
        ("SMALL", params.SMALL_FRONTIER),
        ("SMALL_EDGES", params.SMALL_EDGES),
        ("SMALL_FAR", params.SMALL_FAR),
        ("HOPS", params.HOPS),
        ("HOP_EDGES", params.HOP_EDGES),
        ("HOP_DEGREE", params.HOP_DEGREE),
        ("EDGES_A_LANE", params.EDGES_A_LANE),
        ("LOCAL", params.LOWERED_ROOM),
        ("LIGHT", params.LIGHT_STEP),
        ("WARM_UP", params.WARM_UP),
    ),
)
ENTRIES = (_ENTRY,)
_N_WORDS = 13


def plan(graph, query):
    """Allocate and compile; return ``traverse(source)``."""
    n, m, index = graph.n_vertices, graph.n_edges, graph.targets.dtype
    run = gpu.Run(graph, query, {"all": _ENTRY})
    # A row of CHUNK edges or more has one piece more than it fills, at most; and one turn's are read while another's come.
    piece_room = 2 * m // dict(_ENTRY.constants)["CHUNK"] + 1
    pieces = cp.empty(2 * piece_room, np.uint64)
    piles = cp.empty(2 * n, index)
    words = cp.zeros(3 * _N_WORDS, np.int64)
    arrived = cp.zeros(1, np.uint32)
    outcome = cp.zeros(2, np.int64)
    on_host = np.frombuffer(cp.cuda.alloc_pinned_memory(outcome.nbytes), np.int64, 2)
    wanted = None if query.targets is None else cp.asarray(query.targets, np.int64)
    given = (
        *run.edges,
        run.n_vertices,
        run.limit,
        first_width(graph, query.targets is not None),
        wanted,
        np.int64(0 if wanted is None else wanted.size),
        index.type(0),  # the source, of each traversal its own
        run.keys,
        run.queued_in,
        run.frontier.queue,
        run.frontier.next,
        piles,
        pieces,
        np.int64(piece_room),
        words,
        arrived,
        outcome,
    )

    search = prepare(run.relax["all"], blocks_at_once(run.relax["all"]), given)

    def traverse(source: int) -> Outcome:
        arrived.data.memset_async(0, arrived.nbytes)
        search(source=index.type(source))
        outcome.get(out=on_host)
        steps, is_settled = on_host.tolist()
        limit = query.limit
        if is_settled:
            # On the host, and as ordered integers: CuPy would take subnormal distances for zero.
            limit = float(to_host(run.distance[wanted]).max())
            run.distance[~at_most(run.distance, limit)] = np.inf
        run.finish(source)
        return Outcome(run.distance, run.predecessor, limit, steps)

    return traverse


def first_width(graph, may_stop: bool = False):
    """Distance between the first two thresholds.

    So wide that a vertex has a few edges shorter than that, but no less than the lightest edge: narrower piles would spare
    no work. With equal weights no vertex is lowered twice, so that all are near, as in a BFS; unless the search may stop,
    which it does between piles.
    """
    weights, real = graph.weights, graph.weights.dtype
    if not graph.n_edges:
        return real.type(0)
    lightest, heaviest = float(weights.min()), float(weights.max())
    if lightest == heaviest and not may_stop:
        return real.type(np.inf)
    with np.errstate(over="ignore"):  # of weights near the largest number: all are near then
        mean = float(weights.mean(dtype=np.float64))
        return real.type(max(params.EDGES_A_WIDTH * mean * graph.n_vertices / graph.n_edges, lightest))


def memory(n_vertices: int, n_edges: int, predecessors: bool) -> int:
    """Bytes of a run at most: float64 distances, predecessor, marks, two queues, two piles, pieces of long rows."""
    index = 4 if n_vertices < 2**31 else 8
    return n_vertices * (8 + 4 + index * (4 + predecessors)) + 32 * n_edges // params.PIECE + 16
