"""The record of measurements: docs/benchmarks/measured.json.

    made      machines and versions of packages, each once
    runs      objects: date, commit, command, and the place of what they were made with; rows have their places
    tables    by suite: the names of the columns, and lists that begin with a graph, a work and a device, whose rows
              follow, the newest of each peer
    logs      objects: file in docs/benchmarks/log, its sha256, title, date and commit

``least`` and ``median`` are seconds, with four digits; rows that are older than the harness have one of both.
``spread`` is the distance of the quartiles divided by the median. What a suite adds has its unit in its name, or is a count.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from scripts.measure.environment import ROOT
from scripts.pages import packed, read_record, unpacked, write_record

MEASURED = ROOT / "docs" / "benchmarks" / "measured.json"
KEY = ("graph", "work", "peer", "device")
SHARED = ("graph", "work", "device")
RUN = ("date", "commit", "command", "machine", "versions")
SAME_RUN = ("commit", "machine", "versions")
FIRST = (*KEY, "size", "run", "median", "least", "spread", "repeats")
Row = dict[str, Any]


@dataclass
class Record:
    """All rows, each with its run as an object."""

    runs: list[dict] = field(default_factory=list)
    tables: dict[str, list[Row]] = field(default_factory=dict)
    logs: list[dict] = field(default_factory=list)

    def rows(self, suite: str) -> list[Row]:
        """Return the rows of a suite, with their runs as objects."""
        return [row | {"run": self.runs[row["run"]]} for row in self.tables.get(suite, ())]


def key_of(row: Row) -> tuple:
    return tuple(row.get(name) for name in KEY)


def read(path: Path | None = None) -> Record:
    content = read_record(path or MEASURED)
    tables = {
        suite: [
            dict(zip(SHARED, shared, strict=True)) | known(zip(table["columns"], row, strict=True))
            for *shared, rows in table["rows"]
            for row in rows
        ]
        for suite, table in content["tables"].items()
    }
    runs = [unpacked(content["made"], run) for run in content["runs"]]
    return Record(runs, tables, content["logs"])


def known(values: Iterable[tuple[str, Any]]) -> Row:
    return {name: value for name, value in values if value is not None}


def write(record: Record, path: Path | None = None) -> None:
    tables = {}
    for suite, rows in sorted(record.tables.items()):
        used = dict.fromkeys([*FIRST, *(name for row in rows for name in row)])
        columns = [name for name in used if any(name in row for row in rows)]
        columns = [name for name in columns if name not in SHARED]
        blocks = {}
        for row in rows:
            block = blocks.setdefault(tuple(row[name] for name in SHARED), [])
            block.append([row.get(name) for name in columns])
        tables[suite] = {"columns": columns, "rows": [[*of, own] for of, own in blocks.items()]}
    made, runs = packed(record.runs, SAME_RUN[1:])
    content = {"made": made, "runs": runs, "tables": tables, "logs": record.logs}
    write_record(path or MEASURED, content)


def place_of(runs: list[dict], run: dict) -> int:
    """Return the place of a run in the list; calls with one commit on one machine are one run, of the last command."""
    for place, other in enumerate(runs):
        if all(other.get(name) == run.get(name) for name in SAME_RUN):
            runs[place] = other | {"command": run.get("command", "")}
            return place
    runs.append(run)
    return len(runs) - 1


def added(record: Record, lines: Iterable[dict]) -> Record:
    """Return a record with the lines of a log; newer rows take the places of those of the same key."""
    runs = list(record.runs)
    tables = {suite: list(rows) for suite, rows in record.tables.items()}
    place = -1
    for line in lines:
        if line["kind"] == "run":
            place = place_of(runs, {name: line[name] for name in RUN})
        elif line["kind"] == "time":
            put(tables.setdefault(line["suite"], []), row_of(line) | {"run": place})
    return without_unused_runs(replace(record, runs=runs, tables=tables))


def row_of(line: dict) -> Row:
    unused = ("kind", "at", "suite")
    return {name: value for name, value in line.items() if name not in unused and value is not None}


def put(rows: list[Row], row: Row) -> None:
    for place, other in enumerate(rows):
        if key_of(other) == key_of(row):
            rows[place] = row
            return
    rows.append(row)


def without_unused_runs(record: Record) -> Record:
    """Drop runs of which no row is left, and number the others anew."""
    used = sorted({row["run"] for rows in record.tables.values() for row in rows})
    place = {old: new for new, old in enumerate(used)}
    tables = {
        suite: [row | {"run": place[row["run"]]} for row in rows]
        for suite, rows in record.tables.items()
    }
    return replace(record, runs=[record.runs[old] for old in used], tables=tables)


def lines_of(path: Path) -> list[dict]:
    """Return the lines of a log of ``python -m scripts.measure run``."""
    lines = [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]
    if not lines or lines[0].get("kind") != "run":
        raise SystemExit(
            f"{path} does not begin with the line of a run of python -m scripts.measure"
        )
    return lines
