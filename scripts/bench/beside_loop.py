"""The whole job beside a loop over cuGraph, in one run: the same edges, the same sources, the same summary.

python -m scripts.bench --suite loop --output FILE [--scale N] [--sources N] [--repeats N] [--loop-repeats N]

Times are those of whole processes, from the command to its end. The job runs once before it is measured, because it compiles
once for a machine. The summaries are compared before times are: ``reached``, ``eccentricity`` and ``sum`` must be equal, the
floats to twelve digits. Needs a GPU, cuDF and cuGraph.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet

from scripts import make_graphs
from scripts.measure.environment import about

ROOT = Path(__file__).resolve().parents[2]
EXACT, ROUNDED = ("source", "reached", "eccentricity", "sum"), ("mean", "closeness", "harmonic")
_TOLERANCE = 1e-12


def compare(ours: pyarrow.Table, theirs: pyarrow.Table) -> None:
    """Raise SystemExit if two summaries differ; rows are compared by their sources."""
    tables = [table.sort_by("source") for table in (ours, theirs)]
    if tables[0].num_rows != tables[1].num_rows:
        raise SystemExit(f"the summaries have {ours.num_rows} and {theirs.num_rows} rows")
    for name in (*EXACT, *ROUNDED):
        a, b = (
            table[name].to_numpy().astype(np.float64 if name in ROUNDED else np.int64)
            for table in tables
        )
        same = a == b if name in EXACT else np.isclose(a, b, rtol=_TOLERANCE, atol=0)
        if not same.all():
            row = int(np.flatnonzero(~same)[0])
            source = tables[0]["source"][row].as_py()
            raise SystemExit(
                f"source {source}: {name} is {a[row]} in the job's summary and {b[row]} in the loop's"
            )


def seconds_of(module: str, *arguments: str) -> float:
    """Run a program in a process of its own; return its seconds by the wall."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    taken = time.perf_counter() - began
    if done.returncode:
        raise SystemExit(f"{module}: exit code {done.returncode}\n{done.stderr}")
    return taken


def measure(options: argparse.Namespace, folder: Path) -> dict:
    """Measure both programs; return all times and the ratio of the medians."""
    edges, chosen = folder / "edges.parquet", folder / "sources.txt"
    src, dst = make_graphs.rmat(options.scale, options.edge_factor, options.seed)
    make_graphs.write(edges, src, dst, None)
    candidates = np.unique(src[src != dst])
    sources = np.random.default_rng(options.seed).choice(candidates, options.sources, replace=False)
    chosen.write_text("".join(f"{source}\n" for source in sources), encoding="utf-8")
    same = ["--sources", str(chosen), "--result", "summary"]
    times: dict[str, list[float]] = {"job": [], "loop": []}
    for run in range(options.repeats + 1):
        output = folder / f"job-{run}"
        taken = seconds_of(
            "pipelines.batch_sources",
            str(edges),
            *same,
            "--device",
            options.device,
            "--output",
            str(output),
        )
        times["job"] += [taken] if run else []
    ours = pyarrow.concat_tables(
        [pyarrow.parquet.read_table(part) for part in sorted(output.glob("part-*.parquet"))]
    )
    for run in range(options.loop_repeats):
        output = folder / f"loop-{run}"
        times["loop"].append(
            seconds_of("scripts.bench.cugraph_loop", str(edges), str(output), *same)
        )
        compare(ours, pyarrow.parquet.read_table(output / "summary.parquet"))
    job, loop = (statistics.median(times[name]) for name in ("job", "loop"))
    return {
        "graph": f"R-MAT {options.scale}",
        "rows": int(src.size),
        "sources": options.sources,
        "result": "summary",
        "job_seconds": times["job"],
        "loop_seconds": times["loop"],
        "ratio": loop / job,
    }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.bench --suite loop",
        description="The whole job beside a loop over cuGraph.",
    )
    parser.add_argument("--output", type=Path, required=True, metavar="FILE")
    parser.add_argument("--scale", type=int, default=20)
    parser.add_argument("--edge-factor", type=int, default=16)
    parser.add_argument("--sources", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=3, help="measured runs of the job")
    parser.add_argument("--loop-repeats", type=int, default=1, help="runs of the loop")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda", help="of the job")
    options = parser.parse_args(arguments)
    if min(options.repeats, options.loop_repeats, options.sources) < 1:
        parser.error("--repeats, --loop-repeats and --sources are at least 1")
    with tempfile.TemporaryDirectory() as folder:
        found = measure(options, Path(folder))
    packages = (
        "numpy",
        "numba",
        "pyarrow",
        "cupy-cuda13x",
        "cudf-cu13",
        "cugraph-cu13",
        "pylibcugraph-cu13",
    )
    facts = about(packages, f"python -m scripts.bench --suite loop {' '.join(arguments)}")
    record = {
        "title": "The whole job beside a loop over cuGraph, summaries",
        **facts,
        "measurements": [found],
    }
    options.output.write_text(json.dumps(record, indent=2) + "\n")
    job, loop = (statistics.median(found[name]) for name in ("job_seconds", "loop_seconds"))
    print(
        f"{found['graph']}, {options.sources} sources, equal summaries: job {job:.2f} s, loop {loop:.2f} s, "
        f"ratio {found['ratio']:.2f}"
    )
    return 0
