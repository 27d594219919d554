"""docs/mutants.md, the record of what became of each mutant: read, kept true to today's kernels, and written."""

from __future__ import annotations

import re

from scripts.kernel_mutants import ROOT, Mutant

PAGE = ROOT / "docs" / "mutants.md"
UNEXPLAINED = "not explained yet"
# How an explanation begins that says: no test can see this, whatever the graph. Others name what a test would need.
EQUIVALENT = ("the same: ", "the same result: ", "the same distances: ")
_ENTRY = re.compile(r"^\| (\S+):(\d+) \| (`.*`) \| (.*) \|$", re.MULTILINE)


def recorded(mutants: list[Mutant], text: str) -> tuple[dict[Mutant, tuple[str, str]], dict[Mutant, str], int]:
    """What a page says of mutants that can still be made: outcomes, why survivors survive, and how many it has besides.

    A mutant is known by its file and by the text of its line, before and after: where the line has moved, the outcome moves
    with it. Where a file has that line several times, those of the page are taken for the same as long as they are as many,
    or where line numbers agree. What stands nowhere any more is only counted.
    """
    places: dict[tuple[str, str], list[Mutant]] = {}
    for mutant in mutants:
        places.setdefault((mutant.file, mutant.change), []).append(mutant)
    survivors, _, killed = text.partition("## Killed")
    entries: dict[tuple[str, str], list[tuple[int, str, str]]] = {}
    for part, verdict in ((survivors, "survived"), (killed, "killed")):
        for file, line, change, last in _ENTRY.findall(part):
            entries.setdefault((file, change), []).append((int(line), verdict, last))
    outcomes: dict[Mutant, tuple[str, str]] = {}
    reasons: dict[Mutant, str] = {}
    lost = 0
    for change, of_page in entries.items():
        there = sorted(places.get(change, []), key=lambda mutant: mutant.line)
        of_page.sort()
        if len(there) == len(of_page):
            same = list(zip(there, of_page, strict=True))
        else:
            same = [(mutant, entry) for mutant in there for entry in of_page if entry[0] == mutant.line]
        lost += len(of_page) - len(same)
        for mutant, (_, verdict, last) in same:
            outcomes[mutant] = (verdict, last if verdict == "killed" else "")
            if verdict == "survived" and last != UNEXPLAINED:
                reasons[mutant] = last
    return outcomes, reasons, lost


def page(mutants: list[Mutant], outcomes: dict[Mutant, tuple[str, str]], reasons: dict[Mutant, str]) -> str:
    """The whole text of docs/mutants.md."""
    ran = {m: outcomes[m] for m in mutants if m in outcomes and outcomes[m][0] != "no mutant"}
    survivors = [m for m in ran if ran[m][0] == "survived"]
    killed = [m for m in ran if ran[m][0] == "killed"]
    equivalent = sum(reasons.get(m, UNEXPLAINED).startswith(EQUIVALENT) for m in survivors)
    by_compiler = sum(ran[m][1].startswith("compiler: ") for m in killed)
    lines = [
        "# Mutants of the kernels",
        "",
        "Written by `python scripts/mutate_kernels.py`: each kernel file is broken at one place at a time, and the tests",
        "that the file is for run on the host harness until something fails. What survives is explained below.",
        "",
        f"{len(ran)} mutants, {len(killed)} killed ({100 * len(killed) / max(len(ran), 1):.1f} %), "
        f"{len(survivors)} survived. "
        f"{len(mutants) - len(ran)} others have not been run, or do not compile.",
        "",
        f"{equivalent} of the survivors compute the same whatever the input, so that no test can see them (*the same:*); of",
        f"the other {len(ran) - equivalent} mutants {100 * len(killed) / max(len(ran) - equivalent, 1):.1f} % are killed.",
        "",
        f"{by_compiler} of the killed are refused by the compiler: they narrow a number, or read what nobody has set.",
        "",
        "## Survivors",
        "",
        "| where | change | why it survives |",
        "|---|---|---|",
        *(f"| {m.file}:{m.line} | {m.change} | {reasons.get(m, UNEXPLAINED)} |" for m in survivors),
        "",
        "## Killed",
        "",
        "| where | change | by |",
        "|---|---|---|",
        *(f"| {m.file}:{m.line} | {m.change} | {ran[m][1]} |" for m in killed),
    ]
    return "\n".join(lines) + "\n"
