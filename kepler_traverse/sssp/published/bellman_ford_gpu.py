"""Systems for GPUs: Bellman-Ford's algorithm with and without a frontier, and the rows of the piles
(``threshold_methods.py``).

Each is named by what it does. In all of them distances fall by an atomic minimum on ordered integers, and predecessors are
made afterwards by the launches that all rows share (``gpu.Run.finish``). Targets do not end a search early.

``mask_thread``: Harish, Narayanan. HiPC 2007; H-BF, section 3, [19].
    There as here a thread looks at each vertex in each round; those with a mask offer paths into a second array of costs,
    and another kernel takes over what fell and sets masks.
``topology_thread``: Burtscher, Nasre, Pingali. IISWC 2012 (LonestarGPU); H-BF, section 3, [7], and Table 2.
    One kernel, one array, until no thread has raised the flag; no frontier, so a round is as long as the graph. The suite
    has several variants; this is the plain one.
``work_front``: Davidson, Baxter, Garland, Owens. IPDPS 2014; H-BF, section 3, [9], and Table 2.
    A frontier, whose edges are shared out evenly: by merge path there, by a search in the sums of the degrees here. There
    two more kernels and a compaction remove duplicates with a lookup table (H-BF, section 4.2); here a mark of the round,
    taken by an atomic exchange, keeps them out as they come.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from ...cuda import cp
from ...cuda.csr_build import degree_statistics
from ...cuda.kernel_spec import WARP, Entry, arguments
from ...cuda.launch import launch, resident_threads
from ...strategy import Strategy
from .. import gpu_steps
from ..host_loop import rounds
from . import threshold_methods
from .params import BLOCK, DELTA_BUCKETS, MAX_BUCKETS, BucketKnobs, DeltaSteppingKnobs, NearFarKnobs, ThresholdKnobs

_KERNELS = Path(__file__).parents[1] / "kernels" / "published"
_GRAPH = ("offset_t* offsets", "vertex_t* targets", "weight_t* weights")
_SWEEP = Entry(
    "sssp_sweep_thread",
    _KERNELS / "topology_driven.cu",
    BLOCK,
    arguments(*_GRAPH, "int64 n_vertices", "weight_t limit", "ordered_t* keys", "vertex_t*? parent", "int64* counters"),
)
_MASK = {
    "relax": Entry(
        "sssp_mask_relax_thread",
        _KERNELS / "topology_driven.cu",
        BLOCK,
        arguments(
            *_GRAPH,
            *("ordered_t* keys", "int64 n_vertices", "weight_t limit"),
            *("int32* mask", "ordered_t* updating", "vertex_t*? parent"),
        ),
    ),
    "take over": Entry(
        "sssp_mask_take_over",
        _KERNELS / "topology_driven.cu",
        BLOCK,
        arguments("ordered_t* updating", "int64 n_vertices", "ordered_t* keys", "int32* mask", "int64* counters"),
    ),
}
_WORK_FRONT = {
    "degrees": Entry(
        "sssp_work_front_degrees",
        _KERNELS / "workfront_sweep.cu",
        BLOCK,
        arguments("offset_t* offsets", "vertex_t* frontier", "int64 n_frontier", "offset_t* degrees"),
    ),
    "relax": Entry(
        "sssp_work_front_relax",
        _KERNELS / "workfront_sweep.cu",
        BLOCK,
        arguments(
            *_GRAPH,
            *("vertex_t* frontier", "int64 n_frontier", "offset_t* ends"),
            *("weight_t limit", "int32 round", "int64 capacity"),
            *("ordered_t* keys", "int32* queued_in", "vertex_t*? parent", "vertex_t* next", "int64* counters"),
        ),
        item_threads=WARP,
    ),
}
ENTRIES = (_SWEEP, *_MASK.values(), *_WORK_FRONT.values(), *threshold_methods.ENTRIES)


def _sweep(run: gpu_steps.Run, _count: int) -> None:
    """Relax all edges; the frontier stands for the flag."""
    run.frontier.clear_counters()
    state = (run.limit, run.keys, run.parent, run.frontier.counters)
    launch(run.relax["sweep"], run.n_vertices, (*run.edges, run.n_vertices, *state))
    run.frontier.size = run.frontier.read_counters()[0]


class MaskRun(gpu_steps.Run):
    """A search with a mask and two arrays of distances."""

    def __init__(self, graph, query):
        super().__init__(graph, query, _MASK)
        self.updating = cp.empty(graph.n_vertices, self.keys.dtype)
        self.mask = self.queued_in  # which nobody needs before predecessors are made

    def start(self, source: int) -> None:
        super().start(source)
        self.updating[...] = self.keys
        self.mask.fill(0)
        self.mask[source] = 1


def _mask(run: MaskRun, _count: int) -> None:
    """Relax the edges of the vertices with a mask, then make the updated distances the present ones."""
    run.frontier.clear_counters()
    state = (run.mask, run.updating, run.parent)
    launch(run.relax["relax"], run.n_vertices, (*run.edges, run.keys, run.n_vertices, run.limit, *state))
    into = (run.keys, run.mask, run.frontier.counters)
    launch(run.relax["take over"], run.n_vertices, (run.updating, run.n_vertices, *into))
    run.frontier.size = run.frontier.read_counters()[0]


def _mask_memory(n_vertices: int, n_edges: int, predecessors: bool) -> int:
    return 8 * n_vertices + gpu_steps.memory(n_vertices, n_edges, predecessors)


class WorkFrontRun(gpu_steps.Run):
    """A search with a frontier and the sums of its degrees."""

    def __init__(self, graph, query):
        super().__init__(graph, query, _WORK_FRONT)
        self.degrees, self.ends = cp.empty((2, graph.n_vertices), np.int64)
        _, _, self.largest_degree = degree_statistics(graph.offsets)


def _work_front(run: WorkFrontRun, count: int) -> None:
    """Relax the edges of the frontier in equal shares."""
    frontier = run.frontier
    degrees, ends = run.degrees[: frontier.size], run.ends[: frontier.size]
    vertices = (frontier.queue, np.int64(frontier.size))
    frontier.clear_counters()
    launch(run.relax["degrees"], frontier.size, (run.graph.offsets, *vertices, degrees))
    cp.cumsum(degrees, out=ends)
    state = (run.keys, run.queued_in, run.parent, frontier.next, frontier.counters)
    # How many edges there are the device alone knows: as many warps as it holds, unless fewer get an edge for each lane.
    warps = min(resident_threads() // WARP, frontier.size * int(run.largest_degree) // WARP + 1)
    given = (*vertices, ends, run.limit, np.int32(count), np.int64(frontier.capacity))
    launch(run.relax["relax"], warps, (*run.edges, *given, *state))
    frontier.advance()


_DAVIDSON = "Davidson, Baxter, Garland, Owens 2014"
_NON_NEGATIVE = frozenset({"weights", "non_negative"})

STRATEGIES = (
    Strategy(
        name="mask_thread",
        aliases=("harish_narayanan",),
        device="cuda",
        plan=rounds(MaskRun, _mask),
        memory=_mask_memory,
        needs=frozenset({"weights"}),
        paper="Harish, Narayanan 2007",
        rationale="a second array of distances and a second kernel, so that nothing changes while it is read",
        complexity="O(D V) looks, O(V E) relaxations at worst",
    ),
    Strategy(
        name="topology_thread",
        aliases=("lonestar",),
        device="cuda",
        plan=rounds(partial(gpu_steps.Run, entries={"sweep": _SWEEP}), _sweep),
        memory=gpu_steps.memory,
        needs=frozenset({"weights"}),
        paper="Burtscher, Nasre, Pingali 2012 (LonestarGPU)",
        rationale="no frontier: every round costs all edges, however little is left to do",
        complexity="O(D E), D up to V",
    ),
    Strategy(
        name="work_front",
        aliases=("workfront_sweep",),
        device="cuda",
        plan=rounds(WorkFrontRun, _work_front),
        memory=lambda n, m, predecessors: 16 * n + gpu_steps.memory(n, m, predecessors),
        needs=frozenset({"weights"}),
        paper=f"{_DAVIDSON} (Workfront Sweep)",
        rationale="a scan and a search share out edges evenly, whatever the degrees",
        complexity="O(V E)",
    ),
    Strategy(
        name="near_far_piles",
        aliases=("near_far_pile",),
        device="cuda",
        plan=threshold_methods.thresholds(
            lambda graph, knobs: threshold_methods.by_width(threshold_methods.mean_width(graph, knobs.edges_a_pile), 1),
            NearFarKnobs(),
        ),
        memory=threshold_methods.memory(1),
        needs=_NON_NEGATIVE,
        paper=f"{_DAVIDSON} (Near-Far Pile)",
        rationale="one threshold: most of what is far falls further before it is touched",
        complexity="O(V E) at worst; an edge is relaxed again only while its pile is near",
        knobs=NearFarKnobs,
    ),
    Strategy(
        name="buckets",
        aliases=("bucketing",),
        device="cuda",
        plan=threshold_methods.thresholds(
            lambda graph, knobs: threshold_methods.by_width(
                threshold_methods.mean_width(graph, knobs.edges_a_bucket), knobs.n_buckets
            ),
            BucketKnobs(),
        ),
        memory=threshold_methods.memory(MAX_BUCKETS),
        needs=_NON_NEGATIVE,
        paper=f"{_DAVIDSON} (Bucketing)",
        rationale="more thresholds sort more of what is far, and divide it less often",
        complexity="O(V E) at worst; an edge is relaxed again only while its pile is near",
        knobs=BucketKnobs,
    ),
    Strategy(
        name="delta_stepping",
        aliases=("meyer_sanders",),
        device="cuda",
        plan=threshold_methods.thresholds(
            lambda graph, knobs: threshold_methods.by_width(
                threshold_methods.delta_for(graph, knobs.delta), DELTA_BUCKETS, has_heavy=True
            ),
            DeltaSteppingKnobs(),
        ),
        memory=threshold_methods.memory(DELTA_BUCKETS),
        needs=_NON_NEGATIVE,
        paper="Meyer, Sanders 2003",
        rationale="delta leads from Dijkstra to Bellman-Ford; heavy edges are relaxed once a bucket",
        complexity="O(V E) at worst; an edge is relaxed again only while its pile is near",
        knobs=DeltaSteppingKnobs,
    ),
    Strategy(
        name="threshold_front",
        aliases=("martin", "ortega_arranz"),
        device="cuda",
        plan=threshold_methods.thresholds(
            lambda graph, knobs: threshold_methods.by_vertices(graph, knobs.threshold == "lightest_edges"), ThresholdKnobs()
        ),
        memory=threshold_methods.memory(1, lightest=True),
        needs=_NON_NEGATIVE,
        paper="Martin, Torres, Gavilanes 2009; Ortega-Arranz, Torres, Llanos, Gonzalez-Escribano 2013",
        rationale="Dijkstra on a GPU: all that is known to be final is relaxed at once, each vertex once in a search",
        complexity="O(E) relaxations, O(D V) looks at what waits",
        knobs=ThresholdKnobs,
    ),
)
