"""Betweenness and flows on a GPU, compared with cuGraph's betweenness by hops.

Graphs are those of ``scripts.bench.gpu``. Loads of two sources are compared with a plain loop on the CPU before anything is
timed, and those of all sources with cuGraph's. The clock is around the whole call; ``loads_share`` is the share of the loads
in it. Flows are one unit from each of 1,024 sources to each vertex. ``--set kepler_traverse.kinds.betweenness_gpu.NAME=1``
sets a constant.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numba import njit

from kepler_traverse import Graph, cuda, plan_bfs
from kepler_traverse._arrays import to_host
from kepler_traverse.kinds import betweenness_gpu, flows_gpu
from scripts.bench.gpu import Case, case_of
from scripts.measure.environment import timed_on_gpu
from scripts.measure.work import (
    OURS,
    Baseline,
    Call,
    Inputs,
    Repeats,
    Timed,
    Work,
    planner,
)

PACKAGES = ("cupy-cuda13x", "cupy-cuda12x", "pylibcugraph-cu13", "pylibcugraph-cu12")
SEED = 7
CHECKED = 2
FLOWS = 1024
# Graph, algorithm, sources (None: all), methods.
CASES: tuple[tuple[str, str, int | None, tuple[str, ...]], ...] = (
    ("soc-Slashdot0902", "bfs", 1024, ("lanes", "blocks")),
    ("soc-Slashdot0902", "bfs", None, ("lanes",)),
    ("USA-road-NY", "bfs", 64, ("auto",)),
    ("USA-road-NY", "bfs", 1024, ("auto",)),
    ("USA-road-NY", "sssp", 1024, ("auto",)),
    ("USA-road-NE", "bfs", 16, ("auto",)),
    ("USA-road-NE", "bfs", 264, ("auto",)),
    ("R-MAT 20", "bfs", 128, ("lanes",)),
    ("uniform 2M", "bfs", 64, ("lanes",)),
)
ROADS = ("USA-road-NY", "USA-road-NE")


@njit(cache=True)
def add_reference(
    offsets, targets, weights, distance, order, source, loads
):  # pragma: no cover (compiled)
    """Add the dependencies of one source, in the order of distances; weights are 1 by hops."""
    paths = np.zeros(distance.size)
    dependency = np.zeros(distance.size)
    paths[source] = 1
    for v in order:
        for e in range(offsets[v], offsets[v + 1]):
            if distance[v] + weights[e] == distance[targets[e]]:
                paths[targets[e]] += paths[v]
    for v in order[::-1]:
        for e in range(offsets[v], offsets[v + 1]):
            w = targets[e]
            if distance[v] + weights[e] == distance[w]:
                dependency[v] += paths[v] / paths[w] * (1 + dependency[w])
        if v != source:
            loads[v] += dependency[v]


def reference(graph: Graph, sources: np.ndarray, rows: Any) -> np.ndarray:
    """Return the loads of a few sources, by a plain loop on the CPU."""
    loads = np.zeros(graph.n_vertices)
    of_hops = rows.dtype.kind == "i"
    weights = np.ones(graph.n_edges, np.int64) if of_hops else to_host(graph.weights)
    arrays = to_host(graph.offsets), to_host(graph.targets), weights
    for source, row in zip(sources, to_host(rows), strict=True):
        reached = np.flatnonzero(row >= 0) if of_hops else np.flatnonzero(np.isfinite(row))
        order = reached[np.argsort(row[reached], kind="stable")]
        distance = row.astype(np.int64) if of_hops else row
        add_reference(*arrays, distance, order, source, loads)
    return loads


def sources_of(graph: Graph, count: int | None) -> np.ndarray:
    """Return random vertices that are reached from a vertex of the highest degree, or all vertices."""
    if count is None:
        return np.arange(graph.n_vertices)
    hub = int(graph.derived.degrees.argmax())
    reached = np.flatnonzero(to_host(plan_bfs(graph, predecessors=False).run(hub).distance) >= 0)
    return np.random.default_rng(SEED).choice(reached, count, replace=False)


class Sums:
    """Sums of 128 bits on the device, in two arrays."""

    def __init__(self, size: int) -> None:
        self.low = cuda.cp.zeros(size, np.uint64)
        self.high = cuda.cp.zeros(size, np.int64)


def as_floats(sums: Any) -> np.ndarray:
    return to_host(sums.high).astype(np.float64) + to_host(sums.low).astype(np.float64) * 2.0**-64


def differences(expected: np.ndarray, found: np.ndarray, tolerance: float) -> str:
    worst = float(np.max(np.abs(found - expected) / np.maximum(expected, 1.0)))
    if worst <= tolerance:
        return ""
    return f"loads differ by {worst:.2e}"


def beside_cugraph(ours: np.ndarray, theirs: np.ndarray) -> str:
    """Compare loads with cuGraph's, which are scaled, if all of these are finite."""
    if ours is theirs or not np.isfinite(theirs).all():
        return ""
    return differences(theirs, ours * theirs.sum() / ours.sum(), 1e-3)


def planned(case: Case, algorithm: str, count: int) -> Any:
    return planner(algorithm, many=True)(case.graph(algorithm), n_sources=count)


def betweenness(case: Case, algorithm: str, count: int | None, method: str) -> Call:
    """Prepare loads by a method; those of a few sources must be those of a plain loop."""
    graph = case.graph(algorithm)
    sources = sources_of(graph, count)
    plan = planned(case, algorithm, sources.size)

    def of_groups(chosen: np.ndarray) -> tuple[Any, float, int]:
        sums = Sums(graph.n_vertices)
        seconds = 0.0
        left = 0
        into = betweenness_gpu.LoadSums(vertices=sums)
        for group in plan.iter_groups(chosen):
            rows = group.distance
            if method == "blocks" and rows.dtype == np.int8:
                rows = rows.astype(np.int16)
            add = partial(
                betweenness_gpu.add_loads, graph, group.sources, rows, into, method=method
            )
            flags, taken = timed_on_gpu(add)
            seconds = seconds + taken
            left = left + int(flags.sum())
        return sums, seconds, left

    few = sources[:CHECKED]
    found, _, left = of_groups(few)
    wrong = differences(reference(graph, few, plan.run(few).distance), as_floats(found), 1e-12)
    if wrong and not left:
        raise SystemExit(f"{algorithm}, {method}: {wrong}")

    def run() -> Timed:
        (sums, loads, _), whole = timed_on_gpu(lambda: of_groups(sources))
        return Timed(as_floats(sums), whole, {"loads_share": round(loads / whole, 4)})

    return run


def cugraph(case: Case, count: int | None) -> Call:
    """Prepare cuGraph's betweenness from the same sources."""
    import pylibcugraph

    graph = case.graph("bfs")
    cp = cuda.cp
    handle = pylibcugraph.ResourceHandle()
    given = {"weight_array": None, "store_transposed": False, "renumber": False}
    theirs = pylibcugraph.SGGraph(
        handle,
        pylibcugraph.GraphProperties(is_symmetric=not graph.directed, is_multigraph=False),
        graph.offsets.astype(cp.int32),
        graph.targets,
        do_expensive_check=False,
        input_array_format="CSR",
        **given,
    )
    starts = cp.asarray(sources_of(graph, count), graph.targets.dtype)

    def run() -> Timed:
        call = partial(
            pylibcugraph.betweenness_centrality, handle, theirs, starts, None, False, False, False
        )
        (vertices, values), taken = timed_on_gpu(call)
        loads = np.empty(graph.n_vertices)
        loads[to_host(vertices)] = to_host(values)
        return Timed(loads, taken, {"not_finite": int(np.count_nonzero(~np.isfinite(loads)))})

    return run


def flows(case: Case, algorithm: str) -> Call:
    """Prepare flows of one unit from each source to each vertex; by hops, their sum is that of the distances."""
    graph = case.graph(algorithm)
    n = case.graph(algorithm).n_vertices
    sources = sources_of(graph, FLOWS)
    plan = planned(case, algorithm, FLOWS)
    ones = np.ones(n, np.int64)

    def of_groups() -> tuple[Any, float, int]:
        sums = Sums(graph.n_edges + 2)
        seconds = 0.0
        total = 0
        for group in plan.iter_groups(sources):
            kind = group.distance.dtype
            last = kind.type((np.finfo if kind.kind == "f" else np.iinfo)(kind).max)
            units = ones[: len(group)]
            volumes = flows_gpu.Volumes(np.arange(n), ones, units, None, last)
            add = partial(
                flows_gpu.add_flows, graph, group.sources, group.distance, volumes, "edges", sums
            )
            left, taken = timed_on_gpu(add)
            if left.any():
                raise SystemExit(f"edges add nothing to paths from {int(left.sum())} sources")
            seconds += taken
            if algorithm == "bfs":
                total += int(group.distance.clip(0).sum(dtype=np.int64))
        return sums, seconds, total

    def run() -> Timed:
        (sums, loads, total), whole = timed_on_gpu(of_groups)
        if algorithm == "bfs" and int(to_host(sums.low[:-2]).sum()) != total:
            raise SystemExit(f"flows over edges do not add up to the distances, {total}")
        return Timed(None, whole, {"loads_share": round(loads / whole, 4)})

    return run


def works(inputs: Inputs) -> Iterator[Work]:
    given = {"repeats": Repeats(seconds=24.0)}
    for graph, algorithm, count, methods in CASES if inputs.device == "cuda" else ():
        of_sources = "all" if count is None else f"{count:,}"
        for method in methods:
            ours = partial(betweenness, algorithm=algorithm, count=count, method=method)
            theirs = {"cuGraph": partial(cugraph, count=count)} if algorithm == "bfs" else {}
            yield Work(
                name=f"{algorithm}: {method}, {of_sources} sources",
                graph=graph,
                size=count or 1,
                case=partial(case_of, graph=graph),
                peers={OURS: Baseline(prepare=ours, facts={"method": method})} | theirs,
                check=beside_cugraph,
                facts=lambda case, count=count: {} if count else {"size": case.hops.n_vertices},
                **given,
            )
    for graph in ROADS if inputs.device == "cuda" else ():
        for algorithm in ("bfs", "sssp"):
            yield Work(
                name=f"flows, {algorithm}: -, {FLOWS:,} sources",
                graph=graph,
                size=FLOWS,
                case=partial(case_of, graph=graph),
                peers={OURS: partial(flows, algorithm=algorithm)},
                **given,
            )
