"""All doors, and the case of a number."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scripts.storm import (
    assignment_cases,
    interrupt_cases,
    job_cases,
    library,
    library_cases,
    scipy_cases,
)
from scripts.storm.case import Case, Outcome, Settings

# Each with its share of the cases.
DOORS: dict[str, tuple[Callable[[Case], Any], int]] = {
    "library": (library_cases.ask_library, 20),
    "scipy": (scipy_cases.ask_scipy, 4),
    "assignment": (assignment_cases.ask_assignment, 2),
    "interrupted": (interrupt_cases.run_interrupted, 2),
    **job_cases.DOORS,
}


def run_case(settings: Settings, number: int) -> Outcome:
    """Run a case and return what became of it."""
    if settings.device == "cuda":
        library.use_pandas_without_cudf()
    with tempfile.TemporaryDirectory(prefix="kepler-storm-") as place:
        case = Case(settings, number, Path(place))
        names = [name for name in DOORS if not settings.doors or name in settings.doors]
        case.door = case.draw.choices(names, [DOORS[name][1] for name in names])[0]
        case.count("cases")
        case.count(f"cases, {case.door}")
        DOORS[case.door][0](case)
        return case.outcome
