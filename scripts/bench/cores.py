"""How searches, reading and building on a CPU gain by more cores; results are compared before times.

python -m scripts.bench --suite cores --graphs FOLDER --output FILE [--only NAME ...] [--cores N ...] [--part many files]
    [--algorithms bfs sssp] [--peers NetworKit igraph] [--sources N] [--repeats N]

Each measurement is a process of its own that may use the first N cores. NetworKit, whose all-pairs searches use all cores,
and igraph, which uses one, answer the same sources on the same graph. Distances of all must be equal. FILE holds one record
per measurement; the efficiency of N cores is the time of one core over N times the time of N cores.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from scripts.bench.cpu import GRAPHS, prepare
from scripts.bench.cpu_subprocess import LIBRARIES, Rows, digest
from scripts.measure.environment import about
from scripts.pages import write_record

RUN = "scripts.bench.cores"
COUNT = {"bfs": 256, "sssp": 32}
BASELINES = {"NetworKit": "networkit", "igraph": "igraph"}
REPEATS = 3


def pinned(cores: int) -> dict:
    """Options of ``subprocess.run`` for a process that has the first cores only."""
    allowed = sorted(os.sched_getaffinity(0))[:cores]
    return {
        "preexec_fn": lambda: os.sched_setaffinity(0, allowed),
        "env": os.environ | {"NUMBA_NUM_THREADS": str(cores), "OMP_NUM_THREADS": str(cores)},
        "stdout": subprocess.PIPE,
        "text": True,
    }


def child(cores: int, limit: float, *arguments: str) -> dict | None:
    """What the process prints, or None where it took longer than the limit."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", RUN, *arguments], check=True, timeout=limit, **pinned(cores)
        )
    except subprocess.TimeoutExpired:
        return None
    return json.loads(done.stdout.splitlines()[-1])


# --- in the processes ---------------------------------------------------------------------------------------------------


def searches(
    folder: str, library: str, algorithm: str, directed: str, count: str, repeats: str
) -> dict:
    """Median seconds of a library for all sources. Our first run is not counted: it compiles and plans. Others run once."""
    rows = Rows.read(Path(folder))
    run = LIBRARIES[library](rows, algorithm, directed == "True")
    sources = rows.sources[: int(count)]
    begin = time.perf_counter()
    found = run(sources)
    times = [time.perf_counter() - begin]
    digests = [digest(distances) for distances in found]
    del found
    if library == "ours":
        times.clear()
        for _ in range(int(repeats)):
            begin = time.perf_counter()
            run(sources)
            times.append(time.perf_counter() - begin)
    return {
        "seconds": statistics.median(times),
        "digests": digests,
        "strategy": getattr(run, "strategy", None),
    }


def files(path: str, directed: str) -> dict:
    """Median seconds to read an edge list and to build its graph; the first time, which compiles, is not counted."""
    from kepler_traverse import read_graph

    reports = [read_graph(path, directed=directed == "True").report for _ in range(REPEATS + 1)][1:]
    return {
        name: statistics.median(report.seconds[name] for report in reports)
        for name in reports[0].seconds
    }


# --- the tables ---------------------------------------------------------------------------------------------------------


def measure_searches(graph: dict, folder: Path, options) -> list[dict]:
    found = []
    for algorithm in options.algorithms:
        expected, count = None, options.sources or COUNT[algorithm]
        cases = [("ours", cores) for cores in options.cores]
        if options.baselines:
            installed = [
                name for name in options.peers if importlib.util.find_spec(BASELINES[name])
            ]
            cases += [(name, 1 if name == "igraph" else max(options.cores)) for name in installed]
        for library, cores in cases:
            words = [
                str(folder),
                library,
                algorithm,
                str(graph["directed"]),
                str(count),
                str(options.repeats),
            ]
            result = child(cores, options.limit, "searches", *words)
            line = graph | {
                "part": "many",
                "algorithm": algorithm,
                "sources": count,
                "library": library,
            }
            if result is None:
                found.append(
                    line | {"cores": cores, "seconds": None, "limit_seconds": options.limit}
                )
            else:
                expected = expected or result["digests"]
                if result["digests"] != expected:
                    raise SystemExit(
                        f"{graph['graph']}, {algorithm}: {library} on {cores} cores gives other distances"
                    )
                found.append(
                    line
                    | {"cores": cores, "seconds": result["seconds"], "strategy": result["strategy"]}
                )
            print(found[-1], flush=True)
    return found


def measure_files(graph: dict, path: Path, options) -> list[dict]:
    found = []
    for cores in options.cores:
        result = child(cores, options.limit, "files", str(path), str(graph["directed"]))
        found.append(graph | {"part": "files", "cores": cores, "seconds": result})
        print(found[-1], flush=True)
    return found


def main(arguments: list[str]) -> int:
    available = len(os.sched_getaffinity(0))
    powers = [1 << bit for bit in range(available.bit_length()) if 1 << bit <= available]
    parser = argparse.ArgumentParser(
        prog="python -m scripts.bench --suite cores", description="Many cores of one CPU."
    )
    parser.add_argument("--graphs", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE")
    parser.add_argument(
        "--only", nargs="+", choices=GRAPHS, default=["USA-road-NE", "R-MAT 20"], metavar="NAME"
    )
    parser.add_argument("--cores", nargs="+", type=int, default=powers, metavar="N")
    parser.add_argument("--part", nargs="+", choices=["many", "files"], default=["many", "files"])
    parser.add_argument("--baselines", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--algorithms", nargs="+", choices=COUNT, default=list(COUNT))
    parser.add_argument(
        "--peers", nargs="+", choices=BASELINES, default=list(BASELINES), metavar="NAME"
    )
    parser.add_argument(
        "--sources", type=int, help="default: 256 for bfs, 32 for sssp; 256 at most"
    )
    parser.add_argument(
        "--repeats", type=int, default=REPEATS, help="measured runs of this library"
    )
    parser.add_argument("--limit", type=float, default=120, help="seconds that a process may take")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    if max(options.cores) > available:
        parser.error(f"--cores {max(options.cores)}: this machine has {available}")
    packages = ("numpy", "numba", "pyarrow", *BASELINES.values())
    facts = about(packages, f"python -m scripts.bench --suite cores {' '.join(arguments)}")
    run = {"title": "Cores of one CPU", **facts, "measurements": []}
    for name in options.only:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            graph = prepare(name, options.graphs, folder, options.seed)
            if "many" in options.part:
                run["measurements"] += measure_searches(graph, folder, options)
            write_record(options.output, run)  # what is measured is kept, whatever follows
            if "files" in options.part and GRAPHS[name][0].endswith(".parquet"):
                run["measurements"] += measure_files(
                    graph, options.graphs / GRAPHS[name][0], options
                )
            write_record(options.output, run)
    return 0


if __name__ == "__main__":
    print(json.dumps({"searches": searches, "files": files}[sys.argv[1]](*sys.argv[2:])))
