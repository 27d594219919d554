"""Measure how long the whole job takes, by the wall, from the command to its end, with its steps.

python -m scripts.bench.startup_job --graphs FOLDER                   medians of 5 runs, and one with nothing compiled
python -m scripts.bench.startup_job --graphs FOLDER --device cuda

Each run is a process of its own. "Nothing compiled" has empty folders for the code that Numba and CuPy compile. Before the
other runs one is made that is not counted. Steps are those of ``--json``; what is before and after them is "outside".
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
REPEATS = 5
STEPS = ("read", "build", "plan", "compile", "store", "start", "traverse")


class Case(NamedTuple):
    """A job: its name in the table, its edge list in the folder of graphs, and its options."""

    name: str
    graph: str
    options: tuple[str, ...]
    is_cold: bool = False


def cases(device: str) -> list[Case]:
    """Return the jobs that are measured on a device."""
    one = ("--sources", "1")
    found = [Case("karate, 1 source", "karate", one, cold) for cold in (False, True)]
    roads, many = "USA-road-NE-topology", ("--undirected", "--random-sources", "1024")
    found.append(Case("USA-road-NE, 1 source", roads, ("--undirected", "--random-sources", "1")))
    if device == "cuda":
        found.append(Case("USA-road-NE, 1,024 sources, all distances", roads, many))
        found.append(
            Case(
                "R-MAT 20, 1,024 sources, summary",
                "rmat-20",
                ("--random-sources", "1024", "--result", "summary"),
            )
        )
    return found


def run_once(
    case: Case, graphs: Path, device: str, folder: Path, environment: dict[str, str]
) -> dict[str, float]:
    """Run a job; return its seconds by the wall ("whole"), of each step, and "outside" of its own clock."""
    output = folder / f"out-{time.monotonic_ns()}"
    words = [
        str(graphs / f"{case.graph}.parquet"),
        "--device",
        device,
        *case.options,
        "--json",
        "--output",
        str(output),
    ]
    began = time.perf_counter()
    command = [sys.executable, "-m", "pipelines.batch_sources", *words]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env=os.environ | environment, check=False
    )
    whole = time.perf_counter() - began
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: exit code {done.returncode}\n{done.stderr}")
    seconds = json.loads(done.stdout)["seconds"]
    total = seconds.pop("total")
    return {"whole": whole, "outside": whole - total, **seconds}


def measure(case: Case, graphs: Path, device: str, repeats: int = REPEATS) -> dict:
    """Return the medians of a job by step, with all whole times; one run only if nothing shall be compiled before.

    Parameters
    ----------
    graphs : Path
        The folder of the edge lists.
    device : {"cpu", "cuda"}
    """
    runs = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if case.is_cold:
            environment = {key: str(folder / key) for key in ("NUMBA_CACHE_DIR", "CUPY_CACHE_DIR")}
            runs.append(run_once(case, graphs, device, folder, environment))
        else:
            for i in range(repeats + 1):
                found = run_once(case, graphs, device, folder, {})
                runs += [found] if i else []
    keys = dict.fromkeys(key for run in runs for key in run)
    medians = {key: round(statistics.median(run.get(key, 0.0) for run in runs), 3) for key in keys}
    return {
        "job": case.name,
        "device": device,
        "cold": case.is_cold,
        "seconds": medians,
        "all": [run["whole"] for run in runs],
    }


def table(measured: Sequence[dict]) -> str:
    """Return measurements as a Markdown table."""
    head = ["job", "device", "whole process", *STEPS, "outside"]
    lines = [" | ".join(head), " | ".join(["---", "---", *["---:"] * (len(head) - 2)])]
    for each in measured:
        seconds = each["seconds"]
        name = each["job"] + (", nothing compiled" if each["cold"] else "")
        shown = [
            f"{seconds[key]:.2f}" if key in seconds else "" for key in ("whole", *STEPS, "outside")
        ]
        lines.append(" | ".join([name, each["device"], *shown]))
    return "\n".join(f"| {line} |" for line in lines)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--graphs", type=Path, required=True, help="folder of karate.parquet and the others"
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--only", default="", help="jobs whose name begins so")
    parser.add_argument("--output", type=Path, help="JSON lines, one per job")
    options = parser.parse_args(argv)
    measured = []
    for case in cases(options.device):
        if not case.name.startswith(options.only):
            continue
        if not (options.graphs / f"{case.graph}.parquet").exists():
            print(f"{case.name}: {case.graph}.parquet is not in {options.graphs}", file=sys.stderr)
            continue
        measured.append(measure(case, options.graphs, options.device, options.repeats))
        if options.output is not None:
            with open(options.output, "a") as lines:
                lines.write(json.dumps(measured[-1]) + "\n")
    print(table(measured))
    return 0


if __name__ == "__main__":
    sys.exit(main())
