"""Repeat the measurements of the papers: one, several or all of them.

    python -m scripts.papers bfs-4k --graphs FOLDER

FOLDER has the Parquet files of real graphs. --list names those that the works need, their columns, and whose graphs they
are, with an estimate of the time. A graph whose file is absent is left out, and all others are generated. Without a GPU the
systems for CPUs run. The output is a file of JSON lines, out/papers.jsonl: a run that is cut off, or ends after --seconds,
goes on where it was when called again. What the tables of claims need comes first. Then:

    python -m scripts.papers.page add out/papers.jsonl
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from scripts.papers import cost
from scripts.papers.experiments import BY_NAME, PAPERS, Work, files_of, works_of
from scripts.papers.jsonl import Lines, head
from scripts.papers.measure import (
    DeviceLostError,
    Options,
    OutOfTimeError,
    go_on_in_a_new_process,
    run_works,
)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.papers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "papers",
        nargs="+",
        choices=(*PAPERS, "all"),
        metavar="PAPER",
        help=f"{', '.join(PAPERS)} or all",
    )
    parser.add_argument(
        "--graphs",
        type=Path,
        help="folder of the files of real graphs; default: generated graphs alone",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("out/papers.jsonl"),
        help="file of JSON lines, which grows",
    )
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="begin no measurement after this time"
    )
    parser.add_argument(
        "--only", nargs="+", choices=BY_NAME, metavar="GRAPH", help="these graphs alone"
    )
    parser.add_argument(
        "--rank",
        type=int,
        nargs="+",
        help="works of these ranks alone: 1 for the claims, then 2, 3",
    )
    parser.add_argument("--part", nargs="+", choices=("time", "counters", "levels"))
    parser.add_argument(
        "--device",
        choices=("auto", "cpu", "cuda"),
        default="auto",
        help="cuda runs the CPU systems, too",
    )
    parser.add_argument(
        "--skip-cpu", action="store_true", help="beside a GPU, measure no system of the CPU"
    )
    parser.add_argument(
        "--repeats", type=int, default=5, help="least number of repeats per setting"
    )
    parser.add_argument(
        "--sources", type=int, default=16, help="of a graph of few levels; others have fewer"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--system-seconds",
        type=float,
        default=3.0,
        help="leave out a setting if a search takes longer",
    )
    parser.add_argument(
        "--baseline-seconds",
        type=float,
        default=10.0,
        help="the same of a sequential search, run once",
    )
    parser.add_argument("--commit", help="of a copy of the code without its repository")
    parser.add_argument(
        "--list", action="store_true", help="say what would be measured, and measure nothing"
    )
    return parser.parse_args(arguments)


def device_of(wanted: str) -> str:
    if wanted != "auto":
        return wanted
    from kepler_traverse import cuda

    return "cuda" if cuda.available() else "cpu"


def chosen(options: argparse.Namespace, device: str) -> list[Work]:
    """Return the works that the command line asks for, in the order in which they are measured."""
    works = works_of(PAPERS if "all" in options.papers else options.papers)
    found = [
        work
        for work in works
        if (not options.only or work.graph in options.only)
        and (not options.rank or work.rank in options.rank)
        and (not options.part or work.part in options.part)
    ]
    return cost.in_order(found, device)


def refuse(why: str) -> int:
    print(f"python -m scripts.papers: {why}", file=sys.stderr)
    return 2


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    given = sys.argv[1:] if arguments is None else arguments
    device = device_of(options.device)
    works = chosen(options, device)
    if not works:
        return refuse(
            "nothing to measure: --list without --only, --rank and --part says what there is"
        )
    if options.graphs is not None and not options.graphs.is_dir():
        return refuse(f"--graphs {options.graphs} is no folder")
    files = files_of(works)
    absent = [
        name for name in files if options.graphs is None or not (options.graphs / name).exists()
    ]
    if options.list:
        print(cost.described(works, device, files, absent))
        return 0
    print(
        f"device: {device}; files: {', '.join(files) or 'none'}; absent: {', '.join(absent) or 'none'}",
        file=sys.stderr,
    )
    with Lines(options.output) as lines:
        command = f"python -m scripts.papers {' '.join(given)}"
        lines.write("run", **head(command, options.commit, options.seed), on=device)
        settings = Options(
            graphs=options.graphs,
            seconds=options.seconds,
            device=device,
            commit=options.commit,
            repeats=options.repeats,
            sources=options.sources,
            skips_cpu=options.skip_cpu,
            seed=options.seed,
            system_seconds=options.system_seconds,
            baseline_seconds=options.baseline_seconds,
            again=("scripts.papers", *given),
        )
        try:
            run_works(works, settings, lines)
            print("all works are measured", file=sys.stderr)
        except OutOfTimeError:
            print(f"{lines.spent():.0f} s are spent; the same command goes on", file=sys.stderr)
        except DeviceLostError as error:
            print(f"the GPU was lost ({error}); going on in a new process", file=sys.stderr)
            go_on_in_a_new_process(settings, lines)
        print(
            f"{options.output}: {len(lines.known)} measurements, {lines.errors} errors",
            file=sys.stderr,
        )
        return int(lines.errors > 0)


if __name__ == "__main__":
    sys.exit(main())
