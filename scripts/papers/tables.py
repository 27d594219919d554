"""Ratios and tables of docs/published."""

from __future__ import annotations

import statistics


def faster_way(block: dict) -> list[float]:
    return min(block["peer"].values(), key=statistics.median)


def ratio(baseline: list[float], ours: list[float]) -> float:
    """Return the median over the sources that both have."""
    return statistics.median(theirs / mine for theirs, mine in zip(baseline, ours, strict=False))


def ratios(block: dict, group: str) -> dict[str, float]:
    baseline = faster_way(block)
    return {
        row["label"]: ratio(baseline, row["seconds"]) for row in block["rows"] if row["group"] == group and "seconds" in row
    }


def blocks_for(measured: dict, algorithm: str, part: str) -> list[dict]:
    return [block for block in measured["blocks"] if (block["algorithm"], block["part"]) == (algorithm, part)]


def groups_in(blocks: list[dict]) -> list[str]:
    return list(dict.fromkeys(row["group"] for block in blocks for row in block["rows"]))


def milliseconds(seconds: list[float]) -> str:
    return f"{1e3 * statistics.median(seconds):.3g}"


def factor(value: float) -> str:
    return f"{value:.2f}" if value < 99.95 else f"{value:.0f}"


def table(header: list[str], rows: list[list[str]]) -> str:
    edge = "|---|" + "--:|" * (len(header) - 1)
    return "\n".join(["| " + " | ".join(header) + " |", edge, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def cell(row: dict | None, baseline: list[float], best: float) -> str:
    if row is None:
        return "-"
    if "message" in row:
        return "failed"
    value = ratio(baseline, row["seconds"])
    words = factor(value) + ("\\*" if row["cut"] else "")
    return f"**{words}**" if value == best else words


def ratio_table(blocks: list[dict], group: str) -> str:
    """Return a table with one row per graph and one column per setting."""
    labels = list(dict.fromkeys(row["label"] for block in blocks for row in block["rows"] if row["group"] == group))
    rows = []
    for block in blocks:
        found = {row["label"]: row for row in block["rows"] if row["group"] == group}
        if found:
            baseline = faster_way(block)
            best = max(ratios(block, group).values(), default=0.0)
            rows.append(
                [block["graph"], milliseconds(baseline), *(cell(found.get(label), baseline, best) for label in labels)]
            )
    return table(["graph", "baseline ms", *labels], rows)


def peer_table(blocks: list[dict]) -> str:
    """Return a table of each strategy against each variant of the baseline."""
    ways = list(dict.fromkeys(way for block in blocks for way in block["peer"]))
    header = ["graph", "strategy", "levels or rounds", "our ms", *(part for way in ways for part in (f"{way} ms", "ratio"))]
    rows = []
    for block in blocks:
        for row in block["rows"]:
            if "message" in row:
                rows.append([block["graph"], row["strategy"], "-", "failed", *(["-"] * 2 * len(ways))])
                continue
            cells = [block["graph"], row["strategy"], f"{row['rounds']:g}", milliseconds(row["seconds"])]
            for way in ways:
                baseline = block["peer"].get(way)
                cells += (
                    ["-", "-"] if baseline is None else [milliseconds(baseline), factor(ratio(baseline, row["seconds"]))]
                )
            rows.append(cells)
    return table(header, rows)


def relaxed(row: dict) -> dict[str, float]:
    """Return the edges read, divided by the edges out of reached vertices, which Dijkstra's algorithm reads once."""
    counters = row.get("counters", {})
    found = [counters[name] for name in ("relaxations", "edges") if name in counters]
    return {row["label"]: found[0] / row["out_edges"]} if found else {}


def counter_table(blocks: list[dict], graphs: dict[str, dict]) -> str:
    """Return the counters, summed over all sources of a row."""
    names = list(dict.fromkeys(name for block in blocks for row in block["rows"] for name in row.get("counters", {})))
    header = ["graph", "setting", "sources", "levels or rounds", *names, "edges out of reached", "looked at / those"]
    header += ["all edges every time / those", "reached", "duplicates left"]
    rows = []
    for block in blocks:
        for row in block["rows"]:
            if "message" in row:
                rows.append([block["graph"], row["label"], "failed", *(["-"] * (len(header) - 3))])
                continue
            counted = [f"{row['counters'][name]:,}" if name in row["counters"] else "-" for name in names]
            multiple = [factor(value) for value in relaxed(row).values()] or ["-"]
            without_frontier = row["rounds"] * graphs[block["graph"]]["edges"] / row["out_edges"]
            about = [block["graph"], row["label"], str(row["sources"]), f"{row['rounds']:,}"]
            rows.append(
                [*about, *counted, f"{row['out_edges']:,}", *multiple, factor(without_frontier), f"{row['reached']:,}"]
            )
            # The source of each search is reached and never queued.
            queued = row["counters"].get("queued")
            rows[-1].append("-" if queued is None else f"{queued - (row['reached'] - row['sources']):,}")
    return table(header, rows)
