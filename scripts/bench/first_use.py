"""Measure what a new user waits for: the sizes of installations, and first jobs and calls with nothing compiled.

``python -m scripts.bench.first_use sizes`` and ``seconds`` write the two halves of the record, and
``python -m scripts.docs.measured_tables`` the pages. Each installation is an environment of its own, by pip from a wheel of
this checkout; jobs and calls run in that of the job. Each round begins with an empty folder for the code that Numba
compiles. Its jobs run in order, and then again. Disturbances only add time, so the least of the rounds counts.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scripts.measure.environment import ROOT, about
from scripts.pages import read_record, write_record

RECORD = ROOT / "docs/benchmarks/first_use.json"
EXTRAS = ("", "geo", "networkx", "osm", "plot", "job")
# whose versions are recorded
PACKAGES = ("kepler-traverse", "numba", "llvmlite", "numpy", "pyarrow", "pandas")
ROUNDS = 3
GRAPHS = {
    "social": ("rmat", "--scale", "16", "--edge-factor", "8"),
    "road": ("lattice", "--rows", "250", "--columns", "250", "--drop", "0.1"),
}
_64 = ("--random-sources", "64", "--seed", "1", "--result", "predecessors")
DEMO = {  # as in demo.sh
    "R-MAT 16, hops": ("social.parquet", "--algorithm", "bfs", *_64),
    "R-MAT 16, weighted": ("social.parquet", "--algorithm", "sssp", *_64),
    "lattice 250, hops": ("road.parquet", "--undirected", "--algorithm", "bfs", *_64),
    "lattice 250, weighted": ("road.parquet", "--undirected", "--algorithm", "sssp", *_64),
}
OWN = {"own table with string ids": ("edges.csv", "--sources", "A")}

_SIZES = """
import json
from importlib.metadata import distributions
found = {}
for each in distributions():
    paths = [file.locate() for file in each.files or () if "__pycache__" not in str(file)]
    found[each.name.lower()] = (sum(path.stat().st_blocks * 512 for path in paths if path.exists()), each.version)
print(json.dumps({name: facts for name, facts in found.items() if name not in ("pip", "setuptools")}))
"""
_CALLS = """
import json, time
seconds, began = {}, time.perf_counter()
def ended(name):
    global began
    seconds[name], began = time.perf_counter() - began, time.perf_counter()
import kepler_traverse
ended("import")
import numpy
rng, n = numpy.random.default_rng(1), 1000
src, dst = rng.integers(0, n, (2, 4 * n))
weights = rng.integers(1, 100, 4 * n)
began = time.perf_counter()
graph = kepler_traverse.graph_from_edges(src, dst, weights)
ended("graph_from_edges")
found = kepler_traverse.bfs(graph, int(src[0]))
ended("bfs")
kepler_traverse.certify(graph, found).require()
ended("certify")
kepler_traverse.bfs_many(graph, src[:64])
ended("bfs_many")
kepler_traverse.sssp_many(graph, src[:64])
ended("sssp_many")
print(json.dumps(seconds))
"""


def ran(command: Sequence[Any], **options: Any) -> str:
    """Run a command and return its output; end this program if it fails."""
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False, **options
    )
    if done.returncode:
        raise SystemExit(f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def installed(folder: Path, wheel: Path, extra: str) -> Path:
    """Install the wheel with an extra into an environment of its own; return the folder of its programs."""
    place = folder / f"with-{extra}"
    ran([sys.executable, "-m", "venv", place])
    ran([place / "bin/pip", "install", "--quiet", f"{wheel}[{extra}]" if extra else wheel])
    return place / "bin"


def measure_round(
    programs: Path, graphs: Path, jobs: dict[str, tuple[str, ...]]
) -> list[dict[str, Any]]:
    """Run jobs with nothing compiled, and again; return the seconds of each process, and those of compiling."""
    rows = []
    with tempfile.TemporaryDirectory(dir=graphs) as name:
        for kind in ("cold", "warm"):
            for job, words in jobs.items():
                output = Path(name) / f"{kind}-{job}"
                command = [
                    programs / "kepler-traverse",
                    "run",
                    *words,
                    "--json",
                    "--output",
                    output,
                ]
                began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
                found = ran(
                    command, cwd=graphs, env=os.environ | {"NUMBA_CACHE_DIR": f"{name}/numba"}
                )
                whole, after = (
                    time.perf_counter() - began,
                    resource.getrusage(resource.RUSAGE_CHILDREN),
                )
                cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
                compiling = json.loads(found)["seconds"]["compile"]
                rows.append(
                    {"job": job, kind: whole, f"{kind}_cpu": cpu, f"{kind}_compile": compiling}
                )
    return [
        {key: value for row in rows if row["job"] == job for key, value in row.items()}
        for job in jobs
    ]


def measure(half: str, folder: Path) -> dict[str, Any]:
    """Return one half of the record, measured in a folder that is empty."""
    record = about((), f"python -m scripts.bench.first_use {half}")
    ran([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT])
    (wheel,) = folder.glob("*.whl")
    programs = {
        extra: installed(folder, wheel, extra)
        for extra in (EXTRAS if half == "sizes" else ("job",))
    }
    facts = {
        extra: json.loads(ran([each / "python", "-c", _SIZES])) for extra, each in programs.items()
    }
    last = next(iter(facts.values()))
    record["versions"] = {"python": platform.python_version()} | {
        name: last[name][1] for name in PACKAGES
    }
    if half == "sizes":
        return record | {
            "bytes": {
                extra: {name: size for name, (size, _) in of.items()} for extra, of in facts.items()
            }
        }
    for graph, words in GRAPHS.items():
        options = [*words, "--seed", "1", "--weights", "--output", folder / f"{graph}.parquet"]
        ran([sys.executable, "scripts/make_graphs.py", *options], cwd=ROOT)
    (folder / "edges.csv").write_text("from,to,km\nA,B,2\nB,C,3\nD,E,1\n")
    record["load"], record["rounds"] = os.getloadavg()[0], []
    for _ in range(ROUNDS):
        jobs = [row for jobs in (DEMO, OWN) for row in measure_round(programs["job"], folder, jobs)]
        with tempfile.TemporaryDirectory() as cache:
            calls = ran(
                [programs["job"] / "python", "-c", _CALLS],
                cwd=folder,
                env=os.environ | {"NUMBA_CACHE_DIR": cache},
            )
        record["rounds"].append({"jobs": jobs, "calls": json.loads(calls)})
    return record


def _mib(size: float) -> str:
    return f"{size / 2**20:.0f}"


def sizes_table(record: dict[str, Any]) -> str:
    """Return the sizes of installations as the lines of a page."""
    (_, library), *others = record["sizes"]["bytes"].items()
    largest = sorted(library, key=library.__getitem__, reverse=True)[:6]
    lines = ["| installed | MiB |", "|---|---|", f"| the library | {_mib(sum(library.values()))} |"]
    lines += [
        f"| of it: {', '.join(largest)} | {', '.join(_mib(library[name]) for name in largest)} |"
    ]
    lines += [f"| with `[{extra}]` | {_mib(sum(each.values()))} |" for extra, each in others]
    return "\n".join(lines) + f"\n\n{_made(record['sizes'])}\n"


def seconds_table(record: dict[str, Any]) -> str:
    """Return the seconds of first jobs and calls as the lines of a page."""
    rounds, keys = record["seconds"]["rounds"], ("cold", "cold_cpu", "cold_compile", "warm")
    together = [
        {key: sum(job[key] for job in each["jobs"][: len(DEMO)]) for key in keys} for each in rounds
    ]
    named = [{"job": "all four of the demo"} | each for each in together]
    lines = [
        "| job | nothing compiled | its CPU time | of it compiling | compiled |",
        "|---|---|---|---|---|",
    ]
    for same in (*zip(*(each["jobs"] for each in rounds), strict=True), named):
        cells = [f"{min(job[key] for job in same):.2f}" for key in keys]
        lines.append(f"| {same[0]['job']} | {' | '.join(cells)} |")
    lines += ["", "| first call in a process, nothing compiled | seconds |", "|---|---|"]
    lines += [
        f"| `{name}` | {min(each['calls'][name] for each in rounds):.2f} |"
        for name in rounds[0]["calls"]
    ]
    how = (
        "Jobs of the demo search from 64 sources, with predecessors, and certify all; they run in this order.\n"
        f"Each figure is the least of {len(rounds)} rounds."
    )
    return "\n".join(lines) + f"\n\n{how}\n{_made(record['seconds'])}\n"


def sentence(record: dict[str, Any]) -> str:
    """Return what the README says of sizes."""
    library, job = (_mib(sum(record["sizes"]["bytes"][extra].values())) for extra in ("", "job"))
    return (
        f"The library takes {library} MiB of disk with its packages, and with the job {job} MiB\n"
        "([by package](docs/versions.md#installed-sizes)).\n"
    )


def _made(record: dict[str, Any]) -> str:
    machine, packages = (
        record["machine"],
        ", ".join(f"{name} {version}" for name, version in record["versions"].items()),
    )
    return (
        f"Measured by `{record['command']}` on {record['date']} at commit {record['commit']}, on {machine['cores']} cores "
        f"({machine['cpu']}),\nwith {packages}."
    )


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure what a new user waits for.")
    parser.add_argument("half", choices=("sizes", "seconds"))
    half = parser.parse_args(argv).half
    with tempfile.TemporaryDirectory() as name:
        found = measure(half, Path(name))
    write_record(RECORD, (read_record(RECORD) if RECORD.exists() else {}) | {half: found})
    return 0


if __name__ == "__main__":
    sys.exit(main())
