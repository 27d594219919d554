"""How far ``auto`` is from the best strategy: measure, fit the estimates' constants, and show the worst cells.

python -m scripts.regret sweep --device cpu --graphs FOLDER --output FILE.jsonl [--seconds N] [--largest N] [--resume]
python -m scripts.regret refit --graphs FOLDER  sweeps on a quiet CPU, fits, and writes all files below
python -m scripts.regret fit FILE.jsonl ...     writes kepler_traverse/auto/costs.json
python -m scripts.regret numbers FILE.jsonl ... writes docs/regret.json
python -m scripts.regret page                   writes docs/regret.md from docs/regret.json

A sweep takes all Parquet files of the folder with columns src and dst, and generated graphs, on which it compares the
strategies' results before it times them. On a GPU it needs CuPy, NumPy and pyarrow alone.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kepler_traverse.auto.costs import load_costs
from scripts.pages import filled, write_record
from scripts.regret.cells import read, total

ROOT = Path(__file__).resolve().parents[2]

NUMBERS, PAGE = ROOT / "docs" / "regret.json", ROOT / "docs" / "regret.md"
COSTS = ROOT / "kepler_traverse" / "auto" / "costs.json"
WORST = 20
MOST, MEAN = 1.15, 1.03  # targets: of each cell, and of the geometric mean
# Of a refit: numbers of sources, the most vertices of a generated graph, and seconds that a cell may take by its estimate.
REFIT_SOURCES, REFIT_LARGEST, REFIT_LONGEST = (8, 64, 512), 100_000, 4.0
NOTHING: Mapping[str, Any] = {}
WITHIN = 2.0  # factor that estimates are to hold
SHORT = 0.005  # seconds up to which regret does not count
_CELL = ("device", "gpu_or_cpu", "graph", "weights", "algorithm", "sources", "result", "reverse")


def machine_name(line: dict) -> str:
    where = line["machine"]
    return (
        where["gpu"]
        if line["device"] == "cuda" and where["gpu"]
        else f"{where['cpu']}, {where['cores']} cores"
    )


def chosen(ways: dict[str, dict]) -> str | None:
    """The strategy of a cell that the constants of ``costs.json`` choose, by the shape that the plan saw."""
    from scripts.regret.fit import predicted

    lines = [
        line
        for name, line in ways.items()
        if name != "auto" and line.get("group") and "shape" in line
    ]
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
        times = {
            name: total(line)
            for name, line in ways.items()
            if name != "auto" and line["seconds"] is not None
        }
        if len(times) < 2:
            continue
        best = min(times, key=times.get)
        first = next(iter(ways.values()))
        auto = chosen(ways) or first["auto"]
        # What was cut off took longer than this, so its regret is at least that.
        taken = times.get(auto) or ways.get(auto, {}).get("over")
        corrected = None
        if "auto" in ways and first["auto"] == auto:
            corrected = total(ways["auto"])
        found.append(
            dict(zip(_CELL, key, strict=True))
            | {
                "auto": auto,
                "best": best,
                "seconds": times[best],
                "taken": taken,
                "regret": taken / times[best] if taken else None,
                "corrected": corrected / times[best] if corrected else None,
                "planning": first["planning"] / times[best] if "planning" in first else None,
            }
        )
    return found


def mean(values: list[float]) -> float | None:
    """Geometric mean."""
    return round(math.exp(sum(map(math.log, values)) / len(values)), 4) if values else None


def summarised(lines: list[dict], before: Mapping[str, Any] = NOTHING) -> dict:
    """The numbers of the page. Those ``before`` are kept where a device has no lines, so that its constants are the same."""
    cells = regrets(lines)
    devices = {line["device"] for line in lines}
    machines = [each for each in before.get("machines", ()) if each["device"] not in devices]
    for name in dict.fromkeys(cell["gpu_or_cpu"] for cell in cells):
        own = [cell for cell in cells if cell["gpu_or_cpu"] == name and cell["regret"]]
        long = [cell for cell in own if cell["seconds"] > SHORT]
        corrected = [cell["corrected"] for cell in long if cell["corrected"]]
        line = next(line for line in lines if machine_name(line) == name)
        planning = sorted(cell["planning"] for cell in long if cell["planning"] is not None)
        machines.append(
            {
                "name": name,
                "device": line["device"],
                "commits": sorted({line["commit"] for line in lines if machine_name(line) == name}),
                "versions": line["versions"],
                "cells": len(own),
                "long_cells": len(long),
                "mean": mean([cell["regret"] for cell in long]),
                "corrected_mean": mean(corrected),
                "largest": round(max((cell["regret"] for cell in long), default=1.0), 3),
                "over": sum(cell["regret"] > MOST for cell in long),
                "planning": round(planning[len(planning) // 2], 5) if planning else None,
                "worst": [
                    {
                        key: round(value, 6) if isinstance(value, float) else value
                        for key, value in cell.items()
                    }
                    for cell in sorted(long, key=lambda cell: -cell["regret"])[:WORST]
                ],
            }
        )
    errors = known_errors()
    predictions = before.get("predictions", {})
    return {"short": SHORT, "machines": machines, "errors": errors, "predictions": predictions}


def known_errors() -> dict:
    """What the cross-validation of the constants says of each device."""
    costs = json.loads(COSTS.read_text())
    return {device: found["cross_validation"] for device, found in costs.items()}


def shown(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds * 1e3:,.3g} ms" if seconds < 1 else f"{seconds:,.3g} s"


def share(part: float | None) -> str:
    return "-" if part is None else f"{part:.1%}"


def met(value: float | None, target: float) -> str:
    return "not measured" if value is None else "met" if value <= target else f"missed, {value:.3g}"


def page(numbers: dict) -> str:
    """The page, in Markdown."""
    filters = {"shown": shown, "share": share, "met": met, "predictions": predictions_table}
    return filled("regret.md", filters, **numbers, most=MOST, mean=MEAN)


def predictions_table(device: str, rows: list[list]) -> list[str]:
    """The table of predicted and measured times: a row per graph, with the strategy that is farthest off."""
    of_graph = defaultdict(list)
    for graph, _, algorithm, sources, result, key, predicted, measured in rows:
        if measured > SHORT:
            strategy = key.removeprefix(f"{algorithm} ")
            cell = f"{algorithm}, {result}, {sources:,} sources: {strategy}"
            of_graph[graph].append((predicted / measured, cell, predicted, measured))
    every = [ratio for own in of_graph.values() for ratio, *_ in own]
    within = sum(1 / WITHIN <= ratio <= WITHIN for ratio in every)
    lines = [
        f"Times on {device} of more than {SHORT * 1e3:g} ms, of graphs that the constants were not fitted to: {within} of "
        f"{len(every)} within {WITHIN:g}. The last columns are the strategy of each graph that is farthest off.",
        "",
        "| graph | times | within 2 | predicted / measured, geometric mean | farthest off | predicted | measured | ratio |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for graph, own in sorted(of_graph.items()):
        ratio, cell, predicted, measured = max(own, key=lambda each: abs(math.log(each[0])))
        near = sum(1 / WITHIN <= each[0] <= WITHIN for each in own)
        middle = math.exp(sum(math.log(each[0]) for each in own) / len(own))
        lines.append(
            f"| {graph} | {len(own)} | {near} | {middle:.2f} | {cell} | {shown(predicted)} | {shown(measured)} "
            f"| {ratio:.2f} |"
        )
    return lines


def write_numbers(files: list[Path]) -> dict:
    before = json.loads(NUMBERS.read_text()) if NUMBERS.exists() else NOTHING
    numbers = summarised(read(files), before)
    write_record(NUMBERS, numbers)
    print(f"{NUMBERS} written")
    return numbers


def write_predictions(predictions: dict[str, list]) -> None:
    """Put the predictions of a fit into the numbers: those of each graph and strategy, by the cells."""
    numbers = json.loads(NUMBERS.read_text())
    numbers["errors"] = known_errors()
    numbers["predictions"] = numbers.get("predictions", {}) | {
        device: [
            [*cell, float(f"{predicted:.3g}"), float(f"{measured:.3g}")]
            for *cell, predicted, measured in rows
            if math.isfinite(predicted)
        ]
        for device, rows in predictions.items()
    }
    write_record(NUMBERS, numbers)


def refit(options: argparse.Namespace) -> int:
    """Measure the CPU's strategies, fit, write the files, and say what changed; return 1 if a regret is too large."""
    from scripts.regret import fit
    from scripts.regret.sweep import Scope, sweep

    found, constants = {}, COSTS.read_text()
    for folder in (options.graphs, None):
        scope = Scope(
            sources=REFIT_SOURCES,
            results=("distances",),
            generated=folder is None,
            repeats=3,
            largest=REFIT_LARGEST if folder is None else None,
            longest=REFIT_LONGEST,
        )
        sweep("cpu", folder, options.output, options.seconds / 2, folder is None, scope)
    for name in ("before", "after"):
        found[name] = [
            cell
            for cell in regrets(read([options.output]))
            if cell["regret"] and cell["seconds"] > SHORT
        ]
        if name == "before":
            write_predictions(fit.main([options.output], COSTS))
            load_costs.cache_clear()
    means = {name: mean([cell["regret"] for cell in cells]) or 1.0 for name, cells in found.items()}
    for name, cells in found.items():
        largest = sorted(cells, key=lambda cell: -cell["regret"])
        print(f"{name}: {len(cells)} cells, mean {means[name]}, of more than {MOST}:")
        for cell in largest:
            if cell["regret"] > MOST:
                where = f"{cell['graph']}, {cell['algorithm']} {cell['weights']}, {cell['sources']}"
                print(
                    f"  {cell['regret']:.2f}  {where}: {cell['auto']}, best {cell['best']} in {shown(cell['seconds'])}"
                )
    if means["after"] > means["before"]:
        COSTS.write_text(constants)
        print("the constants before are better, and are kept")
        return 1
    machines = write_numbers([options.output])["machines"]
    PAGE.write_text(page(json.loads(NUMBERS.read_text())))
    return int(machines[-1]["over"] > 0)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="How far auto is from the best strategy.")
    commands = parser.add_subparsers(dest="command", required=True)
    sweep = commands.add_parser(
        "sweep", help="measure; writes one line of JSON per cell and strategy"
    )
    add = sweep.add_argument
    add("--device", choices=["cpu", "cuda"], required=True)
    add("--graphs", type=Path, help="folder of Parquet files; default: generated graphs only")
    add("--output", type=Path, required=True)
    add("--seconds", type=float, default=math.inf, help="end after this time")
    add("--largest", type=int, help="maximum number of vertices of a generated graph")
    add("--longest", type=float, default=math.inf, help="omit cells with a longer estimated time")
    add("--seed", type=int, default=0, help="of the order of the graphs")
    add("--commit", help="the commit, if the code is a copy without its repository")
    add("--smallest", type=int, help="minimum number of vertices of a generated graph")
    add(
        "--estimates",
        dest="estimates_alone",
        action="store_true",
        help="measure only what the estimates are fitted to: the strategies that auto chooses among",
    )
    add("--algorithms", nargs="+", choices=("bfs", "sssp"), help="default: both")
    add("--sources", nargs="+", type=int, help="numbers of sources; default: all")
    add("--results", nargs="+", help="default: all")
    add("--files-only", dest="generated", action="store_false", help="omit generated graphs")
    add("--repeats", type=int, default=1, help="of the cells of a graph, in turns")
    add("--resume", action="store_true", help="omit the cells that the output has")
    refit = commands.add_parser(
        "refit", help="sweep, fit and write numbers and page, on a CPU that does nothing else"
    )
    refit.add_argument("--graphs", type=Path, required=True)
    refit.add_argument("--output", type=Path, default=ROOT / "out" / "regret.jsonl")
    refit.add_argument(
        "--seconds", type=float, default=600, help="of the sweep, half of them for generated graphs"
    )
    for name in ("fit", "numbers"):
        of_files = commands.add_parser(name)
        of_files.add_argument("files", nargs="+", type=Path)
        if name == "fit":
            of_files.add_argument(
                "--without",
                nargs="+",
                default=[],
                metavar="KEY",
                help="keep the constants of these, such as 'bfs bit_parallel', whose threads wait for each other by turning "
                "round, which a busy machine makes longer",
            )
    commands.add_parser("page")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    if options.command == "sweep":
        from scripts.regret.sweep import Scope, sweep

        scope = Scope(**{name: getattr(options, name) for name in Scope._fields})
        of = (options.device, options.graphs, options.output, options.seconds, options.resume)
        found = sweep(*of, scope, options.commit)
        print(f"{options.output}: {found} cells")
    elif options.command == "fit":
        from scripts.regret import fit

        write_predictions(fit.main(options.files, without=options.without))
    elif options.command == "numbers":
        write_numbers(options.files)
    elif options.command == "refit":
        return refit(options)
    else:
        PAGE.write_text(page(json.loads(NUMBERS.read_text())))
        print(f"{PAGE} written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
