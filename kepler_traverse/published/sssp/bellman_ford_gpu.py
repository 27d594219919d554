"""Systems for GPUs: Bellman-Ford with and without a frontier.

Each strategy is named after its mechanism. In all of them distances fall by an atomic minimum on
ordered integers, and predecessors are computed afterwards by the launches that all strategies share
(``gpu_steps.Run.finish``). Targets do not end a search early.

``mask_thread``: Harish, Narayanan. HiPC 2007; H-BF, section 3, [19].
    As in the paper, one thread per vertex reads its mask in each round. Vertices with a mask write
    candidate distances to a second array, and another kernel copies those that fell and sets masks.
``topology_thread``: Burtscher, Nasre, Pingali. IISWC 2012 (LonestarGPU); H-BF, section 3, [7], and
Table 2.
    One kernel and one array, until no thread has set the flag. There is no frontier, so each round
    scans the whole graph. The suite has several variants; this is the plain one.
``work_front``: Davidson, Baxter, Garland, Owens. IPDPS 2014; H-BF, section 3, [9], and Table 2.
    A frontier whose edges are balanced over the warps: by merge path in the paper, by a binary
    search in the prefix sums of the degrees here. In the paper two more kernels and a compaction
    remove duplicates with a lookup table (H-BF, section 4.2). Here a stamp with the number of the
    round, set by an atomic exchange, rejects them.

``graph`` is a Graph on the GPU, and ``query`` says what a search computes: predecessors or none,
and a limit of the distance. A run (``sssp.gpu_steps.Run``) is the state of a search: ``keys`` are
the distances as integers in the same order, and ``frontier`` has the vertices that the last round
has improved. A function of a run and the number of rounds before makes one round.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from ...cuda import cp
from ...cuda.csr_build import degree_statistics
from ...cuda.kernel_spec import WARP, make_entries
from ...cuda.launch import PackedLaunches, launch, resident_threads
from ...search.strategy import Strategy, state_bytes
from ...sssp import gpu_steps
from ...sssp.host_loop import rounds
from .params import BLOCK

_KERNELS = Path(__file__).parent / "kernels"
_TOPOLOGY_FILE = _KERNELS / "topology_driven.cu"
_WORK_FRONT_FILE = _KERNELS / "workfront_sweep.cu"
_topology = make_entries(_TOPOLOGY_FILE, BLOCK)
_work_front_entry = make_entries(_WORK_FRONT_FILE, BLOCK)
_SWEEP = _topology("sssp_sweep_thread")
_MASK = {
    "relax": _topology("sssp_mask_relax_thread"),
    "update": _topology("sssp_mask_update"),
}
_WORK_FRONT = {
    "degrees": _work_front_entry("sssp_work_front_degrees"),
    "relax": _work_front_entry("sssp_work_front_relax", item_threads=WARP),
}
ENTRIES = (_SWEEP, *_MASK.values(), *_WORK_FRONT.values())


class SweepRun(gpu_steps.Run):
    """A search without a frontier. The size of its frontier is a flag: 0 if no vertex improved in
    the last round.
    """

    def __init__(self, graph, query):
        super().__init__(graph, query, {"sweep": _SWEEP})
        self.mask = self.updating = None  # arguments that only a MaskRun has
        self.sweep = PackedLaunches(self.relax["sweep"])


def _sweep(run: SweepRun, _count: int) -> None:
    """Make one round: relax all edges, and read whether a vertex improved, which stands for the
    size of the frontier. ``_count``, the number of rounds before, is ignored: no vertex is queued.
    """
    run.frontier.clear_counters()
    run.sweep.launch(run.n_vertices, None, run.arguments)
    run.frontier.size, *_ = run.frontier.read_counters()


class MaskRun(gpu_steps.Run):
    """A search with a mask and two arrays of distances.

    ``mask`` has 1 for the vertices whose edges the next round relaxes. ``updating`` has candidate
    distances, which kernels lower in a round, and which replace ``distance`` at its end.
    """

    def __init__(self, graph, query):
        super().__init__(graph, query, _MASK)
        self.updating = cp.empty(graph.n_vertices, self.keys.dtype)  # candidate distances, as keys
        self.mask = self.queued_in  # an int32 array that is unused until predecessors are computed
        self.relax_masked = PackedLaunches(self.relax["relax"])

    def start(self, source: int) -> None:
        """Begin a search from the vertex number ``source``, which alone has a mask."""
        super().start(source)
        self.updating[...] = self.keys
        self.mask.fill(0)
        self.mask[source] = 1


def _relax_masked(run: MaskRun, _count: int) -> None:
    """Make one round: relax the edges of the vertices with a mask, then copy the distances that
    fell and set the masks of the next round. ``_count``, the number of rounds before, is ignored:
    no vertex is queued. The size of the frontier becomes a flag: 1 if a distance fell, else 0.
    """
    run.frontier.clear_counters()
    # This kernel clears each mask that it finds. The next one sets those of the next round.
    run.relax_masked.launch(run.n_vertices, None, run.arguments)
    state = (run.updating, run.n_vertices, run.keys, run.mask, run.frontier.counters)
    launch(run.relax["update"], run.n_vertices, state)
    run.frontier.size, *_ = run.frontier.read_counters()


class WorkFrontRun(gpu_steps.Run):
    """A search with a frontier and the prefix sums of its degrees."""

    def __init__(self, graph, query):
        super().__init__(graph, query, _WORK_FRONT)
        # int64, by position in the frontier: the degree of the vertex there, and the sum of the
        # degrees up to it, which is where its edges end among those of the frontier
        self.degrees, self.ends = cp.empty((2, graph.n_vertices), np.int64)
        _, _, self.largest_degree = degree_statistics(graph.offsets)
        self.relax_balanced = PackedLaunches(self.relax["relax"])


def _work_front(run: WorkFrontRun, count: int) -> None:
    """Make round ``count``: relax the edges of the frontier, divided evenly among the warps."""
    frontier = run.frontier
    size = frontier.size
    degrees = run.degrees[:size]
    ends = run.ends[:size]
    frontier.clear_counters()
    launch(run.relax["degrees"], size, (run.graph.offsets, frontier.queue, np.int64(size), degrees))
    cp.cumsum(degrees, out=ends)
    # Only the device knows the number of edges. It gets as many warps as it runs at once; or fewer,
    # the lanes for as many edges as the frontier has if all its degrees are the largest one.
    warps = min(resident_threads() // WARP, size * int(run.largest_degree) // WARP + 1)
    run.relax_balanced.launch(
        warps,
        frontier.queue.data.ptr,
        run.arguments,
        n_frontier=np.int64(size),
        round=np.int32(count),
    )
    frontier.advance()


_on_gpu = partial(Strategy, device="cuda", needs=frozenset({"weights"}))
STRATEGIES = (
    _on_gpu(
        name="mask_thread",
        aliases=("harish_narayanan",),
        plan=rounds(MaskRun, _relax_masked),
        memory=state_bytes(8, beside=gpu_steps.memory),
        paper="Harish, Narayanan 2007",
        rationale=(
            "a second array of distances and a second kernel, so that "
            "nothing changes while it is read"
        ),
        complexity="O(D V) looks, O(V E) relaxations at worst",
    ),
    _on_gpu(
        name="topology_thread",
        aliases=("lonestar",),
        plan=rounds(SweepRun, _sweep),
        memory=gpu_steps.memory,
        paper="Burtscher, Nasre, Pingali 2012 (LonestarGPU)",
        rationale="no frontier: every round costs all edges, however little is left to do",
        complexity="O(D E), D up to V",
    ),
    _on_gpu(
        name="work_front",
        aliases=("workfront_sweep",),
        plan=rounds(WorkFrontRun, _work_front),
        memory=state_bytes(16, beside=gpu_steps.memory),
        paper="Davidson, Baxter, Garland, Owens 2014 (Workfront Sweep)",
        rationale="a scan and a binary search distribute edges evenly, whatever the degrees",
        complexity="O(V E)",
    ),
)
