"""A lower bound on the time of a search, computed from a trace and from measurements of the machine.

docs/benchmarks/limits.json holds the measurements of the machine:

    call_us         microseconds of a launch that ends with four bytes copied back
    latencies_us    microseconds of each access in the chain of one level
    bytes_per_us    bandwidth of a device copy
    gathers_per_us  pairs of a table's MiB and the gathers of 4 bytes per microsecond at random places of it
    targets_ms      target milliseconds of searches from one source
"""

from __future__ import annotations

from pathlib import Path

from scripts.bench import level_traces, svg_plots
from scripts.bench.level_traces import Malformed, Walked
from scripts.measure.cells import per_source
from scripts.measure.record import Record, Row
from scripts.measure.work import OURS
from scripts.pages import filled, read_record

DOCS = Path(__file__).resolve().parents[2] / "docs"
LIMITS = DOCS / "benchmarks" / "limits.json"
PLOTS = "plots"  # the folder next to the page
BYTES = {"hops": 16, "pushed": 4, "pulled": 32, "relaxed": 8}


def milliseconds_of(rows: list) -> float:
    return sum(row.microseconds for row in rows) / 1e3


def rate_of(limits: dict, table_bytes: float) -> float:
    """Return gathers per microsecond of the largest measured table that is no larger, which keeps the bound a lower one."""
    fits = [
        rate for mebibytes, rate in limits["gathers_per_us"] if mebibytes * 2**20 <= table_bytes
    ]
    if fits:
        return fits[-1]
    return limits["gathers_per_us"][0][1]


def floor_ms(limits: dict, search: Walked, algorithm: str, vertices: int, edges: int) -> float:
    """Return the lower bound in milliseconds of a BFS, or of an SSSP from the same source, on a graph of this size."""
    if algorithm == "bfs":
        pushed = search.pushed_edges + search.uncounted * edges / vertices
        n_bytes = BYTES["pushed"] * pushed + BYTES["pulled"] * search.pulled
        gathers = pushed + search.pulled
        table = vertices / 8
    else:
        gathers = edges * search.reached / vertices  # those of reached vertices
        n_bytes = BYTES["relaxed"] * gathers
        table = 4 * vertices
    chain = sum(limits["latencies_us"].values())
    n_bytes += BYTES["hops"] * search.reached
    work = max(n_bytes / limits["bytes_per_us"], gathers / rate_of(limits, table))
    return (limits["call_us"] + search.levels * chain + work) / 1e3


def rows_of(
    limits: dict, levels: dict, measured: list[Row]
) -> dict[tuple[str, str], dict[str, float]]:
    """Return per (graph, algorithm) of the searches from one source: lower bound and trace, if any, target, median."""
    found = {}
    sizes = {row["graph"]: (row["vertices"], row["edges"]) for row in measured if "edges" in row}
    for median in measured:
        graph = median["graph"]
        algorithm = median["work"].partition(",")[0]
        row = {}
        traced = levels.get(graph, {})
        if "bfs" in traced:
            if graph not in sizes:
                raise Malformed(f"{graph} is traced, but no measurement has its size")
            search = traced["bfs"]["walked"]
            floor = floor_ms(limits, search, algorithm, *sizes[graph])
            row |= {"levels": search.levels, "floor": floor}
        if algorithm in traced:
            row["in the launch"] = milliseconds_of(traced[algorithm]["rows"])
        target = limits["targets_ms"][algorithm].get(graph)
        if target:
            row |= {"target": target}
        found[graph, algorithm] = row | {"ours": per_source(median)}
    return found


def shown(row: dict[str, float]) -> dict[str, float]:
    return {name: row[name] for name in ("floor", "in the launch", "target", "ours") if name in row}


def page(record: Record) -> tuple[str, dict[str, str]]:
    """The text of docs/benchmarks/levels.md, and its plots by path from there."""
    limits = read_record(LIMITS)
    levels = level_traces.read_levels()
    ours = [row for row in record.rows("gpu") if row["peer"] == OURS and row["size"] == 1]
    rows = rows_of(limits, levels, ours)
    plots = {
        f"{PLOTS}/{level_traces.slug(graph)}.svg": level_traces.plot(graph, levels[graph])
        for graph in levels
    }
    if rows:
        drawn = {f"{graph}, {algorithm}": shown(row) for (graph, algorithm), row in rows.items()}
        plots[f"{PLOTS}/floors.svg"] = svg_plots.dots(
            "Our times and the lower bounds", "ms", drawn, None
        )
    given = {"limits": limits, "levels": levels, "rows": rows, "points": level_traces.POINTS}
    return filled("benchmarks/levels.md", {}, slug=level_traces.slug, **given, **BYTES), plots
