"""Break kernels and Python modules at one place at a time, and check that a test fails.

    python -m scripts.mutation --only .cu --sample 0.03            this fraction of each kernel file, and at least eight
    python -m scripts.mutation --only .py --sample 0.01 --least 1  of each Python file of mutators.PYTHON
    python -m scripts.mutation --only push.cu                      all of one file
    python -m scripts.mutation --list                              list the mutants
    python -m scripts.mutation --update                            run nothing; drop mutants whose line has changed

Each mutant is a copy of the package with one change in one file (scripts/mutation/mutators.py). Tests run on it, the
quickest first, until one fails: of a kernel file those in TESTS, of a Python file those that execute the line, which one
run of the tests finds out. Tests that run without --all come before the others, so the record tells which tier finds what.
Code for CUDA compilers alone is not mutated. Each outcome is written to docs/mutants.json at once, and docs/mutants.md is
rendered from it. The record keeps earlier outcomes of mutants that still match the files, and the explanations of
survivors ("note") that were written there.

A survivor is not a fault of the file. It is a change that no test detects, and needs a test or an explanation why none
can detect it.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import queue
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from importlib.metadata import version
from pathlib import Path

from scripts.measure.environment import PYTEST, commit, machine
from scripts.mutation.mutators import (
    ROOT,
    Mutant,
    kernel_files,
    mutants_of,
    probed,
    python_files,
    sample,
)
from scripts.mutation.record import PAGE, Outcome, read_record, record_of, recorded, write_record
from scripts.pages import listed

PARTS = (
    "kepler_traverse",
    "pipelines",
    "scripts",
    "tests",
    "conf",
    "docs",
    "examples",
    "README.md",
    "pyproject.toml",
)
PACKAGES = ("numpy", "pyarrow", "distributed", "pytest")
# A removed statement leaves variables unused, so warnings of style are not errors here.
FLAGS = "-Wno-error -Werror=conversion -Werror=uninitialized -Werror=maybe-uninitialized"
TIME_LIMIT = 400  # seconds; a mutant that takes longer does not end
FAILED = re.compile(
    r"^(?:FAILED|ERROR) (?P<test>\S+::test_(?P<name>\w+))(?P<case>\[.*?\])?(?= - |$)", re.MULTILINE
)
Tests = tuple[str, ...]  # arguments of pytest
SAME = ("--hypothesis-seed=0", "-p", "no:cacheprovider")  # the same examples for each mutant
PYTHON_TESTS: Tests = ("tests/graph", "tests/hierarchy", "tests/job", "tests/traversal")
# seconds of one test of a Python mutant, in which processes may wait for each other
TEST_LIMIT = 120

_TESTS = listed(__file__, "tests.toml")


def _runs(names: list[str]) -> tuple[Tests, ...]:
    return tuple(tuple(_TESTS["runs"][name]) for name in names)


TESTS = {end: _runs(each["runs"]) for each in _TESTS["files"] for end in each["ends"]}
_OTHERS = _runs(_TESTS["others"]["runs"])


def tests_for(file: str) -> tuple[Tests, ...]:
    """The tests to run on a mutant of a file."""
    return next((tests for end, tests in TESTS.items() if file.endswith(f"/{end}")), _OTHERS)


class Copy:
    """A copy of what the tests need, with at most one mutant; code compiled without a mutant is reused."""

    def __init__(self, folder: Path, tests_of_lines: dict[str, list[str]], fast: set[str]):
        self.folder = folder
        self.cache = folder / "simt"
        self._tests_of_lines = tests_of_lines
        self._fast = fast
        self._passed = set()  # tests that passed without a mutant
        self.cache.mkdir(parents=True, exist_ok=True)
        for name in PARTS:
            source = ROOT / name
            copy = folder / name
            if source.is_dir():
                shutil.rmtree(copy, ignore_errors=True)
                shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, copy)

    def outcome(self, mutant: Mutant) -> Outcome:
        """Return what becomes of a mutant, by the tests that run without ``--all`` before the others."""
        for tier, options in (("fast", ()), ("all", ("--all",))):
            for tests in self._tests_for(mutant, tier):
                with self._broken(mutant):
                    status, said = self.run((*tests, *options))
                outcome = verdict(status, said)
                if outcome.verdict == "killed":
                    self._must_pass(said)
                if outcome.verdict != "survived":
                    return outcome._replace(tier=tier)
        return Outcome("survived")

    def _tests_for(self, mutant: Mutant, tier: str) -> tuple[Tests, ...]:
        if not mutant.file.endswith(".py"):
            return tests_for(mutant.file)
        of_line = self._tests_of_lines.get(f"{mutant.file}:{mutant.line}", [])
        tests = [test for test in of_line if (test in self._fast) == (tier == "fast")]
        files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
        runs = []
        # a run collects whole files, which takes long
        for begin, end in ((0, 2), (2, 8), (8, len(files))):
            of_run = [test for test in tests if test.partition("::")[0] in files[begin:end]]
            if of_run:
                (self.folder / f"tests{begin}.txt").write_text("\n".join(of_run))
                runs.append((f"@tests{begin}.txt", f"--timeout={TEST_LIMIT}"))
        return tuple(runs)

    def tests_of_lines(self, mutants: list[Mutant]) -> dict[str, list[str]]:
        """Return the tests that run the line of each mutant, quickest first, by one run of PYTHON_TESTS.

        The quickest case of each test function comes before the other cases.
        """
        log = self.folder / "kepler_traverse/_reached.py"
        shutil.copy(ROOT / "scripts/mutation/reached.py", log)
        probe = "__import__('kepler_traverse._reached', fromlist=['_']).reached('{file}:{{line}}')"
        for file in {mutant.file for mutant in mutants}:
            lines = {mutant.line for mutant in mutants if mutant.file == file}
            path = self.folder / file
            text = probed(path.read_text(encoding="utf-8"), lines, probe.format(file=file))
            path.write_text(text, encoding="utf-8")
        given = ("-p", "kepler_traverse._reached", "--maxfail=1000", "--all")
        self.run((*PYTHON_TESTS, f"--timeout={TEST_LIMIT}", *given), hours=2)
        seconds = defaultdict(float)
        failed = set()
        for line in log.with_suffix(".ended").read_text().splitlines():
            test, duration, outcome = json.loads(line)
            seconds[test] += duration
            if outcome != "passed":
                failed.add(test)
        found = defaultdict(set)
        for line in log.with_suffix(".lines").read_text().splitlines():
            place, test = json.loads(line)
            if test in seconds and test not in failed:
                found[place].add(test)
        return {place: _quickest_first(tests, seconds) for place, tests in found.items()}

    def _broken(self, mutant: Mutant):
        lines = (self.folder / mutant.file).read_text().splitlines(keepends=True)
        lines[mutant.line - 1] = lines[mutant.line - 1].replace(mutant.before, mutant.after, 1)
        return self.changed(mutant.file, "".join(lines))

    @contextlib.contextmanager
    def changed(self, file: str, text: str):
        """Give a file another text for a while; what is compiled of it meanwhile goes with it."""
        path = self.folder / file
        kept = set(self.cache.iterdir())
        before = path.read_text()
        # a change within a second may look like none
        bytecode = path.parent / "__pycache__"
        path.write_text(text)
        shutil.rmtree(bytecode, ignore_errors=True)
        # all kernels are compiled anew after a header
        broken = "" if path.suffix == ".cuh" else f"{path.stem}-"
        try:
            yield
        finally:
            path.write_text(before)
            shutil.rmtree(bytecode, ignore_errors=True)
            for made in set(self.cache.iterdir()) - kept:
                if made.name.startswith(broken) and not made.name.startswith("runtime-"):
                    shutil.rmtree(made) if made.is_dir() else made.unlink()

    def _must_pass(self, said: str) -> None:
        """Raise unless the failed test passes without the mutant."""
        failed = FAILED.search(said)
        if failed and failed["test"] not in self._passed:
            status, said = self.run((failed["test"] + (failed["case"] or ""), "--all"))
            if status:
                raise RuntimeError(f"{failed[0]} also without a mutant:\n{said[-5000:]}")
            self._passed.add(failed["test"])

    def run(self, tests: Tests, hours: float = TIME_LIMIT / 3600) -> tuple[int, str]:
        """Return exit status and output of pytest, up to the first failure. The limit is CPU time."""
        command = [*PYTEST, "-x", *SAME, *tests]
        environment = os.environ | {
            "NUMBA_CACHE_DIR": str(self.folder / "numba"),
            "SIMT_CACHE": str(self.cache),
            "SIMT_FLAGS": FLAGS,
            "PYTHONPATH": str(self.folder),
            "CI": "1",  # the same examples for each mutant
        }
        # no pipe, which processes that a broken job leaves would hold open
        with tempfile.TemporaryFile("w+") as output:
            given = {"cwd": self.folder, "env": environment, "start_new_session": True}
            with subprocess.Popen(command, stdout=output, stderr=output, **given) as process:
                limit = int(hours * 3600)
                resource.prlimit(process.pid, resource.RLIMIT_CPU, (limit, limit + 5))
                process.wait()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            output.seek(0)
            return process.returncode, output.read()


def _quickest_first(tests: set[str], seconds: dict[str, float]) -> list[str]:
    cases = defaultdict(int)
    place = {}
    for test in sorted(tests, key=lambda test: (seconds[test], test)):
        function = test.partition("[")[0]
        place[test] = (cases[function] > 0, seconds[test])
        cases[function] += 1
    return sorted(tests, key=place.__getitem__)


def verdict(status: int, said: str) -> Outcome:
    """Return the verdict on a mutant from the exit status and the output of pytest."""
    if status == 0:
        return Outcome("survived")
    if status == -signal.SIGXCPU:
        return Outcome("killed", "does not end")
    if status < 0:
        return Outcome("killed", f"crashes: {signal.Signals(-status).name}")
    warning = re.search(r"-Werror=([\w-]+)=?\]", said)
    if "SimtError: g++" in said:
        if warning:
            return Outcome("killed", f"compiler: {warning[1]}")
        return Outcome("no mutant", "does not compile")
    failed = FAILED.search(said)
    if not failed and re.search(r"ERROR collecting|while loading conftest", said):
        return Outcome("killed", "import")
    if not failed:
        raise RuntimeError(f"the tests did not run:\n{said[-5000:]}")
    note = failed["name"].replace("_", " ")
    reason = re.search(r"SimtError: kernel .*?: (no thread can go on|[^<\n,(]*)", said)
    if reason:
        note = reason[1].strip()
    return Outcome("killed", note, failed["test"] + (failed["case"] or ""))


def fast_tests(tests: Tests = ()) -> set[str]:
    """Return the tests that run without ``--all``, and the functions that have one."""
    command = [*PYTEST, "--collect-only", "-p", "no:cacheprovider", *tests]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.splitlines()
    return {*found, *(test.partition("[")[0] for test in found)}


def tests_of_lines(mutants: list[Mutant], folder: Path) -> dict[str, list[str]]:
    """Return the tests of the lines of the Python mutants, as the folder keeps them from an earlier run, if it does."""
    kept = folder / "tests_of_lines.json"
    python = [mutant for mutant in mutants if mutant.file.endswith(".py")]
    if python and not kept.exists():
        kept.write_text(json.dumps(Copy(folder / "lines", {}, set()).tests_of_lines(python)))
    if python:
        return json.loads(kept.read_text())
    return {}


def run_all(
    mutants: list[Mutant], workers: int, seconds: float, folder: Path, keep
) -> dict[Mutant, Outcome]:
    """Return the outcome of each mutant; ``keep`` is called with each outcome at once."""
    waiting = queue.Queue()
    for mutant in mutants:
        waiting.put(mutant)
    outcomes = {}
    failures = []
    until = time.monotonic() + seconds
    one_at_a_time = threading.Lock()
    tests = tests_of_lines(mutants, folder)
    fast = set()
    if tests:
        fast = fast_tests(PYTHON_TESTS)

    def work(place: Path) -> None:
        try:
            copy = Copy(place, tests, fast)
            while time.monotonic() < until and not failures:
                mutant = waiting.get_nowait()
                outcome = copy.outcome(mutant)
                with one_at_a_time:
                    outcomes[mutant] = outcome
                    keep(mutant, outcome)
                    done = f"{len(outcomes)}/{len(mutants)} {outcome.verdict} {outcome.tier} {outcome.note}"
                    print(f"{done}: {mutant.file}:{mutant.line} {mutant.change}", flush=True)
        except queue.Empty:
            pass
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(folder / str(i),)) for i in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return outcomes


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="part of the path of the files to break")
    parser.add_argument(
        "--sample",
        type=float,
        default=1,
        help="fraction of the mutants of each file to run, by the seed",
    )
    parser.add_argument("--least", type=int, default=8, help="minimum number of mutants per file")
    parser.add_argument(
        "--seed", type=int, default=0, help="random seed of the sample and of its order"
    )
    parser.add_argument("--list", action="store_true", help="list the mutants and stop")
    parser.add_argument(
        "--update",
        action="store_true",
        help="update the record for the current files and tests, and stop",
    )
    parser.add_argument(
        "--workers", type=int, default=2, help="copies of the package that are tested at once"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=float("inf"),
        help="start no further mutant after this time",
    )
    parser.add_argument(
        "--folder",
        type=Path,
        help="folder of the copies and their compiled code, which the next run reuses",
    )
    options = parser.parse_args()
    mutants = [m for path in [*kernel_files(), *python_files()] for m in mutants_of(path)]
    outcomes, reasons, lost = recorded(mutants, read_record())
    run = read_record()["run"]
    chosen = sample(
        [m for m in mutants if options.only in m.file], options.sample, options.least, options.seed
    )
    if options.list:
        for mutant in chosen:
            print(f"{mutant.file}:{mutant.line} {mutant.change}")
        print(f"{len(chosen)} mutants")
        return
    if options.update:
        tiers = dict.fromkeys(fast_tests(), "fast")
        for mutant, outcome in outcomes.items():
            if outcome.test:
                outcomes[mutant] = outcome._replace(tier=tiers.get(outcome.test, "all"))
        write_record(record_of(mutants, outcomes, reasons, run))
        print(
            f"{len(outcomes)} mutants kept, {lost} no longer in the files dropped; see {PAGE.relative_to(ROOT)}"
        )
        return

    if any(mutant.file.endswith(".py") for mutant in chosen):
        run = {
            "commit": commit(),
            "date": str(datetime.date.today()),
            "machine": "{cpu}, {cores} cores".format(**machine()),
            "versions": ", ".join(f"{name} {version(name)}" for name in PACKAGES),
            "command": " ".join(["python -m scripts.mutation", *sys.argv[1:]]),
        }

    def keep(mutant: Mutant, outcome: Outcome) -> None:
        # with explanations written in the meantime
        known, why, _ = recorded(mutants, read_record())
        write_record(record_of(mutants, {**known, mutant: outcome}, why, run))

    with contextlib.ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ran = run_all(chosen, options.workers, options.seconds, folder, keep)
    survived = sum(outcome.verdict == "survived" for outcome in ran.values())
    print(f"{survived} of {len(ran)} survived; see {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
