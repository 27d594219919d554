"""Measure betweenness and flows on a GPU: ``python -m scripts.bench.loads_gpu FOLDER [--only NAME ...] [--all]``.

Graphs are those of ``scripts.bench.gpu``; FOLDER holds the files. Loads of two sources are compared with a plain loop on the
CPU before anything is timed. Those of all sources are compared with cuGraph's, by hops, where it can be imported. A row has
milliseconds per source of the searches, of the loads and of cuGraph. The clock is around the whole call. With ``--all``, all
sources of soc-Slashdot0902 are taken, too. Flows are one unit from each of 1,024 sources to each vertex.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from kepler_traverse import Graph, cuda, plan_bfs, plan_bfs_many, plan_sssp_many
from kepler_traverse.kinds import betweenness_gpu, flows_gpu
from scripts.bench.gpu import GENERATORS, GRAPHS
from scripts.measure.environment import timed_on_gpu

SEED, REPEATS, CHECKED, FLOWS = 7, 3, 2, 1024
# Graph, algorithm, sources, methods.
CASES = (
    ("soc-Slashdot0902", "bfs", 1024, ("lanes", "blocks")),
    ("USA-road-NY", "bfs", 64, ("auto",)),
    ("USA-road-NY", "bfs", 1024, ("auto",)),
    ("USA-road-NY", "sssp", 1024, ("auto",)),
    ("USA-road-NE", "bfs", 16, ("auto",)),
    ("USA-road-NE", "bfs", 264, ("auto",)),
    ("R-MAT 20", "bfs", 128, ("lanes",)),
    ("uniform 2M", "bfs", 64, ("lanes",)),
)


@njit(cache=True)
def add_reference(
    offsets, targets, weights, distance, order, source, loads
):  # pragma: no cover (compiled)
    """Add the dependencies of one source, in the order of distances; weights are 1 by hops."""
    paths, dependency = np.zeros(distance.size), np.zeros(distance.size)
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
    loads, of_hops = np.zeros(graph.n_vertices), rows.dtype.kind == "i"
    weights = np.ones(graph.n_edges, np.int64) if of_hops else graph.weights.get()
    for source, row in zip(sources, rows.get(), strict=True):
        reached = np.flatnonzero(row >= 0) if of_hops else np.flatnonzero(np.isfinite(row))
        order = reached[np.argsort(row[reached], kind="stable")]
        distance = row.astype(np.int64) if of_hops else row
        add_reference(
            graph.offsets.get(), graph.targets.get(), weights, distance, order, source, loads
        )
    return loads


def sources_of(graph: Graph, count: int) -> np.ndarray:
    """Return random vertices that are reached from a vertex of the highest degree, or all vertices."""
    if count == graph.n_vertices:
        return np.arange(count)
    hub = int(graph.derived.degrees.argmax())
    reached = np.flatnonzero(plan_bfs(graph, predecessors=False).run(hub).distance.get() >= 0)
    return np.random.default_rng(SEED).choice(reached, count, replace=False)


def as_floats(sums: Any) -> np.ndarray:
    return sums.high.get().astype(np.float64) + sums.low.get().astype(np.float64) * 2.0**-64


def require_equal(what: str, found: np.ndarray, expected: np.ndarray, tolerance: float) -> float:
    """Return the largest relative difference, or end the program if it is too large."""
    worst = float(np.max(np.abs(found - expected) / np.maximum(expected, 1.0)))
    if not worst <= tolerance:
        raise SystemExit(f"{what}: loads differ by {worst:.2e}")
    return worst


def cugraph_of(graph: Graph) -> Callable[[np.ndarray], np.ndarray] | None:
    """Return cuGraph's betweenness from given sources, prepared for this graph, or None where it is not installed."""
    try:
        import pylibcugraph
    except ImportError:
        return None
    cp, handle = cuda.cp, pylibcugraph.ResourceHandle()
    theirs = pylibcugraph.SGGraph(
        handle,
        pylibcugraph.GraphProperties(is_symmetric=not graph.directed, is_multigraph=False),
        graph.offsets.astype(cp.int32),
        graph.targets,
        weight_array=None,
        store_transposed=False,
        renumber=False,
        do_expensive_check=False,
        input_array_format="CSR",
    )

    def betweenness(sources: np.ndarray) -> np.ndarray:
        starts = cp.asarray(sources, graph.targets.dtype)
        vertices, values = pylibcugraph.betweenness_centrality(
            handle, theirs, starts, None, False, False, False
        )
        loads = np.empty(graph.n_vertices)
        loads[vertices.get()] = values.get()
        return loads

    return betweenness


def measure_betweenness(
    name: str, graph: Graph, algorithm: str, n_sources: int, methods: tuple[str, ...]
) -> Iterator[dict]:
    """Yield a row per method."""
    sources = sources_of(graph, n_sources)
    plan = (plan_bfs_many if algorithm == "bfs" else plan_sssp_many)(graph, n_sources=n_sources)
    theirs = cugraph_of(graph) if algorithm == "bfs" else None
    _, reverse_seconds = timed_on_gpu(lambda: graph.reverse)
    for method in methods:

        def of_groups(chosen: np.ndarray, method: str = method) -> tuple[Any, float, int]:
            sums, seconds, left = betweenness_gpu.ExactSums(graph.n_vertices), 0.0, 0
            for group in plan.iter_groups(chosen):
                rows = group.distance
                if method == "blocks" and rows.dtype == np.int8:
                    rows = rows.astype(np.int16)
                flags, taken = timed_on_gpu(
                    lambda rows=rows, group=group: betweenness_gpu.add_loads(
                        graph, group.sources, rows, sums, method=method
                    )
                )
                seconds, left = seconds + taken, left + int(flags.sum())
            return sums, seconds, left

        few = sources[:CHECKED]
        found, _, left = of_groups(few)
        expected = reference(graph, few, plan.run(few).distance)
        worst = (
            require_equal(f"{name}, {algorithm}, {method}", as_floats(found), expected, 1e-12)
            if not left
            else np.nan
        )
        times, same = [], []
        for _ in range(REPEATS):
            (sums, loads, left), whole = timed_on_gpu(lambda: of_groups(sources))
            times.append((whole, loads))
            same.append(sums.low.get().tobytes() + sums.high.get().tobytes())
            if whole > 8:
                break
        if len(set(same)) != 1:
            raise SystemExit(f"{name}, {algorithm}, {method}: loads differ between runs")
        whole, loads = min(times)
        row = {
            "graph": name,
            "algorithm": algorithm,
            "method": method,
            "sources": n_sources,
            "left": left,
        }
        row |= {
            "distances_ms": (whole - loads) / n_sources * 1e3,
            "loads_ms": loads / n_sources * 1e3,
            "worst": worst,
        }
        row["reverse_ms"] = reverse_seconds * 1e3
        if theirs is not None:
            theirs(few)
            answer, taken = timed_on_gpu(lambda: theirs(sources))
            row["cugraph_ms"] = taken / n_sources * 1e3
            row["not_finite_of_cugraph"] = int(np.count_nonzero(~np.isfinite(answer)))
            if not row["not_finite_of_cugraph"]:
                scale = answer.sum() / as_floats(sums).sum()
                row["beside_cugraph"] = require_equal(
                    f"{name} beside cuGraph", as_floats(sums) * scale, answer, 1e-3
                )
            row["times"] = taken / whole
        yield row


def measure_flows(name: str, graph: Graph, algorithm: str) -> dict:
    """Measure flows of one unit from each source to each vertex; by hops, their sum is that of the distances."""
    n, sources = graph.n_vertices, sources_of(graph, FLOWS)
    plan = (plan_bfs_many if algorithm == "bfs" else plan_sssp_many)(graph, n_sources=FLOWS)
    ones = np.ones(n, np.int64)

    def flows() -> tuple[Any, float, int]:
        sums, seconds, total = betweenness_gpu.ExactSums(graph.n_edges + 2), 0.0, 0
        for group in plan.iter_groups(sources):
            kind = group.distance.dtype
            last = (np.finfo if kind.kind == "f" else np.iinfo)(kind).max
            volumes = flows_gpu.Volumes(
                np.arange(n), ones, ones[: len(group)], None, kind.type(last), is_wide=False
            )
            left, taken = timed_on_gpu(
                lambda group=group, volumes=volumes: flows_gpu.add_flows(
                    graph, group.sources, group.distance, volumes, "edges", sums
                )
            )
            if left.any():
                raise SystemExit(
                    f"{name}: edges add nothing to paths from {int(left.sum())} sources"
                )
            seconds += taken
            total += int(group.distance.clip(0).sum(dtype=np.int64)) if algorithm == "bfs" else 0
        return sums, seconds, total

    flows()
    (sums, taken, total), whole = timed_on_gpu(flows)
    if algorithm == "bfs" and int(sums.low[:-2].get().sum()) != total:
        raise SystemExit(
            f"{name}: flows over edges add up to {int(sums.low[:-2].get().sum())}, distances to {total}"
        )
    row = {"graph": name, "algorithm": f"flows, {algorithm}", "sources": FLOWS}
    return row | {"distances_ms": (whole - taken) / FLOWS * 1e3, "loads_ms": taken / FLOWS * 1e3}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="of the Parquet files")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="graphs")
    parser.add_argument("--all", action="store_true", help="all sources of soc-Slashdot0902")
    parser.add_argument("--output", type=Path, help="JSON file for the rows")
    parser.add_argument(
        "--set",
        nargs="+",
        default=[],
        metavar="NAME=VALUE",
        help="constants of betweenness_gpu, or with FLOW_ of flows_gpu",
    )
    options = parser.parse_args(arguments)
    for name, value in (each.split("=") for each in options.set):
        module = flows_gpu if name.startswith("FLOW_") else betweenness_gpu
        if not isinstance(vars(module).get(name.removeprefix("FLOW_")), int):
            parser.error(f"there is no constant {name}")
        setattr(module, name.removeprefix("FLOW_"), int(value))
    from scripts.papers import graphs
    from scripts.papers.experiments import GraphSource

    rows = []

    def add(row: dict) -> None:
        rows.append(row)
        print(
            {
                name: round(value, 4) if isinstance(value, float) else value
                for name, value in row.items()
            },
            flush=True,
        )
        if options.output:
            options.output.write_text(json.dumps(rows, indent=1), encoding="utf-8")

    for name in dict.fromkeys(case[0] for case in CASES):
        if options.only and name not in options.only:
            continue
        which, parameters, directed = GRAPHS[name]
        given = (
            {"generator": which, "arguments": parameters}
            if which in GENERATORS
            else {"file": which}
        )
        made = graphs.make(
            GraphSource(name, directed=directed, **given), options.folder, "cuda", SEED
        )
        for _, algorithm, n_sources, methods in (case for case in CASES if case[0] == name):
            graph = made.hops if algorithm == "bfs" else made.weighted
            for row in measure_betweenness(name, graph, algorithm, n_sources, methods):
                add(row)
        if options.all and name == "soc-Slashdot0902":
            for row in measure_betweenness(
                name, made.hops, "bfs", made.hops.n_vertices, ("lanes",)
            ):
                add(row)
        if name.startswith("USA-road"):
            for graph, algorithm in ((made.hops, "bfs"), (made.weighted, "sssp")):
                add(measure_flows(name, graph, algorithm))
        del made
        cuda.cp.get_default_memory_pool().free_all_blocks()
    return 0


if __name__ == "__main__":
    sys.exit(main())
