"""How long the whole job takes, by the wall, from the command to its end, with its steps.

"Nothing compiled" has empty folders for the code that Numba and CuPy compile. Before the other runs one is made that is not
counted. Steps are those of ``--json``; what is before and after them is "outside".
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from scripts.bench.jobs import run_job
from scripts.measure.work import OURS, Call, Inputs, Repeats, Timed, Work

PACKAGES = ()


class Case(NamedTuple):
    """A job: its name in the table, its edge list in the folder of graphs, and its options."""

    name: str
    graph: str
    options: tuple[str, ...]
    runs: int = 5  # a single one has nothing compiled


def cases(device: str) -> list[Case]:
    """Return the jobs that are measured on a device."""
    one = ("--sources", "1")
    roads = "USA-road-NE-topology"
    many = ("--undirected", "--random-sources", "1024")
    summary = ("--random-sources", "1024", "--result", "summary")
    found = [
        Case("karate, 1 source", "karate", one),
        Case("karate, 1 source, nothing compiled", "karate", one, runs=1),
        Case("USA-road-NE, 1 source", roads, ("--undirected", "--random-sources", "1")),
    ]
    if device == "cuda":
        found.append(Case("USA-road-NE, 1,024 sources, all distances", roads, many))
        found.append(Case("R-MAT 20, 1,024 sources, summary", "rmat-20", summary))
    return found


def words_of(case: Case, edges: Path | str, device: str) -> list[str]:
    return [str(edges), "--device", device, *case.options]


def prepare(inputs: Inputs, case: Case) -> Call:
    words = words_of(case, inputs.file(case.graph).resolve(), inputs.device)

    def run() -> Timed:
        with tempfile.TemporaryDirectory() as folder:
            caches = {}
            if case.runs == 1:
                caches = {key: f"{folder}/{key}" for key in ("NUMBA_CACHE_DIR", "CUPY_CACHE_DIR")}
            return run_job([*words, "--output", f"{folder}/out"], **caches)

    return run


def works(inputs: Inputs) -> Iterator[Work]:
    for case in cases(inputs.device):
        yield Work(
            name=case.name,
            graph=case.name.partition(",")[0],
            case=lambda inputs: inputs,
            peers={OURS: partial(prepare, case=case)},
            figure=statistics.median,
            repeats=Repeats(most=case.runs, seconds=300.0),
        )
