"""Reports of pytest (JUnit XML): what came of each test."""

from __future__ import annotations

import xml.etree.ElementTree as xml
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

PASSED = "passed"
FAILED = "failed"
SKIPPED = "skipped"
EXPECTED = "expected"  # a test that was to fail, and did
OUTCOMES = {"failure": FAILED, "error": FAILED, "skipped": SKIPPED}


class Case(NamedTuple):
    """A test: its class, its name, what came of it, and what pytest says about that."""

    place: str
    name: str
    outcome: str
    message: str = ""
    text: str = ""


def case_of(test: xml.Element) -> Case:
    names = test.get("classname", ""), test.get("name", "")
    for said in test:
        if said.tag in OUTCOMES:
            is_expected = said.get("type") == "pytest.xfail"
            outcome = EXPECTED if is_expected else OUTCOMES[said.tag]
            return Case(*names, outcome, said.get("message", ""), said.text or "")
    return Case(*names, PASSED)


def cases_in(report: Path) -> list[Case]:
    return list(map(case_of, xml.parse(report).getroot().iter("testcase")))


def counts_of(cases: Iterable[Case]) -> dict[str, int]:
    """Return how many tests passed, failed and were skipped; those that were to fail are none that ran."""
    found = Counter(case.outcome for case in cases)
    skipped = found[SKIPPED] + found[EXPECTED]
    return {PASSED: found[PASSED], FAILED: found[FAILED], SKIPPED: skipped}
