"""Traces of the iterations of a search in one launch: docs/benchmarks/levels.json, and its plots.

python -m scripts.bench.level_traces add out/gpu.json     add the traces of python -m scripts.bench --suite gpu --part
trace: those
                                                   in out/gpu.trace.json, made when and where out/gpu.json says
python -m scripts.bench.performance_page write                then draws

docs/benchmarks/levels.json holds per graph and algorithm the origin and date of the trace, for BFS the counts of Walked,
and the iterations in at most POINTS rows. A row sums the iterations of one kind among some adjacent ones:

    at              level (BFS) or number of the iteration (SSSP), from 0, of the first of them
    iterations      number of iterations
    what            their kind; see kepler_traverse/cuda/kernel_trace.py
    microseconds    from the beginning of an iteration to that of the next one, summed
    vertices        vertices of their frontiers, summed
    edges           edges out of these; 0 if the kernel does not count them
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from pathlib import Path
from typing import NamedTuple

from kepler_traverse.cuda.kernel_trace import ITERATIONS
from scripts.bench import svg_plots

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
    vertices: int
    edges: int


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
            iteration["vertices"],
            iteration["edges"],
        )
        for number, (iteration, following) in enumerate(itertools.pairwise(iterations))
    ]
    rows, width = single, 1
    while len(rows) > most:
        width += 1
        rows = [row for i in range(0, len(single), width) for row in by_kind(single[i : i + width])]
    return [row._replace(microseconds=round(row.microseconds, 3)) for row in rows]


def by_kind(window: list[Row]) -> list[Row]:
    found = {}
    for row in window:
        found.setdefault(row.what, []).append(row)
    return [
        Row(rows[0].at, len(rows), what, *(sum(row[i] for row in rows) for i in (3, 4, 5)))
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


def with_traces(levels: dict, run: dict, traces: dict) -> dict:
    """``levels`` with the traces of a run in place of older ones of the same graphs and algorithms."""
    about = {"date": run["date"], "commit": run["commit"], "gpu": run["machine"]["gpu"]}
    merged = {graph: dict(found) for graph, found in levels.items()}
    for name, iterations in traces.items():
        graph, _, algorithm = name.rpartition(", ")
        if algorithm not in ALGORITHMS:
            raise Malformed(
                f"the trace {name!r} is of no algorithm that is known: expected 'GRAPH, bfs' or 'GRAPH, sssp'"
            )
        found = about | ({"walked": walked(iterations)._asdict()} if algorithm == "bfs" else {})
        merged.setdefault(graph, {})[algorithm] = found | {"rows": thinned(iterations, algorithm)}
    return merged


def as_text(levels: dict) -> str:
    """Return JSON with one line per trace, which is small and gives readable diffs."""
    lines = []
    for graph, found in levels.items():
        inner = ",\n".join(
            f"  {json.dumps(name)}: {json.dumps(found[name], separators=(',', ':'))}"
            for name in sorted(found)
        )
        lines.append(f" {json.dumps(graph)}: {{\n{inner}\n }}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def read_levels() -> dict:
    """``{graph: {algorithm: {date, commit, gpu, rows}}}`` with rows as ``Row``, of BFS ``walked`` as ``Walked``."""
    levels = json.loads(LEVELS.read_text(encoding="utf-8"))
    for found in levels.values():
        for trace in found.values():
            trace["rows"] = [Row(*row) for row in trace["rows"]]
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
    parser = argparse.ArgumentParser(
        description="Traces to docs/benchmarks/levels.json.",
        epilog="The head of this file describes it.",
    )
    parser.add_argument("action", choices=["add"])
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        help="output of python -m scripts.bench --suite gpu; the traces are next to it",
    )
    options = parser.parse_args(arguments)
    try:
        levels = json.loads(LEVELS.read_text(encoding="utf-8")) if LEVELS.exists() else {}
        for file in options.files:
            run = json.loads(file.read_text(encoding="utf-8"))
            traces = json.loads(file.with_suffix(".trace.json").read_text(encoding="utf-8"))
            levels = with_traces(levels, run, traces)
    except (Malformed, OSError) as error:
        print(f"level_times: {error}", file=sys.stderr)
        return 2
    LEVELS.write_text(as_text(levels), encoding="utf-8")
    print(f"{LEVELS}: now run python -m scripts.bench.performance_page write")
    return 0


if __name__ == "__main__":
    sys.exit(main())
