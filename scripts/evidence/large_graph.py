"""A graph with edge positions of 2^31 and more, which is generated, built, searched and certified on one GPU.

Blocks of an R-MAT graph are drawn on the device with one shuffle for all, and built by ``graph_from_edges``. With scale 26
and 35 edges per vertex, it has 2.35 billion rows, of which about 2.3 billion are expected to be distinct edges (by the
probability of each cell of the matrix).

Upper bound of bytes per row, before measuring:

- src, dst and weight: 12;
- vertex numbers, since vertices without edges have none: 8;
- targets and weights: 8;
- one copy of either without parallel edges, or the memory for sorting a sixteenth: 4.

That is 32 bytes, or 75 GB.
"""

from __future__ import annotations

import time
from contextlib import contextmanager

import numpy as np

from kepler_traverse import cuda, graph_from_edges, plan_bfs, plan_sssp
from kepler_traverse._arrays import to_host
from kepler_traverse.certificate import certify, certify_many
from scripts.bench.large_graphs import PIECE, draw
from scripts.evidence import gpu
from scripts.evidence.gpu import attempt
from scripts.make_graphs import Draws
from scripts.measure.environment import free_pool, wait_for_gpu

SCALE = 26
EDGE_FACTOR = 35
BOUNDARY = 1 << 31
SOURCES = 2
LOOKED_UP = 300  # rows of the list, in the graph


class Steps:
    """Seconds of each step, and the bytes of CuPy's pool after it."""

    def __init__(self):
        self.rows = []
        self.errors = []

    @contextmanager
    def step(self, what: str):
        wait_for_gpu()
        begin = time.perf_counter()
        yield
        wait_for_gpu()
        row = {"step": what, "seconds": round(time.perf_counter() - begin, 4), "held": gpu.held()}
        self.rows.append(row)
        print(row, flush=True)


def measure_huge(_options) -> dict:
    """Seconds and memory of each step; every result certified, and a fault beyond 2^31 noticed."""
    steps = Steps()
    with steps.step("edges drawn"):
        src, dst, weight = _edges()
    free_pool()
    rows = src.size
    with steps.step("graph built"):
        graph = graph_from_edges(src, dst, weight)
    lost = _lost(graph, src, dst, weight)
    del src, dst, weight
    free_pool()
    print(graph, graph.report, flush=True)
    beyond = cuda.cp.flatnonzero((graph.offsets[:-1] >= BOUNDARY) & (graph.derived.degrees > 0))
    starts = cuda.cp.flatnonzero(graph.derived.degrees > 8)
    places = starts.size * np.arange(1, SOURCES + 1) // (SOURCES + 1)
    sources = [int(starts[int(place)]) for place in places]
    figures = {
        "rows": rows,
        "vertices": graph.n_vertices,
        "edges": graph.n_edges,
        "beyond": graph.n_edges - BOUNDARY,
        "vertices_beyond": int(beyond.size),
        "type_of_targets": graph.targets.dtype.name,
        "looked_up": LOOKED_UP,
        "lost": lost,
        "certified": 0,
        "faults": [0, 0],
    }
    found = {}
    for plan_of in (plan_bfs, plan_sssp):
        with attempt(steps.errors, plan_of.__name__):
            found[plan_of] = _search(graph, plan_of, sources, beyond, steps, figures)
    with attempt(steps.errors, "reverse"):
        _together(graph, sources, found[plan_bfs], steps, figures)
    return figures | {"steps": steps.rows, "errors": steps.errors}


def _edges() -> tuple:
    rows = EDGE_FACTOR << SCALE
    src, dst = draw(1 << SCALE, rows)
    rng = Draws(cuda.cp, 2)
    weight = cuda.cp.empty(rows, np.float32)
    for first in range(0, rows, PIECE):
        part = weight[first : first + PIECE]
        part[:] = rng.random(part.size, np.float32)
    return src, dst, weight


def _lost(graph, src, dst, weight) -> int:
    """Return how many of some sampled rows are not in the graph, or have a larger weight there."""
    lost = 0
    for place in np.linspace(0, src.size - 1, LOOKED_UP).astype(np.int64).tolist():
        row = slice(place, place + 1)
        u, v = (int(graph.to_numbers(to_host(end[row]))[0]) for end in (src, dst))
        first, last = to_host(graph.offsets[u : u + 2]).tolist()
        at = first + int(np.searchsorted(to_host(graph.targets[first:last]), v))
        is_there = (
            at < last
            and int(graph.targets[at]) == v
            and float(graph.weights[at]) <= float(weight[place])
        )
        lost += u != v and not is_there
    return lost


def _search(graph, plan_of, sources, beyond, steps, figures) -> list:
    """Distances from each source, certified."""
    name = plan_of.__name__[5:]
    distances = []
    with steps.step(f"{name} planned"):
        plan = plan_of(graph)
    for source in sources:
        plan.run(source)  # the first call loads the kernels
        with steps.step(f"{name} from {source}, {plan.strategy.name}"):
            result = plan.run(source)
        print(f"{int(result.reached.sum())} reached in {result.rounds} rounds", flush=True)
        with steps.step(f"{name} certified"):
            certify(graph, result).require()
        figures["certified"] += 1
        at = beyond[result.reached[beyond] & (result.distance[beyond] > 0)]
        if at.size:
            wrong = result.copy()
            wrong.distance[at[-1:]] += 1
            figures["faults"][0] += 1
            figures["faults"][1] += not certify(graph, wrong).valid
        distances.append(result.distance.copy())
    return distances


def _together(graph, sources, distances, steps, figures) -> None:
    """Build the reverse graph, with which several searches are certified at once and a BFS may pull."""
    with steps.step("edges turned round"):
        graph = graph.derived.with_reverse()
    with steps.step("searches certified together"):
        certify_many(graph, np.array(sources), cuda.cp.stack(distances)).require()
    plan = plan_bfs(graph)
    for source, before in zip(sources, distances, strict=True):
        plan.run(source)
        with steps.step(f"bfs from {source}, {plan.strategy.name}, with the reverse"):
            result = plan.run(source)
        if not bool((result.distance == before).all()):
            raise RuntimeError(f"distances from {source} differ with the reverse")
        certify(graph, result).require()
        figures["certified"] += 1
