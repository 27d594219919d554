"""A process that runs cases, and one that watches it: a case that kills or stops its process is a finding, too."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

import psutil

from scripts.storm.case import Finding, Settings
from scripts.storm.cases import run_case
from scripts.storm.jobs import search_path

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 900.0  # seconds of one case
CASES_PER_PROCESS = 1_000
_SHOWN = 1_500  # characters at the end of what a process has written to stderr
_BEGINS = "begins"


@dataclass(frozen=True)
class Share:
    """The cases of one process: every ``step``-th from ``first`` on, while there is time."""

    first: int
    step: int
    until: float  # time.time()
    most: int  # cases


def run_share(settings: Settings, share: Share) -> None:
    """Run cases one after another, and write a line of JSON when one begins and when it has ended."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what cases print goes elsewhere
    number = share.first
    done = 0
    while done < share.most and time.time() < share.until:
        _say(out, {_BEGINS: number})
        _say(out, run_case(settings, number).as_dict())
        number += share.step
        done += 1


def _say(out: IO[str], line: dict) -> None:
    print(json.dumps(line, default=str), file=out, flush=True)


class Watched:
    """Runs the cases of a share in a process of its own, and starts another one behind the case at which it ends.

    Attributes
    ----------
    counts : Counter
        Cases, calls, comparisons and so on, by name.
    findings : list of dict
    """

    def __init__(self, settings: Settings, share: Share, take: Callable[[dict], None]):
        self.settings = settings
        self.share = share
        self.counts = Counter()
        self._take = take
        self._child = None
        self._is_ended = False

    def run(self) -> None:
        """Run all cases of the share, some hundreds per process, so that none grows for hours."""
        first = self.share.first
        left = self.share.most
        while left > 0 and time.time() < self.share.until and not self._is_ended:
            done = self._run_from(first, min(left, CASES_PER_PROCESS))
            first += done * self.share.step
            left -= done

    def end(self) -> None:
        """End the process at once."""
        self._is_ended = True
        if self._child is not None:
            _kill(self._child)

    def _run_from(self, first: int, most: int) -> int:
        """Run cases in one process; return how many were begun."""
        share = Share(first, self.share.step, self.share.until, most)
        done = 0
        begun = None
        with (
            tempfile.TemporaryDirectory(prefix="kepler-storm-") as place,
            tempfile.TemporaryFile("w+") as errors,
        ):
            self._child = child = _start(self.settings, share, errors, place)
            with _deadline(child) as hear:
                for line in _lines(child):
                    hear()
                    begun = line.get(_BEGINS)
                    if begun is None:
                        done += 1
                        self._note(line)
            code = child.wait()
            _kill(child)  # what a case may have left behind
            assert child.stdout is not None
            child.stdout.close()
            if (code or begun is not None) and not self._is_ended:
                errors.seek(0)
                self._report_death(first + done * self.share.step, code, errors.read()[-_SHOWN:])
                done += 1
        return done or most

    def _note(self, line: dict) -> None:
        self.counts.update(line["counts"])
        for finding in line["findings"]:
            self._take(finding)

    def _report_death(self, case: int, code: int, said: str) -> None:
        what = "hang" if code == -signal.SIGKILL else "crash"
        self.counts["cases"] += 1
        seed = self.settings.seed
        detail = f"the process has ended with {code}: {said}"
        asked = f"--seed {seed} --case {case}"
        self._take(asdict(Finding(seed, case, "", "", what, detail, asked)))


def _start(settings: Settings, share: Share, errors: IO[str], place: str) -> subprocess.Popen:
    given = json.dumps([asdict(settings), asdict(share)])
    command = [sys.executable, "-X", "faulthandler", "-m", "scripts.storm", "share", given]
    environment = os.environ | {
        "PYTHONPATH": search_path(),
        "TMPDIR": place,
        "PYTHONIOENCODING": "utf-8:backslashreplace",
    }
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        cwd=ROOT,
        env=environment,
        start_new_session=True,
    )


def share_of(text: str) -> tuple[Settings, Share]:
    """Return what ``_start`` has written."""
    settings, share = json.loads(text)
    return Settings(**settings), Share(**share)


def _lines(child: subprocess.Popen) -> Iterator[dict]:
    assert child.stdout is not None
    for line in child.stdout:
        if line.startswith("{"):
            yield json.loads(line)


@contextlib.contextmanager
def _deadline(child: subprocess.Popen) -> Iterator[Callable[[], None]]:
    """Kill a process that says nothing for too long; what is yielded is called whenever it has said something."""
    heard = [time.monotonic()]
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(min(1.0, PATIENCE)):
            if time.monotonic() - heard[0] > PATIENCE:
                _kill(child)
                return

    def hear() -> None:
        heard[0] = time.monotonic()

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield hear
    finally:
        is_over.set()
        watching.join()


def _kill(child: subprocess.Popen) -> None:
    """Kill a process, and what it has started in sessions of its own."""
    with contextlib.suppress(psutil.NoSuchProcess):
        for each in psutil.Process(child.pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
