"""What a new user waits for: first jobs and calls with nothing compiled, in an environment with the extra of the job.

Each round begins with an empty folder for the code that Numba compiles. Its jobs run in order, and then again. Disturbances
only add time, so the least of the rounds counts.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path

from scripts.bench.installed_sizes import install
from scripts.bench.jobs import run_job
from scripts.measure.environment import ROOT
from scripts.measure.harness import run_command
from scripts.measure.work import OURS, Call, Inputs, Timed, Work

PACKAGES = ("llvmlite", "pyarrow", "pandas")
GRAPHS = {
    "social": "rmat --scale 16 --edge-factor 8",
    "road": "lattice --rows 250 --columns 250 --drop 0.1",
}
_64 = "--random-sources 64 --seed 1 --result predecessors"
DEMO = {  # as in demo.sh
    "R-MAT 16, hops": f"social.parquet --algorithm bfs {_64}",
    "R-MAT 16, weighted": f"social.parquet --algorithm sssp {_64}",
    "lattice 250, hops": f"road.parquet --undirected --algorithm bfs {_64}",
    "lattice 250, weighted": f"road.parquet --undirected --algorithm sssp {_64}",
}
OWN = {"own table with string ids": "edges.csv --sources A"}
ALL = "all four of the demo"
CALLS = """
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
CALLED = ("import", "graph_from_edges", "bfs", "certify", "bfs_many", "sssp_many")


class Rounds:
    """An environment with the job and its graphs, and the rounds that were made: all works share them."""

    def __init__(self) -> None:
        self._kept = tempfile.TemporaryDirectory()
        self.folder = Path(self._kept.name)
        self.programs = install(self.folder, "job")
        for graph, words in GRAPHS.items():
            program = f"scripts/make_graphs.py {words} --seed 1 --weights --output".split()
            file = self.folder / f"{graph}.parquet"
            run_command([sys.executable, *program, file], cwd=ROOT)
        (self.folder / "edges.csv").write_text("from,to,km\nA,B,2\nB,C,3\nD,E,1\n")
        self.made = []

    def round(self, number: int) -> dict[str, Timed]:
        while len(self.made) <= number:
            of_calls = self.calls()
            of_own = self.jobs(OWN)
            of_demo = self.jobs(DEMO)
            self.made.append(of_demo | of_own | {ALL: together(of_demo)} | of_calls)
        return self.made[number]

    def jobs(self, jobs: dict[str, str]) -> dict[str, Timed]:
        """Run jobs with nothing compiled, and again."""
        program = [self.programs / "kepler-traverse", "run"]
        found = {}
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            given = {"cwd": self.folder, "NUMBA_CACHE_DIR": f"{name}/numba"}
            for kind in ("cold", "warm"):
                for job, words in jobs.items():
                    output = ["--output", f"{name}/{kind}-{job}"]
                    ran = run_job([*words.split(), *output], program, **given)
                    if kind == "cold":
                        more = {"cold_cpu": ran.more["cpu"], "cold_compile": ran.more["compile"]}
                        found[job] = Timed(None, ran.seconds, more)
                    else:
                        found[job] = found[job]._replace(
                            more={**found[job].more, "warm": ran.seconds}
                        )
        return found

    def calls(self) -> dict[str, Timed]:
        with tempfile.TemporaryDirectory() as cache:
            environment = os.environ | {"NUMBA_CACHE_DIR": cache}
            python = [self.programs / "python", "-c", CALLS]
            seconds = json.loads(run_command(python, cwd=self.folder, env=environment))
        return {name: Timed(None, taken) for name, taken in seconds.items()}


def together(jobs: dict[str, Timed]) -> Timed:
    """Return the sums of some jobs."""
    more = Counter()
    for job in jobs.values():
        more.update(job.more)
    return Timed(None, sum(job.seconds for job in jobs.values()), dict(more))


def rounds_of(_inputs: Inputs) -> Rounds:
    return Rounds()


def prepare(rounds: Rounds, name: str) -> Call:
    numbers = iter((0, 0, 1, 2))  # the first call is not counted, so that its round is
    return lambda: rounds.round(next(numbers))[name]


WORKS = tuple(
    Work(
        name=name,
        graph="generated",
        case=rounds_of,
        peers={OURS: partial(prepare, name=name)},
    )
    for name in (*DEMO, *OWN, ALL, *CALLED)
)
