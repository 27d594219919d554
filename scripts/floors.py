"""How long a search would take at least, computed from a trace and from what was measured of the machine.

docs/limits.json holds the machine's figures: microseconds of a launch that ends with four bytes read back, and of each
access in the chain that one level waits for; bytes a microsecond of a device copy; gathers of 4 bytes a microsecond at
random places of a table, with the table's MiB; and the milliseconds that rows of the table of medians were meant to reach.
"""

from __future__ import annotations

import json
from pathlib import Path

from scripts import level_times, papers_plots
from scripts.level_times import Malformed, Walked

DOCS = Path(__file__).resolve().parent.parent / "docs"
LIMITS = DOCS / "limits.json"
PLOTS = "performance"  # the folder beside the page
MEDIANS = ("graph", "algorithm", "ours", "without predecessors", "worst", "rounds", "cuGraph", "ratio")
HOPS_BYTES, PUSHED_BYTES, PULLED_BYTES, RELAXED_BYTES = 16, 4, 32, 8

EXPLAINED = """## Time a level, and the floor

**The floor** of a search is what it would take at least with the accesses and barriers that a search in one launch needs:

    floor = launch + levels x chain + max(bytes / bandwidth, gathers / rate)

- *launch*: {call:g} us, a launch and four bytes read back.
- *chain*: {chain:.3f} us, what the next level waits for where the frontier is as narrow as can be, each at its latency:
{latencies}
- *levels*: of the BFS that was traced; an SSSP from there has no fewer, as a shortest path has no fewer hops.
- *bytes*, of BFS: {hops} for each vertex reached (a row's begin, distance, predecessor), {pushed} for each edge that was
  pushed along, and a sector of {pulled} for each vertex that was found by pulling; of SSSP: {hops} for each vertex reached
  and {relaxed} for each edge out of those (target, weight). Bandwidth: {bandwidth:.2f} TB/s, that of a device copy.
- *gathers*: of BFS a bit of the vertex at the end of each of those edges, of SSSP the distance at the end of every edge.
  Rate: by the size of the table of bits or distances, that of the next smaller table measured ({sizes} MiB):
  {rates} billion a second.

The constants were measured on one {machine} on {measured} (`limits.json`). No row reaches its floor: a level of many
vertices waits for more than one chain, SSSP relaxes edges again and has more turns than there are levels, and memory is not
read at the bandwidth of a copy. *Ours* is the median of the table of medians below, the whole call; *in the launch* is one
search, traced: it may be from another source than the median, and takes the longer for being traced.
"""
TURNS_EXPLAINED = """**Time a level.** Each dot is a turn of the loop in one launch: a level of BFS or a part of one; of
SSSP some hops of relaxing, or a parting of the far pile. The last turn before another launch lasts until that one has begun.
Where a search has more than {points} turns, a dot is the mean over neighbouring ones of the same kind, of just so many that
no more than {points} dots are left. Made by `scripts/bench.py --suite gpu --part trace` and `scripts/level_times.py`:
{made}.
"""


def milliseconds_of(rows: list) -> float:
    return sum(row.microseconds for row in rows) / 1e3


def rate_of(limits: dict, table_bytes: float) -> float:
    """Gathers a microsecond: of the largest measured table that is no larger, so that the floor stays one."""
    fits = [rate for mebibytes, rate in limits["gathers_per_us"] if mebibytes * 2**20 <= table_bytes]
    return fits[-1] if fits else limits["gathers_per_us"][0][1]


def floor_ms(limits: dict, search: Walked, algorithm: str, vertices: int, edges: int) -> float:
    """Milliseconds that a BFS, or an SSSP from the same source, takes at least on a graph of that size."""
    if algorithm == "bfs":
        pushed = search.pushed_edges + search.uncounted * edges / vertices
        n_bytes = HOPS_BYTES * search.reached + PUSHED_BYTES * pushed + PULLED_BYTES * search.pulled
        gathers, table = pushed + search.pulled, vertices / 8
    else:
        gathers = edges * search.reached / vertices  # those of reached vertices
        n_bytes, table = HOPS_BYTES * search.reached + RELAXED_BYTES * gathers, 4 * vertices
    chain = sum(limits["latencies_us"].values())
    work = max(n_bytes / limits["bytes_per_us"], gathers / rate_of(limits, table))
    return (limits["call_us"] + search.levels * chain + work) / 1e3


def medians_of(runs: list[dict]) -> dict[tuple[str, str], float]:
    """Milliseconds of each (graph, algorithm) by the newest tables of medians in the notes of runs."""
    found, head = {}, "| " + " | ".join(MEDIANS) + " |"
    for run in runs:
        _, begins, after = run["notes"].partition(head)
        for line in after.strip().splitlines()[1:] if begins else ():
            cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
            if len(cells) != len(MEDIANS):
                break
            found[cells[0], cells[1]] = float(cells[2])
    return found


def sizes_of(runs: list[dict]) -> dict[str, tuple[int, int]]:
    """Vertices and stored edges of each graph."""
    return {row["graph"]: (row["vertices"], row["edges"]) for run in runs for row in run["traversals"]}


def rows_of(limits: dict, levels: dict, runs: list[dict]) -> dict[tuple[str, str], dict[str, float]]:
    """For each (graph, algorithm) of the tables of medians: floor and traced search where there is one, target, median."""
    sizes, found = sizes_of(runs), {}
    for (graph, algorithm), median in medians_of(runs).items():
        row, traced = {}, levels.get(graph, {})
        if "bfs" in traced:
            if graph not in sizes:
                raise Malformed(f"{graph} is traced, but no measurement tells its size")
            vertices, edges = sizes[graph]
            search = traced["bfs"]["walked"]
            row |= {"levels": search.levels, "floor": floor_ms(limits, search, algorithm, vertices, edges)}
        if algorithm in traced:
            row["in the launch"] = milliseconds_of(traced[algorithm]["rows"])
        target = limits["targets_ms"][algorithm].get(graph)
        found[graph, algorithm] = row | ({"target": target} if target else {}) | {"ours": median}
    return found


def table_of(rows: dict) -> str:
    lines = ["| graph | algorithm | levels | floor, ms | in the launch | target | ours | ours / floor |", "|---" * 8 + "|"]
    for (graph, algorithm), row in rows.items():
        times = [f"{row[key]:.3g}" if key in row else "-" for key in ("floor", "in the launch", "target", "ours")]
        ratio = f"{row['ours'] / row['floor']:.1f}" if "floor" in row else "-"
        lines.append(f"| {graph} | {algorithm} | {row.get('levels', '-')} | {' | '.join(times)} | {ratio} |")
    return "\n".join(lines) + "\n"


def section(runs: list[dict]) -> tuple[list[str], dict[str, str]]:
    """Parts of docs/performance.md, and its plots by path from there; nothing without measurements or traces."""
    limits, levels = json.loads(LIMITS.read_text(encoding="utf-8")), level_times.read_levels()
    rows = rows_of(limits, levels, runs)
    if not rows or not levels:
        return [], {}
    shown = {
        f"{graph}, {algorithm}": {name: row[name] for name in ("floor", "in the launch", "target", "ours") if name in row}
        for (graph, algorithm), row in rows.items()
    }
    plots = {f"{PLOTS}/floors.svg": papers_plots.dots("Ours against the floor", "ms", shown, None)}
    parts = [explained(limits), table_of(rows), f"![Ours against the floor]({PLOTS}/floors.svg)\n"]
    traces = [trace for found in levels.values() for trace in found.values()]
    made = sorted({f"{trace['date']}, commit `{trace['commit']}`, {trace['gpu']}" for trace in traces})
    parts.append(TURNS_EXPLAINED.format(points=level_times.POINTS, made="; ".join(made)))
    for graph, found in levels.items():
        name = level_times.slug(graph)
        plots[f"{PLOTS}/{name}.svg"] = level_times.plot(graph, found)
        parts.append(f"![Time a turn on {graph}]({PLOTS}/{name}.svg)\n")
    return parts, plots


def explained(limits: dict) -> str:
    sizes, rates = zip(*limits["gathers_per_us"], strict=True)
    return EXPLAINED.format(
        call=limits["call_us"],
        chain=sum(limits["latencies_us"].values()),
        latencies=";\n".join(f"  {name} {value:g}" for name, value in limits["latencies_us"].items()) + ".",
        hops=HOPS_BYTES,
        pushed=PUSHED_BYTES,
        pulled=PULLED_BYTES,
        relaxed=RELAXED_BYTES,
        bandwidth=limits["bytes_per_us"] / 1e6,
        sizes=", ".join(f"{size:,}" for size in sizes),
        rates=", ".join(f"{rate / 1e3:g}" for rate in rates),
        machine=limits["machine"],
        measured=limits["measured"],
    )
