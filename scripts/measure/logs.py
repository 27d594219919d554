"""Dated logs of runs, docs/benchmarks/log: written once and never edited, which their SHA-256 in the record says."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from scripts.measure.cells import machine_of, number
from scripts.measure.environment import ROOT
from scripts.measure.record import Record, row_of
from scripts.pages import table

LOG = ROOT / "docs" / "benchmarks" / "log"
HEAD = """# Benchmark logs

One file per run, the newest first. A log is written once and never edited; its SHA-256 is in `../measured.json`.
Logs use the names of their commit: `many_bits` is today's `bit_parallel`, for example. The generated pages
have the current figures.

"""


def text_of(title: str, lines: Iterable[dict], notes: str = "") -> str:
    """Return the log of a run from its lines: where and how it was made, a table per suite, notes."""
    suites = {}
    for line in lines:
        if line["kind"] == "run":
            run = line
        elif line["kind"] == "time":
            suites.setdefault(line["suite"], []).append(row_of(line))
    versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
    parts = [
        f"# {title}\n",
        f"{run['date']}, commit `{run['commit']}`. {machine_of(run)}. {versions}.\n",
        f"```\n{run['command']}\n```\n",
    ]
    for suite, rows in suites.items():
        columns = list(dict.fromkeys(name for row in rows for name in row))
        cells = [[number(row.get(name)) for name in columns] for row in rows]
        parts += [f"{suite}:\n", table(columns, cells)]
    return "\n".join([*parts, f"{notes.strip()}\n"]).rstrip() + "\n"


def written(record: Record, title: str, lines: list[dict], notes: str = "") -> Record:
    """Write the log of a run, which must not exist yet; return the record with it."""
    run = next(line for line in reversed(lines) if line["kind"] == "run")
    words = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-").split("-")[:9]
    file = LOG / f"{run['date']}-{'-'.join(words)}.md"
    if file.exists():
        raise SystemExit(
            f"{file.name} exists, and a log is never written twice: give another title"
        )
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text_of(title, lines, notes), encoding="utf-8")
    about = {"date": run["date"], "title": title, "commit": run["commit"]}
    return replace(
        record, logs=[*record.logs, about | {"file": file.name, "sha256": digest_of(file)}]
    )


def digest_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def edited(record: Record) -> list[str]:
    """Return the names of logs that are missing or differ from what was recorded."""
    return [
        log["file"]
        for log in record.logs
        if not (LOG / log["file"]).exists() or digest_of(LOG / log["file"]) != log["sha256"]
    ]


def index(record: Record) -> str:
    """Return the list of the logs, and of notes beside them: files of the folder that no run has written."""
    known = {log["file"] for log in record.logs} | {"README.md"}
    lines = [
        f"- [{log['date']}: {log['title']}]({log['file']}), commit `{log['commit']}`\n"
        for log in reversed(record.logs)
    ]
    notes = [path for path in sorted(LOG.glob("*.md")) if path.name not in known]
    if notes:
        lines.append("\nNotes:\n\n")
    for path in notes:
        title = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        lines.append(f"- [{title}]({path.name})\n")
    return HEAD + "".join(lines)
