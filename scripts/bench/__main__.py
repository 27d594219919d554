"""Measure reading and building, or run another suite; results are checked before they are timed.

python -m scripts.bench --suite readers EDGES.parquet   file to graph: time and peak memory, compared with pandas and SciPy,
                                                        or with --device cuda with cuDF and cuGraph
python -m scripts.bench --suite cpu --graphs FOLDER --output FILE       see scripts/bench/cpu.py
python -m scripts.bench --suite cores --graphs FOLDER --output FILE     see scripts/bench/cores.py
python -m scripts.bench --suite gpu --graphs FOLDER --output FILE       see scripts/bench/gpu.py
python -m scripts.bench --suite short GRAPHS                            see scripts/bench/short_searches.py
python -m scripts.bench --suite loads GRAPHS                            see scripts/bench/loads.py
python -m scripts.bench --suite loop --output FILE                      see scripts/bench/beside_loop.py

The first writes out/bench-readers.json, which ``python -m scripts.bench.performance_page add`` takes. Against other
libraries traverse with ``python -m pipelines.compare``.
"""

from __future__ import annotations

import argparse
import functools
import gc
import json
import statistics
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np

from scripts.measure.environment import forget_peak, memory, new_run, timed, timed_on_gpu
from scripts.pages import write_record

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "out"
PACKAGES = ("numpy", "numba", "pyarrow", "pandas", "scipy")
MODULES = {name: f"scripts.bench.{name}" for name in ("cpu", "cores", "gpu")} | {
    "loop": "scripts.bench.beside_loop",
    "short": "scripts.bench.short_searches",
    "loads": "scripts.bench.loads",
}
BASELINES = {"cpu": "pandas + SciPy csr_matrix", "cuda": "cuDF + cuGraph Graph"}


def peer_build(path: str):
    """What a SciPy user does: read the columns and take ids as indices. Duplicates are summed, which is not what we do."""
    import pandas
    import scipy.sparse

    frame = pandas.read_parquet(path)
    src, dst = frame["src"].to_numpy(), frame["dst"].to_numpy()
    data = frame["weight"].to_numpy() if "weight" in frame else np.ones(src.size, np.float32)
    n = int(max(src.max(), dst.max())) + 1
    return scipy.sparse.csr_matrix((data, (src, dst)), shape=(n, n))


def peer_build_on_gpu(path: str):
    """What a cuGraph user does."""
    import cudf
    import cugraph

    frame = cudf.read_parquet(path)
    graph = cugraph.Graph(directed=True)
    graph.from_cudf_edgelist(
        frame, source="src", destination="dst", weight="weight" if "weight" in frame else None
    )
    return graph


def our_build(path: str, device: str):
    from kepler_traverse import read_graph

    return read_graph(path, directed=True, device=device)


def measure_build(who: str, device: str, path: str, warm_up: str) -> dict:
    """Time one build and its peak of memory above what was held before; run in a process of its own.

    Memory is resident memory of the process on a CPU, and what RMM handed out (to cuDF, CuPy and cuGraph) on a GPU.
    """
    if who == "ours":
        build = functools.partial(our_build, device=device)
    else:
        build = peer_build_on_gpu if device == "cuda" else peer_build
    measure = measure_on_gpu if device == "cuda" else measure_on_cpu
    graph, taken, peak = measure(build, path, warm_up)
    edges = None if who == "peer" else int(graph.n_edges)
    return {"seconds": taken, "peak_bytes": peak, "edges": edges}


def measure_on_cpu(build, path: str, warm_up: str) -> tuple:
    build(warm_up)  # imports and compiles
    forget_peak()
    before = memory("VmRSS")
    graph, taken = timed(build, path)
    return graph, taken, memory("VmHWM") - before


def measure_on_gpu(build, path: str, warm_up: str) -> tuple:
    import cupy
    import rmm.statistics
    from rmm.allocators.cupy import rmm_cupy_allocator

    rmm.reinitialize(pool_allocator=True)
    rmm.statistics.enable_statistics()
    cupy.cuda.set_allocator(rmm_cupy_allocator)
    build(warm_up)
    gc.collect()
    rmm.statistics.push_statistics()
    graph, taken = timed_on_gpu(functools.partial(build, path))
    return graph, taken, rmm.statistics.pop_statistics().peak_bytes


def in_a_process(*arguments: str) -> dict:
    command = [sys.executable, "-m", "scripts.bench", "--child", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    return json.loads(done.stdout)


def bench_readers(path: Path, options: argparse.Namespace) -> dict:
    """Builds of one file: medians of fresh processes."""
    import pyarrow.parquet

    schema = pyarrow.parquet.read_schema(path)
    columns = [name for name in ("src", "dst", "weight") if name in schema.names]
    table = pyarrow.parquet.read_table(path, columns=columns)
    edge_list_bytes, rows = table.nbytes, table.num_rows
    warm_up = OUT / "bench-warm-up.parquet"
    pyarrow.parquet.write_table(table.slice(0, 1000), warm_up)
    src, dst = (table[name].to_numpy() for name in ("src", "dst"))
    apart = src != dst
    distinct = np.unique(np.stack([src[apart], dst[apart]]), axis=1).shape[1]
    del table, src, dst
    runs = {"ours": [], "peer": []}
    for _ in range(options.repeats):
        for who, found in runs.items():
            found.append(in_a_process(who, options.device, str(path.resolve()), str(warm_up)))
            print({"graph": path.stem, "who": who, **found[-1]}, flush=True)
    if any(run["edges"] != distinct for run in runs["ours"]):
        raise SystemExit(
            f"{path}: the graph has {runs['ours'][0]['edges']} edges, the file {distinct}: not timed"
        )

    def median(who, key):
        return statistics.median(run[key] for run in runs[who])

    return {
        "graph": path.stem,
        "rows": rows,
        "device": options.device,
        "edge_list_bytes": edge_list_bytes,
        "seconds": median("ours", "seconds"),
        "peak_bytes": int(median("ours", "peak_bytes")),
        "peer": BASELINES[options.device],
        "peer_seconds": median("peer", "seconds"),
        "peer_peak_bytes": int(median("peer", "peak_bytes")),
    }


def main() -> int:
    suite = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    suite.add_argument("--suite")
    chosen, others = suite.parse_known_args()
    if chosen.suite in MODULES:  # they have options of their own
        return import_module(MODULES[chosen.suite]).main(others)
    parser = argparse.ArgumentParser(description="Measure reading and building.")
    parser.add_argument("--suite", choices=["readers", *MODULES], required=True)
    parser.add_argument(
        "edges",
        nargs="+",
        type=Path,
        help="Parquet files with columns src, dst[, weight]; ids from 0 or 1",
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    options = parser.parse_args()

    OUT.mkdir(exist_ok=True)
    title = f"readers: {', '.join(path.stem for path in options.edges)}"
    run = new_run(title, PACKAGES, f"python -m scripts.bench {' '.join(sys.argv[1:])}")
    run["builds"] = [bench_readers(path, options) for path in options.edges]
    target = OUT / "bench-readers.json"
    write_record(target, run)
    print(f"{target}: python -m scripts.bench.performance_page add {target.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(measure_build(*sys.argv[2:])))
    else:
        sys.exit(main())
