"""The outcome of each mutant, docs/mutants.json, and its page, docs/mutants.md: a summary and the survivors."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from scripts import pages
from scripts.mutation.mutators import ROOT, Mutant

RECORD = ROOT / "docs" / "mutants.json"
PAGE = ROOT / "docs" / "mutants.md"
UNEXPLAINED = "not explained yet"
PLACE = ("file", "line", "before", "after")  # of a mutant
# Beginning of an explanation that no test can detect the mutant on any graph. Others name what a test would need.
EQUIVALENT = ("the same: ", "the same result: ", "the same distances: ")


class Outcome(NamedTuple):
    """What became of a mutant: "killed", "survived", or "no mutant" if it does not compile."""

    verdict: str
    note: str = ""  # what killed it
    test: str = ""  # that killed it, where recorded
    tier: str = ""  # "fast" if that test runs without --all, else "all"


def key_of(mutant: Mutant) -> str:
    """Return a digest of the line before and after."""
    return hashlib.sha256(f"{mutant.before}\n{mutant.after}".encode()).hexdigest()[:12]


def recorded(
    mutants: list[Mutant], record: dict
) -> tuple[dict[Mutant, Outcome], dict[Mutant, str], int]:
    """Return the recorded outcomes of mutants that still match the kernels.

    A mutant is identified by its file and by a digest of its line, before and after, so an outcome follows a moved line. If
    a file has that line several times, recorded mutants match if they are equally many, or if line numbers agree.

    Returns
    -------
    outcomes : dict of Mutant to Outcome
    reasons : dict of Mutant to str
        Why a survivor survives.
    lost : int
        Number of recorded mutants that no line of today's kernels matches.
    """
    places = {}
    for mutant in mutants:
        places.setdefault((mutant.file, key_of(mutant)), []).append(mutant)
    entries = {}
    for entry in record["mutants"]:
        entries.setdefault((entry["file"], entry["key"]), []).append(entry)
    outcomes = {}
    reasons = {}
    lost = 0
    for change, of_record in entries.items():
        there = sorted(places.get(change, []), key=lambda mutant: mutant.line)
        of_record.sort(key=lambda entry: entry["line"])
        if len(there) == len(of_record):
            same = list(zip(there, of_record, strict=True))
        else:
            same = [
                (mutant, entry)
                for mutant in there
                for entry in of_record
                if entry["line"] == mutant.line
            ]
        lost += len(of_record) - len(same)
        for mutant, entry in same:
            by = (entry["note"], entry.get("test", ""), entry.get("tier", ""))
            outcomes[mutant] = Outcome(entry["verdict"], *by)
            if entry["verdict"] == "survived":
                outcomes[mutant] = Outcome("survived")
                if entry["note"]:
                    reasons[mutant] = entry["note"]
    return outcomes, reasons, lost


def record_of(
    mutants: list[Mutant],
    outcomes: dict[Mutant, Outcome],
    reasons: dict[Mutant, str],
    run: dict | None = None,
) -> dict:
    """Return all outcomes, in the order of the files, without changes that do not compile; ``run`` is of Python mutants."""
    entries = []
    for mutant in mutants:
        outcome = outcomes.get(mutant, Outcome("no mutant"))
        if outcome.verdict != "no mutant":
            entry = {"file": mutant.file, "line": mutant.line, "key": key_of(mutant)}
            if outcome.verdict == "survived":
                entry |= {"before": mutant.before, "after": mutant.after}
                outcome = Outcome("survived", reasons.get(mutant, ""))
            entry |= {"verdict": outcome.verdict, "note": outcome.note}
            if outcome.tier:
                entry |= {"test": outcome.test, "tier": outcome.tier}
            entries.append(entry)
    possible = [
        sum(mutant.file.endswith(".py") == python for mutant in mutants) for python in (False, True)
    ]
    return {"possible": possible, "run": run or {}, "mutants": entries}


def read_record() -> dict:
    return unpacked(pages.read_record(RECORD, packed(record_of([], {}, {}))))


def write_record(record: dict) -> None:
    """Write the record, and the page rendered from it."""
    pages.write_record(RECORD, packed(record))
    PAGE.write_text(page(record), encoding="utf-8")


def packed(record: dict) -> dict:
    """Return a record as its file holds it: survivors as they are, killed mutants as rows per file, tests listed once."""
    killed = {}
    tests = {}
    for entry in record["mutants"]:
        if entry["verdict"] == "killed":
            row = [entry[name] for name in ("line", "key", "note")]
            if "test" in entry:
                row += [tests.setdefault(entry["test"], len(tests)), entry["tier"]]
                if row[2] == name_of(entry["test"]):
                    row[2] = ""
            killed.setdefault(entry["file"], []).append(row)
    survivors = [
        {name: value for name, value in entry.items() if name not in ("verdict", "key")}
        for entry in record["mutants"]
        if entry["verdict"] == "survived"
    ]
    about = {name: record[name] for name in ("possible", "run")}
    return about | {"survivors": survivors, "tests": list(tests), "killed": killed}


def unpacked(content: dict) -> dict:
    """Return the record that a file holds."""
    entries = []
    for entry in content["survivors"]:
        mutant = Mutant(*(entry[name] for name in PLACE))
        entries.append({"key": key_of(mutant), "verdict": "survived"} | entry)
    for file, rows in content["killed"].items():
        for line, key, note, *by in rows:
            entry = {"file": file, "line": line, "key": key, "verdict": "killed", "note": note}
            if by:
                entry |= {"test": content["tests"][by[0]], "tier": by[1]}
                entry["note"] = note or name_of(entry["test"])
            entries.append(entry)
    return {"possible": content["possible"], "run": content["run"], "mutants": entries}


def name_of(test: str) -> str:
    """Return the words of a test's name."""
    return test.partition("::test_")[2].partition("[")[0].replace("_", " ")


def counts_of(record: dict, python: bool = False) -> dict[str, float]:
    """How many mutants of kernels or of Python ran, were killed and survived, by the names in the page's texts."""
    entries = [entry for entry in record["mutants"] if entry["file"].endswith(".py") == python]
    survivors = [entry for entry in entries if entry["verdict"] == "survived"]
    killed = [entry for entry in entries if entry["verdict"] == "killed"]
    equivalent = sum(entry["note"].startswith(EQUIVALENT) for entry in survivors)
    others = len(entries) - equivalent
    fast = sum(entry.get("tier") == "fast" for entry in killed)
    return {
        "ran": len(entries),
        "killed": len(killed),
        "survived": len(survivors),
        "by_compiler": sum(entry["note"].startswith("compiler: ") for entry in killed),
        "equivalent": equivalent,
        "others": others,
        "named": sum("test" in entry for entry in killed),
        "fast": fast,
        "share": 100 * len(killed) / max(len(entries), 1),
        "share_of_others": 100 * len(killed) / max(others, 1),
        "share_of_fast": 100 * fast / max(len(killed), 1),
        "not_run": record["possible"][python] - len(entries),
    }


def page(record: dict) -> str:
    """The whole text of docs/mutants.md."""
    survivors = [entry for entry in record["mutants"] if entry["verdict"] == "survived"]
    rows = [
        entry | {"change": Mutant(*(entry[name] for name in PLACE)).change} for entry in survivors
    ]
    given = {"kernels": counts_of(record), "python": counts_of(record, True)}
    return pages.filled(
        "mutants.md", {}, **given, run=record["run"], survivors=rows, unexplained=UNEXPLAINED
    )
