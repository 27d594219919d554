"""Measure the guarantees, record them in docs/guarantees.json, and render docs/guarantees.md.

    python -m scripts.evidence measure                  all of them; takes an hour on two cores, most of it fuzzing
    python -m scripts.evidence measure --only cost      one, or several
    python -m scripts.evidence measure --gpu --output FILE   those of a GPU, into a file in place of the record
    python -m scripts.evidence add FILE                 add such a file to the record, or out/gpu.json of check.sh --gpu
    python -m scripts.evidence write                    the page, after editing this file
    python -m scripts.evidence check                    exit 1 if the page is stale

docs/guarantees.json holds per guarantee the figures, date, machine and commit.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from datetime import date
from functools import partial
from pathlib import Path

import numpy as np

from kepler_traverse import plan_sssp
from scripts import reports
from scripts.bench.libraries import LIBRARIES, Rows
from scripts.ci.gpu import ONLY_IF_NAMED, STAGES
from scripts.evidence import fault_injection, fuzz_readers, gpu, large_graph
from scripts.evidence.page import page
from scripts.measure.environment import PYTEST, commit, machine
from scripts.pages import ROOT, listed, put, read_record, write_record
from tests.support import interrupted_calls

DOCS = ROOT / "docs"
MEASURED = DOCS / "guarantees.json"
PAGE = DOCS / "guarantees.md"
DATA = Path(os.environ.get("KEPLER_DATA", ROOT.parent / "shared" / "data"))

TESTS = listed(__file__, "tests.toml")
PEER_GRAPHS = 60
# How much is measured; an option each.
SIZES = {
    "fuzz_seconds": (3600.0, "of fuzzing"),
    "interrupts": (14, "of each kind of call"),
    "parity_graphs": (500, "graphs that a GPU and cuGraph search"),
    "parity_seconds": (90.0, "start no further graph after this time"),
    "bits_graphs": (15, "random graphs, each with two types of weights"),
    "gpu_answers": (1000, "correct results that a GPU certifies"),
    "gpu_cases": (10, "results of each kind with each fault, for a GPU"),
}


def measure_faults(_options) -> dict:
    """Certify seeded faults and correct results."""
    answers, alarms = fault_injection.count_false_alarms(10_000)
    classes = fault_injection.study_faults(60)
    return {"answers": answers, "alarms": alarms, "classes": classes}


def measure_cost(options) -> dict:
    """Measure CPU seconds of one thread: certificates, and the traversals that they certify."""
    import numba

    numba.set_num_threads(1)
    return gpu.measure_cost(options, "cpu")


def measure_peers(_options) -> dict:
    """Distances of integer weights against SciPy, NetworkX and igraph."""
    counts = {}
    for name in ("SciPy", "NetworkX", "igraph"):
        compared = equal = 0
        for seed in range(0, 3 * PEER_GRAPHS, 3):  # those of integer weights
            graph, _ = gpu.random_graph(seed)
            sources = np.random.default_rng(seed).choice(graph.n_vertices, 3).tolist()
            rows = Rows(graph.offsets, graph.targets, graph.weights, np.array(sources))
            expected = np.asarray(LIBRARIES[name](rows, "sssp", graph.directed)(sources))
            for i, source in enumerate(sources):
                distance = plan_sssp(graph).run(source).distance
                compared += distance.size
                equal += int((distance == expected[i]).sum())
        counts[name] = {"graphs": PEER_GRAPHS, "compared": compared, "equal": equal}
    return counts


def measure_tests(_options, key: str) -> dict:
    return {name: _tests_passed(*files) for name, files in TESTS[key].items()}


def measure_interrupts(options) -> dict:
    """Interrupt each kind of call in processes of its own, and count how the calls ended."""
    ended = Counter()
    n_right = 0
    for name in interrupted_calls.CALLS:
        command = [sys.executable, "-m", "tests.support.interrupted_calls", name]
        command += ["SIGINT", "1", str(options.interrupts)]
        done = subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.PIPE, text=True)
        found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        ended.update(each["how"] for each in found)
        n_right += sum(each["right"] for each in found)
        if done.returncode:
            ended[f"a process that ended with {done.returncode}"] += 1
    n_interrupts = ended.total()
    errors = n_interrupts - min(ended["KeyboardInterrupt"], n_right)
    return {
        "calls": len(interrupted_calls.CALLS),
        "ended": dict(ended),
        "right": n_right,
        "errors": errors,
    }


def _tests_passed(*files: str) -> dict:
    """Run test files and count the tests; without a GPU, those that need one are skipped."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [*PYTEST, f"--junitxml={report}", *(f"tests/{name}" for name in files)]
        subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.DEVNULL)
        found = reports.counts_of(reports.cases_in(report))
    ran = found["passed"] + found["failed"]
    return {"ran": ran, "failed": found["failed"], "skipped": found["skipped"]}


def measure_fuzz(options) -> dict:
    return fuzz_readers.fuzz(options.fuzz_seconds, 1, ROOT / "out" / "fuzz")


MEASURES = {
    "classes": partial(measure_tests, key="classes"),
    "doors": partial(measure_tests, key="doors"),
    "faults": measure_faults,
    "cost": measure_cost,
    "bits": partial(gpu.measure_bits, device="cpu"),
    "peers": measure_peers,
    "input": partial(measure_tests, key="input"),
    "fuzz": measure_fuzz,
    "output": partial(measure_tests, key="output"),
    "kills": partial(measure_tests, key="kills"),
    "interrupts": measure_interrupts,
}
GPU_MEASURES = gpu.MEASURES | {"huge": large_graph.measure_huge}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("action", choices=("measure", "add", "write", "check"))
    parser.add_argument(
        "file",
        nargs="?",
        type=Path,
        help="for add: output of measure --output, or of check.sh --gpu",
    )
    parser.add_argument("--only", nargs="+", choices=MEASURES | GPU_MEASURES)
    parser.add_argument("--gpu", action="store_true", help="all measures of a GPU")
    parser.add_argument("--output", type=Path, default=MEASURED, help="file for the figures")
    parser.add_argument("--commit", help="default: what git says")
    parser.add_argument(
        "--graphs", type=Path, default=DATA, help="folder of the graphs for measuring the cost"
    )
    for name, (value, what) in SIZES.items():
        flag = "--" + name.replace("_", "-")
        parser.add_argument(flag, type=type(value), default=value, help=what)
    options = parser.parse_args(arguments)
    if (options.action == "add") != (options.file is not None):
        parser.error("add takes the file to add, and nothing else does")
    failed = []
    if options.action == "measure":
        chosen = options.only or {True: GPU_MEASURES, False: MEASURES}[options.gpu]
        failed = _measure(list(chosen), options)
    measured = read_record(MEASURED, {})
    if options.action == "add":
        added = read_record(options.file)
        if "gpus" in added:
            added = {f"gpu_check_{added['gpus']}": gpu_check_of(added)}
        measured |= added
        write_record(MEASURED, measured)
    if options.action == "check":
        return put({PAGE: page(measured)}, "scripts.evidence write", check=True)
    if options.output == MEASURED:
        put({PAGE: page(measured)}, "scripts.evidence")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


def gpu_check_of(record: dict) -> dict:
    """Return what the page says of a record of ``check.sh --gpu``: processes per stage, and works."""
    lacking = set(STAGES) - set(ONLY_IF_NAMED) - {row["stage"] for row in record["rows"]}
    if lacking:
        raise SystemExit(
            f"the check has not run the stages {', '.join(sorted(lacking))}; run all of them"
        )
    stages: dict[str, dict[str, int]] = {}
    for row in record["rows"]:
        counts = stages.setdefault(row["stage"], dict.fromkeys(("passed", "failed", "not run"), 0))
        counts[row["verdict"].lower()] += 1
    ratios = [work["ratio"] for work in record["works"] if work["ratio"] is not None]
    figures = {
        "gpus": record["gpus"],
        "seconds": round(record["seconds"]),
        "stages": stages,
        "works": len(ratios),
        "least": min(ratios, default=None),
        "largest": max(ratios, default=None),
    }
    here = record["machine"]
    return {
        "date": record["date"],
        "commit": record["commit"],
        "machine": f"{here['gpu']}, driver {here['driver']}",
        "figures": figures,
    }


def _measure(keys: list[str], options) -> list[str]:
    """Measure, and record each figure at once; return the keys of those that failed or found errors."""
    failed = []
    for key in keys:
        print(f"{key} ...", flush=True)
        begin = time.perf_counter()
        try:
            figures = (MEASURES | GPU_MEASURES)[key](options)
        except Exception:  # the others are measured nevertheless
            traceback.print_exc()
            failed.append(key)
            continue
        if figures.get("errors"):
            failed.append(key)
        record = {
            "date": date.today().isoformat(),
            "commit": options.commit or _commit(),
            "machine": _machine(key in GPU_MEASURES),
            "figures": figures,
        }
        print(f"{key}: {time.perf_counter() - begin:.0f} s, {json.dumps(figures)}", flush=True)
        write_record(options.output, read_record(options.output, {}) | {key: record})
    return failed


def _commit() -> str:
    """Return the commit, marked if files other than those that measuring writes differ from it."""
    command = ["git", "diff", "--quiet", "HEAD", "--", ".", ":(exclude)docs/guarantees.*"]
    is_dirty = subprocess.run(command, cwd=ROOT, check=False).returncode
    return commit().removesuffix("-dirty") + "-dirty" * bool(is_dirty)


def _machine(of_gpu: bool) -> str:
    here = machine()
    if of_gpu:
        return f"{here['gpu']}, driver {here['driver']}"
    return f"{here.get('cpu', platform.machine())}, {os.cpu_count()} cores"


if __name__ == "__main__":
    sys.exit(main())
