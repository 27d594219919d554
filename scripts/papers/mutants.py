"""Switches published features off one by one, in silence, and says whether the tests notice.

    python -m scripts.papers.mutants                run all, one after the other, in a copy of the checkout
    python -m scripts.papers.mutants --only NAME    run some
    python -m scripts.papers.mutants --list         say what they change

A mutant leaves all results as they are, or nearly so: distances are right without any of these features. The test that is
named with it must fail. Exit code 1: a mutant survived.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("kepler_traverse", "pipelines", "scripts", "tests", "conf", "pyproject.toml")
FEATURES = "tests/published/test_features_act.py::test_"
SECONDS = 300.0  # of one mutant, with compiling


class Mutant(NamedTuple):
    """A feature that is switched off: a text that occurs once in a file is replaced, and a test must fail."""

    name: str
    file: str
    old: str
    new: str
    test: str


_LISTED = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
MUTANTS = tuple(Mutant(**each) for each in _LISTED["mutants"])


def copy_of_checkout(folder: Path) -> None:
    """Copy what the tests need; the cache of compiled kernels is shared."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(
                source, folder / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__")
            )
        else:
            shutil.copy(source, folder / name)


def is_killed(mutant: Mutant, folder: Path) -> bool:
    """Return whether the mutant's test fails. It is an error if it passes no more without the mutant."""
    file = folder / mutant.file
    before = file.read_text(encoding="utf-8")
    file.write_text(before.replace(mutant.old, mutant.new), encoding="utf-8")
    try:
        environment = os.environ | {
            "PYTHONPATH": str(folder),
            "SIMT_CACHE": str(ROOT / "out" / "simt"),
        }
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "-p",
            "no:cacheprovider",
            "-o",
            "addopts=",
            FEATURES + mutant.test,
        ]
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS
        )
    finally:
        file.write_text(before, encoding="utf-8")
    if done.returncode not in (0, 1):
        raise RuntimeError(
            f"{mutant.name}: pytest ended with {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    if "SimtError: g++" in done.stdout:
        raise RuntimeError(f"{mutant.name} does not compile\n{done.stdout[-2000:]}")
    return done.returncode == 1


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", help="first words of names: M2, N17")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args(arguments)
    known = {mutant.name.split()[0] for mutant in MUTANTS}
    unknown = [name for name in options.only or () if name not in known]
    if unknown:
        parser.error(f"no mutant is named {unknown[0]}; --list prints all")
    chosen = [
        mutant for mutant in MUTANTS if not options.only or mutant.name.split()[0] in options.only
    ]
    if options.list:
        print("\n".join(f"{mutant.name}: {mutant.file}" for mutant in chosen))
        return 0
    survivors = []
    with tempfile.TemporaryDirectory() as folder:
        copy_of_checkout(Path(folder))
        for mutant in chosen:
            try:
                killed = is_killed(mutant, Path(folder))
            except RuntimeError as error:
                print(f"NOT RUN: {error}", flush=True)
                survivors.append(mutant.name)
                continue
            print(f"{'killed' if killed else 'SURVIVED'}: {mutant.name}", flush=True)
            if not killed:
                survivors.append(mutant.name)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} mutants are killed")
    return int(bool(survivors))


if __name__ == "__main__":
    sys.exit(main())
