"""Run parts of ``check.sh``, each under a limit, and sum up what came of all.

    python -m scripts.ci.parts run NAME COMMAND ...    show the output of a command, and keep it in out/parts/NAME.log
    python -m scripts.ci.parts summary [NAME ...]      print what came of parts, or of all, and write out/parts/summary.txt

``KEPLER_LIMIT`` is the most seconds per part. A part that takes longer is interrupted, as by Ctrl-C, and killed a minute
later. A part whose reports have no test that passed has failed, too. Without names the summary has the parts of earlier
calls at this commit, too, so that one part can be run after the other. It takes no more than ``MAX_SUMMARY`` characters.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from scripts import reports
from scripts.measure.environment import commit
from scripts.pages import ROOT, read_record, write_record

PARTS = ROOT / "out/parts"
SUMMARY = PARTS / "summary.txt"
# Reports of pytest that a part writes.
REPORTS = {
    "tests": "out/tests.xml",
    "bounds": "out/bounds.xml",
    "libraries": "out/conformance/*.xml",
}
PASSED = reports.PASSED
DEFAULT_LIMIT = 5400.0  # seconds: of a busy machine with two cores
GRACE = 60.0  # seconds between the interrupt and the end
MAX_SUMMARY = 400_000
MAX_FAILURE = 3_000  # characters per failed test
LAST_LINES = 40  # of the output of a part that failed


def run(name: str, command: list[str], limit: float) -> int:
    """Run a command to its end or its limit, record what came of it, and return its exit code."""
    PARTS.mkdir(parents=True, exist_ok=True)
    record_of(name).unlink(missing_ok=True)
    for report in reports_of(name):
        report.unlink()
    began = time.monotonic()
    child = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )
    assert child.stdout is not None
    reader = threading.Thread(target=copy, args=(child.stdout, log_of(name)), daemon=True)
    reader.start()
    is_late = wait(child, limit)
    reader.join(GRACE)  # a process that outlives the command may hold the pipe
    outcome = outcome_of(name, child.returncode, is_late, limit)
    record = {
        "name": name,
        "outcome": outcome,
        "seconds": round(time.monotonic() - began),
        "commit": commit(),
    }
    write_record(record_of(name), record)
    return int(outcome != PASSED)


def outcome_of(name: str, exit_code: int, is_late: bool, limit: float) -> str:
    """Return what came of a part, in words."""
    if is_late:
        return f"stopped after its limit of {limit:.0f} s"
    if exit_code:
        return f"failed with exit code {exit_code}"
    if reports_of(name) and not reports.counts_of(cases_of(name))[PASSED]:
        return "failed: no test ran"
    return PASSED


def wait(child: subprocess.Popen[bytes], limit: float) -> bool:
    """Wait for a child, or end it after its limit; return whether it was late."""
    try:
        child.wait(limit)
        return False
    except subprocess.TimeoutExpired:
        return True
    finally:
        end(child)


def end(child: subprocess.Popen[bytes]) -> None:
    """Interrupt a child that still runs, and kill what it leaves behind, or itself if it goes on."""
    if child.poll() is None:
        # A child of a shell's background job ignores SIGINT; the tests take SIGTERM for it.
        number = signal.SIGINT
        if signal.getsignal(number) is signal.SIG_IGN:
            number = signal.SIGTERM
        child.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(GRACE)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def copy(source: IO[bytes], log: Path) -> None:
    """Copy what comes to the terminal and to a file, as it comes."""
    with source, open(log, "wb", buffering=0) as file:
        while piece := os.read(source.fileno(), 1 << 16):
            file.write(piece)
            sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()


def record_of(name: str) -> Path:
    return PARTS / f"{name}.json"


def log_of(name: str) -> Path:
    return PARTS / f"{name}.log"


def reports_of(name: str) -> list[Path]:
    """Return the reports of pytest that a part has left."""
    if name in REPORTS:
        return sorted(ROOT.glob(REPORTS[name]))
    return []


def cases_of(name: str) -> list[reports.Case]:
    """Return the tests of a part."""
    return [case for report in reports_of(name) for case in reports.cases_in(report)]


def sum_up(names: list[str]) -> str:
    """Return what came of parts that were run, or of all: a line per part first, then the failures."""
    files = sorted(PARTS.glob("*.json"), key=lambda file: file.stat().st_mtime)
    records = [read_record(file) for file in files]
    if names:
        records = [record for record in records if record["name"] in names]
    else:
        here = commit()
        records = [record for record in records if record["commit"] == here]
    lines = list(map(line_of, records))
    for record in records:
        lines += details_of(record)
    text = "\n".join(lines) + "\n"
    if len(text) > MAX_SUMMARY:
        text = text[:MAX_SUMMARY] + "\nMore was left out: see the reports.\n"
    return text


def line_of(record: dict) -> str:
    line = (
        f"{record['name']}: {record['outcome']}, {record['seconds']} s, commit {record['commit']}"
    )
    if reports_of(record["name"]):
        counts = reports.counts_of(cases_of(record["name"]))
        line += "; {passed} tests passed, {failed} failed, {skipped} skipped".format(**counts)
    return line


def details_of(record: dict) -> Iterator[str]:
    """Yield what is to be known of a part that failed."""
    if record["outcome"] == PASSED:
        return
    for case in cases_of(record["name"]):
        if case.outcome == reports.FAILED:
            text = f"{case.message}\n{case.text}".strip()[-MAX_FAILURE:]
            yield f"\n== {record['name']}: {case.place}::{case.name}\n{text}"
    log = log_of(record["name"])
    last = log.read_text(encoding="utf-8", errors="replace").splitlines()[-LAST_LINES:]
    yield f"\n== {record['name']}: the last lines of {log.relative_to(ROOT)}"
    yield from (line[:500] for line in last)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="action", required=True)
    runs = commands.add_parser("run", help="run a part under the limit")
    runs.add_argument("name")
    runs.add_argument("command", nargs=argparse.REMAINDER)
    sums_up = commands.add_parser("summary", help="sum up what came of the parts")
    sums_up.add_argument("names", nargs="*")
    options = parser.parse_args(arguments)
    if options.action == "run":
        limit = float(os.environ.get("KEPLER_LIMIT", DEFAULT_LIMIT))
        return run(options.name, options.command, limit)
    text = sum_up(options.names)
    PARTS.mkdir(parents=True, exist_ok=True)
    SUMMARY.write_text(text, encoding="utf-8")
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
