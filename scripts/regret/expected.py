"""What ``--plan`` expects of runs, beside what the runs take.

``python -m scripts.regret.expected --graphs FOLDER --output FILE`` runs the job twice per graph, with ``--plan`` and
without, and writes a line of JSON each: the expected and the measured seconds of searching, and of certifying and writing.
Both are those of the clock, one after the other, so that other work on the machine reaches both.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from scripts.measure import environment
from scripts.regret import graphs
from scripts.regret.graphs import GraphSource

SIZE = 30_000  # vertices of generated graphs
SOURCES = {"bfs": 256, "sssp": 64}
SEARCH, FINISH = ("traverse",), ("certify", "rows", "write")
# The job is called as a command, since it counts a process of its own.
COMMAND = [sys.executable, "-m", "pipelines", "run"]


class Run(NamedTuple):
    """A run of the job."""

    graph: str
    algorithm: str
    edges: Path
    directed: bool

    def words(self, output: Path) -> list[str]:
        words = [str(self.edges), "--algorithm", self.algorithm, "--device", "cpu", "--json"]
        words += ["--random-sources", str(SOURCES[self.algorithm]), "--output", str(output)]
        words += ["--workers", "1", "--no-report"]
        return words if self.directed else [*words, "--undirected"]


def call(words: list[str]) -> dict[str, Any]:
    """Return the JSON that the job prints."""
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, cwd=environment.ROOT)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: exit code {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


def measured(run: Run, folder: Path) -> dict[str, Any]:
    """Run the job after its plan, and return expected and measured seconds."""
    output = folder / f"{run.edges.stem}-{run.algorithm}"
    expected = call([*run.words(output), "--plan"])["expected"]
    phases = call(run.words(output))["phases"]
    return {
        "graph": run.graph,
        "algorithm": run.algorithm,
        "sources": SOURCES[run.algorithm],
        "tried": expected["sources_tried"],
        "search": [expected["steps"]["search"], sum(phases[name] for name in SEARCH)],
        "finish": [expected["steps"]["finish"], sum(phases[name] for name in FINISH)],
    }


def runs(sources: list[GraphSource], folder: Path) -> Iterator[Run]:
    """Write the edge list of each graph with even weights, and yield its runs."""
    for number, source in enumerate(sources):
        src, dst = source.make()
        edges = folder / f"{number}.parquet"
        weight = graphs.weights_of(src, dst, "even")
        pq.write_table(pa.table({"src": src, "dst": dst, "weight": weight}), edges)
        for algorithm in SOURCES:
            yield Run(source.name, algorithm, edges, source.directed)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--graphs", type=Path, help="folder of the files of real graphs")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--size", type=int, default=SIZE, help="vertices of generated graphs")
    options = parser.parse_args(arguments)
    sources = [*graphs.generated(options.size, options.size), *graphs.of_folder(options.graphs)]
    about = environment.about(("numpy", "numba", "pyarrow"))
    with tempfile.TemporaryDirectory() as folder, open(options.output, "w") as file:
        for run in runs(sources, Path(folder)):
            line = measured(run, Path(folder)) | about
            file.write(json.dumps(line) + "\n")
            file.flush()
            print(line["graph"], line["algorithm"], line["search"], line["finish"], flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
