"""The record of the suite ``papers``: docs/published/papers.json and papers_systems.json.

docs/published/papers.json holds

    reading   object: Markdown: a summary, the conclusions of each paper's page, and a text for each part
    runs      list of objects: date, commit, command, machine, versions, device, repeats, seed, failures (messages)
    graphs    object: graph to its sizes, its origin, and the knobs that rules chose where they differ from the published
    blocks    list of objects: graph, algorithm, part, run (position in runs), peer (way to seconds of each source), rows;
              a row has group, label, strategy, and seconds, rounds, cut; or counters, rounds, out_edges, reached,
              sources; or message; or why (it was left out); or took, limit (its one traversal took longer than that)

The blocks of the part "systems" are in docs/published/papers_systems.json, one for each device. A block is measured in one
run, the baseline with it. A newer run replaces the blocks that it measured again.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path

from scripts.papers.experiments import GRAPHS, PARTS

RUN = ("date", "commit", "command", "machine", "versions", "device", "repeats", "seed")
DEGREES = ("degree_mean", "degree_deviation", "degree_max")
GRAPH = ("origin", "vertices", "edges", "directed", *DEGREES)
ROW = {
    "time": ("group", "label", "strategy", "seconds", "rounds", "cut"),
    "counters": ("group", "label", "strategy", "counters", "rounds", "out_edges", "reached", "sources"),
    "left": ("group", "label", "strategy", "why"),
    "over": ("group", "label", "strategy", "took", "limit"),
    "error": ("group", "label", "strategy", "message"),
}
KINDS = {
    "run": RUN,
    "graph": ("graph", *GRAPH),
    "peer": ("graph", "algorithm", "peer", "way", "seconds"),
    "time": ("graph", "algorithm", "part", *ROW["time"]),
    "counters": ("graph", "algorithm", "part", *ROW["counters"]),
    "left": ("graph", "algorithm", "part", *ROW["left"]),
    "over": ("graph", "algorithm", "part", *ROW["over"]),
    "error": ("graph", "message"),
    "rule": ("graph", "strategy", "knobs"),
    "skipped": ("graph", "why"),
    "end": ("graph",),
}
BLOCK = ("graph", "algorithm", "part", "run", "peer", "rows")
# Conclusions from the tables: a summary, the conclusions of each paper's page, and a text for each part.
PAPERS = ("bfs-4k", "h-bf", "uiuc-bfs", "springer", "sevilmis")
READING = ("summary", *PAPERS, *PARTS)


class Malformed(Exception):
    """The measurements do not have the format that the page needs."""


def demand(what: str, record: dict, keys) -> None:
    lacking = [repr(key) for key in keys if key not in record] if isinstance(record, dict) else ["every key"]
    if lacking:
        raise Malformed(f"{what} lacks {', '.join(lacking)}")


def systems_file_of(path: Path) -> Path:
    """The file of the part "systems", which would make one file too long."""
    return path.with_name(f"{path.stem}_systems{path.suffix}")


def read_measured(path: Path) -> dict:
    """Return docs/published/papers.json and papers_systems.json; raises if one is malformed."""
    measured = parsed(path)
    check_measured(measured)
    systems_file = systems_file_of(path)
    if systems_file.exists():
        systems = parsed(systems_file)
        demand(systems_file.name, systems, ("blocks",))
        measured = measured | {"blocks": sorted([*measured["blocks"], *systems["blocks"]], key=place)}
        check_measured(measured)
    return measured


def parsed(path: Path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise Malformed(f"{path.name} is no JSON: {error}") from None


def kind_of(row: dict, part: str) -> str:
    """Return the kind of line that a row came from."""
    kinds = {"message": "error", "why": "left", "took": "over"}
    return next((kind for key, kind in kinds.items() if key in row), "counters" if part == "counters" else "time")


def check_measured(measured: dict) -> None:
    demand("docs/published/papers.json", measured, ("reading", "runs", "graphs", "blocks"))
    demand("its reading", measured["reading"], READING)
    for run in measured["runs"]:
        demand("a run", run, (*RUN, "failures"))
    for name, graph in measured["graphs"].items():
        demand(f"graph {name}", graph, (*GRAPH, "rules"))
    for block in measured["blocks"]:
        demand("a block", block, BLOCK)
        what = f"{block['part']} of {block['algorithm']} on {block['graph']}"
        if block["graph"] not in measured["graphs"] or not 0 <= block["run"] < len(measured["runs"]):
            raise Malformed(f"{what} names an unknown graph or run")
        if not block["peer"] and block["part"] != "systems":
            raise Malformed(f"{what} has no times of the baseline, so it has no ratio")
        for row in block["rows"]:
            demand(f"a row of {what}", row, ROW[kind_of(row, block["part"])])


def lines_of(path: Path) -> list[dict]:
    """Return the lines of a run of python -m scripts.bench --suite papers; raises if one is malformed."""
    found = []
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        what = f"{path}, line {number}"
        try:
            line = json.loads(text)
        except ValueError as error:
            raise Malformed(f"{what} is no JSON ({error}); drop a last line that was cut off") from None
        if not isinstance(line, dict) or line.get("kind") not in KINDS:
            raise Malformed(f"{what} is none that python -m scripts.bench --suite papers writes")
        demand(what, line, KINDS[line["kind"]])
        found.append(line)
    if not found or found[0]["kind"] != "run":
        raise Malformed(f"{path} does not begin with the line that says where and when it was measured")
    return found


def blocks_of(lines: list[dict], run: int) -> list[dict]:
    blocks, baselines = {}, {}
    for line in lines:
        if line["kind"] == "peer":
            baselines.setdefault((line["graph"], line["algorithm"]), {})[f"{line['peer']} {line['way']}"] = line["seconds"]
        elif line["kind"] in ROW and "strategy" in line:
            key = line["graph"], line["algorithm"], line["part"]
            row = {name: line[name] for name in ROW[line["kind"]]}
            if line["kind"] == "time":
                row["rounds"] = statistics.median(row["rounds"])
            blocks.setdefault(key, []).append(row)
    return [dict(zip(BLOCK, (*key, run, baselines.get(key[:2], {}), rows), strict=True)) for key, rows in blocks.items()]


def merged(measured: dict, lines: list[dict]) -> dict:
    """Return the measurements with a run added; runs without remaining measurements are dropped."""
    failures = [
        f"{line['graph']}{' ' + line['algorithm'] if 'algorithm' in line else ''}: {line['message']}"
        for line in lines
        if line["kind"] == "error" and "strategy" not in line
    ]
    runs = [*measured["runs"], {name: lines[0][name] for name in RUN} | {"failures": failures}]
    new = blocks_of(lines, len(runs) - 1)
    again = {identity(block, runs) for block in new}
    kept = [block for block in measured["blocks"] if identity(block, runs) not in again]
    graphs = measured["graphs"] | {
        line["graph"]: {name: line[name] for name in GRAPH} | {"rules": rules_for(measured, line["graph"])}
        for line in lines
        if line["kind"] == "graph"
    }
    for line in lines:
        if line["kind"] == "rule":
            about = graphs[line["graph"]]
            graphs[line["graph"]] = about | {"rules": about["rules"] | {line["strategy"]: line["knobs"]}}
    used = sorted({block["run"] for block in kept + new} | {len(runs) - 1})
    blocks = [block | {"run": used.index(block["run"])} for block in kept + new]
    return measured | {"runs": [runs[i] for i in used], "graphs": graphs, "blocks": sorted(blocks, key=place)}


def identity(block: dict, runs: list[dict]) -> tuple:
    """Return the key that a newer block shares with the one that it replaces."""
    device = runs[block["run"]]["device"] if block["part"] == "systems" else ""
    return block["graph"], block["algorithm"], block["part"], device


def rules_for(measured: dict, graph: str) -> dict:
    """Return the known choices of the rules for a graph; a newer run replaces them."""
    return measured["graphs"].get(graph, {}).get("rules", {})


def place(block: dict) -> tuple:
    """Graphs in the order of the suite, then by algorithm and part."""
    names = [graph.name for graph in GRAPHS]
    order = names.index(block["graph"]) if block["graph"] in names else len(names)
    return order, block["graph"], block["algorithm"], PARTS.index(block["part"])


def texts_of(measured: dict, path: Path) -> dict[Path, str]:
    """Return the texts of docs/published/papers.json and, if it is not empty, of papers_systems.json."""
    systems = [block for block in measured["blocks"] if block["part"] == "systems"]
    others = [block for block in measured["blocks"] if block["part"] != "systems"]
    texts = {path: as_text(measured | {"blocks": others})}
    return texts | ({systems_file_of(path): as_text({"blocks": systems})} if systems else {})


def as_text(measured: dict) -> str:
    """Return JSON with one line per row, so that diffs are readable."""
    head = {key: value for key, value in measured.items() if key != "blocks"}
    blocks = []
    for block in measured["blocks"]:
        about = json.dumps({key: value for key, value in block.items() if key != "rows"})
        rows = ",\n".join(f"    {json.dumps(row)}" for row in block["rows"])
        blocks.append(f'  {about[:-1]}, "rows": [\n{rows}\n  ]}}')
    joined = ",\n".join(blocks)
    before = f"{json.dumps(head, indent=2)[:-2]},\n" if head else "{\n"
    return f'{before}  "blocks": [\n{joined}\n  ]\n}}\n'
