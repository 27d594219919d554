"""Which test runs which line: a plugin of pytest, and the probe that ``mutators.probed`` puts before a line.

A copy of this file stands in the package that is tested, so each process of a test can import it. The log of begun tests,
which names the current one, and what they reach are files beside it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

BEGUN, REACHED, ENDED = (
    Path(__file__).with_name(f"_reached.{name}") for name in ("begun", "lines", "ended")
)
_seen: set[str] = set()
_size = -1
_test = ""


def reached(place: str) -> None:
    """Note that the current test runs a line. Tests of full disks and of other users may prevent it."""
    global _size, _test
    try:
        size = BEGUN.stat().st_size
        if size != _size:
            _size = size
            _test = BEGUN.read_text().splitlines()[-1] if size else ""
            _seen.clear()
        if place not in _seen:
            _seen.add(place)
            _append(REACHED, f"{json.dumps([place, _test])}\n")
    except OSError:
        pass


def _append(path: Path, text: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    os.write(file, text.encode())
    os.close(file)


def pytest_runtest_logstart(nodeid):
    _append(BEGUN, f"{nodeid}\n")


def pytest_runtest_logreport(report):
    _append(ENDED, f"{json.dumps([report.nodeid, report.duration, report.outcome])}\n")
