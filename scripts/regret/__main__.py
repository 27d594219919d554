"""How far ``auto`` is from the best strategy: fit the estimates' constants to what was measured, and show the worst cells.

python -m scripts.measure run regret --graphs FOLDER   measures, on a machine that does nothing else
python -m scripts.regret fit out/measure.jsonl         writes kepler_traverse/auto/costs.json, unless it is better as it is
python -m scripts.regret numbers out/measure.jsonl     writes docs/regret.json
python -m scripts.regret page                          writes docs/regret.md from docs/regret.json
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kepler_traverse.auto.costs import load_costs
from scripts.pages import ROOT, filled, write_record
from scripts.regret import fit
from scripts.regret.fit import predicted, read, total

NUMBERS = ROOT / "docs" / "regret.json"
PAGE = ROOT / "docs" / "regret.md"
COSTS = ROOT / "kepler_traverse" / "auto" / "costs.json"
WORST = 20
MOST = 1.15
MEAN = 1.03  # targets: of each cell, and of the geometric mean
NOTHING: Mapping = {}
WITHIN = 2.0  # factor that estimates are to hold
SHORT = 0.005  # seconds up to which regret does not count
_CELL = ("device", "gpu_or_cpu", "graph", "work", "reverse")
_SHOWN = ("weights", "algorithm", "sources", "result")
# Of the worst cells in the record, as the page shows them.
_WORST = ("graph", *_SHOWN, "reverse", "auto", "taken", "best", "seconds", "regret", "corrected")


def machine_name(line: dict) -> str:
    where = line["machine"]
    if line["device"] == "cuda" and where["gpu"]:
        return where["gpu"]
    return f"{where['cpu']}, {where['cores']} cores"


def chosen(ways: dict[str, dict]) -> str | None:
    """The strategy of a cell that the constants of ``costs.json`` choose, by the shape that the plan saw."""
    lines = [line for line in ways.values() if line.get("group")]
    if not lines:
        return None
    costs = load_costs(lines[0]["device"])
    return min(lines, key=lambda line: predicted(line, costs.nanoseconds, costs))["strategy"]


def regrets(lines: list[dict]) -> list[dict]:
    """Of each cell: what the choice of the shipped constants took, what a whole run of its commit took, and the best.

    Where a cell has no estimates (one source), the choice is that of its commit.
    """
    cells = defaultdict(dict)
    for line in lines:
        facts = line | {"gpu_or_cpu": machine_name(line), "reverse": line.get("reverse", "")}
        cells[tuple(facts[name] for name in _CELL)][line["strategy"]] = line
    found = []
    for key, ways in cells.items():
        times = {name: total(line) for name, line in ways.items() if line["seconds"] is not None}
        whole = times.pop("auto", None)
        if len(times) < 2:
            continue
        best = min(times, key=times.__getitem__)
        first = ways[best]
        auto = chosen(ways) or first["auto"]
        # What was cut off took longer than this, so its regret is at least that.
        taken = times.get(auto) or ways.get(auto, {}).get("over")
        corrected = whole if first["auto"] == auto else None
        figures = {"regret": taken, "corrected": corrected, "planning": first.get("planning")}
        ratios = {name: value and value / times[best] for name, value in figures.items()}
        cell = dict(zip(_CELL, key, strict=True)) | {name: first[name] for name in _SHOWN}
        cell |= {"auto": auto, "best": best, "seconds": times[best], "taken": taken}
        found.append(cell | ratios)
    return found


def mean(values: list[float]) -> float | None:
    """Geometric mean."""
    if values:
        return round(math.exp(sum(map(math.log, values)) / len(values)), 4)
    return None


def summarised(lines: list[dict], before: Mapping = NOTHING) -> dict:
    """The numbers of the page. Those ``before`` are kept where a device has no lines, so that its constants are the same."""
    cells = regrets(lines)
    devices = {line["device"] for line in lines}
    machines = [each for each in before.get("machines", ()) if each["device"] not in devices]
    for name in dict.fromkeys(cell["gpu_or_cpu"] for cell in cells):
        here = [line for line in lines if machine_name(line) == name]
        machines.append({"name": name, "device": here[0]["device"]} | figures_of(here, cells))
    return {"short": SHORT, "machines": machines, "predictions": before.get("predictions", {})}


def figures_of(lines: list[dict], cells: list[dict]) -> dict:
    """Return the numbers of a machine by its lines."""
    name = machine_name(lines[0])
    own = [cell for cell in cells if cell["gpu_or_cpu"] == name and cell["regret"]]
    long = [cell for cell in own if cell["seconds"] > SHORT]
    long.sort(key=lambda cell: -cell["regret"])
    planning = sorted(cell["planning"] for cell in long if cell["planning"] is not None)
    return {
        "commits": sorted({line["commit"] for line in lines}),
        "versions": lines[0]["versions"],
        "cells": len(own),
        "long_cells": len(long),
        "mean": mean([cell["regret"] for cell in long]),
        "corrected_mean": mean([cell["corrected"] for cell in long if cell["corrected"]]),
        "largest": round(long[0]["regret"], 3) if long else 1.0,
        "over": sum(cell["regret"] > MOST for cell in long),
        "planning": round(planning[len(planning) // 2], 5) if planning else None,
        "worst": [{name: in_record(cell[name]) for name in _WORST} for cell in long[:WORST]],
    }


def in_record(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 6)
    return value


def known_errors() -> dict:
    """What the cross-validation of the constants says of each device."""
    costs = json.loads(COSTS.read_text())
    return {device: found["cross_validation"] for device, found in costs.items()}


def shown(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    if seconds < 1:
        return f"{seconds * 1e3:,.3g} ms"
    return f"{seconds:,.3g} s"


def share(part: float | None) -> str:
    if part is None:
        return "-"
    return f"{part:.1%}"


def met(value: float | None, target: float) -> str:
    if value is None:
        return "not measured"
    if value <= target:
        return "met"
    return f"missed, {value:.3g}"


def page(numbers: dict) -> str:
    """The page, in Markdown."""
    filters = {"shown": shown, "share": share, "met": met, "by_graph": by_graph}
    return filled("regret.md", filters, **numbers, errors=known_errors(), most=MOST, mean=MEAN)


class Predicted(NamedTuple):
    """The predictions of a graph: how many there are and hold, their mean, and the one that is farthest off."""

    graph: str
    times: int
    near: int
    mean: float
    cell: str
    expected: float
    measured: float


def by_graph(rows: list[list]) -> list[Predicted]:
    """Return predicted and measured times by graph."""
    of_graph = defaultdict(list)
    for graph, *row in rows:
        of_graph[graph].append(row)
    found = []
    for graph, own in sorted(of_graph.items()):
        ratios = [expected / measured for *_, expected, measured in own]
        worst = max(range(len(own)), key=lambda i: abs(math.log(ratios[i])))
        algorithm, sources, result, key, expected, measured = own[worst]
        cell = f"{algorithm}, {result}, {sources:,} sources: {key.removeprefix(f'{algorithm} ')}"
        near = sum(1 / WITHIN <= ratio <= WITHIN for ratio in ratios)
        middle = math.exp(sum(map(math.log, ratios)) / len(ratios))
        found.append(Predicted(graph, len(own), near, middle, cell, expected, measured))
    return found


def fitted(files: list[Path], without: list[str]) -> int:
    """Fit the constants, and write them with their predictions; return 1 if those before are better, which are kept then."""
    constants = {"before": COSTS.read_text()}
    means = {}
    predictions = fit.main(files, COSTS, without)
    constants["after"] = COSTS.read_text()
    for name, text in constants.items():
        COSTS.write_text(text)
        load_costs.cache_clear()
        cells = [cell for cell in regrets(read(files)) if cell["regret"]]
        long = [cell["regret"] for cell in cells if cell["seconds"] > SHORT]
        means[name] = mean(long) or 1.0
        print(
            f"{name}: {len(long)} cells, mean regret {means[name]}, at most {max(long, default=1)}"
        )
    if means["after"] > means["before"]:
        COSTS.write_text(constants["before"])
        print("the constants before are better, and are kept")
        return 1
    numbers = json.loads(NUMBERS.read_text())
    numbers["predictions"] |= {device: in_digits(rows) for device, rows in predictions.items()}
    write_record(NUMBERS, numbers)
    return 0


def in_digits(rows: list[list]) -> list[list]:
    """Return those predictions of a fit that the page shows, by graph, cell and strategy, with three digits."""
    return [
        [graph, *cell, float(f"{expected:.3g}"), float(f"{measured:.3g}")]
        for graph, _weights, *cell, expected, measured in rows
        if math.isfinite(expected) and measured > SHORT
    ]


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("fit", "numbers", "page"))
    parser.add_argument("files", nargs="*", type=Path, help="logs of the suite regret")
    parser.add_argument(
        "--without",
        nargs="+",
        default=[],
        metavar="KEY",
        help="keep the constants of these, such as 'bfs bit_parallel', whose threads wait for each other by turning "
        "round, which a busy machine makes longer",
    )
    options = parser.parse_args(arguments)
    if (options.command == "page") is bool(options.files):
        parser.error("fit and numbers take files, and page takes none")
    return options


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    if options.command == "fit":
        return fitted(options.files, options.without)
    if options.command == "numbers":
        before = json.loads(NUMBERS.read_text()) if NUMBERS.exists() else NOTHING
        write_record(NUMBERS, summarised(read(options.files), before))
    else:
        PAGE.write_text(page(json.loads(NUMBERS.read_text())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
