"""Measure, record and render.

python -m scripts.measure run SUITE --graphs FOLDER     measure the works of a suite; a run that is cut off goes on
python -m scripts.measure add out/measure.jsonl         put what was measured into the record, and render the pages;
                                                        --title TITLE also writes a dated log
python -m scripts.measure write                         render the pages from the record
python -m scripts.measure check                         exit 1 if a page is stale

FOLDER has the Parquet files of real graphs. A work whose file is absent is left out and named; so is a library that is not
installed. ``--set scripts.bench.ways_in.EDGES=20000`` sets a constant of a module.
"""

from __future__ import annotations

import argparse
import json
import sys
from importlib import import_module
from pathlib import Path

from scripts.measure import comparisons, logs, record, render
from scripts.measure.environment import about
from scripts.measure.harness import (
    KEY,
    SUITES,
    is_left,
    measure,
    measure_one,
    suite_of,
    works_of,
)
from scripts.measure.log import Log
from scripts.measure.work import Inputs, Work


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.measure",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", required=True)
    given = argparse.ArgumentParser(add_help=False)
    given.add_argument("--graphs", type=Path, help="folder of the files of real graphs")
    given.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    given.add_argument("--seed", type=int, default=1)
    given.add_argument("--set", action="append", default=[], metavar="MODULE.NAME=VALUE")
    run = actions.add_parser("run", parents=[given], help="measure the works of a suite")
    run.add_argument("suite", choices=SUITES)
    run.add_argument("--only", nargs="+", metavar="GRAPH", help="works of these graphs alone")
    run.add_argument("--work", default="", help="works whose name has this text alone")
    run.add_argument("--output", type=Path, default=Path("out/measure.jsonl"))
    run.add_argument("--seconds", type=float, default=float("inf"), help="begin no work later")
    run.add_argument("--commit", help="of a copy of the code without its repository")
    run.add_argument("--list", action="store_true", help="name the works, and measure none")
    one = actions.add_parser("one", parents=[given], help="one call in this process, as JSON")
    for name in ("suite", "graph", "work", "peer"):
        one.add_argument(name)
    add = actions.add_parser("add", help="also what pipelines.compare --json printed")
    add.add_argument("files", nargs="+", type=Path)
    add.add_argument("--title", help="of a dated log in docs/benchmarks/log")
    add.add_argument("--notes", type=Path, help="Markdown: where the time goes, what was tried")
    for name in ("commit", "date", "cpu", "driver"):
        add.add_argument(f"--{name}", help="of what pipelines.compare printed, which lacks it")
    for name in ("write", "check"):
        actions.add_parser(name)
    return parser.parse_args(arguments)


def set_constants(settings: list[str]) -> None:
    """Set constants of modules; a name that the module lacks ends the program."""
    for each in settings:
        place, _, value = each.partition("=")
        name, _, constant = place.rpartition(".")
        module = import_module(name)
        if not isinstance(vars(module).get(constant), int | float | str):
            raise SystemExit(f"--set {each}: {name} has no such number or text")
        setattr(module, constant, type(vars(module)[constant])(value))


def chosen(options: argparse.Namespace, inputs: Inputs) -> list[Work]:
    return [
        work
        for work in works_of(suite_of(options.suite), inputs)
        if (not options.only or work.graph in options.only) and options.work in work.name
    ]


def run(options: argparse.Namespace, inputs: Inputs, command: str) -> int:
    works = chosen(options, inputs)
    absent = []
    if options.list:
        print("\n".join(f"{work.graph}: {work.name}: {', '.join(work.peers)}" for work in works))
        return 0
    packages = ("kepler-traverse", "numpy", "numba", *suite_of(options.suite).PACKAGES)
    with Log(options.output, KEY) as log:
        log.write("run", **about(packages, command, options.commit))
        for work in works:
            if log.spent() > options.seconds:
                print("the time is over; the same command goes on", file=sys.stderr)
                break
            if is_left(options.suite, work, inputs, log):
                try:
                    measure(options.suite, work, inputs, log)
                except FileNotFoundError as error:
                    absent.append(f"{work.graph}: {error}")
    print("\n".join(dict.fromkeys(absent)), file=sys.stderr)
    return 0


def add(options: argparse.Namespace) -> int:
    found = record.read()
    lines = []
    for file in options.files:
        lines += comparisons.lines_of(file, options) or record.lines_of(file)
    found = record.added(found, lines)
    if options.title:
        notes = options.notes.read_text(encoding="utf-8") if options.notes else ""
        found = logs.written(found, options.title, lines, notes)
    record.write(found)
    return render.put_pages(found)


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    words = sys.argv[1:] if arguments is None else arguments
    if options.action == "check":
        return render.put_pages(record.read(), check=True)
    if options.action == "write":
        return render.put_pages(record.read())
    if options.action == "add":
        return add(options)
    set_constants(options.set)
    settings = tuple(word for each in options.set for word in ("--set", each))
    inputs = Inputs(
        graphs=options.graphs, device=options.device, seed=options.seed, settings=settings
    )
    if options.action == "run":
        return run(options, inputs, f"python -m scripts.measure {' '.join(words)}")
    (work,) = (
        work
        for work in works_of(suite_of(options.suite), inputs)
        if (work.graph, work.name) == (options.graph, options.work)
    )
    print(json.dumps(measure_one(work, options.peer, inputs)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
