"""The part "systems" of docs/papers.md: the papers' comparison tables over the rows of the catalogues."""

from __future__ import annotations

import statistics

from scripts import papers_plots
from scripts.papers_comparisons import COMPARISONS, OURS, Comparison
from scripts.papers_settings import rows_for
from scripts.papers_tables import factor, faster_way, ratio, table

EXPLAINED = """Every row of the catalogues for one source, also those that no other section has, on graphs of the kinds that
the papers took; each table names the paper's graph that ours stands for, which is of the same kind and not the same graph.
A cell is the median in ms, in brackets the ratio to the faster of the peer's ways on the same device, above 1 where we are
faster, and the knob where one was swept. The best of a graph is bold. All rows return predecessors, the smallest there are;
many of the papers' systems gave distances alone. *left out*: a look at the first levels tells of more than the limit for a
traversal; *over* the limit: it took so many ms, once; *-*: not measured, or the row does not take such a graph.
"""
TITLES = {"bfs": "Every BFS row on every graph", "sssp": "Every SSSP row on every graph"}
DEVICES = ("cuda", "cpu")


def section(measured: dict) -> tuple[list[str], dict[str, str]]:
    """Markdown of all tables, and the plots by name; nothing where nothing has been measured."""
    parts, plots = [], {}
    for comparison in COMPARISONS:
        blocks = blocks_of(measured, comparison.algorithm, comparison.graphs)
        rows = comparison.rows([row for device in DEVICES for row in rows_for(comparison.algorithm, device)])
        rows = [(column, row) for column, row in rows if any(row.device == device for _, device in blocks)]
        if all(column == OURS for column, _ in rows):
            continue
        tables = [thread_table(comparison, rows, blocks)] if comparison.threads else []
        tables.append(comparison_table(comparison, rows, blocks))
        parts += [f"### {comparison.title}\n", comparison.said + "\n", *(text for text in tables if text)]
        told = left_out(blocks, {(row.name, row.device) for _, row in rows})
        parts += ["\n".join(told) + "\n"] if told else []
        drawn = plot(comparison, rows, blocks)
        if drawn:
            plots[f"systems-{comparison.key}.svg"] = drawn
            parts.append(f"![{comparison.title}](papers/systems-{comparison.key}.svg)\n")
    for algorithm, title in TITLES.items():
        blocks = blocks_of(measured, algorithm)
        if blocks:
            parts += [f"### {title}\n", "Milliseconds:\n", everything(algorithm, blocks)]
    return ([EXPLAINED, *parts] if parts else []), plots


def blocks_of(measured: dict, algorithm: str, graphs=None) -> dict[tuple[str, str], dict]:
    """The blocks of the part by graph and device, in the order of the graphs given, or of the measurements."""
    found = {
        (block["graph"], measured["runs"][block["run"]]["device"]): block
        for block in measured["blocks"]
        if (block["part"], block["algorithm"]) == ("systems", algorithm)
    }
    graphs = dict.fromkeys(graph for graph, _ in found) if graphs is None else graphs
    return {(graph, device): found[graph, device] for graph in graphs for device in DEVICES if (graph, device) in found}


def graphs_in(blocks: dict) -> list[str]:
    return list(dict.fromkeys(graph for graph, _ in blocks))


def milliseconds(seconds: list[float]) -> str:
    value = 1e3 * statistics.median(seconds)
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def rows_of(block: dict | None, strategy: str) -> list[dict]:
    """What was measured of a strategy on all threads: with its own knobs, and those swept."""
    rows = [] if block is None else block["rows"]
    return [row for row in rows if row["strategy"] == strategy and row["group"] != "threads"]


def fastest(block: dict | None, strategy: str) -> dict | None:
    timed = [row for row in rows_of(block, strategy) if "seconds" in row]
    return min(timed, key=lambda row: statistics.median(row["seconds"]), default=None)


def cell(block: dict | None, strategy: str, with_ratio: bool = True) -> str:
    """The fastest setting of a row on a graph, or why there is none."""
    row = fastest(block, strategy)
    if row is None:
        others = rows_of(block, strategy)
        if not others:
            return "-"
        if "why" in others[0]:
            return "left out"
        return f"over: {1e3 * others[0]['took']:,.0f}" if "took" in others[0] else "failed"
    words = milliseconds(row["seconds"]) + ("\\*" if row["cut"] else "")
    notes = [factor(ratio(faster_way(block), row["seconds"]))] if with_ratio and block["peer"] else []
    notes += [row["label"].partition(", ")[2]] if row["group"] == "swept" else []
    return f"{words} ({'; '.join(notes)})" if notes else words


def best_of(graph: str, rows: list, blocks: dict) -> tuple[str, str] | None:
    """Name and device of the fastest row of a graph."""
    timed = {
        (row.name, row.device): statistics.median(found["seconds"])
        for _, row in rows
        if (found := fastest(blocks.get((graph, row.device)), row.name))
    }
    return min(timed, key=timed.get, default=None)


def comparison_table(comparison: Comparison, rows: list, blocks: dict) -> str:
    """Systems down, graphs across; the peers first."""
    graphs = graphs_in(blocks)
    lines = [["*stands for*", "", "", "", *(comparison.graphs[graph] for graph in graphs)]]
    for device in DEVICES:
        names = {way.partition(" ")[0] for (_, on), block in blocks.items() if on == device for way in block["peer"]}
        for name in sorted(names) if comparison.device in ("", device) else ():
            peers = [blocks.get((graph, device), {"peer": {}}) for graph in graphs]
            times = [milliseconds(faster_way(block)) if block["peer"] else "-" for block in peers]
            lines.append(["peer", name, "-", device, *times])
    best = {graph: best_of(graph, rows, blocks) for graph in graphs}
    for column, row in rows:
        cells = [cell(blocks.get((graph, row.device)), row.name) for graph in graphs]
        marked = [
            f"**{words}**" if best[graph] == (row.name, row.device) else words
            for graph, words in zip(graphs, cells, strict=True)
        ]
        lines.append([column, f"`{row.name}`", ", ".join(row.also) or "-", row.device, *marked])
    return table(["in the paper", "strategy", "published as", "device", *graphs], lines)


def thread_table(comparison: Comparison, rows: list, blocks: dict) -> str:
    """Graphs and numbers of threads down; time, speedup and efficiency of each row across. Empty without measurements."""
    names = [row.name for _, row in rows]
    lines = []
    for graph in comparison.graphs:
        found = {
            (row["strategy"], int(row["label"].rpartition(" ")[2])): statistics.median(row["seconds"])
            for row in blocks.get((graph, "cpu"), {"rows": []})["rows"]
            if row["group"] == "threads" and "seconds" in row
        }
        for threads in sorted({number for _, number in found}):
            cells = []
            for name in names:
                if (name, threads) not in found or (name, 1) not in found:
                    cells += ["-"] * 3
                    continue
                speedup = found[name, 1] / found[name, threads]
                cells += [milliseconds([found[name, threads]]), f"{speedup:.2f}", f"{speedup / threads:.2f}"]
            lines.append([graph, str(threads), *cells])
    header = [part for name in names for part in (f"`{name}` ms", "speedup", "efficiency")]
    return table(["graph", "threads", *header], lines) if lines else ""


def left_out(blocks: dict, wanted: set) -> list[str]:
    """One line for each row that was left out somewhere: where, and what was estimated."""
    found = {}
    for (graph, device), block in blocks.items():
        for row in block["rows"]:
            if "why" in row and row["group"] == "rows" and (row["strategy"], device) in wanted:
                found.setdefault((row["strategy"], device), []).append(f"{graph} ({row['why']})")
    return [f"- Left out: `{name}` ({device}) on {', '.join(places)}." for (name, device), places in found.items()]


def plot(comparison: Comparison, rows: list, blocks: dict) -> str | None:
    """Times of all rows of a table, a line a graph; None where there are none."""
    points = {}
    for graph in graphs_in(blocks):
        found = {f"{row.name} ({row.device})": fastest(blocks.get((graph, row.device)), row.name) for _, row in rows}
        points[graph] = {label: 1e3 * statistics.median(row["seconds"]) for label, row in found.items() if row}
    points = {graph: values for graph, values in points.items() if values}
    return papers_plots.dots(comparison.title, "ms a traversal, fastest setting", points) if points else None


def everything(algorithm: str, blocks: dict) -> str:
    """All rows of a catalogue, on all graphs of the part."""
    graphs = graphs_in(blocks)
    names = {
        (row["strategy"], device): None
        for wanted in DEVICES
        for (_, device), block in blocks.items()
        if device == wanted
        for row in block["rows"]
    }
    also = {(row.name, row.device): row.also for device in DEVICES for row in rows_for(algorithm, device)}
    lines = [
        [f"`{name}`", ", ".join(also.get((name, device), ())) or "-", device]
        + [cell(blocks.get((graph, device)), name, with_ratio=False) for graph in graphs]
        for name, device in names
    ]
    return table(["strategy", "published as", "device", *graphs], lines)
