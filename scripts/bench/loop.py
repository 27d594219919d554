"""The whole job beside a loop over cuGraph: the same edges, the same sources, the same summary; needs a GPU.

Times are those of whole processes, from the command to its end. ``reached``, ``eccentricity`` and ``sum`` must be equal, the
floats to twelve digits.
"""

from __future__ import annotations

import sys
import tempfile
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow
import pyarrow.parquet

from scripts import make_graphs
from scripts.bench.jobs import run_job
from scripts.measure.environment import ROOT, timed
from scripts.measure.harness import run_command
from scripts.measure.work import OURS, Call, Inputs, Repeats, Timed, Work, elsewhere

PACKAGES = ("pyarrow", "cupy-cuda13x", "cudf-cu13", "cugraph-cu13", "pylibcugraph-cu13")
SCALE, EDGE_FACTOR, SOURCES = 20, 16, 1024
EXACT, ROUNDED = ("source", "reached", "eccentricity", "sum"), ("mean", "closeness", "harmonic")
_TOLERANCE = 1e-12


def differences(ours: pyarrow.Table, theirs: pyarrow.Table) -> str:
    """Compare two summaries by their sources."""
    tables = [table.sort_by("source") for table in (ours, theirs)]
    if tables[0].num_rows != tables[1].num_rows:
        return f"the summaries have {ours.num_rows} and {theirs.num_rows} rows"
    for name in (*EXACT, *ROUNDED):
        kind = np.float64 if name in ROUNDED else np.int64
        a, b = (table[name].to_numpy().astype(kind) for table in tables)
        same = a == b if name in EXACT else np.isclose(a, b, rtol=_TOLERANCE, atol=0)
        if not same.all():
            row = int(np.flatnonzero(~same)[0])
            source = tables[0]["source"][row].as_py()
            return f"source {source}: {name} is {a[row]} and {b[row]}"
    return ""


class Case(NamedTuple):
    """A folder with an edge list and sources, and the device of the job."""

    folder: tempfile.TemporaryDirectory
    words: tuple[str, ...]
    device: str


@lru_cache(1)
def case_of(inputs: Inputs) -> Case:
    folder = tempfile.TemporaryDirectory()
    edges, chosen = Path(folder.name) / "edges.parquet", Path(folder.name) / "sources.txt"
    src, dst = make_graphs.rmat(SCALE, EDGE_FACTOR, inputs.seed)
    make_graphs.write(edges, src, dst, None)
    candidates = np.unique(src[src != dst])
    sources = np.random.default_rng(inputs.seed).choice(candidates, SOURCES, replace=False)
    chosen.write_text("".join(f"{source}\n" for source in sources), encoding="utf-8")
    words = (str(edges), "--sources", str(chosen), "--result", "summary")
    return Case(folder, words, inputs.device)


def prepare(case: Case, is_job: bool) -> Call:
    numbers = iter(range(99))

    def run() -> Timed:
        output = Path(case.folder.name) / f"{'job' if is_job else 'loop'}-{next(numbers)}"
        if is_job:
            words = [*case.words, "--device", case.device, "--output", output]
            taken = run_job(words).seconds
        else:
            edges, *words = case.words
            module = [sys.executable, "-m", "scripts.bench.cugraph_loop"]
            _, taken = timed(lambda: run_command([*module, edges, output, *words], cwd=ROOT))
        parts = sorted([*output.glob("part-*.parquet"), *output.glob("summary.parquet")])
        return Timed(pyarrow.concat_tables(map(pyarrow.parquet.read_table, parts)), taken)

    return run


WORKS = (
    Work(
        name=f"{SOURCES:,} sources, summary",
        graph=f"R-MAT {SCALE}",
        case=case_of,
        peers={
            OURS: partial(prepare, is_job=True),
            "cuGraph": partial(prepare, is_job=False),
        },
        check=differences,
        clock=elsewhere,
        repeats=Repeats(seconds=120.0),
    ),
)
