"""Switches published features off one by one, in silence, and says whether the tests notice.

    python -m scripts.papers.mutants                run all, one after the other, in a copy of the checkout
    python -m scripts.papers.mutants --only NAME    run some
    python -m scripts.papers.mutants --list         say what they change

A mutant leaves all results as they are, or nearly so: distances are right without any of these features. The test that is
named with it must fail. Exit code 1: a mutant survived.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from scripts.mutation.__main__ import Copy, verdict
from scripts.pages import listed

FEATURES = "tests/published/test_features_act.py::test_"


class Mutant(NamedTuple):
    """A feature that is switched off: a text that occurs once in a file is replaced, and a test must fail."""

    name: str
    file: str
    old: str
    new: str
    test: str


_LISTED = listed(__file__)
MUTANTS = tuple(Mutant(**each) for each in _LISTED["mutants"])


def is_killed(mutant: Mutant, copy: Copy) -> bool:
    """Return whether the mutant's test fails. RuntimeError: the test does not run, or the mutant does not compile."""
    before = (copy.folder / mutant.file).read_text(encoding="utf-8")
    with copy.changed(mutant.file, before.replace(mutant.old, mutant.new)):
        outcome = verdict(*copy.run((FEATURES + mutant.test,)))
    if outcome.verdict == "no mutant" or outcome.note.startswith("compiler: "):
        raise RuntimeError(f"{mutant.name} does not compile")
    return outcome.verdict == "killed"


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
        copy = Copy(Path(folder), {}, set())
        for mutant in chosen:
            try:
                said = "killed" if is_killed(mutant, copy) else "SURVIVED"
            except RuntimeError as error:
                said = f"NOT RUN: {error}"
            if said != "killed":
                survivors.append(mutant.name)
            print(f"{said}: {mutant.name}", flush=True)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} mutants are killed")
    return int(bool(survivors))


if __name__ == "__main__":
    sys.exit(main())
