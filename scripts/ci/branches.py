"""Which lines and branches of library and job no test reaches, after tests under coverage (`check.sh --all`).

    python -m scripts.ci.branches check    exit code 1 if too little is reached, or if uncovered.json lacks a function
    python -m scripts.ci.branches list     print what uncovered.json lacks, in its form

Compiled functions and kernels are left out by a rule of pyproject.toml: machine code runs in the place of their lines. In
``scripts/ci/uncovered.json`` each function of which no test reaches a line is listed under the reason for it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from scripts.pages import ROOT

LISTED = ROOT / "scripts/ci/uncovered.json"
DATA = ROOT / "out/coverage"
REPORT = DATA / "report.json"
THRESHOLD = 95.0  # per cent of all lines and branches
OF_MODULE = "(module)"


class Place(NamedTuple):
    """A function, by its file and its qualified name; the code of a module that is in no function is ``OF_MODULE``."""

    file: str
    function: str


def measure(data: Path = DATA, report: Path = REPORT) -> dict:
    """Combine what processes have left in a folder, and return the report of coverage."""
    import coverage

    measured = coverage.Coverage(
        data_file=str(data / "data"), config_file=str(ROOT / "pyproject.toml")
    )
    measured.load()  # of an earlier call, if there was one
    measured.combine([str(data)], strict=False, keep=False)
    measured.save()
    measured.json_report(outfile=str(report))
    return json.loads(report.read_text(encoding="utf-8"))


def functions(report: dict) -> Iterator[tuple[Place, dict]]:
    """Yield each function of a report with what was measured of it."""
    for file, entry in report["files"].items():
        for function, measured in entry["functions"].items():
            yield Place(file, function or OF_MODULE), measured


def unreached(report: dict) -> dict[Place, list[int]]:
    """Return the lines of functions of which no line is reached."""
    found = {}
    for place, measured in functions(report):
        if measured["missing_lines"] and not measured["executed_lines"]:
            found[place] = measured["missing_lines"]
    return found


def listed() -> dict[Place, str]:
    """Return the reason of each function that is listed."""
    reasons = json.loads(LISTED.read_text(encoding="utf-8"))
    return {
        Place(file, function): reason
        for reason, files in reasons.items()
        for file, functions in files.items()
        for function in functions
    }


def problems(report: dict, known: dict[Place, str]) -> list[str]:
    """Return what is wrong with a measurement, in lines."""
    share = report["totals"]["percent_covered"]
    found = unreached(report)
    said = []
    if share < THRESHOLD:
        said.append(f"{share:.2f} % of lines and branches are reached, and {THRESHOLD} % must be")
    for place, lines in found.items():
        if place not in known:
            said.append(
                f"{place.file}: {place.function}: no test reaches it, lines {lines[0]} to {lines[-1]}"
            )
    # A function of the list may be reached: with a GPU, or with a package that is not installed.
    there = {place for place, _ in functions(report)}
    for place in known:
        if place not in there:
            said.append(f"{place.file}: {place.function} is gone: take it out of {LISTED.name}")
    return said


def form(places: Iterable[Place], reason: str = "") -> str:
    """Return places in the form of the list."""
    files = {}
    for place in sorted(places):
        files.setdefault(place.file, []).append(place.function)
    return json.dumps({reason: files}, indent=1)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = argparse.ArgumentParser(
        description="Which lines and branches of library and job no test reaches."
    )
    parser.add_argument("action", choices=("check", "list"))
    action = parser.parse_args(arguments).action
    report = measure()
    known = listed()
    if action == "list":
        print(form(place for place in unreached(report) if place not in known))
        return 0
    found = problems(report, known)
    for line in found:
        print(line)
    totals = report["totals"]
    print(
        f"{totals['percent_covered']:.2f} % of {totals['num_statements']:,} lines and {totals['num_branches']:,} branches; "
        f"{len(unreached(report))} functions are not reached at all; {len(known)} are listed"
    )
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
