"""One source and many on a GPU, compared with cuGraph; results are compared and certified before they are timed.

python -m scripts.bench --suite gpu --graphs FOLDER --output FILE [--only NAME ...] [--part NAME ...]

FOLDER holds Parquet files with columns src and dst (GRAPHS below lists which); lattices, R-MAT and uniform graphs are
generated on the device. Weights 1 to 255 come from a hash of an edge's ends. Sources are random vertices of the component
of a vertex of the highest degree, the same ones for both libraries.

single   medians over 16 sources, the best of three calls each, the clock around the whole call on a ready graph; cuGraph
         on as many of them as --peer-seconds permits, with distances compared
many     milliseconds per source for 32, 256, 1,024 and 10,000 sources (or as many as fit), distances left on the device,
         the memory that the plan states and the memory that was used; cuGraph's loop over up to 32 of them
trace    the start of each iteration of a search in one launch, from the source with the median BFS time of the 16

``python -m scripts.bench.performance_page add`` reads FILE; COLUMNS lists its tables.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np

from scripts.measure.environment import new_run, timed_on_gpu
from scripts.pages import write_record

# name: (file or generator, its arguments, directed)
GRAPHS = {
    "USA-road-NE": ("USA-road-NE-topology", (), False),
    "USA-road-NY": ("USA-road-d.NY", (), False),
    "lattice 1500": ("lattice", (1500, 1500, 0.1), False),
    "R-MAT 20": ("rmat", (20, 16), False),
    "R-MAT 22": ("rmat", (22, 16), False),
    "uniform 2M": ("erdos_renyi", (2_000_000, 64_000_000), False),
    "R-MAT 24": ("rmat", (24, 16), False),
    "lattice 4000": ("lattice", (4000, 4000, 0.1), False),
    "cnr-2000": ("cnr-2000", (), True),
    "soc-Slashdot0902": ("soc-Slashdot0902", (), True),
}
GENERATORS = ("lattice", "rmat", "erdos_renyi")
SINGLE, MANY, LOOPED = 16, (32, 256, 1024, 10_000), 32
LARGE = 400_000_000  # graphs with more stored edges have 256 sources as the largest number
PARTS = ("single", "many", "trace")


class Bench:
    """One graph on the device, its sources, and the baseline's handle to it."""

    def __init__(self, name: str, options):
        from kepler_traverse import cuda
        from scripts.papers import graphs
        from scripts.papers.experiments import GraphSource

        cuda.require()
        self.cp, self.name, self.options = cuda.cp, name, options
        which, arguments, directed = GRAPHS[name]
        given = (
            {"generator": which, "arguments": arguments} if which in GENERATORS else {"file": which}
        )
        made = graphs.make(
            GraphSource(name, directed=directed, **given), options.graphs, "cuda", options.seed
        )
        self.hops, self.weighted, self.directed = made.hops, made.weighted, directed
        self.sources = self.sources_in_the_component(max(MANY))
        self._of_baseline = {}  # algorithm: the result of baselines(), which single and many share

    def sources_in_the_component(self, count: int) -> np.ndarray:
        from kepler_traverse import plan_bfs

        hub = int(self.hops.derived.degrees.argmax())
        reached = plan_bfs(self.hops, predecessors=False).run(hub).distance >= 0
        vertices = np.flatnonzero(reached.get())
        return np.random.default_rng(self.options.seed).choice(
            vertices, count, replace=count > vertices.size
        )

    def typical_source(self) -> int:
        """Return the source with the median BFS time of ``single``."""
        from kepler_traverse import plan_bfs

        plan, sources = plan_bfs(self.hops), self.sources[:SINGLE].tolist()
        times = {
            s: min(timed_on_gpu(lambda s=s: plan.run(s))[1] for _ in range(3)) for s in sources
        }
        return min(times, key=lambda s: abs(times[s] - statistics.median_low(times.values())))

    def graph(self, algorithm: str):
        return self.hops if algorithm == "bfs" else self.weighted

    def about(self, algorithm: str) -> dict:
        graph = self.graph(algorithm)
        return {
            "graph": self.name,
            "vertices": graph.n_vertices,
            "edges": graph.n_edges,
            "directed": graph.directed,
            "algorithm": algorithm,
            "weights": "" if algorithm == "bfs" else "float32, 1 to 255 hashed",
            "device": "cuda",
        }

    def baselines(self, algorithm: str) -> tuple[dict, dict]:
        """Return seconds per source of each variant of the baseline, and distances, for as many sources as time permits."""
        from pipelines.comparison import choose_baseline, in_our_encoding, refuse_rounded

        if algorithm in self._of_baseline:
            return self._of_baseline[algorithm]
        graph, times, expected = self.graph(algorithm), {}, {}
        self._of_baseline[algorithm] = times, expected
        if not self.options.peer or graph.n_edges > np.iinfo(np.int32).max:
            return times, expected
        _, ways = choose_baseline(graph, algorithm)
        for way, traverse in ways.items():
            traverse(int(self.sources[0]))  # loads and fills the caches
            times[way], began = {}, time.perf_counter()
            for source in self.sources[:LOOPED].tolist():
                if times[way] and time.perf_counter() - began > self.options.peer_seconds / len(
                    ways
                ):
                    break
                answer, times[way][source] = timed_on_gpu(lambda s=source, t=traverse: t(s))
                if source in expected or len(expected) >= SINGLE:
                    continue
                distance = in_our_encoding(answer, graph, algorithm)
                if algorithm == "sssp":
                    refuse_rounded(distance, np.dtype(np.float32))
                    distance = distance.astype(np.float32)
                expected[source] = distance
        return times, expected


def check_equal(bench: Bench, what: str, source: int, distance, expected: dict) -> None:
    if source in expected:
        wrong = int((distance != expected[source]).sum())
        if wrong:
            raise SystemExit(
                f"{bench.name}, {what}: {wrong} distances from source {source} differ from the baseline's"
            )


def single(bench: Bench, algorithm: str, run: dict) -> list:
    """Certify and compare, then time; returns a row of the table of medians."""
    from kepler_traverse import certify, plan_bfs, plan_sssp

    graph, make = bench.graph(algorithm), plan_bfs if algorithm == "bfs" else plan_sssp
    times, expected = bench.baselines(algorithm)
    plans = {True: make(graph), False: make(graph, predecessors=False)}
    ours = {True: {}, False: {}}
    sources = bench.sources[:SINGLE].tolist()
    for with_predecessors, plan in plans.items():
        for source in sources:
            result = plan.run(source)
            check_equal(bench, algorithm, source, result.distance, expected)
            if with_predecessors:
                certify(graph, result).require()
            found = [timed_on_gpu(lambda p=plan, s=source: p.run(s)) for _ in range(3)]
            ours[with_predecessors][source] = min(taken for _, taken in found)
            rounds = found[0][0].rounds
    medians = {key: statistics.median(found.values()) * 1e3 for key, found in ours.items()}
    baseline = {way: statistics.median(found.values()) * 1e3 for way, found in times.items()}
    best = min(baseline, key=baseline.get) if baseline else None
    if best:
        both = [source for source in sources if source in times[best] and source in expected]
        run["traversals"].append(
            bench.about(algorithm)
            | {
                "strategy": plans[True].strategy.name,
                "sources": len(both),
                "seconds": sum(ours[True][source] for source in both),
                "peak_bytes": None,
                "peer": f"cuGraph {best}",
                "peer_seconds": sum(times[best][source] for source in both),
                "peer_peak_bytes": None,
                "agrees": True,
                "certified": True,
            }
        )
    times_ms = [medians[True], medians[False], max(ours[True].values()) * 1e3, rounds]
    return [
        bench.name,
        algorithm,
        *times_ms,
        f"cuGraph {best}" if best else None,
        baseline[best] if best else None,
    ]


def many(bench: Bench, algorithm: str) -> list[list]:
    """Compare with single searches and the baseline, then time whole calls; returns rows of the table of many sources."""
    from kepler_traverse import plan_bfs, plan_bfs_many, plan_sssp, plan_sssp_many

    graph = bench.graph(algorithm)
    make, make_single = (
        (plan_bfs_many, plan_bfs) if algorithm == "bfs" else (plan_sssp_many, plan_sssp)
    )
    times, expected = bench.baselines(algorithm)
    baseline = {way: statistics.mean(found.values()) * 1e3 for way, found in times.items()}
    best = min(baseline, key=baseline.get) if baseline else None
    pool, alone, rows = (
        bench.cp.get_default_memory_pool(),
        make_single(graph, predecessors=False),
        [],
    )
    counts = [k for k in MANY if k <= (256 if graph.n_edges > LARGE else max(MANY))]
    each = 0.0
    for k in counts:
        if each * k > bench.options.many_seconds * 1e3:
            break
        sources = bench.sources[:k]
        pool.free_all_blocks()
        held = pool.total_bytes()
        plan = make(graph, n_sources=k)
        group = plan.run(sources[: min(k, plan.group)])
        for i in range(0, min(k, plan.group), max(1, min(k, plan.group) // 8)):
            check_equal(bench, algorithm, int(sources[i]), group[i].distance, expected)
            one = alone.run(int(sources[i])).distance
            if not bool((group[i].distance.view(np.int32) == one.view(np.int32)).all()):
                raise SystemExit(
                    f"{bench.name}, {algorithm}: source {sources[i]} of {k} differs from the same alone"
                )
        del group

        def whole(plan=plan, sources=sources):
            for found in plan.iter_groups(sources):  # noqa: B007
                pass
            return found

        bests = []
        for _ in range(3 if k <= 1024 else 1):
            _, taken = timed_on_gpu(whole)
            bests.append(taken)
            if taken > 20:
                break
        each = min(bests) / k * 1e3
        name, planned, peak = plan.strategy.name, plan.nbytes, pool.total_bytes() - held
        del plan
        rows.append(
            [
                bench.name,
                algorithm,
                name,
                k,
                each,
                baseline[best] if best else None,
                planned / 2**20,
                peak / 2**20,
            ]
        )
        print(rows[-1], flush=True)
    return rows


def trace(bench: Bench, algorithm: str) -> list[dict]:
    """Return the iterations of one search, with a kernel that records them."""
    from kepler_traverse.bfs import persistent as bfs_persistent
    from kepler_traverse.bfs import tuning as bfs_params
    from kepler_traverse.search.query import Query
    from kepler_traverse.sssp import near_far_gpu as sssp_persistent
    from kepler_traverse.sssp import tuning as sssp_params

    module, params = (
        (bfs_persistent, bfs_params) if algorithm == "bfs" else (sssp_persistent, sssp_params)
    )
    source = bench.typical_source()
    traverse = module.plan(bench.graph(algorithm), Query(tuning=params.Tuning(trace=20_000)))
    for _ in range(3):
        traverse(source)
    return [iteration._asdict() for iteration in traverse.iterations()]


PACKAGES = ("numpy", "cupy-cuda13x", "cupy-cuda12x", "pylibcugraph-cu13", "pylibcugraph-cu12")
# The table of each part: its name and columns. Times are milliseconds: of "single" medians over 16 sources and the slowest
# of them, of "many" per source.
COLUMNS = {
    "single": (
        "medians",
        [
            "graph",
            "algorithm",
            "ours_ms",
            "without_predecessors_ms",
            "worst_ms",
            "rounds",
            "baseline",
            "baseline_ms",
        ],
    ),
    "many": (
        "many_sources",
        [
            "graph",
            "algorithm",
            "strategy",
            "sources",
            "ms_per_source",
            "baseline_ms_per_source",
            "mib_planned",
            "mib_held",
        ],
    ),
}


def tables_of(found: dict[str, list[list]]) -> list[dict]:
    """Return the measured rows of each part as tables of docs/benchmarks/measurements.json."""
    return [
        {"name": name, "columns": columns, "rows": found[part]}
        for part, (name, columns) in COLUMNS.items()
        if found[part]
    ]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.bench --suite gpu", description="One source and many on a GPU."
    )
    parser.add_argument("--graphs", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE")
    parser.add_argument("--only", nargs="+", choices=GRAPHS, default=list(GRAPHS), metavar="NAME")
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--algorithm", nargs="+", choices=("bfs", "sssp"), default=["bfs", "sssp"])
    parser.add_argument(
        "--peer-seconds",
        type=float,
        default=4.0,
        help="seconds for the baseline, per graph and algorithm",
    )
    parser.add_argument(
        "--many-seconds", type=float, default=10.0, help="start no call that would take longer"
    )
    parser.add_argument(
        "--seconds", type=float, default=np.inf, help="start no further graph after this time"
    )
    parser.add_argument("--without-peer", dest="peer", action="store_false")
    parser.add_argument("--commit", help="default: what git says")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    title, command = (
        "One source and many on one H200, compared with cuGraph",
        f"--suite gpu {' '.join(arguments)}",
    )
    run = new_run(title, PACKAGES, f"python -m scripts.bench {command}", options.commit)
    tables, traces, began = {part: [] for part in COLUMNS}, {}, time.perf_counter()
    for name in options.only:
        if time.perf_counter() - began > options.seconds:
            print(f"{name}: omitted, the time is over", flush=True)
            continue
        bench = Bench(name, options)
        for part in options.part:
            for algorithm in options.algorithm:
                if part == "single":
                    tables[part].append(single(bench, algorithm, run))
                elif part == "many":
                    tables[part] += many(bench, algorithm)
                else:
                    traces[f"{name}, {algorithm}"] = trace(bench, algorithm)
                if part == "single":
                    print(tables[part][-1], flush=True)
                run["tables"] = tables_of(tables)
                write_record(options.output, run)  # finished measurements are written
                if traces:
                    options.output.with_suffix(".trace.json").write_text(json.dumps(traces))
        print(f"{name}: {time.perf_counter() - began:.0f} s so far", flush=True)
        del bench
    print(f"{options.output}: python -m scripts.bench.performance_page add {options.output}")
    return 0
