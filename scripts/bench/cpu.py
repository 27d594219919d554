"""Many and single sources on the CPU, compared with other Python libraries; results are compared before times.

python -m scripts.bench --suite cpu --graphs FOLDER --output FILE [--only NAME ...] [--part many single]

FOLDER holds Parquet files with columns src and dst (GRAPHS below lists which); R-MAT and lattice are generated. Each
measurement runs in a separate process, which gets the same CSR of the graph: without duplicates and self-loops, in both
directions if undirected. Weights 1 to 255 come from a hash of an edge's ends. Baselines are SciPy (csgraph), NetworKit,
igraph and rustworkx, as far as they are installed (``pip install 'kepler-traverse[bench]'``). All of them run on a few
sources; those within four times of the best are then timed on all sources. ``python -m scripts.bench.performance_page
add`` reads FILE.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from scripts.bench.cpu_subprocess import Rows
from scripts.measure.environment import new_run
from scripts.pages import write_record

RUN = "scripts.bench.cpu_subprocess"

# name: (file or generator, directed)
GRAPHS = {
    "USA-road-NE": ("USA-road-NE-topology.parquet", False),
    "cnr-2000": ("cnr-2000.parquet", True),
    "soc-Slashdot0902": ("soc-Slashdot0902.parquet", True),
    "dblp-2010": ("dblp-2010.parquet", False),
    "R-MAT 20": ("rmat", False),
    "lattice 1500": ("lattice", False),
}
BASELINES = {
    "SciPy": "scipy",
    "NetworKit": "networkit",
    "igraph": "igraph",
    "rustworkx": "rustworkx",
}
MANY = {"bfs": 256, "sssp": 64}
SINGLE = 16
PROBE = 4  # sources that decide which baselines are timed on all
WORTH = 4.0


def in_a_process(
    folder: Path,
    library: str,
    algorithm: str,
    directed: bool,
    count: int,
    one_by_one: bool,
    limit: float,
) -> dict | None:
    """Return the measurement, or None if it took longer than the limit."""
    arguments = [str(folder), library, algorithm, str(directed), str(count), str(one_by_one)]
    try:
        done = subprocess.run(
            [sys.executable, "-m", RUN, *arguments],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        return None
    return json.loads(done.stdout)


def prepare(name: str, graphs: Path, folder: Path, seed: int) -> dict:
    """Write the CSR of a graph to files for the children; return its facts for the table."""
    import pandas

    from kepler_traverse import graph_from_edges
    from pipelines.comparison import hashed_weights
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
    return {
        "graph": name,
        "vertices": graph.n_vertices,
        "edges": graph.n_edges,
        "directed": directed,
    }


def sources_of(graph, count: int, seed: int) -> np.ndarray:
    """Random vertices with an outgoing edge, of the largest component."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    n = graph.n_vertices
    matrix = csr_matrix(
        (np.ones(graph.n_edges, np.int8), graph.targets, graph.offsets), shape=(n, n)
    )
    _, component = connected_components(matrix, connection="weak")
    candidates = np.flatnonzero(
        (component == np.bincount(component).argmax()) & (graph.derived.degrees > 0)
    )
    return np.random.default_rng(seed).choice(candidates, count, replace=False)


def compare(about: dict, folder: Path, algorithm: str, one_by_one: bool, options) -> list[dict]:
    """Return one line per baseline: all sources in one call, or one after the other (medians)."""
    count = SINGLE if one_by_one else MANY[algorithm]
    shared = (folder, algorithm, about["directed"])

    def timed(library: str, sources: int) -> dict | None:
        best = None
        for _ in range(options.repeats):
            found = in_a_process(
                shared[0], library, shared[1], shared[2], sources, one_by_one, options.limit
            )
            if found is None:
                return None
            if best is None or found["seconds"] < best["seconds"]:
                best = found
        return best

    mine = timed("ours", count)
    if mine is None:
        raise SystemExit(f"{about['graph']}, {algorithm}: ours took more than {options.limit} s")
    probes = {
        library: in_a_process(*shared[:1], library, *shared[1:], PROBE, one_by_one, options.limit)
        for library, package in BASELINES.items()
        if importlib.util.find_spec(package)
    }
    for library, probe in probes.items():
        if probe is not None and probe["digests"] != mine["digests"][: len(probe["digests"])]:
            raise SystemExit(
                f"{about['graph']}, {algorithm}: {library} gives other distances; nothing is timed"
            )
    tried = {library: probe["seconds"] for library, probe in probes.items() if probe is not None}
    lines = []
    for library in tried:
        if tried[library] > WORTH * min(tried.values()):
            continue
        theirs = timed(library, count)
        if theirs is None:
            continue
        if theirs["digests"] != mine["digests"]:
            raise SystemExit(
                f"{about['graph']}, {algorithm}: {library} gives other distances; nothing is timed"
            )
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
                "peer": library,
                "peer_seconds": theirs["seconds"],
                "peer_peak_bytes": theirs["peak_bytes"],
                "agrees": True,
                "certified": True,
            }
        )
        report(lines[-1])
    left_out = [
        f"{library} {tried[library] / min(tried.values()):.0f}x"
        for library in tried
        if tried[library] > WORTH * min(tried.values())
    ]
    if left_out:
        print(
            f"    not timed on all, slower than the best baseline on {PROBE} sources: {', '.join(left_out)}",
            flush=True,
        )
    return lines


def certify_all(folder: Path, about: dict) -> None:
    """Certify the distances of all sources, hops and weighted ones, before anything is timed."""
    from kepler_traverse import plan_bfs_many, plan_sssp_many
    from kepler_traverse.certificate import certify_many

    rows = Rows.read(folder)
    graph = rows.graph(about["directed"])
    for make, algorithm in ((plan_bfs_many, "bfs"), (plan_sssp_many, "sssp")):
        sources = rows.sources[: MANY[algorithm]]
        for group in make(graph, n_sources=sources.size, result="matrix").iter_groups(sources):
            certify_many(graph, group.sources, group.distance).require()


def report(line: dict) -> None:
    each = 1e3 / line["sources"]
    print(
        f"{line['graph']:18} {line['algorithm']:4} {line['sources']:4} {line['strategy']:12} "
        f"{line['seconds'] * each:9.3f} ms per source, {line['peer']:9} {line['peer_seconds'] * each:9.3f} "
        f"({line['peer_seconds'] / line['seconds']:6.1f}x), peaks {line['peak_bytes'] / 2**20:7.0f} and "
        f"{line['peer_peak_bytes'] / 2**20:7.0f} MiB",
        flush=True,
    )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.bench --suite cpu",
        description="Traversals on the CPU, compared with other libraries.",
    )
    parser.add_argument("--graphs", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE")
    parser.add_argument("--only", nargs="+", choices=GRAPHS, default=list(GRAPHS), metavar="NAME")
    parser.add_argument("--part", nargs="+", choices=["many", "single"], default=["many", "single"])
    parser.add_argument(
        "--repeats", type=int, default=1, help="processes per measurement; the fastest counts"
    )
    parser.add_argument("--limit", type=float, default=600, help="seconds that a process may take")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    command = f"python -m scripts.bench --suite cpu {' '.join(arguments)}"
    packages = ("numpy", "numba", *BASELINES.values())
    run = new_run("Many sources on a CPU, compared with other libraries", packages, command)
    for name in options.only:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            about = prepare(name, options.graphs, folder, options.seed)
            certify_all(folder, about)
            for part, algorithm in itertools.product(options.part, MANY):
                run["traversals"] += compare(about, folder, algorithm, part == "single", options)
                # finished measurements are written, whatever fails later
                write_record(options.output, run)
    print(f"{options.output}: python -m scripts.bench.performance_page add {options.output}")
    return 0
