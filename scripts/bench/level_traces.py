"""Traces of the iterations of a search in one launch: docs/benchmarks/levels.json, and its plots.

python -m scripts.bench.level_traces FOLDER [--only GRAPH ...]    traces searches of ``scripts.bench.gpu`` on a GPU
python -m scripts.measure write                                   then draws

docs/benchmarks/levels.json holds per graph and algorithm the origin and date of the trace, for BFS the counts of Walked,
and the iterations in at most POINTS rows, a list per column; the first three are differences of ``at``, ``iterations`` and
``what``, each as values with how often they follow. A row sums the iterations of one kind among some adjacent ones:

    at              level (BFS) or number of the iteration (SSSP), from 0, of the first of them
    iterations      number of iterations
    what            the place of their kind in kepler_traverse/cuda/kernel_trace.py
    microseconds    from the beginning of an iteration to that of the next one, summed
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kepler_traverse.cuda.kernel_trace import ITERATIONS
from scripts.bench import svg_plots
from scripts.measure.environment import about
from scripts.measure.work import Inputs
from scripts.pages import read_record, write_record

DOCS = Path(__file__).resolve().parents[2] / "docs"
LEVELS = DOCS / "benchmarks" / "levels.json"
POINTS = 400
ALGORITHMS = {
    "bfs": ("level", "BFS: µs per iteration"),
    "sssp": ("iteration", "SSSP: µs per iteration"),
}


class Malformed(Exception):
    """The traces do not have the format that the plots need."""


class Row(NamedTuple):
    """Iterations of one kind among some adjacent ones."""

    at: int
    iterations: int
    what: str
    microseconds: float


class Walked(NamedTuple):
    """What a BFS did: levels, vertices reached, and edges out of those that pushed.

    A cluster's levels do not count their edges, so ``uncounted`` has their vertices; ``pulled`` those that pulling found.
    """

    levels: int
    reached: int
    pushed_edges: int
    uncounted: int
    pulled: int


# --- thinning ----------------------------------------------------------------------------------------------------------


def thinned(iterations: list[dict], algorithm: str, most: int = POINTS) -> list[Row]:
    """Return the iterations of a trace in at most ``most`` rows, summed by kind over the narrowest sufficient windows."""
    if not iterations or iterations[-1]["what"] != "end":
        raise Malformed(
            "a trace does not have the end of its search: its capacity was too small for all iterations"
        )
    single = [
        Row(
            iteration["level"] if algorithm == "bfs" else number,
            1,
            iteration["what"],
            (following["nanoseconds"] - iteration["nanoseconds"]) / 1e3,
        )
        for number, (iteration, following) in enumerate(itertools.pairwise(iterations))
    ]
    rows = single
    width = 1
    while len(rows) > most:
        width += 1
        rows = [row for i in range(0, len(single), width) for row in by_kind(single[i : i + width])]
    return [row._replace(microseconds=round(row.microseconds, 3)) for row in rows]


def by_kind(window: list[Row]) -> list[Row]:
    found = {}
    for row in window:
        found.setdefault(row.what, []).append(row)
    return [
        Row(rows[0].at, len(rows), what, sum(row.microseconds for row in rows))
        for what, rows in found.items()
    ]


def walked(iterations: list[dict]) -> Walked:
    """Sum the iterations that visit edges."""
    walks = [
        iteration
        for iteration in iterations
        if iteration["what"] in ("cluster level", "push", "pull")
    ]
    pulling = {iteration["level"] for iteration in walks if iteration["what"] == "pull"}
    return Walked(
        levels=len(walks),
        reached=sum(iteration["vertices"] for iteration in walks),
        pushed_edges=sum(iteration["edges"] for iteration in walks if iteration["what"] == "push"),
        uncounted=sum(
            iteration["vertices"] for iteration in walks if iteration["what"] == "cluster level"
        ),
        pulled=sum(
            iteration["vertices"] for iteration in walks if iteration["level"] - 1 in pulling
        ),
    )


def with_traces(levels: dict, about: dict, traces: dict[tuple[str, str], list[dict]]) -> dict:
    """``levels`` with traces by graph and algorithm in place of older ones; ``about`` has date, commit and GPU."""
    merged = {graph: dict(found) for graph, found in levels.items()}
    for (graph, algorithm), iterations in traces.items():
        trace = about | {"rows": thinned(iterations, algorithm)}
        if algorithm == "bfs":
            trace["walked"] = walked(iterations)
        merged.setdefault(graph, {})[algorithm] = trace
    return merged


def write_levels(levels: dict) -> None:
    content = {}
    for graph, found in levels.items():
        for algorithm, trace in sorted(found.items()):
            at, iterations, what, microseconds = zip(*trace["rows"], strict=True)
            steps = np.diff(at, prepend=0).tolist()
            kinds = map(ITERATIONS.index, what)
            columns = {"rows": [*map(runs_of, (steps, iterations, kinds)), list(microseconds)]}
            if "walked" in trace:
                columns["walked"] = trace["walked"]._asdict()
            content.setdefault(graph, {})[algorithm] = trace | columns
    write_record(LEVELS, content)


def runs_of(values: Iterable[int]) -> list[int]:
    """Return each value and how often it follows, one after the other."""
    runs = ((value, sum(1 for _ in same)) for value, same in itertools.groupby(values))
    return [each for run in runs for each in run]


def values_of(runs: list[int]) -> np.ndarray:
    return np.repeat(runs[::2], runs[1::2])


def read_levels() -> dict:
    """``{graph: {algorithm: {date, commit, gpu, rows}}}`` with rows as ``Row``, of BFS ``walked`` as ``Walked``."""
    levels = read_record(LEVELS, {})
    for found in levels.values():
        for trace in found.values():
            steps, iterations, kinds = (values_of(runs).tolist() for runs in trace["rows"][:3])
            what = (ITERATIONS[kind] for kind in kinds)
            columns = np.cumsum(steps).tolist(), iterations, what, trace["rows"][3]
            trace["rows"] = [Row(*row) for row in zip(*columns, strict=True)]
            if "walked" in trace:
                trace["walked"] = Walked(**trace["walked"])
    return levels


# --- plots -------------------------------------------------------------------------------------------------------------


def plot(graph: str, found: dict) -> str:
    """Plot the time per iteration over the level or iteration, colored by kind; BFS above, SSSP below."""
    panels = []
    for algorithm in (name for name in ALGORITHMS if name in found):
        kinds = {}
        for row in found[algorithm]["rows"]:
            if row.microseconds > 0:
                kinds.setdefault(row.what, []).append((row.at, row.microseconds / row.iterations))
        panels.append((*ALGORITHMS[algorithm], kinds))
    return svg_plots.clouds(graph, panels, ITERATIONS)


def slug(graph: str) -> str:
    return "levels-" + graph.lower().replace(" ", "-")


def main(arguments: list[str] | None = None) -> int:
    from scripts.bench import gpu

    parser = argparse.ArgumentParser(description="Trace searches on a GPU.")
    parser.add_argument("graphs", type=Path, help="folder of the files of real graphs")
    parser.add_argument("--only", nargs="+", choices=gpu.GRAPHS, default=list(gpu.GRAPHS))
    options = parser.parse_args(arguments)
    facts = about(())
    made = {"date": facts["date"], "commit": facts["commit"], "gpu": facts["machine"]["gpu"]}
    for graph in options.only:
        case = gpu.case_of(Inputs(graphs=options.graphs, device="cuda"), graph)
        traces = {(graph, algorithm): gpu.traced(case, algorithm) for algorithm in ALGORITHMS}
        write_levels(with_traces(read_levels(), made, traces))
    return 0


if __name__ == "__main__":
    sys.exit(main())
