"""Run the suites of docs/conformance.md, record their counts, and write the page.

python -m scripts.conformance run [--only NAME ...]     all suites; writes docs/conformance.json and the page
python -m scripts.conformance part                      what check.sh --all runs: less than two minutes, writes nothing
python -m scripts.conformance page | check              write the page from docs/conformance.json, or compare it

``bash scripts/conformance.sh`` makes the environment and calls ``run`` in it.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from collections import Counter, defaultdict
from datetime import date
from pathlib import Path

from pipelines.run.environment import package_versions
from scripts.conformance.suites import ROOT, SUITES, Suite
from scripts.measure.environment import commit
from scripts.pages import filled, put, read_record, write_record
from scripts.reports import EXPECTED, FAILED, PASSED, SKIPPED, cases_in

RECORD = ROOT / "docs/conformance.json"
PAGE = ROOT / "docs/conformance.md"
REPORTS = ROOT / "out/conformance"


class Failed(Exception):
    """A suite did not run, or its results cannot be counted."""


def counts_of(report: Path) -> dict:
    """Count the results in a report of pytest (JUnit XML).

    Returns
    -------
    dict
        ``passed``, ``failed`` (names of tests), ``skipped`` (reason to count) and ``expected_failures`` (test to reason).
    """
    if not report.exists():
        raise Failed("it wrote no report")
    by_outcome = defaultdict(list)
    for case in cases_in(report):
        by_outcome[case.outcome].append((f"{case.place}.{case.name}".strip("."), case.message))
    return {
        "passed": len(by_outcome[PASSED]),
        "failed": [name for name, _ in by_outcome[FAILED]],
        "skipped": dict(Counter(reason for _, reason in by_outcome[SKIPPED])),
        "expected_failures": dict(by_outcome[EXPECTED]),
    }


def run_suite(suite: Suite, only_part: bool = False) -> dict:
    """Run a suite and return its record. Its output goes to the terminal."""
    if not suite.is_here:
        raise Failed(f"{suite.needs} does not exist")
    REPORTS.mkdir(parents=True, exist_ok=True)
    report = REPORTS / f"{suite.name}.xml"
    report.unlink(missing_ok=True)
    environment = os.environ | {
        "PYTEST_ADDOPTS": f"--junitxml={report} -o junit_family=xunit1",
        "PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
        "KEPLER_CONFORMANCE": "1",
        "OMP_WAIT_POLICY": "passive",
    }
    command = [suite.program, *suite.command]
    if only_part:
        command += suite.part
    began = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, env=environment)
    seconds = time.perf_counter() - began
    found = counts_of(report)
    if not found["passed"] and not found["failed"]:
        raise Failed("no test ran")
    refused = [reason for reason in found["skipped"] if not suite.allows_skip(reason)]
    if refused:
        raise Failed(f"tests of this library were skipped: {'; '.join(refused)}")
    if done.returncode and not found["failed"]:
        raise Failed(f"exit code {done.returncode}")
    return {
        "name": suite.name,
        "passed": found["passed"],
        "failed": found["failed"],
        "skipped": found["skipped"],
        "expected_failures": found["expected_failures"],
        "seconds": round(seconds),
        "python": platform.python_version(),
        "versions": package_versions(suite.packages),
        "commit": commit(),
        "date": date.today().isoformat(),
    }


def page_of(records: list[dict]) -> str:
    """Return the text of docs/conformance.md."""
    titles = {suite.name: suite.title for suite in SUITES}
    return filled("conformance.md", {"cell": _cell}, suites=records, titles=titles)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|") or "none given"


def read_records() -> list[dict]:
    return read_record(RECORD, {"suites": []})["suites"]


def write_records(new: list[dict]) -> None:
    """Replace the records of suites that ran, and write the page."""
    records = {each["name"]: each for each in [*read_records(), *new]}
    ordered = [records[suite.name] for suite in SUITES if suite.name in records]
    write_record(RECORD, {"suites": ordered})
    PAGE.write_text(page_of(ordered), encoding="utf-8")


def check() -> int:
    """Return 1 if the page is stale or records a failure."""
    records = read_records()
    failed = [each["name"] for each in records if each["failed"]]
    if failed:
        print(f"docs/conformance.json records failures of {', '.join(failed)}", file=sys.stderr)
    return put({PAGE: page_of(records)}, "scripts.conformance page", check=True) or int(
        bool(failed)
    )


def run(suites: list[Suite], only_part: bool = False) -> int:
    """Run suites, all of them even after a failure; record those that ran."""
    records = []
    failures = {}
    for suite in suites:
        print(f"== {suite.name}: {suite.title}", flush=True)
        try:
            records.append(run_suite(suite, only_part))
        except Failed as error:
            failures[suite.name] = str(error)
            continue
        if records[-1]["failed"]:
            failures[suite.name] = ", ".join(records[-1]["failed"][:10])
    if records and not only_part:
        write_records(records)
    print()
    for each in records:
        skipped = sum(each["skipped"].values())
        expected = len(each["expected_failures"])
        print(
            f"{each['name']}: {each['passed']} passed, {len(each['failed'])} failed, {expected} expected failures, "
            f"{skipped} skipped, {each['seconds']} s"
        )
    for name, reason in failures.items():
        print(f"{name} FAILED: {reason}", file=sys.stderr)
    return int(bool(failures))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Run the suites of docs/conformance.md.")
    commands = parser.add_subparsers(dest="command", required=True)
    names = [suite.name for suite in SUITES]
    command = commands.add_parser("run", help="run all suites and record their counts")
    command.add_argument("--only", nargs="+", choices=names, default=names)
    commands.add_parser("part", help="run what check.sh --all runs")
    commands.add_parser("page", help="write docs/conformance.md")
    commands.add_parser("check", help="compare docs/conformance.md with its record")
    options = parser.parse_args(arguments)
    if options.command == "check":
        return check()
    if options.command == "page":
        PAGE.write_text(page_of(read_records()), encoding="utf-8")
        return 0
    if options.command == "part":
        for suite in SUITES:
            if suite.in_check and not suite.is_here:
                print(f"{suite.name} is left out: {suite.needs} does not exist", file=sys.stderr)
        return run([suite for suite in SUITES if suite.in_check and suite.is_here], only_part=True)
    return run([suite for suite in SUITES if suite.name in options.only])


if __name__ == "__main__":
    sys.exit(main())
