#!/usr/bin/env python
"""Many and single sources on the CPU beside what a Python user would otherwise install; results are compared before times.

python scripts/bench.py --suite cpu --graphs FOLDER --output FILE [--only NAME ...] [--part many single]

FOLDER holds Parquet files with columns src and dst (GRAPHS below lists which); R-MAT and lattice are generated. Each
measurement is made in a process of its own, which is given the same rows of the same graph: deduplicated, without
self-loops, both ways where undirected; weights 1 to 255 come from a hash of an edge's ends. Peers are those of SciPy
(csgraph), NetworKit, igraph and rustworkx that are installed (``pip install 'kepler-traverse[bench]'``). All of them are
tried on a few sources; those that come within four times of the best of them are then timed on all. FILE is what
``scripts/bench_table.py add`` takes.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import date
from importlib.metadata import version
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

# name: (file or generator, directed)
GRAPHS = {
    "USA-road-NE": ("USA-road-NE-topology.parquet", False),
    "cnr-2000": ("cnr-2000.parquet", True),
    "soc-Slashdot0902": ("soc-Slashdot0902.parquet", True),
    "dblp-2010": ("dblp-2010.parquet", False),
    "R-MAT 20": ("rmat", False),
    "lattice 1500": ("lattice", False),
}
PEERS = {"SciPy": "scipy", "NetworKit": "networkit", "igraph": "igraph", "rustworkx": "rustworkx"}
MANY = {"bfs": 256, "sssp": 64}
SINGLE = 16
PROBE = 4  # sources that decide which peers are worth all
WORTH = 4.0


class Rows:
    """A graph as every library is given it: CSR arrays in files."""

    def __init__(self, folder: Path):
        self.offsets, self.targets, self.weights = (
            np.load(folder / f"{name}.npy") for name in ("offsets", "targets", "weights")
        )
        self.sources = np.load(folder / "sources.npy")

    @property
    def n(self) -> int:
        return self.offsets.size - 1

    def graph(self, directed: bool):
        from kepler_traverse.graph import Graph

        return Graph(
            offsets=self.offsets, targets=self.targets, weights=self.weights, ids=np.arange(self.n), directed=directed
        )

    def edges(self) -> tuple[np.ndarray, np.ndarray]:
        return np.repeat(np.arange(self.n), np.diff(self.offsets)), self.targets.astype(np.int64)


# --- libraries: ``prepare(rows, algorithm, directed)`` gives ``run(sources)``, which gives distances, a row a source -------


def ours(rows: Rows, algorithm: str, directed: bool):
    """The dense matrix of ``bfs_many`` and ``sssp_many``; for one source what a plan gives."""
    from kepler_traverse import plan_bfs, plan_bfs_many, plan_sssp, plan_sssp_many

    graph = rows.graph(directed)
    if directed:
        _ = graph.reverse
    single = (plan_bfs if algorithm == "bfs" else plan_sssp)(graph, predecessors=False)
    plans = {}

    def run(sources):
        if len(sources) == 1:
            return single.run(int(sources[0])).distance[None]
        if len(sources) not in plans:
            make = plan_bfs_many if algorithm == "bfs" else plan_sssp_many
            plans[len(sources)] = make(graph, n_sources=len(sources), result="matrix")
        plan = plans[len(sources)]
        groups = [group.distance for group in plan.over(sources)]
        widest = max((group.dtype for group in groups), key=lambda dtype: dtype.itemsize)
        run.strategy = plan.strategy.name
        return groups[0] if len(groups) == 1 else np.concatenate([group.astype(widest, copy=False) for group in groups])

    run.strategy = single.strategy.name
    return run


def scipy(rows: Rows, algorithm: str, _directed: bool):
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import dijkstra

    matrix = csr_matrix((rows.weights.astype(np.float64), rows.targets, rows.offsets), shape=(rows.n, rows.n))
    return lambda sources: dijkstra(matrix, indices=sources, unweighted=algorithm == "bfs").reshape(len(sources), -1)


def networkit(rows: Rows, algorithm: str, _directed: bool):
    import networkit as nk

    nk.setNumberOfThreads(len(os.sched_getaffinity(0)))
    src, dst = rows.edges()
    weighted = algorithm == "sssp"
    ends = (rows.weights.astype(np.float64), (src, dst)) if weighted else (src, dst)
    graph = nk.GraphFromCoo(ends, n=rows.n, directed=True, weighted=weighted)
    one = nk.distance.Dijkstra if weighted else nk.distance.BFS

    def run(sources):
        if len(sources) == 1:
            search = one(graph, int(sources[0]), False, False)
            search.run()
            return np.asarray(search.getDistances(asarray=True))[None]
        search = nk.distance.SPSP(graph, [int(source) for source in sources])
        search.run()
        return search.getDistances(asarray=True)

    return run


def igraph(rows: Rows, algorithm: str, _directed: bool):
    import igraph as ig

    graph = ig.Graph(n=rows.n, edges=np.stack(rows.edges(), axis=1), directed=True)
    weights = rows.weights.tolist() if algorithm == "sssp" else None
    return lambda sources: graph.distances(source=[int(source) for source in sources], weights=weights, mode="out")


def rustworkx(rows: Rows, algorithm: str, _directed: bool):
    import rustworkx as rx

    src, dst = rows.edges()
    weights = rows.weights if algorithm == "sssp" else np.ones(src.size)
    graph = rx.PyDiGraph()
    graph.add_nodes_from(range(rows.n))
    graph.extend_from_weighted_edge_list(list(zip(src.tolist(), dst.tolist(), weights.tolist(), strict=True)))

    def run(sources):
        distances = np.full((len(sources), rows.n), np.inf)
        for row, source in zip(distances, sources, strict=True):
            row[source] = 0
            for vertex, distance in rx.dijkstra_shortest_path_lengths(graph, int(source), float).items():
                row[vertex] = distance
        return distances

    return run


LIBRARIES = {"ours": ours, "SciPy": scipy, "NetworKit": networkit, "igraph": igraph, "rustworkx": rustworkx}


# --- one measurement, in a process of its own ---------------------------------------------------------------------------


def measure(folder: str, who: str, algorithm: str, directed: str, count: str, one_by_one: str) -> dict:
    """Time a library on the first sources; peak memory above what the process held before it built its graph."""
    rows = Rows(Path(folder))
    sources = rows.sources[: int(count)]
    tiny = Rows.__new__(Rows)
    tiny.offsets, tiny.targets = np.array([0, 1, 2, 2]), np.array([1, 2], np.int32)
    tiny.weights, tiny.sources = np.ones(2, np.float32), np.arange(2)
    warm = LIBRARIES[who](tiny, algorithm, directed == "True")  # imports and compiles
    warm(tiny.sources)
    warm(tiny.sources[:1])
    if who == "ours":
        compile_all(algorithm)
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = status("VmRSS")
    run = LIBRARIES[who](rows, algorithm, directed == "True")
    batches = [sources[i : i + 1] for i in range(sources.size)] if one_by_one == "True" else [sources]
    if one_by_one == "True":
        run(batches[0])
    digests, times = [], []
    for batch in batches:
        begin = time.perf_counter()
        distances = run(batch)
        times.append(time.perf_counter() - begin)
        digests += [digest(row) for row in distances]
    return {
        "seconds": sum(times) if one_by_one == "False" else statistics.median(times),
        "peak_bytes": status("VmHWM") - before,
        "digests": digests,
        "strategy": getattr(run, "strategy", None),
    }


def compile_all(algorithm: str) -> None:
    """Every engine once on a small graph, so that nothing compiles while the clock runs."""
    from kepler_traverse import graph_from_edges, plan_bfs, plan_bfs_many, plan_sssp_many
    from kepler_traverse.bfs import MANY as BFS
    from kepler_traverse.sssp import MANY as SSSP

    rng = np.random.default_rng(0)
    for directed in (True, False):
        graph = graph_from_edges(*rng.integers(0, 20000, (2, 40000)), rng.integers(1, 9, 40000), directed=directed)
        plan_bfs(graph, predecessors=False).run(0)
        for row in BFS if algorithm == "bfs" else SSSP:
            if row.device == "cpu":
                make = plan_bfs_many if algorithm == "bfs" else plan_sssp_many
                for result in ("matrix", "summary"):
                    plan = make(graph, n_sources=256, strategy=row.name, result=result)
                    plan.run(np.arange(min(plan.group, 100)))
    path = np.arange(40000)
    graph = graph_from_edges(path, path + 1)  # deep: the wider types of hop counts
    if algorithm == "bfs":
        plan_bfs_many(graph, n_sources=4, strategy="many_queues").run(np.array([0, 39000]))


def digest(distances) -> str:
    """Of one row, the same whatever the library's type and its sign for what is not reached."""
    row = np.asarray(distances)
    none = row < 0 if row.dtype.kind == "i" else ~(row < 1e300)
    return hashlib.sha256(np.where(none, np.inf, row).astype(np.float64).tobytes()).hexdigest()


def status(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))


def in_a_process(
    folder: Path, who: str, algorithm: str, directed: bool, count: int, one_by_one: bool, limit: float
) -> dict | None:
    """The measurement, or None where it took longer than the limit."""
    arguments = [str(folder), who, algorithm, str(directed), str(count), str(one_by_one)]
    try:
        done = subprocess.run(
            [sys.executable, __file__, "--child", *arguments], stdout=subprocess.PIPE, text=True, check=True, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return None
    return json.loads(done.stdout)


# --- the suite ----------------------------------------------------------------------------------------------------------


def prepare(name: str, graphs: Path, folder: Path, seed: int) -> dict:
    """Write a graph's rows where the children find them; return what the table says of it."""
    import pandas

    from kepler_traverse import graph_from_edges
    from pipelines.edge_hash import hashed_weights
    from scripts import make_graphs

    kind, directed = GRAPHS[name]
    if kind == "rmat":
        src, dst = make_graphs.rmat(20, 16, seed)
    elif kind == "lattice":
        src, dst = make_graphs.lattice(1500, 1500, 0.1, seed)
    else:
        frame = pandas.read_parquet(graphs / kind)
        src, dst = frame["src"].to_numpy(), frame["dst"].to_numpy()
    graph = graph_from_edges(src, dst, hashed_weights(src, dst, directed), directed=directed)
    np.save(folder / "offsets.npy", graph.offsets)
    np.save(folder / "targets.npy", graph.targets)
    np.save(folder / "weights.npy", graph.weights)
    np.save(folder / "sources.npy", sources_of(graph, max(MANY.values()), seed))
    return {"graph": name, "vertices": graph.n_vertices, "edges": graph.n_edges, "directed": directed}


def sources_of(graph, count: int, seed: int) -> np.ndarray:
    """Random vertices with an outgoing edge, of the largest component."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    n = graph.n_vertices
    matrix = csr_matrix((np.ones(graph.n_edges, np.int8), graph.targets, graph.offsets), shape=(n, n))
    _, component = connected_components(matrix, connection="weak")
    candidates = np.flatnonzero((component == np.bincount(component).argmax()) & (graph.degrees > 0))
    return np.random.default_rng(seed).choice(candidates, count, replace=False)


def compare(about: dict, folder: Path, algorithm: str, one_by_one: bool, options) -> list[dict]:
    """One line for each peer: all sources in one call, or one after the other (medians)."""
    count = SINGLE if one_by_one else MANY[algorithm]
    shared = (folder, algorithm, about["directed"])

    def timed(who: str, sources: int) -> dict | None:
        best = None
        for _ in range(options.repeats):
            found = in_a_process(shared[0], who, shared[1], shared[2], sources, one_by_one, options.limit)
            if found is None:
                return None
            if best is None or found["seconds"] < best["seconds"]:
                best = found
        return best

    mine = timed("ours", count)
    if mine is None:
        raise SystemExit(f"{about['graph']}, {algorithm}: ours took more than {options.limit} s")
    probes = {
        who: in_a_process(*shared[:1], who, *shared[1:], PROBE, one_by_one, options.limit)
        for who, package in PEERS.items()
        if importlib.util.find_spec(package)
    }
    for who, probe in probes.items():
        if probe is not None and probe["digests"] != mine["digests"][: len(probe["digests"])]:
            raise SystemExit(f"{about['graph']}, {algorithm}: {who} gives other distances; nothing is timed")
    tried = {who: probe["seconds"] for who, probe in probes.items() if probe is not None}
    lines = []
    for who in tried:
        if tried[who] > WORTH * min(tried.values()):
            continue
        theirs = timed(who, count)
        if theirs is None:
            continue
        if theirs["digests"] != mine["digests"]:
            raise SystemExit(f"{about['graph']}, {algorithm}: {who} gives other distances; nothing is timed")
        lines.append(
            about
            | {
                "algorithm": algorithm,
                "weights": "" if algorithm == "bfs" else "float32, 1 to 255 hashed",
                "device": "cpu",
                "strategy": mine["strategy"],
                "sources": 1 if one_by_one else count,
                "seconds": mine["seconds"],
                "peak_bytes": mine["peak_bytes"],
                "peer": who,
                "peer_seconds": theirs["seconds"],
                "peer_peak_bytes": theirs["peak_bytes"],
                "agrees": True,
                "certified": True,
            }
        )
        report(lines[-1])
    left_out = [
        f"{who} {tried[who] / min(tried.values()):.0f}x" for who in tried if tried[who] > WORTH * min(tried.values())
    ]
    if left_out:
        print(f"    not timed on all, slower than the best peer on {PROBE} sources: {', '.join(left_out)}", flush=True)
    return lines


def certify_all(folder: Path, about: dict) -> None:
    """Prove distances of all sources right, hops and weighted ones, before anything is timed."""
    from kepler_traverse import plan_bfs_many, plan_sssp_many
    from kepler_traverse.certificate import certify_many

    rows = Rows(folder)
    graph = rows.graph(about["directed"])
    for make, algorithm in ((plan_bfs_many, "bfs"), (plan_sssp_many, "sssp")):
        sources = rows.sources[: MANY[algorithm]]
        for group in make(graph, n_sources=sources.size, result="matrix").over(sources):
            certify_many(graph, group.sources, group.distance).require()


def report(line: dict) -> None:
    each = 1e3 / line["sources"]
    print(
        f"{line['graph']:18} {line['algorithm']:4} {line['sources']:4} {line['strategy']:12} "
        f"{line['seconds'] * each:9.3f} ms a source, {line['peer']:9} {line['peer_seconds'] * each:9.3f} "
        f"({line['peer_seconds'] / line['seconds']:6.1f}x), peaks {line['peak_bytes'] / 2**20:7.0f} and "
        f"{line['peer_peak_bytes'] / 2**20:7.0f} MiB",
        flush=True,
    )


def main(arguments: list[str]) -> int:
    from scripts.bench import commit, machine

    parser = argparse.ArgumentParser(
        prog="bench.py --suite cpu", description="Traversals on the CPU beside other libraries."
    )
    parser.add_argument("--graphs", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE")
    parser.add_argument("--only", nargs="+", choices=GRAPHS, default=list(GRAPHS), metavar="NAME")
    parser.add_argument("--part", nargs="+", choices=["many", "single"], default=["many", "single"])
    parser.add_argument("--repeats", type=int, default=1, help="processes a measurement; the fastest counts")
    parser.add_argument("--limit", type=float, default=600, help="seconds that a process may take")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    installed = [package for package in PEERS.values() if importlib.util.find_spec(package)]
    lines = []
    for name in options.only:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            about = prepare(name, options.graphs, folder, options.seed)
            certify_all(folder, about)
            for part in options.part:
                for algorithm in MANY:
                    lines += compare(about, folder, algorithm, part == "single", options)
    run = {
        "title": "Many sources on a CPU beside other libraries",
        "date": date.today().isoformat(),
        "commit": commit(),
        "command": f"python scripts/bench.py --suite cpu {' '.join(arguments)}",
        "notes": "",
        "machine": machine(),
        "versions": {name: version(name) for name in ("numpy", "numba", *installed)},
        "traversals": lines,
        "builds": [],
    }
    options.output.write_text(json.dumps(run, indent=2) + "\n")
    print(f"{options.output}: python scripts/bench_table.py add {options.output}")
    return 0


if __name__ == "__main__" and sys.argv[1:2] == ["--child"]:
    print(json.dumps(measure(*sys.argv[2:])))
