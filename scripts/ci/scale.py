"""Measure what several GPUs give, and what parts of other sizes cost: ``python -m scripts.ci.scale``.

start  seconds from the command to the first search with a worker per GPU: with kernels compiled before, and without
parts  distances of all vertices with parts of three sizes, in one process, on a road network and on R-MAT 20: at one price
gpus   seconds from the first search to the last on several GPUs and on one, of several kinds of results
parts-on-all  the same as parts, with a worker per GPU

Each figure is that of a whole job, a process of its own that leaves a manifest. The graphs are USA-road-NE in the folder of
KEPLER_DATA, and R-MAT 20, which scripts/make_graphs.py makes. What is not measured when the time is over is named. The
record says of each figure whether it meets its target. The exit status is 0 if all that was measured does, and 1 if not.

``--device cpu`` runs the same on a machine without a GPU: it shows that all jobs run, and says nothing of GPUs.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from scripts.make_graphs import rmat
from scripts.measure.environment import commit, machine

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("KEPLER_DATA", ROOT.parent / "shared" / "data"))
ROADS = "USA-road-NE-topology"
RMAT = "R-MAT 20"
RMAT_SCALE, EDGE_FACTOR, SEED = 20, 16, 1

PASSED, FAILED, NOT_MEASURED = "passed", "FAILED", "not measured"
SECTIONS = ("start", "parts", "gpus", "parts-on-all")
# seconds from the command to the first search
START_TARGETS = {"warm": 4.0, "cold": 6.0}
PARTS_TARGET = 1.1  # times the default
GPUS_TARGETS = {2: 1.9, 4: 3.6}  # times one GPU
PART_SIZES: dict[str, tuple[str, ...]] = {
    "default": (),
    "--batch-size 32": ("--batch-size", "32"),
    "--part-size 256MB": ("--part-size", "256MB"),
}
PART_SOURCES = 512
ROUNDS = 2
MAX_SOURCES = 1_000_000
N_TARGETS = 1_000
# Folders of compiled code, which are empty for a cold start.
COMPILED = ("CUPY_CACHE_DIR", "CUDA_CACHE_PATH", "NUMBA_CACHE_DIR")


@dataclass(frozen=True)
class Kind:
    """A kind of result that several GPUs share, with the sources of a first run on one."""

    name: str
    graph: str
    sources: int
    flags: tuple[str, ...]

    @property
    def title(self) -> str:
        return f"{self.graph}, {self.name}"


@dataclass(frozen=True)
class Figure:
    """One figure, and whether it meets its target."""

    section: str
    name: str
    value: float | None
    target: str
    verdict: str
    detail: dict[str, Any] = field(default_factory=dict)


class TimeIsOverError(Exception):
    """The next job would not end in time."""


class Bench:
    """Runs jobs in a folder, and keeps what they took."""

    def __init__(self, options: argparse.Namespace, folder: Path):
        self.options = options
        self.folder = folder
        self.ends = time.monotonic() + options.seconds
        self._longest = 0.0
        self.files = {ROADS: DATA / f"{ROADS}.parquet", RMAT: folder / "rmat.parquet"}

    @functools.cached_property
    def targets(self) -> Path:
        """A file of vertices of the road network, at random."""
        ids = self._ids_of_roads
        chosen = np.random.default_rng(SEED).choice(ids, N_TARGETS, replace=False)
        path = self.folder / "targets.txt"
        path.write_text("\n".join(map(str, np.sort(chosen).tolist())) + "\n")
        return path

    @functools.cached_property
    def attributes(self) -> Path:
        """A table of all vertices of the road network with an attribute."""
        ids = self._ids_of_roads
        jobs = np.random.default_rng(SEED).integers(0, 100, ids.size)
        path = self.folder / "attributes.parquet"
        pq.write_table(pa.table({"vertex": ids, "jobs": jobs}), path)
        return path

    @functools.cached_property
    def _ids_of_roads(self) -> np.ndarray:
        edges = pq.read_table(self.files[ROADS])
        ends = [edges[name].to_numpy() for name in edges.column_names[:2]]
        return np.unique(np.concatenate(ends))

    def _make_rmat(self) -> None:
        if not self.files[RMAT].exists():
            src, dst = rmat(RMAT_SCALE, EDGE_FACTOR, SEED)
            pq.write_table(pa.table({"src": src, "dst": dst}), self.files[RMAT])

    def job(
        self, graph: str, *flags: str, workers: int = 0, compiled: Path | None = None
    ) -> dict[str, float]:
        """Run a job and return its seconds: from the command to the first search, from there to the
        last, those of its own clock after the start, and all of the process.

        ``workers``: number of worker processes; 0 runs in one process. ``compiled``: a folder in
        place of those of compiled code. Raises TimeIsOverError before a job that would take too
        long, and RuntimeError if one fails.
        """
        if time.monotonic() + self._longest > self.ends:
            raise TimeIsOverError
        if graph == RMAT:
            self._make_rmat()
        output = self.folder / "out"
        shutil.rmtree(output, ignore_errors=True)
        command = [sys.executable, "-m", "pipelines.batch_sources", str(self.files[graph])]
        command += ["--undirected", "--device", self.options.device, "--output", str(output)]
        command += ["--graph-cache", str(self.folder / "cache"), "--no-report", *flags]
        environment = dict(os.environ)
        if workers:
            command += ["--workers", str(workers)]
        if compiled is not None:
            environment |= {name: str(compiled / name) for name in COMPILED}
        began = time.monotonic()
        launched = time.time()
        self._run(command, environment)
        took = time.monotonic() - began
        self._longest = max(self._longest, took)
        manifest = json.loads((output / "_manifest.json").read_text())
        first = min(part["started"] for part in manifest["parts"])
        last = max(part["ended"] for part in manifest["parts"])
        return {
            "to_first_search": round(first - launched, 3),
            "searching": round(last - first, 3),
            "after_start": manifest["seconds"]["traverse"],
            "process": round(took, 3),
            "parts": len(manifest["parts"]),
            "workers": len({part["worker"] for part in manifest["parts"]}),
        }

    def _run(self, command: list[str], environment: dict[str, str]) -> None:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            said, _ = process.communicate(timeout=max(1.0, self.ends - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise TimeIsOverError from None
        if process.returncode:
            tail = said.decode(errors="replace").splitlines()[-5:]
            raise RuntimeError(f"{' '.join(command[3:])} ended with {process.returncode}: {tail}")


def kinds(bench: Bench) -> list[Kind]:
    """Return the kinds of results that are measured on several GPUs, those named first that matter
    most.
    """
    near = ("--targets", str(bench.targets), "--nearest-k", "5")
    within = ("--vertices", str(bench.attributes), "--values", "jobs", "--cutoffs", "100,400")
    listed = ("--targets", str(bench.targets))
    return [
        Kind("summary", ROADS, 20_000, ("--result", "summary")),
        Kind("levels", ROADS, 10_000, ("--result", "levels")),
        Kind("flows", ROADS, 4_000, ("--result", "flows")),
        Kind("betweenness", ROADS, 1_000, ("--result", "betweenness")),
        Kind("targets", ROADS, 10_000, ("--result", "targets", *listed)),
        Kind("opportunities", ROADS, 10_000, ("--result", "opportunities", *within)),
        Kind("nearest targets", ROADS, 10_000, ("--result", "nearest_targets", *near)),
        Kind("summary", RMAT, 20_000, ("--result", "summary")),
    ]


def random_sources(count: int) -> tuple[str, ...]:
    return "--random-sources", str(count), "--seed", str(SEED)


def judged(
    section: str, name: str, value: float, target: float, at_most: bool, detail: dict[str, Any]
) -> Figure:
    is_met = value <= target if at_most else value >= target
    word = "at most" if at_most else "at least"
    verdict = PASSED if is_met else FAILED
    return Figure(section, name, round(value, 3), f"{word} {target:g}", verdict, detail)


def measure_start(bench: Bench) -> Iterator[Figure]:
    """Yield the seconds from the command to the first search with a worker per GPU."""
    workers = min(bench.options.workers)
    if workers < 2:
        return
    flags = ("--result", "summary", *random_sources(256))
    bench.job(ROADS, *flags, workers=workers)  # compiles, and stores the graph
    warm = [bench.job(ROADS, *flags, workers=workers) for _ in range(2)]
    best = min(warm, key=lambda run: run["to_first_search"])
    for name, run in (("warm", best), ("cold", None)):
        if run is None:
            with tempfile.TemporaryDirectory(dir=bench.folder) as empty:
                run = bench.job(ROADS, *flags, workers=workers, compiled=Path(empty))
        target = START_TARGETS[name]
        title = f"{workers} workers, {name}"
        yield judged("start", title, run["to_first_search"], target, True, run)


def measure_parts(bench: Bench) -> Iterator[Figure]:
    """Yield what parts of other sizes cost in one process."""
    for graph in (ROADS, RMAT):
        yield from _parts(bench, "parts", graph, 0, ROUNDS)


def measure_parts_on_all(bench: Bench) -> Iterator[Figure]:
    """Yield what parts of other sizes cost on all GPUs, which have twice as much to write."""
    workers = max(bench.options.workers)
    if workers >= 2:
        for graph in (ROADS, RMAT):
            yield from _parts(bench, "parts-on-all", graph, workers, 1)


def _parts(bench: Bench, section: str, graph: str, workers: int, rounds: int) -> Iterator[Figure]:
    """Yield the seconds of each size of parts as times the default, the least of alternating runs."""
    bench.job(graph, *random_sources(16))  # stores the graph
    sources = max(64, int(PART_SOURCES * bench.options.share)) * max(1, workers)
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in PART_SIZES}
    for _ in range(rounds):
        for name, size in PART_SIZES.items():
            flags = ("--result", "distances", *random_sources(sources), *size)
            runs[name].append(bench.job(graph, *flags, workers=workers))
    least = {name: min(own, key=lambda run: run["after_start"]) for name, own in runs.items()}
    for name, run in least.items():
        ratio = run["after_start"] / least["default"]["after_start"]
        yield judged(section, f"{graph}, {name}", ratio, PARTS_TARGET, True, run)


def measure_gpus(bench: Bench) -> Iterator[Figure]:
    """Yield for each kind how many times faster several GPUs are than one."""
    options = bench.options
    counts = [count for count in options.workers if count >= 2]
    found = {kind.title: kind for kind in kinds(bench)} if counts else {}
    for title in options.kinds or found:
        kind = found[title]
        sources, one = _on_one(bench, kind)
        for count in counts:
            every = bench.job(kind.graph, *kind.flags, *random_sources(sources), workers=count)
            ratio = one["searching"] / max(every["searching"], 1e-3)
            detail = {
                "sources": sources,
                "whole": round(one["process"] / every["process"], 2),
                "one": one,
                "all": every,
            }
            target = GPUS_TARGETS.get(count, 0.95 * count)
            yield judged("gpus", f"{title}, {count} GPUs", ratio, target, False, detail)


def _on_one(bench: Bench, kind: Kind) -> tuple[int, dict[str, float]]:
    """Return a number of sources that one GPU searches for about as long as is asked, and its run."""
    aim = bench.options.aim
    sources = max(2, int(kind.sources * bench.options.share))
    # compiles, and stores the graph and what is derived from it
    bench.job(kind.graph, *kind.flags, *random_sources(max(2, sources // 10)))
    one = bench.job(kind.graph, *kind.flags, *random_sources(sources))
    if one["searching"] < aim / 2:
        more = aim / max(one["searching"], aim / 100)
        sources = min(MAX_SOURCES, int(sources * more))
        one = bench.job(kind.graph, *kind.flags, *random_sources(sources))
    return sources, one


MEASURES: dict[str, Callable[[Bench], Iterator[Figure]]] = {
    "start": measure_start,
    "parts": measure_parts,
    "gpus": measure_gpus,
    "parts-on-all": measure_parts_on_all,
}


def count_gpus() -> int:
    import cupy

    return int(cupy.cuda.runtime.getDeviceCount())


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m scripts.ci.scale", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--seconds", type=float, default=200.0, help="start no job after this time")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument(
        "--workers",
        type=int,
        nargs="+",
        help=(
            "`gpus` compares each of these numbers with one, and `start` has the least "
            "(default: the number of GPUs, at most 4)"
        ),
    )
    parser.add_argument("--kinds", nargs="+", help="those of `gpus`, such as 'R-MAT 20, summary'")
    parser.add_argument(
        "--aim", type=float, default=4.0, help="seconds of the searches of `gpus` on one GPU"
    )
    parser.add_argument("--share", type=float, default=1.0, help="share of the sources of `gpus`")
    parser.add_argument("--output", type=Path, default=ROOT / "out" / "gpu" / "scale.json")
    options = parser.parse_args(arguments)
    if options.workers is None:
        options.workers = [min(4, count_gpus()) if options.device == "cuda" else 2]
    return options


def measured(bench: Bench) -> Iterator[Figure]:
    for section in bench.options.only:
        try:
            yield from MEASURES[section](bench)
        except TimeIsOverError:
            yield Figure(section, "further ones", None, "", NOT_MEASURED)
        except RuntimeError as error:
            yield Figure(section, "further ones", None, "", FAILED, {"error": str(error)})


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    record: dict[str, Any] = {"commit": commit(), "machine": machine(), "workers": options.workers}
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, Path(folder))
        if not bench.files[ROADS].exists():
            print(f"{bench.files[ROADS]} is missing; set KEPLER_DATA", file=sys.stderr)
            return 2
        for figure in measured(bench):
            figures.append(figure)
            value = "-" if figure.value is None else f"{figure.value:.2f}"
            print(
                f"{figure.section:<6} {figure.name:<42} {value:>7}  {figure.target:<14} "
                f"{figure.verdict} {json.dumps(figure.detail)}",
                flush=True,
            )
            # kept as they come: the time may be over at any moment
            record["seconds"] = round(time.monotonic() - began, 1)
            record["figures"] = [asdict(each) for each in figures]
            options.output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return int(any(figure.verdict == FAILED for figure in figures))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
