"""Run all checks in surroundings that tests must not depend on, and record the outcomes in docs/testing.md.

python -m scripts.ci.surroundings run [--only NAME ...] [-- ARGUMENT ...]   arguments go to check.sh and are recorded
python -m scripts.ci.surroundings try [--only NAME ...] -- COMMAND ...      runs another command and records nothing
python -m scripts.ci.surroundings write | check                             writes the table, or compares it with the record

Run it on a machine that does nothing else. The output of each run is kept in out/surroundings.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from scripts import reports
from scripts.measure.environment import ROOT, about
from scripts.pages import (
    between,
    listed,
    packed,
    put,
    read_record,
    table,
    unpacked,
    write_record,
)

RECORD = ROOT / "docs/surroundings.json"
PAGE = ROOT / "docs/testing.md"
BEGIN = "<!-- surroundings: begin -->"
END = "<!-- surroundings: end -->"
LOGS = ROOT / "out/surroundings"
REPORT = ROOT / "out/tests.xml"
CHECKS = ["bash", "scripts/check.sh"]
COMMANDS = ("bash", "git")  # and python3: what the head of check.sh names
OTHER_USER = 1000
MADE = ("command", "date", "commit", "machine", "versions")  # of a run, which others share
_CLONE_NEWUSER = 0x10000000


@dataclass(frozen=True)
class Surrounding:
    """What a run of the checks has around it; the defaults are those of a terminal on a quiet machine."""

    title: str
    ignored: Sequence[str] = ()  # signals
    busy: int = 0
    cores: int = 0
    other_user: bool = False
    sealed_home: bool = False
    bare_path: bool = False
    temporary: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)

    @contextlib.contextmanager
    def entered(self) -> Iterator[tuple[dict[str, str], Callable[[], None]]]:
        """The environment variables of a run, and what its process does before the command begins."""
        with contextlib.ExitStack() as stack:
            place = Path(
                stack.enter_context(tempfile.TemporaryDirectory(prefix="kepler-surroundings-"))
            )
            place.chmod(0o755)
            variables = os.environ | self.variables
            if self.sealed_home:
                (place / "home").mkdir(mode=0o555)
                variables["HOME"] = str(place / "home")
            if self.bare_path:
                (place / "bin").mkdir()
                found = {name: shutil.which(name) for name in COMMANDS} | {
                    "python3": sys._base_executable
                }
                for name, target in found.items():
                    (place / "bin" / name).symlink_to(Path(target).resolve())
                variables["PATH"] = str(place / "bin")
            if self.temporary:
                variables["TMPDIR"] = stack.enter_context(
                    tempfile.TemporaryDirectory(dir=self.temporary)
                )
            for _ in range(self.busy):
                stack.callback(_end, subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            yield variables, self._enter

    def _enter(self) -> None:
        for number in (signal.SIGINT, signal.SIGHUP):
            is_ignored = number.name in self.ignored
            signal.signal(number, signal.SIG_IGN if is_ignored else signal.SIG_DFL)
        if self.cores:
            os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: self.cores])
        if self.other_user and os.geteuid() == 0:
            _become(OTHER_USER)


def _end(process: subprocess.Popen) -> None:
    process.kill()
    process.wait()


def _become(user: int) -> None:
    """Drop all privileges of root, in a namespace where its files belong to another user."""
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWUSER):
        raise OSError(ctypes.get_errno(), "no user namespace can be made")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} 0 1")
    Path("/proc/self/gid_map").write_text(f"{user} 0 1")


SURROUNDINGS = {
    name: Surrounding(**about) for name, about in listed(__file__)["surroundings"].items()
}


def run(name: str, command: list[str]) -> dict:
    """Run a command in a surrounding and return its record."""
    LOGS.mkdir(parents=True, exist_ok=True)
    REPORT.unlink(missing_ok=True)
    began = time.monotonic()
    with (
        SURROUNDINGS[name].entered() as (variables, enter),
        (LOGS / f"{name}.log").open("wb") as log,
    ):
        options = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
        try:
            done = subprocess.run(command, cwd=ROOT, env=variables, preexec_fn=enter, **options)
            is_passed = not done.returncode
        except subprocess.SubprocessError as error:
            log.write(f"this surrounding cannot be made here: {error}\n".encode())
            is_passed = False
    return {
        "command": " ".join(command),
        "passed": is_passed,
        "tests": reports.counts_of(reports.cases_in(REPORT)) if REPORT.exists() else None,
        "seconds": round(time.monotonic() - began),
    }


def table_of(records: dict[str, dict]) -> str:
    """Return the table of the page."""
    rows = []
    for name, surrounding in SURROUNDINGS.items():
        if name in records:
            each = records[name]
            counts = [f"{count:,}" for count in (each["tests"] or {}).values()] or ["-"] * 3
            outcome = {True: "passed", False: "**failed**"}[each["passed"]]
            seconds = f"{each['seconds']:,}"
            rows.append([surrounding.title, outcome, *counts, seconds, each["commit"]])
    columns = ["surroundings", "outcome", "tests passed", "failed", "skipped", "seconds", "commit"]
    wheres = {
        f"`{each['command']}` on {each['machine']['cpu']}, {each['machine']['cores']} cores; "
        + ", ".join(f"{package} {version}" for package, version in each["versions"].items())
        for each in records.values()
    }
    return "\n".join([table(columns, rows).rstrip(), *(f"\n{where}." for where in sorted(wheres))])


def page_with(text: str, records: dict[str, dict]) -> str:
    """Return the page with the table of these records."""
    return between(text, BEGIN, END, table_of(records) + "\n")


def recorded() -> dict[str, dict]:
    """Return the record of each surrounding; what several have in common is in the file once."""
    content = read_record(RECORD)
    return {name: unpacked(content["made"], each) for name, each in content["runs"].items()}


def write(records: dict[str, dict]) -> None:
    made, runs = packed(records.values(), MADE)
    write_record(RECORD, {"made": made, "runs": dict(zip(records, runs, strict=True))})
    PAGE.write_text(page_with(PAGE.read_text(encoding="utf-8"), records), encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    cut = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(
        description="Run all checks in surroundings that tests must not depend on."
    )
    parser.add_argument("action", choices=("run", "try", "write", "check"))
    parser.add_argument(
        "--only", nargs="+", choices=SURROUNDINGS, default=list(SURROUNDINGS), metavar="NAME"
    )
    options = parser.parse_args(words[:cut])
    rest = words[cut + 1 :]
    if options.action == "check":
        page = page_with(PAGE.read_text(encoding="utf-8"), recorded())
        return put({PAGE: page}, "scripts.ci.surroundings write", check=True)
    if options.action == "write":
        write(recorded())
        return 0
    if options.action == "try" and not rest:
        parser.error("try needs a command after --")
    command = rest
    if options.action == "run":
        command = [*CHECKS, *rest]
    failed = []
    what = about(["pytest", "numpy", "numba", "dask"])  # before the record makes the commit dirty
    what["versions"]["linux"] = platform.release()
    for name in options.only:
        print(f"{name} ...", flush=True)
        found = run(name, command)
        print(f"  {found}", flush=True)
        failed += [name] * (not found["passed"])
        if options.action == "run":  # page and record together, since the next run compares them
            write(recorded() | {name: found | what})
    if failed:
        print(f"failed: {', '.join(failed)} (see {LOGS.relative_to(ROOT)})", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
