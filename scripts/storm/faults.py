"""Faults: processes that are killed or interrupted, disks that are full, files that are cut or changed."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import psutil

from scripts.storm.jobs import ROOT, Ended, part_files, search_path

PATIENCE = 300.0  # seconds of one command
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True)
class Blow:
    """A signal to a command at some moment.

    Attributes
    ----------
    number : signal
    to : {"program", "group", "child"}
        The process that was started, all processes of its session as Ctrl-C does it, or the one that computes.
    parts : int
        The moment: when there are so many more part files; 0 means at once.
    seconds : float
        And so much later.
    """

    number: signal.Signals
    to: str
    parts: int
    seconds: float


def draw_blow(draw: Random) -> Blow:
    """Return a blow at random: before the first part, or between two."""
    is_early = draw.random() < 0.3
    return Blow(
        number=draw.choice(SIGNALS),
        to=draw.choice(["program", "group", "child"]),
        parts=0 if is_early else draw.choice([1, 2, 5, 12, 25]),
        seconds=draw.uniform(0, 3.0)
        if is_early
        else draw.choice([0.0, draw.uniform(0, 0.05), draw.uniform(0, 0.5)]),
    )


class Command:
    """A command in a session of its own."""

    def __init__(self, words: list[str], folder: Path, limit: int | None = None):
        self._out = (folder / "stdout").open("w+")
        self._err = (folder / "stderr").open("w+")
        environment = os.environ | {"PYTHONPATH": search_path()}
        self.process = subprocess.Popen(
            words,
            stdout=self._out,
            stderr=self._err,
            stdin=subprocess.DEVNULL,
            cwd=ROOT,
            env=environment,
            start_new_session=True,
            preexec_fn=None
            if limit is None
            else lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        )

    def strike(self, blow: Blow, output: Path) -> bool:
        """Send a signal at its moment; return whether the command was still there."""
        enough = len(part_files(output)) + blow.parts
        self._wait_for(lambda: len(part_files(output)) >= enough)
        # Python itself ends otherwise, before it runs the program
        if blow.number != signal.SIGKILL:
            self._wait_for(self._has_begun)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(blow.seconds)
        if self.process.poll() is not None:
            return False
        self._send(blow)
        return True

    def _has_begun(self) -> bool:
        return os.fstat(self._err.fileno()).st_size > 0

    def _wait_for(self, condition: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE
        while self.process.poll() is None and not condition() and time.monotonic() < until:
            time.sleep(0.002)

    def _send(self, blow: Blow) -> None:
        with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess):
            if blow.to == "group":
                os.killpg(self.process.pid, blow.number)
                return
            children = psutil.Process(self.process.pid).children() if blow.to == "child" else []
            target = children[0].pid if children else self.process.pid
            os.kill(target, blow.number)

    def end(self) -> Ended:
        """Wait for the end of the command, and of what it has started."""
        try:
            code = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            code = -100
        left = self._left()
        self.kill()
        texts = []
        for file in (self._out, self._err):
            file.seek(0)
            texts.append(file.read())
            file.close()
        return Ended(code, texts[0], texts[1] + left)

    def _left(self) -> str:
        """Return the processes of the session that do not end, as text."""
        until = time.monotonic() + 40
        while time.monotonic() < until:
            alive = _session(self.process.pid)
            if not alive:
                return ""
            time.sleep(0.05)
        names = [" ".join(process.cmdline())[:200] for process in alive]
        return f"\nleft behind: {names}"

    def kill(self) -> None:
        """Kill all processes of the session."""
        for process in _session(self.process.pid):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


def _session(number: int) -> list[psutil.Process]:
    found = []
    for each in psutil.pids():
        with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess):
            if os.getsid(each) == number and psutil.Process(each).status() != psutil.STATUS_ZOMBIE:
                found.append(psutil.Process(each))
    return found


def run_command(words: list[str], folder: Path, limit: int | None = None) -> Ended:
    """Run a command to its end; with a limit, no file may be larger, as if the disk were full then."""
    return Command(words, folder, limit).end()


# Files.


def _cut(data: bytes, draw: Random) -> bytes:
    return data[: draw.randrange(len(data))]


def _flip(data: bytes, draw: Random) -> bytes:
    place = draw.randrange(len(data))
    return data[:place] + bytes([data[place] ^ (1 << draw.randrange(8))]) + data[place + 1 :]


def _blank(data: bytes, draw: Random) -> bytes:
    place = draw.randrange(len(data))
    end = min(len(data), place + 64)
    return data[:place] + bytes(end - place) + data[end:]


def _more(data: bytes, draw: Random) -> bytes:
    return data + bytes(draw.randrange(1, 20))


CHANGES: dict = {"cut": _cut, "a bit flipped": _flip, "zeros": _blank, "longer": _more}


def damage(path: Path, draw: Random) -> str:
    """Change a file, or delete it; return what was done, or nothing if the file is as before."""
    if draw.random() < 0.15:
        path.unlink()
        return f"{path.name} deleted"
    data = path.read_bytes()
    name = draw.choice(list(CHANGES))
    changed = CHANGES[name](data, draw) if data else b"x"
    if changed == data:
        return ""
    path.write_bytes(changed)
    return f"{path.name}: {name}"
