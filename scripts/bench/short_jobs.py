"""Searches that end early as jobs, from the command to the finished folder, with certificates."""

from __future__ import annotations

import os
import sys
import tempfile
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import pandas as pd

from scripts.bench import short_searches as short
from scripts.measure.environment import ROOT
from scripts.measure.harness import run_command
from scripts.measure.work import OURS, Call, Inputs, Prepare, Work

PACKAGES = ()
ON_ROADS = "--directed --algorithm sssp"
ALL = f"{ON_ROADS} --sources all.parquet"
ATTRIBUTES = f"{ALL} --vertices values.parquet --result opportunities"
NAMES = list(short.ON_ROADS)
# Work: graph and options of the job.
JOBS = {
    NAMES[0]: (short.ROADS, f"{ALL} --cutoff {short.NEAR}"),
    NAMES[1]: (short.ROADS, f"{ALL} --result within --cutoffs 0"),
    NAMES[2]: (short.ROADS, f"{ATTRIBUTES} --values jobs --cutoffs {short.NEAR}"),
    NAMES[3]: (
        short.ROADS,
        f"{ATTRIBUTES} --values {','.join(short.ATTRIBUTES)} --cutoffs {','.join(map(str, short.CUTOFFS))}",
    ),
    NAMES[4]: (
        short.ROADS,
        f"{ON_ROADS} --sources points.parquet --result nearest --nearest-k {short.NEAREST}",
    ),
    NAMES[5]: (short.ROADS, f"{ON_ROADS} --pairs pairs.parquet"),
    short.WITHIN_HOPS: (
        short.HUBS,
        f"--directed --algorithm bfs --sources people.parquet --result within --cutoffs {short.HOPS}",
    ),
}


@lru_cache(1)
def folder_of(inputs: Inputs) -> Path:
    """Write the tables that jobs read, into a folder that lasts as long as this process."""
    folder = tempfile.TemporaryDirectory()
    _KEPT.append(folder)
    roads = short.roads_of(inputs)
    hubs = short.hubs_of(inputs)
    people = short.sources_of(hubs, short.NEIGHBORS_OF)
    tables = {
        "all": {"source": roads.graph.ids},
        "points": {"source": roads.graph.ids[roads.points]},
        "people": {"source": np.unique(hubs.ids[people])},
        "values": {"vertex": roads.graph.ids} | roads.values,
        "pairs": {"origin": roads.pairs["source"], "destination": roads.pairs["vertex"]},
    }
    for name, columns in tables.items():
        pd.DataFrame(columns).to_parquet(Path(folder.name) / f"{name}.parquet")
    return Path(folder.name)


_KEPT: list[tempfile.TemporaryDirectory] = []


def prepare(inputs: Inputs, graph: str, words: str) -> Call:
    """Prepare a job. Modules are compiled to bytecode once, as an installation leaves them."""
    folder = folder_of(inputs)
    numbers = iter(range(99))
    code = {"PYTHONPYCACHEPREFIX": f"{folder}/bytecode", "PYTHONDONTWRITEBYTECODE": ""}
    edges = inputs.file(graph).resolve()
    command = [sys.executable, "-m", "pipelines.batch_sources", edges, *words.split()]
    options = {"cwd": folder, "env": os.environ | code | {"PYTHONPATH": str(ROOT)}}

    def run() -> None:
        output = f"{abs(hash(words))} {next(numbers)}"
        run_command([*command, "--output", output], **options)

    return run


def baseline_of(graph: str, words: str) -> Prepare:
    return partial(prepare, graph=graph, words=words)


WORKS = tuple(
    Work(
        name=name, graph=graph, case=lambda inputs: inputs, peers={OURS: baseline_of(graph, words)}
    )
    for name, (graph, words) in JOBS.items()
)
