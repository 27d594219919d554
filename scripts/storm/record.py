"""The record of storms, docs/storm.json, and its table in docs/testing.md."""

from __future__ import annotations

import argparse
import json
import sys
from operator import itemgetter
from pathlib import Path
from typing import Any

from scripts.measure.environment import commit, machine
from scripts.pages import ROOT, between, by_columns, put, read_record, write_record

RECORD = ROOT / "docs/storm.json"
PAGE = ROOT / "docs/testing.md"
BEGIN = "<!-- storm: begin -->"
END = "<!-- storm: end -->"
PROGRAM = "scripts.ci.storm record"


def about(settings: Any, given: argparse.Namespace) -> dict:
    """Return what a record says of a storm before it begins."""
    here = machine()
    gpu = f", {here['gpu']}" if settings.device == "cuda" and here["gpu"] else ""
    return {
        "commit": commit(),
        "machine": f"{here['cpu']}, {here['cores']} cores{gpu}",
        "device": settings.device,
        "seed": settings.seed,
        "processes": given.processes,
    }


def _summaries(path: Path) -> list[dict]:
    lines = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return [line["summary"] for line in lines if "summary" in line]


COUNTED = ("cases", "calls", "comparisons", "kills", "interrupts")
COLUMNS: dict[str, Any] = {
    **{name: itemgetter(name) for name in ("date", "commit", "machine", "device")},
    "seed": lambda each: str(each["seed"]),
    "hours": lambda each: f"{each['hours']:.2f}",
    **{name: lambda each, name=name: f"{each['counts'].get(name, 0):,}" for name in COUNTED},
    "findings": lambda each: str(each["findings"]),
}


def table_of(records: list[dict]) -> str:
    """Return the table of the page."""
    return by_columns(COLUMNS, records)


def page_with(text: str, records: list[dict]) -> str:
    """Return the page with the table of these records."""
    return between(text, BEGIN, END, table_of(records))


def _recorded() -> list[dict]:
    if RECORD.exists():
        return read_record(RECORD)
    return []


def add(paths: list[Path]) -> int:
    """Add the summaries of finished storms to the record and to the page; return the exit code."""
    found = [summary for path in paths for summary in _summaries(path)]
    if not found:
        print("no file has the summary of a storm that has ended", file=sys.stderr)
        return 2
    records = _recorded()
    records += [summary for summary in found if summary not in records]
    write_record(RECORD, records)
    PAGE.write_text(page_with(PAGE.read_text(encoding="utf-8"), records), encoding="utf-8")
    return 0


def check() -> int:
    """Compare the page with the record; return the exit code."""
    return put(
        {PAGE: page_with(PAGE.read_text(encoding="utf-8"), _recorded())}, PROGRAM, check=True
    )
